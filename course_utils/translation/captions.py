"""Is a sentence unlike the captions that the translator of Multi30k was trained on? Then its French can't be trusted.

    watched = Watched(translator)
    french = watched.translate(["The film was too long."], beam=5)
    watched.unlike(threshold_for(folder, 5))            # ["The film was too long."]

The measure is the translator's own: the mean ln p of the tokens that it writes, the end included. On captions it's sure of
them, on other sentences it guesses. The threshold is the 3 % quantile of the validation captions, so 3 in 100 captions are
called unlike captions by mistake, and it's measured on the test captions and on sentences of other kinds:

    COURSE_DATA=folder python -m course_utils.translation.captions

writes thresholds and rates into the file of the weights, data/checkpoints/multi30k, and prints them. Does: measure,
compare. Does not: translate or print for the command (see `translate`), or keep any of Multi30k's sentences.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from course_utils.files.paths import CHECKPOINTS

__all__ = ["Watched", "measure", "other_sentences", "sureness", "threshold_for"]

TITLE = "captions"                                      # of the note in the model's file
ALARMS = 0.03                                           # of the validation captions that are called unlike captions
BEAMS = (1, 2, 5)                                       # for which there is a threshold: a wider search is surer of itself


def sureness(candidate) -> float:
    """The mean ln p of a translation's tokens, <eos> included, of a `Candidate`: 0 is certain, below is less sure."""
    return candidate.log_probability / (len(candidate.ids) + 1)


class Watched:
    """A `SubwordTranslator` that remembers how sure it was of each sentence, in `seen`: {sentence: mean ln p}."""

    def __init__(self, translator):
        self.translator, self.seen = translator, {}

    def translate(self, texts: Sequence[str], beam: int) -> list[str]:
        """What the translator's `translate` returns."""
        best = self.translator.candidates(texts, beam)
        self.seen |= {text: sureness(one) for text, one in zip(texts, best, strict=True)}
        return [self.translator.pieces.decode(one.ids) for one in best]

    def unlike(self, threshold: float) -> list[str]:
        """The sentences of which it was less sure than `threshold`, in the order in which they came."""
        return [text for text, value in self.seen.items() if value < threshold]


def threshold_for(folder: Path, beam: int) -> float | None:
    """The threshold of a translator for a search with `beam` candidates; None where it has none.

    That of the widest measured search that isn't wider than `beam`. Raises ValueError where it isn't a number.
    """
    from course_utils.training.saved_numbers import read_numbers

    name = f"threshold_beam_{max(one for one in BEAMS if one <= beam)}"
    try:
        return read_numbers(folder, TITLE, [name])[name]
    except FileNotFoundError:
        return None


def other_sentences() -> dict[str, list[str]]:
    """English sentences that aren't captions: on films, everyday ones written by hand, and those of the course's corpus."""
    from course_utils.data import load_reviews, load_translations

    names = ("ordinary", "ordinary_second", "ordinary_third")
    films = [text for name in names for text in load_reviews(name)["test"]["text"]]
    return {"films": films, "everyday": list(load_translations("handwritten_translation")["test"]["source"]),
            "course": list(load_translations("translation")["test"]["source"])[:500]}


def measure(translator, captions: dict[str, list[str]], others: dict[str, list[str]], beams: Sequence[int] = BEAMS) -> dict:
    """Thresholds, and the fractions of each group of texts below: {"threshold_beam_5": -0.5, "test_beam_5": 0.03, …}.

    captions: "validation", where the thresholds come from, and "test"; others: groups by name.
    """
    import numpy as np

    from course_utils.encoder_decoder import CutOff

    found = {}
    for beam in beams:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CutOff)     # nonsense often doesn't end
            values = {name: np.array([sureness(one) for one in translator.candidates(texts, beam)])
                      for name, texts in (captions | others).items()}
        threshold = round(float(np.quantile(values["validation"], ALARMS)), 3)
        found[f"threshold_beam_{beam}"] = threshold
        found |= {f"{name}_beam_{beam}": round(float((some < threshold).mean()), 4) for name, some in values.items()}
    return found


def main() -> int:
    """Measure the course's translator and write what comes out; returns the exit status."""
    from course_utils.data import load_translations
    from course_utils.training.saved_numbers import write_numbers
    from course_utils.translation.subwords import SubwordTranslator

    folder = CHECKPOINTS / "multi30k"
    splits = load_translations("multi30k")
    captions = {name: list(splits[name]["source"]) for name in ("validation", "test")}
    others = other_sentences()
    found = measure(SubwordTranslator.load(folder), captions, others)
    write_numbers(folder, TITLE, found)
    for beam in BEAMS:
        rates = ", ".join(f"{name} {found[f'{name}_beam_{beam}']:.1%} of {len(texts):,}"
                          for name, texts in (captions | others).items())
        print(f"beam {beam}: below {found[f'threshold_beam_{beam}']}: {rates}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
