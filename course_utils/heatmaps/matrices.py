"""One matrix of attention, a grid of heads, and a colour bar for axes of your own.

Does: draw what `views` has checked and cut. Does not: compute or change weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from course_utils.figures import DIFFERENCE_MAP, WEIGHT_MAP, Sizes, ink_on, lettering, set_alt_text, sizes, style
from course_utils.figures.text import FONT, count, display_token, one_line, sentence, spoken, text_width, wrap_text
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

__all__ = ["plot_attention", "plot_attention_heads", "shared_colorbar"]

QUERY_LABEL, KEY_LABEL = "query (attends from)", "key (attended to)"
VALUE_TOKENS = 12  # numbers in cells stop being legible beyond this many rows or columns
GRID_LINE, EMPTY, PADDING = "#dcdcdc", "#c4c4c4", "#e6e6e6"
INCH = 72.0  # points


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
    size = sizes()
    view = make_view(array, tokens, key_tokens, evidence, kind, attention_mask, padding,
                     size.max_tokens if max_tokens is None else max_tokens, check_rows, tolerance)
    low, high = scale_limits(_largest([view]), kind, vmin, vmax)
    _check_values(values, [view])
    with _drawing_style():
        given, cax = ax is not None, None
        if not given:
            ax, cax = _figure_for(view, size, title, colorbar, kind, values, decimals)
        faces = _draw_cells(ax, view, kind, low, high)
        if colorbar:
            _colour_bar(ax.figure, cax, [ax], [view], kind, low, high, size)
        _label(ax, view, size)
        note = "\n".join(wrap_text(" ".join(view.notes), _points(ax)[0], size.small))
        _head(ax, title, note, size, room=_points(ax)[0] * (1 if cax is None else 1.15))
        if given and ax.figure.get_layout_engine() is not None:
            ax.figure.draw_without_rendering()  # what room the numbers have is known once the layout has run
            _label(ax, view, size)
        numbers = _write(ax, view, faces, kind, high, values, decimals, size, spare=0.9 if given else 1.0)
    ax._course_drawn = _Drawn(view, kind, low, high, numbers, decimals)
    marked = _evidence_words(evidence, key_tokens if key_tokens is not None else tokens, array.shape[1])
    set_alt_text(ax, describe_view(view, array.shape, kind, low, high, marked))
    return ax


@dataclass(frozen=True)
class _Drawn:
    """What `plot_attention` drew on axes, for a bar added later."""

    view: View
    kind: str
    low: float
    high: float
    numbers: list[Text]
    decimals: int


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
    if not panels or not all(isinstance(ax, Axes) for ax in panels):
        raise ValueError("axes holds no axes, or something else; expected the axes that plot_attention drew on")
    drawn = [getattr(ax, "_course_drawn", None) for ax in panels]
    if None in drawn:
        raise ValueError(f"axes[{drawn.index(None)}] was not drawn by plot_attention: draw on it first, with colorbar=False")
    if len({ax.figure for ax in panels}) > 1:
        raise ValueError("the axes are not of one figure; a bar belongs to one figure: make the axes with plt.subplots")
    scales = list(dict.fromkeys((part.kind, part.low, part.high) for part in drawn))
    if len(scales) > 1:
        told = "; ".join(f"{kind} from {low:.4g} to {high:.4g}" for kind, low, high in scales)
        raise ValueError(f"the axes have different scales ({told}); one bar needs one scale: give each the same vmax=")
    kind, low, high = scales[0]
    size, fig = sizes(), panels[0].figure
    with _drawing_style():
        bar = _colour_bar(fig, None, panels, [part.view for part in drawn], kind, low, high, size, label)
        fig.draw_without_rendering()  # the bar takes its room from the axes: what no longer fits becomes smaller
        for ax, part in zip(panels, drawn, strict=True):
            _refit(ax, part, size)
    return bar


def plot_attention_heads(weights, tokens, *, key_tokens=None, title: str | None = None,
                         titles: Sequence | None = None, evidence=None, vmin: float = 0, vmax: float | None = None,
                         kind: Literal["weights", "difference"] = "weights", attention_mask=None,
                         padding: Literal["crop", "hatch"] = "crop", max_tokens: int | None = None,
                         values: bool | Literal["auto"] = "auto", decimals: int = 2,
                         check_rows: bool = True) -> tuple[Figure, np.ndarray]:
    """Draw every head in a grid, on one colour scale with one colour bar.

    Args:
        weights: (heads, query, key), or (layers, heads, query, key) with a row of panels for each layer; a list
            with one tensor a layer will do. One text, not a batch.
        titles: a name for each panel; 'head 0' or 'layer 0, head 0' by default, counted as in `weights[0, 0]`.
        Others: as in `plot_attention`. Where labels would collide, every second or third is shown.

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
    size = sizes()
    views = [make_view(array[index], tokens, key_tokens, evidence, kind, attention_mask, padding,
                       size.max_tokens if max_tokens is None else max_tokens, check_rows, tolerance, f"weights ({name})")
             for index, name in zip(np.ndindex(grid), names, strict=True)]
    if titles is not None:
        given = [t for row in titles for t in ([row] if isinstance(row, str) else row)]
        if isinstance(titles, str) or len(given) != len(names):
            raise ValueError(f"titles has {len(given)} entries for {len(names)} heads; give one for each")
        names = given
    low, high = scale_limits(_largest(views), kind, vmin, vmax)
    _check_values(values, views)
    columns = grid[1] if len(grid) == 2 else _columns(grid[0])
    with _drawing_style():
        fig, panels, cax = _grid_for(views, columns, size, title, kind)
        for i, (ax, view, name) in enumerate(zip(panels, views, names, strict=True)):
            faces = _draw_cells(ax, view, kind, low, high)
            _write(ax, view, faces, kind, high, values, decimals, size)
            _label(ax, view, size, rows=i % columns == 0, columns=i + columns >= len(views), axis_names=False)
            ax.set_title(one_line(name, 60), size=size.small, pad=4, parse_math=False)
        _colour_bar(fig, cax, panels, views, kind, low, high, size)
    marked = _evidence_words(evidence, key_tokens if key_tokens is not None else tokens, array.shape[-1])
    _describe_grid(fig, panels, views, names, array.shape, kind, low, high, marked, title)
    return fig, np.array(panels, dtype=object).reshape(grid)


