"""Links of notebooks and texts as links between the pages of the site."""

import re

import pytest

from course_tools.site.links import Links, anchor_on_page, headings, slug
from course_tools.site.pages import Page, all_pages, page_names
from course_utils.files.paths import NOTEBOOKS, ROOT

ADDRESS = "https://github.com/owner/course"
EXTRA = Page(NOTEBOOKS / "extras" / "near_and_far.ipynb", "extras/near_and_far", "Near and far", "", "10_attention_maps")
START = Page(NOTEBOOKS / "START.ipynb", "index", "Start here", "Begin")


def led(page, text, address=""):
    return Links(page, page_names(), address).in_markdown(text)


def test_a_link_to_a_notebook_or_a_text_leads_to_its_page():
    assert led(START, "[04](04_attention.ipynb)") == "[04](04_attention)"
    assert led(START, "[r](results.md) [s](../data/reviews/SAMPLES.md)") == "[r](results) [s](samples)"
    assert led(EXTRA, "[10](../10_attention_maps.ipynb) [0](../START.ipynb)") == "[10](../10_attention_maps) [0](../index)"
    assert led(START, "[it](extras/near_and_far.ipynb) [out](https://example.org/a.ipynb)") == \
        "[it](extras/near_and_far) [out](https://example.org/a.ipynb)"


def test_a_link_to_another_file_leads_to_the_repository_or_becomes_code():
    file = "[models.py](../course_utils/attention.py)"
    assert led(START, file) == "`models.py`"
    assert led(START, file, ADDRESS) == f'<a href="{ADDRESS}/blob/main/course_utils/attention.py">models.py</a>'
    assert led(START, "[the data](../data/results)") == "the data"


def test_code_is_not_read_for_links():
    code = "```\n[a](START.ipynb)\n```\nand `x[0](START.ipynb)`"
    assert led(START, code) == code
    assert led(START, "``a ` [b](START.ipynb)`` and [`b`](START.ipynb)") == "``a ` [b](START.ipynb)`` and [`b`](index)"


def test_a_link_between_two_pieces_of_code_is_one():
    assert led(START, "`a` (in [04](04_attention.ipynb)) or `b`") == "`a` (in [04](04_attention)) or `b`"
    assert led(START, "`a`, see [models.py](../course_utils/attention.py), `b`") == "`a`, see `models.py`, `b`"


def test_an_anchor_is_found_as_jupyter_and_as_github_write_it(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n## What `make grade` does, and what it can't do\n")
    right = "What-make-grade-does,-and-what-it-can't-do"
    assert anchor_on_page(page, "what-make-grade-does-and-what-it-cant-do") == anchor_on_page(page, right) == right
    assert anchor_on_page(page, "no-such") == "no-such"
    assert Links(Page(page, "page", "Page", ""), {page: "page"}).in_markdown("[a](#page) [b](page.md#page)") == \
        "[a](#Page) [b](page.md#Page)"


@pytest.mark.parametrize("title, right", [
    ('7. "Don\'t know"', "7.-Don't-know"), ("What is 'it'?", "What-is-'it'?"), ("a < b & c", "a--b--c")])
def test_an_anchor_holds_nothing_that_ends_an_attribute_of_html(tmp_path, title, right):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n## {title}\n")
    hosted = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    assert slug(title) == anchor_on_page(page, title.replace(" ", "-")) == anchor_on_page(page, hosted) == right


def test_no_heading_of_the_course_gives_a_broken_anchor():
    for page in all_pages():
        for title in headings(page.source):
            assert not set('"<>&') & set(slug(title)), (page.name, title)


@pytest.mark.parametrize("html, right", [
    ('<a href="00_tensors.ipynb" aria-label="00 Tensors" style="left:1%;"></a>',
     '<a href="00_tensors.html" aria-label="00 Tensors" style="left:1%;"></a>'),
    ('<a href="03_embeddings.ipynb"><b>03</b></a>', '<a href="03_embeddings.html"><b>03</b></a>'),
    ('<a href="nowhere.txt">words</a>', "words"),
])
def test_links_in_html_that_a_cell_shows(html, right):
    assert Links(START, page_names()).in_html(html) == right


def test_the_readme_links_to_pages():
    readme = Page(ROOT / "README.md", "readme", "", "")
    assert led(readme, "[04](notebooks/04_attention.ipynb), [C](CONTRIBUTING.md)") == "[04](04_attention), `C`"
