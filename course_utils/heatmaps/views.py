"""What a heatmap shows, before anything is drawn: checked weights, cut to the room there is, and described.

`make_view` checks one (query, key) matrix, crops its padding and folds the middle of a long text
into a 'rest' column. Nothing is renormalised: a shown row sums to what the given row summed to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from course_utils.figures.text import count, display_token, one_line, spoken

KINDS = ("weights", "difference")


@dataclass
class View:
    """The part of one attention matrix that a figure shows. Sizes: rows and columns as shown."""

    cells: np.ndarray  # (rows, columns), the rest column filled in, NaN across the gap row
    row_labels: list[str]
    column_labels: list[str]
    rest_column: int | None
    gap_row: int | None
    empty_rows: np.ndarray  # (rows,) True where a query has no key: a row of zeros
    evidence_rows: np.ndarray  # (rows,) bool
    evidence_columns: np.ndarray  # (columns,) bool
    one_text: bool  # rows and columns are the same tokens
    strongest: list[str]  # the largest weights of the whole matrix in words, largest first
    notes: list[str] = field(default_factory=list)

    @property
    def coloured(self) -> np.ndarray:
        """(rows, columns) True where a cell takes its colour from the scale."""
        coloured = np.isfinite(self.cells) & ~self.empty_rows[:, None]
        if self.rest_column is not None:
            coloured[:, self.rest_column] = False
        return coloured


def to_array(values: object, name: str = "weights") -> tuple[np.ndarray, float]:
    """A float64 array from a tensor, an array or lists, and how far from one its rows may sum."""
    if isinstance(values, (list, tuple)) and values and hasattr(values[0], "detach"):
        parts = [to_array(value, name) for value in values]
        if len({part.shape for part, _ in parts}) > 1:
            raise ValueError(f"{name} is a list of tensors of shapes {[part.shape for part, _ in parts]}; "
                             f"expected one shape")
        return np.stack([part for part, _ in parts]), parts[0][1]
    half = str(getattr(values, "dtype", "")).endswith("float16")  # float16 and bfloat16: two or three digits
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    try:
        return np.array(values, dtype=np.float64), 2e-2 if half else 1e-3
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is no table of numbers ({error}); expected a tensor, an array or lists of "
                         f"equal length") from None


def to_flags(values: object, length: int, name: str) -> np.ndarray:
    """(length,) booleans from booleans, or from a list of indices."""
    if values is None:
        return np.zeros(length, dtype=bool)
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    given = np.asarray(list(values) if isinstance(values, (set, range)) else values)
    if given.size == 0:
        return np.zeros(length, dtype=bool)
    if given.ndim != 1 or given.dtype.kind not in "biu":
        raise ValueError(f"{name} has shape {given.shape} and type {given.dtype}; expected token indices such as "
                         f"[2, 5], or {length} booleans")
    if given.dtype.kind == "b":
        if len(given) != length:
            raise ValueError(f"{name} has {len(given)} booleans for {length} tokens; give one a token, or indices")
        return given
    if given.min() < 0 or given.max() >= length or len(set(given.tolist())) < len(given):
        raise ValueError(f"{name}={one_line(str(given.tolist()), 60)}: expected different indices from 0 to "
                         f"{length - 1}; for a 0/1 list give booleans, [bool(x) for x in {name}]")
    flags = np.zeros(length, dtype=bool)
    flags[given] = True
    return flags


def to_tokens(tokens: object, length: int, name: str, role: str) -> list[str]:
    """The labels as strings, one for each row or column."""
    if isinstance(tokens, (str, bytes)):
        raise ValueError(f"{name} is one string; expected a list of {length} tokens: split it first, as the "
                         f"tokenizer does")
    if hasattr(tokens, "tolist"):
        tokens = tokens.tolist()
    tokens = list(tokens)
    if len(tokens) != length:
        hint = (" (padding needs labels too, such as '<pad>')" if len(tokens) < length
                else " (were tokens truncated before the model saw them?)")
        raise ValueError(f"{name} has {len(tokens)} labels, but weights has {length} {role}: give one label for "
                         f"each{hint}")
    return [token if isinstance(token, str) else str(token) for token in tokens]


def to_mask(mask: object, length: int) -> np.ndarray:
    """(length,) booleans, True for a real token, as the course's attention masks have it."""
    if mask is None:
        return np.ones(length, dtype=bool)
    array = to_array(mask, "attention_mask")[0]
    if array.size != length or max(array.shape, default=1) != length:
        raise ValueError(f"attention_mask has shape {array.shape}; expected ({length},), one True (real) or False "
                         f"(padding) for each key: take one row of the batch's mask")
    array = array.reshape(-1)
    if not np.isin(array, (0, 1)).all():
        raise ValueError(f"attention_mask holds {array[~np.isin(array, (0, 1))][0]}; expected True (real) or False "
                         f"(padding), not what is added to scores: give mask == 0 for an additive mask")
    if not array.any():
        raise ValueError("attention_mask is False everywhere: there is no real token to show; "
                         "True means 'may be attended to' here")
    return array.astype(bool)


