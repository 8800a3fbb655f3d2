"""Other right answers to the exercises of notebook 03, which a check must accept."""

import math
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def _row_loop(token_ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[1])
    for token_id, row in zip(token_ids, upstream):
        gradient[token_id] += row
    return gradient


def _by_autograd(token_ids, upstream, vocab_size):
    embedding = nn.Embedding(vocab_size, upstream.shape[1])
    (embedding(token_ids) * upstream).sum().backward()
    return embedding.weight.grad


def _with_numpy(token_ids, upstream, vocab_size):
    gradient = np.zeros((vocab_size, upstream.shape[1]))
    np.add.at(gradient, token_ids.numpy(), upstream.numpy())
    return gradient


def _sparse(token_ids, upstream, vocab_size):
    embedding = nn.Embedding(vocab_size, upstream.shape[1], sparse=True)
    embedding(token_ids).backward(upstream)
    return embedding.weight.grad


def _vjp(token_ids, upstream, vocab_size):
    _, backwards = torch.func.vjp(lambda x: x[token_ids], torch.zeros(vocab_size, upstream.shape[1]))
    return backwards(upstream)[0]


def _word_by_word(token_ids, upstream, vocab_size):
    """A word at a time, and handed over as a tensor that is not contiguous."""
    return torch.vmap(lambda word: torch.where((token_ids == word)[:, None], upstream, 0.0).sum(dim=0),
                      out_dims=1)(torch.arange(vocab_size)).T


def _review_loop(x, attention_mask):
    rows = []
    for vectors, real in zip(x, attention_mask):
        words = vectors[real]
        if len(words) == 0:
            rows.append(torch.zeros(2 * x.shape[-1]))
        else:
            rows.append(torch.cat([words.mean(dim=0), words.max(dim=0).values]))
    return torch.stack(rows)


def _pools_of_library(x, attention_mask):
    x = x.double().masked_fill(~attention_mask[..., None], math.nan)
    low = torch.where(x.isnan(), -1e9, x).max(1)[0]
    return torch.hstack([x.nanmean(dim=1).nan_to_num(0.0), torch.where(low < -1e8, 0.0, low)])


def _pools_einsum(x, attention_mask):
    real = attention_mask.float()
    mean = torch.einsum("bsd,bs->bd", x, real) / torch.maximum(real.sum(1, keepdim=True), torch.tensor(1.0))
    low = (x * real[..., None] - 1e30 * (1 - real)[..., None]).topk(1, dim=1).values.squeeze(1)
    return torch.cat((mean, low * real.any(1, keepdim=True)), 1)


def _pools_numpy(x, attention_mask):
    x, real = x.numpy(), attention_mask.numpy()
    return np.stack([np.concatenate([row[r].mean(0), row[r].max(0)]) if r.any() else np.zeros(2 * x.shape[-1])
                     for row, r in zip(x, real)])


def _real_ones(x, attention_mask):
    """The real vectors of all reviews in one row, brought back to their reviews."""
    review, vectors = attention_mask.nonzero()[:, 0], x[attention_mask]
    count = torch.bincount(review, minlength=len(x)).clamp(min=1)
    mean = torch.zeros(len(x), x.shape[-1]).index_add(0, review, vectors) / count[:, None]
    return torch.cat([mean, torch.zeros_like(mean).scatter_reduce(0, review[:, None].expand_as(vectors), vectors, "amax",
                                                                  include_self=False)], dim=1)


def _pools_in_place(x, attention_mask):
    """In place, on a copy."""
    x = x.clone()
    x[~attention_mask] = -1e30
    largest = x.max(dim=1)[0]
    largest[~attention_mask.any(dim=1)] = 0
    x[~attention_mask] = 0
    return torch.cat((x.sum(dim=1) / (attention_mask.sum(dim=1, keepdim=True) + 1e-8), largest), dim=1)


def _cleared_after(model, optimizer, several):
    model.train()
    total = torch.zeros((), dtype=torch.float64)
    for batch in several:
        loss = F.cross_entropy(model(batch.token_ids), batch.labels)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        total += loss.detach() * len(batch.labels)
    return total / sum(len(batch.labels) for batch in several)


def _review_by_review(model, optimizer, several):
    """Each review's loss by itself, its gradient added up: that is what adding gradients is for."""
    model.train(True)
    losses = []
    for batch in several:
        optimizer.zero_grad(set_to_none=False)
        for ids, mask, label in zip(batch.token_ids, batch.attention_mask, batch.labels):
            loss = -model(ids[None], mask[None]).log_softmax(-1)[0, label]
            (loss / len(batch.labels)).backward()
            losses.append(loss)
        optimizer.step()
    return torch.stack(losses).mean()


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


