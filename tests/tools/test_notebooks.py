"""Working copies are a learner's own, and every saved notebook is what a run left behind."""

import json
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from course_utils.__main__ import main as course_command
from course_utils.tools import notebooks

COURSE = sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
each_notebook = pytest.mark.parametrize("path", COURSE, ids=lambda path: path.stem)


# working copies

def small_notebook(source="1 + 1"):
    output = nbformat.v4.new_output("execute_result", {"text/plain": "2"}, execution_count=1)
    return nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_markdown_cell("# Sums", id="title"),
        nbformat.v4.new_code_cell(source, id="sum", outputs=[output], execution_count=1, metadata={"tags": ["kept"]}),
    ])


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Two notebooks in a folder of their own; returns the folder of the copies."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))      # where signatures are kept
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(notebooks, "COPIES", tmp_path / "notebooks" / "my_copies")
    (tmp_path / "notebooks").mkdir()
    for name in ("00_first", "01_second"):
        nbformat.write(small_notebook(), tmp_path / "notebooks" / f"{name}.ipynb")
    return notebooks.COPIES


def test_copies_are_made_with_their_outputs_cleared(course, capsys):
    notebooks.copy()
    assert sorted(path.name for path in course.iterdir()) == ["00_first.ipynb", "01_second.ipynb"]
    copied = nbformat.read(course / "00_first.ipynb", as_version=4)
    assert [cell.source for cell in copied.cells] == ["# Sums", "1 + 1"]
    assert copied.cells[1].outputs == [] and copied.cells[1].execution_count is None
    assert copied.cells[1].id == "sum" and copied.cells[1].metadata.tags == ["kept"]
    original = nbformat.read(notebooks.NOTEBOOKS / "00_first.ipynb", as_version=4)
    assert original.cells[1].outputs and original.cells[1].execution_count == 1
    assert "00_first, 01_second" in capsys.readouterr().out


def test_pages_to_read_are_copied_and_brought_up_to_date(course):
    page = notebooks.NOTEBOOKS / "notation_and_glossary.md"
    page.write_text("old", encoding="utf-8")
    notebooks.copy()
    page.write_text("new", encoding="utf-8")
    notebooks.copy()
    assert (notebooks.COPIES / page.name).read_text(encoding="utf-8") == "new"


def test_copies_are_trusted(course):
    from nbformat.sign import NotebookNotary

    notebooks.copy()
    assert NotebookNotary().check_signature(nbformat.read(course / "00_first.ipynb", as_version=4))


def test_a_copy_is_made_once_and_never_overwritten(course, capsys):
    notebooks.copy()
    mine = course / "00_first.ipynb"
    edited = nbformat.read(mine, as_version=4)
    edited.cells[1].source = "my answer"
    nbformat.write(edited, mine)
    before = mine.read_bytes()
    capsys.readouterr()
    notebooks.copy()
    assert mine.read_bytes() == before
    assert capsys.readouterr().out == ""                                   # the course itself has not changed


def test_a_newer_course_notebook_is_announced_and_the_copy_untouched(course, capsys):
    notebooks.copy()
    before = (course / "01_second.ipynb").read_bytes()
    nbformat.write(small_notebook("2 + 2"), notebooks.NOTEBOOKS / "01_second.ipynb")
    capsys.readouterr()
    notebooks.copy()
    said = capsys.readouterr().out
    assert "newer versions of 01;" in said and "make update NB=01" in said
    assert (course / "01_second.ipynb").read_bytes() == before


@pytest.mark.parametrize(("source", "stops"), [
    ("from course_utils.recipes import RECIPES", True), ("x = 1\nfrom course_utils.data.gone import x", True),
    ("from course_utils.attention import causal_mask\nfrom course_utils.experiments.sets import SETS", False),
])
def test_a_copy_that_imports_what_has_moved_is_told_that_an_update_mends_it(course, capsys, source, stops):
    nbformat.write(small_notebook(source), notebooks.NOTEBOOKS / "01_second.ipynb")
    notebooks.copy()
    capsys.readouterr()
    nbformat.write(small_notebook("2 + 2"), notebooks.NOTEBOOKS / "01_second.ipynb")
    notebooks.copy()
    said = capsys.readouterr().out
    assert "make update NB=01" in said and ("your copies of 01 import has moved" in said) is stops


