"""Exercises: right answers pass however they are written, known mistakes get their names, nothing makes a check crash."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from variants import variants_of

from course_utils import exercises
from course_utils.exercises.catalogue import answers_to, find_exercise, list_exercises, source_of_solution
from course_utils.exercises.compare import readings
from course_utils.exercises.judge import judge
from course_utils.exercises.workers import InWorker

EVERY = list_exercises()
IDS = [exercise.id for exercise in EVERY]


def hand_over(exercise, answer):
    """An answer of the solutions module as a learner would hand it over."""
    return answer if exercise.kind == "function" else answer()


@pytest.fixture
def marks(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_an_exercise_says_what_it_asks(exercise):
    low, high = exercise.minutes
    assert 0 < low < high <= 60
    assert exercise.title and exercise.question and exercise.signature
    assert 2 <= len(exercise.hints) <= 4
    assert exercise.mistakes and exercise.kind in ("function", "number", "order")


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_the_reference_and_every_variant_are_right(exercise):
    answers = answers_to(exercise.id)
    assert len(variants_of(exercise.id)) >= 3
    for name, answer in {"reference": answers.reference, **variants_of(exercise.id)}.items():
        if exercise.kind == "order" and name == "reference":
            continue                                    # the reference of an order is its list of rules
        for seed in (0, 1, 20):
            verdict = judge(exercise, answers, hand_over(exercise, answer), seed)
            assert verdict.state == "right", f"{name}: {verdict.text}"


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_every_known_mistake_gets_its_own_name_and_message(exercise):
    answers = answers_to(exercise.id)
    assert {mistake.name for mistake in exercise.mistakes} == set(answers.mutants), (
        "mistakes in ask.py and mutants in answers.py must have the same names")
    texts = set()
    for name, answer in answers.mutants.items():
        for seed in (0, 1):
            verdict = judge(exercise, answers, hand_over(exercise, answer), seed)
            assert verdict.state in ("wrong", "other") , f"{name}: {verdict.text}"
            assert verdict.names == (name,), (
                f"{name} gives the same as {verdict.names} on every probe: add one on which they differ")
        texts.add(verdict.text)
        assert 60 < len(verdict.text) < 700 and "nan" not in verdict.text and "\n" not in verdict.text, (
            f"a message has 60 to 700 letters on one line; {name}: {verdict.text}")
    assert len(texts) == len(answers.mutants)


def endless(*inputs):
    while True:
        pass


def endless_and_stubborn(*inputs):
    while True:
        try:
            pass
        except BaseException:
            pass


def recursive(*inputs):
    return recursive(*inputs)


def raising(*inputs):
    raise KeyError("no such thing")


def leaving(*inputs):
    raise SystemExit(3)


def holding_itself(*inputs):
    rows: list = []
    rows.append(rows)
    return rows


ODD = {
    "None": lambda *inputs: [None][0], "a text": lambda *inputs: "0.5", "an object": lambda *inputs: object(),
    "a number": lambda *inputs: 0.123456, "an empty tensor": lambda *inputs: torch.zeros(0),
    "an empty list": lambda *inputs: [],
    "a wrong shape": lambda *inputs: torch.zeros(3, 1, 4, 1, 5), "NaN": lambda *inputs: torch.full((2, 3), math.nan),
    "its input": lambda *inputs: inputs[0] if inputs else 0, "raising": raising, "leaving": leaving, "recursive": recursive,
    "no arguments": lambda: 1, "a nested list": lambda *inputs: [[1], [2, 3]], "a dict": lambda *inputs: {"a": 1},
    "an array of objects": lambda *inputs: np.array([object(), None]), "a list that holds itself": holding_itself,
    "a number beyond floats": lambda *inputs: 10**400, "an array of texts": lambda *inputs: np.array(["a", "b"]),
    "a function": lambda *inputs: lambda: 1, "complex": lambda *inputs: torch.zeros(2, dtype=torch.complex64),
}


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_nothing_that_an_answer_does_makes_the_check_crash(exercise, marks, capsys):
    before = torch.get_rng_state()
    if exercise.kind == "function":
        for name, answer in ODD.items():
            verdict = judge(exercise, answers_to(exercise.id), answer)
            assert verdict.state in ("wrong", "open"), f"{name}: {verdict.text}"
            assert verdict.names == () or name == "its input", f"{name}: {verdict.text}"
    for thing in (None, 3, "x", [], {}, object(), ..., math.nan, torch.zeros(2), len, int, holding_itself(), 10**400,
                  np.array([object()])):
        verdict = judge(exercise, answers_to(exercise.id), thing)
        assert verdict.state in ("wrong", "open"), f"{thing!r}: {verdict.text}"
    exercises.exercise(exercise.id).check(None)
    assert capsys.readouterr().out.count("\n") == 1
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("answer", [endless, endless_and_stubborn])
def test_an_endless_loop_is_stopped(answer):
    verdict = judge(find_exercise("4.2"), answers_to("4.2"), InWorker(find_exercise("4.2"), answer, seconds=1.0))
    assert "didn't finish within a few seconds" in verdict.text


def test_a_function_that_changes_its_input_is_told_so():
    def in_place(query, key, value):
        query /= math.sqrt(query.shape[-1])
        weights = (query @ key.mT).softmax(-1)
        return weights @ value, weights

    said = judge(find_exercise("4.2"), answers_to("4.2"), in_place).text
    assert "Your function changes `query`, which belongs to the code that calls it." in said
    assert "`query = query + …`" in said


@pytest.mark.parametrize("exercise", [e for e in EVERY if e.kind == "function"], ids=[e.id for e in EVERY if e.kind ==
    "function"])
def test_a_stub_is_open_and_the_same_verdict_comes_each_time(exercise, capsys):
    def stub(*inputs): ...

    assert judge(exercise, answers_to(exercise.id), stub).state == "open"
    answers = answers_to(exercise.id)
    for answer in answers.mutants.values():
        assert judge(exercise, answers, answer) == judge(exercise, answers, answer)


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_the_solution_can_be_printed(exercise):
    shown = source_of_solution(exercise.id)
    if exercise.kind == "order":
        assert judge(exercise, answers_to(exercise.id), [line[0] for line in shown.splitlines()]).state == "right"
    else:
        assert "def " in shown


@pytest.mark.parametrize("exercise", EVERY, ids=IDS)
def test_use_hands_over_a_right_answer_whatever_was_given(exercise, marks):
    used = exercises.exercise(exercise.id).use(None)
    assert judge(exercise, answers_to(exercise.id), used).state == "right"


@pytest.mark.parametrize("number, answer, seed, state, said", [
    ("99.9", None, 0, "open", "there is no exercise '99.9'"), (None, None, 0, "open", "there is no exercise"),
    ("4.2", None, "x", "open", "expected a whole number"), ("4.2", recursive, -1, "open", "expected a whole number"),
    ("4.2", recursive, 10**30, "open", "expected a whole number"),
    ("4.2", recursive, True, "open", "expected a whole number"),
    ("4.2", recursive, 7, "wrong", "RecursionError"), ("4.2", leaving, 0, "wrong", "SystemExit"),
    ("4.2", lambda *inputs: ..., 0, "wrong", ""), ("4.1", [0.105, 0.776, 0.105, 0.014], 0, "right", "right"),
    ("4.1", math.nan, 0, "wrong", ""), ("4.2", answers_to("4.2").mutants["no-scaling"], 3, "wrong", ""),
])
def test_a_verdict_for_programs_never_raises(number, answer, seed, state, said):
    found = exercises.verdict(number, answer, seed)
    assert found.state == state and said in found.text, found.text
    assert isinstance(found.names, tuple) and (found.names == ("no-scaling",)) == (seed == 3)


@pytest.mark.parametrize("reference", [raising, lambda *inputs: None, lambda *inputs: object()])
def test_where_the_courses_own_answer_fails_nobody_is_wrong(reference, monkeypatch):
    answers = answers_to("4.2")._replace(reference=reference)
    monkeypatch.setattr(exercises, "answers_to", lambda number: answers)
    found = exercises.verdict("4.2", variants_of("4.2")["einsum"])
    assert found.state == "open" and "the check itself failed" in found.text


def test_strict_mode_raises(monkeypatch, marks):
    monkeypatch.setenv("COURSE_STRICT", "1")
    with pytest.raises(AssertionError, match="4.1 A row by hand"):
        exercises.exercise("4.1").check([0, 2, 0, -2])


def test_use_gives_yours_if_it_is_right_and_else_the_courses():
    def wrong(query, key, value):
        return value, value

    assert exercises.exercise("4.2").use(wrong) is answers_to("4.2").reference
    mine = variants_of("4.2")["einsum"]
    assert exercises.exercise("4.2").use(mine) is mine


def test_progress_survives_deletion_and_damage(marks, capsys):
    exercises.exercise("4.1").check([0.105, 0.776, 0.105, 0.014])
    assert marks.is_file()
    marks.write_text("{ not json", encoding="utf-8")
    exercises.progress()
    out = capsys.readouterr().out
    assert "cannot be read" in out and marks.read_text(encoding="utf-8") == "{ not json"
    exercises.exercise("4.1").check([0.105, 0.776, 0.105, 0.014])
    assert marks.with_name("progress.damaged-1.json").read_text(encoding="utf-8") == "{ not json"
    exercises.progress()
    assert "■□" in capsys.readouterr().out
    marks.unlink()
    exercises.progress()
    assert "■" not in capsys.readouterr().out


def test_an_unknown_number_names_those_near_it():
    with pytest.raises(ValueError, match=r"4\.2"):
        exercises.exercise("4.22")


def test_a_prediction_is_kept_and_compared(marks, capsys):
    exercises.predict("04-test").compare(0.3)
    assert "measured: 0.3" in capsys.readouterr().out
    exercises.predict("04-test", 0.5)
    exercises.predict("04-test").compare(0.3)
    assert "0.2 less than you thought" in capsys.readouterr().out


def test_a_quiz_tells_about_each_answer_and_about_a_wrong_letter(marks, capsys):
    asked = exercises.quiz("04")
    asked.answer(1, "b")
    asked.answer(1, "(C)")
    asked.answer(9, "a")
    asked.answer(1, "z")
    right, wrong, no_question, no_letter = capsys.readouterr().out.splitlines()
    assert right.startswith("✓ 1 b") and wrong.startswith("✗ 1 c")
    assert "questions 1 to 5" in no_question and "options a, b, c" in no_letter
    page = asked._repr_html_()
    assert page.count("<details") == sum(len(question.options) for question in asked.questions) and "<script" not in page
    assert "Answer with" in repr(asked)


@pytest.mark.parametrize("written, number", [
    ("0,783", 0.783), (" 1,050,624 ", 1050624), ("1 050 624", 1050624), ("80%", 0.8), ("4/5", 0.8), (Fraction(4, 5), 0.8),
    (Decimal("0.8"), 0.8), ("[0.1, 0.2]", [0.1, 0.2]), ("0,1 0,2", [0.1, 0.2]), (["0.1", 2], [0.1, 2]), ("−1", -1), (3, 3),
    ("1,094", 1.094), ("1,094", 1094), ("1 0 0", [1, 0, 0]), ("2.5/10", 0.25),
])
def test_numbers_are_read_as_people_write_them(written, number):
    assert number in readings(written)


@pytest.mark.parametrize("text", ["", "a lot", "1/0", "0.1.2"])
def test_a_text_that_is_no_number_is_said_so(text):
    verdict = judge(find_exercise("9.2"), answers_to("9.2"), text)
    assert verdict.state == "wrong" and "which isn't a number" in verdict.text


@pytest.mark.parametrize("written", ["{}", "{}.", "[{}]", "\n{}"])
def test_an_order_may_be_written_in_many_ways(written):
    exercise = find_exercise("3.3")
    letters = source_of_solution("3.3").splitlines()
    order = [line[0] for line in letters]
    for between in (" ", "", ", ", " > ", "-", "\n"):
        text = between.join(order)
        assert judge(exercise, answers_to("3.3"), written.format(text)).state == "right", text
    assert judge(exercise, answers_to("3.3"), tuple(order)).state == "right"


def test_rows_one_by_one_and_a_number_in_brackets_are_read():
    reference = answers_to("3.5").reference
    assert judge(find_exercise("3.5"), answers_to("3.5"), lambda *inputs: list(reference(*inputs))).state == "right"
    assert judge(find_exercise("9.2"), answers_to("9.2"), torch.tensor([0.783])).state == "right"
    sparse = judge(find_exercise("4.2"), answers_to("4.2"), lambda *inputs: torch.eye(3).to_sparse())
    assert sparse.state == "wrong"


def test_a_prediction_may_be_a_tensor_a_text_or_anything_else(marks, capsys):
    for yours in (torch.tensor(0.5), "about a half", np.float64(0.5), [1, 2], object, torch.tensor([1.0, 2.0])):
        exercises.predict("04-test", yours).compare(torch.tensor(0.3, requires_grad=True))
    assert capsys.readouterr().out.count("measured: 0.3") == 6
