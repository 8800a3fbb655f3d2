"""The result set on other heads: every row can be made, with a small random BERT; both ways of a word are counted apart."""

import json

import pytest
import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel

from course_tools.studies.sets import find_set
from course_tools.studies.sets import other_heads as made
from course_utils.data.marked_reviews import make_named_reviews
from course_utils.other_heads import words_and_labels
from course_utils.results import by_model, read_runs
from course_utils.training.word_piece_files import SPECIAL

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small BERT whose pieces are letters, few reviews, and the set on both."""
    folder = tmp_path_factory.mktemp("models") / "minilm"
    vocabulary = [*SPECIAL, *LETTERS, *("##" + letter for letter in LETTERS), *".,?'"]
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                         intermediate_size=24, max_position_embeddings=200)).save_pretrained(folder)
    BertWordPieceTokenizer(vocab={piece: i for i, piece in enumerate(vocabulary)}).save(str(folder / "tokenizer.json"))
    patch, cached = pytest.MonkeyPatch(), (made.base, made.reviews, made.settings)
    for name, value in (("NAME", str(folder)), ("REVIEWS", 80), ("READ", 64), ("TESTED", 20)):
        patch.setattr(made, name, value)
    for function in cached:
        function.cache_clear()
    yield made
    patch.undo()
    for function in cached:
        function.cache_clear()


@pytest.mark.slow
def test_every_row_can_be_made(small):
    rows = small.SET.wanted([0, 1, 2])
    assert len(set(rows)) == len(rows) == 6 and find_set("other_heads") is small.SET
    runs = {model: small.run(model, 0, None) for model in (small.REAL, small.RANDOM)}
    for model, run in runs.items():
        json.dumps([run, small.SET.describe(model)])
        assert (run["reviews"], run["steps"]) == (64, 2) and len(run["f1"]) == 4 and small.line([run]).startswith("F1 0.")
    real, random = runs.values()
    assert real["parameters"] == random["parameters"] and real["validation_loss"] != random["validation_loss"]
    assert small.run(small.REAL, 0, None)["validation_loss"] == real["validation_loss"]    # no run changes the encoder


def test_settings_change_with_the_recipe(small, monkeypatch):
    before = small.settings()
    small.settings.cache_clear()
    monkeypatch.setitem(small.FIT, "learning_rate", 1e-3)
    assert small.settings() != before
    small.settings.cache_clear()


def test_names_and_words_are_counted_apart():
    reviews = [review for review in make_named_reviews(60) if review.both_ways]
    right = [words_and_labels(review)[1] for review in reviews]
    assert made.both_ways(reviews, right) == {"names": 1, "words": 1}
    nothing = [["O"] * len(labels) for labels in right]
    assert made.both_ways(reviews, nothing) == {"names": 0, "words": 1}


def test_the_file_holds_three_seeds_of_both_rows():
    runs = by_model(read_runs("other_heads"))
    assert {model: [run["seed"] for run in found] for model, found in runs.items()} == {
        made.REAL: [0, 1, 2], made.RANDOM: [0, 1, 2]}
    assert len({run["settings"] for found in runs.values() for run in found}) == 1
    assert {run["steps"] for found in runs.values() for run in found} == {60}
