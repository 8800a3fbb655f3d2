"""A claim prints what holds and stops what does not."""

import pytest
import torch

from course_utils.claims import claim


def test_a_claim_that_holds_is_printed_with_its_number(capsys):
    claim("water is wet", True, 0.123456)
    claim("twins tie", torch.tensor(True), [1e-7, torch.tensor(2.0)])
    assert capsys.readouterr().out == "✓ water is wet  [0.1235]\n✓ twins tie  [0.0000, 2.0000]\n"


def test_a_claim_that_does_not_hold_stops_the_notebook():
    with pytest.raises(AssertionError, match=r"no longer true: water is dry  \[7\]"):
        claim("water is dry", False, 7)
