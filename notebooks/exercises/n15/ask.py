"""Exercises of notebook 15, distillation. The answers are in `answers`; 15.3 to 15.5 are in `sure`."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import EACH_MAXIMUM, gap, listed
from course_exercises.n15 import probes, sure
from course_exercises.n15.sure import number

# ---------------------------------------------------------------- 15.1 soften by hand


def _numbers(case: Case) -> str:
    return f"{listed(case.answer)}:"


HAND = Exercise(
    kind="number", tolerance=3.9e-3, signature="a list of three numbers: positive, mixed, negative",
    mistakes=(
        Mistake("not-softened", lambda case: f"{_numbers(case)} this is the softmax of the logits as they are, T = 1.",
                "Divide each logit by 2 before you take its exponential."),
        Mistake("multiplied", lambda case: f"{_numbers(case)} the first is {case.answer[0]:.4f}, sharper than at T = 1.",
                "Either you multiplied by T, or you gave the largest logit all of the probability. A temperature above 1 "
                "must make the row flatter: divide."),
        Mistake("divided-afterwards", lambda case: f"your numbers sum to {case.answer.sum():.3f}.", "You divided the "
                "probabilities by T. Divide the logits, and then take the softmax, so that the row sums to one."),
        Mistake("softened-twice", lambda case: f"{_numbers(case)} nearly the same for all three.", "There are two "
                "softmaxes: yours takes probabilities for logits. Begin with 6, 2 and 0."),
        Mistake("exponentials", lambda case: f"your numbers sum to {case.answer.sum():.2f}.", "Those are the exponentials. "
                "Divide each by the sum of all three."),
        Mistake("divided-only", lambda case: f"{_numbers(case)} the logits, each divided by 2.", "That's the first half. "
                "Now the softmax: take the exponential of each, and divide it by the sum of the three."),
        Mistake("in-per-cent", lambda case: f"your numbers sum to {case.answer.sum():.1f}.", "These are percentages. "
                "Probabilities sum to one: divide each by 100.", convention=True),
        Mistake("no-exponential", lambda case: f"{_numbers(case)} the logits divided by their sum.", "The exponential is "
                "missing. Without it a negative logit would give a negative probability."),
    ),
    properties=(
        Property(lambda case: abs(case.answer.sum() - 1) > 0.02, lambda case: f"the three sum to {case.answer.sum():.3f}.",
                 "Probabilities sum to one: divide by the sum of the three exponentials."),
        Property(lambda case: not case.answer[0] > case.answer[1] > case.answer[2], lambda case: f"{_numbers(case)} in "
                 "another order than the logits.", "A temperature never changes the order: 6 stays ahead of 2, and 2 of 0."),
        Property(lambda case: abs(case.answer[0] / case.answer[1] - 7.39) > 0.3, lambda case: f"the first is "
                 f"{case.answer[0] / case.answer[1]:.2f} times the second.", "Divided by 2, their logits differ by 2, so "
                 "the first must be e² times the second."),
        Property(lambda case: True, lambda case: f"the last is {case.answer[2]:.3f}.", "Its logit is 0 at any temperature, "
                 "and e⁰ = 1: divide 1 by the same sum as the others."),
    ),
    hints=(
        "The logits divided by T are 3, 1 and 0. What are their exponentials?",
        "e³ is 20.09, e¹ is 2.72 and e⁰ is 1. Divide each by their sum, 23.81.",
    ),
)

# ---------------------------------------------------------------- 15.2 the distillation loss


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


def _sure(case: Case) -> bool:
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

LOSS = Exercise(
    probes=probes.loss_probes, observe=probes.observe_loss,
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
    mistakes=(
        Mistake("student-not-softened", _seen, "The teacher is softened and the student isn't. A student that gave the "
                "teacher's very logits would still have a loss: divide both by T."),
        Mistake("teacher-not-softened", _seen, "The student is softened and the teacher isn't. The student would have to "
                "make its logits T times too large to please it: divide both by T."),
        Mistake("no-t-squared", _seen_with_pull, "T² is missing, so the teacher's pull "
                "fades as T grows, and the labels take over."),
        Mistake("t-once", _seen_with_pull, "You multiply by T. The gradient shrinks by T for "
                "the division, and by about T again since softened rows differ less: T²."),
        Mistake("divided-by-t-squared", _seen_with_pull, "You divide by T², and the gradient "
                "has shrunk by that much already. Multiply."),
        Mistake("t-squared-on-both", _rows, "The labels' part is multiplied by T², too. It never saw the temperature, so "
                "its gradient has nothing to make up for."),
        Mistake("labels-softened", _rows, "The labels' cross-entropy is taken at the temperature. It's about the student's "
                "probabilities as they'll be used, at T = 1."),
        Mistake("labels-in-targets", _rows, "You mix the labels into the teacher's row and take one divergence. The labels "
                "are then compared at the temperature, and T² makes their part larger. Take two losses and mix those."),
        Mistake("other-way-round", _seen, "The two are exchanged: that's KL(student ‖ teacher). F.kl_div wants the "
                "student's log-probabilities first, and the teacher's probabilities second."),
        Mistake("no-logarithm", _seen, "F.kl_div got probabilities as its first argument and took them for logarithms. It "
                "complains of nothing. Use log_softmax for the student."),
        Mistake("two-logarithms", _seen, "F.kl_div wants probabilities as its second argument, and takes their logarithm. "
                "Yours holds negative numbers. Are the two arguments exchanged? First the student's log_softmax, then the "
                "teacher's softmax, not its log_softmax or its logits."),
        Mistake("over-the-batch", _seen, "Your softmax runs down the batch (dim=0), so the reviews share each class's "
                "probability. Each review has a row of its own that sums to 1: dim=-1, over the classes."),
        Mistake("over-classes-too", lambda case: f"{_seen(case)} There are {case.inputs[0].shape[1]} classes.", "The mean "
                "runs over reviews and classes. KL is a sum over the classes: reduction=\"batchmean\", not \"mean\"."),
        Mistake("summed", lambda case: f"{_seen(case)} The batch has {len(case.inputs[0])}.", "KL is added up over the "
                "batch. A larger batch would take a larger step: take the mean over the reviews."),
        Mistake("alpha-exchanged", _seen, "The two weights are exchanged: alpha belongs to the teacher, 1 - alpha to the "
                "labels."),
        Mistake("teacher-moves", _teachers, "Trained like this, the teacher would move towards its student. Use "
                "teacher_logits.detach()."),
        Mistake("cut-off", _pull, "The loss is right, but nothing reaches the student: detach(), item() or no_grad() has "
                "cut it off. Only the teacher must be cut off."),
        Mistake("class-zero-for-none", _rows, "A review without a label (-100) is trained as if it were of class 0. Nobody "
                "has said so: leave it out of the labels' part."),
        Mistake("class-zero-left-out", _rows, "Reviews of class 0 are left out of the labels' part. 0 is a class like any "
                "other; only -100 means that there's no label: labels != -100."),
        Mistake("divided-by-all", _rows, "The labels' cross-entropy is divided by all reviews. It's the mean over those "
                "that have a label."),
        Mistake("two-softmaxes", _rows, "The labels' cross-entropy gets probabilities. F.cross_entropy wants logits, and "
                "takes the softmax itself."),
        Mistake("labelled-rows-only", _rows, "The teacher's part leaves out the reviews without labels. Those are what it's "
                "for: the teacher has an answer to every text."),
        Mistake("unlabelled-rows-only", _rows, "The teacher's part leaves out the reviews that have a label. It's the mean "
                "over all of them: what the teacher thinks of the other classes, no label says."),
        Mistake("teachers-first-choice", _seen, "Only the teacher's first choice counts. What it thinks of the other "
                "classes is lost: use all its probabilities."),
        Mistake("entropy-not-taken-off", _seen, "That's the cross-entropy with soft targets. Its gradient is the same, but "
                "it isn't 0 when the student agrees with its teacher. KL takes the teacher's entropy off.", convention=True),
    ),
    properties=(
        Property(lambda case: case.got["gradient for the teacher"].abs().max() > 1e-5, _teachers, "Nothing may reach the "
                 "teacher: use teacher_logits.detach()."),
        Property(lambda case: case.got["gradient's way to the teacher"] == 1, _way, "Part of what you compute from them "
                 "isn't cut off, such as their log_softmax. What arrives is 0 but for rounding, and Adam, which divides a "
                 "gradient by its size, would make steps of that: use teacher_logits.detach() in both places."),
        Property(_nearly_without_gradient, _without_gradient, "It's rounded, or turned into a plain number; both cut off "
                 "the gradient. Return it as it is."),
        Property(lambda case: not (case.inputs[2] != -100).any() and gap(case, "loss") > 1e-3, _rows, "Here the loss is "
                 "alpha T² times the mean KL, and nothing else. Is it KL(teacher ‖ student), both at the temperature, a sum "
                 "over classes and a mean over reviews?"),
        Property(lambda case: not _sure(case) and gap(case, "loss") > 1e-3, _rows, "Where no review has a label, yours is "
                 "right. Look at the labels' part: (1 - alpha) times the cross-entropy at T = 1, the mean over the "
                 "labelled reviews. If that's what you have: does the teacher's part count all reviews, labelled or not?"),
        Property(lambda case: case.loss < case.right["loss"] - 0.1, _seen, "The other losses are right; here the student is "
                 "sure of a wrong class. A small number added before a logarithm, or a clamp, puts an upper limit on what "
                 "that costs. Take log_softmax of the logits, for both parts."),
        Property(lambda case: gap(case, "loss") > 0.1, _seen, "The other losses are right; here the student is sure of a "
                 "wrong class. Take log_softmax of the logits, for both parts."),
        Property(lambda case: gap(case, "gradient for the student") > 1e-3, _pull, "The loss is right, but part of the way "
                 "from the student's logits to it is cut off."),
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

EXERCISES = (HAND, LOSS, sure.ECE, sure.FIT, sure.ABSTAIN)
