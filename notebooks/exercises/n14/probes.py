"""What the exercises of notebook 14 try an answer on, and what they look at. `ask` has what they say."""

import contextlib
import itertools
import os
import re

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.exercises.compare import plain_data

from course_exercises.common import (
    loss_and_gradient,
    not_contiguous,
    one_tensor,
    put_back,
    two_results,
    what,
    whole_numbers,
)


def _copies(inputs: tuple) -> tuple:
    return tuple(part.clone() if isinstance(part, torch.Tensor) else part for part in inputs)


def _once_more(function, *inputs) -> torch.Tensor | None:
    """What the function gives in a further call, as one tensor; None if that can't be read. What it prints isn't shown."""
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            return one_tensor(plain_data(function(*_copies(inputs))), "the result").double()
    except Exception:
        return None


def _kind(part) -> str:
    """What a tensor or an array holds, "whole" numbers or "fractions"; "" for anything else, such as a list."""
    if isinstance(part, torch.Tensor):
        return "fractions" if part.is_floating_point() else "whole"
    kind = part.dtype.kind if isinstance(part, np.ndarray) else ""
    return "whole" if kind in tuple("biu") else "fractions" if kind == "f" else ""

# ---------------------------------------------------------------- 14.1 hide words

FATES = torch.tensor([0.0, 0.05, 0.1, 0.15, 0.3, 0.5, 0.7, 0.79, 0.8, 0.85, 0.89, 0.9, 0.95, 0.99])


def hiding_probes(generator: torch.Generator) -> list[tuple]:
    """(token_ids, chosen, fate, others, mask_id): every kind of fate, at the borders too, for chosen tokens and others; all
    chosen; nothing chosen; one token; few ids, so that the text and `others` hold the mask's id and 0, and may agree."""
    def draw(rows, columns, share, mask_id):
        shape = (rows, columns)
        token_ids, others = (torch.randint(low, low + 40, shape, generator=generator) for low in (5, 50))
        fate = FATES[torch.randint(len(FATES), shape, generator=generator)]
        return token_ids, torch.rand(shape, generator=generator) < share, fate, others, mask_id

    ids, chosen, _, others, _ = draw(4, 14, 0.5, 4)
    chosen[0], chosen[1] = True, False
    probes = [(ids, chosen, FATES.expand(4, -1).clone(), others, 4), draw(3, 9, 2.0, 103), draw(2, 5, -1.0, 1),
              (torch.tensor([[7]]), torch.tensor([[True]]), torch.tensor([[0.2]]), torch.tensor([[9]]), 0)]
    few, fate = torch.tensor([3, 0, 5, 1, 6]), FATES[[0, 2, 4, 7, 8, 9, 10, 11, 12]]           # 3 is the mask
    which = torch.cartesian_prod(*(torch.arange(len(part)) for part in (few, few, fate)))       # each with each
    ids, others, fate = few[which[:, 0]], few[which[:, 1]], fate[which[:, 2]]
    chosen = torch.stack([torch.ones(len(which), dtype=torch.bool), torch.arange(len(which)) % 2 == 0])
    return [*probes, (ids.repeat(2, 1), chosen, fate.repeat(2, 1), others.repeat(2, 1), 3)]


def observe_hidden(function, token_ids, chosen, fate, others, mask_id):
    """The ids. At a fate of exactly 0.9 those of a second call count, in float64: in float32, 0.9 is a little less, so that
    float(fate[i, j]) < 0.9 is true there and fate < 0.9 isn't. Elsewhere the two calls must agree."""
    before = _copies((token_ids, chosen, fate, others, mask_id))
    output = function(token_ids, chosen, fate, others, mask_id)
    try:
        ids = one_tensor(plain_data(output), "the ids")
    except TypeError:
        return output
    if ids.shape != token_ids.shape:
        return output
    whole_numbers(ids, "ids", "Arithmetic with a float mask makes floats; masked_fill and torch.where don't")
    ids = ids.double()
    token_ids, chosen, fate, others, mask_id = before
    exact = (fate.double() * 100).round() / 100
    again = _once_more(function, token_ids, chosen, exact, others, mask_id)
    if again is None or again.shape != ids.shape:
        return ids
    sure = ((exact - 0.8).abs() > 1e-6) & ((exact - 0.9).abs() > 1e-6)
    if (ids != again)[sure].any():
        raise TypeError("expected the same result for the same inputs, got another one in a second call. The random numbers "
                        "are drawn before your function is called: `fate` and `others` hold them")
    return torch.where((exact - 0.9).abs() < 1e-6, again, ids)

