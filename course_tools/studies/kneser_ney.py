"""N-grams with interpolated modified Kneser-Ney smoothing: a strong way of counting short runs of tokens.

Does: count runs of up to five token ids, and give each next token a probability. Does not: tokenize, or see further back
than four tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from course_utils.options import check_options, whole

__all__ = ["KneserNey"]

FALLBACK = np.array([0.0, 0.5, 1.0, 1.5])               # discounts where too few runs were seen to estimate them


class _Level(NamedTuple):
    """The n-grams of one length: sorted numbers that name them, what each keeps of its count; of each context of theirs,
    its number, the sum of the counts, and how much of that was taken off."""

    grams: np.ndarray                                   # (grams,) int64
    kept: np.ndarray                                    # (grams,) float64
    contexts: np.ndarray                                # (contexts,) int64, sorted
    total: np.ndarray                                   # (contexts,) float64
    taken: np.ndarray                                   # (contexts,) float64


class KneserNey:
    """A language model of n-grams over token ids below `vocab_size`; `order` 5 looks at four tokens to predict one.

    Interpolated modified Kneser-Ney (Chen and Goodman 1999, section 3; Kneser and Ney 1995): counts of an n-gram are
    lowered by one of three discounts, estimated from how many n-grams occur once, twice, three and four times. What is
    taken off goes to the next shorter n-grams, which count not how often they occur but after how many different tokens.
    The shortest share with all ids evenly. `separator` begins every text; contexts end there, and it's never predicted.

    The counts are whole numbers and every step is in double precision, so processors differ in the last digits at most.
    Raises ValueError for a vocabulary and an order whose n-grams can't be numbered in 63 bits.
    """

    def __init__(self, vocab_size: int, order: int = 5, separator: int = 0):
        check_options({"vocab_size": vocab_size, "order": order},
                      {"vocab_size": whole(2, 10_000_000), "order": whole(1, 10)})
        check_options({"separator": separator}, {"separator": whole(0, vocab_size - 1)})
        if vocab_size**order >= 2**63:
            fits = next(n for n in range(order, 0, -1) if vocab_size**n < 2**63)
            raise ValueError(f"order={order} with vocab_size={vocab_size:,} makes more n-grams than 63 bits can number; "
                             f"use order={fits}")
        self.vocab_size, self.order, self.separator = vocab_size, order, separator
        self.levels: list[_Level] = []
        self.discounts: list[list[float]] = []          # of each order from 1: for a count of 1, of 2, of 3 and more

    def fit(self, rows: Iterable[Sequence[int]]) -> KneserNey:
        """Count texts, each a row of token ids (a separator before or within a row begins a text, too); returns self.

        Raises ValueError for an id outside the vocabulary, and for texts without a token.
        """
        ids, known = self._joined(rows)
        asked = ids != self.separator
        if not asked.any():
            raise ValueError("there are no tokens to count; expected at least one row with an id that isn't the separator")
        levels, discounts = [], []
        longer: np.ndarray | None = None                # the n-grams one token longer, each once
        for length in range(self.order, 0, -1):
            first = self.vocab_size ** (length - 1)
            numbers = self._numbers(ids, length)[asked & (known >= length - 1)]
            if longer is None:
                grams, counts = np.unique(numbers, return_counts=True)
            else:                                       # at a text's beginning there is nothing on the left to count
                begins = numbers[numbers // first == self.separator] if length > 1 else numbers[:0]
                grams, counts = _merged(np.unique(longer % self.vocab_size**length, return_counts=True),
                                        np.unique(begins, return_counts=True))
            found = _discounts(counts)
            levels.append(self._level(grams, counts, found))
            discounts.append(found[1:].tolist())
            longer = grams
        self.levels, self.discounts = levels[::-1], discounts[::-1]
        return self

    def log_probabilities(self, ids: Sequence[int]) -> np.ndarray:
        """ln p of each token of a text given those before it, in nats: (tokens,) float64; 0 for a separator.

        Raises ValueError for an id outside the vocabulary, RuntimeError before `fit`.
        """
        self._check_fitted()
        row, _ = self._joined([ids])
        probabilities = np.full(len(row), 1 / (self.vocab_size - 1))
        for length, level in enumerate(self.levels, start=1):
            numbers = self._numbers(row, length)
            place, found = _find(level.contexts, numbers // self.vocab_size)
            gram, counted = _find(level.grams, numbers)
            kept = np.where(counted, level.kept[gram], 0.0)
            mixed = (kept + level.taken[place] * probabilities) / level.total[place]
            probabilities = np.where(found, mixed, probabilities)
        probabilities[row == self.separator] = 1.0
        return np.log(probabilities)[1:]                # without the separator that `_joined` put first

    def next(self, ids: Sequence[int] = ()) -> np.ndarray:
        """The probability of every id as the next token after `ids`, the text so far: (vocab_size,) float64.

        It adds up to one; the separator's is 0. Only the last `order` - 1 tokens matter, and for a shorter text that it
        begins there. Raises as `log_probabilities` does.
        """
        self._check_fitted()
        row, _ = self._joined([ids[max(0, len(ids) - self.order + 1) :]])
        probabilities = np.full(self.vocab_size, 1 / (self.vocab_size - 1))
        probabilities[self.separator] = 0.0
        for length, level in enumerate(self.levels, start=1):
            context = self._numbers(row, length - 1)[-1] if length > 1 else np.int64(0)
            place, found = _find(level.contexts, context)
            if not found:
                break
            begin, end = np.searchsorted(level.grams, [context * self.vocab_size, (context + 1) * self.vocab_size])
            probabilities *= level.taken[place] / level.total[place]
            probabilities[level.grams[begin:end] % self.vocab_size] += level.kept[begin:end] / level.total[place]
        return probabilities

    def _check_fitted(self) -> None:
        if not self.levels:
            raise RuntimeError("this model has counted nothing yet; call fit(rows) first")

    def _joined(self, rows: Iterable[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """All rows in one, each after a separator: (tokens,) int64; and how many tokens of its text stand before each."""
        parts = []
        for row in rows:
            part = np.asarray(row if len(row) else [], dtype=np.int64)
            if part.ndim != 1:
                raise ValueError(f"a row has the shape {part.shape}; expected one row of ids for each text: fit([ids, ids])")
            if len(part) and not 0 <= part.min() <= part.max() < self.vocab_size:
                wrong = part[(part < 0) | (part >= self.vocab_size)][0]
                raise ValueError(f"id {wrong} is not in the vocabulary; its ids go from 0 to {self.vocab_size - 1}")
            parts += [np.array([self.separator]), part]
        ids = np.concatenate(parts) if parts else np.array([], dtype=np.int64)
        places = np.arange(len(ids))
        return ids, places - np.maximum.accumulate(np.where(ids == self.separator, places, 0))

    def _numbers(self, ids: np.ndarray, length: int) -> np.ndarray:
        """The number of the n-gram that ends at each place, its last id the lowest digit.

        One that would begin before its text has a separator further on than its first place, and so was never counted.
        """
        numbers = np.zeros(len(ids), dtype=np.int64)
        for back in range(min(length, len(ids))):
            numbers[back:] += ids[: len(ids) - back] * self.vocab_size**back
        return numbers

    def _level(self, grams: np.ndarray, counts: np.ndarray, discounts: np.ndarray) -> _Level:
        contexts, begins = np.unique(grams // self.vocab_size, return_index=True)
        off = discounts[np.minimum(counts, 3)]
        return _Level(grams, counts - off, contexts, np.add.reduceat(counts, begins).astype(float),
                      np.add.reduceat(off, begins))


def _discounts(counts: np.ndarray) -> np.ndarray:
    """What to take off a count of 0 (nothing), 1, 2, and 3 or more: (4,) float64 (Chen and Goodman 1999, equation 26)."""
    one, two, three, four = (int((counts == count).sum()) for count in (1, 2, 3, 4))
    if not (one and two and three and four):
        return FALLBACK
    share = one / (one + 2 * two)
    found = np.array([0.0, 1 - 2 * share * two / one, 2 - 3 * share * three / two, 3 - 4 * share * four / three])
    return found if all(0 < found[count] < count for count in (1, 2, 3)) else FALLBACK


def _merged(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Two lists of (grams, counts) that share no gram, as one in order."""
    grams, counts = (np.concatenate(pair) for pair in zip(one, other))
    order = np.argsort(grams)
    return grams[order], counts[order]


def _find(ordered: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each wanted number is in an ordered array, and whether it's there (elsewhere the place means nothing)."""
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return place, ordered[place] == wanted
