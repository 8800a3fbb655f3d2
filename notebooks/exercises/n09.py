"""Exercises and quiz of notebook 09, real reviews."""

import math
import statistics

import numpy as np
import torch

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import items_of, listed, pair_of

# ---------------------------------------------------------------- 9.1 an interval over seeds

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


def _interval_probes(generator: torch.Generator) -> list[tuple]:
    accuracies = (0.8 + 0.15 * torch.rand(3, generator=generator)).tolist()
    more = (0.6 + 0.3 * torch.rand(5, generator=generator)).tolist()
    two = (0.5 + 0.4 * torch.rand(2, generator=generator)).tolist()
    return [(accuracies, 200), (more, 300), (two, 40),  # so few that the reviews count as much as the seeds
            ([1.0, 1.0], 50)]                           # no doubt of either kind


def _half(case: Case) -> str:
    return f"half the interval is {100 * case.answer[1]:.3f} points, expected {100 * case.expected[1]:.3f}"


def _both(case: Case) -> str:
    return f"you return {case.answer[0]:.4f} and {case.answer[1]:.4f}."


INTERVAL = ask(
    "9.1", seed_interval,
    probes=_interval_probes,
    tolerance=1e-4,
    forbidden=("course_utils.results.interval",),
    signature="seed_interval(accuracies, a list of numbers between 0 and 1; reviews, their number) -> mean, half of the "
    "interval",
    mistakes={
        "only-reviews": M(_with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews)),
            lambda case: f"{_half(case)}.",
            "The seeds are missing: only the draw of the "
                "reviews is counted."),
        "only-seeds": M(_with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(seeds / n)),
            lambda case: f"{_half(case)}.",
            "The reviews are missing: only the spread between the seeds "
                "is counted."),
        "divided-by-seeds": M(_with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews + seeds * (n - 1) / n / n)),
            lambda case: f"{_half(case)}.",
            "The variance between seeds was divided by their "
                "number. The mean comes from the same values, so divide by one less."),
        "spread-of-one": M(_with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews + seeds)),
            lambda case: f"{_half(case)}.",
            "This is how much one seed varies. The mean of several "
                "varies less: divide its variance by their number."),
        "standard-deviations-added": M(_with_parts(lambda reviews, seeds, n: 1.96 * (reviews**0.5 + (seeds / n) ** 0.5)),
            lambda case: f"{_half(case)}.",
            "Two standard deviations were added. "
                "For independent sources of chance the variances add up: add the squares, then take the root."),
        "deviation-for-variance": M(_with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews + seeds**0.5 / n)),
            lambda case: f"{_half(case)}.",
            "The standard deviation between the seeds was "
                "used where their variance belongs: square it before you divide by the number of seeds."),
        "one-standard-error": M(_with_parts(lambda reviews, seeds, n: math.sqrt(reviews + seeds / n)),
            lambda case: f"{_half(case)}.",
            "This is one standard deviation. 95 out of 100 "
                "draws lie within 1.96 of them."),
        "whole-width": M(_with_parts(lambda reviews, seeds, n: 2 * 1.96 * math.sqrt(reviews + seeds / n)),
            lambda case: f"{_half(case)}.",
            "This is the whole width. Return half of it, the number "
                "after ±."),
        "reviews-times-seeds": M(_with_parts(lambda reviews, seeds, n: 1.96 * math.sqrt(reviews / n + seeds / n)),
            lambda case: f"{_half(case)}.",
            "All seeds were scored on the same reviews, so more "
                "seeds don't make more reviews: divide by `reviews`, not by reviews times seeds."),
        "no-root": M(_with_parts(lambda reviews, seeds, n: 1.96 * (reviews + seeds / n)),
            lambda case: f"{_half(case)}.",
            "This is a variance. The interval needs its square root."),
        "two-ends": M(_changed(lambda mean, half: (mean - half, mean + half)),
            _both,
            "Those are the two ends of the interval. Return its middle, the mean, and half of its "
                "width."),
        "swapped": M(_changed(lambda mean, half: (half, mean)),
            _both,
            "These are the wrong way round: the mean comes first."),
        "percent": M(_changed(lambda mean, half: (100 * mean, 100 * half)),
            _both,
            "The accuracies are fractions between 0 and 1. Leave both results like that."),
    },
    rules=(
        R(lambda case: abs(case.answer[0] - case.expected[0]) > 2e-4, lambda case: "your first result is "
                 f"{case.answer[0]:.4f}, expected {case.expected[0]:.4f}, the mean.", "Add up the accuracies and divide by "
                 "how many there are."),
        R(lambda case: case.answer[1] < 0, lambda case: f"half the interval is {case.answer[1]:.4f}.",
                 "A width is positive."),
        R(lambda case: abs(case.answer[1] - case.expected[1]) > 1e-4, lambda case:
                 f"the mean is right, but {_half(case)}.", "Work out the two variances separately and compare each with "
                 "the exercise. The factor before the root is 1.96."),
    ),
    hints=(
        "Two variances: mean · (1 − mean) / reviews, and the variance between seeds divided by the number of seeds.",
        "The variance between seeds: squared distances from the mean, added up and divided by the number of seeds minus "
        "one.",
        "Half the interval is 1.96 times the square root of their sum.",
    ),
)

# ---------------------------------------------------------------- 9.2 an entry of TF-IDF

IDF = {"dull": math.log(5 / 4) + 1, "but": math.log(5 / 3) + 1, "moving": math.log(5 / 4) + 1}
COUNT = {"dull": 2, "but": 1, "moving": 1}
def entry_by_hand():
    # 2 · 1.223, 1.511 and 1.223; the length is the root of 9.763, which is 3.125
    return 2 * 1.2231 / math.sqrt((2 * 1.2231) ** 2 + 1.5108**2 + 1.2231**2)


def _entry(word="dull", count=COUNT, idf=IDF, divide=math.hypot):
    row = {name: count[name] * idf[name] for name in count}
    return row[word] / divide(*row.values())


def _one(case: Case) -> str:
    return f"{case.answer.item():.3f}"


