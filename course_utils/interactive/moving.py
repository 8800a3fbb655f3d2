"""Animations drawn by code: shapes whose place, colour and visibility change from step to step.

Does: one `Animation` as an animated SVG (still for readers who ask for less motion), as a still SVG, and as a piece with a
play button and a step slider. The SVG is text with the same bytes each time. Does not: know what is shown.
"""

from __future__ import annotations

import html
from typing import NamedTuple

from matplotlib.colors import to_rgb

from course_utils.interactive.drawing import INK, LINE, PURPLE, SOFT, bar, label, picture, short
from course_utils.interactive.piece import Piece

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
