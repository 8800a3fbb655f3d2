"""The built site in a browser, page by page: what a reader's browser would complain about, at every width.

Does: serve a folder on this machine, visit pages, measure them. Does not: judge; the tests in course_tools/tests/browser do.
"""

import contextlib
import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from browsers import SIZES
from page_checkers import accessibility

# Formulas that the page shows and that have no size, and those that MathML couldn't make sense of.
FORMULAS = """
return Array.from(document.querySelectorAll("math")).filter(function (one) {
  const box = one.getBoundingClientRect();
  const folded = one.closest("details:not([open])") || one.closest(".onlyprint, [hidden]");
  return one.querySelector("merror") || (!folded && (box.width < 2 || box.height < 4));
}).map(function (one) { return one.getAttribute("alttext") || one.textContent; });
"""
# What sticks out of the page on the right and isn't inside something that scrolls by itself.
STICKS_OUT = """
const width = document.documentElement.clientWidth, found = [];
for (const one of document.querySelectorAll("body *")) {
  const box = one.getBoundingClientRect();
  if (box.width && box.right > width + 1 && getComputedStyle(one).position !== "fixed") {
    let inside = one.parentElement;
    while (inside && getComputedStyle(inside).overflowX === "visible") inside = inside.parentElement;
    if (!inside || inside === document.body || inside === document.documentElement)
      found.push(one.tagName + "." + one.className + " " + (one.textContent || "").trim().slice(0, 40));
  }
}
return found.slice(0, 3);
"""
# Boxes of code that have to be scrolled sideways, folded ones opened.
SCROLLED = """
for (const one of document.querySelectorAll("details")) one.open = true;
return Array.from(document.querySelectorAll(".bd-article pre")).filter(function (one) {
  return one.scrollWidth > one.clientWidth;
}).map(function (one) { return one.scrollWidth - one.clientWidth + " px: " + one.textContent.trim().slice(0, 60); });
"""
# Type that is smaller than that on the screen, in pieces and drawings too, and pictures made small that can't be enlarged.
SMALL = """
const least = arguments[0], found = [];
function look(root) {
  for (const one of root.querySelectorAll("*")) {
    if (one.shadowRoot) look(one.shadowRoot);
    const text = Array.from(one.childNodes).filter(node => node.nodeType === 3).map(node => node.data).join("").trim();
    if (!text || !one.getClientRects().length || /^(script|style|title|desc|sub|sup)$/i.test(one.tagName)) continue;
    const style = getComputedStyle(one), turned = one.getScreenCTM ? one.getScreenCTM() : null;
    const size = parseFloat(style.fontSize) * (turned ? Math.hypot(turned.b, turned.d) : 1);
    if (size < least - 0.05 && size > 0.5 && style.visibility !== "hidden")
      found.push(size.toFixed(1) + " px: " + one.tagName.toLowerCase() + " " + text.slice(0, 40));
  }
}
look(document);
for (const one of document.querySelectorAll(".bd-article img[width]")) {
  const shown = one.getBoundingClientRect().width;
  const opens = one.closest("a") || one.parentElement.querySelector("button.enlarge");
  if (shown && shown < 0.7 * one.getAttribute("width") && !opens)
    found.push("a picture that can't be enlarged: " + one.getAttribute("src"));
}
return found.slice(0, 5);
"""
SMALLEST = 8.8                                            # CSS pixels, on a phone: words beside an animation; others have 9


class Visit(NamedTuple):
    """What a visit to one page found; every part is empty where all is well."""

    failures: list[str]
    formulas: list[str]
    wide: list[str]
    access: list[str]
    scrolled: list[str]
    small: list[str]


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine and give its address, without a slash at the end."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def visit(browser, address: str, sizes=tuple(SIZES), access: tuple[str, ...] = ()) -> Visit:
    """Open a page, look at it at each of `sizes`, and let axe look at those of `access`."""
    browser.resize(sizes[0])
    browser.open(address)
    browser.wait(lambda: browser.driver.execute_script("return document.readyState === 'complete'"))
    wide, found, scrolled, small = [], [], [], []
    for size in sizes:
        browser.resize(size)
        beyond = browser.too_wide()
        if beyond:
            wide.append(f"{size}: {beyond} px too wide: {browser.driver.execute_script(STICKS_OUT)}")
        if size == "phone":
            small = browser.driver.execute_script(SMALL, SMALLEST)
        if size in access:
            found += [f"{size}: {line}" for line in accessibility(browser)]
    formulas = browser.driver.execute_script(FORMULAS)
    if "projector" in sizes:
        browser.resize("projector")
        scrolled = browser.driver.execute_script(SCROLLED)
    failures = [line for line in browser.failures() if "/favicon.ico " not in line]       # asked for where a page names none
    return Visit(failures, formulas, wide, found, scrolled, small)


def collected(visits: dict[str, Visit], part: str) -> list[str]:
    """One part of all visits, a line for each thing found: 'page: what'."""
    return [f"{page}: {line}" for page, one in visits.items() for line in getattr(one, part)]
