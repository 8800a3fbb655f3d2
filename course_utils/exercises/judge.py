"""Judges an answer: right, a known mistake, or wrong because it lacks a property.

Does: run an answer on fresh inputs, compare its results with those of the course's answer and of the known mistakes,
and say one thing about it. Does not: contain exercises or their solutions (see notebooks/exercises), or save progress (see
`record`).

The questions, in order: did it run, did it leave its inputs alone, is it the right kind of thing, is it right, is it one
of the known mistakes on *every* input, which property fails first. A known mistake is named only if it agrees on every
input. For any other answer `diagnoses` may have a word; if no property fails either, the message shows the largest
difference and doesn't guess.
"""

import re
from collections.abc import Sequence
from types import CodeType

import torch

from course_utils.exercises import say, workers
from course_utils.exercises.compare import (
    NotNumbers,
    Unreadable,
    as_digits,
    as_row,
    close,
    distance,
    in_form_of,
    named_tensors,
    readings,
)
from course_utils.exercises.definitions import Answers, Case, Exercise, Mistake, Verdict
from course_utils.exercises.diagnoses import explained
from course_utils.exercises.running import Handed, Run, Side, usual_settings
from course_utils.exercises.sealed import RIGHT, Key, Solved
from course_utils.files.switches import is_on

SEED = 0  # of the inputs; grading takes another
AS_GIVEN = "The code you were given does the same, and that's what you have to fix."     # if its mistake is still there
NOT_RIGHT = "your answer isn't right."
FAILED = "not judged, because the check itself failed"


def judge(exercise: Exercise, answers: Answers | Key, answer, seed: int = SEED) -> Verdict:
    """The verdict on an answer; never raises, whatever the answer or the check does.

    `answer` is a function, which runs in the worker process (see `workers`), a value, or a `running.Side`.
    """
    side = answer if isinstance(answer, Side) else workers.InWorker(exercise, answer)
    try:
        with usual_settings():
            verdict = _judge(exercise, answers, side, seed)
            untouched = exercise.given in verdict.names and is_as_given(exercise, answer)
            return Verdict("open", verdict.names, f"○{verdict.text[1:]}") if untouched else verdict
    except Exception as error:
        said = str(error).strip().partition("\n")[0][:200]
        return _failed(exercise, f"{type(error).__name__}: {said}" if said else type(error).__name__)


def is_as_given(exercise: Exercise, answer) -> bool:
    """Whether a function or a class is the one that the exercise's cell gives to be repaired, to the letter."""
    try:
        given = _compiled(compile(exercise.stub, "cell", "exec"))
    except SyntaxError:
        return False
    methods = vars(answer).values() if isinstance(answer, type) else [answer]
    own = [_compiled(method.__code__) for method in methods if hasattr(method, "__code__")]
    return bool(own) and all(_contains(given, one) for one in own)


