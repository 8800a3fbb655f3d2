"""One law for every result set's runs: made in small, each says what those of its file say, and isn't made again."""

import pytest
from small_sets import clear_caches, few_translations, small_set

from course_tools.studies.runner import missing_runs, run_missing
from course_tools.studies.sets import SETS
from course_utils.results import read_runs

LATER = {"python", "change", "history", "ordinary_second"}                 # what the oldest committed runs don't have


def texts_of(translations) -> list[str]:
    return [text for split in translations.values() for column in ("source", "target") for text in split[column]]


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_a_fresh_run_says_what_those_of_the_file_say_and_is_not_made_again(name, monkeypatch, tmp_path):
    committed = {run["model"]: set(run) for run in read_runs(name)}
    try:
        one = small_set(name, monkeypatch, tmp_path)
        assert run_missing(one, [0], jobs=1, folder=tmp_path / "results", progress=False) == 0
        made = read_runs(name, tmp_path / "results")
        assert {(run["model"], run["seed"]) for run in made} == set(one.wanted([0]))
        for run in made:
            assert set(run) | LATER == committed[run["model"]] | LATER, run["model"]
            assert not one.line or one.line([run]).strip()
        assert missing_runs(one, [0], tmp_path / "results") == []
        written = (tmp_path / "results" / f"{name}.json").read_text(encoding="utf-8")
        assert name != "multi30k" or not any(text in written for text in texts_of(few_translations(name))), "see its licence"
    finally:
        monkeypatch.undo()
        clear_caches()
