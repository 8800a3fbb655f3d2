"""Heatmaps of attention: one matrix, a grid of heads, and sentences coloured by weight.

What it does: rows are queries ('attends from'), columns are keys ('attended to'); what is compared shares one
colour scale, and the scale is stated; wrong weights or labels are errors. What it does not do: compute or
change weights. A long text is cut to head and tail with a 'rest' column that keeps each row's sum.

    ax = plot_attention(weights, tokens)                  # weights: (query, key)
    fig, axes = plot_attention_heads(weights, tokens)     # (heads, query, key) or (layers, heads, query, key)
    shared_colorbar(axes)                                 # one bar for axes of your own, drawn on one scale
    ax = token_strip(tokens, weights)                     # weights: (token,)
    text = save_figure(fig, "04_by_hand")                 # outputs/04_by_hand.png, .svg and .txt
"""

from course_utils.figures import alt_text, save_figure, use_style
from course_utils.heatmaps.heads import plot_attention_heads
from course_utils.heatmaps.matrices import plot_attention, shared_colorbar
from course_utils.heatmaps.strips import token_strip

__all__ = ["alt_text", "plot_attention", "plot_attention_heads", "save_figure", "shared_colorbar", "token_strip",
           "use_style"]
