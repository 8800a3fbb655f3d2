"""Recipes, and the command that trains by one."""

import json
import random
import runpy
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from course_utils.classifier import ReviewClassifier
from course_utils.recipes import RECIPES, changed, main, override, train_classifier
from course_utils.recipes.checks import check_vocabulary

# recipes and the command line

def test_override_changes_each_part_of_a_recipe():
    recipe = override(RECIPES["reviews"], ["num_layers=1", "epochs=3", "batch_size=4", "positions=learned", "max_len=64",
                                           "bucketed=false", "patience=2"])
    assert recipe.model["num_layers"] == 1 and recipe.model["positions"] == "learned"
    assert recipe.fit["epochs"] == 3 and recipe.fit["patience"] == 2
    assert recipe.batches["batch_size"] == 4 and recipe.batches["bucketed"] is False
    assert recipe.model["max_len"] == recipe.batches["max_len"] == 64      # the two must agree
    assert RECIPES["reviews"].fit["epochs"] != 3 and RECIPES["reviews"].model["positions"] == "rotary"


def test_options_are_changed_as_values_and_checked_by_the_same_rules():
    options = dict(num_layers=1, epochs=3, max_len=64, patience=None, min_freq=1)
    recipe = changed(RECIPES["reviews"], **options)
    assert recipe == override(RECIPES["reviews"], ["num_layers=1", "epochs=3", "max_len=64", "patience=None", "min_freq=1"])
    assert recipe.batches["max_len"] == 64 and recipe.fit["patience"] is None and recipe.min_freq == 1
    with pytest.raises(ValueError, match="'num_layer' isn't an option of a recipe; .*did you mean num_layers"):
        changed(RECIPES["reviews"], num_layer=1)
    with pytest.raises(ValueError, match="^num_layers='1'; use a whole number"):
        changed(RECIPES["reviews"], num_layers="1")


@pytest.mark.parametrize("wrong", ["heads=2", "num_layers", "vocab_size=9"])
def test_override_names_what_it_does_not_know(wrong):
    with pytest.raises(ValueError, match="expected NAME=VALUE with one of the names .*num_layers.*positions"):
        override(RECIPES["reviews"], [wrong])


@pytest.mark.parametrize(("wrong", "message"), [
    ("epochs=1.5", "epochs"), ("max_len=null", "max_len"), ("zero_init=maybe", "zero_init"),
    ("batch_size=true", "batch_size"), ("positions=sine", "use one of none, sinusoidal"),
])
def test_override_names_a_value_that_cannot_be(wrong, message):
    with pytest.raises(ValueError, match=message):
        override(RECIPES["reviews"], [wrong])


def toy_dataset(tmp_path):
    rng = random.Random(0)
    lines = ["text,label"]
    for i in range(60):
        filler = " ".join(rng.choice(["the film", "a scene", "its end", "we saw"]) for _ in range(rng.randrange(1, 5)))
        lines.append(f"{filler} {'moving' if i % 2 else 'dull'} number{i},{'positive' if i % 2 else 'negative'}")
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


TINY = ["num_layers=1", "d_model=8", "num_heads=2", "d_ff=8", "epochs=2", "max_len=12", "batch_size=8"]


def test_the_vocabulary_comes_from_the_training_split_alone(tmp_path):
    from course_utils.data import load_reviews, split_reviews

    dataset = split_reviews(load_reviews(toy_dataset(tmp_path)), validation=0.3)
    recipe = override(RECIPES["reviews"], TINY)._replace(min_freq=1)
    trained = train_classifier(dataset, recipe, progress=False)
    known = set(trained.classifier.tokenizer.vocabulary)
    for text in dataset["train"]["text"]:
        assert text.split()[-1] in known
    for text in dataset["validation"]["text"]:
        assert text.split()[-1] not in known
    assert trained.validation_accuracy == max(epoch["validation_accuracy"] for epoch in trained.fit_result.history)


def test_the_command_line_writes_a_classifier_that_loads(tmp_path, monkeypatch, capsys):
    command = ["train", str(toy_dataset(tmp_path)), str(tmp_path / "made"), "--threads", str(torch.get_num_threads())]
    for setting in TINY:
        command += ["--set", setting]
    monkeypatch.setattr(sys, "argv", ["course_utils", *command])
    with pytest.raises(SystemExit) as ended:                               # as `python -m course_utils train` would
        runpy.run_module("course_utils", run_name="__main__")
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    assert "validation accuracy" in printed and "ReviewClassifier.load(" in printed
    assert sorted(path.name for path in (tmp_path / "made").glob("[!.]*")) == ["model.safetensors", "result.json"]
    classifier = ReviewClassifier.load(tmp_path / "made")
    labels, probabilities = classifier.predict(["a moving film", "a dull film " * 20])
    assert set(labels) <= {"negative", "positive"} and probabilities.isfinite().all()
    result = json.loads((tmp_path / "made" / "result.json").read_text())
    assert result["recipe"]["fit"]["epochs"] == 2 and result["seed"] == 0 and result["best_epoch"] in (1, 2)


def test_a_command_that_was_killed_goes_on_to_the_same_files(tmp_path):
    data, epochs = toy_dataset(tmp_path), 6
    settings = [setting for setting in TINY if not setting.startswith("epochs")] + [f"epochs={epochs}"]
    options = [part for setting in settings for part in ("--set", setting)] + ["--threads", str(torch.get_num_threads())]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main([str(data), str(whole), *options]) == 0
    command = [sys.executable, "-m", "course_utils", "train", str(data), str(cut), *options]
    root, state = Path(__file__).resolve().parents[2], cut / "training_state.safetensors"
    running = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not state.exists() and running.poll() is None:                   # until the first epoch is saved
        time.sleep(0.001)
    running.kill()                                                         # SIGKILL, in a later epoch
    running.communicate()
    assert running.returncode != 0 and not (cut / "result.json").exists()
    with safe_open(state, framework="pt") as file:
        assert 1 <= len(json.loads(file.metadata()["state"])["history"]) < epochs
    again = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "starts anew" not in again.stderr
    results = [json.loads((folder / "result.json").read_text()) for folder in (whole, cut)]
    for folder, result in zip((whole, cut), results):
        del result["seconds"]
        (folder / "result.json").unlink()
    assert results[0] == results[1]
    files = [{path.name: path.read_bytes() for path in folder.glob("[!.]*")} for folder in (whole, cut)]
    assert files[0] == files[1] and list(files[0]) == ["model.safetensors"]


@pytest.mark.parametrize(("arguments", "message"), [
    (["no-such-file.csv", "out"], "no-such-file.csv"),
    (["reviews", "out", "--set", "layers=2"], "layers=2: expected NAME=VALUE"),
    (["reviews", "out", "--recipe", "bert"], "invalid choice: 'bert'"),
])
def test_the_command_line_says_what_is_wrong_in_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err.strip().splitlines()[-1]


def test_a_word_that_stands_exactly_as_often_as_asked_is_enough():
    texts = ["A film , and a plot .", "Dull , dull ."]
    check_vocabulary(texts, min_freq=2)
    check_vocabulary(texts[:1], min_freq=2)             # 'a', twice
    with pytest.raises(ValueError, match="3 times"):
        check_vocabulary(texts, min_freq=3)
    check_vocabulary(["dull dull dull"], min_freq=3)
