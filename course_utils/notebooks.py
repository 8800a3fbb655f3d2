"""Run the course's notebooks, and hand out working copies of them.

    python -m course_utils.notebooks copy          copies in notebooks/my_copies, made once, never overwritten
    python -m course_utils.notebooks fresh 04      a new copy of one; the old one is kept beside it
    python -m course_utils.notebooks update 04     the same, with the answers to its exercises carried over
    python -m course_utils.notebooks run [04 …]    execute notebooks; executed copies in outputs/notebooks
    python -m course_utils.notebooks save [04 …]   execute notebooks in place (for maintainers)

Does: fresh kernels, outputs without timings or progress bars. Does not: compare outputs (the tests do).
"""

import argparse
import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
COPIES = NOTEBOOKS / "my_copies"
PAGES = ["notation_and_glossary.md"]                      # that the notebooks' readers want beside their copies


def find(numbers: list[str]) -> list[Path]:
    """The course's notebooks in order, or those whose file name begins with one of `numbers`."""
    every = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
    for number in numbers:
        if not any(path.name.startswith(number) for path in every):
            sys.exit(f"there is no notebook {number!r}; there are {', '.join(path.stem for path in every)}")
    return [path for path in every if not numbers or path.name.startswith(tuple(numbers))]


def fingerprint(notebook) -> str:
    """Changes when a cell's source changes, whatever its outputs."""
    return _digest("\0".join(f"{cell.cell_type}\0{cell.source}" for cell in notebook.cells))


def is_exercise(cell) -> bool:
    """Whether the learner writes into this cell."""
    return "exercise" in cell.metadata.get("tags", [])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_copy(path: Path, target: Path) -> None:
    """Write `path` to `target` with outputs cleared, remembering which version it was; mark it trusted."""
    notebook = nbformat.read(path, as_version=4)
    version = fingerprint(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if is_exercise(cell):
            cell.metadata["course_source"] = _digest(cell.source)  # so that an answer can be told from a stub
    notebook.metadata["course_version"] = version
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)
    trust(target)


def trust(path: Path) -> None:
    """Sign the notebook, so that JupyterLab shows its styled figures."""
    from nbformat.sign import NotebookNotary

    NotebookNotary().sign(nbformat.read(path, as_version=4))


def copy() -> None:
    """Make the copies that are missing; say which course notebooks have changed since they were copied."""
    made, changed = [], []
    for path in find([]):
        target = COPIES / path.name
        if not target.exists():
            write_copy(path, target)
            made.append(path.stem)
        else:
            try:
                copied = nbformat.read(target, as_version=4).metadata.get("course_version")
            except Exception:
                name = target.relative_to(ROOT)
                print(f"{name} cannot be read and is left alone; make fresh NB={path.name[:2]} makes a new one")
                continue
            if copied != fingerprint(nbformat.read(path, as_version=4)):
                changed.append(path.name[:2])
    for page in PAGES:                                    # always the newest
        if (NOTEBOOKS / page).exists():
            shutil.copyfile(NOTEBOOKS / page, COPIES / page)
    if made:
        print(f"copied into {COPIES.relative_to(ROOT)}: {', '.join(made)}")
    if changed:
        newer = ", ".join(changed)
        print(f"the course has newer versions of {newer}; yours are untouched. make update NB={changed[0]} gets one, with "
              "your answers carried over")


def fresh(number: str) -> None:
    """Put a new copy of one notebook into the working folder; the old one gets a number and stays."""
    path, *others = find([number])
    if others:
        sys.exit(f"{number!r} could be any of {', '.join(p.stem for p in [path, *others])}; give both digits")
    target = COPIES / path.name
    if target.exists():
        n = 1
        while (kept := target.with_name(f"{path.stem}.kept-{n}.ipynb")).exists():
            n += 1
        target.rename(kept)
        print(f"your old copy is now {kept.relative_to(ROOT)}")
    write_copy(path, target)
    print(f"a new copy is {target.relative_to(ROOT)}")


