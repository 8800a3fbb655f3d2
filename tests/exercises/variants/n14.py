"""Other right answers to the exercises of notebook 14, which a check must accept."""


import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def _hidden_by_where(token_ids, chosen, fate, others, mask_id):
    changed = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, others, token_ids))
    return torch.where(chosen, changed, token_ids)


def _cut_by_recursion(word, vocabulary, begun=""):
    if not word:
        return []
    for end in reversed(range(1, len(word) + 1)):
        if begun + word[:end] in vocabulary:
            rest = _cut_by_recursion(word[end:], vocabulary, "##")
            return ["[UNK]"] if rest == ["[UNK]"] else [begun + word[:end], *rest]
    return ["[UNK]"]


def _loss_by_loops(logits, token_ids, chosen):
    total, count = 0.0 * logits.sum(), 0
    for row, column in chosen.nonzero().tolist():
        scores = logits[row, column]
        total, count = total + scores.logsumexp(0) - scores[token_ids[row, column]], count + 1
    return total / max(count, 1)


def _half_by_norm_module(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    norm = nn.LayerNorm(x.shape[-1], eps=eps, dtype=x.dtype)
    norm.weight.data, norm.bias.data = gain, shift
    return norm(x + F.linear(F.gelu(F.linear(x, expand, expand_bias)), contract, contract_bias))


VARIANTS = {
    "14.1": {"where": _hidden_by_where},
    "14.2": {"recursion": _cut_by_recursion},
    "14.3": {"loops": _loss_by_loops},
    "14.4": {"a module": _half_by_norm_module},
    "14.5": {"one product": lambda encoder, ids, mask, weight, bias: torch.addmm(
                 bias, (mask.float()[:, None] @ encoder(ids, mask))[:, 0] / mask.sum(1, keepdim=True), weight.T)},
    "14.6": {"numpy": lambda weight, rank: (np.random.default_rng(0).normal(size=(rank, weight.shape[1])),
                 np.zeros((weight.shape[0], rank)))},
}
