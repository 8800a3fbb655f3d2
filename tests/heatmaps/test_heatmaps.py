"""What figures of attention must show: the right axes, one scale, honest sums, any token, the same bytes."""

import hashlib
import io
import os
import subprocess
import sys
import warnings

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from matplotlib import mathtext  # noqa: E402
from matplotlib.collections import QuadMesh  # noqa: E402
from matplotlib.patches import Rectangle  # noqa: E402
from PIL import Image  # noqa: E402

from course_utils.figures import DIFFERENCE_MAP, WEIGHT_MAP, contrast, ink_on, lettering, luminance  # noqa: E402
from course_utils.figures.text import display_token, text_width, wrap_text  # noqa: E402
from course_utils.heatmaps import (  # noqa: E402
    alt_text,
    plot_attention,
    plot_attention_heads,
    save_figure,
    shared_colorbar,
    token_strip,
    use_style,
)
from course_utils.heatmaps.views import make_view  # noqa: E402

WORDS = ("the film was not dull but a moving portrait of two brothers and nobody left before the end of it so we "
         "stayed").split()
AWKWARD = ["<br />", "$x_1$", r"\frac{a}{b}", "_a_b_", "100%", "\N{ROCKET}\N{GRINNING FACE}", "שלום", "مرحبا", "a\nb",
           "\t", "", "x" * 200, "$", "$$", "\\", "\x00", "\ud800", "\u202e", "\u0301", "中文", " the", "  "]


@pytest.fixture(autouse=True)
def quiet_and_tidy(monkeypatch):
    """Every warning is an error (a missing glyph, a deprecated call), and no figure outlives its test."""
    for name in ("COURSE_STYLE", "COURSE_OUTPUTS"):
        monkeypatch.delenv(name, raising=False)
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("error")
        yield
    plt.close("all")


def softmax(*shape, seed=0):
    values = np.exp(1.5 * np.random.default_rng(seed).normal(size=shape))
    return values / values.sum(-1, keepdims=True)


def mesh(ax):
    return next(drawn for drawn in ax.collections if isinstance(drawn, QuadMesh))


def labels(ticks):
    return [tick.get_text() for tick in ticks]


def printed(ax):
    """(row, column) -> the number printed there."""
    return {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in ax.texts if t.get_text() != "⋮"
            and not isinstance(t, mpl.text.Annotation)}


def boxes(ax):
    """The texts of a strip, without the scale's."""
    return [t.get_text() for t in ax.texts]


# ---------------------------------------------------------------- orientation and scale


def test_rows_are_queries_and_columns_are_keys_on_a_matrix_that_is_not_square():
    weights = np.zeros((3, 7))
    weights[0, 6] = weights[1, 2] = weights[2, 0] = 1
    ax = plot_attention(torch.tensor(weights), ["der", "Film", "war"], key_tokens=WORDS[:7])
    assert labels(ax.get_yticklabels()) == ["der", "Film", "war"]
    assert labels(ax.get_xticklabels()) == WORDS[:7]
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("query (attends from)", "key (attended to)")
    assert np.array_equal(mesh(ax).get_array().reshape(3, 7), weights)
    assert printed(ax)[0, 6] == "1.00" and printed(ax)[2, 0] == "1.00" and printed(ax)[0, 0] == "0"
    # The first query stands at the top: its label and its cells are higher on the page than the last one's.
    assert ax.transData.transform((0, 0.5))[1] > ax.transData.transform((0, 2.5))[1]


def test_a_weight_is_darker_than_a_smaller_one_and_zero_is_white():
    for colour_map in (WEIGHT_MAP, mpl.colors.LinearSegmentedColormap.from_list("half", DIFFERENCE_MAP(range(128, 256)))):
        lightness = [luminance(colour_map(x)) for x in np.linspace(0, 1, 65)]
        assert all(a > b for a, b in zip(lightness, lightness[1:], strict=False))
    assert mpl.colors.to_hex(WEIGHT_MAP(0.0)) == "#ffffff"


def test_numbers_contrast_with_every_colour_of_both_maps():
    for colour_map in (WEIGHT_MAP, DIFFERENCE_MAP):
        worst = min(contrast(ink_on(colour), colour) for colour in colour_map(np.linspace(0, 1, 256)))
        assert worst >= 4.5


def test_type_on_the_middle_tones_has_a_halo_far_from_its_ink():
    for colour in [*WEIGHT_MAP(np.linspace(0, 1, 256)), *DIFFERENCE_MAP(np.linspace(0, 1, 256))]:
        looks = lettering(colour, 12)
        assert looks["color"] == ink_on(colour)
        touching = looks["path_effects"][0]._gc["foreground"] if "path_effects" in looks else colour
        assert contrast(looks["color"], touching) >= 6.5


def test_printed_numbers_use_the_ink_that_their_cell_asks_for():
    weights = np.array([[0.95, 0.05], [0.5, 0.5]])
    ax = plot_attention(weights, ["a", "b"])
    inks = {t.get_text(): t.get_color() for t in ax.texts}
    assert inks["0.95"] == "#ffffff" and inks["0.05"] == "#000000"


def test_all_heads_share_one_scale_and_one_bar():
    weights = softmax(2, 3, 5, 5)
    weights[1, 2, 0] = [0, 0, 0, 0, 1]
    fig, axes = plot_attention_heads(weights, WORDS[:5])
    assert axes.shape == (2, 3)
    assert {mesh(ax).get_clim() for ax in axes.flat} == {(0.0, 1.0)}
    assert len(fig.axes) == 6 + 1
    assert np.allclose(mesh(axes[1, 0]).get_array().reshape(5, 5), weights[1, 0])
    assert [ax.get_title(loc="left") for ax in axes[1]] == ["layer 1, head 0", "layer 1, head 1", "layer 1, head 2"]


