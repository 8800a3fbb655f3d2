"""Judges an answer: right, a mistake with a name, or wrong by a property that it lacks.

Does: run an answer on fresh inputs, compare what it gives with the course's answer and with the answers that known
mistakes give, and say one thing about it. Does not: contain exercises (see `chapters`) or their solutions (see
`solutions`), or keep marks (see `record`).

The order of the questions: did it run, did it leave its inputs alone, is it the right kind of thing, is it right, is it
one of the known mistakes on *every* input, which property fails first. Only the known mistakes that agree on every
input are named; if no property fails either, the largest difference is shown and nothing is guessed.
"""

import graphlib
import os
import re
from collections.abc import Sequence

import numpy as np
import torch

from course_utils.exercises.definitions import Answers, Case, Exercise, Mistake, Verdict
from course_utils.exercises.keys import RIGHT, Key, Solved
from course_utils.exercises.outputs import Odd, Unfit, article, close, joined, named_tensors, readings
from course_utils.exercises.running import Run, names_of_inputs, usual_settings
from course_utils.exercises.sides import Handed, Here, Side

SEED = 0  # of the inputs; grading takes another
AS_GIVEN = "That is what it did when you got it."       # said of a repair whose mistake is still there


def judge(exercise: Exercise, answers: Answers | Key, answer, seed: int = SEED) -> Verdict:
    """What to say about an answer; never raises for anything the answer does. A Key judges the usual `seed` only.

    `answer` is a function or a value, which is run here, or a side (see `sides`) that was or will be run elsewhere.
    """
    side = answer if callable(getattr(answer, "describe", None)) and callable(getattr(answer, "runs", None)) else Here(
        exercise, answer)
    with usual_settings():
        return _judge(exercise, answers, side, seed)


def _judge(exercise: Exercise, answers: Answers | Key, side: Side, seed: int) -> Verdict:
    handed = side.describe()
    known = answers if isinstance(answers, Key) else Solved(exercise, answers, seed)
    if handed.ours:
        return Verdict("open", (), f"○ {exercise.id} {exercise.title}: this is the course's own answer, which use() handed "
                       "out. It works, but it isn't yours: check the one that you wrote.")
    if exercise.kind != "function":
        return _judge_value(exercise, known, handed)
    if seed != SEED and isinstance(known, Key):
        return Verdict("open", (), f"○ {exercise.id} {exercise.title}: not judged. This edition has no solutions, so it can "
                       f"judge the usual inputs only (seed={SEED}), not seed={seed}.")
    name = exercise.signature.partition("(")[0].strip()
    if handed.kind in ("nothing", "value"):
        return _wrong(exercise, f"check() got {article(handed.type)}. Hand over the function itself, without "
                      f'calling it: exercise("{exercise.id}").check({name}).')
    if handed.kind == "instance" and name[:1].isupper():
        return _wrong(exercise, f"check() got an object made by {handed.type}. Hand over the class itself, without "
                      f'calling it: exercise("{exercise.id}").check({name}).')
    if handed.kind == "stub":
        return _open(exercise)
    return _judge_runs(exercise, known, side.runs(seed), seed)


def _judge_runs(exercise: Exercise, known: Solved | Key, runs: Sequence[Run], seed: int) -> Verdict:
    """The verdict on what a function did on each set of inputs."""
    cases = []
    for index, inputs in enumerate(exercise.probes(torch.Generator().manual_seed(seed))):
        if index >= len(runs):
            return _wrong(exercise, f"it answered {len(runs)} of the inputs it was given, and there are more.")
        result = runs[index]
        trouble = _trouble(exercise, result, inputs)
        if trouble:
            return trouble
        right = known.gives(RIGHT, index, inputs)
        cases.append(Case(inputs, joined(named_tensors(result.output), right), right))
        if result.changed:
            return _wrong(exercise, _changed(exercise, result, inputs))
    if all(close(case.got, case.right, exercise.tolerance) for case in cases):
        return _right(exercise)
    fitting = [mistake for mistake in exercise.mistakes if mistake.name in known.names
               and _fits(exercise, known, mistake.name, cases)]
    if fitting:
        return _named(exercise, fitting, cases)
    return _wrong(exercise, _by_property(exercise, cases))


def _changed(exercise: Exercise, result: Run, inputs: tuple) -> str:
    """What to say of an input that was changed in place."""
    place = result.changed[0]
    names = names_of_inputs(exercise)
    name = names[place] if place < len(names) else f"its input number {place + 1}"
    advice = (f"Use `{name} = {name} + …` instead of `{name} += …`, and no operation whose name ends in `_`."
              if isinstance(inputs[place], torch.Tensor) else f"Work on a copy: `{name} = copy.deepcopy({name})`.")
    return f"Your function changes `{name}`, which belongs to whoever calls it. {advice}"


