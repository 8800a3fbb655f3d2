"""The course's answers to the exercises of notebook 00, and what each known mistake would write."""

import math

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 0.1 repair: a mean for each review

def mean_opinion(opinions, is_token):
    total = (opinions * is_token).sum(dim=1)                # (review,), padding counts as 0
    count = is_token.sum(dim=1)                             # (review,)
    return total / count


def _mean(total=None, count=None):
    """A mean with another total or another count."""
    def mean(opinions, is_token):
        above = (opinions * is_token).sum(dim=1) if total is None else total(opinions, is_token)
        return above / (is_token.sum(dim=1) if count is None else count(opinions, is_token))
    return mean


def _kept(opinions, is_token):
    return (opinions * is_token).sum(dim=1, keepdim=True)   # (review, 1)


MEAN = Answers(
    mean_opinion,
    mutants={
        "every-with-every": _mean(total=_kept),
        "averaged-again": lambda opinions, is_token: (_kept(opinions, is_token) / is_token.sum(dim=1)).mean(dim=1),
        "padding-counted": _mean(count=lambda opinions, is_token: is_token.shape[1]),
        "padding-added": _mean(total=lambda opinions, is_token: opinions.sum(dim=1)),
        "mask-ignored": lambda opinions, is_token: opinions.mean(dim=1),
        "zeros-left-out": _mean(count=lambda opinions, is_token: (opinions * is_token != 0).sum(dim=1)),
        "per-position": _mean(lambda opinions, is_token: (opinions * is_token).sum(dim=0),
                              lambda opinions, is_token: is_token.sum(dim=0)),
        "one-mean-for-all": lambda opinions, is_token: (opinions * is_token).sum() / is_token.sum(),
        "not-divided": _mean(count=lambda opinions, is_token: 1),
    },
)

# ---------------------------------------------------------------- 0.2 a softmax that doesn't overflow

def stable_softmax(scores):
    exps = (scores - scores.max(dim=-1, keepdim=True).values).exp()     # the largest of each row is e to the 0
    return exps / exps.sum(dim=-1, keepdim=True)


def _softmax(shift=None, total=None):
    """A softmax that subtracts something else first, or divides by another sum."""
    def softmax(scores):
        exps = (scores - (_largest(scores) if shift is None else shift(scores))).exp()
        return exps / (exps.sum(dim=-1, keepdim=True) if total is None else total(exps))
    return softmax


def _largest(scores):
    return scores.max(dim=-1, keepdim=True).values


SOFTMAX = Answers(
    stable_softmax,
    mutants={
        "no-shift": _softmax(shift=lambda scores: 0.0),
        "one-maximum": _softmax(shift=lambda scores: scores.max()),
        "minimum": _softmax(shift=lambda scores: scores.min(dim=-1, keepdim=True).values),
        "mean-subtracted": _softmax(shift=lambda scores: scores.mean(dim=-1, keepdim=True)),
        "divided-by-maximum": lambda scores: _softmax()(scores / _largest(scores)),
        "one-sum": _softmax(total=lambda exps: exps.sum()),
        "over-rows": lambda scores: (exps := (scores - scores.max(dim=0, keepdim=True).values).exp()) / exps.sum(
            dim=0, keepdim=True),
        "not-divided": _softmax(total=lambda exps: 1.0),
        "logarithms": lambda scores: _softmax()(scores).log(),
        "no-exponential": lambda scores: scores / scores.sum(dim=-1, keepdim=True),
    },
)

# ---------------------------------------------------------------- 0.3 cross-entropy

def cross_entropy(scores, true_class):
    shifted = scores - scores.max(dim=-1, keepdim=True).values              # (token, class)
    log_p = shifted - shifted.exp().sum(dim=-1, keepdim=True).log()         # logarithms from the start: no ln 0
    return -log_p[range(len(scores)), true_class].mean()


def _picked(table, true_class):
    return table[range(len(table)), true_class]


