"""Other right answers to the exercises of notebook 06, which a check must accept."""

import math

import torch
from torch import nn


class _ByIndex(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.rows = nn.Embedding.from_pretrained(table, freeze=True)
        self.register_buffer("places", torch.arange(len(table)))

    def forward(self, x, offset=0):
        return x + self.rows(self.places[offset:][: x.size(1)]).unsqueeze(0)


def _complex(x, offset):
    angle = torch.arange(offset, offset + x.shape[-2])[:, None] * 10000 ** -(torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def _confused_by_softmax(bias, orders):
    weights = bias.softmax(dim=-1)
    return torch.stack([torch.allclose(weights[:, o][..., o], weights, atol=1e-6) * torch.tensor(1.0) for o in orders])


VARIANTS = {
    "6.1": {"phase": lambda first, count, d: torch.sin(
                torch.arange(first, first + count)[:, None] / 10000 ** (torch.arange(d) // 2 * 2 / d)
                + torch.arange(d) % 2 * math.pi / 2)},
    "6.2": {"matrix": lambda: torch.tensor([[0.6, 0.8], [-0.8, 0.6]]) @ torch.tensor([0.28, 0.96]),
            "rounded": lambda: (0.94, 0.35)},
    "6.3": {"embedding": _ByIndex},
    "6.4": {"complex": _complex},
    "6.5": {"softmax": _confused_by_softmax},
}
