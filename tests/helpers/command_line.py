"""What the tests of the training command share: small files of reviews, its options, and a way to call it."""

import random
import re

import pytest
import torch
from called import called

from course_utils.files.paths import ROOT  # noqa: F401
from course_utils.recipes import main

TINY = ["num_layers=1", "d_model=8", "num_heads=2", "d_ff=8", "epochs=2", "max_len=12", "batch_size=8"]


def rows(number=40, first=0):
    """(text, label) of small reviews: 'moving' is positive and 'dull' negative."""
    rng = random.Random(first)
    return [
        (f"{rng.choice(['the film', 'a scene', 'its end'])} is {('dull', 'moving')[i % 2]} in part {i}",
         ("negative", "positive")[i % 2])
        for i in range(first, first + number)
    ]


def plain(number, label):
    return [(f"the film is dull in part {i}", label) for i in range(number)]


def csv(path, content, header="text,label"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *(",".join(row) for row in content)]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)                           # in every file that imports it
def in_a_folder_with_reviews(tmp_path, monkeypatch):
    """Each test stands in a folder with good.csv, and torch has its threads back afterwards."""
    csv(tmp_path / "good.csv", rows())
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def options(settings=TINY):
    return [part for setting in settings for part in ("--set", setting)] + ["--threads", str(torch.get_num_threads())]


def run(arguments, capsys):
    """`called` for the training command."""
    return called(main, arguments, capsys)


def assert_refused(result, message):
    status, printed, complaint = result
    assert status == 2, complaint
    assert re.search(message, complaint), complaint
    assert printed == "" and "Traceback" not in complaint
    assert len(complaint.strip().splitlines()) == 1, complaint
    assert complaint.startswith("python -m course_utils train: error: ")
