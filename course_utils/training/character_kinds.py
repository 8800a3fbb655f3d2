"""What kind of character is it, for BERT's tokenizer: spaces, control characters, accents, punctuation, Chinese characters.

Does: ask the `tokenizers` library, so that word pieces get the same ids. It knows the characters of Unicode 8 (2015);
accents, format characters and punctuation that were added later are letters to it. Does not: change a text (see
`WordPieceTokenizer` in notebook 14).
"""

import functools
import unicodedata

from tokenizers import normalizers, pre_tokenizers

__all__ = ["decomposed", "is_accent", "is_chinese", "is_control", "is_punctuation", "is_space"]

_OFF = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
_CLEANED, _CHINESE, _WITHOUT_ACCENTS = (normalizers.BertNormalizer(**_OFF | {name: True})
                                        for name in ("clean_text", "handle_chinese_chars", "strip_accents"))
_IN_PARTS, _SPLIT = normalizers.NFD(), pre_tokenizers.BertPreTokenizer()


def _by(normalizer: normalizers.Normalizer, character: str) -> str:
    """What the library makes of a character; '' for half of a pair of surrogates, which it doesn't take."""
    return "" if "\ud800" <= character <= "\udfff" else normalizer.normalize_str(character)


@functools.lru_cache(maxsize=10_000)
def is_space(character: str) -> bool:
    """A space of any kind, or the end of a line."""
    return _by(_CLEANED, character) == " "


@functools.lru_cache(maxsize=10_000)
def is_control(character: str) -> bool:
    """A character that shows nothing and isn't a space, or the sign for one that couldn't be read."""
    return _by(_CLEANED, character) == ""


@functools.lru_cache(maxsize=10_000)
def is_accent(character: str) -> bool:
    """A mark over or under the letter before it: the acute in 'e\u0301'."""
    return _by(_WITHOUT_ACCENTS, character) == "" and not is_control(character)


@functools.lru_cache(maxsize=10_000)
def is_punctuation(character: str) -> bool:
    """Punctuation of any script, and all of !"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~."""
    return not is_control(character) and len(_SPLIT.pre_tokenize_str(f"a{character}a")) == 3


@functools.lru_cache(maxsize=10_000)
def is_chinese(character: str) -> bool:
    """A Chinese character: there are no spaces between words, so each is a word by itself."""
    return _by(_CHINESE, character) == f" {character} "


def decomposed(text: str) -> list[tuple[str, int]]:
    """Letters and their accents apart (Unicode's form NFD), each with the index in `text` that it comes from."""
    if text.isascii():
        return list(zip(text, range(len(text))))
    parts = [(part, i) for i, character in enumerate(text) for part in _by(_IN_PARTS, character) or character]
    start = 0
    for end in range(len(parts) + 1):                                      # accents on one letter have an order
        if end == len(parts) or unicodedata.combining(parts[end][0]) == 0:
            parts[start:end] = sorted(parts[start:end], key=lambda part: unicodedata.combining(part[0]))
            start = end + 1
    return parts
