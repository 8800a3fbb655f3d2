"""Two more ideas of Luong, Pham and Manning (2015), https://arxiv.org/abs/1508.04025: input feeding, local attention.

Does: `LocalAttention` looks at a window of the source (local-m and local-p); `LuongTranslator` is the translator of notebook
16, asking after its update, with a window and with input feeding if you like (`LuongDecoder`). It's used as `Seq2Seq` is,
with `encode`, `start` and `step`. Does not: train (`course_utils.training.fit` does), or save time with the window: all
words of the source get a score, and those outside are masked.

Exported from notebooks/extras/luong_variants.ipynb: edit it there.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import AttentionResult
from course_utils.options import check_options, fraction, one_of, whole, yes_or_no
from course_utils.recurrent_attention import LuongAttention, Memory, RecurrentEncoder, Seq2SeqResult, weighted_states

__all__ = ["WINDOWS", "LocalAttention", "LuongState", "LuongDecoder", "LuongTranslator"]


WINDOWS = ("global", "monotonic", "predicted")


class LocalAttention(nn.Module):
    """The "general" score in a window of `reach` words to each side of a centre (Luong et al. 2015, section 3.2).

    window "monotonic" (local-m): the centre of target word t is source word t, or the last one. "predicted" (local-p): the
    centre is predicted from the query, between the first word and the last (where the paper multiplies by their number, we
    multiply by the last one's position), and the weights are multiplied by a Gaussian around it, with a standard deviation
    of reach / 2, so they add up to less than 1. "global": the whole source.
    (query (batch, d_query), states (batch, source, d_states), mask (batch, source), position (batch,), which counts target
    words from 0, keys) -> AttentionResult with context (batch, d_states) and weights (batch, source).

    Taught in extras/luong_variants, '1. A window'.
    """

    def __init__(self, d_query: int, d_states: int, window: str = "monotonic", reach: int = 5):
        super().__init__()
        check_options({"window": window, "reach": reach}, {"window": one_of(*WINDOWS), "reach": whole(1, 10_000)})
        self.window, self.reach = window, reach
        self.general = LuongAttention("general", d_query, d_states)
        if window == "predicted":
            self.W_p, self.v_p = nn.Linear(d_query, d_query, bias=False), nn.Linear(d_query, 1, bias=False)

    def keys(self, states: Tensor) -> Tensor:
        """W times each state: (batch, source, d_query)."""
        return self.general.keys(states)

    def centre(self, query: Tensor, mask: Tensor, position: Tensor) -> Tensor:
        """The position in the source that the window is around, from 0: (batch,)."""
        last = mask.sum(dim=1) - 1
        if self.window == "predicted":
            return last * self.v_p(self.W_p(query).tanh())[:, 0].sigmoid()
        return torch.minimum(position, last)

    def forward(self, query: Tensor, states: Tensor, mask: Tensor, position: Tensor, keys: Tensor | None = None
                ) -> AttentionResult:
        scores = self.general.scores(query[:, None], self.keys(states) if keys is None else keys)   # (batch, 1, source)
        if self.window == "global":
            context, weights = weighted_states(scores, states, mask)
            return AttentionResult(context[:, 0], weights[:, 0])
        positions = torch.arange(states.shape[1], device=states.device)
        distance = positions - self.centre(query, mask, position)[:, None]    # (batch, source)
        context, weights = weighted_states(scores, states, mask & (distance.abs() <= self.reach))
        if self.window == "predicted":
            weights = weights * (-distance.square() / (2 * (self.reach / 2) ** 2)).exp()[:, None]
            context = weights @ states
        return AttentionResult(context[:, 0], weights[:, 0])


class LuongState(NamedTuple):
    """Where the decoder is: `memory`, the `keys` made from it, its `hidden` (batch, d_hidden), the vector `fed` to the next
    step (batch, d_model), the `position` of the next target word (batch,), and the last step's `weights` (batch, source).

    Taught in extras/luong_variants, '3. Input feeding'.
    """

    memory: Memory
    keys: Tensor
    hidden: Tensor
    fed: Tensor
    position: Tensor
    weights: Tensor | None = None

    def select(self, indices: Tensor | Sequence[int]) -> "LuongState":
        """The state with these rows of the batch, in this order; a row may come twice."""
        return LuongState(Memory(*(part[indices] for part in self.memory)),
                          *(None if part is None else part[indices] for part in self[1:]))


class LuongDecoder(nn.Module):
    """A GRU that asks after its update: (target_ids (batch, target), memory, need_weights) -> Seq2SeqResult.

    attention: a `LocalAttention` with queries of d_hidden numbers. feed: the vector that a word is scored from goes into
    the next update, beside the word (Luong et al. 2015, section 3.3).

    Taught in extras/luong_variants, '3. Input feeding'.
    """

    def __init__(self, vocab_size: int, d_model: int, d_hidden: int, attention: LocalAttention, feed: bool = False,
                 dropout: float = 0.0):
        super().__init__()
        self.attention, self.feed = attention, feed
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)          # it scores the words, too
        self.dropout = nn.Dropout(dropout)
        self.rnn = nn.GRUCell(d_model + feed * d_model, d_hidden)
        self.bridge, self.readout = nn.Linear(d_hidden, d_hidden), nn.Linear(2 * d_hidden, d_model)  # first state; scores

    def start(self, memory: Memory) -> LuongState:
        """The state before the first word."""
        hidden = self.bridge(memory.summary).tanh()
        nothing = hidden.new_zeros(len(hidden), self.embedding.embedding_dim)
        return LuongState(memory, self.attention.keys(memory.states), hidden, nothing,
                          torch.zeros(len(hidden), dtype=torch.long, device=hidden.device))

    def advance(self, x: Tensor, state: LuongState) -> LuongState:
        """Read one word of each row, x (batch, d_model); `fed` of the new state is what the next word is scored from."""
        hidden = self.rnn(torch.cat([x, state.fed], dim=-1) if self.feed else x, state.hidden)
        context, weights = self.attention(hidden, state.memory.states, state.memory.mask, state.position, state.keys)
        read = self.readout(torch.cat([hidden, context], dim=-1)).tanh()
        return state._replace(hidden=hidden, fed=read, position=state.position + 1, weights=weights)

    def logits(self, read: Tensor) -> Tensor:
        """The dot product with every word's vector: (..., vocab)."""
        return F.linear(self.dropout(read), self.embedding.weight)

    def forward(self, target_ids: Tensor, memory: Memory, need_weights: bool = False) -> Seq2SeqResult:
        state, reads, weights = self.start(memory), [], []
        for x in self.dropout(self.embedding(target_ids)).unbind(dim=1):                   # (batch, d_model)
            state = self.advance(x, state)
            reads.append(state.fed)
            weights.append(state.weights)
        weights = torch.stack(weights, dim=1) if need_weights else None    # (batch, target, source)
        return Seq2SeqResult(self.logits(torch.stack(reads, dim=1)), weights)


class LuongTranslator(nn.Module):
    """16's translator with a GRU and the "general" score after the update; with a window, and with input feeding.

    (source_ids, source_mask, target_ids (batch, target), need_weights) -> Seq2SeqResult. `feed` as in `LuongDecoder`,
    `window` and `reach` as in `LocalAttention`. With feed=False and window="global" it's `Seq2Seq` with score="general" and
    when="after". Raises ValueError that names an option outside its range.

    Taught in extras/luong_variants, '3. Input feeding'.
    """

    def __init__(self, source_vocab_size: int, target_vocab_size: int, d_model: int = 64, d_hidden: int = 128,
                 feed: bool = False, window: str = "global", reach: int = 5, dropout: float = 0.0):
        super().__init__()
        options = dict(target_vocab_size=target_vocab_size, d_model=d_model, d_hidden=d_hidden, feed=feed, dropout=dropout)
        check_options(options, {"target_vocab_size": whole(4, 10_000_000), "d_model": whole(1, 65_536),
                                "d_hidden": whole(2, 65_536), "feed": yes_or_no(), "dropout": fraction()})
        self.encoder = RecurrentEncoder(source_vocab_size, d_model, d_hidden, "GRU", dropout)
        attention = LocalAttention(d_hidden, d_hidden, window, reach)
        self.decoder = LuongDecoder(target_vocab_size, d_model, d_hidden, attention, feed, dropout)

    def encode(self, source_ids: Tensor, source_mask: Tensor) -> Memory:
        """Read the sources."""
        return self.encoder(source_ids, source_mask)

    def start(self, memory: Memory) -> LuongState:
        """The decoder's state before the first word."""
        return self.decoder.start(memory)

    def step(self, last_ids: Tensor, state: LuongState) -> tuple[Tensor, LuongState]:
        """Read one more word of each row, last_ids (batch,): logits for the next, (batch, vocab), and the new state."""
        state = self.decoder.advance(self.decoder.embedding(last_ids), state)
        return self.decoder.logits(state.fed), state

    def forward(self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, need_weights: bool = False
                ) -> Seq2SeqResult:
        return self.decoder(target_ids, self.encode(source_ids, source_mask), need_weights)
