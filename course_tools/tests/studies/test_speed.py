"""The speed benchmark: it runs, and makes the rows that the committed file holds. How long anything takes is no test."""

import json

import pytest

from course_tools.studies.sets import speed
from course_utils.results import FOLDER


def test_every_row_of_the_committed_file_is_one_that_the_benchmark_makes(monkeypatch):
    """So a row can't outlive the code that it describes. The tokenizers' rows count ids, which takes their training."""
    monkeypatch.setattr(speed, "interleaved", lambda arms, *_: {name: [1.0, 1.0, 1.0] for name in arms})  # nothing is run
    monkeypatch.setattr(speed, "peaks_mb", lambda: {f"{way} {n}": 1.0 for way in speed.WAYS for n in speed.LENGTHS})
    monkeypatch.setattr(speed, "free_cores", lambda: 2.0)
    imdb_like = speed.imdb_like
    monkeypatch.setattr(speed, "imdb_like", lambda reviews, seed: imdb_like(256, seed))
    sections = {name: section for name, section in speed.SECTIONS.items() if name != "tokenizers"}
    made = {(name, row["what"], row["against"]) for name, section in sections.items() for row in section()}
    rows = json.loads((FOLDER / "speed.json").read_text(encoding="utf-8"))["rows"]
    kept = {(row["section"], row["what"], row["against"]) for row in rows if row["section"] != "tokenizers"}
    assert kept and kept - made == set()


@pytest.mark.parametrize("section", ["block", "classifier", "precision"])
def test_a_section_runs_what_it_compares(section, monkeypatch):
    monkeypatch.setattr(speed, "LENGTHS", (8,))
    monkeypatch.setattr(speed, "TOKENS", 16)
    for row in speed.SECTIONS[section](2):
        assert row["section"] == section and row["ratio"] > 0
        assert row["spread"][0] <= row["ratio"] <= row["spread"][1] and min(row["ours_ms"], row["other_ms"]) > 0
        assert row["what"] in speed.show(row)
