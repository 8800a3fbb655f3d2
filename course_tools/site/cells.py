"""A notebook's cells as they're read on a page.

Does: hide what a prediction asks for until the reader opens it, say where an exercise is done,
fold code that isn't the point, leave out what only makes sense while a notebook runs. Does not: change a word of the text
or an output that's shown.
"""

from __future__ import annotations

import re
from pathlib import Path

from course_tools.site import pictures
from course_tools.site.links import Links

PREDICTION = re.compile(r"^(\w+) = predict\(", re.M)
TRY = "**Try it first.**"
HEADING = re.compile(r"^#{1,6} ", re.M)
PIPELINE = re.compile(r"^```\n(.*→ embeddings →.*)\n```$", re.M)
BRACKETS, HERE = re.compile(r"\[([^\]]+)\]"), r"<strong>\1</strong>"
ONLY_LIVE = ("progress()", "my_progress()")
FURNITURE = re.compile(r"^(quiz\(\"\w+\"\)|course_map\(\))\s*\Z", re.M)   # what it shows is the point, not the call
LONG, LONG_EXPORT, LONG_DRAWING, LONG_IMPORTS = 30, 60, 8, 3           # a cell with more lines of code is folded
DEFINED = re.compile(r"^(?:class|def) (\w+)", re.M)
PREPARES = ("import ", "from ", "use_style()", "%", "#", "torch.set_num_threads", '"""')
DO_IT = ('<p class="do-it">You do this exercise in the notebook, which checks your answer and says which mistake it is: '
         '<a href="{readme}">how to open it</a>.</p>')
SHOW = '<details class="reveal"><summary>Show what happens</summary>'


def text_cell(source: str) -> dict:
    """A cell of Markdown."""
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def page_cells(cells: list[dict], links: Links, folder: Path) -> list[dict]:
    """The cells of a page, from a notebook's; pictures are written to `folder`."""
    spans = dict(_what_predictions_hide(cells))
    result, closing = [], None
    for i, cell in enumerate(cells):
        if i in spans:
            result.append(text_cell(SHOW))
            closing = spans[i]
        result += _text(cell, links) if cell["cell_type"] == "markdown" else _code(cell, links, folder)
        if i == closing:
            result.append(text_cell("</details>"))
            closing = None
    return result


def _what_predictions_hide(cells: list[dict]) -> list[tuple[int, int]]:
    """For each prediction, the first and last cell that give it away: up to the cell that compares, the code after it and
    the paragraph that explains it. Nothing across a heading."""
    found = []
    for i, cell in enumerate(cells):
        asked = cell["cell_type"] == "code" and PREDICTION.search(cell["source"])
        if not asked:
            continue
        end, compared = i, False
        for j in range(i + 1, len(cells)):
            one = cells[j]
            text = one["cell_type"] == "markdown"
            if text and (HEADING.search(one["source"]) or TRY in one["source"]) or is_exercise_cell(one):
                break
            end, compared = j, compared or f"{asked[1]}.compare(" in one["source"]
            if compared and text:
                break
        if compared:
            found.append((i + 1, end))
    return found


def is_exercise_cell(cell: dict) -> bool:
    """Whether the learner writes an answer to an exercise into this cell."""
    return "exercise" in cell["metadata"].get("tags", [])


def page_text(source: str, links: Links) -> str:
    """Markdown as it is on a page: its links and pictures, and numbers that stay with their '±' and '%'."""
    source = re.sub(r"(?<=\d) ± (?=\d)", "\u00a0±\u00a0", re.sub(r"(?<=\d) %", "\u00a0%", source))
    return links.in_markdown(pictures.in_markdown(source, links))


def _text(cell: dict, links: Links) -> list[dict]:
    source = page_text(cell["source"], links)
    source = PIPELINE.sub(lambda found: f'<p class="pipeline">{BRACKETS.sub(HERE, found[1])}</p>', source)
    if TRY in source:
        before, _, question = source.partition(TRY)
        source = f'{before}<div class="try-first">\n\n{TRY}{question}\n\n</div>'
    return [text_cell(source)]


