"""Several attentions side by side, each on its own slice of the model's width.

Does: `MultiHeadAttention`, as notebook 05 writes it (project, split into heads, attend, merge, project), with checks, and
with what later notebooks add: a bias, rotary positions, a cache, keys and values from another text, the library's fused
kernel where no weights are asked for; tests/test_multi_head_attention.py holds it equal to the notebook's. Does not:
normalise, add the input back, or know positions.
"""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.attention import AttentionResult, scaled_dot_product_attention
from course_utils.options import check_model_options
from course_utils.shapes import check_attention_inputs

__all__ = ["MultiHeadAttention"]


class MultiHeadAttention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2), batch first.

    (query (batch, query, d_model), key = query, value = key, mask, bias, rotary, cache) -> AttentionResult with
    context (batch, query, d_model) and, with `need_weights`, weights (batch, heads, query, key).
    mask is boolean, True = may attend, with the four dimensions (batch, heads, query, key), any of which may be 1; bias,
    added to the scores, has these or (heads, query, key). `rotary(x, offset)` turns split queries and keys (batch, heads,
    seq_len, d_head). A `cache` holds earlier calls' split keys and values: `append(key, value)` adds these and returns all,
    `len(cache)` is the first new position. Raises ValueError for a number of heads that does not divide d_model, for shapes
    that do not fit, and for inputs without a batch.

    Taught in 05_multi_head_attention, '4. The layer, and you write it'.
    """

    def __init__(self, d_model: int, num_heads: int, projection_bias: bool = True, attention_dropout: float = 0.0):
        super().__init__()
        check_model_options(dict(d_model=d_model, num_heads=num_heads, attention_dropout=attention_dropout))
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.attention_dropout = attention_dropout
        self.query_projection = nn.Linear(d_model, d_model, bias=projection_bias)
        self.key_projection = nn.Linear(d_model, d_model, bias=projection_bias)
        self.value_projection = nn.Linear(d_model, d_model, bias=projection_bias)
        self.output_projection = nn.Linear(d_model, d_model, bias=projection_bias)
        for layer in (self.query_projection, self.key_projection, self.value_projection, self.output_projection):
            nn.init.xavier_uniform_(layer.weight)
            if projection_bias:
                nn.init.zeros_(layer.bias)

    def project(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Three linear maps, then heads: each (batch, seq_len, d_model) -> (batch, heads, seq_len, d_head)."""
        return (
            self.split(self.query_projection(query)),
            self.split(self.key_projection(key)),
            self.split(self.value_projection(value)),
        )

    def split(self, x: Tensor) -> Tensor:
        """(batch, seq_len, d_model) -> (batch, heads, seq_len, d_head): head h owns columns h·d_head to (h+1)·d_head."""
        return x.unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        """(batch, heads, seq_len, d_head) -> (batch, seq_len, d_model): the inverse of `split`."""
        return x.transpose(1, 2).flatten(-2)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, bias: Tensor | None = None,
        need_weights: bool = False,
    ) -> AttentionResult:
        """Attention in every head at once; step by step if the weights are needed, else fused."""
        dropout_p = self.attention_dropout if self.training else 0.0
        if bias is not None:
            bias = bias.to(query)                                          # as the library wants it
        if need_weights:
            return scaled_dot_product_attention(query, key, value, mask, bias, dropout_p)
        if bias is not None and mask is not None:
            bias = bias.masked_fill(~mask, float("-inf"))                  # the library takes one or the other
        fused = F.scaled_dot_product_attention(query, key, value, mask if bias is None else bias, dropout_p)
        return AttentionResult(fused, None)

    def forward(
        self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None, mask: Tensor | None = None,
        bias: Tensor | None = None, rotary: Callable | None = None, need_weights: bool = False, cache=None,
    ) -> AttentionResult:
        """Project, rotate, append to the cache, attend, merge, project."""
        key = query if key is None else key
        value = key if value is None else value
        offset = 0 if cache is None else len(cache)
        check_attention_inputs(query, key, value, mask, bias, self.num_heads * self.d_head, self.num_heads, offset)
        query, key, value = self.project(query, key, value)               # (batch, heads, seq_len, d_head)
        if rotary is not None:
            query, key = rotary(query, offset), rotary(key, offset)
        if cache is not None:
            key, value = cache.append(key, value)                          # (batch, heads, offset + seq_len, d_head)
        context, weights = self.attend(query, key, value, mask, bias, need_weights)
        return AttentionResult(self.output_projection(self.merge(context)), weights)
