"""What is said under a page's title: how long it takes, and what goes with it.

Does: take the time from the notebook's own first cell, and link to places that open the notebook, to its file, its slides
and a sheet to print. Does not: count minutes (see the timetable), or make slides or sheets.
"""

from __future__ import annotations

import re
from pathlib import Path

from course_tools.site.downloads import download_link
from course_tools.site.links import Links
from course_tools.site.pages import HOME
from course_utils.copies.hosted import launch_links

SHEET, SLIDES = "cheat_sheet.html", "slides"
TIME = re.compile(r"^\*\*Time\*\* (.+)$\n?", re.M)


def what_goes_with(links: Links, slides: Path | None) -> list[str]:
    """Links to what goes with a page, as HTML; `slides` is the folder of the decks, None where there are none."""
    name, more, found = links.page.name, [], []
    if name == HOME:
        address = links.relative("readme.html")
        more.append(f'You can read everything here; to do the exercises, <a href="{address}">run the course yourself</a>')
    if links.page.source.suffix == ".ipynb":
        more += [*_opened_in(links), download_link(links)]
    if slides and (slides / f"{name}.html").is_file():
        found.append((f"{SLIDES}/{name}.html", "Slides"))
    if slides and name == "for_instructors":
        found.append((f"{SLIDES}/index.html", "Slides for every notebook and route"))
    if name == "notation_and_glossary":
        found.append((SHEET, "Shapes and formulas on one page to print"))
    return [*more, *(f'<a href="{links.relative(address)}">{words}</a>' for address, words in found)]


def _opened_in(links: Links) -> list[str]:
    """'Open in Colab or Binder', as HTML, where the repository's address is known."""
    places = launch_links(links.page.source, links.address)
    named = [f'<a href="{places[name]}">{name}</a>' for name in ("Colab", "Binder") if name in places]
    return [f"Open in {' or '.join(named)}"] if named else []


def under_title(source: str, more: list[str]) -> str:
    """A page's first text with the time that it states, and `more`, under its title."""
    time = TIME.search(source)
    said = time[1].strip().rstrip(".") if time else ""
    facts = " · ".join([*([f"{said[0].upper()}{said[1:]}"] if said else []), *more])
    title, _, rest = TIME.sub("", source).partition("\n")
    return f'{title}\n\n<div class="facts">\n\n{facts}\n\n</div>\n{rest}' if facts else source
