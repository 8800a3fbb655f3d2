"""Soft targets, calibration and declining: equal to the library and to independent computations, wrong arguments refused."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from lesson_cells import cells_of
from scipy.optimize import minimize_scalar
from sklearn.calibration import calibration_curve
from torch import nn
from torch.nn import functional as F

from course_utils.distillation import (
    NO_LABEL,
    CautiousClassifier,
    DistillationLoss,
    distillation_loss,
    expected_calibration_error,
    fit_temperature,
    reliability,
    risk_coverage,
    soften,
    threshold_for,
)
from course_utils.recipes.trained_models import trained_model
from course_utils.training import Batch, BatchOptions, EncodedReviews, fit


def drawn(*shape, seed=0, dtype=torch.float64):
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def predictions(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    confidence = 0.5 + 0.5 * torch.rand(count, generator=generator, dtype=torch.float64)
    return confidence, torch.rand(count, generator=generator) < confidence - 0.1


# soft targets

@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("classes", [2, 3, 9])
def test_the_loss_and_its_gradient_are_those_of_the_librarys_parts(temperature, classes):
    student, teacher = drawn(6, classes, seed=1).requires_grad_(), drawn(6, classes, seed=2)
    labels = torch.tensor([0, 1, NO_LABEL, 1, 0, NO_LABEL])
    ours = distillation_loss(student, teacher, labels, temperature, 0.3)
    target = F.softmax(teacher / temperature, -1)
    entropy = -(target * target.log()).sum(-1).mean()
    theirs = (0.3 * temperature**2 * (F.cross_entropy(student / temperature, target) - entropy)
              + 0.7 * F.cross_entropy(student[labels >= 0], labels[labels >= 0]))
    assert torch.isclose(ours, theirs, rtol=0, atol=1e-12)
    gradients = [torch.autograd.grad(loss, student, retain_graph=True)[0] for loss in (ours, theirs)]
    assert (gradients[0] - gradients[1]).abs().max() < 1e-10


def test_a_student_with_the_teachers_logits_has_no_loss_and_no_gradient_reaches_the_teacher():
    teacher = drawn(5, 3).requires_grad_()
    student = (teacher + 4).detach().requires_grad_()                      # the same after softmax
    loss = distillation_loss(student, teacher, torch.full((5,), NO_LABEL), 3.0, 1.0)
    loss.backward()
    assert abs(loss) < 1e-12 and teacher.grad is None and student.grad.abs().max() < 1e-12


def test_the_same_in_float32_and_for_logits_that_round_to_certainty():
    student, teacher = drawn(6, 3, seed=7, dtype=torch.float32), 200 * drawn(6, 3, seed=8, dtype=torch.float32)
    labels = torch.tensor([0, 1, 2, NO_LABEL, 0, 1])
    single, double = (distillation_loss(student.to(t), teacher.to(t), labels, 2.0) for t in (torch.float32, torch.float64))
    assert math.isfinite(single) and abs(single - double) / double < 1e-5


def test_wrong_arguments_of_the_loss():
    student, labels = drawn(4, 2), torch.zeros(4, dtype=torch.long)
    with pytest.raises(ValueError, match=r"teacher_logits \(4, 3\).*give \(batch, classes\) twice"):
        distillation_loss(student, drawn(4, 3), labels)
    with pytest.raises(ValueError, match=r"labels \(2,\)"):
        distillation_loss(student, student, labels[:2])
    for options, said in (({"temperature": 0.0}, "temperature=0.0; use a number above 0"), ({"alpha": 1.5}, "alpha=1.5")):
        with pytest.raises(ValueError, match=said):
            distillation_loss(student, student, labels, **options)
    with pytest.raises(ValueError, match="temperature=-1"):
        soften(student, -1)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(20, 2, mode="sum")

    def forward(self, token_ids, attention_mask):
        return self.words(token_ids, per_sample_weights=attention_mask.to(self.words.weight.dtype))


def test_fit_trains_on_a_teachers_answers_row_by_row_without_a_label(tmp_path):
    """The row of each text follows it through shuffled batches: a student without any label finds its teacher's answers."""
    torch.manual_seed(0)
    teacher, student = Bag(), Bag()
    ids = torch.randint(1, 20, (200, 6), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        answers = teacher(ids, torch.ones_like(ids))
    texts = EncodedReviews(ids.tolist(), [NO_LABEL] * 200)
    scored = EncodedReviews(ids.tolist(), answers.argmax(-1).tolist())
    loss_of = DistillationLoss(answers, 2.0, 1.0)
    fit(student, texts, scored, loss_of=loss_of, options=BatchOptions(batch_size=16), epochs=30, learning_rate=0.05,
        progress=False, checkpoint=tmp_path / "state.safetensors")
    with torch.no_grad():
        found = student(ids, torch.ones_like(ids))
    assert (found.argmax(-1) == answers.argmax(-1)).double().mean() > 0.97
    rows, none = [3, 0, 7], torch.full((3,), NO_LABEL)
    loss, count = loss_of(student, Batch(ids[rows], torch.ones_like(ids[rows]), none, rows))
    assert count == 3 and torch.isclose(loss, distillation_loss(found[rows], answers[rows], none, 2.0, 1.0))
    assert loss_of.fingerprint != DistillationLoss(answers, 3.0, 1.0).fingerprint


# calibration

@pytest.mark.parametrize("count, bins", [(500, 10), (40, 15), (7, 4), (1, 10)])
def test_the_error_is_that_of_an_independent_computation(count, bins):
    confidence, right = predictions(count, seed=count)
    confidence[0] = 1.0
    edges, error = np.linspace(0, 1, bins + 1), 0.0
    for low, high in zip(edges[:-1], edges[1:]):
        inside = [(c, r) for c, r in zip(confidence.tolist(), right.tolist()) if low < c <= high]
        error += abs(sum(c - r for c, r in inside)) / count
    assert abs(expected_calibration_error(confidence, right, bins) - error) < 1e-12


def test_the_bins_are_those_of_scikit_learn():
    confidence, right = predictions(300)
    ours = reliability(confidence, right, 10)
    accuracy, sure = calibration_curve(right.numpy(), confidence.numpy(), n_bins=10)
    shown = ours.count > 0
    assert np.allclose(ours.accuracy[shown], accuracy) and np.allclose(ours.confidence[shown], sure)
    assert ours.count.sum() == 300 and (ours.accuracy[~shown] == 0).all()


def test_wrong_arguments_of_the_error():
    right = torch.ones(3, dtype=torch.bool)
    for confidence, said in ((torch.tensor([0.5, 2.0, 0.1]), "give probabilities, not logits"),
                             (torch.tensor([0.5, math.nan, 0.1]), "NaN"),
                             (torch.ones(2), r"confidence \(2,\) and right \(3,\)")):
        with pytest.raises(ValueError, match=said):
            expected_calibration_error(confidence, right)
    with pytest.raises(ValueError, match="bins=0"):
        reliability(torch.ones(3), right, 0)


@pytest.mark.parametrize("scale, classes", [(0.2, 2), (1.0, 3), (4.0, 2), (9.0, 5)])
def test_the_temperature_is_the_one_a_general_optimiser_finds(scale, classes):
    logits = drawn(800, classes, seed=9)
    labels = torch.multinomial(logits.softmax(-1), 1, generator=torch.Generator().manual_seed(1))[:, 0]

    def loss(log_t):
        return F.cross_entropy(scale * logits / math.exp(log_t), labels).item()

    found = fit_temperature(scale * logits, labels)
    assert abs(found - math.exp(minimize_scalar(loss, bounds=(-3, 4), method="bounded", options={"xatol": 1e-9}).x)) < 1e-4
    assert abs(found - scale * fit_temperature(logits, labels)) < 1e-9 * scale
    shifted = fit_temperature((scale * logits + drawn(800, 1)).float(), labels)            # softmax forgets a constant
    assert abs(found - shifted) / found < 1e-5


def test_a_temperature_beyond_the_bounds_and_wrong_arguments():
    logits, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
    assert fit_temperature(logits, labels) == pytest.approx(0.01)          # all right: the surer the better
    assert fit_temperature(logits, 1 - labels) == pytest.approx(100)       # all wrong: the flatter the better
    with pytest.raises(ValueError, match=r"logits \(2, 2\) and labels \(1,\)"):
        fit_temperature(logits, labels[:1])


# don't know

def test_risk_against_coverage_by_hand_and_its_area():
    confidence, right = torch.tensor([0.6, 0.9, 0.7, 0.8]), torch.tensor([False, True, True, False])
    found = risk_coverage(confidence, right)
    assert found.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert torch.allclose(found.risk, torch.tensor([0, 1 / 2, 1 / 3, 1 / 2], dtype=torch.float64))
    assert found.area == pytest.approx(sum((0, 1 / 2, 1 / 3, 1 / 2)) / 4)


@pytest.mark.parametrize("risk", [0.0, 0.05, 0.2, 1.0])
def test_a_threshold_is_the_lowest_that_keeps_its_promise(risk):
    confidence, right = predictions(200, seed=4)
    confidence = (confidence * 50).round() / 50                            # many of equal confidence
    found = threshold_for(confidence, right, risk)
    kept = [t for t in confidence.unique().tolist() if (~right[confidence >= t]).double().mean() <= risk]
    assert found == min(kept, default=math.inf)


def test_no_threshold_will_do_and_wrong_arguments():
    assert threshold_for(torch.tensor([0.9, 0.8]), torch.tensor([False, True]), 0.1) == math.inf
    with pytest.raises(ValueError, match="risk=2"):
        threshold_for(torch.ones(1), torch.tensor([True]), 2)
    with pytest.raises(ValueError, match=r"confidence \(2,\) and right \(1,\)"):
        risk_coverage(torch.ones(2), torch.tensor([True]))


def test_a_cautious_classifier_answers_at_its_threshold_and_above():
    classifier, texts = trained_model(0), ["The film was not dull but moving.", "I had an ice cream.", ""]
    labels, probabilities = classifier.predict(texts)
    sure = (probabilities.log() / 2).softmax(-1).amax(-1)
    said, confidence = CautiousClassifier(classifier, 2.0, sure[0].item()).predict(texts)
    assert torch.allclose(confidence, sure) and said[0] == labels[0]
    assert [one == "don't know" for one in said] == (sure < sure[0]).tolist() and "don't know" in said
    assert CautiousClassifier(classifier, 2.0, 0.0).predict(texts)[0] == labels


def test_the_functions_of_the_lesson_give_what_the_package_gives():
    """Notebook 15 has them in their shortest form, without checks."""
    taught = {"torch": torch, "math": math, "pd": pd, "claim": lambda sentence, holds, value=None: None}
    for cell in ("temperature-fit", "risk-curve"):
        exec(cells_of("15_distillation")[cell], taught)
    logits = drawn(300, 3, seed=5)
    labels = torch.multinomial((logits / 3).softmax(-1), 1, generator=torch.Generator().manual_seed(1))[:, 0]
    assert taught["fit_temperature"](logits, labels) == pytest.approx(fit_temperature(logits, labels), abs=1e-9)
    confidence, right = predictions(200, seed=6)
    coverage, risk = taught["risk_curve"](confidence, right)
    found = risk_coverage(confidence, right)
    assert torch.allclose(coverage.double(), found.coverage) and torch.allclose(risk.double(), found.risk)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_a_hidden_layer_the_students_of_notebook_15_learn_the_unseen_class_at_a_higher_temperature(seed):
    taught = {"torch": torch, "nn": nn}
    exec(cells_of("15_distillation")["notes"], taught)
    texts, labels = taught["notes"](1000, seed)

    def trained(width, texts, loss_of, steps, seed_of_the_net):
        def step(model, optimizer, rows):
            optimizer.zero_grad()
            loss_of(model(texts[rows]), rows).backward()
            optimizer.step()
        torch.manual_seed(seed_of_the_net)
        net = nn.Sequential(nn.EmbeddingBag(12, width), nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 3))
        return taught["train"](net, texts, step, steps, seed)

    teacher = trained(16, texts, lambda logits, rows: F.cross_entropy(logits, labels[rows]), 300, seed)
    seen, none = texts[labels != 1], torch.full((64,), NO_LABEL)
    answers = teacher(seen).detach()
    loss_of = lambda logits, rows: distillation_loss(logits, answers[rows], none, 8.0, 1.0)  # noqa: E731
    student = trained(4, seen, loss_of, 500, 100 + seed)
    assert (student(texts[labels == 1]).argmax(-1) == 1).double().mean() > 0.85
