"""Exercises and quiz of notebook 06, positional encoding."""

import math

import torch
from torch import nn

from course_utils.attention import padding_mask
from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask
from course_utils.multi_head_attention import MultiHeadAttention

from course_exercises.common import gap, listed, no_module, one_tensor, reached, reaches


def _wrapped(angle: torch.Tensor) -> torch.Tensor:
    """Angles brought to between -π and π."""
    return torch.atan2(angle.sin(), angle.cos())


def _number(low: int, high: int, generator: torch.Generator) -> int:
    return int(torch.randint(low, high, (), generator=generator))

# ---------------------------------------------------------------- 6.1 the table from any position on

def sinusoidal_rows(offset, count, d_model):
    p = torch.arange(offset, offset + count)[:, None]                        # (count, 1)
    exponent = torch.arange(0, d_model, 2) / d_model                       # (hand,): 2i / d_model
    angle = p / 10000**exponent                                            # (count, hand)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)


def _rows(exponent=lambda i, d: 2 * i / d, cosine=None, start=lambda offset: offset, base=10000.0, functions=("sin", "cos"),
          multiply=False, unit=1.0, halves=False):
    """The table with one or more things changed."""
    def rows(offset, count, d_model):
        p = torch.arange(start(offset), start(offset) + count, dtype=torch.float64)[:, None]
        i = torch.arange(d_model // 2, dtype=torch.float64)
        columns = []
        for rule, name in zip((exponent, cosine or exponent), functions):
            power = base ** rule(i, d_model)
            angle = (p * power if multiply else p / power) * unit
            columns.append(getattr(angle, name)())
        return torch.cat(columns, dim=-1) if halves else torch.stack(columns, dim=-1).flatten(-2)
    return rows


def row_probes(generator: torch.Generator) -> list[tuple]:
    """(offset, count, d_model): from position 0, twice from a later position; one row, one hand, both; far along."""
    return [(0, 4, 6), (_number(5, 15, generator), 3, 8), (_number(20, 40, generator), 5, 10),
            (_number(5, 15, generator), 1, 4), (_number(5, 15, generator), 3, 2), (0, 1, 2),
            (_number(600, 900, generator), 2, 6)]


def observe_rows(function, offset, count, d_model):
    """The rows; none at all where the learner's range ends before it begins, which arange takes for an error."""
    try:
        rows = function(offset, count, d_model)
    except RuntimeError as error:
        if "bound" not in str(error):
            raise
        rows = []
    return torch.zeros(0, d_model) if isinstance(rows, list) and not rows else rows


def _ends_at_count(offset, count, d_model):
    return sinusoidal_rows(offset, max(count - offset, 0), d_model)


def _entry(case: Case, row: int = 1, column: int = 2) -> str:
    """One entry, by the position it stands for."""
    got, right = case.answer[row, column], case.expected[row, column]
    return f"position {case.inputs[0] + row}, column {column}, is {got:.4f}, expected {right:.4f}."


def _squares(case: Case) -> torch.Tensor:
    """sin² + cos² of each pair of neighbouring columns: (row, hand)."""
    return case.answer.unflatten(-1, (-1, 2)).square().sum(dim=-1)


def _pair_off(case: Case) -> str:
    row, hand = (_squares(case) - 1).abs().gt(1e-3).nonzero()[0].tolist()
    return (f"position {case.inputs[0] + row}: the squares of columns {2 * hand} and {2 * hand + 1} add up to "
            f"{_squares(case)[row, hand]:.3f}.")


def _hands(named: torch.Tensor) -> torch.Tensor:
    """The angle of each hand, read off its sine and cosine: (row, hand)."""
    return torch.atan2(named[:, 0::2], named[:, 1::2])


def _start(case: Case) -> tuple[float, float]:
    got, right = (round(_hands(named[""])[0, 0].item(), 4) + 0.0 for named in (case.got, case.right))    # no -0.000
    return got, right


def _speeds(named: torch.Tensor) -> torch.Tensor:
    """By how much each hand turns from the first row to the second: (hand,)."""
    return _wrapped(_hands(named)[1] - _hands(named)[0])


def _slow_hand(case: Case) -> str:
    got, right = _speeds(case.answer), _speeds(case.expected)
    hand = int((got - right).abs().gt(1e-4).nonzero()[0])
    return f"hand {hand} turns by {got[hand]:.4f} from row to row, expected {right[hand]:.4f} (less full turns)."


def _as_fast(case: Case) -> bool:
    """Whether hand 0 turns as fast as it must, forwards or backwards."""
    return abs(abs(_speeds(case.answer)[0].item()) - abs(_speeds(case.expected)[0].item())) < 1e-3


def _angles_apart(case: Case) -> torch.Tensor:
    return _wrapped(_hands(case.answer) - _hands(case.expected)).abs()


def _first_hand_off(case: Case) -> str:
    row, hand = (_angles_apart(case) > 1e-3).nonzero()[0].tolist()
    got, right = (round(_hands(named[""])[row, hand].item(), 3) + 0.0 for named in (case.got, case.right))
    return f"in the row of position {case.inputs[0] + row} hand {hand} stands at {got:.3f}, expected {right:.3f}."


ROWS = ask(
    "6.1", sinusoidal_rows,
    probes=row_probes,
    observe=observe_rows,
    forbidden=("course_utils.positional_encoding.sinusoidal_table", "course_utils.positional_encoding.SinusoidalPositions"),
    signature="sinusoidal_rows(offset, count, d_model) -> (count, d_model)",
    mistakes={
        "exponent-doubled": M(
            _rows(exponent=lambda i, d: 4 * i / d),
            _entry,
            "The exponent is doubled. If your i counts columns (0, 2, 4, …), it already is the 2i of the formula: "
            "divide i by d_model, not 2 * i. Neither shape nor error gives that away; working out a row by hand does."),
        "exponent-halved": M(
            _rows(exponent=lambda i, d: i / d),
            _entry,
            "Your exponent is half of what it should be (or your base is 100, which is the same). If i counts hands (0, "
            "1, 2, …), the formula wants 2 * i / d_model."),
        "own-exponent": M(
            _rows(cosine=lambda i, d: (2 * i + 1) / d),
            _pair_off,
            "For one angle it would be 1: your cosine takes the exponent of its own column, 2i + 1. Both columns of a "
            "pair have the same angle, with exponent 2i."),
        "next-exponent": M(
            _rows(cosine=lambda i, d: 2 * (i + 1) / d),
            _pair_off,
            "For one angle it would be 1: your cosine takes the angle of the next hand. Both columns of a pair have the "
            "same angle."),
        "all-alike": M(
            _rows(exponent=lambda i, d: 0 * i),
            lambda case: f"column 2 equals column 0, such as {case.answer[1, 2]:.4f} in the second row.",
            "All hands turn at the same speed, as if every exponent were 0. If you used //, that is why: 2 * i // "
            "d_model is 0 for every i that occurs. Use /."),
        "swapped": M(
            _rows(functions=("cos", "sin")),
            lambda case: _entry(case, 0, 0),
            "Cosine and sine are swapped: even columns contain the sine. A model would learn with either, but weights "
            "trained with one don't work with the other."),
        "halves": M(
            _rows(halves=True),
            lambda case: _entry(case, 1, 1),
            "All sines come first, then all cosines. That is a valid encoding in another convention, 'halves' (section "
            "2), not an error. This course interleaves: here sine and cosine of a hand are side by side.", convention=True),
        "from-one": M(
            _rows(start=lambda offset: offset + 1),
            lambda case: _entry(case, 0, 0),
            "That belongs to the next position: positions are counted from zero, and your first row stands for offset + "
            "1."),
        "first-ignored": M(
            _rows(start=lambda offset: 0),
            lambda case: f"with offset = {case.inputs[0]}, {_entry(case, 0, 0)}",
            "Your rows always begin at position 0. The first row must stand for the position `offset`."),
        "ends-at-count": M(
            _ends_at_count,
            lambda case: f"from position {case.inputs[0]} on, you return {len(case.got[''])} rows, expected "
            f"{case.inputs[1]}.",
            "Your positions end at `count`, as in arange(offset, count). The second number of a range is where it stops: "
            "offset + count."),
        "other-base": M(
            _rows(base=1000.0),
            _entry,
            "The pairs are right but the slow hands turn too fast: you divide by powers of 1,000. The formula has "
            "10,000."),
        "only-sines": M(
            _rows(functions=("sin", "sin"), cosine=lambda i, d: (2 * i + 1) / d),
            _pair_off,
            "Every column is a sine. With the cosine next to it, a hand says where it is, not only how high, and a step "
            "is a rotation (section 3)."),
        "multiplied": M(
            _rows(multiply=True),
            _entry,
            "You multiply the position by 10000^(2i / d_model). Divide: hand 0 is the fastest, the others turn more "
            "slowly."),
        "degrees": M(
            _rows(unit=math.pi / 180),
            _slow_hand,
            "The angle was converted from degrees to radians. It is in radians already: hand 0 moves by 1 from position "
            "to position."),
    },
    rules=(
        R(lambda case: case.answer.abs().max() > 1 + 1e-4,
          lambda case: "your largest number is " f"{case.answer.abs().max():.3f}.",
          "Sines and cosines stay between -1 and 1."),
        R(lambda case: (_squares(case) - 1).abs().max() > 1e-3,
          _pair_off,
          "Columns 2i and 2i + 1 are sine and cosine of one angle, so their squares add up to 1."),
        R(lambda case: _as_fast(case) and _wrapped(torch.tensor(_start(case)[0] - _start(case)[1])).abs() > 1e-3,
          lambda case: f"in the row of position {case.inputs[0]} hand 0 stands at {_start(case)[0]:.3f}, expected "
          f"{_start(case)[1]:.3f} (in radians, less full turns).",
          "Hand 0 has the angle p itself: look at where your positions begin, and which column is the sine."),
        R(lambda case: len(case.answer) > 1 and not _as_fast(case),
          _slow_hand,
          "Hand 0 has the angle p itself, so it turns by 1 from position to position. Look at your positions: they are "
          "whole numbers, offset, offset + 1, … (torch.arange; linspace takes different steps)."),
        R(lambda case: case.inputs[2] > 2 and abs(_speeds(case.answer)[-1].abs() - 1e-4) < 2e-5,
          lambda case: f"your slowest hand turns by {_speeds(case.answer)[-1]:.4f} from one position to the next, expected "
          f"{_speeds(case.expected)[-1]:.4f}.",
          "As if its exponent were 1. The exponents are 0, 2 / d_model, 4 / d_model, … and stop before 1; linspace(0, "
          "1, …) and a division by d_model / 2 - 1 reach it."),
        R(lambda case: (_speeds(case.answer) - _speeds(case.expected)).abs().max() > 1e-4,
          _slow_hand,
          "A hand turns by 1 / 10000^(2i / d_model) a position, i counting hands from 0."),
        R(lambda case: _angles_apart(case).max() > 1e-3,
          _first_hand_off,
          "Its angle is p / 10000^(2i / d_model), and p runs over the positions offset, offset + 1, offset + 2, …"),
    ),
    hints=(
        "Work out one row by hand for d_model = 4, as in the table above, and compare.",
        "Two loops are enough: over the positions p, and over the hands i = 0, 1, …, d_model / 2 - 1.",
        "angle = p / 10000 ** (2 * i / d_model) goes into columns 2 * i (sine) and 2 * i + 1 (cosine); p runs from "
        "offset to offset + count - 1.",
    ),
)

# ---------------------------------------------------------------- 6.2 a step by hand

def five_positions_on():
    sine = 0.6 * 0.28 + 0.8 * 0.96                                         # cos θ sin a + sin θ cos a
    cosine = -0.8 * 0.28 + 0.6 * 0.96                                      # -sin θ sin a + cos θ cos a
    return [sine, cosine]


def _turn_in_degrees(case: Case) -> float:
    """The angle from the given pair to the answer, from -180 to 180."""
    sine, cosine = case.answer.tolist()
    return math.degrees(_wrapped(torch.tensor(math.atan2(sine, cosine) - math.atan2(0.28, 0.96))).item())


def _squares_seen(case: Case) -> str:
    return f"the squares of your numbers add up to {case.answer.square().sum():.3f}, not to 1."


STEP = ask(
    "6.2", five_positions_on,
    kind="number",
    tolerance=4e-3,
    signature="a list of two numbers: the sine and the cosine five positions further on",
    mistakes={
        "backwards": M(
            lambda: [-0.6, 0.8],
            lambda case: f"{listed(case.answer)}: that is five positions back.",
            "The minus is in the wrong place: the lower row of the matrix is (-sin θ, cos θ)."),
        "no-minus": M(
            lambda: [0.936, 0.8],
            _squares_seen,
            "The sine is right. In the cosine a minus is missing: cos(a + θ) = cos a cos θ - sin a sin θ."),
        "minus-on-cosine": M(
            lambda: [0.936, -0.352],
            lambda case: f"{listed(case.answer)}: the sine is right, the cosine has the wrong sign.",
            "In its formula the minus belongs to the product of the sines, not to that of the cosines."),
        "swapped": M(
            lambda: [0.352, 0.936],
            lambda case: f"{listed(case.answer)}: these are the right numbers in the wrong order.",
            "The sine comes first, as in the table."),
        "added": M(
            lambda: [1.08, 1.56],
            lambda case: f"{listed(case.answer)}: a sine above 1 does not exist.",
            "You can't add the sines of two angles; the addition formulas of section 3 turn the pair."),
        "diagonal": M(
            lambda: [0.168, 0.576],
            _squares_seen,
            "Each number was only multiplied by cos θ. The matrix also mixes the two: its other diagonal holds sin θ."),
        "not-moved": M(
            lambda: [0.28, 0.96],
            lambda case: f"{listed(case.answer)}: that is where the hand was before.",
            "Multiply the matrix of section 3 by this pair."),
        "angle-alone": M(
            lambda: [0.8, 0.6],
            lambda case: f"{listed(case.answer)}: that is the angle θ itself, as if the hand had started at 0.",
            "Turn the given pair by it."),
    },
    rules=(
        R(lambda case: abs(case.answer.square().sum() - 1) > 0.02,
          lambda case: "the squares of your two numbers add " f"up to {case.answer.square().sum():.3f}.",
          "A turned pair keeps sin² + cos² = 1."),
        R(lambda case: abs(_turn_in_degrees(case) - 53.13) > 0.2,
          lambda case: "from (0.28, 0.96) to your pair the " f"hand turns by {_turn_in_degrees(case):.1f}°.",
          "It must turn by θ, once and forwards; cos θ = 0.6 and sin θ = 0.8 belong to 53.1°. Look at the signs, and at "
          "which number is the sine."),
    ),
    hints=(
        "Section 3 has the matrix that turns (sin a, cos a) into the pair k positions on.",
        "The sine: cos θ times 0.28 plus sin θ times 0.96.",
        "The cosine: -sin θ times 0.28 plus cos θ times 0.96.",
    ),
)

# ---------------------------------------------------------------- 6.3 repair: a module with a given table

class TablePositions(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("table", table)                               # saved and moved, not trained

    def forward(self, x, offset=0):
        return x + self.table[offset : offset + x.shape[-2]]


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


def table_probes(generator: torch.Generator) -> list[tuple]:
    """(table, x, offset): four words from position 3 on; one word at position 5; a table that ends with the last word."""
    return [(torch.randn(9, 6, generator=generator), torch.randn(2, 4, 6, generator=generator), 3),
            (torch.randn(7, 4, generator=generator), torch.randn(3, 1, 4, generator=generator), 5),
            (torch.randn(3, 1, generator=generator), torch.randn(1, 2, 1, generator=generator), 1)]


def _holds(tensors, table: torch.Tensor) -> int:
    """Whether some tensors together hold the table's numbers, in one piece or row by row, in whatever order."""
    held = [t.detach().flatten().to(table.dtype) for t in tensors]
    return int(bool(held) and bool(torch.isin(table.flatten(), torch.cat(held)).all()))


SHIFTED = "result with an offset"                                          # as messages call it


def observe_module(answer, table, x, offset):
    """The sums at both offsets; whether the table is saved and moved with the model; how many numbers are trained.

    "loaded" is what a second module, made of another table and moved to float64, adds once it has loaded the first one's
    state: a table that is saved and never used shows here.
    """
    module = answer(table.clone())
    if not isinstance(module, nn.Module):
        return no_module(module)
    try:
        start, shifted = module(x), module(x, offset)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise TypeError("expected a module that takes x alone and also x and offset, forward(self, x, offset=0), and yours "
                        f"doesn't ({error})") from None
    second = answer(torch.zeros_like(table)).to(torch.float64)
    second.load_state_dict(module.state_dict())
    return {
        "start": start, SHIFTED: shifted, "loaded": second(x.double(), offset),
        "saved": _holds(module.state_dict().values(), table),
        "moved": _holds([*module.parameters(), *module.buffers()], table),
        "trained": sum(p.numel() for p in module.parameters() if p.requires_grad),
        "frozen": sum(p.numel() for p in module.parameters() if not p.requires_grad),
        **reached(module, shifted, (x, offset), {0: "x"}),
    }


def _offset_gap(case: Case) -> str:
    got, right = case.got[SHIFTED], case.right[SHIFTED]
    if got.shape != right.shape:
        return f"with offset {case.inputs[2]} the result has the shape {tuple(got.shape)}, expected {tuple(right.shape)}."
    return f"with offset {case.inputs[2]} the result is off by up to {_some(got - right)}."


def _some(gap: torch.Tensor) -> str:
    """The largest of some differences, as a power of ten where three decimals would show nothing."""
    largest = gap.abs().max().item()
    return f"{largest:.3f}" if largest >= 5e-4 else f"{largest:.0e}"


def _saved(case: Case) -> str:
    return f"tables in state_dict(): {case.saved:.0f}."


def _trained(case: Case) -> str:
    return f"numbers of this module that an optimiser would train: {case.trained:.0f}, expected 0."


TABLE = ask(
    "6.3", TablePositions,
    given="as-given",
    probes=table_probes,
    observe=observe_module,
    signature="TablePositions(table (max_len, d_model)) -> a module that maps x (batch, seq_len, d_model) and offset to "
    "(batch, seq_len, d_model)",
    mistakes={
        "as-given": M(
            _positions(kind="attribute", rows=_ends_at_length),
            "both mistakes are still in it.",
            ""),
        "plain-attribute": M(
            _positions(kind="attribute"),
            _saved,
            "The rows are right now, but the table is a plain attribute: it would not be saved, and model.to(device) "
            "would leave it where it is. Section 4 names the kind of tensor that is saved and moved, and not trained."),
        "slice-end": M(
            _positions(rows=_ends_at_length),
            _offset_gap,
            "The table is kept now, but the slice is wrong: it ends at seq_len, so with an offset it is too short. A "
            "single row is then added to every word, without an error."),
        "offset-ignored": M(
            _positions(rows=lambda t, o, n: t[:n]),
            _offset_gap,
            "Your rows always begin at position 0. A later word would be at the beginning of the text again."),
        "one-too-far": M(
            _positions(rows=lambda t, o, n: t[o + 1 : o + 1 + n]),
            _offset_gap,
            "The rows begin at the position after the right one. The first word is at position offset itself."),
        "offset-added": M(
            _positions(rows=lambda t, o, n: t[:n], plus=1),
            _offset_gap,
            "The number offset was added to the vectors. It says at which row of the table to begin."),
        "parameter": M(
            _positions(kind="parameter"),
            _trained,
            "The rows are right, but the table is a parameter: the optimiser would change it. This table is given, not "
            "learned; a buffer is saved and moved as well."),
        "frozen-parameter": M(
            _positions(kind="frozen"),
            "saved, moved and not trained, but the table is a parameter that's been frozen.",
            "It works until somebody thaws all parameters, and it's counted among what the model has learned. For a tensor "
            "that nobody should train there's register_buffer.", convention=True),
        "not-persistent": M(
            _positions(kind="not persistent"),
            lambda case: f"{_saved(case)} It does move with the model.",
            "The buffer was registered with persistent=False, so it is not saved. Leave that out."),
    },
    rules=(
        R(lambda case: (case.start - case.right["start"]).abs().max() > 1e-4,
          lambda case: f"without an offset the result is off by up to {_some(case.start - case.right['start'])}.",
          "The first seq_len rows of the table are added to each text of the batch."),
        R(lambda case: (case.got[SHIFTED] - case.right[SHIFTED]).abs().max() > 1e-4,
          _offset_gap,
          "The rows offset, offset + 1, … are added, as many as there are words."),
        R(lambda case: case.trained > 0,
          _trained,
          "The table is given and must not change."),
        R(lambda case: case.frozen > 0,
          "frozen parameters of this module: {frozen:.0f} numbers, expected 0.",
          "The table should be a buffer."),
        R(lambda case: case.saved == 0,
          _saved,
          "Saved and loaded, the model would be without it (section 4)."),
        R(lambda case: case.moved == 0,
          lambda case: f"tables among the parameters and buffers: {case.moved:.0f}.",
          "The table would not be moved with the model (section 4)."),
        R(lambda case: (case.loaded - case.right["loaded"]).abs().max() > 1e-4,
          lambda case: "a second module, moved to float64, loaded this one's state_dict(); its results are off by up to "
          f"{_some(case.loaded - case.right['loaded'])}.",
          "What is saved is not what forward uses. There should be one table only, and forward should take its rows "
          "from the one that is saved and moved."),
        *reaches("x"),
    ),
    hints=(
        "Print list(module.state_dict()) and module(x, offset=3) - x for your module; look at the rows that were added.",
        "register_buffer takes a name and a tensor; afterwards self.table works as before.",
        "A slice has a beginning and an end: from offset, seq_len rows on.",
    ),
)

# ---------------------------------------------------------------- 6.4 rotary

def turn_pairs(x, offset=0):
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


def rotary_probes(generator: torch.Generator) -> list[tuple]:
    """x (batch 2, heads 3, length 5, d_head 8) from position 0; (heads 2, length 4, d_head 6) from a later position.

    Then one head with one word of one pair, and large numbers that are not in order in memory.
    """
    return [(torch.randn(2, 3, 5, 8, generator=generator), 0),
            (torch.randn(2, 4, 6, generator=generator), _number(2, 9, generator)),
            (torch.randn(1, 1, 2, generator=generator), _number(2, 9, generator)),
            (100 * torch.randn(1, 4, 3, generator=generator).mT, 1)]


def observe_rotary(function, x, offset):
    """The turned vectors, and whether a gradient reaches x."""
    output = function(x, offset)
    if output is None:
        return None
    return {"": one_tensor(output, "the turned vectors"), **reached(function, output, (x, offset), {0: "x"})}


def _as_pairs(x: torch.Tensor) -> torch.Tensor:
    """Columns 2i and 2i + 1 as one complex number each: (..., length, d_head / 2)."""
    return torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())


def _turned_by(case: Case, output: torch.Tensor) -> torch.Tensor:
    """The angle by which each pair of the input was turned, from -π to π: (..., length, pair)."""
    return (_as_pairs(output) / _as_pairs(case.inputs[0])).angle()


def _norms(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    return case.answer.norm(dim=-1), case.inputs[0].double().norm(dim=-1)


def _longest_change(case: Case) -> str:
    after, before = _norms(case)
    at = (after - before).abs().argmax()
    return f"a vector of length {before.flatten()[at]:.3f} has become {after.flatten()[at]:.3f} long."


def _pair_change(case: Case) -> str:
    after, before = _as_pairs(case.answer).abs(), _as_pairs(case.inputs[0]).abs()
    position = (after - before).abs().gt(1e-3).nonzero()[0]
    row, pair = int(position[-2]), int(position[-1])
    return (f"columns {2 * pair} and {2 * pair + 1} of word {row} had the length {before[tuple(position)]:.3f} together "
            f"and now have {after[tuple(position)]:.3f}.")


def _first_angle(case: Case) -> str:
    got, right = _turned_by(case, case.answer), _turned_by(case, case.expected)
    position = _wrapped(got - right).abs().gt(1e-3).nonzero()[0]
    row, pair = int(position[-2]), int(position[-1])
    turned, expected = (round(angles[tuple(position)].item(), 3) + 0.0 for angles in (got, right))    # + 0.0: no -0.000
    return f"pair {pair} of the word at position {row + case.inputs[1]} is turned by {turned:.3f}, expected {expected:.3f}."


def _turned(case: Case) -> bool:
    """Whether the pairs keep their lengths, so that each was turned by some angle."""
    return (_as_pairs(case.answer).abs() - _as_pairs(case.inputs[0]).abs()).abs().max() < 1e-3


def _unalike(case: Case) -> torch.Tensor:
    """How differently a pair is turned in the first head of the first text and in others: (..., length, pair)."""
    turned = _turned_by(case, case.answer).flatten(0, -3)
    return _wrapped(turned - turned[:1]).abs()


def _first_unalike(case: Case) -> str:
    turned = _turned_by(case, case.answer).flatten(0, -3)
    other, row, pair = (_unalike(case) > 1e-3).nonzero()[0].tolist()
    one, two = (round(turned[at, row, pair].item(), 3) + 0.0 for at in (0, other))                 # + 0.0: no -0.000
    return (f"pair {pair} of the word at position {row + case.inputs[1]} is turned by {one:.3f} in one head and by "
            f"{two:.3f} in another head or text.")


def _angles_off(case: Case) -> bool:
    return _turned(case) and _wrapped(_turned_by(case, case.answer) - _turned_by(case, case.expected)).abs().max() > 1e-3


ROTARY = ask(
    "6.4", turn_pairs,
    probes=rotary_probes,
    observe=observe_rotary,
    forbidden=("course_utils.positional_encoding.RotaryPositions",),
    signature="turn_pairs(x (..., length, d_head), offset) -> (..., length, d_head)",
    mistakes={
        "halves": M(
            _rotary(read_halves=True, write_halves=True),
            _pair_change,
            "You pair column i with column i + d_head / 2. That is rotary in another convention, 'halves', which many "
            "libraries use, not an error in itself. This course pairs neighbours: 0 with 1, 2 with 3.", convention=True),
        "backwards": M(
            _rotary(sign=-1.0),
            _first_angle,
            "You turn the other way. Scores would still depend on the distance only, but queries and keys made with one "
            "direction do not fit the other: compare the signs with those in `turn`."),
        "old-value-lost": M(
            _rotary(sequence=True),
            _longest_change,
            "A turned vector keeps its length. The first new column is right; the second was made from it, and not from "
            "the old one. Compute both before you overwrite any."),
        "no-minus": M(
            _rotary(minus=1.0),
            _longest_change,
            "A turned vector keeps its length. One of the two sines needs a minus sign; compare with `turn`."),
        "one-speed": M(
            _rotary(exponent=lambda i, d: 0 * i),
            _first_angle,
            "All pairs turn at the speed of pair 0. Each pair is a hand of its own: divide by 10000^(2i / d_head)."),
        "exponent-doubled": M(
            _rotary(exponent=lambda i, d: 4 * i / d),
            _first_angle,
            "The exponent is doubled: if i already runs in steps of two, it is the 2i of the formula (section 2)."),
        "exponent-halved": M(
            _rotary(exponent=lambda i, d: i / d),
            _first_angle,
            "Your exponent is half of what it should be (or your base is 100, which is the same): with i counting "
            "pairs, it is 2i / d_head."),
        "from-one": M(
            _rotary(start=lambda offset: offset + 1),
            _first_angle,
            "Your positions begin at offset + 1. A word at position 0 is not turned at all."),
        "offset-ignored": M(
            _rotary(start=lambda offset: 0),
            _first_angle,
            "Your positions always begin at 0. The first word is at position offset."),
        "heads-for-words": M(
            _rotary(heads=True),
            _first_angle,
            "The angle grows from head to head, not from word to word. The words are in the second-to-last dimension."),
        "written-in-halves": M(
            _rotary(write_halves=True),
            _pair_change,
            "The pairs are turned correctly but written back in a different order: first all first columns, then all "
            "second ones. stack and flatten(-2) put neighbours side by side again."),
        "added": M(
            _added,
            _longest_change,
            "Sines and cosines of the position were added to the vector. Here nothing is added: each pair is turned."),
    },
    rules=(
        R(lambda case: (_norms(case)[0] - _norms(case)[1]).abs().max() > 1e-3,
          _longest_change,
          "A turned vector keeps its length."),
        R(lambda case: not _turned(case),
          _pair_change,
          "Each pair of neighbours is turned on its own, so it keeps its length."),
        R(lambda case: _turned(case) and (_unalike(case) > 1e-3).any(),
          _first_unalike,
          "The angle depends on the word's position and the pair only, not on text or head. Are signs and columns as in "
          "`turn`? And do you count along the second-to-last dimension?"),
        R(_angles_off,
          _first_angle,
          "The angle is p / 10000^(2i / d_head), p the position and i the pair."),
        *reaches("x"),
    ),
    hints=(
        "First make a table of angles, (length, d_head / 2): a column of positions times a row of speeds, as in section "
        "2.",
        "even, odd = x[..., 0::2], x[..., 1::2] are the two columns of all pairs. What does `turn` do with v[0] and "
        "v[1]?",
        "The new even is even * cos - odd * sin, the new odd even * sin + odd * cos; cos and sin broadcast.",
        "Back side by side: torch.stack([new_even, new_odd], dim=-1).flatten(-2).",
    ),
)

# ---------------------------------------------------------------- 6.5 which reorderings are confused

def confused(bias, orders):
    reordered = torch.stack([bias[:, order][:, :, order] for order in orders])   # (count, heads, seq_len, seq_len)
    return (reordered == bias).flatten(1).all(dim=1)


def _finds(same):
    """The answer where `same(bias, order)` says whether one order is confused."""
    return lambda bias, orders: torch.tensor([bool(same(bias, order)) for order in orders])


def _both(bias, order):
    return bias[:, order][:, :, order]


def _is_unchanged(order):
    return torch.equal(order, order.sort().values)


def _orders(length: int, generator: torch.Generator, *more: list[int]) -> torch.Tensor:
    """The unchanged order, the reversed one, five random ones, and `more`."""
    unchanged = torch.arange(length)
    drawn = [torch.randperm(length, generator=generator) for _ in range(5)]
    return torch.stack([unchanged, unchanged.flip(0), *drawn, *map(torch.tensor, more)])


def confused_probes(generator: torch.Generator) -> list[tuple]:
    """(bias, orders): no positions; by distance; one head without, first or last; two that cancel; by signed distance; in a
    ring; a first word that stands out; sentences apart and a causal mask, both with -inf; one word."""
    five = torch.arange(5)
    apart = five[None, :] - five[:, None]                                  # (query, key): signed distance
    distance, ring = -apart.abs().float(), torch.randn(2, 5, generator=generator)[:, apart % 5]
    signed = torch.randn(2, 9, generator=generator)[:, apart + 4]
    first = torch.zeros(2, 5, 5).index_fill(2, torch.tensor([0]), 1.5)
    sentences = torch.zeros(1, 5, 5).masked_fill((five < 3)[:, None] != (five < 3), -torch.inf)
    causal = torch.zeros(2, 5, 5).masked_fill(apart > 0, -torch.inf)
    turned, swapped = [1, 2, 3, 4, 0], [1, 0, 2, 4, 3]
    biases = (torch.zeros(3, 5, 5), torch.stack([0.25 * distance, 0.5 * distance]),
              torch.stack([torch.zeros(5, 5), distance]), torch.stack([distance, torch.zeros(5, 5)]),
              torch.stack([distance, -distance]), signed, ring, first, sentences, causal)
    return [*((bias, _orders(5, generator, turned, swapped)) for bias in biases), (torch.ones(2, 1, 1), torch.tensor([[0]]))]


def _called(case: Case) -> str:
    bias, orders = case.inputs
    wrong = int((case.answer.bool() != case.expected.bool()).nonzero()[0])
    said, right = ("confused" if names[wrong] else "told apart" for names in (case.answer, case.expected))
    return (f"with {len(bias)} {'head' if len(bias) == 1 else 'heads'}, you call {int(case.answer.sum())} of "
            f"{len(orders)} orders "
            f"confused, expected {int(case.expected.sum())}. {orders[wrong].tolist()} is {right}, and you say {said}.")


def _unchanged(case: Case) -> torch.Tensor:
    """Which of the orders leave every word where it is."""
    return (case.inputs[1] == torch.arange(case.inputs[1].shape[1])).all(dim=1)


CONFUSED = ask(
    "6.5", confused,
    probes=confused_probes,
    signature="confused(bias (heads, seq_len, seq_len), orders (count, seq_len)) -> (count,), True or False",
    mistakes={
        "rows-only": M(
            _finds(lambda bias, order: torch.equal(bias[:, order], bias)),
            _called,
            "You reorder the queries of the bias and leave its keys. When a word moves, it moves as a query and as a "
            "key: rows and columns change in the same way, as in P B Pᵀ."),
        "columns-only": M(
            _finds(lambda bias, order: torch.equal(bias[:, :, order], bias)),
            _called,
            "You reorder the keys of the bias and leave its queries. When a word moves, it moves as a query and as a "
            "key: rows and columns change in the same way, as in P B Pᵀ."),
        "first-head": M(
            _finds(lambda bias, order: torch.equal(_both(bias, order)[0], bias[0])),
            _called,
            "You look at head 0 alone. It's enough that one head notices the difference: the bias must stay the same in "
            "every head."),
        "any-head": M(
            _finds(lambda bias, order: (_both(bias, order) == bias).flatten(1).all(dim=1).any()),
            _called,
            "You accept an order if one head is confused. If any head sees a difference, the model can use that one."),
        "heads-added": M(
            _finds(lambda bias, order: torch.equal(_both(bias, order).sum(dim=0), bias.sum(dim=0))),
            _called,
            "You add the heads up before you compare, and what differs in two heads can cancel. Each head has its own "
            "softmax, so compare head by head."),
        "not-a-number": M(
            _finds(lambda bias, order: (_both(bias, order) - bias).abs().max() < 1e-6),
            _called,
            "Look for NaN: -inf minus -inf is NaN, and so is 0 times -inf in a product with a permutation matrix. Pick "
            "the entries by their indices and compare them with ==."),
        "reversal-assumed": M(
            _finds(lambda bias, order: _is_unchanged(order) or _is_unchanged(order.flip(0))),
            _called,
            "You return the text and its reversal, whatever the bias. That's the answer for a bias that falls with the "
            "distance; another bias has other symmetries, or none."),
        "all-confused": M(
            _finds(lambda bias, order: True),
            _called,
            "You call every order confused. That's the answer for a model without any positions; here the bias may tell "
            "some orders apart."),
        "unchanged-missing": M(
            _finds(lambda bias, order: torch.equal(_both(bias, order), bias) and not _is_unchanged(order)),
            _called,
            "The unchanged order is missing from what you found. It leaves the logits as they are, so it always counts."),
        "negated": M(
            _finds(lambda bias, order: not torch.equal(_both(bias, order), bias)),
            _called,
            "True and False are swapped: True is for orders that the model confuses, those where the reordered bias is "
            "the bias itself."),
    },
    rules=(
        R(lambda case: (case.answer != 0).logical_and(case.answer != 1).any(),
          lambda case: "your answer contains " f"{case.answer[(case.answer != 0) & (case.answer != 1)][0]:.3f}.",
          "Return one True or False for each row of orders."),
        R(lambda case: (case.answer[_unchanged(case)] == 0).any(),
          _called,
          "The unchanged order always counts. Are you comparing the right two things, and is there -inf in the bias?"),
        R(lambda case: (case.answer > case.expected).any(),
          _called,
          "You miss a difference. Write the reordered bias down for this order, rows and columns, and compare all "
          "entries of all heads."),
        R(lambda case: (case.answer < case.expected).any(),
          _called,
          "You see a difference where there is none. The reordered bias has at (p, q) what the bias has at (order[p], "
          "order[q])."),
    ),
    hints=(
        "In section 1 the scores of the reordered text are P (Q Kᵀ) Pᵀ. Now the scores are Q Kᵀ + B. When is everything "
        "reordered in the same way?",
        "For P (Q Kᵀ + B) Pᵀ the model would have to add P B Pᵀ, and what it adds is B. So the two must be equal, in every "
        "head.",
        "bias[:, order][:, :, order] reorders rows and then columns; torch.equal compares it with bias.",
    ),
)
# ---------------------------------------------------------------- 6.6 attention that turns its queries and keys

def rotate(x, offset=0):
    """What the notebook calls by this name, below exercise 6.4."""
    return turn_pairs(x, offset)


class RotaryAttention(MultiHeadAttention):
    def project(self, query, key, value):                                  # the words, three times
        query, key, value = super().project(query, key, value)             # (batch, heads, seq_len, d_head)
        return rotate(query), rotate(key), value


def attention_probes(generator: torch.Generator) -> list[tuple]:
    """Width, heads, words and mask: two ragged texts; three texts of one length with three heads; one word; one head."""
    return [(8, 2, torch.randn(2, 5, 8, generator=generator), torch.arange(5) < torch.tensor([[5], [3]])),
            (12, 3, torch.randn(3, 4, 12, generator=generator), torch.ones(3, 4, dtype=torch.bool)),
            (4, 1, torch.randn(1, 1, 4, generator=generator), torch.ones(1, 1, dtype=torch.bool)),
            (6, 1, torch.randn(2, 7, 6, generator=generator), torch.arange(7) < torch.tensor([[4], [7]]))]


def observe_attention(answer, d_model, num_heads, x, attention_mask):
    """The names of the parameters; weights and context with weights filled in; how many of their numbers a gradient reaches,
    and whether one reaches the words."""
    module = answer(d_model, num_heads)
    if not isinstance(module, nn.Module):
        return no_module(module)
    named, filled = dict(module.named_parameters()), torch.Generator().manual_seed(d_model)
    with torch.no_grad():
        for name in sorted(named):
            named[name].copy_(torch.randn(named[name].shape, generator=filled) * 0.35)

    def attend(words):
        try:
            result = module(words, mask=padding_mask(attention_mask), need_weights=True)
        except TypeError as error:
            if "unpack non-iterable NoneType" in str(error):
                raise TypeError("`project` returns nothing. End it with a return of three: query, key and value") from None
            if "project()" not in str(error):
                raise
            raise TypeError("the package's `project` gets the words three times, as query, key and value, where 05's gets "
                            "them once, as x. Begin with def project(self, query, key, value): and call "
                            f"super().project(query, key, value); yours says: {error}") from None
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError("expected context and weights from module(x, mask=…, need_weights=True), as 05's class gives "
                            f"them, got {type(result).__name__}. Leave forward as it is: it calls `project`")
        return result

    context, weights = attend(x)
    weights, context = one_tensor(weights, "the weights"), one_tensor(context, "the context")
    if context.requires_grad:
        context.square().sum().backward()
    return {"names": ", ".join(sorted(named)), "weights": weights.detach(), "context": context.detach(),
            "trained": sum(parameter.numel() for parameter in named.values() if parameter.grad is not None),
            **reached(lambda words: attend(words)[0], context, (x,), {0: "x"})}


def _projecting(turn):
    """05's attention with another `project`; `turn(self, query, key, value)` gets what 05's gets."""
    class Attention(MultiHeadAttention):
        def project(self, query, key, value):
            return turn(self, query, key, value)
    return Attention


def _after(change):
    """05's attention in which split queries, keys and values are changed."""
    return _projecting(lambda self, *given: change(*MultiHeadAttention.project(self, *given)))


def _now(x):
    return turn_pairs(x, 0)


def _backwards(x):
    return _rotary(sign=-1.0)(x, 0)


def _before_the_split(self, query, key, value):
    return (self.split(_now(self.query_projection(query))), self.split(_now(self.key_projection(key))),
            self.split(self.value_projection(value)))


def _weight_off(case: Case) -> str:
    """The weight that is furthest from the right one."""
    if case.weights.shape != case.right["weights"].shape:
        return f"your weights have the shape {tuple(case.weights.shape)}, expected {tuple(case.right['weights'].shape)}."
    off = (case.weights - case.right["weights"]).abs()
    at = tuple(int(i) for i in torch.unravel_index(off.argmax(), off.shape))
    return (f"in head {at[1]}, word {at[2]} gives word {at[3]} a weight of {case.weights[at]:.3f}, expected "
            f"{case.right['weights'][at]:.3f}.")


CONTEXT_OFF = "the weights are right, and the context is off by up to {off:.3f}."

ATTENTION = ask(
    "6.6", RotaryAttention, probes=attention_probes, observe=observe_attention,
    forbidden=("course_utils.positional_encoding.RotaryPositions",),
    signature="RotaryAttention(d_model, num_heads) -> 05's MultiHeadAttention, with queries and keys turned before their "
    "scores are taken",
    numbers=dict(off=lambda case: gap(case, "context"), names=lambda case: case.names or "nothing",
                 trained=lambda case: case.trained, expected_trained=lambda case: case.right["trained"]),
    mistakes={
        "not-turned": M(
            MultiHeadAttention, _weight_off,
            "That's what 05's attention gives, without any positions. Let super().project make queries, keys and values, "
            "and turn the first two. (If you did: along which dimension? The words are in the second-to-last. An angle "
            "that grows from head to head is the same for query and key, and drops out.)"),
        "values-turned": M(
            _after(lambda q, k, v: (_now(q), _now(k), _now(v))), CONTEXT_OFF,
            "You turn the values too. A value is what a word hands over once it's found; it must be the same wherever the "
            "word stands."),
        "detached": M(
            _after(lambda q, k, v: (_now(q.detach()), _now(k.detach()), v)), "a gradient reaches {trained:.0f} of "
            "{expected_trained:.0f} weights.",
            "All numbers are right, but detach(), .data or no_grad() cuts queries and keys off, and they aren't trained."),
        "queries-only": M(
            _after(lambda q, k, v: (_now(q), k, v)), _weight_off,
            "You turn the queries alone. Then a score depends on where the query stands, and not on the distance: the "
            "angle drops out only if the keys turn as well."),
        "keys-only": M(
            _after(lambda q, k, v: (q, _now(k), v)), _weight_off,
            "You turn the keys alone. Then a score depends on where the key stands, and not on the distance: the angle "
            "drops out only if the queries turn as well."),
        "input-turned": M(
            _projecting(lambda self, q, k, v: MultiHeadAttention.project(self, _now(q), _now(k), v)), _weight_off,
            "You turn the words before the projections. A projection mixes the columns, so what was turned in pairs "
            "isn't any more, and the score depends on both positions. Turn what super().project gives back."),
        "all-input-turned": M(
            _projecting(lambda self, q, k, v: MultiHeadAttention.project(self, _now(q), _now(k), _now(v))), _weight_off,
            "You turn the words before the projections, values included. Turn what super().project gives back, and only "
            "the queries and keys of it."),
        "before-the-split": M(
            _projecting(_before_the_split), _weight_off,
            "You turn vectors of the whole width and split them afterwards, so the later heads get the slow pairs only. "
            "Each head needs its fast and its slow pairs: turn after the split, where the last dimension is d_head."),
        "keys-turned-back": M(
            _after(lambda q, k, v: (_now(q), _backwards(k), v)), _weight_off,
            "Query and key are turned in opposite directions, so the score depends on the sum of their positions. Turn "
            "both the same way: then it's the difference."),
        "turned-twice": M(
            _after(lambda q, k, v: (_now(_now(q)), _now(_now(k)), v)), _weight_off,
            "Queries and keys are turned twice, by double the angle. Does super().project call something that turns them "
            "already?"),
        "added": M(
            _after(lambda q, k, v: (_added(q, 0), _added(k, 0), v)), _weight_off,
            "You add sines and cosines to queries and keys. Then the score has parts that depend on the place, as in "
            "section 3. Here nothing is added: each pair is turned."),
        "swapped": M(
            _after(lambda q, k, v: (_now(k), _now(q), v)), _weight_off,
            "Queries and keys have changed places. project returns query, key, value, in this order."),
    },
    rules=(
        R(lambda case: case.names != case.right["names"], "the parameters of your module are {names}.",
          "It should have 05's four projections and nothing else: turning has no weights. Derive the class from "
          "MultiHeadAttention and write only `project`."),
        R(lambda case: gap(case, "weights") > 1e-4, _weight_off,
          "Take what super().project returns, and turn query and key with turn_pairs or rotate: each once, from position 0 "
          "on."),
        R(lambda case: gap(case, "context") > 1e-4, CONTEXT_OFF,
          "The values come back from super().project as they should be: hand them on unchanged."),
        R(lambda case: case.trained != case.right["trained"], "a gradient reaches {trained:.0f} of {expected_trained:.0f} "
          "weights.", "Something cuts it off: detach(), .data, no_grad(), item(), NumPy. Then queries and keys aren't "
          "trained."),
        *reaches("x"),
    ),
    hints=(
        "05's forward calls project, attend and merge. Only project has to change, and super().project(query, key, value) "
        "does most of it.",
        "What super().project gives back is split already: (batch, heads, seq_len, d_head). turn_pairs takes any leading "
        "dimensions.",
        "query, key, value = super().project(query, key, value); then return turn_pairs(query), turn_pairs(key), value",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: six-layers
  taught: "06"
  question: A model without positions has six layers and eight heads. You shuffle a review. What happens to the logits?
  options:
    - text: They don't change.
      right: true
      remark: Each layer carries the permutation through, and the mean over the words forgets it.
    - text: They change a little, because six layers mix the words more.
      remark: Every layer is equivariant. However often the words are mixed, their order never plays a part.
    - text: They change if the model was trained on the kind *order*.
      remark: The proof holds for any weights. In section 5 such a model is trained, and still gets exactly half of the
        pairs' reviews right.
- name: longest-wavelength
  taught: "06"
  question: "`d_model = 6`. Which columns have the longest wavelength, and what is it?"
  options:
    - text: "0 and 1: 2π."
      remark: That is the shortest; hand 0 has the exponent 0.
    - text: "5 alone: 2π · 10000."
      remark: A pair shares its angle, and the exponent 1 is never reached.
    - text: "4 and 5: 2π · 10000^(4/6)."
      right: true
      remark: The last pair is i = 2, and its exponent is 2i/6 = 4/6.
- name: same-product
  taught: "06"
  question: The dot product of rows 10 and 13 of the sinusoidal table equals that of which other rows?
  options:
    - text: Of 13 and 16, but not of 200 and 197.
      remark: Three back gives the same as three forward, because cos(−x) = cos x. A rotary score may differ there,
        when query and key differ.
    - text: Of 13 and 16, and of 200 and 197.
      right: true
      remark: Only the distance counts, and in the bare table not its direction.
    - text: Of 20 and 26, which are twice as far along.
      remark: These are six positions apart, and six isn't three.
- name: row-300
  taught: "06"
  question: A learned table has 512 rows; the longest training text has 100 words. What does row 300 contain after
    training?
  options:
    - text: What continues the pattern of the first hundred rows.
      remark: Nothing ties the rows of a learned table to each other.
    - text: "Nothing: a text of 301 words raises an error."
      remark: The row exists, so there is no error. That makes it worse.
    - text: Its random start, because no gradient ever reached it.
      right: true
      remark: No text was long enough (section 4). Weight decay, which shrinks all weights a little, wouldn't teach it
        anything.
- name: five-positions-later
  taught: "06"
  question: The same text is read twice by a model without padding, from position 0 on and with `offset=5`. With which
    kind of positions do the logits stay the same?
  options:
    - text: With rotary ones, whose scores depend on distances alone.
      right: true
      remark: All words move by the same five positions, so every distance stays the same, and the values aren't
        rotated.
    - text: With sinusoidal ones, because a step is the same rotation at every position.
      remark: The table's rows do turn by one matrix, but they're added to the words, and the sum isn't a rotation of
        what it was.
    - text: With learned ones, once training is over and the table is fixed.
      remark: Rows 5, 6, … are different vectors from rows 0, 1, ….
- name: eight-heads-beside
  taught: "05"
  question: The `SmallClassifier` of this notebook has 2 heads. How would 8 heads change its number of parameters?
  options:
    - text: It would be four times as large.
      remark: Each head would also be a quarter as wide.
    - text: Not at all.
      right: true
      remark: The projections are d_model × d_model whatever the number of heads; 8 heads are only narrower.
    - text: It would be a quarter of that.
      remark: The heads are narrower, but there are four times as many.
"""

WARM_UP = """
- name: split-shape
  taught: "05"
  question: "`MultiHeadAttention` with 2 heads splits queries of shape (3, 5, 8): 3 texts, 5 words, width 8. What comes
    out?"
  options:
    - text: "(3, 5, 2, 4), each word with its two heads."
      remark: That's the tensor before its two middle dimensions are swapped. Attention needs the words of one head
        together.
    - text: "(3, 2, 5, 4), each head with its five words."
      right: true
      remark: "(batch, heads, seq_len, d_head): every head has all the words, and 8 / 2 = 4 numbers of each."
    - text: "(6, 5, 8), a copy of the texts for each head."
      remark: Heads share the width. Each gets a part of the numbers, not a copy.
- name: one-key-hidden
  taught: "04"
  question: A row of weights is 0.5, 0.3, 0.2. Now a mask hides the last key. What are the three weights?
  options:
    - text: "0.5, 0.3 and 0, because the hidden weight is set to zero."
      remark: The mask acts on scores, before the softmax, so the row still sums to one.
    - text: "0.6, 0.4 and 0, because what's left over is divided equally."
      remark: Each of the others keeps its proportion to the other, 5 to 3.
    - text: "0.625, 0.375 and 0, because the row still sums to one."
      right: true
      remark: The score becomes minus infinity and its exponential 0, so the sum is 0.8 of what it was, and 0.5 / 0.8 =
        0.625.
- name: column-by-row
  taught: "00"
  question: A tensor of shape (5, 1) is divided by one of shape (3). What is the shape of the result?
  options:
    - text: "(5, 3): every number of the column by every number of the row."
      right: true
      remark: That's broadcasting. Section 2 divides a column of positions by a row like that.
    - text: "None: it raises an error, because 5 isn't 3."
      remark: From the right, 1 meets 3, and a dimension of size 1 is stretched. Then 5 meets nothing.
    - text: "(15): all pairs in one row."
      remark: Broadcasting keeps the dimensions apart; nothing is flattened.
"""
