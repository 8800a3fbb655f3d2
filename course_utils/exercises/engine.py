"""Judges an answer: right, a mistake with a name, or wrong by a property that it lacks.

Does: run an answer on fresh inputs, compare what it gives with the course's answer and with the answers that known
mistakes give, and say one thing about it. Does not: contain exercises (see `chapters`) or their solutions (see
`solutions`), or keep marks (see `record`).

The order of the questions: did it run, did it leave its inputs alone, is it the right kind of thing, is it right, is it
one of the known mistakes on *every* input, which property fails first. Only the known mistakes that agree on every
input are named; if no property fails either, the largest difference is shown and nothing is guessed.
"""

import dis
import graphlib
import os
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch

from course_utils.exercises.running import Run, run

SEED = 0  # of the inputs; grading takes another


class Case(NamedTuple):
    """One input with what came out: `inputs` as the function got them, `got` and `right` as named tensors."""

    inputs: tuple
    got: dict
    right: dict


class Mistake(NamedTuple):
    """A known mistake: `seen(case)` says what was seen, with a number of the learner's; `why` it matters, where to look."""

    name: str
    seen: Callable[[Case], str]
    why: str
    convention: bool = False  # no error, but another convention than the one that is asked for


class Property(NamedTuple):
    """What a right answer has: `fails(case)` is true if it has not, `seen(case)` then says so, `why` as for a mistake."""

    fails: Callable[[Case], object]
    seen: Callable[[Case], str]
    why: str


class Exercise(NamedTuple):
    """What is asked, and how an answer is looked at.

    `probes(generator)` makes the inputs, a list of tuples; `observe(answer, *inputs)` is what is compared, by default
    answer(*inputs). `kind` is 'function', 'number' or 'order'. For 'order' `lines` are the given lines by letter.
    """

    id: str
    title: str
    objective: str
    minutes: tuple[int, int]
    signature: str
    probes: Callable[[torch.Generator], list[tuple]]
    mistakes: tuple[Mistake, ...]
    properties: tuple[Property, ...]
    hints: tuple[str, ...]
    observe: Callable | None = None
    kind: str = "function"
    tolerance: float = 1e-4
    lines: tuple[str, ...] = ()
    given: str = ""  # of a repair: the known mistake that the code to be repaired makes


class Answers(NamedTuple):
    """The course's answer to an exercise, other right ones, and what each known mistake would write."""

    reference: Callable
    variants: dict
    mutants: dict


class Verdict(NamedTuple):
    """`state` is 'open', 'right', 'wrong' or 'other' (another valid convention); `names` the known mistakes that fit."""

    state: str
    names: tuple[str, ...]
    text: str


class _Unfit(Exception):
    """An output that is no number, tensor or collection of them."""


def named_tensors(output) -> dict:
    """Any right way to hand over numbers, as {name: tensor in float64}: tensors, arrays, numbers, lists, tuples, dicts.

    Texts stay as they are. Raises _Unfit for anything else.
    """
    if isinstance(output, torch.Tensor):
        if output.is_complex():
            raise _Unfit("tensor of complex numbers")
        dense = output.to_dense() if output.layout != torch.strided else output
        return {"": dense.detach().to(torch.float64)}
    if isinstance(output, (bool, int, float, np.number, np.bool_)):
        return {"": torch.tensor(float(output), dtype=torch.float64)}
    if isinstance(output, np.ndarray):
        return named_tensors(torch.as_tensor(output))
    if isinstance(output, str):
        return {"": output}
    if isinstance(output, dict):
        parts = {str(key): value for key, value in output.items()}
    elif isinstance(output, (list, tuple)):
        try:
            bare = [part.detach() if isinstance(part, torch.Tensor) else part for part in output]
            return {"": torch.tensor(bare, dtype=torch.float64)}
        except (TypeError, ValueError, RuntimeError):
            parts = {str(i): value for i, value in enumerate(output)}
    elif isinstance(output, (set, frozenset)):
        return named_tensors(sorted(output, key=repr))
    else:
        raise _Unfit(type(output).__name__)
    found = {}
    for key, value in parts.items():
        for name, tensor in named_tensors(value).items():
            found[f"{key}.{name}" if name else key] = tensor
    return found


def joined(got: dict, right: dict) -> dict:
    """Rows handed over one by one, or a single number in brackets, in the form of the right answer; else `got` as it is."""
    if list(right) != [""] or isinstance(right[""], str):
        return got
    if list(got) == [str(i) for i in range(len(got))] and got:
        rows = list(got.values())
        if all(isinstance(row, torch.Tensor) and row.shape == rows[0].shape for row in rows):
            got = {"": torch.stack(rows)}
    value = got.get("")
    if isinstance(value, torch.Tensor) and right[""].dim() == 0 and value.numel() == 1:
        return {"": value.reshape(())}
    return got


