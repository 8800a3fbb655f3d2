"""BERT's tokenizer: a text is cleaned, cut into words, and each word into pieces of a vocabulary."""

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from course_utils.files import write_text
from course_utils.tokenization import Token
from course_utils.training import character_kinds as kinds
from course_utils.training.word_piece_files import SPECIAL, word_piece_files

__all__ = ["longest_pieces", "TextCleaning", "cut_at_spaces", "split_at", "WordPieceTokenizer"]


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
    """What BERT's tokenizer does to a text before it looks into its vocabulary, as Hugging Face's `tokenizers` has it.

    Control characters go; punctuation and Chinese characters become words of their own; `lower_case` and `strip_accents`
    do what their names say. `strip_accents=None` follows `lower_case`.
    """

    lower_case: bool = True
    strip_accents: bool | None = None
    split_chinese: bool = True

    def cleaned(self, text: str) -> list[tuple[str, int]]:
        """The characters of the cleaned text, each with the index in `text` that it comes from."""
        kept = [i for i, character in enumerate(text) if not kinds.is_control(character)]
        if self.lower_case if self.strip_accents is None else self.strip_accents:
            parts = kinds.decomposed("".join(text[i] for i in kept))
            parts = [(part, kept[i]) for part, i in parts if not kinds.is_accent(part)]
        else:
            parts = [(text[i], i) for i in kept]
        found = []
        for part, i in parts:
            if kinds.is_space(part):
                part = " "
            elif self.split_chinese and kinds.is_chinese(part):
                part = f" {part} "
            found += [(letter, i) for letter in (part.lower() if self.lower_case else part)]
        return found

    def words(self, text: str) -> list[list[tuple[str, int]]]:
        """Cleaned words and punctuation, each a list of characters with the index in `text` that they come from."""
        return cut_at_spaces(self.cleaned(text))


def cut_at_spaces(letters: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    """The words of a cleaned text; each punctuation mark is one of its own.
    """
    words, joins = [], False                                               # joins: the next letter continues the last word
    for letter, i in letters:
        alone, space = kinds.is_punctuation(letter), letter == " "
        if joins and not (alone or space):
            words[-1].append((letter, i))
        elif not space:
            words.append([(letter, i)])
        joins = not (alone or space)
    return words


def split_at(tokens: dict[str, str], letters: list[tuple[str, int]]) -> Iterator[tuple[str | None, list[tuple[str, int]]]]:
    """Cut out what `tokens` names, the longest first: (the token, its letters), and (None, letters) for what's in between.

    Letters come with their places in the text. `tokens` has the token for each text that's looked for.
    """
    text, done = "".join(letter for letter, _ in letters), 0
    pattern = "|".join(re.escape(one) for one in sorted(tokens, key=len, reverse=True)) or "(?!)"      # (?!): never there
    for found in re.finditer(pattern, text):
        start, end = found.span()
        if start > done:
            yield None, letters[done:start]
        yield tokens[found.group()], letters[start:end]
        done = end
    if done < len(text):
        yield None, letters[done:]


def _spanning(token: str, letters: list[tuple[str, int]]) -> Token:
    """The token with its place in the text, from the first of these letters to the last."""
    places = [i for _, i in letters]
    return Token(token, min(places), max(places) + 1)


def _pieces_of(letters: list[tuple[str, int]], vocabulary: set[str]) -> Iterator[Token]:
    """The pieces of each word, or [UNK]."""
    for word in cut_at_spaces(letters):
        begin = 0
        for piece in longest_pieces("".join(letter for letter, _ in word), vocabulary) or ["[UNK]"]:
            end = len(word) if piece == "[UNK]" else begin + len(piece) - 2 * (begin > 0)
            yield _spanning(piece, word[begin:end])
            begin = end


class WordPieceTokenizer:
    """BERT's tokenizer (Devlin et al. 2019): words and punctuation, cut into the longest pieces that the vocabulary has.

    Word pieces are from Schuster and Nakajima (2012), as in Wu et al. (2016, section 4.1). `vocabulary` lists the tokens in
    the order of their ids, the special ones ([PAD], [UNK], [CLS], [SEP], [MASK]) among them. A special token in a text is
    itself, and so is one of `added`: {token: True if it's looked for in the cleaned text, False for the text as it's
    written}. An added token that isn't in the vocabulary gets the next id. `cleaning` are the options of `TextCleaning`.
    """

    def __init__(self, vocabulary: Iterable[str], added: dict[str, bool] | None = None, **cleaning):
        self.base, self.added, self.cleaning = list(vocabulary), dict(added or {}), TextCleaning(**cleaning)
        self.vocabulary = list(dict.fromkeys([*self.base, *self.added])) if self.added else self.base
        self.ids, self.known = {token: i for i, token in enumerate(self.vocabulary)}, set(self.base)
        if missing := [token for token in SPECIAL if token not in self.ids]:
            raise ValueError(f"the vocabulary lacks {', '.join(missing)}; BERT's has all of {', '.join(SPECIAL)}")
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (self.ids[token] for token in SPECIAL)
        self.as_written = {token: token for token in (*SPECIAL, *(one for one in self.added if not self.added[one]))}
        self.as_cleaned = {"".join(letter for letter, _ in self.cleaning.cleaned(one)): one for one in self.added
                           if self.added[one]}

    @property
    def vocab_size(self) -> int:
        """Number of ids, the special ones included."""
        return len(self.vocabulary)

    def pieces(self, text: str) -> list[Token]:
        """The tokens of a text, without [CLS] and [SEP]; a word that can't be put together is one [UNK]."""
        tokens = []
        for token, part in split_at(self.as_written, list(zip(text, range(len(text))))):
            cleaned = [] if token else self.cleaning.cleaned("".join(letter for letter, _ in part))
            tokens += [_spanning(token, part)] if token else []
            for added, letters in split_at(self.as_cleaned, [(letter, part[i][1]) for letter, i in cleaned]):
                tokens += [_spanning(added, letters)] if added else _pieces_of(letters, self.known)
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

    def files(self, max_len: int = 512) -> dict[str, str]:
        """The texts of what `save` writes, by the names of the files."""
        return word_piece_files(self.base, max_len=max_len, added=self.added, **vars(self.cleaning))

    def save(self, folder: str | Path, max_len: int = 512) -> None:
        """Write tokenizer.json, vocab.txt and tokenizer_config.json, which the library's `BertTokenizer` reads.

        Raises ValueError for a token that is there twice, or that has a line break in it.
        """
        for name, text in self.files(max_len).items():
            write_text(Path(folder) / name, text)
