"""What the training command takes: options, an output, and what it says of texts that splits share."""

import json
import os
from pathlib import Path

import pytest
from command_line import assert_refused, csv, in_a_folder_with_reviews, options, rows, run

from course_utils import recipes
from course_utils.classifier import POOLINGS, POSITIONS
from course_utils.training import BatchOptions

__all__ = ["in_a_folder_with_reviews"]                  # pytest runs it around each test here


# options

def setting(text):
    return ["good.csv", "out", "--set", text]


WRONG_OPTIONS = {
    # how the command is called
    "nothing": ([], "required: data, output"),
    "no output": (["good.csv"], "required: output"),
    "an unknown option": (["good.csv", "out", "--epochs", "3"],
                          "unrecognized arguments: --epochs 3; an option of the recipe is written --set NAME=VALUE"),
    "no recipe of that name": (["good.csv", "out", "--recipe", "bert"], "invalid choice: 'bert'"),
    "a negative seed": (["good.csv", "out", "--seed", "-1"], "seed=-1; use a whole number from 0 to 4,294,967,295"),
    "a seed for no generator": (["good.csv", "out", "--seed", str(2**32)], "seed=4294967296; use"),
    "no threads": (["good.csv", "out", "--threads", "0"], "threads=0; use a whole number from 1"),
    # names
    "a name nearly right": (setting("num_layer=1"), "did you mean num_layers"),
    "no value": (setting("num_layers"), "expected NAME=VALUE"),
    "a name twice": ([*setting("epochs=1"), "--set", "epochs=2"], "epochs is set twice"),
    # types
    "half an epoch": (setting("epochs=1.5"), "epochs=1.5; use a whole number"),
    "a switch half on": (setting("zero_init=maybe"), "zero_init='maybe'; use True or False"),
    "a number for a word": (setting("positions=3"), "positions=3; use one of none, sinusoidal"),
    "a thousand brackets": (setting("epochs=" + "[" * 100_000), "use a whole number"),
    # ranges
    "no epochs": (setting("epochs=0"), "epochs=0; use a whole number from 1"),
    "a huge learning rate": (setting("learning_rate=1e30"), "learning_rate=1e[+]30; use a number above 0, at most 100"),
    "a warm-up longer than the run": (setting("warmup=1.5"), "warmup=1.5; use a number from 0 to 1"),
    "a clip of nothing": (setting("clip=0"), "clip=0; use a number above 0"),
    "more than all words dropped": (setting("word_dropout=1.2"), "word_dropout=1.2; use"),
    "20,000 layers": (setting("num_layers=20000"), "num_layers=20000; use"),
    "a vocabulary of two": (setting("max_size=2"), "max_size=2; use"),
    # choices
    "positions that aren't taught": (setting("positions=sine"), "positions='sine'; use one of none, sinusoidal"),
    # together
    "three heads": (setting("num_heads=3"), "d_model=32 is not divisible by num_heads=3; try 2 or 4"),
    "an odd width and sines": ([*setting("d_model=31"), "--set", "num_heads=1", "--set", "positions=sinusoidal"],
                               "d_model=31 .*odd|sines and cosines"),
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
    assert set(recipes.RECIPE_RULES["model"]) == config - {"vocab_size", "num_classes", "pad_id", "unk_id"}
    for name, words in (("positions", POSITIONS), ("pooling", POOLINGS)):
        assert all(recipes.RECIPE_RULES["model"][name].allows(word) for word in words)
        assert ", ".join(words) in recipes.RECIPE_RULES["model"][name].words
    assert set(recipes.RECIPE_RULES["batches"]) | {"max_len", "pad_id"} == set(BatchOptions._fields)


# the output

def test_the_output_must_be_a_folder_that_can_be_written_to(tmp_path, capsys, monkeypatch):
    Path("file").write_text("mine")
    Path("nowhere").symlink_to("gone")
    Path("odd/result.json").mkdir(parents=True)
    wrong = {
        "file": "file isn't a folder that you can write to", "file/deeper/still": "file isn't a folder",
        "good.csv": "good.csv isn't a folder", "": "got '' as the output", "  ": "got '  ' as the output",
        "nowhere": "nowhere isn't a folder", "nowhere/out": "nowhere isn't a folder", "x" * 300: "cannot be written to",
        "odd": "result.json is a folder", "/proc/nobody/out": "cannot be written to", "a\0b": "cannot be written to",
        "locked": "locked/model.safetensors is a folder",
    }
    Path("locked/model.safetensors").mkdir(parents=True)
    for output, message in wrong.items():
        assert_refused(run(["good.csv", output, *options()], capsys), message)
    monkeypatch.setattr(os, "access", lambda path, mode: False)            # root may write anywhere
    assert_refused(run(["good.csv", "out", *options()], capsys), "isn't a folder that you can write to")
    assert Path("file").read_text() == "mine" and not Path("out").exists()


def test_the_data_are_not_overwritten(capsys):
    Path("result.json").write_text(json.dumps([dict(zip(("text", "label"), row)) for row in rows()]))
    before = Path("result.json").read_bytes()
    assert_refused(run(["result.json", ".", *options()], capsys), "result.json would be overwritten")
    assert Path("result.json").read_bytes() == before


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


def test_training_texts_with_two_labels_are_warned_of(capsys):
    csv(Path("d.csv"), [*rows(), ("A moving film", "negative"), ("a moving FILM", "positive")])
    status, _, complaint = run(["d.csv", "out", *options()], capsys)
    assert status == 0 and "1 of 37 different training texts have more than one label" in complaint


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
