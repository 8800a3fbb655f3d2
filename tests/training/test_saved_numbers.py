"""Numbers beside a saved model: they come back, belong to its weights alone, and what's wrong is said."""

import json

import pytest
import torch

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.distillation import CautiousClassifier
from course_utils.files.paths import CHECKPOINTS
from course_utils.tokenization import WordTokenizer
from course_utils.training.saved_numbers import read_numbers, write_numbers

TEXTS = ["a dull film", "not dull", "a moving film , not long"]


def a_classifier(seed: int = 0) -> ReviewClassifier:
    torch.manual_seed(seed)
    words = WordTokenizer.train(TEXTS, min_freq=1)
    config = ClassifierConfig(words.vocab_size, d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=16)
    return ReviewClassifier(SelfAttentionClassifier(config).eval(), words, ["negative", "positive"])


def test_a_cautious_classifier_comes_back_and_answers_the_same(tmp_path):
    cautious = CautiousClassifier(a_classifier(), temperature=0.02, threshold=0.6)
    cautious.save(tmp_path / "mine")
    again = CautiousClassifier.load(tmp_path / "mine")
    assert (again.temperature, again.threshold) == (0.02, 0.6)
    (answers, confidence), (others, sure) = cautious.predict(TEXTS), again.predict(TEXTS)
    assert answers == others and torch.equal(confidence, sure)
    assert ReviewClassifier.load(tmp_path / "mine").predict(TEXTS)[0] == cautious.classifier.predict(TEXTS)[0]


def test_numbers_of_other_weights_are_refused(tmp_path):
    CautiousClassifier(a_classifier(), 2.0, 0.7).save(tmp_path)
    a_classifier(seed=1).save(tmp_path)
    with pytest.raises(ValueError, match="other weights"):
        CautiousClassifier.load(tmp_path)
    CautiousClassifier(a_classifier(seed=1), 3.0, 0.8).save(tmp_path)
    assert CautiousClassifier.load(tmp_path).temperature == 3.0


def test_a_model_without_numbers_is_said_to_have_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no model"):
        CautiousClassifier.load(tmp_path / "nowhere")
    a_classifier().save(tmp_path)
    with pytest.raises(FileNotFoundError, match="has no caution.json"):
        CautiousClassifier.load(tmp_path)
    with pytest.raises(ValueError, match="earlier layout, which has no checksums; load it and save it again"):
        CautiousClassifier.load("reviews")


@pytest.mark.parametrize("wrong", [float("inf"), float("nan"), True, "0.7", None])
def test_only_finite_numbers_are_written_and_read(tmp_path, wrong):
    a_classifier().save(tmp_path)
    path = write_numbers(tmp_path, "caution.json", {"temperature": 2.0, "threshold": 0.7})
    kept = path.read_text()
    with pytest.raises(ValueError, match="threshold is .* nothing is saved; expected a finite number"):
        write_numbers(tmp_path, "caution.json", {"temperature": 2.0, "threshold": wrong})
    assert path.read_text() == kept
    path.write_text(json.dumps({**json.loads(kept), "threshold": wrong}))
    with pytest.raises(ValueError, match="threshold in .* expected a finite number"):
        read_numbers(tmp_path, "caution.json", ["temperature", "threshold"])


def test_a_damaged_file_is_named(tmp_path):
    a_classifier().save(tmp_path)
    path = write_numbers(tmp_path, "caution.json", {"temperature": 2.0, "threshold": 0.7})
    for content, message in ((path.read_text()[:-9], "isn't JSON"), ("[1, 2]", "other weights"), ("", "isn't JSON")):
        path.write_text(content)
        with pytest.raises(ValueError, match=message):
            read_numbers(tmp_path, "caution.json", ["temperature"])


@pytest.mark.parametrize("name", ["student", "reader"])
def test_the_committed_numbers_are_those_of_the_recipe(name):
    from course_tools.studies.sets import reader, student

    risk = {"student": student.RISK, "reader": reader.RISK}[name]
    kept, again = CautiousClassifier.load(name), student.cautious(ReviewClassifier.load(CHECKPOINTS / name), risk)
    assert kept.temperature == pytest.approx(again.temperature, abs=0.01)
    assert kept.threshold == pytest.approx(again.threshold, abs=0.005)
