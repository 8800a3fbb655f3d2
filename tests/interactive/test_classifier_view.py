"""The live classifier: its page holds the model's own words and weights, and refuses models that its script can't run."""

import copy
import dataclasses
import json
import re

import numpy as np
import pytest
import torch

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import load_reviews
from course_utils.files.paths import CHECKPOINTS
from course_utils.interactive import classifier_view
from course_utils.interactive.classifier_view import decoded, model_data, weight_names
from course_utils.interactive.piece import _source
from course_utils.tokenization import WordTokenizer
from course_utils.training.plain_text import page_rules


@pytest.fixture(scope="module")
def trained():
    return ReviewClassifier.load(CHECKPOINTS / "reviews")


@pytest.fixture
def small():
    """An untrained classifier of six words; options change its configuration."""
    def make(words=("dull", "film", "not", "moving"), **options):
        torch.manual_seed(0)
        tokenizer = WordTokenizer(["<pad>", "<unk>", *words])
        settings = {"d_model": 8, "num_heads": 2, "d_ff": 8, "positions": "rotary", **options}
        return ReviewClassifier(SelfAttentionClassifier(ClassifierConfig(tokenizer.vocab_size, **settings)), tokenizer)
    return make


def from_page(piece):
    """The data that the page's script gets."""
    return json.loads(re.search(r"\nvar data=([^\n]*);\nstart\(", piece.html)[1])


def with_weights_of(data, classifier):
    """A copy of the classifier with the weights that a page holds, read in the order of classifier_model.js."""
    other, row = copy.deepcopy(classifier), decoded(data)
    for name in weight_names(classifier.model.config):
        parameter = other.model.state_dict()[name]
        parameter.copy_(torch.from_numpy(row[: parameter.numel()].copy()).view(parameter.shape))
        row = row[parameter.numel():]
    assert len(row) == 0
    return other


def test_the_page_holds_the_models_words_and_weights(trained):
    data = from_page(classifier_view(trained, "A dull film."))["model"]
    assert data["words"] == trained.tokenizer.vocabulary and data["labels"] == ["negative", "positive"]
    page = with_weights_of(data, trained).model.state_dict()
    for name, weight in trained.model.state_dict().items():
        assert torch.equal(page[name], weight.half().float()), name


def test_the_page_has_pythons_rules_for_plain_texts_and_only_where_the_model_reads_such(trained, small):
    assert from_page(classifier_view(trained, "Dull."))["model"]["plain"] == page_rules()
    assert "plain" not in from_page(classifier_view(small(), "Dull."))["model"]
    script = _source("classifier_model.js")
    assert not set("“”„«»–—…‘‛´′ʼ") & set(script), "quotes and dashes come from plain_text.py, so that they can't differ"
    rules = "".join(rule for rule in page_rules().values() if isinstance(rule, str))
    assert set(re.findall(r"\{([a-z_]+)\}", rules)) == {"letter", "marks", "word", "word_and_space", "space"}


def test_rounded_weights_hardly_move_an_answer(trained):
    rounded = with_weights_of(model_data(trained), trained)
    texts = load_reviews("reviews")["test"]["text"][:300]
    (labels, exact), (page_labels, page) = trained.predict(texts), rounded.predict(texts)
    assert (exact - page).abs().max() < 0.002
    assert all(a == b or abs(p[1] - 0.5) < 0.01 for a, b, p in zip(labels, page_labels, exact))


def test_the_configuration_is_the_models(trained, small):
    config = from_page(classifier_view(trained, "Dull."))["model"]["config"]
    assert config == {"d_model": 32, "num_heads": 2, "d_ff": 32, "num_layers": 2, "max_len": 256, "positions": "rotary",
                      "pooling": "attention", "embedding_scale": 10.0, "unk_id": 1, "eps": 1e-5, "base": 10000.0}
    other = from_page(classifier_view(small(pooling="mean", positions="none"), "Dull."))["model"]["config"]
    assert (other["pooling"], other["positions"]) == ("mean", "none")


