"""Every answer that was ever tried gets the verdict that it got (see `frozen`): on one seed, and, slowly, on three."""

import collections

import pytest
from frozen import differences, read_rows, well_said

OF_RECORDS = ("answer = right(", "answer = mistake(")    # test_exercises judges these on the first seed
ROWS = collections.defaultdict(list)                    # by their first exercise
for each in read_rows():
    ROWS[next(iter(each["verdicts"]))].append(each)
FEW = {number: found for number, rows in ROWS.items() if (found := [
    row for row in rows if len(row["verdicts"]) == 1 and not row.get("alone") and not row["answer"].startswith(OF_RECORDS)])}
HOW = "Is it meant? Then: python tests/exercises/frozen.py --why '…'\n"


@pytest.mark.parametrize("number", FEW)
def test_an_answer_gets_the_verdict_that_it_got(number):
    found = [said for _, _, said in differences(FEW[number], seeds=(0,), look=well_said)]
    assert not found, HOW + "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("number", ROWS)
def test_every_answer_gets_it_on_every_seed(number):
    found = [said for _, _, said in differences(ROWS[number])]
    assert not found, HOW + "\n".join(found)


def test_a_verdict_that_changed_says_what_it_was_and_why():
    for rows in ROWS.values():
        for row in rows:
            for change in row.get("changed", ()):
                assert change["why"].strip() and change["was"] != row["verdicts"][change["exercise"]], row
