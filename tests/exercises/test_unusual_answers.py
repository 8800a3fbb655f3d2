"""Answers of each kind that once broke a check, by the whole road: sent to the worker process, run there, judged here."""

import functools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils import attention, positional_encoding
from course_utils.exercises import verdict, workers
from course_utils.exercises.catalogue import answers_to


@pytest.fixture(scope="module", autouse=True)
def worker_ended_afterwards():
    yield
    workers.stop()


def after(number: str, how):
    """The right answer, with its result changed."""
    reference = answers_to(number).reference
    return lambda *inputs: how(reference(*inputs))


def before(number: str, how):
    """The right answer to other inputs: `how` gets them and gives new ones."""
    reference = answers_to(number).reference
    return lambda *inputs: reference(*how(*inputs))


def touching(number: str, place: int, how):
    """The right answer, which then does something to one of its inputs."""
    reference = answers_to(number).reference

    def answer(*inputs):
        result = reference(*inputs)
        how(inputs[place])
        return result
    return answer


def each(how):
    return lambda parts: tuple(how(part) for part in parts)


def by_name_only(*, query, key, value):
    return answers_to("4.2").reference(query, key, value)


class Called:
    def __call__(self, query, key, value):
        return answers_to("4.2").reference(query, key, value)


def layer_norm(x, weight, bias, eps):
    return answers_to("7.2").reference(x, weight, bias, eps)


def attended(exps, fill=-math.inf, score=lambda q, k: q @ k.mT / q.shape[-1] ** 0.5):
    """4.3 with weights by hand."""
    def answer(query, key, value, mask):
        e = exps(score(query, key).masked_fill(~mask, fill))
        weights = e / e.sum(-1, keepdim=True)
        return weights @ value, weights
    return answer


def next_token(log):
    """13.2 with another logarithm of probabilities."""
    def answer(logits, token_ids, pad_id):
        each = -log(logits[:, :-1]).gather(-1, token_ids[:, 1:, None])[..., 0]
        return each[token_ids[:, 1:] != pad_id].mean()
    return answer


def in_eval_mode(model, source_ids, source_mask, target_ids):
    model.eval()
    return answers_to("16.3").reference(model, source_ids, source_mask, target_ids)


def softmax_in_place(query, key, value, mask):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~mask, -1e9).softmax(-1)
    weights[~mask.expand_as(weights)] = 0
    return weights @ value, weights


def with_uint8(first, second):
    difference = (first.astype("uint8") - second.astype("uint8")).mean(-1)
    return difference.mean(), 1.96 * difference.std() / len(difference) ** 0.5


class NoDefault(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x, offset):
        return x + self.table[offset: offset + x.shape[1]]


class TableCutOff(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x, offset=0):
        return x.detach() + self.table[offset: offset + x.shape[1]]


def closed_below(confidence, right, bins):
    place = (confidence * bins).long().clamp(max=bins - 1)
    return sum((confidence[place == i] - right[place == i].float()).sum().abs() for i in range(bins)) / len(right)


