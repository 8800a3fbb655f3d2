"""Other right answers to the exercises of notebook 17, which a check must accept."""

import math
from collections import Counter

import numpy as np
import torch

# ---------------------------------------------------------------- 17.1


def _cross_by_loops(x, memory, W_q, W_k, W_v, source_mask):
    batch, target = x.shape[:2]
    weights = torch.zeros(batch, target, memory.shape[1])
    context = torch.zeros(batch, target, W_v.shape[1])
    for b in range(batch):
        words = memory[b, source_mask[b]]
        for i in range(target):
            row = (x[b, i] @ W_q @ (words @ W_k).T * W_q.shape[1] ** -0.5).softmax(0)
            weights[b, i, source_mask[b]] = row
            context[b, i] = row @ words @ W_v
    return context, weights


def _cross_by_bias(x, memory, W_q, W_k, W_v, source_mask):
    bias = torch.where(source_mask, 0.0, -1e9).unsqueeze(1)
    scores = torch.einsum("btd,bsd->bts", x @ W_q, memory @ W_k) / math.sqrt(W_k.size(1)) + bias
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True))
    return torch.bmm(weights, memory @ W_v), weights


def _cross_renormalised(x, memory, W_q, W_k, W_v, source_mask):
    scores = (x @ W_q) @ (memory @ W_k).mT / W_q.shape[-1] ** 0.5
    raw = (scores - scores.amax(-1, keepdim=True)).exp() * source_mask[:, None, :]
    weights = raw / raw.sum(-1, keepdim=True)
    return weights @ (memory @ W_v), weights

# ---------------------------------------------------------------- 17.2


def _shift_by_lists(target_ids):
    rows = target_ids.tolist()
    length = len(rows[0]) - 1
    mask = [[j <= i for j in range(length)] for i in range(length)]
    return torch.tensor([row[:-1] for row in rows]), torch.tensor([row[1:] for row in rows]), torch.tensor(mask)


def _shift_by_places(target_ids):
    places = torch.arange(target_ids.size(1) - 1)
    return target_ids[:, places], target_ids[:, places + 1], places[:, None] >= places[None, :]

# ---------------------------------------------------------------- 17.3


def _loss_by_loops(logits, targets, smoothing, pad_id):
    total, count = 0.0, 0
    for rows, words in zip(logits, targets.tolist()):
        for row, word in zip(rows, words):
            if word != pad_id:
                log_p = row.log_softmax(0)
                q = [smoothing / len(row) + (1 - smoothing) * (v == word) for v in range(len(row))]
                total, count = total - sum(a * b for a, b in zip(q, log_p)), count + 1
    return total / count


def _loss_by_rows(logits, targets, smoothing, pad_id):
    kept = targets != pad_id
    log_p = torch.log_softmax(logits[kept], dim=-1)
    q = torch.full_like(log_p, smoothing / log_p.shape[-1])
    q[torch.arange(len(q)), targets[kept]] += 1 - smoothing
    return -(q * log_p).sum() / kept.sum()


def _loss_by_logsumexp(logits, targets, smoothing, pad_id):
    normal = logits.logsumexp(-1)
    right = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    each = normal - (1 - smoothing) * right - smoothing * logits.mean(-1)
    return torch.masked_select(each, targets.ne(pad_id)).mean()

# ---------------------------------------------------------------- 17.4


def _winner_by_list(log_probabilities, lengths, alpha):
    scores = [p / ((5 + n) / 6) ** alpha for p, n in zip(log_probabilities.tolist(), lengths.tolist())]
    return scores.index(max(scores))


def _winner_in_numpy(log_probabilities, lengths, alpha):
    return np.argmax(log_probabilities.numpy() * np.power(6 / (5 + lengths.numpy()), alpha))

# ---------------------------------------------------------------- 17.5


def _write_for(step, begin, end, max_len):
    words = [begin]
    for position in range(max_len):
        word = torch.argmax(step(words[-1], position)).item()
        if word == end:
            return words[1:]
        words.append(word)
    return words[1:]


def _write_and_cut(step, begin, end, max_len):
    words, last = [], begin
    for position in range(max_len):
        last = int(step(last, position).topk(1).indices)
        words.append(last)
    return words[: words.index(end)] if end in words else words

# ---------------------------------------------------------------- 17.6


def _precision_by_counters(translations, references, n):
    hits = possible = 0
    for ours, theirs in zip(translations, references):
        own, wanted = (Counter(zip(*(side[i:] for i in range(n)))) for side in (ours, theirs))
        hits, possible = hits + (own & wanted).total(), possible + own.total()
    return hits / possible if possible > 0 else 0


def _precision_by_taking_away(translations, references, n):
    hits = possible = 0
    for ours, theirs in zip(translations, references):
        left = [theirs[i : i + n] for i in range(max(0, len(theirs) - n + 1))]
        for i in range(max(0, len(ours) - n + 1)):
            possible += 1
            if ours[i : i + n] in left:
                left.remove(ours[i : i + n])
                hits += 1
    return torch.tensor(hits / max(possible, 1))


VARIANTS = {
    "17.1": {"loops": _cross_by_loops, "bias": _cross_by_bias, "renormalised": _cross_renormalised},
    "17.2": {"lists": _shift_by_lists, "places": _shift_by_places,
             "dict": lambda ids: dict(zip(("read", "asked", "mask"), _shift_by_places(ids)))},
    "17.3": {"loops": _loss_by_loops, "rows": _loss_by_rows, "logsumexp": _loss_by_logsumexp},
    "17.4": {"list": _winner_by_list, "numpy": _winner_in_numpy,
             "tensor": lambda p, n, alpha: torch.argmax(p / ((n + 5) / 6) ** alpha)},
    "17.5": {"for": _write_for, "cut": _write_and_cut, "tensor": lambda *given: torch.tensor(_write_for(*given))},
    "17.6": {"counters": _precision_by_counters, "taken away": _precision_by_taking_away,
             "percent undone": lambda t, r, n: _precision_by_counters(t, r, n) * 100 / 100},
}
