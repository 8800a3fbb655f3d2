"""Other right answers to the exercises of notebook 11, which a check must accept."""

import itertools
import math

import numpy as np

from course_exercises.n11.answers import (
    EYE,
    FIRST,
    SECOND,
    _roll,
)


def _ap_numpy(scores, evidence):
    hit = evidence.numpy()[np.argsort(-scores.numpy())]
    ranks = np.flatnonzero(hit) + 1
    return np.mean(np.arange(1, len(ranks) + 1) / ranks)


def _loo_combinations(score, tokens):
    shorter = list(itertools.combinations(tokens, len(tokens) - 1))[::-1]  # the last one leaves the first token out
    return tuple(score(tokens) - score(list(rest)) for rest in shorter)


def _comp_numpy(score, tokens, importances, shares):
    order = np.argsort(importances)                                        # the least important first
    left = [np.sort(order[:len(tokens) - math.ceil(share * len(tokens) - 1e-6)]) for share in shares]
    return np.mean([score(tokens) - score(np.array(tokens)[rest].tolist()) for rest in left])


VARIANTS = {
    "11.1": {"numpy": _ap_numpy},
    "11.2": {"combinations": _loo_combinations},
    "11.3": {"numpy": _comp_numpy},
    "11.4": {"a fraction": lambda: "11/50", "tensor": lambda: ((SECOND + EYE) @ (FIRST + EYE) / 4)[2, 0]},
    "11.5": {"reduce": _roll()},
}