def _code(cell: dict, links: Links, folder: Path) -> list[dict]:
    source = cell["source"]
    if source.strip().splitlines()[-1:] and source.strip().splitlines()[-1] in ONLY_LIVE:
        return []
    if PREDICTION.search(source) and all(re.match(r"#|\w+ = predict\(|$", line) for line in source.splitlines()):
        return []
    new = {"cell_type": "code", "execution_count": None, "metadata": {}, "source": source,
           "outputs": _outputs(cell, links, folder)}
    summary = fold(cell)
    if summary:
        new["metadata"] = {"tags": ["hide-input"], "mystnb": {"code_prompt_show": summary, "code_prompt_hide": summary}}
    if FURNITURE.search(source):
        new["metadata"] = {"tags": ["remove-input"]}
    if is_exercise_cell(cell):
        new["outputs"] = []
        return [new, text_cell(DO_IT.format(readme=links.relative("readme.html")))]
    return [new]


def fold(cell: dict) -> str:
    """What a cell's folded code is called, '' where the code stays open."""
    lines = [line for line in cell["source"].splitlines() if line.strip()]
    if is_exercise_cell(cell):
        return ""
    if cell["metadata"].get("jupyter", {}).get("source_hidden") and lines[0].startswith("# "):
        return f"Code: {lines[0][2:].partition(': click')[0]}"
    export = re.match(r"#\| export (\w+)", cell["source"])
    if len(lines) > LONG_IMPORTS and all(_prepares(lines)):
        return f"Code: how {export[1]}.py begins" if export else "Code: imports"
    draws = any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    if draws and len(lines) > LONG_DRAWING:
        return "Code that draws this figure"
    if len(lines) <= (LONG_EXPORT if export else LONG):
        return ""
    names = ", ".join(name for name in DEFINED.findall(cell["source"]) if not name.startswith("_"))
    return f"Code: {names} ({len(lines)} lines)" if names else f"Code ({len(lines)} lines)"


def _prepares(lines: list[str]) -> list[bool]:
    """Of each line, whether it only prepares: an import, the rest of one, a docstring's text."""
    kinds, inside = [], False
    for line in lines:
        quotes = line.count('"""')
        kinds.append(inside or quotes > 0 or line.startswith((*PREPARES, " ", ")")))
        inside ^= quotes % 2 == 1
    return kinds


def _outputs(cell: dict, links: Links, folder: Path) -> list[dict]:
    name = f"{links.page.name.replace('/', '-')}-{cell.get('id', 'cell')}"
    results = []
    for number, output in enumerate(cell.get("outputs", [])):
        data = output.get("data", {})
        if output["output_type"] == "stream":
            results += _stream(output)
        elif "image/png" in data:
            results.append(pictures.picture_of_output(output, f"{name}-{number}", folder, links))
        elif "text/html" in data:
            results.append(pictures.shown_as(page_html("".join(data["text/html"]), f"{name}-{number}", folder, links)))
        else:
            results.append(output)
    return results


def _stream(output: dict) -> list[dict]:
    """What a cell printed, without the verdicts on what nobody has tried yet."""
    lines = "".join(output["text"]).splitlines(keepends=True)
    kept = "".join(line for line in lines if not line.startswith("○ "))
    return [{**output, "text": kept}] if kept.strip() else []


def page_html(text: str, name: str, folder: Path, links: Links) -> str:
    """A piece of HTML that a cell shows, as it is on the page."""
    if 'class="course-piece"' in text:
        return pictures.still_outside(text, name, folder, links)
    if 'class="dataframe"' in text:
        text = re.sub(r"<style scoped>.*?</style>\s*", "", text, flags=re.S)
        text = text.replace(' border="1"', "").replace("<th></th>", "<td></td>").replace(' style="text-align: right;"', "")
        return re.sub(r"^<div>", '<div class="numbers" tabindex="0" role="region" aria-label="table">', text.strip())
    return links.in_html(text)
