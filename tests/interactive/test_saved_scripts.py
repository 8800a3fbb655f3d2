"""Every piece in a saved notebook is what today's code writes: comparing outputs doesn't look at scripts and styles."""

import re

import nbformat
import pytest
from saved_pieces import made_anew

from course_utils.copies.notebooks import everything

KIND = re.compile(r'data-piece="(\w+)-\w+"')
PIECES = [(path, cell.id, html) for path in everything() for cell in nbformat.read(path, as_version=4).cells
          if cell.cell_type == "code" for output in cell.outputs
          for html in [output.get("data", {}).get("text/html", "")] if KIND.search(html)]


@pytest.mark.parametrize(("path", "cell", "html"), PIECES, ids=[f"{path.stem}-{cell}" for path, cell, _ in PIECES])
def test_a_saved_piece_has_todays_scripts_styles_and_words(path, cell, html):
    made = [piece.html for piece in made_anew(html)]
    told = f"the code of pieces has changed since: make save NB={path.stem}, cell {cell}"
    assert made and all(one in html for one in made), told


def test_there_are_saved_pieces():
    assert {KIND.search(html)[1] for _, _, html in PIECES} >= {"attention_view", "classifier_view", "gates_view"}
