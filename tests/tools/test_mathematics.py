"""Formulas as MathML: those of every notebook can be converted, and lines that are aligned become a table."""

import re
from xml.etree import ElementTree

import nbformat
import pytest

from course_utils.tools.mathematics import mathml
from course_utils.tools.notebooks import everything

FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+?)\$", re.S)


@pytest.mark.parametrize("path", everything(), ids=lambda path: path.stem)
def test_every_formula_of_a_notebook_can_be_converted(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"```.*?```|`[^`\n]*`", "", cell.source, flags=re.S)
            for block, inline in FORMULA.findall(text):
                ElementTree.fromstring(mathml(block or inline, display=bool(block)))


def test_aligned_lines_are_the_rows_of_a_table_and_no_sign_is_left_over():
    found = mathml(r"\begin{aligned} r &= a \\ n &= b + c \end{aligned}", display=True)
    tree = ElementTree.fromstring(found)
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter() if row.tag.endswith("}mtr")]
    assert rows == [["r", "=a"], ["n", "=b+c"]] and "&" in tree.get("alttext")


@pytest.mark.parametrize("latex", [r"\frac{1}{", "a & b"])
def test_what_cannot_be_converted_is_named(latex):
    with pytest.raises(ValueError, match="can't be converted to MathML"):
        mathml(latex)
