"""Makes the sealed records of an edition without solutions, which `course_utils.exercises.sealed` reads.

Does: put one encoded file (n04.sealed for n04.py) in the place of a file of records, with fingerprints of numbers and orders
in the place of their answers; take answers out of records. Does not: hide what is encoded from whoever decodes it.
"""

import ast
import base64
import json
import math
import shutil
import zlib
from collections.abc import Iterable
from pathlib import Path

import torch

from course_utils.exercises.definitions import Answers, Exercise, Record
from course_utils.exercises.folder import ENDING
from course_utils.exercises.sealed import NEAR, RIGHT, Solved, fingerprint_of
from course_utils.files import write_bytes
from course_utils.files.paths import EXERCISES

STEPS = 20                                              # a number's fingerprints lie this close, in shares of the tolerance


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


def make_key(exercise: Exercise, answers: Answers) -> dict:
    """The entry of a number or an order: fingerprints of its values, or of its rules."""
    solved = Solved(exercise, answers)
    if exercise.kind == "order":
        return {"rules": [[name, fingerprint_of(exercise.id, before, after)] for before, after, name in answers.reference()]}
    near = exercise._replace(tolerance=NEAR * exercise.tolerance)
    return {"form": {part: list(tensor.shape) for part, tensor in solved.form().items()},
            "near": {part: _fingerprints(near, "near", part, tensor) for part, tensor in solved.value(RIGHT).items()},
            "gives": {name: {part: _fingerprints(exercise, name, part, tensor)
                             for part, tensor in solved.value(name).items()} for name in (RIGHT, *solved.names)}}


def _fingerprints(exercise: Exercise, name: str, part: str, tensor: torch.Tensor) -> list:
    """[shape, step of each number, fingerprints of all the steps within the tolerance of each number]."""
    steps, fingerprints = [], []
    for i, value in enumerate(tensor.flatten().tolist()):
        reach = exercise.tolerance * (1 + abs(value))
        step = 2.0 ** math.floor(math.log2(reach / STEPS))  # a power of two, so that it does not give the value away
        first, last = math.ceil((value - reach) / step), math.floor((value + reach) / step)
        steps.append(step)
        fingerprints.append(sorted(fingerprint_of(exercise.id, name, part, i, k) for k in range(first, last + 1)))
    return [list(tensor.shape), steps, fingerprints]


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
    """Functions, classes, constants that nothing in a file names any more; not records, or what the catalogue looks for."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    edits = [call.args[0] for call in ast.walk(tree) if isinstance(call, ast.Call) and ast.unparse(call.func) == "M"]
    quoted = " ".join(str(node.value) for edit in edits for node in ast.walk(edit) if isinstance(node, ast.Constant))
    unused = []
    for node in tree.body:
        names = {node.name} if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else set()
        if isinstance(node, ast.Assign) and not any(name in ast.unparse(node.value) for name in ("ask(", "Answers(")):
            names = {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
        looked_for = {"ANSWERS", "EXERCISES", "QUIZ", "WARM_UP"}
        if names and not names & (used | looked_for) and not any(name in quoted for name in names):
            unused.append(node)
    return unused
