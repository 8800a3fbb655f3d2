"""The self-test in START says where to begin."""

import re

import pytest

from course_utils.copies.notebooks import find, number_of
from course_utils.copies.self_test import QUESTIONS, SelfTest


def test_each_question_has_one_right_option_and_is_about_a_notebook():
    assert all(sum(option.right for option in asked.options) == 1 for asked in QUESTIONS)
    assert {asked.taught for asked in QUESTIONS} <= {number_of(path) for path in find([])}
    assert [asked.taught == "00" for asked in QUESTIONS] == [True] * 3 + [False] * 3


@pytest.mark.parametrize("question", range(6))
def test_a_wrong_option_says_where_to_begin_and_the_right_one_does_not(question):
    asked, begin = QUESTIONS[question], "00" if question < 3 else "01"
    for option in asked.options:
        assert option.remark.endswith(f" Begin with {begin}.") is not option.right
        assert option.remark.startswith("Yes") is option.right and option.remark.count("Begin with") == (not option.right)
        alone = f"Only this one missed? {asked.taught} will do." in option.remark
        assert alone is (not option.right and question > 2)


def test_every_option_opens_its_remark():
    page = SelfTest()
    opened = re.findall(r"<details.*?</details>", page.html, re.S)
    assert len(opened) == sum(len(asked.options) for asked in QUESTIONS)
    assert sum("Begin with 00" in one for one in opened) == sum("Begin with 01" in one for one in opened) == 6
    assert repr(page).count("\n   a) ") == len(QUESTIONS)
