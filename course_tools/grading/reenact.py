"""Executes the cells of one hand-in in this process, and writes what its answers do: a line of JSON at a time.

The task comes on standard input: {"steps": [{"source": …, "instead": …, "exercises": {number: name}}, …], "seed": …,
"memory": …, "file": …}, both in bytes. Where a cell of the course was changed and fails,
`instead` is executed after it, so that a lost import doesn't cost the exercises that follow. After a cell with exercises
these are looked at: what was last handed to `exercise(number).check` in the cell, and what the cell left under the name
that the course checks there. Lines:

    {"cell": 3, "error": "NameError"}                   how a cell ended; "" without an error
    {"looking": "4.2"}                                  what was begun; if nothing follows, it has ended the process
    {"exercise": "4.2", "report": "…"}                  what an answer does (see `wire`)
    {"done": true}

All of it may be forged by the hand-in, which shares the process. It is outputs and no verdict: whoever forges it must know
the right outputs for inputs that were drawn for this grading. No solution is at hand here.

Does: execute and record. Does not: judge (see `grading`), or stop what never ends (see `contained`).
"""

import contextlib
import json
import os
import signal
import sys

MISSING = object()
AT_MOST = 60.0                                          # seconds of processor time here to look at one answer
LONGEST = 5_000_000                                     # letters in a report; right ones have some thousands


def main() -> None:
    """Carry the task out."""
    sys.path.pop(0)                                     # this file's folder: it is executed by its path
    task = json.loads(sys.stdin.buffer.read())
    told = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    _limit(RLIMIT_DATA=task["memory"], RLIMIT_FSIZE=task["file"], RLIMIT_CORE=0)

    from course_utils.exercises import exercise

    shell, me, handed = _shell(), os.getpid(), {}
    out = open(os.devnull, "w", encoding="utf-8")

    def tell(**line):
        told.write(json.dumps(line).encode() + b"\n")
        told.flush()

    def check(self, answer=None, *others, **named):
        handed[self._exercise.id] = answer

    exercise.check, exercise.use = check, lambda self, answer=None: answer
    for i, step in enumerate(task["steps"]):
        handed.clear()
        sys.stdout = sys.stderr = out                   # a cell before may have closed it
        before = {name: shell.user_ns.get(name, MISSING) for name in step["exercises"].values()}
        error = _error_of(shell, step["source"])
        if error and step["instead"]:
            error = _error_of(shell, step["instead"])
        if os.getpid() != me:                           # a copy of this process, made by the cell
            os._exit(0)
        tell(cell=i, error=error)
        for number, name in step["exercises"].items():
            left = shell.user_ns.get(name, MISSING)
            for answer in _answers(handed.get(number, MISSING), MISSING if left is before[name] else left):
                tell(looking=number)
                with _deadline():
                    report = _report(number, answer, task["seed"])
                tell(exercise=number, report=report)
    tell(done=True)
    os._exit(0)


def _limit(**most: int) -> None:
    """Limit what this process may use, where the system can (Windows can't)."""
    try:
        import resource
    except ImportError:
        return
    for name, limit in most.items():
        with contextlib.suppress(AttributeError, OSError, ValueError):         # not known here, or lower already
            resource.setrlimit(getattr(resource, name), (limit, limit))


@contextlib.contextmanager
def _deadline():
    """End this process when it works too long on looking at an answer. What the answer itself does is stopped by `workers`,
    in a process of its own; here an object may have ideas about being looked at."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.signal(signal.SIGPROF, signal.SIG_DFL)       # the system's way of ending it: Python may be busy
    signal.setitimer(signal.ITIMER_PROF, AT_MOST)       # processor time: a busy machine changes no grade
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _answers(checked, left) -> list:
    """The answers to look at: one that was checked, one that stands under the course's name; None only if it is alone."""
    answers = [checked] if checked is left else [checked, left]
    answers = [answer for answer in answers if answer is not MISSING]
    return [answer for answer in answers if answer is not None] or answers[:1]


def _report(number: str, answer, seed: int) -> str:
    """What an answer does on the inputs of a seed; "" for what can't be told."""
    from course_utils.exercises.catalogue import find_exercise
    from course_utils.exercises.wire import report_of
    from course_utils.exercises.workers import InWorker

    exercise = find_exercise(number)
    try:
        told = report_of(exercise, InWorker(exercise, answer), seed)
    except BaseException:                               # an object that raises when it is looked at
        return ""
    return told if len(told) < LONGEST else ""


def _shell():
    """What executes cells: IPython, with its magics, and without a history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Shell(InteractiveShell):
        def enable_gui(self, gui=None):
            pass

        def enable_matplotlib(self, gui=None):          # %matplotlib qt: there are no windows here
            return None, "agg"

        def ask_exit(self):                             # exit() in a cell doesn't end the notebook
            pass

        def _tee(self, channel):                        # IPython would keep all that is printed
            return contextlib.nullcontext()

    settings = Config()
    settings.HistoryManager.enabled = False
    return Shell.instance(config=settings)


def _error_of(shell, source: str) -> str:
    """Execute a cell; the name of the error that stopped it, or ''."""
    try:
        result = shell.run_cell(source)
        error = result.error_before_exec or result.error_in_exec
    except BaseException as escaped:                    # an error in the machinery itself: not the end of the others
        error = escaped
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    return type(error).__name__ if error is not None else ""


if __name__ == "__main__":
    main()
