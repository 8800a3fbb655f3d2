"""Data that the training command can't learn from are refused before it trains."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import assert_refused, csv, in_a_folder_with_reviews, options, plain, rows, run

from course_utils import recipes
from course_utils.data import load_reviews

__all__ = ["in_a_folder_with_reviews"]                  # pytest runs it around each test here


# the data

def written(name, content):
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def parquet(columns):
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), "d.parquet")
    return "d.parquet"


def folder(**splits):
    for name, content in splits.items():
        csv(Path("f") / f"{name}.csv", content)
    return "f"


NOT_UTF8 = pa.array([b"\xff"]).view(pa.string())
USELESS_DATA = {
    "no such file": (lambda: "gone.csv", "there is no file 'gone.csv'; expected 'reviews'"),
    "a name too long": (lambda: "x" * 5000 + ".csv", "there is no file"),
    "test reviews alone": (lambda: "handwritten", "handwritten has no training reviews, only the split test"),
    "a folder without train": (lambda: folder(test=rows()), "f has no training reviews"),
    "one row": (lambda: csv(Path("d.csv"), rows(1)), "all training reviews have the label 'negative'"),
    "one class": (lambda: csv(Path("d.csv"), plain(20, "positive")), "all training reviews have the label 'positive'"),
    "a class of one": (lambda: csv(Path("d.csv"), [*plain(20, "ham"), ("a moving film", "spam")]),
                       "the label 'spam' has 1 row; expected two"),
    "a class of one text": (lambda: csv(Path("d.csv"), [*plain(20, "ham"), ("A film", "spam"), ("a  FILM", "spam")]),
                            "the label 'spam' has 2 rows with the same text; expected two different"),
    "texts that cannot be parted": (lambda: csv(Path("d.csv"), [("a film", "a"), ("A film", "b"), ("a scene", "a"),
                                                                ("its end", "b")]),
                                    "d.csv: got 3 different reviews for 2 labels; expected"),
    "no word twice": (lambda: csv(Path("d.csv"), [("one", "a"), ("two", "b"), ("three", "a"), ("four", "b")]),
                      "no word is in the training texts 2 times or more"),
    "a text column twice": (lambda: csv(Path("d.csv"), [("x", *row) for row in rows()], "text,text,label"),
                            "called 'text'; expected each name once"),
    "a key twice": (lambda: written("d.jsonl", '{"text": "a", "text": "b", "label": 1}\n'),
                    "line 1 has .* called 'text'"),
    "Spam and spam": (lambda: csv(Path("d.csv"), [*plain(20, "Spam"), *rows(9), *plain(3, "spam")]),
                      "the labels 'Spam' and 'spam', which differ only in case or spaces"),
    "pos and positive among others": (lambda: csv(Path("d.csv"), [*plain(9, "pos"), *plain(9, "neutral"), *rows(4)]),
                                      "the labels 'pos' and 'positive', which mean the same"),
    "a label of 5,000 digits": (lambda: written(
        "d.jsonl", '{"text": "a", "label": %s}\n' % ("9" * 5000)), "line 1 holds a number that is too long"),
    "brackets without end": (lambda: written("d.json", "[" * 100_000), "too many nested brackets"),
    "a label in test alone": (lambda: folder(train=rows(), test=plain(4, "neutral")),
                              "the label 'neutral' is in test and not in train"),
    "every text with two labels": (lambda: csv(Path("d.csv"), [(text, label) for text, _ in rows() for label in "ab"]),
                                   "each of the \\d+ different training texts has more than one label; expected one"),
    "pairs that unite all texts": (lambda: csv(Path("d.csv"), [(*row, "x") for row in rows()], "text,label,pair"),
                                   r"got 1 different reviews for 2 labels \(the two halves of a pair count as one"),
    "a link to nothing": (lambda: Path("d.csv").symlink_to("gone.csv") or "d.csv",
                          "d.csv is a link to nothing; expected a file"),
    "a pipe": (lambda: os.mkfifo("d.csv") or "d.csv", "d.csv is a pipe or a device; expected a file"),
    "a web address": (lambda: "https://example.org/d.csv", "a web address isn't read: download the file"),
    "a Parquet column twice": (lambda: parquet(pa.table([["a"], ["b"], [1]], names=["text", "text", "label"])),
                               "called 'text'"),
    "Parquet that isn't UTF-8": (lambda: parquet({"text": NOT_UTF8, "label": [1]}), "cannot be read|expected"),
    }


@pytest.mark.parametrize(("make", "message"), USELESS_DATA.values(), ids=USELESS_DATA.keys())
def test_data_that_nothing_can_be_learned_from_are_refused_before_training(make, message, monkeypatch, capsys):
    monkeypatch.setattr(recipes, "train_classifier", None)                 # calling it would be a TypeError
    assert_refused(run([make(), "out", *options()], capsys), message)
    assert not Path("out").exists()


@pytest.mark.parametrize("source", [5, ["a", "b"], {"text": ["a"]}])
def test_a_source_that_is_no_path_is_named(source):
    with pytest.raises(TypeError, match=f"got {type(source).__name__} as the source; expected 'reviews'"):
        load_reviews(source)


def test_a_file_that_may_not_be_read_is_named(monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)                        # root may read anything
    with pytest.raises(ValueError, match=r"good.csv cannot be read \(Permission denied\)"):
        load_reviews("good.csv")


def test_imdb_that_cannot_be_had_is_one_message_without_a_traceback(monkeypatch, capsys):
    monkeypatch.setenv("COURSE_DATA", "nowhere")
    status, printed, complaint = run(["imdb", "out"], capsys)
    assert status == 2 and printed == "" and "IMDb could not be loaded: COURSE_DATA names nowhere" in complaint
    assert len(complaint.splitlines()) == 3 and not Path("out").exists()


WRONG_IMDB = {
    "labels from 0 to 9": ({"text": ["a", "b"], "label": [0, 9]}, "got the labels 0, 9; expected 0 and 1 alone in train"),
    "labels as names": ({"text": ["a", "b"], "label": ["neg", "pos"]}, "label is of type string; expected whole numbers"),
    "a label missing": ({"text": ["a", "b"], "label": [0, None]}, "row 2 has no label"),
    "texts that are numbers": ({"text": [1, 2], "label": [0, 1]}, "text is of type int64; expected strings"),
    "no rows": ({"text": pa.array([], pa.string()), "label": pa.array([], pa.int64())}, "holds no reviews"),
    "other columns": ({"review": ["a"], "label": [0]}, "has the columns 'review', 'label'; expected text and label"),
    "not UTF-8": ({"text": pa.array([b"\xff"]).view(pa.string()), "label": [1]}, "got a text that cannot be read"),
}


@pytest.mark.parametrize(("columns", "message"), WRONG_IMDB.values(), ids=WRONG_IMDB.keys())
def test_a_folder_that_isnt_imdbs_is_refused_with_the_files_name(columns, message, monkeypatch):
    folder = Path("imdb/plain_text")
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"text": ["fine"], "label": [1]}), folder / "test-00000-of-00001.parquet")
    pq.write_table(pa.table(columns), folder / "train-00000-of-00001.parquet")
    monkeypatch.setenv("COURSE_DATA", ".")
    with pytest.raises(ValueError, match=message) as caught:
        load_reviews("imdb")
    assert "train-00000-of-00001.parquet" in str(caught.value) and caught.value.__suppress_context__ is not None
