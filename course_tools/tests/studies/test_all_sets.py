"""One law for every result set: its file holds its rows, each as the set would make it now, and every run says what it was.

That each row can be made at all is shown by the sets' own tests, on a few texts and a step or two.
"""

import dataclasses
import pickle

import pytest

from course_tools.studies.runner import missing_runs
from course_tools.studies.sets import SETS, induction
from course_utils.data import DataNotAvailable
from course_utils.results import by_model, read_runs
from course_utils.training.hugging_face import ModelNotAvailable

NAMES = sorted(SETS)
each = pytest.mark.parametrize("name", NAMES)


@each
def test_the_rows_of_the_file_are_the_rows_of_the_set(name):
    found = by_model(read_runs(name))
    assert list(found) == list(SETS[name].rows)
    for row, runs in found.items():
        assert len({run["seed"] for run in runs}) == len(runs), f"{row}: a seed is there twice"


@each
def test_every_run_says_what_it_was(name):
    runs = read_runs(name)
    for run in runs:
        assert {"model", "order", "seed", "settings", "device", "threads", "torch", "seconds"} <= set(run)
        for scored in (part for part in run.values() if isinstance(part, dict) and {"accuracy", "reviews"} <= set(part)):
            assert scored["reviews"] > 0 and 0 <= scored["accuracy"] <= 1
    assert len({run["settings"] for run in runs}) == 1, "the runs of one file were made with different settings"


@each
def test_no_run_of_the_file_would_be_made_otherwise_now(name):
    """With the corpora and models that are on this machine; a set that needs others is taken at its word for `settings`."""
    one, runs = SETS[name], read_runs(name)
    try:
        one.settings()
    except (DataNotAvailable, ModelNotAvailable):
        one = dataclasses.replace(one, settings=lambda: runs[0]["settings"])
    wanted = set(one.wanted(sorted({run["seed"] for run in runs})))
    runs = [run for run in runs if (run["model"], run["seed"]) in wanted]      # no earlier reader's weights are handed out
    assert {run["model"] for run in runs} >= set(one.rows) - {"earlier reader"}
    assert {run["settings"] for run in runs} == {one.settings()}
    for row, same in by_model(runs).items():
        assert all(run.get("change", {}) == one.describe(row) for run in same), row


@each
def test_a_change_of_settings_or_of_a_row_counts_as_missing(name):
    one = SETS[name]
    run = read_runs(name)[-1]
    only = {"seeds": lambda row, asked: [run["seed"]], "rows": [run["model"]]}
    described = {run["model"]: run.get("change", {}) for run in read_runs(name)}
    as_it_was = dataclasses.replace(one, settings=lambda: run["settings"], change=described.__getitem__, **only)
    assert missing_runs(as_it_was, [run["seed"]]) == []
    other = dataclasses.replace(as_it_was, settings=lambda: "another")
    assert missing_runs(other, [run["seed"]]) == [(run["model"], run["seed"])]
    changed = dataclasses.replace(as_it_was, change=lambda row: {**described[row], "more": 1})
    assert missing_runs(changed, [run["seed"]]) == [(run["model"], run["seed"])]


@each
def test_a_run_can_travel_to_another_process(name):
    assert pickle.loads(pickle.dumps(SETS[name].run)) is SETS[name].run


def test_a_changed_recipe_counts_as_missing(monkeypatch):
    assert missing_runs(induction.SET, [0]) == []
    induction.settings.cache_clear()
    monkeypatch.setitem(induction.FIT, "warmup", 0.123)
    assert missing_runs(induction.SET, [0]) == [(row, 0) for row in induction.ROWS]
    induction.settings.cache_clear()