def test_heads_of_one_layer_come_back_in_the_order_of_the_tensor():
    weights = softmax(5, 3, 7)
    fig, axes = plot_attention_heads(torch.tensor(weights), WORDS[:3], key_tokens=WORDS[3:10], titles=list("vwxyz"))
    assert axes.shape == (5,)
    for head, ax in enumerate(axes):
        assert np.allclose(mesh(ax).get_array().reshape(3, 7), weights[head])
        assert ax.get_title(loc="left") == "vwxyz"[head]


def test_the_bar_states_both_ends_and_an_arrow_shows_that_weights_lie_beyond():
    ax = plot_attention(softmax(6, 6), WORDS[:6], vmax=0.3)
    bar = ax.figure.axes[1]
    assert labels(bar.get_yticklabels())[0] == "0" and labels(bar.get_yticklabels())[-1] == "0.3"
    assert bar._colorbar.extend == "max"
    assert mesh(ax).get_clim() == (0.0, 0.3)


def test_a_difference_has_a_symmetric_scale_and_its_negative_cells_are_marked():
    difference = softmax(14, 14) - softmax(14, 14, seed=1)
    ax = plot_attention(difference, WORDS[:14], kind="difference")
    low, high = mesh(ax).get_clim()
    assert low == -high and high >= np.abs(difference).max()
    dashes = ax.collections[-1].get_offsets()
    below = {(row + 0.5, column + 0.5) for row, column in np.argwhere(difference <= -0.05 * high)}
    assert {(y, x) for x, y in dashes} == below
    small = plot_attention(difference[:4, :4], WORDS[:4], kind="difference")
    assert printed(small)[0, 0] == f"{difference[0, 0]:+.2f}".replace("-", "−")


def test_a_difference_that_rounds_to_zero_has_no_sign():
    ax = plot_attention([[0.004, -0.004], [0.2, -0.2]], ["a", "b"], kind="difference")
    assert [printed(ax)[place] for place in ((0, 0), (0, 1), (1, 0), (1, 1))] == ["0.00", "0.00", "+0.20", "−0.20"]
    assert "+0.004" in alt_text(ax)  # the text has the third decimal


def test_numbers_are_printed_up_to_twelve_tokens_and_not_beyond():
    assert len(printed(plot_attention(softmax(12, 12), WORDS[:12]))) == 144
    assert not printed(plot_attention(softmax(13, 13), WORDS[:13]))
    assert not printed(plot_attention(softmax(4, 4), WORDS[:4], values=False))
    with pytest.raises(ValueError, match="max_tokens=12"):
        plot_attention(softmax(13, 13), WORDS[:13], values=True)


def test_axes_that_are_given_are_drawn_on_and_returned():
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    assert plot_attention(softmax(4, 4), WORDS[:4], ax=left, colorbar=False) is left
    assert plot_attention(softmax(4, 4), WORDS[:4], ax=right) is right
    assert len(fig.axes) == 3
    assert token_strip(WORDS[:4], softmax(4), ax=fig.add_axes((0, 0, 1, 0.2))) in fig.axes


def test_the_note_of_a_cut_text_takes_no_room_from_the_cells_of_axes_that_are_given():
    fig, ax = plt.subplots(layout="constrained")
    plot_attention(softmax(20, 20), [f"token {i}" for i in range(20)], max_tokens=14, ax=ax)
    fig.draw_without_rendering()
    cells, bar = (part.get_position() for part in fig.axes)
    assert bar.x0 - cells.x1 < 0.1 and cells.width > 0.6


def drawn_pair(**options):
    fig, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
    for seed, ax in enumerate(axes):
        plot_attention(softmax(6, 6, seed=seed), WORDS[:6], colorbar=False, ax=ax, **({"vmax": 1} | options))
    return fig, axes


def test_several_axes_on_one_scale_take_one_bar():
    fig, axes = drawn_pair()
    axes[1].set_ylabel("")
    inked = [text.get_fontsize() for text in axes[0].texts]
    bar = shared_colorbar(axes)
    assert len(fig.axes) == 3 and fig.axes[2] is bar.ax
    assert (bar.vmin, bar.vmax) == (0, 1) and bar.ax.get_ylabel() == "attention weight"
    assert [ax.get_ylabel() for ax in axes] == ["query (attends from)", ""]
    assert {mesh(ax).get_clim() for ax in axes} == {(bar.vmin, bar.vmax)}
    assert bar.ax.get_window_extent().x0 > axes[1].get_window_extent().x1
    for ax in axes:
        cell = ax.get_window_extent().width / 6
        assert all(text.get_window_extent().width < cell for text in ax.texts)
        assert all(text.get_fontsize() <= before for text, before in zip(ax.texts, inked))
    assert alt_text(fig).count("Heatmap") == 2 and "Colour scale from 0 to 1" in alt_text(fig)


def test_a_shared_bar_takes_a_name_lists_grids_and_one_axes_and_shows_what_is_cut():
    fig, axes = plt.subplots(2, 2)
    for i, ax in enumerate(axes.flat):
        plot_attention(softmax(5, 5, seed=i), WORDS[:5], vmax=0.5, colorbar=False, ax=ax)
    bar = shared_colorbar(axes, label="share of $x$")
    assert bar.ax.get_ylabel() == "share of $x$" and bar.extend == "max"
    ax = plot_attention(softmax(4, 4), WORDS[:4], colorbar=False)
    assert shared_colorbar([ax]).extend == "neither" and shared_colorbar(ax).ax.figure is ax.figure


