"""The course's answers to the exercises of notebook 04, and what each known mistake would write."""

import math

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 4.1

SCORES = torch.tensor([0.0, 2.0, 0.0, -2.0])


def row_by_hand():
    # scores 0, 2, 0, -2; their exponentials 1, 7.389, 1, 0.135 sum to 9.524
    return [0.105, 0.776, 0.105, 0.014]


ROW = Answers(
    row_by_hand,
    mutants={
        "scores": lambda: SCORES,
        "no-exponential": lambda: SCORES / SCORES.abs().sum(),
        "not-divided": lambda: SCORES.exp(),
        "scaled": lambda: (SCORES / math.sqrt(3)).softmax(dim=0),
        "wrong-sign": lambda: (-SCORES).softmax(dim=0),
        "dull-row": lambda: (SCORES / 2).softmax(dim=0),
    },
)

# ---------------------------------------------------------------- 4.2

def scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    weights = scores.softmax(dim=-1)                                       # each row sums to one
    return weights @ value, weights


def _attention(scale=None, dim=-1, after=1.0, soft=True, hard=False, of_keys=False, swap=False):
    """Scaled attention with one or more things changed."""
    def attention(query, key, value):
        divisor = math.sqrt(query.shape[-1]) if scale is None else scale(query, key, value)
        scores = query @ key.transpose(-2, -1) / divisor
        weights = scores.softmax(dim=dim) if soft else scores
        if hard:
            weights = F.one_hot(scores.argmax(dim=-1), scores.shape[-1]).to(scores.dtype)
        if after != 1.0:
            weights = weights / math.sqrt(query.shape[-1])
        context = weights @ (key if of_keys else value)
        return (weights, context) if swap else (context, weights)
    return attention


SCALED = Answers(
    scaled_attention,
    mutants={
        "softmax-over-queries": _attention(dim=-2),
        "no-scaling": _attention(scale=lambda q, k, v: 1.0),
        "divided-by-d_k": _attention(scale=lambda q, k, v: q.shape[-1]),
        "scaled-by-values": _attention(scale=lambda q, k, v: math.sqrt(v.shape[-1])),
        "scaled-by-length": _attention(scale=lambda q, k, v: math.sqrt(k.shape[-2])),
        "scaled-after-softmax": _attention(scale=lambda q, k, v: 1.0, after=2.0),
        "multiplied": _attention(scale=lambda q, k, v: 1 / math.sqrt(q.shape[-1])),
        "no-softmax": _attention(soft=False),
        "hard": _attention(hard=True),
        "keys-for-values": _attention(of_keys=True),
        "swapped": _attention(swap=True),
    },
)

# ---------------------------------------------------------------- 4.3

def masked_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    scores = scores.masked_fill(~mask, -math.inf)                          # before the softmax
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def _masked(fill=-math.inf, flip=False, after=False, ignore=False, scaled=True):
    def attention(query, key, value, mask):
        scores = query @ key.transpose(-2, -1) / (math.sqrt(query.shape[-1]) if scaled else 1.0)
        allowed = ~mask if flip else mask
        if not after and not ignore:
            scores = scores.masked_fill(~allowed, fill)
        weights = scores.softmax(dim=-1)
        if after:
            weights = weights.masked_fill(~allowed, 0.0)
        return weights @ value, weights
    return attention


def _added(query, key, value, mask):
    bias = torch.zeros(mask.shape).masked_fill(mask.logical_not(), -1e9)
    weights = (query @ key.mT / query.shape[-1] ** 0.5 + bias).softmax(-1)
    return weights @ value, weights


MASKED = Answers(
    masked_attention,
    mutants={
        "mask-after-softmax": _masked(after=True),
        "filled-with-zero": _masked(fill=0.0),
        "filled-with-minus-one": _masked(fill=-1.0),
        "inverted": _masked(flip=True),
        "ignored": _masked(ignore=True),
        "no-scaling": _masked(scaled=False),
        "inverted-after-softmax": _masked(after=True, flip=True),
    },
)

