"""What the cells of notebook 11 define is what `course_utils.explain` computes; and the learner's method is captum's."""

import ast
import math

import pytest
import torch
from explained import make_model
from lesson_cells import cells_of

from course_utils import explain
from course_utils.exercises.catalogue import answers_to
from course_utils.tokenization import pad_batch

CELLS = ("log-odds", "export-remove", "export-eraser", "export-gradients", "token-log-odds", "export-randomised",
         "export-pooling", "export-rollout", "scoreboard")


@pytest.fixture(scope="module")
def taught() -> dict:
    """What those cells define, with the course's answers to the exercises in them."""
    cells, names = cells_of("11_attention_as_explanation"), {"__name__": "learner"}
    exec(cells["imports"], names)
    names |= {"integrated_gradients": answers_to("11.6").reference, "rolled_out": answers_to("11.5").reference}
    for cell in CELLS:
        for node in ast.parse(cells[cell]).body:
            constant = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("SHARES", "PARTS")
            if constant or isinstance(node, ast.FunctionDef):
                exec(compile(ast.Module([node], []), cell, "exec"), names)
    return names


@pytest.fixture(scope="module")
def setting():
    """A model, a padded batch, and the predicted classes."""
    model = make_model()
    batch = pad_batch([[3, 4, 5, 6, 7, 8, 9], [10, 11, 4], [12, 13, 14, 15, 5]], 0)
    return model, batch, explain.predicted_class(model, *batch)


def test_log_odds_and_what_is_left_are_the_packages(taught, setting):
    model, batch, target = setting
    with torch.no_grad():
        expected = explain.log_odds(model(*batch).logits, target)
    assert torch.allclose(taught["ask"](model, *batch, target), expected, atol=1e-6)
    gone = torch.zeros_like(batch[1])
    gone[0, 2] = gone[0, 5] = gone[1, 0] = True
    for got, right in zip(taught["remove"](*batch, gone), explain.remove(model, *batch, gone)):
        assert torch.equal(got, right)


def test_occlusion_and_comprehensiveness_are_the_definitions(taught, setting):
    model, batch, target = setting
    scores, whole = taught["occlusion"](model, *batch, target), taught["ask"](model, *batch, target)
    for row, position in batch[1].nonzero().tolist():
        one = torch.zeros_like(batch[1])
        one[row, position] = True
        less = taught["ask"](model, *explain.remove(model, *batch, one), target)
        assert scores[row, position] == pytest.approx((whole - less)[row].item(), abs=1e-5)
    assert (scores[~batch[1]] == 0).all()
    tops = [explain.top_tokens(scores, batch[1], share) for share in taught["SHARES"]]
    losses = [whole - taught["ask"](model, *explain.remove(model, *batch, top), target) for top in tops]
    got = taught["comprehensiveness"](model, *batch, scores, target)
    assert torch.allclose(got, torch.stack(losses).mean(dim=0), atol=1e-5)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 1 / 3, 1.0])
def test_top_tokens_are_the_packages(taught, share):
    scores, mask = torch.rand(4, 70), torch.arange(70) < torch.tensor([[70], [20], [1], [33]])
    assert torch.equal(taught["top_tokens"](scores, mask, share), explain.top_tokens(scores, mask, share))
    counts = [math.ceil(share * length - 1e-9) for length in (70, 20, 1, 33)]
    assert taught["top_tokens"](scores, mask, share).sum(dim=1).tolist() == counts


def test_attentions_answers_are_the_packages(taught, setting):
    model, batch, target = setting
    with torch.no_grad():
        logits = explain.token_logits(model, *batch)
    real = batch[1]
    assert torch.allclose(taught["token_log_odds"](model, *batch)[real], (logits[..., 1] - logits[..., 0])[real], atol=1e-5)
    assert torch.allclose(taught["pooling_weights"](model, *batch), explain.pooling_scores(model, *batch), atol=1e-6)
    assert torch.allclose(taught["rollout"](model, *batch), explain.rollout_scores(model, *batch), atol=1e-5)


def test_the_learners_integrated_gradients_add_up_and_are_captums(taught, setting):
    model, batch, target = setting
    scores = taught["ig"](model, *batch, target, steps=256)
    library = explain.integrated_gradients_with_gap(model, *batch, target, steps=256)
    assert torch.allclose(scores, library.scores, atol=1e-3)
    empty = batch[0].masked_fill(batch[1], model.config.unk_id)
    rise = taught["ask"](model, *batch, target) - taught["ask"](model, empty, batch[1], target)
    assert torch.allclose(scores.sum(dim=1), rise, atol=1e-3)
    slopes = taught["gradient_times_input"](model, *batch, target)
    assert torch.allclose(slopes, explain.gradient_times_input(model, *batch, target), atol=1e-4)


@pytest.mark.parametrize("depth", [0, 1, 4, 6])
def test_a_broken_model_is_the_packages(taught, setting, depth):
    model, batch, _ = setting
    assert taught["PARTS"] == explain.parts_from_output(model)
    with torch.no_grad():
        ours, theirs = (broken(*batch).logits for broken in (taught["randomised"](model, depth, 7),
                                                             explain.randomised(model, depth, 7)))
    assert torch.equal(ours, theirs)
