"""What a learner has done so far: one small JSON file beside their copies of the notebooks.

Does: read, mark, write at once or not at all, one process at a time. Does not: hold anything that cannot be done again;
whoever deletes the file loses the marks and nothing else.
"""

import json
import os
from pathlib import Path

from course_utils.files import InUse, locked, other_than_a_file, write_json
from course_utils.files.paths import EXTRAS, NOTEBOOKS, ROOT

NAME = "progress.json"
PARTS = {                                               # and what their marks may be
    "exercises": (bool, dict), "quizzes": (dict,), "predictions": (bool, int, float, str),
}
WAIT = 10                                               # seconds for another notebook to write its mark
_memory: dict = {}                                      # marks of a kernel that keeps no file


def location() -> Path | None:
    """The file: COURSE_PROGRESS, else beside the notebook that runs; None for the originals, which keep no marks.

    An extra keeps its marks where the other notebooks do, in the folder above its own.
    """
    named = os.environ.get("COURSE_PROGRESS")
    if named:
        return Path(os.path.expanduser(named))          # which leaves the home of nobody as it is
    try:
        here = Path.cwd().resolve()
    except OSError:                                     # the folder was deleted while the notebook was open
        return None
    if here.name == EXTRAS:
        here = here.parent
    return None if here == NOTEBOOKS or here == ROOT else here / NAME


def read() -> dict:
    """The marks, {"exercises": {...}, "quizzes": {...}, "predictions": {...}}; prints one line if the file is damaged.

    A mark that can't be one, such as a number where a quiz keeps its answer, is left out.
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
        print(f"{path.name} cannot be read ({error.strerror}); no mark is shown.")
        return {}
    except ValueError:
        print(f"{path.name} cannot be read; marks start anew, and the next one keeps the old file under another name.")
        return {}


def _marks_in(path: Path) -> dict:
    """What the file holds. Raises ValueError where that is no table of marks, OSError where it can't be read."""
    try:
        marks = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("brackets without end") from None
    if not isinstance(marks, dict) or not all(isinstance(part, dict) for part in marks.values()):
        raise ValueError("not a table of marks")
    return marks


def mark(part: str, name: str, value) -> None:
    """Set one mark, such as mark("exercises", "4.2", True). A folder that cannot be written to costs one line, no error.

    Notebooks that mark at the same time wait for each other. A damaged file is kept beside the new one.
    """
    value = value.item() if hasattr(value, "item") else value  # a number of NumPy's or torch's
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        print(f"a mark cannot be {type(value).__name__}; it is not kept. Use a number, a text, or True or False.")
        return
    path = location()
    if path is None:
        _memory.setdefault(part, {})[name] = value
        return
    if what := other_than_a_file(path):
        print(f"{path} is {what}; expected a file. The mark is not kept: set COURSE_PROGRESS to a file of your own, such as "
              "~/progress.json.")
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path, "writing a mark", wait=WAIT):
            marks = {}
            if path.exists():
                try:
                    marks = _marks_in(path)
                except ValueError:
                    _keep_damaged(path)
            marks.setdefault(part, {})[name] = value
            write_json(path, marks)
    except InUse:
        print(f"{path.name} is in use by another notebook; the mark is not kept. Run the cell again.")
    except OSError as error:
        print(f"{path.name} cannot be written ({error.strerror}); the mark is not kept.")


def _keep_damaged(path: Path) -> None:
    n = 1
    while (kept := path.with_name(f"{path.stem}.damaged-{n}.json")).exists():
        n += 1
    os.replace(path, kept)
    print(f"{path.name} cannot be read; marks start anew, and the old file is kept as {kept.name}.")
