"""The Transformer that translates, and its state while it writes one word after another."""

import copy
import dataclasses
from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import causal_mask, padding_mask
from course_utils.encoder_decoder.blocks import Decoder, DecoderResult
from course_utils.language_model import KeyValueCache
from course_utils.options import check_model_options
from course_utils.positional_encoding import POSITIONS, make_positions
from course_utils.shapes import check_token_ids
from course_utils.training.pair_batches import PAD
from course_utils.transformer_blocks import ACTIVATIONS, Encoder

__all__ = ["TransformerConfig", "Attentions", "Memory", "TransformerResult", "DecodingState", "Transformer"]


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Everything that fixes a `Transformer` but its weights.

    `vocab_size` is the target's. `num_layers` counts the encoder's blocks, and the decoder has as many. `tied`: the matrix
    that looks target words up also scores them (Press and Wolf 2017). Neither side may be longer than `max_len` tokens.
    Raises ValueError that names the option for a value outside its range.

    Taught in 17_encoder_decoder, '3. The whole Transformer, and how it learns'.
    """

    vocab_size: int
    source_vocab_size: int
    d_model: int = 64
    num_heads: int = 4
    d_ff: int = 256
    num_layers: int = 2
    max_len: int = 256
    positions: str = "rotary"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    norm_first: bool = True
    activation: str = "gelu"
    tied: bool = True
    pad_id: int = PAD
    layer_norm_eps: float = 1e-5

    def __post_init__(self):
        check_model_options(vars(self), positions=POSITIONS, activation=ACTIVATIONS)


class Attentions(NamedTuple):
    """Weights with a tensor for each layer: `encoder` (batch, heads, source, source), `decoder` (batch, heads, target,
    target), `cross` (batch, heads, target, source).

    Taught in 17_encoder_decoder, '3. The whole Transformer, and how it learns'.
    """

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


class Memory(NamedTuple):
    """What the encoder hands over: `x` (batch, source, d_model), every source word in its context; `mask` (batch, source),
    True for words; `attentions`, one (batch, heads, source, source) for each layer, or None.

    Taught in 17_encoder_decoder, '3. The whole Transformer, and how it learns'.
    """

    x: Tensor
    mask: Tensor
    attentions: list[Tensor] | None = None


class TransformerResult(NamedTuple):
    """`logits` (batch, target, vocab): position i scores the candidates for word i + 1; `weights`, `Attentions` or None.

    Taught in 17_encoder_decoder, '3. The whole Transformer, and how it learns'.
    """

    logits: Tensor
    weights: Attentions | None


class DecodingState(NamedTuple):
    """What a `Transformer` keeps while it writes: for each decoder layer the memory's keys and values, and a cache of its
    own words'; `memory_mask` (batch, 1, 1, source).

    Taught in 17_encoder_decoder, '3. The whole Transformer, and how it learns'.
    """

    remembered: list[tuple[Tensor, Tensor]]
    caches: list[KeyValueCache]
    memory_mask: Tensor

    def select(self, indices: Tensor) -> "DecodingState":
        """The rows `indices` (rows,) as a state of their own; a row may come several times, or not at all."""
        caches = [KeyValueCache() for _ in self.caches]
        for new, old in zip(caches, self.caches):
            if len(old):
                new.append(old.key[indices], old.value[indices])
        remembered = [(key[indices], value[indices]) for key, value in self.remembered]
        return DecodingState(remembered, caches, self.memory_mask[indices])


class Transformer(nn.Module):
    """Source and target ids to logits for the next target word (Vaswani et al. 2017).

    (source_ids (batch, source), source_mask (batch, source) with True for words, target_ids (batch, target), need_weights)
    -> TransformerResult. target_ids are what the decoder reads: <bos> and the words so far. Padding changes no logit.
    To write, call `encode` and `start` once, then `step` word by word, as 16's models do.
    Raises ValueError for a side that is empty or longer than `config.max_len`.

    Taught in 17_encoder_decoder, '3. The whole Transformer, and how it learns'.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        size = (config.num_layers, config.d_model, config.num_heads, config.d_ff)
        options = dict(norm_first=config.norm_first, dropout=config.dropout, attention_dropout=config.attention_dropout,
                       activation=config.activation, layer_norm_eps=config.layer_norm_eps)
        self.source_embedding = nn.Embedding(config.source_vocab_size, config.d_model)
        self.target_embedding = nn.Embedding(config.vocab_size, config.d_model)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=config.d_model**-0.5)
        self.positions = make_positions(config.positions, config.d_model, config.num_heads, config.max_len)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder, self.decoder = Encoder(*size, **options), Decoder(*size, **options)
        self.output = None if config.tied else nn.Linear(config.d_model, config.vocab_size, bias=False)

    def embed(self, embedding: nn.Embedding, ids: Tensor, offset: int = 0) -> Tensor:
        """Word vectors times √d_model, with positions: (batch, seq_len) -> (batch, seq_len, d_model)."""
        check_token_ids(ids, self.config.max_len, offset)
        return self.dropout(self.positions.add(embedding(ids) * self.config.d_model**0.5, offset))

    def logits(self, x: Tensor) -> Tensor:
        """Score every target word: (..., d_model) -> (..., vocab)."""
        return F.linear(x, self.target_embedding.weight if self.output is None else self.output.weight)

    def target_mask(self, length: int, device=None) -> Tensor:
        """Target word i sees target words 0 to i: (1, 1, length, length)."""
        return causal_mask(length, device=device)[None, None]

    def encode(self, source_ids: Tensor, source_mask: Tensor, need_weights: bool = False) -> Memory:
        """Read the source. Arguments as in `forward`."""
        x, mask = self.embed(self.source_embedding, source_ids), padding_mask(source_mask)
        x, maps = self.encoder(x, mask, self.positions.bias(x.shape[1]), self.positions.rotate, need_weights)
        return Memory(x, source_mask, maps)

    def decode(self, memory: Memory, target_ids: Tensor, need_weights: bool = False) -> DecoderResult:
        """The decoder's vectors for target_ids (batch, target), each of which sees the memory and the words up to itself."""
        x, length = self.embed(self.target_embedding, target_ids), target_ids.shape[1]
        return self.decoder(x, memory.x, self.target_mask(length, x.device), padding_mask(memory.mask),
                            self.positions.bias(length), self.positions.rotate, need_weights)

    def forward(self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, need_weights: bool = False):
        memory = self.encode(source_ids, source_mask, need_weights)
        x, *maps = self.decode(memory, target_ids, need_weights)           # (batch, target, d_model)
        return TransformerResult(self.logits(x), Attentions(memory.attentions, *maps) if need_weights else None)

    def start(self, memory: Memory) -> DecodingState:
        """The state before the first word: keys and values of the memory, and empty caches."""
        caches = [KeyValueCache() for _ in self.decoder.blocks]
        return DecodingState(self.decoder.remember(memory.x), caches, padding_mask(memory.mask))

    def step(self, last_ids: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Read one more word of each translation, last_ids (batch,) -> logits of the next (batch, vocab), and the new state;
        the old one stays as it was.
        """
        done, caches = len(state.caches[0]), [copy.copy(cache) for cache in state.caches]
        x = self.embed(self.target_embedding, last_ids[:, None], done)     # (batch, 1, d_model)
        x = self.decoder(x, None, None, state.memory_mask, self.positions.bias(1, done + 1), self.positions.rotate,
                         caches=caches, remembered=state.remembered).x
        return self.logits(x[:, 0]), state._replace(caches=caches)
