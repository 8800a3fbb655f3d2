"""Other right answers to the exercises of notebook 11, which a check must accept."""

import functools
import itertools
import math

import numpy as np
import torch

from course_exercises.n11.answers import (
    EYE,
    FIRST,
    SECOND,
    _ap,
    _comp,
    _roll,
    _shorter,
    _without,
    comprehensiveness_of,
)


def _ap_loop(scores, evidence):
    ranked = sorted(zip(scores.tolist(), evidence.tolist()), reverse=True)
    found, total = 0, 0.0
    for rank, (_, decides) in enumerate(ranked, start=1):
        if decides:
            found += 1
            total += found / rank
    return total / found


def _ap_recall_steps(scores, evidence):
    chosen = scores.unsqueeze(0) >= scores.sort(descending=True).values.unsqueeze(1)   # (threshold, token)
    found = (chosen & evidence.bool()).sum(dim=1)
    precision, recall = found / chosen.sum(dim=1), found / evidence.sum()
    return (precision * recall.diff(prepend=torch.zeros(1))).sum()


def _ap_pairs(scores, evidence):
    own = scores[evidence]                                                 # each deciding word's rank by counting
    return ((own >= own[:, None]).sum(1) / (scores >= own[:, None]).sum(1)).mean()


def _ap_numpy(scores, evidence):
    hit = evidence.numpy()[np.argsort(-scores.numpy())]
    ranks = np.flatnonzero(hit) + 1
    return np.mean(np.arange(1, len(ranks) + 1) / ranks)


def _loo_popping(score, tokens):
    result = []
    for i in range(len(tokens)):
        shorter = list(tokens)
        shorter.pop(i)
        result.append(score(list(tokens)) - score(shorter))
    return result


def _loo_combinations(score, tokens):
    shorter = list(itertools.combinations(tokens, len(tokens) - 1))[::-1]  # the last one leaves the first token out
    return tuple(score(tokens) - score(list(rest)) for rest in shorter)


def _loo_arrays(score, tokens):
    words = np.array(tokens)
    return score(tokens) - np.array([score(list(np.delete(words, i))) for i in range(len(words))])


def _loo_recursive(score, tokens, i=0):
    if i == len(tokens):
        return []
    return [score(tokens) - score([word for j, word in enumerate(tokens) if j != i]), *_loo_recursive(score, tokens, i + 1)]


def _loo_mask(score, tokens):
    keep = ~torch.eye(len(tokens), dtype=torch.bool)
    return score(tokens) - torch.tensor([score(list(itertools.compress(tokens, row))) for row in keep.tolist()],
                                        dtype=torch.float64)


def _comp_torch(score, tokens, importances, shares):
    values = torch.tensor(importances)
    total = 0.0
    for share in shares:
        keep = torch.ones(len(tokens), dtype=torch.bool)
        keep[values.topk(int(torch.tensor(share * len(tokens)).ceil())).indices] = False
        total += score([token for token, kept in zip(tokens, keep) if kept])
    return score(tokens) - total / len(shares)


def _comp_numpy(score, tokens, importances, shares):
    order = np.argsort(importances)                                        # the least important first
    left = [np.sort(order[:len(tokens) - math.ceil(share * len(tokens) - 1e-6)]) for share in shares]
    return np.mean([score(tokens) - score(np.array(tokens)[rest].tolist()) for rest in left])


def _comp_popping(score, tokens, importances, shares):
    losses = []
    for share in shares:
        words, values = list(tokens), list(importances)
        for _ in range(math.ceil(share * len(tokens))):
            place = values.index(max(values))
            del words[place], values[place]
        losses.append(score(tokens) - score(words))
    return np.float64(sum(losses) / len(shares))


def _comp_thresholds(score, tokens, importances, shares):
    ranked = sorted(importances)[::-1]
    ranked.append(-math.inf)                            # below all, for a share that takes out everything
    bars = [ranked[-int(-share * len(tokens) // 1)] for share in shares]
    left = [[token for token, value in zip(tokens, importances) if value <= bar] for bar in bars]
    return sum(score(tokens) - score(rest) for rest in left) / len(bars)


def _numpy_rollout(attentions):
    maps = attentions.numpy().mean(axis=1) * 0.5 + 0.5 * np.eye(attentions.shape[-1])
    return functools.reduce(np.dot, maps[::-1])


def _paths(attentions):
    """Entry by entry, over all paths of one key a layer."""
    layers, _, n, _ = attentions.shape
    mixed = (attentions.double().mean(1) + torch.eye(n)) / 2
    out = torch.zeros(n, n, dtype=torch.float64)
    for path in itertools.product(range(n), repeat=layers + 1):
        out[path[-1], path[0]] += math.prod(mixed[i, path[i + 1], path[i]].item() for i in range(layers))
    return out.tolist()


def _rescaled(attentions):
    rollout = torch.eye(attentions.shape[-1])
    for layer in attentions.sum(1).flip(0):
        total = layer + layer.sum(1, keepdim=True) * torch.eye(len(layer))
        rollout = rollout @ total
    return rollout / rollout.sum(dim=1, keepdim=True)


VARIANTS = {
    "11.1": {
       "loop": _ap_loop,
       "steps of recall": _ap_recall_steps,
       "pairs": _ap_pairs,
       "numpy": _ap_numpy,
       "interpolation undone": _ap(lambda hit, precision, recall: torch.trapezoid(
           precision[hit == 1].repeat_interleave(2),
           torch.cat([torch.zeros(1), recall[hit == 1]]).repeat_interleave(2)[1:-1])),
   },
    "11.2": {
       "popping": _loo_popping,
       "combinations": _loo_combinations,
       "arrays": _loo_arrays,
       "recursive": _loo_recursive,
       "mask": _loo_mask,
       "tensors in a list": lambda score, tokens: [
           torch.tensor([score(tokens) - score([*tokens[:i], *tokens[i + 1:]])]) for i in range(len(tokens))],
       "partial": lambda score, tokens: [functools.partial(float.__sub__, score(tokens))(score(_shorter(tokens, i)))
                                         for i in range(len(tokens))],
   },
    "11.3": {
       "torch": _comp_torch,
       "numpy": _comp_numpy,
       "one by one": _comp_popping,
       "thresholds": _comp_thresholds,
       "as a tensor": lambda *inputs: torch.tensor([comprehensiveness_of(*inputs)]),
       "parts": _comp(_without),
   },
    "11.4": {
       "two decimals": lambda: 0.22,
       "a text": lambda: "0,22",
       "a fraction": lambda: "11/50",
       "tensor": lambda: ((SECOND + EYE) @ (FIRST + EYE) / 4)[2, 0],
       "every path": lambda: sum((SECOND + EYE)[2, k] / 2 * (FIRST + EYE)[k, 0] / 2 for k in range(3)),
   },
    "11.5": {
       "numpy": _numpy_rollout,
       "path by path": _paths,
       "rescaled at the end": _rescaled,
       "reduce": _roll(),
       "from the last layer": lambda attentions: functools.reduce(
           torch.matmul, [(layer.mean(0) + torch.eye(layer.shape[-1])) / 2 for layer in attentions.flip(0)]),
       "transposed": lambda attentions: functools.reduce(
           torch.matmul, [(layer.mean(0).T + torch.eye(layer.shape[-1])) / 2 for layer in attentions]).T,
       "einsum": lambda attentions: functools.reduce(
           lambda below, layer: torch.einsum("hqk,kj->qj", layer, below) / len(layer) / 2 + below / 2, attentions,
           torch.eye(attentions.shape[-1])),
   },
}
