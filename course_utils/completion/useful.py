"""Which completions are worth printing where a name is asked for.

Does: keep those that are names, and whose parts are words: of the file, of Python, or of the model's vocabulary. Does not:
rank, or know which names exist. The model spells names in tokens, and by joining tokens it also spells 'importimportlib'.
"""

import builtins
import functools
import keyword
import re
import sys

from course_utils.completion.names import last_word, of_a_word

# a dot after a name, a bracket or a quote; 'def ' and its like; 'import ' at the beginning of a line
ASKS_FOR_A_NAME = re.compile(r"""(?:[^\W\d]\w*|[)\]}"'])\.$|\b(?:def|class|global|nonlocal)[ \t]+$|^[ \t]*import[ \t]+$""")
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-zà-ÿ]+|[^\W\d_]+")
ENDINGS = ("s", "es", "d", "ed", "r", "er", "ing")       # 'loads' is 'load' and an ending
SHORTEST_TOKEN = 3                                      # a shorter token is more often a piece of a word than a word
LOOP = re.compile(r"(.{4,}?)\1\1|(.{10,}?)\2")          # a short stretch three times in a row, or a longer one twice


@functools.cache
def _of_python() -> frozenset[str]:
    names = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *sys.stdlib_module_names}
    return frozenset(names | {part.lower() for name in names for part in PARTS.findall(name)})


def asks_for_a_name(text: str) -> bool:
    """Whether only a name can come at the end of `text`: a letter of one is there, or a dot, or a word such as import."""
    word, line = last_word(text), text[text.rfind("\n") + 1 :]
    return bool(word) and not word[0].isdigit() or bool(ASKS_FOR_A_NAME.search(line))


def goes_in_circles(line: str) -> bool:
    """Whether a line repeats itself: 'top.split(tqdm.split(tqdm.split(tqdm.', as a model writes that can't get out of it."""
    return bool(LOOP.search(line))


class Useful:
    """Which ways to go on are of use at the end of a text; `tokens` are the model's, as bytes."""

    def __init__(self, text: str, tokens: list[bytes]):
        self.names_only = asks_for_a_name(text)
        before = text[: len(text) - len(last_word(text))]
        self._words = set(re.findall(r"\w+", before))
        self._parts = {part.lower() for word in self._words for part in PARTS.findall(word)}
        self._tokens = {token.decode("ascii").strip().lower() for token in tokens if token.isascii()}

    def __call__(self, word: str) -> bool:
        """Whether `word` is worth printing; anything is where something else than a name may come, such as a quote."""
        if not self.names_only:
            return True
        if not word or not all(map(of_a_word, word)):
            return False
        known = word in self._words or word in _of_python() or len(word) == 1
        return known or all(map(self._is_word, PARTS.findall(word)))

    def _is_word(self, part: str) -> bool:
        part = part.lower()
        return self._is_known(part) or any(
            part.endswith(end) and self._is_known(part[: -len(end)]) for end in ENDINGS if len(part) > len(end) + 2)

    def _is_known(self, part: str) -> bool:
        return part in self._parts or part in _of_python() or len(part) >= SHORTEST_TOKEN and part in self._tokens
