"""The page about classrooms, notebooks/classroom.md, as the commands that it tells people to run.

Does: find its blocks by the names that comments give them, and write the lines of `settings` with other values. Does not:
run them.
"""

import re
import shlex

from course_utils.files.paths import NOTEBOOKS

PAGE = NOTEBOOKS / "classroom.md"
BLOCK = re.compile(r"^<!-- run: ([\w-]+) -->\n```sh\n(.*?)^```$", re.M | re.S)
SETTING = re.compile(r"^([A-Z]+)=\S+( +#.*)?$")


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def blocks(text: str | None = None) -> dict[str, str]:
    """Each block's commands by its name, in the page's order. Raises ValueError for a block without a name of its own."""
    text = page() if text is None else text
    found = BLOCK.findall(text)
    if len(found) != len(re.findall(r"^```\w", text, re.M)) or len(dict(found)) != len(found):
        raise ValueError("every block of classroom.md needs a line <!-- run: name --> above it, with a name of its own")
    return dict(found)


def settings(values: dict[str, str], text: str | None = None) -> str:
    """The page's `settings` with `values` in place of the page's own. Raises ValueError unless they have the same names."""
    lines = blocks(text)["settings"].splitlines()
    names = [found[1] if (found := SETTING.match(line)) else line for line in lines]
    if sorted(names) != sorted(values):
        raise ValueError(f"the page sets {', '.join(names)}; expected {', '.join(sorted(values))}")
    return "".join(f"{name}={shlex.quote(str(values[name]))}\n" for name in names)
