"""Hand out working copies of the notebooks, and bring them up to date.

    python -m course_utils copy          copies in notebooks/my_copies, made once, never overwritten
    python -m course_utils fresh 04      a new copy of one; the old one stays, as kept-1-04_….ipynb
    python -m course_utils update 04     the same, with answers and predictions carried over

Copies begin without outputs, except those of START and the results, which show what they have before any kernel runs. Does:
find a learner's copy under the name that it had when it was made, and answers by the ids of their cells. Does not: change or
delete what a learner wrote, or execute anything.
"""

import argparse
import ast
import codecs
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import nbformat

from course_utils.copies import notebooks
from course_utils.copies.notebooks import is_exercise, names_on_the_line, notebook_json, number_of, write_notebook
from course_utils.files import sha256, write_bytes
from course_utils.moved import MODULES

PACKAGE = Path(__file__).resolve().parents[1]
ASKS = re.compile(r"""\b(exercise)\s*\(\s*["'](R?\d+[a-z]?\.\d+)["']\s*\)\s*\.\s*check\s*\(
                      |\b(predict)\s*\(\s*["']([^"']+)["']\s*,""", re.X)
UNPREDICTED = re.compile(r"""\s*None\s*\)""")            # what comes after ASKS where nothing has been predicted
MAGIC = re.compile(r"^[ \t]*[%!?].*$", re.M)
UNREAD = "course_unread"                                  # in a new copy's metadata: the old one that couldn't be read
MENDS = {                                                 # by a word of what `notebook_json` says
    "conflict": "open it in a text editor, keep one side of each conflict, and delete the lines that begin with <<<<<<<, "
                "======= and >>>>>>>",
    "UTF-": "open it in a text editor and save it in UTF-8",
    "not text": "open it in a text editor that can read its encoding, and save it in UTF-8",
    "empty": "if you have a whole one elsewhere, in a backup or in .ipynb_checkpoints beside it, give that one its name",
    "Permission": "change its permissions, so that you may read it",
}
MEND = ("if you have a whole one elsewhere, in a backup or in .ipynb_checkpoints beside it, give that one its name; what is "
        "left of your answers in this one can be read in a text editor")
PAGES = ["notation_and_glossary.md", "results.md"]        # that the notebooks link to, or their readers want beside them
WITH_OUTPUTS = ("START", "results_part_")                 # how notebooks begin whose copies keep the saved outputs
GONE = "the new version doesn't ask for it"
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")


def copies() -> Path:
    """The folder of the working copies; extras are in a folder of it, so that links between notebooks lead on."""
    return notebooks.NOTEBOOKS / "my_copies"


def place_of(path: Path) -> Path:
    """Where the working copy of a notebook is, or would be."""
    return copies() / path.relative_to(notebooks.NOTEBOOKS)


def copy_under_an_old_name(path: Path) -> Path | None:
    """A learner's copy of a notebook that has been renamed since, or was an extra; None if there is none."""
    old = [place_of(folder / f"{name}.ipynb") for name, now in notebooks.RENAMED.items() if now == path.stem
           for folder in (path.parent, notebooks.NOTEBOOKS / notebooks.EXTRAS)]
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
    return number_of(path) or path.stem


def shown(path: Path) -> str:
    return path.relative_to(notebooks.ROOT).as_posix()


def fingerprint(notebook) -> str:
    """Changes when a cell's source changes, whatever its outputs."""
    return _digest("\0".join(f"{cell.cell_type}\0{cell.source}" for cell in notebook.cells))


def asks(cell) -> str:
    """What a code cell asks the learner: 'exercise("4.2")' or 'predict("04-reach")'; empty if it asks nothing."""
    return next(iter(questions(cell.source)), "") if cell.cell_type == "code" else ""


def questions(source: str) -> dict[str, bool]:
    """Everything that a source asks, and whether it's still unanswered for certain: a prediction that is None."""
    return {f'{found[1] or found[3]}("{found[2] or found[4]}")': bool(UNPREDICTED.match(source, found.end()) and found[3])
            for found in ASKS.finditer(source)}


class Answer(NamedTuple):
    """A learner's answer or prediction: what it answers, its source, the cell of the new notebook for it, or None.

    `remark` says what was done to it, or why there's no cell.
    """

    asked: str
    source: str
    place: object | None = None
    remark: str = ""


