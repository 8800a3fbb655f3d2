"""The still picture of an attention view: one head as a heatmap in SVG, a few kB, beside the head it is compared with.

Does: draw what `heatmaps.views` has checked and cut; for a file, with the picked token's weights over the text. Does not:
draw for print (see `course_utils.heatmaps`).
"""

from __future__ import annotations

import html
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_hex

from course_utils.figures import WEIGHT_MAP, ink_on
from course_utils.figures.text import display_token, one_line, text_width, wrap_text
from course_utils.heatmaps.matrices import DARKER, LIGHTEST_SUM, MOST_PRINTED
from course_utils.heatmaps.views import View, cut, number

# all in pixels
WIDTH, GAP, LETTERS, SMALL = 900, 24, 13, 11
LARGEST_CELL, SMALLEST_CELL, HEAD, FOOT, APART = 44, 9, 56, 34, 8
SHADES, FEW_SHADES = 16, 8  # the second where cells are too small for numbers
TALLEST = 460  # a map
CHIP = 36  # the height of a token with its weight below it
LINE = "#b8b8b8"
AXES = "rows: query (attends from); columns: key (attended to)"


@dataclass(frozen=True)
class Row:
    """A picked token and what it attends to."""

    query: int
    queries: list[str]
    keys: list[str]
    weights: np.ndarray  # (key,)
    one_text: bool


def still_picture(views: list[View], pooled: list[View | None], titles: list[str], vmax: float, note: str,
                  picked: list[Row | None] = (), alt: str = "") -> str:
    """One SVG with a heatmap for each view, side by side on one scale from 0 to `vmax`, named by `titles`.

    Below each map is the row of its pooling weights, where there are any. With `picked`, the weights of a view's picked
    token stand above its map, where its row has a frame; `alt` is written into the picture.
    """
    wide = (WIDTH - GAP * (len(views) - 1)) / len(views)
    above = [_text_of_row(row, vmax, wide) if row else ("", 0.0) for row in picked]
    room = max((height for _, height in above), default=0.0)
    drawn, tallest = [], 0.0
    for k, (view, row, title) in enumerate(zip(views, pooled, titles, strict=True)):
        text, height = _map(view, row, title, vmax, wide, picked[k] if picked else None)
        if room:
            text = f'{above[k][0]}<g transform="translate(0,{room:.0f})">{text}</g>'
        drawn.append(f'<g transform="translate({k * (wide + GAP):.0f},0)">{text}</g>')
        tallest = max(tallest, height + room)
    lines = wrap_text(note, WIDTH - 30, SMALL)
    height = round(tallest + FOOT) + 16 * (len(lines) - 1)
    below = "".join(f'<text x="8" y="{height - 10 - 16 * (len(lines) - 1 - k)}">{html.escape(line)}</text>'
                    for k, line in enumerate(lines))
    told = f"<title>{html.escape(titles[0])}</title><desc>{html.escape(alt)}</desc>" if alt else ""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" font-family="DejaVu Sans,Segoe UI,sans-serif" font-size="{LETTERS}">{told}'
            f'<rect width="100%" height="100%" fill="#fff"/>{"".join(drawn)}'
            f'<g font-size="{SMALL}" fill="#555">{below}</g></svg>')


def _text_of_row(row: Row, vmax: float, wide: float) -> tuple[str, float]:
    """The keys as a line of text, each on the colour of its weight and above the number, and the height it takes."""
    who = f"‘{display_token(row.queries[row.query], 30)}’ ({row.query}) attends to"
    parts, x, y = [f'<text x="8" y="20" font-weight="bold">{html.escape(who)}</text>'], 8.0, 32
    for key, (token, weight) in enumerate(zip(row.keys, row.weights.tolist(), strict=True)):
        label = display_token(token, 24)
        size = max(text_width(label, LETTERS), text_width("0.00", SMALL)) + 10
        if x + size > wide - 8 and x > 8:
            x, y = 8.0, y + CHIP + 4
        colour = _shade(weight, vmax, SHADES) or "#ffffff"
        frame = ' stroke-width="3"' if row.one_text and key == row.query else ""
        edge = "#000" if frame else LINE
        ink = ink_on(colour)
        middle = f"{x + size / 2:.0f}"
        parts.append(f'<g text-anchor="middle" fill="{ink}"><rect x="{x:.0f}" y="{y}" width="{size:.0f}" height="{CHIP}" '
                     f'rx="3" fill="{colour}" stroke="{edge}"{frame}/>'
                     f'<text x="{middle}" y="{y + 15}">{html.escape(label)}</text>'
                     f'<text x="{middle}" y="{y + 30}" font-size="{SMALL}">{number(weight, 2)}</text></g>')
        x += size + 4
    return "".join(parts), y + CHIP + 8.0


def _frame(view: View, row: Row, cell: int, columns: int) -> str:
    """A frame around the picked row, '' where the map leaves it out."""
    head, tail = cut(len(row.queries), view.cells.shape[0] if view.gap_row is not None else len(row.queries))
    place = row.query if row.query < len(head) else row.query - len(row.queries) + len(head) + 1 + len(tail)
    if len(head) <= row.query < len(row.queries) - len(tail):
        return ""
    return f'<rect y="{place * cell}" width="{columns * cell}" height="{cell}" fill="none" stroke="#000" stroke-width="3"/>'


