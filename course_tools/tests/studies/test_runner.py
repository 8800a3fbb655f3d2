"""Runs that end up in files: what is missing is made, once, and an interruption loses nothing."""

import dataclasses
import os
import re
import types

import pytest
import torch
from datasets import Dataset
from torch import nn

from course_tools.studies import command, runner
from course_tools.studies.needs import Need, there
from course_tools.studies.runner import (
    ResultSet,
    forget,
    made_run,
    missing_runs,
    remove_runs,
    run_missing,
    scored_split,
    train_and_score,
    twin_gap,
)
from course_tools.studies.sets import find_set
from course_utils.data import load_reviews, pairs
from course_utils.files import locked
from course_utils.results import add_run, read_runs, right_of
from course_utils.training import BatchOptions, EncodedReviews, evaluate, fit, seed_everything

TEST = {"accuracy": 0.5, "reviews": 10}


@pytest.fixture
def made(monkeypatch, tmp_path):
    """A set of two rows whose runs are counted; its result file is in tmp_path."""
    module = types.SimpleNamespace()
    module.calls, module.fails, module.version = [], set(), "a"
    module.changes = {"first": {}, "second": {"heads": 2}}

    def run(model, seed, state):
        module.calls.append((model, seed))
        if (model, seed) in module.fails:
            raise RuntimeError("no room left")
        return {"parameters": 1, "seconds": 0.1, "test": dict(TEST, accuracy=seed / 10)}

    module.run = run
    module.set = set_of("small_set", module)
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    return module


def set_of(name, module):
    """A set that does what the module's functions do when they are called, also where a test changes them later."""
    return ResultSet(name, module.changes, lambda: module.version, lambda *given: module.run(*given))


def go(made, tmp_path, **options):
    return run_missing(made.set, [0, 1], jobs=1, folder=tmp_path, progress=False, **options)


def test_a_run_says_what_it_was_and_one_seed_of_every_row_comes_first(made, tmp_path):
    assert go(made, tmp_path) == 0
    assert made.calls == [("first", 0), ("second", 0), ("first", 1), ("second", 1)]
    runs = read_runs("small_set", tmp_path)
    assert [(run["model"], run["seed"], run["order"]) for run in runs] == [
        ("first", 0, 0), ("first", 1, 0), ("second", 0, 1), ("second", 1, 1)]
    for run in runs:
        assert {"settings", "change", "device", "threads", "torch", "python", "parameters", "seconds", "test"} <= set(run)
        assert run["threads"] == 1


def test_what_is_made_is_not_made_again(made, tmp_path):
    go(made, tmp_path)
    made.calls.clear()
    assert go(made, tmp_path) == 0 and made.calls == []
    remove_runs("small_set", [("second", 1)], tmp_path)
    go(made, tmp_path)
    assert made.calls == [("second", 1)]


def test_other_settings_or_another_change_make_a_run_again(made, tmp_path):
    go(made, tmp_path)
    made.changes["second"] = {"heads": 4}
    assert missing_runs(made.set, [0, 1], tmp_path) == [("second", 0), ("second", 1)]
    made.version = "b"
    assert len(missing_runs(made.set, [0, 1], tmp_path)) == 4
    assert missing_runs(made.set, [0, 1], tmp_path, only="irs") == [("first", 0), ("first", 1)]


def test_a_run_that_fails_is_told_and_loses_no_other(made, tmp_path, capsys):
    made.fails = {("second", 0)}
    assert go(made, tmp_path) == 1
    assert "second, seed 0 failed: RuntimeError: no room left" in capsys.readouterr().err
    assert len(read_runs("small_set", tmp_path)) == 3
    made.fails = set()
    assert go(made, tmp_path) == 0 and len(read_runs("small_set", tmp_path)) == 4


