"""What a diagram is made of: boxes, arrows, groups, and the frames and words they become on the page.

Does: measure text and compare frames, all in points from the top left. Does not: choose places (`diagram_layout`) or draw
(`diagrams`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from matplotlib import cbook
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from course_utils.figures.text import FONT, text_width


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
