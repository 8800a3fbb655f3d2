"""Solutions of the exercises of notebook 12, accepted variants, and the answers that known mistakes give."""

import bisect
import functools
import itertools
import math
import statistics
from fractions import Fraction

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import nn

from course_utils.baselines import RecurrentClassifier
from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 12.1


def report(validation, test):
    chosen = validation.argmax(axis=2, keepdims=True)                      # (setting, seed, 1): the best epoch of each run
    return np.take_along_axis(test, chosen, axis=2).mean(axis=(1, 2))      # (setting,)


def _report_loops(validation, test):
    means = []
    for setting_validation, setting_test in zip(validation.tolist(), test.tolist()):
        scored = [there[seen.index(max(seen))] for seen, there in zip(setting_validation, setting_test)]
        means.append(sum(scored) / len(scored))
    return means


def _report_indices(validation, test):
    settings, seeds = np.indices(validation.shape[:2])
    return test[settings, seeds, validation.argmax(-1)].mean(axis=1)


def _at(epoch_of):
    """`epoch_of` gives epochs (setting, seed): the test accuracies of the runs there, as tensors."""
    def answer(validation, test):
        validation, test = torch.tensor(validation), torch.tensor(test)
        epochs = epoch_of(validation, test).expand(test.shape[:2])
        return test.gather(2, epochs[:, :, None])[:, :, 0]
    return answer


_at_best = _at(lambda validation, test: validation.argmax(2))


def _best_seed(validation, test):
    seed = torch.tensor(validation).amax(dim=2).argmax(dim=1, keepdim=True)
    return _at_best(validation, test).gather(1, seed)[:, 0]


