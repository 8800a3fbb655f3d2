"""Texts as people type them, in the one form that a vocabulary of words knows.

    plain("It isn’t “dull” – café")                      # It isn't "dull" - café, the é one character
    plain_with_spans("isn’t")                            # the same, and where each character comes from

Phones, word processors and web pages write ’ for ', “ for ", – for -, … for ..., an accent as a character of its own, or
characters that nobody sees. A model that was trained on straight quotes knows "isn't", but not "isn’t".

Does: make the plain form of a text, and write down its rules for classifier_model.js; the tokenizers of models that read
plain texts: same ids, spans in the text as it was typed. Does not: touch case, spaces, HTML or spelling. Byte pairs don't
need it: they read every character as it is.

Which models read plain texts is a setting in their saved files: "texts": "plain" beside the vocabulary. Without it a model
reads texts as they are. `saved_models.read_plain_texts` sets it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import groupby

from course_utils.files.saved_lists import SavedList
from course_utils.tokenization import Token, Tokenizer, WordTokenizer
from course_utils.training.pair_batches import WordList
from course_utils.training.pair_subwords import SharedBytePairs
from course_utils.training.saved_word_pieces import SavedWordPieces

__all__ = ["PLAIN", "PlainWordPieces", "PlainWords", "as_read", "page_rules", "plain", "plain_with_spans", "reading_plain",
           "word_pattern"]

PLAIN = "plain"                                         # the setting's value
FORMS = {typed: form for form, all_typed in {
    "'": "\u2019\u02bc\u02bb\uff07",                    # ’ ʼ ʻ ＇
    '"': "“”„‟″＂«»〝〞〟",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d",    # hyphens, dashes, the minus sign
    "...": "…",
}.items() for typed in all_typed}

# The rules for Python and for the page. {letter} and {marks} are written differently in the two, the rest is the same.
DROPPED = r"\xad\u200b\u2060\ufeff"                     # soft hyphen, two kinds of nothing, byte order mark
JOINERS = r"\u200c\u200d"                               # shape words of Persian or Hindi, so they stay
JAMO = r"\u1161-\u1175\u11a8-\u11c2"                    # parts of Korean syllables compose as marks do
CHARACTER = f"[^{DROPPED}](?:[{DROPPED}]*[{{marks}}{JAMO}])*"              # with everything that belongs to it
# Between letters these are apostrophes; but ‘ and ` open a quotation if it's closed after the word, as in it‘dull’.
APOSTROPHE = "(?<={letter})(?:[´′‛]|‘(?!{letter}{2,}'(?!{letter}))|`(?!{letter}{2,}[`'](?!{letter})))(?={letter})"
QUOTE = "(?<!{letter})[‘‛´′‚‹›]|[‘‛´′‚‹›](?!{letter})"                    # quotes, where a letter is missing
LETTERS = f"{{word}}+(?:[{{marks}}{JOINERS}]+{{word}}*)*"                  # a word's, with their marks
WORDS = f"<br{{space}}*/?>|({LETTERS}(?:'{LETTERS})*|[^{{word_and_space}}])"    # as WordTokenizer's, but with marks


def _marks() -> str:
    """All combining marks of this Python's Unicode, as they're written between the brackets of a regular expression."""
    marks = [i for first, last in ((0x300, 0x1F000), (0xE0100, 0xE01F0)) for i in range(first, last)
             if unicodedata.category(chr(i)).startswith("M")]
    runs = [[i for _, i in run] for _, run in groupby(enumerate(marks), lambda pair: pair[1] - pair[0])]
    return "".join(f"\\U{run[0]:08x}-\\U{run[-1]:08x}" for run in runs)


def _compiled(rule: str) -> re.Pattern:
    for name, here in (("letter", f"[\\w{MARKS}]"), ("marks", MARKS), ("word_and_space", r"\w\s"), ("word", r"\w"),
                       ("space", r"\s")):
        rule = rule.replace(f"{{{name}}}", here)
    return re.compile(rule)


MARKS = _marks()
_character, _apostrophe, _quote = map(_compiled, (CHARACTER, APOSTROPHE, QUOTE))
word_pattern = _compiled(WORDS)                         # what `PlainWords` takes for a token, in a plain text


def plain(text: str) -> str:
    """A text with straight quotes and apostrophes, '-' for every dash, composed accents, and nothing invisible.

    Quotes stay quotes: only what is between two letters becomes a word's apostrophe. The plain form of a plain text is
    the text itself.
    """
    return text if _is_plain(text) else plain_with_spans(text)[0]


def plain_with_spans(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The plain form of a text, and for each of its characters the span (start, end) of the original it was made from."""
    if _is_plain(text):
        return text, [(i, i + 1) for i in range(len(text))]
    characters, spans = [], []
    for found in _character.finditer(text):
        composed = unicodedata.normalize("NFC", _dropped.sub("", found[0]))
        made = "".join(FORMS.get(one, one) for one in composed)
        characters.append(made)
        start, end = found.span()
        spans += [(i, i + 1) for i in range(start, end)] if len(made) == end - start else [(start, end)] * len(made)
    return _quote.sub("'", _apostrophe.sub("'", "".join(characters))), spans


_dropped = re.compile(f"[{DROPPED}]")


def _is_plain(text: str) -> bool:
    return text.isascii() and "`" not in text


def as_read(text: str, vocabulary: SavedList) -> str:
    """A text as the model of a vocabulary reads it: in its plain form if the saved model says so, else as it is."""
    return plain(text) if vocabulary.texts == PLAIN else text


def page_rules() -> dict:
    """What classifier_model.js needs to make the same plain form, and the same words of it."""
    return {"forms": FORMS, "dropped": DROPPED, "character": CHARACTER, "apostrophe": APOSTROPHE, "quote": QUOTE,
            "words": WORDS}


class PlainWords(WordTokenizer):
    """`WordTokenizer` on the plain form of a text, in which combining marks stay in their word."""

    texts = PLAIN
    pattern = word_pattern

    def tokenize(self, text: str) -> list[Token]:
        """The words and punctuation of the text's plain form, each with its span in the text itself."""
        text, spans = plain_with_spans(text)
        return [Token(word, spans[start][0], spans[end - 1][1]) for word, start, end in super().tokenize(text)]


class PlainWordPieces(SavedWordPieces):
    """`SavedWordPieces` on the plain form of a text."""

    texts = PLAIN

    def encode(self, text: str) -> list[int]:
        """Ids of the pieces of the text's plain form."""
        return super().encode(plain(text))

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """Ids of many texts, on all processor cores."""
        return super().encode_all([plain(text) for text in texts])

    def tokenize(self, text: str) -> list[Token]:
        """A token for each id, with its span in the text itself."""
        text, spans = plain_with_spans(text)
        return [Token(piece, spans[start][0], spans[end - 1][1]) for piece, start, end in super().tokenize(text)]


def reading_plain(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer with the same ids for a model that reads plain texts.

    A translator's list stays as it is: its texts are made plain before it (see `as_read`). Raises ValueError for the byte
    pairs of a language model, which must give back every text unchanged.
    """
    if isinstance(tokenizer, WordTokenizer):
        return PlainWords(tokenizer.vocabulary)
    if isinstance(tokenizer, SavedWordPieces):
        return PlainWordPieces(tokenizer.vocabulary)
    if not isinstance(tokenizer, WordList | SharedBytePairs):
        raise ValueError(f"got a {type(tokenizer).__name__}, which reads texts as they are; a model reads plain texts by "
                         "its words, its word pieces, or a translator's lists")
    tokenizer.texts = PLAIN
    return tokenizer
