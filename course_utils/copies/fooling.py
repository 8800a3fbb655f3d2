"""START's referee for sentences that a learner writes to fool the classifier.

Does: say of each sentence what the classifier made of it, how many fooled it, and which of them by the same trick. Does not:
know what a sentence means; that says whoever wrote it, except where it's as plain as 'The film was dull.'
"""

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from course_utils.data import load_reviews

GOAL = 3
CLOSE = 0.65
LEANS = 0.1                                               # a word without which the probability falls by less isn't named
# Words that no trick is about: they say what is spoken of, or hold the sentence together.
SUBJECTS = frozenset("a an the this that it i is was found film movie picture story plot script acting".split())
PLAIN = SUBJECTS | {"are", "were", "be", "been", "has", "have", "had", "of", "to", "and"}


class Explaining(Protocol):
    """What a classifier must be able to do: what `ReviewClassifier` does, with a tokenizer that lists the words it knows."""

    tokenizer: object

    def explain(self, text: str) -> object: ...

    def predict(self, texts: list[str]) -> tuple: ...


def count_fooled(classifier: Explaining, praise: Sequence[str] = (), complaints: Sequence[str] = ()) -> int:
    """Print what the classifier says of each sentence; return how many fooled it.

    praise, complaints: lists of sentences that anybody would take for one or the other; empty ones are skipped. A sentence
    counts if the classifier knows each of its words, answers the opposite, and hasn't been fooled by the same trick before:
    by a sentence that differs in a single word, shares three words in a row, or leans on the same word beside the same
    neighbour. A single word doesn't count, nor does a sentence that only says an opinion in the wrong list. Printed with
    each: the word without which the probability falls most.
    Raises TypeError for anything but lists of strings.
    """
    fooled: list[tuple[tuple[str, ...], str, str]] = []
    for name, meant, sentences in (("praise", "positive", praise), ("complaints", "negative", complaints)):
        for text in _sentences(name, sentences):
            seen = classifier.explain(text)
            words = tuple(token.text for token in seen.tokens)
            unknown = [f"'{word}'" for word in dict.fromkeys(words) if word not in classifier.tokenizer.ids]
            leans = "" if unknown else _leans_on(classifier, text, seen)
            said = f" (it leans on '{leans}')" if leans else ""
            opinion = "" if unknown or seen.label == meant else _opinion_alone(words, meant)
            same = next((f"{why} '{before.strip()}'" for *other, before in fooled
                         if (why := _same_trick(words, leans, *other))), "")
            if unknown:
                verdict = f"○ doesn't count: it has never met {', '.join(unknown)}"
            elif sum(word[0].isalnum() for word in words) < 2:
                verdict = "○ doesn't count: write a sentence, of two words or more"
            elif seen.label == meant:
                close = ", but it was close" if seen.probabilities[seen.label] < CLOSE else ""
                verdict = f"✗ it's right{close}{said}"
            elif opinion:
                verdict = f"○ doesn't count: to its reviews '{opinion}' means the same as to it. Is it in the wrong list?"
            elif same:
                verdict = f"○ the same trick as before{said}: it {same}"
            else:
                fooled.append((words, leans, text))
                verdict = f"✓ fooled{said}"
            print(f"{seen.label} {seen.probabilities[seen.label]:.3f}  {verdict}:  {text}")
    count = len(fooled)
    more = f"write {GOAL - count} more" if count < GOAL else "well done; now ask which of their words it trips over"
    print(f"{count} fooled it: {more}.")
    return count


def _same_trick(one: tuple[str, ...], leans: str, other: tuple[str, ...], leant: str) -> str:
    """What two sentences have in common, to be followed by the other; '' if it's neither of the three.

    They differ in a word, share three in a row, or lean on the same word beside the same neighbour.
    """
    beside = {pair for words in (one, other) for pair in zip(words, words[1:])
              if leans and leans == leant and leans in pair and all(word.isalpha() for word in pair)}
    near = beside & set(zip(one, one[1:])) & set(zip(other, other[1:]))
    runs = set(zip(one, one[1:], one[2:])) & set(zip(other, other[1:], other[2:]))
    run = min((run for run in runs if all(word.isalpha() for word in run) and len(set(run) - SUBJECTS) > 1), default=())
    if _differ_by_a_word(one, other):
        return "differs in at most one word from"
    if run:
        return f"shares three words in a row, '{' '.join(run)}', with"
    return f"leans on the same two words, '{' '.join(min(near))}', as" if near else ""


@cache
def _opinions() -> dict[str, str]:
    """By word, what plain training reviews mean by it: 'positive' or 'negative', where they agree."""
    train = load_reviews()["train"].filter(lambda row: row["kind"] == "plain")
    names, labels = train.features["label"].names, {}
    for text, label, evidence in zip(train["text"], train["label"], train["evidence"]):
        for start, end in evidence:
            labels.setdefault(text[start:end].lower(), set()).add(names[label])
    return {word: min(found) for word, found in labels.items() if word.isalpha() and len(found) == 1}


def _opinion_alone(words: tuple[str, ...], meant: str) -> str:
    """The opinion of a sentence that says nothing else, such as 'The film was dull.', if it isn't what is meant; else ''."""
    left = [word for word in words if word.isalpha() and word not in PLAIN]
    return left[0] if len(left) == 1 and _opinions().get(left[0], meant) != meant else ""


def _differ_by_a_word(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two sentences are the same, or become so when one word is changed, added or left out."""
    short, long = sorted((one, other), key=len)
    same_start = next((i for i, pair in enumerate(zip(short, long)) if pair[0] != pair[1]), len(short))
    rest = same_start + (len(short) == len(long))
    return len(long) - len(short) < 2 and short[rest:] == long[same_start + 1:]


def _leans_on(classifier: Explaining, text: str, seen) -> str:
    """The word, not one of PLAIN, without which the answer's probability falls most; '' if it hardly falls."""
    words = [token for token in seen.tokens if token.text.isalpha() and token.text not in PLAIN]
    if not words:
        return ""
    _, likely = classifier.predict([text[:word.start] + text[word.end:] for word in words])
    without = likely[:, list(seen.probabilities).index(seen.label)]
    least = int(without.argmin())
    return words[least].text if seen.probabilities[seen.label] - float(without[least]) >= LEANS else ""


def _sentences(name: str, given: object) -> list[str]:
    """The sentences without the empty ones. Raises TypeError unless `given` is a list of strings."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"{name} is {given!r}; expected a list of sentences in quotes, such as [\"The film was moving.\"]")
    for text in given:
        if not isinstance(text, str):
            raise TypeError(f"{name} holds {text!r}; expected only sentences in quotes, such as \"The film was moving.\"")
    return [text for text in given if text.strip()]