# ---------------------------------------------------------------- 4.4

def decoder_mask(attention_mask, query_len):
    key_len = attention_mask.shape[1]
    causal = torch.ones(query_len, key_len, dtype=torch.bool).tril(key_len - query_len)   # (query, key)
    return causal & attention_mask[:, None, None, :]                                      # (batch, 1, query, key)


def _mask(join="and", shift=0, causal=True, padding=True, upper=False, flip=False, of_queries=False, top_left=False):
    def build(attention_mask, query_len):
        batch, key_len = attention_mask.shape
        offset = 0 if top_left else key_len - query_len
        ones = torch.ones(query_len, key_len, dtype=torch.bool)
        triangle = ones.triu(offset) if upper else ones.tril(offset + shift)
        real = attention_mask[:, None, None, :].expand(batch, 1, query_len, key_len)
        if of_queries:
            real = attention_mask[:, None, -query_len:, None].expand(batch, 1, query_len, key_len)
        triangle = triangle.expand(real.shape)
        both = triangle | real if join == "or" else (triangle if causal else ones) & (real if padding else ones)
        return ~both if flip else both
    return build


BOTH_MASKS = Answers(
    decoder_mask,
    mutants={
        "or": _mask(join="or"),
        "only-causal": _mask(padding=False),
        "only-padding": _mask(causal=False),
        "without-itself": _mask(shift=-1),
        "upper": _mask(upper=True),
        "inverted": _mask(flip=True),
        "queries-masked": _mask(of_queries=True),
        "top-left": _mask(top_left=True),
        "one-too-many": _mask(shift=1),
        "additive": lambda real, n: torch.zeros(()).masked_fill(~decoder_mask(real, n), -math.inf),
    },
)

# ---------------------------------------------------------------- 4.5

def safe_attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])    # (..., query, key)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)      # not -inf: no 0 divided by 0
    weights = scores.softmax(dim=-1).masked_fill(~mask, 0.0)               # the row without a key: zeros
    return weights @ value, weights


def _uniform(query, key, value, mask):
    return _added(query, key, value, mask)


NO_KEY = Answers(
    safe_attention,
    mutants={"nan": masked_attention, "uniform": _uniform},
)

# ---------------------------------------------------------------- 4.6

def design_head():
    # first column: each opinion seeks the opposite one; second: 'but' pushes 'not' and itself down
    W_q = torch.tensor([[6.0, 0.0], [0.0, 0.0], [0.0, 6.0]])
    W_k = torch.tensor([[-1.0, 0.0], [0.0, -1.0], [0.0, -1.0]])
    W_v = torch.tensor([[1.0], [0.0], [0.0]])
    return W_q, W_k, W_v


def _design(opinion=-1.0, but=(0.0, -1.0, -1.0), home=(1.0, 0.0, 0.0)):
    """`but` is what opinion, 'not' and 'but' are found by when 'but' asks; large numbers, for clear weights."""
    def design():
        W_q = 40 * torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
        return W_q, torch.tensor([[opinion, but[0]], [0.0, but[1]], [0.0, but[2]]]), torch.tensor(home)[:, None]
    return design


DESIGN = Answers(
    design_head,
    mutants={
        "finds-its-like": _design(opinion=1.0),
        "silent-but": _design(but=(0.0, 0.0, 0.0)),
        "but-seeks-one": _design(but=(1.0, 0.0, 0.0)),
        "but-seeks-the-rest": _design(but=(0.0, 1.0, 1.0)),
        "not-left-in": _design(but=(0.0, 0.0, -1.0)),
        "but-left-in": _design(but=(0.0, -1.0, 0.0)),
        "home-turned": _design(home=(-1.0, 0.0, 0.0)),
        "home-empty": _design(home=(0.0, 1.0, 0.0)),
    },
)

ANSWERS = (ROW, SCALED, MASKED, BOTH_MASKS, NO_KEY, DESIGN)
