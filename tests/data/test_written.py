"""The sentences written to train on: whole, balanced, in pairs, and far from everything that is for testing alone."""

import json
from collections import Counter

import pytest
from sentence_corpus import KEPT_APART, RUN, changes, runs, words

from course_utils.data import load_reviews, pairs
from course_utils.files.paths import DATA

pytestmark = pytest.mark.slow

SPLITS = ("train", "validation", "test")
CORPORA = ("written", "written_more")
KINDS = {"plain", "negation", "contrast", "expectation", "irony", "others", "comparison"}
NEAR = 3                                                # words to change


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


ROWS = {name: {split: read_lines(DATA / name / f"{split}.jsonl") for split in SPLITS} for name in CORPORA}
EVERY = {name: [row for split in SPLITS for row in ROWS[name][split]] for name in CORPORA}


@pytest.mark.parametrize("name, number", zip(CORPORA, (2096, 7575), strict=True))
def test_the_loader_gives_three_splits(name, number):
    found = load_reviews(name)
    assert list(found) == list(SPLITS) and found["test"].features == load_reviews("ordinary")["test"].features
    assert [found[split].num_rows for split in SPLITS] == [len(ROWS[name][split]) for split in SPLITS]
    assert sum(split.num_rows for split in found.values()) == number
    assert f'"{name}": {number:,} ' in load_reviews.__doc__


@pytest.mark.parametrize("name", CORPORA)
def test_fields_ids_and_evidence(name):
    for split, rows in ROWS[name].items():
        assert [row["id"] for row in rows] == [f"{split}-{number:05d}" for number in range(len(rows))]
        for row in rows:
            assert list(row) == ["id", "text", "label", "kind", "evidence", "pair"] and row["kind"] in KINDS
            text, spans = row["text"], row["evidence"]
            assert text == " ".join(text.split()) and not set("[]|") & set(text) and spans and spans == sorted(spans)
            for (start, end), (following, _) in zip(spans, [*spans[1:], [len(text), None]]):
                assert 0 <= start < end <= following and text[start:end] == text[start:end].strip(), text


@pytest.mark.parametrize("name", CORPORA)
def test_labels_are_balanced_in_every_kind(name):
    for kind in KINDS:
        counts = Counter(row["label"] for row in EVERY[name] if row["kind"] == kind)
        assert abs(counts[0] - counts[1]) <= 0.05 * sum(counts.values()) + 2, (kind, counts)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", CORPORA)
def test_partners_stand_in_one_split_with_opposite_labels(name, split):
    rows = load_reviews(name)[split]
    for one, other in pairs(rows):
        first, second = rows[one], rows[other]
        assert {first["label"], second["label"]} == {0, 1} and first["kind"] == second["kind"]
        assert second["pair"] == first["id"] and first["pair"] == second["id"]


def test_no_sentence_stands_there_twice():
    texts = [" ".join(words(row["text"])) for rows in EVERY.values() for row in rows]
    assert not [text for text, times in Counter(texts).items() if times > 1]


def is_near(own, other):
    return abs(len(own) - len(other)) <= NEAR and len(set(own) ^ set(other)) <= 2 * NEAR and changes(own, other) <= NEAR


@pytest.mark.parametrize("name", [*KEPT_APART, "ordinary_third"])
def test_no_sentence_is_near_one_that_is_for_testing(name):
    assert RUN == 5
    texts = [row["text"] for row in read_lines(DATA / f"{name}.jsonl")]
    tested, known = [words(text) for text in texts], set().union(*map(runs, texts))
    for corpus in CORPORA:
        for row in EVERY[corpus]:
            own = words(row["text"])
            assert not runs(row["text"]) & known, row["text"]
            near = [other for other in tested if is_near(own, other)]
            assert not near, (row["text"], near)


def test_later_sentences_are_near_none_of_the_earlier_ones_that_are_kept_back():
    kept_back = [words(row["text"]) for split in ("validation", "test") for row in ROWS["written"][split]]
    for row in EVERY["written_more"]:
        near = [other for other in kept_back if is_near(words(row["text"]), other)]
        assert not near, (row["text"], near)
