"""From which sureness on a sentence counts as unlike the captions that the translator of Multi30k was trained on.

    COURSE_DATA=folder python -m course_tools.studies.captions

The threshold is the 3 % quantile of the validation captions, so 3 in 100 captions are called unlike captions by mistake, and
it's measured on the test captions and on sentences of other kinds. Does: measure, write thresholds and rates into the file
of the weights, data/checkpoints/multi30k, and print them. Does not: keep any of Multi30k's sentences.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np

from course_utils.data import load_reviews, load_translations
from course_utils.encoder_decoder import CutOff
from course_utils.files.paths import CHECKPOINTS
from course_utils.training.saved_numbers import write_numbers
from course_utils.translation.command import BEAMS, TITLE, sureness
from course_utils.translation.subwords import SubwordTranslator

ALARMS = 0.03                                           # of the validation captions that are called unlike captions


def other_sentences() -> dict[str, list[str]]:
    """English sentences that aren't captions: on films, everyday ones written by hand, and those of the course's corpus."""
    names = ("ordinary", "ordinary_second", "ordinary_third")
    films = [text for name in names for text in load_reviews(name)["test"]["text"]]
    return {"films": films, "everyday": list(load_translations("handwritten_translation")["test"]["source"]),
            "course": list(load_translations("translation")["test"]["source"])[:500]}


def measure(translator, captions: dict[str, list[str]], others: dict[str, list[str]], beams: Sequence[int] = BEAMS) -> dict:
    """Thresholds, and the fractions of each group of texts below: {"threshold_beam_5": -0.5, "test_beam_5": 0.03, …}.

    captions: "validation", where the thresholds come from, and "test"; others: groups by name.
    """
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
