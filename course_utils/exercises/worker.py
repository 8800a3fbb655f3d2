"""The process in which a learner's functions run: `python -m course_utils.exercises.worker`, started by `workers`.

It reads requests from its standard input (a line of JSON, then a function pickled by the learner's own kernel) and
answers in lines of JSON: what the function prints, where it is at the moment, whether it asks for input, each run (see
`wire`). It ends when its input is closed, when it has been idle for half an hour, when its parent ends it, and after a
function that has changed it (see `Surroundings`), so that the next one finds everything as it should be.

Does: run one function after another, tell which line is running. Does not: judge, read anything but its parent's requests,
or stop a function: the parent ends the whole process.
"""

import faulthandler
import gc
import io
import json
import os
import pickle
import signal
import sys
import threading
import time
import types
import warnings

from course_utils.exercises import say
from course_utils.exercises.clock import TICK, calls_of, is_learners, place_of

IDLE = 1800.0                                           # seconds without a request after which it ends
LONGEST = 600.0                                         # of processor time for one request, if nobody ends it sooner
SILENT = 1.0                                            # seconds without a look from Python after which faulthandler looks
# packages in which nothing may be replaced; of torch not all, since some parts of it replace others when they're imported
WATCHED = ("builtins", "math", "random", "json", "copy", "re", "itertools", "functools", "operator", "collections", "time",
           "io", "base64", "inspect", "dis", "contextlib", "linecache", "threading", "warnings", "pickle", "string", "types",
           "statistics", "heapq", "bisect", "numpy", "course_utils", "course_exercises", "torch.nn", "torch.optim",
           "torch.linalg", "torch.random", "torch.functional", "torch.autograd", "torch._tensor",
           "torch.utils.data")                          # and what is in them
WHOLE = ("builtins", "math", "numpy", "torch", "torch.nn.functional")   # of these, constants count as well


