"""Where a text is cut for the model, and what counts as the next word of it.

Does: find the word at the end, the tokens that what follows can't change any more, and the tokens that agree with given
bytes; say where the next word ends, and which completions are worth showing where a name is asked for: names whose parts are
words of the file, of Python, or of the model's vocabulary. Does not: run a model.

What follows can change the last chunk that the tokenizer makes ('val' is another token than the beginning of 'value'). So
that chunk is taken back, and the tokens that come instead must agree with the characters in it. Others call this token
healing. The chunks before it stay as they are, whatever is typed.
"""

import builtins
import functools
import keyword
import re
import sys
from bisect import bisect_left
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.byte_pairs import BPETokenizer

SEPARATOR = 0                                           # stands before each module in training; never a continuation
CHARACTERS = 12                                         # of a long text, for each token that the model can read
TAKEN_BACK = 8                                          # tokens of the last chunk, at most
ROOM = 32                                               # tokens of the model's length that are kept for what follows
SHORTEST = 8                                            # tokens a model must be able to read


def of_a_word(letter: str) -> bool:
    """Whether a Python name can go on with this character: letters, digits, '_', of any script."""
    return letter == "_" or letter.isalnum() and letter.isascii() or f"a{letter}".isidentifier()


def last_word(text: str) -> str:
    """The characters at the end that a name can hold; '' after a space, a dot or a bracket."""
    start = len(text)
    while start and of_a_word(text[start - 1]):
        start -= 1
    return text[start:]


def first_word(text: str) -> str:
    """The characters at the beginning that a name can hold."""
    return next((text[:i] for i, letter in enumerate(text) if not of_a_word(letter)), text)


def next_item(text: str, within: bool) -> tuple[str, bool]:
    """(the next word of `text`, whether it ends there), or what there is of it so far.

    `within`: a word has begun before `text`. Otherwise blanks come first, and what isn't part of a word is an item by
    itself, a character long: next_item(" is not", False) -> (" is", True), next_item("(a", False) -> ("(", True).
    """
    end = 0
    if not within:
        while end < len(text) and text[end] in " \t":
            end += 1
        if end == len(text):
            return text, False
        if not of_a_word(text[end]):
            return text[: end + 1], True
    while end < len(text) and of_a_word(text[end]):
        end += 1
    return text[:end], end < len(text)


def decoded(data: bytes) -> str | None:
    """The text of some bytes without a character that isn't whole yet at the end; None if it can't become a text."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return data[: error.start].decode()
        return None


class Prompt(NamedTuple):
    """A text as the model gets it: `ids` that stay, and `chain`, the last ids, whose bytes are `typed`, to be healed."""

    ids: list[int]
    chain: list[int]
    typed: bytes


def _end_of(text: str, characters: int) -> str:
    """The end of a long text, from the start of a line if there is one. The cut moves in large steps, as typing goes on."""
    if len(text) <= characters:
        return text
    step = max(1, characters // 4)
    cut = -(-(len(text) - characters) // step) * step
    newline = text.find("\n", cut, cut + step)
    return text[newline + 1 if newline >= 0 else cut :]


def room(max_len: int) -> int:
    """How many tokens of the `max_len` that a model reads are kept for what follows the prompt."""
    return max(4, min(ROOM, max_len // 4))


def make_prompt(text: str, tokenizer: BPETokenizer, max_len: int) -> Prompt:
    """The ids of a text, with the separator in front; of a text that is too long, its end and no separator.

    At most `max_len` less `room(max_len)` ids. Carriage returns before newlines are left out, as in training.
    """
    text = text.replace("\r\n", "\n")
    end = _end_of(text, CHARACTERS * max_len)
    chunks = tokenizer.pattern.findall(end)
    last = "".join(chunks[-1:])
    if last in ("l", "r", "v") and chunks[-2:-1] == ["'"]:  # may become 'll, 're or 've, which are chunks
        last = f"'{last}"
    ids = tokenizer.encode(end)
    most = max_len - room(max_len)
    number = min(len(tokenizer.encode(last)), TAKEN_BACK, most - 1)
    ids = ids if len(end) < len(text) else [SEPARATOR, *ids]
    if len(ids) > most:
        step = max(1, most // 4)
        ids = ids[-(-(len(ids) - most) // step) * step :]
    if len(ids) <= number:                              # a long text of a single chunk
        number = len(ids) - 1
    chain = ids[len(ids) - number :]
    return Prompt(ids[: len(ids) - number], chain, b"".join(tokenizer.tokens[i] for i in chain))


class Agreeing(NamedTuple):
    """The tokens that agree with given bytes: `beyond` (n,), ids that hold all of them; `within`, ids that hold some."""

    beyond: Tensor
    within: list[int]


class TokenTable:
    """A vocabulary of byte pairs, ready to be asked which tokens agree with some bytes.

    `ends` (vocab,) is True for tokens that end a word at once: they begin with a character of ASCII that no name holds.
    """

    def __init__(self, tokenizer: BPETokenizer):
        self.tokens = tokenizer.tokens
        order = sorted(range(1, len(self.tokens)), key=lambda i: self.tokens[i])
        self._sorted = [self.tokens[i] for i in order]
        self._ids = torch.tensor(order)
        self._with_bytes: dict[bytes, list[int]] = {}
        for i in order:
            self._with_bytes.setdefault(self.tokens[i], []).append(i)
        self.ends = torch.tensor([bool(t) and t[0] < 128 and not of_a_word(chr(t[0])) for t in self.tokens])

    def agreeing(self, data: bytes) -> Agreeing:
        """The tokens that begin with `data`, and those that `data` begins with, all but the whole of it."""
        after = data.rstrip(b"\xff")
        low = bisect_left(self._sorted, data)
        high = bisect_left(self._sorted, after[:-1] + bytes([after[-1] + 1])) if after else len(self._sorted)
        within = [i for k in range(1, len(data)) for i in self._with_bytes.get(data[:k], ())]
        return Agreeing(self._ids[low:high], within)


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
