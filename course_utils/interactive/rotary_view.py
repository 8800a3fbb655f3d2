"""A query and a key turned by their positions, pair by pair, and their score against the distance between them.

Does: rotary scores of one query and one key of a few pairs of numbers, in the page and in Python. Does not: turn whole
tensors (see `course_utils.positional_encoding`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from course_utils.interactive.drawing import LINE, PURPLE, SOFT, cut, element, fixed, label, picture, shown
from course_utils.interactive.piece import Piece

FARTHEST, MOST_PAIRS = 24, 4
QUERY, KEY = "#1b8a3a", "#73369a"


class Turned(NamedTuple):
    """Query and key after their turns, each (2 · pairs,), the angle from query to key in each pair, and the `score`."""

    query: list[float]
    key: list[float]
    angles: list[float]
    score: float


def rotary_score(query: Sequence[float], key: Sequence[float], speeds: Sequence[float], m: float, n: float) -> Turned:
    """Query at position m and key at position n; pair i of each turns by `speeds[i]` radians for each position."""
    turned_query = _turned(query, speeds, m)
    turned_key = _turned(key, speeds, n)
    angles = [math.atan2(key[i + 1], key[i]) - math.atan2(query[i + 1], query[i]) + speed * (n - m)
              for i, speed in zip(range(0, len(query), 2), speeds, strict=True)]
    return Turned(turned_query, turned_key, angles, sum(q * k for q, k in zip(turned_query, turned_key, strict=True)))


def _turned(vector: Sequence[float], speeds: Sequence[float], position: float) -> list[float]:
    numbers: list[float] = []
    for i, speed in zip(range(0, len(vector), 2), speeds, strict=True):
        c, s = math.cos(speed * position), math.sin(speed * position)
        numbers += [c * vector[i] - s * vector[i + 1], s * vector[i] + c * vector[i + 1]]
    return numbers


def rotary_view(query: Sequence[float] = (1.0, 0.0), key: Sequence[float] = (0.8, 0.6), *,
                speeds: Sequence[float] = (0.5,), m: int = 2, n: int = 5,
                names: tuple[str, str] = ("query", "key")) -> Piece:
    """A query at position m and a key at position n as arrows that turn, with their score against the distance n − m.

    query and key (2 · pairs,), up to four pairs; `speeds` (pairs,), radians that each pair turns for each position.
    Sliders move m and n from 0 to 24, one at a time or both together. The standard numbers are those of notebook 06.
    Raises ValueError for lengths that don't fit, positions outside 0 to 24 and pairs that are all zero.
    """
    query, key, speeds = ([round(float(number), 4) for number in numbers] for numbers in (query, key, speeds))
    if len(query) != len(key) or len(query) != 2 * len(speeds) or not 1 <= len(speeds) <= MOST_PAIRS:
        raise ValueError(f"query of {len(query)} numbers, key of {len(key)}, {len(speeds)} speeds; expected two numbers in "
                         f"query and key for each of 1 to {MOST_PAIRS} speeds")
    if not all(math.isfinite(number) for number in (*query, *key, *speeds)):
        raise ValueError(f"query={query}, key={key}, speeds={speeds}; expected finite numbers")
    for name, vector in (("query", query), ("key", key)):
        if any(math.hypot(*vector[i : i + 2]) == 0 for i in range(0, len(vector), 2)):
            raise ValueError(f"{name}={vector} has a pair of zeros, which has no angle; expected a number in each pair")
    for name, position in (("m", m), ("n", n)):
        if position != int(position) or not 0 <= position <= FARTHEST:
            raise ValueError(f"{name}={position!r}; expected a whole number from 0 to {FARTHEST}")
    data = {"query": query, "key": key, "speeds": speeds, "m": int(m), "n": int(n), "names": [str(name) for name in names],
            "farthest": FARTHEST}
    return Piece("rotary_view", data, still=_still(data), alt=_alt(data), scripts=["controls"])


def _moved(data: dict) -> tuple[int, int]:
    """Query and key moved together by up to four positions, for the picture that doesn't move."""
    step = min(4, FARTHEST - max(data["m"], data["n"])) or -min(4, data["m"], data["n"])
    return data["m"] + step, data["n"] + step


