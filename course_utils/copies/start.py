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
from course_utils.copies.notebooks import extras, find
from course_utils.exercises import progress_by_notebook
from course_utils.files.paths import ROOT

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
    beside = re.search(r"^Goes with (\[\d\d\]\(\.\./\d\d_\w+\.ipynb\).*)\.$", opening, re.M)
    minutes = re.search(r"[*][*]Time[*][*] about (\d+) minutes", opening)
    if not (title and beside and minutes):
        raise ValueError(f"{path.name}: {OPENING}")
    return Extra(path, title[1].strip(), re.findall(r"\(\.\./(\w+\.ipynb)\)", beside[1]), int(minutes[1]))


PARTS = {0: "Part I: from raw text to a classifier", 10: "Part II: what did it learn?",
         13: "Part III: on to language models"}           # by the number of the first notebook
STYLE = """<style>
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
    rows = re.findall(r"^\| \[((\d\d) [^\]]+)\]\([^)]+\) \| ([^|]+) \|", page, re.M)
    return {number: (title, words.strip().replace("`", "")) for title, number, words in rows}


def _to(notebook: str) -> str:
    """The attributes of a link to a notebook: a file beside START, or the one that opens in Colab if START runs there."""
    return hosted_link(notebook) or f'href="{notebook}"'


def course_map() -> Page:
    """The numbered notebooks in order, as boxes to click, part by part; the extras in a list to open."""
    rows, parts, words = rows_of_the_readme(), [], []
    starts = [*PARTS, 100]
    for start, end in zip(starts, starts[1:]):
        stops = [path for path in find([]) if start <= int(path.name[:2]) < end]
        boxes = []
        for path in stops:
            title, built = rows.get(path.name[:2], (path.stem.replace("_", " "), ""))
            boxes.append(f'<li class="stop"><a {_to(path.name)}><b>{html.escape(title)}</b>'
                         f'<small>{html.escape(built)}</small></a></li>')
            words.append(f"{title}: {built}")
        if stops:
            parts.append(f'<p class="part">{PARTS[start]}</p><ol>{"".join(boxes)}</ol>')
    more = [f'<li><a {_to(f"{one.path.parent.name}/{one.path.name}")}>{html.escape(one.title)}</a> '
            f'({", ".join(name[:2] for name in one.goes_with)})</li>' for one in map(read_extra, extras())]
    if more:
        parts.append(f"<details><summary>{len(more)} extras, one subject each, for when you want more (in brackets: the "
                     f'notebook they go with)</summary><ul>{"".join(more)}</ul></details>')
    return Page(f'{STYLE}<nav class="course-map" aria-label="Map of the course">{"".join(parts)}</nav>', "\n".join(words))


def my_progress() -> Page:
    """A table of all notebooks with the exercises solved and the quiz questions answered correctly."""
    rows, lines, words = rows_of_the_readme(), [], []
    solved = exercises = right = questions = 0
    names = {path.name[:2]: path.name for path in find([])}
    for one in progress_by_notebook():
        title = rows.get(one.number, (one.number, ""))[0]
        solved, exercises = solved + sum(one.solved), exercises + len(one.solved)
        right, questions = right + one.right, questions + one.questions
        counted = f"{sum(one.solved)} of {len(one.solved)}" if one.solved else "none"
        boxes = "".join("■" if done else "□" for done in one.solved)
        name = f'<a {_to(names[one.number])}>{html.escape(title)}</a>' if one.number in names else html.escape(title)
        lines.append(f'<tr><td>{name}</td><td>{counted} <span class="done" aria-hidden="true">{boxes}</span></td>'
                     f"<td>{one.right} of {one.questions}</td></tr>")
        words.append(f"{title}: {counted} exercises, {one.right} of {one.questions} questions")
    total = f"{solved} of {exercises} exercises solved, {right} of {questions} quiz questions right."
    table = ('<table class="course-progress"><thead><tr><th>notebook</th><th>exercises</th><th>questions</th></tr></thead>'
             f'<tbody>{"".join(lines)}</tbody></table>')
    return Page(f"{STYLE}<p><b>{total}</b></p>{table}", "\n".join([total, *words]))
