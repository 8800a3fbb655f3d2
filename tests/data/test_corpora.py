"""The course's texts: those that were read and checked, and one law for all of them, for whoever changes one.

Reviews: spans lie in their text, partners stand in one split with opposite labels, labels are balanced, nothing comes twice,
what is for testing is near nothing that a model is trained on, and no cheap clue gives a label away.
`pytest tests/data/test_corpora.py -m "" -s` prints what models that see only a part of each text make of them.
"""

import json
from collections import Counter
from functools import cache, partial
from hashlib import sha256
from itertools import combinations

import build as reviews_builder
import numpy as np
import probes
import pytest
import sentence_corpus
from french import corpus as french_corpus
from sentence_corpus import changes, runs, words

from course_tools.studies.partial_inputs import VIEWS, right_by_folds, right_on_test
from course_utils.data import load_reviews, pairs
from course_utils.files.paths import DATA

pytestmark = pytest.mark.slow

BUILDERS = {"reviews": reviews_builder, "sentences": sentence_corpus, "translation": french_corpus}
# Written by hand: whoever changes a text reads it over, sees the tests below pass, and writes its new checksum here.
BY_HAND = {
    "handwritten.jsonl": "d95244fb4ede7059",
    "handwritten_translation.jsonl": "d581968bbf5e38df",
    "ordinary.jsonl": "a8d9f1b56aca444b",
    "ordinary_second.jsonl": "a90080285401cecc",
    "ordinary_third.jsonl": "7cdf72b088955aba",
    "written": "bedf9b35b71e24e3",
    "written_more": "4a2d72680601b227",
    "meanings": "a879207c082a8c02",
}
TESTS = ("ordinary", "ordinary_second", "ordinary_third")
SIZES = {"reviews": (8000, 1000, 2000), "sentences": (12000, 1000, 1500), "written": (1682, 210, 204),
         "written_more": (6098, 730, 747), "handwritten": (336,)} | dict.fromkeys(TESTS, (300,))
NEAR = 3                                                # words to change


@cache
def rows_of(name: str) -> dict[str, list[dict]]:
    paths = {split: DATA / name / f"{split}.jsonl" for split in ("train", "validation", "test")}
    if not (DATA / name).is_dir():
        paths = {"test": DATA / f"{name}.jsonl"}
    return {split: [json.loads(line) for line in path.read_text("utf-8").splitlines()] for split, path in paths.items()}


@cache
def all_rows(name: str) -> list[dict]:
    return [row for rows in rows_of(name).values() for row in rows]


@pytest.mark.parametrize("name", BUILDERS)
def test_a_builder_writes_the_committed_files(name):
    for file, content in BUILDERS[name].files(BUILDERS[name].build()).items():
        assert (DATA / name / file).read_bytes() == content.encode("utf-8"), f"{file}: run python data/{name}/build.py"


@pytest.mark.parametrize("name", BY_HAND)
def test_what_was_written_by_hand_is_as_it_was_checked(name):
    files = sorted((DATA / name).iterdir()) if (DATA / name).is_dir() else [DATA / name]
    assert sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16] == BY_HAND[name]


@pytest.mark.parametrize("name", SIZES)
def test_rows_spans_partners_and_balance(name):
    loaded = load_reviews(name)
    assert list(loaded) == list(rows_of(name)) and tuple(len(split) for split in loaded.values()) == SIZES[name]
    for split, rows in rows_of(name).items():
        assert loaded[split]["id"][:] == [row["id"] for row in rows] and len({row["id"] for row in rows}) == len(rows)
        assert loaded[split].features == loaded["test"].features
        for row in rows:
            text, spans = row["text"], row["evidence"]
            assert text == " ".join(text.split()) and not set("{}[]|") & set(text) and spans
            for (start, end), (following, _) in zip(spans, [*spans[1:], [len(text), None]]):
                assert 0 <= start < end <= following and text[start:end] == text[start:end].strip(), text
        found = pairs(loaded[split])
        assert 2 * len(found) == sum(row["pair"] is not None for row in rows) > 0
        for one, other in found:
            assert rows[other]["pair"] == rows[one]["id"] and rows[one]["label"] + rows[other]["label"] == 1
            assert rows[one]["kind"] == rows[other]["kind"]
    for kind in {row["kind"] for row in all_rows(name)}:
        counts = Counter(row["label"] for row in all_rows(name) if row["kind"] == kind)
        assert abs(counts[0] - counts[1]) <= 0.05 * counts.total() + 2, (kind, counts)


def test_no_text_stands_there_twice():
    for names in (("reviews",), ("sentences",), ("written", "written_more")):
        counts = Counter(row["text"].lower() for name in names for row in all_rows(name))
        assert not [text for text, times in counts.items() if times > 1]


def near(own: list[str], others: list[list[str]]) -> list[list[str]]:
    """Those texts that three changed words, or fewer, make of `own`."""
    return [other for other in others if abs(len(own) - len(other)) <= NEAR
            and len(set(own) ^ set(other)) <= 2 * NEAR and changes(own, other) <= NEAR]


