"""The training command under mistakes: every option, file and folder that cannot be is refused in one message."""

import json
import os
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import assert_refused, csv, in_a_folder_with_reviews, options, plain, rows, run

from course_utils.classifier import POOLINGS, POSITIONS
from course_utils.data import load_reviews, normalised, split_reviews
from course_utils.experiments import recipes
from course_utils.training import BatchOptions
from course_utils.training.options import RECIPE_RULES

__all__ = ["in_a_folder_with_reviews"]                  # pytest runs it around each test here


# options

def setting(text):
    return ["good.csv", "out", "--set", text]


WRONG_OPTIONS = {
    # how the command is called
    "nothing": ([], "required: data, output"),
    "no output": (["good.csv"], "required: output"),
    "a third name": (["good.csv", "out", "more"], "unrecognized arguments: more"),
    "an unknown option": (["good.csv", "out", "--epochs", "3"],
                          "unrecognized arguments: --epochs 3; an option of the recipe is written --set NAME=VALUE"),
    "half an option": (["good.csv", "out", "--se", "3"], "unrecognized arguments: --se"),
    "no recipe of that name": (["good.csv", "out", "--recipe", "bert"], "invalid choice: 'bert'"),
    "a negative seed": (["good.csv", "out", "--seed", "-1"], "seed=-1; use a whole number from 0 to 4,294,967,295"),
    "half a seed": (["good.csv", "out", "--seed", "1.5"], "seed='1.5'; use a whole number"),
    "a word as a seed": (["good.csv", "out", "--seed", "lucky"], "seed='lucky'; use a whole number"),
    "an empty seed": (["good.csv", "out", "--seed", ""], "seed=''; use a whole number"),
    "a seed for no generator": (["good.csv", "out", "--seed", str(2**32)], "seed=4294967296; use"),
    "no threads": (["good.csv", "out", "--threads", "0"], "threads=0; use a whole number from 1"),
    "fewer than no threads": (["good.csv", "out", "--threads", "-2"], "threads=-2; use"),
    "a million threads": (["good.csv", "out", "--threads", "1000000"], "threads=1000000; use"),
    "a setting without a setting": (["good.csv", "out", "--set"], "--set: expected one argument"),
    # names
    "an unknown name": (setting("colour=red"), "expected NAME=VALUE with one of the names .*batch_size.*num_layers"),
    "a name nearly right": (setting("num_layer=1"), "did you mean num_layers"),
    "half a name": (setting("heads=2"), r"did you mean num_heads\?"),
    "a name in capitals": (setting("Epochs=3"), r"did you mean epochs\?"),
    "another library's name": (setting("lr=0.1"), "one of the names .*learning_rate"),
    "no value": (setting("num_layers"), "expected NAME=VALUE"),
    "no name": (setting("=3"), "expected NAME=VALUE"),
    "an empty setting": (setting(""), "expected NAME=VALUE"),
    "what the data decide": (setting("vocab_size=9"), "expected NAME=VALUE"),
    "a name twice": ([*setting("epochs=1"), "--set", "epochs=2"], "epochs is set twice"),
    # types
    "an empty value": (setting("epochs="), "epochs=''; use a whole number"),
    "half an epoch": (setting("epochs=1.5"), "epochs=1.5; use a whole number"),
    "an epoch in words": (setting("epochs=two"), "epochs='two'; use a whole number"),
    "a list of epochs": (setting("epochs=[1, 2]"), r"epochs=\[1, 2\]; use"),
    "true for one": (setting("batch_size=true"), "batch_size=True; use a whole number"),
    "null for a number": (setting("max_len=null"), "max_len=None; use"),
    "a switch half on": (setting("zero_init=maybe"), "zero_init='maybe'; use True or False"),
    "one for true": (setting("bucketed=1"), "bucketed=1; use True or False"),
    "a number for a word": (setting("positions=3"), "positions=3; use one of none, sinusoidal"),
    "a number of 5,000 digits": (setting("epochs=" + "9" * 5000), r"epochs=.{1,70}; use a whole number"),
    "a thousand brackets": (setting("epochs=" + "[" * 100_000), "use a whole number"),
    # ranges
    "no epochs": (setting("epochs=0"), "epochs=0; use a whole number from 1"),
    "minus an epoch": (setting("epochs=-3"), "epochs=-3; use"),
    "no reviews in a batch": (setting("batch_size=0"), "batch_size=0; use a whole number from 1"),
    "minus four in a batch": (setting("batch_size=-4"), "batch_size=-4; use a whole number from 1"),
    "a huge learning rate": (setting("learning_rate=1e30"), "learning_rate=1e[+]30; use a number above 0, at most 100"),
    "an infinite learning rate": (setting("learning_rate=1e999"), "learning_rate=inf; use"),
    "no learning rate": (setting("learning_rate=0"), "learning_rate=0; use a number above 0"),
    "a negative learning rate": (setting("learning_rate=-0.01"), "learning_rate=-0.01; use"),
    "a learning rate of nan": (setting("learning_rate=NaN"), "learning_rate=nan; use"),
    "a warm-up longer than the run": (setting("warmup=1.5"), "warmup=1.5; use a number from 0 to 1"),
    "a negative warm-up": (setting("warmup=-0.1"), "warmup=-0.1; use"),
    "a negative decay": (setting("weight_decay=-1"), "weight_decay=-1; use"),
    "a clip of nothing": (setting("clip=0"), "clip=0; use a number above 0"),
    "a clip in words": (setting("clip=hard"), "clip='hard'; use"),
    "no patience": (setting("patience=0"), "patience=0; use a whole number from 1"),
    "all dropped": (setting("dropout=1"), "dropout=1; use a number from 0 up to"),
    "more than all words dropped": (setting("word_dropout=1.2"), "word_dropout=1.2; use"),
    "minus a dropout": (setting("attention_dropout=-0.1"), "attention_dropout=-0.1; use"),
    "no room for a word": (setting("max_len=0"), "max_len=0; use a whole number from 1"),
    "no width": (setting("d_model=0"), "d_model=0; use"),
    "no heads": (setting("num_heads=0"), "num_heads=0; use"),
    "no feed-forward layer": (setting("d_ff=0"), "d_ff=0; use"),
    "minus a layer": (setting("num_layers=-1"), "num_layers=-1; use a whole number from 0"),
    "20,000 layers": (setting("num_layers=20000"), "num_layers=20000; use"),
    "multiples of nothing": (setting("multiple_of=0"), "multiple_of=0; use"),
    "words of no size": (setting("embedding_std=0"), "embedding_std=0; use a number above 0"),
    "words scaled by nothing": (setting("embedding_scale=-1"), "embedding_scale=-1; use"),
    "a vocabulary of two": (setting("max_size=2"), "max_size=2; use"),
    "words that are never there": (setting("min_freq=0"), "min_freq=0; use"),
    # choices
    "positions that aren't taught": (setting("positions=sine"), "positions='sine'; use one of none, sinusoidal"),
    "another pooling": (setting("pooling=max"), "pooling='max'; use one of attention, mean"),
    "another precision": (setting("precision=int8"), "precision='int8'; use 'auto', 'fp32' or 'bf16'"),
    "another end to cut": (setting("truncation=tail"), "truncation='tail'; use one of head, head_tail"),
    # together
    "three heads": (setting("num_heads=3"), "d_model=32 is not divisible by num_heads=3; try 2 or 4"),
    "an odd width and sines": ([*setting("d_model=31"), "--set", "num_heads=1", "--set", "positions=sinusoidal"],
                               "d_model=31 .*odd|sines and cosines"),
    "odd heads that turn": ([*setting("d_model=30"), "--set", "num_heads=2"], "rotary positions turn pairs"),
    "more than the memory": ([*setting("d_model=65536"), "--set", "num_layers=1000", "--set", "d_ff=1000000"],
                             "GiB of memory to train, and this computer has"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG_OPTIONS.values(), ids=WRONG_OPTIONS.keys())
def test_an_option_that_cannot_be_is_refused_before_anything_is_read(arguments, message, monkeypatch, capsys):
    monkeypatch.setattr(recipes, "load_reviews", None)                     # calling it would be a TypeError
    assert_refused(run(arguments, capsys), message)
    assert [path.name for path in Path().iterdir()] == ["good.csv"]


def test_the_rules_are_those_of_the_model():
    config = {field.name for field in recipes.ClassifierConfig.__dataclass_fields__.values()}
    assert set(RECIPE_RULES["model"]) == config - {"vocab_size", "num_classes", "pad_id", "unk_id"}
    for name, words in (("positions", POSITIONS), ("pooling", POOLINGS)):
        assert all(RECIPE_RULES["model"][name].allows(word) for word in words)
        assert ", ".join(words) in RECIPE_RULES["model"][name].words
    assert set(RECIPE_RULES["batches"]) | {"max_len", "pad_id"} == set(BatchOptions._fields)


# the output

def test_the_output_must_be_a_folder_that_can_be_written_to(tmp_path, capsys, monkeypatch):
    Path("file").write_text("mine")
    Path("nowhere").symlink_to("gone")
    Path("odd/result.json").mkdir(parents=True)
    wrong = {
        "file": "file is a file; expected a folder", "file/deeper/still": "file is a file; expected a folder",
        "good.csv": "good.csv is a file", "": "got '' as the output", "  ": "got '  ' as the output",
        "nowhere": "nowhere is a link to nothing", "nowhere/out": "nowhere is a link to nothing", "x" * 300: "cannot be",
        "odd": "result.json is a folder", "/proc/nobody/out": "/proc(/nobody/out)? cannot be",
        "a\0b": r"got 'a\\x00b' as the output", "locked": "locked/.model.json.lock is a folder",
        "~nobody-of-that-name/out": "nobody here is called 'nobody-of-that-name'; for a folder of that name write ./",
        "o\udcff": "which isn't text in UTF-8",
    }
    Path("locked/.model.json.lock").mkdir(parents=True)
    for output, message in wrong.items():
        assert_refused(run(["good.csv", output, *options()], capsys), message)
    monkeypatch.setattr(os, "access", lambda path, mode: False)            # root may write anywhere
    assert_refused(run(["good.csv", "out", *options()], capsys), "cannot be written to; expected a folder of your own")
    assert Path("file").read_text() == "mine" and not Path("out").exists()


def test_data_in_a_file_whose_name_is_in_no_encoding_are_trained_on(capsys):
    name = os.fsdecode(b"caf\xe9.csv")
    os.rename("good.csv", name)
    status, _, complaint = run([name, "out", *options()], capsys)
    assert status == 0, complaint
    assert json.loads(Path("out/result.json").read_text())["data"] == name


def test_where_every_word_counts_the_message_does_not_ask_for_less(capsys):
    csv(Path("d.csv"), [("." * i, "ab"[i % 2]) for i in range(1, 9)])
    assert_refused(run(["d.csv", "out", *options(), "--set", "min_freq=1"], capsys), "no word in the training texts, only")


def test_the_data_are_not_overwritten(capsys):
    Path("result.json").write_text(json.dumps([dict(zip(("text", "label"), row)) for row in rows()]))
    before = Path("result.json").read_bytes()
    assert_refused(run(["result.json", ".", *options()], capsys), "result.json would be overwritten")
    assert Path("result.json").read_bytes() == before


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
    "a dataset spelled wrongly": (lambda: "imbd", "there is no file 'imbd'"),
    "no name": (lambda: "", "got '' as the source"),
    "a name too long": (lambda: "x" * 5000 + ".csv", "there is no file"),
    "the home of nobody": (lambda: "~nobody-of-that-name/x.csv", "there is no file"),
    "an empty folder": (lambda: Path("empty").mkdir() or "empty", "expected train, validation or test"),
    "test reviews alone": (lambda: "handwritten", "handwritten has no training reviews, only the split test"),
    "a folder without train": (lambda: folder(test=rows()), "f has no training reviews"),
    "a folder called train.csv": (lambda: Path("f/train.csv").mkdir(parents=True) or "f",
                                  "train.csv is a folder; expected a file"),
    "one row": (lambda: csv(Path("d.csv"), rows(1)), "all training reviews have the label 'negative'"),
    "two rows": (lambda: csv(Path("d.csv"), rows(2)), "the label 'negative' has 1 row; expected two different reviews"),
    "one class": (lambda: csv(Path("d.csv"), plain(20, "positive")), "all training reviews have the label 'positive'"),
    "one class, a name": (lambda: csv(Path("d.csv"), plain(20, "spam")), "got one label, 'spam'; expected two or more"),
    "one class, a number": (lambda: csv(Path("d.csv"), plain(20, "1")), "all training reviews have the label 'positive'"),
    "a class of one": (lambda: csv(Path("d.csv"), [*plain(20, "ham"), ("a moving film", "spam")]),
                       "the label 'spam' has 1 row; expected two"),
    "a class of one text": (lambda: csv(Path("d.csv"), [*plain(20, "ham"), ("A film", "spam"), ("a  FILM", "spam")]),
                            "the label 'spam' has 2 rows with the same text; expected two different"),
    "every label once": (lambda: csv(Path("d.csv"), [(text, f"label {i}") for i, (text, _) in enumerate(rows())]),
                         "has 1 row; expected two"),
    "texts of two labels": (lambda: csv(Path("d.csv"), [("the film", "a"), ("the film", "b")]), "has 1 row; expected two"),
    "texts that cannot be parted": (lambda: csv(Path("d.csv"), [("a film", "a"), ("A film", "b"), ("a scene", "a"),
                                                                ("its end", "b")]),
                                    "d.csv: got 3 different reviews for 2 labels; expected"),
    "no word twice": (lambda: csv(Path("d.csv"), [("one", "a"), ("two", "b"), ("three", "a"), ("four", "b")]),
                      "no word is in the training texts 2 times or more"),
    "points alone": (lambda: csv(Path("d.csv"), [("." * i, "ab"[i % 2]) for i in range(1, 9)]), "no word is in"),
    "a text column twice": (lambda: csv(Path("d.csv"), [("x", *row) for row in rows()], "text,text,label"),
                            "called 'text'; expected each name once"),
    "a label column twice": (lambda: csv(Path("d.csv"), [(*row, "a") for row in rows()], "text,label,label"),
                             "called 'label'; expected each name once"),
    "another column twice": (lambda: csv(Path("d.csv"), [(*row, "a", "b") for row in rows()], "text,label,x,x"),
                             "called 'x'; expected each name once"),
    "two columns without names": (lambda: csv(Path("d.csv"), [(*row, "", "") for row in rows()], "text,label,,"),
                                  "called no name"),
    "a key twice": (lambda: written("d.jsonl", '{"text": "a", "text": "b", "label": 1}\n'),
                    "line 1 has .* called 'text'"),
    "Spam and spam": (lambda: csv(Path("d.csv"), [*plain(20, "Spam"), *rows(9), *plain(3, "spam")]),
                      "the labels 'Spam' and 'spam', which differ only in case or spaces"),
    "a space after spam": (lambda: csv(Path("d.csv"), [*plain(20, "spam"), *rows(9), *plain(3, "spam ")]),
                           "the labels 'spam' and 'spam ', which differ only in case or spaces"),
    "two spaces in a label": (lambda: csv(Path("d.csv"), [*plain(9, "five stars"), *plain(9, "five  stars"), *rows(4)]),
                              "differ only in case or spaces"),
    "pos and positive among others": (lambda: csv(Path("d.csv"), [*plain(9, "pos"), *plain(9, "neutral"), *rows(4)]),
                                      "the labels 'pos' and 'positive', which mean the same"),
    "stars": (lambda: csv(Path("d.csv"), [(text, str(i % 5)) for i, (text, _) in enumerate(rows())]),
              "got the labels 0, 1, 2, 3, 4; expected 0"),
    "a label that is no number": (lambda: csv(Path("d.csv"), [*plain(9, "nan"), *plain(9, "1")]), "got the labels"),
    "a label of 400 digits": (lambda: written(
        "d.jsonl", '{"text": "a", "label": %s}\n{"text": "b", "label": 1}\n' % ("9" * 400)), "got the labels 1, inf"),
    "a label of 5,000 digits": (lambda: written(
        "d.jsonl", '{"text": "a", "label": %s}\n' % ("9" * 5000)), "line 1 holds a number that is too long"),
    "brackets without end": (lambda: written("d.json", "[" * 100_000), "too many brackets"),
    "half a character in a label": (lambda: written("d.jsonl", r'{"text": "a", "label": "\ud83c"}'),
                                    "line 1 has the label"),
    "validation of one class": (lambda: folder(train=rows(), dev=plain(4, "negative")),
                                "all validation reviews have the label 'negative'"),
    "a label in test alone": (lambda: folder(train=rows(), test=plain(4, "neutral")),
                              "the label 'neutral' is in test and not in train"),
    "an empty test file": (lambda: folder(train=rows(), test=[]),
                           "test.csv holds no reviews"),
    "a test file without labels": (lambda: folder(train=rows(), test=[("a",)]),
                                   "test.csv: row 1 .* has no label"),
    "two files for validation": (lambda: folder(dev=rows(), val=rows()),
                                 "got both dev.csv and val.csv"),
    "an invisible space after spam": (lambda: csv(Path("d.csv"), [*plain(9, "spam"), *plain(9, "spam\u200b"), *rows(4)]),
                                      "differ only in case or spaces, or in what cannot be seen"),
    "every text with two labels": (lambda: csv(Path("d.csv"), [(text, label) for text, _ in rows() for label in "ab"]),
                                   "each of the \\d+ different training texts has more than one label; expected one"),
    "emoji alone": (lambda: csv(Path("d.csv"), [("\U0001f600" * i, "ab"[i % 2]) for i in range(1, 9)]), "no word is in"),
    "pairs that unite all texts": (lambda: csv(Path("d.csv"), [(*row, "x") for row in rows()], "text,label,pair"),
                                   r"got 1 different reviews for 2 labels \(the two halves of a pair count as one"),
    "half a character in a text": (lambda: written("d.jsonl", r'{"text": "a \ud83c", "label": "a"}'),
                                   "line 1 has the text .* with half a character .*write it anew"),
    "a label of a thousand letters": (lambda: csv(Path("d.csv"), [*plain(9, "x" * 1000), *plain(9, "0")]),
                                      r"got the labels 'x{56}\.\.\., 0; expected"),
    "a text that is a long list": (lambda: written("d.json", json.dumps({"text": ["a"] * 1000, "label": [1] * 1000})),
                                   r"line 1 has the text .{57}\.\.\.; expected a string"),
    "a link to nothing": (lambda: Path("d.csv").symlink_to("gone.csv") or "d.csv",
                          "d.csv is a link to nothing; expected a file"),
    "a pipe": (lambda: os.mkfifo("d.csv") or "d.csv", "d.csv is a pipe or a device; expected a file"),
    "a web address": (lambda: "https://example.org/d.csv", "a web address isn't read: download the file"),
    "a file of zeros": (lambda: written("d.csv", b"\0" * 99), "expected text and label|holds no reviews"),
    "a picture": (lambda: written("d.csv", b"\x89PNG\r\n\x1a\n"), "got the byte 0x89 in line 1"),
    "UTF-16": (lambda: written("d.csv", "text,label\na,1\n".encode("utf-16")), "expected text in UTF-8"),
    "a spreadsheet": (lambda: written("d.xlsx", b"PK"), "got the extension '.xlsx'"),
    "no extension": (lambda: written("d", b"PK"), "got the extension ''"),
    "half a Parquet file": (lambda: written("d.parquet", b"PAR1\0\0PAR1"), "bytes that are not Parquet"),
    "a Parquet column twice": (lambda: parquet(pa.table([["a"], ["b"], [1]], names=["text", "text", "label"])),
                               "called 'text'"),
    "Parquet with bytes": (lambda: parquet({"text": [b"a"], "label": [1]}),
                           "row 1 has the text b'a'; expected a string"),
    "Parquet that isn't UTF-8": (lambda: parquet({"text": NOT_UTF8, "label": [1]}), "cannot be read|expected"),
    "Parquet of no rows": (lambda: parquet({"text": pa.array([], pa.string()), "label": pa.array([], pa.int64())}),
                           "holds no reviews"),
}


