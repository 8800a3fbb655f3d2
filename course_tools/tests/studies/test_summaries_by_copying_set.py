"""The result set on copied summaries: one change between its rows, twins that differ in a name, the file that was made."""

import json

import pytest

from course_tools.studies.sets import find_set
from course_tools.studies.sets import summaries_by_copying as made
from course_utils.recipes import copied_summaries as shared
from course_utils.results import read_runs
from course_utils.summaries_by_copying import PointerTransformer


def some(rows, number):
    return {key: column[:number] for key, column in rows.items()}


def test_the_rows_differ_by_the_pointer_alone():
    plain, pointer = (made.new_model(made.ROWS[row]["pointer"], 0) for row in (made.WITHOUT, made.WITH))
    more = set(pointer.state_dict()) - set(plain.state_dict())
    assert isinstance(pointer, PointerTransformer) and {name.split(".")[0] for name in more} == {"pointer", "gate"}
    assert plain.config == pointer.config and set(plain.state_dict()) < set(pointer.state_dict())


def test_twins_differ_in_one_name_that_nobody_has_read():
    own, new = made.name_twins()
    everything = {word for split in made.corpus().values() for tokens in split["source_tokens"] for word in tokens}
    assert not everything & set(made.NEW_NAMES) and len(own["kind"]) == len(new["source_tokens"]) > 100
    for key in shared.BOTH:
        for before, after in zip(own[key], new[key], strict=True):
            changed = {(a, b) for a, b in zip(before, after, strict=True) if a != b}
            assert len(changed) == 1
            (a, b), = changed
            assert a in made.names() and a in made.words().ids and b in made.NEW_NAMES
    assert not {"I", "My", "The", "Friday", "In"} & made.names() and {"Kofi", "Thandiwe"} <= made.names()


def test_written_words_are_sorted_into_known_unknown_and_made_up():
    rows = {"source_tokens": [["the", "film", "was", "good"], ["Tove", "was", "right"]],
            "target_tokens": [["film", "was", "good"], ["Tove", "was", "right"]], "kind": ["plain", "distant"]}
    score = made.scored([["film", "was", "good"], ["<unk>", "was", "wrong", "right"]], rows)
    assert score["accuracy"] == 0.5 and score["unknown"] == score["made_up"] == round(1 / 7, 4)
    assert score["by_words"] == {"known": 1.0, "unknown": 0.0} and score["reviews_by_words"] == {"known": 1, "unknown": 1}
    assert score["by_kind"] == {"distant": 0.0, "plain": 1.0} and score["rouge_1"] == round((1 + 4 / 7) / 2, 4)


@pytest.mark.slow
def test_every_row_can_be_made(monkeypatch):
    small, twins = {name: some(split, 40) for name, split in made.corpus().items()}, made.name_twins()
    made.words()                                                           # of the whole corpus, before it shrinks
    monkeypatch.setattr(made, "corpus", lambda: small)
    monkeypatch.setattr(made, "name_twins", lambda: tuple(some(rows, 5) for rows in twins))
    monkeypatch.setattr(shared, "LONGEST", 3)
    monkeypatch.setitem(made.FIT, "epochs", 1)
    assert find_set("summaries_by_copying") is made.SET
    assert made.SET.wanted([0, 1]) == [(row, seed) for row in made.ROWS for seed in (0, 1)]
    for row in made.ROWS:
        run = made.run(row, 0, None)
        json.dumps([run, made.SET.describe(row)])
        assert run["steps"] == 1 and run["test"]["reviews"] == 40 and run["names"]["new"]["reviews"] == 5
        assert "new names" in made.SET.line([run]) and ("p_gen" in run["attention"]) == (row == made.WITH)
        for heads in (run["attention"]["written"], run["attention"]["read"]):
            assert len(heads) == 2 and all(len(layer) == 4 and 0 < min(layer) and max(layer) < 1 for layer in heads)


def test_an_even_spread_is_measured_as_even(monkeypatch):
    rows = some(made.corpus()["test"], 30)
    model = made.new_model(True, 0)
    for block in model.decoder.blocks:                                     # every score is 0
        block.cross_attention.query_projection.weight.data.zero_()
        block.cross_attention.query_projection.bias.data.zero_()
    found = made.attention_scores(model, rows)
    for value in [share for layer in found["written"] + found["read"] for share in layer]:
        assert abs(value - found["even"]) < 2e-4


def test_the_committed_runs_made_equally_many_steps():
    assert len({run["steps"] for run in read_runs("summaries_by_copying")}) == 1
