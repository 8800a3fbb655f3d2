"""Exercises and quiz of notebook 12, comparing models."""

import functools
import math
import statistics

import numpy as np
import torch
from scipy import stats

from course_utils.baselines import RecurrentClassifier
from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import items_of, pair_of, what

# ---------------------------------------------------------------- 12.1 repair: what the test split chose

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


def report_probes(generator: torch.Generator) -> list[tuple]:
    """Validation and test accuracies of (settings 6, seeds 3, epochs 7) and (4, 5, 6): settings differ little, the rest is
    chance. In the second each run has two best epochs, equal on the test split too. Then a single run."""
    probes = []
    for shape in ((6, 3, 7), (4, 5, 6), (1, 1, 3)):
        setting = 0.8 + 0.02 * torch.rand(shape[0], 1, 1, generator=generator, dtype=torch.float64)
        validation, test = (setting + 0.1 * torch.rand(shape, generator=generator, dtype=torch.float64) - 0.05
                            for _ in range(2))
        validation[:, :, -1] -= 0.04                    # so that the last epoch is not the best on average
        if shape == (4, 5, 6):
            best = validation.argmax(dim=-1, keepdim=True)
            again = (best + 1) % shape[-1]
            validation.scatter_(-1, again, validation.gather(-1, best))
            test.scatter_(-1, again, test.gather(-1, best))
        probes.append((validation.numpy(), test.numpy()))
    return probes


def _setting(case: Case) -> str:
    """The setting whose number is furthest from right."""
    got, right = case.answer, case.expected
    i = int((got - right).abs().argmax())
    return f"setting {i} (from 0) gets {got[i]:.4f}, expected {right[i]:.4f}."


def _above(case: Case) -> str:
    gap = 100 * (case.answer - case.expected).mean().item()
    way = "above" if gap > 0 else "below"
    return f"on average your settings are {abs(gap):.2f} points {way} what they should be."


REPORT = ask(
    "12.1", report,
    given="best-of-all",
    probes=report_probes,
    signature="report(validation (setting, seed, epoch), test (setting, seed, epoch), accuracies) -> (setting,)",
    mistakes={
        "best-of-all": M(
            lambda validation, test: test.max(axis=(1, 2)),
            _above,
            "The test split has chosen, and more than once."),
        "epoch-on-test": M(
            lambda validation, test: test.max(axis=2).mean(axis=1),
            _above,
            "The seeds are averaged now. The epoch is still chosen by the test accuracy; "
                "validation has to choose it."),
        "epoch-on-test-mean": M(
            lambda validation, test: test.mean(axis=1).max(axis=1),
            _above,
            "The seeds were averaged first, and the best test epoch of the mean was "
                "taken. That is still the test split choosing; validation has to choose."),
        "seed-on-test": M(
            lambda validation, test: _at_best(validation, test).amax(dim=1),
            _above,
            "The epoch is chosen correctly. But you report the seed with the highest test "
                "accuracy, and a different setting may have had less luck. Take the mean."),
        "best-seed": M(
            _best_seed,
            _setting,
            "You report the seed that was best on validation. That is honest, but it is only "
                "one seed: to compare settings you need the mean over all of them."),
        "worst-seed": M(
            lambda validation, test: _at_best(validation, test).amin(dim=1),
            _setting,
            "You report the seed that was worst on the test split. That is a choice too. Take "
                "the mean of all seeds."),
        "median-seed": M(
            lambda validation, test: _at_best(validation, test).median(dim=1).values,
            _setting,
            "You took the median of the seeds. The exercise asks for their mean."),
        "validation-reported": M(
            lambda validation, test: validation.max(axis=2).mean(axis=1),
            _above,
            "That is the validation accuracy of the chosen epochs. It was chosen for "
                "being high, so it is too high; the exercise asks for the test accuracy at the same epochs."),
        "best-validation": M(
            lambda validation, test: validation.max(axis=(1, 2)),
            _above,
            "That is the highest validation accuracy of any seed and epoch. Validation "
                "chooses the epoch; the test accuracy there is reported, as a mean over the seeds."),
        "last-epoch": M(
            lambda validation, test: test[:, :, -1].mean(axis=1),
            _setting,
            "You took the last epoch of each run. That's honest, but the exercise asks for the "
                "one where the validation accuracy was highest."),
        "mean-of-epochs": M(
            lambda validation, test: test.mean(axis=(1, 2)),
            _setting,
            "You averaged over the epochs. Only one epoch of each run is reported, the one "
                "that validation chose."),
        "lowest": M(
            lambda validation, test: _at(lambda v, t: v.argmin(2))(validation, test).mean(1),
            _setting,
            "The epoch with the lowest validation accuracy was taken. An accuracy isn't a loss: "
                "high is good."),
        "one-epoch-a-setting": M(
            lambda validation, test: _at(lambda v, t: v.mean(1).argmax(1)[:, None])(
            validation, test).mean(1),
            _setting,
            "All seeds of a setting were read at the same epoch, the best of their "
                "mean validation accuracy. Each seed is a separate run, with its own epoch."),
        "first-seeds-epoch": M(
            lambda validation, test: _at(lambda v, t: v[:, :1].argmax(2))(validation, test).mean(1),
            _setting,
            "All seeds were read at the epoch that the first seed chose. Each seed "
                "chooses by its own validation accuracies."),
        "one-epoch-for-all": M(
            lambda validation, test: _at(lambda v, t: v.mean((0, 1)).argmax().reshape(1, 1))(
            validation, test).mean(1),
            _setting,
            "All settings and seeds were read at one and the same epoch. Each run has "
                "its own best epoch: argmax along the last axis."),
        "summed": M(
            lambda validation, test: _at_best(validation, test).sum(1),
            _setting,
            "The seeds were added. Divide by their number."),
    },
    rules=(
        R(lambda case: (case.answer.numpy() > case.inputs[1].max() + 1e-6).any(), _setting,
                 "Some numbers of yours are above every test accuracy. Test accuracies, or their mean, are what is "
                 "reported."),
        R(lambda case: (case.answer.numpy() < case.inputs[1].min() - 1e-6).any(), _setting,
                 "Some numbers of yours are below every test accuracy. Test accuracies, or their mean, are what is "
                 "reported."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _setting, "Go through one setting by hand: "
                 "for each seed find the epoch with the highest validation accuracy, read the test accuracy there, then "
                 "take the mean."),
    ),
    hints=(
        "There are two maxima of test accuracies, one over the epochs and one over the seeds. What should "
        "replace each?",
        "First find the epoch of each run: argmax over the last axis of validation gives one number for each setting and "
        "seed.",
        "To read test at these epochs, use np.take_along_axis, with keepdims=True in argmax, or a loop over settings and "
        "seeds.",
    ),
)

# ---------------------------------------------------------------- 12.2 the interval of a difference

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


def _sides(generator: torch.Generator, reviews: int, seeds: tuple[int, int], means: tuple[float, float]) -> list:
    """Which reviews each seed of two models judges rightly: hard reviews are hard for both, and seeds differ."""
    hard = 0.55 * torch.rand(reviews, generator=generator) - 0.27
    sides = []
    for count, mean in zip(seeds, means):
        shifts = torch.linspace(-0.035, 0.035, count)[torch.randperm(count, generator=generator)]
        shifts += 0.015 * torch.rand(count, generator=generator)
        right = torch.rand(count, reviews, generator=generator) < mean + hard + shifts[:, None]
        sides.append(right.double().numpy())
    return sides


def difference_probes(generator: torch.Generator) -> list[tuple]:
    """Three seeds against five on 360 reviews, the first clearly better; four against two on 410, the first worse."""
    factors = (2.2 + 0.3 * torch.rand(1, generator=generator).item(), 2.9 + 0.3 * torch.rand(1, generator=generator).item())
    return [(*_sides(generator, 360, (3, 5), (0.82, 0.66)), factors[0]),
            (*_sides(generator, 410, (4, 2), (0.6, 0.76)), factors[1])]


def _half(case: Case) -> str:
    return f"half the interval is {100 * case.answer[1]:.3f} points, expected {100 * case.expected[1]:.3f}."


def _gap(case: Case) -> str:
    return f"your difference is {100 * case.answer[0]:.3f} points, expected {100 * case.expected[0]:.3f}."


def _both(case: Case) -> str:
    return f"you return {case.answer[0]:.4f} and {case.answer[1]:.4f}."


