"""The encoder block: attention, a feed-forward layer, residuals, layer norm, dropout; and a stack of them.

Does: pre-norm (default) and post-norm blocks that equal `nn.TransformerEncoderLayer`. Notebook 07 writes the same without
checks, caches and returned weights; tests/test_transformer_blocks.py holds the two equal. Does not: embed words, add
positions or classify.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.options import MODEL_RULES, check_options

__all__ = ["ACTIVATIONS", "FeedForward", "layer_norm", "BlockResult", "EncoderBlock", "EncoderResult", "Encoder"]


ACTIVATIONS = ("gelu", "gelu_tanh", "relu")
_by_tanh = partial(F.gelu, approximate="tanh")


class FeedForward(nn.Module):
    """Two linear layers with a nonlinearity in between, for each token by itself: (..., d_model) -> (..., d_model).

    The position-wise feed-forward network of Vaswani et al. 2017, section 3.3; elsewhere called the MLP.
    `activation` is 'gelu', 'gelu_tanh' (an approximation, as in GPT-2) or 'relu'. Raises ValueError for another.

    Taught in 07_transformer_blocks, '2. The feed-forward layer'.
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1, activation: str = "gelu"):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation={activation!r}; use one of {', '.join(ACTIVATIONS)}")
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.activation = F.gelu if activation == "gelu" else F.relu if activation == "relu" else _by_tanh
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.dropout(self.activation(self.expand(x))))


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Each vector of x (..., d_model) to mean 0 and variance 1, then scale and shift (Ba et al. 2016).

    `nn.LayerNorm` computes the same faster; the blocks use that.

    Taught in 07_transformer_blocks, '4. Layer norm, by hand'.
    """
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)                 # divided by d_model, not d_model - 1
    return centred / torch.sqrt(variance + eps) * weight + bias


class BlockResult(NamedTuple):
    """`x` (batch, seq_len, d_model); `weights` (batch, heads, query, key), or None where they were not asked for.

    Taught in 07_transformer_blocks, '5. The block'.
    """

    x: Tensor
    weights: Tensor | None


class EncoderBlock(nn.Module):
    """x + attention, then x + feed-forward, with layer norm before each (norm_first) or after each sum.

    (x (batch, seq_len, d_model), mask, bias, rotary, need_weights, cache) -> BlockResult; the arguments are those of
    `MultiHeadAttention`. Post-norm: Vaswani et al. 2017, section 3.1; pre-norm: Xiong et al. 2020.

    Taught in 07_transformer_blocks, '5. The block'.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.1, attention_dropout: float = 0.0,
        norm_first: bool = True, activation: str = "gelu", layer_norm_eps: float = 1e-5,
    ):
        super().__init__()
        check_options(dict(d_ff=d_ff, norm_first=norm_first), MODEL_RULES)
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, num_heads, attention_dropout=attention_dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout, activation)
        self.attention_norm = nn.LayerNorm(d_model, eps=layer_norm_eps)
        self.feed_forward_norm = nn.LayerNorm(d_model, eps=layer_norm_eps)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, bias: Tensor | None = None, rotary: Callable | None = None,
        need_weights: bool = False, cache=None,
    ) -> BlockResult:
        attended = self.attention_norm(x) if self.norm_first else x
        context, weights = self.attention(
            attended, mask=mask, bias=bias, rotary=rotary, need_weights=need_weights, cache=cache
        )
        x = x + self.dropout(context)
        if self.norm_first:
            x = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        else:
            x = self.attention_norm(x)
            x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
        return BlockResult(x, weights)


class EncoderResult(NamedTuple):
    """`x` (batch, seq_len, d_model); `attentions`, one per layer, (batch, heads, query, key), or None.

    Taught in 07_transformer_blocks, '5. The block'.
    """

    x: Tensor
    attentions: list[Tensor] | None


class Encoder(nn.Module):
    """`num_layers` blocks one after another, and a last layer norm if they are pre-norm.

    `block_options` go to every `EncoderBlock`. `caches`, if given, has one cache per block. With a causal mask
    the stack is the body of a decoder that completes texts.

    Taught in 07_transformer_blocks, '5. The block'.
    """

    def __init__(self, num_layers: int, d_model: int, num_heads: int, d_ff: int, norm_first: bool = True, **block_options):
        super().__init__()
        check_options(dict(num_layers=num_layers, norm_first=norm_first), MODEL_RULES)
        self.blocks = nn.ModuleList(
            EncoderBlock(d_model, num_heads, d_ff, norm_first=norm_first, **block_options) for _ in range(num_layers)
        )
        eps = block_options.get("layer_norm_eps", 1e-5)
        self.norm = nn.LayerNorm(d_model, eps=eps) if norm_first else nn.Identity()

    def forward(
        self, x: Tensor, mask: Tensor | None = None, bias: Tensor | None = None, rotary: Callable | None = None,
        need_weights: bool = False, caches: Sequence | None = None,
    ) -> EncoderResult:
        caches = caches or [None] * len(self.blocks)
        if len(caches) != len(self.blocks):
            raise ValueError(f"{len(caches)} caches for {len(self.blocks)} blocks; give each block its own")
        attentions = []
        for block, cache in zip(self.blocks, caches):
            x, weights = block(x, mask, bias, rotary, need_weights, cache)
            attentions.append(weights)
        return EncoderResult(self.norm(x), attentions if need_weights else None)
