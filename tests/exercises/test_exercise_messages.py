"""What a check says is true, in the learner's own words, and says what to do; credit goes to the learner's own answer."""

import functools
import math
import re

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from course_tools.teaching.sealing import make_key
from course_utils import exercises
from course_utils.exercises import wire
from course_utils.exercises.catalogue import answers_to
from course_utils.exercises.definitions import Answers, Case, Exercise, Property
from course_utils.exercises.judge import _by_property, judge
from course_utils.exercises.running import Failure, runs_of
from course_utils.exercises.say import of_error
from course_utils.exercises.sealed import Key


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
    (lambda q, k: attend(q, k)[0], ["(2, 4, 6)", "context and weights"]), (lambda q, k: {"a": 1, "b": 2}, ["'a'", "'b'"]),
    (lambda q, k: (attend(q, k)[0], None), ["None", "weights"]),
    (lambda q, k: (attend(q, k)[0], attend(q, k)[1].mT), ["weights", "transposed"]),
    (lambda q, k: (attend(q, k)[0], attend(q, k)[1] * math.inf), ["40 of the 40", "infinite", "weights"]),
    (lambda q, k: (attend(q, k)[0] * math.nan, attend(q, k)[1]), ["48 of the 48", "NaN", "context"]),
    (lambda q, k: (attend(q, k)[0], attend(q, k)[1] + torch.eye(4, 5) / 2), ["8 of the 40", "weights"]),
    (lambda q, k: attend(q.half(), k.half()), ["float16"]),
    (lambda q, k: [part.round(decimals=2) for part in attend(q, k)], ["two decimals"]),
    (lambda q, k: torch.nested.nested_tensor([q[0], k[0]]), ["nested"]),
])
def test_a_result_in_the_wrong_form_is_said_to_have_it(answer, told):
    assert all(part in said(answer) for part in told), said(answer)


@pytest.mark.parametrize("form", [torch.clone, torch.Tensor.tolist, tuple], ids=["tensor", "list", "tuple"])
@pytest.mark.parametrize("number, word", [(3, "three"), (4, "four")])
def test_other_results_than_two_are_counted(number, word, form):
    assert f"{word} results" in said(lambda q, k: form(torch.ones(number)), TWO_NUMBERS, lambda q, k: (0.1, 0.2))


# errors

def not_yet(query, key):
    """What it will do."""
    raise NotImplementedError("later")


def half_done(query, key):
    if query.sum() < 1000:
        raise NotImplementedError
    return attend(query, key)


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


@pytest.mark.parametrize("answer, told", [
    (lambda q, k: q - q.max(dim=-1, keepdim=True), [".values"]), (lambda q, k: math.log(0 * q.abs().sum()), ["above 0"]),
    (lambda q, k: q.sum().backward(), ["requires_grad_()", "loss"]),
])
def test_an_error_that_says_little_is_put_in_words(answer, told):
    assert all(part in said(answer) for part in told), said(answer)


def test_a_result_without_a_way_back_is_not_taken_for_the_learners_own_backward():
    error = Failure("RuntimeError", "element 0 of tensors does not require grad and does not have a grad_fn", ours=True)
    assert "your result" in of_error(PAIR, error, ()) and "this number" not in of_error(PAIR, error, ())
    assert "this number" in of_error(PAIR, error._replace(ours=False), ())


def test_what_is_not_written_yet_is_open():
    for answer in (not_yet, half_done):
        assert judge(PAIR, Answers(attend, {}), answer).state == "open"


def test_a_function_with_other_parameters_is_told_what_it_gets():
    assert "`query` and `key`" in said(lambda q: q)


def test_a_stack_that_is_turned_round_with_T_is_told_how_to_swap_two_dimensions():
    def with_t(query, key):
        return query @ key.T, key

    def without(query, key):
        return query @ key, key

    assert ".transpose(-2, -1) swaps only the last two" in said(with_t)
    assert "transpose" not in said(without) and "RuntimeError" in said(without)


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


# credit

def attend_by_einsum(query, key, value):
    weights = torch.einsum("...qd,...kd->...qk", query, key).div(query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights


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
    asked.check(attend_by_einsum)
    assert "✓" in capsys.readouterr().out and marks.exists()


def test_values_that_were_handed_out_count_for_nobody_either(marks, capsys):
    for number_ in ("4.1", "9.2", "3.3"):
        exercises.exercise(number_).check(exercises.exercise(number_).use(None))
    exercises.exercise("4.2").check(answers_to("4.2").reference)                # wherever it was found
    assert all(line.startswith("○") for line in capsys.readouterr().out.splitlines()) and not marks.exists()


def test_use_replaces_nothing_while_grading(marks, monkeypatch):
    monkeypatch.setenv("COURSE_GRADING", "1")

    def stub(query, key, value): ...

    assert exercises.exercise("4.2").use(stub) is stub and exercises.exercise("4.1").use(None) is None


@pytest.mark.parametrize("seed", ["abc", " 7 "])
def test_a_seed_that_is_no_whole_number_is_said_so_and_the_check_goes_on(seed, marks, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_SEED", seed)
    right = attend_by_einsum
    exercises.exercise("4.2").check(right)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("✓ 4.2") and len(lines) == (2 if seed == "abc" else 1)
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


def test_each_run_has_what_was_printed_in_it_and_nothing_of_the_run_before():
    calls = []

    def talks(query, key):
        calls.append(1)
        print("call", len(calls))
        return attend(query, key)

    assert [run.printed for run in runs_of(PAIR, talks, seed=0)] == ["call 1\n", "call 2\n"]


def test_hints_are_given_one_by_one_and_other_numbers_say_which_there_are(capsys):
    asked = exercises.exercise("4.2")
    for n, hint in enumerate(asked._exercise.hints, start=1):
        asked.hint(n)
        assert hint in capsys.readouterr().out
    for other in (0, len(asked._exercise.hints) + 1, "1"):
        asked.hint(other)
        assert f"1 to {len(asked._exercise.hints)}" in capsys.readouterr().out
