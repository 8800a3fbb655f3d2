"""What the tests in this folder run under; for all tests, those of the notebooks too, see ../conftest.py."""

import pytest

from course_utils import exercises


@pytest.fixture(autouse=True)
def checks_run_here(monkeypatch):
    """Checks run in the tests' own process (but for test_exercise_worker.py), and no answer has been handed out yet."""
    monkeypatch.setenv("COURSE_WORKER", "0")
    monkeypatch.setattr(exercises, "_handed_out", [])
