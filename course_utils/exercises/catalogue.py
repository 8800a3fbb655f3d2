"""All exercises by number. Does: find an exercise and its answers. Does not: define them (see `chapters`, `solutions`).

An edition that is handed out has no `solutions`; it has sealed keys in their place (see `keys`).
"""

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import textwrap
from functools import lru_cache

from course_utils.exercises import chapters
from course_utils.exercises.definitions import Answers, Exercise
from course_utils.exercises.engine import right_order
from course_utils.exercises.keys import Key, read_key


@lru_cache
def list_exercises() -> tuple[Exercise, ...]:
    """Every exercise of the course, in the order of the notebooks."""
    return tuple(exercise for name in _chapters() for exercise in _chapter(name).EXERCISES)


def find_exercise(number: str) -> Exercise:
    """The exercise of that number, such as "4.2". Raises ValueError that names those near it."""
    name = f"ch{number.partition('.')[0].zfill(2)}"
    for exercise in _chapter(name).EXERCISES if name in _chapters() else ():      # the other chapters are not imported
        if exercise.id == number:
            return exercise
    known = [exercise.id for exercise in list_exercises()]
    near = difflib.get_close_matches(number, known, n=3, cutoff=0.1) or known[:3]
    raise ValueError(f"there is no exercise {number!r}; did you mean {', '.join(near)}?")


def has_solutions() -> bool:
    """Whether this edition of the course holds the solutions."""
    return importlib.util.find_spec("course_utils.exercises.solutions") is not None


def answers_to(number: str) -> Answers | Key:
    """The course's answer to an exercise, accepted variants and what each known mistake would write; else the key."""
    return _solutions(number).ANSWERS[number] if has_solutions() else read_key(find_exercise(number))


def source_of_solution(number: str) -> str:
    """The source of the course's answer; for an order, the lines in a right order."""
    exercise = find_exercise(number)
    if exercise.kind == "order":
        letters = right_order(answers_to(number).reference()).split()
        return "\n".join(f"{letter}  {exercise.lines[ord(letter) - ord('A')]}" for letter in letters)
    return textwrap.dedent(inspect.getsource(answers_to(number).reference)).strip()


@lru_cache
def _chapters() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(chapters.__path__) if module.name.startswith("ch")))


def _chapter(name: str):
    return importlib.import_module(f"course_utils.exercises.chapters.{name}")


def _solutions(number: str):
    return importlib.import_module(f"course_utils.exercises.solutions.ch{number.partition('.')[0].zfill(2)}")
