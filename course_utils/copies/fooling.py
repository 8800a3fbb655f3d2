"""START's referee for sentences that a learner writes to fool the classifier.

Does: say of each sentence what the classifier made of it, and how many fooled it. Does not: know what a sentence means; that
says whoever wrote it.
"""

from collections.abc import Sequence
from typing import Protocol

GOAL = 3


class Explaining(Protocol):
    """What a classifier must be able to do: `ReviewClassifier.explain`, and a tokenizer that lists the words it knows."""

    tokenizer: object

    def explain(self, text: str) -> object: ...


def count_fooled(classifier: Explaining, praise: Sequence[str] = (), complaints: Sequence[str] = ()) -> int:
    """Print what the classifier says of each sentence; return how many fooled it.

    praise, complaints: lists of sentences that anybody would take for one or the other; empty ones are skipped. A sentence
    counts if the classifier knows each of its words, answers the opposite, and hasn't had it before.
    Raises TypeError for anything but lists of strings.
    """
    fooled, before = 0, set()
    for name, meant, sentences in (("praise", "positive", praise), ("complaints", "negative", complaints)):
        for text in _sentences(name, sentences):
            seen = classifier.explain(text)
            words = tuple(token.text for token in seen.tokens)
            unknown = [f"'{word}'" for word in dict.fromkeys(words) if word not in classifier.tokenizer.ids]
            if unknown:
                verdict = f"○ doesn't count: it has never met {', '.join(unknown)}"
            elif words in before:
                verdict = "○ doesn't count twice"
            elif seen.label == meant:
                verdict = "✗ it's right"
            else:
                verdict, fooled = "✓ fooled", fooled + 1
            before.add(words)
            print(f"{seen.label} {seen.probabilities[seen.label]:.3f}  {verdict}:  {text}")
    more = f"write {GOAL - fooled} more" if fooled < GOAL else "well done; now ask which of their words it trips over"
    print(f"{fooled} fooled it: {more}.")
    return fooled


def _sentences(name: str, given: object) -> list[str]:
    """The sentences without the empty ones. Raises TypeError unless `given` is a list of strings."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"{name} is {given!r}; expected a list of sentences in quotes, such as [\"The film was moving.\"]")
    for text in given:
        if not isinstance(text, str):
            raise TypeError(f"{name} holds {text!r}; expected only sentences in quotes, such as \"The film was moving.\"")
    return [text for text in given if text.strip()]
