"""A grid of attention heads, on one colour scale with one colour bar.

Does: draw what `views` has checked and cut, in a figure made to measure. Does not: compute or change weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.figures import Sizes, set_alt_text, sizes
from course_utils.figures.text import count, one_line, sentence, spoken, text_width, wrap_text
from course_utils.heatmaps.matrices import (
    BAR_GAP,
    BAR_WIDTH,
    INCH,
    KEY_LABEL,
    LINE_PITCH,
    NOTE_LINE,
    QUERY_LABEL,
    Numbers,
    Scale,
    bar_room,
    draw_bar,
    draw_cells,
    drawing_style,
    evidence_words,
    label_axes,
    longest,
    points_of,
    sizes_to_try,
    thinned,
    turned,
    write_cells,
)
from course_utils.heatmaps.views import View, describe_view, make_view, to_array

__all__ = ["plot_attention_heads"]

# all in points
WIDEST, NARROWEST = 9 * INCH, 430.0
GAP = 9.0  # between panels side by side
WIDEST_PANEL, LOWEST_PANEL = 230.0, 22.0
LONGEST_BAR = 260.0
FLATTEST, TALLEST = 0.75, 1.35  # the height of a panel in widths
SIDE_BY_SIDE = 4  # panels that a slide, which is low, has in one row, whatever their layers
NAME = 60  # characters of a panel's name
TITLE_LINE = 1.35  # height of a line in its type sizes


def plot_attention_heads(weights, tokens, *, key_tokens=None, title: str | None = None,
                         titles: Sequence | None = None, evidence=None, vmax: float | None = None,
                         kind: Literal["weights", "difference"] = "weights", attention_mask=None,
                         max_tokens: int | None = None,
                         values: bool | Literal["auto"] = "auto", decimals: int = 2,
                         check_rows: bool = True) -> tuple[Figure, np.ndarray]:
    """Draw every head in a grid, on one colour scale with one colour bar.

    Args:
        weights: (heads, query, key), or (layers, heads, query, key) with a row of panels for each layer; a list
            with one tensor a layer will do. One text, not a batch.
        titles: a name for each panel; 'head 0' or 'layer 0, head 0' by default, counted as in `weights[0, 0]`.
        Others: as in `plot_attention`. Where labels would collide, every second or third is shown. With
            COURSE_STYLE=present up to four panels are side by side, and up to four rows of panels fit a slide.

    Returns:
        The figure, and the axes in the shape of the heads: (heads,) or (layers, heads).

    Raises:
        ValueError: as `plot_attention`, naming the head; or a wrong number of titles.
    """
    array, tolerance = to_array(weights)
    if array.ndim not in (3, 4):
        raise ValueError(f"weights has shape {array.shape}; expected (heads, query, key) or (layers, heads, query, key)"
                         + (": take one text of the batch" if array.ndim > 4 else ": draw one matrix with plot_attention"))
    grid = array.shape[:-2]
    if 0 in grid:
        raise ValueError(f"weights has shape {array.shape}: there is no head to draw")
    names = [f"layer {index[0]}, head {index[1]}" if len(grid) == 2 else f"head {index[0]}" for index in np.ndindex(grid)]
    size, numbers = sizes(), Numbers(values, decimals)
    views = [make_view(array[index], tokens, key_tokens, evidence, kind, attention_mask,
                       size.max_tokens if max_tokens is None else max_tokens, check_rows, tolerance, f"weights ({name})")
             for index, name in zip(np.ndindex(grid), names, strict=True)]
    if titles is not None:
        names = _given_names(titles, len(names))
    scale = Scale.over(views, kind, vmax)
    numbers.check(views)
    columns = grid[1] if len(grid) == 2 else _columns(grid[0])
    if size.tallest < float("inf") and len(views) <= SIDE_BY_SIDE:
        columns = len(views)
    with drawing_style():
        fig, panels, cax, size = _made_to_measure(views, columns, size, title)
        for i, (ax, view, name) in enumerate(zip(panels, views, names, strict=True)):
            faces = draw_cells(ax, view, scale)
            write_cells(ax, view, faces, scale, numbers, size)
            label_axes(ax, view, size, rows=i % columns == 0, columns=i + columns >= len(views), named=False)
            ax.set_title(one_line(name, NAME), size=_that_fits(names, ax, size), pad=4, parse_math=False)
        draw_bar(fig, cax, panels, views, scale, size)
    marked = evidence_words(evidence, tokens if key_tokens is None else key_tokens, array.shape[-1])
    _describe(fig, panels, views, names, array.shape, scale, marked, title)
    return fig, np.array(panels, dtype=object).reshape(grid)


def _given_names(titles: Sequence, heads: int) -> list[str]:
    """The titles in one list, whether they came in rows or not. Raises ValueError for another number of them."""
    given = [t for row in titles for t in ([row] if isinstance(row, str) else row)]
    if isinstance(titles, str) or len(given) != heads:
        raise ValueError(f"titles has {len(given)} entries for {heads} heads; give one for each")
    return given


def _that_fits(names: list[str], ax: Axes, size: Sizes) -> float:
    """The size for the panels' names: small, or less where the longest would reach the next panel."""
    widest = max(text_width(one_line(name, NAME), 1.0) for name in names)
    return min(size.small, max(size.smallest, points_of(ax)[0] / widest))


