"""Every page of the built site in Chromium with its network cut: at four widths, from a server and from a disk."""

import pytest
from page_checkers import accessibility
from site_in_browser import collected, served, visit
from site_pages import all_pages

# Pages of every sort, for what would take too long on all of them.
CHOSEN = ("index.html", "04_attention.html", "10_attention_maps.html", "results.html", "for_instructors.html",
          "reference/attention.html", "search.html", "_modules/course_utils/attention.html")


def nothing(found: list[str]) -> None:
    """Fail with a line for each thing found, which pytest would cut short."""
    assert not found, "\n".join(found[:60])


@pytest.fixture(scope="module")
def names(built_site):
    """The pages without the slides, which have tests of their own."""
    found = [page.relative_to(built_site).as_posix() for page in all_pages(built_site)]
    return [one for one in found if not one.startswith("slides/")]


@pytest.fixture(scope="module")
def visits(chromium, built_site, names):
    """A visit to every page, served by this machine: one opening serves all widths and axe."""
    chromium.prefer()
    with served(built_site) as address:
        return {page: visit(chromium, f"{address}/{page}", access=("projector",)) for page in names}


def test_no_request_fails_and_the_console_is_silent(visits):
    assert len(visits) > 100
    nothing(collected(visits, "failures"))


def test_all_mathematics_is_shown(visits):
    nothing(collected(visits, "formulas"))


def test_no_page_is_wider_than_its_window(visits):
    nothing(collected(visits, "wide"))


def test_no_box_of_code_is_scrolled_sideways_at_1280(visits):
    nothing(collected(visits, "scrolled"))


def test_type_can_be_read_on_a_phone(visits):
    nothing(collected(visits, "small"))


def test_no_page_is_larger_than_three_megabytes(built_site, names):
    """The page and what belongs to it alone; what all pages share is fetched once."""
    sizes = {name: (built_site / name).stat().st_size for name in names}
    nothing([f"{name}: {size / 1e6:.1f} MB" for name, size in sizes.items() if size > 3e6])


def test_axe_finds_nothing_serious(visits):
    nothing(collected(visits, "access"))


def test_the_same_from_a_disk(chromium, built_site, names):
    chromium.prefer()
    found = {page: visit(chromium, (built_site / page).as_uri(), sizes=("projector",)) for page in names}
    nothing([*collected(found, "failures"), *collected(found, "formulas")])


@pytest.mark.parametrize("size, dark", [("phone", False), ("projector", True)], ids=["narrow", "dark"])
@pytest.mark.parametrize("page", CHOSEN)
def test_axe_finds_nothing_serious_on_a_phone_and_in_the_dark(browser, built_site, pictures, page, size, dark):
    browser.resize(size)
    browser.prefer(dark=dark)
    browser.open(built_site / page)
    assert browser.driver.execute_script("return document.documentElement.dataset.theme") == ("dark" if dark else "light")
    browser.picture(pictures / f"site-{page.replace('/', '-')}-{size}-{'dark' if dark else 'light'}.png")
    nothing(accessibility(browser))


def test_the_checks_would_find_something(browser, tmp_path):
    """A page with one of each fault, so that a check that finds nothing means something."""
    page = tmp_path / "faulty.html"
    page.write_text('<!doctype html><html lang="en"><title>x</title><body><main><img src="missing.png">'
                    '<p style="font-size: 8px">small</p>'
                    '<svg viewBox="0 0 100 100" width="50"><text y="50">drawn</text></svg>'
                    '<p style="width: 2000px">wide</p><math><merror><mtext>x</mtext></merror></math>'
                    "<script>console.error('oh')</script>", encoding="utf-8")
    with served(tmp_path) as address:
        found = visit(browser, f"{address}/faulty.html", access=("projector",))
    assert [line.partition(": ")[2] for line in found.small] == ["p small", "text drawn"]
    assert len(found.wide) == 4 and found.formulas and any("image-alt" in line for line in found.access)
    assert any("missing.png" in line for line in found.failures) and any("oh" in line for line in found.failures)
