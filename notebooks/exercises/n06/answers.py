"""The course's answers to the exercises of notebook 06, and what each known mistake would write."""

import math

import torch
from torch import nn

from course_utils.exercises.definitions import Answers

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


ROWS = Answers(
    sinusoidal_rows,
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

def five_positions_on():
    sine = 0.6 * 0.28 + 0.8 * 0.96                                         # cos θ sin a + sin θ cos a
    cosine = -0.8 * 0.28 + 0.6 * 0.96                                      # -sin θ sin a + cos θ cos a
    return [sine, cosine]


STEP = Answers(
    five_positions_on,
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


def _ends_at_length(table, offset, length):
    return table[offset:length]


TABLE = Answers(
    TablePositions,
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


def _added(x, offset):
    return x + sinusoidal_rows(offset, *x.shape[-2:])


ROTARY = Answers(
    turn_pairs,
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

# ---------------------------------------------------------------- 6.5

def confused(bias, orders):
    reordered = torch.stack([bias[:, order][:, :, order] for order in orders])   # (count, heads, seq_len, seq_len)
    return (reordered == bias).flatten(1).all(dim=1)                       # the same in every head: P B Pᵀ = B


def _finds(same):
    """The answer where `same(bias, order)` says whether one order is confused."""
    return lambda bias, orders: torch.tensor([bool(same(bias, order)) for order in orders])


def _both(bias, order):
    return bias[:, order][:, :, order]


def _is_unchanged(order):
    return torch.equal(order, order.sort().values)


CONFUSED = Answers(
    confused,
    mutants={
        "rows-only": _finds(lambda bias, order: torch.equal(bias[:, order], bias)),
        "columns-only": _finds(lambda bias, order: torch.equal(bias[:, :, order], bias)),
        "first-head": _finds(lambda bias, order: torch.equal(_both(bias, order)[0], bias[0])),
        "any-head": _finds(lambda bias, order: (_both(bias, order) == bias).flatten(1).all(dim=1).any()),
        "heads-added": _finds(lambda bias, order: torch.equal(_both(bias, order).sum(dim=0), bias.sum(dim=0))),
        "not-a-number": _finds(lambda bias, order: (_both(bias, order) - bias).abs().max() < 1e-6),
        "reversal-assumed": _finds(lambda bias, order: _is_unchanged(order) or _is_unchanged(order.flip(0))),
        "all-confused": _finds(lambda bias, order: True),
        "unchanged-missing": _finds(lambda bias, order: torch.equal(_both(bias, order), bias) and not _is_unchanged(order)),
        "negated": _finds(lambda bias, order: not torch.equal(_both(bias, order), bias)),
    },
)

ANSWERS = (ROWS, STEP, TABLE, ROTARY, CONFUSED)
