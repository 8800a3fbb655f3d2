"""Runs a learner's function on an exercise's inputs and says in plain data what happened.

`runs_of(exercise, answer, seed)` is the one place where that is done. It happens in the worker process (see `worker`);
`run_once` runs the course's own answers, too. `judge` asks a `Side` for `describe()` and `runs(seed)` and for nothing else:
that of a check is `workers.InWorker`, and a `Recorded` one has been run elsewhere.

Does: describe what was handed over; copies of the inputs, random state put back, prints caught, the learner's line; notice
calls of the function that the exercise asks for, whatever name they go by (a copy of its text is not noticed). Does not:
judge what came out (see `judge`), or stop a function that never ends (see `workers`).
"""

import contextlib
import copy
import dis
import inspect
import io
import linecache
import pkgutil
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from course_utils.exercises.clock import is_learners
from course_utils.exercises.compare import Unreadable, article, as_tuple, plain_data
from course_utils.exercises.definitions import halves_of


def written_out(forbidden: tuple[str, ...], observe: Callable) -> Callable:
    """`observe`, with a TypeError if a forbidden function is called meanwhile; names such as "torch.nn.functional.relu"."""
    if not forbidden:
        return observe

    def look(answer, *inputs):
        with _calls_noted({name.rpartition(".")[2] for name in forbidden}) as noted:
            output = observe(answer, *inputs)
        for name in forbidden:
            if _called(noted, name.rpartition(".")[2]) and noted & _marks(name):
                raise TypeError(f"expected the steps written out, but your function calls {name}, which does the exercise "
                                "for you. Write it with simpler operations")
        return output
    return look


OF_A_CLASS = ("__init__", "forward")                     # what's called of a class: it's made, and it's used


@contextlib.contextmanager
def _calls_noted(names: set[str]):
    """A set that fills with a mark for each call of a function of these names, or of a module's making or forward."""
    noted: set = set()

    def note_a_call(frame, event, called):              # `clock` knows it by this name
        if event == "call" and (frame.f_code.co_name in names or frame.f_code.co_name in OF_A_CLASS):
            noted.add(_mark(frame.f_code))
        elif event == "c_call" and called.__name__ in names and not isinstance(called.__self__, torch.Tensor):
            noted.add(called.__name__)

    before = sys.getprofile()
    sys.setprofile(note_a_call)
    try:
        yield noted
    finally:
        sys.setprofile(before)


def _called(noted: set, last: str) -> bool:
    """Whether a function of that name was called, or, of a class, any making or forward."""
    return bool({last, *OF_A_CLASS} & {mark if isinstance(mark, str) else mark[0] for mark in noted})


def _mark(code) -> tuple:
    """What a function of the course and the same function defined in a notebook have in common."""
    return code.co_name, code.co_code, code.co_names


def _marks(name: str) -> set:
    """The marks that a call of a function, a method or a class leaves; none if its module was never loaded."""
    module, _, last = name.rpartition(".")
    if module.partition(".")[0] not in sys.modules:
        return set()
    thing = pkgutil.resolve_name(name)
    if inspect.isclass(thing):
        methods = {name: getattr(thing, name) for name in OF_A_CLASS}
        return {_mark(method.__code__) for name, method in methods.items() if method is not getattr(torch.nn.Module, name)}
    codes = [function.__code__ for function in (thing, inspect.unwrap(thing)) if hasattr(function, "__code__")]
    return {_mark(code) for code in codes} or {last}


def load_forbidden(forbidden: tuple[str, ...]) -> None:
    """Import what `written_out` compares calls with, so that no answer's clock or changes meet it."""
    for name in forbidden:
        _marks(name)


MOST_PRINTED = 10_000                                   # letters that one run may print


class TimeIsUp(BaseException):
    """Raised inside a function that runs in the kernel when it's stopped; no `except Exception` catches it."""


class Failure(NamedTuple):
    """An error that a function raised: the `type`, its message, and the learner's own `line` with its `file` and number.

    `ours` is true if the exercise's own look at the answer raised it, before or after the learner's lines. Four types are
    no errors of Python's: 'ProcessDied', 'CannotTravel', and a `clock.Stop`'s 'NeverEnds', 'Waits' and 'CheckFailed'.
    """

    type: str
    message: str
    line: str = ""
    file: str = ""
    number: int = 0
    ours: bool = False


class Run(NamedTuple):
    """What came of one set of inputs, as `compare.plain_data`: the `output` or the `error`.

    `changed` holds the inputs (by position, from 0) that the function changed in place, `printed` what it printed.
    """

    output: object = None
    error: Failure | None = None
    changed: tuple[int, ...] = ()
    printed: str = ""


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
    """A side that has been run elsewhere, such as in the process that executes a hand-in (see `wire`)."""

    handed: Handed
    recorded: list[Run]

    def describe(self) -> Handed:
        """What was handed over there."""
        return self.handed

    def runs(self, seed: int) -> list[Run]:
        """What it did there; whoever recorded it knows on which seed."""
        return self.recorded


