"""One matrix of attention: its cells, the numbers in them and the frames around evidence, its labels, its colour bar.

Does: draw what `views` has checked and cut, on axes that are given or in a figure made to measure; choose type sizes that
fit, turn or thin labels that would collide. Does not: compute or change weights, check or cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from course_utils.figures import DIFFERENCE_MAP, WEIGHT_MAP, Sizes, ink_on, lettering, set_alt_text, sizes, style
from course_utils.figures.text import FONT, display_token, one_line, text_width, wrap_text
from course_utils.heatmaps.views import (
    View,
    describe_view,
    make_view,
    number,
    scale_limits,
    scale_ticks,
    to_array,
    to_flags,
    to_tokens,
)

# cells

INCH = 72.0  # points
MOST_PRINTED = 12  # numbers in cells stop being legible beyond this many rows or columns
GRID_LINE, EMPTY, DOTS = "#dcdcdc", "#c4c4c4", "#6a6a6a"
NARROW = 9  # points: lines between narrower cells are thin, and so are the dashes on them
LINE, THIN_LINE = 0.6, 0.25
DASH, THIN_DASH, LONGEST_DASH = 1.4, 0.8, 8
BESIDE_NUMBER, NUMBER_HEIGHT = 7, 0.62  # points beside a number; its size as a part of its cell's height
BESIDE_SUM, SUM_HEIGHT, SMALLEST_SUM = 1.5, 0.78, 6.5  # the same for the sums in the rest column, which may be smaller
SUM_ON_A_SLIDE = 0.95  # the height of such a sum where figures are kept low
LIGHTEST_SUM, DARKER = 0.95, 0.25  # the grey behind a sum of zero, and how much darker it is behind a sum of one
FAINT = 0.05  # negative cells with less than this part of the scale get no dash
HALO = 1.8  # width of the white line behind a frame, in widths of the frame


class Scale(NamedTuple):
    """What colours mean: `kind` ('weights' or 'difference'), and the ends of the scale."""

    kind: str
    low: float
    high: float

    @classmethod
    def over(cls, views: list[View], kind: str, vmax: float | None) -> Scale:
        """The scale for what is drawn together; `vmax=None` takes a round number just above the largest weight."""
        largest = max((float(np.abs(view.cells[view.coloured]).max(initial=0.0)) for view in views), default=0.0)
        return cls(kind, *scale_limits(largest, kind, vmax))

    @property
    def colours(self) -> Colormap:
        return DIFFERENCE_MAP if self.signed else WEIGHT_MAP

    @property
    def signed(self) -> bool:
        return self.kind == "difference"


class Numbers(NamedTuple):
    """What is printed in the cells: `values` (True, False or 'auto') with so many `decimals`."""

    values: bool | Literal["auto"]
    decimals: int

    def check(self, views: list[View]) -> None:
        """Raise ValueError for another word, or where numbers are asked for that nobody could read."""
        if self.values not in (True, False, "auto"):
            raise ValueError(f"values={self.values!r}; expected True, False or 'auto'")
        longest = max(max(view.cells.shape) for view in views)
        if self.values is True and longest > MOST_PRINTED:
            raise ValueError(f"values=True with {longest} rows or columns; numbers are legible up to {MOST_PRINTED}: "
                             f"pass max_tokens={MOST_PRINTED}, or values='auto'")

    def size(self, cell_width: float, cell_height: float, scale: Scale, size: Sizes) -> float:
        """Type size for numbers in cells of so many points, 0 where they would not fit."""
        widest = ("+0." if scale.signed else "0.") + "0" * self.decimals
        points = min(size.token, (cell_width - BESIDE_NUMBER) / text_width(widest, 1.0), NUMBER_HEIGHT * cell_height)
        return points if points >= size.smallest else 0.0


def points_of(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points."""
    box = ax.get_window_extent()
    return box.width * INCH / ax.figure.dpi, box.height * INCH / ax.figure.dpi


