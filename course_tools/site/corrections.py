"""What Sphinx, its theme and pandas write that isn't correct HTML, can't be read aloud or is spelled differently, set right.

Does: correct the text of a finished page, so that the HTML checker and axe, run by `make test-browser`, find nothing. Does
not: change how a page looks.
"""

from __future__ import annotations

import html
import re

COLUMNS = 88                                              # that a box of code has at 1280 pixels
NARROW = 40                                               # on a phone
SOURCE = re.compile(r"<pre>.*?</pre>", re.S)
BOX = re.compile(r'(<div class="output (?:stream|text_plain)[^"]*">\s*<div class="highlight">)?(<pre>.*?</pre>)', re.S)
ATTRIBUTES = re.compile(r'\s(?:[vh]align|autocorrect)="\w*"')
STYLED = re.compile(r'(<div class="output text_html">)\s*(<style>(?:(?!</style>).)*</style>)\s*', re.S)
LIST_IN_LIST = re.compile(r"</li>\n(<ul>(?:(?!</?ul\b).)*</ul>)", re.S)
PARAMETERS = re.compile(r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>")
FOLDED_PAGES = re.compile(r'(<a class="(?:current )?reference internal" href="[^"]*">)([^<]*)(</a><details[^>]*>)<summary>')
TAG = re.compile(r"<(?:th|td|tr|input)\b[^>]*>")
ICONS = re.compile(r'<script defer src="[^"]*/scripts/fontawesome\.js[^"]*"></script>')      # 1.5 MB


def corrected(page: str) -> str:
    """The text of a finished page as correct HTML."""
    page = SOURCE.sub(_without_blocks, page)                           # viewcode: blocks in highlighted source
    page = BOX.sub(lambda found: (found[1] or "") + long_lines(found[2], output=bool(found[1])), page)
    page = TAG.sub(lambda found: ATTRIBUTES.sub("", found[0]), page)   # pandas: how cells are aligned; the search field
    page = PARAMETERS.sub(_parameters, page)                           # autodoc: a list of values without names
    page = LIST_IN_LIST.sub(r"\n\1</li>\n", page)                      # viewcode: its list of all modules
    page = FOLDED_PAGES.sub(r'\1\2\3<summary aria-label="Pages below \2">', page)      # the sidebar: an arrow without a name
    page = ICONS.sub("", page)                                         # the theme's icons also come as a font
    page = page.replace('"Color mode"', '"Colour mode"')               # the theme's button for light and dark
    return _styles_in_head(page)


def _without_blocks(found: re.Match) -> str:
    return re.sub(r"<(/?)div\b", r"<\1span", found[0])


def long_lines(pre: str, output: bool = False) -> str:
    """A box of code in which lines that are too long for it may wrap, with the rest indented (see site.css).

    Too long are lines of more than COLUMNS. In an `output`, a sentence may wrap on a phone too; columns may not.
    """
    start, body, end = re.fullmatch(r"(<pre>(?:<span></span>)?)(.*)(</pre>)", pre, re.S).groups()
    lines = re.split(r"(?<=\n)", body)                    # splitlines would also split at what an untrained model prints
    return start + "".join(_may_wrap(line, output) for line in lines) + end


def _may_wrap(line: str, output: bool) -> str:
    text = html.unescape(re.sub(r"<[^>]*>", "", line)).rstrip()
    inside = text.strip()
    sentence = output and "  " not in inside.removeprefix("✓ ").removeprefix("✗ ")
    whole = line.count("<span") == line.count("</span") and line.count("<a ") == line.count("</a>")
    if not whole or len(text) <= (NARROW if sentence else COLUMNS):
        return line
    indent = len(text) - len(text.lstrip()) + 4
    return f'<span class="long" style="padding-left: {indent}ch; text-indent: -{indent}ch">{line}</span>'


def _parameters(found: re.Match) -> str:
    lines = found[1].replace("<dd>", '<span class="parameter">').replace("</dd>", "</span>")
    return f'<span class="parameters">\n{lines}</span>'


def _styles_in_head(page: str) -> str:
    """A style sheet that a cell's output brings along belongs into the head."""
    sheets = "".join(found[2] for found in STYLED.finditer(page))
    return STYLED.sub(r"\1", page).replace("</head>", f"{sheets}</head>", 1) if sheets else page
