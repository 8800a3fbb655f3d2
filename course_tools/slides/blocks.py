"""What stands on a slide: prose, formulas, tables, printed claims, pictures, live pieces and code, as HTML with its height.

Does: render a cell's parts and its saved outputs, and estimate how many pixels each takes at 1280 × 720, so that `deck`
knows when to begin another slide. Does not: choose what is shown (see `prose`). Needs the site's packages.
"""

from __future__ import annotations

import html
import re
from functools import cache
from typing import NamedTuple

from course_tools.slides.prose import Part, unlinked, words

WIDTH, ROOM = 1184, 560                                   # pixels for what stands below a heading
BODY, LINE = 30, 43                                       # size of the type, and from line to line
CODE_SIZE, CODE_LINE = 22, 32
CAPTION = 26                                              # words
TYPE = (30, 28, 26, 24, 22, 20, 18)                       # a table takes the largest that fits
MONOSPACED = 0.61                                         # the width of a character by the size of the type
PROPORTIONAL = 0.53
IN_TABLES = 0.63                                          # with digits and bold heads


class Block(NamedTuple):
    """A piece of a slide: its `kind`, its HTML, its height in pixels as estimated, whether it comes as a step, and of prose
    and statements the source, from which a title can be taken."""

    kind: str
    html: str
    height: int
    step: bool = False
    text: str = ""


@cache
def _markdown():
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    from course_tools.site.mathematics import mathml

    return MarkdownIt("commonmark", {"html": True}).enable("table").use(
        dollarmath_plugin, allow_labels=False, renderer=lambda latex, options: mathml(latex, options["display_mode"]))


def rendered(text: str) -> str:
    """Markdown as HTML, formulas as MathML, links to files of the course as their words."""
    return _markdown().render(unlinked(text)).strip()


def inline(text: str) -> str:
    """A line of Markdown as HTML without a paragraph around it."""
    return _markdown().renderInline(unlinked(text)).strip()


