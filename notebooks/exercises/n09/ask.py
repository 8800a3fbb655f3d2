"""Exercises of notebook 09, real reviews. The answers stand beside it, in `answers`."""

import math

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

# ---------------------------------------------------------------- 9.2 an entry of TF-IDF

def _one(case: Case) -> str:
    return f"{case.answer.item():.3f}"


TFIDF = Exercise(
    kind="number", tolerance=2e-3, signature="a number between 0 and 1: the entry for 'dull'",
    mistakes=(
        Mistake("counted-once", lambda case: f"{_one(case)}: the word was counted once.", "'dull' occurs twice in this "
                "review, so its tf is 2."),
        Mistake("not-divided", lambda case: f"{_one(case)} is tf times idf.", "The row still has to be divided by its "
                "length, so that no entry is above one."),
        Mistake("no-idf", lambda case: f"{_one(case)}: this uses the counts alone.", "Each count is multiplied by the idf "
                "of its word before the row is divided by its length."),
        Mistake("divided-by-sum", lambda case: f"{_one(case)}: the row was divided by the sum of its entries.",
                "The length of a row is the root of the sum of the squares."),
        Mistake("no-plus-one", lambda case: f"{_one(case)}: the idf was taken without '+ 1'.", "In section 5 it's ln((1 + "
                "n) / (1 + df)) + 1; without the 1, a word of every review would count for nothing."),
        Mistake("other-word", lambda case: f"{_one(case)} is the entry for 'moving'.", "It occurs once here; 'dull' occurs "
                "twice."),
        Mistake("new-idf", lambda case: f"{_one(case)}: the idf was worked out again, with the fifth review "
                "included.", "Use the idf values from the first four reviews."),
        Mistake("no-root", lambda case: f"{_one(case)}: the row was divided by the sum of the squares.",
                "The length of a row is the root of that."),
        Mistake("but", lambda case: f"{_one(case)} is the entry for 'but'.", "The exercise asks for 'dull'."),
        Mistake("logarithm-of-tf", lambda case: f"{_one(case)}: the tf was taken as 1 + ln 2.",
                "That's a common variant (sublinear tf). Here tf is the count itself, 2."),
        Mistake("not-smoothed", lambda case: f"{_one(case)}: the idf was taken as ln(n / df) + 1.",
                "In section 5 one is added to n and to df: ln((1 + n) / (1 + df)) + 1."),
        Mistake("other-logarithm", lambda case: f"{_one(case)}: the idf was taken with the logarithm to base 10.",
                "It is the natural one, ln."),
        Mistake("old-length", lambda case: f"{_one(case)}: 'dull' is counted twice, but the row was divided by 2.749.",
                "That's the length of the row of review 0. Work out the length of this one."),
        Mistake("other-review", lambda case: f"{_one(case)} is the entry in 'not dull but moving'.",
                "The fifth review has 'dull' twice, and no 'not'."),
    ),
    properties=(
        Property(lambda case: not 0 <= case.answer <= 1, lambda case: f"{_one(case)} isn't between 0 and 1.",
                 "A row has length one, so none of its entries is above one."),
        Property(lambda case: case.answer < 0.444, lambda case: f"{_one(case)} is less than in 'not dull but moving'.",
                 "Here two of the four words are 'dull', so it weighs more."),
    ),
    hints=(
        "The idf values are in the table: 1.223 for 'dull' and 'moving', 1.511 for 'but'.",
        "Before the division the row is 2 · 1.223, 1.511, 1.223.",
        "The length is the root of 2.446² + 1.511² + 1.223² = 9.76.",
    ),
)

# ---------------------------------------------------------------- 9.1 an interval over seeds

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


