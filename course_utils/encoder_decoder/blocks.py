"""Cross-attention, the decoder block and the stack of them: equal to `nn.TransformerDecoderLayer` and its stack."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor, nn

from course_utils.attention import AttentionResult
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.options import MODEL_RULES, check_options
from course_utils.shapes import check_attention_inputs
from course_utils.transformer_blocks import FeedForward

__all__ = ["CrossAttention", "DecoderBlockResult", "DecoderBlock", "DecoderResult", "Decoder"]


class CrossAttention(MultiHeadAttention):
    """Multi-head attention with queries from one sequence, and keys and values from another (Vaswani et al. 2017, 3.2.3).

    (x (batch, target, d_model), memory (batch, source, d_model), mask, need_weights) -> AttentionResult with context
    (batch, target, d_model) and weights (batch, heads, target, source) or None. `remember(memory)` computes the keys and
    values once; handed over as `remembered`, they take the memory's place. Raises ValueError for shapes that don't fit.

    Taught in 17_encoder_decoder, '1. Cross-attention, by hand'.
    """

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The memory's keys and values, each (batch, heads, source, d_head)."""
        return self.split(self.key_projection(memory)), self.split(self.value_projection(memory))

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, need_weights: bool = False,
        remembered: tuple[Tensor, Tensor] | None = None,
    ) -> AttentionResult:
        if remembered is None:
            check_attention_inputs(x, memory, memory, mask, None, self.num_heads * self.d_head, self.num_heads)
            remembered = self.remember(memory)
        query = self.split(self.query_projection(x))                       # (batch, heads, target, d_head)
        context, weights = self.attend(query, *remembered, mask, need_weights=need_weights)
        return AttentionResult(self.output_projection(self.merge(context)), weights)


class DecoderBlockResult(NamedTuple):
    """`x` (batch, target, d_model); where they were asked for, `weights` (batch, heads, target, target) of self-attention
    and `cross_weights` (batch, heads, target, source), else None.

    Taught in 17_encoder_decoder, '2. The decoder block'.
    """

    x: Tensor
    weights: Tensor | None
    cross_weights: Tensor | None


class DecoderBlock(nn.Module):
    """x + self-attention, x + cross-attention, x + feed-forward, each with a layer norm (Vaswani et al. 2017, section 3.1).

    (x (batch, target, d_model), memory (batch, source, d_model), mask for self-attention, memory_mask for
    cross-attention) -> DecoderBlockResult. bias, rotary and cache belong to self-attention, `remembered` to
    cross-attention; see `MultiHeadAttention` and `CrossAttention`. The norms come first (norm_first) or after each sum.

    Taught in 17_encoder_decoder, '2. The decoder block'.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1, attention_dropout: float = 0.0,
        norm_first: bool = True, activation: str = "gelu", layer_norm_eps: float = 1e-5,
    ):
        super().__init__()
        check_options(dict(d_ff=d_ff, norm_first=norm_first), MODEL_RULES)
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads, attention_dropout=attention_dropout)
        self.cross_attention = CrossAttention(d_model, num_heads, attention_dropout=attention_dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout, activation)
        self.attention_norm, self.cross_attention_norm, self.feed_forward_norm = (
            nn.LayerNorm(d_model, eps=layer_norm_eps) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, memory_mask: Tensor | None = None,
        bias: Tensor | None = None, rotary: Callable | None = None, need_weights: bool = False, cache=None, remembered=None,
    ) -> DecoderBlockResult:
        maps = []

        def look(y):
            context, weights = self.attention(y, None, None, mask, bias, rotary, need_weights, cache)
            maps.append(weights)
            return context

        def look_across(y):
            context, weights = self.cross_attention(y, memory, memory_mask, need_weights, remembered)
            maps.append(weights)
            return context

        for sublayer, norm in ((look, self.attention_norm), (look_across, self.cross_attention_norm),
                               (self.feed_forward, self.feed_forward_norm)):
            x = x + self.dropout(sublayer(norm(x))) if self.norm_first else norm(x + self.dropout(sublayer(x)))
        return DecoderBlockResult(x, *maps)


class DecoderResult(NamedTuple):
    """`x` (batch, target, d_model); with need_weights, lists with a tensor for each layer: `attentions` (batch, heads,
    target, target) and `cross_attentions` (batch, heads, target, source), else None.

    Taught in 17_encoder_decoder, '2. The decoder block'.
    """

    x: Tensor
    attentions: list[Tensor] | None
    cross_attentions: list[Tensor] | None


class Decoder(nn.Module):
    """`num_layers` decoder blocks one after another, and a last layer norm if they are pre-norm.

    All blocks look at the same memory. `block_options` go to every `DecoderBlock`. For decoding, give each block its own
    cache and its own pair of remembered keys and values (`remember`).

    Taught in 17_encoder_decoder, '2. The decoder block'.
    """

    def __init__(self, num_layers: int, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True, **block_options):
        super().__init__()
        check_options(dict(num_layers=num_layers, norm_first=norm_first), MODEL_RULES)
        self.blocks = nn.ModuleList(
            DecoderBlock(d_model, num_heads, d_ff, norm_first=norm_first, **block_options) for _ in range(num_layers))
        eps = block_options.get("layer_norm_eps", 1e-5)
        self.norm = nn.LayerNorm(d_model, eps=eps) if norm_first else nn.Identity()

    def remember(self, memory: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Each block's keys and values of the memory, computed once for all steps."""
        return [block.cross_attention.remember(memory) for block in self.blocks]

    def forward(
        self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None, memory_mask: Tensor | None = None,
        bias: Tensor | None = None, rotary: Callable | None = None, need_weights: bool = False,
        caches: Sequence | None = None, remembered: Sequence | None = None,
    ) -> DecoderResult:
        nothing = [None] * len(self.blocks)
        caches, remembered = caches or nothing, remembered or nothing
        if not len(caches) == len(remembered) == len(self.blocks):
            raise ValueError(f"{len(caches)} caches and {len(remembered)} pairs of keys and values for {len(self.blocks)} "
                             "blocks; give each block its own")
        attentions, cross_attentions = [], []
        for block, cache, pair in zip(self.blocks, caches, remembered):
            x, weights, cross = block(x, memory, mask, memory_mask, bias, rotary, need_weights, cache, pair)
            attentions.append(weights)
            cross_attentions.append(cross)
        return DecoderResult(self.norm(x), *((attentions, cross_attentions) if need_weights else (None, None)))
