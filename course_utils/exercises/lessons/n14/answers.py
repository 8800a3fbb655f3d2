"""Solutions of the exercises of notebook 14, and the answers that known mistakes give."""

from course_utils.exercises.definitions import Answers


# ---------------------------------------------------------------- 14.1


def answer_14_1(x):
    return x - x.mean()


EXERCISE_14_1 = Answers(
    answer_14_1,
    # what each known mistake would write; on some input each must differ from the right answer and from the others
    mutants={"nothing-taken-off": lambda x: x + 0, "sum-taken-off": lambda x: x - x.sum()},
)


# ---------------------------------------------------------------- 14.2


def answer_14_2(x):
    return x - x.mean()


EXERCISE_14_2 = Answers(
    answer_14_2,
    # what each known mistake would write; on some input each must differ from the right answer and from the others
    mutants={"nothing-taken-off": lambda x: x + 0, "sum-taken-off": lambda x: x - x.sum()},
)


# ---------------------------------------------------------------- 14.3


def answer_14_3(x):
    return x - x.mean()


EXERCISE_14_3 = Answers(
    answer_14_3,
    # what each known mistake would write; on some input each must differ from the right answer and from the others
    mutants={"nothing-taken-off": lambda x: x + 0, "sum-taken-off": lambda x: x - x.sum()},
)

ANSWERS = (EXERCISE_14_1, EXERCISE_14_2, EXERCISE_14_3)
