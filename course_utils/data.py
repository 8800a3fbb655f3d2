"""Reviews and their labels: the course's own, IMDb's, or those of your own file.

What it does: `load_reviews` returns a `datasets.DatasetDict` whose splits hold a string column `text` and a
`ClassLabel` column `label`; `split_reviews` makes a validation split; `by_kind` and `pairs` find rows.
What it does not do: tokenize, clean or shuffle (IMDb keeps its `<br />`), or read more than fits in memory.
Only "imdb" without a local folder touches the network and the `datasets` cache.
"""

from __future__ import annotations

import csv
import io
import json
import os
import queue
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, DatasetDict
from datasets.packaged_modules.cache.cache import Cache

__all__ = ["DATA_FOLDER", "LABEL_NAMES", "DataNotAvailable", "by_kind", "find_folder", "load_reviews",
           "pairs", "split_reviews"]

LABEL_NAMES = ["negative", "positive"]
DATA_FOLDER = Path(__file__).resolve().parent.parent / "data"
HUB_TIMEOUT = 14.0  # seconds; with a child process to start and to stop, the caller waits less than 20


class DataNotAvailable(RuntimeError):
    """Reviews that are neither on this machine nor to be fetched. The message names the ways out."""


def find_folder(name: str = "") -> Path:
    """The course's data folder, or the folder `name` in it, such as "reviews". Raises DataNotAvailable."""
    folder = DATA_FOLDER / name
    if not folder.is_dir():
        raise DataNotAvailable(f"there is no folder {folder}; expected data/ beside course_utils/, as in a "
                               "clone of the repository; install the package from there: pip install -e .")
    return folder


def load_reviews(source: str | Path = "reviews", *, unsupervised: bool = False,
                 timeout: float = HUB_TIMEOUT) -> DatasetDict:
    """Labelled reviews as a DatasetDict, held in memory; label 0 is negative and 1 positive.

    source: one of
        "reviews": the course's reviews; train, validation and test; columns id, text, label, kind, evidence
            (a list of character spans [start, end)), pair (the partner's id or None), frame, unseen_frame.
        "handwritten": the hand-written reviews; test alone; the same columns where they apply.
        "imdb": train and test, and unsupervised (label -1) if asked for. From the folder that the variable
            COURSE_DATA names (it, or imdb/ in it, holds plain_text/*.parquet); where it is not set, from the
            `datasets` cache or the hub. A folder's files may be shorter than 25,000 rows: see `num_rows`.
        a path: a CSV, TSV, JSON Lines or Parquet file, which becomes train, or a folder of such files named
            train, validation and test. Columns text and label, in any case; others are kept. Labels are 0 and
            1, or names: neg and pos become negative and positive, others are kept and numbered as sorted.
    timeout: seconds to wait for the hub to answer, and for a transfer that has stalled.

    Raises FileNotFoundError for a path that is not there, ValueError for a file that cannot be used (it names
    the row), DataNotAvailable where the course's data folder or IMDb cannot be had.
    """
    if source == "imdb":
        return _load_imdb(["train", "test"] + ["unsupervised"] * unsupervised, timeout)
    if source == "reviews":
        return _load_files(_split_files(find_folder("reviews")))
    if source == "handwritten":
        return _load_files({"test": find_folder() / "handwritten.jsonl"})
    path = Path(source).expanduser()
    return _load_files(_split_files(path) if path.is_dir() else {"train": path})


