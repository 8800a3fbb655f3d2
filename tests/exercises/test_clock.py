"""The clock of a check: what counts, and whose line it was."""

import pytest
import torch

from course_utils.exercises import clock
from course_utils.exercises.clock import Clock, Place, calls_in, is_learners, place_of

COURSE, TORCH, CELL = clock.COURSE[1] + "n14/probes.py", torch.__file__, "cell-7"
ENTRANCE = (clock.COURSE[0] + "exercises/running.py", 200, clock.ENTRANCE)


@pytest.mark.parametrize("calls, place", [
    ([(CELL, 3, "f"), ENTRANCE, (COURSE, 9, "observe")], Place(True, True, CELL, 3)),
    ([(TORCH, 1, "g"), (CELL, 3, "f"), ENTRANCE], Place(True, True, CELL, 3)),              # done for the learner
    ([(TORCH, 1, "g"), (COURSE, 9, "observe")], Place(False, False)),                       # done for the check
    ([(COURSE, 9, "model"), (CELL, 3, "f"), ENTRANCE], Place(False, True, CELL, 3)),        # a function that it was given
    ([(TORCH, 1, "g"), ENTRANCE, (COURSE, 9, "observe")], Place(True, True)),               # a library's function as answer
    ([(COURSE, 9, "relu"), ENTRANCE, (COURSE, 9, "observe")], Place(False, True)),          # one of ours as answer
    ([(COURSE, 9, clock.LISTENER), (CELL, 3, "f"), ENTRANCE], Place(True, True, CELL, 3)),
    ([], Place(False, False)),
])
def test_a_line_is_the_learners_if_the_innermost_code_that_is_no_librarys_is(calls, place):
    assert place_of(calls) == place


def test_a_cell_is_the_learners_and_python_itself_is_not():
    assert is_learners("/tmp/ipykernel_1/2.py") and is_learners("<string>")
    assert not is_learners("<frozen importlib._bootstrap>") and not is_learners(pytest.__file__)
    assert not is_learners(clock.__file__)


def test_a_stack_that_faulthandler_writes_is_read():
    dump = ["Thread 0x1 (most recent call first):\n", '  File "cell-7", line 3 in f\n', "  ...\n"]
    assert calls_in(dump) == [("cell-7", 3, "f")]


YOURS, GIVEN, OURS = Place(True, True, CELL, 3), Place(False, True, CELL, 3), Place(False, False)


def stopped(ticks, seconds=8.0, waiting=120.0, monkeypatch=None):
    """The first stop among ticks (place, used, sleeps), a fifth of a second apart."""
    now = [0.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])
    one, found = Clock(seconds, waiting), None
    for tick in ticks:
        now[0] += clock.TICK
        found = found or one.tick(*tick)
    return found


def test_only_processor_time_in_the_learners_lines_counts(monkeypatch):
    assert stopped([(YOURS, i * 0.2, False) for i in range(100)], monkeypatch=monkeypatch).why == "NeverEnds"
    assert stopped([(YOURS, 7.9, False)] * 10_000, monkeypatch=monkeypatch) is None         # kept waiting for half an hour
    assert stopped([(OURS, i * 0.2, False) for i in range(1000)], monkeypatch=monkeypatch) is None
    assert stopped([(GIVEN, i * 0.2, False) for i in range(1000)], monkeypatch=monkeypatch).why == "NeverEnds"
    assert stopped([(OURS, i * 1.0, False) for i in range(1000)], monkeypatch=monkeypatch).why == "CheckFailed"
    assert stopped([(None, i * 0.2, False) for i in range(100)], monkeypatch=monkeypatch).why == "NeverEnds"


def test_sleep_counts_in_seconds_and_gets_another_name(monkeypatch):
    found = stopped([(YOURS, 1.0, True)] * 700, monkeypatch=monkeypatch)
    assert found == ("Waits", CELL, 3)
    assert stopped([(YOURS, 1.0, True)] * 500, monkeypatch=monkeypatch) is None
    assert stopped([(OURS, 1.0, True)] * 700, monkeypatch=monkeypatch).why == "CheckFailed"
