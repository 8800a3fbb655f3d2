"""Whose work the site contains. The packages that make a site aren't here, so others stand in for them."""

from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_tools.site import licences
from course_utils.files.paths import ROOT


def test_each_part_is_named_with_its_version_and_its_licence_in_full():
    page = licences.licences({"seaborn": "pictures", "nbformat": "notebooks"})
    assert f"\n- seaborn {version('seaborn')}: pictures\n- nbformat {version('nbformat')}: notebooks\n" in page
    assert page.count("=" * 80) == 2 and page.count("Redistributions of source code must retain") >= 2
    assert "SIL Open Font License 1.1" in page and "reveal.js" in page


def test_a_package_without_a_licence_is_named(monkeypatch):
    monkeypatch.setattr(licences, "distribution", lambda name: SimpleNamespace(files=[Path("a.dist-info/METADATA")]))
    with pytest.raises(ValueError, match="^the package nobody brings no file with its licence"):
        licences.licence_text("nobody")


def test_every_part_is_a_package_that_make_site_installs():
    wanted = (ROOT / "course_tools" / "site" / "requirements.txt").read_text(encoding="utf-8")
    assert {name for name in licences.PARTS if name != "pydata-sphinx-theme"} <= {
        line.partition(">")[0] for line in wanted.splitlines()}     # that one comes with the theme