DIFFERENCE = ask(
    "12.2", difference_interval,
    probes=difference_probes,
    forbidden=("course_utils.results.difference",),
    signature="difference_interval(first (seed, review), second (other seeds, the same reviews), 1 = judged rightly, "
    "factor) -> difference, half of the interval",
    mistakes={
        "unpaired": M(
            _of(lambda reviews, seeds, factor, a, b, d: factor * (_own(a) + _own(b)).sqrt()),
            _half,
            "This is the interval for models that were scored on *different* reviews. Here a hard "
                "review is hard for both models, and that cancels in the difference: subtract review by review first."),
        "unpaired-means": M(
            _of(lambda reviews, seeds, factor, a, b, d: factor * (
            (a.mean(0).var() + b.mean(0).var()) / len(d) + sum(seeds)).sqrt()),
            _half,
            "The variance over the reviews was computed separately for each model, and the "
                "two were added, as for models scored on *different* reviews. A hard review is hard for both models, and "
                "that cancels in the difference: subtract review by review first, then one variance."),
        "halves-added": M(
            _of(lambda reviews, seeds, factor, a, b, d: factor * (_own(a).sqrt() + _own(b).sqrt())),
            _half,
            "You added the two models' own intervals, which amounts to checking whether they "
                "overlap. That is too wide: variances add, not widths, and hard reviews cancel in the difference."),
        "only-reviews": M(
            _of(lambda reviews, seeds, factor, *_: factor * reviews.sqrt()),
            _half,
            "The seeds are missing: only the choice of reviews is counted."),
        "only-seeds": M(
            _of(lambda reviews, seeds, factor, *_: factor * sum(seeds).sqrt()),
            _half,
            "The reviews are missing: only the spread between the seeds is counted."),
        "seeds-of-the-first": M(
            _of(lambda reviews, seeds, factor, *_: factor * (reviews + seeds[0]).sqrt()),
            _half,
            "The seeds of the second model are missing. The baseline's seeds were drawn "
                "too."),
        "seeds-of-the-second": M(
            _of(lambda reviews, seeds, factor, *_: factor * (reviews + seeds[1]).sqrt()),
            _half,
            "The seeds of the first model are missing."),
        "spread-of-one": M(
            _of(lambda reviews, seeds, factor, a, b, d: factor * (
            reviews + a.mean(1).var() + b.mean(1).var()).sqrt()),
            _half,
            "The variances between seeds are those of single seeds. The mean of several varies "
                "less: divide each by its number of seeds."),
        "divided-by-seeds": M(
            _of(lambda reviews, seeds, factor, a, b, d: factor * (
            reviews + sum(side.mean(1).var(correction=0) / len(side) for side in (a, b))).sqrt()),
            _half,
            "The squared distances of the seeds were averaged over all of them, as NumPy's "
                "var does unless told ddof=1. With the mean taken from the same values they are divided by one less; with "
                "three seeds that matters."),
        "reviews-times-seeds": M(
            _of(lambda reviews, seeds, factor, a, b, d: factor * (
            reviews / (len(a) + len(b)) + sum(seeds)).sqrt()),
            _half,
            "All seeds judged the same reviews, so more seeds don't make more reviews: "
                "divide by the number of reviews, not by reviews times seeds."),
        "all-in-one": M(
            _of(_in_one),
            _half,
            "The accuracies of both models went into one variance. Then the difference itself "
                "counts as spread. Take each model's seeds separately, and add."),
        "seeds-paired": M(
            _of(_paired_seeds),
            _half,
            "The seeds were subtracted in pairs. Seed 0 of one model and seed 0 of the other may even "
                "begin alike, and it doesn't show after training; reviews are paired, seeds are not. Take two "
                "variances, one for each model."),
        "one-seed": M(
            _one_seed,
            lambda case: f"{_gap(case)[:-1]}, and {_half(case)}",
            "Only the first seed of each model was "
                "compared review by review. Take the mean over the seeds first."),
        "seed-for-the-reviews": M(
            _of(lambda reviews, seeds, factor, a, b, d: factor * (
            (a[0] - b[0]).var() / len(d) + sum(seeds)).sqrt()),
            _half,
            "The difference is right. But the variance over the reviews was taken from "
                "the first seed of each model; take it from the mean over the seeds, which is what is reported."),
        "not-divided": M(
            _of(lambda reviews, seeds, factor, a, b, d: factor * (d.var() + sum(seeds)).sqrt()),
            _half,
            "This is how much single reviews vary. The mean of n varies less: divide the variance "
                "by the number of reviews."),
        "not-centred": M(
            _of(lambda reviews, seeds, factor, a, b, d: factor * (
            d.square().mean() / len(d) + sum(seeds)).sqrt()),
            _half,
            "For the reviews you took the mean square. For the variance, subtract the squared "
                "mean from it."),
        "widths-added": M(
            _of(lambda reviews, seeds, factor, *_: factor * (reviews.sqrt() + sum(v.sqrt() for v in seeds))),
            _half,
            "Three standard deviations were added. Independent sources of chance add their "
                "variances: add the squares, then take the square root."),
        "no-root": M(
            _of(lambda reviews, seeds, factor, *_: factor * (reviews + sum(seeds))),
            _half,
            "This uses the variance. The interval uses its square root."),
        "another-factor": M(
            _of(lambda reviews, seeds, factor, *_: _usual(reviews, seeds, 1.96)),
            _half,
            "You took 1.96 in place of `factor`. With three seeds we know the spread only "
                "roughly, and 1.96 gives an interval that is too narrow."),
        "no-factor": M(
            _of(lambda reviews, seeds, factor, *_: _usual(reviews, seeds, 1)),
            _half,
            "This is one standard error. Multiply by `factor`."),
        "whole-width": M(
            _of(lambda *parts: 2 * _usual(*parts)),
            _half,
            "This is the whole width; return half of it, the number after ±."),
        "sign": M(
            _of(gap=lambda d: -d.mean()),
            _gap,
            "The sign is reversed: first model minus second."),
        "without-sign": M(
            _of(gap=lambda d: d.mean().abs()),
            _gap,
            "The sign is gone. When the first model is worse, the difference is negative."),
        "two-ends": M(
            _of(end=lambda gap, half: (gap - half, gap + half)),
            _both,
            "Those are the two ends of the interval. The exercise asks for the difference and half "
                "of the width."),
        "swapped": M(
            _of(end=lambda gap, half: (half, gap)),
            _both,
            "The two are swapped: the difference comes first."),
        "points": M(
            _of(end=lambda gap, half: (100 * gap, 100 * half)),
            _both,
            "Those are percentages. Leave both as fractions, from 0 to 1."),
    },
    rules=(
        R(lambda case: abs(case.answer[0] - case.expected[0]) > 1.2e-4, _gap, "It is the mean accuracy of the first "
                 "model over seeds and reviews, minus the same for the second."),
        R(lambda case: case.answer[1] <= 0, lambda case: f"half the interval is {case.answer[1]:.4f}.",
                 "A width is positive."),
        R(lambda case: abs(case.answer[1] - case.expected[1]) > 1e-4, lambda case: "the difference is right, but "
                 f"{_half(case)}", "Print the three variances separately: reviews, seeds of the first model, seeds of the "
                 "second. Each is divided by how many were drawn."),
    ),
    hints=(
        "The mean over axis 0 gives the fraction of seeds that are right on each review; over axis 1, the accuracy of each.",
        "For the reviews: make one array of differences, one for each review; divide its variance by its length.",
        "For the seeds: first.mean(axis=1).var(ddof=1) is their variance; by default NumPy's var divides by their number, "
        "not by one less. Divide the variance by their number. Do the same for the second model.",
        "Add all three, take the square root, and multiply by factor.",
    ),
)

# ---------------------------------------------------------------- 12.3 Holm

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


def _from_above(bar, at_bar=False):
    """The largest p-value that passes its bar, and everything below it; `at_bar`: one that's exactly there passes."""
    def answer(p_values, level):
        ranked, m = sorted(p_values), len(p_values)
        passing = [p for step, p in enumerate(ranked) if p < bar(level, step, m) or (at_bar and p == bar(level, step, m))]
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


def holm_probes(generator: torch.Generator) -> list[tuple]:
    """p-values between the bars of Holm and of the methods that are taken for it, in random order; then one, two, and one
    that is exactly at its bar."""
    def between(low: float, high: float) -> float:
        return low + (high - low) * (0.2 + 0.6 * torch.rand(1, generator=generator).item())

    bars = {count: 0.05 / count for count in range(1, 8)}
    first = [between(0.001, 0.003), between(bars[7], bars[6]), between(bars[6], bars[5]), between(bars[4], 0.0142),
             between(0.0143, bars[3]), between(0.036, 0.042), between(0.055, 0.09)]
    second = [between(0.013, 0.0195), between(0.1 / 4, 0.1 / 3), between(0.1 / 2, 0.0513), between(0.06, 0.08)]
    third = [between(0.0103, 0.0118), between(0.012, 0.0124), between(0.02, 0.024), between(0.026, 0.048)]
    fourth = [between(0.0172, 0.0245), between(0.3, 0.6), between(0.7, 0.9)]
    fifth = [between(0.001, 0.002), between(0.003, 0.01)]
    sixth = [between(0.0053, 0.008), between(0.021, 0.0245), between(0.0255, 0.0295), between(0.2, 0.4), between(0.5, 0.9)]
    probes = []
    for values, level in ((first, 0.05), (second, 0.1), (third, 0.05), (fourth, 0.05), (fifth, 0.05), (sixth, 0.05)):
        order = torch.randperm(len(values), generator=generator).tolist()
        if sorted(order) == order:                      # else a list that is sorted already would hide mistakes
            order.reverse()
        if values is third:                             # all survive; in this order two would, the largest first none
            order = [1, 0, 3, 2]
        probes.append(([values[i] for i in order], level))
    return [*probes, ([between(0.03, 0.045)], 0.05), ([between(0.055, 0.09)], 0.05), ([0.03125, 0.5], 0.0625)]


