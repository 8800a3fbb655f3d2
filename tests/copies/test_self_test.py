"""The self-test in START says where to begin."""

import pytest

from course_utils.copies.notebooks import find, number_of
from course_utils.copies.self_test import QUESTIONS, SelfTest
from course_utils.exercises.quizzes import LETTERS

RIGHT = "".join(LETTERS[[option.right for option in asked.options].index(True)] for asked in QUESTIONS)


def begins(answers, capsys) -> str:
    SelfTest().where_to_begin(answers)
    return capsys.readouterr().out


def test_each_question_has_one_right_option_and_is_about_a_notebook():
    assert all(sum(option.right for option in asked.options) == 1 for asked in QUESTIONS)
    assert {asked.taught for asked in QUESTIONS} <= {number_of(path) for path in find([])}
    assert [asked.taught == "00" for asked in QUESTIONS] == [True] * 3 + [False] * 3


@pytest.mark.parametrize("spelling", [RIGHT, RIGHT.upper(), " ".join(RIGHT), ", ".join(RIGHT)])
def test_all_right_begins_with_attention(spelling, capsys):
    assert "all six right. Begin with 04" in begins(spelling, capsys)


@pytest.mark.parametrize("question", range(1, 7))
@pytest.mark.parametrize("instead", ["another", "-"])
def test_one_wrong_answer_begins_where_it_is_taught(question, instead, capsys):
    letter = instead if instead == "-" else next(one for one in "abc" if one != RIGHT[question - 1])
    said = begins(RIGHT[: question - 1] + letter + RIGHT[question:], capsys)
    assert f"not right: {question}. Begin with {'00' if question <= 3 else '01'}" in said


def test_several_wrong_answers_begin_with_the_earliest(capsys):
    assert "not right: 1, 2, 3, 4, 5, 6. Begin with 00" in begins("------", capsys)
    assert "not right: 4, 5, 6. Begin with 01" in begins(RIGHT[:3] + "---", capsys)


@pytest.mark.parametrize("answers", [None, "", "abc", RIGHT + "a", RIGHT[:5] + "h", 123456])
def test_what_is_no_answer_is_said_and_leads_nowhere(answers, capsys):
    said = begins(answers, capsys)
    assert said.startswith("○") and "Begin" not in said


def test_every_option_opens_its_remark():
    page = SelfTest()
    assert page.html.count("<details") == sum(len(asked.options) for asked in QUESTIONS)
    assert repr(page).count("\n   a) ") == len(QUESTIONS)