# ---------------------------------------------------------------- drawing


def _drawing_style():
    """The course's style while drawing, with mathtext off: a token's '$' is a dollar sign."""
    return mpl.rc_context({**style(), "text.parse_math": False})


def _largest(views: list[View]) -> float:
    return max((float(np.abs(view.cells[view.coloured]).max(initial=0.0)) for view in views), default=0.0)


def _check_values(values: object, views: list[View]) -> None:
    if values not in (True, False, "auto"):
        raise ValueError(f"values={values!r}; expected True, False or 'auto'")
    longest = max(max(view.cells.shape) for view in views)
    if values is True and longest > VALUE_TOKENS:
        raise ValueError(f"values=True with {longest} rows or columns; numbers are legible up to {VALUE_TOKENS}: "
                         f"pass max_tokens={VALUE_TOKENS}, or values='auto'")


def _points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points."""
    box = ax.get_window_extent()
    return box.width * INCH / ax.figure.dpi, box.height * INCH / ax.figure.dpi


def _value_size(cell_width: float, cell_height: float, decimals: int, kind: str, size: Sizes) -> float:
    """Type size for numbers in cells of so many points, 0 where they would not fit."""
    widest = "+0." if kind == "difference" else "0."
    fits = (cell_width - 7) / text_width(widest + "0" * decimals, 1.0)
    points = min(size.token, fits, 0.62 * cell_height)
    return points if points >= size.smallest else 0.0


def _draw_cells(ax: Axes, view: View, kind: str, low: float, high: float) -> dict[tuple[int, int], str]:
    """The cells: colours by seaborn, grey for what is no weight on the scale. Returns the colour under each number."""
    colours = DIFFERENCE_MAP if kind == "difference" else WEIGHT_MAP
    rows, columns = view.cells.shape
    coloured = view.coloured
    cell_width = _points(ax)[0] / columns
    # seaborn draws the whole figure to see whether labels overlap; with nothing visible that costs nothing.
    visible = [other for other in ax.figure.axes if other.get_visible()]
    for other in visible:
        other.set_visible(False)
    sns.heatmap(np.nan_to_num(view.cells), mask=~coloured, cmap=colours, vmin=low, vmax=high, cbar=False, ax=ax,
                xticklabels=False, yticklabels=False, linewidths=0.6 if cell_width > 9 else 0.25, linecolor=GRID_LINE)
    for other in visible:
        other.set_visible(True)
    fills = colours(Normalize(low, high, clip=True)(np.nan_to_num(view.cells)))
    faces = {(int(r), int(c)): mpl.colors.to_hex(fills[r, c]) for r, c in np.argwhere(coloured)}

    def block(row, column, height=1, width=1, **looks):
        ax.add_patch(Rectangle((column, row), width, height, **{"linewidth": 0.6, "edgecolor": GRID_LINE, **looks}))

    if view.rest_column is not None:
        for row in np.flatnonzero(~view.padded_rows & ~view.empty_rows):
            if row != view.gap_row:
                grey = f"{0.95 - 0.25 * float(np.clip(abs(view.cells[row, view.rest_column]), 0, 1)):.3f}"
                block(row, view.rest_column, facecolor=grey)
                faces[row, view.rest_column] = grey
    for row in np.flatnonzero(view.empty_rows):
        block(row, 0, width=columns, facecolor=EMPTY)
    hatching = {"hatch": "////", "edgecolor": "#8c8c8c", "linewidth": 0}
    for column in np.flatnonzero(view.padded_columns):
        for row in range(rows):
            if not view.padded_rows[row] and row != view.gap_row:
                face = "none" if coloured[row, column] else PADDING
                block(row, column, facecolor=face, **hatching)
    for row in np.flatnonzero(view.padded_rows):
        block(row, 0, width=columns, facecolor=PADDING, **hatching)
    ax.set_xlim(0, columns)
    ax.set_ylim(rows, 0)
    return faces


def _write(ax: Axes, view: View, faces: dict[tuple[int, int], str], kind: str, high: float, values: object,
           decimals: int, size: Sizes, spare: float = 1.0) -> list[Text]:
    """Numbers where they fit, a dash on negative cells without one, frames around the evidence. Returns the numbers."""
    rows, columns = view.cells.shape
    width, height = _points(ax)
    cell_width, cell_height = spare * width / columns, spare * height / rows
    if view.gap_row is not None:
        for column in range(columns):
            ax.text(column + 0.5, view.gap_row + 0.5, "⋮", ha="center", va="center_baseline", color="#6a6a6a",
                    size=min(size.small, 0.8 * cell_height), family=FONT)

    points = _value_size(cell_width, cell_height, decimals, kind, size) if values else 0.0
    if values is True and not points:
        points = size.smallest
    if max(rows, columns) > VALUE_TOKENS:
        points = 0.0
    rest_points = points or min(size.small, 0.78 * cell_height, (cell_width - 1.5) / _widest_rest(view, kind))
    signed, less, numbers = kind == "difference", [], []
    for (row, column), face in faces.items():
        value, here = view.cells[row, column], {"ha": "center", "va": "center_baseline", **lettering(face, points or 8)}
        if points:
            shown = number(value, decimals, signed)
            numbers.append(ax.text(column + 0.5, row + 0.5, shown, size=points, family=FONT, **here))
        elif column == view.rest_column and rest_points >= 6.5:
            ax.text(column + 0.5, row + 0.5, _short(value, signed), size=rest_points, family=FONT, **here)
        elif signed and value <= -0.05 * high:
            less.append((column + 0.5, row + 0.5, ink_on(face)))
    if less:  # in grey print both ends of the scale are dark: a dash tells them apart
        x, y, inks = zip(*less, strict=True)
        ax.scatter(x, y, c=inks, marker="_", s=min(8, 0.5 * cell_width) ** 2, linewidths=1.4 if cell_width > 9 else 0.8)
    for start, end in _runs(view.evidence_columns):
        line = min(size.line, 0.15 * cell_width)  # in small cells a thin frame, which hides nothing
        frame = Rectangle((start, 0), end - start, rows, fill=False, edgecolor="#000000", linewidth=line,
                          clip_on=False, zorder=6)
        frame.set_path_effects([patheffects.withStroke(linewidth=1.8 * line, foreground="#ffffff")])
        ax.add_patch(frame)
    return numbers


def _short(value: float, signed: bool) -> str:
    """A sum of weights in a narrow cell: '.25', '1.00', '−.32'."""
    shown = number(value, 2, signed)
    return shown.replace("0.", ".", 1) if abs(value) < 0.995 else shown


def _widest_rest(view: View, kind: str) -> float:
    """Width of the widest number of the rest column for type of one point."""
    sums = view.cells[np.isfinite(view.cells[:, view.rest_column]), view.rest_column] if view.rest_column is not None else []
    return max((text_width(_short(value, kind == "difference"), 1.0) for value in sums), default=1.0)


def _refit(ax: Axes, part: _Drawn, size: Sizes) -> None:
    """Token labels and numbers at the size that the axes have room for now; axis names stay as they are."""
    names = ax.get_xlabel(), ax.get_ylabel()
    _label(ax, part.view, size, rows=bool(ax.get_yticklabels()), columns=bool(ax.get_xticklabels()))
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    rows, columns = part.view.cells.shape
    width, height = _points(ax)
    points = _value_size(0.97 * width / columns, 0.97 * height / rows, part.decimals, part.kind, size)
    for text in part.numbers:
        text.set_fontsize(min(text.get_fontsize(), points or size.smallest))


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """[start, end) of each stretch of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False].astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _fitting(pitch: float, base: float, size: Sizes) -> tuple[float, int]:
    """Type size for labels `pitch` points apart, and every how many of them there is room for one."""
    points = min(base, 0.95 * pitch)
    if points >= size.smallest:
        return points, 1
    return size.smallest, int(np.ceil(size.smallest / (0.95 * pitch)))


