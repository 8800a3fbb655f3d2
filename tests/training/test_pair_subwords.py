"""Byte pairs shared by two languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.byte_pairs import BPETokenizer
from course_utils.training.pair_batches import BEGIN, END, PairBatches
from course_utils.training.pair_subwords import SharedBytePairs, encode_texts

TEXTS = ["Two dogs run.", "Deux chiens courent.", "A dog runs to the river.", "Un chien court vers la rivière."]
PIECES = SharedBytePairs.train(TEXTS * 3, 300)


@given(st.text())
def test_every_text_comes_back_and_no_special_id_is_given(text):
    ids = PIECES.encode(text)
    assert PIECES.decode(ids) == text and all(END < i < PIECES.vocab_size for i in ids)
    assert PIECES.decode([BEGIN, *ids, END, 0, 0]) == text


def test_the_merges_are_those_of_notebook_02():
    plain = BPETokenizer.train(TEXTS * 3, 297)
    assert PIECES.merges == plain.merges and PIECES.vocab_size == 300 == plain.vocab_size + 3
    assert PIECES.encode(TEXTS[0]) == [i + 3 for i in plain.encode(TEXTS[0])]
    assert [token.text for token in PIECES.tokenize(TEXTS[3])] == [token.text for token in plain.tokenize(TEXTS[3])]


def test_texts_become_pairs_that_fit_takes():
    pairs = encode_texts(TEXTS[::2], TEXTS[1::2], PIECES)
    assert all(target[0] == BEGIN and target[-1] == END for target in pairs.target)
    batch = next(PairBatches(pairs, 2).batches(None))
    assert [PIECES.decode(row.tolist()) for row in batch.target_ids] == [TEXTS[1::2][i] for i in batch.indices]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="vocab_size=259; 260 ids"):
        SharedBytePairs.train(TEXTS, 259)
    with pytest.raises(ValueError, match="id 300 is not in the list"):
        PIECES.decode([300])
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        encode_texts(TEXTS[:2], TEXTS[:1], PIECES)
