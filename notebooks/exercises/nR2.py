"""Exercises and quiz of Part II's review."""

import math
import re

import torch
from scipy import stats

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import digit, drawn, gap, items_of, one_tensor, says_of, what

# ---------------------------------------------------------------- R2.1 integrated gradients, from memory

def integrated_gradients(function, x, baseline, steps):
    total = torch.zeros_like(x)                                            # (token, d_model)
    for step in range(steps):
        share = (step + 0.5) / steps                                       # the middle of each stretch of the way
        point = (baseline + share * (x - baseline)).detach().requires_grad_()
        (gradient,) = torch.autograd.grad(function(point), point)          # (token, d_model)
        total = total + gradient
    return ((x - baseline) * total / steps).sum(dim=-1)                    # (token,)


class Judge:
    """A made-up model: word vectors (token, d_model) -> one number. Every word counts, and neighbours change each other."""

    def __init__(self, generator: torch.Generator, tokens: int, width: int):
        signs = torch.tensor([1.0, -1.0, 1.0, 1.0])[torch.arange(tokens) % 4]
        self.out = (1 + torch.rand(tokens, generator=generator)) * signs
        self.into = torch.randn(width, generator=generator)
        self.shape = (tokens, width)

    def __call__(self, vectors):
        if not isinstance(vectors, torch.Tensor) or tuple(vectors.shape) != self.shape:
            shape = tuple(vectors.shape) if isinstance(vectors, torch.Tensor) else what(vectors)
            raise TypeError(f"expected vectors of the shape {self.shape}, (token, d_model), in function(vectors); got "
                            f"{shape}")
        seen = torch.tanh(vectors @ self.into.to(vectors.dtype))           # (token,)
        return (self.out.to(vectors.dtype) * seen * (1 + 0.5 * seen.roll(1))).sum()


def gradient_probes(generator: torch.Generator) -> list[tuple]:
    """Four words, then three, with a baseline that isn't zero; one word with a baseline of zeros."""
    def vectors(tokens, width):
        return torch.randn(tokens, width, generator=generator)
    return [(Judge(generator, 4, 3), vectors(4, 3) + 0.5, vectors(4, 3) / 2 + 0.4, 160),
            (Judge(generator, 3, 5), vectors(3, 5), vectors(3, 5) / 2 - 0.4, 120),
            (Judge(generator, 1, 4), vectors(1, 4) + 0.5, torch.zeros(1, 4), 120)]


def observe_gradients(function, judge, x, baseline, steps):
    """The numbers that an answer gives, in whatever form they come."""
    output = function(judge, x, baseline, steps)
    return None if output is None else one_tensor(output, "one number for each token").detach()


def _mean_gradient(function, x, baseline, steps, change=lambda value: value):
    total = torch.zeros_like(x)
    for step in range(steps):
        point = (baseline + (step + 0.5) / steps * (x - baseline)).detach().requires_grad_()
        total = total + torch.autograd.grad(change(function(point)), point)[0]
    return total / steps


def _never_cleared(function, x, baseline, steps):
    total, sum_so_far = torch.zeros_like(x), torch.zeros_like(x)
    for step in range(steps):
        point = (baseline + (step + 0.5) / steps * (x - baseline)).detach().requires_grad_()
        sum_so_far = sum_so_far + torch.autograd.grad(function(point), point)[0]
        total = total + sum_so_far
    return ((x - baseline) * total / steps).sum(dim=-1)


def _through_the_share(function, x, baseline, steps):
    total = torch.zeros_like(x)
    for step in range(steps):
        leaf, share = x.detach().clone().requires_grad_(), (step + 0.5) / steps
        total = total + torch.autograd.grad(function(baseline + share * (leaf - baseline)), leaf)[0]
    return ((x - baseline) * total / steps).sum(dim=-1)


def _at(place):
    def gradient_once(function, x, baseline, steps):
        point = place(x, baseline).detach().clone().requires_grad_()
        return ((x - baseline) * torch.autograd.grad(function(point), point)[0]).sum(dim=-1)
    return gradient_once


def _one_word_at_a_time(function, x, baseline, steps):
    found = []
    for i in range(len(x)):
        without = x.clone()
        without[i] = baseline[i]
        found.append(function(x) - function(without))
    return torch.stack(found).detach()


def _bent(bend):
    return lambda function, x, baseline, steps: (
        (x - baseline) * _mean_gradient(function, x, baseline, steps, bend)).sum(dim=-1)


def _shares(function, x, baseline, steps):
    found = integrated_gradients(function, x, baseline, steps)
    return found / found.sum()


def _fall(case: Case) -> float:
    """By how much the number grows from the baseline to the text."""
    judge, x, baseline, _ = case.inputs
    return (judge(x) - judge(baseline)).item()


