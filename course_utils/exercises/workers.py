"""Runs a learner's function in a separate process, so that anything can be stopped; `InWorker` is the side that does it.

The process starts in the background at the first `exercise(…)` and serves all checks of a kernel. It is never forked,
because a fork hangs once PyTorch has used two threads. If a check takes too long (see `clock`), or somebody interrupts it,
the whole process is killed and a new one started. A function whose process has died gets a verdict that says so; it is never
run here instead.

A function is sent with cloudpickle, together with the globals that it uses. Its changes to them stay in the other
process: a list that it appends to doesn't change here. Its prints are shown while it runs, an input() is asked here, and the
line of an error comes back. Only a function that can't be sent runs in this process, by the same clock, and a sentence
says which global holds it up.

Does: start, feed and end the process; run here what can't be sent. Does not: judge.
"""

import _thread
import atexit
import contextlib
import functools
import inspect
import io
import json
import linecache
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import uuid
from collections import ChainMap
from pathlib import Path

import cloudpickle
import psutil

from course_utils.exercises import wire
from course_utils.exercises.catalogue import find_exercise
from course_utils.exercises.clock import (
    LIBRARIES,
    SECONDS,
    TICK,
    WAITING,
    Clock,
    Place,
    Stop,
    calls_in,
    calls_of,
    is_learners,
    place_of,
)
from course_utils.exercises.compare import article
from course_utils.exercises.running import Failure, Handed, Run, Side, TimeIsUp, described, runs_of
from course_utils.files.paths import ROOT
from course_utils.files.switches import is_on

STARTING = 60.0                                         # seconds of processor time for the process to be ready
LARGEST = 200_000_000                                   # bytes of a function with all that it uses
PROGRAM = [sys.executable, "-m", "course_utils.exercises.worker"]
ASLEEP = (psutil.STATUS_SLEEPING, psutil.STATUS_IDLE)
DIED = Run(error=Failure("ProcessDied", "", ours=True))


class CannotTravel(Exception):
    """A function that can't be run in another process; the message says why."""


class Worker:
    """One worker process and the frames that came from it."""

    def __init__(self):
        known = os.environ.get("PYTHONPATH")
        self.scratch = Path(tempfile.gettempdir()) / f"checks-{uuid.uuid4().hex}"       # made by whoever needs it
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{known}" if known else str(ROOT),
                       "COURSE_PROGRESS": str(self.scratch / "progress.json"),  # an answer doesn't mark itself as solved
                       "COURSE_WORKER": "0", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        cwd=ROOT, env=environment, start_new_session=True,      # no Ctrl-C of the kernel's
                                        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0))
        self.owner, self.is_ready, self.heard = os.getpid(), False, time.monotonic()
        self.frames: queue.SimpleQueue = queue.SimpleQueue()
        for listen in (self._listen, self._look):
            threading.Thread(target=listen, daemon=True).start()

    def _listen(self) -> None:
        """Take in what it says, until it's gone or says something that nobody understands."""
        with contextlib.suppress(ValueError, TypeError, OSError):
            for line in self.process.stdout:
                frame = json.loads(line)
                self.frames.put({**frame, "at": Place(*frame["at"])} if "at" in frame else {**frame})
        self.frames.put({"gone": True})

    def _look(self) -> None:
        """Take in the stacks that faulthandler writes; other lines don't matter."""
        dump: list[str] = []
        with contextlib.suppress(ValueError, OSError):
            for line in self.process.stderr:
                text = line.decode(errors="replace")
                dump = [*dump[-200:], text] if text.startswith("  ") else []
                if dump and text.startswith("  ...") or "_run_module_as_main" in text:      # the main thread's last line
                    self.frames.put({"at": place_of(calls_in(dump))})

    def next_frame(self, seconds: float) -> dict | None:
        """The next thing it says, or None if it says nothing for some seconds."""
        try:
            return self.frames.get(timeout=seconds)
        except queue.Empty:
            return None

    def send(self, request: dict, body: bytes = b"") -> None:
        """Hand over a request and a pickled function. Raises OSError if the process is gone."""
        self.process.stdin.write(json.dumps({**request, "size": len(body)}).encode() + b"\n" + body)
        self.process.stdin.flush()

    def processor_seconds(self, of_children: bool = True) -> float:
        """How long it and its children have had a processor since they started; 0 if it's gone."""
        try:
            own = psutil.Process(self.process.pid)
            every = [own, *own.children(recursive=True)] if of_children else [own]
            return sum(sum(one.cpu_times()[:4]) for one in every)
        except psutil.NoSuchProcess:
            return 0.0
        except (psutil.Error, OSError):                 # a hand-in that is graded sees no other process
            with contextlib.suppress(OSError, AttributeError):
                return time.clock_gettime((~self.process.pid << 3) | 2)         # Linux's clock of another process
            return 0.0

    def sleeps(self) -> bool:
        """Whether it sleeps by its own choice, so far as the system tells; otherwise, whether it gets its turn."""
        with contextlib.suppress(psutil.Error, OSError):
            if psutil.LINUX:
                return psutil.Process(self.process.pid).status() in ASLEEP
        return time.monotonic() - self.heard < 5 * TICK

    def end(self) -> None:
        """End the process, whatever it is doing and whatever it has started, and wait until it is gone."""
        started = []
        with contextlib.suppress(psutil.Error, OSError):
            started = psutil.Process(self.process.pid).children(recursive=True)
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        for one in started:
            with contextlib.suppress(psutil.Error, OSError):
                one.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


