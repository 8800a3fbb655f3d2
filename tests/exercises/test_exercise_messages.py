"""What a check says is true, in the learner's own words, and says what to do; credit goes to the learner's own answer."""

import copy
import functools
import json
import math
import pkgutil
import re

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from variants import variants_of

from course_utils import exercises
from course_utils.exercises import wire
from course_utils.exercises.catalogue import answers_to, find_exercise, list_exercises
from course_utils.exercises.definitions import Answers, Case, Exercise, Property
from course_utils.exercises.judge import _by_property, judge
from course_utils.exercises.sealed import Key, make_key


def draw(generator):
    return [(torch.randn(2, 4, 6, generator=generator), torch.randn(2, 5, 6, generator=generator)) for _ in range(2)]


def attend(query, key):
    weights = (query @ key.mT / 6**0.5).softmax(-1)
    return weights @ key, weights


PAIR = Exercise("attend(query (batch, query, d), key (batch, key, d)) -> context (batch, query, d), weights (batch, query, "
                "key)", (), (), ("Try.", "It is 0.5."), draw, id="4.9", title="Attend", minutes=(5, 10))
ONE = PAIR._replace(signature="mean_of(query (batch, query, d), key (batch, key, d), a tensor) -> (batch, d)")
TWO_NUMBERS = PAIR._replace(signature="interval(query (batch, query, d), key) -> mean, half of the interval")
NUMBER = PAIR._replace(kind="number", probes=None, signature="a number", tolerance=4e-3)


def said(answer, exercise=PAIR, reference=attend) -> str:
    return judge(exercise, Answers(reference, {}), answer).text.partition(": ")[2]


# results in the wrong form

@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("answer, told", [                      # what of the result the message must give
    (lambda q, k: attend(q, k)[0], ["(2, 4, 6)", "context and weights"]), (lambda q, k: (*attend(q, k), q), ["three"]),
    (lambda q, k: {"a": 1, "b": 2}, ["'a'", "'b'"]), (lambda q, k: (attend(q, k)[0], None), ["None", "weights"]),
    (lambda q, k: (object(), attend(q, k)[1]), ["object", "context"]),
    (lambda q, k: (attend(q, k)[0], attend(q, k)[1].mT), ["weights", "transposed"]),
    (lambda q, k: (attend(q, k)[0], attend(q, k)[1] * math.inf), ["40 of the 40", "infinite", "weights"]),
    (lambda q, k: (attend(q, k)[0] * math.nan, attend(q, k)[1]), ["48 of the 48", "NaN", "context"]),
    (lambda q, k: (attend(q, k)[0], attend(q, k)[1] + torch.eye(4, 5) / 2), ["8 of the 40", "weights"]),
    (lambda q, k: attend(q.half(), k.half()), ["float16"]), (lambda q, k: attend(q.bfloat16(), k.bfloat16()), ["bfloat16"]),
    (lambda q, k: [part.round(decimals=2) for part in attend(q, k)], ["two decimals"]),
    (lambda q, k: [None][0], ["None", "context"]), (lambda q, k: torch.nested.nested_tensor([q[0], k[0]]), ["nested"]),
    (lambda q, k: q.to(torch.complex64), ["complex"]),
])
def test_a_result_in_the_wrong_form_is_said_to_have_it(answer, told):
    assert all(part in said(answer) for part in told), said(answer)


@pytest.mark.parametrize("answer, told", [
    (lambda q, k: (q.mean(1), k.mean(1)), ["two", "(2, 6)"]), (lambda q, k: "a text", ["text"]),
    (lambda q, k: [torch.ones(i) for i in range(1, 8)], ["seven", "(2, 6)"]), (lambda q, k: 1.0, ["()", "(2, 6)"]),
])
def test_so_is_one_where_a_single_tensor_is_asked_for(answer, told):
    text = said(answer, ONE, lambda q, k: q.mean(1))
    assert all(part in text for part in told), text


