"""A grammar of short sentences about films, in which a construction decides what an opinion comes to.

Does: read the bank in data/sentences/bank (words and phrases of both signs, and constructions), and write out one
sentence, or a minimal pair, with its label and the places of the words that decide. Does not: choose how often a
construction is used, divide sentences into splits or write files; `sentence_corpus` does. How a construction is written
is explained at the top of data/sentences/bank/constructions.toml.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import NamedTuple

from sentence_words import Person, Target, comparative, finished, gerund, superlative, third_person

from course_utils.files.paths import DATA

__all__ = ["BANK", "KINDS", "Bank", "Construction", "Opinion", "Sentence", "draw", "load_bank"]

BANK = DATA / "sentences" / "bank"
KINDS = ("plain", "negation", "contrast", "expectation", "irony", "others", "comparison")

# The slots of a construction that opinions fill -> their table in words.toml.
SLOTS = {"adj": "adjectives", "att": "adjectives", "ext": "extreme", "weak": "concession", "np": "nouns",
         "abs": "contents", "mass": "contents", "vp": "verbs", "eff": "effects", "hit": "effects", "urge": "urges",
         "out": "outside", "feel": "feelings", "mood": "feelings", "act": "actions", "like": "attitudes",
         "how": "manner", "cl": "clauses"}
_SLOT = re.compile(r"\{(?P<type>[A-Za-z]+)(?P<number>\d?)(?:\.(?P<form>[a-z]+))?(?P<sign>[~+\-=!]?)(?:@(?P<whose>\w+))?\}")
_BRACKET = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")
_PIECE = re.compile(r"(<[^<>]*>|\{[^{}]*\})")
# How an opinion with a capital ({Adj}, {Np.p} …) can be said by denying the opposite.
DENIALS = {"adj": ("anything but {}", "far from {}", "not at all {}", "not in the least {}"),
           "np": ("anything but {}", "the opposite of {}", "the very opposite of {}"),
           "feel": ("anything but {}", "not in the least {}", "far from {}"),
           "eff": ("never {}", "never once {}"), "vp": ("never {}",)}


class Opinion(NamedTuple):
    """An entry of words.toml: its words (a verb's base), a verb's past, its sign, whether only the test split has it."""

    text: str
    past: str
    positive: bool
    held_out: bool


class Construction(NamedTuple):
    """A way to combine: its name and kind, and its template; `flip` is None where a bracket decides."""

    name: str
    kind: str
    template: str
    flip: bool | None
    held_out: bool


class Sentence(NamedTuple):
    """A sentence, its label, the character spans that decide it, and the opinions in it."""

    text: str
    label: int
    evidence: list[list[int]]
    opinions: tuple[Opinion, ...]


@dataclass
class Bank:
    """Everything read from the bank."""

    opinions: dict[tuple[str, bool], list[Opinion]]                 # (table, positive) -> entries
    targets: list[Target]
    aspects: list[Target]                                           # parts of a film and sorts of films
    constructions: list[Construction]
    clauses: list[Construction]
    people: list[Person]
    slots: dict[str, list[str]]                                     # neutral slots
    around: dict[str, list[str]]                                    # what may stand around a sentence
    _fitting: dict = field(default_factory=dict, repr=False)

    def fitting(self, table: str, positive: bool, kind: str) -> list[Opinion]:
        """The opinions of a table and a sign that a kind of slot can hold."""
        if (table, positive, kind) not in self._fitting:
            fits = re.compile({"hit": r"\w+ \{me\}", "mass": r".*[^s]", "att": r"\S+", "mood": r"\S+"}.get(kind, ".+"))
            self._fitting[table, positive, kind] = [opinion for opinion in self.opinions[table, positive]
                                                    if fits.fullmatch(opinion.text)]
        return self._fitting[table, positive, kind]


def entries(text: str) -> list[str]:
    """The entries of a list: separated by commas, over several lines."""
    return [entry.strip() for entry in text.replace("\n", " ").split(",") if entry.strip()]


def kept_for_test(opinion: str) -> bool:
    """Whether an opinion occurs in the test split only: about a tenth of them, chosen by a hash."""
    return sha256(f"opinion {opinion}".encode()).digest()[0] < 28


def _opinions(words: dict) -> dict[tuple[str, bool], list[Opinion]]:
    found = {}
    for table, content in words.items():
        lists = {f"aspects.{name}": lists for name, lists in content.items()} if table == "aspects" else {
            table: content["film"] if table == "adjectives" else content}
        for name, pair in lists.items():
            for sign in (True, False):
                parts = [entry.partition("/") for entry in entries(pair["positive" if sign else "negative"])]
                texts = [(_with_rest(base, past), past) for base, _, past in parts]
                found[name, sign] = [Opinion(text, past, sign, kept_for_test(text)) for text, past in texts]
    return found


def _with_rest(base: str, past: str) -> str:
    """'fall' and 'fell flat' -> 'fall flat'."""
    return " ".join([base, *past.split()[1:]])


def _constructions(blocks: dict[str, str]) -> list[Construction]:
    found = []
    for kind, block in blocks.items():
        for line in filter(None, map(str.strip, block.splitlines())):
            name, _, template = line.partition(": ")
            sign, _, rest = template.partition(" ")
            if sign not in ("+", "-") and "[" not in template:
                raise ValueError(f"{name}: {template!r} has neither + or - nor [turns|keeps]; add one")
            flip = {"+": False, "-": True}.get(sign)
            found.append(Construction(name.rstrip("*"), kind, template if flip is None else rest, flip, name.endswith("*")))
    return found


def load_bank(folder: Path = BANK) -> Bank:
    """The bank. Lists keep the order of the files, so that a seed gives the same sentences again."""
    def read(name: str) -> dict:
        with open(folder / name, "rb") as file:
            return tomllib.load(file)

    words, neutral, ways = read("words.toml"), read("neutral.toml"), read("constructions.toml")
    aspects = [Target(target.rstrip("+"), target.endswith("+"), f"aspects.{name}")
               for name, lists in words["aspects"].items() for target in entries(lists["targets"])]
    return Bank(
        opinions=_opinions(words),
        targets=[Target(text, False, "adjectives") for text in neutral["targets"]],
        aspects=aspects,
        constructions=_constructions({kind: ways[kind] for kind in KINDS}),
        clauses=_constructions({"clause": ways["clauses"]}),
        people=[Person(*text.split(" / ")) for text in neutral["people"]],
        slots=neutral["slots"],
        around=neutral["around"],
    )


# ------------------------------------------------------------------------------------------ what a pair shares
@dataclass
class _Plan:
    """What the two halves of a pair share: everything but signs and opinions."""

    template: str
    target: Target
    past: bool
    people: list[Person]
    neutral: dict[str, str]
    denials: dict[str, str]                # the slot of an opinion -> how it's said by its opposite
    clauses: dict[str, tuple]              # the slot of a clause -> its construction, plan and whether a bracket turns it
    lead: str = ""
    before: str = ""
    after: str = ""
    contract: bool = True


def _choose(template: str, rng: Random) -> str:
    """The template with one of the choices in each {a|b}; a choice may hold slots."""
    start = 0
    while (start := template.find("{", start)) >= 0:
        depth, bars = 0, [start]
        for end in range(start, len(template)):
            depth += (template[end] == "{") - (template[end] == "}")
            if template[end] == "|" and depth == 1:
                bars.append(end)
            if depth == 0:
                break
        if len(bars) > 1:
            left, right = rng.choice(list(zip(bars, [*bars[1:], end])))
            template = template[:start] + template[left + 1:right] + template[end + 1:]
        else:
            start += 1
    return template


@cache
def _slots(template: str) -> tuple[re.Match, ...]:
    return tuple(match for match in _SLOT.finditer(template) if match["type"].lower() in SLOTS)


@cache
def _parts(template: str) -> tuple[str, ...]:
    return tuple(filter(None, _PIECE.split(template)))


def is_free(way: Construction) -> bool:
    """Whether opinions of either sign fit: the template has one whose sign isn't fixed."""
    return any(match["sign"] in ("", "~") for match in _slots(way.template))


def _plan(way: Construction, bank: Bank, rng: Random, around: bool = True) -> _Plan:
    template = _choose(way.template, rng)
    target = rng.choice(bank.aspects if "{T*}" in template and rng.random() < 0.6 else bank.targets)
    if "{F}" in template and target.text == "it":
        target = rng.choice([other for other in bank.targets if other.text != "it"])
    second = rng.choice([person for person in bank.people if person.who.startswith("my ")])
    people = [rng.choice([person for person in bank.people if person != second]), second]
    neutral = {name: rng.choice(values) for name, values in bank.slots.items() if f"{{{name}}}" in template}
    denials = {}
    for match in _slots(template):
        if match["type"][0].isupper() and rng.random() < 0.5:
            after_but = re.search(r"\bbut>? $", template[:match.start()])       # 'but anything but dull' is too much
            denials[match[0]] = rng.choice([words for words in DENIALS[match["type"].lower()]
                                            if not (after_but and words.startswith("anything"))])
    clauses = {}
    for match in _slots(template):
        if match["type"] == "cl" and match[0] not in clauses:
            inner = rng.choice(bank.clauses)
            clauses[match[0]] = (inner, _plan(inner, bank, rng, around=False))
    plan = _Plan(template, target, rng.random() < 0.6, people, neutral, denials, clauses, contract=rng.random() < 0.8)
    one = around and len(re.findall(r"[.!?](?: |$)", template.replace("?]", "]"))) == 1
    chance = rng.random()
    if one and chance < 0.1:
        plan.before = rng.choice(bank.around["before"])
    elif one and chance < 0.2:
        plan.after = rng.choice(bank.around["after"])
    elif one and chance < 0.32 and way.kind != "irony" and not template.endswith("!"):
        plan.lead = rng.choice(bank.around["lead"])
    return plan


# ------------------------------------------------------------------------------------------ one sentence
def _sign(match: re.Match, main: bool, label: bool) -> bool:
    """The sign of an opinion: as its slot has it, or that of the main opinion, or the label's."""
    return {"+": True, "-": False, "~": not main, "=": label, "!": not label, "": main}[match["sign"]]


def _pick(match: re.Match, sign: bool, plan: _Plan, bank: Bank, rng: Random, taken: set, allowed) -> Opinion:
    """An opinion for a slot, of a given sign."""
    kind, table = match["type"].lower(), SLOTS[match["type"].lower()]
    if table == "adjectives" and "{T*}" in plan.template:
        table = plan.target.table
    options = bank.fitting(table, sign, kind)
    return rng.choice([opinion for opinion in options if opinion.text not in taken and allowed(opinion)])


def _form(opinion: Opinion, match: re.Match, plan: _Plan) -> str:
    """An opinion as its slot asks for it."""
    form = match["form"]
    if form == "t":
        form = "p" if plan.past else "b" if plan.target.plural else "s"
    change = {"s": third_person, "g": gerund, "c": comparative, "sup": superlative}.get(form, str)
    text = opinion.past if form == "p" else change(opinion.text)
    first = plan.people[0]
    me, my = {"them": ("them", "their"), "who": (first.him, first.his)}.get(match["whose"], ("me", "my"))
    return text.replace("{me}", me).replace("{my}", my)


def _pieces(plan: _Plan, opinions: dict[str, str]) -> list[tuple[str, bool]]:
    """The template in pieces, each with whether it's evidence; `opinions` fills slots."""
    first, second = plan.people
    plural, past = plan.target.plural, plan.past
    verbs = {"is": ("was were" if past else "is are"), "was": "was were", "has": "had had" if past else "has have",
             "isn't": ("wasn't weren't" if past else "isn't aren't"), "wasn't": "wasn't weren't"}
    values = {name: pair.split()[plural] for name, pair in verbs.items()} | plan.neutral | {
        "T": plan.target.text, "T*": plan.target.text, "F": plan.target.text, "who": first.who, "he": first.he,
        "him": first.him, "his": first.his, "whob": second.who} | {slot[1:-1]: text for slot, text in opinions.items()}
    pieces = []
    for part in _parts(plan.template):
        filled = part.strip("<>") if part[0] == "<" else part
        if "{" in filled:
            filled = re.sub(r"\{([^{}]*)\}", lambda match: values[match[1]], filled)
        pieces.append((filled, part[0] == "<" or part in opinions))
    return pieces


def _sentence(way: Construction, plan: _Plan, main: bool, flip: bool, bank: Bank, rng: Random, given: dict,
              allowed) -> tuple[list[tuple[str, bool]], list[Opinion]]:
    """The pieces of one sentence and its opinions; `given` holds what its partner has chosen, and takes up the rest."""
    label = main ^ flip
    here = replace(plan, template=_BRACKET.sub(lambda match: f"<{match[1 if flip else 2]}>", plan.template))
    taken = {opinion.text for opinion in given.values() if isinstance(opinion, Opinion)}
    shown, used, clauses = {}, [], {}
    for match in _slots(here.template):
        sign = _sign(match, main, label) ^ (match[0] in plan.denials)
        key = (match["type"].lower(), match["number"], sign)
        if match["type"] == "cl":
            if key not in given:
                inner, its_plan = plan.clauses[match[0]]
                turned = (rng.random() < 0.5 if is_free(inner) else not sign) if inner.flip is None else inner.flip
                its_plan = replace(its_plan, past=plan.past, target=Target("it", False, "adjectives"))
                given[key] = _sentence(inner, its_plan, sign ^ turned, turned, bank, rng, {}, allowed)
            clauses[match[0]] = given[key]
            used += given[key][1]
            continue
        if key not in given:
            given[key] = _pick(match, sign, here, bank, rng, taken, allowed)
            taken.add(given[key].text)
        used.append(given[key])
        shown[match[0]] = plan.denials.get(match[0], "{}").replace("{}", _form(given[key], match, here))
    pieces = _pieces(here, shown | dict.fromkeys(clauses, "\0"))
    inner = iter(clauses.values())
    pieces = [one for piece in pieces for one in (next(inner)[0] if piece[0] == "\0" else [piece])]
    return pieces, used


def _write(way: Construction, plan: _Plan, main: bool, flip: bool, bank: Bank, rng: Random, given: dict,
           allowed) -> Sentence:
    pieces, used = _sentence(way, plan, main, flip, bank, rng, given, allowed)
    around = {name: re.sub(r"\{whob\}", plan.people[1].who, getattr(plan, name)) for name in ("lead", "before", "after")}
    text, evidence = finished(pieces, plan.contract, **around)
    return Sentence(text, int(main ^ flip), evidence, tuple(used))


def draw(way: Construction, bank: Bank, rng: Random, *, allowed=lambda opinion: True) -> list[Sentence]:
    """A minimal pair by one construction: one plan, written out twice with opposite labels, the negative one first.

    Where a bracket decides, the two differ in it alone, or in the opinions alone; where two opposite opinions of one sort
    are weighed against each other, they change places. `allowed` says which opinions may be used. A template without a
    bracket in which every sign is fixed gives one sentence.
    """
    plan = _plan(way, bank, rng)
    free, given = is_free(way), {}
    main = rng.random() < 0.5 if free else True
    if way.flip is None:
        flip = rng.random() < 0.5
        turn = not free or rng.random() < 0.65
        cells = [(main, flip), (main, not flip) if turn else (not main, flip)]
    else:
        cells = [(main, way.flip), (not main, way.flip)] if free else [(main, way.flip)]
    cells.sort(key=lambda cell: cell[0] ^ cell[1])
    return [_write(way, plan, *cell, bank, rng, given, allowed) for cell in cells]