# ---------------------------------------------------------------- 14.2 the longest piece

SMALL = "film ##s ##ing ##ed ##e ##d mov movi move ##able un ##mov ##moved dull ##er ##est d ##u ##l ##ll".split()
LETTERS = [*"abcdeflmnorsuv", *("##" + letter for letter in "abdefilmnorsuv")]


def piece_probes(generator: torch.Generator) -> list[tuple]:
    """(word, vocabulary): one piece; several; a dead end late in the word, and at once; a piece that's there only as a
    beginning, or only as a continuation, and no other that fits; a word of single letters; fewer pieces than the longest
    ones give, and longer ones in the middle of the word; long pieces, one at the start and one that goes on; other words
    for every generator."""
    small, letters = set(SMALL), set(LETTERS) | set(SMALL)
    fewer = set("un unmo unmova ##m ##ovable ##vable ##b ##le".split())
    long = set("anti ##dis ##establish ##ment ##arian ##ism antidisestablish ##mentarianism".split())
    return [("films", small), ("film", small), ("moved", small), ("unmoved", small), ("moving", small), ("movable", small),
            ("xfilm", small), ("filmx", small), ("dullest", small), ("sun", small | {"##un", "s"}), ("edfilm", small),
            ("unmovable", letters), ("refilmed", letters), ("d", small), ("duller", small - {"dull", "##ll"}),
            ("unmovable", fewer), ("remoted", set("re rem ##moted ##oted".split())),
            ("antidisestablishmentarianism", long), ("dullfilm", small), ("ing", small), *_drawn_words(generator)]


def _drawn_words(generator: torch.Generator, count: int = 12) -> list[tuple]:
    """Words of the letters a, b and c, and vocabularies with about a third of the pieces of one to three of them."""
    def draw(size):
        return "".join("abc"[i] for i in torch.randint(3, (size,), generator=generator).tolist())

    pieces = ["".join(letters) for size in (1, 2, 3) for letters in itertools.product("abc", repeat=size)]
    probes = []
    for _ in range(count):
        begin, go_on = (torch.rand(len(pieces), generator=generator) < 0.35 for _ in range(2))
        probes.append((draw(int(torch.randint(4, 9, (), generator=generator))), {
            *(piece for piece, there in zip(pieces, begin) if there),
            *("##" + piece for piece, there in zip(pieces, go_on) if there)}))
    return probes


def observe_pieces(function, word, vocabulary):
    """The pieces with a space between them."""
    output = function(word, vocabulary)
    if output is None:
        if function("film", {"film"}) is None:
            return None
        raise TypeError(f"expected a list of pieces for {word!r}, got None, though 'film' gives one. Each way through your "
                        "function must end in a return: with [\"[UNK]\"] where no piece fits")
    if isinstance(output, str):
        raise TypeError(f"expected a list of pieces for {word!r}, got one text, {output!r}. Return a list, such as "
                        f"{[output] if output == '[UNK]' else output.split()}")
    if isinstance(output, dict) or not hasattr(output, "__iter__"):
        raise TypeError(f"expected a list of pieces, got {what(output)}")
    if isinstance(output, (set, frozenset)):
        raise TypeError(f"expected a list of pieces for {word!r}, got a set. A set has no order and holds each piece only "
                        "once. Begin with pieces = [] and append to it")
    pieces = list(output)
    if wrong := [piece for piece in pieces if not isinstance(piece, str)]:
        raise TypeError(f"expected pieces as texts, got {what(wrong[0])}")
    if any(not piece for piece in pieces):
        raise TypeError(f"expected at least one letter in each piece, got an empty text among those for {word!r}")
    if wrong := [piece for piece in pieces if piece.split() != [piece]]:
        raise TypeError(f"expected pieces without spaces, got {wrong[0]!r}. Each piece has its own place in the list: "
                        f"{' '.join(pieces).split()}")
    return {"pieces": " ".join(pieces)}