def _score(data: dict, m: float, n: float) -> Turned:
    return rotary_score(data["query"], data["key"], data["speeds"], m, n)


def _alt(data: dict) -> str:
    names, (m, n) = [shown(name) for name in data["names"]], _moved(data)
    first, other = _score(data, data["m"], data["n"]), _score(data, m, n)
    back = _score(data, data["n"], data["m"])
    speeds = " and ".join(f"{speed:g}" for speed in data["speeds"])
    return (f"The {names[0]} at position {data['m']} and the {names[1]} at position {data['n']}; each pair of numbers is "
            f"turned by {speeds} radians for each position, and the score is {first.score:.4f}. At {m} and {n} both have "
            f"turned further and the score is {other.score:.4f}; at {data['n']} and {data['m']} it is {back.score:.4f}. A "
            f"curve shows the score against the distance from −{FARTHEST} to {FARTHEST}. Sliders move the two positions.")


def _dial(data: dict, at: tuple[float, float], m: int, n: int) -> list[str]:
    """The first pair of query and key as two arrows from the middle of a circle."""
    (x, y), turned = at, _score(data, m, n)
    longest = max(math.hypot(*data["query"][:2]), math.hypot(*data["key"][:2]))
    parts = [element("circle", cx=x, cy=y, r=92, fill="none", stroke=LINE)]
    rows = zip(data["names"], (turned.query, turned.key), (QUERY, KEY), (m, n), strict=True)
    for name, vector, colour, position in rows:
        a, b = 84 * vector[0] / longest, -84 * vector[1] / longest
        length = math.hypot(a, b)
        head = [(a, b), *((a - 13 * a / length - side * 6 * b / length, b - 13 * b / length + side * 6 * a / length)
                          for side in (1, -1))]
        parts += [element("line", x1=x, y1=y, x2=x + 0.93 * a, y2=y + 0.93 * b, stroke=colour, stroke_width=4),
                  element("path", d="M" + "L".join(f"{x + c:.1f} {y + d:.1f}" for c, d in head) + "z", fill=colour),
                  label(x + 1.32 * a, y + 1.18 * b + 5, f"{cut(shown(name), 10)} {position}", 14, fill=colour,
                        text_anchor="middle")]
    said = f"angle {fixed(turned.angles[0])}, score {fixed(turned.score, 4)}"
    return [*parts, label(x, y + 140, said, 14, text_anchor="middle")]


def _still(data: dict) -> str:
    left, top, width, height = 520, 40, 260, 180
    distances = [d / 2 for d in range(-2 * FARTHEST, 2 * FARTHEST + 1)]
    scores = [_score(data, 0, d).score for d in distances]
    most = max(map(abs, scores)) or 1.0

    def place(distance: float, score: float) -> tuple[float, float]:
        return left + width * (distance + FARTHEST) / (2 * FARTHEST), top + height / 2 * (1 - score / most)

    curve = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in map(place, distances, scores))
    x, y = place(data["n"] - data["m"], _score(data, data["m"], data["n"]).score)
    parts = _dial(data, (130, 130), data["m"], data["n"]) + _dial(data, (380, 130), *_moved(data))
    parts += [element("line", x1=left, y1=top + height / 2, x2=left + width, y2=top + height / 2, stroke=LINE),
              element("line", x1=left + width / 2, y1=top, x2=left + width / 2, y2=top + height, stroke=LINE),
              element("path", d=curve, fill="none", stroke=PURPLE, stroke_width=2),
              element("circle", cx=x, cy=y, r=6, fill=PURPLE),
              label(left, 28, "score against distance n − m", 14, fill=SOFT)]
    for distance, anchor in ((-FARTHEST, "start"), (0, "middle"), (FARTHEST, "end")):
        parts.append(label(place(distance, 0)[0], top + height + 18, fixed(distance, 0), 13, fill=SOFT, text_anchor=anchor))
    return picture(800, 290, *parts)
