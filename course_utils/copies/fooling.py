"""START's referee for sentences that a learner writes to fool the classifier.

Does: say of each sentence what the classifier made of it, and how many fooled it. Does not: know what a sentence means; that
says whoever wrote it.
"""

from collections.abc import Sequence
from typing import Protocol

GOAL = 3
CLOSE = 0.65


class Explaining(Protocol):
    """What a classifier must be able to do: what `ReviewClassifier` does, with a tokenizer that lists the words it knows."""

    tokenizer: object

    def explain(self, text: str) -> object: ...

    def predict(self, texts: list[str]) -> tuple: ...


def count_fooled(classifier: Explaining, praise: Sequence[str] = (), complaints: Sequence[str] = ()) -> int:
    """Print what the classifier says of each sentence; return how many fooled it.

    praise, complaints: lists of sentences that anybody would take for one or the other; empty ones are skipped. A sentence
    counts if the classifier knows each of its words, answers the opposite, and hasn't been fooled by the same sentence or
    by one that differs in a single word. Printed with it: the word without which the probability falls most.
    Raises TypeError for anything but lists of strings.
    """
    fooled: list[tuple[str, ...]] = []
    for name, meant, sentences in (("praise", "positive", praise), ("complaints", "negative", complaints)):
        for text in _sentences(name, sentences):
            seen = classifier.explain(text)
            words = tuple(token.text for token in seen.tokens)
            unknown = [f"'{word}'" for word in dict.fromkeys(words) if word not in classifier.tokenizer.ids]
            if unknown:
                verdict = f"○ doesn't count: it has never met {', '.join(unknown)}"
            elif seen.label == meant:
                close = ", but it was close" if seen.probabilities[seen.label] < CLOSE else ""
                verdict = f"✗ it's right{close}{_leans_on(classifier, text, seen)}"
            elif any(_differ_by_a_word(words, other) for other in fooled):
                verdict = "○ the same trick as before: find another"
            else:
                fooled.append(words)
                verdict = f"✓ fooled{_leans_on(classifier, text, seen)}"
            print(f"{seen.label} {seen.probabilities[seen.label]:.3f}  {verdict}:  {text}")
    count = len(fooled)
    more = f"write {GOAL - count} more" if count < GOAL else "well done; now ask which of their words it trips over"
    print(f"{count} fooled it: {more}.")
    return count


def _differ_by_a_word(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two sentences are the same, or become so when one word is changed, added or left out."""
    short, long = sorted((one, other), key=len)
    same_start = next((i for i, pair in enumerate(zip(short, long)) if pair[0] != pair[1]), len(short))
    rest = same_start + (len(short) == len(long))
    return len(long) - len(short) < 2 and short[rest:] == long[same_start + 1:]


def _leans_on(classifier: Explaining, text: str, seen) -> str:
    """The word without which the answer's probability falls most, as a part of a sentence."""
    words = [token for token in seen.tokens if token.text.isalpha()]
    if len(words) < 2:
        return ""
    _, likely = classifier.predict([text[:word.start] + text[word.end:] for word in words])
    answer = list(seen.probabilities).index(seen.label)
    return f" (it leans on '{words[int(likely[:, answer].argmin())].text}')"


def _sentences(name: str, given: object) -> list[str]:
    """The sentences without the empty ones. Raises TypeError unless `given` is a list of strings."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"{name} is {given!r}; expected a list of sentences in quotes, such as [\"The film was moving.\"]")
    for text in given:
        if not isinstance(text, str):
            raise TypeError(f"{name} holds {text!r}; expected only sentences in quotes, such as \"The film was moving.\"")
    return [text for text in given if text.strip()]
