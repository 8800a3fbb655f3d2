"""The learner's side of a check: what was handed over, and what it does on the inputs of a seed.

`judge` asks a side for `describe()` and `runs(seed)` and for nothing else, so it doesn't matter where the function runs:
`InThread` runs it in a thread of this process, `workers.InWorker` in a worker process, and a `Recorded` one has been run
elsewhere.

Does: describe what was handed over, run it for a limited time. Does not: judge (see `judge`).
"""

import ctypes
import dis
import inspect
import sys
import threading
from dataclasses import dataclass
from typing import NamedTuple

import torch

from course_utils.exercises.compare import Unreadable, article, plain_data
from course_utils.exercises.running import Run, TimeIsUp, runs_of, usual_settings

SECONDS = 8.0                                           # for a whole check


class Handed(NamedTuple):
    """What was handed to `check`: `kind` is 'nothing', 'stub', 'function', 'instance' (of a module) or 'value'.

    `type` is its type's name, and `value` a value as plain data.
    """

    kind: str
    type: str
    value: object = None


class Side:
    """What `judge` needs to know about an answer."""

    def describe(self) -> Handed:
        """What was handed over."""
        raise NotImplementedError

    def runs(self, seed: int) -> list[Run]:
        """What it does on the inputs of a seed: a run for each, the last one the first that came to nothing."""
        raise NotImplementedError


@dataclass(frozen=True)
class Recorded(Side):
    """A side that has been run elsewhere, such as in the kernel of a notebook that was handed in (see `wire`)."""

    handed: Handed
    recorded: list[Run]

    def describe(self) -> Handed:
        """What was handed over there."""
        return self.handed

    def runs(self, seed: int) -> list[Run]:
        """What it did there; whoever recorded it knows on which seed."""
        return self.recorded


class InThread(Side):
    """A side that runs in a thread of this process.

    An endless loop in Python is stopped after `seconds` for all inputs together. Code that holds Python's lock, such as
    sum(range(10**11)) or a pattern that backtracks, cannot be stopped here.
    """

    def __init__(self, exercise, answer, seconds: float = SECONDS):
        self.exercise, self.answer, self.seconds = exercise, answer, seconds

    def describe(self) -> Handed:
        """What was handed over."""
        return described(self.answer)

    def runs(self, seed: int) -> list[Run]:
        """What it does, run in a thread."""
        found: list[Run] = []
        printed: list[str] = []
        over = []

        def work():
            for run in runs_of(self.exercise, self.answer, seed, printed.append):
                if over:
                    return
                printed.clear()
                found.append(run)

        with usual_settings():
            if not in_time(work, self.seconds):
                over.append(True)
                return [*found, Run(timed_out=True, printed="".join(printed))]
        return found


def described(answer) -> Handed:
    """What an object is that was handed over."""
    name = type(answer).__name__
    if answer is None or answer is ...:
        return Handed("nothing", name)
    if not callable(answer):
        return Handed("value", name, plain_data(answer))
    kind = "instance" if isinstance(answer, torch.nn.Module) else "stub" if is_stub(answer) else "function"
    return Handed(kind, name, Unreadable(article(name)))


def is_stub(answer) -> bool:
    """Whether there is nothing in a function yet but `...`, `pass`, a docstring or `raise NotImplementedError`.

    A class is one if that is so of all its methods. The compiled code is asked: a function that came from another process
    has no source. Code that does nothing loads and returns None, or raises; its steps' names depend on Python's version.
    """
    if isinstance(answer, type):
        methods = [method for method in vars(answer).values() if inspect.isfunction(method)]
        return answer.__module__ != "builtins" and all(map(is_stub, methods))
    try:
        code = inspect.unwrap(answer).__code__
    except Exception:                                   # not a function in Python, or an object with ideas of its own
        return False
    idle = ("RESUME", "NOP", "COPY_FREE_VARS", "PUSH_NULL", "PRECALL", "CACHE")
    steps = [step for step in dis.get_instructions(code) if step.opname not in idle]
    if any(step.opname == "RAISE_VARARGS" for step in steps):
        return all(step.argval == "NotImplementedError" for step in steps if step.opname == "LOAD_GLOBAL") and all(
            step.opname.startswith(("LOAD_GLOBAL", "LOAD_CO", "CALL", "RAISE_")) for step in steps)
    return all(step.opname.startswith(("LOAD_CONST", "RETURN_")) and step.argval is None for step in steps)


def in_time(work, seconds: float) -> bool:
    """Whether work() ends within some seconds, in a thread of its own. If it doesn't, or the wait is interrupted, it is
    stopped."""
    done = threading.Event()                            # an interrupted `join` takes a running thread for one that ended
    thread = threading.Thread(target=_until_time_is_up, args=(work, done), daemon=True)
    out = sys.stdout
    thread.start()
    try:
        return done.wait(seconds)
    finally:
        if not done.is_set():
            _stop(thread, done)
        sys.stdout = out                                # a thread that can't be stopped has put its own there


def _until_time_is_up(work, done: threading.Event) -> None:
    try:
        work()
    except TimeIsUp:
        pass
    finally:
        done.set()


def _stop(thread: threading.Thread, done: threading.Event) -> None:
    """Raise TimeIsUp in a thread, several times if need be: a bare `except:` may swallow it."""
    shown = threading.excepthook
    threading.excepthook = lambda found: None if found.exc_type is TimeIsUp else shown(found)
    try:
        for _ in range(20):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(TimeIsUp))
            if done.wait(0.1):
                thread.join(1.0)
                break
    finally:
        threading.excepthook = shown
