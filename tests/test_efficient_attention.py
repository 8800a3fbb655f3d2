"""Attention in tiles and in windows is attention; what it keeps, what a cache holds, and what notebook 18 builds."""

import ast
import json
import math
import subprocess
import sys
import warnings

import pytest
import torch
from lesson_cells import cells_of
from small_code_models import transformer
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from course_utils.efficient_attention import (
    cache_bytes,
    causal,
    everywhere,
    merge,
    tile,
    tiled_attention,
    window,
    window_attention,
)
from course_utils.exercises.catalogue import answers_to
from course_utils.files.memory import peak_mb
from course_utils.results import FOLDER


def qkv(*leading, queries=37, keys=37, d_k=8, d_value=5, dtype=torch.float64, spread=1.0):
    """Queries, keys and values that want gradients."""
    shapes = ((queries, d_k), (keys, d_k), (keys, d_value))
    made = [torch.randn(*leading, *shape, dtype=dtype) for shape in shapes]
    made[0] *= spread
    return [one.requires_grad_() for one in made]


def mask_of(rule, queries, keys):
    return rule(torch.arange(queries)[:, None], torch.arange(keys))


def gradients(context, inputs, seed=1):
    cotangent = torch.randn(context.shape, dtype=context.dtype, generator=torch.Generator().manual_seed(seed))
    return torch.autograd.grad(context, inputs, cotangent, retain_graph=True)


def nobody_for_3(i, j):
    return (j <= i + 20) & (i != 3)


REAL = torch.tensor([[True] * 37, [True] * 20 + [False] * 17])
RULES = {"everywhere": everywhere, "causal": causal, "a row without keys": nobody_for_3,
         "padding": lambda i, j: REAL[:, j][:, None, None] & (i == i)}     # (batch, 1, query, key)


@pytest.mark.parametrize("size", [1, 8, 37, 256])
@pytest.mark.parametrize("rule", RULES)
def test_tiles_are_the_librarys_attention_with_its_gradients(rule, size):
    torch.manual_seed(0)
    inputs = qkv(2, 3)
    ours = tiled_attention(*inputs, RULES[rule], size)
    library = F.scaled_dot_product_attention(*inputs, mask_of(RULES[rule], 37, 37))
    torch.testing.assert_close(ours, library, atol=1e-10, rtol=0)
    for mine, theirs in zip(gradients(ours, inputs), gradients(library, inputs), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-10, rtol=0)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 60), (60, 5), (1, 33)])
def test_lengths_that_no_tile_divides(queries, keys):
    torch.manual_seed(0)
    inputs = qkv(queries=queries, keys=keys)
    ours, library = tiled_attention(*inputs, size=16), F.scaled_dot_product_attention(*inputs)
    torch.testing.assert_close(ours, library, atol=1e-10, rtol=0)
    for mine, theirs in zip(gradients(ours, inputs), gradients(library, inputs), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-10, rtol=0)


@pytest.mark.parametrize("spread", [40, 400])
def test_scores_of_a_hundred_and_of_a_thousand(spread):
    torch.manual_seed(0)
    inputs = qkv(2, spread=spread)
    assert (inputs[0] @ inputs[1].mT / math.sqrt(8)).abs().max() > 100
    ours = tiled_attention(*inputs, causal, 8)
    library = F.scaled_dot_product_attention(*inputs, is_causal=True)
    torch.testing.assert_close(ours, library, atol=1e-10, rtol=0)
    for mine, theirs in zip(gradients(ours, inputs), gradients(library, inputs), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-9, rtol=1e-9)


def test_a_query_without_keys_gets_zeros_and_sends_no_gradient():
    torch.manual_seed(0)
    inputs = qkv(2)
    context = tiled_attention(*inputs, nobody_for_3, 8)
    assert (context[:, 3] == 0).all() and context.isfinite().all()
    d_query, d_key, d_value = gradients(context, inputs)
    assert (d_query[:, 3] == 0).all() and all(one.isfinite().all() for one in (d_query, d_key, d_value))


