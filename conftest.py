"""What every test runs under: no progress bars, and a claim that fails is an error, in notebooks too."""

import os

os.environ["TQDM_DISABLE"] = "1"
os.environ["COURSE_TESTING"] = "1"                        # inherited by the kernels that run the notebooks

from pathlib import Path  # noqa: E402

import pytest  # noqa: E402


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parent