_worker: Worker | None = None
_one_at_a_time = threading.RLock()


def wanted() -> bool:
    """Whether the process for checks is started before there's a function to check: yes, unless COURSE_WORKER=0."""
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
    """A side whose function runs in the worker process, or in this one if it can't be sent there.

    `seconds` and `waiting` are the limits of its `clock.Clock`.
    """

    def __init__(self, exercise, answer, seconds: float = SECONDS, waiting: float = WAITING):
        self.exercise, self.answer, self.seconds, self.waiting = exercise, answer, seconds, waiting

    def describe(self) -> Handed:
        """What was handed over."""
        return described(self.answer)

    def runs(self, seed: int) -> list[Run]:
        """What it does there; what it prints is shown meanwhile."""
        try:
            return self._runs_there(seed)
        except CannotTravel as why:
            print(f"Your function runs in this kernel instead of a separate process: {why}. A loop that never ends is "
                  "stopped here, too, but a single call that never returns can't be: interrupt the kernel, or restart it.")
            return self._runs_here(seed)

    def _runs_there(self, seed: int) -> list[Run]:
        number, body = self._packed()
        request = {"exercise": number, "seed": seed, "path": sys.path, "folder": _folder()}
        with _one_at_a_time:
            for _ in range(2):                          # it may have gone to sleep for good since the last check
                start()
                if _worker is None:
                    raise CannotTravel("no such process can be started on this computer")
                try:
                    found = self._ask(_worker, request, body)
                except BaseException:                   # an interrupt above all: leave nothing running
                    stop()
                    start()
                    raise
                if found is not None:
                    return found
                stop()
        return [DIED]

    def _packed(self) -> tuple[str, bytes]:
        """The exercise's number and the function; an exercise that isn't in the catalogue goes with its function."""
        with contextlib.suppress(ValueError):
            if find_exercise(self.exercise.id) is self.exercise:
                return self.exercise.id, packed(self.answer)
        own = self.exercise._replace(mistakes=(), properties=(), hints=())
        return "", packed((own, self.answer))

    def _ask(self, worker: Worker, request: dict, body: bytes) -> list[Run] | None:
        """The runs; None if the process had ended before the function began."""
        if not worker.is_ready:
            worker.is_ready = "ready" in self._until(worker, Clock(STARTING))
            if not worker.is_ready:
                raise CannotTravel("that process doesn't start")
        clock = Clock(self.seconds, self.waiting, worker.processor_seconds(of_children=False))
        try:
            worker.send(request, body)
        except OSError:
            return None
        runs: list[Run] = []
        begun = False
        while True:
            frame = self._until(worker, clock)
            if "begun" in frame:
                begun = True
            elif "printed" in frame:
                print(frame["printed"], end="", flush=True)
            elif "asks" in frame:
                with contextlib.suppress(OSError):
                    worker.send({"line": _asked()})
                clock.pause()
            elif "run" in frame:
                runs.append(_with_line(_decoded(frame["run"])))
            elif "unreadable" in frame:
                raise CannotTravel(f"it can't be read there ({frame['unreadable']})")
            elif "done" in frame:
                if frame.get("changed"):                    # the process ends, and the next check finds a new one
                    stop()
                    start()
                return runs
            elif "stop" in frame:
                stop()
                start()
                return [*runs, _stopped(frame["stop"])]
            else:                                       # it's gone, or what it says can't be understood
                if not begun:
                    return None
                stop()
                start()
                return [*runs, DIED]

    def _until(self, worker: Worker, clock: Clock) -> dict:
        """The next frame that isn't about the time, or {"stop": …}."""
        while True:
            frame = worker.next_frame(TICK)
            if frame is not None and "at" not in frame:
                return frame
            used, place = worker.processor_seconds(), None
            if frame is not None:
                worker.heard, place = time.monotonic(), frame["at"]
            stopped = clock.tick(place, used, worker.sleeps())
            if stopped:
                return {"stop": stopped}

    def _runs_here(self, seed: int) -> list[Run]:
        """The runs in this process, by the same clock. They are stopped in the learner's own lines, so nothing of ours is
        left half done; that takes a signal, which only the main thread gets."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("a function that can't be sent to another process can be checked in the main thread only")
        found: list[Run] = []
        out = sys.stdout
        guard = Guard(Clock(self.seconds, self.waiting))
        try:
            with guard:
                for run in runs_of(self.exercise, self.answer, seed, lambda text: print(text, end="", file=out)):
                    found.append(run)
                    if guard.stopped:                   # too late to be stopped, and still too long
                        raise TimeIsUp
        except TimeIsUp:
            return [*found, _stopped(guard.stopped)]
        return found


class Guard:
    """Raises TimeIsUp in the main thread when a clock says so, as long as a line of the learner's is running.

    It takes the place of Ctrl-C, because that wakes a thread from sleep; the reader's own Ctrl-C still raises
    KeyboardInterrupt.
    """

    def __init__(self, clock: Clock):
        self.clock, self.stopped, self._over = clock, None, threading.Event()
        self._thread, self._tries, self._trace = threading.current_thread(), 0, sys.gettrace()
        self._dice = random.Random(0)                   # the usual one is the learner's

    def __enter__(self):
        self._before = signal.signal(signal.SIGINT, self._interrupted)
        self._clock = threading.Thread(target=self._watch, daemon=True)
        self._clock.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        sys.settrace(self._trace)
        self._clock.join()
        signal.signal(signal.SIGINT, self._before or signal.default_int_handler)

    def _watch(self) -> None:
        self.clock.used = _processor_seconds_of(self._thread)
        while not self.stopped and not self._over.wait(TICK):
            late = time.monotonic() - self.clock.moment > 2 * TICK          # the machine keeps us waiting
            used = _processor_seconds_of(self._thread)
            place = place_of(calls_of(sys._current_frames().get(self._thread.ident)))
            self.stopped = self.clock.tick(place, used, not late)
        while not self._over.wait(TICK / 10):
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(self._thread.ident, signal.SIGINT)
            else:
                _thread.interrupt_main()

    def _interrupted(self, number, frame) -> None:
        if not self.stopped:
            raise KeyboardInterrupt
        calls = list(calls_of(frame))
        if self._over.is_set() or not place_of(calls).inside or any(name.startswith("<frozen import") for name, *_ in calls):
            return
        self._tries += 1
        if self._tries % 2:
            raise TimeIsUp
        sys.settrace(self._traced)                      # a bare `except:` has swallowed it: try in the lines that follow
        while frame is not None:
            frame.f_trace, frame = self._traced, frame.f_back

    def _traced(self, frame, event, value):
        if is_learners(frame.f_code.co_filename) and not self._over.is_set() and self._dice.random() < 0.3:
            raise TimeIsUp
        return self._traced


def _processor_seconds_of(thread: threading.Thread) -> float:
    """The processor time of a thread; of the whole process where the system doesn't tell."""
    try:
        return time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    except (AttributeError, OSError):
        return time.process_time()


