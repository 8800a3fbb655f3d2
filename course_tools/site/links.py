"""Links between the project's files, as links between the pages of the site.

Does: tell where a link of a notebook or a text leads on the site. Does not: check links to other sites.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from course_tools.site.address import file_link
from course_tools.site.pages import Page
from course_utils.files.paths import ROOT

LINK = r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)"
CODE = r"^```.*?^```|(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\3(?!`)"             # \3: it ends with as many as it begins with
LINK_OR_CODE = re.compile(f"{LINK}|{CODE}", re.M | re.S)                    # whichever begins first: one may hold the other
HREF = re.compile(r'<a href="([^"]+)"([^<>]*)>(.*?)</a>', re.S)
HEADING = re.compile(r"^#{1,6} (.+?)\s*$", re.M)
ELSEWHERE = re.compile(r"[a-z]+:")


def slug(title: str) -> str:
    """The site's anchor of a heading: '2.-The-padding-row'. It's Jupyter's, less what would end an attribute of HTML, in
    which docutils escapes nothing: '7.-Don't-know' for '7. "Don't know"'."""
    return re.sub(r'["<>&]', "", in_jupyter(title))


def in_jupyter(title: str) -> str:
    """The anchor of a heading as Jupyter writes it: '2.-The-padding-row'."""
    return title.replace(" ", "-")


@cache
def headings(source: Path) -> tuple[str, ...]:
    """The headings of a notebook or a text, without formatting."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return tuple(re.sub(r"[`*]", "", title.strip()) for title in HEADING.findall(text))


def anchor_on_page(source: Path, anchor: str) -> str:
    """The site's anchor for one that is written as Jupyter does or as GitHub does ('2-the-padding-row')."""
    for title in headings(source):
        hosted = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        if unquote(anchor) in (in_jupyter(title), slug(title), hosted):
            return slug(title)
    return anchor


class Links:
    """Where the links of one page lead. `names` are the pages of all sources; `address` is the repository's, '' while
    nobody knows it."""

    def __init__(self, page: Page, names: dict[Path, str], address: str = ""):
        self.page, self.names, self.address = page, names, address.rstrip("/")

    def target(self, link: str) -> str | None:
        """What to write instead of a link: a page, 'name.html', a file in the repository, or None where it leads nowhere."""
        if link.startswith("#"):
            return f"#{anchor_on_page(self.page.source, link[1:])}"
        if ELSEWHERE.match(link):
            return link
        path, _, anchor = link.partition("#")
        source = (self.page.source.parent / unquote(path)).resolve()
        end = f"#{anchor}" if anchor else ""
        if source in self.names:
            end = f"#{anchor_on_page(source, anchor)}" if anchor else ""
            return self.relative(f"{self.names[source]}.html") + end
        if source.is_relative_to(ROOT / "notebooks" / "gallery") and source.is_file():
            return self.relative(source.relative_to(ROOT / "notebooks").as_posix())
        if self.address and source.is_relative_to(ROOT) and source.exists():
            return file_link(source.relative_to(ROOT).as_posix(), self.address) + end
        return None

    def relative(self, name: str) -> str:
        """The way from this page to another file of the site."""
        return os.path.relpath(name, os.path.dirname(self.page.name) or ".").replace(os.sep, "/")

    def in_markdown(self, text: str) -> str:
        """Markdown with its links led to pages; a link that leads nowhere becomes its words. Code is left as it is."""
        return LINK_OR_CODE.sub(lambda found: self._markdown(found) if found[2] else found[0], text)

    def _markdown(self, found: re.Match) -> str:
        target = self.target(found[2])
        if target is None:
            words = found[1]
            return words if "`" in words or " " in words else f"`{words}`"
        if target.startswith("#") or target == found[2]:
            return f"[{found[1]}]({target})"
        if target.partition("#")[0].endswith(".html") and not ELSEWHERE.match(target):
            page, mark, anchor = target.partition("#")                  # Sphinx checks links between pages of its sources
            ending = Path(found[2].partition("#")[0]).suffix if mark else ""
            return f"[{found[1]}]({page.removesuffix('.html')}{ending}{mark}{anchor})"
        return f'<a href="{target}">{found[1]}</a>'

    def in_html(self, text: str) -> str:
        """HTML with its links led to pages; a link that leads nowhere becomes its words."""
        def replaced(found: re.Match) -> str:
            target = self.target(found[1])
            return found[3] if target is None else f'<a href="{target}"{found[2]}>{found[3]}</a>'
        return HREF.sub(replaced, text)
