"""The sources that Sphinx reads: the course's notebooks and texts, prepared as pages in a folder of their own.

Does: write a page for each notebook and text, with the sidebar's groups on the home page and the pictures beside them. Does
not: render anything (see `build`), or write into the course's own folders.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import nbformat

from course_tools.sheets.cheat_sheet import PAGE
from course_tools.site import facts, pages, reference
from course_tools.site.cells import page_cells, page_text, text_cell
from course_tools.site.downloads import write_downloads
from course_tools.site.home import on_the_site
from course_tools.site.links import Links
from course_tools.site.pages import GROUPS, HOME, Page
from course_utils.files import write_text
from course_utils.files.paths import NOTEBOOKS

BESIDE = "beside"                                         # in the folder of sources: what is copied to the site as it is
COMMENT = re.compile(r"<!--.*?-->\n?", re.S)


def prepare(folder: Path, address: str = "", slides: Path | None = None) -> list[Page]:
    """Write the sources of all pages to `folder`, which is emptied first; returns the pages.

    `address` is the repository's; '' leaves links to files that aren't pages out. `slides` is a folder of decks, which the
    pages then link to. Raises ValueError that names the file for
    a notebook or a text that can't become a page.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / BESIDE).mkdir(parents=True)
    every = pages.all_pages()
    names = {page.source: page.name for page in every}
    more = reference.write_pages(folder)
    for page in every:
        target = folder / f"{page.name}{page.source.suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        links = Links(page, names, address)
        contents, beside = toctree(page, every, more), facts.what_goes_with(links, slides)
        if page.source.suffix == ".ipynb":
            write_text(target, notebook_page(links, folder / BESIDE, beside, contents))
        else:
            write_text(target, facts.under_title(text_page(links), beside) + contents)
    write_downloads(folder / BESIDE, [page.source for page in every if page.source.suffix == ".ipynb"], address)
    shutil.copyfile(PAGE, folder / BESIDE / facts.SHEET)
    shutil.copytree(NOTEBOOKS / "gallery", folder / BESIDE / "gallery")
    return every


def notebook_page(links: Links, folder: Path, beside: list[str], contents: str) -> str:
    """The notebook of a page, as JSON: `beside` under its title, the part of the sidebar that belongs to it at its end.

    Its pictures are written to `folder`.
    """
    page = links.page
    cells = json.loads(page.source.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
    if page.name == HOME:
        cells = on_the_site(cells)
    made = reference.linked(page.name, page_cells(cells, links, folder))
    made[0]["source"] = facts.under_title(made[0]["source"], beside)
    if contents:
        made.append(text_cell(contents))
    made = [{**cell, "id": f"cell-{i}"} for i, cell in enumerate(made)]
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python"}}
    notebook = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    nbformat.validate(notebook)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def text_page(links: Links) -> str:
    """The Markdown of a page."""
    text = COMMENT.sub("", links.page.source.read_text(encoding="utf-8"))
    return page_text(text, links).rstrip() + "\n"


def toctree(page: Page, every: list[Page], more: list[str]) -> str:
    """What the sidebar lists because of this page: everything by groups on the home page, its extras on a notebook's."""
    if page.name != HOME:
        return _toctree("", [(one.title, one.name) for one in every if one.under == page.name])
    groups = [[(one.title, one.name) for one in every if one.group == group and one.name != HOME] for group in GROUPS]
    groups[GROUPS.index("Look up")] += [("", name) for name in more]
    return "".join(_toctree(group, entries) for group, entries in zip(GROUPS, groups))


def _toctree(caption: str, entries: list[tuple[str, str]]) -> str:
    if not entries:
        return ""
    lines = [f"{title} </{name}>" if title else f"/{name}" for title, name in entries]
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n" + "\n".join(["```{toctree}", *options, "", *lines, "```"]) + "\n"
