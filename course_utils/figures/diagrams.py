"""Labelled diagrams drawn by code: boxes, operations, arrows with shapes at them, dashed groups.

What it does: `Diagram` takes names and places on a grid; sizes, distances, routes, type and the alternative text follow
from what is written (`diagram_layout`), and what would overlap is an error in words. What it does not do: choose the
places, or draw data (see `tokens` for sequences and batches, `course_utils.heatmaps` for weights).

    d = Diagram()
    d.box("x", at=(0, 1), shape="(token, d_model)")
    d.box("q", at=(1, 0), text="query", shape="(token, d_head)", colour="green")
    d.operation("softmax", at=(2, 0))
    d.arrow("x", "q", text="$W_q$")
    d.arrow("q", "softmax")
    fig = d.figure("One head")
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from course_utils.figures.appearance import STYLES, Sizes, sizes, style
from course_utils.figures.diagram_layout import INCH, WIDTH, Plan
from course_utils.figures.diagram_parts import Arrow, Group, Item, plain
from course_utils.figures.saving import set_alt_text
from course_utils.figures.text import FONT, sentence

# Face and edge. Blue and orange are not among them: they mean positive and negative.
TINTS = {"white": ("#ffffff", "#4d4d4d"), "grey": ("#ececec", "#6e6e6e"), "green": ("#dff1e3", "#1B8A3A"),
         "purple": ("#efe1f3", "#882D8E"), "yellow": ("#f6f0c4", "#6B6100"), "rose": ("#fbe3ea", "#B8345F"),
         "none": ("none", "none")}
SIDES = ("left", "right", "top", "bottom")
SHAPE_INK, GROUP_INK = "#3d3d3d", "#5a5a5a"
CORNER = 6.0  # points: the rounding of boxes and of elbows


class Diagram:
    """A diagram on a grid of columns (to the right) and rows (downwards).

    Places are `at=(column, row)`, counted from zero; a fraction such as 0.5 stands between two. Columns are as wide and
    rows as high as what stands in them, so that text never leaves its box. Text may hold mathematics, `$W_q$`, and line
    breaks.
    """

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._arrows: list[Arrow] = []
        self._groups: list[Group] = []

    def box(self, name: str, *, at: tuple[float, float], text: str | None = None, shape: str | None = None,
            colour: str = "white", copies: int = 1) -> None:
        """A box with `text` (or else its name) and under it, smaller, a shape such as '(query, key)'.

        Args:
            colour: 'white', 'grey', 'green', 'purple', 'yellow', 'rose', or 'none' for words without a frame.
            copies: so many boxes behind one another, as for several heads; up to 4 are drawn.

        Raises:
            ValueError: a name that is taken, a place that is no pair of numbers, another colour, fewer than one copy.
        """
        self._add(Item(name, *_place(at, name), _lines(name if text is None else text, name), shape or "", "box", colour,
                       copies))

    def operation(self, name: str, *, at: tuple[float, float], text: str | None = None, colour: str = "grey") -> None:
        """A rounded node: a circle round a sign such as '+' or '×', a longer word such as 'softmax' in a pill."""
        self._add(Item(name, *_place(at, name), _lines(name if text is None else text, name), "", "operation", colour, 1))

    def arrow(self, start: str, end: str, *, text: str | None = None, shape: str | None = None, leave: str | None = None,
              enter: str | None = None, dashed: bool = False) -> None:
        """An arrow from one box to another, with `text` over the line and `shape` under it (beside an upright one).

        Boxes in one row or one column are joined by a straight line, others by an elbow: out to the side and in from the
        side, unless `leave` and `enter` name other sides ('left', 'right', 'top', 'bottom'). The same side twice leads
        round what stands between, as a residual connection does.
        """
        for given in (start, end):
            if given not in self._items:
                raise ValueError(f"arrow from {start!r} to {end!r}: there is no box {given!r}; there are: "
                                 f"{', '.join(self._items) or 'none yet'}. Draw boxes before arrows")
        if start == end:
            raise ValueError(f"arrow from {start!r} to itself; expected two different boxes")
        for word, side in (("leave", leave), ("enter", enter)):
            if side is not None and side not in SIDES:
                raise ValueError(f"{word}={side!r}; expected one of {', '.join(SIDES)}")
        one, other = self._items[start], self._items[end]
        if one.column == other.column:
            usual = ("bottom", "top") if other.row > one.row else ("top", "bottom")
        else:
            usual = ("right", "left") if other.column > one.column else ("left", "right")
        self._arrows.append(Arrow(start, end, text or "", shape or "", leave or usual[0], enter or usual[1], dashed))

    def group(self, caption: str, around: Iterable[str]) -> None:
        """A dashed frame around boxes, with a caption such as 'head 0' or '× num_layers' above them.

        Arrows between two of the boxes belong to it. Groups may stand in one another.
        """
        names = list(around)
        missing = [name for name in names if name not in self._items]
        if missing or not names:
            raise ValueError(f"group {caption!r}: expected names of boxes, got {missing or 'none'}; there are: "
                             f"{', '.join(self._items) or 'none yet'}")
        self._groups.append(Group(caption, tuple(names)))

    def figure(self, title: str | None = None) -> Figure:
        """Draw it, nine inches wide and as high as it needs, at most 16:9; its alternative text lists boxes and arrows.

        Raises:
            ValueError: nothing to draw; boxes, labels and arrows that overlap; more than fits, in either style.
        """
        if not self._items:
            raise ValueError("the diagram is empty: add boxes with d.box(name, at=(column, row))")
        parts = (list(self._items.values()), self._arrows, self._groups, title)
        plans = {name: Plan(*parts, size, name) for name, size in STYLES.items()}  # what fits must fit in both
        size = sizes()
        plan = next(plans[name] for name in STYLES if STYLES[name] == size)
        with mpl.rc_context(style()):
            fig = plt.figure(figsize=(WIDTH / INCH, plan.height / INCH))
            ax = fig.add_axes((0, 0, 1, 1), label="diagram")
            ax.set_axis_off()
            ax.set(xlim=(0, WIDTH), ylim=(plan.height, 0))
            _draw(ax, plan, size)
        set_alt_text(fig, self._describe(title))
        return fig

    def _add(self, item: Item) -> None:
        if item.name in self._items:
            raise ValueError(f"there is a box {item.name!r} already; give each a name of its own, and the words with text=")
        if item.colour not in TINTS:
            raise ValueError(f"{item.name!r}: colour={item.colour!r}; expected one of {', '.join(TINTS)} (blue and orange "
                             f"mean positive and negative, and colour no boxes)")
        if item.copies < 1:
            raise ValueError(f"{item.name!r}: copies={item.copies}; expected 1 or more")
        self._items[item.name] = item

    def _describe(self, title: str | None) -> str:
        """'Diagram. Boxes: x (token, d_model); query (token, d_head). Arrows: x → query (W_q).'"""
        called = {name: " ".join(plain(" ".join(item.lines)).split()) for name, item in self._items.items()}

        def listed(item: Item) -> str:
            stack = f", {item.copies} behind one another" if item.copies > 1 else ""
            return " ".join(filter(None, [called[item.name], plain(item.shape)])) + stack

        def joined(arrow: Arrow) -> str:
            words = ", ".join(" ".join(plain(part).split()) for part in (arrow.text, arrow.shape) if part)
            return f"{called[arrow.start]} → {called[arrow.end]}" + (f" ({words})" if words else "")

        parts = [sentence(plain(title))] if title else []
        parts.append(f"Diagram. Boxes: {'; '.join(listed(item) for item in self._items.values())}.")
        if self._arrows:
            parts.append(f"Arrows: {'; '.join(joined(arrow) for arrow in self._arrows)}.")
        parts += [f"Framed as '{' '.join(plain(group.caption).split())}': "
                  f"{', '.join(called[name] for name in group.names)}." for group in self._groups]
        return " ".join(parts)


def _place(at: object, name: str) -> tuple[float, float]:
    try:
        column, row = (float(value) for value in at)
    except (TypeError, ValueError):
        raise ValueError(f"{name!r}: at={at!r}; expected (column, row), counted from zero, such as (2, 1)") from None
    if not (0 <= column < 100 and 0 <= row < 100):
        raise ValueError(f"{name!r}: at={at!r}; columns and rows count from 0 at the top left")
    return column, row


def _lines(text: str, name: str) -> tuple[str, ...]:
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"box {name!r} has text={text!r}; expected words")
    return tuple(text.split("\n"))


# ---------------------------------------------------------------- drawing


def _draw(ax: Axes, plan: Plan, size: Sizes) -> None:
    """Everything in the plan, from back to front: frames of groups, arrows, boxes, words."""
    looks = {"family": FONT, "linespacing": 1.15}
    thin = 0.6 * size.line
    for line in plan.title:
        ax.text(line.x, line.y, line.text, size=line.size, ha="left", va="center", gid="title", **looks)
    for frame, caption in plan.groups:
        ax.add_patch(FancyBboxPatch((frame.left, frame.top), frame.width, frame.height, facecolor="none",
                                    boxstyle=f"round,pad=0,rounding_size={CORNER + 3}", edgecolor=GROUP_INK,
                                    linewidth=0.8 * thin, linestyle=(0, (5, 4)), zorder=1))
        ax.text(caption.x, caption.y, caption.text, size=caption.size, ha="left", va="center", color=GROUP_INK,
                weight="bold", gid="caption", zorder=5, **looks)
    for route in plan.routes:
        line = {"mutation_scale": 13 + 2 * thin, "linewidth": thin, "color": size.ink, "shrinkA": 0, "shrinkB": 0,
                "joinstyle": "miter", "capstyle": "butt", "zorder": 2}
        head = "-|>,head_length=0.45,head_width=0.24"
        if route.arrow.dashed:  # the head stays whole
            *rest, before, end = route.points
            near = tuple(e + min(1.0, 9 / math.dist(before, end)) * (b - e) for b, e in zip(before, end, strict=True))
            ax.add_patch(FancyArrowPatch(path=_rounded([*rest, before, near]), arrowstyle="-", linestyle=(0, (4, 3)),
                                         **line))
            ax.add_patch(FancyArrowPatch(path=_rounded([near, end]), arrowstyle=head, **line))
        else:
            ax.add_patch(FancyArrowPatch(path=_rounded(route.points), arrowstyle=head, **line))
        for label in route.labels:
            ax.text(label.x, label.y, label.text, size=label.size, ha=label.ha, va="center", color=size.ink, gid="label",
                    zorder=4, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6}, **looks)
    for item, frame in plan.frames:
        face, edge = TINTS[item.colour]
        rounding = CORNER if item.kind == "box" else frame.height / 2
        for back in range(plan.copies(item) - 1, -1, -1):
            off = back * plan.offset
            ax.add_patch(FancyBboxPatch((frame.left + off, frame.top - off), frame.width, frame.height, facecolor=face,
                                        edgecolor=edge, linewidth=thin, zorder=3,
                                        boxstyle=f"round,pad=0,rounding_size={rounding}"))
        for line in plan.words(item, frame):
            ax.text(line.x, line.y - 0.06 * line.size, line.text, size=line.size, ha="center", va="center_baseline",
                    gid="box", zorder=4, color=SHAPE_INK if line.small else size.ink, **looks)


def _rounded(points: list[tuple[float, float]]) -> Path:
    """A line through the points with rounded elbows."""
    vertices, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        for toward, code in ((before, Path.LINETO), (after, None)):
            distance = abs(toward[0] - corner[0]) + abs(toward[1] - corner[1])
            share = min(CORNER, distance / 2) / distance
            near = tuple(c + share * (t - c) for c, t in zip(corner, toward, strict=True))
            if code is not None:
                vertices.append(near)
                codes.append(code)
            else:
                vertices += [corner, near]
                codes += [Path.CURVE3, Path.CURVE3]
    return Path([*vertices, points[-1]], [*codes, Path.LINETO])
