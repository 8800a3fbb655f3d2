"""What an exercise is made of: the question, its known mistakes and properties, its answers, and the verdict.

Does: name the parts. Does not: judge (see `judge`) or fill them (see notebooks/exercises).
"""

import graphlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch


@dataclass(frozen=True)
class Case:
    """One set of inputs as the function got them, with what it gave and what is right, each as tensors by name.

    A single result is `case.answer`, and `case.expected` the right one; of several, `case.weights` is the learner's part
    "weights", and `case.right["weights"]` the right one.
    """

    inputs: tuple
    got: dict
    right: dict

    @property
    def answer(self):
        """The learner's result, if there is only one."""
        return self.got[""]

    @property
    def expected(self):
        """The right result, if there is only one."""
        return self.right[""]

    def __getattr__(self, part: str):
        if part in vars(self).get("got", ()):
            return self.got[part]
        raise AttributeError(f"the answer has no part {part!r}")


class Mistake(NamedTuple):
    """A known mistake: `seen(case)` says what was seen, with a number of the learner's; `why` it matters, where to look.

    Where `seen` is None, `diagnoses` says both.
    """

    name: str
    seen: Callable[[Case], str] | None
    why: str
    convention: bool = False  # no error, but another convention than the one that is asked for


class Property(NamedTuple):
    """What a right answer has: `fails(case)` is true if it has not, `seen(case)` then says so, `why` as for a mistake."""

    fails: Callable[[Case], object]
    seen: Callable[[Case], str]
    why: str


class Exercise(NamedTuple):
    """What is asked, and how an answer is looked at.

    `kind` is 'function', 'number' or 'order'. Of a function, `probes(generator)` makes the inputs, a list of tuples, and
    `observe(answer, *inputs)` is what is compared, by default answer(*inputs). For 'order' `lines` are the given lines by
    letter.
    """

    signature: str
    mistakes: tuple[Mistake, ...]
    properties: tuple[Property, ...]
    hints: tuple[str, ...]
    probes: Callable[[torch.Generator], list[tuple]] | None = None
    observe: Callable | None = None
    kind: str = "function"
    tolerance: float = 1e-4
    lines: tuple[str, ...] = ()
    given: str = ""  # of a repair: the known mistake that the code to be repaired makes
    not_finite: dict = {}  # what gives "NaN", "inf" or "-inf" here, and the way round it; "risk NaN" for one part alone
    follows: dict = {}  # parts made of the others: {"context": lambda case: case.weights @ case.inputs[2].double()}
    forbidden: tuple[str, ...] = ()  # what the answer may not call, such as "torch.nn.functional.layer_norm"
    id: str = ""
    notebook: str = ""  # such as "04"; this and what follows come from the exercise's cell in the notebook (see `catalogue`)
    title: str = ""
    minutes: tuple[int, int] = (0, 0)
    question: str = ""
    stub: str = ""  # the code below the question, as everyone is given it


class Answers(NamedTuple):
    """The course's answer to an exercise, and what each known mistake would write."""

    reference: Callable
    mutants: dict


class Record(NamedTuple):
    """Everything about an exercise (see `records`)."""

    exercise: Exercise
    answers: Answers


class Verdict(NamedTuple):
    """`state` is 'open', 'right', 'wrong' or 'other' (another valid convention); `names` the known mistakes that fit."""

    state: str
    names: tuple[str, ...]
    text: str


def halves_of(signature: str) -> tuple[str, str]:
    """What a signature says is given, and what is asked for ('' if nothing): an arrow inside parentheses is a part of these.

    >>> halves_of("smallest(fits (a size -> True or False), high) -> the smallest size")
    ('smallest(fits (a size -> True or False), high)', 'the smallest size')
    """
    depth = 0
    for i, letter in enumerate(signature):
        depth += (letter in "([") - (letter in ")]")
        if signature.startswith("->", i) and depth <= 0:
            return signature[:i].strip(), signature[i + 2 :].strip()
    return signature.strip(), ""


def right_order(rules: Sequence[tuple[str, str, str]]) -> str:
    """Letters in an order that keeps every rule (before, after, name); where several may come next, the first of them."""
    sorter = graphlib.TopologicalSorter()
    for before, after, _ in rules:
        sorter.add(after, before)
    sorter.prepare()
    letters = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        letters += ready
        sorter.done(*ready)
    return " ".join(letters)
