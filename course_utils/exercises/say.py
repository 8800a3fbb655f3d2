"""The wording of a check: about errors, results in the wrong form, and numbers that match no known mistake.

Does: write sentences with the names that the exercise's signature gives to inputs and results. Does not: decide (see
`judge`), or know any exercise (the messages for known mistakes are in notebooks/exercises).
"""

import re
from collections.abc import Sequence

import numpy as np
import torch

from course_utils.exercises.compare import NotNumbers, Unreadable, article, named_tensors
from course_utils.exercises.definitions import Case, Exercise, halves_of
from course_utils.exercises.running import Failure, names_of_inputs

COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NOBODY = "there is nobody to ask for input"             # the message of a worker's EOFError
PLACES = ("first", "second", "third", "fourth", "fifth", "sixth")
CUT_OFF = "NumPy, .item(), .detach(), no_grad() or a new torch.tensor(…) along the way cuts it off."
NOTHING_BEHIND = "does not require grad and does not have a grad_fn"
OWN_BACKWARD = ("Nothing behind this number requires a gradient, so there's no way back from it. Before you compute it, "
                "make the tensor that you differentiate by require one, `W = W.detach().clone().requires_grad_()`; "
                "afterwards no_grad(), .item() or NumPy would cut the way off.")
KNOWN_ERRORS = (                                        # PyTorch's messages that tell a learner little
    ("modified by an inplace operation", "No gradient can be computed: a tensor that the backward pass still needs is "
     "changed in place, as in `weights[~mask] = 0` or `x += …`. Make a new tensor instead, with torch.where, masked_fill "
     "(without _) or `x = x + …`."),
    ("in-place operation", "You change an input that needs a gradient in place. It belongs to the code that calls your "
     "function, so make a new tensor: write `x = x + …`, not `x += …`."),
    (NOTHING_BEHIND, f"No gradient flows back through your result. {CUT_OFF}"),
    ("division by zero", "You divide by 0 here. If you divide by a count, does it go up where it should? Some inputs are "
     "small on purpose: a single batch, a single token."),
    ("cannot access local variable", "That variable gets a value only inside a loop or an `if` that doesn't run for this "
     "input. Give it a value before that."),
    ("Boolean value of Tensor with more than one value is ambiguous", "`and`, `or`, `not` and `if` want a single True or "
     "False. For a tensor of them write &, | and ~, with each comparison in parentheses; for the whole, .any() or .all()."),
    ('"bitwise_and_cpu" not implemented', "& binds more tightly than <, so `a & b < 0.5` is read as `(a & b) < 0.5`. Put "
     "each comparison in parentheses: `a & (b < 0.5)`."),
    ("Target -1 is out of bounds", "cross_entropy leaves out targets of -100, and no others unless you name them: "
     "ignore_index=-1."),
    ("torch.return_types.", "With a dim, max, min, median, sort and topk return two things: the values, and the positions "
     "where they stood. Take `.values`, or call amax or amin."),
    ("math domain error", "math.log takes numbers above 0 only, math.sqrt none below. A probability can be so small that "
     "it's rounded to 0: compute its logarithm from the scores, in one go, without the probability."),
    (NOBODY, "Nobody can be asked here, so it can't go on. Take what you need from the arguments instead of from "
     "`input()`."),
    ("step must be greater than zero", "PyTorch can't take a tensor backwards with [::-1]. Write .flip(0), or sort with "
     "descending=True."),
)


def counted(number: int) -> str:
    """A small number in words: 'two'."""
    return COUNTS[number] if number < len(COUNTS) else str(number)


