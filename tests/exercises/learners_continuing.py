"""Answers that learners may write to exercises 13.1 to 13.3, right ones and wrong ones."""

import math
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


def turned(token_ids):
    """Time first: cut along the rows of the transposed ids."""
    return token_ids.T[:-1].T, token_ids.T[1:].T


def by_differences(token_ids):
    return token_ids[:, :-1], token_ids[:, :-1] + token_ids.diff(dim=1)


def pairs_of_each(token_ids):
    pairs = [[list(pair) for pair in zip(row, row[1:])] for row in token_ids.tolist()]
    return tuple(torch.tensor(pairs).unbind(-1))


# ---------------------------------------------------------------- 13.2


def as_in_a_library(ignored=-100):
    def loss(logits, token_ids, pad_id):
        shift_logits = logits[..., :-1, :].contiguous()
        shift_labels = token_ids[..., 1:].contiguous()
        return nn.CrossEntropyLoss(ignore_index=ignored)(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
    return loss


def straight_in(logits, token_ids, pad_id):
    return F.cross_entropy(logits[:, :-1], token_ids[:, 1:], ignore_index=pad_id)


def straight_in_whole(logits, token_ids, pad_id):
    return F.cross_entropy(logits, token_ids, ignore_index=pad_id)


def nll_straight_in(logits, token_ids, pad_id):
    return F.nll_loss(logits[:, :-1].log_softmax(dim=-1), token_ids[:, 1:], ignore_index=pad_id)


def one_cut_too_few(logits, token_ids, pad_id):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), token_ids, ignore_index=pad_id)


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


def text_by_text(logits, token_ids, pad_id):
    losses = []
    for scores, ids in zip(logits, token_ids):
        losses.append(F.cross_entropy(scores[:-1], ids[1:], ignore_index=pad_id))
    return torch.stack(losses).mean()


def text_by_text_with_answers(logits, token_ids, pad_id):
    losses = []
    for scores, ids in zip(logits, token_ids):
        if (ids[1:] != pad_id).any():
            losses.append(F.cross_entropy(scores[:-1], ids[1:], ignore_index=pad_id))
    return sum(losses) / len(losses)


def weighted_row_means(logits, token_ids, pad_id):
    """Text by text, each mean weighted by how many answers are in it."""
    total, count = 0.0, 0
    for scores, ids in zip(logits, token_ids):
        if answers := int((ids[1:] != pad_id).sum()):
            total = total + answers * F.cross_entropy(scores[:-1], ids[1:], ignore_index=pad_id)
            count += answers
    return total / count


def batch_first(logits, token_ids, pad_id):
    real = token_ids[:, 1:] != pad_id
    return ((each_of(logits, token_ids) * real).sum(dim=0) / real.sum(dim=0)).mean()


def batch_first_padding_too(logits, token_ids, pad_id):
    return each_of(logits, token_ids).mean(dim=0).mean()


def smoothed(logits, token_ids, pad_id):
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), token_ids[:, 1:], ignore_index=pad_id, label_smoothing=0.1)


def without_the_first(logits, token_ids, pad_id):
    costs, real = each_of(logits, token_ids), token_ids[:, 1:] != pad_id
    return costs[:, 1:][real[:, 1:]].mean() if real[:, 1:].any() else costs[real].mean()


def log_of_probability(little=0.0, dim=-1):
    def loss(logits, token_ids, pad_id):
        probabilities = logits[:, :-1].softmax(dim=dim)
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


def by_distribution(logits, token_ids, pad_id):
    logs = torch.distributions.Categorical(logits=logits[:, :-1]).log_prob(token_ids[:, 1:])
    return -logs[token_ids[:, 1:] != pad_id].mean()


def only_what_counts(logits, token_ids, pad_id):
    targets = token_ids[:, 1:]
    return F.cross_entropy(logits[:, :-1][targets != pad_id], targets[targets != pad_id])


def targets_moved(logits, token_ids, pad_id):
    """All logits stay; the ids move by one, and what comes round is made padding."""
    targets = token_ids.roll(-1, dims=1)
    targets[:, -1] = pad_id
    return F.cross_entropy(logits.mT, targets, ignore_index=pad_id)


def both_cut_in_front(logits, token_ids, pad_id):
    return F.cross_entropy(logits[:, 1:].flatten(0, 1), token_ids[:, 1:].flatten(), ignore_index=pad_id)


def divided_by(count):
    def loss(logits, token_ids, pad_id):
        return (each_of(logits, token_ids) * (token_ids[:, 1:] != pad_id)).sum() / count(token_ids, pad_id)
    return loss


def softmax_without_padding(logits, token_ids, pad_id):
    logits = logits.clone()
    logits[..., pad_id] = -math.inf
    return right("13.2")(logits, token_ids, pad_id)


def yes_or_no_each(logits, token_ids, pad_id):
    wanted = F.one_hot(token_ids[:, 1:], logits.shape[-1]).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits[:, :-1], wanted)


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


def counted_to_the_last(more):
    """As many tokens as it takes to stay below p, and `more`."""
    def answer(probabilities, p):
        ordered, ids = probabilities.sort(descending=True, stable=True)
        count = int((ordered.cumsum(0) < p - 1e-9).sum()) + more
        kept = torch.zeros_like(probabilities)
        kept[ids[:count]] = ordered[:count]
        return kept / kept.sum()
    return answer


def by_quantile(probabilities, p):
    kept = probabilities * (probabilities >= probabilities.quantile(1 - p))
    return kept / kept.sum()


def all_the_same(probabilities, p):
    kept = right("13.3")(probabilities, p) > 0
    return kept / kept.sum()


def only_those_kept(probabilities, p):
    kept = right("13.3")(probabilities, p)
    return kept[kept > 0]


def by_comparing_all(probabilities, p):
    """What is ahead of each token, from a table of who comes before whom."""
    ids = torch.arange(len(probabilities))
    ahead = (probabilities > probabilities[:, None]) | ((probabilities == probabilities[:, None]) & (ids < ids[:, None]))
    kept = probabilities * ((ahead * probabilities).sum(dim=1) < p - 1e-7)
    return kept / kept.sum()


def in_double(probabilities, p):
    ordered, ids = probabilities.double().sort(descending=True, stable=True)
    kept = torch.zeros_like(ordered).index_put((ids,), ordered * (ordered.cumsum(0) - ordered < p - 1e-9))
    return (kept / kept.sum()).to(probabilities.dtype)


def trimmed(probabilities, p):
    left, kept = p, torch.zeros_like(probabilities)
    for i in probabilities.argsort(descending=True, stable=True).tolist():
        kept[i] = min(probabilities[i].item(), max(left, 0.0))
        left -= probabilities[i].item()
    return kept / kept.sum()


def zeros_in_a_softmax(probabilities, p):
    return (probabilities * (right("13.3")(probabilities, p) > 0)).softmax(dim=0)


def hidden_as_logits(probabilities, p):
    kept = right("13.3")(probabilities, p)
    return kept.masked_fill(kept == 0, -math.inf)
