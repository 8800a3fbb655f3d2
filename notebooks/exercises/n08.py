"""Exercises and quiz of notebook 08, the classifier."""

import copy
import math
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from course_utils.attention import padding_mask, scaled_dot_product_attention
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.embeddings import masked_mean
from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.positional_encoding import make_positions
from course_utils.tokenization import WordTokenizer
from course_utils.training import Batch

from course_exercises.common import (
    EACH_MAXIMUM,
    gap,
    gradients_of,
    largest_weight,
    lengths_of_steps,
    listed,
    losses_as_tensors,
    losses_of_steps,
    mistakes_of_a_step,
    moved_by_steps,
    put_back,
    spread,
    two_results,
    worst_row,
)


def _pair(output, names: str):
    """The two results of a function. Raises TypeError, with what came instead, for anything else."""
    if isinstance(output, (tuple, list)) and len(output) == 2:
        return output
    got = f"one tensor of shape {tuple(output.shape)}" if isinstance(output, torch.Tensor) else type(output).__name__
    raise TypeError(f"expected two results, {names}; got {got}")

# ---------------------------------------------------------------- 8.1 several queries

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

def query_probes(generator: torch.Generator) -> list[tuple]:
    """Queries, vectors and masks: ragged, padded on the left, with an empty review; padding holds numbers.

    Then scores far below zero, so that a small negative number is no mask, scores of the padding far above the others, and
    one query on one word.
    """
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    ragged = torch.arange(6) < torch.tensor([[6], [2], [4]])
    holes = torch.tensor([[False, True, True, True, False], [False] * 5, [True, True, False, True, True], [True] * 5])
    low, low_x = draw(2, 4), draw(3, 6, 4)
    low[:, 0], low_x[..., 0] = 18.0, -18.0                                 # adds -162 to each score
    high, high_x = low.clone(), low_x.clone()
    high_x[..., 0] = torch.where(ragged, 9.0, 30.0)                        # scores near 81, and 270 at the padding
    return [(draw(2, 4), draw(3, 6, 4), ragged), (draw(3, 7), draw(4, 5, 7), holes), (low, low_x, ragged),
            (high, high_x, ragged),
            (draw(1, 1), draw(1, 2, 1), torch.tensor([[False, True]]))]

def observe_pooling(function, queries, x, attention_mask):
    """What is returned, and the gradients that reach the queries and the words; zeros where none arrives."""
    given = queries, x
    queries, x = queries.clone().requires_grad_(), x.clone().requires_grad_()
    output = function(queries, x, attention_mask)
    put_back(given[0], queries), put_back(given[1], x)
    if output is None:
        return None
    pooled, weights = two_results(output, "pooled", "weights")
    upstream = torch.cos(torch.arange(pooled.numel(), dtype=pooled.dtype)).reshape(pooled.shape)
    gradients = gradients_of(pooled, [queries, x], upstream)
    return {"pooled": pooled, "weights": weights, "gradient for the queries": gradients[0], "gradient for x": gradients[1]}

def _on_padding(case: Case) -> torch.Tensor:
    """The largest weight on a position that is not real."""
    forbidden = ~case.inputs[2][:, None, :].expand(case.weights.shape)
    return case.weights[forbidden].abs().max()

def _sums(case: Case) -> torch.Tensor:
    """The sum of each query's weights, in the reviews that have a token."""
    return case.weights.sum(dim=-1)[case.inputs[2].any(dim=1)]

def _empty(case: Case) -> torch.Tensor:
    return ~case.inputs[2].any(dim=1)

def _weight_off(case: Case) -> str:
    got, right = case.weights, case.right["weights"]
    place = (got - right).abs().flatten().argmax().item()
    review, rest = divmod(place, got.shape[1] * got.shape[2])
    query, word = divmod(rest, got.shape[2])
    return (f"the weight of query {query} on word {word} of review {review} is {got[review, query, word]:.3f}, "
            f"expected {right[review, query, word]:.3f}.")

def _leak(case: Case) -> str:
    return f"a padding position gets a weight of {_on_padding(case):.3f}."

def _own_pooled(case: Case) -> torch.Tensor:
    return (case.weights @ case.inputs[1].double()).flatten(1)

def _shape(case: Case, name: str) -> str:
    return f"your {name} result has the shape {tuple(case.got[name].shape)}"

def _unfit(case: Case) -> str:
    count = {name: int((~torch.isfinite(value)).sum()) for name, value in case.got.items()}
    return f"{count['pooled']} numbers of the pooled vectors and {count['weights']} weights are NaN."

def _off(name: str):
    return lambda case: bool((case.got[name] - case.right[name]).abs().max() > 1e-3)

def _gradient(name: str):
    def seen(case: Case) -> str:
        got, right = case.got[name].abs().max(), case.right[name].abs().max()
        return f"outputs and weights are right, but the largest number of the {name} is {got:.3f}, expected {right:.3f}."
    return seen

def _query_sums(case: Case) -> str:
    return f"the weights of one query sum to {spread(_sums(case))} in reviews that have tokens."

QUERIES = ask(
    "8.1", pool_with_queries,
    probes=query_probes,
    observe=observe_pooling,
    forbidden=("course_utils.attention.scaled_dot_product_attention",
               "course_utils.classifier.AttentionPooling", "torch.nn.functional.scaled_dot_product_attention",
               "torch.nn.functional.multi_head_attention_forward"),
    signature="pool_with_queries(queries (num_queries, d_model), x (batch, seq_len, d_model), attention_mask (batch, "
        "seq_len), True = real) -> pooled (batch, num_queries * d_model), weights (batch, num_queries, seq_len)",
    not_finite={
        "inf": "exp of a large score overflows. Fill with a large negative number, call softmax, and set the weights of the "
        "padding to 0 after it.",
        "-inf": "-inf belongs on scores, before a softmax. A weight is never below 0, and a mean of x needs weights.",
        "NaN": "A softmax over nothing but -inf gives that, and so does exp of a large score, which overflows, or a sum of "
        "0 to divide by. Fill with a large negative number, call softmax, and set the weights of the padding to 0 after "
        "it."},
    mistakes={
        "nan": M(
            _pooling(mask="-inf"),
            _unfit,
            "A review without a token has a row of -inf, and its softmax is 0 divided by 0. All other reviews are right. "
            "Fill with the lowest finite number, and look at what that row holds then."),
        "uniform": M(
            _pooling(mask="uniform"),
            _leak,
            "It is the review without a token: with one low number everywhere, softmax sees equal scores. All other "
            "reviews are right. Set the weights of the padding to zero afterwards as well."),
        "ignored": M(
            _pooling(mask="ignored"),
            _leak,
            "The mask has no effect. If you call masked_fill, keep what it returns."),
        "mask-after-softmax": M(
            _pooling(mask="after"),
            lambda case: f"the weights of a review sum to {spread(_sums(case))}.",
            "The mask comes after the softmax, when padding has taken its share. It belongs on the scores, before."),
        "filled-with-zero": M(
            _pooling(mask="zero"),
            _leak,
            "The padding's score is 0, and e⁰ = 1 is as much as an indifferent word has (section 1). Its score must be "
            "far below all others."),
        "zero-then-removed": M(
            _zero_then_removed,
            lambda case: f"the weights of a review sum to {spread(_sums(case))}.",
            "The padding's score is set to 0, takes its share of the softmax (e⁰ = 1), and is removed afterwards. Put "
            "-inf or a number like -1e9 in place of the 0."),
        "inverted": M(
            _pooling(mask="inverted"),
            lambda case: f"{_leak(case)} Real words get "
                f"{case.weights[case.inputs[2][:, None].expand(case.weights.shape)].max():.3f} at most.",
            "The mask is the wrong way round: True means real, so fill where it is False."),
        "no-scaling": M(_pooling(scale="none"), largest_weight, "The scores are not divided by √d_model."),
        "divided-by-d": M(_pooling(scale="d"), largest_weight, "The scores are divided by d_model itself; it is its root."),
        "scaled-by-length": M(
            _pooling(scale="length"),
            largest_weight,
            "You take the root of the number of words. But it is the width of the vectors that makes scores large "
            "(notebook 04, section 4)."),
        "softmax-over-queries": M(
            _pooling(dim=1),
            lambda case: f"the weights of one query sum to {spread(_sums(case))} over the words, and those of one word "
                f"to {spread(case.weights.sum(dim=1))} over the queries.",
            "The softmax runs over the queries. Each query divides a total of 1 among the words: the last dimension."),
        "averaged": M(
            _pooling(join="mean"),
            lambda case: f"{_shape(case, 'pooled')}: the queries' vectors are averaged.",
            "What each query found is mixed, and the output layer cannot separate it again. Put them side by side."),
        "summed": M(
            _pooling(join="sum"),
            lambda case: f"{_shape(case, 'pooled')}: the queries' vectors are added.",
            "What each query found is mixed, and the output layer cannot separate it again. Put them side by side."),
        "not-joined": M(
            _pooling(join="apart"),
            lambda case: f"{_shape(case, 'pooled')}, expected {tuple(case.right['pooled'].shape)}.",
            "All numbers are right. The output layer wants one vector for each review: join the last two dimensions."),
        "interleaved": M(
            _pooling(join="interleaved"),
            lambda case: f"the second number of your first pooled vector is {case.pooled[0, 1]:.3f}, expected "
                f"{case.right['pooled'][0, 1]:.3f}.",
            "The numbers are right but in a different order: first column of all queries, second column of all queries, "
            "… Each query's vector should stay in one piece."),
        "plain-means": M(
            _plain_means,
            largest_weight,
            "Each query gives all words the same weight. Where do the scores come in?"),
        "detached": M(
            _pooling(mask="detached"),
            _gradient("gradient for the queries"),
            "The weights are cut off from the queries, by detach(), .data, no_grad() or numpy. The queries would never "
            "be trained."),
        "swapped": M(
            _pooling(give="swapped"),
            lambda case: f"you return the shapes {tuple(case.pooled.shape)} and {tuple(case.weights.shape)}.",
            "The two are the wrong way round: return pooled, weights."),
    },
    rules=(
        R(
            lambda case: (case.weights < -1e-6).any(),
            lambda case: f"{int((case.weights < 0).sum())} of your weights are negative.",
            "Weights come out of a softmax and are positive."),
        R(
            lambda case: _on_padding(case) > 1e-5,
            _leak,
            "Positions where the mask is False get no weight, in every review, the empty one included."),
        R(
            lambda case: len(_sums(case)) and _sums(case).min() < 1e-5,
            _query_sums,
            "Nothing is left for the real words where their scores are very low, or far below those of the padding. "
            "softmax copes with both, if the padding's scores are masked before it."),
        R(
            lambda case: (_sums(case) - 1).abs().max() > 1e-3,
            _query_sums,
            "They sum to one over the real words. Print weights.sum(dim=-1) after each step: right after a softmax over "
            "the last dimension it is one, and taking padding away must not change it."),
        R(
            lambda case: _empty(case).any() and case.pooled[_empty(case)].abs().max() > 1e-5,
            lambda case: "the review without a token is pooled to numbers up to "
                f"{case.pooled[_empty(case)].abs().max():.3f}.",
            "There is nothing in it: zeros."),
        R(
            _off("weights"),
            _weight_off,
            "Rows sum to one and padding gets nothing, but the weights do not come from query · word / √d_model, each "
            "query's own."),
        R(
            lambda case: (_own_pooled(case) - case.pooled).abs().max() > 1e-3,
            lambda case: "the weights are right. Your pooled vectors are not the means of x with these weights, query "
                f"after query: they differ by up to {(_own_pooled(case) - case.pooled).abs().max():.3f}.",
            "pooled = weights @ x, and then only the shape changes."),
        R(
            _off("gradient for the queries"),
            _gradient("gradient for the queries"),
            "Something on the way from the queries to the result is cut off (detach, .data, no_grad, numpy) or computed "
            "twice."),
        R(
            _off("gradient for x"),
            _gradient("gradient for x"),
            "The words enter twice, in the scores and in the means; one of the two ways is cut off."),
    ),
    hints=(
        "Name the shapes first: scores and weights are (batch, num_queries, seq_len). Which product gives that?",
        "queries @ x.transpose(1, 2) has the right shape by broadcasting; the mask needs a dimension in the middle, as "
        "in section 1.",
        "-inf makes NaN of a review without tokens. Fill with torch.finfo(scores.dtype).min, take the softmax, and set "
        "the weights of the padding to 0.",
        "weights @ x is (batch, num_queries, d_model). flatten(start_dim=1) puts the queries side by side.",
    ),
)

