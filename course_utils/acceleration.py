"""The same computations in less time: cheap dropout, attention in pieces, and a precision chosen by a measurement.

Does: `accelerate(model)`, which keeps a model's parameters and what it computes and changes how its modules
compute it; `choose_precision`. Does not: change any result but by rounding and by which elements a dropout draws.
The faster modules are for training on a CPU; elsewhere they are the ordinary ones. What it gains: data/results/speed.py.
"""

import copy
import math
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.attention import AttentionResult
from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.positional_encoding import RotaryPositions

VALUES = 65536                                          # that 16 random bits can have: rates are multiples of 1/65536
PIECE = 2**18                                           # attention weights at a time: 1 MB stays in the cache


def draw_seed() -> int:
    """A number from torch's generator, so that `torch.manual_seed` repeats all that is drawn from it."""
    return int(torch.randint(2**62, ()))


def keep_mask(out: torch.Tensor, dropped: int, seed: int) -> torch.Tensor:
    """Fill `out` with zeros and ones: each element is zero with probability `dropped` / 65536.

    One 64-bit random number decides over four elements, 16 bits for each; the library draws one for each.
    """
    bits = np.random.SFC64(seed).random_raw(-(-out.numel() // 4)).view(np.int16)[: out.numel()]
    return torch.ge(torch.from_numpy(bits).view(out.shape), dropped - VALUES // 2, out=out)


def fast_dropout(x: torch.Tensor, p: float, training: bool = True) -> torch.Tensor:
    """`F.dropout` in about a tenth of its time on a CPU; on another device `F.dropout` itself.

    The rate is the multiple of 1/65536 nearest to `p`; what is kept is divided by the exact share that is kept.
    """
    dropped = round(p * VALUES)
    if x.device.type != "cpu" or not training or dropped in (0, VALUES):
        return F.dropout(x, p if dropped else 0.0, training)
    keep = keep_mask(torch.empty_like(x, requires_grad=False), dropped, draw_seed())
    return x * keep.mul_(VALUES / (VALUES - dropped))


class FastDropout(nn.Dropout):
    """`nn.Dropout` by `fast_dropout`."""

    def forward(self, x):
        return fast_dropout(x, self.p, self.training)


class _AttentionInPieces(torch.autograd.Function):
    """softmax(query keyᵀ + bias), dropout, times value: so many heads at a time that their weights stay in the cache.

    The backward pass computes each piece again, random numbers included, so nothing of size query × key is kept.
    """

    @staticmethod
    def pieces(ctx, query, key, value, bias):
        """For each piece: its place in (batch, heads), its query, key and value, its weights, which of them are kept."""
        batch, heads, query_len, _ = query.shape
        fit = max(1, PIECE // (query_len * key.shape[-2]))                 # heads at a time
        rows, columns = (1, fit) if fit < heads else (fit // heads, heads)
        corners = [(i, h) for i in range(0, batch, rows) for h in range(0, heads, columns)]
        for number, (i, h) in enumerate(corners):
            place = slice(i, i + rows), slice(h, h + columns)
            q, k, v = query[place], key[place], value[place]
            scores = q @ k.transpose(-2, -1)
            weights = (scores if bias is None else scores.add_(bias[place])).softmax(dim=-1)
            yield place, q, k, v, weights, keep_mask(torch.empty_like(weights), ctx.dropped, ctx.seed + number)

    @staticmethod
    def forward(ctx, query, key, value, bias, dropped):
        ctx.dropped, ctx.seed = dropped, draw_seed()
        ctx.save_for_backward(query, key, value, bias)
        batch, heads, query_len, _ = query.shape
        context = query.new_empty(batch, query_len, heads, value.shape[-1]).transpose(1, 2)  # as `merge` wants it
        for place, _, _, v, weights, keep in _AttentionInPieces.pieces(ctx, query, key, value, bias):
            context[place] = weights.mul_(keep) @ v
        return context

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, bias = ctx.saved_tensors
        for_query, for_key, for_value = (torch.empty_like(x) for x in (query, key, value))
        for place, q, k, v, weights, keep in _AttentionInPieces.pieces(ctx, query, key, value, bias):
            g = gradient[place]
            for_weights = (g @ v.transpose(-2, -1)).mul_(keep)
            for_value[place] = keep.mul_(weights).transpose(-2, -1) @ g
            for_scores = torch._softmax_backward_data(for_weights, weights, -1, weights.dtype)
            for_query[place] = for_scores @ k
            for_key[place] = for_scores.transpose(-2, -1) @ q
        return for_query, for_key, for_value, None, None


def attention_with_dropout(query, key, value, mask=None, bias=None, dropout_p: float = 0.0) -> torch.Tensor:
    """`F.scaled_dot_product_attention` where it has dropout and a CPU: the context alone, (batch, heads, query, d_value).

    Arguments as in `course_utils.attention.scaled_dot_product_attention`, four dimensions each, in float32 or
    float64; `bias` gets no gradient. `dropout_p` acts as in `fast_dropout`.
    """
    batch, heads, query_len, d_head = query.shape
    dropped = round(dropout_p * VALUES)
    if mask is not None:
        bias = (torch.zeros((), dtype=query.dtype) if bias is None else bias).masked_fill(~mask, -math.inf)
    if bias is not None:
        closed = (bias == -math.inf).all(dim=-1, keepdim=True)             # a query with no key
        bias = bias.masked_fill(closed, 0.0).to(query.dtype).expand(batch, heads, query_len, key.shape[-2])
    context = _AttentionInPieces.apply(query / math.sqrt(d_head), key, value, bias, dropped)
    if bias is not None:
        context = context.masked_fill(closed, 0.0)
    return context * (VALUES / (VALUES - dropped))


class FastMultiHeadAttention(MultiHeadAttention):
    """`MultiHeadAttention` that trains with dropout on its weights by `attention_with_dropout`."""

    def attend(self, query, key, value, mask=None, bias=None, need_weights=False):
        drops = self.training and 0 < round(self.attention_dropout * VALUES) < VALUES
        fits = query.device.type == "cpu" and query.dtype in (torch.float32, torch.float64)
        if not drops or not fits or need_weights or (bias is not None and bias.requires_grad):
            return super().attend(query, key, value, mask, bias, need_weights)
        return AttentionResult(attention_with_dropout(query, key, value, mask, bias, self.attention_dropout), None)


class FastRotaryPositions(RotaryPositions):
    """`RotaryPositions` with a pair of columns as one complex number, turned by one product."""

    def rotate(self, x, offset: int = 0):
        if x.device.type != "cpu" or x.dtype not in (torch.float32, torch.float64):
            return super().rotate(x, offset)
        angle = self.angles(x, offset)                                     # (length, d_head / 2)
        turn = torch.polar(torch.ones_like(angle), angle)
        pairs = torch.view_as_complex(x.contiguous().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


FASTER = {nn.Dropout: FastDropout, MultiHeadAttention: FastMultiHeadAttention, RotaryPositions: FastRotaryPositions}


def accelerate(model: nn.Module) -> nn.Module:
    """Let the modules of `model` that have a faster form (FASTER) take it, in place; returns the model.

    They stay the objects that they were: parameters, names in the state dict, training mode. In evaluation the
    results are the same to rounding; in training another, equally likely, choice of elements is dropped.
    """
    for module in model.modules():
        module.__class__ = FASTER.get(type(module), type(module))
    return model


def choose_precision(model: nn.Module, token_ids, attention_mask, repetitions: int = 3, seconds=None) -> str:
    """"bf16" where a forward and backward pass of `model` in bfloat16 takes under nine tenths of its time, else "fp32".

    Times both in turn with a copy of the model, on the device of the batch, and leaves random numbers as they were.
    `seconds(precision)`, one timed pass, can be given in place of the clock. Without it a CPU that has no
    instructions for bfloat16 (AVX2 and older) is not timed: it would emulate them, many times slower.
    """
    device = token_ids.device.type
    if seconds is None and device == "cpu" and torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2"):
        return "fp32"
    with torch.random.fork_rng([token_ids.device] if device == "cuda" else []):
        seconds = seconds or _timed_pass(copy.deepcopy(model).train(), token_ids, attention_mask)
        measured = [(seconds("fp32"), seconds("bf16")) for _ in range(repetitions + 1)][1:]  # the first warms up
    fp32, bf16 = (statistics.median(column) for column in zip(*measured))
    return "bf16" if bf16 < 0.9 * fp32 else "fp32"


def _timed_pass(model: nn.Module, token_ids, attention_mask):
    """A function of a precision: the seconds of one forward and backward pass in it."""

    def seconds(precision: str) -> float:
        begun = time.perf_counter()
        with torch.autocast(token_ids.device.type, torch.bfloat16, enabled=precision == "bf16"):
            result = model(token_ids, attention_mask)
        logits = result if isinstance(result, torch.Tensor) else result.logits
        logits.float().sum().backward()
        if token_ids.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begun

    return seconds
