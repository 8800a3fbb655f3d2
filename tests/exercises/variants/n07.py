"""Other right answers to the exercises of notebook 07, which a check must accept."""


import numpy as np
import torch
from torch import nn

from course_exercises.n07.answers import _block_stack, _chain


def _norm_numpy(x, weight, bias, eps):
    x, weight, bias = (t.double().numpy() for t in (x, weight, bias))
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def _recursive_stack(x, layers, last_norm, mask):
    if not layers:
        return last_norm(x)
    attention, feed_forward, norm_1, norm_2 = layers[0]
    attended = attention(norm_1(x), mask=mask) + x
    return _recursive_stack(feed_forward(norm_2(attended)) + attended, layers[1:], last_norm, mask)


VARIANTS = {
    "7.1": {"as floats": lambda: (1.0, 0.0, 0.0), "a tensor": lambda: torch.tensor([1, 0, 0])},
    "7.2": {"numpy": _norm_numpy},
    "7.3": {"text": lambda: "E B D C F A", "list": lambda: ["E", "B", "D", "C", "F", "A"]},
    "7.4": {"recursive": _recursive_stack},
    "7.5": {"sequential": lambda n, make_block: nn.Sequential(*(make_block() for _ in range(n))),
            "a dict": _block_stack(lambda n, make: nn.ModuleDict({str(i): make() for i in range(n)}),
                lambda blocks, x: _chain(blocks.values(), x))},
}
