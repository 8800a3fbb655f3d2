"""What the cells of notebook 12 define is what `course_utils.results.difference` computes."""

import math

import numpy as np
import pytest
from lesson_cells import cells_of
from scipy import stats

from course_utils.results import by_model, difference, read_runs, right_of

RUNS = by_model(read_runs("ablations"))


@pytest.fixture(scope="module")
def compare():
    """The notebook's function, from its cell alone."""
    names = {"np": np, "math": math, "stats": stats}
    exec(cells_of("12_comparing_models")["compare"], names)
    return names["compare"]


@pytest.mark.parametrize("row", ["BiLSTM, equal parameters", "0 layers", "no scaling", "mean pooling", "width 64"])
def test_the_notebooks_interval_is_the_packages(compare, row):
    sides = [np.array([right_of(run) for run in RUNS[model]], float) for model in (row, "the default")]
    found, half, p = compare(*sides)
    assert (found, half) == pytest.approx(difference(RUNS[row], RUNS["the default"]), rel=1e-9)
    assert (p < 0.05) == (abs(found) > half)
