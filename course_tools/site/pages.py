"""Which pages the site has, what each is called, and in which order they come.

Does: list the course's notebooks and texts with the name and title of their pages, and the groups of the sidebar. Does not:
read or change what is on them (see `prepare`). The pages of the reference are in
`reference`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import nbformat

from course_utils.copies.notebooks import extras, find, follows, number_of, results
from course_utils.copies.start import PARTS, read_extra
from course_utils.files.paths import FRONT, NOTEBOOKS, ROOT

HOME = "index"
TEXTS = {                                                 # texts of the project: their page, its title, its group
    "README.md": ("readme", "Run it yourself", "Begin"),
    "notebooks/notation_and_glossary.md": ("notation_and_glossary", "Notation and glossary", "Look up"),
    "notebooks/results.md": ("results", "Results", "Look up"),
    "notebooks/gallery.md": ("gallery", "Gallery", "Look up"),
    "data/README.md": ("data", "The data", "Look up"),
    "notebooks/several_processes.md": ("several_processes", "Training in several processes", "Look up"),
    "data/reviews/SAMPLES.md": ("samples", "Sample reviews", "Look up"),
    "data/sentences/SAMPLES.md": ("sample_sentences", "Sample sentences", "Look up"),
    "data/translation/SAMPLES.md": ("sample_translations", "Sample translations", "Look up"),
    "notebooks/for_instructors.md": ("for_instructors", "For instructors", "Teach"),
    "notebooks/classroom.md": ("classroom", "In a classroom", "Teach"),
    "CHANGELOG.md": ("changelog", "Changes", "Look up"),
}
GROUPS = ("Begin", *PARTS.values(), "Look up", "Teach")


class Page(NamedTuple):
    """One page: the `source` it's made from, its `name` without an ending ('extras/near_and_far'), what the sidebar calls
    it, the `group` it stands in there, and `under`, the name of the page that it's listed below ('' for most)."""

    source: Path
    name: str
    title: str
    group: str
    under: str = ""


def all_pages() -> list[Page]:
    """Every page that is made from a notebook or a text of the project, the home page first."""
    return [*_front_pages(), *_numbered_pages(), *_extra_pages(), *_text_pages(), *_result_pages()]


def page_names() -> dict[Path, str]:
    """The page that each notebook or text has become."""
    return {page.source: page.name for page in all_pages()}


def main_line(pages: list[Page]) -> list[str]:
    """The names of the pages that one reads one after another: the home page, the hour, the numbered notebooks."""
    first = [page.name for page in pages if page.source.suffix == ".ipynb" and not page.under]
    return sorted(first, key=lambda name: (name != HOME, bool(number_of(f"{name}.ipynb")), name))


def _front_pages() -> list[Page]:
    titles = {FRONT[0]: (HOME, "Start here"), FRONT[1]: (FRONT[1], "Attention in an hour")}
    paths = [NOTEBOOKS / f"{name}.ipynb" for name in titles]
    return [Page(path, *titles[path.stem], "Begin") for path in paths if path.is_file()]


def _numbered_pages() -> list[Page]:
    pages = []
    for path in find([]):
        part = PARTS[max(start for start in PARTS if start <= int(follows(path)[:2]))]
        pages.append(Page(path, path.stem, title_of(path), part))
    return pages


def _extra_pages() -> list[Page]:
    return [Page(one.path, f"extras/{one.path.stem}", one.title, "", one.goes_with[0].removesuffix(".ipynb"))
            for one in map(read_extra, extras())]


def _result_pages() -> list[Page]:
    return [Page(path, path.stem, title_of(path), "", "results") for path in results()]


def _text_pages() -> list[Page]:
    pages = [Page(ROOT / name, *about) for name, about in TEXTS.items() if (ROOT / name).is_file()]
    known = {page.source for page in pages}
    more = [path for path in sorted(NOTEBOOKS.glob("*.md")) if path not in known]
    return [*pages, *(Page(path, path.stem, title_of(path), "Teach") for path in more)]


def title_of(path: Path) -> str:
    """The heading of a notebook or a text, without formatting. Raises ValueError that names a file without one."""
    if path.suffix == ".ipynb":
        cells = nbformat.read(path, as_version=4).cells
        text = cells[0].source if cells else ""
    else:
        text = path.read_text(encoding="utf-8")
    found = re.search(r"^# (.+)$", text, re.M)
    if not found:
        raise ValueError(f"{path.name} has no heading; a page needs a first line like '# 04 Attention'")
    return found[1].replace("`", "").strip()