def carried_over(old, new) -> list[Answer]:
    """The answers and predictions that the learner wrote into the cells of `old`, each with its cell of `new`, or None.

    A cell is found by its id, else by what it asks: other programs change the ids or drop them (Colab, JupyterLab before
    version 3). A cell that is as it was handed out, and a prediction that is still None, are nobody's answer. An answer that
    has been split into several cells is put together; one in a raw or Markdown cell is taken if it is Python.
    """
    places = [cell for cell in new.cells if asks(cell)]
    by_id, by_question = ({key(cell): cell for cell in places} for key in (lambda cell: cell.id, asks))
    by_origin = {}                                        # what a cell was when handed out: the parts of a split share it
    for cell in old.cells:
        if (place := by_id.get(cell.get("id")) or by_question.get(asks(cell))) and "course_source" in cell.metadata:
            by_origin.setdefault(cell.metadata["course_source"], place)
    parts: dict[str, list] = {}
    nowhere = []
    for cell in old.cells:
        ours = by_id.get(cell.get("id"))
        asked = asks(_as_code(cell))
        if not (ours or asked or is_exercise(cell) or "course_source" in cell.metadata):
            continue
        place = ours or by_question.get(asked) or (None if asked else by_origin.get(cell.metadata.get("course_source")))
        if place is None:
            nowhere.append(cell)
        else:
            parts.setdefault(place.id, []).append(cell)
    taken = {id(cell) for some in (*parts.values(), nowhere) for cell in some}
    found = []
    for place in places:
        if some := parts.get(place.id):
            some = _with_definition(some, place, [cell for cell in old.cells if id(cell) not in taken], old.cells)
            found += _answers(some, place, old.cells)
    gone = [Answer(asks(_as_code(cell)) or "a cell of an exercise", cell.source, None, GONE)
            for cell in nowhere if not _untouched([cell], None)]
    answered = {answer.asked for answer in found}
    merged = [Answer(other, "", None, f"it's in the cell of {answer.asked}")
              for answer in found if answer.place is not None
              for other, open_ in questions(answer.source).items()
              if not open_ and other not in answered and other not in questions(answer.place.source)]
    return found + gone + merged


def _answers(some: list, place, order: list) -> list[Answer]:
    """What the cells for one place come to: usually one answer, with a remark where they had to be put together."""
    asked = asks(place)
    some = [cell for cell in some if not _untouched([cell], place)]
    if not some or _untouched(some, place):
        return []
    prose = [cell for cell in some if cell.cell_type != "code" and not asks(_as_code(cell)) and not _is_python(cell.source)]
    some = [cell for cell in some if all(cell is not other for other in prose)]
    asking = [cell for cell in some if asked in questions(cell.source)]
    kept = [cell for cell in some if all(cell is not other for other in asking[1:])]
    if len(kept) > 1 and asking and not _defined(asking[0].source) and not _beside(asking[0], kept, order):
        kept = [cell for cell in kept if cell is not asking[0]]
        moved = [Answer(asked, asking[0].source, None, "the cell with its check, far from the answer, which is there")]
    else:
        moved = []
    found = [Answer(asked, cell.source, None, f"its cell had become a {_kind(cell)} cell, and holds no Python")
             for cell in prose]
    if kept:
        remarks = [f"its cell had become a {_kind(cell)} cell, and is a code cell again" for cell in kept
                   if cell.cell_type != "code"]
        remarks += [f"put together from {len(kept)} cells"] * (len(kept) > 1)
        joined = kept[0].source if len(kept) == 1 else "\n\n".join(cell.source.strip("\n") for cell in kept)
        found.insert(0, Answer(asked, joined, place, "; ".join(dict.fromkeys(remarks))))
    seconds = [Answer(asked, cell.source, None, "a second cell for it; the first has its place") for cell in asking[1:]]
    return found + moved + seconds


def _beside(cell, others: list, order: list) -> bool:
    """Whether the code cell above or below is one of the others."""
    code = [one for one in order if one.cell_type != "markdown"]
    at = next((i for i, one in enumerate(code) if one is cell), 0)
    return any(one is other for one in code[max(at - 1, 0) : at + 2] for other in others if other is not cell)


def _with_definition(some: list, place, others: list, order: list) -> list:
    """The cells for a place, with the nearest one above that defines the checked name, where the answer was split so."""
    name = re.search(r"\.check\(\s*(\w+)\s*\)", place.source)
    if not name or name[1] not in _defined(place.source) or any(name[1] in _defined(cell.source) for cell in some):
        return some
    before = order[: min(next(i for i, cell in enumerate(order) if cell is one) for one in some)]
    above = [cell for cell in before if any(cell is other for other in others)
             and cell.cell_type == "code" and name[1] in _defined(cell.source)]
    return [*above[-1:], *some]


def _untouched(some: list, place) -> bool:
    """Whether cells are, one after the other, what was handed out or what the new version has; or unanswered predictions."""
    origins = {cell.metadata.get("course_source") for cell in some} - {None}
    for joined in ("\n".join(cell.source for cell in some), "\n\n".join(cell.source for cell in some)):
        if _digest(joined) in origins or place is not None and joined == place.source:
            return True
    return not origins and all(asked and all(asked.values()) for asked in (questions(cell.source) for cell in some))


