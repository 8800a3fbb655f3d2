"""What the exercises of notebook 13 try an answer on, and what they look at. `ask` and `generating` have what they say."""

import re

import numpy as np
import torch
from torch.nn import functional as F

from course_utils.exercises.compare import NotNumbers, named_tensors
from course_utils.positional_encoding import RotaryPositions

from course_exercises.common import (
    loss_and_gradient,
    not_contiguous,
    one_tensor,
    put_back,
    two_results,
    what,
    whole_numbers,
)

# ---------------------------------------------------------------- 13.1 the shift

def shift_probes(generator: torch.Generator) -> list[tuple]:
    """Three texts of seven tokens, 0 among them; two of four; one of two; five of three."""
    probes = [(torch.randint(0, 50, size, generator=generator),) for size in ((3, 7), (2, 4), (1, 2), (5, 3))]
    probes[0][0][0, 1] = 0                                                 # an ordinary token
    return probes


def observe_shift(function, token_ids):
    """Inputs and targets as two tensors."""
    output = function(token_ids)
    if output is None:
        return None
    if isinstance(output, (torch.Tensor, np.ndarray)) and output.ndim == 3 and len(output) == 2:
        output = tuple(output)                                             # one above the other: they unpack rightly
    parts = dict(zip(("inputs", "targets"), two_results(output, "inputs", "targets")))
    for name, ids in parts.items():
        whole_numbers(ids, name, "Leave them as they came")
    return parts

# ---------------------------------------------------------------- 13.2 the causal loss

