"""The three sets of 300 ordinary sentences: complete, balanced, unlike each other and anything a model is trained on, and
without cheap clues.

`pytest tests/data/test_ordinary.py -s` prints what models that see only a part of each sentence make of them.
"""

import json
from collections import Counter
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from course_tools.studies.partial_inputs import VIEWS, is_negator, right_by_folds, words
from course_utils.data import by_kind, load_reviews, pairs
from course_utils.files.paths import DATA

pytestmark = pytest.mark.slow

NAMES = {"ordinary": "ordinary", "ordinary_second": "second", "ordinary_third": "third"}   # of the ids
KINDS = {"plain": 60, "negation": 50, "contrast": 50, "expectation": 40, "irony": 20, "others": 40, "comparison": 40}
PAIRS = {"plain": 10, "negation": 12, "contrast": 12, "expectation": 8, "irony": 2, "others": 8, "comparison": 8}
RUN = 5  # so many words in a row are shared with no text that a model is trained or tested on


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@cache
def sentences_of(name):
    return read_lines(DATA / f"{name}.jsonl")


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def sentences(name):
    return sentences_of(name)


def runs(text, length):
    """Every `length` words in a row."""
    found = words(text)
    return {tuple(found[start:start + length]) for start in range(len(found) - length + 1)}


def pairs_of(sentences):
    by_id = {sentence["id"]: sentence for sentence in sentences}
    return [(sentence, by_id[sentence["pair"]]) for sentence in sentences if sentence["label"] and sentence["pair"]]


