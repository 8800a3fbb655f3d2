"""Exercises, quiz and warm-up of notebook 15, distillation and how sure a model is."""

import numpy as np
import torch
from torch.nn import functional as F

from course_utils.distillation import fit_temperature, threshold_for
from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import EACH_MAXIMUM, gap, gradients_of, listed, one_loss, one_tensor, put_back, what


def number(value) -> str:
    """Four decimals, or NaN as it's written elsewhere."""
    return "NaN" if float(value) != float(value) else f"{float(value):.4f}"


# ---------------------------------------------------------------- 15.1 soften by hand

LOGITS = torch.tensor([6.0, 2.0, 0.0])


def softened_by_hand():
    # divided by 2: 3, 1, 0; their exponentials 20.09, 2.72, 1 sum to 23.81
    return [0.844, 0.114, 0.042]


def _numbers(case: Case) -> str:
    return f"{listed(case.answer)}:"


HAND = ask(
    "15.1", softened_by_hand,
    kind="number",
    tolerance=3.9e-3,
    signature="a list of three numbers: positive, mixed, negative",
    mistakes={
        "not-softened": M(
            lambda: LOGITS.softmax(dim=0),
            lambda case: f"{_numbers(case)} this is the softmax of the logits as they are, T = 1.",
            "Divide each logit by 2 before you take its exponential.",
        ),
        "multiplied": M(
            lambda: (LOGITS * 2).softmax(dim=0),
            lambda case: f"{_numbers(case)} the first is {case.answer[0]:.4f}, sharper than at T = 1.",
            "Either you multiplied by T, or you gave the largest logit all of the probability. A temperature above 1 "
                "must make the row flatter: divide.",
        ),
        "divided-afterwards": M(
            lambda: LOGITS.softmax(dim=0) / 2,
            lambda case: f"your numbers sum to {case.answer.sum():.3f}.",
            "You divided the "
                "probabilities by T. Divide the logits, and then take the softmax, so that the row sums to one.",
        ),
        "softened-twice": M(
            lambda: (LOGITS.softmax(dim=0) / 2).softmax(dim=0),
            lambda case: f"{_numbers(case)} nearly the same for all three.",
            "There are two "
                "softmaxes: yours takes probabilities for logits. Begin with 6, 2 and 0.",
        ),
        "exponentials": M(
            lambda: (LOGITS / 2).exp(),
            lambda case: f"your numbers sum to {case.answer.sum():.2f}.",
            "Those are the exponentials. "
                "Divide each by the sum of all three.",
        ),
        "divided-only": M(
            lambda: LOGITS / 2,
            lambda case: f"{_numbers(case)} the logits, each divided by 2.",
            "That's the first half. "
                "Now the softmax: take the exponential of each, and divide it by the sum of the three.",
        ),
        "in-per-cent": M(
            lambda: 100 * (LOGITS / 2).softmax(dim=0),
            lambda case: f"your numbers sum to {case.answer.sum():.1f}.",
            "These are percentages. "
                "Probabilities sum to one: divide each by 100.",
            convention=True,
        ),
        "no-exponential": M(
            lambda: LOGITS / LOGITS.sum(),
            lambda case: f"{_numbers(case)} the logits divided by their sum.",
            "The exponential is "
                "missing. Without it a negative logit would give a negative probability.",
        ),
    },
    rules=(
        R(
            lambda case: abs(case.answer.sum() - 1) > 0.02,
            lambda case: f"the three sum to {case.answer.sum():.3f}.",
            "Probabilities sum to one: divide by the sum of the three exponentials.",
        ),
        R(
            lambda case: not case.answer[0] > case.answer[1] > case.answer[2],
            lambda case: f"{_numbers(case)} in "
                 "another order than the logits.",
            "A temperature never changes the order: 6 stays ahead of 2, and 2 of 0.",
        ),
        R(
            lambda case: abs(case.answer[0] / case.answer[1] - 7.39) > 0.3,
            lambda case: f"the first is "
                 f"{case.answer[0] / case.answer[1]:.2f} times the second.",
            "Divided by 2, their logits differ by 2, so "
                 "the first must be e² times the second.",
        ),
        R(
            lambda case: True,
            lambda case: f"the last is {case.answer[2]:.3f}.",
            "Its logit is 0 at any temperature, "
                 "and e⁰ = 1: divide 1 by the same sum as the others.",
        ),
    ),
    hints=(
        "The logits divided by T are 3, 1 and 0. What are their exponentials?",
        "e³ is 20.09, e¹ is 2.72 and e⁰ is 1. Divide each by their sum, 23.81.",
    ),
)


# ---------------------------------------------------------------- 15.2 the distillation loss

def distillation_loss(student_logits, teacher_logits, labels, temperature, alpha):
    teacher = (teacher_logits.detach() / temperature).softmax(dim=-1)      # (batch, classes)
    log_student = (student_logits / temperature).log_softmax(dim=-1)
    soft = temperature**2 * F.kl_div(log_student, teacher, reduction="batchmean")
    labelled = labels != -100
    hard = F.cross_entropy(student_logits[labelled], labels[labelled]) if labelled.any() else 0.0
    return alpha * soft + (1 - alpha) * hard


def _kl(log_student, teacher):
    return F.kl_div(log_student, teacher, reduction="batchmean")


def _hard(student, labels):
    return F.cross_entropy(student[labels != -100], labels[labels != -100]) if (labels != -100).any() else student.sum() * 0


def _rows_where(kept):
    """The mean of KL over the rows that `kept(labels)` keeps; 0 without any."""
    return lambda student, teacher, labels: (
        _kl(student[kept(labels)], teacher[kept(labels)]) if kept(labels).any() else student.sum() * 0)


def _loss(teacher_at=lambda t: t, student_at=lambda t: t, hard_at=lambda t: 1, factor=lambda t: t**2,
          hard_factor=lambda t: 1, divergence=lambda student, teacher, labels: _kl(student, teacher),
          weight=lambda alpha: alpha, hard=_hard, teacher=lambda logits: logits.detach(), student=lambda logits: logits,
          dim=-1):
    """The distillation loss with one of its parts changed."""
    def answer(student_logits, teacher_logits, labels, temperature, alpha):
        student_logits, teacher_logits = student(student_logits), teacher(teacher_logits)
        soft = divergence((student_logits / student_at(temperature)).log_softmax(dim=dim),
                          (teacher_logits / teacher_at(temperature)).softmax(dim=dim), labels)
        return (weight(alpha) * factor(temperature) * soft
                + (1 - weight(alpha)) * hard_factor(temperature) * hard(student_logits / hard_at(temperature), labels))
    return answer


def _labels_in_targets(student_logits, teacher_logits, labels, temperature, alpha):
    """One KL against the teacher's rows with the labels mixed in; a row without a label keeps the teacher's."""
    soft = (teacher_logits.detach() / temperature).softmax(dim=-1)
    marked = alpha * soft + (1 - alpha) * F.one_hot(labels.clamp(min=0), soft.shape[-1])
    targets = torch.where((labels != -100)[:, None], marked, soft)
    return temperature**2 * _kl((student_logits / temperature).log_softmax(dim=-1), targets)


def loss_probes(generator: torch.Generator) -> list[tuple]:
    """(student_logits, teacher_logits, labels, temperature, alpha): some rows without a label, all with one, none; labels of
    class 0; two classes to five, never as many as reviews; one review; temperatures below and above 1; a student that is
    sure and wrong; reviews whose logits are 300 above and below those of others. Both logits need a
    gradient, as those that a model gives."""
    def draw(batch, classes, missing, temperature, alpha):
        student, teacher = (2 * torch.randn(batch, classes, generator=generator) for _ in range(2))
        labels = torch.randint(1, classes, (batch,), generator=generator)
        labels[torch.rand(batch, generator=generator) < missing] = -100
        return student, teacher, labels, temperature, alpha

    some = draw(6, 3, 0.0, 3.0, 0.7)
    some[2][1:3] = -100                                 # whatever was drawn: four of six have a label,
    some[2][0] = some[2][5] = 0                         # two of them 0, which is a class and doesn't mean "no label"
    probes = [some, draw(4, 2, 0.0, 2.0, 0.25), draw(7, 5, 2.0, 4.0, 0.5), draw(1, 4, 0.0, 0.5, 0.4), _sure_and_wrong(),
              draw(3, 4, 0.0, 2.0, 0.5)]
    for logits in probes[-1][:2]:
        logits += 300.0 * torch.tensor([[1], [-1], [0]])
    for student, teacher, *_ in probes:
        student.requires_grad_(), teacher.requires_grad_()
    return probes


def _sure_and_wrong() -> tuple:
    """At T = 1 float32 rounds the student's probabilities of what the label and the teacher say to 0. At T = 8 it doesn't,
    but 1 / p, which the gradient of a logarithm needs, is too large for it."""
    student = torch.tensor([[0.0, 692.0, 1.0], [692.0, 0.0, 1.0]])
    return student, torch.tensor([[24.0, 0.0, 3.0], [2.0, 20.0, 0.0]]), torch.tensor([0, 1]), 8.0, 0.9


def _leads_to(loss: torch.Tensor, leaf: torch.Tensor) -> bool:
    """Whether a backward pass from a loss arrives at a leaf, with whatever numbers."""
    steps, seen = [loss.grad_fn], set()
    while steps:
        step = steps.pop()
        if step is not None and step not in seen:
            seen.add(step)
            steps += [before for before, _ in step.next_functions]
    return any(getattr(step, "variable", None) is leaf for step in seen)


def observe_loss(function, student_logits, teacher_logits, labels, temperature, alpha):
    """The loss, and the gradients that it sends to the student's and the teacher's logits; zeros where none arrives.

    Where only part of the teacher's probabilities is detached, its gradient may be 0, but for rounding: "gradient's way to
    the teacher" is 1 even then.
    """
    handed = student_logits.clone(), teacher_logits.clone()                # as a model gives them
    output = function(*handed, labels, temperature, alpha)
    for logits, now in zip((student_logits, teacher_logits), handed):
        put_back(logits, now)
    if output is None:
        return None
    loss = one_loss(output, "the loss")
    way = torch.tensor(float(_leads_to(loss, teacher_logits)))
    gradients = [torch.zeros_like(student_logits), torch.zeros_like(teacher_logits)]
    if loss.shape == () and loss.requires_grad and loss.isfinite():
        gradients = gradients_of(loss, [student_logits, teacher_logits])
    for logits, now in zip((student_logits, teacher_logits), handed):
        logits.requires_grad_(now.requires_grad)        # a graph that was cut off in place is a change, too
    return {"loss": loss, "gradient for the student": gradients[0], "gradient for the teacher": gradients[1],
            "gradient's way to the teacher": way}


def _seen(case: Case) -> str:
    temperature, alpha = case.inputs[3:]
    return (f"at T = {temperature:g} and alpha = {alpha:g} your loss is {number(case.loss)}, expected "
            f"{number(case.right['loss'])}.")


def _rows(case: Case) -> str:
    labels = case.inputs[2]
    return f"{_seen(case)} {int((labels != -100).sum())} of {len(labels)} reviews have a label."


def _pull(case: Case) -> str:
    got, right = (named["gradient for the student"].abs().max().item() for named in (case.got, case.right))
    return f"the largest number of the student's gradient is {got:.3f}, expected {right:.3f}."


def _seen_with_pull(case: Case) -> str:
    return f"{_seen(case)} T{_pull(case)[1:]}"


def _nearly_without_gradient(case: Case) -> bool:
    """Whether the loss is right to two decimals, and no gradient at all reaches the student, where some should."""
    got, right = (named["gradient for the student"].abs().max() for named in (case.got, case.right))
    return bool(got == 0) and bool(right > 1e-3) and gap(case, "loss") < 6e-3


