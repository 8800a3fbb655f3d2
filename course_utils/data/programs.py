"""Small Python programs with a gap: what must be completed was defined a known number of tokens before.

Does: `make_programs` draws programs of five kinds, each with the places of the answer, its definition and the decoys, so
that 'did the model look there?' has an answer. Does not: run them, tokenize them for a model, or read real code.

Nothing but the definition gives the answer away: which candidate is asked for, the order of the definitions and the names
themselves are drawn independently, and no statement between definition and answer uses a candidate's name.
"""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

__all__ = ["KINDS", "Program", "count_tokens", "make_programs"]

_TOKEN = re.compile(r"#[^\n]*|\"[^\"\n]*\"|\w+|[^\w\s]")


def count_tokens(code: str) -> int:
    """Names, numbers, string literals and single marks in a piece of code; comments and spaces don't count."""
    return sum(not token.startswith("#") for token in _TOKEN.findall(code))


# Candidates: every name can stand for every thing, so a name says nothing about what it holds.
NAMES = """amber arrow autumn barley basin beacon birch bottle branch bridge bronze bucket button cabin candle canvas
castle cedar cellar cherry circle clover cobalt copper coral cotton cradle crystal cypress dapple delta desert dragon
eagle ember engine fabric falcon feather fennel fiddle flint forest fossil garden garnet ginger glacier gravel hammer
harbor hazel heather hickory hollow indigo island ivory jasmine jasper juniper kernel kettle ladder lantern laurel
lemon lily linen lumber maple marble meadow melon mirror mosaic mustard nectar needle nickel nutmeg oasis olive onyx
orchid otter paddle palace paper pebble pepper pillar pine planet plum pocket prairie quarry quartz rabbit raven ribbon
river robin rocket saddle saffron sapphire shadow silver spindle spruce stone summit sunset tavern thimble thistle
timber topaz tunnel turnip valley velvet violet walnut willow window winter yarrow zephyr""".split()
# Keys: what the question mentions, and the definition too.
FILES = [f"{name}.csv" for name in """orders prices clients visits flights routes rooms guests matches players scores
trains stations books readers loans parcels drivers seats tickets""".split()]
ROLES = """width height depth weight speed colour price owner title author length radius angle charge volume delay
limit offset margin rate""".split()
MODULES = """statistics fractions decimal collections itertools functools heapq bisect textwrap difflib calendar zlib
string random secrets operator shlex glob json csv""".split()
# Everything else: names that are never candidates, and statements that are never asked about.
OTHERS = """count total index item value result start stop step part line word found best last first size key flag rest
row column left right low high data text mark note side top""".split()
_TEMPLATES = """pass
{a} = {m}
{a} += {m}
{a} = {b}
{a} = [{m}, {n}]
{a} = {b} + {c}
{a} = {b} * {m} - {c}
{a} = ({b} + {m}) // {n}
{a} = max({b}, {c}, {m})
{a} = "{b} {c}"
{a} = {b} if {c} > {m} else {n}
{a}, {b} = {b}, {a}
assert {a} >= {m}, "{b}"
if {a} < {m}: {b} = {n}
while {a} > {m}: {a} -= {n}
for {a} in range({m}): {b} += {a} * {n}
{a} = sorted({b}, key=len)
{a} = [{b} * {m} for {b} in {c}]
{a} = {{"{b}": {m}, "{c}": {n}}}
{a} = {{{b}, {c}, {m}}}
print("{a}", {b}, {c} + {m})
{a} = "{b}".join(str({c}) for {c} in range({m}))
{a} = sum({b} for {b} in range({m}, {n} * {m}) if {b} % {n})
try: {a} = {m} / {b}
except ZeroDivisionError: {a} = {n}
{a} = lambda {b}: {b} * {m} + {n}""".replace("\nexcept", "\0except").split("\n")
FILLERS = sorted((count_tokens(text.replace("\0", "\n").format(a="a", b="b", c="c", m=1, n=1)), text.replace("\0", "\n"))
                 for text in _TEMPLATES)


KINDS = ("name", "attribute", "keyword", "alias", "bracket")
CLOSING = {"(": ")", "[": "]", "{": "}"}


