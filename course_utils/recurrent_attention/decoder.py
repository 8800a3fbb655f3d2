"""A recurrent decoder with or without attention, and the whole translator."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.options import Rule, check_options, fraction, one_of, whole
from course_utils.recurrent_attention.encoder import LAYERS, Memory, RecurrentEncoder
from course_utils.recurrent_attention.scores import LUONG_SCORES, AdditiveAttention, LuongAttention

__all__ = ["DecoderState", "RecurrentDecoder", "SCORES", "Seq2SeqConfig", "Seq2SeqResult", "Seq2Seq"]


class DecoderState(NamedTuple):
    """Where a decoder is: the `memory` of its sources, the `keys` made from it (None without attention), its own `hidden`
    (batch, d_hidden), for an LSTM the `cell` as well, and the `weights` of what it read last: (batch, source) after
    `step`, (batch, words, source) after `advance`.

    Taught in 16_recurrent_attention, '3. One step of the decoder'.
    """

    memory: Memory
    keys: Tensor | None
    hidden: Tensor
    cell: Tensor | None = None
    weights: Tensor | None = None

    def select(self, indices: Tensor | Sequence[int]) -> "DecoderState":
        """The state with these rows of the batch, in this order; a row may come twice."""
        def pick(part):
            return None if part is None else part[indices]

        return DecoderState(Memory(*map(pick, self.memory)), *map(pick, self[1:]))


class RecurrentDecoder(nn.Module):
    """Scores for each next word, from the words before it and a `Memory`: (target_ids (batch, target), memory, need_weights)
    -> Seq2SeqResult.

    attention None: the summary is the context of every word (Cho et al. 2014). With attention, `when` says which state
    asks: "before", the one before the word was read, and then the context is an input of the update (Bahdanau et al.
    2015); "after", the updated one (Luong et al. 2015), so that all words can be asked for at once. Logits are read from
    state and context, and scored against the rows of the embedding.

    Taught in 16_recurrent_attention, '3. One step of the decoder'.
    """

    def __init__(self, vocab_size: int, d_model: int, d_hidden: int, attention: nn.Module | None = None,
                 when: str = "before", cell: str = "GRU", dropout: float = 0.0):
        super().__init__()
        check_options({"when": when, "cell": cell}, {"when": one_of("before", "after"), "cell": one_of(*LAYERS)})
        self.attention, self.fed = attention, attention is None or when == "before"
        self.embedding = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)          # it scores the words, too
        self.dropout = nn.Dropout(dropout)
        self.rnn = LAYERS[cell](d_model + self.fed * d_hidden, d_hidden, batch_first=True)
        self.bridge, self.readout = nn.Linear(d_hidden, d_hidden), nn.Linear(2 * d_hidden, d_model)  # first state; scores

    def start(self, memory: Memory) -> DecoderState:
        """The state before the first word."""
        hidden = self.bridge(memory.summary).tanh()
        keys = None if self.attention is None else self.attention.keys(memory.states)
        return DecoderState(memory, keys, hidden, torch.zeros_like(hidden) if isinstance(self.rnn, nn.LSTM) else None)

    def advance(self, x: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Read x (batch, words, d_model): one vector for each word to score from, (batch, words, d_model)."""
        context, weights = state.memory.summary[:, None].expand(-1, x.shape[1], -1), None
        if self.attention is not None and self.fed:                        # before: only one word at a time
            context, weights = self.attention(state.hidden[:, None], state.memory.states, state.memory.mask, state.keys)
        inputs = torch.cat([x, context], dim=-1) if self.fed else x
        last = state.hidden[None] if state.cell is None else (state.hidden[None], state.cell[None])
        states, last = self.rnn(inputs, last)                              # (batch, words, d_hidden)
        if self.attention is not None and not self.fed:                    # after: all words at once
            context, weights = self.attention(states, state.memory.states, state.memory.mask, state.keys)
        hidden, cell = last if isinstance(last, tuple) else (last, None)
        read = self.readout(torch.cat([states, context], dim=-1)).tanh()   # (batch, words, d_model)
        return read, state._replace(hidden=hidden[0], cell=None if cell is None else cell[0], weights=weights)

    def logits(self, read: Tensor) -> Tensor:
        """The dot product with every word's vector: (batch, words, vocab)."""
        return F.linear(self.dropout(read), self.embedding.weight)

    def forward(self, target_ids: Tensor, memory: Memory, need_weights: bool = False) -> "Seq2SeqResult":
        x, state = self.dropout(self.embedding(target_ids)), self.start(memory)
        word_by_word = self.attention is not None and self.fed
        reads, weights = [], []
        for part in x.split(1, dim=1) if word_by_word else [x]:
            read, state = self.advance(part, state)
            reads.append(read)
            weights.append(state.weights)
        weights = torch.cat(weights, dim=1) if need_weights and self.attention is not None else None
        return Seq2SeqResult(self.logits(torch.cat(reads, dim=1)), weights)


