"""Answers as learners write them to the exercises of notebook 15, with what they're told; unusual right ones count."""

import itertools
import math

import numpy as np
import torch
from judged import answers, assert_other, assert_right, assert_told
from learners_answers import right
from torch.nn import functional as F

from course_utils import distillation


def at_temperature(logits, temperature):
    return (logits / temperature).softmax(-1)


def mixed(soft, hard=lambda student, labels: F.cross_entropy(student, labels, ignore_index=-100).nan_to_num(0.0)):
    """The usual mixture of `soft(student, teacher, temperature)` and `hard(student, labels)`."""
    def answer(student, teacher, labels, temperature, alpha):
        return alpha * soft(student, teacher.detach(), temperature) + (1 - alpha) * hard(student, labels)
    return answer


def by_mean_squares(student, teacher, temperature):
    return (student - teacher).square().mean()


def of_symmetric_kl(student, teacher, temperature):
    p, q = at_temperature(student, temperature), at_temperature(teacher, temperature)
    return temperature**2 * ((q - p) * (q.log() - p.log())).sum(-1).mean() / 2


def usual(student, teacher, temperature):
    log_p, q = (student / temperature).log_softmax(-1), at_temperature(teacher, temperature)
    return temperature**2 * F.kl_div(log_p, q, reduction="batchmean")


def with_arguments_exchanged(student, teacher, temperature):
    log_p, q = (student / temperature).log_softmax(-1), at_temperature(teacher, temperature)
    return temperature**2 * F.kl_div(q, log_p, reduction="batchmean")


def down_the_batch(student, teacher, temperature):
    log_p, q = (student / temperature).log_softmax(0), (teacher / temperature).softmax(0)
    return temperature**2 * F.kl_div(log_p, q, reduction="batchmean")


def added_over_the_batch_and_divided_by_classes(student, teacher, temperature):
    """Where a batch has as many reviews as classes, this is right: no probe may."""
    log_p, q = (student / temperature).log_softmax(-1), at_temperature(teacher, temperature)
    return temperature**2 * F.kl_div(log_p, q, reduction="none").mean(-1).sum()


def cross_entropy_of_probabilities(student, labels):
    return F.cross_entropy(student.softmax(-1), labels, ignore_index=-100).nan_to_num(0.0)


def labels_mixed_into_the_targets(student, teacher, labels, temperature, alpha):
    targets = at_temperature(teacher.detach(), temperature)
    for i, label in enumerate(labels.tolist()):
        if label != -100:
            marked = torch.zeros(targets.shape[1])
            marked[label] = 1.0
            targets[i] = alpha * targets[i] + (1 - alpha) * marked
    log_p = (student / temperature).log_softmax(-1)
    return temperature**2 * (torch.xlogy(targets, targets) - targets * log_p).sum(-1).mean()


def softened_in_place(student, teacher, temperature):
    return temperature**2 * usual(student.div_(temperature), teacher / temperature, 1.0)


def teacher_softened_in_place(student, teacher, temperature):
    return temperature**2 * usual(student / temperature, teacher.div_(temperature), 1.0)   # detached: the same numbers


def of_positive_labels(student, labels):
    return F.cross_entropy(student[labels > 0], labels[labels > 0]) if (labels > 0).any() else 0.0


def without_labelled_ones(student, teacher, labels, temperature, alpha):
    rows = labels < 0
    soft = usual(student[rows], teacher.detach()[rows], temperature) if rows.any() else 0.0
    return alpha * soft + (1 - alpha) * F.cross_entropy(student, labels, ignore_index=-100).nan_to_num(0.0)


def frozen_in_place(student, teacher, labels, temperature, alpha):
    teacher.requires_grad_(False)
    return right("15.2")(student, teacher, labels, temperature, alpha)


def by_keyword_only(*, validation_logits, validation_labels, test_logits, test_labels, candidates):
    return right("15.4")(validation_logits, validation_labels, test_logits, test_labels, candidates)


def by_distributions(student, teacher, temperature):
    rows = [torch.distributions.Categorical(logits=logits / temperature) for logits in (teacher, student)]
    return temperature**2 * torch.distributions.kl_divergence(*rows).mean()


def half_open(confidence, right, bins):
    """Bins from their lower edge, included, except for the last, which is closed at both ends."""
    place = (confidence * bins).long().clamp(max=bins - 1)
    return sum((confidence[place == k] - right[place == k].float()).sum().abs() for k in range(bins)) / len(place)


