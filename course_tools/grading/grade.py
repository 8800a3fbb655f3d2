"""Grade handed-in notebooks: `python -m course_tools grade FOLDER` (`make grade FILES=FOLDER`).

All hand-ins are read before the first one is executed. Each is executed in its own process and scratch folder, on a copy
of the course without its solutions; that process only turns inputs into outputs. This program judges the outputs against
the course's solutions, on inputs that are drawn anew for each grading.

Does: execute, judge, print one line per notebook, write a table. Does not: change the notebooks or anyone's progress, or
shut hand-ins in (see `contained`).
"""

import argparse
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from course_tools.grading import contained
from course_tools.grading.hand_ins import (
    HandIn,
    Step,
    hand_ins_in,
    lesson_of,
    lessons,
    others_numbers,
    steps_of,
)
from course_tools.grading.tables import Grade, line_of, shown, table_of
from course_tools.grading.watching import Watched
from course_tools.teaching.editions import HANDED_OUT, copy_without_solutions
from course_utils.copies.notebooks import ROOT
from course_utils.exercises.catalogue import answers_to, find_exercise, list_exercises
from course_utils.exercises.definitions import Verdict
from course_utils.exercises.judge import AS_GIVEN, FAILED, SEED, judge
from course_utils.exercises.wire import read_report
from course_utils.files import other_than_a_file, write_text

STATES = ("right", "other", "wrong", "as given", "open", "not reached", "missing")           # the best first
SECONDS = 600
MEMORY, LARGEST_FILE, MOST_TOLD = 6 * 10**9, 500 * 10**6, 50 * 10**6                          # bytes
REENACT = Path(__file__).resolve().with_name("reenact.py")
COPIED = ["course_utils", "data", "notebooks/exercises", "pyproject.toml"]
PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT",
             "OMP_NUM_THREADS", "COURSE_DATA")
SYSTEM_FOLDERS = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/nix")
ENDED = "{}: its answer ended the process, or ran for too long"
SHUT_IN = "Each notebook runs in a container (bubblewrap): it sees no network, none of your files, and no solutions."
OPEN = """These notebooks run with your rights: they can read, change and delete your files, and use the network.
They can also read the course's solutions on this disk."""
ASK_FOR_TRUST = f"""{OPEN}
If you trust whoever wrote them, add --trust (make grade FILES=… TRUST=1). Otherwise install bubblewrap, on Linux:
then each runs in a container. See notebooks/for_instructors.md."""


