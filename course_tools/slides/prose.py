"""What a slide shows of a cell's prose: whole when it's short, else its lead, formulas, tables, lists and the question.

Does: cut a cell's Markdown into parts, and a paragraph into sentences; choose what is shown, by rule or by pointers in the
cell's metadata, which name a sentence by its first words. Does not: render Markdown or know about slides.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SHORT = 35                                                # words that a slide shows without cutting
ITEM = 18                                                 # words of an item of a list that is shown without cutting
ASKED = "**Try it first.**"
TO = " … "                                                # in a pointer: from these first words to those last ones
RUNS_ON = " :"                                            # at its end: the sentence runs on, into a formula or a list
GAPS = re.compile(r"\$[^$]+\$|`[^`]+`|\[[^\]]*\]\([^)]*\)|\b(?:e\.g|i\.e|p|pp|vs|al)\.|\bno\.(?= \d)")
ENDS = re.compile(r"[.?!][\"'”’)*]*(?=\s+[\"'“‘(*`$\[]*[A-Z0-9√$`\[\x00]|\s+['\"“‘][a-z])|[.?!][\"'”’)*]*$")
LEAD = re.compile(r"\*\*([^*]{4,60}?)([.:?]?)\*\*[.:]?")      # bold words that a paragraph begins with, as its heading
MARKS = re.compile(r"\]\([^)]*\)|[*`\[\]|>#]|\$[^$]*\$")


class Part(NamedTuple):
    """A block of Markdown: its `kind` ('heading', 'paragraph', 'question', 'list', 'table', 'formula', 'quote', 'code' or
    'html') and its source `text`."""

    kind: str
    text: str


def parts(source: str) -> list[Part]:
    """The blocks of a cell's Markdown, in order."""
    found, lines = [], source.strip().splitlines()
    while lines:
        if not lines[0].strip():
            lines.pop(0)
            continue
        kind, length = _block(lines)
        text = "\n".join(lines[:length]).strip()
        if kind == "paragraph" and text.startswith(ASKED):
            kind, text = "question", text.removeprefix(ASKED).strip()
        found.append(Part(kind, text))
        del lines[:length]
    return found


def _block(lines: list[str]) -> tuple[str, int]:
    """The kind of the block that begins with the first line, and how many lines it has."""
    first = lines[0]
    if first.startswith("```"):
        return "code", next((i + 1 for i, line in enumerate(lines) if i and line.startswith("```")), len(lines))
    if first.startswith("$$"):
        closed = (i + 1 for i, line in enumerate(lines) if line.rstrip().endswith("$$") and (i or len(line.strip()) > 2))
        return "formula", next(closed, len(lines))
    if first.startswith("#"):
        return "heading", 1
    if re.match(r"(\d+\.|[-*]) ", first):
        blank = (i for i, line in enumerate(lines) if i and not re.match(r"\s+\S|(\d+\.|[-*]) ", line))
        return "list", next(blank, len(lines))
    kinds = {"|": "table", ">": "quote", "<": "html"}
    blank = next((i for i, line in enumerate(lines) if not line.strip()), len(lines))
    return kinds.get(first[0], "paragraph"), blank


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, each with the marks around it: formulas, code and links are never cut."""
    text = " ".join(paragraph.split())
    masked = GAPS.sub(lambda found: "\x00" * len(found[0]), text)
    found, start = [], 0
    for end in ENDS.finditer(masked):
        one = text[start:end.end()].strip()
        if one:
            found.append(one)
        start = end.end()
    rest = text[start:].strip()
    return [*found, rest] if rest else found


def words(text: str) -> int:
    """How many words a reader sees; a formula is none."""
    return len(MARKS.sub(" ", text).split())


def shown(source: str, show: list[str] | None = None, hide: tuple[str, ...] = (), around: str = "") -> list[Part]:
    """The parts of a cell's Markdown that a slide shows, without its heading, its question last.

    `show` points at sentences by their first words, in this cell or else in `around`, the rest of the section's prose;
    `hide` names kinds of parts, or parts by their first words. Raises ValueError for a pointer that matches nothing, or
    more than one place.
    """
    every = [part for part in parts(source) if part.kind != "heading"]
    for one in hide:
        if one not in {part.kind for part in every} and not any(part.text.startswith(one) for part in every):
            raise ValueError(f"'hide' names {one!r}, and no part of the cell is of that kind or begins like that")
    every = [part for part in every if part.kind not in hide and not part.text.startswith(hide or ("\0",))]
    questions = [part for part in every if part.kind == "question"]
    rest = [part for part in every if part.kind != "question"]
    if show is not None:
        return [*_in_order(show, source, around, rest), *questions]
    prose = sum(words(part.text) for part in rest if part.kind in ("paragraph", "list", "quote"))
    return [*(rest if prose <= SHORT else _leads(rest)), *questions]


def _in_order(show: list[str], source: str, around: str, rest: list[Part]) -> list[Part]:
    """What the pointers name, with the cell's formulas, tables, quotes and code, in the order of the cell; what is pointed
    at elsewhere comes first."""
    chosen: list[tuple[int, Part]] = []
    for pointer in show:
        there = [k for k, part in enumerate(rest) if part.kind in ("paragraph", "list") and _find(pointer, part.text)]
        chosen.append((there[0] if there else -1, pointed([pointer], source, around)[0]))
    chosen += [(k, part) for k, part in enumerate(rest) if part.kind in ("formula", "table", "quote", "code")]
    merged: list[Part] = []
    for _, part in sorted(chosen, key=lambda one: one[0]):
        if part.kind == "list" and merged and merged[-1].kind == "list":
            merged[-1] = Part("list", f"{merged[-1].text}\n{part.text}")
        else:
            merged.append(part)
    return merged


def _leads(rest: list[Part]) -> list[Part]:
    """The lead sentence of the first paragraph, the first sentence of each item of a list, and all that isn't prose."""
    chosen, led = [], False
    for part in rest:
        if part.kind == "paragraph":
            if not led:
                chosen.append(Part("paragraph", first_sentence(part.text)))
            led = True
        elif part.kind == "list":
            chosen.append(Part("list", "\n".join(map(_short_item, items(part.text)))))
        elif part.kind != "html":
            chosen.append(part)
    return chosen


