"""The built site in use: search, quizzes, predictions, pieces, dark mode, print, and without JavaScript."""

import base64
import io
import json
import re

import pytest
from pypdf import PdfReader
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from site_in_browser import served

from course_utils.files.paths import NOTEBOOKS

LESSON = "04_attention.html"


@pytest.fixture(params=["server", "disk"])
def site(request, built_site):
    """The site's address, with a slash at the end: from a server on this machine, and from the disk."""
    if request.param == "disk":
        yield f"{built_site.as_uri()}/"
    else:
        with served(built_site) as address:
            yield f"{address}/"


def all_of(browser, selector: str) -> list:
    return browser.driver.find_elements(By.CSS_SELECTOR, selector)


def in_view(browser, element):
    browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    return element


def test_the_search_finds_causal_masks(browser, site):
    browser.open(f"{site}search.html?q=causal+mask")
    found = browser.wait(lambda: all_of(browser, "#search-results li a"))
    addresses = [link.get_attribute("href") for link in found]
    assert any(LESSON in address for address in addresses)
    assert any("reference/attention.html" in address for address in addresses)


@pytest.mark.parametrize("words", ["causal mask", "softmax", "padding", "byte pairs"])
def test_sections_and_pages_come_before_the_reference(browser, built_site, words):
    found = searched(browser, built_site, words)
    places = [2 if "/_modules/" in address else 1 if "/reference/" in address else 0 for address in found]
    assert places == sorted(places) and places[0] == 0


def test_the_section_that_is_called_so_is_found_first(browser, built_site):
    first, *others = searched(browser, built_site, "causal mask")
    assert first.endswith(f"{LESSON}#the-causal-mask") and any("reference/attention.html#" in other for other in others)


def test_a_name_as_code_has_it_is_found_first(browser, built_site):
    assert "reference/attention.html" in searched(browser, built_site, "causal_mask")[0]


def searched(browser, site, words: str) -> list[str]:
    """The addresses that the search lists, in order."""
    browser.open(f"{site.as_uri()}/search.html?q={words.replace(' ', '+')}")
    browser.wait(lambda: "finished" in browser.driver.find_element(By.CSS_SELECTOR, ".search-summary").text)
    return [link.get_attribute("href") for link in all_of(browser, "#search-results li > a")]


def test_a_figure_is_enlarged_by_a_click_and_by_keys_and_escape_closes_it(browser, built_site, pictures):
    browser.resize("phone")
    browser.open(built_site / LESSON)
    button = browser.wait(lambda: all_of(browser, "figure.picture > button.enlarge"))[0]
    small = button.find_element(By.XPATH, "../img")
    own = int(small.get_dom_attribute("width"))
    assert small.size["width"] <= 330 < own
    for opens in (lambda: small.click(), lambda: button.send_keys(Keys.ENTER)):
        in_view(browser, small)
        browser.wait(lambda: small.get_property("complete"))
        opens()
        large = browser.wait(lambda: all_of(browser, "dialog.enlarged[open] img"))[0]
        assert large.size["width"] >= own                                # 8 points, the smallest type, are 11 pixels then
        assert large.get_attribute("alt") == small.get_attribute("alt") != ""
        box = browser.driver.find_element(By.CSS_SELECTOR, "dialog.enlarged > div")
        assert box.get_property("scrollWidth") > box.get_property("clientWidth") and browser.too_wide() == 0
        browser.picture(pictures / "site-enlarged-phone.png")
        browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        browser.wait(lambda: not all_of(browser, "dialog.enlarged[open]"))
        assert browser.driver.switch_to.active_element == button


def test_a_search_that_begins_on_a_page_ends_on_the_results(browser, site):
    browser.open(f"{site}extras/near_and_far.html")
    browser.driver.execute_script("document.querySelector('.search-button__button, .search-button').click()")
    field = browser.wait(lambda: next((one for one in all_of(browser, "input[name=q]") if one.is_displayed()), None))
    field.send_keys("softmax", Keys.ENTER)
    browser.wait(lambda: "search.html" in browser.driver.current_url and all_of(browser, "#search-results li a"))


