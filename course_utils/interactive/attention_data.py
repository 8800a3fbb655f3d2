"""What an attention view shows, before anything is drawn: checked weights, without padding, coded for the page.

Does: check weights and labels, crop padding, divide a long text into pages with a 'rest' column, match the tokens of two
texts. Does not: run models (see `attention_view`, `attention_hugging_face`) or draw. Nothing is renormalised.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from course_utils.figures.text import count, display_token, one_line
from course_utils.heatmaps.views import check_weights, cut, to_array, to_mask, to_tokens
from course_utils.interactive.coded import MOST, encode, in_steps, step_for

MOST_NUMBERS = 4_000_000  # in one view: about 4 MB
MOST_CLASSES = 6  # named in the answer of a model whose classes don't exclude each other


@dataclass(frozen=True)
class Kind:
    """Attention of one kind in all layers, such as a decoder's cross-attention."""

    name: str
    queries: list[str]
    keys: list[str]
    one_text: bool  # rows and columns are the same tokens
    layers: dict[int, np.ndarray]  # by the layer's number, (heads, query, key)
    note: str = ""  # of a part of the attention: which, and why its rows don't add up to one


@dataclass(frozen=True)
class Side:
    """One text in one model: what one half of a comparison shows."""

    kinds: list[Kind]
    pooling: np.ndarray | None = None  # (key,) of the first kind
    label: str = ""
    probability: float | None = None
    classes: list[tuple[str, float]] | None = None  # of a model whose classes don't exclude each other

    @property
    def largest(self) -> float:
        """The largest weight of all."""
        shown = [weights for kind in self.kinds for weights in kind.layers.values()]
        return max(float(weights.max()) for weights in [*shown, *([] if self.pooling is None else [self.pooling])])

    @property
    def answer(self) -> str:
        """What the model says about the text, in words; '' where it says nothing."""
        if self.classes is None:
            return f"Predicted: {one_line(self.label, 40)}, probability {self.probability:.2f}" if self.label else ""
        order = sorted(self.classes, key=lambda one: -round(one[1], 6))
        told = ", ".join(f"{one_line(name, 40)} {probability:.2f}" for name, probability in order[:MOST_CLASSES])
        others = order[MOST_CLASSES:]
        rest = f"; {count(len(others), 'other', 'others')} at most {others[0][1]:.2f}" if others else ""
        return f"Probability of each class by itself: {told}{rest}"


def to_layers(attentions: object, name: str = "attentions") -> tuple[dict[int, np.ndarray], float]:
    """{layer number: (heads, query, key)} from a tensor or a list with one a layer, and how far its rows may be from one.

    A layer that is None (it has no attention) is left out. A layer may be (query, key) or (1, heads, query, key).
    Raises ValueError for other shapes.
    """
    several = isinstance(attentions, (list, tuple)) and any(hasattr(part, "shape") for part in attentions)
    if several:
        parts = {number: to_array(part, f"{name}[{number}]") for number, part in enumerate(attentions) if part is not None}
        arrays, tolerance = {k: array for k, (array, _) in parts.items()}, max(far for _, far in parts.values())
    else:
        array, tolerance = to_array(attentions, name)
        if array.ndim not in (2, 3, 4):
            raise ValueError(f"{name} has shape {array.shape}; expected (layers, heads, query, key), (heads, query, key) or "
                             "(query, key) for one text, or a list with one (heads, query, key) a layer")
        arrays = dict(enumerate(array)) if array.ndim == 4 else {0: array}
    layers = {}
    for number, array in arrays.items():
        if array.ndim == 2:
            array = array[None]
        elif array.ndim == 4 and len(array) == 1:
            array = array[0]
        if array.ndim != 3:
            hint = f": take one text of the batch, [layer[0] for layer in {name}]" if array.ndim == 4 else ""
            raise ValueError(f"layer {number} of {name} has shape {array.shape}; expected (heads, query, key){hint}")
        if not array.size:
            raise ValueError(f"layer {number} of {name} has shape {array.shape}: there is nothing to show")
        layers[number] = array
    sizes = {array.shape[1:] for array in layers.values()}
    if len(sizes) != 1:
        raise ValueError(f"the layers of {name} have {sorted(sizes) or 'no'} queries and keys; expected the same in each")
    return layers, tolerance


def make_kind(name: str, attentions: object, tokens: object, key_tokens: object = None, *, attention_mask: object = None,
              wanted: Sequence[int] | None = None, check_rows: bool = True) -> Kind:
    """Check the weights and labels of one kind, keep the `wanted` layers, and crop padding.

    Raises ValueError for labels of another number, NaN, rows that don't sum to one (if `check_rows`), weights on padding,
    a layer that isn't there, and for more numbers than a page should hold.
    """
    layers, tolerance = to_layers(attentions)
    if wanted is not None:
        missing = [number for number in wanted if number not in layers]
        if missing or not len(wanted):
            raise ValueError(f"layers={list(wanted)}; expected some of {list(layers)}")
        layers = {number: layers[number] for number in wanted}
    queries, keys = next(iter(layers.values())).shape[1:]
    if key_tokens is None and queries != keys:
        raise ValueError(f"attentions have {queries} queries and {keys} keys, so rows and columns differ: give key_tokens= "
                         "as well")
    numbers = sum(array.size for array in layers.values())
    if numbers > MOST_NUMBERS:
        raise ValueError(f"{len(layers)} layers of {queries} by {keys} tokens are {numbers:,} numbers, too many for a page "
                         f"(at most {MOST_NUMBERS:,}): choose layers, layers={list(layers)[:1]}, or a shorter text")
    one_text = key_tokens is None
    rows = to_tokens(tokens, queries, "tokens", "queries (rows)")
    columns = rows if one_text else to_tokens(key_tokens, keys, "key_tokens", "keys (columns)")
    real_keys = to_mask(attention_mask, keys)
    real_queries = real_keys if one_text else np.ones(queries, dtype=bool)
    kept = {}
    for number, heads in layers.items():
        for head, weights in enumerate(heads):
            where = f"{name} (layer {number}, head {head})"
            check_weights(weights, rows, ~real_queries, "weights", tolerance, check_rows, where)
            lost = weights[real_queries][:, ~real_keys].sum(axis=1)
            if lost.max(initial=0.0) > tolerance:
                row = int(np.flatnonzero(real_queries)[lost.argmax()])
                raise ValueError(f"{where}: row {row} (query '{display_token(rows[row])}') gives {lost.max():.4g} to "
                                 "padding, which is left out here; mask the scores before the softmax")
        kept[number] = heads[:, real_queries][:, :, real_keys]
    rows, columns = ([token for token, real in zip(labels, flags, strict=True) if real]
                     for labels, flags in ((rows, real_queries), (columns, real_keys)))
    return Kind(name, rows, columns, one_text, kept)


