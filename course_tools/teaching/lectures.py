"""The routes of the page for instructors, as stretches with their minutes: the hour, the talk, half a day, four weeks.

`timetable` writes that page's tables from here, and the slides of a route follow them. Does: name sections, exercises and
minutes. Does not: read notebooks.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from course_tools.slides.talks import parts_of, stations
from course_tools.teaching.routes import in_runs
from course_utils.copies.notebooks import talks

BEGIN, END = "<!-- lectures: begin -->", "<!-- lectures: end -->"


class Stretch(NamedTuple):
    """Part of a lecture: a notebook's number, some `sections` (None: all), exercises in class, and `minutes` (None: those
    of its sections)."""

    notebook: str
    sections: tuple[int, ...] | None = None
    exercises: tuple[str, ...] = ()
    minutes: int | None = None


class Lecture(NamedTuple):
    """A deck of its own: `name` is its file's, `title` stands on its first slide; `home` are exercises for afterwards,
    `remember` the sentences of its last slide."""

    name: str
    title: str
    stretches: tuple[Stretch, ...]
    home: tuple[str, ...] = ()
    remember: tuple[str, ...] = ()


HOUR = (Stretch("hour", (1,), minutes=5), Stretch("hour", (2, 3), ("4.1",), 15), Stretch("hour", (4,), minutes=10),
        Stretch("hour", (5, 6, 7, 8, 9), minutes=20))

HALF_DAY = Lecture("half_a_day", "Half a day: from words to a classifier", (
    Stretch("01", (1, 2, 7)),
    Stretch("03", (1, 2, 3, 6)),
    Stretch("04", None, ("4.1", "4.3")),
    Stretch("05", (1, 2, 3, 4), ("5.1",)),
    Stretch("06", (1, 6)),
    Stretch("08", (1, 2, 5, 6)),
    Stretch("09", (1, 5, 6)),
), remember=(
    "A word counter gives two opposite reviews the same score.",
    "Change one word, and another word's vector moves.",
    "Without positions, a shuffled review is the same review.",
    "Five models of one design disagree about what their pooling is for.",
    "A null result counts only if the experiment could have found something.",
))


def _sections(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


# by week: the first session and the second, each with the words of the table; what to do at home; weeks 5 and 6 are extra
WEEKS: tuple[tuple[tuple[str, tuple[Stretch, ...]], tuple[str, tuple[Stretch, ...]], tuple[str, ...]], ...] = (
    (("00 and 01", (Stretch("00"), Stretch("01"))),
     ("02", (Stretch("02"),)), ("0.9", "1.3", "2.7")),
    (("03", (Stretch("03"),)),
     ("04, sections 1 to 4", (Stretch("04", _sections(1, 4)),)), ("3.6", "3.7", "4.1")),
    (("04, sections 5 to 7; 05, sections 1 to 4", (Stretch("04", _sections(5, 7)), Stretch("05", _sections(1, 4)))),
     ("05, the rest; 06, first half", (Stretch("05", _sections(5, 7)), Stretch("06", _sections(1, 6)))),
     ("4.2", "4.7", "5.6", "6.6")),
    (("07 and 08, sections 1 to 4", (Stretch("07"), Stretch("08", _sections(1, 4)))),
     ("08, the rest; 09", (Stretch("08", _sections(5, 6)), Stretch("09"))), ("7.6", "7.8", "8.2", "8.8")),
    (("10", (Stretch("10"),)), ("11, sections 1 to 4", (Stretch("11", _sections(1, 4)),)), ("10.7", "10.9", "11.6")),
    (("11, the rest", (Stretch("11", _sections(5, 7)),)), ("12, sections 1 to 6", (Stretch("12", _sections(1, 6)),)),
     ("12.5", "12.7")),
)


def sessions() -> list[Lecture]:
    """The sessions of four weeks, and of the two that may follow, as lectures."""
    return [Lecture(f"week_{week}_session_{k}", f"Week {week}, session {k}: {words}", stretches, home if k == 2 else ())
            for week, (first, second, home) in enumerate(WEEKS, start=1)
            for k, (words, stretches) in enumerate((first, second), start=1)]


def lectures() -> list[Lecture]:
    """Every route that has slides of its own; the hour's are its notebook's."""
    return [HALF_DAY, *sessions()]


def named(stretch: Stretch) -> str:
    """'01, sections 1 and 2', '01, section 10', '04, exercise 4.1'."""
    if stretch.sections is None:
        return stretch.notebook
    if not stretch.sections:
        return f"{stretch.notebook}, exercise {', '.join(stretch.exercises)}"
    numbers = stretch.sections
    if len(numbers) == 1:
        return f"{stretch.notebook}, section {numbers[0]}"
    runs = in_runs(list(numbers)).replace("–", " to ")
    return f"{stretch.notebook}, sections {runs.replace(', ', ' and ') if len(numbers) == 2 else runs}"


def _in_brackets(stretch: Stretch) -> str:
    """'01 (sections 1, 2, 4, 10)', '04 whole'."""
    if stretch.sections is None:
        return f"{stretch.notebook} whole"
    numbers = list(stretch.sections)
    runs = in_runs(numbers).replace("–", " to ")
    return f"{stretch.notebook} (sections {runs})"


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _talk_part(talk: Path) -> list[str]:
    rows = [f"| {minutes:g} | {part} |" for part, minutes in parts_of(talk)]
    return [f"**Ninety minutes: what attention is.** For people who know what a matrix is. It's a [talk](talks/{talk.name}) "
            f"of {len(stations(talk))} slides, with what to say below each; people work a row out by hand and change a live "
            "model at the beginning and at the end.", "",
            "| minutes | what |", "|---|---|", *rows, ""]


def lectures_part() -> str:
    """The three longer routes in Markdown, for the page for instructors."""
    in_class = [number for stretch in HALF_DAY.stretches for number in stretch.exercises]
    weeks = [f"| {week}{', if you have it' if week == 5 else ''} | {first[0]} | {second[0]} | {', '.join(home)} |"
             for week, (first, second, home) in enumerate(WEEKS, start=1)]
    return "\n".join([
        *(line for talk in talks() for line in _talk_part(talk)),
        f"**{HALF_DAY.title}.** {', '.join(map(_in_brackets, HALF_DAY.stretches))}. Do exercises {_listed(in_class)} in "
        "class and set the rest as homework.", "",
        "**Four weeks, or six, two sessions of ninety minutes each.**", "",
        "| week | first session | second session | at home |", "|---|---|---|---|", *weeks, ""])
