"""Runs a learner's function safely: a time limit, copies of the inputs, random state put back.

Does: turn whatever happens into a `Run`. Does not: judge what came out (see `engine`).
"""

import contextlib
import copy
import ctypes
import random
import threading
import traceback
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

SECONDS = 4.0  # for all probes of one check


class TimeIsUp(BaseException):
    """Raised inside the learner's function when the time is over; no `except Exception` stops it."""


class Run(NamedTuple):
    """`output`, or the `error` that the function raised with the line it happened on, or `timed_out`.

    `changed` names the inputs (by position, from 0) that the function changed in place.
    """

    output: object = None
    error: BaseException | None = None
    line: str = ""
    timed_out: bool = False
    changed: tuple[int, ...] = ()


@contextlib.contextmanager
def random_state_kept():
    """Put the random states of Python, NumPy and torch, and torch's default type, back as they were."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state(), torch.get_default_dtype()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
        torch.set_default_dtype(states[3])


def run(function: Callable, inputs: tuple, seconds: float = SECONDS, seed: int = 0) -> Run:
    """Call function(*inputs) on copies of the inputs, for at most `seconds`; never raises.

    The call happens in a thread of its own, so that an endless loop can be stopped from outside. `seed` sets torch's
    random numbers for the call, so that a function that draws some draws the same ones at each check.
    """
    given = copy.deepcopy(inputs)
    before = copy.deepcopy(inputs)
    box: dict = {}

    def work():
        try:
            torch.manual_seed(seed)
            box["output"] = function(*given)
        except TimeIsUp:
            box["timed_out"] = True
        except BaseException as error:  # SystemExit and KeyboardInterrupt of the learner's code as well
            box["error"], box["line"] = error, _line_of(error)

    with random_state_kept():
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(seconds)
        for _ in range(20):                             # a bare `except:` may swallow it: ask again
            if not thread.is_alive():
                break
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(TimeIsUp))
            thread.join(0.1)
            box["timed_out"] = True
    if box.get("timed_out"):
        return Run(timed_out=True)
    if "error" in box:
        return Run(error=box["error"], line=box["line"])
    changed = tuple(i for i, (old, new) in enumerate(zip(before, given)) if not same(old, new))
    return Run(box.get("output"), changed=changed)


def observed(exercise, answer: Callable, inputs: tuple) -> Run:
    """Run an exercise's look at an answer (see `definitions.Exercise`) on one input."""
    observe = exercise.observe or (lambda function, *given: function(*given))
    return run(lambda *given: observe(answer, *given), inputs)


def same(old, new) -> bool:
    """Whether an input still holds what it held: tensors, arrays, lists and dicts of them; others are not looked into."""
    if isinstance(old, torch.nn.Module):
        return True                                     # an exercise may ask to train it
    if isinstance(old, torch.Tensor):
        return old.shape == new.shape and torch.equal(torch.nan_to_num(old), torch.nan_to_num(new))
    if isinstance(old, np.ndarray):
        return np.array_equal(old, new)
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, (list, tuple)):
        return len(old) == len(new) and all(same(a, b) for a, b in zip(old, new))
    if isinstance(old, (str, int, float, bool, set, type(None))):
        return old == new
    return True


def _line_of(error: BaseException) -> str:
    """The learner's line that failed: the last frame outside the course's code and the libraries."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and "course_utils" not in frame.filename]
    return (own[-1].line or "").strip() if own else ""