def _is_off(case: Case) -> float:
    """How far the sum is from complete, in parts of the largest right number or of 1."""
    return abs(case.answer.sum().item() - _fall(case)) / max(1.0, case.expected.abs().max().item())


def _word(case: Case) -> str:
    i = int((case.answer - case.expected).abs().argmax())
    return f"word {i} of {len(case.expected)} gets {case.answer[i]:.3f}, expected {case.expected[i]:.3f}."


WHOLE = "((x - baseline) * total / steps).sum(dim=-1)"
SUMS = "your numbers sum to {total:.3f}; from the baseline to the text the function grows by {grows:.3f}."

GRADIENTS = ask(
    "R2.1", integrated_gradients, probes=gradient_probes, observe=observe_gradients, tolerance=2e-2,
    signature="integrated_gradients(function, x (token, d_model), baseline (token, d_model), steps) -> (token,); "
    "function(vectors (token, d_model)) -> one number",
    numbers=dict(total=lambda case: case.answer.sum().item(), grows=_fall, word=_word,
                 shape=lambda case: tuple(case.answer.shape), expected_shape=lambda case: tuple(case.expected.shape)),
    mistakes={
        "gradient-at-the-end": M(_at(lambda x, baseline: x), SUMS, "That is gradient × input: one gradient, at the text "
                                 "itself. Take it at many points on the way from the baseline, and their mean."),
        "gradient-at-the-start": M(_at(lambda x, baseline: baseline), SUMS, "You take one gradient, at the baseline. Take "
                                   "it at many points on the way to the text, and their mean."),
        "summed-over-steps": M({WHOLE: "((x - baseline) * total).sum(dim=-1)"}, SUMS, "The gradients of all steps are "
                               "added. An integral from 0 to 1 is their mean: divide by steps."),
        "not-summed-over-features": M({WHOLE: "(x - baseline) * total / steps"}, "you return {shape}, expected "
                                      "{expected_shape}.", "That's one number for each feature of each word. A word's "
                                      "number is the sum over its features."),
        "mean-over-features": M({WHOLE: "((x - baseline) * total / steps).mean(dim=-1)"}, SUMS, "You take the mean over the "
                                "features. Each is a part of the way: add them up."),
        "without-the-way": M({WHOLE: "(total / steps).sum(dim=-1)"}, SUMS,
                             "That is the mean slope. What a feature contributes is slope times the way it went: times (x − "
                             "baseline)."),
        "times-x": M({WHOLE: "(x * total / steps).sum(dim=-1)"}, SUMS,
                     "You multiply by x. The way begins at the baseline, so it's x − baseline, and they differ unless the "
                     "baseline is zero."),
        "from-zero": M(lambda function, x, baseline, steps: (x * _mean_gradient(
            function, x, torch.zeros_like(x), steps)).sum(dim=-1), SUMS, "Your way begins at zero. It should begin at the "
            "baseline: baseline + share · (x − baseline)."),
        "way-from-zero": M(lambda function, x, baseline, steps: ((x - baseline) * _mean_gradient(
            function, x, torch.zeros_like(x), steps)).sum(dim=-1), SUMS, "The points lie on the way from zero, share · x. "
                           "They should begin at the baseline: baseline + share · (x − baseline)."),
        "never-cleared": M(_never_cleared, SUMS, "backward() adds to .grad, so each step brings all the earlier gradients "
                           "along. Clear it after each step, or use torch.autograd.grad, which adds to nothing."),
        "through-the-share": M(_through_the_share, SUMS, "You take the gradient with respect to x, and by the chain rule "
                               "that's the gradient at the point times the share. Make the point itself the leaf: "
                               "point.detach().requires_grad_()."),
        "probability": M(_bent(torch.sigmoid), SUMS, "You put the number through a sigmoid first, so you share out a "
                         "probability. `function` gives log-odds, and those are to be shared out."),
        "reversed": M({WHOLE: "((baseline - x) * total / steps).sum(dim=-1)"}, SUMS, "The "
                      "sign is reversed: it's x − baseline, from the baseline to the text."),
        "absolute": M({WHOLE: "((x - baseline) * total / steps).sum(dim=-1).abs()"}, SUMS,
                      "You took absolute values. A word that speaks against the verdict has a negative number."),
        "length": M({WHOLE: "((x - baseline) * total / steps).norm(dim=-1)"}, SUMS, "You took the length over the features, "
                    "which has no sign, and lengths don't add up to anything. Take the sum."),
        "one-word-at-a-time": M(_one_word_at_a_time, SUMS, "You replace one word at a time and see how far the number "
                                "falls: that's occlusion, a good method too. Here it's the gradient on the way from the "
                                "baseline."),
        "shares": M(_shares, SUMS, "They were divided by their sum. Leave them as they are; then they add up to what "
                    "there's to be explained."),
    },
    rules=(
        R(lambda case: case.answer.shape != case.expected.shape, "you return {shape}, expected {expected_shape}.",
          "One number for each word."),
        R(lambda case: _is_off(case) > 2e-2, SUMS, "Completeness: the two must be equal. Mean of the gradients on the "
          "way, times (x − baseline), summed over features."),
        R(lambda case: gap(case) > 2e-2, _word, "The sum is right and its parts aren't: the way is a straight line, on "
          "which all words move at once."),
    ),
    hints=(
        "A loop over the steps. In each: a point between baseline and x, and the gradient there.",
        "point = (baseline + share * (x - baseline)).detach().requires_grad_(), where share goes from 0 to 1.",
        "(gradient,) = torch.autograd.grad(function(point), point); add it up, and divide by steps after the loop.",
        "return ((x - baseline) * mean_gradient).sum(dim=-1).",
    ),
)

