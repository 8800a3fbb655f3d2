"""Commands that start processes of their own: what they say, and that nothing of them is left."""

import os
import sys
import time

import pytest

from course_utils.files.child_processes import run_in_group

CHILD = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_command_gives_its_status_and_what_it_said():
    assert run_in_group([sys.executable, "-c", "import os; print(os.environ['HELLO'])"], 30, HELLO="you") == (0, "you\n")
    status, said = run_in_group([sys.executable, "-c", "raise SystemExit('no')"], 30)
    assert status == 1 and said == "no\n"


def test_a_command_that_cannot_start_says_why():
    status, said = run_in_group(["no-such-command-here"], 5)
    assert status is None and "no-such-command-here" in said


@pytest.mark.skipif(not os.path.exists("/proc"), reason="asks /proc which processes there are")
@pytest.mark.parametrize("ending", ["print(p.pid, flush=True); time.sleep(60)", "print(p.pid, flush=True)"],
                         ids=["past its time", "by itself, its child not"])
def test_no_process_is_left_whether_the_command_ends_or_not(ending, tmp_path):
    note = tmp_path / "pid"
    code = CHILD + f"open({str(note)!r}, 'w').write(str(p.pid)); " + ending.replace("print(p.pid, flush=True)", "p.pid")
    status, said = run_in_group([sys.executable, "-c", code], 2)
    assert status is None
    for _ in range(50):
        if not alive(int(note.read_text())):
            break
        time.sleep(0.1)
    assert not alive(int(note.read_text()))
