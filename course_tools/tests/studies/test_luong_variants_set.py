"""The result set on input feeding and windows: equal sizes, one change a row, and the file that was made."""

import json

from course_tools.studies.course_translation_table import translators_table, translators_words
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


def test_every_row_can_be_made(monkeypatch):
    whole = translation_corpus()
    few = whole._replace(splits={name: split.select(range(40)) for name, split in whole.splits.items()},
                         pairs={name: EncodedPairs(pairs.source[:40], pairs.target[:40])
                                for name, pairs in whole.pairs.items()})
    monkeypatch.setattr(recurrent, "translation_corpus", lambda: few)
    monkeypatch.setitem(recurrent.FIT, "epochs", 1)
    assert find_set("luong_variants") is made.SET and made.wanted([0, 1]) == [(row, s) for row in made.ROWS for s in (0, 1)]
    for row in made.ROWS:
        run = made.run(row, 0, None)
        json.dumps([run, made.describe(row)])
        assert run["steps"] == 1 and run["test"]["reviews"] == 40 and "AER" in made.SET.line([run])


def test_the_committed_runs_are_of_this_recipe_and_took_the_steps_of_the_control():
    control = next(run for run in read_runs("recurrent_attention") if run["model"] == CONTROL)
    runs = read_runs("luong_variants")
    assert {run["model"] for run in runs} == set(made.ROWS)
    for run in runs:
        assert run["settings"] == made.settings() and run["change"] == made.describe(run["model"])
        assert run["steps"] == control["steps"] and abs(run["parameters"] / control["parameters"] - 1) < 0.01


def a_run(model, right, aer=None, heads=None, size=1000, seconds=120.0, order=0):
    lengths = {} if right is None else {"by_length": {"1-10": right, "11-20": right / 2},
                                        "reviews_by_length": {"1-10": 100, "11-20": 50}}
    test = {"reviews": 150, **lengths} | ({} if heads is None else {"alignment_error_rate": {"writes": heads}})
    return {"model": model, "order": order, "seed": 0, "test": test, "alignment": None if aer is None else {"aer": aer},
            "parameters": size, "seconds": seconds, "steps": 7}


def test_the_table_has_every_translator_with_its_own_numbers():
    recurrent = [a_run("one vector", 0.1), a_run("attention", 0.8, 0.25, order=1), a_run("never", 0.0, 0.9, order=2),
                 a_run("counts", None, 0.2, size=0, order=3)]
    variants, transformer = [a_run("feeding", 0.9, 0.15, seconds=180.0)], [a_run("Transformer", 0.6, heads=[[0.5], [0.4]])]
    del transformer[0]["alignment"]                                        # its heads have theirs instead
    lines = translators_table(recurrent, variants, transformer).splitlines()
    rows = {cells[1].strip(): [cell.strip() for cell in cells[2:-1]] for cells in (line.split("|") for line in lines[2:])}
    assert {len(line.split("|")) for line in lines} == {9}
    assert rows["one vector"][1].startswith("10.0 ± ") and rows["one vector"][2].startswith("5.0 ± ")
    assert rows["one vector"][3:] == ["", "1,000", "2"] and rows["attention"][3] == "25.0"
    assert rows["never"][1:3] == ["0, at most 3.0", "0, at most 6.0"]
    assert rows["counts"] == ["1", "", "", "20.0", "", ""]
    assert rows["general, after, GRU, feeding"][3:] == ["15.0", "1,000", "3"] and rows["Transformer"][3] == "40.0"
    assert "150 test pairs" in translators_words(recurrent) and "same 7 batches" in translators_words(recurrent)


def test_minutes_are_those_of_the_quickest_run_and_the_words_say_how_slow_others_were():
    recurrent = [a_run("one vector", 0.1, seconds=480.0), a_run("one vector", 0.2, seconds=120.0) | {"seed": 1}]
    assert translators_table(recurrent, [], []).splitlines()[2].endswith("| 1,000 | 2 |")
    assert "took up to 4 times as long" in translators_words(recurrent)
