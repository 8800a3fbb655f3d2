"""What files were before a hand-in was executed, and which ones it changed.

Does: checksums of folders, compare them. Does not: put anything back.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from course_tools.grading.tables import shown
from course_tools.teaching.editions import LEFT_BEHIND
from course_utils.files import sha256


def checksums(places: list[Path]) -> dict[Path, str]:
    """{path: SHA-256} of files and of all files in folders; for a link where it leads to, for others what they are."""
    found: dict[Path, str] = {}
    for place in places:
        for path in sorted(_below(place)) if place.is_dir() else [place]:
            try:
                if path.is_symlink():
                    found[path] = f"link to {os.readlink(path)}"
                else:
                    found[path] = sha256(path) if path.is_file() else "no file"
            except OSError as error:
                found[path] = f"unreadable ({error.strerror})"
    return found


def _below(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in (*LEFT_BEHIND, ".git")]
        yield from (Path(here) / name for name in files if not name.endswith((".lock", ".holder", ".partial")))


def changes(before: dict[Path, str], after: dict[Path, str]) -> list[str]:
    """What differs: 'changed: path', 'removed: path', 'new: path'."""
    kinds = ((path, "removed" if path not in after else "new" if path not in before else "changed")
             for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path))
    return [f"{kind}: {shown(path)}" for path, kind in kinds]
