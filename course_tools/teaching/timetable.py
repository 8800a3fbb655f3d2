"""What each notebook sets out to teach, and how its minutes are divided among its sections.

`python -m course_tools timetable` rewrites these parts of notebooks/for_instructors.md, its table of extras and its longer
routes, and the routes with their hours in START. A new notebook gets a row in the table of minutes; its last column is first
copied from the README's table. The objectives and the minutes of a whole notebook come from its first cell. Its minutes are
divided among the sections by the length of their prose, code and figures. Exercises are timed separately. Does: read
notebooks. Does not: change them.
"""

import argparse
import re
from typing import NamedTuple

import nbformat

from course_tools.teaching import lectures, routes
from course_utils.copies.notebooks import NOTEBOOKS, extras, find, is_exercise, number_of, write_notebook
from course_utils.copies.start import read_extra
from course_utils.exercises.catalogue import list_exercises
from course_utils.files import write_text
from course_utils.files.paths import EXTRAS, FRONT, NUMBER

BEGIN, END = "<!-- timetable: begin -->", "<!-- timetable: end -->"
EXTRAS_BEGIN, EXTRAS_END = "<!-- extras: begin -->", "<!-- extras: end -->"
EXTRAS_HEAD = """## Extras

Each extra covers one subject, for anyone who wants to know more about it. \
Nothing in the course depends on them, and they have no exercises.

| extra | goes with | minutes |
|---|---|---|
"""
WORDS, LINES, FIGURES = 1 / 130, 1 / 12, 1.0           # minutes for a word read, a line of code understood, a figure


class Section(NamedTuple):
    """A section's number and title ('3. Ids', or '' for what has no number), and its minutes."""

    title: str
    minutes: int


class Lesson(NamedTuple):
    """A notebook: its title, objectives, and sections; `optional` holds those that may be skipped."""

    title: str
    objectives: list[str]
    core: list[Section]
    optional: list[Section]


def read_lesson(path) -> Lesson:
    """Read a notebook. Raises ValueError that names it if its first cell states no objectives or no minutes."""
    cells = nbformat.read(path, as_version=4).cells
    opening = cells[0].source
    objectives = re.findall(r"^(?:\d+\.|-) (.+)$", opening, re.M)
    core = re.search(r"[*][*]Time[*][*] about (\d+) minutes", opening)
    more = re.search(r"about (\d+) more for the optional sections (\d+) to (\d+)", opening)
    if not objectives or core is None:
        raise ValueError(f"{path.name}: the first cell must list objectives and state **Time** about N minutes")
    weights: dict[str, float] = {}
    heading = ""
    for cell in cells:
        if cell.cell_type == "markdown":
            found = re.search(r"^## (.+)$", cell.source, re.M)
            heading = found.group(1) if found else heading
            if cell.source.startswith("### Exercise"):
                continue
        name = heading if re.match(r"\d+\.", heading) else ""
        weights[name] = weights.get(name, 0.0) + _minutes(cell)
    skipped = set(range(int(more[2]), int(more[3]) + 1)) if more else set()
    parts: dict[bool, dict] = {False: {}, True: {}}
    for name, weight in weights.items():
        parts[bool(name) and int(name.split(".")[0]) in skipped][name] = weight
    title = re.search(r"^# (.+)$", opening, re.M).group(1)
    optional = _shared(parts[True], int(more[1])) if more else []
    return Lesson(title, objectives, _shared(parts[False], int(core[1])), optional)