def from_a_half(confidence, right, bins):
    """Bins from 0.5 to 1, since no confidence is lower with two classes."""
    place = ((confidence - 0.5) * 2 * bins).ceil().long().sub(1).clamp(0, bins - 1)
    return sum((confidence[place == k] - right[place == k].float()).sum().abs() for k in range(bins)) / len(place)


def of_each_bin(summarise, edges=lambda confidence, bins: torch.linspace(0, 1, bins + 1)):
    """The sum of `summarise(confidence, right, their proportion)` over the bins that aren't empty."""
    def answer(confidence, right, bins):
        found, cuts = 0.0, edges(confidence, bins)
        for low, high in zip(cuts[:-1], cuts[1:]):
            inside = (confidence > low) & (confidence <= high)
            if inside.any():
                found = found + summarise(confidence[inside], right[inside].double(), inside.double().mean())
        return found
    return answer


def by_masks(inside, edges=lambda bins: [k / bins for k in range(bins + 1)]):
    """The usual sum over bins, with `inside(confidence, low, high)` saying which predictions are in one."""
    def answer(confidence, right, bins):
        masks = [inside(confidence, low, high) for low, high in itertools.pairwise(edges(bins))]
        return sum(((confidence - right.float()) * mask).sum().abs() for mask in masks) / len(confidence)
    return answer


def from_the_lower_edge(confidence, low, high):
    """Closed below; the last one above, too."""
    return (confidence >= low) & ((confidence < high) | (high == 1))


def without_the_lower_ones(confidence, right, bins):
    """np.histogram with a range of its own leaves out whatever is below it."""
    gaps = np.histogram(confidence.numpy(), bins, (0.5, 1), weights=(confidence - right.float()).numpy())[0]
    return abs(gaps).sum() / len(confidence)


def usual_gap(confidence, right, proportion):
    return proportion * (confidence.mean() - right.mean()).abs()


def in_numpy_bins(confidence, right, bins):
    """np.digitize without right=True: an edge belongs to the bin above it, and 1 to one above the last."""
    place = np.digitize(confidence.numpy(), np.linspace(0, 1, bins + 1))
    return abs(np.bincount(place, (confidence - right.float()).numpy())).sum() / len(place)


def in_equal_parts(confidence, right, bins):
    order = confidence.argsort()
    gaps = np.array_split((confidence - right.float())[order].numpy(), bins)
    return sum(abs(part.sum()) for part in gaps) / len(order)


def from_the_lowest_confidence(confidence, right, bins):
    """As np.histogram does it without a range."""
    confidence, gaps = confidence.numpy(), (confidence - right.float()).numpy()
    return abs(np.histogram(confidence, bins, weights=gaps)[0]).sum() / len(gaps)


def with_criterion(criterion):
    """The candidate with the lowest `criterion(logits, labels)` on validation."""
    def answer(validation_logits, validation_labels, test_logits, test_labels, candidates):
        best = min(candidates, key=lambda t: float(criterion(validation_logits / t, validation_labels)))
        return best, F.cross_entropy(test_logits / best, test_labels)
    return answer


def ece_in_ten_bins(logits, labels):
    confidence, predicted = logits.softmax(-1).max(-1)
    return right("15.3")(confidence, predicted == labels, 10)


def gap_of_the_means(logits, labels):
    confidence, predicted = logits.softmax(-1).max(-1)
    return (confidence.mean() - (predicted == labels).double().mean()).abs()


def returns_in_the_loop(validation_logits, validation_labels, test_logits, test_labels, candidates):
    best, lowest = None, math.inf
    for t in candidates:
        loss = F.cross_entropy(validation_logits / t, validation_labels)
        if loss < lowest:
            best, lowest = t, loss
        return best, F.cross_entropy(test_logits / best, test_labels)


def sorted_in_place(*inputs):
    inputs[4].sort()
    return right("15.4")(*inputs)


def strictly_above(validation_confidence, validation_right, test_confidence, test_right, risk):
    def wrong(confidence, hits, t):
        return (~hits[confidence > t]).double().mean() if (confidence > t).any() else torch.zeros(())
    threshold = min(t for t in validation_confidence if wrong(validation_confidence, validation_right, t) <= risk)
    return threshold, (test_confidence > threshold).double().mean(), wrong(test_confidence, test_right, threshold)


