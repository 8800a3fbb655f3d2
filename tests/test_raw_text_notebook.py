"""Notebook 01: each of its sections runs by itself after the set-up, and the numbers that its sentences quote are so."""

import math
import re
from collections import Counter
from functools import partial

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from course_utils.baselines import naive_bayes
from course_utils.data import by_kind, load_reviews, pairs
from course_utils.exercises.catalogue import answers_to
from course_utils.files.paths import NOTEBOOKS

SECTIONS = range(1, 8)


@pytest.fixture(scope="module")
def code() -> dict[int, str]:
    """The code of each section as one text; the set-up is section 0."""
    found, section = {number: [] for number in (0, *SECTIONS)}, 0
    for cell in nbformat.read(NOTEBOOKS / "01_raw_text.ipynb", as_version=4).cells:
        heading = re.match(r"## (?:(\d+)\. )?", cell.source)
        section = int(heading[1] or -1) if cell.cell_type == "markdown" and heading else section
        if cell.cell_type == "code" and section >= 0:
            found[section].append(cell.source)
    return {number: "\n\n".join(sources) for number, sources in found.items()}


@pytest.fixture
def run(code, tmp_path, monkeypatch):
    """Runs the set-up and some sections, and returns their names; a claim that isn't so is an error."""
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    monkeypatch.setenv("COURSE_TESTING", "1")
    monkeypatch.setattr(plt, "show", plt.close)

    def run_sections(*numbers: int) -> dict:
        names = {"__name__": "__main__"}
        for number in (0, *numbers):
            exec(compile(code[number], f"section {number}", "exec"), names)
        return names

    return run_sections


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_needs_no_other(section, run):
    run(section)


def test_the_twelve_are_three_of_each_kind_with_two_pairs_of_twins(run):
    twelve, validation = run()["twelve"], load_reviews("reviews")["validation"]
    rows = [validation[i] for i in twelve]
    assert Counter(row["kind"] for row in rows) == dict.fromkeys(("plain", "negation", "order", "distant"), 3)
    numbers = [{twelve.index(i) + 1 for i in pair} for pair in pairs(validation) if set(pair) <= set(twelve)]
    assert sorted(map(sorted, numbers)) == [[2, 6], [3, 7]]
    assert len({row["frame"] for row in rows}) == 10


def test_the_four_whose_kind_is_asked_for_are_one_of_each_and_new(code, run):
    names, validation = run(), load_reviews("reviews")["validation"]
    four = [int(number) for number in re.findall(r"\d+", re.search(r"in zip\(\((.+?)\), my_kinds\)", code[2])[1])]
    assert sorted(validation[i]["kind"] for i in four) == ["distant", "negation", "order", "plain"]
    assert not set(four) & set(names["twelve"])


def test_the_counter_is_scikit_learns_word_by_word(run):
    names = run(5)
    log_p = names["counter"][1].feature_log_prob_
    theirs = dict(zip(names["counter"][0].get_feature_names_out(), log_p[1] - log_p[0]))
    assert theirs.keys() == names["log_ratio"].keys()
    assert max(abs(theirs[word] - value) for word, value in names["log_ratio"].items()) < 1e-12


def test_what_section_6_says_of_the_hand_written_reviews(run):
    names = run(6)
    truth, z = names["truth"], names["log_odds"](names["counter"], names["plain"]["text"])
    found = {limit: (int(((z > limit) & (truth == 1)).sum()), int((z > limit).sum())) for limit in (-1, 0, 1)}
    assert found == {-1: (42, 80), 0: (27, 41), 1: (6, 6)} and truth.sum() == 44
    assert min(abs(z - limit).min() for limit in (-1, 0, 1)) > 1e-4          # no review changes sides on another processor
    seen = {word for text in names["train"]["text"] for word in names["words"](text)}
    decide = [word for review in names["plain"] for start, end in review["evidence"]
              for word in names["words"](review["text"][start:end])]
    assert np.mean([word not in seen for word in decide]) > 0.5


