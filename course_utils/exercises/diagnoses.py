"""What can be said of any answer whose numbers are off in one simple way, whatever the exercise.

Off by a factor or by a constant, transposed, one place late or early, a sum for a mean, a softmax over another axis, scores
that are too large or too small behind a softmax. A factor is looked for among the sizes that the exercise's signature names
and their roots: 'your scores are 2.45 times too large, and √d_k is 2.45 here'.

One of these is said only if it explains *every* input, exactly, and no other does: where the inputs' sizes don't tell two of
them apart, nothing is said. Known mistakes go first (see `judge`). Does: find such a sentence. Does not: give it a name.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch

from course_utils.exercises.compare import close
from course_utils.exercises.definitions import Case, Exercise, halves_of
from course_utils.exercises.running import names_of_inputs
from course_utils.exercises.say import name_of_part

EXACT = 1e-3                                            # never explained more loosely than that
SCORES = "your scores are"                               # those behind a softmax
SAME = 1e-2                                             # a factor this near to 1 is none


class Guess(NamedTuple):
    """Something that may have gone wrong with a part: what it would `give` for a case, and the `words` if it did."""

    give: Callable[[Case], torch.Tensor | None]
    words: str


def explained(exercise: Exercise, cases: Sequence[Case]) -> str | None:
    """The one simple thing that explains what all cases got instead of the right answer, as sentences; else None."""
    found = set()
    for part in cases[0].right:
        if part.startswith("gradient") or not all(isinstance(side.get(part), torch.Tensor) for case in cases
                                                  for side in (case.got, case.right)):
            continue
        if all(_right(exercise, case, part) for case in cases):
            continue
        if not all(_others_follow(exercise, case, part) for case in cases):
            continue
        found |= {guess.words for guess in _guesses(exercise, cases, part)
                  if all(_fits(exercise, case, part, guess.give(case)) for case in cases)}
    return found.pop() if len(found) == 1 else None


def _right(exercise: Exercise, case: Case, part: str) -> bool:
    return _fits(exercise, case, part, case.right[part])


def _fits(exercise: Exercise, case: Case, part: str, expected) -> bool:
    return expected is not None and close({"": case.got[part]}, {"": expected}, min(EXACT, exercise.tolerance))


def _others_follow(exercise: Exercise, case: Case, part: str) -> bool:
    """Whether the other parts are right, or what they should be, given the learner's own part."""
    if case.got.keys() != case.right.keys():
        return False
    for other in case.right.keys() - {part}:
        try:
            expected = exercise.follows[other](case) if other in exercise.follows else case.right[other]
            if not _fits(exercise, case, other, expected):
                return False
        except Exception:                               # the parts don't fit together
            return False
    return True


def _guesses(exercise: Exercise, cases: Sequence[Case], part: str) -> Iterator[Guess]:
    name, rights = name_of_part(exercise, cases[0].right, part), [case.right[part] for case in cases]
    whose = f"your {name} {'are' if name.endswith('s') else 'is'}"
    pairs = [(case.got[part], right) for case, right in zip(cases, rights)]
    different = len(torch.cat([right.flatten() for right in rights]).unique())
    if different < 2:                                   # nothing tells one reason from another
        return
    if all(right.dim() >= 2 for right in rights):
        yield Guess(lambda case: case.right[part].mT, f"{whose} right, but transposed: the last two dimensions are "
                    "exchanged.")
    if any(got.shape != right.shape or not got.isfinite().all() or not right.isfinite().all() for got, right in pairs):
        return
    yield from _shifted(part, whose, min(right.dim() for right in rights), _dimensions(exercise, part))
    if different > 2:
        off = torch.cat([(got - right).flatten() for got, right in pairs]).mean().item()
        yield Guess(lambda case: case.right[part] + off, f"{whose} off by the same amount everywhere: {abs(off):.3f} too "
                    f"{'large' if off > 0 else 'small'}.")
        factor = sum((got * right).sum() for got, right in pairs) / sum((right * right).sum() for _, right in pairs)
        yield from _times(exercise, cases, whose, float(factor), lambda case, by: case.right[part] * by)
    if all(map(_is_softmax, rights)) and all((got >= 0).all() for got, _ in pairs):
        yield from _times(exercise, cases, SCORES, _factor_of_scores(pairs),
                          lambda case, by: (by * case.right[part].log()).softmax(-1).nan_to_num())
        yield Guess(lambda case: _of_other_axis(case.got[part], case.right[part]), f"{whose} positive and sum to one along "
                    "the dimension before the last, and should along the last: the softmax, or the division by a sum, runs "
                    "over another axis.")


