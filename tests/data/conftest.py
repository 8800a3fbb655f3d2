"""What tests of loading from the network share."""

import datasets
import pytest


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """An empty `datasets` cache, no COURSE_DATA, and no proxy between the tests and the loopback address."""
    monkeypatch.delenv("COURSE_DATA", raising=False)
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE", "HF_DATASETS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache" / "datasets")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
