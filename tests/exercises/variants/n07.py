"""Other right answers to the exercises of notebook 07, which a check must accept."""

import copy

import numpy as np
import torch
from torch import nn

from course_exercises.n07.answers import _block_stack, _chain, _norm, _pre, _stack, pre_norm_stack


def _norm_loops(x, weight, bias, eps):
    rows = []
    for word in x.reshape(-1, x.shape[-1]):
        mean = sum(word) / len(word)
        variance = sum((value - mean) ** 2 for value in word) / len(word)
        rows.append((word - mean) / (variance + eps) ** 0.5 * weight + bias)
    return torch.stack(rows).view(x.shape)


def _norm_in_lists(x, weight, bias, eps):
    """Plain Python, one dimension after another; a nested list comes out."""
    if x.dim() > 1:
        return [_norm_in_lists(part, weight, bias, eps) for part in x]
    mean = sum(x.tolist()) / len(x)
    root = (sum((value - mean) ** 2 for value in x.tolist()) / len(x) + eps) ** 0.5
    return [(value - mean) / root * w + b for value, w, b in zip(x.tolist(), weight.tolist(), bias.tolist())]


def _norm_vmap(x, weight, bias, eps):
    def word(values):
        return (values - values.mean()) / (values.var(correction=0) + eps).sqrt() * weight + bias
    return torch.func.vmap(word)(x.flatten(0, -2)).unflatten(0, x.shape[:-1])


def _norm_numpy(x, weight, bias, eps):
    x, weight, bias = (t.double().numpy() for t in (x, weight, bias))
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def _recursive_stack(x, layers, last_norm, mask):
    if not layers:
        return last_norm(x)
    attention, feed_forward, norm_1, norm_2 = layers[0]
    attended = attention(norm_1(x), mask=mask) + x
    return _recursive_stack(feed_forward(norm_2(attended)) + attended, layers[1:], last_norm, mask)


def _by_index(x, layers, last_norm, mask):
    residual = x
    for i in range(len(layers)):
        residual = torch.add(residual, layers[i][0](layers[i][2](residual), mask))
        residual = torch.add(residual, layers[i][1](layers[i][3](residual)))
    return last_norm(residual)


def _text_by_text(x, layers, last_norm, mask):
    """One text at a time; an array comes out."""
    texts = [pre_norm_stack(x[i:i + 1], layers, last_norm, mask[i:i + 1]) for i in range(len(x))]
    return np.concatenate([text.numpy() for text in texts])


class _StackModule(nn.Module):
    def forward(self, x, layers, last_norm, mask):
        changes = []
        for attention, feed_forward, norm_1, norm_2 in layers:
            changes.append(attention(norm_1(x + sum(changes)), mask))
            changes.append(feed_forward(norm_2(x + sum(changes))))
        return last_norm(x + sum(changes))


class _Added(nn.Module):
    def __init__(self, num_layers, make_block):
        super().__init__()
        self.num_layers = num_layers
        for i in range(num_layers):
            self.add_module(f"block{i}", make_block())

    def forward(self, x):
        for i in range(self.num_layers):
            x = getattr(self, f"block{i}")(x)
        return x


class _Listed(nn.Module):
    """A plain list, with the parameters handed to PyTorch apart."""

    def __init__(self, num_layers, make_block):
        super().__init__()
        self.blocks = [make_block() for _ in range(num_layers)]
        self.weights = nn.ParameterList([p for block in self.blocks for p in block.parameters()])

    def forward(self, x):
        return _chain(self.blocks, x)


class _Nested(nn.Module):
    """The first block, and a stack of the others inside."""

    def __init__(self, num_layers, make_block):
        super().__init__()
        self.first = make_block()
        self.rest = _Nested(num_layers - 1, make_block) if num_layers > 1 else nn.Identity()

    def forward(self, x):
        return self.rest(self.first(x))


def _copies(n, make_block):
    block = make_block()
    return nn.ModuleList(copy.deepcopy(block) for _ in range(n))


VARIANTS = {
    "7.1": {"as floats": lambda: (1.0, 0.0, 0.0), "an array": lambda: np.array([1, 0, 0]),
            "a tensor": lambda: torch.tensor([1, 0, 0])},
    "7.2": {
      "loops": _norm_loops, "numpy": _norm_numpy, "var": _norm(),
      "two means": lambda x, w, b, eps: w * (x - x.mean(-1, True)) * torch.rsqrt(
          x.double().square().mean(-1, True) - x.double().mean(-1, True) ** 2 + eps) + b,
      "in lists": _norm_in_lists, "vmap": _norm_vmap,
  },
    "7.3": {"text": lambda: "E B D C F A", "small": lambda: "ebdcfa", "commas": lambda: "E, B, D, C, F, A",
            "list": lambda: ["E", "B", "D", "C", "F", "A"]},
    "7.4": {"recursive": _recursive_stack, "by index": _by_index, "module": _StackModule(),
            "text by text": _text_by_text, "blocks": _stack(_pre)},
    "7.5": {
      "sequential": lambda n, make_block: nn.Sequential(*(make_block() for _ in range(n))),
      "sequential inside": _block_stack(lambda n, make: nn.Sequential(*[make() for _ in range(n)]),
                                        lambda blocks, x: blocks(x)),
      "copies": _block_stack(_copies), "added": _Added, "parameter list": _Listed,
      "nested": _Nested,
      "a dict": _block_stack(lambda n, make: nn.ModuleDict({str(i): make() for i in range(n)}),
                             lambda blocks, x: _chain(blocks.values(), x)),
  },
}
