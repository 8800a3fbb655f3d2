"""The course's answers to the exercises of notebook 16, and what each known mistake would write."""

import math

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Answers

BEGIN, END, PAD = 2, 3, 0

# ---------------------------------------------------------------- 16.1

KEYS, QUERY, V = torch.tensor([[1.0, 0.0], [0.0, 0.0], [-1.0, 1.0]]), torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0])


def bahdanau_by_hand():
    # sums (1, 1), (0, 1), (-1, 2); scores 0.76 + 1.52, 1.52, -0.76 + 1.92; exponentials 9.78, 4.57, 3.19
    return [0.56, 0.26, 0.18]


HAND = Answers(
    bahdanau_by_hand,
    mutants={
        "no-tanh": lambda: ((QUERY + KEYS) @ V).softmax(dim=0),
        "no-softmax": lambda: (QUERY + KEYS).tanh() @ V,
        "exponentials": lambda: ((QUERY + KEYS).tanh() @ V).exp(),
        "v-forgotten": lambda: (QUERY + KEYS).tanh().sum(dim=1).softmax(dim=0),
        "query-forgotten": lambda: (KEYS.tanh() @ V).softmax(dim=0),
        "dot-product": lambda: (KEYS @ QUERY).softmax(dim=0),
        "sign-lost": lambda: ((QUERY + KEYS).abs().tanh() @ V).softmax(dim=0),
        "query-subtracted": lambda: ((QUERY - KEYS).tanh() @ V).softmax(dim=0),
        "tanh-last": lambda: ((QUERY + KEYS) @ V).tanh().softmax(dim=0),
        "v-turned-round": lambda: ((QUERY + KEYS).tanh() @ V.flip(0)).softmax(dim=0),
        "no-exponential": lambda: (QUERY + KEYS).tanh() @ V / ((QUERY + KEYS).tanh() @ V).sum(),
    },
)

# ---------------------------------------------------------------- 16.2


def additive_step(query, keys, states, mask, v):
    scores = (query[:, None] + keys).tanh() @ v                            # (batch, source)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return (weights[:, None] @ states)[:, 0], weights                      # (batch, d_states)


def _step(scores=lambda q, k, v: (q[:, None] + k).tanh() @ v,
          hidden=lambda scores, mask: scores.masked_fill(~mask, -torch.inf),
          soft=lambda scores: scores.softmax(dim=-1), after=lambda weights, mask: weights,
          mean=lambda weights, keys, states, mask: (weights[:, None] @ states)[:, 0]):
    """Additive attention with one of its parts changed."""
    def answer(query, keys, states, mask, v):
        weights = after(soft(hidden(scores(query, keys, v), mask)), mask)
        return mean(weights, keys, states, mask), weights
    return answer


ATTENTION = Answers(
    additive_step,
    mutants={
        "no-tanh": _step(scores=lambda q, k, v: (q[:, None] + k) @ v),
        "tanh-last": _step(scores=lambda q, k, v: ((q[:, None] + k) @ v).tanh()),
        "dot-product": _step(scores=lambda q, k, v: (q[:, None] * k).sum(dim=-1)),
        "query-forgotten": _step(scores=lambda q, k, v: k.tanh() @ v),
        "v-forgotten": _step(scores=lambda q, k, v: (q[:, None] + k).tanh().sum(dim=-1)),
        "over-the-batch": _step(soft=lambda scores: scores.softmax(dim=0).nan_to_num()),
        "padding-attended": _step(hidden=lambda scores, mask: scores),
        "mask-inverted": _step(hidden=lambda scores, mask: scores.masked_fill(mask, torch.finfo(scores.dtype).min)),
        "zero-for-padding": _step(hidden=lambda scores, mask: scores * mask),
        "mask-after-softmax": _step(hidden=lambda scores, mask: scores, after=lambda weights, mask: weights * mask),
        "no-softmax": _step(hidden=lambda scores, mask: scores * mask, soft=lambda scores: scores),
        "sum-of-states": _step(mean=lambda weights, keys, states, mask: (states * mask[..., None]).sum(dim=1)),
        "plain-mean": _step(mean=lambda weights, keys, states, mask: (states * mask[..., None]).sum(dim=1)
                            / mask.sum(dim=1, keepdim=True)),
        "divided-by-length": _step(mean=lambda weights, keys, states, mask: (weights[:, None] @ states)[:, 0]
                                   / states.shape[1]),
    },
)

