"""Working copies are a learner's own, whatever the course does."""

import json

import nbformat
import pytest
from small_course import make_course, small_notebook

from course_utils.copies import commands as copies
from course_utils.copies import notebooks


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Two notebooks in a folder of their own; returns the folder of the copies."""
    return make_course(tmp_path, monkeypatch) / "my_copies"


def test_copies_are_made_with_their_outputs_cleared(course, capsys):
    copies.copy()
    assert sorted(path.name for path in course.iterdir()) == ["00_first.ipynb", "01_second.ipynb"]
    copied = nbformat.read(course / "00_first.ipynb", as_version=4)
    assert [cell.source for cell in copied.cells] == ["# Sums", "1 + 1"]
    assert copied.cells[1].outputs == [] and copied.cells[1].execution_count is None
    assert copied.cells[1].id == "sum" and copied.cells[1].metadata.tags == ["kept"]
    original = nbformat.read(notebooks.NOTEBOOKS / "00_first.ipynb", as_version=4)
    assert original.cells[1].outputs and original.cells[1].execution_count == 1
    assert "00_first, 01_second" in capsys.readouterr().out


def test_a_copy_is_made_once_and_never_overwritten(course, capsys):
    copies.copy()
    mine = course / "00_first.ipynb"
    edited = nbformat.read(mine, as_version=4)
    edited.cells[1].source = "my answer"
    nbformat.write(edited, mine)
    before = mine.read_bytes()
    capsys.readouterr()
    copies.copy()
    assert mine.read_bytes() == before
    assert capsys.readouterr().out == ""                                   # the course itself has not changed


def test_a_newer_course_notebook_is_announced_and_the_copy_untouched(course, capsys):
    copies.copy()
    before = (course / "01_second.ipynb").read_bytes()
    nbformat.write(small_notebook("2 + 2"), notebooks.NOTEBOOKS / "01_second.ipynb")
    capsys.readouterr()
    copies.copy()
    said = capsys.readouterr().out
    assert "newer versions of 01;" in said and "make update NB=01" in said
    assert (course / "01_second.ipynb").read_bytes() == before


@pytest.mark.parametrize(("source", "stops"), [
    ("from course_utils.analysis import RECIPES", True), ("x = 1\nfrom course_utils.data.gone import x", True),
    ("from course_utils.attention import causal_mask\nfrom course_utils.experiments.recipes import RECIPES", False),
])
def test_a_copy_that_imports_what_has_moved_is_told_that_an_update_mends_it(course, capsys, source, stops):
    nbformat.write(small_notebook(source), notebooks.NOTEBOOKS / "01_second.ipynb")
    copies.copy()
    capsys.readouterr()
    nbformat.write(small_notebook("2 + 2"), notebooks.NOTEBOOKS / "01_second.ipynb")
    copies.copy()
    said = capsys.readouterr().out
    assert "make update NB=01" in said and ("your copies of 01 import modules that have moved" in said) is stops


def test_new_outputs_alone_are_no_newer_version(course, capsys):
    copies.copy()
    executed = small_notebook()
    executed.cells[1].outputs, executed.cells[1].execution_count = [], 7
    nbformat.write(executed, notebooks.NOTEBOOKS / "01_second.ipynb")
    capsys.readouterr()
    copies.copy()
    assert capsys.readouterr().out == ""


def test_fresh_gives_a_new_copy_and_keeps_every_old_one(course, capsys):
    copies.copy()
    mine = course / "00_first.ipynb"
    for n in (1, 2):
        mine.write_bytes(f"my work {n}".encode())
        copies.fresh("00")
        assert nbformat.read(mine, as_version=4).cells[1].source == "1 + 1"
    assert (course / "kept-1-00_first.ipynb").read_bytes() == b"my work 1"
    assert (course / "kept-2-00_first.ipynb").read_bytes() == b"my work 2"
    assert "your old copy is now" in capsys.readouterr().out
    copies.copy()                                                       # kept files are no course notebooks
    assert len(list(course.iterdir())) == 4


@pytest.mark.parametrize(("number", "message"), [
    ("7", "no notebook '7'; there are 00_first, 01_second"), ("", "no notebook ''"), ("*", r"no notebook '\*'")])
def test_fresh_needs_the_number_of_one_notebook(course, number, message):
    with pytest.raises(SystemExit, match=message):
        copies.fresh(number)
    assert not course.exists()


def lesson(stub, extra=()):
    """A notebook with two exercise cells, the first of them open."""
    cells = [nbformat.v4.new_markdown_cell("# A lesson", id="title")]
    for name, source in (("first", stub), ("second", "def double(x): ...\nexercise('1.2').check(double)"), *extra):
        cells.append(nbformat.v4.new_code_cell(source, id=name, metadata={"tags": ["exercise"]}))
    return nbformat.v4.new_notebook(cells=cells)


NO_SOURCE = (b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "id": "a", '
             b'"metadata": {}, "outputs": [], "execution_count": null%s}]}')


def answered(name="01_second"):
    """A course notebook with two exercises and two predictions, its copy with one of each answered; the path of the copy."""
    cells = [("guess-a", 'guess = predict("01-a", None)', []), ("guess-b", 'other = predict("01-b", None)', [])]
    first = lesson("def half(x): ...\nexercise('1.1').check(half)")
    first.cells += [nbformat.v4.new_code_cell(source, id=i, metadata={"tags": tags}) for i, source, tags in cells]
    nbformat.write(first, notebooks.NOTEBOOKS / f"{name}.ipynb")
    copies.copy()
    mine = nbformat.read(copies.copies() / f"{name}.ipynb", as_version=4)
    mine.cells[1].source = "def half(x): return x / 2\nexercise('1.1').check(half)"
    mine.cells[3].source = 'guess = predict("01-a", 0.25)'
    nbformat.write(mine, copies.copies() / f"{name}.ipynb")
    first.cells[0].source = "# A better lesson"
    first.cells[2].source = first.cells[2].source.replace("double", "twice")
    first.cells.insert(1, nbformat.v4.new_code_cell('new = predict("01-new", None)', id="guess-new"))
    nbformat.write(first, notebooks.NOTEBOOKS / f"{name}.ipynb")
    return copies.copies() / f"{name}.ipynb"


def as_colab_saves_it(content):
    """Format 4.0 without ids, a metadata.id that Colab draws, and no metadata that it does not know."""
    content["nbformat_minor"], content["metadata"] = 0, {"colab": {"provenance": []}}
    for i, each in enumerate(content["cells"]):
        del each["id"]
        each["metadata"] = {"id": f"Xy{i}"}


def as_jupyterlab_2_saves_it(content):
    content["nbformat_minor"] = 4
    for each in content["cells"]:
        del each["id"]


def as_drawn_ids(content):
    for i, each in enumerate(content["cells"]):
        each["id"] = f"{i:08x}"


@pytest.mark.parametrize("saved", [None, as_colab_saves_it, as_jupyterlab_2_saves_it, as_drawn_ids])
def test_answers_and_predictions_are_carried_over_whatever_program_saved_the_copy(course, saved, capsys):
    mine = answered()
    if saved is not None:
        content = json.loads(mine.read_text(encoding="utf-8"))
        saved(content)
        mine.write_text(json.dumps(content), encoding="utf-8")
    before = mine.read_bytes()
    copies.update("01")
    assert (course / "kept-1-01_second.ipynb").read_bytes() == before
    updated = nbformat.read(mine, as_version=4)
    nbformat.validate(updated)
    sources = {each.id: each.source for each in updated.cells}
    assert sources["first"] == "def half(x): return x / 2\nexercise('1.1').check(half)"
    assert sources["guess-a"] == 'guess = predict("01-a", 0.25)'
    assert sources["guess-b"].endswith('predict("01-b", None)') and sources["guess-new"].endswith('predict("01-new", None)')
    assert sources["title"] == "# A better lesson"
    if saved is not as_colab_saves_it:                                     # which forgets what was handed out
        assert "twice" in sources["second"]
        assert "2 of your 2 answers and predictions" in capsys.readouterr().out
    kept = updated.metadata["course_version"]
    copies.update("01")                                                 # a second time there is nothing new
    assert nbformat.read(mine, as_version=4).metadata["course_version"] == kept
    assert not (course / "kept-2-01_second.ipynb").exists()


@pytest.fixture
def renamed(course, monkeypatch):
    """The second notebook is called 01_next now; the learner's copy of it, with answers, has its old name still."""
    mine = answered()
    (notebooks.NOTEBOOKS / "01_second.ipynb").rename(notebooks.NOTEBOOKS / "01_next.ipynb")
    monkeypatch.setattr(notebooks, "RENAMED", {"01_second": "01_next"})
    return mine