def _sure_of_wrong(case: Case) -> bool:
    """Whether the student is sure of a wrong class."""
    return bool(case.right["loss"] > 100)


def _without_gradient(case: Case) -> str:
    return f"your loss, {number(case.loss)}, is about right, but no gradient reaches the student's logits."


def _teachers(case: Case) -> str:
    return f"a gradient of up to {case.got['gradient for the teacher'].abs().max():.3f} reaches the teacher's logits."


def _way(case: Case) -> str:
    return "the backward pass goes on to the teacher's logits."


NO_GRADIENT = ("The loss is a number, but no model can be trained by it: a probability went through a logarithm that's so "
               "small that its gradient, 1 / p, is infinite. Take log_softmax of the logits.")


LOSS = ask(
    "15.2", distillation_loss,
    probes=loss_probes,
    observe=observe_loss,
    forbidden=("course_utils.distillation.distillation_loss",),
    signature="distillation_loss(student_logits (batch, classes), teacher_logits (batch, classes), labels (batch,), "
    "temperature, alpha) -> loss",
    not_finite={
        "inf": "A small probability of the student's was rounded to 0 before its logarithm, or exp of a large logit "
        "overflowed. Take log_softmax of the logits, for the teacher's part and for the labels' part. " + EACH_MAXIMUM,
        "-inf": "A small probability was rounded to 0 before its logarithm. Take log_softmax of the logits; F.kl_div wants "
        "the student's logarithms first, and the teacher's probabilities second. " + EACH_MAXIMUM,
        "NaN": "Where no review has a label, a mean over no numbers is NaN: leave the labels' part out then. Or F.kl_div "
        "got logarithms of probabilities that had been rounded to 0. Take log_softmax of the logits. " + EACH_MAXIMUM,
        **{f"gradient for the student {kind}": NO_GRADIENT for kind in ("inf", "-inf", "NaN")}},
    mistakes={
        "student-not-softened": M(
            _loss(student_at=lambda t: 1),
            _seen,
            "The teacher is softened and the student isn't. A student that gave the "
                "teacher's very logits would still have a loss: divide both by T.",
        ),
        "teacher-not-softened": M(
            _loss(teacher_at=lambda t: 1),
            _seen,
            "The student is softened and the teacher isn't. The student would have to "
                "make its logits T times too large to please it: divide both by T.",
        ),
        "no-t-squared": M(
            _loss(factor=lambda t: 1),
            _seen_with_pull,
            "T² is missing, so the teacher's pull "
                "fades as T grows, and the labels take over.",
        ),
        "t-once": M(
            _loss(factor=lambda t: t),
            _seen_with_pull,
            "You multiply by T. The gradient shrinks by T for "
                "the division, and by about T again since softened rows differ less: T².",
        ),
        "divided-by-t-squared": M(
            _loss(factor=lambda t: 1 / t**2),
            _seen_with_pull,
            "You divide by T², and the gradient "
                "has shrunk by that much already. Multiply.",
        ),
        "t-squared-on-both": M(
            _loss(hard_factor=lambda t: t**2),
            _rows,
            "The labels' part is multiplied by T², too. It never saw the temperature, so "
                "its gradient has nothing to make up for.",
        ),
        "labels-softened": M(
            _loss(hard_at=lambda t: t),
            _rows,
            "The labels' cross-entropy is taken at the temperature. It's about the student's "
                "probabilities as they'll be used, at T = 1.",
        ),
        "labels-in-targets": M(
            _labels_in_targets,
            _rows,
            "You mix the labels into the teacher's row and take one divergence. The labels "
                "are then compared at the temperature, and T² makes their part larger. Take two losses and mix those.",
        ),
        "other-way-round": M(
            _loss(divergence=lambda student, teacher, labels: _kl(teacher.log(), student.exp())),
            _seen,
            "The two are exchanged: that's KL(student ‖ teacher). F.kl_div wants the "
                "student's log-probabilities first, and the teacher's probabilities second.",
        ),
        "no-logarithm": M(
            _loss(divergence=lambda student, teacher, labels: _kl(student.exp(), teacher)),
            _seen,
            "F.kl_div got probabilities as its first argument and took them for logarithms. It "
                "complains of nothing. Use log_softmax for the student.",
        ),
        "two-logarithms": M(
            _loss(divergence=lambda student, teacher, labels: _kl(student, teacher.log())),
            _seen,
            "F.kl_div wants probabilities as its second argument, and takes their logarithm. "
                "Yours holds negative numbers. Are the two arguments exchanged? First the student's log_softmax, then the "
                "teacher's softmax, not its log_softmax or its logits.",
        ),
        "over-the-batch": M(
            _loss(dim=0),
            _seen,
            "Your softmax runs down the batch (dim=0), so the reviews share each class's "
                "probability. Each review has a row of its own that sums to 1: dim=-1, over the classes.",
        ),
        "over-classes-too": M(
            _loss(
                divergence=lambda student, teacher, labels: F.kl_div(student, teacher, reduction="none").mean()),
            lambda case: f"{_seen(case)} There are {case.inputs[0].shape[1]} classes.",
            "The mean "
                "runs over reviews and classes. KL is a sum over the classes: reduction=\"batchmean\", not \"mean\".",
        ),
        "summed": M(
            _loss(divergence=lambda student, teacher, labels: F.kl_div(student, teacher, reduction="sum")),
            lambda case: f"{_seen(case)} The batch has {len(case.inputs[0])}.",
            "KL is added up over the "
                "batch. A larger batch would take a larger step: take the mean over the reviews.",
        ),
        "alpha-exchanged": M(
            _loss(weight=lambda alpha: 1 - alpha),
            _seen,
            "The two weights are exchanged: alpha belongs to the teacher, 1 - alpha to the "
                "labels.",
        ),
        "teacher-moves": M(
            _loss(teacher=lambda logits: logits),
            _teachers,
            "Trained like this, the teacher would move towards its student. Use "
                "teacher_logits.detach().",
        ),
        "cut-off": M(
            _loss(student=lambda logits: logits.detach()),
            _pull,
            "The loss is right, but nothing reaches the student: detach(), item() or no_grad() has "
                "cut it off. Only the teacher must be cut off.",
        ),
        "class-zero-for-none": M(
            _loss(hard=lambda student, labels: F.cross_entropy(student, labels.clamp(min=0))),
            _rows,
            "A review without a label (-100) is trained as if it were of class 0. Nobody "
                "has said so: leave it out of the labels' part.",
        ),
        "class-zero-left-out": M(
            _loss(hard=lambda student, labels: _hard(student, labels.masked_fill(labels == 0, -100))),
            _rows,
            "Reviews of class 0 are left out of the labels' part. 0 is a class like any "
                "other; only -100 means that there's no label: labels != -100.",
        ),
        "divided-by-all": M(
            _loss(
                hard=lambda student, labels: F.cross_entropy(student, labels, reduction="sum") / len(labels)),
            _rows,
            "The labels' cross-entropy is divided by all reviews. It's the mean over those "
                "that have a label.",
        ),
        "two-softmaxes": M(
            _loss(hard=lambda student, labels: _hard(student.softmax(dim=-1), labels)),
            _rows,
            "The labels' cross-entropy gets probabilities. F.cross_entropy wants logits, and "
                "takes the softmax itself.",
        ),
        "labelled-rows-only": M(
            _loss(divergence=_rows_where(lambda labels: labels != -100)),
            _rows,
            "The teacher's part leaves out the reviews without labels. Those are what it's "
                "for: the teacher has an answer to every text.",
        ),
        "unlabelled-rows-only": M(
            _loss(divergence=_rows_where(lambda labels: labels == -100)),
            _rows,
            "The teacher's part leaves out the reviews that have a label. It's the mean "
                "over all of them: what the teacher thinks of the other classes, no label says.",
        ),
        "teachers-first-choice": M(
            _loss(divergence=lambda student, teacher, labels: F.nll_loss(student, teacher.argmax(-1))),
            _seen,
            "Only the teacher's first choice counts. What it thinks of the other "
                "classes is lost: use all its probabilities.",
        ),
        "entropy-not-taken-off": M(
            _loss(divergence=lambda student, teacher, labels: -(teacher * student).sum(-1).mean()),
            _seen,
            "That's the cross-entropy with soft targets. Its gradient is the same, but "
                "it isn't 0 when the student agrees with its teacher. KL takes the teacher's entropy off.",
            convention=True,
        ),
    },
    rules=(
        R(
            lambda case: case.got["gradient for the teacher"].abs().max() > 1e-5,
            _teachers,
            "Nothing may reach the "
                 "teacher: use teacher_logits.detach().",
        ),
        R(
            lambda case: case.got["gradient's way to the teacher"] == 1,
            _way,
            "Part of what you compute from them "
                 "isn't cut off, such as their log_softmax. What arrives is 0 but for rounding, and Adam, which divides a "
                 "gradient by its size, would make steps of that: use teacher_logits.detach() in both places.",
        ),
        R(
            _nearly_without_gradient,
            _without_gradient,
            "It's rounded, or turned into a plain number; both cut off "
                 "the gradient. Return it as it is.",
        ),
        R(
            lambda case: not (case.inputs[2] != -100).any() and gap(case, "loss") > 1e-3,
            _rows,
            "Here the loss is "
                 "alpha T² times the mean KL, and nothing else. Is it KL(teacher ‖ student), both at the temperature, a sum "
                 "over classes and a mean over reviews?",
        ),
        R(
            lambda case: not _sure_of_wrong(case) and gap(case, "loss") > 1e-3,
            _rows,
            "Where no review has a label, yours is "
                 "right. Look at the labels' part: (1 - alpha) times the cross-entropy at T = 1, the mean over the "
                 "labelled reviews. If that's what you have: does the teacher's part count all reviews, labelled or not?",
        ),
        R(
            lambda case: case.loss < case.right["loss"] - 0.1,
            _seen,
            "The other losses are right; here the student is "
                 "sure of a wrong class. A small number added before a logarithm, or a clamp, puts an upper limit on what "
                 "that costs. Take log_softmax of the logits, for both parts.",
        ),
        R(
            lambda case: gap(case, "loss") > 0.1,
            _seen,
            "The other losses are right; here the student is sure of a "
                 "wrong class. Take log_softmax of the logits, for both parts.",
        ),
        R(
            lambda case: gap(case, "gradient for the student") > 1e-3,
            _pull,
            "The loss is right, but part of the way "
                 "from the student's logits to it is cut off.",
        ),
    ),
    hints=(
        "Two parts. For the teacher's: which of the two goes through softmax, and which through log_softmax?",
        "F.kl_div(log_probabilities, probabilities, reduction=\"batchmean\") is KL(second ‖ first), the mean over the "
        "batch.",
        "soft = temperature**2 * F.kl_div((student_logits / temperature).log_softmax(-1), "
        "(teacher_logits.detach() / temperature).softmax(-1), reduction=\"batchmean\")",
        "labelled = labels != -100, and F.cross_entropy(student_logits[labelled], labels[labelled]) if labelled.any() else "
        "0.",
    ),
)


# ---------------------------------------------------------------- 15.3 the calibration error

def calibration_error(confidence, right, bins):
    error = 0.0
    for k in range(bins):
        inside = (confidence > k / bins) & (confidence <= (k + 1) / bins)  # (examples,)
        if inside.any():
            gap = (confidence[inside].mean() - right[inside].float().mean()).abs()
            error = error + inside.float().mean() * gap                    # weighted by the proportion of the examples
    return error