def test_8192_tokens_in_float32_are_the_librarys_to_a_millionth():
    torch.manual_seed(0)
    inputs = [torch.randn(1, 1, 8192, 64) for _ in range(3)]
    torch.testing.assert_close(tiled_attention(*inputs), F.scaled_dot_product_attention(*inputs), atol=1e-6, rtol=0)


def test_what_tiles_keep_for_the_backward_pass_grows_with_the_length_alone():
    def kept(attend, n):
        sizes = []
        inputs = qkv(queries=n, keys=n, dtype=torch.float32)
        with torch.autograd.graph.saved_tensors_hooks(lambda one: sizes.append(one.numel()) or one, lambda one: one):
            attend(*inputs)
        return sum(sizes)

    assert kept(tiled_attention, 800) == 2 * kept(tiled_attention, 400) == 800 * (8 + 8 + 5 + 5 + 1)
    explicit = [kept(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, n) for n in (400, 800)]
    assert explicit[1] > 3 * explicit[0]


def test_merging_is_the_softmax_of_both_whatever_the_order():
    torch.manual_seed(0)
    query, key, value = (one.detach() for one in qkv(2, queries=4, keys=12))
    allowed = torch.rand(4, 12) < 0.6
    allowed[1, :8] = False
    allowed[2] = False                                                     # no key at all
    whole = tile(query, key, value, allowed)
    parts = [tile(query, key[:, j], value[:, j], allowed[:, j]) for j in (slice(0, 4), slice(4, 8), slice(8, 12))]
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        first, second, third = (parts[place] for place in order)
        for together in (merge(*merge(*first, *second), *third), merge(*first, *merge(*second, *third))):
            for ours, expected in zip(together, whole, strict=True):
                torch.testing.assert_close(ours, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("n", "before", "after", "size"), [
    (50, 3, 5, 8), (50, 0, 0, 7), (13, 20, 20, 4), (33, 4, 0, 16), (33, 0, 6, 50), (1, 2, 2, 3)])
def test_a_window_is_the_mask_that_says_the_same_with_its_gradients(n, before, after, size):
    torch.manual_seed(0)
    inputs = qkv(2, queries=n, keys=n)
    mask = mask_of(lambda i, j: (i - before <= j) & (j <= i + after), n, n)
    ours, library = window_attention(*inputs, before, after, size), F.scaled_dot_product_attention(*inputs, mask)
    torch.testing.assert_close(ours, library, atol=1e-10, rtol=0)
    for mine, theirs in zip(gradients(ours, inputs), gradients(library, inputs), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-10, rtol=0)
    in_tiles = tiled_attention(*inputs, lambda i, j: (i - before <= j) & (j <= i + after), size)
    torch.testing.assert_close(in_tiles, library, atol=1e-10, rtol=0)


def test_a_windows_slices_have_the_keys_that_somebody_sees_and_no_others():
    for start, stop, n, before, after in ((0, 4, 30, 5, 2), (10, 14, 30, 5, 2), (26, 30, 30, 5, 2), (0, 3, 3, 9, 9)):
        first, last, allowed = window(start, stop, n, before, after)
        i, j = torch.arange(n)[:, None], torch.arange(n)
        whole = ((i - before <= j) & (j <= i + after))[start:stop]
        assert torch.equal(allowed, whole[:, first:last]) and allowed.any(dim=0).all()
        assert whole.sum() == allowed.sum()


def test_the_work_of_a_window_grows_with_the_length_and_is_that_of_its_slices():
    def work(n):
        with FlopCounterMode(display=False) as counter:
            window_attention(*(torch.randn(1, n, 64) for _ in range(3)), 64, 64)
        return counter.get_total_flops()

    inside = work(4096) - work(2048)
    assert inside == work(8192 - 2048) - work(4096) == 2 * 2 * 2048 * (128 + 64 + 64) * 64