# ---------------------------------------------------------------- R2.2 a paired comparison, from memory

def compare(first, second):
    differences = [one - other for one, other in zip(first, second)]       # one for each part
    n = len(differences)
    mean = sum(differences) / n
    variance = sum((one - mean) ** 2 for one in differences) / (n - 1)
    half = stats.t.ppf(0.975, n - 1) * math.sqrt(variance / n)
    sentence = "better" if mean - half > 0 else "worse" if mean + half < 0 else "open"
    return mean, half, sentence


SENTENCES = ("better", "worse", "open")


def comparison_probes(generator: torch.Generator) -> list[tuple]:
    """Accuracies in points, part by part: better, open, worse, of 3 to 6 parts. What both share varies most."""
    def two(parts, difference, spread):
        shared = 88 + 2 * torch.randn(parts, generator=generator)
        noise = torch.randn(parts, generator=generator)
        noise = spread * (noise - noise.mean()) / noise.std()
        second = shared - shared.mean() + 88
        first = second + difference + noise
        return tuple([round(value, 2) for value in one.tolist()] for one in (first, second))
    return [two(5, 1.5, 0.7), two(5, 1.0, 1.1), two(4, -2.2, 0.8), two(6, -0.8, 0.88), two(3, 1.2, 0.58)]


def observe_comparison(function, first, second):
    """The difference, half of the interval, and which of the three words: each found by what it says."""
    output = function(list(first), list(second))
    if output is None:
        return None
    parts = items_of(output, "three results: mean, half, sentence")
    if len(parts) != 3:
        raise TypeError(f"expected three results, mean, half and sentence; got {len(parts)}")
    said = str(parts[2]).strip().lower()
    if said not in SENTENCES:
        raise TypeError(f"expected 'better', 'worse' or 'open' as the sentence, got {what(parts[2])}")
    mean, half = (one_tensor(part, name).reshape(()) if one_tensor(part, name).numel() == 1 else one_tensor(part, name)
                  for part, name in zip(parts, ("mean", "half")))
    return {"difference": mean, "half": half, "sentence": SENTENCES.index(said)}


def _worked(first, second, spread=None, sentence=None, mean=None):
    """A comparison with one step changed."""
    differences = torch.tensor([one - other for one, other in zip(first, second)], dtype=torch.float64)
    middle = differences.mean().item() if mean is None else mean
    half = compare(first, second)[1] if spread is None else spread(differences)
    return middle, half, (sentence or _allowed)(middle, half)


def _allowed(mean, half):
    return "better" if mean - half > 0 else "worse" if mean + half < 0 else "open"


def _saying(sentence):
    return lambda first, second: _worked(first, second, sentence=sentence)


def _spread(how):
    return lambda first, second: _worked(first, second, how)


def _t(freedom: int, part: float = 0.975) -> float:
    return float(stats.t.ppf(part, freedom))


def _unpaired(freedom):
    def found(first, second):
        a, b = (torch.tensor(side, dtype=torch.float64) for side in (first, second))
        return _worked(first, second, lambda d: _t(freedom(len(d))) * math.sqrt((a.var() + b.var()).item() / len(d)))
    return found


def _error(d) -> float:
    return d.std().item() / math.sqrt(len(d))


def _said(case: Case) -> str:
    mine, right = (SENTENCES[int(part)] for part in (case.sentence, case.right["sentence"]))
    low, high = case.difference - case.half, case.difference + case.half
    return f"your interval goes from {low:.2f} to {high:.2f}, and you say {mine!r}, expected {right!r}."


HALF = "for {n} pairs half of your interval is {half:.3f}, expected {right_half:.3f}."

