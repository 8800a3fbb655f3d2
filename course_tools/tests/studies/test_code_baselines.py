"""The set of baselines on code: its rows on small texts, its file, and the tables made from it."""


import pytest

from course_tools.studies.code_scores import xz_bits
from course_tools.studies.sets import code_baselines as baselines
from course_utils.byte_pairs import BPETokenizer

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


# The committed file.
