"""Folders of reviews: which of their files are for training, validation and testing, in the layouts that people have.

    train.csv  test.csv                                 files of your own, each named after its split
    data/train-00000-of-00002.parquet …                 a copy of a data set on the Hugging Face hub
    train/pos/0_9.txt  train/neg/1_2.txt …              a text in each file, a folder for each label: IMDb's archive, aclImdb
    dataset_dict.json  train/state.json …               what `save_to_disk` of the library datasets wrote
    part-00000-….snappy.parquet  _SUCCESS               what Spark wrote: a single split

Does: find the files. Does not: read them (see `review_files`).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from course_utils.data.review_files import ENDINGS, SAVED, class_folders

__all__ = ["split_files"]

_SPLITS = {"train": "train", "validation": "validation", "valid": "validation", "val": "validation",
           "dev": "validation", "test": "test"}
_NAME = re.compile(rf"({'|'.join(_SPLITS)})(?:-(\d+)-of-(\d+)(?:-[0-9a-f]+)?)?")       # the hub's names of pieces
_PIECE = re.compile(r"part-\d+.*")                      # Spark's
_SAVED_SPLITS = "dataset_dict.json"


def split_files(folder: Path) -> dict[str, list[Path]]:
    """The files of a folder by split, such as {"train": [train.csv], "test": [test.csv]}; other files don't matter.

    A split can have several files, which are read one after the other. Raises FileNotFoundError for a folder without
    anything that is recognized, ValueError for one that has two candidates for the same thing, or lacks a piece.
    """
    found = _layout(folder)
    if not found:
        inside = {sub.name: files for sub in _subfolders(folder) if (files := _layout(sub))}
        if len(inside) > 1:
            raise ValueError(f"{folder} has reviews in several folders: {', '.join(inside)}; expected one; give the path of "
                             f"the one that you mean, such as {folder / next(iter(inside))}")
        found = next(iter(inside.values()), None)
    if not found:
        raise FileNotFoundError(f"{folder}: got {sorted(path.name for path in folder.iterdir())[:8]}; expected train, "
                                f"validation or test with the ending {', '.join(ENDINGS)}; add one{_hint(folder)}")
    return {split: found[split] for split in ("train", "validation", "test") if split in found}


def _layout(folder: Path) -> dict[str, list[Path]]:
    """The files by split of a folder in one of the layouts above; empty for any other."""
    if (folder / _SAVED_SPLITS).is_file():
        return _saved_splits(folder)
    if (folder / SAVED).is_file():
        return {"train": [folder]}
    if found := _named_files(folder):
        return found
    by_split = {}
    for sub in _subfolders(folder):
        split = _SPLITS.get(sub.name.lower())
        files = [path for path in sorted(sub.iterdir()) if path.suffix.lower() in ENDINGS] if split else []
        if split and (files or class_folders(sub)):
            _claim(by_split, split, files or [sub], sub)
    if by_split:
        return by_split
    if len(class_folders(folder)) > 1:
        return {"train": [folder]}
    pieces = [path for path in sorted(folder.iterdir()) if _PIECE.fullmatch(path.stem) and path.suffix.lower() in ENDINGS]
    return {"train": pieces} if pieces else {}


def _named_files(folder: Path) -> dict[str, list[Path]]:
    """train.csv, or the pieces train-00000-of-00002.parquet and train-00001-of-00002.parquet."""
    whole, pieces = {}, {}
    for path in sorted(folder.iterdir()):
        name = _NAME.fullmatch(path.stem.lower()) if path.suffix.lower() in ENDINGS else None
        if name and name[2] is None:
            _claim(whole, _SPLITS[name[1]], [path], path)
        elif name:
            pieces.setdefault((_SPLITS[name[1]], int(name[3])), []).append((int(name[2]), path))
    for (split, count), some in pieces.items():
        missing = sorted(set(range(count)) - {number for number, _ in some})
        if missing or len(some) != count:
            what = f"no piece {missing[0]:05}" if missing else "a piece twice"
            raise ValueError(f"{folder}: {split} is in {count} pieces, such as {some[0][1].name}, and there is {what}; "
                             "expected each of them once; download the folder again")
        _claim(whole, split, [path for _, path in sorted(some)], some[0][1])
    return whole


def _claim(splits: dict[str, list[Path]], split: str, files: list[Path], named: Path) -> None:
    if split in splits:
        raise ValueError(f"{named.parent}: got both {splits[split][0].name} and {named.name}; expected one file for "
                         f"{split}; move one of them away")
    splits[split] = files


def _saved_splits(folder: Path) -> dict[str, list[Path]]:
    try:
        names = json.loads((folder / _SAVED_SPLITS).read_text(encoding="utf-8"))["splits"]
        found = {}
        for name in names:
            if split := _SPLITS.get(name.lower()):
                _claim(found, split, [folder / name], folder / name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if "expected one file" in str(error):
            raise
        raise ValueError(f"{folder / _SAVED_SPLITS} cannot be read ({error!r:.80}); expected what save_to_disk wrote; save "
                         "the data set again") from None
    if not found:
        raise ValueError(f"{folder}: got the splits {', '.join(map(str, names)) or 'of nothing'}; expected train, "
                         "validation or test; name them so before save_to_disk")
    return found


def _subfolders(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir())
            if path.is_dir() and not path.name.startswith(".") and os.access(path, os.R_OK | os.X_OK)]


def _hint(folder: Path) -> str:
    """What else a folder may be, and how to make a file of it."""
    if any(folder.glob("*.arrow")):
        return (". Files that end in .arrow are a cache of datasets: open one with datasets.Dataset.from_file(name) and "
                "write it with .to_parquet('train.parquet')")
    ours = [path.name for path in sorted(folder.iterdir()) if path.is_file() and path.suffix.lower() in ENDINGS]
    if ours:
        return f", or give the path of a file, such as {folder / ours[0]}"
    deeper = (path for sub in _subfolders(folder) for path in _subfolders(sub) if _layout(path))
    if path := next(deeper, None):
        return f", or give the path of a folder further down that has them: {path}"
    return ""
