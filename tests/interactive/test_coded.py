"""Numbers as printable characters: exact to three decimals, nothing to escape, and never much longer than their number."""

import json

import numpy as np
import pytest

from course_utils.interactive.coded import ALPHABET, MOST, decode, encode, step_for


def test_every_step_comes_back():
    steps = np.arange(MOST + 1) / MOST
    assert np.array_equal(decode(encode(steps)).round(9), steps.round(9))
    assert np.array_equal(decode(encode(steps[::-1].reshape(7, 11, 13))).round(9), steps[::-1].reshape(7, 11, 13).round(9))


@pytest.mark.parametrize("zeros", [1, 2, 3, 4, 93, 94, 1000])
def test_runs_of_zeros_come_back_whatever_stands_around_them(zeros):
    """0.085, 0.176 and 0.449 are written with the character for zero in second or third place."""
    for edge in (0.085, 0.176, 0.449, 0.54, 1.0, 0.001):
        values = [edge, *[0.0] * zeros, edge]
        assert np.allclose(decode(encode(values)), values, atol=1e-12)
    assert len(encode([0.0] * 1000)["coded"]) <= 24


def test_nothing_in_the_code_needs_to_be_escaped():
    text = encode(np.arange(MOST + 1) / MOST)["coded"]
    assert set(text) <= set(ALPHABET) and len(json.dumps(text)) == len(text) + 2
    assert not set('<"\\ ') & set(ALPHABET) and len(ALPHABET) == 91


@pytest.mark.parametrize("values", [[-0.01], [1.01], [float("nan")]])
def test_other_numbers_are_refused(values):
    with pytest.raises(ValueError, match="expected finite ones from 0 to 1"):
        encode(values)


def test_larger_numbers_take_larger_steps():
    assert [step_for(largest) for largest in (0.2, 1.0, 1.0000000001, 1.2, 73)] == [0.001, 0.001, 0.001, 0.01, 0.1]
    assert np.allclose(decode(encode([73, 0.1], step_for(73))), [73, 0.1])


def test_a_text_that_was_cut_is_refused():
    given = encode([0.5, 0.2])
    with pytest.raises(ValueError, match="don't fill the shape"):
        decode({**given, "coded": given["coded"][:-1]})
