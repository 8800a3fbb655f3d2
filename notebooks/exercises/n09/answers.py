"""The course's answers to the exercises of notebook 09, and what each known mistake would write."""

import math
import statistics

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
        "old-length": lambda: 2 * IDF["dull"] / math.hypot(IDF["but"], *IDF.values()),
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


def _changed(how, right=seed_interval):
    return lambda *inputs: how(*right(*inputs))


INTERVAL = Answers(
    seed_interval,
    mutants={
        "only-reviews": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews)),
        "only-seeds": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(seeds / n)),
        "divided-by-seeds": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews + seeds * (n - 1) / n / n)),
        "spread-of-one": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews + seeds)),
        "standard-deviations-added": _with_parts(lambda reviews, seeds, n: 1.96 * (reviews**0.5 + (seeds / n) ** 0.5)),
        "deviation-for-variance": _with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews + seeds**0.5 / n)),
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


SHUFFLE = Answers(
    shuffle_words,
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


def _among(differences):
    if not len(differences):
        return math.nan, math.nan
    return differences.mean(), 1.96 * differences.std() / math.sqrt(len(differences))


def _two_intervals(difference, a, b):
    return 1.96 * math.sqrt((a.mean() * (1 - a.mean()) + b.mean() * (1 - b.mean())) / len(a))


PAIRED = Answers(
    compare,
    mutants={
        "unpaired": _compare(width=_two_intervals),
        "turned-round": _compare(gap=lambda d: -d.mean()),
        "without-sign": _compare(gap=lambda d: d.abs().mean()),
        "of-differing": _compare(gap=lambda d: d.sum() / d.abs().sum()),
        "among-differing": lambda first, second: _among((first.double() - second.double())[first != second]),
        "binomial": _compare(width=lambda d, a, b: 1.96 * (d.mean() * (1 - d.mean()) / len(d)).sqrt()),
        "divided-by-n": _compare(width=lambda d, a, b: 1.96 * d.std(correction=0) / len(d)),
        "counted-not-shared": _compare(gap=lambda d: d.sum()),
        "one-standard-error": _compare(width=lambda d, a, b: d.std(correction=0) / math.sqrt(len(d))),
        "not-centred": _compare(width=lambda d, a, b: 1.96 * d.square().mean().sqrt() / math.sqrt(len(d))),
        "no-root": _compare(width=lambda d, a, b: 1.96 * d.var(correction=0) / math.sqrt(len(d))),
        "two-ends": _changed(lambda gap, half: (gap - half, gap + half), compare),
        "swapped": _changed(lambda gap, half: (half, gap), compare),
        "no-root-of-n": _compare(width=lambda d, a, b: 1.96 * d.std(correction=0)),
    },
)

ANSWERS = (INTERVAL, TFIDF, PAIRED, SHUFFLE)
