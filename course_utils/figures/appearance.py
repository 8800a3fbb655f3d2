"""One style for every figure of the course: sizes, colours, lettering. Does not draw, and does not save.

`COURSE_STYLE=present` gives larger type for a projector.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib import patheffects
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb

from course_utils.figures.text import FONT

SAVE_DPI = 144  # nine inches make 1296 pixels: a full screen at 1280 x 720
# Blue and orange mean positive and negative in every figure, and nothing else.
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"
# All other lines and bars: green, purple, olive, grey, rose, black. Contrast with white is 3 or more, and the common
# forms of colour blindness keep any two of them, and each from blue and orange, apart (by lightness where not by hue).
COLOURS = ["#1B8A3A", "#882D8E", "#6B6100", "#808080", "#B8345F", "#000000"]


@dataclass(frozen=True)
class Sizes:
    """Type sizes in points for a figure nine inches wide, and how many tokens such type has room for."""

    token: float = 12.0
    small: float = 10.0
    shape: float = 10.0  # in diagrams: shapes in boxes, and words at arrows
    cell: float = 62.0  # points: the widest cell of a map that stands alone
    title: float = 14.0
    smallest: float = 8.0  # below this, numbers are left out and labels thinned
    line: float = 2.0
    max_tokens: int = 24
    ink: str = "#1a1a1a"
    tallest: float = float("inf")  # points: a figure gets no higher
    strip_tokens: int = 120


STYLES = {"read": Sizes(),
          # tallest: nine inches at 560 to 1200 less the edge of a saved figure, so that it fills a slide below its heading
          "present": Sizes(token=16, small=13, shape=15, cell=100, title=19, smallest=10, line=2.8, max_tokens=14,
                           ink="#000000", tallest=294, strip_tokens=60)}


def sizes() -> Sizes:
    """The sizes that COURSE_STYLE asks for: 'read' (the default) or 'present'."""
    name = os.environ.get("COURSE_STYLE") or "read"
    if name not in STYLES:
        raise ValueError(f"COURSE_STYLE={name!r} is not a style of the course; set it to 'read' or 'present'")
    return STYLES[name]


def style() -> dict[str, object]:
    """The course's matplotlib settings, for `mpl.rc_context(style())`."""
    size = sizes()
    return {
        "font.family": [FONT],
        "font.size": size.token,
        "axes.titlesize": size.title,
        "axes.titlelocation": "left",
        "axes.labelsize": size.token,
        "xtick.labelsize": size.token - 1,
        "ytick.labelsize": size.token - 1,
        "legend.fontsize": size.token - 1,
        "text.color": size.ink,
        "axes.labelcolor": size.ink,
        "axes.edgecolor": size.ink,
        "xtick.color": size.ink,
        "ytick.color": size.ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": mpl.cycler(color=COLOURS),
        "lines.linewidth": size.line,
        "figure.figsize": (9.0, 5.0),
        "figure.dpi": 100.0,  # 900 pixels: the width of a notebook's output
        "savefig.dpi": float(SAVE_DPI),
        "hatch.linewidth": 0.8,
        "svg.fonttype": "path",
        "svg.hashsalt": "attention",
    }


# White at zero, then ever darker: lightness alone orders the weights, so grey print and colour blindness do too.
WEIGHT_MAP = LinearSegmentedColormap.from_list(
    "weights", ["#ffffff", "#e8daf1", "#c8a8dc", "#a06cc0", "#73369a", "#3a0b57"])
# Orange for less and blue for more keep apart for the colour-blind; in grey both are dark, so 'less' is marked.
DIFFERENCE_MAP = LinearSegmentedColormap.from_list(
    "difference", ["#7f2f00", "#d1701f", "#f5c497", "#ffffff", "#a9cde8", "#3f86c1", "#08306b"])


def luminance(colour: object) -> float:
    """Relative luminance of a colour, from 0 (black) to 1 (white), as WCAG 2 defines it."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: object, other: object) -> float:
    """Contrast ratio of two colours, from 1 to 21; text needs 4.5 (WCAG 2, success criterion 1.4.3)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def ink_on(colour: object) -> str:
    """Black or white, whichever is easier to read on `colour`."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, colour))


def lettering(colour: object, size: float) -> dict[str, object]:
    """Text settings for type of `size` points on `colour`: the ink and, on middle tones, near to both inks, a halo.

    The ink alone has a contrast of 4.5 or more on every colour; the halo, a lighter shade under black and a darker
    one under white, raises what touches the letters to 6.5 and more.
    """
    ink = ink_on(colour)
    if contrast(ink, colour) >= 6.5:
        return {"color": ink}
    halo, share = ("#ffffff", 0.8) if ink == "#000000" else ("#000000", 0.4)
    shade = [share * far + (1 - share) * near for far, near in zip(to_rgb(halo), to_rgb(colour), strict=True)]
    return {"color": ink, "path_effects": [patheffects.withStroke(linewidth=0.18 * size, foreground=to_hex(shade))]}
