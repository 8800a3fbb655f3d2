"""A masked mean, and the classifier on top of it."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lesson_cells import cells_of
from library_twins import proof, ragged_mask
from torch.nn import functional as F

from course_utils.embeddings import BagOfEmbeddings, masked_mean


@proof
@given(batch=st.integers(1, 4), length=st.integers(1, 7), width=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_masked_mean_is_the_mean_of_each_review_alone(batch, length, width, seed):
    torch.manual_seed(seed)
    x, mask = torch.randn(batch, length, width), ragged_mask(batch, length)
    expected = torch.stack([row[real].mean(dim=0) for row, real in zip(x, mask)])
    torch.testing.assert_close(masked_mean(x, mask), expected)


def test_masked_mean_of_nothing_is_zero_with_finite_gradients():
    x = torch.randn(2, 3, 4, requires_grad=True)
    mean = masked_mean(x, torch.tensor([[True, False, True], [False, False, False]]))
    assert (mean[1] == 0).all()
    (gradient,) = torch.autograd.grad(mean.sum(), x)
    assert gradient.isfinite().all() and (gradient[0, 1] == 0).all() and (gradient[1] == 0).all()


def test_padding_never_changes_a_logit():
    torch.manual_seed(0)
    model, ids = BagOfEmbeddings(10), torch.tensor([[4, 2, 9]])
    padded = F.pad(ids, (0, 5))
    torch.testing.assert_close(model(padded), model(ids), atol=1e-6, rtol=0)
    # a mask rules over the id: an id at a masked place does not count
    torch.testing.assert_close(model(F.pad(ids, (0, 2), value=7), F.pad(ids > 0, (0, 2))), model(ids), atol=1e-6, rtol=0)


def test_without_a_mask_the_padding_id_does_not_count_whichever_it_is():
    model = BagOfEmbeddings(10, pad_id=2)
    torch.testing.assert_close(model(torch.tensor([[4, 0, 2, 2]])), model(torch.tensor([[4, 0]])))


def test_the_padding_row_is_zero_and_stays_zero():
    model = BagOfEmbeddings(10, d_model=4, pad_id=2)
    assert (model.embedding.weight[2] == 0).all()
    mask = torch.ones(1, 3, dtype=torch.bool)                              # even where the mask lets padding through
    model(torch.tensor([[2, 1, 2]]), mask).sum().backward()
    assert (model.embedding.weight.grad[2] == 0).all() and (model.embedding.weight.grad[1] != 0).any()


def test_shapes_that_do_not_fit_are_refused():
    for x, mask in (((5, 5), (5, 5)), ((1, 3, 4), (5, 3)), ((2, 3, 4), (2, 1)), ((2, 2, 3, 4), (2, 3))):
        with pytest.raises(ValueError, match=r"x has shape .*attention_mask .*\(batch, seq_len\).*token_ids\[None\]"):
            masked_mean(torch.randn(x), torch.ones(mask, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"token_ids\[None\]"):
        BagOfEmbeddings(30, 16)(torch.arange(16))                          # as many words as columns: it would fit


@pytest.fixture(scope="module")
def taught() -> dict:
    """What the cells of notebook 03 define, from these cells alone."""
    cells = cells_of("03_embeddings")
    names = {"torch": torch, "nn": torch.nn}
    for cell in ("export-mean", "export-bag"):
        exec(cells[cell], names)
    return names


def test_the_notebooks_mean_is_the_packages(taught):
    torch.manual_seed(0)
    x, mask = torch.randn(3, 5, 4), torch.arange(5) < torch.tensor([[5], [2], [0]])
    assert torch.equal(taught["masked_mean"](x, mask), masked_mean(x, mask))


def test_the_notebooks_class_is_the_packages_with_the_same_names(taught):
    torch.manual_seed(0)
    ids = torch.randint(1, 30, (4, 6)) * (torch.arange(6) < torch.tensor([[6], [1], [4], [3]]))
    package, notebook = BagOfEmbeddings(30, 8, 3), taught["BagOfEmbeddings"](30, 8, 3)
    assert (notebook.embedding.weight[0] == 0).all()
    notebook.load_state_dict(package.state_dict())
    torch.testing.assert_close(notebook(ids, ids > 0), package(ids, ids > 0), atol=1e-6, rtol=0)
    gradient, expected = (torch.autograd.grad(model(ids, ids > 0).square().sum(), list(model.parameters()))
                            for model in (notebook, package))
    for one, other in zip(gradient, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def test_every_line_of_the_loss_curves_lies_inside_its_axes(monkeypatch):
    cells = cells_of("03_embeddings")
    falling, rising = ([0.7, 0.4, 0.02], [0.7, 1.4, 2.65])
    names = {"plt": plt, "save_figure": lambda figure, name: None,
             "history": pd.DataFrame({"training loss": falling, "validation loss": [0.7, 0.7, 0.7]}, index=[1, 3, 6]),
             "memorised": pd.DataFrame({"training loss": falling, "validation loss": rising}, index=[1, 60, 115])}
    monkeypatch.setattr(plt, "show", lambda: None)
    exec(cells["overfit-figure"], names)
    for axes in names["axes"]:
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        for line in axes.lines:
            assert left <= min(line.get_xdata()) and max(line.get_xdata()) <= right
            assert low <= min(line.get_ydata()) and max(line.get_ydata()) <= high
    plt.close(names["fig"])
