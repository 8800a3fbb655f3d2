"""Intervals of differences between models: over reviews and seeds, over modules of code."""

import math

import numpy as np
import pytest
from scipy import stats

from course_utils.results import difference, difference_in_bits


def runs_of(right):
    return [{"test": {"right": f"{int('1' + ''.join(str(int(bit)) for bit in row), 2):x}"}} for row in right]


@pytest.mark.parametrize("seeds", [(3, 5), (3, 15)])
def test_the_interval_of_a_difference_covers_the_truth_as_often_as_it_says(seeds):
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):                                # reviews of unequal hardness, seeds of unequal luck
        hardness = rng.normal(0, 0.1, 300)
        sides = [rng.random((n, 300)) < 0.8 + hardness + rng.normal(0, 0.02, (n, 1)) for n in seeds]
        mean, half = difference(runs_of(sides[0]), runs_of(sides[1]))
        covered.append(abs(mean) <= half)
    assert 0.92 <= np.mean(covered) <= 1.0


def test_a_difference_is_a_paired_interval_over_reviews_and_welchs_over_seeds():
    def ends(figure):
        return figure[0] - figure[1], figure[0] + figure[1]

    one, other = [1] * 7 + [0] * 3, [1] * 3 + [0] * 5 + [1] * 2            # seeds alike: only the reviews are drawn
    expected = stats.ttest_1samp(np.subtract(one, other), 0).confidence_interval()
    assert ends(difference(runs_of([one] * 2), runs_of([other] * 3))) == pytest.approx(tuple(expected))
    # each review is right for one seed of three, and for one of two: only the seeds are drawn
    three = np.repeat(np.eye(3, dtype=int), [12, 6, 2], axis=1)
    two = np.repeat(np.eye(2, dtype=int), [16, 4], axis=1)
    expected = stats.ttest_ind(three.mean(axis=1), two.mean(axis=1), equal_var=False).confidence_interval()
    assert ends(difference(runs_of(three), runs_of(two))) == pytest.approx(tuple(expected))
    # the same difference on every review; nothing is left to chance
    assert difference(runs_of([[1] * 9] * 2), runs_of([[0] * 9] * 2)) == (1.0, 0.0)
    both = [{"test": runs_of([one])[0]["test"], "validation": runs_of([other])[0]["test"]}] * 2
    assert difference(both, runs_of([one] * 2))[0] == 0
    assert difference(both, [{"validation": runs_of([one])[0]["test"]}] * 2, split="validation")[0] == pytest.approx(-0.2)


def test_a_difference_of_one_seed_is_refused():
    with pytest.raises(ValueError, match="two seeds or more"):
        difference(runs_of([[1, 0]]), runs_of([[1, 0], [1, 1]]))


def test_a_difference_in_bits_is_that_of_all_bytes_together():
    sizes = [100, 300, 50]
    ours, theirs = [[70, 200, 30], [72, 190, 33]], [[80, 220, 30], [75, 210, 37], [81, 221, 31]]
    mean, half = difference_in_bits(ours, theirs, sizes)
    bits = [np.sum(side, axis=1) / math.log(2) / 450 for side in (ours, theirs)]
    assert mean == pytest.approx(bits[0].mean() - bits[1].mean()) and half > 0
    # the same bits more for each byte, whatever the text and the seed: nothing is left to chance
    same = [[size * 0.5 for size in sizes]] * 2
    more = [[size * 0.7 for size in sizes]] * 2
    mean, half = difference_in_bits(more, same, sizes)
    assert mean == pytest.approx(0.2 / math.log(2)) and half == pytest.approx(0, abs=1e-9)


def test_the_interval_in_bits_covers_the_truth_as_often_as_it_says():
    rng, covered = np.random.default_rng(0), []
    for _ in range(400):                                 # texts of unequal size and hardness, seeds of unequal luck
        sizes = rng.integers(1000, 30000, 12)
        hardness = rng.normal(1.4, 0.3, 12)
        sides = [sizes * (hardness + rng.normal(0, 0.02, 12) + rng.normal(0, 0.01, (3, 1))) for _ in range(2)]
        mean, half = difference_in_bits(*sides, sizes)
        covered.append(abs(mean) <= half)
    assert 0.92 <= np.mean(covered) <= 1.0
