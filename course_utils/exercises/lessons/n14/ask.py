"""Exercises of notebook 14. The answers are beside it, in `answers`."""

import torch

from course_utils.exercises.definitions import Exercise, Mistake, Property


# ---------------------------------------------------------------- 14.1


def _probes_14_1(generator: torch.Generator) -> list[tuple]:
    """Vectors of eight numbers, of five, and of one: small sizes and odd ones break shortcuts."""
    return [(torch.randn(size, generator=generator) + 3,) for size in (8, 5, 1)]


# TODO 14.1: this example takes the mean off a vector; write your own exercise over it
EXERCISE_14_1 = Exercise(
    # what goes in and what comes out, each with a name and a shape; messages use these names
    signature="answer_14_1(x (n,)) -> centred (n,)",
    probes=_probes_14_1,
    # each as in answers.py, by the same name: what was seen, with a number of the learner's; then where to look
    mistakes=(
        Mistake("nothing-taken-off", lambda case: f"the mean of your numbers is {case.answer.mean():.3f}.",
                "Take the mean of x off each of its numbers; what is left has the mean 0."),
        Mistake("sum-taken-off", lambda case: f"the mean of your numbers is {case.answer.mean():.3f}.",
                "That is what is left when the sum is taken off. The mean is the sum divided by how many there are."),
    ),
    # for answers that fit no mistake: the first that fails is printed
    properties=(
        Property(lambda case: case.answer.mean().abs() > 1e-3, lambda case: f"your mean is {case.answer.mean():.3f}.",
                 "The mean of what you return must be 0."),
    ),
    # two to four; the last has the key line
    hints=("What is x.mean() before, and what should it be afterwards?", "return x - x.mean()"),
)


# ---------------------------------------------------------------- 14.2


def _probes_14_2(generator: torch.Generator) -> list[tuple]:
    """Vectors of eight numbers, of five, and of one: small sizes and odd ones break shortcuts."""
    return [(torch.randn(size, generator=generator) + 3,) for size in (8, 5, 1)]


# TODO 14.2: this example takes the mean off a vector; write your own exercise over it
EXERCISE_14_2 = Exercise(
    # what goes in and what comes out, each with a name and a shape; messages use these names
    signature="answer_14_2(x (n,)) -> centred (n,)",
    probes=_probes_14_2,
    # each as in answers.py, by the same name: what was seen, with a number of the learner's; then where to look
    mistakes=(
        Mistake("nothing-taken-off", lambda case: f"the mean of your numbers is {case.answer.mean():.3f}.",
                "Take the mean of x off each of its numbers; what is left has the mean 0."),
        Mistake("sum-taken-off", lambda case: f"the mean of your numbers is {case.answer.mean():.3f}.",
                "That is what is left when the sum is taken off. The mean is the sum divided by how many there are."),
    ),
    # for answers that fit no mistake: the first that fails is printed
    properties=(
        Property(lambda case: case.answer.mean().abs() > 1e-3, lambda case: f"your mean is {case.answer.mean():.3f}.",
                 "The mean of what you return must be 0."),
    ),
    # two to four; the last has the key line
    hints=("What is x.mean() before, and what should it be afterwards?", "return x - x.mean()"),
)


# ---------------------------------------------------------------- 14.3


def _probes_14_3(generator: torch.Generator) -> list[tuple]:
    """Vectors of eight numbers, of five, and of one: small sizes and odd ones break shortcuts."""
    return [(torch.randn(size, generator=generator) + 3,) for size in (8, 5, 1)]


# TODO 14.3: this example takes the mean off a vector; write your own exercise over it
EXERCISE_14_3 = Exercise(
    # what goes in and what comes out, each with a name and a shape; messages use these names
    signature="answer_14_3(x (n,)) -> centred (n,)",
    probes=_probes_14_3,
    # each as in answers.py, by the same name: what was seen, with a number of the learner's; then where to look
    mistakes=(
        Mistake("nothing-taken-off", lambda case: f"the mean of your numbers is {case.answer.mean():.3f}.",
                "Take the mean of x off each of its numbers; what is left has the mean 0."),
        Mistake("sum-taken-off", lambda case: f"the mean of your numbers is {case.answer.mean():.3f}.",
                "That is what is left when the sum is taken off. The mean is the sum divided by how many there are."),
    ),
    # for answers that fit no mistake: the first that fails is printed
    properties=(
        Property(lambda case: case.answer.mean().abs() > 1e-3, lambda case: f"your mean is {case.answer.mean():.3f}.",
                 "The mean of what you return must be 0."),
    ),
    # two to four; the last has the key line
    hints=("What is x.mean() before, and what should it be afterwards?", "return x - x.mean()"),
)

EXERCISES = (EXERCISE_14_1, EXERCISE_14_2, EXERCISE_14_3)
