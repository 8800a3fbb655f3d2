"""Copies of the notebooks for Colab, which opens one notebook and knows nothing of the repository around it.

    python -m course_tools hosted-copies        outputs/hosted: START, the hour, the numbered notebooks, the extras

The first cell of each fetches the course at the commit that the copy was made from and installs what is missing there, so
exercises, checkpoints, data and progress work as at home. Links between notebooks lead to the other copies. Does: write
them. Does not: publish them (.github/workflows/publish.yml does), or run them.
"""

import argparse
import os
import re
import sys
from pathlib import Path, PurePosixPath

import nbformat

from course_tools.site.address import as_https, current_commit, file_link, repository_address
from course_utils.copies import notebooks
from course_utils.copies.commands import LINK, working_copy
from course_utils.copies.hosted import launch_links
from course_utils.copies.notebooks import write_notebook
from course_utils.files import replacing_folder, write_text
from course_utils.files.paths import output_folder

FETCH = '''\
#@title Run this cell first: it fetches the course (16 MB) and installs what is missing here; about half a minute, once
import os, subprocess, sys

address, commit = {address!r}, {commit!r}
course = os.environ.setdefault("COURSE_FOLDER", os.path.abspath("course"))


def git(*words, check=True):
    done = subprocess.run(["git", "-C", course, *words], capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"the course couldn't be fetched from {{address}}: {{done.stderr.strip()}}; run this cell again")
    return done.stdout.strip()


os.makedirs(course, exist_ok=True)
git("init", "--quiet")
if git("rev-parse", "--verify", "--quiet", "HEAD", check=False) != commit:
    git("fetch", "--quiet", "--depth", "1", address, commit)
    git("checkout", "--quiet", "--force", commit)
if course not in sys.path:
    sys.path.insert(0, course)

from course_utils.copies.hosted import prepare
prepare(address)'''
NOTE = ("The cell above fetches the course into a folder `course` beside this notebook. Colab's machine forgets everything "
        "when you leave: to keep your answers there, save a copy of your own (*File → Save a copy in Drive*), and run all "
        "cells when you come back.")
README = ("# Copies for Colab\n\nThe publishing workflow writes these notebooks from those in `notebooks/` of the main "
          "branch, and overwrites them each time. To change one, change the original.\n")
HREF = re.compile(r'href="(?![\w+.-]+:|#|/)([^"]+)"')


def hosted_copy(path: Path, address: str, commit: str):
    """The copy of one notebook of the course for Colab.

    Args:
        path: of the notebook.
        address: that git fetches the course from.
        commit: the version to fetch, as 40 hexadecimal digits.
    """
    def mended(text: str) -> str:
        return LINK.sub(lambda found: found[1] + _elsewhere(found[2], path, address), text)

    notebook = working_copy(path, mended)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = HREF.sub(
                    lambda found: f'href="{_elsewhere(found[1], path, address)}" target="_blank"', data["text/html"])
    fetch = nbformat.v4.new_code_cell(FETCH.format(address=address, commit=commit), id="fetch-the-course")
    fetch.metadata["cellView"] = "form"                   # Colab shows the title and folds the code
    notebook.cells[:0] = [fetch, nbformat.v4.new_markdown_cell(NOTE, id="what-colab-keeps")]
    notebook.metadata["colab"] = {"name": path.name, "provenance": []}
    return notebook


def _elsewhere(link: str, path: Path, address: str) -> str:
    """Where a relative link of a notebook leads from Colab: to another copy, or to the repository's pages."""
    public = as_https(address)
    meant, _, anchor = link.partition("#")
    place = PurePosixPath(os.path.relpath(os.path.normpath(path.parent / meant), notebooks.ROOT).replace(os.sep, "/"))
    if not public or not (notebooks.ROOT / place).exists():
        return link
    colab = launch_links(str(place), public).get("Colab") if place.suffix == ".ipynb" else None
    return (colab or file_link(str(place), public)) + (f"#{anchor}" if anchor else "")


def write_hosted_copies(folder: Path, address: str, commit: str) -> list[Path]:
    """Write a copy of every notebook, and a page that says what they are, to a new folder; return the notebooks' files."""
    places = [path.relative_to(notebooks.NOTEBOOKS) for path in notebooks.everything()]
    with replacing_folder(folder) as partial:
        for place in places:
            write_notebook(hosted_copy(notebooks.NOTEBOOKS / place, address, commit), partial / place)
        write_text(partial / "README.md", README)
    return [folder / place for place in places]


def main(arguments: list[str] | None = None) -> int:
    """Write the copies for Colab to outputs/hosted; return the exit status."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--address", default=repository_address(), help="of the repository; the default is this one's")
    parser.add_argument("--commit", default=current_commit(), help="the version that they fetch; the default is this one")
    chosen = parser.parse_args(arguments)
    if not chosen.address:
        sys.exit("the repository has no address yet, so a copy couldn't fetch the course. Add a remote called origin, or "
                 "give an address: --address https://github.com/owner/course")
    if not re.fullmatch("[0-9a-f]{40}", chosen.commit):
        sys.exit(f"the copies fetch one commit of the course, named by 40 hexadecimal digits; got {chosen.commit!r}. Run "
                 "this in a clone of the repository, or give --commit")
    written = write_hosted_copies(output_folder() / "hosted", chosen.address, chosen.commit)
    print(f"{len(written)} copies for Colab, of {chosen.commit[:10]}: {os.path.relpath(written[0].parent)}")
    return 0
