"""Saved outputs are compared where they are promised to be the same; elsewhere claims and errors still count."""

import base64
import os
import re
import shutil
import struct
import subprocess
import sys

import nbformat
import pytest
import saved_outputs
from nbclient import NotebookClient

from course_utils.copies.notebooks import AsyncKernelOverFiles, everything


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


LOUD = {
    "prints": "import sys\nprint('a warning', file=sys.stderr)", "warns": "import warnings\nwarnings.warn('old')",
    "a_bar_of_a_library": "from tqdm import tqdm\nfor _ in tqdm(range(3)): pass",
    "logs": "import logging\nlogging.getLogger('library').warning('slow')",
}


@pytest.mark.parametrize("compare", ["1", "0"])
@pytest.mark.parametrize("tags", [[], ["nbval-ignore-output"]], ids=["compared", "not compared"])
def test_a_cell_that_writes_to_the_error_stream_fails_everywhere(compare, tags, root, tmp_path):
    """Whether outputs are compared or not, and for progress bars of libraries although there are none of the course."""
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(root / name, tmp_path)
    quiet = "from course_utils.files import bars\nfor _ in bars.bar(range(3)): pass"
    for name, source in {**LOUD, "quiet": quiet}.items():
        cell = nbformat.v4.new_code_cell(source, id="it", execution_count=1, metadata={"tags": tags})
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / f"{name}.ipynb")
    paths = os.pathsep.join([str(root), str(root / "tests" / "helpers")])
    command = [sys.executable, "-m", "pytest", "-rA", "--tb=short", *(f"{name}.ipynb" for name in [*LOUD, "quiet"])]
    ran = subprocess.run(command, cwd=tmp_path, env=os.environ | {"COURSE_COMPARE": compare, "PYTHONPATH": paths},
                         capture_output=True, text=True, timeout=600)
    assert set(re.findall(r"^FAILED (\w+).ipynb", ran.stdout, re.M)) == set(LOUD), ran.stdout
    assert "PASSED quiet.ipynb" in ran.stdout, ran.stdout


@pytest.mark.parametrize("path", everything(), ids=lambda path: path.stem)
def test_no_saved_output_is_on_red(path):
    outputs = [(cell.id, output) for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])]
    assert [(cell, output) for cell, output in outputs
            if output.output_type == "error" or output.get("name") == "stderr"] == []


def shown(width=900, height=420, text="Line: 9 points from (2, 0.7846) to (512, 0.0499)."):
    """A display output with a PNG of that size; nothing but its header is read."""
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + bytes(32)
    metadata = {"image/png": {"alt": text}} if text else {}
    return nbformat.v4.new_output("display_data", {"image/png": base64.b64encode(header).decode()}, metadata=metadata)


@pytest.mark.parametrize(("now", "said"), [
    ([shown()], ""), ([shown(width=917, height=413)], ""),
    ([shown(width=919)], "figure 0 has (919, 420) pixels instead of (900"),
    ([shown(450, 210)], "pixels instead of"), ([], "0 figures instead of 1"), ([shown(), shown()], "2 figures instead of 1"),
    ([shown(text="Line: 9 points from (2, 0.789) to (512, 0.0494).")], ""),
    ([shown(text="Line: 9 points from (2, 0.7846) to (512, 0.0599).")], "described with 0.0599 instead of 0.0499"),
    ([shown(text="Line: 8 points from (2, 0.7846) to (512, 0.0499).")], "described with 8 instead of 9"),
    ([shown(text="Band: 9 points from (2, 0.7846) to (512, 0.0499).")], "in other words: 'Band"),
    ([shown(text="")], "in other words: ''"),
])
def test_figures_are_compared_by_their_size_and_by_what_they_say(now, said):
    assert said in saved_outputs.difference([shown()], now)
    assert bool(said) is bool(saved_outputs.difference([shown()], now))


def test_negative_and_tiny_numbers_are_compared_as_numbers():
    one, other = shown(text="from −0.51 to 1e-17, d2 0.3."), shown(text="from −0.5101 to 2.5e-06, d2 0.3.")
    assert saved_outputs.difference([one], [other]) == ""
    assert saved_outputs.difference([one], [shown(text="from 0.51 to 1e-17, d2 0.3.")])


def test_a_figure_that_a_notebook_shows_is_described_and_compared(root, tmp_path):
    source = ("import matplotlib.pyplot as plt\nfrom course_utils.figures import use_style\nuse_style()\n"
              "fig, ax = plt.subplots(figsize=(4, 3))\nax.plot([1, 2, 3], [1, 4, 9])\nplt.show()")
    cell = nbformat.v4.new_code_cell(source, id="it", execution_count=1)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "tests" / "helpers")]), "COURSE_COMPARE": "1"}
    client = NotebookClient(notebook, resources={"metadata": {"path": str(root)}}, kernel_manager_class=AsyncKernelOverFiles)
    client.execute()
    (output,) = [one for one in notebook.cells[0].outputs if "image/png" in one.data]
    assert "Line: 3 points from (1, 1) to (3, 9)" in output.metadata["image/png"]["alt"]
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(root / name, tmp_path)
    nbformat.write(notebook, tmp_path / "the_same.ipynb")
    output.metadata["image/png"]["alt"] = output.metadata["image/png"]["alt"].replace("(3, 9)", "(3, 8)")
    nbformat.write(notebook, tmp_path / "another.ipynb")
    ran = subprocess.run([sys.executable, "-m", "pytest", "-rA", "the_same.ipynb", "another.ipynb"], cwd=tmp_path, env=env,
                         capture_output=True, text=True, timeout=600)
    assert "PASSED the_same.ipynb" in ran.stdout and "FAILED another.ipynb" in ran.stdout, ran.stdout
    assert "described with 9 instead of 8" in ran.stdout
