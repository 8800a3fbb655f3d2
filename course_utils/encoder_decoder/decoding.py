"""Writing a translation with several candidates at a time, by any model that has `encode`, `start` and `step`."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.options import BEAM_RULES, check_options
from course_utils.training.pair_batches import BEGIN, END, PAD

__all__ = ["next_log_probabilities", "default_lengths", "Candidate", "length_penalty", "CutOff", "Beam", "beam_search"]


def next_log_probabilities(model, last_ids: Tensor, state) -> tuple[Tensor, object]:
    """One step: ln p (rows, vocab) of what follows last_ids (rows,), <pad> and <bos> excluded; and the new state.

    Taught in 17_encoder_decoder, '5. Searching with a beam'.
    """
    logits, state = model.step(last_ids, state)
    logits = logits.float().clone()
    logits[:, [PAD, BEGIN]] = -math.inf
    return logits.log_softmax(dim=-1), state


def default_lengths(source_mask: Tensor, model=None) -> list[int]:
    """How long each translation may get if nobody says so, <eos> included: twice its own source's tokens and ten, whatever
    else is in the batch; at most what the model can write (`config.max_len`, if it has one).

    Taught in 17_encoder_decoder, '5. Searching with a beam'.
    """
    most = getattr(getattr(model, "config", None), "max_len", math.inf)
    return [min(2 * words + 10, most) for words in source_mask.sum(dim=1).tolist()]


class Candidate(NamedTuple):
    """A translation: its `ids` without <bos> and <eos>, its `log_probability`, its `score`, and whether it `ended` by <eos>.

    Taught in 17_encoder_decoder, '5. Searching with a beam'.
    """

    ids: list[int]
    log_probability: float
    score: float
    ended: bool


def length_penalty(length: int, alpha: float) -> float:
    """What a log-probability of `length` words is divided by: ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14).

    Taught in 17_encoder_decoder, '5. Searching with a beam'.
    """
    return ((5 + length) / 6) ** alpha


class CutOff(UserWarning):
    """Some translation hadn't ended when it reached its maximum length, so there is only its beginning.

    Taught in 17_encoder_decoder, '5. Searching with a beam'.
    """


class Beam:
    """One sentence's search: `kept`, (log-probability, ids, row it came from) of the unfinished candidates, and `finished`.
    It's `done` when no unfinished one can win any more, and `over` when it's done or as long as it may get.

    Taught in 17_encoder_decoder, '5. Searching with a beam'.
    """

    def __init__(self, beam: int, alpha: float, max_len: int):
        self.size, self.alpha, self.max_len = beam, alpha, max_len
        self.kept, self.finished, self.done, self.over = [(0.0, [], 0)], [], False, False

    def grow(self, best: list[tuple[float, int, int]], length: int) -> None:
        """`best`: (log-probability, row, word) of the best continuations, best first; <eos> makes the length-th word."""
        if self.over:
            return
        before, self.kept = self.kept, []
        for rank, (value, row, word) in enumerate(best):
            if value == -math.inf:
                break
            ids = before[row][1]
            if word != END and len(self.kept) < self.size:
                self.kept.append((value, [*ids, word], row))
            elif word == END and rank < self.size:
                self.finished.append(Candidate(ids, value, value / length_penalty(length, self.alpha), True))
        self.finished = sorted(self.finished, key=lambda one: -one.score)[: self.size]
        reachable = self.kept[0][0] / length_penalty(self.max_len, self.alpha) if self.kept else -math.inf
        self.done = not self.kept or (len(self.finished) == self.size and self.finished[-1].score >= reachable)
        self.over = self.done or length == self.max_len

    def results(self) -> list[Candidate]:
        """The best first; candidates that didn't end come last."""
        cut = [] if self.done else [Candidate(ids, value, value / length_penalty(len(ids), self.alpha), False)
                                    for value, ids, _ in self.kept]
        return sorted(self.finished + cut, key=lambda one: (not one.ended, -one.score))[: self.size]


@torch.no_grad()
def beam_search(
    model, source_ids: Tensor, source_mask: Tensor, beam: int = 5, alpha: float = 0.6, max_len: int | None = None
) -> list[list[Candidate]]:
    """The `beam` best translations that a search finds, best first, one list for each source.

    source_ids, source_mask (batch, source). After each word the `beam` best unfinished candidates of a sentence are kept.
    One that is among the `beam` best and ends with <eos> is put aside, with the score log_probability /
    length_penalty(words and <eos>, alpha). A sentence is done when no unfinished candidate can score better than
    its `beam` best finished ones. Candidates that reach `max_len` words (`default_lengths`: each sentence its own limit)
    are taken as they are, with `ended` False. What's found for a sentence doesn't depend on the others. Raises ValueError
    for a setting outside its range, and for a `max_len` beyond the model's own.

    Taught in 17_encoder_decoder, '5. Searching with a beam'.
    """
    limits = default_lengths(source_mask, model) if max_len is None else [max_len] * len(source_ids)
    check_options({"beam": beam, "alpha": alpha, "max_len": max(limits)}, BEAM_RULES)
    if max(limits) > (most := getattr(getattr(model, "config", None), "max_len", math.inf)):
        raise ValueError(f"max_len={max_len}, and this model writes at most {most} words; use a smaller max_len, or None")
    batch, device = len(source_ids), source_ids.device
    state = model.start(model.encode(source_ids, source_mask))
    state = state.select(torch.arange(batch, device=device).repeat_interleave(beam))       # row sentence · beam + candidate
    searches = [Beam(beam, alpha, limit) for limit in limits]
    last, total = torch.full((batch * beam,), BEGIN, device=device), torch.full((batch, beam), -math.inf, device=device)
    total[:, 0] = 0.0                                                      # all candidates are <bos>: begin with one
    for length in range(1, max(limits) + 1):                                   # <eos> counts as a word
        log_p, state = next_log_probabilities(model, last, state)          # (batch · beam, vocab)
        sums, vocab = (total.flatten()[:, None] + log_p).view(batch, -1), log_p.shape[-1]
        best = sums.topk(min(2 * beam, sums.shape[1]), dim=-1)             # each can end once, so `beam` of these go on
        for search, values, places in zip(searches, best.values.tolist(), best.indices.tolist()):
            search.grow([(value, *divmod(place, vocab)) for value, place in zip(values, places)], length)
        if all(search.over for search in searches):
            break
        rows = [[*search.kept, *[(-math.inf, [END], 0)] * (beam - len(search.kept))] for search in searches]
        total = torch.tensor([[value for value, _, _ in kept] for kept in rows], device=device)
        last = torch.tensor([ids[-1] for kept in rows for _, ids, _ in kept], device=device)
        origins = [i * beam + row for i, kept in enumerate(rows) for _, _, row in kept]
        state = state.select(torch.tensor(origins, device=device))
    return [search.results() for search in searches]
