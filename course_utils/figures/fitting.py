"""A figure with an automatic layout, made to fit a slide: COURSE_STYLE=present alone limits how high a figure gets.

Does: lower it, widen the cells of its maps, and shrink titles and labels of ticks that larger type has made collide. Does
not: touch a figure made to measure (heatmaps, diagrams, tokens fit by themselves), or any figure in the style for reading.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from course_utils.figures.appearance import Sizes, sizes

BETWEEN = 0.4  # of the type's size: the least room between two labels
PASSES = 6      # smaller type moves the axes, which may leave other room
SLACK = 1       # pixels by which a title may miss the edge


def fit_slide(fig: Figure) -> None:
    """Fit a figure to a slide; once it fits, nothing changes any more."""
    size = sizes()
    if fig.get_layout_engine() is None or size.tallest == float("inf"):
        return
    if 72 * fig.get_figheight() > size.tallest:
        fig.set_figheight(size.tallest / 72)
        for ax in fig.axes:
            if ax.images or any(isinstance(drawn, QuadMesh) for drawn in ax.collections):
                ax.set_aspect("auto")
    for _ in range(PASSES):
        fig.draw_without_rendering()
        if not sum(_shrink_labels(ax, size) + _shrink_title(ax, size) for ax in fig.axes):
            break


def _shrink_labels(ax: Axes, size: Sizes) -> bool:
    """Smaller labels below the axes where level ones collide; whether there were any."""
    shown = [label for label in ax.get_xticklabels() if label.get_text() and label.get_visible()] if ax.axison else []
    if len(shown) < 2 or any(label.get_rotation() for label in shown):
        return False
    points, boxes = shown[0].get_fontsize(), sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
    gap = BETWEEN * points * ax.figure.dpi / 72
    room = min((after.x0 + after.x1 - before.x0 - before.x1) / (before.width + after.width + 2 * gap)
               for before, after in zip(boxes, boxes[1:]))
    if not 0 < room < 1 or points <= size.smallest:
        return False
    ax.tick_params(axis="x", labelsize=max(size.smallest, 0.99 * room * points))
    return True


def _shrink_title(ax: Axes, size: Sizes) -> bool:
    """A smaller title where it would reach beyond the figure; whether it would."""
    edge, changed = ax.figure.bbox.x1, False
    for title in (ax.title, ax._left_title, ax._right_title):
        box, points = title.get_window_extent(), title.get_fontsize()
        if title.get_text() and box.x1 > edge + SLACK and points > size.smallest:
            title.set_fontsize(max(size.smallest, points * (edge - box.x0) / box.width))
            changed = True
    return changed
