"""Pieces of HTML in saved outputs are compared by their kind, their words and their numbers; other HTML as it stands."""

import os
import shutil
import subprocess
import sys

import nbformat
import pytest
from saved_pieces import pieces, pieces_difference, without_pieces

from course_utils.interactive import Piece
from course_utils.interactive import piece as making
from course_utils.interactive.coded import encode

STILL = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"></svg>'
ALT = 'Map of 3 "tokens" & <b>: largest 0.534.'
DATA = {"tokens": ["not", "0.25 dull"], "weights": encode([0.2, 0.8, 0.0]), "scale": [0, 1.5], "pinned": False, "of": None}


@pytest.fixture
def shown(monkeypatch):
    """A display output with a piece whose script does nothing; options change the data."""
    source, nothing = making._source, "function build(root, data) {}"
    monkeypatch.setattr(making, "_source", lambda name: nothing if name.startswith("toy") else source(name))

    def output(kind="toy", alt=ALT, around="", **changes):
        made = Piece(kind, {**DATA, **changes}, still=STILL, alt=alt)
        return nbformat.v4.new_output("display_data", {"text/html": around + made.html, "text/plain": made.alt})
    return output


def test_a_piece_is_found_with_its_kind_its_words_and_its_data(shown):
    (found,) = pieces([shown(), nbformat.v4.new_output("stream", text="x")])
    assert found == ("toy", ALT, DATA)
    twice = shown()
    twice.data["text/html"] += "\n" + twice.data["text/html"]
    assert pieces([twice]) == [found, found]


@pytest.mark.parametrize("changes", [
    {}, {"weights": encode([0.209, 0.79, 0.001])}, {"scale": [0.0005, 1.51]}, {"tokens": ["not", "0.2501 dull"]},
    {"alt": ALT.replace("0.534", "0.5335")},
])
def test_small_differences_of_numbers_do_not_count(changes, shown):
    assert pieces_difference([shown()], [shown(**changes)]) == ""


@pytest.mark.parametrize(("changes", "said"), [
    ({"kind": "toy2"}, "of the kind 'toy2' instead of 'toy'"), ({"alt": ALT.replace("534", "544")}, "its description is"),
    ({"alt": ALT.replace("Map", "Plot")}, "its description is 'Plot"),
    ({"weights": encode([0.2, 0.788, 0.012])}, "data.weights: weights differ by up to 0.012"),
    ({"weights": encode([[0.2, 0.8, 0.0]])}, "data.weights.shape holds 2 values"),
    ({"scale": [0, 1.6]}, "data.scale[1] is 1.6 instead of 1.5"), ({"scale": [0]}, "holds 1 values instead of 2"),
    ({"tokens": ["not", "0.25 fun"]}, "data.tokens[1] is '0.25 fun'"), ({"pinned": True}, "data.pinned is True"),
    ({"pinned": 0}, "data.pinned is 0"), ({"of": 1}, "data.of is 1"), ({"more": 1}, "has the keys"),
])
def test_other_differences_count(changes, said, shown):
    assert said in pieces_difference([shown()], [shown(**changes)])


def test_the_number_of_pieces_counts(shown):
    assert pieces_difference([shown()], []) == "0 pieces instead of 1"
    assert pieces_difference([], []) == pieces_difference([nbformat.v4.new_output("stream", text="x")], []) == ""


def test_nbval_sees_the_words_around_a_piece_and_all_other_html(shown):
    saved, now = [shown(around="<p>1</p>")], [shown(around="<p>1</p>", scale=[0, 1.501], alt=ALT.replace("0.534", "0.533"))]
    assert saved != now and without_pieces(saved) == without_pieces(now)
    assert without_pieces(saved) != without_pieces([shown(around="<p>2</p>")])
    assert "<svg" not in str(without_pieces(saved)) and ALT in str(saved), "the outputs themselves stay as they are"
    table = [nbformat.v4.new_output("display_data", {"text/html": "<table>0.25</table>", "text/plain": "0.25"})]
    assert without_pieces(table) == table


CELLS = {
    "the_same": "show(0.5)", "another_digit": "show(0.504)", "another_number": "show(0.6)",
    "another_piece": "show(0.5, 'word')", "other_html": "show(0.5, html='<p>two</p>')", "no_piece": "None",
}
MAKE = '''
import course_utils.interactive.piece as making
source = making._source
making._source = lambda name: "function build(root, data) {}" if name == "toy.js" else source(name)
from IPython.display import HTML, display
def show(number, word="token", html="<p>one</p>"):
    still = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    display(HTML(html))
    display(making.Piece("toy", {"number": number}, still=still, alt=f"A {word} of {number}."))
'''


def test_a_notebook_with_a_piece_is_compared(root, tmp_path, shown):
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(root / name, tmp_path)
    made = Piece("toy", {"number": 0.5}, still='<svg xmlns="http://www.w3.org/2000/svg"></svg>', alt="A token of 0.5.")
    saved = [nbformat.v4.new_output("display_data", {"text/html": "<p>one</p>",
                                                      "text/plain": "<IPython.core.display.HTML object>"}),
             nbformat.v4.new_output("display_data", {"text/html": made.html, "text/plain": made.alt})]
    cells = [nbformat.v4.new_code_cell(source, id=name.replace("_", "-"), outputs=saved, execution_count=1)
             for name, source in CELLS.items()]
    first = nbformat.v4.new_code_cell(MAKE, id="make", execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[first, *cells]), tmp_path / "toy.ipynb")
    env = {**os.environ, "COURSE_COMPARE": "1", "PYTHONPATH": os.pathsep.join([str(root), str(root / "tests" / "helpers")])}
    ran = subprocess.run([sys.executable, "-m", "pytest", "-rA", "--tb=short", "toy.ipynb"], cwd=tmp_path, env=env,
                         capture_output=True, text=True, timeout=600)
    assert [f"PASSED toy.ipynb::Cell {k}" in ran.stdout for k in range(7)] == [True] * 3 + [False] * 4, ran.stdout
    for said in ("its description is 'A token of 0.6.' instead", "its description is 'A word of 0.5.'",
                 "mismatch 'text/html'"):
        assert said in ran.stdout, ran.stdout
