"""Learners' answers and what the checks must say about them: the runner of the files `test_learners_*`."""

import pytest

from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge

SEEDS = (0, 11)


def answers(names: str, cases: list[tuple]):
    """Runs a test once for each case (exercise, answer, …) and random seed; `names` are those of the case's parts."""
    shown = [getattr(answer, "__name__", type(answer).__name__ if callable(answer) else answer) for _, answer, *_ in cases]
    ids = [f"{i}-{case[0]}-{name}" for i, (case, name) in enumerate(zip(cases, shown))]

    def mark(test):
        return pytest.mark.parametrize(names, cases, ids=ids)(pytest.mark.parametrize("seed", SEEDS)(test))
    return mark


def assert_told(number: str, answer, seed: int, name: str, said: str) -> None:
    """The answer is wrong, and told so in these words; `name` is that of the mistake, "" where a property has failed."""
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert verdict.state == "wrong", verdict.text
    assert said.lower() in verdict.text.lower(), verdict.text
    assert verdict.names == ((name,) if name else ()), verdict.text


def assert_other(number: str, answer, seed: int, name: str) -> None:
    """The answer follows another convention, of this name, and is told so."""
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert (verdict.state, verdict.names) == ("other", (name,)), verdict.text


def assert_right(number: str, answer, seed: int) -> None:
    verdict = judge(find_exercise(number), answers_to(number), answer, seed)
    assert verdict.state == "right", verdict.text
