"""The page about classrooms: short, its blocks are those that `make test-classroom` runs; nothing of it is handed out."""

import re

import pytest
from classroom_page import blocks, page, settings

from course_tools.teaching.editions import copy_without_solutions
from course_utils.files.paths import NOTEBOOKS, ROOT

HERE = {"SHARED": "/a b/shared", "HOMES": "/homes", "HUB": "http://127.0.0.1:1", "CONFIG": "/config.py"}


def test_every_block_of_the_page_is_run_on_the_test_hub():
    told = (ROOT / "course_tools" / "tests" / "classroom" / "conftest.py").read_text("utf-8")
    told += (ROOT / "course_tools" / "tests" / "classroom" / "test_a_term.py").read_text("utf-8")
    run = set(re.findall(r"\.run\(\"([\w-]+)\"\)|blocks\[\"([\w-]+)\"\]", told))
    assert {name for pair in run for name in pair if name} | {"settings"} == set(blocks())


def test_a_block_without_a_name_is_refused():
    one = "<!-- run: one -->\n```sh\ntrue\n```\n"
    assert blocks(one) == {"one": "true\n"}
    for wrong in ("```sh\ntrue\n```\n", one + one, one + "```python\n1\n```\n"):
        with pytest.raises(ValueError, match="needs a line"):
            blocks(wrong)


def test_the_settings_take_other_values():
    assert settings(HERE).splitlines()[0] == "SHARED='/a b/shared'" and len(settings(HERE).splitlines()) == len(HERE)
    with pytest.raises(ValueError, match="the page sets SHARED, HOMES, HUB, CONFIG; expected SHARED"):
        settings({"SHARED": "/shared"})


def test_links_of_the_page_lead_somewhere():
    headings = {path: [re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
                       for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
                for path in (NOTEBOOKS / "classroom.md", NOTEBOOKS / "for_instructors.md")}
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page())
    assert links
    for name, anchor in links:
        path = NOTEBOOKS / (name or "classroom.md")
        assert path.exists() and (not anchor or anchor in headings[path]), (name, anchor)
    assert "(classroom.md)" in (NOTEBOOKS / "for_instructors.md").read_text("utf-8")


def test_neither_the_page_nor_its_tests_are_handed_out(tmp_path):
    copy_without_solutions(tmp_path)
    assert (tmp_path / "notebooks" / "results.md").exists()
    assert not [path for path in tmp_path.rglob("*") if "classroom" in path.name]