PLACES = ("smallest", *(f"{rank} smallest" for rank in ("second", "third", "fourth", "fifth", "sixth", "seventh")))


def _verdict_on(case: Case) -> str:
    """The smallest p-value that is judged wrongly."""
    values, level = case.inputs
    given, expected = case.answer.tolist(), case.expected.tolist()
    p, i = min((values[i], i) for i in range(len(values)) if given[i] != expected[i])
    said, right = (f"{value:.4f}" if value % 1 else str(bool(value)) for value in (given[i], expected[i]))
    place = PLACES[sorted(values).index(p)]
    return (f"of {len(values)} p-values at the level {level}, {p:.4f}, the {place}, gets {said}, expected {right}.")


def _let_through(case: Case) -> list[float]:
    """The p-values above the level that survive."""
    return [p for p, said in zip(case.inputs[0], case.answer.tolist(), strict=True) if said and p > case.inputs[1]]


HOLM = ask(
    "12.3", survivors,
    probes=holm_probes,
    signature="survivors(p_values, a list; level, such as 0.05) -> list of True or False, in the order of p_values",
    mistakes={
        "uncorrected": M(
            lambda p_values, level: [p < level for p in p_values],
            _verdict_on,
            "Each p-value was compared with the level alone. Out of twenty comparisons "
                "with nothing behind them, one survives that test on average."),
        "bonferroni": M(
            lambda p_values, level: [p < level / len(p_values) for p in p_values],
            _verdict_on,
            "Each was compared with level / m. That is Bonferroni's correction, which is "
                "sound too, but keeps fewer: in Holm's, the bar rises after each survivor."),
        "no-stop": M(
            _steps(_holm_bar, stop=False),
            _verdict_on,
            "It is below its own bar, but a smaller p-value was not. Stop at the first that "
                "fails: nothing after it can survive."),
        "step-up": M(
            _from_above(_holm_bar),
            _verdict_on,
            "You began with the largest p-value and kept everything below the first that "
                "passed. That is Hochberg's method, which assumes more about the comparisons. Holm begins with the "
                "smallest and stops at the first that fails."),
        "benjamini-hochberg": M(
            _from_above(lambda level, step, m: level * (step + 1) / m),
            _verdict_on,
            "The bar of rank r was level · r / m. That is Benjamini and Hochberg's "
                "method: it bounds the expected proportion of false ones among the survivors, and lets more through than "
                "Holm."),
        "benjamini-hochberg-at-the-bar": M(
            _from_above(lambda level, step, m: level * (step + 1) / m, at_bar=True),
            _verdict_on,
            "The bar of rank r was level · r / m, and a p-value at its bar passed. That is Benjamini and Hochberg's "
                "method: it bounds the expected proportion of false ones among the survivors, and lets more through than "
                "Holm."),
        "rising-with-stop": M(
            _steps(lambda level, step, m: level * (step + 1) / m),
            _verdict_on,
            "The bar of rank r was level · r / m, stopping at the first that fails. "
                "Holm's bars are level / m, level / (m − 1), …: divide by how many are left."),
        "sidak": M(
            _steps(lambda level, step, m: 1 - (1 - level) ** (1 / (m - step))),
            _verdict_on,
            "Your bars are 1 − (1 − level)^(1/k), for independent comparisons. Comparisons with "
                "one and the same default are not independent; Holm's level / k doesn't need them to be."),
        "bars-reversed": M(
            _steps(lambda level, step, m: level / (step + 1)),
            _verdict_on,
            "The bars go the wrong way: the smallest p-value meets the strictest bar, "
                "level / m, and the last one the level itself."),
        "largest-first": M(
            _steps(_holm_bar, sort=lambda pairs: sorted(pairs, reverse=True)),
            _verdict_on,
            "The largest p-value came first and met the strictest bar. Sort in ascending "
                "order."),
        "given-order": M(
            _steps(_holm_bar, sort=list),
            _verdict_on,
            "The bars were handed out in the order in which the p-values came. Sort first, "
                "or the answer depends on the order of the table's rows."),
        "answer-sorted": M(
            _steps(_holm_bar, put_back=False),
            _verdict_on,
            "The verdicts are right, but in the order of the sorted p-values. Put each "
                "one back at the position its p-value came from."),
        "one-fewer": M(
            _steps(lambda level, step, m: level / max(m - step - 1, 1)),
            _verdict_on,
            "The bars are one step too high: the smallest p-value is compared with level / m, "
                "not level / (m − 1)."),
        "one-more": M(
            _steps(lambda level, step, m: level / (m - step + 1)),
            _verdict_on,
            "The bars are one step too low: the smallest p-value is compared with level / m, "
                "and the last with the level itself."),
        "stopped-late": M(
            _stopped_late,
            _verdict_on,
            "The first p-value above its bar was still let through. It doesn't survive "
                "either: stop before it."),
        "turned-round": M(
            lambda p_values, level: [not kept for kept in survivors(p_values, level)],
            _verdict_on,
            "True and False are swapped. A small p-value survives."),
        "fixed-level": M(
            lambda p_values, level: survivors(p_values, 0.05),
            _verdict_on,
            "The level is an input; you took 0.05 every time."),
        "adjusted": M(
            _adjusted,
            _verdict_on,
            "Those are p-values adjusted by Holm's method. Compare them with the level, and "
                "return True or False."),
    },
    rules=(
        R(lambda case: ((case.answer != 0) & (case.answer != 1)).any(), _verdict_on,
                 "Return True or False for each p-value."),
        R(_let_through, lambda case: f"at the level {case.inputs[1]} your answer lets {max(_let_through(case)):.4f} "
                 "through.", "That is above the level itself. Is each verdict at the position of its p-value?"),
        R(lambda case: any(case.answer[i] and not case.answer[j] and p > q for i, p in enumerate(case.inputs[0])
                 for j, q in enumerate(case.inputs[0])), _verdict_on, "A larger p-value survives while a smaller one "
                 "doesn't. That can't be right."),
        R(lambda case: (case.answer != case.expected).any() and case.inputs[1] != 0.0625, _verdict_on,
                 "Write down the sorted p-values in a row, with the bars below them: level / m, level / (m − 1), …, level. "
                 "Where is the first that is too large?"),
        R(lambda case: (case.answer != case.expected).any(), lambda case: f"{_verdict_on(case)} Its bar is "
                 f"{case.inputs[1] / 2}.", "A p-value that is exactly at its bar isn't below it, so it doesn't survive: "
                 "compare with <, not with <=."),
    ),
    hints=(
        "Sort positions, not values: sorted(range(m), key=lambda i: p_values[i]).",
        "Begin with a list of m False values. In the loop, the step, counted from 0, gives the bar: level / (m − step).",
        "If it isn't below the bar, break. Otherwise set True at the position this p-value came from.",
    ),
)

# ---------------------------------------------------------------- 12.4 the width of equal parameters

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


def parameters_of(vocab_size: int, d_model: int, width: int) -> int:
    with torch.device("meta"):                          # shapes alone: no weights are drawn, however large it is
        return sum(parameter.numel() for parameter in RecurrentClassifier(vocab_size, d_model, width).parameters())


def width_probes(generator: torch.Generator) -> list[tuple]:
    """A budget that a width uses up, two that miss the next width by little, one in the middle; the least there is; and
    ten millions."""
    probes = []
    for words, numbers, width, share in ((60, 7, 9, 0.0), (40, 12, 6, 0.8), (150, 5, 14, 0.99), (30, 4, 20, 0.4)):
        words, numbers, width = (n + int(torch.randint(3, (1,), generator=generator)) for n in (words, numbers, width))
        low, high = (parameters_of(words, numbers, width + more) for more in (0, 1))
        probes.append((words, numbers, low + int(share * (high - low))))
    return [*probes, (5, 1, parameters_of(5, 1, 1)), (50, 10, parameters_of(50, 10, 1700) + 5000)]


def _count(case: Case) -> str:
    words, numbers, budget = case.inputs
    got, right = case.answer.tolist(), case.expected.tolist()
    return (f"{words} words, {numbers} numbers each, at most {budget:,} parameters: you return {got[0]:,.6g} and "
            f"{got[1]:,.10g}, expected {right[0]:,.0f} and {right[1]:,.0f}.")


