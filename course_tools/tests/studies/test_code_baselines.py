"""The set of baselines on code: its rows on small texts, its file, and the tables made from it."""

import json

import pytest

from course_tools.studies import code_data
from course_tools.studies.code_scores import xz_bits
from course_tools.studies.sets import code_baselines as baselines
from course_tools.studies.sets import find_set
from course_tools.studies.standard_library import library_fingerprint, made_with
from course_utils.results import by_model, read_runs
from course_utils.tokenization import BPETokenizer

SOURCE = "def {0}(value):\n    total = value + {1}\n    return {0}_total(total, value)\n"


@pytest.fixture
def small(monkeypatch):
    """Three small splits, and byte pairs learned on one of them, in place of the library."""
    names = ["alpha", "gamma", "delta", "omega", "sigma", "theta", "kappa"]
    texts = {"train": {f"t{i}.py": SOURCE.format(name, i) * 3 for i, name in enumerate(names[:5])},
             "test": {f"s{i}.py": SOURCE.format(name, i) * 2 for i, name in enumerate(names[3:6])},
             "repository": {"r.py": SOURCE.format("kappa", 7)}}
    tokenizer = BPETokenizer.train(texts["train"].values(), 300)
    ids = {split: {path: tokenizer.encode(text) for path, text in some.items()} for split, some in texts.items()}
    monkeypatch.setattr(baselines, "code_texts", texts.__getitem__)
    monkeypatch.setattr(baselines, "code_ids", ids.__getitem__)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("model", baselines.ROWS)
def test_every_row_can_be_made_and_says_what_it_scored(small, model):
    run = baselines.run(model, 0, None)
    assert run["library"] == library_fingerprint() and {"parameters", "seconds"} <= set(run)
    for split in ("test", "repository"):
        assert run[split]["files"] == len(small[split]) and len(run[split]["fingerprint"]) == 12
        assert run[split]["bytes"] == sum(len(text) for text in small[split].values())
        assert ("names" in run[split]) != ("overall" in run[split])
    json.dumps([run, baselines.SET.describe(model)], allow_nan=False)
    assert baselines.line([run])


def test_longer_ngrams_and_priming_help_on_texts_that_repeat(small):
    def bits(model, split="test"):
        return baselines.run(model, 0, None)[split]["overall"]

    orders = [bits(f"Kneser–Ney {order}-gram") for order in (1, 2, 3)]
    assert orders[0] > orders[1] > orders[2] and orders[0] > 2 * orders[2]
    assert bits("xz") == pytest.approx(xz_bits(list(small["test"].values())))
    assert bits("xz, primed with the training text") < bits("xz")
    assert bits("xz", "repository") == pytest.approx(xz_bits(list(small["repository"].values())))


def test_the_words_of_the_file_are_asked_with_one_character_and_with_two(small):
    scored = baselines.run("words in this file, nearest first", 0, None)["test"]["names"]
    assert set(scored) == {"1", "2"} and scored["1"]["all"]["names"] == len(scored["1"]["ranks"]) == 6 * 7
    assert scored["1"]["seen"]["top 5"][0] == 1 and scored["1"]["new"]["top 5"][0] == 0
    other = baselines.run("words in this file, most frequent first", 0, None)["test"]["names"]
    assert other["1"]["ranks"] != scored["1"]["ranks"]


def test_the_settings_need_no_source_and_no_python_of_one_version(monkeypatch):
    def refuse(*_):
        raise AssertionError("the library was read")

    for module, name in ((baselines, "code_texts"), (baselines, "code_ids"), (code_data, "load_standard_library")):
        monkeypatch.setattr(module, name, refuse)
    baselines.settings.cache_clear()
    assert find_set("code_baselines").settings() == baselines.settings()
    before = baselines.settings()
    baselines.settings.cache_clear()
    monkeypatch.setattr(baselines, "PLACES", 7)
    assert baselines.settings() != before
    baselines.settings.cache_clear()


# The committed file.


@pytest.fixture(scope="module")
def rows():
    return by_model(read_runs("code_baselines"))


def test_the_file_has_every_row_as_it_would_be_made_now(rows):
    assert list(rows) == list(baselines.ROWS)
    for [run] in rows.values():
        assert run["library"] == library_fingerprint() and run["python"] == made_with()
        assert run["commit"] == code_data.REPOSITORY
        assert {"seed", "device", "threads", "torch", "parameters", "seconds"} <= set(run)
    for split in ("test", "repository"):                                   # all rows scored the same texts
        assert len({(run[split]["fingerprint"], run[split]["bytes"]) for [run] in rows.values()}) == 1


def test_the_figures_of_the_file_fit_together(rows):
    for model, [run] in rows.items():
        for split in ("test", "repository"):
            if "modules" in run[split]:
                assert len(run[split]["modules"]) == run[split]["files"]
                low, high = run[split]["interval"]
                assert min(run[split]["modules"].values()) < low < run[split]["overall"] < high
            for scored in run[split].get("names", {}).values():
                ranks, every = scored["ranks"], scored["all"]
                assert len(ranks) == every["names"] == 2000 == scored["seen"]["names"] + scored["new"]["names"]
                assert every["top 1"][0] == pytest.approx(ranks.count("1") / 2000, abs=1e-4)
                assert every["top 5"][0] == pytest.approx(1 - ranks.count("0") / 2000, abs=1e-4)
                for value, low, high in (scored[part][top] for part in ("all", "seen", "new") for top in ("top 1", "top 5")):
                    assert low <= value <= high, model