def test_quizzes_open_and_predictions_are_answered_when_the_reader_asks(browser, site):
    browser.open(f"{site}{LESSON}")
    for selector, at_least in ((".text_html details", 4), ("details.reveal", 2)):
        folded = [one for one in all_of(browser, selector) if one.get_attribute("open") is None and one.is_displayed()]
        assert len(folded) >= at_least, selector
        inside = folded[0].find_element(By.CSS_SELECTOR, ":scope > :not(summary)")
        assert not inside.is_displayed()
        in_view(browser, folded[0].find_element(By.CSS_SELECTOR, "summary")).click()
        browser.wait(inside.is_displayed)


@pytest.mark.parametrize("page", [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb")) if "course-piece" in
                                  path.read_text(encoding="utf-8")])
def test_what_can_be_touched_is_alive(browser, built_site, page):
    shown = sum("course-piece" in "".join(output.get("data", {}).get("text/html", ""))
                for cell in json.loads((NOTEBOOKS / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]
                for output in cell.get("outputs", []))
    browser.open(built_site / f"{'index' if page == 'START' else page}.html")
    for one in all_of(browser, "details.reveal > summary"):
        browser.driver.execute_script("arguments[0].click()", one)
    assert len(browser.wait(lambda: len(browser.pieces()) >= shown and browser.pieces())) == shown > 0


def test_a_sentence_written_on_the_home_page_is_answered(browser, site):
    browser.open(f"{site}index.html")
    piece = browser.wait(lambda: browser.pieces("classifier_view"))[0]
    said = piece.shadow_root.find_element(By.CSS_SELECTOR, ".piece").text
    field = in_view(browser, piece.shadow_root.find_element(By.CSS_SELECTOR, "textarea"))
    field.send_keys(Keys.END, Keys.BACKSPACE, " to me, and splendid.")
    browser.wait(lambda: piece.shadow_root.find_element(By.CSS_SELECTOR, ".piece").text != said)


def test_the_dark_page_is_a_click_away_and_pieces_follow(browser, site):
    browser.open(f"{site}index.html")
    piece = browser.wait(browser.pieces)[0]

    def background() -> str:
        return browser.driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    light = background()
    next(one for one in all_of(browser, ".theme-switch-button") if one.is_displayed()).click()
    browser.wait(lambda: next((one for one in all_of(browser, ".theme-change-button[data-mode=dark]") if one.is_displayed()),
                              None)).click()
    browser.wait(lambda: background() != light)
    browser.wait(lambda: piece.get_attribute("data-dark") is not None)
    browser.driver.execute_script("localStorage.clear()")


def test_without_javascript_the_text_the_figures_and_the_quizzes_are_there(browser, built_site):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.open(built_site / LESSON)
        shot = browser.driver.execute_cdp_cmd("DOMSnapshot.captureSnapshot", {"computedStyles": []})
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    strings, layout = shot["strings"], shot["documents"][0]["layout"]
    text = " ".join(strings[i] for i, box in zip(layout["text"], layout["bounds"]) if i >= 0 and box[2] > 0)
    words = "".join("".join(cell["source"]) for cell in json.loads(
        (NOTEBOOKS / "04_attention.ipynb").read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "markdown")
    assert len(text.split()) > 0.6 * len(words.split())
    assert "Try it first" in text and "Show what happens" in text and "Scaled" in text


def test_a_printed_lesson_has_no_blank_page_and_its_folds_are_open(browser, built_site, pictures):
    browser.open(built_site / LESSON)
    asked = {"preferCSSPageSize": True, "printBackground": False, "paperWidth": 8.27, "paperHeight": 11.69}
    pdf = base64.b64decode(browser.driver.execute_cdp_cmd("Page.printToPDF", asked)["data"])
    pictures.mkdir(parents=True, exist_ok=True)
    (pictures / "site-04_attention.pdf").write_bytes(pdf)                    # for a person to look at
    pages = PdfReader(io.BytesIO(pdf)).pages
    texts = [page.extract_text() for page in pages]
    blank = [number for number, (page, text) in enumerate(zip(pages, texts), 1) if not text.strip() and not page.images]
    assert 10 < len(pages) < 80 and blank == []
    folded = browser.driver.execute_script(
        "return Array.from(document.querySelectorAll('details.reveal p'), function (one) { return one.textContent; })")
    whole = re.sub(r"\s+", "", "".join(texts))
    opened = [text for text in folded if len(text) > 60 and re.sub(r"\W+", "", text)[:30] in re.sub(r"\W+", "", whole)]
    assert len(opened) >= 3
