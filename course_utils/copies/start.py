"""What START shows beside the classifier: the map of the course, and how much of it a learner has done.

Does: read the notebooks' names, the README's table and the learner's progress; return pages with links that work where the
notebooks are, in a learner's copies too. Does not: run a notebook, or keep progress (see `course_utils.exercises`).
"""

import html
import re
from pathlib import Path
from typing import NamedTuple

import nbformat

from course_utils.copies.hosted import hosted_link
from course_utils.copies.notebooks import everything, extras, find, follows, number_of
from course_utils.exercises import progress_by_notebook
from course_utils.files.paths import FRONT, HOUR, NUMBER, ROOT

OPENING = ("expected a first cell that begins with '# Extra: Title' and has the lines "
           "'Goes with [03](../03_embeddings.ipynb).' and '**Time** about 20 minutes'")


class Extra(NamedTuple):
    """An extra: its `title`, the file names of the numbered notebooks that it `goes_with`, and its `minutes`."""

    path: Path
    title: str
    goes_with: list[str]
    minutes: int


def read_extra(path: Path) -> Extra:
    """Read an extra's first cell. Raises ValueError that names the file where the cell lacks one of its three lines."""
    cells = nbformat.read(path, as_version=4).cells
    opening = cells[0].source if cells else ""
    title = re.match(r"# Extra: (.+)", opening)
    beside = re.search(r"^Goes with (\[\d\d[a-z]?\]\(\.\./\d\d[a-z]?_\w+\.ipynb\).*)\.$", opening, re.M)
    minutes = re.search(r"[*][*]Time[*][*] about (\d+) minutes", opening)
    if not (title and beside and minutes):
        raise ValueError(f"{path.name}: {OPENING}")
    return Extra(path, title[1].strip(), re.findall(r"\(\.\./(\w+\.ipynb)\)", beside[1]), int(minutes[1]))


PARTS = {0: "Part I: from raw text to a classifier", 10: "Part II: what did it learn?",
         13: "Part III: on to language models"}           # by the number of the first notebook
# By notebook: where its box is on the map, as (column, row), and which notebooks it needs.
MAP = {
    "00": ((0, 0), []), "01": ((1, 0), ["00"]), "02": ((2, 0), ["01"]), "03": ((3, 0), ["02"]), "04": ((4, 0), ["03"]),
    "05": ((5, 0), ["04"]), "06": ((6, 0), ["05"]), "07": ((7, 0), ["06"]), "08": ((8, 0), ["07"]), "09": ((9, 0), ["08"]),
    "R1": ((10, 0), ["09"]),
    "10": ((8, 1), ["08"]), "11": ((9, 1), ["10"]), "12": ((10, 1), ["09"]), "R2": ((11, 1), ["12"]),
    "19": ((10, 3), ["13"]),
    "02b": ((2, 2), ["02"]), "16": ((4, 2), ["04"]), "17": ((5, 2), ["16", "07"]), "13": ((7, 2), ["07", "02b"]),
    "13b": ((8, 3), ["13"]), "14": ((8, 2), ["13"]), "15": ((9, 2), ["14"]), "R3": ((10, 2), ["15", "17"]),
    "18": ((9, 3), ["13"]), "20": ((8, 4), ["13"]), "21": ((9, 4), ["20"]), "22": ((10, 4), ["21"]),
}
BOX, STEP = (84, 46), (96, 92)                            # of the map: width and height of a box; from one to the next
SHORT_TITLES = {"02b": "Byte pairs", "05": "Heads", "06": "Positions", "07": "Blocks", "09": "Real reviews", "10": "Maps",
                "11": "Explaining", "12": "Comparing", "13": "Language", "13b": "Induction", "17": "Translation",
                "18": "Efficient", "20": "Real model",
                "16": "Recurrent", "R1": "Review", "R2": "Review", "R3": "Review", HOUR: "in short"}
