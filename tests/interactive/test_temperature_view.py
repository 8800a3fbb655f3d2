"""Softmax of a few scores with a width and a temperature: the numbers are torch's, and wrong arguments are refused."""

import math
import re

import pytest
import torch
from test_small_views import data_of

from course_utils.interactive import softmax_row, temperature_view

SCORES = [0.0, 1.0, 0.0, -1.0]


@pytest.mark.parametrize(("d_k", "divide", "temperature"), [(1, False, 1.0), (64, False, 1.0), (64, True, 0.3)])
def test_weights_slopes_and_entropy_are_those_of_torch(d_k, divide, temperature):
    row = softmax_row(SCORES, d_k=d_k, divide=divide, temperature=temperature)
    entering = torch.tensor(SCORES, dtype=torch.float64) * (1 if divide else math.sqrt(d_k)) / temperature
    entering.requires_grad_()
    weights = entering.softmax(0)
    own = torch.stack([torch.autograd.grad(w, entering, retain_graph=True)[0][j] for j, w in enumerate(weights)])
    assert torch.allclose(torch.tensor(row.weights), weights.float(), atol=1e-6)
    assert torch.allclose(torch.tensor(row.slopes), own.float(), atol=1e-6)
    assert row.slope == pytest.approx(float(own.sum()), abs=1e-12)
    entropy = torch.distributions.Categorical(weights.detach()).entropy()
    assert row.entropy == pytest.approx(float(entropy) / math.log(4), abs=1e-6)


def test_wide_vectors_freeze_the_softmax_and_the_division_thaws_it():
    wide, divided = (softmax_row(SCORES, d_k=64, divide=divide) for divide in (False, True))
    assert wide.weights[1] > 0.999 and wide.slope < 0.002 < 0.6 < divided.slope
    assert divided == softmax_row(SCORES)
    assert softmax_row([300.0, -300.0], d_k=512).weights == [1.0, 0.0]     # nothing overflows


def test_the_piece_starts_where_it_is_told_and_says_both_rows():
    piece = temperature_view(SCORES, ["not", "dull", "but", "moving"], d_k=16, temperature=2)
    assert data_of(piece) == {"tokens": ["not", "dull", "but", "moving"], "scores": SCORES, "d_k": 16, "divide": False,
                              "temperature": 2, "limit": 3}
    for divide in (True, False):
        row = softmax_row(SCORES, d_k=16, divide=divide, temperature=2)
        assert f"'dull' {row.weights[1]:.2f}" in piece.alt and f"slope {row.slope:.2f}" in piece.alt
    assert data_of(temperature_view([7.5, 0], ["a", "b"]))["limit"] == 8


def test_the_still_picture_says_over_each_half_whether_scores_are_divided():
    drawn = re.findall(r'<text[^>]*x="([\d.]+)"[^>]*>([^<]*)<', temperature_view(d_k=16).still)
    left, right = ([words for x, words in drawn if (float(x) < 400) == side] for side in (True, False))
    assert any("divided by √16" in words for words in left) and any("not divided" in words for words in right)


@pytest.mark.parametrize(("given", "message"), [
    (dict(scores=[1, 2]), "2 scores and 4 tokens"), (dict(scores=[0, 1, float("nan"), 2]), "expected numbers from -9 to 9"),
    (dict(d_k=63), "power of two"), (dict(temperature=0), "expected 0.1 to 10"),
])
def test_wrong_arguments(given, message):
    with pytest.raises(ValueError, match=message):
        temperature_view(**given)
