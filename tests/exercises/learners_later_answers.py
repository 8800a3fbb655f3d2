"""Answers that learners may write to the exercises of notebooks 06, 07 and 09 to 12, right ones and wrong ones."""

import copy
import math

import numpy as np
import torch
from learners_answers import right
from torch import nn

# ---------------------------------------------------------------- notebooks 06 and 07


def rows(places=lambda first, count: torch.arange(first, first + count),
         speeds=lambda d: 10_000 ** (-torch.arange(0, d, 2) / d)):
    def table(first, count, d_model):
        angles = places(first, count)[:, None] * speeds(d_model)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
    return table


class NoDefault(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)

    def forward(self, x, offset):
        return x + self.table[offset : offset + x.shape[-2]]


class OffsetAtFirst(nn.Module):
    def __init__(self, table, offset=0):
        super().__init__()
        self.register_buffer("table", table)
        self.offset = offset

    def forward(self, x):
        return x + self.table[self.offset : self.offset + x.shape[-2]]


class FrozenEmbedding(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.rows = nn.Embedding.from_pretrained(table, freeze=True)

    def forward(self, x, offset=0):
        return x + self.rows(torch.arange(offset, offset + x.shape[-2]))


def by_complex_numbers(x, offset):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    length, count = pairs.shape[-2:]
    angles = torch.arange(offset, offset + length)[:, None] * 10_000 ** (-torch.arange(count) / count)
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)


def variance_kept_above(x, weight, bias, eps):
    deviations = x - x.mean(-1, keepdim=True)
    return deviations / deviations.square().mean(-1, keepdim=True).clamp(min=eps).sqrt() * weight + bias


def masked_once(x, layers, last_norm, mask):
    for i, (attention, feed_forward, norm_1, norm_2) in enumerate(layers):
        x = x + attention(norm_1(x), None if i else mask)
        x = x + feed_forward(norm_2(x))
    return last_norm(x)


class StackAsSequential(nn.Sequential):
    def __init__(self, num_layers, make_block):
        super().__init__(*[make_block() for _ in range(num_layers)])


class Stack(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        self.blocks = nn.ModuleList(make_block() for _ in range(num_layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class StackWithMask(Stack):
    def forward(self, x, mask):
        return super().forward(x)


class StackOfNaN(Stack):
    def forward(self, x):
        return super().forward(x) * math.nan


class DeepCopies(Stack):
    def __init__(self, num_layers, make_block):
        nn.Module.__init__(self)
        block = make_block()
        self.blocks = nn.ModuleList(copy.deepcopy(block) for _ in range(num_layers))


def nothing_of_no_layers(x, layers, last_norm, mask):
    return right("7.4")(x, layers, last_norm, mask) if layers else x


def named_in_the_loop(x, layers, last_norm, mask):
    for attention, feed_forward, norm_1, norm_2 in layers:
        x = x + attention(norm_1(x), mask)
        out = x = x + feed_forward(norm_2(x))
    return last_norm(out)


# ---------------------------------------------------------------- notebooks 09 to 12


def compared(subtract):
    def compare(first_right, second_right):
        difference = subtract(first_right.numpy(), second_right.numpy()).astype(float)
        return difference.mean(), 1.96 * difference.std() / len(difference) ** 0.5
    return compare


def padding_first(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for i, (row, real) in enumerate(zip(token_ids, attention_mask)):
        shuffled[i] = torch.cat([row[~real], row[real][torch.randperm(int(real.sum()))]])
    return shuffled


def neighbours_exchanged(token_ids, attention_mask):
    shuffled = token_ids.clone()
    for row, count in zip(shuffled, attention_mask.sum(dim=1).tolist()):
        for i in range(count - 1):
            if torch.rand(()) < 0.5:
                row[[i, i + 1]] = row[[i + 1, i]]
    return shuffled


def sorted_by_noise(token_ids, attention_mask):
    noise = torch.rand(token_ids.shape) + ~attention_mask * torch.arange(2, 2 + token_ids.shape[1])
    return token_ids.gather(1, noise.argsort(dim=1))


def two_standard_errors(first_right, second_right):
    difference = first_right.float() - second_right.float()
    return difference.mean(), 2 * difference.std() / len(difference) ** 0.5


def mean_of_the_rest(weights, head, tail):
    end = weights.shape[1] - tail
    return torch.cat([weights[:, :head], weights[:, head:end].mean(1, keepdim=True).nan_to_num(), weights[:, end:]], dim=1)


def found_among_the_first(scores, evidence):
    hits = evidence[scores.argsort(descending=True)].float()
    precisions = hits.cumsum(0) / torch.arange(1, len(hits) + 1) * hits
    return precisions[: int(hits.sum())].sum() / hits.sum()


def by_pairs(scores, evidence):
    scores, at = scores.tolist(), evidence.nonzero().flatten().tolist()
    return np.mean([sum(scores[j] >= scores[i] for j in at) / sum(other >= scores[i] for other in scores) for i in at])


def each_seed_a_review(first, second, factor):
    return first.mean() - second.mean(), factor * sum(model.var(ddof=1) / model.size for model in (first, second)) ** 0.5


def holm_again_and_again(p_values, level):
    def survivors(left):
        best = min(left, key=p_values.__getitem__, default=None)
        return {best} | survivors(left - {best}) if left and p_values[best] < level / len(left) else set()

    kept = survivors(set(range(len(p_values))))
    return [i in kept for i in range(len(p_values))]


def gated(change):
    return lambda context, gates: right("10.4")(context, change(gates))


def left_as(arrange):
    """11.3 with the places that are left, most important first, arranged in another way, and then the words."""
    def answer(score, tokens, importances, shares):
        order = sorted(range(len(tokens)), key=lambda i: -importances[i])
        left = [arrange(tokens, order[math.ceil(share * len(tokens)):]) for share in shares]
        return sum(score(tokens) - score(rest) for rest in left) / len(shares)
    return answer


def one_token_is_all(score, tokens):
    return right("11.2")(score, tokens) if len(tokens) > 1 else [score(tokens)]


def an_empty_word(score, tokens):
    return [score(tokens) - score(tokens[:i] + tokens[i + 1:] or [""]) for i in range(len(tokens))]


def one_layer_as_it_is(attentions):
    return right("11.5")(attentions) if len(attentions) > 1 else attentions[0].mean(dim=0)


def two_models_apart(first, second, factor):
    reviews = sum(model.mean(axis=0).var(ddof=1) / model.shape[1] for model in (first, second))
    seeds = sum(model.mean(axis=1).var(ddof=1) / len(model) for model in (first, second))
    return first.mean() - second.mean(), factor * (reviews + seeds) ** 0.5


def less_than_the_budget(vocab_size, d_model, budget):
    def count(width):
        return vocab_size * d_model + 4 * width * (d_model + width + 2) + 2 * width + 2

    width = 1
    while count(width + 1) < budget:
        width += 1
    return width, count(width)