def split_reviews(dataset: Dataset | DatasetDict, validation: float = 0.1, seed: int = 0) -> DatasetDict:
    """Splits reviews into train and validation, stratified by label; further splits are kept as they are.

    dataset: a Dataset, or a DatasetDict with train and without validation.
    validation: the share of the rows that goes to validation, between 0 and 1.
    Reviews of the same text, and the two halves of a pair, stay together. Rows keep their order.
    Raises ValueError for another share, other splits, or too few reviews.
    """
    if not 0 < validation < 1:
        raise ValueError(f"got validation={validation}; expected a share between 0 and 1; try 0.1")
    splits = dataset if isinstance(dataset, DatasetDict) else DatasetDict(train=dataset)
    if "train" not in splits or "validation" in splits:
        raise ValueError(f"got the splits {list(splits)}; expected train and no validation; use the "
                         "validation that is there, or pass a single split")
    columns = splits["train"].to_dict()
    texts = columns["text"]
    leader = {}  # from an id or a text towards the one that stands for its group

    def find(key):
        while leader.setdefault(key, key) != key:
            key = leader[key]
        return key

    for text, own, partner in zip(texts, columns.get("id", texts), columns.get("pair", [None] * len(texts))):
        if partner:
            leader[find(("id", own))] = find(("text", text))
            leader[find(("id", partner))] = find(("text", text))
    groups, strata = {}, {}
    for row, text in enumerate(texts):
        groups.setdefault(find(("text", text)), []).append(row)
    for group in groups.values():
        strata.setdefault(tuple(sorted({columns["label"][row] for row in group})), []).append(group)
    chosen = set()
    for labels, stratum in sorted(strata.items()):
        random.Random(f"{seed} {labels}").shuffle(stratum)
        target = len(chosen) + max(1, round(validation * sum(map(len, stratum))))
        for group in stratum[:-1]:  # the last group always stays in train
            if len(chosen) < target:
                chosen.update(group)
    if not chosen:
        raise ValueError(f"got {len(groups)} different reviews for {len(strata)} labels; expected at least "
                         "two of a label, one for each side; add reviews")
    kept = [row for row in range(len(texts)) if row not in chosen]
    parts = {"train": splits["train"].select(kept), "validation": splits["train"].select(sorted(chosen))}
    return DatasetDict(parts | {name: split for name, split in splits.items() if name != "train"})


def by_kind(dataset: Dataset) -> dict[str, list[int]]:
    """The rows of each kind of review, kinds in order of appearance: {"plain": [0, 3], "order": [1, 2]}."""
    rows = {}
    for row, kind in enumerate(_column(dataset, "kind")):
        rows.setdefault(kind, []).append(row)
    return rows


def pairs(dataset: Dataset) -> list[tuple[int, int]]:
    """The minimal pairs of one split as (row, partner's row), each pair once, the lower row first.

    Raises ValueError when a partner is not in this dataset.
    """
    row_of = {own: row for row, own in enumerate(_column(dataset, "id"))}
    partners = {row: partner for row, partner in enumerate(_column(dataset, "pair")) if partner is not None}
    for row, partner in partners.items():
        if partner not in row_of:
            raise ValueError(f"row {row} has the partner {partner!r}, which is not in this dataset; expected "
                             "both halves of each pair; look for pairs before selecting rows")
    return [(row, row_of[partner]) for row, partner in partners.items() if row < row_of[partner]]


def _column(dataset: Dataset, name: str) -> list:
    if name not in getattr(dataset, "features", ()):
        raise ValueError(f"got {dataset}, without a column {name!r}; expected one split of the course's "
                         "reviews, such as load_reviews()['test']")
    return list(dataset[name])


# Files. Each reader yields (where, record); `where` tells the reader of an error which row is meant.

_SPLITS = {"train": "train", "validation": "validation", "valid": "validation", "val": "validation",
           "dev": "validation", "test": "test"}
_COLUMN_TYPES = {"text": pa.string(), "pair": pa.string(), "evidence": pa.list_(pa.list_(pa.int64()))}


def _split_files(folder: Path) -> dict[str, Path]:
    files = {}
    for path in sorted(folder.iterdir()):
        split = _SPLITS.get(path.stem.lower()) if path.suffix.lower() in _READERS else None
        if split in files:
            raise ValueError(f"{folder}: got both {files[split].name} and {path.name}; expected one file for "
                             f"{split}; move one of them away")
        if split:
            files[split] = path
    if not files:
        raise FileNotFoundError(f"{folder}: got {sorted(path.name for path in folder.iterdir())[:8]}; "
                                "expected train, validation or test with the ending "
                                f"{', '.join(_READERS)}; add one")
    return {split: files[split] for split in ("train", "validation", "test") if split in files}


