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

    `complaint` follows the path of a file that holds something else, in the error of `load`. `texts` is "plain" for the
    vocabulary of a model that reads plain texts (see `training.plain_text`), None if it reads texts as they are.
    """

    kind, part, complaint, texts = "", "", "", None

    def content(self) -> dict:
        """What a file of it holds."""
        setting = {} if self.texts is None else {"texts": self.texts}
        return {"type": self.kind, **setting, self.part: getattr(self, self.part)}

    def save(self, path: str | Path) -> None:
        """Write the list as JSON, whole or not at all."""
        write_json(path, self.content(), indent=0)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote. Raises ValueError for a file of another kind, or for a model that reads other texts."""
        saved = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(saved, dict) or saved.get("type") != cls.kind:
            raise ValueError(f"{path} {cls.complaint}")
        if saved.get("texts") != cls.texts:
            raise ValueError(f"{path} is for a model that reads texts as {saved.get('texts') or 'they are'}, and a "
                             f"{cls.__name__} reads them as {cls.texts or 'they are'}; load the whole model, or use the "
                             "tokenizer that wrote the file")
        return cls(saved[cls.part])