STYLE = """<style>
.course-map .wide{overflow-x:auto}
.course-map .board{position:relative;min-width:640px;max-width:1080px;margin:4px 0 10px}
.course-map svg{display:block;width:100%}
.course-map svg rect{fill:none;stroke:currentColor;stroke-width:1.5}
.course-map .board a{position:absolute;border-radius:8px}
.course-map .board a:hover,.course-map .board a:focus-visible{outline:3px solid}
.course-map svg text{fill:currentColor;font:13px sans-serif;text-anchor:middle}
.course-map svg text.number{font-weight:bold;font-size:15px}
.course-map svg path{fill:none;stroke:currentColor;stroke-width:1.5;opacity:.7}
.course-map ol{display:flex;flex-wrap:wrap;gap:10px 26px;list-style:none;margin:6px 0 14px;padding:0}
.course-map li.stop{position:relative;flex:0 1 200px;min-width:150px;margin:0;border:1.5px solid;border-radius:8px}
.course-map li.stop+li.stop::before{content:"→";position:absolute;left:-22px;top:50%;transform:translateY(-50%)}
.course-map li.stop a{display:block;height:100%;box-sizing:border-box;padding:7px 10px;color:inherit;text-decoration:none}
.course-map li.stop a:hover,.course-map li.stop a:focus-visible{outline:3px solid;outline-offset:2px;border-radius:8px}
.course-map small{display:block;font-size:85%;line-height:1.3;opacity:.85}
.course-map .part{font-weight:600;margin:0}
.course-map details ul{columns:3 220px;margin:6px 0;padding-left:20px}
.course-progress td,.course-progress th{text-align:left!important;padding:3px 14px 3px 0!important;vertical-align:top}
.course-progress .done{letter-spacing:2px;white-space:nowrap}
</style>"""


class Page:
    """HTML that a notebook shows, and the same in plain words."""

    def __init__(self, html: str, text: str):
        self.html, self.text = html, text

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}