def _thinned(count: int, step: int, special: int | None) -> list[int]:
    """Every `step`-th place, and the special one (rest or gap) in place of what would collide with it."""
    places = range(0, count, step)
    if special is None:
        return list(places)
    return sorted([place for place in places if abs(place - special) >= step] + [special])


def _label(ax: Axes, view: View, size: Sizes, rows: bool = True, columns: bool = True, axis_names: bool = True) -> None:
    """Token labels on the axes, thinned where they would collide, and the names of the axes."""
    width, height = _points(ax)
    base = size.token if axis_names else size.small
    row_size, row_step = _fitting(height / len(view.row_labels), base, size)
    turn, column_size, column_step = _turned(view.column_labels, width / len(view.column_labels), base, axis_names, size)
    row_ticks = _thinned(len(view.row_labels), row_step, view.gap_row) if rows else []
    column_ticks = _thinned(len(view.column_labels), column_step, view.rest_column) if columns else []
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
    if axis_names:
        ax.set_ylabel(QUERY_LABEL, size=size.token, parse_math=False)
        ax.set_xlabel(KEY_LABEL, size=size.token, parse_math=False)


def _turned(labels: list[str], pitch: float, base: float, slanted: bool,
            size: Sizes) -> tuple[dict[str, object], float, int]:
    """How column labels stand: level where they fit, else at 45 degrees (one map) or upright (a grid)."""
    if max(text_width(label, base, bold=True) for label in labels) <= pitch - 5:
        return {"rotation": 0}, base, 1
    if slanted:
        return {"rotation": 45, "ha": "right", "va": "top", "rotation_mode": "anchor"}, *_fitting(0.71 * pitch, base, size)
    return {"rotation": 90}, *_fitting(pitch, base, size)


