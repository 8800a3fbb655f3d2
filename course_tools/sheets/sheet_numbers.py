"""How numbers are written on the sheets, and what it takes to work them out."""

import math
from fractions import Fraction

from course_tools.sheets.sheet_pages import Blank

CALCULATOR = "a calculator, to three decimals"


def minus(text: str) -> str:
    """The text with a minus sign in place of the hyphen."""
    return text.replace("-", "−")


def rounded(value: float, signed: bool = False) -> str:
    """Three decimals, or none for a whole number: '−0.463', '6', with `signed` '+0.194'."""
    decimals = 0 if math.isclose(value, round(value), abs_tol=1e-9) else 3
    return minus(f"{round(value, decimals) + 0.0:{'+' if signed else ''}.{decimals}f}")   # + 0.0: no minus before a zero


def exact(value: float | Fraction) -> str:
    """A number without rounding that shows: '−2/3', '0.936', '26'."""
    return minus(str(value) if isinstance(value, Fraction) else f"{value + 0.0:.6g}")


def blanks(values, show=rounded) -> list[Blank]:
    """One blank for each value."""
    return [Blank(show(value)) for value in values]
