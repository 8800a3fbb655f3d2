"""Runs a learner's function in a separate process, so that anything can be stopped; `InWorker` is the side that does it.

The process starts in the background at the first `exercise(…)` and serves all checks of a kernel. It is never forked,
because a fork hangs once PyTorch has used two threads. If a check exceeds its time limit, or somebody interrupts it, the
whole process is killed and a new one started. On a busy machine, which gives the process less than a processor, a check that
is still at work gets up to four times its limit.

A function is sent with cloudpickle, together with the globals that it uses. Its changes to them stay in the other
process: a list that it appends to doesn't change here. Its inputs, its prints and the line of an error do come back.

Does: start, feed and end the process; fall back on a thread for a function that can't be sent. Does not: judge.
"""

import atexit
import contextlib
import inspect
import io
import json
import linecache
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import types
from collections import ChainMap
from pathlib import Path

import cloudpickle
import psutil

from course_utils.exercises import wire
from course_utils.exercises.running import LIBRARIES, Failure, Run
from course_utils.exercises.sides import SECONDS, Handed, InThread, Side, described
from course_utils.files.paths import ROOT
from course_utils.files.switches import is_on

STARTING = 60.0                                         # seconds for a process to be ready, on a busy machine
PATIENCE = 4.0                                          # limits that a check may take where others have the processor
LARGEST = 200_000_000                                   # bytes of a function with all that it uses
PROGRAM = [sys.executable, "-m", "course_utils.exercises.worker"]


class CannotTravel(Exception):
    """A function that can't be run in another process; the message says why."""


