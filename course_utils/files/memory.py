"""How much memory this process has held.

Does: ask the system for the process's own record. Does not: count a GPU's memory, or that of other processes.
"""

import os
import sys
from pathlib import Path


def peak_mb() -> float:
    """The most memory that this process has held so far, in MB of a million bytes.

    On Linux from /proc, which begins anew with each program; getrusage would begin with what the parent held. Raises
    OSError where the system keeps no such record.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) * 1.024e-3
    if os.name == "nt":
        raise OSError("Windows keeps this record, but Python's standard library can't read it")
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