def test_two_numbers_are_called_by_their_names():
    for answer in (lambda q, k: 0.5, lambda q, k: (1, 2, 3)):
        assert "mean and half of the interval" in said(answer, TWO_NUMBERS, lambda q, k: (0.1, 0.2))


@pytest.mark.parametrize("form", [torch.clone, torch.Tensor.tolist, tuple], ids=["tensor", "list", "tuple"])
@pytest.mark.parametrize("number, word", [(3, "three"), (4, "four")])
def test_other_results_than_two_are_counted(number, word, form):
    assert f"{word} results" in said(lambda q, k: form(torch.ones(number)), TWO_NUMBERS, lambda q, k: (0.1, 0.2))


# errors

def added_in_place(query, key):
    query += 1
    return attend(query, key)


def in_the_standard_library(query, key):
    return json.loads("{")


def not_yet(query, key):
    """What it will do."""
    raise NotImplementedError("later")


def half_done(query, key):
    if query.sum() < 1000:
        raise NotImplementedError
    return attend(query, key)


def test_an_input_changed_in_place_is_called_by_its_name():
    assert "changes `query`" in said(added_in_place)


def test_an_error_inside_the_standard_library_shows_the_learners_line():
    text = said(in_the_standard_library)
    assert "JSONDecodeError" in text and "return json.loads(\"{\")" in text and "query (2, 4, 6)" in text


def test_a_gradient_that_is_not_finite_is_told():
    def observe(function, query, key):
        query = query.clone().requires_grad_()
        context, weights = function(query, key)
        return {"context": context, "gradient": torch.autograd.grad(context.sum(), query)[0]}

    def with_a_root(query, key):
        context, weights = attend(query, key)
        return context + (query - query.detach()).abs().sqrt(), weights

    text = said(with_a_root, PAIR._replace(observe=observe))
    assert "gradient" in text and ("NaN" in text or "infinite" in text)


def test_what_is_not_written_yet_is_open():
    for answer in (not_yet, half_done):
        assert judge(PAIR, Answers(attend, {}), answer).state == "open"


def test_a_function_with_other_parameters_is_told_what_it_gets():
    assert "`query` and `key`" in said(lambda q: q)


def test_an_object_in_place_of_its_class_and_a_value_in_place_of_a_function_are_told_apart():
    wanted = PAIR._replace(signature="Attend(d) -> a module")
    assert "Linear" in judge(wanted, Answers(attend, {}), nn.Linear(2, 2)).text
    assert "got a list" in judge(PAIR, Answers(attend, {}), [1, 2]).text


# numbers

def number(answer, value=1.094, properties=()):
    """What is said with the solutions at hand, and with fingerprints only."""
    exercise, answers = NUMBER._replace(properties=properties), Answers(lambda: value, {})
    return [judge(exercise, known, answer).text.partition(": ")[2]
            for known in (answers, Key(exercise, make_key(exercise, answers)))]


def test_a_number_that_fits_nothing_is_said_to_be_too_small_too_large_or_close():
    assert "too small" in number(0.6)[0] and "too large" in number(6)[0] and "too" not in number(6)[1].partition(",")[0]
    assert all("close" in text for text in number(1.12)) and all("close" not in text for text in number(1.3))
    assert "second" in number([1.0, 0.5], [1.0, 2.0])[0] and "one number" in number([1.0], [1.0, 2.0])[0]


@pytest.mark.parametrize("hints", [("Try.", "It is 0.5."), ("Try 2.", "Draw it.", "0.5, then 0.7."), ("Try.", "Draw it.")])
def test_the_hint_to_compare_with_is_the_first_after_the_first_that_gives_a_number(hints):
    text = judge(NUMBER._replace(hints=hints), Answers(lambda: 1.094, {}), 0.6).text
    named, *others = map(int, re.findall(r"hint\((\d)\)", text))
    with_numbers = [place for place, hint in enumerate(hints, start=1) if place > 1 and re.search(r"\d", hint)]
    assert named == min(with_numbers, default=1) and not others