def close(one: dict, other: dict, tolerance: float) -> bool:
    """Whether two named outputs agree in names, shapes and values."""
    if one.keys() != other.keys():
        return False
    for name, value in one.items():
        expected = other[name]
        if isinstance(value, str) or isinstance(expected, str):
            if value != expected:
                return False
        elif value.shape != expected.shape or not torch.allclose(value, expected, rtol=tolerance, atol=tolerance):
            return False
    return True


def observed(exercise: Exercise, answer, inputs: tuple) -> Run:
    """Run the exercise's look at an answer on one input."""
    observe = exercise.observe or (lambda function, *given: function(*given))
    return run(lambda *given: observe(answer, *given), inputs)


def judge(exercise: Exercise, answers: Answers, answer, seed: int = SEED) -> Verdict:
    """What to say about an answer; never raises for anything the answer does."""
    if exercise.kind != "function":
        return _judge_value(exercise, answers, answer)
    if not callable(answer):
        return _wrong(exercise, f"check() got {_article(type(answer).__name__)}. Hand over the function itself, without "
            f"calling it: "
                      f'exercise("{exercise.id}").check({exercise.signature.partition("(")[0].strip()}).')
    if _is_stub(answer):
        return _open(exercise)
    cases = []
    for inputs in exercise.probes(torch.Generator().manual_seed(seed)):
        result = observed(exercise, answer, inputs)
        trouble = _trouble(exercise, result, inputs)
        if trouble:
            return trouble
        right = named_tensors(observed(exercise, answers.reference, inputs).output)
        cases.append(Case(inputs, joined(named_tensors(result.output), right), right))
        if result.changed:
            return _wrong(exercise, f"it changes its input in place (argument {result.changed[0] + 1}): the caller's own is "
                          "another one afterwards. Work on a copy; for tensors, use operations without '_' at the end.")
    if all(close(case.got, case.right, exercise.tolerance) for case in cases):
        return Verdict("right", (), f"✓ {exercise.id} {exercise.title}: right.")
    fitting = [mistake for mistake in exercise.mistakes if mistake.name in answers.mutants
               and _fits(exercise, answers.mutants[mistake.name], cases)]
    if fitting:
        return _named(exercise, fitting, cases)
    return _wrong(exercise, _by_property(exercise, cases))


def _fits(exercise: Exercise, mutant: Callable, cases: Sequence[Case]) -> bool:
    """Whether a known mistake gives what the learner's answer gives, on every input."""
    for case in cases:
        result = observed(exercise, mutant, case.inputs)
        if result.error is not None or result.timed_out:
            return False
        try:
            output = named_tensors(result.output)
        except _Unfit:
            return False
        if not close(_with_nan_marked(case.got), _with_nan_marked(output), exercise.tolerance):
            return False
    return True


def _with_nan_marked(named: dict) -> dict:
    """NaN as a number that nothing else gives, so that two outputs with NaN in the same places are the same."""
    return {name: value if isinstance(value, str) else torch.nan_to_num(value, nan=7e7) for name, value in named.items()}


def _named(exercise: Exercise, fitting: Sequence[Mistake], cases: Sequence[Case]) -> Verdict:
    """The verdict for one known mistake, or for several that behaviour cannot tell apart."""
    worst = next(case for case in cases if not close(case.got, case.right, exercise.tolerance))
    texts = [f"{mistake.seen(worst)} {mistake.why}" for mistake in fitting]
    text = texts[0] if len(texts) == 1 else "one of these, which give the same: " + " — or: ".join(texts)
    names = tuple(mistake.name for mistake in fitting)
    if exercise.given in names:
        seen = fitting[names.index(exercise.given)].seen(worst)
        text = (f"{seen} That is what it did when you got it. What does this say about the function? "
                f'exercise("{exercise.id}").hint(1) asks on.')
    elif all(mistake.convention for mistake in fitting):
        return Verdict("other", names, f"≈ {exercise.id} {exercise.title}: {text}")
    return _wrong(exercise, text, names)


def _by_property(exercise: Exercise, cases: Sequence[Case]) -> str:
    """The first thing that is not as it must be: parts, shape, finiteness, the exercise's properties, the values."""
    for case in cases:
        missing = case.right.keys() ^ case.got.keys()
        if missing:
            return f"it returns {_parts(case.got)}, expected {_parts(case.right)}: {exercise.signature}."
        for name, right in case.right.items():
            got = case.got[name]
            if isinstance(right, str) or isinstance(got, str):
                continue
            if got.shape != right.shape:
                return (f"the shape{_of(name)} is {tuple(got.shape)}, expected {tuple(right.shape)} for this input: "
                        f"{exercise.signature}.")
            if not torch.isfinite(got).all() and torch.isfinite(right).all():
                kind = "NaN" if torch.isnan(got).any() else "infinite"
                count = int((~torch.isfinite(got)).sum())
                where = "Look for a division by zero, or -inf in a whole row."
                return f"{count} of {got.numel()} values{_of(name)} are {kind}. {where}"
    return _failing_property(exercise, cases) or _largest_difference(exercise, cases)