# ---------------------------------------------------------------- 14.3 the loss on hidden words

def loss_probes(generator: torch.Generator) -> list[tuple]:
    """Some chosen, more in one text than in another; a model that's sure and right where it's asked; nothing chosen; all
    logits equal; logits too large for exp, of a model that's sure and wrong; one position; positions whose
    logits are 200 above and below those of others."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    ids = torch.randint(1, 7, (3, 5), generator=generator)
    chosen = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)
    sure_ids = torch.tensor([[2, 4, 1, 3], [1, 2, 0, 3]])
    asked = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 0]], dtype=torch.bool)
    sure = torch.where(asked[..., None], 30.0 * F.one_hot(sure_ids, 6), 3 * draw(2, 4, 6))
    level = torch.tensor([[1, 1, 0], [0, 1, 0]], dtype=torch.bool)
    large = torch.tensor([[*[[100.0, -100.0, 0.0]] * 3, [3.0, 2.0, 1.0]]])      # in float32 exp(100) is inf, exp(-200) 0
    return [(2 * draw(3, 5, 7), ids, chosen), (*not_contiguous((draw(2, 6, 4),)),
             torch.randint(0, 4, (2, 6), generator=generator), torch.rand(2, 6, generator=generator) < 0.5),
            (sure, sure_ids, asked), (torch.zeros(2, 3, 9), torch.randint(0, 9, (2, 3), generator=generator), level),
            (draw(2, 3, 4), torch.ones(2, 3, dtype=torch.long), torch.zeros(2, 3, dtype=torch.bool)),
            (large, torch.tensor([[1, 0, 0, 0]]), torch.tensor([[True, True, True, False]])),
            (draw(1, 2, 3), torch.tensor([[1, 2]]), torch.tensor([[False, True]])),
            (draw(2, 3, 5) + 200.0 * torch.tensor([[[1], [-1], [0]], [[-1], [0], [1]]]),
             torch.randint(0, 5, (2, 3), generator=generator), torch.tensor([[1, 1, 1], [1, 1, 0]]).bool())]


def observe_loss(function, logits, token_ids, chosen):
    """The loss, and the gradient that it sends to the logits; zeros if none, and if the loss isn't finite."""
    given, logits = logits, logits.detach().clone().requires_grad_()
    try:
        output = function(logits, token_ids, chosen)
        put_back(given, logits)
    except RuntimeError as error:
        found = re.match(r"Expected target size \[\d+, (\d+)\], got \[\d+, (\d+)\]", str(error))
        if not found or int(found[1]) != logits.shape[-1]:
            raise
        raise TypeError(f"expected the vocabulary in dimension 1, where cross_entropy looks for it, got {found[2]} "
                        "positions there. Hand over logits.transpose(1, 2), or flatten texts and positions: "
                        "logits.flatten(0, 1) with token_ids.flatten()") from None
    if output is None and chosen.any():
        return None
    if output is None:
        raise TypeError("expected 0 where nothing is chosen, got None. Each way through your function must end in a return")
    return loss_and_gradient(output, logits, "logits")

# ---------------------------------------------------------------- 14.4 the second half of a block

def half_probes(generator: torch.Generator) -> list[tuple]:
    """(x, expand, expand_bias, contract, contract_bias, gain, shift, eps): large and small numbers, a single text without a
    batch, one width of 2, an eps that matters."""
    def draw(*shape, size=1.0):
        return size * torch.randn(*shape, generator=generator)

    probes = []
    for shape, d_ff, eps, size in (((2, 3, 6), 11, 1e-12, 2.0), ((4, 8), 5, 1e-5, 1.0), ((3, 1, 2), 4, 0.5, 1.0),
                                   ((1, 2, 5), 9, 1e-12, 1e-4)):
        d = shape[-1]
        probes.append((draw(*shape, size=size), draw(d_ff, d), draw(d_ff, size=min(size, 1.0)), draw(d, d_ff, size=2.0),
                       draw(d, size=min(size, 1.0)), 1 + draw(d, size=0.5), draw(d), eps))
    return probes