# ---------------------------------------------------------------- 8.2 the forward pass

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

class Parts(NamedTuple):
    """What a classifier consists of, as the exercise's text lists it."""

    embedding: nn.Module
    scale: float
    positions: nn.Module
    encoder: nn.Module
    pooling: nn.Module
    output: nn.Module

class _Encoded(NamedTuple):
    """As the encoder's result."""

    x: torch.Tensor
    attentions: None = None

class _Encoder(nn.Module):
    """One attention layer with its residual, called as the course's `Encoder` is."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x, mask=None, bias=None, rotary=None, need_weights=False):
        return _Encoded(x + self.attention(x, mask=mask, bias=bias, rotary=rotary)[0])

class _Pooling(nn.Module):
    """As the course's `AttentionPooling`."""

    def __init__(self, d_model: int):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(1, d_model))

    def forward(self, x, attention_mask):
        context, weights = scaled_dot_product_attention(self.query, x, x, attention_mask[:, None, :])
        return context.squeeze(1), weights.squeeze(1)

def forward_probes(generator: torch.Generator) -> list[tuple]:
    """Four models, one with each kind of positions, of different sizes and scales; padding on the right and on the left.

    Their weights are large enough for a part that is left out to show.
    """
    right, left = torch.arange(5) < torch.tensor([[5], [2], [3]]), torch.arange(4) >= torch.tensor([[0], [3]])
    probes = []
    for positions, d_model, heads, classes, scale, mask in (
            ("sinusoidal", 8, 2, 2, 3.0, right), ("rotary", 12, 3, 3, 2.0, left), ("alibi", 4, 2, 2, 0.5, right),
            ("learned", 6, 1, 4, 1.5, left)):
        parts = Parts(nn.Embedding(9, d_model), scale, make_positions(positions, d_model, heads, 16),
                      _Encoder(d_model, heads), _Pooling(d_model), nn.Linear(d_model, classes))
        with torch.no_grad():
            for module in (part for part in parts if isinstance(part, nn.Module)):
                for parameter in module.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.8)
        probes.append((parts, torch.randint(1, 9, mask.shape, generator=generator) * mask, mask))
    return probes

def observe_forward(function, parts, token_ids, attention_mask):
    """The logits, the logits with another id at the padding, and the gradient that reaches the word vectors."""
    logits = function(parts, token_ids, attention_mask)
    if logits is None:
        return None
    if not isinstance(logits, torch.Tensor):
        raise TypeError(f"expected one tensor, the logits; got {type(logits).__name__}")
    upstream = torch.cos(torch.arange(logits.numel(), dtype=logits.dtype)).reshape(logits.shape)
    gradient = gradients_of(logits, [parts.embedding.weight], upstream)[0]
    other = function(parts, torch.where(attention_mask, token_ids, 5), attention_mask)
    return {"logits": logits, "logits with other padding": other, "gradient for the word vectors": gradient}

def _logits(case: Case) -> str:
    """The logits of the review that is furthest off."""
    i = worst_row(case, "logits")
    return (f"the logits of review {i}, counted from 0, are {listed(case.logits[i])}, expected "
            f"{listed(case.right['logits'][i])}.")

def _moved(case: Case) -> float:
    """How far the logits move when only the padding's ids change."""
    return (case.logits - case.got["logits with other padding"]).abs().max().item()

def _padding_moves(case: Case) -> str:
    return f"other ids at the padding move your logits by up to {_moved(case):.3f}."

def _no_gradient(case: Case) -> str:
    got, right = (named["gradient for the word vectors"].abs().max() for named in (case.got, case.right))
    return f"the logits are right, but the largest gradient of a word vector is {got:.3f}, expected {right:.3f}."

