"""All exercises by number. Does: find an exercise and its answers. Does not: define them.

Those of notebook 04 are in notebooks/exercises/n04 (that folder's __init__ says how they are written). Number, title,
minutes and words come from the notebook's cells, by way of notebook.json; `EXERCISES` in `ask` and `ANSWERS` in `answers`
follow in the same order. An edition that is handed out has no `answers`; it has sealed keys in their place (see `sealed`).
"""

import difflib
import inspect
import json
import textwrap
from functools import lru_cache

from course_utils.exercises.definitions import Answers, Exercise, right_order
from course_utils.exercises.folder import has_part, lesson_of, part_of
from course_utils.exercises.sealed import Key, read_key
from course_utils.files.paths import EXERCISES


@lru_cache
def list_exercises() -> tuple[Exercise, ...]:
    """Every exercise of the course, in the order of the notebooks."""
    return tuple(exercise for name in _lessons() for exercise in _exercises_of(name))


def find_exercise(number: str) -> Exercise:
    """The exercise of that number, such as "4.2". Raises ValueError that names those near it."""
    name = lesson_of(number)
    for exercise in _exercises_of(name) if name in _lessons() else ():   # the other lessons are not imported
        if exercise.id == number:
            return exercise
    known = [exercise.id for exercise in list_exercises()]
    if not known:
        raise ValueError(f"there are no exercises: expected their records in {EXERCISES}. The course is used from its own "
                         "folder: clone it, or unpack it again, and install it there with pip install -e .")
    near = difflib.get_close_matches(number, known, n=3, cutoff=0.1) or known[:3]
    raise ValueError(f"there is no exercise {number!r}; did you mean {', '.join(near)}?")


@lru_cache
def has_solutions() -> bool:
    """Whether this edition of the course holds the solutions."""
    return all(has_part(name, "answers") for name in _lessons())


def answers_to(number: str) -> Answers | Key:
    """The course's answer to an exercise and what each known mistake would write; else the key."""
    exercise, name = find_exercise(number), lesson_of(number)
    if not has_solutions():
        return read_key(exercise)
    return part_of(name, "answers").ANSWERS[[other.id for other in _exercises_of(name)].index(number)]


def source_of_solution(number: str) -> str:
    """The source of the course's answer; for an order, the lines in a right order."""
    exercise = find_exercise(number)
    if exercise.kind == "order":
        letters = right_order(answers_to(number).reference()).split()
        return "\n".join(f"{letter}  {exercise.lines[ord(letter) - ord('A')]}" for letter in letters)
    return textwrap.dedent(inspect.getsource(answers_to(number).reference)).strip()


@lru_cache
def _exercises_of(lesson: str) -> tuple[Exercise, ...]:
    """The exercises of a lesson, with what the notebook says of them. ValueError unless there is one for each cell."""
    told = json.loads((EXERCISES / lesson / "notebook.json").read_text(encoding="utf-8"))
    asked = part_of(lesson, "ask").EXERCISES
    if len(asked) != len(told):
        raise ValueError(f"notebook {lesson[1:]} has cells for {', '.join(told)}, and EXERCISES in n{lesson[1:]}/ask.py "
                         f"has {len(asked)}: write one for each, in the same order, then python -m course_tools export")
    return tuple(one._replace(id=number, title=cell["title"], minutes=tuple(cell["minutes"]), question=cell["question"])
                 for one, (number, cell) in zip(asked, told.items()))


@lru_cache
def _lessons() -> tuple[str, ...]:
    """The lessons with exercises, such as n04."""
    return tuple(sorted(path.parent.name for path in EXERCISES.glob("n[0-9][0-9]/ask.py")))