def test_new_outputs_alone_are_no_newer_version(course, capsys):
    notebooks.copy()
    executed = small_notebook()
    executed.cells[1].outputs, executed.cells[1].execution_count = [], 7
    nbformat.write(executed, notebooks.NOTEBOOKS / "01_second.ipynb")
    capsys.readouterr()
    notebooks.copy()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("damage", [b"", b"{ cut", b"\xff\xfe", b"[]", b"{}"])
def test_a_damaged_copy_is_left_alone_and_the_others_are_made(course, capsys, damage):
    course.mkdir()
    (course / "00_first.ipynb").write_bytes(damage)
    notebooks.copy()
    assert (course / "00_first.ipynb").read_bytes() == damage
    assert (course / "01_second.ipynb").is_file()
    said = capsys.readouterr().out
    assert "00_first.ipynb cannot be read and is left alone; make fresh NB=00" in said


def test_fresh_gives_a_new_copy_and_keeps_every_old_one(course, capsys):
    notebooks.copy()
    mine = course / "00_first.ipynb"
    for n in (1, 2):
        mine.write_bytes(f"my work {n}".encode())
        notebooks.fresh("00")
        assert nbformat.read(mine, as_version=4).cells[1].source == "1 + 1"
    assert (course / "kept-1-00_first.ipynb").read_bytes() == b"my work 1"
    assert (course / "kept-2-00_first.ipynb").read_bytes() == b"my work 2"
    assert "your old copy is now" in capsys.readouterr().out
    notebooks.copy()                                                       # kept files are no course notebooks
    assert len(list(course.iterdir())) == 4


def test_fresh_makes_a_copy_where_there_was_none(course):
    notebooks.fresh("01")
    assert [path.name for path in course.iterdir()] == ["01_second.ipynb"]


@pytest.mark.parametrize(("number", "message"), [
    ("7", "no notebook '7'; there are 00_first, 01_second"), ("99", "no notebook '99'; there are 00_first"),
    ("", "no notebook ''"), ("first", "no notebook 'first'"), ("*", r"no notebook '\*'"), ("../00", "no notebook"),
])
def test_fresh_needs_the_number_of_one_notebook(course, number, message):
    with pytest.raises(SystemExit, match=message):
        notebooks.fresh(number)
    assert not course.exists()


def test_notebooks_are_found_in_order_by_the_start_of_their_names(course):
    assert [path.stem for path in notebooks.find([])] == ["00_first", "01_second"]
    assert [path.stem for path in notebooks.find(["01"])] == ["01_second"]
    assert [path.stem for path in notebooks.find(["01_sec", "00"])] == ["00_first", "01_second"]


def test_a_single_digit_is_the_number_of_a_notebook_and_not_the_start_of_ten_others(course):
    nbformat.write(small_notebook(), notebooks.NOTEBOOKS / "10_third.ipynb")
    assert [path.stem for path in notebooks.find(["1"])] == ["01_second"]
    assert [path.stem for path in notebooks.find(["0"])] == ["00_first"]
    assert [path.stem for path in notebooks.find(["10"])] == ["10_third"]
    with pytest.raises(SystemExit, match="no notebook '2'"):
        notebooks.find(["2"])


def test_the_command_line_names_the_files_of_a_notebook_and_refuses_what_it_does_not_know(course, capsys):
    assert course_command(["paths", "1"]) == 0
    assert capsys.readouterr().out == "notebooks/01_second.ipynb\n"
    for wrong in (["paths", "99"], ["copy", "04"], ["clean"], ["run", "--fast"], ["fresh"], ["update", "00", "01"]):
        with pytest.raises(SystemExit) as stopped:
            sys.exit(course_command(wrong))
        assert stopped.value.code not in (0, None)
    assert not course.exists()


