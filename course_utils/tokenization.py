"""Text to token ids and back: words with a vocabulary, byte pairs, and padded batches.

Does: `WordTokenizer` (words and punctuation, lower-cased, unknown words become `<unk>`),
`BPETokenizer` (byte-level byte pair encoding, nothing is ever unknown), which are both a `Tokenizer`;
`truncate` and `pad_batch`. Does not: stem, drop stop words, normalise Unicode, or look at labels.

Exported from notebooks/02_tokenization.ipynb: edit it there.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.files.saved_lists import SavedList

__all__ = ["Token", "Tokenizer", "WordTokenizer", "truncate", "pad_batch", "merge", "learn_merges", "apply_merges",
           "BPETokenizer"]


class Token(NamedTuple):
    """A token and its span: `original[start:end]` is what `text` was made from.

    Taught in 02_tokenization, '3. Ids'.
    """

    text: str
    start: int
    end: int


def _known(ids: Iterable[int], vocab_size: int) -> Iterator[int]:
    """The ids one by one. Raises ValueError for one outside the vocabulary; a list would take -1 for its last entry."""
    for i in ids:
        if not 0 <= i < vocab_size:
            raise ValueError(f"id {int(i)} is not in the vocabulary; its ids go from 0 to {vocab_size - 1}")
        yield i


class Tokenizer(SavedList):
    """What each tokenizer of the course offers, so that a saved model can come with any of them.

    `encode(text)` gives ids below `vocab_size`, `tokenize(text)` a `Token` for each of them, `decode(ids)` a text.
    `pad_id` fills up batches; `unk_id` replaces what has no id, and is None where everything has one.
    `save(path)` and `load(path)` keep the list that it is made from in a file.

    Taught in 02_tokenization, '3. Ids'.
    """

    pad_id, unk_id = 0, None


class WordTokenizer(Tokenizer):
    """Words and punctuation to ids, by a vocabulary counted on training texts.

    `vocabulary` lists the tokens in the order of their ids; it must begin with `<pad>` (id 0) and `<unk>` (id 1).
    Build one with `WordTokenizer.train`.

    Taught in 02_tokenization, '3. Ids'.
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
        return " ".join(self.vocabulary[i] for i in _known(ids, self.vocab_size))


def truncate(tokens: Sequence, max_len: int | None, truncation: str = "head") -> Sequence:
    """Cut a longer list (of ids, tokens, …) to `max_len`; a shorter one is returned as it is.

    "head" keeps the first `max_len`, "head_tail" the first quarter and the last three quarters of that number.

    Taught in 02_tokenization, '7. One tensor for many reviews'.
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

    Taught in 02_tokenization, '7. One tensor for many reviews'.
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


# a run of letters, digits or other characters, each with the space before it; then white space
_CHUNK = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
# printable bytes first: ties between pairs are then decided as in the `tokenizers` library
_BYTE_ORDER = sorted(range(256), key=lambda b: not (33 <= b <= 126 or 161 <= b <= 172 or b >= 174))
_BYTE_IDS = {b: i for i, b in enumerate(_BYTE_ORDER, start=1)}


def _byte_ids(text: str) -> list[int]:
    return [_BYTE_IDS[b] for b in text.encode("utf-8", "surrogatepass")]


def _text_of(data: bytes) -> str:
    """The text of some bytes; those that form no character are shown as U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def merge(ids: list[int], pair: tuple[int, int], new_id: int) -> list[int]:
    """Replace each `pair` in `ids`, from the left: merge([1, 2, 1, 2, 3], (1, 2), 9) -> [9, 9, 3].

    Taught in 02_tokenization, '11. Byte pairs on reviews'.
    """
    merged, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


def learn_merges(words: list[list[int]], frequency: list[int], num_merges: int, first_id: int) -> list[tuple[int, int]]:
    """The `num_merges` most frequent adjacent pairs, each merged before the next is counted.

    words: id lists, changed in place; frequency: how often each occurs. Merge number k makes the id
    `first_id + k`. Ties go to the pair of lower ids. Stops early when no pair is left.

    Taught in 02_tokenization, '11. Byte pairs on reviews'.
    """
    counts, where, merges = Counter(), defaultdict(set), []                # of each pair; the words that hold it
    for w, word in enumerate(words):
        for pair in zip(word, word[1:]):
            counts[pair] += frequency[w]
            where[pair].add(w)
    while len(merges) < num_merges and counts:
        most = max(counts.values())
        best = min(pair for pair, count in counts.items() if count == most)
        for w in where.pop(best):                                          # only these words change
            for pair in zip(words[w], words[w][1:]):
                counts[pair] -= frequency[w]
            words[w] = merge(words[w], best, first_id + len(merges))
            for pair in zip(words[w], words[w][1:]):
                counts[pair] += frequency[w]
                where[pair].add(w)
        merges.append(best)
        counts = +counts                                                   # drop pairs that are gone
    return merges