def _parts(confidence, right, bins):
    """Of each bin: how many examples, their mean confidence, the proportion that's right, and the bin's middle."""
    place = (confidence * bins).ceil().long().sub(1).clamp(0, bins - 1)
    counts = torch.zeros(bins).index_add_(0, place, torch.ones(len(place)))
    sums = [torch.zeros(bins).index_add_(0, place, values.float()) for values in (confidence, right)]
    return counts, *(total / counts for total in sums), (torch.arange(bins) + 0.5) / bins


def _error(summarise):
    """`summarise(counts, confidence, accuracy, middle)` of the bins that aren't empty."""
    def answer(confidence, right, bins):
        parts = _parts(confidence, right, bins)
        kept = parts[0] > 0
        return summarise(*(part[kept] for part in parts))
    return answer


def _with_empty_bins(confidence, right, bins):
    counts, confidence, accuracy, _ = _parts(confidence, right, bins)
    return (counts / counts.sum() * (confidence - accuracy).abs()).sum()   # 0 / 0 where a bin is empty


def _equally_full(cut):
    """Bins that `cut(sorted values, bins)` makes, torch.chunk or torch.tensor_split; some may be empty."""
    def answer(confidence, right, bins):
        order = confidence.argsort()
        return sum(part.sum().abs() for part in cut((confidence - right.float())[order], bins)) / len(order)
    return answer


def _put_into(place):
    """Bins by the number that `place(confidence, bins)` gives each prediction."""
    def answer(confidence, right, bins):
        gaps = torch.zeros(bins + 2).index_add_(0, place(confidence, bins), confidence - right.float())
        return gaps.abs().sum() / len(right)
    return answer


def _between_quantiles(confidence, bins):
    return torch.bucketize(confidence, confidence.quantile(torch.linspace(0, 1, bins + 1))[1:-1])


def _in_masks(inside, first=0.0):
    """Bins from `first` to 1, each of those that `inside(confidence, low, high)` puts into it: some may be in none."""
    def answer(confidence, right, bins):
        edges = torch.linspace(first, 1, bins + 1)
        masks = (inside(confidence, low, high) for low, high in zip(edges[:-1], edges[1:]))
        return sum(((confidence - right.float()) * mask).sum().abs() for mask in masks) / len(confidence)
    return answer


def _in_range(low, high):
    """Bins between two numbers that `low(confidence)` and `high(confidence)` give."""
    def answer(confidence, right, bins):
        start, end = low(confidence), high(confidence)
        place = ((confidence - start) / max(end - start, 1e-9) * bins).long().clamp(0, bins - 1)
        return torch.zeros(bins).index_add_(0, place, confidence - right.float()).abs().sum() / len(place)
    return answer


def error_probes(generator: torch.Generator) -> list[tuple]:
    """(confidence, right, bins): a confidence on an edge, exactly, which belongs to the lower bin, two of 1, and three below
    a half; empty bins, bins of different size, too sure in every other bin and not sure enough in the rest; a single
    prediction; some for which it matters where the first bin begins.

    0.25 is an edge of four bins, but not of three or ten, nor of four that begin at 0.5. So whoever makes one of those
    mistakes gets the same error whichever side of a bin is closed, and one name will do.
    """
    def draw(count, bins, low, high, sure=0):
        inside = 0.1 + 0.8 * torch.rand(count, generator=generator)            # where in its bin
        place = torch.randint(low, high, (count,), generator=generator)
        confidence = (place + inside) / bins
        confidence[:sure] = 1.0
        right = (place % 2 == 0) | (inside < 0.45)      # in odd bins the upper half is wrong, so narrower bins differ
        right[:sure] = torch.arange(sure) % 3 > 0
        return confidence, right, bins

    on_an_edge = torch.tensor([0.93, 0.25, 1.0, 0.41, 0.62, 0.32, 1.0]), torch.tensor([1, 1, 0, 0, 1, 0, 0]).bool()
    uneven = torch.tensor([0.62, 0.64, 0.71, 0.78, 0.83, 0.88, 0.93, 0.97]), torch.tensor([0, 1, 1, 0, 1, 0, 1, 1]).bool()
    return [(*on_an_edge, 4), draw(40, 10, 5, 9, sure=7), draw(17, 4, 1, 4),
            (torch.tensor([0.37, 0.81, 0.83]), torch.tensor([True] * 3), 5),
            (torch.tensor([0.66]), torch.tensor([False]), 10), (*uneven, 4)]


def _by_name(output, names: tuple[str, ...]):
    """Several results under their names; None if there are none. Raises TypeError for more or fewer."""
    if output is None:
        return None
    output = tuple(output.values()) if isinstance(output, dict) else output
    if isinstance(output, (torch.Tensor, np.ndarray)) and output.shape == (len(names),):
        output = tuple(output)
    if not isinstance(output, (tuple, list)) or len(output) != len(names):
        got = f"{len(output)} results" if isinstance(output, (tuple, list)) else what(output)
        raise TypeError(f"expected {len(names)} results, {', '.join(names[:-1])} and {names[-1]}, got {got}. "
                        f"End with `return {', '.join(names)}`")
    return dict(zip(names, output))


def _said_error(case: Case) -> str:
    return f"your error is {number(case.answer)}, expected {number(case.expected)}."


def _counts(case: Case) -> str:
    confidence, _, bins = case.inputs
    places = ((confidence * bins).ceil() - 1).clamp(0, bins - 1).long()
    return f"{_said_error(case)} {len(places.unique())} of the {bins} bins hold a prediction."


def _error_and_bins(case: Case) -> str:
    return f"{_said_error(case)} You ignore `bins`, which is {case.inputs[2]} here."


def _edges(case: Case) -> str:
    return f"{_said_error(case)} That's the error with {case.inputs[2] - 1} bins instead of {case.inputs[2]}."


def _range(case: Case) -> str:
    return f"{_said_error(case)} The confidences go from {case.inputs[0].min():.3f} to {case.inputs[0].max():.3f}."


def _on_edges(case: Case) -> str:
    confidence, _, bins = case.inputs
    count = int((confidence * bins == (confidence * bins).round()).sum())
    return f"{_said_error(case)} {count} confidences lie exactly on an edge of a bin."


def _sure(case: Case) -> str:
    return f"{_said_error(case)} {int((case.inputs[0] == 1).sum())} predictions are sure, with a confidence of exactly 1."


def _on_an_edge(case: Case) -> str:
    confidence, _, bins = case.inputs
    inner = confidence[(confidence < 1) & (confidence * bins == (confidence * bins).round())]
    return f"{_said_error(case)} A confidence of {float(inner[0]):g} is exactly on the edge between two of the {bins} bins."


def _overall(case: Case) -> str:
    confidence, right, _ = case.inputs
    return (f"{_said_error(case)} The mean confidence is {confidence.mean():.3f} and the accuracy "
            f"{right.float().mean():.3f}.")


ECE = ask(
    "15.3", calibration_error,
    probes=error_probes,
    forbidden=("course_utils.distillation.expected_calibration_error", "course_utils.distillation.reliability"),
    signature="calibration_error(confidence (examples,), right (examples,), bins) -> a number",
    not_finite={
        "NaN": "An empty bin has no mean: 0 / 0 is NaN, and one NaN spoils the sum. Skip bins that hold nothing.",
        "inf": "You divide by the 0 predictions of an empty bin. Skip bins that hold nothing.",
        "-inf": "You divide by the 0 predictions of an empty bin, or take the largest of nothing. Skip bins that hold "
        "nothing."
    },
    mistakes={
        "bins-not-weighted": M(
            _error(lambda n, c, a, m: (c - a).abs().mean()),
            _counts,
            "Each bin counts the same, whether it holds one prediction or thirty. Weight "
                "each gap by the proportion of all predictions in its bin.",
        ),
        "gaps-added-up": M(
            _error(lambda n, c, a, m: (c - a).abs().sum()),
            _counts,
            "You add up the gaps, however many predictions a bin holds. Weight each by the "
                "proportion of all predictions in its bin.",
        ),
        "empty-bins-counted": M(
            lambda confidence, right, bins: _error(
                lambda n, c, a, m: (c - a).abs().sum() / bins)(confidence, right, bins),
            _counts,
            "You divide the sum of the gaps by the number of bins, empty ones included. "
                "Weight each gap by the proportion of all predictions in its bin instead.",
        ),
        "empty-bins": M(
            _with_empty_bins,
            _counts,
            "An empty bin has no mean: 0 / 0 is NaN, and one NaN spoils the sum. Skip bins that "
                "hold nothing.",
        ),
        "signs-kept": M(
            _error(lambda n, c, a, m: (n / n.sum() * (c - a)).sum()),
            _overall,
            "The gaps keep their signs, so bins that are too sure and bins that aren't sure "
                "enough cancel. Take the absolute value of each gap.",
        ),
        "signs-kept-accuracy-first": M(
            _error(lambda n, c, a, m: (n / n.sum() * (a - c)).sum()),
            _overall,
            "Accuracy minus confidence can be negative, and then bins cancel one "
                "another. Take the absolute value of each bin's gap.",
        ),
        "one-bin": M(
            _error(lambda n, c, a, m: (n / n.sum() * (a - c)).sum().abs()),
            _overall,
            "That's the gap of all predictions together. Too sure here and not sure enough there "
                "cancel: take the absolute value within each bin.",
        ),
        "squared": M(
            _error(lambda n, c, a, m: (n / n.sum() * (c - a) ** 2).sum()),
            _counts,
            "The gaps are squared. The expected calibration error adds up their absolute values.",
        ),
        "worst-bin": M(
            _error(lambda n, c, a, m: (c - a).abs().max()),
            _counts,
            "That's the largest gap, the maximum calibration error. Here the mean over all "
                "predictions is asked for.",
            convention=True,
        ),
        "middle-of-the-bin": M(
            _error(lambda n, c, a, m: (n / n.sum() * (m - a).abs()).sum()),
            _counts,
            "You compare the accuracy with the middle of the bin. Compare it with the "
                "mean confidence of the predictions in it.",
        ),
        "each-for-itself": M(
            lambda confidence, right, bins: (confidence - right.float()).abs().mean(),
            _overall,
            "Each prediction is compared with its own 0 or 1. Someone who says 80 % and is "
                "right in 80 of 100 cases would get 0.32 for it: take the means within a bin first.",
        ),
        "not-divided": M(
            _error(lambda n, c, a, m: (n * (c - a).abs()).sum()),
            lambda case: f"{_said_error(case)} There are {len(case.inputs[0])} predictions.",
            "Your weights "
                "are the counts. Divide by the number of all predictions.",
        ),
        "equally-full-bins": M(
            _equally_full(torch.chunk),
            _counts,
            "Your bins hold equally many predictions. That's done, too; here they're "
                "equally wide, from 0 to 1.",
            convention=True,
        ),
        "equally-full-by-tensor-split": M(
            _equally_full(torch.tensor_split),
            _counts,
            "You sort the predictions and cut them into bins of equal size. "
                "That's done, too; here the bins are equally wide, from 0 to 1.",
            convention=True,
        ),
        "between-quantiles": M(
            _put_into(_between_quantiles),
            _counts,
            "Your edges are quantiles of the confidences, so that the bins hold about "
                "equally many. That's done, too; here they're equally wide, from 0 to 1.",
            convention=True,
        ),
        "one-bin-too-few": M(
            lambda confidence, right, bins: calibration_error(confidence, right, bins - 1),
            _edges,
            "`linspace(0, 1, bins)` has that many edges, and so one bin fewer. It takes bins "
                "+ 1 edges.",
        ),
        "from-the-lowest": M(
            _in_range(min, max),
            _range,
            "Your bins begin at the lowest confidence and end at the highest, as "
                "np.histogram and torch.histc do by themselves. They are to cover 0 to 1.",
        ),
        "from-a-half": M(
            _in_range(lambda confidence: 0.5, lambda confidence: 1.0),
            _range,
            "Your bins begin at 0.5. With two classes no confidence is lower, with three it can "
                "be. They are to cover 0 to 1.",
        ),
        "sure-ones-alone": M(
            _put_into(lambda c, bins: torch.bucketize(c, torch.linspace(0, 1, bins + 1), right=True)),
            _sure,
            "They get a bin of their own behind the last one, since your bins stop short of "
                "their upper edges. A bin reaches up to its upper edge, included.",
        ),
        "sure-ones-lost": M(
            _in_masks(lambda c, low, high: (c >= low) & (c < high)),
            _sure,
            "They fall out of your last bin, since your bins "
                "stop short of their upper edges. A bin reaches up to its upper edge, included.",
        ),
        "edges-counted-twice": M(
            _in_masks(lambda c, low, high: (c >= low) & (c <= high)),
            _on_edges,
            "They fall into two of your bins, and count twice. A bin reaches up to "
                "its upper edge, included, and begins just above its lower one.",
        ),
        "edges-lost": M(
            _in_masks(lambda c, low, high: (c > low) & (c < high)),
            _on_edges,
            "They fall into none of your bins. A bin reaches up to its upper edge, included.",
        ),
        "closed-below": M(
            _in_masks(lambda c, low, high: (c >= low) & ((c < high) | (high == 1))),
            _on_an_edge,
            "You put it into the upper one. That's done, too; here a bin reaches up to its "
                "upper edge, included.",
            convention=True,
        ),
        "low-ones-lost": M(
            _in_masks(lambda c, low, high: (c > low) & (c <= high), first=0.5),
            _range,
            "Some predictions fall into none of your bins, which should run from 0 to 1.",
        ),
        "always-ten-bins": M(
            lambda confidence, right, bins: calibration_error(confidence, right, 10),
            _error_and_bins,
            "You always take ten.",
        ),
        "in-points": M(
            lambda confidence, right, bins: 100 * calibration_error(confidence, right, bins),
            _said_error,
            "You return points. A number from 0 to 1 is asked for: don't multiply by 100.",
        ),
    },
    rules=(
        R(
            lambda case: len(case.inputs[0]) == 1 and gap(case) > 1e-3,
            _said_error,
            "Here's a single prediction, wrong "
                 "with a confidence of 0.66. Its bin has the accuracy 0, and the gap is the whole of it.",
        ),
        R(
            lambda case: case.inputs[1].all() and gap(case) > 1e-3,
            _counts,
            "Everything is right here, so each gap is "
                 "1 minus the mean confidence of a bin. Is every prediction in one bin, and how much does each count?",
        ),
        R(
            lambda case: gap(case) > 1e-3,
            _counts,
            "For each bin: the mean confidence, the proportion that's right, "
                 "their absolute difference, times the proportion of all predictions.",
        ),
    ),
    hints=(
        "Go through the bins. Which predictions are in bin k, from k / bins to (k + 1) / bins? What if there are none?",
        "inside = (confidence > k / bins) & (confidence <= (k + 1) / bins), and inside.any() tells whether there are any.",
        "error += inside.float().mean() * (confidence[inside].mean() - right[inside].float().mean()).abs()",
    ),
)