@pytest.mark.parametrize(("make", "words"), [
    (lambda: [], ["no axes"]),
    (lambda: [plt.figure().add_subplot()], ["axes[0]", "plot_attention", "colorbar=False"]),
    (lambda: [plot_attention(np.eye(2), ["a", "b"], vmax=v, colorbar=False) for v in (1, 1)], ["one figure"]),
    (lambda: [plot_attention(np.eye(2), ["a", "b"], vmax=v, colorbar=False, ax=ax) for v, ax in
              zip((1, 0.5), plt.subplots(1, 2)[1])], ["0 to 1", "0 to 0.5", "vmax="]),
    (lambda: [plot_attention(np.eye(2), ["a", "b"], kind=kind, vmax=1, colorbar=False, ax=ax) for kind, ax in
              zip(("weights", "difference"), plt.subplots(1, 2)[1])], ["difference from -1 to 1", "one scale"]),
])
def test_a_shared_bar_asks_for_one_scale_and_one_figure(make, words):
    axes = make()
    with pytest.raises(ValueError) as error:
        shared_colorbar(axes)
    assert all(word in str(error.value) for word in words), str(error.value)


# ---------------------------------------------------------------- long texts and padding


def view(weights, tokens, **options):
    settings_ = {"key_tokens": None, "evidence": None, "kind": "weights", "attention_mask": None, "padding": "crop",
                 "max_tokens": 24, "check_rows": True} | options
    return make_view(weights, tokens, **settings_)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 60), st.integers(2, 60), st.integers(3, 30), st.integers(0, 99))
def test_every_row_shown_keeps_its_sum_and_every_weight_shown_its_value(query_len, key_len, limit, seed):
    weights = softmax(query_len, key_len, seed=seed)
    shown = view(weights, [f"q{i}" for i in range(query_len)], key_tokens=[f"k{i}" for i in range(key_len)],
                 max_tokens=limit)
    rows = [i for i in range(len(shown.row_labels)) if i != shown.gap_row]
    assert len(shown.row_labels) == min(query_len, limit) and len(shown.column_labels) == min(key_len, limit)
    assert np.allclose(shown.cells[rows].sum(axis=1), 1, atol=1e-12)
    for row in rows:
        for column, name in enumerate(shown.column_labels):
            if column != shown.rest_column:
                assert shown.cells[row, column] == weights[int(shown.row_labels[row][1:]), int(name[1:])]


def test_a_long_text_shows_head_rest_and_tail_and_says_so_on_the_figure():
    weights = softmax(300, 300)
    tokens = [f"w{i}" for i in range(300)]
    ax = plot_attention(weights, tokens, evidence=[2, 150])
    expected = [*tokens[:12], "rest (277)", *tokens[-11:]]
    assert labels(ax.get_xticklabels()) == expected
    assert labels(ax.get_yticklabels()) == [*tokens[:12], "⋮ (277)", *tokens[-11:]]
    said = " ".join(t.get_text().replace("\n", " ") for t in ax.texts if isinstance(t, mpl.text.Annotation))
    for words in ("300 keys", "277", "row's sum stays one", "277 of 300 query rows are not drawn", "1 of 2"):
        assert words in said
    rest = {row: text for (row, column), text in printed(ax).items() if column == 12}
    assert float(rest[0]) == pytest.approx(weights[0, 12:289].sum(), abs=0.005)
    assert float(rest[23]) == pytest.approx(weights[299, 12:289].sum(), abs=0.005)
    # The rest is a sum of 277 weights: it neither takes a colour of the scale nor stretches it.
    assert mesh(ax).get_array().reshape(24, 24).mask[:, 12].all()
    kept = np.r_[0:12, 289:300]
    assert weights[np.ix_(kept, kept)].max() <= mesh(ax).get_clim()[1] < 2 * weights[np.ix_(kept, kept)].max() + 0.01


def padded(queries=10, real=7):
    mask = np.arange(queries) < real
    weights = softmax(queries, queries) * mask
    return weights / weights.sum(-1, keepdims=True), [*WORDS[:real], *["<pad>"] * (queries - real)], torch.tensor(mask)


def test_padding_is_cropped_from_rows_and_columns():
    weights, tokens, mask = padded()
    ax = plot_attention(weights, tokens, attention_mask=mask)
    assert labels(ax.get_xticklabels()) == labels(ax.get_yticklabels()) == WORDS[:7]
    assert np.allclose(mesh(ax).get_array().reshape(7, 7), weights[:7, :7])


def test_padding_can_be_hatched_and_prints_no_number_where_it_has_no_weight():
    weights, tokens, mask = padded()
    ax = plot_attention(weights, tokens, attention_mask=mask, padding="hatch")
    hatched = [p for p in ax.patches if isinstance(p, Rectangle) and p.get_hatch()]
    area = sum(p.get_width() * p.get_height() for p in hatched)
    assert area == 10 * 10 - 7 * 7
    assert set(printed(ax)) == {(row, column) for row in range(7) for column in range(7)}


def test_weight_on_padding_is_never_cropped_in_silence_and_shows_under_the_hatching():
    uniform = np.full((4, 4), 0.25)
    with pytest.raises(ValueError, match="0.25 to padding.*hatch"):
        plot_attention(uniform, WORDS[:4], attention_mask=[1, 1, 1, 0])
    ax = plot_attention(uniform, WORDS[:4], attention_mask=[1, 1, 1, 0], padding="hatch")
    assert printed(ax)[0, 3] == "0.25"
    with pytest.raises(ValueError, match="to padding"):
        token_strip(WORDS[:4], [0.25] * 4, attention_mask=[1, 1, 1, 0])


def test_a_query_without_keys_is_grey_and_explained():
    weights = softmax(4, 4)
    weights[2] = 0
    ax = plot_attention(weights, WORDS[:4])
    assert not any(row == 2 for row, _ in printed(ax))
    assert mesh(ax).get_array().reshape(4, 4).mask[2].all()
    assert "no key to attend to" in alt_text(ax)


def test_evidence_is_framed_in_bold_as_indices_or_booleans():
    for evidence in ([3, 4], torch.tensor([i in (3, 4) for i in range(8)])):
        ax = plot_attention(softmax(8, 8), WORDS[:8], evidence=evidence)
        frames = [p for p in ax.patches if not p.get_fill()]
        assert [(p.get_x(), p.get_width(), p.get_height()) for p in frames] == [(3, 2, 8)]
        assert [t.get_text() for t in ax.get_xticklabels() if t.get_fontweight() == "bold"] == ["not", "dull"]