def items(text: str) -> list[str]:
    """The items of a list, each with its mark, on one line."""
    found = re.split(r"\n(?=(?:\d+\.|[-*]) )", text)
    return [" ".join(item.split()) for item in found]


def _short_item(item: str) -> str:
    mark, _, text = item.partition(" ")
    return f"{mark} {first_sentence(text)}" if words(text) > ITEM else item


def first_sentence(text: str) -> str:
    """The first sentence; bold words that end in a full stop are its heading, and no sentence."""
    first, *more = sentences(text)
    return f"{first} {more[0]}" if more and LEAD.fullmatch(first) else first


def pointed(show: list[str], source: str, around: str = "") -> list[Part]:
    """What the pointers name, in the pointers' order; an item of a list stays one.

    Raises ValueError for a pointer that matches nothing, or more than one place.
    """
    chosen: list[Part] = []
    for pointer in show:
        part = _find(pointer, source) or _find(pointer, around)
        if part is None:
            raise ValueError(f"the pointer {pointer!r} matches no sentence of the cell or its section any more; point at "
                             "the first words of one that a slide should show")
        if part.kind == "list" and chosen and chosen[-1].kind == "list":
            chosen[-1] = Part("list", f"{chosen[-1].text}\n{part.text}")
        else:
            chosen.append(part)
    return chosen


def _find(pointer: str, source: str) -> Part | None:
    """The sentence that begins with the pointer, or the stretch from its first to its last words."""
    pointer, runs_on = pointer.removesuffix(RUNS_ON), pointer.endswith(RUNS_ON)
    first, to, last = pointer.partition(TO)
    found = []
    for part in parts(source):
        if part.kind not in ("paragraph", "list", "quote", "question"):
            continue
        mark = "- " if part.kind == "list" else ""
        kind = "list" if mark else "paragraph"
        whole = part.text.replace("\n>", " ").lstrip("> ")
        texts = [item.partition(" ")[2] for item in items(part.text)] if mark else [whole]
        for text in texts:
            text = " ".join(text.split())
            for begin in re.finditer(rf"(?<!\w){re.escape(first)}", text):
                if to:
                    end = text.find(last, begin.end())
                    stretch = text[begin.start():end + len(last)] if end >= 0 else ""
                else:
                    stretch = first_sentence(text[begin.start():])
                if stretch:
                    found.append(Part(kind, mark + _closed(stretch, ":" if runs_on else ".")))
    if len(found) > 1:
        raise ValueError(f"the pointer {pointer!r} matches {len(found)} places; add words until it matches one")
    return found[0] if found else None


def names(pointer: str, source: str) -> bool:
    """Whether a pointer names something in a cell's prose."""
    return _find(pointer, source) is not None


def _closed(text: str, end: str) -> str:
    """A stretch of a sentence as one of its own: a capital first (not in a name of code), `end` last and no comma before it,
    no half of a bold phrase."""
    text = text.rstrip(",;: ")
    for mark in ("**", "`", "$"):
        if text.count(mark) % 2:
            text = text.replace(mark, "") if mark == "**" else text
    text = re.sub(r"^([*]*)([a-z])(?![a-z]*_)", lambda found: found[1] + found[2].upper(), text)
    return text if re.search(r"[.?!:…][*'\"”’)]*$", text) else f"{text}{end}"


def plain(text: str) -> str:
    """Markdown as a title or an index shows it: links become their words, marks go."""
    return re.sub(r"[*`]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))


def unlinked(text: str) -> str:
    """Markdown with its links to files of the course replaced by their words; a slide opens no notebook."""
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)
