"""Grading notebooks that were handed in: what counts, what can't be forged, what is reported, what is left behind."""

import ast
import csv
import gc
import inspect
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import forged_parts as make
import pytest
import torch
from forged_hand_ins import forged

from course_tools.grading import contained, grade
from course_tools.grading.grade import Grader
from course_tools.grading.hand_ins import Cell, HandIn, Step, lesson_of, lessons, read_hand_in, steps_of
from course_tools.grading.tables import Grade, line_of, shown, table_of
from course_tools.grading.watching import Watched
from course_utils.exercises.catalogue import answers_to, find_exercise, list_exercises
from course_utils.exercises.sealed import Solved
from course_utils.exercises.wire import report
from course_utils.files.paths import ROOT

LESSONS = lessons()
LESSON = next(lesson for lesson in LESSONS if lesson.number == "04")
may = shutil.which("bwrap") and subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]).returncode == 0
in_containers = pytest.mark.skipif(not may, reason="bubblewrap is not installed, or may not make containers here")
MINUTES = {exercise.id: exercise.minutes[1] for exercise in list_exercises()}


def handed_in(content: bytes, folder: Path, name: str = "somebody.ipynb") -> HandIn:
    path = folder / name
    path.write_bytes(content)
    return read_hand_in(path)


@pytest.fixture(scope="module")
def grader():
    started = time.monotonic()
    with Grader(seed=7, seconds=300) as made:
        made.patience = max(8.0, 3 * (time.monotonic() - started))        # enough for a hand-in on this computer
        yield made


def processes_with(text: str) -> list[str]:
    """The processes that have a text in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


# what counts


def test_neither_ticks_nor_replaced_machinery_nor_recited_results_nor_forged_lines_change_a_grade(grader, tmp_path):
    right = answers_to("4.4").reference
    recited = [right(*inputs).tolist() for inputs in find_exercise("4.4").probes(torch.Generator().manual_seed(0))]
    guesses = [report(find_exercise("4.1"), [i / 1000, .776, .105, .014], 0) for i in range(200)]
    lines = [{"exercise": "4.1", "report": guess} for guess in guesses]
    lines += [{"exercise": "4.5", "state": "right"}, {"exercise": "4.5", "report": "right"}, {"cell": 10**30, "error": ""},
              {"exercise": "../..", "report": 1}, {"cell": -1, "error": ""}, {"cell": [], "error": ""}, [1], 7]
    written = repr(b"\xff[[[{\n" + "\n".join(map(json.dumps, [*lines, 0])).encode() + b"\n" + b"[" * 99999 + b"\n")
    content = make.edited(first="print('✓ 4.1 A row by hand: right.')" + make.ON_EVERY_DESCRIPTOR.format(written), changes={
        "4.2": make.cell("""
            from course_utils.exercises import judge, wire
            from course_utils.exercises.definitions import Verdict
            judge.judge = lambda *_, **__: Verdict("right", (), "✓ 4.2 x: right.")""", make.TICKS, make.WRONG, make.CHECK),
        "4.3": """
            from course_utils.exercises import exercise
            exercise("4.3").check(exercise("4.3").use(None))""",
        "4.4": f"""
            import itertools, torch
            results = itertools.cycle({recited!r})
            def decoder_mask(*_): return torch.tensor(next(results))
            exercise("4.4").check(decoder_mask)""",
        "4.5": """
            from course_utils.exercises.catalogue import answers_to
            exercise("4.5").check(answers_to("4.5").reference)"""})
    found = grader.grade(handed_in(content, tmp_path))
    assert found.states == dict.fromkeys(make.OPEN, "wrong") | {"4.6": "open", "4.7": "open"}
    assert "4.5: its outputs can't be read" in found.remarks


def made_in(source: str) -> set[str]:
    """The names that a cell assigns, defines or imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def test_only_what_exercises_depend_on_is_executed(tmp_path):
    for lesson in LESSONS:
        steps, missing = steps_of(HandIn(tmp_path / "a.ipynb", b"x", lesson.cells), lesson)
        needed = [step for step in steps if step.needed]
        assert not missing and {number for step in needed for number in step.exercises} == lesson.exercises.keys()
        read = {name.id for step in needed for name in ast.walk(ast.parse(step.source))
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)}
        for step in needed:
            assert step.exercises or made_in(step.source) & read, step.source
        # the course's `fit` trains for a minute; scikit-learn's method counts words in a second
        assert not [step for step in needed if re.search(r"(?<!\.)\bfit\(", step.source)]
    mine = Cell("mine", "%%time\nread\nif True:\n    !true")
    for cells, expected in (((*LESSON.cells, mine), True), (LESSON.cells, False)):
        steps, _ = steps_of(HandIn(tmp_path / "a.ipynb", b"x", cells), LESSON)
        assert [step.needed for step in steps if "def read(" in step.source] == [expected]
        assert steps[-1].needed == (cells[-1] is mine)  # what the learner has written is always executed