def _load_files(files: dict[str, Path]) -> DatasetDict:
    columns = {split: _read_columns(path) for split, path in files.items()}
    names = _number_labels(list(columns.values()), " and ".join(map(str, files.values())))
    return DatasetDict({split: _dataset(_table(columns[split], files[split]), names) for split in files})


def _dataset(table: pa.Table, label_names: list[str]) -> Dataset:
    features = datasets.Features.from_arrow_schema(table.schema)
    features["label"] = ClassLabel(names=label_names)
    return Dataset(datasets.table.InMemoryTable(table), info=datasets.DatasetInfo(features=features))


def _table(columns: dict[str, list], path: Path) -> pa.Table:
    arrays = {}
    for name, values in columns.items():
        as_text = all(isinstance(value, str) for value in values)  # as every column of a CSV file
        try:
            array = pa.array(values, pa.string() if as_text else _COLUMN_TYPES.get(name))
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{path}: the column {name!r} cannot be stored ({error}); expected values of "
                             "one type; write them in one way or remove the column") from None
        arrays[name] = array.cast(pa.string()) if pa.types.is_null(array.type) else array
    return pa.table(arrays)


def _read_columns(path: Path) -> dict[str, list]:
    """Columns by name, each row with a text and a label; the labels are as the file has them."""
    kinds = ", ".join(_READERS)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}; expected 'reviews', 'handwritten', 'imdb' "
                                f"or a path to a file ({kinds}); relative paths start at {Path.cwd()}")
    if path.suffix.lower() not in _READERS:
        raise ValueError(f"{path}: got the extension {path.suffix!r}; expected {kinds}; save it as one")
    records = []
    for where, record in _READERS[path.suffix.lower()](path):
        names = [name for wanted in ("text", "label") for name in record if name.strip().lower() == wanted]
        if [name.strip().lower() for name in names] != ["text", "label"]:
            raise ValueError(f"{path}: {where} has the columns {', '.join(map(repr, record))}; expected text "
                             "and label, each once, beside any others; name the columns so")
        text, label = (record.pop(name) for name in names)
        for name, value, types in (("text", text, str), ("label", label, (str, int, float))):
            if value is None or value != value or not str(value).strip():  # NaN is not equal to itself
                raise ValueError(f"{path}: {where} has no {name}; expected a text and a label in every row; "
                                 "fill it in or delete the row")
            if not isinstance(value, types):
                raise ValueError(f"{path}: {where} has the {name} {value!r}; expected a string"
                                 f"{'' if name == 'text' else ' or a number'}; write it so")
        records.append({"text": text, "label": label} | record)
    if not records:
        raise ValueError(f"{path} holds no reviews; expected one row or more; check that it was saved")
    return {name: [record.get(name) for record in records] for name in dict.fromkeys(chain(*records))}


def _number_labels(tables: list[dict[str, list]], source: str) -> list[str]:
    """Replaces the labels by class numbers, in place and alike in all splits; returns the class names."""
    def read(label):
        try:
            return float(label)
        except ValueError:
            return label.strip()

    found = {read(label) for columns in tables for label in columns["label"]}
    some = ", ".join(sorted(f"{label:g}" if isinstance(label, float) else repr(label) for label in found)[:6])
    polarity = {"negative": 0, "neg": 0, "positive": 1, "pos": 1}
    names, numbers = LABEL_NAMES, {0.0: 0, 1.0: 1}
    if not found <= set(numbers):
        if any(isinstance(label, float) for label in found):
            raise ValueError(f"{source}: got the labels {some}; expected 0 (negative) and 1 (positive), or "
                             "names alone; replace other numbers by names, such as 'five stars'")
        numbers = {label: polarity.get(label.lower()) for label in found}
        if None in numbers.values():
            names = sorted(found)
            numbers = {name: number for number, name in enumerate(names)}
        if len(names) < 2:
            raise ValueError(f"{source}: got one label, {some}; expected two or more; add reviews of another")
    for columns in tables:
        columns["label"] = [numbers[read(label)] for label in columns["label"]]
    return names


