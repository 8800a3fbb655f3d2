"""The course's answers to the exercises of notebook 12, and what each known mistake would write."""

import functools

import numpy as np
import torch

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 12.1

def report(validation, test):
    chosen = validation.argmax(axis=2, keepdims=True)                      # (setting, seed, 1): the best epoch of each run
    return np.take_along_axis(test, chosen, axis=2).mean(axis=(1, 2))      # (setting,)


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

ANSWERS = (REPORT, DIFFERENCE, HOLM, WIDTH)