def test_all_is_executed_where_the_needed_cells_were_not_enough(grader, tmp_path, monkeypatch):
    hidden = 'globals()["half"] = 0.5'                  # a definition that reading the cell doesn't show
    monkeypatch.setattr(grader, "lessons", [LESSON._replace(cells=(*LESSON.cells, Cell("half", hidden)))])
    content = make.edited({"4.2": make.MINE.replace("** 0.5", "** half") + make.CHECK}, first=hidden)
    executed = []

    def execute(steps, *_):
        """What the process would tell of 4.2, without the process."""
        executed.append([step.source for step in steps])
        names = {"half": 0.5} if hidden in executed[-1] else {}
        exec(make.MINE.replace("** 0.5", "** half"), names)
        said = report(find_exercise("4.2"), names["scaled_attention"], grader.seed)
        return [{"exercise": "4.2", "report": said}, {"done": True}], "itself"

    monkeypatch.setattr(grader, "_execute", execute)
    assert grader.grade(handed_in(content, tmp_path)).states["4.2"] == "right"
    assert len(executed) == 2 and hidden not in executed[0] and hidden in executed[1]


def test_what_is_all_right_is_not_executed_again_because_of_a_lost_file(grader, tmp_path, monkeypatch):
    given = {number: (find_exercise(number), answers_to(number).reference) for number in make.OPEN}
    reports = {number: report(exercise, answer if exercise.kind == "function" else answer(), grader.seed)
               for number, (exercise, answer) in given.items()}
    told = [{"exercise": number, "report": said} for number, said in reports.items()]
    told += [{"cell": 9, "error": "FileNotFoundError"}, {"done": True}]
    executed = []
    monkeypatch.setattr(grader, "lessons", [LESSON])
    monkeypatch.setattr(grader, "_execute", lambda steps, *_: executed.append(steps) or (told, "itself"))
    whole = json.dumps({"cells": [make.code(cell.source, cell.id) for cell in LESSON.cells]}).encode()
    assert grader.grade(handed_in(whole, tmp_path)).states == make.RIGHT
    assert len(executed) == 1


def test_the_page_names_every_exercise_whose_right_outputs_are_the_same_for_all_inputs():
    """A hand-in that tampers with its own process, or recites the usual results, would pass there."""
    def outputs(exercise, seed):
        answers, inputs = Solved(exercise, answers_to(exercise.id)), exercise.probes(torch.Generator().manual_seed(seed))
        gives = [answers.gives("right", i, given) for i, given in enumerate(inputs)]
        parts = [value for one in gives for value in one.values()]
        return [value if isinstance(value, str) else repr(value.tolist()) for value in parts]

    same = [exercise.id for exercise in list_exercises() if exercise.kind == "function"
            and all(outputs(exercise, 0) == outputs(exercise, seed) for seed in (5, 6, 7))]
    page = (ROOT / "notebooks" / "for_instructors.md").read_text(encoding="utf-8")
    assert f"the same for all inputs ({', '.join(same)})" in page