class Worker:
    """One worker process and the frames that came from it."""

    def __init__(self):
        known = os.environ.get("PYTHONPATH")
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{known}" if known else str(ROOT)}
        self.process = subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        cwd=ROOT, env=environment, start_new_session=True,      # no Ctrl-C of the kernel's
                                        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0))
        self.owner, self.is_ready = os.getpid(), False
        self.frames: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(ValueError, OSError):  # closed by `end`, or a line that was cut off
            for line in self.process.stdout:
                self.frames.put(json.loads(line))
        self.frames.put({"gone": True})

    def next_frame(self, until: float) -> dict | None:
        """The next thing it says, or None if it says nothing until a moment of time.monotonic()."""
        while True:
            left = until - time.monotonic()
            try:
                return self.frames.get(timeout=min(0.5, max(0.0, left)))        # Windows can't interrupt a longer wait
            except queue.Empty:
                if left <= 0:
                    return None

    def wait_until_ready(self) -> None:
        """Wait for the process to have started. Raises CannotTravel if it doesn't."""
        if self.is_ready:
            return
        if "ready" not in (self.next_frame(time.monotonic() + STARTING) or {}):
            raise CannotTravel("the process for checks doesn't start")
        self.is_ready = True

    def send(self, request: dict, body: bytes) -> None:
        """Hand over a request and a pickled function. Raises OSError if the process is gone."""
        self.process.stdin.write(json.dumps({**request, "size": len(body)}).encode() + b"\n" + body)
        self.process.stdin.flush()

    def processor_seconds(self) -> float:
        """How long it has had a processor since it started; 0 if it's gone."""
        try:
            times = psutil.Process(self.process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return times.user + times.system

    def is_kept_waiting(self) -> bool:
        """Whether it wants to go on and the machine is what keeps it waiting: it neither sleeps nor has ended."""
        try:
            return psutil.Process(self.process.pid).status() in (
                psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP, psutil.STATUS_STOPPED)
        except psutil.Error:
            return False

    def end(self) -> None:
        """End the process, whatever it is doing and whatever it has started, and wait until it is gone."""
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()


_worker: Worker | None = None
_one_at_a_time = threading.RLock()


def wanted() -> bool:
    """Whether checks run in a separate process: yes, unless COURSE_WORKER=0."""
    return is_on("COURSE_WORKER", unset=True)


def start() -> None:
    """Start the process in the background if it isn't running; if that fails, the first check says so."""
    global _worker
    with _one_at_a_time, contextlib.suppress(OSError):
        if _worker is None or _worker.owner != os.getpid() or _worker.process.poll() is not None:
            stop()                                      # one that ended by itself has left its pipes open
            _worker = Worker()


def stop() -> None:
    """End the process, if there is one."""
    global _worker
    with _one_at_a_time:
        if _worker is not None and _worker.owner == os.getpid():
            _worker.end()
        _worker = None


atexit.register(stop)


class InWorker(Side):
    """A side whose function runs in the worker process, or in a thread (see `sides.InThread`) if it cannot travel there."""

    def __init__(self, exercise, answer, seconds: float = SECONDS):
        self.exercise, self.answer, self.seconds = exercise, answer, seconds

    def describe(self) -> Handed:
        """What was handed over."""
        return described(self.answer)

    def runs(self, seed: int) -> list[Run]:
        """What it does there; prints what it prints."""
        try:
            runs = self._runs_there(seed)
        except CannotTravel as why:
            print(f"Your function runs in this kernel instead of a separate process ({why}). If it never finishes, it may "
                  "be impossible to stop: interrupt the kernel, or restart it.")
            runs = InThread(self.exercise, self.answer, self.seconds).runs(seed)
        print("".join(run.printed for run in runs), end="")
        return runs

    def _runs_there(self, seed: int) -> list[Run]:
        body = packed(self.answer)
        request = {"exercise": self.exercise.id, "seed": seed, "at_most": PATIENCE * self.seconds, "path": sys.path,
                   "folder": _folder()}
        with _one_at_a_time:
            for _ in range(2):                          # it may have gone to sleep for good since the last check
                start()
                if _worker is None:
                    raise CannotTravel("a separate process can't be started")
                try:
                    found = self._ask(_worker, request, body)
                except BaseException:                   # an interrupt above all: leave nothing running
                    stop()
                    start()
                    raise
                if found is not None:
                    return found
                stop()
        raise CannotTravel("the process for checks doesn't respond")

    def _ask(self, worker: Worker, request: dict, body: bytes) -> list[Run] | None:
        """The runs; None if the process had ended before the function began."""
        worker.wait_until_ready()
        try:
            worker.send(request, body)
        except OSError:
            return None
        runs: list[Run] = []
        printed: list[str] = []
        begun, until, at_most, used = False, time.monotonic() + STARTING, 0.0, 0.0
        while True:
            frame = worker.next_frame(until)
            if (frame is None and time.monotonic() < at_most and worker.is_kept_waiting()
                    and worker.processor_seconds() - used < self.seconds):
                until = time.monotonic() + self.seconds / 8
                continue
            if frame is None or ("gone" in frame and begun):
                stop()
                start()
                over = Run(printed="".join(printed))
                gone = Failure("ProcessDied", "", ours=True)
                return [*runs, over._replace(timed_out=True) if frame is None else over._replace(error=gone)]
            if "begun" in frame:
                begun, until, at_most = True, time.monotonic() + self.seconds, time.monotonic() + PATIENCE * self.seconds
                used = worker.processor_seconds()
            elif "printed" in frame:
                printed.append(frame["printed"])
            elif "run" in frame:
                runs.append(_with_line(_decoded(frame["run"])))
                printed.clear()
            elif "unreadable" in frame:
                raise CannotTravel(frame["unreadable"])
            else:
                return runs if "done" in frame else None


def _code_with_its_file(code: types.CodeType) -> tuple:
    """How cloudpickle writes code, but with the name of its file. Some versions write '<dynamic-code>' for every file, and
    then nobody can look up the line of an error."""
    make, parts = cloudpickle.Pickler.dispatch_table[types.CodeType](code)
    return make, tuple(code.co_filename if part == "<dynamic-code>" else part for part in parts)


class Packer(cloudpickle.Pickler):
    """Writes functions as cloudpickle does; their code still knows its file."""

    dispatch_table = ChainMap({types.CodeType: _code_with_its_file}, cloudpickle.Pickler.dispatch_table)


def packed(answer) -> bytes:
    """A function with all that it uses. Raises CannotTravel."""
    known = answer if inspect.isroutine(answer) or isinstance(answer, type) else type(answer)
    module = sys.modules.get(known.__module__ or "")
    file = getattr(module, "__file__", None) or ""
    own = bool(file) and module.__name__ != "__main__" and not str(Path(file).resolve()).startswith(LIBRARIES)
    try:
        if own:                                         # a learner's file may have been edited since the worker read it
            cloudpickle.register_pickle_by_value(module)
        written = io.BytesIO()
        Packer(written).dump(answer)
        body = written.getvalue()
    except Exception as error:
        raise CannotTravel(f"{type(error).__name__}: {error}".splitlines()[0][:120]) from None
    finally:
        if own:
            cloudpickle.unregister_pickle_by_value(module)
    if len(body) > LARGEST:
        raise CannotTravel(f"what it uses takes {len(body) / 1e6:.0f} MB")
    return body


def _decoded(frame: dict) -> Run:
    """A run that came from the worker; a failure if the function has spoilt what comes from there."""
    try:
        return wire.decode_run(frame)
    except (KeyError, TypeError, ValueError, AttributeError):
        return Run(error=Failure("ProcessDied", "", ours=True))


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:                                     # it has been deleted
        return str(ROOT)


def _with_line(run: Run) -> Run:
    """A run whose error has its line: a cell's source is known in this kernel only."""
    if run.error is None or run.error.line or not run.error.file:
        return run
    return run._replace(error=run.error._replace(line=linecache.getline(run.error.file, run.error.number).strip()))
