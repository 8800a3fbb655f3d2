"""Attention without its table of weights: in tiles, or in a window; and how many bytes a cache holds.

Does: `tiled_attention`, the same numbers as `scaled_dot_product_attention` tile by tile, forward and backward, as
notebook 18 writes it; `window_attention`, computed on the keys that a window keeps; `cache_bytes`. With checks of the
arguments; tests/test_efficient_attention.py holds them equal to the notebook's. Does not: return weights, apply dropout,
or run as fast as the library's fused kernel, which is the one to use where it does what you need.
Who may look at whom is a rule: a function of two tensors of positions, (query, 1) and (key,), that returns True where a
query may attend to a key, of a shape that broadcasts to (..., query, key).
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from course_utils.shapes import check_vectors

__all__ = ["tile", "merge", "everywhere", "causal", "tiled_attention", "window", "window_attention", "cache_bytes"]

Rule = Callable[[Tensor, Tensor], Tensor]


def everywhere(i: Tensor, j: Tensor) -> Tensor:
    """The rule by which every query may attend to every key."""
    return torch.ones_like(i + j, dtype=torch.bool)


def causal(i: Tensor, j: Tensor) -> Tensor:
    """The rule by which each query may attend to itself and to what came before."""
    return j <= i


def tile(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What one block of keys says to one block of queries: m, s (..., query, 1) and a (..., query, d_value).

    m is each row's largest score, s the sum of e^(score - m), a the sum of e^(score - m) · value. `allowed` (..., query,
    key), True = may attend. A row without a key has the lowest finite number as m, and zeros as s and a.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    scores = scores.masked_fill(~allowed, -math.inf)
    m = scores.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    e = (scores - m).exp()
    return m, e.sum(dim=-1, keepdim=True), e @ value


def merge(m_1: Tensor, s_1: Tensor, a_1: Tensor, m_2: Tensor, s_2: Tensor, a_2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """m, s and a of two sets of keys together, from those of each (Milakov and Gimelshein 2018, section 3.1)."""
    m = torch.maximum(m_1, m_2)
    r_1, r_2 = (m_1 - m).exp(), (m_2 - m).exp()
    return m, s_1 * r_1 + s_2 * r_2, a_1 * r_1 + a_2 * r_2


def _tiles(rule: Rule, i: int, query_len: int, key_len: int, size: int, device) -> Iterator[tuple[slice, Tensor]]:
    """The blocks of keys that some query of the block at i may see, each with its part of the mask."""
    rows = torch.arange(i, min(i + size, query_len), device=device)[:, None]
    for j in range(0, key_len, size):
        columns = torch.arange(j, min(j + size, key_len), device=device)
        allowed = rule(rows, columns)
        if allowed.dtype != torch.bool:
            raise TypeError(f"the rule gives {allowed.dtype}; it must give torch.bool, True = may attend")
        if allowed.any():
            yield slice(j, j + size), allowed


def _forward(query: Tensor, key: Tensor, value: Tensor, rule: Rule, size: int) -> tuple[Tensor, Tensor]:
    """The context, and the logarithm of each row's sum of e^score (..., query, 1)."""
    contexts, logs = [], []
    for i in range(0, query.shape[-2], size):
        q = query[..., i : i + size, :]                                    # (..., block, d_k)
        s = torch.zeros_like(q[..., :1])
        m, a = s + torch.finfo(q.dtype).min, q.new_zeros(*q.shape[:-1], value.shape[-1])
        for j, allowed in _tiles(rule, i, query.shape[-2], key.shape[-2], size, query.device):
            m, s, a = merge(m, s, a, *tile(q, key[..., j, :], value[..., j, :], allowed))
        s = s.clamp(min=1)                                                 # less than 1 only in a row without keys
        contexts.append(a / s)
        logs.append(m + s.log())
    return torch.cat(contexts, dim=-2), torch.cat(logs, dim=-2)


