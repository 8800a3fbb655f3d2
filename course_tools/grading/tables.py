"""Grades as lines to print and as a table for a spreadsheet. A file's name never breaks a line or becomes a formula.

Does: show grades. Does not: make them (see `grade`).
"""

import csv
import io
import json
import os
from typing import NamedTuple

from course_tools.grading.hand_ins import HandIn, Lesson
from course_utils.exercises.catalogue import list_exercises

PLAIN = "/._- ()+,=@~" + os.sep                         # in names, beside letters and digits


class Grade(NamedTuple):
    """What came of one file: its notebook, {exercise: state}, remarks; without a notebook the remark says why.

    `mistakes` has the names of the known mistakes in what isn't right, and `said` what `check` would say, both by exercise.
    """

    hand_in: HandIn
    lesson: Lesson | None
    states: dict[str, str]
    remarks: tuple[str, ...]
    mistakes: dict[str, tuple[str, ...]] = {}
    said: dict[str, str] = {}


def shown(name) -> str:
    """A file's name on one line, whatever is in it; in quotes where it could be taken for something else."""
    text = str(name)
    if all(letter.isalnum() or letter in PLAIN for letter in text):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def line_of(grade: Grade, minutes: dict[str, int]) -> str:
    """A grade on one line."""
    where = shown(grade.hand_in.path)
    if grade.lesson is None:
        return f"{where}: cannot be graded: {'; '.join(grade.remarks)}"
    if not grade.hand_in.path.name.startswith(grade.lesson.number):
        where += f" ({grade.lesson.name})"
    solved, right = [number for number, state in grade.states.items() if state == "right"], grade.states
    named = {number: f" ({' or '.join(names)})" for number, names in grade.mistakes.items() if names}
    rest = [f"{number} {state}{named.get(number, '')}" for number, state in grade.states.items() if state != "right"]
    share = f"{sum(minutes[n] for n in solved)} of {sum(minutes[n] for n in right)} minutes"
    parts = [f"{len(solved)} of {len(right)} right ({share})", ", ".join(rest), *grade.remarks]
    return f"{where}: {'; '.join(part for part in parts if part)}"


def table_of(grades: list[Grade], minutes: dict[str, int]) -> str:
    """All grades as CSV: a row a file, a column an exercise."""
    numbers = list(dict.fromkeys(n for exercise in list_exercises() for g in grades for n in g.states if n == exercise.id))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["file", "notebook", "right", "exercises", "minutes", "of minutes", *(f"exercise {n}" for n in numbers),
                     "remarks", "SHA-256"])
    for grade in grades:
        solved = [number for number, state in grade.states.items() if state == "right"]
        totals = [len(solved), len(grade.states), sum(minutes[n] for n in solved), sum(minutes[n] for n in grade.states)]
        writer.writerow([_cell(str(grade.hand_in.path)), grade.lesson.name if grade.lesson else "",
                         *(totals if grade.lesson else [""] * 4), *(grade.states.get(n, "") for n in numbers),
                         _cell("; ".join([*(f"{n}: {said}" for n, said in grade.said.items()), *grade.remarks])),
                         grade.hand_in.sha256])
    return out.getvalue()


def _cell(text: str) -> str:
    """Text for a spreadsheet: on one line, and no formula."""
    text = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii") for letter in text)
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@") else text