# ---------------------------------------------------------------- errors


EYE = np.eye(3)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: plot_attention(EYE[None], WORDS[:3]), ["(1, 3, 3)", "(query, key)", "weights[0]"]),
    (lambda: plot_attention([0.5, 0.5], WORDS[:2]), ["(2,)", "token_strip"]),
    (lambda: plot_attention(EYE, WORDS[:2]), ["2 labels", "3 queries"]),
    (lambda: plot_attention(EYE, WORDS[:4]), ["4 labels", "3 queries"]),
    (lambda: plot_attention(EYE, "abc"), ["one string", "list of 3"]),
    (lambda: plot_attention(np.ones((2, 3)) / 3, WORDS[:2]), ["2 queries and 3 keys", "key_tokens="]),
    (lambda: plot_attention(np.ones((2, 3)) / 3, WORDS[:2], key_tokens=WORDS[:4]), ["key_tokens has 4", "3 keys"]),
    (lambda: plot_attention(np.ones((2, 3)) / 3, WORDS[:3], key_tokens=WORDS[:2]), ["weights.T"]),
    (lambda: plot_attention([[np.nan, 1], [0, 1]], ["a", "b"]), ["nan", "row 0 (query 'a')", "zeros"]),
    (lambda: plot_attention([[1.5, -0.5], [0, 1]], ["a", "b"]), ["-0.5", "key 1", "softmax", "difference"]),
    (lambda: plot_attention([[1, 0], [0.5, 0.6]], ["a", "b"]), ["row 1 (query 'b')", "1.1", "check_rows=False"]),
    (lambda: plot_attention([[0.2, 0.6], [0.8, 0.4]], ["a", "b"]), ["transposed", "weights.T"]),
    (lambda: plot_attention([[1, 0], [1]], ["a", "b"]), ["equal length"]),
    (lambda: plot_attention(np.zeros((0, 0)), []), ["(0, 0)"]),
    (lambda: plot_attention(EYE, WORDS[:3], evidence=[3]), ["evidence=[3]", "0 to 2"]),
    (lambda: plot_attention(EYE, WORDS[:3], evidence=[0, 1, 1]), ["booleans"]),
    (lambda: plot_attention(EYE, WORDS[:3], attention_mask=[1, 1]), ["attention_mask", "(2,)", "(3,)"]),
    (lambda: plot_attention(EYE, WORDS[:3], attention_mask=[0, -np.inf, 0]), ["-inf", "mask == 0"]),
    (lambda: plot_attention(EYE, WORDS[:3], attention_mask=[0, 0, 0]), ["False everywhere"]),
    (lambda: plot_attention(EYE, WORDS[:3], kind="change"), ["'change'", "'difference'"]),
    (lambda: plot_attention(EYE, WORDS[:3], padding="keep"), ["'keep'", "'hatch'"]),
    (lambda: plot_attention(EYE, WORDS[:3], max_tokens=2), ["max_tokens=2"]),
    (lambda: plot_attention(EYE, WORDS[:3], vmax=0), ["vmin below vmax"]),
    (lambda: plot_attention(EYE - 1 / 3, WORDS[:3], kind="difference", vmin=-1, vmax=0.5), ["symmetric"]),
    (lambda: plot_attention_heads(EYE, WORDS[:3]), ["(3, 3)", "plot_attention"]),
    (lambda: plot_attention_heads(np.ones((1, 1, 1, 1, 1)), ["a"]), ["(layers, heads, query, key)", "one text"]),
    (lambda: plot_attention_heads(np.stack([EYE, 2 * EYE]), WORDS[:3]), ["head 1", "sums to 2"]),
    (lambda: plot_attention_heads(EYE[None], WORDS[:3], titles=["a", "b"]), ["2 entries for 1 head"]),
    (lambda: token_strip("abc", [1, 0, 0]), ["one string"]),
    (lambda: token_strip(["a"], [0.5, 0.5]), ["1 labels", "2 values"]),
    (lambda: token_strip(["a", "b"], [-0.5, 0.5]), ["-0.5", "token 0 ('a')", "difference"]),
    (lambda: token_strip(["a", "b"], [0.5, np.inf]), ["inf", "token 1"]),
    (lambda: token_strip([["a", "b"], ["c"]], [[0.5, 0.5]]), ["2 strips", "1"]),
    (lambda: token_strip([["a"], ["c"]], [[0.5], [0.5, 0.5]]), ["strip 2"]),
])
def test_a_wrong_argument_is_named_with_what_was_got_and_what_to_do(call, words):
    with pytest.raises(ValueError) as error:
        call()
    assert all(word in str(error.value) for word in words), str(error.value)
    assert not plt.get_fignums()  # nothing was drawn before the check


def test_rows_that_do_not_sum_to_one_are_drawn_unchanged_when_asked_for():
    weights = np.array([[0.5, 0.25], [0.5, 0.6]])
    ax = plot_attention(weights, ["a", "b"], check_rows=False)
    assert np.array_equal(mesh(ax).get_array().reshape(2, 2), weights)


def test_half_precision_weights_with_gradients_are_accepted():
    weights = torch.softmax(torch.randn(30, 30, generator=torch.Generator().manual_seed(0)), -1).requires_grad_()
    plot_attention(weights, [str(i) for i in range(30)])
    plot_attention(weights.bfloat16(), [str(i) for i in range(30)])


# ---------------------------------------------------------------- token text


