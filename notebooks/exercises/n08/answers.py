"""The course's answers to the exercises of notebook 08, and what each known mistake would write."""

import math

import torch
from torch.nn import functional as F

from course_utils.attention import padding_mask
from course_utils.embeddings import masked_mean
from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 8.1

def pool_with_queries(queries, x, attention_mask):
    mask = attention_mask[:, None, :]                                      # (batch, 1, seq_len)
    scores = queries @ x.transpose(1, 2) / math.sqrt(x.shape[-1])          # (batch, num_queries, seq_len)
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)      # not -inf: a review without tokens
    weights = scores.softmax(dim=-1).masked_fill(~mask, 0.0)               # each query's row sums to one
    pooled = weights @ x                                                   # (batch, num_queries, d_model)
    return pooled.flatten(start_dim=1), weights                            # (batch, num_queries * d_model)


def _pooling(mask="right", scale="width", dim=-1, join="right", give="both"):
    """Pooling with one or more things changed."""
    def pool(queries, x, attention_mask):
        real = attention_mask[:, None, :]
        scores = queries @ x.transpose(1, 2)
        divisor = {"width": x.shape[-1] ** 0.5, "none": 1.0, "d": float(x.shape[-1]), "length": x.shape[1] ** 0.5,
                   "queries": len(queries) ** 0.5}[scale]
        scores = scores / divisor
        if mask in ("right", "uniform", "-inf", "detached"):
            scores = scores.masked_fill(~real, torch.finfo(scores.dtype).min if mask != "-inf" else -math.inf)
        if mask == "inverted":
            scores = scores.masked_fill(real, torch.finfo(scores.dtype).min)
        if mask == "zero":
            scores = scores.masked_fill(~real, 0.0)
        weights = scores.softmax(dim=dim)
        if mask in ("right", "after"):
            weights = weights.masked_fill(~real, 0.0)
        if mask == "inverted":
            weights = weights.masked_fill(real, 0.0)
        if mask == "detached":
            weights = weights.masked_fill(~real, 0.0).detach()
        pooled = weights @ x
        joined = {"right": lambda: pooled.flatten(1), "mean": lambda: pooled.mean(dim=1), "sum": lambda: pooled.sum(dim=1),
                  "apart": lambda: pooled, "interleaved": lambda: pooled.transpose(1, 2).flatten(1)}[join]()
        return (weights, joined) if give == "swapped" else (joined, weights)
    return pool


def _plain_means(queries, x, attention_mask):
    real = attention_mask[:, None, :].to(x.dtype).expand(-1, len(queries), -1)
    weights = real / real.sum(dim=-1, keepdim=True).clamp(min=1) + 0 * (queries @ x.transpose(1, 2))
    return (weights @ x).flatten(1), weights


def _zero_then_removed(queries, x, attention_mask):
    """Scores set to zero by multiplying with the mask, and the weights afterwards as well."""
    real = attention_mask[:, None, :]
    weights = (queries @ x.mT / x.shape[-1] ** 0.5 * real).softmax(dim=-1) * real
    return (weights @ x).flatten(1), weights


QUERIES = Answers(
    pool_with_queries,
    mutants={
        "nan": _pooling(mask="-inf"),
        "uniform": _pooling(mask="uniform"),
        "ignored": _pooling(mask="ignored"),
        "mask-after-softmax": _pooling(mask="after"),
        "filled-with-zero": _pooling(mask="zero"),
        "zero-then-removed": _zero_then_removed,
        "inverted": _pooling(mask="inverted"),
        "no-scaling": _pooling(scale="none"),
        "divided-by-d": _pooling(scale="d"),
        "scaled-by-length": _pooling(scale="length"),
        "softmax-over-queries": _pooling(dim=1),
        "averaged": _pooling(join="mean"),
        "summed": _pooling(join="sum"),
        "not-joined": _pooling(join="apart"),
        "interleaved": _pooling(join="interleaved"),
        "plain-means": _plain_means,
        "detached": _pooling(mask="detached"),
        "swapped": _pooling(give="swapped"),
    },
)

# ---------------------------------------------------------------- 8.2

