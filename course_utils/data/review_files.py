"""Files of reviews: CSV, TSV, JSON Lines or Parquet with a text and a label in every row.

Also a folder with a text in each file (pos/*.txt, neg/*.txt), and one that `save_to_disk` of the library datasets wrote.
Does: read them, say which file and row cannot be used, number the labels. Does not: know the course's own files, find the
files of a folder (see `folders`), or shuffle, clean or split anything. Whatever is wrong with a file is a ValueError; a file
that isn't there is a FileNotFoundError.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import chain
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, DatasetDict

from course_utils.files.text import MARK, decoded

__all__ = ["ENDINGS", "LABEL_NAMES", "SAVED", "SOURCES", "class_folders", "dataset_of", "load_files", "read_parquet"]

LABEL_NAMES = ["negative", "positive"]
SOURCES = ("'reviews', 'sentences', 'handwritten', 'ordinary', 'ordinary_second', 'ordinary_third', 'written', "
           "'written_more', 'imdb', 'sst2'")                                                                 # in messages

SAVED = "state.json"                                    # in a folder that `save_to_disk` wrote
UNLABELLED = "unsup"                                    # of IMDb's archive: reviews without a label
_NEEDED = ("text", "label", "id", "pair", "kind", "evidence")                  # other columns may be of any type
SEPARATOR_LINE = re.compile(r'"?sep=(\\t|[^\w\s"]|\t)"?[^\w\n\r]*(?:\r\n|\n|\r)', re.I)
_COLUMN_TYPES = {"text": pa.string(), "pair": pa.string(), "evidence": pa.list_(pa.list_(pa.int64()))}


def load_files(files: dict[str, list[Path]]) -> DatasetDict:
    """One split for each list of files, with the same label names in all of them."""
    columns = {split: _read_columns(paths) for split, paths in files.items()}
    names = _number_labels(list(columns.values()), " and ".join(_called(paths) for paths in files.values()))
    return DatasetDict({split: _dataset(columns[split], names, _called(files[split])) for split in files})


def _called(paths: list[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and the other pieces"


def dataset_of(table: pa.Table, label_names: list[str]) -> Dataset:
    """A table with a column `label` of class numbers as a Dataset in memory."""
    features = datasets.Features.from_arrow_schema(table.schema)
    features["label"] = ClassLabel(names=label_names)
    return Dataset(datasets.table.InMemoryTable(table), info=datasets.DatasetInfo(features=features))


def _dataset(columns: dict[str, list], label_names: list[str], source: str) -> Dataset:
    arrays = {}
    for name, values in columns.items():
        as_text = all(isinstance(value, str) for value in values)  # as every column of a CSV file
        try:
            array = pa.array(values, pa.string() if as_text else _COLUMN_TYPES.get(name))
            if pa.types.is_null(array.type):
                array = array.cast(pa.string())
            datasets.Features.from_arrow_schema(pa.schema([(name, array.type)]))
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            if name in _NEEDED:
                raise ValueError(f"{source}: the column {name!r} cannot be stored ({error}); expected values of "
                                 "one type; write them in one way or remove the column") from None
            _leave_out(name, source, error)
            continue
        arrays[name] = array
    return dataset_of(pa.table(arrays), label_names)


def _leave_out(column: str, source, error: Exception) -> None:
    warnings.warn(f"{source}: the column {column!r} is left out, since its values are of several types, or of one that "
                  f"can't be stored ({str(error)[:80]}); text and label are read", stacklevel=5)


def _read_columns(paths: list[Path]) -> dict[str, list]:
    """Columns by name, each row with a text and a label; the labels are as the files have them."""
    records = []
    for path in paths:
        before = len(records)
        records += (_checked(record, path, where) for where, record in _reader(path)(path))
        if len(records) == before and len(paths) == 1:
            raise ValueError(f"{path} holds no reviews; expected one row or more; check that it was saved")
    if not records:
        raise ValueError(f"{_called(paths)} hold no reviews; expected one row or more; check that they were saved")
    return {name: [record.get(name) for record in records] for name in dict.fromkeys(chain(*records))}


def _reader(path: Path) -> Callable[[Path], Iterator[tuple[str, dict]]]:
    """What reads the file. Raises ValueError or FileNotFoundError for what can't be one."""
    kinds = ", ".join(ENDINGS)
    if path.suffix.lower() not in ENDINGS and os.path.isdir(path):
        if (path / SAVED).is_file():
            return _read_saved
        if class_folders(path):
            return _read_texts
    if not os.path.isfile(path):  # unlike Path.is_file, it takes any name and doesn't raise
        if os.path.lexists(path):
            if not os.path.exists(path):
                raise FileNotFoundError(f"{path} is a link to nothing; expected a file ({kinds}); give another, or repair "
                                        "the link")
            what = "a folder" if os.path.isdir(path) else "a pipe or a device"
            raise ValueError(f"{path} is {what}; expected a file ({kinds}); give another path, or put a file there")
        if "://" in str(path) or re.match("[a-z]+:/", str(path)):
            raise FileNotFoundError(f"there is no file {str(path)!r}; a web address isn't read: download the file, and give "
                                    "the path of your copy")
        raise FileNotFoundError(f"there is no file {str(path)!r}; expected {SOURCES} "
                                f"or a path to a file ({kinds}); relative paths start at {Path.cwd()}")
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path}: got the extension {path.suffix!r}; expected {kinds}; save it as one")
    return _READERS[path.suffix.lower()]


