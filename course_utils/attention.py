"""Scaled dot-product attention, and the masks that say who may attend to whom.

Does: one attention step over any leading dimensions (batch, heads), with the weights returned, as notebook 04 writes it,
with checks of the arguments, a bias, dropout, and zeros for a query without a key; tests/test_attention.py holds it equal to
the notebook's. Does not: project queries, keys and values or split heads (see `multi_head_attention`).
Masks are boolean and True means may attend, as in `torch.nn.functional.scaled_dot_product_attention`;
`torch.nn.MultiheadAttention` means the opposite.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.shapes import check_mask, check_vectors

__all__ = ["causal_mask", "padding_mask", "AttentionResult", "scaled_dot_product_attention"]


def causal_mask(query_len: int, key_len: int | None = None, device: torch.device | str | None = None) -> Tensor:
    """Each query may attend to itself and to what came before: (query, key), True = may attend.

    With more keys than queries the last query sees the last key (aligned at the bottom right).

    Taught in 04_attention, '5. Masks: who may be looked at'.
    """
    key_len = query_len if key_len is None else key_len
    return torch.ones(query_len, key_len, dtype=torch.bool, device=device).tril(key_len - query_len)


def padding_mask(attention_mask: Tensor) -> Tensor:
    """No query may attend to padding: (batch, seq_len), True = real -> (batch, 1, 1, key).

    Taught in 04_attention, '5. Masks: who may be looked at'.
    """
    if attention_mask.dim() != 2:
        raise ValueError(f"attention_mask has shape {tuple(attention_mask.shape)}; it must be (batch, seq_len). "
                         "For a single text, write token_ids[None] and attention_mask[None]")
    if attention_mask.dtype != torch.bool:
        raise TypeError(f"attention_mask has dtype {attention_mask.dtype}; it must be torch.bool: use attention_mask.bool()")
    return attention_mask[:, None, None, :]


class AttentionResult(NamedTuple):
    """`context` (..., query, d_value); `weights` (..., query, key), or None where they were not asked for.

    Taught in 04_attention, '2. Six lines'.
    """

    context: Tensor
    weights: Tensor | None


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, bias: Tensor | None = None,
    dropout_p: float = 0.0,
) -> AttentionResult:
    """softmax(query keyᵀ / √d_k + bias) value, over the keys that `mask` allows (Vaswani et al. 2017, eq. 1).

    query (..., query, d_k), key (..., key, d_k), value (..., key, d_value); mask, boolean, True = may
    attend, and bias, added to the scores, broadcast to (..., query, key). A query with no key gets zeros, also
    where a bias of -inf leaves it none. Half precision is scored in float32, where it does not overflow.
    `dropout_p` drops weights whenever it is above zero, as the library's function does; the weights
    returned are those before dropout. Raises TypeError or ValueError for arguments that do not fit.

    Taught in 04_attention, '2. Six lines'.
    """
    check_vectors(query, key, value)
    wide = torch.promote_types(query.dtype, torch.float32)                 # float16 ends at 65,504
    scores = query.to(wide) @ key.to(wide).transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    check_mask(mask, bias, scores.shape)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    if mask is None and bias is None:
        weights = scores.softmax(dim=-1)                                   # each row sums to one
    else:
        no_key = (scores == -math.inf).all(dim=-1, keepdim=True)           # rows that mask and bias leave nothing
        weights = scores.masked_fill(no_key, 0.0).softmax(dim=-1).masked_fill(no_key, 0.0)
    weights = weights.to(query.dtype)
    return AttentionResult(F.dropout(weights, dropout_p) @ value, weights)
