"""The translation corpus and the pairs written by hand: aligned, and with no way around the antecedent of a pronoun."""

import re
from collections import Counter
from functools import cache

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from course_utils.data.translations import (
    join_english,
    join_french,
    load_translations,
    pack_alignment,
    split_english,
    split_french,
    unpack_alignment,
)

pytestmark = pytest.mark.slow


@cache                                                    # not while tests are collected: it takes seconds
def corpus() -> dict:
    return load_translations()


@cache
def by_hand() -> dict:
    return load_translations("handwritten_translation")


@cache
def every() -> dict[str, list[dict]]:
    return {"corpus": [row for split in corpus().values() for row in split], "by hand": list(by_hand()["test"])}


@cache
def pronouns(split: str) -> list[dict]:
    return [row for row in (corpus() | {"by hand": by_hand()["test"]})[split] if row["kind"] == "pronoun"]


def test_sizes_and_what_no_training_pair_has():
    assert {split: len(rows) for split, rows in corpus().items()} == {"train": 14000, "validation": 1000, "test": 2000}
    assert list(by_hand()) == ["test"] and len(every()["by hand"]) == 200
    pairs = every()["corpus"] + every()["by hand"]
    assert len({row["source"] for row in pairs}) == len({(row["id"], row["source"]) for row in pairs}) == len(pairs)
    assert not any(corpus()["train"]["unseen"]) and 0.45 < sum(corpus()["test"]["unseen"]) / 2000 <= 0.5
    for column in ("source_tokens", "target_tokens"):
        known = {token.lower() for tokens in corpus()["train"][column] for token in tokens}
        assert {token.lower() for tokens in corpus()["test"][column] for token in tokens} <= known


def test_texts_and_tokens_are_two_forms_of_one_thing():
    for row in every()["corpus"] + every()["by hand"]:
        assert join_english(row["source_tokens"]) == row["source"] and join_french(row["target_tokens"]) == row["target"]
    assert split_english("The actress's film didn't end at five o'clock.") == (
        "The actress 's film did n't end at five o'clock .".split())
    assert split_french("Qu\u2019est-ce que l'actrice n'a pas vu aujourd'hui\u00a0?") == (
        "Qu' est-ce que l' actrice n' a pas vu aujourd'hui ?".split())
    assert join_french(["Est-ce", "qu'", "il", "dort", "?"]) == "Est-ce qu'il dort\u00a0?"
    assert unpack_alignment(pack_alignment([(0, 0), (1, 12)])) == [[0, 0], [1, 12]]


@pytest.mark.parametrize("name, share", [("corpus", 0.01), ("by hand", 0.06)])
def test_alignments_are_in_range_and_cover_the_words(name, share):
    loose, tokens = Counter(), Counter()
    for row in every()[name]:
        links = row["alignment"]
        assert links == sorted(links) and len({tuple(link) for link in links}) == len(links)
        for side, column in enumerate(("source_tokens", "target_tokens")):
            linked = {link[side] for link in links}
            assert linked <= set(range(len(row[column])))
            loose[column] += len(row[column]) - len(linked)
            tokens[column] += len(row[column])
    assert all(loose[column] / tokens[column] < share for column in tokens)


CERTAIN = {"film": "film", "scene": "scène", "Paul": "Paul", "never": "jamais", "where": "où", "red": "rouge",
           "door": "porte", "?": "?", "because": "parce"}


def test_words_with_one_translation_are_linked_to_it():
    for row in every()["corpus"]:
        partners = {}
        for i, j in row["alignment"]:
            partners.setdefault(i, []).append(row["target_tokens"][j].lower())
        for i, word in enumerate(row["source_tokens"]):
            if word in CERTAIN:
                assert any(CERTAIN[word].lower() in partner for partner in partners[i]), (row["source"], word)
            if word in ("n't", "not", "never"):
                assert {"ne", "n'"} & set(partners[i]) and len(partners[i]) >= 2, row["source"]


@pytest.mark.parametrize("split", ["train", "validation", "test", "by hand"])
def test_a_pronoun_has_the_gender_of_its_antecedent_and_a_twin_with_the_other(split):
    by_id = {row["id"]: row for row in pronouns(split)}
    for row in pronouns(split):
        twin = by_id[row["pair"]]
        assert twin["pair"] == row["id"] and {row["gender"], twin["gender"]} == {"m", "f"}
        assert row["source_tokens"][row["pronoun"]] in ("It", "They") and row["sentences"] >= 1
        assert row["distance"] == row["pronoun"] - row["antecedent"] > 0
        assert row["target_tokens"][row["pronoun_target"]] in {"m": ("Il", "Ils"), "f": ("Elle", "Elles")}[row["gender"]]
        assert [row["pronoun"], row["pronoun_target"]] in row["alignment"]
        assert [row["antecedent"], row["antecedent_target"]] in row["alignment"]


@pytest.mark.parametrize("part", ["last sentence", "all but the antecedent", "words after the antecedent"])
def test_partial_input_stays_near_chance(part):
    def text(row: dict) -> str:
        tokens = list(row["source_tokens"])
        if part == "last sentence":
            return " ".join(tokens[row["pronoun"] :])
        if part == "words after the antecedent":
            return " ".join(tokens[row["antecedent"] + 1 :])
        tokens[row["antecedent"]] = ""
        return re.sub(r"\ban\b", "a", " ".join(tokens))

    vectors = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\S+")
    model = LogisticRegression(max_iter=200).fit(
        vectors.fit_transform(map(text, pronouns("train"))), [row["gender"] for row in pronouns("train")]
    )
    score = model.score(vectors.transform(map(text, pronouns("test"))), [row["gender"] for row in pronouns("test")])
    assert 0.4 <= score <= 0.6, score