def _read_text(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")  # with or without a byte order mark
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}: got the byte 0x{content[error.start]:02x} in line {line}; expected text "
                         "in UTF-8; save the file again in that encoding") from None


def _read_csv(path: Path) -> Iterator[tuple[str, dict]]:
    csv.field_size_limit(2**31 - 1)  # the default refuses a review of more than 131,072 characters
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    lines = csv.reader(io.StringIO(_read_text(path), newline=""), delimiter=separator, strict=True)
    row, header = 0, None
    try:
        for fields in filter(None, lines):
            if header is None:
                header = fields
                continue
            row += 1
            where = f"row {row} (to line {lines.line_num})"
            if len(fields) > len(header):
                raise ValueError(f"{path}: {where} has {len(fields)} fields and the header {len(header)}; "
                                 f"expected the same; put a text with {separator!r} in it in double quotes")
            yield where, dict.fromkeys(header) | dict(zip(header, fields))
    except csv.Error as error:
        raise ValueError(f"{path}: row {row + 1} (to line {lines.line_num}) is broken: {error}; expected "
                         'quoted fields closed, and quotation marks in them doubled (""); mend it') from None


def _read_json(path: Path) -> Iterator[tuple[str, dict]]:
    content = _read_text(path)
    array = content.lstrip().startswith("[")
    # split, not splitlines: a JSON string may hold other characters that splitlines takes for line ends
    for number, line in enumerate([content] if array else content.split("\n"), 1):
        try:
            value = json.loads(line) if line.strip() else []
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}: line {number + error.lineno - 1} is not JSON ({error.msg}); expected "
                             'an object a line, such as {"text": "…", "label": 1}; mend that line') from None
        for row, record in enumerate(value if isinstance(value, list) else [value], 1):
            where = f"row {row}" if array else f"line {number}"
            if not isinstance(record, dict):
                raise ValueError(f"{path}: {where} is {str(record)[:40]!r}; expected an object, such as "
                                 '{"text": "…", "label": 1}; mend that line')
            yield where, record


def _read_parquet(path: Path) -> Iterator[tuple[str, dict]]:
    for number, record in enumerate(_parquet_table(path).to_pylist(), 1):
        yield f"row {number}", record


def _parquet_table(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read()
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path}: got {path.stat().st_size} bytes that are not Parquet ({str(error)[:60]}); "
                         "expected a Parquet file; copy or download it again") from None


_READERS = {".csv": _read_csv, ".tsv": _read_csv, ".jsonl": _read_json, ".ndjson": _read_json,
            ".json": _read_json, ".parquet": _read_parquet}


# IMDb: from a folder, else from the `datasets` cache, else from the hub.

_IMDB = "stanfordnlp/imdb"


def _load_imdb(splits: list[str], timeout: float) -> DatasetDict:
    named = os.environ.get("COURSE_DATA")
    if named:
        tables = _imdb_in_folder(Path(named).expanduser(), splits)
        tried = f"COURSE_DATA names {named}, which lacks plain_text/*.parquet for {', '.join(splits)}"
    else:
        tables = _imdb_in_cache(splits)
        if tables is None:
            failure = _fetch_imdb(timeout, stall=timeout)
            tables = None if failure else _imdb_in_cache(splits)
            tried = ("COURSE_DATA is not set, the datasets cache has no copy, and "
                     + (failure or f"the hub's copy lacks one of {', '.join(splits)}"))
    if tables is None:
        raise DataNotAvailable(
            f"IMDb could not be loaded: {tried}.\n"
            "Set COURSE_DATA to a folder that has plain_text/train-*.parquet and plain_text/test-*.parquet,\n"
            'or connect to the internet and try again; load_reviews("reviews") works without either.')
    return DatasetDict({split: _dataset(table.select(["text", "label"]), LABEL_NAMES)
                        for split, table in tables.items()})


def _imdb_in_folder(folder: Path, splits: list[str]) -> dict[str, pa.Table] | None:
    for base in (folder, folder / "imdb"):
        files = {split: sorted((base / "plain_text").glob(f"{split}-*.parquet")) for split in splits}
        if all(files.values()):
            return {split: pa.concat_tables(map(_parquet_table, paths)) for split, paths in files.items()}
    return None


