"""The three routes through the course that START offers, with their hours: an hour, a weekend, everything.

Does: choose the sections and exercises of a weekend, and add up their minutes. Does not: read notebooks or write START
(`timetable` does both).
"""

from collections.abc import Mapping
from typing import NamedTuple

BEGIN, END = "<!-- routes: begin -->", "<!-- routes: end -->"
FRONT_MINUTES = 10                                        # for START itself
# by notebook: the sections of a weekend, and its exercises
WEEKEND: dict[str, tuple[list[int], list[str]]] = {
    "01": ([1, 2, 4, 8, 10], []),
    "02": ([1, 3, 6, 7], ["2.2"]),
    "03": ([1, 3, 4, 5, 6], ["3.3"]),
    "04": ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], ["4.1", "4.2", "4.3"]),
    "05": ([1, 2, 3, 4, 5, 8, 9], ["5.1"]),
    "06": ([1, 2, 3, 7], ["6.1"]),
    "07": ([1, 2, 3, 4, 6, 7, 9, 10], ["7.2"]),
    "08": ([1, 2, 3, 4, 5, 6, 7], ["8.2"]),
    "09": ([1, 2, 5, 6, 7, 8, 9], []),
    "10": ([1, 2, 3, 6], ["10.4"]),
    "11": ([1, 2, 3, 7], []),
}


class Counted(NamedTuple):
    """A notebook: its `title`, file `name`, minutes by section number, all its `minutes`, and (low, high) by exercise."""

    title: str
    name: str
    sections: Mapping[int, int]
    minutes: int
    exercises: Mapping[str, tuple[int, int]]


def in_runs(numbers: list[int]) -> str:
    """[1, 2, 3, 7] as '1–3, 7'; two neighbours are no run."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def hours(low: float, high: float) -> str:
    """Minutes from `low` to `high` in whole hours: '8–9 hours'."""
    return f"{round(low / 60)}–{round(high / 60)} hours"


def weekend_minutes(notebooks: Mapping[str, Counted]) -> tuple[int, int, int]:
    """Of the weekend: minutes of reading, and of exercises from low to high.

    Raises ValueError for a section or an exercise that there is not.
    """
    reading, low, high = FRONT_MINUTES, 0, 0
    for number, (sections, exercises) in WEEKEND.items():
        counted = notebooks[number]
        missing = [*(set(sections) - set(counted.sections)), *(set(exercises) - set(counted.exercises))]
        if missing:
            raise ValueError(f"the weekend's route names {missing} of {counted.name}, which it has not; mend WEEKEND in "
                             "course_tools/teaching/routes.py")
        reading += sum(counted.sections[section] for section in sections)
        low += sum(counted.exercises[one][0] for one in exercises)
        high += sum(counted.exercises[one][1] for one in exercises)
    return reading, low, high


def routes_part(notebooks: Mapping[str, Counted], hour: str) -> str:
    """The routes in Markdown; `hour` is the file name of the notebook for an hour, '' while there is none."""
    reading, low, high = weekend_minutes(notebooks)
    core = sum(one.minutes for one in notebooks.values())
    every = [minutes for one in notebooks.values() for minutes in one.exercises.values()]
    all_low, all_high = (core + sum(minutes[end] for minutes in every) for end in (0, 1))
    rows = []
    for number, (sections, exercises) in WEEKEND.items():
        one = notebooks[number]
        minutes = sum(one.sections[section] for section in sections)
        ends = [sum(one.exercises[name][end] for name in exercises) for end in (0, 1)]
        shown = f"{', '.join(exercises)} ({ends[0]}–{ends[1]})" if exercises else "–"
        rows.append(f"| [{one.title}]({one.name}) | {in_runs(sections)} | {minutes} | {shown} |")
    practice = f"about {round((low + high) / 120)} of them exercises"
    routes = [
        ("Weekend", f"{hours(reading + low, reading + high)}, {practice}", "byte pairs, other kinds of positions, half "
         "of 10, most of 11, all of 12, the longer exercises", "the sections not listed below; each notebook runs alone"),
        ("Everything", f"{hours(all_low, all_high)}, about half of them exercises", "the extras", "the list under the map"),
    ]
    if hour:
        routes.insert(0, (f"[Hour]({hour})", "one sitting", "why each part is the way it is; most measurements",
                          "each step names its notebook"))
    return "\n".join([
        "| | time | what it leaves out | how to catch up |",
        "|---|---|---|---|",
        *(f"| **{name}** | {time} | {without} | {later} |" for name, time, without, later in routes),
        "",
        "<details><summary>The weekend, section by section</summary>",
        "",
        "| notebook | sections | minutes | exercises (minutes) |",
        "|---|---|---|---|",
        *rows,
        "",
        f"Together {reading} minutes to read and run, START included, and {low}–{high} for the exercises.",
        "",
        "</details>",
    ])
