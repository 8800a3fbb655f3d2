"""The routes in START: their sections are there, and their hours are those of the notebooks."""

import re

import nbformat
import pytest

from course_tools.teaching import routes, timetable
from course_utils.copies.notebooks import NOTEBOOKS
from course_utils.files.paths import NUMBER

START = NOTEBOOKS / "START.ipynb"
COUNTED = timetable.counted_notebooks()


def test_the_routes_in_start_are_up_to_date():
    notebook = nbformat.read(START, as_version=4)
    assert not timetable.with_routes(notebook), "python -m course_tools timetable"


def test_the_minutes_add_up():
    part = routes.routes_part(COUNTED)
    for route in routes.ROUTES:
        counted = routes.minutes(route, COUNTED)
        assert set(counted) == (set(route.stops) or set(COUNTED) - {"hour"})
        if len(route.stops) < 2:
            continue
        shown = part.split(f"<summary>{route.name}, stop by stop")[1].split("</details>")[0]
        rows = re.findall(rf"^\| \[{NUMBER} [^|]+\| ([^|]+) \| (\d+) \| ([^|]+) \|$", shown, re.M)
        reading, low, high = (sum(column) for column in zip(*counted.values()))
        assert len(rows) == len(route.stops) and sum(int(minutes) for _, minutes, _ in rows) == reading
        ends = [tuple(map(int, found)) for found in re.findall(r"\((\d+)–(\d+)\) \|$", shown, re.M)]
        assert tuple(sum(column) for column in zip(*ends)) == (low, high)
        assert f"| **{route.name}** | {routes.hours(reading + low, reading + high)}" in part


def test_the_hours_are_what_the_names_promise():
    counted = {route.name: routes.minutes(route, COUNTED) for route in routes.ROUTES}
    spent = {name: [sum(column) for column in zip(*stops.values())] for name, stops in counted.items()}
    assert spent["An hour"][0] <= 70
    reading, low, high = spent["A weekend"]
    assert reading + high <= 10 * 60                                       # two days of five hours
    assert sum(spent["Everything"][::2]) == max(one + other for one, _, other in spent.values())


@pytest.mark.parametrize("stop", [routes.Stop([1, 77], ("4.99",))])
def test_a_section_or_an_exercise_that_there_is_not_is_named(stop):
    with pytest.raises(ValueError, match=r"\[77, '4.99'\] of 04_attention.ipynb"):
        routes.minutes(routes.Route("too far", "", {"04": stop}), COUNTED)


def test_the_hour_says_what_it_takes_with_its_exercises():
    notebook = nbformat.read(NOTEBOOKS / COUNTED["hour"].name, as_version=4)
    route, reading = routes.ROUTES[0], COUNTED["hour"].minutes
    assert reading + route.more[1] == int(re.search(r"(\d+) minutes in all", notebook.cells[0].source)[1])
    shown = routes.hours(reading + route.more[0], reading + route.more[1])
    assert shown == "1–1¾ hours" and f"| {shown} |" in routes.routes_part(COUNTED)


@pytest.mark.parametrize("minutes, shown", [((60, 100), "1–1¾ hours"), ((30, 60), "1 hour"), ((80, 140), "1–2 hours"),
                                            ((220, 235), "4 hours"), ((501, 593), "8–10 hours")])
def test_hours_are_whole_but_in_quarters_below_two(minutes, shown):
    assert routes.hours(*minutes) == shown


def test_neighbouring_sections_are_shown_as_a_range():
    for numbers, shown in (([1, 2, 3, 7], "1–3, 7"), ([1, 2], "1, 2"), ([4], "4"), ([1, 3, 4, 5], "1, 3–5")):
        assert routes.in_runs(numbers) == shown


@pytest.mark.parametrize("text", ["no place", f"{routes.BEGIN} {routes.BEGIN} {routes.END}", routes.BEGIN])
def test_a_start_without_one_place_for_the_routes_is_refused(text):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    with pytest.raises(ValueError, match="START.ipynb must hold <!-- routes: begin --> and <!-- routes: end --> once each"):
        timetable.with_routes(notebook)
