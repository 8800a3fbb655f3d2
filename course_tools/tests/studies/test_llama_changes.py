"""The result set of the four changes, and the interval of a difference in bits per byte."""

import math

import numpy as np
import pytest
import torch

from course_tools.studies.sets import llama_changes as changes
from course_tools.studies.text_windows import TextWindows
from course_utils.language_model import LanguageModelConfig
from course_utils.llama import GroupedQueryAttention, Llama, SwiGLU
from course_utils.results import difference_in_bits, read_runs


def test_all_models_have_the_same_number_of_parameters_within_a_hundredth():
    aim = changes.parameters_of(changes.GPT, changes.WIDTH)
    sizes = {row: changes.parameters_of(options, changes.config_of(row).d_ff) for row, options in changes.ROWS.items()}
    assert len(sizes) == 6 and sizes["GPT"] == aim
    assert max(abs(size / aim - 1) for size in sizes.values()) < 0.001
    assert changes.parameters_of({}, 8) == sum(p.numel() for p in Llama(changes.LlamaConfig(
        **changes.SHAPE, d_ff=8)).parameters())


def test_each_row_changes_one_thing_and_the_last_all_four():
    for row, options in changes.ROWS.items():
        differs = {name for name, value in options.items() if value != changes.GPT[name]}
        assert len(differs) == (0 if row == "GPT" else 4 if row == "Llama" else 1), row
    block = Llama(changes.config_of("Llama")).decoder.blocks[0]
    assert isinstance(block.attention, GroupedQueryAttention) and isinstance(block.feed_forward, SwiGLU)
    assert isinstance(changes.config_of("GPT"), LanguageModelConfig)


def test_the_first_steps_of_an_epoch_are_drawn_anew_and_are_the_same_for_the_same_seed():
    data = changes.FirstSteps(TextWindows(torch.arange(500), 4, 5), 3)
    assert len(data) == len(list(data.batches(1))) == 3
    again, other = (torch.stack(list(data.batches(seed))) for seed in (1, 2))
    assert torch.equal(torch.stack(list(data.batches(1))), again) and not torch.equal(again, other)
    assert data.fingerprint != changes.FirstSteps(data.data, 2).fingerprint


def test_every_committed_run_is_of_a_row_that_there_is_and_says_its_parameters():
    for run in read_runs("llama_changes"):
        assert run["parameters"] == changes.parameters_of(changes.ROWS[run["model"]], run["change"]["d_ff"])
        bits = sum(run["validation"]["nats"]) / math.log(2) / sum(run["validation"]["bytes"])
        assert bits == pytest.approx(run["validation"]["bits_per_byte"], abs=1e-3)


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


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng, covered = np.random.default_rng(0), []
    for _ in range(400):                                 # texts of unequal size and hardness, seeds of unequal luck
        sizes = rng.integers(1000, 30000, 12)
        hardness = rng.normal(1.4, 0.3, 12)
        sides = [sizes * (hardness + rng.normal(0, 0.02, 12) + rng.normal(0, 0.01, (3, 1))) for _ in range(2)]
        mean, half = difference_in_bits(*sides, sizes)
        covered.append(abs(mean) <= half)
    assert 0.92 <= np.mean(covered) <= 1.0