def observe_half(function, x, expand, expand_bias, contract, contract_bias, gain, shift, eps):
    """What a half block gives; an error if it's something else in a second call."""
    inputs = x, expand, expand_bias, contract, contract_bias, gain, shift, eps
    before = _copies(inputs)
    output = function(*inputs)
    if isinstance(output, torch.Tensor):
        again = _once_more(function, *before)
        if again is not None and again.shape == output.shape and not torch.allclose(
                output.detach().double(), again, rtol=1e-4, atol=1e-4, equal_nan=True):
            raise TypeError("expected the same result for the same inputs, got another one in a second call. Is there a "
                            "dropout? F.dropout is always active, unless you write training=False")
    return output

# ---------------------------------------------------------------- 14.5 pooling with the mask

class ReadingEncoder:
    """An encoder that can be called: a vector for each id, plus half the mean over the positions that it reads.

    Like Hugging Face's, it reads every position if it gets no mask. Its result comes out of a transpose.
    """

    def __init__(self, table: torch.Tensor):
        self.table = table

    def __call__(self, token_ids, attention_mask=None):
        x = self.table[torch.as_tensor(token_ids)]                         # (batch, seq_len, d_model)
        real = torch.ones(x.shape[:2]) if attention_mask is None else torch.as_tensor(attention_mask)
        if real.shape != x.shape[:2]:
            raise TypeError(f"encoder was given token_ids of shape {tuple(x.shape[:2])} and a mask of shape "
                            f"{tuple(real.shape)}; both are (batch, seq_len)")
        real = real.to(x.dtype)[..., None]
        x = x + 0.5 * (x * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True).clamp(min=1)
        return x.mT.contiguous().mT


def pooling_probes(generator: torch.Generator) -> list[tuple]:
    """(encoder, token_ids, attention_mask, weight, bias): ragged texts; one text without padding; a text of one token;
    padding in front of every text. Padding has the id 0 or another one, and 0 is a word, too."""
    def draw(mask, classes, d_model, size=1.0, vocab_size=9, pad_id=0):
        table, weight, bias = (torch.randn(shape, generator=generator) for shape in (
            (vocab_size, d_model), (classes, d_model), (classes,)))
        ids = torch.randint(0, vocab_size, mask.shape, generator=generator).masked_fill(~mask, pad_id)
        return ReadingEncoder(size * table + 1), ids, mask, weight, bias

    ragged = torch.arange(5) < torch.tensor([[5], [2], [3], [1]])
    in_front = torch.tensor([[False, False, True, True], [False, True, True, True]])
    return [draw(ragged, 3, 6), draw(torch.ones(1, 4, dtype=torch.bool), 2, 2, size=3.0),
            draw(torch.arange(3) < torch.tensor([[1], [3]]), 2, 4, pad_id=3), draw(in_front, 2, 3)]

# ---------------------------------------------------------------- 14.6 how an adapter starts

OVERFLOWED, TOO_SMALL = -1, -2                           # in place of a rank: infinite numbers, or next to nothing


def adapter_probes(generator: torch.Generator) -> list[tuple]:
    """(weight, rank): wide, tall, rank 1."""
    return [(torch.randn(*shape, generator=generator), rank) for shape, rank in (((5, 7), 3), ((8, 4), 2), ((6, 9), 1))]


@contextlib.contextmanager
def _empty_is_nan():
    """torch.empty gives NaN instead of whatever was in memory, which may happen to be 0.

    By the switch that torch.use_deterministic_algorithms turns; that function itself imports a compiler first, for seconds.
    """
    filler, turn = torch.utils.deterministic, torch._C._set_deterministic_algorithms
    before = (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
              filler.fill_uninitialized_memory)
    turn(True, warn_only=True)
    filler.fill_uninitialized_memory = True
    try:
        yield
    finally:
        turn(before[0], warn_only=before[1])
        filler.fill_uninitialized_memory = before[2]


