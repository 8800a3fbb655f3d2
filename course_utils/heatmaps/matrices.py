"""One matrix of attention.

Does: draw what `views` has checked and cut, on axes that are given or in a figure made to measure. Does not: compute or
change weights.
"""

from __future__ import annotations

from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from course_utils.figures import Sizes, set_alt_text, sizes
from course_utils.figures.text import one_line, text_width, wrap_text
from course_utils.heatmaps.bars import BAR_GAP, BAR_WIDTH, Drawn, bar_room, draw_bar, drawing_style
from course_utils.heatmaps.cells import INCH, Numbers, Scale, draw_cells, points_of, write_cells
from course_utils.heatmaps.labels import (
    LINE_PITCH,
    NOTE_LINE,
    SLANT,
    TITLE_LINE,
    evidence_words,
    label_axes,
    longest,
    sizes_to_try,
    turned,
    write_head,
)
from course_utils.heatmaps.views import View, describe_view, make_view, to_array

__all__ = ["plot_attention"]

# all in points, of a figure made to measure
WIDEST, NARROWEST = 9 * INCH, 400.0
HIGH_CELL, SMALLEST_CELL = 44, 12
BODY = 330  # height of all rows together, where each has room for its label
LEAST_BODY = 60.0
FLAT = 0.72  # cells are a little wider than high, as numbers are; height in widths
SHORTEST_BAR, LONGEST_BAR = 60.0, 220.0
WIDER_HEAD, SPARE = 1.15, 0.9  # a title may reach over the bar; in axes that are given a number needs more room


def plot_attention(weights, tokens, *, key_tokens=None, title: str | None = None, evidence=None, vmin: float = 0,
                   vmax: float | None = None, kind: Literal["weights", "difference"] = "weights", attention_mask=None,
                   padding: Literal["crop", "hatch"] = "crop", max_tokens: int | None = None,
                   values: bool | Literal["auto"] = "auto", decimals: int = 2, check_rows: bool = True,
                   colorbar: bool = True, ax: Axes | None = None) -> Axes:
    """Draw one attention matrix; row i shows what query i attends to.

    Args:
        weights: (query, key), a tensor, array or lists; each row sums to one, or is all zeros (a query with no
            key, drawn grey).
        tokens: (query,) row labels, and the column labels too unless `key_tokens` is given (cross-attention).
        key_tokens: (key,) column labels.
        title: a line above the heatmap. Like the tokens it is shown as it stands, '$' and all.
        evidence: keys to outline, as indices or booleans: their columns are framed, their labels bold.
        vmin, vmax: ends of the colour scale; `vmax=None` takes a round number just above the largest weight.
            Give the same `vmax` to figures that are compared. A scale cut short has an arrow on its bar.
        kind: 'weights', or 'difference' for weights minus weights: a symmetric two-coloured scale, rows unchecked;
            where no numbers are printed, a dash marks the negative cells.
        attention_mask: (key,), True for a real token. It holds for the rows too unless `key_tokens` is given.
        padding: 'crop' leaves padding out, and raises where real queries attend to it; 'hatch' shows it hatched.
        max_tokens: longer sides are cut to head, 'rest' and tail; 24, or 14 with COURSE_STYLE=present. The rest
            column holds the sum of the keys between, printed, on grey: it is no single weight and has no colour.
        values: print the weights in the cells: 'auto' does so up to 12 tokens where they fit.
        decimals: digits of printed weights.
        check_rows: False draws rows that do not sum to one as they are.
        colorbar: False leaves the colour bar out, for one of several axes on the same scale; `shared_colorbar` then
            draws one bar for all of them.
        ax: axes to draw on; without it a figure is made to measure.

    Raises:
        ValueError: wrong dimensions or labels, NaN, negative weights, rows that do not sum to one.
    """
    array, tolerance = to_array(weights)
    if array.ndim != 2:
        raise ValueError(f"weights has shape {array.shape}; expected two dimensions, (query, key): "
                         + ("draw one weight for each token with token_strip" if array.ndim < 2 else
                            f"take one head, such as weights[{', '.join('0' * (array.ndim - 2))}], or draw all with "
                            f"plot_attention_heads"))
    size, numbers, given = sizes(), Numbers(values, decimals), ax is not None
    view = make_view(array, tokens, key_tokens, evidence, kind, attention_mask, padding,
                     size.max_tokens if max_tokens is None else max_tokens, check_rows, tolerance)
    scale = Scale.over([view], kind, vmin, vmax)
    numbers.check([view])
    with drawing_style():
        ax, cax, size = (ax, None, size) if given else _made_to_measure(view, scale, numbers, size, title, colorbar)
        faces = draw_cells(ax, view, scale)
        if colorbar:
            draw_bar(ax.figure, cax, [ax], [view], scale, size)
        label_axes(ax, view, size)
        write_head(ax, title, view.notes, size, room=points_of(ax)[0] * (1 if cax is None else WIDER_HEAD))
        if given and ax.figure.get_layout_engine() is not None:
            ax.figure.draw_without_rendering()  # what room the numbers have is known once the layout has run
            label_axes(ax, view, size)
        written = write_cells(ax, view, faces, scale, numbers, size, spare=SPARE if given else 1.0)
    ax._course_drawn = Drawn(view, scale, written, numbers)
    marked = evidence_words(evidence, tokens if key_tokens is None else key_tokens, array.shape[1])
    set_alt_text(ax, describe_view(view, array.shape, *scale, marked))
    return ax


