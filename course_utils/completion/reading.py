"""A language model that reads a text once: what it has read is kept, and only what is new is read the next time.

Does: log-probabilities of the next token after a prompt, and after many short continuations of it at once. Does not: know
what the tokens mean, or choose any.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.language_model import LanguageModel

SEPARATOR = 0                                           # stands before each module in training; never a continuation


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
