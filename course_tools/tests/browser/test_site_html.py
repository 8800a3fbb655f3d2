"""The built site as text: links, anchors, alternative texts, sizes, links both ways with the reference, correct HTML."""

import os
import re

import pytest
from page_checkers import html_mistakes
from site_pages import all_pages, double_ids, is_elsewhere, own_weight, read_page, resolve, wrong_links, wrong_styles

from course_tools.site.downloads import FOLDER
from course_tools.site.pages import all_pages as all_course_pages
from course_tools.site.reference import everything, taught
from course_utils.files.paths import NOTEBOOKS

LARGEST = 3_000_000                                       # bytes of a page with all that it loads itself
# What the HTML checker, which is from 2020, takes for mistakes in the cheat sheet's style, with the reason to let it pass.
NEWER = {
    r"CSS: “(print-)?color-(scheme|adjust)”: Property .* doesn't exist": "CSS Color Adjustment Module Level 1, 2022",
    r"CSS: Parse Error\.  [^{]*:has\(": "Selectors Level 4 has :has(), which browsers know since 2023",
}
IMAGE = re.compile(r"<img\b[^>]*>")


@pytest.fixture(scope="module")
def pages(built_site):
    """Every page of the site, the slides among them where there are any."""
    found = all_pages(built_site)
    assert len(found) > 100
    return found


def name(site, page) -> str:
    return page.relative_to(site).as_posix()


def test_every_link_and_anchor_leads_somewhere_and_nothing_is_fetched_from_a_network(built_site, pages):
    assert wrong_links(built_site, pages) == []
    assert wrong_styles(built_site) == []
    assert sum(len(read_page(page).links) for page in pages) > 10_000


def test_no_id_is_there_twice(built_site, pages):
    assert [f"{name(built_site, page)}: {double_ids(page)}" for page in pages if double_ids(page)] == []


def test_no_page_is_larger_than_three_megabytes(built_site, pages, capsys):
    weights = sorted(((sum(own_weight(built_site, page)[:1]), name(built_site, page)) for page in pages), reverse=True)
    with capsys.disabled():
        print("\n  largest pages:", ", ".join(f"{page} {weight / 1e6:.2f} MB" for weight, page in weights[:3]))
    assert weights[0][0] < LARGEST


def test_every_picture_has_an_alternative_text_and_a_size(built_site, pages):
    wrong = []
    for page in pages:
        if "slides" in page.relative_to(built_site).parts:
            continue                                      # a slide gives its pictures their size
        for tag in IMAGE.findall(re.sub(r"<script\b.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S)):
            sized = all(re.search(rf'\s{side}="\d+"', tag) for side in ("width", "height"))
            if not sized or not re.search(r'\salt="[^"]', tag):
                wrong.append(f"{name(built_site, page)}: {tag[:150]}")
    assert wrong == []


def test_each_name_of_the_reference_has_an_anchor_and_its_source(built_site):
    for entry in everything():
        page = built_site / "reference" / f"{entry.module}.html"
        assert entry.full in read_page(page).ids, entry.full
    sources = [link for entry in everything() if entry.kind != "data" for link in
               read_page(built_site / "reference" / f"{entry.module}.html").links
               if link.address.startswith("../_modules/") and link.address.endswith(f"#{entry.name}")]
    assert len({link.address for link in sources}) == sum(entry.kind != "data" for entry in everything())


def test_a_section_and_what_it_teaches_link_to_each_other(built_site):
    pairs = 0
    for module, entries in taught().items():
        reference = built_site / "reference" / f"{module}.html"
        text = reference.read_text(encoding="utf-8")
        for entry in entries:
            about = text.partition(f'id="{entry.full}"')[2]
            found = re.search(r'<em>Taught in</em> <a class="[^"]*" href="([^"]+)">', about)
            assert found, f"{entry.full} doesn't say where it's taught"
            section, anchor = resolve(reference, found[1])
            assert section == (built_site / f"{entry.notebook}.html").resolve() and anchor in read_page(section).ids
            after = section.read_text(encoding="utf-8").partition(f'id="{anchor}"')[2]
            back = os.path.relpath(reference, section.parent)             # an extra's page is in a folder of its own
            assert f'href="{back}#{entry.full}"' in _first_section(after), f"{entry.full}: no link back"
            pairs += 1
    assert pairs > 80


def _first_section(text: str) -> str:
    """What comes before the next heading of the same level."""
    return text.partition("</h2>")[2].partition("<h2>")[0]


def test_no_page_leads_to_a_page_that_only_a_clone_has(built_site, pages):
    """A link that stays on the site ends at a page, a picture, a source, a download: never at another notebook or text."""
    raw = [f"{name(built_site, page)}: {link.address}" for page in pages for link in read_page(page).links
           if not is_elsewhere(link.address) and re.search(r"\.(ipynb|md|py)(#|$)", link.address)
           and not resolve(page, link.address)[0].is_relative_to(built_site.resolve() / FOLDER)]
    assert raw == []


def test_every_notebook_s_page_has_its_download_and_each_deck_its_page(built_site):
    found = set()
    for page in all_notebooks():
        links = [resolve(built_site / f"{page.name}.html", link.address)[0]
                 for link in read_page(built_site / f"{page.name}.html").links if not is_elsewhere(link.address)]
        assert (built_site / FOLDER / page.source.relative_to(NOTEBOOKS)).resolve() in links, page.name
        found |= {link for link in links if link.parent.name == "slides"}
    decks = {path.resolve() for path in (built_site / "slides").glob("*.html")}
    assert {deck for deck in decks if deck.stem != "START" and (NOTEBOOKS / f"{deck.stem}.ipynb").is_file()} <= found


def all_notebooks():
    return [page for page in all_course_pages() if page.source.suffix == ".ipynb"]


def test_the_html_checker_finds_nothing(pages, tmp_path):
    faulty = tmp_path / "faulty.html"
    faulty.write_text("<!doctype html><html lang=en><title>x</title><p><ul></ul></p>", encoding="utf-8")
    assert len(html_mistakes([faulty])) == 1                             # it would find something
    assert html_mistakes(pages, NEWER) == []