def test_a_token_is_shown_on_one_line_of_characters_that_the_font_has():
    shown = {token: display_token(token) for token in AWKWARD}
    assert shown["<br />"] == "<br />" and shown["$x_1$"] == "$x_1$" and shown["a\nb"] == "a\\nb"
    assert shown[""] == "(empty)" and shown["\t"] == "\\t" and shown["\ud800"] == "U+D800"
    assert shown["\N{ROCKET}\N{GRINNING FACE}"].startswith("U+1F680")
    assert shown["x" * 200] == "x" * 13 + "…" and shown[" the"] == "␣the" and shown["  "] == "␣␣"
    assert shown["\u202e"] == "U+202E" and shown["\u0301"] == "◌\u0301"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_any_string_becomes_a_short_visible_line(token):
    shown = display_token(token)
    assert shown.strip(" ") == shown and 0 < len(shown) <= 15
    assert not any(character in shown for character in "\n\r\t\x00")
    assert text_width(shown, 12) > 0
    shown.encode()


def test_lines_break_at_spaces_and_stay_inside_the_width():
    text = " ".join(WORDS)
    lines = wrap_text(text, 120, 12)
    assert " ".join(lines) == text and len(lines) > 1 and all(text_width(line, 12) <= 120 for line in lines)


def test_awkward_tokens_never_reach_mathtext_and_raise_no_warning(monkeypatch, capfd, tmp_path):
    def fail(*arguments, **options):
        raise AssertionError("mathtext was called")

    monkeypatch.setattr(mathtext.MathTextParser, "parse", fail)
    weights = softmax(len(AWKWARD), len(AWKWARD))
    title = "of '$x$' and '\\frac'"
    ax = plot_attention(weights, AWKWARD, title=title, evidence=[1, 5, 19])
    save_figure(ax.figure, "matrix", tmp_path)
    assert ax.get_title(loc="left") == title
    fig, _ = plot_attention_heads(weights[None, :8, :8] / weights[None, :8, :8].sum(-1, keepdims=True), AWKWARD[:8],
                                  title=title, titles=["$h_0$"])
    save_figure(fig, "grid", tmp_path)
    strip = token_strip(AWKWARD, weights[0], title=title, titles=["$a$"], evidence=[0, 5])
    save_figure(strip.figure, "strip", tmp_path)
    assert "$x_1$" in boxes(strip)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_labels_stay_inside_the_figure():
    tokens = ["a very long token indeed"] * 12
    for figure in (plot_attention(softmax(12, 12), tokens, title="t " * 200).figure,
                   plot_attention_heads(softmax(2, 3, 12, 12), tokens)[0], token_strip(tokens, softmax(12)).figure):
        box, page = figure.get_tightbbox(), figure.get_size_inches()
        assert box.x0 > -0.05 and box.y0 > -0.05 and box.x1 < page[0] + 0.05 and box.y1 < page[1] + 0.05
        assert page[0] <= 9.01


# ---------------------------------------------------------------- strips


def test_a_strip_prints_every_weight_under_its_token_and_breaks_lines_like_text():
    weights = softmax(len(WORDS))
    ax = token_strip(WORDS, weights, evidence=[3, 4])
    texts = boxes(ax)
    for token, weight in zip(WORDS, weights, strict=True):
        assert token in texts and f"{weight:.2f}" in texts
    places = [t.get_position() for t in ax.texts if t.get_text() in WORDS]
    assert len({y for _, y in places}) > 1 and all(0 <= x <= ax.get_xlim()[1] for x, _ in places)
    assert [t.get_text() for t in ax.texts if t.get_fontweight() == "bold"] == ["not", "dull"]
    narrow = token_strip(WORDS[:6], softmax(6), wrap=2)
    assert len({t.get_position()[1] for t in narrow.texts if t.get_text() in WORDS[:6]}) == 3


def test_several_strips_share_one_scale():
    ax = token_strip([["a", "b"], ["c", "d", "e"]], [[0.1, 0.2], torch.tensor([0.4, 0.2, 0.2])], titles=["one", "two"])
    faces = [mpl.colors.to_hex(p.get_facecolor()) for p in ax.patches[:5]]
    assert faces[1] == faces[3] == faces[4] != faces[0]
    assert "0.4" in boxes(ax)


def test_a_strip_longer_than_its_room_sums_the_rest():
    weights = softmax(300)
    ax = token_strip([f"w{i}" for i in range(300)], weights, decimals=4)
    assert "⋯ rest (181) ⋯" in boxes(ax) and f"{weights[60:241].sum():.4f}" in boxes(ax)
    assert "181 tokens between" in alt_text(ax)


def test_one_sentence_takes_several_rows_of_weights_and_scores_of_either_sign():
    ax = token_strip(["a", "b"], torch.tensor([[0.5, -0.5], [0.1, 0.2]]), kind="difference")
    assert {"+0.50", "−0.50", "+0.10", "+0.20"} <= set(boxes(ax))


def widths(ax, tokens):
    """Widths of a strip's boxes, in points, in the order of the tokens."""
    return [p.get_width() for p in ax.patches[:len(tokens)]]


