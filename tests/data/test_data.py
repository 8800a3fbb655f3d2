"""What `course_utils.data` promises: the four sources, the errors, and a hub that does not answer."""

import csv
import http.server
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils import data
from course_utils.data import DataNotAvailable, by_kind, find_folder, imdb, load_reviews, pairs, split_reviews

NAMES = ["negative", "positive"]


def review(number, label, kind="plain", pair=None, **fields):
    return {"id": f"r{number}", "text": f"Review {number} was fine.", "label": label, "kind": kind,
            "evidence": [[0, 6], [9, 12]], "pair": pair, "frame": "f1", "unseen_frame": False} | fields


def write_lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def write_parquet(path, texts, labels):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"text": texts, "label": labels}), path)
    return path


@pytest.fixture
def course_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "DATA_FOLDER", tmp_path / "data")
    folder = tmp_path / "data" / "reviews"
    write_lines(folder / "train.jsonl", [review(0, 1), review(1, 0, "order", "r3"), review(2, 0),
                                         review(3, 1, "order", "r1"), review(4, 1, "distant", evidence=[])])
    write_lines(folder / "validation.jsonl", [review(5, 1), review(6, 0)])
    write_lines(folder / "test.jsonl", [review(7, 1, unseen_frame=True)])
    (folder / "SAMPLES.md").write_text("not reviews")
    write_lines(tmp_path / "data" / "handwritten.jsonl",
                [{key: review(8, 0)[key] for key in ("id", "text", "label", "kind", "evidence", "pair")}])
    return folder


# The course's reviews

def test_reviews_have_three_splits_with_the_same_typed_columns(course_folder):
    reviews = load_reviews("reviews")
    assert isinstance(reviews, datasets.DatasetDict) and list(reviews) == ["train", "validation", "test"]
    assert [split.num_rows for split in reviews.values()] == [5, 2, 1]
    for split in reviews.values():
        assert split.features == reviews["train"].features  # the validation file has no pair, all nulls
        assert split.features["label"] == datasets.ClassLabel(names=NAMES)
        assert split.features["pair"].dtype == "string"
    assert reviews["train"][1] == review(1, 0, "order", "r3")
    assert reviews["train"][4]["evidence"] == []
    assert reviews["test"][0]["unseen_frame"] is True
    assert load_reviews()["train"][:] == reviews["train"][:]


def test_handwritten_reviews_are_one_test_split(course_folder):
    reviews = load_reviews("handwritten")
    assert list(reviews) == ["test"] and reviews["test"][0]["text"] == "Review 8 was fine."
    assert reviews["test"].features["label"].names == NAMES