def _as_code(cell):
    """A raw or Markdown cell that is Python all the same, as a code cell; any other as it is."""
    if cell.cell_type == "code" or not ASKS.search(cell.source) or not _is_python(cell.source):
        return cell
    return nbformat.v4.new_code_cell(cell.source)


def _kind(cell) -> str:
    return {"markdown": "Markdown"}.get(cell.cell_type, cell.cell_type)


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(MAGIC.sub("pass", source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_python(source: str) -> bool:
    """Whether it's a program: a single word or a heading in Markdown would be one, too."""
    tree = _parsed(source)
    lines = tree.body if tree else []
    return any(not isinstance(getattr(line, "value", None), ast.Name | ast.Constant) for line in lines)


def _defined(source: str) -> set[str]:
    """The names that a source defines or assigns at its top level."""
    tree = _parsed(source)
    names = set()
    for line in tree.body if tree else ():
        targets = getattr(line, "targets", [getattr(line, "target", None)])
        names |= {node.id for target in targets if target for node in ast.walk(target) if isinstance(node, ast.Name)}
        names |= {line.name} if isinstance(line, ast.FunctionDef | ast.ClassDef) else set()
    return names


class Copy(NamedTuple):
    """A learner's copy: the notebook, or None where there's none or it can't be read; then `trouble` says why.

    `marked`: it begins with a byte-order mark, with which JupyterLab doesn't open it.
    """

    notebook: object | None = None
    trouble: str = ""
    marked: bool = False


def read_copy(path: Path) -> Copy:
    """Read a copy, whatever program saved it; whatever is wrong with it is said in `trouble` and never raised."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Copy()
    except OSError as error:
        return Copy(trouble=f"it can't be opened ({error.strerror})")
    try:
        notebook = nbformat.reads(json.dumps(notebook_json(content)), as_version=4)
    except ValueError as error:
        return Copy(trouble=(str(error).splitlines() or ["it isn't a notebook"])[0][:100])
    except Exception:
        return Copy(trouble="it is JSON, but not a notebook that can be read")
    if not all(isinstance(cell.get("source"), str) for cell in notebook.get("cells", [{}])):
        return Copy(trouble="it is JSON, but not a whole notebook: a cell has no text")
    return Copy(notebook, marked=content.startswith(codecs.BOM_UTF8))


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

    START and the results keep their outputs.
    """
    notebook = nbformat.read(path, as_version=4)
    version = fingerprint(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code" and not path.stem.startswith(WITH_OUTPUTS):
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
        mine, trouble, marked = read_copy(old or target)
        if mine is None:
            print(f"{shown(old or target)} cannot be read and is left alone; make fresh NB={short(path)} makes a new copy. "
                  f"What's wrong with it: {trouble}. To mend it, {how_to_mend(trouble)}")
            continue
        if marked:
            print(f"{shown(old or target)} begins with a byte-order mark, and JupyterLab may not open it; make update "
                  f"NB={short(path)} gets you a copy without")
        copied, moved = mine.metadata.get("course_version"), calls_what_has_moved(mine)
        if old or copied != fingerprint(nbformat.read(path, as_version=4)):
            changed.append(short(path))
            stopped += [short(path)] * moved
    for page in PAGES:                                    # always the newest
        if (notebooks.NOTEBOOKS / page).exists():
            write_bytes(copies() / page, (notebooks.NOTEBOOKS / page).read_bytes())
    if made:
        more = f" and {len(made) - 3} more" if len(made) > 4 else ""
        print(f"copied into {shown(copies())}: {', '.join(made[:3] if more else made)}{more}")
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
            if name not in MODULES and not place.is_dir() and not place.with_name(f"{place.name}.py").exists():
                return True
    return False


def how_to_mend(trouble: str) -> str:
    """What to do about a copy that can't be read."""
    return next((mend for word, mend in MENDS.items() if word in trouble), MEND)


def fresh(name: str) -> Path | None:
    """Put a new copy of one notebook into the working folder; keep the old one under a name with a number, and return it."""
    path = the_one(name)
    target = place_of(path)
    mine = target if target.exists() else copy_under_an_old_name(path)
    kept = None
    if mine is not None:
        n = 1
        while (kept := mine.with_name(f"kept-{n}-{mine.name}")).exists():
            n += 1                                        # the word first: in the list they come after the course's
        mine.rename(kept)
        print(f"your old copy is now {shown(kept)}")
    write_copy(path, target)
    print(f"a new copy is {shown(target)}")
    return kept


def update(name: str) -> None:
    """Like `fresh`, but carry the learner's answers and predictions over; do nothing if the copy is up to date.

    Answers in a copy that can't be read are carried over by a later `update`, once that copy has been mended.
    """
    path = the_one(name)
    target = place_of(path)
    mine = target if target.exists() else copy_under_an_old_name(path) or target
    old, trouble, marked = read_copy(mine)
    unread = None if old is None else old.metadata.get(UNREAD)
    version = None if old is None else old.metadata.get("course_version")
    if mine == target and not marked and version == fingerprint(nbformat.read(path, as_version=4)):
        if unread is None:
            print(f"{shown(target)} is the newest version already, so nothing changes")
        else:
            _carry_from_kept(target, old, path)
        return
    kept = fresh(name)
    notebook = nbformat.read(target, as_version=4)
    if trouble:
        notebook.metadata[UNREAD] = kept.name
        _write(notebook, target)
        _say_unread(kept, trouble, path)
        return
    if old is not None:
        _carry(old, notebook, path)
        if unread is not None:
            notebook.metadata[UNREAD] = unread
        _write(notebook, target)
    if unread is not None:
        _carry_from_kept(target, notebook, path)


def _write(notebook, target: Path) -> None:
    write_notebook(notebook, target)
    trust(target)


def _is_open(cell) -> bool:
    """Whether a cell of a copy is as it was handed out."""
    return cell.metadata.get("course_source") == _digest(cell.source)


def _carry(old, notebook, path: Path) -> None:
    """Put the answers of `old` into the cells of `notebook`, and say which, and which not. An answer there stays.

    What another notebook than `path` asks for now goes into the copy of that one.
    """
    answers, elsewhere = carried_over(old, notebook), []
    for i, answer in enumerate(answers):
        if answer.place is not None and not _is_open(answer.place):
            answers[i] = answer._replace(place=None, remark="the new copy has an answer of yours already")
        elif answer.remark == GONE and (other := asked_in(answer.asked, path)):
            trouble, where = _put_into(other, answer), f"{answer.asked} is in {other.name} now"
            answers[i] = answer._replace(remark=trouble and f"it is in {other.name} now, but {trouble}")
            elsewhere += [] if trouble else [f"{where}, and so is your answer: {shown(place_of(other))}"]
    answers = [answer for answer in answers if answer.place is not None or answer.remark]
    for answer in answers:
        if answer.place is not None:
            answer.place.source = answer.source
    there = [answer for answer in answers if answer.place is not None]
    print(f"it has {len(there)} of your {len(answers)} answers and predictions; everything else you wrote is in the old "
          "copy")
    for answer in answers:
        if answer.place is None:
            print(f"not carried over: {answer.asked}: {answer.remark}")
        elif answer.remark:
            print(f"{answer.asked}: {answer.remark}")
    for line in elsewhere:
        print(line)


def asked_in(asked: str, besides: Path) -> Path | None:
    """Which notebook other than `besides` asks for something, such as 'exercise("2.6")'; None if none does."""
    return next((path for path in notebooks.everything() if path != besides
                 and any(asks(cell) == asked for cell in nbformat.read(path, as_version=4).cells)), None)


def _put_into(path: Path, answer: Answer) -> str:
    """Put an answer into its cell in the copy of another notebook, which is made if it's missing; say why not, or ''."""
    target = place_of(path)
    if not target.exists():
        write_copy(path, target)
    copied, trouble, _ = read_copy(target)
    if trouble:
        return f"your copy of that can't be read: {trouble}"
    place = next((cell for cell in copied.cells if asks(cell) == answer.asked), None)
    if place is None:
        return f"your copy of that is older; make update NB={short(path)}, then write it there"
    if not _is_open(place):
        return "your copy of that has an answer of yours already"
    place.source = answer.source
    _write(copied, target)
    return ""


def _carry_from_kept(target: Path, notebook, path: Path) -> None:
    """Take answers from an older copy that couldn't be read when `target` was made, if it can be read now."""
    kept = target.with_name(notebook.metadata[UNREAD])
    old, trouble, _ = read_copy(kept)
    if trouble:
        _say_unread(kept, trouble, path)
        return
    if old is None:
        print(f"{shown(kept)}, which couldn't be read, isn't there any more, so nothing changes")
    else:
        print(f"{shown(kept)} can be read now; the copy to work with is {shown(target)}")
        _carry(old, notebook, path)
    del notebook.metadata[UNREAD]
    _write(notebook, target)


def _say_unread(kept: Path, trouble: str, path: Path) -> None:
    print(f"{shown(kept)} can't be read, so your answers and predictions are not in the new copy: {trouble}. The file is "
          f"as it was. To have them carried over, {how_to_mend(trouble)}. Then give the command again: make update "
          f"NB={short(path)}")


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