TFIDF = ask(
    "9.2", entry_by_hand,
    kind="number",
    tolerance=2e-3,
    signature="a number between 0 and 1: the entry for 'dull'",
    mistakes={
        "counted-once": M(lambda: _entry(count=dict.fromkeys(COUNT, 1)),
            lambda case: f"{_one(case)}: the word was counted once.",
            "'dull' occurs twice in this "
                "review, so its tf is 2."),
        "not-divided": M(lambda: _entry(divide=lambda *row: 1.0),
            lambda case: f"{_one(case)} is tf times idf.",
            "The row still has to be divided by its "
                "length, so that no entry is above one."),
        "no-idf": M(lambda: _entry(idf=dict.fromkeys(IDF, 1.0)),
            lambda case: f"{_one(case)}: this uses the counts alone.",
            "Each count is multiplied by the idf "
                "of its word before the row is divided by its length."),
        "divided-by-sum": M(lambda: _entry(divide=lambda *row: sum(row)),
            lambda case: f"{_one(case)}: the row was divided by the sum of its entries.",
            "The length of a row is the root of the sum of the squares."),
        "no-plus-one": M(lambda: _entry(idf={name: value - 1 for name, value in IDF.items()}),
            lambda case: f"{_one(case)}: the idf was taken without '+ 1'.",
            "In section 3 it's ln((1 + "
                "n) / (1 + df)) + 1; without the 1, a word of every review would count for nothing."),
        "other-word": M(lambda: _entry("moving"),
            lambda case: f"{_one(case)} is the entry for 'moving'.",
            "It occurs once here; 'dull' occurs "
                "twice."),
        "new-idf": M(lambda: _entry(idf={"dull": math.log(6 / 5) + 1, "but": math.log(6 / 4) + 1,
                                       "moving": math.log(6 / 5) + 1}),
            lambda case: f"{_one(case)}: the idf was worked out again, with the fifth review "
                "included.",
            "Use the idf values from the first four reviews."),
        "no-root": M(lambda: _entry(divide=lambda *row: math.hypot(*row) ** 2),
            lambda case: f"{_one(case)}: the row was divided by the sum of the squares.",
            "The length of a row is the root of that."),
        "but": M(lambda: _entry("but"),
            lambda case: f"{_one(case)} is the entry for 'but'.",
            "The exercise asks for 'dull'."),
        "tf-as-proportion": M(lambda: _entry(count={name: count / 4 for name, count in COUNT.items()},
                                            divide=lambda *row: 1.0),
            lambda case: f"{_one(case)}: the tf was taken as a proportion, 2 of 4 words.",
            "Here tf is the count itself, 2. (Divide by the row's length, and the proportion would drop out.)"),
        "logarithm-of-tf": M(lambda: _entry(count={name: 1 + math.log(count) for name, count in COUNT.items()}),
            lambda case: f"{_one(case)}: the tf was taken as 1 + ln 2.",
            "That's a common variant (sublinear tf). Here tf is the count itself, 2."),
        "not-smoothed": M(lambda: _entry(idf={"dull": math.log(4 / 3) + 1, "but": math.log(4 / 2) + 1,
                                            "moving": math.log(4 / 3) + 1}),
            lambda case: f"{_one(case)}: the idf was taken as ln(n / df) + 1.",
            "In section 3 one is added to n and to df: ln((1 + n) / (1 + df)) + 1."),
        "other-logarithm": M(lambda: _entry(idf={name: (value - 1) / math.log(10) + 1 for name, value in IDF.items()}),
            lambda case: f"{_one(case)}: the idf was taken with the logarithm to base 10.",
            "It is the natural one, ln."),
        "old-length": M(lambda: 2 * IDF["dull"] / math.hypot(IDF["but"], *IDF.values()),
            lambda case: f"{_one(case)}: 'dull' is counted twice, but the row was divided by 2.749.",
            "That's the length of the row of review 0. Work out the length of this one."),
        "other-review": M(lambda: IDF["dull"] / math.hypot(IDF["but"], *IDF.values()),
            lambda case: f"{_one(case)} is the entry in 'not dull but moving'.",
            "The fifth review has 'dull' twice, and no 'not'."),
    },
    rules=(
        R(lambda case: not 0 <= case.answer <= 1, lambda case: f"{_one(case)} isn't between 0 and 1.",
                 "A row has length one, so none of its entries is above one."),
        R(lambda case: case.answer < 0.444, lambda case: f"{_one(case)} is less than in 'not dull but moving'.",
                 "Here two of the four words are 'dull', so it weighs more."),
    ),
    hints=(
        "The idf values are in the table: 1.223 for 'dull' and 'moving', 1.511 for 'but'.",
        "Before the division the row is 2 · 1.223, 1.511, 1.223.",
        "The length is the root of 2.446² + 1.511² + 1.223² = 9.76.",
    ),
)

# ---------------------------------------------------------------- 9.3 who wins where they differ

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


def _paired_probes(generator: torch.Generator) -> list[tuple]:
    one = torch.rand(900, generator=generator) < 0.91
    other = torch.where(torch.rand(900, generator=generator) < 0.7, one, torch.rand(900, generator=generator) < 0.6)
    return [(one, other), (other[:301], one[:301]), (one[:50], one[:50].clone())]


def _gap(case: Case) -> str:
    return f"your difference is {100 * case.answer[0]:.3f} points, expected {100 * case.expected[0]:.3f}"


def _width(case: Case) -> str:
    return f"half the interval is {100 * case.answer[1]:.3f} points, expected {100 * case.expected[1]:.3f}"


def _width_where_they_differ(case: Case) -> str:
    """The same, of models that differ on some review: where they don't, the interval is 0 and shows little."""
    if not _differ(case):
        raise LookupError("these two are right on the same reviews")
    return _width(case)


def _differ(case: Case) -> float:
    """The fraction of the reviews on which the two models differ."""
    return (case.inputs[0] != case.inputs[1]).double().mean().item()


def _only_first(case: Case) -> float:
    """The fraction of the reviews that only the first model gets right."""
    return (case.inputs[0] & ~case.inputs[1]).double().mean().item()


def _unpaired(case: Case) -> float:
    """Half the interval if each model had been scored on reviews of its own."""
    return 1.96 * math.sqrt(sum(right.double().var().item() for right in case.inputs) / len(case.inputs[0]))