def test_a_training_that_could_not_be_written_down_keeps_its_state(made, tmp_path, monkeypatch):
    ordinary, states = made.run, runner.state_folder(tmp_path)

    def run(model, seed, state):
        state.write_bytes(b"trained")
        return ordinary(model, seed, state)

    def no_room(*arguments):
        raise OSError("no room left")

    made.run = run
    monkeypatch.setattr(runner, "add_run", no_room)
    assert go(made, tmp_path, only="first") == 2
    assert sorted(file.name for file in states.glob("*.safetensors")) == [f"small_set-first-{k}.safetensors" for k in (0, 1)]
    monkeypatch.undo()
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    assert go(made, tmp_path, only="first") == 0 and not list(states.glob("*.safetensors"))


def test_a_run_that_another_process_is_making_is_left_to_it(made, tmp_path, capsys):
    states = runner.state_folder(tmp_path)
    states.mkdir(parents=True)
    with locked(states / "small_set-first-0.safetensors", "training first, seed 0"):
        assert go(made, tmp_path, only="first") == 1
    said = capsys.readouterr().err
    assert re.search(rf"seed 0 failed: InUse: .*small_set-first-0.safetensors is in use by process {os.getpid()} on .*"
                     r"\(training first, seed 0, since \d\d:\d\d\); wait until that has finished, or stop it", said)
    assert made.calls == [("first", 1)]


def test_runs_that_are_forgotten_take_their_states_along_and_no_other(made, tmp_path):
    go(made, tmp_path)
    states = runner.state_folder(tmp_path)
    for model in ("first", "second"):
        (states / f"small_set-{model}-1.safetensors").write_bytes(b"half trained")
    forget("small_set", [("first", 0), ("first", 1)], tmp_path)
    assert [(run["model"], run["seed"]) for run in read_runs("small_set", tmp_path)] == [("second", 0), ("second", 1)]
    assert [file.name for file in states.glob("*.safetensors")] == ["small_set-second-1.safetensors"]


def tiny(times=1):
    """Reviews of the ids 2 (negative) and 3 (positive), in the form that `train_and_score` takes."""
    labels = [0, 1] * 16
    encoded = EncodedReviews([[2 + label] * (1 + i % 4) for i, label in enumerate(labels)] * times, labels * times)
    split = load_reviews("reviews")["test"].select(range(32)).remove_columns("label").add_column("label", labels)
    return {"train": split, "validation": split, "test": split}, {"train": encoded, "validation": encoded, "test": encoded}


