"""Byte pairs for translation: one list of pieces for both languages, with ids for <bos> and <eos>.

    pieces = SharedBytePairs.train([*english_texts, *french_texts], vocab_size=6000)
    data = PairBatches(encode_texts(english_texts, french_texts, pieces), batch_size=64)

Does: give ids to texts, and texts to ids. Does not: learn merges by itself (`BPETokenizer` does). Where words
are split already and listed one by one, `pair_batches.WordList` is what to take.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from course_utils.byte_pairs import BPETokenizer
from course_utils.tokenization import Token, Tokenizer
from course_utils.training.pair_batches import BEGIN, END, PAD, SPECIAL, UNKNOWN, EncodedPairs

__all__ = ["SharedBytePairs", "encode_texts"]

SHIFT = len(SPECIAL) - 1                                # `BPETokenizer` has one special id, padding, and so 3 fewer


class SharedBytePairs(Tokenizer):
    """`BPETokenizer` with the ids of `pair_batches`: 0 to 3 are <pad>, <unk>, <bos> and <eos>, then bytes and merges.

    Every string can be encoded, so <unk> never occurs. `merges` are numbered as in `BPETokenizer`.
    """

    kind, part, complaint = "shared byte pairs", "merges", "holds no shared byte pairs; SharedBytePairs.save() writes them"
    pad_id, unk_id = PAD, UNKNOWN

    def __init__(self, merges: Iterable[tuple[int, int]] = ()):
        self.pairs = BPETokenizer(merges)

    @property
    def merges(self) -> list[tuple[int, int]]:
        """The merges, in the order in which they were learned."""
        return self.pairs.merges

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> SharedBytePairs:
        """Merge the most frequent adjacent pair, again and again, until there are `vocab_size` ids.

        Raises ValueError for fewer than 260, which are taken by the special ids and the bytes.
        """
        if vocab_size < 257 + SHIFT:
            raise ValueError(f"vocab_size={vocab_size}; {257 + SHIFT} ids are taken by {', '.join(SPECIAL)} and the bytes: "
                             "ask for more")
        return cls(BPETokenizer.train(texts, vocab_size - SHIFT).merges)

    @property
    def vocab_size(self) -> int:
        """Number of ids: 4 special ones, 256 bytes, one for each merge."""
        return self.pairs.vocab_size + SHIFT

    def encode(self, text: str) -> list[int]:
        """Ids of the merged bytes of a text. Adds no special id."""
        return [i + SHIFT for i in self.pairs.encode(text)]

    def tokenize(self, text: str) -> list[Token]:
        """A token for each id, with its span in the text."""
        return self.pairs.tokenize(text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text that some ids stand for, special ones left out. Raises ValueError for an unknown id."""
        ids = [int(i) for i in ids]
        wrong = [i for i in ids if not 0 <= i < self.vocab_size]
        if wrong:
            raise ValueError(f"id {wrong[0]} is not in the list of byte pairs; its ids go from 0 to {self.vocab_size - 1}")
        return self.pairs.decode(i - SHIFT for i in ids if i > END)


def encode_texts(sources: Sequence[str], targets: Sequence[str], pieces: SharedBytePairs) -> EncodedPairs:
    """Encode texts and their translations, as `encode_pairs` does split ones.

    Raises ValueError for lists of different lengths.
    """
    if len(sources) != len(targets):
        raise ValueError(f"there are {len(sources)} sources and {len(targets)} targets; give one target for each source")
    return EncodedPairs([pieces.encode(text) for text in sources],
                        [[BEGIN, *pieces.encode(text), END] for text in targets])
