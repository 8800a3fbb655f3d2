"""A numbered notebook is one lesson with the same furniture as its neighbours; START and the hour have rules of their own.

Extras describe their figures too.
"""

import ast
import re

import nbformat
import pytest

from course_utils.copies.notebooks import everything, find, front
from course_utils.exercises.catalogue import list_exercises
from course_utils.exercises.quizzes import list_quizzes, load_quiz
from course_utils.files.paths import NUMBER

HEADINGS = ["## Check yourself", "## Common mistakes", "## What you built", "## Further reading"]


def read(paths) -> list:
    """The notebooks, each under its name."""
    return [pytest.param(nbformat.read(path, as_version=4), id=path.stem) for path in paths]


each = pytest.mark.parametrize("notebook", read(find([])))


in_front = pytest.mark.parametrize("path", front(), ids=lambda path: path.stem)
lessons = pytest.mark.parametrize("notebook", read([*front(), *find([])]))


def prose(notebook) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def code(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@in_front
def test_what_comes_before_the_lessons_is_numbered_in_sections(path):
    """START and the hour: a title, an idea to a section, slides; nothing that could only be a lesson's."""
    notebook = nbformat.read(path, as_version=4)
    assert re.match(r"# [A-Z]", notebook.cells[0].source) and "slide" in notebook.cells[0].metadata.get("tags", [])
    headings = [line for text in prose(notebook) for line in text.splitlines() if line.startswith("## ")]
    numbers = [int(found[1]) for line in headings if (found := re.match(r"## (\d+)\. ", line))]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 3
    assert not [cell.id for cell in code(notebook) if re.match(r"#\s*\|\s*export", cell.source)]


@each
def test_the_furniture_is_everybodys(notebook):
    opening = notebook.cells[0].source
    number = re.match(rf"# ({NUMBER}) [A-Z]", opening)[1]
    assert re.search(r"\*\*What you will be able to do\*\*\n\n1\. ", opening) and "**Before you start**" in opening
    mine = [exercise for exercise in list_exercises() if exercise.notebook == number]
    low, high = (sum(exercise.minutes[end] for exercise in mine) for end in (0, 1))
    assert re.search(r"\*\*Time\*\* about \d+ minutes to read and run", opening)
    assert f"{low}–{high} more for the exercises" in opening
    headings = [line for text in prose(notebook) for line in text.splitlines() if line.startswith("## ")]
    assert [line for line in headings if not re.match(r"## \d+\. ", line)] == HEADINGS
    assert sum(line.startswith("progress()") for cell in code(notebook) for line in cell.source.splitlines()) == 1


@lessons
def test_a_prediction_is_asked_for_in_the_same_words(notebook):
    """The cell before `predict(...)` says 'Try it first'."""
    for before, cell in zip(notebook.cells, notebook.cells[1:], strict=False):
        if cell.cell_type == "code" and re.search(r"= predict\(", cell.source):
            assert "**Try it first" in before.source, cell.id


@lessons
def test_every_claim_prints_its_number(notebook):
    """Inside its sentence, an f-string, or behind it."""
    for cell in code(notebook):
        for node in ast.walk(ast.parse(cell.source)) if "claim(" in cell.source else []:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "claim":
                inside = any(isinstance(part, ast.FormattedValue) for part in ast.walk(node.args[0]))
                assert inside or len(node.args) + len(node.keywords) == 3, f"{cell.id}: {ast.unparse(node)[:80]}"


@pytest.mark.parametrize("notebook", read(everything()))
def test_every_figure_is_described_where_it_is_shown(notebook):
    for cell in code(notebook):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                assert len(output.metadata.get("image/png", {}).get("alt", "")) >= 40, cell.id


TAGS = {"details", "summary", "a", "img", "br", "b", "sub", "sup"}


@pytest.mark.parametrize("notebook", read(everything()))
def test_what_looks_like_a_tag_is_written_as_code(notebook):
    """'<pad>' in a text, outside of backticks, is taken for HTML: a learner sees nothing there."""
    code_or_formula = r"```.*?```|(`+).+?\1|<!--.*?-->|\$\$.*?\$\$|\$[^$\n]+\$"
    for text in prose(notebook):
        found = re.findall(r"</?([A-Za-z][^\s<>/]*)[^<>]*>", re.sub(code_or_formula, "", text, flags=re.S))
        assert set(found) <= TAGS, f"write `<{sorted(set(found) - TAGS)[0]}>` in backticks"


@pytest.mark.parametrize("notebook", read(everything()))
def test_no_link_is_inside_an_svg(notebook):
    """JupyterLab sets the address of every link in an output; at one inside an SVG it fails, and leaves the rest undone."""
    for cell in code(notebook):
        for output in cell.outputs:
            drawn = re.findall(r"<svg\b.*?</svg>", output.get("data", {}).get("text/html", ""), re.S)
            assert not any(re.search(r"<a\s", one) for one in drawn), cell.id


@each
def test_a_warm_up_asks_three_questions_from_earlier_notebooks(notebook):
    number = re.match(rf"# ({NUMBER}) ", notebook.cells[0].source)[1]
    shown = [cell for cell in code(notebook) if f'warm_up("{number}")' in cell.source]
    assert len(shown) == (number in list_quizzes("WARM_UP"))
    if shown:
        assert all(question.taught < number for question in load_quiz(number, "WARM_UP"))
        assert len(load_quiz(number, "WARM_UP")) == 3
        sections = [i for i, cell in enumerate(notebook.cells) if cell.source.startswith("## 1. ")]
        assert notebook.cells.index(shown[0]) < sections[0]


@each
def test_it_can_be_presented(notebook):
    tags = [tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])]
    assert tags.count("slide") >= 6 and "slide" in notebook.cells[0].metadata.get("tags", [])


@each
def test_references_can_be_followed(notebook):
    (text,) = [text for text in prose(notebook) if "## Further reading" in text]
    references = re.findall(r"^- .+", text.split("## Further reading")[1], re.M)
    assert references and [one for one in references if "http" not in one and "doi.org" not in one] == []
