"""Attention by word instead of by piece, and between the two texts that a model reads at once.

Does: find which tokens make up a word, add up the weights of a word's keys and average those of its queries, cut a map down
to the rows of one text and the columns of the other. Does not: know how a model was run (see `attention_hugging_face`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from course_utils.interactive.attention_data import Kind

ALL_OF_BOTH, THERE, BACK = "both texts", "first → second", "second → first"
SPECIAL = re.compile(r"\[[A-Z]+\d*\]|<[^<>\s]+>")  # such as [CLS] and </s>


@dataclass(frozen=True)
class Labels:
    """The tokens of one text, or of two at once, as they label rows or columns."""

    tokens: list[str]
    words: list[tuple[int, str]] | None = None  # where each word begins, and its text; None for a view by token
    texts: list[int | None] | None = None  # of two texts the one a token is from, 0 or 1; None for a special token


def words_at(starts: list[bool], spell) -> list[tuple[int, str]]:
    """Where words begin and how they are written: `spell(start, end)` gives the text of some tokens."""
    places = [i for i, start in enumerate(starts) if start or i == 0]
    return [(start, spell(start, end)) for start, end in zip(places, [*places[1:], len(starts)])]


def words_by_marks(tokens: list[str]) -> list[tuple[int, str]]:
    """The words of tokens that say themselves how they belong together.

    'Ġ', '▁' or a space begins a word, '##' continues one, '</w>' ends it and '@@' says that it goes on. Tokens without any
    such mark are words; so is a special token such as [CLS].
    """
    plain = [not SPECIAL.fullmatch(token) for token in tokens]
    marked = [token for token, one in zip(tokens, plain) if one]
    begins = ("Ġ", "Ċ", "▁", " ", "\n")
    if any(token.startswith(begins) for token in marked):
        starts = [token.startswith(begins) for token in tokens]
    elif any(token.endswith("</w>") for token in marked):
        starts = [True] + [token.endswith("</w>") for token in tokens[:-1]]
    elif any(token.endswith("@@") for token in marked):
        starts = [True] + [not token.endswith("@@") for token in tokens[:-1]]
    else:
        starts = [not token.startswith("##") for token in tokens]
    starts = [start or not one or not before for start, one, before in zip(starts, plain, [True, *plain])]
    return words_at(starts, lambda start, end: joined(tokens[start:end]))


def joined(pieces: list[str]) -> str:
    """The pieces of one word as its text, without the marks that said how they belong together.

    >>> joined(["l", "##ong"]), joined(["Ġmov", "ing"]), joined(["mov@@", "ing"]), joined(["[SEP]"])
    ('long', 'moving', 'moving', '[SEP]')
    """
    text = "".join(piece.removeprefix("##") if i else piece for i, piece in enumerate(pieces))
    text = "".join(part.removesuffix("@@") for part in text.split("@@")) if len(pieces) > 1 else text
    text = text.replace("</w>", "") if len(text) > len("</w>") else text
    return bare(text.replace("Ġ", " ").replace("Ċ", "\n").replace("▁", " "))


def bare(text: str) -> str:
    """A word without the spaces around it; white space alone stays as it is."""
    return text.strip(" ") or text


def by_words(kind: Kind, rows: Labels, columns: Labels) -> Kind:
    """The same attention by word: keys of a word added up, queries of a word averaged, so that rows keep their sum.

    A query that has no key to attend to doesn't count in its word's average.
    """
    starts = [[start for start, _ in labels.words] for labels in (rows, columns)]
    layers = {}
    for number, weights in kind.layers.items():
        summed = np.add.reduceat(weights, starts[1], axis=2)  # (heads, query, words)
        counted = np.add.reduceat(summed.any(axis=2), starts[0], axis=1, dtype=int)  # (heads, words)
        layers[number] = np.add.reduceat(summed, starts[0], axis=1) / counted.clip(1)[:, :, None]
    queries, keys = ([text for _, text in labels.words] for labels in (rows, columns))
    return Kind(kind.name, queries, queries if kind.one_text else keys, kind.one_text, layers)


def pooled_by_words(pooling: np.ndarray, labels: Labels) -> np.ndarray:
    """Pooling weights (key,) added up by word."""
    return np.add.reduceat(pooling, [start for start, _ in labels.words])


def between_texts(kind: Kind, labels: Labels, name: str = "") -> list[Kind]:
    """Of attention in two texts the part from the first to the second, and the part back. `name` comes before theirs."""
    texts = labels.texts if labels.words is None else [labels.texts[start] for start, _ in labels.words]
    places = [[i for i, text in enumerate(texts) if text == which] for which in (0, 1)]
    parts = []
    for label, (source, there), words in ((THERE, places, ("first", "second")), (BACK, places[::-1], ("second", "first"))):
        layers = {number: weights[:, source][:, :, there] for number, weights in kind.layers.items()}
        parts.append(Kind(f"{name}{label}", [kind.queries[i] for i in source], [kind.keys[i] for i in there], False, layers,
                          f"Only what the tokens of the {words[0]} text give to those of the {words[1]}. A row adds up to "
                          f"less than 1: the rest goes to the {words[0]} text itself and to special tokens."))
    return parts
