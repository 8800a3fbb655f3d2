"""Solutions of the exercises of notebook 04, accepted variants, and the answers that known mistakes give."""

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
    variants={"exact": lambda: SCORES.softmax(dim=0), "three decimals": lambda: torch.tensor([0.105, 0.776, 0.105, 0.014]),
              "two decimals": lambda: [0.10, 0.78, 0.10, 0.01], "two, rounded up": lambda: (0.11, 0.78, 0.11, 0.01)},
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


def _loops(query, key, value):
    lead = query.shape[:-2]
    flat = [t.reshape(-1, *t.shape[-2:]) for t in (query, key, value)]
    rows, contexts = [], []
    for q, k, v in zip(*flat):
        for one in q:
            scores = torch.stack([(one * other).sum() / one.shape[0] ** 0.5 for other in k])
            exps = (scores - scores.max()).exp()
            rows.append(exps / exps.sum())
            contexts.append(sum(weight * vector for weight, vector in zip(rows[-1], v)))
    weights = torch.stack(rows).reshape(*lead, query.shape[-2], key.shape[-2])
    return torch.stack(contexts).reshape(*lead, query.shape[-2], value.shape[-1]), weights


def _einsum(query, key, value):
    weights = torch.softmax(torch.einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5, -1)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def _query_scaled_first(query, key, value):
    scores = (query / query.size(-1) ** 0.5) @ key.mT
    scores = scores - scores.amax(-1, keepdim=True)
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    return [weights @ value, weights]


def _recursive(query, key, value):
    if query.dim() > 2:                                                    # one leading dimension less each time
        parts = [_recursive(*three) for three in zip(query, key, value)]
        return torch.stack([part[0] for part in parts]), torch.stack([part[1] for part in parts])
    weights = torch.softmax(query @ key.T / len(query[0]) ** 0.5, 1)
    return weights @ value, weights


class _Module(torch.nn.Module):
    def forward(self, query, key, value):
        scores = torch.matmul(query.double(), key.double().swapaxes(-1, -2)).div_(math.sqrt(key.size(-1)))
        weights = torch.nn.Softmax(-1)(scores)
        return torch.matmul(weights, value.double()), weights


SCALED = Answers(
    scaled_attention,
    variants={"loops": _loops, "einsum": _einsum, "query scaled first": _query_scaled_first,
              "recursive": _recursive, "module in float64": _Module(),
              "lists": lambda q, k, v: [part.tolist() for part in _recursive(q, k, v)]},
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


def _renormalised(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    largest = scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True)
    weights = (scores - largest).clamp(max=0).exp() * mask
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ value, weights


def _added(query, key, value, mask):
    bias = torch.zeros(mask.shape).masked_fill(mask.logical_not(), -1e9)
    weights = (query @ key.mT / query.shape[-1] ** 0.5 + bias).softmax(-1)
    return weights @ value, weights


def _where(query, key, value, mask):
    scores = torch.where(mask, query @ key.mT / query.shape[-1] ** 0.5, torch.finfo(query.dtype).min)
    return F.softmax(scores, -1) @ value, F.softmax(scores, -1)


def _log_of_mask(query, key, value, mask):
    weights = torch.softmax(query @ key.mT / query.shape[-1] ** 0.5 + mask.float().log(), -1)   # log 0 is -inf
    return weights @ value, weights


def _indexed(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    scores[~mask.expand_as(scores)] = -1e4
    return scores.softmax(-1) @ value, scores.softmax(-1)


MASKED = Answers(
    masked_attention,
    variants={"renormalised": _renormalised, "added": _added, "where": _where,
              "log of the mask": _log_of_mask, "indexed": _indexed},
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


def _positions(attention_mask, query_len):
    key_len = attention_mask.size(1)
    i = torch.arange(query_len).view(1, 1, -1, 1) + key_len - query_len
    j = torch.arange(key_len).view(1, 1, 1, -1)
    return (j <= i) * attention_mask.unsqueeze(1).unsqueeze(1)


def _mask_loops(attention_mask, query_len):
    batch, key_len = attention_mask.shape
    mask = torch.zeros(batch, 1, query_len, key_len, dtype=torch.bool)
    for b in range(batch):
        for i in range(query_len):
            for j in range(key_len):
                mask[b, 0, i, j] = bool(attention_mask[b, j]) and j - i <= key_len - query_len
    return mask


def _zeros_and_ones(attention_mask, query_len):
    return decoder_mask(attention_mask, query_len).int().numpy()


BOTH_MASKS = Answers(
    decoder_mask,
    variants={"positions": _positions, "loops": _mask_loops, "zeros and ones": _zeros_and_ones,
              "last rows": lambda real, n: torch.ones(2 * real.shape[1:]).tril()[-n:].bool() & real.unflatten(0, (-1, 1, 1)),
              "smaller of two": lambda real, n: torch.minimum(torch.ones(n, real.shape[1]).tril(real.shape[1] - n),
                                                              real[:, None, None, :].float())},
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


def _nan_after(query, key, value, mask):
    context, weights = masked_attention(query, key, value, mask)
    return context.nan_to_num(), weights.nan_to_num()


def _uniform(query, key, value, mask):
    return _added(query, key, value, mask)


def _only_rows_with_keys(query, key, value, mask):
    mask = mask.expand(*query.shape[:-1], key.shape[-2])
    some = mask.any(-1, keepdim=True)
    weights = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask & some, -math.inf).softmax(-1) * some
    return weights @ value, weights


def _exponentials(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    largest = scores.detach().masked_fill(~mask, -1e30).amax(-1, keepdim=True)    # among the keys that are allowed
    exps = torch.where(mask, scores - largest, -math.inf).exp()
    weights = exps / exps.sum(-1, keepdim=True).clamp(min=1e-12)
    return weights @ value, weights


def _extra_key(query, key, value, mask):
    scores = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -math.inf)
    last = torch.where(mask.any(-1, keepdim=True), -math.inf, 0.0).expand(*scores.shape[:-1], 1)  # takes what is left
    weights = torch.cat([scores, last], -1).softmax(-1)[..., :-1]
    return [weights @ value, weights]


NO_KEY = Answers(
    safe_attention,
    variants={"only rows with keys": _only_rows_with_keys, "nan to zero": _nan_after, "exponentials": _exponentials,
              "one key more": _extra_key,
              "multiplied": lambda q, k, v, m: ((w := _uniform(q, k, v, m)[1] * m) @ v, w)},
    mutants={"nan": masked_attention, "uniform": _uniform},
)

ANSWERS = {"4.1": ROW, "4.2": SCALED, "4.3": MASKED, "4.4": BOTH_MASKS, "4.5": NO_KEY}
