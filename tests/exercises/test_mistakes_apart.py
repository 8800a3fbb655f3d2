"""Known mistakes are told apart, whatever inputs are drawn: a name for an answer must not be one of several."""

import itertools

import pytest
import torch

from course_utils.exercises.catalogue import answers_to, list_exercises
from course_utils.exercises.compare import close
from course_utils.exercises.judge import _with_nan_marked
from course_utils.exercises.sealed import RIGHT, Solved

SEEDS = (0, 2, 3, 4, 5, 7, 12, 17, 20, 24)
FUNCTIONS = [exercise for exercise in list_exercises() if exercise.kind == "function"]


def alike(exercise, solved: Solved, seed: int) -> set[tuple[str, str]]:
    """The pairs of answers, mistakes or the right one, that give the same on every input of a seed."""
    pairs = set(itertools.combinations((RIGHT, *solved.names), 2))
    for index, inputs in enumerate(exercise.probes(torch.Generator().manual_seed(seed))):
        gives = {name: solved.gives(name, index, inputs) for name in {name for pair in pairs for name in pair}}
        gives = {name: _with_nan_marked(found) for name, found in gives.items() if found is not None}      # None: it failed
        pairs = {(one, other) for one, other in pairs if one in gives and other in gives
                 and close(gives[one], gives[other], exercise.tolerance)}
    return pairs


@pytest.mark.slow
@pytest.mark.parametrize("exercise", FUNCTIONS, ids=[exercise.id for exercise in FUNCTIONS])
def test_no_two_mistakes_give_the_same_on_every_input_of_any_seed(exercise):
    solved = Solved(exercise, answers_to(exercise.id))
    found = {seed: pairs for seed in SEEDS if (pairs := alike(exercise, solved, seed))}
    assert not found, f"add an input on which they differ: {found}"
