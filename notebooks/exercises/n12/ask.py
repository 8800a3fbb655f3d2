"""Exercises of notebook 12, ablations. The answers stand beside it, in `answers`."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.n12 import probes

# ---------------------------------------------------------------- 12.1 repair: what the test split chose

def _setting(case: Case) -> str:
    """The setting whose number is furthest from right."""
    got, right = case.answer, case.expected
    i = int((got - right).abs().argmax())
    return f"setting {i} (from 0) gets {got[i]:.4f}, expected {right[i]:.4f}."


def _above(case: Case) -> str:
    gap = 100 * (case.answer - case.expected).mean().item()
    way = "above" if gap > 0 else "below"
    return f"on average your settings are {abs(gap):.2f} points {way} what they should be."


REPORT = Exercise(
    given="best-of-all", probes=probes.report_probes,
    signature="report(validation (setting, seed, epoch), test (setting, seed, epoch), accuracies) -> (setting,)",
    mistakes=(
        Mistake("best-of-all", _above, "The test split has chosen, and more than once."),
        Mistake("epoch-on-test", _above, "The seeds are averaged now. The epoch is still chosen by the test accuracy; "
                "validation has to choose it."),
        Mistake("epoch-on-test-mean", _above, "The seeds were averaged first, and the best test epoch of the mean was "
                "taken. That is still the test split choosing; validation has to choose."),
        Mistake("seed-on-test", _above, "The epoch is chosen correctly. But you report the seed with the highest test "
                "accuracy, and a different setting may have had less luck. Take the mean."),
        Mistake("best-seed", _setting, "You report the seed that was best on validation. That is honest, but it is only "
                "one seed: to compare settings you need the mean over all of them."),
        Mistake("worst-seed", _setting, "You report the seed that was worst on the test split. That is a choice too. Take "
                "the mean of all seeds."),
        Mistake("median-seed", _setting, "You took the median of the seeds. The exercise asks for their mean."),
        Mistake("validation-reported", _above, "That is the validation accuracy of the chosen epochs. It was chosen for "
                "being high, so it is too high; the exercise asks for the test accuracy at the same epochs."),
        Mistake("best-validation", _above, "That is the highest validation accuracy of any seed and epoch. Validation "
                "chooses the epoch; the test accuracy there is reported, as a mean over the seeds."),
        Mistake("last-epoch", _setting, "You took the last epoch of each run. That's honest, but the exercise asks for the "
                "one where the validation accuracy was highest."),
        Mistake("mean-of-epochs", _setting, "You averaged over the epochs. Only one epoch of each run is reported, the one "
                "that validation chose."),
        Mistake("lowest", _setting, "The epoch with the lowest validation accuracy was taken. An accuracy isn't a loss: "
                "high is good."),
        Mistake("one-epoch-a-setting", _setting, "All seeds of a setting were read at the same epoch, the best of their "
                "mean validation accuracy. Each seed is a separate run, with its own epoch."),
        Mistake("first-seeds-epoch", _setting, "All seeds were read at the epoch that the first seed chose. Each seed "
                "chooses by its own validation accuracies."),
        Mistake("one-epoch-for-all", _setting, "All settings and seeds were read at one and the same epoch. Each run has "
                "its own best epoch: argmax along the last axis."),
        Mistake("summed", _setting, "The seeds were added. Divide by their number."),
    ),
    properties=(
        Property(lambda case: (case.answer.numpy() > case.inputs[1].max() + 1e-6).any(), _setting,
                 "Some numbers of yours are above every test accuracy. Test accuracies, or their mean, are what is "
                 "reported."),
        Property(lambda case: (case.answer.numpy() < case.inputs[1].min() - 1e-6).any(), _setting,
                 "Some numbers of yours are below every test accuracy. Test accuracies, or their mean, are what is "
                 "reported."),
        Property(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _setting, "Go through one setting by hand: "
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

def _half(case: Case) -> str:
    return f"half the interval is {100 * case.answer[1]:.3f} points, expected {100 * case.expected[1]:.3f}."


def _gap(case: Case) -> str:
    return f"your difference is {100 * case.answer[0]:.3f} points, expected {100 * case.expected[0]:.3f}."


def _both(case: Case) -> str:
    return f"you return {case.answer[0]:.4f} and {case.answer[1]:.4f}."


DIFFERENCE = Exercise(
    probes=probes.difference_probes, forbidden=("course_utils.results.difference",),
    signature="difference_interval(first (seed, review), second (other seeds, the same reviews), 1 = judged rightly, "
    "factor) -> difference, half of the interval",
    mistakes=(
        Mistake("unpaired", _half, "This is the interval for models that were scored on *different* reviews. Here a hard "
                "review is hard for both models, and that cancels in the difference: subtract review by review first."),
        Mistake("unpaired-means", _half, "The variance over the reviews was computed separately for each model, and the "
                "two were added, as for models scored on *different* reviews. A hard review is hard for both models, and "
                "that cancels in the difference: subtract review by review first, then one variance."),
        Mistake("halves-added", _half, "You added the two models' own intervals, which amounts to checking whether they "
                "overlap. That is too wide: variances add, not widths, and hard reviews cancel in the difference."),
        Mistake("only-reviews", _half, "The seeds are missing: only the choice of reviews is counted."),
        Mistake("only-seeds", _half, "The reviews are missing: only the spread between the seeds is counted."),
        Mistake("seeds-of-the-first", _half, "The seeds of the second model are missing. The baseline's seeds were drawn "
                "too."),
        Mistake("seeds-of-the-second", _half, "The seeds of the first model are missing."),
        Mistake("spread-of-one", _half, "The variances between seeds are those of single seeds. The mean of several varies "
                "less: divide each by its number of seeds."),
        Mistake("divided-by-seeds", _half, "The squared distances of the seeds were averaged over all of them, as NumPy's "
                "var does unless told ddof=1. With the mean taken from the same values they are divided by one less; with "
                "three seeds that matters."),
        Mistake("reviews-times-seeds", _half, "All seeds judged the same reviews, so more seeds don't make more reviews: "
                "divide by the number of reviews, not by reviews times seeds."),
        Mistake("all-in-one", _half, "The accuracies of both models went into one variance. Then the difference itself "
                "counts as spread. Take each model's seeds separately, and add."),
        Mistake("seeds-paired", _half, "The seeds were subtracted in pairs. Seed 0 of one model has nothing in common with "
                "seed 0 of the other; reviews are paired, seeds are not. Take two variances, one for each model."),
        Mistake("one-seed", lambda case: f"{_gap(case)[:-1]}, and {_half(case)}", "Only the first seed of each model was "
                "compared review by review. Take the mean over the seeds first."),
        Mistake("seed-for-the-reviews", _half, "The difference is right. But the variance over the reviews was taken from "
                "the first seed of each model; take it from the mean over the seeds, which is what is reported."),
        Mistake("not-divided", _half, "This is how much single reviews vary. The mean of n varies less: divide the variance "
                "by the number of reviews."),
        Mistake("not-centred", _half, "For the reviews you took the mean square. For the variance, subtract the squared "
                "mean from it."),
        Mistake("widths-added", _half, "Three standard deviations were added. Independent sources of chance add their "
                "variances: add the squares, then take the square root."),
        Mistake("no-root", _half, "This uses the variance. The interval uses its square root."),
        Mistake("another-factor", _half, "You took 1.96 in place of `factor`. With three seeds we know the spread only "
                "roughly, and 1.96 gives an interval that is too narrow."),
        Mistake("no-factor", _half, "This is one standard error. Multiply by `factor`."),
        Mistake("whole-width", _half, "This is the whole width; return half of it, the number after ±."),
        Mistake("sign", _gap, "The sign is reversed: first model minus second."),
        Mistake("without-sign", _gap, "The sign is gone. When the first model is worse, the difference is negative."),
        Mistake("two-ends", _both, "Those are the two ends of the interval. The exercise asks for the difference and half "
                "of the width."),
        Mistake("swapped", _both, "The two are swapped: the difference comes first."),
        Mistake("points", _both, "Those are percentages. Leave both as fractions, from 0 to 1."),
    ),
    properties=(
        Property(lambda case: abs(case.answer[0] - case.expected[0]) > 1.2e-4, _gap, "It is the mean accuracy of the first "
                 "model over seeds and reviews, minus the same for the second."),
        Property(lambda case: case.answer[1] <= 0, lambda case: f"half the interval is {case.answer[1]:.4f}.",
                 "A width is positive."),
        Property(lambda case: abs(case.answer[1] - case.expected[1]) > 1e-4, lambda case: "the difference is right, but "
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


HOLM = Exercise(
    probes=probes.holm_probes,
    signature="survivors(p_values, a list; level, such as 0.05) -> list of True or False, in the order of p_values",
    mistakes=(
        Mistake("uncorrected", _verdict_on, "Each p-value was compared with the level alone. Out of twenty comparisons "
                "with nothing behind them, one survives that test on average."),
        Mistake("bonferroni", _verdict_on, "Each was compared with level / m. That is Bonferroni's correction, which is "
                "sound too, but keeps fewer: in Holm's, the bar rises after each survivor."),
        Mistake("no-stop", _verdict_on, "It is below its own bar, but a smaller p-value was not. Stop at the first that "
                "fails: nothing after it can survive."),
        Mistake("step-up", _verdict_on, "You began with the largest p-value and kept everything below the first that "
                "passed. That is Hochberg's method, which assumes more about the comparisons. Holm begins with the "
                "smallest and stops at the first that fails."),
        Mistake("benjamini-hochberg", _verdict_on, "The bar of rank r was level · r / m. That is Benjamini and Hochberg's "
                "method: it bounds the expected proportion of false ones among the survivors, and lets more through than "
                "Holm."),
        Mistake("rising-with-stop", _verdict_on, "The bar of rank r was level · r / m, stopping at the first that fails. "
                "Holm's bars are level / m, level / (m − 1), …: divide by how many are left."),
        Mistake("sidak", _verdict_on, "Your bars are 1 − (1 − level)^(1/k), for independent comparisons. Comparisons with "
                "one and the same default are not independent; Holm's level / k doesn't need them to be."),
        Mistake("bars-reversed", _verdict_on, "The bars go the wrong way: the smallest p-value meets the strictest bar, "
                "level / m, and the last one the level itself."),
        Mistake("largest-first", _verdict_on, "The largest p-value came first and met the strictest bar. Sort in ascending "
                "order."),
        Mistake("given-order", _verdict_on, "The bars were handed out in the order in which the p-values came. Sort first, "
                "or the answer depends on the order of the table's rows."),
        Mistake("answer-sorted", _verdict_on, "The verdicts are right, but in the order of the sorted p-values. Put each "
                "one back at the position its p-value came from."),
        Mistake("one-fewer", _verdict_on, "The bars are one step too high: the smallest p-value is compared with level / m, "
                "not level / (m − 1)."),
        Mistake("one-more", _verdict_on, "The bars are one step too low: the smallest p-value is compared with level / m, "
                "and the last with the level itself."),
        Mistake("stopped-late", _verdict_on, "The first p-value above its bar was still let through. It doesn't survive "
                "either: stop before it."),
        Mistake("turned-round", _verdict_on, "True and False are swapped. A small p-value survives."),
        Mistake("fixed-level", _verdict_on, "The level is an input; you took 0.05 every time."),
        Mistake("adjusted", _verdict_on, "Those are p-values adjusted by Holm's method. Compare them with the level, and "
                "return True or False."),
    ),
    properties=(
        Property(lambda case: ((case.answer != 0) & (case.answer != 1)).any(), _verdict_on,
                 "Return True or False for each p-value."),
        Property(_let_through, lambda case: f"at the level {case.inputs[1]} your answer lets {max(_let_through(case)):.4f} "
                 "through.", "That is above the level itself. Is each verdict at the position of its p-value?"),
        Property(lambda case: any(case.answer[i] and not case.answer[j] and p > q for i, p in enumerate(case.inputs[0])
                 for j, q in enumerate(case.inputs[0])), _verdict_on, "A larger p-value survives while a smaller one "
                 "doesn't. That can't be right."),
        Property(lambda case: (case.answer != case.expected).any() and case.inputs[1] != 0.0625, _verdict_on,
                 "Write down the sorted p-values in a row, with the bars below them: level / m, level / (m − 1), …, level. "
                 "Where is the first that is too large?"),
        Property(lambda case: (case.answer != case.expected).any(), lambda case: f"{_verdict_on(case)} Its bar is "
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

def _count(case: Case) -> str:
    words, numbers, budget = case.inputs
    got, right = case.answer.tolist(), case.expected.tolist()
    return (f"{words} words, {numbers} numbers each, at most {budget:,} parameters: you return {got[0]:,.6g} and "
            f"{got[1]:,.10g}, expected {right[0]:,.0f} and {right[1]:,.0f}.")


def _next_fits(case: Case) -> bool:
    """Whether the answer counts rightly, for a width that is one or more too small, and for a small budget."""
    (words, numbers, budget), (width, count) = case.inputs, (int(number) for number in case.answer.tolist())
    return budget < 1e6 and 0 < width < case.expected[0] and count == probes.parameters_of(words, numbers, width)


WIDTH = Exercise(
    probes=probes.width_probes, tolerance=1e-6,
    signature="equal_width(vocab_size, d_model, budget) -> width, number of parameters",
    mistakes=(
        Mistake("one-bias", _count, "You counted one bias for each gate. PyTorch's LSTM has two, bias_ih and bias_hh. One "
                "would be enough, but both count."),
        Mistake("no-bias", _count, "The biases of the gates are missing: two for each gate, as long as the state."),
        Mistake("one-gate", _count, "You counted one gate. An LSTM has four of everything: input, forget, cell and output."),
        Mistake("three-gates", _count, "A GRU has three gates; an LSTM has four."),
        Mistake("no-state", _count, "The matrices from the state to the gates are missing, width times width for each. "
                "They're what makes the layer recurrent."),
        Mistake("no-input", _count, "The matrices from the word vectors to the gates are missing, width times d_model for "
                "each."),
        Mistake("square", _count, "The word vectors were taken to be as wide as the state. The input matrix of a gate has "
                "width times d_model numbers."),
        Mistake("no-embedding", _count, "The word vectors are missing. They are parameters too, and here they make up most "
                "of them."),
        Mistake("no-padding", _count, "One word was left out, perhaps the padding. Its row stays zero, but it's part of "
                "the parameters, and PyTorch counts it."),
        Mistake("no-output", _count, "The Linear layer at the end is missing."),
        Mistake("no-output-bias", _count, "The bias of the Linear layer is missing: one for each of the two classes."),
        Mistake("one-logit", _count, "You counted one logit. The Linear layer has two, one for each class."),
        Mistake("output-from-words", _count, "The Linear layer reads the LSTM's state, `width` numbers, not d_model."),
        Mistake("one-too-wide", _count, "The width is one too large: it's the first that exceeds the budget. The largest "
                "that fits is one less."),
        Mistake("nearest", _count, "You took the width that comes closest to the budget. In one of the cases that exceeds "
                "it; the exercise asks for the largest that fits."),
        Mistake("below", _count, "A width that uses up the budget exactly still fits: 'at most' doesn't mean 'less "
                "than'."),
        Mistake("budget-returned", _count, "The width is right; the second number must be the number of parameters at this "
                "width, not the budget."),
        Mistake("swapped", _count, "The two are swapped: the width comes first."),
    ),
    properties=(
        Property(lambda case: case.answer[0] != case.answer[0].round(), _count, "A width is a whole number; round down."),
        Property(lambda case: case.answer[1] > case.inputs[2], _count, "By your own count, that is more than the budget."),
        Property(_next_fits, _count, "Your count for this width is right, but the next width fits as well: at most means "
                 "<=, also where a width uses up the budget exactly. Does the search stop too early, or compare with <?"),
        Property(lambda case: (case.answer != case.expected).any() and case.inputs[2] < 1e6, _count,
                 "Compare your count for this width with sum(p.numel() for p in nn.LSTM(d_model, width).parameters()), then "
                 "add the word vectors and the Linear layer."),
        Property(lambda case: (case.answer != case.expected).any(), _count, "Small budgets are right; for this large one "
                 "the width is not. Does your search end too early, at the end of a range?"),
    ),
    hints=(
        "Three parts: the word vectors, the LSTM, the Linear layer. Write down how many parameters each has for a given "
        "width.",
        "One gate: width · d_model + width · width + 2 · width. There are four.",
        "Use a loop: increase the width by one as long as the next one still fits.",
    ),
)

EXERCISES = (REPORT, DIFFERENCE, HOLM, WIDTH)
