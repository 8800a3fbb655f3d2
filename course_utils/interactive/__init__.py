"""Figures to touch: self-contained HTML that answers a mouse, a finger or a key, and asks no network for anything.

Does: draw what it is given, in notebooks, on the site and on slides alike. Does not: train, or draw figures for print (see
`course_utils.heatmaps`). Each file names its piece; `piece` holds what they share.

    attention_view(model, text)                   what a model attends to, token by token, in every layer and head; by word,
                                                  from one text to another, and saved as a picture
    temperature_view(scores, tokens)              softmax of a few scores, with a temperature and a width to move
    dot_product_view(query, keys)                 arrows to drag: dot products, weights, and the mean of the values
    rotary_view(query, key)                       a query and a key that turn with their positions
    animation_view("causal-mask")                 an animation to play and step through
"""

from course_utils.interactive.animations import animation_view
from course_utils.interactive.attention_view import attention_view
from course_utils.interactive.classifier_view import classifier_view, gates_view
from course_utils.interactive.dot_product_view import dot_product_view, soft_lookup
from course_utils.interactive.piece import Piece
from course_utils.interactive.rotary_view import rotary_score, rotary_view
from course_utils.interactive.temperature_view import softmax_row, temperature_view

__all__ = ["Piece", "animation_view", "attention_view", "classifier_view", "dot_product_view", "gates_view", "rotary_score",
           "rotary_view", "soft_lookup", "softmax_row", "temperature_view"]