def listed(names: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def asked_for(exercise: Exercise) -> str:
    """What a right answer looks like: 'It should return context (…), weights (…).'"""
    given, result = halves_of(exercise.signature)
    return f"It should return {result}." if result else f"The answer should be {given}."


def names_of_results(exercise: Exercise) -> list[str]:
    """The results in an exercise's signature, if there are several: ['context', 'weights']."""
    result = halves_of(exercise.signature)[1]
    while re.search(r"\([^()]*\)", result):
        result = re.sub(r"\([^()]*\)", "", result)
    names = [part.strip() for part in result.split(",")]
    return names if len(names) > 1 and all(names) and not result.strip().startswith("list") else []


def names_of_parts(exercise: Exercise, right: dict) -> list[str]:
    """The names of the parts of the right answer: those that `observe` returns, else those in the signature."""
    if "0" not in right:
        return list(right)
    names = names_of_results(exercise)
    return names if len(names) == len(right) else [f"{PLACES[i]} result" for i in range(min(len(right), len(PLACES)))]


def two_as_one(exercise: Exercise, right: dict) -> bool:
    """Whether the right answer is several numbers, each with a name, that were read as one tensor."""
    form = right.get("")
    return isinstance(form, torch.Tensor) and form.dim() == 1 and len(form) == len(names_of_results(exercise))


def name_of_part(exercise: Exercise, right: dict, part: str) -> str:
    """One part in a sentence: 'weights', or 'result' if there is only one."""
    names = dict(zip(right, names_of_parts(exercise, right)))
    return names.get(part) or "result"


def of_error(exercise: Exercise, error: Failure, inputs: tuple) -> str:
    """What to say about an error that the function raised."""
    if error.type == "ProcessDied":
        return ("Your function ended the Python process it ran in. Look for os._exit, a crash in a library, far too much "
                "memory, or something of Python's own that it replaces.")
    if error.type in ("NeverEnds", "Waits"):
        return of_stop(error)
    if error.type == "RecursionError":
        return "Your function calls itself forever (RecursionError). Which input should stop it?"
    said = error.message.strip().splitlines()
    message = said[0].rstrip(".") if said else "no message"
    if said and error.ours and message.startswith("expected"):
        return f"{message[0].upper()}{message[1:]}."    # raised by the exercise's own code
    where = f" in the line `{error.line}`" if error.line else ""
    if NOTHING_BEHIND in message and not error.ours:    # the learner's own backward(), not the exercise's
        return f"{error.type}{where}. {OWN_BACKWARD}"
    for beginning, meaning in KNOWN_ERRORS:
        if beginning in message:
            return f"{meaning}" if error.ours else f"{error.type}{where}. {meaning}"
    if error.ours and error.type == "TypeError" and re.search(r"argument|unexpected keyword", message):
        if exercise.signature[:1].isupper():
            return f"Your class can't be used the way the exercise describes ({message}). Expected {exercise.signature}."
        names = [f"`{name}`" for name in names_of_inputs(exercise)]
        return (f"Your function can't be called the way the exercise describes ({message}). It gets {listed(names)}: "
                f"{halves_of(exercise.signature)[0]}.")
    hint = ""
    if re.search(r"\.T\b", error.line or "") and any(isinstance(one, torch.Tensor) and one.dim() > 2 for one in inputs):
        hint = " .T reverses all dimensions of a stack; .transpose(-2, -1) swaps only the last two."
    if "must match the size" in message and re.search(r"/[^/]*\bsum\((?!.*keepdim)", error.line or ""):
        hint = " A sum that you divide by has to keep its dimension: .sum(dim=-1, keepdim=True)."
    return f"{error.type}{where}: {message}. {shapes_of(exercise, inputs)}".rstrip() + hint


def of_stop(error: Failure) -> str:
    """What to say about a function that was stopped, with the line that was running (see `clock`)."""
    where = f" in line {error.number}" + (f", `{error.line}`" if error.line else "") if error.number else ""
    if error.type == "Waits":
        return (f"It waits{where or ' for something'}, and nothing came for two minutes, so we stopped it. Look for a "
                "sleep, a lock that nobody releases, or something to read that never arrives.")
    advice = " Look for a loop whose condition never becomes false." if where else " It was in a call that doesn't end."
    return f"It didn't finish within a few seconds of computing, so we stopped it{where}.{advice}"


def shapes_of(exercise: Exercise, inputs: tuple) -> str:
    """The shapes of an exercise's inputs, with their names."""
    names = names_of_inputs(exercise)
    names = names if len(names) == len(inputs) else [""] * len(inputs)
    given = [(name, value) for name, value in zip(names, inputs) if isinstance(value, torch.Tensor)]
    shapes = [f"{name} {tuple(value.shape)}".strip() for name, value in given]
    return f"The inputs had the shapes {', '.join(shapes)}." if shapes else ""


def of_changed_input(exercise: Exercise, place: int, inputs: tuple) -> str:
    """What to say about an input that was changed in place."""
    names = names_of_inputs(exercise)
    name = names[place] if place < len(names) else f"input {place + 1}"
    advice = (f"Write `{name} = {name} + …` instead of `{name} += …`, and avoid operations whose names end in `_`. "
              f"If you assign to its elements, as in `{name}[i] = …`, work on `{name}.clone()`."
              if isinstance(inputs[place], torch.Tensor) else f"Work on a copy, `copy.deepcopy({name})`.")
    return f"Your function changes `{name}`, which belongs to the code that calls it. {advice}"


def of_unreadable(exercise: Exercise, output, what: str) -> str:
    """What to say about a result, or a part of one, that can't be read as numbers or text; `what` says what it is."""
    parts = output.items() if isinstance(output, dict) else enumerate(output) if isinstance(output, tuple) else ()
    names = names_of_results(exercise)
    for place, part in parts if not isinstance(output, Unreadable) else ():
        try:
            named_tensors(part)
        except NotNumbers as error:
            if not isinstance(place, int):
                return f"Your {place} is {error}. {asked_for(exercise)}"
            name = f", the {names[place]}," if place < len(names) else ""
            if place < len(PLACES):
                return f"Your {PLACES[place]} result{name} is {error}. {asked_for(exercise)}"
    return f"You return {what}. {asked_for(exercise)}"


def of_parts(exercise: Exercise, output, got: dict, right: dict) -> str:
    """What to say about too few or too many results."""
    names = names_of_parts(exercise, right)
    if two_as_one(exercise, right):
        names = names_of_results(exercise)
    if len(names) < 2:
        how_many = f"{counted(len(output))} parts" if isinstance(output, (list, tuple, dict)) else "several parts"
        form = next(iter(right.values()))
        one = ("one text" if isinstance(form, str) else "one number" if not form.dim() else
               f"one tensor of shape {tuple(form.shape)}")
        return f"You return {how_many}, which can't be combined into {one}. {asked_for(exercise)}"
    ending = (f"End with `return {', '.join(names)}`." if all(map(str.isidentifier, names)) else
              "Return them in this order, with a comma between them.")
    if isinstance(output, dict) and exercise.observe is None:
        keys = listed([repr(key) for key in output])
        return (f"You return a dictionary with the keys {keys}. The exercise asks for {counted(len(names))} results: "
                f"{listed(names)}. {ending}")
    if list(got) == [""] and (isinstance(got[""], str) or got[""].dim() != 1 or "0" in right):
        form = got[""]
        alone = ("a text" if isinstance(form, str) else
                 f"one result, of shape {tuple(form.shape)}" if form.dim() else "one number")
    else:
        how_many = len(output) if isinstance(output, (list, tuple)) else got[""].numel() if list(got) == [""] else len(got)
        alone = f"{counted(how_many)} results"
    return f"You return {alone}. The exercise asks for {counted(len(names))}: {listed(names)}. {ending}"


def of_shape(exercise: Exercise, output, case: Case, part: str) -> str:
    """What to say about a part with the wrong shape."""
    got, right = case.got[part], case.right[part]
    if two_as_one(exercise, case.right) and got.dim() < 2:
        return of_parts(exercise, output, case.got, case.right)
    if isinstance(output, tuple) and len(case.right) == 1 and list(got.shape)[:1] == [len(output)]:
        return (f"You return {counted(len(output))} results, each of shape {tuple(got.shape[1:])}. The exercise asks for "
                f"one, of shape {tuple(right.shape)}. {asked_for(exercise)}")
    return (f"The shape of your {name_of_part(exercise, case.right, part)} is {tuple(got.shape)}, expected "
            f"{tuple(right.shape)} here. {shapes_of(exercise, case.inputs)} {asked_for(exercise)}".replace("  ", " "))


NOT_FINITE = {                                          # kind: in a sentence, how it's found, where it comes from
    "inf": ("infinite", torch.isposinf, "Look for a division by zero, or a number too large to store."),
    "-inf": ("minus infinity", torch.isneginf, "Look for the logarithm of 0, or a division of a negative number by zero."),
    "NaN": ("NaN", torch.isnan, "Look for 0 / 0, the root of a negative number, or inf - inf."),
}


def of_not_finite(exercise: Exercise, case: Case, gradients: bool = False) -> str | None:
    """What to say about numbers that are infinite or NaN where the right ones aren't; infinite ones come first.

    Of the parts whose names begin with "gradient", with `gradients`, or of the others.
    """
    parts = list(case.right.items())[::-1]                        # weights come after the context computed from them
    for kind, (word, found, usual) in NOT_FINITE.items():
        for part, right in sorted(parts, key=lambda item: getattr(item[1], "ndim", 0) == 0):          # lone numbers last
            got = case.got[part]
            if isinstance(right, str) or isinstance(got, str) or not torch.isfinite(right).all():
                continue
            if part.startswith("gradient") != gradients:
                continue
            count = int(found(got).sum())
            if count:
                name = name_of_part(exercise, case.right, part)
                advice = exercise.not_finite.get(f"{part} {kind}") or exercise.not_finite.get(kind) or usual
                if got.numel() == 1:
                    return f"Your {name} is {word}. {advice}"
                are = "is" if count == 1 else "are"
                return f"{count} of the {got.numel()} numbers in your {name} {are} {word}. {advice}"
    return None


def of_precision(cases: Sequence[Case], outputs: Sequence, tolerance: float) -> str | None:
    """What to say about numbers that would be right if they hadn't been rounded, or computed with half the digits."""
    pairs = [(got, case.right[part]) for case in cases for part, got in case.got.items()]
    if any(isinstance(got, str) or isinstance(right, str) or not torch.isfinite(got).all() for got, right in pairs):
        return None
    kinds = {kind for output in outputs for kind in _types_in(output)} & {torch.float16, torch.bfloat16}
    if kinds and all(torch.allclose(got, right, rtol=0.02, atol=0.02) for got, right in pairs):
        name = str(kinds.pop()).removeprefix("torch.")
        return (f"Your numbers are nearly right, but they are {name}, which keeps only two or three digits. Don't change "
                "the type with .half() or .bfloat16().")
    for digits in range(6):
        reach = 0.5 * 10.0**-digits + tolerance
        if all(torch.allclose(got, got.round(decimals=digits), rtol=0, atol=1e-6) for got, _ in pairs):
            if digits and all(((got - right).abs() <= reach).all() for got, right in pairs):
                places = f"{counted(digits)} decimal{'s' if digits > 1 else ''}"
                return (f"Your numbers are rounded to {places}. They're right that far, but return them unrounded; round "
                        "only when you print.")
            return None
    return None


def _types_in(output) -> set:
    if isinstance(output, torch.Tensor):
        return {output.dtype}
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, (list, tuple)) else ()
    return {kind for part in parts for kind in _types_in(part)}


