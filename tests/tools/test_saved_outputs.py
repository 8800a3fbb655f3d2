"""Saved outputs are compared where they are promised to be the same; elsewhere claims and errors still count."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
import saved_outputs


@pytest.mark.parametrize(("system", "machine", "compared"), [
    ("Linux", "x86_64", True), ("Linux", "AMD64", True), ("Linux", "aarch64", False), ("Darwin", "arm64", False),
    ("Darwin", "x86_64", False), ("Windows", "AMD64", False),
])
def test_outputs_are_compared_on_linux_x86_unless_somebody_asks(system, machine, compared, monkeypatch):
    monkeypatch.delenv("COURSE_COMPARE", raising=False)
    assert saved_outputs.are_compared(system, machine) is compared
    for asked in (True, False):
        monkeypatch.setenv("COURSE_COMPARE", str(int(asked)))
        assert saved_outputs.are_compared(system, machine) is asked


CELLS = {
    "the_same": "print(0.1234)", "another_digit": "print(0.1235)", "wrong_shape": "assert (2, 3) == (3, 2)",
    "failed_claim": "from course_utils.claims import claim\nclaim('three is two', 3 == 2)",
}


@pytest.mark.parametrize(("compare", "passes"), [("1", {"the_same"}), ("0", {"the_same", "another_digit"})])
def test_what_a_notebook_prints_is_compared_or_not_and_what_fails_always_counts(compare, passes, root, tmp_path):
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(root / name, tmp_path)
    for name, source in CELLS.items():
        saved = nbformat.v4.new_output("stream", name="stdout", text="0.1234\n")
        cell = nbformat.v4.new_code_cell(source, id="it", outputs=[saved], execution_count=1)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / f"{name}.ipynb")
    paths = os.pathsep.join([str(root), str(root / "tests" / "helpers")])
    command = [sys.executable, "-m", "pytest", "-rA", "--tb=no", *(f"{name}.ipynb" for name in CELLS)]
    ran = subprocess.run(command, cwd=tmp_path, env=os.environ | {"COURSE_COMPARE": compare, "PYTHONPATH": paths},
                         capture_output=True, text=True, timeout=600)
    assert set(re.findall(r"^PASSED (\w+).ipynb", ran.stdout, re.M)) == passes, ran.stdout
    assert set(re.findall(r"^FAILED (\w+).ipynb", ran.stdout, re.M)) == set(CELLS) - passes, ran.stdout
    assert ("saved outputs: compared" in ran.stdout) is (compare == "1")