def _head(ax: Axes, title: str | None, note: str, size: Sizes, room: float) -> None:
    """The title above the axes, and between them, smaller, what the reader must know of the cut."""
    lines = note.count("\n") + 1 if note else 0
    if note:
        ax.annotate(note, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", size=size.small,
                    va="bottom", linespacing=1.1, annotation_clip=False, parse_math=False)
    if title:
        shown = "\n".join(wrap_text(one_line(title), room, size.title))
        ax.set_title(shown, loc="left", size=size.title, pad=8 + lines * 1.3 * size.small, linespacing=1.1, parse_math=False)


def _colour_bar(fig: Figure, cax: Axes | None, panels: list[Axes], views: list[View], kind: str, low: float,
                high: float, size: Sizes, label: str | None = None) -> Colorbar:
    """One bar for the scale that the panels share, with arrows where values lie beyond its ends."""
    shown = np.concatenate([view.cells[view.coloured] for view in views])
    over, under = (shown > high * (1 + 1e-6)).any(), (shown < low - 1e-6 * high).any()
    extend = {(False, False): "neither", (True, False): "max", (False, True): "min", (True, True): "both"}[over, under]
    mappable = ScalarMappable(Normalize(low, high), DIFFERENCE_MAP if kind == "difference" else WEIGHT_MAP)
    place = {"cax": cax} if cax is not None else {"ax": panels, "fraction": 0.05, "pad": 0.03}
    bar = fig.colorbar(mappable, extend=extend, **place)
    ticks = scale_ticks(low, high)
    bar.set_ticks(ticks, labels=[f"{tick:.4g}".replace("-", "−") for tick in ticks])
    bar.ax.tick_params(labelsize=size.small, length=2.5)
    bar.ax.minorticks_off()
    bar.outline.set_linewidth(0.6)
    told = "attention weight" if kind == "weights" else "difference in weight (− is less)"
    bar.set_label(one_line(label) if label else told, size=size.small, parse_math=False)
    set_alt_text(bar.ax, "")
    return bar


