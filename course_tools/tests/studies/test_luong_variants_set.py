"""The result set on input feeding and windows: equal sizes, one change a row, and the file that was made."""

import json

import pytest

from course_tools.studies.sets import find_set
from course_tools.studies.sets import luong_variants as made
from course_tools.studies.sets import recurrent_attention as recurrent
from course_utils.results import read_runs
from course_utils.training.pair_batches import EncodedPairs
from course_utils.translation.translators import translation_corpus

CONTROL = "general, after, GRU"


def test_all_translators_and_the_control_have_equally_many_parameters():
    nets = [made.new_translator(row, 0) for row in made.ROWS] + [recurrent.new_translator(CONTROL, 0)]
    sizes = [sum(p.numel() for p in net.parameters()) for net in nets]
    assert max(sizes) < 1.01 * min(sizes), sizes


def test_each_row_is_what_its_name_says():
    nets = {row: made.new_translator(row, 0) for row in made.ROWS}
    assert {row: (net.decoder.feed, net.decoder.attention.window) for row, net in nets.items()} == {
        "input feeding": (True, "global"), "local-m": (False, "monotonic"), "local-p": (False, "predicted")}


@pytest.mark.slow
def test_every_row_can_be_made(monkeypatch):
    whole = translation_corpus()
    few = whole._replace(splits={name: split.select(range(40)) for name, split in whole.splits.items()},
                         pairs={name: EncodedPairs(pairs.source[:40], pairs.target[:40])
                                for name, pairs in whole.pairs.items()})
    monkeypatch.setattr(recurrent, "translation_corpus", lambda: few)
    monkeypatch.setitem(recurrent.FIT, "epochs", 1)
    assert find_set("luong_variants") is made.SET
    for row in made.ROWS:
        run = made.run(row, 0, None)
        json.dumps([run, made.SET.describe(row)])
        assert run["steps"] == 1 and run["test"]["reviews"] == 40 and "AER" in made.SET.line([run])


def test_the_committed_runs_are_of_this_recipe_and_took_the_steps_of_the_control():
    control = next(run for run in read_runs("recurrent_attention") if run["model"] == CONTROL)
    for run in read_runs("luong_variants"):
        assert run["steps"] == control["steps"] and abs(run["parameters"] / control["parameters"] - 1) < 0.01