class Grader:
    """What one grading needs: the course's notebooks and a copy of the course without solutions, in a temporary folder.

    `seed` chooses the inputs; `seconds` is the limit for one hand-in; with `trust`, hand-ins run with your rights, otherwise
    in a container. `shut_in` says whether they do; it is false where containers don't work. Use it in a `with` statement.
    """

    def __init__(self, seed: int, seconds: float = SECONDS, trust: bool = False):
        self.seed, self.seconds, self.lessons = seed, seconds, lessons()
        for exercise in list_exercises():               # read now: no hand-in can change what was read before it ran
            answers_to(exercise.id)
        self._folder = tempfile.TemporaryDirectory(prefix="grading-", ignore_cleanup_errors=True)
        self.edition = Path(self._folder.name).resolve() / "course"
        copy_without_solutions(self.edition, COPIED)
        self._copied = Watched([self.edition])
        self.shut_in = not trust and self._containers_work()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def grade(self, hand_in: HandIn) -> Grade:
        """Execute one hand-in and judge its exercises; never raises for anything that is in it."""
        if hand_in.trouble:
            return Grade(hand_in, None, {}, (hand_in.trouble,))
        lesson = lesson_of(hand_in, self.lessons)
        if lesson is None:
            return Grade(hand_in, None, {}, ("it isn't one of the course's notebooks with exercises",))
        steps, missing = steps_of(hand_in, lesson)
        states = {number: "missing" if number in missing else "not reached" for number in lesson.exercises}
        strange = others_numbers(hand_in, lesson)
        remarks, errors, verdicts = [], {}, {}
        if strange:
            remarks.append(f"not counted, because {lesson.name} doesn't have them: {', '.join(map(shown, strange[:5]))}")
        no_code = {cell.id for cell in hand_in.others} - {""}
        if silent := [number for number in missing if lesson.exercises[number][0] in no_code]:
            remarks.append(f"a raw or Markdown cell, so it isn't run: the cell of {', '.join(silent)}")
        until = time.monotonic() + self.seconds
        needed = [step for step in steps if step.needed]
        lines, how = self._told(needed, hand_in.content, until, states, remarks)
        self._take(lines, needed, states, remarks, errors, verdicts)
        lacking = any(_lacks_something(line) for line in lines) and set(states.values()) - {"right"}
        if how == "itself" and len(needed) < len(steps) and lacking:
            errors = {}
            lines, how = self._told(steps, hand_in.content, until, states, remarks)
            self._take(lines, steps, states, remarks, errors, verdicts)
        remarks += _said_of(errors, states)
        if how == "time":
            remarks.append(f"stopped after {self.seconds:g} seconds")
        elif how == "too much":
            remarks.append(f"stopped after {MOST_TOLD // 10**6} MB of answers")
        elif not any("done" in line for line in lines):
            remarks.append("its process died before the end")
        if changed := self._copied.changes():
            files = "1 file" if len(changed) == 1 else f"{len(changed)} files"
            remarks.append(f"it changed its copy of the course ({files}), which was replaced by a fresh one")
            copy_without_solutions(self.edition, COPIED)
            self._copied = Watched([self.edition])
        shown_of = {number: verdict for number, verdict in verdicts.items()
                    if verdict and verdict.state in ("wrong", "other") and states[number] != "right"}
        return Grade(hand_in, lesson, states, tuple(dict.fromkeys(remarks)),
                     {number: verdict.names for number, verdict in shown_of.items()},
                     {number: verdict.text.partition(": ")[2] for number, verdict in shown_of.items()})

    def _containers_work(self) -> bool:
        """Whether bubblewrap is installed, may make containers here, and the course works in one."""
        if not shutil.which("bwrap"):
            return False
        tried = Step("import torch, pandas, matplotlib.pyplot, course_utils.training\nopen('tried', 'w').close()", {})
        lines, _ = self._execute([tried], b"", seconds=120, shut_in=True)
        return {"cell": 0, "error": ""} in lines

    def _told(self, steps: list[Step], content: bytes, until: float, states: dict[str, str],
              remarks: list[str]) -> tuple[list[dict], str]:
        """All that a hand-in's process tells, and how it ended; it is executed again without an answer that has ended it."""
        told: list[dict] = []
        while True:
            lines, how = self._execute(steps, content, max(1.0, until - time.monotonic()))
            told += lines
            fatal = lines[-1].get("looking")
            if how != "itself" or not any(fatal in step.exercises for step in steps if isinstance(fatal, str)):
                return told, how
            states[fatal] = "wrong"
            remarks.append(ENDED.format(fatal))
            steps = [step._replace(exercises={number: name for number, name in step.exercises.items() if number != fatal})
                     for step in steps]

    def _execute(self, steps: list[Step], content: bytes, seconds: float, shut_in=None) -> tuple[list[dict], str]:
        """The lines that a hand-in's process has told, and how it ended (see `contained.Ended`)."""
        with tempfile.TemporaryDirectory(prefix="hand-in-", dir=self._folder.name, ignore_cleanup_errors=True) as name:
            scratch = Path(name).resolve()
            for folder in ("work", "home/matplotlib", "tmp", "outputs"):
                (scratch / folder).mkdir(parents=True)
            (scratch / "work" / "notebook.ipynb").write_bytes(content)
            _copy_font_list(scratch / "home" / "matplotlib")
            environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {
                "PYTHONPATH": str(self.edition), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(scratch / "home"),
                "TMPDIR": str(scratch / "tmp"), "TEMP": str(scratch / "tmp"), "TMP": str(scratch / "tmp"),
                "IPYTHONDIR": str(scratch / "home" / "ipython"), "MPLCONFIGDIR": str(scratch / "home" / "matplotlib"),
                "MPLBACKEND": "Agg", "COURSE_PROGRESS": str(scratch / "progress.json"),
                "COURSE_OUTPUTS": str(scratch / "outputs"), "COURSE_STRICT": "0", "TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1",
                "COURSE_GRADING": "1", "COURSE_WORKER": "0"}
            cells = [{"source": step.source, "instead": step.instead, "exercises": step.exercises} for step in steps]
            task = {"steps": cells, "seed": self.seed, "memory": MEMORY, "file": LARGEST_FILE}
            command = [sys.executable, str(REENACT)]
            if self.shut_in if shut_in is None else shut_in:
                command = contained.in_container([*_readable(), str(self.edition), str(REENACT)], str(scratch)) + command
            ended = contained.run(command, json.dumps(task).encode(), environment, scratch / "work", seconds, MOST_TOLD)
        lines = []
        for line in ended.output.splitlines():
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):        # cut off, or written by the hand-in itself
                continue
            if isinstance(found, dict):
                lines.append(found)
        return lines or [{}], ended.how

    def _take(self, lines: list[dict], steps: list[Step], states: dict[str, str], remarks: list[str],
              errors: dict[str, str], verdicts: dict[str, Verdict | None]) -> None:
        """Judge what a hand-in's process has told; a better state takes the place of a worse one.

        `errors` gets the name of the error that stopped an exercise's cell, {exercise: name}, `verdicts` the verdict that
        goes with a state.
        """
        tries = Counter(number for step in steps for number in step.exercises for _ in range(2))
        for line in lines:
            number = line.get("exercise")
            if "report" in line and isinstance(number, str) and number in states:
                if tries[number] == 0:                  # whoever forges lines shall not guess a number a thousand times
                    continue
                tries[number] -= 1
                state, verdict = self._judged(number, line["report"], remarks)
                if STATES.index(state) <= STATES.index(states[number]):
                    verdicts[number] = verdict
            elif type(line.get("cell")) is int and 0 <= line["cell"] < len(steps):
                error = line.get("error")
                for number in steps[line["cell"]].exercises:
                    if error == "":                     # its cell ran, and handed nothing over
                        states[number] = min(states[number], "open", key=STATES.index)
                    elif isinstance(error, str) and error.isidentifier() and len(error) < 50:
                        errors.setdefault(number, error)
                continue
            else:
                continue
            states[number] = min(states[number], state, key=STATES.index)

    def _judged(self, number: str, report, remarks: list[str]) -> tuple[str, Verdict | None]:
        """The state of an exercise, and the verdict if there is one."""
        try:
            recorded = read_report(report)
        except ValueError:
            remarks.append(f"{number}: its outputs can't be read")
            return "wrong", None
        ended = ("ProcessDied", "NeverEnds", "Waits")
        if any(run.error is not None and run.error.type in ended for run in recorded.recorded):
            remarks.append(ENDED.format(number))
        verdict = judge(find_exercise(number), answers_to(number), recorded, self.seed)
        if FAILED in verdict.text:                      # forged outputs of a form that no function gives, perhaps
            remarks.append(f"{number}: its outputs can't be judged")
            return "wrong", None
        return "as given" if AS_GIVEN in verdict.text else verdict.state, verdict