class Lookup(nn.Module):
    """One row of logits a token, averaged; dropout, so that the random stream matters."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, 2)
        self.dropout = nn.Dropout(0.3)

    def forward(self, token_ids, attention_mask):
        return self.dropout(self.table(token_ids)).mean(dim=1)


def test_a_training_that_was_ended_goes_on_from_its_state_to_the_same_run(made, tmp_path, monkeypatch):
    data, encoded = tiny()
    passes = []

    def run(model, seed, state, breaks=None):
        seed_everything(seed)
        net = Lookup()
        net.register_forward_pre_hook(lambda net, _: passes.append(net.training))
        if breaks:
            calls = []
            net.register_forward_hook(lambda *_: calls.append(1) or (_ for _ in ()).throw(KeyboardInterrupt)
                                      if len(calls) >= breaks else calls.append(1))
        return train_and_score(net, data, encoded, BatchOptions(batch_size=8), seed, state, epochs=6, learning_rate=0.1)

    made.run = run
    go(made, tmp_path, only="first")
    whole = read_runs("small_set", tmp_path)
    remove_runs("small_set", [("first", 0), ("first", 1)], tmp_path)
    made.run = lambda *arguments: run(*arguments, breaks=12)
    with pytest.raises(KeyboardInterrupt):
        go(made, tmp_path, only="first")
    left = list((tmp_path / "outputs" / "unfinished").rglob("*.safetensors"))
    assert len(left) == 1, "no state of the unfinished training was kept"
    made.run = run
    passes.clear()
    go(made, tmp_path, only="first")
    assert sum(passes) == (4 + 6) * 4                   # epochs of four steps: two of the twelve stood in the file
    for before, after in zip(whole, read_runs("small_set", tmp_path), strict=True):
        assert {k: v for k, v in before.items() if k != "seconds"} == {k: v for k, v in after.items() if k != "seconds"}
    assert not list((tmp_path / "outputs" / "unfinished").rglob("*.safetensors"))


def test_a_run_is_what_fit_and_evaluate_say_of_its_splits():
    data, encoded = tiny()
    for shift, (split, wrong) in enumerate([("validation", 4), ("test", 10)]):  # so many of 32 labels are turned round
        ids, labels = (part[shift:] + part[:shift] for part in encoded["train"])
        labels = [1 - label if i < wrong else label for i, label in enumerate(labels)]
        encoded[split] = EncodedReviews(ids, labels)
        data[split] = data["train"].remove_columns("label").add_column("label", labels)
    seed_everything(5)
    net, by_hand, options = Lookup(), Lookup(), BatchOptions(batch_size=8)
    by_hand.load_state_dict(net.state_dict())
    net.frozen = nn.Parameter(torch.zeros(3), requires_grad=False)
    record = made_run(lambda *run: train_and_score(net, data, encoded, options, 5, None, epochs=4, learning_rate=0.1),
                      "a row", 5, None)
    expected = fit(by_hand, encoded["train"], encoded["validation"], options=options, seed=5, epochs=4, learning_rate=0.1,
                   progress=False)
    assert record["parameters"] == 8 and record["best_epoch"] == expected.best_epoch
    for ours, theirs in zip(record["history"], expected.history, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)
    assert set(data) - set(record) == {"train"}
    for split in ("validation", "test"):
        assert record[split] == scored_split(data[split], evaluate(by_hand, encoded[split], options).predictions)
    assert record["validation"]["accuracy"] > record["test"]["accuracy"]


def test_a_split_is_scored_by_kind_and_on_unseen_frames():
    kinds, unseen = ["plain", "order", "order", "plain"], [True, False, False, True]
    split = Dataset.from_dict({"label": [1, 0, 1, 0], "kind": kinds, "unseen_frame": unseen})
    scored = scored_split(split, [1, 0, 0, 0])
    assert scored["accuracy"] == 0.75 and scored["by_kind"] == {"order": 0.5, "plain": 1.0}
    assert scored["reviews_by_kind"] == {"order": 2, "plain": 2}
    assert scored["unseen_frames"] == {"accuracy": 1.0, "reviews": 2}
    assert "unseen_frames" not in scored_split(split.remove_columns("unseen_frame"), [1, 0, 0, 0])


def test_the_gap_of_twins_is_the_largest_between_two_of_the_kind_order():
    ids = [[2, 2], [3, 3], [2, 3], [3, 2], [2, 2], [3, 3]]
    kinds = ["order", "negation", "order", "order", "negation", "order"]
    partner = ["c", "e", "a", "f", "b", "d"]                               # (0, 2) and (3, 5) are order twins
    reviews = Dataset.from_dict({"id": list("abcdef"), "pair": partner, "kind": kinds})
    net = Lookup()
    with torch.no_grad():
        net.table.weight[2:] = torch.tensor([[0.0, 4.0], [0.0, 0.0]])
    chances = torch.tensor([4.0, 4.0, 2.0, 0.0]).sigmoid()                 # of positive, in rows 0, 2, 3 and 5
    expected = max(abs(chances[0] - chances[1]), abs(chances[2] - chances[3])).item()
    found = twin_gap(net, reviews, EncodedReviews(ids, [0, 1] * 3), BatchOptions(multiple_of=1))
    assert 0.3 < expected < 0.4 and found == pytest.approx(expected)             # the negation twins are 0.48 apart


def test_right_says_of_each_review_whether_it_was_right():
    split = load_reviews("reviews")["test"].select(range(50))
    predictions = [label if i % 3 else 1 - label for i, label in enumerate(split["label"])]
    run = {"test": scored_split(split, predictions)}
    assert right_of(run).tolist() == [i % 3 != 0 for i in range(50)]
    assert right_of(run).mean() == pytest.approx(run["test"]["accuracy"])


def test_every_pair_of_the_test_split_is_known_to_the_intervals():
    twins = pairs(load_reviews("reviews")["test"])
    assert len(twins) > 300 and len({i for pair in twins for i in pair}) == 2 * len(twins)


def test_processes_of_their_own_give_what_one_process_gives(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    options = dict(only="majority", progress=False)
    assert run_missing(find_set("scoreboard"), [0], jobs=1, folder=tmp_path / "one", **options) == 0
    assert run_missing(find_set("scoreboard"), [0], jobs=2, folder=tmp_path / "two", **options) == 0
    one, two = (read_runs("scoreboard", tmp_path / name) for name in ("one", "two"))
    assert len(one) == 1 and one[0]["test"] == two[0]["test"]
    assert runner.state_folder(tmp_path / "one") != runner.state_folder(tmp_path / "two")


# what runs need


@pytest.fixture
def needing(made, tmp_path):
    """The set, whose first row needs a file that its second row leaves."""
    file, ordinary = tmp_path / "left", made.run

    def run(model, seed, state):
        if model == "second":
            file.write_text("by the second")
        return ordinary(model, seed, state)

    made.run = run
    need = Need("what the second leaves", lambda row, seed: row == "second" or there(file, "small_set --only second"),
                "small_set", ("second",))
    made.set = dataclasses.replace(made.set, depends_on=(need,))
    return made


def test_rows_that_others_need_are_made_first(needing, tmp_path):
    assert go(needing, tmp_path) == 0
    assert needing.calls == [("second", 0), ("second", 1), ("first", 0), ("first", 1)]


def test_a_run_that_lacks_something_is_not_begun_and_what_to_make_first_is_said_once(needing, tmp_path, capsys):
    assert go(needing, tmp_path, only="first") == 2 and needing.calls == []
    said = capsys.readouterr().err
    assert said.count("make it first: python -m course_tools results small_set --only second") == 1
    assert "what the second leaves" in said and "2 runs" in said


def test_the_command_says_what_to_get_where_the_settings_cannot_be_computed(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    find_set("learning_curves").settings.cache_clear()
    assert command.main(["learning_curves", "--output", str(tmp_path)]) == 2
    assert "Set COURSE_DATA to a folder that has" in capsys.readouterr().err


# what the command prints

PRINTED = {"model": "m", "order": 0, "seed": 0, "seconds": 3.0, "test": {"accuracy": 0.5, "reviews": 100}, "loss": 1.5}


SET = ResultSet("x", {}, lambda: "", lambda model, seed, state: {})


def said_of(one, folder, monkeypatch, capsys) -> str:
    monkeypatch.setattr(command, "find_set", lambda name: one)
    command.show("x", folder)
    return " ".join(capsys.readouterr().out.split())


def test_a_row_is_printed_with_its_accuracy_or_with_what_its_set_says(tmp_path, monkeypatch, capsys):
    add_run("x", PRINTED, tmp_path)
    add_run("x", {**PRINTED, "seed": 4, "loss": 2.5}, tmp_path)
    assert said_of(SET, tmp_path, monkeypatch, capsys) == "m 50.0 ± 9.8 seeds 0 4 3 s"
    losses = dataclasses.replace(SET, line=lambda runs: f"loss {sum(run['loss'] for run in runs) / len(runs)}")
    assert said_of(losses, tmp_path, monkeypatch, capsys) == "m loss 2.0 seeds 0 4 3 s"


def test_the_committed_figure_stands_beside_that_of_another_folder(tmp_path, monkeypatch, capsys):
    add_run("x", PRINTED, tmp_path / "ours")
    add_run("x", {**PRINTED, "test": {"accuracy": 0.6, "reviews": 100}}, tmp_path / "again")
    read = command.read_runs
    monkeypatch.setattr(command, "read_runs", lambda name, folder=tmp_path / "ours": read(name, folder))
    assert said_of(SET, tmp_path / "again", monkeypatch, capsys) == "m 60.0 ± 9.6 seeds 0 committed 50.0 ± 9.8 3 s"