PAIRED = ask(
    "9.3", compare,
    probes=_paired_probes,
    tolerance=1e-4,
    signature="compare(first_right (review,), second_right (review,), both boolean) -> difference, half of the interval",
    mistakes={
        "unpaired": M(_compare(width=_two_intervals),
            lambda case: f"{_width_where_they_differ(case)}.",
            "This is the interval for models scored on *different* "
                "reviews. Here both models judge most reviews the same, and those say nothing about the difference."),
        "turned-round": M(_compare(gap=lambda d: -d.mean()),
            lambda case: f"{_gap(case)}.",
            "The sign is reversed: +1 is for the first model."),
        "without-sign": M(_compare(gap=lambda d: d.abs().mean()),
            lambda case: f"{_gap(case)}.",
            "This counts how often they differ, whoever is right. The "
                "sign says which one is right."),
        "of-differing": M(_compare(gap=lambda d: d.sum() / d.abs().sum()),
            lambda case: f"{_gap(case)}.",
            "The mean was taken over the reviews on which they differ. "
                "The exercise asks for the difference in accuracy: divide by all reviews."),
        "among-differing": M(lambda first, second: _among((first.double() - second.double())[first != second]),
            lambda case: f"{_gap(case)}.",
            "Only the reviews on which the two differ were kept. The "
                "exercise asks for the mean over all reviews, zeros included. (Two models that never differ would give "
                "0 / 0.)"),
        "binomial": M(_compare(width=lambda d, a, b: 1.96 * (d.mean() * (1 - d.mean()) / len(d)).sqrt()),
            lambda case: f"the difference is right, but {_width(case)}.",
            "The formula of section 5 is for "
                "an accuracy, a mean of zeros and ones. These differences can also be -1, so take their own standard "
                "deviation."),
        "divided-by-n": M(_compare(width=lambda d, a, b: 1.96 * d.std(correction=0) / len(d)),
            lambda case: f"the difference is right, but {_width(case)}.",
            "The standard deviation was "
                "divided by n. Divide by the square root of n."),
        "counted-not-shared": M(_compare(gap=lambda d: d.sum()),
            lambda case: f"your difference is {case.answer[0]:.0f} reviews.",
            "Divide by the number of reviews: a difference in accuracy is a proportion."),
        "one-standard-error": M(_compare(width=lambda d, a, b: d.std(correction=0) / math.sqrt(len(d))),
            lambda case: f"{_width(case)}.",
            "This is one standard error; 95 out of 100 draws lie "
                "within 1.96."),
        "no-root-of-n": M(_compare(width=lambda d, a, b: 1.96 * d.std(correction=0)),
            lambda case: f"{_width(case)}.",
            "This is how much single reviews vary: √n is missing. The mean of n "
                "varies less, by the root of n."),
        "no-root-of-n-unbiased": M(_compare(width=lambda d, a, b: 1.96 * d.std()),
            lambda case: f"{_width(case)}.",
            "This is how much single reviews vary: √n is missing. The mean of n varies less, by the root of n."),
        "not-centred": M(_compare(width=lambda d, a, b: 1.96 * d.square().mean().sqrt() / math.sqrt(len(d))),
            lambda case: f"{_width(case)}.",
            "This uses the mean square alone. For the variance, "
                "subtract the squared mean from it."),
        "no-root": M(_compare(width=lambda d, a, b: 1.96 * d.var(correction=0) / math.sqrt(len(d))),
            lambda case: f"{_width(case)}.",
            "This uses the variance of the differences. The standard "
                "deviation is its square root."),
        "two-ends": M(_changed(lambda gap, half: (gap - half, gap + half), compare),
            _both,
            "Those are the two ends of the interval. Return the difference and half of the "
                "width."),
        "swapped": M(_changed(lambda gap, half: (half, gap), compare),
            _both,
            "These are the wrong way round: the difference comes first."),
    },
    rules=(
        R(lambda case: abs(case.answer[0]) > 1, lambda case: f"{_gap(case)}.", "The mean of numbers from -1 to 1 "
                 "can't be that large. In uint8 there is no -1: 0 - 1 gives 255. Make both float first."),
        R(lambda case: _differ(case) > 0 and abs(case.answer[0] - _differ(case)) < 1e-4, lambda case:
                 f"{_gap(case)}.", "This counts every review on which they differ, whoever is right: the -1s have lost "
                 "their sign, as with ^, != or abs."),
        R(lambda case: abs(case.answer[0] - _only_first(case)) < 1e-4 < _differ(case) - _only_first(case),
                 lambda case: f"{_gap(case)}.", "This counts the reviews that only the first has right, as +1. Those that "
                 "only the second has right count as -1."),
        R(lambda case: abs(case.answer[0] - case.expected[0]) > 1.2e-4, lambda case: f"{_gap(case)}.",
                 "It's the first model's accuracy minus the second's."),
        R(lambda case: abs(case.answer[1] / _unpaired(case) - 1) < 0.03 < _unpaired(case) / case.expected[1] - 1,
                 lambda case: f"the difference is right, but {_width(case)}.", "The variances of the two accuracies were "
                 "added, as for models scored on different reviews. Take the variance of the differences."),
        R(lambda case: abs(case.answer[1] - 2 * case.expected[1]) < 0.02 * case.expected[1],
                 lambda case: f"the difference is right, but {_width(case)}.",
                 "This is the whole width. Return half of it, the number after ±."),
        R(lambda case: abs(case.answer[1] - case.expected[1]) > 1e-4, lambda case: "the difference is right, but "
                 f"{_width(case)}.", "Make the list of +1, 0 and -1 first, then its standard deviation; divide that by the "
                 "root of n, and multiply by 1.96."),
    ),
    hints=(
        "Turn both into numbers: first_right.float() - second_right.float() holds +1, 0 and -1.",
        "Its mean is the difference. Its variance is the mean square minus the squared mean; the standard deviation is "
        "the root of that.",
        "Divide the standard deviation by the root of n and multiply by 1.96.",
    ),
)

# ---------------------------------------------------------------- 9.4 repair: shuffling

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


def _shuffle_probes(generator: torch.Generator) -> list[tuple]:
    """Ragged ids, padding 0, and a mask; then padding 1, and a word with the id 0."""
    mask = torch.arange(7) < torch.tensor([7, 3, 5, 1])[:, None]
    two = torch.arange(7) < torch.tensor([7, 3, 5, 2])[:, None]            # no row of one word
    ids = torch.stack([torch.randperm(490, generator=generator)[:7] + 2 for _ in mask])        # rows without repeats
    other = ids.masked_fill(~two, 1)
    other[0, 2] = 0
    return [(ids * mask, mask), (other, two)]


def _shortest(token_ids, attention_mask):
    n, shuffled = int(attention_mask.sum(dim=1).min()), token_ids.clone()
    for i in range(len(token_ids)):
        shuffled[i, :n] = token_ids[i, torch.randperm(n)]
    return shuffled