def of_largest_difference(exercise: Exercise, cases: Sequence[Case]) -> str:
    """Where the answer is furthest from the right one."""
    worst, text = -1.0, f"That isn't the right answer. {asked_for(exercise)}"
    for case in cases:
        for part, right in case.right.items():
            got, name = case.got[part], name_of_part(exercise, case.right, part)
            if isinstance(right, str) != isinstance(got, str):
                kind, other = ("a text", "numbers") if isinstance(got, str) else ("numbers", "a text")
                return f"Your {name} is {kind}, expected {other}. {asked_for(exercise)}"
            if isinstance(right, str):
                if got != right:
                    return f"Your {name} is {got[:80]!r}, expected {right[:80]!r}."
                continue
            gap = (got - right).abs()
            if gap.numel() and gap.max().item() > worst:
                worst = gap.max().item()
                place = [int(i) for i in np.unravel_index(int(gap.argmax()), tuple(gap.shape))] if gap.dim() else []
                value, wanted = got[tuple(place)].item(), right[tuple(place)].item()
                count = int((gap > exercise.tolerance).sum())
                many = f"{count} of the {gap.numel()} numbers in your {name} are off; the worst, at {place},"
                text = (f"{many if place else f'Your {name}'} is {value:.4f}, expected {wanted:.4f}. We don't recognise the "
                        "mistake, so work out this one number by hand.")
    return text


