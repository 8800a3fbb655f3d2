"""The sentences written to train on: whole, balanced, in pairs, and far from everything that is for testing alone."""

import json
from collections import Counter

import pytest

from course_utils.data import load_reviews, pairs
from course_utils.data.sentence_corpus import KEPT_APART, RUN, changes, runs, words
from course_utils.files.paths import DATA

SPLITS = ("train", "validation", "test")
KINDS = {"plain", "negation", "contrast", "expectation", "irony", "others", "comparison"}
NEAR = 3                                                # words to change


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


ROWS = {split: read_lines(DATA / "written" / f"{split}.jsonl") for split in SPLITS}
EVERY = [row for split in SPLITS for row in ROWS[split]]


def test_the_loader_gives_three_splits():
    found = load_reviews("written")
    assert list(found) == list(SPLITS) and found["test"].features == load_reviews("ordinary")["test"].features
    assert [found[split].num_rows for split in SPLITS] == [len(ROWS[split]) for split in SPLITS]


def test_fields_ids_and_evidence():
    for split, rows in ROWS.items():
        assert [row["id"] for row in rows] == [f"{split}-{number:05d}" for number in range(len(rows))]
        for row in rows:
            assert list(row) == ["id", "text", "label", "kind", "evidence", "pair"] and row["kind"] in KINDS
            text, spans = row["text"], row["evidence"]
            assert text == " ".join(text.split()) and not set("[]|") & set(text) and spans and spans == sorted(spans)
            for (start, end), (following, _) in zip(spans, [*spans[1:], [len(text), None]]):
                assert 0 <= start < end <= following and text[start:end] == text[start:end].strip(), text


def test_labels_are_balanced_in_every_kind():
    for kind in KINDS:
        counts = Counter(row["label"] for row in EVERY if row["kind"] == kind)
        assert abs(counts[0] - counts[1]) <= 0.05 * sum(counts.values()) + 2, (kind, counts)


@pytest.mark.parametrize("split", SPLITS)
def test_partners_stand_in_one_split_with_opposite_labels(split):
    rows = load_reviews("written")[split]
    for one, other in pairs(rows):
        first, second = rows[one], rows[other]
        assert {first["label"], second["label"]} == {0, 1} and first["kind"] == second["kind"]
        assert second["pair"] == first["id"] and first["pair"] == second["id"]


def test_no_sentence_stands_there_twice():
    twice = [text for text, times in Counter(" ".join(words(row["text"])) for row in EVERY).items() if times > 1]
    assert not twice


@pytest.mark.parametrize("name", KEPT_APART)
def test_no_sentence_is_near_one_that_is_for_testing(name):
    assert RUN == 5
    texts = [row["text"] for row in read_lines(DATA / f"{name}.jsonl")]
    tested, known = [words(text) for text in texts], set().union(*map(runs, texts))
    for row in EVERY:
        own = words(row["text"])
        assert not runs(row["text"]) & known, row["text"]
        near = [other for other in tested if abs(len(own) - len(other)) <= NEAR
                and len(set(own) ^ set(other)) <= 2 * NEAR and changes(own, other) <= NEAR]
        assert not near, (row["text"], near)
