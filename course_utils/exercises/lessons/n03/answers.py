"""Solutions of the exercises of notebook 03, accepted variants, and the answers that known mistakes give."""

import math
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 3.1


def embedding_gradient(token_ids, upstream, vocab_size):
    one_hot = F.one_hot(token_ids, vocab_size).to(upstream.dtype)          # (seq_len, vocab_size)
    return one_hot.T @ upstream                                            # (vocab_size, d_model)


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


def _last_wins(token_ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[1])
    for token_id, row in zip(token_ids.tolist(), upstream):
        gradient[token_id] = row
    return gradient


def _counts(token_ids, upstream, vocab_size):
    return torch.bincount(token_ids, minlength=vocab_size).float()[:, None].expand(-1, upstream.shape[1])


def _averaged(token_ids, upstream, vocab_size):
    times = torch.bincount(token_ids, minlength=vocab_size).clamp(min=1)[:, None]
    return embedding_gradient(token_ids, upstream, vocab_size) / times


def _sum_of_all(token_ids, upstream, vocab_size):
    return _counts(token_ids, upstream, vocab_size) * upstream.sum(dim=0)


def _by_place(token_ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[1])
    gradient[: len(upstream)] = upstream
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


GRADIENT = Answers(
    embedding_gradient,
    variants={
        "sparse": _sparse, "vjp": _vjp, "word by word": _word_by_word,
        "a loop": _row_loop, "autograd": _by_autograd, "numpy": _with_numpy,
        "index_add": lambda ids, up, n: torch.zeros(n, up.shape[1]).index_add(0, ids, up),
        "index_put": lambda ids, up, n: torch.zeros(n, up.shape[1]).index_put((ids,), up, accumulate=True),
        "a comparison": lambda ids, up, n: (torch.arange(n)[:, None] == ids).double() @ up.double(),
        "lists": lambda ids, up, n: [[sum(up[i, c].item() for i in range(len(ids)) if ids[i] == row)
                                      for c in range(up.shape[1])] for row in range(n)],
    },
    mutants={
        "last-wins": _last_wins,
        "counts": _counts,
        "averaged": _averaged,
        "sum-of-all": _sum_of_all,
        "by-place": _by_place,
        "a-step": lambda ids, up, n: -embedding_gradient(ids, up, n),
        "transposed": lambda ids, up, n: embedding_gradient(ids, up, n).T,
        "too-few-rows": lambda ids, up, n: embedding_gradient(ids, up, int(ids.max()) + 1),
        "looked-up": lambda ids, up, n: F.one_hot(ids, n),
    },
)

# ---------------------------------------------------------------- 3.2


def mean_and_max(x, attention_mask):
    mask = attention_mask.unsqueeze(-1)                                    # (batch, seq_len, 1)
    mean = (x * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)            # (batch, d_model)
    largest = x.masked_fill(~mask, -math.inf).amax(dim=1)                  # (batch, d_model): padding never wins
    largest = largest.masked_fill(~mask.any(dim=1), 0.0)                   # no real token: zeros
    return torch.cat([mean, largest], dim=-1)                              # (batch, 2 * d_model)


def _pools(mean="right", largest="right", empty=True, swapped=False):
    """Mean and maximum with one or more things changed."""
    def pool(x, attention_mask):
        mask = attention_mask.unsqueeze(-1)
        count = mask.sum(dim=1)
        left = {"right": lambda: (x * mask).sum(dim=1) / (count.clamp(min=1) if empty else count),
                "padded length": lambda: (x * mask).mean(dim=1),
                "ignored": lambda: x.mean(dim=1),
                "sum": lambda: (x * mask).sum(dim=1),
                "sum ignored": lambda: x.sum(dim=1) / count.clamp(min=1)}[mean]()
        some = mask.any(dim=1)
        right = {"right": lambda: x.masked_fill(~mask, -math.inf).amax(dim=1).masked_fill(~some, 0.0),
                 "-inf": lambda: x.masked_fill(~mask, -math.inf).amax(dim=1),
                 "lowest": lambda: x.masked_fill(~mask, torch.finfo(x.dtype).min).amax(dim=1),
                 "zero": lambda: (x * mask).amax(dim=1),
                 "ignored": lambda: x.amax(dim=1),
                 "size": lambda: (x * mask).abs().amax(dim=1),
                 "min": lambda: x.masked_fill(~mask, math.inf).amin(dim=1).masked_fill(~some, 0.0)}[largest]()
        return torch.cat([right, left] if swapped else [left, right], dim=-1)
    return pool


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


