"""What is said of wrong predictions: the ideas that they come from, in GUESSES beside a notebook's quiz."""

import itertools
import json
import re

import pytest

from course_utils import exercises
from course_utils.exercises.folder import list_lessons
from course_utils.exercises.quizzes import guesses_of, remark_on
from course_utils.files.paths import FRONT, HOUR, NOTEBOOKS, named_as

LISTED = [(lesson[1:], name) for lesson in list_lessons() for name in guesses_of(lesson[1:])]


def cells_of(number: str) -> list[dict]:
    """The code cells of a notebook."""
    path = NOTEBOOKS / f"{FRONT[1]}.ipynb" if number == HOUR else next(NOTEBOOKS.glob(named_as(number)))
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("number, name", LISTED)
def test_a_remark_is_on_a_wrong_guess_of_a_prediction_that_the_notebook_asks_for(number, name):
    cells = {"".join(cell["source"]): cell for cell in cells_of(number)}
    asked = re.search(rf'^(\w+) = predict\("{name}", None\)$', "\n".join(cells), re.M)
    assert asked, f"{number} has no prediction {name!r}"
    shown = [output for source, cell in cells.items() if f"{asked[1]}.compare(" in source for output in cell["outputs"]]
    measured = re.search(r"measured: (-?[\d.]+)", "".join("".join(output.get("text", "")) for output in shown))
    assert remark_on(name, float(measured[1])) == ""
    guesses = sorted(guesses_of(number)[name])
    assert all(one.low <= one.high and one.remark.endswith(".") for one in guesses)
    assert all(one.high < other.low for one, other in itertools.pairwise(guesses)), "two remarks on one guess"


def test_a_wrong_guess_says_what_idea_it_comes_from(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    exercises.predict("hour-bag", "493").compare(250, "of 500")
    assert "*plain* reviews" in capsys.readouterr().out.splitlines()[-1]
    exercises.predict("00-calculator", "0.42").compare(0.862)
    assert capsys.readouterr().out.splitlines()[-1].startswith("That's the probability")
    exercises.predict("hour-bag", 250).compare(250, "of 500")
    exercises.predict("hour-bag", "half").compare(250, "of 500")
    exercises.predict("04-lost", 12).compare(3)              # a notebook without remarks
    exercises.predict("mine", 12).compare(3)                 # and a name of the learner's own
    said = capsys.readouterr().out.splitlines()
    assert all("measured" in line or "your prediction" in line for line in said)
    assert said[3] == "you predicted half; measured: 250 of 500; the same"
    exercises.predict("hour-off", "half").compare(483, "of 500")
    assert capsys.readouterr().out.splitlines()[-1].startswith("That's chance")