# ---------------------------------------------------------------- 15.4 a temperature

def temperature_and_loss(validation_logits, validation_labels, test_logits, test_labels, candidates):
    losses = [F.cross_entropy(validation_logits / t, validation_labels).item() for t in candidates]
    best = candidates[losses.index(min(losses))]
    return best, F.cross_entropy(test_logits / best, test_labels)


def _calibration_error(logits, labels):
    """In ten bins."""
    confidence, predicted = logits.softmax(-1).max(-1)
    return calibration_error(confidence, predicted == labels, 10)


def _fitted(choose=None, apply=lambda logits, t: logits / t, fit_on=lambda validation, test: validation,
            score=lambda validation, test: test, used=lambda best, candidates: best,
            told=lambda best, candidates: best, order=lambda temperature, loss: (temperature, loss)):
    """Fitting with one of its parts changed; `choose(logits, labels)` is what's lowest at the best temperature."""
    choose = choose or F.cross_entropy

    def answer(validation_logits, validation_labels, test_logits, test_labels, candidates):
        validation, test = (validation_logits, validation_labels), (test_logits, test_labels)
        logits, labels = fit_on(validation, test)
        best = min(candidates, key=lambda t: float(choose(apply(logits, t), labels)))
        logits, labels = score(validation, test)
        return order(told(best, candidates), F.cross_entropy(apply(logits, used(best, candidates)), labels))
    return answer


def _together(validation, test):
    return torch.cat([validation[0], test[0]]), torch.cat([validation[1], test[1]])


def _softened_again(validation_logits, validation_labels, test_logits, test_labels, candidates):
    losses = []
    for t in candidates:
        validation_logits = validation_logits / t       # which have been divided by the candidates before
        losses.append(F.cross_entropy(validation_logits, validation_labels).item())
    best = candidates[losses.index(min(losses))]
    return best, F.cross_entropy(test_logits / best, test_labels)


def fit_probes(generator: torch.Generator) -> list[tuple]:
    """(validation_logits, validation_labels, test_logits, test_labels, candidates): the validation logits are two and a half
    times too large, or half as large as they should be, or far too large in a tenth of the examples, which tells loss from
    calibration error; the test split wants another temperature. A weak model of five classes has no loss below 1.
    Logits of some examples are 500 above and below those of others, and of one test example the model is sure and wrong.
    T = 1 would be better than each candidate; every candidate's loss is large."""
    def draw(count, classes, too_large, size=1.5):
        logits = size * torch.randn(count, classes, generator=generator)
        labels = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
        return too_large * logits, labels

    grids = [1.5, 0.5, 1.0, 0.25, 2.5, 4.0, 8.0, 16.0], [2.0, 0.7, 4.0, 0.5, 0.3, 1.2]
    margin = torch.tensor([2.5] * 90 + [12.0] * 10)     # right in 83 of 90 and in 7 of 10
    wrong = torch.tensor([0] * 83 + [1] * 7 + [0] * 7 + [1] * 3)
    mixed = torch.randperm(100, generator=generator)
    two_kinds = torch.stack([margin / 2, -margin / 2], dim=1)[mixed], wrong[mixed]
    probes = [(*draw(400, 2, 2.5), *draw(90, 2, 12.0), grids[0]), (*draw(300, 3, 0.5), *draw(70, 3, 2.0), grids[1]),
              (*two_kinds, *draw(60, 2, 0.8), [0.5, 1.0, 2.0, 3.0, 6.0]),
              (*draw(600, 5, 3.0, size=0.4), *draw(50, 5, 1.0, size=0.4), [0.5, 1.0, 3.0, 9.0])]
    levels = 500.0 * (torch.arange(200) % 3 - 1)[:, None]
    apart, apart_test = draw(200, 3, 2.5), draw(40, 3, 2.5)
    apart[0].add_(levels), apart_test[0].add_(levels[:40])
    apart_test[0][0], apart_test[1][0] = torch.tensor([900.0, 0.0, 0.0]), 1
    against = draw(100, 3, -900.0)
    return [*probes, (*apart, *apart_test, [1.5, 0.5, 2.5, 5.0]), (*draw(300, 3, 1.0), *draw(50, 3, 1.0), [3.0, 2.5, 4.0]),
            (*against, *draw(50, 3, 1.0), [1.0, 0.5, 1.5])]


def observe_fitted(function, validation_logits, validation_labels, test_logits, test_labels, candidates):
    """Temperature and test loss. Raises TypeError for anything but two results."""
    return _by_name(function(validation_logits, validation_labels, test_logits, test_labels, candidates),
                    ("temperature", "test_loss"))


def _temperatures(case: Case) -> str:
    got, right = (float(named["temperature"]) for named in (case.got, case.right))
    return f"your temperature is {got:g}, expected {right:g}."


def _test_loss(case: Case) -> str:
    got, right = (float(named["test_loss"]) for named in (case.got, case.right))
    return f"your test loss is {got:.4f}, expected {right:.4f}."


def _both(case: Case) -> str:
    """Of the two numbers, those that are wrong."""
    seen = {"temperature": _temperatures, "test_loss": _test_loss}
    wrong = [says(case) for part, says in seen.items() if gap(case, part) > 1e-4]
    return " ".join([*wrong[:1], *(f"Y{text[1:]}" for text in wrong[1:])])


FIT = ask(
    "15.4", temperature_and_loss,
    probes=fit_probes,
    observe=observe_fitted,
    forbidden=("course_utils.distillation.fit_temperature",),
    signature="temperature_and_loss(validation_logits (examples, classes), validation_labels (examples,), test_logits "
    "(more, classes), test_labels (more,), candidates (list of temperatures)) -> temperature, test_loss",
    not_finite={
        **dict.fromkeys(("inf", "-inf"), "A small probability was rounded to 0 before its logarithm, or exp of a large "
                        "logit overflowed: use cross_entropy on the logits, or log_softmax. " + EACH_MAXIMUM),
        "NaN": "exp of a large logit overflowed, or a whole row of exponentials was rounded to 0: use cross_entropy on the "
        "logits, or log_softmax. " + EACH_MAXIMUM},
    mistakes={
        "fitted-on-test": M(
            _fitted(fit_on=lambda validation, test: test),
            _both,
            "The temperature was chosen on the test labels. Your test loss then looks better "
                "than it'll be on new text: choose on validation, and use the test labels for the score alone.",
        ),
        "fitted-on-both": M(
            _fitted(fit_on=_together),
            _both,
            "Both splits took part in the choice. Every test label that helps to choose makes "
                "the score at the end too good.",
        ),
        "by-accuracy": M(
            _fitted(lambda logits, labels: -(logits.argmax(-1) == labels).float().mean()),
            _both,
            "You return the first candidate. Either your loop stops there, or you chose by "
                "accuracy, which no temperature changes.",
        ),
        "highest-loss": M(
            _fitted(lambda logits, labels: -F.cross_entropy(logits, labels)),
            _both,
            "You took the temperature with the highest validation loss. The lowest is the best.",
        ),
        "multiplied": M(
            _fitted(apply=lambda logits, t: logits * t),
            _both,
            "You multiply the logits. What you've found is 1 / T.",
        ),
        "divided-afterwards": M(
            _fitted(apply=lambda logits, t: logits.softmax(-1) / t),
            _both,
            "You divide the probabilities, and cross_entropy takes what's left for logits. "
                "Divide the logits.",
        ),
        "probabilities-as-logits": M(
            _fitted(apply=lambda logits, t: (logits / t).softmax(-1)),
            _both,
            "There are two softmaxes: cross_entropy wants logits and gets "
                "probabilities.",
        ),
        "not-used": M(
            _fitted(used=lambda best, candidates: 1.0),
            _both,
            "The temperature is right, but the test loss is that of T = 1. Divide the test logits, "
                "too.",
        ),
        "softened-again": M(
            _softened_again,
            _both,
            "Each candidate divides logits that the ones before it have divided already, as in "
                "logits = logits / t. Begin each time with the logits as they were given.",
        ),
        "test-loss-of-the-last": M(
            _fitted(used=lambda best, candidates: candidates[-1]),
            _both,
            "The temperature is right, but the test loss is that of the last candidate "
                "in the list. Divide the test logits by the best one.",
        ),
        "loss-of-validation": M(
            _fitted(score=lambda validation, test: validation),
            _both,
            "That's the validation loss. It chose the temperature, so it's a little too "
                "good; the test loss is asked for.",
        ),
        "place-for-temperature": M(
            _fitted(told=lambda best, candidates: candidates.index(best)),
            _both,
            "You return where the temperature stands in the list. Return the "
                "temperature.",
        ),
        "loss-first": M(
            _fitted(order=lambda temperature, loss: (loss, temperature)),
            _both,
            "The two are exchanged: return the temperature first, and then the test loss.",
        ),
        "by-calibration-error": M(
            _fitted(_calibration_error),
            _both,
            "That isn't the candidate with the lowest cross-entropy, but the "
                "calibration error's choice, for one. Here cross-entropy is asked for.",
        ),
        "surest": M(
            _fitted(lambda logits, labels: -logits.softmax(-1).amax(-1).mean()),
            _both,
            "You took the temperature that makes the model surest. Whether it's right to be sure, only "
                "the labels can say: choose by the validation loss.",
        ),
    },
    rules=(
        R(
            lambda case: not any(abs(case.temperature - t) < 1e-4 for t in case.inputs[4]),
            _temperatures,
            "That "
                 "isn't among the candidates. Compute the validation loss for each, and return the one with the lowest.",
        ),
        R(
            lambda case: case.right["test_loss"] > 4 and gap(case, "temperature") < 1e-4
                 and gap(case, "test_loss") > 1e-4,
            _test_loss,
            "The temperature is right; here the model is sure and wrong "
                 "once. A small number added before the logarithm, or a clamp, puts an upper limit on what that costs. Take "
                 "it from the logits: cross_entropy or log_softmax.",
        ),
        R(
            lambda case: gap(case, "temperature") > 1e-4,
            _temperatures,
            "Which candidate gives the lowest mean "
                 "cross-entropy on the validation examples, with their logits divided by it?",
        ),
        R(
            lambda case: gap(case, "test_loss") > 1e-4,
            _test_loss,
            "The temperature is right. The test loss is the "
                 "mean cross-entropy of the test logits divided by it.",
        ),
    ),
    hints=(
        "For each candidate: the validation loss with the logits divided by it. Then which one is lowest?",
        "losses = [F.cross_entropy(validation_logits / t, validation_labels).item() for t in candidates]",
        "best = candidates[losses.index(min(losses))]; return best, F.cross_entropy(test_logits / best, test_labels)",
    ),
)


