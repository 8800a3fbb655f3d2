"""The forms of words in `sentence_grammar`: third persons, gerunds, comparisons, articles, capitals.

Does: what a writer does without thinking. Does not: know other words than those in data/sentences/bank.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Person", "Target", "comparative", "finished", "gerund", "superlative", "third_person"]

_IRREGULAR = {"good": ("better", "the best"), "bad": ("worse", "the worst")}
_DOUBLED = {"let", "win", "grip", "put", "get", "drag", "run", "sit", "hit", "slip", "grin", "hum", "clap"}
_SHORT = {"dull", "stale", "bland", "cheap", "tame", "slack", "fresh", "warm", "sharp", "crisp", "lame"}
_SYLLABIC_Y = {"funny", "witty", "lively", "clumsy", "dreary", "lazy", "silly", "sloppy", "scary", "creepy", "sleepy",
               "lovely", "ugly", "murky", "shaky"}
_VOWEL = re.compile(r"[aeiouAEIOU](?!ne[ -]|uropean|niversal|nique|se)|hour|honest")


class Target(NamedTuple):
    """What a sentence is about, whether it is a plural, and the table of the adjectives that can be said of it."""

    text: str
    plural: bool
    table: str


class Person(NamedTuple):
    """Somebody and their pronouns: 'my brother', 'he', 'him', 'his'."""

    who: str
    he: str
    him: str
    his: str


def third_person(verb: str) -> str:
    """'fall flat' -> 'falls flat'."""
    first, _, rest = verb.partition(" ")
    if first.endswith(("s", "sh", "ch", "x", "z", "o")):
        first += "es"
    elif first.endswith("y") and first[-2] not in "aeiou":
        first = first[:-1] + "ies"
    else:
        first += "s"
    return f"{first} {rest}".rstrip()


def gerund(verb: str) -> str:
    """'make me laugh' -> 'making me laugh'."""
    first, _, rest = verb.partition(" ")
    if first in _DOUBLED:
        first += first[-1]
    elif first.endswith("e") and not first.endswith("ee"):
        first = first[:-1]
    return f"{first}ing {rest}".rstrip()


def comparative(adjective: str) -> str:
    """'dull' -> 'duller', 'gripping' -> 'more gripping'."""
    if adjective in _IRREGULAR:
        return _IRREGULAR[adjective][0]
    if adjective in _SYLLABIC_Y:
        return adjective[:-1] + "ier"
    if adjective in _SHORT:
        return adjective + ("r" if adjective.endswith("e") else "er")
    return f"more {adjective}"


def superlative(adjective: str) -> str:
    """'dull' -> 'the dullest', 'gripping' -> 'the most gripping'."""
    if adjective in _IRREGULAR:
        return _IRREGULAR[adjective][1]
    if (longer := comparative(adjective)).startswith("more "):
        return f"the most {adjective}"
    return f"the {longer[:-1]}st"


_LOWER = {"It", "The", "This", "There", "You", "Nobody", "Not", "My", "Everyone", "Few", "None", "Every", "At", "Most",
          "Anybody", "In", "No", "All", "Even", "For", "Though", "Although", "Despite"}


def finished(pieces: list[tuple[str, bool]], contract: bool = True, lead: str = "", before: str = "",
             after: str = "") -> tuple[str, list[list[int]]]:
    """The text of the pieces and the spans of those that are evidence; articles, capitals and contractions are put right.

    `lead` goes before the sentence if it begins with a word that can go on in small letters; `before` and `after` are
    sentences of their own. 'it is' becomes 'it's' with `contract`.
    """
    begin = re.split(r"\W", "".join(piece for piece, _ in pieces), maxsplit=1)[0]
    pieces = [(piece, evidence) for piece, evidence in pieces if piece]
    if lead and (begin in _LOWER or begin == "I" or begin in ("it", "the", "this")):
        first, evidence = pieces[0]
        pieces[0] = (first if begin == "I" else first[0].lower() + first[1:], evidence)
        pieces.insert(0, (f"{lead} ", False))
    if before:
        pieces.insert(0, (f"{before[0].upper()}{before[1:]} ", False))
    if after:
        pieces.append((f" {after[0].upper()}{after[1:]}", False))
    text, spans = "", []
    for piece, evidence in pieces:
        if text.endswith(" ") and piece[0] in " ,.;:!?":
            if not piece.strip():
                continue
            text, piece = text[:-1], piece if piece[0] != " " else piece
        if re.search(r"(?i)\ba $", text) and _VOWEL.match(piece):
            text = text[:-1] + "n "
        if contract and piece == "is" and re.search(r"\b[iI]t $", text):
            text, piece = text[:-1], "'s"
        if re.search(r"(^|[.!?] )\"?$", text):
            piece = piece[0].upper() + piece[1:]
        piece = re.sub(r"(?<=[.!?] )[a-z]", lambda match: match[0].upper(), piece)
        start, text = len(text), text + piece
        if evidence and piece.strip():
            spans.append([start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())])
    return text, spans