def changed_words(first, second):
    """The least number of words to replace, insert or delete that makes one list of words the other."""
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(second, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return row[-1]


# ------------------------------------------------------------------------------------------ the file
def test_the_loader_gives_one_test_split_with_the_columns_of_the_handwritten_reviews(name, sentences):
    reviews = load_reviews(name)
    assert list(reviews) == ["test"] and reviews["test"].features == load_reviews("handwritten")["test"].features
    assert {kind: len(rows) for kind, rows in by_kind(reviews["test"]).items()} == KINDS
    assert len(pairs(reviews["test"])) == 60
    assert list(reviews["test"]["id"]) == [sentence["id"] for sentence in sentences]


def test_fields_ids_and_evidence(name, sentences):
    assert [sentence["id"] for sentence in sentences] == [f"{NAMES[name]}-{number:03d}" for number in range(300)]
    for sentence in sentences:
        assert list(sentence) == ["id", "text", "label", "kind", "evidence", "pair"]
        text, spans = sentence["text"], sentence["evidence"]
        assert text == " ".join(text.split()) and spans == sorted(spans)
        for (start, end), (following, _) in zip(spans, [*spans[1:], [len(text), None]]):
            assert 0 <= start < end <= following and text[start:end] == text[start:end].strip()


def test_counts_and_balance(sentences):
    counts = Counter((sentence["kind"], sentence["label"]) for sentence in sentences)
    assert counts == {(kind, label): number // 2 for kind, number in KINDS.items() for label in (0, 1)}


def test_sentences_are_short_and_their_words_varied(sentences):
    lengths = {label: [len(s["text"].split()) for s in sentences if s["label"] == label] for label in (0, 1)}
    assert all(4 <= length <= 30 for label in (0, 1) for length in lengths[label])
    assert abs(np.mean(lengths[0]) - np.mean(lengths[1])) < 0.5
    assert len({word for sentence in sentences for word in words(sentence["text"])}) >= 900


def test_partners_have_opposite_labels_and_differ_in_one_to_three_words(sentences):
    found = pairs_of(sentences)
    assert Counter(positive["kind"] for positive, _ in found) == PAIRS
    for positive, negative in found:
        assert negative["label"] == 0 and negative["pair"] == positive["id"] and positive["pair"] == negative["id"]
        assert positive["kind"] == negative["kind"]
        assert 1 <= changed_words(words(positive["text"]), words(negative["text"])) <= 3, positive["text"]


def test_no_sentence_is_written_twice(sentences):
    for first, second in combinations(sentences, 2):
        if first["pair"] != second["id"]:
            assert not runs(first["text"], RUN) & runs(second["text"], RUN), (first["text"], second["text"])
            assert changed_words(words(first["text"]), words(second["text"])) > 3, (first["text"], second["text"])


@pytest.mark.parametrize("one, later", list(combinations(NAMES, 2)))
def test_no_sentence_of_one_set_comes_again_in_another(one, later):
    first = sentences_of(one)
    known = set().union(*(runs(sentence["text"], RUN) for sentence in first))
    shared = {" ".join(run): s["id"] for s in sentences_of(later) for run in runs(s["text"], RUN) & known}
    assert not shared, f"both sets have {shared}; expected no {RUN} words in a row in common; write these sentences anew"
    near = {sentence["text"]: other["id"] for sentence in sentences_of(later) for other in first
            if changed_words(words(sentence["text"]), words(other["text"])) <= 3}
    assert not near, f"{near} differ in three words or fewer; write these sentences anew"


@pytest.mark.parametrize("other", ["handwritten", "reviews/train", "reviews/validation", "reviews/test"])
def test_no_run_of_five_words_is_shared_with_the_other_reviews(sentences, other):
    known = set().union(*(runs(review["text"], RUN) for review in read_lines(DATA / f"{other}.jsonl")))
    shared = {" ".join(run): sentence["id"] for sentence in sentences for run in runs(sentence["text"], RUN) & known}
    assert not shared, f"{other}: shares {shared}; expected no {RUN} words in a row in common; write these sentences anew"


# ------------------------------------------------------------------------------------------ cheap clues
def accuracies(sentences, view, seeds=3):
    """Accuracy by kind, and of all but plain, of TF-IDF with logistic regression on what `view` shows of each sentence.

    Ten-fold cross-validation that never separates the two halves of a pair; the mean of `seeds` ways to make the folds.
    """
    kinds = np.array([sentence["kind"] for sentence in sentences])
    groups = [min(sentence["id"], sentence["pair"] or sentence["id"]) for sentence in sentences]
    texts, labels = ([sentence[column] for sentence in sentences] for column in ("text", "label"))
    right = np.mean([right_by_folds(texts, labels, groups, view, seed) for seed in range(seeds)], axis=0)    # (sentences,)
    return {"all but plain": right[kinds != "plain"].mean()} | {kind: right[kinds == kind].mean() for kind in KINDS}


def limit(number):
    """What a guess stays under: chance and two and a half standard deviations of the accuracy on `number` sentences."""
    return 0.5 + 2.5 * 0.5 / number ** 0.5


@pytest.mark.parametrize("view", VIEWS)
def test_a_part_of_a_sentence_does_not_give_its_label_away(name, sentences, view):
    scores = accuracies(sentences, VIEWS[view])
    print(f"\n{name:16}{view:12}" + "".join(f"  {kind} {100 * score:.0f}" for kind, score in scores.items()))
    assert scores["all but plain"] <= 0.58
    for kind in KINDS.keys() - {"plain"}:
        assert scores[kind] <= limit(KINDS[kind]), (kind, scores[kind])


@pytest.mark.parametrize("view, clue", [
    ("all words", "Frankly, {}"), ("length", 6 * "so " + "{}"), ("first word", "Frankly, {}"), ("last word", "{} honestly"),
    ("punctuation", "{}!"), ("small words", "{} not")])
def test_a_clue_would_be_found(sentences, view, clue):
    planted = [sentence | {"text": clue.format(sentence["text"])} if sentence["label"] and number % 3 else sentence
               for number, sentence in enumerate(sentences)]
    assert accuracies(planted, VIEWS[view], seeds=1)["all but plain"] > 0.65


def test_negators_stand_with_both_labels_of_each_kind(sentences):
    for kind, number in KINDS.items():
        counts = Counter(sentence["label"] for sentence in sentences
                         if sentence["kind"] == kind and any(map(is_negator, words(sentence["text"]))))
        assert abs(counts[0] - counts[1]) <= number / 10, (kind, counts)


def test_words_learned_from_other_reviews_decide_plain_sentences_better_than_the_others(name, sentences):
    """Here the words are known: a bag of words, trained on the course corpus and the hand-written reviews."""
    known = read_lines(DATA / "reviews" / "train.jsonl") + read_lines(DATA / "handwritten.jsonl")
    model = make_pipeline(TfidfVectorizer(analyzer=words, sublinear_tf=True), LogisticRegression(max_iter=1000))
    model.fit([review["text"] for review in known], [review["label"] for review in known])
    right = model.predict([s["text"] for s in sentences]) == [s["label"] for s in sentences]
    scores = {kind: right[[s["kind"] == kind for s in sentences]].mean() for kind in KINDS}
    others = right[[s["kind"] != "plain" for s in sentences]].mean()
    print(f"\n{name:16}words from the other reviews: all but plain {100 * others:.0f}"
          + "".join(f"  {kind} {100 * score:.0f}" for kind, score in scores.items()))
    assert others <= 0.6 and scores["plain"] >= 0.6
