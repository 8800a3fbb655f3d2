"""Other right answers to the exercises of notebook 10, which a check must accept."""

from fractions import Fraction

import torch


def _rest_added(weights, head, tail):
    n = weights.shape[1]
    where = torch.tensor([k if k < head else head if k < n - tail else k - n + tail + head + 1 for k in range(n)])
    return torch.zeros(len(weights), head + 1 + tail).index_add(1, where, weights)


def _lower_nanmean(scores, control, z):
    lead = scores - control
    n = (~lead.isnan()).sum(dim=-1)
    mean = lead.nanmean(dim=-1)
    variance = (lead - mean[..., None]).square().nansum(dim=-1) / (n - 1)
    return (mean - z * (variance / n).sqrt()).max(dim=1).values


VARIANTS = {
    "10.1": {"a fraction": lambda: Fraction(37, 20), "in per cent": lambda: "185%"},
    "10.2": {"einsum": lambda weights: torch.einsum("hqq->h", weights[:, 1:, :-1]) / (weights.shape[1] - 1)},
    "10.3": {"index_add": _rest_added},
    "10.4": {"einsum": lambda context, gates: torch.einsum("bhqd,h->bqhd", context, gates).flatten(2)},
    "10.5": {"nanmean": _lower_nanmean},
}
