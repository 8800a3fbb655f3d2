"""Talks: notebooks written for an audience, in notebooks/talks, of which every section is a slide with minutes of its own.

A section's first cell has its minutes in its metadata, under "slide"; `part` names the part of the talk that begins there.
Does: make a talk's deck, and list its parts with their minutes for the page for instructors. Does not: choose what is shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import nbformat

from course_tools.slides.deck import Reader
from course_tools.slides.notes import share
from course_tools.slides.page import Deck


class Station(NamedTuple):
    """A section of a talk: its `title`, its `minutes`, the `part` of the talk that begins with it, '' for none, and the
    `exercise` that people do there, likewise."""

    title: str
    minutes: float
    part: str
    exercise: str


def stations(path: Path) -> list[Station]:
    """The sections of a talk. Raises ValueError for one without minutes."""
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        first = cell.source.partition("\n")[0]
        if cell.cell_type != "markdown" or not first.startswith(("# ", "## ")):
            continue
        about, title = cell.metadata.get("slide", {}), first.lstrip("# ")
        if not about.get("minutes"):
            raise ValueError(f"{path.name}, {title!r}: the cell has no minutes in its metadata, under 'slide'")
        found.append(Station(title, about["minutes"], about.get("part", ""), about.get("exercise", "")))
    return found


def parts_of(path: Path) -> list[tuple[str, float]]:
    """The parts of a talk, each with its minutes."""
    found: list[list] = []
    for station in stations(path):
        if station.part:
            found.append([station.part, 0])
        found[-1][1] += station.minutes
    return [(part, minutes) for part, minutes in found]


def talk_deck(path: Path) -> tuple[Deck, dict[str, bytes]]:
    """A talk's deck, and its pictures by address."""
    reader = Reader(path)
    for station in stations(path):
        share([slide for slide in reader.slides if slide.section == station.title], station.minutes)
    total = sum(slide.minutes for slide in reader.slides)
    return Deck(path.stem, reader.slides[0].title, reader.slides, total), reader.files
