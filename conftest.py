"""What every test runs under: no progress bars of the course, and a claim that fails is an error, in notebooks too."""

import os

os.environ["TQDM_DISABLE"] = "1"
os.environ.setdefault("COURSE_SHORT_TRAINING", "1")       # 08 trains two epochs; =0 trains all sixteen
os.environ["COURSE_TESTING"] = "1"                        # inherited by the kernels that run the notebooks
os.environ["HF_HUB_OFFLINE"] = "1"                        # nothing is downloaded in tests
os.environ.setdefault("COURSE_PUBLISHED", os.environ.get("COURSE_MODELS", ""))    # for `published_models`, in every process

from pathlib import Path  # noqa: E402

import nbval.kernel  # noqa: E402
import pytest  # noqa: E402
import saved_outputs  # noqa: E402
import times  # noqa: E402
from nbval.plugin import IPyNbCell, IPyNbFile  # noqa: E402

from course_utils.copies.notebooks import KernelOverFiles, without_models  # noqa: E402

nbval.kernel.KernelManager = KernelOverFiles              # two notebooks that start at once never want the same port
without_models()                                          # outputs were saved without them


def pytest_configure(config):
    """Elsewhere than on Linux x86 the notebooks run without a comparison of what they print (see saved_outputs).

    No cell may write to the error stream, anywhere.
    """
    saved_outputs.compare_figures_too(IPyNbCell)
    saved_outputs.refuse_error_streams(IPyNbFile, IPyNbCell)
    config.pluginmanager.register(times.Times(config.rootpath), "times")
    config.option.nbval_lax = config.option.nbval_lax or not saved_outputs.are_compared()


def pytest_report_header(config) -> str:
    """One line at the top of a run."""
    return "saved outputs: " + ("not compared, only claims, shapes and errors" if config.option.nbval_lax else "compared")


@pytest.fixture
def published_models(monkeypatch) -> Path:
    """The folder that COURSE_MODELS named when the tests began: found by the test that asks for it, hidden from others."""
    if not os.environ["COURSE_PUBLISHED"]:
        pytest.skip("COURSE_MODELS names no folder with weights")
    monkeypatch.setenv("COURSE_MODELS", os.environ["COURSE_PUBLISHED"])
    return Path(os.environ["COURSE_PUBLISHED"])


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parent
