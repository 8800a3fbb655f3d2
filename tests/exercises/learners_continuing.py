"""Answers that learners may write to the exercises of notebook 13, right ones and wrong ones."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import torch
from learners_answers import right
from torch import nn
from torch.nn import functional as F

from course_utils import language_model

# ---------------------------------------------------------------- 13.1


def rows_of_targets(token_ids):
    targets = []
    for row in token_ids:
        targets.append(row[1:])
    return token_ids, torch.stack(targets)


def pairs_in_one_tensor(token_ids):
    return torch.stack([token_ids[:, :-1], token_ids[:, 1:]], dim=-1)


def last_token_again(token_ids):
    return token_ids, torch.cat([token_ids[:, 1:], token_ids[:, -1:]], dim=1)


def one_long_text(token_ids):
    return token_ids.flatten()[:-1], token_ids.flatten()[1:]


def one_pair_short(token_ids):
    inputs, targets = [], []
    for i in range(token_ids.shape[1] - 2):
        inputs.append(token_ids[:, i])
        targets.append(token_ids[:, i + 1])
    return torch.stack(inputs, dim=1), torch.stack(targets, dim=1)


# ---------------------------------------------------------------- 13.2


def as_in_a_library(ignored=-100):
    def loss(logits, token_ids, pad_id):
        shift_logits = logits[..., :-1, :].contiguous()
        shift_labels = token_ids[..., 1:].contiguous()
        return nn.CrossEntropyLoss(ignore_index=ignored)(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
    return loss


def straight_in(logits, token_ids, pad_id):
    return F.cross_entropy(logits[:, :-1], token_ids[:, 1:], ignore_index=pad_id)


def viewed(logits, token_ids, pad_id):
    return F.cross_entropy(logits[:, :-1].view(-1, logits.shape[-1]), token_ids[:, 1:].view(-1), ignore_index=pad_id)


def by_class_weights(logits, token_ids, pad_id):
    weight = torch.ones(logits.shape[-1], dtype=logits.dtype)
    weight[pad_id] = 0
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), token_ids[:, 1:].flatten(), weight=weight)


def each_of(logits, token_ids):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), token_ids[:, 1:], reduction="none")


def masked_mean(logits, token_ids, pad_id):
    return (each_of(logits, token_ids) * (token_ids[:, 1:] != pad_id)).mean()


def sum_for_each_text(logits, token_ids, pad_id):
    return (each_of(logits, token_ids) * (token_ids[:, 1:] != pad_id)).sum() / len(token_ids)


def both_real(logits, token_ids, pad_id):
    real = (token_ids[:, 1:] != pad_id) & (token_ids[:, :-1] != pad_id)
    return each_of(logits, token_ids)[real].mean()


def up_to_its_length(logits, token_ids, pad_id):
    costs = []
    for row, ids in zip(each_of(logits, token_ids), token_ids):
        costs.append(row[: max(int((ids != pad_id).sum()) - 1, 0)])
    return torch.cat(costs).mean()


def log_of_probability(little=0.0):
    def loss(logits, token_ids, pad_id):
        probabilities = logits[:, :-1].softmax(dim=-1)
        p = probabilities.gather(-1, token_ids[:, 1:, None])[..., 0]
        return -(p + little).log()[token_ids[:, 1:] != pad_id].mean()
    return loss


def in_plain_python(logits, token_ids, pad_id):
    costs = []
    for scores, ids in zip(logits.tolist(), token_ids.tolist()):
        for i in range(len(ids) - 1):
            if ids[i + 1] != pad_id:
                high = max(scores[i])
                costs.append(high + math.log(sum(math.exp(s - high) for s in scores[i])) - scores[i][ids[i + 1]])
    return sum(costs) / len(costs)


def one_softmax_for_all(logits, token_ids, pad_id):
    logs = logits[:, :-1].flatten(1).log_softmax(-1).reshape(logits[:, :-1].shape)
    return F.nll_loss(logs.flatten(0, 1), token_ids[:, 1:].flatten(), ignore_index=pad_id)


def by_the_course(logits, token_ids, pad_id):
    class Model(nn.Module):
        config = SimpleNamespace(pad_id=pad_id)

        def forward(self, token_ids):
            return SimpleNamespace(logits=logits[:, :-1])

    return language_model.next_token_loss(Model(), token_ids)[0]


def loss_and_count(logits, token_ids, pad_id):
    return right("13.2")(logits, token_ids, pad_id), int((token_ids[:, 1:] != pad_id).sum())


# ---------------------------------------------------------------- 13.3


def taken_while_it_fits(probabilities, p):
    kept, total = torch.zeros_like(probabilities), 0.0
    for i in probabilities.argsort(descending=True, stable=True).tolist():
        if total + probabilities[i].item() > p:
            break
        kept[i] = probabilities[i]
        total += probabilities[i].item()
    return kept / kept.sum()


def taken_until_above(probabilities, p):
    kept, total = torch.zeros_like(probabilities), 0.0
    for i in probabilities.argsort(descending=True, stable=True).tolist():
        kept[i] = probabilities[i]
        total += probabilities[i].item()
        if total > p:
            break
    return kept / kept.sum()


def well_known_lines(shifted=True, clone=True):
    """The lines that many programs share."""
    def answer(probs, top_p):
        sorted_probs, sorted_indices = torch.sort(probs, descending=True, stable=True)
        remove = torch.cumsum(sorted_probs, dim=-1) > top_p
        if shifted:
            remove[..., 1:] = remove[..., :-1].clone()
            remove[..., 0] = 0
        probs = probs.clone() if clone else probs
        probs[sorted_indices[remove]] = 0.0
        return probs / probs.sum()
    return answer


def from_below(probs, top_p):
    sorted_probs, sorted_indices = torch.sort(probs, descending=False, stable=True)
    remove = sorted_probs.cumsum(dim=-1) <= (1 - top_p)
    remove[-1] = False
    probs = probs.clone()
    probs[sorted_indices[remove]] = 0
    return probs / probs.sum()


def backwards_in_numpy(probabilities, p):
    numbers = probabilities.numpy()
    order = numbers.argsort(kind="stable")[::-1]
    count = int((np.cumsum(numbers[order]) < p - 1e-7).sum()) + 1
    kept = np.zeros_like(numbers)
    kept[order[:count]] = numbers[order[:count]]
    return kept / kept.sum()


def larger_and_larger(probabilities, p):
    for k in range(1, len(probabilities) + 1):
        values, ids = probabilities.sort(descending=True, stable=True)
        if values[:k].sum() >= p:
            break
    return torch.zeros_like(probabilities).index_copy(0, ids[:k], values[:k] / values[:k].sum())


def by_quantile(probabilities, p):
    kept = probabilities * (probabilities >= probabilities.quantile(1 - p))
    return kept / kept.sum()


def all_the_same(probabilities, p):
    kept = right("13.3")(probabilities, p) > 0
    return kept / kept.sum()


def only_those_kept(probabilities, p):
    kept = right("13.3")(probabilities, p)
    return kept[kept > 0]


# ---------------------------------------------------------------- 13.4


def step(offset=lambda past_keys: past_keys.shape[2], query_offset=None, attend=F.scaled_dot_product_attention, dim=2):
    def answer(query, key, value, past_keys, past_values, rotate):
        at = offset(past_keys)
        query = rotate(query, at if query_offset is None else query_offset)
        keys = torch.cat([past_keys, rotate(key, at)], dim=dim)
        values = torch.cat([past_values, value], dim=dim)
        return attend(query, keys, values), keys, values
    return answer


def all_rotated_at_the_end(query, key, value, past_keys, past_values, rotate):
    keys, values = torch.cat([past_keys, key], 2), torch.cat([past_values, value], 2)
    query, keys = rotate(query, 0), rotate(keys, 0)
    return F.scaled_dot_product_attention(query, keys, values), keys, values


def raw(query, key, value, past_keys, past_values, rotate):
    keys, values = torch.cat([past_keys, key], 2), torch.cat([past_values, value], 2)
    return F.scaled_dot_product_attention(query, keys, values), keys, values


def cached_before_rotating(query, key, value, past_keys, past_values, rotate):
    context, _, values = right("13.4")(query, key, value, past_keys, past_values, rotate)
    return context, torch.cat([past_keys, key], 2), values


def heads_merged(query, key, value, past_keys, past_values, rotate):
    context, keys, values = right("13.4")(query, key, value, past_keys, past_values, rotate)
    return context.transpose(1, 2).flatten(2), keys, values


def last_eight(query, keys, values):
    return F.scaled_dot_product_attention(query, keys[:, :, -8:], values[:, :, -8:])


def causal(query, keys, values):
    return F.scaled_dot_product_attention(query, keys, values, is_causal=True)


def triangle(query, keys, values):
    scores = query @ keys.mT / query.shape[-1] ** 0.5
    mask = torch.tril(torch.ones(scores.shape[-2:], dtype=torch.bool))
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ values


def past_and_new_apart(query, key, value, past_keys, past_values, rotate):
    """Two softmaxes joined by their sums."""
    past = past_keys.shape[2]
    query, key = rotate(query, past), rotate(key, past)
    old, new = (query @ part.mT / query.shape[-1] ** 0.5 for part in (past_keys, key))
    total = torch.logaddexp(old.logsumexp(-1, keepdim=True), new)
    context = (old - total).exp() @ past_values + (new - total).exp() * value
    return context, torch.cat([past_keys, key], 2), torch.cat([past_values, value], 2)


def no_cache_yet(query, key, value, past_keys, past_values, rotate):
    if past_keys.numel() == 0:
        return value, key, value
    return right("13.4")(query, key, value, past_keys, past_values, rotate)


# ---------------------------------------------------------------- 13.5


def reach(change, same=torch.equal, result=lambda back: back):
    def answer(logits_of, token_ids, vocab_size):
        before, furthest = logits_of(token_ids)[:, -1], 0
        for back in range(1, token_ids.shape[1] + 1):
            if not same(logits_of(change(token_ids.clone(), back, vocab_size))[:, -1], before):
                furthest = result(back)
        return furthest
    return answer


def one_more(changed, back, vocab_size):
    changed[:, -back] = (changed[:, -back] + 1) % vocab_size
    return changed


def without_modulo(changed, back, vocab_size):
    changed[:, -back] += 1
    return changed


def all_up_to_the_end(changed, back, vocab_size):
    changed[:, -back:] = (changed[:, -back:] + 1) % vocab_size
    return changed


def token_left_out(changed, back, vocab_size):
    keep = torch.arange(changed.shape[1]) != changed.shape[1] - back
    return changed[:, keep] if keep.any() else changed


def same_probabilities(one, other):
    return torch.allclose(one.softmax(-1), other.softmax(-1))


def everything_before(logits_of, token_ids, vocab_size):
    before, seq_len = logits_of(token_ids)[:, -1], token_ids.shape[1]
    for back in range(seq_len):
        changed = token_ids.clone()
        changed[:, : seq_len - back] = (changed[:, : seq_len - back] + 1) % vocab_size
        if torch.equal(logits_of(changed)[:, -1], before):
            return back
    return seq_len


def up_to_the_second(logits_of, token_ids, vocab_size):
    before, furthest = logits_of(token_ids)[:, -1], 0
    for back in range(1, token_ids.shape[1]):
        if not torch.equal(logits_of(one_more(token_ids.clone(), back, vocab_size))[:, -1], before):
            furthest = back
    return furthest


# ---------------------------------------------------------------- 13.6


def bits(size):
    return lambda loss, n, text: loss * n / math.log(2) / size(text)


def size_of_the_object(text):
    return sys.getsizeof(text)
