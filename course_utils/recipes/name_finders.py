"""What the extra 'Other heads' needs around its two heads: batches, a vocabulary of pieces, two finders that hardly learn.

Does: `Rows` pads rows of ids and targets for `fit`; `piece_vocabulary` chooses word pieces for a small corpus; `by_list` and
`by_capitals` find names without a network. Does not: define a head or a score (`course_utils.other_heads` does).
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from course_utils.tokenization import pad_batch

__all__ = ["Rows", "by_capitals", "by_list", "piece_vocabulary"]


class Rows:
    """Rows of equally many parts (ids, targets …) as padded batches of similar length: `TrainingData` for `fit`.

    `padding` is what fills each part; a batch is (rows, parts, seq_len).
    """

    fingerprint = "no checkpoints"

    def __init__(self, rows: Sequence[Sequence[list[int]]], padding: Sequence[int], size: int = 32):
        rows = sorted(rows, key=lambda row: len(row[0]))
        groups = [rows[i : i + size] for i in range(0, len(rows), size)]
        self.all = [torch.stack([pad_batch([row[k] for row in group], fill)[0] for k, fill in enumerate(padding)], dim=1)
                    for group in groups]

    def __len__(self) -> int:
        return len(self.all)

    def batches(self, seed: int | None) -> Iterator[Tensor]:
        """All batches, in an order that depends on `seed`; None: from short to long."""
        order = list(self.all)
        if seed is not None:
            random.Random(seed).shuffle(order)
        yield from order


def piece_vocabulary(words: Iterable[str], at_least: int) -> list[str]:
    """Words that occur so often, letters, and runs of two to four letters that rarer words have at least four times."""
    counts = Counter(word.lower() for word in words)
    rare = [word for word in counts if counts[word] < at_least]
    runs = Counter(word[i : i + n] for word in rare for n in (2, 3, 4) for i in range(len(word) - n + 1))
    small = [*"abcdefghijklmnopqrstuvwxyz", *(run for run in sorted(runs) if runs[run] >= 4)]
    whole = [word for word in sorted(counts) if counts[word] >= at_least and word not in small]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *small, *("##" + piece for piece in small), *whole]


def by_list(words: Sequence[str], people: set[str], films: set[tuple[str, ...]]) -> set[tuple[int, int, str]]:
    """The names that a list finds: runs of words from `people`, and whole titles of two to four words from `films`."""
    found, i = set(), 0
    while i < len(words):
        title = next((n for n in (4, 3, 2) if tuple(words[i : i + n]) in films), 0)
        run = next((n for n, word in enumerate([*words[i:], None]) if word not in people), 0)
        if title or run:
            found.add((i, i + (title or run), "film" if title else "person"))
        i += title or run or 1
    return found


def by_capitals(words: Sequence[str]) -> set[tuple[int, int, str]]:
    """The names that capitals give: runs of capitalised words, but no single one at the start of a sentence.

    A run that begins with 'The' is a film.
    """
    found, i = set(), 0
    while i < len(words):
        run = next(n for n, word in enumerate([*words[i:], "."]) if not word[0].isupper())
        if run > 1 or (run and i and words[i - 1] not in ".?"):
            found.add((i, i + run, "film" if words[i] == "The" else "person"))
        i += run or 1
    return found