def _next_fits(case: Case) -> bool:
    """Whether the answer counts rightly, for a width that is one or more too small, and for a small budget."""
    (words, numbers, budget), (width, count) = case.inputs, (int(number) for number in case.answer.tolist())
    return budget < 1e6 and 0 < width < case.expected[0] and count == parameters_of(words, numbers, width)


WIDTH = ask(
    "12.4", equal_width,
    probes=width_probes,
    tolerance=1e-6,
    signature="equal_width(vocab_size, d_model, budget) -> width, number of parameters",
    mistakes={
        "one-bias": M(
            _widest(lambda v, d, w: _counted(v, d, w, biases=1)),
            _count,
            "You counted one bias for each gate. PyTorch's LSTM has two, bias_ih and bias_hh. One "
                "would be enough, but both count."),
        "no-bias": M(
            _widest(lambda v, d, w: _counted(v, d, w, biases=0)),
            _count,
            "The biases of the gates are missing: two for each gate, as long as the state."),
        "one-gate": M(
            _widest(lambda v, d, w: _counted(v, d, w, gates=1)),
            _count,
            "You counted one gate. An LSTM has four of everything: input, forget, cell and output."),
        "three-gates": M(
            _widest(lambda v, d, w: _counted(v, d, w, gates=3)),
            _count,
            "A GRU has three gates; an LSTM has four."),
        "no-state": M(
            _widest(lambda v, d, w: _counted(v, d, w, state=0)),
            _count,
            "The matrices from the state to the gates are missing, width times width for each. "
                "They're what makes the layer recurrent."),
        "no-input": M(
            _widest(lambda v, d, w: _counted(v, d, w, matrix=0)),
            _count,
            "The matrices from the word vectors to the gates are missing, width times d_model for "
                "each."),
        "square": M(
            _widest(lambda v, d, w: _counted(v, d, w, matrix=w * w)),
            _count,
            "The word vectors were taken to be as wide as the state. The input matrix of a gate has "
                "width times d_model numbers."),
        "no-embedding": M(
            _widest(lambda v, d, w: _counted(0, d, w)),
            _count,
            "The word vectors are missing. They are parameters too, and here they make up most "
                "of them."),
        "no-padding": M(
            _widest(lambda v, d, w: _counted(v - 1, d, w)),
            _count,
            "One word was left out, perhaps the padding. Its row stays zero, but it's part of "
                "the parameters, and PyTorch counts it."),
        "no-output": M(
            _widest(lambda v, d, w: _counted(v, d, w, output=0)),
            _count,
            "The Linear layer at the end is missing."),
        "no-output-bias": M(
            _widest(lambda v, d, w: _counted(v, d, w, output=2 * w)),
            _count,
            "The bias of the Linear layer is missing: one for each of the two classes."),
        "one-logit": M(
            _widest(lambda v, d, w: _counted(v, d, w, output=w + 1)),
            _count,
            "You counted one logit. The Linear layer has two, one for each class."),
        "output-from-words": M(
            _widest(lambda v, d, w: _counted(v, d, w, output=2 * d + 2)),
            _count,
            "The Linear layer reads the LSTM's state, `width` numbers, not d_model."),
        "one-too-wide": M(
            _widest(end=lambda w, n, budget, counts: (w + 1, counts(w + 1))),
            _count,
            "The width is one too large: it's the first that exceeds the budget. The largest "
                "that fits is one less."),
        "nearest": M(
            _widest(end=_nearer),
            _count,
            "You took the width that comes closest to the budget. In one of the cases that exceeds "
                "it; the exercise asks for the largest that fits."),
        "below": M(
            _widest(fits=lambda n, budget: n < budget),
            _count,
            "A width that uses up the budget exactly still fits: 'at most' doesn't mean 'less "
                "than'."),
        "budget-returned": M(
            _widest(end=lambda w, n, budget, counts: (w, budget)),
            _count,
            "The width is right; the second number must be the number of parameters at this "
                "width, not the budget."),
        "swapped": M(
            _widest(end=lambda w, n, budget, counts: (n, w)),
            _count,
            "The two are swapped: the width comes first."),
    },
    rules=(
        R(lambda case: case.answer[0] != case.answer[0].round(), _count, "A width is a whole number; round down."),
        R(lambda case: case.answer[1] > case.inputs[2], _count, "By your own count, that is more than the budget."),
        R(_next_fits, _count, "Your count for this width is right, but the next width fits as well: at most means "
                 "<=, also where a width uses up the budget exactly. Does the search stop too early, or compare with <?"),
        R(lambda case: (case.answer != case.expected).any() and case.inputs[2] < 1e6, _count,
                 "Compare your count for this width with sum(p.numel() for p in nn.LSTM(d_model, width).parameters()), then "
                 "add the word vectors and the Linear layer."),
        R(lambda case: (case.answer != case.expected).any(), _count, "Small budgets are right; for this large one "
                 "the width is not. Does your search end too early, at the end of a range?"),
    ),
    hints=(
        "Three parts: the word vectors, the LSTM, the Linear layer. Write down how many parameters each has for a given "
        "width.",
        "One gate: width · d_model + width · width + 2 · width. There are four.",
        "Use a loop: increase the width by one as long as the next one still fits.",
    ),
)

# ---------------------------------------------------------------- 12.5 five differences on a napkin

def paired(first, second):
    differences = [a - b for a, b in zip(first, second)]
    n = len(differences)
    mean = sum(differences) / n
    variance = sum((d - mean) ** 2 for d in differences) / (n - 1)         # the mean came from the same n numbers
    error = math.sqrt(variance / n)                                        # of the mean, not of one difference
    half = stats.t.ppf(0.975, n - 1) * error
    p = 2 * stats.t.sf(abs(mean) / error, n - 1)                           # both tails
    return mean, half, p


def _unpaired(first, second):
    """Each model's own spread, the two added (Welch 1947)."""
    parts = [(statistics.variance(side) / len(side), len(side) - 1) for side in (first, second)]
    total = sum(part for part, _ in parts)
    freedom = total**2 / sum(part**2 / degrees for part, degrees in parts)
    mean, error = statistics.fmean(first) - statistics.fmean(second), math.sqrt(total)
    return mean, stats.t.ppf(0.975, freedom) * error, 2 * stats.t.sf(abs(mean) / error, freedom)


def _apart(degrees):
    """Each model's own spread, the two added, with so many degrees of freedom."""
    def answer(first, second):
        n = len(first)
        error = math.sqrt(sum(statistics.variance(side) for side in (first, second)) / n)
        mean = statistics.fmean(first) - statistics.fmean(second)
        return mean, stats.t.ppf(0.975, degrees(n)) * error, 2 * stats.t.sf(abs(mean) / error, degrees(n))
    return answer


def _end(how):
    return lambda first, second: how(*paired(first, second))


def paired_probes(generator: torch.Generator) -> list[tuple]:
    """Five pairs, six, then four: parts that are hard for both models; the second model is ahead in the middle one."""
    probes = []
    for n, lead in ((5, 0.02), (6, -0.015), (4, 0.012)):
        hard = 0.07 * torch.rand(n, generator=generator, dtype=torch.float64)
        moved = lead + 0.03 * (torch.rand(n, generator=generator, dtype=torch.float64) - 0.5)
        moved[0] = lead + (0.011 if lead > 0 else -0.011)                   # so that no two differences are alike
        second = 0.86 - hard
        probes.append(((second + moved).tolist(), second.tolist()))
    return probes


def _mean_said(case: Case) -> str:
    return f"your mean is {100 * case.answer[0]:.3f} points, expected {100 * case.expected[0]:.3f}."


def _half_said(case: Case) -> str:
    return f"half your interval is {100 * case.answer[1]:.3f} points, expected {100 * case.expected[1]:.3f}."


def _p_said(case: Case) -> str:
    return f"your p is {case.answer[2]:.4f}, expected {case.expected[2]:.4f}."


def _three(case: Case) -> str:
    return "you return " + ", ".join(f"{number:.4f}" for number in case.answer.tolist()) + "."