def forward(parts, token_ids, attention_mask):
    x = parts.positions.add(parts.embedding(token_ids) * parts.scale)      # (batch, seq_len, d_model)
    bias = parts.positions.bias(token_ids.shape[1])                        # None, but for ALiBi
    x = parts.encoder(x, padding_mask(attention_mask), bias, parts.positions.rotate).x
    pooled, _ = parts.pooling(x, attention_mask)                           # (batch, d_model)
    return parts.output(pooled)                                            # (batch, num_classes)


def _forward(scale="before", add=True, mask="right", bias=True, rotate=True, encode=True, pool="query", give="logits"):
    """The forward pass with one thing changed."""
    def assembled(parts, token_ids, attention_mask):
        x = parts.embedding(token_ids)
        if scale == "before":
            x = x * parts.scale
        if add:
            x = parts.positions.add(x)
        if scale == "after":
            x = x * parts.scale
        if encode:
            may = {"right": padding_mask(attention_mask), "none": None, "inverted": ~padding_mask(attention_mask)}[mask]
            x = parts.encoder(x, may, parts.positions.bias(x.shape[1]) if bias else None,
                              parts.positions.rotate if rotate else None).x
        pooled = {"query": lambda: parts.pooling(x, attention_mask)[0], "mean": lambda: masked_mean(x, attention_mask),
                  "all": lambda: parts.pooling(x, torch.ones_like(attention_mask))[0],
                  "plain": lambda: x.mean(dim=1), "first": lambda: x[:, 0], "last": lambda: x[:, -1]}[pool]()
        logits = parts.output(pooled)
        return {"logits": logits, "probabilities": logits.softmax(dim=-1), "detached": logits.detach()}[give]
    return assembled


FORWARD = Answers(
    forward,
    mutants={
        "no-scale": _forward(scale="none"),
        "scale-after-positions": _forward(scale="after"),
        "no-positions-added": _forward(add=False),
        "no-bias": _forward(bias=False),
        "no-rotation": _forward(rotate=False),
        "encoder-without-mask": _forward(mask="none"),
        "encoder-mask-inverted": _forward(mask="inverted"),
        "no-encoder": _forward(encode=False),
        "pooling-counts-padding": _forward(pool="all"),
        "mean": _forward(pool="mean"),
        "plain-mean": _forward(pool="plain"),
        "first-word": _forward(pool="first"),
        "last-position": _forward(pool="last"),
        "probabilities": _forward(give="probabilities"),
        "detached": _forward(give="detached"),
    },
)

# ---------------------------------------------------------------- 8.3

def loss_and_probabilities(logits, labels):
    loss = F.cross_entropy(logits, labels)                                 # takes logits
    probabilities = logits.softmax(dim=-1)                                 # (batch, num_classes), to show and to compare
    return loss, probabilities


def _loss(of=lambda logits: logits, dim=-1, reduction="mean", give=None, cut=False, nll=False):
    def both(logits, labels):
        taken = of(logits)
        loss = (F.nll_loss if nll else F.cross_entropy)(taken, labels, reduction=reduction)
        if cut:
            loss = torch.tensor(loss.item())
        return loss, logits.softmax(dim=dim) if give is None else give(logits)
    return both


LOSS = Answers(
    loss_and_probabilities,
    mutants={
        "softmax-first": _loss(of=lambda logits: logits.softmax(-1)),
        "no-probabilities": _loss(give=lambda logits: logits),
        "logarithms-returned": _loss(give=lambda logits: logits.log_softmax(-1)),
        "softmax-over-reviews": _loss(dim=0),
        "nll-of-probabilities": _loss(of=lambda logits: logits.softmax(-1), nll=True),
        "nll-of-logits": _loss(nll=True),
        "summed": _loss(reduction="sum"),
        "cut": _loss(cut=True),
        "softmax-twice-returned": _loss(give=lambda logits: logits.softmax(-1).softmax(-1)),
        "sigmoid": _loss(give=lambda logits: logits.sigmoid()),
        "swapped": lambda logits, labels: loss_and_probabilities(logits, labels)[::-1],
    },
)