def draw_cells(ax: Axes, view: View, scale: Scale) -> dict[tuple[int, int], str]:
    """The cells: colours for weights, grey for what is no weight on the scale. Returns the colour under each number."""
    rows, columns = view.cells.shape
    cells = np.nan_to_num(view.cells)
    ax.pcolormesh(np.ma.masked_array(cells, ~view.coloured), cmap=scale.colours, vmin=scale.low, vmax=scale.high,
                  linewidths=LINE if points_of(ax)[0] / columns > NARROW else THIN_LINE, edgecolor=GRID_LINE)
    ax.spines[:].set_visible(False)
    ax.set(xlim=(0, columns), ylim=(rows, 0), xlabel="", ylabel="")
    fills = scale.colours(Normalize(scale.low, scale.high, clip=True)(cells))
    faces = {(int(r), int(c)): mpl.colors.to_hex(fills[r, c]) for r, c in np.argwhere(view.coloured)}

    def block(row, column, height=1, width=1, **looks):
        ax.add_patch(Rectangle((column, row), width, height, **{"linewidth": LINE, "edgecolor": GRID_LINE, **looks}))

    if view.rest_column is not None:
        for row in np.flatnonzero(~view.empty_rows):
            if row != view.gap_row:
                grey = f"{LIGHTEST_SUM - DARKER * float(np.clip(abs(view.cells[row, view.rest_column]), 0, 1)):.3f}"
                block(row, view.rest_column, facecolor=grey)
                faces[row, view.rest_column] = grey
    for row in np.flatnonzero(view.empty_rows):
        block(row, 0, width=columns, facecolor=EMPTY)
    return faces


def write_cells(ax: Axes, view: View, faces: dict[tuple[int, int], str], scale: Scale, numbers: Numbers, size: Sizes,
                spare: float = 1.0) -> list[Text]:
    """Numbers where they fit, a dash on negative cells without one, frames around the evidence. Returns the numbers.

    `faces` are the colours that `draw_cells` returned; `spare` is the part of a cell that may be used.
    """
    rows, columns = view.cells.shape
    width, height = points_of(ax)
    cell_width, cell_height = spare * width / columns, spare * height / rows
    if view.gap_row is not None:
        for column in range(columns):
            ax.text(column + 0.5, view.gap_row + 0.5, "⋮", ha="center", va="center_baseline", color=DOTS,
                    size=min(size.small, 0.8 * cell_height), family=FONT)
    written = _write_numbers(ax, view, faces, scale, numbers, size, cell_width, cell_height)
    _frame_evidence(ax, view, min(size.line, 0.15 * cell_width))  # in small cells a thin frame, which hides nothing
    return written


def _write_numbers(ax: Axes, view: View, faces: dict[tuple[int, int], str], scale: Scale, numbers: Numbers, size: Sizes,
                   cell_width: float, cell_height: float) -> list[Text]:
    points = numbers.size(cell_width, cell_height, scale, size) if numbers.values else 0.0
    if numbers.values is True and not points:
        points = size.smallest
    if max(view.cells.shape) > MOST_PRINTED:
        points = 0.0
    part = SUM_HEIGHT if size.tallest == float("inf") else SUM_ON_A_SLIDE
    sum_points = points or min(size.small, part * cell_height, (cell_width - BESIDE_SUM) / _widest_sum(view, scale.signed))
    negative, written = [], []
    for (row, column), face in faces.items():
        value = view.cells[row, column]
        looks = {"ha": "center", "va": "center_baseline", "family": FONT, **lettering(face, points or 8)}
        if points:
            shown = number(value, numbers.decimals, scale.signed)
            written.append(ax.text(column + 0.5, row + 0.5, shown, size=points, **looks))
        elif column == view.rest_column and sum_points >= SMALLEST_SUM:
            ax.text(column + 0.5, row + 0.5, _short(value, scale.signed), size=sum_points, **looks)
        elif scale.signed and value <= -FAINT * scale.high:
            negative.append((column + 0.5, row + 0.5, ink_on(face)))
    if negative:  # in grey print both ends of the scale are dark: a dash tells them apart
        x, y, inks = zip(*negative, strict=True)
        ax.scatter(x, y, c=inks, marker="_", s=min(LONGEST_DASH, 0.5 * cell_width) ** 2,
                   linewidths=DASH if cell_width > NARROW else THIN_DASH)
    return written