def test_a_copy_under_an_old_name_is_left_alone_and_said_to_be_old(course, renamed, capsys):
    before = renamed.read_bytes()
    capsys.readouterr()
    copies.copy()
    said = capsys.readouterr().out
    assert "notebooks/my_copies/01_second.ipynb is now called 01_next.ipynb" in said
    assert "make update NB=01 gets you a new copy" in said
    assert renamed.read_bytes() == before and not (course / "01_next.ipynb").exists()


@pytest.mark.parametrize("name", ["1", "01_second"])
def test_answers_under_an_old_name_are_carried_to_the_new_one(course, renamed, name, capsys):
    before = renamed.read_bytes()
    copies.update(name)
    assert "2 of your 2 answers and predictions" in capsys.readouterr().out
    assert (course / "kept-1-01_second.ipynb").read_bytes() == before and not renamed.exists()
    sources = {each.id: each.source for each in nbformat.read(course / "01_next.ipynb", as_version=4).cells}
    assert sources["first"] == "def half(x): return x / 2\nexercise('1.1').check(half)"
    assert sources["guess-a"] == 'guess = predict("01-a", 0.25)'
    copies.update(name)
    copies.copy()
    assert "newest version already" in capsys.readouterr().out and not (course / "kept-1-01_next.ipynb").exists()