@pytest.mark.parametrize("number", ["99", "4x", "nothing"])
def test_make_test_with_a_number_that_there_is_not_runs_nothing(number, root):
    make = shutil.which("make")
    if make is None:
        pytest.fail("the course's commands need make")
    ran = subprocess.run([make, "--no-print-directory", "-o", "setup", "test", f"NB={number}", f"PY={sys.executable}"],
                         cwd=root, capture_output=True, text=True, timeout=120)
    assert ran.returncode != 0 and "passed" not in ran.stdout
    assert f"there is no notebook {number!r}; there are 00_tensors, 01_raw_text" in ran.stderr


def test_make_test_takes_one_notebook_by_its_number(root):
    shown = subprocess.run(["make", "--no-print-directory", "-o", "setup", "test", "NB=4", "PY=echo"],
                           cwd=root, capture_output=True, text=True, timeout=120).stdout
    assert shown.split() == ["-m", "pytest", "-m", "course_utils", "paths", "4"]  # echo in place of python


def lesson(stub, extra=()):
    """A notebook with two exercise cells, the first of them open."""
    cells = [nbformat.v4.new_markdown_cell("# A lesson", id="title")]
    for name, source in (("first", stub), ("second", "def double(x): ...\nexercise('1.2').check(double)"), *extra):
        cells.append(nbformat.v4.new_code_cell(source, id=name, metadata={"tags": ["exercise"]}))
    return nbformat.v4.new_notebook(cells=cells)


def test_half_solved_and_then_updated_loses_nothing(course, monkeypatch, capsys):
    from course_utils.exercises import record

    course_file, mine = notebooks.NOTEBOOKS / "01_second.ipynb", course / "01_second.ipynb"
    nbformat.write(lesson("def half(x): ...\nexercise('1.1').check(half)"), course_file)
    notebooks.copy()
    monkeypatch.setenv("COURSE_PROGRESS", str(course / "progress.json"))
    record.mark("exercises", "1.1", True)
    record.mark("exercises", "1.99", True)                                 # an exercise that the newer version has not
    half_solved = nbformat.read(mine, as_version=4)
    half_solved.cells[1].source = "def half(x): return x / 2\nexercise('1.1').check(half)"
    half_solved.cells.append(nbformat.v4.new_code_cell("my_own_notes = 1", id="mine"))
    nbformat.write(half_solved, mine)
    before = mine.read_bytes()

    newer = lesson("def half(x): ...\nexercise('1.1').check(half)  # said better",
                   extra=[("third", "exercise('1.3').check(None)")])
    newer.cells[2].source = "def twice(x): ...\nexercise('1.2').check(twice)"
    nbformat.write(newer, course_file)
    notebooks.copy()
    assert mine.read_bytes() == before                                     # the update alone changes nothing of theirs
    assert "make update NB=01" in capsys.readouterr().out

    notebooks.update("01")
    assert (course / "kept-1-01_second.ipynb").read_bytes() == before
    updated = nbformat.read(mine, as_version=4)
    nbformat.validate(updated)
    sources = {cell.id: cell.source for cell in updated.cells}
    assert sources["first"] == half_solved.cells[1].source                 # the answer is carried over,
    assert "twice" in sources["second"] and "1.3" in sources["third"]      # stubs nobody touched are the newer ones
    assert "1 of your 1 answers" in capsys.readouterr().out
    marks = record.read()["exercises"]
    assert marks == {"1.1": True, "1.99": True}
    notebooks.copy()
    assert "newer" not in capsys.readouterr().out


NO_SOURCE = (b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "id": "a", '
             b'"metadata": {}, "outputs": [], "execution_count": null%s}]}')


@pytest.mark.parametrize("damage", [None, b"", b"{ cut", NO_SOURCE % b"", NO_SOURCE % b', "source": 3'])
def test_an_update_without_a_readable_copy_is_a_fresh_one(course, damage):
    course.mkdir()
    if damage is not None:
        (course / "01_second.ipynb").write_bytes(damage)
    notebooks.update("01")
    assert nbformat.read(course / "01_second.ipynb", as_version=4).cells[1].source == "1 + 1"
    assert damage is None or (course / "kept-1-01_second.ipynb").read_bytes() == damage


