"""Three things of the course that move: softmax sharpening, a causal mask, and heads that split and join.

Each function gives the `Animation` with numbers computed by the course's own code; `moving` draws and plays it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from course_utils.attention import causal_mask, scaled_dot_product_attention
from course_utils.figures import WEIGHT_MAP, ink_on
from course_utils.interactive.drawing import fixed
from course_utils.interactive.moving import Animation, Shape, State, only, played
from course_utils.interactive.piece import Piece
from course_utils.multi_head_attention import MultiHeadAttention

TOKENS = ["not", "dull", "but", "moving"]
# (token, feature): opinion, negates, contrasts
X = torch.tensor([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1], [1, 0, 0]], dtype=torch.float64)
EMPTY, EDGE = "#e4e4e4", "#b8b8b8"


def _purple(weight: float) -> str:
    return "#" + "".join(f"{round(255 * c):02x}" for c in WEIGHT_MAP(round(weight, 4))[:3])


def softmax_sharpening() -> Animation:
    """Notebook 04's soft lookup of 'drab' among the four words, at a sharpness from 0 to 32."""
    sharpnesses = [0, 0.5, 1, 2, 4, 8, 16, 32]
    scores, values = X @ X.new_tensor([-0.8, 0.1, 0.0]), X[:, 0]           # (key,)
    rows = [(sharpness * scores).softmax(0) for sharpness in sharpnesses]
    steps, long = len(sharpnesses), 220
    shapes = [Shape(20, 28, "soft", text="key", size=14), Shape(100, 28, "soft", text="score", size=14),
              Shape(170, 28, "soft", text="weight: softmax of sharpness × score", size=14)]
    for k, token in enumerate(TOKENS):
        y, weights = 44 + 42 * k, [float(row[k]) for row in rows]
        shapes += [Shape(20, y + 20, "ink", text=token, size=17),
                   Shape(140, y + 20, "ink", text=fixed(float(scores[k]), 1), size=17, anchor="end"),
                   Shape(170, y, "bar", width=long, height=28, states=tuple(State(stretch=weight) for weight in weights))]
        shapes += [Shape(178 + long * weight, y + 20, "ink", text=fixed(weight), size=16, states=only(step, steps))
                   for step, weight in enumerate(weights)]
    answers = [float(row @ values) for row in rows]
    captions = [f"Sharpness {sharpness:g}: the lookup answers {fixed(answer)}"
                for sharpness, answer in zip(sharpnesses, answers, strict=True)]
    said = "; ".join(f"sharpness {sharpness:g}: {float(row[1]):.2f} for 'dull', answer {answer:.2f}"
                     for sharpness, row, answer in zip(sharpnesses, rows, answers, strict=True))
    alt = (f"Animation in {steps} steps. Four bars are the weights that 'drab' gives to {', '.join(TOKENS)}. As the scores "
           f"are multiplied by a growing sharpness, the bar of 'dull' takes everything: {said}.")
    return Animation("softmax-sharpening", 470, 222, shapes, captions, 1.6, 4, alt)


def causal_mask_filling() -> Animation:
    """Scores of the four words, masked row by row and turned into weights, as in notebook 04."""
    scores, allowed = X @ X.T, causal_mask(4)                              # (query, key)
    weights = scaled_dot_product_attention(X * X.shape[1] ** 0.5, X, X, mask=allowed).weights
    steps, cell, left, top = 6, 62, 136, 52
    middles = [cell * (k + 0.5) for k in range(4)]
    shapes = [Shape(left + middle, top - 10, "ink", text=token, size=15, anchor="middle")
              for middle, token in zip(middles, TOKENS, strict=True)]
    shapes += [Shape(left - 10, top + middle + 5, "ink", text=token, size=15, anchor="end")
               for middle, token in zip(middles, TOKENS, strict=True)]
    shapes += [Shape(left, top - 32, "soft", text="key (attended to)", size=13),
               Shape(left - 10, top - 10, "soft", text="query", size=13, anchor="end")]
    for i in range(4):
        for j in range(4):
            may, weight = bool(allowed[i, j]), float(weights[i, j])
            before, after = State(fill="#ffffff"), State(fill=_purple(weight) if may else EMPTY)
            turn = 5 if may else i + 1
            x, y = left + cell * j, top + cell * i
            shapes.append(Shape(x, y, "#ffffff", width=cell, height=cell, edge=EDGE,
                                states=tuple(before if step < turn else after for step in range(steps))))
            said = [(fixed(float(scores[i, j]), 0), "#000000", 0, turn)]
            said += [(fixed(weight), ink_on(after.fill), 5, steps)] if may else [("−∞", "#000000", turn, 5),
                                                                                 ("0", "#000000", 5, steps)]
            shapes += [Shape(x + cell / 2, y + cell / 2 + 6, ink, text=text, size=16, anchor="middle",
                             states=tuple(State(opacity=float(first <= step < end)) for step in range(steps)))
                       for text, ink, first, end in said]
    captions = ["Every query has a score for every key", "'not' may look at itself only: the rest get −∞",
                "'dull' may look at two words: the rest get −∞", "'but' may look at three words: the last gets −∞",
                "'moving' may look at all four: nothing is masked", "Softmax: −∞ becomes 0, and each row sums to one"]
    rows = "; ".join(f"'{token}': " + ", ".join(f"{float(w):.2f}" for w in row)
                     for token, row in zip(TOKENS, weights, strict=True))
    alt = (f"Animation in {steps} steps. A table of scores, four queries by four keys. Row by row, the keys after the query "
           f"get minus infinity, so that a triangle at the top right is masked. Then softmax gives the weights. {rows}.")
    return Animation("causal-mask", 460, 312, shapes, captions, 2.2, 5, alt)


