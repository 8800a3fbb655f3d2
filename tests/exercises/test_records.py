"""Records: a mistake is an edit of the answer, found on its syntax tree; what doesn't fit is an error when it's loaded."""

import math

import pytest
import torch

from course_utils.exercises.compare import NoList, as_tuple
from course_utils.exercises.definitions import Case, halves_of
from course_utils.exercises.judge import judge
from course_utils.exercises.records import M, R, ask, edited, phrase


def plain(x, size=2):
    half = x / size                                     # written as we write
    total = half.sum(dim=-1, keepdim=True)
    return total / math.sqrt(x.shape[-1])


def formatted(
    x,
    size=2,
):
    """The same in another hand."""
    half = (x / (size))
    total = half.sum(
        dim=-1,
        keepdim=True,
    )
    return (
        total
        / math.sqrt(
            x.shape[-1],
        )
    )


EDITS = {
    "an expression": ({"math.sqrt(x.shape[-1])": "x.shape[-1]"}, lambda x: (x / 2).sum(-1, True) / x.shape[-1]),
    "an argument": ({"dim=-1": "dim=-2"}, lambda x: (x / 2).sum(-2, True) / math.sqrt(x.shape[-1])),
    "an argument less": ({"keepdim=True": ""}, lambda x: (x / 2).sum(-1) / math.sqrt(x.shape[-1])),
    "a statement": ({"half = x / size": "half = x"}, lambda x: x.sum(-1, True) / math.sqrt(x.shape[-1])),
    "in two steps": ({"x / size": "x * size", "size": "3"}, None),
    "what an edit has made": ({"half.sum(dim=-1, keepdim=True)": "half.mean(dim=-1)", "half.mean(dim=-1)": "half"},
                              lambda x: x / 2 / math.sqrt(x.shape[-1])),
}


@pytest.mark.parametrize("answer", [plain, formatted], ids=["plain", "formatted"])
@pytest.mark.parametrize("name", [name for name, (_, right) in EDITS.items() if right])
def test_an_edit_finds_its_place_whatever_a_formatter_did(name, answer):
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    edits, right = EDITS[name]
    torch.testing.assert_close(edited(answer, edits)(x), right(x))


@pytest.mark.parametrize("answer", [plain, formatted], ids=["plain", "formatted"])
def test_a_statement_can_be_taken_out(answer):
    with pytest.raises(NameError):                      # what it would have made isn't there
        edited(answer, {"half = x / size": ""})(torch.ones(1, 1))


@pytest.mark.parametrize("edits, times", [({"half.mean()": "1"}, "0 times"),
                                          ({"dim=-3": "dim=-2"}, "0 times"), ({"total = half": ""}, "0 times"),
                                          ({"x": "y"}, "2 times"), ({"a = b = (": ""}, "0 times"),
                                          ({"x / size": "x", "size": "3"}, "0 times")])
def test_an_edit_that_fits_nowhere_or_twice_is_an_error_when_the_record_is_loaded(edits, times):
    with pytest.raises(ValueError, match=f"exercise 0.9, mistake 'slip': expected .* once in the answer, found it {times}"):
        ask("0.9", plain, signature="plain(x (n, m)) -> y (n, 1)", mistakes={"slip": M(edits)}, rules=(), hints=())


@pytest.mark.parametrize("edits", [{"x / size": ""}, {"x / size": "return x"}, {"dim=-1": "x y"}])
def test_an_expression_gives_way_to_an_expression_only(edits):
    with pytest.raises(ValueError, match="can't be replaced by"):
        edited(plain, edits)


def test_a_sentence_computes_the_numbers_that_it_quotes_and_no_others():
    case = Case((torch.ones(2), 0.5), {"": torch.tensor([1.0, 2.5])}, {"": torch.tensor([1.0, 2.0])})
    numbers = {"largest": lambda case: case.answer.max(), "never": lambda case: 1 / 0}
    said = phrase("{largest:.2f} for {inputs[1]:g}, {answer[0]:.1f}, expected {expected[1]:.1f}", numbers)
    assert said(case) == "2.50 for 0.5, 1.0, expected 2.0"
    with pytest.raises(ZeroDivisionError):
        phrase("{never}", numbers)(case)
    assert phrase("") is None and phrase(str) is str


def test_a_record_is_judged_as_any_exercise():
    exercise, answers = ask(
        "0.9", plain, signature="plain(x (n, m)) -> y (n, 1)",
        probes=lambda generator: [(torch.randn(n, m, generator=generator),) for n, m in ((3, 4), (2, 5))],
        numbers=dict(first=lambda case: case.answer[0, 0]),
        mistakes={"not-halved": M({"x / size": "x"}, "it begins with {first:.2f}.", "Halve it."),
                  "other": M(lambda x: x, "that is x."), "no-root": M({"total / math.sqrt(x.shape[-1])": "total"})},
        rules=(R(lambda case: True, "it begins with {first:.2f}, and is wrong.", "Look again."),), hints=("a", "b"))
    for name, made in answers.mutants.items():
        assert judge(exercise, answers, made).names == (name,)
    assert judge(exercise, answers, formatted).state == "right"
    assert "it begins with" in judge(exercise, answers, answers.mutants["not-halved"]).text
    said = judge(exercise, answers, answers.mutants["no-root"]).text
    assert "too large, and √m is 2.24 here" in said, said
    assert judge(exercise, answers, lambda x: x.sum(-1, True).abs()).text.endswith("and is wrong. Look again.")


def test_an_arrow_inside_parentheses_is_no_result():
    given, result = halves_of("smallest(fits (a size -> True or False), high) -> the smallest size")
    assert given.endswith("high)") and result == "the smallest size"
    assert halves_of("one number: how many tokens") == ("one number: how many tokens", "")


def test_a_generator_can_be_told_from_a_tuple():
    assert isinstance(as_tuple(i for i in range(2)), NoList) and not isinstance(as_tuple((0, 1)), NoList)
    assert as_tuple(i for i in range(2)) == (0, 1)