def _failing_property(exercise: Exercise, cases: Sequence[Case]) -> str | None:
    """What the first property that fails has to say."""
    for rule in exercise.properties:
        for case in cases:
            try:
                if rule.fails(case):
                    return f"{rule.seen(case)} {rule.why}"
            except Exception:  # a property made for another shape of answer says nothing
                continue
    return None


def _largest_difference(exercise: Exercise, cases: Sequence[Case]) -> str:
    """Where the answer is furthest from the right one."""
    worst, text = -1.0, "the answer is not the expected one."
    for case in cases:
        for name, right in case.right.items():
            got = case.got[name]
            if isinstance(right, str) or isinstance(got, str):
                if got != right:
                    return f"it gives {str(got)[:80]!r}, expected {str(right)[:80]!r}."
                continue
            gap = (got - right).abs()
            if gap.numel() and gap.max().item() > worst:
                worst = gap.max().item()
                place = [int(i) for i in np.unravel_index(int(gap.argmax()), tuple(gap.shape))] if gap.dim() else []
                where = f" at {place}" if place else ""
                text = (f"{int((gap > exercise.tolerance).sum())} of {gap.numel()} values{_of(name)} differ; the "
                    f"furthest{where} is "
                        f"{got[tuple(place)].item():.4f}, expected {right[tuple(place)].item():.4f}. It is none of the "
                        f"mistakes "
                        "known here: compare with the computation by hand, one entry at a time.")
    return text


def _trouble(exercise: Exercise, result: Run, inputs: tuple) -> Verdict | None:
    """The verdict for an answer that did not come to an output that can be compared."""
    if result.timed_out:
        return _wrong(exercise, "it does not come to an end within a few seconds; it was stopped. Look for a loop whose "
            "condition "
                      "never becomes false.")
    if isinstance(result.error, RecursionError):
        return _wrong(exercise, "it calls itself without end (RecursionError). Which input should stop it?")
    if result.error is not None:
        said = str(result.error).strip().splitlines()
        where = f" in the line `{result.line}`" if result.line else ""
        if said and not result.line and said[0].startswith("expected"):
            return _wrong(exercise, f"{said[0].rstrip('.')}.")  # said by the exercise's own look at the answer
        return _wrong(exercise, f"{type(result.error).__name__}{where}: {said[0] if said else 'no message'}. "
            f"{_shapes(inputs)}".rstrip())
    if result.output is None:
        return _wrong(exercise, f"it returns None. The last line must be `return …`: {exercise.signature}.")
    try:
        named_tensors(result.output)
    except _Unfit as error:
        return _wrong(exercise, f"it returns {_article(str(error))}, expected {exercise.signature}.")
    return None


def _judge_value(exercise: Exercise, answers: Answers, answer) -> Verdict:
    """Numbers and orders: the answer itself is compared, with the value that each known mistake leads to."""
    if answer is None or answer is ...:
        return _open(exercise)
    expected = answers.reference()
    if exercise.kind == "order":
        return _judge_order(exercise, answers, answer)
    right = named_tensors(expected)
    try:
        meanings = [joined(named_tensors(value), right) for value in readings(answer)]
    except ValueError:
        return _wrong(exercise, f"{str(answer)[:40]!r} cannot be read as a number, expected {exercise.signature}.")
    except _Unfit as error:
        return _wrong(exercise, f"it is {_article(str(error))}, expected {exercise.signature}.")
    known = [right, *(named_tensors(mutant()) for mutant in answers.mutants.values())]
    fitting = (meaning for value in known for meaning in meanings if close(meaning, value, exercise.tolerance))
    got = next(fitting, meanings[0])
    case = Case((), got, right)
    if close(got, right, exercise.tolerance):
        return Verdict("right", (), f"✓ {exercise.id} {exercise.title}: right.")
    fitting = [mistake for mistake in exercise.mistakes
               if close(got, named_tensors(answers.mutants[mistake.name]()), exercise.tolerance)]
    if fitting:
        return _named(exercise, fitting, [case])
    shapes = [{name: getattr(value, "shape", None) for name, value in part.items()} for part in (got, right)]
    if shapes[0] != shapes[1]:
        return _wrong(exercise, f"it has {_parts(got)}, expected {exercise.signature}.")
    seen = _failing_property(exercise, [case])
    if seen:
        return _wrong(exercise, seen)
    return _wrong(exercise, "it is not the expected value, and none of the mistakes known here leads to it. Go through "
        "the "
                  "computation step by step; `.hint(1)` helps.")


