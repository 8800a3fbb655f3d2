"""Real code: the sources of Python's standard library, split by package, without tests and near-duplicates.

Does: `load_standard_library` reads the modules of one split from the Python that runs, and checks that they are those the
course's results were made from; `list_modules` chooses and splits them. Does not: tokenize, or fetch anything.

The sources differ between versions of Python. So data/standard_library.json lists the modules with their checksums, as they
were when the course's results were made; only what trains and measures reads the sources, and no notebook does.

    python -m course_tools.studies.standard_library         # write that list for the Python that runs
"""

from __future__ import annotations

import functools
import json
import os
import platform
import sysconfig
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from course_utils.files import fingerprint, sha256, write_json
from course_utils.files.paths import DATA

__all__ = ["SPLITS", "Module", "WrongVersion", "library_fingerprint", "list_modules", "load_standard_library", "made_with"]

MANIFEST = DATA / "standard_library.json"
SPLITS = ("train", "validation", "test")
# tests, other people's packages, and tables or texts that happen to stand in a .py file
LEFT_OUT = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "_bundled", "idlelib", "lib2to3",
            "turtledemo", "encodings", "pydoc_data"}
SHORTEST = 1000                                          # bytes; a shorter module is little more than imports
WINDOW = 3                                               # lines: modules are compared by their runs of so many lines
ALIKE = 1 / 3                                            # of the runs of one of two modules: the second is left out


class Module(NamedTuple):
    """A module's path in the library, such as 'json/decoder.py', its split, and its text."""

    path: str
    split: str
    text: str


class WrongVersion(RuntimeError):
    """The Python that runs has other sources than those the course's results were made from."""


def _sources(folder: Path) -> Iterator[tuple[str, str]]:
    """(path, text) of every module in the folder that isn't left out, in the order of their paths."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in LEFT_OUT and not name.startswith("config-")]
        found += [Path(place) / name for name in files if name.endswith(".py") and not name.startswith("_sysconfigdata")]
    for path in sorted(found, key=lambda path: path.relative_to(folder).as_posix()):
        with tokenize.open(path) as file:                # the encoding that the file itself names
            yield path.relative_to(folder).as_posix(), file.read()


def split_of(path: str) -> str:
    """The split of a module: that of its package, by the checksum of its name: 2 of 20 test, 1 validation."""
    package = path.split("/")[0].removesuffix(".py").strip("_")
    part = int(sha256(package.encode()), 16) % 20
    return "test" if part < 2 else "validation" if part == 2 else "train"


def _runs_of_lines(text: str) -> set[tuple[str, ...]]:
    lines = [stripped for line in text.split("\n") if (stripped := line.strip())]
    return {tuple(lines[i : i + WINDOW]) for i in range(max(1, len(lines) - WINDOW + 1))}


def list_modules(folder: Path | str | None = None) -> list[Module]:
    """The modules of a library's folder (by default that of the Python that runs) with their splits, sorted by path.

    All modules of a package get the same split. A module under 1,000 bytes is left out, and one that shares a third of its
    runs of three lines, or of the other's, with a module that stays; of two such modules in different splits the one for
    training goes, so that nothing in test was seen in training.
    """
    folder = Path(folder or sysconfig.get_path("stdlib"))
    modules = [Module(path, split_of(path), text) for path, text in _sources(folder)
               if len(text.encode("utf-8")) >= SHORTEST]
    kept, runs, owners = [], {}, {}                      # of each run of lines: the kept modules that have it
    for module in sorted(modules, key=lambda module: -SPLITS.index(module.split)):
        own, shared = _runs_of_lines(module.text), {}
        for run in own:
            for other in owners.get(run, ()):
                shared[other] = shared.get(other, 0) + 1
        if any(count >= ALIKE * min(len(own), runs[other]) for other, count in shared.items()):
            continue
        kept.append(module)
        runs[module.path] = len(own)
        for run in own:
            owners.setdefault(run, []).append(module.path)
    return sorted(kept)


@functools.cache
def _manifest() -> dict:
    return json.loads(MANIFEST.read_text(encoding="utf-8"))


def made_with() -> str:
    """The version of Python whose sources the course's results were made from, such as '3.11.7'."""
    return _manifest()["python"]


def library_fingerprint() -> str:
    """A short name for exactly these modules and splits; reads the list, not the library."""
    return fingerprint(_manifest()["modules"])


def _listed(module: Module) -> dict:
    content = module.text.encode("utf-8")
    return {"path": module.path, "split": module.split, "bytes": len(content), "sha256": sha256(content)}


def load_standard_library(split: str, any_version: bool = False) -> list[Module]:
    """The modules of 'train', 'validation' or 'test', sorted by path.

    Raises WrongVersion if they aren't those of data/standard_library.json; `any_version` takes them as they are.
    Raises ValueError for another split.
    """
    if split not in SPLITS:
        raise ValueError(f"split={split!r}; use one of {', '.join(SPLITS)}")
    modules = [module for module in list_modules() if module.split == split]
    expected = [entry for entry in _manifest()["modules"] if entry["split"] == split]
    if not any_version and [_listed(module) for module in modules] != expected:
        raise WrongVersion(f"this is Python {platform.python_version()}, and the course's results were made with the "
                           f"library of {made_with()}; install that version, or pass any_version=True for results of your "
                           "own")
    return modules


if __name__ == "__main__":
    entries = [_listed(module) for module in list_modules()]
    write_json(MANIFEST, {"python": platform.python_version(), "modules": entries})
    for name in SPLITS:
        sizes = [entry["bytes"] for entry in entries if entry["split"] == name]
        print(f"{name}: {len(sizes)} modules, {sum(sizes):,} bytes")