NAPKIN = ask(
    "12.5", paired, probes=paired_probes, tolerance=1e-5,
    forbidden=("scipy.stats.ttest_rel", "scipy.stats.ttest_1samp", "course_utils.results.difference"),
    signature="paired(first, second, lists of accuracies, pair by pair) -> mean difference, half of its 95 % interval, p",
    not_finite={"NaN": "A root of a negative number gives that, and a division of 0 by 0. The squared deviations are never "
                "negative."},
    mistakes={
        "unpaired": M(_unpaired, _half_said, "You took the spread of each list and added the two. What makes a part hard is "
                      "then counted twice, where it should cancel: first subtract, pair by pair, then take one variance."),
        "unpaired-pooled": M(_apart(lambda n: 2 * n - 2), _half_said, "You took the spread of each list and added the two, "
                             "with 2n − 2 degrees of freedom: that's for lists without pairs. What makes a part hard is "
                             "counted twice there, where it should cancel: first subtract, pair by pair, then take one "
                             "variance."),
        "unpaired-plain": M(_apart(lambda n: n - 1), _half_said, "You took the spread of each list and added the two. What "
                            "makes a part hard is then counted twice, where it should cancel: first subtract, pair by "
                            "pair, then take one variance."),
        "spread-of-one": M({"math.sqrt(variance / n)": "math.sqrt(variance)"}, _half_said, "This is the standard deviation: "
                           "how far *one* difference strays. The mean of n strays less: divide the variance by n."),
        "root-twice": M({"math.sqrt(variance / n)": "math.sqrt(variance / n) / math.sqrt(n)"}, _half_said, "You divided by "
                        "√n twice. The standard error is the standard deviation divided by √n, once."),
        "divided-by-n": M({"sum((d - mean) ** 2 for d in differences) / (n - 1)":
                           "sum((d - mean) ** 2 for d in differences) / n"}, _half_said, "The squared deviations were "
                                     "divided by n. Their mean comes from "
                          "the same n numbers, so divide by n − 1 (NumPy's var and std want ddof=1 for that)."),
        "z": M({"stats.t.ppf(0.975, n - 1)": "stats.norm.ppf(0.975)", "stats.t.sf(abs(mean) / error, n - 1)":
                "stats.norm.sf(abs(mean) / error)"}, _half_said, "You took the normal distribution, whose factor is "
                          "1.96. It "
               "is right if the spread is known. You estimate it from a few numbers: stats.t, with n − 1 degrees of "
                         "freedom."),
        "z-half": M({"stats.t.ppf(0.975, n - 1)": "stats.norm.ppf(0.975)"}, _half_said, "p is right. The half-width uses "
                    "1.96; its factor comes from the same t distribution: stats.t.ppf(0.975, n - 1)."),
        "z-p": M({"stats.t.sf(abs(mean) / error, n - 1)": "stats.norm.sf(abs(mean) / error)"}, _p_said, "The half-width is "
                 "right. p comes from the normal distribution; take the same t as for the factor."),
        "n-degrees": M({"stats.t.ppf(0.975, n - 1)": "stats.t.ppf(0.975, n)", "stats.t.sf(abs(mean) / error, n - 1)":
                        "stats.t.sf(abs(mean) / error, n)"}, _half_said, "Your t has n degrees of freedom. One is used "
                                  "up by "
                       "the mean: n − 1."),
        "two-fewer": M({"stats.t.ppf(0.975, n - 1)": "stats.t.ppf(0.975, n - 2)", "stats.t.sf(abs(mean) / error, n - 1)":
                        "stats.t.sf(abs(mean) / error, n - 2)"}, _half_said, "Your t has n − 2 degrees of freedom. There is "
                       "one mean here, that of the differences: n − 1."),
        "pooled-degrees": M({"stats.t.ppf(0.975, n - 1)": "stats.t.ppf(0.975, 2 * n - 2)", "stats.t.sf(abs(mean) / error, "
                             "n - 1)": "stats.t.sf(abs(mean) / error, 2 * n - 2)"}, _half_said, "2n − 2 degrees of freedom "
                            "belong to two separate lists. Of n differences there are n − 1."),
        "ninety": M({"0.975": "0.95"}, _half_said, "ppf(0.95) leaves 5 % in *each* tail: that's a 90 % interval. Half of "
                    "the 5 % on either side makes ppf(0.975)."),
        "one-sided": M({"2 * stats.t.sf(abs(mean) / error, n - 1)": "stats.t.sf(abs(mean) / error, n - 1)"}, _p_said,
                       "That's the probability of one tail. A difference as large in the other direction would have "
                       "surprised you as well: twice that."),
        "one-sided-signed": M({"2 * stats.t.sf(abs(mean) / error, n - 1)": "stats.t.sf(mean / error, n - 1)"}, _p_said,
                              "That's the probability of the upper tail alone. Take the difference without its sign, and "
                              "both tails."),
        "signed": M({"abs(mean)": "mean"}, _p_said, "A negative mean needs abs(): else the tail is the wrong one, and twice "
                    "it is more than 1."),
        "other-tail": M({"2 * stats.t.sf(abs(mean) / error, n - 1)": "2 * stats.t.cdf(abs(mean) / error, n - 1)"}, _p_said,
                        "cdf is the probability of a *smaller* t. The tail is 1 − cdf, or sf."),
        "certainty": M({"2 * stats.t.sf(abs(mean) / error, n - 1)": "1 - 2 * stats.t.sf(abs(mean) / error, n - 1)"}, _p_said,
                       "That's 1 − p. p is small where the difference would be surprising."),
        "no-factor": M({"stats.t.ppf(0.975, n - 1) * error": "error"}, _half_said, "This is one standard error. Multiply by "
                       "t's factor, stats.t.ppf(0.975, n - 1)."),
        "no-root": M({"math.sqrt(variance / n)": "variance / n"}, _half_said, "The root is missing: variance / n is the "
                     "square of the standard error."),
        "whole-width": M({"stats.t.ppf(0.975, n - 1) * error": "2 * stats.t.ppf(0.975, n - 1) * error"}, _half_said,
                         "This is the whole width. Return half of it, the number after ±."),
        "turned-round": M({"a - b": "b - a"}, _mean_said, "The sign is reversed: first minus second."),
        "without-sign": M({"a - b": "abs(a - b)"}, _mean_said, "The differences lost their signs. Where the second is "
                  "ahead, "
                          "the difference is negative."),
        "summed": M(lambda first, second: (sum(first) - sum(second), *paired(first, second)[1:]), _mean_said, "The "
                    "differences were added up. Divide by their number."),
        "percent": M(_end(lambda mean, half, p: (100 * mean, 100 * half, p)), _three, "The accuracies are fractions; leave "
                     "the results like that."),
        "two-ends": M(_end(lambda mean, half, p: (mean - half, mean + half, p)), _three, "Those are the ends of the "
                      "interval. Return its middle, half of its width, and p."),
        "p-before-half": M(_end(lambda mean, half, p: (mean, p, half)), _three, "The last two are swapped: first half "
                  "of the "
                           "interval, then p."),
    },
    rules=(
        R(lambda case: abs(case.answer[0] - case.expected[0]) > 1e-4, _mean_said, "Subtract pair by pair, add up, divide "
          "by their number."),
        R(lambda case: not 0 <= case.answer[2] <= 1, _p_said, "A probability is between 0 and 1."),
        R(lambda case: abs(case.answer[1] - case.expected[1]) > 1e-5, _half_said, "The mean is right. Variance with n − 1, "
          "divided by n, its root, times stats.t.ppf(0.975, n - 1): which step differs?"),
        R(lambda case: abs(case.answer[2] - case.expected[2]) > 1e-5, _p_said, "Mean and half-width are right. p is twice "
          "the tail beyond |mean| / standard error: 2 * stats.t.sf(…, n - 1)."),
    ),
    hints=(
        "First a list of differences. All that follows uses this list alone.",
        "variance = sum((d - mean) ** 2 for d in differences) / (n - 1), and the standard error is math.sqrt(variance / n).",
        "half = stats.t.ppf(0.975, n - 1) * error, and p = 2 * stats.t.sf(abs(mean) / error, n - 1).",
    ),
)

# ---------------------------------------------------------------- 12.6 which sentence a table allows

SENTENCES = ("better", "worse", "better?", "worse?", "small", "open")


def allowed(rows, small):
    kept = survivors([p for _, _, p in rows], 0.05)
    said = []
    for (difference, half, _), survives in zip(rows, kept):
        word = "better" if difference > 0 else "worse"
        if abs(difference) > half:                                         # the interval excludes zero
            said.append(word if survives else word + "?")
        elif abs(difference) + half < small:                               # all of it is within ± small
            said.append("small")
        else:
            said.append("open")
    return said


