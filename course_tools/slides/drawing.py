"""Inside a notebook's kernel: draw each shown figure at the size it has on a slide, and measure its smallest type.

Does: take the place of what draws pictures for the notebook, until the kernel ends. Does not: choose or keep pictures; that
is done by `pictures`, which puts a call of `draw_for_slides` before a notebook's first cell.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

WIDE, HIGH = 1200, 560  # CSS pixels that a picture may fill on a slide of 1280 x 720, below its heading
DENSE = 1.5             # pixels of the file for each of them, so that a picture is still sharp on a larger screen
LARGEST = 2.2           # CSS pixels a point: a small figure isn't blown up any further
INDEX = 0.75            # type with indices counts as three quarters of its size: 24 pixels for 18
EDGE = 0.08             # inches around a figure


def draw_for_slides() -> None:
    """From now on a shown figure fills a slide, and its metadata hold its width, height and smallest type in CSS pixels."""
    import matplotlib_inline.backend_inline  # noqa: F401  (it puts matplotlib's own function in place, so it must come first)
    from IPython import get_ipython

    get_ipython().display_formatter.formatters["image/png"].for_type(Figure, drawn)


def drawn(fig: Figure) -> tuple[bytes, dict]:
    """A figure as a PNG, and {"width": …, "height": …, "smallest_type": …}, all three in CSS pixels of the slide."""
    fig.draw_without_rendering()
    box = fig.get_tightbbox().padded(EDGE)                                 # in inches
    a_point = min(WIDE / box.width / 72, HIGH / box.height / 72, LARGEST)  # CSS pixels
    png = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "attention"}):
        fig.savefig(png, format="png", dpi=72 * DENSE * a_point, bbox_inches=box, facecolor="white")
    return png.getvalue(), {"width": round(72 * box.width * a_point), "height": round(72 * box.height * a_point),
                            "smallest_type": round(a_point * smallest_type(fig), 1)}


def smallest_type(fig: Figure) -> float:
    """The size in points of the smallest text that is drawn on a figure; inf without any."""
    return min((text.get_fontsize() * (INDEX if has_index(text) else 1) for text in texts_of(fig)), default=float("inf"))


def has_index(text: Text) -> bool:
    """Whether a text is a formula with something small above or below its line."""
    return text.get_text().count("$") > 1 and any(mark in text.get_text() for mark in "_^")


def texts_of(fig: Figure) -> Iterator[Text]:
    """Every text that is drawn on a figure, the labels of its ticks only where they are shown."""
    hidden = set()
    for ax in fig.findobj(Axes):
        for axis in (ax.xaxis, ax.yaxis):
            shown = set(axis._update_ticks()) if ax.axison and ax.get_visible() and axis.get_visible() else set()
            for tick in [*axis.majorTicks, *axis.minorTicks]:
                if tick not in shown:
                    hidden |= {tick.label1, tick.label2}
            if not ax.axison:
                hidden.add(axis.label)
    for text in fig.findobj(Text):
        if text not in hidden and text.get_visible() and text.get_text().strip(" ⋮"):
            yield text