def _frame_evidence(ax: Axes, view: View, line: float) -> None:
    """A black frame with a white halo around each run of evidence columns."""
    edges = np.flatnonzero(np.diff(np.r_[False, view.evidence_columns, False].astype(int)))
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        frame = Rectangle((start, 0), end - start, len(view.cells), fill=False, edgecolor="#000000", linewidth=line,
                          clip_on=False, zorder=6)
        frame.set_path_effects([patheffects.withStroke(linewidth=HALO * line, foreground="#ffffff")])
        ax.add_patch(frame)


def _short(value: float, signed: bool) -> str:
    """A sum of weights in a narrow cell: '.25', '1.00', '−.32'."""
    shown = number(value, 2, signed)
    return shown.replace("0.", ".", 1) if abs(value) < 0.995 else shown


def _widest_sum(view: View, signed: bool) -> float:
    """Width of the widest number of the rest column for type of one point."""
    sums = view.cells[np.isfinite(view.cells[:, view.rest_column]), view.rest_column] if view.rest_column is not None else []
    return max((text_width(_short(value, signed), 1.0) for value in sums), default=1.0)


# words around them

QUERY_LABEL, KEY_LABEL = "query (attends from)", "key (attended to)"
LINE_PITCH = 0.95  # type size of labels as a part of the distance between them
SLANT = 0.71  # the sine of 45 degrees: the distance between slanted labels, in that of their columns; also their height
BETWEEN_WORDS = 5  # points between level labels
TITLE_LINE, NOTE_LINE = 1.3, 1.3  # height of a line in its type sizes


def label_axes(ax: Axes, view: View, size: Sizes, rows: bool = True, columns: bool = True, named: bool = True) -> None:
    """Token labels on the axes, thinned where they would collide, and the names of the axes if `named`."""
    width, height = points_of(ax)
    base = size.token if named else size.small
    row_size, row_step = fitting(height / len(view.row_labels), base, size)
    turn, column_size, column_step = turned(view.column_labels, width / len(view.column_labels), base, named, size)
    row_ticks = thinned(len(view.row_labels), row_step, view.gap_row) if rows else []
    column_ticks = thinned(len(view.column_labels), column_step, view.rest_column) if columns else []
    ax.set_yticks([i + 0.5 for i in row_ticks], [view.row_labels[i] for i in row_ticks], size=row_size, family=FONT,
                  rotation=0, parse_math=False)
    ax.set_xticks([i + 0.5 for i in column_ticks], [view.column_labels[i] for i in column_ticks], size=column_size,
                  family=FONT, parse_math=False, **turn)
    ax.tick_params(length=2.5, pad=2.5, bottom=columns, left=rows)
    for ticks, labels, marked in ((row_ticks, ax.get_yticklabels(), view.evidence_rows),
                                  (column_ticks, ax.get_xticklabels(), view.evidence_columns)):
        for place, label in zip(ticks, labels, strict=True):
            if marked[place]:
                label.set_fontweight("bold")
    if named:
        ax.set_ylabel(QUERY_LABEL, size=size.token, parse_math=False)
        ax.set_xlabel(KEY_LABEL, size=size.token, parse_math=False)


def sizes_to_try(size: Sizes) -> Iterator[Sizes]:
    """The style's sizes; then, where it limits a figure's height, ever smaller ones, for the labels of all rows to fit."""
    yield size
    points = size.token - 0.5
    while size.tallest < float("inf") and points >= size.smallest:
        yield replace(size, token=points, small=min(size.small, points))
        points -= 0.5


def fitting(pitch: float, base: float, size: Sizes) -> tuple[float, int]:
    """Type size for labels `pitch` points apart, and every how many of them there is room for one."""
    points = min(base, LINE_PITCH * pitch)
    if points >= size.smallest:
        return points, 1
    return size.smallest, int(np.ceil(size.smallest / (LINE_PITCH * pitch)))


def thinned(count: int, step: int, special: int | None) -> list[int]:
    """Every `step`-th place, and the special one (rest or gap) in place of what would collide with it."""
    places = range(0, count, step)
    if special is None:
        return list(places)
    return sorted([place for place in places if abs(place - special) >= step] + [special])


