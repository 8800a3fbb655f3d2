"""What an editor suggests without a model."""

import keyword

import pytest

from course_tools.studies.file_words import BUILTINS, ORDERS, words_in_file

FILE = "format_all = first(1)\nforget = first  # forty\nfor name in format_all: fo"


def test_the_nearest_come_first_and_each_once():
    assert words_in_file(FILE, "fo") == ["format_all", "for", "forty", "forget", "format"]


def test_the_most_frequent_come_first_and_of_equal_ones_the_nearest():
    assert words_in_file("fab fib fib fob fab fub f", "f", "most frequent")[:4] == ["fab", "fib", "fub", "fob"]


@pytest.mark.parametrize("order", ORDERS)
def test_pythons_own_words_follow_and_the_prefix_is_no_suggestion(order):
    assert words_in_file("pr", order=order) == ["print", "property"]
    assert words_in_file("pro = in_ = 1\nin", order=order) == ["in_", "input", "int"]
    assert words_in_file("x = Tr", order=order) == ["True"]
    assert words_in_file("x = zq", order=order) == []


def test_without_a_prefix_it_is_read_from_the_end():
    assert words_in_file(FILE) == words_in_file(FILE, "fo")
    assert words_in_file("alpha = beta\nx.")[:3] == ["x", "beta", "alpha"]
    assert words_in_file("año = 1\nañ") == ["año"]
    assert words_in_file("xabc = 0xab") == words_in_file("xabc = 0xab", "")  # a number isn't a name, nor is its end
    assert "xab" not in words_in_file("xabc = 0xab + ")


def test_every_python_of_the_course_has_these_words():
    import builtins

    assert set(BUILTINS) <= set(dir(builtins)) and len(BUILTINS) == len(set(BUILTINS))
    assert not set(BUILTINS) & set(keyword.kwlist)


def test_wrong_arguments_get_a_message():
    with pytest.raises(ValueError, match="order='newest'; use one of nearest, most frequent"):
        words_in_file("a", order="newest")
    with pytest.raises(ValueError, match="the text ends with 'ar', and the prefix is 'fo'"):
        words_in_file("foo = bar", "fo")
