"""Exercises of notebook 06, positional encoding. The answers stand beside it, in `answers`."""

import math

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import listed, reaches
from course_exercises.n06 import probes
from course_exercises.n06.reorderings import CONFUSED


def _wrapped(angle: torch.Tensor) -> torch.Tensor:
    """Angles brought to between -π and π."""
    return torch.atan2(angle.sin(), angle.cos())

# ---------------------------------------------------------------- 6.1 the table from any position on

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


ROWS = Exercise(
    probes=probes.row_probes,
    forbidden=("course_utils.positional_encoding.sinusoidal_table", "course_utils.positional_encoding.SinusoidalPositions"),
    signature="sinusoidal_rows(first, count, d_model) -> (count, d_model)",
    mistakes=(
        Mistake("exponent-doubled", _entry, "The exponent is doubled. If your i counts columns (0, 2, 4, …), it already is "
                "the 2i of the formula: divide i by d_model, not 2 * i. Neither shape nor error gives that away; working "
                "out a row by hand does."),
        Mistake("exponent-halved", _entry, "Your exponent is half of what it should be (or your base is 100, which is the "
                "same). If i counts hands (0, 1, 2, …), the formula wants 2 * i / d_model."),
        Mistake("own-exponent", _pair_off, "For one angle it would be 1: your cosine takes the exponent of its own column, "
                "2i + 1. Both columns of a pair have the same angle, with exponent 2i."),
        Mistake("next-exponent", _pair_off, "For one angle it would be 1: your cosine takes the angle of the next hand. "
                "Both columns of a pair have the same angle."),
        Mistake("all-alike", lambda case: f"column 2 equals column 0, such as {case.answer[1, 2]:.4f} in the second row.",
                "All hands turn at the same speed, as if every exponent were 0. If you used //, that is why: 2 * i // "
                "d_model is 0 for "
                "every i that occurs. Use /."),
        Mistake("swapped", lambda case: _entry(case, 0, 0), "Cosine and sine are swapped: even columns contain the "
                "sine. A model would learn with either, but weights trained with one don't work with the other."),
        Mistake("halves", lambda case: _entry(case, 1, 1), "All sines come first, then all cosines. That is a valid "
                "encoding in another convention, 'halves' (section 4), not an error. This course interleaves: here sine and "
                "cosine of a hand are side by side.", convention=True),
        Mistake("from-one", lambda case: _entry(case, 0, 0), "That belongs to the next position: positions are counted "
                "from zero, "
                "and your first row stands for first + 1."),
        Mistake("first-ignored", lambda case: f"with first = {case.inputs[0]}, {_entry(case, 0, 0)}",
                "Your rows always begin at position 0. The first row must stand for the position `first`."),
        Mistake("other-base", _entry, "The pairs are right but the slow hands turn too fast: you divide by powers of 1,000. "
                "The formula has 10,000."),
        Mistake("only-sines", _pair_off, "Every column is a sine. With the cosine next to it, a hand says where it is, "
                "not only how high, and a step is a rotation (section 5)."),
        Mistake("multiplied", _entry, "You multiply the position by 10000^(2i / d_model). Divide: hand 0 is the fastest, "
                "the "
                "others turn more slowly."),
        Mistake("degrees", _slow_hand, "The angle was converted from degrees to radians. It is in radians already: hand 0 "
                "moves by 1 from position to position."),
    ),
    properties=(
        Property(lambda case: case.answer.abs().max() > 1 + 1e-4, lambda case: "your largest number is "
                 f"{case.answer.abs().max():.3f}.", "Sines and cosines stay between -1 and 1."),
        Property(lambda case: (_squares(case) - 1).abs().max() > 1e-3, _pair_off, "Columns 2i and 2i + 1 are sine and "
                 "cosine of one angle, so their squares add up to 1."),
        Property(lambda case: _as_fast(case) and _wrapped(torch.tensor(_start(case)[0] - _start(case)[1])).abs() > 1e-3,
                 lambda case: f"in the row of position {case.inputs[0]} hand 0 stands at {_start(case)[0]:.3f}, expected "
                 f"{_start(case)[1]:.3f} (in radians, less full turns).", "Hand 0 has the angle p itself: look at where "
                 "your positions begin, and which column is the sine."),
        Property(lambda case: len(case.answer) > 1 and not _as_fast(case), _slow_hand, "Hand 0 has the angle p itself, so "
                 "it turns by 1 from position to position. Look at your positions: they are whole numbers, first, first + "
                 "1, … "
                 "(torch.arange; linspace takes different steps)."),
        Property(lambda case: case.inputs[2] > 2 and abs(_speeds(case.answer)[-1].abs() - 1e-4) < 2e-5, lambda case:
                 f"your slowest hand turns by {_speeds(case.answer)[-1]:.4f} from one position to the next, expected "
                 f"{_speeds(case.expected)[-1]:.4f}.", "As if its exponent were 1. The exponents are 0, 2 / d_model, 4 / "
                 "d_model, … and stop before 1; linspace(0, 1, …) and a division by d_model / 2 - 1 reach it."),
        Property(lambda case: (_speeds(case.answer) - _speeds(case.expected)).abs().max() > 1e-4, _slow_hand,
                 "A hand turns by 1 / 10000^(2i / d_model) a position, i counting hands from 0."),
        Property(lambda case: _angles_apart(case).max() > 1e-3, _first_hand_off, "Its angle is p / 10000^(2i / d_model), "
                 "and p runs over the positions first, first + 1, first + 2, …"),
    ),
    hints=(
        "Work out one row by hand for d_model = 4, as in the table above, and compare.",
        "Two loops are enough: over the positions p, and over the hands i = 0, 1, …, d_model / 2 - 1.",
        "angle = p / 10000 ** (2 * i / d_model) goes into columns 2 * i (sine) and 2 * i + 1 (cosine); p runs from first to "
        "first + count - 1.",
    ),
)

