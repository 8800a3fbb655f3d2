"""A piece in a browser: it comes alive, asks no network for anything, and its picture stays where the script fails."""

import pytest
from selenium.webdriver.common.by import By

from course_utils.interactive import piece as pieces
from course_utils.interactive.piece import NOT_LIVE, Piece

STILL = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="10"><rect width="30" height="10"/></svg>'
TOY = """function build(root, data, host) {
  root.append(h("button", {onclick: function () { root.append(h("b", {}, data.said)); }}, "press"),
    h("i", {style: "background:" + weightColour(1, host).background}, shown(" a")));
}"""


@pytest.fixture
def toy(monkeypatch):
    """toy(script): a piece with that script."""
    source = pieces._source

    def make(script=TOY):
        monkeypatch.setattr(pieces, "_source", lambda name: script if name == "toy.js" else source(name))
        return Piece("toy", {"said": "</script><b>1 < 2"}, still=STILL, alt="A toy.")
    return make


def test_it_comes_alive_and_shows_its_data_as_text(opened, toy):
    root = opened(toy()).shadow_root
    root.find_element(By.CSS_SELECTOR, "button").click()
    assert root.find_element(By.CSS_SELECTOR, "b").text == "</script><b>1 < 2"
    assert root.find_element(By.CSS_SELECTOR, "i").text == "␣a"


def test_the_picture_stays_where_the_script_fails(browser, tmp_path, toy):
    toy("function build(root) { root.append('half'); throw new Error('planted'); }").save(tmp_path / "toy.html")
    browser.open(tmp_path / "toy.html")
    picture = browser.driver.find_element(By.CSS_SELECTOR, "img")
    assert picture.is_displayed() and picture.size["width"] == 30
    assert [line for line in browser.failures() if "planted" not in line] == []


LINE = "return Array.from(document.querySelectorAll('p'), one => one.checkVisibility() ? one.innerText : '').join('')"


def test_it_says_that_it_is_still_only_where_scripts_dont_run(browser, opened, toy, tmp_path):
    opened(toy())
    assert browser.driver.execute_script(LINE) == ""
    toy().save(tmp_path / "toy.html")
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.open(tmp_path / "toy.html")
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert browser.driver.execute_script(LINE) == NOT_LIVE
    assert browser.driver.find_element(By.CSS_SELECTOR, "img").is_displayed() and not browser.pieces()


def test_it_follows_the_page_into_the_dark(browser, opened, toy):
    host = opened(toy())
    assert host.get_attribute("data-dark") is None
    browser.prefer(dark=True)
    browser.wait(lambda: host.get_attribute("data-dark") is not None)
    browser.driver.execute_script("document.body.setAttribute('data-jp-theme-light', 'true')")
    browser.wait(lambda: host.get_attribute("data-dark") is None)


def test_a_request_to_a_network_is_seen_and_fails(browser, tmp_path):
    (tmp_path / "page.html").write_text('<img src="https://example.org/a.png">', encoding="utf-8")
    browser.open(tmp_path / "page.html")
    said = browser.wait(lambda: [line for line in browser.failures() if line.startswith("request")])
    assert "example.org" in said[0]
    browser.failures()