def main() -> None:
    """Answer requests until there are no more."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):                               # what is printed past sys.stdout must not get among the answers
        os.dup2(nowhere, stream)
    nothing = os.fdopen(nowhere, "w")
    dumps = json.JSONEncoder(allow_nan=False).encode    # an answer may replace those in the module
    loads = json.JSONDecoder().decode

    one_at_a_time = threading.Lock()

    def send(**frame) -> None:
        line = dumps(frame).encode() + b"\n"
        with one_at_a_time:
            answers.write(line)

    def ask() -> str | None:
        send(asks=True)
        return loads(requests.readline().decode())["line"]

    import torch

    from course_utils.exercises import wire
    from course_utils.exercises.catalogue import find_exercise
    from course_utils.exercises.running import Run, failure, load_forbidden, runs_of

    torch.set_num_threads(1)                            # so that processor time is the time that it takes
    watch = Watch(send)
    surroundings, environment = Surroundings(), dict(os.environ)
    send(ready=True)
    while True:
        faulthandler.dump_traceback_later(IDLE, exit=True, file=nothing)        # a clock that needs no lock of Python's
        line = requests.readline()
        if not line:
            return
        asked = loads(line.decode())
        body = requests.read(asked["size"])
        limit_processor_time(LONGEST)
        sys.path[:], sys.stdin = asked["path"], Asking(ask)
        os.environ.clear()                              # what the function before has set; libraries set some, too
        os.environ.update(environment)
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        watch.begin()
        try:
            os.chdir(asked["folder"])
            exercise = find_exercise(asked["exercise"]) if asked["exercise"] else None
            load_forbidden(exercise.forbidden if exercise else ())
            surroundings.extend()
            exercise, answer = (exercise, pickle.loads(body)) if exercise else pickle.loads(body)
        except BaseException as error:                  # from the learner's own kernel, which started this process
            watch.end()
            send(unreadable=f"{type(error).__name__}: {error}"[:300])
            continue
        send(begun=True)
        try:
            for run in runs_of(exercise, answer, asked["seed"], lambda text: send(printed=text)):
                send(run=wire.encode_run(run))
        except KeyboardInterrupt as error:
            send(run=wire.encode_run(Run(error=failure(error))))
        watch.end()
        changed = surroundings.changed()
        send(done=True, changed=changed)
        if changed:
            os._exit(0)


class Asking(io.TextIOBase):
    """A standard input that asks whoever checks; EOFError where nobody can be asked."""

    def __init__(self, ask):
        self._ask = ask

    def readable(self) -> bool:
        return True

    def readline(self, size: int = -1) -> str:
        """One line; input() has shown its prompt by then."""
        line = self._ask()
        if line is None:
            raise EOFError(say.NOBODY)
        return f"{line}\n"

    def read(self, size: int = -1) -> str:
        return self.readline()


class Watch:
    """Tells every TICK where the main thread is (see `clock.Place`), from `begin` to `end`.

    A call in C may keep all other threads waiting. Then faulthandler writes the stack, to the process's standard error.
    """

    def __init__(self, send):
        self._send, self._stacks, self._main = send, os.dup(2), threading.main_thread().ident
        self._lock, self._on = threading.Lock(), False
        self._wake = threading.Event()
        threading.Thread(target=self._work, args=(time.sleep, sys._current_frames), daemon=True).start()

    def begin(self) -> None:
        with self._lock:
            self._on = True
            faulthandler.dump_traceback_later(SILENT, repeat=True, file=self._stacks)
        self._wake.set()

    def end(self) -> None:
        with self._lock:
            self._on = False
            faulthandler.cancel_dump_traceback_later()
        self._wake.clear()

    def _work(self, sleep, frames) -> None:
        parent = os.getppid()
        try:
            while os.getppid() == parent:               # a parent that was killed can't end this process
                self._wake.wait(5)
                sleep(TICK)
                with self._lock:
                    if self._on:
                        faulthandler.dump_traceback_later(SILENT, repeat=True, file=self._stacks)
                        self._send(at=place_of(calls_of(frames().get(self._main))))
        except OSError:                                 # nor can it be told anything
            pass
        os._exit(0)


def limit_processor_time(seconds: float) -> None:
    """Let the system end this process once it has had a processor for so many seconds more (not on Windows).

    Its parent ends it much sooner. But if the parent is killed while a call in C keeps all threads here waiting, nobody else
    is left to do it.
    """
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        limit = int(time.process_time() + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    except (ImportError, ValueError, OSError):
        pass


class Surroundings:
    """What a function finds around it: the contents of modules and classes, settings, threads, child processes."""

    def __init__(self):
        self._threads = threading.active_count()
        self._kept: list[tuple[dict, dict]] = []        # the contents of a module or class: now, and as they were
        self._classes: list[tuple] = []                 # to notice what is added: it hides what a class inherits
        self._functions: list[tuple] = []
        self._seen: set[str] = set()
        self._modules: dict[str, object] = {}
        self.extend()

    def extend(self) -> None:
        """Take in the modules that have been imported since, and the settings as they are now."""
        for name in sys.modules.keys() - self._seen:
            self._seen.add(name)
            module = sys.modules[name]
            if (name == "torch" or f"{name}.".startswith(tuple(f"{one}." for one in WATCHED))) and isinstance(
                    module, types.ModuleType):
                self._modules[name] = module
                self._take_in(name, module)
        self._settings = _settings()

    def _take_in(self, name: str, module) -> None:
        now = vars(module)
        kept = dict(now) if name in WHOLE else {key: value for key, value in now.items() if callable(value)}
        self._kept.append((now, kept))
        for value in kept.values():
            if isinstance(value, type) and value.__module__ == name and name != "builtins":
                self._kept.append((vars(value), _methods(value)))
                self._classes.append((value, len(vars(value)), set(_methods(value))))
            if isinstance(value, types.FunctionType):
                self._functions.append((value, value.__code__, value.__defaults__, value.__kwdefaults__))

    def changed(self) -> str:
        """What is no longer as it was, '' if all is."""
        try:
            if threading.active_count() > self._threads or _has_children():
                return "something still runs"
            if any(sys.modules.get(name) is not module for name, module in self._modules.items()):
                return "sys.modules"
            missing = object()
            for now, kept in self._kept:
                for key, value in kept.items():
                    if now.get(key, missing) is not value and not _wraps(now.get(key), value):
                        return key
            for one, size, names in self._classes:
                if len(vars(one)) != size and (added := _methods(one).keys() - names):
                    return min(added)
            for function, *parts in self._functions:
                now = function.__code__, function.__defaults__, function.__kwdefaults__
                if any(a is not b for a, b in zip(parts, now)):
                    return function.__name__
            now = _settings()
            return next((name for name, value in self._settings.items() if now[name] != value), "")
        except BaseException as error:                  # so much is changed that it can't be looked at
            return type(error).__name__


def _methods(one: type) -> dict:
    return {name: part for name, part in vars(one).items() if hasattr(part, "__get__")}


def _wraps(new, old) -> bool:
    """Whether a library has put a function of its own around another, as torch._dynamo does when it's imported."""
    code = getattr(new, "__code__", None)
    return code is not None and getattr(new, "__wrapped__", None) is old and not is_learners(code.co_filename)


def _settings() -> dict:
    """Settings that hold for all of a process. What `running.usual_settings` puts back isn't among them."""
    import numpy as np
    import torch
    from torch.nn.modules import module

    return {
        "recursion limit": sys.getrecursionlimit(), "trace": (sys.gettrace(), sys.getprofile()), "gc": gc.isenabled(),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "builtins": len(vars(sys.modules["builtins"])), "numpy": (np.geterr(), np.get_printoptions()),
        "default": (torch.get_default_dtype(), torch.get_default_device()), "threads": torch.get_num_threads(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()),
        "deterministic": (torch.are_deterministic_algorithms_enabled(),
                          torch.is_deterministic_algorithms_warn_only_enabled()),
        "autocast": torch.is_autocast_enabled("cpu"), "modes": torch._C._len_torch_function_stack(),
        "tiny": bool(torch.tensor([1e-310], dtype=torch.float64) * 1 == 0),
        "hooks": [len(hooks) for name, hooks in vars(module).items()
                  if name.startswith("_global_") and hasattr(hooks, "__len__")],
    }


def _has_children() -> bool:
    """Whether a process that was started here still runs. One that has ended is seen off."""
    if not hasattr(os, "waitpid") or os.name == "nt":
        import psutil

        return bool(psutil.Process().children())
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    except ChildProcessError:
        return False


if __name__ == "__main__":
    main()
