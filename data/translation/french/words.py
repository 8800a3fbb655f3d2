"""Words in two languages with the links between them; French elision and contraction; English 'a' and 'an'.

Does: hold a stretch of both languages in a `Phrase`, and turn finished phrases into tokens and links. Does not: know any
grammar beyond what two neighbouring words do to each other.

Every word has a set of keys. An English and a French word are linked if they share a key, so a phrase can be reordered and
its words merged ('de' and 'le' to 'du', with the keys of both) without losing a link.
"""

from __future__ import annotations

import re
from itertools import count
from typing import NamedTuple

__all__ = ["Phrase", "Unfit", "Word", "en", "finish", "fixed", "fr", "key", "one", "sentence", "starts_with_vowel"]

_KEYS = count()

# French words that lose their vowel, or change their form, before a vowel or a mute h
ELIDED = {"le": "l'", "la": "l'", "de": "d'", "que": "qu'", "ne": "n'", "je": "j'", "me": "m'", "se": "s'"}
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
ASPIRATED = re.compile(r"(?:héros|haut|huit|hall|hasard|honte|hamburger|hibou|onz|oui)")  # no elision before these
VOWEL = re.compile(r"[aeiouyàâéèêëîïôûùœh]")
AN = re.compile(r"(?!uni|use|usu|eu|one)[aeiou]|hour|honest")


class Unfit(LookupError):
    """No words suit what was drawn; draw again."""


class Word(NamedTuple):
    """A word of either language; `before_vowel` is its form before a vowel, `article` marks what 'de' and 'à' merge with."""

    text: str
    keys: frozenset[int] = frozenset()
    before_vowel: str = ""
    article: bool = False


class Phrase(NamedTuple):
    """The same stretch in both languages, and the combinations of words in it that a split may own."""

    english: tuple[Word, ...] = ()
    french: tuple[Word, ...] = ()
    combinations: frozenset[tuple[str, str]] = frozenset()

    def __add__(self, other: Phrase) -> Phrase:
        return Phrase(self.english + other.english, self.french + other.french, self.combinations | other.combinations)


def key() -> frozenset[int]:
    """A key that no other word has."""
    return frozenset([next(_KEYS)])


def en(text: str, keys: frozenset[int] = frozenset()) -> tuple[Word, ...]:
    """English words that share their keys."""
    return tuple(Word(word, keys) for word in text.split())


def fr(text: str, keys: frozenset[int] = frozenset(), before_vowel: str = "", article: bool = False) -> tuple[Word, ...]:
    """French words that share their keys."""
    return tuple(Word(word, keys, before_vowel or ELIDED.get(word, ""), article) for word in text.split())


def one(english: str, french: str) -> Phrase:
    """Words that belong together, all with all."""
    shared = key()
    return Phrase(en(english, shared), fr(french, shared))


def fixed(spec: str) -> Phrase:
    """A phrase from 'last=dernière@2 week=la_semaine@1': links by '=', French order by '@', one side may be empty.

    A French le, la or les that is written with '^' before it is an article, which merges with 'de' and 'à'.
    """
    english, placed = (), []
    for place, item in enumerate(spec.split()):
        left, _, right = item.partition("=")
        right, _, position = right.partition("@")
        shared = key() if left and right else frozenset()
        english += en(left.replace("_", " "), shared)
        words = ()
        for word in right.replace("_", " ").split():
            words += fr(word.lstrip("^"), shared, article=word.startswith("^"))
        placed.append((int(position) if position else place + 1, place, words))
    return Phrase(english, tuple(word for _, _, words in sorted(placed) for word in words))


def starts_with_vowel(word: str) -> bool:
    """Whether French words before this one are elided."""
    word = word.lower()
    return bool(VOWEL.match(word)) and not ASPIRATED.match(word)


def _elide(words: tuple[Word, ...]) -> list[Word]:
    done = []
    for word, after in zip(words, (*words[1:], Word("."))):
        if word.before_vowel and starts_with_vowel(after.text):
            word = word._replace(text=word.before_vowel, article=False)
        elif word.text == "si" and after.text in ("il", "ils"):
            word = word._replace(text="s'")
        done.append(word)
    merged: list[Word] = []
    for word in done:
        both = CONTRACTED.get((merged[-1].text, word.text)) if merged and word.article else None
        if both:
            merged[-1] = Word(both, merged[-1].keys | word.keys)
        else:
            merged.append(word)
    return merged


def _articles(words: tuple[Word, ...]) -> list[Word]:
    return [
        word._replace(text="an") if word.text == "a" and AN.match(after.text.lower()) else word
        for word, after in zip(words, (*words[1:], Word(".")))
    ]


def sentence(phrase: Phrase, mark: str = ".") -> Phrase:
    """The phrase as a sentence: elided, its first letters capitals, the mark at its end."""
    end = key()
    english, french = _articles(phrase.english), _elide(phrase.french)
    for words in (english, french):
        words[0] = words[0]._replace(text=words[0].text[0].upper() + words[0].text[1:])
    return Phrase((*english, Word(mark, end)), (*french, Word(mark, end)), phrase.combinations)


def finish(phrase: Phrase) -> tuple[list[str], list[str], list[tuple[int, int]]]:
    """English tokens, French tokens, and the links between them as sorted pairs of indices."""
    links = [(i, j) for i, a in enumerate(phrase.english) for j, b in enumerate(phrase.french) if a.keys & b.keys]
    return [word.text for word in phrase.english], [word.text for word in phrase.french], links
