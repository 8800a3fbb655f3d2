"""Attention by word instead of by piece, and between the two texts that a model reads at once.

Does: find which tokens make up a word, also by asking a tokenizer of Hugging Face; add up the weights of a word's keys and
average those of its queries; cut a map down to the rows of one text and the columns of the other. Does not: know how a model
was run (see `attention_hugging_face`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from torch import Tensor

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


def texts_of_tokens(tokenizer: object, encoded: object, texts: tuple[str, ...]) -> list[int | None]:
    """For each token the text that it's from, 0 or 1; None for a special token."""
    if getattr(encoded, "is_fast", False):
        return encoded.sequence_ids(0)
    ids = encoded["input_ids"][0].tolist()
    special = tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True)
    first, parts = len(tokenizer(texts[0], add_special_tokens=False)["input_ids"]), []
    for one in special:
        parts.append(None if one else int(len(parts) - parts.count(None) >= first))
    return parts


def token_texts(tokenizer: object, ids: Tensor, target: bool = False) -> list[str]:
    """The tokens as text: special tokens as they are, 'Ġ' and '▁' as the space they stand for, bytes as characters.

    `target` for what a decoder reads, where one tokenizer has a vocabulary for each side.
    """
    tokens = pieces_of(tokenizer, ids, target)
    special = set(getattr(tokenizer, "all_special_tokens", ()))
    of_bytes = any(token.startswith(("Ġ", "Ċ")) for token in tokens if token not in special)
    texts = []
    for token in tokens:
        if token not in special and of_bytes:
            decoded = tokenizer.convert_tokens_to_string([token])
            token = token if "�" in decoded else decoded  # part of a character: its bytes, as the tokenizer writes them
        elif token not in special:
            token = token.replace("▁", " ")
        texts.append(token)
    return texts


def pieces_of(tokenizer: object, ids: Tensor, target: bool = False) -> list[str]:
    """The tokens as the tokenizer writes them. Raises ValueError for an id that it doesn't have."""
    if not target and has_two_vocabularies(tokenizer):
        source = {i: token for token, i in tokenizer.encoder.items()}
        pieces = [source.get(i) for i in ids.tolist()]
    else:
        pieces = tokenizer.convert_ids_to_tokens(ids.tolist())
    for i, piece in zip(ids.tolist(), pieces):
        if piece is None:
            raise ValueError(f"the tokenizer has no token with the id {i} that the model reads or writes: is it the one "
                             "that belongs to this model? An encoder-decoder with two vocabularies needs two tokenizers: "
                             "attention_view(model, (source_tokenizer, target_tokenizer), text)")
    return [str(piece) for piece in pieces]


def has_two_vocabularies(tokenizer: object) -> bool:
    """Whether one tokenizer encodes with one vocabulary and decodes with another, as Marian's may and FSMT's does."""
    source, target = getattr(tokenizer, "encoder", None), getattr(tokenizer, "decoder", None)
    both = isinstance(source, dict) and isinstance(target, dict)
    return both and any(source.get(token) != i for i, token in target.items())


def check_vocabulary(tokenizer: object, side: str, known: int) -> None:
    """Refuse a tokenizer with more tokens than the `known` embeddings of its side, such as that of the other side."""
    length = len(tokenizer)
    if has_two_vocabularies(tokenizer):
        length = len(tokenizer.encoder if side == "source" else tokenizer.decoder)
    if length > known:
        raise ValueError(f"the {side}'s tokenizer has {length} tokens, but the model has {known} embeddings on that side: "
                         "give the tokenizers in this order, (source_tokenizer, target_tokenizer)")


def starts_of(encoded: object, texts: tuple[str, ...]) -> list[bool] | None:
    """For each token whether it begins a word, as a fast tokenizer says it; None where there's no such tokenizer.

    Some tokenizers take a whole text for one word, so a space begins another one in any case.
    """
    if not getattr(encoded, "is_fast", False):
        return None
    words, parts, spans = encoded.word_ids(0), encoded.sequence_ids(0), encoded.encodings[0].offsets
    starts = [True]
    for i, j in pairwise(range(len(words))):
        same = words[j] is not None and (parts[i], words[i]) == (parts[j], words[j])
        if same:
            text, (begin, end), (next_begin, next_end) = texts[parts[j] or 0], spans[i], spans[j]
            before, after = text[begin:end], text[next_begin:next_end]
            same = not (any(letter.isspace() for letter in text[end:next_begin]) or after[:1].isspace()
                        or (before[-1:].isspace() and before != " "))  # one space alone is the mark that a word begins
        starts.append(not same)
    return starts[:len(words)]


def starts_by_spelling(tokenizer: object, ids: Tensor, target: bool = False) -> list[bool]:
    """The same for any tokenizer: a token begins a word if a space comes before it in the text that the tokens make."""
    special, starts, run, before, last = set(getattr(tokenizer, "all_special_tokens", ())), [], [], "", ""
    for piece in pieces_of(tokenizer, ids, target):
        if piece in special:
            starts.append(True)
            run, before, last = [], "", ""
            continue
        text = tokenizer.convert_tokens_to_string([*run, piece])
        added = text[len(before):]
        starts.append(not run or added[:1].isspace() or (last[-1:].isspace() and last != " "))
        run, before, last = [*run, piece], text, added
    return starts


def starts_of_written(tokenizer: object, ids: Tensor) -> list[bool]:
    """The same for ids that a model wrote: their text is read again where that gives the same ids."""
    special = set(getattr(tokenizer, "all_special_ids", ()))
    plain = [i for i in ids.tolist() if i not in special]
    text = tokenizer.decode(plain, clean_up_tokenization_spaces=False)
    again = tokenizer(text_target=text, add_special_tokens=False)
    found = starts_of(again, (text,)) if list(again["input_ids"]) == plain else None
    if not plain or found is None:
        return starts_by_spelling(tokenizer, ids, target=True)
    found, before, starts = iter(found), True, []
    for i in ids.tolist():
        starts.append(True if i in special else next(found) or before)
        before = i in special
    return starts


def speller(tokenizer: object, ids: Tensor, target: bool = False) -> Callable[[int, int], str]:
    """spell(start, end): the text of these tokens, which make up one word."""
    pieces = pieces_of(tokenizer, ids, target)

    def spell(start: int, end: int) -> str:
        some = pieces[start:end]
        if some[0] in getattr(tokenizer, "all_special_tokens", ()):
            return some[0]
        text = tokenizer.convert_tokens_to_string(some)
        spread = any(letter.isspace() for letter in text.strip()) or not text  # as a tokenizer without a decoder does
        return joined(some) if spread else bare(text)

    return spell
