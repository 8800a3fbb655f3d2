"""Word pieces for a saved classifier: BERT's way of cutting words, without [CLS] and [SEP], by the `tokenizers` library.

    pieces = SavedWordPieces(["[PAD]", "[UNK]", "dull", "##ness"])
    [token.text for token in pieces.tokenize("Dullness")]                  # ['dull', '##ness']

Does: what `WordPieceTokenizer` of notebook 14 does with lower case, many times faster, and from a list that a saved model
can hold. Does not: learn pieces, or know special or added tokens: a text's "[SEP]" is three tokens like any other.
"""

from __future__ import annotations

from collections.abc import Iterable

import tokenizers

from course_utils.tokenization import Token, Tokenizer

__all__ = ["SavedWordPieces"]


class SavedWordPieces(Tokenizer):
    """Lower-cased words and punctuation, without accents, cut into the longest pieces of `vocabulary` (Wu et al. 2016).

    All pieces of a word but the first begin with '##'. `vocabulary` lists them in the order of their ids and begins with
    [PAD] (id 0) and [UNK] (id 1), which stands for a word that can't be put together, or has over 100 characters. Raises
    ValueError for a list that begins otherwise.
    """

    kind, part, complaint = "word pieces", "vocabulary", "holds no word pieces; SavedWordPieces.save() writes them"
    pad_id, unk_id = 0, 1

    def __init__(self, vocabulary: Iterable[str]):
        self.vocabulary = list(vocabulary)
        if self.vocabulary[:2] != ["[PAD]", "[UNK]"]:
            raise ValueError(f"a list of word pieces begins with '[PAD]', '[UNK]'; this one begins {self.vocabulary[:2]}")
        self.ids = {piece: i for i, piece in enumerate(self.vocabulary)}
        self.library = tokenizers.Tokenizer(tokenizers.models.WordPiece(self.ids, unk_token="[UNK]"))
        self.library.normalizer = tokenizers.normalizers.BertNormalizer()  # lower case, no accents
        self.library.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()

    @property
    def vocab_size(self) -> int:
        """Number of ids, the two special ones included."""
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Ids of a text's pieces."""
        return self.library.encode(_whole(text)).ids

    def encode_all(self, texts: Iterable[str]) -> list[list[int]]:
        """Ids of many texts, on all processor cores."""
        return [found.ids for found in self.library.encode_batch([_whole(text) for text in texts])]

    def tokenize(self, text: str) -> list[Token]:
        """A token for each id, with its span in the text."""
        found = self.library.encode(_whole(text))
        return [Token(piece, *span) for piece, span in zip(found.tokens, found.offsets)]

    def decode(self, ids: Iterable[int]) -> str:
        """The pieces of `ids`, joined to words; case and accents are lost. Raises ValueError for an unknown id."""
        ids = [int(i) for i in ids]
        if wrong := [i for i in ids if not 0 <= i < self.vocab_size]:
            raise ValueError(f"id {wrong[0]} is not in the list of word pieces; its ids go from 0 to {self.vocab_size - 1}")
        return " ".join(self.vocabulary[i] for i in ids).replace(" ##", "")


def _whole(text: str) -> str:
    """The text with a replacement character for each half of one (a surrogate), which the library refuses."""
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
