"""What hand-ins are forged from: the course's notebook, its cells changed, and answers to exercise 4.2."""

import json
import textwrap
from typing import NamedTuple

from course_tools.teaching.editions import solved
from course_utils.files.paths import ROOT

NOTEBOOK = ROOT / "notebooks" / "04_attention.ipynb"
OPEN = {"4.1": "open", "4.2": "open", "4.3": "as given", "4.4": "open", "4.5": "as given", "4.6": "open",
        "4.7": "open"}
RIGHT = dict.fromkeys(OPEN, "right")
DAEMON = "daemon.txt"


class Forged(NamedTuple):
    """A hand-in: its kind, name, bytes (or how to make it at a path), the states or the words that it must get.

    Where a container makes a difference, `expected` is a tuple: the states in one, those without, and "files" if changed
    files must be reported without.
    """

    kind: str
    name: str
    content: bytes
    expected: dict[str, str] | str | tuple
    make: object = None


def course() -> dict:
    """The course's notebook without outputs, cut down to its imports, exercises and what these use."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"
             and (cell["id"] in ("setup", "setup-course", "export-attention")
                  or "exercise" in cell["metadata"].get("tags", []))]
    for cell in cells:
        cell["outputs"], cell["execution_count"], cell["source"] = [], None, "".join(cell["source"])
    return {**notebook, "cells": cells}


def edited(changes: dict[str, str] | None = None, first: str = "", last: str = "", right: bool = False) -> bytes:
    """The course's notebook with the sources of exercise cells replaced, and cells put in first and last.

    `changes` is {exercise: source}; with `right`, all exercises are solved first.
    """
    notebook = course()
    for cell in notebook["cells"]:
        if cell["id"].startswith("exercise-"):
            number = ".".join(cell["id"].split("-")[1:3])
            cell["source"] = solved(cell["source"]) if right else cell["source"]
            cell["source"] = textwrap.dedent((changes or {}).get(number, cell["source"])).strip()
    for place, source in ((0, first), (len(notebook["cells"]) + 1, last)):
        if source:
            notebook["cells"].insert(place, code(source))
    return json.dumps(notebook).encode()


def code(source: str, name: str = "mine") -> dict:
    """A code cell."""
    return {"cell_type": "code", "id": name, "metadata": {}, "outputs": [], "execution_count": None,
            "source": textwrap.dedent(source).strip()}


def changed(change, right: bool = False) -> bytes:
    """The course's notebook after `change(notebook)`, where notebook is a dict."""
    notebook = json.loads(edited(right=right))
    return json.dumps(change(notebook) or notebook).encode()


def source_of(number: str, right: bool = False) -> str:
    """The source of an exercise cell, as given or solved."""
    cell = next(cell for cell in course()["cells"] if cell["id"] == f"exercise-{number.replace('.', '-')}-code")
    return solved(cell["source"]) if right else cell["source"]


MINE = """
def scaled_attention(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights
"""
WRONG = MINE.replace(" / query.shape[-1] ** 0.5", "")
CHECK = '\nexercise("4.2").check(scaled_attention)\n'
GOOD, BAD, GONE = OPEN | {"4.2": "right"}, OPEN | {"4.2": "wrong"}, OPEN | {"4.2": "not reached"}
CUT = GOOD | dict.fromkeys(("4.3", "4.6", "4.7", "4.4", "4.5"), "not reached")
TICKS = """
class exercise:
    def __init__(self, number): self.number = number
    def check(self, answer): print(f"✓ {self.number} x: right.")
    def use(self, answer): return answer
"""
ON_EVERY_DESCRIPTOR = """
import json, os
for descriptor in range(3, 64):
    try:
        os.write(descriptor, {})
    except OSError:
        pass
"""


def cell(*parts: str) -> str:
    """The source of a cell, made of parts."""
    return "\n".join(textwrap.dedent(part).strip() for part in parts)


def with_4_2(*parts: str, **others) -> bytes:
    """The course's notebook with a cell for exercise 4.2 made of parts; others as for `edited`."""
    return edited({"4.2": cell(*parts), **others.pop("changes", {})}, **others)


def as_in_colab(notebook: dict) -> None:
    for cell in notebook["cells"]:
        cell["metadata"]["id"] = cell.pop("id")


def lose_an_import(notebook: dict) -> None:
    """The course's setup cell starts with an import that fails on the instructor's computer."""
    setup = next(cell for cell in notebook["cells"] if cell["id"] == "setup")
    setup["source"] = "import what_only_this_learner_has\n" + setup["source"]
