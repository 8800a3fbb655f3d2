"""Sentence pairs in batches: nothing lost, nothing mixed up, and word lists that can be saved with a model."""

import pytest
import torch

from course_utils.training.pair_batches import (
    BEGIN,
    END,
    PAD,
    UNKNOWN,
    EncodedPairs,
    PairBatches,
    WordList,
)

PAIRS = EncodedPairs([[4 + i] * (1 + i % 7) for i in range(23)], [[BEGIN, *[9 + i] * (i % 5), END] for i in range(23)])


def test_words_are_listed_by_frequency_and_then_by_the_alphabet():
    words = WordList.train([["the", "house"], ["The", "house", "the"], ["a", "house"]])
    assert words.words == ["<pad>", "<unk>", "<bos>", "<eos>", "house", "the", "The", "a"]
    assert words.encode(["the", "mill", "house"]) == [5, UNKNOWN, 4] and words.vocab_size == 8
    assert words.decode([BEGIN, 5, 4, UNKNOWN, END, PAD]) == ["the", "house", "<unk>"]
    assert words.decode(torch.tensor([5])) == ["the"]
    assert WordList.train([["a", "b", "a"]], min_freq=2).words[4:] == ["a"]
    assert WordList.train([["<eos>", "a"]]).words[4:] == ["a"]             # a special token isn't listed twice
    assert [tuple(token) for token in words.tokenize(["the", "house"])] == [("the", 0, 3), ("house", 4, 9)]


@pytest.mark.parametrize("wrong, words", [
    (lambda: WordList(["<pad>", "<unk>", "a"]), "begins with <pad>, <unk>, <bos>, <eos>"),
    (lambda: WordList.train([]).decode([4]), "id 4 is not in the word list; its ids go from 0 to 3"),
    (lambda: WordList.train([]).decode([-1]), "id -1"),
    (lambda: WordList.train(["a b"]), "split it first"),
    (lambda: WordList.train([]).encode("a b"), "split it first"),
])
def test_what_is_no_list_of_tokens_is_refused(wrong, words):
    with pytest.raises((ValueError, TypeError), match=words):
        wrong()


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_every_pair_comes_once_and_whole(seed):
    seen = []
    for batch in PairBatches(PAIRS, batch_size=4).batches(seed):
        assert batch.source_mask.shape == batch.source_ids.shape and batch.source_mask.dtype == torch.bool
        rows = zip(batch.indices, batch.source_ids, batch.source_mask, batch.target_ids, strict=True)
        for i, source, mask, target in rows:
            assert source[mask].tolist() == PAIRS.source[i] and (source[~mask] == PAD).all()
            width = len(PAIRS.target[i])
            assert target[:width].tolist() == PAIRS.target[i] and (target[width:] == PAD).all()
            assert mask[: int(mask.sum())].all()                           # padding comes after the words
        assert batch.source_mask.any(dim=0).all()                          # no column of padding alone
        seen += batch.indices
    assert sorted(seen) == list(range(23)) and len(PairBatches(PAIRS, 4)) == 6


def test_a_seed_decides_the_order_and_none_goes_from_short_to_long():
    def order(seed):
        return [batch.indices for batch in PairBatches(PAIRS, 4).batches(seed)]

    assert order(1) == order(1) != order(2)
    widths = [batch.target_ids.shape[1] for batch in PairBatches(PAIRS, 4).batches(None)]
    assert widths == sorted(widths)


def test_the_fingerprint_knows_pairs_and_batch_size():
    other = EncodedPairs([[5], *PAIRS.source[1:]], PAIRS.target)
    assert len({PairBatches(pairs, size).fingerprint for pairs in (PAIRS, other) for size in (3, 4)}) == 4


@pytest.mark.parametrize("pairs, size, words", [
    (EncodedPairs([], []), 4, "is the split empty"),
    (EncodedPairs([[4]], []), 4, "1 sources and 0 targets"),
    (EncodedPairs([[4], []], [[BEGIN, END]] * 2), 4, "pair 1 has no source words"),
    (EncodedPairs([[4]], [[9, END]]), 4, "must begin with 2"),
    (EncodedPairs([[4]], [[BEGIN, 9]]), 4, "end with 3"),
    (PAIRS, 0, "batch_size=0"),
])
def test_what_cannot_be_trained_on_is_refused(pairs, size, words):
    with pytest.raises(ValueError, match=words):
        PairBatches(pairs, size)
