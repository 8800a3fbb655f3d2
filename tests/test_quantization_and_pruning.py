"""Matrices in fewer bits and with fewer weights: against the definition, PyTorch's functions, and hand-made cases."""

import copy

import pytest
import torch

from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.quantization_and_pruning import matrices, prune, quantize, stored_bytes, with_weights

W = torch.tensor([[0.50, -0.24, 0.10], [0.02, -0.05, 0.04]])


def some_matrix(rows=7, columns=9, seed=0) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


# fewer bits

@pytest.mark.parametrize("bits", range(2, 9))
def test_each_row_is_rounded_as_pytorch_rounds_it(bits):
    weight, top = some_matrix(), 2 ** (bits - 1) - 1
    few = quantize(weight, bits)
    library = torch.fake_quantize_per_channel_affine(weight, few.scales[:, 0], torch.zeros(7, dtype=torch.int32),
                                                           0, -top, top)
    assert torch.allclose(few.weights(), library, atol=1e-6)
    assert few.integers.dtype == torch.int8 and few.integers.shape == (7, 9) and few.scales.shape == (7, 1)
    assert (few.integers.abs().amax(dim=1) == top).all()                     # the whole range is used in every row
    assert ((few.weights() - weight).abs() <= few.scales / 2 + 1e-6).all()


def test_half_precision_and_trained_weights_are_rounded_to_within_half_a_scale():
    torch.manual_seed(0)
    for weight in (torch.randn(50, 64).half(), torch.randn(3, 5, requires_grad=True), torch.full((1, 2), 1e-6).half(),
                   torch.tensor([[1e-45, 0.0]])):
        found = quantize(weight)
        assert found.scales.dtype == torch.float32 and not found.scales.requires_grad and found.scales.min() > 0
        assert ((weight.detach().float() - found.weights()).abs() <= found.scales / 2 + 1e-7).all()


def test_by_hand():
    assert quantize(W).integers.tolist() == [[127, -61, 25], [51, -127, 102]]
    assert quantize(W, 2).integers.tolist() == [[1, 0, 0], [0, -1, 1]]
    assert quantize(W, 4, "matrix").integers.tolist() == [[7, -3, 1], [0, -1, 1]]


@pytest.mark.parametrize("arguments, says", [
    ((W, 9), "bits=9; use a whole number from 2 to 8"), ((W, 1), "bits=1"), ((W, 8.0), "bits=8.0"),
    ((W, 8, "column"), "scales='column'; use one of row, matrix"),
    ((W[0],), r"expected a matrix \(rows, columns\) and got a tensor of the shape \(3,\)"),
    ((torch.zeros(0, 3),), r"the shape \(0, 3\)"), ((W / 0,), "isn't finite"),
])
def test_what_cannot_be_quantized_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        quantize(*arguments)


# fewer weights

@pytest.mark.parametrize("keep", [1.0, 0.8, 0.5, 0.25, 0.01])
def test_the_largest_weights_stay_as_they_are_and_no_more_of_them(keep):
    weight = some_matrix()
    left = prune(weight, keep)
    there, number = left != 0, max(1, round(keep * 63))
    assert int(there.sum()) == number and torch.equal(left[there], weight[there])
    if number < 63:
        assert weight[there].abs().min() > weight[~there].abs().max()


def test_equal_weights_are_not_all_kept_and_the_matrix_given_is_left_alone():
    ones, before = torch.ones(4, 5), W.clone()
    assert int(prune(ones, 0.5).sum()) == 10
    prune(W, 0.5)
    assert torch.equal(W, before)
    assert prune(W, 0.5).tolist() == [[0.5, pytest.approx(-0.24), pytest.approx(0.1)], [0, 0, 0]]


def test_at_random_large_weights_go_as_often_as_small_ones():
    weight, chance = torch.arange(1.0, 1001).view(20, 50), torch.Generator().manual_seed(0)
    left = prune(weight, 0.5, chance)
    assert int((left != 0).sum()) == 500 and 200 < int((left > 500).sum()) < 300
    assert not torch.equal(left, prune(weight, 0.5, chance))


@pytest.mark.parametrize("arguments, says", [((W, 0), "keep=0; use a number above 0, at most 1"), ((W, 1.1), "keep=1.1"),
                                             ((W, None), "keep=None"), ((W[0], 0.5), "expected a matrix"),
                                             ((W / 0, 0.5), "isn't finite")])
def test_what_cannot_be_pruned_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        prune(*arguments)


# a whole model

@pytest.fixture
def model() -> SelfAttentionClassifier:
    torch.manual_seed(0)
    return SelfAttentionClassifier(ClassifierConfig(11, d_model=8, num_heads=2, d_ff=12, num_layers=2, max_len=16))


def test_every_matrix_is_changed_and_nothing_else(model):
    before = copy.deepcopy(model.state_dict())
    changed = with_weights(model, lambda w: quantize(w, 4).weights())
    assert not changed.training and all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    names = set(matrices(model))
    assert names == {name for name, p in model.named_parameters() if p.dim() == 2} and "embedding.weight" in names
    for name, tensor in changed.state_dict().items():
        expected = quantize(before[name], 4).weights() if name in names else before[name]
        assert torch.equal(tensor, expected), name


# bytes

def test_bytes_by_hand():
    weight = torch.ones(10, 32)
    assert stored_bytes(weight) == 10 * 32 * 4
    assert stored_bytes(weight, 8) == 320 + 40
    assert stored_bytes(weight, 4) == 160 + 40
    assert stored_bytes(weight, keep=0.25) == 80 * 4 + 40
    assert stored_bytes(weight, 8, 0.5) == 160 + 40 + 40
    assert stored_bytes(torch.ones(1, 1), keep=0.5) == 4                     # the one weight stays: no map
