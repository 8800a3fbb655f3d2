"""A new exercise and a new notebook begin as whole examples, and nothing is left to write in the course as it is."""

import json

import nbformat
import pytest

from course_tools.notebooks import export, scaffold
from course_tools.teaching.timetable import with_rows
from course_utils.copies import notebooks
from course_utils.exercises import quizzes
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
    for module in (export, notebooks, scaffold):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(quizzes, "EXERCISES", tmp_path / "notebooks" / "exercises")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    cells = [nbformat.v4.new_markdown_cell("# 00 Tensors", id="title"),
             nbformat.v4.new_markdown_cell("## Check yourself", id="quiz")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "notebooks" / "00_tensors.ipynb")
    return tmp_path


def files(course) -> set[str]:
    return {path.relative_to(course).as_posix() for path in course.rglob("*") if path.is_file()}


def names_in(path) -> dict:
    names: dict = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    return names


def test_a_second_exercise_comes_after_the_first_and_each_is_whole(course):
    path, before = course / "notebooks" / "00_tensors.ipynb", files(course)
    assert [scaffold.add_exercise(path) for _ in range(2)] == ["0.1", "0.2"]
    cells = nbformat.read(path, as_version=4).cells
    nbformat.validate(nbformat.read(path, as_version=4))
    assert [cell.id for cell in cells] == ["title", "exercise-0-1", "exercise-0-1-code", "exercise-0-2", "exercise-0-2-code",
                                           "quiz"]
    lesson = course / "notebooks" / "exercises" / "n00"
    assert files(course) - before == {f"notebooks/exercises/n00/{name}" for name in
                                      ("ask.py", "answers.py", "notebook.json")} | {"tests/exercises/variants/n00.py"}
    told = json.loads((lesson / "notebook.json").read_text(encoding="utf-8"))
    variants = names_in(course / "tests" / "exercises" / "variants" / "n00.py")["VARIANTS"]
    asked, answers = names_in(lesson / "ask.py")["EXERCISES"], names_in(lesson / "answers.py")["ANSWERS"]
    assert len(asked) == len(answers) == len(told) == len(variants) == 2
    for exercise, answer, number in zip(asked, answers, told):
        exercise = exercise._replace(id=number, title="Centred")
        for right in (answer.reference, *variants[number].values()):
            assert judge(exercise, answer, right).state == "right"
        assert {mistake.name for mistake in exercise.mistakes} == set(answer.mutants)
        for name, wrong in answer.mutants.items():
            assert judge(exercise, answer, wrong).names == (name,)
        assert judge(exercise, answer, lambda x: x * 0 + 1).state == "wrong"


def test_a_lesson_that_never_needed_torch_gets_it(course):
    lesson = course / "notebooks" / "exercises" / "n00"
    lesson.mkdir(parents=True)
    text = scaffold.HEADS["ask.py"].format(number="00").replace("import torch\n\n", "")
    (lesson / "ask.py").write_text(text, encoding="utf-8")
    scaffold.add_exercise(course / "notebooks" / "00_tensors.ipynb")
    assert len(names_in(lesson / "ask.py")["EXERCISES"]) == 1


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
    assert places == {"notebooks/01_language_model.ipynb", "notebooks/exercises", "tests/exercises/variants"}
    for place in ("README.md", "notebooks/01_language_model.ipynb", "exercises/n01/quiz.yaml", "exercises/n01/ask.py"):
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
    row = next(line for line in page.splitlines(keepends=True) if line.startswith("| 12 "))
    moment = next(line for line in readme.splitlines() if line.startswith("| [12 ")).split("|")[-2].strip()
    begun = row.split("|")[:6]
    assert with_rows(page.replace(row, ""), readme) == page.replace(row, "|".join([*begun, f" {moment} |\n"]))
    assert with_rows(page.replace(row, row.replace("60", "61")), readme) == page
