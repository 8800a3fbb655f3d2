"""Formulas in plain HTML, without a library: for pages that are printed.

Does: fractions with a bar, roots with a bar, indices, letters in italics, and their style; a line of a notebook's Markdown
as HTML. Does not: lay out a page.
"""

import html
import re

STYLE = """
.fraction { display: inline-block; vertical-align: middle; text-align: center; }
.fraction > span { display: block; padding: 0.5mm 1mm; line-height: 1.45; }
.fraction > .top { border-bottom: 0.8pt solid #000; }
.over { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.root { border-top: 0.8pt solid #000; padding: 0.3mm 0.5mm 0; }
sub, sup { line-height: 0; }
sub { vertical-align: -0.25em; }
sup { vertical-align: 0.4em; }
"""


def fraction(top: str, bottom: str) -> str:
    """A fraction with a bar; a screen reader says 'top / bottom'."""
    return (f'<span class="fraction"><span class="top">{top}</span><span class="over">/</span>'
            f"<span>{bottom}</span></span>")


def root(inside: str) -> str:
    """A square root with its bar."""
    return f'√<span class="root">{inside}</span>'


def formula(text: str) -> str:
    """HTML of '*Q* = *x W*_{q}': letters between stars are italic, _{…} is an index, ^{…} an exponent; HTML stays."""
    text = re.sub(r"\*([^*]+)\*", r"<i>\1</i>", text)
    text = re.sub(r"_\{([^}]*)\}", r"<sub>\1</sub>", text)
    return re.sub(r"\^\{([^}]*)\}", r"<sup>\1</sup>", text)


def from_markdown(text: str) -> str:
    """A line of a notebook as HTML: code, emphasis, and of formulas the ones like $\\sqrt{d_k}$, $1/e$ and $W_o$.

    Raises ValueError for a formula with any other command.
    """
    parts = re.split(r"(`[^`]+`|\$[^$]+\$)", text.strip())
    return "".join(_part(part) for part in parts)


def _part(part: str) -> str:
    if part.startswith("`"):
        return f"<code>{html.escape(part[1:-1])}</code>"
    if part.startswith("$"):
        inside = re.sub(r"([a-zA-Z])_(?:\{(\w+)\}|(\w))", r"<i>\1</i><sub>\2\3</sub>", html.escape(part[1:-1]))
        inside = re.sub(r"\\sqrt\{((?:[^{}]|<[^>]*>)*)\}", lambda found: root(found[1]), inside)
        if "\\" in inside:
            raise ValueError(f"the formula {part} has a command that a printed page can't show; "
                             "add it to course_tools/sheets/formulas.py, or choose another line of the notebook")
        return inside
    text = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", html.escape(part, quote=False))
    return re.sub(r"\*([^*]+)\*", r"<i>\1</i>", text)