FORWARD = ask(
    "8.2", forward,
    probes=forward_probes,
    observe=observe_forward,
    signature="forward(parts, token_ids (batch, seq_len), attention_mask (batch, seq_len), True = real) -> logits "
        "(batch, num_classes)",
    mistakes={
        "no-scale": M(
            _forward(scale="none"),
            _logits,
            "Word vectors are used as they are stored. Before anything else they are multiplied by `parts.scale`."),
        "scale-after-positions": M(
            _forward(scale="after"),
            _logits,
            "The positions were multiplied as well. The scale belongs to the word vectors alone, so it comes before the "
            "positions are added."),
        "no-positions-added": M(
            _forward(add=False),
            _logits,
            "Models whose positions are added to the word vectors don't get them. Rotary ones add nothing, so you "
            "wouldn't see it with them."),
        "no-bias": M(
            _forward(bias=False),
            _logits,
            "It happens with ALiBi, whose positions are a bias on the scores: ask `parts.positions.bias` for it, and "
            "hand it to the encoder."),
        "no-rotation": M(
            _forward(rotate=False),
            _logits,
            "It happens with rotary positions, which turn queries and keys inside the attention: hand "
            "`parts.positions.rotate` to the encoder."),
        "encoder-without-mask": M(
            _forward(mask="none"),
            _padding_moves,
            "Inside the encoder real words attend to padding. It needs the mask too, in the form (batch, 1, 1, seq_len) "
            "that `padding_mask` gives."),
        "encoder-mask-inverted": M(
            _forward(mask="inverted"),
            _logits,
            "In the encoder the mask is the wrong way round, so words attend to the padding alone. True means that a "
            "position may be attended to."),
        "no-encoder": M(
            _forward(encode=False),
            _logits,
            "The words never meet: the vectors go from the positions to the pooling, past the encoder."),
        "pooling-counts-padding": M(
            _forward(pool="all"),
            _padding_moves,
            "The encoder is right, but the pooling treats padding as words. It wants the mask as its second argument."),
        "mean": M(
            _forward(pool="mean"),
            _logits,
            "This is the mean of the real words. The learned query of `parts.pooling` is never asked."),
        "plain-mean": M(
            _forward(pool="plain"),
            _padding_moves,
            "This is the mean of all positions, padding included. `parts.pooling` weighs the words by its query and "
            "leaves the padding out."),
        "first-word": M(
            _forward(pool="first"),
            _logits,
            "Only the first position reaches the output layer. BERT does that with a token made for it; here "
            "`parts.pooling` collects from all words."),
        "last-position": M(
            _forward(pool="last"),
            _logits,
            "Only the last position reaches the output layer. In a padded review that isn't even a word. `parts.pooling` "
            "collects from all of them."),
        "probabilities": M(
            _forward(give="probabilities"),
            lambda case: f"your first row is {listed(case.logits[0])}, and it sums to one.",
            "These are probabilities. `cross_entropy` does the softmax itself and wants the logits (Common mistakes)."),
        "detached": M(
            _forward(give="detached"),
            _no_gradient,
            "Something cuts the result off from the parameters: detach(), .data, no_grad() or numpy. Such a model could "
            "never be trained."),
    },
    rules=(
        R(
            lambda case: (case.logits.sum(dim=-1) - 1).abs().max() < 1e-4,
            lambda case: f"your first row is {listed(case.logits[0])}, and every row sums to one.",
            "That looks like a softmax at the end. Return what the output layer gives."),
        R(
            lambda case: _moved(case) > 1e-4,
            _padding_moves,
            "Padding must not matter. Two parts need the mask: the encoder and the pooling, each in its own shape."),
        R(
            lambda case: (case.logits - case.right["logits"]).abs().max() > 1e-3,
            _logits,
            "Padding doesn't matter, as it should. Compare with the diagram, arrow by arrow: what goes into each part, "
            "and in which order?"),
        R(
            lambda case: gap(case, "gradient for the word vectors") > 1e-3,
            _no_gradient,
            "Some way from the word vectors to the logits is cut off, by detach(), .data, no_grad() or numpy."),
    ),
    hints=(
        "Follow the diagram from the left: look up, scale, add positions, encode, pool, output. What shape is x after "
        "each?",
        "Five lines do it. The encoder takes four things: x, padding_mask(attention_mask), the bias, and the rotation.",
        "x = parts.positions.add(parts.embedding(token_ids) * parts.scale). Then parts.encoder(...).x",
        "pooled, _ = parts.pooling(x, attention_mask), and the logits are parts.output(pooled).",
    ),
)

# ---------------------------------------------------------------- 8.3 repair: a loss that stays high

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

def loss_probes(generator: torch.Generator) -> list[tuple]:
    """Logits of five reviews and three classes, and of four reviews and two classes, with labels; large ones."""
    probes = []
    for size, classes in ((5, 3), (4, 2)):
        logits = 2 * torch.randn(size, classes, generator=generator)
        probes.append((logits, torch.randint(classes, (size,), generator=generator)))
    return [*probes, (torch.tensor([[30.0, -30.0]]), torch.tensor([1])),
            (torch.tensor([[150.0, -150.0], [0.5, 1.0]]), torch.tensor([1, 0]))]

def observe_loss(function, logits, labels):
    """Loss and probabilities, and the gradient that the loss sends to the logits; zeros if none."""
    given, logits = logits, logits.clone().requires_grad_()
    output = function(logits, labels)
    put_back(given, logits)
    if output is None:
        return None
    loss, probabilities = _pair(output, "the loss and the probabilities")
    if isinstance(loss, torch.Tensor) and loss.numel() == 1:
        loss = loss.reshape(())                                            # as good as a number
    gradient = torch.zeros_like(logits)
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        found = torch.autograd.grad(loss.sum(), logits, allow_unused=True)[0]
        gradient = gradient if found is None else found
    return {"loss": loss, "probabilities": probabilities, "gradient for the logits": gradient}

def _loss_seen(case: Case) -> str:
    return f"your loss is {case.loss.item():.4f}, expected {case.right['loss'].item():.4f}."

def _gradient_off(case: Case) -> str:
    """The place where the gradient for the logits is furthest from the right one."""
    got, right = case.got["gradient for the logits"], case.right["gradient for the logits"]
    review, label = divmod(int((got - right).abs().argmax()), got.shape[1])
    return (f"both results are right, but the gradient for the logit of class {label} in review {review} is "
            f"{got[review, label]:.3f}, expected {right[review, label]:.3f}.")

def _row_sums(case: Case) -> str:
    sums = case.probabilities.sum(dim=-1)
    return f"a row of your probabilities sums to {sums[(sums - 1).abs().argmax()]:.3f}."

def _largest_probability(case: Case) -> str:
    return (f"the loss is right; your largest probability is {case.probabilities.max():.3f}, expected "
            f"{case.right['probabilities'].max():.3f}.")

def _loss_right(case: Case) -> str:
    return f"the loss is right, but {_row_sums(case)}"

LOSS = ask(
    "8.3", loss_and_probabilities,
    given="softmax-first",
    probes=loss_probes,
    observe=observe_loss,
    signature="loss_and_probabilities(logits (batch, num_classes), labels (batch)) -> mean loss, probabilities (batch, "
        "num_classes)",
    not_finite={
        "inf": "A very small probability is rounded to 0, and its logarithm is -inf, or exp of a large logit overflows. "
        "Start from the logits: log_softmax or cross_entropy never forms that 0.",
        "-inf": "A very small probability is rounded to 0, and its logarithm is -inf; the loss is minus the logarithm. "
        "Start from the logits: log_softmax or cross_entropy never forms that 0. " + EACH_MAXIMUM,
        "NaN": "exp of a large logit overflows, and infinity divided by infinity is NaN. softmax, log_softmax and "
        "cross_entropy subtract the largest logit of each row first."},
    mistakes={
        "softmax-first": M(
            _loss(of=lambda logits: logits.softmax(-1)),
            _loss_seen,
            "cross_entropy takes logits and does its own softmax. It gets probabilities here: numbers from 0 to 1, too "
            "close together for it ever to be sure."),
        "no-probabilities": M(
            _loss(give=lambda logits: logits),
            _loss_right,
            "You return the logits as they are. Probabilities are their softmax; only cross_entropy must not get them."),
        "logarithms-returned": M(
            _loss(give=lambda logits: logits.log_softmax(-1)),
            _loss_right,
            "You return the logarithms of the probabilities; take exp, or softmax in place of log_softmax."),
        "softmax-over-reviews": M(
            _loss(dim=0),
            _loss_right,
            "The softmax runs over the reviews of the batch. The probabilities of each review's classes sum to one: "
            "dim=-1."),
        "nll-of-probabilities": M(
            _loss(of=lambda logits: logits.softmax(-1), nll=True),
            _loss_seen,
            "nll_loss takes logarithms of probabilities. Given probabilities, it returns minus the mean probability of "
            "the right label, which is no logarithm at all."),
        "nll-of-logits": M(
            _loss(nll=True),
            _loss_seen,
            "nll_loss takes logarithms of probabilities, and gets logits here. cross_entropy is the one that takes "
            "logits."),
        "summed": M(
            _loss(reduction="sum"),
            _loss_seen,
            "That is the sum over the batch. A mean is asked for; with a sum, the step would grow with the batch."),
        "cut": M(
            _loss(cut=True),
            lambda case: "both results are right, but the largest number of the gradient for the logits is "
                f"{case.got['gradient for the logits'].abs().max():.3f}.",
            "The loss is cut off from the model, by item(), detach() or no_grad(). Return it as cross_entropy gave it; "
            "call item() where it is printed."),
        "softmax-twice-returned": M(
            _loss(give=lambda logits: logits.softmax(-1).softmax(-1)),
            _largest_probability,
            "The probabilities went through softmax twice."),
        "sigmoid": M(
            _loss(give=lambda logits: logits.sigmoid()),
            _loss_right,
            "A sigmoid looks at each class by itself. The classes exclude each other: softmax."),
        "swapped": M(
            lambda logits, labels: loss_and_probabilities(logits, labels)[::-1],
            lambda case: f"your first result has the shape {tuple(case.loss.shape)}.",
            "The two are the wrong way round: the loss first, then the probabilities."),
    },
    rules=(
        R(
            lambda case: case.right["loss"] < 20 and (case.loss - case.right["loss"]).abs() > 1e-3,
            _loss_seen,
            "It should be minus the logarithm of the right label's probability, averaged over the reviews (notebook 03, "
            "section 5)."),
        R(
            lambda case: case.loss < 0.9 * case.right["loss"],
            _loss_seen,
            "Other losses are right; this one is for a review where the model is sure of the wrong class. A small number "
            "added before the logarithm, or a clamp, puts an upper limit on the loss. Take it from the logits: "
            "cross_entropy, or log_softmax and nll_loss."),
        R(
            lambda case: (case.loss - case.right["loss"]).abs() > 1e-3,
            _loss_seen,
            "The other losses are right. Here the model is sure of the wrong class: take the loss from the logits."),
        R(
            lambda case: (case.probabilities.sum(dim=-1) - 1).abs().max() > 1e-3,
            _loss_right,
            "Each review's probabilities sum to one."),
        R(
            lambda case: (case.probabilities - case.right["probabilities"]).abs().max() > 1e-3,
            _largest_probability,
            "They are the softmax of the logits."),
        R(
            _off("gradient for the logits"),
            _gradient_off,
            "Part of the way from the logits to the loss is cut off (detach, .data, no_grad, item) or counted twice."),
    ),
    hints=(
        "Between which two numbers lies everything that cross_entropy gets here? What is its loss at best?",
        "Look up what F.cross_entropy expects as its first argument.",
        "cross_entropy does the softmax itself: give it the logits.",
    ),
)