# ---------------------------------------------------------------- 15.5 don't know

def answer_or_not(validation_confidence, validation_right, test_confidence, test_right, risk):
    threshold = min(t for t in validation_confidence.tolist()
                    if (~validation_right[validation_confidence >= t]).double().mean() <= risk)
    answered = test_confidence >= threshold                                # (examples,)
    wrong = (~test_right[answered]).double().mean() if answered.any() else 0.0
    return threshold, answered.double().mean(), wrong


def _with_threshold(allowed=lambda errors, risk: errors <= risk, pick=min, choose_on=lambda validation, test: validation,
                    errors=lambda right, kept: (~right[kept]).double().mean(), answers=lambda confidence, t: confidence >= t,
                    score_on=lambda validation, test: test, errors_on_test=None,
                    told=lambda t, coverage, wrong: (t, coverage, wrong)):
    """The choice with one of its parts changed."""
    def answer(validation_confidence, validation_right, test_confidence, test_right, risk):
        validation, test = (validation_confidence, validation_right), (test_confidence, test_right)
        confidence, right = choose_on(validation, test)
        fitting = [t for t in confidence.tolist() if allowed(errors(right, confidence >= t), risk)]
        threshold = pick(fitting or [confidence.max().item()])
        confidence, right = score_on(validation, test)
        answered = answers(confidence, threshold)
        wrong = (errors_on_test or errors)(right, answered) if answered.any() else torch.zeros(())
        return told(threshold, answered.double().mean(), wrong)
    return answer


def _first_violation(validation_confidence, validation_right, test_confidence, test_right, risk):
    order = validation_confidence.argsort(descending=True)
    wrong = (~validation_right[order]).double().cumsum(0) / torch.arange(1, len(order) + 1)
    stop = int((wrong > risk).nonzero()[0]) if (wrong > risk).any() else len(order)
    threshold = validation_confidence[order][max(stop, 1) - 1].item()
    answered = test_confidence >= threshold
    return threshold, answered.double().mean(), (~test_right[answered]).double().mean() if answered.any() else 0.0


def _ties_split(validation_confidence, validation_right, test_confidence, test_right, risk):
    order = validation_confidence.argsort(descending=True)
    wrong = (~validation_right[order]).double().cumsum(0) / torch.arange(1, len(order) + 1)
    threshold = validation_confidence[order][(wrong <= risk).nonzero().max()].item()   # perhaps amid equal ones
    answered = test_confidence >= threshold
    return threshold, answered.double().mean(), (~test_right[answered]).double().mean() if answered.any() else 0.0


def _strictly_above(validation_confidence, validation_right, test_confidence, test_right, risk):
    def errors(confidence, right, t):
        return (~right[confidence > t]).double().mean() if (confidence > t).any() else torch.zeros(())
    threshold = min(t for t in validation_confidence.tolist() if errors(validation_confidence, validation_right, t) <= risk)
    return threshold, (test_confidence > threshold).double().mean(), errors(test_confidence, test_right, threshold)


def _strictly_above_in_the_choice(validation_confidence, validation_right, test_confidence, test_right, risk):
    threshold = _strictly_above(validation_confidence, validation_right, test_confidence, test_right, risk)[0]
    answered = test_confidence >= threshold
    return threshold, answered.double().mean(), (~test_right[answered]).double().mean() if answered.any() else 0.0


def abstaining_probes(generator: torch.Generator) -> list[tuple]:
    """(validation_confidence, validation_right, test_confidence, test_right, risk): the risk passes its limit and falls
    again; other test confidences; no test example that's answered; three of the same confidence, two of them wrong;
    confidences that differ in the third and fourth decimals.

    Whichever of those three a sort brings first, the risk is within its limit with that one and beyond it with all three.
    It was beyond it before, too, so a search that stops there never gets to them.
    """
    confidence = torch.tensor([0.99, 0.97, 0.94, 0.93, 0.91, 0.88, 0.86, 0.81, 0.77, 0.72, 0.64, 0.58])
    right = torch.tensor([1, 1, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0], dtype=torch.bool)
    mixed = torch.randperm(12, generator=generator)
    test = 0.5 + 0.5 * torch.rand(30, generator=generator)
    test[0] = 0.77                                      # exactly at the threshold
    test_right = torch.rand(30, generator=generator) < test
    test_right[0] = False
    again = torch.randperm(12, generator=generator)
    exactly = torch.tensor([1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 1], dtype=torch.bool)     # two of the surest eight are wrong
    tied = torch.tensor([0.96, 0.95, 0.92, 0.89, 0.87, 0.85, 0.8, 0.8, 0.8, 0.71, 0.69, 0.6])
    two_wrong = torch.tensor([1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0], dtype=torch.bool)
    shuffled = torch.randperm(12, generator=generator)
    between = torch.tensor([0.97, 0.9, 0.86, 0.83, 0.82, 0.79, 0.74]), torch.tensor([1, 1, 0, 1, 0, 1, 0], dtype=torch.bool)
    fine = torch.tensor([0.9123, 0.9031, 0.8952, 0.8741, 0.8718, 0.8713, 0.8709, 0.8214])
    fine_right, fine_order = torch.tensor([1, 1, 1, 1, 1, 0, 0, 0], dtype=torch.bool), torch.randperm(8, generator=generator)
    fine_test = torch.tensor([0.93, 0.8742, 0.8719, 0.8716, 0.8702, 0.61])     # 0.872 leaves 0.8719 out, 0.87 lets two in
    return [(confidence[mixed], right[mixed], test, test_right, 0.23),
            (confidence[again], exactly[again], test[:9], test_right[:9], 0.25),
            (confidence[mixed], right[mixed], torch.tensor([0.55, 0.6, 0.51]), torch.tensor([True, False, True]), 0.2),
            (tied[shuffled], two_wrong[shuffled], *between, 0.3),
            (fine[fine_order], fine_right[fine_order], fine_test, torch.tensor([1, 1, 0, 1, 0, 0]).bool(), 0.05)]


def observe_answered(function, validation_confidence, validation_right, test_confidence, test_right, risk):
    """Threshold, coverage and risk. Raises TypeError for anything but three results."""
    return _by_name(function(validation_confidence, validation_right, test_confidence, test_right, risk),
                    ("threshold", "coverage", "test_risk"))


EACH_AS_THRESHOLD = ("Try each validation confidence as the threshold: among the validation examples at or above it, at "
                     "most `risk` may be wrong. The lowest such is asked for.")


def _three(case: Case) -> str:
    def shown(named):
        return (f"threshold {float(named['threshold']):.3f}, coverage {float(named['coverage']):.3f}, risk "
                f"{float(named['test_risk']):.3f}")
    return f"you return {shown(case.got)}; expected {shown(case.right)}."


def _at_threshold(case: Case) -> list[bool]:
    """Of the validation examples exactly at the learner's threshold: which are right."""
    return case.inputs[1][(case.inputs[0] - float(case.threshold)).abs() < 1e-6].tolist()


def _splits_ties(case: Case) -> bool:
    """Whether the learner's threshold is a confidence that several share, and too low."""
    return float(case.threshold) < float(case.right["threshold"]) - 1e-4 and len(_at_threshold(case)) > 1


def _off_without_ties(case: Case) -> bool:
    """Whether the threshold is wrong where no two validation examples share a confidence."""
    return len(case.inputs[0].unique()) == len(case.inputs[0]) and gap(case, "threshold") > 1e-4


def _rounded(case: Case) -> bool:
    """Whether the learner's threshold is a confidence rounded to two or three decimals, and none as it stands."""
    got, confidences = float(case.threshold), case.inputs[0]
    near = [(confidences.round(decimals=digits) - got).abs().min() < 1e-6 for digits in (2, 3)]
    return any(near) and not (confidences - got).abs().min() < 1e-6


def _exactly(case: Case) -> str:
    return f"your threshold is {float(case.threshold):.6g}, expected {float(case.right['threshold']):.6g}."


def _tied(case: Case) -> str:
    hits = _at_threshold(case)
    return (f"{_three(case)} {len(hits)} validation examples share your threshold of {float(case.threshold):.3g}, and "
            f"{hits.count(False)} of them are wrong.")