def _columns(heads: int) -> int:
    """Panels side by side for so many heads: rows of three or four."""
    return heads if heads <= 4 else 3 if heads in (5, 6, 9) else 4


def _made_to_measure(views: list[View], columns: int, style_size: Sizes,
                     title: str | None) -> tuple[Figure, list[Axes], Axes, Sizes]:
    """A figure nine inches wide with equal panels, their shared axis names, the axes of the bar, and its sizes."""
    view, rows = views[0], -(-len(views) // columns)
    for size in sizes_to_try(style_size):
        left = longest(view.row_labels, size.small) + 1.9 * size.token + 10
        right = bar_room(size)
        width = min((WIDEST - left - right - GAP * (columns - 1)) / columns, WIDEST_PANEL)
        wide = columns * width + (columns - 1) * GAP
        total = max(left + wide + right, NARROWEST)
        turn, label_size, step = turned(view.column_labels, width / len(view.column_labels), size.small, False, size)
        shown = [view.column_labels[i] for i in thinned(len(view.column_labels), step, view.rest_column)]
        bottom = (longest(shown, label_size) if turn["rotation"] else label_size) + 8 + 1.9 * size.token
        between = 1.8 * size.small + 4
        note = wrap_text(" ".join(view.notes), total - left - 10, size.small)
        lines = wrap_text(one_line(title), total - 20, size.title) if title else []
        top = len(note) * NOTE_LINE * size.small + len(lines) * TITLE_LINE * size.title + between + 6
        wanted = 1.06 * size.smallest * len(view.row_labels)  # enough for every row's label
        height = float(np.clip(wanted, FLATTEST * width, max(TALLEST * width, 60)))
        height = min(height, max((size.tallest - top - bottom - (rows - 1) * between) / rows, LOWEST_PANEL))
        if LINE_PITCH * height >= len(view.row_labels) * size.small:
            break
    body = rows * height + (rows - 1) * between
    tall = bottom + body + top
    fig = plt.figure(figsize=(total / INCH, tall / INCH))
    panels = []
    for i in range(len(views)):
        row, column = divmod(i, columns)
        panels.append(fig.add_axes(((left + column * (width + GAP)) / total,
                                    (bottom + body - height - row * (height + between)) / tall,
                                    width / total, height / tall)))
    bar = min(body, LONGEST_BAR)
    cax = fig.add_axes(((left + wide + BAR_GAP) / total, (bottom + body - bar) / tall, BAR_WIDTH / total, bar / tall))
    keys = KEY_LABEL + (", the same tokens as the rows" if view.one_text else "")
    fig.text((left + wide / 2) / total, 0.3 * size.token / tall, keys, ha="center", va="bottom", size=size.token)
    fig.text(0.4 * size.token / total, (bottom + body / 2) / tall, QUERY_LABEL, ha="left", va="center", rotation=90,
             size=size.token)
    head = 1 - 6 / tall
    if lines:
        fig.text(10 / total, head, "\n".join(lines), ha="left", va="top", size=size.title, linespacing=1.1)
        head -= len(lines) * TITLE_LINE * size.title / tall
    if note:
        fig.text(10 / total, head, "\n".join(note), ha="left", va="top", size=size.small, linespacing=1.1)
    return fig, panels, cax, size


def _describe(fig: Figure, panels: list[Axes], views: list[View], names: list[str], shape: tuple[int, ...], scale: Scale,
              marked: list[str], title: str | None) -> None:
    """Attach the description of the grid, panel by panel, to the figure, and of each panel to its axes."""
    arranged = f"{shape[0]} layers by {shape[1]} heads" if len(shape) == 4 else count(shape[0], "head", "heads")
    text = f"{sentence(title)} " if title else ""
    text += (f"Grid of {arranged}, each a heatmap of {count(shape[-2], 'query', 'queries')} (rows, attend from) "
             f"by {count(shape[-1], 'key', 'keys')} (columns, attended to), on one colour scale "
             f"from {scale.low:.4g} to {scale.high:.4g}. Rows: {spoken(views[0].row_labels)}. ")
    if not views[0].one_text:
        text += f"Columns: {spoken(views[0].column_labels)}. "
    parts = []
    for ax, view, name in zip(panels, views, names, strict=True):
        set_alt_text(ax, describe_view(view, shape[-2:], *scale, marked))
        parts.append(f"{one_line(name, NAME)}: largest {view.strongest[0] if view.strongest else 'is zero'}.")
    text += " ".join(parts)
    if marked:
        text += f" Evidence outlined: {', '.join(marked)}."
    set_alt_text(fig, " ".join([text, *views[0].notes]))
