"""Figures as they're shown and saved: made to fit a slide, the same bytes on every run, with their alternative text.

Does: a description in words computed from what was drawn (`alt_text`), PNG, SVG and text (`save_figure`); after
`use_style()`, the description as metadata of every picture that a notebook shows, where nbconvert and pages built from
notebooks read it. With COURSE_STYLE=present, which limits how high a figure gets, one with an automatic layout is lowered,
the cells of its maps are widened, and titles and labels that larger type has made collide shrink. Does not: draw, or touch a
figure made to measure (heatmaps, diagrams, tokens fit by themselves). `COURSE_OUTPUTS` names another output folder.
"""

from __future__ import annotations

import html
import io
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from course_utils.figures.appearance import SAVE_DPI, Sizes, sizes, style
from course_utils.figures.descriptions import describe_axes
from course_utils.figures.text import sentence
from course_utils.files import write_bytes, write_text
from course_utils.files.paths import output_folder

BETWEEN = 0.4  # of the type's size: the least room between two labels
PASSES = 6      # smaller type moves the axes, which may leave other room
SLACK = 1       # pixels by which a title may miss the edge


def fit_slide(fig: Figure) -> None:
    """Fit a figure to a slide; once it fits, nothing changes any more."""
    size = sizes()
    if fig.get_layout_engine() is None or size.tallest == float("inf"):
        return
    if 72 * fig.get_figheight() > size.tallest:
        fig.set_figheight(size.tallest / 72)
        for ax in fig.axes:
            if ax.images or any(isinstance(drawn, QuadMesh) for drawn in ax.collections):
                ax.set_aspect("auto")
    for _ in range(PASSES):
        fig.draw_without_rendering()
        if not sum(_shrink_labels(ax, size) + _shrink_title(ax, size) for ax in fig.axes):
            break


def _shrink_labels(ax: Axes, size: Sizes) -> bool:
    """Smaller labels below the axes where level ones collide; whether there were any."""
    shown = [label for label in ax.get_xticklabels() if label.get_text() and label.get_visible()] if ax.axison else []
    if len(shown) < 2 or any(label.get_rotation() for label in shown):
        return False
    points, boxes = shown[0].get_fontsize(), sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
    gap = BETWEEN * points * ax.figure.dpi / 72
    room = min((after.x0 + after.x1 - before.x0 - before.x1) / (before.width + after.width + 2 * gap)
               for before, after in zip(boxes, boxes[1:]))
    if not 0 < room < 1 or points <= size.smallest:
        return False
    ax.tick_params(axis="x", labelsize=max(size.smallest, 0.99 * room * points))
    return True


def _shrink_title(ax: Axes, size: Sizes) -> bool:
    """A smaller title where it would reach beyond the figure; whether it would."""
    edge, changed = ax.figure.bbox.x1, False
    for title in (ax.title, ax._left_title, ax._right_title):
        box, points = title.get_window_extent(), title.get_fontsize()
        if title.get_text() and box.x1 > edge + SLACK and points > size.smallest:
            title.set_fontsize(max(size.smallest, points * (edge - box.x0) / box.width))
            changed = True
    return changed


def set_alt_text(artist: Axes | Figure, text: str) -> None:
    """Attach a description to axes or a figure; an empty one marks axes that need none (a colour bar)."""
    artist._course_alt_text = text


def alt_text(artist: Axes | Figure) -> str:
    """The description in words of a figure or of one axes, computed from what is drawn on it.

    Axes drawn by `course_utils.heatmaps` carry theirs. Lines, bars, histograms, error bars, bands, points and
    grids of other axes are described by their number, range and end values, places by the names on the axis.
    """
    if isinstance(artist, Axes):
        return _axes_text(artist)
    whole = getattr(artist, "_course_alt_text", None)
    if whole is not None:
        return whole
    heading = sentence(artist.get_suptitle()) + " " if artist.get_suptitle() else ""
    parts = [text for text in map(_axes_text, artist.axes) if text]
    if not parts:
        raise ValueError("the figure has no axes with anything drawn on them: draw first, then save")
    return heading + " ".join(parts)


def _axes_text(ax: Axes) -> str:
    text = getattr(ax, "_course_alt_text", None)
    if text == "" or ax.get_label() == "<colorbar>":
        return ""
    if text is None:
        text = describe_axes(ax)
    titles = [ax.get_title(loc) for loc in ("left", "center", "right")]
    heading = "".join(sentence(title) + " " for title in titles if title.strip())
    return heading + text if text else ""


def save_figure(fig: Figure, name: str, folder: str | Path | None = None) -> str:
    """Write `name.png`, `name.svg` and `name.txt`, the same bytes each time; return the alternative text.

    The text (`alt_text(fig)`) says what is drawn, from the data. It stands in the PNG as 'Description', in the
    SVG as its description, and alone in the text file. The folder is made where it is missing; without one
    the files go to `output_folder()`. Raises ValueError for a name with a folder or an ending, and for a
    figure with nothing on it.
    """
    if name in ("", ".", "..") or name != Path(name).name or "\\" in name or name.lower().endswith((".png", ".svg", ".txt")):
        raise ValueError(f"name={name!r}: expected a file name with no folder and no ending, such as "
                         f"'04_by_hand'; the files get .png and .svg, and folder= says where they go")
    text = alt_text(fig)
    fit_slide(fig)
    folder = output_folder() if folder is None else Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    engine = fig.get_layout_engine()
    png, svg = io.BytesIO(), io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "attention", "svg.fonttype": "path"}):
        if engine is not None:
            # An automatic layout moves a little at each drawing: let it settle, then hold it for both files.
            before = None
            for _ in range(12):
                fig.draw_without_rendering()
                now = [ax.get_position().bounds for ax in fig.axes]
                if now == before:
                    break
                before = now
            fig.set_layout_engine("none")
        shared = {"bbox_inches": "tight", "pad_inches": 0.08, "facecolor": "white"}
        try:
            fig.savefig(png, format="png", dpi=SAVE_DPI, metadata={"Description": text, "Software": None}, **shared)
            fig.savefig(svg, format="svg", metadata={"Description": text, "Date": None, "Creator": None}, **shared)
        finally:
            if engine is not None:
                fig.set_layout_engine(engine)
    write_bytes(folder / f"{name}.png", png.getvalue())
    write_text(folder / f"{name}.svg", _with_description(svg.getvalue().decode(), text))
    write_text(folder / f"{name}.txt", f"{text}\n")
    return text


def _with_description(svg: str, text: str) -> str:
    """Add the `<desc>` that screen readers look for; matplotlib writes the description as metadata only."""
    start = svg.index("<svg")
    end = svg.index(">", start)
    return f'{svg[:end]} role="img">\n <desc>{html.escape(text, quote=False)}</desc>{svg[end + 1:]}'


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