COMPARISON = ask(
    "R2.2", compare, probes=comparison_probes, observe=observe_comparison, tolerance=1e-3,
    forbidden=("scipy.stats.ttest_rel",),
    signature="compare(first, second) -> mean, half, sentence; first and second are lists of accuracies in points, part by "
    "part; sentence is 'better', 'worse' or 'open'",
    numbers=dict(n=lambda case: len(case.inputs[0]), right_half=lambda case: case.right["half"], said=_said,
                 right_difference=lambda case: case.right["difference"]),
    mistakes={
        "unpaired": M(_unpaired(lambda n: 2 * n - 2), HALF, "You take the variances of the two models and add them. The "
                      "parts come in pairs: take the differences first, and then the variance of those."),
        "unpaired-few": M(_unpaired(lambda n: n - 1), HALF, "You add the variances of the two models. The parts come in "
                          "pairs: take the differences first, and then the variance of those."),
        "normal": M(_spread(lambda d: 1.96 * _error(d)), HALF, "The factor 1.96 is for a variance that's known. From so few "
                    "pairs it's guessed, so take Student's t: stats.t.ppf(0.975, n - 1)."),
        "normal-population": M(_spread(lambda d: 1.96 * d.std(correction=0).item() / math.sqrt(len(d))), HALF, "Two things "
                               "make it too narrow: 1.96 in place of Student's t, and a variance divided by n instead of n "
                               "− 1."),
        "population": M(_spread(lambda d: _t(len(d) - 1) * d.std(correction=0).item() / math.sqrt(len(d))), HALF, "The sum "
                        "of squares is divided by n, as np.std and statistics.pstdev do. The mean was made from the same "
                        "numbers: divide by n − 1."),
        "deviation": M(_spread(lambda d: _t(len(d) - 1) * d.std().item()), HALF, "That's the spread of *one* difference. "
                       "The spread of their mean is smaller by √n: the standard error."),
        "divided-by-n": M(_spread(lambda d: _t(len(d) - 1) * d.std().item() / len(d)), HALF, "The standard deviation is "
                          "divided by n. For the standard error of a mean, divide it by √n."),
        "without-factor": M(_spread(_error), HALF, "That's one standard error. Times stats.t.ppf(0.975, n - 1) it's half of "
                            "the 95 % interval."),
        "no-root": M(_spread(lambda d: _t(len(d) - 1) * d.var().item() / len(d)), HALF, "The root is missing: the standard "
                     "error is √(variance / n)."),
        "one-sided": M(_spread(lambda d: _t(len(d) - 1, 0.95) * _error(d)), HALF, "ppf(0.95, …) leaves 5 % on one side. An "
                       "interval has two sides, with 2.5 % on each: 0.975."),
        "freedom-n": M(_spread(lambda d: _t(len(d)) * _error(d)), HALF, "You take n degrees of freedom. One is used up by "
                       "the mean: n − 1."),
        "freedom-of-both": M(_spread(lambda d: _t(2 * len(d) - 2) * _error(d)), HALF, "You take 2n − 2 degrees of freedom, "
                             "as for two separate groups. There are n differences, so n − 1."),
        "whole-width": M(_spread(lambda d: 2 * _t(len(d) - 1) * _error(d)), HALF, "That's the whole width. What's asked is "
                         "half of it, what stands after the ±."),
        "twice-too-wide": M(lambda first, second: (compare(first, second)[0], 2 * compare(first, second)[1], compare(
            first, second)[2]), HALF, "That's twice too wide: the whole width of the interval. What's asked is half of it, "
                            "what stands after the ±."),
        "reversed": M(lambda first, second: compare(second, first), "your difference is {difference:.2f}, expected "
                      "{right_difference:.2f}.", "It's the second minus the first. The first comes first."),
        "best": M(lambda first, second: _worked(first, second, mean=max(first) - max(second)), "your difference is "
                  "{difference:.2f}, expected {right_difference:.2f}.", "That's the best part against the best part. The "
                  "best of k grows with k, whatever the model: take the mean of the differences."),
        "by-sign": M(_saying(lambda mean, half: "better" if mean > 0 else "worse"), _said, "You go by the sign of the mean "
                     "alone. If zero lies inside the interval, the data allow either sign: 'open'."),
        "always-open": M(_saying(lambda mean, half: "open"), _said, "You say "
                         "'open' whatever the interval is. Does zero lie inside it?"),
        "turned-round": M(_saying(lambda mean, half: _allowed(-mean, half)), _said, "The words are exchanged. The "
            "sentence is about the first model: above zero, it's better."),
        "never-worse": M(_saying(lambda mean, half: "better" if mean > half else "open"), _said, "An interval that lies "
                         "wholly below zero allows a sentence as well: 'worse'."),
        "size-alone": M(_saying(lambda mean, half: "better" if abs(mean) > half else "open"), _said, "You look at the size "
                        "of the mean and not at its sign. Below zero, the first model is 'worse'."),
    },
    rules=(
        R(lambda case: case.difference.dim() > 0 or case.half.dim() > 0, lambda case: "you return several numbers as mean "
          "or half.",
          "One number each: the mean difference, and half of its interval."),
        R(lambda case: gap(case, "difference") > 1e-3, "your difference is {difference:.3f}, expected "
          "{right_difference:.3f}.",
          "The mean of first minus second, part by part."),
        R(lambda case: case.half < 0, "half of your interval is {half:.3f}.", "It's a length."),
        R(lambda case: gap(case, "half") > 1e-3, HALF, "stats.t.ppf(0.975, n - 1) · √(variance / n), with the variance of "
          "the differences divided by n − 1."),
        R(lambda case: case.sentence != case.right["sentence"], _said, "'open' if zero lies inside the interval."),
    ),
    hints=(
        "First the differences, one for each seed. Then everything is about those numbers.",
        "Standard error: the root of (variance / n), the variance with n − 1.",
        "half = stats.t.ppf(0.975, n - 1) * error, and the interval goes from mean − half to mean + half.",
        "'better' if all of it is above zero, 'worse' if all of it is below, else 'open'.",
    ),
)