def _stopped(stop: Stop) -> Run:
    """The run that was stopped, with the line that was running."""
    return _with_line(Run(error=Failure(stop.why, "", "", stop.file, stop.number, ours=True)))


def _asked() -> str | None:
    """What somebody answers to an input() whose prompt has been shown; None where nobody can be asked."""
    try:
        return input()
    except Exception:                                   # no terminal, a notebook that is executed without a reader, a test
        return None


def _code_with_its_file(code: types.CodeType) -> tuple:
    """How cloudpickle writes code, but with the name of its file. Some versions write '<dynamic-code>' for every file, and
    then nobody can look up the line of an error."""
    make, parts = cloudpickle.Pickler.dispatch_table[types.CodeType](code)
    return make, tuple(code.co_filename if part == "<dynamic-code>" else part for part in parts)


class Packer(cloudpickle.Pickler):
    """Writes functions as cloudpickle does; their code still knows its file."""

    dispatch_table = ChainMap({types.CodeType: _code_with_its_file}, cloudpickle.Pickler.dispatch_table)


def packed(answer) -> bytes:
    """A function with all that it uses. Raises CannotTravel, which names the global that can't be sent."""
    with _own_modules_by_value(answer if isinstance(answer, tuple) else (answer,)):
        try:
            body = _written(answer)
        except Exception as error:
            function = answer[-1] if isinstance(answer, tuple) else answer
            why = _held_up(function) or _held_up(answer) or f"{type(error).__name__}: {error}".splitlines()[0][:120]
            raise CannotTravel(why) from None
    if len(body) > LARGEST:
        raise CannotTravel(f"what it uses takes {len(body) / 1e6:.0f} MB")
    return body


