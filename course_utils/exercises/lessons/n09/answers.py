"""Solutions of the exercises of notebook 09, accepted variants, and the answers that known mistakes give."""

import math
import random
import statistics

import numpy as np
import torch

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 9.2

IDF = {"dull": math.log(5 / 4) + 1, "but": math.log(5 / 3) + 1, "moving": math.log(5 / 4) + 1}
COUNT = {"dull": 2, "but": 1, "moving": 1}


def entry_by_hand():
    # 2 · 1.223, 1.511 and 1.223; the length is the root of 9.763, which is 3.125
    return 2 * 1.2231 / math.sqrt((2 * 1.2231) ** 2 + 1.5108**2 + 1.2231**2)


def _entry(word="dull", count=COUNT, idf=IDF, divide=math.hypot):
    row = {name: count[name] * idf[name] for name in count}
    return row[word] / divide(*row.values())


TFIDF = Answers(
    entry_by_hand,
    variants={"three decimals": lambda: 0.783, "text": lambda: "0,783", "tensor": lambda: torch.tensor(_entry())},
    mutants={
        "counted-once": lambda: _entry(count=dict.fromkeys(COUNT, 1)),
        "not-divided": lambda: _entry(divide=lambda *row: 1.0),
        "no-idf": lambda: _entry(idf=dict.fromkeys(IDF, 1.0)),
        "divided-by-sum": lambda: _entry(divide=lambda *row: sum(row)),
        "no-plus-one": lambda: _entry(idf={name: value - 1 for name, value in IDF.items()}),
        "other-word": lambda: _entry("moving"),
        "new-idf": lambda: _entry(idf={"dull": math.log(6 / 5) + 1, "but": math.log(6 / 4) + 1,
                                       "moving": math.log(6 / 5) + 1}),
        "no-root": lambda: _entry(divide=lambda *row: math.hypot(*row) ** 2),
        "but": lambda: _entry("but"),
        "logarithm-of-tf": lambda: _entry(count={name: 1 + math.log(count) for name, count in COUNT.items()}),
        "not-smoothed": lambda: _entry(idf={"dull": math.log(4 / 3) + 1, "but": math.log(4 / 2) + 1,
                                            "moving": math.log(4 / 3) + 1}),
        "other-logarithm": lambda: _entry(idf={name: (value - 1) / math.log(10) + 1 for name, value in IDF.items()}),
        "other-review": lambda: IDF["dull"] / math.hypot(IDF["but"], *IDF.values()),
    },
)

# ---------------------------------------------------------------- 9.1


def seed_interval(accuracies, reviews):
    seeds = len(accuracies)
    mean = sum(accuracies) / seeds
    of_reviews = mean * (1 - mean) / reviews
    between_seeds = sum((accuracy - mean) ** 2 for accuracy in accuracies) / (seeds - 1)
    return mean, 1.96 * math.sqrt(of_reviews + between_seeds / seeds)


def _with_parts(combine):
    def answer(accuracies, reviews):
        mean = statistics.fmean(accuracies)
        return mean, combine(mean * (1 - mean) / reviews, statistics.variance(accuracies), len(accuracies))
    return answer


def _numpy_interval(accuracies, reviews):
    values = np.array(accuracies)
    variance = values.mean() * (1 - values.mean()) / reviews + values.var(ddof=1) / len(values)
    return np.array([values.mean(), 1.96 * variance**0.5])


def _torch_interval(accuracies, reviews):
    values = torch.tensor(accuracies, dtype=torch.float64)
    sampling = (values.mean() * (1 - values.mean()) / reviews).sqrt()
    return [values.mean(), 1.96 * torch.hypot(sampling, values.std() / len(values) ** 0.5)]


def _changed(how, right=seed_interval):
    return lambda *inputs: how(*right(*inputs))


def _rounded(accuracies, reviews):
    """The variance from all pairs of seeds; rounded to four decimals."""
    seeds = len(accuracies)
    mean = statistics.fmean(accuracies)
    pairs = sum((a - b) ** 2 for i, a in enumerate(accuracies) for b in accuracies[:i])
    return round(mean, 4), round(1.96 * math.sqrt(mean * (1 - mean) / reviews + pairs / seeds**2 / (seeds - 1)), 4)