# which exercises there are


def test_the_course_says_which_exercises_there_are(tmp_path):
    def found(content):
        hand_in = handed_in(content, tmp_path)
        lesson = lesson_of(hand_in, LESSONS)
        steps, missing = steps_of(hand_in, lesson)
        return lesson.number, sorted({number for step in steps for number in step.exercises}), missing

    every = sorted(make.OPEN)
    assert found(make.edited()) == ("04", every, [])
    deleted = make.changed(lambda notebook: notebook["cells"].__delitem__(slice(4, None)))
    assert found(deleted) == ("04", ["4.1", "4.2"], ["4.3", "4.4", "4.5", "4.6", "4.7"])
    without_ids = make.changed(lambda notebook: [cell.pop("id") for cell in notebook["cells"]] and None)
    assert found(without_ids) == ("04", every, [])
    colab = make.changed(make.as_in_colab)
    assert found(colab) == ("04", every, [])
    assert found(make.edited({"4.2": "", "4.3": 'exercise("99.9").check(1)'})) == ("04", every, [])
    cell = {"cell_type": "code", "input": ["exercise('4.2').check(", "f)"]}
    old = {"nbformat": 3, "worksheets": [{"cells": [cell]}]}
    assert found(json.dumps(old).encode()) == ("04", ["4.2"], ["4.1", "4.3", "4.4", "4.5", "4.6", "4.7"])


def test_each_of_the_courses_notebooks_is_known_by_its_cells_and_not_by_its_name(tmp_path):
    for lesson in LESSONS:
        hand_in = HandIn(tmp_path / "01_raw_text.ipynb", b"x", lesson.cells)
        assert lesson_of(hand_in, LESSONS) is lesson
        assert {name for _, name in lesson.exercises.values()} - {""}
    unknown = HandIn(tmp_path / "04_attention.ipynb", b"x", (Cell("a", "print(1)"), Cell("setup", "1")))
    assert lesson_of(unknown, LESSONS) is None
    renamed = Grade(HandIn(Path("12_comparing_models.ipynb"), b"x", LESSON.cells), LESSON, make.RIGHT, ())
    assert line_of(renamed, MINUTES) == "12_comparing_models.ipynb (04_attention): 7 of 7 right (115 of 115 minutes)"