def test_answers_in_a_copy_of_an_extra_are_carried_to_the_notebook_that_it_became(course, monkeypatch, capsys):
    mine = answered()
    (course / "extras").mkdir(exist_ok=True)
    old = mine.rename(course / "extras" / "halves.ipynb")
    (notebooks.NOTEBOOKS / "01_second.ipynb").rename(notebooks.NOTEBOOKS / "01_next.ipynb")
    monkeypatch.setattr(notebooks, "RENAMED", {"halves": "01_next"})
    copies.copy()
    assert "notebooks/my_copies/extras/halves.ipynb is now called 01_next.ipynb" in capsys.readouterr().out and old.exists()
    copies.update("halves")
    assert "2 of your 2 answers and predictions" in capsys.readouterr().out
    assert (course / "extras" / "kept-1-halves.ipynb").exists() and not old.exists()
    sources = {each.id: each.source for each in nbformat.read(course / "01_next.ipynb", as_version=4).cells}
    assert sources["guess-a"] == 'guess = predict("01-a", 0.25)'


def test_every_old_name_is_free_and_leads_to_a_notebook_of_today():
    names = {path.stem for path in notebooks.everything()}
    assert not set(notebooks.RENAMED) & names and set(notebooks.RENAMED.values()) <= names


# Every shape of copy: what was written is carried over, or a line says that it isn't, and why.

STUB = "def half(x): ...\nexercise('1.1').check(half)"
HALF = "def half(x): return x / 2"
CHECK = "exercise('1.1').check(half)"


def cell_of(content, name):
    return next(each for each in content["cells"] if each["id"] == name)