def test_reviews_are_loaded_without_network_and_without_a_trace_in_the_home_folder(course_folder, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    code = ("import socket\n"
            "def refuse(*_): raise AssertionError('network')\n"
            "socket.socket.connect = socket.getaddrinfo = refuse\n"
            "from pathlib import Path\n"
            "from course_utils import data\n"
            f"data.DATA_FOLDER = Path({str(course_folder.parent)!r})\n"
            "reviews = data.load_reviews('reviews')\n"
            "split = data.split_reviews(reviews['train'], 0.4)\n"
            "print(split['train'].num_rows, reviews['train'].cache_files)\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "XDG_"))}
    done = run_python(code, environment | {"HOME": str(home), "USERPROFILE": str(home)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "[]"]  # the one pair and the one other 0 stay in train
    assert list(home.rglob("*")) == []


def test_by_kind_gives_the_rows_of_each_kind(course_folder):
    train = load_reviews()["train"]
    assert by_kind(train) == {"plain": [0, 2], "order": [1, 3], "distant": [4]}


def test_pairs_gives_each_pair_once(course_folder):
    train = load_reviews()["train"]
    assert pairs(train) == [(1, 3)]
    assert pairs(train.select([3, 0, 1])) == [(0, 2)]
    with pytest.raises(ValueError, match="row 1 has the partner 'r3', which is not in this dataset"):
        pairs(train.select([0, 1]))


def test_rows_are_asked_of_one_split_with_the_column(course_folder):
    with pytest.raises(ValueError, match="without a column 'kind'; expected one split"):
        by_kind(load_reviews())
    with pytest.raises(ValueError, match="without a column 'pair'"):
        pairs(load_reviews()["train"].remove_columns("pair"))


def test_a_missing_data_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "DATA_FOLDER", tmp_path / "data")
    with pytest.raises(DataNotAvailable, match="there is no folder .*reviews; expected data/ beside"):
        load_reviews("reviews")
    with pytest.raises(DataNotAvailable, match="there is no folder .*checkpoints"):
        find_folder("checkpoints")
    (tmp_path / "data" / "reviews").mkdir(parents=True)
    assert find_folder("reviews") == tmp_path / "data" / "reviews"
    with pytest.raises(FileNotFoundError, match=r"got \[\]; expected train, validation or test with"):
        load_reviews("reviews")


def test_the_repository_holds_the_reviews(root):
    assert data.DATA_FOLDER == root / "data"
    reviews = load_reviews("reviews")
    assert list(reviews) == ["train", "validation", "test"]
    known = set()
    for split in reviews.values():
        assert set(review(0, 0)) <= set(split.features)
        assert split.features == reviews["train"].features and split.features["label"].names == NAMES
        assert set(by_kind(split)) == {"plain", "negation", "order", "distant"}
        assert set(split["label"]) == {0, 1} and len(set(split["id"])) == split.num_rows
        found = pairs(split)
        assert 2 * len(found) == sum(partner is not None for partner in split["pair"]) > 0
        labels = list(split["label"])
        assert all(labels[first] != labels[second] for first, second in found)
        assert_evidence_lies_in_the_text(split)
        assert not known & set(split["text"])
        known |= set(split["text"])


def test_the_repository_holds_the_handwritten_reviews():
    reviews = load_reviews("handwritten")["test"]
    assert {"id", "text", "label", "kind", "evidence", "pair"} <= set(reviews.features)
    assert set(by_kind(reviews)) == {"plain", "negation", "order", "distant"}
    labels = list(reviews["label"])
    assert all(labels[first] != labels[second] for first, second in pairs(reviews))
    assert_evidence_lies_in_the_text(reviews)


def assert_evidence_lies_in_the_text(reviews):
    for text, spans in zip(reviews["text"], reviews["evidence"]):
        assert spans
        for start, end in spans:
            assert 0 <= start < end <= len(text) and text[start:end].strip()


# A validation split

def made_of(texts, labels, **columns):
    return datasets.Dataset.from_dict({"text": texts, "label": labels, **columns})


def test_split_reviews_is_stratified_disjoint_by_text_and_complete():
    texts = [f"text {number % 150}" for number in range(200)]  # 50 texts stand there twice
    labels = [int(number % 150 < 40) for number in range(200)]
    split = split_reviews(made_of(texts, labels), validation=0.2)
    assert list(split) == ["train", "validation"]
    assert not set(split["train"]["text"]) & set(split["validation"]["text"])
    assert sorted([*split["train"]["text"], *split["validation"]["text"]]) == sorted(texts)
    for label in (0, 1):
        share = list(split["validation"]["label"]).count(label) / labels.count(label)
        assert 0.2 <= share < 0.22


def test_split_reviews_depends_on_the_seed_alone():
    reviews = made_of([f"text {number}" for number in range(100)], [0, 1] * 50)
    chosen = [list(split_reviews(reviews, seed=seed)["validation"]["text"]) for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]
    assert len(chosen[0]) == 10
    order = list(reviews["text"])
    assert chosen[0] == sorted(chosen[0], key=order.index)


def test_split_reviews_keeps_pairs_together():
    partner = [f"r{number ^ 1}" if number < 60 else None for number in range(100)]
    reviews = made_of([f"text {number}" for number in range(100)], [0, 1] * 50,
                      id=[f"r{number}" for number in range(100)], pair=partner)
    for seed in range(5):
        split = split_reviews(reviews, validation=0.3, seed=seed)
        assert len(pairs(split["train"])) + len(pairs(split["validation"])) == 30
        assert len(pairs(split["validation"])) > 0
        assert abs(sum(split["validation"]["label"]) - 15) <= 1


def test_split_reviews_does_not_take_an_id_that_repeats_for_a_group():
    split = split_reviews(made_of([f"text {number}" for number in range(20)], [0, 1] * 10, id=["film"] * 20,
                                  pair=[None] * 20))
    assert split["validation"].num_rows == 2


def test_split_reviews_keeps_the_other_splits():
    reviews = datasets.DatasetDict(train=made_of(list("abcdefgh"), [0, 1] * 4), test=made_of(["z"], [1]))
    split = split_reviews(reviews)
    assert list(split) == ["train", "validation", "test"] and split["test"]["text"][0] == "z"
    with pytest.raises(ValueError, match="expected train and no validation"):
        split_reviews(split)
    with pytest.raises(ValueError, match="expected train and no validation"):
        split_reviews(datasets.DatasetDict(test=reviews["test"]))


@pytest.mark.parametrize("share", [0, 1, -0.1, 10, float("nan")])
def test_split_reviews_refuses_what_is_no_share(share):
    with pytest.raises(ValueError, match="expected a share between 0 and 1"):
        split_reviews(made_of(list("abcd"), [0, 1, 0, 1]), validation=share)


def test_split_reviews_refuses_too_few_reviews():
    with pytest.raises(ValueError, match="got 2 different reviews for 2 labels; expected at least two"):
        split_reviews(made_of(["a", "b", "b"], [0, 1, 1]))


# Your own file

TEXTS = ['He said "no", twice,\nand left.', "Très bon\u2028film\x85 🎬", "tab\there, comma, <br />",
         "  plain  "]


def write_any(path, texts, labels, names=("text", "label"), line_end="\n", mark=""):
    records = [dict(zip(names, row)) for row in zip(texts, labels)]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    elif path.suffix in (".csv", ".tsv"):
        content = io.StringIO()
        separator = "\t" if path.suffix == ".tsv" else ","
        writer = csv.writer(content, delimiter=separator, lineterminator=line_end)
        writer.writerows([names, *zip(texts, labels)])
        path.write_bytes((mark + content.getvalue()).encode())
    elif path.name == "array.json":
        path.write_bytes((mark + json.dumps(records, indent=1)).encode())
    else:
        lines = [json.dumps(record, ensure_ascii=False) + line_end for record in records]
        path.write_bytes((mark + "".join(lines)).encode())
    return path


FILE_NAMES = ["a.csv", "a.tsv", "a.jsonl", "a.ndjson", "a.json", "array.json", "a.parquet", "A.CSV"]


@pytest.mark.parametrize("name", FILE_NAMES)
@pytest.mark.parametrize("line_end, mark", [("\n", ""), ("\r\n", "\ufeff")])
def test_every_format_gives_the_same_texts(tmp_path, name, line_end, mark):
    path = write_any(tmp_path / name.lower(), TEXTS, [1, 0, 1, 0], ("Text", "LABEL"), line_end, mark)
    if name != path.name:
        path = path.rename(tmp_path / name)
    for source in (path, str(path)):
        reviews = load_reviews(source)
        assert list(reviews) == ["train"]
        assert reviews["train"][:] == {"text": TEXTS, "label": [1, 0, 1, 0]}
        assert reviews["train"].features["label"].names == NAMES


VISIBLE_TEXTS = st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(VISIBLE_TEXTS, min_size=1, max_size=5))
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_any_text_survives_the_way_through_a_file(tmp_path_factory, name, texts):
    # a line end of both characters, since before Python 3.13 csv.writer quotes a field for these alone
    path = write_any(tmp_path_factory.getbasetemp() / name, texts, [1] * len(texts), line_end="\r\n")
    assert load_reviews(path)["train"][:]["text"] == texts


def test_other_columns_are_kept_and_relative_paths_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text("Stars,Label,Text\n5,pos,good\n1,neg,bad\n")
    train = load_reviews("mine.csv")["train"]
    assert train[:] == {"text": ["good", "bad"], "label": [1, 0], "Stars": ["5", "1"]}
    write_lines(tmp_path / "mine.jsonl", [review(0, 1, pair="r1", note=None), review(1, 0, pair="r0")])
    train = load_reviews("mine.jsonl")["train"]
    assert train[0] == review(0, 1, pair="r1", note=None)
    assert train.features["note"].dtype == "string"  # not null, which no other split could be joined to


@pytest.mark.parametrize("labels, names, numbers", [
    ([0, 1, 1], NAMES, [0, 1, 1]),
    ([1, 1, 1], NAMES, [1, 1, 1]),
    ([True, False, True], NAMES, [1, 0, 1]),
    ([0.0, 1.0, 0.0], NAMES, [0, 1, 0]),
    (["1", " 0 ", "1.0"], NAMES, [1, 0, 1]),
    (["positive", "negative", "positive"], NAMES, [1, 0, 1]),
    (["pos", "neg", "neg"], NAMES, [1, 0, 0]),
    (["Pos", "NEGATIVE", "neg "], NAMES, [1, 0, 0]),
    (["pos", "pos", "pos"], NAMES, [1, 1, 1]),
    (["true", "FALSE", "false "], NAMES, [1, 0, 0]),
    (["true", "false", "mixed"], ["false", "mixed", "true"], [2, 0, 1]),
    (["spam", "Ham", "spam"], ["Ham", "spam"], [1, 0, 1]),
    (["positive", "neutral", "negative"], ["negative", "neutral", "positive"], [2, 1, 0]),
])
def test_labels_are_numbers_or_names(tmp_path, labels, names, numbers):
    files = [write_lines(tmp_path / "a.jsonl", [{"text": "t", "label": label} for label in labels])]
    files.append(write_any(tmp_path / "a.csv", ["t"] * 3, labels))         # True and False as words, as pandas writes them
    if len({type(label) for label in labels}) == 1:
        files.append(write_any(tmp_path / "a.parquet", ["t"] * 3, labels))
    for file in files:
        train = load_reviews(file)["train"]
        assert train.features["label"].names == names
        assert list(train["label"]) == numbers


def test_a_folder_of_files_shares_its_label_names(tmp_path):
    write_any(tmp_path / "train.csv", ["a", "b", "c"], ["x", "y", "z"])
    write_any(tmp_path / "dev.jsonl", ["d"], ["z"])
    write_any(tmp_path / "test.parquet", ["e"], ["y"])
    write_any(tmp_path / "notes.csv", ["f"], ["w"])
    reviews = load_reviews(tmp_path)
    assert list(reviews) == ["train", "validation", "test"]
    assert [list(split["label"]) for split in reviews.values()] == [[0, 1, 2], [2], [1]]
    assert all(split.features["label"].names == ["x", "y", "z"] for split in reviews.values())
    write_any(tmp_path / "valid.tsv", ["g"], ["x"])
    with pytest.raises(ValueError, match="got both dev.jsonl and valid.tsv; expected one file"):
        load_reviews(tmp_path)


def test_a_review_longer_than_the_csv_limit_is_read(tmp_path):
    path = write_any(tmp_path / "a.csv", ["word " * 40_000], [1])
    assert len(load_reviews(path)["train"]["text"][0]) == 200_000


def test_what_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file 'imbd'; expected 'reviews', 'handwritten'"):
        load_reviews("imbd")
    with pytest.raises(FileNotFoundError, match=f"there is no file 'mine.csv'.*start at {tmp_path}"):
        load_reviews("mine.csv")
    with pytest.raises(FileNotFoundError, match="expected train, validation or test with the ending .csv"):
        load_reviews(tmp_path)


BROKEN_FILES = {
    "extension": ("a.xlsx", b"PK", r"got the extension '.xlsx'; expected .csv, .tsv, .jsonl"),
    "empty csv": ("a.csv", b"", "holds no reviews; expected one row or more"),
    "only a header": ("a.csv", b"text,label\n", "holds no reviews"),
    "empty jsonl": ("a.jsonl", b"\n\n", "holds no reviews"),
    "empty array": ("a.json", b"[]", "holds no reviews"),
    "other columns": ("a.csv", b"review,label\ngood,1\n",
                      "has the columns 'review', 'label'; expected text and label"),
    "no header": ("a.csv", b"good film,1\nbad film,0\n",
                  "has the columns 'good film', '1'; expected text and label"),
    "semicolons": ("a.csv", b"text;label\ngood;1\n", "has the columns 'text;label'; expected"),
    "a column twice": ("a.csv", b"text,Text,label\ngood,bad,1\n",
                       "'text', 'Text', 'label'; expected .* each once"),
    "a field too many": ("a.csv", b"text,label\ngood,1\nso, so,0\n",
                         r"row 2 \(to line 3\) has 3 fields and the header 2; .*double quotes"),
    "no label": ("a.csv", b'text,label\n"two\nlines",1\ngood\n', r"row 2 \(to line 4\) has no label"),
    "an empty label": ("a.tsv", b"text\tlabel\ngood\t1\nbad\t \n", "row 2 .* has no label"),
    "no text": ("a.csv", b"text,label\ngood,1\n  ,0\n", "row 2 .* has no text"),
    "an open quote": ("a.csv", b'text,label\ngood,1\n"bad,0\nfine,1\n',
                      r"row 2 \(to line 4\) is broken: .*doubled"),
    "a stray quote": ("a.csv", b'text,label\n"good" film,1\n', r"row 1 \(to line 2\) is broken"),
    "not UTF-8": ("a.csv", "text,label\ngood,1\ncaf\u00e9,0\n".encode("latin-1"),
                  "got the byte 0xe9 in line 3; expected text in UTF-8; save the file again"),
    "not JSON": ("a.jsonl", b'{"text": "a", "label": 1}\n\n{"text": "b"\n',
                 "line 3 is not JSON .*; expected an object"),
    "not JSON, array": ("a.json", b'[{"text": "a",\n"label": }]', "line 2 is not JSON"),
    "not an object": ("a.jsonl", b'{"text": "a", "label": 1}\n7\n', "line 2 is '7'; expected an object"),
    "no text key": ("a.jsonl", b'{"label": 1}\n', "line 1 has the columns 'label'; expected text and label"),
    "null text": ("a.jsonl", b'{"text": "a", "label": 1}\n{"text": null, "label": 1}\n',
                  "line 2 has no text"),
    "NaN label": ("a.jsonl", b'{"text": "a", "label": NaN}\n', "line 1 has no label"),
    "text is a number": ("a.jsonl", b'{"text": 5, "label": 1}\n', "line 1 has the text 5; expected a string"),
    "label is a list": ("a.jsonl", b'{"text": "a", "label": [1]}\n', r"line 1 has the label \[1\]; expected"),
    "half a character": ("a.jsonl", rb'{"text": "a\ud83c", "label": 1}', "line 1 has the text .* with half a character"),
    "mixed column": ("a.jsonl", b'{"text": "a", "label": 1, "x": 1}\n{"text": "b", "label": 1, "x": "y"}\n',
                     "the column 'x' cannot be stored .*; expected values of one type"),
    "stars": ("a.csv", b"text,label\na,5\nb,1\nc,3\n", "got the labels 1, 3, 5; expected 0 .negative. and 1"),
    "minus one": ("a.csv", b"text,label\na,-1\nb,1\n", "got the labels -1, 1; expected 0"),
    "numbers and names": ("a.csv", b"text,label\na,0\nb,pos\n",
                          "got the labels 'pos', 0; expected .* names alone"),
    "one name": ("a.csv", b"text,label\na,spam\nb,spam\n", "got one label, 'spam'; expected two or more"),
    "not parquet": ("a.parquet", b"version https://git-lfs.github.com/spec/v1",
                    "got 42 bytes that are not Parquet"),
}


@pytest.mark.parametrize("name, content, message", BROKEN_FILES.values(), ids=BROKEN_FILES.keys())
def test_a_broken_file_is_refused_with_its_row(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_reviews(tmp_path / name)
    assert name in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


# IMDb

@pytest.fixture
def imdb_folder(tmp_path):
    folder = tmp_path / "imdb"
    files = folder / "plain_text"
    write_parquet(files / "train-00000-of-00002.parquet", ["bad<br /><br />film", "dull"], [0, 0])
    write_parquet(files / "train-00001-of-00002.parquet", ["good"], [1])
    write_parquet(files / "test-00000-of-00001.parquet", ["fine"], [1])
    write_parquet(files / "unsupervised-00000-of-00001.parquet", ["film"], [-1])
    return folder


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """An empty `datasets` cache, no COURSE_DATA, and no proxy between the tests and the loopback address."""
    monkeypatch.delenv("COURSE_DATA", raising=False)
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE",
                 "HF_DATASETS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache" / "datasets")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def no_child(*_args, **_settings):
    raise AssertionError("a child process was started to ask the hub")


@pytest.mark.parametrize("named", ["imdb", "."])
def test_imdb_is_read_from_the_named_folder_or_its_parent(imdb_folder, monkeypatch, named):
    monkeypatch.setenv("COURSE_DATA", str(imdb_folder.parent / named))
    monkeypatch.setattr(subprocess, "Popen", no_child)
    reviews = load_reviews("imdb")
    assert list(reviews) == ["train", "test"]
    assert reviews["train"][:] == {"text": ["bad<br /><br />film", "dull", "good"], "label": [0, 0, 1]}
    assert reviews["train"].features["label"].names == NAMES and reviews["train"].cache_files == []
    assert load_reviews("imdb", unsupervised=True)["unsupervised"][0] == {"text": "film", "label": -1}


def test_a_named_folder_without_imdb_is_refused_in_three_lines(imdb_folder, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", no_child)
    monkeypatch.setenv("COURSE_DATA", str(imdb_folder / "plain"))
    with pytest.raises(DataNotAvailable) as caught:
        load_reviews("imdb")
    assert_three_lines(str(caught.value), f"COURSE_DATA names {imdb_folder / 'plain'}, which lacks")
    next((imdb_folder / "plain_text").glob("unsupervised*")).unlink()
    monkeypatch.setenv("COURSE_DATA", str(imdb_folder))
    assert list(load_reviews("imdb")) == ["train", "test"]
    with pytest.raises(DataNotAvailable, match="lacks .*unsupervised"):
        load_reviews("imdb", unsupervised=True)


def test_a_damaged_parquet_file_is_named(imdb_folder, monkeypatch):
    monkeypatch.setenv("COURSE_DATA", str(imdb_folder))
    (imdb_folder / "plain_text" / "test-00000-of-00001.parquet").write_bytes(b"cut off")
    with pytest.raises(ValueError, match="test-00000-of-00001.parquet: got 7 bytes that are not Parquet"):
        load_reviews("imdb")


def test_offline_mode_is_respected(empty_cache, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(subprocess, "Popen", no_child)
    with pytest.raises(DataNotAvailable) as caught:
        load_reviews("imdb")
    assert_three_lines(str(caught.value), "was not asked, since HF_HUB_OFFLINE")


def assert_three_lines(message, tried):
    lines = message.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("IMDb could not be loaded: ") and tried in lines[0]
    assert "COURSE_DATA" in lines[1] and "plain_text/train-*.parquet" in lines[1]
    assert "connect" in lines[2] and 'load_reviews("reviews")' in lines[2]


# A hub on the loopback address

CARD = """---
configs:
- config_name: plain_text
  default: true
  data_files:
  - {split: train, path: plain_text/train-*}
  - {split: test, path: plain_text/test-*}
  - {split: unsupervised, path: plain_text/unsupervised-*}
dataset_info:
  config_name: plain_text
  features:
  - {name: text, dtype: string}
  - {name: label, dtype: {class_label: {names: {'0': neg, '1': pos}}}}
---
"""
COMMIT = imdb.REVISION


class Hub(http.server.ThreadingHTTPServer):
    """As much of the hub as `datasets` needs, misbehaving as `mode` says; `asked` counts the requests."""

    daemon_threads = True

    def __init__(self, folder, mode):
        super().__init__(("127.0.0.1", 0), HubAnswer)
        self.mode, self.asked, self.revisions, self.stop = mode, 0, set(), threading.Event()
        self.files = {"README.md": CARD.encode()}
        self.files |= {f"plain_text/{path.name}": path.read_bytes() for path in folder.glob("*/*.parquet")}
        self.address = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, *_):
        """A client that is stopped while it waits is what these tests are about."""


class HubAnswer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked += 1
        path = self.path.split("?")[0].replace("%2F", "/")
        self.server.revisions.update(re.findall(r"/(?:revision|tree|resolve)/([^/]+)", path))
        if self.server.mode == "silent":
            self.server.stop.wait(60)
        elif self.server.mode == "error":
            self.answer(b"", status=500)
        elif self.server.mode == "drip" or self.server.mode == "drip files" and ".parquet" in path:
            self.answer(b" " * 60, drip=True)
        elif "/resolve/" in path:
            name = path.split("/resolve/")[1].split("/", 1)[1]
            if name in self.server.files:
                self.answer(self.server.files[name], ETag=f'"{name.replace("/", "-")}"')
            else:
                self.answer(b"", status=404, **{"X-Error-Code": "EntryNotFound"})
        elif path.endswith(f"/tree/{COMMIT}"):
            self.answer_json([{"type": "directory", "oid": "0", "size": 0, "path": "plain_text"}])
        elif path.endswith(f"/tree/{COMMIT}/plain_text"):
            self.answer_json([{"type": "file", "oid": "0", "size": len(content), "path": name}
                              for name, content in self.server.files.items() if "/" in name])
        else:
            self.answer_json({"id": "stanfordnlp/imdb", "sha": COMMIT, "siblings": []})

    do_HEAD = do_GET

    def answer_json(self, value):
        self.answer(json.dumps(value).encode(), **{"Content-Type": "application/json"})

    def answer(self, content, status=200, drip=False, **headers):
        self.send_response(status)
        headers = {"Content-Length": len(content), "X-Repo-Commit": COMMIT, "ETag": '"0"'} | headers
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "HEAD":
            return
        for byte in content if drip else ():
            self.wfile.write(bytes([byte]))
            if self.server.stop.wait(1):
                return
        self.wfile.write(b"" if drip else content)

    def log_message(self, *_):
        """No request log among the test's output."""


def run_python(code, environment):
    root = str(Path(data.__file__).resolve().parent.parent)
    environment = environment | {"PYTHONPATH": root, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run([sys.executable, "-c", code], env=environment, timeout=120, capture_output=True,
                          text=True, encoding="utf-8")


def test_imdb_comes_from_the_hub_once_and_then_from_the_cache(imdb_folder, empty_cache, monkeypatch, capfd):
    with Hub(imdb_folder, "good") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        reviews = load_reviews("imdb", timeout=60)
    assert hub.asked > 0 and hub.revisions == {imdb.REVISION}  # always the same copy, whatever is put on the hub later
    assert list(reviews) == ["train", "test"]
    assert reviews["train"][:] == {"text": ["bad<br /><br />film", "dull", "good"], "label": [0, 0, 1]}
    assert reviews["test"].features["label"].names == NAMES
    assert capfd.readouterr() == ("", "Downloading IMDb (about 80 MB) to the datasets cache …\n")

    monkeypatch.setattr(subprocess, "Popen", no_child)  # the hub is gone, and is not asked
    again = load_reviews("imdb", unsupervised=True)
    assert again["train"][:] == reviews["train"][:] and again["unsupervised"]["label"][0] == -1
    assert capfd.readouterr() == ("", "")


def test_a_cached_copy_of_another_revision_is_found_and_the_pinned_one_preferred(imdb_folder, empty_cache, tmp_path,
                                                                                 monkeypatch):
    with Hub(imdb_folder, "good") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        expected = load_reviews("imdb", timeout=60)["train"][:]
    monkeypatch.setattr(subprocess, "Popen", no_child)
    (pinned,) = (tmp_path / "cache").rglob(f"0.0.0/{imdb.REVISION}")
    other = pinned.with_name("b" * 40)
    pinned.rename(other)
    assert load_reviews("imdb")["train"][:] == expected
    shutil.copytree(other, pinned)
    table = pa.table({"text": ["another"], "label": [7]})
    for file in other.glob("*train*.arrow"):
        with pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    os.utime(other)  # the latest copy is the other one
    assert load_reviews("imdb")["train"][:] == expected
    shutil.rmtree(pinned)
    with pytest.raises(ValueError, match=r"the datasets cache \(.*b{40}, train\): got the labels 7; expected 0 and 1"):
        load_reviews("imdb")


@pytest.mark.parametrize("mode, timeout, tried", [
    ("refuse", None, "could not be reached (ConnectError)"),
    ("error", None, "answered with status 500"),
    ("drip", 3, "did not answer within 3 seconds"),
])
def test_a_hub_that_does_not_answer_is_reported_in_time(imdb_folder, empty_cache, monkeypatch, mode, timeout,
                                                        tried):
    with Hub(imdb_folder, mode) as hub:
        if mode == "refuse":
            with socket.socket() as unused:  # bound and not listening: a port that refuses
                unused.bind(("127.0.0.1", 0))
                address = f"http://127.0.0.1:{unused.getsockname()[1]}"
                caught, seconds = time_failure(address, timeout, monkeypatch)
        else:
            caught, seconds = time_failure(hub.address, timeout, monkeypatch)
            assert hub.asked <= 1  # none where the child is stopped before it has started to ask
    assert_three_lines(str(caught.value), tried)
    assert seconds < 20
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def time_failure(address, timeout, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", address)
    start = time.monotonic()
    with pytest.raises(DataNotAvailable) as caught:
        load_reviews("imdb", **({} if timeout is None else {"timeout": timeout}))
    return caught, time.monotonic() - start


def test_a_transfer_that_stalls_is_given_up(imdb_folder, empty_cache, monkeypatch):
    with Hub(imdb_folder, "drip files") as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        assert imdb._fetch_imdb(timeout=60, stall=2) == f"the hub ({hub.address[7:]}) stopped sending"


def test_a_silent_hub_ends_within_twenty_seconds_and_shows_no_network_code(
        imdb_folder, empty_cache, tmp_path):
    """The one case at the real default, in a process of its own, as a learner would see it."""
    code = ("import time\nfrom course_utils.data import load_reviews\nstart = time.monotonic()\n"
            "try:\n    load_reviews('imdb')\nfinally:\n    print(time.monotonic() - start)\n")
    with Hub(imdb_folder, "silent") as hub:
        done = run_python(code, {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "hf")})
    assert done.returncode == 1
    assert float(done.stdout) < 20
    assert_three_lines("\n".join(done.stderr.splitlines()[-3:]).split("DataNotAvailable: ")[-1],
                       f"did not answer within {imdb.HUB_TIMEOUT:g} seconds")
    sources = [line for line in done.stderr.splitlines() if line.strip().startswith("File ")]
    assert len(sources) == 3 and all("<string>" in line or "course_utils" in line for line in sources)
