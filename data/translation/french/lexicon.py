"""The nouns and adjectives of the grammar, with what can be said of what.

Does: read data/translation/bank/words.toml, which explains itself; give an adjective's forms. Does not: put words together.
"""

from __future__ import annotations

import tomllib
from functools import cache
from typing import NamedTuple

from course_utils.files.paths import DATA

__all__ = ["ADJECTIVES", "BANK", "NAMES", "NOUNS", "Adjective", "Noun", "adjectives_for", "clash", "nouns"]

BANK = tomllib.loads((DATA / "translation" / "bank" / "words.toml").read_text(encoding="utf-8"))
NAMES = {
    "m": ("Paul", "Hugo", "Louis", "Martin", "Karim", "Simon"),
    "f": ("Marie", "Julie", "Anne", "Nadia", "Claire", "Inès"),
}
BEFORE_VOWEL = {"beau": "bel", "nouveau": "nouvel", "vieux": "vieil"}


class Noun(NamedTuple):
    english: tuple[str, str]  # singular, plural
    french: tuple[str, str]
    gender: str  # 'm' or 'f'
    classes: frozenset[str]

    @property
    def lemma(self) -> str:
        return self.english[0]


class Adjective(NamedTuple):
    english: str
    french: tuple[str, str, str, str]  # masculine, feminine, masculine plural, feminine plural
    before_vowel: str  # of the masculine: 'bel'; else empty
    side: str  # 'before' or 'after' a French noun
    classes: frozenset[str]

    def form(self, gender: str, plural: bool) -> str:
        """form('f', True) of 'beau' is 'belles'."""
        return self.french[(gender == "f") + 2 * plural]


def _noun(line: str) -> Noun:
    english, french, gender, classes = (part.strip() for part in line.split("|"))
    one, _, many = english.partition("/")
    un, _, des = french.partition("/")
    return Noun((one, many or one + "s"), (un, des or un + "s"), gender, frozenset(classes.split()))


def _adjective(line: str) -> Adjective:
    english, french, side, classes = (part.strip() for part in line.split("|"))
    if french in BANK["forms"]:
        forms = tuple(BANK["forms"][french].split())
    else:
        feminine = (
            french[:-1] + "se"
            if french.endswith("eux")
            else french[:-2] + "ère"
            if french.endswith("er")
            else french
            if french.endswith("e")
            else french + "e"
        )
        masculines = french if french[-1] in "sx" else french + "s"
        forms = (french, feminine, masculines, feminine + "s")
    return Adjective(english, forms, BEFORE_VOWEL.get(french, ""), side, frozenset(classes.split()))


NOUNS = {one.lemma: one for one in map(_noun, BANK["nouns"].strip().splitlines())}
ADJECTIVES = {one.english: one for one in map(_adjective, BANK["adjectives"].strip().splitlines())}
UNSUITED = {name: frozenset(lemmas.split()) for name, lemmas in BANK["unsuited"].items()}


EVALUATIVE = frozenset(
    "boring sad funny interesting strange moving ridiculous predictable original surprising brilliant terrible "
    "charming delicious dirty violent slow famous".split()
)
COLOURS = frozenset("red blue green black white yellow grey".split())
# adjectives that contradict or repeat each other; 'pretty' before another one would be taken for an adverb
CLASHES = {
    "good": EVALUATIVE | {"romantic"},
    "bad": EVALUATIVE | {"romantic"},
    "excellent": EVALUATIVE | {"romantic"},
    "beautiful": EVALUATIVE,
    "old": frozenset({"modern", "original", "surprising"}),
    "new": frozenset({"broken", "dirty", "famous", "modern", "ridiculous"}),
    "long": frozenset({"slow"}),
    "big": frozenset({"light"}),
    "small": frozenset({"heavy", "crowded"}),
    "young": frozenset({"famous"}),
    "empty": frozenset({"crowded", "noisy"}),
    "quiet": frozenset({"noisy", "crowded"}),
    "clean": frozenset({"dirty"}),
    "cold": frozenset({"hot"}),
    "happy": frozenset({"sad", "jealous", "worried"}),
    "simple": frozenset({"complicated"}),
    "boring": EVALUATIVE - {"sad"},
    "predictable": frozenset({"surprising", "original", "strange", "mysterious"}),
    "sad": frozenset({"funny"}),
    "terrible": EVALUATIVE,
    "serious": frozenset({"funny", "ridiculous"}),
    "light": frozenset({"heavy"}),
    "patient": frozenset({"nervous", "jealous"}),
    "dark": frozenset({"sunny"}),
    "ridiculous": EVALUATIVE,
}


def clash(early: Adjective, late: Adjective) -> bool:
    """Whether two adjectives can't describe one noun."""
    if early.english == "pretty":
        return late.english not in COLOURS
    return late.english in CLASHES.get(early.english, ())


def nouns(*classes: str) -> list[Noun]:
    """The nouns of any of the classes, in the order of the lexicon."""
    return [one for one in NOUNS.values() if one.classes & set(classes)]


@cache
def adjectives_for(one: Noun, side: str = "") -> list[Adjective]:
    """The adjectives that suit a noun, on one side of it or on both."""
    return [
        a
        for a in ADJECTIVES.values()
        if a.classes & one.classes and (not side or a.side == side) and one.lemma not in UNSUITED.get(a.english, ())
    ]