def _shifted(part: str, whose: str, depth: int, dimensions: list[str]) -> Iterator[Guess]:
    """The right numbers one place late or early along a dimension; zeros, the last or the first one again at the edge."""
    for back, by, edge in itertools.product(range(1, depth + 1), (1, -1), ("round", "zero", "again")):
        def moved(case: Case, back=back, by=by, edge=edge) -> torch.Tensor:
            whole = case.right[part].roll(by, -back)
            first = 0 if by > 0 else whole.shape[-back] - 1
            if edge != "round" and whole.numel():
                whole.select(-back, first).copy_(case.right[part].select(-back, first) * (edge == "again"))
            return whole

        along = f"`{dimensions[-back]}`" if back <= len(dimensions) else f"dimension -{back}"
        yield Guess(moved, f"{whose} right, but every number stands one place too {'late' if by > 0 else 'early'} along "
                    f"{along}.")


def _times(exercise: Exercise, cases: Sequence[Case], whose: str, factor: float, made: Callable) -> Iterator[Guess]:
    """A factor: one of the inputs' sizes, a quotient of two, or the root of either; or the same number on all inputs."""
    sizes = [_sizes(exercise, case) for case in cases]
    named = [name for name in sizes[0] if all(name in each for each in sizes) and any(each[name] > 1 for each in sizes)]
    for above, below in itertools.permutations(["", *named], 2):
        for power, sign in ((1, ""), (0.5, "√")):
            def by(case: Case, above=above, below=below, power=power) -> float:
                size = _sizes(exercise, case)
                return (size.get(above, 1) / size.get(below, 1)) ** power

            shown = max((by(case) for case in cases), key=lambda one: abs(math.log(one)))
            more, less = (above, below) if shown > 1 else (below, above)
            label = f"{sign}({more} / {less})" if more and less else f"{sign}{more or less}"
            advice = (f"One of these two in place of the other: {sign}{more}, {sign}{less}?" if more and less else
                      f"A sum over `{above}` instead of the mean?" if above and power == 1 and whose != SCORES else
                      "A division by it is missing, or a multiplication too many." if above else
                      "It's divided by that once too often, or not multiplied.")
            yield Guess(lambda case, by=by: made(case, by(case)), f"{whose} {_too(shown)}, and {label} is "
                        f"{max(shown, 1 / shown):.3g} here. {advice}")
    if abs(factor + 1) < EXACT:
        yield Guess(lambda case: made(case, -1), f"{whose} of the wrong sign.")
    elif abs(factor - 1) > SAME and factor:
        yield Guess(lambda case: made(case, factor), f"{whose} {_too(factor)} on every input, by the same factor.")


def _too(factor: float) -> str:
    return f"{factor:.3g} times too large" if abs(factor) > 1 else f"{1 / factor:.3g} times too small"


def _is_softmax(right: torch.Tensor) -> bool:
    if not right.dim() or not right.numel() or (right < 0).any():
        return False
    sums = right.sum(dim=-1)
    return bool((((sums - 1).abs() < EXACT) | (sums == 0)).all())


def _factor_of_scores(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """How many times the scores behind some weights are those behind the right ones, by the weights above 0."""
    above = below = 0.0
    for got, right in pairs:
        there = (got > 1e-30) & (right > 1e-30)
        mine, wanted = (torch.where(there, part, 1.0).log() for part in (got, right))
        mine, wanted = (torch.where(there, part - part.sum(-1, True) / there.sum(-1, True).clamp(min=1), 0.0)
                        for part in (mine, wanted))
        above, below = above + (mine * wanted).sum().item(), below + wanted.square().sum().item()
    return above / below if below else 1.0


def _of_other_axis(got: torch.Tensor, right: torch.Tensor) -> torch.Tensor | None:
    """`got` itself if it's a softmax of the same scores over the dimension before the last, else None."""
    if got.dim() < 2 or not _is_softmax(got.mT) or (got <= 0).any() or (right <= 0).any():
        return None
    apart = got.log() - right.log()                     # the logarithms of two sums: one for each row, one for each column
    rest = apart - apart.mean(-1, True) - apart.mean(-2, True) + apart.mean((-2, -1), True)
    return got if rest.abs().max() < EXACT else None


def _sizes(exercise: Exercise, case: Case) -> dict[str, int]:
    """The sizes of the inputs' dimensions, by the names that the signature gives them."""
    sizes: dict[str, set] = {}
    given = halves_of(exercise.signature)[0].partition("(")[2]
    for name, value in zip(names_of_inputs(exercise), case.inputs):
        found = re.search(rf"\b{re.escape(name)} \(([^()]*)\)", given)
        if found and isinstance(value, torch.Tensor):
            for dimension, size in zip(_words(found[1])[::-1], list(value.shape)[::-1]):
                sizes.setdefault(dimension, set()).add(size)
    return {name: one for name, (one, *others) in sizes.items() if name.isidentifier() and one and not others}


def _dimensions(exercise: Exercise, part: str) -> list[str]:
    """What the signature calls the dimensions of a part of the result."""
    result = halves_of(exercise.signature)[1]
    found = re.search(rf"\b{re.escape(part)} \(([^()]*)\)" if part and not part.isdigit() else r"\(([^()]*)\)", result)
    return _words(found[1]) if found else []


def _words(dimensions: str) -> list[str]:
    return [one.strip() for one in dimensions.split(",") if one.strip()]