class Program(NamedTuple):
    """A program and what is asked of it; spans are characters [start, end) of `text`."""

    text: str                        # the whole program, its answer included; valid Python
    kind: str                        # one of KINDS
    answer: tuple[int, int]          # what a model has to complete, given text[:answer[0]]
    definition: tuple[int, int]      # where it was defined: the same name, or the bracket that it closes
    decoys: list[tuple[int, int]]    # where the other candidates stand
    gap: int                         # tokens between definition and answer, as `count_tokens` counts them

    @property
    def candidates(self) -> list[str]:
        """What a reader who doesn't look might write: the answer and the decoys, sorted; of brackets, all three."""
        if self.kind == "bracket":
            return sorted(CLOSING.values())
        return sorted({self.text[start:end] for start, end in [self.definition, *self.decoys]})


def make_programs(number: int, *, gap: tuple[int, int] = (10, 200), kinds: tuple[str, ...] = KINDS,
                  seed: int = 0) -> list[Program]:
    """`number` programs, the kinds in turn, with gaps between the two numbers of tokens given.

    Where a program's own lines already take more than that, its gap is the shortest it can have (at most 40). The same
    arguments give the same programs on every machine. Raises ValueError for a number under one, an unknown kind, or a gap
    that isn't two numbers from 1 to 5,000 in ascending order.
    """
    if number < 1:
        raise ValueError(f"got number={number}; expected at least one program")
    if not kinds or any(kind not in KINDS for kind in kinds):
        raise ValueError(f"got kinds={kinds!r}; expected some of {', '.join(KINDS)}")
    if len(gap) != 2 or not 1 <= gap[0] <= gap[1] <= 5000:
        raise ValueError(f"got gap={gap!r}; expected the smallest and the largest, such as (10, 200), from 1 to 5000")
    rng = Random(f"programs {seed}")
    return [_DRAW[kinds[i % len(kinds)]](rng, rng.randint(*gap)) for i in range(number)]


# ------------------------------------------------------------------------------------------ putting a program together
def _filler(rng: Random, tokens: int, indent: str = "") -> str:
    """Lines of exactly `tokens` tokens that use no candidate's name; none for zero or fewer."""
    lines = []
    while tokens > 0:
        size, template = rng.choice([filler for filler in FILLERS if filler[0] <= tokens])
        a, b, c = rng.sample(OTHERS, 3)
        lines += template.format(a=a, b=b, c=c, m=rng.randint(2, 9), n=rng.randint(2, 9)).split("\n")
        tokens -= size
    return "".join(f"{indent}{line}\n" for line in lines)


def _program(kind: str, pieces: list[tuple[str, str]]) -> Program:
    """A program from pieces of text, each with what it is: '', 'definition', 'decoy' or 'answer'."""
    text, spans = "", {"definition": [], "decoy": [], "answer": []}
    for piece, what in pieces:
        if what:
            spans[what].append((len(text), len(text) + len(piece)))
        text += piece
    (answer,), (definition,) = spans["answer"], spans["definition"]
    return Program(text, kind, answer, definition, spans["decoy"], count_tokens(text[definition[1] : answer[0]]))


def _with_filler(rng: Random, kind: str, gap: int, before: list[tuple[str, str]], after: list[tuple[str, str]],
                 indent: str = "") -> Program:
    """The pieces before and after the gap, with as much between them as the gap still needs."""
    shortest = _program(kind, before + after).gap
    return _program(kind, [*before, (_filler(rng, gap - shortest, indent), ""), *after])


def _candidates(rng: Random, keys: list[str]) -> tuple[list[str], list[str], int]:
    """Two to four names, as many keys, and the index of the pair that is asked for."""
    number = rng.randint(2, 4)
    return rng.sample(NAMES, number), rng.sample(keys, number), rng.randrange(number)


def _label(i: int, wanted: int) -> str:
    return "definition" if i == wanted else "decoy"


# ------------------------------------------------------------------------------------------ the five kinds
def _name(rng: Random, gap: int) -> Program:
    """river = read("orders.csv") … report("orders.csv", river)"""
    names, files, wanted = _candidates(rng, FILES)
    before = [part for i, (name, file) in enumerate(zip(names, files))
              for part in ((name, _label(i, wanted)), (f' = read("{file}")\n', ""))]
    after = [(f'report("{files[wanted]}", ', ""), (names[wanted], "answer"), (")\n", "")]
    return _with_filler(rng, "name", gap, before, after)