REPORT = Answers(
    report,
    variants={
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
    mutants={
        "best-of-all": lambda validation, test: test.max(axis=(1, 2)),
        "epoch-on-test": lambda validation, test: test.max(axis=2).mean(axis=1),
        "epoch-on-test-mean": lambda validation, test: test.mean(axis=1).max(axis=1),
        "seed-on-test": lambda validation, test: _at_best(validation, test).amax(dim=1),
        "best-seed": _best_seed,
        "worst-seed": lambda validation, test: _at_best(validation, test).amin(dim=1),
        "median-seed": lambda validation, test: _at_best(validation, test).median(dim=1).values,
        "validation-reported": lambda validation, test: validation.max(axis=2).mean(axis=1),
        "best-validation": lambda validation, test: validation.max(axis=(1, 2)),
        "last-epoch": lambda validation, test: test[:, :, -1].mean(axis=1),
        "mean-of-epochs": lambda validation, test: test.mean(axis=(1, 2)),
        "lowest": lambda validation, test: _at(lambda v, t: v.argmin(2))(validation, test).mean(1),
        "one-epoch-a-setting": lambda validation, test: _at(lambda v, t: v.mean(1).argmax(1)[:, None])(
            validation, test).mean(1),
        "first-seeds-epoch": lambda validation, test: _at(lambda v, t: v[:, :1].argmax(2))(validation, test).mean(1),
        "one-epoch-for-all": lambda validation, test: _at(lambda v, t: v.mean((0, 1)).argmax().reshape(1, 1))(
            validation, test).mean(1),
        "summed": lambda validation, test: _at_best(validation, test).sum(1),
    },
)

# ---------------------------------------------------------------- 12.2


def difference_interval(first, second, factor):
    per_review = first.mean(axis=0) - second.mean(axis=0)                  # (review,): a hard review is hard for both
    of_reviews = per_review.var(ddof=1) / len(per_review)
    of_seeds = sum(model.mean(axis=1).var(ddof=1) / len(model) for model in (first, second))
    return per_review.mean(), factor * (of_reviews + of_seeds) ** 0.5


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


def _of(half=None, gap=lambda d: d.mean(), end=lambda gap, half: (gap, half)):
    """The difference with one thing changed; `half(reviews, seeds, factor, …)` gets the three variances and the tensors."""
    def answer(first, second, factor):
        a, b = torch.tensor(first), torch.tensor(second)
        d = a.mean(0) - b.mean(0)
        reviews, seeds = d.var() / len(d), [side.mean(1).var() / len(side) for side in (a, b)]
        width = (half or _usual)(reviews, seeds, factor, a, b, d)
        return end(gap(d), width)
    return answer


def _usual(reviews, seeds, factor, *_):
    return factor * (reviews + sum(seeds)).sqrt()


def _own(side):
    """A model's own variance: reviews and seeds."""
    p = side.mean()
    return p * (1 - p) / side.shape[1] + side.mean(1).var() / len(side)


def _one_seed(first, second, factor):
    a, b = torch.tensor(first), torch.tensor(second)
    d = a[0] - b[0]
    return d.mean(), factor * (d.var() / len(d) + sum(side.mean(1).var() / len(side) for side in (a, b))).sqrt()


def _paired_seeds(reviews, seeds, factor, a, b, d):
    gaps = torch.stack([one.mean() - other.mean() for one, other in zip(a, b)])
    return factor * (reviews + gaps.var() / len(gaps)).sqrt()


def _in_one(reviews, seeds, factor, a, b, d):
    every = torch.cat([a.mean(1), b.mean(1)])
    return factor * (reviews + every.var() / len(every)).sqrt()


DIFFERENCE = Answers(
    difference_interval,
    variants={
        "torch": _difference_torch,
        "standard errors": _difference_sem,
        "pandas": _difference_table,
        "lists": _difference_lists,
        "hypot": _of(lambda reviews, seeds, factor, *_: factor * math.hypot(*(v.sqrt() for v in (reviews, *seeds)))),
        "a tensor": _of(end=lambda gap, half: torch.stack([gap, half])),
        "in float32": lambda first, second, factor: difference_interval(
            first.astype(np.float32), second.astype(np.float32), factor),
    },
    mutants={
        "unpaired": _of(lambda reviews, seeds, factor, a, b, d: factor * (_own(a) + _own(b)).sqrt()),
        "unpaired-means": _of(lambda reviews, seeds, factor, a, b, d: factor * (
            (a.mean(0).var() + b.mean(0).var()) / len(d) + sum(seeds)).sqrt()),
        "halves-added": _of(lambda reviews, seeds, factor, a, b, d: factor * (_own(a).sqrt() + _own(b).sqrt())),
        "only-reviews": _of(lambda reviews, seeds, factor, *_: factor * reviews.sqrt()),
        "only-seeds": _of(lambda reviews, seeds, factor, *_: factor * sum(seeds).sqrt()),
        "seeds-of-the-first": _of(lambda reviews, seeds, factor, *_: factor * (reviews + seeds[0]).sqrt()),
        "seeds-of-the-second": _of(lambda reviews, seeds, factor, *_: factor * (reviews + seeds[1]).sqrt()),
        "spread-of-one": _of(lambda reviews, seeds, factor, a, b, d: factor * (
            reviews + a.mean(1).var() + b.mean(1).var()).sqrt()),
        "divided-by-seeds": _of(lambda reviews, seeds, factor, a, b, d: factor * (
            reviews + sum(side.mean(1).var(correction=0) / len(side) for side in (a, b))).sqrt()),
        "reviews-times-seeds": _of(lambda reviews, seeds, factor, a, b, d: factor * (
            reviews / (len(a) + len(b)) + sum(seeds)).sqrt()),
        "all-in-one": _of(_in_one),
        "seeds-paired": _of(_paired_seeds),
        "one-seed": _one_seed,
        "seed-for-the-reviews": _of(lambda reviews, seeds, factor, a, b, d: factor * (
            (a[0] - b[0]).var() / len(d) + sum(seeds)).sqrt()),
        "not-divided": _of(lambda reviews, seeds, factor, a, b, d: factor * (d.var() + sum(seeds)).sqrt()),
        "not-centred": _of(lambda reviews, seeds, factor, a, b, d: factor * (
            d.square().mean() / len(d) + sum(seeds)).sqrt()),
        "widths-added": _of(lambda reviews, seeds, factor, *_: factor * (reviews.sqrt() + sum(v.sqrt() for v in seeds))),
        "no-root": _of(lambda reviews, seeds, factor, *_: factor * (reviews + sum(seeds))),
        "another-factor": _of(lambda reviews, seeds, factor, *_: _usual(reviews, seeds, 1.96)),
        "no-factor": _of(lambda reviews, seeds, factor, *_: _usual(reviews, seeds, 1)),
        "whole-width": _of(lambda *parts: 2 * _usual(*parts)),
        "sign": _of(gap=lambda d: -d.mean()),
        "without-sign": _of(gap=lambda d: d.mean().abs()),
        "two-ends": _of(end=lambda gap, half: (gap - half, gap + half)),
        "swapped": _of(end=lambda gap, half: (half, gap)),
        "points": _of(end=lambda gap, half: (100 * gap, 100 * half)),
    },
)

# ---------------------------------------------------------------- 12.3


def survivors(p_values, level):
    m = len(p_values)
    survives = [False] * m
    for step, i in enumerate(sorted(range(m), key=lambda i: p_values[i])):  # the smallest first
        if p_values[i] >= level / (m - step):
            break                                                          # nothing after it survives
        survives[i] = True
    return survives


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


def _steps(bar, sort=sorted, stop=True, put_back=True):
    """Holm with another bar(level, step, m), another sorting, without the stop, or with the verdicts as sorted."""
    def answer(p_values, level):
        m, going, verdicts = len(p_values), True, [False] * len(p_values)
        for step, (p, i) in enumerate(sort([(p, i) for i, p in enumerate(p_values)])):
            passes = p < bar(level, step, m)
            going = going and passes
            verdicts[i if put_back else step] = going if stop else passes
        return verdicts
    return answer


def _from_above(bar):
    """The largest p-value that passes its bar, and everything below it."""
    def answer(p_values, level):
        ranked, m = sorted(p_values), len(p_values)
        passing = [p for step, p in enumerate(ranked) if p < bar(level, step, m)]
        return [p <= max(passing, default=-1) for p in p_values]
    return answer


def _holm_bar(level, step, m):
    return level / (m - step)


def _stopped_late(p_values, level):
    verdicts = survivors(p_values, level)
    lost = [p for p, kept in zip(p_values, verdicts) if not kept]
    return [kept or p == min(lost) for p, kept in zip(p_values, verdicts)]


def _adjusted(p_values, level):
    order, m = np.argsort(p_values), len(p_values)
    values = np.maximum.accumulate(np.array(p_values)[order] * np.arange(m, 0, -1))
    return np.minimum(values, 1)[np.argsort(order)]


HOLM = Answers(
    survivors,
    variants={
        "torch": _holm_torch,
        "adjusted and compared": _holm_adjusted,
        "recursive": _holm_recursive,
        "how many are smaller": lambda p_values, level: [
            all(q < level / (len(p_values) - sum(r < q for r in p_values)) for q in p_values if q <= p) for p in p_values],
        "strictly below": lambda p_values, level: np.array(_holm_adjusted(p_values, level)).astype(int),
        "steps": _steps(_holm_bar),
    },
    mutants={
        "uncorrected": lambda p_values, level: [p < level for p in p_values],
        "bonferroni": lambda p_values, level: [p < level / len(p_values) for p in p_values],
        "no-stop": _steps(_holm_bar, stop=False),
        "step-up": _from_above(_holm_bar),
        "benjamini-hochberg": _from_above(lambda level, step, m: level * (step + 1) / m),
        "rising-with-stop": _steps(lambda level, step, m: level * (step + 1) / m),
        "sidak": _steps(lambda level, step, m: 1 - (1 - level) ** (1 / (m - step))),
        "bars-reversed": _steps(lambda level, step, m: level / (step + 1)),
        "largest-first": _steps(_holm_bar, sort=lambda pairs: sorted(pairs, reverse=True)),
        "given-order": _steps(_holm_bar, sort=list),
        "answer-sorted": _steps(_holm_bar, put_back=False),
        "one-fewer": _steps(lambda level, step, m: level / max(m - step - 1, 1)),
        "one-more": _steps(lambda level, step, m: level / (m - step + 1)),
        "stopped-late": _stopped_late,
        "turned-round": lambda p_values, level: [not kept for kept in survivors(p_values, level)],
        "fixed-level": lambda p_values, level: survivors(p_values, 0.05),
        "adjusted": _adjusted,
    },
)

# ---------------------------------------------------------------- 12.4


def equal_width(vocab_size, d_model, budget):
    def parameters(width):
        gate = width * d_model + width * width + 2 * width                 # on the input, on the state, two biases
        return vocab_size * d_model + 4 * gate + 2 * width + 2             # vectors, LSTM, Linear

    width = 1
    while parameters(width + 1) <= budget:
        width += 1
    return width, parameters(width)


def _width_modules(vocab_size, d_model, budget):
    before = 0
    for width in itertools.count(1):
        with torch.device("meta"):                      # no numbers are drawn
            net = nn.ModuleList([nn.Embedding(vocab_size, d_model), nn.LSTM(d_model, width), nn.Linear(width, 2)])
        count = sum(parameter.numel() for parameter in net.parameters())
        if count > budget:
            return width - 1, before
        before = count


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


def _counted(words, d, w, gates=4, biases=2, state=1, matrix=None, output=None):
    """The parameters, with one part otherwise; `matrix` and `output` are numbers of parameters."""
    gate = (w * d if matrix is None else matrix) + state * w * w + biases * w
    return words * d + gates * gate + (2 * w + 2 if output is None else output)


def _widest(count=_counted, fits=lambda n, budget: n <= budget, end=lambda w, n, budget, count: (w, n)):
    def answer(vocab_size, d_model, budget):
        counts = functools.partial(count, vocab_size, d_model)
        width = max(w for w in range(2000) if w == 0 or fits(counts(w), budget))
        return end(width, counts(width), budget, counts)
    return answer


def _nearer(width, count, budget, counts):
    return min(((w, counts(w)) for w in (width, width + 1)), key=lambda pair: abs(pair[1] - budget))


WIDTH = Answers(
    equal_width,
    variants={
        "modules": _width_modules,
        "the course's class": _width_course,
        "the root": _width_root,
        "two matrices": _width_two_matrices,
        "from above": lambda vocab_size, d_model, budget: next(
            (w, _counted(vocab_size, d_model, w)) for w in range(3000, 0, -1) if _counted(vocab_size, d_model, w) <= budget),
    },
    mutants={
        "one-bias": _widest(lambda v, d, w: _counted(v, d, w, biases=1)),
        "no-bias": _widest(lambda v, d, w: _counted(v, d, w, biases=0)),
        "one-gate": _widest(lambda v, d, w: _counted(v, d, w, gates=1)),
        "three-gates": _widest(lambda v, d, w: _counted(v, d, w, gates=3)),
        "no-state": _widest(lambda v, d, w: _counted(v, d, w, state=0)),
        "no-input": _widest(lambda v, d, w: _counted(v, d, w, matrix=0)),
        "square": _widest(lambda v, d, w: _counted(v, d, w, matrix=w * w)),
        "no-embedding": _widest(lambda v, d, w: _counted(0, d, w)),
        "no-padding": _widest(lambda v, d, w: _counted(v - 1, d, w)),
        "no-output": _widest(lambda v, d, w: _counted(v, d, w, output=0)),
        "no-output-bias": _widest(lambda v, d, w: _counted(v, d, w, output=2 * w)),
        "one-logit": _widest(lambda v, d, w: _counted(v, d, w, output=w + 1)),
        "output-from-words": _widest(lambda v, d, w: _counted(v, d, w, output=2 * d + 2)),
        "one-too-wide": _widest(end=lambda w, n, budget, counts: (w + 1, counts(w + 1))),
        "nearest": _widest(end=_nearer),
        "below": _widest(fits=lambda n, budget: n < budget),
        "budget-returned": _widest(end=lambda w, n, budget, counts: (w, budget)),
        "swapped": _widest(end=lambda w, n, budget, counts: (n, w)),
    },
)

# ---------------------------------------------------------------- 12.5


def best_by_hand():
    three = 0.65**3 + 3 * 0.65**2 * 0.35                                   # all three, or two of three
    four = 0.65**4 + 4 * 0.65**3 * 0.35 + 0.5 * 6 * 0.65**2 * 0.35**2      # four, three, and half of the ties
    return [three, four]


def _majority(p=0.65, tie=0.5, ways=math.comb):
    """How often the majority of three tokens, and of four, is right."""
    def right(n):
        share = {k: 1.0 if 2 * k > n else tie if 2 * k == n else 0.0 for k in range(n + 1)}
        return sum(share[k] * ways(n, k) * p**k * (1 - p) ** (n - k) for k in share)
    return [right(3), right(4)]


def _by_enumeration():
    """The label is 1 or 0 with one half each; the best classifier takes the likelier label of each text of halves."""
    def best(n):
        texts = itertools.product((0, 1), repeat=n)
        return sum(max(math.prod(Fraction(13 if h == label else 7, 20) for h in text) for label in (0, 1)) / 2
                   for text in texts)
    return [best(3), best(4)]


BEST = Answers(
    best_by_hand,
    variants={
        "three decimals": lambda: [0.718, 0.718],
        "a tuple": lambda: (0.718, 0.718),
        "texts": lambda: ["0,718", "0.718"],
        "one text": lambda: "0.718 0.718",
        "tensor": lambda: torch.tensor(_majority()),
        "every text": _by_enumeration,
        "scipy": lambda: stats.binom.sf([1, 2], [3, 4], 0.65) + np.array([0, stats.binom.pmf(2, 4, 0.65) / 2]),
    },
    mutants={
        "one-token": lambda: [0.65, 0.65],
        "all-tokens": lambda: [0.65**3, 0.65**4],
        "at-least-one": lambda: [1 - 0.35**3, 1 - 0.35**4],
        "ties-right": lambda: _majority(tie=1.0),
        "ties-wrong": lambda: _majority(tie=0.0),
        "error": lambda: [1 - share for share in _majority()],
        "one-order": lambda: _majority(ways=lambda n, k: 1),
        "exactly": lambda: [3 * 0.65**2 * 0.35, 4 * 0.65**3 * 0.35],
        "any-half": lambda: _majority(p=0.825),
        "percent": lambda: [100 * share for share in _majority()],
    },
)

ANSWERS = {"12.1": REPORT, "12.2": DIFFERENCE, "12.3": HOLM, "12.4": WIDTH, "12.5": BEST}
