"""One self-contained piece of HTML: what is seen, what happens when it is touched, and a still picture.

Does: put data, script, style and picture into one string that is the same on every run; show it in a notebook, or save
it as a page. Does not: know what a piece shows, ask any network for anything, or need a library in the page.

A piece named `kind` has its script in `kind.js` beside this file: a function `build(root, data, host)` that fills `root`.
Before it stands `shell.js` with what all pieces share, around it `shell.css` and, where there is one, `kind.css`.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from matplotlib.colors import to_hex

from course_utils.figures import NEGATIVE, POSITIVE, WEIGHT_MAP
from course_utils.files import fingerprint, write_text

# Below the still picture, until the script takes both away.
NOT_LIVE = ("This is a still picture of a live figure. To get the live one in JupyterLab, run the cell, or trust the "
            "notebook: View, Activate Command Palette, Trust Notebook. On GitHub nothing is live: open your own copy with "
            "make lab, or the course's site if somebody sent you its address.")


@cache
def _source(name: str) -> str:
    """A script or style sheet of this folder, without indents and lines of comment; '' for a missing style sheet."""
    file = resources.files(__package__) / name
    if name.endswith(".css") and not file.is_file():
        return ""
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def in_script(value: object) -> str:
    """JSON that can stand in a script element of a UTF-8 page: no '<' that could end it, no line separator that older
    scripts refuse, no half of a character.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return re.sub("[<\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


class Piece:
    """An interactive figure that a notebook shows when it is a cell's last value.

    `kind` names the script; `data` is what it draws, anything JSON can hold (no NaN). `still` is an SVG picture as text,
    shown until the script runs and where scripts don't run, above a line that says how to get the live figure; `alt` says in
    words what it shows. `scripts` are further scripts that `kind.js` needs, without their ending; where one has a style
    sheet of its name, that comes with it.
    Raises ValueError for an empty `alt` or a `still` that isn't SVG, TypeError or ValueError for data that JSON can't hold.
    """

    def __init__(self, kind: str, data: object, *, still: str, alt: str, scripts: Sequence[str] = ()):
        if not alt.strip():
            raise ValueError("alt is empty; say in words what the piece shows")
        if not still.lstrip().startswith("<svg"):
            raise ValueError(f"still begins with {still.lstrip()[:12]!r}; expected an SVG picture, '<svg …'")
        self.kind, self.data, self.still, self.alt, self.scripts = kind, data, still, alt, tuple(scripts)
        self._data = in_script(data)
        self.name = f"{kind}-{fingerprint(kind, self._data)}"

    def __repr__(self) -> str:
        return self.alt

    @property
    def html(self) -> str:
        """The piece as HTML to put anywhere in a page, the same bytes for the same data."""
        picture = base64.b64encode(self.still.encode()).decode()
        styles = (_source(f"{name}.css") for name in ("shell", *self.scripts, self.kind))
        look = "\n".join(filter(None, (_colours(), *styles)))
        code = "\n".join(_source(f"{name}.js") for name in ("shell", *self.scripts, self.kind))
        # data-lm-suppress-shortcuts: JupyterLab leaves the keys that are pressed in here alone
        return (
            f'<div class="course-piece" data-piece="{self.name}" data-lm-suppress-shortcuts="true">'
            f'<img alt="{html.escape(self.alt)}" src="data:image/svg+xml;base64,{picture}" style="max-width:100%">\n'
            f'<p>{html.escape(NOT_LIVE, quote=False)}</p></div>\n'
            f'<script>(function(){{"use strict";\n{code}\nvar data={self._data};\n'
            f'start("{self.name}",{in_script(look)},build,data);}})();</script>'
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.alt}

    def save(self, path: str | Path) -> None:
        """Write a page of its own, which opens in any browser without a network. Raises ValueError unless it's .html."""
        path = Path(path)
        if path.suffix != ".html":
            raise ValueError(f"path={str(path)!r}; expected a name that ends in .html")
        title = html.escape(self.kind.replace("_", " "))
        write_text(path, f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
                         f'<meta name="viewport" content="width=device-width,initial-scale=1">'
                         f'<meta name="color-scheme" content="light dark"><title>{title}</title>'
                         f'</head><body>{self.html}</body></html>\n')


@cache
def _colours() -> str:
    """The course's colours for the style sheet: blue and orange for the labels, and the purple steps of a weight."""
    steps = ",".join(to_hex(WEIGHT_MAP(k / 5)) for k in range(6))
    return f':host{{--positive:{POSITIVE};--negative:{NEGATIVE};--weights:"{steps}"}}'