# ---------------------------------------------------------------- 6.2 a step by hand

def _turn_in_degrees(case: Case) -> float:
    """The angle from the given pair to the answer, from -180 to 180."""
    sine, cosine = case.answer.tolist()
    return math.degrees(_wrapped(torch.tensor(math.atan2(sine, cosine) - math.atan2(0.28, 0.96))).item())


def _squares_seen(case: Case) -> str:
    return f"the squares of your numbers add up to {case.answer.square().sum():.3f}, not to 1."


STEP = Exercise(
    kind="number", tolerance=4e-3, signature="a list of two numbers: the sine and the cosine five positions further on",
    mistakes=(
        Mistake("backwards", lambda case: f"{listed(case.answer)}: that is five positions back.", "The minus is in the "
                "wrong place: the lower row of the matrix is (-sin θ, cos θ)."),
        Mistake("no-minus", _squares_seen, "The sine is right. In the cosine a minus is missing: cos(a + θ) = cos a cos θ - "
                "sin a sin θ."),
        Mistake("minus-on-cosine", lambda case: f"{listed(case.answer)}: the sine is right, the cosine has the wrong sign.",
                "In its formula the minus belongs to the product of the sines, not to that of the cosines."),
        Mistake("swapped", lambda case: f"{listed(case.answer)}: these are the right numbers in the wrong order.",
                "The sine comes first, as in the table."),
        Mistake("added", lambda case: f"{listed(case.answer)}: a sine above 1 does not exist.",
                "You can't add the sines of two angles; the addition formulas of section 5 turn the pair."),
        Mistake("diagonal", _squares_seen, "Each number was only multiplied by cos θ. The matrix also mixes the two: its "
                "other diagonal holds sin θ."),
        Mistake("not-moved", lambda case: f"{listed(case.answer)}: that is where the hand was before.",
                "Multiply the matrix of section 5 by this pair."),
        Mistake("angle-alone", lambda case: f"{listed(case.answer)}: that is the angle θ itself, as if the hand had started "
                "at 0.", "Turn the given pair by it."),
    ),
    properties=(
        Property(lambda case: abs(case.answer.square().sum() - 1) > 0.02, lambda case: "the squares of your two numbers add "
                 f"up to {case.answer.square().sum():.3f}.", "A turned pair keeps sin² + cos² = 1."),
        Property(lambda case: abs(_turn_in_degrees(case) - 53.13) > 0.2, lambda case: "from (0.28, 0.96) to your pair the "
                 f"hand turns by {_turn_in_degrees(case):.1f}°.", "It must turn by θ, once and forwards; cos θ = 0.6 and "
                 "sin θ = 0.8 belong to 53.1°. Look at the signs, and at which number is the sine."),
    ),
    hints=(
        "Section 5 has the matrix that turns (sin a, cos a) into the pair k positions on.",
        "The sine: cos θ times 0.28 plus sin θ times 0.96.",
        "The cosine: -sin θ times 0.28 plus cos θ times 0.96.",
    ),
)

