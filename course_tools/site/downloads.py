"""Each page's notebook as a file to take away: what 'Download' under a page's title leads to.

Where the repository's address is known it's the copy for Colab, which runs wherever there is git, a network and Python: its
first cell fetches the course. Without an address nobody could fetch it from anywhere, so it's the working copy that
`make lab` makes, which runs in the course's folder `notebooks/my_copies`. Does: write these files, and say which of the two
they are. Does not: run them.
"""

from __future__ import annotations

from pathlib import Path

from course_tools.notebooks.hosted_copies import hosted_copy
from course_tools.site.address import current_commit
from course_tools.site.links import Links
from course_utils.copies.commands import with_links_from, working_copy
from course_utils.copies.notebooks import write_notebook
from course_utils.files.paths import NOTEBOOKS

FOLDER = "downloads"


def write_downloads(folder: Path, sources: list[Path], address: str = "", commit: str | None = None) -> None:
    """Write a file for each notebook of `sources` into `folder`, at the place that it has in the course.

    `address` is the repository's; `commit` is what the copies fetch, the one that is checked out if it isn't given.
    """
    commit = current_commit() if commit is None else commit
    for path in sources:
        if address and commit:
            notebook = hosted_copy(path, address, commit)
        else:
            place = NOTEBOOKS / "my_copies" / path.relative_to(NOTEBOOKS)
            notebook = working_copy(path, lambda text, path=path, place=place: with_links_from(text, path, place))
        target = folder / FOLDER / path.relative_to(NOTEBOOKS)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_notebook(notebook, target)


def download_link(links: Links) -> str:
    """The link to a page's file, as HTML, and in brackets where the file runs."""
    address = links.relative(f"{FOLDER}/{links.page.source.relative_to(NOTEBOOKS).as_posix()}")
    runs = ("its first cell fetches the course" if links.address else
            f'runs in <a href="{links.relative("readme.html")}">the course\'s folder</a>')
    return f'<a href="{address}" download>Download</a> ({runs})'