ABSTAIN = ask(
    "15.5", answer_or_not,
    probes=abstaining_probes,
    observe=observe_answered,
    forbidden=("course_utils.distillation.threshold_for", "course_utils.distillation.risk_coverage"),
    signature="answer_or_not(validation_confidence (examples,), validation_right (examples,), test_confidence (more,), "
    "test_right (more,), risk) -> threshold, coverage, test_risk",
    not_finite={
        "threshold inf": "A search that begins at infinity has found nothing: either no confidence was tried, or none had "
        "few enough errors at or above it. Some validation confidence always does.",
        "threshold -inf": "That lets in every example, whatever its confidence. The threshold is a validation confidence, "
        "the lowest that keeps the risk.",
        "threshold NaN": "The threshold is one of the validation confidences, and all of those are numbers.",
        "NaN": "Where no test example is answered, a mean over no numbers is NaN: the risk is 0 then.",
        "inf": "You divide by 0: where no test example is answered, the risk is 0.",
        "-inf": "You divide by 0: where no test example is answered, the risk is 0."},
    mistakes={
        "threshold-from-test": M(
            _with_threshold(choose_on=lambda validation, test: test),
            _three,
            "The threshold was chosen with the test answers, so it keeps its promise "
                "there by construction. Choose it on validation; the test split shows what the promise is worth.",
        ),
        "first-violation": M(
            _first_violation,
            _three,
            "You stop where the risk first exceeds its limit. It can fall again when "
                "further answers are right: look at all thresholds and take the lowest that will do.",
        ),
        "ties-split": M(
            _ties_split,
            _tied,
            "A threshold lets in all or none of them: count the risk once all of them are in.",
        ),
        "divided-by-all": M(
            _with_threshold(errors=lambda right, kept: (~right & kept).double().mean()),
            _three,
            "You divide the errors by all examples. The risk is the proportion of errors "
                "among those that are answered.",
        ),
        "divided-by-all-in-the-choice": M(
            _with_threshold(errors=lambda right, kept: (~right & kept).double().mean(),
                            errors_on_test=lambda right, kept: (~right[kept]).double().mean()),
            _three,
            "In the choice you divide the errors by all validation examples. The risk is the "
                "proportion of errors among those at or above the threshold.",
        ),
        "highest-threshold": M(
            _with_threshold(pick=max),
            _three,
            "That keeps the promise by answering next to nothing. Of the thresholds that "
                "do, take the lowest: it answers the most.",
        ),
        "least-sure-answered": M(
            _with_threshold(answers=lambda confidence, t: confidence <= t),
            _three,
            "You answer where the model is least sure. Answer at a confidence of the "
                "threshold or above.",
        ),
        "strictly-above": M(
            _with_threshold(answers=lambda confidence, t: confidence > t),
            _three,
            "An example exactly at the threshold is answered, too: >=, on both splits.",
        ),
        "strictly-above-on-both": M(
            _strictly_above,
            _three,
            "You answer strictly above the threshold, so on validation yours is the "
                "next confidence down. An example at the threshold is answered, too: write >= in both places.",
        ),
        "strictly-above-in-the-choice": M(
            _strictly_above_in_the_choice,
            _three,
            "You choose with >, so an example exactly at the threshold isn't "
                "counted on validation, though you answer it on test. Write >= in the choice, too.",
        ),
        "coverage-first": M(
            _with_threshold(told=lambda t, coverage, wrong: (coverage, t, wrong)),
            _three,
            "The first two are exchanged: return the threshold first.",
        ),
        "coverage-last": M(
            _with_threshold(told=lambda t, coverage, wrong: (t, wrong, coverage)),
            _three,
            "Your last two numbers are exchanged. Return the threshold, the coverage, and then "
                "the risk.",
        ),
        "less-than-the-risk": M(
            _with_threshold(allowed=lambda errors, risk: errors < risk),
            _three,
            "A risk that's exactly the limit is allowed: at most, not less than.",
        ),
        "one-minus-the-risk": M(
            _with_threshold(told=lambda t, coverage, wrong: (t, coverage, 1 - wrong)),
            _three,
            "Your last number is the proportion that's right. The risk is the proportion "
                "that's wrong.",
        ),
        "not-answered": M(
            _with_threshold(told=lambda t, coverage, wrong: (t, 1 - coverage, wrong)),
            _three,
            "Your coverage is the proportion that gets 'don't know'. Coverage is what's "
                "answered.",
        ),
        "validation-scores": M(
            _with_threshold(score_on=lambda validation, test: validation),
            _three,
            "Coverage and risk are those of the validation examples, on which the "
                "threshold was chosen. Score the test examples.",
        ),
        "risk-as-threshold": M(
            lambda vc, vr, tc, tr, risk: (
                1 - risk, (tc >= 1 - risk).double().mean(),
                (~tr[tc >= 1 - risk]).double().mean() if (tc >= 1 - risk).any() else 0.0),
            _three,
            "You take 1 - risk as the threshold, so you trust the confidence to be an "
                "accuracy. That's what has to be tested: count the errors on validation.",
        ),
    },
    rules=(
        R(
            _rounded,
            _exactly,
            "The threshold is one of the validation confidences, as it stands: a rounded one lets "
                 "in or leaves out examples that lie in between. Round only where you print.",
        ),
        R(
            _off_without_ties,
            _three,
            EACH_AS_THRESHOLD,
        ),
        R(
            _splits_ties,
            _tied,
            "A threshold lets in all or none of them, and with all of them the risk is above its "
                 "limit. Count it once all of them are in.",
        ),
        R(
            lambda case: gap(case, "threshold") > 1e-4,
            _three,
            EACH_AS_THRESHOLD,
        ),
        R(
            lambda case: gap(case, "coverage") > 1e-4,
            _three,
            "The threshold is right. Coverage is the proportion of "
                 "test examples at or above it.",
        ),
        R(
            lambda case: gap(case, "test_risk") > 1e-4,
            _three,
            "The last number is the proportion of wrong ones among "
                 "the test examples that are answered, and 0 if none is.",
        ),
    ),
    hints=(
        "For one threshold t: which validation examples would be answered, and what proportion of them is wrong?",
        "(~validation_right[validation_confidence >= t]).double().mean() is the risk at t. Try every validation confidence.",
        "threshold = min(t for t in validation_confidence.tolist() if that risk <= risk); then count on the test split.",
    ),
)


# ---------------------------------------------------------------- 15.6 a step of distillation


