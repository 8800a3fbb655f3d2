"""What the tests in this folder run under; for all tests, those of the notebooks too, see ../conftest.py."""

import sys

import matplotlib as mpl
import pytest
from hypothesis import settings

settings.register_profile("unhurried", parent=settings.default, deadline=None)      # a busy machine is no failure
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def as_in_a_new_kernel(monkeypatch):
    """No worker process starts before a function is checked, and no answer has been handed out yet.

    A test file that never imports the exercises does not wait for them: running one file alone takes seconds.
    """
    monkeypatch.setenv("COURSE_WORKER", "0")
    if "course_utils.exercises" in sys.modules:
        monkeypatch.setattr(sys.modules["course_utils.exercises"], "_handed_out", [])


@pytest.fixture(autouse=True)
def in_matplotlibs_own_style():
    """A test that runs a notebook's set-up leaves no style behind for the next one."""
    with mpl.rc_context():
        yield
