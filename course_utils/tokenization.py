"""Text to token ids and back: words with a vocabulary, and padded batches.

Does: `WordTokenizer` (words and punctuation, lower-cased, unknown words become `<unk>`), which is a `Tokenizer`;
`truncate` and `pad_batch`. Notebook 02 builds the shortest right form of these; here bad input is refused, and a vocabulary
can be saved. Does not: stem, drop stop words, normalise Unicode, or look at labels.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.files.saved_lists import SavedList

__all__ = ["Token", "Tokenizer", "WordTokenizer", "truncate", "pad_batch"]


class Token(NamedTuple):
    """A token and its span: `original[start:end]` is what `text` was made from.

    Taught in 02_tokenization, '1. Where does a word end?'.
    """

    text: str
    start: int
    end: int


class Tokenizer(SavedList):
    """What each tokenizer of the course offers, so that a saved model can come with any of them.

    `encode(text)` gives ids below `vocab_size`, `tokenize(text)` a `Token` for each of them, `decode(ids)` a text.
    `pad_id` fills up batches; `unk_id` replaces what has no id, and is None where everything has one.
    `save(path)` and `load(path)` keep the list that it is made from in a file.
    """

    pad_id, unk_id = 0, None

    def _known(self, ids: Iterable[int]) -> Iterator[int]:
        """The ids one by one. Raises ValueError for one outside the vocabulary; a list would take -1 for its last entry."""
        for i in ids:
            if not 0 <= i < self.vocab_size:
                raise ValueError(f"id {int(i)} is not in the vocabulary; its ids go from 0 to {self.vocab_size - 1}")
            yield i


class WordTokenizer(Tokenizer):
    """Words and punctuation to ids, by a vocabulary counted on training texts.

    `vocabulary` lists the tokens in the order of their ids; it must begin with `<pad>` (id 0) and `<unk>` (id 1).
    Build one with `WordTokenizer.train`.

    Taught in 02_tokenization, '3. From the training split only'.
    """

    kind, part, complaint = "words", "vocabulary", "is not a word vocabulary; WordTokenizer.save() writes one"  # in files
    unk_id = 1
    pattern = re.compile(r"<br\s*/?>|(\w+(?:['’]\w+)*|[^\w\s])")  # a line break in HTML is white space

    def __init__(self, vocabulary: list[str]):
        if list(vocabulary[:2]) != ["<pad>", "<unk>"]:
            raise ValueError(f"a vocabulary begins with '<pad>', '<unk>'; this one begins {list(vocabulary[:2])}")
        self.vocabulary = list(vocabulary)
        self.ids = {token: i for i, token in enumerate(self.vocabulary)}

    @classmethod
    def train(cls, texts: Iterable[str], max_size: int = 15000, min_freq: int = 2) -> "WordTokenizer":
        """Keep the most frequent tokens of `texts`, at most `max_size` with the two special ones.

        Ties are broken alphabetically, so the same texts give the same ids on every machine.
        """
        if isinstance(texts, str):
            raise TypeError("train() got one string; it needs a list of texts, such as [text]")
        if max_size < 2:
            raise ValueError(f"max_size={max_size}; 2 ids are taken by <pad> and <unk>: ask for more")
        empty = cls(["<pad>", "<unk>"])
        counts = Counter(token.text for text in texts for token in empty.tokenize(text))
        frequent = sorted((t for t in counts if counts[t] >= min_freq), key=lambda t: (-counts[t], t))
        return cls(["<pad>", "<unk>"] + frequent[: max_size - 2])

    @property
    def vocab_size(self) -> int:
        """Number of ids, the two special ones included."""
        return len(self.vocabulary)

    def tokenize(self, text: str) -> list[Token]:
        """Split into lower-cased words and single punctuation characters, each with its character span."""
        return [Token(m[1].lower(), m.start(), m.end()) for m in self.pattern.finditer(text) if m[1]]

    def encode(self, text: str) -> list[int]:
        """Ids of the tokens of `text`; a token outside the vocabulary becomes `unk_id`."""
        return [self.ids.get(token.text, self.unk_id) for token in self.tokenize(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The tokens of `ids`, joined by spaces; case and unknown words are lost. Raises ValueError for an unknown id."""
        return " ".join(self.vocabulary[i] for i in self._known(ids))


def truncate(tokens: Sequence, max_len: int | None, truncation: str = "head") -> Sequence:
    """Cut a longer list (of ids, tokens, …) to `max_len`; a shorter one is returned as it is.

    "head" keeps the first `max_len`, "head_tail" the first quarter and the last three quarters of that number.

    Taught in 02_tokenization, '5. One tensor for many reviews'.
    """
    if truncation not in ("head", "head_tail"):
        raise ValueError(f"truncation={truncation!r}; use 'head' or 'head_tail'")
    if max_len is not None and max_len < 1:
        raise ValueError(f"max_len={max_len}; use 1 or more, or None for no limit")
    if max_len is None or len(tokens) <= max_len:
        return tokens
    head = max_len if truncation == "head" else max_len // 4
    return [*tokens[:head], *tokens[len(tokens) - (max_len - head) :]]


def pad_batch(
    list_of_ids: Iterable[Sequence[int]], pad_id: int, max_len: int | None = None, truncation: str = "head",
    multiple_of: int = 1,
) -> tuple[Tensor, Tensor]:
    """Stack id lists of unequal length into one tensor, with a mask of what is real.

    Each list is first cut by `truncate`. The width is rounded up to `multiple_of`, but never beyond
    `max_len`, since a model has no positions there.
    Returns token_ids (batch, seq_len) int64 and attention_mask (batch, seq_len) bool, True = real.

    Taught in 02_tokenization, '5. One tensor for many reviews'.
    """
    rows = [truncate(ids, max_len, truncation) for ids in list_of_ids]
    longest = max([len(row) for row in rows] + [1])                       # one column even if all are empty
    seq_len = math.ceil(longest / multiple_of) * multiple_of
    if max_len is not None:
        seq_len = min(seq_len, max_len)
    token_ids = torch.full((len(rows), seq_len), pad_id, dtype=torch.long)  # (batch, seq_len)
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.long)
    for i, row in enumerate(rows):
        token_ids[i, : len(row)] = torch.as_tensor(row, dtype=torch.long)
    return token_ids, torch.arange(seq_len) < lengths[:, None]
