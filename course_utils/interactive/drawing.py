"""SVG pictures as text, for what a piece shows before its script runs and where scripts don't run.

Does: elements with short numbers, text in which no token can become markup. Does not: know what a picture shows.
"""

from __future__ import annotations

import html
import re

LETTERS = "DejaVu Sans, Segoe UI, system-ui, sans-serif"
INK, SOFT, LINE, PURPLE = "#1a1a1a", "#555555", "#b8b8b8", "#73369a"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def short(number: float, decimals: int = 2) -> str:
    """A number with at most so many decimals: 2.5, 3, and 0 where rounding leaves '-0'."""
    text = f"{number:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def fixed(number: float, decimals: int = 2) -> str:
    """A number for a reader, with a proper minus sign and no negative zero: −0.54."""
    text = f"{number:.{decimals}f}"
    return (text[1:] if float(text) == 0 and text.startswith("-") else text).replace("-", "\u2212")


def shown(token: str) -> str:
    """A token as visible text: spaces at its ends, line breaks and an empty token can be seen, as in shell.js."""
    if token == "":
        return "(empty)"
    ends = re.sub(r"^ +| +$", lambda found: "\u2423" * len(found[0]), token)
    return _NOT_XML.sub("\ufffd", ends.replace("\n", "\\n").replace("\t", "\\t"))


def cut(text: str, most: int) -> str:
    """The beginning of a text that is longer than `most` characters, with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def element(tag: str, *children: str, **attributes: object) -> str:
    """One element; `font_size=12` becomes font-size="12", `class_` class. Children are markup: escape text with `label`."""
    written = "".join(f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
                      for name, value in attributes.items() if value is not None)
    return f"<{tag}{written}>{''.join(children)}</{tag}>" if children else f"<{tag}{written}/>"


def _value(value: object) -> str:
    return short(value) if isinstance(value, int | float) else html.escape(_NOT_XML.sub("\ufffd", str(value)))


def label(x: float, y: float, text: str, size: float = 14, **attributes: object) -> str:
    """Text at a place; the y is that of its base line."""
    written = html.escape(_NOT_XML.sub("\ufffd", text), quote=False)
    return element("text", written, x=x, y=y, font_size=size, **{"fill": INK} | attributes)


def bar(x: float, y: float, width: float, height: float, fill: str = PURPLE, **attributes: object) -> str:
    """A filled rectangle."""
    return element("rect", x=x, y=y, width=max(width, 0), height=height, fill=fill, **attributes)


def picture(width: float, height: float, *parts: str) -> str:
    """The whole picture on white. What it shows is said by the alternative text of the piece."""
    return element("svg", bar(0, 0, width, height, "#ffffff"), *parts, xmlns="http://www.w3.org/2000/svg", role="img",
                   viewBox=f"0 0 {short(width)} {short(height)}", width=width, height=height, font_family=LETTERS)


def stacked(*drawn: str) -> str:
    """Pictures of one width, one below the other."""
    sizes = [tuple(int(number) for number in re.search(r'width="(\d+)" height="(\d+)"', one).groups()) for one in drawn]
    tops = [sum(high for _, high in sizes[:i]) for i in range(len(sizes))]
    parts = [element("svg", one, x=0, y=y, width=wide, height=high) for one, y, (wide, high) in zip(drawn, tops, sizes)]
    return picture(max(wide for wide, _ in sizes), sum(high for _, high in sizes), *parts)
