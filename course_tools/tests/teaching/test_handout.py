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
from fnmatch import fnmatch

import pytest
import torch
from frozen import made, read_rows

from course_tools.teaching.editions import LATER, called_numbers, copy_without_solutions, write_handout
from course_utils.copies.notebooks import everything
from course_utils.exercises.catalogue import answers_to, find_exercise, list_exercises
from course_utils.exercises.folder import unsealed
from course_utils.exercises.judge import judge
from course_utils.exercises.sealed import read_key
from course_utils.files.paths import ELSEWHERE, ROOT

EVERY = list_exercises()
RIGHT = {exercise.id: [row["answer"] for row in read_rows() if row["verdicts"] == {exercise.id: "right"}
                       and not row["answer"].startswith("answer = right(")] for exercise in EVERY}
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


TRIED = """
import math

import torch

def unscaled(query, key, value):
    weights = (query @ key.mT).softmax(-1)
    return weights @ value, weights

def scaled(query, key, value):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights

def twice(query, key, value):
    weights = (2 * query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights

def in_heads(x, num_heads):
    return x.view(len(x), x.shape[1], num_heads, -1).transpose(1, 2)

def no_transpose(x, num_heads):
    return x.view(len(x), num_heads, x.shape[1], -1)

TRIED = {"4.2": [scaled, unscaled, twice], "5.1": [in_heads, no_transpose, lambda x, num_heads: x],
         "4.1": [[0.105, 0.776, 0.105, 0.014], [1, 7.389, 1, 0.135], [0, 2, 0, -2], [0.1, 0.7, 0.1, 0.1], 3],
         "3.3": ["H D B G E A C F", "H B D G E A C F", "A B"], "0.3": [lambda scores, true_class: scores.mean()]}

def verdicts():
    from course_utils.exercises import verdict

    return [[number, seed, *verdict(number, answer, seed)] for number, answers in TRIED.items() for answer in answers
            for seed in (0, 7)]
"""


def test_without_solutions_every_answer_gets_the_same_verdict_on_any_inputs(handout):
    ours: dict = {}
    exec(TRIED, ours)
    expected = [[number, seed, state, list(names), text] for number, seed, state, names, text in ours["verdicts"]()]
    assert {state for _, _, state, *_ in expected} == {"right", "wrong"}
    assert {name for *_, names, _ in expected for name in names} >= {"no-scaling", "not-divided", "loss-before-forward"}
    theirs = json.loads(run_there(handout, f"{TRIED}\nimport json\nprint(json.dumps(verdicts()))"))
    for mine, other in zip(expected, theirs, strict=True):
        known = mine[2] == "wrong" and not mine[3] and mine[0] == "4.1"     # nobody there knows the right number
        assert mine[:4 if known else 5] == other[:4 if known else 5]


def lines_of_answers() -> dict[str, list[str]]:
    """The lines of the course's answers that say something."""
    found = {}
    for exercise in EVERY:
        lines = inspect.getsource(answers_to(exercise.id).reference).splitlines()[1:]
        lines = [" ".join(line.partition("#")[0].split()) for line in lines]
        found[exercise.id] = [line for line in lines if len(line) > 24]
    assert sum(map(len, found.values())) > 200
    return found


def test_no_line_of_an_answer_stands_in_what_is_handed_out(handout):
    folder = handout / "notebooks" / "exercises"
    assert not list(handout.rglob("variants"))
    assert {path.suffix for path in folder.iterdir()} == {".sealed"} and len(list(folder.iterdir())) > 18
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    for number, lines in lines_of_answers().items():
        for line in lines:
            assert not [name for name, text in texts.items() if line in text], (number, line)


def test_where_hand_ins_run_there_are_no_answers_at_all(tmp_path):
    """Not even encoded: the questions alone."""
    copy_without_solutions(tmp_path, ["notebooks/exercises"])
    texts = {path: " ".join(path.read_text(encoding="utf-8").split()) for path in tmp_path.rglob("*.py")}
    assert {path.name for path in texts} >= {"n04.py", "n17.py", "common.py"} and not list(tmp_path.rglob("*.sealed"))
    for number, lines in lines_of_answers().items():
        given = find_exercise(number).question + "".join(find_exercise(number).hints)
        for one, two in zip(lines, lines[1:]):
            there = [path for path, text in texts.items() if f"{one} {two}" in text]
            assert f"{one} {two}" in given or not there, (number, one)
    assert all("def scaled_attention" not in text and "def masked_attention" not in text for text in texts.values())


