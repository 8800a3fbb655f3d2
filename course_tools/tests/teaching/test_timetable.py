"""The page for instructors lists the extras."""

import nbformat
import pytest

from course_tools.teaching import timetable
from course_utils.copies import notebooks

PAGE = """before
<!-- timetable: begin --><!-- timetable: end -->
between
<!-- extras: begin -->old
<!-- extras: end -->
<!-- lectures: begin --><!-- lectures: end -->
after
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the extras of a course that has no other notebooks."""
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    (tmp_path / "extras").mkdir()
    return tmp_path / "extras"


def write(folder, name, title, goes_with, minutes):
    opening = f"# Extra: {title}\n\nGoes with {goes_with}.\n\n**Time** about {minutes} minutes."
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(opening, id="title")]), folder / name)


def test_a_course_without_extras_has_no_table_of_them(folder):
    page = timetable.with_timetable(PAGE)
    assert "between\n<!-- extras: begin -->\n<!-- extras: end -->\n<!-- lectures: begin -->\n" in page
    assert "## Extras" not in page


def test_extras_are_listed_with_what_they_go_with_and_their_minutes(folder):
    write(folder, "words.ipynb", "Fewer words", "[02](../02_tokenization.ipynb) and [03](../03_embeddings.ipynb)", 25)
    write(folder, "axes.ipynb", "Axes", "[03](../03_embeddings.ipynb)", 10)
    page = timetable.with_timetable(PAGE)
    assert page.partition("|---|---|---|\n")[2].partition("<!-- lectures: begin -->")[0] == (
        "| [Axes](extras/axes.ipynb) | [03](03_embeddings.ipynb) | 10 |\n"
        "| [Fewer words](extras/words.ipynb) | [02](02_tokenization.ipynb), [03](03_embeddings.ipynb) | 25 |\n"
        "<!-- extras: end -->\n")
    assert "## Extras" in page and timetable.with_timetable(page) == page


def test_a_page_without_a_place_for_the_table_is_refused(folder):
    with pytest.raises(ValueError, match="must hold <!-- extras: begin --> and <!-- extras: end --> once each"):
        timetable.with_timetable(PAGE.replace("<!-- extras: begin -->", ""))
