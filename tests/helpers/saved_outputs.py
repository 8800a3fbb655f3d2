"""Where the notebooks' saved outputs must come out the same, digit for digit, and their figures as well.

Does: say whether they are compared on this machine; compare figures, and pieces of HTML to touch (in `saved_pieces`).
Does not: compare the other outputs (nbval does).
"""

import base64
import platform
import struct
from typing import NamedTuple

from saved_pieces import NUMBER, pieces_difference, same_number, without_pieces

from course_utils.files.switches import is_on


def are_compared(system: str = "", machine: str = "") -> bool:
    """Whether a run compares every output with the saved one; `system` and `machine` stand in for this computer's.

    On Linux with an x86 processor it does. Elsewhere the last digits may differ, so there the notebooks run, and a failed
    claim, a wrong shape or an error is a failed test. COURSE_COMPARE=1 or 0 asks for one or the other.
    """
    here = (system or platform.system(), (machine or platform.machine()).lower())
    return is_on("COURSE_COMPARE", unset=here in {("Linux", "x86_64"), ("Linux", "amd64")})


class Picture(NamedTuple):
    """What is compared of a figure: its (width, height) in pixels, and its alternative text ('' where it has none)."""

    size: tuple[int, int]
    text: str


def pictures(outputs: list[dict]) -> list[Picture]:
    """The PNG pictures of a cell's outputs, in order."""
    found = []
    for output in outputs:
        if "image/png" in output.get("data", {}):
            header = base64.b64decode(output["data"]["image/png"][:64])
            described = output.get("metadata", {}).get("image/png", {})
            found.append(Picture(struct.unpack(">II", header[16:24]), described.get("alt", "")))
    return found


def difference(saved: list[dict], now: list[dict]) -> str:
    """How the figures of a cell differ from the saved ones; '' if they don't.

    Width and height may differ by two per cent, a number in an alternative text by one per cent or 0.001; its words may not.
    """
    before, after = pictures(saved), pictures(now)
    if len(before) != len(after):
        return f"{len(after)} figures instead of {len(before)}"
    for k, (old, new) in enumerate(zip(before, after, strict=True)):
        if any(abs(one - other) > 0.02 * one for one, other in zip(old.size, new.size, strict=True)):
            return f"figure {k} has {new.size} pixels instead of {old.size}"
        if NUMBER.sub("#", old.text) != NUMBER.sub("#", new.text):
            return f"figure {k} is described in other words: {new.text!r} instead of {old.text!r}"
        for one, other in zip(NUMBER.findall(old.text), NUMBER.findall(new.text), strict=True):
            if not same_number(one, other):
                return f"figure {k} is described with {other} instead of {one}: {new.text!r} instead of {old.text!r}"
    return ""


def compare_figures_too(cell_class: type) -> None:
    """Let nbval's cells compare the figures as well, which it leaves out: their sizes and their alternative texts.

    Pieces of HTML are compared by what they show, not as the text that nbval sees.
    """
    compare_the_rest = cell_class.compare_outputs

    def compare_outputs(self, test, ref, skip_compare=None) -> bool:
        if not compare_the_rest(self, without_pieces(test), without_pieces(ref), skip_compare):
            return False
        problem = difference(ref, test) or pieces_difference(ref, test)
        if problem:
            self.comparison_traceback.append(problem)
        return not problem

    cell_class.compare_outputs = compare_outputs
