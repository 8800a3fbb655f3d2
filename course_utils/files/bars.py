"""Progress bars, and lines about progress, on a stream where nobody takes them for errors.

Does: write them to the standard output of a notebook, which shows the error stream on red; elsewhere to the error stream,
so that what a command prints can go on to a file or another command. With TQDM_DISABLE=1, as in tests and wherever
notebooks are executed to be saved, there are none. Does not: use widgets, which the course does without, or show the bars
of libraries, which `course_utils` itself switches off.
"""

import os
import sys
from typing import TextIO

from tqdm import tqdm


def are_shown() -> bool:
    """Whether there are progress bars at all: yes, unless TQDM_DISABLE says no."""
    return os.environ.get("TQDM_DISABLE", "").strip().lower() in ("", "0", "false")


def stream() -> TextIO:
    """Where a progress bar goes: the standard output in a notebook, else the error stream."""
    return sys.stdout if type(sys.stdout).__module__.startswith("ipykernel.") else sys.stderr


def bar(items=None, *, shown: bool = True, **settings) -> tqdm:
    """A progress bar, over `items` or with a `total`; tqdm's documentation has the other settings."""
    return tqdm(items, file=stream(), disable=not (shown and are_shown()), **settings)


def say(text: str, *, shown: bool = True) -> None:
    """A line about progress, where a bar would be."""
    if shown and are_shown():
        print(text, file=stream(), flush=True)
