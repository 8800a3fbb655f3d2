"""A figure of a notebook's own fits a slide in the style for projectors, and stays as it is in the style for reading."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

from course_utils.figures import sizes, style  # noqa: E402
from course_utils.figures.saving import fit_slide  # noqa: E402

KINDS = ["plain", "negation", "order", "distant"]


def crowded(layout="constrained"):
    """Bars with long names beside a map of square cells, under titles that are too long."""
    fig, (bars, cells) = plt.subplots(1, 2, figsize=(9, 6.5), width_ratios=[1, 2], layout=layout)
    bars.bar(KINDS, range(4))
    bars.set_title("by kind")
    cells.imshow(np.eye(8))
    cells.set_title("the title of this map is longer than there is room for, all in all")
    return fig


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def of_style(monkeypatch, name):
    monkeypatch.setenv("COURSE_STYLE", name)
    return mpl.rc_context(style())


def labels_of(ax):
    return sorted((label.get_window_extent() for label in ax.get_xticklabels()), key=lambda box: box.x0)


def test_it_gets_lower_and_nothing_collides(monkeypatch):
    with of_style(monkeypatch, "present"):
        fig = crowded()
        fig.draw_without_rendering()
        before = labels_of(fig.axes[0])
        assert any(one.x1 > other.x0 for one, other in zip(before, before[1:]))
        fit_slide(fig)
        fig.draw_without_rendering()
        assert 72 * fig.get_figheight() == pytest.approx(sizes().tallest)
        after = labels_of(fig.axes[0])
        assert all(one.x1 < other.x0 for one, other in zip(after, after[1:]))
        assert all(label.get_fontsize() >= sizes().smallest for label in fig.axes[0].get_xticklabels())
        assert fig.axes[1].get_aspect() == "auto"
        assert fig.axes[1].title.get_window_extent().x1 <= fig.bbox.x1 + 1
        assert fig.axes[1]._left_title.get_window_extent().x1 <= fig.bbox.x1 + 1


@pytest.mark.parametrize(("name", "layout"), [("read", "constrained"), ("present", None)])
def test_other_figures_are_left_alone(monkeypatch, name, layout):
    with of_style(monkeypatch, name):
        fig = crowded(layout)
        sized = [label.get_fontsize() for label in fig.axes[0].get_xticklabels()]
        fit_slide(fig)
        assert fig.get_figheight() == 6.5 and fig.axes[1].get_aspect() == 1
        assert [label.get_fontsize() for label in fig.axes[0].get_xticklabels()] == sized