def edited(change):
    """A change of the copy's JSON."""
    def write(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")
    return write


def in_bytes(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


def of_kind(kind, source=None, name="first"):
    def change(content):
        cell = cell_of(content, name)
        cell["cell_type"] = kind
        cell.pop("outputs", None), cell.pop("execution_count", None)
        if source is not None:
            cell["source"] = source
    return edited(change)


def code(source, name, like=None):
    return {"cell_type": "code", "id": name, "metadata": dict(like["metadata"]) if like else {}, "source": source,
            "outputs": [], "execution_count": None}


def split(first_keeps_the_id=True, metadata=True, between=(), first=HALF, second=CHECK, ids=True):
    def change(content):
        at = content["cells"].index(cell_of(content, "first"))
        old = content["cells"][at]
        names = ("first", "drawn") if first_keeps_the_id else ("drawn", "first")
        parts = [code(source, name, old if metadata or name == "first" else None)
                 for source, name in zip((first, second), names)]
        content["cells"][at : at + 1] = [parts[0], *between, parts[1]]
        if not ids:
            as_colab_saves_it(content)
    return edited(change)


def also(source, name="other", like=None, at=None):
    def change(content):
        place = len(content["cells"]) if at is None else at
        content["cells"].insert(place, code(source, name, cell_of(content, like) if like else None))
    return edited(change)


MARKDOWN = {"cell_type": "markdown", "id": "note", "metadata": {}, "source": "my note"}
MARK = b"\xef\xbb\xbf"
CODE_AGAIN = 'exercise("1.1"): its cell had become a raw cell, and is a code cell again'
GONE = 'not carried over: exercise("1.9"): the new version doesn\'t ask for it'
WHOLE, TWO_OF_TWO = f"{HALF}\n{CHECK}", "it has 2 of your 2 answers and predictions"
MERGED = f'{WHOLE}\nexercise("1.2").check(int)'
JOINED = f"{HALF}\n\n{CHECK}"
SHAPES = {                                              # change, the source of the first exercise afterwards, words printed
    "a mark and CRLF": (in_bytes(lambda content: MARK + content.replace(b"\n", b"\r\n")), WHOLE, [TWO_OF_TWO]),
    "raw": (of_kind("raw"), WHOLE, [TWO_OF_TWO, CODE_AGAIN]),
    "raw, a prediction": (of_kind("raw", name="guess-a"), WHOLE, [TWO_OF_TWO, 'predict("01-a"): its cell had become a raw']),
    "Markdown, prose": (of_kind("markdown", "I don't know."), "def half(x): ...\n" + CHECK,
                        ["it has 1 of your 2", 'not carried over: exercise("1.1"): its cell had become a Markdown cell, and '
                         "holds no Python"]),
    "split": (split(), JOINED, [TWO_OF_TWO, 'exercise("1.1"): put together from 2 cells']),
    "split, id below, no metadata": (split(first_keeps_the_id=False, metadata=False), JOINED, [TWO_OF_TWO, "put toge"]),
    "split, by Colab": (split(ids=False), JOINED, ["put together from 2 cells"]),
    "split, the check far below": (lambda path: (split(second="pass")(path), also(CHECK)(path)), f"{HALF}\n\npass",
                                   ["it has 2 of your 3", "the cell with its check, far from the answer"]),
    "the check above, another cell between": (
        lambda path: (of_kind("code", HALF)(path), also(CHECK, at=1)(path), also("x = 1", "scratch", at=2)(path)), HALF,
        ["it has 2 of your 3", "the cell with its check, far from the answer"]),
    "a second answer": (also(WHOLE.replace("x / 2", "x * 0.5")), WHOLE, ["it has 2 of your 3", "a second cell for it"]),
    "merged": (edited(lambda content: (cell_of(content, "first").update(source=MERGED),
                                       content["cells"].remove(cell_of(content, "second")))),
               MERGED, ["it has 2 of your 3", 'exercise("1.2"): it\'s in the cell of exercise("1.1")']),
    "a syntax error": (edited(lambda content: cell_of(content, "first").update(source=f"def half(x) return\n{CHECK}")),
                       f"def half(x) return\n{CHECK}", [TWO_OF_TWO]),
    "the check deleted": (edited(lambda content: cell_of(content, "first").update(source=HALF)), HALF, [TWO_OF_TWO]),
    "a remark on a guess that is None": (edited(lambda content: cell_of(content, "guess-b").update(
        source='# I would say 3\nother = predict("01-b", None)')), WHOLE, ["it has 3 of your 3"]),
    "an exercise that is gone": (also("exercise('1.9').check(3)", like="first"), WHOLE, ["it has 2 of your 3", GONE]),
    }


@pytest.mark.parametrize(("change", "first", "words"), SHAPES.values(), ids=SHAPES.keys())
def test_whatever_happened_to_a_copy_its_answers_are_carried_over_or_named(change, first, words, course, capsys):
    mine = answered()
    change(mine)
    before = mine.read_bytes()
    capsys.readouterr()
    copies.update("01")
    said = capsys.readouterr().out
    for word in words:
        assert word in said, said
    assert (course / "kept-1-01_second.ipynb").read_bytes() == before
    updated = nbformat.read(mine, as_version=4)
    nbformat.validate(updated)
    cells = {each.id: each for each in updated.cells}
    assert cells["first"].cell_type == "code" and "0.25" in cells["guess-a"].source or "0 of your 0" in said
    assert first is None or cells["first"].source == first
    copies.update("01")
    assert "newest version already" in capsys.readouterr().out


def conflict(content):
    lines = content.splitlines()
    return b"\n".join([*lines[:5], b"<<<<<<< HEAD", lines[5], b"=======", lines[5], b">>>>>>> theirs", *lines[6:]])


UNREADABLE = {                                          # change, what is said of it, what to do
    "UTF-16": (lambda content: content.decode().encode("utf-16"), "it is text in UTF-16", "save it in UTF-8"),
    "Latin-1": (lambda content: content.replace(b"01-a", b"01-\xe9"), "it is not text in UTF-8", "save it in UTF-8"),
    "a conflict": (conflict, "git has left a merge conflict in it (line 6 begins with <<<<<<<)", "keep one side of each"),
    "cut off": (lambda content: content[: len(content) // 2], "it is not JSON (line", "in .ipynb_checkpoints beside it"),
    "nothing but space": (lambda content: b"\n \n", "it is empty", "in .ipynb_checkpoints"),
    "a cell without a source": (lambda content: NO_SOURCE % b"", "it is JSON, but not a", "in .ipynb_checkpoints"),
    "brackets": (lambda content: b"[" * 100_000, "its JSON is nested too deeply", "in .ipynb_checkpoints"),
}


@pytest.mark.parametrize(("damage", "trouble", "mend"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_copy_that_cannot_be_read_is_named_and_carried_over_once_it_is_mended(damage, trouble, mend, course, capsys):
    mine = answered()
    whole = mine.read_bytes()
    mine.write_bytes(damage(whole))
    damaged = mine.read_bytes()
    capsys.readouterr()
    copies.copy()
    said = capsys.readouterr().out
    assert "01_second.ipynb cannot be read and is left alone; make fresh NB=01" in said and trouble in said and mend in said
    kept = course / "kept-1-01_second.ipynb"
    for _ in range(2):                                  # the second time it is still not mended
        copies.update("01")
        said = capsys.readouterr().out
        unread = f"{copies.shown(kept)} can't be read, so your answers and predictions are not in the new copy: {trouble}"
        assert unread in said
        assert mend in said and "Then give the command again: make update NB=01" in said
        assert kept.read_bytes() == damaged and len(list(course.glob("kept-*"))) == 1
    begun = nbformat.read(mine, as_version=4)           # meanwhile another answer is written into the new copy
    next(each for each in begun.cells if each.id == "guess-a").source = 'guess = predict("01-a", 0.5)'
    nbformat.write(begun, mine)
    kept.write_bytes(whole)
    copies.update("01")
    said = capsys.readouterr().out
    assert "kept-1-01_second.ipynb can be read now" in said and "it has 1 of your 2 answers" in said
    assert 'not carried over: predict("01-a"): the new copy has an answer of yours already' in said
    sources = {each.id: each.source for each in nbformat.read(mine, as_version=4).cells}
    assert sources["first"] == WHOLE and sources["guess-a"].endswith("0.5)")
    copies.update("01")
    assert "newest version already" in capsys.readouterr().out


def test_a_copy_that_could_not_be_read_and_is_gone_since_is_named_once(course, capsys):
    answered().write_bytes(b"")
    copies.update("01")
    (course / "kept-1-01_second.ipynb").unlink()
    capsys.readouterr()
    copies.update("01")
    assert "kept-1-01_second.ipynb" in capsys.readouterr().out
    copies.update("01")
    assert "kept-1-01_second.ipynb" not in capsys.readouterr().out


def test_pages_to_read_are_copied_and_brought_up_to_date(course):
    page = notebooks.NOTEBOOKS / "notation_and_glossary.md"
    page.write_text("old", encoding="utf-8")
    copies.copy()
    page.write_text("new", encoding="utf-8")
    copies.copy()
    assert (copies.copies() / page.name).read_text(encoding="utf-8") == "new"


def test_a_mended_copy_is_carried_over_although_the_course_has_changed_meanwhile(course, capsys):
    mine = answered()
    whole = mine.read_bytes()
    mine.write_bytes(b"")
    copies.update("01")
    newest = nbformat.read(notebooks.NOTEBOOKS / "01_second.ipynb", as_version=4)
    newest.cells[0].source = "# Better still"
    nbformat.write(newest, notebooks.NOTEBOOKS / "01_second.ipynb")
    (course / "kept-1-01_second.ipynb").write_bytes(whole)
    copies.update("01")
    sources = {each.id: each.source for each in nbformat.read(mine, as_version=4).cells}
    assert sources["title"] == "# Better still" and sources["first"] == WHOLE
    (course / "kept-1-01_second.ipynb").unlink()
    capsys.readouterr()
    copies.update("01")
    assert "newest version already" in capsys.readouterr().out
