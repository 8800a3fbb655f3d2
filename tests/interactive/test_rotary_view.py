"""A query and a key that turn: scores and vectors are those of the course's class, and of the notebook's table by hand."""

import math

import pytest
import torch
from test_small_views import data_of

from course_utils.interactive import rotary_score, rotary_view
from course_utils.positional_encoding import RotaryPositions

PAIR = ((1.0, 0.0), (0.8, 0.6), (0.5,))


@pytest.mark.parametrize(("m", "n", "score"), [(2, 5, -0.5419), (6, 9, -0.5419), (20, 23, -0.5419), (5, 2, 0.6551)])
def test_the_numbers_of_notebook_06(m, n, score):
    found = rotary_score(*PAIR, m, n)
    assert round(found.score, 4) == score and found.score == pytest.approx(math.cos(found.angles[0]))


def test_two_pairs_turn_as_in_the_courses_class():
    query, key = (torch.randn(4, dtype=torch.float64) for _ in range(2))
    rotary, m, n = RotaryPositions(d_head=4), 3, 17
    turned = [rotary.rotate(vector[None, None, None], offset=at)[0, 0, 0] for vector, at in ((query, m), (key, n))]
    found = rotary_score(query.tolist(), key.tolist(), [1.0, 0.01], m, n)
    assert found.query == pytest.approx(turned[0].tolist()) and found.key == pytest.approx(turned[1].tolist())
    assert found.score == pytest.approx(float(turned[0] @ turned[1]))


def test_the_piece_starts_where_it_is_told_and_says_that_moving_both_changes_nothing():
    piece = rotary_view(*PAIR[:2], speeds=PAIR[2], m=2, n=5)
    assert data_of(piece) == {"query": [1, 0], "key": [0.8, 0.6], "speeds": [0.5], "m": 2, "n": 5, "names": ["query", "key"],
                              "farthest": 24}
    assert piece.alt.count("-0.5419") == 2 and "At 6 and 9" in piece.alt and "0.6551" in piece.alt
    assert "At 20 and 23" in rotary_view(m=21, n=24).alt or "At 17 and 20" in rotary_view(m=21, n=24).alt


@pytest.mark.parametrize(("given", "message"), [
    (dict(query=(1, 0, 0)), "query of 3 numbers"), (dict(speeds=(0.5, 0.1)), "2 speeds"),
    (dict(key=(0, 0)), "which has no angle"), (dict(n=2.5), "a whole number from 0 to 24"),
])
def test_wrong_arguments(given, message):
    with pytest.raises(ValueError, match=message):
        rotary_view(**given)
