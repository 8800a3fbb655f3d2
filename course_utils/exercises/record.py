"""What a learner has done so far: one small JSON file beside their copies of the notebooks.

Does: read, mark, write at once or not at all. Does not: hold anything that cannot be done again; whoever deletes the
file loses the marks and nothing else.
"""

import json
import os
from pathlib import Path

NAME = "progress.json"
COURSE_NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
_memory: dict = {}                                      # marks of a kernel that keeps no file


def location() -> Path | None:
    """The file: COURSE_PROGRESS, else beside the notebook that runs; None for the originals, which keep no marks."""
    named = os.environ.get("COURSE_PROGRESS")
    if named:
        return Path(named).expanduser()
    here = Path.cwd().resolve()
    return None if here == COURSE_NOTEBOOKS or here == COURSE_NOTEBOOKS.parent else here / NAME


def read() -> dict:
    """The marks, {"exercises": {...}, "quizzes": {...}, "predictions": {...}}; prints one line if the file is damaged."""
    path = location()
    marks = _memory if path is None else _read_file(path)
    return {part: dict(marks.get(part, {})) for part in ("exercises", "quizzes", "predictions")}


def _read_file(path: Path) -> dict:
    if not path.is_file():
        return {}
    try:
        marks = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(marks, dict) or not all(isinstance(part, dict) for part in marks.values()):
            raise ValueError("not a table of marks")
        return marks
    except (OSError, ValueError):
        kept = path.with_suffix(".damaged.json")
        try:
            os.replace(path, kept)
            print(f"{path.name} cannot be read; marks start anew, and the old file is kept as {kept.name}.")
        except OSError:
            print(f"{path.name} cannot be read; marks start anew.")
        return {}


def mark(part: str, name: str, value) -> None:
    """Set one mark, such as mark("exercises", "4.2", True). A folder that cannot be written to costs one line, no error."""
    marks = read()
    marks[part][name] = value
    path = location()
    if path is None:
        _memory.clear()
        _memory.update(marks)
        return
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(marks, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
        os.replace(partial, path)
    except OSError as error:
        print(f"{path.name} cannot be written ({error.strerror}); the mark is not kept.")
