"""Other right answers to the exercises of notebook 14, which a check must accept."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def _hidden_by_loops(token_ids, chosen, fate, others, mask_id):
    rows = token_ids.tolist()
    for row, places in enumerate(chosen.tolist()):
        for column, asked in enumerate(places):
            number = float(fate[row, column])
            if asked and number < 0.8:
                rows[row][column] = mask_id
            elif asked and number < 0.9:
                rows[row][column] = int(others[row, column])
    return rows


def _hidden_in_a_copy(token_ids, chosen, fate, others, mask_id):
    inputs = token_ids.clone()
    swapped = chosen & (fate >= 0.8) & ~(fate >= 0.9)
    inputs[chosen & (fate < 0.8)] = mask_id
    inputs[swapped] = others[swapped]
    return inputs


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


def _cut_by_sorting(word, vocabulary):
    """The vocabulary by length, the longest first."""
    pieces, rest, begun = [], word, ""
    while rest:
        fitting = [p for p in vocabulary if p.startswith("##") == bool(begun) and rest.startswith(p.removeprefix(begun))]
        if not fitting:
            return ("[UNK]",)
        best = max(fitting, key=len)
        pieces.append(best)
        rest, begun = rest[len(best) - len(begun):], "##"
    return tuple(pieces)


def _cut_as_in_the_original(word, vocabulary):
    """Google's loops (Devlin et al. 2019)."""
    bad, start, found = False, 0, []
    while start < len(word):
        end, current = len(word), None
        while start < end:
            substring = word[start:end]
            if start > 0:
                substring = "##" + substring
            if substring in vocabulary:
                current = substring
                break
            end -= 1
        if current is None:
            bad = True
            break
        found.append(current)
        start = end
    return ["[UNK]"] if bad else found


def _loss_by_marks(logits, token_ids, chosen):
    """As other libraries do: what isn't asked for is -100."""
    labels = token_ids.masked_fill(~chosen, -100)
    if (labels == -100).all():
        return 0 * logits.sum()
    return F.cross_entropy(logits.transpose(1, 2), labels)


def _loss_by_gather(logits, token_ids, chosen):
    each = -logits.log_softmax(-1).gather(-1, token_ids.unsqueeze(-1)).squeeze(-1)
    return (each * chosen).sum() / chosen.sum().clamp(min=1)


def _loss_by_loops(logits, token_ids, chosen):
    total, count = 0.0 * logits.sum(), 0
    for row, column in chosen.nonzero().tolist():
        scores = logits[row, column]
        total, count = total + scores.logsumexp(0) - scores[token_ids[row, column]], count + 1
    return total / max(count, 1)


def _half_by_modules(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    return F.layer_norm(x + F.gelu(x @ expand.T + expand_bias) @ contract.T + contract_bias, x.shape[-1:], gain, shift, eps)


def _half_by_hand(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    inner = x @ expand.mT + expand_bias
    inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    y = x + inner @ contract.mT + contract_bias
    return (y - y.mean(-1, True)) / (y.var(-1, keepdim=True, correction=0) + eps).sqrt() * gain + shift


def _half_by_norm_module(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    norm = nn.LayerNorm(x.shape[-1], eps=eps, dtype=x.dtype)
    norm.weight.data, norm.bias.data = gain, shift
    return norm(x + F.linear(F.gelu(F.linear(x, expand, expand_bias)), contract, contract_bias))


def _pooled_text_by_text(encoder, token_ids, attention_mask, weight, bias):
    x = encoder(token_ids, attention_mask)
    return torch.stack([F.linear(row[real].mean(0), weight, bias) for row, real in zip(x, attention_mask)])


def _pooled_as_weights(encoder, token_ids, attention_mask, weight, bias):
    x = encoder(token_ids, attention_mask)
    weights = attention_mask / attention_mask.sum(dim=1, keepdim=True)
    return torch.einsum("bs,bsd,cd->bc", weights.to(x.dtype), x, weight) + bias


def _start_by_init(weight, rank):
    down, up = torch.empty(rank, weight.size(1)), torch.empty(weight.size(0), rank)
    nn.init.kaiming_uniform_(down, a=math.sqrt(5))
    nn.init.zeros_(up)
    return nn.Parameter(down), nn.Parameter(up)


VARIANTS = {
    "14.1": {"loops": _hidden_by_loops, "rows": lambda *inputs: [
                 _hidden_by_where(*parts, inputs[-1]) for parts in zip(*inputs[:-1])],
             "in a copy": _hidden_in_a_copy, "where": _hidden_by_where},
    "14.2": {"recursion": _cut_by_recursion, "by sorting": _cut_by_sorting, "the original": _cut_as_in_the_original},
    "14.3": {"marked": _loss_by_marks, "gather": _loss_by_gather, "loops": _loss_by_loops},
    "14.4": {"library's norm": _half_by_modules, "by hand": _half_by_hand, "a module": _half_by_norm_module},
    "14.5": {"text by text": _pooled_text_by_text, "as weights": _pooled_as_weights,
             "one product": lambda encoder, ids, mask, weight, bias: torch.addmm(
                 bias, (mask.float()[:, None] @ encoder(ids, mask))[:, 0] / mask.sum(1, keepdim=True), weight.T)},
    "14.6": {"as the paper's code": _start_by_init,
             "the other one": lambda weight, rank: (torch.zeros(rank, weight.shape[1]), torch.randn(weight.shape[0], rank)),
             "by name": lambda weight, rank: dict(zip(("down", "up"), _start_by_init(weight, rank))),
             "numpy": lambda weight, rank: (np.random.default_rng(0).normal(size=(rank, weight.shape[1])),
                                            np.zeros((weight.shape[0], rank)))},
}