ANSWERS = {
    # results strung together, or of another type
    "a generator": ("4.2", after("4.2", lambda pair: (part for part in pair)), "right"),
    "an iterator": ("9.3", after("9.3", iter), "right"),
    "one of two": ("4.2", after("4.2", lambda pair: pair[0]), "wrong"),
    "sparse": ("2.4", after("2.4", lambda pair: (pair[0], pair[1].to_sparse())), "right"),
    "lists": ("7.2", after("7.2", torch.Tensor.tolist), "right"),
    "a data frame": ("8.3", after("8.3", lambda pair: (pair[0], pd.DataFrame(pair[1].detach().numpy()))), "right"),
    "ids as floats": ("13.1", after("13.1", lambda pair: (pair[0].float(), pair[1])), "wrong"),
    "mask of numbers": ("17.2", after("17.2", lambda three: (*three[:2], three[2].float())), "wrong"),
    "True for a count": ("13.5", lambda *inputs: np.bool_(True), "wrong"),
    "a set of pieces": ("14.2", after("14.2", set), "wrong"),
    # ways to be called
    "by name only": ("4.2", by_name_only, "right"), "an object": ("4.2", Called(), "right"),
    "a partial": ("7.2", functools.partial(answers_to("7.2").reference), "right"),
    "no default": ("6.3", NoDefault, "wrong"), "cut off in a class": ("6.3", TableCutOff, "wrong"),
    # what may not be called
    "the library's": ("4.3", lambda q, k, v, m: (F.scaled_dot_product_attention(q, k, v, m), q @ k.mT), "wrong"),
    "the course's": ("4.2", lambda *three: tuple(attention.scaled_dot_product_attention(*three)), "wrong"),
    "a method of a class": ("6.4", lambda x, at: positional_encoding.RotaryPositions(x.shape[-1])(x, at), "wrong"),
    "a name of one's own": ("7.2", lambda *inputs: layer_norm(*inputs), "right"),
    # gradients
    "cut off": ("4.2", before("4.2", lambda q, k, v: (q.detach(), k, v)), "wrong"),
    "one number": ("13.2", after("13.2", torch.Tensor.item), "wrong: cut-off"),
    "rounded": ("15.2", after("15.2", lambda loss: loss.round(decimals=3)), "wrong"),
    "changed in place": ("4.5", softmax_in_place, "wrong"),
    # inputs that are left changed
    "in place": ("4.2", touching("4.2", 0, lambda query: query.mul_(2)), "wrong"),
    "past autograd": ("13.2", touching("13.2", 0, lambda logits: logits.data.add_(1)), "wrong"),
    "cut off in place": ("15.2", before("15.2", lambda s, t, *rest: (s, t.detach_(), *rest)), "wrong"),
    "left in evaluation": ("16.3", in_eval_mode, "wrong"),
    # numbers that are too large, too small, or not there
    "exp without a maximum": ("4.3", attended(torch.exp), "wrong"),
    "the maximum of all": ("13.2", next_token(lambda z: z - z.max() - (z - z.max()).exp().sum(-1, True).log()), "wrong"),
    "a low number": ("4.3", attended(lambda s: s.softmax(-1), -100.0), "wrong"),
    "a very low number": ("4.3", attended(lambda s: s.softmax(-1), -1e9), "right"),
    "log of a softmax": ("13.2", next_token(lambda logits: logits.softmax(-1).log()), "wrong"),
    "log_softmax": ("13.2", next_token(lambda logits: logits.log_softmax(-1)), "right"),
    "too large for a float": ("13.6", lambda loss, n, text: math.log2(math.exp(loss * n)) / len(text.encode()), "wrong"),
    "no minus one": ("9.3", with_uint8, "wrong"), "NaN": ("15.5", after("15.5", lambda r: (*r[:2], math.nan)), "wrong"),
    "half as exact": ("4.2", after("4.2", each(torch.Tensor.half)), "wrong"),
    "twice as exact": ("4.2", before("4.2", lambda *three: [one.double() for one in three]), "right"),
    "whatever was in memory": ("14.6", lambda weight, rank: (torch.Tensor(rank, weight.shape[1]),
                                                             torch.empty(len(weight), rank)), "wrong"),
    "part of its input": ("14.6", lambda weight, rank: (weight[:rank], torch.zeros(len(weight), rank)), "wrong"),
    # another convention
    "closed below": ("15.3", closed_below, "other: closed-below"),
    "per cent": ("15.1", [84.4, 11.4, 4.2], "other: in-per-cent"),
    # numbers
    "fractions": ("15.1", ["20.09/23.81", "2.72/23.81", "1/23.81"], "right"),
    "per cent signs": ("15.1", "84,4 %; 11,4 %; 4,2 %", "right"),
    "a column": ("16.1", np.array([[0.56], [0.26], [0.18]]), "right"),
    "near a mistake": ("9.2", 0.73, "wrong: logarithm-of-tf"),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_unusual_answer_gets_its_verdict(kind):
    number, answer, expected = ANSWERS[kind]
    found = verdict(number, answer)
    assert ": ".join([found.state, *found.names]) == expected, found.text
