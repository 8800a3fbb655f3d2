"""All exercises by number. Does: find an exercise and its answers. Does not: define them.

Those of notebook 04 stand in lessons/n04: `ask` says what is asked, `answers` has the course's answers. An edition that is
handed out has no `answers`; it has sealed keys in their place (see `sealed`).
"""

import difflib
import importlib
import importlib.util
import inspect
import textwrap
from functools import lru_cache

from course_utils.exercises import lessons
from course_utils.exercises.definitions import Answers, Exercise
from course_utils.exercises.judge import right_order
from course_utils.exercises.lessons import lesson_of
from course_utils.exercises.sealed import Key, read_key


@lru_cache
def list_exercises() -> tuple[Exercise, ...]:
    """Every exercise of the course, in the order of the notebooks."""
    return tuple(exercise for name in _lessons() for exercise in _part(name, "ask").EXERCISES)


def find_exercise(number: str) -> Exercise:
    """The exercise of that number, such as "4.2". Raises ValueError that names those near it."""
    name = lesson_of(number)
    for exercise in _part(name, "ask").EXERCISES if name in _lessons() else ():   # the other lessons are not imported
        if exercise.id == number:
            return exercise
    known = [exercise.id for exercise in list_exercises()]
    near = difflib.get_close_matches(number, known, n=3, cutoff=0.1) or known[:3]
    raise ValueError(f"there is no exercise {number!r}; did you mean {', '.join(near)}?")


@lru_cache
def has_solutions() -> bool:
    """Whether this edition of the course holds the solutions."""
    return all(importlib.util.find_spec(f"{lessons.__name__}.{name}.answers") for name in _lessons())


def answers_to(number: str) -> Answers | Key:
    """The course's answer to an exercise, accepted variants and what each known mistake would write; else the key."""
    return _part(lesson_of(number), "answers").ANSWERS[number] if has_solutions() else read_key(find_exercise(number))


def source_of_solution(number: str) -> str:
    """The source of the course's answer; for an order, the lines in a right order."""
    exercise = find_exercise(number)
    if exercise.kind == "order":
        letters = right_order(answers_to(number).reference()).split()
        return "\n".join(f"{letter}  {exercise.lines[ord(letter) - ord('A')]}" for letter in letters)
    return textwrap.dedent(inspect.getsource(answers_to(number).reference)).strip()


@lru_cache
def _lessons() -> tuple[str, ...]:
    """The lessons with exercises, such as n04; 00 has a quiz only."""
    return tuple(sorted(path.parent.name for path in lessons.FOLDER.glob("n[0-9][0-9]/ask.py")))


def _part(lesson: str, part: str):
    return importlib.import_module(f"{lessons.__name__}.{lesson}.{part}")
