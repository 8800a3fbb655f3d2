"""Multi-head attention equals `nn.MultiheadAttention`, and its fused path equals its explicit one."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from library_twins import attention_pairs, copy_over, proof, ragged_mask, randomise, same, same_parameter_gradients
from small_cache import Cache
from torch import nn
from torch.nn import functional as F

from course_utils.attention import causal_mask, padding_mask
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.positional_encoding import POSITIONS, RotaryPositions, alibi_bias, make_positions

seeds = st.integers(0, 10**6)
lengths = st.integers(1, 6)


@pytest.mark.parametrize("kind", ["self", "padding", "causal", "cross"])
@proof
@given(batch=st.integers(1, 3), query_len=lengths, key_len=lengths, heads=st.integers(1, 4), d_head=st.integers(1, 6),
       with_bias=st.booleans(), need_weights=st.booleans(), seed=seeds)
def test_equals_the_library(kind, batch, query_len, key_len, heads, d_head, with_bias, need_weights, seed):
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(seed)
        d_model = heads * d_head
        ours = MultiHeadAttention(d_model, heads, projection_bias=with_bias).to(dtype)
        theirs = nn.MultiheadAttention(d_model, heads, bias=with_bias, batch_first=True, dtype=dtype)
        randomise(ours)
        our_parameters, their_parameters = copy_over(attention_pairs(ours, theirs))
        query = torch.randn(batch, query_len, d_model, dtype=dtype, requires_grad=True)
        inputs, mask, library = [query], None, {}
        key = value = query
        if kind == "padding":
            real = ragged_mask(batch, query_len)
            mask, library = padding_mask(real), {"key_padding_mask": ~real}  # theirs is True = left out
        elif kind == "causal":
            mask, library = causal_mask(query_len)[None, None], {"attn_mask": ~causal_mask(query_len)}
        elif kind == "cross":
            key, value = (torch.randn(batch, key_len, d_model, dtype=dtype, requires_grad=True) for _ in range(2))
            inputs += [key, value]
        result = ours(*inputs, mask=mask, need_weights=need_weights)
        expected, weights = theirs(query, key, value, average_attn_weights=False, **library)
        same(result.context, expected)
        if need_weights:
            same(result.weights, weights)
        else:
            assert result.weights is None
        if dtype == torch.float64:
            same_parameter_gradients(result.context, inputs, our_parameters, expected, inputs, their_parameters)


@proof
@given(batch=st.integers(1, 3), query_len=lengths, key_len=lengths, heads=st.integers(1, 4), seed=seeds,
       masked=st.booleans(), bias=st.sampled_from([None, "random", "alibi"]), turned=st.booleans())
def test_the_fused_path_equals_the_explicit_path(batch, query_len, key_len, heads, seed, masked, bias, turned):
    torch.manual_seed(seed)
    attention = MultiHeadAttention(heads * 4, heads)
    randomise(attention)
    query, memory = torch.randn(batch, query_len, heads * 4), torch.randn(batch, key_len, heads * 4)
    options = {"mask": torch.rand(batch, 1, query_len, key_len) < 0.6 if masked else None}
    if bias == "random":
        options["bias"] = torch.randn(heads, query_len, key_len)
    elif bias == "alibi":
        options["bias"] = alibi_bias(heads, query_len, key_len)
    if turned:
        options["rotary"] = RotaryPositions(4)
    results = []
    for need_weights in (True, False):
        context = attention(query, memory, **options, need_weights=need_weights).context
        results.append((context, torch.autograd.grad(context.square().sum(), list(attention.parameters()))))
    (explicit, explicit_gradients), (fused, fused_gradients) = results
    same(explicit, fused)
    for one, other in zip(explicit_gradients, fused_gradients):
        assert one.isfinite().all() and other.isfinite().all()
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_bias_and_rotary_change_the_answer():
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2), torch.randn(1, 5, 8)
    plain = attention(x).context
    assert (attention(x, bias=alibi_bias(2, 5)).context - plain).abs().max() > 1e-3
    assert (attention(x, rotary=RotaryPositions(4)).context - plain).abs().max() > 1e-3


@pytest.mark.parametrize("need_weights", [True, False])
def test_rotary_turns_split_queries_and_keys_and_no_values(need_weights):
    torch.manual_seed(0)
    attention, rotary = MultiHeadAttention(12, 3), RotaryPositions(4)
    x, memory = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
    query, key, value = attention.project(x, memory, memory)
    context = F.scaled_dot_product_attention(rotary(query), rotary(key), value)
    expected = attention.output_projection(attention.merge(context))
    same(attention(x, memory, rotary=rotary, need_weights=need_weights).context, expected)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("steps", [[1] * 6, [4, 1, 1], [2, 3, 1], [6]])
@pytest.mark.parametrize("name", POSITIONS)
def test_with_a_cache_a_text_read_in_pieces_gives_what_it_gives_whole(name, steps, need_weights):
    torch.manual_seed(0)
    attention, positions, x = MultiHeadAttention(8, 2).double(), make_positions(name, 8, 2).double(), torch.randn(2, 6, 8)
    randomise(attention)
    x, cache, pieces = positions.add(x.double()), Cache(), []
    whole = attention(x, mask=causal_mask(6)[None, None], bias=positions.bias(6), rotary=positions.rotate,
                      need_weights=need_weights)
    for size in steps:
        past, end = len(cache), len(cache) + size
        piece = attention(
            x[:, past:end], mask=causal_mask(size, end)[None, None], bias=positions.bias(size, end),
            rotary=positions.rotate, need_weights=need_weights, cache=cache,
        )
        pieces.append(piece.context)
        if need_weights:
            torch.testing.assert_close(piece.weights, whole.weights[:, :, past:end, :end])
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole.context, atol=1e-10, rtol=0)
    assert len(cache) == 6 and cache.key.shape == cache.value.shape == (2, 2, 6, 4)


@pytest.mark.parametrize("name", ["mask", "bias"])
def test_with_a_cache_masks_and_biases_are_for_all_keys(name):
    attention, cache, x = MultiHeadAttention(8, 2), Cache(), torch.randn(1, 3, 8)
    attention(x, cache=cache)
    given = torch.ones(1, 1, 3, 3) > 0 if name == "mask" else torch.zeros(1, 1, 3, 3)
    with pytest.raises(ValueError, match=rf"{name} has shape \(1, 1, 3, 3\) and the scores.*\(1, 2, 3, 6\)"):
        attention(x, cache=cache, **{name: given})
    assert len(cache) == 3                                                 # what was refused is not kept


def test_a_memory_is_projected_once_for_many_queries():
    torch.manual_seed(0)
    attention, x, memory = MultiHeadAttention(8, 2), torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    randomise(attention)
    mask = padding_mask(ragged_mask(2, 5))
    expected = attention(x, memory, mask=mask).context
    _, key, value = attention.project(memory, memory, memory)              # (batch, heads, memory, d_head)
    for i in range(3):
        query = attention.split(attention.query_projection(x[:, i : i + 1]))
        context = attention.attend(query, key, value, mask).context
        same(attention.output_projection(attention.merge(context)), expected[:, i : i + 1])


def test_split_gives_each_head_its_own_columns():
    batch, length, heads, d_head = 2, 5, 3, 4
    x = torch.arange(batch * length * heads * d_head).view(batch, length, heads * d_head).float()
    split = MultiHeadAttention(heads * d_head, heads).split(x)
    assert split.shape == (batch, heads, length, d_head)
    for h in range(heads):
        assert torch.equal(split[:, h], x[:, :, h * d_head : (h + 1) * d_head])


def test_merge_undoes_split():
    attention = MultiHeadAttention(12, 3)
    x = torch.randn(2, 5, 12)
    assert torch.equal(attention.merge(attention.split(x)), x)


def test_project_splits_the_three_projections():
    attention = MultiHeadAttention(12, 3)
    randomise(attention)
    query, key, value = torch.randn(2, 4, 12), torch.randn(2, 5, 12), torch.randn(2, 5, 12)
    projections = (attention.query_projection, attention.key_projection, attention.value_projection)
    for got, projection, x in zip(attention.project(query, key, value), projections, (query, key, value)):
        assert torch.equal(got, attention.split(projection(x)))


def test_the_value_is_the_key_and_the_key_is_the_query_unless_given():
    torch.manual_seed(0)
    attention, x, y = MultiHeadAttention(8, 2), torch.randn(1, 3, 8), torch.randn(1, 4, 8)
    assert torch.equal(attention(x).context, attention(x, x, x).context)
    assert torch.equal(attention(x, y).context, attention(x, y, y).context)
    assert not torch.allclose(attention(x, y).context, attention(x, y, y.flip(1)).context)


def test_the_number_of_parameters_does_not_depend_on_the_number_of_heads():
    for heads in (1, 2, 8):
        attention = MultiHeadAttention(16, heads)
        assert sum(p.numel() for p in attention.parameters()) == 4 * (16 * 16 + 16)
    assert sum(p.numel() for p in MultiHeadAttention(16, 4, projection_bias=False).parameters()) == 4 * 16 * 16


def test_the_output_projection_is_applied_last():
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    before = attention(x).context
    with torch.no_grad():
        attention.output_projection.weight.mul_(2)
        attention.output_projection.bias.fill_(1)
    torch.testing.assert_close(attention(x).context, 2 * before + 1)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_query_with_no_key_is_finite_and_carries_no_value(need_weights):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2), torch.randn(2, 3, 8, requires_grad=True)
    randomise(attention)
    mask = padding_mask(torch.tensor([[True, True, False], [False, False, False]]))
    context, weights = attention(x, mask=mask, bias=alibi_bias(2, 3), need_weights=need_weights)
    torch.testing.assert_close(context[1], attention.output_projection.bias.expand(3, 8))
    if need_weights:
        assert (weights[1] == 0).all()
    for gradient in torch.autograd.grad(context.square().sum(), [x, *attention.parameters()]):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_dropout_is_off_in_evaluation_and_on_in_training(need_weights):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2, attention_dropout=0.5), torch.randn(2, 6, 8)
    attention.eval()
    assert torch.equal(attention(x, need_weights=need_weights).context, attention(x, need_weights=need_weights).context)
    attention.train()
    first, second = (attention(x, need_weights=need_weights).context for _ in range(2))
    assert (first - second).abs().max() > 1e-3


@pytest.mark.parametrize(("d_model", "num_heads"), [(64, 5), (6, 13), (48, 7), (100, 30)])
def test_a_head_count_that_does_not_divide_names_one_that_does(d_model, num_heads):
    with pytest.raises(ValueError, match=f"d_model={d_model} is not divisible by num_heads={num_heads}") as error:
        MultiHeadAttention(d_model, num_heads)
    suggested = [int(n) for n in str(error.value).partition("; try ")[2].split(" or ")]
    assert suggested and all(d_model % n == 0 for n in suggested)


@pytest.mark.parametrize("num_heads", [0, -2])
def test_a_head_count_below_one_is_a_clear_error(num_heads):
    with pytest.raises(ValueError, match=f"num_heads={num_heads}"):
        MultiHeadAttention(8, num_heads)


# shapes that would broadcast to a wrong answer

ATTENTION = MultiHeadAttention(8, 2)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("shape", [(8,), (5, 8), (2, 3, 5, 8), (1, 2, 3, 5, 8)])
def test_an_input_without_a_batch_or_with_too_many_dimensions_is_refused(shape, need_weights):
    hint = r"write query\[None\]" if len(shape) == 2 else ""
    with pytest.raises(ValueError, match=rf"query has shape {re.escape(str(shape))}.*\(batch, length, d_model=8\).*{hint}"):
        ATTENTION(torch.randn(shape), need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(("shapes", "named"), [
    (((2, 5, 7), (2, 5, 8), (2, 5, 8)), r"query has shape \(2, 5, 7\).*d_model=8"),
    (((2, 5, 8), (2, 5, 16), (2, 5, 8)), r"key has shape \(2, 5, 16\).*d_model=8"),
    (((2, 5, 8), (2, 5, 8), (5, 8)), r"value has shape \(5, 8\).*write value\[None\]"),
    (((2, 5, 8), (3, 5, 8), (3, 5, 8)), "batches of 2, 3 and 3 texts"),
    (((1, 5, 8), (3, 5, 8), (3, 5, 8)), "batches of 1, 3 and 3 texts.*expand"),
    (((3, 5, 8), (3, 5, 8), (1, 5, 8)), "batches of 3, 3 and 1 texts"),
    (((2, 5, 8), (2, 4, 8), (2, 1, 8)), "4 keys and 1 values"),
])
def test_inputs_that_do_not_fit_each_other_are_named(shapes, named, need_weights):
    with pytest.raises(ValueError, match=named):
        ATTENTION(*(torch.randn(shape) for shape in shapes), need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("shape", [(4, 1, 1, 3), (1, 3, 1, 3), (1, 2, 2, 3), (1, 1, 3, 4), (1, 1, 1, 2)])
def test_a_mask_or_bias_never_enlarges_the_scores(shape, need_weights):
    x = torch.randn(1, 3, 8)
    for wrong in ({"mask": torch.ones(shape, dtype=torch.bool)}, {"bias": torch.zeros(shape)}):
        with pytest.raises(ValueError, match=rf"has shape {re.escape(str(shape))} and the scores.*\(1, 2, 3, 3\)"):
            ATTENTION(x, **wrong, need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("shape", [(3,), (3, 3), (2, 3, 3), (1, 1, 2, 3, 3)])
def test_a_mask_without_its_four_dimensions_is_refused_with_what_to_write(shape, need_weights):
    x = torch.randn(3, 3, 8)                                               # as many texts as words: (3, 3) could be either
    with pytest.raises(ValueError, match=r"four dimensions.*mask\[None, None\].*mask\[:, None\].*padding_mask\(mask\)"):
        ATTENTION(x, mask=torch.ones(shape, dtype=torch.bool), need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_bias_needs_its_heads(need_weights):
    x = torch.randn(3, 4, 8)
    with pytest.raises(ValueError, match=r"bias has shape \(4, 4\).*\(heads, query, key\).*bias\[None\]"):
        ATTENTION(x, bias=torch.zeros(4, 4), need_weights=need_weights)
    with pytest.raises(ValueError, match=r"bias has shape \(3, 4, 4\)"):   # a batch where the heads belong
        ATTENTION(x, bias=torch.zeros(3, 4, 4), need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_mask_is_boolean_and_a_bias_is_not_on_both_paths(need_weights):
    x = torch.randn(2, 3, 8)
    with pytest.raises(TypeError, match="mask has dtype torch.float32.*bias="):
        ATTENTION(x, mask=torch.ones(1, 1, 3, 3), need_weights=need_weights)
    with pytest.raises(TypeError, match="bias has dtype torch.bool.*mask="):
        ATTENTION(x, bias=torch.ones(1, 1, 3, 3, dtype=torch.bool), need_weights=need_weights)


@proof
@given(sizes=st.tuples(*[st.integers(1, 4)] * 4), ones=st.tuples(*[st.booleans()] * 4), seed=seeds)
def test_a_mask_may_have_ones_in_any_dimension(sizes, ones, seed):
    torch.manual_seed(seed)
    batch, heads, query_len, key_len = sizes
    attention = MultiHeadAttention(4 * heads, heads)
    mask = torch.rand([1 if one else n for n, one in zip(sizes, ones)]) < 0.7
    query, memory = torch.randn(batch, query_len, 4 * heads), torch.randn(batch, key_len, 4 * heads)
    expected = attention(query, memory, mask=mask.expand(sizes)).context
    for need_weights in (True, False):
        result = attention(query, memory, mask=mask, need_weights=need_weights)
        assert result.context.shape == query.shape
        same(result.context, expected)


# biases of minus infinity, and low precision

@proof
@given(batch=st.integers(1, 3), length=st.integers(1, 5), heads=st.integers(1, 3), masked=st.booleans(), seed=seeds)
def test_minus_infinity_in_a_bias_gives_the_same_with_and_without_weights(batch, length, heads, masked, seed):
    torch.manual_seed(seed)
    attention = MultiHeadAttention(heads * 4, heads).double()
    randomise(attention)
    x = torch.randn(batch, length, heads * 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(batch, heads, length, length, dtype=torch.float64)
    bias[torch.rand(bias.shape) < 0.3] = float("-inf")
    bias[0, 0, 0] = float("-inf")                                          # a query without a key
    bias.requires_grad_()
    mask = torch.rand(batch, 1, length, length) < 0.7 if masked else None
    found = []
    for need_weights in (True, False):
        result = attention(x, mask=mask, bias=bias, need_weights=need_weights)
        assert result.context.isfinite().all()
        if need_weights:
            assert (result.weights[0, 0, 0] == 0).all()
        tensors = [x, bias, *attention.parameters()]
        found.append((result.context, *torch.autograd.grad(result.context.square().sum(), tensors)))
    for explicit, fused in zip(*found):
        assert explicit.isfinite().all() and fused.isfinite().all()
        torch.testing.assert_close(explicit, fused, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("need_weights", [True, False])
def test_in_half_precision_all_options_work_and_come_near_float32(dtype, need_weights):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(16, 2), torch.randn(2, 5, 16)
    options = {"mask": padding_mask(ragged_mask(2, 5)), "rotary": RotaryPositions(8), "need_weights": need_weights}
    expected = attention(x, bias=alibi_bias(2, 5), **options).context
    got, weights = attention.to(dtype)(x.to(dtype), bias=alibi_bias(2, 5), **options)  # a bias keeps its own dtype
    assert got.dtype == dtype and (weights is None or weights.dtype == dtype)
    torch.testing.assert_close(got.float(), expected, atol=0.03, rtol=0.03)


@pytest.mark.parametrize(("dtype", "bias"), [
    (torch.float16, torch.full((1, 1, 5), -1e5)),                          # beyond float16
    (torch.float16, 1000 + 0.3 * torch.arange(5)[None, None]), (torch.bfloat16, 1000 + 0.3 * torch.arange(5)[None, None]),
    (torch.float32, torch.full((1, 1, 5), -1e39, dtype=torch.float64)),
    (torch.float32, torch.full((1, 1, 5), torch.finfo(torch.float32).min)),
])
def test_a_bias_of_a_wider_type_means_the_same_with_and_without_the_weights(dtype, bias):
    torch.manual_seed(7)
    attention, x = MultiHeadAttention(8, 2).to(dtype), torch.randn(2, 5, 8).to(dtype)
    for mask in (None, torch.tensor([True, True, False, True, True])[None, None, None]):
        fused, explicit = (attention(x, mask=mask, bias=bias, need_weights=need).context for need in (False, True))
        torch.testing.assert_close(fused, explicit, atol=5e-3 if dtype != torch.bfloat16 else 3e-2, rtol=1e-2)


@pytest.mark.parametrize(("options", "said"), [
    (dict(num_heads=2.0), "num_heads=2.0; use a whole number"), (dict(num_heads="2"), "num_heads='2'; use a whole number"),
    (dict(d_model=0), "d_model=0; use a whole number from 1"), (dict(d_model=8.0), "d_model=8.0; use a whole number"),
    (dict(attention_dropout=-0.1), "attention_dropout=-0.1; use a number from 0"),
    (dict(attention_dropout=float("nan")), "attention_dropout=nan; use a number from 0"),
])
def test_an_option_that_cannot_be_is_refused_when_the_module_is_made(options, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        MultiHeadAttention(**{"d_model": 8, "num_heads": 2} | options)


@pytest.mark.parametrize("name", ["query", "key", "value", "mask", "bias"])
def test_what_is_no_tensor_is_refused_by_its_name(name):
    with pytest.raises(TypeError, match=f"{name} is of type list; it must be a tensor"):
        MultiHeadAttention(8, 2)(**{"query": torch.zeros(2, 5, 8)} | {name: [[1.0]]})
