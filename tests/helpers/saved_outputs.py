"""Where the notebooks' saved outputs must come out the same, digit for digit, and their figures as well.

Does: say whether they are compared on this machine; compare figures, and pieces of HTML to touch (in `saved_pieces`); refuse
a cell that writes to the error stream, libraries' progress bars included. Does not: compare the other outputs (nbval does).
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
    """How the figures of a cell differ from the saved ones; '' if they don't."""
    before, after = pictures(saved), pictures(now)
    if len(before) != len(after):
        return f"{len(after)} figures instead of {len(before)}"
    for k, (old, new) in enumerate(zip(before, after, strict=True)):
        problem = picture_difference(old, new)
        if problem:
            return f"figure {k} {problem}"
    return ""


def picture_difference(old: Picture, new: Picture) -> str:
    """How a picture differs from the saved one, in words that follow the picture's name; '' if it doesn't.

    Its bytes would differ between processors, whose last digits do. So width and height may differ by two per cent, a number
    in the alternative text by one per cent or 0.001; its words may not.
    """
    if any(abs(one - other) > 0.02 * one for one, other in zip(old.size, new.size, strict=True)):
        return f"has {new.size} pixels instead of {old.size}"
    return text_difference(old.text, new.text)


def text_difference(old: str, new: str) -> str:
    """How an alternative text, or a page of them, differs from the saved one; '' if it doesn't."""
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return f"is described in other words: {new!r} instead of {old!r}"
    for one, other in zip(NUMBER.findall(old), NUMBER.findall(new), strict=True):
        if not same_number(one, other):
            return f"is described with {other} instead of {one}: {new!r} instead of {old!r}"
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


# tqdm reads TQDM_DISABLE when it's imported: so libraries' bars are seen, as learners see them, and the course's aren't.
WITH_BARS_OF_LIBRARIES = """
import os
_off = os.environ.pop("TQDM_DISABLE", None)
import tqdm
if _off is not None:
    os.environ["TQDM_DISABLE"] = _off
del os, tqdm, _off"""


def refuse_error_streams(file_class: type, cell_class: type) -> None:
    """Let each of nbval's cells fail that writes to the error stream, which notebooks show on red, whatever its tags."""
    start, run = file_class.setup, cell_class.runtest

    def setup(self) -> None:
        start(self)
        self.kernel.await_reply(self.kernel.kc.execute(WITH_BARS_OF_LIBRARIES, silent=True), timeout=60)

    def runtest(self) -> None:
        run(self)
        said = "".join(out.text for out in self.test_outputs if out.output_type == "stream" and out.name == "stderr")
        if said:
            self.raise_cell_error("The cell writes to the error stream, which notebooks show on red", said)

    file_class.setup, cell_class.runtest = setup, runtest
