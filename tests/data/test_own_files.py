"""Reviews from a file or a folder of your own."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from review_makers import NAMES, review, write_lines

from course_utils.data import load_reviews

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


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.ndjson", "a.json", "array.json", "a.parquet", "A.CSV"])
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


@pytest.mark.parametrize("first, rest", [
    ('"sep=;"\r\n', "text;label\r\n"), ("\ufeffsep=;\r\n", "text;label\r\n"), ("SEP=|\n", "text|label\n"),
    ("sep=\\t\n", "text\tlabel\n"), ("sep=;;;\n", "text;label\n"),
])
def test_a_first_line_can_name_the_separator(tmp_path, first, rest):
    mark = next(mark for mark in ";|\t," if mark in rest)
    path = tmp_path / "a.csv"
    path.write_bytes(f'{first}{rest}"good{mark} so to say"{mark}1\nbad{mark}0\n'.encode())
    assert load_reviews(path)["train"][:] == {"text": [f"good{mark} so to say", "bad"], "label": [1, 0]}
    path.write_bytes(f"{first}{rest}good{mark}1\nbad{mark} \n".encode())
    with pytest.raises(ValueError, match=r"row 2 \(to line 4\) has no label"):
        load_reviews(path)


@pytest.mark.parametrize("labels, numbers", [(["1", "0", "1"], [1, 0, 1]), (["1.00", "0.00", "1.00"], [1, 0, 1])])
def test_decimal_labels_of_parquet_are_numbers(tmp_path, labels, numbers):
    labels = [Decimal(label) for label in labels]
    train = load_reviews(write_any(tmp_path / "a.parquet", ["t"] * 3, labels))["train"]
    assert list(train["label"]) == numbers and train.features["label"].names == NAMES
    with pytest.raises(ValueError, match="got the labels 0.5, 1; expected 0 .negative. and 1"):
        load_reviews(write_any(tmp_path / "a.parquet", ["t"] * 2, [Decimal("0.5"), Decimal("1.0")]))


ODD = {
    "list of maps": pa.array([[[("a", 1)]], []], pa.list_(pa.map_(pa.string(), pa.int64()))),
    "not UTF-8": pa.array([b"\xff", b"a"]).view(pa.string()),
    "decimal": pa.array([Decimal("1.5"), None]),
    "a far date": pa.array([2**31 - 1, 1], pa.date32()),
    "nanoseconds": pa.array([1, 2], pa.timestamp("ns", tz="Europe/Paris")),
    "a long list": pa.array([[[1]], []], pa.large_list(pa.list_(pa.int8(), 1))),
    "categories": pa.array(["a", "b"]).dictionary_encode(),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
@pytest.mark.filterwarnings("ignore:.*is left out")
def test_a_column_that_nobody_asked_for_may_be_of_any_type(tmp_path, odd):
    pq.write_table(pa.table({"odd": odd, "text": ["good", "bad"], "label": [1, 0]}), tmp_path / "a.parquet")
    train = load_reviews(tmp_path / "a.parquet")["train"]
    assert train["text"][:] == ["good", "bad"] and train["label"][:] == [1, 0]


def test_a_column_that_is_left_out_is_said(tmp_path):
    write_lines(tmp_path / "a.jsonl", [{"text": "a", "label": 1, "x": 1}, {"text": "b", "label": 0, "x": "y"}])
    with pytest.warns(UserWarning, match="a.jsonl: the column 'x' is left out, since its values are of several types"):
        assert list(load_reviews(tmp_path / "a.jsonl")["train"].features) == ["text", "label"]
    pq.write_table(pa.table({"odd": ODD["not UTF-8"], "text": ["a", "b"], "label": [1, 0]}), tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="a.parquet: the column 'odd' is left out"):
        assert list(load_reviews(tmp_path / "a.parquet")["train"].features) == ["text", "label"]


VISIBLE_TEXTS = st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)


@settings(max_examples=20, deadline=None)
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
    (["1", " 0 ", "1.0"], NAMES, [1, 0, 1]),
    (["pos", "neg", "neg"], NAMES, [1, 0, 0]),
    (["true", "FALSE", "false "], NAMES, [1, 0, 0]),
    (["true", "false", "mixed"], ["false", "mixed", "true"], [2, 0, 1]),
    (["spam", "Ham", "spam"], ["Ham", "spam"], [1, 0, 1]),
    (["positive", "neutral", "negative"], ["negative", "neutral", "positive"], [2, 1, 0]),
    (["0_0", "0_1", "0_0"], ["0_0", "0_1"], [0, 1, 0]),                # names, though float() reads them as numbers
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
    with pytest.raises(FileNotFoundError, match="there is no file 'imbd'; expected 'reviews', 'sentences', 'handwritten'"):
        load_reviews("imbd")
    with pytest.raises(FileNotFoundError, match=f"there is no file 'mine.csv'.*start at {tmp_path}"):
        load_reviews("mine.csv")
    with pytest.raises(FileNotFoundError, match="expected train, validation or test with the ending .csv"):
        load_reviews(tmp_path)


BROKEN_FILES = {
    "extension": ("a.xlsx", b"PK", r"got the extension '.xlsx'; expected .csv, .tsv, .jsonl"),
    "empty csv": ("a.csv", b"", "holds no reviews; expected one row or more"),
    "empty jsonl": ("a.jsonl", b"\n\n", "holds no reviews"),
    "other columns": ("a.csv", b"review,label\ngood,1\n",
                      "has the columns 'review', 'label'; expected text and label"),
    "semicolons": ("a.csv", b"text;label\ngood;1\n",
                   "has the columns 'text;label'; expected .*put a line sep=; in front of all others, or save"),
    "semicolons, and a comma in a text": ("a.csv", b"text;label\ngood, really;1\n",
                                          "has the columns 'text;label'; expected .*put a line sep=; in front"),
    "a column twice": ("a.csv", b"text,Text,label\ngood,bad,1\n",
                       "'text', 'Text', 'label'; expected .* each once"),
    "a field too many": ("a.csv", b"text,label\ngood,1\nso, so,0\n",
                         r"row 2 \(to line 3\) has 3 fields and the header 2; .*double quotes"),
    "no label": ("a.csv", b'text,label\n"two\nlines",1\ngood\n', r"row 2 \(to line 4\) has no label"),
    "no text": ("a.csv", b"text,label\ngood,1\n  ,0\n", "row 2 .* has no text"),
    "an open quote": ("a.csv", b'text,label\ngood,1\n"bad,0\nfine,1\n',
                      r"row 2 \(to line 4\) is broken: .*doubled"),
    "not UTF-8": ("a.csv", "text,label\ngood,1\ncaf\u00e9,0\n".encode("latin-1"),
                  "got the byte 0xe9 in line 3; expected text in UTF-8; save the file again"),
    "not JSON": ("a.jsonl", b'{"text": "a", "label": 1}\n\n{"text": "b"\n',
                 "line 3 is not JSON .*; expected one object per line"),
    "not an object": ("a.jsonl", b'{"text": "a", "label": 1}\n7\n', "line 2 is '7'; expected an object"),
    "no text key": ("a.jsonl", b'{"label": 1}\n', "line 1 has the columns 'label'; expected text and label"),
    "text is a number": ("a.jsonl", b'{"text": 5, "label": 1}\n', "line 1 has the text 5; expected a string"),
    "half a character": ("a.jsonl", rb'{"text": "a\ud83c", "label": 1}', "line 1 has the text .* with half a character"),
    "mixed pair": ("a.jsonl", b'{"text": "a", "label": 1, "pair": 1}\n{"text": "b", "label": 1, "pair": "y"}\n',
                     "the column 'pair' cannot be stored .*; expected values of one type"),
    "joined": ("a.csv", b"text,label\ngood,spam\nbad,ham\ntext,label\nfine,spam\n",
               r"row 3 \(to line 4\) is a header again \('text', 'label'\), as in files that were joined; .*delete this"),
    "joined, an index": ("a.csv", b",text,label\n0,good,spam\n,text,label\n0,fine,ham\n", "line 3.* is a header again"),
    "joined, then made JSON": ("a.jsonl", b'{"text": "a", "label": "x"}\n{"text": "text", "label": "label"}\n',
                               "line 2 is a header again"),
    "UTF-16 with a mark": ("a.csv", "text,label\ngood,1\n".encode("utf-16"), "got text in UTF-16 .*save the file again"),
    "bars": ("a.csv", b"text|label\ngood|1\n", "if '|' separates them, put a line sep=| in front"),
    "stars": ("a.csv", b"text,label\na,5\nb,1\nc,3\n", "got the labels 1, 3, 5; expected 0 .negative. and 1"),
    "numbers and names": ("a.csv", b"text,label\na,0\nb,pos\n",
                          "got the labels 'pos', 0; expected .* names alone"),
    "underscores and numbers": ("a.csv", b"text,label\na,1_0\nb,1\n", "got the labels '1_0', 1; expected"),
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