def test_a_strip_can_leave_its_numbers_out_and_name_its_scale():
    weights = softmax(6)
    plain = token_strip(WORDS[:6], weights)
    bare = token_strip(WORDS[:6], weights, values=False, scale_label="gradient × $x$")
    assert f"{weights[0]:.2f}" in boxes(plain) and f"{weights[0]:.2f}" not in boxes(bare)
    assert bare.patches[0].get_height() < plain.patches[0].get_height()
    assert mpl.colors.same_color(bare.patches[0].get_facecolor(), plain.patches[0].get_facecolor())
    assert any(text.startswith("weight  0") for text in boxes(plain))
    assert any(text.startswith("gradient × $x$  0") for text in boxes(bare))
    assert "coloured by gradient × $x$" in alt_text(bare) and "coloured by weight" in alt_text(plain)
    assert f"{weights.max():.3f}" in alt_text(bare)
    assert min(widths(token_strip([".", ",", "a"], [0.2, 0.3, 0.5], values=False), "abc")) > 20
    for wrong in ({"values": "auto"}, {"scale_label": " "}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            token_strip(WORDS[:6], weights, **wrong)


def test_boxes_of_a_short_strip_are_wider_and_those_of_a_full_line_are_not():
    few, many = WORDS[:3], WORDS * 2
    short, long = token_strip(few, softmax(3)), token_strip(many, softmax(len(many)))
    for wide, narrow, word in zip(widths(short, few), widths(long, many), few):
        assert narrow + 10 < wide < text_width(word, 12) + 60
    assert widths(token_strip(few, softmax(3), wrap=2), few) == widths(long, many)[:3]
    for tokens in (few, WORDS[:9], WORDS[:11], WORDS[:12], WORDS):
        ax = token_strip([tokens, few], [softmax(len(tokens)), softmax(3)])
        assert max(p.get_x() + p.get_width() for p in ax.patches[:len(tokens) + 3]) <= ax.get_xlim()[1] + 1e-6


def test_what_a_strip_prints_can_be_read_on_every_colour():
    weights = np.linspace(0.001, 1, 60)
    for kind, values in (("weights", weights), ("difference", np.r_[weights, -weights])):
        ax = token_strip(["word"] * len(values), values, kind=kind)
        faces = [p.get_facecolor() for p in ax.patches[:len(values)]]
        inks = [t.get_color() for t in ax.texts if t.get_text() == "word"]
        assert min(contrast(ink, face) for ink, face in zip(inks, faces, strict=True)) >= 4.5


def test_a_strip_on_narrow_axes_keeps_its_scale_inside():
    fig = plt.figure(figsize=(9, 4))
    ax = token_strip(WORDS, softmax(len(WORDS)), evidence=[3], ax=fig.add_axes((0, 0, 0.33, 1)),
                     scale_label="a rather long name of a scale")
    right = ax.get_window_extent().x1
    assert all(text.get_window_extent().x1 <= right + 1 for text in ax.texts)
    assert any("framed, bold: evidence" in text for text in boxes(ax))


# ---------------------------------------------------------------- files and alternative text


SCRIPT = """
import sys, numpy as np
import matplotlib; matplotlib.use("Agg")
import matplotlib.pyplot as plt
from course_utils.heatmaps import plot_attention, plot_attention_heads, save_figure, token_strip
folder = sys.argv[1]
w = np.exp(np.random.default_rng(0).normal(size=(4, 6, 6))); w /= w.sum(-1, keepdims=True)
t = ["<br />", "not", "$x$", "dull", "\\u05e9", "<pad>"]
mask = [True] * 6
save_figure(plot_attention(w[0], t, evidence=[1], title="one").figure, "one", folder)
save_figure(plot_attention_heads(w, t, padding="hatch", attention_mask=mask)[0], "heads", folder)
save_figure(token_strip(t, w[0, 0], evidence=[3]).figure, "strip", folder)
save_figure(token_strip(t, w[0, 1], values=False, scale_label="share").figure, "bare", folder)
fig, axes = plt.subplots(1, 2, layout="constrained")
plot_attention(w[0], t, ax=axes[0]); axes[1].plot([1, 2, 3], [3, 1, 2], label="loss")
save_figure(fig, "both", folder)
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, head in zip(axes, w): plot_attention(head, t, vmax=1, colorbar=False, ax=ax)
from course_utils.heatmaps import shared_colorbar
shared_colorbar(axes)
save_figure(fig, "shared", folder)
"""


STYLES = ["read", "present"]


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("style", STYLES)
def test_two_processes_write_the_same_bytes_and_nothing_of_date_or_version(tmp_path, root, style, monkeypatch):
    monkeypatch.setenv("COURSE_STYLE", style)
    run = subprocess.run([sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path / "a")], cwd=root, timeout=300,
                         env=os.environ | {"PYTHONPATH": str(root), "PYTHONHASHSEED": "1"}, capture_output=True)
    assert run.returncode == 0 and run.stdout == run.stderr == b"", run.stderr.decode()
    exec(SCRIPT.replace("sys.argv[1]", "target"), {"target": tmp_path / "b"})
    first, second = digests(tmp_path / "a"), digests(tmp_path / "b")
    assert first == second and len(first) == 6 * 3
    for path in (tmp_path / "a").glob("*.svg"):
        text = path.read_text(encoding="utf-8").lower()
        assert "dc:date" not in text and mpl.__version__ not in text and "<desc>" in text
    for path in (tmp_path / "a").glob("*.png"):
        assert path.stat().st_size < 200_000
        with Image.open(path) as picture:
            assert set(picture.info) <= {"Description", "dpi"}


def test_saving_twice_in_one_process_writes_the_same_bytes(tmp_path):
    fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
    plot_attention(softmax(5, 5), WORDS[:5], ax=axes[0])
    axes[1].plot([0, 1, 2], [2, 1, 3])
    save_figure(fig, "one", tmp_path)
    engine = fig.get_layout_engine()
    save_figure(fig, "two", tmp_path)
    assert fig.get_layout_engine() is engine
    for ending in ("png", "svg", "txt"):
        assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"two.{ending}").read_bytes()


def test_the_saved_picture_has_the_colours_that_were_drawn(tmp_path):
    ax = plot_attention(softmax(12, 12), WORDS[:12])
    save_figure(ax.figure, "saved", tmp_path)
    with Image.open(tmp_path / "saved.png") as picture:
        saved = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
    faces = mesh(ax).get_facecolors()
    for face in faces:
        assert tuple(int(round(255 * c)) for c in face[:3]) in saved


def test_the_alternative_text_stands_in_both_files_and_beside_them(tmp_path):
    text = save_figure(plot_attention(softmax(3, 3), ["<br />", "&", "שלום"], title="three").figure, "x", tmp_path)
    assert (tmp_path / "x.txt").read_text(encoding="utf-8") == text + "\n"
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.info["Description"] == text
    svg = (tmp_path / "x.svg").read_text(encoding="utf-8")
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"<desc>{escaped}</desc>" in svg and 'role="img"' in svg


