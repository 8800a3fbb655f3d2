"""The five routes through the course that START offers, with their hours.

Does: name each route's notebooks, sections and exercises, and add up their minutes. Does not: read notebooks or write START
(`timetable` does both).
"""

from collections.abc import Mapping
from typing import NamedTuple

BEGIN, END = "<!-- routes: begin -->", "<!-- routes: end -->"
ALL: list[int] = []                                       # all sections of a notebook


class Stop(NamedTuple):
    """What to read of a notebook, by section, and its exercises; `ALL` is the whole notebook."""

    sections: list[int] = ALL
    exercises: tuple[str, ...] = ()


class Route(NamedTuple):
    """A way through the course: its name, whom it's for, and its stops by number; 'hour' is the one for an hour.

    `more`: minutes, from low to high, that its stops don't count.
    """

    name: str
    whom: str
    stops: dict[str, Stop]
    more: tuple[int, int] = (0, 0)


ROUTES = (
    Route("An hour", "you want to see it once: four words by hand, then a model that you complete, train and question",
          {"hour": Stop()}, more=(15, 55)),       # completing the model; and with the exercises 4.1, 4.2 and 11.2
    Route("A weekend", "you want to build a classifier and run a language model, and leave the details for later", {
        "00": Stop(ALL),
        "02": Stop(ALL, ("2.2", "2.7")),
        "03": Stop([1, 2, 3, 4, 5, 6], ("3.6", "3.7")),
        "04": Stop([1, 2, 3, 4, 5, 6, 7], ("4.1", "4.2", "4.3")),
        "05": Stop([1, 2, 3, 4, 6], ("5.1", "5.6")),
        "06": Stop([1, 2, 5, 6], ("6.6",)),
        "07": Stop([1, 2, 3, 4, 5], ("7.6",)),
        "08": Stop(ALL, ("8.2",)),
        "02b": Stop([2, 3, 4], ()),
        "13": Stop([1, 2, 3, 4, 5], ("13.7",)),
        "14": Stop([1, 7], ()),
    }),
    Route("Everything", "you want to know why each part is as it is, and what was measured", {}),
    Route("What's inside", "you use Hugging Face, and want to write, load and open up what it runs", {
        "04": Stop([1, 2, 3, 4, 5, 6], ("4.2", "4.3")),
        "05": Stop(ALL, ("5.1", "5.6")),
        "06": Stop([1, 2, 5, 6], ()),
        "07": Stop(ALL, ("7.6", "7.2")),
        "08": Stop([1, 2, 3, 5, 6], ()),
        "14": Stop([1, 2, 3, 5, 6, 7], ("14.8",)),
        "02b": Stop([2, 3, 4, 5, 6], ("2.9",)),
        "13": Stop([1, 2, 3, 4, 5, 6, 8], ("13.7",)),
    }),
    Route("How it came about", "you want the story: attention beside recurrent networks, then without them", {
        "04": Stop(ALL, ("4.1", "4.2")),
        "13": Stop([1, 2, 3, 4], ()),
        "16": Stop(ALL, ()),
        "17": Stop([1, 2, 3, 4, 5, 7], ("17.7",)),
    }),
)


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
    """Minutes from `low` to `high` in hours: '8–9 hours', '1 hour'; in quarters where it's less than two: '1–1¾ hours'."""
    step = 15 if high < 120 else 60
    ends = sorted({max(60, step * round(low / step)), max(60, step * round(high / step))})
    shown = [f"{end // 60}{['', '¼', '½', '¾'][end % 60 // 15]}" for end in ends]
    return f"{'–'.join(shown)} hour{'s' if ends[-1] > 60 else ''}"


def minutes(route: Route, notebooks: Mapping[str, Counted]) -> dict[str, tuple[int, int, int]]:
    """By stop: minutes of reading, and of exercises from low to high. A route without stops goes to every notebook.

    Raises ValueError for a section or an exercise that there is not.
    """
    every = {number: Stop(ALL, tuple(one.exercises)) for number, one in notebooks.items() if number != "hour"}
    found = {}
    for number, (sections, exercises) in (route.stops or every).items():
        counted = notebooks[number]
        missing = [*(set(sections) - set(counted.sections)), *(set(exercises) - set(counted.exercises))]
        if missing:
            raise ValueError(f"the route {route.name!r} names {missing} of {counted.name}, which it has not; mend ROUTES in "
                             "course_tools/teaching/routes.py")
        reading = sum(counted.sections[section] for section in sections) if sections else counted.minutes
        found[number] = (reading, *(sum(counted.exercises[one][end] for one in exercises) for end in (0, 1)))
    return found


def routes_part(notebooks: Mapping[str, Counted]) -> str:
    """The routes in Markdown."""
    table, lists = ["| route | time | for you if |", "|---|---|---|"], []
    for route in ROUTES:
        counted = minutes(route, notebooks)
        reading, low, high = (sum(column) for column in zip(*counted.values(), (0, *route.more)))
        practice = f", {hours(low, high)} of them exercises" if high >= 60 else ""
        link = f"[{route.name}]({notebooks['hour'].name})" if list(route.stops) == ["hour"] else route.name
        table.append(f"| **{link}** | {hours(reading + low, reading + high)}{practice} | {route.whom} |")
        if len(route.stops) > 1:
            lists += [f"<details><summary>{route.name}, stop by stop</summary>", "",
                      "| notebook | sections | minutes | exercises (minutes) |", "|---|---|---|---|",
                      *(_row(notebooks[number], stop, counted[number]) for number, stop in route.stops.items()),
                      "", f"Together {reading} minutes to read and run, and {low}–{high} for the exercises.", "",
                      "</details>", ""]
    return "\n".join([*table, "", *lists]).rstrip()


def _row(one: Counted, stop: Stop, counted: tuple[int, int, int]) -> str:
    practice = f"{', '.join(stop.exercises)} ({counted[1]}–{counted[2]})" if stop.exercises else "–"
    return f"| [{one.title}]({one.name}) | {in_runs(stop.sections) or 'all'} | {counted[0]} | {practice} |"
