"""Byte pairs: texts to ids and back without any loss.

Does: `BPETokenizer` (byte-level byte pair encoding, nothing is ever unknown), a `Tokenizer`; the steps that it's made of.
Notebook 02b builds the shortest right form of these; here ties are decided as in the `tokenizers` library, lone surrogates
come back, chunks that were met before are remembered, a merge looks only at the words that it changes, and bad input is
refused. Does not: know special tokens other than `<pad>`, or read the files of other libraries
(`training.byte_pair_files` does).
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import accumulate

from course_utils.tokenization import Token, Tokenizer

__all__ = ["BPETokenizer", "apply_merges", "learn_merges", "merge"]

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

    Taught in 02b_byte_pairs, '2. Merging pairs, by hand'.
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

    Taught in 02b_byte_pairs, '2. Merging pairs, by hand'.
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

    Taught in 02b_byte_pairs, '4. Encode: the merges, in the order learned'.
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

    Taught in 02b_byte_pairs, '5. Decode, and nothing is lost'.
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
        return _text_of(b"".join(self.tokens[i] for i in self._known(ids)))
