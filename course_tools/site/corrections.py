"""What Sphinx, its theme and pandas write that isn't correct HTML, can't be read aloud or is spelled differently, set right.

Does: correct the text of a finished page, so that the HTML checker and axe, run by `make test-browser`, find nothing. Does
not: change how a page looks.
"""

from __future__ import annotations

import re

SOURCE = re.compile(r"<pre>.*?</pre>", re.S)
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
    page = TAG.sub(lambda found: ATTRIBUTES.sub("", found[0]), page)   # pandas: how cells are aligned; the search field
    page = PARAMETERS.sub(_parameters, page)                           # autodoc: a list of values without names
    page = LIST_IN_LIST.sub(r"\n\1</li>\n", page)                      # viewcode: its list of all modules
    page = FOLDED_PAGES.sub(r'\1\2\3<summary aria-label="Pages below \2">', page)      # the sidebar: an arrow without a name
    page = ICONS.sub("", page)                                         # the theme's icons also come as a font
    page = page.replace('"Color mode"', '"Colour mode"')               # the theme's button for light and dark
    return _styles_in_head(page)


def _without_blocks(found: re.Match) -> str:
    return re.sub(r"<(/?)div\b", r"<\1span", found[0])


def _parameters(found: re.Match) -> str:
    lines = found[1].replace("<dd>", '<span class="parameter">').replace("</dd>", "</span>")
    return f'<span class="parameters">\n{lines}</span>'


def _styles_in_head(page: str) -> str:
    """A style sheet that a cell's output brings along belongs into the head."""
    sheets = "".join(found[2] for found in STYLED.finditer(page))
    return STYLED.sub(r"\1", page).replace("</head>", f"{sheets}</head>", 1) if sheets else page
