"""One law for every exercise: its answer is right, a mistake gets its own name, a stub is open, nothing crashes."""

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from frozen import judged, well_said

from course_utils import exercises
from course_utils.exercises import wire
from course_utils.exercises.catalogue import answers_to, find_exercise, list_exercises, source_of_solution
from course_utils.exercises.compare import readings
from course_utils.exercises.definitions import right_order
from course_utils.exercises.judge import judge

EVERY = list_exercises()
IDS = [exercise.id for exercise in EVERY]


@pytest.fixture
def marks(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


def judged_here(exercise, answer, seed=0):
    """The verdict on an answer that may run in this process."""
    return judge(exercise, answers_to(exercise.id), wire.read_report(wire.report(exercise, answer, seed)), seed)


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_an_exercise_says_what_it_asks_and_its_own_answer_is_right(exercise):
    low, high = exercise.minutes
    assert 0 < low < high and exercise.title and exercise.question and exercise.signature and exercise.hints
    shown, reference = source_of_solution(exercise.id), answers_to(exercise.id).reference
    if exercise.kind == "order":
        assert right_order(reference()).split() == [line[0] for line in shown.splitlines()]
    answer = {"function": lambda: reference, "number": reference, "order": lambda: right_order(reference())}[exercise.kind]()
    verdict = judged_here(exercise, answer)
    assert verdict.state == "right", verdict.text


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_every_known_mistake_gets_its_own_name_and_message(exercise):
    mutants, texts = answers_to(exercise.id).mutants, set()
    assert {mistake.name for mistake in exercise.mistakes} == set(mutants)
    for name, answer in mutants.items():
        verdict = judged_here(exercise, answer if exercise.kind == "function" else answer())
        assert verdict.state in ("wrong", "other"), f"{name}: {verdict.text}"
        assert verdict.names == (name,), f"{name} gives the same as {verdict.names}: add an input on which they differ"
        well_said(verdict)
        assert "nan" not in verdict.text, verdict.text
        texts.add(verdict.text)
    assert len(texts) == len(mutants), "two mistakes get the same message"


def raising(*inputs):
    raise KeyError("no such thing")


def leaving(*inputs):
    raise SystemExit(3)


def recursive(*inputs):
    return recursive(*inputs)


def holding_itself(*inputs):
    rows: list = []
    rows.append(rows)
    return rows


ODD = (raising, leaving, recursive, holding_itself, lambda: 1, lambda *inputs: torch.full((3, 1, 4, 1, 5), math.nan))


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_a_stub_is_open_and_nothing_that_an_answer_does_makes_the_check_crash(exercise, marks, capsys):
    def stub(*inputs): ...

    before = torch.get_rng_state()
    assert judged_here(exercise, stub if exercise.kind == "function" else None).state == "open"
    for odd in (*(ODD if exercise.kind == "function" else ()), math.nan, object(), holding_itself(), 10**400):
        verdict = judged_here(exercise, odd)
        assert (verdict.state, verdict.names) == ("wrong", ()), verdict.text
        well_said(verdict)
    exercises.exercise(exercise.id).check(None)
    assert capsys.readouterr().out.count("\n") == 1 and torch.equal(before, torch.get_rng_state())


# ---------------------------------------------------------------- verdicts for programs


def test_answers_are_told_apart_by_exercise():
    for number, other in (("4.2", "9.1"), ("8.1", "4.2"), ("13.2", "14.3"), ("2.2", "2.4")):
        assert judged(number, f"answer = right({other!r})").state == "wrong"


@pytest.mark.parametrize("number, answer, seed, state", [
    ("99.9", None, 0, "open"), (None, None, 0, "open"), ("4.2", None, "x", "open"), ("4.2", recursive, -1, "open"),
    ("4.2", recursive, 10**30, "open"), ("4.2", recursive, True, "open"), ("4.2", recursive, 7, "wrong"),
    ("4.2", leaving, 0, "wrong"), ("4.1", [0.105, 0.776, 0.105, 0.014], 0, "right"), ("4.1", math.nan, 0, "wrong"),
    ("4.2", answers_to("4.2").mutants["no-scaling"], 3, "wrong"),
])
def test_a_verdict_for_programs_never_raises(number, answer, seed, state):
    found = exercises.verdict(number, answer, seed)
    assert found.state == state and found.text, found.text
    assert isinstance(found.names, tuple) and (found.names == ("no-scaling",)) == (seed == 3)


@pytest.mark.parametrize("reference", [raising, lambda *inputs: None, lambda *inputs: object()])
def test_where_the_courses_own_answer_fails_nobody_is_wrong(reference, monkeypatch):
    answers = answers_to("4.2")._replace(reference=reference)
    monkeypatch.setattr(exercises, "answers_to", lambda number: answers)
    assert exercises.verdict("4.2", answers_to("4.2").mutants["no-scaling"]).state == "open"


def test_strict_mode_raises(monkeypatch, marks):
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(AssertionError, match="4.1 "):
        exercises.exercise("4.1").check([0, 2, 0, -2])


def test_an_unknown_number_names_those_near_it():
    with pytest.raises(ValueError, match=r"4\.2"):
        exercises.exercise("4.22")


# ---------------------------------------------------------------- predictions and quizzes


def test_a_prediction_is_kept_and_compared_whatever_it_is(marks, capsys):
    exercises.predict("04-test").compare(0.3)
    exercises.predict("04-test", 0.5)
    exercises.predict("04-test").compare(0.3)
    assert "0.2 less than you thought" in capsys.readouterr().out
    for yours in (torch.tensor(0.5), "about a half", np.float64(0.5), [1, 2], object, torch.tensor([1.0, 2.0])):
        exercises.predict("04-test", yours).compare(torch.tensor(0.3, requires_grad=True))
    assert capsys.readouterr().out.count("measured: 0.3") == 6
    capsys.readouterr()
    exercises.predict("01-test", "3/4").compare(0.75)
    assert "the same" in capsys.readouterr().out


def test_a_prediction_in_words_is_judged_where_there_is_something_to_compare_with(marks, capsys):
    for yours, said in [("higher", "no, it's lower than 0.76"), ("a bit LOWER", "right, it's lower than 0.76"),
                        ("not higher, lower", None), ("the same", None), (0.5, None)]:
        exercises.predict("00-test", yours).compare(0.61, than=0.76)
        printed = capsys.readouterr().out
        assert said in printed if said else "than 0.76" not in printed, printed
    exercises.predict("00-test", "lower").compare(0.61)
    assert capsys.readouterr().out.endswith("measured: 0.61\n")


def test_a_quiz_tells_about_each_answer_and_about_a_wrong_letter(marks, capsys):
    asked = exercises.quiz("04")
    for question, letter in ((1, "b"), (1, "(C)"), (9, "a"), (1, "z")):
        asked.answer(question, letter)
    right, wrong, no_question, no_letter = capsys.readouterr().out.splitlines()
    assert right.startswith("✓ 1 b") and wrong.startswith("✗ 1 c")
    assert f"questions 1 to {len(asked.questions)}" in no_question and "options a, b, c" in no_letter
    page = asked._repr_html_()
    assert page.count("<details") == sum(len(question.options) for question in asked.questions) and "<script" not in page


# ---------------------------------------------------------------- numbers and orders as people write them


class ExactNumber:
    """As the exact numbers of other libraries: no Fraction, but it can be turned into a float."""

    def __float__(self):
        return 0.75


@pytest.mark.parametrize("written, number", [
    ("0,783", 0.783), (" 1,050,624 ", 1050624), ("1 050 624", 1050624), ("80%", 0.8), ("4/5", 0.8), (Fraction(4, 5), 0.8),
    (Decimal("0.8"), 0.8), ("0,1 0,2", [0.1, 0.2]), (["0.1", 2], [0.1, 2]), ("−1", -1), ("1,094", 1.094), ("1,094", 1094),
    ("1 0 0", [1, 0, 0]), (ExactNumber(), 0.75), ("(0.7,1.2)", [0.7, 1.2]), ("12 %,5 %", [0.12, 0.05]),
    ("[84,4 %; 11,4 %]", [0.844, 0.114]), ("84.4\u202f%", 0.844), ("1 / 2, 1 / 4", [0.5, 0.25]),
])
def test_numbers_are_read_as_people_write_them(written, number):
    assert pytest.approx(number) in readings(written)


@pytest.mark.parametrize("text", ["", "a lot", "1/0", "0.1.2"])
def test_a_text_that_is_no_number_is_wrong(text):
    assert exercises.verdict("9.2", text).state == "wrong"


@pytest.mark.parametrize("between", [" ", "", ", ", " > ", "-", "\n"])
def test_an_order_may_be_written_in_many_ways(between):
    order = re.findall(r"^\w", source_of_solution("3.3"), re.MULTILINE)
    for written in ("{}", "{}.", "[{}]", "\n{}"):
        assert exercises.verdict("3.3", written.format(between.join(order))).state == "right"
    assert judge(find_exercise("3.3"), answers_to("3.3"), tuple(order)).state == "right"