INTERVAL = Answers(
    seed_interval,
    variants={"numpy": _numpy_interval, "torch": _torch_interval, "rounded": _rounded,
              "statistics": _with_parts(lambda reviews, seeds, n: 1.96 * (reviews + seeds / n) ** 0.5)},
    mutants={
        "only-reviews": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews)),
        "only-seeds": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(seeds / n)),
        "divided-by-seeds": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews + seeds * (n - 1) / n / n)),
        "spread-of-one": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews + seeds)),
        "standard-deviations-added": _with_parts(lambda reviews, seeds, n: 1.96 * (reviews**0.5 + (seeds / n) ** 0.5)),
        "one-standard-error": _with_parts(lambda reviews, seeds, n: math.sqrt(reviews + seeds / n)),
        "whole-width": _with_parts(lambda reviews, seeds, n: 2 * 1.96 * math.sqrt(reviews + seeds / n)),
        "reviews-times-seeds": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews / n + seeds / n)),
        "no-root": _with_parts(lambda reviews, seeds, n: 1.96 * (reviews + seeds / n)),
        "two-ends": _changed(lambda mean, half: (mean - half, mean + half)),
        "swapped": _changed(lambda mean, half: (half, mean)),
        "percent": _changed(lambda mean, half: (100 * mean, 100 * half)),
    },
)

# ---------------------------------------------------------------- 9.4


def shuffle_words(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for i, n in enumerate(attention_mask.sum(dim=1).tolist()):             # n real words in row i
        shuffled[i, :n] = token_ids[i, torch.randperm(n)]
    return shuffled


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


def _sorted_rows(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for i, n in enumerate(attention_mask.sum(dim=1).tolist()):
        shuffled[i, :n] = token_ids[i, :n].sort().values
    return shuffled


def _reversed_rows(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for i, n in enumerate(attention_mask.sum(dim=1).tolist()):
        shuffled[i, :n] = token_ids[i, :n].flip(0)
    return shuffled


def _with_replacement(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for i, n in enumerate(attention_mask.sum(dim=1).tolist()):
        shuffled[i, :n] = token_ids[i, torch.randint(n, (n,))]
    return shuffled


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


SHUFFLE = Answers(
    shuffle_words,
    variants={"by sorting": _by_sorting, "lists": _lists, "swaps": _swaps, "joined": _joined,
              "int32": lambda ids, mask: shuffle_words(ids, mask).int()},
    mutants={
        "columns": lambda ids, mask: ids[:, torch.randperm(ids.shape[1])],
        "rows": lambda ids, mask: ids[torch.randperm(ids.shape[0])],
        "reversed": _reversed_rows,
        "sorted": _sorted_rows,
        "unchanged": lambda ids, mask: ids.clone(),
        "with-replacement": _with_replacement,
    },
)

# ---------------------------------------------------------------- 9.3


def compare(first_right, second_right):
    difference = first_right.float() - second_right.float()                # (review,): +1, 0 or -1
    half = 1.96 * difference.std(correction=0) / math.sqrt(len(difference))
    return difference.mean(), half


def _compare(gap=lambda d: d.mean(), width=lambda d, a, b: 1.96 * d.std(correction=0) / math.sqrt(len(d))):
    def answer(first_right, second_right):
        a, b = first_right.double(), second_right.double()
        return gap(a - b), width(a - b, a, b)
    return answer


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


def _two_intervals(difference, a, b):
    return 1.96 * math.sqrt((a.mean() * (1 - a.mean()) + b.mean() * (1 - b.mean())) / len(a))


PAIRED = Answers(
    compare,
    variants={"counting": _by_counting, "vmap": _compare_vmap, "numpy": _numpy_compare},
    mutants={
        "unpaired": _compare(width=_two_intervals),
        "turned-round": _compare(gap=lambda d: -d.mean()),
        "without-sign": _compare(gap=lambda d: d.abs().mean()),
        "of-differing": _compare(gap=lambda d: d.sum() / d.abs().sum()),
        "counted-not-shared": _compare(gap=lambda d: d.sum()),
        "one-standard-error": _compare(width=lambda d, a, b: d.std(correction=0) / math.sqrt(len(d))),
        "not-centred": _compare(width=lambda d, a, b: 1.96 * d.square().mean().sqrt() / math.sqrt(len(d))),
        "no-root": _compare(width=lambda d, a, b: 1.96 * d.var(correction=0) / math.sqrt(len(d))),
        "two-ends": _changed(lambda gap, half: (gap - half, gap + half), compare),
        "swapped": _changed(lambda gap, half: (half, gap), compare),
        "no-root-of-n": _compare(width=lambda d, a, b: 1.96 * d.std(correction=0)),
    },
)

ANSWERS = {"9.1": INTERVAL, "9.2": TFIDF, "9.3": PAIRED, "9.4": SHUFFLE}
