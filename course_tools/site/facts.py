"""What is said under a page's title: how long it takes, and what goes with it.

Does: take the time from the notebook's own first cell, and link to the page's slides and to a sheet to print. Does not:
count minutes (see the timetable), or make slides or sheets.
"""

from __future__ import annotations

import re
from pathlib import Path

from course_tools.site.links import Links
from course_tools.site.pages import HOME

SHEET, SLIDES = "cheat_sheet.html", "slides"
TIME = re.compile(r"^\*\*Time\*\* (.+)$\n?", re.M)


def what_goes_with(links: Links, slides: Path | None) -> list[str]:
    """Links to what goes with a page, as HTML; `slides` is the folder of the decks, None where there are none."""
    name, found = links.page.name, []
    if name == HOME:
        address = links.relative("readme.html")
        return [f'You can read everything here; to do the exercises, <a href="{address}">run the course yourself</a>']
    if slides and (slides / f"{name}.html").is_file():
        found.append((f"{SLIDES}/{name}.html", "Slides"))
    if slides and name == "for_instructors":
        found.append((f"{SLIDES}/index.html", "Slides for every notebook and route"))
    if name == "notation_and_glossary":
        found.append((SHEET, "Shapes and formulas on one page to print"))
    return [f'<a href="{links.relative(address)}">{words}</a>' for address, words in found]


def under_title(source: str, more: list[str]) -> str:
    """A page's first text with the time that it states, and `more`, under its title."""
    time = TIME.search(source)
    said = time[1].strip().rstrip(".") if time else ""
    facts = " · ".join([*([f"{said[0].upper()}{said[1:]}"] if said else []), *more])
    title, _, rest = TIME.sub("", source).partition("\n")
    return f'{title}\n\n<div class="facts">\n\n{facts}\n\n</div>\n{rest}' if facts else source
