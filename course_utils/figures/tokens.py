"""Tokens as coloured boxes with their ids, and a padded batch as a grid with its mask.

What it does: `plot_tokens` breaks lines like a text, `plot_batch` hatches padding and shows the mask under the tokens; the
same token has the same colour, special ones such as '<pad>' are grey. What it does not do: colour by weight or score
(`course_utils.heatmaps.token_strip`).

    plot_tokens(["the", "film", "is", "<unk>"], [7, 3, 9, 1])
    plot_batch(token_ids, attention_mask, vocabulary=["<pad>", "<unk>", "this", "film"])
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_utils.figures.appearance import sizes, style
from course_utils.figures.saving import set_alt_text
from course_utils.figures.text import FONT, count, display_token, one_line, sentence, spoken, text_width, wrap_text

INCH, WIDTH = 72.0, 648.0  # points: nine inches
MOST_HIGH = WIDTH * 9 / 16
MARGIN, GAP, PAD = 8.0, 4.0, 7.0
LINE = 1.3
TINTS = ["#d8f0dd", "#ecdcf2", "#f5eebb", "#fadde6", "#d9efe9", "#e9e4cf"]  # neither blue nor orange
SPECIAL, PADDING, HATCHING, EDGE, ID_INK = "#dedede", "#ededed", "#9a9a9a", "#8a8a8a", "#333333"
_SPECIAL = re.compile(r"<[A-Za-z_|]+>|\[[A-Z]+\]")  # '<pad>', '<unk>', '[CLS]'; not '<br />'


def plot_tokens(tokens: Sequence[str], ids: Sequence[int] | None = None, *, title: str | None = None) -> Axes:
    """Draw a sequence of tokens as coloured boxes, each with its id in it, on a figure nine inches wide.

    Equal tokens have equal colours; '<pad>', '<unk>', '[CLS]' and their like are grey. Lines break where they are full.

    Args:
        tokens: (token,) strings.
        ids: (token,) whole numbers, or None to draw the tokens alone.

    Raises:
        ValueError: no tokens, one string in place of a list, another number of ids, or more than a slide holds.
    """
    words = _strings(tokens)
    numbers = None if ids is None else _whole(ids, "ids")
    if numbers is not None and numbers.shape != (len(words),):
        raise ValueError(f"ids has shape {numbers.shape} for {count(len(words), 'token', 'tokens')}; expected one id for "
                         f"each")
    labels = [""] * len(words) if numbers is None else [str(number) for number in numbers]
    size, fills = sizes(), _fills(words)

    def place(ratio: float) -> tuple[list[tuple[float, float, float]], float]:
        token, small = ratio * size.token, ratio * size.small
        high = LINE * token + (LINE * small if numbers is not None else 0) + 6
        x, y, placed = MARGIN, 0.0, []
        for word, label in zip(words, labels, strict=True):
            wide = max(text_width(display_token(word, 24), token), text_width(label, small)) + 2 * PAD
            if x > MARGIN and x + wide > WIDTH - MARGIN:
                x, y = MARGIN, y + high + 2 * GAP
            placed.append((x, y, wide))
            x += wide + GAP
        return placed, y + high

    heading = _heading(title)
    ratio, (placed, high) = _shrink(place, heading, f"{len(words)} tokens: draw fewer, tokens[:40]")
    token, small = ratio * size.token, ratio * size.small
    with mpl.rc_context({**style(), "text.parse_math": False}):
        ax, top = _axes(heading, high)
        for (x, y, wide), word, label in zip(placed, words, labels, strict=True):
            box = (x, top + y, wide, LINE * token + (LINE * small if label else 0) + 6)
            _cell(ax, box, display_token(word, 24), label, fills[word], token, small)
    said = [f"'{display_token(word, 30)}' {label}".rstrip() for word, label in zip(words, labels, strict=True)]
    set_alt_text(ax, f"{sentence(title) + ' ' if title else ''}{count(len(words), 'token', 'tokens')}"
                     f"{' with their ids' if numbers is not None else ''}: {', '.join(said)}.")
    return ax


def plot_batch(token_ids: object, attention_mask: object = None, vocabulary: object = None, *,
               title: str | None = None) -> Axes:
    """Draw a padded batch as a grid, one row a text, and under it the mask that says which positions are real.

    Args:
        token_ids: (batch, seq_len) whole numbers.
        attention_mask: (batch, seq_len), True for a real token. None draws no mask and takes id 0 as padding.
        vocabulary: what to write for an id: a list of tokens by id, a mapping from id to token or from token to id, or a
            tokenizer with one as its `vocabulary`. None writes ids alone.

    Raises:
        ValueError: shapes that do not fit, a mask that is not of 0 and 1, an id that the vocabulary lacks, or more rows and
            columns than can be read.
    """
    numbers = _whole(token_ids, "token_ids")
    if numbers.ndim != 2 or not numbers.size:
        raise ValueError(f"token_ids has shape {numbers.shape}; expected (batch, seq_len), both 1 or more"
                         + (": for one text use plot_tokens" if numbers.ndim == 1 else ""))
    mask = numbers != 0 if attention_mask is None else _mask(attention_mask, numbers.shape)
    named = _names(vocabulary)
    words = [[str(number) if named is None else _name(named, int(number)) for number in row] for row in numbers]
    rows, columns = numbers.shape
    size, fills = sizes(), _fills([word for row, real in zip(words, mask, strict=True)
                                   for word, yes in zip(row, real, strict=True) if yes])
    heads = ["token_ids (batch, seq_len)" + ("" if named is None else ", with their tokens")]
    heads += [] if attention_mask is None else ["attention_mask (batch, seq_len)"]
    cell = (WIDTH - 2 * MARGIN) / columns

    def place(ratio: float) -> tuple[tuple[float, float], float]:
        token, small = ratio * size.token, ratio * size.small
        needed = max(max(text_width(display_token(word, 14), token) for row in words for word in row),
                     text_width(str(numbers.max()), small), text_width("False", small) if attention_mask is not None else 0)
        wide = min(cell, max(needed + 2 * PAD, 6.5 * token))
        high = rows * (LINE * token + (LINE * small if named is not None else 0) + 6)
        low = 0.0 if attention_mask is None else rows * (LINE * small + 5)
        head = 1.5 * small
        fits = needed + 4 <= wide
        return (wide, high), (head * len(heads) + high + low + (10 if low else 0)) if fits else float("inf")

    heading = _heading(title)
    ratio, ((wide, high), total) = _shrink(place, heading, f"{rows} texts of {columns} tokens: draw part of the batch, "
                                                           f"token_ids[:4, :10] and the same part of the mask")
    token, small = ratio * size.token, ratio * size.small
    with mpl.rc_context({**style(), "text.parse_math": False}):
        ax, y = _axes(heading, total)
        for block, head in enumerate(heads):
            ax.text(MARGIN, y + 0.6 * small, head, size=small, va="center", gid="head", family=FONT)
            y += 1.5 * small
            step = high / rows if block == 0 else LINE * small + 5
            for r in range(rows):
                for c in range(columns):
                    box, real = (MARGIN + c * wide, y, wide, step), bool(mask[r, c])
                    if block == 0:
                        _cell(ax, box, display_token(words[r][c], 14), "" if named is None else str(numbers[r, c]),
                              fills[words[r][c]] if real else None, token, small)
                    else:
                        _cell(ax, box, str(real), "", "#ffffff" if real else None, small, small)
                y += step
            y += 10
    set_alt_text(ax, _describe_batch(words, numbers if named is not None else None, mask, attention_mask is not None, title))
    return ax


def _cell(ax: Axes, box: tuple[float, float, float, float], word: str, label: str, fill: str | None, token: float,
          small: float) -> None:
    """One box: the word, under it a smaller label; hatched grey (padding) where `fill` is None."""
    x, y, wide, high = box
    ax.add_patch(Rectangle((x, y), wide, high, facecolor=fill or PADDING, edgecolor=HATCHING if fill is None else EDGE,
                           linewidth=0.8, hatch=None if fill else "////", zorder=1))
    if fill is None:
        ax.add_patch(Rectangle((x, y), wide, high, fill=False, edgecolor=EDGE, linewidth=0.8, zorder=2))
    middle = y + high / 2
    plate = {"bbox": {"facecolor": PADDING, "edgecolor": "none", "pad": 1.0}} if fill is None else {}
    for text, points, at in ((word, token, middle - LINE * small / 2 if label else middle),
                             (label, small, middle + LINE * token / 2)):
        if text:
            ax.text(x + wide / 2, at - 0.06 * points, text, size=points, ha="center", va="center_baseline", zorder=3,
                    gid="cell", family=FONT, color="#000000" if text is word and fill else ID_INK, **plate)


def _fills(words: list[str]) -> dict[str, str]:
    """A colour for each different token, in order of appearance; special tokens grey."""
    fills: dict[str, str] = {}
    for word in words:
        if word not in fills:
            ordinary = sum(fill != SPECIAL for fill in fills.values())
            fills[word] = SPECIAL if _SPECIAL.fullmatch(word) else TINTS[ordinary % len(TINTS)]
    return fills


def _heading(title: str | None) -> list[str]:
    return wrap_text(one_line(title), WIDTH - 2 * MARGIN, sizes().title) if title else []


def _shrink(place, heading: list[str], what: str):
    """The largest type at which the parts fit a slide, and the parts; raises ValueError where none does."""
    size = sizes()
    room = MOST_HIGH - 2 * MARGIN - 1.25 * size.title * len(heading) - (6 if heading else 0)
    smallest = size.smallest / size.small
    for ratio in [*np.arange(1.0, smallest, -0.04), smallest]:
        placed, high = place(float(ratio))
        if high <= room:
            return float(ratio), (placed, high)
    raise ValueError(f"{what}; so many cannot be read on a slide")


def _axes(heading: list[str], high: float) -> tuple[Axes, float]:
    """Axes in points from the top left, nine inches wide, the title written; and how far down what follows begins."""
    size = sizes()
    top = MARGIN + 1.25 * size.title * len(heading) + (6 if heading else 0)
    fig = plt.figure(figsize=(WIDTH / INCH, (top + high + MARGIN) / INCH))
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set(xlim=(0, WIDTH), ylim=(top + high + MARGIN, 0))
    for i, line in enumerate(heading):
        ax.text(MARGIN, MARGIN + (0.6 + 1.25 * i) * size.title, line, size=size.title, va="center", gid="title", family=FONT)
    return ax, top


def _strings(tokens: object) -> list[str]:
    if isinstance(tokens, (str, bytes)):
        raise ValueError("tokens is one string; expected a list of tokens: split it first, as the tokenizer does")
    words = [token if isinstance(token, str) else getattr(token, "text", str(token)) for token in tokens]
    if not words:
        raise ValueError("tokens is empty: there is no token to draw")
    return words


def _whole(values: object, name: str) -> np.ndarray:
    """The values as an array of whole numbers."""
    values = values.detach().cpu().numpy() if hasattr(values, "detach") else values
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths: pad them first") from None
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} has the type {array.dtype}; expected whole numbers")
    return array


def _mask(given: object, shape: tuple[int, int]) -> np.ndarray:
    array = np.asarray(given.detach().cpu().numpy() if hasattr(given, "detach") else given)
    if array.shape != shape:
        raise ValueError(f"attention_mask has shape {array.shape}, token_ids {shape}; expected the same")
    if not np.isin(array, (0, 1)).all():
        raise ValueError("attention_mask holds other values than True and False (or 1 and 0)")
    return array.astype(bool)


def _names(vocabulary: object) -> dict[int, str] | None:
    """id -> token."""
    vocabulary = getattr(vocabulary, "vocabulary", vocabulary)
    if vocabulary is None:
        return None
    if isinstance(vocabulary, Mapping):
        from_tokens = all(isinstance(key, str) for key in vocabulary)
        return {int(i): str(t) for t, i in vocabulary.items()} if from_tokens else dict(vocabulary)
    if isinstance(vocabulary, Sequence) and not isinstance(vocabulary, str):
        return {i: str(token) for i, token in enumerate(vocabulary)}
    raise ValueError(f"vocabulary is of the type {type(vocabulary).__name__}; expected a list of tokens by id, a mapping, "
                     f"or a tokenizer with a vocabulary")


def _name(named: dict[int, str], number: int) -> str:
    if number not in named:
        raise ValueError(f"id {number} is not in the vocabulary of {count(len(named), 'token', 'tokens')}")
    return named[number]


def _describe_batch(words: list[list[str]], numbers: np.ndarray | None, mask: np.ndarray, with_mask: bool,
                    title: str | None) -> str:
    rows, columns = mask.shape
    parts = [sentence(title)] if title else []
    parts.append(f"Batch of {count(rows, 'text', 'texts')} by {count(columns, 'position', 'positions')}; padding is hatched"
                 + (", and the mask is True for real tokens and False for padding." if with_mask else "."))
    for r, row in enumerate(words):
        real = [c for c in range(columns) if mask[r, c]]
        shown = spoken([display_token(row[c], 30) for c in real]) if real else "none"
        ids = "" if numbers is None else f" (ids {', '.join(str(numbers[r, c]) for c in real)})" if real else ""
        parts.append(f"Row {r}: {count(len(real), 'token', 'tokens')}, {shown}{ids}; {columns - len(real)} of padding.")
    return " ".join(parts)
