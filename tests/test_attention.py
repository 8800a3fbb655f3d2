"""Scaled dot-product attention equals the library's, and the masks mean what they say."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from library_twins import proof, same, same_gradients
from torch.nn import functional as F

from course_utils.attention import causal_mask, padding_mask, scaled_dot_product_attention

small = st.integers(1, 5)
seeds = st.integers(0, 10**6)


def random_qkv(batch, heads, query_len, key_len, d_k, d_value, dtype=torch.float32):
    shapes = ((query_len, d_k), (key_len, d_k), (key_len, d_value))
    return [torch.randn(batch, heads, *shape, dtype=dtype, requires_grad=True) for shape in shapes]


@proof
@given(batch=small, heads=small, query_len=small, key_len=small, d_k=st.integers(1, 16), d_value=small, seed=seeds,
       masked=st.booleans(), biased=st.booleans())
def test_equals_the_library_with_any_mask_and_bias(batch, heads, query_len, key_len, d_k, d_value, seed, masked, biased):
    torch.manual_seed(seed)
    for dtype in (torch.float32, torch.float64):
        query, key, value = random_qkv(batch, heads, query_len, key_len, d_k, d_value, dtype)
        # rows with no key at all come up often here
        mask = torch.rand(batch, 1, query_len, key_len) < 0.5 if masked else None
        bias = torch.randn(heads, query_len, key_len, dtype=dtype, requires_grad=True) if biased else None
        library_mask = mask
        if biased:
            library_mask = bias.expand(batch, heads, query_len, key_len)
            if masked:
                library_mask = library_mask.masked_fill(~mask, float("-inf"))
        ours = scaled_dot_product_attention(query, key, value, mask, bias).context
        theirs = F.scaled_dot_product_attention(query, key, value, library_mask)
        same(ours, theirs)
        if dtype == torch.float64:
            tensors = [query, key, value, *([bias] if biased else [])]
            same_gradients(ours, tensors, theirs, tensors)


@proof
@given(batch=small, length=st.integers(1, 9), d_k=small, seed=seeds)
def test_equals_the_library_when_causal(batch, length, d_k, seed):
    torch.manual_seed(seed)
    query, key, value = random_qkv(batch, 2, length, length, d_k, 3, torch.float64)
    ours = scaled_dot_product_attention(query, key, value, causal_mask(length)).context
    theirs = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    same(ours, theirs)
    same_gradients(ours, [query, key, value], theirs, [query, key, value])


def test_any_leading_dimensions_will_do():
    torch.manual_seed(0)
    query, key, value = (torch.randn(*shape) for shape in ((4, 6), (5, 6), (5, 3)))
    same(scaled_dot_product_attention(query, key, value).context, F.scaled_dot_product_attention(query, key, value))
    one_query = scaled_dot_product_attention(query[:1], key.expand(7, 5, 6), value.expand(7, 5, 3))
    assert one_query.context.shape == (7, 1, 3)
    assert one_query.weights.shape == (7, 1, 5)


def test_an_example_worked_by_hand():
    # scores 0 and 2 / sqrt(4) = 1, so the weights are 1/(1+e) and e/(1+e)
    query, key = torch.tensor([[1.0, 1.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    result = scaled_dot_product_attention(query, key, torch.tensor([[10.0], [20.0]]))
    e = torch.e
    torch.testing.assert_close(result.weights, torch.tensor([[1 / (1 + e), e / (1 + e)]]))
    torch.testing.assert_close(result.context, torch.tensor([[(10 + 20 * e) / (1 + e)]]))


def test_weights_sum_to_one_over_the_keys_and_make_the_context():
    torch.manual_seed(1)
    query, key, value = random_qkv(2, 3, 4, 6, 5, 7)
    mask = torch.rand(2, 1, 4, 6) < 0.6
    mask[..., 0] = True
    context, weights = scaled_dot_product_attention(query, key, value, mask)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 4))
    assert (weights.sum(-2) - 1).abs().max() > 0.1
    assert (weights[~mask.expand_as(weights)] == 0).all()
    torch.testing.assert_close(weights @ value, context)


def test_a_query_with_no_key_gets_zeros_and_finite_gradients():
    torch.manual_seed(2)
    query, key, value = random_qkv(2, 2, 3, 4, 5, 6)
    mask = torch.ones(2, 1, 3, 4, dtype=torch.bool)
    mask[0, :, 1] = False                                                  # one row of one review
    mask[1] = False                                                        # a whole review
    context, weights = scaled_dot_product_attention(query, key, value, mask)
    assert (context[0, :, 1] == 0).all() and (weights[1] == 0).all() and (context[1] == 0).all()
    assert (context[0, :, 0] != 0).any()
    for gradient in torch.autograd.grad(context.square().sum() + weights.sum(), [query, key, value]):
        assert gradient.isfinite().all()


def test_huge_scores_stay_finite():
    query = torch.full((1, 2, 4), 1e18)
    context, weights = scaled_dot_product_attention(query, query, torch.ones(1, 2, 3))
    assert context.isfinite().all() and weights.isfinite().all()


@pytest.mark.parametrize("size", [40.0, 300.0, 3000.0])
def test_half_precision_gives_numbers_wherever_the_library_does(size):
    torch.manual_seed(5)
    for dtype in (torch.float16, torch.bfloat16):
        query, key, value = (x.to(dtype) for x in (torch.randn(2, 3, 4, 64) * size, torch.randn(2, 3, 5, 64) * size,
                                                   torch.randn(2, 3, 5, 7)))
        assert (query.double() @ key.double().transpose(-2, -1)).abs().max() > 10_000
        context, weights = scaled_dot_product_attention(query, key, value)
        library = F.scaled_dot_product_attention(query, key, value)
        assert context.dtype == weights.dtype == dtype and library.isfinite().all()
        torch.testing.assert_close(context, library, atol=0.02, rtol=0.02)


@proof
@given(query_len=small, key_len=small, seed=seeds, trained=st.booleans())
def test_minus_infinity_in_a_bias_does_what_it_does_in_the_library(query_len, key_len, seed, trained):
    torch.manual_seed(seed)
    query, key, value = random_qkv(2, 2, query_len, key_len, 3, 4, torch.float64)
    bias = torch.randn(2, query_len, key_len, dtype=torch.float64)
    bias[torch.rand(bias.shape) < 0.4] = float("-inf")
    bias[0, 0] = float("-inf")                                             # a query with no key
    bias.requires_grad_(trained)
    ours = scaled_dot_product_attention(query, key, value, bias=bias)
    theirs = F.scaled_dot_product_attention(query, key, value, bias)
    same(ours.context, theirs)
    assert (ours.weights[:, 0, 0] == 0).all() and (ours.context[:, 0, 0] == 0).all()
    tensors = [query, key, value, *([bias] if trained else [])]
    same_gradients(ours.context, tensors, theirs, tensors)


def test_dropout_acts_on_the_context_and_leaves_the_returned_weights():
    torch.manual_seed(3)
    query, key, _ = random_qkv(1, 1, 30, 20, 4, 4)
    value = torch.eye(20)                                                  # so the context is the dropped weights
    context, weights = scaled_dot_product_attention(query, key, value, dropout_p=0.25)
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 1, 30))
    dropped = context == 0
    assert 0.1 < dropped.float().mean() < 0.4
    torch.testing.assert_close(context[~dropped], weights[~dropped] / 0.75)


def test_wrong_arguments_are_named():
    x = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match="d_k=4 and key has d_k=5"):
        scaled_dot_product_attention(x, torch.zeros(2, 3, 5), x)
    with pytest.raises(ValueError, match="3 keys and 6 values"):
        scaled_dot_product_attention(x, x, torch.zeros(2, 6, 4))
    with pytest.raises(TypeError, match="torch.float32.*torch.bool, True = may attend.*bias="):
        scaled_dot_product_attention(x, x, x, torch.zeros(3, 3))


@pytest.mark.parametrize(("scores", "shape"), [
    ((1, 4, 3), (5, 1, 3)), ((2, 4, 3), (4, 4, 3)), ((2, 4, 3), (2, 3)), ((2, 4, 3), (1, 2, 4, 3)), ((4, 3), (2, 4, 3)),
    ((1, 2, 4, 3), (5, 1, 1, 3)), ((2, 4, 1), (2, 4, 3)), ((2, 4, 3), (2,)),
])
def test_a_mask_or_bias_that_would_enlarge_the_scores_is_refused(scores, shape):
    query, key = torch.zeros(*scores[:-1], 6), torch.zeros(*scores[:-2], scores[-1], 6)
    hint = r"write {}\[:, " if len(scores) > 2 else "each size must be 1 or"
    for name, wrong in (("mask", torch.ones(shape, dtype=torch.bool)), ("bias", torch.zeros(shape))):
        with pytest.raises(ValueError, match=rf"{name} has shape {re.escape(f'{shape} and')}.*{hint.format(name)}"):
            scaled_dot_product_attention(query, key, key, **{name: wrong})


def test_the_error_of_a_mask_says_what_works():
    x, real = torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"write mask\[:, None, :\]"):
        scaled_dot_product_attention(x, x, x, real)
    assert scaled_dot_product_attention(x, x, x, real[:, None, :]).context.shape == (2, 3, 4)


def test_a_boolean_bias_is_refused():
    x = torch.zeros(2, 3, 4)
    with pytest.raises(TypeError, match="bias has dtype torch.bool.*mask="):
        scaled_dot_product_attention(x, x, x, bias=torch.ones(3, 3, dtype=torch.bool))


def test_causal_mask_lets_a_query_see_itself_and_what_came_before():
    assert causal_mask(3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(3).dtype == torch.bool


def test_causal_mask_is_aligned_at_the_bottom_right():
    assert causal_mask(2, 5).int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert causal_mask(3, 2).int().tolist() == [[0, 0], [1, 0], [1, 1]]


def test_under_a_causal_mask_a_later_token_changes_nothing_before_it():
    torch.manual_seed(4)
    x = torch.randn(1, 6, 4)
    changed = x.clone()
    changed[0, 3] += 1
    before, after = (scaled_dot_product_attention(t, t, t, causal_mask(6)).context for t in (x, changed))
    assert torch.equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).any(-1).all()


def test_padding_mask_hides_padding_from_every_query_and_head():
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert padding_mask(mask).shape == (2, 1, 1, 3)
    assert torch.equal(padding_mask(mask).expand(2, 4, 5, 3)[:, 3, 4], mask)
    with pytest.raises(TypeError, match=r"torch.int64.*attention_mask.bool\(\)"):
        padding_mask(mask.long())


@pytest.mark.parametrize("shape", [(3,), (2, 1, 3)])
def test_the_padding_of_a_single_text_needs_its_batch(shape):
    with pytest.raises(ValueError, match=r"attention_mask has shape .*\(batch, seq_len\).*attention_mask\[None\]"):
        padding_mask(torch.ones(shape, dtype=torch.bool))


def test_the_lowest_float_as_a_bias_closes_nothing_and_the_weights_still_sum_to_one():
    torch.manual_seed(6)
    query, key, value = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 4)
    lowest = torch.full((3, 5), torch.finfo(torch.float32).min)            # how other libraries close a key
    for mask in (None, torch.eye(3, 5, dtype=torch.bool), torch.tensor([True, True, False, False, False])):
        context, weights = scaled_dot_product_attention(query, key, value, mask, lowest)
        bias = lowest if mask is None else lowest.masked_fill(~mask, float("-inf"))
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 3))
        torch.testing.assert_close(context, F.scaled_dot_product_attention(query, key, value, bias))


@pytest.mark.parametrize(("change", "error", "said"), [
    ({"query": torch.ones(3, 4).long()}, TypeError, "query has dtype torch.int64; it must hold floats: use query.float()"),
    ({"value": torch.ones(5, 4).bool()}, TypeError, "value has dtype torch.bool; it must hold floats"),
    ({"key": [[1.0]]}, TypeError, "key is of type list; it must be a tensor: use torch.as_tensor(key)"),
    ({"query": torch.ones(4)}, ValueError, "query has shape (4,); it must be (..., length, size). For one vector write"),
    ({"value": torch.ones(5)}, ValueError, "value has shape (5,)"),
    ({"mask": [[True]]}, TypeError, "mask is of type list; it must be a tensor"),
    ({"mask": torch.ones(3, 5).bool().numpy()}, TypeError, "mask is of type ndarray; it must be a tensor"),
    ({"bias": 0.5}, TypeError, "bias is of type float; it must be a tensor"),
])
def test_what_is_no_tensor_of_floats_is_refused_by_name(change, error, said):
    arguments = {"query": torch.ones(3, 4), "key": torch.ones(5, 4), "value": torch.ones(5, 4)} | change
    with pytest.raises(error, match=re.escape(said)):
        scaled_dot_product_attention(**arguments)