def heads_splitting() -> Animation:
    """Notebook 05's numbers 0 to 11, three words of width four, split into two heads and joined again."""
    numbers = torch.arange(12).view(1, 3, 4)                               # (batch, seq_len, d_model)
    layer = MultiHeadAttention(d_model=4, num_heads=2)
    heads = layer.split(numbers)                                           # (batch, heads, seq_len, d_head)
    assert torch.equal(layer.merge(heads), numbers)
    shades, cell, left, top, gap, apart = ["#efe1f3", "#b07cc0", "#5b1f70"], 56, 158, 60, 24, 70
    captions = ["(batch, seq_len, d_model) = (1, 3, 4): three words, four columns",
                "view (1, 3, 2, 2): each word's columns in two groups",
                "transpose (1, 2, 3, 2): one table for each head",
                "(batch, heads, seq_len, d_head): each head attends by itself",
                "transpose back (1, 3, 2, 2): the heads side by side",
                "flatten (1, 3, 4): one vector for each word again"]
    spread = [0, gap / 2, apart, apart, gap / 2, 0]
    steps = len(spread)
    shapes = [Shape(12, top + cell * (word + 0.5) + 5, "soft", text=f"word {word}", size=15) for word in range(3)]
    for head in range(2):
        side = 2 * head - 1
        states = tuple(State(opacity=float(step in (2, 3)), x=side * spread[step]) for step in range(steps))
        shapes.append(Shape(left + cell * (1 + 2 * head), top - 16, "ink", text=f"head {head}", size=16, anchor="middle",
                            states=states))
        for word in range(3):
            for column in range(2):
                number, fill = int(heads[0, head, word, column]), shades[word]
                x, y = left + cell * (2 * head + column), top + cell * word
                moves = tuple(State(x=side * offset) for offset in spread)
                shapes += [Shape(x, y, fill, width=cell, height=cell, edge="#ffffff", states=moves),
                           Shape(x + cell / 2, y + cell / 2 + 6, ink_on(fill), text=str(number), size=17, anchor="middle",
                                 states=moves)]
    alt = (f"Animation in {steps} steps. A table of three words by four columns holds the numbers 0 to 11. It splits into "
           f"two heads: head 0 holds {heads[0, 0].tolist()} and head 1 {heads[0, 1].tolist()}, two columns of each word. "
           "Then the heads join again, and every number is back at its place.")
    return Animation("heads", 520, 246, shapes, captions, 2.2, 2, alt)


ANIMATIONS: dict[str, Callable[[], Animation]] = {
    "softmax-sharpening": softmax_sharpening, "causal-mask": causal_mask_filling, "heads": heads_splitting}


def animation_view(name: str) -> Piece:
    """An animation of the course to play, pause and step through: 'softmax-sharpening', 'causal-mask' or 'heads'.

    It doesn't start by itself. Raises ValueError for another name.
    """
    if name not in ANIMATIONS:
        raise ValueError(f"name={name!r}; expected one of {', '.join(map(repr, ANIMATIONS))}")
    return played(ANIMATIONS[name]())
