"""Every formula of the course as MathML: it converts, and the spaces are those that a printer would set.

Needs no browser, but the packages of the site.
"""

import json
import re
from xml.etree import ElementTree

import pytest
from fontTools.ttLib import TTFont

from course_tools.site.mathematics import FONT_FILE, mathml, write_font
from course_utils.copies.notebooks import everything
from course_utils.files.paths import NOTEBOOKS

CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\$)\$([^$\n]+)\$(?!\$)", re.S)


def texts():
    """The Markdown of each notebook and page."""
    for path in everything():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for path in NOTEBOOKS.glob("*.md"):
        yield path.read_text(encoding="utf-8")


FOUND = [found for text in texts() for found in FORMULA.finditer(CODE.sub("", text))]
FORMULAS = sorted({(found[1] or found[2], bool(found[1])) for found in FOUND})


def bare(latex):
    """The MathML within `<mrow>`, without namespaces and alternative text."""
    return re.sub(r"^<math[^>]*><mrow>|</mrow></math>$", "", mathml(latex))


def test_the_course_has_formulas():
    assert len(FORMULAS) > 300


@pytest.mark.parametrize("latex, display", FORMULAS)
def test_a_formula_becomes_mathml_that_says_what_it_is(latex, display):
    made = mathml(latex, display)
    assert f'display="{"block" if display else "inline"}"' in made and "alttext=" in made
    assert "\\" not in re.sub(r'alttext="[^"]*"', "", made)            # no command is left over


@pytest.mark.parametrize("latex, part", [
    ("1/2", '<mo lspace="0" rspace="0">/</mo>'),
    ("|q|", '<mo stretchy="false" form="prefix" fence="true" lspace="0" rspace="0">|</mo><mi>q</mi>'),
    ("|q|", '<mi>q</mi><mo stretchy="false" form="postfix" fence="true" lspace="0" rspace="0">|</mo>'),
    ("(-1, 0)", '<mo form="prefix">−</mo>'),
    ("a - b", "<mo>−</mo>"),
    (r"-\infty", "<mi>∞</mi>"),
    (r"\bar w", "‾"),
    (r"w \ln w", '<mi>w</mi><mspace width="0.167em" /><mi>ln</mi><mspace width="0.167em" /><mi>w</mi>'),
    (r"-\ln(p)", '<mo>−</mo><mi>ln</mi><mo stretchy="false">('),
])
def test_the_spaces_are_those_of_print(latex, part):
    assert part in bare(latex)


def test_aligned_lines_are_the_rows_of_a_table_and_no_sign_is_left_over():
    tree = ElementTree.fromstring(mathml(r"\begin{aligned} r &= a \\ n &= b + c \end{aligned}", display=True))
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter() if row.tag.endswith("}mtr")]
    assert rows == [["r", "=a"], ["n", "=b+c"]] and "&" in tree.get("alttext")


@pytest.mark.parametrize("latex", [r"\frac{1}{", "a & b"])
def test_what_cannot_be_converted_is_an_error_that_shows_the_formula(latex):
    with pytest.raises(ValueError, match="can't be converted to MathML"):
        mathml(latex)


def test_a_command_that_nobody_knows_is_an_error_that_names_it():
    with pytest.raises(ValueError, match="nosuch"):
        mathml(r"\nosuch x")


def test_the_font_comes_with_its_licence(tmp_path):
    write_font(tmp_path, mathml(r"\sqrt{d_k}"))
    licence = (tmp_path / "STIXTwoMath-LICENSE.txt").read_text(encoding="utf-8")
    assert (tmp_path / FONT_FILE).stat().st_size > 50_000
    assert {ord("x"), 0x1D465, 0x210E} <= TTFont(tmp_path / FONT_FILE).getBestCmap().keys()  # x and italics
    assert licence.startswith("Copyright") and "SIL OPEN FONT LICENSE Version 1.1" in licence and "TERMINATION" in licence