def allowed_probes(generator: torch.Generator) -> list[tuple]:
    """Tables in points, each row from a p, degrees of freedom and a sign, with p-values at the places where rules differ.

    First eight rows, then seven, then one, whose interval excludes zero, then six with a `small` that's small.
    """
    def between(low: float, high: float) -> float:
        return low + (high - low) * (0.2 + 0.6 * torch.rand(1, generator=generator).item())

    def row(low: float, high: float, sign: int, half: tuple[float, float]) -> tuple:
        p, degrees, width = between(low, high), between(5, 20), between(*half)
        found = sign * width * stats.t.isf(p / 2, degrees) / stats.t.ppf(0.975, degrees)
        return round(found, 4), round(width, 4), round(p, 6)

    first = [row(1e-4, 6e-4, -1, (1.5, 4)),                                 # survives
             row(7e-4, 2e-3, 1, (0.2, 0.25)),                               # survives, and is small
             row(0.0064, 0.0071, 1, (2, 4)),                                # below 0.05 / 6, above 0.05 / 8
             row(0.0101, 0.0109, 1, (3, 5)),                                # fails: 0.0100 is its bar
             row(0.0111, 0.0123, -1, (2, 4)),                               # below its own bar, after one that failed
             row(0.2, 0.6, -1, (0.3, 0.5)),                                 # small: all of it within one point
             row(0.1, 0.13, 1, (0.75, 0.95)),                               # its half is below a point, its end isn't
             row(0.85, 0.95, 1, (4, 7))]                                    # open, and nearly zero
    second = [row(0.03, 0.045, -1, (1, 3)), row(0.3, 0.5, -1, (0.25, 0.4)), row(0.2, 0.4, -1, (3, 6)),
              row(0.06, 0.09, 1, (2, 4)), row(0.0005, 0.002, -1, (2, 3)),
              row(0.03, 0.045, 1, (2, 4)), row(0.1, 0.13, -1, (0.6, 0.75))]
    probes = []
    alone = [row(0.02, 0.04, 1, (1, 2))]
    third = [row(0.0385, 0.0485, -1, (1, 3)), row(0.0095, 0.0225, 1, (2, 4)), row(0.3, 0.5, -1, (0.02, 0.05)),
             row(0.1, 0.13, 1, (0.1, 0.14)), row(0.2, 0.4, 1, (1, 2)), row(0.0005, 0.002, -1, (2, 3))]
    # in the third, 'small' itself as Holm's level lets one row through and stops the next
    for rows, small in ((first, 1.0), (second, 0.8), (alone, 1.0), (third, 0.15)):
        order = torch.randperm(len(rows), generator=generator).tolist()
        probes.append(([rows[i] for i in order], small))
    return probes


def observe_allowed(function, rows, small):
    """The sentences by their numbers in SENTENCES."""
    output = function([tuple(row) for row in rows], small)
    if output is None:
        return None
    said = items_of(output, "a list of words, one for each row")
    for word in said:
        if not isinstance(word, str) or str(word).strip() not in SENTENCES:
            raise TypeError(f"expected one of {', '.join(map(repr, SENTENCES))} for each row, got {what(word)}")
    return [float(SENTENCES.index(str(word).strip())) for word in said]


def _row_said(case: Case) -> str:
    """The first row that gets another sentence than it allows."""
    rows, small = case.inputs
    i = next(i for i in range(len(rows)) if case.answer[i] != case.expected[i])
    difference, half, p = rows[i]
    got, right = (SENTENCES[int(numbers[i])] for numbers in (case.answer, case.expected))
    return (f"in a table of {len(rows)}, {difference:+.2f} ± {half:.2f} with p = {p:.4f} gets {got!r}, expected {right!r} "
            f"(small: {small:g}).")


def _reads(zero=lambda d, h, p: abs(d) > h, little=lambda d, h, small: abs(d) + h < small, keep=survivors, small_first=False,
           names=lambda word, survives: word if survives else word + "?", better=lambda d: d > 0):
    """`allowed` with one thing changed: when zero is excluded, what is small, who survives, what is asked first."""
    def answer(rows, small):
        said = []
        for (d, h, p), survives in zip(rows, keep([p for _, _, p in rows], 0.05)):
            tiny = little(d, h, small)
            if small_first and tiny:
                said.append("small")
            elif zero(d, h, p):
                said.append(names("better" if better(d) else "worse", survives))
            else:
                said.append("small" if tiny else "open")
        return said
    return answer


def _small_as_level(rows, small):
    return _reads(keep=lambda p_values, level: survivors(p_values, small))(rows, small)


def _only_those_below(p_values, level):
    """Holm over the p-values below the level, as if the others had never been asked for."""
    below = [p for p in p_values if p < level]
    kept = dict(zip(below, survivors(below, level)))
    return [kept.get(p, False) for p in p_values]


ALLOWED = ask(
    "12.6", allowed, probes=allowed_probes, observe=observe_allowed,
    signature="allowed(rows, a list of (difference, half, p) in points; small, in points) -> a list with one of 'better', "
    "'worse', 'better?', 'worse?', 'small', 'open' for each row",
    mistakes={
        "sign-alone": M(_reads(zero=lambda d, h, p: True), _row_said, "You went by the sign. Where the interval contains "
                        "zero, the sign itself is open."),
        "uncorrected": M(_reads(names=lambda word, survives: word), _row_said, "The interval excludes zero, but the table "
                         "has many rows, and this one doesn't survive Holm's correction over all of them."),
        "small-as-level": M(_small_as_level, _row_said, "You handed `small` to survivors as its level. Those are two "
                            "things: `small` is in points, and the level is 0.05."),
        "doubt-is-open": M(_reads(names=lambda word, survives: word if survives else "open"), _row_said, "Its interval does "
                           "exclude zero. That's more than 'open', and less than 'better' or 'worse': it gets the question "
                           "mark, and deserves new seeds."),
        "always-doubt": M(_reads(names=lambda word, survives: word + "?"), _row_said, "It survives the correction: no "
                          "question mark."),
        "doubt-exchanged": M(_reads(names=lambda word, survives: word + "?" if survives else word), _row_said, "The "
                  "question "
                             "mark is for rows that *don't* survive the correction."),
        "bonferroni": M(_reads(keep=lambda values, level: [p < level / len(values) for p in values]), _row_said, "You "
                        "compared each p with 0.05 / rows (Bonferroni). Holm's bar rises after each survivor: use "
                        "survivors."),
        "no-stop": M(_reads(keep=_steps(_holm_bar, stop=False)), _row_said, "It's below its own bar, but a smaller p failed "
                     "before it, and there Holm stops."),
        "counted-after-looking": M(_reads(keep=_only_those_below), _row_said, "You corrected for the rows whose interval "
                                   "excludes zero. But you looked at all the rows: all of them count."),
        "no-difference": M(_reads(little=lambda d, h, small: True), _row_said, "Zero is in the interval, and so are "
                           "differences that matter. 'small' is allowed only if *all* of the interval is within ± small."),
        "never-small": M(_reads(little=lambda d, h, small: False), _row_said, "All of its interval is within ± small. "
                         "That's a finding, and a better one than 'open'."),
        "small-by-difference": M(_reads(little=lambda d, h, small: abs(d) < small), _row_said, "You compared the difference "
                                 "with `small`. The interval has ends; both must be within ± small."),
        "small-by-half": M(_reads(little=lambda d, h, small: h < small), _row_said, "You compared the half-width with "
                           "`small`. The interval doesn't begin at zero: its far end is |difference| + half."),
        "small-by-near-end": M(_reads(little=lambda d, h, small: d + h < small), _row_said, "You looked at the upper end "
                               "alone. The lower one must be within ± small, too."),
        "small-first": M(_reads(small_first=True), _row_said, "It's small, but its interval excludes zero: the sign is "
                         "known, and that's asked first."),
        "turned-round": M(_reads(better=lambda d: d < 0), _row_said, "A difference above zero is in the row's favour: "
                          "'better'."),
        "interval-turned-round": M(_reads(zero=lambda d, h, p: abs(d) <= h), _row_said, "The interval excludes zero where "
                                   "|difference| is *larger* than the half-width."),
    },
    rules=(
        R(lambda case: case.answer.shape != case.expected.shape, lambda case: f"you give {case.answer.numel()} words for "
          f"{len(case.inputs[0])} rows.", "One word for each row, in their order."),
        R(lambda case: any((got >= 4) != (right >= 4) for got, right in zip(case.answer, case.expected)), _row_said, "First "
          "question: does the interval exclude zero, |difference| > half?"),
        R(lambda case: any(got != right and right >= 4 for got, right in zip(case.answer, case.expected)), _row_said, "Zero "
          "is in the interval. 'small' needs |difference| + half < small."),
        R(lambda case: (case.answer != case.expected).any(), _row_said, "The interval excludes zero. Its sign gives the "
          "word; survivors of *all* the table's p-values say whether a question mark follows."),
    ),
    hints=(
        "Three questions to each row, in this order: is zero excluded? Does it survive? If zero isn't excluded, how far do "
        "the interval's ends reach?",
        "kept = survivors([p for _, _, p in rows], 0.05), once, for the whole table.",
        "if abs(difference) > half: 'better' or 'worse', with '?' unless kept. elif abs(difference) + half < small: "
                  "'small'. "
        "else: 'open'.",
    ),
)

# ---------------------------------------------------------------- 12.7 twelve runs

BUDGET = 12


