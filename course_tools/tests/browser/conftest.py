"""What the browser tests share. They run by `make test-browser` alone: `make test` needs no browser."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from browsers import Browser

from course_utils.files.paths import ROOT


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """One Chromium for all tests."""
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium):
    """Chromium on an empty page, projector-sized, in a light theme; a test that leaves errors behind has failed."""
    chromium.resize("projector")
    chromium.prefer()
    chromium.open("about:blank")
    yield chromium
    assert chromium.failures() == []


@pytest.fixture
def opened(browser, tmp_path):
    """opened(piece): the piece alone on a page; gives its host element, live."""
    def open_piece(piece):
        piece.save(tmp_path / "piece.html")
        browser.open(tmp_path / "piece.html")
        return browser.wait(lambda: browser.pieces(piece.name))[0]
    return open_piece


@pytest.fixture
def pictures() -> Path:
    """Where tests leave screenshots for a person to look at: outputs/browser, or COURSE_OUTPUTS."""
    return Path(os.environ.get("COURSE_OUTPUTS") or ROOT / "outputs") / "browser"


@pytest.fixture(scope="session")
def built_site(tmp_path_factory) -> Path:
    """The whole course as a site, slides included, built once for all tests; COURSE_SITE names one that is built already."""
    if named := os.environ.get("COURSE_SITE"):
        return Path(named).resolve()
    outputs = tmp_path_factory.mktemp("outputs")
    environment = {**os.environ, "COURSE_OUTPUTS": str(outputs), "PYTHONPATH": str(ROOT)}
    for command in ("slides", "site"):
        run = subprocess.run([sys.executable, "-m", "course_tools", command], cwd=ROOT, env=environment,
                             capture_output=True, text=True, encoding="utf-8", timeout=1200)
        assert run.returncode == 0, f"python -m course_tools {command} failed:\n{run.stdout[-2000:]}{run.stderr[-6000:]}"
    return outputs / "site"