def _weighted(model, optimizer, several):
    model.train()
    rows = []
    for batch in several:
        loss = F.nll_loss(F.log_softmax(model(batch.token_ids, batch.attention_mask), dim=1), batch.labels)
        for parameter in model.parameters():
            parameter.grad = None
        loss.backward()
        optimizer.step()
        rows.append((loss.item(), len(batch.labels)))
    values, sizes = torch.tensor(rows).T
    return (values * sizes / sizes.sum()).sum()


def _by_closure(model, optimizer, several):
    """optimizer.step may call the forward and backward pass itself; the result is a tensor with one number."""
    model.train()
    losses = []

    def passes(batch):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*batch[:2]), F.one_hot(batch.labels, 2).float(), reduction="none")
        loss.mean().backward()
        losses.extend(loss.detach())
        return loss.mean()

    for batch in several:
        optimizer.step(partial(passes, batch))
    return torch.stack(losses).mean(dim=0, keepdim=True)


def _by_matrix(vectors, direction, factor):
    u = F.normalize(direction.double(), dim=0)
    return vectors.double() @ (torch.eye(len(u), dtype=u.dtype) + (factor - 1) * torch.outer(u, u))


def _by_basis(vectors, direction, factor):
    """Turn to a basis whose first vector is the direction, scale the first coordinate, and turn back."""
    basis, _ = torch.linalg.qr(torch.cat([direction[:, None], torch.eye(len(direction))], dim=1))
    coordinates = vectors @ basis
    scales = torch.ones(basis.shape[1])
    scales[0] = factor
    return (coordinates * scales) @ basis.T


def _turn_loop(vectors, direction, factor):
    out = vectors.clone().reshape(-1, vectors.shape[-1])
    length = sum(number**2 for number in direction.tolist()) ** 0.5
    for i, x in enumerate(out.clone()):
        coordinate = sum(a * b for a, b in zip(x.tolist(), direction.tolist())) / length
        out[i] = x + (factor - 1) * coordinate * direction / length
    return out.reshape(vectors.shape)


def _turn_einsum(vectors, direction, factor):
    part = torch.einsum("...d,d,e->...e", vectors, direction, direction) / (direction @ direction)
    return torch.lerp(vectors, vectors + part, factor - 1)


def _by_reflection(vectors, direction, factor):
    """The mean of a vector and its mirror image is the rest, half their difference is the part."""
    mirrored = vectors - 2 * (vectors @ direction)[..., None] * direction / (direction @ direction)
    return (vectors + mirrored) / 2 + factor * (vectors - mirrored) / 2


VARIANTS = {
    "3.1": {
      "sparse": _sparse, "vjp": _vjp, "word by word": _word_by_word,
      "a loop": _row_loop, "autograd": _by_autograd, "numpy": _with_numpy,
      "index_add": lambda ids, up, n: torch.zeros(n, up.shape[1]).index_add(0, ids, up),
      "index_put": lambda ids, up, n: torch.zeros(n, up.shape[1]).index_put((ids,), up, accumulate=True),
      "a comparison": lambda ids, up, n: (torch.arange(n)[:, None] == ids).double() @ up.double(),
      "lists": lambda ids, up, n: [[sum(up[i, c].item() for i in range(len(ids)) if ids[i] == row)
                                    for c in range(up.shape[1])] for row in range(n)],
  },
    "3.2": {"the real ones": _real_ones, "in place": _pools_in_place,
            "a loop": _review_loop, "nanmean": _pools_of_library, "einsum": _pools_einsum, "numpy": _pools_numpy,
            "a list": lambda x, mask: [row.tolist() for row in _review_loop(x, mask)]},
    "3.3": {"as in the notebook": lambda: "H D B G E A C F", "cleared first": lambda: "GHDBEACF",
            "a list": lambda: ["h", "g", "d", "b", "e", "a", "c", "f"], "eval early": lambda: "H, D, C, B, G, E, A, F",
            "commas": lambda: "H,D,G,B,C,E,A,F"},
    "3.4": {"closure": _by_closure,
            "cleared after the step": _cleared_after, "review by review": _review_by_review, "by hand": _by_hand,
            "weighted": _weighted},
    "3.5": {"a reflection": _by_reflection,
            "a matrix": _by_matrix, "another basis": _by_basis, "a loop": _turn_loop, "einsum": _turn_einsum,
            "numpy": lambda v, d, f: v.numpy() + (f - 1) * np.tensordot(v.numpy(), d.numpy(), 1)[..., None]
            * d.numpy() / (d.numpy() @ d.numpy())},
}