def apply_merges(ids: list[int], ranks: dict[tuple[int, int], int]) -> list[int]:
    """Merge the pairs of `ids`, the earliest learned first. ranks: pair -> id of the merged token.

    Reads the whole list once for every merge in it: nothing for a word, but two seconds for 60,000 letters without a
    space. (The `tokenizers` library keeps the pairs in a queue, and needs a hundredth of that.)

    Taught in 02_tokenization, '11. Byte pairs on reviews'.
    """
    while len(ids) > 1:
        pair = min(zip(ids, ids[1:]), key=lambda pair: ranks.get(pair, math.inf))
        if pair not in ranks:
            break
        ids = merge(ids, pair, ranks[pair])
    return ids


class BPETokenizer(Tokenizer):
    """Byte-level byte pair encoding (Sennrich et al. 2016, section 3.2; on bytes as in GPT-2).

    Id 0 is `<pad>`, ids 1 to 256 are the single bytes, and each merge adds one id. Every string
    can be encoded and comes back unchanged. `merges` lists pairs of ids in the order they were learned.

    Taught in 02_tokenization, '11. Byte pairs on reviews'.
    """

    kind, part, complaint = "byte pairs", "merges", "holds no byte pair merges; BPETokenizer.save() writes them"
    pattern = _CHUNK

    def __init__(self, merges: Iterable[tuple[int, int]] = ()):
        self.merges = [tuple(pair) for pair in merges]
        self.tokens = [b""] + [bytes([b]) for b in _BYTE_ORDER]             # id -> the bytes it stands for
        self.ranks = {}                                                    # pair -> id of the merged token
        for left, right in self.merges:
            self.ranks[left, right] = len(self.tokens)
            self.tokens.append(self.tokens[left] + self.tokens[right])
        self._cache = {}

    @property
    def vocab_size(self) -> int:
        """Number of ids: 1 for padding, 256 bytes, one for each merge."""
        return len(self.tokens)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "BPETokenizer":
        """Merge the most frequent adjacent pair, again and again, until there are `vocab_size` ids."""
        if vocab_size < 257:
            raise ValueError(f"vocab_size={vocab_size}; 257 ids are taken by <pad> and the bytes: ask for more")
        if isinstance(texts, str):
            raise TypeError("train() got one string; it needs a list of texts, such as [text]")
        chunks = Counter(chunk for text in texts for chunk in cls.pattern.findall(text))
        words = [_byte_ids(chunk) for chunk in chunks]
        return cls(learn_merges(words, list(chunks.values()), vocab_size - 257, first_id=257))

    def encode(self, text: str) -> list[int]:
        """Ids of the merged bytes of `text`. Every string has them; nothing is unknown."""
        ids = []
        for chunk in self.pattern.findall(text):
            if chunk not in self._cache:
                if len(self._cache) > 100_000:
                    self._cache.clear()
                self._cache[chunk] = apply_merges(_byte_ids(chunk), self.ranks)
            ids += self._cache[chunk]
        return ids

    def tokenize(self, text: str) -> list[Token]:
        """A token for each id; one that holds a part of a character's bytes gets the whole character."""
        owner = [i for i, letter in enumerate(text) for _ in _byte_ids(letter)]  # of each byte: its character
        ends = list(accumulate(len(self.tokens[i]) for i in self.encode(text)))
        spans = [(owner[begin], owner[end - 1] + 1) for begin, end in zip([0, *ends], ends)]
        return [Token(text[start:end], start, end) for start, end in spans]

    def decode(self, ids: Iterable[int]) -> str:
        """The text that `ids` stand for; bytes that form no character are shown as U+FFFD.

        Raises ValueError for an unknown id.
        """
        return _text_of(b"".join(self.tokens[i] for i in _known(ids, self.vocab_size)))
