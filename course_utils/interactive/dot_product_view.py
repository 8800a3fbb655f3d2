"""A query and a few keys as arrows in the plane, to be dragged: dot products, softmax weights, and the weighted mean.

Does: scores, weights and answer for vectors of two numbers, in the page and in Python. Does not: divide scores by √d_k
(see `temperature_view`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from course_utils.interactive.drawing import (
    INK,
    LINE,
    PURPLE,
    SOFT,
    bar,
    cut,
    element,
    fixed,
    label,
    picture,
    shown,
    stacked,
)
from course_utils.interactive.piece import Piece

MOST_KEYS, FARTHEST = 6, 9.0
QUERY, ANSWER = "#1b8a3a", "#b8345f"
Vector = Sequence[float]


class Lookup(NamedTuple):
    """What a query gets from its keys: `scores` (key,), `weights` (key,), and `answer`, the weighted mean of the values."""

    scores: list[float]
    weights: list[float]
    answer: list[float]


def soft_lookup(query: Vector, keys: Sequence[Vector], values: Sequence[Vector]) -> Lookup:
    """Dot products of one query with the keys, their softmax, and the weighted mean of the values."""
    scores = [sum(q * k for q, k in zip(query, key, strict=True)) for key in keys]
    exps = [math.exp(score - max(scores)) for score in scores]
    weights = [e / sum(exps) for e in exps]
    answer = [sum(w * value[d] for w, value in zip(weights, values, strict=True)) for d in range(len(values[0]))]
    return Lookup(scores, weights, answer)


def dot_product_view(query: Vector = (-0.8, 0.1), keys: Mapping[str, Vector] | None = None, *,
                     values: Mapping[str, Vector] | None = None, name: str = "drab",
                     features: Sequence[str] = ("opinion", "negates"),
                     goals: Sequence[tuple[str, str, float | None]] = (), still: Vector | None = None) -> Piece:
    """A query and its keys as arrows that can be dragged, with scores, weights and the weighted mean of the values.

    query (2,); keys, each name with its vector (2,); `values` likewise, with the same names in the same order. Without
    them each key is its own value and moves with it. `name` is that of the query, `features` are those of the two axes.
    goals: what to reach, each (words, key, weight): a sign says when that key's weight is above this number or, with None,
    above all others. still (2,): where the query points in a second still picture, below the first.
    The standard keys are the words of notebook 04, of which the plane shows 'opinion' and 'negates'. Raises ValueError
    for vectors that don't have two finite numbers from −9 to 9, for fewer than 2 or more than 6 keys, and for a goal whose
    key isn't one of them.
    """
    keys = {"not": (0, 1), "dull": (-1, 0), "but": (0, 0), "moving": (1, 0)} if keys is None else keys
    if not 2 <= len(keys) <= MOST_KEYS:
        raise ValueError(f"{len(keys)} keys; expected 2 to {MOST_KEYS}, so that the arrows can be told apart")
    if values is not None and list(values) != list(keys):
        raise ValueError(f"values are named {list(values)}, keys {list(keys)}; expected the same names in the same order")
    if len(features) != 2:
        raise ValueError(f"{len(features)} features; expected two, one for each axis of the plane")
    data = {"name": str(name), "query": _vector("query", query), "tokens": [str(token) for token in keys],
            "keys": [_vector(f"key {token!r}", key) for token, key in keys.items()],
            "values": values and [_vector(f"value {token!r}", value) for token, value in values.items()],
            "features": [str(feature) for feature in features]}
    missing = [key for _, key, _ in goals if key not in keys]
    if missing:
        raise ValueError(f"a goal is about {missing[0]!r}; expected one of {', '.join(keys)}")
    if goals:
        data["goals"] = [{"words": words, "key": str(key), "over": over} for words, key, over in goals]
    numbers = [abs(number) for v in (data["query"], *data["keys"], *(data["values"] or [])) for number in v]
    data["limit"] = max(2.5, math.ceil(2.4 * max(numbers)) / 2)            # the plane goes further than the arrows
    found = soft_lookup(data["query"], data["keys"], data["values"] or data["keys"])
    drawn, alt = _still(data, found), _alt(data, found)
    if still is not None:
        moved = {**data, "query": _vector("still", still)}
        found = soft_lookup(moved["query"], data["keys"], data["values"] or data["keys"])
        drawn, alt = stacked(drawn, _still(moved, found, short=True)), f"{alt} In a second picture: {_alt(moved, found)}"
    return Piece("dot_product_view", data, still=drawn, alt=alt, scripts=["controls"])


def _vector(what: str, vector: Vector) -> list[float]:
    numbers = [float(number) for number in vector]
    if len(numbers) != 2 or not all(math.isfinite(number) and abs(number) <= FARTHEST for number in numbers):
        raise ValueError(f"{what} is {numbers}; expected two numbers from -9 to 9, because the picture is a plane")
    return [round(number, 2) for number in numbers]


def _alt(data: dict, found: Lookup) -> str:
    rows = zip(data["tokens"], data["keys"], found.scores, found.weights, strict=True)
    keys = "; ".join(f"'{shown(token)}' ({key[0]:g}, {key[1]:g}): dot product {score:.2f}, weight {weight:.2f}"
                     for token, key, score, weight in rows)
    (a, b), (one, other) = data["query"], data["features"]
    return (f"The query '{shown(data['name'])}' ({a:g}, {b:g}) and {len(data['keys'])} keys as arrows in a plane of "
            f"{one} and {other}. {keys}. The weighted mean of the values is ({found.answer[0]:.2f}, {found.answer[1]:.2f}). "
            f"The arrows can be dragged.")


def _still(data: dict, found: Lookup, short: bool = False) -> str:
    """The picture; with `short` without the lower half where nothing points there."""
    size, limit = 380, data["limit"]

    def at(vector: Vector) -> tuple[float, float]:
        return size / 2 * (1 + vector[0] / limit), size / 2 * (1 - vector[1] / limit)

    def along_query(vector: Vector) -> bool:
        (a, b), (c, d) = vector, data["query"]
        return abs(a * d - b * c) < 1e-3 < a * c + b * d

    def arrow(vector: Vector, colour: str, width: float, name: str, lift: float = 0, aside: float = 0) -> list[str]:
        (x, y), length = at(vector), math.hypot(*vector)
        along = (vector[0] / length, -vector[1] / length) if length else (0.7, 0.7)
        head = [(x, y), *((x - 12 * along[0] - side * 5 * along[1], y - 12 * along[1] + side * 5 * along[0])
                          for side in (-1, 1))]
        tip = element("path", d="M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in head) + "z", fill=colour)
        stem = element("line", x1=size / 2, y1=size / 2, x2=x - 6 * along[0], y2=y - 6 * along[1], stroke=colour,
                       stroke_width=width)
        anchor = "end" if along[0] < -0.3 else "start" if along[0] > 0.3 else "middle"
        named = label(x + 8 * along[0] + aside, y + 5 + 14 * along[1] + lift, cut(shown(name), 10), 14, fill=colour,
                      text_anchor="start" if aside else anchor)
        return [stem, tip, named] if length else [element("circle", cx=x, cy=y, r=4, fill=colour), named]

    parts = [element("line", x1=a, y1=b, x2=c, y2=d, stroke=LINE) for a, b, c, d in
             ((0, size / 2, size, size / 2), (size / 2, 0, size / 2, size))]
    parts += [label(size - 4, size / 2 + 18, data["features"][0] + " →", 12, fill=SOFT, text_anchor="end"),
              label(size / 2 + 6, 14, "↑ " + data["features"][1], 12, fill=SOFT)]
    for token, key, weight in zip(data["tokens"], data["keys"], found.weights, strict=True):
        hidden, upright = along_query(key), abs(key[0]) < abs(key[1])       # then its name stands beside the query's arrow
        parts += arrow(key, PURPLE, 1.5 + 7 * weight, token, lift=14 * (hidden and not upright),
                       aside=14 * (hidden and upright))
    parts += arrow(data["query"], QUERY, 4, data["name"], lift=-10)
    x, y = at(found.answer)
    parts.append(element("path", d=f"M{x:.1f} {y - 9:.1f}l9 9l-9 9l-9 -9z", fill=ANSWER, stroke="#ffffff", stroke_width=1.5))
    parts.append(label(x - 14, y + 5, "mean", 14, fill=ANSWER, text_anchor="end") if along_query(found.answer) else
                 label(x, y - 14 if found.answer[1] >= 0 else y + 24, "mean", 14, fill=ANSWER, text_anchor="middle"))
    left = size + 30
    parts += [label(left + dx, 30, text, 13, fill=SOFT) for dx, text in ((0, "key"), (100, "dot product"), (200, "weight"))]
    for k, (token, score, weight) in enumerate(zip(data["tokens"], found.scores, found.weights, strict=True)):
        y = 62 + 36 * k
        parts += [label(left, y, cut(shown(token), 10), 15, fill=INK),
                  label(left + 150, y, fixed(score), 15, text_anchor="end"), bar(left + 200, y - 17, 110 * weight, 22),
                  label(left + 208 + 110 * weight, y, fixed(weight), 15)]
    answer = f"weighted mean: ({fixed(found.answer[0])}, {fixed(found.answer[1])})"
    parts.append(label(left, 80 + 36 * len(data["tokens"]), answer, 15, fill=ANSWER))
    down = min(vector[1] for vector in (data["query"], found.answer, *data["keys"], *(data["values"] or [])))
    return picture(800, 250 if short and down >= 0 and len(data["tokens"]) <= 4 else size, *parts)