INTERVAL = Exercise(
    probes=_interval_probes, tolerance=1e-4, forbidden=("course_utils.results.interval",),
    signature="seed_interval(accuracies, a list of numbers between 0 and 1; reviews, their number) -> mean, half of the "
    "interval",
    mistakes=(
        Mistake("only-reviews", lambda case: f"{_half(case)}.", "The seeds are missing: only the draw of the "
                "reviews is counted."),
        Mistake("only-seeds", lambda case: f"{_half(case)}.", "The reviews are missing: only the spread between the seeds "
                "is counted."),
        Mistake("divided-by-seeds", lambda case: f"{_half(case)}.", "The variance between seeds was divided by their "
                "number. The mean comes from the same values, so divide by one less."),
        Mistake("spread-of-one", lambda case: f"{_half(case)}.", "This is how much one seed varies. The mean of several "
                "varies less: divide its variance by their number."),
        Mistake("standard-deviations-added", lambda case: f"{_half(case)}.", "Two standard deviations were added. "
                "For independent sources of chance the variances add up: add the squares, then take the root."),
        Mistake("deviation-for-variance", lambda case: f"{_half(case)}.", "The standard deviation between the seeds was "
                "used where their variance belongs: square it before you divide by the number of seeds."),
        Mistake("one-standard-error", lambda case: f"{_half(case)}.", "This is one standard deviation. 95 out of 100 "
                "draws lie within 1.96 of them."),
        Mistake("whole-width", lambda case: f"{_half(case)}.", "This is the whole width. Return half of it, the number "
                "after ±."),
        Mistake("reviews-times-seeds", lambda case: f"{_half(case)}.", "All seeds were scored on the same reviews, so more "
                "seeds don't make more reviews: divide by `reviews`, not by reviews times seeds."),
        Mistake("no-root", lambda case: f"{_half(case)}.", "This is a variance. The interval needs its square root."),
        Mistake("two-ends", _both, "Those are the two ends of the interval. Return its middle, the mean, and half of its "
                "width."),
        Mistake("swapped", _both, "These are the wrong way round: the mean comes first."),
        Mistake("percent", _both, "The accuracies are fractions between 0 and 1. Leave both results like that."),
    ),
    properties=(
        Property(lambda case: abs(case.answer[0] - case.expected[0]) > 2e-4, lambda case: "your first result is "
                 f"{case.answer[0]:.4f}, expected {case.expected[0]:.4f}, the mean.", "Add up the accuracies and divide by "
                 "how many there are."),
        Property(lambda case: case.answer[1] < 0, lambda case: f"half the interval is {case.answer[1]:.4f}.",
                 "A width is positive."),
        Property(lambda case: abs(case.answer[1] - case.expected[1]) > 1e-4, lambda case:
                 f"the mean is right, but {_half(case)}.", "Work out the two variances separately and compare each with "
                 "section 2. The factor before the root is 1.96."),
    ),
    hints=(
        "Two variances: mean · (1 − mean) / reviews, and the variance between seeds divided by the number of seeds.",
        "The variance between seeds: squared distances from the mean, added up and divided by the number of seeds minus "
        "one.",
        "Half the interval is 1.96 times the square root of their sum.",
    ),
)

# ---------------------------------------------------------------- 9.4 repair: shuffling

def _shuffle_probes(generator: torch.Generator) -> list[tuple]:
    """Ragged ids, padding 0, and a mask; then padding 1, and a word with the id 0."""
    lengths = torch.tensor([7, 3, 5, 1])
    mask = torch.arange(7) < lengths[:, None]
    ids = torch.stack([torch.randperm(490, generator=generator)[:7] + 2 for _ in lengths])     # rows without repeats
    other = ids.masked_fill(~mask, 1)
    other[0, 2] = 0
    return [(ids * mask, mask), (other, mask)]


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