@pytest.mark.parametrize(("change", "error", "facts"), [
    ({"query": torch.ones(2, 3, 4)}, ValueError, ["d_k=4", "d_k=8"]),
    ({"key": torch.ones(2, 5, 8, dtype=torch.long)}, TypeError, ["float"]),
    ({"key": torch.ones(5, 8), "value": torch.ones(5, 8)}, ValueError, ["(2,)", "()", "expand"]),
    ({"size": 0}, ValueError, ["size=0", "256"]),
    ({"rule": lambda i, j: (j <= i).float()}, TypeError, ["torch.float32", "torch.bool"]),
])
def test_wrong_arguments_of_tiles_get_words(change, error, facts):
    arguments = {"query": torch.ones(2, 3, 8), "key": torch.ones(2, 5, 8), "value": torch.ones(2, 5, 8)} | change
    with pytest.raises(error) as raised:
        tiled_attention(**arguments)
    assert all(fact in str(raised.value) for fact in facts), raised.value


@pytest.mark.parametrize(("change", "facts"), [
    ({"before": -1}, ["before=-1", "from 0"]), ({"after": 1.5}, ["after=1.5"]), ({"size": 0}, ["size=0", "from 1"]),
    ({"key": torch.ones(4, 8), "value": torch.ones(4, 8)}, ["3 queries", "4 keys"])])
def test_wrong_arguments_of_a_window_get_words(change, facts):
    arguments = {"query": torch.ones(3, 8), "key": torch.ones(3, 8), "value": torch.ones(3, 8), "before": 1, "after": 1}
    with pytest.raises(ValueError) as raised:
        window_attention(**arguments | change)
    assert all(fact in str(raised.value) for fact in facts), raised.value


def test_the_bytes_of_a_cache_are_those_that_a_language_model_keeps():
    model = transformer(max_len=64).model
    caches = model.new_caches()
    with torch.no_grad():
        model(torch.randint(1, 20, (1, 23)), caches=caches)
    held = sum(part.nbytes for cache in caches for part in (cache.key, cache.value))
    heads, d_head = caches[0].key.shape[1], caches[0].key.shape[-1]
    assert held == cache_bytes(23, len(caches), heads, heads, d_head, 4)


def test_a_window_limits_a_cache_and_fewer_key_heads_divide_it():
    assert cache_bytes(100, 2, 8, 8, 4, 2) == 4 * cache_bytes(100, 2, 8, 2, 4, 2) == 2 * 2 * 8 * 4 * 2 * 100
    assert cache_bytes(100, 2, 8, 8, 4, 2, window=30) == cache_bytes(30, 2, 8, 8, 4, 2)
    assert cache_bytes(10, 2, 8, 8, 4, 2, window=30) == cache_bytes(10, 2, 8, 8, 4, 2)


def test_the_peak_of_a_process_rises_with_what_it_holds_and_begins_anew():
    code = ("from course_utils.files.memory import peak_mb\nbefore = peak_mb()\nheld = bytearray(10) * 15_000_000\n"
            "print(before, peak_mb())")
    held = bytearray(10) * 30_000_000                                      # in the parent: not the child's
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(float, done.stdout.split())
    assert 140 < after - before < 170 and before < peak_mb() and len(held)


