"""BERT's tokenizer: a text is cleaned, cut into words, and each word into pieces of a vocabulary.

Exported from notebooks/14_pretraining.ipynb: edit it there.
"""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path

from course_utils.files import write_text
from course_utils.tokenization import Token
from course_utils.training import character_kinds as kinds
from course_utils.training.word_piece_files import SPECIAL, word_piece_files

__all__ = [
    "longest_pieces",
    "TextCleaning",
    "WordPieceTokenizer",
]


def longest_pieces(word: str, vocabulary) -> list[str] | None:
    """Cut off the longest piece that the vocabulary has, again and again: 'unmoved' -> ['un', '##moved'].

    All pieces but the first begin with '##'. None if some part of the word is in no piece, or it has over 100 characters.

    Taught in 14_pretraining, '2. Pieces of words'.
    """
    pieces, start = [], 0
    while start < len(word) <= 100:
        ends = range(len(word), start, -1)                                 # the longest first
        found = (piece for end in ends if (piece := "##" * (start > 0) + word[start:end]) in vocabulary)
        piece = next(found, None)
        if piece is None:
            return None
        pieces.append(piece)
        start += len(piece) - 2 * (start > 0)
    return pieces or None


@dataclasses.dataclass(frozen=True)
class TextCleaning:
    """What BERT's tokenizer does to a text before it looks into its vocabulary (Devlin et al. 2019, their `BasicTokenizer`).

    Control characters go; punctuation and Chinese characters become words of their own; `lower_case` and `strip_accents`
    do what their names say. `strip_accents=None` follows `lower_case`.

    Taught in 14_pretraining, '2. Pieces of words'.
    """

    lower_case: bool = True
    strip_accents: bool | None = None
    split_chinese: bool = True

    def words(self, text: str) -> list[list[tuple[str, int]]]:
        """Cleaned words and punctuation, each a list of characters with the index in `text` that they come from."""
        kept = [i for i, character in enumerate(text) if not kinds.is_control(character)]
        if self.lower_case if self.strip_accents is None else self.strip_accents:
            parts = kinds.decomposed("".join(text[i] for i in kept))
            parts = [(part, kept[i]) for part, i in parts if not kinds.is_accent(part)]
        else:
            parts = [(text[i], i) for i in kept]
        words, joins = [], False                                           # joins: the next letter continues the last word
        for part, i in parts:
            alone = kinds.is_punctuation(part) or (self.split_chinese and kinds.is_chinese(part))
            if not kinds.is_space(part):
                letters = [(letter, i) for letter in (part.lower() if self.lower_case else part)]
                if joins and not alone:
                    words[-1] += letters
                else:
                    words.append(letters)
            joins = not (alone or kinds.is_space(part))
        return words


class WordPieceTokenizer:
    """BERT's tokenizer (Devlin et al. 2019): words and punctuation, cut into the longest pieces that the vocabulary has.

    Word pieces are from Wu et al. (2016, section 4.1). `vocabulary` lists the tokens in the order of their ids, the special
    ones ([PAD], [UNK], [CLS], [SEP], [MASK]) among them; a special token in a text is itself. `cleaning` are the options of
    `TextCleaning`.

    Taught in 14_pretraining, '2. Pieces of words'.
    """

    def __init__(self, vocabulary: Iterable[str], **cleaning):
        self.vocabulary, self.cleaning = list(vocabulary), TextCleaning(**cleaning)
        self.ids = {token: i for i, token in enumerate(self.vocabulary)}
        if missing := [token for token in SPECIAL if token not in self.ids]:
            raise ValueError(f"the vocabulary lacks {', '.join(missing)}; BERT's has all of {', '.join(SPECIAL)}")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (self.ids[token] for token in SPECIAL)

    @property
    def vocab_size(self) -> int:
        """Number of ids, the special ones included."""
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[Token]:
        """The tokens of a text, without [CLS] and [SEP]; a word that can't be put together is one [UNK]."""
        tokens, place = [], 0
        for part in re.split(f"({'|'.join(map(re.escape, SPECIAL))})", text):
            if part in SPECIAL:
                tokens.append(Token(part, place, place + len(part)))
            for word in self.cleaning.words(part) if part not in SPECIAL else []:
                begin = 0
                for piece in longest_pieces("".join(letter for letter, _ in word), self.ids) or ["[UNK]"]:
                    end = len(word) if piece == "[UNK]" else begin + len(piece) - 2 * (begin > 0)
                    places = [i for _, i in word[begin:end]]
                    tokens.append(Token(piece, place + min(places), place + max(places) + 1))
                    begin = end
            place += len(part)
        return tokens

    def tokenize(self, text: str) -> list[Token]:
        """A token for each id: [CLS], the pieces, [SEP]."""
        return [Token("[CLS]", 0, 0), *self.pieces(text), Token("[SEP]", len(text), len(text))]

    def encode(self, text: str) -> list[int]:
        """Ids of [CLS], the pieces of `text`, and [SEP]."""
        return [self.ids[token.text] for token in self.tokenize(text)]

    def encode_pair(self, first: str, second: str) -> tuple[list[int], list[int]]:
        """Two texts in one row, [CLS] first [SEP] second [SEP]: their ids, and their token types, 0 and then 1."""
        one, two = self.encode(first), self.encode(second)[1:]
        return one + two, [0] * len(one) + [1] * len(two)

    def decode(self, ids: Iterable[int]) -> str:
        """The tokens of `ids` joined, pieces to words; case and accents are lost. Raises ValueError for an unknown id.
        """
        ids = [int(i) for i in ids]
        if wrong := [i for i in ids if not 0 <= i < self.vocab_size]:
            raise ValueError(f"id {wrong[0]} is not in the vocabulary; its ids go from 0 to {self.vocab_size - 1}")
        return " ".join(self.vocabulary[i] for i in ids).replace(" ##", "")

    def save(self, folder: str | Path, max_len: int = 512) -> None:
        """Write tokenizer.json, vocab.txt and tokenizer_config.json, which the library's `BertTokenizer` reads.

        Raises ValueError for a token that is there twice, or that has a line break in it.
        """
        for name, text in word_piece_files(self.vocabulary, max_len=max_len, **vars(self.cleaning)).items():
            write_text(Path(folder) / name, text)