# ---------------------------------------------------------------- 16.3


def translation_loss(model, source_ids, source_mask, target_ids):
    logits = model(source_ids, source_mask, target_ids[:, :-1])            # (batch, target, vocab)
    return F.cross_entropy(logits.flatten(0, 1), target_ids[:, 1:].flatten(), ignore_index=PAD)


def _loss(read=lambda t: t[:, :-1], asked=lambda t: t[:, 1:], reduce=None, logits_to=lambda logits: logits,
          mask=lambda mask: mask):
    """The loss with one of its parts changed; `reduce(each, asked)` makes one number of each word's -ln p."""
    def answer(model, source_ids, source_mask, target_ids):
        logits, wanted = logits_to(model(source_ids, mask(source_mask), read(target_ids))), asked(target_ids)
        each = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="none")
        return (reduce or (lambda each, wanted: each[wanted != PAD].mean()))(each, wanted)
    return answer


def _read(wanted):
    """The words that are read: BEGIN, and those that are asked for, one step later."""
    return torch.cat([torch.full_like(wanted[:, :1], BEGIN), wanted[:, :-1]], dim=1)


def _without(each, wanted, ids):
    kept = torch.ones_like(wanted, dtype=torch.bool)
    for i in ids:
        kept &= wanted != i
    return each[kept].mean()


LOSS = Answers(
    translation_loss,
    mutants={
        "not-shifted": _loss(read=lambda t: t[:, 1:]),
        "asked-unshifted": _loss(read=lambda t: t[:, :-1], asked=lambda t: t[:, :-1]),
        "last-column-cut": _loss(read=lambda t: t[:, :-2], asked=lambda t: t[:, 1:-1]),
        "whole": _loss(read=lambda t: t, asked=lambda t: t),
        "wrong-way": _loss(read=lambda t: t[:, 1:], asked=lambda t: t[:, :-1]),
        "padding-counted": _loss(reduce=lambda each, wanted: each.mean()),
        "mask-of-the-read-words": _loss(reduce=lambda each, wanted: each[_read(wanted) != PAD].mean()),
        "padding-in-the-count": _loss(reduce=lambda each, wanted: each[wanted != PAD].sum() / each.numel()),
        "begin-in-the-count": _loss(reduce=lambda each, wanted: each[wanted != PAD].sum() / (
            (wanted != PAD).sum() + len(wanted))),
        "no-end-in-the-count": _loss(reduce=lambda each, wanted: each[wanted != PAD].sum() / (
            (wanted != PAD) & (wanted != END)).sum()),
        "summed": _loss(reduce=lambda each, wanted: each[wanted != PAD].sum()),
        "sentence-by-sentence": _loss(reduce=lambda each, wanted: (each * (wanted != PAD)).sum(dim=1).div(
            (wanted != PAD).sum(dim=1)).mean()),
        "end-left-out": _loss(reduce=lambda each, wanted: _without(each, wanted, (PAD, END))),
        "unknown-left-out": _loss(reduce=lambda each, wanted: _without(each, wanted, (PAD, 1))),
        "end-for-padding": _loss(reduce=lambda each, wanted: _without(each, wanted, (END,))),
        "softmax-first": _loss(logits_to=lambda logits: logits.softmax(dim=-1)),
        "viewed": _loss(logits_to=lambda logits: logits.reshape(len(logits), logits.shape[2], -1).transpose(1, 2)),
        "bits": _loss(reduce=lambda each, wanted: each[wanted != PAD].mean() / math.log(2)),
        "source-padding-read": _loss(mask=torch.ones_like),
        "source-mask-inverted": _loss(mask=torch.logical_not),
        "cut-off": _loss(logits_to=torch.detach),
    },
)

