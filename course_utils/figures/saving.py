"""Figure files, the same bytes on every run, and the alternative text that goes with them.

Does: a description in words computed from what was drawn (`alt_text`), PNG, SVG and text (`save_figure`). Does not: draw.
`COURSE_OUTPUTS` names another output folder.
"""

from __future__ import annotations

import html
import io
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.figures.appearance import SAVE_DPI
from course_utils.figures.descriptions import describe_axes
from course_utils.figures.fitting import fit_slide
from course_utils.figures.text import sentence
from course_utils.files import write_bytes, write_text
from course_utils.files.paths import output_folder


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