# ---------------------------------------------------------------- 6.3 repair: a module with a given table

def _offset_gap(case: Case) -> str:
    got, right = case.offset, case.right["offset"]
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


TABLE = Exercise(
    given="as-given", probes=probes.table_probes, observe=probes.observe_module,
    signature="TablePositions(table (max_len, d_model)) -> a module that maps x (batch, seq_len, d_model) and offset to "
    "(batch, seq_len, d_model)",
    mistakes=(
        Mistake("as-given", _offset_gap, "That's one of two mistakes; both are still there. Which of the "
                "three kinds of tensor of section 6 should the table be? And where must a slice that begins at offset end?"),
        Mistake("plain-attribute", _saved, "The rows are right now, but the table is a plain attribute: it would not be "
                "saved, and model.to(device) would leave it where it is. Section 6 names the kind of tensor that is saved "
                "and moved, and not trained."),
        Mistake("slice-end", _offset_gap, "The table is kept now, but the slice is wrong: it ends at seq_len, so with an "
                "offset it is too short. A single row is then added to every word, without an error."),
        Mistake("offset-ignored", _offset_gap, "Your rows always begin at position 0. A later word would be "
                "at "
                "the beginning of the text again."),
        Mistake("one-too-far", _offset_gap, "The rows begin at the position after the right one. The first word is at "
                "position offset itself."),
        Mistake("offset-added", _offset_gap, "The number offset was added to the vectors. It says at which row of the table "
                "to begin."),
        Mistake("parameter", _trained, "The rows are right, but the table is a parameter: the optimiser would change it. "
                "This table is given, not learned; a buffer is saved and moved as well."),
        Mistake("not-persistent", lambda case: f"{_saved(case)} It does move with the model.", "The buffer was registered "
                "with persistent=False, so it is not saved. Leave that out."),
    ),
    properties=(
        Property(lambda case: (case.start - case.right["start"]).abs().max() > 1e-4, lambda case:
                 f"without an offset the result is off by up to {_some(case.start - case.right['start'])}.",
                 "The first seq_len rows of the table are added to each text of the batch."),
        Property(lambda case: (case.offset - case.right["offset"]).abs().max() > 1e-4, _offset_gap,
                 "The rows offset, offset + 1, … are added, as many as there are words."),
        Property(lambda case: case.trained > 0, _trained, "The table is given and must not change."),
        Property(lambda case: case.saved == 0, _saved, "Saved and loaded, the model would be without it (section 6)."),
        Property(lambda case: case.moved == 0, lambda case: f"tables among the parameters and buffers: {case.moved:.0f}.",
                 "The table would not be moved with the model (section 6)."),
        Property(lambda case: (case.loaded - case.right["loaded"]).abs().max() > 1e-4, lambda case:
                 "a second module, moved to float64, loaded this one's state_dict(); its results are off by up to "
                 f"{_some(case.loaded - case.right['loaded'])}.", "What is saved is not what forward uses. There should be "
                 "one table only, and forward should take its rows from the one that is saved and moved."),
        *reaches("x"),
    ),
    hints=(
        "Print list(module.state_dict()) and module(x, offset=3) - x for your module; look at the rows that were added.",
        "register_buffer takes a name and a tensor; afterwards self.table works as before.",
        "A slice has a beginning and an end: from offset, seq_len rows on.",
    ),
)

