"""Multi30k's English and French sentences: from a folder that COURSE_DATA names, else from a cache, else from the network.

Does: find the six text files, check them, download them at most once. Does not: touch the network if there is a copy.

We found no copy on the Hugging Face hub that has French, the test set of 2016 and no pictures: those that we found hold
10 GB of pictures, lack the test set, or are German. So the files come from the data set's own repository, on GitHub, at a
pinned commit. Nobody had fetched them from there when this was written; the tests use a server of their own.

D. Elliott, S. Frank, K. Sima'an and L. Specia (2016). Multi30K: Multilingual English-German Image Descriptions.
https://doi.org/10.18653/v1/W16-3210
D. Elliott, S. Frank, L. Barrault, F. Bougares and L. Specia (2017). Findings of the Second Shared Task on Multimodal Machine
Translation and Multilingual Image Description. https://doi.org/10.18653/v1/W17-4718
"""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import datasets

from course_utils.data.fetching import fetch
from course_utils.data.hub import DataNotAvailable
from course_utils.files.text import decoded

__all__ = ["ADDRESS", "REVISION", "load_multi30k", "read_sentences"]

ADDRESS = "https://raw.githubusercontent.com"
REVISION = "c9be912dc05a3ebf9ae5bb5f7f58c1791cda43ab"
FILES = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
LANGUAGES = ("en", "fr")


def load_multi30k(timeout: float) -> dict[str, tuple[list[str], list[str]]]:
    """The English and the French sentences of each split. Raises DataNotAvailable; ValueError for a damaged file."""
    named = os.environ.get("COURSE_DATA")
    if named:
        folder = Path(named).expanduser()
        for base in (folder, folder / "multi30k"):
            paths = _paths(base)
            if paths:
                return _read(paths)
        tried = f"COURSE_DATA names {named}, which lacks one of {', '.join(_names())}"
    else:
        base = Path(datasets.config.HF_DATASETS_CACHE) / f"multi30k-{REVISION}"
        if not _paths(base):
            failure = _download(base, timeout)
            tried = f"COURSE_DATA is not set, the datasets cache has no copy, and {failure}"
        if _paths(base):
            return _read(_paths(base))
    raise DataNotAvailable(
        f"Multi30k could not be loaded: {tried}.\n"
        "Set COURSE_DATA to a folder that has train, val and test_2016_flickr, each as .en and .fr (or .en.gz and .fr.gz),\n"
        'or connect to the internet and try again; load_translations("translation") works without either.'
    )


def _names() -> list[str]:
    return [f"{stem}.{language}" for stem in FILES.values() for language in LANGUAGES]


def _paths(folder: Path) -> dict[str, Path] | None:
    """The six files of a folder, gzipped or not; None if one is missing."""
    found = {}
    for name in _names():
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                found.setdefault(name, path)
    return found if len(found) == len(_names()) else None


def _read(paths: dict[str, Path]) -> dict[str, tuple[list[str], list[str]]]:
    splits = {}
    for split, stem in FILES.items():
        sides = tuple(read_sentences(paths[f"{stem}.{language}"], "download it again") for language in LANGUAGES)
        if len(sides[0]) != len(sides[1]):
            raise ValueError(
                f"{paths[f'{stem}.en']} has {len(sides[0])} lines and {paths[f'{stem}.fr']} has {len(sides[1])}; "
                "expected one translation for each sentence; download them again"
            )
        splits[split] = sides
    return splits


def read_sentences(path: Path, mend: str) -> list[str]:
    """The lines of a text file, gzipped if its name ends in .gz. Raises ValueError, which ends with what to do, `mend`, for
    one that can't be read, and for an empty line.
    """
    try:
        content = path.read_bytes()
        text = decoded(gzip.decompress(content) if path.suffix == ".gz" else content, "its text")
    except (OSError, EOFError, zlib.error, ValueError) as error:
        why = str(error).split("; expected")[0][:80]
        raise ValueError(
            f"{path} can't be read ({why}); expected UTF-8 text, gzipped if its name ends in .gz; {mend}"
        ) from None
    lines = [line.strip() for line in text.strip("\n").split("\n")]
    if "" in lines:
        raise ValueError(
            f"{path}: line {lines.index('') + 1} is empty; expected a sentence in every line; {mend}"
        )
    return lines


# what the child process of `fetch` does: the smallest file is the question, the others follow; names appear when all is
# there
_ASK = """
from pathlib import Path
session = huggingface_hub.get_session()
def get(name):
    response = session.get(f"{TASK[0]}/multi30k/dataset/{TASK[1]}/data/task1/raw/{name}", timeout=600)
    response.raise_for_status()
    return response.content
folder = Path(TASK[2])
contents = {TASK[3]: get(TASK[3])}
"""
_STORE = """
contents.update({name: get(name) for name in TASK[4:]})
folder.mkdir(parents=True, exist_ok=True)
for name, content in contents.items():
    partial = folder / (name + ".part")
    partial.write_bytes(content)
    partial.replace(folder / name)
"""


def _download(folder: Path, timeout: float, stall: float | None = None) -> str | None:
    """Downloads the six files into a folder. Returns None, or why it could not."""
    site = f"GitHub ({ADDRESS.split('//')[1]})"
    if datasets.config.HF_HUB_OFFLINE:
        return f"{site} was not asked, since HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is on"
    names = [f"{name}.gz" for name in _names()]
    names = ["val.en.gz", *(name for name in names if name != "val.en.gz")]
    return fetch(
        "Multi30k (about 2 MB)",
        "the datasets cache",
        _ASK,
        _STORE,
        [ADDRESS, REVISION, str(folder), *names],
        {"HF_HUB_DISABLE_TELEMETRY": "1"},
        timeout,
        stall=stall or timeout,
        site=site,
    )
