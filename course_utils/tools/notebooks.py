"""Run the course's notebooks, and hand out working copies of them.

    python -m course_utils copy          copies in notebooks/my_copies, made once, never overwritten
    python -m course_utils fresh 04      a new copy of one; the old one stays, as kept-1-04_….ipynb
    python -m course_utils update 04     the same, with answers and predictions carried over
    python -m course_utils paths 04      where the course's notebooks are, for make test
    python -m course_utils run [04 …]    execute notebooks; executed copies in outputs/notebooks
    python -m course_utils save [04 …]   execute notebooks in place (for maintainers)

Does: fresh kernels, outputs without timings or progress bars. Does not: compare outputs (the tests do).
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tqdm import tqdm

from course_utils.files import sha256, write_bytes, write_text
from course_utils.files.paths import NOTEBOOKS, ROOT

COPIES = NOTEBOOKS / "my_copies"
PACKAGE = Path(__file__).resolve().parents[1]
ASKS = re.compile(r"""\b(exercise)\(\s*["']([\d.]+)["']\s*\)\s*\.check\(|\b(predict)\(\s*["']([^"']+)["']\s*,""")
UNPREDICTED = re.compile(r"""\bpredict\(\s*["'][^"']+["']\s*,\s*None\s*\)""")
PAGES = ["notation_and_glossary.md"]                      # that the notebooks' readers want beside their copies


def find(numbers: list[str]) -> list[Path]:
    """The course's notebooks in order, or those whose file name begins with one of `numbers`; 4 means 04.

    Ends the program with the list of notebooks where a number fits none.
    """
    every = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
    wanted = [f"0{number}" if len(number) == 1 and number.isdigit() else number for number in numbers]
    for number, start in zip(numbers, wanted):
        if not start or not any(path.name.startswith(start) for path in every):
            sys.exit(f"there is no notebook {number!r}; there are {', '.join(path.stem for path in every)}")
    return [path for path in every if not wanted or path.name.startswith(tuple(wanted))]


def fingerprint(notebook) -> str:
    """Changes when a cell's source changes, whatever its outputs."""
    return _digest("\0".join(f"{cell.cell_type}\0{cell.source}" for cell in notebook.cells))


def is_exercise(cell) -> bool:
    """Whether the learner writes an answer to an exercise into this cell."""
    return "exercise" in cell.metadata.get("tags", [])


def asks(cell) -> str:
    """What a code cell asks the learner: 'exercise("4.2")' or 'predict("04-reach")'; empty if it asks nothing."""
    found = ASKS.search(cell.source) if cell.cell_type == "code" else None
    return f'{found[1] or found[3]}("{found[2] or found[4]}")' if found else ""


def carried_over(old, new) -> list[tuple]:
    """The cells of `old` that the learner wrote an answer or a prediction into, each with its cell of `new`, or None.

    A cell is found by its id, else by what it asks: other programs change the ids or drop them (Colab, JupyterLab before
    version 3). A cell that is as it was handed out, and a prediction that is still None, are nobody's answer.
    """
    places = [cell for cell in new.cells if asks(cell)]
    by_id, by_question = ({key(cell): cell for cell in places} for key in (lambda cell: cell.id, asks))
    found, filled = [], set()
    for cell in old.cells:
        if cell.cell_type != "code" or not (asks(cell) or is_exercise(cell)) or UNPREDICTED.search(cell.source):
            continue
        place = by_id.get(cell.get("id")) or by_question.get(asks(cell))
        handed_out = cell.metadata.get("course_source") == _digest(cell.source)
        if handed_out or (place is not None and place.source == cell.source):
            continue
        if place is not None and place.id in filled:       # a second cell for one question: the first has its place
            place = None
        if place is not None:
            filled.add(place.id)
        found.append((cell, place))
    return found


def _digest(text: str) -> str:
    return sha256(text.encode())[:16]


def write_copy(path: Path, target: Path) -> None:
    """Write `path` to `target` with outputs cleared, remembering which version it was; mark it trusted."""
    notebook = nbformat.read(path, as_version=4)
    version = fingerprint(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if asks(cell):
            cell.metadata["course_source"] = _digest(cell.source)  # so that an answer can be told from a stub
    notebook.metadata["course_version"] = version
    write_notebook(notebook, target)
    trust(target)


def write_notebook(notebook, path: Path) -> None:
    """Write a notebook to a file, whole or not at all: whatever happens meanwhile, what somebody wrote there isn't lost."""
    write_text(path, nbformat.writes(notebook).rstrip("\n") + "\n")


def trust(path: Path) -> None:
    """Sign the notebook, so that JupyterLab shows its styled figures."""
    from nbformat.sign import NotebookNotary

    NotebookNotary().sign(nbformat.read(path, as_version=4))


def copy() -> None:
    """Make the copies that are missing; say which course notebooks have changed since they were copied."""
    made, changed, stopped = [], [], []
    for path in find([]):
        target = COPIES / path.name
        if not target.exists():
            write_copy(path, target)
            made.append(path.stem)
        else:
            try:
                mine = nbformat.read(target, as_version=4)
                copied, moved = mine.metadata.get("course_version"), calls_what_has_moved(mine)
            except Exception:
                name = target.relative_to(ROOT)
                print(f"{name} cannot be read and is left alone; make fresh NB={path.name[:2]} makes a new one")
                continue
            if copied != fingerprint(nbformat.read(path, as_version=4)):
                changed.append(path.name[:2])
                stopped += [path.name[:2]] * moved
    for page in PAGES:                                    # always the newest
        if (NOTEBOOKS / page).exists():
            write_bytes(COPIES / page, (NOTEBOOKS / page).read_bytes())
    if made:
        print(f"copied into {COPIES.relative_to(ROOT)}: {', '.join(made)}")
    if changed:
        newer = ", ".join(changed)
        print(f"the course has newer versions of {newer}; yours are untouched. make update NB={changed[0]} gets one, with "
              "your answers carried over")
    if stopped:
        print(f"what your copies of {', '.join(stopped)} import has moved since, so they stop with 'No module named "
              f"course_utils. …'. make update NB={stopped[0]} mends the first; your answers and predictions come along")


def calls_what_has_moved(notebook) -> bool:
    """Whether a cell imports a module of course_utils that isn't there any more."""
    for cell in notebook.cells:
        source = cell.source if cell.cell_type == "code" else ""
        for name in re.findall(r"^\s*from (course_utils(?:\.\w+)+) import", source, re.M):
            place = PACKAGE.joinpath(*name.split(".")[1:])
            if not place.is_dir() and not place.with_name(f"{place.name}.py").exists():
                return True
    return False


def fresh(number: str) -> None:
    """Put a new copy of one notebook into the working folder; the old one gets a number and stays."""
    path, *others = find([number])
    if others:
        sys.exit(f"{number!r} could be any of {', '.join(p.stem for p in [path, *others])}; give both digits")
    target = COPIES / path.name
    if target.exists():
        n = 1
        while (kept := target.with_name(f"kept-{n}-{path.name}")).exists():
            n += 1                                        # the word first: in the list they come after the course's
        target.rename(kept)
        print(f"your old copy is now {kept.relative_to(ROOT)}")
    write_copy(path, target)
    print(f"a new copy is {target.relative_to(ROOT)}")


def update(number: str) -> None:
    """`fresh`, with the learner's answers and predictions carried over to the new copy; nothing if there is nothing new."""
    path = find([number])[0]
    target = COPIES / path.name
    try:
        old = nbformat.read(target, as_version=4)
        version, _ = old.metadata.get("course_version"), "".join(cell.source for cell in old.cells)
    except Exception:                                     # none there, or none that can be read: nothing to carry over
        old, version = nbformat.v4.new_notebook(), None
    if version == fingerprint(nbformat.read(path, as_version=4)):
        print(f"{target.relative_to(ROOT)} is made from the newest version already, and stays as it is")
        return
    fresh(number)
    notebook = nbformat.read(target, as_version=4)
    carried = carried_over(old, notebook)
    for cell, place in carried:
        if place is not None:
            place.source = cell.source
    if carried:
        write_notebook(notebook, target)
        trust(target)
        print(f"{sum(place is not None for _, place in carried)} of your {len(carried)} answers and predictions are in it; "
              "everything else you wrote is in the old copy")


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
    known = os.environ.get("PYTHONPATH")
    ours = f"{ROOT}{os.pathsep}{known}" if known else str(ROOT)           # this course's package, whichever is installed
    client.execute(env={**os.environ, "PYTHONPATH": ours})
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
                write_notebook(notebook, target)
                tqdm.write(f"{path.stem}: {time.perf_counter() - begun:.0f} s")
            bar.update(start + cells[path] - bar.n)
    return failed


def _command(action: str, arguments: list[str] | None, numbers: str | int, what: str) -> list[str]:
    """The notebooks' numbers on the command line of an action; ends the program where they are wrong."""
    parser = argparse.ArgumentParser(prog=f"python -m course_utils {action}", description=what)
    if numbers:
        parser.add_argument("numbers", nargs=numbers, help="the first digits of a notebook's name, such as 04")
    elif extra := [given for given in (sys.argv[1:] if arguments is None else arguments) if not given.startswith("-")]:
        sys.exit(f"{action} takes no number, and got {' '.join(extra)}; fresh 04 makes a new copy of one")
    return getattr(parser.parse_args(arguments), "numbers", [])


def _only(action: str, numbers: list[str]) -> str:
    if len(numbers) != 1:
        sys.exit(f"which one? For example: make {action} NB=04")
    return numbers[0]


def copy_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils copy`; returns the exit status, as all commands do."""
    _command("copy", arguments, 0, "Make the working copies that are missing; never overwrites one.")
    copy()
    return 0


def fresh_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils fresh 04`."""
    fresh(_only("fresh", _command("fresh", arguments, "*", "A new copy of one notebook; the old one is kept.")))
    return 0


def update_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils update 04`."""
    update(_only("update", _command("update", arguments, "*", "As fresh, with answers and predictions carried over.")))
    return 0


def paths_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils paths 04`."""
    numbers = _command("paths", arguments, "*", "Print where the course's notebooks are.")
    print(*(path.relative_to(ROOT).as_posix() for path in find(numbers)), sep="\n")
    return 0


def run_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils run [04 …]`."""
    numbers = _command("run", arguments, "*", "Execute notebooks; the executed copies go to outputs/notebooks.")
    return int(run(numbers, in_place=False) > 0)


def save_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils save [04 …]`."""
    return int(run(_command("save", arguments, "*", "Execute notebooks in place (for maintainers)."), in_place=True) > 0)
