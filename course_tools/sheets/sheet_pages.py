"""What a sheet to work on paper is made of, and how it looks in print.

Does: turn sheets into one HTML page for printing, with blanks or with the answers in them; A4 or US letter, black on
white, without network or scripts. Does not: know any contents (see `sheets`).
"""

from typing import NamedTuple

from course_tools.sheets import formulas


class Blank(NamedTuple):
    """A cell to be filled in by hand; `answer` stands in it on the page of answers."""

    answer: str


class Table(NamedTuple):
    """A caption, the names of the columns, and rows; the first cell of a row is its name.

    A plain cell is given, and where it is empty nothing belongs there.
    """

    caption: str
    columns: list[str]
    rows: list[list[str | Blank]]


class Sheet(NamedTuple):
    """One page; all its text is HTML. A notebook is named by its number, a section by its heading."""

    title: str
    notebook: str
    section: str
    need: str
    intro: str
    given: list[Table]
    formulas: list[str]
    steps: list[Table]
    question: str
    answer: str
    exercise: str = ""


STYLE = formulas.STYLE + """
body { font: 13pt/1.25 Georgia, "Times New Roman", serif; color: #000; background: #fff; max-width: 18cm; margin: 1cm auto; }
section { break-after: page; }
section:last-child { break-after: auto; }
h1 { font-size: 17pt; margin: 3mm 0 0; }
p { margin: 1mm 0; }
.place, caption, th { font-size: 12pt; }
.lines { display: flex; gap: 8mm; }
.lines span { border-bottom: 1pt solid #000; flex: 1; }
.lines span:first-child { flex: 2; }
table { border-collapse: collapse; margin: 1.5mm 0; }
caption { text-align: left; padding-bottom: 1mm; }
th, td { border: 0.7pt solid #000; padding: 0.5mm 2mm; text-align: center; font-weight: normal; }
th[scope=row] { text-align: left; }
.given { display: flex; flex-wrap: wrap; gap: 0 8mm; align-items: center; }
.step { width: 100%; }
.step td { height: 8.5mm; }
.blank { min-width: 15mm; }
.none { border: none; }
.blank b { font-family: Arial, Helvetica, sans-serif; font-size: 13pt; }
.formula { margin: 1.5mm 0; white-space: nowrap; }
sub, sup { font-size: 12pt; }
.write { height: 9mm; border-bottom: 0.7pt solid #000; }
@page { margin: 12mm 15mm; }
@media print { body { margin: 0 auto; } }
"""


def _cell(cell: str | Blank, filled: bool) -> str:
    if isinstance(cell, Blank):
        return f'<td class="blank">{f"<b>{cell.answer}</b>" if filled else ""}</td>'
    return f"<td>{cell}</td>" if cell else '<td class="none"></td>'


def _table(table: Table, kind: str, filled: bool) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in table.columns)
    rows = [f'<tr><th scope="row">{name}</th>{"".join(_cell(cell, filled) for cell in cells)}</tr>'
            for name, *cells in table.rows]
    return "\n".join([f'<table class="{kind}"><caption>{table.caption}</caption>', f"<tr>{head}</tr>", *rows, "</table>"])


def _section(number: int, sheet: Sheet, filled: bool) -> str:
    place = f"Notebook {sheet.notebook}, section {sheet.section}{sheet.exercise and f'; exercise {sheet.exercise}'}."
    closing = f'<p class="closing"><b>{sheet.answer}</b></p>' if filled else '<div class="write"></div>' * 2
    name = "" if filled else '<p class="lines"><span>Name</span><span>Date</span></p>'
    return "\n".join([
        f'<section id="sheet-{number}">{name}',
        f"<h1>{number}. {sheet.title}{': answers' if filled else ''}</h1>",
        f'<p class="place">{place} {"Worked with all digits, then rounded." if filled else f"With {sheet.need}."}</p>',
        f"<p>{sheet.intro}</p>",
        '<div class="given">', *(_table(table, "given-table", filled) for table in sheet.given),
        "<div>", *(f'<p class="formula">{formula}</p>' for formula in sheet.formulas), "</div></div>",
        *(_table(table, "step", filled) for table in sheet.steps),
        f"<p><b>In a sentence:</b> {sheet.question}</p>", closing, "</section>"])


def page(title: str, sheets: list[Sheet], filled: bool) -> str:
    """The HTML of all sheets, one a printed page; with the answers where `filled`."""
    body = "\n".join(_section(number, sheet, filled) for number, sheet in enumerate(sheets, start=1))
    return (f'<!DOCTYPE html>\n<html lang="en-GB">\n<head><meta charset="utf-8"><title>{title}</title>\n'
            f"<style>{STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n")
