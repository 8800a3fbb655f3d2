"""The translations written by hand: aligned, in correct French, and not in the corpus that models are trained on."""

import json
from collections import Counter

import pytest
from french_checks import problems

from course_utils.data.translations import join_english, join_french, load_translations
from course_utils.files.paths import DATA

PAIRS = list(load_translations("handwritten_translation")["test"])


def test_there_are_twenty_of_each_kind_and_twenty_twins():
    kinds = "agreement adjective negation numbers relative object question long".split()
    assert Counter(row["kind"] for row in PAIRS) == dict.fromkeys(kinds, 20) | {"pronoun": 40}
    assert len({row["id"] for row in PAIRS}) == len({row["source"] for row in PAIRS}) == 200
    by_id = {row["id"]: row for row in PAIRS}
    for row in PAIRS:
        if row["kind"] == "pronoun":
            twin = by_id[row["pair"]]
            assert twin["pair"] == row["id"] and {row["gender"], twin["gender"]} == {"m", "f"}
            assert [row["antecedent"], row["antecedent_target"]] in row["alignment"]
            assert [row["pronoun"], row["pronoun_target"]] in row["alignment"]
            form = row["target_tokens"][row["pronoun_target"]]
            assert form in {"m": ("Il", "Ils"), "f": ("Elle", "Elles")}[row["gender"]]
            assert row["source_tokens"][row["pronoun"]] in ("It", "They")
            assert row["distance"] == row["pronoun"] - row["antecedent"] > 0 and row["sentences"] in (1, 2)
        else:
            assert row["pair"] is None and row["antecedent"] is None
        words = sum(token.isalnum() for token in row["source_tokens"])
        assert (20 if row["kind"] == "long" else 3) <= words <= 45, row["source"]


def test_alignments_are_in_range_and_cover_nearly_all_words():
    loose = total = 0
    for row in PAIRS:
        assert join_english(row["source_tokens"]) == row["source"] and join_french(row["target_tokens"]) == row["target"]
        for side, tokens in enumerate((row["source_tokens"], row["target_tokens"])):
            linked = {link[side] for link in row["alignment"]}
            assert linked <= set(range(len(tokens)))
            loose, total = loose + len(tokens) - len(linked), total + len(tokens)
        assert row["alignment"] == sorted(row["alignment"])
    assert loose / total < 0.06


@pytest.mark.parametrize("row", PAIRS, ids=lambda row: row["id"])
def test_the_checks_of_the_corpus_find_no_mistake(row):
    assert problems(row["target_tokens"]) == []
    assert not any(mark in row["target"] for mark in ("’", " ?", " !", "  "))


def test_no_pair_is_in_the_corpus():
    for split in ("train", "validation", "test"):
        rows = map(json.loads, (DATA / "translation" / f"{split}.jsonl").read_text(encoding="utf-8").splitlines())
        assert not {row["source"] for row in PAIRS} & {row["source"] for row in rows}
