"""Every piece in a saved notebook runs today's scripts: comparing outputs doesn't look at scripts."""

import re

import nbformat
import pytest

from course_utils.interactive.piece import _source
from course_utils.tools.notebooks import everything

PIECE = re.compile(r'data-piece="(\w+)-\w+"')
PIECES = [(path, cell.id, html) for path in everything() for cell in nbformat.read(path, as_version=4).cells
          if cell.cell_type == "code" for output in cell.outputs
          for html in [output.get("data", {}).get("text/html", "")] if PIECE.search(html)]


@pytest.mark.parametrize(("path", "cell", "html"), PIECES, ids=[f"{path.stem}-{cell}" for path, cell, _ in PIECES])
def test_a_saved_piece_runs_todays_scripts(path, cell, html):
    kind = PIECE.search(html)[1]
    for name in ("shell.js", f"{kind}.js"):
        assert _source(name) and _source(name) in html, f"{name} has changed since: make save NB={path.stem}, cell {cell}"


def test_there_are_saved_pieces():
    assert {PIECE.search(html)[1] for _, _, html in PIECES} >= {"attention_view", "classifier_view", "gates_view"}
