"""Numbers of a saved model: they come back with it, belong to its weights alone, and what's wrong is said."""

import pytest
import torch
from saved_classifiers import TEXTS, make, rewrite

from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.distillation import CautiousClassifier, expected_calibration_error
from course_utils.training.saved_numbers import read_numbers, write_numbers


def test_a_cautious_classifier_comes_back_and_answers_the_same(tmp_path):
    cautious = CautiousClassifier(make(), temperature=0.02, threshold=0.6)
    cautious.save(tmp_path / "mine")
    again = CautiousClassifier.load(tmp_path / "mine")
    assert (again.classifier.temperature, again.temperature, again.threshold) == (0.02, 1.0, 0.6)
    (answers, confidence), (others, sure) = cautious.predict(TEXTS), again.predict(TEXTS)
    assert answers == others and torch.allclose(confidence, sure, atol=1e-4)
    assert ReviewClassifier.load(tmp_path / "mine").predict(TEXTS)[0] == cautious.classifier.predict(TEXTS)[0]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_a_temperature_is_applied_once_wherever_the_model_is_asked(tmp_path, temperature):
    plain = make()
    logits = plain.model(*plain.encode(TEXTS)).logits.detach()
    expected = (logits / temperature).softmax(dim=-1)
    plain.temperature = temperature
    plain.save(tmp_path / "mine")
    kept = ReviewClassifier.load(tmp_path / "mine")
    assert kept.temperature == temperature
    assert torch.allclose(kept.predict(TEXTS)[1], expected, atol=1e-6)
    for text, row in zip(TEXTS, expected):
        assert list(kept.explain(text).probabilities.values()) == pytest.approx(row.tolist(), abs=1e-5)
    CautiousClassifier(kept, 2.0, 0.6).save(tmp_path / "other")            # once more, and saved, loaded and saved again
    CautiousClassifier.load(tmp_path / "other").save(tmp_path / "again")
    for name in ("other", "again"):
        twice = CautiousClassifier.load(tmp_path / name)
        assert twice.classifier.temperature == 2 * temperature
        assert torch.allclose(twice.predict(TEXTS)[1], (logits / temperature / 2).softmax(dim=-1).amax(dim=-1), atol=1e-6)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), "hot"])
def test_a_temperature_that_cannot_be_is_refused(tmp_path, wrong):
    with pytest.raises(ValueError, match="temperature="):
        ReviewClassifier(make().model, make().tokenizer, make().label_names, wrong)
    make().save(tmp_path / "mine")
    path = write_numbers(tmp_path / "mine", "caution", {"temperature": 2.0, "threshold": 0.7})
    rewrite(path, lambda about, tensors: about["notes"]["caution"].update(temperature=wrong))
    with pytest.raises(ValueError, match="temperature is .*mine.*fit it again"):
        ReviewClassifier.load(tmp_path / "mine")


@pytest.mark.parametrize("name, most", [("student", 4), ("reader", 4)])
def test_the_models_that_come_with_the_course_answer_with_calibrated_probabilities(name, most):
    """On ordinary sentences to which nothing was fitted; without the temperature it's 19 and 12 points."""
    classifier, sure, right = ReviewClassifier.load(name), [], []
    for split in (load_reviews(source)["test"] for source in ("ordinary_second", "ordinary_third")):
        confidence, said = classifier.predict(split["text"])[1].max(dim=-1)
        sure.append(confidence), right.append(said == torch.tensor(split["label"]))
    assert 100 * expected_calibration_error(torch.cat(sure), torch.cat(right)) < most


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
    assert kept.classifier.temperature == pytest.approx(again.temperature, abs=0.01)
    assert kept.threshold == pytest.approx(again.threshold, abs=0.005)
