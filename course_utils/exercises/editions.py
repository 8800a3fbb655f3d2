"""Other editions of the notebooks: `python -m course_utils.exercises.editions` fills in the solutions (`make solutions`).

Does: write outputs/solutions/NN_name.ipynb, each exercise cell with the course's answer in it. Does not: execute them,
or touch the notebooks or anybody's copies.
"""

import ast
import os
import re
import sys
from pathlib import Path

import nbformat
import torch

from course_utils.exercises.catalogue import answers_to, find_exercise, source_of_solution
from course_utils.exercises.engine import right_order
from course_utils.figures import output_folder
from course_utils.notebooks import find


def exercise_number(source: str) -> str:
    """The number in the cell's exercise("4.2").check(…). Raises ValueError for a cell without one."""
    found = re.search(r"exercise\(\"([\d.]+)\"\)\.check\(", source)
    if found is None:
        raise ValueError("an exercise cell must hold exercise(\"…\").check(…)")
    return found.group(1)


def solved(source: str) -> str:
    """The source of an exercise cell with the course's answer in place of the stub.

    A function or class that the cell defines gives way to the reference; `answer = None` and `.check(None)` get the value.
    """
    exercise = find_exercise(exercise_number(source))
    answers = answers_to(exercise.id)
    if exercise.kind == "function":
        name = re.search(r"\.check\((\w+)\)", source).group(1)
        tree, lines = ast.parse(source), source.splitlines()
        stub = next(node for node in tree.body if getattr(node, "name", None) == name)
        answer = source_of_solution(exercise.id).splitlines()
        if answers.reference.__name__ != name:
            answer += ["", f"{name} = {answers.reference.__name__}"]
        return "\n".join([*lines[: stub.lineno - 1], *answer, *lines[stub.end_lineno:]])
    value = right_order(answers.reference()) if exercise.kind == "order" else answers.reference()
    shown = repr(value.tolist() if isinstance(value, torch.Tensor) else value)
    return re.sub(r"\bNone\b", lambda _: shown, source, count=1)


def write_solutions(folder: Path | None = None) -> list[Path]:
    """Write every notebook with its exercises solved and its outputs cleared; return the files."""
    folder = folder or output_folder() / "solutions"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for path in find([]):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
                if "exercise" in cell.metadata.get("tags", []):
                    cell.source = solved(cell.source)
        nbformat.write(notebook, folder / path.name)
        written.append(folder / path.name)
    return written


def main() -> int:
    """Write the solved edition; return the exit status."""
    written = write_solutions()
    print(f"{len(written)} notebooks with their solutions: {os.path.relpath(written[0].parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