def _said_of(errors: dict[str, str], states: dict[str, str]) -> list[str]:
    """Which errors stopped the cells of exercises that weren't reached: 'SyntaxError in the cell of 4.2'."""
    stopped: dict[str, list[str]] = {}
    for number, state in states.items():
        if state == "not reached" and number in errors:
            stopped.setdefault(errors[number], []).append(number)
    return [f"{error} in the cell{'s' if numbers[1:] else ''} of {', '.join(numbers)}" for error, numbers in stopped.items()]


def _lacks_something(line: dict) -> bool:
    """Whether something was missing that a cell left out might have defined."""
    told = str(line.get("error", "")), str(line.get("report", ""))
    return any(name in text for text in told for name in ("NameError", "FileNotFoundError"))


def _readable() -> list[str]:
    """Where the system, this Python and its packages are, and none that holds the course or somebody's files."""
    named = {*SYSTEM_FOLDERS, sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), os.environ.get("COURSE_DATA", ""),
             *os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)} - {""}
    return sorted(name for name in named if not ROOT.is_relative_to(name) and not Path.home().is_relative_to(name))


def _copy_font_list(folder: Path) -> None:
    """Matplotlib looks through all fonts where it finds no list of them, which takes seconds."""
    import matplotlib

    for path in Path(matplotlib.get_cachedir()).glob("fontlist-*.json"):
        shutil.copyfile(path, folder / path.name)


