"""What the exercises of notebook 15 try an answer on, and what they look at. `ask` and `sure` have what they say."""

import numpy as np
import torch

from course_exercises.common import gradients_of, one_loss, put_back, what

# ---------------------------------------------------------------- 15.2 the distillation loss


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

# ---------------------------------------------------------------- 15.3 the calibration error


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

# ---------------------------------------------------------------- 15.4 a temperature


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

# ---------------------------------------------------------------- 15.5 don't know


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
