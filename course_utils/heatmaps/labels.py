"""The words around a heatmap: token labels, names of the axes, the title and the note below it.

Does: choose type sizes that fit, turn or thin labels that would collide. Does not: draw cells or bars.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes

from course_utils.figures import Sizes
from course_utils.figures.text import FONT, display_token, one_line, text_width, wrap_text
from course_utils.heatmaps.cells import points_of
from course_utils.heatmaps.views import View, to_flags, to_tokens

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