def readings(answer) -> list:
    """What a number may mean as people write it: '0,783', '1,050,624', '80%', '4/5', '0.1, 0.2', Fraction, Decimal, lists.

    A text with two meanings gives both ('1,094' is 1.094 or 1094). What is no text or exact number is handed back as it
    is. Raises ValueError for a text that is no number.
    """
    if isinstance(answer, (list, tuple)):
        return [[readings(part)[0] for part in answer]]
    if isinstance(answer, (Fraction, Decimal)):
        return [float(answer)]
    if not isinstance(answer, str):
        return [answer]
    text = answer.strip().strip("[]()").strip()
    found = []
    for single in (text.replace(",", "."), re.sub(r"[\s,](?=\d{3}(\D|$))", "", text)):
        try:
            found.append(_number_in(single))
        except (ValueError, ZeroDivisionError):
            continue
    parts = [part for part in re.split(r"[;\s]+|,\s+", text) if part]
    if len(parts) > 1:
        try:
            found.append([_number_in(part.replace(",", ".")) for part in parts])
        except (ValueError, ZeroDivisionError):
            pass
    if not found:
        raise ValueError(f"{answer!r} is no number")
    return found


def _number_in(text: str) -> float:
    text = text.strip().replace("−", "-")
    if text.endswith("%"):
        return _number_in(text[:-1]) / 100
    return float(Fraction(text)) if "/" in text else float(text)


def _judge_order(exercise: Exercise, answers: Answers, answer) -> Verdict:
    """Given lines to be put in order: any order that keeps every 'before' of the reference is right."""
    letters = [chr(ord("A") + i) for i in range(len(exercise.lines))]
    if isinstance(answer, np.ndarray):
        answer = answer.tolist()
    words = answer if isinstance(answer, (list, tuple)) else []
    if isinstance(answer, str):
        words = re.split(r"[^A-Za-z]+", answer)
    given = [str(word).strip().upper() for word in words if str(word).strip()]
    if len(given) == 1:                                 # "BDAC" in one word
        given = list(given[0])
    if sorted(given) != letters:
        return _wrong(exercise, f"expected each of the letters {' '.join(letters)} once, such as "
            f"\"{' '.join(letters)}\"; got {answer!r}.")
    place = {letter: i for i, letter in enumerate(given)}
    for before, after, name in answers.reference():
        if place[before] > place[after]:
            mistake = next(mistake for mistake in exercise.mistakes if mistake.name == name)
            case = Case((), {"": " ".join(given)}, {})
            return _wrong(exercise, f"{mistake.seen(case)} {mistake.why}", (name,))
    return Verdict("right", (), f"✓ {exercise.id} {exercise.title}: right.")


def right_order(rules: Sequence[tuple[str, str, str]]) -> str:
    """Letters in an order that keeps every rule (before, after, name): the first in the alphabet of those that may come."""
    sorter = graphlib.TopologicalSorter()
    for before, after, _ in rules:
        sorter.add(after, before)
    sorter.prepare()
    letters = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        letters += ready
        sorter.done(*ready)
    return " ".join(letters)


def _is_stub(answer) -> bool:
    """Whether a function's body is still `...`, `pass` or a docstring: it does nothing but return None."""
    code = getattr(answer, "__code__", None)
    if code is None:
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("RESUME", "NOP", "COPY_FREE_VARS")]
    return all(step.opname in ("LOAD_CONST", "RETURN_VALUE", "RETURN_CONST") and step.argval is None for step in steps)


def _open(exercise: Exercise) -> Verdict:
    low, high = exercise.minutes
    return Verdict("open", (), f"○ {exercise.id} {exercise.title}: not tried yet ({low}–{high} minutes).")


def _wrong(exercise: Exercise, text: str, names: tuple[str, ...] = ()) -> Verdict:
    return Verdict("wrong", names, f"✗ {exercise.id} {exercise.title}: {text}")


def _of(name: str) -> str:
    return f" of {name!r}" if name else ""


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _parts(named: dict) -> str:
    if list(named) == [""]:
        value = named[""]
        if isinstance(value, str):
            return "a text"
        return f"one tensor of shape {tuple(value.shape)}" if value.dim() else "one number"
    return f"{len(named)} parts ({', '.join(sorted(named))})"


def _shapes(inputs: tuple) -> str:
    shapes = [f"{tuple(value.shape)}" for value in inputs if isinstance(value, torch.Tensor)]
    return f"The inputs had the shapes {', '.join(shapes)}." if shapes else ""


def strict() -> bool:
    """Whether a wrong answer raises: COURSE_STRICT=1."""
    return os.environ.get("COURSE_STRICT", "") not in ("", "0")
