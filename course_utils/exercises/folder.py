"""Where the exercises' records are: notebooks/exercises, which Python imports as `course_exercises`.

Does: find them. Does not: put a folder on the path, where a learner's own file of the same name would hide it.
"""

import importlib
import importlib.util
import sys

from course_utils.files.paths import EXERCISES

NAME = "course_exercises"


def lesson_of(number: str) -> str:
    """The name of the lesson that an exercise or a notebook belongs to: 'n04' for "4.2" and for "04"."""
    return f"n{number.partition('.')[0].zfill(2)}"


def part_of(lesson: str, part: str):
    """A module of a lesson, such as part_of("n04", "ask"). Raises ModuleNotFoundError where there is none."""
    return importlib.import_module(f"{NAME}.{lesson}.{part}")


def has_part(lesson: str, part: str) -> bool:
    """Whether a lesson has a module of that name."""
    return importlib.util.find_spec(f"{NAME}.{lesson}.{part}") is not None


def _make_importable() -> None:
    spec = importlib.util.spec_from_file_location(NAME, EXERCISES / "__init__.py",
                                                  submodule_search_locations=[str(EXERCISES)])
    package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    sys.modules[NAME] = package


if NAME not in sys.modules and (EXERCISES / "__init__.py").is_file():
    _make_importable()