def main(arguments: list[str] | None = None) -> int:
    """Read the command line; print a line a notebook. The exit status is 1 if a hand-in changed others' files, 2 if
    hand-ins would run with your rights and nobody said that they may."""
    parser = argparse.ArgumentParser(prog="make grade FILES=…", description="Grade handed-in notebooks.")
    parser.add_argument("files", nargs="+", type=Path, help="notebooks, or folders of them")
    parser.add_argument("--seed", type=int, help="random seed for the inputs (default: a new one each time)")
    parser.add_argument("--timeout", type=_seconds, default=SECONDS, metavar="SECONDS",
                        help=f"time limit for one notebook (default: {SECONDS}); what it has done by then counts")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write a table for a spreadsheet or a gradebook")
    parser.add_argument("--trust", action="store_true", help="run the notebooks with your rights, not in a container")
    chosen = parser.parse_args(arguments)
    if absent := [path for path in chosen.files if not os.path.lexists(path)]:
        sys.exit(f"there is no {', '.join(map(shown, absent))}")
    if chosen.csv and ((what := other_than_a_file(chosen.csv)) or not chosen.csv.resolve().parent.is_dir()):
        sys.exit(f"--csv {shown(chosen.csv)}: {f'it is {what}; ' if what else ''}expected a file in a folder that exists")
    seed = secrets.randbelow(10**9) + 1 if chosen.seed is None else chosen.seed
    minutes = {exercise.id: exercise.minutes[1] for exercise in list_exercises()}
    hand_ins = hand_ins_in(chosen.files)
    if not hand_ins:
        sys.exit(f"no notebooks in {', '.join(map(shown, chosen.files))}; expected files *.ipynb")
    grades, tampered = [], False
    with Grader(seed, chosen.timeout, chosen.trust) as grader:
        if not grader.shut_in and not chosen.trust:
            print(ASK_FOR_TRUST, file=sys.stderr)
            return 2
        print(f"{SHUT_IN if grader.shut_in else OPEN}\n\n{_about_seed(seed)}\n", flush=True)
        around = [*chosen.files, *(path.parent for path in chosen.files if not path.is_dir())]
        course = [ROOT / name for name in (*HANDED_OUT, "course_tools", "tests")]
        others = Watched([] if grader.shut_in else [*around, *course])
        for hand_in in hand_ins:
            grade = grader.grade(hand_in)
            if done := others.changes():
                tampered = True
                told = f"while it ran, files changed that aren't its own: {', '.join(done[:5])}"
                grade = grade._replace(remarks=(*grade.remarks, told + (f" and {len(done) - 5} more" if done[5:] else "")))
            grades.append(grade)
            print(line_of(grade, minutes), flush=True)
            if chosen.csv:
                write_text(chosen.csv, table_of(grades, minutes))
    if tampered:
        print("\nFiles changed while notebooks ran (see above). The grades are for the hand-ins as they were before.\n"
              "Look at those files before you use them again.")
    return int(tampered)


def _about_seed(seed: int) -> str:
    if seed == SEED:
        return f"Seed {SEED} draws the usual inputs, whose outputs are part of the handed-out course. Use another seed."
    return f"The inputs are drawn with random seed {seed}; --seed {seed} repeats this grading."


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 1 <= seconds <= 10**6:
        raise argparse.ArgumentTypeError(f"got {text}, expected seconds, 1 or more")
    return seconds