MEAN_AND_MAX = Answers(
    mean_and_max,
    variants={"the real ones": _real_ones, "in place": _pools_in_place,
              "a loop": _review_loop, "nanmean": _pools_of_library, "einsum": _pools_einsum, "numpy": _pools_numpy,
              "a list": lambda x, mask: [row.tolist() for row in _review_loop(x, mask)]},
    mutants={
        "multiplied-only": _pools(mean="padded length", largest="zero"),
        "padded-length": _pools(mean="padded length"),
        "zero-wins": _pools(largest="zero"),
        "mask-ignored": _pools(mean="ignored", largest="ignored"),
        "mean-without-mask": _pools(mean="ignored"),
        "padding-in-the-sum": _pools(mean="sum ignored"),
        "max-without-mask": _pools(largest="ignored"),
        "not-divided": _pools(mean="sum"),
        "empty-minus-infinity": _pools(largest="-inf"),
        "empty-lowest": _pools(largest="lowest"),
        "empty-both": _pools(largest="-inf", empty=False),
        "empty-mean": _pools(empty=False),
        "inverted": lambda x, mask: mean_and_max(x, ~mask),
        "largest-in-size": _pools(largest="size"),
        "smallest": _pools(largest="min"),
        "swapped": _pools(swapped=True),
    },
)

# ---------------------------------------------------------------- 3.3


def order_of_lines():
    # One right order: H D B G E A C F. G may also stand anywhere before E, and C anywhere between D and F.
    # Each entry: this line must stand before that one, and the name of the mistake if it does not.
    return [
        ("D", "B", "loss-before-forward"),
        ("B", "E", "backward-before-loss"),
        ("E", "A", "step-before-backward"),
        ("G", "E", "cleared-too-late"),
        ("A", "F", "predicted-before-step"),
        ("H", "D", "forward-before-train"),
        ("H", "C", "eval-undone"),
        ("D", "C", "forward-after-eval"),
        ("C", "F", "predicted-in-training-mode"),
    ]


ORDER = Answers(
    order_of_lines,
    variants={"as in the notebook": lambda: "H D B G E A C F", "cleared first": lambda: "GHDBEACF",
              "a list": lambda: ["h", "g", "d", "b", "e", "a", "c", "f"], "eval early": lambda: "H, D, C, B, G, E, A, F",
              "commas": lambda: "H,D,G,B,C,E,A,F"},
    mutants={
        "loss-before-forward": lambda: "H B D G E A C F",
        "backward-before-loss": lambda: "H D G E B A C F",
        "step-before-backward": lambda: "H D B G A E C F",
        "cleared-too-late": lambda: "H D B E G A C F",
        "forward-before-train": lambda: "D H B G E A C F",
        "eval-undone": lambda: "C H D B G E A F",
        "forward-after-eval": lambda: "H C D B G E A F",
        "predicted-before-step": lambda: "H D B G E C F A",
        "predicted-in-training-mode": lambda: "H D B G E A F C",
    },
)

# ---------------------------------------------------------------- 3.4


def train_epoch(model, optimizer, several):
    model.train()
    loss_sum, count = 0.0, 0
    for batch in several:
        logits = model(batch.token_ids, batch.attention_mask)              # (batch, num_classes)
        loss = F.cross_entropy(logits, batch.labels)                       # mean over this batch
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(batch.labels)                        # a short batch counts for less
        count += len(batch.labels)
    return loss_sum / count


