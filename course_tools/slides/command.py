"""The slides: `python -m course_tools slides [04 …]` writes outputs/slides (`make slides`).

Does: make a deck for the hour and each numbered notebook, and for each route, with an index; put reveal.js, the font of the
formulas and the pictures beside them, so that the folder asks no network for anything. Does not: execute a notebook.
Needs course_tools/site/requirements.txt.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Iterable
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from course_tools.slides.blocks import of_part
from course_tools.slides.deck import Reader, Slide
from course_tools.slides.notes import share
from course_tools.slides.page import Deck, deck_html, index_html
from course_tools.slides.prose import Part
from course_tools.slides.talks import talk_deck
from course_tools.teaching import lectures
from course_tools.teaching.timetable import read_lesson
from course_utils.copies.notebooks import NOTEBOOKS, find, talks
from course_utils.files import write_bytes, write_text
from course_utils.files.paths import FRONT, output_folder

HOUR = FRONT[1]
WELCOME = "Before you begin, START projected for ten minutes makes a good opening."
NEEDED = ("markdown_it", "mdit_py_plugins", "latex2mathml", "ziamath", "fontTools", "brotli", "sphinx_revealjs")


def notebook_deck(path: Path) -> tuple[Deck, dict[str, bytes]]:
    """A notebook's deck, and its pictures by address."""
    reader = Reader(path)
    for slides, minutes in _by_section(reader, path):
        share(slides, minutes)
    total = sum(slide.minutes for slide in reader.slides)
    return Deck(path.stem, reader.slides[0].title, reader.slides, total), reader.files


def _by_section(reader: Reader, path: Path) -> Iterable[tuple[list[Slide], float]]:
    """The slides of each section with the section's minutes; those of the opening and the closing together."""
    if reader.number == "hour":
        for stretch in lectures.HOUR:
            first = reader.slides[:2] if stretch is lectures.HOUR[0] else []
            yield first + [slide for slide in reader.slides if _section(slide) in stretch.sections], stretch.minutes
        return
    lesson = read_lesson(path)
    minutes = {int(one.title.split(".")[0]): one.minutes for one in [*lesson.core, *lesson.optional] if one.title}
    for number, given in minutes.items():
        slides = [slide for slide in reader.slides if _section(slide) == number]
        set_work = [slide for slide in slides if slide.kind == "exercise"]
        share([slide for slide in slides if slide.kind != "exercise"], given)
        for slide in set_work:
            share([slide], _exercise_minutes(slide))
    rest = [slide for slide in reader.slides if not _section(slide)]
    yield rest, sum(one.minutes for one in lesson.core if not one.title)


def _exercise_minutes(slide: Slide) -> float:
    from course_utils.exercises.catalogue import find_exercise
    return sum(find_exercise(slide.exercise).minutes) / 2


def _section(slide: Slide) -> int:
    """The number of a slide's section; 0 for what has none."""
    found = re.match(r"(\d+)\. ", slide.section)
    return int(found[1]) if found else 0


def route_deck(lecture: lectures.Lecture) -> tuple[Deck, dict[str, bytes]]:
    """A route's deck: the slides of its stretches, with the route's own minutes."""
    slides, pictures, agenda, names = [], {}, [], []
    for stretch in lecture.stretches:
        path = find([stretch.notebook])[0]
        reader = Reader(path, stretch.exercises)
        chosen = [slide for slide in reader.slides if _belongs(slide, stretch)]
        sections = {int(one.title.split(".")[0]): one.minutes
                    for part in (read_lesson(path).core, read_lesson(path).optional) for one in part if one.title}
        numbers = sections if stretch.sections is None else stretch.sections
        minutes = stretch.minutes or sum(sections[number] for number in numbers) \
            + sum(_exercise_minutes(slide) for slide in chosen if slide.kind == "exercise")
        share(chosen, minutes)
        agenda.append(f"| {round(minutes)} | {_topics(stretch, chosen)} |")
        names.append(lectures.named(stretch))
        slides += chosen
        pictures |= {name: content for name, content in reader.files.items()
                     if any(name in block.html for slide in chosen for block in slide.blocks)}
    opening = Slide(lecture.name, lecture.title, lecture.title, "title", notebook=lecture.title)
    opening.blocks.append(of_part(Part("table", "\n".join(["| minutes | what |\n|---|---|", *agenda]))))
    opening.say.append(f"In the notebooks: {'; '.join(names)}. {WELCOME}")
    if lecture.home:
        opening.notes.append(("At home:", f"exercises {', '.join(lecture.home)}"))
    return Deck(lecture.name, lecture.title, [opening, *slides], sum(slide.minutes for slide in slides)), pictures


