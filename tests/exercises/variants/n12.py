"""Other right answers to the exercises of notebook 12, which a check must accept."""

import bisect
import math
import statistics

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import nn

from course_utils.baselines import RecurrentClassifier

from course_exercises.n12.answers import (
    _at_best,
    _counted,
    _holm_bar,
    _of,
    _steps,
    difference_interval,
)


def _report_loops(validation, test):
    means = []
    for setting_validation, setting_test in zip(validation.tolist(), test.tolist()):
        scored = [there[seen.index(max(seen))] for seen, there in zip(setting_validation, setting_test)]
        means.append(sum(scored) / len(scored))
    return means


def _report_indices(validation, test):
    settings, seeds = np.indices(validation.shape[:2])
    return test[settings, seeds, validation.argmax(-1)].mean(axis=1)


def _difference_torch(first, second, factor):
    first, second = torch.tensor(first), torch.tensor(second)
    per_review = first.mean(dim=0) - second.mean(dim=0)
    variance = per_review.var() / len(per_review)
    variance += first.mean(dim=1).var() / len(first) + second.mean(dim=1).var() / len(second)
    return per_review.mean(), factor * variance.sqrt()


def _difference_sem(first, second, factor):
    per_review = first.mean(0) - second.mean(0)
    errors = [per_review.std() / math.sqrt(per_review.size), *(stats.sem(side.mean(axis=1)) for side in (first, second))]
    return np.array([first.mean() - second.mean(), factor * np.linalg.norm(errors)])


def _difference_lists(first, second, factor):
    one, other = first.tolist(), second.tolist()
    per_review = [statistics.fmean(a) - statistics.fmean(b) for a, b in zip(zip(*one), zip(*other))]
    accuracies = [[sum(seed) / len(seed) for seed in side] for side in (one, other)]
    variance = statistics.variance(per_review) / len(per_review)
    variance += sum(statistics.variance(side) / len(side) for side in accuracies)
    return [round(statistics.fmean(accuracies[0]) - statistics.fmean(accuracies[1]), 5), factor * math.sqrt(variance)]


def _difference_table(first, second, factor):
    sides = [pd.DataFrame(side) for side in (first, second)]
    per_review = sides[0].mean() - sides[1].mean()
    variance = per_review.sem() ** 2 + sum(side.T.mean().sem() ** 2 for side in sides)
    return per_review.mean(), factor * variance**0.5


def _holm_torch(p_values, level):
    p = torch.tensor(p_values, dtype=torch.float64)
    order = p.argsort()
    passed = (p[order] < level / torch.arange(len(p), 0, -1)).int().cumprod(dim=0)
    return torch.empty(len(p), dtype=torch.bool).scatter(0, order, passed.bool())


def _holm_adjusted(p_values, level):
    order, m = np.argsort(p_values), len(p_values)
    adjusted = np.maximum.accumulate(np.array(p_values)[order] * np.arange(m, 0, -1))
    return (adjusted < level)[np.argsort(order)]


def _holm_recursive(p_values, level):
    left = [p for p in p_values if p < 2]
    if not left or min(left) >= level / len(left):
        return [p >= 2 for p in p_values]
    return _holm_recursive([2.0 if p == min(left) else p for p in p_values], level)


def _width_modules(vocab_size, d_model, budget):
    def count(width):
        with torch.device("meta"):                      # no numbers are drawn
            net = nn.ModuleList([nn.Embedding(vocab_size, d_model), nn.LSTM(d_model, width), nn.Linear(width, 2)])
        return sum(parameter.numel() for parameter in net.parameters())

    width = 1
    for step in (64, 8, 1):                             # one by one it may take longer than a check may
        while count(width + step) <= budget:
            width += step
    return width, count(width)


def _width_course(vocab_size, d_model, budget):
    def count(width):
        with torch.device("meta"):                      # no numbers are drawn
            return sum(map(torch.numel, RecurrentClassifier(vocab_size, d_model, width).parameters()))

    width = bisect.bisect_right(range(1, 5000), budget, key=count)
    return torch.tensor([width, count(width)])


def _width_root(vocab_size, d_model, budget):
    linear, constant = 4 * d_model + 10, vocab_size * d_model + 2          # 4 w² + linear w + constant
    width = math.floor((-linear + math.sqrt(linear**2 + 16 * (budget - constant))) / 8 + 1e-9)
    return [float(width), 4.0 * width**2 + linear * width + constant]


def _width_two_matrices(vocab_size, d_model, budget):
    counts = {width: vocab_size * d_model + 4 * width * (d_model + 1) + 4 * width * (width + 1) + (width + 1) * 2
              for width in range(1, 5000)}
    return max((width, count) for width, count in counts.items() if count <= budget)


VARIANTS = {
    "12.1": {
       "loops": _report_loops,
       "indices": _report_indices,
       "torch": lambda validation, test: _at_best(validation, test).mean(dim=1),
       "where it is largest": lambda validation, test: np.where(
           validation == validation.max(axis=2, keepdims=True), test, -np.inf).max(axis=2).mean(axis=1),
       "one-hot": lambda validation, test: np.einsum(
           "cse,cse->c", test, np.eye(test.shape[2])[validation.argmax(2)]) / test.shape[1],
       "settings one by one": lambda validation, test: [
           t[np.arange(len(t)), v.argmax(axis=1)].mean() for v, t in zip(validation, test)],
   },
    "12.2": {
       "torch": _difference_torch,
       "standard errors": _difference_sem,
       "pandas": _difference_table,
       "lists": _difference_lists,
       "hypot": _of(lambda reviews, seeds, factor, *_: factor * math.hypot(*(v.sqrt() for v in (reviews, *seeds)))),
       "a tensor": _of(end=lambda gap, half: torch.stack([gap, half])),
       "in float32": lambda first, second, factor: difference_interval(
           first.astype(np.float32), second.astype(np.float32), factor),
   },
    "12.3": {
       "torch": _holm_torch,
       "adjusted and compared": _holm_adjusted,
       "recursive": _holm_recursive,
       "how many are smaller": lambda p_values, level: [
           all(q < level / (len(p_values) - sum(r < q for r in p_values)) for q in p_values if q <= p) for p in p_values],
       "strictly below": lambda p_values, level: np.array(_holm_adjusted(p_values, level)).astype(int),
       "steps": _steps(_holm_bar),
   },
    "12.4": {
       "modules": _width_modules,
       "the course's class": _width_course,
       "the root": _width_root,
       "two matrices": _width_two_matrices,
       "from above": lambda vocab_size, d_model, budget: next(
           (w, _counted(vocab_size, d_model, w)) for w in range(3000, 0, -1) if _counted(vocab_size, d_model, w) <= budget),
   },
}
