"""The colour bar beside one heatmap, or one for several axes.

Does: draw the scale with its ends, ticks and name. Does not: draw heatmaps; `shared_colorbar` knows what
`plot_attention` has noted on its axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.text import Text

from course_utils.figures import Sizes, set_alt_text, sizes, style
from course_utils.figures.text import one_line, text_width
from course_utils.heatmaps.cells import Numbers, Scale, points_of
from course_utils.heatmaps.labels import label_axes
from course_utils.heatmaps.views import View, scale_ticks

BAR_GAP, BAR_WIDTH = 14, 13  # points between the cells and the bar, and across the bar
ROUND_OFF = 1e-6  # of the scale: what is beyond its end by less gets no arrow
AFTER_LAYOUT = 0.97  # of a cell: a layout engine may still take a little room from the axes


@dataclass(frozen=True)
class Drawn:
    """What `plot_attention` drew on axes, noted there for a bar added later."""

    view: View
    scale: Scale
    written: list[Text]
    numbers: Numbers


def drawing_style():
    """The course's style while drawing, with mathtext off: a token's '$' is a dollar sign."""
    return mpl.rc_context({**style(), "text.parse_math": False})


def bar_room(size: Sizes) -> float:
    """Points to the right of the cells for a colour bar with its numbers and label."""
    return BAR_GAP + BAR_WIDTH + text_width("−0.25", size.small) + 2.2 * size.small + 6


def draw_bar(fig: Figure, cax: Axes | None, panels: list[Axes], views: list[View], scale: Scale, size: Sizes,
             label: str | None = None) -> Colorbar:
    """One bar for the scale that the panels share, with arrows where values lie beyond its ends.

    It is drawn on `cax`, or takes its room from the panels.
    """
    shown = np.concatenate([view.cells[view.coloured] for view in views])
    over, under = (shown > scale.high * (1 + ROUND_OFF)).any(), (shown < scale.low - ROUND_OFF * scale.high).any()
    extend = {(False, False): "neither", (True, False): "max", (False, True): "min", (True, True): "both"}[over, under]
    place = {"cax": cax} if cax is not None else {"ax": panels, "fraction": 0.05, "pad": 0.03}
    bar = fig.colorbar(ScalarMappable(Normalize(scale.low, scale.high), scale.colours), extend=extend, **place)
    ticks = scale_ticks(scale.low, scale.high)
    bar.set_ticks(ticks, labels=[f"{tick:.4g}".replace("-", "−") for tick in ticks])
    bar.ax.tick_params(labelsize=size.small, length=2.5)
    bar.ax.minorticks_off()
    bar.outline.set_linewidth(0.6)
    told = "difference in weight (− is less)" if scale.signed else "attention weight"
    bar.set_label(one_line(label) if label else told, size=size.small, parse_math=False)
    set_alt_text(bar.ax, "")
    return bar


def shared_colorbar(axes, *, label: str | None = None) -> Colorbar:
    """Draw one colour bar for several axes that `plot_attention(..., colorbar=False, ax=...)` drew on one scale.

        fig, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
        plot_attention(before, tokens, vmax=1, colorbar=False, ax=axes[0])
        plot_attention(after, tokens, vmax=1, colorbar=False, ax=axes[1])
        shared_colorbar(axes)

    Args:
        axes: the axes, in an array or a list, all of one figure.
        label: a name for the scale; 'attention weight' or 'difference in weight' by default.

    Raises:
        ValueError: no axes, axes that `plot_attention` did not draw, or different scales.
    """
    panels = list(np.atleast_1d(np.asarray(axes, dtype=object)).flat)
    drawn = _drawn_on(panels)
    size, fig = sizes(), panels[0].figure
    with drawing_style():
        bar = draw_bar(fig, None, panels, [part.view for part in drawn], drawn[0].scale, size, label)
        fig.draw_without_rendering()  # the bar takes its room from the axes: what no longer fits becomes smaller
        for ax, part in zip(panels, drawn, strict=True):
            _refit(ax, part, size)
    return bar


def _drawn_on(panels: list) -> list[Drawn]:
    """What was drawn on the axes. Raises ValueError unless one bar can serve them all."""
    if not panels or not all(isinstance(ax, Axes) for ax in panels):
        raise ValueError("axes holds no axes, or something else; expected the axes that plot_attention drew on")
    drawn = [getattr(ax, "_course_drawn", None) for ax in panels]
    if None in drawn:
        raise ValueError(f"axes[{drawn.index(None)}] was not drawn by plot_attention: draw on it first, with colorbar=False")
    if len({ax.figure for ax in panels}) > 1:
        raise ValueError("the axes are not of one figure; a bar belongs to one figure: make the axes with plt.subplots")
    scales = list(dict.fromkeys(part.scale for part in drawn))
    if len(scales) > 1:
        told = "; ".join(f"{kind} from {low:.4g} to {high:.4g}" for kind, low, high in scales)
        raise ValueError(f"the axes have different scales ({told}); one bar needs one scale: give each the same vmax=")
    return drawn


def _refit(ax: Axes, part: Drawn, size: Sizes) -> None:
    """Token labels and numbers at the size that the axes have room for now; axis names stay as they are."""
    names = ax.get_xlabel(), ax.get_ylabel()
    label_axes(ax, part.view, size, rows=bool(ax.get_yticklabels()), columns=bool(ax.get_xticklabels()))
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    rows, columns = part.view.cells.shape
    width, height = points_of(ax)
    points = part.numbers.size(AFTER_LAYOUT * width / columns, AFTER_LAYOUT * height / rows, part.scale, size)
    for text in part.written:
        text.set_fontsize(min(text.get_fontsize(), points or size.smallest))