class Printed(io.TextIOBase):
    """Takes what a function prints, up to MOST_PRINTED letters, and hands it on to `tell`."""

    def __init__(self, tell: Callable[[str], None]):
        self.tell, self.left = tell, MOST_PRINTED

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Stays open, whoever closes sys.stdout."""

    def write(self, text: str) -> int:
        if self.left > 0:
            shown = text[: self.left]
            self.left -= len(text)
            self.tell(shown if self.left > 0 else f"{shown}\n… (the rest of what it prints is left out)\n")
        return len(text)


def runs_of(exercise, answer: Callable, seed: int, tell: Callable[[str], None] | None = None) -> Iterator[Run]:
    """One `Run` for each set of inputs that an exercise makes of a seed; none after the first that raised an error.

    `tell` gets what the function prints as it prints it. A function that doesn't end isn't stopped here.
    """
    with usual_settings():
        probes = exercise.probes(torch.Generator().manual_seed(seed))
    printed: list[str] = []
    out = Printed(lambda text: (printed.append(text), tell and tell(text)))
    for inputs in probes:
        printed.clear()
        with contextlib.redirect_stdout(out):
            result = run_once(exercise, answer, inputs)
        yield result._replace(printed="".join(printed))
        if result.error is not None:
            return


def run_once(exercise, answer: Callable, inputs: tuple) -> Run:
    """Run an exercise's look at an answer (see `definitions.Exercise`) on copies of one set of inputs; never raises.

    Random numbers are drawn from the same state at each check.
    """
    observe = written_out(exercise.forbidden, exercise.observe or (lambda function, *given: function(*given)))
    answer = returning_tuples(by_name(answer, names_of_inputs(exercise)))
    with usual_settings():
        given, before = copy.deepcopy(inputs), copy.deepcopy(inputs)
        random.seed(0)
        np.random.seed(0)
        torch.default_generator.manual_seed(0)          # torch.manual_seed notes a traceback for each kind of device
        if torch.cuda.is_initialized():                 # that isn't in use, which takes longer than most answers
            torch.cuda.manual_seed_all(0)
        try:
            output = plain_data(observe(answer, *given))
        except TimeIsUp:
            raise
        except KeyboardInterrupt as error:
            if threading.current_thread() is threading.main_thread():
                raise                                   # somebody interrupts the check
            return Run(error=failure(error))
        except BaseException as error:                  # SystemExit too: the learner's code leaves, a check does not
            return Run(error=failure(error))
        return Run(output, changed=tuple(i for i, (old, new) in enumerate(zip(before, given)) if not unchanged(old, new)))


@contextlib.contextmanager
def usual_settings():
    """PyTorch as it is when it has just been imported, with its random states, NumPy's and Python's put back afterwards.

    A learner's notebook may have changed the default type, the default device or whether gradients are recorded.
    """
    states = random.getstate(), np.random.get_state(), torch.get_rng_state(), torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            if torch.get_default_device().type != "cpu":
                stack.enter_context(torch.device("cpu"))
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        torch.set_default_dtype(states[3])


def names_of_inputs(exercise) -> list[str]:
    """What an exercise calls its inputs, in order: the parameters of its look at the answer, else of its signature."""
    if exercise.observe is not None:
        return list(inspect.signature(exercise.observe).parameters)[1:]
    given = halves_of(exercise.signature)[0].partition("(")[2]
    while re.search(r"\([^()]*\)", given):              # shapes and remarks: 'x (batch, length)'
        given = re.sub(r"\([^()]*\)", "", given)
    return re.findall(r"(?:^|[,;])\s*([A-Za-z_]\w*)(?=\s*(?:[,;)]|$))", given)


def by_name(answer: Callable, names: list[str]) -> Callable:
    """The function itself, or, if some of its parameters can be given by name only, one that hands these over by name."""
    try:
        only = {name for name, one in inspect.signature(answer).parameters.items() if one.kind is one.KEYWORD_ONLY}
    except Exception:                                   # an object that does not say what it takes
        return answer
    if not only & set(names):
        return answer

    def called(*given):
        named = {name: value for name, value in zip(names, given) if name in only}
        rest = [value for i, value in enumerate(given) if i >= len(names) or names[i] not in only]
        return answer(*rest, **named)

    return called


def returning_tuples(answer: Callable) -> Callable:
    """The function, but what it returns as dict values, a generator, map or zip comes as a tuple; a class as it is."""
    if inspect.isclass(answer):
        return answer

    def the_answer(*given, **named):                    # the name by which `clock` knows that the learner's code begins
        return as_tuple(answer(*given, **named))

    return the_answer


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


def unchanged(old, new) -> bool:
    """Whether an input still holds what it held: tensors, arrays, lists and dicts of them; others are not looked into."""
    if isinstance(old, torch.nn.Module):
        return True                                     # an exercise may ask to train it
    if isinstance(old, torch.Tensor):
        cut_off = old.requires_grad and not new.requires_grad              # by detach_() or requires_grad_(False)
        return not cut_off and old.shape == new.shape and torch.equal(torch.nan_to_num(old), torch.nan_to_num(new))
    if isinstance(old, np.ndarray):
        return np.array_equal(old, new)
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(unchanged(old[key], new[key]) for key in old)
    if isinstance(old, (list, tuple)):
        return len(old) == len(new) and all(unchanged(a, b) for a, b in zip(old, new))
    if isinstance(old, (str, int, float, bool, set, type(None))):
        return old == new
    return True


def failure(error: BaseException) -> Failure:
    """An error in plain data, with the learner's line: the last one outside the course's code and the libraries."""
    place, step = None, error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if is_learners(file):
            place = file, step.tb_lineno
        step = step.tb_next
    try:
        message = str(error)[:2000]
    except Exception:
        message = ""
    if place is None:
        return Failure(type(error).__name__, message, ours=True)
    return Failure(type(error).__name__, message, linecache.getline(*place).strip(), *place)
