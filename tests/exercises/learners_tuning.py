"""Answers that learners may write to exercises 14.4 to 14.6, right ones and wrong ones."""

import math

import numpy as np
import torch
from learners_answers import right
from torch import nn
from torch.nn import functional as F

# ---------------------------------------------------------------- 14.4


def with_layers(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    """Layers of their own, which compute in float32, filled with the weights."""
    up, down, norm = nn.Linear(*expand.shape[::-1]), nn.Linear(*expand.shape), nn.LayerNorm(x.shape[-1], eps=eps)
    given = ((up, expand, expand_bias), (down, contract, contract_bias), (norm, gain, shift))
    with torch.no_grad():
        for layer, weight, bias in given:
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
    return norm(x + nn.Sequential(up, nn.GELU(), down)(x))


def word_by_word(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    made = []
    for vector in x.reshape(-1, x.shape[-1]):
        y = vector + contract @ F.gelu(expand @ vector + expand_bias) + contract_bias
        centred = y - y.sum() / len(y)
        made.append(centred / (centred.square().sum() / len(y) + eps) ** 0.5 * gain + shift)
    return torch.stack(made).reshape(x.shape)


def in_numpy(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    x, expand, expand_bias, contract, contract_bias, gain, shift = (
        part.numpy() for part in (x, expand, expand_bias, contract, contract_bias, gain, shift))
    inner = x @ expand.T + expand_bias
    y = x + inner / 2 * (1 + np.vectorize(math.erf)(inner / 2**0.5)) @ contract.T + contract_bias
    return gain * (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + eps) + shift


def normed(y, gain, shift, eps):
    return F.layer_norm(y, y.shape[-1:], gain, shift, eps)


def half(activation=F.gelu, made=lambda y: y, ending=lambda x, y, norm: norm(x + y), norm=normed, bias=True):
    """The half of a block with one of its parts changed."""
    def answer(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
        y = made(F.linear(activation(F.linear(x, expand, expand_bias)), contract, contract_bias if bias else None))
        return ending(x, y, lambda vectors: norm(vectors, gain, shift, eps))
    return answer


def by_normal_distribution(inner):
    return inner * torch.distributions.Normal(0.0, 1.0).cdf(inner)


def mean_square_only(y, gain, shift, eps):
    return gain * y / torch.sqrt(y.square().mean(-1, keepdim=True) + eps) + shift


def over_dimensions(*dims):
    """A norm over other dimensions than the last."""
    def norm(y, gain, shift, eps):
        variance, mean = torch.var_mean(y, dim=dims, correction=0, keepdim=True)
        return gain * (y - mean) / torch.sqrt(variance + eps) + shift
    return norm


def before_the_layer(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    inner = F.gelu(F.linear(normed(x, gain, shift, eps), expand, expand_bias))
    return x + F.linear(inner, contract, contract_bias)


def normed_before_both(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    x = normed(x, gain, shift, eps)
    return x + F.linear(F.gelu(F.linear(x, expand, expand_bias)), contract, contract_bias)


def for_three_dimensions(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    batch, seq_len, d_model = x.shape
    y = x + F.linear(F.gelu(F.linear(x, expand, expand_bias)), contract, contract_bias)
    return F.layer_norm(y.view(batch, seq_len, d_model), (d_model,), gain, shift, eps)


def added_in_place(x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    x += F.linear(F.gelu(F.linear(x, expand, expand_bias)), contract, contract_bias)
    return normed(x, gain, shift, eps)


# ---------------------------------------------------------------- 14.5


def on_vectors(pool):
    """An answer that asks the encoder with the mask and then pools."""
    return lambda encoder, token_ids, attention_mask, weight, bias: pool(
        encoder(token_ids, attention_mask), attention_mask, weight, bias)


def real_mean(x, attention_mask):
    return (x * attention_mask[..., None]).sum(1) / attention_mask.sum(1, keepdim=True)


@on_vectors
def logits_first(x, attention_mask, weight, bias):
    scores = F.linear(x, weight, bias).masked_fill(~attention_mask[..., None], 0.0)
    return scores.sum(1) / attention_mask.sum(1)[:, None]


@on_vectors
def nothing_for_padding(x, attention_mask, weight, bias):
    return F.linear(torch.where(attention_mask[..., None], x, torch.nan).nanmean(dim=1), weight, bias)


@on_vectors
def by_a_layer(x, attention_mask, weight, bias):
    output = nn.Linear(*weight.shape[::-1])
    output.weight, output.bias = nn.Parameter(weight), nn.Parameter(bias)
    return output(real_mean(x, attention_mask))


@on_vectors
def as_attention(x, attention_mask, weight, bias):
    """All scores equal: softmax over the real tokens gives each the same weight."""
    scores = torch.zeros(attention_mask.shape).masked_fill(~attention_mask, float("-inf"))
    return torch.addmm(bias, (scores.softmax(-1)[:, None] @ x)[:, 0], weight.T)


@on_vectors
def added_up_by_text(x, attention_mask, weight, bias):
    rows, places = attention_mask.nonzero(as_tuple=True)
    total = torch.zeros(len(x), x.shape[-1]).index_add(0, rows, x[rows, places])
    return total / torch.bincount(rows)[:, None] @ weight.T + bias


@on_vectors
def masked_array(x, attention_mask, weight, bias):
    vectors = np.ma.array(x.numpy(), mask=np.repeat(~attention_mask.numpy()[..., None], x.shape[-1], axis=-1))
    return vectors.mean(axis=1).data @ weight.numpy().T + bias.numpy()


def pooled(vector=real_mean, after=lambda logits: logits):
    """Pooling with one of its parts changed."""
    return on_vectors(lambda x, attention_mask, weight, bias: after(vector(x, attention_mask) @ weight.T + bias))


def mask_made_of_ids(encoder, token_ids, attention_mask, weight, bias):
    return F.linear(real_mean(encoder(token_ids, token_ids != 0), attention_mask), weight, bias)


def both_masks_made_of_ids(encoder, token_ids, attention_mask, weight, bias):
    return mask_made_of_ids(encoder, token_ids, token_ids != 0, weight, bias)


def encoder_without_mask(encoder, token_ids, attention_mask, weight, bias):
    return F.linear(real_mean(encoder(token_ids), attention_mask), weight, bias)


def words_alone(encoder, token_ids, attention_mask, weight, bias):
    """Each text by itself, without its padding, so that there is nothing to mask."""
    means = [encoder(ids[real][None])[0].mean(0) for ids, real in zip(token_ids, attention_mask)]
    return torch.stack(means) @ weight.T + bias


def cut_to_the_longest(encoder, token_ids, attention_mask, weight, bias):
    """As if padding were always behind the words."""
    longest = int(attention_mask.sum(1).max())
    return right("14.5")(encoder, token_ids[:, :longest], attention_mask[:, :longest], weight, bias)


def no_mask_anywhere(encoder, token_ids, attention_mask, weight, bias):
    return F.linear(encoder(token_ids).mean(1), weight, bias)


def mask_upside_down(encoder, token_ids, attention_mask, weight, bias):
    return F.linear(real_mean(encoder(token_ids, ~attention_mask), attention_mask), weight, bias)


def first_few(x, attention_mask):
    return torch.stack([x[i, :n].mean(0) for i, n in enumerate(attention_mask.sum(1))])


def all_but_the_first(x, attention_mask):
    later = attention_mask.clone()
    later[:, 0] = False
    return (x * later[..., None]).sum(1) / later.sum(1, keepdim=True).clamp(min=1)


def middle_value(x, attention_mask):
    return torch.stack([row[real].median(0).values for row, real in zip(x, attention_mask)])


def padding_at_minus_infinity(x, attention_mask):
    return x.masked_fill(~attention_mask[..., None], float("-inf")).mean(dim=1)


@on_vectors
def padding_set_to_zero(x, attention_mask, weight, bias):
    x[~attention_mask] = 0
    return x.sum(1) / attention_mask.sum(1, keepdim=True) @ weight.T + bias


# ---------------------------------------------------------------- 14.6


def start(down=torch.randn, up=torch.zeros):
    return lambda weight, rank: (down(rank, weight.shape[1]), up(weight.shape[0], rank))


def named(*names):
    """A dictionary of the two, which may have other names."""
    return lambda weight, rank: dict(zip(names, right("14.6")(weight, rank)))


def row_after_row(weight, rank):
    return [0.02 * torch.randn(weight.shape[1]) for _ in range(rank)], [[0.0] * rank for _ in weight]


def singular_vectors(weight, rank):
    return torch.linalg.svd(weight).Vh[:rank], weight.new_zeros(len(weight), rank)


def cancelling(weight, rank):
    """Two equal rows of down, and columns of up that are each other's negative: nothing is changed, and all can learn."""
    down, up = start()(weight, rank)
    if rank > 1:
        down[1], up[:, 0] = down[0], torch.randn(len(weight))
        up[:, 1] = -up[:, 0]
    return down, up


def layers_of_weights(weight, rank):
    down, up = nn.Linear(weight.shape[1], rank, bias=False), nn.Linear(rank, weight.shape[0], bias=False)
    nn.init.zeros_(up.weight)
    return down, up


def only_one_row(rank, d_in):
    down = torch.zeros(rank, d_in)
    down[0] = torch.randn(d_in)
    return down


def taken_off_the_weight(weight, rank):
    """The largest part of the weight goes into the adapter (as in PiSSA), and what is left of it stays."""
    u, sizes, v = torch.linalg.svd(weight, full_matrices=False)
    up, down = u[:, :rank] * sizes[:rank], v[:rank].clone()
    weight -= up @ down
    return down, up


def with_the_weight(weight, rank):
    down, up = right("14.6")(weight, rank)
    return weight + up @ down, down, up