def _epoch(clear="before", backward=True, step="each", mode=True, reduction="mean", softmax=False, report="right",
           only=None):
    """An epoch with one or more things changed."""
    def train(model, optimizer, several):
        if mode:
            model.train()
        optimizer.zero_grad()
        losses, sizes = [], []
        for batch in several[:only]:
            logits = model(batch.token_ids, batch.attention_mask)
            loss = F.cross_entropy(logits.softmax(-1) if softmax else logits, batch.labels, reduction=reduction)
            if clear == "before":
                optimizer.zero_grad()
            if backward:
                loss.backward()
            if clear == "between":
                optimizer.zero_grad()
            if step == "each":
                optimizer.step()
            losses.append(loss.item())
            sizes.append(len(batch.labels))
        if step == "once":
            optimizer.step()
        total = sum(one * size for one, size in zip(losses, sizes)) if reduction == "mean" else sum(losses)
        return {"right": total / sum(sizes), "means": sum(losses) / len(losses), "last": losses[-1], "sum": sum(losses),
                "total": total}[report]
    return train


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


EPOCH = Answers(
    train_epoch,
    variants={"closure": _by_closure,
              "cleared after the step": _cleared_after, "review by review": _review_by_review, "by hand": _by_hand,
              "weighted": _weighted},
    mutants={
        "never-cleared": _epoch(clear="never"),
        "cleared-between": _epoch(clear="between"),
        "no-backward": _epoch(backward=False),
        "no-step": _epoch(step="never"),
        "one-step": _epoch(clear="never", step="once"),
        "last-batch-only-steps": _epoch(step="once"),
        "mean-of-means": _epoch(report="means"),
        "last-loss": _epoch(report="last"),
        "sum-of-means": _epoch(report="sum"),
        "total": _epoch(report="total"),
        "summed": _epoch(reduction="sum"),
        "evaluation-mode": _epoch(mode=False),
        "softmax-first": _epoch(softmax=True),
        "returned-in-the-loop": _epoch(only=1),
    },
)

# ---------------------------------------------------------------- 3.5


def turn(vectors, direction, factor):
    unit = direction / direction.norm()                                    # length one
    along = (vectors @ unit).unsqueeze(-1) * unit                          # (..., d_model): the part along the direction
    return vectors - along + factor * along


def _turned(unit="norm", amount=lambda factor: factor - 1, whole=False, broadcast=False, rows=False):
    def change(vectors, direction, factor):
        length = {"norm": direction.norm(), "none": 1.0, "once": direction.norm() ** 0.5, "sum": direction.sum(),
                  "size": direction.abs().sum(), "square": direction.norm() ** 2}[unit]
        one = direction / length
        given = F.normalize(vectors, dim=-1) if rows else vectors
        along = (given @ one).unsqueeze(-1) * (torch.ones_like(one) if broadcast else one)
        return factor * vectors if whole else vectors + amount(factor) * along
    return change


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


TURN = Answers(
    turn,
    variants={"a reflection": _by_reflection,
              "a matrix": _by_matrix, "another basis": _by_basis, "a loop": _turn_loop, "einsum": _turn_einsum,
              "numpy": lambda v, d, f: v.numpy() + (f - 1) * np.tensordot(v.numpy(), d.numpy(), 1)[..., None]
              * d.numpy() / (d.numpy() @ d.numpy())},
    mutants={
        "not-normalised": _turned(unit="none"),
        "divided-once": _turned(unit="once"),
        "divided-by-the-square": _turned(unit="square"),
        "divided-by-the-sum": _turned(unit="sum"),
        "divided-by-the-sizes": _turned(unit="size"),
        "factor-added": _turned(amount=lambda factor: factor),
        "factor-subtracted": _turned(amount=lambda factor: -factor),
        "one-minus-factor": _turned(amount=lambda factor: 1 - factor),
        "always-deleted": _turned(amount=lambda factor: -1.0),
        "only-the-part": lambda v, d, f: turn(v, d, f) - turn(v, d, 0.0),
        "only-the-rest": lambda v, d, f: f * turn(v, d, 0.0),
        "the-rest-scaled": lambda v, d, f: v + (f - 1) * turn(v, d, 0.0),
        "every-column": _turned(broadcast=True),
        "whole-vector": _turned(whole=True),
        "cosine": _turned(rows=True),
    },
)

ANSWERS = {"3.1": GRADIENT, "3.2": MEAN_AND_MAX, "3.3": ORDER, "3.4": EPOCH, "3.5": TURN}