# ---------------------------------------------------------------- R2.3 a page with three wrong conclusions

def three_wrong():
    # A has no control, B says no more than it measured, C puts the best run beside a mean, D has zeros alone.
    return 2843


def _says(place: int):
    return says_of(place, 4)


WRONG = ask(
    "R2.3", three_wrong, kind="number", tolerance=1e-7,
    signature="one number of four digits, without spaces: what's wrong with conclusions A, B, C and D, 8 for the "
              "one that follows, such as 1238",
    mistakes={
        "one-model": M(lambda: 1843, _says(0), "A speaks of five models and counts each of them. What would a head get "
                       "that gives every word of a text the same weight?"),
        "zero-in-b": M(lambda: 2343, _says(1), "B says itself that the head was set to zero, and claims nothing of other "
                       "replacements. Which conclusion does?"),
        "one-model-in-b": M(lambda: 2143, _says(1), "B speaks of each of the five models, and figure 1 shows all of them. "
                            "Is there one in which it doesn't hold?"),
        "no-difference": M(lambda: 2873, _says(2), "C doesn't say 'no difference'; it says that one is better. Look at "
                           "what the two rows of table 1 are."),
        "two-things": M(lambda: 2863, _says(2), "Only the pooling was changed. But the two rows of table 1 aren't the same "
                        "kind of number."),
        "one-model-in-d": M(lambda: 2841, _says(3), "D speaks of this one head of this one model, so it needs no other. "
                            "What else could have been put in the head's place?"),
        "no-control-in-d": M(lambda: 2842, _says(3), "It has a control of a kind: the whole model. What else could have "
                             "been put in the head's place than zeros?"),
        "probabilities": M(lambda: 2845, _says(3), "D counts right answers, and no probability is compared. What was put in "
                           "the head's place?"),
    },
    rules=(
        R(lambda case: not re.fullmatch("[1-8]{4}", f"{case.answer.item():.0f}"), lambda case: f"you say "
          f"{case.answer.item():g}.", "Write four digits from 1 to 8: for A, then B, then C, then D."),
        R(lambda case: f"{case.answer.item():.0f}".count("8") != 1, lambda case: f"you say that "
          f"{f'{case.answer.item():.0f}'.count('8')} of the four conclusions follow.", "Three don't follow from what "
          "was measured; exactly one does."),
        R(lambda case: digit(0, 4)(case) != "2", _says(0), "What does a head get that ignores the text? It's the proportion "
          "of punctuation among the tokens."),
        R(lambda case: digit(3, 4)(case) != "3", _says(3), "It was measured with zeros. Does the sentence speak of zeros "
          "only?"),
        R(lambda case: digit(2, 4)(case) != "4", _says(2), "Read the caption of table 1, and compute the mean of all five "
          "runs in both rows."),
        R(lambda case: digit(1, 4)(case) != "8", _says(1), "It says what was measured, on each of the five models, and no "
          "more than that."),
    ),
    hints=(
        "For each conclusion ask: what would I see if it were false? Then look whether the page shows that.",
        "A: the proportion of punctuation in the texts. B and D: one of the two says more than was measured with zeros.",
        "C: the caption of table 1 says which runs stand in each row.",
    ),
)

# ---------------------------------------------------------------- R2.4 a matched control

def matched(words, flags, counts):
    free = [i for i, flag in enumerate(flags) if not flag]                 # places that may be chosen
    chosen = []
    for i, flag in enumerate(flags):
        if flag and free:
            wanted = counts.get(words[i], 0)
            nearest = min(free, key=lambda j: abs(counts.get(words[j], 0) - wanted))
            free.remove(nearest)                                           # each is used once
            chosen.append(nearest)
    return chosen


BANK = ["the", "film", "was", "a", "story", "dull", "moving", "slow", "and", "of", "bright", "acting", "plot", "it"]