# ---------------------------------------------------------------- 6.4 rotary

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


ROTARY = Exercise(
    probes=probes.rotary_probes, observe=probes.observe_rotary,
    forbidden=("course_utils.positional_encoding.RotaryPositions",),
    signature="turn_pairs(x (..., length, d_head), offset) -> (..., length, d_head)",
    mistakes=(
        Mistake("halves", _pair_change, "You pair column i with column i + d_head / 2. That is rotary in another "
                "convention, 'halves', which many libraries use, not an error in itself. This course pairs neighbours: 0 "
                "with 1, 2 with 3.", convention=True),
        Mistake("backwards", _first_angle, "You turn the other way. Scores would still depend on the distance only, but "
                "queries and keys made with one direction do not fit the other: compare the signs with those in `turn`."),
        Mistake("old-value-lost", _longest_change, "A turned vector keeps its length. The first new column is right; the "
                "second was made from it, and not from the old one. Compute both before you overwrite any."),
        Mistake("no-minus", _longest_change, "A turned vector keeps its length. One of the two sines needs a minus sign; "
                "compare with `turn`."),
        Mistake("one-speed", _first_angle, "All pairs turn at the speed of pair 0. Each pair is a hand of its own: divide "
                "by 10000^(2i / d_head)."),
        Mistake("exponent-doubled", _first_angle, "The exponent is doubled: if i already runs in steps of two, it is the 2i "
                "of the formula (section 6)."),
        Mistake("exponent-halved", _first_angle, "Your exponent is half of what it should be (or your base is 100, which is "
                "the same): with i counting pairs, it is 2i / d_head."),
        Mistake("from-one", _first_angle, "Your positions begin at offset + 1. A word at position 0 is not turned at all."),
        Mistake("offset-ignored", _first_angle, "Your positions always begin at 0. The first word is at position "
                "offset."),
        Mistake("heads-for-words", _first_angle, "The angle grows from head to head, not from word to word. The words are "
                "in the second-to-last dimension."),
        Mistake("written-in-halves", _pair_change, "The pairs are turned correctly but written back in a different order: "
                "first all first columns, then all second ones. stack and flatten(-2) put neighbours side by side again."),
        Mistake("added", _longest_change, "Sines and cosines of the position were added to the vector. Here nothing is "
                "added: "
                "each pair is turned."),
    ),
    properties=(
        Property(lambda case: (_norms(case)[0] - _norms(case)[1]).abs().max() > 1e-3, _longest_change,
                 "A turned vector keeps its length."),
        Property(lambda case: not _turned(case), _pair_change, "Each pair of neighbours is turned on its own, so it keeps "
                 "its length."),
        Property(lambda case: _turned(case) and (_unalike(case) > 1e-3).any(), _first_unalike, "The angle depends on the "
                 "word's position and the pair only, not on text or head. Are signs and columns as in `turn`? And do you "
                 "count "
                 "along the second-to-last dimension?"),
        Property(_angles_off, _first_angle, "The angle is p / 10000^(2i / d_head), p the position and i the pair."),
        *reaches("x"),
    ),
    hints=(
        "First make a table of angles, (length, d_head / 2): a column of positions times a row of speeds, as in section 3.",
        "even, odd = x[..., 0::2], x[..., 1::2] are the two columns of all pairs. What does `turn` do with v[0] and v[1]?",
        "The new even is even * cos - odd * sin, the new odd even * sin + odd * cos; cos and sin broadcast.",
        "Back side by side: torch.stack([new_even, new_odd], dim=-1).flatten(-2).",
    ),
)

EXERCISES = (ROWS, STEP, TABLE, ROTARY, CONFUSED)
