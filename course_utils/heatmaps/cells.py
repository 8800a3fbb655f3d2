"""The cells of a heatmap, the numbers in them, and the frames around the evidence.

Does: draw a `View` on axes in the colours of a `Scale`. Does not: check or cut (see `views`), label (see `labels`).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from course_utils.figures import DIFFERENCE_MAP, WEIGHT_MAP, Sizes, ink_on, lettering
from course_utils.figures.text import FONT, text_width
from course_utils.heatmaps.views import View, number, scale_limits

INCH = 72.0  # points
MOST_PRINTED = 12  # numbers in cells stop being legible beyond this many rows or columns
GRID_LINE, EMPTY, PADDING, HATCHING, DOTS = "#dcdcdc", "#c4c4c4", "#e6e6e6", "#8c8c8c", "#6a6a6a"
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
    def over(cls, views: list[View], kind: str, vmin: float, vmax: float | None) -> Scale:
        """The scale for what is drawn together; `vmax=None` takes a round number just above the largest weight."""
        largest = max((float(np.abs(view.cells[view.coloured]).max(initial=0.0)) for view in views), default=0.0)
        return cls(kind, *scale_limits(largest, kind, vmin, vmax))

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
        for row in np.flatnonzero(~view.padded_rows & ~view.empty_rows):
            if row != view.gap_row:
                grey = f"{LIGHTEST_SUM - DARKER * float(np.clip(abs(view.cells[row, view.rest_column]), 0, 1)):.3f}"
                block(row, view.rest_column, facecolor=grey)
                faces[row, view.rest_column] = grey
    for row in np.flatnonzero(view.empty_rows):
        block(row, 0, width=columns, facecolor=EMPTY)
    hatching = {"hatch": "////", "edgecolor": HATCHING, "linewidth": 0}
    for column in np.flatnonzero(view.padded_columns):
        for row in range(rows):
            if not view.padded_rows[row] and row != view.gap_row:
                block(row, column, facecolor="none" if view.coloured[row, column] else PADDING, **hatching)
    for row in np.flatnonzero(view.padded_rows):
        block(row, 0, width=columns, facecolor=PADDING, **hatching)
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
