"""How a line such as `python -m course_utils train --epochs 2` finds its command; `course_tools` has commands of its own.

Does: list commands by group, find one and hand it the rest of the line. Does not: know any of them.
"""

import difflib
import importlib
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from course_utils.files.text import print_on_any_console

Command = Callable[[list[str]], int]
Load = Callable[[], Command]
# commands that were among the learner's, and are now those of `python -m course_tools`
MOVED = (
    "cheat-sheet", "site", "results", "imdb-facts", "explanations", "speed", "solutions", "handout",
    "sheets", "slides", "grade", "timetable", "slide-pictures", "export", "save", "exercise",
    "notebook", "models", "gallery", "animations", "hosted-copies", "processors", "seeds", "one-file",
)


def by_name(groups: dict[str, tuple[Load, ...]]) -> dict[str, Load]:
    """Each command under the name that a line calls it by."""
    return {name_of(load): load for loads in groups.values() for load in loads}


def name_of(load: Load) -> str:
    """The command's name in a line: 'slide-pictures' of the function `slide_pictures`."""
    return load.__name__.replace("_", "-")


def overview(program: str, groups: dict[str, tuple[Load, ...]]) -> str:
    """All commands by group, one per line."""
    lines = [f"python -m {program} COMMAND …        COMMAND --help tells you more"]
    for group, loads in groups.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name_of(load):<13} {load.__doc__}" for load in loads]
    return "\n".join(lines)


def run_command(program: str, groups: dict[str, tuple[Load, ...]], arguments: list[str]) -> int:
    """Run the command that the line names and return its exit status; return 2 if the line names no command.

    One that has moved to course_tools is run there, after a line that says so.
    """
    print_on_any_console()
    commands = by_name(groups)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview(program, groups))
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in commands and name in MOVED and program == "course_utils":
        if not (Path(__file__).resolve().parents[1] / "course_tools").is_dir():
            print(f"{name} is a command of course_tools, with which the course is made; this edition comes without it",
                  file=sys.stderr)
            return 2
        print(f"{name} has moved: python -m course_tools {name}", file=sys.stderr)
        return importlib.import_module("course_tools.__main__").main(arguments)
    if name not in commands:
        near = difflib.get_close_matches(name, commands, n=1)
        print(f"there is no command {name!r}{f'; did you mean {near[0]}?' if near else ''}\n\n{overview(program, groups)}",
              file=sys.stderr)
        return 2
    command = commands[name]()
    sys.argv[:] = [f"python -m {program} {name}", *rest]                   # what usage messages call the program
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return command(rest)
