"""One version everywhere, and a changelog that a learner can rely on."""

import re
from datetime import date

import pytest
import yaml

import course_utils
from course_tools.__main__ import COMMANDS as TOOLS
from course_utils.__main__ import COMMANDS
from course_utils.commands import MOVED
from course_utils.files.paths import ROOT

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASES = re.findall(r"^## (\d+\.\d+\.\d+) – (\d{4}-\d\d-\d\d)$", CHANGELOG, re.M)


def test_the_version_is_that_of_the_project_everywhere():
    assert f'\nversion = "{course_utils.__version__}"\n' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert RELEASES[0][0] == course_utils.__version__


def test_the_citation_names_the_version_and_its_day():
    if not (ROOT / "CITATION.cff").exists():              # an edition for a class has none
        assert not (ROOT / "course_tools").exists()
        return
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["date-released"].isoformat()) == RELEASES[0]


def test_another_attribute_of_the_package_is_missing_as_usual():
    with pytest.raises(AttributeError, match="^module 'course_utils' has no attribute 'nothing'$"):
        course_utils.nothing  # noqa: B018


def test_releases_come_newest_first_and_every_heading_is_one():
    numbers = [tuple(map(int, number.split("."))) for number, _ in RELEASES]
    days = [date.fromisoformat(day) for _, day in RELEASES]
    assert len(RELEASES) >= 2 and numbers == sorted(set(numbers), reverse=True) and days == sorted(days, reverse=True)
    assert len(re.findall("^## ", CHANGELOG, re.M)) == len(RELEASES)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}          # of Keep a Changelog
    assert set(re.findall("^### (.+)$", CHANGELOG, re.M)) <= kinds


def test_what_the_changelog_tells_people_to_type_is_there():
    commands = {load.__name__ for load in [*COMMANDS.values(), *TOOLS.values()]}
    named = set(re.findall(r"`make ([\w-]+)", CHANGELOG.replace("test-all", "test_all")))
    assert {"lab", "update", "sheets"} <= named <= commands | {"lab", "test", "test_all"}
    assert set(re.findall(r"-m course_utils ([\w-]+)", CHANGELOG)) <= {*COMMANDS, *MOVED}
    assert set(re.findall(r"-m course_tools ([\w-]+)", CHANGELOG)) <= set(TOOLS)
