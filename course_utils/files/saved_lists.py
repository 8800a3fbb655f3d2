"""Things that are made from one list, such as a vocabulary, kept as a file of JSON.

Does: write the list, whole or not at all; read it back, and refuse the file of another kind of thing. Does not: check
what is in the list (see `training.saved_contents`).
"""

import json
from pathlib import Path
from typing import Self

from course_utils.files import write_json


class SavedList:
    """A thing that is made from one list, its attribute named `part`; `kind` is what its files call it.

    `complaint` follows the path of a file that holds something else, in the error of `load`.
    """

    kind, part, complaint = "", "", ""

    def save(self, path: str | Path) -> None:
        """Write the list as JSON, whole or not at all."""
        write_json(path, {"type": self.kind, self.part: getattr(self, self.part)}, indent=0)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote. Raises ValueError for a file of another kind."""
        saved = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(saved, dict) or saved.get("type") != cls.kind:
            raise ValueError(f"{path} {cls.complaint}")
        return cls(saved[cls.part])