def matched_probes(generator: torch.Generator) -> list[tuple]:
    """Texts with flagged words; one where two want the same word, one with a tie, one with more flags than other words."""
    names = drawn(generator, BANK, len(BANK))
    steps = torch.randint(2, 6, (len(names),), generator=generator)
    flags = [False, True, False, False, True, False, True, False, False]
    sizes = [40, 100, 300, 95, 110, 900, 30, 70, 16]                       # 110 wants 95 too, which 100 has taken
    counts = {name: 7 * size + int(step) for name, size, step in zip(names, sizes, steps)}
    text, tie = names[:9], names[9:14]
    low = 20 + int(steps[9])
    ties = dict(zip(tie, [low, 2 * low, 3 * low, low, 9 * low]))           # both neighbours of the second are as near
    few = names[:4]
    return [(text, flags, counts), (tie, [False, True, False, False, False], ties),
            (few, [True, False, True, True], dict(zip(few, [5, 60, 50, 7]))),
            ([names[0], names[1], names[0], names[2], names[3]], [True, False, False, False, False],
             {names[0]: 30, names[1]: 10, names[2]: 70, names[3]: 29})]


def observe_matched(function, words, flags, counts):
    """How often each place was chosen, and how many of the answer's places there are not."""
    try:
        output = function(list(words), list(flags), dict(counts))
    except ValueError as error:
        if "empty" not in str(error):
            raise
        raise TypeError("no words are left for the last flags: stop there, and return the places found so far") from None
    if output is None:
        return None
    places = items_of(output, "a list of places")
    if len(places) == len(words) and all(isinstance(place, bool) for place in places):
        raise TypeError("expected places, such as [0, 3]; got flags, True or False for each word")
    places = [place.item() if isinstance(place, torch.Tensor) and place.numel() == 1 else place for place in places]
    if any(isinstance(place, bool) or not isinstance(place, int) for place in places):
        raise TypeError(f"expected the places of the words, such as [0, 3], got {what(output)}")
    table = torch.zeros(len(words))
    for place in places:
        if 0 <= place < len(words):
            table[place] += 1
    return {"chosen": table, "beyond": sum(not 0 <= place < len(words) for place in places)}


def _by(distance, among=lambda i, flags: [j for j, flag in enumerate(flags) if not flag], once=True, later=False):
    """A control with another distance, another choice of places, or places that are used twice."""
    def found(words, flags, counts):
        chosen = []
        for i, flag in enumerate(flags):
            free = [j for j in among(i, flags) if not (once and j in chosen)]
            if flag and free:
                near = {j: distance(i, j, words, counts) for j in free}
                best = min(near.values())
                chosen.append([j for j in free if near[j] == best][-1 if later else 0])
        return chosen
    return found


def _counted(i, j, words, counts):
    return abs(counts.get(words[i], 0) - counts.get(words[j], 0))


def _chosen(case: Case) -> str:
    words, flags, counts = case.inputs
    def named(places):
        return " and ".join(f"{words[i]!r} ({counts.get(words[i], 0)})" for i in places) or "nothing"

    mine, right, wanted = (named(part.nonzero().flatten().tolist()) for part in (
        case.chosen, case.right["chosen"], torch.tensor(flags)))
    return f"for {wanted} you choose {mine}, expected {right}."


def _twice(case: Case) -> str:
    return f"the word at place {int(case.chosen.argmax())} is chosen {int(case.chosen.max())} times."


