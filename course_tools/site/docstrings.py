"""The course's docstrings, which are plain text, as the reStructuredText that Sphinx reads.

Does: set code, shapes such as (batch, seq_len) and the names of errors in code type, keep examples as they are, make lists
of arguments, and link names to their place in the reference. Does not: find docstrings (Sphinx does), or know what is taught
where (see `reference`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from textwrap import dedent

SECTIONS = {"Args:": "Arguments", "Returns:": "Returns", "Raises:": "Raises"}
BEGINNINGS = re.compile(r"(What it does|Does|What it does not do|Does not):")
ITEM = re.compile(r'((?:"[^"]+"|[A-Za-z_][\w ]*)(?:, (?:"[^"]+"|[A-Za-z_]\w*))*): ')
PART = r"(?:\.\.\.|…|\w+(?:(?: [/+·*] |=)\w+)*)"
CODE = re.compile(
    r"`(?P<quoted>[^`\n]+)`"
    rf"|(?<![\w.])(?P<call>[a-z]\w*\((?!s\))(?:{PART}(?:, {PART})*)?\))"        # f(x), f(...)
    rf"|(?P<shape>\({PART}(?:, {PART})+,?\)|\({PART},\))"           # (batch, seq_len), (token,)
    r"|\b(?P<error>[A-Z][A-Za-z]*(?:Error|NotAvailable))\b"
    r"|\b(?P<switch>COURSE_[A-Z]+(?:=\w+)?)"
    r"|(?<![\w/.])(?P<name>[a-z]+(?:_[a-z]+)+)(?![\w/(=]|\.\w)")         # seq_len
COLUMNS = re.compile(r"(?P<code>\S.*)(?<=\S)(?P<gap>  +)(?P<words>[^\s#].*)")
AROUND = "'\"([{<-/:", "'\")]}>-/\\:.,;!?"                 # what may stand before code and after it
LIST_LIKE = re.compile(r"(?:[-+*•|]|\.\.|>>>|(?:\w|\d+|#)[.)])(?=\s)|:\w+:")


def to_rst(text: str, links: Mapping[str, str] | None = None, own: Iterable[str] = ()) -> str:
    """A docstring as reStructuredText. `links` has the full name of each name that can be linked: `causal_mask` is
    course_utils.attention.causal_mask. Names in `own`, a function's arguments, aren't linked but set in code type."""
    known = {**(links or {}), **dict.fromkeys(own, "")}
    return "\n\n".join(_chunk(chunk, known) for chunk in re.split(r"\n\s*\n", text.strip("\n"))) + "\n"


def inline(text: str, links: Mapping[str, str] | None = None) -> str:
    """Running text: code in code type, all else shown as it stands."""
    parts, end, known = [], 0, links or {}
    for found in CODE.finditer(text):
        before = text[end : found.start()]
        word = re.search(r"(?<![\w'])([a-z]\w*) $", before)
        if found["shape"] and word and known.get(word[1]) == "":      # an argument with its shape: query (..., query, d_k)
            parts += [_escaped(before[: word.start()]), f"``{word[1]}`` "]
        else:
            parts.append(_escaped(before))
        parts.append(_joined(text, found, _code(found, known)))
        end = found.end()
    result = "".join([*parts, _escaped(text[end:])])
    return "\\" + result if LIST_LIKE.match(result) else result


def _code(found: re.Match, links: Mapping[str, str]) -> str:
    text = found["quoted"] or found[0]
    name = text.removesuffix("()")
    if found["quoted"] and links.get(name):
        return f":py:obj:`{text} <{links[name]}>`"
    return f"``{text}``"


def _joined(text: str, found: re.Match, code: str) -> str:
    """Code next to a letter, or to a sign that reStructuredText doesn't allow there, needs one that it ends: `(batch,)`s."""
    before, after = text[: found.start()][-1:], text[found.end() :][:1]
    return ("" if before in AROUND[0] or before.isspace() else "\\ ") + code + (
        "" if after in AROUND[1] or after.isspace() else "\\ ")


def _escaped(text: str) -> str:
    return re.sub(r"([\\*`|\"])|_(?!\w)", lambda found: "\\" + found[0], text.replace(" -> ", " → "))


def _chunk(chunk: str, links: Mapping[str, str]) -> str:
    """One block between empty lines: an example, a section such as 'Args:', a list, or a paragraph."""
    lines = chunk.split("\n")
    if all(line.startswith("    ") for line in lines):
        listed = _columns(dedent(chunk).split("\n"), links)
        return listed or "::\n\n" + "\n".join(f"    {line}" for line in dedent(chunk).split("\n"))
    if lines[0] in SECTIONS:
        return f"**{SECTIONS[lines[0]]}**\n\n{_body(dedent(chr(10).join(lines[1:])), links)}"
    if any(line.startswith("    ") for line in lines):
        return _body(chunk, links)
    text = inline(" ".join(line.strip() for line in lines), links)
    return BEGINNINGS.sub(r"**\1:**", text)


def _columns(lines: list[str], links: Mapping[str, str]) -> str:
    """Lines of code and words in two columns, as a list; '' for any other example."""
    rows: list[list[str]] = []
    column = 0
    for line in lines:
        found = COLUMNS.fullmatch(line)
        if found and not line.startswith(" ") and found.start("words") == (column or found.start("words")):
            column = found.start("words")
            rows.append([found["code"], found["words"]])
        elif rows and line[:column].strip() == "":
            rows[-1][1] += f" {line.strip()}"
        else:
            return ""
    return "\n".join(f"- ``{code}``: {inline(words, links)}" for code, words in rows)


def _body(text: str, links: Mapping[str, str]) -> str:
    """What 'Args:' holds: an item for each line that isn't indented, or a paragraph where there are no items."""
    groups: list[list[str]] = []
    for line in text.split("\n"):
        if line.startswith(" ") and groups:
            groups[-1].append(line)
        else:
            groups.append([line])
    if not all(ITEM.match(group[0]) for group in groups):
        return inline(" ".join(line.strip() for line in text.split("\n")), links)
    return "\n".join(_item(group, links) for group in groups)


def _item(lines: list[str], links: Mapping[str, str]) -> str:
    """'tokens: the words, …', with the lines below it, as an item of a list; the lines may be a list themselves."""
    found = ITEM.match(lines[0])
    names = re.findall(r'"[^"]+"|[\w ]+', found[1].replace(", ", ","))
    shown = ", ".join(f"*{name}*" if " " in name.strip('"') or name == "Others" else f"``{name}``" for name in names)
    first, rest = lines[0][found.end() :], dedent("\n".join(lines[1:]))
    if ITEM.match(rest) and "\n " in rest:
        inside = "\n".join(f"  {line}" for line in _body(rest, links).split("\n"))
        return f"- {shown}: {inline(first, links)}\n\n{inside}\n"
    return f"- {shown}: {inline(' '.join([first, *rest.split(chr(10))]).strip(), links)}"