def _made_to_measure(view: View, scale: Scale, numbers: Numbers, style_size: Sizes, title: str | None,
                     colorbar: bool) -> tuple[Axes, Axes | None, Sizes]:
    """A figure at most nine inches wide whose cells have room for their labels; its axes, its bar's axes, and its sizes."""
    rows, columns = view.cells.shape
    for size in sizes_to_try(style_size):
        left = longest(view.row_labels, size.token) + 1.9 * size.token + 12
        right = bar_room(size) if colorbar else 10.0
        number_width = text_width("+0." + "0" * numbers.decimals, size.token) + 12 if numbers.values else 30.0
        cell_width = float(np.clip((WIDEST - left - right) / columns, SMALLEST_CELL, max(size.cell, number_width)))
        lowest = 1.3 * size.small  # rows far enough apart for their labels
        highest = min(FLAT * cell_width, HIGH_CELL) if columns > 3 else HIGH_CELL
        cell_height = max(float(np.clip(BODY / rows, lowest, highest)), lowest)
        width, height = cell_width * columns, cell_height * rows
        turn, label_size, _ = turned(view.column_labels, cell_width, size.token, slanted=True, size=size)
        label_height = SLANT * longest(view.column_labels, label_size) if turn["rotation"] else 0
        bottom = label_height + 3.2 * label_size + 8
        total = max(left + width + right, NARROWEST)
        note = wrap_text(" ".join(view.notes), width, size.small)
        lines = wrap_text(one_line(title), total - left - 10, size.title) if title else []
        besides = bottom + len(note) * NOTE_LINE * size.small + len(lines) * TITLE_LINE * size.title + 12
        height = min(height, max(size.tallest - besides, LEAST_BODY))  # on a slide the rows move together
        if LINE_PITCH * height >= rows * size.token:
            break
    tall = bottom + height + len(note) * NOTE_LINE * size.small + len(lines) * TITLE_LINE * size.title + 12
    fig = plt.figure(figsize=(total / INCH, tall / INCH))
    ax = fig.add_axes((left / total, bottom / tall, width / total, height / tall))
    if not colorbar:
        return ax, None, size
    bar = max(min(height, LONGEST_BAR), SHORTEST_BAR)
    cax = fig.add_axes(((left + width + BAR_GAP) / total, (bottom + height - bar) / tall, BAR_WIDTH / total, bar / tall))
    return ax, cax, size
