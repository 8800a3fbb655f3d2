"""What instructors hand out: an edition without solutions that judges as before."""

import inspect
import os
import re
import subprocess
import sys
import textwrap
import zipfile

import pytest
import torch
from variants import variants_of

from course_tools.teaching.editions import called_numbers, needs_what_stays_behind, write_handout
from course_utils.copies.notebooks import everything
from course_utils.exercises.catalogue import answers_to, list_exercises
from course_utils.exercises.judge import judge
from course_utils.exercises.sealed import read_key
from course_utils.files.paths import ROOT

EVERY = list_exercises()
IDS = [exercise.id for exercise in EVERY]


@pytest.fixture(scope="module")
def handout(tmp_path_factory):
    """The folder of the edition without solutions."""
    folder = tmp_path_factory.mktemp("edition") / "handout"
    write_handout(folder)
    return folder


def run_there(folder, code: str) -> str:
    """What a program prints that uses the handed-out package."""
    there = {"PYTHONPATH": str(folder), "COURSE_PROGRESS": str(folder.parent / "progress.json")}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], cwd=folder, env={**os.environ, **there},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_without_solutions_every_answer_gets_the_same_verdict(exercise, handout):
    answers, key = answers_to(exercise.id), read_key(exercise, handout / "notebooks" / "exercises")
    tried = {**variants_of(exercise.id), **answers.mutants, "nothing like it": lambda *inputs: torch.full((2, 3), 0.1)}
    if exercise.kind != "order":
        tried["reference"] = answers.reference
    for name, answer in tried.items():
        given = answer if exercise.kind == "function" else answer()
        assert judge(exercise, key, given) == judge(exercise, answers, given), name


def test_no_solution_is_handed_out(handout):
    """Not even two lines of one; a single line may stand in a hint."""
    folders = handout / "course_utils" / "exercises", handout / "notebooks" / "exercises"
    texts = {path.relative_to(handout).as_posix(): path.read_text(encoding="utf-8").split()
             for folder in folders for path in folder.rglob("*") if path.is_file()}
    assert not list(handout.rglob("answers.py")) and not list(handout.rglob("variants")) and len(texts) > 20
    joined = {name: " ".join(words) for name, words in texts.items()}
    compared = 0
    for exercise in EVERY:
        if exercise.kind == "function":
            lines = inspect.getsource(answers_to(exercise.id).reference).splitlines()[1:]
            lines = [" ".join(line.partition("#")[0].split()) for line in lines if line.partition("#")[0].strip()]
            for one, two in zip(lines, lines[1:]):
                if len(one) + len(two) > 40:
                    compared += 1
                    assert not [name for name, text in joined.items() if f"{one} {two}" in text], (exercise.id, one, two)
    assert compared > 50


@pytest.mark.parametrize("exercise", [exercise for exercise in EVERY if exercise.kind != "function"], ids=lambda e: e.id)
def test_numbers_and_orders_are_handed_out_as_fingerprints(exercise, handout):
    entry = read_key(exercise, handout / "notebooks" / "exercises").entry
    if exercise.kind == "order":
        assert all(re.fullmatch("[0-9a-f]{10}", sealed) for _, sealed in entry["rules"])
        return
    for _, steps, prints in entry["gives"]["right"].values():
        assert all(step == 2.0 ** round(torch.tensor(step).log2().item()) for step in steps)  # gives only a magnitude away
        assert all(re.fullmatch("[0-9a-f]{10}", sealed) for row in prints for sealed in row)


def test_the_handed_out_course_checks_and_has_no_answer_of_its_own(handout):
    said = run_there(handout, """
        import course_utils
        from pathlib import Path
        from course_utils.exercises import exercise
        print(Path(course_utils.__file__).resolve().is_relative_to(Path.cwd().resolve()))
        def mine(query, key, value):
            weights = (query @ key.mT).softmax(-1)
            return weights @ value, weights
        def stub(query, key, value): ...
        exercise("4.2").check(mine)
        exercise("4.2").check(stub)
        print(exercise("4.2").use(mine) is mine)
        exercise("4.2").solution()
        exercise("4.1").check([0.105, 0.776, 0.105, 0.014])
        exercise("4.2").check(mine, seed=7)
        """).splitlines()
    assert said[0] == "True" and said[3] == "True"
    assert "not divided by √d_k" in said[1] and "not tried yet" in said[2]
    assert "without solutions" in said[4] and said[5].startswith("✓ 4.1") and "not judged" in said[6]


def test_the_handed_out_course_is_whole_and_holds_nothing_for_instructors(handout):
    names = {str(path.relative_to(handout)) for path in handout.rglob("*")}
    assert not [name for name in names if re.search(r"instructors|my_copies|progress|__pycache__|sheets\.py|grading", name)]
    assert len([name for name in names if re.fullmatch(r"notebooks/\d\d_\w+\.ipynb", name)]) >= 10
    ours = {path.relative_to(ROOT).as_posix() for path in everything()}
    assert {name for name in names if name.endswith(".ipynb")} == ours
    readme = (handout / "README.md").read_text(encoding="utf-8")
    assert "make solutions" not in readme and "for_instructors" not in readme and "make lab" in readme
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", readme):
        assert (handout / link).exists(), link
    with zipfile.ZipFile(handout.with_suffix(".zip")) as packed:
        assert {name.partition("/")[2] for name in packed.namelist()} - {""} >= {name for name in names if "." in name[1:]}


STAYS = {                                               # tests that need what instructors keep to themselves
    "from course_utils.instructors import sheets": True,
    "import course_tools.teaching.editions as e": True,
    "def test_it():\n    from course_tools.grading.grade import Grader": True,
    "from course_utils.exercises.catalogue import (\n    find_exercise,\n    answers_to as solutions,\n)": True,
    f"import {answers_to('4.2').reference.__module__}": True,
    "MODULE = 'course_tools.teaching.timetable'": True,
    "from variants import variants_of": True,
    "import helper_of_tests": True,
    "import helper_of_helper": True,
    "import asks_itself": False,
    "from course_utils.exercises.catalogue import find_exercise": False,
    "from course_utils.exercises import check\n# instructors have answers_to": False,
    "from course_utils.files import sha256\nWORDS = 'course_tools.grading judges'": False,
    "import course_utils.nothing": False,
}


@pytest.mark.parametrize("source", STAYS)
def test_a_test_stays_behind_if_it_needs_what_does(source, handout, tmp_path):
    beside = {"helper_of_tests": "from course_utils.instructors import editions",
              "helper_of_helper": "import helper_of_tests",
              "asks_itself": "import asks_itself", "test_it": source}
    for name, content in beside.items():
        (tmp_path / f"{name}.py").write_text(content, encoding="utf-8")
    assert needs_what_stays_behind(tmp_path / "test_it.py", handout) is STAYS[source]


def test_the_tests_that_are_handed_out_can_all_be_imported(handout, root):
    done = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"],
                          cwd=handout, env={**os.environ, "PYTHONPATH": str(handout)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    ours, theirs = ({path.name for path in (folder / "tests").rglob("*.py")} for folder in (root, handout))
    left = ours - theirs
    assert {"test_grading.py", "forged_hand_ins.py", "test_sheets.py", "test_handout.py"} <= left
    assert not left & {"test_attention.py", "test_files.py", "test_notebooks.py", "test_record.py", "command_line.py"}


def test_the_numbers_of_a_cells_exercises_are_found():
    source = "exercise(\"4.2\").check(f)\nexercise( '4.10' ) .check(3)\nexercise('4.3').hint(1)"
    assert called_numbers(source) == ["4.2", "4.10"]
