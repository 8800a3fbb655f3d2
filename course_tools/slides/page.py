"""Decks as pages: slides in reveal.js, and an index of all decks.

Does: write HTML. Does not: choose slides, or copy reveal.js and the font (see `command`).
"""

from __future__ import annotations

import html
from typing import NamedTuple

from course_tools.slides.blocks import inline
from course_tools.slides.deck import Slide
from course_tools.slides.notes import notes
from course_tools.slides.prose import plain

SPARSE = 230                                              # pixels: a slide with less is set larger
LONG = 90                                                 # characters of a formula that is wide as it is
COURSE = "Attention from the Ground Up"
# Slides are magnified, so what draws on a canvas draws more finely, from the first time on.
FINER = """<script>
(function (pixels) {
  Object.defineProperty(window, "devicePixelRatio", { get: function () { return pixels; } });
})(2 * (window.devicePixelRatio || 1));
</script>"""


class Deck(NamedTuple):
    """A deck: its file's `name`, its `title`, its `slides` in order, and the `minutes` that its notes add up to."""

    name: str
    title: str
    slides: list[Slide]
    minutes: float


def slide_html(slide: Slide, spoken: str) -> str:
    """One slide with its notes."""
    large = any(block.kind in ("picture", "view") for block in slide.blocks)
    wide = any(block.kind == "formula" and len(block.text) > LONG for block in slide.blocks)
    sparse = slide.kind == "slide" and not (large or wide) and sum(block.height for block in slide.blocks) <= SPARSE
    look = f"kind-{slide.kind}{' large' if large else ''}{' sparse' if sparse else ''}"
    steps = [f'<div class="fragment step">{block.html}</div>' if block.step else block.html for block in slide.blocks]
    level = "h1" if slide.kind == "title" else "h2"
    section = html.escape(plain(f"{slide.notebook} · {slide.section}" if slide.section != slide.notebook else slide.section))
    return (f'<section id="{slide.id}" data-section="{section}"><div class="slide {look}">\n'
            f'<{level}>{inline(slide.title)}</{level}>\n<div class="body">\n{chr(10).join(steps)}\n</div></div>\n'
            f'<aside class="notes">{spoken}</aside></section>')


def deck_html(deck: Deck) -> str:
    """A deck as a page that needs the folders reveal and pictures beside it, and nothing else."""
    passed, sections = 0.0, []
    for slide in deck.slides:
        passed += slide.minutes
        sections.append(slide_html(slide, notes(slide, passed)))
    return f"""<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{html.escape(plain(deck.title))}: {COURSE}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="reveal/reveal.css"><link rel="stylesheet" href="reveal/mathematics.css">
<link rel="stylesheet" href="reveal/slides.css">{FINER}</head>
<body><div class="reveal"><div class="slides">
{chr(10).join(sections)}
</div><p class="where" aria-hidden="true"></p></div>
<script src="reveal/reveal.js"></script><script src="reveal/notes.js"></script><script src="reveal/slides.js"></script>
</body></html>
"""


def index_html(groups: list[tuple[str, list[Deck]]]) -> str:
    """The page that lists all decks, with how many slides and minutes each has."""
    lists = []
    for name, decks in groups:
        rows = "\n".join(f'<tr><td><a href="{deck.name}.html">{html.escape(deck.title)}</a></td>'
                         f"<td>{len(deck.slides)}</td><td>{round(deck.minutes)}</td></tr>" for deck in decks)
        lists.append(f"<h2>{html.escape(name)}</h2>\n<table><thead><tr><th>deck</th><th>slides</th><th>minutes</th></tr></thead>"
                     f"<tbody>\n{rows}\n</tbody></table>")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Slides: {COURSE}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="reveal/slides.css"></head>
<body class="index"><main><h1>{COURSE}: slides</h1>
<p>Made from the notebooks. In a deck, <kbd>→</kbd> and <kbd>←</kbd> turn the slides, <kbd>o</kbd> shows all of them,
<kbd>s</kbd> opens the speaker's window with notes, minutes and a clock, <kbd>f</kbd> fills the screen, and <kbd>?</kbd>
lists every key. In an interactive figure, press <kbd>Page Down</kbd> to go on. For a PDF, add <code>?print-pdf</code> to the
address and print the page from the browser.</p>
{chr(10).join(lists)}
</main></body></html>
"""
