"""Positions: tables by their formulas, rotations, slopes, and what they do to a model."""

import dataclasses
import json
import math

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from lesson_cells import cells_of
from library_twins import proof

from course_utils.attention import padding_mask
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.embeddings import masked_mean
from course_utils.exercises.catalogue import answers_to
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.positional_encoding import (
    POSITIONS,
    AlibiPositions,
    LearnedPositions,
    Positions,
    RotaryPositions,
    SinusoidalPositions,
    alibi_bias,
    alibi_slopes,
    make_positions,
    sinusoidal_table,
)
from course_utils.tokenization import WordTokenizer
from course_utils.training.saved_models import read_model


@proof
@given(position=st.integers(0, 299), pair=st.integers(0, 15), half=st.integers(1, 16),
       base=st.sampled_from([10000.0, 100.0]))
def test_sinusoidal_values_follow_the_formula(position, pair, half, base):
    d_model, i = 2 * half, pair % half
    row = sinusoidal_table(300, d_model, base)[position]
    angle = position / base ** (2 * i / d_model)
    assert row[2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
    assert row[2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_an_odd_width_is_a_clear_error():
    with pytest.raises(ValueError, match="d_model=7 is odd.*use 8"):
        SinusoidalPositions(7)
    with pytest.raises(ValueError, match="d_head=3 is odd"):
        RotaryPositions(3)


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_positions_are_added_from_the_offset_on(kind):
    positions, x = kind(6, max_len=11), torch.randn(2, 4, 6)
    torch.testing.assert_close(positions(x) - x, positions.table[:4].expand(2, 4, 6))
    torch.testing.assert_close(positions(x, offset=7) - x, positions.table[7:11].expand(2, 4, 6))


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_a_text_that_is_too_long_is_a_clear_error(kind):
    positions = kind(6, max_len=11)
    assert positions(torch.zeros(1, 11, 6)).shape == (1, 11, 6)
    for length, offset in ((12, 0), (4, 8)):
        with pytest.raises(ValueError, match=f"{length} tokens from position {offset}.*max_len=11.*truncate"):
            positions(torch.zeros(1, length, 6), offset=offset)


def turned_in_float64(x, offset):
    """Rotary positions by the formula, in float64: x (..., length, d_head)."""
    position = torch.arange(offset, offset + x.shape[-2], dtype=torch.float64)[:, None]
    angle = position * 10000.0 ** -(torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


ways = [lambda m: m.bfloat16(), lambda m: m.half(), lambda m: m.to(torch.bfloat16), lambda m: m.float(),
        lambda m: m.bfloat16().float(), lambda m: m.half().double(), lambda m: m.double()]


@pytest.mark.parametrize("position", [0, 5000])
@pytest.mark.parametrize("way", range(len(ways)))
def test_rotary_angles_keep_their_precision_whatever_the_dtype_of_the_model(way, position):
    torch.manual_seed(0)
    holder = torch.nn.Sequential(torch.nn.Linear(1, 1), RotaryPositions(16))  # a parameter tells the dtype of the whole
    holder = ways[way](holder)
    x = torch.randn(1, 2, 3, 16).to(holder[0].weight.dtype)
    turned = holder[1](x, offset=position)
    allowed = {torch.bfloat16: 0.03, torch.float16: 0.004, torch.float32: 2e-3, torch.float64: 1e-10}[x.dtype]
    assert turned.dtype == x.dtype
    torch.testing.assert_close(turned.double(), turned_in_float64(x, position), atol=allowed, rtol=0)


def test_rotary_in_float32_at_early_positions_is_exact_to_float32():
    x = torch.randn(1, 1, 60, 16)
    torch.testing.assert_close(RotaryPositions(16)(x).double(), turned_in_float64(x, 0), atol=2e-5, rtol=0)


@pytest.mark.parametrize("positions", POSITIONS)
def test_the_names_in_a_saved_model_are_those_of_earlier_versions(positions):
    names = [name for name in small_model(positions).state_dict() if "positions" in name or "rotary" in name]
    assert names == (["positions.table"] if positions in ("sinusoidal", "learned") else [])


def test_a_model_saved_with_rotary_frequencies_still_loads_and_says_the_same(tmp_path):
    model, tokenizer = small_model("rotary"), WordTokenizer(["<pad>", "<unk>", *map(chr, range(97, 123)), "but", "not"])
    frequency = 10000.0 ** -(torch.arange(0, 8, 2) / 8)

    def saved_with(**others):
        safetensors.torch.save_file({**model.state_dict(), **others}, tmp_path / "model.safetensors")
        (tmp_path / "config.json").write_text(json.dumps(dataclasses.asdict(model.config)))
        tokenizer.save(tmp_path / "vocabulary.json")
        return read_model(tmp_path, SelfAttentionClassifier, ClassifierConfig).model

    ids = torch.tensor([[5, 9, 14, 7, 22, 3, 18]])
    assert torch.equal(saved_with(**{"rotary.frequency": frequency})(ids).logits, model(ids).logits)
    with pytest.raises(ValueError, match="Unexpected key.*rotary.speed"):
        saved_with(**{"rotary.speed": frequency})


def test_rotary_float32_angles_are_those_of_the_buffer_that_earlier_versions_kept():
    for d_head in range(2, 66, 2):
        frequency = 10000.0 ** -(torch.arange(0, d_head, 2) / d_head)
        expected = torch.arange(7, 307)[:, None] * frequency
        assert torch.equal(RotaryPositions(d_head).angles(torch.zeros(300, d_head), offset=7), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("kind", [SinusoidalPositions, RotaryPositions])
def test_positions_that_are_not_trained_keep_the_dtype_of_their_input(kind, dtype):
    assert kind(8)(torch.randn(1, 5, 8, dtype=dtype)).dtype == dtype


@pytest.mark.parametrize("kind", [SinusoidalPositions, LearnedPositions])
def test_a_negative_offset_is_refused(kind):
    with pytest.raises(ValueError, match="offset=-1; positions count from 0"):
        kind(6)(torch.zeros(1, 1, 6), offset=-1)


def test_alibi_slopes_for_a_power_of_two_and_between():
    assert alibi_slopes(8).tolist() == [2.0**-n for n in range(1, 9)]
    assert alibi_slopes(4).tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8]
    assert alibi_slopes(1).tolist() == [2.0**-8]
    # those of four heads, then every other one of those of eight
    assert alibi_slopes(6).tolist() == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]


def test_alibi_bias_is_minus_slope_times_distance():
    bias = alibi_bias(2, 4)
    assert bias.shape == (2, 4, 4)
    for head, slope in enumerate(alibi_slopes(2).tolist()):
        for query in range(4):
            for key in range(4):
                assert bias[head, query, key].item() == -slope * abs(query - key)


def small_model(positions: str) -> SelfAttentionClassifier:
    torch.manual_seed(5)
    config = ClassifierConfig(vocab_size=30, d_model=16, num_heads=2, d_ff=16, num_layers=2, max_len=16, positions=positions)
    model = SelfAttentionClassifier(config).eval()
    if positions == "learned":                                             # as large as training would make them
        torch.nn.init.normal_(model.positions.table)
    return model


@pytest.mark.parametrize("order", [(6, 5, 4, 3, 2, 1, 0), (3, 0, 6, 2, 5, 1, 4)])
def test_without_positions_permuted_words_give_permuted_outputs_and_the_same_logits(order):
    model, ids, order = small_model("none"), torch.tensor([[5, 9, 14, 7, 22, 3, 18]]), list(order)
    mask = padding_mask(torch.ones(1, 7, dtype=torch.bool))
    with torch.no_grad():
        outputs, permuted = (model.encoder(model.embed(i), mask).x for i in (ids, ids[:, order]))
        torch.testing.assert_close(outputs[:, order], permuted, atol=1e-5, rtol=0)
        torch.testing.assert_close(model(ids).logits, model(ids[:, order]).logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("positions", [SinusoidalPositions(8, 10), LearnedPositions(8, 10), RotaryPositions(8)])
@pytest.mark.parametrize(("x", "error", "said"), [
    (torch.zeros(2, 5, 1), ValueError, "=1; these positions were made for d_.*=8"),      # would broadcast
    (torch.zeros(2, 5, 4), ValueError, "=4; these positions were made for d_.*=8"),
    (torch.zeros(8), ValueError, r"x has shape \(8,\); it must be \(..., length, d_.*=8\)"),
    (torch.zeros(2, 5, 8).long(), TypeError, "x has dtype torch.int64; it must hold floats: use x.float()"),
])
def test_positions_refuse_vectors_that_they_were_not_made_for(positions, x, error, said):
    with pytest.raises(error, match=said):
        positions(x)


@pytest.mark.parametrize("num_heads", [0, -1, 2.5])
def test_alibi_says_how_many_heads_there_can_be(num_heads):
    with pytest.raises(ValueError, match=f"num_heads={num_heads}; use a whole number from 1"):
        alibi_bias(num_heads, 3)


# one interface

KINDS = {"none": Positions, "sinusoidal": SinusoidalPositions, "learned": LearnedPositions, "rotary": RotaryPositions,
         "alibi": AlibiPositions}


def test_positions_are_made_by_their_names():
    assert list(POSITIONS) == list(KINDS)
    for name, kind in KINDS.items():
        made = make_positions(name, d_model=12, num_heads=3, max_len=7)
        assert type(made) is kind and isinstance(made, Positions)
    assert make_positions("rotary", 12, 3, 7).d_head == 4 and make_positions("alibi", 12, 3, 7).num_heads == 3
    assert len(make_positions("learned", 12, 3, 7).table) == len(make_positions("sinusoidal", 12, 3, 7).table) == 7
    with pytest.raises(ValueError, match="positions='sine'; use one of none, sinusoidal, learned, rotary, alibi"):
        make_positions("sine", 12, 3, 7)


@pytest.mark.parametrize("name", POSITIONS)
def test_each_kind_does_one_thing_and_nothing_elsewhere(name):
    torch.manual_seed(0)
    positions, words, queries = make_positions(name, 8, 2, 20), torch.randn(2, 5, 8), torch.randn(2, 2, 5, 4)
    assert torch.equal(positions.add(words, 3), words) == (name not in ("sinusoidal", "learned"))
    assert torch.equal(positions.rotate(queries, 3), queries) == (name != "rotary")
    assert (positions.bias(5) is None) == (name != "alibi")
    if name == "rotary":
        assert torch.equal(positions(queries, 3), positions.rotate(queries, 3))
    else:
        assert torch.equal(positions(words, 3), positions.add(words, 3))


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("offset", [1, 4])
def test_a_sequence_continued_at_an_offset_is_the_end_of_the_whole(name, offset):
    torch.manual_seed(0)
    positions, words, queries = make_positions(name, 8, 2, 20), torch.randn(2, 9, 8), torch.randn(2, 2, 9, 4)
    torch.testing.assert_close(positions.add(words[:, offset:], offset), positions.add(words)[:, offset:])
    torch.testing.assert_close(positions.rotate(queries[:, :, offset:], offset), positions.rotate(queries)[:, :, offset:])
    if name == "alibi":                                                    # the last query stands at the last key
        assert torch.equal(positions.bias(9 - offset, 9), positions.bias(9)[:, offset:])


# the notebook's cells beside the package

@pytest.fixture(scope="module")
def taught() -> dict:
    """What the cells of notebook 06 define, from these cells and the names that they import."""
    cells = cells_of("06_positional_encoding")
    names = {"math": math, "torch": torch, "nn": torch.nn, "MultiHeadAttention": MultiHeadAttention,
             "padding_mask": padding_mask, "masked_mean": masked_mean, "print": lambda *words: None,
             "turn_pairs": answers_to("6.4").reference}
    for cell in ("small-classifier", "export-sinusoidal", "export-learned", "export-rotary", "export-alibi"):
        exec(cells[cell], names)
    return names


def same_gradients(ours, theirs, x, upstream) -> None:
    """Two functions of x give the same, and the same gradient, to 1e-10 in float64."""
    results, gradients = [], []
    for function in (ours, theirs):
        leaf = x.clone().requires_grad_()
        result = function(leaf)
        results.append(result)
        gradients += torch.autograd.grad(result, leaf, upstream)
    torch.testing.assert_close(*results, atol=1e-10, rtol=0)
    torch.testing.assert_close(*gradients, atol=1e-10, rtol=0)


@pytest.fixture
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_the_notebooks_table_is_the_packages(taught, float64):
    torch.testing.assert_close(taught["sinusoidal_table"](90, 12), sinusoidal_table(90, 12), atol=1e-10, rtol=0)


def test_the_notebooks_table_in_float32_is_the_packages_to_float32(taught):
    torch.testing.assert_close(taught["sinusoidal_table"](64, 32), sinusoidal_table(64, 32), atol=1e-5, rtol=0)


def test_the_notebooks_learned_table_is_the_packages_with_the_same_name(taught, float64):
    torch.manual_seed(0)
    package, notebook = LearnedPositions(6, 9), taught["LearnedPositions"](6, 9)
    assert abs(notebook.table.std() - package.table.std()) < 0.01
    notebook.load_state_dict(package.state_dict())
    same_gradients(notebook, package, torch.randn(2, 4, 6), torch.randn(2, 4, 6))


@pytest.mark.parametrize("offset", [0, 17])
def test_the_notebooks_rotation_is_the_packages(taught, float64, offset):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 20, 8)
    same_gradients(lambda x: taught["rotate"](x, offset), lambda x: RotaryPositions(8)(x, offset), x, torch.randn_like(x))


@pytest.mark.parametrize("kind", ["rotary", "alibi"])
def test_the_notebooks_attention_is_the_packages_with_such_positions(taught, float64, kind):
    torch.manual_seed(0)
    positions, package = make_positions(kind, 8, 2), MultiHeadAttention(8, 2)
    notebook = (answers_to("6.6").reference if kind == "rotary" else taught["AlibiAttention"])(8, 2)
    notebook.load_state_dict(package.state_dict())
    x, mask = torch.randn(3, 5, 8), padding_mask(torch.arange(5) < torch.tensor([[5], [2], [4]]))
    same_gradients(lambda x: notebook(x, mask=mask).context,
                   lambda x: package(x, mask=mask, bias=positions.bias(5), rotary=positions.rotate).context, x,
                   torch.randn(3, 5, 8))


@pytest.mark.parametrize("num_heads", [1, 2, 8])
def test_the_notebooks_slopes_are_the_packages(taught, num_heads):
    assert torch.equal(taught["alibi_bias"](num_heads, 7), alibi_bias(num_heads, 7))


def test_the_notebooks_classifier_ties_on_twins_and_parts_them_with_rotary(taught):
    ids, order = torch.tensor([[4, 7, 2, 9, 5]]), [3, 1, 4, 0, 2]
    mask = torch.ones_like(ids).bool()
    for attention, ties in ((MultiHeadAttention, True), (answers_to("6.6").reference, False)):
        torch.manual_seed(0)
        model = taught["SmallClassifier"](12, attention)
        apart = (model(ids, mask) - model(ids[:, order], mask)).abs().max()
        assert (apart < 1e-5) == ties
