"""An exercise that moves to another notebook takes the learner's answer along."""

import nbformat
import pytest
from small_course import make_course

from course_utils.copies import commands as copies
from course_utils.copies import notebooks

STUB = "def half(x): ...\nexercise('1.1').check(half)"
ANSWER = "def half(x): return x / 2\nexercise('1.1').check(half)"
GUESS = 'predict("01-half", {})'


def notebook(*cells):
    """A notebook with code cells of these (id, source)."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source, id=name) for name, source in cells])


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """The learner has answered what 01 asks; then both questions move to 01b. Returns the folder of the copies."""
    folder = make_course(tmp_path, monkeypatch)
    course = folder / "01_second.ipynb"
    nbformat.write(notebook(("first", STUB), ("guess", GUESS.format("None")), ("rest", "1 + 1")), course)
    copies.copy()
    mine = nbformat.read(folder / "my_copies" / "01_second.ipynb", as_version=4)
    mine.cells[0].source, mine.cells[1].source = ANSWER, GUESS.format("0.5")
    nbformat.write(mine, folder / "my_copies" / "01_second.ipynb")
    nbformat.write(notebook(("rest", "1 + 1 + 1")), course)
    nbformat.write(notebook(("first", STUB), ("guess", GUESS.format("None"))), folder / "01b_third.ipynb")
    return folder / "my_copies"


def sources(path):
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]


@pytest.mark.parametrize("copied_first", [False, True])
def test_an_answer_follows_its_exercise_into_another_notebook(answered, copied_first, capsys):
    if copied_first:
        copies.copy()
    copies.update("01")
    said = capsys.readouterr().out
    assert sources(answered / "01b_third.ipynb") == [ANSWER, GUESS.format("0.5")]
    assert said.count("is in 01b_third.ipynb now, and so is your answer") == 2 and "not carried over" not in said
    assert sources(answered / "01_second.ipynb") == ["1 + 1 + 1"]
    assert sources(answered / "kept-1-01_second.ipynb")[0] == ANSWER


def test_an_answer_that_is_there_already_stays(answered, capsys):
    copies.copy()
    there = nbformat.read(answered / "01b_third.ipynb", as_version=4)
    there.cells[0].source = "half = None"
    nbformat.write(there, answered / "01b_third.ipynb")
    copies.update("01")
    said = capsys.readouterr().out
    assert sources(answered / "01b_third.ipynb")[1] == GUESS.format("0.5")
    assert "not carried over: exercise(\"1.1\")" in said and sources(answered / "01b_third.ipynb")[0] == "half = None"


@pytest.mark.parametrize("content", [b"{ cut", None])
def test_an_answer_for_a_copy_that_cannot_take_it_is_named(answered, content, capsys):
    copies.copy()
    third = answered / "01b_third.ipynb"
    if content is None:                                   # an older version of the notebook, without the question
        nbformat.write(notebook(("other", "2")), third)
    else:
        third.write_bytes(content)
    before = third.read_bytes()
    copies.update("01")
    assert "not carried over: exercise(\"1.1\"): it is in 01b_third.ipynb now, but" in capsys.readouterr().out
    assert third.read_bytes() == before


def test_a_number_with_a_letter_is_a_notebook_of_its_own(answered):
    assert [path.name for path in notebooks.find(["01"])] == ["01_second.ipynb"]
    assert [path.name for path in notebooks.find(["1b"])] == ["01b_third.ipynb"]
    assert [notebooks.number_of(path) for path in notebooks.find([])] == ["00", "01", "01b"]
