"""What an answer is compared with: the course's solutions, or, in an edition without them, a key made from them.

A key holds what the solutions and the known mistakes gave on the usual inputs. Of a number or an order it holds only
fingerprints: it can say whether an answer is right, as `check` does, and shows it to nobody who happens to look into the
file. It doesn't keep it secret: whoever tries all numbers there are has each of them in seconds.

Does: compare, make keys, write and read them. Does not: judge (see `judge`) or know a solution.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

from course_utils.exercises.compare import NotNumbers, close, named_tensors
from course_utils.exercises.definitions import Answers, Exercise
from course_utils.exercises.folder import lesson_of
from course_utils.exercises.running import run_once
from course_utils.files import sha256, write_json
from course_utils.files.paths import EXERCISES

RIGHT = "right"                                         # the solution among the names of the mistakes
STEPS = 20                                              # a number's fingerprints lie this close, in shares of the tolerance
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
        return {part: torch.full_like(tensor, math.nan) for part, tensor in self._value(RIGHT).items()}

    def right_value(self) -> dict | None:
        """The right value, as named tensors."""
        return self._value(RIGHT)

    def is_value(self, name: str, got: dict) -> bool:
        """Whether `got` is the right value, or the one that a known mistake leads to."""
        return close(got, self._value(name), self.exercise.tolerance)

    def is_near(self, got: dict) -> bool:
        """Whether `got` is nearly the right value."""
        return close(got, self._value(RIGHT), NEAR * self.exercise.tolerance)

    def broken_rule(self, order: list[str]) -> str | None:
        """The name of the first rule 'one line before another' that an order breaks."""
        place = {letter: i for i, letter in enumerate(order)}
        broken = (name for before, after, name in self.answers.reference() if place[before] > place[after])
        return next(broken, None)

    def _value(self, name: str) -> dict:
        return named_tensors((self.answers.reference if name == RIGHT else self.answers.mutants[name])())


class Key(NamedTuple):
    """The same for an edition without solutions: `entry` is one exercise's part of a lesson's sealed.json."""

    exercise: Exercise
    entry: dict

    @property
    def names(self) -> tuple[str, ...]:
        """The known mistakes."""
        return tuple(name for name in self.entry.get("gives", {}) if name != RIGHT)

    def gives(self, name: str, index: int, inputs: tuple) -> dict | None:
        """As `Solved.gives`, of the usual inputs only: what was given then."""
        found = self.entry["gives"][name][index]
        return None if found is None else {part: _tensor(value) for part, value in found.items()}

    def form(self) -> dict:
        """As `Solved.form`."""
        return {part: torch.full(shape, math.nan, dtype=torch.float64) for part, shape in self.entry["form"].items()}

    def right_value(self) -> None:
        """Not known: fingerprints say whether a number is the right one, and not which one is."""

    def is_value(self, name: str, got: dict) -> bool:
        """As `Solved.is_value`, exact to a fortieth of the tolerance."""
        return self._has_fingerprints(self.entry["gives"][name], name, got)

    def is_near(self, got: dict) -> bool:
        """As `Solved.is_near`; never, by a key from an earlier edition."""
        return self._has_fingerprints(self.entry.get("near", {}), "near", got)

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
                if _fingerprint(self.exercise.id, name, part, i, round(number / step[i])) not in fingerprints[i]:
                    return False
        return True

    def broken_rule(self, order: list[str]) -> str | None:
        """As `Solved.broken_rule`."""
        for name, sealed in self.entry["rules"]:
            for i, early in enumerate(order):
                if any(_fingerprint(self.exercise.id, late, early) == sealed for late in order[i + 1:]):
                    return name
        return None


def make_key(exercise: Exercise, answers: Answers, inputs: Iterable[tuple]) -> dict:
    """The entry of an exercise: what solution and mistakes give on `inputs`, or fingerprints of values and rules."""
    solved = Solved(exercise, answers)
    if exercise.kind == "order":
        return {"rules": [[name, _fingerprint(exercise.id, before, after)] for before, after, name in answers.reference()]}
    if exercise.kind == "number":
        near = exercise._replace(tolerance=NEAR * exercise.tolerance)
        return {"form": {part: list(tensor.shape) for part, tensor in solved.form().items()},
                "near": {part: _fingerprints(near, "near", part, tensor) for part, tensor in solved._value(RIGHT).items()},
                "gives": {name: {part: _fingerprints(exercise, name, part, tensor)
                                 for part, tensor in solved._value(name).items()} for name in (RIGHT, *solved.names)}}
    gives: dict = {}
    for name in (RIGHT, *solved.names):
        outcomes = [solved.gives(name, index, given) for index, given in enumerate(inputs)]
        gives[name] = [found and {part: _plain(value) for part, value in found.items()} for found in outcomes]
    return {"gives": gives}


def write_keys(exercises: Iterable[tuple[Exercise, Answers]], inputs_of, folder: Path) -> list[Path]:
    """Write sealed.json into each lesson's folder, n04 in `folder`; `inputs_of(exercise)` gives the usual inputs."""
    lessons: dict = {}
    for exercise, answers in exercises:
        lessons.setdefault(lesson_of(exercise.id), {})[exercise.id] = make_key(exercise, answers, inputs_of(exercise))
    for name, entries in lessons.items():
        write_json(folder / name / "sealed.json", entries, indent=None)
    return [folder / name / "sealed.json" for name in lessons]


def read_key(exercise: Exercise, folder: Path = EXERCISES) -> Key:
    """The key of an exercise. Raises FileNotFoundError where the edition has neither solutions nor keys."""
    path = folder / lesson_of(exercise.id) / "sealed.json"
    if not path.is_file():
        raise FileNotFoundError(f"this copy of the course has neither solutions nor a sealed.json for exercise "
                                f"{exercise.id}; unpack it again")
    return Key(exercise, json.loads(path.read_text(encoding="utf-8"))[exercise.id])


def _plain(value):
    return value if isinstance(value, str) else [list(value.shape), value.flatten().tolist()]


def _tensor(value):
    return value if isinstance(value, str) else torch.tensor(value[1], dtype=torch.float64).reshape(value[0])


def _fingerprints(exercise: Exercise, name: str, part: str, tensor: torch.Tensor) -> list:
    """[shape, step of each number, fingerprints of all the steps within the tolerance of each number]."""
    steps, fingerprints = [], []
    for i, value in enumerate(tensor.flatten().tolist()):
        reach = exercise.tolerance * (1 + abs(value))
        step = 2.0 ** math.floor(math.log2(reach / STEPS))  # a power of two, so that it does not give the value away
        first, last = math.ceil((value - reach) / step), math.floor((value + reach) / step)
        steps.append(step)
        fingerprints.append(sorted(_fingerprint(exercise.id, name, part, i, k) for k in range(first, last + 1)))
    return [list(tensor.shape), steps, fingerprints]


def _fingerprint(*parts) -> str:
    """A fingerprint of ten hexadecimal digits."""
    return sha256("\0".join(map(str, parts)).encode())[:10]