class _TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, rule, size):
        context, logs = _forward(query, key, value, rule, size)
        ctx.save_for_backward(query, key, value, context, logs)
        ctx.rule, ctx.size = rule, size
        return context

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, d_context):
        query, key, value, context, logs = ctx.saved_tensors
        d_query, d_key, d_value = map(torch.zeros_like, (query, key, value))
        mean = (d_context * context).sum(dim=-1, keepdim=True)             # (..., query, 1)
        root = math.sqrt(query.shape[-1])
        for start in range(0, query.shape[-2], ctx.size):
            i = slice(start, start + ctx.size)
            for j, allowed in _tiles(ctx.rule, start, query.shape[-2], key.shape[-2], ctx.size, query.device):
                scores = query[..., i, :] @ key[..., j, :].transpose(-2, -1) / root
                weights = (scores.masked_fill(~allowed, -math.inf) - logs[..., i, :]).exp()
                d_value[..., j, :] += weights.transpose(-2, -1) @ d_context[..., i, :]
                d_weights = d_context[..., i, :] @ value[..., j, :].transpose(-2, -1)
                d_scores = weights * (d_weights - mean[..., i, :]) / root
                d_query[..., i, :] += d_scores @ key[..., j, :]
                d_key[..., j, :] += d_scores.transpose(-2, -1) @ query[..., i, :]
        return d_query, d_key, d_value, None, None


def tiled_attention(query: Tensor, key: Tensor, value: Tensor, rule: Rule = everywhere, size: int = 256) -> Tensor:
    """Attention in tiles of size × size: the context, (..., query, d_value).

    Forward as in FlashAttention-2 (Dao 2023, algorithm 1): queries outside, keys inside, one division at the end, one number
    a row kept. Backward by the formulas of the first FlashAttention (Dao et al. 2022, algorithm 4), in the same order.
    query (..., query, d_k), key (..., key, d_k), value (..., key, d_value), all with the same leading dimensions; `rule`
    says who may look at whom. The table of weights is never whole, forward or backward: the weights are computed a second
    time for the gradients. A query without a key gets zeros. Raises TypeError or ValueError for arguments that do not fit.
    """
    check_vectors(query, key, value)
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        raise ValueError(f"the leading dimensions are {tuple(query.shape[:-2])}, {tuple(key.shape[:-2])} and "
                         f"{tuple(value.shape[:-2])}; tiles need the same for query, key and value: expand them first")
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"size={size!r}; it must be a whole number from 1 on, such as 256")
    return _TiledAttention.apply(query, key, value, rule, size)


def window(start: int, stop: int, n: int, before: int, after: int) -> tuple[int, int, Tensor]:
    """Which keys the queries start to stop - 1 of a text of n tokens may see: first, last, allowed.

    Each query sees itself, `before` keys before it and `after` keys after it. All that some query sees is key[first:last];
    allowed (stop - start, last - first) is True where a query sees a key.
    """
    first, last = max(0, start - before), min(n, stop + after)
    i = torch.arange(start, stop)[:, None]
    j = torch.arange(first, last)
    return first, last, (i - before <= j) & (j <= i + after)


def window_attention(query: Tensor, key: Tensor, value: Tensor, before: int, after: int, size: int = 128) -> Tensor:
    """Attention in a window, computed on the keys that it keeps: the context, (..., seq_len, d_value).

    The work is seq_len · (size + before + after) scores. Gradients come by autograd, whose memory grows like the work.
    Raises TypeError or ValueError for arguments that do not fit, and for a number of keys other than that of queries.
    """
    check_vectors(query, key, value)
    n = query.shape[-2]
    if key.shape[-2] != n:
        raise ValueError(f"{n} queries and {key.shape[-2]} keys; a window needs one text, with as many keys as queries")
    for name, number, low in (("before", before, 0), ("after", after, 0), ("size", size, 1)):
        if not isinstance(number, int) or number < low:
            raise ValueError(f"{name}={number!r}; it must be a whole number from {low} on")
    contexts = []
    for start in range(0, n, size):
        first, last, allowed = window(start, min(start + size, n), n, before, after)
        scores = query[..., start : start + size, :] @ key[..., first:last, :].transpose(-2, -1)
        scores = (scores / math.sqrt(query.shape[-1])).masked_fill(~allowed.to(query.device), -math.inf)
        contexts.append(scores.softmax(dim=-1) @ value[..., first:last, :])
    return torch.cat(contexts, dim=-2)


def cache_bytes(
    tokens: int, num_layers: int, num_heads: int, num_key_heads: int, d_head: int, bytes_each: int,
    window: int | None = None,
) -> int:
    """Bytes of the keys and values that a language model keeps of a text of so many tokens.

    `num_heads` heads ask, `num_key_heads` have keys and values of their own, `bytes_each` is the size of one number. With a
    `window`, each layer keeps the last so many tokens.
    """
    kept = tokens if window is None else min(tokens, window)
    return 2 * num_layers * num_key_heads * d_head * bytes_each * kept
