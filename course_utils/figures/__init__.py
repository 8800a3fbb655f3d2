"""How the course's figures look, how they are saved, and what they say in words.

    use_style()                                   one style for every figure (`appearance`)
    text = save_figure(fig, "04_by_hand")         outputs/04_by_hand.png, .svg and .txt (`saving`)
    set_alt_text(ax, "…");  alt_text(fig)         what is drawn, in words, from the data (`descriptions`)

`course_utils.heatmaps` draws attention; any matplotlib figure can be saved here.
"""

from course_utils.figures.appearance import (
    COLOURS,
    DIFFERENCE_MAP,
    SAVE_DPI,
    WEIGHT_MAP,
    Sizes,
    contrast,
    ink_on,
    lettering,
    luminance,
    sizes,
    style,
)
from course_utils.figures.notebooks import use_style
from course_utils.figures.saving import alt_text, save_figure, set_alt_text

__all__ = ["COLOURS", "DIFFERENCE_MAP", "SAVE_DPI", "WEIGHT_MAP", "Sizes", "alt_text", "contrast", "ink_on", "lettering",
           "luminance", "save_figure", "set_alt_text", "sizes", "style", "use_style"]