def _attribute(rng: Random, gap: int) -> Program:
    """self.river = width … def get_width(self): return self.river"""
    names, roles, wanted = _candidates(rng, ROLES)
    before = [(f"class Shape:\n    def __init__(self, {', '.join(rng.sample(roles, len(roles)))}):\n", "")]
    for i, (name, role) in enumerate(zip(names, roles)):
        before += [("        self.", ""), (name, _label(i, wanted)), (f" = {role}\n", "")]
    after = [(f"    def get_{roles[wanted]}(self):\n        return self.", ""), (names[wanted], "answer"), ("\n", "")]
    return _with_filler(rng, "attribute", gap, before, after, indent="        ")


def _keyword(rng: Random, gap: int) -> Program:
    """def draw(*, river, stone): … draw(stone=3, river=…): each function has two keywords, and one is still missing"""
    number = rng.randint(2, 3)
    names, functions = rng.sample(NAMES, 2 * number), rng.sample(["draw", "pack", "send", "sort_out", "weigh"], number)
    wanted, missing = rng.randrange(number), rng.randrange(2)
    before = []
    for i, function in enumerate(functions):
        before += [(f"def {function}(*, ", "")]
        for j in range(2):
            asked = (i, j) == (wanted, missing)
            before += [(names[2 * i + j], "definition" if asked else "decoy"), (", " if j == 0 else "): pass\n", "")]
    given, asked = names[2 * wanted + 1 - missing], names[2 * wanted + missing]
    after = [(f"{functions[wanted]}({given}={rng.randint(2, 9)}, ", ""), (asked, "answer"), (f"={rng.randint(2, 9)})\n", "")]
    return _with_filler(rng, "keyword", gap, before, after)


def _alias(rng: Random, gap: int) -> Program:
    """import fractions as river … show("fractions", river.__name__)"""
    names, modules, wanted = _candidates(rng, MODULES)
    before = [part for i, (name, module) in enumerate(zip(names, modules))
              for part in ((f"import {module} as ", ""), (name, _label(i, wanted)), ("\n", ""))]
    after = [(f'show("{modules[wanted]}", ', ""), (names[wanted], "answer"), (".__name__)\n", "")]
    return _with_filler(rng, "alias", gap, before, after)


def _bracket(rng: Random, gap: int) -> Program:
    """line = [3, (4, {2, 9, (5, 7), [8], …}: two to four brackets are open, and the innermost is closed"""
    openings = [rng.choice("([{") for _ in range(rng.randint(2, 4))]
    pieces = [(f"{rng.choice(OTHERS)} = ", "")]
    for i, opening in enumerate(openings):
        pieces += [(opening, _label(i, len(openings) - 1)), (f"{rng.randint(2, 9)}, ", "")]
    pieces += [(_elements(rng, gap - 2), ""), (CLOSING[openings[-1]], "answer")]
    pieces += [("".join(CLOSING[opening] for opening in reversed(openings[:-1])) + "\n", "")]
    return _program("bracket", pieces)


def _elements(rng: Random, tokens: int) -> str:
    """Numbers and small brackets of all types, closed again, of exactly `tokens` tokens, in lines of twelve elements."""
    elements = []
    while tokens > 0:
        number, bracket = rng.randint(2, 9), rng.choice("([{")
        choices = {2: f"{number},", 4: f"{bracket}{number}{CLOSING[bracket]},",
                   6: f"{bracket}{number}, {rng.randint(2, 9)}{CLOSING[bracket]},", 3: f"-{number},", 1: f"{number}"}
        size = rng.choice([size for size in choices if size <= tokens and (size != 1 or tokens == 1)])
        elements.append(choices[size])
        tokens -= size
    lines = [" ".join(elements[i : i + 12]) for i in range(0, len(elements), 12)]
    return "\n    ".join(lines)


_DRAW = {"name": _name, "attribute": _attribute, "keyword": _keyword, "alias": _alias, "bracket": _bracket}