def test_a_property_of_a_number_sees_the_right_value_and_says_nothing_without_solutions():
    signs = Property(lambda case: (case.got[""].sign() != case.right[""].sign()).any(), lambda case: "the sign is lost.", "")
    full, sealed = number(-3.0, properties=(signs,))
    assert full.startswith("the sign is lost.") and "sign" not in sealed
    assert all(text.startswith("3 is") for text in number(3.0, properties=(signs,)))


def test_a_property_shows_the_worst_of_the_cases_that_are_wrong():
    exercise = Exercise(signature="f(x) -> y", mistakes=(), hints=(), properties=(
        Property(lambda case: True, lambda case: f"yours is {case.answer.item():g}.", ""),))
    cases = [Case((), {"": torch.tensor(got)}, {"": torch.tensor(1.0)}) for got in (1.0, 1.5, 4.0, 1.2)]
    assert _by_property(exercise, cases, [case.answer for case in cases]).startswith("yours is 4.")


@pytest.mark.parametrize("exercise", list_exercises(), ids=lambda exercise: exercise.id)
def test_what_is_not_finite_is_told_of_parts_that_exist(exercise):
    for key, text in exercise.not_finite.items():
        assert key.rpartition(" ")[2] in ("NaN", "inf", "-inf") and text[-1] in ".?", key


@pytest.mark.parametrize("number", [exercise.id for exercise in list_exercises() if exercise.forbidden])
def test_what_an_exercise_forbids_exists(number):
    for name in find_exercise(number).forbidden:
        assert callable(pkgutil.resolve_name(name)), name


# right answers in unusual forms

@pytest.mark.parametrize("form", [
    pd.Series, np.asarray, list, tuple, lambda rows: pd.DataFrame(np.asarray(rows)), lambda rows: rows.to_sparse(),
    lambda rows: nn.Parameter(rows), lambda rows: rows.double(), lambda rows: [row.tolist() for row in rows],
])
def test_a_right_result_is_right_in_every_form(form):
    def mean(query, key):
        rows = query.mean(1)
        return form(rows) if form is not pd.Series else pd.Series(rows[:, 0].numpy())

    reference = (lambda q, k: q.mean(1)[:, 0]) if form is pd.Series else (lambda q, k: q.mean(1))
    assert judge(ONE, Answers(reference, {}), mean).state == "right"


@pytest.mark.parametrize("answer", [
    lambda *, query, key: attend(query, key), lambda *, key, query: attend(query, key),
    lambda query, *, key: attend(query, key),
    lambda *, query, key, **more: attend(query, key),
])
def test_parameters_that_are_given_by_name_only_get_what_the_signature_calls_so(answer):
    assert judge(PAIR, Answers(attend, {}), answer).state == "right"


@pytest.mark.parametrize("as_what", [lambda pair: dict(enumerate(pair)).values(), iter, lambda pair: map(torch.clone, pair),
                                     lambda pair: (part for part in pair)], ids=["dict "
                                         "values", "iterator", "map", "generator"])
@pytest.mark.parametrize("number", ["4.2", "9.3"])
def test_two_results_count_however_they_are_strung_together(number, as_what):
    reference = answers_to(number).reference
    answer = lambda *inputs: as_what([torch.as_tensor(part) for part in reference(*inputs)])  # noqa: E731
    assert judge(find_exercise(number), answers_to(number), answer).state == "right"


# credit

