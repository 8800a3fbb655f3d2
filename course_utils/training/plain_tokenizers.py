"""The tokenizers of models that read plain texts (see `plain_text`): same ids, spans in the text as it was typed.

    tokenizer = PlainWords.train(texts)
    tokenizer.tokenize("It isn’t dull.")[1]              # Token("isn't", 3, 8)
"""

from __future__ import annotations

from collections.abc import Iterable

from course_utils.tokenization import Token, Tokenizer, WordTokenizer
from course_utils.training.pair_batches import WordList
from course_utils.training.pair_subwords import SharedBytePairs
from course_utils.training.plain_text import PLAIN, plain, plain_with_spans, word_pattern
from course_utils.training.saved_word_pieces import SavedWordPieces

__all__ = ["PlainWordPieces", "PlainWords", "reading_plain"]


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
