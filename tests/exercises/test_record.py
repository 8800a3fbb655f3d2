"""Marks of what a learner has done: none is lost, and nothing odd in the file stops a notebook."""

import json
import os
import subprocess
import sys
import threading

import pytest

from course_utils import exercises
from course_utils.copies.notebooks import find
from course_utils.exercises import record


@pytest.fixture
def marks(tmp_path, monkeypatch):
    """Where the marks of this test are kept."""
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "mine" / "progress.json"))
    return tmp_path / "mine" / "progress.json"


@pytest.mark.slow
def test_kernels_that_mark_at_once_lose_no_mark(marks):
    code = "import sys; from course_utils.exercises import record\n" \
           "for i in range(30): record.mark('exercises', f'{sys.argv[1]}.{i}', True)"
    kernels = [subprocess.Popen([sys.executable, "-c", code, name], stdout=subprocess.PIPE, text=True) for name in "123"]
    assert [kernel.communicate(timeout=300)[0] for kernel in kernels] == ["", "", ""]
    assert set(record.read()["exercises"]) == {f"{name}.{i}" for name in "123" for i in range(30)}
    assert not list(marks.parent.glob("*.partial"))


def test_threads_that_mark_at_once_lose_no_mark(marks):
    def several(name):
        for i in range(20):
            record.mark("quizzes", f"{name}/{i}", {"chosen": "a", "right": True})

    threads = [threading.Thread(target=several, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(record.read()["quizzes"]) == 80


QUIZ_ALONE = 1                                             # the hour has a quiz and no exercises


@pytest.mark.slow
@pytest.mark.parametrize("content", [
    {"exercises": {"4.1": "yes", "4.2": None, "4.3": [1], "4.4": True}}, {"quizzes": {"04/scale": 3, "04/mask": "a"}},
    {"quizzes": {"04/scale": []}, "predictions": {"04-reach": {"a": 1}, "04-entropy": None}},
    {"exercises": {"4.4": {"right": True, "seed": 1, "on": "2026-11-22"}, "4.3": {"right": "no"}, "4.2": {}}},
    {"exercises": {"nothing": True}}, {"from a later version": {"x": 1}}, {}, {"exercises": {}},
])
def test_progress_on_a_record_with_odd_contents_shows_what_it_can(content, marks, capsys):
    marks.parent.mkdir()
    marks.write_text(json.dumps(content), encoding="utf-8")
    exercises.progress()
    said = capsys.readouterr().out
    solved = {"4.4", "nothing"} & set(content.get("exercises", {}))  # else one line, whatever the course holds
    assert len(said.splitlines()) == (len(find([])) + QUIZ_ALONE if solved else 1) and "cannot be read" not in said
    assert said.count("■") == (1 if content.get("exercises", {}).get("4.4") else 0)
    assert exercises.predict("04-reach").yours is None
    record.mark("exercises", "4.5", True)                                  # and what is odd stays where it was
    now = json.loads(marks.read_text(encoding="utf-8"))
    assert now.pop("exercises").get("4.5") is True
    assert now == {part: values for part, values in content.items() if part != "exercises"}


@pytest.mark.parametrize("damage", [b"", b"{ cut", b"\xff\xfe", b"[]", b"3", b'{"exercises": 3}', b"[" * 100_000])
def test_a_damaged_record_is_kept_under_another_name_and_marks_go_on(damage, marks, capsys):
    marks.parent.mkdir()
    for n in (1, 2):
        marks.write_bytes(damage)
        exercises.progress()
        assert marks.read_bytes() == damage                                # to look changes nothing
        record.mark("exercises", "4.1", True)
        assert marks.with_name(f"progress.damaged-{n}.json").read_bytes() == damage
        assert record.read()["exercises"] == {"4.1": True}
    assert "cannot be read" in capsys.readouterr().out


def test_a_write_that_fails_costs_one_line_and_leaves_the_old_marks_and_no_partial_file(marks, monkeypatch, capsys):
    record.mark("exercises", "4.1", True)
    before = marks.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        record.mark("exercises", "4.2", True)
    assert capsys.readouterr().out == ("progress.json cannot be written (No space left on device), so your progress wasn't "
                                       "saved.\n")
    assert marks.read_bytes() == before and not list(marks.parent.glob("*.partial"))


def test_a_place_that_cannot_hold_the_file_costs_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "progress.json", tmp_path):
        monkeypatch.setenv("COURSE_PROGRESS", str(place))
        record.mark("exercises", "4.1", True)
        assert len(capsys.readouterr().out.splitlines()) == 1
        assert record.read()["exercises"] == {}


@pytest.mark.skipif(os.name != "posix", reason="there are no pipes with names on Windows")
def test_what_is_no_file_is_not_replaced_by_one(tmp_path, monkeypatch, capsys):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name, what in (("folder", "a folder"), ("pipe", "a pipe"), ("link", "a pipe")):
        place, before = tmp_path / name, sorted(os.listdir(tmp_path))
        monkeypatch.setenv("COURSE_PROGRESS", str(place))
        mode = place.stat().st_mode
        record.mark("exercises", "4.1", True)
        assert capsys.readouterr().out == (f"{place} is {what}; expected a file. Your progress wasn't saved: set "
                                           "COURSE_PROGRESS to a file of your own, such as ~/progress.json.\n")
        assert place.stat().st_mode == mode and sorted(os.listdir(tmp_path)) == before
        assert record.read()["exercises"] == {}


@pytest.mark.slow
def test_a_working_folder_that_was_deleted_stops_nothing(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.delenv("COURSE_PROGRESS", raising=False)
    monkeypatch.setattr(record, "_memory", {})
    monkeypatch.chdir(gone)
    os.rmdir(gone)
    record.mark("exercises", "4.1", True)
    assert record.read()["exercises"] == {"4.1": True}                     # kept while the kernel runs
    exercises.progress()
