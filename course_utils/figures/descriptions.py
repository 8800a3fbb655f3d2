"""What a figure of lines, bars or points says, in words computed from what was drawn on its axes.

What it does: `describe_axes` reads lines, bars, histograms (bars or steps), error bars, bands, points, marks and
grids off the axes, and names a place by its label on the axis where it has one. What it does not do: guess what
a figure means; where its shapes are no data, the drawing cell says it with `set_alt_text`.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.category import StrCategoryFormatter
from matplotlib.collections import FillBetweenPolyCollection, LineCollection, PathCollection, QuadMesh
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.patches import Polygon, StepPatch
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter

from course_utils.figures.text import count, one_line

LISTED = 24  # so many bars or points are given one by one; more are summed up


def describe_axes(ax: Axes) -> str:
    """One sentence for each thing drawn on `ax`, after the names of the axes; empty where nothing is drawn."""
    names = (_names(ax.xaxis), _names(ax.yaxis))
    with_errors = [container for container in ax.containers if isinstance(container, ErrorbarContainer)]
    of_errors = {id(part) for errors in with_errors for part in (errors.lines[0], *errors.lines[1], *errors.lines[2])}
    of_bars = {id(bars.errorbar) for bars in ax.containers if isinstance(bars, BarContainer)}
    parts = []
    for line in ax.get_lines():
        if id(line) in of_errors or line.get_transform() != ax.transData:
            continue  # described with its error bars, or a reference line across the axes
        x, y = (np.ma.masked_invalid(np.asarray(v, dtype=float)) for v in line.get_data(orig=False))
        if (~(np.ma.getmaskarray(x) | np.ma.getmaskarray(y))).sum() < 2:
            continue  # a lone marker
        joined = line.get_linestyle().lower() not in ("none", "", " ")
        parts.append(_line(x, y, line, names) if joined else _points(np.ma.column_stack([x, y]), line, names))
    for container in ax.containers:
        if isinstance(container, BarContainer):
            parts.append(_bars(container, names))
        elif isinstance(container, ErrorbarContainer) and id(container) not in of_bars:
            parts.append(_error_bars(container, names))
    for patch in ax.patches:
        outline = _outline(patch)
        if outline is not None:
            parts.append(_histogram(*outline, _label(patch)))
    for drawn in [*ax.collections, *ax.images]:
        if isinstance(drawn, PathCollection):
            parts.append(_points(np.ma.masked_invalid(drawn.get_offsets()), drawn, names))
        elif isinstance(drawn, FillBetweenPolyCollection):
            parts.append(_band(drawn, names))
        elif isinstance(drawn, LineCollection):
            if id(drawn) not in of_errors and drawn.get_transform() == ax.transData:
                parts.append(_marks(drawn, names))
        elif (isinstance(drawn, QuadMesh) or drawn in ax.images) and drawn.get_array() is not None:
            grid = np.ma.masked_invalid(drawn.get_array())
            parts.append(f"Grid of {' x '.join(map(str, grid.shape))} values from {_number(grid.min())} to "
                         f"{_number(grid.max())}{_sides(names)}.")
    parts = [part for part in parts if part]
    titles = [one_line(name, 80) if name.strip() else "" for name in (ax.get_xlabel(), ax.get_ylabel())]
    if parts and any(titles):
        parts.insert(0, f"Across: {titles[0] or 'no label'}; up: {titles[1] or 'no label'}.")
    return " ".join(parts)


# ---------------------------------------------------------------- places


def _number(value: float) -> str:
    return "no value" if np.ma.is_masked(value) or np.isnan(value) else f"{float(value) + 0.0:.4g}"  # never '-0'


def _names(axis: Axis) -> dict[float, str]:
    """Place -> label, for an axis whose labels were given as text; empty for an axis of plain numbers."""
    formatter = axis.get_major_formatter()
    given = isinstance(formatter, FuncFormatter) and isinstance(axis.get_major_locator(), FixedLocator)  # set_xticks
    if not given and not isinstance(formatter, (FixedFormatter, StrCategoryFormatter)):
        return {}
    places = [float(place) for place in axis.get_majorticklocs()]
    labels = [str(label) for label in formatter.format_ticks(places)]  # labels may be numbers
    named = {place: one_line(label, 60) for place, label in zip(places, labels, strict=True) if label.strip()}
    return {} if all(_is(place, label) for place, label in named.items()) else named


def _is(place: float, label: str) -> bool:
    """Whether the label only writes the number itself, as '1,000' does."""
    try:
        return float(label.replace(",", "").replace("−", "-")) == place
    except ValueError:
        return False


def _place(value: float, names: dict[float, str]) -> str:
    """The label at this place of the axis, else the number."""
    near = _nearest(value, names, 1e-6 * max(1.0, abs(value)))
    return _number(value) if near is None or _is(near, names[near]) else names[near]


def _nearest(value: float, names: dict[float, str], within: float) -> float | None:
    near = min(names, key=lambda place: abs(place - value), default=None)
    return near if near is not None and abs(near - value) <= within else None


def _category(value: float, names: dict[float, str]) -> str | None:
    """The label of the category that a value beside its place belongs to, as dodged bars and jittered points have it."""
    places = sorted(names)
    apart = min((b - a for a, b in zip(places, places[1:], strict=False)), default=1.0)
    near = _nearest(value, names, 0.5 * apart)
    return None if near is None else names[near]


def _label(artist: object) -> str:
    """' 'the label'', or nothing for one that matplotlib made up."""
    label = str(artist.get_label() or "")
    return f" '{one_line(label, 60)}'" if label and not label.startswith("_") else ""


def _sides(names: tuple[dict[float, str], dict[float, str]]) -> str:
    return "".join(f"; {side}: {', '.join(named.values())}" for side, named in zip(("columns", "rows"), names, strict=True)
                   if 0 < len(named) <= LISTED)


# ---------------------------------------------------------------- what is drawn


def _extremes(values: np.ma.MaskedArray) -> tuple[int, int]:
    """Where the lowest and the highest value stand; of values equal but for rounding, the first."""
    rounded = np.ma.round(values / (np.ma.abs(values).max() or 1.0), 6)
    return int(rounded.argmin()), int(rounded.argmax())


def _listed(words: list[str]) -> str:
    """Words with commas between them, or semicolons where a name has a comma of its own."""
    return ("; " if any(", " in word for word in words) else ", ").join(words)


def _line(x: np.ma.MaskedArray, y: np.ma.MaskedArray, line: object, names: tuple) -> str:
    low, high = _extremes(np.ma.log(y) if line.axes.get_yscale() == "log" else y)
    drawn = np.flatnonzero(~(np.ma.getmaskarray(x) | np.ma.getmaskarray(y)))
    first, last = drawn[[0, -1]]
    across, up = (lambda i: _place(x[i], names[0])), (lambda i: _place(y[i], names[1]))
    return (f"Line{_label(line)}: {len(drawn)} points from ({across(first)}, {up(first)}) to ({across(last)}, {up(last)}), "
            f"lowest {up(low)} at {across(low)}, highest {up(high)} at {across(high)}.")


def _points(points: np.ma.MaskedArray, artist: object, names: tuple) -> str:
    """Points by category where an axis has named places, else the box that holds them."""
    points = points[~np.ma.getmaskarray(points).any(axis=1)]
    if not len(points):
        return ""
    head = f"{count(len(points), 'point', 'points')}{_label(artist)}"
    for side in (0, 1):
        members = [_category(float(value), names[side]) for value in points[:, side]]
        if None in members:
            continue
        groups: dict[str, list[float]] = {}
        for member, value in zip(members, points[:, 1 - side], strict=True):
            groups.setdefault(member, []).append(float(value))
        if len(groups) <= LISTED:
            return f"{head}: {_listed([f'{member} {_spread(values)}' for member, values in groups.items()])}."
    (left, bottom), (right, top) = points.min(axis=0), points.max(axis=0)
    return f"{head}, x from {_number(left)} to {_number(right)}, y from {_number(bottom)} to {_number(top)}."


def _spread(values: list[float]) -> str:
    low, high = _number(min(values)), _number(max(values))
    return low if len(values) == 1 else f"{low} to {high} ({len(values)} points)"


def _bars(bars: BarContainer, names: tuple) -> str:
    """Bars by name, with their error bars; bars that touch are a histogram. Floating bars as 'lower to upper'."""
    sideways = getattr(bars, "orientation", "vertical") == "horizontal"
    boxes = np.ma.masked_invalid([(bar.get_y(), bar.get_height(), bar.get_x(), bar.get_width()) if sideways else
                                  (bar.get_x(), bar.get_width(), bar.get_y(), bar.get_height()) for bar in bars])
    if not len(boxes):
        return ""
    start, thick, base, long = boxes.T
    label = _label(bars) or _label(bars[0])  # hist puts its label on the first bar
    named = names[1 if sideways else 0]
    span = float(np.ptp([start.min(), (start + thick).max()]))
    if len(boxes) > 4 and not named and np.allclose(start[1:], (start + thick)[:-1], atol=1e-6 * span):
        return _histogram(long, np.append(start, start[-1] + thick[-1]), label)
    places = [(_category(float(middle), named) or _number(middle)) if named else _number(middle)
              for middle in start + thick / 2]
    values = [_number(height) if floor == 0 or np.ma.is_masked(height) else f"{_number(floor)} to {_number(floor + height)}"
              for floor, height in zip(base, long, strict=True)]
    head = f"{count(len(boxes), 'bar', 'bars')}{label}"
    if len(boxes) > LISTED:
        low, high = _extremes(long)
        return (f"{head} from {places[0]} to {places[-1]}, lowest {values[low]} at {places[low]}, "
                f"highest {values[high]} at {places[high]}.")
    if bars.errorbar is not None:
        values = [f"{value}{reach}" for value, reach in
                  zip(values, _reaches(bars.errorbar, 0 if sideways else 1), strict=True)]
    return f"{head}: {_listed([f'{place} {value}' if named else value for place, value in zip(places, values)])}."


def _reaches(errors: ErrorbarContainer, side: int) -> list[str]:
    """' (low to high)' for each error bar along `side` (0: x, 1: y)."""
    lines = errors.lines[2][1 if side and errors.has_xerr else 0]
    return [f" ({_number(ends[:, side].min())} to {_number(ends[:, side].max())})" if len(ends) else ""
            for ends in lines.get_segments()]


def _error_bars(errors: ErrorbarContainer, names: tuple) -> str:
    """Each point with the ends of its bars, by the name of its place; many points by the first and last."""
    sides = [side for side, has in ((0, errors.has_xerr), (1, errors.has_yerr)) if has]
    if not sides:
        return ""
    reaches = {side: _reaches(errors, side) for side in sides}
    if errors.lines[0] is not None:
        centres = np.column_stack([np.asarray(v, dtype=float) for v in errors.lines[0].get_data(orig=False)])
    else:  # fmt='none': nothing but the bars
        centres = np.array([ends.mean(axis=0) for ends in errors.lines[2][0].get_segments()])
    if not len(centres) or len(centres) != len(reaches[sides[0]]):
        return ""
    words = []
    for i, (x, y) in enumerate(centres):
        if len(sides) == 2:
            words.append(f"({_place(x, names[0])}{reaches[0][i]}, {_place(y, names[1])}{reaches[1][i]})")
        else:
            value, place = (x, y) if sides[0] == 0 else (y, x)
            named = names[1 - sides[0]]
            name, what = _category(place, named) if named else None, f"{_number(value)}{reaches[sides[0]][i]}"
            words.append(f"{name} {what}" if name else f"{what} at {_number(place)}")
    head = f"{count(len(words), 'point', 'points')} with error bars{_label(errors)}"
    if len(words) <= LISTED:
        return f"{head}: {_listed(words)}."
    return f"{head}, from {words[0]} to {words[-1]}."


def _band(band: FillBetweenPolyCollection, names: tuple) -> str:
    """A filled area between two curves: both ends, and where it is widest."""
    corners = np.concatenate([path.vertices for path in band.get_paths()]) if band.get_paths() else np.zeros((0, 2))
    along = 0 if band.t_direction == "x" else 1
    corners = corners[np.isfinite(corners).all(axis=1)]
    if not len(corners):
        return ""
    places = np.unique(corners[:, along])
    across = [corners[corners[:, along] == place, 1 - along] for place in places]
    low, high = np.array([values.min() for values in across]), np.array([values.max() for values in across])

    def at(i: int) -> str:
        return f"at {_place(places[i], names[along])}: {_number(low[i])} to {_number(high[i])}"

    widest = int((high - low).argmax())
    parts = f" in {len(band.get_paths())} parts" if len(band.get_paths()) > 1 else ""
    return f"Band{_label(band)}{parts}, {at(0)}, {at(-1)}; widest {at(widest)}."


def _marks(lines: LineCollection, names: tuple) -> str:
    """Short level or upright lines, as `hlines` and `vlines` draw them; nothing for any other lines."""
    ends = [segment for segment in lines.get_segments() if len(segment) == 2 and np.isfinite(segment).all()]
    for side, what in ((1, "level"), (0, "upright")):
        if ends and all(np.ptp(segment[:, side]) == 0 for segment in ends):
            words = []
            for segment in ends[:LISTED]:
                name = _category(float(segment[:, 1 - side].mean()), names[1 - side]) if names[1 - side] else None
                words.append((f"{name} " if name else "") + _place(segment[0, side], names[side]))
            more = f" and {len(ends) - LISTED} more" if len(ends) > LISTED else ""
            return f"{count(len(ends), f'{what} line', f'{what} lines')}{_label(lines)}: {', '.join(words)}{more}."
    return ""


def _outline(patch: object) -> tuple[np.ndarray, np.ndarray] | None:
    """(bins,) heights and (bins + 1,) edges of a histogram drawn in steps; None for any other shape."""
    if isinstance(patch, StepPatch):
        values, edges, _ = patch.get_data()
        return np.ma.masked_invalid(values), np.asarray(edges, dtype=float)
    if not isinstance(patch, Polygon) or len(patch.get_xy()) < 4:
        return None
    corners = patch.get_xy()
    # hist(histtype="step") draws (e0, base), (e0, h0), (e1, h0), (e1, h1) … (eN, base); "stepfilled" goes back below.
    if len(corners) % 2:
        corners = corners[: (len(corners) - 1) // 2 + 2]
    for x, y in ((corners[:, 0], corners[:, 1]), (corners[:, 1], corners[:, 0])):  # standing or lying
        edges, tops = x[::2], y[1:-1]
        if len(x) % 2 == 0 and (x[::2] == x[1::2]).all() and (np.diff(edges) > 0).all() and (tops[::2] == tops[1::2]).all():
            return tops[::2], edges
    return None


def _histogram(heights: np.ndarray, edges: np.ndarray, label: str) -> str:
    tallest = int(np.ma.argmax(heights))
    counted = f", {_number(heights.sum())} in all" if np.allclose(heights, np.round(heights)) else ""
    return (f"Histogram{label}: {count(len(heights), 'bin', 'bins')} from {_number(edges[0])} to {_number(edges[-1])}"
            f"{counted}; the tallest, {_number(heights[tallest])}, from {_number(edges[tallest])} to "
            f"{_number(edges[tallest + 1])}.")
