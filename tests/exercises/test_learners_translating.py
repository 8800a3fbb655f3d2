"""Wrong answers that learners may write to the exercises of notebook 16: each gets the name it deserves, or none."""

import re

import pytest
import torch
from torch.nn import functional as F

from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge

KEYS, QUERY, V = torch.tensor([[1.0, 0.0], [0.0, 0.0], [-1.0, 1.0]]), torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0])


def loss(read, asked, reduction="mean", ignored=0, arrange=lambda logits: logits.transpose(1, 2)):
    def answer(model, source_ids, source_mask, target_ids):
        logits = arrange(model(source_ids, source_mask, read(target_ids)))
        each = F.cross_entropy(logits, asked(target_ids), ignore_index=ignored, reduction=reduction)
        return each if reduction == "mean" else each.mean(dim=1).sum()
    return answer


def but_last(ids):
    return ids[:, :-1]


def but_first(ids):
    return ids[:, 1:]


def viewed(logits):
    return logits.reshape(len(logits), logits.shape[2], -1)


def without_a_limit(step, state, max_len):
    ids, last = [], 2
    while last != 3:
        logits, state = step(last, state)
        last = int(logits.argmax())
        ids.append(last)
    return ids[:-1]


def skipping_the_end(step, state, max_len):
    ids, last = [], 2
    for _ in range(max_len):
        logits, state = step(last, state)
        last = int(logits.argmax())
        if last != 3:
            ids.append(last)
    return ids


def second_best(step, state, max_len):
    ids, last = [], 2
    for _ in range(max_len):
        logits, state = step(last, state)
        last = int(logits.topk(2).indices[1])
        if last == 3:
            break
        ids.append(last)
    return ids


def handing_over_the_list(step, state, max_len):
    ids = [2]
    for _ in range(max_len):
        logits, state = step(ids, state)
        ids.append(int(logits.argmax()))
    return ids[1:]


def aer_of(links):
    def answer(weights, gold):
        found, known = links(weights), {tuple(link) for link in gold.tolist()}
        return 1 - 2 * len(found & known) / (len(found) + len(known))
    return answer


def asking_for_logits(model, source_ids, source_mask, target_ids):
    result = model(source_ids, source_mask, target_ids[:, :-1])
    return F.cross_entropy(result.logits.transpose(1, 2), target_ids[:, 1:], ignore_index=0)


WRONG = [
    ("16.1", lambda: torch.tensor([2.28, 1.52, 2.68]).softmax(0), "sign-lost", "tanh(−1) is −0.76"),
    ("16.1", lambda: ((QUERY - KEYS).tanh() @ V).softmax(0), "query-subtracted", "takes their sum"),
    ("16.1", lambda: ((QUERY + KEYS).tanh() @ torch.tensor([2.0, 1.0])).softmax(0), "v-turned-round", "it's the second"),
    ("16.1", lambda: ((QUERY + KEYS) @ V).tanh().softmax(0), "tanh-last", "belongs inside"),
    ("16.3", asking_for_logits, "", "Expected no `.logits`: this model returns the logits themselves"),
    ("16.3", loss(but_last, but_last), "asked-unshifted", "BEGIN among them"),
    ("16.3", loss(but_last, but_first, ignored=3), "end-for-padding", "END is left out and padding is asked for"),
    ("16.3", loss(but_last, but_first, arrange=viewed), "viewed", "doesn't exchange two dimensions"),
    ("16.3", loss(lambda ids: ids[:, :-2], lambda ids: ids[:, 1:-1]), "last-column-cut", "one column too few"),
    ("16.3", loss(but_last, but_first, reduction="none"), "", "even on this batch"),
    ("16.4", without_a_limit, "no-limit", "Only END stops your loop"),
    ("16.4", skipping_the_end, "end-skipped", "stop there"),
    ("16.4", second_best, "", "The first word is wrong already"),
    ("16.4", handing_over_the_list, "", "it reads one id"),
    ("16.5", aer_of(lambda weights: {(int(s), int(t)) for t, s in (weights[:-1] > 0.2).nonzero()}), "", "3 words"),
    ("16.5", aer_of(lambda weights: {(s, t) for t, s in enumerate(weights[:-1].argmax(1))}), "", "equals no number"),
]


@pytest.mark.parametrize("number, answer, name, words", WRONG, ids=[f"{i}-{case[0]}" for i, case in enumerate(WRONG)])
def test_a_wrong_answer_is_named_rightly(number, answer, name, words):
    verdict = judge(find_exercise(number), answers_to(number), answer() if number == "16.1" else answer)
    assert verdict.state == "wrong", verdict.text
    assert verdict.names == ((name,) if name else ()), verdict.text
    assert words in verdict.text, verdict.text


def test_a_loop_without_a_limit_is_shown_both_lists_whole():
    text = judge(find_exercise("16.4"), answers_to("16.4"), without_a_limit).text
    lists = re.search(r"with max_len=3 you wrote \[([\d, ]+)\], expected \[([\d, ]+)\]", text)
    written, expected = (words.split(", ") for words in lists.groups())
    assert len(written) == 5 and written[:3] == expected
