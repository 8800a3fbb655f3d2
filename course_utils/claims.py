"""Statements that are checked every time a notebook runs, and the random seeds of the models they are about.

    claim("a model without positions ties on twins", gap < 1e-5, gap)

prints the sentence with its number. Every statement in the course's prose that a number can decide is made
this way, so running a notebook checks it. If the condition doesn't hold, a reader gets a few friendly lines
and the notebook goes on: digits differ between processors, and nothing further down depends on a claim.
With COURSE_TESTING=1 (set by the tests, `make course` and `make save`) or COURSE_STRICT=1, it raises an error.

    torch.manual_seed(live_seed(0))

uses seed 0, unless COURSE_TRAINING_SEED asks for another. That is how we check whether a claim about a model
trained in a notebook also holds for other seeds.
"""

import json
import math
import os

from course_utils.files.switches import is_on


def claim(sentence: str, holds, value=None) -> None:
    """Print `sentence` with `value` next to it; if `holds` is false, say so in a friendly way.

    `value` is a number, or a sequence of numbers, shown with four decimals at most: further digits
    differ between processors. Raises AssertionError instead of printing where COURSE_TESTING or
    COURSE_STRICT is on. Appends each claim as a line of JSON to the file that COURSE_CLAIMS names.
    """
    if callable(holds) or isinstance(holds, str) or hasattr(holds, "__next__"):  # each would pass for true
        raise TypeError(f"claim() got {holds!r:.40}, which is neither true nor false; write a comparison, such as gap < 0.1")
    holds = bool(holds)
    shown = "" if value is None else f"  [{_show(value)}]"
    if named := os.environ.get("COURSE_CLAIMS"):
        with open(named, "a", encoding="utf-8") as file:
            print(json.dumps({"sentence": sentence, "holds": holds, "shown": shown.strip(" []")}), file=file)
    if holds:
        print(f"✓ {sentence}{shown}")
    elif is_on("COURSE_TESTING") or is_on("COURSE_STRICT"):
        raise AssertionError(f"no longer true: {sentence}{shown}")
    else:
        brackets = "; in brackets is what came out" if shown else ""
        print(f"✗ {sentence}{shown}\n"
              f"  We expected this to be true, and on your computer it isn't{brackets}.\n"
              "  If you changed something above, that may be why. If not, you did nothing wrong: digits differ\n"
              "  between processors, and sometimes that tips a result. Go on with the next cell.")


def live_seed(seed: int) -> int:
    """The seed for a model that a notebook trains: `seed` + 1000 · COURSE_TRAINING_SEED, which is 0 unless set.

    Raises ValueError if COURSE_TRAINING_SEED isn't a whole number from 0 to 1000000.
    """
    text = os.environ.get("COURSE_TRAINING_SEED", "").strip() or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= 7 and int(text) <= 1_000_000):
        raise ValueError(f"COURSE_TRAINING_SEED={text!r:.60}: expected a whole number from 0 to 1000000; "
                         "unset it to get the course's usual seeds")
    return seed + 1000 * int(text)


def _show(value) -> str:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ", ".join(_show(item) for item in value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{round(value, 4) + 0.0:.4f}" if abs(value) < 1000 else f"{value:.0f}"     # + 0.0: no minus before a zero
    return str(value)
