"""Other right answers to the exercises of notebook 16, which a check must accept."""

import math

import numpy as np
import torch
from torch import nn


def _attention_by_loops(query, keys, states, mask, v):
    contexts, rows = [], torch.zeros(mask.shape, dtype=states.dtype)
    for b in range(len(query)):
        real = mask[b].nonzero().flatten().tolist()
        scores = {j: sum(v * torch.tanh(query[b] + keys[b, j])) for j in real}
        exponentials = {j: torch.exp(score - max(scores.values())) for j, score in scores.items()}
        for j in real:
            rows[b, j] = exponentials[j] / sum(exponentials.values())
        contexts.append(sum(rows[b, j] * states[b, j] for j in real))
    return torch.stack(contexts), rows


def _attention_by_einsum(query, keys, states, mask, v):
    scores = torch.einsum("bsd,d->bs", torch.tanh(query.unsqueeze(1) + keys), v)
    weights = torch.softmax(scores + torch.where(mask, 0.0, -1e9), dim=1)
    return torch.einsum("bs,bsd->bd", weights, states), weights


def _attention_renormalised(query, keys, states, mask, v):
    weights = (torch.tanh(query[:, None, :] + keys) @ v[:, None]).squeeze(-1).softmax(-1) * mask
    weights = weights / weights.sum(-1, keepdim=True)
    return (weights[..., None] * states).sum(1), weights


def _loss_by_layers(model, source_ids, source_mask, target_ids):
    logits = model(source_ids, source_mask, target_ids[:, :-1])
    return nn.CrossEntropyLoss(ignore_index=0)(logits.transpose(1, 2), target_ids[:, 1:])


def _loss_by_gather(model, source_ids, source_mask, target_ids):
    log_p = model(source_ids, source_mask, target_ids[:, :-1]).log_softmax(-1)
    asked = target_ids[:, 1:]
    each = -log_p.gather(2, asked[..., None])[..., 0]
    return (each * (asked != 0)).sum() / (asked != 0).sum()


def _loss_by_loops(model, source_ids, source_mask, target_ids):
    log_p, total, count = model(source_ids, source_mask, target_ids[:, :-1]).log_softmax(-1), 0.0, 0
    for row, asked in zip(log_p, target_ids[:, 1:].tolist()):
        for scores, word in zip(row, asked):
            if word != 0:
                total, count = total - scores[word], count + 1
    return total / count


def _loss_sentence_by_sentence(model, source_ids, source_mask, target_ids):
    total, count = 0.0, 0
    for i, row in enumerate(target_ids):
        row = row[row != 0]
        logits = model(source_ids[i : i + 1], source_mask[i : i + 1], row[None, :-1])[0]
        total, count = total + nn.functional.cross_entropy(logits, row[1:], reduction="sum"), count + len(row) - 1
    return total / count


def _loss_of_all_read(model, source_ids, source_mask, target_ids):
    log_p = model(source_ids, source_mask, target_ids)[:, :-1].log_softmax(-1)
    return nn.functional.nll_loss(log_p.permute(0, 2, 1), target_ids[:, 1:], ignore_index=0)


def _write_by_recursion(step, state, max_len, last=2):
    if max_len == 0:
        return []
    logits, state = step(last, state)
    best = max(range(len(logits)), key=lambda word: logits[word])
    return [] if best == 3 else [best, *_write_by_recursion(step, state, max_len - 1, best)]


def _write_for(step, state, max_len):
    ids, last = [], torch.tensor(2)
    for _ in range(max_len):
        logits, state = step(last, state)
        last = logits.softmax(-1).argmax()
        if last.item() == 3:
            return ids
        ids.append(last.item())
    return ids


def _write_then_cut(step, state, max_len):
    ids = [2]
    for _ in range(max_len):
        logits, state = step(ids[-1], state)
        ids.append(logits.tolist().index(max(logits.tolist())))
    ids = ids[1:]
    return ids[: ids.index(3)] if 3 in ids else ids


def _write_as_tensor(step, state, max_len):
    return torch.tensor(_write_for(step, state, max_len))


def _aer_by_loops(weights, gold):
    right, words = 0, len(weights) - 1
    for target in range(words):
        best = max(range(weights.shape[1]), key=lambda source: float(weights[target, source]))
        right += [best, target] in gold.tolist()
    return 1 - 2 * right / (words + len(gold))


def _aer_by_matrix(weights, gold):
    found, known = torch.zeros_like(weights[:-1]), torch.zeros_like(weights[:-1])
    found[torch.arange(len(found)), weights[:-1].argmax(-1)] = 1
    known[gold[:, 1], gold[:, 0]] = 1
    return 1 - 2 * (found * known).sum() / (found.sum() + known.sum())


def _aer_in_numpy(weights, gold):
    best = np.argmax(weights.numpy()[:-1], axis=1)
    right = sum(best[target] == source for source, target in gold.numpy())
    return np.float64(1 - 2 * right / (len(best) + len(gold)))


def _aer_by_f1(weights, gold):
    best = weights[:-1].argmax(1)
    right = (best[gold[:, 1]] == gold[:, 0]).sum().item()
    precision, recall = right / len(best), right / len(gold)
    return 1 - 2 * precision * recall / (precision + recall) if right else 1.0


def _exact():
    scores = [math.tanh(1) + 2 * math.tanh(1), 2 * math.tanh(1), -math.tanh(1) + 2 * math.tanh(2)]
    total = sum(map(math.exp, scores))
    return [math.exp(score) / total for score in scores]


VARIANTS = {
    "16.1": {"exact": _exact, "three decimals": lambda: (0.558, 0.261, 0.181), "a text": lambda: "0.56, 0.26, 0.18",
             "a tensor": lambda: torch.tensor([0.56, 0.26, 0.18])},
    "16.2": {"loops": _attention_by_loops, "einsum": _attention_by_einsum, "renormalised": _attention_renormalised},
    "16.3": {"layers": _loss_by_layers, "gather": _loss_by_gather, "loops": _loss_by_loops,
             "sentence by sentence": _loss_sentence_by_sentence, "all read": _loss_of_all_read},
    "16.4": {"for": _write_for, "cut": _write_then_cut, "a tensor": _write_as_tensor,
             "recursion": _write_by_recursion},
    "16.5": {"loops": _aer_by_loops, "a matrix": _aer_by_matrix, "numpy": _aer_in_numpy, "F1": _aer_by_f1},
}