def make_pooling(pooling: object, kind: Kind, attention_mask: object, check_rows: bool) -> np.ndarray | None:
    """Pooling weights (key,), checked and without padding. Raises ValueError as `make_kind` does."""
    if pooling is None:
        return None
    array, tolerance = to_array(pooling, "pooling")
    array = array[0] if array.ndim == 2 and len(array) == 1 else array
    real = to_mask(attention_mask, len(array)) if array.ndim == 1 else np.zeros(0, dtype=bool)
    if array.ndim != 1 or int(real.sum()) != len(kind.keys):
        raise ValueError(f"pooling has shape {array.shape}; expected one weight for each token, "
                         f"({len(kind.keys) if attention_mask is None else np.size(attention_mask)},)")
    check_weights(array[None], ["pooling"], np.zeros(1, dtype=bool), "weights", tolerance, check_rows, "pooling")
    if array[~real].sum() > tolerance:
        raise ValueError(f"pooling gives {array[~real].sum():.4g} to padding, which is left out here; mask it before the "
                         "softmax")
    return array[real]


def pages(length: int, limit: int) -> list[dict]:
    """How a text of `length` tokens is shown, `limit` at a time: [] where it fits.

    The first page holds head and tail, the last one all, and between them, for a text of more than twice the limit, are
    pages of `limit - 1` tokens each. `ranges` are the tokens [from, to) that a page shows; on all pages but the last, the
    others are added up in a column of their own.
    """
    if length <= limit:
        return []
    head, tail = cut(length, limit)
    found = [{"name": f"first {len(head)} and last {len(tail)}",
              "ranges": [[0, len(head)], [length - len(tail), length]]}]
    for start in range(0, length if length > 2 * limit else 0, limit - 1):
        end = min(start + limit - 1, length)
        found.append({"name": f"{start}–{end - 1}" if end - start > 1 else f"{start}", "ranges": [[start, end]]})
    return [*found, {"name": "all", "ranges": [[0, length]]}]


def coded(weights: np.ndarray, shown: list[dict]) -> dict:
    """Weights (..., key) as the page reads them, with a column more for each page but the last.

    That column says how far the rest, what the keys that the page doesn't show add up to, is from the sum of their rounded
    weights, in steps above minus `slack(hidden)`; so the rest is exact too, in one character.
    """
    length = weights.shape[-1]
    hidden = np.ones((max(0, len(shown) - 1), length), dtype=bool)
    for page, flags in zip(shown, hidden, strict=False):
        for start, end in page["ranges"]:
            flags[start:end] = False
    rests = weights @ hidden.T.astype(float)  # (..., page)
    step = step_for(float(weights.max(initial=0.0)))
    rounded = in_steps(weights, step) @ hidden.T.astype(np.int64)
    beyond = np.floor(np.round(rests / step, 6) + 0.5) - rounded + [slack(int(flags.sum())) for flags in hidden]
    return encode(np.concatenate([weights, beyond.clip(0, MOST) * step], axis=-1), step)


def slack(hidden: int) -> int:
    """By how many steps at most the sum of so many rounded weights is above the rounded sum."""
    return min((hidden + 1) // 2, MOST // 2)


def side_data(side: Side, limit: int) -> dict:
    """What the page needs of one side, ready for JSON."""
    kinds = []
    for kind in side.kinds:
        shown = pages(len(kind.keys), limit)
        kinds.append({"name": kind.name, "queries": kind.queries, "keys": None if kind.one_text else kind.keys,
                      "pages": shown, "queryPages": shown if kind.one_text else pages(len(kind.queries), limit),
                      "layers": [{"number": number, "weights": coded(weights, shown)}
                                 for number, weights in kind.layers.items()]} | ({"note": kind.note} if kind.note else {}))
    pooling = None if side.pooling is None else coded(side.pooling, kinds[0]["pages"])
    probability = None if side.probability is None else round(side.probability, 3)
    answer = {} if side.classes is None else {"answer": side.answer}
    return {"label": side.label, "probability": probability, "kinds": kinds, "pooling": pooling} | answer


def matched(tokens: list[str], others: list[str]) -> list[int]:
    """For each token its partner among the others, -1 where it has none.

    The nth 'the' goes to the nth 'the'. In texts of one length with different words, a token goes to the one in its
    position.
    """
    if len(tokens) == len(others) and sorted(tokens) != sorted(others):
        return list(range(len(tokens)))
    positions = defaultdict(deque)
    for position, token in enumerate(others):
        positions[token].append(position)
    return [positions[token].popleft() if positions[token] else -1 for token in tokens]
