"""Pictures of the site as files of their own, with their size and what they show in words.

Does: write pictures out of notebooks to files, and give the HTML that shows them: width and height, so that a page doesn't
jump, and loading only when they're near. Does not: draw, or write alternative texts (see `course_utils.figures`).
"""

from __future__ import annotations

import base64
import html
import re
import struct
from pathlib import Path

from course_tools.site.links import Links
from course_utils.files import write_bytes, write_text

FOLDER = "pictures"
STILL = re.compile(r'<img alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]+)" style="max-width:100%">')
LINKED = re.compile(r"^\[!\[(?P<alt>.*?)\]\((?P<picture>[^()\s]+)\)\]\((?P<target>[^()\s]+)\)$", re.M)
ALONE = re.compile(r"^!\[(?P<alt>.*?)\]\((?P<picture>[^()\s]+)\)$", re.M)


def png_size(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG in pixels. Raises ValueError for anything else."""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR":
        raise ValueError(f"the picture begins with {data[:8]!r}; expected a PNG")
    return struct.unpack(">II", data[16:24])


def gif_size(data: bytes) -> tuple[int, int]:
    """Width and height of a GIF in pixels. Raises ValueError for anything else."""
    if data[:6] not in (b"GIF87a", b"GIF89a"):
        raise ValueError(f"the picture begins with {data[:6]!r}; expected a GIF")
    return struct.unpack("<HH", data[6:10])


def svg_size(text: str) -> tuple[int, int]:
    """Width and height of an SVG in CSS pixels, from its attributes or its viewBox. Raises ValueError if it has neither."""
    opening = re.search(r"<svg[^>]*>", text)
    given = [re.search(rf'\b{name}="([\d.]+)(pt|px)?"', opening[0]) for name in ("width", "height")] if opening else []
    if len(given) == 2 and all(given):
        return tuple(round(float(found[1]) * (4 / 3 if found[2] == "pt" else 1)) for found in given)
    box = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', opening[0]) if opening else None
    if not box:
        raise ValueError("the SVG has neither a width and height in pixels nor a viewBox")
    return round(float(box[1])), round(float(box[2]))


def size_of(path: Path) -> tuple[int, int]:
    """Width and height of a picture's file, PNG, GIF or SVG, in CSS pixels."""
    if path.suffix == ".svg":
        return svg_size(path.read_text(encoding="utf-8"))
    return gif_size(path.read_bytes()) if path.suffix == ".gif" else png_size(path.read_bytes())


def image(address: str, alt: str, size: tuple[int, int], more: str = "") -> str:
    """The HTML of a picture; `alt` in plain words."""
    width, height = size
    return (f'<img src="{address}" alt="{html.escape(alt)}" width="{width}" height="{height}" loading="lazy"'
            f' decoding="async"{more}>')


def picture_of_output(output: dict, name: str, folder: Path, links: Links) -> dict:
    """The output of a cell that shows a picture, as HTML that shows the picture's file `name`.png in `folder`."""
    data = base64.b64decode("".join(output["data"]["image/png"]))
    target = folder / FOLDER / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, data)
    alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
    shown = image(links.relative(f"{FOLDER}/{name}.png"), alt, png_size(data))
    return shown_as(f'<figure class="picture">{shown}</figure>')


def shown_as(html_text: str) -> dict:
    """The output of a cell that shows a piece of HTML."""
    return {"output_type": "display_data", "metadata": {}, "data": {"text/html": html_text}}


def still_outside(html_text: str, name: str, folder: Path, links: Links) -> str:
    """The HTML of an interactive figure with its still picture as a file `name`.svg, shown also when the page is printed."""
    found = STILL.search(html_text)
    if not found:
        return html_text
    text = base64.b64decode(found[2]).decode("utf-8")
    target = folder / FOLDER / f"{name}.svg"
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, text)
    alt, address = html.unescape(found[1]), links.relative(f"{FOLDER}/{name}.svg")
    still = image(address, alt, svg_size(text)).replace(' loading="lazy" decoding="async"', "")
    printed = image(address, alt, svg_size(text), ' class="printed"')
    return f'<div class="touch">{html_text[:found.start()]}{still}{html_text[found.end():]}\n{printed}</div>'


def in_markdown(text: str, links: Links) -> str:
    """Markdown whose pictures, each alone on its line, are HTML with their size."""
    def shown(found: re.Match, target: str | None = None) -> str:
        path = links.page.source.parent / found["picture"]
        address = links.target(found["picture"])
        if address is None or not path.is_file():
            raise ValueError(f"{links.page.source.name} shows {found['picture']}, which isn't a picture of the gallery")
        picture = image(address, found["alt"].replace("\\", ""), size_of(path))
        return f'<figure class="picture">{f"<a href={target!r}>{picture}</a>" if target else picture}</figure>'

    def linked(found: re.Match) -> str:
        return shown(found, links.target(found["target"])).replace("<a href='", '<a href="').replace("'><img", '"><img')

    return ALONE.sub(shown, LINKED.sub(linked, text))
