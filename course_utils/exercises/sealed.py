"""What an answer is compared with: the course's answers, or, of a number or an order in an edition without solutions, a key.

In such an edition each file of records is one encoded file (n04.sealed for n04.py), from which `folder` reads and imports
it: any seed can be judged, and no line of an answer stands in it as text. That doesn't keep it secret: whoever decodes it
has the functions. Of numbers and orders not even that is in it, only fingerprints, which say whether an answer is right.

Does: compare. Does not: judge (see `judge`), find records (see `folder`), or seal them (`course_tools.teaching.sealing`
does).
"""

import math
from pathlib import Path
from typing import NamedTuple

import torch

from course_utils.exercises.compare import NotNumbers, close, named_tensors
from course_utils.exercises.definitions import Answers, Exercise
from course_utils.exercises.folder import unsealed
from course_utils.exercises.running import run_once
from course_utils.files import sha256
from course_utils.files.paths import EXERCISES

RIGHT = "right"                                         # the solution among the names of the mistakes
NEAR = 8                                                # a number within so many tolerances is close, though not right

_outcomes: dict = {}                                    # what solutions and mistakes gave on the inputs of a seed


class Solved:
    """An exercise with its solutions at hand: any input can be tried. What they give on the inputs of a `seed` is kept."""

    def __init__(self, exercise: Exercise, answers: Answers, seed: int | None = None):
        self.exercise, self.answers, self.seed = exercise, answers, seed
        self.names = tuple(answers.mutants)

    def gives(self, name: str, index: int, inputs: tuple) -> dict | None:
        """What the solution ('right') or a known mistake gives on an input, as named tensors; None if it fails there."""
        if self.seed is None:
            return self._compute(name, inputs)
        place = (id(self.answers), name, self.seed, index)
        if place not in _outcomes:                      # the answers are kept too, so that no other object gets their id
            _outcomes[place] = (self.answers, self._compute(name, inputs))
        return _outcomes[place][1]

    def _compute(self, name: str, inputs: tuple) -> dict | None:
        answer = self.answers.reference if name == RIGHT else self.answers.mutants[name]
        result = run_once(self.exercise, answer, inputs)
        if result.error is not None:
            return None
        try:
            return named_tensors(result.output)
        except NotNumbers:
            return None

    def form(self) -> dict:
        """The parts and shapes of the right value, without the value."""
        return {part: torch.full_like(tensor, math.nan) for part, tensor in self.value(RIGHT).items()}

    def right_value(self) -> dict | None:
        """The right value, as named tensors."""
        return self.value(RIGHT)

    def is_value(self, name: str, got: dict) -> bool:
        """Whether `got` is the right value, or the one that a known mistake leads to."""
        return close(got, self.value(name), self.exercise.tolerance)

    def is_near(self, got: dict) -> bool:
        """Whether `got` is nearly the right value."""
        return close(got, self.value(RIGHT), NEAR * self.exercise.tolerance)

    def broken_rule(self, order: list[str]) -> str | None:
        """The name of the first rule 'one line before another' that an order breaks."""
        place = {letter: i for i, letter in enumerate(order)}
        broken = (name for before, after, name in self.answers.reference() if place[before] > place[after])
        return next(broken, None)

    def value(self, name: str) -> dict:
        return named_tensors((self.answers.reference if name == RIGHT else self.answers.mutants[name])())


class Key(NamedTuple):
    """The same for a number or an order in an edition without solutions: `entry` holds its fingerprints."""

    exercise: Exercise
    entry: dict

    @property
    def names(self) -> tuple[str, ...]:
        """The known mistakes."""
        return tuple(name for name in self.entry.get("gives", {}) if name != RIGHT)

    def form(self) -> dict:
        """As `Solved.form`."""
        return {part: torch.full(shape, math.nan, dtype=torch.float64) for part, shape in self.entry["form"].items()}

    def right_value(self) -> None:
        """Not known: fingerprints say whether a number is the right one, and not which one is."""

    def is_value(self, name: str, got: dict) -> bool:
        """As `Solved.is_value`, exact to a fortieth of the tolerance."""
        return self._has_fingerprints(self.entry["gives"][name], name, got)

    def is_near(self, got: dict) -> bool:
        """As `Solved.is_near`."""
        return self._has_fingerprints(self.entry["near"], "near", got)

    def _has_fingerprints(self, sealed: dict, name: str, got: dict) -> bool:
        if sealed.keys() != got.keys():
            return False
        for part, (shape, step, fingerprints) in sealed.items():
            value = got[part]
            if isinstance(value, str) or list(value.shape) != shape:
                return False
            for i, number in enumerate(value.flatten().tolist()):
                if not math.isfinite(number):
                    return False
                if fingerprint_of(self.exercise.id, name, part, i, round(number / step[i])) not in fingerprints[i]:
                    return False
        return True

    def broken_rule(self, order: list[str]) -> str | None:
        """As `Solved.broken_rule`."""
        for name, sealed in self.entry["rules"]:
            for i, early in enumerate(order):
                if any(fingerprint_of(self.exercise.id, late, early) == sealed for late in order[i + 1:]):
                    return name
        return None


def read_key(exercise: Exercise, folder: Path = EXERCISES) -> Key:
    """The key of an exercise. Raises FileNotFoundError where the edition has neither solutions nor keys."""
    entry = unsealed(folder, f"n{exercise.notebook}")["keys"].get(exercise.id)
    if entry is None:
        raise FileNotFoundError(f"this copy of the course has neither the solution nor a key for exercise {exercise.id}; "
                                "unpack it again")
    return Key(exercise, entry)


def fingerprint_of(*parts) -> str:
    """A fingerprint of ten hexadecimal digits."""
    return sha256("\0".join(map(str, parts)).encode())[:10]
