"""What parts of texts give away: planted clues are found, twins stay together, and the file is that of the recipe."""

import json

import numpy as np
import pytest
from datasets import Dataset, DatasetDict

from course_tools.studies.partial_inputs import VIEWS, length_steps, right_by_folds, right_on_test
from course_tools.studies.sets import find_set
from course_tools.studies.sets import partial_inputs as made
from course_utils.data import load_reviews
from course_utils.results import by_model, read_runs

CLUES = {"all words": "Frankly, {}", "length": 9 * "so " + "{}", "first word": "Frankly, {}", "last word": "{} honestly",
         "punctuation": "{}!", "small words": "{} not"}


def texts_and_labels(number=400):
    rng = np.random.default_rng(0)
    vocabulary = ["the", "film", "plot", "is", "long", "dull"]
    texts = [" ".join(rng.choice(vocabulary, rng.integers(6, 9))) + "." for _ in range(number)]
    return texts, [i % 2 for i in range(number)]


@pytest.mark.parametrize("view", VIEWS)
def test_a_planted_clue_is_found_and_without_one_there_is_nothing(view):
    texts, labels = texts_and_labels()
    planted = [CLUES[view].format(text) if label else text for text, label in zip(texts, labels)]
    for given, low, high in ((texts, 0.38, 0.62), (planted, 0.95, 1.0)):
        found = right_on_test(given[:200], labels[:200], given[200:], labels[200:], VIEWS[view])
        folds = right_by_folds(given, labels, range(400), VIEWS[view])
        assert found.shape == (200,) and low <= found.mean() <= high
        assert folds.shape == (400,) and low <= folds.mean() <= high


def test_twins_are_never_separated():
    """Each text is there twice with one label: only a fold that separates them could know it."""
    texts = [f"word{i // 2}" for i in range(200)]
    labels = [(i // 2) % 2 for i in range(200)]
    apart = right_by_folds(texts, labels, range(200), VIEWS["all words"])
    together = right_by_folds(texts, labels, [i // 2 for i in range(200)], VIEWS["all words"])
    assert apart.mean() > 0.8 and together.mean() < 0.65


def test_longer_texts_reach_more_steps():
    short, long = (set(length_steps("word " * number).split()) for number in (10, 400))
    assert short < long and "from1" in short and "from400" not in short


@pytest.mark.slow
def test_every_row_scores_every_corpus_but_its_plain_texts(monkeypatch):
    few = load_reviews("reviews")
    real = DatasetDict({split: Dataset.from_dict({"text": few[split]["text"][:60], "label": few[split]["label"][:60]})
                        for split in ("train", "test")})
    monkeypatch.setattr(made, "corpora", lambda: {
        "imdb": real, **{name: load_reviews(name) for name in ("handwritten", "ordinary", "ordinary_second")}})
    run = made.run("first word", 1, None)
    json.dumps([run, made.SET.describe("first word")])
    assert run["imdb"]["reviews"] == 60 and "by_kind" not in run["imdb"]
    for corpus, number in (("handwritten", 252), ("ordinary", 240), ("ordinary_second", 240)):
        assert run[corpus]["reviews"] == number and "plain" not in run[corpus]["by_kind"]
        assert sum(run[corpus]["reviews_by_kind"].values()) == number
    assert find_set("partial_inputs") is made.SET


def test_the_file_has_every_row_and_what_can_be_counted_again_is_the_same():
    found = by_model(read_runs("partial_inputs"))
    assert list(found) == list(VIEWS) and all([run["seed"] for run in same] == [0, 1, 2] for same in found.values())
    assert len({run["settings"] for same in found.values() for run in same}) == 1
    test = load_reviews("ordinary")["test"]
    groups = [min(i, pair or i) for i, pair in zip(test["id"], test["pair"])]
    right = right_by_folds(list(test["text"]), list(test["label"]), groups, VIEWS["punctuation"], seed=0)
    counted = np.array(test["kind"]) != "plain"
    assert found["punctuation"][0]["ordinary"]["accuracy"] == pytest.approx(right[counted].mean(), abs=0.02)
