"""A term with two students, told in order, by the page's own commands: hand out, solve, update, collect, grade."""

import csv
import json
import os

import pytest
from classroom_hub import Student

from course_tools.teaching.editions import called_numbers, solved
from course_utils.exercises.catalogue import list_exercises

COPIES = "attention/notebooks/my_copies"
COPY = f"{COPIES}/04_attention.ipynb"
ORIGINAL = "attention/notebooks/04_attention.ipynb"
SCALE = " / math.sqrt(query.shape[-1])"
NEWS = "This sentence came in the middle of the term."
READING = "reading_list.md"


@pytest.fixture(scope="module")
def link(classroom):
    return classroom.run("link").strip()


@pytest.fixture(scope="module")
def anna(classroom):
    """She works on the copies."""
    return Student("anna", classroom.hub)


@pytest.fixture(scope="module")
def ben(classroom):
    """He makes a mistake in his copy, and has written an answer into the course's own notebook, too."""
    return Student("ben", classroom.hub)


def cell_with(notebook: dict, number: str) -> dict:
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return next(cell for cell in code if number in called_numbers(cell["source"]))


def work_through(student: Student, until: str) -> str:
    """Run the cells of the copy up to one exercise, with the student's answers in them, save, and return what it said."""
    notebook = student.notebook(COPY)
    for number in ("4.1", "4.2"):
        cell = cell_with(notebook, number)
        cell["source"] = solved(cell["source"]).replace(SCALE, "" if student.name == "ben" else SCALE)
    last = notebook["cells"].index(cell_with(notebook, until))
    with student.kernel(COPY) as kernel:
        for cell in notebook["cells"][: last + 1]:
            if cell["cell_type"] == "code":
                cell["outputs"] = kernel.run(cell["source"])
    student.save(COPY, notebook)
    outputs = notebook["cells"][last]["outputs"]
    return "".join(output.get("text", "") for output in outputs)


def test_one_click_gives_a_student_the_course_and_copies_to_work_on(anna, ben, link, classroom):
    assert "copied into notebooks/my_copies: START" in anna.click(link)
    ben.click(link)
    handed_out = json.loads((classroom.course / "outputs/handout/notebooks/04_attention.ipynb").read_text("utf-8"))
    mine = anna.notebook(COPY)
    assert [cell["id"] for cell in mine["cells"]] == [cell["id"] for cell in handed_out["cells"]]
    assert len(list((anna.home / COPIES).rglob("*.ipynb"))) == len(list((classroom.course / "notebooks").rglob("*.ipynb")))


def test_her_kernel_has_the_shared_packages_and_her_own_course(anna, classroom):
    with anna.kernel(COPY) as kernel:
        said = kernel.says("import course_utils, os, sys, torch\nfrom course_utils.files.paths import output_folder\n"
                           "print(course_utils.__file__, torch.__file__, output_folder(), os.environ['OMP_NUM_THREADS'])")
    course, torch, outputs, threads = said.split()
    assert course == str(anna.home / "attention" / "course_utils" / "__init__.py")
    assert torch.startswith(str(classroom.shared / "course" / ".venv"))
    assert outputs == str(anna.home / "attention" / "outputs") and threads == "1"


def test_no_solution_is_where_students_can_read(anna, classroom):
    for folder in (classroom.shared / "course", anna.home / "attention"):
        names = {path.name for path in folder.rglob("*") if ".venv" not in path.parts}
        assert "catalogue.py" in names and not names & {"for_instructors.md", "classroom.md", "editions.py"}


def test_they_solve_exercises_and_read_verdicts(anna, ben):
    assert work_through(anna, until="4.2").startswith("✓ 4.2")
    assert "not divided by √d_k" in work_through(ben, until="4.2")
    progress = json.loads((anna.home / COPIES / "progress.json").read_text("utf-8"))["exercises"]
    assert {number: one["right"] for number, one in progress.items()} == {"4.1": True, "4.2": True}


def test_a_second_click_changes_nothing(anna, link):
    before = (anna.home / COPY).read_bytes()
    assert "Already up to date" in anna.click(link)
    assert (anna.home / COPY).read_bytes() == before


