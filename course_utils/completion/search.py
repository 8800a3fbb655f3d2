"""The most probable ways in which a word goes on: a best-first search over tokens, by a model that reads a text once.

Does: keep what the model has read, so that only what is new is read the next time (`Reader`); find words with the
probability of each (`search`). Does not: cut texts (see `names`).

A path is a list of tokens after the prompt. The search always extends the most probable paths, several in one batch. A path
ends where its text has the next word complete; paths with the same word add up.
"""

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.completion.names import SEPARATOR, Prompt, TokenTable, decoded, next_item
from course_utils.language_model import LanguageModel


class _Kept:
    """The keys and values of a prompt in one layer, as `MultiHeadAttention` asks for them; it can be cut."""

    def __init__(self):
        self.key = self.value = None

    def __len__(self) -> int:
        return 0 if self.key is None else self.key.shape[-2]

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self.key is not None:
            key, value = torch.cat([self.key, key], dim=-2), torch.cat([self.value, value], dim=-2)
        self.key, self.value = key, value
        return key, value

    def cut(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        if length == 0:
            self.key = self.value = None
        elif length < len(self):
            self.key, self.value = self.key[..., :length, :], self.value[..., :length, :]


class _Before:
    """The first `length` tokens of a `_Kept`, put in front of every row of a batch; nothing is added to it."""

    def __init__(self, kept: _Kept, length: int):
        self.key, self.value = kept.key[..., :length, :], kept.value[..., :length, :]

    def __len__(self) -> int:
        return self.key.shape[-2]

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        rows = (len(key), -1, -1, -1)
        return torch.cat([self.key.expand(rows), key], dim=-2), torch.cat([self.value.expand(rows), value], dim=-2)


def shared_length(left: Sequence[int], right: Sequence[int]) -> int:
    """How many ids two lists have in common at their beginning."""
    return next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))


class Reader:
    """The model with the keys and values of the prompt that it read last.

    A second prompt that begins as the last one did costs only its new tokens. The answers are those of a model that
    reads everything anew, up to rounding.
    """

    def __init__(self, model: LanguageModel):
        self.model = model.eval()
        self.ids: list[int] = []                        # those in the caches
        self.prompt_length = 0
        self.kept = [_Kept() for _ in model.new_caches()]

    def read(self, prompt: list[int], chain: list[int]) -> Tensor:
        """Read a prompt of one id or more and what follows it; ids to (len(chain) + 1, vocab), log-probabilities.

        Row i is about the token after prompt + chain[:i].
        """
        ids = [*prompt, *chain]
        known = min(shared_length(self.ids, ids), len(prompt) - 1)
        self.ids = []                                   # if this is interrupted, nothing counts as read
        for kept in self.kept:
            kept.cut(known)
        logits = self._logits([ids[known:]], self.kept)[0, len(prompt) - 1 - known :]
        self.ids, self.prompt_length = ids, len(prompt)
        return _logprobs(logits)

    def branches(self, suffixes: list[tuple[int, ...]]) -> Tensor:
        """What comes after the last prompt and each suffix, of one id or more: (len(suffixes), vocab), log-probabilities."""
        longest = max(map(len, suffixes))
        rows = [[*suffix, *[SEPARATOR] * (longest - len(suffix))] for suffix in suffixes]
        before = [_Before(kept, self.prompt_length) for kept in self.kept]
        last = torch.tensor([len(suffix) - 1 for suffix in suffixes])
        return _logprobs(self._logits(rows, before)[torch.arange(len(rows)), last])

    def follow(self, token_id: int) -> Tensor:
        """Read one more token after everything read so far: (vocab,), log-probabilities of the next."""
        ids, self.ids = self.ids, []
        logits = self._logits([[token_id]], self.kept)[0, 0]
        self.ids = [*ids, token_id]
        return _logprobs(logits)

    @torch.inference_mode()
    def _logits(self, rows: list[list[int]], caches) -> Tensor:
        token_ids = torch.tensor(rows, device=self.model.embedding.weight.device)
        return self.model(token_ids, caches=caches).logits.cpu()           # (rows, new, vocab)


def _logprobs(logits: Tensor) -> Tensor:
    """Logits (..., vocab) as log-probabilities in float64; the separator gets none of the probability."""
    logits = logits.double()
    logits[..., SEPARATOR] = -torch.inf
    return logits.log_softmax(dim=-1)


BATCH, BATCHES = 12, 8                                  # paths read at once; how often
TOKENS = 400                                            # read in all of these batches, padding included
WIDEST = 48                                             # tokens that a path is extended by, the most probable ones
NEGLIGIBLE = math.log(1e-4)                             # of what agrees: a path less probable isn't worth a reading


class Path(NamedTuple):
    """Tokens after the prompt; `cost` is minus the log of their probability, so that a heap has the best one first."""

    cost: float
    ids: tuple[int, ...]
    data: bytes


class Found(NamedTuple):
    """`items`: words, or what there is beyond those typed, with a lower bound of each one's probability, the best first.
    `open`: the probability, at most, of paths that may still disagree with what was typed."""

    items: list[tuple[str, float]]
    open: float


def _add(left: float, right: float) -> float:
    """log(e^left + e^right)."""
    low, high = sorted((left, right))
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


