"""What START shows beside the classifier: a map with every notebook, and a learner's progress."""

import re

import nbformat
import pytest
from jupyter_server.services.contents.largefilemanager import LargeFileManager
from jupyterlab.handlers.announcements import NeverCheckForUpdate
from jupyterlab.labapp import LabApp
from traitlets.config import Config
from traitlets.config.loader import DeferredConfigString

from course_utils.copies import start
from course_utils.copies.notebooks import NOTEBOOKS, extras, find, number_of
from course_utils.exercises import record
from course_utils.files.paths import HOUR, NUMBER


def links(page) -> list[str]:
    return re.findall(r'href="([^"]+)"', page.html)


def test_the_map_leads_to_every_notebook_and_says_what_one_builds_there():
    page, boxes = start.course_map(), {path.name for path in find([HOUR])} | {path.name for path in find([])}
    assert set(links(page)) == boxes | {path.relative_to(NOTEBOOKS).as_posix() for path in extras()}
    assert all((NOTEBOOKS / link).is_file() for link in links(page))
    drawn, listed = page.html.split("</div></div>", 1)
    assert set(re.findall(r'<a href="(\S+)" aria-label', drawn)) == boxes
    stops = re.findall(rf"<b>({NUMBER}) [^<]+</b><small>([^<]+)</small>", listed)
    assert [number for number, _ in stops] == [number_of(path) for path in find([])] and all(words for _, words in stops)
    assert listed.index("Part I:") < listed.index("08 The classifier") < listed.index("Part II:")
    assert repr(page).startswith("00 Tensors: ") and page._repr_mimebundle_()["text/plain"] == repr(page)


def test_the_map_has_a_box_for_every_notebook_and_an_arrow_from_all_that_it_needs():
    numbers = {number_of(path) for path in find([])}
    assert numbers <= set(start.MAP), "give the new notebook its place in MAP, in course_utils/copies/start.py"
    shown = {number: place for number, place in start.MAP.items() if number in numbers}
    assert len({place for place, _ in shown.values()}) == len(shown)       # no two boxes in one place
    arrows = sum(one in shown for _, needs in shown.values() for one in needs)
    assert start.course_map().html.count('marker-end="url(#map-tip)"') == arrows
    ready: set[str] = set()
    while more := {number for number, (_, needs) in shown.items() if set(needs) & numbers <= ready} - ready:
        ready |= more
    assert ready == numbers                                                # nothing needs itself in the end


@pytest.fixture
def marks(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))


def test_progress_counts_what_is_right_and_nothing_else(marks):
    empty = start.my_progress()
    assert re.fullmatch(r"0 of \d+ exercises solved, 0 of \d+ quiz questions right\.", repr(empty).splitlines()[0])
    record.mark("exercises", "4.2", {"right": True})
    record.mark("exercises", "4.3", {"right": False})
    page = start.my_progress()
    assert repr(page).startswith("1 of ") and "04 Attention: 1 of 7 exercises, 0 of" in repr(page)
    row = next(line for line in page.html.split("<tr>") if "04 Attention" in line)
    assert "□■□□□□□" in row and "1 of 7" in row and '<a href="04_attention.ipynb">' in row


def test_the_originals_know_of_no_progress(marks, monkeypatch):
    """START is saved with an empty table, wherever the one who saves it has got to."""
    record.mark("exercises", "4.2", {"right": True})
    monkeypatch.delenv("COURSE_PROGRESS")
    monkeypatch.setattr(record, "_memory", {})
    monkeypatch.chdir(NOTEBOOKS)
    saved = nbformat.read(NOTEBOOKS / "START.ipynb", as_version=4)
    (shown,) = [cell.outputs[-1].data for cell in saved.cells if "my_progress()" in cell.source]
    assert start.my_progress()._repr_mimebundle_() == dict(shown)
    (shown,) = [cell.outputs[-1].data for cell in saved.cells if "course_map()" in cell.source]
    assert start.course_map()._repr_mimebundle_() == dict(shown), "make save NB=START"


def test_make_lab_opens_start_and_serves_the_whole_repository(root):
    opens = "--LabApp.default_url=/lab/tree/notebooks/my_copies/START.ipynb"
    (line,) = [line for line in (root / "Makefile").read_text("utf-8").splitlines() if "$(PY) -m jupyterlab" in line]
    assert line.endswith(opens)
    assert f"python -m jupyterlab {opens}" in (root / "README.md").read_text("utf-8")


@pytest.mark.parametrize("page", ["Makefile", "README.md"])
def test_the_file_list_shows_the_notebooks_and_not_the_exercises_records(root, page):
    hidden = re.findall(r"--ContentsManager\.hide_globs=(\S+)", (root / page).read_text("utf-8"))
    files = LargeFileManager(root_dir=str(root), hide_globs=hidden)
    listed = {entry["name"] for entry in files.get("notebooks")["content"]}
    assert {"04_attention.ipynb", "extras", "for_instructors.md"} <= listed and "exercises" not in listed
    assert "exercises" in {entry["name"] for entry in LargeFileManager(root_dir=str(root)).get("notebooks")["content"]}


@pytest.mark.parametrize("page", ["Makefile", "README.md"])
def test_jupyterlab_asks_nothing_about_news_or_updates(root, page):
    found = re.findall(r"--LabApp\.(news_url|check_for_updates_class)=(\S+)", (root / page).read_text("utf-8"))
    app = LabApp(config=Config({"LabApp": {name: DeferredConfigString(value) for name, value in found}}))
    assert app.news_url is None and app.check_for_updates_class is NeverCheckForUpdate