def _topics(stretch: lectures.Stretch, slides: list[Slide]) -> str:
    """What a stretch is about, in the words of its headings; its notebook's title where they are many."""
    titles = dict.fromkeys(slide.title if slide.kind == "exercise" and not stretch.sections
                           else re.sub(r"^\d+\. ", "", slide.section) for slide in slides)
    return " · ".join(titles) if stretch.sections is not None and len(titles) <= 2 else slides[0].notebook


def _belongs(slide: Slide, stretch: lectures.Stretch) -> bool:
    """Whether a slide of a notebook is part of a stretch."""
    if slide.kind == "exercise":
        return slide.exercise in stretch.exercises
    if stretch.sections is None:
        return True
    return _section(slide) in stretch.sections


def write_slides(folder: Path, names: list[str]) -> list[Deck]:
    """Write the decks of the notebooks that `names` says, or all decks; return them."""
    paths = find(names) if names else [NOTEBOOKS / f"{HOUR}.ipynb", *find([])]
    made = [(talk_deck if path in talks() else notebook_deck)(path) for path in paths]
    told = [] if names else [talk_deck(path) for path in lectures.talks_by_length()]
    routes = [*told, *([] if names else map(route_deck, lectures.sessions()))]
    folder.mkdir(parents=True, exist_ok=True)
    formulas = ""
    for deck, pictures in [*made, *routes]:
        for address, content in pictures.items():
            (folder / address).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(folder / address, content)
        page = deck_html(deck)
        formulas += page
        write_text(folder / f"{deck.name}.html", page)
    notebooks, ways = [deck for deck, _ in made], [deck for deck, _ in routes]
    hours = [deck for deck in notebooks if deck.name == HOUR]
    groups = [("Routes", [*hours, *ways[:len(told)]]), ("Four weeks, and two more", ways[len(told):]),
              ("Notebooks", [deck for deck in notebooks if deck.name != HOUR])]
    write_text(folder / "index.html", index_html([(name, decks) for name, decks in groups if decks]))
    write_reveal(folder / "reveal", formulas)
    return [*notebooks, *ways]


def write_reveal(folder: Path, formulas: str) -> None:
    """Put reveal.js, its notes, the font and our style into a folder, with their versions and licences."""
    from course_tools.site import mathematics

    shutil.rmtree(folder, ignore_errors=True)
    mathematics.write_font(folder, "".join(re.findall(r"<math.*?</math>", formulas, re.S)))
    write_text(folder / "mathematics.css", mathematics.STYLE)
    source = files("sphinx_revealjs") / "_static" / "revealjs"
    for name, place in (("reveal.js", "dist/reveal.js"), ("reveal.css", "dist/reveal.css"),
                        ("notes.js", "plugin/notes/notes.js"), ("reveal-LICENSE.txt", "LICENSE")):
        content = re.sub(r"//# sourceMappingURL=.*", "", (source / place).read_text(encoding="utf-8"))
        write_text(folder / name, content)
    number = re.search(r"reveal\.js (\d+\.\d+\.\d+)", (source / "dist/reveal.js").read_text(encoding="utf-8")[:500])[1]
    write_text(folder / "VERSIONS.txt", f"reveal.js {number}, with its plugin for notes: MIT licence (reveal-LICENSE.txt), "
               f"from the package sphinx-revealjs {version('sphinx-revealjs')}\n"
               "STIX Two Math, cut down to what the formulas need: SIL Open Font License 1.1 (STIXTwoMath-LICENSE.txt), "
               f"from the package ziamath {version('ziamath')}\n")
    for name in ("slides.css", "slides.js", "pieces.css"):
        shutil.copyfile(Path(__file__).with_name(name), folder / name)


def main(arguments: list[str] | None = None) -> int:
    """Write the slides of all notebooks and routes, or of the notebooks named, to outputs/slides; return the exit status."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", help="the number of a notebook, such as 04, or hour")
    names, folder = parser.parse_args(arguments).names, output_folder() / "slides"
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        print(f"the slides need {', '.join(missing)}; make slides installs them, or: "
              "python -m pip install -r course_tools/site/requirements.txt", file=sys.stderr)
        return 1
    decks = write_slides(folder, names)
    print(f"{len(decks)} decks, {sum(len(deck.slides) for deck in decks)} slides: {os.path.relpath(folder / 'index.html')}")
    return 0