# ---------------------------------------------------------------- figures made to measure


def _bar_room(size: Sizes) -> float:
    """Points to the right of the cells for a colour bar with its numbers and label."""
    return 14 + 13 + text_width("−0.25", size.small) + 2.2 * size.small + 6


def _figure_for(view: View, size: Sizes, title: str | None, colorbar: bool, kind: str, values: object,
                decimals: int) -> tuple[Axes, Axes | None]:
    """A figure at most nine inches wide whose cells have room for their labels; its axes and its bar's axes."""
    rows, columns = view.cells.shape
    left = max(text_width(label, size.token, bold=True) for label in view.row_labels) + 1.9 * size.token + 12
    right = _bar_room(size) if colorbar else 10.0
    room = 9 * INCH - left - right
    widest = text_width("+0." + "0" * decimals, size.token) + 12 if values else 30.0
    cell_width = float(np.clip(room / columns, 12, max(62, widest)))
    # Cells a little wider than high, as numbers are, and rows far enough apart for their labels.
    cell_height = float(np.clip(330 / rows, 1.3 * size.small, min(0.72 * cell_width if columns > 3 else 44, 44)))
    cell_height = max(cell_height, 1.3 * size.small)
    width, height = cell_width * columns, cell_height * rows
    turn, label_size, _ = _turned(view.column_labels, cell_width, size.token, slanted=True, size=size)
    longest = max(text_width(label, label_size, bold=True) for label in view.column_labels)
    bottom = (0.71 * longest if turn["rotation"] else 0) + 3.2 * label_size + 8
    total = max(left + width + right, 400.0)
    note = wrap_text(" ".join(view.notes), width, size.small)
    lines = wrap_text(one_line(title), total - left - 10, size.title) if title else []
    top = len(note) * 1.3 * size.small + len(lines) * 1.3 * size.title + 12
    tall = bottom + height + top
    fig = plt.figure(figsize=(total / INCH, tall / INCH))
    ax = fig.add_axes((left / total, bottom / tall, width / total, height / tall))
    cax = None
    if colorbar:
        bar = max(min(height, 220.0), 60.0)
        cax = fig.add_axes(((left + width + 14) / total, (bottom + height - bar) / tall, 13 / total, bar / tall))
    return ax, cax


def _columns(heads: int) -> int:
    """Panels side by side for so many heads: rows of three or four."""
    return heads if heads <= 4 else 3 if heads in (5, 6, 9) else 4


