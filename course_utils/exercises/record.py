"""A learner's progress: one small JSON file next to their copies of the notebooks.

Does: read it, add a result, write it completely or not at all, one process at a time. Does not: hold anything that can't
be done again; if you delete the file, you lose your progress and nothing else.
"""

import json
import os
from pathlib import Path

from course_utils.files import InUse, locked, other_than_a_file, write_json
from course_utils.files.paths import EXTRAS, NOTEBOOKS, ROOT

NAME = "progress.json"
PARTS = {                                               # and the types of their entries
    "exercises": (bool, dict), "quizzes": (dict,), "predictions": (bool, int, float, str),
}
WAIT = 10                                               # seconds for another notebook to finish writing
_memory: dict = {}                                      # progress of a kernel that has no file


def location() -> Path | None:
    """The file: COURSE_PROGRESS, else next to the running notebook; None for the originals, which save no progress.

    An extra uses the same file as the other notebooks, in the folder above its own.
    """
    named = os.environ.get("COURSE_PROGRESS")
    if named:
        return Path(os.path.expanduser(named))          # which doesn't change the home of an unknown user
    try:
        here = Path.cwd().resolve()
    except OSError:                                     # the folder was deleted while the notebook was open
        return None
    if here.name == EXTRAS:
        here = here.parent
    return None if here == NOTEBOOKS or here == ROOT else here / NAME


def read() -> dict:
    """The progress, {"exercises": {...}, "quizzes": {...}, "predictions": {...}}; prints one line if the file is damaged.

    Invalid entries, such as a number where a quiz keeps its answer, are left out.
    """
    path = location()
    marks = _memory if path is None else _read_file(path)
    return {part: {name: value for name, value in marks.get(part, {}).items() if isinstance(value, kinds)}
            for part, kinds in PARTS.items()}


def _read_file(path: Path) -> dict:
    if not path.is_file():
        return {}
    try:
        return _marks_in(path)
    except OSError as error:
        print(f"{path.name} cannot be read ({error.strerror}), so no progress is shown.")
        return {}
    except ValueError:
        print(f"{path.name} cannot be read, so your progress starts from zero. The old file will be kept under another "
              "name.")
        return {}


def _marks_in(path: Path) -> dict:
    """The contents of the file. Raises ValueError if they aren't a record of progress, OSError if it can't be read."""
    try:
        marks = json.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise ValueError("brackets without end") from None
    if not isinstance(marks, dict) or not all(isinstance(part, dict) for part in marks.values()):
        raise ValueError("not a record of progress")
    return marks


def mark(part: str, name: str, value) -> None:
    """Save one result, such as mark("exercises", "4.2", True). If that fails, print one line and raise nothing.

    Notebooks that save at the same time wait for each other. A damaged file is kept next to the new one.
    """
    value = value.item() if hasattr(value, "item") else value  # a number of NumPy's or torch's
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        print(f"a value of type {type(value).__name__} cannot be saved. Use a number, a text, True or False.")
        return
    path = location()
    if path is None:
        _memory.setdefault(part, {})[name] = value
        return
    if what := other_than_a_file(path):
        print(f"{path} is {what}; expected a file. Your progress wasn't saved: set COURSE_PROGRESS to a file of your own, "
              "such as ~/progress.json.")
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path, "saving progress", wait=WAIT):
            marks = {}
            if path.exists():
                try:
                    marks = _marks_in(path)
                except ValueError:
                    _keep_damaged(path)
            marks.setdefault(part, {})[name] = value
            write_json(path, marks)
    except InUse:
        print(f"{path.name} is in use by another notebook, so your progress wasn't saved. Run the cell again.")
    except OSError as error:
        print(f"{path.name} cannot be written ({error.strerror}), so your progress wasn't saved.")


def _keep_damaged(path: Path) -> None:
    n = 1
    while (kept := path.with_name(f"{path.stem}.damaged-{n}.json")).exists():
        n += 1
    os.replace(path, kept)
    print(f"{path.name} cannot be read, so your progress starts from zero. The old file is kept as {kept.name}.")
