"""The cheat sheet in Chromium: it prints on one A4 page, nothing is cut or too small, and it can be read on a phone."""

import base64
import re

import pytest

from course_tools.sheets.cheat_sheet import PAGE

# What is cut or lies outside the page, and how large the letters are, in CSS pixels; a point is 4/3 of one.
MEASURE = """
const page = document.body.getBoundingClientRect(), cut = [], sizes = {};
for (const cell of document.querySelectorAll("th, td, p, h1, h2")) {
  const box = cell.getBoundingClientRect();
  const range = document.createRange(); range.selectNodeContents(cell);
  const inside = range.getBoundingClientRect();
  if (inside.width && (inside.right > box.right + 0.5 || box.right > page.right + 0.5 || inside.left < page.left - 0.5))
    cut.push(cell.textContent);
}
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim(), parent = walker.currentNode.parentElement;
  const kind = parent.closest("sub, sup") ? "index" : "text";
  if (text) sizes[kind] = Math.min(sizes[kind] || 99, parseFloat(getComputedStyle(parent).fontSize));
}
return {cut: cut, sizes: sizes, height: page.height};
"""


@pytest.fixture
def sheet(browser):
    """The sheet, opened."""
    browser.open(PAGE)
    return browser


def printed(browser) -> bytes:
    """The open page as a PDF, on the paper that its style asks for."""
    asked = {"preferCSSPageSize": True, "printBackground": False}
    return base64.b64decode(browser.driver.execute_cdp_cmd("Page.printToPDF", asked)["data"])


def pages(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def test_it_prints_on_one_a4_page(sheet, pictures):
    pdf = printed(sheet)
    pictures.mkdir(parents=True, exist_ok=True)
    (pictures / "cheat_sheet.pdf").write_bytes(pdf)                            # for a person to look at
    assert pages(pdf) == 1
    width, height = map(float, re.search(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", pdf).groups())
    assert abs(width - 210 / 25.4 * 72) < 1 and abs(height - 297 / 25.4 * 72) < 1


def test_a_line_too_many_would_be_seen(sheet):
    sheet.driver.execute_script(
        "for (let i = 0; i < 6; i++) document.body.append(document.querySelector('h1').cloneNode(true))")
    assert pages(printed(sheet)) == 2


def test_in_print_nothing_is_cut_and_nothing_is_too_small(sheet):
    sheet.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        found = sheet.driver.execute_script(MEASURE)
        sheet.driver.execute_script("document.querySelector('.code').textContent = 'wide'.repeat(30)")
        assert sheet.driver.execute_script(MEASURE)["cut"]                     # this is how a cut name would be found
    finally:
        sheet.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert found["cut"] == []
    assert found["sizes"]["text"] >= 8 * 4 / 3 - 0.01 and found["sizes"]["index"] >= 6.5 * 4 / 3 - 0.01
    assert (297 - 16) * 96 / 25.4 - found["height"] > 12                       # a line to spare, for other fonts


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", ["phone", "tablet", "projector"])
def test_it_can_be_read_on_a_screen(sheet, pictures, size, dark):
    sheet.resize(size)
    sheet.prefer(dark=dark)
    sheet.picture(pictures / f"cheat_sheet-{size}-{'dark' if dark else 'light'}.png")
    assert sheet.too_wide() == 0
    ink, paper = sheet.driver.execute_script(
        "const s = getComputedStyle(document.body);"
        "return [s.color, s.backgroundColor].map(c => Number(c.match(/\\d+/)[0]))")
    assert abs(ink - paper) > 180 and (ink > paper) == dark