def loss_probes(generator: torch.Generator) -> list[tuple]:
    """Ragged texts; a pad_id that isn't 0, in front of each text too, and once in the middle; a model that is sure of each
    next token and right, with a text of which nothing is asked; all logits equal; logits too
    large for exp; one answer of two tokens; positions whose logits are 200 above and below those of others; a
    vocabulary most of which doesn't occur, with a large pad_id."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    ragged = torch.randint(1, 7, (3, 5), generator=generator) * (torch.arange(5) < torch.tensor([[5], [3], [2]]))
    separated = torch.randint(0, 3, (2, 6), generator=generator)
    separated[:, 0] = separated[1, 4:] = 3
    separated[0, 2], separated[0, 3] = 0, 3                                # 0 is an ordinary token here
    sure_ids = torch.tensor([[2, 4, 1, 3], [1, 2, 0, 0], [3, 0, 0, 0]])
    sure = 30.0 * F.one_hot(sure_ids.roll(-1, dims=1), 5)
    sure[1, 1:], sure[2], sure[:, -1] = draw(3, 5), draw(4, 5), draw(3, 5)  # what padding and a last token say doesn't count
    large = torch.tensor([[[150.0, -150.0, 0.0], [0.0, 150.0, -150.0], [3.0, 2.0, 1.0]]])
    many = torch.randint(9, (2, 5), generator=generator)
    many[0, 4] = 700
    return [(2 * draw(3, 5, 7), ragged, 0), (*not_contiguous((draw(2, 6, 4).double(),)), separated, 3),
            (sure, sure_ids, 0), (torch.zeros(2, 3, 9), torch.randint(1, 9, (2, 3), generator=generator), 0),
            (large, torch.tensor([[2, 1, 1]]), 0), (draw(1, 2, 3), torch.tensor([[1, 2]]), 0),
            (draw(2, 4, 5) + 200.0 * torch.tensor([[[1], [-1], [0], [1]], [[-1], [0], [1], [-1]]]),
             torch.randint(1, 5, (2, 4), generator=generator), 0),
            (draw(2, 5, 1000), many, 700)]


def observe_loss(function, logits, token_ids, pad_id):
    """The loss, and the gradient that it sends to the logits; zeros if none, and if the loss isn't finite.

    Where cross_entropy stops because the logits aren't transposed, the loss is a text: how many targets each row has.
    """
    given, logits = logits, logits.detach().clone().requires_grad_()
    try:
        output = function(logits, token_ids, pad_id)
        put_back(given, logits)
    except RuntimeError as error:
        found = re.match(r"Expected target size \[\d+, (\d+)\], got \[\d+, (\d+)\]", str(error))
        if not found or int(found[1]) != logits.shape[-1]:
            raise
        return {"loss": found[2], "gradient for the logits": torch.zeros_like(logits)}
    if output is None:
        return None
    return loss_and_gradient(output, logits, "logits")

# ---------------------------------------------------------------- 13.3 top-p

def nucleus_probes(generator: torch.Generator) -> list[tuple]:
    """Six tokens in no order; a p below the highest probability; probabilities that add up to p exactly; every token asked
    for; one token; equal probabilities, of which p takes some; a long flat list; nine in float64; every token asked for,
    where rounding leaves the sum of all a little below 1."""
    flat = (0.3 * torch.randn(200, generator=generator)).softmax(dim=0)
    nine = torch.randn(9, generator=generator).double().softmax(dim=0)
    order = torch.randperm(6, generator=generator)
    below_one = torch.tensor([0.125, 0.5, 0.125 - 2**-24, 0.25])           # exactly, and so is each sum of some of them
    return [(torch.tensor([0.05, 0.31, 0.02, 0.38, 0.16, 0.08])[order], 0.8),
            (torch.tensor([0.1, 0.33, 0.35, 0.22]), 0.3), (torch.tensor([0.125, 0.5, 0.125, 0.25]), 0.75),
            (torch.tensor([0.2, 0.7, 0.1]), 1.0), (torch.ones(1), 0.5), (torch.tensor([0.2, 0.1, 0.3, 0.2, 0.2]), 0.6),
            (flat, 0.5), (nine, 0.9), (below_one[torch.randperm(4, generator=generator)], 1.0)]


def observe_nucleus(function, probabilities, p):
    """The probabilities. Raises TypeError where an answer looks for the place where the sum reaches p, and there is none."""
    try:
        return function(probabilities, p)
    except (IndexError, StopIteration, ValueError) as error:
        if probabilities.sum() >= p:
            raise
        raise TypeError(f"expected probabilities; your function stops with {type(error).__name__}, since the running sum "
                        f"never reaches p = {p:g} here: rounding leaves it a little below 1. Look at what came before each "
                        "token (cumsum minus the token's own), which is less than p for every token that stays") from error

# ---------------------------------------------------------------- 13.4 a step with the cache

def step_probes(generator: torch.Generator) -> list[tuple]:
    """(query, key, value (2, 3, 1, 4), five cached tokens); three cached tokens; none yet; a long cache, in float64;
    a text with scores too large for exp beside one with small ones."""
    probes = []
    for batch, heads, past, d_head, dtype in ((2, 3, 5, 4, torch.float32), (1, 2, 3, 6, torch.float32),
                                              (2, 1, 0, 4, torch.float32), (1, 3, 11, 2, torch.float64)):
        rotate = RotaryPositions(d_head).rotate
        query, key, value = (1.5 * torch.randn(batch, heads, 1, d_head, generator=generator).to(dtype) for _ in range(3))
        keys, values = (1.5 * torch.randn(batch, heads, past, d_head, generator=generator).to(dtype) for _ in range(2))
        probes.append((query, key, value, rotate(keys), values, rotate))
    query, key, value = (torch.randn(2, 1, 1, 4, generator=generator).double() for _ in range(3))
    keys, values = (torch.randn(2, 1, 3, 4, generator=generator).double() for _ in range(2))
    key, keys = key / key.norm(dim=-1, keepdim=True), keys / keys.norm(dim=-1, keepdim=True)
    query[0] = 4000.0 * key[0]                          # the new token's score of itself is 2000, and no other is larger
    return [*probes, (query, key, value, keys, values, RotaryPositions(4).rotate)]


def observe_step(function, query, key, value, past_keys, past_values, rotate):
    """Context, keys and values as three tensors; as texts, the axis, where torch.cat stops because it's a wrong one."""
    names = ("context", "keys", "values")
    try:
        output = function(query, key, value, past_keys, past_values, rotate)
    except RuntimeError as error:
        found = re.match(r"Sizes of tensors must match except in dimension (\d)", str(error))
        if not found:
            raise
        return dict.fromkeys(names, found[1])
    if output is None:
        return None
    if not isinstance(output, (tuple, list)) or len(output) != 3:
        got = f"one tensor, {tuple(output.shape)}" if isinstance(output, torch.Tensor) else what(output)
        if isinstance(output, (tuple, list)):
            got = f"{len(output)} results"
        raise TypeError(f"expected three results, context, keys and values, got {got}. End with `return context, keys, "
                        "values`")
    return {name: one_tensor(part, name) for name, part in zip(names, output)}

# ---------------------------------------------------------------- 13.5 how far a model looks back

