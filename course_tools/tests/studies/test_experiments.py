"""Runs that end up in files: what is missing is made, once, and an interruption loses nothing."""

import math
import os
import re
import types

import numpy as np
import pytest
import torch
from datasets import Dataset
from scipy import stats
from torch import nn

from course_tools.studies import runner
from course_tools.studies.runner import (
    ResultSet,
    forget,
    missing_runs,
    remove_runs,
    run_missing,
    scored_split,
    train_and_score,
    twin_gap,
)
from course_tools.studies.sets import ablations, find_set
from course_utils.data import load_reviews, pairs
from course_utils.files import locked
from course_utils.recipes import RECIPES, changed
from course_utils.results import difference, read_runs, right_of
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
    return run_missing([made.set], [0, 1], jobs=1, folder=tmp_path, progress=False, **options)


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


def test_each_set_keeps_the_settings_of_its_own(made, tmp_path):
    other = types.SimpleNamespace(**{**vars(made), "version": "of the other"})
    assert run_missing([made.set, set_of("other_set", other)], [0], jobs=1, folder=tmp_path, progress=False) == 0
    for name, settings in (("small_set", "a"), ("other_set", "of the other")):
        assert [run["settings"] for run in read_runs(name, tmp_path)] == [settings] * 2


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


def test_an_unknown_set_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="no set of runs called 'ablation'; there are ablations, .*scoreboard"):
        find_set("ablation")


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
    record = train_and_score(net, data, encoded, options, 5, None, epochs=4, learning_rate=0.1)
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


def runs_of(right):
    return [{"test": {"right": f"{int('1' + ''.join(str(int(bit)) for bit in row), 2):x}"}} for row in right]


@pytest.mark.parametrize("seeds", [(3, 5), (3, 15)])
def test_the_interval_of_a_difference_covers_the_truth_as_often_as_it_says(seeds):
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):                                # reviews of unequal hardness, seeds of unequal luck
        hardness = rng.normal(0, 0.1, 300)
        sides = [rng.random((n, 300)) < 0.8 + hardness + rng.normal(0, 0.02, (n, 1)) for n in seeds]
        mean, half = difference(runs_of(sides[0]), runs_of(sides[1]))
        covered.append(abs(mean) <= half)
    assert 0.92 <= np.mean(covered) <= 1.0


def test_a_difference_is_a_paired_interval_over_reviews_and_welchs_over_seeds():
    def ends(figure):
        return figure[0] - figure[1], figure[0] + figure[1]

    one, other = [1] * 7 + [0] * 3, [1] * 3 + [0] * 5 + [1] * 2            # seeds alike: only the reviews are drawn
    expected = stats.ttest_1samp(np.subtract(one, other), 0).confidence_interval()
    assert ends(difference(runs_of([one] * 2), runs_of([other] * 3))) == pytest.approx(tuple(expected))
    # each review is right for one seed of three, and for one of two: only the seeds are drawn
    three = np.repeat(np.eye(3, dtype=int), [12, 6, 2], axis=1)
    two = np.repeat(np.eye(2, dtype=int), [16, 4], axis=1)
    expected = stats.ttest_ind(three.mean(axis=1), two.mean(axis=1), equal_var=False).confidence_interval()
    assert ends(difference(runs_of(three), runs_of(two))) == pytest.approx(tuple(expected))
    # two seeds that agree by luck are taken to vary as much as three
    agreeing, spread = np.repeat(np.eye(2, dtype=int), [9, 11], axis=1), three.mean(axis=1).var(ddof=1)
    reach = stats.t.ppf(0.975, 2) * math.sqrt(spread * (1 / 3 + 1 / 2))
    assert difference(runs_of(agreeing), runs_of(three)) == pytest.approx((0.5 - 1 / 3, reach))
    assert difference(runs_of(three), runs_of(agreeing)) == pytest.approx((1 / 3 - 0.5, reach))
    # the same difference on every review, with a twin or without: nothing is left to chance
    assert difference(runs_of([[1] * 9] * 2), runs_of([[0] * 9] * 2), [(0, 5), (1, 2)]) == (1.0, 0.0)
    both = [{"test": runs_of([one])[0]["test"], "validation": runs_of([other])[0]["test"]}] * 2
    assert difference(both, runs_of([one] * 2))[0] == 0
    assert difference(both, [{"validation": runs_of([one])[0]["test"]}] * 2, split="validation")[0] == pytest.approx(-0.2)


def test_twins_count_as_one_draw():
    rng = np.random.default_rng(1)
    once = [rng.random((3, 200)) < p for p in (0.9, 0.8)]
    twice = [np.repeat(side, 2, axis=1) for side in once]
    twins = [(i, i + 1) for i in range(0, 400, 2)]
    alone, blind, told = (difference(*map(runs_of, sides), pair) for sides, pair in
                          ((once, ()), (twice, ()), (twice, twins)))
    assert told == pytest.approx(alone) and blind[1] < 0.95 * alone[1]


def test_a_difference_of_one_seed_is_refused():
    with pytest.raises(ValueError, match="two seeds or more"):
        difference(runs_of([[1, 0]]), runs_of([[1, 0], [1, 1]]))


def test_the_ablations_are_what_their_names_say(root):
    changes, network = ablations.CHANGES, ablations.network
    recipe = RECIPES["reviews"]

    def built(name):
        torch.manual_seed(0)
        return network(changes[name], changed(recipe, **changes[name].options), 2709)

    default = built(ablations.DEFAULT)
    size = sum(p.numel() for p in default.parameters())
    for name in changes:
        assert isinstance(built(name), nn.Module)
        if changes[name].group in ("equal parameters", "equal seconds"):
            assert sum(p.numel() for p in built(name).parameters()) == pytest.approx(size, rel=0.015), name
    assert len(built("4 layers").encoder.blocks) == 4
    assert built("4 heads").encoder.blocks[0].attention.num_heads == 4
    assert not built("frozen random embeddings").embedding.weight.requires_grad
    assert not built("post-norm, 2 layers").encoder.blocks[0].norm_first
    assert built("width 64").config.d_model == built("width 64").config.d_ff == 64
    scaled, unscaled = default.encoder.blocks[0].attention, built("no scaling").encoder.blocks[0].attention
    unscaled.load_state_dict(scaled.state_dict())
    x = torch.randn(2, 5, 32)
    scores = [
        attention.attend(*attention.project(x, x, x), need_weights=True).weights.log() for attention in (scaled, unscaled)
    ]
    gaps = [score - score[..., :1] for score in scores]
    torch.testing.assert_close(gaps[1], gaps[0] * 4, atol=1e-4, rtol=1e-4)  # √d_head = √16


def test_every_pair_of_the_test_split_is_known_to_the_intervals():
    twins = pairs(load_reviews("reviews")["test"])
    assert len(twins) > 300 and len({i for pair in twins for i in pair}) == 2 * len(twins)


def test_processes_of_their_own_give_what_one_process_gives(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    options = dict(only="majority", progress=False)
    assert run_missing([find_set("scoreboard")], [0], jobs=1, folder=tmp_path / "one", **options) == 0
    assert run_missing([find_set("scoreboard")], [0], jobs=2, folder=tmp_path / "two", **options) == 0
    one, two = (read_runs("scoreboard", tmp_path / name) for name in ("one", "two"))
    assert len(one) == 1 and one[0]["test"] == two[0]["test"]
    assert runner.state_folder(tmp_path / "one") != runner.state_folder(tmp_path / "two")
