"""A claim prints what holds; what doesn't hold is an error in tests, and a kind word to a reader."""

import json
import os
import subprocess
import sys

import nbformat
import pytest
import torch

from course_utils.claims import claim, live_seed
from course_utils.copies import notebooks


@pytest.fixture
def reader(monkeypatch):
    """The environment of somebody who reads the course."""
    for name in ("COURSE_TESTING", "COURSE_STRICT", "COURSE_CLAIMS", "COURSE_TRAINING_SEED"):
        monkeypatch.delenv(name, raising=False)


def test_a_claim_that_holds_is_printed_with_its_number(capsys):
    claim("water is wet", True, 0.123456)
    claim("twins tie", torch.tensor(True), [1e-7, torch.tensor(2.0)])
    assert capsys.readouterr().out == "✓ water is wet  [0.1235]\n✓ twins tie  [0.0000, 2.0000]\n"


def test_a_claim_that_does_not_hold_is_an_error_in_the_tests_with_nothing_set_by_hand():
    with pytest.raises(AssertionError, match=r"no longer true: water is dry  \[7\]"):
        claim("water is dry", False, 7)


@pytest.mark.slow
def test_the_tests_also_see_failing_claims_when_only_a_notebook_is_named(root, tmp_path):
    """`pytest notebooks/05*.ipynb` doesn't load what lies in tests."""
    failing = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(
        "from course_utils.claims import claim\nclaim('water is dry', False)", metadata={"tags": ["nbval-ignore-output"]})])
    path = root / "outputs" / f"failing_{os.getpid()}.ipynb"      # in the project, where no test looks for notebooks
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COURSE_")}
    nbformat.write(failing, path)
    try:
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", str(path)], cwd=root, env=environment,
                              capture_output=True, text=True)
    finally:
        path.unlink()
    assert done.returncode == 1 and "no longer true: water is dry" in done.stdout, done.stdout


@pytest.mark.parametrize("name", ["COURSE_TESTING", "COURSE_STRICT"])
def test_each_of_two_variables_makes_a_failing_claim_an_error(reader, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    with pytest.raises(AssertionError, match="no longer true: water is dry"):
        claim("water is dry", False)


def test_a_reader_gets_kind_lines_and_the_notebook_goes_on(reader, monkeypatch, capsys):
    for off in ("", "0"):
        monkeypatch.setenv("COURSE_TESTING", off)
        claim("water is dry", torch.tensor(False), [0.25, 7])
        said = capsys.readouterr().out
        assert said.startswith("✗ water is dry  [0.2500, 7]\n")
        for part in ("We expected this to be true", "in brackets is what came out", "digits differ\n  between processors",
                     "Go on with the next cell."):
            assert part in said


def notebook_with_a_failing_claim(folder):
    path = folder / "00_failing.ipynb"
    sources = ["from course_utils.claims import claim\nanswer = 41", "claim('water is dry', False, 7)\nanswer += 1",
               "answer"]
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources]), path)
    return path


def test_after_a_failing_claim_a_readers_notebook_works_to_its_end(reader, tmp_path):
    cells = notebooks.execute(notebook_with_a_failing_claim(tmp_path)).cells
    assert cells[1].outputs[0].text.startswith("✗ water is dry  [7]")
    assert cells[2].outputs[0].data["text/plain"] == "42"


@pytest.mark.parametrize("in_place", [True, False], ids=["save", "run"])
def test_make_course_and_make_save_stop_at_a_failing_claim(reader, tmp_path, monkeypatch, capsys, in_place):
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    monkeypatch.setenv("COURSE_TESTING", "0")
    path = notebook_with_a_failing_claim(tmp_path)
    before = path.read_bytes()
    assert notebooks.run([], in_place=in_place) == 1
    assert "no longer true: water is dry" in capsys.readouterr().out
    assert path.read_bytes() == before and not (tmp_path / "outputs").exists()


def test_claims_are_recorded_where_a_file_is_named(reader, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_CLAIMS", str(tmp_path / "claims.jsonl"))
    claim("wet 'water'", True)
    claim("water is dry", False, [0.5, float("nan")])
    lines = (tmp_path / "claims.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"sentence": "wet 'water'", "holds": True, "shown": ""},
        {"sentence": "water is dry", "holds": False, "shown": "0.5000, nan"}]


def test_seeds_of_live_training_are_the_usual_ones_unless_others_are_asked_for(reader, monkeypatch):
    assert [live_seed(0), live_seed(7)] == [0, 7]
    seen = set()
    for asked in range(5):
        monkeypatch.setenv("COURSE_TRAINING_SEED", str(asked))
        seen |= {live_seed(seed) for seed in range(20)}
    assert len(seen) == 100                               # no two runs share a seed


@pytest.mark.parametrize("text", ["one", "1.5", "-1", "²", "1000001", "9" * 5000])
def test_a_training_seed_that_is_no_whole_number_is_refused_by_name(monkeypatch, text):
    monkeypatch.setenv("COURSE_TRAINING_SEED", text)
    with pytest.raises(ValueError, match="COURSE_TRAINING_SEED=.*expected a whole number from 0 to 1000000"):
        live_seed(0)


@pytest.mark.parametrize("holds", ["False", lambda: False, (gap < 1 for gap in [2])])
def test_what_would_pass_for_true_whatever_it_says_is_refused(reader, holds):
    with pytest.raises(TypeError, match="neither true nor false; write a comparison"):
        claim("a gap is small", holds)