CALLS = 100                                             # so many that three words come in each of their six orders
def _observe_shuffle(function, token_ids, attention_mask):
    """Over many calls: how often rows keep their words, have padding inside, lose their padding; how the first row comes
    out, and how many of its words stay; in how many orders three words come; in how many rows some words never come to
    some places."""
    kept = inside = padded = still = ascending = turned = stay = behind = 0
    orders, of_three, padding = set(), set(), token_ids[-1, -1]
    rows = attention_mask.sum(dim=1).tolist()
    places, width = [set() for _ in rows], token_ids.shape[1]
    for _ in range(CALLS):
        shuffled = function(token_ids, attention_mask)
        if shuffled is None:
            return None
        shuffled = _as_ids(shuffled, token_ids)
        same = [torch.equal(shuffled[i, :n].sort().values, token_ids[i, :n].sort().values) for i, n in enumerate(rows)]
        kept += sum(same)
        inside += sum(int((shuffled[i, :n] == padding).any()) for i, n in enumerate(rows))
        behind += sum(torch.equal(shuffled[i, width - n:].sort().values, token_ids[i, :n].sort().values)
                      and not same[i] for i, n in enumerate(rows))
        padded += sum(torch.equal(shuffled[i, n:], token_ids[i, n:]) for i, n in enumerate(rows))
        for i, n in enumerate(rows):
            places[i].update(enumerate(shuffled[i, :n].tolist()))
        still += int(torch.equal(shuffled[0], token_ids[0]))
        turned += int(torch.equal(shuffled[0], token_ids[0].flip(0)))
        orders.add(tuple(shuffled[0].tolist()))
        stay += int((shuffled[0] == token_ids[0]).sum())
        if same[1]:
            of_three.add(tuple(shuffled[1, :3].tolist()))
        ascending += int((shuffled[0].diff() > 0).all())
    return {"rows with their own words": kept / 4 / CALLS, "rows with padding inside": inside / 4 / CALLS,
            "rows with their padding": padded / 4 / CALLS, "rows with their words at the end": float(behind > 2 * CALLS),
            "orders": 1.0 if len(orders) == 1 else 2.0 if len(orders) <= 20 else 3.0,      # one, a few, many
            "unmoved": _often(still), "few words move": float(len(orders) > 1 and stay > 2 * CALLS),
            "orders of three words": float(min(len(of_three), 6)),
             "sorted": _often(ascending), "turned round": _often(turned),
            "stuck rows": float(sum(len(seen) < 0.9 * n * n for seen, n in zip(places, rows)))}


def _as_ids(output, token_ids: torch.Tensor) -> torch.Tensor:
    """What came out as a tensor shaped as the ids. Raises TypeError, with what came instead."""
    if isinstance(output, (list, tuple)) and output and all(isinstance(row, torch.Tensor) for row in output):
        if len({row.shape for row in output}) == 1:
            output = torch.stack(list(output))
    try:
        ids = torch.as_tensor(output)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"expected one tensor of token ids; got {type(output).__name__}") from None
    if ids.shape != token_ids.shape:
        raise TypeError(f"expected token ids of the shape {tuple(token_ids.shape)}; got {tuple(ids.shape)}")
    return ids.to(token_ids.dtype)