@pytest.mark.parametrize(("make", "message"), USELESS_DATA.values(), ids=USELESS_DATA.keys())
def test_data_that_nothing_can_be_learned_from_are_refused_before_training(make, message, monkeypatch, capsys):
    monkeypatch.setattr(recipes, "train_classifier", None)                 # calling it would be a TypeError
    assert_refused(run([make(), "out", *options()], capsys), message)
    assert not Path("out").exists()


@pytest.mark.parametrize(("make", "message"), USELESS_DATA.values(), ids=USELESS_DATA.keys())
def test_loading_a_bad_file_raises_one_of_two_errors(make, message):
    try:
        load_reviews(make())
    except (ValueError, FileNotFoundError) as error:
        assert str(error) and error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize("source", [None, 5, ["a", "b"], b"good.csv", {"text": ["a"]}])
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
    "a text missing": ({"text": [None, "b"], "label": [0, 1]}, "row 1 has no text"),
    "an empty text": ({"text": ["a", " \n"], "label": [0, 1]}, "row 2 has an empty text"),
    "texts that are numbers": ({"text": [1, 2], "label": [0, 1]}, "text is of type int64; expected strings"),
    "no rows": ({"text": pa.array([], pa.string()), "label": pa.array([], pa.int64())}, "holds no reviews"),
    "other columns": ({"review": ["a"], "label": [0]}, "has the columns 'review', 'label'; expected text and label"),
    "no label column": ({"text": ["a"]}, "has the columns 'text'; expected text and label"),
    "unlabelled": ({"text": ["a", "b"], "label": [-1, -1]}, "got the labels -1; expected 0 and 1"),
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