class _Counts:
    """A model without attention: the logits of a position are the sum of a row for each token at some distances.

    `distances` say how far back these tokens are, 0 for the position's own. With `from_start`, they're counted from the
    beginning of the text. `bias` is added at the same id everywhere, so that this one stays the most probable. `faint` is
    how much the rows of the last distance are made smaller.
    """

    def __init__(self, generator, vocab_size, distances, from_start=False, bias=0.0, faint=1.0):
        self.rows = torch.randn(len(distances), vocab_size, vocab_size, generator=generator)
        self.rows[-1:] *= faint
        self.distances, self.from_start = distances, from_start
        self.bias = bias * F.one_hot(torch.tensor(1), vocab_size)

    def __call__(self, token_ids):
        batch, seq_len = token_ids.shape
        if not ((token_ids >= 0) & (token_ids < len(self.bias))).all():
            raise IndexError(f"expected ids from 0 to {len(self.bias) - 1}, as vocab_size is {len(self.bias)}; got "
                             f"{int(token_ids.min() if token_ids.min() < 0 else token_ids.max())}")
        logits = self.bias + torch.zeros(batch, seq_len, len(self.bias))
        for rows, distance in zip(self.rows, self.distances):
            vectors = F.embedding(token_ids, rows)                         # (batch, seq_len, vocab)
            if self.from_start and distance < seq_len:
                logits[:, distance:] += vectors[:, distance : distance + 1]
            elif distance < seq_len:
                logits[:, distance:] += vectors[:, : seq_len - distance]
        return logits


def reach_probes(generator: torch.Generator) -> list[tuple]:
    """A 5-gram; one that looks 0, 1 and, by 0.0001, 6 tokens back; a bigram on id 0; a 3-gram whose best token never
    changes; one that ignores all; one that sees the first token alone, which is id 0; a 6-gram on three tokens; a bigram on
    a token twice, and, with nine ids, on each of them."""
    def draw(*shape):
        return torch.randint(1, 8, shape, generator=generator)

    with_zeros = draw(1, 9)
    with_zeros[0, [2, 5, 8]] = 0                                           # what changing it to 0 wouldn't change
    twice = draw(1, 6)
    twice[0, -2] = twice[0, -1]                                            # what leaving one out wouldn't change
    different = 1 + torch.randperm(11, generator=generator)[None, :10]
    return [(_Counts(generator, 8, (0, 1, 2, 3)), draw(1, 9), 8),
            (_Counts(generator, 12, (0, 1, 6), faint=1e-4), different, 12),
            (_Counts(generator, 8, (0,)), with_zeros, 8), (_Counts(generator, 8, (0, 1, 2), bias=100.0), draw(1, 7), 8),
            (_Counts(generator, 8, ()), draw(1, 5), 8),
            (_Counts(generator, 8, (0,), from_start=True), with_zeros.flip(1), 8),
            (_Counts(generator, 8, (0, 1, 2, 3, 4)), draw(1, 3), 8), (_Counts(generator, 8, (0,)), twice, 8),
            *((_Counts(generator, 9, (0,)), torch.tensor([[3, 2, 6, last]]), 9) for last in range(9))]


def observe_reach(function, logits_of, token_ids, vocab_size):
    """The number of tokens. Raises TypeError for more than one number."""
    output = function(logits_of, token_ids, vocab_size)
    if isinstance(output, (bool, np.bool_)) or isinstance(output, torch.Tensor) and output.dtype == torch.bool:
        raise TypeError(f"expected a number of tokens, got {bool(output.any() if hasattr(output, 'any') else output)}. "
                        "Return how far back the furthest token is")
    try:
        found = named_tensors(output)
    except NotNumbers:
        return output
    if list(found) == [""] and isinstance(found[""], torch.Tensor) and found[""].numel() != 1:
        raise TypeError(f"expected one number of tokens, got {what(output)}")
    return output

# ---------------------------------------------------------------- 13.6 bits per byte

TEXT = "# größer als π? ja, naïve Lösung 🙂\nif length > 3.14159:\n    print('größer')\n"


def bits_probes(generator: torch.Generator) -> list[tuple]:
    """(mean loss, number of tokens, text): letters with two bytes and more, read by two tokenizers; plain code; one byte;
    a long text, whose probability is too small for any float; an accent of its own and a line end of two bytes."""
    loss = 1.8 + 0.8 * torch.rand(1, generator=generator).item()
    return [(loss, 40, TEXT), (loss * 40 / 25, 25, TEXT), (2.5, 9, "for i in range(10):\n    total += i\n"), (0.75, 1, "x"),
            (3.0, 2, "→"), (5.0, 1000, "while x > 1:\n    x = x // 2\n" * 100),
            (2.0, 6, "cafe\u0301 = 1\r\n")]


def observe_bits(function, mean_loss, num_tokens, text):
    """The bits per byte. Raises TypeError where an answer goes through e to the power of the whole text's cost."""
    try:
        return function(mean_loss, num_tokens, text)
    except (OverflowError, ValueError) as error:
        if mean_loss * num_tokens < 700:                # the largest float is about e^709
            raise
        raise TypeError(f"expected a number of bits; your function stops with {type(error).__name__} ({error}), since no "
                        f"float holds e to the power of {mean_loss * num_tokens:g}, or of minus that. A loss is a logarithm "
                        "already: to change its base, divide it by math.log(2)") from error
