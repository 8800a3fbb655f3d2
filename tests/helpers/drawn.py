"""What tests of figures share: a quiet matplotlib, some words, some weights, and what was drawn."""

import warnings

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from matplotlib.collections import QuadMesh  # noqa: E402

WORDS = ("the film was not dull but a moving portrait of two brothers and nobody left before the end of it so we "
         "stayed").split()


@pytest.fixture(autouse=True)
def quiet_and_tidy(monkeypatch):
    """Every warning is an error (a missing glyph, a deprecated call), and no figure outlives its test."""
    for name in ("COURSE_STYLE", "COURSE_OUTPUTS"):
        monkeypatch.delenv(name, raising=False)
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # of what another test left, whenever Python clears it away
        yield
    plt.close("all")


def softmax(*shape, seed=0):
    values = np.exp(1.5 * np.random.default_rng(seed).normal(size=shape))
    return values / values.sum(-1, keepdims=True)


def mesh(ax):
    return next(drawn for drawn in ax.collections if isinstance(drawn, QuadMesh))


def boxes(ax):
    """The texts of a strip, without the scale's."""
    return [t.get_text() for t in ax.texts]


EYE = np.eye(3)
