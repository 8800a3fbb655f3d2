"""Answers that change the process they run in, end it, or never come back: each gets a verdict, the next answer finds
nothing of it, and the kernel is as it was. They are the frozen answers to 13.2 that may not run in this process."""

import copy
import math
import os
import string

import pytest
import torch
from frozen import made, read_rows

from course_utils import exercises
from course_utils.exercises import verdict, workers
from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.judge import judge
from course_utils.exercises.worker import Surroundings
from course_utils.exercises.workers import InWorker

EXERCISE, ANSWERS = find_exercise("13.2"), answers_to("13.2")
ROUGH = {row["answer"]: row["verdicts"]["13.2"] for row in read_rows() if row.get("alone") and "13.2" in row["verdicts"]}
FEW = ("JSONEncoder", "SIGKILL", "sys.stdin.read", "f(n + 1)\n        return f(0)", "j.judge =")


def rough(part: str) -> str:
    """The first of these answers whose code holds this."""
    return next(code for code in ROUGH if part in code)


def right(logits, token_ids, pad_id):
    return torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), token_ids[:, 1:], ignore_index=pad_id)


@pytest.fixture(scope="module")
def kernel():
    """What this process has in its modules."""
    yield Surroundings()
    workers.stop()


def other(*arguments):
    return arguments


@pytest.mark.parametrize("owner, name", [
    (torch.nn.Module, "softer"), (string.Template, "filled"), (string.Template, "safe_substitute"),
    (torch.nn.functional, "softmax"), (math, "pi"), (copy.deepcopy, "__code__")])
def test_whatever_is_replaced_or_added_is_seen_and_nothing_once_it_is_back(owner, name, monkeypatch):
    workers.stop()
    kernel = Surroundings()
    kernel.extend()
    assert kernel.changed() == ""
    with monkeypatch.context() as changes:
        changes.setattr(owner, name, other.__code__ if name == "__code__" else other, raising=False)
        assert kernel.changed() == ("deepcopy" if name == "__code__" else name)
    assert kernel.changed() == ""


@pytest.mark.parametrize("code", [*map(rough, FEW), *(pytest.param(code, marks=pytest.mark.slow) for code in ROUGH)])
def test_after_a_rough_answer_a_right_one_is_right_and_the_kernel_is_as_it_was(code, kernel):
    kernel.extend()
    found = judge(EXERCISE, ANSWERS, InWorker(EXERCISE, made(code), 2.0, 2.0))
    assert found.state == ROUGH[code].partition(":")[0], found.text
    assert verdict("13.2", right).text.startswith("✓")
    assert kernel.changed() in ("", "something still runs")     # the worker process


def test_an_answer_that_breaks_the_talk_with_its_process_never_runs_in_the_kernel(tmp_path):
    seen = tmp_path / "seen.txt"

    def answer(*given):
        import os
        with open(seen, "a") as file:
            file.write(f"{os.getpid()}\n")
        os._exit(0)

    assert "ended the Python process" in verdict("13.2", answer).text
    assert set(seen.read_text().split()).isdisjoint({str(os.getpid())}) and seen.read_text().count("\n") == 1


def test_an_answer_does_not_mark_itself_as_solved(tmp_path, monkeypatch):
    def answer(*given):
        from course_utils.exercises import record
        record.mark("exercises", "13.2", {"right": True, "seed": 0, "on": "2030-01-01"})
        return torch.ones(())

    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    exercises.exercise("13.2").check(answer)
    assert not (tmp_path / "progress.json").exists()


def test_a_process_is_replaced_that_an_answer_has_changed_and_no_other():
    def importing(*given):
        torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)    # a library's lazy import is no change
        return right(*given)

    assert verdict("13.2", right).state == "right"
    before = workers._worker.process
    assert verdict("13.2", importing).state == "right" and workers._worker.process is before
    verdict("13.2", made(rough("F.cross_entropy = ")))
    assert workers._worker.process is not before and before.poll() is not None