@pytest.mark.parametrize("exercise", [exercise for exercise in EVERY if exercise.kind != "function"], ids=lambda e: e.id)
def test_numbers_and_orders_are_handed_out_as_fingerprints(exercise, handout):
    folder = handout / "notebooks" / "exercises"
    everything_there = unsealed(folder, f"n{exercise.notebook}")
    reference = answers_to(exercise.id).reference.__name__
    assert not [name for name, text in everything_there["files"].items() if f"def {reference}(" in text]
    entry = read_key(exercise, folder).entry
    if exercise.kind == "order":
        assert all(re.fullmatch("[0-9a-f]{10}", sealed) for _, sealed in entry["rules"])
        return
    for _, steps, prints in entry["gives"]["right"].values():
        assert all(step == 2.0 ** round(torch.tensor(step).log2().item()) for step in steps)  # gives only a magnitude away
        assert all(re.fullmatch("[0-9a-f]{10}", sealed) for row in prints for sealed in row)


@pytest.mark.parametrize("exercise", [exercise for exercise in EVERY if exercise.kind != "function"], ids=lambda e: e.id)
def test_fingerprints_judge_as_the_answers_do(exercise, handout):
    answers, key = answers_to(exercise.id), read_key(exercise, handout / "notebooks" / "exercises")
    tried = {**answers.mutants, "nothing like it": lambda *inputs: torch.full((2, 3), 0.1)}
    tried |= {code: lambda code=code: made(code) for code in RIGHT[exercise.id]}
    if exercise.kind != "order":
        tried["reference"] = answers.reference
    for name, answer in tried.items():
        assert judge(exercise, key, answer()) == judge(exercise, answers, answer()), name


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
        exercise("4.2").hint(3)
        """).splitlines()
    assert said[0] == "True" and said[3] == "True"
    assert "not divided by √d_k" in said[1] and "not tried yet" in said[2]
    assert "without solutions" in said[4] and said[5].startswith("✓ 4.1")
    assert "not divided by √d_k" in said[6] and "weights @ value" in said[7]


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


def test_each_zip_file_fits_a_learning_platform_and_together_they_are_the_handout(handout):
    packed = {path.name: zipfile.ZipFile(path) for path in handout.parent.glob("handout*.zip")}
    assert set(packed) == {"handout.zip", *(f"handout-{name}.zip" for name in LATER)}
    inside = {name: {one.partition("/")[2] for one in file.namelist()} for name, file in packed.items()}
    for name, file in packed.items():
        assert sum(one.compress_size for one in file.infolist()) < 25e6, name
    assert set().union(*inside.values()) - {f"data/checkpoints/{ELSEWHERE}"} == {
        path.relative_to(handout).as_posix() for path in handout.rglob("*") if path.is_file()}
    for name, (_, models) in LATER.items():
        there = {one.split("/")[2].partition(".")[0] for one in inside[f"handout-{name}.zip"]}
        assert all(any(fnmatch(one, model) for one in there) for model in models), name


def test_a_learner_without_a_larger_model_is_told_where_it_is(handout, tmp_path):
    with zipfile.ZipFile(handout.with_suffix(".zip")) as packed:
        packed.extractall(tmp_path)
    said = run_there(tmp_path / "handout", """
        from course_utils.completion import CodeCompleter
        try:
            CodeCompleter.load()
        except FileNotFoundError as error:
            print(error)""")
    assert f"data/checkpoints/{ELSEWHERE}" in said
    note = (tmp_path / "handout" / "data" / "checkpoints" / ELSEWHERE).read_text(encoding="utf-8")
    assert all(model in note for _, models in LATER.values() for model in models)


def test_a_learners_commands_work_there_and_a_makers_say_where_they_are(handout, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(handout), "COURSE_OUTPUTS": str(tmp_path)}

    def said(*words):
        return subprocess.run(words, cwd=handout, env=environment, capture_output=True, text=True)

    overview = said(sys.executable, "-m", "course_utils", "--help")
    assert overview.returncode == 0 and "copy" in overview.stdout
    slides = said(sys.executable, "-m", "course_utils", "slides")
    assert slides.returncode == 2 and "comes without it" in slides.stderr
    cards = said(sys.executable, "-m", "course_utils", "quiz-cards")
    assert cards.returncode == 0 and list((tmp_path / "sheets").iterdir())
    notebook = said(sys.executable, "-m", "pytest", "-q", "notebooks/extras/leaks_between_splits.ipynb")
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