SCORES = ("none", "additive", *LUONG_SCORES)
RULES: dict[str, Rule] = {
    "source_vocab_size": whole(4, 10_000_000), "target_vocab_size": whole(4, 10_000_000), "d_model": whole(1, 65_536),
    "d_hidden": whole(2, 65_536), "score": one_of(*SCORES), "when": one_of("before", "after"), "cell": one_of(*LAYERS),
    "dropout": fraction(),
}


@dataclasses.dataclass(frozen=True)
class Seq2SeqConfig:
    """Everything that fixes a `Seq2Seq` but its weights. score="none" puts one vector between encoder and decoder.

    Raises ValueError that names the option for a value outside its range, and for an odd d_hidden: half of it goes to each
    direction of the encoder.

    Taught in 16_recurrent_attention, '3. One step of the decoder'.
    """

    source_vocab_size: int
    target_vocab_size: int
    d_model: int = 64
    d_hidden: int = 128
    score: str = "additive"
    when: str = "before"
    cell: str = "GRU"
    dropout: float = 0.0

    def __post_init__(self):
        check_options(vars(self), RULES)
        if self.d_hidden % 2:
            raise ValueError(f"d_hidden={self.d_hidden} is odd; each direction of the encoder gets half of it: use "
                             f"{self.d_hidden + 1}")


class Seq2SeqResult(NamedTuple):
    """`logits` (batch, target, vocab): position i scores the candidates for the word after target_ids[:, i]; with
    `need_weights` and attention also `weights` (batch, target, source), otherwise None.

    Taught in 16_recurrent_attention, '3. One step of the decoder'.
    """

    logits: Tensor
    weights: Tensor | None


class Seq2Seq(nn.Module):
    """A translator: (source_ids, source_mask, target_ids (batch, target), need_weights) -> Seq2SeqResult.

    target_ids are what the decoder reads: `BEGIN` and the words, without the last token. `encode`, `start` and `step` give
    the same logits one word at a time. Words that aren't in the word list have an id of their own, so logits stay finite.

    Taught in 16_recurrent_attention, '3. One step of the decoder'.
    """

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.config = config
        width = config.d_hidden
        attention = (None if config.score == "none" else AdditiveAttention(width, width, width)
                     if config.score == "additive" else LuongAttention(config.score, width, width))
        self.encoder = RecurrentEncoder(config.source_vocab_size, config.d_model, width, config.cell, config.dropout)
        self.decoder = RecurrentDecoder(config.target_vocab_size, config.d_model, width, attention, config.when, config.cell,
                                        config.dropout)

    def encode(self, source_ids: Tensor, source_mask: Tensor) -> Memory:
        """Read the sources."""
        return self.encoder(source_ids, source_mask)

    def start(self, memory: Memory) -> DecoderState:
        """The decoder's state before the first word."""
        return self.decoder.start(memory)

    def step(self, last_ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Read one more word of each row, last_ids (batch,): logits for the next, (batch, vocab), and the new state."""
        read, state = self.decoder.advance(self.decoder.embedding(last_ids)[:, None], state)
        if state.weights is not None:
            state = state._replace(weights=state.weights[:, 0])            # (batch, source)
        return self.decoder.logits(read)[:, 0], state

    def forward(self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, need_weights: bool = False
                ) -> Seq2SeqResult:
        return self.decoder(target_ids, self.encode(source_ids, source_mask), need_weights)