def of_number(exercise: Exercise, got: dict, right: dict | None, near: bool) -> str:
    """What to say about numbers that match no known mistake; `right` is None where only fingerprints are known."""
    values = [value for part in got.values() for value in part.flatten().tolist()]
    shown = f"{values[0]:.6g}" if len(values) == 1 else "These"
    if near:
        return (f"{shown} {'is' if len(values) == 1 else 'are'} close, but not close enough. Keep more decimals as you go, "
                "and round at the end.")
    verdict = f"{shown} isn't right" if len(values) == 1 else f"{shown} aren't the right numbers"
    if right is not None:
        wanted = [value for part in right.values() for value in part.flatten().tolist()]
        off = [i for i, (a, b) in enumerate(zip(values, wanted)) if not abs(a - b) <= exercise.tolerance * (1 + abs(b))]
        if len(values) == 1:
            verdict = f"{shown} is too {'small' if values[0] < wanted[0] else 'large'}"
        elif len(off) < len(values) <= len(PLACES):
            which = listed([PLACES[i] for i in off])
            verdict = f"The {which} of your numbers {'is' if len(off) == 1 else 'are'} off"
    place = next((i for i, hint in enumerate(exercise.hints, start=1) if i > 1 and re.search(r"\d", hint)), None)
    help_ = f"hint({place}) gives you some to compare with" if place else "hint(1) helps"
    return f"{verdict}, and we don't recognise the mistake. Write down each intermediate number; {help_}."


def of_form(exercise: Exercise, got: dict) -> str:
    """What to say about a value with more or fewer numbers than the exercise asks for."""
    if list(got) != [""]:
        seen = f"{counted(len(got))} parts of different forms"
    elif isinstance(got[""], str):
        seen = "a text"
    elif got[""].dim() == 0:
        seen = "one number"
    elif got[""].dim() == 1:
        seen = f"{counted(len(got['']))} number{'s' if len(got['']) != 1 else ''}"
    else:
        seen = f"{got[''].numel()} numbers in the shape {tuple(got[''].shape)}"
    return f"You give {seen}. {asked_for(exercise)}"


def of_handed(exercise: Exercise, kind: str, type_name: str) -> str:
    """What to say about something other than the function or class that the exercise asks for."""
    name = exercise.signature.partition("(")[0].strip()
    if kind == "instance":
        seen, what = f"an object of the class {type_name}", "the class itself, without brackets"
    else:
        seen, what = ("None" if kind == "nothing" else article(type_name)), "the function itself, without calling it"
    return f'check() got {seen}. Pass {what}: exercise("{exercise.id}").check({name}).'