def chosen_strictly_above(results=lambda *three: three):
    def answer(validation_confidence, validation_right, test_confidence, test_right, risk):
        threshold = strictly_above(validation_confidence, validation_right, test_confidence, test_right, risk)[0]
        kept = test_confidence >= threshold
        return results(threshold, kept.double().mean(), (kept & ~test_right).sum() / kept.sum().clamp(min=1))
    return answer


def by_gradient(validation_logits, validation_labels, test_logits, test_labels, candidates):
    temperature = distillation.fit_temperature(validation_logits, validation_labels)
    return temperature, F.cross_entropy(test_logits / temperature, test_labels)


def temperature_alone(*inputs):
    return right("15.4")(*inputs)[0]


def from_a_loss_of_one(validation_logits, validation_labels, test_logits, test_labels, candidates):
    """As if no loss could be above 1."""
    best, lowest = candidates[0], 1.0
    for t in candidates:
        loss = F.cross_entropy(validation_logits / t, validation_labels)
        if loss < lowest:
            best, lowest = t, loss
    return best, F.cross_entropy(test_logits / best, test_labels)


def divided_again(validation_logits, validation_labels, test_logits, test_labels, candidates):
    losses = []
    for t in candidates:
        validation_logits = validation_logits / t
        losses.append(F.cross_entropy(validation_logits, validation_labels))
    best = candidates[int(torch.stack(losses).argmin())]
    return best, F.cross_entropy(test_logits / best, test_labels)


def with_the_last_one(validation_logits, validation_labels, test_logits, test_labels, candidates):
    best = right("15.4")(validation_logits, validation_labels, test_logits, test_labels, candidates)[0]
    return best, F.cross_entropy(test_logits / candidates[-1], test_labels)


def summed_loss(validation_logits, validation_labels, test_logits, test_labels, candidates):
    best, _ = right("15.4")(validation_logits, validation_labels, test_logits, test_labels, candidates)
    return best, F.cross_entropy(test_logits / best, test_labels, reduction="sum")


def between_two(validation_confidence, validation_right, test_confidence, test_right, risk):
    """A little below the threshold, as if it had to be a round number."""
    found = right("15.5")(validation_confidence, validation_right, test_confidence, test_right, risk)
    return found[0] - 0.005, *found[1:]


def one_by_one(order, results=lambda *three: three, allowed=lambda wrong, risk: wrong <= risk):
    """Down the sorted confidences, each example counted before the next of the same confidence is in."""
    def answer(validation_confidence, validation_right, test_confidence, test_right, risk):
        places = torch.as_tensor(order(validation_confidence))
        wrong = (~validation_right[places]).double().cumsum(0) / torch.arange(1, len(places) + 1)
        threshold = validation_confidence[places][allowed(wrong, risk).nonzero().max()]
        answered = test_confidence >= threshold
        return results(threshold, answered.double().mean(), (answered & ~test_right).sum() / answered.sum().clamp(min=1))
    return answer


def downwards(confidence):
    return confidence.argsort(descending=True)


def turned_round(confidence):
    return confidence.numpy().argsort(kind="stable")[::-1].copy()


def in_no_order(confidence):
    """As an unstable sort may bring equal ones."""
    return np.lexsort((np.random.default_rng(0).random(len(confidence)), -confidence.numpy()))


def stops_at_the_first(validation_confidence, validation_right, test_confidence, test_right, risk):
    """Threshold by threshold, so equal confidences are in together."""
    threshold = validation_confidence.max()
    for t in sorted(validation_confidence.tolist(), reverse=True):
        if (~validation_right[validation_confidence >= t]).double().mean() > risk:
            break
        threshold = t
    answered = test_confidence >= threshold
    return threshold, answered.double().mean(), (answered & ~test_right).sum() / answered.sum().clamp(min=1)


def stops_at_the_first_example(validation_confidence, validation_right, test_confidence, test_right, risk):
    """Example by example."""
    errors, threshold = 0, validation_confidence.max()
    for count, place in enumerate(downwards(validation_confidence), start=1):
        errors += int(~validation_right[place])
        if errors / count > risk:
            break
        threshold = validation_confidence[place]
    answered = test_confidence >= threshold
    return threshold, answered.double().mean(), (answered & ~test_right).sum() / answered.sum().clamp(min=1)


def with_a_division_by_zero(validation_confidence, validation_right, test_confidence, test_right, risk):
    threshold, coverage, _ = right("15.5")(validation_confidence, validation_right, test_confidence, test_right, risk)
    return threshold, coverage, (~test_right[test_confidence >= threshold]).double().mean()