MATCHED = ask(
    "R2.4", matched, probes=matched_probes, observe=observe_matched,
    signature="matched(words, flags, counts) -> list of places; words and flags have one entry for each token, counts says "
              "how often a word occurs in training",
    numbers=dict(chosen=_chosen),
    mistakes={
        "themselves": M(_by(_counted, lambda i, flags: range(len(flags))), _chosen, "The flagged words may be chosen, and "
                        "nothing is more like a word than itself. A control is made of the others."),
        "each-other": M(_by(_counted, lambda i, flags: [j for j in range(len(flags)) if j != i]), _chosen, "A flagged word "
                        "is chosen for another flagged word. A control is made of words without a flag."),
        "used-twice": M(_by(_counted, once=False), _twice, "Two flagged words have the same control, which then counts "
                        "double. Take a word out once it's chosen."),
        "never-stops": M(lambda words, flags, counts: (matched(words, flags, counts) + [
            i for i, flag in enumerate(flags) if flag])[:sum(flags)], _chosen, "No words are left: stop. A flagged word is "
                         "no control, not even where there are too few others."),
        "nearest-place": M(_by(lambda i, j, words, counts: abs(i - j)), _chosen, "You take the word that's nearest in the "
                           "text. Here it's the one whose count is nearest."),
        "first-ones": M(_by(lambda i, j, words, counts: 0), _chosen, "You take the first words without a flag. Take those "
                        "whose counts are nearest."),
        "most-frequent": M(_by(lambda i, j, words, counts: -counts.get(words[j], 0)), _chosen, "You take the most frequent "
                           "words. Against 'the' and full stops any word looks special: match the counts."),
        "rarest": M(_by(lambda i, j, words, counts: counts.get(words[j], 0)), _chosen, "You take the rarest words, as a "
                    "difference without abs(…) does too. Match the counts: the nearest may lie on either side."),
        "next-more-frequent": M(_by(lambda i, j, words, counts: (counts.get(words[j], 0) < counts.get(words[i], 0), _counted(
            i, j, words, counts))), _chosen, "You look among more frequent words first. The nearest count may lie on either "
                                "side: take the absolute difference."),
        "next-rarer": M(_by(lambda i, j, words, counts: (counts.get(words[j], 0) > counts.get(words[i], 0), _counted(
            i, j, words, counts))), _chosen, "You look among rarer words first. The nearest count may lie on either side: "
                        "take the absolute difference."),
        "in-the-text": M(_by(lambda i, j, words, counts: abs(words.count(words[i]) - words.count(words[j]))), _chosen, "You "
                         "count in this text. `counts` says how often a word occurs in training."),
        "last-of-equals": M(_by(_counted, later=True), _chosen, "Two words are equally near, and you take the later one. "
                            "Take the first, as min does."),
        "one-is-enough": M(lambda words, flags, counts: matched(words, flags, counts)[:1], _chosen, "There's one control in "
                           "all. Each flagged word needs one, or the two sums can't be compared."),
        "logarithms": M(_by(lambda i, j, words, counts: abs(math.log(1 + counts.get(words[i], 0)) - math.log(
            1 + counts.get(words[j], 0)))), _chosen, "You compare logarithms, so that twice as often is as far as half as "
                        "often. That's usual as well. Here it's the plain difference.", convention=True),
    },
    rules=(
        R(lambda case: case.beyond > 0, "{beyond:.0f} of your places lie outside the text.", "Places go from 0 to "
          "len(words) − 1."),
        R(lambda case: (case.chosen > 1).any(), _twice, "Each word is used once."),
        R(lambda case: case.chosen.sum() > case.right["chosen"].sum(), _chosen, "Too many: one for each flag, and once no "
          "words are left, stop."),
        R(lambda case: (case.chosen != case.right["chosen"]).any(), _chosen, "In the order of the text: for each flagged "
          "word the free word with the nearest count."),
    ),
    hints=(
        "Two lists: the places without a flag, and the places chosen so far. When the first is empty, stop.",
        "min(free, key=lambda j: …) gives the place with the smallest distance, the first of equals.",
        "The distance is abs(counts.get(words[j], 0) - counts.get(words[i], 0)). Then free.remove(nearest).",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: review2-roles
  taught: "10"
  question: Do heads have roles?
  options:
    - text: Yes. Each head learns one job in training, and its map shows which.
      remark: A map shows where it looks in one text. The next map shows something else (10).
    - text: Some pass a definition they could have failed; most names fit none.
      right: true
      remark: "Of the names that the literature gives to heads, few fit any of our twenty, and which of them do differs from
        seed to seed (10)."
    - text: No. Attention is spread over the words at random, in every head.
      remark: "Untrained heads are nearly uniform, trained ones aren't: that's what the untrained partner is for (10)."
- name: review2-same-name
  taught: "10"
  question: Two heads of one layer give opinion words equally much. Switch off the first, and easy reviews go wrong; switch
    off the second, and they don't. How can that be?
  options:
    - text: The second head has smaller attention weights, so the layers above hardly notice it.
      remark: The weights of each row sum to one in both. What's small or large is what they fetch.
    - text: The measurement is at fault; two heads that look at the same words do the same thing.
      remark: It was so on each of five seeds (10).
    - text: Looking is half of it. What a head fetches and writes is the other half.
      right: true
      remark: The name is about the map alone. Two heads can look at one word and push the verdict in different
        directions, or one of them hardly at all (10).
- name: review2-zero-or-mean
  taught: "10"
  question: You replace a head's output by zeros, and accuracy stays. What do you do before you call the head useless?
  options:
    - text: Replace it by something else too, such as a mean.
      right: true
      remark: The two mostly agree. With one head of seed 3 they don't, and it matters whose mean it is (10; you'll meet it
        below).
    - text: Nothing more, since a head that's zero is gone from the model.
      remark: Zero is a value as well, and the layers above may have learned to live with it or not.
    - text: Train the model once more, this time without that head.
      remark: That's another question, whether some model can do without. This model had the head when it learned.
- name: review2-patch
  taught: "10"
  question: Two reviews have the same words in another order, and opposite labels. You put one head's output from the first
    into the second, and the verdict turns. What does that show?
  options:
    - text: That the head looked at different words in the two reviews.
      remark: It needn't have. The same weights fetch something else where the words have changed places.
    - text: That what makes the two differ passes through this head.
      right: true
      remark: All the rest stayed as it was (10). That no other way exists isn't shown; shares of several heads needn't add
        up to one.
    - text: That the model would be as good if it had this head alone.
      remark: The others were there in both runs. That the head decides between these two doesn't say that it can do without
        them.
- name: review2-attention
  taught: "11"
  question: The pooling weights point at 'wonderful', and the verdict is 'positive'. Is attention the explanation?
  options:
    - text: Yes. The weights are part of the computation, so they can't lie about it.
      remark: They say from where vectors were read. After two layers such a vector holds much of the whole text (11).
    - text: It's a guess. Take words away, and see what the model does.
      right: true
      remark: In some models the two agree, in others the weights pass over the word that decides (11). You have to look.
    - text: No. You can shuffle the weights, and the verdict never changes.
      remark: On some seeds they do, and on some they don't (11).
- name: review2-randomised
  taught: "11"
  question: You replace the upper half of a model by random numbers. An explanation still points at the marked words. What
    follows?
  options:
    - text: Agreement with marked words can't tell right verdicts from wrong ones.
      right: true
      remark: The broken model can still depend on just these words, and read the wrong thing off them. Measured in log-odds,
        it does (11).
    - text: The method is broken, since with another model its answer should change.
      remark: Only if the model no longer depends on these words. Take them away and look, in log-odds (11).
    - text: The method looks at the lower half of a model alone, and never sees the top.
      remark: "Integrated gradients and occlusion go through the whole model, and keep pointing there too: on five
        seeds their average precision is 0.40 to 0.79 and 0.56 to 0.73, where chance gives 0.24 to 0.34."
- name: review2-gradient
  taught: "R2"
  question: "'Superb and moving': either word alone would have been enough for the verdict. What do gradient × input and
    integrated gradients give?"
  options:
    - text: Both give each word one half, since the two words count alike.
      remark: At the text itself a bit more of either word changes nothing, and that's where the gradient is taken.
    - text: The first gives nearly nothing to either, the second a half to each.
      right: true
      remark: The slope at the end is flat. On the way from the baseline it wasn't (below the quiz).
    - text: Both give nearly nothing, since deleting either word changes nothing.
      remark: That's so for deleting one word, and for the gradient at the end. On the way from the baseline there's a
        slope (below the quiz).
- name: review2-complete
  taught: "11"
  question: Your attributions sum to what the function grew by from the baseline to the text, to three decimals. What does
    that show?
  options:
    - text: That most mistakes in the code can be ruled out.
      right: true
      remark: It's a check of the computation. Whether the words are reasons is another question, and so is the baseline
        (11).
    - text: That the explanation is faithful to this model.
      remark: You could share out the same sum in any other way. Faithfulness is tested by changing the text.
    - text: That the words with large numbers are the evidence.
      remark: That's plausibility, and needs somebody who marked the evidence.
- name: review2-plausible
  taught: "11"
  question: An explanation has an average precision of 0.9 against the words that people marked. What do you know?
  options:
    - text: That the model decides by the words that they marked.
      remark: That would be faithfulness. A model can decide by something else, and the method by what people like.
    - text: That people would have marked these words.
      right: true
      remark: Plausible. Faithful is what survives a test on the model itself, such as taking the words away (11).
    - text: That the model is right about nine times out of ten.
      remark: The number is about the order of words. It says nothing of verdicts.
- name: review2-one-seed
  taught: "12"
  question: With seed 0 the new idea is two points better than without. What can you say?
  options:
    - text: That the idea helps, provided the test split has 2,000 reviews.
      remark: More reviews make the score of *this* model exact. The next seed is another model.
    - text: "Nothing yet: seeds alone lie up to seven points apart."
      right: true
      remark: One seed against one seed is no evidence, for or against (12).
    - text: That the idea is worth about two points, give or take a little.
      remark: Give or take how much? From one seed each nobody can know (12).
- name: review2-sentence
  taught: "12"
  question: "Model A minus model B, in points: 1.0 ± 2.5. Which sentence is allowed?"
  options:
    - text: A and B are equally good, as far as one can say from these runs.
      remark: Up to 3.5 points in favour of A, or 1.5 in favour of B, would fit as well. That isn't 'equal' (12).
    - text: A is better than B, by one point on average over these runs.
      remark: Zero lies inside. The data allow either sign.
    - text: "It's open: these runs allow from −1.5 to 3.5 points."
      right: true
      remark: Open isn't the same as equal, and the interval says how large a difference could still be (12).
- name: review2-best-of
  taught: "12"
  question: A paper reports the best of five runs of its model, and the mean of five runs of the old one. What's wrong?
  options:
    - text: The best of five is higher than runs usually are.
      right: true
      remark: In our fifteen runs of one setting by two points on average (12). Mean beside mean, or best beside best of as
        many.
    - text: Five runs are too few to find the best run of a model.
      remark: With fifty, the best would be higher still, and the comparison worse.
    - text: Nothing, if both were chosen and scored on the test split.
      remark: Then the test has chosen, and the number is too high for that reason as well (12).
"""