SHUFFLE = Exercise(
    given="columns", probes=_shuffle_probes, observe=_observe_shuffle,
    signature="shuffle_words(token_ids (batch, seq_len), attention_mask (batch, seq_len), True = real word) -> token_ids "
    "(batch, seq_len)",
    mistakes=(
        Mistake("columns", _padding_inside, "All positions were shuffled, padding included. Then the mask no longer says "
                "which tokens are words."),
        Mistake("rows", lambda case: f"only {100 * case.got['rows with their own words']:.0f} of 100 rows still have their "
                "own words.", "The reviews were shuffled, not their words: the labels now belong to different reviews."),
        Mistake("reversed", lambda case: f"in {CALLS} calls your first row always came out in the same order.",
                "Reversing a review isn't shuffling it: neighbours stay neighbours, and 'not moving' becomes 'moving "
                "not'."),
        Mistake("sorted", lambda case: f"in {CALLS} calls your first row came out in one and the same order, sorted.",
                "Sorted ids aren't in random order: frequent words have small ids, so the model sees a new regularity."),
        Mistake("unchanged", lambda case: f"your first row came out as it went in, in each of {CALLS} calls.",
                "Nothing is shuffled. If you shuffle a copy of a row, write it back."),
        Mistake("with-replacement", lambda case: f"only {100 * case.got['rows with their own words']:.0f} of 100 rows still "
                "have all of their words.", "Words are drawn with replacement, so some occur twice and some are lost. Use a "
                "permutation: torch.randperm."),
    ),
    properties=(
        Property(lambda case: case.got["rows with their words at the end"] > 0, lambda case: "your rows have their own "
                 "words at the end and the padding before them.", "The mask still says that the words come "
                 "first, so the padding must stay behind them."),
        Property(lambda case: case.got["rows with their own words"] < 1 and case.inputs[0][-1, -1] == 0, lambda case:
                 f"{_lost(case)} of 100 rows lost or gained words.",
                 "Each row must keep exactly its own real words, at its beginning."),
        Property(lambda case: case.got["rows with their own words"] < 1, lambda case: "your rows keep their words when the "
                 f"padding has id 0. When it has id 1, and a word id 0, {_lost(case)} of 100 rows lose or gain words.",
                 "An id doesn't tell you what is padding. Use the mask."),
        Property(lambda case: case.got["rows with padding inside"] > 0, _padding_inside, "Padding stays at the end."),
        Property(lambda case: case.got["rows with their padding"] < 1, lambda case: "in "
                 f"{100 * (1 - case.got['rows with their padding']):.0f} of 100 rows the positions after the words have "
                 "changed.", "Where the mask is False, everything stays as it is."),
        Property(lambda case: case.unmoved > 0, lambda case: "your first row often comes out as it went in.",
                 "With seven words that should happen about once in five thousand calls."),
        Property(lambda case: case.orders < 3, lambda case: f"in {CALLS} calls your first row came out in "
                 f"{'only one order' if case.orders == 1 else 'only a few orders'}.", "Each call needs a fresh random "
                 "order, and all orders must be possible."),
        Property(lambda case: case.got["few words move"] > 0, lambda case: "on average more than two of the seven words of "
                 "your first row stay where they were.", "In a random order, on average only one word stays in place. "
                 "Swapping two words, or shuffling only some of them, isn't enough: every order must be possible, "
                 "torch.randperm(n)."),
        Property(lambda case: case.got["orders of three words"] < 6, lambda case: f"in {CALLS} calls the three words of "
                 f"your second row came out in only {case.got['orders of three words']:.0f} of their 6 orders.",
                 "Every order must be possible, the given one included."),
        Property(lambda case: case.got["stuck rows"] > 0, lambda case: f"in {CALLS} calls some words never reached some "
                 f"positions, in {case.got['stuck rows']:.0f} of 4 rows.", "In every row, each word must be able to reach "
                 "each of the row's positions, the first and the last included."),
        Property(lambda case: case.sorted > 0 or case.got["turned round"] > 0, lambda case: "your first row often comes out "
                 f"{'sorted' if case.sorted > 0 else 'reversed'}.", "All orders should be equally likely."),
    ),
    hints=(
        "Look at one row before and after. Where is the padding?",
        "How many real words has row i? attention_mask[i].sum() tells you.",
        "For each row: n real words, order = torch.randperm(n), and in a copy you rewrite only the first n positions.",
    ),
)

# ---------------------------------------------------------------- 9.3 who wins where they differ

def _paired_probes(generator: torch.Generator) -> list[tuple]:
    one = torch.rand(900, generator=generator) < 0.91
    other = torch.where(torch.rand(900, generator=generator) < 0.7, one, torch.rand(900, generator=generator) < 0.6)
    return [(one, other), (other[:301], one[:301]), (one[:50], one[:50].clone())]


def _gap(case: Case) -> str:
    return f"your difference is {100 * case.answer[0]:.3f} points, expected {100 * case.expected[0]:.3f}"


def _width(case: Case) -> str:
    return f"half the interval is {100 * case.answer[1]:.3f} points, expected {100 * case.expected[1]:.3f}"


def _differ(case: Case) -> float:
    """The fraction of the reviews on which the two models differ."""
    return (case.inputs[0] != case.inputs[1]).double().mean().item()


def _only_first(case: Case) -> float:
    """The fraction of the reviews that only the first model gets right."""
    return (case.inputs[0] & ~case.inputs[1]).double().mean().item()


