"""The set-up: what it says while pip downloads, and when PyTorch can't be had. Nothing is installed here."""

import importlib.util
import os
import subprocess

import pytest


@pytest.fixture(scope="module")
def pip_progress():
    """The module .ci/install.py, which is no part of a package."""
    from course_utils.files.paths import ROOT
    spec = importlib.util.spec_from_file_location("pip_progress", ROOT / ".ci" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SAID = """Looking in indexes: an index
Collecting torch==2.13.0
  Downloading torch-2.13.0-cp311.whl (190.5 MB)
Progress 1000000 of 190500000
Progress 95250000 of 190500000
Collecting numpy~=2.1
  Downloading numpy-2.4.6-cp311.whl.metadata (6.6 kB)
  Downloading numpy-2.4.6-cp311.whl (16.6 MB)
Processing /a/folder/six-1.16.0-py3-none-any.whl (from -r requirements.txt (line 4))
Installing collected packages: torch, numpy, six
Successfully installed everything""".splitlines()


def test_it_says_what_is_downloaded_and_how_much_so_far(pip_progress):
    progress, shown, told = pip_progress.Progress(), [], []
    for line in SAID:
        told.append(progress.read(line))
        shown.append(str(progress))
    assert shown[0] == "looking for packages"
    assert shown[2:5] == ["downloading torch (190 MB)", "downloading torch (190 MB); 1 MB so far",
                          "downloading torch (190 MB); 95 MB so far"]
    assert shown[7] == "downloading numpy (17 MB); 190 MB so far"
    assert shown[-1] == "installing 3 packages; 207 MB so far"
    assert list(filter(None, told)) == ["downloading torch (190 MB)", "downloading numpy (17 MB)", "installing 3 packages"]
    assert progress.files == 3


@pytest.mark.parametrize("status", [0, 3])
def test_pip_s_own_status_and_words_are_kept(pip_progress, monkeypatch, tmp_path, capsys, status):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho Downloading big-1.whl '(20.0 MB)'\necho ERROR: no space\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setattr(pip_progress.sys, "executable", str(program))
    assert pip_progress.main(str(tmp_path / "log"), ["install", "big"]) == status
    assert (tmp_path / "log").read_text() == "Downloading big-1.whl (20.0 MB)\nERROR: no space\n"
    assert capsys.readouterr().out == "setup: downloading big (20 MB)\n"


def test_a_mac_with_an_intel_processor_is_told_before_anything_is_installed(root, tmp_path):
    """A `uname` of our own stands in for such a Mac."""
    (tmp_path / ".ci").mkdir()
    for name in ("setup.sh", "python.sh"):
        (tmp_path / ".ci" / name).write_bytes((root / ".ci" / name).read_bytes())
    for name in ("requirements.txt", "pyproject.toml"):
        (tmp_path / name).write_bytes((root / name).read_bytes())
    (tmp_path / "uname").write_text('#!/bin/sh\n[ "$1" = -m ] && echo x86_64 || echo Darwin\n')
    (tmp_path / "uname").chmod(0o755)
    run = subprocess.run(["sh", ".ci/setup.sh"], cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert run.returncode == 1 and "Macs with an Intel processor" in run.stderr and "needs 2.13.0" in run.stderr
    assert "Macs with an Intel processor" in (root / "README.md").read_text(encoding="utf-8")
    assert not (tmp_path / ".venv").exists()