def _checked(record: dict, path: Path, where: str) -> dict:
    """The record with `text` and `label` first, under these names. Raises ValueError for one that can't be used."""
    names = [name for wanted in ("text", "label") for name in record if _plain(name) == wanted]
    if [_plain(name) for name in names] != ["text", "label"]:
        raise ValueError(f"{path}: {where} has the columns {', '.join(map(repr, record))}; expected text "
                         f"and label, each once, and possibly others; rename the columns{_separator_hint(record)}")
    text, label = values = [record.pop(name) for name in names]
    columns = {"text", "label", *map(_plain, record)}
    row = {_plain(value) for value in (*values, *record.values())}
    if set(map(_plain, values)) == {"text", "label"} or all(map(_plain, values)) and row <= columns:
        raise ValueError(f"{path}: {where} is a header again ({', '.join(map(repr, values))}), as in files that were "
                         "joined; expected one header, in the first line; delete this one")
    if isinstance(label, Decimal):                      # of Parquet files by DuckDB or Spark
        label = float(label)
    for name, value, types in (("text", text, str), ("label", label, (str, int, float))):
        if value is None or value != value or not str(value).strip():  # NaN is not equal to itself
            raise ValueError(f"{path}: {where} has no {name}; expected a text and a label in every row; "
                             "fill it in or delete the row")
        if not isinstance(value, types):
            raise ValueError(f"{path}: {where} has the {name} {_short(value)}; expected a string"
                             f"{'' if name == 'text' else ' or a number'}; change it to one")
        if not _can_be_written(str(value)):
            raise ValueError(f"{path}: {where} has the {name} {_short(value)} with half a character (a surrogate such "
                             "as \\ud83d), which no UTF-8 file can hold; expected whole characters; write it again")
    return {"text": text, "label": label} | record


def _plain(value) -> str:
    """A column's name in any case, with spaces or a byte-order mark around it; '' for a value that isn't a string."""
    return value.replace(MARK, "").strip().lower() if isinstance(value, str) else ""


def _separator_hint(record: dict) -> str:
    """What to do about a file whose header is a single column, since another separator is between the names."""
    separators = {mark for mark in ";\t|" if any(mark in str(name) for name in record)}
    if len(record) > 2 or not separators:
        return ""
    shown = repr(separators.pop())
    return (f", or, if {shown} separates them, put a line sep={shown[1:-1]} in front of all others, or save the file with "
            "commas")


