"""Long texts in windows: every token is asked for once in an epoch, at other places in the next."""

import pytest
import torch

from course_tools.studies.text_windows import TextWindows, joined

ROW = torch.arange(1, 101)


def test_each_text_comes_after_a_separator():
    assert joined([[5, 6], [], [7]], separator=0).tolist() == [0, 5, 6, 0, 0, 7]


def test_in_order_each_token_is_asked_for_once():
    windows = TextWindows(ROW, length=8, batch_size=3)
    batches = list(windows.batches(None))
    assert len(batches) == len(windows) == 3 and all(batch.shape == (3, 9) for batch in batches)
    asked = torch.cat([batch[:, 1:].flatten() for batch in batches])
    assert asked.tolist() == list(range(2, 2 + 72))


@pytest.mark.parametrize("length, batch_size, tokens", [(8, 3, 100), (5, 2, 23), (1, 1, 3), (4, 1, 9)])
def test_any_seed_stays_within_the_row_and_repeats_nothing(length, batch_size, tokens):
    windows = TextWindows(torch.arange(tokens), length, batch_size)
    for seed in range(30):
        asked = torch.cat([batch[:, 1:].flatten() for batch in windows.batches(seed)])
        assert len(asked) == len(set(asked.tolist())) == len(windows) * length * batch_size


def test_the_fingerprint_knows_the_text_and_the_cut():
    names = {TextWindows(row, length, size).fingerprint
             for row in (ROW, ROW + 1) for length in (8, 9) for size in (2, 3)}
    assert len(names) == 8


@pytest.mark.parametrize("ids, length, batch_size, words", [
    (torch.arange(24), 8, 3, "at least 33 ids"), (torch.ones(2, 50), 8, 1, r"\(2, 50\)"), (ROW, 0, 1, "length=0"),
    (ROW, 8, 0, "batch_size=0"),
])
def test_what_cannot_be_cut_is_refused(ids, length, batch_size, words):
    with pytest.raises(ValueError, match=words):
        TextWindows(ids, length, batch_size)
