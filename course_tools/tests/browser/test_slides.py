"""The slides in Chromium, opened as files with the network cut: each one can be read from the last row, and keys work.

Measured at 1280 x 720: nothing reaches beyond a slide, and no type is below 18 pixels, in live pieces and pictures either.
"""

import base64
import re
import time
from collections import Counter

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from slide_decks import open_deck, problems, watch_canvases

from course_tools.slides.command import HOUR, write_slides
from course_utils.interactive.animations import ANIMATIONS, state_at

SECONDS = 240           # for measuring all slides, on two quiet cores
WITH_PIECES = [HOUR, "04_attention", "05_multi_head_attention", "06_positional_encoding", "08_classifier",
               "10_attention_maps", "13_language_model"]
WITH_MAPS = [(HOUR, "hour-yours-code"), ("08_classifier", "08-figure-yours"), ("13_language_model", "13-view")]
SHOWN = """var inside = arguments[0].shadowRoot, input = inside.querySelector("input");
return inside.querySelector(".piece").innerHTML + (input ? input.value : "");"""
VALUE = "return arguments[0].shadowRoot.querySelector('input[type=range]').value"
# Turns to slide after slide, waits on each as a speaker does, and says what moves there and what each animation shows.
AT_REST = """var done = arguments[arguments.length - 1], found = [];
function roots(node) {
  return [node].concat(...Array.from(node.querySelectorAll("*"), one => one.shadowRoot ? roots(one.shadowRoot) : []));
}
(async function () {
  for (var slide of Reveal.getSlides()) {
    var at = Reveal.getIndices(slide), pieces = Array.from(slide.querySelectorAll(".course-piece"));
    Reveal.slide(at.h, at.v, 1000);
    await new Promise(next => setTimeout(next, pieces.length ? 300 : 0));
    await new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)));
    var moving = roots(document).flatMap(root => root.getAnimations()).filter(one => one.playState === "running" &&
      !(one instanceof CSSTransition && one.effect.target.getRootNode() === document)); // Reveal's own
    found.push({ slide: slide.id, moving: moving.length, pictures: slide.querySelectorAll("img[src$='.gif'], video").length,
      shown: pieces.filter(one => one.dataset.piece.startsWith("moving")).map(SHOWN) });
  }
  done(found);
})();
function SHOWN(host) {
  var inside = host.shadowRoot, shapes = inside.querySelectorAll("svg > *"), slider = inside.querySelector("input");
  return { caption: inside.querySelector(".caption").textContent, step: slider.value,
    button: inside.querySelector("button").textContent, shapes: Array.from(shapes, function (one) {
      var look = getComputedStyle(one), at = new DOMMatrix(look.transform);
      return [Number(look.opacity), at.e, at.f, at.a, look.fill];
    }) };
}"""
SHOWN_NOW = AT_REST.partition("function SHOWN")[2].replace("(host)", "return (function (host)") + ")(arguments[0])"


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    """All decks, written once: their folder, and the decks by name."""
    folder = tmp_path_factory.mktemp("slides")
    return folder, {deck.name: deck for deck in write_slides(folder, [])}


@pytest.fixture
def opened_deck(browser, decks):
    """opened_deck("04_attention", "?print-pdf"): the deck in Chromium, and what it has to do with."""
    def open_one(name, more=""):
        open_deck(browser, decks[0] / f"{name}.html", more)
        return browser.driver
    return open_one


def at(driver) -> int:
    return driver.execute_script("return Reveal.getIndices().h")


def test_every_slide_can_be_read_from_the_last_row(browser, decks):
    folder, by_name = decks
    watch_canvases(browser)
    found, begun = [], time.perf_counter()
    for name in by_name:
        found += problems(browser, folder / f"{name}.html")
        found += [f"{name}: {said}" for said in browser.failures()]
    assert not found, f"{len(found)} problems:\n" + "\n".join(map(str, found))
    assert time.perf_counter() - begun < SECONDS


def test_no_title_stands_more_than_twice_in_the_deck_of_a_notebook(decks):
    often = {name: {title: number for title, number in Counter(slide.title for slide in deck.slides).items() if number > 2}
             for name, deck in decks[1].items() if not name.startswith("week_")}
    assert not any(often.values()), {name: titles for name, titles in often.items() if titles}


def test_no_slide_shows_a_statement_alone_or_a_table_without_a_head(decks):
    alone = [slide.id for deck in decks[1].values() for slide in deck.slides
             if {block.kind for block in slide.blocks} == {"claims"}]
    tables = {slide.id: block.html for deck in decks[1].values() for slide in deck.slides for block in slide.blocks
              if block.kind == "table"}
    headless = [name for name, table in tables.items() if "<thead>" not in table]
    assert not alone and not headless, (alone, headless)