def _can_be_written(text: str) -> bool:
    """False for half a character, which JSON can hold and no file in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(value) -> str:
    """The value as Python writes it, cut after 60 characters."""
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _refuse_doubles(names: list[str], path: Path, where: str) -> None:
    """A second column of a name would replace the first, silently."""
    doubles = [name for name, times in Counter(name.strip() for name in names).items() if times > 1]
    if doubles:
        called = ", ".join(repr(name) if name else "no name (separators at the end of the line?)" for name in doubles)
        raise ValueError(f"{path}: {where} has the columns {', '.join(map(repr, names[:12]))}, more than one of them "
                         f"called {called}; expected each name once; rename or delete the others")


def _number_labels(tables: list[dict[str, list]], source: str) -> list[str]:
    """Replaces the labels by class numbers, in place, with the same numbers in all splits; returns the class names."""
    def read(label):
        if isinstance(label, str) and "_" in label:
            return label.strip()                        # float() would make 1 of '0_1'
        try:
            return float(label)
        except OverflowError:  # a whole number with hundreds of digits
            return math.inf
        except ValueError:
            return label.strip()

    written = dict.fromkeys(label for columns in tables for label in columns["label"])
    found = {read(label) for label in written}
    some = ", ".join(sorted(f"{label:g}" if isinstance(label, float) else _short(label) for label in found)[:6])
    polarity = {"negative": 0, "neg": 0, "false": 0, "positive": 1, "pos": 1, "true": 1}  # as JSON's true is 1
    names, numbers = LABEL_NAMES, {0.0: 0, 1.0: 1}
    if not found <= set(numbers):
        if any(isinstance(label, float) for label in found):
            raise ValueError(f"{source}: got the labels {some}; expected 0 (negative) and 1 (positive), or "
                             "names alone; replace other numbers by names, such as 'five stars'")
        numbers = {label: polarity.get(label.lower()) for label in found}
        if None in numbers.values():
            _refuse_twins(list(written), polarity, source)
            names = sorted(found)
            numbers = {name: number for number, name in enumerate(names)}
        if len(names) < 2:
            raise ValueError(f"{source}: got one label, {some}; expected two or more; add reviews of another")
    for columns in tables:
        columns["label"] = [numbers[read(label)] for label in columns["label"]]
    return names


def _refuse_twins(labels: list[str], polarity: dict[str, int], source: str) -> None:
    """'Spam' and 'spam ' are one class to their author and two to a computer."""
    first = {}
    for label in labels:
        seen = "".join(letter for letter in label if unicodedata.category(letter) != "Cf")  # no zero-width spaces
        key = " ".join(unicodedata.normalize("NFKC", seen).casefold().split())
        other = first.setdefault(polarity.get(key, key), label)
        if other != label:
            apart = "mean the same" if key in polarity else "differ only in case or spaces, or in invisible characters"
            raise ValueError(f"{source}: got the labels {other!r} and {label!r}, which {apart}; expected one spelling for "
                             "each label; make them the same")


# Each reader yields (where, record); `where` tells the reader of an error which row is meant.

def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None
    if path.suffix.lower() == ".csv":
        return decoded(content, str(path), "save the file again in that encoding (Excel calls it 'CSV UTF-8')")
    return decoded(content, str(path))


def _unreadable(path: Path, error: OSError) -> ValueError:
    return ValueError(f"{path} cannot be read ({error.strerror or error}); expected a file that you may read; check its "
                      "permissions, or copy it")


def _read_csv(path: Path) -> Iterator[tuple[str, dict]]:
    csv.field_size_limit(2**31 - 1)  # the default refuses a review of more than 131,072 characters
    content, separator = _read_text(path), "\t" if path.suffix.lower() == ".tsv" else ","
    named = SEPARATOR_LINE.match(content)               # with which Excel is told of another separator
    if named:
        content, separator = content[named.end() :], {"\\t": "\t"}.get(named[1], named[1])
    lines = csv.reader(io.StringIO(content, newline=""), delimiter=separator, strict=True)
    row, header = 0, None
    try:
        for fields in filter(None, lines):
            line = lines.line_num + (named is not None)
            if header is None:
                header = fields
                _refuse_doubles(header, path, "the header")
                continue
            row += 1
            where = f"row {row} (to line {line})"
            semicolons = len(header) == 1 and ";" in header[0]              # refused with the columns, in words that fit
            if len(fields) > len(header) and not semicolons:
                raise ValueError(f"{path}: {where} has {len(fields)} fields and the header {len(header)}; "
                                 f"expected the same; put a text with {separator!r} in it in double quotes")
            yield where, dict.fromkeys(header) | dict(zip(header, fields))
    except csv.Error as error:
        line = lines.line_num + (named is not None)
        raise ValueError(f"{path}: row {row + 1} (to line {line}) is broken: {error}; expected "
                         'quoted fields to be closed, and quotation marks inside them doubled (""); fix this row') from None


def _read_json(path: Path) -> Iterator[tuple[str, dict]]:
    content = _read_text(path)
    array = content.lstrip().startswith("[")
    # split, not splitlines: a JSON string may hold other characters that splitlines takes for line ends
    for number, line in enumerate([content] if array else content.split("\n"), 1):
        def record_of(pairs, where="the array" if array else f"line {number}"):
            _refuse_doubles([name for name, _ in pairs], path, where)
            return dict(pairs)

        try:
            value = json.loads(line, object_pairs_hook=record_of) if line.strip() else []
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}: line {number + error.lineno - 1} is not JSON ({error.msg}); expected "
                             'one object per line, such as {"text": "…", "label": 1}; fix that line') from None
        except RecursionError:
            raise ValueError(f"{path}: line {number} has too many nested brackets; expected one object per line, such as "
                             '{"text": "…", "label": 1}; fix that line') from None
        except ValueError as error:
            if str(path) in str(error):
                raise
            raise ValueError(f"{path}: line {number} holds a number that is too long ({error}); expected a text and a "
                             "label; fix that line") from None
        for row, record in enumerate(value if isinstance(value, list) else [value], 1):
            where = f"row {row}" if array else f"line {number}"
            if not isinstance(record, dict):
                raise ValueError(f"{path}: {where} is {str(record)[:40]!r}; expected an object, such as "
                                 '{"text": "…", "label": 1}; fix that line')
            yield where, record


def _read_parquet(path: Path) -> Iterator[tuple[str, dict]]:
    yield from _rows(read_parquet(path), path)


def _rows(table: pa.Table, path: Path) -> Iterator[tuple[str, dict]]:
    """The rows of a table; a column that can't be read doesn't matter, unless it is needed."""
    _refuse_doubles(table.column_names, path, "the file")
    columns, names = {}, _class_names(table.schema)
    for column in table.column_names:
        try:
            values = table[column].to_pylist()
        except (ValueError, OverflowError, TypeError, ArithmeticError, ImportError, pa.ArrowException) as error:
            if _plain(column) in _NEEDED:               # such as text that isn't UTF-8
                raise ValueError(f"{path}: got values that cannot be read ({str(error)[:80]}); expected text in UTF-8 and "
                                 "labels; write the file again") from None
            _leave_out(column, path, error)
            continue
        if _plain(column) == "label" and names:
            values = [names[value] if value is not None and 0 <= value < len(names) else value for value in values]
        columns[column] = values
    for number in range(table.num_rows):
        yield f"row {number + 1}", {name: values[number] for name, values in columns.items()}


def _class_names(schema: pa.Schema) -> list[str]:
    """The names behind the numbers in the column label, where the library datasets wrote the table; else an empty list."""
    try:
        features = datasets.Features.from_arrow_schema(schema)
    except (ValueError, TypeError, KeyError, AttributeError):
        return []
    labels = (kind for name, kind in features.items() if _plain(name) == "label" and isinstance(kind, ClassLabel))
    return next(labels, ClassLabel(names=[])).names


def _read_saved(path: Path) -> Iterator[tuple[str, dict]]:
    """A folder that `Dataset.save_to_disk` wrote."""
    try:
        saved = datasets.load_from_disk(str(path))
        table = saved.with_format("arrow")[:].cast(saved.features.arrow_schema)
    except Exception as error:                          # whatever that library raises for a folder that is damaged
        raise ValueError(f"{path}: it has a {SAVED}, and cannot be read as a data set ({type(error).__name__}: "
                         f"{str(error)[:80]}); expected what save_to_disk wrote; save it again") from None
    yield from _rows(table, path)


def class_folders(folder: Path) -> list[Path]:
    """The folders of a folder that have texts in them (*.txt), each named after a label; not aclImdb's without labels."""
    return [sub for sub in sorted(folder.iterdir())
            if sub.is_dir() and sub.name != UNLABELLED and next(sub.glob("*.txt"), None)]


def _read_texts(path: Path) -> Iterator[tuple[str, dict]]:
    """A text in each file, with the name of its folder as the label."""
    for folder in class_folders(path):
        for file in sorted(folder.glob("*.txt")):
            yield f"{folder.name}/{file.name}", {"text": _read_text(file), "label": folder.name}


def read_parquet(path: Path) -> pa.Table:
    """The table in a Parquet file. Raises ValueError for a file that isn't Parquet, or is damaged."""
    try:
        return pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, PermissionError):
            raise _unreadable(path, error) from None
        raise ValueError(f"{path}: got {path.stat().st_size} bytes that are not Parquet ({str(error)[:60]}); "
                         "expected a Parquet file; copy or download it again") from None


_READERS = {".csv": _read_csv, ".tsv": _read_csv, ".jsonl": _read_json, ".ndjson": _read_json,
            ".json": _read_json, ".parquet": _read_parquet}
ENDINGS = tuple(_READERS)
