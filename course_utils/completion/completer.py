"""Code completion by a language model: what the word at the cursor becomes, and the rest of the line.

Does: `CodeCompleter`, a model with its tokenizer, saved and loaded. Does not: look at anything but the text before the
cursor, run code, or know which names exist.
"""

import threading
from pathlib import Path
from typing import NamedTuple, Self

from course_utils.byte_pairs import BPETokenizer
from course_utils.completion.names import (
    ROOM,
    SHORTEST,
    TokenTable,
    Useful,
    decoded,
    first_word,
    goes_in_circles,
    last_word,
    make_prompt,
    of_a_word,
)
from course_utils.completion.search import Reader, search
from course_utils.files.paths import CHECKPOINTS
from course_utils.language_model import LanguageModel, LanguageModelConfig
from course_utils.options import check_options, check_vocabulary, whole
from course_utils.training.model_kinds import CODE, SMALL, kind_in
from course_utils.training.saved_models import find_model, read_model, write_model

DEFAULT_FOLDER = CHECKPOINTS / "code"
SPARE = 4                                               # for each suggestion so many are made, since some are no names


class Completion(NamedTuple):
    """A way to go on: `text` is the whole word, with what was typed of it, and `probability` is from 0 to 1."""

    text: str
    probability: float


class CodeCompleter:
    """A `LanguageModel` and its `BPETokenizer`, which complete code.

    It keeps what the model computed for the last text, so that the next one costs only what is new in it. Raises TypeError
    for another kind of tokenizer, and ValueError for one of another size or for a model that reads fewer than 8 tokens.
    """

    def __init__(self, model: LanguageModel, tokenizer: BPETokenizer):
        if not isinstance(tokenizer, BPETokenizer):
            raise TypeError(f"the tokenizer is a {type(tokenizer).__name__}; use a BPETokenizer, which loses no character")
        check_vocabulary(model, tokenizer)
        if model.config.max_len < SHORTEST:
            raise ValueError(f"the model reads at most max_len={model.config.max_len} tokens; "
                             f"to complete code it has to read {SHORTEST} or more")
        self.model, self.tokenizer = model, tokenizer
        self._table, self._reader, self._lock = TokenTable(tokenizer), Reader(model), threading.RLock()

    def save(self, name: str | Path) -> None:
        """Write it into one file, name.safetensors: whole, or what was there is left whole.

        Raises ValueError for a model that couldn't be loaded, such as one with a weight that is NaN.
        """
        write_model(name, self.model, self.tokenizer, {}, LanguageModel)

    @classmethod
    def load(cls, name: str | Path = DEFAULT_FOLDER) -> Self:
        """Read and check what `save` wrote; or, by a name alone such as "code", a model that comes with the course.

        Weights in half precision are used in float32, which processors are faster in.

        Raises FileNotFoundError or ValueError that names the file that is missing, damaged or of another kind.
        """
        found = find_model(name)
        if kind_in(found) == SMALL:
            raise ValueError(f"{str(found)[:200]}: expected {CODE.what}; {SMALL.advice(found)}")
        saved = read_model(found, LanguageModel, LanguageModelConfig)
        return cls(saved.model.float(), saved.tokenizer)

    def complete(self, text: str, number: int = 5) -> list[Completion]:
        """The `number` most probable ways in which the word at the end of `text` goes on, the best first.

        After a space, a dot or a bracket that is the next word, with the blanks before it, or the next character that is
        part of no word. Each `Completion` has the whole word with what was typed of it. Its probability is given the text
        before it and the characters typed, so those of all words that agree with them add up to one. It's a lower bound:
        the search stops at a fixed amount of work, and less probable ways to write a word in tokens may be missing
        from it. There can be fewer than `number`. The model sees the end of a text that is longer than it can read.

        Raises TypeError for a text that isn't a string, and ValueError for a number outside 1 to 100.
        """
        _check_text(text)
        check_options({"number": number}, {"number": whole(1, 100)})
        word, max_len = last_word(text), self.model.config.max_len
        with self._lock:
            prompt = make_prompt(text, self.tokenizer, max_len)
            longest = min(ROOM, max_len - len(prompt.ids))
            found = search(self._reader, self._table, prompt, bool(word), number, longest)
        return [Completion(word + item, chance) for item, chance in found.items]

    def continue_line(self, text: str, max_tokens: int = 32) -> str:
        """The rest of the line after `text`, by the most probable token each time; '' where the line ends there.

        The first tokens must agree with the characters typed. Stops before a newline, and after `max_tokens` tokens.
        Raises TypeError and ValueError as `complete` does.
        """
        _check_text(text)
        check_options({"max_tokens": max_tokens}, {"max_tokens": whole(1, 1000)})
        with self._lock:
            prompt = make_prompt(text, self.tokenizer, self.model.config.max_len)
            row, data = self._reader.read(prompt.ids, [])[0], b""
            for left in range(min(max_tokens, self.model.config.max_len - len(prompt.ids)), 0, -1):
                if missing := prompt.typed[len(data) :]:
                    beyond, within = self._table.agreeing(missing)
                    allowed = [*beyond.tolist(), *within]
                    token_id = allowed[int(row[allowed].argmax())]
                else:
                    token_id = int(row.argmax())
                data += self.tokenizer.tokens[token_id]
                if b"\n" in data[len(prompt.typed) :] or left == 1:
                    break
                row = self._reader.follow(token_id)
        rest = data[len(prompt.typed) :].replace(b"\r", b"\n").split(b"\n")[0]
        return _valid_start(rest).rstrip()

    def suggest(self, text: str, number: int = 5, max_tokens: int = 32) -> tuple[list[Completion], str]:
        """(the most probable of what `complete` gives, the line that begins with the best of them), for an editor to show.

        Where a name is asked for, what doesn't look like one is left out (see `Useful`). The line is given from the
        beginning of the word at the end of `text` on; '' where there is nothing to add, and for one that goes in circles.
        """
        useful, word = Useful(text, self.tokenizer.tokens), last_word(text)
        found = [one for one in self.complete(text, min(100, SPARE * number)) if useful(one.text)][:number]
        best = found[0].text if found and found[0].text.strip("\n") else word
        rest = self.continue_line(text + best[len(word) :], max_tokens)
        if found and best and of_a_word(best[-1]) and rest and of_a_word(rest[0]):
            return found, ""                            # the model would go on with the word that it has just ended
        line = best + rest
        if goes_in_circles(rest) or not found and useful.names_only and not useful(first_word(line)):
            return found, ""
        return found, line if line.strip() and line != word else ""


def _check_text(text) -> None:
    if not isinstance(text, str):
        raise TypeError(f"text is {text!r:.60}, and has to be a string: the code before the cursor")


def _valid_start(data: bytes) -> str:
    """The text of some bytes up to the first that is part of no character."""
    text = decoded(data)
    while text is None:
        data = data[:-1]
        text = decoded(data)
    return text
