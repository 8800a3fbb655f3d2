"""Quizzes: the right option is not given away by its letter or its length, and old marks stay what they were."""

import json
import re
from collections import Counter

import pytest

from course_utils import exercises
from course_utils.exercises.quizzes import LETTERS, inline, list_quizzes, load_quiz

QUESTIONS = [(number, asked) for number in list_quizzes() for asked in load_quiz(number)]


def right_letter(asked) -> str:
    return next(letter for letter, option in zip(LETTERS, asked.options) if option.right)


@pytest.mark.parametrize("number", list_quizzes())
def test_a_question_about_another_notebook_says_so_as_text_and_on_the_page(number):
    quiz = exercises.quiz(number)
    taught = [asked.taught for asked in load_quiz(number) if asked.taught != number]
    for shown in (repr(quiz), quiz._repr_html_()):
        assert re.findall(r"\(from (\w+)\)", shown) == taught


@pytest.mark.parametrize("number", list_quizzes())
def test_no_quiz_has_a_pattern_of_letters(number):
    letters = "".join(right_letter(asked) for asked in load_quiz(number))
    assert set("abc") <= set(letters), f"{letters}: one letter is never right"
    assert max(Counter(letters).values()) <= len(letters) / 2, f"{letters}: one letter is right too often"
    assert not any(letters[i] == letters[i + 1] == letters[i + 2] for i in range(len(letters) - 2)), letters
    assert letters != (letters[:3] * 2)[: len(letters)], f"{letters} repeats itself"


def test_the_questions_of_one_name_stay_where_progress_keeps_them():
    names = [f"{number}/{asked.name}" for number, asked in QUESTIONS]
    assert len(set(names)) == len(names) and "04/who-asks" in names and "12/thirty-rows" in names


def test_a_mark_made_when_the_options_stood_in_another_order_stays_right(tmp_path, monkeypatch, capsys):
    marks = {"exercises": {}, "predictions": {}, "quizzes": {
        "03/bag-on-order": {"chosen": "c", "right": True}, "03/zero-grad-forgotten": {"chosen": "b", "right": True},
        "03/direction-deleted": {"chosen": "a", "right": False}}}
    (tmp_path / "progress.json").write_text(json.dumps(marks), encoding="utf-8")
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    exercises.progress()
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("03"))
    assert "2 of 12 questions" in line


def test_stars_stress_a_word_but_not_within_code_or_between_numbers():
    assert inline("the kind *order*, or `a *b* c`; 2 * 3 * 4 <i>") == (
        "the kind <em>order</em>, or <code>a *b* c</code>; 2 * 3 * 4 &lt;i&gt;")
