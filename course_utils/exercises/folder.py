"""Where the exercises' records are: notebooks/exercises, which Python imports as `course_exercises`.

In an edition without solutions that folder holds one encoded file a notebook in place of the records, n04.sealed for
n04.py (see `sealed`); they are read and imported from there just the same.

Does: list, read and import them. Does not: put a folder on the path, where a learner's own file of the same name would hide
it.
"""

import ast
import base64
import importlib
import importlib.abc
import importlib.util
import json
import os
import re
import sys
import zlib
from functools import lru_cache
from pathlib import Path

from course_utils.files.paths import EXERCISES, HOUR, NUMBER

NAME = "course_exercises"
ENDING = ".sealed"


def list_lessons() -> list[str]:
    """The lessons with records, such as n04; n02b is that of notebook 02b, nR1 that of Part I's review, nhour the hour's."""
    return sorted(name for name in _named_as_lessons() if has(f"{name}.py"))


def lessons_of(number: str) -> list[str]:
    """The lessons in which an exercise of that number may be: ['n02', 'n02b'] for "2.6", ['n13b'] for "13b.1"."""
    of = number.partition(".")[0].zfill(2)
    return sorted(name for name in _named_as_lessons() if of in (name[1:3], name[1:]) and has(f"{name}.py"))


def _named_as_lessons() -> set[str]:
    pattern = rf"n(?:{NUMBER}|{HOUR})(?![^./])"
    return {found[0] for name in os.listdir(EXERCISES) if (found := re.match(pattern, name))}


def is_sealed() -> bool:
    """Whether this edition of the course comes without solutions."""
    return not (EXERCISES / "__init__.py").is_file()


def has(name: str) -> bool:
    """Whether the folder has a file, such as "n04.py", sealed or not."""
    return (EXERCISES / name).is_file() or name in _sealed_with(name)


def read(name: str) -> str | None:
    """What a file of the folder holds, such as "n04.py", sealed or not; None if there is no such file."""
    path = EXERCISES / name
    return path.read_text(encoding="utf-8") if path.is_file() else _sealed_with(name).get(name)


def _sealed_with(name: str) -> dict[str, str]:
    """The files that are sealed under a file's lesson."""
    return unsealed(EXERCISES, name.partition("/")[0].partition(".")[0])["files"]


def quiz_of(lesson: str, part: str = "QUIZ") -> str | None:
    """The quiz of a lesson, or its WARM_UP, as YAML; None if it has none."""
    return _texts(read(f"{lesson}.py") or "").get(part)


@lru_cache
def _texts(source: str) -> dict[str, str]:
    """The texts of a record file that have a name of their own, such as QUIZ, by that name."""
    return {ast.unparse(node.targets[0]): node.value.value for node in ast.parse(source).body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)}


def part_of(lesson: str):
    """A lesson's module, such as that of "n14". Raises ModuleNotFoundError where there is none."""
    return importlib.import_module(f"{NAME}.{lesson}")


@lru_cache
def unsealed(folder: Path, name: str) -> dict:
    """What was sealed under a name: the `files`, and the `keys` of numbers and orders; none of either if nothing was."""
    path = folder / f"{name}{ENDING}"
    if not path.is_file():
        return {"files": {}, "keys": {}}
    return json.loads(zlib.decompress(base64.b85decode(path.read_bytes().replace(b"\n", b""))))


class Finder(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """Finds the records for `import`."""

    def find_spec(self, name: str, path=None, target=None):
        """The records' folder itself, and, in it, what is sealed."""
        if name != NAME and not (is_sealed() and name.startswith(f"{NAME}.")):
            return None
        for file in self._files(name):
            if has(file):
                inside = [str((EXERCISES / file).parent)] if file.endswith("__init__.py") else None
                loader = self if is_sealed() else None
                return importlib.util.spec_from_file_location(name, EXERCISES / file, loader=loader,
                                                              submodule_search_locations=inside)
        return None

    def _files(self, name: str) -> list[str]:
        place = name.replace(".", "/").removeprefix(NAME).lstrip("/")
        return [f"{place}/__init__.py".lstrip("/"), f"{place}.py"]

    def get_filename(self, name: str) -> str:
        """Where the module would be in the whole course."""
        return str(EXERCISES / next(file for file in self._files(name) if has(file)))

    def get_source(self, name: str) -> str:
        """Its source."""
        return next(source for file in self._files(name) if (source := read(file)) is not None)


if not any(isinstance(finder, Finder) for finder in sys.meta_path):
    sys.meta_path.append(Finder())