def tune(run, rates, widths, seeds):
    tried = {}

    def ask_for(pair, seed):
        tried.setdefault(pair, []).append(run(*pair, seeds[seed]))

    def best(how_many):
        """The pairs with the highest mean, of those with the most runs."""
        most = max(map(len, tried.values()))
        finalists = [pair for pair in tried if len(tried[pair]) == most]
        return sorted(finalists, key=lambda pair: sum(tried[pair]) / most, reverse=True)[:how_many]

    middle = widths[len(widths) // 2]
    for rate in rates:
        ask_for((rate, middle), 0)                                         # five runs: the rate
    rate = best(1)[0][0]
    for width in widths:
        if width != middle:
            ask_for((rate, width), 0)                                      # two: the width, at that rate
    for pair in best(5):
        ask_for(pair, 1)                                                   # five: a second seed for the best five
    return best(1)[0]


def tune_probes(generator: torch.Generator) -> list[tuple]:
    """Validation accuracies (rate, width, seed) of made-up grids, five rates and three widths, two seeds each.

    One lucky seed lifts many a poor pair above the best: its mean is low all the same. In the last two grids it's the same
    seed everywhere: whoever looks again at the best few sees them fall below those that had a single, lucky run.
    """
    probes = []
    for best_rate, best_width, always in ((2, 1, None), (1, 2, None), (3, 0, None), (4, 0, 0), (0, 0, 1)):
        rate, width = torch.arange(5.0)[:, None], torch.arange(3.0)
        hill = 0.85 - 0.02 * (rate - best_rate).abs() - 0.01 * (width - best_width).abs()
        noise = 0.05 * (torch.rand(5, 3, 2, generator=generator) - 0.5)
        lucky = torch.randint(2, (5, 3, 1), generator=generator) == torch.arange(2)    # one seed of each pair
        lucky = lucky if always is None else (torch.arange(2) == always).expand(5, 3, 2)
        spread = torch.where(lucky, 0.08, -0.1) * (hill < hill.max() - 0.015)[..., None]  # of those that aren't the best
        probes.append(((hill[..., None] + noise + spread).double().numpy(),
                       [0.0015, 0.003, 0.006, 0.012, 0.024], [16, 32, 64]))
    return probes


def observe_tune(function, table, rates, widths):
    """Whether the budget was spent and kept to, both settings varied, the choice tried with the most seeds, and unbeaten.

    All of these are zero for any right way to spend the runs.
    """
    calls = []

    def run(rate, width, seed):
        if len(calls) >= 200:
            raise TypeError("expected at most twelve runs, got two hundred: your loop doesn't end")
        try:
            place = rates.index(rate), widths.index(width), int(seed)
            found = float(table[place])
        except (ValueError, IndexError, TypeError):
            raise TypeError(f"expected a rate of {rates}, a width of {widths} and a seed of 0 or 1, got run({rate!r}, "
                            f"{width!r}, {seed!r})") from None
        calls.append(place)
        return found

    output = function(run, list(rates), list(widths), [0, 1])
    if output is None:
        return None
    rate, width = pair_of(output, "the pair that you chose, (rate, width)")
    if rate not in rates or width not in widths:
        raise TypeError(f"expected a rate of {rates} and a width of {widths}, got {what(rate)} and {what(width)}")
    chosen, runs = (rates.index(rate), widths.index(width)), {}
    for place in set(calls):
        runs.setdefault(place[:2], []).append(float(table[place]))
    means = {pair: sum(found) / len(found) for pair, found in runs.items()}
    most = max(map(len, runs.values()), default=0)
    finalists = [pair for pair in runs if len(runs[pair]) == most]
    beaten = chosen in runs and max(0.0, max(means[pair] for pair in finalists) - means[chosen])
    return {"over": max(0, len(calls) - BUDGET), "left": max(0, BUDGET - len(calls)),
            "again": len(calls) - len(set(calls)), "settings": 2 - sum(len({pair[i] for pair in runs}) > 1 for i in (0, 1)),
            "untried": float(chosen not in runs), "fewer": float(most - len(runs[chosen])) if chosen in runs else 0.0,
            "highest run": float(beaten > 0 and max(runs[chosen]) == max(max(found) for found in runs.values())),
            "lowest": float(beaten > 0 and means[chosen] == min(means[pair] for pair in finalists)),
            "beaten by": float(beaten)}


def _every(choose=lambda tried: max(tried, key=lambda pair: sum(tried[pair]) / len(tried[pair])), pairs=None, seeds_used=2):
    """Some pairs with the same seeds for each; `choose` gets {pair: accuracies}."""
    def answer(run, rates, widths, seeds):
        chosen = pairs(rates, widths) if pairs else [(rate, width) for rate in rates[1:4] for width in widths[:2]]
        tried = {pair: [run(*pair, seed) for seed in seeds[:seeds_used]] for pair in chosen}
        return choose(tried)
    return answer


def _same_seed(run, rates, widths, seeds):
    tried = {(rate, width): [run(rate, width, 0) for _ in seeds] for rate in rates[1:4] for width in widths[:2]}
    return max(tried, key=lambda pair: sum(tried[pair]))


def _narrowed(run, rates, widths, seeds):
    """Six pairs with both seeds; the choice is the pair with the highest accuracy of a single run."""
    tried = {}
    for rate, width in [(rate, widths[1]) for rate in rates] + [(rates[0], widths[0])]:
        tried[rate, width] = [run(rate, width, seed) for seed in seeds]
    return max(tried, key=lambda pair: max(tried[pair]))


def _one_seed_of_two(run, rates, widths, seeds):
    """Eight pairs once, four of the better ones again; the choice is the highest of those that were tried once."""
    tried = {(rate, width): [run(rate, width, seeds[0])] for rate in rates[:4] for width in widths[1:]}
    for pair in sorted(tried, key=lambda pair: tried[pair][0], reverse=True)[1:5]:
        tried[pair].append(run(*pair, seeds[1]))
    return max((pair for pair in tried if len(tried[pair]) == 1), key=lambda pair: tried[pair][0])


def _single_beats_mean(run, rates, widths, seeds):
    """Nine pairs once, the best three again; the choice has the highest mean of all nine, single runs among them."""
    tried = {(rate, width): [run(rate, width, seeds[0])] for rate in rates[:3] for width in widths}
    for pair in sorted(tried, key=lambda pair: tried[pair][0], reverse=True)[:3]:
        tried[pair].append(run(*pair, seeds[1]))
    return max(tried, key=lambda pair: sum(tried[pair]) / len(tried[pair]))


def _spent(case: Case) -> str:
    return f"you called run {BUDGET + case.over - case.left:.0f} times."


def _beaten(case: Case) -> str:
    return (f"of the pairs that you tried with the most seeds, one is {100 * case.got['beaten by']:.2f} points ahead of the "
            "one you chose, on average.")


def _too_few(case: Case) -> str:
    return f"you chose a pair with {case.fewer:.0f} run{'s' if case.fewer > 1 else ''} fewer than others that you tried."


TUNE = ask(
    "12.7", tune, probes=tune_probes, observe=observe_tune,
    signature="tune(run, rates, widths, seeds) -> (rate, width); run(rate, width, seed) gives the validation accuracy "
              "of one "
    "training, and may be called twelve times",
    mistakes={
        "all-pairs": M(_every(pairs=lambda rates, widths: [(rate, width) for rate in rates for width in widths],
                              seeds_used=1), _spent, "Every pair once costs fifteen. With twelve you have to leave some "
                       "out."),
        "all-pairs-all-seeds": M(_every(pairs=lambda rates, widths: [(rate, width) for rate in rates for width in widths]),
                                 _spent, "That's the whole grid with all seeds. With twelve you have to leave most of it "
                                 "out: begin coarse."),
        "best-run": M(_narrowed, _beaten, "You chose by the best single run. The highest of several is partly the luckiest; "
                      "compare the means of the pairs, which more seeds make surer."),
        "lowest": M(_every(lambda tried: min(tried, key=lambda pair: sum(tried[pair]) / len(tried[pair]))), _beaten, "You "
                    "took the lowest. An accuracy isn't a loss: high is good."),
        "fewer-seeds": M(_one_seed_of_two, _too_few, "A single run may have been lucky. Choose among the pairs that you "
                         "tried with the most seeds."),
        "single-beats-mean": M(_single_beats_mean, _too_few, "You took the highest mean of all pairs that you tried. But "
                               "a mean of one run is just that run, perhaps a lucky one, while those that you looked at "
                               "again have lost their luck. Choose among the pairs with the most seeds."),
        "last-tried": M(_every(lambda tried: [*tried][-1]), _beaten, "You returned the pair that you tried last."),
        "first-tried": M(_every(lambda tried: [*tried][0]), _beaten, "You returned the pair that you tried first."),
        "rates-alone": M(_every(pairs=lambda rates, widths: [(rate, widths[1]) for rate in rates]),
                         lambda case: "you tried several rates and one width.", "Both settings are to be tuned: the best "
                         "rate of one width needn't be that of another."),
        "same-seed": M(_same_seed, lambda case: f"{case.again:.0f} of your runs repeat an earlier one.", "The same pair "
                  "with "
                       "the same seed gives the same number, and is charged again. Hand over another of `seeds`."),
    },
    rules=(
        R(lambda case: case.over > 0, _spent, "Twelve are paid for. Count: how many pairs, times how many seeds?"),
        R(lambda case: case.untried > 0, lambda case: "the pair that you return was never run.", "A guess between the "
                  "points "
          "of the grid may be good, but nothing that you saw says so."),
        R(lambda case: case.settings > 0, lambda case: "one of the two settings had a single value in all your runs.",
          "Both are to be tuned: at least two rates and two widths."),
        R(lambda case: case.again > 0, lambda case: f"{case.again:.0f} of your runs repeat an earlier one.", "The same pair "
          "with the same seed gives the same number, and is charged again."),
        R(lambda case: case.fewer > 0, _too_few, "A single run may have been lucky. Choose among the pairs that you tried "
          "with the most seeds."),
        R(lambda case: case.got["lowest"] > 0, _beaten, "Yours is the lowest of them. An accuracy isn't a loss: high is "
          "good."),
        R(lambda case: case.got["highest run"] > 0, _beaten, "Yours has the highest single run. The highest of several is "
          "partly the luckiest; compare the means of the pairs."),
        R(lambda case: case.got["beaten by"] > 1e-6, _beaten, "Choose by the mean of a pair's runs, among the pairs "
                  "with the "
          "most seeds."),
        R(lambda case: case.left > 0, _spent, "Some of the twelve are left. Spend them on further seeds of the best pairs."),
    ),
    hints=(
        "Begin coarse: all rates at the middle width, one seed each, is five runs.",
        "Keep a dictionary, {(rate, width): [accuracies]}, and add to it with each run. Then a second seed for the best "
                  "few.",
        "At the end: among the pairs with the most seeds, max(…, key=lambda pair: sum(tried[pair]) / len(tried[pair])). "
        "The simplest that counts: three rates, two widths, two seeds.",
    ),
)

# ---------------------------------------------------------------- the questions

QUIZ = """
- name: five-pairs
  taught: "12"
  question: Five pairs of runs differ by +1, +3, −1, +4 and +3 points. Their mean is 2 and their standard deviation 2.
    How far does the 95 per cent interval reach to either side?
  options:
    - text: 2 points, the standard deviation.
      remark: That's how far one difference strays from the mean. The mean of five strays less.
    - text: About 1.8 points, 1.96 · 2 / √5.
      remark: 1.96 is for a spread that's known. This one comes from five numbers, so the factor is t's, 2.78.
    - text: About 2.5 points, 2.78 · 2 / √5.
      right: true
      remark: So zero is inside, although four of the five differences are positive (section 1).
- name: thirty-rows
  taught: "12"
  question: Thirty changes are compared with the default, each with a 95 per cent interval. Suppose that none of them
    changes anything. How many intervals exclude zero all the same?
  options:
    - text: None, because that's what the intervals are for.
      remark: Each interval misses the truth 5 times in 100.
    - text: One or two on average.
      right: true
      remark: 30 · 0.05 = 1.5. So one row that stands out among thirty isn't a discovery yet; Holm's method, or new
        seeds, must confirm it.
    - text: About thirty, because no two models are the same.
      remark: Their seeds differ. The interval asks whether the difference is larger than seeds and reviews alone
        would produce.
- name: minus-four-tenths
  taught: "12"
  question: "A row of the table says: −0.4 ± 0.9 points against the default. What can you conclude?"
  options:
    - text: An effect, if there is one, is probably between −1.3 and +0.5 points.
      right: true
      remark: "An interval says what is excluded: here, any effect larger than about a point. Which sign the effect
        has is open."
    - text: The change has no effect, because the interval contains zero.
      remark: A loss of 1.3 points lies in the interval, and so does a gain of 0.5. Not seeing an effect doesn't show
        that there is none.
    - text: The change costs 0.4 points.
      remark: That is the best guess, but zero lies in the interval too.
- name: intervals-that-overlap
  taught: "12"
  question: One model has 88.0 ± 1.2 per cent, another 89.3 ± 1.2, on the same reviews. Their intervals overlap. What
    about the difference?
  options:
    - text: It isn't shown, because the intervals overlap.
      remark: Both intervals include the luck of which reviews were drawn. Both models share that luck, so it cancels
        in the difference.
    - text: It is shown, because 1.3 is more than 1.2.
      remark: Neither of these is the width of the difference's interval. The difference has its own.
    - text: It needs its own interval, computed review by review with all the seeds.
      right: true
      remark: It may well be narrower than 1.3, because a hard review is hard for both models. Or it may not, if the
        seeds differ a lot.
- name: same-seed-elsewhere
  taught: "12"
  question: You train the course's recipe with seed 4 on your computer and get 91.4 per cent. A friend gets 86.2 with
    the same code and the same seed. What's the likeliest reason?
  options:
    - text: One of you changed the recipe.
      remark: Perhaps, but nobody has to. The course's own two files differ by as much (section 2).
    - text: Your processors round differently, and sixteen epochs make a small difference large.
      right: true
      remark: A seed fixes a run on one kind of processor. On another it's another draw.
    - text: One of the seeds was not set.
      remark: Then two runs on one computer would differ as well. Try that first, and then look at the processors.
- name: width-at-one-rate
  taught: "12"
  question: Suppose a wider model loses 5 ± 2 points at the default's learning rate. What follows?
  options:
    - text: With these settings it's worse. With its own learning rate it may not be.
      right: true
      remark: The wide model would need a search of its own, with validation choosing (section 6).
    - text: Wide models are worse on these reviews, because the interval excludes zero.
      remark: This one was worse, at a rate that was tuned for a narrow model. Wide models usually want a smaller
        rate.
    - text: It has too many parameters for so few reviews, and overfits.
      remark: Perhaps. Then its training loss is low and its validation accuracy isn't. With too large a rate the
        training loss stays high. Look at both.
- name: best-of-twelve-runs
  taught: "12"
  question: You train twelve settings with one seed each and take the one with the highest validation accuracy. You
    train it again with a new seed. What do you expect of its validation accuracy?
  options:
    - text: About the same, since nothing has changed.
      remark: The first run was picked for being high, and part of that was its seed.
    - text: A lower one.
      right: true
      remark: By several points in section 6, where seeds stray far. The new seed wasn't picked for anything.
    - text: A higher one, since the settings are good.
      remark: They may be good. But the run that was picked had luck as well, and luck doesn't come back.
- name: swapped-rows
  taught: "11"
  question: Somebody swaps the two rows of a trained model's output, so that nearly every verdict is wrong. Its
    explanations still point at the words that a person would mark. What does that agreement tell you?
  options:
    - text: Which words move the verdict, whether the verdict is right or wrong.
      right: true
      remark: Agreement can't tell a right verdict from a wrong one made of the same words.
    - text: That the method ignores the model and marks words by their frequency.
      remark: It follows the model. With other word vectors it points elsewhere.
    - text: That the model is right after all, since people would look at the same words.
      remark: It's wrong about nine reviews in ten. It looks at the right words and concludes the opposite.
"""

WARM_UP = """
- name: attributions-add-up
  taught: "11"
  question: Integrated gradients gives each word of a text a number. What do these numbers add up to?
  options:
    - text: To one, like attention weights.
      remark: Nothing normalizes them, and they can be negative.
    - text: To the difference between the output for the text and that for the baseline.
      right: true
      remark: That's completeness, and a check that costs a line. In this notebook every number gets a check of that
        kind.
    - text: To the probability of the predicted class.
      remark: Only if the baseline's output happened to be zero.
- name: twenty-of-two-thousand
  taught: "09"
  question: Two models agree on 1,900 of 2,000 reviews. On the other 100, A is right 60 times and B 40 times. How far
    apart are their accuracies?
  options:
    - text: 1 point.
      right: true
      remark: 20 of 2,000. The 1,900 say nothing about the difference, and that's why it can be measured so finely.
    - text: 20 points.
      remark: That's among the reviews on which they differ. An accuracy counts all 2,000.
    - text: You can't tell without the accuracies.
      remark: On the 1,900 they're equally often right, whatever that is.
- name: highest-of-sixteen
  taught: "08"
  question: Validation chose the best of sixteen epochs. Why isn't that epoch's validation accuracy what you report?
  options:
    - text: The model was trained on these reviews.
      remark: Not on the validation split. But that split has been used, all the same.
    - text: There are too few validation reviews.
      remark: With more of them the effect is smaller, and it's still there.
    - text: It was picked for being the highest of sixteen, so it's too high on average.
      right: true
      remark: Here sixteen becomes fifteen seeds, thirty changes, and your own twelve runs.
"""