def lines_of(text: str, size: int = BODY, width: int = WIDTH) -> int:
    """How many lines a text takes."""
    seen = re.sub(r"\\[a-z]+|[{}\\^_$*`]", "", unlinked(text))
    return max(1, -(-int(len(seen) * size * PROPORTIONAL) // width))


def of_part(part: Part) -> Block:
    """A part of a cell's Markdown."""
    if part.kind == "table":
        return _table(rendered(part.text))
    if part.kind == "code":
        body = part.text.strip("`").strip("\n")
        body = body if not re.match(r"[a-z]+\n", body) else body.partition("\n")[2]
        return _fence(body)
    if part.kind == "list":
        items = re.split(r"\n(?=(?:\d+\.|[-*]) )", part.text)
        return Block("list", rendered(part.text), sum(lines_of(item, width=WIDTH - 50) * LINE + 10 for item in items) + 16)
    if part.kind == "formula":
        tall = 70 + 46 * part.text.count(r"\\") + 30 * (r"\frac" in part.text)
        long = len(re.sub(r"\\(?:text|math\w+|left|right|bar|quad|qquad)|[{}\\,$ ]", "", part.text)) > 62
        return Block("formula", f'<div class="long">{rendered(part.text)}</div>' if long else rendered(part.text), tall,
                     text=part.text)
    if part.kind == "question":
        return Block("question", f'<div class="question">{rendered(part.text)}</div>', lines_of(part.text, 34) * 50 + 50,
                     text=part.text)
    if part.kind == "quote":
        found = [line for line in part.text.splitlines() if line.strip("> ")]
        return Block("quote", rendered(part.text), sum(lines_of(line) * LINE for line in found) + 20 * len(found) + 16)
    return Block(part.kind, rendered(part.text), lines_of(part.text) * LINE + 18, text=part.text)


def _fence(text: str) -> Block:
    """What stands between ``` in a cell: the course's way from raw text to results, or lines as they are."""
    first, _, below = text.strip().partition("\n")
    if "→" in first and "\n" not in below:
        first, _, aside = first.partition("    [")            # what stands apart, with no arrow to it
        steps = [step.strip() for step in re.sub(r"[\[\]]", lambda found: f" {found[0]} ", first).split("→")]
        boxes, here = [], False
        for step in steps:
            here = here or step.startswith("[")
            name = step.strip("[] ")
            boxes.append(f'<span class="{"here" if here else "there"}">{html.escape(name.lower())}</span>')
            here = here and not step.endswith("]")
        label = re.sub(r"[└─┘│]+", "", below).strip().partition("[")
        name, rest = (label[2].strip("[] "), "") if label[1] else label[0].partition(":")[::2]
        where = f'<p class="way">{html.escape(label[0] if label[1] else "")}<span class="here">' \
            f"{html.escape(name.lower())}</span>{html.escape(rest)}</p>" if below else ""
        apart = f' <span class="here">{html.escape(aside.strip("[] ").lower())}</span>' if aside else ""
        return Block("way", f'<p class="way">{" → ".join(boxes)}{apart}</p>{where}', 90 + 60 * bool(below))
    lines = text.splitlines()
    return Block("lines", f"<pre>{html.escape(text)}</pre>", len(lines) * CODE_LINE + 30)


def _cells(table: str) -> list[list[str]]:
    """The text of a table's cells, row by row."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.S)
    return [[html.unescape(re.sub(r"<annotation.*?</annotation>|<[^>]+>", "", cell, flags=re.S)).strip()
             for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)] for row in rows]


def _table(table: str, rows: tuple[str, ...] = ()) -> Block:
    """A table in the largest type with which it fits; long texts wrap. `rows` keeps those that begin with these words."""
    if rows:
        found = re.findall(r"<tr[^>]*>.*?</tr>", table.partition("<tbody>")[2], re.S)
        kept = [row for row in found if _cells(row)[0][0].startswith(rows)]
        if missing := [one for one in rows if not any(_cells(row)[0][0].startswith(one) for row in found)]:
            raise ValueError(f"'rows' names {missing}, and no row of the table begins like that")
        table = f"{table.partition('<tbody>')[0]}<tbody>{''.join(kept)}</tbody></table>"
    name_of_index = r"<tr[^>]*>\s*<th[^>]*>[^<]*</th>\s*(?:<th[^>]*></th>\s*)+</tr>\s*(?=</thead>)"
    table = re.sub(name_of_index, "", table)
    cells = [row for row in _cells(table) if row]
    columns = max(map(len, cells))
    longest = [max((len(row[k]) for row in cells if k < len(row)), default=1) for k in range(columns)]
    for size in TYPE:
        across = (WIDTH - columns * (32 if columns <= 7 else 18)) / (size * IN_TABLES)
        fixed = [length <= (30 if k == 0 else 16) for k, length in enumerate(longest)]       # these don't wrap
        wide = [length for length, held in zip(longest, fixed) if not held]
        left = across - sum(length for length, held in zip(longest, fixed) if held)
        room = [length if held else max(10.0, left * length / sum(wide)) for length, held in zip(longest, fixed)]
        deep = [max(-(-len(text) // max(1, int(room[k]))) for k, text in enumerate(row)) for row in cells]
        high = sum(deep) * size * 1.35 + 12 * len(cells)
        if (sum(longest) <= across or left > 14 * len(wide)) and high <= 400:
            break
    else:                                                 # too wide for every size: all but the shortest cells may wrap
        table = re.sub(r"<th>(?=[^<]{1,8}</th>)", '<th class="short">', table)
        return Block("table", f'<div class="table many" style="font-size:{TYPE[-1]}px">{table}</div>', int(high) + 30)
    held = re.sub(r"<(t[hd])([^>]*)>(.*?)</\1>", _held, table, flags=re.S)
    look = "table many" if columns > 7 else "table"
    return Block("table", f'<div class="{look}" style="font-size:{size}px">{held}</div>', int(high) + 30)


def row_by_row(block: Block) -> Block:
    """A table whose rows come as steps, below its head; any other block as it is."""
    head, body, rows = block.html.partition("<tbody>")
    if block.kind != "table":
        return block
    return block._replace(html=head + body + rows.replace("<tr>", '<tr class="fragment">'))


def _held(cell: re.Match) -> str:
    """A cell of a table, kept on one line where it's short."""
    text = re.sub(r"<[^>]+>", "", cell[3])
    short = len(text) <= (30 if cell[1] == "th" else 16)
    return f'<{cell[1]}{cell[2]} class="short">{cell[3]}</{cell[1]}>' if short and "class=" not in cell[2] else cell[0]


def of_outputs(outputs: list, hide: tuple[str, ...] = (), rows: tuple[str, ...] = (), head: str = "") -> list[Block]:
    """What a code cell's saved outputs show, without pictures: measured predictions, claims, lines, tables, live pieces.

    `hide` names kinds of output ('claims', 'lines', 'table', 'view', 'measured') or lines by their first words; `rows`
    names those rows of a table that are shown, likewise; `head` stands above printed lines.
    """
    found = []
    for output in outputs:
        if output["output_type"] == "stream" and output.get("name") == "stdout":
            found += _printed(_text(output["text"]), hide, head)
        elif page := _text(output.get("data", {}).get("text/html", "")):
            if "course-piece" in page:
                found.append(Block("view", f'<div class="view">{page}</div>', ROOM))
            elif inner := re.search(r"<table.*</table>", re.sub(r"<style.*?</style>", "", page, flags=re.S), re.S):
                bare = re.sub(r' (?:class|border|id|style|dataframe|[hv]align)="[^"]*"', "", minus(inner[0]))
                found.append(_table(bare, rows))
    found.sort(key=lambda block: block.kind == "claims")                # what was checked comes below what it's about
    return [block for block in found if block.kind not in hide]


def minus(text: str) -> str:
    """The text with a minus sign before a number in place of the hyphen."""
    return re.sub(r"(?<![\w.)\]-])-(?=\.?\d|inf\b)", "−", text)


def _text(value) -> str:
    return "".join(value) if isinstance(value, list) else value


def _printed(text: str, hide: tuple[str, ...], head: str = "") -> list[Block]:
    """Printed lines: statements without their tick, 'measured: …', and everything else as it is."""
    found, plain = [], []
    text = re.sub(r"^ *tensor\(\[\[([^\[].*?)\]\](?:, dtype=[\w.]+)?\)", _bare_rows, text, flags=re.S | re.M)
    claims = [line for line in text.splitlines() if line.startswith("✓ ")]
    for line in text.rstrip("\n").splitlines():
        if line.startswith(("○", "your prediction", "✗")) or hide and line.removeprefix("✓ ").startswith(hide):
            continue
        if line.startswith("measured: "):
            value = line.removeprefix("measured: ")
            found.append(Block("measured", f'<p class="measured">Measured: <b>{html.escape(minus(value))}</b></p>', 70))
        elif line not in claims:
            plain.append(re.sub(r"\btensor\((\[.*?\])\)", r"\1", line))
    while plain and not plain[0].strip():
        plain.pop(0)
    if any(line.strip() for line in plain):
        first, *more = _lines(plain)
        above = f'<p class="head">{html.escape(head)}</p>' if head else ""
        found += [first._replace(html=above + first.html, height=first.height + 40 * bool(head)), *more]
    kept = [line.removeprefix("✓ ") for line in claims if not (hide and line.removeprefix("✓ ").startswith(hide))]
    return [*found, statements(kept)] if kept else found


def statements(sentences: list[str]) -> Block:
    """What a cell has checked, a sentence a line."""
    shown = "".join(f"<li>{html.escape(minus(one))}</li>" for one in sentences)
    return Block("claims", f'<ul class="claims">{shown}</ul>',
                 sum(lines_of(one, 26, WIDTH - 60) * 37 + 10 for one in sentences) + 16, text="\n".join(sentences))


def _bare_rows(found: re.Match) -> str:
    """A printed matrix as rows of numbers in their columns."""
    lines = re.split(r"\],\s*\[", found[1])
    rows = [[number.strip().removesuffix(".") for number in line.split(",")] for line in lines]
    wide = max(len(number) for row in rows for number in row)
    return "\n".join("  ".join(number.rjust(wide) for number in row) for row in rows)


def _lines(plain: list[str]) -> list[Block]:
    """Printed lines in their columns; long ones as prose, on as many slides as they need. What a model has written, under
    heads such as '----- temperature 1', is cut at the edge."""
    if any(line.startswith("-----") for line in plain):
        most = int((WIDTH - 40) / (18 * MONOSPACED))
        plain = [line if len(line) <= most else f"{line[:most - 1]}…" for line in plain]
    longest = max(map(len, plain))
    size = max((size for size in (26, 24, 22, 20, 18) if longest * size * MONOSPACED <= WIDTH - 40), default=0)
    if size and len(plain) * size * 1.35 + 40 > ROOM:
        size = max((one for one in (24, 22, 20, 18) if len(plain) * one * 1.35 + 40 <= ROOM and one <= size), default=18)
    if size:
        return [Block("lines", f'<pre style="font-size:{size}px">{html.escape(minus(chr(10).join(plain)))}</pre>',
                      int(len(plain) * size * 1.35) + 40)]
    found, chunk, high = [], [], 0
    for line in plain:
        more = lines_of(line, 24) * 34 + 10
        if chunk and high + more > ROOM - 40:
            found.append((chunk, high))
            chunk, high = [], 0
        chunk.append(re.sub(r"^<p>(\S+(?: \S+)*?)\s{2,}", r"<p><b>\1</b> ", f"<p>{html.escape(minus(line.strip()))}</p>"))
        high += more
    found.append((chunk, high))
    return [Block("lines", f'<div class="printed">{"".join(texts)}</div>', tall + 16) for texts, tall in found]


def of_picture(address: str, alt: str) -> Block:
    """A picture that fills what is left of its slide."""
    return Block("picture", f'<img class="picture" src="{html.escape(address)}" alt="{html.escape(alt)}">', ROOM)


def of_code(source: str, lines: list[str] | None = None) -> Block:
    """A cell's code, or those of its lines that begin with the words given; gaps become '…'.

    Raises ValueError for words with which no line begins.
    """
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    chosen = source.strip().splitlines()
    if lines is not None:
        for first in lines:
            if not any(line.startswith(first) for line in chosen):
                raise ValueError(f"'code' names a line that begins with {first!r}, which the cell hasn't; mend its metadata")
        kept: list[str] = []
        for line in chosen:
            if line.startswith(tuple(lines)):
                kept.append(line)
            elif kept and kept[-1] != "…":
                kept.append("…")
        chosen = kept[:-1] if kept[-1] == "…" else kept
    if max(map(len, chosen)) * 22 * MONOSPACED > WIDTH - 40:                       # comments at the end make room
        chosen = [re.sub(r"\s{2,}#.*$", "", line) for line in chosen]
    longest = max(map(len, chosen))
    size = max((size for size in (26, 24, 22, 20, 18) if longest * size * MONOSPACED <= WIDTH - 40), default=18)
    body = highlight("\n".join(chosen), PythonLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")
    return Block("code", f'<pre class="code" style="font-size:{size}px">{body}</pre>', int(len(chosen) * size * 1.35) + 40)


def fits(blocks: list[Block], another: Block) -> bool:
    """Whether another block fits below these. Pictures and live pieces want a slide of their own, with a caption at most."""
    if not blocks:
        return True
    if another.kind in ("picture", "view"):
        return len(blocks) == 1 and _caption(blocks[0])
    if any(block.kind in ("picture", "view") for block in blocks):
        return len(blocks) == 1 and _caption(another)
    return sum(block.height for block in blocks) + another.height <= ROOM


def _caption(block: Block) -> bool:
    """Whether a block is a sentence that may stand over a picture."""
    return block.kind == "paragraph" and words(re.sub(r"<[^>]+>", "", block.html)) <= CAPTION
