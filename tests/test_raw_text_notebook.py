"""Notebook 01: each of its sections runs by itself after the set-up, and the numbers that its sentences quote are so."""

import re
from collections import Counter

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from course_utils.data import by_kind, load_reviews, pairs
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


def test_the_counter_is_scikit_learns_word_by_word(run):
    names = run(5)
    log_p = names["counter"][1].feature_log_prob_
    theirs = dict(zip(names["counter"][0].get_feature_names_out(), log_p[1] - log_p[0]))
    assert theirs.keys() == names["ratio"].keys()
    assert max(abs(theirs[word] - value) for word, value in names["ratio"].items()) < 1e-12


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


def test_what_sections_2_and_3_say_of_splits_and_stop_words():
    for split in load_reviews("reviews").values():
        for rows in by_kind(split).values():
            assert 2 * sum(split[i]["label"] for i in rows) == len(rows)
    assert len(ENGLISH_STOP_WORDS) == 318 and {"not", "but"} <= ENGLISH_STOP_WORDS
