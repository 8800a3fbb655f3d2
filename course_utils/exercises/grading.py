"""Grade notebooks that were handed in: `python -m course_utils.exercises.grading FOLDER` (`make grade FILES=FOLDER`).

Each notebook is executed in a fresh kernel with other inputs than the usual ones, so that numbers written down from the
usual ones do not pass. It runs the code of whoever wrote it: do that where you would run their code.

Does: execute, and print a line a notebook. Does not: change the notebooks, or anybody's marks.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from course_utils.exercises import record
from course_utils.exercises.catalogue import list_exercises
from course_utils.exercises.editions import exercise_numbers
from course_utils.exercises.engine import AS_GIVEN
from course_utils.figures import output_folder


def grade(path: Path, seed: int) -> dict[str, str]:
    """{exercise: 'right', 'wrong', 'as given', 'open' or 'not reached'} for the exercise cells of one notebook.

    'as given' is a repair that still makes the mistake that it came with: most likely nobody touched it.
    A cell that raises does not stop the rest. `seed` chooses the inputs.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "COURSE_SEED": str(seed), "COURSE_PROGRESS": str(Path(folder) / record.NAME),
                       "COURSE_OUTPUTS": str(output_folder() / "grading"), "COURSE_STRICT": "0", "TQDM_DISABLE": "1"}
        client = NotebookClient(notebook, timeout=1200, kernel_name="python3", allow_errors=True, record_timing=False,
                                extra_arguments=["--log-level=ERROR"])
        client.execute(env=environment, cwd=str(path.parent))
    said = [text for cell in notebook.cells for text in _printed(cell)]
    found = {}
    for number in sorted({number for cell in notebook.cells for number in exercise_numbers(cell)}, key=_order):
        lines = [line for line in said if line[2:].startswith(f"{number} ") and line[0] in "✓✗≈○"]
        found[number] = _state(lines[-1]) if lines else "not reached"
    return found


def _state(line: str) -> str:
    return "as given" if AS_GIVEN in line else {"✓": "right", "○": "open"}.get(line[0], "wrong")


def _printed(cell) -> list[str]:
    texts = [output.text for output in cell.get("outputs", []) if output.output_type == "stream"]
    return "".join(texts).splitlines()


def _order(number: str) -> list[int]:
    return [int(part) for part in number.split(".")]


def main() -> int:
    """Read the command line; print a line a notebook and return the exit status."""
    parser = argparse.ArgumentParser(description="Grade notebooks that were handed in, on fresh inputs.")
    parser.add_argument("files", nargs="+", type=Path, help="notebooks, or folders of them")
    parser.add_argument("--seed", type=int, default=2024, help="of the inputs; take another each year")
    arguments = parser.parse_args()
    given = [sorted(path.rglob("*.ipynb")) if path.is_dir() else [path] for path in arguments.files]
    paths = [path for found in given for path in found if ".ipynb_checkpoints" not in path.parts]
    if not paths:
        sys.exit(f"no notebooks in {', '.join(map(str, arguments.files))}; expected files *.ipynb")
    minutes = {exercise.id: exercise.minutes[1] for exercise in list_exercises()}
    for path in paths:
        try:
            found = grade(path, arguments.seed)
        except Exception as error:  # not a notebook, or a kernel that died: say so and go on with the others
            print(f"{path}: cannot be graded ({type(error).__name__}: {str(error).splitlines()[0][:100]})", flush=True)
            continue
        solved = [number for number, state in found.items() if state == "right"]
        rest = ", ".join(f"{number} {state}" for number, state in found.items() if state != "right")
        share = f"{sum(minutes[n] for n in solved)} of {sum(minutes[n] for n in found)} minutes"
        print(f"{path}: {len(solved)} of {len(found)} right ({share}){'; ' + rest if rest else ''}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
