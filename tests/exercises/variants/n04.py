"""Other right answers to the exercises of notebook 04, which a check must accept."""

import math

import torch
from torch.nn import functional as F

from course_exercises.n04 import SCORES, decoder_mask, masked_attention


def _added(query, key, value, mask):
    bias = torch.zeros(mask.shape).masked_fill(mask.logical_not(), -1e9)
    weights = (query @ key.mT / query.shape[-1] ** 0.5 + bias).softmax(-1)
    return weights @ value, weights


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


def _renormalised(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    largest = scores.masked_fill(~mask, -math.inf).amax(-1, keepdim=True)
    weights = (scores - largest).clamp(max=0).exp() * mask
    weights = weights / weights.sum(-1, keepdim=True)
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


def _nan_after(query, key, value, mask):
    context, weights = masked_attention(query, key, value, mask)
    return context.nan_to_num(), weights.nan_to_num()


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


def _signs_exchanged():
    """The sign turned in the queries instead of the keys, and the columns exchanged."""
    return (torch.tensor([[0.0, -9.0], [0.0, 0.0], [9.0, 0.0]]), torch.tensor([[0.0, 1.0], [-2.0, 0.0], [-2.0, 0.0]]),
            torch.tensor([[1.0], [0.0], [0.0]]))


def _three_columns():
    return (torch.diag(torch.tensor([8.0, 0.0, 8.0])), torch.tensor([[-1.0, 0, 0], [0, 0, -1.0], [0, 0, -1.0]]),
            torch.tensor([[1.0], [0.0], [0.0]]))


VARIANTS = {
    "4.1": {"exact": lambda: SCORES.softmax(dim=0), "three decimals": lambda: torch.tensor([0.105, 0.776, 0.105, 0.014]),
            "two decimals": lambda: [0.10, 0.78, 0.10, 0.01], "two, rounded up": lambda: (0.11, 0.78, 0.11, 0.01)},
    "4.2": {"loops": _loops, "einsum": _einsum, "query scaled first": _query_scaled_first,
            "recursive": _recursive, "module in float64": _Module(),
            "lists": lambda q, k, v: [part.tolist() for part in _recursive(q, k, v)]},
    "4.3": {"renormalised": _renormalised, "added": _added, "where": _where,
            "log of the mask": _log_of_mask, "indexed": _indexed},
    "4.4": {"positions": _positions, "loops": _mask_loops, "zeros and ones": _zeros_and_ones,
            "last rows": lambda real, n: torch.ones(2 * real.shape[1:]).tril()[-n:].bool() & real.unflatten(0, (-1, 1, 1)),
            "smaller of two": lambda real, n: torch.minimum(torch.ones(n, real.shape[1]).tril(real.shape[1] - n),
                                                            real[:, None, None, :].float())},
    "4.5": {"only rows with keys": _only_rows_with_keys, "nan to zero": _nan_after, "exponentials": _exponentials,
            "one key more": _extra_key,
            "multiplied": lambda q, k, v, m: ((w := _added(q, k, v, m)[1] * m) @ v, w)},
    "4.6": {"signs exchanged": _signs_exchanged, "three columns": _three_columns,
            "lists": lambda: ([[8.0, 0.0], [0.0, 0.0], [0.0, 8.0]], [[-1.0, 0.0], [0.0, -1.0], [0.0, -1.0]],
                              [[1.0], [0.0], [0.0]])},
}
