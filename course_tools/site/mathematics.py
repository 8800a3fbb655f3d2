"""The notebooks' formulas as MathML, which browsers set by themselves, and the font they're set in.

Does: LaTeX to MathML, the font's file and style sheet. Does not: load a script or ask a network for anything, so site and
slides show their formulas without JavaScript, in print and with a screen reader. Needs the packages of the extra `site`.
"""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from pathlib import Path
from xml.etree import ElementTree

from course_utils.files import write_text

FUNCTIONS = {"ln", "log", "sin", "cos", "tan", "tanh", "exp", "max", "min"}
CHANGED = """This copy has fewer characters than the original.
This Font Software is licensed under the SIL Open Font License, Version 1.1, which follows."""
BARS = ("|", "‖")
BEFORE_A_NUMBER = {"(", "[", ",", "=", "·", "×", "≈", "<", ">", "≤", "≥", "/", "→", "←"}
FONT_FILE = "STIXTwoMath.woff2"
STYLE = f"""@font-face {{ font-family: "STIX Two Math"; src: url("{FONT_FILE}") format("woff2"); font-display: block; }}
math {{ font-family: "STIX Two Math", "Cambria Math", math; font-size: 1.08em; }}
/* Chromium alone leaves room after a root for the widest sign of the font; the condition excludes Firefox and Safari */
@supports (not (-moz-appearance: none)) and (not (font: -apple-system-body)) {{
  math:not([display="block"]) :is(msqrt, mroot) {{ margin-right: -0.36em; }}
}}
math[display="block"] {{ display: block math; margin: 0.9em auto; overflow-x: auto; overflow-y: hidden; }}
/* Chromium doesn't read the attribute: without this, aligned lines would be centred */
mtd[columnalign="right"] {{ text-align: right; padding-right: 0; }}
mtd[columnalign="left"] {{ text-align: left; }}
mtd[columnalign="right"] + mtd[columnalign="left"] {{ padding-left: 0.28em; }}
"""


def mathml(latex: str, display: bool = False) -> str:
    """One formula of a notebook, without its dollar signs, as a `<math>` element; `display` puts it on a line of its own.

    The formula's LaTeX is its alternative text. Raises ValueError for a formula that can't be converted.
    """
    from latex2mathml.converter import convert

    latex = latex.strip()
    lined_up = latex.replace("{aligned}", "{align*}")      # the converter knows this one alone, and draws the same
    try:
        result = convert(lined_up, display="block" if display else "inline")
        tree = ElementTree.fromstring(result)
    except Exception as error:
        raise ValueError(f"the formula ${latex}$ can't be converted to MathML ({type(error).__name__}: {error}); "
                         "write it with simpler commands") from error
    unknown = re.search(r"<m[io]>\\\\?([a-zA-Z]+)</m[io]>", result)
    if unknown:
        raise ValueError(f"the formula ${latex}$ has the command \\{unknown[1]}, which can't be converted to MathML; "
                         "write it with simpler commands")
    tree.set("alttext", latex)
    _space_around_functions(tree)
    _space_around_signs(tree)
    for bar in tree.iter():
        if bar.tag.endswith("}mo") and bar.text == "¯":
            bar.text = "‾"                                 # as wide as the letter; the first is a short dash in the font
    ElementTree.register_namespace("", tree.tag[1:].partition("}")[0])
    return ElementTree.tostring(tree, encoding="unicode")


def _space_around_functions(tree: ElementTree.Element) -> None:
    """'ln p' and '2 sin a' get the thin spaces that LaTeX sets and the converter leaves out; 'ln(p)' needs none after it."""
    for row in _rows(tree):
        children = list(row)
        for place in range(len(children) - 1, -1, -1):
            one = children[place]
            if (one[0] if len(one) else one).text not in FUNCTIONS:            # 'sin' of sin² too
                continue
            space = one.tag.partition("}")[0] + "}mspace"
            following = children[place + 1] if place + 1 < len(children) else None
            if following is not None and "".join(following.itertext())[:1] not in "()[]/,":
                row.insert(place + 1, ElementTree.Element(space, {"width": "0.167em"}))
            if place and not (children[place - 1].tag.endswith("}mo") and children[place - 1].text not in ")]"):
                row.insert(place, ElementTree.Element(space, {"width": "0.167em"}))


def _space_around_signs(tree: ElementTree.Element) -> None:
    """No space around a slash or inside bars, and none after a number's own minus: '1/2', '|x|', '(−1, 0)'."""
    for row in _rows(tree):
        opened, before = set(), None
        for one in row:
            sign = one.text if one.tag.endswith("}mo") else ""
            if sign == "∞":                                # a number, not a sign between two
                one.tag = one.tag.replace("}mo", "}mi")
            if sign == "/":
                one.attrib.update({"lspace": "0", "rspace": "0"})
            elif sign in BARS:
                side = "postfix" if sign in opened else "prefix"
                one.attrib.update({"form": side, "fence": "true", "lspace": "0", "rspace": "0"})
                opened ^= {sign}
            elif sign in ("−", "+") and before is not None and before in BEFORE_A_NUMBER:
                one.set("form", "prefix")
            before = sign


def _rows(tree: ElementTree.Element) -> list[ElementTree.Element]:
    """The elements whose children stand side by side."""
    return [row for row in tree.iter() if row.tag.endswith(("}mrow", "}math", "}mtd", "}mstyle", "}mpadded"))]


def write_font(folder: Path, formulas: str) -> None:
    """Write the mathematical font, cut down to what `formulas` (HTML with MathML) and ordinary mathematics need.

    STIX Two Math, SIL Open Font License 1.1, from the package ziamath; the licence's text lies beside the font.
    """
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    options = Options()
    options.flavor = "woff2"
    options.layout_features = ["*"]
    with as_file(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf") as source:
        font = TTFont(source)
    wanted = set(range(0x20, 0x7F)) | set(range(0x391, 0x3F7)) | set(range(0x1D434, 0x1D7D0)) | {ord(c) for c in formulas}
    wanted.add(0x210E)                                     # the italic h, which Unicode has apart from the other letters
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=wanted | {ord(c) for c in "−×·÷±≤≥≠≈∞√∑∏∫∂∇∈→←⋅…⊙ℝ‖|()[]{}′⏞⏟‾̂̃̄⃗"})
    subsetter.subset(font)
    folder.mkdir(parents=True, exist_ok=True)
    font.flavor = "woff2"
    font.save(folder / FONT_FILE)
    copyright = next(record.toUnicode() for record in font["name"].names if record.nameID == 0)
    licence = (files("course_tools.site") / "OFL-1.1.txt").read_text(encoding="utf-8")
    write_text(folder / "STIXTwoMath-LICENSE.txt", f"{copyright}\n\n{CHANGED}\n\n{licence}")
