"""Progress bars off, two threads, and the repository's root for tests that read its files."""

import os

os.environ["TQDM_DISABLE"] = "1"

from pathlib import Path  # noqa: E402

import pytest  # noqa: E402


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parent.parent
