"""Environment variables that switch something on or off, such as COURSE_STRICT=1. All are read here, in one way.

Does: read one. Does not: know what it switches; variables with other values, such as COURSE_SEED, are read where they
are used.
"""

import os

ON, OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def is_on(name: str, unset: bool = False) -> bool:
    """Whether the environment variable `name` is on; `unset` is the answer where it is empty or not there.

    Capitals and spaces around the word don't matter. Raises ValueError for a word that is neither in ON nor in OFF.
    """
    text = os.environ.get(name, "").strip()
    if text and text.lower() not in ON + OFF:
        raise ValueError(f"{name}={text!r:.60}: expected {', '.join(ON[:-1])} or {ON[-1]} to switch it on, or "
                         f"{', '.join(OFF[:-1])} or {OFF[-1]} to switch it off; unset it to get the usual setting")
    return text.lower() in ON if text else unset