def _compiled(code: CodeType) -> tuple:
    """What a piece of code does, whatever its file and its lines."""
    constants = tuple(_compiled(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


def _contains(code: tuple, wanted: tuple) -> bool:
    return code == wanted or any(isinstance(one, tuple) and _contains(one, wanted) for one in code[-1])


def _judge(exercise: Exercise, answers: Answers | Key, side: Side, seed: int) -> Verdict:
    handed = side.describe()
    known = answers if isinstance(answers, Key) else Solved(exercise, answers, seed)
    if exercise.kind != "function":
        return _judge_value(exercise, known, handed)
    a_class = exercise.signature[:1].isupper()
    if handed.kind in ("nothing", "value") or (handed.kind == "instance" and a_class):
        return _wrong(exercise, say.of_handed(exercise, handed.kind, handed.type))
    if handed.kind == "stub":
        return _open(exercise)
    return _judge_runs(exercise, known, side.runs(seed), seed)


def _judge_runs(exercise: Exercise, known: Solved, runs: Sequence[Run], seed: int) -> Verdict:
    """The verdict on what a function did on each set of inputs."""
    cases = []
    for index, inputs in enumerate(exercise.probes(torch.Generator().manual_seed(seed))):
        if index >= len(runs):
            return _wrong(exercise, f"It returned results for only {len(runs)} of its inputs.")
        result = runs[index]
        if result.error is not None and result.error.type == "CheckFailed":
            return _failed(exercise, "it took too long")
        trouble = _trouble(exercise, result, inputs)
        if trouble and index == 0 and _not_written(result):
            return _open(exercise)
        if trouble:
            return _wrong(exercise, trouble)
        right = known.gives(RIGHT, index, inputs)
        if right is None:
            return _failed(exercise, "the course's own answer gives nothing here")
        cases.append(Case(inputs, in_form_of(named_tensors(result.output), right), right))
    if all(close(case.got, case.right, exercise.tolerance) for case in cases):
        return _right(exercise)
    fitting = [mistake for mistake in exercise.mistakes if mistake.name in known.names
               and _fits(exercise, known, mistake.name, cases)]
    if fitting:
        return _named(exercise, fitting, cases)
    return _wrong(exercise, explained(exercise, cases) or _by_property(exercise, cases, [run.output for run in runs]))


def _not_written(result: Run) -> bool:
    """Whether a function stopped at a `raise NotImplementedError` of its own."""
    return (result.error is not None and result.error.type == "NotImplementedError"
            and result.error.line.startswith("raise NotImplementedError"))


def _fits(exercise: Exercise, known: Solved, name: str, cases: Sequence[Case]) -> bool:
    """Whether a known mistake gives the same results as the learner's answer, on every input."""
    for index, case in enumerate(cases):
        output = known.gives(name, index, case.inputs)
        if output is None or not close(_with_nan_marked(case.got), _with_nan_marked(output), exercise.tolerance):
            return False
    return True


def _with_nan_marked(named: dict) -> dict:
    """NaN replaced by a number that nothing else gives, so that outputs with NaN in the same positions are equal."""
    return {name: value if isinstance(value, str) else torch.nan_to_num(value, nan=7e7) for name, value in named.items()}


def _named(exercise: Exercise, fitting: Sequence[Mistake], cases: Sequence[Case]) -> Verdict:
    """The verdict for one known mistake, or for several that behaviour cannot tell apart."""
    wrong = _wrong_cases(exercise, cases)
    texts = [f"{_seen(mistake, wrong) if mistake.seen else explained(exercise, cases) or NOT_RIGHT} {mistake.why}".strip()
             for mistake in fitting]
    text = texts[0] if len(texts) == 1 else "one of these, which give the same results: " + " — or: ".join(texts)
    names = tuple(mistake.name for mistake in fitting)
    if exercise.given in names:
        seen = _seen(fitting[names.index(exercise.given)], wrong)
        text = f'{seen} {AS_GIVEN} exercise("{exercise.id}").hint(1) gets you started.'
    elif all(mistake.convention for mistake in fitting):
        return Verdict("other", names, f"≈ {exercise.id} {exercise.title}: {text}")
    return _wrong(exercise, text, names)


def _seen(mistake: Mistake, wrong: Sequence[Case]) -> str:
    """What a mistake says of the first of some cases that it can speak of: not every case has a word that occurs twice."""
    for case in wrong:
        try:
            return mistake.seen(case)
        except Exception:
            continue
    return NOT_RIGHT


def _by_property(exercise: Exercise, cases: Sequence[Case], outputs: Sequence) -> str:
    """The first thing that is wrong: parts, shape, finiteness, the exercise's properties, the values, the gradients' NaN."""
    for case, output in zip(cases, outputs):
        if case.right.keys() != case.got.keys():
            return say.of_parts(exercise, output, case.got, case.right)
        for name, right in case.right.items():
            got = case.got[name]
            if isinstance(right, str) or isinstance(got, str):
                continue
            if got.shape != right.shape:
                return say.of_shape(exercise, output, case, name)
        not_finite = say.of_not_finite(exercise, case)
        if not_finite:
            return not_finite
    said = say.of_precision(cases, outputs, exercise.tolerance) or _failing_property(exercise, cases)
    in_gradients = (say.of_not_finite(exercise, case, gradients=True) for case in cases)
    return said or next(filter(None, in_gradients), None) or say.of_largest_difference(exercise, cases)


def _wrong_cases(exercise: Exercise, cases: Sequence[Case]) -> list[Case]:
    """The cases in which the answer is wrong, the one that is furthest off first."""
    wrong = [case for case in cases if not close(case.got, case.right, exercise.tolerance)]
    return sorted(wrong, key=lambda case: distance(case.got, case.right), reverse=True)


def _failing_property(exercise: Exercise, cases: Sequence[Case]) -> str | None:
    """The message of the first property that fails, about the worst of the cases in which it does."""
    wrong = _wrong_cases(exercise, cases)
    for rule in exercise.properties:
        for case in wrong:
            try:
                if rule.fails(case):
                    return f"{rule.seen(case)} {rule.why}"
            except Exception:  # a property made for another shape of answer says nothing
                continue
    return None


def _trouble(exercise: Exercise, result: Run, inputs: tuple) -> str | None:
    """What to say about an answer that has no output to compare, or that changed its input."""
    if result.error is not None:
        return say.of_error(exercise, result.error, inputs)
    if result.output is None:
        return f"It returns None. The last line must be `return …`. {say.asked_for(exercise)}"
    try:
        named_tensors(result.output)
    except NotNumbers as error:
        return say.of_unreadable(exercise, result.output, str(error))
    if result.changed:
        return say.of_changed_input(exercise, result.changed[0], inputs)
    return None


def _judge_value(exercise: Exercise, known: Solved | Key, handed: Handed) -> Verdict:
    """Numbers and orders: the answer itself is compared with the value that each known mistake leads to."""
    answer = handed.value
    if handed.kind == "nothing":
        return _open(exercise)
    if exercise.kind == "order":
        return _judge_order(exercise, known, answer)
    form = known.form()
    try:
        values = readings(answer)
        if getattr(form.get(""), "shape", None) == ():      # one number: it may be written as a list of digits
            values = [value if as_digits(value) is None else as_digits(value) for value in values]
        meanings = [as_row(in_form_of(named_tensors(value), form), form) for value in values]
    except NotNumbers as error:
        return _wrong(exercise, f"You give {error}. {say.asked_for(exercise)}")
    got = next((meaning for name in (RIGHT, *known.names) for meaning in meanings if known.is_value(name, meaning)),
               meanings[0])
    if known.is_value(RIGHT, got):
        return _right(exercise)
    case = Case((), got, known.right_value() or Unknown())
    fitting = [mistake for mistake in exercise.mistakes if known.is_value(mistake.name, got)]
    if fitting:
        return _named(exercise, fitting, [case])
    shapes = [{name: getattr(value, "shape", None) for name, value in part.items()} for part in (got, form)]
    if shapes[0] != shapes[1]:
        return _wrong(exercise, say.of_form(exercise, got))
    seen = _failing_property(exercise, [case])
    return _wrong(exercise, seen or say.of_number(exercise, got, known.right_value(), known.is_near(got)))


class Unknown(dict):
    """Replaces the right value where only its fingerprints are known; a property that needs it is skipped."""

    def __missing__(self, part: str):
        raise LookupError("this edition of the course does not hold the right value")


def _judge_order(exercise: Exercise, known: Solved | Key, answer) -> Verdict:
    """Lines to put in order: any order that keeps every 'before' of the reference is right."""
    letters = [chr(ord("A") + i) for i in range(len(exercise.lines))]
    words = answer if isinstance(answer, (list, tuple)) else []
    if isinstance(answer, str):
        words = re.split(r"[^A-Za-z]+", answer)
    given = [str(word).strip().upper() for word in words if str(word).strip()]
    if len(given) == 1:                                 # "BDAC" in one word
        given = list(given[0])
    if sorted(given) != letters:
        shown = " ".join(letters)
        return _wrong(exercise, f'Expected each of the letters {shown} once, such as "{shown}"; got {_as_written(answer)}.')
    name = known.broken_rule(given)
    if name is None:
        return _right(exercise)
    mistake = next(mistake for mistake in exercise.mistakes if mistake.name == name)
    return _wrong(exercise, f"{mistake.seen(Case((), {'': ' '.join(given)}, {}))} {mistake.why}", (name,))


def _as_written(value) -> str:
    """A value for a message, cut off where it is long."""
    return value.what if isinstance(value, Unreadable) else repr(str(value)[:60])


def _open(exercise: Exercise) -> Verdict:
    low, high = exercise.minutes
    return Verdict("open", (), f"○ {exercise.id} {exercise.title}: not tried yet ({low}–{high} minutes).")


def _failed(exercise: Exercise, why: str) -> Verdict:
    return Verdict("open", (), f"○ {exercise.id} {exercise.title}: {FAILED} ({why}). Your answer isn't the reason. Restart "
                   "the kernel and check it again.")


def _right(exercise: Exercise) -> Verdict:
    return Verdict("right", (), f"✓ {exercise.id} {exercise.title}: right.")


def _wrong(exercise: Exercise, text: str, names: tuple[str, ...] = ()) -> Verdict:
    return Verdict("wrong", names, f"✗ {exercise.id} {exercise.title}: {text}")


def strict() -> bool:
    """Whether a wrong answer raises: COURSE_STRICT=1."""
    return is_on("COURSE_STRICT")
