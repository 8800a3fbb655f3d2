"""Solutions of the exercises of notebook 05, accepted variants, and the answers that known mistakes give."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers
from course_utils.multi_head_attention import MultiHeadAttention

# ---------------------------------------------------------------- 5.1


def into_heads(x, num_heads):
    d_head = x.shape[-1] // num_heads
    return x.unflatten(-1, (num_heads, d_head)).transpose(1, 2)            # (batch, heads, length, d_head)


def _split_loops(x, num_heads):
    batch, length, d_model = x.shape
    out = torch.zeros(batch, num_heads, length, d_model // num_heads)
    for b in range(batch):
        for h in range(num_heads):
            for position in range(length):
                for d in range(d_model // num_heads):
                    out[b, h, position, d] = x[b, position, h * (d_model // num_heads) + d]
    return out


def _split_recursively(x, num_heads):
    if num_heads == 1:
        return x[:, None]
    width = x.shape[-1] // num_heads
    return torch.cat([x[:, None, :, :width], _split_recursively(x[..., width:], num_heads - 1)], dim=1)


def _sizes(x, num_heads):
    batch, length, d_model = x.shape
    return batch, length, num_heads, d_model // num_heads


def _split_by_view(x, n):
    batch, length, heads, d_head = _sizes(x, n)
    return x.reshape(batch, heads, length, d_head)


def _split_transposed_first(x, n):
    batch, length, heads, d_head = _sizes(x, n)
    return x.transpose(1, 2).reshape(batch, heads, length, d_head)


SPLIT = Answers(
    into_heads,
    variants={
        "view and permute": lambda x, n: x.view(*_sizes(x, n)).permute(0, 2, 1, 3),
        "chunks": lambda x, n: torch.stack(x.chunk(n, dim=-1), dim=1),
        "slices": lambda x, n: torch.stack([x[..., h * (x.shape[-1] // n):(h + 1) * (x.shape[-1] // n)]
                                            for h in range(n)]).transpose(0, 1),
        "loops": _split_loops,
        "numpy": lambda x, n: np.swapaxes(x.numpy().reshape(_sizes(x, n)), 1, 2),
        "list of heads": lambda x, n: [list(torch.stack(t.chunk(n, dim=-1))) for t in x],
        "cut off one by one": _split_recursively,
        "columns looked up": lambda x, n: x[:, :, torch.arange(x.shape[-1]).view(n, -1)].movedim(2, 1),
        "columns first": lambda x, n: x.transpose(1, 2).unflatten(1, (n, -1)).transpose(2, 3),
    },
    mutants={
        "view": _split_by_view,
        "not-transposed": lambda x, n: x.unflatten(-1, (n, -1)),
        "interleaved": lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2),
        "transposed-first": _split_transposed_first,
        "last-two-swapped": lambda x, n: into_heads(x, n).transpose(-2, -1),
        "heads-in-front": lambda x, n: torch.stack(x.chunk(n, dim=-1)),
        "folded": lambda x, n: into_heads(x, n).flatten(0, 1),
        "sizes-swapped": lambda x, n: x.unflatten(-1, (-1, n)).transpose(1, 2),
    },
)

# ---------------------------------------------------------------- 5.2


def join_heads(x):
    return x.transpose(1, 2).flatten(-2)                                   # (batch, length, heads * d_head)


def _join_loops(x):
    batch, heads, length, d_head = x.shape
    out = torch.zeros(batch, length, heads * d_head)
    for h in range(heads):
        for position in range(length):
            out[:, position, h * d_head:(h + 1) * d_head] = x[:, h, position]
    return out


MERGE = Answers(
    join_heads,
    variants={
        "contiguous view": lambda x: x.transpose(1, 2).contiguous().view(x.shape[0], x.shape[2], -1),
        "reshape": lambda x: x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1),
        "side by side": lambda x: torch.cat([x[:, h] for h in range(x.shape[1])], dim=-1),
        "numpy": lambda x: np.concatenate(list(x.double().numpy().swapaxes(0, 1)), axis=-1),
        "loops": _join_loops,
        "words in tuples": lambda x: tuple(tuple(torch.cat(tuple(t[:, word])) for word in range(t.shape[1])) for t in x),
        "vmap": torch.func.vmap(torch.func.vmap(torch.flatten, in_dims=1)),
    },
    mutants={
        "view": lambda x: x.reshape(x.shape[0], x.shape[2], -1),
        "wrong-pair": lambda x: x.transpose(2, 3).reshape(x.shape[0], x.shape[2], -1),
        "interleaved": lambda x: x.permute(0, 2, 3, 1).flatten(-2),
        "averaged": lambda x: x.mean(dim=1),
        "summed": lambda x: x.sum(dim=1),
        "below": lambda x: x.flatten(1, 2),
        "rows-of-heads": lambda x: x.transpose(1, 2).flatten(1, 2),
        "not-flattened": lambda x: x.transpose(1, 2),
    },
)

# ---------------------------------------------------------------- 5.3

ONE_MAP = 512 * 512 + 512


def count_parameters():
    one_map = 512 * 512 + 512                                              # weights and biases of one nn.Linear
    return 4 * one_map                                                     # query, key, value, output; heads share the width


COUNT = Answers(
    count_parameters,
    variants={
        "built": lambda: sum(p.numel() for p in MultiHeadAttention(512, 8).parameters()),
        "library": lambda: sum(p.numel() for p in torch.nn.MultiheadAttention(512, 8).parameters()),
        "head by head": lambda: 8 * 3 * (512 * 64 + 64) + 512 * 512 + 512,
        "a text": lambda: "1_050_624",
        "numpy": lambda: np.int64(1050624),
    },
    mutants={
        "no-biases": lambda: 4 * 512**2,
        "no-output": lambda: 3 * ONE_MAP,
        "one-map": lambda: ONE_MAP,
        "one-bias": lambda: 4 * 512**2 + 512,
        "eight-layers": lambda: 8 * 4 * ONE_MAP,
        "wide-heads": lambda: 8 * 3 * ONE_MAP + ONE_MAP,
        "one-head": lambda: 4 * (512 * 64 + 64),
        "narrow-maps": lambda: 8 * 4 * (64 * 64 + 64),
    },
)

# ---------------------------------------------------------------- 5.4


def attention_in_heads(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    batch, length, d_model = x.shape
    d_head = d_model // num_heads
    query, key, value = (
        (x @ W).unflatten(-1, (num_heads, d_head)).transpose(1, 2)         # (batch, heads, length, d_head)
        for W in (W_query, W_key, W_value)
    )
    scores = query @ key.transpose(-2, -1) / d_head**0.5                   # (batch, heads, query, key)
    scores = scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))
    weights = scores.softmax(dim=-1)
    merged = (weights @ value).transpose(1, 2).flatten(-2)                 # (batch, query, d_model)
    return merged @ W_output, weights


def _heads(split=into_heads, merge=join_heads, divisor=None, shared=False, output=True, averaged=False, mask="keys",
           dim=-1, transposed=False):
    """The layer with one or more things changed."""
    def layer(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
        if shared:
            W_key = W_value = W_query
        if transposed:
            W_query, W_key, W_value, W_output = W_query.T, W_key.T, W_value.T, W_output.T
        query, key, value = (split(x @ W, num_heads) for W in (W_query, W_key, W_value))
        allowed = attention_mask[:, None, :, None] if mask == "queries" else attention_mask[:, None, None, :]
        if mask == "inverted":
            allowed = ~allowed
        scores = query @ key.mT / (math.sqrt(query.shape[-1]) if divisor is None else divisor(x, num_heads))
        if mask in ("keys", "queries", "inverted"):
            scores = scores.masked_fill(~allowed, -math.inf)
        weights = scores.softmax(dim=dim)
        if dim == -2 or mask == "after":
            weights = weights.masked_fill(~allowed, 0.0)
        context = weights @ value                                          # (batch, heads, query, d_head)
        merged = context.mean(dim=1).repeat(1, 1, num_heads) if averaged else merge(context)
        return merged @ W_output if output else merged, weights
    return layer


def _softmax_over_queries(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    query, key, value = (into_heads(x @ W, num_heads) for W in (W_query, W_key, W_value))
    scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~attention_mask[:, None, None, :], -1e9)
    weights = scores.softmax(dim=-2)
    return join_heads(weights @ value) @ W_output, weights


def _softmax_over_queries_nan(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    query, key, value = (into_heads(x @ W, num_heads) for W in (W_query, W_key, W_value))
    scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~attention_mask[:, None, None, :], -math.inf)
    weights = scores.softmax(dim=-2)
    return join_heads(weights @ value) @ W_output, weights


def _one_head(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    return attention_in_heads(x, W_query, W_key, W_value, W_output, 1, attention_mask)


def _merge_by_view(context):
    return context.reshape(context.shape[0], context.shape[2], -1)


def _head_by_head(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    width = x.shape[-1] // num_heads
    total, maps = 0, []
    for h in range(num_heads):
        own = slice(h * width, (h + 1) * width)
        scores = (x @ W_query[:, own]) @ (x @ W_key[:, own]).mT * width**-0.5
        weights = torch.where(attention_mask[:, None, :], scores, torch.tensor(-1e9)).softmax(-1)
        total = total + weights @ (x @ W_value[:, own]) @ W_output[own]    # each head's own output map, added
        maps.append(weights)
    return total, torch.stack(maps, dim=1)


def _einsum(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    q, k, v = (torch.einsum("bld,dhe->bhle", x, W.reshape(len(W), num_heads, -1)) for W in (W_query, W_key, W_value))
    weights = torch.einsum("bhqe,bhke->bhqk", q, k).div(q.shape[-1] ** 0.5)
    weights = weights.add((~attention_mask[:, None, None, :]).float() * -1e9).softmax(-1)
    return [torch.einsum("bhqk,bhke,hed->bqd", weights, v, W_output.reshape(num_heads, -1, len(W_output))), weights]


def _fused(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    q, k, v = (into_heads(x @ W, num_heads) for W in (W_query, W_key, W_value))
    mask = attention_mask[:, None, None, :]
    bias = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)          # the mask as numbers to be added
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return join_heads(context) @ W_output, (q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1)


def _text_by_text(x, W_query, W_key, W_value, W_output, num_heads, attention_mask):
    contexts, maps = [], []
    for text, real in zip(x, attention_mask):
        words, context, rows = text[real], 0, []                           # padding is cut off, not masked
        parts = zip(*(W.chunk(num_heads, 1) for W in (W_query, W_key, W_value)), W_output.chunk(num_heads))
        for q, k, v, o in parts:
            row = torch.softmax(text @ q @ (words @ k).T / q.shape[1] ** 0.5, 1)
            context = context + row @ (words @ v) @ o
            rows.append(torch.nn.functional.pad(row, (0, len(text) - len(words))))
        contexts.append(context)
        maps.append(torch.stack(rows))
    return torch.stack(contexts), torch.stack(maps)


HEADS = Answers(
    attention_in_heads,
    variants={"head by head": _head_by_head, "einsum": _einsum,
              "fused": _fused, "text by text": _text_by_text},
    mutants={
        "views": _heads(split=_split_by_view, merge=_merge_by_view),
        "view-split": _heads(split=_split_by_view),
        "view-merge": _heads(merge=_merge_by_view),
        "scaled-by-d_model": _heads(divisor=lambda x, n: math.sqrt(x.shape[-1])),
        "no-scaling": _heads(divisor=lambda x, n: 1.0),
        "shared-projection": _heads(shared=True),
        "no-output": _heads(output=False),
        "averaged": _heads(averaged=True),
        "mask-inverted": _heads(mask="inverted"),
        "mask-ignored": _heads(mask="none"),
        "mask-after-softmax": _heads(mask="after"),
        "queries-masked": _heads(mask="queries"),
        "softmax-over-queries": _softmax_over_queries,
        "softmax-over-queries-nan": _softmax_over_queries_nan,
        "matrices-transposed": _heads(transposed=True),
        "one-head": _one_head,
    },
)

# ---------------------------------------------------------------- 5.5


def difference_of_blind_heads():
    # the same word in 1 of 5 cases: equal rows, D = 0; in the other 4 of 5 no common word, D = 1
    return 1 / 5 * 0 + 4 / 5 * 1


BLIND = Answers(
    difference_of_blind_heads,
    variants={
        "all 25 pairs": lambda: torch.tensor([[float(i != j) for i in range(5)] for j in range(5)]).mean(),
        "a text": lambda: "0,8",
        "by entropies": lambda: (
            20 / 25 * (-2 * 0.5 * np.log(0.5)) / np.log(2)
        ),
    },
    mutants={
        "always-apart": lambda: 1.0,
        "same": lambda: 0.2,
        "one-word": lambda: 1 - 1 / 25,
        "nats": lambda: 0.8 * math.log(2),
        "without-return": lambda: 0.75,
        "never-apart": lambda: 0.0,
        "per-cent": lambda: 80.0,
    },
)

ANSWERS = {"5.1": SPLIT, "5.2": MERGE, "5.3": COUNT, "5.4": HEADS, "5.5": BLIND}