def _imdb_in_cache(splits: list[str]) -> dict[str, pa.Table] | None:
    """What an earlier download left, without a question to the network."""
    verbosity = datasets.logging.get_verbosity()
    datasets.logging.set_verbosity_error()  # it would warn that it found what we are looking for
    try:
        copy = Cache(repo_id=_IMDB, dataset_name="imdb", config_name="plain_text",
                     version="auto", hash="auto")
        return {split: copy.as_dataset(split).with_format("arrow")[:] for split in splits}
    except (ValueError, OSError):  # no copy, a broken one, or one without the split
        return None
    finally:
        datasets.logging.set_verbosity(verbosity)


# A child process fetches: it can be stopped whatever its sockets do, and it reads HF_ENDPOINT and the like
# now, while this process read them when it imported `datasets`. It prints "answered" once the hub has listed
# the files, and in the end "done" or why not. While files come a thread watches: under 1,000 bytes a second,
# and next to no work for the processor, is a stall.
_CHILD = """
import os, sys, threading, time
import datasets, huggingface_hub

def watch(limit):
    responses, mark = [], (time.monotonic(), 0, time.process_time())
    while True:
        hooks = huggingface_hub.get_session().event_hooks["response"]
        if responses.append not in hooks:  # the library makes a new session after an error
            hooks.append(responses.append)
        time.sleep(0.05)
        received = sum(response.num_bytes_downloaded for response in responses)
        now = (time.monotonic(), received, time.process_time())
        if now[1] - mark[1] > 1000 * limit or now[2] - mark[2] > 0.05 * limit:
            mark = now
        elif now[0] - mark[0] > limit:
            print("stopped sending", flush=True)
            os._exit(1)

problem = "could not be reached"
try:
    # first a question without the library's retries, so that a refusal is reported at once
    huggingface_hub.HfApi().dataset_info(sys.argv[1], token=False)
    builder = datasets.load_dataset_builder(sys.argv[1], "plain_text", token=False)
    print("answered", flush=True)
    problem = "gave no copy that can be stored"
    threading.Thread(target=watch, args=[float(sys.argv[2])], daemon=True).start()
    builder.download_and_prepare()
    print("done", flush=True)
except Exception as error:
    last, status = error, None
    while error is not None and status is None:
        status = getattr(getattr(error, "response", None), "status_code", None)
        error = error.__cause__ or error.__context__
    print(f"answered with status {status}" if status else f"{problem} ({type(last).__name__})")
"""


def _fetch_imdb(timeout: float, stall: float) -> str | None:
    """Downloads IMDb into the `datasets` cache. Returns None, or why it could not."""
    hub = f"the hub ({urlsplit(os.environ.get('HF_ENDPOINT', 'https://huggingface.co')).netloc.split('@')[-1]})"
    if datasets.config.HF_HUB_OFFLINE:
        return f"{hub} was not asked, since HF_HUB_OFFLINE or HF_DATASETS_OFFLINE is on"
    settings = {"HF_DATASETS_CACHE": str(datasets.config.HF_DATASETS_CACHE), "HF_HUB_DISABLE_TELEMETRY": "1",
                "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
                "HF_UPDATE_DOWNLOAD_COUNTS": "0", "HF_HUB_DISABLE_XET": "1"}  # the watch sees plain HTTP only
    child = subprocess.Popen([sys.executable, "-c", _CHILD, _IMDB, str(stall)], env=os.environ | settings,
                             text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    lines = queue.Queue()

    def listen():
        with child.stdout:
            for line in chain(child.stdout, [""]):
                lines.put(line.strip())

    threading.Thread(target=listen, daemon=True).start()
    try:
        line = lines.get(timeout=timeout)
        if line == "answered":
            print("Downloading IMDb (about 80 MB) to the datasets cache …", file=sys.stderr)
            line = lines.get()
        return None if line == "done" else f"{hub} {line or 'was not asked: the process for it ended'}"
    except queue.Empty:
        return f"{hub} did not answer within {timeout:g} seconds"
    finally:
        child.kill()
        child.wait()
