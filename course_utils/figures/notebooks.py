"""What a notebook's first cell switches on: the course's style, and alternative texts for the figures that it shows.

Does: attach `alt_text(fig)` to every picture shown after `use_style()`, as the metadata of the output, where nbconvert
and pages built from notebooks read it. Does not: draw or save.
"""

from __future__ import annotations

import sys

import matplotlib as mpl
from matplotlib.figure import Figure

from course_utils.figures.appearance import style
from course_utils.figures.fitting import fit_slide
from course_utils.figures.saving import alt_text

INLINE = ("inline", "module://matplotlib_inline.backend_inline")


def use_style() -> None:
    """Set the course's style for every figure made from now on, and describe in words those that are shown."""
    mpl.rcParams.update(style())
    _describe_what_is_shown()


def _describe_what_is_shown() -> None:
    """From now on, the metadata of a shown figure is {"image/png": {"alt": its alternative text}}.

    Outside a notebook, or where figures open in windows of their own, nothing changes. Calling it twice is as
    good as once. A figure that can't be described (nothing is drawn on it) is shown without a text.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or mpl.get_backend() not in INLINE:
        return
    import matplotlib_inline.backend_inline  # noqa: F401  (it puts matplotlib's own function in place, so it must come first)

    formatter = shell.display_formatter.formatters["image/png"]
    draw = formatter.lookup_by_type(Figure)
    if getattr(draw, "describes", False):
        return

    def drawn_and_described(fig: Figure):
        fit_slide(fig)
        picture = draw(fig)
        png, metadata = picture if isinstance(picture, tuple) else (picture, {})   # a tuple for high-resolution screens
        try:
            return png, {**metadata, "alt": alt_text(fig)}
        except ValueError:
            return picture

    drawn_and_described.describes = True
    formatter.for_type(Figure, drawn_and_described)
