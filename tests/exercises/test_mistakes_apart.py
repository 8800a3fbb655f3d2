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


def same(exercise, one: list, other: list) -> bool:
    """Whether two answers give the same on every input; one that fails somewhere is never the same as another."""
    return all(a is not None and b is not None and close(_with_nan_marked(a), _with_nan_marked(b), exercise.tolerance)
               for a, b in zip(one, other))


@pytest.mark.parametrize("exercise", FUNCTIONS, ids=[exercise.id for exercise in FUNCTIONS])
def test_no_two_mistakes_give_the_same_on_every_input_of_any_seed(exercise):
    alike = []
    for seed in SEEDS:
        solved = Solved(exercise, answers_to(exercise.id))
        probes = exercise.probes(torch.Generator().manual_seed(seed))
        gives = {name: [solved.gives(name, index, inputs) for index, inputs in enumerate(probes)]
                 for name in (RIGHT, *solved.names)}
        alike += [(seed, *pair) for pair in itertools.combinations(gives, 2) if same(exercise, *map(gives.get, pair))]
    assert not alike, f"add an input on which they differ: {alike}"
