"""The routes in START: their sections are there, and their hours are those of the notebooks."""

import re

import nbformat
import pytest

from course_tools.teaching import routes, timetable
from course_utils.copies.notebooks import NOTEBOOKS, find

START = NOTEBOOKS / "START.ipynb"
COUNTED = {path.name[:2]: timetable.counted(path) for path in find([])}


def test_the_routes_in_start_are_up_to_date():
    notebook = nbformat.read(START, as_version=4)
    assert not timetable.with_routes(notebook), "python -m course_tools timetable"


def test_a_weekend_is_a_weekend():
    reading, low, high = routes.weekend_minutes(COUNTED)
    assert routes.hours(reading + low, reading + high) == "8–9 hours"
    assert "| 8–9 hours, about 2 of them exercises |" in routes.routes_part(COUNTED, "")


def test_the_minutes_add_up():
    part = routes.routes_part(COUNTED, "hour.ipynb")
    rows = re.findall(r"^\| \[\d\d [^|]+\| ([^|]+) \| (\d+) \| ([^|]+) \|$", part, re.M)
    reading, low, high = routes.weekend_minutes(COUNTED)
    assert len(rows) == len(routes.WEEKEND) and sum(int(minutes) for _, minutes, _ in rows) + routes.FRONT_MINUTES == reading
    ends = [tuple(map(int, found)) for found in re.findall(r"\((\d+)–(\d+)\) \|$", part, re.M)]
    assert (sum(one for one, _ in ends), sum(other for _, other in ends)) == (low, high)
    assert "[Hour](hour.ipynb)" in part and "Hour" not in routes.routes_part(COUNTED, "")


def test_a_section_or_an_exercise_that_there_is_not_is_named(monkeypatch):
    monkeypatch.setattr(routes, "WEEKEND", {"04": ([1, 77], ["4.99"])})
    with pytest.raises(ValueError, match=r"\[77, '4.99'\] of 04_attention.ipynb"):
        routes.weekend_minutes(COUNTED)


def test_neighbouring_sections_are_shown_as_a_range():
    for numbers, shown in (([1, 2, 3, 7], "1–3, 7"), ([1, 2], "1, 2"), ([4], "4"), ([1, 3, 4, 5], "1, 3–5")):
        assert routes.in_runs(numbers) == shown


@pytest.mark.parametrize("text", ["no place", f"{routes.BEGIN} {routes.BEGIN} {routes.END}", routes.BEGIN])
def test_a_start_without_one_place_for_the_routes_is_refused(text):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    with pytest.raises(ValueError, match="START.ipynb must hold <!-- routes: begin --> and <!-- routes: end --> once each"):
        timetable.with_routes(notebook)
