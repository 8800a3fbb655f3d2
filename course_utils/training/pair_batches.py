"""Sentences with their translations for `fit`: word lists, encoded pairs, and batches of similar lengths.

    english = WordList.train(dataset["source_tokens"])
    french = WordList.train(dataset["target_tokens"])
    data = PairBatches(encode_pairs(dataset, english, french), batch_size=64)

A source is words alone; a target begins with <bos> and ends with <eos>, so that it can be read as input (all but its last
token) and as what is asked for (all but its first). Does: give ids to tokens, pad, put similar lengths together. Does not:
split a text into tokens (`course_utils.data.translations` does), know a model, or translate.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from course_utils import files
from course_utils.options import check_options, whole
from course_utils.tokenization import Token, Tokenizer, pad_batch

__all__ = ["BEGIN", "END", "PAD", "SPECIAL", "UNKNOWN", "EncodedPairs", "PairBatch", "PairBatches", "WordList",
           "encode_pairs"]

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SPECIAL = ["<pad>", "<unk>", "<bos>", "<eos>"]


class WordList(Tokenizer):
    """A vocabulary of tokens that have been split already; ids 0 to 3 are `<pad>`, `<unk>`, `<bos>` and `<eos>`.

    Case counts: 'The' and 'the' are two words. Build one with `WordList.train`. Raises ValueError for a list that doesn't
    begin with the four special tokens.
    """

    kind, part, complaint = "word list", "words", "is not a word list; WordList.save() writes one"
    pad_id, unk_id = PAD, UNKNOWN

    def __init__(self, words: Sequence[str]):
        if list(words[:4]) != SPECIAL:
            raise ValueError(f"a word list begins with {', '.join(SPECIAL)}; this one begins with {list(words[:4])!r:.80}")
        self.words = list(words)
        self.ids = {word: i for i, word in enumerate(self.words)}

    @classmethod
    def train(cls, list_of_tokens: Iterable[Sequence[str]], min_freq: int = 1) -> WordList:
        """All tokens that occur `min_freq` times or more, the most frequent first, equally frequent ones by the alphabet.

        Raises TypeError for texts that haven't been split into tokens.
        """
        list_of_tokens = [_tokens(tokens) for tokens in list_of_tokens]
        counts = Counter(token for tokens in list_of_tokens for token in tokens)
        kept = sorted((token for token in counts if counts[token] >= min_freq and token not in SPECIAL),
                      key=lambda token: (-counts[token], token))
        return cls([*SPECIAL, *kept])

    @property
    def vocab_size(self) -> int:
        """Number of ids, the four special ones included."""
        return len(self.words)

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """The id of each token, `UNKNOWN` for one that isn't listed. Adds no special id. Raises TypeError for a string."""
        return [self.ids.get(token, UNKNOWN) for token in _tokens(tokens)]

    def tokenize(self, tokens: Sequence[str]) -> list[Token]:
        """A `Token` for each token, its span counted in the text with one space after every token."""
        ends, result = 0, []
        for token in _tokens(tokens):
            result.append(Token(token, ends, ends + len(token)))
            ends += len(token) + 1
        return result

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The words of some ids, without padding, <bos> and <eos>. Raises ValueError for an id that no word has."""
        ids = [int(i) for i in ids]
        wrong = [i for i in ids if not 0 <= i < len(self.words)]
        if wrong:
            raise ValueError(f"id {wrong[0]} is not in the word list; its ids go from 0 to {len(self.words) - 1}")
        return [self.words[i] for i in ids if i not in (PAD, BEGIN, END)]


def _tokens(tokens) -> Sequence[str]:
    if isinstance(tokens, str):
        raise TypeError(f"expected a list of tokens and got the text {tokens!r:.60}; split it first: split_english(text) or "
                        "split_french(text) of course_utils.data.translations")
    return tokens


class EncodedPairs(NamedTuple):
    """`source`: the ids of each sentence's words. `target`: those of its translation, from `BEGIN` to `END`."""

    source: list[list[int]]
    target: list[list[int]]


def encode_pairs(dataset, source_words: WordList, target_words: WordList) -> EncodedPairs:
    """Encode the columns `source_tokens` and `target_tokens` of a split, in its order."""
    return EncodedPairs([source_words.encode(tokens) for tokens in dataset["source_tokens"]],
                        [[BEGIN, *target_words.encode(tokens), END] for tokens in dataset["target_tokens"]])


class PairBatch(NamedTuple):
    """`source_ids` and `source_mask` (batch, source), True for a real token; `target_ids` (batch, target + 1), each from
    `BEGIN` to `END` and then padded with `PAD`; `indices`, which pairs they are."""

    source_ids: torch.Tensor
    source_mask: torch.Tensor
    target_ids: torch.Tensor
    indices: list[int]

    def to(self, device) -> PairBatch:
        """The same batch with its tensors on a device."""
        return PairBatch(*(part.to(device) for part in self[:3]), self.indices)

    def part(self, rank: int, of: int) -> PairBatch:
        """Every `of`-th pair from `rank` on, as wide as the batch: the part of one of `of` processes."""
        return PairBatch(*(one[rank::of] for one in self))


@dataclass(frozen=True)
class PairBatches:
    """Pairs as `TrainingData`, for `fit`: `PairBatch` after `PairBatch`, pairs of similar lengths together.

    With a seed both the pairs that come together and the order of the batches are random; without one the batches go from
    short to long. Each pair comes once an epoch; the last batch may be smaller. Raises ValueError for a split without
    pairs, for sides of different sizes, for an empty sentence, and for a target without `BEGIN` and `END`.
    """

    pairs: EncodedPairs
    batch_size: int = 64

    def __post_init__(self):
        check_options({"batch_size": self.batch_size}, {"batch_size": whole(1, 100_000)})
        source, target = self.pairs
        if not source or len(source) != len(target):
            raise ValueError(f"there are {len(source)} sources and {len(target)} targets; expected one target for each "
                             "source, and at least one pair: is the split empty?")
        for i, (words, asked) in enumerate(zip(source, target)):
            if not len(words):
                raise ValueError(f"pair {i} has no source words; leave empty sentences out")
            if len(asked) < 2 or asked[0] != BEGIN or asked[-1] != END:
                raise ValueError(f"the target of pair {i} is {list(asked)!r:.60}; it must begin with {BEGIN} (<bos>) and "
                                 f"end with {END} (<eos>), as encode_pairs makes it")

    def __len__(self) -> int:
        return -(-len(self.pairs.source) // self.batch_size)

    def batches(self, seed: int | None) -> Iterator[PairBatch]:
        source, target = self.pairs
        order = list(range(len(source)))
        if seed is not None:
            random.Random(seed).shuffle(order)
        pool = 50 * self.batch_size if seed is not None else len(order)
        pools = [order[i : i + pool] for i in range(0, len(order), pool)]
        order = [i for part in pools for i in sorted(part, key=lambda i: (len(target[i]), len(source[i])))]
        groups = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        if seed is not None:
            random.Random(seed + 1).shuffle(groups)
        for group in groups:
            source_ids, source_mask = pad_batch([source[i] for i in group], PAD)
            target_ids, _ = pad_batch([target[i] for i in group], PAD)
            yield PairBatch(source_ids, source_mask, target_ids, group)

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(self.pairs, self.batch_size)