def test_the_alternative_text_says_what_is_drawn_and_changes_with_the_data():
    weights = np.array([[0.1, 0.7, 0.2], [0.25, 0.25, 0.5]])
    ax = plot_attention(weights, ["der", "Film"], key_tokens=["the", "good", "film"], evidence=[1], title="Cross")
    text = alt_text(ax.figure)
    for words in ("Cross.", "2 queries", "3 keys", "'der' (query 0) to 'good' (key 1) 0.700", "from 0 to 0.8",
                  "Evidence outlined: 'good'"):
        assert words in text
    weights[0] = [0.1, 0.2, 0.7]
    other = alt_text(plot_attention(weights, ["der", "Film"], key_tokens=["the", "good", "film"]).figure)
    assert "'der' (query 0) to 'film' (key 2) 0.700" in other
    grids = [alt_text(plot_attention_heads(softmax(2, 4, 4, seed=seed), WORDS[:4])[0]) for seed in (0, 1)]
    strips = [alt_text(token_strip(WORDS[:4], softmax(4, seed=seed)).figure) for seed in (0, 1)]
    assert grids[0] != grids[1] and strips[0] != strips[1]


def test_a_figure_of_lines_or_bars_is_described_from_its_data(tmp_path):
    fig, (left, right) = plt.subplots(1, 2)
    left.plot([1, 2, 3], [0.7, 0.2, 0.3], label="training")
    left.set_xlabel("epoch")
    right.bar(["bag", "attention"], [0.62, 0.98])
    text = save_figure(fig, "curves", tmp_path)
    assert "'training': 3 points from (1, 0.7) to (3, 0.3), lowest 0.2 at 2" in text
    assert "2 bars: bag 0.62, attention 0.98" in text and "epoch" in text
    with pytest.raises(ValueError, match="nothing|anything"):
        save_figure(plt.figure(), "empty", tmp_path)


def described(draw):
    fig, ax = plt.subplots()
    draw(ax)
    return alt_text(fig)


VALUES = [1, 2, 2, 3, 3, 3, 4.5]


def dodged(ax):
    ax.bar([-0.2, 0.8], [1, 2], 0.4, label="one")
    ax.bar([0.2, 1.2], [3, 4], 0.4, label="two")
    ax.set_xticks([0, 1], ["bag", "LSTM, mean"])


def jittered(ax):
    ax.scatter([-0.1, 0.1, 0.9], [1, 2, 3])
    ax.hlines([1.5, 3], [-0.25, 0.75], [0.25, 1.25])
    ax.set_xticks([0, 1], ["untrained", "trained"])


@pytest.mark.parametrize(("draw", "words"), [
    *[(lambda ax, how=how, way=way: ax.hist(VALUES, bins=4, range=(1, 5), histtype=how, orientation=way, label="runs"),
       "Histogram 'runs': 4 bins from 1 to 5, 7 in all; the tallest, 3, from 3 to 4.")
      for how in ("step", "stepfilled") for way in ("vertical", "horizontal")],
    (lambda ax: ax.hist(VALUES, bins=7, range=(1, 4.5)),
     "Histogram: 7 bins from 1 to 4.5, 7 in all; the tallest, 3, from 3 to 3.5."),
    (lambda ax: ax.stairs([1, 4, 2], [0, 10, 20, 40]),
     "Histogram: 3 bins from 0 to 40, 7 in all; the tallest, 4, from 10 to 20."),
    (lambda ax: ax.errorbar([0.5, 0.7], ["order", "plain"], xerr=[0.1, 0.2], fmt="o", capsize=4),
     "2 points with error bars: order 0.5 (0.4 to 0.6), plain 0.7 (0.5 to 0.9)."),
    (lambda ax: ax.errorbar([1, 2], [3, 4], yerr=[[0.5, 1], [1, 2]], label="loss"),
     "2 points with error bars 'loss': 3 (2.5 to 4) at 1, 4 (3 to 6) at 2."),
    (lambda ax: ax.errorbar([1, 2], [3, 4], yerr=1, fmt="none"),
     "2 points with error bars: 3 (2 to 4) at 1, 4 (3 to 5) at 2."),
    (lambda ax: ax.bar(["bag", "all"], [0.6, 0.9], yerr=0.05), "2 bars: bag 0.6 (0.55 to 0.65), all 0.9 (0.85 to 0.95)."),
    (lambda ax: ax.barh(["bag", "all"], [0.6, 0.9]), "2 bars: bag 0.6, all 0.9."),
    (lambda ax: ax.bar(["bag", "all"], [0.6, np.nan]), "2 bars: bag 0.6, all no value."),
    (lambda ax: ax.bar(range(40), range(40)), "40 bars from 0 to 39, lowest 0 at 0, highest 39 at 39."),
    (dodged, "2 bars 'one': bag 1; LSTM, mean 2. 2 bars 'two': bag 3; LSTM, mean 4."),
    (jittered, "3 points: untrained 1 to 2 (2 points), trained 3. 2 level lines: untrained 1.5, trained 3."),
    (lambda ax: ax.fill_between([1, 2, 3], [0, 1, 0], [2, 2, 4], label="95 %"),
     "Band '95 %', at 1: 0 to 2, at 3: 0 to 4; widest at 3: 0 to 4."),
    (lambda ax: ax.fill_betweenx([1, 2], [0, 0], [1, 3]), "Band, at 1: 0 to 1, at 2: 0 to 3; widest at 2: 0 to 3."),
    (lambda ax: ax.plot(["bag", "LSTM", "all"], [1, 3, 2]),
     "from (bag, 1) to (all, 2), lowest 1 at bag, highest 3 at LSTM."),
    (lambda ax: ax.plot([1, 2, 3], [np.nan, 1, 2]), "Line: 2 points from (2, 1) to (3, 2)"),
    (lambda ax: ax.plot([0.9, 0.8], [1, 2], "o"), "2 points, x from 0.8 to 0.9, y from 1 to 2."),
    (lambda ax: (ax.imshow([[1, 2], [3, 4]]), ax.set_yticks([0, 1], ["a", "b"])),
     "Grid of 2 x 2 values from 1 to 4; rows: a, b."),
])
def test_histograms_error_bars_bands_and_categories_are_described(draw, words):
    assert words in described(draw)


