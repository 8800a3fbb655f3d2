"""Notebooks are found by their names, and every saved one is what a run left behind."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from small_course import make_course, small_notebook

from course_utils.__main__ import main as course_command
from course_utils.copies import notebooks

COURSE = sorted(notebooks.NOTEBOOKS.glob("[0-9]*.ipynb"))
EVERY = notebooks.everything()


# which notebooks there are

@pytest.fixture
def course(tmp_path, monkeypatch):
    """Two notebooks in a folder of their own."""
    return make_course(tmp_path, monkeypatch)


def test_notebooks_are_found_by_their_numbers_or_the_start_of_their_names(course):
    assert [path.stem for path in notebooks.find(["01_sec", "00"])] == ["00_first", "01_second"]
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
    assert not (course / "my_copies").exists()


def test_make_test_with_a_number_that_there_is_not_runs_nothing(root):
    number, make = "99", shutil.which("make")
    if make is None:
        pytest.fail("the course's commands need make")
    ran = subprocess.run([make, "--no-print-directory", "-o", "setup", "test", f"NB={number}", f"PY={sys.executable}"],
                         cwd=root, capture_output=True, text=True, timeout=120)
    assert ran.returncode != 0 and "passed" not in ran.stdout
    assert f"there is no notebook {number!r}; there are START, " in ran.stderr


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
    executed = nbformat.read(tmp_path / "elsewhere" / "notebooks" / "00_first.ipynb", as_version=4)
    assert executed.metadata.language_info == {"name": "python"}           # tidied: the kernel gives its version
    stream, result = executed.cells[1].outputs
    assert stream.text == "a\nnotebooks\n" and result.data["text/plain"] == "7"
    assert not (tmp_path / "elsewhere" / "notebooks" / "01_second.ipynb").exists()


def test_tidying_merges_pieces_of_a_stream_and_drops_what_differs_between_machines():
    notebook = small_notebook()
    new = nbformat.v4.new_output
    notebook.cells[1].outputs = [new("stream", name="stdout", text="a"), new("stream", name="stdout", text="b"),
                                 new("stream", name="stderr", text="c"), new("stream", name="stdout", text="d")]
    notebook.cells[1].metadata["execution"] = {"iopub.status.busy": "2026"}
    notebook.metadata["language_info"] = {"name": "python", "version": "3.11.7"}
    notebook.metadata |= {"course": {"edition": 2}, "vscode": {"interpreter": "mine"}}
    notebooks.tidy(notebook)
    assert [(o.name, o.text) for o in notebook.cells[1].outputs] == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")]
    assert notebook.cells[1].metadata == {"tags": ["kept"]}
    assert notebook.metadata.language_info == {"name": "python"}
    assert notebook.metadata.course == {"edition": 2} and "vscode" not in notebook.metadata


# what is saved

def written(output) -> str:
    """All text of an output, without the bytes of its pictures."""
    texts = [output.get("text", "")]
    texts += [value for kind, value in output.get("data", {}).items() if not kind.startswith("image/png")]
    return "\n".join(str(text) for text in texts)


PLACE = re.compile(r"(?<![\w.:/<])/(?:home|root|work|tmp|usr|var|opt|mnt|srv|Users|private)/|\b[A-Za-z]:\\\\?\w")
LEFT_OUT = {"nbval-skip", "skip-execution", "raises-exception", "nbval-raises-exception"}


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_a_saved_notebook_is_valid_and_tidy_and_what_a_run_left_behind(path):
    """Executed in order, without an error or the name of a place on one machine, and no cell is left out of the tests."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor, notebook.metadata.kernelspec.name) == (4, 5, "python3")
    assert "version" not in notebook.metadata.get("language_info", {})
    ids = [cell.id for cell in notebook.cells]
    drawn = re.compile(r"(?=.*\d)[0-9a-f]{8}(-[0-9a-f-]{27})?")            # as editors make them up
    assert len(ids) == len(set(ids)) and not [i for i in ids if drawn.fullmatch(i)]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    counts = [cell.execution_count for cell in cells if cell.source.strip()]
    assert counts == list(range(1, len(counts) + 1))
    for cell in cells:
        assert "execution" not in cell.metadata, cell.id
        for output in cell.outputs:
            assert output.output_type != "error" and not PLACE.search(written(output)), cell.id
        tags = {tag.lower().replace("_", "-") for tag in cell.metadata.get("tags", [])}
        assert not tags & LEFT_OUT, cell.id
        assert not re.match(r"\s*#\s*(NBVAL_SKIP|NBVAL_RAISES_EXCEPTION|PYTEST_VALIDATE_IGNORE_OUTPUT)", cell.source, re.I)
        if "nbval-ignore-output" in tags or re.search(r"^#\s*NBVAL_IGNORE_OUTPUT", cell.source, re.I | re.M):
            assert re.search(r"\bclaim\(|\bassert\b", cell.source), f"{cell.id}: nobody checks its output"


def test_the_notebooks_are_numbered_without_gaps():
    numbers = [notebooks.number_of(path) for path in COURSE]                # a letter follows the number before it: 02, 02b
    plain = [int(number) for number in numbers if number.isdigit()]
    assert plain == list(range(len(plain))) and {number[:2] for number in numbers} == {f"{number:02}" for number in plain}


@pytest.mark.parametrize("path", [*EVERY, *COURSE[0].parent.glob("*.md"), COURSE[0].parents[1] / "README.md"],
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
    assert named <= {int(path.name[:2]) for path in COURSE}


def test_the_menus_that_the_pages_name_are_those_of_jupyterlab():
    """Each name in *View → Appearance → Simple Interface* is a label of the JupyterLab that the course installs."""
    from jupyterlab.commands import get_app_dir

    pages = [*COURSE[0].parent.glob("*.md"), COURSE[0].parents[1] / "README.md", *EVERY]
    way = re.compile(r"[*]((?:File|Edit|View|Run|Kernel|Settings|Help) → [^*\n]+)[*]")
    quoted = {name.strip() for page in pages for found in way.findall(page.read_text(encoding="utf-8"))
              for name in found.split("→")}
    folder = Path(get_app_dir())
    texts = [path.read_text(encoding="utf-8") for path in [*folder.glob("static/*.js"), *folder.glob("schemas/**/*.json")]]
    assert len(texts) > 100
    assert [name for name in sorted(quoted) if not any(f'"{name}"' in text or f'"&{name}"' in text for text in texts)] == []


def test_saved_outputs_are_compared_without_the_models_that_a_machine_has(monkeypatch, tmp_path):
    for name in ("COURSE_MODELS", "COURSE_DOWNLOAD", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    notebooks.without_models()
    assert "COURSE_MODELS" not in os.environ and "COURSE_DOWNLOAD" not in os.environ
    assert not Path(os.environ["HF_HUB_CACHE"]).exists()