# what training and test share

def test_texts_shared_with_training_are_counted_on_the_error_stream_and_in_the_result(capsys):
    shouted = [(f"  {text.upper()}", label) for text, label in rows()[30:]]
    csv(Path("f/train.csv"), rows())
    csv(Path("f/validation.csv"), rows(10, 40))
    csv(Path("f/test.csv"), [*rows()[:5], *shouted, *rows(5, 90)])
    status, printed, complaint = run(["f", "out", *options()], capsys)
    assert status == 0 and "validation accuracy" in printed
    assert "warning: 15 of 20 test texts are in train too (5 exactly, 10 but for capitals or spaces)" in complaint
    result = json.loads(Path("out/result.json").read_text())
    assert result["shared_texts"] == {"test": {"reviews": 20, "same": 5, "but_for_case": 10}}
    assert len(result["warnings"]) == 1 and "15 of 20" in result["warnings"][0]


def test_nothing_is_warned_of_where_there_is_nothing(capsys):
    csv(Path("f/train.csv"), rows(40))
    csv(Path("f/test.csv"), rows(8, 50))
    status, _, complaint = run(["f", "out", *options()], capsys)
    assert status == 0 and "warning" not in complaint
    assert json.loads(Path("out/result.json").read_text())["warnings"] == []


def test_training_texts_with_two_labels_are_warned_of(capsys):
    csv(Path("d.csv"), [*rows(), ("A moving film", "negative"), ("a moving FILM", "positive")])
    status, _, complaint = run(["d.csv", "out", *options()], capsys)
    assert status == 0 and "1 of 37 different training texts have more than one label" in complaint