def _minutes(cell) -> float:
    if is_exercise(cell):
        return 0.0
    if cell.cell_type == "markdown":
        return WORDS * len(cell.source.split())
    figures = sum("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    return LINES * len([line for line in cell.source.splitlines() if line.strip()]) + FIGURES * figures


def _shared(weights: dict[str, float], total: int) -> list[Section]:
    """Whole minutes in proportion to the weights, one at least, that add up to the total (largest remainders)."""
    exact = {name: max(1.0, total * weight / sum(weights.values())) for name, weight in weights.items()}
    whole = {name: int(minutes) for name, minutes in exact.items()}
    by_remainder = sorted(exact, key=lambda name: whole[name] - exact[name])
    while sum(whole.values()) != total:
        step = 1 if sum(whole.values()) < total else -1
        for name in by_remainder if step == 1 else sorted(whole, key=whole.get, reverse=True):
            if sum(whole.values()) == total:
                break
            whole[name] += step if whole[name] + step >= 1 else 0
    return [Section(name.removesuffix(" (optional)"), whole[name]) for name in weights]


def page_part() -> str:
    """The part of the page for instructors, in Markdown."""
    parts = []
    for lesson in map(read_lesson, find([])):
        parts += [f"**{lesson.title}**", ""] + [f"- {objective.rstrip('.;')}" for objective in lesson.objectives] + [""]
        rows = [f"{section.title} ({section.minutes})" for section in lesson.core if section.title]
        rest = sum(section.minutes for section in lesson.core if not section.title)
        parts += [f"*Minutes:* {' · '.join(rows)} · opening and closing ({rest})", ""]
        if lesson.optional:
            parts += ["*Optional:* " + " · ".join(f"{s.title} ({s.minutes})" for s in lesson.optional), ""]
    return "\n".join(parts)


def row_of(path, words: str) -> str:
    """A notebook's row in the table of minutes; `words` is its last column."""
    lesson, mine = read_lesson(path), [one for one in list_exercises() if one.notebook == number_of(path)]
    core, optional = (sum(section.minutes for section in sections) for sections in (lesson.core, lesson.optional))
    low, high = (sum(one.minutes[end] for one in mine) for end in (0, 1))
    cells = [lesson.title, core, optional or "–", len(mine) or "–", f"{low}–{high}" if mine else "–", words]
    return f"| {' | '.join(map(str, cells))} |\n"


def with_rows(page: str, readme: str) -> str:
    """The page with its table of minutes brought up to date; `readme` is where a new notebook's last column comes from."""
    rows = {row.split()[1]: row for row in re.findall(rf"^\| {NUMBER} (?:[^|\n]*\|){{6}}\n", page, re.M)}
    begin = page.index(next(iter(rows.values())))
    end = page.index(list(rows.values())[-1]) + len(list(rows.values())[-1])
    moments = dict(re.findall(rf"^\| \[({NUMBER}) .*\| ([^|]+) \|$", readme, re.M))
    said = {number: row.split("|")[-2].strip() for number, row in rows.items()}
    every = [row_of(path, said.get(number_of(path)) or moments[number_of(path)]) for path in find([])]
    return page[:begin] + "".join(every) + page[end:]


def extras_part() -> str:
    """The table of extras, in Markdown, with its heading; nothing where there are none."""
    rows = []
    for extra in map(read_extra, extras()):
        goes_with = ", ".join(f"[{number_of(name)}]({name})" for name in extra.goes_with)
        rows.append(f"| [{extra.title}]({EXTRAS}/{extra.path.name}) | {goes_with} | {extra.minutes} |\n")
    return f"{EXTRAS_HEAD}{''.join(rows)}" if rows else ""


def with_timetable(page: str) -> str:
    """The page with its timetable, extras and routes brought up to date. Raises ValueError where a mark is missing."""
    written = ((BEGIN, END, page_part()), (EXTRAS_BEGIN, EXTRAS_END, extras_part()),
               (lectures.BEGIN, lectures.END, lectures.lectures_part()))
    for begin, end, part in written:
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"for_instructors.md must hold {begin} and {end} once each")
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{part}{end}{rest.partition(end)[2]}"
    return page


def counted(path) -> routes.Counted:
    """A notebook's minutes, as the routes need them."""
    lesson = read_lesson(path)
    sections = {int(one.title.split(".")[0]): one.minutes for one in [*lesson.core, *lesson.optional] if one.title}
    mine = {one.id: one.minutes for one in list_exercises() if one.notebook == number_of(path)}
    return routes.Counted(lesson.title, path.name, sections, sum(one.minutes for one in lesson.core), mine)


def counted_notebooks() -> dict[str, routes.Counted]:
    """Every notebook on a route by its number; 'hour' is the one for an hour."""
    return {number_of(path) or "hour": counted(path) for path in [NOTEBOOKS / f"{FRONT[1]}.ipynb", *find([])]}


def with_routes(notebook) -> bool:
    """Bring the routes in START up to date; whether that changed them. Raises ValueError where their place is missing."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "markdown" and routes.BEGIN in cell.source]
    if len(cells) != 1 or cells[0].source.count(routes.BEGIN) != 1 or cells[0].source.count(routes.END) != 1:
        raise ValueError(f"START.ipynb must hold {routes.BEGIN} and {routes.END} once each, in one cell")
    before, _, rest = cells[0].source.partition(routes.BEGIN)
    part = routes.routes_part(counted_notebooks())
    source = f"{before}{routes.BEGIN}\n\n{part}\n\n{routes.END}{rest.partition(routes.END)[2]}"
    changed, cells[0].source = source != cells[0].source, source
    return changed


def main(arguments: list[str] | None = None) -> int:
    """Rewrite the timetable on the page for instructors and the routes in START; return the exit status."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(arguments)     # takes no arguments: any is refused
    path = NOTEBOOKS / "for_instructors.md"
    page = with_rows(path.read_text(encoding="utf-8"), (NOTEBOOKS.parent / "README.md").read_text(encoding="utf-8"))
    write_text(path, with_timetable(page))
    print(f"wrote notebooks/{path.name}")
    start = NOTEBOOKS / f"{FRONT[0]}.ipynb"
    notebook = nbformat.read(start, as_version=4)
    if with_routes(notebook):
        write_notebook(notebook, start)
        print(f"wrote notebooks/{start.name}")
    return 0
