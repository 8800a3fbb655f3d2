"""Where the notebooks' saved outputs must come out the same, digit for digit.

Does: say whether they are compared on this machine. Does not: compare them (nbval does).
"""

import platform

from course_utils.files.switches import is_on


def are_compared(system: str = "", machine: str = "") -> bool:
    """Whether a run compares every output with the saved one; `system` and `machine` stand in for this computer's.

    On Linux with an x86 processor it does. Elsewhere the last digits may differ, so there the notebooks run, and a failed
    claim, a wrong shape or an error is a failed test. COURSE_COMPARE=1 or 0 asks for one or the other.
    """
    here = (system or platform.system(), (machine or platform.machine()).lower())
    return is_on("COURSE_COMPARE", unset=here in {("Linux", "x86_64"), ("Linux", "amd64")})