def _unpaired(case: Case) -> float:
    """Half the interval if each model had been scored on reviews of its own."""
    return 1.96 * math.sqrt(sum(right.double().var().item() for right in case.inputs) / len(case.inputs[0]))


PAIRED = Exercise(
    probes=_paired_probes, tolerance=1e-4,
    signature="compare(first_right (review,), second_right (review,), both boolean) -> difference, half of the interval",
    mistakes=(
        Mistake("unpaired", lambda case: f"{_width(case)}.", "This is the interval for models scored on *different* "
                "reviews. Here both models judge most reviews the same, and those say nothing about the difference."),
        Mistake("turned-round", lambda case: f"{_gap(case)}.", "The sign is reversed: +1 is for the first model."),
        Mistake("without-sign", lambda case: f"{_gap(case)}.", "This counts how often they differ, whoever is right. The "
                "sign says which one is right."),
        Mistake("of-differing", lambda case: f"{_gap(case)}.", "The mean was taken over the reviews on which they differ. "
                "The exercise asks for the difference in accuracy: divide by all reviews."),
        Mistake("among-differing", lambda case: f"{_gap(case)}.", "Only the reviews on which the two differ were kept. The "
                "exercise asks for the mean over all reviews, zeros included. (Two models that never differ would give "
                "0 / 0.)"),
        Mistake("binomial", lambda case: f"the difference is right, but {_width(case)}.", "The formula of section 2 is for "
                "an accuracy, a mean of zeros and ones. These differences can also be -1, so take their own standard "
                "deviation."),
        Mistake("divided-by-n", lambda case: f"the difference is right, but {_width(case)}.", "The standard deviation was "
                "divided by n. Divide by the square root of n."),
        Mistake("counted-not-shared", lambda case: f"your difference is {case.answer[0]:.0f} reviews.",
                "Divide by the number of reviews: a difference in accuracy is a proportion."),
        Mistake("one-standard-error", lambda case: f"{_width(case)}.", "This is one standard error; 95 out of 100 draws lie "
                "within 1.96."),
        Mistake("no-root-of-n", lambda case: f"{_width(case)}.", "This is how much single reviews vary. The mean of n "
                "varies less, by the root of n."),
        Mistake("not-centred", lambda case: f"{_width(case)}.", "This uses the mean square alone. For the variance, "
                "subtract the squared mean from it."),
        Mistake("no-root", lambda case: f"{_width(case)}.", "This uses the variance of the differences. The standard "
                "deviation is its square root."),
        Mistake("two-ends", _both, "Those are the two ends of the interval. Return the difference and half of the "
                "width."),
        Mistake("swapped", _both, "These are the wrong way round: the difference comes first."),
    ),
    properties=(
        Property(lambda case: abs(case.answer[0]) > 1, lambda case: f"{_gap(case)}.", "The mean of numbers from -1 to 1 "
                 "can't be that large. In uint8 there is no -1: 0 - 1 gives 255. Make both float first."),
        Property(lambda case: _differ(case) > 0 and abs(case.answer[0] - _differ(case)) < 1e-4, lambda case:
                 f"{_gap(case)}.", "This counts every review on which they differ, whoever is right: the -1s have lost "
                 "their sign, as with ^, != or abs."),
        Property(lambda case: abs(case.answer[0] - _only_first(case)) < 1e-4 < _differ(case) - _only_first(case),
                 lambda case: f"{_gap(case)}.", "This counts the reviews that only the first has right, as +1. Those that "
                 "only the second has right count as -1."),
        Property(lambda case: abs(case.answer[0] - case.expected[0]) > 1.2e-4, lambda case: f"{_gap(case)}.",
                 "It's the first model's accuracy minus the second's."),
        Property(lambda case: abs(case.answer[1] / _unpaired(case) - 1) < 0.03 < _unpaired(case) / case.expected[1] - 1,
                 lambda case: f"the difference is right, but {_width(case)}.", "The variances of the two accuracies were "
                 "added, as for models scored on different reviews. Take the variance of the differences."),
        Property(lambda case: abs(case.answer[1] - case.expected[1]) > 1e-4, lambda case: "the difference is right, but "
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

EXERCISES = (INTERVAL, TFIDF, PAIRED, SHUFFLE)
