"""Notices when an answer calls the function that the exercise asks for, instead of writing it.

Does: watch the calls of one run, whatever name they go by. Does not: read the answer's source (a copy of the function's
text is not noticed), or decide what an exercise forbids (see notebooks/exercises).
"""

import contextlib
import inspect
import pkgutil
import sys
from collections.abc import Callable

import torch


def written_out(forbidden: tuple[str, ...], observe: Callable) -> Callable:
    """`observe`, with a TypeError if a forbidden function is called meanwhile; names such as "torch.nn.functional.relu"."""
    if not forbidden:
        return observe

    def look(answer, *inputs):
        with _calls_noted({name.rpartition(".")[2] for name in forbidden}) as noted:
            output = observe(answer, *inputs)
        for name in forbidden:
            if _called(noted, name.rpartition(".")[2]) and noted & _marks(name):      # _marks may have to import a module
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