def test_ticks_that_only_write_their_number_are_no_names_and_names_of_other_numbers_are():
    def thousands(ax):
        ax.plot([100, 1000], [1, 2])
        ax.set_xticks([100, 1000], ["100", "1,000"])

    def heads(ax):
        ax.plot([0, 1, 2], [5, 6, 4])
        ax.set_xticks([0, 1, 2], ["1", "2", "8"])

    assert "from (100, 1) to (1000, 2)" in described(thousands)
    assert "from (1, 5) to (8, 4), lowest 4 at 8, highest 6 at 2" in described(heads)


def test_error_bars_are_described_once_and_reference_lines_not_at_all():
    text = described(lambda ax: (ax.errorbar([1, 2], [3, 4], yerr=1, xerr=0.5, capsize=5, fmt="o-"),
                                 ax.axhline(3), ax.axvline(1)))
    assert text == "2 points with error bars: (1 (0.5 to 1.5), 3 (2 to 4)); (2 (1.5 to 2.5), 4 (3 to 5))."


def test_equal_extremes_are_named_in_the_order_of_the_data():
    x, noise = np.linspace(-1, 1, 41), np.r_[np.zeros(40), -1e-12]
    assert "lowest 0 at 0" in described(lambda ax: ax.plot(x, x**2 + noise))
    assert "highest 1 at -1" in described(lambda ax: ax.plot(x, x**2 - noise))
    near = np.array([[0.5, 0.5], [0.5 - 1e-9, 0.5 + 1e-9]])
    assert "Largest weights: 'a' (query 0) to 'a' (key 0) 0.500" in alt_text(plot_attention(near, ["a", "b"]))


def test_marks_among_the_labels_are_quoted_and_a_title_ends_once():
    text = alt_text(plot_attention(softmax(3, 3), ["film", ".", "<br />"], title="The film was dull."))
    assert text.startswith("The film was dull. Heatmap") and "Rows: film, '.', <br />. " in text


def test_figures_go_to_the_outputs_of_the_project_unless_told_otherwise(tmp_path, monkeypatch, root):
    from course_utils.files.paths import output_folder
    monkeypatch.chdir(tmp_path)
    assert output_folder() == root / "outputs"
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "elsewhere" / "deep"))
    save_figure(plot_attention(EYE, WORDS[:3]).figure, "figure", None)
    assert sorted(p.name for p in (tmp_path / "elsewhere" / "deep").iterdir()) == ["figure.png", "figure.svg", "figure.txt"]
    for name in ("a/b", "..", "x.png", "", "a\\b"):
        with pytest.raises(ValueError, match="file name"):
            save_figure(plt.gcf(), name, tmp_path)


def test_an_inline_figure_is_about_900_pixels_wide_and_light():
    fig, _ = plot_attention_heads(softmax(2, 4, 18, 18), WORDS[:18])
    picture = io.BytesIO()
    fig.savefig(picture, format="png", bbox_inches="tight")
    assert Image.open(picture).width <= 920 and len(picture.getvalue()) < 120_000


def test_the_style_for_presenting_has_larger_type_and_a_wrong_name_is_an_error(monkeypatch):
    plain = plot_attention(softmax(4, 4), WORDS[:4]).get_xticklabels()[0].get_fontsize()
    monkeypatch.setenv("COURSE_STYLE", "present")
    large = plot_attention(softmax(20, 20), WORDS[:20])
    assert large.get_xticklabels()[0].get_fontsize() > plain
    assert len(large.get_xticklabels()) == 14
    use_style()
    assert mpl.rcParams["font.size"] > 12
    plt.close("all")
    monkeypatch.setenv("COURSE_STYLE", "loud")
    with pytest.raises(ValueError, match="loud.*present"):
        plot_attention(softmax(4, 4), WORDS[:4])


@pytest.mark.parametrize(("heads", "tokens"), [((2, 2), 9), ((4, 4), 8), ((4, 4), 26), ((2, 2), 300)])
def test_a_grid_for_presenting_fills_a_wide_screen_with_type_of_ten_points(monkeypatch, heads, tokens):
    monkeypatch.setenv("COURSE_STYLE", "present")
    fig, axes = plot_attention_heads(softmax(*heads, tokens, tokens), [f"word{i}" for i in range(tokens)], title="heads")
    wide, high = fig.get_size_inches()
    assert high <= 9 * 9 / 16 and wide >= 8.5
    for ax in axes[-1]:
        box = ax.get_window_extent()
        shown = [label for label in [*ax.get_xticklabels(), *axes[0, 0].get_yticklabels()] if label.get_text()]
        assert shown and all(label.get_fontsize() >= 10 for label in shown)
        assert box.height > (70 if len(axes) == 2 else 28)  # pixels, on a figure of at most 506
    places = [label.get_window_extent() for label in axes[0, 0].get_yticklabels()]
    assert all(a.y0 >= b.y1 - 3 for a, b in zip(places, places[1:], strict=False))


def test_an_emoji_that_the_font_lacks_is_named_by_its_code():
    family, grin = "\N{FAMILY}", "\N{GRINNING FACE}"
    ax = token_strip([grin, family, "not", family + family], [0.25] * 4)
    assert {"U+1F46A", grin, "not"} <= set(boxes(ax))
    assert any(text.startswith("U+1F46A") and text.endswith("U+1F46A") for text in boxes(ax))