def _grid_for(views: list[View], columns: int, size: Sizes, title: str | None,
              kind: str) -> tuple[Figure, list[Axes], Axes]:
    """A figure nine inches wide with equal panels, their shared axis names and the axes of the bar."""
    view, gap, total = views[0], 9.0, 9 * INCH
    rows = -(-len(views) // columns)
    left = max(text_width(label, size.small, bold=True) for label in view.row_labels) + 1.9 * size.token + 10
    right = _bar_room(size)
    width = min((total - left - right - gap * (columns - 1)) / columns, 230.0)
    total = max(left + columns * width + (columns - 1) * gap + right, 430.0)
    wanted = 1.06 * size.smallest * len(view.row_labels)  # enough for every row's label
    height = float(np.clip(wanted, 0.75 * width, max(1.35 * width, 60)))
    turn, label_size, step = _turned(view.column_labels, width / len(view.column_labels), size.small, False, size)
    longest = max(text_width(view.column_labels[i], label_size, bold=True)
                  for i in _thinned(len(view.column_labels), step, view.rest_column))
    bottom = (longest if turn["rotation"] else label_size) + 8 + 1.9 * size.token
    between = 1.8 * size.small + 4
    note = wrap_text(" ".join(view.notes), total - left - 10, size.small)
    lines = wrap_text(one_line(title), total - 20, size.title) if title else []
    top = len(note) * 1.3 * size.small + len(lines) * 1.35 * size.title + between + 6
    height = min(height, max((size.tallest - top - bottom - (rows - 1) * between) / rows, 44.0))
    body = rows * height + (rows - 1) * between
    tall = bottom + body + top
    fig = plt.figure(figsize=(total / INCH, tall / INCH))
    panels = []
    for i in range(len(views)):
        row, column = divmod(i, columns)
        panels.append(fig.add_axes(((left + column * (width + gap)) / total,
                                    (bottom + body - height - row * (height + between)) / tall,
                                    width / total, height / tall)))
    wide = columns * width + (columns - 1) * gap
    bar = min(body, 260.0)
    cax = fig.add_axes(((left + wide + 14) / total, (bottom + body - bar) / tall, 13 / total, bar / tall))
    keys = KEY_LABEL + (", the same tokens as the rows" if view.one_text else "")
    fig.text((left + wide / 2) / total, 0.3 * size.token / tall, keys, ha="center", va="bottom", size=size.token)
    fig.text(0.4 * size.token / total, (bottom + body / 2) / tall, QUERY_LABEL, ha="left", va="center", rotation=90,
             size=size.token)
    head = 1 - 6 / tall
    if lines:
        fig.text(10 / total, head, "\n".join(lines), ha="left", va="top", size=size.title, linespacing=1.1)
        head -= len(lines) * 1.35 * size.title / tall
    if note:
        fig.text(10 / total, head, "\n".join(note), ha="left", va="top", size=size.small, linespacing=1.1)
    return fig, panels, cax


# ---------------------------------------------------------------- words


def _evidence_words(evidence: object, keys: object, length: int) -> list[str]:
    flags = to_flags(evidence, length, "evidence")
    tokens = to_tokens(keys, length, "tokens", "keys")
    return [f"'{display_token(tokens[i], 30)}' (key {i})" for i in np.flatnonzero(flags)]


def _describe_grid(fig: Figure, panels: list[Axes], views: list[View], names: list[str], shape: tuple[int, ...],
                   kind: str, low: float, high: float, marked: list[str], title: str | None) -> None:
    """Attach the description of the grid, panel by panel, to the figure, and of each panel to its axes."""
    arranged = f"{shape[0]} layers by {shape[1]} heads" if len(shape) == 4 else count(shape[0], "head", "heads")
    text = f"{sentence(title)} " if title else ""
    text += (f"Grid of {arranged}, each a heatmap of {count(shape[-2], 'query', 'queries')} (rows, attend from) "
             f"by {count(shape[-1], 'key', 'keys')} (columns, attended to), on one colour scale "
             f"from {low:.4g} to {high:.4g}. Rows: {spoken(views[0].row_labels)}. ")
    if not views[0].one_text:
        text += f"Columns: {spoken(views[0].column_labels)}. "
    parts = []
    for ax, view, name in zip(panels, views, names, strict=True):
        set_alt_text(ax, describe_view(view, shape[-2:], kind, low, high, marked))
        parts.append(f"{one_line(name, 60)}: largest {view.strongest[0] if view.strongest else 'is zero'}.")
    text += " ".join(parts)
    if marked:
        text += f" Evidence outlined: {', '.join(marked)}."
    set_alt_text(fig, " ".join([text, *views[0].notes]))