@pytest.fixture
def marks(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


def test_the_courses_answer_counts_for_nobody(marks, capsys):
    def wrong(query, key, value):
        return value, value

    asked = exercises.exercise("4.2")
    asked.check(wrong)
    used = asked.use(wrong)
    asked.check(used)
    _, replaced, refused = capsys.readouterr().out.splitlines()
    assert "`wrong` is now ours" in replaced and refused.startswith("○ 4.2")
    assert used is answers_to("4.2").reference and not marks.exists() and asked.use(used) is used
    asked.check(copy.copy(variants_of("4.2")["einsum"]))
    assert "✓" in capsys.readouterr().out and marks.exists()


def test_values_that_were_handed_out_count_for_nobody_either(marks, capsys):
    for number_ in ("4.1", "9.2", "3.3"):
        exercises.exercise(number_).check(exercises.exercise(number_).use(None))
    exercises.exercise("4.2").check(answers_to("4.2").reference)                # wherever it was found
    assert all(line.startswith("○") for line in capsys.readouterr().out.splitlines()) and not marks.exists()


def test_use_says_nothing_of_an_answer_that_is_right_or_was_not_tried(marks, capsys):
    def stub(query, key, value): ...

    assert exercises.exercise("4.2").use(stub) is answers_to("4.2").reference
    assert capsys.readouterr().out == ""


def test_use_replaces_nothing_while_grading(marks, monkeypatch):
    monkeypatch.setenv("COURSE_GRADING", "1")

    def stub(query, key, value): ...

    assert exercises.exercise("4.2").use(stub) is stub and exercises.exercise("4.1").use(None) is None


def test_a_mark_holds_facts_and_progress_reads_old_and_odd_ones(marks, capsys):
    exercises.exercise("4.1").check([0.105, 0.776, 0.105, 0.014])
    mark = json.loads(marks.read_text(encoding="utf-8"))["exercises"]["4.1"]
    assert mark["right"] is True and mark["seed"] == 0 and len(mark["on"]) == 10
    odd = {"exercises": {"4.1": True, "4.2": "yes", "4.3": [1], "4.4": {"right": "no"}, "4.5": {"right": True}},
           "quizzes": {"04/x": 3}}
    marks.write_text(json.dumps(odd), encoding="utf-8")
    capsys.readouterr()
    exercises.progress()
    assert "■□□□■" in capsys.readouterr().out


@pytest.mark.parametrize("seed", ["", "abc", "1.5", " 7 "])
def test_a_seed_that_is_no_whole_number_is_said_so_and_the_check_goes_on(seed, marks, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_SEED", seed)
    right = variants_of("4.2")["einsum"]
    exercises.exercise("4.2").check(right)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("✓ 4.2") and len(lines) == (2 if seed in ("abc", "1.5") else 1)
    exercises.exercise("4.2").check(right, seed="x")
    assert "expected a whole number" in capsys.readouterr().out


# rough handling

class Evasive:
    """Answers no question about itself, but can be called."""

    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")

    def __call__(self, query, key):
        return attend(query, key)


class WrapsItself:
    def __init__(self):
        self.__wrapped__ = self

    def __call__(self, query, key):
        return attend(query, key)


@pytest.mark.parametrize("make", [Evasive, WrapsItself, lambda: functools.partial(attend)])
def test_whatever_can_be_called_is_judged_by_what_it_gives(make):
    assert judge(PAIR, Answers(attend, {}), make()).state == "right"


@pytest.mark.parametrize("result", [
    lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), lambda: torch.zeros(2).to(torch.float8_e4m3fn),
    lambda: torch.zeros(2, 3, device="meta"), lambda: torch.zeros(2, 3).to_sparse(),
    lambda: np.array(["2020"], dtype="datetime64[D]"), lambda: np.zeros(2, dtype=[("a", int)]), lambda: np.ma.masked,
    lambda: (i for i in range(3)), lambda: pd.DataFrame({"a": ["x"]}), lambda: torch.nn.Linear, lambda: "\ud800",
])
def test_every_result_gets_a_verdict_here_and_when_it_has_been_sent(result):
    here = judge(PAIR, Answers(attend, {}), lambda query, key: result())
    sent = judge(PAIR, Answers(attend, {}), wire.read_report(wire.report(PAIR, lambda query, key: result(), 0)))
    assert here.state == sent.state == "wrong" and here == sent


def test_errors_that_cannot_be_shown_or_leave_the_program_get_a_verdict():
    class Unspeakable(Exception):
        def __str__(self):
            raise ValueError

    for error in (Unspeakable(), SystemExit(2), KeyboardInterrupt(), GeneratorExit()):
        def raising(query, key, error=error):
            raise error

        assert type(error).__name__ in said(raising)