# ---------------------------------------------------------------- 8.4 sure and wrong

def sure_and_wrong():
    # 55 of 100 have -ln 0.9 = 0.105, 45 have -ln 0.1 = 2.303: 0.55 * 0.105 + 0.45 * 2.303
    return 1.094

RIGHT, WRONG = -math.log(0.9), -math.log(0.1)
def _value(case: Case) -> str:
    return f"{case.answer.item():.4g}:"

SURE = ask(
    "8.4", sure_and_wrong,
    kind="number",
    tolerance=4e-3,
    signature="a number: the mean cross-entropy over the 100 reviews, with the natural logarithm",
    mistakes={
        "swapped": M(
            lambda: 0.45 * RIGHT + 0.55 * WRONG,
            lambda case: f"{_value(case)} you have 45 right and 55 wrong.",
            "It's the other way round: 55 reviews have the right class at 0.9."),
        "only-wrong-ones": M(
            lambda: 0.45 * WRONG,
            lambda case: f"{_value(case)} that is what the wrong reviews contribute.",
            "The right ones cost little, but not nothing: minus ln 0.9 each."),
        "only-right-ones": M(
            lambda: 0.55 * RIGHT,
            lambda case: f"{_value(case)} that is what the right reviews contribute.",
            "The other 45 pay too, and much more: what probability did their true class get?"),
        "not-weighted": M(
            lambda: (RIGHT + WRONG) / 2,
            lambda case: f"{_value(case)} that is halfway between a right and a wrong review.",
            "There are 55 of one and 45 of the other."),
        "mean-first": M(
            lambda: -math.log(0.55 * 0.9 + 0.45 * 0.1),
            lambda case: f"{_value(case)} you averaged the probabilities and then took the logarithm.",
            "The loss is the mean of the logarithms. That is what makes a confident mistake so expensive: it is not "
            "averaged out first."),
        "accuracy-as-probability": M(
            lambda: -math.log(0.55),
            lambda case: f"{_value(case)} that is minus ln 0.55.",
            "0.55 is how often it is right. The loss asks what probability it gave to the true class: 0.9 or 0.1."),
        "sure-of-the-right-one": M(
            lambda: RIGHT,
            lambda case: f"{_value(case)} that is one review that it gets right.",
            "The 45 that it gets wrong cost more. Take the mean over all 100."),
        "one-wrong-review": M(
            lambda: WRONG,
            lambda case: f"{_value(case)} that is one review that it gets wrong.",
            "Take the mean over all 100."),
        "base-two": M(
            lambda: (0.55 * RIGHT + 0.45 * WRONG) / math.log(2),
            lambda case: f"{_value(case)} that is in bits, with the logarithm to base 2.",
            "cross_entropy uses the natural logarithm: guessing costs 0.693, not 1."),
        "base-ten": M(
            lambda: (0.55 * RIGHT + 0.45 * WRONG) / math.log(10),
            lambda case: f"{_value(case)} that is with the logarithm to base 10.",
            "cross_entropy uses the natural logarithm, ln: guessing costs 0.693, not 0.301."),
        "not-divided": M(
            lambda: 55 * RIGHT + 45 * WRONG,
            lambda case: f"{_value(case)} that is the sum over 100 reviews.",
            "Divide by 100."),
        "minus": M(
            lambda: -(0.55 * RIGHT + 0.45 * WRONG),
            lambda case: f"{_value(case)} the sign is missing.",
            "Logarithms of numbers below one are negative; the loss is minus that."),
        "coin": M(
            lambda: math.log(2),
            lambda case: f"{_value(case)} that is ln 2, the loss of guessing.",
            "Guessing gives each class 0.5. This model gives 0.9 to one of them, even when it is wrong."),
    },
    rules=(
        R(
            lambda case: case.answer < 0,
            lambda case: f"{_value(case)} it is below zero.",
            "A loss of this kind never is: minus the logarithm of a number below one."),
        R(
            lambda case: case.answer > 2.31,
            lambda case: f"{_value(case)} that is more than a single wrong review costs, minus ln 0.1.",
            "A mean cannot exceed its largest part."),
        R(
            lambda case: case.answer < 0.105,
            lambda case: f"{_value(case)} that is less than a single right review costs, minus ln 0.9.",
            "A mean cannot be below its smallest part."),
        R(
            lambda case: abs(case.answer - case.expected) < 0.03,
            lambda case: f"{_value(case)} that is close.",
            "Keep three decimals on the way, and round at the end."),
    ),
    hints=(
        "There are two kinds of review: in one the true class has the probability 0.9, in the other 0.1.",
        "minus ln 0.9 is 0.105, and minus ln 0.1 is 2.303.",
        "0.55 times the first and 0.45 times the second.",
    ),
)

# ---------------------------------------------------------------- 8.5 repair: an honest score

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

class _Result(NamedTuple):
    """As the classifier's result: `logits` and what else there would be."""

    logits: torch.Tensor
    pooling_weights: None = None
    attentions: None = None

class _Noted(list):
    """A list of notes that a copy of the model shares with it."""

    def __deepcopy__(self, memo):
        return self

class _Moody(nn.Module):
    """A layer that behaves differently in training mode, as dropout does, but without chance: it swaps the classes."""

    def forward(self, logits):
        return logits.flip(-1) if self.training else logits

class _Model(nn.Module):
    """A tiny classifier that notes for each forward pass: was it in training mode, did it record gradients, was the mask
    the batch's?"""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.votes = nn.Parameter(torch.randn(9, 2, generator=generator))
        self.moody = _Moody()
        self.notes = _Noted()

    def forward(self, token_ids, attention_mask=None):
        real = token_ids != 0 if attention_mask is None else attention_mask
        logits = self.moody((self.votes[token_ids] * real.unsqueeze(-1)).sum(dim=1))
        self.notes.append((self.moody.training, logits.requires_grad, torch.equal(real != 0, token_ids != 0)))
        return _Result(logits)

def share_probes(generator: torch.Generator) -> list[tuple]:
    """Models in training mode, in evaluation mode and in training mode, with batches of which the last is short; then a
    single review.

    Of the first model's 8 reviews 5 are right, of the second's 9 two, of the third's 10 two to seven, as it is drawn.
    """
    probes, drawn = [], None
    for training, groups in ((True, ((4, 1), (3, 1), (1, 1))), (False, ((4, 3), (3, 3), (2, 1))),
                             (True, ((5, drawn), (4, drawn), (1, 1))), (True, ((1, 0),))):
        model, several = _Model(generator).eval(), []
        for size, wrong in groups:
            wrong = int(torch.randint(1, size, (), generator=generator)) if wrong is drawn else wrong
            ids = torch.randint(1, 9, (size, 5), generator=generator)
            mask = torch.arange(5) < (2 + torch.arange(size) % 4)[:, None]
            labels = model(ids * mask, mask).logits.argmax(dim=-1)
            labels[:wrong] = 1 - labels[:wrong]
            several.append(Batch(ids * mask, mask, labels, list(range(size))))
        model.notes = _Noted()
        probes.append((model.train(training), several))
    return probes

def observe_share(function, model, several):
    """The share, how the forward passes ran, and how the model and the gradients were left."""
    model.notes = _Noted()
    before = [tensor.clone() for tensor in model.state_dict().values()]
    with torch.enable_grad():
        share = function(model, several)
        left_on = torch.is_grad_enabled()
    if share is None:
        return None
    notes, modes = model.notes or [(False, False, True)], [module.training for module in model.modules()]
    return {"share": share, "in training mode": sum(note[0] for note in notes) / len(notes),
            "with gradients": sum(note[1] for note in notes) / len(notes),
            "right masks": float(all(note[2] for note in notes)),
            "left in training mode": modes.count(True) / len(modes),
            "weights moved": sum(int((old != new).sum()) for old, new in zip(before, model.state_dict().values())),
            "gradients left on": left_on, "trainable": all(parameter.requires_grad for parameter in model.parameters())}

def _percent(case: Case, name: str) -> str:
    return f"{100 * case.got[name].item():.0f} % of the forward passes"

def _shares(case: Case) -> str:
    return f"you report {case.share.item():.4f}, and {case.right['share'].item():.4f} of the reviews are right."

def _mode_left(case: Case) -> str:
    names = {1.0: "training", 0.0: "evaluation"}
    came, left = names[case.right["left in training mode"].item()], names.get(case.got["left in training mode"].item(),
        "mixed")
    return f"the model came in {came} mode and is left in {left} mode."

def _is(name: str, value: float):
    return lambda case: case.got[name] != value

def _report(case: Case) -> str:
    return f"you report {case.share.item():.4g}."

def _with_gradients(case: Case) -> str:
    return f"{_percent(case, 'with gradients')} recorded gradients."

def _in_training_mode(case: Case) -> str:
    return f"{_percent(case, 'in training mode')} ran in training mode."

