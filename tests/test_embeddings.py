"""A masked mean, and the classifier on top of it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
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


def test_the_logits_are_the_output_layer_of_the_mean_vector():
    torch.manual_seed(0)
    model, ids = BagOfEmbeddings(10, d_model=6, num_classes=3), torch.tensor([[4, 2, 9], [3, 5, 0]])
    first, second = model.embedding.weight[[4, 2, 9]].mean(0), model.embedding.weight[[3, 5]].mean(0)
    torch.testing.assert_close(model(ids), F.linear(torch.stack([first, second]), model.output.weight, model.output.bias))


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


def test_the_order_of_the_words_does_not_matter():
    model = BagOfEmbeddings(10)
    torch.testing.assert_close(model(torch.tensor([[1, 2, 3, 4]])), model(torch.tensor([[4, 2, 1, 3]])))


def test_the_padding_row_is_zero_and_stays_zero():
    model = BagOfEmbeddings(10, d_model=4, pad_id=2)
    assert (model.embedding.weight[2] == 0).all()
    mask = torch.ones(1, 3, dtype=torch.bool)                              # even where the mask lets padding through
    model(torch.tensor([[2, 1, 2]]), mask).sum().backward()
    assert (model.embedding.weight.grad[2] == 0).all() and (model.embedding.weight.grad[1] != 0).any()


def test_an_empty_review_gives_finite_logits():
    model = BagOfEmbeddings(10)
    torch.testing.assert_close(model(torch.zeros(1, 4, dtype=torch.long))[0], model.output.bias)


def test_the_number_of_parameters():
    model = BagOfEmbeddings(50, d_model=16)
    assert sum(p.numel() for p in model.parameters()) == 50 * 16 + 16 * 2 + 2


@pytest.mark.parametrize(("x", "mask"), [((5, 4), (5,)), ((5, 5), (5, 5)), ((1, 3, 4), (5, 3)), ((2, 3, 4), (2, 1)),
                                         ((2, 3, 4), (3,)), ((2, 2, 3, 4), (2, 3))])
def test_a_mean_of_shapes_that_do_not_fit_is_refused(x, mask):
    with pytest.raises(ValueError, match=r"x has shape .*attention_mask .*\(batch, seq_len\).*token_ids\[None\]"):
        masked_mean(torch.randn(x), torch.ones(mask, dtype=torch.bool))


def test_a_single_text_without_its_batch_is_refused():
    with pytest.raises(ValueError, match=r"token_ids\[None\]"):
        BagOfEmbeddings(30, 16)(torch.arange(16))                          # as many words as columns: it would fit
