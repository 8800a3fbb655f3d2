"""What is said of answers that no exercise lists: one simple thing that explains every input, or nothing."""

import pytest
import torch

from course_utils.exercises.compare import named_tensors
from course_utils.exercises.definitions import Case, Exercise
from course_utils.exercises.diagnoses import explained

TABLE = Exercise("table(x (token, feature)) -> y (token, feature)", (), (), ())
SHAPES = [(5, 3), (4, 4), (2, 6), (1, 1)]


def cases_of(exercise, change, shapes=SHAPES, right=lambda x: x):
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(*shape, generator=generator) for shape in shapes]
    return [Case((x,), named_tensors(change(right(x))), named_tensors(right(x))) for x in inputs]


def late(y, dim=-1, fill=0.0):
    moved = y.roll(1, dim)
    moved.select(dim, 0).fill_(fill)
    return moved


SAID = {
    "twice": (lambda y: 2 * y, "2 times too large on every input"),
    "a third": (lambda y: y / 3, "3 times too small on every input"),
    "sign": (lambda y: -y, "wrong sign"),
    "constant": (lambda y: y + 0.25, "0.250 too large"),
    "less": (lambda y: y - 1, "1.000 too small"),
    "sum": (lambda y: y * y.shape[0], "`token` instead of the mean"),
    "divided again": (lambda y: y / y.shape[1], "and feature is 6 here"),
    "root": (lambda y: y * y.shape[1] ** 0.5, "√feature is 2.45 here"),
    "quotient": (lambda y: y * y.shape[0] / y.shape[1], "(feature / token) is 3 here"),
    "transposed": (lambda y: y.mT, "transposed"),
    "late": (late, "one place too late along `feature`"),
    "early, round": (lambda y: y.roll(-1, 0), "one place too early along `token`"),
}


@pytest.mark.parametrize("name", SAID)
def test_it_says_what_explains_every_input(name):
    change, said = SAID[name]
    assert said in explained(TABLE, cases_of(TABLE, change))


@pytest.mark.parametrize("name", SAID)
def test_it_is_silent_if_one_input_is_not_explained(name):
    cases = cases_of(TABLE, SAID[name][0])
    odd = cases[0].got[""].clone()
    odd[0, -1] += 0.5
    cases[0] = Case(cases[0].inputs, {"": odd}, cases[0].right)
    assert explained(TABLE, cases) is None


@pytest.mark.parametrize("shapes, change", [
    ([(3, 3), (5, 5)], lambda y: y * y.shape[0]),        # token or feature?
    ([(3, 5), (4, 5)], lambda y: y * 5),                 # the size of feature, or 5 on every input?
    ([(1, 1), (1, 1)], lambda y: 2 * y),                 # two numbers: twice, or more by so much?
    ([(4, 9), (16, 4)], lambda y: y * (2 if y.shape[0] == 4 else 4)),    # √token; and nothing else
])
def test_it_is_silent_where_the_sizes_do_not_tell_two_reasons_apart(shapes, change):
    said = explained(TABLE, cases_of(TABLE, change, shapes))
    assert (said is None) == (shapes != [(4, 9), (16, 4)]), said


@pytest.mark.parametrize("change", [lambda y: y, lambda y: y.sum(), lambda y: y * torch.nan, lambda y: y[:, :1], torch.tanh,
                                    lambda y: "a text", lambda y: (y, y)])
def test_it_is_silent_of_right_answers_and_of_anything_else(change):
    assert explained(TABLE, cases_of(TABLE, change)) is None


@pytest.mark.parametrize("right", [torch.zeros_like, lambda x: x * 0 + 3])
def test_it_is_silent_where_all_right_numbers_are_the_same(right):
    for change in (lambda y: y + 1, lambda y: 2 * y, lambda y: late(y, fill=9.0)):
        assert explained(TABLE, cases_of(TABLE, change, right=right)) is None


def test_it_is_silent_of_a_factor_or_a_constant_where_only_two_numbers_tell_it():
    ones = lambda x: (x > 0).float()                     # noqa: E731
    assert explained(TABLE, cases_of(TABLE, lambda y: y + 1, right=ones)) is None
    assert "transposed" in explained(TABLE, cases_of(TABLE, lambda y: y.mT, right=ones))


SCALED = Exercise("weights(scores (query, key)) -> context (query, query), weights (query, key)", (), (), (),
                  observe=lambda function, scores: function(scores),
                  follows={"context": lambda case: case.weights @ case.weights.mT})


def weights_of(x, scale=1.0, dim=-1):
    weights = (scale * x).double().softmax(dim)
    return {"context": weights @ weights.mT, "weights": weights}


@pytest.mark.parametrize("change, said", [
    (lambda x: weights_of(x, 2.5), "your scores are 2.5 times too large on every input"),
    (lambda x: weights_of(x, x.shape[1] ** -0.5), "your scores are 2.45 times too small, and √key is 2.45 here"),
    (lambda x: weights_of(x, -1), "your scores are of the wrong sign"),
    (lambda x: weights_of(x, dim=-2), "over another axis"),
    (lambda x: {**weights_of(x, 2.5), "context": weights_of(x)["context"]}, None),
])
def test_behind_a_softmax_it_speaks_of_the_scores(change, said):
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(*shape, generator=generator) for shape in SHAPES]
    cases = [Case((x,), named_tensors(change(x)), named_tensors(weights_of(x))) for x in inputs]
    found = explained(SCALED, cases)
    assert (found is None) if said is None else (said in found), found
