"""The extra on sharding: it names what's wrong with a learner's two functions, and goes on where no processes can run."""

import json
import os
import sys

import pytest
import torch
from lesson_cells import cells_of
from torch import nn
from torch.nn import functional as F

from course_utils.files.paths import RESULTS, ROOT, output_folder

CELLS = cells_of("extras/sharding")


@pytest.fixture(scope="module")
def checks() -> dict:
    names = {"torch": torch, "nn": nn, "F": F}
    exec(CELLS["cut-check"], names)
    exec(CELLS["crosses-check"], names)
    return names


WRONG_CUTS = {
    "the first weight is (8, 2)": lambda w, b, v, r, n: (w.tensor_split(n, dim=1)[-1 if n > 2 else 1 - r], b, v),
    "the first bias is (8,)": lambda w, b, v, r, n: (w.chunk(n)[r], b, v.chunk(n, dim=1)[r]),
    "the second weight is": lambda w, b, v, r, n: (w.chunk(n)[r], b.chunk(n)[r], v.tensor_split(n)[r]),
    "aren't neighbours": lambda w, b, v, r, n: (w[r::n], b[r::n], v[:, r::n]),
    "not in order": lambda w, b, v, r, n: (w.chunk(n)[n - 1 - r], b.chunk(n)[n - 1 - r], v.chunk(n, dim=1)[n - 1 - r]),
    "must be those of the same hidden numbers": lambda w, b, v, r, n: (w.chunk(n)[r], b.chunk(n)[r], v.chunk(n, 1)[r - 1]),
    "Does each rank get another part?": lambda w, b, v, r, n: (w.chunk(n)[0], b.chunk(n)[0], v.chunk(n, dim=1)[0]),
    "stopped: IndexError": lambda w, b, v, r, n: (w.chunk(n)[n], b, v),
    "○ not written": lambda *_: None,
}


@pytest.mark.parametrize("words", WRONG_CUTS)
def test_a_wrong_cut_is_named_and_the_course_s_goes_on(words, checks, capsys):
    got = checks["checked_cut"](WRONG_CUTS[words])
    out = capsys.readouterr().out
    assert got is checks["in_pieces"] and words in out and out.count("\n") == 1, out


def test_a_right_cut_is_used(checks, capsys):
    def slices(w, b, v, rank, ranks):
        size = len(b) // ranks
        mine = slice(rank * size, (rank + 1) * size)
        return w[mine], b[mine], v[:, mine]

    assert checks["checked_cut"](slices) is slices and capsys.readouterr().out.startswith("✓ right")


def changed(way: int, factor):
    def count(*case, counted):
        found = list(counted(*case))
        found[way] *= factor(*case)
        return tuple(found)
    return count


WRONG_COUNTS = {
    "DDP, 8 ranks: 3,500, and it's 7,000 bytes; half of it": changed(0, lambda *_: 0.5),
    "a rank keeps its own piece": changed(1, lambda n, t, d, layers, ranks, each: ranks / (ranks - 1)),
    "fully sharded, 8 ranks: 7,000, and it's 10,500 bytes; the weights are gathered twice": changed(2, lambda *_: 2 / 3),
    "tensor parallel, 8 ranks: 3,360, and it's 10,080 bytes; that's one layer": changed(3, lambda *_: 1 / 3),
}


@pytest.mark.parametrize("words", WRONG_COUNTS)
def test_a_wrong_count_is_named(words, checks, capsys):
    counted = checks["counted"]
    assert checks["checked_count"](lambda *case: WRONG_COUNTS[words](*case, counted=counted)) is counted
    assert words in capsys.readouterr().out


def test_an_open_count_and_one_that_stops_are_told(checks, capsys):
    for answer, words in ((lambda *_: (..., ..., ..., ...), "○ not written"), (lambda *_: None, "○ not written"),
                          (lambda *_: (1, 2), "expected four numbers"), (lambda *_: 1 / 0, "stopped: ZeroDivisionError")):
        assert checks["checked_count"](answer) is checks["counted"] and words in capsys.readouterr().out
    right = lambda *case: checks["counted"](*case)                         # noqa: E731
    assert checks["checked_count"](right) is right and "✓ right" in capsys.readouterr().out


def test_where_no_two_processes_run_it_says_so_and_goes_on(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path))
    folder = output_folder() / "sharding"
    folder.mkdir(parents=True)
    cell = CELLS["script"]
    for status, words in ((None, "PermissionError: no processes here"), (1, "")):
        names = {"os": os, "sys": sys, "json": json, "folder": folder, "ROOT": ROOT, "RESULTS": RESULTS,
                 "run_in_group": lambda *_, status=status, words=words, **__: (status, words)}
        exec(cell[cell.index("def run_two"):], names)
        found, said = names["run_two"](), capsys.readouterr().out
        assert said.count("\n") == 1 and (words or "status 1") in said and "from our machine" in said
        assert [rank["rank"] for rank in found] == [0, 1]


def test_the_kept_file_says_what_the_extra_says(checks):
    ranks = json.loads((RESULTS / "two_processes.json").read_text(encoding="utf-8"))["sharding"]
    count = dict(zip(("DDP", "ZeRO-1", "fully sharded", "tensor parallel"), checks["counted"](100_618, 128, 64, 2, 2, 8)))
    assert len(ranks[0]["ways"]) == 7
    for rank in ranks:
        for name, way in rank["ways"].items():
            assert max(way["gradient"], way["logits"]) < 1e-10, name
            if "PyTorch" not in name:
                assert way["sent"] == pytest.approx(count[name.partition(",")[0]], rel=0.02), name