def test_an_update_with_nothing_new_leaves_the_copy_and_makes_no_other(course, capsys):
    notebooks.copy()
    before = sorted(course.iterdir()), (course / "01_second.ipynb").read_bytes()
    for _ in range(2):
        notebooks.update("1")
    assert (sorted(course.iterdir()), (course / "01_second.ipynb").read_bytes()) == before
    assert "newest version already" in capsys.readouterr().out


def answered(name="01_second"):
    """A course notebook with two exercises and two predictions, its copy with one of each answered; the path of the copy."""
    cells = [("guess-a", 'guess = predict("01-a", None)', []), ("guess-b", 'other = predict("01-b", None)', [])]
    first = lesson("def half(x): ...\nexercise('1.1').check(half)")
    first.cells += [nbformat.v4.new_code_cell(source, id=i, metadata={"tags": tags}) for i, source, tags in cells]
    nbformat.write(first, notebooks.NOTEBOOKS / f"{name}.ipynb")
    notebooks.copy()
    mine = nbformat.read(notebooks.COPIES / f"{name}.ipynb", as_version=4)
    mine.cells[1].source = "def half(x): return x / 2\nexercise('1.1').check(half)"
    mine.cells[3].source = 'guess = predict("01-a", 0.25)'
    nbformat.write(mine, notebooks.COPIES / f"{name}.ipynb")
    first.cells[0].source = "# A better lesson"
    first.cells[2].source = first.cells[2].source.replace("double", "twice")
    first.cells.insert(1, nbformat.v4.new_code_cell('new = predict("01-new", None)', id="guess-new"))
    nbformat.write(first, notebooks.NOTEBOOKS / f"{name}.ipynb")
    return notebooks.COPIES / f"{name}.ipynb"


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
    notebooks.update("01")
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
    notebooks.update("01")                                                 # a second time there is nothing new
    assert nbformat.read(mine, as_version=4).metadata["course_version"] == kept
    assert not (course / "kept-2-01_second.ipynb").exists()


def test_an_answer_whose_check_was_moved_to_another_cell_is_carried_over_by_its_id(course):
    mine = answered()
    edited = nbformat.read(mine, as_version=4)
    edited.cells[1].source = "def half(x): return x / 2"
    edited.cells.append(nbformat.v4.new_code_cell("exercise('1.1').check(half)", id="mine"))
    nbformat.write(edited, mine)
    notebooks.update("01")
    sources = {each.id: each.source for each in nbformat.read(mine, as_version=4).cells}
    assert sources["first"] == "def half(x): return x / 2"


# running

