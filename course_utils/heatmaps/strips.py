"""A sentence as coloured boxes: each token on the colour of its weight, the weight printed under it if wanted.

What it does: lines break as in a text, several strips share one scale. What it does not do: ask that weights
sum to one, since a strip shows any score of tokens, from pooling weights to gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils.figures import DIFFERENCE_MAP, WEIGHT_MAP, Sizes, lettering, set_alt_text, sizes, style
from course_utils.figures.text import FONT, count, display_token, one_line, sentence, text_width, wrap_text
from course_utils.heatmaps.views import cut, number, scale_limits, to_array, to_flags, to_mask, to_tokens

INCH = 72.0
GAP, PAD = 2.5, 4.0  # points between boxes, and inside them beside the text
SCALE = 110.0  # points: the length of the colour scale under the boxes


@dataclass
class _Box:
    text: str
    value: float
    evidence: bool
    rest: bool  # the sum of the tokens that are not shown: no single weight, so no colour


@dataclass
class _Strip:
    title: str | None
    boxes: list[_Box]
    tokens: list[str]
    weights: np.ndarray
    evidence: np.ndarray


def token_strip(tokens, weights, *, title: str | None = None, titles: Sequence[str] | None = None, evidence=None,
                attention_mask=None, kind: Literal["weights", "difference"] = "weights", vmax: float | None = None,
                wrap: int | None = None, max_tokens: int | None = None, decimals: int | None = None,
                ax: Axes | None = None, values: bool = True, scale_label: str | None = None) -> Axes:
    """Draw a sentence, or several one above another, as boxes coloured by weight; lines wrap like text.

    Boxes of strips that fill less than a line are made wider.

    Args:
        tokens: (token,) strings; a list of such lists for several strips; or one sentence for several rows of
            weights (the same text seen by several heads or methods).
        weights: (token,), or one row for each strip. Any scores that are not negative; with kind='difference'
            any sign. They need not sum to one and are not changed.
        title, titles: a line above everything; a line above each strip.
        evidence: indices or booleans of tokens to outline; a list of them for several strips, or one for all.
        attention_mask: (token,), True for a real token; padding is left out. A list of them for several strips.
        vmax: the end of the colour scale, the same for all strips; None takes a round number above the largest.
        wrap: at most so many tokens on a line; None fills the lines.
        max_tokens: a longer text shows its head, a grey box with the sum of the rest, and its tail; None takes 120, or
            60 with COURSE_STYLE=present, where the type shrinks too until the figure fits a slide.
        decimals: digits of printed weights; None takes two, or three where the largest weight is below 0.1.
        ax: axes to draw on; type shrinks to fit them. Without it a figure nine inches wide is made.
        values: False leaves the numbers out, and the boxes are lower.
        scale_label: what the colours stand for, beside the scale: 'weight', or 'score' for a difference, by default.

    Raises:
        ValueError: labels and weights of different number, NaN, negative weights (unless kind='difference').
    """
    if kind not in ("weights", "difference"):
        raise ValueError(f"kind={kind!r}; expected 'weights' or 'difference'")
    if wrap is not None and wrap < 1:
        raise ValueError(f"wrap={wrap}; expected at least one token on a line")
    size = sizes()
    max_tokens = size.strip_tokens if max_tokens is None else max_tokens
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, (int, np.integer)) or max_tokens < 3:
        raise ValueError(f"max_tokens={max_tokens!r}; expected a whole number from 3: a head, the rest and a tail")
    if values not in (True, False):
        raise ValueError(f"values={values!r}; expected True or False")
    if scale_label is not None and not str(scale_label).strip():
        raise ValueError(f"scale_label={scale_label!r}; say what the colours stand for, or leave it out")
    strips = _strips(tokens, weights, titles, evidence, attention_mask, kind, max_tokens)
    shown = [abs(box.value) for strip in strips for box in strip.boxes if not box.rest]
    low, high = scale_limits(max(shown, default=0.0), kind, vmax)
    if decimals is None:
        decimals = 2 if max(shown, default=0.0) >= 0.1 else 3
    scale = _scale_words(strips, kind, low, high, scale_label)
    looks = {"wrap": wrap, "decimals": decimals if values else None, "kind": kind, "size": size, "scale": scale}
    notes = [f"'rest' is the sum of the {len(s.tokens) - len(s.boxes) + 1} tokens between"
             + (f" (strip {i + 1})" if len(strips) > 1 else "") + "."
             for i, s in enumerate(strips) if any(box.rest for box in s.boxes)]
    with mpl.rc_context({**style(), "text.parse_math": False}):
        if ax is None:
            width = 9 * INCH - 16
            points = size.token
            plan = _Plan(strips, title, notes, width, points=points, **looks)
            while plan.height + 12 > size.tallest and points > 0.9 * size.smallest:
                points -= 0.5
                plan = _Plan(strips, title, notes, width, points=points, **looks)
            fig = plt.figure(figsize=(9, (plan.height + 12) / INCH))
            ax = fig.add_axes((8 / (9 * INCH), 6 / (plan.height + 12), width / (9 * INCH),
                               plan.height / (plan.height + 12)))
            room = plan.height
        else:
            box = ax.get_window_extent()
            width, room = (v * INCH / ax.figure.dpi for v in (box.width, box.height))
            points = size.token
            plan = _Plan(strips, title, notes, width, points=points, **looks)
            while plan.height > room and points > 6:
                points -= 0.5
                plan = _Plan(strips, title, notes, width, points=points, **looks)
        plan.draw(ax, low, high, max(room, plan.height))
    set_alt_text(ax, _describe(strips, kind, low, high, title, notes, scale_label))
    return ax


def _strips(tokens: object, weights: object, titles: object, evidence: object, masks: object, kind: str,
            max_tokens: int) -> list[_Strip]:
    """Checked strips; one for a flat list of tokens with a flat list of weights."""
    if isinstance(tokens, (str, bytes)):
        raise ValueError("tokens is one string; expected a list of tokens: split it first, as the tokenizer does")
    tokens = list(tokens.tolist() if hasattr(tokens, "tolist") else tokens)
    nested = bool(tokens) and all(isinstance(row, (list, tuple)) for row in tokens)
    # Strips of different lengths are a ragged list: each row becomes an array of its own.
    rows = list(weights)
    if not rows or np.ndim(_plain(rows[0])) == 0:
        rows = [weights]
    many = nested or len(rows) > 1 or np.ndim(_plain(rows[0])) == 1 and rows[0] is not weights
    texts = [list(row) for row in tokens] if nested else [tokens] * len(rows)
    if len(texts) != len(rows):
        raise ValueError(f"tokens has {len(texts)} strips and weights has {len(rows)}; give one row of weights for each")
    if titles is not None and (isinstance(titles, str) or len(titles) != len(rows)):
        raise ValueError(f"titles={titles!r} for {len(rows)} strips; give a list with one title for each")
    strips = []
    for i, (text, row) in enumerate(zip(texts, rows, strict=True)):
        where = f"weights of strip {i + 1}" if many else "weights"
        values = to_array(row, where)[0]
        if values.ndim != 1:
            raise ValueError(f"{where} has shape {values.shape}; expected one weight for each of {len(text)} tokens")
        if not len(values):
            raise ValueError(f"{where} is empty: there is no token to draw")
        words = to_tokens(text, len(values), "tokens", "values" + (f" in strip {i + 1}" if many else ""))
        _check_values(values, words, kind, where)
        marked = to_flags(_one_of(evidence, i, many), len(values), "evidence")
        real = to_mask(_one_of(masks, i, many), len(values))
        if np.abs(values[~real]).sum() > 1e-3 * np.abs(values).sum():
            raise ValueError(f"{where} gives {np.abs(values[~real]).sum():.4g} to padding, which would be left out in "
                             f"silence; mask the scores before the softmax, or draw it without attention_mask")
        words, values, marked = [w for w, r in zip(words, real, strict=True) if r], values[real], marked[real]
        head, tail = cut(len(words), max_tokens)
        boxes = [_Box(display_token(words[j], 24), float(values[j]), bool(marked[j]), False) for j in np.r_[head, tail]]
        if len(tail):
            between = slice(len(head), len(words) - len(tail))
            boxes.insert(len(head), _Box(f"⋯ rest ({len(words) - len(head) - len(tail)}) ⋯", float(values[between].sum()),
                                         bool(marked[between].any()), True))
        strips.append(_Strip(titles[i] if titles is not None else None, boxes, words, values, marked))
    return strips


def _plain(row: object) -> object:
    return row.detach().cpu().tolist() if hasattr(row, "detach") else row


def _one_of(given: object, i: int, many: bool) -> object:
    """The i-th of a list of lists, or the one list that serves every strip."""
    if given is None or not many:
        return given
    rows = list(given)
    listed = bool(rows) and all(row is None or np.ndim(_plain(row)) == 1 for row in rows)
    if listed and i >= len(rows):
        raise ValueError(f"evidence or attention_mask has {len(rows)} entries, and there are more strips: give one each")
    return rows[i] if listed else given


def _check_values(values: np.ndarray, words: list[str], kind: str, where: str) -> None:
    if not np.isfinite(values).all():
        i = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"{where} holds {values[i]} at token {i} ('{display_token(words[i])}'); expected finite numbers")
    if kind == "weights" and values.min() < 0:
        i = int(values.argmin())
        raise ValueError(f"{where} holds {values[i]:.4g} at token {i} ('{display_token(words[i])}'); weights are never "
                         f"negative. For scores of either sign give kind='difference'")


class _Plan:
    """Where each box goes, in points from the top left, at one type size."""

    def __init__(self, strips: list[_Strip], title: str | None, notes: list[str], width: float, *, points: float,
                 wrap: int | None, decimals: int | None, kind: str, size: Sizes, scale: tuple[str, str, str]):
        self.kind, self.points, self.size, self.width, self.decimals = kind, points, size, width, decimals
        self.small = max(0.8 * points, min(points, max(8.0, 0.9 * size.smallest)))
        self.box_height = 1.3 * points + (5 if decimals is None else 1.3 * self.small + 3)
        self.placed: list[tuple[float, float, float, _Box]] = []  # left, top, width, box
        self.words: list[tuple[float, str, float]] = []  # top, text, type size
        ratio = points / size.token
        y = 0.0
        for line in wrap_text(one_line(title), width, size.title * ratio) if title else []:
            self.words.append((y, line, size.title * ratio))
            y += 1.35 * size.title * ratio
        wider = self._wider(strips, wrap)
        for number_, strip in enumerate(strips):
            y += 8 if number_ else 2
            for line in wrap_text(one_line(strip.title, 200), width, points) if strip.title else []:
                self.words.append((y, line, points))
                y += 1.4 * points
            x, on_line = 0.0, 0
            for box in strip.boxes:
                box_width = self._natural(box) + wider
                if x and (x + box_width > width or on_line == wrap):
                    x, on_line, y = 0.0, 0, y + self.box_height + 2 * GAP
                self.placed.append((x, y, box_width, box))
                x, on_line = x + box_width + GAP, on_line + 1
            y += self.box_height
        self.scale_top, (self.before, self.after, legend) = y + 9, scale
        y = self.scale_top + 1.4 * self.small
        self.scale_length = SCALE
        if legend and self._scale_end(self.after + "      " + legend) <= width:
            self.after, legend = self.after + "      " + legend, ""
        elif self._scale_end(self.after) > width:  # a long name on narrow axes: the bar gives way
            self.scale_length = max(20.0, SCALE - (self._scale_end(self.after) - width))
        for line in wrap_text(" ".join([legend + "." if legend else "", *notes]), width, self.small):
            self.words.append((y + 3, line, self.small))
            y += 1.35 * self.small
        self.height = y + 3

    def print(self, box: _Box) -> str:
        return "" if self.decimals is None else number(box.value, self.decimals, signed=self.kind == "difference")

    def _natural(self, box: _Box) -> float:
        """The width that the token and its number need; a full stop without a number still gets a box one can see."""
        words = max(text_width(box.text, self.points, bold=box.evidence), text_width(self.print(box), self.small))
        return max(2 * PAD + words, 1.8 * self.points)

    def _wider(self, strips: list[_Strip], wrap: int | None) -> float:
        """Points that every box gains where no strip fills its line, so that a short sentence is not a small one."""
        longest = max(sum(self._natural(box) + GAP for box in strip.boxes) for strip in strips)
        most = max(len(strip.boxes) for strip in strips)
        if longest > self.width or (wrap is not None and most > wrap):
            return 0.0
        return min((self.width - longest) / most, 1.5 * self.points)

    def _scale_end(self, after: str) -> float:
        return text_width(self.before, self.small) + 4 + self.scale_length + 5 + text_width(after, self.small)

    def draw(self, ax: Axes, low: float, high: float, height: float) -> None:
        colours = DIFFERENCE_MAP if self.kind == "difference" else WEIGHT_MAP
        ax.set_axis_off()
        ax.set_xlim(0, self.width)
        ax.set_ylim(height, 0)
        text = {"family": FONT, "parse_math": False}
        for top, words, points in self.words:
            ax.text(0, top, words, size=points, va="top", ha="left", **text)
        for x, y, width, box in self.placed:
            face = "#dadada" if box.rest else colours(float(np.clip((box.value - low) / (high - low), 0, 1)))
            ink, middle = lettering(face, self.points), x + width / 2
            ax.add_patch(Rectangle((x, y), width, self.box_height, facecolor=face, clip_on=False,
                                   edgecolor="#c9c9c9", linewidth=0.6))
            if box.evidence:
                line = self.size.line + 0.4
                ax.add_patch(Rectangle((x, y), width, self.box_height, fill=False, edgecolor="#ffffff",
                                       linewidth=line + 2, clip_on=False, zorder=2))
                ax.add_patch(Rectangle((x, y), width, self.box_height, fill=False, edgecolor="#000000",
                                       linewidth=line, clip_on=False, zorder=3))
            ax.text(middle, y + 2 + 0.65 * self.points, box.text, size=self.points, ha="center", va="center_baseline",
                    weight="bold" if box.evidence else "normal", zorder=4, **ink, **text)
            if self.decimals is not None:
                ax.text(middle, y + 1 + 1.3 * self.points + 0.65 * self.small, self.print(box), size=self.small,
                        ha="center", va="center_baseline", zorder=4, **lettering(face, self.small), **text)
        self._scale(ax, colours)

    def _scale(self, ax: Axes, colours) -> None:
        """The colour scale as a line of its own under the boxes, with what an outline means."""
        middle = self.scale_top + 0.7 * self.small
        text = {"size": self.small, "va": "center_baseline", "family": FONT, "parse_math": False}
        ax.text(0, middle, self.before, **text)
        x, length = text_width(self.before, self.small) + 4, self.scale_length
        for i, share in enumerate(np.linspace(0, 1, 23)):
            ax.add_patch(Rectangle((x + i * length / 23, middle - 0.5 * self.small), length / 23 + 0.3, self.small,
                                   facecolor=colours(float(share)), linewidth=0, clip_on=False))
        ax.add_patch(Rectangle((x, middle - 0.5 * self.small), length, self.small, fill=False, edgecolor="#8c8c8c",
                               linewidth=0.6, clip_on=False))
        ax.text(x + length + 5, middle, self.after, **text)


def _scale_words(strips: list[_Strip], kind: str, low: float, high: float, label: str | None) -> tuple[str, str, str]:
    """What stands before the colour scale, after it, and what says of the frames."""
    boxes = [box for strip in strips for box in strip.boxes]
    over = any(box.value > high * (1 + 1e-6) or box.value < low - 1e-6 * high for box in boxes if not box.rest)
    ends = [f"{end:.4g}".replace("-", "−") for end in (low, high)]
    name = one_line(label, 60) if label else "weight" if kind == "weights" else "score"
    return (f"{name}  {ends[0]} ", ends[1] + (" and beyond" if over else ""),
            "framed, bold: evidence" if any(box.evidence for box in boxes) else "")


def _describe(strips: list[_Strip], kind: str, low: float, high: float, title: str | None, notes: list[str],
              label: str | None) -> str:
    """The alternative text: each strip's text, its three largest weights and its evidence."""
    what = one_line(label, 60) if label else "weight" if kind == "weights" else "signed score"
    parts = [sentence(title)] if title else []
    parts.append(f"{count(len(strips), 'strip', 'strips')} of tokens coloured by {what}, on one colour "
                 f"scale from {low:.4g} to {high:.4g}.")
    for i, strip in enumerate(strips):
        name = one_line(strip.title, 200) if strip.title else f"Strip {i + 1}"
        order = [j for j in np.argsort(-np.abs(strip.weights).round(6), kind="stable")[:3] if strip.weights[j] != 0]
        largest = "; ".join(f"'{display_token(strip.tokens[j], 30)}' (token {j}) "
                            f"{strip.weights[j]:{'+' if kind == 'difference' else ''}.3f}" for j in order)
        text = sentence(" ".join(box.text for box in strip.boxes), 10_000)
        parts.append(f"{name}, {count(len(strip.tokens), 'token', 'tokens')}: {text} "
                     f"Largest: {largest or 'all are zero'}.")
        marked = [f"'{display_token(strip.tokens[j], 30)}' (token {j})" for j in np.flatnonzero(strip.evidence)]
        if marked:
            parts.append(f"Evidence outlined: {', '.join(marked)}.")
    return " ".join(parts + notes)