def check_weights(weights: np.ndarray, queries: Sequence[str], padded: np.ndarray, kind: str, tolerance: float,
                  check_rows: bool, where: str) -> None:
    """Raise ValueError unless these can be attention weights (query, key), or a difference of two."""
    def name(row: int) -> str:
        pad = ", a padded one" if padded[row] else ""
        return f"row {row} (query '{display_token(queries[row])}'{pad})"

    if not np.isfinite(weights).all():
        row, column = np.argwhere(~np.isfinite(weights))[0]
        raise ValueError(f"{where} holds {weights[row, column]} in {name(row)}, key {column}; expected finite numbers. "
                         f"A softmax over a row that is masked everywhere gives NaN: give such a row zeros")
    if kind == "difference":
        return
    if weights.min() < 0:
        row, column = np.unravel_index(weights.argmin(), weights.shape)
        raise ValueError(f"{where} holds {weights[row, column]:.4g} in {name(row)}, key {column}; weights are never "
                         f"negative. Pass the weights after the softmax, or kind='difference' for a difference")
    sums = weights.sum(axis=1)
    wrong = (np.abs(sums - 1) > tolerance) & (sums != 0) & ~padded
    if check_rows and wrong.any():
        row = int(np.argmax(wrong))
        columns = weights.sum(axis=0)
        turned = np.allclose(columns, 1, atol=tolerance)
        hint = ("The columns do sum to one: the matrix looks transposed, pass weights.T" if turned else
                "Take the softmax over the keys (dim=-1), mask before it and leave dropout off; "
                "check_rows=False draws it as it is")
        raise ValueError(f"{where}: {name(row)} sums to {sums[row]:.4g} ({int(wrong.sum())} of {len(sums)} rows do not "
                         f"sum to one); expected 1, or all zeros for a query with no key. {hint}")