def _fits(exercise: Exercise, known: Solved | Key, name: str, cases: Sequence[Case]) -> bool:
    """Whether a known mistake gives what the learner's answer gives, on every input."""
    for index, case in enumerate(cases):
        output = known.gives(name, index, case.inputs)
        if output is None or not close(_with_nan_marked(case.got), _with_nan_marked(output), exercise.tolerance):
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
        text = (f"{seen} {AS_GIVEN} What does this say about the function? "
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
                count, value, wanted = int((gap > exercise.tolerance).sum()), got[tuple(place)], right[tuple(place)]
                text = (f"{count} of {gap.numel()} values{_of(name)} differ; the furthest{where} is {value.item():.4f}, "
                        f"expected {wanted.item():.4f}. It is none of the mistakes known here: compare with the "
                        "computation by hand, one entry at a time.")
    return text


def _trouble(exercise: Exercise, result: Run, inputs: tuple) -> Verdict | None:
    """The verdict for an answer that did not come to an output that can be compared."""
    error = result.error
    if result.timed_out:
        return _wrong(exercise, "it doesn't come to an end within a few seconds, so it was stopped. Look for a loop "
                      "whose condition never becomes false.")
    if error is not None and error.type == "ProcessDied":
        return _wrong(exercise, "it ended the Python process in which it ran. Look for os._exit, a crash in a library, or "
                      "far too much memory.")
    if error is not None and error.type == "RecursionError":
        return _wrong(exercise, "it calls itself without end (RecursionError). Which input should stop it?")
    if error is not None:
        said = error.message.strip().splitlines()
        where = f" in the line `{error.line}`" if error.line else ""
        if said and error.ours and said[0].startswith("expected"):
            return _wrong(exercise, f"{said[0].rstrip('.')}.")  # said by the exercise's own look at the answer
        message = said[0].rstrip(".") if said else "no message"
        return _wrong(exercise, f"{error.type}{where}: {message}. {_shapes(inputs)}".rstrip())
    if result.output is None:
        return _wrong(exercise, f"it returns None. The last line must be `return …`: {exercise.signature}.")
    try:
        named_tensors(result.output)
    except Unfit as error:
        return _wrong(exercise, f"it returns {error}, expected {exercise.signature}.")
    return None


def _judge_value(exercise: Exercise, known: Solved | Key, handed: Handed) -> Verdict:
    """Numbers and orders: the answer itself is compared, with the value that each known mistake leads to."""
    answer = handed.value
    if handed.kind == "nothing":
        return _open(exercise)
    if exercise.kind == "order":
        return _judge_order(exercise, known, answer)
    form = known.form()
    try:
        meanings = [joined(named_tensors(value), form) for value in readings(answer)]
    except Unfit as error:
        return _wrong(exercise, f"it is {error}, expected {exercise.signature}.")
    got = next((meaning for name in (RIGHT, *known.names) for meaning in meanings if known.is_value(name, meaning)),
               meanings[0])
    if known.is_value(RIGHT, got):
        return _right(exercise)
    case = Case((), got, form)
    fitting = [mistake for mistake in exercise.mistakes if known.is_value(mistake.name, got)]
    if fitting:
        return _named(exercise, fitting, [case])
    shapes = [{name: getattr(value, "shape", None) for name, value in part.items()} for part in (got, form)]
    if shapes[0] != shapes[1]:
        return _wrong(exercise, f"it has {_parts(got)}, expected {exercise.signature}.")
    seen = _failing_property(exercise, [case])
    if seen:
        return _wrong(exercise, seen)
    return _wrong(exercise, "it is not the expected value, and none of the mistakes known here leads to it. Go through the "
                  "computation step by step; `.hint(1)` helps.")


def _judge_order(exercise: Exercise, known: Solved | Key, answer) -> Verdict:
    """Given lines to be put in order: any order that keeps every 'before' of the reference is right."""
    letters = [chr(ord("A") + i) for i in range(len(exercise.lines))]
    words = answer if isinstance(answer, (list, tuple)) else []
    if isinstance(answer, str):
        words = re.split(r"[^A-Za-z]+", answer)
    given = [str(word).strip().upper() for word in words if str(word).strip()]
    if len(given) == 1:                                 # "BDAC" in one word
        given = list(given[0])
    if sorted(given) != letters:
        shown = " ".join(letters)
        return _wrong(exercise, f'expected each of the letters {shown} once, such as "{shown}"; got {_as_written(answer)}.')
    name = known.broken_rule(given)
    if name is None:
        return _right(exercise)
    mistake = next(mistake for mistake in exercise.mistakes if mistake.name == name)
    return _wrong(exercise, f"{mistake.seen(Case((), {'': ' '.join(given)}, {}))} {mistake.why}", (name,))


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


def _as_written(value) -> str:
    """A value for a message, cut off where it is long."""
    return value.what if isinstance(value, Odd) else repr(str(value)[:60])


def _open(exercise: Exercise) -> Verdict:
    low, high = exercise.minutes
    return Verdict("open", (), f"○ {exercise.id} {exercise.title}: not tried yet ({low}–{high} minutes).")


def _right(exercise: Exercise) -> Verdict:
    return Verdict("right", (), f"✓ {exercise.id} {exercise.title}: right.")


def _wrong(exercise: Exercise, text: str, names: tuple[str, ...] = ()) -> Verdict:
    return Verdict("wrong", names, f"✗ {exercise.id} {exercise.title}: {text}")


def _of(name: str) -> str:
    return f" of {name!r}" if name else ""


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