LOSS = Answers(
    cross_entropy,
    mutants={
        "log-of-zero": lambda z, c: -_picked(z.softmax(dim=-1), c).log().mean(),
        "columns-picked": lambda z, c: -z.log_softmax(dim=-1)[:, c].mean(),
        "sum": lambda z, c: -_picked(z.log_softmax(dim=-1), c).sum(),
        "no-logarithm": lambda z, c: -_picked(z.softmax(dim=-1), c).mean(),
        "sign": lambda z, c: _picked(z.log_softmax(dim=-1), c).mean(),
        "softmax-twice": lambda z, c: -_picked(z.softmax(dim=-1).log_softmax(dim=-1), c).mean(),
        "all-classes": lambda z, c: -z.log_softmax(dim=-1).mean(),
        "log-of-the-mean": lambda z, c: -_picked(z.softmax(dim=-1), c).mean().log(),
        "base-two": lambda z, c: -_picked(z.log_softmax(dim=-1), c).mean() / math.log(2),
        "scores-as-logarithms": lambda z, c: -_picked(z, c).mean(),
        "over-tokens": lambda z, c: -_picked(z.log_softmax(dim=0), c).mean(),
        "most-likely": lambda z, c: -z.log_softmax(dim=-1).max(dim=-1).values.mean(),
        "per-class-too": lambda z, c: -_picked(z.log_softmax(dim=-1), c).sum() / z.numel(),
    },
)

# ---------------------------------------------------------------- 0.4 one step

def gradient_step(W, x, true_class, learning_rate):
    p = (x @ W).softmax(dim=-1)                                             # (token, class)
    y = F.one_hot(true_class, num_classes=W.shape[1])                       # (token, class)
    G = x.T @ (p - y) / len(x)                                              # (feature, class)
    return W - learning_rate * G


def _error(W, x, true_class, dim=-1):
    return (x @ W).softmax(dim=dim) - F.one_hot(true_class, num_classes=W.shape[1])


def _gradient(W, x, true_class):
    return x.T @ _error(W, x, true_class) / len(x)


def _twice(W, x, true_class, learning_rate):
    W = W.clone().requires_grad_()
    loss = F.cross_entropy((x @ W).softmax(dim=-1), true_class)
    return (W - learning_rate * torch.autograd.grad(loss, W)[0]).detach()


STEP = Answers(
    gradient_step,
    mutants={
        "uphill": lambda W, x, c, rate: W + rate * _gradient(W, x, c),
        "gradient-only": lambda W, x, c, rate: _gradient(W, x, c),
        "step-only": lambda W, x, c, rate: -rate * _gradient(W, x, c),
        "no-learning-rate": lambda W, x, c, rate: W - _gradient(W, x, c),
        "sum": lambda W, x, c, rate: W - rate * x.T @ _error(W, x, c),
        "mean-over-classes": lambda W, x, c, rate: W - rate * _gradient(W, x, c) / W.shape[1],
        "divided-by-features": lambda W, x, c, rate: W - rate * x.T @ _error(W, x, c) / x.shape[1],
        "no-truth": lambda W, x, c, rate: W - rate * x.T @ (x @ W).softmax(dim=-1) / len(x),
        "no-softmax": lambda W, x, c, rate: W - rate * x.T @ (x @ W - F.one_hot(c, num_classes=W.shape[1])) / len(x),
        "over-tokens": lambda W, x, c, rate: W - rate * x.T @ _error(W, x, c, dim=0) / len(x),
        "at-zero": lambda W, x, c, rate: W - rate * _gradient(torch.zeros_like(W), x, c),
        "from-zero": lambda W, x, c, rate: -rate * _gradient(torch.zeros_like(W), x, c),
        "softmax-twice": _twice,
        "not-cleared": lambda W, x, c, rate: W - 2 * rate * _gradient(W, x, c),
    },
)

ANSWERS = (MEAN, SOFTMAX, LOSS, STEP)
