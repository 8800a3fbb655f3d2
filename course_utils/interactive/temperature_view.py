"""Four scores and their softmax, with sliders for the temperature and for the width d_k: large scores freeze a softmax.

Does: weights, entropy and slope of one row of scores, in the page and in Python. Does not: compute scores from vectors
(see `dot_product_view`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from course_utils.interactive.drawing import LINE, SOFT, bar, cut, element, fixed, label, picture, shown
from course_utils.interactive.piece import Piece

TEMPERATURES, WIDEST, MOST_TOKENS = (0.1, 10.0), 512, 8
SLOPE = "#6b6100"


class Row(NamedTuple):
    """What softmax makes of a row: `scores` as they enter it, `weights`, `slopes` w(1 − w), their sum `slope`, and `entropy`
    as a fraction of the largest possible."""

    scores: list[float]
    weights: list[float]
    slopes: list[float]
    slope: float
    entropy: float


def softmax_row(scores: Sequence[float], *, d_k: int = 1, divide: bool = False, temperature: float = 1.0) -> Row:
    """The row for scores that a width of `d_k` spreads √d_k times as far, divided by √d_k again if `divide`, and by T."""
    factor = (1.0 if divide else math.sqrt(d_k)) / temperature
    entering = [score * factor for score in scores]
    exps = [math.exp(score - max(entering)) for score in entering]
    weights = [e / sum(exps) for e in exps]
    slopes = [w * (1 - w) for w in weights]
    entropy = -sum(w * math.log(w) for w in weights if w > 0) / math.log(len(weights))
    return Row(entering, weights, slopes, sum(slopes), entropy)


def temperature_view(scores: Sequence[float] = (0.0, 1.0, 0.0, -1.0),
                     tokens: Sequence[str] = ("not", "dull", "but", "moving"), *,
                     d_k: int = 64, divide: bool = False, temperature: float = 1.0) -> Piece:
    """Softmax of a few scores as bars, with sliders for every score, the temperature and the width.

    scores (key,), in units of their standard deviation at width 1; tokens (key,), the names of the keys. Independent
    queries and keys of width `d_k` have scores √d_k times as large; `divide` takes that out again, as attention does.
    `temperature` from 0.1 to 10 divides the scores, too. `d_k` is a power of two up to 512. These are where the sliders
    start. Raises ValueError for anything else, and for scores outside −9 to 9 or fewer than 2 or more than 8 of them.
    """
    scores, tokens = [float(score) for score in scores], [str(token) for token in tokens]
    if len(scores) != len(tokens):
        raise ValueError(f"{len(scores)} scores and {len(tokens)} tokens; expected a score for each token")
    if not 2 <= len(scores) <= MOST_TOKENS:
        raise ValueError(f"{len(scores)} scores; expected 2 to {MOST_TOKENS}: choose the keys that matter")
    if not all(math.isfinite(score) and abs(score) <= 9 for score in scores):
        raise ValueError(f"scores={scores}; expected numbers from -9 to 9: leave the factor √d_k to d_k=")
    if d_k not in {2**k for k in range(10)}:
        raise ValueError(f"d_k={d_k!r}; expected a power of two from 1 to {WIDEST}")
    if not TEMPERATURES[0] <= temperature <= TEMPERATURES[1]:
        raise ValueError(f"temperature={temperature!r}; expected 0.1 to 10")
    data = {"tokens": tokens, "scores": [round(score, 1) for score in scores], "d_k": int(d_k), "divide": bool(divide),
            "temperature": round(temperature, 1), "limit": max(3, math.ceil(max(map(abs, scores))))}
    rows = [softmax_row(data["scores"], d_k=d_k, divide=divided, temperature=data["temperature"])
            for divided in (True, False)]
    return Piece("temperature_view", data, still=_still(data, rows), alt=_alt(data, rows), scripts=["controls"])


def _alt(data: dict, rows: list[Row]) -> str:
    names = [f"'{shown(token)}'" for token in data["tokens"]]
    said = [f"{how} the weights are " + ", ".join(f"{name} {w:.2f}" for name, w in zip(names, row.weights, strict=True))
            + f" (entropy {row.entropy:.2f} of the largest possible, slope {row.slope:.2f})"
            for how, row in zip(("divided by the root of d_k", "not divided"), rows, strict=True)]
    scores = ", ".join(f"{name} {score:g}" for name, score in zip(names, data["scores"], strict=True))
    return (f"Softmax of {len(names)} scores ({scores}) at d_k = {data['d_k']} and temperature {data['temperature']:g}: "
            f"{said[0]}; {said[1]}. Sliders change the scores, d_k and the temperature.")


def _still(data: dict, rows: list[Row]) -> str:
    parts, top, step = [], 66, 34
    height = top + step * len(data["tokens"]) + 44
    for left, row, how in zip((0, 400), rows, (f"divided by √{data['d_k']}", "not divided"), strict=True):
        parts.append(label(left + 20, 28, f"d_k = {data['d_k']}, {how}", 17, font_weight="bold"))
        parts += [label(left + 20, 52, "key", 13, fill=SOFT), label(left + 110, 52, "weight", 13, fill=SOFT),
                  label(left + 290, 52, "slope w(1 − w)", 13, fill=SOFT)]
        for k, (token, weight, slope) in enumerate(zip(data["tokens"], row.weights, row.slopes, strict=True)):
            y = top + step * k
            parts += [label(left + 20, y + 18, cut(shown(token), 10), 15), bar(left + 110, y, 120 * weight, 24),
                      label(left + 118 + 120 * weight, y + 18, fixed(weight), 15),
                      bar(left + 290, y + 4, 160 * slope, 16, SLOPE),
                      label(left + 296 + 160 * slope, y + 18, fixed(slope), 13)]
        parts.append(label(left + 20, height - 14, f"entropy {fixed(row.entropy)} of log {len(data['tokens'])}, "
                                                   f"slopes add up to {fixed(row.slope)}", 14))
    parts.append(element("line", x1=392, y1=12, x2=392, y2=height - 8, stroke=LINE))
    return picture(800, height, *parts)