SHARE = ask(
    "8.5", share_right,
    given="as-given",
    probes=share_probes,
    observe=observe_share,
    signature="share_right(model, several) -> proportion of the reviews that are right, from 0 to 1; `several` is a list "
        "of batches with token_ids, attention_mask and labels",
    mistakes={
        "as-given": M(
            _share(evaluate=False, gradients=True, means=True, after="training"),
            _shares,
            "Begin with the mode: what does dropout do to a score? Then the gradients, which nobody needs here; then the "
            "mean; then how the model is left."),
        "training-mode": M(
            _share(evaluate=False),
            _in_training_mode,
            "Dropout and word dropout were active, so the same review can get two verdicts. model.eval() switches all "
            "layers; no_grad() does not."),
        "gradients": M(
            _share(gradients=True),
            _with_gradients,
            "The score is right. But everything is kept for a backward that never comes, which costs memory and time. "
            "eval() does not switch that off; torch.no_grad() does."),
        "batch-means": M(
            _share(means=True),
            _shares,
            "You average the accuracies of the batches. The last batch is shorter, so each of its reviews counts for "
            "more. Count right answers over all reviews and divide once (notebook 03, section 6)."),
        "left-in-evaluation": M(
            _share(after="left"),
            _mode_left,
            "The next epoch would train without dropout, and nothing would say so. Remember model.training at the start, "
            "and restore it."),
        "always-training": M(
            _share(after="training"),
            _mode_left,
            "You switch to training mode at the end, whatever it was before. Anyone who scores a finished model and then "
            "predicts gets dropout. Remember model.training at the start, and restore that."),
        "gradients-left-off": M(
            _global_switch,
            lambda case: "the score is right, but afterwards gradients are off: the switch is at "
                f"{case.got['gradients left on'].item():.0f}, expected 1.",
            "torch.set_grad_enabled(False) stays until someone turns it back on, so the next backward() would fail. "
            "`with torch.no_grad():` ends by itself."),
        "frozen": M(
            _frozen,
            lambda case: "the score is right, but afterwards parameters of the model have requires_grad False (all "
                f"trainable: {case.trainable.item():.0f}).",
            "The next epoch could not train it. Use `with torch.no_grad():`, which leaves the parameters alone."),
        "per-batch": M(
            _share(total="batches"),
            lambda case: f"you report {case.share.item():.4f}.",
            "You counted right answers and divided by the number of batches. Divide by the number of reviews."),
        "count": M(_share(total="count"), _report, "That is how many are right. Divide by the number of reviews."),
        "share-wrong": M(_share(total="wrong"), _shares, "Yours is the proportion that is wrong."),
        "percent": M(
            _share(total="percent"),
            _report,
            "That is in per cent. A proportion is a number from 0 to 1: leave out the 100."),
        "last-batch": M(
            _share(total="last"),
            _shares,
            "Yours is the accuracy in the last batch alone. Count over all batches."),
    },
    rules=(
        R(
            _is("right masks", 1),
            lambda case: f"{_report(case)[:-1]}, and the model got a mask that isn't the batch's.",
            "Pass batch.attention_mask as it is, True = real: with a mask of ones padding is read as words, and an "
            "inverted one hides the words."),
        R(
            _is("in training mode", 0),
            _in_training_mode,
            "Layers such as dropout must be switched off while scoring, all of them: model.eval() before the loop."),
        R(_is("with gradients", 0), _with_gradients, "Nobody calls backward here. Switch it off: with torch.no_grad()."),
        R(
            lambda case: case.got["left in training mode"] != case.right["left in training mode"],
            _mode_left,
            "Remember model.training before you change it, and put that back at the end."),
        R(
            _is("weights moved", 0),
            lambda case: f"afterwards {case.got['weights moved'].item():.0f} numbers in the model have changed.",
            "A score looks at a model and does not train it: no step, no new weights."),
        R(
            _is("gradients left on", 1),
            lambda case: f"afterwards gradients are off: the switch is at {case.got['gradients left on'].item():.0f}, "
                "expected 1.",
            "Use with torch.no_grad(), which ends by itself."),
        R(
            _is("trainable", 1),
            lambda case: f"afterwards not all parameters are trainable ({case.trainable.item():.0f}, expected 1).",
            "Leave requires_grad of the parameters alone."),
        R(
            lambda case: (case.share - case.right["share"]).abs() > 1e-4,
            _shares,
            "How the passes ran and how the model is left are right. So the mistake is in the number: in each review the "
            "class with the largest logit, with the mask passed in; right answers over all reviews, divided by how many "
            "reviews there are."),
    ),
    hints=(
        "Two different switches: one for layers such as dropout, one for recording gradients. Neither does the other's "
        "work.",
        "The last batch is shorter. How much does one of its reviews count in a mean of the batches' accuracies?",
        "was_training = model.training at the start, model.train(was_training) at the end.",
    ),
)

# ---------------------------------------------------------------- 8.6 four failed trainings

def four_failures():
    # A learned from labels that weren't its reviews' (3); B is the control but for validation (4); C never moved (2); D is
    # right and can't be sure (6)
    return 3426

def _digit(place: int):
    """The learner's cause of A (place 0), B, C or D."""
    return lambda case: f"{case.answer.item():04.0f}"[place]

def _says(place: int):
    return lambda case: f"for {'ABCD'[place]} you say cause {_digit(place)(case)}."


REMARKS = {
    "A1": "A took the control's 128 steps, so it had as many reviews, and a training loss of 0.57 isn't 'by heart': "
          "what would keep a model from learning reviews that the control learns?",
    "A2": "A's training loss is below 0.69, so it does learn something from its reviews, slowly. After steps that "
          "are far too large there's nothing of the kind: look at C.",
    "A4": "A's validation reviews may be in order, but its training loss is far above the control's: something is "
          "wrong with what it's trained on. B's training loss is the control's.",
    "A5": "A took as many steps as the control, and they were enough for it.",
    "A6": "A is right in less than half of its validation reviews. Two softmaxes keep a model from being sure, not "
          "from being right.",
    "B1": "B took as many steps as the control and has the same training loss, and the control gets nearly all of "
          "validation right. So B has learned to read as well; something is wrong with what it's scored on.",
    "B2": "B's training loss is the control's: its steps were of the right size.",
    "B3": "With labels of other reviews a model learns slowly and by heart: that loss would be far above the "
          "control's. B's training loss is the control's.",
    "B5": "B took as many steps as the control, and its training loss is the same.",
    "B6": "B's training loss is 0.03, far below the 0.31 at which two softmaxes stop.",
    "C1": "C's training loss is above 0.69: it knows no review by heart, and says nearly the same of each.",
    "C3": "With labels of other reviews a model still learns a little by heart, and its probabilities differ. C's "
          "hardly do.",
    "C4": "Another vocabulary spoils the validation alone. C's training loss is above 0.69: it learned nothing.",
    "C5": "C took as many steps as the control. And its training loss is above 0.69: with more time, it would have "
          "to get back to chance first.",
    "C6": "Two softmaxes keep a model from being sure, not from being right, and C is right in half of its reviews.",
    "D1": "D is as often right on validation as the control. Nobody learns that by heart.",
    "D2": "D is as often right as the control: its steps were of the right size.",
    "D3": "D is right nearly always, so its labels belong to its reviews.",
    "D4": "D's validation is right nearly always, so its ids mean the right words.",
    "D5": "D is as often right as the control: there's nothing left to learn. But its probabilities lie close "
          "together, and its loss has stopped at about the number of exercise 8.3.",
}


def _why(letter: str, digit: str):
    """A person's remark for one cause, if it's the first that isn't right."""
    place = "ABCD".index(letter)
    return R(lambda case: _digit(place)(case) == digit, _says(place), REMARKS[letter + digit])


FAILURES = ask(
    "8.6", four_failures,
    kind="number",
    tolerance=1e-7,
    signature="a number of four digits: the causes of A, B, C and D, such as 1256",
    mistakes={
        "by-heart": M(lambda: 3126, _says(1), REMARKS["B1"]),
        "all-by-heart": M(lambda: 1126, _says(0), REMARKS["A1"]),
        "labels-for-vocabulary": M(lambda: 4326, _says(0), REMARKS["A4"]),
        "rate-for-labels": M(lambda: 2436, _says(0), REMARKS["A2"]),
        "too-short": M(lambda: 3456, _says(2), REMARKS["C5"]),
        "too-short-first": M(lambda: 5426, _says(0), REMARKS["A5"]),
        "too-short-last": M(lambda: 3425, _says(3), REMARKS["D5"]),
    },
    rules=(
        R(
            lambda case: not 1111 <= case.answer.item() <= 6666 or set(f"{case.answer.item():.0f}") - set("123456"),
            lambda case: f"you say {case.answer.item():g}.",
            "Write four digits from 1 to 6: the cause of A, then those of B, C and D."),
        *(_why(*wrong) for wrong in REMARKS),
    ),
    hints=(
        "Compare each row with the control first: is its training side the same, or its validation side?",
        "B's training loss is the control's. D is as often right as the control. Of A and C, only one has a training loss "
        "below 0.69.",
        "C says nearly the same of every review, and learned nothing: its steps were too large. D can't be sure: see 8.3.",
    ),
)