WRONG = [  # exercise, answer, the mistake's name if it has one, what the message must say
    ("15.1", [0.98, 0.018, 0.002], "not-softened", "Divide each logit by 2"),
    ("15.1", [0.042, 0.114, 0.844], "", "in another order"), ("15.1", [0.8, 0.15, 0.05], "", "must be e² times"),
    ("15.1", [0.844, 0.114, 0.1], "", "sum to one"), ("15.1", [3, 1, 0], "divided-only", "Now the softmax"),
    ("15.1", [1, 0, 0], "multiplied", "or you gave the largest logit all of the probability"),
    ("15.1", [0.849, 0.109, 0.042], "", "must be e² times"), ("15.1", [0.844, 0.114, 0.05], "", "e⁰ = 1"),
    ("15.2", mixed(with_arguments_exchanged), "two-logarithms", "Are the two arguments exchanged?"),
    ("15.2", mixed(down_the_batch), "over-the-batch", "dim=-1"),
    ("15.2", mixed(added_over_the_batch_and_divided_by_classes), "", "a sum over classes and a mean over reviews"),
    ("15.2", mixed(usual, cross_entropy_of_probabilities), "two-softmaxes", "wants logits"),
    ("15.2", labels_mixed_into_the_targets, "labels-in-targets", "Take two losses and mix those"),
    ("15.2", mixed(softened_in_place), "", "Your function changes `student_logits`"),
    ("15.2", mixed(teacher_softened_in_place), "", "Your function changes `teacher_logits`"),
    ("15.2", mixed(usual, of_positive_labels), "class-zero-left-out", "0 is a class like any other"),
    ("15.2", without_labelled_ones, "unlabelled-rows-only", "the mean over all of them"),
    ("15.2", lambda *inputs: right("15.2")(*inputs).round(decimals=3), "", "no gradient reaches the student's logits"),
    ("15.2", lambda *inputs: round(right("15.2")(*inputs).item(), 2), "", "It's rounded, or turned into"),
    ("15.2", frozen_in_place, "", "detach()"), ("15.2", lambda *inputs: "the loss", "", "expected one tensor as the loss"),
    ("15.2", lambda *inputs: {"loss": right("15.2")(*inputs)}, "", "got a dictionary with 'loss' in it"),
    ("15.2", mixed(by_mean_squares), "", "Is it KL(teacher ‖ student)"), ("15.2", mixed(of_symmetric_kl), "", "Is it KL"),
    ("15.2", mixed(usual, lambda student, labels: 0.0), "", "Look at the labels' part"),
    ("15.2", mixed(usual, F.cross_entropy), "", "leave the labels' part out"),
    ("15.2", lambda *inputs: right("15.2")(*inputs).item(), "cut-off", "nothing reaches"),
    ("15.2", lambda *inputs: (right("15.2")(*inputs), 0.0), "", "expected one number, the loss; got 2 results"),
    ("15.2", lambda *inputs: distillation.distillation_loss(*inputs), "", "written out"),
    ("15.3", from_a_half, "from-a-half", "cover 0 to 1"),
    ("15.3", of_each_bin(lambda c, r, n: n * (c.mean() - r.mean())), "signs-kept", "absolute value"),
    ("15.3", of_each_bin(lambda c, r, n: n * (r.mean() - c.mean())), "signs-kept-accuracy-first", "absolute value"),
    ("15.3", of_each_bin(lambda c, r, n: (c.mean() - r.mean()).abs()), "gaps-added-up", "Weight each"),
    ("15.3", of_each_bin(usual_gap, lambda _, bins: torch.linspace(0, 1, bins)), "one-bin-too-few", "bins + 1 edges"),
    ("15.3", from_the_lowest_confidence, "from-the-lowest", "cover 0 to 1"),
    ("15.3", lambda *inputs: 100 * right("15.3")(*inputs), "in-points", "don't multiply by 100"),
    ("15.3", of_each_bin(usual_gap, lambda _, bins: torch.linspace(0.5, 1, bins + 1)), "low-ones-lost", "into none of"),
    ("15.3", without_the_lower_ones, "low-ones-lost", "which should run from 0 to 1"),
    ("15.3", lambda c, r, bins: right("15.3")(c, r, 10), "always-ten-bins", "You ignore `bins`, which is 4 here"),
    ("15.3", lambda c, r, bins: half_open(c, r, 10), "always-ten-bins", "You ignore `bins`, which is 4 here"),
    ("15.3", by_masks(lambda c, low, high: (c >= low) & (c < high)), "sure-ones-lost", "2 predictions are sure"),
    ("15.3", by_masks(lambda c, low, high: (c > low) & (c < high)), "edges-lost", "3 confidences lie exactly on"),
    ("15.3", by_masks(lambda c, low, high: (c >= low) & (c <= high)), "edges-counted-twice", "into two of your bins"),
    ("15.3", lambda *inputs: distillation.expected_calibration_error(*inputs), "", "written out"),
    ("15.3", in_numpy_bins, "sure-ones-alone", "2 predictions are sure"),
    ("15.4", from_a_loss_of_one, "", "Which candidate gives the lowest"),
    ("15.4", divided_again, "softened-again", "as they were given"),
    ("15.4", with_the_last_one, "test-loss-of-the-last", "the last candidate in the list"),
    ("15.4", by_gradient, "", "written out"), ("15.4", temperature_alone, "", "temperature and test_loss"),
    ("15.4", summed_loss, "", "The temperature is right"),
    ("15.4", lambda *inputs: right("15.4")(*inputs)[::-1], "loss-first", "exchanged"),
    ("15.4", with_criterion(ece_in_ten_bins), "by-calibration-error", "lowest cross-entropy"),
    ("15.4", with_criterion(gap_of_the_means), "by-calibration-error", "lowest cross-entropy"),
    ("15.4", returns_in_the_loop, "by-accuracy", "You return the first candidate. Either your loop stops there, or"),
    ("15.4", with_criterion(lambda logits, labels: -(logits.argmax(-1) == labels).double().mean()), "by-accuracy", "or you"),
    ("15.4", sorted_in_place, "", "changes `candidates`"),
    ("15.5", strictly_above, "strictly-above-on-both", "write >= in both places"),
    ("15.5", chosen_strictly_above(), "strictly-above-in-the-choice", "Write >= in the choice"),
    ("15.5", chosen_strictly_above(lambda t, coverage, wrong: (t, wrong, coverage)), "", "Try each validation confidence"),
    ("15.5", lambda *inputs: tuple(right("15.5")(*inputs)[i] for i in (0, 2, 1)), "coverage-last", "exchanged"),
    ("15.5", lambda *inputs: tuple(right("15.5")(*inputs)[i] for i in (1, 0, 2)), "coverage-first", "threshold first"),
    ("15.5", one_by_one(downwards), "ties-split", "3 validation examples share your threshold of 0.8, and 2 of"),
    ("15.5", one_by_one(turned_round), "ties-split", "all or none"), ("15.5", one_by_one(in_no_order), "ties-split", "all"),
    ("15.5", one_by_one(downwards, lambda t, coverage, wrong: (t, wrong, coverage)), "", "once all of them are in"),
    ("15.5", stops_at_the_first, "first-violation", "fall again"),
    ("15.5", stops_at_the_first_example, "first-violation", "fall again"),
    ("15.5", between_two, "", "Try each validation confidence"),
    ("15.5", with_a_division_by_zero, "", "Your test_risk is NaN"),
    ("15.5", lambda *inputs: right("15.5")(*inputs)[:2], "", "expected 3 results, threshold, coverage and test_risk"),
]
RIGHT = [  # exercise, answer
    ("15.1", "0.844; 0.114; 0.042"), ("15.1", ["20.09/23.81", "2.72/23.81", "1/23.81"]), ("15.4", by_keyword_only),
    ("15.2", mixed(by_distributions)), ("15.2", mixed(usual)),
    ("15.3", lambda *inputs: float(right("15.3")(*inputs))), ("15.4", lambda *inputs: list(right("15.4")(*inputs))),
    ("15.5", lambda *inputs: torch.tensor([float(part) for part in right("15.5")(*inputs)])),
]


@answers("number, answer, name, said", WRONG)
def test_a_wrong_answer_is_told_what_is_wrong_with_it(number, answer, name, said, seed):
    assert_told(number, answer, seed, name, said)


@answers("number, answer, name", [
    ("15.1", [84.4, 11.4, 4.2], "in-per-cent"), ("15.3", half_open, "closed-below"),
    ("15.3", by_masks(from_the_lower_edge), "closed-below"), ("15.3", in_equal_parts, "equally-full-by-tensor-split"),
])
def test_another_convention_is_called_that(number, answer, name, seed):
    assert_other(number, answer, seed, name)


@answers("number, answer", RIGHT)
def test_an_unusual_answer_that_is_right_counts(number, answer, seed):
    assert_right(number, answer, seed)
