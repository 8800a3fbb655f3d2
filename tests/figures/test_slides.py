"""Every figure in the style for projectors fits a slide of 800 x 450 pixels: nothing cut, no labels on one another."""

import math
import warnings

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from PIL import Image  # noqa: E402

from course_utils.figures import plot_batch, save_figure  # noqa: E402
from course_utils.heatmaps import plot_attention, plot_attention_heads, shared_colorbar, token_strip, use_style  # noqa: E402

REVIEW = ("nobody in the crowded cinema could call the extraordinarily long film moving , but the second half was "
          "far from dull and everyone I know stayed until the end of it .").split()


@pytest.fixture(autouse=True)
def on_a_slide(monkeypatch):
    monkeypatch.delenv("COURSE_OUTPUTS", raising=False)
    monkeypatch.setenv("COURSE_STYLE", "present")
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("error")
        use_style()
        yield
    plt.close("all")


def weights(*shape):
    values = np.exp(1.5 * np.random.default_rng(0).normal(size=shape))
    return values / values.sum(-1, keepdims=True)


def words(count):
    return (REVIEW * math.ceil(count / len(REVIEW)))[:count]


def one_map(count, **more):
    return plot_attention(weights(count, count), words(count), title="What each word of the review looks at", **more).figure


def grid(*shape, count=10):
    return plot_attention_heads(weights(*shape, count, count), words(count), title="All heads of the model at once")[0]


def two_on_one_scale():
    fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    for ax in axes:
        plot_attention(weights(8, 8), words(8), vmax=1, colorbar=False, ax=ax)
    shared_colorbar(axes)
    return fig


def strips(rows, count, **more):
    return token_strip([words(count)] * rows, weights(rows, count), titles=[f"review {i}" for i in range(rows)],
                       title="Pooling weights of the words", **more).figure


FIGURES = {
    "a map of 14": lambda: one_map(14),
    "a map that is cut": lambda: one_map(60),
    "a difference": lambda: plot_attention(weights(9, 9) - weights(9, 9)[::-1], words(9), kind="difference").figure,
    "cross-attention": lambda: plot_attention(weights(3, 12), words(3), key_tokens=words(12)).figure,
    "8 heads": lambda: grid(8), "4 x 4 heads": lambda: grid(4, 4), "two on one scale": two_on_one_scale,
    "a strip": lambda: strips(1, 12), "four strips": lambda: strips(4, 16),
    "a batch": lambda: plot_batch(np.arange(32).reshape(4, 8) % 9, np.arange(32).reshape(4, 8) % 9 > 0,
                                  ["<pad>", *words(8)], title="Four reviews in a batch").figure,
}


@pytest.mark.parametrize("name", FIGURES)
def test_it_fits_a_slide_and_every_label_can_be_read(name, tmp_path):
    fig = FIGURES[name]()
    save_figure(fig, "figure", tmp_path)
    with Image.open(tmp_path / "figure.png") as saved:
        width, height = saved.size
    assert width <= 9.2 * 144 and height <= max(width, 9 * 144) * 9 / 16 + 1, (width, height)
    fig.draw_without_rendering()
    right, top = fig.canvas.get_width_height()
    shrunk = min(800 / width, 450 / height) * 144 / 72  # pixels of the slide a point
    names = [axis.label for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)]
    for text in all_texts(fig):
        box = text.get_window_extent()
        if text not in names:  # the name of an axis may reach beyond a low map; a saved figure makes room for it
            assert -2 <= box.x0 and -2 <= box.y0 and box.x1 <= right + 2 and box.y1 <= top + 2, text.get_text()
        assert text.get_fontsize() * shrunk >= 10, (text.get_text(), text.get_fontsize())
    for ax in fig.axes:
        for labels, side in ((ax.get_xticklabels(), 0), (ax.get_yticklabels(), 1)):
            if any(label.get_rotation() not in (0, 90) for label in labels):
                continue  # slanted: they stand beside one another by design
            ends = sorted((box.min[side], box.max[side]) for box in (label.get_window_extent() for label in labels))
            # The box of a label is higher than its letters: the descenders of one may reach the next.
            assert all(before[1] - 0.25 * (before[1] - before[0]) <= after[0] for before, after in zip(ends, ends[1:],
                                                                                                    strict=False))


def all_texts(fig):
    """Every text that is drawn: those of the figure, titles, names of axes, labels of ticks, numbers in cells."""
    found = [*fig.texts]
    for ax in fig.axes:
        found += [*ax.texts, ax.title, ax._left_title, ax._right_title, ax.xaxis.label, ax.yaxis.label]
        if ax.axison:
            found += [*ax.get_xticklabels(), *ax.get_yticklabels()]
    return [text for text in found if text.get_visible() and text.get_text().strip(" ⋮")]
