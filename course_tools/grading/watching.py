"""Which files a hand-in changed that aren't its own, where nothing kept it from that.

Does: compare checksums of folders. Does not: put anything back.
"""

import os
from pathlib import Path

from course_tools.grading.tables import shown
from course_tools.teaching.editions import LEFT_BEHIND
from course_utils.files import sha256


class Watched:
    """Files, and all files in folders, as they were when somebody last looked."""

    def __init__(self, places: list[Path]):
        self.places, self.before = places, checksums(places)

    def changes(self) -> list[str]:
        """What differs since the last look: 'changed: path', 'removed: path', 'new: path'."""
        before, self.before = self.before, checksums(self.places)
        differs = sorted(path for path in before.keys() | self.before.keys() if before.get(path) != self.before.get(path))
        return [f"{'removed' if path not in self.before else 'changed' if path in before else 'new'}: {shown(path)}"
                for path in differs]


def checksums(places: list[Path]) -> dict[Path, str]:
    """{path: SHA-256} of files and of all files in folders; '' for what isn't a file that can be read."""
    found: dict[Path, str] = {}
    for place in places:
        for here, folders, files in os.walk(place) if place.is_dir() else [(place.parent, [], [place.name])]:
            folders[:] = [name for name in folders if name not in (*LEFT_BEHIND, ".git")]
            for path in (Path(here) / name for name in files if not name.endswith((".lock", ".holder", ".partial"))):
                try:
                    found[path] = sha256(path) if path.is_file() else ""
                except OSError:
                    found[path] = ""
    return found
