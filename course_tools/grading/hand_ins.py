"""Notebooks that were handed in: which files they are, which course notebook each one is, where its exercises stand.

A hand-in is read once, as bytes, and nothing in it is believed: not its file name, not its number of exercises, not its
outputs. What counts as an exercise, and under which cell id it stands, is taken from the course's own notebooks.

Does: read files and plan what to execute. Does not: execute (see `reenact`) or judge (see `grading`).
"""

import ast
import json
import os
import re
import stat
import symtable
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from course_tools.teaching.editions import called_numbers
from course_utils.copies.notebooks import find, notebook_json, number_of
from course_utils.exercises.catalogue import list_exercises
from course_utils.files import sha256

LARGEST = 50_000_000                                    # bytes of a notebook
MOST_CELLS = 5_000
MAGIC = re.compile(r"^([ \t]*)[%!?].*$", re.MULTILINE)
SEEDING = ("random.seed", "np.random.seed", "torch.manual_seed")


class Cell(NamedTuple):
    """A cell: its id ('' where the file has none) and its source."""

    id: str
    source: str


class HandIn(NamedTuple):
    """A file with its bytes, and its code cells or what is the `trouble` with it; `others` are Markdown and raw cells."""

    path: Path
    content: bytes = b""
    cells: tuple[Cell, ...] = ()
    trouble: str = ""
    others: tuple[Cell, ...] = ()

    @property
    def sha256(self) -> str:
        return sha256(self.content) if self.content else ""


class Lesson(NamedTuple):
    """A notebook of the course: its number, name, code cells, and {exercise: (cell id, the name that it checks or '')}."""

    number: str
    name: str
    cells: tuple[Cell, ...]
    exercises: dict[str, tuple[str, str]]


class Step(NamedTuple):
    """A code cell to execute, and the exercises to look at after it, {number: name that the course checks there}.

    `needed` is false for a cell of the course that no exercise and no cell of the learner's depends on. `instead` is what
    the course has in its place, where a learner has changed a cell that holds no exercise.
    """

    source: str
    exercises: dict[str, str]
    needed: bool = True
    instead: str = ""


# ---------------------------------------------------------------- files


def hand_ins_in(places: list[Path]) -> list[HandIn]:
    """All notebooks among files and folders, read. Folders are searched; links are not followed."""
    found: list[HandIn] = []
    for place in places:
        if place.is_dir():
            found += [read_hand_in(path) for path in sorted(_notebooks_below(place))]
        else:
            found.append(read_hand_in(place))
    return found


def _notebooks_below(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".ipynb_checkpoints", ".git")]
        linked = [name for name in folders if os.path.islink(os.path.join(here, name))]
        for name in files + [name for name in folders if name in linked or name.lower().endswith(".ipynb")]:
            if name.lower().endswith(".ipynb") or name in linked:
                yield Path(here) / name


def read_hand_in(path: Path) -> HandIn:
    """Read one file; whatever is wrong with it is said in `trouble` and never raised."""
    try:
        state = os.lstat(path)
        if stat.S_ISLNK(state.st_mode):
            return HandIn(path, trouble="it is a link, which is not followed; hand in the file itself")
        if stat.S_ISDIR(state.st_mode):
            return HandIn(path, trouble="it is a folder, not a notebook")
        if not stat.S_ISREG(state.st_mode):
            return HandIn(path, trouble="it isn't a regular file")
        if state.st_size == 0:
            return HandIn(path, trouble="it is empty")
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
                          | getattr(os, "O_BINARY", 0)), "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        return HandIn(path, trouble=f"it cannot be read ({error.strerror})")
    except ValueError:
        return HandIn(path, trouble="it cannot be read (no file can have that name)")
    if len(content) > LARGEST:
        return HandIn(path, trouble=f"it is larger than {LARGEST // 10**6} MB; hand it in without its outputs")
    try:
        notebook = notebook_json(content)
        return HandIn(path, content, _cells(notebook, code=True), others=_cells(notebook, code=False))
    except ValueError as error:
        trouble = str(error).splitlines()[0][:100]
    return HandIn(path, content, trouble=trouble)


def _cells(notebook: dict, code: bool) -> tuple[Cell, ...]:
    """The code cells of a notebook in any format from 3 on, or those that aren't. Raises ValueError for anything else."""
    cells = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list):                       # nbformat 3
        sheets = [sheet for sheet in notebook["worksheets"] if isinstance(sheet, dict)]
        cells = [cell for sheet in sheets for cell in sheet.get("cells") or []]
    if not isinstance(cells, list):
        raise ValueError("it is JSON, but not a notebook: it has no list of cells")
    if len(cells) > MOST_CELLS:
        raise ValueError(f"it has {len(cells)} cells, more than {MOST_CELLS}")
    found = []
    for cell in cells:
        if not isinstance(cell, dict):
            raise ValueError("one of its cells isn't a cell")
        if (cell.get("cell_type") == "code") is not code:
            continue
        source = cell.get("source", cell.get("input", ""))
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise ValueError("the source of one of its cells isn't text")
        metadata = cell.get("metadata") if isinstance(cell.get("metadata"), dict) else {}
        name = cell.get("id", metadata.get("id", ""))                                        # Colab keeps it there
        found.append(Cell(name if isinstance(name, str) else "", source))
    return tuple(found)


# ---------------------------------------------------------------- which notebook, and where its exercises stand