SPOILED = """<section id="spoiled" style="font-size:30px"><h2>Spoiled</h2><p style="font-size:17px">small</p><p>fine</p>
<img src="pictures/no/x.png" width="30"><div class="host"></div><canvas width="90" height="20"></canvas>
<canvas class="slanted" width="90" height="90"></canvas>
<div style="height:900px">too much</div><math style="font-size:20px"><mi style="font-size:12px">x</mi></math>
<math style="font-size:24px"><mi style="font-size:12px">y</mi></math><script>
document.querySelector(".host").attachShadow({mode: "open"}).innerHTML = '<b style="font-size:10px">in a piece</b>';
var pen = document.querySelector("canvas").getContext("2d");
pen.font = "11px sans-serif";
pen.fillText("drawn", 0, 15);
pen = document.querySelector(".slanted").getContext("2d");
pen.font = "19px sans-serif";
pen.rotate(Math.PI / 4);
pen.fillText("large enough", 0, 15);</script></section>"""


def test_what_is_wrong_with_a_slide_is_found(browser, decks):
    """Too much text; small type on the slide, in a piece, on a canvas and in a small formula; a stray picture. Slanted type
    counts by its size."""
    watch_canvases(browser)
    page = (decks[0] / "04_attention.html").read_text(encoding="utf-8")
    path = decks[0] / "spoiled.html"
    path.write_text(page.replace("<section", f"{SPOILED}\n<section", 1), encoding="utf-8")
    said = [one.what for one in problems(browser, path) if one.slide == "spoiled"]
    path.unlink()
    assert any("x.png" in line for line in browser.failures())
    assert {line for line in said if "pixels too far" not in line} == {
        "type of 17 pixels: p small", "type of 10 pixels: b in a piece", "type of 11 pixels: canvas ",
        "type of 12 pixels: mi x", "its picture isn't drawn for slides: pictures/no/x.png"}
    assert any(line.endswith("pixels too far: div too much") for line in said)


def test_keys_turn_the_slides_show_all_of_them_and_leave_a_link_to_each(opened_deck):
    driver = opened_deck("04_attention")
    body = driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.ARROW_RIGHT)
    body.send_keys(Keys.END)
    assert at(driver) == driver.execute_script("return Reveal.getTotalSlides()") - 1
    body.send_keys(Keys.HOME)
    assert at(driver) == 0
    body.send_keys("o")
    assert driver.execute_script("return Reveal.isOverview()")
    body.send_keys(Keys.ESCAPE)
    assert not driver.execute_script("return Reveal.isOverview()")
    last = driver.execute_script("return Reveal.getSlides()[5].id")
    assert last and at(opened_deck("04_attention", f"#/{last}")) == 5


# ChromeDriver waits for ever in a window that a file wrote, so its opener asks it.
KEEP = "var open = window.open; window.open = function () { return window.speakers = open.apply(window, arguments); }"
NOTES = """var notes = window.speakers && window.speakers.document.querySelector(".speaker-controls-notes .value");
return notes ? notes.innerText : "";"""


def test_the_speakers_window_opens_with_the_notes_of_the_slide(browser, opened_deck):
    driver = opened_deck("04_attention", "#/2")
    driver.execute_script(KEEP)
    driver.find_element(By.TAG_NAME, "body").send_keys("s")
    shown = browser.wait(lambda: driver.execute_script(NOTES))
    assert "minute" in shown.split("\n")[0] and len(shown) > 100
    driver.execute_script("window.speakers.close()")
    browser.wait(lambda: len(driver.window_handles) == 1)


def live(browser, slide):
    """The live piece on a slide of the open deck, once that slide is shown."""
    browser.driver.execute_script("location.hash = '#/' + arguments[0]", slide)
    shown = ("var slide = Reveal.getCurrentSlide();"
             "return slide.id === arguments[0] && slide.querySelector('.course-piece[data-live]')")
    return browser.wait(lambda: browser.driver.execute_script(shown, slide))


def test_a_live_piece_keeps_its_keys_until_page_down(browser, opened_deck):
    driver = opened_deck("04_attention")
    piece = live(browser, "04-animation-causal")
    before, here = driver.execute_script(VALUE, piece), at(driver)
    slider = piece.shadow_root.find_element(By.CSS_SELECTOR, "input[type=range]")
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_UP, "o", " "):
        slider.send_keys(key)
        assert at(driver) == here and not driver.execute_script("return Reveal.isOverview()")
    assert driver.execute_script(VALUE, piece) != before
    slider.send_keys(Keys.PAGE_DOWN)
    assert at(driver) != here


