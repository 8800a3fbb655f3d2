"""Multi-head attention equals `nn.MultiheadAttention`, and its fused path equals its explicit one."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lesson_cells import cells_of
from library_twins import (
    attention_pairs,
    copy_over,
    proof,
    ragged_mask,
    randomise,
    same,
    same_gradients,
    same_parameter_gradients,
)
from small_cache import Cache
from torch import nn
from torch.nn import functional as F

from course_utils.attention import causal_mask, padding_mask, scaled_dot_product_attention
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


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_dropout_is_off_in_evaluation_and_on_in_training(need_weights):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2, attention_dropout=0.5), torch.randn(2, 6, 8)
    attention.eval()
    assert torch.equal(attention(x, need_weights=need_weights).context, attention(x, need_weights=need_weights).context)
    attention.train()
    first, second = (attention(x, need_weights=need_weights).context for _ in range(2))
    assert (first - second).abs().max() > 1e-3


# shapes that would broadcast to a wrong answer

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


# shapes that would broadcast to a wrong answer, and other things that don't fit

def mask_of(*shape):
    return {"mask": torch.ones(shape, dtype=torch.bool)}


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(("shapes", "options", "error", "facts"), [
    ([(3, 8)], {}, ValueError, ["query", "(3, 8)", "(batch, length, d_model=8)", "query[None]"]),
    ([(1, 2, 3, 8)], {}, ValueError, ["query", "(1, 2, 3, 8)"]),
    ([(2, 5, 8), (2, 5, 16)], {}, ValueError, ["key", "(2, 5, 16)", "d_model=8"]),
    ([(2, 5, 8), (2, 5, 8), (5, 8)], {}, ValueError, ["value", "(5, 8)", "value[None]"]),
    ([(1, 5, 8), (3, 5, 8)], {}, ValueError, ["1, 3 and 3", "expand"]),
    ([(3, 5, 8), (3, 5, 8), (1, 5, 8)], {}, ValueError, ["3, 3 and 1"]),
    ([(2, 5, 8), (2, 4, 8), (2, 1, 8)], {}, ValueError, ["4 keys", "1 values"]),
    *(([(1, 3, 8)], options, ValueError, [next(iter(options)), str(shape), "(1, 2, 3, 3)"])
      for shape in ((4, 1, 1, 3), (1, 3, 1, 3), (1, 2, 2, 3), (1, 1, 1, 2))
      for options in (mask_of(*shape), {"bias": torch.zeros(shape)})),
    ([(3, 3, 8)], mask_of(3, 3), ValueError, ["(3, 3)", "mask[None, None]", "mask[:, None]", "padding_mask(mask)"]),
    ([(3, 3, 8)], mask_of(3, 3, 3), ValueError, ["(3, 3, 3)", "four dimensions"]),
    ([(3, 4, 8)], {"bias": torch.zeros(4, 4)}, ValueError, ["bias", "(4, 4)", "(heads, query, key)", "bias[None]"]),
    ([(3, 4, 8)], {"bias": torch.zeros(3, 4, 4)}, ValueError, ["bias", "(3, 4, 4)"]),    # a batch where the heads belong
    ([(2, 3, 8)], {"mask": torch.ones(1, 1, 3, 3)}, TypeError, ["mask", "torch.float32", "bias="]),
    ([(2, 3, 8)], {"bias": mask_of(1, 1, 3, 3)["mask"]}, TypeError, ["bias", "torch.bool", "mask="]),
    *(([(2, 5, 8)], {name: [[1.0]]}, TypeError, [name, "list", "a tensor"]) for name in ("key", "value", "mask", "bias")),
])
def test_what_does_not_fit_is_refused_on_both_paths_with_what_to_write(shapes, options, error, facts, need_weights):
    with pytest.raises(error) as raised:
        MultiHeadAttention(8, 2)(*map(torch.randn, shapes), **options, need_weights=need_weights)
    assert all(fact in str(raised.value) for fact in facts), raised.value


@pytest.mark.parametrize(("options", "facts"), [
    (dict(d_model=48, num_heads=7), ["d_model=48", "num_heads=7", "try 6 or 8"]), (dict(num_heads=0), ["num_heads=0"]),
    (dict(num_heads=2.0), ["num_heads=2.0", "whole number"]), (dict(d_model=0), ["d_model=0", "from 1"]),
    (dict(attention_dropout=-0.1), ["attention_dropout=-0.1", "from 0"]),
    (dict(attention_dropout=float("nan")), ["attention_dropout=nan"]),
])
def test_an_option_that_cannot_be_is_refused_when_the_module_is_made(options, facts):
    with pytest.raises(ValueError) as raised:
        MultiHeadAttention(**{"d_model": 8, "num_heads": 2} | options)
    assert all(fact in str(raised.value) for fact in facts), raised.value


# the class of notebook 05, from its cell alone

@pytest.fixture(scope="module")
def taught() -> type:
    names = {"nn": nn, "scaled_dot_product_attention": scaled_dot_product_attention}
    exec(cells_of("05_multi_head_attention")["export-multi-head-attention"], names)
    return names["MultiHeadAttention"]


@proof
@given(batch=st.integers(1, 3), length=lengths, heads=st.integers(1, 4), d_head=st.integers(1, 5), seed=seeds,
       kind=st.sampled_from(["no mask", "padding", "causal"]))
def test_the_notebooks_class_is_the_packages_with_the_same_names(taught, batch, length, heads, d_head, seed, kind):
    torch.manual_seed(seed)
    mask = {"no mask": None, "padding": padding_mask(ragged_mask(batch, length)),
            "causal": causal_mask(length)[None, None]}[kind]
    for dtype in (torch.float32, torch.float64):
        package, notebook = (made(heads * d_head, heads).to(dtype) for made in (MultiHeadAttention, taught))
        randomise(package)
        notebook.load_state_dict(package.state_dict())                     # strict: the names are the same, and no others
        x = torch.randn(batch, length, heads * d_head, dtype=dtype, requires_grad=True)
        expected = package(x, mask=mask, need_weights=True)
        context, weights = notebook(x, mask)
        same(context, expected.context)
        same(weights, expected.weights)
    same_gradients(context, [x, *notebook.parameters()], expected.context, [x, *package.parameters()])


def test_a_subclass_of_the_notebooks_class_may_change_one_step(taught):
    rotary = RotaryPositions(4)

    class Turned(taught):
        def project(self, x):
            query, key, value = super().project(x)
            return rotary(query), rotary(key), value

    torch.manual_seed(0)
    package, turned, x = MultiHeadAttention(12, 3), Turned(12, 3), torch.randn(2, 5, 12)
    turned.load_state_dict(package.state_dict())
    same(turned(x)[0], package(x, rotary=rotary).context)


def test_the_notebooks_class_refuses_a_number_of_heads_that_does_not_divide_the_width(taught):
    with pytest.raises(RuntimeError, match="unflatten"):
        taught(12, 5)(torch.randn(1, 3, 12))
