"""Heatmaps of attention: the right axes, one scale, honest sums, wrong arguments named."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from drawn import EYE, WORDS, mesh, quiet_and_tidy, softmax
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from course_utils.figures import DIFFERENCE_MAP, WEIGHT_MAP, Sizes, luminance  # noqa: E402
from course_utils.heatmaps import alt_text, plot_attention, plot_attention_heads, shared_colorbar, token_strip  # noqa: E402
from course_utils.heatmaps.matrices import turned  # noqa: E402
from course_utils.heatmaps.views import make_view, scale_ticks  # noqa: E402

__all__ = ["quiet_and_tidy"]                            # pytest runs it around each test here


def labels(ticks):
    return [tick.get_text() for tick in ticks]


def printed(ax):
    """(row, column) -> the number printed there."""
    return {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in ax.texts if t.get_text() != "⋮"
            and not isinstance(t, mpl.text.Annotation)}


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


@pytest.mark.parametrize("low, high", [(0, 1), (0, 0.25), (0.2, 0.9), (-1, 1), (-0.03, 0.03)])
def test_the_ticks_of_a_scale_rise_from_one_end_to_the_other(low, high):
    ticks = scale_ticks(low, high)
    assert (ticks[0], ticks[-1]) == (low, high) and ticks == sorted(ticks) and 3 <= len(ticks) <= 6


@pytest.mark.parametrize("heads, tokens, title", [(2, 5, ""), (8, 12, "not a film for everyone " * 8)])
def test_every_part_of_a_grid_of_heads_stands_in_its_figure_below_the_title(heads, tokens, title):
    fig, axes = plot_attention_heads(softmax(heads, tokens, tokens), WORDS[:tokens], title=title)
    rows = [ax.get_position().y0 for ax in np.ravel(axes)]
    assert max(map(rows.count, rows)) <= 4, "five maps side by side are too small to read"
    for box in (ax.get_position() for ax in fig.axes):
        assert 0 <= box.x0 < box.x1 <= 1 and 0 <= box.y0 < box.y1 <= 1
    told = [text for text in fig.findobj(plt.Text) if title and text.get_text().replace("\n", " ") == title.strip()]
    assert len(told) == bool(title)


@pytest.mark.parametrize("slanted", [True, False])
@pytest.mark.parametrize("pitch", [2.0, 7.0, 9.0, 12.0, 30.0, 200.0])
def test_labels_of_columns_are_no_larger_than_asked_and_have_room(pitch, slanted):
    how, points, step = turned(["word", "another"], pitch, 10.0, slanted, Sizes())
    room = pitch * step * (0.71 if how["rotation"] == 45 else 1)
    assert Sizes().smallest <= points <= 10 and (how["rotation"] == 0 or points <= room)


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


def test_the_alternative_text_tells_weights_from_differences_and_which_way_they_went():
    before, after = np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([[0.9, 0.1], [0.375, 0.625]])
    told = alt_text(plot_attention(after - before, WORDS[:2], kind="difference"))
    assert "differences between attention weights" in told and "+0.400" in told and "-0.400" in told.replace("−", "-")
    told = alt_text(plot_attention(after, WORDS[:2]))
    assert "attention weights" in told and "difference" not in told and " 0.900" in told


@pytest.mark.parametrize("options, ends", [({}, "neither"), ({"vmax": 0.2}, "max"), ({"kind": "difference"}, "neither"),
                                           ({"vmax": 0.2, "kind": "difference"}, "both")])
def test_values_beyond_the_scale_give_the_bar_an_arrow_at_that_end(options, ends):
    values = np.array([[0.1, 0.9], [0.5, 0.5]]) - (0.5 if "kind" in options else 0)
    fig = plot_attention(values, WORDS[:2], **options).figure
    assert [ax._colorbar.extend for ax in fig.axes if hasattr(ax, "_colorbar")] == [ends]


def test_where_nothing_differs_the_scale_is_still_one():
    low, high = mesh(plot_attention(np.zeros((3, 3)), WORDS[:3], kind="difference")).get_clim()
    assert (low, high) == (-1, 1)


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


@pytest.mark.parametrize(("make", "words"), [
    (lambda: [plt.figure().add_subplot()], ["axes[0]", "plot_attention", "colorbar=False"]),
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
    settings_ = {"key_tokens": None, "evidence": None, "kind": "weights", "attention_mask": None, "max_tokens": 24,
                 "check_rows": True} | options
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


def test_weight_on_padding_is_never_cropped_in_silence():
    uniform = np.full((4, 4), 0.25)
    with pytest.raises(ValueError, match="0.25 to padding"):
        plot_attention(uniform, WORDS[:4], attention_mask=[1, 1, 1, 0])
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


@pytest.mark.parametrize(("call", "words"), [
    (lambda: plot_attention(EYE[None], WORDS[:3]), ["(1, 3, 3)", "(query, key)", "weights[0]"]),
    (lambda: plot_attention(EYE, WORDS[:2]), ["2 labels", "3 queries"]),
    (lambda: plot_attention(EYE, "abc"), ["one string", "list of 3"]),
    (lambda: plot_attention(np.ones((2, 3)) / 3, WORDS[:2]), ["2 queries and 3 keys", "key_tokens="]),
    (lambda: plot_attention([[np.nan, 1], [0, 1]], ["a", "b"]), ["nan", "row 0 (query 'a')", "zeros"]),
    (lambda: plot_attention([[1.5, -0.5], [0, 1]], ["a", "b"]), ["-0.5", "key 1", "softmax", "difference"]),
    (lambda: plot_attention([[1, 0], [0.5, 0.6]], ["a", "b"]), ["row 1 (query 'b')", "1.1", "check_rows=False"]),
    (lambda: plot_attention([[0.2, 0.6], [0.8, 0.4]], ["a", "b"]), ["transposed", "weights.T"]),
    (lambda: plot_attention(EYE, WORDS[:3], evidence=[3]), ["evidence=[3]", "0 to 2"]),
    (lambda: plot_attention(EYE, WORDS[:3], attention_mask=[1, 1]), ["attention_mask", "(2,)", "(3,)"]),
    (lambda: plot_attention(EYE, WORDS[:3], kind="change"), ["'change'", "'difference'"]),
    (lambda: plot_attention_heads(EYE, WORDS[:3]), ["(3, 3)", "plot_attention"]),
    (lambda: plot_attention_heads(np.stack([EYE, 2 * EYE]), WORDS[:3]), ["head 1", "sums to 2"]),
    (lambda: token_strip(["a"], [0.5, 0.5]), ["1 labels", "2 values"]),
    (lambda: token_strip(["a", "b"], [0.5, np.inf]), ["inf", "token 1"]),
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