def test_flex_attention_uncompiled_is_our_window():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, 256, 16) for _ in range(3)]
    mask = create_block_mask(lambda batch, head, i, j: (i - 20 <= j) & (j <= i + 9), B=None, H=None, Q_LEN=256, KV_LEN=256,
                             device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                                    # that it isn't compiled
        flex = flex_attention(*inputs, block_mask=mask)
    torch.testing.assert_close(flex, window_attention(*inputs, 20, 9), atol=1e-5, rtol=0)


# notebook 18's own functions, with the course's answers where a learner's stand

@pytest.fixture(scope="module")
def taught() -> dict:
    """What the cells of notebook 18 define."""
    cells = cells_of("18_efficient_attention")
    names = {name: answers_to(number).reference for name, number in
             (("merge", "18.1"), ("window", "18.2"), ("cache_bytes", "18.3"))}
    names |= {"torch": torch, "math": math, "F": F, "positions": torch.arange(4), "table": lambda *_: None, "tokens": None,
              "json": json, "subprocess": subprocess, "sys": sys}
    for cell in ("rules", "forward", "function", "window-rule", "window-attention"):
        exec(cells[cell], names)
    return names


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-6), (torch.float64, 1e-10)])
def test_the_notebooks_tiles_are_the_packages_with_the_same_gradients(taught, dtype, close):
    torch.manual_seed(0)
    for rule in (everywhere, causal, nobody_for_3, RULES["padding"]):
        inputs = qkv(2, 3, dtype=dtype)
        ours, package = taught["tiled_attention"](*inputs, rule, 16), tiled_attention(*inputs, rule, 16)
        torch.testing.assert_close(ours, package, atol=close, rtol=0)
        for mine, theirs in zip(gradients(ours, inputs), gradients(package, inputs), strict=True):
            torch.testing.assert_close(mine, theirs, atol=10 * close if dtype == torch.float32 else close, rtol=0)


def test_the_notebooks_window_is_the_packages(taught):
    torch.manual_seed(0)
    inputs = qkv(2, queries=70, keys=70)
    for before, after, size in ((3, 5, 8), (0, 4, 16), (90, 90, 128)):
        ours = taught["window_attention"](*inputs, before, after, size)
        torch.testing.assert_close(ours, window_attention(*inputs, before, after, size), atol=1e-10, rtol=0)


def test_the_courses_answers_are_the_packages_functions(taught):
    torch.manual_seed(0)
    query, key, value = (one.detach() for one in qkv(queries=4, keys=8))
    halves = [tile(query, key[j], value[j], torch.ones(4, 4, dtype=torch.bool)) for j in (slice(0, 4), slice(4, 8))]
    for ours, package in zip(taught["merge"](*halves[0], *halves[1]), merge(*halves[0], *halves[1]), strict=True):
        assert torch.equal(ours, package)
    assert taught["window"](3, 9, 20, 4, 1)[:2] == window(3, 9, 20, 4, 1)[:2] == (0, 10)
    assert taught["cache_bytes"](100, 2, 8, 4, 16, 2, 30) == cache_bytes(100, 2, 8, 4, 16, 2, 30)


def test_where_no_process_can_be_started_the_notebook_says_so_and_goes_on_with_stored_numbers(taught, capsys):
    cells = cells_of("18_efficient_attention")
    names = dict(taught) | {"FOLDER": FOLDER}
    stored = next(node for node in ast.parse(cells["imports-course"]).body if getattr(node, "name", "") == "stored")
    exec(ast.unparse(stored), names)
    exec(cells["script"], names)
    exec(cells["measure"], names)

    def refused(*arguments, **options):
        raise PermissionError("not allowed here")

    names["subprocess"] = type("Refusing", (), {"run": staticmethod(refused),
                                                "CalledProcessError": subprocess.CalledProcessError})
    ways = {way: names["measure"](way) for way in (*names["WAYS"], )}
    assert capsys.readouterr().out.count("couldn't be measured here (not allowed here); these are stored numbers") == 3
    ways |= {way: names["stored"]()[way] for way in ("tiles", "window")}
    assert all(list(found) == [128, 512, 2048, 8192] for found in ways.values())
    assert ways["explicit"][8192][1] > 20 * ways["tiles"][8192][1]
    assert ways["fused"][8192][0] > 4 * ways["window"][8192][0] and ways["explicit"][8192][0] > 8 * ways["window"][8192][0]
