"""Figures to touch: self-contained HTML that answers a mouse, a finger or a key, and asks no network for anything.

Does: draw what it is given, in notebooks, on the site and on slides alike. Does not: train, or draw figures for print (see
`course_utils.heatmaps`). Each file names its piece; `piece` holds what they share.
"""

from course_utils.interactive.piece import Piece

__all__ = ["Piece"]
