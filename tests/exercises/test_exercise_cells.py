"""The exercise cells of the notebooks: as they are handed out, solved, with a known mistake; their quizzes and minutes."""

import ast
import contextlib
import io
import json
import re

import pytest
import yaml

from course_tools.teaching.editions import solved, write_solutions
from course_tools.teaching.timetable import read_lesson, with_timetable
from course_utils.copies import notebooks as copies
from course_utils.copies.notebooks import everything, find, front
from course_utils.exercises import folder, verdict
from course_utils.exercises.catalogue import answers_to, find_exercise, list_exercises
from course_utils.exercises.quizzes import list_quizzes, load_quiz
from course_utils.files.paths import HOUR, NUMBER
from course_utils.files.paths import NOTEBOOKS as COURSE

NOTEBOOKS = {copies.number_of(path): json.loads(path.read_text(encoding="utf-8")) for path in find([])}
FRONT = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in front()}     # these ask some exercises again
ALL = NOTEBOOKS | FRONT


def source(cell) -> str:
    return "".join(cell["source"])


def exercise_cells(notebook) -> list:
    return [cell for cell in notebook["cells"] if "exercise" in cell["metadata"].get("tags", [])]


CELLS = [(number, cell) for number, notebook in ALL.items() for cell in exercise_cells(notebook)]
NAMES = [f"{number}-{cell['id']}" if number in FRONT else cell["id"] for number, cell in CELLS]


def check_call(tree) -> ast.Call:
    """The first `exercise("4.2").check(answer)` of a cell."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "check"]
    assert calls, "an exercise cell has no check"
    return calls[0]


def number_of(cell) -> str:
    return check_call(ast.parse(source(cell))).func.value.args[0].value


def namespace(notebook, before) -> dict:
    """What the notebook's earlier cells import and define, without running them; of an exercise, the course's answer."""
    names: dict = {"__name__": "learner"}
    for cell in notebook["cells"]:
        if cell["id"] == before:
            break
        if cell["cell_type"] != "code":
            continue
        for node in ast.parse(source(cell)).body:
            if isinstance(node, ast.Assign) and ".use(" in ast.unparse(node.value):
                names[ast.unparse(node.targets[0])] = answers_to(number_of(cell)).reference
            pattern = isinstance(node, ast.Assign) and "re.compile" in ast.unparse(node.value)
            if pattern or isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)):
                with contextlib.suppress(Exception):    # a default that needs an earlier result; no exercise uses it
                    exec(compile(ast.Module([node], []), "cell", "exec"), names)
    return names


def run_cell(notebook, cell, answer=None, replace=False) -> str:
    """Execute an exercise cell; with `replace` the learner's definition gives way to `answer`. Returns what it prints."""
    names = namespace(notebook, cell["id"])
    tree = ast.parse(source(cell))
    if replace:
        call = check_call(tree)
        if isinstance(call.args[0], ast.Name):
            name = call.args[0].id
            tree.body = [node for node in tree.body if getattr(node, "name", None) != name
                         and not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
                                  and ".use(" not in ast.unparse(node.value))]
            names[name] = answer
        else:
            call.args[0] = ast.Name("the_answer", ast.Load())
            names["the_answer"] = answer
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for node in ast.fix_missing_locations(tree).body:
            try:
                exec(compile(ast.Module([node], []), "cell", "exec"), names)
            except Exception:                           # trying a wrong answer out may fail; a check may not
                if not replace or "exercise(" in ast.unparse(node):
                    raise
    return out.getvalue()


def saved_output(cell) -> str:
    return "".join("".join(output.get("text", "")) for output in cell["outputs"] if output.get("name") == "stdout")


@pytest.fixture(autouse=True)
def marks(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))


def test_every_exercise_has_its_cell():
    asked = [number_of(cell) for number, cell in CELLS if number in NOTEBOOKS]
    assert sorted(asked) == sorted(exercise.id for exercise in list_exercises())


def test_the_hour_asks_three_exercises_of_the_course_under_their_numbers_and_titles():
    notebook = FRONT["attention_in_an_hour"]
    asked = [find_exercise(number_of(cell)) for cell in exercise_cells(notebook)]
    headings = [source(cell).splitlines()[0] for cell in notebook["cells"] if "### Exercise" in source(cell)]
    assert headings == [f"### Exercise {one.id} {one.title} ({one.minutes[0]}–{one.minutes[1]} minutes)" for one in asked]
    low, high = (sum(one.minutes[end] for one in asked) for end in (0, 1))
    assert len(asked) == 3 and f"{low}–{high} more for the exercises" in source(notebook["cells"][0])


def last_line(printed: str) -> str:
    """What the check says, of all that a cell prints."""
    return [line for line in printed.splitlines() if line[:1] in set("✓○✗≈")][-1]


