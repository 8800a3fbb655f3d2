"""IMDb and SST-2: from a folder that COURSE_DATA names, else from the `datasets` cache, else from the hub.

Does: find them, check them, download them at most once. Does not: touch the network if there is a copy.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import datasets
import pyarrow as pa
import pyarrow.compute as pc
from datasets import DatasetDict
from datasets.packaged_modules.cache.cache import Cache

from course_utils.data.fetching import HUB_TIMEOUT, fetch, hub_name
from course_utils.data.review_files import LABEL_NAMES, dataset_of, read_parquet

__all__ = ["HUB_TIMEOUT", "IMDB", "SST2", "DataNotAvailable", "load_corpus"]


class DataNotAvailable(RuntimeError):
    """Reviews that are neither on this machine nor to be fetched. The message names the ways out."""


class Corpus(NamedTuple):
    """Reviews that the hub has: where they are there, and what a copy of theirs must hold."""

    name: str                                           # in `load_reviews`, and of the folder in the one of COURSE_DATA
    title: str                                          # as people call it
    repository: str                                     # on the hub
    revision: str                                       # of the hub's copy, so that it is the same on every day
    configuration: str                                  # which of the hub's copies
    folder: str                                         # of its Parquet files
    text: str                                           # the column of the texts
    labels: dict[str, list[int]]                        # by split, those that it may have
    megabytes: int                                      # to download
    remark: str = ""                                    # for whoever asks for what isn't in it


IMDB = Corpus("imdb", "IMDb", "stanfordnlp/imdb", "e6281661ce1c48d982bc483cf8a173c1bbeb5d31", "plain_text", "plain_text",
              "text", {"train": [0, 1], "test": [0, 1], "unsupervised": [-1]}, 80)
SST2 = Corpus("sst2", "SST-2", "stanfordnlp/sst2", "8d51e7e4887a4caaa95b3fbebbf53c0490b58bbb", "default", "data",
              "sentence", {"train": [0, 1], "validation": [0, 1]}, 3,
              "its test split has no labels, each is -1")


def load_corpus(corpus: Corpus, splits: list[str], timeout: float) -> DatasetDict:
    """The named splits of IMDB or SST2; see `data.load_reviews`.

    Raises DataNotAvailable if there is no copy to be had, ValueError that names the file for a copy that isn't the corpus.
    """
    named = os.environ.get("COURSE_DATA")
    if named:
        tables = _in_folder(corpus, Path(named).expanduser(), splits)
        tried = f"COURSE_DATA names {named}, which lacks {corpus.folder}/*.parquet for {', '.join(splits)}"
    else:
        tables = _in_cache(corpus, splits)
        if tables is None:
            failure = _fetch(corpus, timeout, stall=timeout)
            tables = None if failure else _in_cache(corpus, splits)
            tried = ("COURSE_DATA is not set, the datasets cache has no copy, and "
                     + (failure or f"the hub's copy lacks one of {', '.join(splits)}"))
    if tables is None:
        files = " and ".join(f"{corpus.folder}/{split}-*.parquet" for split in list(corpus.labels)[:2])
        raise DataNotAvailable(
            f"{corpus.title} could not be loaded: {tried}.\n"
            f"Set COURSE_DATA to a folder that has {files},\n"
            'or connect to the internet and try again; load_reviews("reviews") works without either.')
    return DatasetDict({split: dataset_of(table, LABEL_NAMES) for split, table in tables.items()})


def _in_folder(corpus: Corpus, folder: Path, splits: list[str]) -> dict[str, pa.Table] | None:
    for base in (folder, folder / corpus.name):
        files = {split: sorted((base / corpus.folder).glob(f"{split}-*.parquet")) for split in splits}
        if all(files.values()):
            return {split: pa.concat_tables(_checked(corpus, read_parquet(path), split, str(path)) for path in paths)
                    for split, paths in files.items()}
    return None


def _checked(corpus: Corpus, table: pa.Table, split: str, name: str) -> pa.Table:
    """The columns text and label of a table whose rows can be used; `name` says where it comes from."""
    columns = table.column_names
    if columns.count(corpus.text) != 1 or columns.count("label") != 1:
        raise ValueError(f"{name} has the columns {', '.join(map(repr, columns)) or 'of nothing'}; expected {corpus.text} "
                         f"and label, each once, as in {corpus.title}'s own files; download it again")
    if table.num_rows == 0:
        raise ValueError(f"{name} holds no reviews; expected one row or more; download it again")
    text, label = table[corpus.text], table["label"]
    if not (pa.types.is_string(text.type) or pa.types.is_large_string(text.type)):
        raise ValueError(f"{name}: {corpus.text} is of type {text.type}; expected strings; download it again")
    if not pa.types.is_integer(label.type):
        raise ValueError(f"{name}: label is of type {label.type}; expected whole numbers; download it again")
    for column, values in ((corpus.text, text), ("label", label)):
        missing = values.is_null().to_pylist()
        if any(missing):
            raise ValueError(f"{name}: row {missing.index(True) + 1} has no {column}; expected a text and a label in every "
                             "row; download it again")
    try:
        empty = pc.equal(pc.utf8_trim_whitespace(text), "").to_pylist()
        text.validate(full=True)                        # text that isn't UTF-8
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"{name}: got a text that cannot be read ({str(error)[:80]}); expected UTF-8; download it "
                         "again") from None
    if any(empty):
        raise ValueError(f"{name}: row {empty.index(True) + 1} has an empty text; expected a review in every row; "
                         "download it again")
    found, expected = sorted(pc.unique(label).to_pylist()), corpus.labels[split]
    if not set(found) <= set(expected):
        remark = f" ({corpus.title}: {corpus.remark})" if corpus.remark else ""
        raise ValueError(f"{name}: got the labels {', '.join(map(str, found[:8]))}; expected "
                         f"{' and '.join(map(str, expected))} alone in {split}{remark}; download it again")
    return pa.table({"text": text.cast(pa.string()), "label": label.cast(pa.int64())})


def _in_cache(corpus: Corpus, splits: list[str]) -> dict[str, pa.Table] | None:
    """What an earlier download left, without a question to the network: the pinned revision, else the latest copy."""
    pinned = _read_cache(corpus, splits, version="0.0.0", hash=corpus.revision)
    return pinned or _read_cache(corpus, splits, version="auto", hash="auto")


def _read_cache(corpus: Corpus, splits: list[str], version: str, hash: str) -> dict[str, pa.Table] | None:
    verbosity = datasets.logging.get_verbosity()
    datasets.logging.set_verbosity_error()  # it would warn that it found what we are looking for
    try:
        copy = Cache(repo_id=corpus.repository, dataset_name=corpus.name, config_name=corpus.configuration, version=version,
                     hash=hash)
        tables = {split: copy.as_dataset(split).with_format("arrow")[:] for split in splits}
    except (ValueError, OSError, KeyError, TypeError):  # no copy, a broken one, or one without the split
        return None
    finally:
        datasets.logging.set_verbosity(verbosity)
    return {split: _checked(corpus, table, split, f"the datasets cache ({copy.cache_dir}, {split})")
            for split, table in tables.items()}


# what the child process of `fetch` does
_ASK = """
import datasets
# first a question without the library's retries, so that a refusal is reported at once
huggingface_hub.HfApi().dataset_info(TASK[0], revision=TASK[2], token=False)
builder = datasets.load_dataset_builder(TASK[0], TASK[1], revision=TASK[2], token=False)
"""
_STORE = "builder.download_and_prepare()"


def _fetch(corpus: Corpus, timeout: float, stall: float) -> str | None:
    """Downloads a corpus into the `datasets` cache. Returns None, or why it could not."""
    if datasets.config.HF_HUB_OFFLINE:
        return f"{hub_name()} was not asked, since HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is on"
    settings = {"HF_DATASETS_CACHE": str(datasets.config.HF_DATASETS_CACHE), "HF_HUB_DISABLE_TELEMETRY": "1",
                "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
                "HF_UPDATE_DOWNLOAD_COUNTS": "0", "HF_HUB_DISABLE_XET": "1"}  # the watch sees plain HTTP only
    return fetch(f"{corpus.title} (about {corpus.megabytes} MB)", "the datasets cache", _ASK, _STORE,
                 [corpus.repository, corpus.configuration, corpus.revision], settings, timeout, stall)