@pytest.mark.parametrize("test", [*TESTS, "handwritten"])
def test_what_is_for_testing_is_near_nothing_to_train_on(test):
    """No five words in a row are shared; nor is a sentence that was written within three words of one."""
    known, tested = set().union(*(runs(row["text"]) for row in all_rows(test))), [words(r["text"]) for r in all_rows(test)]
    generated = ["reviews"] if test != "handwritten" else []
    for name in [*generated, "written", "written_more"] + ["sentences"] * (test != "ordinary_third"):
        shared = [row["id"] for row in all_rows(name) if runs(row["text"]) & known]
        assert not shared, f"{name}: {shared} share five words in a row with {test}"
    for row in all_rows("written") + all_rows("written_more"):
        assert not near(words(row["text"]), tested), row["text"]


def test_the_sets_of_ordinary_sentences_are_apart_and_later_ones_near_none_that_are_kept_back():
    for one, later in combinations(TESTS, 2):
        known, tested = set().union(*(runs(row["text"]) for row in all_rows(one))), [words(r["text"]) for r in all_rows(one)]
        for row in all_rows(later):
            assert not runs(row["text"]) & known and not near(words(row["text"]), tested), row["text"]
    kept_back = [words(row["text"]) for split in ("validation", "test") for row in rows_of("written")[split]]
    assert not [row["text"] for row in all_rows("written_more") if near(words(row["text"]), kept_back)]


def test_what_is_called_unseen_is_not_in_training():
    for name, column in (("reviews", "frame"), ("sentences", "construction")):
        splits = rows_of(name)
        trained = {part for row in splits["train"] for part in row[column].split("+" if name == "reviews" else "\0")}
        for row in splits["test"]:
            unseen = not set(row[column].split("+" if name == "reviews" else "\0")) <= trained
            assert unseen == (row["unseen_frame"] if name == "reviews" else "construction" in row["unseen"]), row
        assert 0.2 < np.mean([bool(row.get("unseen_frame", row.get("unseen"))) for row in splits["test"]]) < 0.8


# ------------------------------------------------------------------------------------------ cheap clues
def right_answers(name: str, view, change=lambda row, number: row) -> dict[str, float]:
    """Accuracy of all but plain, and of its kinds, of TF-IDF with logistic regression on what `view` shows of a text."""
    if len(rows_of(name)) > 1:
        train, test = ([change(row, number) for number, row in enumerate(rows_of(name)[split]) if row["kind"] != "plain"]
                       for split in ("train", "test"))
        columns = ([row[key] for row in rows] for rows in (train, test) for key in ("text", "label"))
        right = right_on_test(*columns, view)
    else:                                               # ten folds that never part a pair
        test = [change(row, number) for number, row in enumerate(all_rows(name))]
        groups = [min(row["id"], row["pair"] or row["id"]) for row in test]
        right = right_by_folds([row["text"] for row in test], [row["label"] for row in test], groups, view)
    kinds = np.array([row["kind"] for row in test])
    return {"all but plain": right[kinds != "plain"].mean()} | {
        kind: right[kinds == kind].mean() for kind in sorted(set(kinds) - {"plain"})}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", [*TESTS, "sentences"])
def test_a_part_of_a_sentence_does_not_give_its_label_away(name, view):
    scores = right_answers(name, VIEWS[view])
    print(f"\n{name:16}{view:12}" + "".join(f"  {kind} {100 * score:.0f}" for kind, score in scores.items()))
    assert scores["all but plain"] <= (0.62 if view == "all words" else 0.58)
    for kind, number in Counter(row["kind"] for row in rows_of(name)["test"]).items():
        assert scores.get(kind, 0) <= max(0.68, 0.5 + 2.5 * 0.5 / number**0.5), (kind, scores)


@pytest.mark.parametrize("view, clue", [
    ("all words", "Frankly, {}"), ("length", 6 * "so " + "{}"), ("first word", "Frankly, {}"), ("last word", "{} honestly"),
    ("punctuation", "{}!"), ("small words", "{} not")])
def test_a_clue_would_be_found(view, clue):
    def planted(row, number):
        return row | {"text": clue.format(row["text"])} if row["label"] and number % 3 else row

    assert right_answers("ordinary", VIEWS[view], planted)["all but plain"] > 0.65


def test_nothing_but_what_decides_gives_a_made_reviews_label_away():
    """And the probes would find a planted clue: were they blind, their silence would mean nothing."""
    scores = {(name, kind): score for name, kind, score in probes.table(*(rows_of("reviews")[s] for s in ("train", "test")))}
    for (name, kind), score in scores.items():
        if name in probes.probes() or name.endswith(" sentence"):
            assert score <= 0.60, (name, kind)
        elif "1-3-grams" in name and kind in ("order", "distant"):
            assert score <= 0.65, (name, kind)
        elif name == "lexicon" and kind != "plain":
            assert 0.4 <= score <= 0.6, kind
    assert scores["lexicon", "plain"] >= 0.95 and scores["naive Bayes, this kind", "plain"] >= 0.95

    def planted(review: dict) -> dict:
        extra = "It rained! " if review["label"] else "It was dry. "
        shifted = [[start + len(extra), end + len(extra)] for start, end in review["evidence"]]
        return review | {"text": extra + review["text"], "evidence": shifted}

    parts = [[planted(row) for row in probes.of_kind(rows_of("reviews")[split], "order")] for split in ("train", "test")]
    for probe in (*(probes.probes()[name] for name in ("punctuation", "text without evidence")),
                  partial(probes.text_probe, probes.first_sentence)):
        assert probe(*parts) > 0.95