# ---------------------------------------------------------------- 8.4

def sure_and_wrong():
    # 55 of 100 have -ln 0.9 = 0.105, 45 have -ln 0.1 = 2.303: 0.55 * 0.105 + 0.45 * 2.303
    return 1.094


RIGHT, WRONG = -math.log(0.9), -math.log(0.1)

SURE = Answers(
    sure_and_wrong,
    mutants={
        "swapped": lambda: 0.45 * RIGHT + 0.55 * WRONG,
        "only-wrong-ones": lambda: 0.45 * WRONG,
        "only-right-ones": lambda: 0.55 * RIGHT,
        "not-weighted": lambda: (RIGHT + WRONG) / 2,
        "mean-first": lambda: -math.log(0.55 * 0.9 + 0.45 * 0.1),
        "accuracy-as-probability": lambda: -math.log(0.55),
        "sure-of-the-right-one": lambda: RIGHT,
        "one-wrong-review": lambda: WRONG,
        "base-two": lambda: (0.55 * RIGHT + 0.45 * WRONG) / math.log(2),
        "base-ten": lambda: (0.55 * RIGHT + 0.45 * WRONG) / math.log(10),
        "not-divided": lambda: 55 * RIGHT + 45 * WRONG,
        "minus": lambda: -(0.55 * RIGHT + 0.45 * WRONG),
        "coin": lambda: math.log(2),
    },
)

# ---------------------------------------------------------------- 8.5

def share_right(model, several):
    was_training = model.training
    model.eval()
    right, count = 0, 0
    with torch.no_grad():
        for batch in several:
            logits = model(batch.token_ids, batch.attention_mask).logits   # (batch, num_classes)
            right += (logits.argmax(dim=-1) == batch.labels).sum().item()
            count += len(batch.labels)
    model.train(was_training)                                              # as it was before
    return right / count


def _share(evaluate=True, gradients=False, means=False, after="as it was", total="right", best="argmax"):
    def share(model, several):
        was_training = model.training
        if evaluate:
            model.eval()
        right, sizes = [], []
        with torch.set_grad_enabled(gradients):
            for batch in several:
                logits = model(batch.token_ids, batch.attention_mask).logits
                chosen = logits.argmin(dim=-1) if best == "argmin" else logits.argmax(dim=-1)
                right.append((chosen == batch.labels).sum().item())
                sizes.append(len(batch.labels))
        if after == "as it was":
            model.train(was_training)
        elif after == "training":
            model.train()
        if total == "percent":
            return 100 * sum(right) / sum(sizes)
        if total == "count":
            return sum(right)
        if total == "wrong":
            return 1 - sum(right) / sum(sizes)
        if total == "last":
            return right[-1] / sizes[-1]
        if total == "batches":
            return sum(right) / len(sizes)
        return sum(a / b for a, b in zip(right, sizes)) / len(sizes) if means else sum(right) / sum(sizes)
    return share


def _global_switch(model, several):
    torch.set_grad_enabled(False)
    return _mode_only(model, several)


def _mode_only(model, several):
    was_training = model.training
    model.eval()
    right = sum((model(b.token_ids, b.attention_mask).logits.argmax(-1) == b.labels).sum().item() for b in several)
    model.train(was_training)
    return right / sum(len(b.labels) for b in several)


def _frozen(model, several):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return _mode_only(model, several)


SHARE = Answers(
    share_right,
    mutants={
        "as-given": _share(evaluate=False, gradients=True, means=True, after="training"),
        "training-mode": _share(evaluate=False),
        "gradients": _share(gradients=True),
        "batch-means": _share(means=True),
        "left-in-evaluation": _share(after="left"),
        "always-training": _share(after="training"),
        "gradients-left-off": _global_switch,
        "frozen": _frozen,
        "per-batch": _share(total="batches"),
        "count": _share(total="count"),
        "share-wrong": _share(total="wrong"),
        "percent": _share(total="percent"),
        "last-batch": _share(total="last"),
    },
)

ANSWERS = (QUERIES, FORWARD, LOSS, SURE, SHARE)
