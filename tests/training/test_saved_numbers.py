"""Numbers of a saved model: they come back with it, belong to its weights alone, and what's wrong is said."""

import pytest
import torch
from saved_classifiers import TEXTS, make, rewrite

from course_utils.classifier import ReviewClassifier
from course_utils.distillation import CautiousClassifier
from course_utils.training.saved_numbers import read_numbers, write_numbers


def test_a_cautious_classifier_comes_back_and_answers_the_same(tmp_path):
    cautious = CautiousClassifier(make(), temperature=0.02, threshold=0.6)
    cautious.save(tmp_path / "mine")
    again = CautiousClassifier.load(tmp_path / "mine")
    assert (again.temperature, again.threshold) == (0.02, 0.6)
    (answers, confidence), (others, sure) = cautious.predict(TEXTS), again.predict(TEXTS)
    assert answers == others and torch.equal(confidence, sure)
    assert ReviewClassifier.load(tmp_path / "mine").predict(TEXTS)[0] == cautious.classifier.predict(TEXTS)[0]


def test_numbers_go_with_the_weights_that_they_were_written_for(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no model"):
        CautiousClassifier.load(tmp_path / "mine")
    CautiousClassifier(make(), 2.0, 0.7).save(tmp_path / "mine")
    make(seed=1).save(tmp_path / "mine")
    with pytest.raises(FileNotFoundError, match="has no numbers called 'caution'"):
        CautiousClassifier.load(tmp_path / "mine")


def test_earlier_copies_of_notebook_15_call_them_by_the_name_of_a_file():
    assert read_numbers("reader", "caution.json", ["threshold"]) == read_numbers("reader", "caution", ["threshold"])


@pytest.mark.parametrize("wrong", [float("inf"), float("nan"), True, "0.7", None])
def test_only_finite_numbers_are_written_and_read(tmp_path, wrong):
    make().save(tmp_path / "mine")
    path = write_numbers(tmp_path / "mine", "caution", {"temperature": 2.0, "threshold": 0.7})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="threshold is .* nothing is saved; expected a finite number"):
        write_numbers(tmp_path / "mine", "caution", {"temperature": 2.0, "threshold": wrong})
    assert path.read_bytes() == before
    rewrite(path, lambda about, tensors: about["notes"]["caution"].update(threshold=wrong))
    with pytest.raises(ValueError, match="threshold is .* expected a finite number"):
        read_numbers(tmp_path / "mine", "caution", ["temperature", "threshold"])


@pytest.mark.parametrize("name", ["student", "reader"])
def test_the_committed_numbers_are_those_of_the_recipe(name):
    from course_tools.studies.sets import reader, student

    risk = {"student": student.RISK, "reader": reader.RISK}[name]
    kept, again = CautiousClassifier.load(name), student.cautious(ReviewClassifier.load(name), risk)
    assert kept.temperature == pytest.approx(again.temperature, abs=0.01)
    assert kept.threshold == pytest.approx(again.threshold, abs=0.005)