# ---------------------------------------------------------------- 8.7 a saved model, loaded

def label_with(name, texts, written):
    loaded = ReviewClassifier.load(name)                                   # weights, tokenizer and label names
    labels, _ = loaded.predict(texts)                                      # names, in the order of the texts
    right = sum(label == said for label, said in zip(labels, written))
    return labels, right / len(texts)

def _label_with(by=None, total="right"):
    """The labels by another rule, or another number beside them."""
    def label(name, texts, written):
        loaded = ReviewClassifier.load(name)
        labels, probabilities = loaded.predict(texts)
        if by:
            labels = by(loaded, labels, probabilities)
        right = sum(label == said for label, said in zip(labels, written))
        return labels, {"right": right / len(texts), "percent": 100 * right / len(texts), "count": right,
                        "wrong": 1 - right / len(texts)}[total]
    return label

def _second_is_positive(loaded, labels, probabilities):
    return ["positive" if row[1] > 0.5 else "negative" for row in probabilities]

WORDS = "moving dull excellent dreadful not but film".split()

@lru_cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()

def label_probes(generator: torch.Generator) -> list[tuple]:
    """Saved models of random weights, of which the second has 'positive' first; texts, and labels written beside them."""
    probes = []
    tokenizer = WordTokenizer.train(WORDS, 50, 1)
    for number, names in enumerate((["negative", "positive"], ["positive", "negative"])):
        model = SelfAttentionClassifier(ClassifierConfig(tokenizer.vocab_size, d_model=8, num_heads=2, d_ff=8, num_layers=1))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        classifier = ReviewClassifier(model, tokenizer, names)
        drawn = torch.randint(len(WORDS), (40, 3), generator=generator).tolist()
        drawn = [" ".join(WORDS[i] for i in row) for row in drawn]
        with torch.no_grad():                                              # so that it says either of half of them
            logits = model(*classifier.encode(drawn)).logits
            model.output.bias[0] += (logits[:, 1] - logits[:, 0]).median() + 1e-3
        said, few = {"negative": [], "positive": []}, 4
        for text, label in zip(drawn, classifier.predict(drawn)[0]):
            said[label].append(text)
        texts = said["negative"][:few] + said["positive"][:few + 1]
        written = ["negative"] * few + ["positive"] * (few + 1)
        written[0] = "positive"                                            # which this model gets wrong
        name = Path(_folder().name) / f"model-{number}-{int(torch.randint(10**9, (), generator=generator))}"
        classifier.save(name)
        probes.append((str(name), texts, written))
    return probes

def observe_labels(function, name, texts, written):
    """The labels as numbers (-1 for what's no label), and the proportion."""
    output = function(name, list(texts), list(written))
    if output is None:
        return None
    labels, proportion = _pair(output, "the labels and the proportion")
    known = {"negative": 0.0, "positive": 1.0}
    found = list(labels) if isinstance(labels, (list, tuple)) else [labels]
    found = (found + [None] * len(texts))[:len(texts)]
    return {"labels": torch.tensor([known.get(label, -1.0) if isinstance(label, str) else -1.0 for label in found]),
            "right_ones": proportion}

def _right(case: Case) -> str:
    return f"you report {case.right_ones.item():.4g}, and {case.right['right_ones'].item():.4g} of your labels are right."

def _labels(case: Case) -> str:
    off = int((case.labels != case.right["labels"]).sum())
    return f"{off} of your {len(case.labels)} labels aren't those of the saved model."

LABEL = ask(
    "8.7", label_with,
    probes=label_probes,
    observe=observe_labels,
    tolerance=1e-6,
    signature="label_with(name, texts, written) -> (labels, proportion): the label names that the model saved as `name` "
        "gives the texts, and the proportion of them that equal `written`",
    mistakes={
        "second-is-positive": M(
            _label_with(_second_is_positive),
            _labels,
            "You took the second probability for that of 'positive'. Which class comes first is kept in the model's "
            "label_names, and in one of our files it's 'positive'."),
        "least-likely": M(
            _label_with(lambda loaded, labels, probabilities: [
            loaded.label_names[i] for i in probabilities.argmin(dim=-1).tolist()]),
            _labels,
            "You took the class with the smallest probability."),
        "no-names": M(
            _label_with(lambda loaded, labels, probabilities: probabilities),
            "none of your {number} labels is 'negative' or 'positive'.",
            "predict returns two results, the names and the probabilities: labels, probabilities = loaded.predict(texts)."),
        "percent": M(_label_with(total="percent"), _right, "That is in per cent. A proportion is a number from 0 to 1."),
        "count": M(_label_with(total="count"), _right, "That is how many are right. Divide by the number of texts."),
        "wrong": M(_label_with(total="wrong"), _right, "Yours is the proportion that is wrong."),
    },
    rules=(
        R(
            lambda case: (case.labels != case.right["labels"]).any(),
            _labels,
            "Load the classifier with ReviewClassifier.load(name) and let it predict: it brings its own tokenizer and "
            "its own label names."),
        R(
            lambda case: (case.right_ones - case.right["right_ones"]).abs() > 1e-6,
            _right,
            "Count where your label and the written one are the same word, and divide by the number of texts."),
    ),
    numbers={"number": lambda case: len(case.labels)},
    hints=(
        "What does `ReviewClassifier.load` return, and which of its methods takes a list of texts?",
        "`predict` returns label names and probabilities, both in the order of the texts.",
        "right = sum(label == said for label, said in zip(labels, written)), divided by len(texts).",
    ),
)

# ---------------------------------------------------------------- 8.8 one step of training