def test_code_to_be_repaired_is_wrong_once_it_is_touched():
    """Only the cell's own code hasn't been tried yet; whatever else makes the same mistake has."""
    stub = find_exercise("0.1").stub
    for old, new, state in [("", "", "open"), ("total / count", "total / (count + 0)", "wrong")]:
        names = {}
        exec(stub.partition("exercise(")[0].replace(old, new), names)
        judged = verdict("0.1", names["mean_opinion"])
        assert (judged.state, judged.names) == (state, ("every-with-every",)), new


@pytest.mark.parametrize("number, cell", CELLS, ids=NAMES)
def test_a_cell_untouched_solved_and_with_a_known_mistake(number, cell):
    notebook, exercise = ALL[number], find_exercise(number_of(cell))
    cells = notebook["cells"]
    heading = source(cells[[one["id"] for one in cells].index(cell["id"]) - 1]).splitlines()[0]
    low, high = exercise.minutes
    assert heading.startswith(f"### Exercise {exercise.id} ") and f"{low}–{high} minutes)" in heading

    printed = run_cell(notebook, cell)
    assert printed == saved_output(cell)
    assert last_line(printed)[0] == "○"

    assert last_line(run_cell(notebook, {**cell, "source": solved(source(cell))})).startswith("✓")

    wrong = next(mutant for name, mutant in answers_to(exercise.id).mutants.items() if name != exercise.given)
    printed = run_cell(notebook, cell, wrong if exercise.kind == "function" else wrong(), replace=True)
    assert last_line(printed)[0] in "✗≈"


def test_the_edition_with_solutions_has_every_notebook_and_no_outputs(tmp_path):
    written = write_solutions(tmp_path)
    assert [path.relative_to(tmp_path) for path in written] == [path.relative_to(COURSE) for path in everything()]
    for path in written:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.parametrize("number", list_quizzes())
def test_a_quiz_explains_every_option_and_asks_again_what_was_taught_before(number):
    questions = load_quiz(number)
    assert len({asked.name for asked in questions}) == len(questions)
    for asked in questions:
        assert asked.taught <= number and all(option.remark.strip() for option in asked.options)
        assert len({option.text for option in asked.options}) == len(asked.options)
    if number not in ("00", HOUR):                                         # nothing comes before these
        assert any(asked.taught < number for asked in questions), "no question from an earlier notebook"
    notebook = FRONT["attention_in_an_hour"] if number == HOUR else NOTEBOOKS[number]
    assert any("quiz(" in source(cell) and number in source(cell) for cell in notebook["cells"])


@pytest.mark.parametrize("change", [
    lambda options: options[0].update(right=True) or options[1].update(right=True),     # two right ones
    lambda options: [option.pop("right", None) for option in options],                  # none
    lambda options: options[0].pop("remark"),
])
def test_a_damaged_quiz_is_refused(tmp_path, monkeypatch, change):
    entries = yaml.safe_load(folder.quiz_of("n04"))
    change(entries[0]["options"])
    (tmp_path / "n04.py").write_text(f"QUIZ = {yaml.safe_dump(entries)!r}", encoding="utf-8")
    monkeypatch.setattr(folder, "EXERCISES", tmp_path)
    with pytest.raises(ValueError, match="the quiz of 04, question"):
        load_quiz("04")


def test_the_page_for_instructors_counts_the_exercises_and_their_minutes():
    page = (find([])[0].parent / "for_instructors.md").read_text(encoding="utf-8")
    lines = [line for line in page.splitlines() if re.match(rf"[|] {NUMBER} ", line) and line.count("|") == 7]
    rows = {line[2:5].strip(): [cell.strip() for cell in line.split("|")] for line in lines}
    for number, notebook in NOTEBOOKS.items():
        core = re.search(r"[*][*]Time[*][*] about (\d+) minutes", source(notebook["cells"][0])).group(1)
        mine = [exercise for exercise in list_exercises() if exercise.notebook == number]
        low, high = sum(exercise.minutes[0] for exercise in mine), sum(exercise.minutes[1] for exercise in mine)
        expected = [core, str(len(mine)) if mine else "–", f"{low}–{high}" if mine else "–"]
        assert [rows[number][2], rows[number][4], rows[number][5]] == expected, number


def test_its_objectives_and_minutes_by_section_are_those_of_the_notebooks():
    page = (find([])[0].parent / "for_instructors.md").read_text(encoding="utf-8")
    assert with_timetable(page) == page, "python -m course_tools timetable"


@pytest.mark.parametrize("path", find([]), ids=lambda path: path.stem)
def test_the_minutes_of_the_sections_add_up(path):
    lesson = read_lesson(path)
    opening = source(NOTEBOOKS[copies.number_of(path)]["cells"][0])
    stated = re.search(r"[*][*]Time[*][*] about (\d+) minutes", opening).group(1)
    assert sum(section.minutes for section in lesson.core) == int(stated)
    assert all(section.minutes >= 1 for section in lesson.core + lesson.optional) and 3 <= len(lesson.objectives) <= 5
    titles = [section.title for section in lesson.core + lesson.optional if section.title]
    assert [int(title.split(".")[0]) for title in titles] == list(range(1, len(titles) + 1))
