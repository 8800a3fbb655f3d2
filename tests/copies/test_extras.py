"""An extra is a notebook of its own beside the numbered ones: whatever is done with notebooks is done with it, too.

The rules that hold for every saved notebook are in test_notebooks.py.
"""

import re

import nbformat
import pytest
from small_course import make_course, small_notebook

from course_tools.notebooks.export import exported_cells
from course_utils.copies import commands as copies
from course_utils.copies import notebooks
from course_utils.copies.start import read_extra

EVERY = notebooks.extras()
each_extra = pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
OPENING = "# Extra: Sizes of vocabularies\n\nWhy?\n\nGoes with [01](../01_second.ipynb).\n\n**Time** about 15 minutes."


def small_extra(source="2 + 2", opening=OPENING):
    notebook = small_notebook(source)
    notebook.cells[0].source = opening
    return notebook


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Two notebooks and two extras in a folder of their own; returns the folder of the extras."""
    folder = make_course(tmp_path, monkeypatch) / "extras"
    folder.mkdir()
    for name in ("vocabulary", "vocabulary_size"):
        nbformat.write(small_extra(), folder / f"{name}.ipynb")
    return folder


# what an extra is

@each_extra
def test_an_extra_says_what_it_is_and_is_linked_from_the_notebooks_it_goes_with(path):
    extra = read_extra(path)
    assert re.fullmatch(r"[a-z]+[0-9]?(_[a-z0-9]+)*", path.stem), "the name is in small letters, and begins with one"
    for name in extra.goes_with:
        cells = nbformat.read(notebooks.NOTEBOOKS / name, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        assert f"(extras/{path.name})" in text, f"{name} has no link to extras/{path.name}"


@each_extra
def test_an_extra_opens_with_its_question_and_answers_it(path):
    first = nbformat.read(path, as_version=4).cells[0].source.split("\n\n")[1]
    asked, _, answer = first.partition("?")
    assert asked, f"its first paragraph asks nothing: {first}"
    assert len(answer.split()) > 15, f"its first paragraph doesn't answer: {first}"


@each_extra
def test_an_extra_asks_for_nothing_that_is_checked(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert not re.search(r"\b(exercise|quiz)\(", cell.source) or cell.cell_type == "markdown", cell.id
        assert "exercise" not in cell.metadata.get("tags", []), cell.id


def test_an_extra_is_read(course):
    assert read_extra(course / "vocabulary.ipynb")[1:] == ("Sizes of vocabularies", ["01_second.ipynb"], 15)
    both = OPENING.replace("ipynb).", "ipynb) and [00](../00_first.ipynb).")
    nbformat.write(small_extra(opening=both), course / "vocabulary.ipynb")
    assert read_extra(course / "vocabulary.ipynb").goes_with == ["01_second.ipynb", "00_first.ipynb"]


@pytest.mark.parametrize("line", ["# Extra: Sizes of vocabularies", "Goes with [01](../01_second.ipynb).",
                                  "**Time** about 15 minutes."])
def test_an_extra_without_one_of_its_three_lines_is_refused(course, line):
    nbformat.write(small_extra(opening=OPENING.replace(line, "...")), course / "vocabulary.ipynb")
    with pytest.raises(ValueError, match="vocabulary.ipynb: expected a first cell that begins with '# Extra: Title'"):
        read_extra(course / "vocabulary.ipynb")


@pytest.mark.parametrize("mark", ["#| export attention", "#| export"])
def test_an_extra_exports_to_no_module_but_its_own(course, mark):
    nbformat.write(small_extra(f"{mark}\nx = 1"), course / "vocabulary.ipynb")
    with pytest.raises(SystemExit, match=r"extras/vocabulary.ipynb has a cell that begins with '# ?\| ?export.*'; an extra "
                                         "exports only to the module of its own name"):
        list(exported_cells(notebooks.NOTEBOOKS))
    nbformat.write(small_extra("#| export vocabulary\nx = 1"), course / "vocabulary.ipynb")
    assert [(cell.module, cell.taught_in) for cell in exported_cells(notebooks.NOTEBOOKS)][-1] == (
        "vocabulary", "extras/vocabulary")


ALLOWED = {"14_pretraining": {"hugging_face"}}            # it writes its model for the library, to compare the hidden states


def test_nothing_in_the_numbered_notebooks_needs_what_an_extra_exports():
    modules = {cell.module for cell in exported_cells(notebooks.NOTEBOOKS) if cell.taught_in.startswith("extras/")}
    for path in [*notebooks.front(), *notebooks.find([])]:
        for cell in nbformat.read(path, as_version=4).cells:
            used = set(re.findall(r"course_utils[.](\w+)|from course_utils import (\w+)", cell.source))
            if cell.cell_type == "code":
                needed = modules & {name for both in used for name in both}
                assert needed <= ALLOWED.get(path.stem, set()), f"{path.stem}: {cell.id}"


# which is meant

def test_an_extra_is_found_by_its_name_or_by_the_start_of_it(course):
    assert [path.stem for path in notebooks.everything()] == ["00_first", "01_second", "vocabulary", "vocabulary_size"]
    assert [path.stem for path in notebooks.find([])] == ["00_first", "01_second"]
    for names, found in ((["vocabulary_size"], ["vocabulary_size"]), (["vocabulary_s"], ["vocabulary_size"]),
                         (["vocabulary"], ["vocabulary"]), (["voc"], ["vocabulary", "vocabulary_size"]),
                         (["vocabulary", "1"], ["01_second", "vocabulary"])):
        assert [path.stem for path in notebooks.find(names)] == found
    with pytest.raises(SystemExit, match="no notebook 'words'; there are 00_first, 01_second, vocabulary, vocabulary_size"):
        notebooks.find(["words"])


# what is done with it

def test_an_extra_runs_in_its_own_folder_and_its_copy_lands_in_a_folder_of_the_same_name(course, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    code = "from pathlib import Path\nfrom course_utils.files.paths import DATA\nDATA.name, Path.cwd().name"
    nbformat.write(small_extra(code), course / "vocabulary.ipynb")
    nbformat.write(small_extra(), course / "vocabulary_size.ipynb")
    assert notebooks.run([], in_place=False) == 0
    made = tmp_path / "elsewhere" / "notebooks"
    assert sorted(path.stem for path in made.rglob("*.ipynb")) == ["00_first", "01_second", "vocabulary", "vocabulary_size"]
    cell = nbformat.read(made / "extras" / "vocabulary.ipynb", as_version=4).cells[1]
    assert cell.outputs[0].data["text/plain"] == "('data', 'extras')"
    assert notebooks.run(["vocabulary_size"], in_place=True) == 0
    assert nbformat.read(course / "vocabulary_size.ipynb", as_version=4).cells[1].outputs[0].data["text/plain"] == "4"


def test_a_learner_gets_extras_in_a_folder_of_the_copies_where_links_lead_on(course, capsys):
    beside = notebooks.NOTEBOOKS / "notation_and_glossary.md"
    beside.write_text("words", encoding="utf-8")
    copies.copy()
    mine = copies.copies() / "extras" / "vocabulary.ipynb"
    assert nbformat.read(mine, as_version=4).cells[1].outputs == []
    for link in ("../01_second.ipynb", "../notation_and_glossary.md", "vocabulary_size.ipynb"):
        assert (mine.parent / link).exists()
    assert (copies.copies() / "extras/vocabulary.ipynb").exists()
    assert "00_first, 01_second, vocabulary, vocabulary_size" in capsys.readouterr().out


def test_a_copy_of_an_extra_is_made_anew_and_brought_up_to_date_by_its_name(course, capsys):
    nbformat.write(small_extra('guess = predict("vocabulary-size", None)'), course / "vocabulary_size.ipynb")
    copies.copy()
    mine = copies.copies() / "extras" / "vocabulary_size.ipynb"
    answered = nbformat.read(mine, as_version=4)
    answered.cells[1].source = 'guess = predict("vocabulary-size", 1000)'
    nbformat.write(answered, mine)
    newer = small_extra('guess = predict("vocabulary-size", None)  # words')
    nbformat.write(newer, course / "vocabulary_size.ipynb")
    capsys.readouterr()
    copies.copy()
    said = capsys.readouterr().out
    assert "newer versions of vocabulary_size; yours are untouched. make update NB=vocabulary_size" in said
    copies.update("vocabulary_size")
    assert nbformat.read(mine, as_version=4).cells[1].source == answered.cells[1].source
    assert "extras/kept-1-vocabulary_size.ipynb" in capsys.readouterr().out
    copies.fresh("vocabulary_size")
    assert nbformat.read(mine, as_version=4).cells[1].source == newer.cells[1].source
    assert len(list(mine.parent.glob("kept-*"))) == 2
    with pytest.raises(SystemExit, match="'voc' could be any of vocabulary, vocabulary_size; give the whole name"):
        copies.fresh("voc")