def train_step(model, optimizer, batch, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate
    logits = model(batch.token_ids, batch.attention_mask)                  # (batch, num_classes)
    loss = F.cross_entropy(logits, batch.labels)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()

def _step(zero="before", clip="norm", rate="all", step=True, give="number", reduction="mean", softmax=False, mask=True,
          mode=None):
    """A step with one thing changed."""
    def one(model, optimizer, batch, at):
        def set_rate():
            for group in optimizer.param_groups[:1 if rate == "first" else None]:
                group["lr"] = at
        if mode:
            model.train(mode == "training")
        if rate in ("all", "first"):
            set_rate()
        logits = model(batch.token_ids, batch.attention_mask if mask else torch.ones_like(batch.attention_mask))
        loss = F.cross_entropy(logits.softmax(dim=-1) if softmax else logits, batch.labels, reduction=reduction)
        if zero == "before":
            optimizer.zero_grad()
        loss.backward()
        if zero == "after":
            optimizer.zero_grad()
        norm = math.inf
        if clip in ("norm", "always"):
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        elif clip == "values":
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
        elif clip == "each":
            for parameter in model.parameters():
                nn.utils.clip_grad_norm_([parameter], 1.0)
        if clip == "always" and norm < 1:
            for parameter in model.parameters():
                parameter.grad /= norm
        if step:
            optimizer.step()
        if rate == "late":
            set_rate()
        if give == "after":
            loss = F.cross_entropy(model(batch.token_ids, batch.attention_mask), batch.labels)
        return {"number": loss.item(), "tensor": loss, "after": loss.item()}[give]
    return one

class _Voter(nn.Module):
    """A tiny classifier: each id has a vote for each class, the output a bias. Returns logits."""

    def __init__(self, size: float, generator: torch.Generator):
        super().__init__()
        self.size = size
        self.votes = nn.Parameter(torch.randn(9, 2, generator=generator))
        self.bias = nn.Parameter(torch.randn(2, generator=generator))

    def forward(self, token_ids, attention_mask):                          # (batch, seq_len), both
        return self.size * (self.votes[token_ids] * attention_mask.unsqueeze(-1)).sum(dim=1) + self.bias

def step_probes(generator: torch.Generator) -> list[tuple]:
    """A model, three batches with padding, three rates. The gradients are far longer than 1, then far shorter.

    A wrong text of four gives its words' votes a quarter of the model's size: with 6 some numbers are above 1, whatever is
    drawn, and cutting each by itself shows.

    One model comes in training mode, one in evaluation mode, as a step should leave them.
    """
    probes = []
    for size, training in ((6.0, True), (0.1, False)):
        model, several = _Voter(size, generator).train(training), []
        for length in (5, 4, 6):
            mask = torch.arange(length) < (2 + torch.arange(4) % 3)[:, None]
            ids = torch.randint(1, 9, mask.shape, generator=generator) * mask
            with torch.no_grad():                                          # half of them wrong, so that there's a gradient
                labels = model(ids, mask).argmax(dim=-1) ^ torch.tensor([0, 1, 0, 1])
            several.append(Batch(ids, mask, labels, list(range(4))))
        probes.append((model, several, [0.3, 0.1, 0.2]))
    return probes

def observe_steps(function, model, several, rates):
    """The losses of three steps, the weights after each, how long each step was, the rates, the mode, what was returned."""
    optimizer = torch.optim.SGD([{"params": [model.votes]}, {"params": [model.bias]}], lr=0.5)
    losses, weights, lengths, found, tensors = [], [], [], [], 0
    for batch, rate in zip(several, rates):
        before = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        loss = function(model, optimizer, batch, rate)
        if loss is None:
            moved = torch.cat([parameter.detach().flatten() for parameter in model.parameters()]) - before
            if not losses and not moved.any():
                return None
            raise TypeError("expected the loss as a number, loss.item(); got None")
        tensors += torch.is_tensor(loss)
        losses.append(float(loss.detach() if torch.is_tensor(loss) else loss))
        now = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
        weights.append(now)
        lengths.append((now - before).norm() / rate)
        found.append([group["lr"] for group in optimizer.param_groups])
    return {"losses": torch.tensor(losses), "weights": torch.stack(weights), "lengths": torch.stack(lengths),
            "rates": torch.tensor(found), "tensors": tensors, "left in training mode": model.training}

def _rates_off(case: Case) -> bool:
    return bool((case.rates - case.right["rates"]).abs().max() > 1e-6)

def _rates(case: Case) -> str:
    off = int((case.rates - case.right["rates"]).abs().sum(dim=1).argmax())
    return (f"after step {off + 1} the optimizer's groups have the rates {listed(case.rates[off], 'g')}, expected "
            f"{listed(case.right['rates'][off], 'g')}.")

def _mode(case: Case) -> str:
    names = "evaluation", "training"
    return (f"the model came in {names[int(case.right['left in training mode'])]} mode and is left in "
            f"{names[int(case.got['left in training mode'])]} mode.")

STEP = ask(
    "8.8", train_step,
    probes=step_probes,
    observe=observe_steps,
    signature="train_step(model, optimizer, batch, rate) -> the batch's loss before the step, as a number; the model's "
        "result is its logits, and a batch has token_ids, attention_mask and labels",
    mistakes={
        **mistakes_of_a_step(_step, "batches"),
        "rate-not-set": M(
            _step(rate="never"),
            _rates,
            "The optimizer keeps the rate that it was made with. Put yours into group['lr'] of every group in "
            "optimizer.param_groups."),
        "rate-of-the-first-group": M(
            _step(rate="first"),
            _rates,
            "An optimizer can have several groups of weights. Give each of them the rate."),
        "rate-after-the-step": M(
            _step(rate="late"),
            lengths_of_steps,
            "The rate is set when the step has been taken, so each step uses the one before. Set it first."),
        "summed": M(
            _step(reduction="sum"),
            losses_of_steps,
            "That is the sum over the batch. Take the mean, which cross_entropy gives if you don't ask for anything "
            "else."),
        "no-mask": M(
            _step(mask=False),
            losses_of_steps,
            "Padding has been read as words. Give the model batch.attention_mask."),
        "each-clipped": M(
            _step(clip="each"),
            lengths_of_steps,
            "You shorten each tensor by itself, which turns the gradient in another direction. Give clip_grad_norm_ all of "
            "them at once: model.parameters()."),
        "to-training-mode": M(
            _step(mode="training"),
            _mode,
            "A step is used without dropout as well (section 4). Whoever calls it sets the mode."),
    },
    rules=(
        R(
            _rates_off,
            _rates,
            "Before the step, each group in optimizer.param_groups needs the rate: group['lr'] = rate."),
        R(
            lambda case: case.lengths.max() < 1e-6,
            moved_by_steps,
            "backward makes the gradients, step uses them; clear the old ones before backward."),
        R(
            lambda case: (case.losses[0] - case.right["losses"][0]).abs() > 1e-4,
            losses_of_steps,
            "The very first loss is off, before anything has moved: logits from ids and mask, then "
            "F.cross_entropy(logits, batch.labels)."),
        R(
            lambda case: (case.lengths - case.right["lengths"]).abs().max() > 1e-4,
            lengths_of_steps,
            "The loss is right at first. What happens to the gradients between backward and step, and are those of the "
            "batch before gone?"),
        R(
            lambda case: (case.losses - case.right["losses"]).abs().max() > 1e-4,
            losses_of_steps,
            "The first loss is right, the others aren't. In which direction do the weights move?"),
        R(
            lambda case: case.tensors > 0,
            losses_as_tensors,
            "Return the loss as a number: loss.item()."),
        R(
            lambda case: case.got["left in training mode"] != case.right["left in training mode"],
            _mode,
            "Leave the mode as it was."),
    ),
    hints=(
        "Seven things, in this order: rate, forward, loss, clear, backward, clip, step.",
        "The model's result is its logits. Gradients exist only after backward; there they're clipped, before the step.",
        "optimizer.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(model.parameters(), 1.0); optimizer.step()",
    ),
)

# ---------------------------------------------------------------- 8.9 the best epoch

def keep_best(model, accuracy, best):
    if best is None or accuracy > best[0]:
        best = accuracy, copy.deepcopy(model.state_dict())                 # deep: the tensors too
    return best

def _keeps(copied=copy.deepcopy, better=lambda accuracy, so_far: accuracy > so_far, what="both", start=None, lost=False):
    """Keeping with one thing changed."""
    def keep(model, accuracy, best):
        if start is not None and best is None:
            best = start, None
        if best is None or better(accuracy, best[0]):
            weights = copied(model.state_dict())
            if what == "weights" and best is not None:
                return best[0], weights
            return accuracy, weights
        if lost:
            return None
        return {"both": best, "accuracy": (accuracy, best[1]), "weights": best}[what]
    return keep

def _not_the_weights(model, accuracy, best):
    return (max(accuracy, best[0]) if best else accuracy), copy.deepcopy(model.state_dict())

def best_probes(generator: torch.Generator) -> list[tuple]:
    """Accuracies of some epochs: the best in the middle; twice the same best; at once; a zero, and the only one."""
    low, high = (0.5 + 0.1 * torch.rand(2, generator=generator)).tolist()
    low, high = min(low, high), max(low, high) + 0.2
    return [([low, high - 0.05, high, low + 0.02, high - 0.1],), ([low, high, low + 0.01, high, low],),
            ([high, low, low + 0.05],), ([0.0],)]

class _Watched(nn.Linear):
    """A model that remembers which dictionaries of weights it gave out."""

    def state_dict(self, *args, **kwargs):
        weights = super().state_dict(*args, **kwargs)
        self.__dict__.setdefault("given_out", []).append(weights)
        return weights

    def __deepcopy__(self, memo):                                          # a copy remembers its own
        copied = _Watched(1, 1)
        copied.load_state_dict(nn.Linear.state_dict(self))
        return copied


def _two_things(best, epoch: int) -> tuple[float, float]:
    """The accuracy, and the epoch of the weights (-1 for none). Raises TypeError for anything else."""
    if not isinstance(best, (tuple, list)) or len(best) != 2:
        raise TypeError(f"expected two things, the best accuracy and its weights; after epoch {epoch} you return "
                        + (f"{len(best)} things" if isinstance(best, (tuple, list)) else f"one, a {type(best).__name__}"))
    first, weights = best
    if isinstance(first, (dict, nn.Module)):
        raise TypeError("expected the accuracy first and the weights second; yours are the other way round")
    try:
        accuracy = float(first)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError("expected the best accuracy first: the first of your two things must be a number; "
                        f"it's a {type(first).__name__} after epoch {epoch}") from None
    if weights is None:
        return accuracy, -1.0
    if isinstance(weights, nn.Module):
        raise TypeError("expected the weights, a copy of model.state_dict(); got a whole model")
    if not isinstance(weights, dict) or set(weights) != {"weight", "bias"}:
        raise TypeError("expected the weights as model.state_dict() has them, by name; got "
                        + (f"the names {', '.join(map(str, weights))}" if isinstance(weights, dict)
                           else f"a {type(weights).__name__} after epoch {epoch}"))
    wrong = next((one for one in weights.values() if not isinstance(one, torch.Tensor)), None)
    if wrong is not None:
        raise TypeError("expected the weights as tensors, so that load_state_dict can read them; got a "
                        f"{type(wrong).__name__} after epoch {epoch}")
    return accuracy, float(weights["weight"].detach())


def observe_best(function, accuracies):
    """By epoch: the accuracy that's kept, and of which epoch the kept weights are once the model has been trained on; -1 if
    nothing is kept. Whether the model's own weights were left alone, and whether only the dictionary was copied."""
    model = _Watched(1, 1)
    best, kept, epochs, moved, shallow = None, [], [], 0, 0
    for epoch, accuracy in enumerate(accuracies, start=1):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(epoch)                                     # as a training changes weights: in place
        try:
            best = function(model, accuracy, best)
        except (TypeError, AttributeError) as error:
            if epoch == 1 and best is None and "NoneType" in str(error):
                raise TypeError("expected something for the first call, at which best is None: there's no accuracy in it "
                                "yet to compare with. Ask `best is None` first") from None
            raise
        moved += bool((model.weight != epoch).any())
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(99.0)                                      # and the next epoch begins
        if best is None or best is ...:
            kept.append(-1.0)
            epochs.append(-1.0)
            best = None
            continue
        accuracy_kept, of_epoch = _two_things(best, epoch)
        kept.append(accuracy_kept)
        epochs.append(of_epoch)
        shallow += of_epoch == 99.0 and all(best[1] is not one for one in model.__dict__.get("given_out", ()))
    if max(kept) < 0:
        return None
    return {"accuracy": torch.tensor(kept), "epoch": torch.tensor(epochs), "moved": moved, "shallow": float(shallow)}

def _nth(case: Case, part: str) -> int:
    """The first epoch, from 0, where a part is off."""
    return int(((case.got[part] - case.right[part]).abs() > 1e-4).int().argmax())

def _kept_accuracy(case: Case) -> str:
    at = _nth(case, "accuracy")
    return f"after epoch {at + 1} you keep the accuracy {case.accuracy[at]:.3f}, expected {case.right['accuracy'][at]:.3f}."

def _kept_epoch(case: Case) -> str:
    at = _nth(case, "epoch")
    return (f"after epoch {at + 1} you keep the weights of epoch {case.epoch[at]:.0f}, expected those of epoch "
            f"{case.right['epoch'][at]:.0f}.")

def _accuracy_off(case: Case) -> bool:
    return bool((case.accuracy - case.right["accuracy"]).abs().max() > 1e-4)

def _epoch_off(case: Case) -> bool:
    return bool((case.epoch - case.right["epoch"]).abs().max() > 1e-4)

BEST = ask(
    "8.9", keep_best,
    probes=best_probes,
    observe=observe_best,
    signature="keep_best(model, accuracy, best: None or the two things that it returned) -> the best accuracy so far, and a "
        "copy of the weights that had it",
    mistakes={
        "not-copied": M(
            _keeps(copied=lambda weights: weights),
            lambda case: f"you keep the weights of epoch {int(case.right['epoch'][0])}, and once the training goes on, "
            "they've changed as well.",
            "state_dict() doesn't copy anything: its tensors are the model's own, and the next step changes them. Nothing "
            "complains, and in the end your best epoch is the last one. Take copy.deepcopy(model.state_dict())."),
        "dictionary-copied": M(
            _keeps(copied=dict),
            lambda case: f"you keep the weights of epoch {int(case.right['epoch'][0])}, and once the training goes on, "
            "they've changed as well.",
            "You copied the dictionary. The tensors in it are still the model's own. copy.deepcopy copies them too, or "
            "clone() each of them."),
        "later-of-two": M(
            _keeps(better=lambda accuracy, so_far: accuracy >= so_far),
            _kept_epoch,
            "Two epochs are equally good; keep the first. (Nothing bad would come of the other, but say which one you "
            "take, and stay with it.)", convention=True),
        "worst": M(
            _keeps(better=lambda accuracy, so_far: accuracy < so_far),
            _kept_accuracy,
            "That's the lowest so far. An accuracy should be high; only with a loss it's the other way round."),
        "always-the-last": M(
            _keeps(better=lambda accuracy, so_far: True),
            _kept_accuracy,
            "Each epoch replaces the one before it. Replace it only if the accuracy is higher."),
        "weights-of-the-last": M(
            _not_the_weights,
            _kept_epoch,
            "The accuracy is that of the best epoch, the weights aren't. Keep both at the same time, or neither."),
        "accuracy-of-the-last": M(
            _keeps(what="accuracy"),
            _kept_accuracy,
            "Where an epoch isn't better, return `best` as it came."),
        "lost": M(
            _keeps(lost=True),
            lambda case: "after an epoch that isn't better, nothing is kept any more.",
            "A function without a return gives None. Return `best`, changed or not."),
        "above-zero-only": M(
            _keeps(start=0.0),
            lambda case: "a first epoch with the accuracy 0 leaves no weights.",
            "There's nothing to compare it with: where best is None, keep the epoch whatever its accuracy."),
    },
    rules=(
        R(
            lambda case: case.moved > 0,
            lambda case: "the model's own weights are others after your function.",
            "Only look at the model here. It gets its best weights back when the training is over."),
        R(
            _accuracy_off,
            _kept_accuracy,
            "Keep the highest so far, and with it the weights."),
        R(
            lambda case: case.epoch.max() > 90,
            lambda case: "the weights that you keep change when the training goes on.",
            "Copy the tensors too: copy.deepcopy(model.state_dict()), or clone() each of them."),
        R(
            _epoch_off,
            _kept_epoch,
            "Weights and accuracy belong together."),
    ),
    hints=(
        "Two cases: this epoch is the best so far (or the first), or it isn't.",
        "In the second case, return best as it came. In the first, return accuracy and a copy of the weights.",
        "copy.deepcopy(model.state_dict()) makes the copy (`import copy` first); without deepcopy it's the model's own "
        "tensors.",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: equal-scores
  taught: "08"
  question: A four-word sentence has the pooling scores 0, 0, 0 and 0. What is the pooled vector?
  options:
    - text: The zero vector, since no word gets any weight.
      remark: That happens only when there is no token at all. A score of 0 isn't a weight of 0, because e⁰ =
        1.
    - text: The vector of the last word, which wins every tie.
      remark: Nothing prefers one position to another.
    - text: The plain mean, since equal scores give equal weights.
      right: true
      remark: Set the query to zero, and attention pooling is a mean.
- name: half-right-low-loss
  taught: "08"
  question: A model was trained on 200 reviews. Its validation accuracy is 0.50, its training loss 0.02, and its
    predictions are split evenly between the classes. What's wrong?
  options:
    - text: "Collapse: the model gives every review the same answer."
      remark: A collapsed model predicts one class only, and its training loss stays high.
    - text: Overfitting.
      right: true
      remark: The training loss is nearly zero, so the model has learned something, but nothing that carries over to
        new reviews. With thousands of reviews you'd suspect the validation as well (exercise 8.6).
    - text: "Too few epochs: the model has hardly learned anything."
      remark: Then the training loss would still be high.
- name: chosen-on-test
  taught: "08"
  question: Someone chooses the epoch by accuracy on the test split, and reports that accuracy. What is wrong?
  options:
    - text: On average, the reported accuracy is too high.
      right: true
      remark: The best of several was picked on the data it is reported on. Choose by validation, and report
        the test accuracy once.
    - text: On average, the reported accuracy is too low.
      remark: Among several epochs, the one that got lucky on this split was picked. Luck raises the number.
    - text: Nothing, if the splits have no review in common.
      remark: That isn't enough. The test split wasn't trained on, but it was used to choose.
- name: darkest-comma
  taught: "08"
  question: The token strip of a correct prediction is darkest on a comma. What follows?
  options:
    - text: The model is broken, because a comma means nothing.
      remark: Its prediction is correct. After the blocks, the comma's vector is no longer only a comma.
    - text: Not much, because that vector holds more than a comma by then.
      right: true
      remark: After the blocks, it contains much of the other words as well (notebook 11).
    - text: The comma decided the label.
      remark: The weight says where the verdict was picked up, not where it came from. To learn that, you have
        to take something away (notebook 11).
- name: vocabulary-left-behind
  taught: "08"
  question: You send a friend the weights and the configuration of a model. They build a vocabulary of the
    same size from their own reviews. What happens?
  options:
    - text: It raises an error, because the words don't match.
      remark: The model sees only ids, and they're all in range. Only a different size would be noticed.
    - text: It works, because the weights are the same.
      remark: Each row of the embedding belongs to a word of the old vocabulary.
    - text: It runs, and is hardly better than chance.
      right: true
      remark: The ids stand for different words now. That's why model, vocabulary and label names travel
        together (section 6).
- name: no-positions
  taught: "06"
  question: You set `positions="none"`. What happens to order twins?
  options:
    - text: Both twins get the same logits.
      right: true
      remark: Attention, feed-forward and pooling all treat the words as a set, and twins are the same set.
        Exactly one of the two is right.
    - text: They get opposite logits.
      remark: Nothing in the model knows that they are twins. Same words, same logits.
    - text: The gap between their logits is cut in half.
      remark: "It isn't only smaller, it is gone: without positions, nothing tells one twin from the other."
"""

WARM_UP = """
- name: who-looks-around
  taught: "07"
  question: In a transformer block, which part lets a word see the other words?
  options:
    - text: Attention alone; the feed-forward layer and the layer norm work within each word.
      right: true
      remark: That's why only attention needs a mask, here as well.
    - text: The feed-forward layer, since it's the widest.
      remark: It computes with one word's vector at a time. Change another word, and its result for this one
        stays.
    - text: All of them, since each gets the whole tensor.
      remark: They get the whole tensor, but layer norm and feed-forward treat every word by itself.
- name: twins-without-positions
  taught: "06"
  question: A model of attention and feed-forward layers has no positions. It reads 'not dull but moving' and
    'not moving but dull'.
    What does its mean over the words say?
  options:
    - text: Opposite vectors, since 'not' stands beside another word.
      remark: Nothing tells the model what stands beside what.
    - text: The same vector for both, since the words are the same.
      right: true
      remark: Without positions, a text is a set of words. Its order has to be put in.
    - text: Nothing, since attention needs positions to run.
      remark: It runs. It just can't know the order.
- name: loss-of-not-knowing
  taught: "03"
  question: A model gives every review the probability one half of being positive. What is its mean
    cross-entropy?
  options:
    - text: "0.5"
      remark: That's the probability. The loss is minus its natural logarithm.
    - text: "ln 2, which is 0.693"
      right: true
      remark: −ln 0.5, for every review. A model that hasn't learned anything has about this loss.
    - text: "1, the worst that a probability can be"
      remark: Cross-entropy has no upper limit, and one half is far from the worst.
"""
