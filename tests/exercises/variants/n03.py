"""Other right answers to the exercises of notebook 03, which a check must accept."""


import numpy as np
import torch
from torch import nn


def _pools_numpy(x, attention_mask):
    x, real = x.numpy(), attention_mask.numpy()
    return np.stack([np.concatenate([row[r].mean(0), row[r].max(0)]) if r.any() else np.zeros(2 * x.shape[-1])
                     for row, r in zip(x, real)])


def _by_hand(model, optimizer, several):
    model.train()
    losses = []
    for batch in several:
        loss = nn.CrossEntropyLoss(reduction="none")(model(batch.token_ids, batch.attention_mask), batch.labels)
        gradients = torch.autograd.grad(loss.mean(), list(model.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients):
                parameter -= optimizer.param_groups[0]["lr"] * gradient
        losses += loss.tolist()
    return np.mean(losses)


def _by_reflection(vectors, direction, factor):
    """The mean of a vector and its mirror image is the rest, half their difference is the part."""
    mirrored = vectors - 2 * (vectors @ direction)[..., None] * direction / (direction @ direction)
    return (vectors + mirrored) / 2 + factor * (vectors - mirrored) / 2


VARIANTS = {
    "3.1": {"index_add": lambda ids, up, n: torch.zeros(n, up.shape[1]).index_add(0, ids, up)},
    "3.2": {"numpy": _pools_numpy},
    "3.3": {"a list": lambda: ["h", "g", "d", "b", "e", "a", "c", "f"], "eval early": lambda: "H, D, C, B, G, E, A, F"},
    "3.4": {"by hand": _by_hand},
    "3.5": {"a reflection": _by_reflection},
}