def _often(count: int) -> float:
    """0, 1 or 2: hardly ever, often, in each of the calls."""
    return 2.0 if count == CALLS else float(count > CALLS // 10)


def _padding_inside(case: Case) -> str:
    return f"in {100 * case.got['rows with padding inside']:.0f} of 100 rows there is padding between the words."


def _lost(case: Case) -> str:
    return f"{100 * (1 - case.got['rows with their own words']):.0f}"


SHUFFLE = ask(
    "9.4", shuffle_words,
    given="columns",
    probes=_shuffle_probes,
    observe=_observe_shuffle,
    signature="shuffle_words(token_ids (batch, seq_len), attention_mask (batch, seq_len), True = real word) -> token_ids "
    "(batch, seq_len)",
    mistakes={
        "columns": M(lambda ids, mask: ids[:, torch.randperm(ids.shape[1])],
            "it still shuffles something else than the words of each review.",
            ""),
        "rows": M(lambda ids, mask: ids[torch.randperm(ids.shape[0])],
            lambda case: f"only {100 * case.got['rows with their own words']:.0f} of 100 rows still have their "
                "own words.",
            "The reviews were shuffled, not their words: the labels now belong to different reviews."),
        "reversed": M(_reversed_rows,
            lambda case: f"in {CALLS} calls your first row always came out in the same order.",
            "Reversing a review isn't shuffling it: neighbours stay neighbours, and 'not moving' becomes 'moving "
                "not'."),
        "sorted": M(_sorted_rows,
            lambda case: f"in {CALLS} calls your first row came out in one and the same order, sorted.",
            "Sorted ids aren't in random order: frequent words have small ids, so the model sees a new regularity."),
        "unchanged": M(lambda ids, mask: ids.clone(),
            lambda case: f"your first row came out as it went in, in each of {CALLS} calls.",
            "Nothing is shuffled. If you shuffle a copy of a row, write it back."),
        "shortest-row": M(_shortest,
            lambda case: f"at most the first two words of your rows ever moved in {CALLS} calls.",
            "You shuffle as many words in each row as the shortest row has: 2 of 7 here, and none where that is one "
            "word. Each row has a number of its own, attention_mask[i].sum()."),
        "with-replacement": M(_with_replacement,
            lambda case: f"only {100 * case.got['rows with their own words']:.0f} of 100 rows still "
                "have all of their words.",
            "Words are drawn with replacement, so some occur twice and some are lost. Use a "
                "permutation: torch.randperm."),
    },
    rules=(
        R(lambda case: case.got["rows with their words at the end"] > 0, lambda case: "your rows have their own "
                 "words at the end and the padding before them.", "The mask still says that the words come "
                 "first, so the padding must stay behind them."),
        R(lambda case: case.got["rows with their own words"] < 1 and case.inputs[0][-1, -1] == 0, lambda case:
                 f"{_lost(case)} of 100 rows lost or gained words.",
                 "Each row must keep exactly its own real words, at its beginning."),
        R(lambda case: case.got["rows with their own words"] < 1, lambda case: "your rows keep their words when the "
                 f"padding has id 0. When it has id 1, and a word id 0, {_lost(case)} of 100 rows lose or gain words.",
                 "An id doesn't tell you what is padding. Use the mask."),
        R(lambda case: case.got["rows with padding inside"] > 0, _padding_inside, "Padding stays at the end."),
        R(lambda case: case.got["rows with their padding"] < 1, lambda case: "in "
                 f"{100 * (1 - case.got['rows with their padding']):.0f} of 100 rows the positions after the words have "
                 "changed.", "Where the mask is False, everything stays as it is."),
        R(lambda case: case.unmoved > 0, lambda case: "your first row often comes out as it went in.",
                 "With seven words that should happen about once in five thousand calls."),
        R(lambda case: case.orders < 3, lambda case: f"in {CALLS} calls your first row came out in "
                 f"{'only one order' if case.orders == 1 else 'only a few orders'}.", "Each call needs a fresh random "
                 "order, and all orders must be possible."),
        R(lambda case: case.got["few words move"] > 0, lambda case: "on average more than two of the seven words of "
                 "your first row stay where they were.", "In a random order, on average only one word stays in place. "
                 "Swapping two words, or shuffling only some of them, isn't enough: every order must be possible, "
                 "torch.randperm(n)."),
        R(lambda case: case.got["orders of three words"] < 6, lambda case: f"in {CALLS} calls the three words of "
                 f"your second row came out in only {case.got['orders of three words']:.0f} of their 6 orders.",
                 "Every order must be possible, the given one included."),
        R(lambda case: case.got["stuck rows"] > 0, lambda case: f"in {CALLS} calls some words never reached some "
                 f"positions, in {case.got['stuck rows']:.0f} of 4 rows.", "In every row, each word must be able to reach "
                 "each of the row's positions, the first and the last included."),
        R(lambda case: case.sorted > 0 or case.got["turned round"] > 0, lambda case: "your first row often comes out "
                 f"{'sorted' if case.sorted > 0 else 'reversed'}.", "All orders should be equally likely."),
    ),
    hints=(
        "Look at one row before and after. Where is the padding?",
        "How many real words has row i? attention_mask[i].sum() tells you.",
        "For each row: n real words, order = torch.randperm(n), and in a copy you rewrite only the first n positions.",
    ),
)

# ---------------------------------------------------------------- 9.5 errors by cause

def sort_by_cause(words, right, known):
    groups = [[], [], []]
    for text, correct in zip(words, right):
        unknown = sum(word not in known for word in text)
        place = 0 if len(text) <= 5 else 1 if 3 * unknown >= len(text) else 2
        groups[place].append(not correct)
    return [(len(group), sum(group) / len(group) if group else 0.0) for group in groups]


def _texts_of(lengths: list[int], unknown: list[int], generator: torch.Generator) -> list[list[str]]:
    """Texts of so many words, of which so many are unknown; a word of either kind comes twice wherever there is room."""
    texts = []
    for length, new in zip(lengths, unknown):
        words = [f"new{i}" for i in range(new)] + [f"old{i}" for i in range(length - new)]
        if length - new > 2:
            words[-1] = words[-2]
        if new > 1:
            words[1] = words[0]
        texts.append([words[i] for i in torch.randperm(length, generator=generator).tolist()])
    return texts


def _cause_probes(generator: torch.Generator) -> list[tuple]:
    """Texts around both limits, in random order; a set without a short text; one without an unknown word."""
    lengths = [3, 4, 5, 5, 6, 6, 9, 9, 9, 12, 12, 12, 15, 15, 8, 8, 7, 20, 5, 6]
    unknown = [1, 0, 4, 0, 2, 1, 3, 2, 5, 4, 6, 0, 5, 12, 8, 3, 0, 9, 1, 3]
    known = {f"old{i}" for i in range(30)}
    order = torch.randperm(len(lengths), generator=generator).tolist()
    texts = _texts_of([lengths[i] for i in order], [unknown[i] for i in order], generator)
    right = (torch.rand(len(texts), generator=generator) < 0.55).numpy()
    right[order.index(0)], right[order.index(2)] = True, False             # of the short ones, some of each
    long = [text for text in texts if len(text) > 5]
    return [(texts, right, known), (long, np.arange(len(long)) % 3 == 0, known),
            ([[f"old{i}" for i in range(length)] for length in (4, 8, 10)], np.array([True, False, True]), known)]


def _observe_causes(function, words, right, known):
    """Three pairs of numbers as one tensor (3, 2)."""
    output = function(words, right, known)
    if output is None:
        return None
    groups = items_of(output, "three pairs of numbers")
    if len(groups) != 3:
        raise TypeError(f"expected three pairs, one for each group; got {len(groups)}")
    pairs = [pair_of(group, "a pair (texts, proportion wrong)") for group in groups]
    return torch.tensor([[float(count), float(wrong)] for count, wrong in pairs], dtype=torch.float64)


def _counts(case: Case) -> str:
    return " and ".join(", ".join(f"{count:.0f}" for count in values[:, 0].tolist()) for values in
                        (case.answer, case.expected)).replace(" and ", " texts in your three groups, expected ")


def _wrong(case: Case) -> str:
    return f"your proportions are {listed(case.answer[:, 1], '.2f')}, expected {listed(case.expected[:, 1], '.2f')}."


_ERRORS_ALONE = (
    "You sort the errors alone. That most of them have a cause says nothing as long as the right answers may have it as "
    "often: put these into the groups, too."
)

CAUSES = ask(
    "9.5", sort_by_cause,
    probes=_cause_probes,
    observe=_observe_causes,
    tolerance=1e-3,
    signature="sort_by_cause(words, a list of words for each text; right (text,) booleans; known, a set of words) -> three "
    "pairs (texts, proportion wrong): very short, many unknown, neither",
    mistakes={
        "right-for-wrong": M({"not correct": "correct"}, _wrong,
            "Those are the texts that are right. Count the others."),
        "share-of-errors": M({"sum(group) / len(group) if group else 0.0":
                              "sum(group) / max(1, sum(sum(each) for each in groups))"}, _wrong,
            "You divide by the number of all errors. That's what fraction of the errors has the cause, and says nothing "
            "until you know what fraction of the right answers has it. Divide by the group's own size."),
        "only-errors": M({"groups[place].append(not correct)": "groups[place].extend([True] * (not correct))"},
            lambda case: f"{_counts(case)}.", _ERRORS_ALONE),
        "only-errors-share": M({"groups[place].append(not correct)": "groups[place].extend([True] * (not correct))",
                                "sum(group) / len(group) if group else 0.0":
                                "len(group) / max(1, sum(len(each) for each in groups))"},
            lambda case: f"{_counts(case)}, and proportions of all errors.", _ERRORS_ALONE),
        "of-all-texts": M({"sum(group) / len(group) if group else 0.0": "sum(group) / len(words)"}, _wrong,
            "You divide by the number of all texts. Divide by the group's own."),
        "errors-counted": M({"len(group), sum(group) / len(group) if group else 0.0": "len(group), sum(group)"},
            _wrong, "You return how many are wrong. Divide by the group's size."),
        "errors-for-texts": M({"len(group), sum(group) / len(group) if group else 0.0":
                               "sum(group), sum(group) / len(group) if group else 0.0"},
            lambda case: f"{_counts(case)}.", "The first number of a pair counts all texts of the group, the right ones "
            "as well."),
        "fewer-than-five": M({"len(text) <= 5": "len(text) < 5"}, lambda case: f"{_counts(case)}.",
            "A text of exactly five words is very short, too."),
        "more-than-a-third": M({"3 * unknown >= len(text)": "3 * unknown > len(text)"}, lambda case: f"{_counts(case)}.",
            "A text of which exactly a third is unknown has many unknown words, too."),
        "half": M({"3 * unknown": "2 * unknown"}, lambda case: f"{_counts(case)}.",
            "Your limit for unknown words is one half. The exercise asks for a third."),
        "any-unknown": M({"3 * unknown >= len(text)": "unknown > 0"}, lambda case: f"{_counts(case)}.",
            "One unknown word is enough for your second group. It takes a third of the text's words."),
        "known-counted": M({"word not in known": "word in known"}, lambda case: f"{_counts(case)}.",
            "You count the words that are in `known`."),
        "unknown-first": M({"0 if len(text) <= 5 else 1 if 3 * unknown >= len(text) else 2":
                            "1 if 3 * unknown >= len(text) else 0 if len(text) <= 5 else 2"},
            lambda case: f"{_counts(case)}.", "A text of at most five words belongs to the first group, whether its words "
            "are known or not."),
        "each-unknown-word-once": M({"sum(word not in known for word in text)": "len({word for word in text} - known)"},
            lambda case: f"{_counts(case)}.", "An unknown word that comes twice is two unknown words of the text."),
        "each-word-once": M(lambda words, right, known: sort_by_cause([[*{*text}] for text in words], right, known),
            lambda case: f"{_counts(case)}.", "A word that comes twice is two words of the text."),
    },
    rules=(
        R(lambda case: case.answer[:, 0].sum() != case.expected[:, 0].sum(), lambda case: "your groups have "
          f"{case.answer[:, 0].sum():.0f} texts together, and there are {case.expected[:, 0].sum():.0f}.",
          "Each text belongs to exactly one group: the first that fits."),
        R(lambda case: (case.answer[:, 0] != case.expected[:, 0]).any(), lambda case: f"{_counts(case)}.",
          "At most five words: very short. Of the others, a third or more unknown: many unknown. Else neither."),
        R(lambda case: (case.answer[:, 1] > 1).any(),
          lambda case: f"one of your proportions is {case.answer[:, 1].max():g}.", "A proportion is between 0 and 1."),
        R(lambda case: (case.answer[:, 1] - case.expected[:, 1]).abs().max() > 1e-3, _wrong,
          "In each group: how many are wrong, divided by how many there are."),
    ),
    hints=(
        "Three empty lists; then a loop over zip(words, right) that puts `not right` of each text into one of them.",
        "Unknown words of a text: sum(word not in known for word in text). A third or more: 3 * unknown >= len(text).",
        "Of each list: (len(group), sum(group) / len(group) if group else 0).",
    ),
)

# ---------------------------------------------------------------- 9.6 what is taken for what

def confusion(labels, said, num_classes):
    counts = torch.zeros(num_classes, num_classes)                         # (class, class said)
    for label, answer in zip(labels, said):
        counts[label, answer] += 1
    return counts


def _confusion_probes(generator: torch.Generator) -> list[tuple]:
    """Three classes, of which one is often taken for another; four, of which the last never occurs."""
    labels = torch.randint(3, (60,), generator=generator)
    guesses = torch.where(torch.rand(60, generator=generator) < 0.6, labels, (labels + 1) % 3)
    more = torch.randint(3, (50,), generator=generator)
    others = torch.where(torch.rand(50, generator=generator) < 0.5, more, torch.zeros_like(more))
    return [(labels.tolist(), guesses.tolist(), 3), (more.tolist(), others.tolist(), 4)]


def _by_rows(counts):
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1)


