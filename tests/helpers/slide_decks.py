"""Decks of slides in a browser: open one, and measure each of its slides as it is projected at 1280 x 720.

Does: say of every slide what is beyond its edge, and which type is too small. Does not: write the decks (make slides does).
Formulas may have smaller indices: they count by the size of the formula, which must then be 24 pixels. Type in the pictures
is known from when they were drawn (`present_pictures`), type on a canvas from what is written on it.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from browsers import Browser
from selenium.webdriver.support.ui import WebDriverWait

from course_tools.slides.pictures import present_pictures

SMALLEST, FORMULA = 18, 24                                # CSS pixels
MEASURE = Path(__file__).with_name("slide_measures.js").read_text(encoding="utf-8")
# Notes on each canvas the size of the smallest type written on it, in its own pixels.
WATCH_CANVAS = """(function () {
  var write = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text) {
    var turned = this.getTransform(), size = parseFloat(this.font.match(/([\\d.]+)px/)[1]) * Math.hypot(turned.b, turned.d);
    if (String(text).trim()) this.canvas.smallestType = Math.min(this.canvas.smallestType || 1000, size);
    return write.apply(this, arguments);
  };
})();"""


class Problem(NamedTuple):
    """Something that is too large or too small: where, what, and by how much in words."""

    deck: str
    slide: str
    what: str

    def __str__(self) -> str:
        return f"{self.deck} #{self.slide}: {self.what}"


def watch_canvases(browser: Browser) -> None:
    """From the next page on, remember the smallest type written on every canvas."""
    browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH_CANVAS})
    browser.driver.set_script_timeout(120)


def open_deck(browser: Browser, path: Path, more: str = "") -> None:
    """Open a deck as a file, and wait until it is ready."""
    browser.open(path.resolve().as_uri() + more)
    WebDriverWait(browser.driver, 30).until(
        lambda driver: driver.execute_script("return typeof Reveal !== 'undefined' && Reveal.isReady()"))


def problems(browser: Browser, path: Path) -> list[Problem]:
    """What is wrong with the slides of a deck, with every step shown."""
    open_deck(browser, path)
    found = []
    for one in browser.driver.execute_async_script(MEASURE, SMALLEST, FORMULA):
        if one["kind"] == "overflow":
            found.append(Problem(path.stem, one["slide"], f"{one['much']} pixels too far: {one['what']}"))
        elif one["kind"] == "type":
            found.append(Problem(path.stem, one["slide"], f"type of {one['much']} pixels: {one['what']}"))
        elif one["kind"] == "empty":
            found.append(Problem(path.stem, one["slide"], one["what"]))
        else:
            found += [Problem(path.stem, one["slide"], said) for said in [in_picture(one["what"], one["much"])] if said]
    return found


def in_picture(address: str, width: float) -> str:
    """What is wrong with a picture shown so many pixels wide; '' if its type can be read."""
    stem, _, name = address.removeprefix("pictures/").partition("/")
    drawn = by_name(stem).get(name)
    if drawn is None:
        return f"its picture isn't drawn for slides: {address}"
    size = drawn.smallest_type * width / drawn.width
    return f"type of {size:.1f} pixels in {address}" if size < SMALLEST - 0.05 else ""


@cache
def by_name(stem: str) -> dict:
    """A notebook's pictures by the names of their files."""
    return {one.path.name: one for kept in present_pictures(stem).values() for one in kept}