def lessons() -> list[Lesson]:
    """The course's notebooks that have exercises, in order."""
    known, found = {exercise.id for exercise in list_exercises()}, []
    for path in find([]):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = _cells(notebook, code=True)
        exercises = {number: (cell.id, _checked_name(cell.source, number))
                     for cell in cells for number in called_numbers(cell.source) if number in known}
        if exercises:
            found.append(Lesson(number_of(path), path.stem, cells, exercises))
    return found


def _checked_name(source: str, number: str) -> str:
    """The name in exercise("4.2").check(name); '' where a value stands there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"exercise('{number}').check":
            return node.args[0].id if isinstance(node.args[0], ast.Name) else ""
    return ""


def lesson_of(hand_in: HandIn, known: list[Lesson]) -> Lesson | None:
    """The notebook of the course that a hand-in is a copy of, by its cells; None if it is none.

    Ids of exercise cells and numbers in `exercise("4.2").check(…)` count first, then the ids of other cells.
    """
    ids = {cell.id for cell in hand_in.cells}
    numbers = {number for cell in hand_in.cells for number in called_numbers(cell.source)}

    def in_common(lesson: Lesson) -> tuple[int, int]:
        exercises = sum(cell_id in ids or number in numbers for number, (cell_id, _) in lesson.exercises.items())
        return exercises, sum(cell.id in ids for cell in lesson.cells)

    best = max(known, key=in_common)
    exercises, cells = in_common(best)
    return best if exercises or 2 * cells > len(best.cells) else None


def steps_of(hand_in: HandIn, lesson: Lesson) -> tuple[list[Step], list[str]]:
    """The cells to execute in order, and the exercises whose cells are missing.

    An exercise is looked at after the cell with the course's id, and after the last other cell that checks it, where
    somebody worked on a copy.
    """
    looked: list[dict[str, str]] = [{} for _ in hand_in.cells]
    missing = []
    for number, (cell_id, name) in lesson.exercises.items():
        own = [i for i, cell in enumerate(hand_in.cells) if cell.id == cell_id]
        others = [i for i, cell in enumerate(hand_in.cells) if cell.id != cell_id and number in called_numbers(cell.source)]
        for i in own[-1:] + others[-1:]:
            looked[i][number] = name
        if not own and not others:
            missing.append(number)
    needed = _needed([cell.source for cell in hand_in.cells], {cell.source.strip() for cell in lesson.cells},
                     {i for i, numbers in enumerate(looked) if numbers})
    given = {cell.id: cell.source for cell in lesson.cells if cell.id not in {name for name, _ in lesson.exercises.values()}}
    instead = [source if (source := given.get(cell.id, cell.source)).strip() != cell.source.strip() else ""
               for cell in hand_in.cells]
    return [Step(cell.source, looked[i], i in needed, instead[i]) for i, cell in enumerate(hand_in.cells)], missing


def others_numbers(hand_in: HandIn, lesson: Lesson) -> list[str]:
    """Numbers that the hand-in checks and its notebook doesn't have: of another notebook, or of none."""
    called = [number for cell in hand_in.cells for number in called_numbers(cell.source)]
    return [number for number in dict.fromkeys(called) if number not in lesson.exercises]


# ---------------------------------------------------------------- what the exercises depend on


def _needed(sources: list[str], of_course: set[str], wanted: set[int]) -> set[int]:
    """The wanted cells, those that the learner wrote or changed, and those that define a name that these use."""
    named = [_names(source) for source in sources]
    needed = {i for i, source in enumerate(sources) if i in wanted or named[i] is None or source.strip() not in of_course}
    uses = {name for i in needed if named[i] for name in named[i][0]}
    while more := {i for i, names in enumerate(named) if i not in needed and names[1] & uses}:
        needed |= more
        uses |= {name for i in more for name in named[i][0]}
    return needed


def _names(source: str) -> tuple[set[str], set[str]] | None:
    """The names that a cell needs from outside, and those that it defines or changes; None if it can't be parsed."""
    uses: set[str] = set()
    sets: set[str] = set()
    try:
        for statement in _parsed(source).body:
            scopes = [symtable.symtable(ast.unparse(statement), "cell", "exec")]
            for scope in scopes:
                top = scope is scopes[0]
                scopes += scope.get_children()
                uses |= {symbol.get_name() for symbol in scope.get_symbols()
                         if symbol.is_referenced() and (top or symbol.is_global()) and symbol.get_name() not in sets}
            sets |= {symbol.get_name() for symbol in scopes[0].get_symbols() if symbol.is_assigned() or symbol.is_imported()}
            sets |= _changed(statement)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return (uses, sets | uses) if "*" in sets else (uses, sets)


def _parsed(source: str) -> ast.Module:
    """A cell as Python; where it has IPython's magics, such as %%time or !pip, without those lines. Raises SyntaxError."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse(MAGIC.sub(r"\1pass", source))


def _changed(statement: ast.stmt) -> set[str]:
    """Names whose object a statement changes: x[0] = …, x.size = …, x.append(…).

    torch.manual_seed(…) is no change of torch: each answer is run on seeds that are set anew (see `running.runs_of`).
    """
    parts = [node for node in ast.walk(statement) if isinstance(node, (ast.Attribute, ast.Subscript))
             and isinstance(node.ctx, ast.Store)]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        if ast.unparse(statement.value.func) not in SEEDING:
            parts.append(statement.value.func)
    found = set()
    for part in parts:
        whole = part
        while isinstance(part, (ast.Attribute, ast.Subscript)):
            part = part.value
        if isinstance(part, ast.Name) and part is not whole:
            found.add(part.id)
    return found