def _of_those_that_occur(labels, said, num_classes):
    """A row for each class that some text has, a column for each that was said."""
    return confusion(labels, said, num_classes)[sorted(set(labels))][:, sorted(set(said))]


def _cell(case: Case) -> str:
    """The cell that is most wrong, in words."""
    row, column = divmod(int((case.answer - case.expected).abs().argmax()), case.expected.shape[1])
    return (f"your row {row}, column {column} is {case.answer[row, column]:.3g}, expected "
            f"{case.expected[row, column]:.0f}.")


CONFUSION = ask(
    "9.6", confusion,
    probes=_confusion_probes,
    tolerance=1e-3,
    signature="confusion(labels (text,), said (text,), whole numbers from 0 to num_classes - 1) -> counts (num_classes, "
    "num_classes): row what it is, column what was said",
    mistakes={
        "turned-round": M(lambda labels, said, num_classes: confusion(said, labels, num_classes), _cell,
            "Rows and columns have changed places: a row is what a text is, a column what was said."),
        "proportions": M(lambda labels, said, num_classes: _by_rows(confusion(labels, said, num_classes)), _cell,
            "Each of your rows was divided by its sum. The exercise asks for counts, not proportions."),
        "proportions-of-nothing": M(lambda labels, said, num_classes: confusion(labels, said, num_classes)
                                    / confusion(labels, said, num_classes).sum(dim=1, keepdim=True),
            lambda case: f"your row 0 sums to {case.answer[0].sum():.3g}, and it should count "
            f"{case.expected[0].sum():.0f} texts.",
            "Each of your rows was divided by its sum (0 / 0 for a class that doesn't occur). The exercise asks for counts, "
            "not proportions."),
        "of-all-texts": M(lambda labels, said, num_classes: confusion(labels, said, num_classes) / len(labels), _cell,
            "You divided by the number of texts. Here the cells are counts."),
        "only-right": M(lambda labels, said, num_classes: torch.diag(confusion(labels, said, num_classes).diagonal()), _cell,
            "Only the diagonal is counted, where both agree. The errors are the interesting cells."),
        "only-errors": M(lambda labels, said, num_classes: confusion(labels, said, num_classes)
                         * (1 - torch.eye(num_classes)), _cell,
            "The diagonal is missing, where both agree."),
        "set-to-one": M(lambda labels, said, num_classes: confusion(labels, said, num_classes).clamp(max=1), _cell,
            "Each pair is noted once. Add one for each text: += 1. (With counts[labels, said] += 1, torch and numpy add "
            "one only once for pairs that come several times.)"),
        "classes-that-occur": M(_of_those_that_occur,
            lambda case: f"your table is {' by '.join(map(str, case.answer.shape))}, expected "
            f"{' by '.join(map(str, case.expected.shape))}.",
            "A class that doesn't occur has no row or no column in yours, as in a crosstab. Begin with num_classes rows of "
            "zeros."),
    },
    rules=(
        R(lambda case: case.answer.sum() != case.expected.sum(), lambda case: f"your cells sum to {case.answer.sum():.4g}, "
          f"and there are {case.expected.sum():.0f} texts.", "Each text is counted once, in one cell."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-3, _cell,
          "Row: what it is. Column: what was said."),
    ),
    hints=(
        "Begin with zeros: torch.zeros(num_classes, num_classes).",
        "Then a loop over zip(labels, said) that adds one to a cell.",
        "counts[label, answer] += 1",
    ),
)

