"""The buttons of a page that open its notebook, and links to files that have no page."""

from types import SimpleNamespace

import pytest

from course_tools.site import pages
from course_tools.site.launch import ICONS, add_menu, menu
from course_tools.site.links import Links
from course_utils.copies.hosted import launch_links
from course_utils.files.paths import NOTEBOOKS, ROOT

COURSE = "https://github.com/owner/course"


@pytest.mark.parametrize("page", [page for page in pages.all_pages() if page.source.suffix == ".ipynb"],
                         ids=lambda page: page.name)
def test_every_notebook_s_page_opens_that_notebook(page):
    buttons = menu(page.name, COURSE)["buttons"]
    place = page.source.relative_to(NOTEBOOKS).as_posix()
    assert {button["text"]: button["url"] for button in buttons} == launch_links(place, COURSE)
    assert [button["text"] for button in buttons] == list(ICONS)
    assert place in buttons[0]["url"] and place in buttons[1]["url"]


def test_a_page_of_text_and_a_course_without_an_address_have_no_buttons():
    assert menu("results", COURSE) is None and menu("genindex", COURSE) is None
    assert menu("04_attention", "") is None


def test_the_menu_comes_before_the_theme_s_own_buttons():
    app, context = SimpleNamespace(config=SimpleNamespace(launch_address=COURSE)), {"header_buttons": ["its own"]}
    add_menu(app, "04_attention", "page.html", context, None)
    assert context["header_buttons"] == [menu("04_attention", COURSE), "its own"]
    add_menu(app, "results", "page.html", untouched := {}, None)
    assert untouched == {}


def test_a_file_without_a_page_is_a_link_where_the_address_is_known():
    page = next(page for page in pages.all_pages() if page.name == "04_attention")
    names = pages.page_names()
    assert (ROOT / "Makefile").is_file()
    assert Links(page, names, COURSE).target("../Makefile") == f"{COURSE}/blob/main/Makefile"
    assert Links(page, names, "https://gitlab.com/a/b").target("../data/results#top") == (
        "https://gitlab.com/a/b/-/tree/main/data/results#top")
    assert Links(page, names).target("../Makefile") is None
