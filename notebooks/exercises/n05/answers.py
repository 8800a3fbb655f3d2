"""The course's answers to the exercises of notebook 05, and what each known mistake would write."""

import math

import torch

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 5.1

def into_heads(x, num_heads):
    d_head = x.shape[-1] // num_heads
    return x.unflatten(-1, (num_heads, d_head)).transpose(1, 2)            # (batch, heads, length, d_head)


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


MERGE = Answers(
    join_heads,
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

def attention_in_heads(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
    batch, length, d_model = x.shape
    d_head = d_model // num_heads
    query, key, value = (
        (x @ W).unflatten(-1, (num_heads, d_head)).transpose(1, 2)         # (batch, heads, length, d_head)
        for W in (W_q, W_k, W_v)
    )
    scores = query @ key.transpose(-2, -1) / d_head**0.5                   # (batch, heads, query, key)
    scores = scores.masked_fill(~attention_mask[:, None, None, :], float("-inf"))
    weights = scores.softmax(dim=-1)
    merged = (weights @ value).transpose(1, 2).flatten(-2)                 # (batch, query, d_model)
    return merged @ W_o, weights


def _heads(split=into_heads, merge=join_heads, divisor=None, shared=False, output=True, averaged=False, mask="keys",
           dim=-1, transposed=False):
    """The layer with one or more things changed."""
    def layer(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
        if shared:
            W_k = W_v = W_q
        if transposed:
            W_q, W_k, W_v, W_o = W_q.T, W_k.T, W_v.T, W_o.T
        query, key, value = (split(x @ W, num_heads) for W in (W_q, W_k, W_v))
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
        return merged @ W_o if output else merged, weights
    return layer


def _softmax_over_queries(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
    query, key, value = (into_heads(x @ W, num_heads) for W in (W_q, W_k, W_v))
    scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~attention_mask[:, None, None, :], -1e9)
    weights = scores.softmax(dim=-2)
    return join_heads(weights @ value) @ W_o, weights


def _softmax_over_queries_nan(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
    query, key, value = (into_heads(x @ W, num_heads) for W in (W_q, W_k, W_v))
    scores = (query @ key.mT / math.sqrt(query.shape[-1])).masked_fill(~attention_mask[:, None, None, :], -math.inf)
    weights = scores.softmax(dim=-2)
    return join_heads(weights @ value) @ W_o, weights


def _one_head(x, W_q, W_k, W_v, W_o, num_heads, attention_mask):
    return attention_in_heads(x, W_q, W_k, W_v, W_o, 1, attention_mask)


def _merge_by_view(context):
    return context.reshape(context.shape[0], context.shape[2], -1)


HEADS = Answers(
    attention_in_heads,
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

ANSWERS = (SPLIT, MERGE, COUNT, HEADS, BLIND)