def test_the_picture_and_the_words_say_what_the_model_says(trained):
    piece = classifier_view(trained, "A moving zzyx.")
    seen = trained.explain("A moving zzyx.")
    assert f"It says {seen.label}, probability of 'positive' {seen.probabilities['positive']:.3f}" in piece.alt
    assert "1 unknown: zzyx." in piece.alt and "with 4 tokens: a moving zzyx ." in piece.alt
    weights = re.findall(r'>(\d\.\d\d)</text>', piece.still)
    assert np.allclose([float(weight) for weight in weights], seen.weights, atol=0.006)
    assert piece.still.count("stroke-dasharray") == 1


def test_no_words_and_very_many(trained):
    assert "No words yet" in classifier_view(trained, "").alt
    long = classifier_view(trained, "dull " * 300)
    assert "with 256 tokens" in long.alt and "the first 40 of 256 tokens" in long.still


@pytest.mark.parametrize(("options", "message"), [
    ({"parts": ("strip", "heat")}, "expected a list of any of strip, occlusion, map, heads"),
    ({"how": "hide"}, "use 'delete' or 'unk'"), ({"head": (2, 0)}, r"head=\(2, 0\); expected \(layer, head\)"),
    ({"examples": [("one", 2)]}, "all strings"),
])
def test_wrong_arguments(small, options, message):
    with pytest.raises(ValueError, match=message):
        classifier_view(small(), "Dull.", **options)


@pytest.mark.parametrize(("options", "message"), [
    ({"positions": "sinusoidal"}, "positions='sinusoidal'; in the browser it runs with positions='rotary' or"),
    ({"norm_first": False}, "norm_first=False"), ({"num_classes": 3}, "num_classes=3"),
])
def test_models_that_the_script_does_not_run(small, options, message):
    labels = ["a", "b", "c"][: options.get("num_classes", 2)]
    config = dataclasses.replace(ClassifierConfig(6, d_model=8, num_heads=2, d_ff=8, positions="rotary"), **options)
    made = ReviewClassifier(SelfAttentionClassifier(config), small().tokenizer, labels)
    with pytest.raises(ValueError, match=message):
        classifier_view(made, "Dull.")


def test_other_tokenizers_other_layers_and_other_things(small):
    with pytest.raises(TypeError, match="expected a ReviewClassifier"):
        classifier_view(small().model, "Dull.")
    with pytest.raises(TypeError, match="expected one review"):
        classifier_view(small(), ["Dull."])
    changed = small()
    changed.model.encoder.blocks[1].feed_forward.activation = torch.relu
    with pytest.raises(ValueError, match="gelu"):
        classifier_view(changed, "Dull.")
    changed = small()
    changed.tokenizer.pattern = re.compile("(.)")
    with pytest.raises(ValueError, match="only the course's WordTokenizer"):
        classifier_view(changed, "Dull.")


def test_a_weight_that_is_not_a_number_and_a_model_too_large(small):
    broken = small()
    broken.model.output.weight.data[0, 0] = float("nan")
    with pytest.raises(ValueError, match="NaN or above 65,504"):
        model_data(broken)
    with pytest.raises(ValueError, match="at most 1,000,000"):
        model_data(small(words=[f"w{i}" for i in range(70_000)]))


def test_only_the_words_of_some_texts(trained):
    data = model_data(trained, ["A dull film, not moving."])
    assert data["words"][:2] == ["<pad>", "<unk>"]
    assert sorted(data["words"][2:]) == [",", ".", "a", "dull", "film", "moving", "not"]
    whole, width = decoded(model_data(trained)).reshape(-1), trained.model.config.d_model
    rows = whole[: len(trained.tokenizer.vocabulary) * width].reshape(-1, width)
    part = decoded(data)
    assert np.array_equal(part[: 9 * width].reshape(9, width), rows[[trained.tokenizer.ids[word] for word in data["words"]]])
    assert np.array_equal(part[9 * width:], whole[rows.size:])
