"""Figure style, figure files and their alternative text.

What it does: one style for every figure of the course (`use_style`), files with the same bytes on every run
(`save_figure`), and a description in words computed from what was drawn (`alt_text`). What it does not do:
draw. `course_utils.heatmaps` draws attention; any matplotlib figure can be saved here.

`COURSE_STYLE=present` gives larger type for a projector; `COURSE_OUTPUTS` names another output folder.
"""

from __future__ import annotations

import html
import io
import os
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure

from course_utils.figure_text import describe_axes
from course_utils.files import write_bytes, write_text
from course_utils.heatmap_text import FONT, sentence

SAVE_DPI = 144  # nine inches make 1296 pixels: a full screen at 1280 x 720
# Okabe and Ito's colours, which the common forms of colour blindness keep apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]


@dataclass(frozen=True)
class Sizes:
    """Type sizes in points for a figure nine inches wide, and how many tokens such type has room for."""

    token: float = 12.0
    small: float = 10.0
    title: float = 14.0
    smallest: float = 8.0  # below this, numbers are left out and labels thinned
    line: float = 2.0
    max_tokens: int = 24
    ink: str = "#1a1a1a"
    tallest: float = float("inf")  # points: a grid of heads nine inches wide gets no higher


_SIZES = {"read": Sizes(),
          # tallest: three quarters of the width, since a higher figure is scaled down on a wide screen
          "present": Sizes(token=16, small=13, title=19, smallest=10, line=2.8, max_tokens=14, ink="#000000", tallest=486)}


def sizes() -> Sizes:
    """The sizes that COURSE_STYLE asks for: 'read' (the default) or 'present'."""
    name = os.environ.get("COURSE_STYLE") or "read"
    if name not in _SIZES:
        raise ValueError(f"COURSE_STYLE={name!r} is not a style of the course; set it to 'read' or 'present'")
    return _SIZES[name]


def style() -> dict[str, object]:
    """The course's matplotlib settings, for `mpl.rc_context(style())`."""
    size = sizes()
    return {
        "font.family": [FONT],
        "font.size": size.token,
        "axes.titlesize": size.title,
        "axes.titlelocation": "left",
        "axes.labelsize": size.token,
        "xtick.labelsize": size.token - 1,
        "ytick.labelsize": size.token - 1,
        "legend.fontsize": size.token - 1,
        "text.color": size.ink,
        "axes.labelcolor": size.ink,
        "axes.edgecolor": size.ink,
        "xtick.color": size.ink,
        "ytick.color": size.ink,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": mpl.cycler(color=COLOURS),
        "lines.linewidth": size.line,
        "figure.figsize": (9.0, 5.0),
        "figure.dpi": 100.0,  # 900 pixels: the width of a notebook's output
        "savefig.dpi": float(SAVE_DPI),
        "hatch.linewidth": 0.8,
        "svg.fonttype": "path",
        "svg.hashsalt": "attention",
    }


# White at zero, then ever darker: lightness alone orders the weights, so grey print and colour blindness do too.
WEIGHT_MAP = LinearSegmentedColormap.from_list(
    "weights", ["#ffffff", "#d3e4f3", "#93c1e0", "#4a90c6", "#1b5fa8", "#08306b"])
# Orange for less and blue for more keep apart for the colour-blind; in grey both are dark, so 'less' is marked.
DIFFERENCE_MAP = LinearSegmentedColormap.from_list(
    "difference", ["#7f2f00", "#d1701f", "#f5c497", "#ffffff", "#a9cde8", "#3f86c1", "#08306b"])


def luminance(colour: object) -> float:
    """Relative luminance of a colour, from 0 (black) to 1 (white), as WCAG 2 defines it."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: object, other: object) -> float:
    """Contrast ratio of two colours, from 1 to 21; text needs 4.5 (WCAG 2, success criterion 1.4.3)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def ink_on(colour: object) -> str:
    """Black or white, whichever is easier to read on `colour`."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, colour))


def lettering(colour: object, size: float) -> dict[str, object]:
    """Text settings for type of `size` points on `colour`: the ink and, on middle tones, near to both inks, a halo.

    The ink alone has a contrast of 4.5 or more on every colour; the halo, a lighter shade under black and a darker
    one under white, raises what touches the letters to 6.5 and more.
    """
    ink = ink_on(colour)
    if contrast(ink, colour) >= 6.5:
        return {"color": ink}
    halo, share = ("#ffffff", 0.8) if ink == "#000000" else ("#000000", 0.4)
    shade = [share * far + (1 - share) * near for far, near in zip(to_rgb(halo), to_rgb(colour), strict=True)]
    return {"color": ink, "path_effects": [patheffects.withStroke(linewidth=0.18 * size, foreground=to_hex(shade))]}


def use_style() -> None:
    """Set the course's style for every figure made from now on."""
    mpl.rcParams.update(style())


# ---------------------------------------------------------------- alternative text


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


# ---------------------------------------------------------------- files


def output_folder() -> Path:
    """Where figures go: COURSE_OUTPUTS, else `outputs` in the project, else `outputs` where Python runs."""
    if named := os.environ.get("COURSE_OUTPUTS"):
        return Path(named)
    here = Path.cwd().resolve()
    for folder in (Path(__file__).resolve().parents[1], here, *here.parents):
        if (folder / "course_utils").is_dir() and (folder / "pyproject.toml").is_file():
            return folder / "outputs"
    return here / "outputs"


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