def test_test_reviews_of_one_class_are_warned_of(capsys):
    csv(Path("f/train.csv"), rows(40))
    csv(Path("f/test.csv"), plain(5, "negative"))
    assert "all test reviews have the same label" in run(["f", "out", *options()], capsys)[2]


def test_a_text_in_other_letters_never_lands_on_both_sides_of_the_split():
    texts = [f"Review {i % 20} of\u00a0a film" for i in range(20)]
    texts += [text.lower().replace("\u00a0", "  ") for text in texts] + [f" {text}\n".upper() for text in texts]
    reviews = datasets.Dataset.from_dict({"text": texts, "label": [i % 2 for i in range(60)]})
    split = split_reviews(reviews, validation=0.3)
    sides = [{normalised(text) for text in split[side]["text"]} for side in ("train", "validation")]
    assert not sides[0] & sides[1] and split["validation"].num_rows == 18


def test_kinds_with_gaps_are_scored(capsys):
    csv(Path("f/train.csv"), rows(40))
    csv(Path("f/test.csv"), [("a dull scene", "negative", "short"), ("a moving film", "positive", "")], "text,label,kind")
    status, _, complaint = run(["f", "out", *options()], capsys)
    assert status == 0, complaint
    assert json.loads(Path("out/result.json").read_text())["test"]["reviews_by_kind"] == {"none given": 1, "short": 1}
    Path("f/test.csv").unlink()
    lines = [{"text": "a dull scene", "label": "negative", "kind": kind} for kind in (None, 3, None)]
    Path("f/test.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert run(["f", "out", *options()], capsys)[0] == 0
    assert json.loads(Path("out/result.json").read_text())["test"]["reviews_by_kind"] == {"3": 1, "none given": 2}
