"""What a set's runs need before they can be made: texts, pretrained models, and what another set's runs have left.

A `Need` looks for one such thing; those that several sets share are here.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from course_tools.studies.standard_library import load_standard_library
from course_utils.data import load_reviews
from course_utils.files.paths import CHECKPOINTS
from course_utils.training.saved_models import holds_model


class Need(NamedTuple):
    """Something that runs read and don't make.

    what: its name.
    look(row, seed): finds what this run needs of it, or raises an error that says what isn't there and how to get it.
    made_by: the set whose runs leave it, where a set's do; that set is made first.
    rows: where it's the same set, the rows that leave it; these are made first.
    """

    what: str
    look: Callable[[str, int], object]
    made_by: str = ""
    rows: tuple[str, ...] = ()


def texts_from(*names: str) -> tuple[Need, ...]:
    """Collections of reviews or sentences, as `load_reviews` knows them."""
    return tuple(Need(name, lambda row, seed, name=name: load_reviews(name)) for name in names)


def committed(name: str) -> tuple[Need, ...]:
    """A model that comes with the course."""
    def look(row: str, seed: int) -> None:
        if not holds_model(CHECKPOINTS / name):
            raise FileNotFoundError(f"data/checkpoints has no model {name!r}; get it anew: git checkout -- data/checkpoints")

    return (Need(name, look),)


def there(path: Path, arguments: str) -> Path:
    """The path, if it's there. Raises FileNotFoundError with the arguments of the command that makes it."""
    if not path.exists():
        raise FileNotFoundError(f"{path} isn't there; make it first: python -m course_tools results {arguments}")
    return path


IMDB = Need("imdb", lambda row, seed: load_reviews("imdb", unsupervised=True))
LIBRARY = Need("the sources of Python's standard library", lambda row, seed: load_standard_library("validation"))
