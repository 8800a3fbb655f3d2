"""What an extra says of itself: its title, the notebooks it goes with, its minutes.

Does: read the first cell. Does not: hold extras to their other rules (tests/copies/test_extras.py does).
"""

import re
from pathlib import Path
from typing import NamedTuple

import nbformat

OPENING = ("expected a first cell that begins with '# Extra: Title' and has the lines "
           "'Goes with [03](../03_embeddings.ipynb).' and '**Time** about 20 minutes'")


class Extra(NamedTuple):
    """An extra: its `title`, the file names of the numbered notebooks that it `goes_with`, and its `minutes`."""

    path: Path
    title: str
    goes_with: list[str]
    minutes: int


def read_extra(path: Path) -> Extra:
    """Read an extra's first cell. Raises ValueError that names the file where the cell lacks one of its three lines."""
    cells = nbformat.read(path, as_version=4).cells
    opening = cells[0].source if cells else ""
    title = re.match(r"# Extra: (.+)", opening)
    beside = re.search(r"^Goes with (\[\d\d[a-z]?\]\(\.\./\d\d[a-z]?_\w+\.ipynb\).*)\.$", opening, re.M)
    minutes = re.search(r"[*][*]Time[*][*] about (\d+) minutes", opening)
    if not (title and beside and minutes):
        raise ValueError(f"{path.name}: {OPENING}")
    return Extra(path, title[1].strip(), re.findall(r"\(\.\./(\w+\.ipynb)\)", beside[1]), int(minutes[1]))
