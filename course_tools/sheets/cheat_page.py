"""How the cheat sheet looks: one A4 page, black on white in print; in a dark browser, dark.

Does: turn rows and boxes of HTML into a page without network or scripts. Does not: know any contents (see `cheat_sheet`).
"""

from typing import NamedTuple

from course_tools.sheets import formulas


class Box(NamedTuple):
    """A table in the lower part: title, names of the columns, rows, a note below; all is HTML, the last cells are short."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""


COLUMNS = ["", "formula", "shape of the result", "in course_utils", "taught in"]
WIDTHS = "".join(f'<col style="width:{width}mm">' for width in (19, 82, 43, 38, 12))
STYLE = formulas.STYLE + """
:root { color-scheme: light dark; --ink: #000; --paper: #fff; --soft: #555; --line: #999; --band: #eee; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #eee; --paper: #151515; --soft: #aaa; --line: #666; --band: #2a2a2a; }
  .fraction > .top, .root { border-color: #eee; }
}
* { box-sizing: border-box; }
body { font: 8.7pt/1.15 "Times New Roman", Times, serif; color: var(--ink); background: var(--paper); width: 194mm;
  margin: 6mm auto; }
h1 { font-size: 13pt; margin: 0; }
h2 { font-size: 9.5pt; margin: 1.6mm 0 0.4mm; }
p { margin: 0.4mm 0; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: baseline; padding: 0.12mm 1.2mm 0.12mm 0; border-bottom: 0.4pt solid var(--line);
  font-weight: normal; }
thead th { color: var(--soft); font-size: 8pt; }
.flow tbody th { font-weight: bold; }
.group th { background: var(--band); padding: 0.3mm 1mm; border-bottom: none; }
.code, code { font: 8pt Arial, Helvetica, sans-serif; }
th:last-child, td:last-child { white-space: nowrap; padding-right: 0; }
sub, sup { font-size: 7pt; }
sub sub, sup sub { font-size: 6.5pt; }
.root { white-space: nowrap; }
.root { padding: 0.1mm 0.3mm 0; }
td:has(.root) { padding-top: 0.8mm; }
.flow { table-layout: fixed; }
.boxes { display: grid; grid-template-columns: 84mm 1fr; column-gap: 5mm; }
.boxes section:last-child { grid-column: 1 / -1; }
@page { size: A4 portrait; margin: 8mm; }
@media print { body { margin: 0; } .group th { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
@media screen and (max-width: 760px) {
  body { width: auto; margin: 3mm; font-size: 11pt; overflow-wrap: anywhere; }
  .boxes { display: block; }
  .flow { display: block; }
  .flow thead, col { display: none; }
  .flow tr { display: block; padding: 1mm 0; border-bottom: 0.4pt solid var(--line); }
  .flow th, .flow td { display: block; border: none; white-space: normal; }
}
"""
INTRO = ("Shapes name their dimensions, outermost first. In self-attention query = key = seq_len; <i>d</i> is d_model = "
         "heads · d_head. '04 §6' is section 6 of notebook 04.")


def _cells(cells: list[str], code: int = -1) -> str:
    name, *others = cells
    return f'<th scope="row">{name}</th>' + "".join(
        f'<td class="code">{cell}</td>' if i == code else f"<td>{cell}</td>" for i, cell in enumerate(others, start=1))


def _head(columns: list[str]) -> str:
    cells = "".join(f'<th scope="col">{name}</th>' if name else "<td></td>" for name in columns)
    return f"<thead><tr>{cells}</tr></thead>"


def _box(box: Box) -> str:
    rows = "\n".join(f"<tr>{_cells(row)}</tr>" for row in box.rows)
    note = f"<p>{box.note}</p>" if box.note else ""
    return f"<section><h2>{box.title}</h2>\n<table>{_head(box.columns)}\n<tbody>\n{rows}\n</tbody></table>{note}</section>"


def page(flow: list[tuple[str, list[list[str]]]], boxes: list[Box]) -> str:
    """The HTML of the sheet: groups of rows from text to loss, each (title, rows of five cells), then boxes."""
    groups = []
    for title, rows in flow:
        body = "\n".join(f"<tr>{_cells(row, code=3)}</tr>" for row in rows)
        head = f'<tr class="group"><th colspan="{len(COLUMNS)}" scope="rowgroup">{title}</th></tr>'
        groups.append(f"<tbody>\n{head}\n{body}\n</tbody>")
    return "\n".join([
        '<!DOCTYPE html>', '<html lang="en-GB">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>Attention from the Ground Up: cheat sheet</title>", f"<style>{STYLE}</style></head>", "<body>",
        "<h1>Attention from the Ground Up: shapes and formulas</h1>", f"<p>{INTRO}</p>",
        f'<table class="flow"><colgroup>{WIDTHS}</colgroup>{_head(COLUMNS)}', *groups, "</table>",
        '<div class="boxes">', *map(_box, boxes), "</div>", "</body>", "</html>", ""])
