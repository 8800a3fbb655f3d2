"""Kneser-Ney: by hand, against a slow version with dictionaries, and what its probabilities must be like."""

import math
from collections import Counter

import numpy as np
import pytest

from course_tools.studies.kneser_ney import FALLBACK, KneserNey, _discounts

HAND = [[1, 2], [1, 2], [1, 3]]


class SlowKneserNey:
    """The definition with dictionaries of tuples, one token at a time."""

    def __init__(self, rows, vocab_size, order):
        texts, self.vocab_size, self.order = [], vocab_size, order
        for row in rows:
            text = [0]
            for i in [*row, 0]:
                if i == 0:
                    texts.append(text)
                    text = []
                text.append(i)
        self.counts = {}
        for length in range(1, order + 1):
            seen, left = Counter(), {}
            for text in texts:
                for end in range(max(1, length - 1), len(text)):
                    gram = tuple(text[end - length + 1 : end + 1])
                    seen[gram] += 1
                    if end >= length:
                        left.setdefault(gram, set()).add(text[end - length])
            raw = length == order
            self.counts[length] = {gram: seen[gram] if raw or gram[0] == 0 else len(left[gram]) for gram in seen}
        self.discounts = {length: _discounts(np.array(list(counts.values()))) for length, counts in self.counts.items()}

    def probability(self, token, context):
        """p(token | context), a tuple that begins with the separator if the text does."""
        context = context[max(0, len(context) - self.order + 1) :]
        length = len(context) + 1
        shorter = self.probability(token, context[1:]) if context else 1 / (self.vocab_size - 1)
        after = {gram: count for gram, count in self.counts[length].items() if gram[:-1] == context}
        if not after:
            return shorter
        off = {gram: self.discounts[length][min(count, 3)] for gram, count in after.items()}
        gram = (*context, token)
        return (after.get(gram, 0) - off.get(gram, 0) + sum(off.values()) * shorter) / sum(after.values())


def drawn_rows(seed: int, texts: int = 30, vocab_size: int = 7) -> list[list[int]]:
    """Texts of uneven ids, some of them empty, one with a separator inside."""
    draw = np.random.default_rng(seed)
    share = 1 / np.arange(1, vocab_size)
    rows = [draw.choice(np.arange(1, vocab_size), size=length, p=share / share.sum()).tolist()
            for length in draw.integers(0, 25, texts)]
    return [*rows, [2, 3, 0, 3, 2]]


def test_three_texts_by_hand():
    model = KneserNey(4, order=2).fit(HAND)
    assert model.discounts == [[0.5, 1.0, 1.5]] * 2                        # too few texts to estimate them
    # each of 1, 2, 3 follows one token only: (1 - 0.5) / 3, and a third of the 1.5 / 3 taken off
    third = 1 / 3
    assert model.next([3]) == pytest.approx([0, third, third, third])      # nothing was seen after 3
    # after 1: 2 twice, 3 once; 1 + 0.5 of 3 are taken off and shared by the shorter ones
    assert model.next([1]) == pytest.approx([0, 1.5 / 9, 1 / 3 + 1.5 / 9, 0.5 / 3 + 1.5 / 9])
    assert model.next([]) == pytest.approx([0, 1.5 / 3 + 1.5 / 9, 1.5 / 9, 1.5 / 9])
    assert model.log_probabilities([1, 2]) == pytest.approx([math.log(2 / 3), math.log(1 / 2)])


