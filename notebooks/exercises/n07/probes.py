"""What the exercises of notebook 07 try an answer on, and what they look at. `ask` has what they say of it."""

import torch
from torch import nn

from course_exercises.common import no_module, not_contiguous, one_tensor, reached

# ---------------------------------------------------------------- 7.2 layer norm

def norm_probes(generator: torch.Generator) -> list[tuple]:
    """(x, weight, bias, eps): words of different means and sizes, with a large eps and the usual one; then four dims.

    Then a word of equal numbers, whose variance is zero, one text of one word, in float64 and not in order in memory, and
    words with a mean near 3,000.
    """
    def draw(front, d_model, eps):
        x = torch.randn(*front, d_model, generator=generator)
        sizes = 0.5 + 2 * torch.rand(*front, 1, generator=generator)
        means = torch.randn(*front, 1, generator=generator)
        weight = 0.5 + torch.rand(d_model, generator=generator)
        return sizes * x + means, weight, torch.randn(d_model, generator=generator), eps

    probes = [draw((2, 5), 8, 0.3), draw((3, 4), 6, 1e-5), draw((2, 3, 4), 5, 1e-5), draw((1, 2), 4, 1e-5)]
    probes[-1][0][0, 1] = 3.0
    single = draw((1, 1), 3, 1e-3)
    far = draw((2, 3), 8, 1e-5)
    return [*probes, (*not_contiguous(tuple(20 * part.double() for part in single[:3])), single[3]),
            (20 * far[0] + 3000, *far[1:])]


def observe_norm(function, x, weight, bias, eps):
    """What comes out, and whether gradients reach x, weight and bias."""
    output = function(x, weight, bias, eps)
    if output is None:
        return None
    names = {0: "x", 1: "weight", 2: "bias"}
    return {"": one_tensor(output, "the normalised x"), **reached(function, output, (x, weight, bias, eps), names)}

# ---------------------------------------------------------------- 7.4 a pre-norm stack from parts

def _attention(W_score: torch.Tensor, W_value: torch.Tensor):
    """One head as a plain function: attention(x (batch, seq_len, d_model), mask (batch, 1, seq_len) or None)."""
    def attention(x, mask=None):
        scores = x @ W_score @ x.transpose(-2, -1) / x.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return scores.softmax(dim=-1) @ x @ W_value
    return attention


def _feed_forward(W_1: torch.Tensor, W_2: torch.Tensor):
    def feed_forward(x):
        return torch.relu(x @ W_1) @ W_2
    return feed_forward


def _layer_norm(weight: torch.Tensor, bias: torch.Tensor):
    def norm(x):
        return nn.functional.layer_norm(x, weight.shape, weight, bias)
    return norm


def stack_probes(generator: torch.Generator) -> list[tuple]:
    """(x, layers, last_norm, mask): two layers on padded texts of 5 words, three layers on texts of 4; one on one text;
    none."""
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    def norm(d):
        return _layer_norm(0.5 + torch.rand(d, generator=generator), draw(d))

    def layer(d):
        attention = _attention(draw(d, d) / d**0.5, draw(d, d) / d**0.5)
        return attention, _feed_forward(draw(d, 2 * d) / d**0.5, draw(2 * d, d) / d**0.5), norm(d), norm(d)

    def probe(batch, length, d, depth, real):
        mask = (torch.arange(length) < torch.tensor(real)[:, None])[:, None]
        return 2 * draw(batch, length, d) + 1, [layer(d) for _ in range(depth)], norm(d), mask

    return [probe(2, 5, 6, 2, [4, 2]), probe(3, 4, 8, 3, [3, 1, 2]), probe(1, 2, 4, 1, [1]), probe(2, 3, 4, 0, [3, 2])]


def observe_stack(answer, x, layers, last_norm, mask):
    """The output; the same with silent sublayers and a last norm that triples; how far real words move with the padding."""
    output = answer(x, layers, last_norm, mask)
    if output is None:
        return None
    out = one_tensor(output, "the output of the stack")

    def stack(*given):
        return one_tensor(answer(*given), "the output of the stack")

    def nothing(x, mask=None):
        return torch.zeros_like(x)

    silent = stack(x, [(nothing, nothing, norm_1, norm_2) for _, _, norm_1, norm_2 in layers], lambda x: 3 * x, mask)
    real = mask[:, 0]                                                      # (batch, seq_len)
    other = stack(torch.where(real[..., None], x, x.flip(-1)), layers, last_norm, mask)
    moved = (other - out)[real].abs().max() if out.shape == x.shape else 0.0
    return {"output": out, "output with silent sublayers": silent, "moved": moved,
            **reached(answer, output, (x, layers, last_norm, mask), {0: "x"})}

# ---------------------------------------------------------------- 7.5 repair: a stack that does not grow

def _make_block(d_model: int):
    """A function that makes a new block, d_model wide, with new random weights each time."""
    def make_block():
        return nn.Sequential(nn.Linear(d_model, d_model + 1), nn.Tanh(), nn.Linear(d_model + 1, d_model))
    return make_block


def depth_probes(generator: torch.Generator) -> list[tuple]:
    """(num_layers, make_block, x): three blocks of width 4, five of width 3, and one block on one word."""
    return [(3, _make_block(4), torch.randn(2, 5, 4, generator=generator)),
            (5, _make_block(3), torch.randn(3, 2, 3, generator=generator)),
            (1, _make_block(2), torch.randn(1, 1, 2, generator=generator))]


def observe_depth(answer, num_layers, make_block, x):
    """Parameters in all, numbers saved, the output with weights filled in, how much a second pass differs, and how many
    parameters a gradient reaches."""
    if isinstance(answer, nn.Module):
        raise TypeError("expected the class itself, BlockStack, and not a stack that was made with it")
    model = answer(num_layers, make_block)
    if not isinstance(model, nn.Module):
        return no_module(model)
    weights = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=weights))
        output = model(x)
        if not isinstance(output, torch.Tensor):
            raise TypeError(f"expected a tensor from forward, got {type(output).__name__}. Its last line must be `return x`")
        again = (model(x) - output).abs().max()
    model.zero_grad()
    to_train = model(x)
    if to_train.requires_grad:
        to_train.square().sum().backward()
    return {"parameters": sum(p.numel() for p in model.parameters()),
            "saved": sum(t.numel() for t in model.state_dict().values()), "output": output,
            "second pass": again, "trained": sum(p.numel() for p in model.parameters() if p.grad is not None),
            **reached(model, output, (x,), {0: "x"})}