class _Search:
    def __init__(self, reader: Reader, table: TokenTable, prompt: Prompt, within: bool, number: int, longest: int):
        self.reader, self.table, self.typed, self.within = reader, table, prompt.typed, within
        self.number, self.longest = number, longest
        self.items: dict[str, float] = {}               # each word's log-probability, as far as it has been found
        self.agreed = -math.inf                         # that of all paths that agree with what was typed
        self.unread = -math.inf                         # that of paths which may agree, but are too long to be read
        self.waiting: list[Path] = []
        rows = reader.read(prompt.ids, prompt.chain)
        self.known = {tuple(prompt.chain[:i]): row for i, row in enumerate(rows)}  # read already, all at once
        heapq.heappush(self.waiting, Path(0.0, (), b""))

    def cut(self) -> float:
        """The log-probability that a word needs to be among those asked for."""
        if len(self.items) < self.number:
            return -math.inf
        return heapq.nlargest(self.number, self.items.values())[-1]

    def visit(self, path: Path, row: Tensor) -> None:
        """Take a path and what may follow it, (vocab,) log-probabilities: words that end, and longer paths."""
        missing = self.typed[len(path.data) :]
        row = row - path.cost
        if missing:
            beyond, within = self.table.agreeing(missing)
            ids, chances = beyond, row[beyond]
            self.agreed = _add(self.agreed, float(chances.logsumexp(0)) if len(ids) else -math.inf)
            for i in within:
                self.push(float(row[i]), path, i)
        else:
            if not path.ids:                            # nothing was typed
                self.agreed = 0.0
            ids, chances = None, row
            text = decoded(path.data[len(self.typed) :])
            item, _ = next_item(text, self.within)
            if len(text.encode()) == len(path.data) - len(self.typed) and (self.within or item.strip(" \t")):
                self.end(item, float(row[self.table.ends].logsumexp(0)))
                chances = row.masked_fill(self.table.ends, -torch.inf)
        best, at = chances.topk(min(WIDEST, len(chances)))
        least = self.cut()
        for chance, i in zip(best.tolist(), (at if ids is None else ids[at]).tolist()):
            if chance <= least or chance == -math.inf:
                break
            self.extend(chance, path, i)

    def extend(self, chance: float, path: Path, token_id: int) -> None:
        """A path that has all that was typed, and one more token: its word is complete, or it waits."""
        text = decoded((path.data + self.table.tokens[token_id])[len(self.typed) :])
        if text is None:
            return
        item, ended = next_item(text, self.within)
        if ended:
            self.end(item, chance)
        else:
            self.push(chance, path, token_id)

    def end(self, item: str, chance: float) -> None:
        self.items[item] = _add(self.items.get(item, -math.inf), chance)

    def push(self, chance: float, path: Path, token_id: int) -> None:
        data = path.data + self.table.tokens[token_id]
        if chance > -math.inf and len(path.ids) < self.longest:
            heapq.heappush(self.waiting, Path(-chance, (*path.ids, token_id), data))
        elif len(data) < len(self.typed):
            self.unread = _add(self.unread, chance)

    def visit_known(self) -> None:
        """Visit the waiting paths that have been read already: the beginning, and the tokens as the tokenizer has them."""
        while there := [path for path in self.waiting if path.ids in self.known]:
            for path in there:
                self.waiting.remove(path)
                self.visit(path, self.known.pop(path.ids))
        heapq.heapify(self.waiting)

    def chosen(self) -> list[Path]:
        """The next paths to read, the best of those that can still change the answer."""
        least = max(self.cut(), self.agreed + NEGLIGIBLE if len(self.items) >= self.number else -math.inf)
        best = []
        while self.waiting and len(best) < BATCH and -self.waiting[0].cost > least:
            best.append(heapq.heappop(self.waiting))
        return best

    def run(self) -> Found:
        self.visit_known()
        tokens = 0
        for _ in range(BATCHES):
            paths = self.chosen()
            longest = max((len(path.ids) for path in paths), default=0)
            fit = (TOKENS - tokens) // longest if longest else 0
            for path in paths[fit:]:
                heapq.heappush(self.waiting, path)
            if not paths[:fit]:
                break
            tokens += longest * len(paths[:fit])
            for path, row in zip(paths[:fit], self.reader.branches([path.ids for path in paths[:fit]])):
                self.visit(path, row)
        for path in self.waiting:
            if len(path.data) < len(self.typed):
                self.unread = _add(self.unread, -path.cost)
        whole = _add(self.agreed, self.unread)
        ranked = sorted(self.items.items(), key=lambda pair: (-pair[1], pair[0]))
        found = [(item, math.exp(min(0.0, chance - whole))) for item, chance in ranked if chance > -math.inf]
        return Found(found[: self.number], math.exp(self.unread - whole))


def search(reader: Reader, table: TokenTable, prompt: Prompt, within: bool, number: int, longest: int) -> Found:
    """The `number` most probable next words after a prompt, by paths of at most `longest` tokens.

    `within`: the typed characters end inside a word. A probability is that of the word given the prompt and what was
    typed. It's a lower bound: less probable tokens than the best WIDEST of a path, and what isn't read within TOKENS tokens,
    are left out of the word's share, while all that may agree with what was typed counts in the whole.
    """
    return _Search(reader, table, prompt, within, number, longest).run()