def _written(thing) -> bytes:
    written = io.BytesIO()
    Packer(written).dump(thing)
    return written.getvalue()


@contextlib.contextmanager
def _own_modules_by_value(things: tuple):
    """A learner's own file is sent along with its function: it may have been edited since the worker has read it."""
    every = [part for thing in things for part in (*(thing if isinstance(thing, tuple) else ()), thing)]
    functions = [part for part in every if callable(part)]
    known = [one if inspect.isroutine(one) or isinstance(one, type) else type(one) for one in functions]
    modules = {name: sys.modules.get(name) for name in (getattr(one, "__module__", None) or "" for one in known)}
    own = [module for name, module in modules.items() if name != "__main__" and (file := getattr(module, "__file__", None))
           and not str(Path(file).resolve()).startswith(LIBRARIES)
           and name not in cloudpickle.list_registry_pickle_by_value()]
    try:
        for module in own:
            cloudpickle.register_pickle_by_value(module)
        yield
    finally:
        for module in own:
            cloudpickle.unregister_pickle_by_value(module)


NAMES = {"TextIOWrapper": "an open file", "BufferedReader": "an open file", "BufferedWriter": "an open file",
         "BufferedRandom": "an open file", "FileIO": "an open file", "lock": "a lock", "RLock": "a lock"}


def _held_up(answer) -> str:
    """Which global, attribute or argument keeps a function from being sent, '' if none can be found."""
    way, thing, seen = [], answer, set()
    while id(thing) not in seen:
        seen.add(id(thing))
        found = next(((name, part) for name, part in _parts_of(thing) if not _can_be_sent(part)), None)
        if found is None:
            break
        name, thing = found
        way.append(name)
    if not way:
        return ""
    kind = NAMES.get(type(thing).__name__, article(type(thing).__name__))
    through = f" (by way of {', '.join(f'`{name}`' for name in way[:-1])})" if way[1:] else ""
    return f"it uses `{way[-1]}`, {kind}{through}, which can't be sent there"


def _can_be_sent(thing) -> bool:
    try:
        return bool(_written(thing))
    except Exception:
        return False


def _parts_of(thing) -> list[tuple[str, object]]:
    """What an object holds on to, by name: a function's globals and its closure, what a method is bound to, attributes."""
    if isinstance(thing, types.MethodType):
        return [("self", thing.__self__), (thing.__name__, thing.__func__)]
    if isinstance(thing, functools.partial):
        return [(getattr(thing.func, "__name__", "partial"), thing.func),
                *((f"argument {i + 1}", one) for i, one in enumerate(thing.args)), *thing.keywords.items()]
    if isinstance(thing, types.FunctionType):
        codes, names = [thing.__code__], set()
        for code in codes:
            names.update(code.co_names)
            codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        parts = [(name, thing.__globals__[name]) for name in sorted(names & thing.__globals__.keys())]
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or ()):
            with contextlib.suppress(ValueError):       # nothing in it yet
                parts.append((name, cell.cell_contents))
        parameters = thing.__code__.co_varnames[: thing.__code__.co_argcount]
        return [*parts, *zip(parameters[::-1], (thing.__defaults__ or ())[::-1]), *vars(thing).items()]
    if isinstance(thing, dict):
        return [(str(name)[:40], part) for name, part in thing.items()]
    if isinstance(thing, (list, tuple)):
        return [(f"element {i + 1}", part) for i, part in enumerate(thing)]
    try:
        return [(name, part) for name, part in vars(thing).items() if not name.startswith("__")]
    except TypeError:
        return []


def _decoded(frame: dict) -> Run:
    """A run that came from the worker; a failure if the function has spoilt what comes from there."""
    try:
        return wire.decode_run(frame)
    except (KeyError, TypeError, ValueError, AttributeError):
        return DIED


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
