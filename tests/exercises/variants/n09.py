"""Other right answers to the exercises of notebook 09, which a check must accept."""

import math
import random
import statistics

import numpy as np
import torch

from course_exercises.n09.answers import _entry, _with_parts, shuffle_words


def _numpy_interval(accuracies, reviews):
    values = np.array(accuracies)
    variance = values.mean() * (1 - values.mean()) / reviews + values.var(ddof=1) / len(values)
    return np.array([values.mean(), 1.96 * variance**0.5])


def _torch_interval(accuracies, reviews):
    values = torch.tensor(accuracies, dtype=torch.float64)
    sampling = (values.mean() * (1 - values.mean()) / reviews).sqrt()
    return [values.mean(), 1.96 * torch.hypot(sampling, values.std() / len(values) ** 0.5)]


def _rounded(accuracies, reviews):
    """The variance from all pairs of seeds; rounded to four decimals."""
    seeds = len(accuracies)
    mean = statistics.fmean(accuracies)
    pairs = sum((a - b) ** 2 for i, a in enumerate(accuracies) for b in accuracies[:i])
    return round(mean, 4), round(1.96 * math.sqrt(mean * (1 - mean) / reviews + pairs / seeds**2 / (seeds - 1)), 4)


def _by_sorting(token_ids, attention_mask):
    keys = torch.rand(token_ids.shape).masked_fill(~attention_mask, 2.0)
    return token_ids.gather(1, keys.argsort(dim=1))


def _lists(token_ids, attention_mask):
    rows = []
    for row, real in zip(token_ids.tolist(), attention_mask.tolist()):
        words = [word for word, keep in zip(row, real) if keep]
        random.shuffle(words)
        rows.append(words + row[len(words) :])
    return rows


def _swaps(token_ids, attention_mask):
    """Fisher and Yates: from the last place down, each exchanged with one at or before it."""
    array = token_ids.numpy().copy()
    for row, n in zip(array, attention_mask.sum(dim=1).tolist()):
        for last in range(n - 1, 0, -1):
            other = random.randint(0, last)
            row[last], row[other] = row[other], row[last]
    return array


def _joined(token_ids, attention_mask):
    """A list of rows: the words in a new order, then the padding."""
    return [torch.cat([row[real][torch.randperm(int(real.sum()))], row[~real]])
            for row, real in zip(token_ids, attention_mask)]


def _by_counting(first_right, second_right):
    n = len(first_right)
    only_first = sum(bool(a) and not b for a, b in zip(first_right, second_right))
    only_second = sum(bool(b) and not a for a, b in zip(first_right, second_right))
    half = 1.96 * math.sqrt(only_first + only_second - (only_first - only_second) ** 2 / n) / n
    return (only_first - only_second) / n, half


def _numpy_compare(first_right, second_right):
    difference = first_right.numpy().astype(float) - second_right.numpy().astype(float)
    return difference.mean(), 1.96 * difference.std() / len(difference) ** 0.5


def _compare_vmap(first_right, second_right):
    difference = torch.func.vmap(lambda one, other: one.float() - other.float())(first_right, second_right)
    mean = difference.mean()
    return torch.stack([mean, 1.96 * (difference.square().mean() - mean**2).sqrt() * len(difference) ** -0.5])


VARIANTS = {
    "9.2": {"three decimals": lambda: 0.783, "text": lambda: "0,783", "tensor": lambda: torch.tensor(_entry())},
    "9.1": {"numpy": _numpy_interval, "torch": _torch_interval, "rounded": _rounded,
            "statistics": _with_parts(lambda reviews, seeds, n: 1.96 * (reviews + seeds / n) ** 0.5)},
    "9.4": {"by sorting": _by_sorting, "lists": _lists, "swaps": _swaps, "joined": _joined,
            "int32": lambda ids, mask: shuffle_words(ids, mask).int()},
    "9.3": {"counting": _by_counting, "vmap": _compare_vmap, "numpy": _numpy_compare},
}
