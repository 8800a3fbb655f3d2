"""What a part of a text gives away, on every corpus that a reader is tested on: a set of runs for experiments/command.py.

Writes data/results/partial_inputs.json, which the results of Part III show. A row is a part that a linear model may see,
such as the length or the first word (`course_tools.studies.partial_inputs`). On IMDb, the course's reviews and its
sentences it learns from the training split; on the hand-written reviews and the ordinary sentences, which have none, by
ten-fold cross-validation, in which twins are never separated and the seed makes the folds. Plain texts, in which a word may
decide, aren't counted; they're trained on.

    python -m course_tools results partial_inputs [--seeds 0 1 2]

IMDb comes from the hub, or from the folder that COURSE_DATA names. All rows take a few minutes.
"""

import functools
import time

import numpy as np

from course_tools.studies.partial_inputs import VIEWS, right_by_folds, right_on_test
from course_tools.studies.pretrained_reviews import LINE_BREAK, reviews
from course_tools.studies.runner import ResultSet
from course_utils.data import load_reviews
from course_utils.results import fingerprint, scores, split_fingerprints

SPLIT, WHOLE = ("imdb", "reviews", "sentences"), ("handwritten", "ordinary", "ordinary_second")


@functools.cache
def corpora() -> dict:
    """Every corpus with its splits."""
    return {"imdb": reviews()} | {name: load_reviews(name) for name in (*SPLIT[1:], *WHOLE)}


@functools.cache
def settings() -> str:
    """What every run depends on."""
    return fingerprint([(name, split_fingerprints(corpus)) for name, corpus in corpora().items()], list(VIEWS), 1)


def run(model: str, seed: int, state) -> dict:
    """How many texts of each corpus the model gets right, by kind where there are kinds."""
    begun, found = time.perf_counter(), {}
    for name, splits in corpora().items():
        test, view = splits["test"], VIEWS[model]
        if name in SPLIT:
            (train, labels), (texts, truth) = (_texts(splits[split]) for split in ("train", "test"))
            right = right_on_test(train, labels, texts, truth, view)
        else:
            groups = [min(i, pair or i) for i, pair in zip(test["id"], test["pair"])]
            right = right_by_folds(*_texts(test), groups, view, seed)
        kinds = np.array(test["kind"]) if "kind" in test.column_names else np.full(len(right), "")
        counted = kinds != "plain"
        by_kind = {"kind": kinds[counted].tolist()} if counted.sum() < len(right) else {}
        found[name] = scores(right[counted], np.ones(counted.sum()), **by_kind)
    return {**found, "seconds": round(time.perf_counter() - begun, 1)}


def _texts(split) -> tuple[list[str], list[int]]:
    return [LINE_BREAK.sub(" ", text) for text in split["text"]], list(split["label"])


def line(runs: list[dict]) -> str:
    """What the command prints of a row: accuracy on each corpus."""
    return "  ".join(f"{name} {100 * np.mean([run[name]['accuracy'] for run in runs]):.1f}" for name in (*SPLIT, *WHOLE))


SET = ResultSet("partial_inputs", {name: {"view": name} for name in VIEWS}, settings, run, line=line)
