"""The command of the builders in data/: write a corpus's files, or compare them with what the builder would write."""

import argparse
from collections.abc import Callable
from pathlib import Path

from course_utils.files import write_text

__all__ = ["write_or_check"]


def write_or_check(
    build: Callable[[], dict[str, str]], folder: Path, description: str, arguments: list[str] | None = None
) -> int:
    """Write the files that `build` gives by name, or with --check compare them; 1 if one differs, else 0."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="rebuild the corpus in memory and compare it with the files")
    check, status = parser.parse_args(arguments).check, 0
    for name, content in build().items():
        path = folder / name
        if not check:
            write_text(path, content)
            print(f"wrote {name}")
        elif not path.exists() or path.read_bytes() != content.encode("utf-8"):
            print(f"{name} differs from what the builder writes; run python data/{folder.name}/build.py")
            status = 1
    return status
