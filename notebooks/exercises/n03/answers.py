"""The course's answers to the exercises of notebook 03, and what each known mistake would write."""

import math

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 3.1

def embedding_gradient(token_ids, upstream, vocab_size):
    one_hot = F.one_hot(token_ids, vocab_size).to(upstream.dtype)          # (seq_len, vocab_size)
    return one_hot.T @ upstream                                            # (vocab_size, d_model)


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


GRADIENT = Answers(
    embedding_gradient,
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


MEAN_AND_MAX = Answers(
    mean_and_max,
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


EPOCH = Answers(
    train_epoch,
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


TURN = Answers(
    turn,
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

ANSWERS = (GRADIENT, MEAN_AND_MAX, ORDER, EPOCH, TURN)
