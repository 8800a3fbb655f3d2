"""START as the site's home: what only makes sense in the notebook is left out or said in other words.

Does: leave out the cells that a reader would have to run, and the sentences that ask for it. Does not: change START, or
anything else that it says.
"""

from __future__ import annotations

import re

NUMBERED = re.compile(r"^## (\d+)\.", re.M)
PROGRESS = re.compile(r"^## \d+\. Your progress$", re.M)
ONLY_IN_THE_NOTEBOOK = {"fool"}                            # cells to run: their ids
OTHERWISE = (                                              # what START says, and what its page says
    (re.compile(r"^\(You see maps, and nothing to click\?.*\)$\n*", re.M), ""),
    (re.compile(r"One is there already; can you make it three, each by another trick\? "
                r"\(It often notices when a trick comes back\.\) Try them in the box at the top, then write "
                r"them between the quotes and press Shift\+Enter\."),
     "One is 'The film was not at all dull.'; can you find two more, each by another trick? Try them in the box at the "
     "top."),
)
RUN_IT = re.compile(r"Shift ?\+ ?Enter|\b[Rr]un (?:the|this|that) (?:next )?cell|○")    # what no page can do


def on_the_site(cells: list[dict]) -> list[dict]:
    """The cells of START as they are on the home page; sections after one that is left out are numbered anew."""
    kept = [cell for cell in without_progress(cells) if cell.get("id") not in ONLY_IN_THE_NOTEBOOK]
    return [{**cell, "source": _said(cell["source"])} if cell["cell_type"] == "markdown" else cell for cell in kept]


def _said(source: str) -> str:
    for pattern, words in OTHERWISE:
        source = pattern.sub(words, source)
    return source.rstrip("\n")


def without_progress(cells: list[dict]) -> list[dict]:
    """The home page's cells without the section on the learner's progress; the sections after it are numbered anew."""
    about = next((i for i, cell in enumerate(cells) if PROGRESS.search(cell["source"])), None)
    if about is None:
        return cells
    after = [{**cell, "source": NUMBERED.sub(lambda found: f"## {int(found[1]) - 1}.", cell["source"])}
             if cell["cell_type"] == "markdown" else cell for cell in cells[about + 1:]]
    return [*cells[:about], *after]