def update(number: str) -> None:
    """`fresh`, with the exercise cells that the learner wrote into carried over to the new copy, by cell id."""
    target = COPIES / find([number])[0].name
    try:
        old = nbformat.read(target, as_version=4).cells
    except Exception:                                     # none there, or none that can be read: nothing to carry over
        old = []
    answers = {cell.id: cell.source for cell in old
               if is_exercise(cell) and _digest(cell.source) != cell.metadata.get("course_source")}
    fresh(number)
    if not answers:
        return
    notebook = nbformat.read(target, as_version=4)
    carried = [cell for cell in notebook.cells if is_exercise(cell) and cell.id in answers]
    for cell in carried:
        cell.source = answers[cell.id]
    nbformat.write(notebook, target)
    trust(target)
    print(f"{len(carried)} of your {len(answers)} answers are in it; everything else you wrote is in the old copy")


def tidy(notebook) -> None:
    """Merge neighbouring pieces of one stream and drop what differs between runs and machines."""
    notebook.metadata = nbformat.from_dict({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    })
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        merged = []
        for output in cell.outputs:
            output.pop("transient", None)
            last = merged[-1] if merged else None
            if last and output.output_type == last.output_type == "stream" and output.name == last.name:
                last.text += output.text
            else:
                merged.append(output)
        cell.outputs = merged


def execute(path: Path, bar=None):
    """Execute one notebook in a fresh kernel, in its own folder; return it, outputs tidied.

    Raises CellExecutionError at the first cell that fails.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=1200, kernel_name="python3", record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
        extra_arguments=["--log-level=ERROR"],            # no kernel warnings between the progress bars
        on_cell_complete=(lambda cell, cell_index: bar.update()) if bar is not None else None,
    )
    client.execute()
    tidy(notebook)
    return notebook


def run(numbers: list[str], in_place: bool) -> int:
    """Execute notebooks with one progress bar over all their cells; return the number that failed."""
    paths, failed = find(numbers), 0
    cells = {path: len(nbformat.read(path, as_version=4).cells) for path in paths}
    disabled = os.environ.get("TQDM_DISABLE") == "1"
    os.environ["TQDM_DISABLE"] = "1"                      # progress bars inside the notebooks
    os.environ["COURSE_TESTING"] = "1"                    # a claim that fails is an error
    folder = Path(os.environ.get("COURSE_OUTPUTS", ROOT / "outputs")) / "notebooks"
    with tqdm(total=sum(cells.values()), unit="cell", disable=disabled) as bar:
        for path in paths:
            bar.set_description(path.stem)
            start, begun = bar.n, time.perf_counter()
            try:
                notebook = execute(path, bar)
            except CellExecutionError as error:
                failed += 1
                tqdm.write(f"{path.stem} failed:\n{error}")
            else:
                target = path if in_place else folder / path.name
                target.parent.mkdir(parents=True, exist_ok=True)
                nbformat.write(notebook, target)
                tqdm.write(f"{path.stem}: {time.perf_counter() - begun:.0f} s")
            bar.update(start + cells[path] - bar.n)
    return failed


def main() -> int:
    """Read the command line; return the exit status."""
    parser = argparse.ArgumentParser(description="Run the course's notebooks, and hand out working copies of them.")
    parser.add_argument("action", choices=["copy", "fresh", "update", "run", "save"])
    parser.add_argument("numbers", nargs="*", help="the first digits of a notebook's name, such as 04")
    arguments = parser.parse_args()
    if arguments.action == "copy":
        copy()
    elif arguments.action in ("fresh", "update"):
        if len(arguments.numbers) != 1:
            sys.exit(f"which one? For example: make {arguments.action} NB=04")
        (fresh if arguments.action == "fresh" else update)(arguments.numbers[0])
    else:
        return int(run(arguments.numbers, in_place=arguments.action == "save") > 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
