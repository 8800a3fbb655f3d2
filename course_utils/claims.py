"""Sentences that stop the notebook when they stop being true.

    claim("a model without positions ties on twins", gap < 1e-5, gap)

prints the sentence with its number, and raises where the condition does not hold. Every claim of the
course's prose that a number can decide is made this way, so that running a notebook checks it.
"""

import math


def claim(sentence: str, holds, value=None) -> None:
    """Print `sentence` with `value` beside it; raise AssertionError if `holds` is false.

    `value` is a number, or a sequence of numbers, shown with four decimals at most: further digits
    differ between processors.
    """
    shown = "" if value is None else f"  [{_show(value)}]"
    if not bool(holds):
        raise AssertionError(f"no longer true: {sentence}{shown}")
    print(f"✓ {sentence}{shown}")


def _show(value) -> str:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ", ".join(_show(item) for item in value)
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.4f}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)
