"""Does a better reader have more faithful maps? A set of runs for course_tools/studies/command.py.

Writes data/results/reader_maps.json, which the extra of that name shows: the measures of notebook 11 for classifiers that
read better and worse, all of notebook 08's architecture. "reviews" is 08's own, five seeds; "imdb", "student" and "reader"
come with the course, one seed each. "earlier reader" is one that hasn't learned on from data/written_more: seed 1 of the
set `reader`, which leaves it in outputs/reader; without that it isn't measured. Each scores the words of the same texts by
some methods: 100 of each kind of the course's test reviews (those of notebook 11), the hand-written reviews, the first 300
ordinary sentences. A run has, for each corpus, the accuracy; for each method the agreement with the evidence (average
precision) and comprehensiveness, and the latter on the texts that were read correctly alone, each with a bootstrap interval
over texts.

    python -m course_tools results reader_maps --seeds 0 1 2 3 4
"""

import functools

import numpy as np
import torch

from course_tools.studies.needs import Need, texts_from
from course_tools.studies.runner import ResultSet, parameters_of
from course_tools.studies.sets import reader, reader_more
from course_tools.studies.sets.explanations import EACH, STEPS, Scored, chosen, rounded
from course_utils import explain
from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.recipes.trained_models import trained_model
from course_utils.results import fingerprint, split_fingerprints

METHODS = ["pooling weights", "rollout", "integrated gradients, absolute", "occlusion", "rarity", "random"]
ROWS = {"reviews": 5, "imdb": 1, "student": 1, "earlier reader": 1, "reader": 1}    # classifiers, and how many seeds of each


@functools.cache
def corpora() -> dict:
    """The texts that are scored, by the name of their corpus."""
    test = load_reviews("reviews")["test"]
    return {"reviews": test.select(chosen(test, EACH)),
            **{name: load_reviews(name)["test"] for name in ("handwritten", "ordinary")}}


def classifier_of(model: str, seed: int) -> ReviewClassifier:
    """The trained classifier of a row."""
    if model == "earlier reader":
        return reader_more.begun(1)
    return trained_model(seed=seed) if model == "reviews" else ReviewClassifier.load(model)


@functools.cache
def settings() -> str:
    """What every run depends on; the models' weights are in `describe`."""
    evidence = [list(split["evidence"]) for split in corpora().values()]
    return fingerprint(split_fingerprints(corpora()), evidence, METHODS, STEPS)


def describe(model: str) -> dict:
    """The classifier's weights, as a fingerprint."""
    return {"weights": reader_more.weights_of(classifier_of(model, 0).model)}


def run(model: str, seed: int, state) -> dict:
    """Score one classifier on every corpus."""
    classifier = classifier_of(model, seed)
    train = load_reviews("reviews")["train"]
    counted = explain.count_words(train["text"], train["label"], classifier.tokenizer)
    found = {name: scored(classifier, split, counted, seed) for name, split in corpora().items()}
    return {"parameters": parameters_of(classifier.model), **found}


def scored(classifier: ReviewClassifier, split, counted: explain.Counted, seed: int) -> dict:
    """Accuracy on a corpus, and the measures of every method, each as mean, low and high."""
    texts, labels = Scored(classifier, split, counted), torch.tensor(split["label"])
    right = np.zeros(len(split), dtype=bool)
    for batch, target in zip(texts.batches, texts.targets, strict=True):
        right[batch.indices] = (target == labels[batch.indices]).numpy()
    result = {"texts": len(split), "accuracy": round(float(right.mean()), 4)}
    for method in METHODS:
        scores, _ = texts.by_name(method, seed)
        agreement, needed = texts.agreement(scores)["average_precision"], texts.faithfulness(scores)["comprehensiveness"]
        result[method] = {"average_precision": rounded(explain.bootstrap_interval(agreement)),
                          "comprehensiveness": rounded(explain.bootstrap_interval(needed)),
                          "comprehensiveness_right": rounded(explain.bootstrap_interval(needed[right]))}
    return result


def line(runs: list[dict]) -> str:
    """Accuracy on ordinary sentences, and how faithful the pooling weights are there."""
    means = [np.mean([value(run["ordinary"]) for run in runs]) for value in (
        lambda scores: scores["accuracy"], lambda scores: scores["pooling weights"]["comprehensiveness"][0])]
    return f"ordinary {100 * means[0]:.1f}, pooling weights' comprehensiveness {means[1]:.2f}"


def seeds_of(row: str, asked: list[int]) -> list[int]:
    """Those that a classifier has; the earlier reader's where it has been made."""
    made = row != "earlier reader" or reader.kept("reader-1").exists()
    return [seed for seed in asked if made and seed < ROWS[row]]


SET = ResultSet(
    "reader_maps", ROWS, settings, run,
    (*texts_from("reviews", "handwritten", "ordinary"), Need("the classifier", classifier_of, "reader")),
    seeds_of, describe, line=line,
)
