"""Solutions of the exercises of notebook 06, accepted variants, and the answers that known mistakes give."""

import math

import numpy as np
import torch
from torch import nn

from course_utils.exercises.definitions import Answers
from course_utils.positional_encoding import sinusoidal_table

# ---------------------------------------------------------------- 6.1


def sinusoidal_rows(first, count, d_model):
    p = torch.arange(first, first + count)[:, None]                        # (count, 1)
    exponent = torch.arange(0, d_model, 2) / d_model                       # (hand,): 2i / d_model
    angle = p / 10000**exponent                                            # (count, hand)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)     # sine and cosine side by side


def _rows(exponent=lambda i, d: 2 * i / d, cosine=None, start=lambda first: first, base=10000.0, functions=("sin", "cos"),
          multiply=False, unit=1.0, halves=False):
    """The table with one or more things changed."""
    def rows(first, count, d_model):
        p = torch.arange(start(first), start(first) + count, dtype=torch.float64)[:, None]
        i = torch.arange(d_model // 2, dtype=torch.float64)
        columns = []
        for rule, name in zip((exponent, cosine or exponent), functions):
            power = base ** rule(i, d_model)
            angle = (p * power if multiply else p / power) * unit
            columns.append(getattr(angle, name)())
        return torch.cat(columns, dim=-1) if halves else torch.stack(columns, dim=-1).flatten(-2)
    return rows


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


ROWS = Answers(
    sinusoidal_rows,
    variants={
        "loop": _rows_by_loop, "slices": _rows_by_slices, "numpy": _rows_by_numpy,
        "rows of tensors": lambda first, count, d: list(sinusoidal_rows(first, count, d)),
        "turned on": _rows_turned_on,
        "phase": lambda first, count, d: torch.sin(
            torch.arange(first, first + count)[:, None] / 10000 ** (torch.arange(d) // 2 * 2 / d)
            + torch.arange(d) % 2 * math.pi / 2),
    },
    mutants={
        "exponent-doubled": _rows(exponent=lambda i, d: 4 * i / d),
        "exponent-halved": _rows(exponent=lambda i, d: i / d),
        "own-exponent": _rows(cosine=lambda i, d: (2 * i + 1) / d),
        "next-exponent": _rows(cosine=lambda i, d: 2 * (i + 1) / d),
        "all-alike": _rows(exponent=lambda i, d: 0 * i),
        "swapped": _rows(functions=("cos", "sin")),
        "halves": _rows(halves=True),
        "from-one": _rows(start=lambda first: first + 1),
        "first-ignored": _rows(start=lambda first: 0),
        "other-base": _rows(base=1000.0),
        "only-sines": _rows(functions=("sin", "sin"), cosine=lambda i, d: (2 * i + 1) / d),
        "multiplied": _rows(multiply=True),
        "degrees": _rows(unit=math.pi / 180),
    },
)

# ---------------------------------------------------------------- 6.2


def five_places_on():
    sine = 0.6 * 0.28 + 0.8 * 0.96                                         # cos θ sin a + sin θ cos a
    cosine = -0.8 * 0.28 + 0.6 * 0.96                                      # -sin θ sin a + cos θ cos a
    return [sine, cosine]


STEP = Answers(
    five_places_on,
    variants={
        "angles": lambda: [math.sin(math.atan2(0.28, 0.96) + math.atan2(0.8, 0.6)),
                           math.cos(math.atan2(0.28, 0.96) + math.atan2(0.8, 0.6))],
        "matrix": lambda: torch.tensor([[0.6, 0.8], [-0.8, 0.6]]) @ torch.tensor([0.28, 0.96]),
        "rounded": lambda: (0.94, 0.35),
    },
    mutants={
        "backwards": lambda: [-0.6, 0.8],
        "no-minus": lambda: [0.936, 0.8],
        "minus-on-cosine": lambda: [0.936, -0.352],
        "swapped": lambda: [0.352, 0.936],
        "added": lambda: [1.08, 1.56],
        "diagonal": lambda: [0.168, 0.576],
        "not-moved": lambda: [0.28, 0.96],
        "angle-alone": lambda: [0.8, 0.6],
    },
)

# ---------------------------------------------------------------- 6.3


class TablePositions(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)                               # saved and moved, not trained

    def forward(self, x, offset=0):
        return x + self.table[offset : offset + x.shape[-2]]               # as many rows as words


def _positions(kind="buffer", rows=lambda table, offset, length: table[offset : offset + length], plus=0):
    """The module with another kind of table or another choice of rows."""
    class Positions(nn.Module):
        def __init__(self, table):
            super().__init__()
            if kind == "buffer":
                self.register_buffer("table", table)
            elif kind == "not persistent":
                self.register_buffer("table", table, persistent=False)
            elif kind == "attribute":
                self.table = table
            else:
                self.table = nn.Parameter(table, requires_grad=kind == "parameter")

        def forward(self, x, offset=0):
            return x + rows(self.table, offset, x.shape[-2]) + plus * offset

    return Positions


class _ByIndex(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.rows = nn.Embedding.from_pretrained(table, freeze=True)
        self.register_buffer("places", torch.arange(len(table)))

    def forward(self, x, offset=0):
        return x + self.rows(self.places[offset:][: x.size(1)]).unsqueeze(0)


def _made_by_function(table):
    return TablePositions(table[None])


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


def _ends_at_length(table, offset, length):
    return table[offset:length]


TABLE = Answers(
    TablePositions,
    variants={"frozen parameter": _positions(kind="frozen"), "embedding": _ByIndex, "rolled": _RolledTable,
              "upright": _Upright, "in a list": _InList, "row by row": _RowByRow,
              "list of places": _positions(rows=lambda t, o, n: torch.stack([t[p] for p in range(o, o + n)]))},
    mutants={
        "as-given": _positions(kind="attribute", rows=_ends_at_length),
        "plain-attribute": _positions(kind="attribute"),
        "slice-end": _positions(rows=_ends_at_length),
        "offset-ignored": _positions(rows=lambda t, o, n: t[:n]),
        "one-too-far": _positions(rows=lambda t, o, n: t[o + 1 : o + 1 + n]),
        "offset-added": _positions(rows=lambda t, o, n: t[:n], plus=1),
        "parameter": _positions(kind="parameter"),
        "not-persistent": _positions(kind="not persistent"),
    },
)

# ---------------------------------------------------------------- 6.4


def turn_pairs(x, offset):
    length, d_head = x.shape[-2:]
    p = torch.arange(offset, offset + length)[:, None]                     # (length, 1)
    angle = p / 10000 ** (torch.arange(0, d_head, 2) / d_head)             # (length, d_head / 2)
    cos, sin = angle.cos(), angle.sin()
    even, odd = x[..., 0::2], x[..., 1::2]                                 # the two columns of each pair
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def _rotary(exponent=lambda i, d: 2 * i / d, start=lambda offset: offset, sign=1.0, read_halves=False, write_halves=False,
            sequence=False, minus=-1.0, heads=False):
    """Rotary with one or more things changed."""
    def turn(x, offset):
        length, d_head = x.shape[-3 if heads else -2], x.shape[-1]
        p = torch.arange(start(offset), start(offset) + length, dtype=torch.float32)[:, None]
        angle = sign * p / 10000 ** exponent(torch.arange(d_head // 2), d_head)
        cos, sin = angle.cos(), angle.sin()
        if heads:
            cos, sin = cos[:, None], sin[:, None]
        even, odd = x.chunk(2, dim=-1) if read_halves else (x[..., 0::2], x[..., 1::2])
        new_even = even * cos + minus * odd * sin
        new_odd = (new_even if sequence else even) * sin + odd * cos
        if write_halves:
            return torch.cat([new_even, new_odd], dim=-1)
        return torch.stack([new_even, new_odd], dim=-1).flatten(-2)
    return turn


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


def _added(x, offset):
    return x + sinusoidal_rows(offset, *x.shape[-2:])


def _by_length_and_angle(x, offset):
    place = torch.arange(offset, offset + x.shape[-2])[:, None]
    angle = torch.atan2(x[..., 1::2], x[..., ::2]) + place / 10000 ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    length = torch.hypot(x[..., ::2], x[..., 1::2])
    return torch.stack([length * angle.cos(), length * angle.sin()], -1).flatten(-2)


def _sorted_into_halves(x, offset):
    order = torch.cat([torch.arange(0, x.shape[-1], 2), torch.arange(1, x.shape[-1], 2)])
    halves = _rotary(read_halves=True, write_halves=True)(x[..., order], offset)
    return halves[..., order.argsort()].tolist()


ROTARY = Answers(
    turn_pairs,
    variants={"length and angle": _by_length_and_angle, "sorted into halves": _sorted_into_halves,
              "complex": _complex, "matrices": _matrices, "written into": _written_into, "repeated": _repeated},
    mutants={
        "halves": _rotary(read_halves=True, write_halves=True),
        "backwards": _rotary(sign=-1.0),
        "old-value-lost": _rotary(sequence=True),
        "no-minus": _rotary(minus=1.0),
        "one-speed": _rotary(exponent=lambda i, d: 0 * i),
        "exponent-doubled": _rotary(exponent=lambda i, d: 4 * i / d),
        "exponent-halved": _rotary(exponent=lambda i, d: i / d),
        "from-one": _rotary(start=lambda offset: offset + 1),
        "offset-ignored": _rotary(start=lambda offset: 0),
        "heads-for-words": _rotary(heads=True),
        "written-in-halves": _rotary(write_halves=True),
        "added": _added,
    },
)

ANSWERS = {"6.1": ROWS, "6.2": STEP, "6.3": TABLE, "6.4": ROTARY}