def test_a_run_writes_executed_copies_and_leaves_the_course_as_it_was(course, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    code = "from pathlib import Path\nprint('a')\nprint(Path.cwd().name)\n3 + 4"
    nbformat.write(small_notebook(code), notebooks.NOTEBOOKS / "00_first.ipynb")
    nbformat.write(small_notebook("1 / 0"), notebooks.NOTEBOOKS / "01_second.ipynb")
    before = (notebooks.NOTEBOOKS / "00_first.ipynb").read_bytes()
    assert notebooks.run([], in_place=False) == 1                          # one failed, the other was still run
    assert (notebooks.NOTEBOOKS / "00_first.ipynb").read_bytes() == before
    executed = nbformat.read(tmp_path / "elsewhere" / "notebooks" / "00_first.ipynb", as_version=4).cells[1]
    stream, result = executed.outputs
    assert stream.text == "a\nnotebooks\n" and result.data["text/plain"] == "7"
    assert not (tmp_path / "elsewhere" / "notebooks" / "01_second.ipynb").exists()


def test_tidying_merges_pieces_of_a_stream_and_drops_what_differs_between_machines():
    notebook = small_notebook()
    new = nbformat.v4.new_output
    notebook.cells[1].outputs = [new("stream", name="stdout", text="a"), new("stream", name="stdout", text="b"),
                                 new("stream", name="stderr", text="c"), new("stream", name="stdout", text="d")]
    notebook.cells[1].metadata["execution"] = {"iopub.status.busy": "2026"}
    notebook.metadata["language_info"] = {"name": "python", "version": "3.11.7"}
    notebooks.tidy(notebook)
    assert [(o.name, o.text) for o in notebook.cells[1].outputs] == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")]
    assert notebook.cells[1].metadata == {"tags": ["kept"]}
    assert notebook.metadata.language_info == {"name": "python"}


# what is saved

def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def written(output) -> str:
    """All text of an output, without the bytes of its pictures."""
    texts = [output.get("text", "")]
    texts += [value for kind, value in output.get("data", {}).items() if not kind.startswith("image/png")]
    return "\n".join(str(text) for text in texts)


@each_notebook
def test_every_code_cell_was_executed_in_order(path):
    counts = [cell.execution_count for cell in code_cells(path) if cell.source.strip()]
    assert counts == list(range(1, len(counts) + 1))


@each_notebook
def test_no_output_is_an_error(path):
    for cell in code_cells(path):
        assert not [output for output in cell.outputs if output.output_type == "error"], cell.id


@each_notebook
def test_no_output_names_a_place_on_one_machine(path):
    absolute = re.compile(r"(?<![\w.:/<])/(?:home|root|work|tmp|usr|var|opt|mnt|srv|Users|private)/|\b[A-Za-z]:\\\\?\w")
    for cell in code_cells(path):
        for output in cell.outputs:
            found = absolute.search(written(output))
            assert not found, f"{cell.id}: {written(output)[max(0, found.start() - 30) : found.end() + 60]!r}"


@each_notebook
def test_no_cell_is_left_out_of_the_tests(path):
    for cell in code_cells(path):
        tags = {tag.lower().replace("_", "-") for tag in cell.metadata.get("tags", [])}
        assert not tags & {"nbval-skip", "skip-execution", "raises-exception", "nbval-raises-exception"}, cell.id
        first = cell.source.lstrip().splitlines()[0] if cell.source.strip() else ""
        assert not re.match(r"#\s*(NBVAL_SKIP|NBVAL_RAISES_EXCEPTION|PYTEST_VALIDATE_IGNORE_OUTPUT)", first, re.I), cell.id


@each_notebook
def test_a_cell_whose_output_is_not_compared_checks_itself(path):
    for cell in code_cells(path):
        tags = {tag.lower().replace("_", "-") for tag in cell.metadata.get("tags", [])}
        if "nbval-ignore-output" in tags or re.search(r"^#\s*NBVAL_IGNORE_OUTPUT", cell.source, re.I | re.M):
            assert re.search(r"\bclaim\(|\bassert\b", cell.source), cell.id


@each_notebook
def test_cell_ids_are_unique_and_chosen(path):
    notebook = nbformat.read(path, as_version=4)
    ids = [cell.id for cell in notebook.cells]
    assert len(ids) == len(set(ids))
    drawn = re.compile(r"(?=.*\d)[0-9a-f]{8}(-[0-9a-f-]{27})?")            # as editors make them up
    assert not [i for i in ids if drawn.fullmatch(i)]


@each_notebook
def test_a_saved_notebook_is_valid_and_tidy(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "version" not in notebook.metadata.get("language_info", {})
    assert all("execution" not in cell.metadata for cell in notebook.cells)


def test_the_notebooks_are_numbered_without_gaps():
    numbers = [int(path.name[:2]) for path in COURSE]
    assert numbers == list(range(len(COURSE)))


@pytest.mark.parametrize("path", [*COURSE, *COURSE[0].parent.glob("*.md"), COURSE[0].parents[1] / "README.md"],
                         ids=lambda path: path.name)
def test_every_link_between_pages_leads_somewhere(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", COURSE[0].parent.glob("*.md"), ids=lambda path: path.name)
def test_no_page_speaks_of_a_notebook_that_there_is_not(path):
    named = {int(number) for numbers in re.findall(r"\[(\d\d(?:, \d\d)*)\]", path.read_text(encoding="utf-8"))
             for number in numbers.split(", ")}
    assert named <= set(range(len(COURSE)))