def rows_of_the_readme() -> dict[str, tuple[str, str]]:
    """By number, what each notebook is called ('04 Attention') and what one builds in it, as the README's table says."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| \[(({NUMBER}) [^\]]+)\]\([^)]+\) \| ([^|]+) \|", page, re.M)
    return {number: (title, words.strip().replace("`", "")) for title, number, words in rows}


def _to(notebook: str) -> str:
    """The attributes of a link to a notebook: a file beside START, or the one that opens in Colab if START runs there."""
    return hosted_link(notebook) or f'href="{notebook}"'


def _short_title(number: str, title: str) -> str:
    """The one or two words that fit into a box: 'Attention' for '04 Attention'."""
    words = title.removeprefix(number).strip().removeprefix("The ")
    return SHORT_TITLES.get(number, words[:1].upper() + words[1:])


def _arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    """An arrow from one box to another, as the path of an SVG: along the row, below it, or down and across."""
    (w, h), (dx, dy) = BOX, STEP
    x, y, to_x, to_y = start[0] * dx, start[1] * dy, end[0] * dx, end[1] * dy
    if start[1] != end[1]:
        return f"M{x + w / 2} {y + h}V{to_y - 16}H{to_x + w / 2}V{to_y - 2}"
    if end[0] == start[0] + 1:
        return f"M{x + w} {y + h / 2}H{to_x - 2}"
    return f"M{x + w / 2} {y + h}V{y + h + 16}H{to_x + w / 2}V{y + h + 2}"


def _drawn(rows: dict[str, tuple[str, str]]) -> str:
    """The map: a box for each notebook and for the hour, and an arrow from each to those that need it.

    A link lies over each box. They aren't in the SVG: JupyterLab sets the address of every link that it shows, and fails at
    one inside an SVG.
    """
    paths, (w, h), (dx, dy) = {number_of(path): path for path in find([])}, BOX, STEP
    hour = [path for path in everything() if path.stem == FRONT[1]]
    paths |= {HOUR: hour[0]} if hour else {}
    shown = {number: place for number, place in MAP.items() if number in paths}
    shown |= {number: ((10, 2), []) for number in paths if number not in MAP}     # one that has just been added
    shown |= {HOUR: ((1, 1), [])} if hour else {}         # it needs nothing, and nothing needs it
    wide, high = (max(place[i] for place, _ in shown.values()) * step + size for i, step, size in (
        (0, dx, w + 6), (1, dy, h + 26)))
    parts = [f'<path d="{_arrow(shown[one][0], place)}" marker-end="url(#map-tip)"/>'
             for place, needs in shown.values() for one in needs if one in shown]
    parts += [f'<text x="{column * dx + w / 2}" y="{row * dy + h / 2 + 4}">{part}</text>'
              for part, (column, row) in (("Part I", (0, 0.7)), ("Part II", (6, 1)), ("Part III", (0, 2)))]
    links = []
    for number, ((column, row), needs) in shown.items():
        title, name = rows.get(number, (paths[number].stem.replace("_", " ").capitalize(), ""))[0], paths[number].name
        words, x, y = html.escape(_short_title(number, title)), column * dx, row * dy
        parts.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="7"/>'
                     f'<text class="number" x="{x + w / 2}" y="{y + 19}">{"1 hour" if number == HOUR else number}</text>'
                     f'<text x="{x + w / 2}" y="{y + 37}">{words}</text>')
        spoken = html.escape(title) + (f'; needs {", ".join(needs)}' if needs else "")
        over = "".join(f"{side}:{100 * part / whole:.2f}%;" for side, part, whole in (
            ("left", x + 3, wide), ("top", y + 3, high), ("width", w, wide), ("height", h, high)))
        links.append(f'<a {_to(name)} aria-label="{spoken}" style="{over}"></a>')
    tip = ('<defs><marker id="map-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
           '<path d="M0 0L8 4L0 8" style="opacity:1"/></marker></defs>')
    return (f'<div class="wide"><div class="board" role="group" aria-label="Which notebook needs which">'
            f'<svg viewBox="-3 -3 {wide} {high}" aria-hidden="true">{tip}{"".join(parts)}</svg>{"".join(links)}</div></div>')


def course_map() -> Page:
    """The numbered notebooks as boxes with arrows from what each needs; lists of what one builds, and of the extras."""
    rows, parts, words = rows_of_the_readme(), [], []
    starts = [*PARTS, 100]
    for start, end in zip(starts, starts[1:]):
        stops = [path for path in find([]) if start <= int(follows(path)[:2]) < end]
        boxes = []
        for path in stops:
            title, built = rows.get(number_of(path), (path.stem.replace("_", " "), ""))
            boxes.append(f'<li class="stop"><a {_to(path.name)}><b>{html.escape(title)}</b>'
                         f'<small>{html.escape(built)}</small></a></li>')
            words.append(f"{title}: {built}")
        if stops:
            parts.append(f'<p class="part">{PARTS[start]}</p><ol>{"".join(boxes)}</ol>')
    parts = [_drawn(rows), f'<details><summary>What you build in each</summary>{"".join(parts)}</details>']
    more = [f'<li><a {_to(f"{one.path.parent.name}/{one.path.name}")}>{html.escape(one.title)}</a> '
            f'({", ".join(map(number_of, one.goes_with))})</li>' for one in map(read_extra, extras())]
    if more:
        parts.append(f"<details><summary>{len(more)} extras, one subject each, for when you want more (in brackets: the "
                     f'notebook they go with)</summary><ul>{"".join(more)}</ul></details>')
    return Page(f'{STYLE}<nav class="course-map" aria-label="Map of the course">{"".join(parts)}</nav>', "\n".join(words))


def my_progress() -> Page:
    """A table of all notebooks with the exercises solved and the quiz questions answered correctly."""
    rows, lines, words = rows_of_the_readme(), [], []
    solved = exercises = right = questions = 0
    names = {HOUR: f"{FRONT[1]}.ipynb", **{number_of(path): path.name for path in find([])}}
    for one in progress_by_notebook():
        title = rows.get(one.number, ("Attention in an hour" if one.number == HOUR else one.number, ""))[0]
        solved, exercises = solved + sum(one.solved), exercises + len(one.solved)
        right, questions = right + one.right, questions + one.questions
        counted = f"{sum(one.solved)} of {len(one.solved)}" if one.solved else "none"
        boxes = "".join("■" if done else "□" for done in one.solved)
        name = f'<a {_to(names[one.number])}>{html.escape(title)}</a>' if one.number in names else html.escape(title)
        lines.append(f'<tr><td>{name}</td><td>{counted} <span class="done" aria-hidden="true">{boxes}</span></td>'
                     f"<td>{one.right} of {one.questions}</td></tr>")
        words.append(f"{title}: {counted.replace('none', 'no')} exercises, {one.right} of {one.questions} questions")
    total = f"{solved} of {exercises} exercises solved, {right} of {questions} quiz questions right."
    table = ('<table class="course-progress"><thead><tr><th>notebook</th><th>exercises</th><th>questions</th></tr></thead>'
             f'<tbody>{"".join(lines)}</tbody></table>')
    table = f"<details><summary>Notebook by notebook</summary>{table}</details>"
    return Page(f"{STYLE}<p><b>{total}</b></p>{table}", "\n".join([total, *words]))
