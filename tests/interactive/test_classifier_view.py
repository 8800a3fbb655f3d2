"""The live classifier: its page holds the model's own words and weights, and refuses models that its script can't run."""

import copy
import dataclasses
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch

from course_utils.attention_maps import HeadGates
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import load_reviews
from course_utils.files.paths import CHECKPOINTS
from course_utils.interactive import classifier_view
from course_utils.interactive.classifier_view import decoded, model_data, weight_names
from course_utils.interactive.piece import _source
from course_utils.recipes.trained_models import trained_model
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


def test_the_words_of_the_picture_stand_within_it_and_none_on_another(trained):
    picture = ET.fromstring(classifier_view(trained, "A moving film, not dull. " * 5).still)
    boxes = [[float(node.get(side)) for side in ("x", "y", "width", "height")] for node in picture.iter() if node.get("rx")]
    for i, (x, y, wide, high) in enumerate(boxes):
        assert 0 <= x and x + wide <= float(picture.get("width")) and 0 <= y and y + high <= float(picture.get("height"))
        assert all(x >= a + w or a >= x + wide or y >= b + h or b >= y + high for a, b, w, h in boxes[:i])
    assert len(boxes) == 5 * 7


@pytest.mark.parametrize(("options", "message"), [
    ({"parts": ("strip", "heat")}, "expected a list of any of strip, occlusion, map, heads"),
    ({"how": "hide"}, "use 'delete' or 'unk'"), ({"head": (2, 0)}, r"head=\(2, 0\); expected \(layer, head\)"),
    ({"examples": [("one", 2)]}, "all strings"), ({"covered": ["one"]}, "expected a list of names of examples"),
    ({"covered": "one", "examples": [("one", "Dull.")]}, "expected a list of names of examples"),
    ({"still": "Dull."}, "expected a list of texts"), ({"still": [1]}, "expected a list of texts"),
])
def test_wrong_arguments(small, options, message):
    with pytest.raises(ValueError, match=message):
        classifier_view(small(), "Dull.", **options)


def test_positions_can_be_switched_off_only_where_there_are_some(small):
    assert from_page(classifier_view(small(), "Dull.", parts=["positions"]))["parts"] == ["positions"]
    with pytest.raises(ValueError, match="the model has positions='none', so there are none to switch off"):
        classifier_view(small(positions="none"), "Dull.", parts=["positions"])


def test_with_words_alone_neither_picture_nor_description_has_pooling_weights(trained):
    piece = classifier_view(trained, "A moving zzyx.", parts=["words", "map"])
    assert "ooling" not in piece.alt + piece.still and not re.findall(r">\d\.\d\d</text>", piece.still)
    assert piece.still.count("stroke-dasharray") == 1 and "zzyx" in piece.still


def test_two_texts_may_stand_in_the_still_picture_with_their_answers_and_maps(trained):
    texts = ["A dull film.", "A film."]
    plain, piece = (classifier_view(trained, texts[0], head=(1, 1), **more) for more in ({}, {"still": texts}))
    assert piece.name == plain.name, "the live figure is the same"
    for text in texts:
        seen = trained.explain(text)
        answer = f"{seen.label}, {seen.probabilities['positive']:.3f}"
        words = " ".join(token.text for token in seen.tokens)
        assert f"{answer}: {words}" in piece.still and f"‘{words}’ is {answer}" in piece.alt
        for weight in seen.attentions[1][1].flatten().tolist():
            assert f">{weight:.2f}</text>" in piece.still
    assert "head 1.1" in piece.still and plain.alt in piece.alt
    ET.fromstring(piece.still)


def test_a_third_text_stands_below_with_its_answers_with_and_without_the_head(trained):
    texts, text = ["A dull film.", "A film."], "The film was dull."
    piece = classifier_view(trained, texts[0], still=texts, without=text)
    assert "with head 0.0: negative, 0.004; without head 0.0: positive, 0.996" in piece.alt
    assert "without head 0.0: positive" in piece.still and ">0.996</text>" in piece.still
    assert trained.explain(text).label == "negative", "the head is open again"
    assert classifier_view(trained, texts[0], still=texts).name == piece.name
    ET.fromstring(piece.still)
    with pytest.raises(ValueError, match="stands below the texts of `still`"):
        classifier_view(trained, texts[0], without=text)


def test_a_covered_example_says_so(small):
    piece = classifier_view(small(), examples=[("one", "Dull."), ("two", "Not dull.")], covered=["two"])
    assert [example.get("covered", False) for example in from_page(piece)["examples"]] == [False, True]


def test_an_example_brings_what_to_look_at_where_it_says_so(small):
    piece = classifier_view(small(), examples=[("one", "Dull."), ("two", "Not dull.", "the word “not”")])
    told = [(example["name"], example["text"], example["look"]) for example in from_page(piece)["examples"]]
    assert told == [("one", "Dull.", ""), ("two", "Not dull.", "the word “not”")]


def test_without_turning_the_two_sentences_of_start_are_the_same(trained, monkeypatch):
    monkeypatch.setattr(type(trained.model.positions), "rotate", lambda self, x, offset=0: x)
    texts = ["The film was not dull but moving.", "The film was not moving but dull."]
    one, other = trained.predict(texts)[1][:, 1].tolist()
    assert one == pytest.approx(other, abs=1e-6) and f"{one:.3f}" == "0.012"


def test_what_start_says_of_five_models_without_their_first_head():
    """Three reverse both, one calls everything praise, one stays right; 'not dull' stays right in all."""
    texts, shut = ["The film was dull.", "The film was moving.", "The film was not dull."], torch.tensor([[0, 1], [1, 1]])
    said = []
    for seed in range(5):
        model = trained_model(seed)
        with HeadGates(model.model, shut):
            said.append(["np"[answer == "positive"] for answer in model.predict(texts)[0]])
    assert sorted("".join(answers) for answers in said) == ["npp", "pnp", "pnp", "pnp", "ppp"]


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