def cut(length: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the head and of the tail shown of `length` tokens, with one place of `limit` for the rest."""
    if length <= limit:
        return np.arange(length), np.arange(0)
    tail = (limit - 1) // 2
    return np.arange(limit - 1 - tail), np.arange(length - tail, length)


def make_view(weights: object, tokens: object, key_tokens: object, evidence: object, kind: str, attention_mask: object,
              max_tokens: int, check_rows: bool, tolerance: float = 1e-3, where: str = "weights") -> View:
    """Check one (query, key) matrix and choose what to show of it. Raises ValueError with what to do."""
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r}; expected 'weights' or 'difference'")
    if isinstance(max_tokens, bool) or not isinstance(max_tokens, (int, np.integer)) or max_tokens < 3:
        raise ValueError(f"max_tokens={max_tokens!r}; expected a whole number from 3: a head, the rest and a tail")
    query_len, key_len = weights.shape
    if not weights.size:
        raise ValueError(f"{where} has shape {weights.shape}: there is no {'key' if query_len else 'query'} to show")
    if (key_tokens is not None and query_len != key_len and not isinstance(tokens, str)
            and (len(tokens), len(key_tokens)) == (key_len, query_len)):
        raise ValueError(f"{where} has shape {weights.shape}, with {len(tokens)} query and {len(key_tokens)} key labels: "
                         f"expected (query, key) = ({len(tokens)}, {len(key_tokens)}); pass weights.T, or swap the labels")
    if key_tokens is None and query_len != key_len:
        raise ValueError(f"{where} has {query_len} queries and {key_len} keys, so rows and columns differ: "
                         f"give key_tokens= as well")
    one_text = key_tokens is None
    queries = to_tokens(tokens, query_len, "tokens", "queries (rows)")
    keys = queries if one_text else to_tokens(key_tokens, key_len, "key_tokens", "keys (columns)")
    real_keys = to_mask(attention_mask, key_len)
    real_queries = real_keys if one_text else np.ones(query_len, dtype=bool)
    marked = to_flags(evidence, key_len, "evidence")
    check_weights(weights, queries, ~real_queries, kind, tolerance, check_rows, where)

    query_index, key_index = np.arange(query_len), np.arange(key_len)
    if not real_keys.all():
        query_index, key_index = query_index[real_queries], key_index[real_keys]
        lost = np.abs(weights[query_index][:, ~real_keys]).sum(axis=1)
        if lost.max() > tolerance:
            row = int(query_index[lost.argmax()])
            raise ValueError(f"{where}: row {row} (query '{display_token(queries[row])}') gives {lost.max():.4g} to "
                             f"padding, which is left out here; mask the scores before the softmax")
    notes = []
    real = weights[np.ix_(query_index, key_index)]
    head, tail = cut(len(key_index), max_tokens)
    top, bottom = cut(len(query_index), max_tokens)
    columns, rows = key_index[np.r_[head, tail]], query_index[np.r_[top, bottom]]
    cells = weights[np.ix_(rows, columns)]
    marked_rows, marked_columns = marked[rows] if one_text else np.zeros(len(rows), bool), marked[columns]
    row_labels = [display_token(queries[row]) for row in rows]
    column_labels = [display_token(keys[column]) for column in columns]
    rest_column = gap_row = None
    if len(tail):
        rest_column = len(head)
        hidden = len(key_index) - len(columns)
        between = key_index[len(head):len(key_index) - len(tail)]
        cells = np.insert(cells, rest_column, weights[np.ix_(rows, between)].sum(axis=1), axis=1)
        column_labels.insert(rest_column, f"rest ({hidden})")
        marked_columns = np.insert(marked_columns, rest_column, False)
        total = "is unchanged" if kind == "difference" or not check_rows else "stays one"
        notes.append(f"{len(key_index)} keys: the first {len(head)} and last {len(tail)} are shown; 'rest' adds up the "
                     f"{hidden} between, so that each row's sum {total}.")
        unseen = int(marked.sum() - marked[columns].sum())
        if unseen:
            notes.append(f"Evidence within the rest: {unseen} of {int(marked.sum())} tokens.")
    if len(bottom):
        gap_row = len(top)
        cells = np.insert(cells, gap_row, np.nan, axis=0)
        hidden = len(query_index) - len(rows)
        row_labels.insert(gap_row, f"⋮ ({hidden})")
        marked_rows = np.insert(marked_rows, gap_row, False)
        notes.append(f"{hidden} of {len(query_index)} query rows are not drawn.")
    empty = ~np.nan_to_num(cells, nan=1.0).any(axis=1) & (kind == "weights")
    if empty.any():
        notes.append("Grey row: a query with no key to attend to.")
    return View(cells, row_labels, column_labels, rest_column, gap_row, empty, marked_rows, marked_columns, one_text,
                _strongest(real, query_index, key_index, queries, keys, kind), notes)


def _strongest(real: np.ndarray, query_index: np.ndarray, key_index: np.ndarray, queries: list[str], keys: list[str],
               kind: str) -> list[str]:
    """The three largest weights (or changes) in words; fewer where fewer are not zero."""
    size, words = np.abs(real), []
    # Rounded: weights that are equal but for the last bits keep their order on every machine.
    for flat in np.argsort(-size.round(6), axis=None, kind="stable")[:3]:
        row, column = np.unravel_index(flat, size.shape)
        if size[row, column] > 0:
            query, key = int(query_index[row]), int(key_index[column])
            value = f"{real[row, column]:+.3f}" if kind == "difference" else f"{real[row, column]:.3f}"
            words.append(f"'{display_token(queries[query], 30)}' (query {query}) to '{display_token(keys[key], 30)}' "
                         f"(key {key}) {value}")
    return words


def number(value: float, decimals: int, signed: bool = False) -> str:
    """A weight as printed in a cell: '0.25', or '+0.10' and '−0.10' in a difference; an exact zero is '0'.

    What rounds to zero has no sign: rows of '+0.00' and '−0.00' hide the few numbers that matter.
    """
    if value == 0:
        return "0"
    signed = signed and abs(value) >= 0.5 * 10.0**-decimals
    shown = f"{value:{'+' if signed else ''}.{decimals}f}"
    return shown.replace("-", "−") if signed or float(shown) else f"{0:.{decimals}f}"


def nice_limit(largest: float) -> float:
    """The smallest of 1, 2, 3, 4, 5, 6, 8 or 10 times a power of ten that is not below `largest`."""
    if largest <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    for step in (1, 2, 3, 4, 5, 6, 8, 10):
        if largest <= step * power * (1 + 1e-6):
            return float(f"{step * power:.6g}")
    return float(f"{10 * power:.6g}")


def scale_limits(largest: float, kind: str, vmax: float | None) -> tuple[float, float]:
    """The ends of the colour scale: zero to a round number for weights, symmetric for differences."""
    vmax = nice_limit(largest) if vmax is None else vmax
    if not 0 < vmax < math.inf:
        raise ValueError(f"vmax={vmax}; expected a finite number above 0, the end of the colour scale")
    return -float(vmax) if kind == "difference" else 0.0, float(vmax)


def scale_ticks(vmin: float, vmax: float) -> list[float]:
    """Three to six values for a colour bar, both ends among them."""
    if vmin == -vmax:
        return [vmin, vmin / 2, 0.0, vmax / 2, vmax]
    span = vmax - vmin
    power = 10.0 ** math.floor(math.log10(span))
    step = next(s * power for s in (0.1, 0.2, 0.25, 0.5, 1, 2) if span / (s * power) <= 5.01)
    inner = [round(i * step, 12) for i in range(math.ceil(vmin / step), math.floor(vmax / step) + 1)]
    return [vmin, *[t for t in inner if vmin + 0.4 * step < t < vmax - 0.4 * step], vmax]


def describe_view(view: View, shape: tuple[int, int], kind: str, vmin: float, vmax: float, evidence: list[str]) -> str:
    """The alternative text of one heatmap."""
    what = "attention weights" if kind == "weights" else "differences between attention weights"
    largest = "Largest weights" if kind == "weights" else "Largest differences"
    text = (f"Heatmap of {what}, {count(shape[0], 'query', 'queries')} (rows, attend from) "
            f"by {count(shape[1], 'key', 'keys')} (columns, attended to). Rows: {spoken(view.row_labels)}. ")
    if not view.one_text or view.rest_column is not None:
        text += f"Columns: {spoken(view.column_labels)}. "
    text += f"{largest}: {'; '.join(view.strongest)}. " if view.strongest else "All values are zero. "
    text += f"Colour scale from {vmin:.4g} to {vmax:.4g}."
    if evidence:
        text += f" Evidence outlined: {', '.join(evidence)}."
    return " ".join([text, *view.notes])
