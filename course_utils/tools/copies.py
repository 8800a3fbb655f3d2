"""Hand out working copies of the notebooks, and bring them up to date.

    python -m course_utils copy          copies in notebooks/my_copies, made once, never overwritten
    python -m course_utils fresh 04      a new copy of one; the old one stays, as kept-1-04_….ipynb
    python -m course_utils update 04     the same, with answers and predictions carried over

Copies begin without outputs, except that of START, which shows what it has before any kernel runs. Does: find a learner's
copy under the name that it had when it was made, and answers by the ids of their cells. Does not: change or delete what a
learner wrote, or execute anything.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat

from course_utils.files import sha256, write_bytes
from course_utils.tools import notebooks
from course_utils.tools.notebooks import is_exercise, names_on_the_line, write_notebook

PACKAGE = Path(__file__).resolve().parents[1]
ASKS = re.compile(r"""\b(exercise)\(\s*["']([\d.]+)["']\s*\)\s*\.check\(|\b(predict)\(\s*["']([^"']+)["']\s*,""")
UNPREDICTED = re.compile(r"""\bpredict\(\s*["'][^"']+["']\s*,\s*None\s*\)""")
PAGES = ["notation_and_glossary.md", "results.md"]        # that the notebooks link to, or their readers want beside them
WITH_OUTPUTS = {"START"}                                  # copies that keep the saved outputs
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")


def copies() -> Path:
    """The folder of the working copies; extras are in a folder of it, so that links between notebooks lead on."""
    return notebooks.NOTEBOOKS / "my_copies"


def place_of(path: Path) -> Path:
    """Where the working copy of a notebook is, or would be."""
    return copies() / path.relative_to(notebooks.NOTEBOOKS)


def copy_under_an_old_name(path: Path) -> Path | None:
    """A learner's copy of a notebook that has been renamed since; None if there is none."""
    old = [place_of(path.with_stem(name)) for name, now in notebooks.RENAMED.items() if now == path.stem]
    return next((target for target in old if target.exists()), None)


def the_one(name: str) -> Path:
    """The one notebook of that name. Ends the program where there is none or more than one."""
    path, *others = notebooks.find([name])
    if others:
        missing = "both digits" if name.isdigit() else "the whole name"
        sys.exit(f"{name!r} could be any of {', '.join(p.stem for p in [path, *others])}; give {missing}")
    return path


def short(path: Path) -> str:
    """What a command calls the notebook: '04', or the name of one without a number."""
    return path.name[:2] if path.name[:2].isdigit() else path.stem


def shown(path: Path) -> str:
    return path.relative_to(notebooks.ROOT).as_posix()


def fingerprint(notebook) -> str:
    """Changes when a cell's source changes, whatever its outputs."""
    return _digest("\0".join(f"{cell.cell_type}\0{cell.source}" for cell in notebook.cells))


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


def with_links_from(text: str, path: Path, target: Path) -> str:
    """The Markdown of a cell of `path`, its links mended to work from `target`.

    Links between notebooks and to the pages beside the copies stay as they are; only what else they lead to is elsewhere.
    """
    if not LINK.search(text):
        return text
    beside = {*notebooks.everything(), *(notebooks.NOTEBOOKS / page for page in PAGES)}

    def mended(found) -> str:
        meant = Path(os.path.normpath(path.parent / found[2]))
        if meant in beside or not meant.exists():
            return found[0]
        return found[1] + Path(os.path.relpath(meant, target.parent)).as_posix()

    return LINK.sub(mended, text)


def working_copy(path: Path, mended: Callable[[str], str]):
    """The notebook of a working copy: outputs cleared, which version it was remembered; `mended` mends a cell's links.

    START keeps its outputs.
    """
    notebook = nbformat.read(path, as_version=4)
    version = fingerprint(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code" and path.stem not in WITH_OUTPUTS:
            cell.outputs, cell.execution_count = [], None
        if cell.cell_type == "markdown":
            cell.source = mended(cell.source)
        if asks(cell):
            cell.metadata["course_source"] = _digest(cell.source)  # so that an answer can be told from a stub
    notebook.metadata["course_version"] = version
    return notebook


def write_copy(path: Path, target: Path) -> None:
    """Write the working copy of `path` to `target` and mark it trusted; links out of the notebooks' folder are mended."""
    write_notebook(working_copy(path, lambda text: with_links_from(text, path, target)), target)
    trust(target)


def trust(path: Path) -> None:
    """Sign the notebook, so that JupyterLab shows its styled figures."""
    from nbformat.sign import NotebookNotary

    NotebookNotary().sign(nbformat.read(path, as_version=4))


def copy() -> None:
    """Make the copies that are missing; say which course notebooks have changed since they were copied."""
    made, changed, stopped, renamed = [], [], [], []
    for path in notebooks.everything():
        target = place_of(path)
        old = None if target.exists() else copy_under_an_old_name(path)
        if old is not None:
            renamed.append(f"{shown(old)} is now called {path.name}")
        elif not target.exists():
            write_copy(path, target)
            made.append(path.stem)
            continue
        try:
            mine = nbformat.read(old or target, as_version=4)
            copied, moved = mine.metadata.get("course_version"), calls_what_has_moved(mine)
        except Exception:
            print(f"{shown(old or target)} cannot be read and is left alone; make fresh NB={short(path)} makes a new copy")
            continue
        if old or copied != fingerprint(nbformat.read(path, as_version=4)):
            changed.append(short(path))
            stopped += [short(path)] * moved
    for page in PAGES:                                    # always the newest
        if (notebooks.NOTEBOOKS / page).exists():
            write_bytes(copies() / page, (notebooks.NOTEBOOKS / page).read_bytes())
    if made:
        print(f"copied into {shown(copies())}: {', '.join(made)}")
    if renamed:
        print("; ".join(renamed))
    if changed:
        newer = ", ".join(changed)
        print(f"the course has newer versions of {newer}; yours are untouched. make update NB={changed[0]} gets you a new "
              "copy with your answers carried over")
    if stopped:
        print(f"your copies of {', '.join(stopped)} import modules that have moved, so they stop with 'No module named "
              f"course_utils. …'. make update NB={stopped[0]} fixes this and carries your answers and predictions over")


def calls_what_has_moved(notebook) -> bool:
    """Whether a cell imports a module of course_utils that isn't there any more."""
    for cell in notebook.cells:
        source = cell.source if cell.cell_type == "code" else ""
        for name in re.findall(r"^\s*from (course_utils(?:\.\w+)+) import", source, re.M):
            place = PACKAGE.joinpath(*name.split(".")[1:])
            if not place.is_dir() and not place.with_name(f"{place.name}.py").exists():
                return True
    return False


def fresh(name: str) -> None:
    """Put a new copy of one notebook into the working folder; keep the old one under a name with a number."""
    path = the_one(name)
    target = place_of(path)
    mine = target if target.exists() else copy_under_an_old_name(path)
    if mine is not None:
        n = 1
        while (kept := mine.with_name(f"kept-{n}-{mine.name}")).exists():
            n += 1                                        # the word first: in the list they come after the course's
        mine.rename(kept)
        print(f"your old copy is now {shown(kept)}")
    write_copy(path, target)
    print(f"a new copy is {shown(target)}")


def update(name: str) -> None:
    """Like `fresh`, but carry the learner's answers and predictions over; do nothing if the copy is up to date."""
    path = the_one(name)
    target = place_of(path)
    mine = target if target.exists() else copy_under_an_old_name(path) or target
    try:
        old = nbformat.read(mine, as_version=4)
        version, _ = old.metadata.get("course_version"), "".join(cell.source for cell in old.cells)
    except Exception:                                     # none there, or none that can be read: nothing to carry over
        old, version = nbformat.v4.new_notebook(), None
    if mine == target and version == fingerprint(nbformat.read(path, as_version=4)):
        print(f"{shown(target)} is the newest version already, so nothing changes")
        return
    fresh(name)
    notebook = nbformat.read(target, as_version=4)
    carried = carried_over(old, notebook)
    for cell, place in carried:
        if place is not None:
            place.source = cell.source
    if carried:
        write_notebook(notebook, target)
        trust(target)
        print(f"it has {sum(place is not None for _, place in carried)} of your {len(carried)} answers and predictions; "
              "everything else you wrote is in the old copy")


def _only(action: str, names: list[str]) -> str:
    if len(names) != 1:
        sys.exit(f"which one? For example: make {action} NB=04")
    return names[0]


def copy_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils copy`; returns the exit status, as all commands do."""
    given = [one for one in (sys.argv[1:] if arguments is None else arguments) if not one.startswith("-")]
    if given:
        sys.exit(f"copy takes no number, but got {' '.join(given)}; to make a new copy of one notebook, use fresh 04")
    parser = argparse.ArgumentParser(prog="python -m course_utils copy",
                                     description="Make any missing working copies; never overwrite one.")
    parser.parse_args(arguments)
    copy()
    return 0


def fresh_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils fresh 04`."""
    fresh(_only("fresh", names_on_the_line("fresh", arguments, "Make a new copy of one notebook and keep the old one.")))
    return 0


def update_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils update 04`."""
    update(_only("update", names_on_the_line("update", arguments, "Like fresh, but carry answers and predictions over.")))
    return 0
