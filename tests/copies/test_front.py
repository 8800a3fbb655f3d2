"""START and the hour come before the numbered notebooks; what START links to can be reached from a learner's copy of it."""

import os
from pathlib import Path

import nbformat
import pytest
from small_course import make_course, small_notebook

from course_tools.notebooks.export import exported_cells
from course_utils.copies import commands as copies
from course_utils.copies import notebooks


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Two notebooks in a folder of their own; returns the folder of the copies."""
    return make_course(tmp_path, monkeypatch) / "my_copies"


# links

def test_every_link_leads_somewhere_from_a_copy_too():
    beside = {copies.place_of(path) for path in notebooks.everything()} | {copies.copies() / page for page in copies.PAGES}
    for path in notebooks.everything():
        mine = copies.place_of(path)
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                for _, link in copies.LINK.findall(copies.with_links_from(cell.source, path, mine)):
                    meant = Path(os.path.normpath(mine.parent / link))
                    outside = meant.exists() and copies.copies() not in meant.parents
                    assert meant in beside or outside, f"{path.name}: {link}"


def test_links_out_of_the_notebooks_folder_are_mended_in_a_copy(course, tmp_path):
    (tmp_path / "code.py").write_text("1", encoding="utf-8")
    (notebooks.NOTEBOOKS / "gallery.md").write_text("pictures", encoding="utf-8")
    notebook = small_notebook()
    there = "[a](../code.py) [b](gallery.md#top) [c](01_second.ipynb) [d](#sums) [e](https://x.org/code.py) [f](none.md)"
    notebook.cells[0].source = there
    nbformat.write(notebook, notebooks.NOTEBOOKS / "00_first.ipynb")
    copies.copy()
    mine = nbformat.read(course / "00_first.ipynb", as_version=4)
    assert mine.cells[0].source == there.replace("../code", "../../code").replace("gallery", "../gallery")
    assert mine.metadata["course_version"] == copies.fingerprint(notebook)     # mended links are no change of the course


# START and the hour

@pytest.fixture
def front(course):
    """The same course with START and the hour; returns the folder of the copies."""
    for name in ("START", "attention_in_an_hour"):
        nbformat.write(small_notebook(), notebooks.NOTEBOOKS / f"{name}.ipynb")
    return course


def test_start_and_the_hour_come_first_and_have_short_names(front):
    assert [path.stem for path in notebooks.everything()] == ["START", "attention_in_an_hour", "00_first", "01_second"]
    assert [path.stem for path in notebooks.find([])] == ["00_first", "01_second"]
    for name, found in (("START", "START"), ("start", "START"), ("hour", "attention_in_an_hour"),
                        ("attention_in", "attention_in_an_hour")):
        assert [path.stem for path in notebooks.find([name])] == [found]
    assert [path.stem for path in notebooks.find(["01", "hour", "START"])] == ["START", "attention_in_an_hour", "01_second"]


def test_the_copy_of_start_shows_its_saved_output_and_is_trusted(front):
    from nbformat.sign import NotebookNotary

    copies.copy()
    mine, original = (nbformat.read(folder / "START.ipynb", as_version=4) for folder in (front, notebooks.NOTEBOOKS))
    assert mine.cells[1].outputs == original.cells[1].outputs != [] and mine.cells[1].execution_count == 1
    assert NotebookNotary().check_signature(mine)
    assert nbformat.read(front / "attention_in_an_hour.ipynb", as_version=4).cells[1].outputs == []


def test_results_come_before_the_extras_and_their_copies_show_the_numbers(front):
    nbformat.write(small_notebook(), notebooks.NOTEBOOKS / "results_part_1.ipynb")
    (notebooks.NOTEBOOKS / "extras").mkdir()
    nbformat.write(small_notebook(), notebooks.NOTEBOOKS / "extras" / "results_of_votes.ipynb")
    assert [path.stem for path in notebooks.everything()][3:] == ["01_second", "results_part_1", "results_of_votes"]
    assert [path.stem for path in notebooks.find(["results_part"])] == ["results_part_1"]
    copies.copy()
    mine, original = (nbformat.read(folder / "results_part_1.ipynb", as_version=4)
                      for folder in (front, notebooks.NOTEBOOKS))
    assert mine.cells[1].outputs == original.cells[1].outputs != []


def test_start_and_the_hour_export_nothing(front):
    nbformat.write(small_notebook("#| export sums\nx = 1"), notebooks.NOTEBOOKS / "START.ipynb")
    with pytest.raises(SystemExit, match="^START.ipynb has a cell .* a notebook without a number exports nothing"):
        list(exported_cells(notebooks.NOTEBOOKS))
