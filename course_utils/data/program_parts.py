"""What the small programs of `programs` are made of: names, files, modules, and statements to fill the gap.

Does: hold them, and count tokens. Does not: put anything together.
"""

from __future__ import annotations

import re

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
