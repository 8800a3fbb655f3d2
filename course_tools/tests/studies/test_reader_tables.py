"""The page's tables of readers say what the files hold, row by row, and leave empty what wasn't scored."""

import copy
import re

import pytest

from course_tools.studies.reader_tables import (
    by_kind_table,
    hard_words,
    more_table,
    more_words,
    partial_inputs_table,
    reader_parts,
    reader_words,
    readers_table,
)
from course_utils.data import load_reviews
from course_utils.distillation import CautiousClassifier
from course_utils.results import by_model, read_runs, summarise


@pytest.fixture(scope="module")
def files():
    return read_runs("which_data"), read_runs("student")


def cells(table):
    """The rows of a table, its two first lines left out: the first cell to the others."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


def test_the_section_is_there_once_both_sets_have_runs(files):
    heading, words, *_ = reader_parts(*files)
    assert heading.startswith("## ") and words == reader_words(*files)
    assert reader_parts([], files[1]) == reader_parts(files[0], []) == []


def test_every_row_has_its_mean_on_every_corpus(files):
    found = cells(readers_table(*files))
    models = {name: runs for file in files for name, runs in by_model(file).items()}
    assert list(found) == list(models)
    for name, runs in models.items():
        seeds, *accuracies, parameters = found[name]
        assert int(seeds) == len(runs) and parameters == f"{runs[0]['parameters']:,}"
        for corpus, cell in zip(("imdb", "reviews", "sentences", "handwritten", "ordinary", "ordinary_second"), accuracies):
            if all(corpus in run for run in runs):
                mean = sum(run[corpus]["accuracy"] for run in runs) / len(runs)
                assert cell.startswith(f"{100 * mean:.1f} ± "), (name, corpus)
            else:
                assert cell == "", (name, corpus)


def test_the_kinds_have_a_line_for_each_corpus_that_was_scored(files):
    found = cells(by_kind_table(["ordinary", "ordinary_second"], *files))
    (teacher,) = by_model(files[1])["teacher"]
    for row, corpus in (("teacher", "ordinary"), ("teacher: second ordinary sentences", "ordinary_second")):
        assert [cell.split(" ")[0] for cell in found[row]] == [
            f"{100 * value:.1f}" for value in teacher[corpus]["by_kind"].values()]
    assert {name for name in found if ": second" in name} == {f"{name}: second ordinary sentences" for name in (
        "teacher", "student", "student, rotary positions")}
    heads = by_kind_table(["handwritten"], *files).splitlines()[0]
    assert re.findall(r"\((\d+)\)", heads) == [str(number) for number in teacher["handwritten"]["reviews_by_kind"].values()]


def test_corpora_of_other_sizes_do_not_share_a_head(files):
    with pytest.raises(ValueError, match="make a table for each corpus"):
        by_kind_table(["ordinary", "handwritten"], *files)
    others = copy.deepcopy(files[1])
    others[0]["ordinary_second"]["reviews_by_kind"]["irony"] += 1
    with pytest.raises(ValueError, match="other numbers of texts by kind in ordinary, ordinary_second"):
        by_kind_table(["ordinary", "ordinary_second"], files[0], others)


def test_the_words_name_the_numbers_of_the_files(files):
    assert "for 500 steps" in reader_words(*files) and "(11,000)" in reader_words(*files)
    assert "the first 300 and, where there's a second line, the second 300" in hard_words(files[1])
    unequal = copy.deepcopy(files[1])
    unequal[-1]["steps"] += 1                             # rows that can't be compared are not said to be equal
    with pytest.raises(ValueError):
        reader_words(files[0], unequal)


def test_parts_of_the_texts_come_last_with_their_means(files):
    runs = read_runs("partial_inputs")
    *_, words, table = reader_parts(*files, runs)
    assert table == partial_inputs_table(runs) and words.startswith("What would a part")
    assert [*reader_parts(*files), words, table] == reader_parts(*files, runs)
    found = cells(table)
    for view, same in by_model(runs).items():
        seeds, *accuracies = found[view]
        assert int(seeds) == len(same) == 3
        for corpus, cell in zip(("imdb", "reviews", "sentences", "handwritten", "ordinary", "ordinary_second"), accuracies):
            assert cell.startswith(f"{100 * sum(run[corpus]['accuracy'] for run in same) / 3:.1f} ± "), (view, corpus)


def test_what_the_page_says_of_parts_holds():
    """Nothing is above chance by more than the interval on what was written for the course; IMDb tells nearly everywhere."""
    for view, same in by_model(read_runs("partial_inputs")).items():
        for corpus in ("reviews", "handwritten", "ordinary", "ordinary_second"):
            mean, half = summarise(same, corpus, "accuracy")
            assert mean - half < 0.5 + 0.005, (view, corpus, mean, half)
        assert summarise(same, "sentences", "accuracy")[0] < (0.55 if view == "all words" else 0.52)
        if view != "length":
            mean, half = summarise(same, "imdb", "accuracy")
            assert mean - half > 0.5, (view, mean, half)


def test_what_went_on_learning_stands_beside_the_readers_of_its_seeds():
    halves, more = read_runs("reader"), read_runs("reader_more")
    found, seeds = cells(more_table(halves, more)), {run["seed"] for run in more}
    assert list(found) == ["reader", "more sentences", "older sentences again"]
    assert {row[0] for row in found.values()} == {str(len(seeds))}
    before = [run for run in halves if run["model"] == "reader" and run["seed"] in seeds]
    mean = sum(run["ordinary"]["accuracy"] for run in before) / len(seeds)
    assert found["reader"][5].startswith(f"{100 * mean:.1f} ± ") and found["reader"][7] == ""
    for name, same in by_model(more).items():
        mean = sum(run["ordinary_third"]["accuracy"] for run in same) / len(same)
        assert found[name][7].startswith(f"{100 * mean:.1f} ± ")
    parts = reader_parts(read_runs("which_data"), read_runs("student"), halves=halves, more=more)
    assert more_table(halves, more) in parts and "6,098 different" in more_words(more).replace("\n", " ")
    best = CautiousClassifier.load("reader").classifier.predict(list(load_reviews("ordinary_third")["test"]["text"]))[0]
    labels = load_reviews("ordinary_third")["test"]["label"]
    third = sum((label == "positive") == bool(truth) for label, truth in zip(best, labels, strict=True)) / 3
    assert f"and {third:.0f} % of the three sets" in more_words(more).replace("\n", " ")      # the committed weights'
