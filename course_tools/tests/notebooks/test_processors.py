"""Trying the notebooks on other kinds of processor and with other training seeds tells what fails where."""

import json
import subprocess
import sys

import nbformat
import pytest

from course_tools.notebooks import processors, seeds
from course_utils.copies import notebooks

CELLS = [
    "import os\nfrom course_utils.claims import claim, live_seed",
    "claim('seeds below 2000', live_seed(0) < 2000, live_seed(0))\n"
    "claim('not on AVX2', os.environ.get('ATEN_CPU_CAPABILITY') != 'avx2')\n"
    "print('said whatever the claims say')",
    "if live_seed(0) == 1000:\n    claim('printed only with seed 1', True)\n    1 / 0",
    "claim('the last cell is reached', True)",
]


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A notebook with claims that fail with some seeds or on one kind of processor; returns its path."""
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(processors, "abilities", lambda: {"", "x86", "AVX2"})
    monkeypatch.setenv("COURSE_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.setenv("TQDM_DISABLE", "1")
    path = tmp_path / "00_seeds.ipynb"
    cells = [nbformat.v4.new_markdown_cell("# Seeds", id="title"),
             *(nbformat.v4.new_code_cell(source, id=f"code-{i}") for i, source in enumerate(CELLS))]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def run_seeds(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["seeds", *arguments])
    return seeds.main()


def test_every_claim_is_tried_with_every_seed_and_on_every_kind_and_the_failing_ones_are_named(course, monkeypatch, capsys):
    before = course.read_bytes()
    assert run_seeds(monkeypatch, "00", "--seeds", "3", "--kinds", "as-it-is", "avx2", "avx512") == 1
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line for line in lines if line.startswith("00_seeds, seed")) == [   # one as each run ends, in any order
        "00_seeds, seed 0, as-it-is: 3 of 3 claims held",
        "00_seeds, seed 0, avx2: 2 of 3 claims held",
        "00_seeds, seed 1, as-it-is: 4 of 5 claims held",
        "00_seeds, seed 1, avx2: 3 of 5 claims held",
        "00_seeds, seed 2, as-it-is: 2 of 3 claims held",
        "00_seeds, seed 2, avx2: 1 of 3 claims held",
    ]
    assert [line for line in lines if not line.startswith("00_seeds, seed")] == [
        "avx512: not tried, this processor has no AVX512",
        "00_seeds: 5 claims, 6 runs",
        "  cell 1 (code-1), in 2 of 6 runs: seeds below 2000",
        "      seed 2, as-it-is: 2000",
        "      seed 2, avx2: 2000",
        "  cell 1 (code-1), in 3 of 6 runs: not on AVX2",
        "      seed 0, avx2",
        "      seed 1, avx2",
        "      seed 2, avx2",
        "  cell 2 (code-2), in 2 of 6 runs: the cell runs",
        "      seed 1, as-it-is: ZeroDivisionError: division by zero",
        "      seed 1, avx2: ZeroDivisionError: division by zero",
    ]
    file = course.parent / "outputs" / "seeds" / "00_seeds.jsonl"
    kept = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert sum(one["sentence"] == "the last cell is reached" and one["holds"] for one in kept) == 6
    assert course.read_bytes() == before


def test_claims_that_all_hold_are_said_to_hold(course, monkeypatch, capsys):
    assert run_seeds(monkeypatch, "00", "--seeds", "1", "--kinds", "plain") == 0
    assert capsys.readouterr().out == (
        "00_seeds, seed 0, plain: 3 of 3 claims held\n00_seeds: 3 claims, 1 runs\n  every claim held\n")


def test_a_stricter_environment_does_not_stop_the_notebook_at_its_first_failing_claim(course, monkeypatch):
    for name in ("COURSE_STRICT", "COURSE_TESTING"):
        monkeypatch.setenv(name, "1")
    found = seeds.try_once(course, 2, "as-it-is")
    assert [one["holds"] for one in found] == [False, True, True]


@pytest.mark.parametrize("arguments, said", [
    (["99"], "there is no notebook '99'"),
    (["00", "--kinds", "arm"], "there is no kind of processor 'arm'; there are as-it-is, avx512, avx2, plain, and all"),
    (["00", "--seeds", "0"], "--seeds 0: expected 1 or more"),
    (["00", "--jobs", "-1"], "--jobs -1: expected 1 or more"),
])
def test_what_cannot_be_tried_is_refused_in_one_sentence(course, monkeypatch, arguments, said):
    with pytest.raises(SystemExit, match=said):
        run_seeds(monkeypatch, *arguments)


@pytest.mark.parametrize("machine, capability, kinds", [
    ("x86_64", "AVX512", ["as-it-is", "avx512", "avx2", "plain"]),
    ("AMD64", "AVX2", ["as-it-is", "avx2", "plain"]),
    ("x86_64", "DEFAULT", ["as-it-is", "plain"]),
    ("arm64", "DEFAULT", ["as-it-is"]),
    ("aarch64", "SVE256", ["as-it-is"]),
])
def test_kinds_that_a_processor_cannot_emulate_are_said_not_to_be_tried(monkeypatch, capsys, machine, capability, kinds):
    here = processors.abilities(machine, capability)
    monkeypatch.setattr(processors, "abilities", lambda: here)
    assert processors.choose(["all"]) == kinds
    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == [name for name in processors.KINDS if name not in kinds]
    assert all("not tried" in line for line in said)


def test_this_machine_can_be_what_it_is():
    assert "as-it-is" in processors.choose(["all"])


def test_pytorch_really_works_as_the_kind_it_is_told_to_be():
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    seen = {kind: subprocess.run([sys.executable, "-c", code], env=processors.environment(kind, 1), capture_output=True,
                                 text=True).stdout.strip() for kind in processors.choose(["avx2", "plain"])}
    assert {"avx2": "AVX2", "plain": "DEFAULT"} | seen == {"avx2": "AVX2", "plain": "DEFAULT"}


def test_the_notebooks_tests_give_a_line_for_each_kind_and_name_the_cells_that_differ(course, monkeypatch, capsys, root):
    notebook = nbformat.read(course, as_version=4)
    notebook.cells = [nbformat.v4.new_code_cell("import os\nos.environ['OMP_NUM_THREADS']", outputs=[
        nbformat.v4.new_output("execute_result", {"text/plain": "'2'"}, execution_count=1)], execution_count=1)]
    nbformat.write(notebook, course)
    monkeypatch.setattr(notebooks, "ROOT", root)
    for threads, status in ((2, 0), (1, 1)):
        monkeypatch.setattr(sys, "argv", ["processors", "00", "--kinds", "as-it-is", "plain", "--threads", str(threads)])
        assert processors.main() == status
    lines = [line.split(" (")[0] for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == ["as-it-is: 1 passed", "plain: 1 passed", "as-it-is: 1 failed"]
    assert "FAILED" in lines[3] and "Cell 0" in lines[3]
