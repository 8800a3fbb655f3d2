"""What kind of character is it, for BERT's tokenizer: spaces, control characters, accents, punctuation, Chinese characters.

Does: answer as the `tokenizers` library does, so that word pieces get the same ids. That library knows the characters of
Unicode 8 (2015); accents, format characters and punctuation that were added later are letters to it, and so they are here.
Does not: change a text (see `WordPieceTokenizer` in notebook 14).
"""

import functools
import string
import unicodedata

__all__ = ["decomposed", "is_accent", "is_chinese", "is_control", "is_punctuation", "is_space"]

# added after Unicode 8, up to 15.1: marks, format characters and punctuation, in hexadecimal
_LATER = """
61d 7fd 890-891 898-89f 8ca-8e2 9fd-9fe a76 afa-aff b55 c04 c3c c77 c84 d00 d3b-d3c d81 eba ece 180f 1885-1886 1abf-1ace
1b7d-1b7e 1df6-1dfb 2e43-2e4f 2e52-2e5d a82c a8c5 a8ff a9bd 10d24-10d27 10eab-10ead 10efd-10eff 10f46-10f50 10f55-10f59
10f82-10f89 11070 11073-11074 110c2 110cd 111cf 1123e 11241 1133b 11438-11446 1144b-1144f 1145a-1145e 11660-1166c 116b9
1182f-1183b 1193b-1193e 11943-11946 119d4-119e0 119e2 11a01-11a0a 11a33-11a3e 11a3f-11a47 11a51-11a5b 11a8a-11a99
11a9a-11a9c 11a9e-11aa2 11b00-11b09 11c30-11c45 11c70-11c71 11c92-11cb6 11d31-11d47 11d90-11d97 11ef3-11ef8 11f00-11f02
11f36-11f42 11f43-11f4f 11fff 12ff1-12ff2 13430-13455 16e97-16e9a 16f4f 16fe2 16fe4 1cf00-1cf46 1e000-1e02a 1e08f
1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e944-1e94a 1e95e-1e95f
"""
_RANGES = [tuple(int(end, 16) for end in (part + "-" + part).split("-")[:2]) for part in _LATER.split()]
_ONCE_PUNCTUATION, _ONCE_ACCENTS, _LATER_IN_PARTS = "\u166d\U000111c9", "\u1734", "\U00011938"
_CHINESE = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
            (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))


def _category(character: str) -> str:
    """Its general category in Unicode 8: 'Lu', 'Mn', 'Po' …; 'Cn' for one that came later."""
    if any(first <= ord(character) <= last for first, last in _RANGES):
        return "Cn"
    once = "Po" if character in _ONCE_PUNCTUATION else "Mn" if character in _ONCE_ACCENTS else None
    return once or unicodedata.category(character)


@functools.lru_cache(maxsize=10_000)
def is_space(character: str) -> bool:
    """A space of any kind, or the end of a line."""
    return character in "\t\n\r" or _category(character) in ("Zs", "Zl", "Zp")


@functools.lru_cache(maxsize=10_000)
def is_control(character: str) -> bool:
    """A character that shows nothing and isn't a space, or the sign for one that couldn't be read."""
    return character == "\ufffd" or (character not in "\t\n\r" and _category(character) in ("Cc", "Cf", "Co", "Cs"))


@functools.lru_cache(maxsize=10_000)
def is_accent(character: str) -> bool:
    """A mark over or under the letter before it: the acute in 'e\u0301'."""
    return _category(character) == "Mn"


@functools.lru_cache(maxsize=10_000)
def is_punctuation(character: str) -> bool:
    """Punctuation of any script, and all of !"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~."""
    return character in string.punctuation or _category(character).startswith("P")


@functools.lru_cache(maxsize=10_000)
def is_chinese(character: str) -> bool:
    """A Chinese character: there are no spaces between words, so each is a word by itself."""
    return any(first <= ord(character) <= last for first, last in _CHINESE)


def decomposed(text: str) -> list[tuple[str, int]]:
    """Letters and their accents apart (Unicode's form NFD), each with the index in `text` that it comes from."""
    if text.isascii():
        return list(zip(text, range(len(text))))
    parts = [(part, i) for i, character in enumerate(text)
             for part in (character if character in _LATER_IN_PARTS else unicodedata.normalize("NFD", character))]
    start = 0
    for end in range(len(parts) + 1):                                      # accents on one letter have an order
        if end == len(parts) or unicodedata.combining(parts[end][0]) == 0:
            parts[start:end] = sorted(parts[start:end], key=lambda part: unicodedata.combining(part[0]))
            start = end + 1
    return parts
