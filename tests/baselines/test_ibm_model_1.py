"""IBM Model 1: equal to the hand-computed example of a textbook, to a version written with loops, and useful."""

import math
from collections import defaultdict

import pytest

from course_utils.baselines import IBMModel1
from course_utils.data.translations import load_translations

SOURCE = [["das", "Haus"], ["das", "Buch"], ["ein", "Buch"]]
TARGET = [["the", "house"], ["the", "book"], ["a", "book"]]
REPEATED = [["la", "la", "maison"], ["maison", "bleue"], ["la", "fleur"]], [["the", "house"], ["blue", "house", "house"],
                                                                        ["the", "flower"]]


@pytest.mark.parametrize("iterations, expected", [
    (1, {("the", "das"): 0.5, ("book", "das"): 0.25, ("house", "das"): 0.25, ("the", "Buch"): 0.25, ("book", "Buch"): 0.5,
         ("a", "Buch"): 0.25, ("book", "ein"): 0.5, ("a", "ein"): 0.5, ("the", "Haus"): 0.5, ("house", "Haus"): 0.5}),
    (2, {("the", "das"): 7 / 11, ("book", "das"): 2 / 11, ("house", "das"): 2 / 11, ("book", "Buch"): 7 / 11,
         ("a", "Buch"): 2 / 11, ("a", "ein"): 4 / 7, ("book", "ein"): 3 / 7, ("the", "Haus"): 3 / 7,
         ("house", "Haus"): 4 / 7}),
    (3, {("the", "das"): 0.7479, ("book", "das"): 0.1208, ("house", "das"): 0.1313, ("book", "ein"): 0.3466,
         ("a", "ein"): 0.6534}),
])
def test_the_textbook_example(iterations, expected):
    """Koehn (2010), Statistical Machine Translation, figure 4.4; the second iteration's fractions by hand."""
    model = IBMModel1(iterations, null=False).fit(SOURCE, TARGET)
    for (target, source), probability in expected.items():
        assert model.probability(target, source) == pytest.approx(probability, abs=6e-5), (target, source)


def by_loops(source, target, iterations, null):
    """Model 1 as the paper's equations read, one link at a time: {(target word, source word): probability}."""
    offered = [[None] * null + list(tokens) for tokens in source]
    t = defaultdict(lambda: 1 / len({word for tokens in target for word in tokens}))
    for _ in range(iterations):
        counts, totals = defaultdict(float), defaultdict(float)
        for words, asked in zip(offered, target):
            for f in asked:
                whole = sum(t[f, e] for e in words)
                for e in words:
                    counts[f, e] += t[f, e] / whole
                    totals[e] += t[f, e] / whole
        t = defaultdict(float, {(f, e): count / totals[e] for (f, e), count in counts.items()})
    return t


@pytest.mark.parametrize("null", [True, False])
@pytest.mark.parametrize("source, target", [(SOURCE, TARGET), REPEATED])
def test_equal_to_loops(source, target, null):
    model, expected = IBMModel1(7, null).fit(source, target), by_loops(source, target, 7, null)
    for (f, e), probability in expected.items():
        assert model.probability(f, e) == pytest.approx(probability, abs=1e-12)
    for e in {e for _, e in expected}:
        assert sum(model.probability(f, e) for f in {f for f, _ in expected}) == pytest.approx(1, abs=1e-12)


def test_the_likelihood_never_falls_and_is_the_one_of_the_model():
    model = IBMModel1(20).fit(*REPEATED)
    history = model.history
    assert len(history) == 21 and all(after >= before - 1e-12 for before, after in zip(history, history[1:]))
    assert model.history[-1] > model.history[0] + 0.1
    by_hand = [math.log(sum(model.probability(f, e) for e in [None, *source]) / (1 + len(source)))
               for source, target in zip(*REPEATED) for f in target]
    assert model.history[-1] == pytest.approx(sum(by_hand) / len(by_hand), abs=1e-12)


def test_alignment_links_and_words_never_seen():
    model = IBMModel1(10, null=False).fit(SOURCE, TARGET)
    assert model.align(["das", "Haus"], ["house", "the"]) == {(0, 1), (1, 0)}
    assert model.align(["das", "Huhn"], ["the", "hen"]) == {(0, 0)}
    assert model.align([], ["the"]) == model.align(["Huhn"], []) == set()
    assert model.probability("hen", "das") == model.probability("the", "Huhn") == model.probability("a", "das") == 0
    with_null = IBMModel1(10).fit([["x", "y"], ["y"], ["z"]], [["a", "b"], ["a"], ["a"]])
    assert with_null.align(["x", "y"], ["a", "b"]) == {(0, 1)}             # 'a' comes with everything: from no word


def test_on_the_corpus_most_links_are_right():
    rows = load_translations()["train"].select(range(3000))
    model = IBMModel1(5).fit(rows["source_tokens"], rows["target_tokens"])
    right = found = gold = 0
    for row in rows.select(range(300)):
        links, known = model.align(row["source_tokens"], row["target_tokens"]), {tuple(link) for link in row["alignment"]}
        right, found, gold = right + len(links & known), found + len(links), gold + len(known)
    assert 1 - 2 * right / (found + gold) < 0.35


@pytest.mark.parametrize("source, target, words", [
    ([], [], "at least one pair"), (SOURCE, TARGET[:2], "3 source and 2 target"),
    ([["a"], []], [["b"], ["c"]], "source sentence 1"), ([["a"]], [[]], "target sentence 0"),
    (["a b"], [["c"]], "split it into tokens"),
])
def test_what_nothing_can_be_learned_from_is_refused(source, target, words):
    with pytest.raises((ValueError, TypeError), match=words):
        IBMModel1().fit(source, target)


def test_an_untrained_model_says_so_and_options_are_checked():
    with pytest.raises(RuntimeError, match="call fit"):
        IBMModel1().align(["a"], ["b"])
    with pytest.raises(ValueError, match="iterations=0"):
        IBMModel1(iterations=0)