def _map(view: View, pooled: View | None, title: str, vmax: float, wide: float, picked: Row | None) -> tuple[str, float]:
    """One heatmap with its labels and title, and the height it takes."""
    rows, columns = view.cells.shape
    labels = [*view.row_labels, *(pooled.row_labels if pooled else [])]
    left = max(text_width(label, LETTERS) for label in labels) + 14
    below = 0.75 * max(text_width(label, LETTERS) for label in view.column_labels) + 20
    cell = max(SMALLEST_CELL, min(LARGEST_CELL, int((wide - left - 8) / columns), TALLEST // rows))
    letters, foot = min(LETTERS, cell), rows * cell
    parts = [f'<text x="8" y="20" font-weight="bold">{html.escape(one_line(title, 60))}</text>',
             f'<text x="8" y="40" font-size="{SMALL}" fill="#555">{AXES}</text>',
             f'<g transform="translate({left:.0f},{HEAD})"><g shape-rendering="crispEdges" transform="scale({cell})">',
             *_runs(view, vmax), "</g>", *_numbers(view, vmax, cell, letters),
             f'<rect width="{columns * cell}" height="{rows * cell}" fill="none" stroke="{LINE}"/>']
    if picked:
        parts.append(_frame(view, picked, cell, columns))
    if pooled:
        foot += cell + APART
        parts += [f'<g transform="translate(0,{rows * cell + APART})">',
                  f'<g shape-rendering="crispEdges" transform="scale({cell})">',
                  *_runs(pooled, vmax), "</g>", *_numbers(pooled, vmax, cell, letters),
                  f'<rect width="{columns * cell}" height="{cell}" fill="none" stroke="{LINE}"/></g>']
    parts.append(f'<g text-anchor="end" font-size="{letters}">')
    for row, label in enumerate(labels):
        y = (row + 0.5) * cell + 0.35 * letters + (APART if row == rows else 0)
        parts.append(f'<text x="-6" y="{y:.0f}">{html.escape(label)}</text>')
    for column, label in enumerate(view.column_labels):
        x, y = (column + 0.5) * cell + 0.3 * letters, foot + 12
        parts.append(f'<text transform="translate({x:.0f},{y}) rotate(-45)">{html.escape(label)}</text>')
    return "".join([*parts, "</g></g>"]), HEAD + foot + below


def _runs(view: View, vmax: float) -> list[str]:
    """Cells of one shade next to each other as one line as wide as a cell, all lines of a shade in one path."""
    lines: dict[str, list[str]] = {}
    for row in range(view.cells.shape[0]):
        colours = [_colour(view, row, column, vmax) for column in range(view.cells.shape[1])]
        start = 0
        for column in range(1, len(colours) + 1):
            if column == len(colours) or colours[column] != colours[start]:
                if colours[start]:
                    lines.setdefault(colours[start], []).append(f"M{start} {row}h{column - start}")
                start = column
    return [f'<path transform="translate(0,.5)" stroke="{colour}" d="{"".join(path)}"/>'
            for colour, path in sorted(lines.items())]


def _colour(view: View, row: int, column: int, vmax: float) -> str:
    """The colour of a cell, '' for white: a weight's shade, grey for a sum, a darker grey for a row without keys."""
    if row == view.gap_row:
        return ""
    if view.empty_rows[row]:
        return "#c4c4c4"
    value = float(view.cells[row, column])
    if column == view.rest_column:
        return to_hex((LIGHTEST_SUM - DARKER * round(min(value, 1.0), 1),) * 3)
    return _shade(value, vmax, SHADES if max(view.cells.shape) <= MOST_PRINTED else FEW_SHADES)


def _shade(value: float, vmax: float, shades: int) -> str:
    """The colour of a weight in so many steps, '' for white."""
    shade = round(round(min(value / vmax, 1.0), 6) * (shades - 1))
    return to_hex(WEIGHT_MAP(shade / (shades - 1))) if shade else ""


def _numbers(view: View, vmax: float, cell: int, letters: float) -> list[str]:
    """The values where the cells are large enough for them."""
    if max(view.cells.shape) > MOST_PRINTED or cell < 30:
        return []
    texts = []
    for row in range(view.cells.shape[0]):
        for column in range(view.cells.shape[1]):
            if row != view.gap_row and not view.empty_rows[row]:
                ink = ink_on(_colour(view, row, column, vmax) or "#ffffff")
                fill = ' fill="#fff"' if ink == "#ffffff" else ""
                texts.append(f'<text x="{(column + 0.5) * cell:g}" y="{(row + 0.5) * cell + 4:g}"{fill}>'
                             f"{number(view.cells[row, column], 2)}</text>")
    return [f'<g text-anchor="middle" font-size="{min(letters, SMALL)}">', *texts, "</g>"]
