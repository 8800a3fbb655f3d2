"""The pages of a built site, their anchors and their links, read as text.

Does: find links that lead nowhere, ids that are there twice, and files that a page would fetch from a network. Does not:
start a browser, or open the addresses of other sites.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

# which attributes of which elements hold an address
ADDRESSES = {"a": ("href",), "area": ("href",), "link": ("href",), "use": ("href", "xlink:href"), "form": ("action",),
             "object": ("data",), "video": ("src", "poster")}
FETCHED = ("src",)                                        # of any other element: img, script, iframe, source …
NAMED_ONLY = {"canonical", "license", "author"}           # a <link> that names an address and fetches nothing
IN_STYLES = re.compile(r"url\(\s*['\"]?(?!data:|#)([^'\")]+)")
NO_FILE = ("mailto:", "data:", "javascript:", "blob:", "about:")


class Link(NamedTuple):
    """An address in a page, and the element that holds it; `follows` if a reader has to choose to go there."""

    tag: str
    address: str
    follows: bool


class Page(NamedTuple):
    """What a page offers (`ids`) and what it refers to (`links`), both in the order of the page."""

    ids: list[str]
    links: list[Link]


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.page = Page([], [])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.page.ids.extend(found[name] for name in ("id",) if name in found)
        follows = tag in ("a", "area", "form") or (tag == "link" and bool(NAMED_ONLY & set(found.get("rel", "").split())))
        for name in ADDRESSES.get(tag, FETCHED):
            if found.get(name):
                self.page.links.append(Link(tag, found[name], follows))
        for part in found.get("srcset", "").split(","):
            if part.strip():
                self.page.links.append(Link(tag, part.split()[0], False))


@cache
def read_page(path: Path) -> Page:
    """The ids and links of one HTML file."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


def all_pages(site: Path) -> list[Path]:
    """Every page of a built site, by name; the helper pages in _static are left out."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.relative_to(site).parts)


def resolve(page: Path, address: str) -> tuple[Path, str]:
    """The file and the anchor that an address in a page leads to."""
    parts = urlsplit(address)
    return (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve(), unquote(parts.fragment)


def is_elsewhere(address: str) -> bool:
    return address.startswith("//") or bool(urlsplit(address).netloc)


def wrong_links(site: Path, pages: Iterable[Path]) -> list[str]:
    """What is wrong with the links of pages: no such file, no such anchor, out of the site, or from a network."""
    site, wrong = site.resolve(), []
    for page in pages:
        name = page.resolve().relative_to(site).as_posix()
        for link in read_page(page).links:
            said = _wrong(site, page, link)
            if said:
                wrong.append(f"{name}: <{link.tag}> {link.address}: {said}")
    return wrong


def _wrong(site: Path, page: Path, link: Link) -> str:
    if link.address.startswith(NO_FILE):
        return ""
    if is_elsewhere(link.address):
        return "" if link.follows else "is fetched from a network"
    if link.address.startswith("/"):
        return "is no relative address"
    file, anchor = resolve(page, link.address)
    if not file.is_relative_to(site):
        return "leads out of the site"
    if file.is_dir():
        return "is a folder; from a disk a browser would list it"
    if not file.is_file():
        return "there is no such file"
    if anchor and anchor != "top" and file.suffix == ".html" and anchor not in read_page(file).ids:
        return "the page has no such anchor"
    return ""


def wrong_styles(site: Path) -> list[str]:
    """Addresses in style sheets that lead to no file, or to a network."""
    wrong = []
    for sheet in sorted(site.rglob("*.css")):
        for address in IN_STYLES.findall(sheet.read_text(encoding="utf-8")):
            if is_elsewhere(address) or not resolve(sheet, address)[0].is_file():
                wrong.append(f"{sheet.relative_to(site).as_posix()}: {address}")
    return wrong


def double_ids(page: Path) -> list[str]:
    """The ids that more than one element of a page has."""
    return sorted(name for name, count in Counter(read_page(page).ids).items() if count > 1)


def own_weight(site: Path, page: Path, theme: str = "_static") -> tuple[int, int]:
    """How many bytes a page is with what it loads itself, and how many more it takes from the folder that all share."""
    loaded = {resolve(page, link.address)[0] for link in read_page(page).links
              if not link.follows and not is_elsewhere(link.address) and not link.address.startswith((*NO_FILE, "#"))}
    shared = {file for file in loaded if theme in file.relative_to(site.resolve()).parts}
    own, theirs = (sum(file.stat().st_size for file in files if file.is_file()) for files in (loaded - shared, shared))
    return page.stat().st_size + own, theirs
