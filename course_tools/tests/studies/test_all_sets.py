"""One law for every result set: its file holds its rows, each as the set would make it now, and what it needs is stated."""

import dataclasses
import pickle

import pytest

from course_tools.studies.runner import missing_runs
from course_tools.studies.sets import SETS, in_order, induction
from course_utils.data import DataNotAvailable
from course_utils.results import by_model, read_runs
from course_utils.training.hugging_face import ModelNotAvailable

LONG = {"reader_maps", "luong_variants", "reader_more", "translation", "which_data", "reader", "llama_changes",
        "summaries_by_copying"}                        # fingerprints of much text
each = pytest.mark.parametrize("name", sorted(SETS))
those_that_are_quick = pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in sorted(SETS)])


@each
def test_the_file_holds_the_rows_of_the_set_and_every_run_says_what_it_was(name):
    found = by_model(read_runs(name))
    assert list(found) == list(SETS[name].rows)
    for row, runs in found.items():
        seeds = [run["seed"] for run in runs]
        assert len({*seeds}) == len(seeds), f"{row}: a seed is there twice"
        assert len({run["settings"] for run in runs}) == 1, f"{row}: its runs were made with different settings"
        for run in runs:
            assert {"model", "order", "seed", "settings", "device", "threads", "torch", "seconds"} <= set(run)
            for scored in (part for part in run.values() if isinstance(part, dict) and {"accuracy", "reviews"} <= set(part)):
                assert scored["reviews"] > 0 and 0 <= scored["accuracy"] <= 1
    wanted = set(SETS[name].wanted([0])) - {("earlier reader", 0)}          # its weights aren't handed out
    assert wanted <= {(run["model"], run["seed"]) for runs in found.values() for run in runs}


@those_that_are_quick
def test_no_run_of_the_file_would_be_made_otherwise_now(name):
    """With the corpora and models that are on this machine; a set that needs others is taken at its word for `settings`."""
    one, runs = SETS[name], read_runs(name)
    try:
        one.settings()
    except (DataNotAvailable, ModelNotAvailable):
        one = dataclasses.replace(one, settings=lambda: runs[0]["settings"])
    wanted = set(one.wanted(sorted({run["seed"] for run in runs})))
    runs = [run for run in runs if (run["model"], run["seed"]) in wanted]
    assert {run["model"] for run in runs} >= set(one.rows) - {"earlier reader"}
    assert {run["settings"] for run in runs} == {one.settings()}
    for row, same in by_model(runs).items():
        assert all(run.get("change", {}) == one.describe(row) for run in same), row


@each
def test_a_change_of_settings_or_of_a_row_counts_as_missing(name):
    run = read_runs(name)[-1]
    described = {run["model"]: run.get("change", {}) for run in read_runs(name)}
    as_it_was = dataclasses.replace(
        SETS[name], settings=lambda: run["settings"], change=described.__getitem__, seeds=lambda row, asked: [run["seed"]],
        rows=[run["model"]])
    assert missing_runs(as_it_was, []) == []
    other = dataclasses.replace(as_it_was, settings=lambda: "another")
    changed = dataclasses.replace(as_it_was, change=lambda row: {**described[row], "more": 1})
    assert missing_runs(other, []) == missing_runs(changed, []) == [(run["model"], run["seed"])]


@those_that_are_quick
def test_what_it_needs_is_here_or_said_to_be_missing_and_a_run_can_travel_to_another_process(name):
    one, row = SETS[name], read_runs(name)[0]["model"]
    assert pickle.loads(pickle.dumps(one.run)) is one.run
    for need in one.depends_on:
        assert need.made_by in ("", *SETS) and set(need.rows) <= set(one.rows), need.what
        try:
            need.look(row, 0)
        except (DataNotAvailable, ModelNotAvailable, FileNotFoundError) as error:
            assert "COURSE_" in str(error) or "python -m course_tools results" in str(error), need.what


def test_a_set_comes_after_those_that_it_needs():
    names = in_order(sorted(SETS))
    assert sorted(names) == sorted(SETS)
    assert all(names.index(need.made_by) <= names.index(name) for name in names for need in SETS[name].depends_on
               if need.made_by)
    assert in_order(["reader_more", "code_completion", "reader"]).index("reader_more") > 0
    with pytest.raises(ValueError, match="no set of runs called 'ablation'; there are ablations, .*scoreboard"):
        in_order(["ablation"])


def test_a_changed_recipe_counts_as_missing(monkeypatch):
    assert missing_runs(induction.SET, [0]) == []
    induction.settings.cache_clear()
    monkeypatch.setitem(induction.FIT, "warmup", 0.123)
    assert missing_runs(induction.SET, [0]) == [(row, 0) for row in induction.ROWS]
    induction.settings.cache_clear()
