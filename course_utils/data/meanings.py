"""Sentences for asking a pretrained model what it knows: words with two senses, and pronouns that an adjective decides.

Does: read data/meanings/senses.toml and data/meanings/pronouns.toml, which people can read too. Does not: tokenize, or run a
model.
"""

from __future__ import annotations

import tomllib
from typing import NamedTuple

from course_utils.files.paths import DATA

__all__ = ["PronounPair", "SenseSentence", "load_pronouns", "load_senses"]


class SenseSentence(NamedTuple):
    """A sentence with a word of two senses in it, once."""

    text: str
    word: str                        # as it's written in the text, in small letters
    sense: str                       # which of the word's two senses it has here, such as 'river'
    misleading: bool                 # whether the other words are about the subject of the other sense
    film: bool                       # whether one of the word's senses is about films


class PronounPair(NamedTuple):
    """Two sentences that differ in one adjective: in `texts[k]`, 'it' is `nouns[k]`, as `adjectives[k]` shows."""

    texts: tuple[str, str]
    nouns: tuple[str, str]           # each once in either text
    adjectives: tuple[str, str]
    first: int                       # 0 or 1: the noun that the texts name first
    theme: int                       # pairs of one theme have the same adjectives
    fits_both: bool                  # whether both adjectives could describe either noun
    second_set: bool                 # whether it was written after the others had been measured


def load_senses() -> list[SenseSentence]:
    """The sentences for twelve words with two senses, word by word and sense by sense."""
    words = tomllib.loads((DATA / "meanings" / "senses.toml").read_text(encoding="utf-8"))
    film = words.pop("film")
    return [SenseSentence(text, word, sense, kind == "misleading", word in film)
            for word, senses in words.items() for sense, kinds in senses.items()
            for kind, texts in kinds.items() for text in texts]


def load_pronouns() -> list[PronounPair]:
    """The pairs of sentences with 'it', theme by theme, those of the second set last."""
    themes = tomllib.loads((DATA / "meanings" / "pronouns.toml").read_text(encoding="utf-8"))["theme"]
    return [PronounPair(tuple(frame.format(adjective) for adjective in theme["adjectives"]), tuple(nouns),
                        tuple(theme["adjectives"]), first, number, theme["fits"] == "both", theme["set"] == "second")
            for number, theme in enumerate(themes) for nouns, *frames in theme["families"]
            for first, frame in enumerate(frames)]
