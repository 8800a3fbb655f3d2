"""Gates to switch: the page holds the word vectors of its reviews alone, and what the model says of them."""

import json
import re

import pytest

from course_utils.classifier import ReviewClassifier
from course_utils.files.paths import CHECKPOINTS
from course_utils.interactive import gates_view
from course_utils.interactive.classifier_view import decoded, model_data

TEXTS = ["A dull film.", "Not a dull film: moving, zzyx!", ""]


@pytest.fixture(scope="module")
def trained():
    return ReviewClassifier.load(CHECKPOINTS / "reviews")


def from_page(piece):
    """The data that the page's script gets."""
    return json.loads(re.search(r"\nvar data=([^\n]*);\nstart\(", piece.html)[1])


def test_the_page_holds_the_reviews_and_their_words_alone(trained):
    data = from_page(gates_view(trained, TEXTS, [0, 1, 0], names=["plain", "flipped", "none"], head=(0, 1)))
    assert data["reviews"] == [{"text": text, "label": label, "name": name}
                               for text, label, name in zip(TEXTS, [0, 1, 0], ["plain", "flipped", "none"])]
    assert data["head"] == [0, 1] and data["model"] == model_data(trained, TEXTS)
    words = {"a", "dull", "film", ".", "not", ":", "moving", ",", "!"}
    assert set(data["model"]["words"]) == {"<pad>", "<unk>"} | words
    assert len(decoded(data["model"])) == len(decoded(model_data(trained, []))) + 32 * len(words)


def test_words_and_picture_say_what_the_model_says(trained):
    piece = gates_view(trained, TEXTS)
    for likely in trained.predict(TEXTS)[1][:, 1].tolist():
        assert f"{likely:.3f}" in piece.alt and f"{likely:.3f}</text>" in piece.still
    assert piece.alt.startswith("Gates of 4 heads to switch, and 3 reviews.") and "'(empty)'" in piece.alt


@pytest.mark.parametrize(("texts", "options", "error", "message"), [
    ("A dull film.", {}, TypeError, "expected a list of reviews"), ([], {}, ValueError, "0 texts; expected 1 to 40"),
    (TEXTS, {"labels": [0, 1]}, ValueError, "2 labels for 3 texts"),
    (TEXTS, {"labels": [0, 1, 2]}, ValueError, "labels hold 2; expected 0 for negative, 1 for positive"),
    ])
def test_wrong_arguments(trained, texts, options, error, message):
    with pytest.raises(error, match=message):
        gates_view(trained, texts, **options)
