"""No text of IMDb's reviews is in the repository: they share no run of 13 words. Tried where the reviews are."""

import re

import pytest

from course_utils.data import load_reviews
from course_utils.data.hub import DataNotAvailable
from course_utils.files.paths import ROOT

LENGTH = 13
WORD = re.compile(r"[a-z0-9]+")
KINDS = {".cfg", ".csv", ".html", ".ipynb", ".json", ".jsonl", ".md", ".py", ".svg", ".toml", ".txt", ".yaml", ".yml"}
FOLDERS = ("course_utils", "data", "notebooks", "tests")


def runs_of(text: str) -> set[int]:
    """The hashes of all runs of 13 words, letters and digits alone, in lower case."""
    words = WORD.findall(text.lower())
    return {hash(tuple(words[start : start + LENGTH])) for start in range(len(words) - LENGTH + 1)}


def shared_runs(texts, known: set[int]) -> list[str]:
    """The first shared run of each text that has one."""
    found = []
    for text in texts:
        words = WORD.findall(text.lower())
        runs = (words[start : start + LENGTH] for start in range(len(words) - LENGTH + 1))
        if first := next((run for run in runs if hash(tuple(run)) in known), None):
            found.append(" ".join(first))
    return found


def test_no_text_of_imdb_is_in_the_repository():
    try:
        imdb = load_reviews("imdb", unsupervised=True)
    except DataNotAvailable as why:
        pytest.skip(f"IMDb isn't here: {str(why).splitlines()[0]}")
    known, files = set(), 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in KINDS and path.is_file() and "my_copies" not in path.parts:
                known |= runs_of(path.read_text(encoding="utf-8", errors="ignore"))
                files += 1
    assert files > 300 and len(known) > 500_000
    for split in imdb.values():
        assert shared_runs(split["text"], known) == []