def test_what_section_5_says_of_standing_and_reversed_opinions(run):
    names = run(5)
    for split in ("test", "validation"):
        rows = names["reviews"][split]
        parts = [names["part"](review) for review in rows]
        right = (names["log_odds"](names["counter"], rows["text"]) > 0) == (np.array(rows["label"]) == 1)
        for kind, these in by_kind(rows).items():
            found = {each: [right[i] for i in these if parts[i] == each] for each in ("stands", "reversed", "twins")}
            assert sum(map(len, found.values())) == len(these)          # each opinion is in some plain review
            if kind in ("negation", "distant"):
                means = {each: np.mean(marks) for each, marks in found.items()}
                assert means["stands"] > 0.92 and means["reversed"] < 0.08 and means["twins"] == 0.5


def test_what_section_4_says_of_three_positive_reviews_for_each_negative_one():
    texts, labels = ["moving", "slow but moving", "dull", "slow not moving"], [1, 1, 0, 0]
    log_odds = answers_to("1.3").reference(texts, labels, "slow not moving") + math.log(3)
    assert abs(log_odds - math.log(9 / 4)) < 1e-9 and round(log_odds, 3) == 0.811
    assert round(1 / (1 + math.exp(-log_odds)), 2) == round(9 / 13, 2) == 0.69


def test_what_section_7_says_of_the_twelve_and_of_the_two_remedies(run):
    names = run(7)
    words, train, test = names["words"], names["train"], names["test"]
    assert ((names["z"] > 0) == names["key"]).sum() == 7
    assert names["log_ratio"]["amusing"] > -names["log_ratio"]["ineffective"] > 0
    bags = [sorted(names["with_not"](text).split()) for text in ("not dull but moving", "not moving but dull")]
    assert bags[0] == bags[1]

    def with_not(text, negations):
        found, after = [], False
        for word in words(text):
            after = after and re.match(r"\w", word) is not None
            found.append(f"NOT_{word}" if after else word)
            after = after or word in negations or word.endswith("n't")
        return " ".join(found)

    two = partial(with_not, negations={"not", "never"})
    assert [two(text) for text in test["text"]] == [names["with_not"](text) for text in test["text"]]

    def fitted(change, longest=1, split=test):
        counter = naive_bayes().set_params(countvectorizer__ngram_range=(1, longest))
        counter.fit([change(text) for text in train["text"]], train["label"])
        z = names["log_odds"](counter, [change(text) for text in split["text"]])
        assert abs(z).min() > 1e-4                                      # no review changes sides on another processor
        return (z > 0) == (np.array(split["label"]) == 1)

    marks = names["marks"]
    for name, how in {"words": (str,), "NOT_": (two,), "pairs": (str, 2)}.items():
        assert (marks[name] == fitted(*how)).all()
    negation = marks[marks["kind"] == "negation"]
    assert ((negation["NOT_"] & ~negation["words"]).sum(), (negation["words"] & ~negation["NOT_"]).sum()) == (110, 58)
    parts = negation.groupby("part")[["words", "NOT_"]].mean().round(2).to_dict("index")
    assert parts["reversed"] == {"words": 0.03, "NOT_": 0.38} and parts["stands"] == {"words": 0.93, "NOT_": 0.7}
    unseen = np.array(test["unseen_frame"])[negation.index]
    known, new = negation[~unseen], negation[unseen]
    assert ((known["NOT_"] & ~known["words"]).sum(), (known["words"] & ~known["NOT_"]).sum()) == (59, 52)
    frames = np.array([test[i]["frame"] for i in new.index])
    gains = (new["NOT_"].astype(int) - new["words"].astype(int)).groupby(frames).sum()
    assert sorted(gains) == [0, 0, 0, 0, 7, 11, 13, 14]
    for i, frame in zip(new.index, frames):
        assert bool({"not", "never"} & set(words(test[i]["text"]))) == (gains[frame] > 0), test[i]["text"]
    validation = names["validation"]
    rows = by_kind(validation)["negation"]
    assert not any(validation["unseen_frame"])
    scores = [round(float(fitted(*how, split=validation)[rows].mean()), 3) for how in ((str, 1), (two, 1), (str, 2))]
    assert scores == [0.496, 0.524, 0.68]


def test_what_sections_2_and_3_say_of_splits_and_stop_words():
    for split in load_reviews("reviews").values():
        for rows in by_kind(split).values():
            assert 2 * sum(split[i]["label"] for i in rows) == len(rows)
    assert len(ENGLISH_STOP_WORDS) == 318 and {"not", "but"} <= ENGLISH_STOP_WORDS