# ---------------------------------------------------------------- 16.4


def write(step, state, max_len):
    last, ids = BEGIN, []
    while len(ids) < max_len:
        logits, state = step(last, state)
        last = int(logits.argmax())
        if last == END:
            break
        ids.append(last)
    return ids


def _write(first=BEGIN, read=lambda best, last: best, keep=lambda new, old: new, choose=lambda logits: int(logits.argmax()),
           stop=True, with_end=False, with_begin=False, more=0, skip_end=False, most=None, ends=(END,)):
    """The loop with one of its parts changed."""
    def answer(step, state, max_len):
        last, ids = first, [BEGIN] if with_begin else []
        for _ in range(most or max_len + more):
            logits, new = step(last, state)
            state, best = keep(new, state), choose(logits)
            if best in ends and stop:
                return [*ids, END] if with_end else ids
            if best != END or not skip_end:
                ids.append(best)
            last = read(best, last)
        return ids
    return answer


WRITE = Answers(
    write,
    mutants={
        "reads-begin-again": _write(read=lambda best, last: last),
        "state-not-kept": _write(keep=lambda new, old: old),
        "end-kept": _write(with_end=True),
        "never-stops": _write(stop=False),
        "end-skipped": _write(stop=False, skip_end=True),
        "no-limit": _write(most=50),
        "begin-kept": _write(with_begin=True),
        "starts-with-padding": _write(first=PAD),
        "starts-with-end": _write(first=END),
        "least-probable": _write(choose=lambda logits: int(logits.argmin())),
        "one-word-more": _write(more=1),
        "one-word-fewer": _write(more=-1),
        "ends-at-padding": _write(ends=(PAD, END)),
    },
)

# ---------------------------------------------------------------- 16.5


def aer(weights, gold):
    predicted = {(source, target) for target, source in enumerate(weights[:-1].argmax(dim=1).tolist())}
    known = {(source, target) for source, target in gold.tolist()}
    return 1 - 2 * len(predicted & known) / (len(predicted) + len(known))


def _aer(rows=lambda w: w[:-1], link=lambda w: {(s, t) for t, s in enumerate(w.argmax(dim=1).tolist())}, move=0,
         known=lambda gold: {(s, t) for s, t in gold.tolist()},
         score=lambda right, found, gold: 1 - 2 * right / (found + gold)):
    """The error rate with one of its parts changed."""
    def answer(weights, gold):
        found, links = {(s, t + move) for s, t in link(rows(weights))}, known(gold)
        return float(score(len(found & links), len(found), len(links)))
    return answer


AER = Answers(
    aer,
    mutants={
        "end-counted": _aer(rows=lambda w: w),
        "one-row-late": _aer(rows=lambda w: w[1:]),
        "one-row-early": _aer(move=1),
        "sides-swapped": _aer(known=lambda gold: {(t, s) for s, t in gold.tolist()}),
        "by-source-word": _aer(link=lambda w: {(s, t) for s, t in enumerate(w.argmax(dim=0).tolist())}),
        "smallest-weight": _aer(link=lambda w: {(s, t) for t, s in enumerate(w.argmin(dim=1).tolist())}),
        "precision": _aer(score=lambda right, found, gold: 1 - right / found),
        "recall": _aer(score=lambda right, found, gold: 1 - right / gold),
        "not-one-minus": _aer(score=lambda right, found, gold: 2 * right / (found + gold)),
        "two-forgotten": _aer(score=lambda right, found, gold: 1 - right / (found + gold)),
        "union": _aer(score=lambda right, found, gold: 1 - right / (found + gold - right)),
    },
)

ANSWERS = (HAND, ATTENTION, LOSS, WRITE, AER)
