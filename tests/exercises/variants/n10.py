"""Other right answers to the exercises of notebook 10, which a check must accept."""

import math
import statistics
from fractions import Fraction

import numpy as np
import torch

from course_exercises.n10.answers import QUERY, WEIGHTS, _merged_in_order


def _score_loops(weights):
    scores = []
    for head in weights:
        looked = [head[query, query - 1].item() for query in range(1, len(head))]
        scores.append(sum(looked) / len(looked))
    return scores


def _score_shifted_eye(weights):
    n = weights.shape[-1]
    return (weights * torch.eye(n).roll(1, 0).tril()).sum(dim=(1, 2)) / (n - 1)


def _score_indexed(weights):
    query = torch.arange(1, weights.shape[1])
    return weights[:, query, query - 1].mean(1)


def _score_distances(weights):
    gap = torch.arange(weights.shape[1])[:, None] - torch.arange(weights.shape[2])
    return torch.stack([head[gap == 1].double().mean() for head in weights])


def _rest_loops(weights, head, tail):
    rows = []
    for row in weights.tolist():
        shown = row[:head] + [0.0] + row[len(row) - tail:]
        for key, weight in enumerate(row):
            if head <= key < len(row) - tail:
                shown[head] += weight
        rows.append(shown)
    return rows


def _rest_matrix(weights, head, tail):
    keys = weights.shape[1]
    goes_to = torch.arange(keys).clamp(max=head)
    goes_to[keys - tail:] = head + 1 + torch.arange(tail)
    return weights @ torch.nn.functional.one_hot(goes_to, head + 1 + tail).float()


def _rest_by_difference(weights, head, tail):
    keys = weights.shape[1]
    first, last = weights[:, :head], weights[:, keys - tail:]
    return torch.hstack([first, (weights.sum(1) - first.sum(1) - last.sum(1)).unsqueeze(1), last])


def _rest_split(weights, head, tail):
    first, between, last = weights.split([head, weights.shape[1] - head - tail, tail], dim=1)
    return torch.column_stack((first, between.sum(1), last))


def _rest_numpy(weights, head, tail):
    array = weights.double().numpy()
    end = array.shape[1] - tail
    return np.insert(np.delete(array, slice(head, end), axis=1), head, array[:, head:end].sum(axis=1), axis=1)


def _rest_added(weights, head, tail):
    n = weights.shape[1]
    where = torch.tensor([k if k < head else head if k < n - tail else k - n + tail + head + 1 for k in range(n)])
    return torch.zeros(len(weights), head + 1 + tail).index_add(1, where, weights)


def _gated_loops(context, gates):
    batch, heads, length, d_head = context.shape
    out = torch.empty(batch, length, heads * d_head)
    for head in range(heads):
        out[:, :, head * d_head:(head + 1) * d_head] = gates[head] * context[:, head]
    return out


def _gated_after(context, gates):
    merged = context.permute(0, 2, 1, 3).reshape(context.shape[0], context.shape[2], -1)
    return merged * gates.repeat_interleave(context.shape[-1])


def _lower_loops(scores, control, z):
    best = []
    for heads in scores:
        ends = []
        for head in heads:
            lead = [(s - c).item() for s, c in zip(head, control) if not math.isnan(c)]
            ends.append(statistics.mean(lead) - z * statistics.stdev(lead) / math.sqrt(len(lead)))
        best.append(max(ends))
    return best


def _lower_nanmean(scores, control, z):
    lead = scores - control
    n = (~lead.isnan()).sum(dim=-1)
    mean = lead.nanmean(dim=-1)
    variance = (lead - mean[..., None]).square().nansum(dim=-1) / (n - 1)
    return (mean - z * (variance / n).sqrt()).max(dim=1).values


def _lower_numpy(scores, control, z):
    lead = (scores - control).numpy().astype(float)
    return np.max(np.nanmean(lead, -1) - z * np.nanstd(lead, -1, ddof=1) / np.sqrt(np.sum(~np.isnan(lead), -1)), axis=1)


VARIANTS = {
    "10.1": {
       "two decimals": lambda: 1.85,
       "a text": lambda: "1,85",
       "a fraction": lambda: Fraction(37, 20),
       "torch": lambda: torch.tensor(WEIGHTS) @ (torch.arange(5) - QUERY).abs().float(),
       "a list of one": lambda: [np.dot(WEIGHTS, np.abs(np.arange(5) - QUERY))],
       "in per cent": lambda: "185%",
   },
    "10.2": {
       "loops": _score_loops,
       "shifted identity": _score_shifted_eye,
       "indexed": _score_indexed,
       "by distances": _score_distances,
       "cut square": lambda weights: weights[:, 1:, :-1].diagonal(dim1=1, dim2=2).mean(-1),
       "einsum": lambda weights: torch.einsum("hqq->h", weights[:, 1:, :-1]) / (weights.shape[1] - 1),
       "numpy": lambda weights: np.diagonal(weights.numpy().astype(np.float64), -1, 1, 2).mean(axis=-1),
       "traces": lambda weights: tuple(head[1:, :-1].trace() / (len(head) - 1) for head in weights),
       "vmap": torch.func.vmap(lambda head: head.diagonal(-1).mean()),
       "transposed": lambda weights: weights.mT.diagonal(1, 1, 2).mean(dim=1),
   },
    "10.3": {
       "loops": _rest_loops,
       "a matrix": _rest_matrix,
       "by difference": _rest_by_difference,
       "split": _rest_split,
       "numpy": _rest_numpy,
       "index_add": _rest_added,
       "row by row": torch.func.vmap(lambda row, head, tail: torch.cat(
           [row[:head], row[head:len(row) - tail].sum()[None], row[len(row) - tail:]]), in_dims=(0, None, None)),
   },
    "10.4": {
       "loops": _gated_loops,
       "gated after merging": _gated_after,
       "einsum": lambda context, gates: torch.einsum("bhqd,h->bqhd", context, gates).flatten(2),
       "side by side": lambda context, gates: torch.cat(
           [gate * part for gate, part in zip(gates, context.unbind(1))], dim=-1),
       "numpy": lambda context, gates: np.concatenate([float(gate) * context.numpy()[:, h].astype(float)
                                                       for h, gate in enumerate(gates)], axis=-1),
       "a diagonal matrix": lambda context, gates: _merged_in_order(context) @ torch.diag(
           gates.repeat_interleave(context.shape[-1])),
       "words in lists": lambda context, gates: [[torch.cat([g * row for g, row in zip(gates, word)]) for word in
                                                  text.transpose(0, 1)] for text in context],
       "vmap": torch.func.vmap(lambda text, gates: (text.movedim(0, 1) * gates.unsqueeze(1)).flatten(1), in_dims=(0, None)),
   },
    "10.5": {
       "loops": _lower_loops,
       "nanmean": _lower_nanmean,
       "numpy": _lower_numpy,
   },
}
