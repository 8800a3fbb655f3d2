"""The routes with slides of their own: their sections and exercises are there, and the page for instructors agrees."""

import re

import nbformat
import pytest

from course_tools.teaching import lectures, timetable
from course_utils.copies.notebooks import NOTEBOOKS, find
from course_utils.exercises.catalogue import find_exercise

PAGE = (NOTEBOOKS / "for_instructors.md").read_text(encoding="utf-8")


def test_the_page_for_instructors_is_up_to_date():
    assert timetable.with_timetable(PAGE) == PAGE, "python -m course_tools timetable"


@pytest.mark.parametrize("lecture", lectures.sessions(), ids=lambda lecture: lecture.name)
def test_every_section_and_exercise_of_a_route_is_there(lecture):
    for stretch in lecture.stretches:
        sections = timetable.counted(find([stretch.notebook])[0]).sections
        assert set(stretch.sections or ()) <= set(sections), stretch
        for number in stretch.exercises:
            assert find_exercise(number).title, number
    for number in lecture.home:
        assert find_exercise(number).title, number


def test_the_hour_says_the_same_minutes_as_its_notebook():
    cells = nbformat.read(NOTEBOOKS / "attention_in_an_hour.ipynb", as_version=4).cells
    said = next(cell.source for cell in cells if "notes" in cell.metadata.get("tags", []))
    minutes = [int(number) for number in re.findall(r"(\d+) (?:minutes )?for (?:section|the rest)", said)]
    assert minutes == [stretch.minutes for stretch in lectures.HOUR]
    headings = [int(found[1]) for cell in cells if (found := re.match(r"## (\d+)\.", cell.source))]
    assert headings == [section for stretch in lectures.HOUR for section in stretch.sections]
