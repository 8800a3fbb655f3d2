"""How the course's figures look, how they are saved, and what they say in words.

    use_style()                                   one style for every figure (`appearance`)
    text = save_figure(fig, "04_by_hand")         outputs/04_by_hand.png, .svg and .txt (`saving`)
    set_alt_text(ax, "…");  alt_text(fig)         what is drawn, in words, from the data (`descriptions`)
    d = Diagram();  d.box(…);  d.arrow(…)         a labelled diagram of what is built (`diagrams`)
    plot_tokens(tokens, ids)                      a sequence as coloured tokens with their ids (`tokens`)
    plot_batch(token_ids, attention_mask)         a padded batch as a grid, with its mask (`tokens`)

POSITIVE (blue) and NEGATIVE (orange) mean that and nothing else; all else takes the colours of COLOURS.
`course_utils.heatmaps` draws attention; any matplotlib figure can be saved here.
"""

from course_utils.figures.appearance import (
    COLOURS,
    DIFFERENCE_MAP,
    NEGATIVE,
    POSITIVE,
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
from course_utils.figures.diagrams import Diagram
from course_utils.figures.saving import alt_text, save_figure, set_alt_text, use_style
from course_utils.figures.tokens import plot_batch, plot_tokens

__all__ = ["COLOURS", "DIFFERENCE_MAP", "NEGATIVE", "POSITIVE", "SAVE_DPI", "WEIGHT_MAP", "Diagram", "Sizes", "alt_text",
           "contrast", "ink_on", "lettering", "luminance", "plot_batch", "plot_tokens", "save_figure", "set_alt_text",
           "sizes", "style", "use_style"]
