"""All exercises by number. Does: find an exercise, its answers and its quiz. Does not: define them.

Those of notebook 04 are in notebooks/exercises/n04.py: its records (see `records`), whose numbers they name themselves, and
`QUIZ`. Title, minutes and words come from the notebook's cell of that number.
"""

import difflib
import inspect
import json
import re
import textwrap
from functools import lru_cache

from course_utils.exercises.definitions import Answers, Exercise, Record, right_order
from course_utils.exercises.folder import is_sealed, lessons_of, list_lessons, part_of
from course_utils.exercises.sealed import Key, read_key
from course_utils.files.paths import EXERCISES, NOTEBOOKS, named_as

HEADING = re.compile(r"### Exercise (?P<id>R?\d+[a-z]?\.\d+) (?P<title>.+) \((optional, )?(?P<low>\d+)–(?P<high>\d+) "
                     r"minutes\)\s*")


@lru_cache
def list_exercises() -> tuple[Exercise, ...]:
    """Every exercise of the course, in the order of the notebooks."""
    return tuple(record.exercise for name in _lessons() for record in _records_of(name).values())


def find_exercise(number: str) -> Exercise:
    """The exercise of that number, such as "4.2". Raises ValueError that names those near it."""
    for name in lessons_of(number):                                        # the other lessons are not imported
        if number in _records_of(name):
            return _records_of(name)[number].exercise
    known = [exercise.id for exercise in list_exercises()]
    if not known:
        raise ValueError(f"there are no exercises: expected their records in {EXERCISES}. The course is used from its own "
                         "folder: clone it, or unpack it again, and install it there with pip install -e .")
    near = difflib.get_close_matches(number, known, n=3, cutoff=0.1) or known[:3]
    raise ValueError(f"there is no exercise {number!r}; did you mean {', '.join(near)}?")


@lru_cache
def has_solutions() -> bool:
    """Whether this edition of the course holds the solutions: one without them is sealed, or has nothing but questions."""
    first = next(iter(_records_of(_lessons()[0]).values())).answers
    return not is_sealed() and first is not None and first.reference is not None


def answers_to(number: str) -> Answers | Key:
    """The course's answer to an exercise and what each known mistake would write; of a sealed number or order the key.

    Raises FileNotFoundError where there is neither.
    """
    exercise = find_exercise(number)
    if is_sealed() and exercise.kind != "function":
        return read_key(exercise)
    answers = record_of(number).answers
    if answers is None or answers.reference is None:
        raise FileNotFoundError(f"this copy of the course has no answer to exercise {number}; unpack it again")
    return answers


def record_of(number: str) -> Record:
    """The whole record of an exercise that there is."""
    return _records_of(f"n{find_exercise(number).notebook}")[number]


def source_of_solution(number: str) -> str:
    """The source of the course's answer; for an order, the lines in a right order."""
    exercise = find_exercise(number)
    if exercise.kind == "order":
        letters = right_order(answers_to(number).reference()).split()
        return "\n".join(f"{letter}  {exercise.lines[ord(letter) - ord('A')]}" for letter in letters)
    return textwrap.dedent(inspect.getsource(answers_to(number).reference)).strip()


@lru_cache
def _records_of(lesson: str) -> dict[str, Record]:
    """The records of a lesson by their numbers, with what the notebook says of each."""
    told, found = _told(lesson[1:]), {}
    for exercise, answers in (one for one in vars(part_of(lesson)).values() if isinstance(one, Record)):
        if exercise.id in found:
            raise ValueError(f"two records of notebook {lesson[1:]} have the number {exercise.id}")
        found[exercise.id] = Record(exercise._replace(notebook=lesson[1:], **told.get(exercise.id, {})), answers)
    return found


def _told(notebook: str) -> dict[str, dict]:
    """What a notebook's cells say of its exercises, by their numbers: title, minutes, question, the code below it."""
    told = {}
    for path in NOTEBOOKS.glob(named_as(notebook)):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for cell, below in zip(cells, [*cells[1:], {"source": ""}]):
            heading, _, words = "".join(cell["source"]).partition("\n")
            if cell["cell_type"] == "markdown" and (found := HEADING.fullmatch(heading)):
                told[found["id"]] = {"title": found["title"], "minutes": (int(found["low"]), int(found["high"])),
                                     "question": words.strip(), "stub": "".join(below["source"])}
    return told


@lru_cache
def _lessons() -> tuple[str, ...]:
    """The lessons with exercises, such as n04."""
    return tuple(list_lessons())
