"""A new exercise and a new notebook begin as whole examples, and nothing is left to write in the course as it is."""

import importlib.util
from unittest.mock import ANY

import nbformat
import pytest

from course_tools.notebooks import scaffold
from course_tools.teaching.timetable import with_rows
from course_utils.copies import notebooks
from course_utils.exercises import catalogue, folder, quizzes
from course_utils.exercises.definitions import Record
from course_utils.exercises.judge import judge

README = """| | you build | a moment |
|---|---|---|
| [00 Tensors](notebooks/00_tensors.ipynb) | shapes | a gradient |
"""


def test_nothing_in_the_course_is_still_to_be_written():
    left = scaffold.todo()
    assert not left, "write what is marked, or take the new exercise or notebook out again:\n" + "\n".join(left)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of one notebook without exercises, in a folder of its own."""
    importlib.import_module("course_exercises.common")  # before another folder stands in its place
    for module in (notebooks, scaffold):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(folder, "EXERCISES", tmp_path / "notebooks" / "exercises")
    monkeypatch.setattr(catalogue, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    cells = [nbformat.v4.new_markdown_cell("# 00 Tensors", id="title"),
             nbformat.v4.new_markdown_cell("## Check yourself", id="quiz")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "notebooks" / "00_tensors.ipynb")
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    """What the catalogue has read of the course, or of this one."""
    for cached in (catalogue.list_exercises, catalogue._records_of, catalogue._lessons, catalogue.has_solutions):
        cached.cache_clear()


def files(course) -> set[str]:
    return {path.relative_to(course).as_posix() for path in course.rglob("*") if path.is_file()}


def test_a_second_exercise_comes_after_the_first_and_each_is_whole(course):
    path, before = course / "notebooks" / "00_tensors.ipynb", files(course)
    assert [scaffold.add_exercise(path) for _ in range(2)] == ["0.1", "0.2"]
    cells = nbformat.read(path, as_version=4).cells
    nbformat.validate(nbformat.read(path, as_version=4))
    assert [cell.id for cell in cells] == ["title", "exercise-0-1", "exercise-0-1-code", "exercise-0-2", "exercise-0-2-code",
                                           "quiz"]
    assert files(course) - before == {"notebooks/exercises/n00.py"}
    records = records_in(course / "notebooks" / "exercises" / "n00.py")
    assert [record.exercise.id for record in records] == ["0.1", "0.2"]
    assert catalogue._told("00")["0.2"]["title"] == "TODO a title"
    for exercise, answer in records:
        for right in (answer.reference, lambda x: x - sum(x.tolist()) / len(x), lambda x: (x - x.mean()).tolist()):
            assert judge(exercise, answer, right) == ("right", (), ANY)
        for name, wrong in answer.mutants.items():
            assert judge(exercise, answer, wrong).names == (name,)
        assert judge(exercise, answer, lambda x: x * 0 + 1).state == "wrong"


def records_in(path) -> list:
    """The records of a file, imported as any module: an edit needs the source of the answer."""
    spec = importlib.util.spec_from_file_location("begun", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [one for one in vars(module).values() if isinstance(one, Record)]


def test_a_new_notebook_has_all_its_parts_and_says_what_is_to_be_written(course, capsys):
    before = files(course)
    assert scaffold.notebook_command(["01_language_model"]) == 0
    said = capsys.readouterr().out
    path = course / "notebooks" / "01_language_model.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert sum(scaffold.is_exercise(cell) for cell in notebook.cells) == 3 and "**Time** about" in notebook.cells[0].source
    right = ["abc"[[option.right for option in asked.options].index(True)] for asked in quizzes.load_quiz("01")]
    assert set(right) == set("abc") and right[3] != right[0]
    readme = (course / "README.md").read_text(encoding="utf-8")
    assert readme.startswith(README) and "[01 Language model](notebooks/01_language_model.ipynb)" in readme
    places = {name.split("/n01")[0] for name in files(course) - before}
    assert places == {"notebooks/01_language_model.ipynb", "notebooks/exercises"}
    for place in ("README.md", "notebooks/01_language_model.ipynb", "notebooks/exercises/n01.py"):
        assert f"{place}: " in said
    with pytest.raises(AssertionError, match="still|write"):
        test_nothing_in_the_course_is_still_to_be_written()


@pytest.mark.parametrize("name", ["02_too_far", "00_tensors", "01", "01_Capitals", "01-dashes", "../01_x", "", "language"])
def test_only_the_next_notebook_can_be_begun(course, name):
    before = files(course)
    with pytest.raises(SystemExit, match="the next one is 01, so for example: make notebook NAME=01_language_model"):
        scaffold.notebook_command([name])
    assert files(course) == before


def test_the_table_of_minutes_is_that_of_the_notebooks_and_a_missing_row_is_written(root):
    page, readme = ((root / name).read_text(encoding="utf-8") for name in ("notebooks/for_instructors.md", "README.md"))
    assert with_rows(page, readme) == page, "python -m course_tools timetable"
    row = next(line for line in page.splitlines(keepends=True) if line.startswith("| 12 Comparing"))
    moment = next(line for line in readme.splitlines() if line.startswith("| [12 ")).split("|")[-2].strip()
    begun = row.split("|")[:6]
    assert with_rows(page.replace(row, ""), readme) == page.replace(row, "|".join([*begun, f" {moment} |\n"]))
    assert with_rows(page.replace(row, row.replace("60", "61")), readme) == page
