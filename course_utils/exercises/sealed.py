"""What an answer is compared with: the course's answers, or, of a number or an order in an edition without solutions, a key.

In such an edition each file of records is one encoded file (n04.sealed for n04.py), from which `folder` reads and imports
it: any seed can be judged, and no line of an answer stands in it as text. That doesn't keep it secret: whoever decodes it
has the functions. Of numbers and orders not even that is in it, only fingerprints, which say whether an answer is right.

Does: compare, seal records, take answers out of them. Does not: judge (see `judge`), or find records (see `folder`).
"""

import ast
import base64
import json
import math
import shutil
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

from course_utils.exercises.compare import NotNumbers, close, named_tensors
from course_utils.exercises.definitions import Answers, Exercise, Record
from course_utils.exercises.folder import ENDING, unsealed
from course_utils.exercises.running import run_once
from course_utils.files import sha256, write_bytes
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


def make_key(exercise: Exercise, answers: Answers) -> dict:
    """The entry of a number or an order: fingerprints of its values, or of its rules."""
    solved = Solved(exercise, answers)
    if exercise.kind == "order":
        return {"rules": [[name, _fingerprint(exercise.id, before, after)] for before, after, name in answers.reference()]}
    near = exercise._replace(tolerance=NEAR * exercise.tolerance)
    return {"form": {part: list(tensor.shape) for part, tensor in solved.form().items()},
            "near": {part: _fingerprints(near, "near", part, tensor) for part, tensor in solved._value(RIGHT).items()},
            "gives": {name: {part: _fingerprints(exercise, name, part, tensor)
                             for part, tensor in solved._value(name).items()} for name in (RIGHT, *solved.names)}}


def read_key(exercise: Exercise, folder: Path = EXERCISES) -> Key:
    """The key of an exercise. Raises FileNotFoundError where the edition has neither solutions nor keys."""
    entry = unsealed(folder, f"n{exercise.notebook}")["keys"].get(exercise.id)
    if entry is None:
        raise FileNotFoundError(f"this copy of the course has neither the solution nor a key for exercise {exercise.id}; "
                                "unpack it again")
    return Key(exercise, entry)


def seal(folder: Path, records: Iterable[Record]) -> None:
    """Put encoded files in the place of all that's in a copy of the records' folder; `records` are all of the course's."""
    fixed = [record for record in records if record.exercise.kind != "function"]
    hidden = {record.answers.reference.__name__ for record in fixed}
    whole: dict[str, dict] = {}
    for path in sorted(path for path in EXERCISES.rglob("*") if path.suffix in (".py", ".yaml")):
        name, text = path.relative_to(EXERCISES).as_posix(), path.read_text(encoding="utf-8")
        one = whole.setdefault(name.partition("/")[0].partition(".")[0], {"files": {}, "keys": {}})
        one["files"][name] = without_answers(text, hidden) if path.suffix == ".py" else text
    for exercise, answers in fixed:
        whole[f"n{exercise.notebook}"]["keys"][exercise.id] = make_key(exercise, answers)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, one in whole.items():
        packed = zlib.compress(json.dumps(one, ensure_ascii=False).encode(), 9)
        write_bytes(folder / f"{name}{ENDING}", base64.b85encode(packed) + b"\n")


def without_answers(source: str, hidden: set[str] | None = None) -> str:
    """A file of records without some answers, by their functions' names (all if None), and without their known mistakes.

    What only these used goes as well. Comments go with them, but a file that has no such answer stays as it is.
    """
    tree, found = ast.parse(source), False
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        place = {"ask": 1, "Answers": 0}.get(call.func.id)
        if place is None or hidden is not None and ast.unparse(call.args[place]) not in hidden:
            continue
        found, call.args[place] = True, ast.Constant(None)
        for given in (one.value for one in call.keywords if one.arg in ("mistakes", "mutants")):
            for i, made in enumerate(given.values):
                if call.func.id == "ask":
                    made.args[0] = ast.Constant(None)
                else:
                    given.values[i] = ast.Constant(None)
    if not found:
        return source
    while unused := _unused(tree):
        tree.body = [node for node in tree.body if node not in unused]
    return ast.unparse(tree) + "\n"


def _unused(tree: ast.Module) -> list[ast.stmt]:
    """Functions and constants that nothing in a file names any more; not records, or what the catalogue looks for."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    edits = [call.args[0] for call in ast.walk(tree) if isinstance(call, ast.Call) and ast.unparse(call.func) == "M"]
    quoted = " ".join(str(node.value) for edit in edits for node in ast.walk(edit) if isinstance(node, ast.Constant))
    unused = []
    for node in tree.body:
        names = {node.name} if isinstance(node, ast.FunctionDef) else set()
        if isinstance(node, ast.Assign) and not any(name in ast.unparse(node.value) for name in ("ask(", "Answers(")):
            names = {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
        if names and not names & (used | {"ANSWERS", "EXERCISES", "QUIZ"}) and not any(name in quoted for name in names):
            unused.append(node)
    return unused


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