# what is wrong with a file


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A folder with everything that is no notebook."""
    folder = tmp_path_factory.mktemp("broken")
    kind = "Files that are no notebooks"
    found = [one for one in forged(folder) if one.kind == kind and isinstance(one.expected, str)]
    for one in found:
        one.make(folder / one.name) if one.make else (folder / one.name).write_bytes(one.content)
    return folder, {one.name: one.expected for one in found}


def test_what_is_no_notebook_gets_one_line_that_says_why(broken):
    folder, expected = broken
    read = {hand_in.path.name: hand_in for hand_in in grade.hand_ins_in([folder])}
    assert read.keys() == expected.keys() and len(read) > 15
    for name, words in expected.items():
        trouble = read[name].trouble or ("one of the course's notebooks" if lesson_of(read[name], LESSONS) is None else "")
        assert words in trouble, name
        line = line_of(Grade(read[name], None, {}, (trouble,)), MINUTES)
        assert line.isprintable() and "cannot be graded" in line and " of 5 right" not in line.partition('": cannot')[2]


def test_names_break_neither_lines_nor_tables(tmp_path):
    names = ["=1+1", "+A1", "-2", "@SUM(1)", " =1", "a\nb", "\x1b[2K", "\u202egp.ipynb", "4: 5 of 5 right", "\udce9",
             'a"b,c', "\t=1"]
    grades = [Grade(HandIn(Path(name), b"x"), LESSON, make.OPEN | {"4.1": "right"}, ("=cmd",)) for name in names]
    table = table_of(grades, MINUTES)
    rows = list(csv.DictReader(table.splitlines()))
    assert len(rows) == len(names) == len(table.splitlines()) - 1
    for row in rows:
        assert row["file"].isprintable() and row["file"].strip()[0] not in "=+-@" and row["remarks"][0] == "'"
        assert (row["exercise 4.1"], row["right"], row["minutes"], row["of minutes"]) == ("right", "1", "10", "115")
    for name in names:
        assert shown(name).isprintable() and (": " not in name or shown(name)[0] == '"')


# what a hand-in may do


def test_a_loop_costs_one_limit_and_what_was_reached_counts_and_nothing_is_left_running(grader, tmp_path, monkeypatch):
    token = f"left-behind-{os.getpid()}"
    code = f"import time; '{token}'; time.sleep(999)"
    loop = "import time\nwhile True:\n    try: print(time.sleep(0.01))\n    except BaseException: pass"
    content = make.edited({"4.2": make.MINE + make.CHECK, "4.4": loop}, first=f"""
        import os, sys
        from subprocess import Popen
        Popen([sys.executable, "-c", {code!r}])
        if os.name == "posix":
            quiet = ["sh", "-c", 'setsid env -i "$0" -c "$1" & exit', sys.executable, {code!r}]
            Popen(quiet, start_new_session=True, env={{}})""")
    monkeypatch.setattr(grader, "seconds", grader.patience)
    endings, run = [], contained.run
    monkeypatch.setattr(contained, "run", lambda *given: endings.append(run(*given)) or endings[-1])
    found = grader.grade(handed_in(content, tmp_path))
    assert [ended.how for ended in endings] == ["time"]                     # it is executed once, and stopped
    assert found.states == make.OPEN | {"4.2": "right"} | dict.fromkeys(("4.4", "4.5", "4.6", "4.7"), "not reached")
    assert f"stopped after {grader.patience:g} seconds" in found.remarks
    assert not processes_with(token)
    monkeypatch.undo()
    one_right = handed_in(make.with_4_2(make.MINE, make.CHECK), tmp_path, "next.ipynb")
    assert grader.grade(one_right).states == make.GOOD                     # and the next one is graded as ever


def test_whoever_ends_the_process_gets_a_sentence_and_no_credit_for_it(grader, tmp_path):
    check = '\nexercise("4.4").check(decoder_mask)'
    content = make.with_4_2(make.MINE, make.CHECK, changes={
        "4.1": "import sys\nsys.exit(0)", "4.4": "def decoder_mask(*_): __import__('os')._exit(0)" + check, "4.5": "exit()"})
    found = grader.grade(handed_in(content, tmp_path))
    assert found.states == make.GOOD | {"4.1": "not reached", "4.4": "wrong", "4.5": "open"}
    assert set(found.remarks) == {"SystemExit in the cell of 4.1", "4.4: its answer ended the process, or ran for too long"}


def attack(folder: Path) -> bytes:
    """A hand-in that rewrites its neighbour and the course that it runs on, reads the solutions on this disk, and dies."""
    solutions = inspect.getsourcefile(answers_to("4.2").reference)
    return make.edited({
        "4.1": "open(f'/proc/{os.getppid()}/environ').close()\nexercise('4.1').check(None)",
        "4.2": f"import runpy\nexercise('4.2').check(runpy.run_path({solutions!r})['scaled_attention'])",
        "4.3": f"open({str(folder / 'neighbour.ipynb')!r}, 'w').write('gone')",
        "4.4": "import course_utils.claims as claims\nopen(claims.__file__, 'w').write('gone')",
        "4.5": "import os\nos._exit(0)"}, first="import os\nif hasattr(os, 'fork'): os.fork()")


def oddly_right() -> bytes:
    """A hand-in whose answers are all right, and oddly written; its first cell fails where it is graded."""
    content = make.edited(right=True, last="masked_attention = None", changes={
        "4.1": 'exercise("4.1").check("0,105; 0,776; 0,105; 0,014")',
        "4.2": "%%capture\n" + make.MINE.replace("    return", '    print("…", end=" ")\n    return') + make.CHECK,
        "4.4": make.source_of("4.4", right=True).replace("exercise(", "# exercise(").replace("= #", "= decoder_mask  #"),
        "4.5": "%matplotlib qt\n" + make.source_of("4.5", right=True).replace("exercise(", "1 / 0\nexercise(")})
    notebook = json.loads(content)
    make.lose_an_import(notebook)
    return json.dumps(notebook).encode()


def test_right_answers_count_however_oddly_written_and_what_a_neighbour_changes_is_reported(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "handed in"
    folder.mkdir()
    handed_in(attack(folder), folder, "attack.ipynb")
    handed_in(oddly_right(), folder, "neighbour.ipynb")
    monkeypatch.setattr(sys, "argv", ["grading", str(folder), "--trust", "--csv", str(tmp_path / "grades.csv")])
    assert grade.main() == 1
    printed = capsys.readouterr().out
    first, second = [line for line in printed.splitlines() if line.startswith(str(folder))]
    assert "changed: " in first and "neighbour.ipynb" in first and "its copy of the course (1 file)" in first
    assert "1 of 7 right" in first and "4.5 not reached" in first and "its process died before the end" in first
    assert second.endswith("neighbour.ipynb (04_attention): 7 of 7 right (115 of 115 minutes)")
    assert "run with your rights" in printed and "--seed" in printed
    rows = list(csv.DictReader((tmp_path / "grades.csv").open(encoding="utf-8")))
    assert [row["right"] for row in rows][1] == "7" and "neighbour" in rows[0]["remarks"]


@in_containers
def test_in_a_container_a_hand_in_reaches_no_file_but_its_own(grader, tmp_path):
    assert grader.shut_in
    neighbour = handed_in(make.edited(right=True), tmp_path, "neighbour.ipynb")
    handed_in(attack(tmp_path), tmp_path, "attack.ipynb")
    watched = Watched([tmp_path, grader.edition])
    found = grader.grade(read_hand_in(tmp_path / "attack.ipynb"))
    assert found.states == dict.fromkeys(make.OPEN, "not reached") | {"4.1": "open"}
    assert set(found.remarks) == {"FileNotFoundError in the cells of 4.2, 4.3", "OSError in the cell of 4.4",
                                  "its process died before the end"}
    assert watched.changes() == [] and read_hand_in(neighbour.path) == neighbour


def test_without_a_container_somebody_must_say_that_hand_ins_may_run_with_their_rights(tmp_path, monkeypatch, capsys):
    handed_in(make.edited(first=f"open({str(tmp_path / 'run')!r}, 'w')"), tmp_path)
    monkeypatch.setattr(grade.shutil, "which", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["grading", str(tmp_path)])
    assert grade.main() == 2 and not (tmp_path / "run").exists()
    printed = capsys.readouterr()
    assert "your rights" in printed.err and "--trust" in printed.err and not printed.out


@in_containers
def test_in_a_container_there_is_no_network_and_no_other_process(grader, tmp_path):
    assert grader.shut_in
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""
import os, socket
print(len([name for name in os.listdir("/proc") if name.isdigit()]) < 4)
print(socket.socket().connect_ex({server.getsockname()!r}) != 0)"""
        command = contained.in_container(grade._readable(), str(tmp_path)) + [sys.executable, "-c", code]
        ended = contained.run(command, b"", dict(os.environ), tmp_path, seconds=60, most=1000)
    assert ended.output.split() == [b"True", b"True"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere what has left its session is not found")
def test_without_a_container_what_has_left_its_session_is_killed(tmp_path):
    token = f"on-its-own-{os.getpid()}"
    code = f"""
import subprocess, sys
quiet = ["sh", "-c", 'setsid env -i "$0" -c "$1" & exit', sys.executable, "import time; '{token}'; time.sleep(999)"]
subprocess.Popen(quiet, start_new_session=True, env={{}}).wait()
print("done")"""
    ended = contained.run([sys.executable, "-c", code], b"", dict(os.environ), tmp_path, seconds=60, most=1000)
    assert ended.output == b"done\n" and not processes_with(token)


@pytest.mark.parametrize("code", ["print(1)", "print('x' * 10**5)", "import time; time.sleep(60)"])
def test_a_program_that_has_ended_leaves_no_pipe_open(code, tmp_path):
    gc.collect()                                        # what other tests have left
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        contained.run([sys.executable, "-c", code], b"", dict(os.environ), tmp_path, seconds=10, most=1000)
        gc.collect()
    assert [str(one.message) for one in said] == []


def test_a_program_that_writes_without_end_is_stopped(tmp_path):
    code = "import sys\nwhile True: sys.stdout.write('x' * 10000)"
    ended = contained.run([sys.executable, "-c", code], b"", dict(os.environ), tmp_path, seconds=30, most=10**6)
    assert ended.how == "too much" and len(ended.output) == 10**6


@pytest.mark.skipif(os.name != "posix", reason="Windows ends a process without asking it")
def test_a_grading_that_is_told_to_end_kills_what_it_has_started(tmp_path):
    token = f"still-there-{os.getpid()}"
    code = f"import os, signal, time; '{token}'; os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)"
    with pytest.raises(SystemExit) as ended:
        contained.run([sys.executable, "-c", code], b"", dict(os.environ), tmp_path, seconds=50, most=100)
    assert ended.value.code == 128 + signal.SIGTERM and not processes_with(token)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


# the command


def test_the_command_says_what_is_wrong_with_what_it_was_told(tmp_path, monkeypatch, capsys):
    cases = (((tmp_path,), "no notebooks in"), ((tmp_path / "none",), "there is no"),
             ((tmp_path, "--timeout", "0"), "expected seconds"), ((tmp_path, "--csv", tmp_path), "it is a folder; expected"),
             ((tmp_path, "--csv", os.devnull), "it is a device; expected a file in a folder that exists"))
    for arguments, said in cases:
        monkeypatch.setattr(sys, "argv", ["grading", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            grade.main()
        assert said in f"{ended.value.code}{capsys.readouterr().err}"


def test_a_grade_says_which_mistake_it_was():
    exercise = find_exercise("4.2")
    told = [{"exercise": "4.2", "report": report(exercise, answers_to("4.2").mutants["no-scaling"], 7)}]
    states, verdicts = {"4.2": "not reached"}, {}
    Grader._take(type("Graded", (), {"seed": 7, "_judged": Grader._judged})(), told, [Step("", {"4.2": ""})], states, [], {},
                 verdicts)
    assert states == {"4.2": "wrong"} and verdicts["4.2"].names == ("no-scaling",)


def test_the_line_has_a_mistakes_name_and_the_table_its_words(grader, tmp_path, monkeypatch):
    exercise = find_exercise("4.2")
    mistake = answers_to("4.2").mutants["no-scaling"]
    told = [{"exercise": "4.2", "report": report(exercise, mistake, grader.seed)}, {"done": 1}]
    monkeypatch.setattr(grader, "_execute", lambda *_: (told, "itself"))
    found = grader.grade(handed_in(make.edited(), tmp_path))
    assert "4.2 wrong (no-scaling)" in line_of(found, MINUTES)
    row = next(csv.DictReader(table_of([found], MINUTES).splitlines()))
    assert row["exercise 4.2"] == "wrong" and row["remarks"].startswith("4.2: ") and "√d_k" in row["remarks"]