def test_an_update_reaches_everybody_and_loses_nothing(anna, ben, link, classroom):
    notebook = ben.notebook(ORIGINAL)                     # what he shouldn't do: work in the course's own notebook
    cell = cell_with(notebook, "4.1")
    cell["source"] = solved(cell["source"])
    ben.save(ORIGINAL, notebook)
    (ben.home / "attention" / "notebooks" / READING).write_text("mine", encoding="utf-8")
    (anna.home / "attention" / "notebooks" / "07_transformer_blocks.ipynb").unlink()
    before = {student.name: (student.home / COPY).read_bytes() for student in (anna, ben)}

    changed = classroom.course / "notebooks" / "04_attention.ipynb"
    new = json.loads(changed.read_text("utf-8"))
    place = next(cell for cell in new["cells"][1:] if cell["cell_type"] == "markdown")
    place["source"] = [*place["source"], f"\n\n{NEWS}"]
    new["cells"].append({"cell_type": "code", "id": "mid-term", "metadata": {}, "execution_count": None, "outputs": [],
                         "source": ["'new'"]})
    changed.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (classroom.course / "notebooks" / READING).write_text("the course's", encoding="utf-8")
    classroom.run("republish")

    said = anna.click(link), ben.click(link)
    assert all("the course has newer versions of 04; yours are untouched" in one for one in said)
    for student in (anna, ben):
        assert (student.home / COPY).read_bytes() == before[student.name]
        assert (student.home / "attention" / "notebooks" / READING).read_text("utf-8") == "the course's"
    assert (anna.home / "attention" / "notebooks" / "07_transformer_blocks.ipynb").is_file()
    assert any(path.read_text("utf-8") == "mine" for path in (ben.home / "attention/notebooks").glob("reading_list__*.md"))
    merged = ben.notebook(ORIGINAL)
    assert cell_with(merged, "4.1")["source"] == cell["source"]
    assert NEWS in json.dumps(merged) and merged["cells"][-1]["id"] == "mid-term"


def test_the_newest_copy_has_her_answers_and_the_old_one_is_kept(anna, classroom):
    before = anna.notebook(COPY)
    with anna.kernel(COPY) as kernel:                     # in a cell of the notebook that is open, as in a terminal
        said = kernel.says("!" + classroom.blocks["update"].strip())
    assert "it has 2 of your 2 answers and predictions" in said
    assert anna.notebook(f"{COPIES}/kept-1-04_attention.ipynb") == before
    after = anna.notebook(COPY)
    assert NEWS in json.dumps(after)
    for number in ("4.1", "4.2"):
        assert cell_with(after, number)["source"] == cell_with(before, number)["source"]


def test_git_reads_the_handout_though_it_belongs_to_somebody_else(anna, classroom):
    with anna.kernel(COPY) as kernel:                     # on a real hub it does; Git asks for safe.directory then
        said = kernel.says("!GIT_TEST_ASSUME_DIFFERENT_OWNER=1 git ls-remote --heads "
                           f"file://{classroom.shared}/handout.git 2>&1")
    assert said.split()[1:] == ["refs/heads/main"]


def test_another_course_on_the_hub_is_left_alone(anna, link, classroom):
    other = classroom.course.parent / "other"
    other.mkdir()
    (other / "lesson.md").write_text("another course", encoding="utf-8")
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
        classroom.command(["git", *words], other)
    address = link.partition("?")[0]
    anna.click(f"{address}?repo=file://{other}&branch=main&targetpath=other&urlpath=lab/tree/other/lesson.md")
    assert {path.name for path in (anna.home / "other").iterdir()} == {".git", "lesson.md"}


def test_grades_are_what_they_earned(anna, ben, classroom):
    trick = classroom.homes / "carl" / COPIES             # whose copy is a link to somebody else's
    trick.mkdir(parents=True)
    (trick / "04_attention.ipynb").symlink_to(anna.home / COPY)
    classroom.run("collect")
    print(classroom.run("grade"))
    with open(classroom.course / "grades.csv", encoding="utf-8", newline="") as file:
        rows = {row["file"].split(os.sep)[1]: row for row in csv.DictReader(file)}
    assert sorted(rows) == ["anna", "ben"]
    numbers = [exercise.id for exercise in list_exercises() if exercise.id.startswith("4.")]
    states = {name: [row[f"exercise {number}"] for number in numbers] for name, row in rows.items()}
    assert states == {"anna": ["right", "right", "as given", "open", "as given", "open"],
                      "ben": ["right", "wrong", "as given", "open", "as given", "open"]}
    assert [rows[name]["right"] for name in ("anna", "ben")] == ["2", "1"]