def distil_step(student, optimizer, teacher, texts, temperature):
    with torch.no_grad():
        soft = (teacher(texts) / temperature).softmax(dim=-1)              # (batch, classes)
    log_student = (student(texts) / temperature).log_softmax(dim=-1)
    loss = temperature**2 * F.kl_div(log_student, soft, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def _step(teacher_at=lambda t: t, student_at=lambda t: t, factor=lambda t: t**2, divergence=_kl, frozen=True, zero=True,
          moves=True, give="number", dim=-1):
    """A step of distillation with one of its parts changed."""
    def answer(student, optimizer, teacher, texts, temperature):
        def loss_now():
            soft = (teacher(texts) / teacher_at(temperature)).softmax(dim=dim)
            soft = soft.detach() if frozen else soft
            log_student = (student(texts) / student_at(temperature)).log_softmax(dim=dim)
            return factor(temperature) * divergence(log_student, soft)
        loss = loss_now()
        if zero:
            optimizer.zero_grad()
        loss.backward()
        if moves:
            optimizer.step()
        return {"number": loss.item(), "tensor": loss, "after": loss_now().item()}[give]
    return answer


class _WordSum(torch.nn.Module):
    """Logits as the sum of its words' rows."""

    def __init__(self, classes: int, size: float, generator: torch.Generator):
        super().__init__()
        self.words = torch.nn.Parameter(size * torch.randn(9, classes, generator=generator))

    def forward(self, texts):                                              # (batch, words)
        return self.words[texts].sum(dim=1)                                # (batch, classes)


STEP_RATE = 0.2


def step_probes(generator: torch.Generator) -> list[tuple]:
    """(student, teacher, the texts of three steps, temperature): above 1 and below, as many classes as texts never."""
    probes = []
    for classes, batch, temperature in ((3, 5, 3.0), (4, 2, 0.5), (2, 1, 2.0)):
        texts = [torch.randint(9, (batch, 4), generator=generator) for _ in range(3)]
        probes.append((_WordSum(classes, 0.3, generator), _WordSum(classes, 0.8, generator), texts, temperature))
    return probes


def observe_steps(function, student, teacher, several, temperature):
    """The losses of three steps, the student's weights after each, what gradient the teacher collects, how far it moves,
    and how many losses were tensors."""
    optimizer = torch.optim.SGD(student.parameters(), lr=STEP_RATE)
    losses, weights, tensors = [], [], 0
    begun, taught = (model.words.detach().clone() for model in (student, teacher))
    for texts in several:
        loss = function(student, optimizer, teacher, texts, temperature)
        now = student.words.detach().clone()
        if loss is None:
            if not losses and torch.equal(now, begun):
                return None
            raise TypeError("expected the loss as a number, loss.item(); got None")
        tensors += torch.is_tensor(loss)
        losses.append(float(one_tensor(loss, "loss").detach() if torch.is_tensor(loss) else loss))
        weights.append(now.flatten())
    collected = torch.zeros(()) if teacher.words.grad is None else teacher.words.grad.abs().max()
    return {"losses": torch.tensor(losses), "weights": torch.stack(weights), "teacher's gradient": collected,
            "teacher moved": (teacher.words.detach() - taught).abs().max(),
            "moved": (student.words.detach() - begun).abs().sum(), "tensors": torch.tensor(float(tensors))}


def _losses(case: Case) -> str:
    return (f"at T = {case.inputs[3]:g} the losses of three steps are {listed(case.losses)}, expected "
            f"{listed(case.right['losses'])}.")


def _way_gone(case: Case) -> str:
    return f"after three steps the student's weights have moved by {case.moved:.3f}, expected {case.right['moved']:.3f}."


def _collected(case: Case) -> float:
    return case.got["teacher's gradient"].item()


STEP = ask(
    "15.6", distil_step,
    probes=step_probes,
    observe=observe_steps,
    signature="distil_step(student, optimizer, teacher, texts (batch, words), temperature) -> the loss before the step, as "
    "a number; student(texts) and teacher(texts) give logits (batch, classes)",
    not_finite={
        "losses NaN": "F.kl_div takes the student's logarithms first, and the teacher's probabilities, without a logarithm, "
        "second.",
        "losses inf": "A probability was rounded to 0 before its logarithm: take log_softmax of the student's logits.",
        "losses -inf": "A probability was rounded to 0 before its logarithm: take log_softmax of the student's logits."},
    mistakes={
        "never-cleared": M(
            _step(zero=False),
            _way_gone,
            "The first step is right. backward() adds to the gradients that are there, so from the second step on old texts "
            "push along. Clear them with optimizer.zero_grad()."),
        "stands-still": M(
            _step(moves=False),
            _way_gone,
            "Two calls move it, in this order: loss.backward(), then optimizer.step(). zero_grad() comes before both."),
        "student-not-softened": M(
            _step(student_at=lambda t: 1),
            _losses,
            "The teacher is softened and the student isn't. Divide both by the temperature."),
        "teacher-not-softened": M(
            _step(teacher_at=lambda t: 1),
            _losses,
            "The student is softened and the teacher isn't. Divide both by the temperature."),
        "not-softened": M(
            _step(student_at=lambda t: 1, teacher_at=lambda t: 1, factor=lambda t: 1),
            _losses,
            "You don't use the temperature at all. At T = 1 a sure teacher's small numbers are too small to pull."),
        "multiplied": M(
            _step(student_at=lambda t: 1 / t, teacher_at=lambda t: 1 / t),
            _losses,
            "You multiply the logits by the temperature, which makes a sure teacher surer. Divide."),
        "no-t-squared": M(
            _step(factor=lambda t: 1),
            _losses,
            "T² is missing, so the gradient is about T² times too small. With a teacher alone, Adam hides it; beside "
            "labels, which pull as hard as ever, they win (section 4)."),
        "t-once": M(
            _step(factor=lambda t: t),
            _losses,
            "You multiply by T. The gradient shrinks by T², once for the division and once since softened rows differ "
            "less."),
        "first-choice-only": M(
            _step(divergence=lambda student, teacher: F.nll_loss(student, teacher.argmax(dim=-1))),
            _losses,
            "Only the teacher's first choice counts, as if it were a label. All that it knows about the other classes is "
            "lost."),
        "teachers-labels": M(
            _step(student_at=lambda t: 1, factor=lambda t: 1,
                  divergence=lambda student, teacher: F.nll_loss(student, teacher.argmax(dim=-1))),
            _losses,
            "You take the teacher's first choice as a label, and cross-entropy. Then the student can't learn a class that "
            "it never sees: what the teacher thinks of the other classes is lost. Use all of its softened row."),
        "other-way-round": M(
            _step(divergence=lambda student, teacher: _kl(teacher.log(), student.exp())),
            _losses,
            "The two are exchanged: that's KL(student ‖ teacher). F.kl_div wants the student's log-probabilities first."),
        "no-logarithm": M(
            _step(divergence=lambda student, teacher: _kl(student.exp(), teacher)),
            _losses,
            "F.kl_div got the student's probabilities and took them for logarithms. Use log_softmax for the student."),
        "over-classes-too": M(
            _step(divergence=lambda student, teacher: F.kl_div(student, teacher, reduction="none").mean()),
            _losses,
            "The mean runs over texts and classes. KL is a sum over the classes: reduction=\"batchmean\", not \"mean\"."),
        "summed": M(
            _step(divergence=lambda student, teacher: F.kl_div(student, teacher, reduction="sum")),
            _losses,
            "KL is added up over the batch, so a larger batch takes a larger step. Take the mean over the texts."),
        "over-the-batch": M(
            _step(dim=0),
            _losses,
            "Your softmax runs down the batch (dim=0). Each text has a row of its own that sums to 1: dim=-1."),
        "teacher-in-the-graph": M(
            _step(frozen=False),
            lambda case: f"the teacher has collected a gradient of up to {_collected(case):.3f}.",
            "The student learns the right thing. But the backward pass goes on into the teacher, which costs time and "
            "memory, and would move it if its parameters were in an optimizer. Ask the teacher under torch.no_grad()."),
        "entropy-not-taken-off": M(
            _step(divergence=lambda student, teacher: -(teacher * student).sum(dim=-1).mean()),
            _losses,
            "That's the cross-entropy with soft targets. The student moves just as it should, but this loss isn't 0 when "
            "it agrees with its teacher. KL takes the teacher's entropy off.",
            convention=True),
        "loss-after-the-step": M(
            _step(give="after"),
            _losses,
            "That is the loss after the step, for which both models had to run twice. Keep the one from before."),
        "tensor": M(
            _step(give="tensor"),
            lambda case: f"{case.tensors.item():.0f} of 3 losses are tensors.",
            "With such a tensor everything that backward needed stays in memory. Return loss.item()."),
    },
    rules=(
        R(
            lambda case: case.got["teacher moved"] > 1e-6,
            lambda case: f"your teacher's weights have moved by up to {case.got['teacher moved']:.3f}.",
            "The teacher stays as it is. Only the student's parameters are in the optimizer; move nothing else."),
        R(
            lambda case: (case.losses[0] - case.right["losses"][0]).abs() > 1e-4,
            _losses,
            "The very first loss is off, before anything has moved. It's T² times the mean of KL(teacher ‖ student), both "
            "rows softened by T."),
        R(
            lambda case: (case.moved - case.right["moved"]).abs() > 1e-4 or gap(case, "weights") > 1e-4,
            _way_gone,
            "The first loss is right. Clear the gradients, backward, step, in this order, once for each call."),
        R(
            lambda case: gap(case, "losses") > 1e-4,
            _losses,
            "The first loss is right, the others aren't. Return the loss from before the step."),
        R(
            lambda case: case.tensors > 0,
            lambda case: f"{case.tensors.item():.0f} of 3 losses are tensors.",
            "Return the loss as a number: loss.item()."),
        R(
            lambda case: case.got["teacher's gradient"] > 1e-6,
            lambda case: "the backward pass has reached the teacher.",
            "Ask the teacher under torch.no_grad()."),
    ),
    hints=(
        "Five things: ask the teacher without a gradient, ask the student, the loss, then clear, backward and step, and "
        "return the loss.",
        "Your distillation_loss of 15.2 will do, with alpha = 1 and labels of -100: "
        "torch.full((len(texts),), -100).",
        "with torch.no_grad(): soft = (teacher(texts) / temperature).softmax(-1)",
        "loss = temperature**2 * F.kl_div((student(texts) / temperature).log_softmax(-1), soft, reduction=\"batchmean\")",
    ),
)


# ---------------------------------------------------------------- 15.7 calibrate a classifier


def calibrate(classifier, validation, other, risk):
    def logits_of(split):
        return classifier.predict(split["text"])[1].log()                  # (texts, classes)

    def sureness_of(split):
        confidence, said = (logits_of(split) / temperature).softmax(dim=-1).max(dim=-1)
        return confidence, said == torch.tensor(split["label"])            # both (texts,)

    temperature = fit_temperature(logits_of(validation), torch.tensor(validation["label"]))
    threshold = threshold_for(*sureness_of(validation), risk)
    confidence, right = sureness_of(other)
    answered = confidence >= threshold
    wrong = (~right[answered]).double().mean() if answered.any() else 0.0
    return temperature, threshold, answered.double().mean(), wrong


def _calibrated(fit_on=lambda validation, other: validation, choose_on=lambda validation, other: validation,
                at_choice=lambda t: t, at_use=lambda t: t, logits=lambda p: p.log(), apply=lambda z, t: z / t,
                confidence=lambda p: p.amax(dim=-1), answers=lambda c, t: c >= t, choose=threshold_for,
                tell=lambda t, bar, share, wrong: (t, bar, share, wrong), score_on=lambda validation, other: other,
                of_all=False):
    """Calibrating with one of its parts changed."""
    def answer(classifier, validation, other, risk):
        def read(split):
            return logits(classifier.predict(split["text"])[1]), torch.tensor(split["label"])
        def sure(split, t):
            z, labels = read(split)
            p = apply(z, t).softmax(dim=-1)
            return confidence(p), p.argmax(dim=-1) == labels
        temperature = fit_temperature(*read(fit_on(validation, other)))
        bar = choose(*sure(choose_on(validation, other), at_choice(temperature)), risk)
        found, right = sure(score_on(validation, other), at_use(temperature))
        answered = answers(found, bar)
        wrong = (~right & answered).double().sum() / (len(right) if of_all else answered.sum().clamp(min=1))
        return tell(temperature, bar, answered.double().mean(), wrong)
    return answer


def _highest(confidence, right, risk):
    return max(t for t in confidence.tolist() if (~right[confidence >= t]).double().mean() <= risk)


def _next_down(confidence, right, risk):
    below = confidence[confidence < threshold_for(confidence, right, risk)]
    return below.max().item() if len(below) else 0.0


class _Says:
    """A classifier that has an answer to each of its texts, as a `ReviewClassifier` gives it, and divides by a temperature.

    `logits` are those of its answers at the temperature that it has at first.
    """

    def __init__(self, logits: dict[str, torch.Tensor], names: list[str], temperature: float = 1.0):
        self.logits, self.label_names, self.temperature, self.begun = logits, names, temperature, temperature

    def predict(self, texts, batch_size=64):
        z = torch.stack([self.logits[text] for text in texts]) * (self.begun / float(self.temperature))
        probabilities = z.softmax(dim=-1).float()
        return [self.label_names[i] for i in probabilities.argmax(dim=-1).tolist()], probabilities


def calibrate_probes(generator: torch.Generator) -> list[tuple]:
    """(classifier, validation, other, risk): too sure of everything and more so elsewhere; three classes, not sure enough;
    sure of nothing elsewhere, so that nothing is answered there. The second has a temperature already."""
    def split(name, count, classes, spread, times):
        z = spread * torch.randn(count, classes, generator=generator)
        labels = torch.multinomial(z.softmax(dim=-1), 1, generator=generator)[:, 0].tolist()
        texts = [f"{name} {i}" for i in range(count)]
        return {"text": texts, "label": labels}, dict(zip(texts, times * z))

    probes = []
    for classes, sizes, here, there, risk in (
            (2, (60, 35), (1.6, 2.5), (0.7, 4.0), 0.1), (3, (80, 25), (2.0, 0.5), (1.5, 0.5), 0.12),
            (2, (50, 20), (2.5, 1.0), (0.05, 1.0), 0.05)):
        for _ in range(100):            # until some are answered and some aren't, and elsewhere some answers are wrong
            validation, first = split("seen", sizes[0], classes, *here)
            other, second = split("new", sizes[1], classes, *there)
            says = _Says(first | second, ["negative", "positive", "mixed"][:classes], 2.0 if classes == 3 else 1.0)
            z, y = torch.stack(list(first.values())), torch.tensor(validation["label"])
            t = fit_temperature(z, y)
            sure, said = (z / t).softmax(dim=-1).max(dim=-1)
            bar = threshold_for(sure, said == y, risk)
            there_sure, there_said = (torch.stack(list(second.values())) / t).softmax(dim=-1).max(dim=-1)
            kept = there_sure >= bar
            share, wrong = kept.double().mean(), (there_said[kept] != torch.tensor(other["label"])[kept]).sum()
            if 5 < (sure >= bar).sum() < len(sure) and (there[0] < 0.1 or 0 < wrong and 0.1 < share < 0.9):
                break
        probes.append((says, validation, other, risk))
    return probes


def observe_calibrated(function, classifier, validation, other, risk):
    """Temperature, threshold, the proportion answered, that of wrong answers among them, and by what the temperature that
    the classifier had was multiplied. It gets its own back."""
    begun = classifier.temperature
    try:
        named = _by_name(function(classifier, validation, other, risk), ("temperature", "threshold", "answered", "wrong"))
        return named and {**named, "classifier's temperature": float(classifier.temperature) / begun}
    finally:
        classifier.temperature = begun


def _four(case: Case) -> str:
    def shown(named):
        return (f"T {float(named['temperature']):.3f}, threshold {float(named['threshold']):.3f}, answered "
                f"{float(named['answered']):.3f}, wrong {float(named['wrong']):.3f}")
    return f"you return {shown(case.got)}; expected {shown(case.right)}."


def _left(case: Case) -> str:
    return (f"{_four(case)} Afterwards the classifier's own temperature is "
            f"{case.got[LEFT] * case.inputs[0].begun:.3f}, before it was {case.inputs[0].begun:g}.")


LEFT = "classifier's temperature"


def _sets_it(again=False, product=True):
    """The temperature is written into the classifier, and stays there; `again`: the logits are divided by it, too."""
    def answer(classifier, validation, other, risk):
        def sure(split, t):
            confidence, said = (classifier.predict(split["text"])[1].log() / t).softmax(dim=-1).max(dim=-1)
            return confidence, said == torch.tensor(split["label"])
        temperature = fit_temperature(classifier.predict(validation["text"])[1].log(), torch.tensor(validation["label"]))
        classifier.temperature = classifier.temperature * temperature if product else temperature
        bar = threshold_for(*sure(validation, temperature if again else 1), risk)
        confidence, right = sure(other, temperature if again else 1)
        answered = confidence >= bar
        wrong = (~right & answered).double().sum() / answered.sum().clamp(min=1)
        return temperature, bar, answered.double().mean(), wrong
    return answer


CALIBRATE = ask(
    "15.7", calibrate,
    probes=calibrate_probes,
    observe=observe_calibrated,
    signature="calibrate(classifier, validation, other, risk) -> temperature, threshold, answered, wrong; "
    "classifier.predict(texts) gives (labels, probabilities (texts, classes)), validation and other have \"text\" and "
    "\"label\"",
    not_finite={
        "threshold inf": "No confidence on validation kept the risk. Is `right` the comparison of the predicted class with "
        "the label?",
        "NaN": "Where nothing is answered, a mean over no numbers is NaN: `wrong` is 0 then.",
        "inf": "You divide by 0: where nothing is answered, `wrong` is 0.",
        "-inf": "You divide by 0: where nothing is answered, `wrong` is 0."},
    mistakes={
        "fitted-on-other": M(
            _calibrated(fit_on=lambda validation, other: other),
            _four,
            "The temperature was fitted on the other texts. In use nobody has labels for those: fit it on validation."),
        "threshold-from-other": M(
            _calibrated(choose_on=lambda validation, other: other),
            _four,
            "The threshold was chosen on the other texts, so it keeps its promise there by construction. Choose it on "
            "validation."),
        "threshold-before-scaling": M(
            _calibrated(at_choice=lambda t: 1),
            _four,
            "The threshold was chosen on confidences as the model gives them, and then compared with scaled ones. Scale in "
            "both places."),
        "other-not-scaled": M(
            _calibrated(at_use=lambda t: 1),
            _four,
            "The other texts' confidence isn't scaled, and the threshold was chosen on a scaled one. Scale in both places."),
        "never-scaled": M(
            _calibrated(at_choice=lambda t: 1, at_use=lambda t: 1),
            _four,
            "You fit a temperature and never use it. Divide by it before the confidence is taken, on both."),
        "multiplied": M(
            _calibrated(apply=lambda z, t: z * t),
            _four,
            "You multiply by the temperature. Divide."),
        "no-logarithm": M(
            _calibrated(logits=lambda p: p),
            _four,
            "You divide probabilities. predict gives probabilities; their logarithms will do as logits: .log()."),
        "class-one-alone": M(
            _calibrated(confidence=lambda p: p[:, 1]),
            _four,
            "You take the probability of class 1 as the confidence. A model that says class 0 with 0.97 is sure, too: take "
            "the largest of each row."),
        "strictly-above": M(
            _calibrated(choose=_next_down, answers=lambda c, t: c > t),
            _four,
            "Yours is the next confidence down. A text exactly at the threshold is answered: >=."),
        "highest-threshold": M(
            _calibrated(choose=_highest),
            _four,
            "That keeps the promise by answering next to nothing. Of the thresholds that do, take the lowest."),
        "risk-as-threshold": M(
            _calibrated(choose=lambda c, r, risk: 1 - risk),
            _four,
            "You take 1 - risk as the threshold, so you trust the confidence to be an accuracy. Count the errors on "
            "validation: threshold_for does."),
        "divided-by-all": M(
            _calibrated(of_all=True),
            _four,
            "You divide the errors by all of the other texts. It's the proportion among those that are answered."),
        "scored-on-validation": M(
            _calibrated(score_on=lambda validation, other: validation),
            _four,
            "The last two are those of validation, where the promise holds by construction. Measure them on the other "
            "texts."),
        "proportion-right": M(
            _calibrated(tell=lambda t, bar, share, wrong: (t, bar, share, 1 - wrong)),
            _four,
            "Your last number is the proportion that's right. The proportion that's wrong is asked for."),
        "not-answered": M(
            _calibrated(tell=lambda t, bar, share, wrong: (t, bar, 1 - share, wrong)),
            _four,
            "Your third number is the proportion that gets 'don't know'. What's answered is asked for."),
        "threshold-first": M(
            _calibrated(tell=lambda t, bar, share, wrong: (bar, t, share, wrong)),
            _four,
            "The first two are exchanged: the temperature comes first."),
        "temperature-left": M(
            _sets_it(),
            _left,
            "Your numbers are right, but the classifier isn't what it was: asked again, it would find T = 1. Divide the "
            "logits yourself, or give the classifier its temperature back."),
        "scaled-twice": M(
            _sets_it(again=True),
            _left,
            "predict divides by classifier.temperature, and then you divide once more. Leave the classifier alone, and "
            "divide the logits yourself."),
        "temperature-erased": M(
            _sets_it(product=False),
            _left,
            "The classifier may have a temperature already, and what you fitted goes on top of it; you overwrote it. Leave "
            "the classifier alone, and divide the logits yourself."),
    },
    rules=(
        R(
            lambda case: gap(case, LEFT) > 1e-4,
            _left,
            "Calibrating must leave the classifier as it was: divide the logits that it gives, not the classifier's own "
            "temperature."),
        R(
            lambda case: gap(case, "temperature") > 1e-4,
            _four,
            "The temperature is off. It's fit_temperature(logits, labels) on validation, with the logarithms of what "
            "predict gives as logits."),
        R(
            lambda case: gap(case, "threshold") > 1e-4,
            _four,
            "The temperature is right, the threshold isn't: threshold_for(confidence, right, risk) on validation, the "
            "confidence taken after dividing."),
        R(
            lambda case: gap(case, "answered") > 1e-4,
            _four,
            "Temperature and threshold are right. Which of the other texts reach the threshold, at that temperature?"),
        R(
            lambda case: gap(case, "wrong") > 1e-4,
            _four,
            "The last number is the proportion of wrong ones among the other texts that are answered, 0 if none is."),
    ),
    hints=(
        "Write one small function that takes a split and gives its confidences, and which predictions are right. You need "
        "it twice.",
        "logits = classifier.predict(split[\"text\"])[1].log(); temperature = fit_temperature(logits, "
        "torch.tensor(split[\"label\"])) on validation.",
        "confidence, said = (logits / temperature).softmax(-1).max(-1); right = said == torch.tensor(split[\"label\"])",
        "threshold = threshold_for(confidence, right, risk) on validation; answered = confidence >= threshold on the other.",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: no-t-squared
  taught: "15"
  question: Somebody mixes labels and a teacher half and half, and tries T = 1, 4 and 16. The higher the temperature,
    the more the student behaves as if it had no teacher. What's the likely reason?
  options:
    - text: At T = 16 all classes are nearly equally probable, so a teacher has nothing left to say.
      remark: The differences are small, but they're still there. Multiplied by T², they pull about as much as before.
    - text: The teacher's part lacks its factor T², so its gradient fades.
      right: true
      remark: At high T it shrinks like 1/T²; in section 3, by a factor of 55 from 1 to 10. The labels' gradient stays
        as it is.
    - text: A student needs a higher learning rate at a higher temperature.
      remark: That would raise the labels' pull as well. What's wrong is the balance of the two parts.
- name: one-sided
  taught: "15"
  question: You give the student exactly the teacher's logits. There are no labels, T is 3, both rows sum to one, and
    your KL is 0.4. Which of these explains it?
  options:
    - text: The student has to be trained for longer before KL can reach 0.
      remark: It already has the teacher's own logits. There's nothing left to learn.
    - text: KL includes the teacher's entropy, so it can't be 0 for a teacher in doubt.
      remark: The cross-entropy includes it. KL has it taken off, so it's 0 for equal rows, whatever the teacher.
    - text: Only one of the two goes through the softmax at T.
      right: true
      remark: Softened by the same T, equal logits give equal rows, and KL between equal rows is 0. This test takes
        one line.
- name: more-text
  taught: "15"
  question: You have 500 labelled reviews, a good teacher with two classes, and an afternoon. What's likely to help a
    small student most?
  options:
    - text: The teacher's answers to many more reviews of the same sort, even without labels.
      right: true
      remark: If the teacher has learned from far more labels than your 500. In this notebook that was worth more than ten
        points; the answers of a teacher that had only the 500 were worth hardly any.
    - text: The teacher's soft answers to the 500, at a carefully chosen temperature.
      remark: For two classes they add one number to each label, and a sure teacher's number is nearly the label
        itself.
    - text: Training on the 500 labels for as many more steps as the afternoon has room for, with nothing else
        changed.
      remark: The student soon knows the 500 by heart. More steps on the same texts bring it no new ones.
- name: calibrated-and-useless
  taught: "15"
  question: On a balanced test set, a model's expected calibration error falls from 30 points to 1 after temperature
    scaling. Its accuracy was 57 % before, and now it's never more than 71 % sure. What do you know?
  options:
    - text: That it's ready for a threshold of 90 %, since its confidence can now be believed.
      remark: It can be believed, but it never reaches 90 %. With that threshold every answer would be "don't know".
    - text: That its accuracy has risen, as the wrong answers were corrected.
      remark: Dividing all logits by one number never changes which is largest.
    - text: That it's honest about being a poor model.
      right: true
      remark: Low error and low accuracy go together well, and always answering with the proportion of each class
        would be calibrated, too.
- name: threshold-elsewhere
  taught: "15"
  question: A threshold chosen on validation promises one error in a hundred answers. In use, a third of the answers
    are wrong. Which explanation doesn't fit?
  options:
    - text: The texts in use aren't like those of validation, and the model is just as sure of them.
      remark: It fits, and it's what we saw on ordinary sentences. A promise holds for texts like those it was made
        with.
    - text: Temperature scaling was left out, on validation and in use, so the threshold means something else.
      right: true
      remark: With two classes, one temperature keeps the order of the texts. A threshold chosen with or without it
        answers the same ones.
    - text: The threshold was chosen on few examples, with hardly an error among them.
      remark: It fits, at least in part. With a handful of errors on validation, one in a hundred may be two or three.
- name: label-of-padding
  taught: "14"
  question: "-100 marks reviews without a label here. In notebook 14 something similar kept positions out of a loss.
    Which positions were those?"
  options:
    - text: Those where the model had been asked for the right word.
      remark: Those are the ones that count.
    - text: Those that nobody asked for; their words were in plain sight.
      right: true
      remark: A loss on them would only measure how well the model copies. `F.cross_entropy` leaves out -100 by
        default, in both cases.
    - text: Those that were swapped for a random word, as they'd only have confused it.
      remark: The model is asked for the right word there as well. It can't know which of the visible words is wrong.
- name: only-softness-can
  taught: "15"
  question: A student never sees a mixed review, neither the text nor the label, and still learns to call reviews
    mixed.
    Through what?
  options:
    - text: Through the small probability of 'mixed' in the teacher's answers to other reviews, once it's softened.
      right: true
      remark: A review with three good words of four is a little mixed, and the teacher says so. At T = 1 it said so
        too
        quietly.
    - text: Through the labels of the others; what's neither positive nor negative must be mixed.
      remark: With the labels alone it never said 'mixed' in section 4. For the label, a half-hearted positive review
        is
        as positive as any.
    - text: Through the teacher's weights, which the student copies.
      remark: The student has other sizes, and it only ever sees the teacher's answers.
"""

WARM_UP = """
- name: new-head-on-an-old-body
  taught: "14"
  question: An encoder has been pretrained on text without labels. What has to be new when it becomes a classifier of
    reviews?
  options:
    - text: The word vectors, since reviews have other words.
      remark: They stay. Knowing words already is what pretraining is for.
    - text: The last layer, from its vectors to the classes.
      right: true
      remark: It starts from random numbers, everything below it doesn't. In this notebook a reader begins like that,
        too.
    - text: Nothing, since hidden words and classes have the same output layer.
      remark: That one had a number for each word of the vocabulary. Two classes need two numbers.
- name: hot-or-cold
  taught: "13"
  question: A language model's logits are divided by a temperature of 2 before the softmax. What happens to its
    probabilities?
  options:
    - text: They come closer together, and stay in the same order.
      right: true
      remark: Large differences shrink, and no logit overtakes another. The same T is in every section of this
        notebook.
    - text: The highest grows, and the others shrink.
      remark: That's a temperature below 1.
    - text: Each is divided by 2.
      remark: Then they'd sum to one half. The logits are divided, and the softmax comes afterwards.
- name: sure-and-wrong-costs
  taught: "00"
  question: A model gives the right class a probability of 0.01. Another gives it 0.5. How much more does the first
    one
    lose in cross-entropy?
  options:
    - text: About twice as much.
      remark: It's the logarithm that counts, -ln 0.01 = 4.6 against -ln 0.5 = 0.7.
    - text: About seven times as much.
      right: true
      remark: -ln 0.01 is 4.6 and -ln 0.5 is 0.7. That price is why a confident model must be right, and why this loss
        can
        find out whether it's too confident.
    - text: Fifty times as much, since 0.5 is fifty times 0.01.
      remark: A ratio of 50 becomes a difference of ln 50 = 3.9 in the loss.
"""
