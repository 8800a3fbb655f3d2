"""Token text for figures: what it shows of a token, how wide that is, where it breaks.

Any string can be a token: '<br />', '$x_1$', a newline, an emoji, nothing at all. `display_token` turns it
into one line of visible characters that the font has, so a figure neither runs matplotlib's mathtext nor
warns of a missing glyph. Nothing here draws, and nothing here changes the tokens themselves.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import text_to_path

# It comes with matplotlib: the same letters, the same line breaks and the same bytes on every machine.
FONT = "DejaVu Sans"
ELLIPSIS = "…"
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Control, format, surrogate, private, unassigned, line and paragraph separators: nothing to see, or worse.
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@lru_cache(maxsize=1)
def _drawable() -> frozenset[int]:
    """Code points that the font has both in regular and in bold (evidence is set in bold)."""
    faces = [get_font(findfont(FontProperties(family=FONT, weight=w))) for w in ("normal", "bold")]
    return frozenset(faces[0].get_charmap()) & frozenset(faces[1].get_charmap())


def _visible(character: str) -> str:
    """One character as it is drawn: '\\n' as backslash n, an emoji as U+1F600."""
    if character in _NAMED:
        return _NAMED[character]
    category = unicodedata.category(character)
    hidden = category in _INVISIBLE or (category == "Zs" and character != " ")
    if hidden or ord(character) not in _drawable():
        return f"U+{ord(character):04X}"
    return character


def display_token(token: object, max_chars: int = 14) -> str:
    """The token as one visible line of at most `max_chars` characters.

    Spaces at either end become '␣', control and missing characters an escape such as U+1F600, a longer token
    is cut and ends in '…', and the empty token reads '(empty)'. Escapes are never cut in the middle.

    >>> display_token("<br />"), display_token(" the"), display_token("a\\tb"), display_token("")
    ('<br />', '␣the', 'a\\\\tb', '(empty)')
    """
    text = token if isinstance(token, str) else str(token)
    if not text:
        return "(empty)"
    inner = text.strip(" ")
    before = len(text) - len(text.lstrip(" ")) if inner else len(text)
    after = len(text) - len(text.rstrip(" ")) if inner else 0
    pieces = ["␣"] * before + [_visible(character) for character in inner] + ["␣"] * after
    if unicodedata.category(pieces[0][0]).startswith("M"):
        pieces.insert(0, "◌")  # an accent with no letter to sit on
    if sum(map(len, pieces)) <= max_chars:
        return "".join(pieces)
    kept, used = [], 0
    for piece in pieces:
        if used + len(piece) > max_chars - 1:
            break
        kept.append(piece)
        used += len(piece)
    return "".join(kept) + ELLIPSIS


@lru_cache(maxsize=20_000)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width in points of one line set in the course's font at `size` points."""
    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def wrap_text(text: str, width: float, size: float) -> list[str]:
    """Lines of `text` no wider than `width` points, broken at spaces (a single wider word stays whole)."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def one_line(text: str, max_chars: int = 300) -> str:
    """A title or a sentence on one line of visible characters, cut with '…' beyond `max_chars` of them."""
    return display_token(" ".join(str(text).split()), max_chars)


def sentence(text: str, max_chars: int = 300) -> str:
    """A title on one line that ends as a sentence does: 'Layer 0.', and 'Dull?' as it is."""
    line = one_line(text, max_chars)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def spoken(labels: list[str]) -> str:
    """Labels one after another, marks in quotes: the, film, '.', '<br />'."""
    return ", ".join(label if any(character.isalnum() for character in label) else f"'{label}'" for label in labels)


def count(number: int, one: str, many: str) -> str:
    """'1 key', '3 keys'."""
    return f"{number} {one if number == 1 else many}"
