"""Scaled dot-product attention equals the library's, and the masks mean what they say."""

import math

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lesson_cells import cells_of
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


def test_an_example_worked_by_hand():
    # scores 0 and 2 / sqrt(4) = 1, so the weights are 1/(1+e) and e/(1+e)
    query, key = torch.tensor([[1.0, 1.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
    result = scaled_dot_product_attention(query, key, torch.tensor([[10.0], [20.0]]))
    e = torch.e
    torch.testing.assert_close(result.weights, torch.tensor([[1 / (1 + e), e / (1 + e)]]))
    torch.testing.assert_close(result.context, torch.tensor([[(10 + 20 * e) / (1 + e)]]))


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


def test_causal_mask_lets_a_query_see_itself_and_what_came_before_aligned_at_the_bottom_right():
    assert causal_mask(3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]] and causal_mask(3).dtype == torch.bool
    assert causal_mask(2, 5).int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert causal_mask(3, 2).int().tolist() == [[0, 0], [1, 0], [1, 1]]


def test_padding_mask_hides_padding_from_every_query_and_head():
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert padding_mask(mask).shape == (2, 1, 1, 3)
    assert torch.equal(padding_mask(mask).expand(2, 4, 5, 3)[:, 3, 4], mask)
    with pytest.raises(TypeError, match=r"torch.int64.*attention_mask.bool\(\)"):
        padding_mask(mask.long())
    with pytest.raises(ValueError, match=r"\(3,\).*\(batch, seq_len\).*attention_mask\[None\]"):
        padding_mask(mask[0])


@pytest.mark.parametrize(("change", "error", "facts"), [
    ({"key": torch.zeros(2, 5, 5)}, ValueError, ["d_k=4", "d_k=5"]),
    ({"value": torch.zeros(2, 6, 4)}, ValueError, ["5 keys", "6 values"]),
    ({"mask": torch.zeros(3, 5)}, TypeError, ["mask", "torch.float32", "torch.bool, True = may attend", "bias="]),
    ({"bias": torch.ones(3, 5).bool()}, TypeError, ["bias", "torch.bool", "mask="]),
    ({"mask": torch.ones(2, 5).bool()}, ValueError, ["mask", "(2, 5)", "(2, 3, 5)", "mask[:, None, :]"]),
    ({"mask": torch.ones(1, 2, 3, 5).bool()}, ValueError, ["mask", "(1, 2, 3, 5)"]),
    ({"bias": torch.zeros(4, 3, 5)}, ValueError, ["bias", "(4, 3, 5)", "(2, 3, 5)"]),
    ({"query": torch.ones(2, 3, 4).long()}, TypeError, ["query", "torch.int64", "query.float()"]),
    ({"key": [[1.0]]}, TypeError, ["key", "list", "torch.as_tensor(key)"]),
    ({"query": torch.ones(4)}, ValueError, ["query", "(4,)", "query[None]"]),
    ({"mask": torch.ones(3, 5).bool().numpy()}, TypeError, ["mask", "ndarray"]),
    ({"bias": 0.5}, TypeError, ["bias", "float"]),
])
def test_what_does_not_fit_is_refused_by_name(change, error, facts):
    arguments = {"query": torch.ones(2, 3, 4), "key": torch.ones(2, 5, 4), "value": torch.ones(2, 5, 4)} | change
    with pytest.raises(error) as raised:
        scaled_dot_product_attention(**arguments)
    assert all(fact in str(raised.value) for fact in facts), raised.value


@pytest.fixture(scope="module")
def taught() -> dict:
    """What the cells of notebook 04 define: attention, first without and then with a mask, and the causal mask."""
    cells, names = cells_of("04_attention"), {"torch": torch, "math": math}
    exec(cells["bare"].partition("context, weights = attention(opinion")[0], names)
    names["first"] = names["attention"]
    exec(cells["export-attention"], names)
    exec(cells["export-masks"].partition("def read")[0], names)
    return names


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-6), (torch.float64, 1e-10)])
def test_the_notebooks_attention_is_the_packages_with_the_same_gradients(taught, dtype, close, masked):
    torch.manual_seed(0)
    inputs = random_qkv(2, 3, 4, 5, 6, 7, dtype)
    mask = (torch.arange(5) < torch.tensor([5, 3])[:, None, None, None]) if masked else None    # (batch, 1, 1, key)
    package = scaled_dot_product_attention(*inputs, mask)
    versions = [taught["attention"](*inputs, mask=mask)] + ([] if masked else [taught["first"](*inputs)])
    for lesson in versions:
        for ours, theirs in zip(lesson, package, strict=True):
            torch.testing.assert_close(ours, theirs, atol=close, rtol=0)
        direction = torch.randn_like(package.context)
        gradients, expected = (torch.autograd.grad((context * direction).sum(), inputs, retain_graph=True)
                               for context in (lesson[0], package.context))
        for ours, theirs in zip(gradients, expected, strict=True):
            torch.testing.assert_close(ours, theirs, atol=10 * close if dtype == torch.float32 else close, rtol=0)


def test_the_notebooks_causal_mask_is_the_packages(taught):
    assert all(torch.equal(taught["causal_mask"](n), causal_mask(n)) for n in (1, 4, 7))


def test_at_every_width_the_variance_of_a_score_is_the_width():
    torch.manual_seed(0)
    for d_k in (2, 16, 128, 512):
        scores = torch.randn(2000, 1, d_k) @ torch.randn(2000, 16, d_k).transpose(-2, -1)
        assert abs(scores.var() / d_k - 1) < 0.1


def test_of_the_notebooks_fillings_only_the_last_two_give_the_row_of_the_sentence_alone():
    cells = cells_of("04_attention")
    names = {"torch": torch, "math": math, "F": F, "table": lambda rows, columns, numbers: pd.DataFrame(
        numbers.numpy(), index=rows, columns=columns)}
    for cell in ("tiny", "export-attention", "padded", "masks-wrong-code"):
        exec(cells[cell], names)
    off = (names["rows"][:5] - names["rows"][5]).abs().amax(dim=1)
    assert off[3:].max() < 1e-6 and off[:3].min() > 0.1


def test_the_notebooks_bias_lets_both_opinions_look_at_not_and_without_a_bias_none_would(taught):
    cells = cells_of("04_attention")
    names = dict(taught) | {"table": lambda *_: None, "W_k": torch.tensor([[0.0], [1.0], [0.0]])}
    for cell in ("tiny", "query-bias"):
        exec(cells[cell], names)
    both = names["both"]                        # (text, query, key): 'was not dull' and 'was not moving'
    assert (both[:, 2, 1] - 0.965).abs().max() < 0.001 and (both[:, 1] - 1 / 3).abs().max() < 1e-6
    torch.manual_seed(0)
    texts = names["short_texts"]
    for W_q, W_k in torch.randn(200, 2, 3, 2):
        weights = taught["attention"](texts @ (5 * W_q), texts @ W_k, texts)[1][:, 2]    # (text, key)
        assert (weights[:, 1] - weights[:, 0]).min() < 1e-6         # one of the two prefers 'was'
