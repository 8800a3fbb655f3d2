"""Ways to tell a model where a word stands: sinusoidal, learned, rotary, ALiBi.

Does: `SinusoidalPositions` and `LearnedPositions` add a vector to each word; `RotaryPositions` turns
queries and keys inside attention; `AlibiPositions` gives what is added to the scores. All are `Positions`, made by name
with `make_positions`; each takes an `offset` or two lengths, so that a sequence can be continued. Notebook 06 writes the
same without checks and offsets; tests/test_positional_encoding.py holds the two equal. Does not: scale embeddings or apply
dropout.
"""

import math

import torch
from torch import Tensor, nn

from course_utils.options import MODEL_RULES, check_options, one_of
from course_utils.shapes import check_sequence

__all__ = ["Positions", "sinusoidal_table", "SinusoidalPositions", "positions_from", "LearnedPositions", "RotaryPositions",
           "alibi_slopes", "alibi_bias", "AlibiPositions", "POSITIONS", "make_positions"]


class Positions(nn.Module):
    """No positions, and the interface of all others: each overrides one of `add`, `rotate` and `bias`.

    `offset` is the position of the first token. Calling the object applies its `add` and `rotate` to x.

    Taught in 06_positional_encoding, '6. Turn the queries and keys'.
    """

    def add(self, x: Tensor, offset: int = 0) -> Tensor:
        """Word vectors (batch, seq_len, d_model) with their positions."""
        return x

    def rotate(self, x: Tensor, offset: int = 0) -> Tensor:
        """Queries or keys (batch, heads, length, d_head), rotated."""
        return x

    def bias(self, query_len: int, key_len: int | None = None) -> Tensor | None:
        """What to add to the scores, (heads, query, key), or None."""
        return None

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        return self.rotate(self.add(x, offset), offset)


def sinusoidal_table(max_len: int, d_model: int, base: float = 10000.0) -> Tensor:
    """Column 2i holds sin(p / base^(2i/d_model)), column 2i+1 the cosine (Vaswani et al. 2017, section 3.5).

    Positions p count from zero. Returns (max_len, d_model).

    Taught in 06_positional_encoding, '2. Number the words? Or a clock?'.
    """
    if d_model % 2 != 0:
        raise ValueError(f"d_model={d_model} is odd; sines and cosines come in pairs: use {d_model + 1}")
    position = torch.arange(max_len, dtype=torch.float64)[:, None]         # (max_len, 1)
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model  # (d_model / 2,)
    angle = position / base**exponent                                      # (max_len, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2).to(torch.get_default_dtype())


class SinusoidalPositions(Positions):
    """Add the sinusoidal table to x (batch, seq_len, d_model), from position `offset` on. Nothing is learned.

    Taught in 06_positional_encoding, '4. A table that is learned'.
    """

    def __init__(self, d_model: int, max_len: int = 512, base: float = 10000.0):
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_len, d_model, base))

    def add(self, x: Tensor, offset: int = 0) -> Tensor:
        return x + positions_from(self.table, x, offset).to(x.dtype)


def positions_from(table: Tensor, x: Tensor, offset: int) -> Tensor:
    """Rows offset to offset + seq_len of a table, for x (..., seq_len, d_model). Raises ValueError for what doesn't fit."""
    check_sequence(x, d_model=table.shape[-1])
    seq_len = x.shape[-2]
    if offset < 0:
        raise ValueError(f"offset={offset}; positions count from 0")
    if offset + seq_len > len(table):
        raise ValueError(
            f"{seq_len} tokens from position {offset} on, but there are positions for max_len={len(table)}; "
            f"truncate (pad_batch(..., max_len={len(table)})) or build the model with a larger max_len"
        )
    return table[offset : offset + seq_len]


class LearnedPositions(Positions):
    """Add a trained vector for each position to x (batch, seq_len, d_model), from `offset` on (Devlin et al. 2019).

    Taught in 06_positional_encoding, '4. A table that is learned'.
    """

    def __init__(self, d_model: int, max_len: int = 512):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, d_model) * 0.02)

    def add(self, x: Tensor, offset: int = 0) -> Tensor:
        return x + positions_from(self.table, x, offset)


