"""Names that were drawn, the ranks that a method gives them, and what is made of the ranks."""

import pytest

from course_tools.studies.code_names import (
    Drawn,
    combined,
    draw_names,
    names_in,
    rank_difference,
    ranks_of,
    summarised,
)
from course_tools.studies.file_words import words_in_file

ONE = '''import shutil  # remove_tree\x0c
\x0c
def remove(folder, keep=None):
    """Remove folder."""
    while folder and "é":
        shutil.rmtree(folder, onerror=keep)
'''
TEXTS = {"one.py": ONE, "two.py": "total = 0\nfor value in values:\n    total += value\n"}


def test_names_are_those_of_the_code_where_they_stand():
    found = names_in(ONE)
    assert [name for _, name in found] == ["shutil", "remove", "folder", "keep", "folder", "shutil", "rmtree", "folder",
                                           "onerror", "keep"]              # no keywords, comments, strings, short names
    assert all(ONE[start:].startswith(name) for start, name in found)
    assert len({start for start, _ in found}) == 10


def test_the_draw_is_the_same_each_time_and_knows_what_was_seen():
    every = draw_names(TEXTS, number=100)
    assert [(place.module, place.start, place.name) for place in every] == [
        (path, *found) for path, text in TEXTS.items() for found in names_in(text)]
    seen = [place.seen for place in every]
    assert seen[:10] == [False, False, False, False, True, True, False, True, False, True]  # remove_tree isn't remove
    assert seen[10:] == [False, False, False, True, True]                  # values isn't value, nor value values
    some = draw_names(TEXTS, number=6)
    assert some == draw_names(TEXTS, number=6) == sorted(some) and len(set(some)) == 6 and set(some) < set(every)
    assert some != draw_names(TEXTS, number=6, seed=1)


def test_a_method_is_shown_what_comes_before_and_what_was_typed_and_nothing_else():
    places = draw_names(TEXTS, number=100)
    shown = []
    for typed in (1, 2):
        shown.clear()
        ranks = ranks_of(lambda text: shown.append(text) or [], TEXTS, places, typed)
        assert ranks == [0] * 15
        assert shown == [TEXTS[place.module][: place.start] + place.name[:typed] for place in places]


def test_ranks_by_hand():
    place = Drawn("two.py", 0, "total", False)
    for listed, rank in ((["total"], 1), (["a", "a", "total"], 2), (list("abcd") + ["total"], 5),
                         (list("abcde") + ["total"], 0), ([], 0), (["tota"], 0)):
        assert ranks_of(lambda text: listed, TEXTS, [place], 1) == [rank]  # noqa: B023


def test_the_words_of_the_file_find_what_was_seen_and_only_built_in_names_beside():
    places = draw_names(TEXTS, number=100)
    ranks = ranks_of(lambda text: words_in_file(text), TEXTS, places, 2)
    assert all((rank > 0) == place.seen for rank, place in zip(ranks, places))


def test_summary_by_hand():
    places = [Drawn(module, i, "name", seen) for i, (module, seen) in enumerate(
        [("a", True), ("a", True), ("a", False), ("b", True)])]
    result = summarised([1, 3, 0, 0], places)
    assert result["ranks"] == "1300"
    assert result["all"] == {"names": 4, "top 1": [0.25, 0.0, 0.3333], "top 5": [0.5, 0.0, 0.6667]}  # only b, or only a
    assert result["seen"] == {"names": 3, "top 1": [0.3333, 0.0, 0.5], "top 5": [0.6667, 0.0, 1.0]}
    assert result["new"] == {"names": 1, "top 1": [0.0, 0.0, 0.0], "top 5": [0.0, 0.0, 0.0]}
    assert summarised([1], places[:1])["new"] == {"names": 0, "top 1": [], "top 5": []}


def test_a_difference_is_paired():
    places = [Drawn(str(i // 5), i, "name", True) for i in range(100)]
    harder = [i // 5 % 2 for i in range(100)]                              # every other module is hard for both
    one, other = [1 - hard for hard in harder], [2 * (1 - hard) for hard in harder]
    assert rank_difference(one, one, places) == [0, 0, 0]
    assert rank_difference(one, other, places, top=5) == [0, 0, 0]
    value, low, high = rank_difference(one, other, places)
    assert value == 0.5 and 0.2 < low < 0.4 and 0.6 < high < 0.8
    assert rank_difference(other, one, places)[0] == -0.5
    with pytest.raises(ValueError):
        rank_difference(one, other[:-1], places)


def test_two_methods_combined_prefer_what_both_list():
    both = combined(lambda text: ["alpha", "beta", text], lambda text: ["gamma", "beta", "beta", "delta"])
    assert both("x") == ["beta", "alpha", "gamma", "x", "delta"]
    assert combined(lambda text: [], lambda text: ["a", "b"])("x") == ["a", "b"]
