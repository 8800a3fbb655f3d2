"""What instructors hand out: an edition without solutions that judges as before."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile

import pytest
import torch
from variants import variants_of

from course_tools.teaching.editions import called_numbers, write_handout
from course_utils.copies.notebooks import everything
from course_utils.exercises.catalogue import answers_to, list_exercises
from course_utils.exercises.judge import judge
from course_utils.exercises.sealed import read_key
from course_utils.files.paths import ROOT

EVERY = list_exercises()
IDS = [exercise.id for exercise in EVERY]
IMPORT = re.compile(r"^(?:from course_utils[\w.]* import (?:\([^)]*\)|.*)|import course_utils.*)$", re.M)


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
    left_out = r"instructors|my_copies|progress\.json|__pycache__|course_tools|/test_"
    assert not [name for name in names if re.search(left_out, name)]
    assert len([name for name in names if re.fullmatch(r"notebooks/\d\d_\w+\.ipynb", name)]) >= 10
    ours = {path.relative_to(ROOT).as_posix() for path in everything()}
    assert {name for name in names if name.endswith(".ipynb")} == ours
    readme = (handout / "README.md").read_text(encoding="utf-8")
    assert "make solutions" not in readme and "for_instructors" not in readme and "make lab" in readme
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", readme):
        assert (handout / link).exists(), link
    with zipfile.ZipFile(handout.with_suffix(".zip")) as packed:
        assert {name.partition("/")[2] for name in packed.namelist()} - {""} >= {name for name in names if "." in name[1:]}


def test_a_learners_commands_work_there_and_a_makers_say_where_they_are(handout, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(handout), "COURSE_OUTPUTS": str(tmp_path)}

    def said(*words):
        return subprocess.run(words, cwd=handout, env=environment, capture_output=True, text=True)

    overview = said(sys.executable, "-m", "course_utils", "--help")
    assert overview.returncode == 0 and "copy" in overview.stdout
    slides = said(sys.executable, "-m", "course_tools", "slides")
    assert slides.returncode == 2 and "comes without it" in slides.stderr
    cards = said(sys.executable, "-m", "course_utils", "quiz-cards")
    assert cards.returncode == 0 and list((tmp_path / "sheets").iterdir())
    notebook = said(sys.executable, "-m", "pytest", "-q", "notebooks/00_tensors.ipynb")
    assert notebook.returncode == 0 and "passed" in notebook.stdout, notebook.stdout[-2000:]


def test_every_import_of_a_notebook_works_there(handout):
    read = [json.loads(path.read_text("utf-8")) for path in handout.glob("notebooks/**/*.ipynb")]
    sources = ["".join(cell["source"]) for notebook in read for cell in notebook["cells"] if cell["cell_type"] == "code"]
    lines = [line for source in sources for line in IMPORT.findall(source)]
    assert len(lines) > 50
    run_there(handout, "\n".join(dict.fromkeys(lines)))


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_the_makefile_there_has_what_learners_need_and_no_more(handout):
    for target, there in (("lab", True), ("test", True), ("sheets", True), ("site", False), ("grade", False)):
        done = subprocess.run(["make", "-n", target], cwd=handout, capture_output=True, text=True)
        assert (done.returncode == 0) is there and "course_tools" not in done.stdout, target


def test_the_numbers_of_a_cells_exercises_are_found():
    source = "exercise(\"4.2\").check(f)\nexercise( '4.10' ) .check(3)\nexercise('4.3').hint(1)"
    assert called_numbers(source) == ["4.2", "4.10"]