def observe_adapter(function, weight, rank):
    """The shapes; how many numbers of up · down aren't 0; the rank of up · down after some training."""
    with _empty_is_nan():
        output = function(weight, rank)
    if output is None:
        return None
    if isinstance(output, dict) and output.keys() == {"down", "up"}:
        output = output["down"], output["up"]
    for given, name in zip(output if isinstance(output, (tuple, list)) else (), ("down", "up")):
        if isinstance(given, nn.Module):
            raise TypeError(f"expected a tensor as {name}, got a layer ({type(given).__name__}): return its weight")
    parts = two_results(output, "down", "up")
    for given, name in zip(output, ("down", "up")):
        if isinstance(given, torch.Tensor) and given.untyped_storage().data_ptr() == weight.untyped_storage().data_ptr():
            raise TypeError(f"expected {name} with numbers of its own, got a part of `weight`: training the adapter would "
                            "change the layer, too. Append .clone(), or draw random numbers")
    down, up = (_learnable(given, part, name, weight.dtype) for given, part, name in zip(output, parts, ("down", "up")))
    for part, name, wanted in ((down, "down", "(rank, d_in)"), (up, "up", "(d_out, rank)")):
        if part.dim() != 2:
            raise TypeError(f"expected a matrix as {name}, {wanted}, got {_in_words(part)}")
    shapes = {"down's shape": torch.tensor(down.shape, dtype=torch.float32),
              "up's shape": torch.tensor(up.shape, dtype=torch.float32)}
    if (up.shape[0], down.shape[1]) != weight.shape or down.shape[0] != up.shape[1]:
        return {**shapes, "changed": torch.tensor(-1.0), "learned": torch.tensor(-1.0)}
    changed = (up @ down != 0).sum().float()
    return {**shapes, "changed": changed, "learned": torch.tensor(float(_rank_after_training(down, up)))}


def _in_words(part: torch.Tensor) -> str:
    """What a tensor with any number of dimensions but two is."""
    return "a single number" if part.dim() == 0 else f"a tensor of shape {tuple(part.shape)}"


def _learnable(given, part: torch.Tensor, name: str, dtype: torch.dtype) -> torch.Tensor:
    """One of the two matrices in float64. Raises TypeError for one that can't be trained beside a weight of this type."""
    if _kind(given) == "whole":
        raise TypeError(f"expected numbers that can be trained as {name}, got whole numbers ({given.dtype}): a gradient "
                        "would change them by fractions")
    if isinstance(given, torch.Tensor) and given.dtype != dtype:
        raise TypeError(f"expected numbers of the weight's type as {name}, {dtype}, got {given.dtype}: PyTorch doesn't "
                        "multiply matrices of two types. Leave dtype out, or use weight.dtype")
    if isinstance(given, torch.Tensor) and any(size > 1 and step == 0 for size, step in zip(given.shape, given.stride())):
        raise TypeError(f"expected a number of its own at each place of {name}, got one number seen at several, as expand() "
                        "makes it, and training would change all of them at once. Append .clone()")
    part = part.detach().double()
    if not part.isfinite().all():
        raise TypeError(f"expected numbers as {name}, got {int((~part.isfinite()).sum())} of {part.numel()} NaN or "
                        "infinite. torch.empty holds whatever was in memory: fill it, or use torch.zeros")
    return part


def _rank_after_training(down: torch.Tensor, up: torch.Tensor, steps: int = 3) -> int:
    """The rank of up · down after a few steps of gradient descent towards random targets, OVERFLOWED, or TOO_SMALL."""
    generator = torch.Generator().manual_seed(0)
    x, target = (torch.randn(40, size, generator=generator).double() for size in (down.shape[1], up.shape[0]))
    down, up = down.clone().requires_grad_(), up.clone().requires_grad_()
    for _ in range(steps):
        loss = ((x @ down.T @ up.T - target) ** 2).mean()
        gradients = torch.autograd.grad(loss, [down, up])
        with torch.no_grad():
            for part, gradient in zip((down, up), gradients):
                part -= 0.1 * gradient
    product = (up @ down).detach()
    if not product.isfinite().all():
        return OVERFLOWED
    sizes = torch.linalg.svdvals(product)
    rank = int((sizes > max(1e-14, 1e-9 * sizes.max().item())).sum())
    return TOO_SMALL if rank == 0 and product.any() else rank