class RotaryPositions(Positions):
    """Turn each pair of columns of a query or key by an angle that grows with its position (Su et al. 2021, section 3.2).

    x (batch, heads, length, d_head) -> the same shape. Columns 2i and 2i+1 are a pair (interleaved) and
    turn by position / base^(2i/d_head). The dot product of two turned vectors depends on their distance only.

    Taught in 06_positional_encoding, '6. Turn the queries and keys'.
    """

    def __init__(self, d_head: int, base: float = 10000.0):
        super().__init__()
        if d_head % 2 != 0:
            raise ValueError(f"d_head={d_head} is odd; rotary positions turn pairs: make d_model / num_heads even")
        self.d_head, self.base = d_head, base

    def angles(self, x: Tensor, offset: int = 0) -> Tensor:
        """By how much each position turns each pair, (length, d_head / 2): in float32, or float64 if x is."""
        check_sequence(x, d_head=self.d_head)
        dtype = torch.promote_types(x.dtype, torch.float32)
        frequency = self.base ** -(torch.arange(0, self.d_head, 2, dtype=dtype, device=x.device) / self.d_head)
        return torch.arange(offset, offset + x.shape[-2], dtype=dtype, device=x.device)[:, None] * frequency

    def rotate(self, x: Tensor, offset: int = 0) -> Tensor:
        angle = self.angles(x, offset)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def alibi_slopes(num_heads: int) -> Tensor:
    """One slope a head: 2^(-8/n), 2^(-16/n), … for n heads (Press et al. 2022, section 3).

    For a number of heads that is no power of two the paper's code interleaves the slopes of the next
    power; so does this. Returns (num_heads,).

    Taught in 06_positional_encoding, '7. If you like: a number added to each score'.
    """
    check_options({"num_heads": num_heads}, MODEL_RULES)
    power = 2 ** math.floor(math.log2(num_heads))
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    between = [2 ** (-4 * (h + 1) / power) for h in range(0, 2 * power, 2)]
    return torch.tensor((slopes + between)[:num_heads])


def alibi_bias(num_heads: int, query_len: int, key_len: int | None = None) -> Tensor:
    """Minus slope times distance, to be added to the scores: (heads, query, key).

    The distance is symmetric, as an encoder needs it (the paper has a decoder, which looks back only);
    with more keys than queries the last query is at the position of the last key.

    Taught in 06_positional_encoding, '7. If you like: a number added to each score'.
    """
    key_len = query_len if key_len is None else key_len
    query_position = torch.arange(key_len - query_len, key_len)[:, None]   # (query, 1)
    distance = (query_position - torch.arange(key_len)).abs()              # (query, key)
    return -alibi_slopes(num_heads)[:, None, None] * distance


class AlibiPositions(Positions):
    """Nothing is added to the words or rotated; `bias` is `alibi_bias`, a slope for each head.

    Taught in 06_positional_encoding, '7. If you like: a number added to each score'.
    """

    def __init__(self, num_heads: int):
        super().__init__()
        check_options({"num_heads": num_heads}, MODEL_RULES)
        self.num_heads = num_heads

    def bias(self, query_len: int, key_len: int | None = None) -> Tensor:
        return alibi_bias(self.num_heads, query_len, key_len)


POSITIONS = {
    "none": lambda d_model, num_heads, max_len: Positions(),
    "sinusoidal": lambda d_model, num_heads, max_len: SinusoidalPositions(d_model, max_len),
    "learned": lambda d_model, num_heads, max_len: LearnedPositions(d_model, max_len),
    "rotary": lambda d_model, num_heads, max_len: RotaryPositions(d_model // num_heads),
    "alibi": lambda d_model, num_heads, max_len: AlibiPositions(num_heads),
}


def make_positions(name: str, d_model: int, num_heads: int, max_len: int = 512) -> Positions:
    """The positions of that name, one of POSITIONS. Raises ValueError for another name.

    Taught in 06_positional_encoding, '6. Turn the queries and keys'.
    """
    check_options({"positions": name}, {"positions": one_of(*POSITIONS)})
    return POSITIONS[name](d_model, num_heads, max_len)