@pytest.mark.parametrize("name", WITH_PIECES)
def test_every_live_piece_on_a_slide_answers(browser, opened_deck, name):
    driver = opened_deck(name)
    slides = driver.execute_script("return Reveal.getSlides().filter(s => s.querySelector('.course-piece')).map(s => s.id)")
    assert slides
    for slide in slides:
        piece = live(browser, slide)
        before = driver.execute_script(SHOWN, piece)
        handles = piece.shadow_root.find_elements(By.CSS_SELECTOR, "input")
        if handles:
            handles[0].send_keys(Keys.ARROW_RIGHT if handles[0].get_attribute("type") == "range" else Keys.ARROW_UP)
        else:
            piece.shadow_root.find_element(By.CSS_SELECTOR, "[role=switch], .token:last-child").click()
        browser.wait(lambda piece=piece, before=before: driver.execute_script(SHOWN, piece) != before)


def said_and_shown(shown) -> list[str]:
    """Where the picture of an animation isn't what its caption, its slider and its button say."""
    animation = next(made for make in ANIMATIONS.values() if shown["caption"] in (made := make()).captions)
    step = animation.captions.index(shown["caption"])
    wrong = [] if shown["step"] == str(step + 1) else [f"the slider is at {shown['step']}, the caption at {step + 1}"]
    wrong += [] if shown["button"] == "Play" else [f"its button says {shown['button']!r}"]
    for shape, (opacity, x, y, stretch, fill) in zip(animation.shapes, shown["shapes"], strict=True):
        state = state_at(shape, step, 1)
        right = opacity, x, y, stretch, fill
        if right[:4] != pytest.approx(state[:4], abs=1e-3) or (state.fill and rgb(state.fill) != fill):
            wrong.append(f"{shape.text or 'a bar'} is {right} instead of {tuple(state)}")
    return wrong


def rgb(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(int(colour[k : k + 2], 16) for k in (1, 3, 5)))


def test_nothing_moves_in_any_deck_and_every_animation_shows_what_it_says(browser, decks):
    folder, by_name = decks
    browser.driver.set_script_timeout(120)
    found, animations = [], 0
    for name in by_name:
        open_deck(browser, folder / f"{name}.html")
        for one in browser.driver.execute_async_script(AT_REST):
            where = f"{name} #{one['slide']}"
            found += [f"{where}: {one['moving']} animations run"] if one["moving"] else []
            found += [f"{where}: {one['pictures']} pictures that move by themselves"] if one["pictures"] else []
            found += [f"{where}: {wrong}" for shown in one["shown"] for wrong in said_and_shown(shown)]
            animations += len(one["shown"])
    assert not found, f"{len(found)} problems:\n" + "\n".join(found[:40])
    assert animations >= len(ANIMATIONS)


def test_an_animation_is_where_it_was_left_when_its_slide_comes_back(browser, opened_deck):
    driver = opened_deck("04_attention")
    piece = live(browser, "04-animation-sharpening")
    piece.shadow_root.find_element(By.CSS_SELECTOR, "input").send_keys(*3 * [Keys.ARROW_RIGHT])
    left = driver.execute_script(SHOWN_NOW, piece)
    assert left["step"] == "4" and said_and_shown(left) == []
    here = at(driver)
    driver.execute_script("Reveal.slide(Reveal.getTotalSlides() - 1)")      # so far away that Reveal hides the piece
    browser.wait(lambda: driver.execute_script("return !arguments[0].getClientRects().length", piece))
    driver.execute_script("Reveal.slide(arguments[0])", here)
    browser.wait(lambda: driver.execute_script("return arguments[0].getClientRects().length", piece))
    time.sleep(0.5)
    assert driver.execute_script(SHOWN_NOW, piece) == left


@pytest.mark.parametrize("name, slide", WITH_MAPS)
def test_an_attention_view_opens_on_its_map(browser, opened_deck, name, slide):
    driver = opened_deck(name)
    maps = live(browser, slide).shadow_root.find_elements(By.CSS_SELECTOR, ".map canvas:not(.top)")
    boxes = [driver.execute_script("return arguments[0].getBoundingClientRect().toJSON()", one) for one in maps]
    assert boxes and all(box["width"] > 320 and box["height"] > 300 and box["bottom"] <= 720 for box in boxes), boxes


@pytest.mark.parametrize("name", ["04_attention", "ninety_minutes"])
def test_a_pdf_has_a_page_for_each_slide(browser, decks, opened_deck, name):
    driver = opened_deck(name, "?print-pdf")
    browser.wait(lambda: driver.execute_script("return document.querySelectorAll('.pdf-page').length"))
    asked = {"preferCSSPageSize": True, "printBackground": True}
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", asked)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == len(decks[1][name].slides)