# ---------------------------------------------------------------- 9.7 a step of logistic regression

def logistic_step(w, b, x, y, rate, penalty):
    error = torch.sigmoid(x @ w + b) - y                                   # prediction minus truth (review,)
    return w - rate * (error @ x / len(y) + penalty * w), b - rate * error.mean()


def _logistic(squash=torch.sigmoid, sign=1.0, mean=True, decay=1.0, bias=True, of_bias=0.0, square=False, rated=True,
              swapped=False):
    """A step with one thing changed."""
    def step(w, b, x, y, rate, penalty):
        p = squash(x @ w + b)
        error = (p - y) * (2 * p * (1 - p) if square else 1)
        error = sign * error / (len(y) if mean else 1)
        how_far = rate if rated else 1.0
        new_w = w - how_far * (error @ x + decay * penalty * w)
        new_b = b - how_far * (error.sum() + of_bias * penalty * b) if bias else b
        return (new_b, new_w) if swapped else (new_w, new_b)
    return step


def _bias_last(w, b, x, y, rate, penalty):
    w, _ = logistic_step(w, b, x, y, rate, penalty)
    return w, b - rate * (torch.sigmoid(x @ w + b) - y).mean()


def _added_gradient(w, b, x, y, rate, penalty):
    return logistic_step(w, b, x, y, -rate, penalty)


def _penalty_without_rate(w, b, x, y, rate, penalty):
    new_w, new_b = logistic_step(w, b, x, y, rate, 0.0)
    return new_w - penalty * w, new_b


def _means_multiplied(w, b, x, y, rate, penalty):
    error = (torch.sigmoid(x @ w + b) - y).mean()
    return w - rate * (error * x.mean(dim=0) + penalty * w), b - rate * error


def _only_the_change(w, b, x, y, rate, penalty):
    new_w, new_b = logistic_step(w, b, x, y, rate, penalty)
    return new_w - w, new_b - b


def _logistic_probes(generator: torch.Generator) -> list[tuple]:
    """Weights, a bias, rows and labels, a rate and a penalty: five reviews of three words; seven of four, most positive."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    return [(draw(3), draw(1)[0] + 1, draw(5, 3).abs(), torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0]), 0.5, 0.2),
            (2 * draw(4), draw(1)[0] - 1, draw(7, 4).abs(), torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0]), 2.0, 0.1)]


def observe_logistic(function, w, b, x, y, rate, penalty):
    """The new weights and bias after one step."""
    found = function(w.clone(), b.clone(), x, y, rate, penalty)
    if found is None or found is ...:
        return None
    new_w, new_b = pair_of(found, "the new weights and the new bias")
    return {"weights": torch.as_tensor(new_w, dtype=torch.float32), "bias": torch.as_tensor(new_b, dtype=torch.float32)}


def _weights(case: Case) -> str:
    at = int((case.weights - case.right["weights"]).abs().argmax())
    return (f"weight {at} goes from {case.inputs[0][at]:.3f} to {case.weights[at]:.3f}, expected "
            f"{case.right['weights'][at]:.3f}.")


def _bias(case: Case) -> str:
    return f"the bias goes from {case.inputs[1]:.3f} to {case.bias.item():.3f}, expected {case.right['bias'].item():.3f}."


LOGISTIC = ask(
    "9.7", logistic_step,
    probes=_logistic_probes,
    observe=observe_logistic,
    tolerance=1e-4,
    signature="logistic_step(w (feature,), b (), x (review, feature), y (review,), 0 or 1, rate, penalty) -> the new "
    "weights (feature,) and the new bias ()",
    mistakes={
        "climbs": M(_logistic(sign=-1.0), _weights,
            "The error is prediction minus truth. Turned round, each step makes the loss larger."),
        "added": M(_added_gradient, _weights,
            "You added the gradient. Subtract it: the gradient points to where the loss grows."),
        "no-sigmoid": M(_logistic(squash=lambda z: z), _weights,
            "The prediction is a probability: send the sum through the sigmoid before you subtract the label."),
        "rounded": M(_logistic(squash=lambda z: (z > 0).float()), _weights,
            "You take 0 or 1 for the prediction. Take the probability: 0.6 and 0.9 aren't equally wrong."),
        "summed": M(_logistic(mean=False), _weights,
            "That is the sum over the reviews. The loss is their mean, so divide by how many there are."),
        "no-penalty": M(_logistic(decay=0.0), _weights,
            "The penalty's gradient is missing: penalty times w. Without it the weights of separable texts grow without "
            "end."),
        "penalty-twice": M(_logistic(decay=2.0), _weights,
            "The loss has penalty · w² / 2, so the 2 of the square has gone: penalty times w."),
        "penalty-turned-round": M(_logistic(decay=-1.0), _weights,
            "The penalty pulls weights towards zero. It belongs to the gradient, and so it's subtracted too."),
        "bias-stays": M(_logistic(bias=False), _bias,
            "The bias learns as well: its entry is 1 in each row, so its gradient is the mean of the errors."),
        "penalty-on-the-bias": M(_logistic(of_bias=1.0), _bias,
            "Only the weights are penalized. The bias may be as large as it likes."),
        "bias-after-the-weights": M(_bias_last, _bias,
            "Your bias uses the weights that have already moved. Work out the errors once, and use them for both."),
        "squared-error": M(_logistic(square=True), _weights,
            "That is the gradient of the squared error. With cross-entropy the slope of the sigmoid cancels: prediction "
            "minus truth."),
        "no-rate": M(_logistic(rated=False), _weights,
            "How long a step is, `rate` says: the gradient times the rate."),
        "penalty-without-rate": M(_penalty_without_rate, _weights,
            "The penalty's part of the gradient is multiplied by the rate as well: rate * (… + penalty * w)."),
        "means-multiplied": M(_means_multiplied, _weights,
            "You multiply the mean error by the mean entry. Multiply within each review first, error times entry, and then "
            "take the mean: error @ x / len(y)."),
        "only-the-change": M(_only_the_change, _weights,
            "That's how far it goes. Return where it arrives: the old weights minus that."),
    },
    rules=(
        R(lambda case: case.weights.shape != case.right["weights"].shape,
          lambda case: f"your weights have shape {tuple(case.weights.shape)}, expected "
          f"{tuple(case.right['weights'].shape)}.", "One weight for each feature: error @ x, or x.T @ error."),
        R(lambda case: (case.weights - case.right["weights"]).abs().max() > 1e-4, _weights,
          "Subtract rate times the gradient: the mean over the reviews of error times entry, plus penalty times the "
          "weight."),
        R(lambda case: (case.bias - case.right["bias"]).abs().max() > 1e-4, _bias,
          "Its gradient is the mean of the errors."),
    ),
    hints=(
        "Begin with the errors: torch.sigmoid(x @ w + b) - y, one number for each review.",
        "The gradient of w is error @ x / len(y) + penalty * w; that of b is error.mean().",
        "Return w - rate * gradient_of_w, b - rate * gradient_of_b.",
    ),
)

# ---------------------------------------------------------------- the questions

QUIZ = """- name: small-lead
  taught: "09"
  question: Model A has 88.1 per cent on 2,000 test reviews, model B 87.4. One seed each. What follows?
  options:
    - text: Nothing yet.
      right: true
      remark: Different reviews or a different seed could turn the order round. Compare them review by review,
        over several seeds.
    - text: A is better, though not by very much.
      remark: The choice of reviews alone gives each accuracy ± 1.4 points, and nobody has seen how much the
        seeds vary.
    - text: They are equally good.
      remark: That claims as much as 'A is better'. Seeing no difference doesn't mean that there is none.