def test_discounts_by_hand():
    found = _discounts(np.array([1] * 4 + [2] * 2 + [3] + [4]))            # Y = 4 / (4 + 2 * 2) = 1/2
    assert found == pytest.approx([0, 1 - 2 / 2 * 2 / 4, 2 - 3 / 2 * 1 / 2, 3 - 4 / 2 * 1 / 1])
    assert (_discounts(np.array([1, 1, 2, 3])) == FALLBACK).all()          # nothing occurs four times
    assert (_discounts(np.array([1, 2, 3] + [4] * 9)) == FALLBACK).all()   # it would take more than all off


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", [0])
def test_it_equals_a_slow_version_with_dictionaries(order, seed):
    rows = drawn_rows(seed)
    model, slow = KneserNey(7, order=order).fit(rows), SlowKneserNey(rows, 7, order)
    assert [list(slow.discounts[n][1:]) for n in range(1, order + 1)] == model.discounts
    assert order == 1 or any(found != [0.5, 1.0, 1.5] for found in model.discounts)  # some were estimated
    for text in drawn_rows(seed + 10, texts=4)[:-1]:
        expected = [slow.probability(i, (0, *text[:place])) for place, i in enumerate(text)]
        assert np.exp(model.log_probabilities(text)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_every_distribution_adds_up_to_one_and_agrees_with_the_log_probabilities(order):
    model = KneserNey(9, order=order).fit(drawn_rows(0))                   # 7 and 8 were never seen
    contexts = [[], [1], [6, 6, 6, 6, 6], [8, 7, 8, 7], [7], [1, 8], [8, 1, 2], [1, 2, 0], [0], drawn_rows(3)[0]]
    for context in contexts:
        distribution = model.next(context)
        assert distribution.shape == (9,) and distribution.sum() == pytest.approx(1, abs=1e-12)
        assert distribution[0] == 0 and (distribution[1:] > 0).all()
        asked = [math.exp(model.log_probabilities([*context, i])[-1]) for i in range(1, 9)]
        assert distribution[1:] == pytest.approx(asked, rel=1e-12)


def test_after_an_unknown_context_the_versatile_token_is_preferred_to_the_frequent_one():
    rows = [[1, 2]] * 9 + [[3, 5], [4, 5], [6, 5]]                         # 2 is frequent, but always after 1
    model = KneserNey(8, order=2).fit(rows)
    assert model.next([7])[5] > 1.5 * model.next([7])[2]
    assert model.next([1])[2] > 0.7
    assert KneserNey(8, order=1).fit(rows).next([7])[2] > KneserNey(8, order=1).fit(rows).next([7])[5]


def test_it_sees_as_far_back_as_its_order_and_no_further():
    rows = [[1, 3, 4, 5, 6], [2, 3, 4, 5, 7]] * 5
    five, four = KneserNey(8, order=5).fit(rows), KneserNey(8, order=4).fit(rows)
    assert five.next([1, 3, 4, 5])[6] > 0.7 > 0.5 > five.next([1, 3, 4, 5])[7]
    assert four.next([1, 3, 4, 5]) == pytest.approx(four.next([2, 3, 4, 5]))
    assert five.next([6, 6, 1, 3, 4, 5]) == pytest.approx(five.next([1, 3, 4, 5]))


def test_a_text_begins_afresh_after_a_separator():
    rows = drawn_rows(0)
    model = KneserNey(7, order=4).fit(rows)
    one, other = [3, 1, 2, 2], [5, 4, 1]
    together = model.log_probabilities([*one, 0, *other])
    assert together.tolist() == [*model.log_probabilities(one), 0.0, *model.log_probabilities(other)]
    in_one_row = [i for row in rows for i in (0, *row)]
    assert KneserNey(7, order=4).fit([in_one_row]).log_probabilities(one) == pytest.approx(model.log_probabilities(one))
    assert model.next([6, 6, 6, 0]).tolist() == model.next([]).tolist()


def test_numbers_do_not_overflow_at_the_size_of_a_tokenizer():
    model = KneserNey(4096, order=5).fit([[4095] * 9, [4095, 4094] * 5])
    assert model.levels[-1].grams.min() >= 0
    assert model.next([4095] * 4)[4095] > 0.5
    with pytest.raises(ValueError, match=r"order=6 with vocab_size=4,096 .* use order=5"):
        KneserNey(4096, order=6)


def test_wrong_arguments_get_a_message():
    with pytest.raises(ValueError, match="order=0; use a whole number"):
        KneserNey(5, order=0)
    with pytest.raises(ValueError, match="separator=5; use a whole number from 0 to 4"):
        KneserNey(5, separator=5)
    with pytest.raises(RuntimeError, match="counted nothing yet; call fit"):
        KneserNey(5).next([1])
    with pytest.raises(RuntimeError, match="counted nothing yet; call fit"):
        KneserNey(5).log_probabilities([1])
    for rows in ([], [[]], [[0, 0]]):
        with pytest.raises(ValueError, match="no tokens to count"):
            KneserNey(5).fit(rows)
    with pytest.raises(ValueError, match="id 5 is not in the vocabulary; its ids go from 0 to 4"):
        KneserNey(5).fit([[1, 5]])
    with pytest.raises(ValueError, match="id -1 is not in the vocabulary"):
        KneserNey(5).fit([[1]]).log_probabilities([-1])
    with pytest.raises(ValueError, match="expected one row of ids for each text"):
        KneserNey(5).fit([[[1, 2]]])
