"""Labelled diagrams drawn by code: boxes, operations, arrows with shapes at them, dashed groups.

What it does: `Diagram` takes names and places on a grid; sizes, distances, routes, type and the alternative text follow
from what is written, and what would overlap is an error in words. What it does not do: choose the
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
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib import cbook
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from course_utils.figures.appearance import STYLES, Sizes, sizes, style
from course_utils.figures.saving import set_alt_text
from course_utils.figures.text import FONT, sentence, text_width, wrap_text

# what a diagram is made of, in points from the top left

class Item(NamedTuple):
    name: str
    column: float
    row: float
    lines: tuple[str, ...]
    shape: str
    kind: str  # 'box' or 'operation'
    colour: str
    copies: int


class Arrow(NamedTuple):
    start: str
    end: str
    text: str
    shape: str
    leave: str
    enter: str
    dashed: bool


class Group(NamedTuple):
    caption: str
    names: tuple[str, ...]


class Frame(NamedTuple):
    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def middle(self) -> tuple[float, float]:
        return self.left + self.width / 2, self.top + self.height / 2

    def side(self, name: str) -> tuple[float, float]:
        x, y = self.middle
        return {"left": (self.left, y), "right": (self.right, y), "top": (x, self.top), "bottom": (x, self.bottom)}[name]


class Words(NamedTuple):
    """One line or more of text: (x, y) is its middle in height and, by `ha`, its left end or its middle."""
    x: float
    y: float
    text: str
    size: float
    ha: str = "center"
    small: bool = False

    @property
    def frame(self) -> Frame:
        lines = self.text.split("\n")
        width = max(measure(line, self.size) for line in lines)
        height = 1.2 * self.size * len(lines)
        return Frame(self.x - (width / 2 if self.ha == "center" else 0), self.y - height / 2, width, height)


@dataclass
class Route:
    arrow: Arrow
    points: list[tuple[float, float]]
    labels: list[Words]
    piece: tuple[tuple[float, float], tuple[float, float], bool] | None  # where labels stand: from, to, ends in the head


@lru_cache(maxsize=20_000)
def measure(text: str, size: float, bold: bool = False) -> float:
    """Width in points of one line, mathematics between dollar signs included."""
    if not cbook.is_math_text(text):
        return text_width(text, size, bold)
    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=True)[0])


def plain(text: str) -> str:
    """The text without the signs of mathematics: 'W_q' for '$W_q$'."""
    if not cbook.is_math_text(text):
        return text
    for sign, word in (("\\times", "×"), ("\\sqrt", "√"), ("\\cdot", "·"), ("\\top", "T"), ("$", ""), ("{", ""), ("}", ""),
                       ("\\", "")):
        text = text.replace(sign, word)
    return text


def upright(side: str) -> bool:
    """Whether a line that leaves at this side goes up or down."""
    return side in ("top", "bottom")


def hull(rects: list[Frame]) -> tuple[float, float, float, float]:
    return (min(r.left for r in rects), min(r.top for r in rects), max(r.right for r in rects),
            max(r.bottom for r in rects))


def overlap(one: Frame, other: Frame, slack: float = 0.5) -> bool:
    """Whether two frames share more than `slack` points in both directions."""
    return (min(one.right, other.right) - max(one.left, other.left) > slack
            and min(one.bottom, other.bottom) - max(one.top, other.top) > slack)


# where the parts stand

INCH, WIDTH = 72.0, 648.0  # points: nine inches
MOST_HIGH = WIDTH * 9 / 16
MARGIN = 8.0
PAD_X, PAD_Y = 9.0, 6.0  # inside a box, beside and above its text
ELBOW, HEAD = 14.0, 12.0  # from a box to the elbow beside it; the length of an arrow's head with some line before it
LEAST_GAP, MOST_GAP = 22.0, 76.0  # between columns
ROW_GAP = 24.0
AROUND = 17.0  # between a box and the line that leads round it
GROUP_PAD = 13.0
LINE = 1.3  # height of a line in its type size
MOST_COPIES = 4


class Plan:
    """A diagram laid out at the largest type that fits. All places in points from the top left.

    Raises ValueError where it does not fit even with the smallest type of the style, or where things overlap.
    """

    def __init__(self, items: list[Item], arrows: list[Arrow], groups: list[Group], title: str | None, size: Sizes,
                 called: str):
        self.items, self.arrows, self.size = {item.name: item for item in items}, arrows, size
        self.group_list = sorted(groups, key=lambda group: len(group.names))  # inner ones first
        smallest = size.smallest / size.shape
        ratio = 1.0
        while True:
            self.token, self.small = ratio * size.token, ratio * size.shape
            self.offset = 0.4 * self.small
            width = self._lay_out(title)
            if (width <= WIDTH and self.height <= MOST_HIGH) or ratio <= smallest:
                break
            ratio = max(smallest, ratio - 0.04)
        for what, got, most in (("wide", width, WIDTH), ("high", self.height, MOST_HIGH)):
            if got > most + 0.5:
                raise ValueError(f"the diagram is {got:.0f} points {what} with the smallest type of the style '{called}', "
                                 f"and {most:.0f} fit on a slide: use fewer {'columns' if what == 'wide' else 'rows'}, or "
                                 f"shorter text")
        self._check()

    # ------------------------------------------------------------ sizes

    def copies(self, item: Item) -> int:
        return min(item.copies, MOST_COPIES)

    def _natural(self, item: Item) -> tuple[float, float]:
        """Width and height that the text of a box or an operation needs."""
        wide = max([measure(line, self.token) for line in item.lines] + [measure(item.shape, self.small)])
        high = LINE * self.token * len(item.lines) + (LINE * self.small if item.shape else 0)
        if item.kind == "operation":
            height = high + PAD_Y
            return (max(height, wide + 8) if len(item.lines[0]) <= 2 else wide + 2 * PAD_X + 4), height
        return wide + 2 * PAD_X, high + 2 * PAD_Y

    def words(self, item: Item, frame: Frame) -> list[Words]:
        """The lines of text in a box."""
        sizes = [self.token] * len(item.lines) + ([self.small] if item.shape else [])
        x, y = frame.middle
        y -= LINE * sum(sizes) / 2
        words = []
        for i, (text, points) in enumerate(zip([*item.lines, item.shape], sizes, strict=False)):
            words.append(Words(x, y + LINE * points / 2, text, points, small=i == len(item.lines)))
            y += LINE * points
        return words

    def _sizes(self) -> dict[str, tuple[float, float]]:
        """Boxes of one column are equally wide, those of one row equally high."""
        natural = {name: self._natural(item) for name, item in self.items.items()}
        boxes = [item for item in self.items.values() if item.kind == "box" and item.colour != "none"]
        for item in boxes:
            wide = max(natural[other.name][0] for other in boxes if other.column == item.column)
            high = max(natural[other.name][1] for other in boxes if other.row == item.row)
            natural[item.name] = (wide, high)
        return natural

    def _label_width(self, arrow: Arrow) -> float:
        return max((measure(line, self.small) for line in f"{arrow.text}\n{arrow.shape}".split("\n") if line), default=0.0)

    def _label_height(self, arrow: Arrow) -> float:
        return LINE * self.small * sum(len(text.split("\n")) for text in (arrow.text, arrow.shape) if text)

    # ------------------------------------------------------------ places

    def _lay_out(self, title: str | None) -> float:
        """Place everything; returns the width that it needs, which may be more than there is."""
        sizes = self._sizes()
        claims = self._claims(sizes)
        gaps = self._gaps(sizes)
        width = 0.0
        for extra in (0.0, None):
            if extra is None:  # a second time, with what is left over between the columns
                spare = (WIDTH - width) / max(1, len(gaps[0]))
                if spare <= 0:
                    break
                gaps = [max(gap, min(gap + spare, MOST_GAP)) for gap in gaps[0]], gaps[1]
            centres = [_spread({index: [claims[name][2 * axis:2 * axis + 2] for name, item in self.items.items()
                                        if (item.column, item.row)[axis] == index] for index in range(len(gaps[axis]) + 1)},
                               gaps[axis]) for axis in (0, 1)]
            frames = {}
            for name, item in self.items.items():
                x, y = _between(centres[0], item.column), _between(centres[1], item.row)
                w, h = sizes[name]
                frames[name] = Frame(x - w / 2, y - h / 2, w, h)
            self.placed = frames
            self.routes = [self._route(arrow) for arrow in self.arrows]
            self._frame_groups()
            self._clear_of_groups()
            left, top, right, bottom = self._bounds()
            width = right - left + 2 * MARGIN
        heading = []
        y = MARGIN
        for line in wrap_text(title, WIDTH - 2 * MARGIN, self.size.title) if title else []:
            heading.append(Words(MARGIN, y + 0.6 * self.size.title, line, self.size.title, "left"))
            y += 1.25 * self.size.title
        self.title = heading
        y += 7 if title else 0
        self._shift((WIDTH - width) / 2 + MARGIN - left, y - top)
        self.height = y + bottom - top + MARGIN
        self.frames = [(item, self.placed[name]) for name, item in self.items.items()]
        return width

    def _claims(self, sizes: dict[str, tuple[float, float]]) -> dict[str, list[float]]:
        """Points that each item needs to the left, right, top and bottom of its centre, frames around it included."""
        claims = {}
        for name, item in self.items.items():
            w, h = sizes[name]
            behind = (self.copies(item) - 1) * self.offset
            claims[name] = [w / 2, w / 2 + behind, h / 2 + behind, h / 2]
        place = {"left": 0, "right": 1, "top": 2, "bottom": 3}
        for arrow in self.arrows:
            if arrow.leave == arrow.enter:  # round the outside
                label = self._label_height(arrow) if upright(arrow.leave) else self._label_width(arrow) + 5
                for name in (arrow.start, arrow.end):
                    claims[name][place[arrow.leave]] += AROUND + (label if arrow.text or arrow.shape else 0)
            elif arrow.leave in ("top", "bottom") and arrow.enter in ("top", "bottom"):
                both = (arrow.start, arrow.end)
                if self.items[both[0]].column == self.items[both[1]].column:  # the label stands beside the line
                    claims[both[0]][1] = max(claims[both[0]][1], self._label_width(arrow) + 8)
        for group in self.group_list:
            members = [self.items[name] for name in group.names]
            ends = [f(getattr(m, part) for m in members) for part in ("column", "row") for f in (min, max)]
            for member in members:
                for side, (here, end) in enumerate(zip([member.column] * 2 + [member.row] * 2, ends, strict=True)):
                    if here == end:
                        claims[member.name][side] += GROUP_PAD + (LINE * self.small + 2 if side == 2 else 0)
        return claims

    def _gaps(self, sizes: dict[str, tuple[float, float]]) -> tuple[list[float], list[float]]:
        """Least distances between neighbouring columns and rows, for the labels of the arrows there."""
        columns = [LEAST_GAP] * math.ceil(max(item.column for item in self.items.values()))
        rows = [ROW_GAP] * math.ceil(max(item.row for item in self.items.values()))
        for arrow in self.arrows:
            one, other = self.items[arrow.start], self.items[arrow.end]
            if arrow.leave == arrow.enter:
                continue
            if not upright(arrow.leave) and not upright(arrow.enter):
                elbow = ELBOW if one.row != other.row else 0
                need = self._label_width(arrow) + elbow + HEAD + (12 if arrow.text or arrow.shape else 0)
                if elbow and not self._near_start(arrow):
                    need += 4
                self._widen(columns, arrow, "column", need)
            elif upright(arrow.leave) and upright(arrow.enter):
                elbow = ELBOW if one.column != other.column else 0
                self._widen(rows, arrow, "row", self._label_height(arrow) + elbow + HEAD + (4 if elbow else 6))
        return columns, rows

    def _widen(self, gaps: list[float], arrow: Arrow, part: str, need: float) -> None:
        """Make room for the label in the gap where it stands: beside the start, or else beside the end."""
        one, other = (getattr(self.items[name], part) for name in (arrow.start, arrow.end))
        low, high = sorted((one, other))
        forward, near = other >= one, self._near_start(arrow)
        # An arrow with its elbow near the start has its label before the end, and the other way round.
        at_end = forward == near
        index = math.ceil(high) - 1 if at_end else math.floor(low)
        if high - low < 1:
            need = need / max(high - low, 0.5)
        index = min(max(index, 0), len(gaps) - 1)
        gaps[index] = max(gaps[index], need)

    def _near_start(self, arrow: Arrow) -> bool:
        """Whether the elbow stands near the start: several arrows fan out from there."""
        out = [other for other in self.arrows if (other.start, other.leave) == (arrow.start, arrow.leave)]
        into = [other for other in self.arrows if (other.end, other.enter) == (arrow.end, arrow.enter)]
        return len(out) > 1 or len(into) == 1

    # ------------------------------------------------------------ routes

    def _route(self, arrow: Arrow) -> Route:
        a, b = self.placed[arrow.start].side(arrow.leave), self.placed[arrow.end].side(arrow.enter)
        if arrow.leave == arrow.enter:
            return self._around(arrow, a, b)
        along = upright(arrow.leave)  # 1: the line leaves upwards or downwards
        if along != upright(arrow.enter):  # one elbow
            corner = (a[0], b[1]) if along else (b[0], a[1])
            points = [a, corner, b]
            first, last = math.dist(a, corner), math.dist(corner, b)
            ends = (corner, b) if (along and last > 1.5 * first) or (not along and last > 4 * first) else (a, corner)
        elif abs(a[1 - along] - b[1 - along]) < 0.5:
            points, ends = [a, b], self._beyond_elbows(arrow, a, b, along)
        else:
            near = self._near_start(arrow)
            forward = 1 if b[along] > a[along] else -1
            turn = a[along] + forward * ELBOW if near else b[along] - forward * (ELBOW + 4)
            corners = [(turn, a[1]), (turn, b[1])] if not along else [(a[0], turn), (b[0], turn)]
            points = [a, *corners, b]
            ends = (corners[1], b) if near else (a, corners[0])
        return Route(arrow, points, self._labels(arrow, *ends, head=ends[1] == b), (*ends, ends[1] == b))

    def _beyond_elbows(self, arrow: Arrow, a: tuple[float, float], b: tuple[float, float],
                       along: bool) -> tuple[tuple[float, float], tuple[float, float]]:
        """The piece of a straight arrow that has its label, without the part it shares with arrows that turn."""
        def turns(other: Arrow) -> bool:
            one, two = self.items[other.start], self.items[other.end]
            return upright(other.leave) == upright(other.enter) == along and (
                one.column != two.column if along else one.row != two.row)

        forward = 1 if b[along] > a[along] else -1
        if any(turns(other) for other in self.arrows if (other.start, other.leave) == (arrow.start, arrow.leave)):
            a = (a[0], a[1] + forward * ELBOW) if along else (a[0] + forward * ELBOW, a[1])
        elif any(turns(other) for other in self.arrows if (other.end, other.enter) == (arrow.end, arrow.enter)):
            b = (b[0], b[1] - forward * (ELBOW + 4)) if along else (b[0] - forward * (ELBOW + 4), b[1])
        return a, b

    def _around(self, arrow: Arrow, a: tuple[float, float], b: tuple[float, float]) -> Route:
        """A line out to one side, along, and back in: past everything that stands between."""
        side, along = arrow.leave, upright(arrow.leave)
        low, high = sorted((a[1 - along], b[1 - along])) if not along else sorted((a[0], b[0]))
        between = [frame for frame in self.placed.values() if low - 1 <= frame.middle[0 if along else 1] <= high + 1]
        reach = [frame.side(side)[1 if along else 0] for frame in between
                 if abs(frame.middle[1 if along else 0] - (a[1] if along else a[0])) < 60] + [a[int(along)], b[int(along)]]
        out = min(reach) - AROUND if side in ("left", "top") else max(reach) + AROUND
        corners = [(a[0], out), (b[0], out)] if along else [(out, a[1]), (out, b[1])]
        return Route(arrow, [a, *corners, b], self._labels(arrow, *corners, head=False, outside=side), None)

    def _labels(self, arrow: Arrow, a: tuple[float, float], b: tuple[float, float], head: bool,
                outside: str | None = None) -> list[Words]:
        """The words at one piece of the line: text above and shape below it, or both to the right of an upright one."""
        x, y = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
        texts = [text for text in (arrow.text, arrow.shape) if text]
        if not texts:
            return []
        if abs(a[0] - b[0]) < 0.5:
            if head:
                y -= 3 if b[1] > a[1] else -3
            x += 6 if outside != "left" else -6 - self._label_width(arrow)
            return [Words(x, y, "\n".join(texts), self.small, "left")]
        if head:
            x -= 3 if b[0] > a[0] else -3
        if outside is not None:
            high = 0.6 * self.small * sum(len(text.split("\n")) for text in texts)
            return [Words(x, y + (high + 3 if outside == "bottom" else -high - 3), "\n".join(texts), self.small)]
        labels = []
        for text, sign in ((arrow.text, -1), (arrow.shape, 1)):
            if text:
                labels.append(Words(x, y + sign * (0.6 * self.small * len(text.split("\n")) + 4), text, self.small))
        return labels

    # ------------------------------------------------------------ groups and the whole

    def _frame_groups(self) -> None:
        self.groups: list[tuple[Frame, Words]] = []
        for group in self.group_list:
            rects = []
            for name in group.names:
                frame, behind = self.placed[name], (self.copies(self.items[name]) - 1) * self.offset
                rects.append(Frame(frame.left, frame.top - behind, frame.width + behind, frame.height + behind))
            inner = [route for route in self.routes if {route.arrow.start, route.arrow.end} <= set(group.names)]
            rects += [Frame(*point, 0, 0) for route in inner for point in route.points]
            rects += [label.frame for route in inner for label in route.labels]
            for route in self.routes:  # a line that leads round and into the group runs inside its frame
                for name, i in ((route.arrow.start, 1), (route.arrow.end, -2)):
                    if route.arrow.leave == route.arrow.enter and name in group.names and route not in inner:
                        x, y = route.points[i]
                        rects += [Frame(x, y, 0, 0), *(Frame(x, label.frame.top, 0, label.frame.height)
                                                       for label in route.labels if upright(route.arrow.leave))]
            rects += [frame for (frame, _), other in zip(self.groups, self.group_list, strict=False)
                      if set(other.names) <= set(group.names)]
            left, top, right, bottom = hull(rects)
            caption = LINE * self.small + 2
            right = max(right, left + measure(group.caption, self.small, bold=True))
            frame = Frame(left - GROUP_PAD, top - GROUP_PAD - caption, right - left + 2 * GROUP_PAD,
                          bottom - top + 2 * GROUP_PAD + caption)
            self.groups.append((frame, Words(left, frame.top + 5 + 0.6 * self.small, group.caption, self.small, "left")))

    def _clear_of_groups(self) -> None:
        """A label of an arrow into a group or out of it stands between the group's frame and what is outside."""
        for route in self.routes:
            for group, (frame, _) in zip(self.group_list, self.groups, strict=True):
                inside = [name in group.names for name in (route.arrow.start, route.arrow.end)]
                if route.piece is None or inside[0] == inside[1]:
                    continue
                a, b, head = route.piece
                along = abs(a[0] - b[0]) < 0.5  # 1: upright
                low, high = (frame.top, frame.bottom) if along else (frame.left, frame.right)
                inner, outer = (a, b) if inside[0] else (b, a)
                if not low <= inner[along] <= high or low <= outer[along] <= high:
                    continue  # this piece does not cross the frame
                edge = high if outer[along] > high else low
                inner = (inner[0], edge) if along else (edge, inner[1])
                a, b = (inner, outer) if inside[0] else (outer, inner)
                route.piece = (a, b, head and inside[0])
                route.labels = self._labels(route.arrow, *route.piece)

    def _bounds(self) -> tuple[float, float, float, float]:
        rects = [frame for frame, _ in self.groups]
        for name, frame in self.placed.items():
            behind = (self.copies(self.items[name]) - 1) * self.offset
            rects.append(Frame(frame.left, frame.top - behind, frame.width + behind, frame.height + behind))
        rects += [Frame(*point, 0, 0) for route in self.routes for point in route.points]
        rects += [label.frame for route in self.routes for label in route.labels]
        return hull(rects)

    def _shift(self, x: float, y: float) -> None:
        self.placed = {name: frame._replace(left=frame.left + x, top=frame.top + y) for name, frame in self.placed.items()}
        for route in self.routes:
            route.points = [(px + x, py + y) for px, py in route.points]
            route.labels = [label._replace(x=label.x + x, y=label.y + y) for label in route.labels]
        self.groups = [(frame._replace(left=frame.left + x, top=frame.top + y), words._replace(x=words.x + x, y=words.y + y))
                       for frame, words in self.groups]

    def _check(self) -> None:
        """Raise ValueError, in words, where boxes and labels overlap or an arrow runs through one."""
        solid = [(f"box {name!r}", frame, name) for name, frame in self.placed.items()]
        solid += [(f"the label {label.text!r}", label.frame, route) for route in self.routes for label in route.labels]
        solid += [(f"the caption {words.text!r}", words.frame, None) for _, words in self.groups]
        for i, (what, frame, _) in enumerate(solid):
            for other, second, _ in solid[i + 1:]:
                if overlap(frame, second):
                    raise ValueError(f"{what} overlaps {other}: give them other places with at=, or shorter text")
        for route in self.routes:
            ends = (route.arrow.start, route.arrow.end)
            for a, b in zip(route.points, route.points[1:], strict=False):
                line = Frame(min(a[0], b[0]), min(a[1], b[1]), abs(a[0] - b[0]), abs(a[1] - b[1]))
                for what, frame, owner in solid:
                    if owner not in ends and owner is not route and overlap(line, frame, -1):
                        raise ValueError(f"the arrow from {ends[0]!r} to {ends[1]!r} runs through {what}: lead it another "
                                         f"way with leave= and enter=, or move the box")


def _spread(claims: dict[int, list[Iterable[float]]], gaps: list[float]) -> list[float]:
    """Centres of columns (or rows) that need `claims` before and after them, with gaps between."""
    before = [max((claim[0] for claim in claims[i]), default=0.0) for i in range(len(gaps) + 1)]
    after = [max((claim[1] for claim in claims[i]), default=0.0) for i in range(len(gaps) + 1)]
    centres = [before[0]]
    for i, gap in enumerate(gaps):
        centres.append(centres[-1] + after[i] + gap + before[i + 1])
    return centres


def _between(centres: list[float], place: float) -> float:
    low = min(math.floor(place), len(centres) - 1)
    high = min(low + 1, len(centres) - 1)
    return centres[low] + (place - low) * (centres[high] - centres[low])


# drawing

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