- name: half-of-twins
  taught: "06"
  question: Why can no amount of training get a model without positions above one half on order twins?
  options:
    - text: It has too few parameters to learn the order of words.
      remark: With a thousand times as many it would still give both twins the same answer.
    - text: Its word vectors are too short to represent two opinions.
      remark: However long the vectors are, both twins have the same ones.
    - text: Twins contain the same words and get the same answer, which is wrong for one of them.
      right: true
      remark: And the largest gap between twins in the result file confirms it.
- name: shuffled-alike
  taught: "09"
  question: A classifier loses nothing when the words of each test review are shuffled. What does that show?
  options:
    - text: It was built without positions.
      remark: The IMDb model has positions, and loses almost nothing all the same (section 5).
    - text: Its accuracy on these reviews doesn't need the order; single verdicts may change.
      right: true
      remark: That is what was measured, and no more.
    - text: In reviews, word order never matters for the verdict.
      remark: In the course corpus the order twins have the same words and opposite labels.
- name: best-of-sixteen
  taught: "09"
  question: You try two ways of cutting and eight learning rates, and report the best of the sixteen test
    accuracies. What is wrong?
  options:
    - text: The test split did the choosing, so the best accuracy is too high on average.
      right: true
      remark: Validation has to choose; then one model is scored on the test split.
    - text: Nothing, because all of them were trained on the training split only.
      remark: All were compared on the test split, so the test split chose.
    - text: Sixteen tries are too few to find the best settings.
      remark: More tries would make the reported number still higher, and still less true.
- name: vocabulary-from-training
  taught: "02"
  question: Why is the vocabulary counted on the training part alone?
  options:
    - text: It's faster, and the frequent words are the same in both.
      remark: It's a little faster, but that isn't why.
    - text: Words found only in the test part would get ids and untrained vectors.
      right: true
      remark: And the unknown rate would look better than it will be on texts that don't exist yet.
    - text: The test part has no labels that say which words are important.
      remark: It has labels. And counting words needs none.
- name: many-unknown-words
  taught: "09"
  question: In 40 of 100 errors of a model, a third of the words is unknown. Are unknown words the cause?
  options:
    - text: Yes, of these 40 errors.
      remark: They were there. Whether they did it shows only where they were there and the answer was right.
    - text: No, since the other 60 errors have known words.
      remark: Errors can have several causes, and this may be one of them.
    - text: You can't tell until you know how many of the right answers have them, too.
      right: true
      remark: If 40 of 100 right answers have them as well, they explain nothing (section 2).
- name: what-the-start-shows
  taught: "09"
  question: A recipe doesn't learn word order on reviews in which order decides. Trained on other reviews, its
    model loses
    nothing when their words are shuffled. What do you know about order in those other reviews?
  options:
    - text: It doesn't matter there.
      remark: This recipe would have missed it even if it did.
    - text: Nothing yet. First find a recipe that learns order where it decides.
      right: true
      remark: A null result counts only if the experiment could have found something (section 6).
    - text: It matters, since it mattered in the first reviews.
      remark: The first reviews were made so that it matters. The others may be different.
"""

WARM_UP = """
- name: what-is-a-label-for
  taught: "08"
  question: Your model was saved without its vocabulary, and a friend builds another of the same size. What happens?
  options:
    - text: Loading fails, since the sizes don't fit.
      remark: The sizes fit. That's what makes it dangerous.
    - text: No error, and about half of the answers are right.
      right: true
      remark: Every id now means another word. In this notebook the words are the same, and it's people's
        sentences that are new.
    - text: The model learns the new ids by itself.
      remark: Nothing is learned when a model only answers.
- name: set-of-words
  taught: "06"
  question: Two reviews have the same words in another order, and opposite labels. How many of such twins can a
    model without
    positions get right?
  options:
    - text: Exactly half.
      right: true
      remark: Both get the same answer, and it's right for one of them. In this notebook that number is in a table.
    - text: None, since it can't decide.
      remark: It decides, in the same way for both.
    - text: It depends on the training.
      remark: Training changes the answer, and it stays the same for both.
- name: counting-as-a-baseline
  taught: "01"
  question: Naive Bayes adds up a number for each word of a review. What does a number above zero mean?
  options:
    - text: The word is frequent.
      remark: A word that's equally frequent in both classes gets about zero, however frequent it is.
    - text: The word is a positive adjective.
      remark: No word list is used. Any word that goes with praise gets a positive number.
    - text: In training, the word was more frequent in positive reviews than in negative ones.
      right: true
      remark: The logarithm of a ratio is above zero if the ratio is above one. Logistic regression, in this
        notebook, finds its numbers in another way.
"""
