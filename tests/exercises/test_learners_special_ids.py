"""Answers that hold for most inputs: ordinary ids aren't special, equal numbers one object, and the last words padding."""

import math
import unicodedata

import pytest
import torch
from torch.nn import functional as F

from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge


def hiding(swapped):
    """14.1, where `swapped` also sees what the ids were and have become."""
    def answer(token_ids, chosen, fate, others, mask_id):
        inputs = token_ids.masked_fill(chosen & (fate < 0.8), mask_id)
        where = chosen & swapped(fate, token_ids, inputs, mask_id)
        return torch.where(where, others, inputs)
    return answer


def looping(ends=lambda word, ids, begin, end: word == end, barred=False, drops_begin=False):
    """16.4 and 17.5: `ask(last, place)` gives numbers for the next word."""
    def write(ask, begin, end, max_len):
        ids, last = [], begin
        for place in range(max_len):
            numbers = ask(last, place).clone()
            if barred:
                numbers[begin] = -math.inf
            last = numbers.argmax().item()
            if ends(last, ids, begin, end):
                break
            ids.append(last)
        return [word for word in ids if word != begin] if drops_begin else ids
    return write


def recurrent(write):
    def answer(step, state, max_len):
        states = [state]

        def ask(last, place):
            logits, new = step(last, states[-1])
            states.append(new)
            return logits
        return write(ask, 2, 3, max_len)
    return answer


def counted(mask):
    """As many positions as `mask` has real ones, from the first on."""
    return torch.arange(mask.shape[-1]) < mask.sum(dim=-1, keepdim=True)


def above(least):
    def loss(model, source_ids, source_mask, target_ids):
        logits, asked = model(source_ids, source_mask, target_ids[:, :-1]), target_ids[:, 1:]
        return F.cross_entropy(logits[asked >= least], asked[asked >= least])
    return loss


def chosen_from(best, lowest):
    """15.4, with these two to begin with."""
    def answer(logits, labels, test_logits, test_labels, candidates):
        found, least = best, lowest
        for t in candidates:
            if F.cross_entropy(logits / t, labels) < least:
                found, least = t, F.cross_entropy(logits / t, labels)
        return found, F.cross_entropy(test_logits / (found or 1.0), test_labels)
    return answer


def averaged(left_out, columns=lambda logits, ids: logits):
    """13.2 by a loop."""
    def answer(logits, token_ids, pad_id):
        log_p, ids = columns(logits, token_ids).log_softmax(-1), token_ids.tolist()
        kept = [log_p[row, t - 1, ids[row][t]] for row in range(len(ids)) for t in range(1, len(ids[row]))
                if not left_out(ids[row][t], pad_id)]
        return -sum(kept) / len(kept)
    return answer


SWAPPED = {
    "not what is a mask already": lambda fate, ids, inputs, mask: (fate < 0.9) & (inputs != mask),
    "what is as it was": lambda fate, ids, inputs, mask: (fate < 0.9) & (inputs == ids),
    "no token 0": lambda fate, ids, inputs, mask: (fate >= 0.8) & (fate < 0.9) & (ids != 0),
}
LOOPS = {
    "the beginning ends it": looping(lambda word, ids, begin, end: word in (begin, end)),
    "the beginning is barred": looping(barred=True),
    "the beginning is dropped": looping(drops_begin=True),
    "a word twice in a row ends it": looping(lambda word, ids, begin, end: word == end or word in ids[-1:]),
    "each word once": looping(lambda word, ids, begin, end: word == end or word in ids),
}
WRONG = {
    **{f"14.1 {name}": hiding(how) for name, how in SWAPPED.items()},
    **{f"16.4 {name}": recurrent(write) for name, write in LOOPS.items()},
    **{f"17.5 {name}": write for name, write in LOOPS.items()},
    "17.5 the same object": looping(lambda word, ids, begin, end: word is end),
    "13.2 the same object": averaged(lambda word, pad: word is pad),
    "13.2 the ids that occur": averaged(
        lambda word, pad: word == pad, lambda logits, ids: logits[..., : max(ids.max() + 1, 9)]),
    "13.6 composed": lambda loss, count, text: answers_to("13.6").reference(loss, count, unicodedata.normalize("NFC", text)),
    "15.4 begins at 100": chosen_from(None, 100.0),
    "16.2 the last positions": lambda query, keys, states, mask, v: answers_to("16.2").reference(
        query, keys, states, counted(mask), v),
    "17.1 the last positions": lambda *inputs: answers_to("17.1").reference(*inputs[:-1], counted(inputs[-1])),
    "16.3 from END on": above(3),
    "17.3 zero, too": lambda logits, targets, smoothing, pad_id: answers_to("17.3").reference(
        logits, targets.masked_fill(targets == 0, pad_id), smoothing, pad_id),
}
RIGHT = {
    "14.1": hiding(lambda fate, ids, inputs, mask: (fate >= 0.8) & (fate < 0.9)), "16.4": recurrent(looping()),
    "17.5": looping(), "16.3": above(1), "13.2": averaged(lambda word, pad: word == pad),
    "15.4": chosen_from(None, math.inf),
}


@pytest.mark.parametrize("seed", [0, 3, 7])
@pytest.mark.parametrize("case", WRONG)
def test_an_ordinary_id_isnt_a_special_one(case, seed):
    number = case.split()[0]
    assert judge(find_exercise(number), answers_to(number), WRONG[case], seed).state == "wrong"


@pytest.mark.parametrize("seed", [0, 3, 7])
@pytest.mark.parametrize("number", RIGHT)
def test_the_same_code_without_the_mistake_is_right(number, seed):
    assert judge(find_exercise(number), answers_to(number), RIGHT[number], seed).state == "right"
