"""Other right answers to the exercises of notebook 06, which a check must accept."""

import math

import numpy as np
import torch
from torch import nn

from course_utils.positional_encoding import sinusoidal_table

from course_exercises.n06.answers import _positions, _rotary, sinusoidal_rows


def _rows_by_loop(first, count, d_model):
    table = [[0.0] * d_model for _ in range(count)]
    for row in range(count):
        for column in range(d_model):
            angle = (first + row) / 10000 ** (2 * (column // 2) / d_model)
            table[row][column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


def _rows_by_slices(first, count, d_model):
    table = torch.zeros(count, d_model)
    place = torch.arange(first, first + count).unsqueeze(1)
    divisor = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table[:, 0::2], table[:, 1::2] = torch.sin(place * divisor), torch.cos(place * divisor)
    return table


def _rows_by_numpy(first, count, d_model):
    column = np.arange(d_model)
    angle = np.arange(first, first + count)[:, None] / np.power(10000, 2 * (column // 2) / d_model)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


def _rows_turned_on(first, count, d_model):
    speed = 10000.0 ** -(torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    step = torch.polar(torch.ones_like(speed), speed)                      # one place, as a complex number for each hand
    hands, rows = torch.ones_like(step), []
    for place in range(first + count):
        if place >= first:
            rows.append(torch.stack([hands.imag, hands.real], dim=-1).flatten())
        hands = hands * step
    return torch.stack(rows)


class _ByIndex(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.rows = nn.Embedding.from_pretrained(table, freeze=True)
        self.register_buffer("places", torch.arange(len(table)))

    def forward(self, x, offset=0):
        return x + self.rows(self.places[offset:][: x.size(1)]).unsqueeze(0)


class _Upright(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("columns", table.T.double())                  # (d_model, max_len), in float64

    def forward(self, x, offset=0):
        return x + self.columns.narrow(1, offset, x.shape[1]).T.to(x.dtype)


class _RowByRow(nn.Module):
    """A buffer for each row."""

    def __init__(self, table):
        super().__init__()
        for place, row in enumerate(table):
            self.register_buffer(f"row_{place}", row)

    def forward(self, x, offset=0):
        return x + torch.stack([getattr(self, f"row_{offset + word}") for word in range(x.shape[1])])


class _InList(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.tables = nn.ParameterList([table]).requires_grad_(False)

    def forward(self, x, offset=0):
        return torch.stack([word + row for word, row in zip(x.unbind(1), self.tables[0][offset:])], dim=1)


class _RolledTable(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("positions", table.unsqueeze(0))

    def forward(self, x, offset=0):
        return x + self.positions.roll(-offset, dims=1)[:, : x.shape[1]]


def _complex(x, offset):
    angle = torch.arange(offset, offset + x.shape[-2])[:, None] * 10000 ** -(torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def _matrices(x, offset):
    length, d_head = x.shape[-2:]
    out = x.clone().double()
    for row in range(length):
        for i in range(d_head // 2):
            angle = (offset + row) / 10000 ** (2 * i / d_head)
            c, s = math.cos(angle), math.sin(angle)
            turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
            out[..., row, 2 * i : 2 * i + 2] = x[..., row, 2 * i : 2 * i + 2].double() @ turn.T
    return out


def _written_into(x, offset):
    out = np.empty(x.shape)
    table = sinusoidal_table(offset + x.shape[-2], x.shape[-1])[offset:].numpy()
    sin, cos, old = table[:, 0::2], table[:, 1::2], x.numpy()
    out[..., ::2] = old[..., ::2] * cos - old[..., 1::2] * sin
    out[..., 1::2] = old[..., ::2] * sin + old[..., 1::2] * cos
    return out


def _repeated(x, offset):
    angle = torch.arange(offset, offset + x.shape[-2])[:, None] / 10000 ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = angle.repeat_interleave(2, dim=-1)
    quarter = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)               # each pair turned by 90 degrees
    return x * angle.cos() + quarter * angle.sin()


def _by_length_and_angle(x, offset):
    place = torch.arange(offset, offset + x.shape[-2])[:, None]
    angle = torch.atan2(x[..., 1::2], x[..., ::2]) + place / 10000 ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    length = torch.hypot(x[..., ::2], x[..., 1::2])
    return torch.stack([length * angle.cos(), length * angle.sin()], -1).flatten(-2)


def _sorted_into_halves(x, offset):
    order = torch.cat([torch.arange(0, x.shape[-1], 2), torch.arange(1, x.shape[-1], 2)])
    halves = _rotary(read_halves=True, write_halves=True)(x[..., order], offset)
    return halves[..., order.argsort()].tolist()


def _confused_by_loops(bias, orders):
    heads, words = range(len(bias)), range(bias.shape[1])
    return [all(bias[h, order[p], order[q]] == bias[h, p, q] for h in heads for p in words for q in words)
            for order in orders.tolist()]


def _confused_by_matrices(bias, orders):
    kept = bias.double().exp()                                             # no infinity left
    shuffles = torch.eye(bias.shape[1], dtype=torch.float64)[orders]       # (count, seq_len, seq_len)
    reordered = shuffles[:, None] @ kept @ shuffles.mT[:, None]
    return torch.isclose(reordered, kept).all(dim=(1, 2, 3)).int()


def _confused_by_numpy(bias, orders):
    bias, orders = bias.numpy(), orders.numpy()
    return np.array([np.array_equal(bias[:, order[:, None], order], bias) for order in orders])


def _confused_by_softmax(bias, orders):
    weights = bias.softmax(dim=-1)
    return torch.stack([torch.allclose(weights[:, o][..., o], weights, atol=1e-6) * torch.tensor(1.0) for o in orders])


VARIANTS = {
    "6.1": {
      "loop": _rows_by_loop, "slices": _rows_by_slices, "numpy": _rows_by_numpy,
      "rows of tensors": lambda first, count, d: list(sinusoidal_rows(first, count, d)),
      "turned on": _rows_turned_on,
      "phase": lambda first, count, d: torch.sin(
          torch.arange(first, first + count)[:, None] / 10000 ** (torch.arange(d) // 2 * 2 / d)
          + torch.arange(d) % 2 * math.pi / 2),
  },
    "6.2": {
      "angles": lambda: [math.sin(math.atan2(0.28, 0.96) + math.atan2(0.8, 0.6)),
                         math.cos(math.atan2(0.28, 0.96) + math.atan2(0.8, 0.6))],
      "matrix": lambda: torch.tensor([[0.6, 0.8], [-0.8, 0.6]]) @ torch.tensor([0.28, 0.96]),
      "rounded": lambda: (0.94, 0.35),
  },
    "6.3": {"frozen parameter": _positions(kind="frozen"), "embedding": _ByIndex, "rolled": _RolledTable,
            "upright": _Upright, "in a list": _InList, "row by row": _RowByRow,
            "list of places": _positions(rows=lambda t, o, n: torch.stack([t[p] for p in range(o, o + n)]))},
    "6.4": {"length and angle": _by_length_and_angle, "sorted into halves": _sorted_into_halves,
            "complex": _complex, "matrices": _matrices, "written into": _written_into, "repeated": _repeated},
    "6.5": {"loops": _confused_by_loops, "matrices": _confused_by_matrices, "numpy": _confused_by_numpy,
            "softmax": _confused_by_softmax},
}
