"""The routes of the page for instructors, as stretches with their minutes: the hour, the talks, four weeks.

`timetable` writes that page's tables from here, and the slides of a route follow them. Does: name sections, exercises and
minutes. Does not: read notebooks.
"""

from __future__ import annotations

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
    """A deck of its own: `name` is its file's, `title` stands on its first slide; `home` are exercises for afterwards."""

    name: str
    title: str
    stretches: tuple[Stretch, ...]
    home: tuple[str, ...] = ()


HOUR = (Stretch("hour", (1,), minutes=5), Stretch("hour", (2, 3), ("4.1",), 15), Stretch("hour", (4,), minutes=10),
        Stretch("hour", (5, 6, 7, 8, 9), minutes=20))

# what each talk is, after its title; its slides and minutes come from the talk
TALKS = {
    "one_hour": "For people who know what a matrix is and have no computer before them. They work a row out by hand; a live "
                "model is changed at the beginning, and loses a head at the end.",
    "ninety_minutes": "The same people, and half an hour more: softmax that sharpens, the root, several heads, real "
                      "reviews, large models.",
    "half_a_day": "For people who write Python, each with the course on a computer of their own. Between the slides they do "
                  "three exercises in the notebooks, {exercises}: they write a head, the layer and the training step, and "
                  "train a model that reads a sentence of theirs.",
}


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


def talks_by_length() -> list[Path]:
    """The talks, the shortest first."""
    return sorted(talks(), key=lambda talk: sum(station.minutes for station in stations(talk)))


def _talk_part(talk: Path) -> list[str]:
    every = stations(talk)
    in_class = [station.exercise for station in every if station.exercise]
    about = TALKS[talk.stem].format(exercises=_listed(in_class) if in_class else "")
    rows = [f"| {minutes:g} | {part} |" for part, minutes in parts_of(talk)]
    where = f"It's a [talk](talks/{talk.name}) of {len(every)} slides, with what to say below each."
    return [f"**{every[0].title}.** {about} {where}", "", "| minutes | what |", "|---|---|", *rows, ""]


def _listed(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def lectures_part() -> str:
    """The talks and the weeks in Markdown, for the page for instructors."""
    weeks = [f"| {week}{', if you have it' if week == 5 else ''} | {first[0]} | {second[0]} | {', '.join(home)} |"
             for week, (first, second, home) in enumerate(WEEKS, start=1)]
    return "\n".join([
        *(line for talk in talks_by_length() for line in _talk_part(talk)),
        "**Four weeks, or six, two sessions of ninety minutes each.**", "",
        "| week | first session | second session | at home |", "|---|---|---|---|", *weeks, ""])
