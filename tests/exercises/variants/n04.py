"""Other right answers to the exercises of notebook 04, which a check must accept."""


import torch
from torch.nn import functional as F

from course_exercises.n04 import SCORES, decoder_mask, masked_attention


def _einsum(query, key, value):
    weights = torch.softmax(torch.einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5, -1)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def _where(query, key, value, mask):
    scores = torch.where(mask, query @ key.mT / query.shape[-1] ** 0.5, torch.finfo(query.dtype).min)
    return F.softmax(scores, -1) @ value, F.softmax(scores, -1)


def _zeros_and_ones(attention_mask, query_len):
    return decoder_mask(attention_mask, query_len).int().numpy()


def _nan_after(query, key, value, mask):
    context, weights = masked_attention(query, key, value, mask)
    return context.nan_to_num(), weights.nan_to_num()


VARIANTS = {
    "4.1": {"exact": lambda: SCORES.softmax(dim=0), "two decimals": lambda: [0.10, 0.78, 0.10, 0.01]},
    "4.2": {"einsum": _einsum},
    "4.3": {"where": _where},
    "4.4": {"zeros and ones": _zeros_and_ones},
    "4.5": {"nan to zero": _nan_after},
    "4.6": {"lists": lambda: ([[8.0, 0.0], [0.0, 0.0], [0.0, 8.0]], [[-1.0, 0.0], [0.0, -1.0], [0.0, -1.0]],
                [[1.0], [0.0], [0.0]])},
}
