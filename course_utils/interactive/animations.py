"""Three things of the course that move: softmax sharpening, a causal mask, and heads that split and join.

Does: shapes whose place, colour and visibility change from step to step, with numbers computed by the course's own code; one
`Animation` as an animated SVG (still for readers who ask for less motion), as a still SVG, and as a piece with a play button
and a step slider. The SVG is text with the same bytes each time. Does not: write files.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import NamedTuple

import torch
from matplotlib.colors import to_rgb

from course_utils.attention import causal_mask, scaled_dot_product_attention
from course_utils.figures import WEIGHT_MAP, ink_on
from course_utils.interactive.drawing import INK, LINE, PURPLE, SOFT, bar, fixed, label, picture, short
from course_utils.interactive.piece import Piece
from course_utils.multi_head_attention import MultiHeadAttention

MOVE = 0.4  # this part of each step is movement, the rest stands still
CAPTION = 44  # height below the picture
NAMED = {"ink": INK, "soft": SOFT, "line": LINE, "bar": PURPLE}  # colours that a dark page changes


class State(NamedTuple):
    """How a shape differs from where it was drawn: how visible, moved by how much, stretched from its left edge, filled."""

    opacity: float = 1.0
    x: float = 0.0
    y: float = 0.0
    stretch: float = 1.0
    fill: str | None = None


class Shape(NamedTuple):
    """A filled rectangle at (x, y), or, with `text`, a line of text there; `states` has one state for each step, or none."""

    x: float
    y: float
    fill: str
    width: float = 0.0
    height: float = 0.0
    text: str | None = None
    size: float = 15.0
    anchor: str = "start"
    edge: str | None = None
    states: tuple[State, ...] = ()


class Animation(NamedTuple):
    """Shapes on a sheet of `width` by `height`; each step has a caption and takes `seconds`. `still` is the step to show
    where nothing moves, `alt` the whole in words."""

    name: str
    width: float
    height: float
    shapes: list[Shape]
    captions: list[str]
    seconds: float
    still: int
    alt: str

    @property
    def duration(self) -> float:
        return self.seconds * len(self.captions)


def only(step: int, steps: int) -> tuple[State, ...]:
    """States of a shape that is seen in one step."""
    return tuple(State(opacity=float(k == step)) for k in range(steps))


def state_at(shape: Shape, step: int, part: float) -> State:
    """The state after `part` (0 to 1) of the movement into a step."""
    if not shape.states:
        return State()
    now, before = shape.states[step], shape.states[max(step - 1, 0)]
    part = part * part * (3 - 2 * part)                                    # slow, fast, slow
    mixed = [a + (b - a) * part for a, b in zip(before[:4], now[:4], strict=True)]
    if now.fill is None or before.fill is None:
        return State(*mixed, now.fill)
    colours = zip(to_rgb(before.fill), to_rgb(now.fill), strict=True)
    return State(*mixed, "#" + "".join(f"{round(255 * (a + (b - a) * part)):02x}" for a, b in colours))


def _css(shape: Shape, state: State) -> str:
    said = []
    if any(other.opacity != 1 for other in shape.states):
        said.append(f"opacity:{short(state.opacity, 3)}")
    if any(other.x or other.y for other in shape.states):
        said.append(f"transform:translate({short(state.x)}px,{short(state.y)}px)")
    elif any(other.stretch != 1 for other in shape.states):
        said.append(f"transform:scaleX({short(state.stretch, 4)})")
    if state.fill:
        said.append(f"fill:{state.fill}")
    return ";".join(said)


def keyframes(animation: Animation) -> str:
    """The movements as CSS: shape k has the class `k` followed by its number, and its own keyframes of that name."""
    rules, steps = [], len(animation.captions)
    for k, shape in enumerate(animation.shapes):
        if not shape.states:
            continue
        css = [_css(shape, state) for state in shape.states]
        frames = [f"0%{{{css[0]}}}"]
        for step in range(1, steps):
            if css[step] != css[step - 1]:
                start, end = short(100 * step / steps), short(100 * (step + MOVE) / steps)
                frames.append(f"{start}%{{{css[step - 1]}}}{end}%{{{css[step]}}}")
        origin = f";transform-origin:{short(shape.x)}px 0" if any(state.stretch != 1 for state in shape.states) else ""
        rules.append(f"@keyframes k{k}{{{''.join(frames)}100%{{{css[-1]}}}}}\n"
                     f".k{k}{{animation:k{k} {short(animation.duration)}s ease-in-out infinite{origin}}}")
    return "\n".join(rules)


def nodes(animation: Animation) -> list[dict]:
    """The shapes as attributes, for a page; a named colour is a variable of its style sheet."""
    written = []
    for k, shape in enumerate(animation.shapes):
        attributes = {"x": shape.x, "y": shape.y, "fill": f"var(--{shape.fill})" if shape.fill in NAMED else shape.fill}
        if shape.text is None:
            attributes |= {"width": shape.width, "height": shape.height, "stroke": shape.edge}
        else:
            attributes |= {"font-size": shape.size, "text-anchor": shape.anchor}
        if shape.states:
            attributes["class"] = f"k{k}"
        written.append({"text": shape.text, "is": {name: value for name, value in attributes.items() if value is not None}})
    return written


def with_captions(animation: Animation) -> Animation:
    """The animation with its captions below it, each in its step."""
    steps = len(animation.captions)
    texts = [Shape(animation.width / 2, animation.height + 26, "ink", text=caption, size=15, anchor="middle",
                   states=only(step, steps)) for step, caption in enumerate(animation.captions)]
    return animation._replace(shapes=animation.shapes + texts, height=animation.height + CAPTION)


def drawn(animation: Animation, moving: bool = True) -> str:
    """The animation with its captions as an SVG of its own, or, with `moving=False`, its still.

    It moves in a loop, stands still under a pointer, and doesn't move at all for readers who ask for less motion.
    """
    whole, parts = with_captions(animation), []
    for k, shape in enumerate(whole.shapes):
        still = shape.states[whole.still] if shape.states else State()
        if not moving and still.opacity == 0:
            continue
        look = {"style": _css(shape, still) or None, "class_": f"k{k}" if moving and shape.states else None}
        if still.stretch != 1:
            look["transform_origin"] = f"{short(shape.x)} 0"
        fill = NAMED.get(shape.fill, shape.fill)
        if shape.text is None:
            parts.append(bar(shape.x, shape.y, shape.width, shape.height, fill, stroke=shape.edge, **look))
        else:
            parts.append(label(shape.x, shape.y, shape.text, shape.size, fill=fill, text_anchor=shape.anchor, **look))
    style = (f"<style>\n{keyframes(whole)}\nsvg:hover *{{animation-play-state:paused}}\n"
             "@media (prefers-reduced-motion:reduce){*{animation:none!important}}\n</style>") if moving else ""
    sheet = picture(whole.width, whole.height, style, *parts)
    start = sheet.index(">") + 1
    return f"{sheet[:start]}<desc>{html.escape(animation.alt, quote=False)}</desc>{sheet[start:]}\n"


def played(animation: Animation) -> Piece:
    """The animation with a button to play and pause it and a slider for its steps. It doesn't start by itself."""
    data = {"width": animation.width, "height": animation.height, "nodes": nodes(animation), "style": keyframes(animation),
            "captions": animation.captions, "seconds": animation.seconds, "move": MOVE}
    return Piece("moving", data, still=drawn(animation, moving=False), alt=animation.alt, scripts=["controls"])


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
    """Scores of the four words by their opinions, masked row by row and turned into weights, as in notebook 04."""
    opinion, allowed = X[:, :1], causal_mask(4)                            # (token, 1), (query, key)
    scores = opinion @ opinion.T + 0.0                                     # (query, key), without negative zeros
    weights = scaled_dot_product_attention(opinion, opinion, X, mask=allowed).weights
    steps, cell, left, top = 6, 62, 136, 52
    middles = [cell * (k + 0.5) for k in range(4)]
    shapes = [Shape(left + middle, top - 10, "ink", text=token, size=15, anchor="middle")
              for middle, token in zip(middles, TOKENS, strict=True)]
    shapes += [Shape(left - 10, top + middle + 5, "ink", text=token, size=15, anchor="end")
               for middle, token in zip(middles, TOKENS, strict=True)]
    shapes += [Shape(left, top - 32, "soft", text="key (attended to)", size=14),
               Shape(left - 10, top - 10, "soft", text="query", size=14, anchor="end")]
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