def turned(labels: list[str], pitch: float, base: float, slanted: bool,
           size: Sizes) -> tuple[dict[str, object], float, int]:
    """How column labels stand: level where they fit, else at 45 degrees (one map) or upright (a grid)."""
    if longest(labels, base) <= pitch - BETWEEN_WORDS:
        return {"rotation": 0}, base, 1
    if slanted:
        return {"rotation": 45, "ha": "right", "va": "top", "rotation_mode": "anchor"}, *fitting(SLANT * pitch, base, size)
    return {"rotation": 90}, *fitting(pitch, base, size)


def longest(labels: list[str], points: float) -> float:
    """Width of the longest label, in points, for bold type of that size: any may be evidence."""
    return max(text_width(label, points, bold=True) for label in labels)


def write_head(ax: Axes, title: str | None, notes: list[str], size: Sizes, room: float) -> None:
    """The title above the axes, `room` points wide, and between them, smaller, what the reader must know of the cut."""
    note = wrap_text(" ".join(notes), points_of(ax)[0], size.small)
    if note:
        ax.annotate("\n".join(note), (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", size=size.small,
                    va="bottom", linespacing=1.1, annotation_clip=False, parse_math=False)
    if title:
        shown = "\n".join(wrap_text(one_line(title), room, size.title))
        ax.set_title(shown, loc="left", size=size.title, pad=8 + len(note) * NOTE_LINE * size.small, linespacing=1.1,
                     parse_math=False)


def evidence_words(evidence: object, keys: object, length: int) -> list[str]:
    """The evidence for a description: "'dull' (key 1)"."""
    flags = to_flags(evidence, length, "evidence")
    tokens = to_tokens(keys, length, "tokens", "keys")
    return [f"'{display_token(tokens[i], 30)}' (key {i})" for i in np.flatnonzero(flags)]


# the colour bar

BAR_GAP, BAR_WIDTH = 14, 13  # points between the cells and the bar, and across the bar
ROUND_OFF = 1e-6  # of the scale: what is beyond its end by less gets no arrow
AFTER_LAYOUT = 0.97  # of a cell: a layout engine may still take a little room from the axes


@dataclass(frozen=True)
class Drawn:
    """What `plot_attention` drew on axes, noted there for a bar added later."""

    view: View
    scale: Scale
    written: list[Text]
    numbers: Numbers


def drawing_style():
    """The course's style while drawing, with mathtext off: a token's '$' is a dollar sign."""
    return mpl.rc_context({**style(), "text.parse_math": False})


def bar_room(size: Sizes) -> float:
    """Points to the right of the cells for a colour bar with its numbers and label."""
    return BAR_GAP + BAR_WIDTH + text_width("−0.25", size.small) + 2.2 * size.small + 6


def draw_bar(fig: Figure, cax: Axes | None, panels: list[Axes], views: list[View], scale: Scale, size: Sizes,
             label: str | None = None) -> Colorbar:
    """One bar for the scale that the panels share, with arrows where values lie beyond its ends.

    It is drawn on `cax`, or takes its room from the panels.
    """
    shown = np.concatenate([view.cells[view.coloured] for view in views])
    over, under = (shown > scale.high * (1 + ROUND_OFF)).any(), (shown < scale.low - ROUND_OFF * scale.high).any()
    extend = {(False, False): "neither", (True, False): "max", (False, True): "min", (True, True): "both"}[over, under]
    place = {"cax": cax} if cax is not None else {"ax": panels, "fraction": 0.05, "pad": 0.03}
    bar = fig.colorbar(ScalarMappable(Normalize(scale.low, scale.high), scale.colours), extend=extend, **place)
    ticks = scale_ticks(scale.low, scale.high)
    bar.set_ticks(ticks, labels=[f"{tick:.4g}".replace("-", "−") for tick in ticks])
    bar.ax.tick_params(labelsize=size.small, length=2.5)
    bar.ax.minorticks_off()
    bar.outline.set_linewidth(0.6)
    told = "difference in weight (− is less)" if scale.signed else "attention weight"
    bar.set_label(one_line(label) if label else told, size=size.small, parse_math=False)
    set_alt_text(bar.ax, "")
    return bar


def shared_colorbar(axes, *, label: str | None = None) -> Colorbar:
    """Draw one colour bar for several axes that `plot_attention(..., colorbar=False, ax=...)` drew on one scale.

        fig, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
        plot_attention(before, tokens, vmax=1, colorbar=False, ax=axes[0])
        plot_attention(after, tokens, vmax=1, colorbar=False, ax=axes[1])
        shared_colorbar(axes)

    Args:
        axes: the axes, in an array or a list, all of one figure.
        label: a name for the scale; 'attention weight' or 'difference in weight' by default.

    Raises:
        ValueError: no axes, axes that `plot_attention` did not draw, or different scales.
    """
    panels = list(np.atleast_1d(np.asarray(axes, dtype=object)).flat)
    drawn = _drawn_on(panels)
    size, fig = sizes(), panels[0].figure
    with drawing_style():
        bar = draw_bar(fig, None, panels, [part.view for part in drawn], drawn[0].scale, size, label)
        fig.draw_without_rendering()  # the bar takes its room from the axes: what no longer fits becomes smaller
        for ax, part in zip(panels, drawn, strict=True):
            _refit(ax, part, size)
    return bar


def _drawn_on(panels: list) -> list[Drawn]:
    """What was drawn on the axes. Raises ValueError unless one bar can serve them all."""
    if not panels or not all(isinstance(ax, Axes) for ax in panels):
        raise ValueError("axes holds no axes, or something else; expected the axes that plot_attention drew on")
    drawn = [getattr(ax, "_course_drawn", None) for ax in panels]
    if None in drawn:
        raise ValueError(f"axes[{drawn.index(None)}] was not drawn by plot_attention: draw on it first, with colorbar=False")
    if len({ax.figure for ax in panels}) > 1:
        raise ValueError("the axes are not of one figure; a bar belongs to one figure: make the axes with plt.subplots")
    scales = list(dict.fromkeys(part.scale for part in drawn))
    if len(scales) > 1:
        told = "; ".join(f"{kind} from {low:.4g} to {high:.4g}" for kind, low, high in scales)
        raise ValueError(f"the axes have different scales ({told}); one bar needs one scale: give each the same vmax=")
    return drawn


def _refit(ax: Axes, part: Drawn, size: Sizes) -> None:
    """Token labels and numbers at the size that the axes have room for now; axis names stay as they are."""
    names = ax.get_xlabel(), ax.get_ylabel()
    label_axes(ax, part.view, size, rows=bool(ax.get_yticklabels()), columns=bool(ax.get_xticklabels()))
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    rows, columns = part.view.cells.shape
    width, height = points_of(ax)
    points = part.numbers.size(AFTER_LAYOUT * width / columns, AFTER_LAYOUT * height / rows, part.scale, size)
    for text in part.written:
        text.set_fontsize(min(text.get_fontsize(), points or size.smallest))


# one matrix

# all in points, of a figure made to measure
WIDEST, NARROWEST = 9 * INCH, 400.0
HIGH_CELL, SMALLEST_CELL = 44, 12
BODY = 330  # height of all rows together, where each has room for its label
LEAST_BODY = 60.0
FLAT = 0.72  # cells are a little wider than high, as numbers are; height in widths
SHORTEST_BAR, LONGEST_BAR = 60.0, 220.0
WIDER_HEAD, SPARE = 1.15, 0.9  # a title may reach over the bar; in axes that are given a number needs more room


def plot_attention(weights, tokens, *, key_tokens=None, title: str | None = None, evidence=None,
                   vmax: float | None = None, kind: Literal["weights", "difference"] = "weights", attention_mask=None,
                   max_tokens: int | None = None,
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
        vmax: the end of the colour scale, which begins at 0; `vmax=None` takes a round number just above the largest weight.
            Give the same `vmax` to figures that are compared. A scale cut short has an arrow on its bar.
        kind: 'weights', or 'difference' for weights minus weights: a symmetric two-coloured scale, rows unchecked;
            where no numbers are printed, a dash marks the negative cells.
        attention_mask: (key,), True for a real token; padding is left out, and it's an error where real queries
            attend to it. It holds for the rows too unless `key_tokens` is given.
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
    view = make_view(array, tokens, key_tokens, evidence, kind, attention_mask,
                     size.max_tokens if max_tokens is None else max_tokens, check_rows, tolerance)
    scale = Scale.over([view], kind, vmax)
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
