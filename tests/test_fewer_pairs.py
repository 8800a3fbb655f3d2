"""Blocks and dilation, computed on what they keep: equal to the mask that says the same, forward and backward."""

import pytest
import torch
from torch.nn import functional as F

from course_utils.fewer_pairs import (
    SparseAttention,
    block_attention,
    dilated_attention,
    near_blocks,
    with_global_blocks,
    with_random_blocks,
)
from course_utils.multi_head_attention import MultiHeadAttention


def drawn(*shape):
    return torch.randn(3, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()


def patterns():
    near = near_blocks(6)
    random = with_random_blocks(near, 2, torch.Generator().manual_seed(1))
    return {"near": near, "far reach": near_blocks(6, 2), "global": with_global_blocks(near, 2), "random": random,
            "all three": with_random_blocks(with_global_blocks(near), 1, torch.Generator().manual_seed(2))}


def same(ours, theirs, inputs):
    """Outputs, and gradients under a random cotangent."""
    assert torch.allclose(ours, theirs, atol=1e-10)
    cotangent = torch.randn(ours.shape, dtype=ours.dtype, generator=torch.Generator().manual_seed(3))
    assert torch.allclose(*(torch.autograd.grad(one, inputs, cotangent, retain_graph=True)[0] for one in (ours, theirs)),
                          atol=1e-10)


@pytest.mark.parametrize("name", patterns())
def test_blocks_are_the_mask_that_says_the_same(name):
    kept, inputs = patterns()[name], drawn(2, 3, 30, 4)
    query, key, value = inputs
    mask = kept.repeat_interleave(5, 0).repeat_interleave(5, 1)
    same(block_attention(query, key, value, kept, 5), F.scaled_dot_product_attention(query, key, value, mask), inputs)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_dilated_window_is_the_mask_that_says_the_same(step):
    query, key, value = inputs = drawn(2, 24 * step, 4)
    at = torch.arange(24 * step)
    near = (at[:, None] // step // 4 - at // step // 4).abs() <= 1
    mask = near & (at[:, None] % step == at % step)
    ours = dilated_attention(query, key, value, near_blocks(6), 4, step)
    same(ours, F.scaled_dot_product_attention(query, key, value, mask), inputs)


def test_patterns_say_what_they_keep():
    assert near_blocks(4).sum(dim=1).tolist() == [2, 3, 3, 2] and near_blocks(3, 0).equal(torch.eye(3, dtype=torch.bool))
    near = near_blocks(6)
    some = with_global_blocks(near)
    assert some[0].all() and some[:, 0].all() and some[1:, 1:].equal(near[1:, 1:])
    assert near.equal(near_blocks(6)), "the table that was given stays as it was"
    more = with_random_blocks(near, 2, torch.Generator().manual_seed(0))
    assert more.sum(dim=1).tolist() == [number + 2 for number in near.sum(dim=1).tolist()] and (more | near).equal(more)
    assert with_random_blocks(near, 9, torch.Generator()).all()


def test_the_layer_has_the_weights_of_multi_head_attention_and_refuses_what_it_cannot_do():
    kept = patterns()["all three"]
    layer, full = SparseAttention(8, 2, kept, 3).double(), MultiHeadAttention(8, 2).double()
    full.load_state_dict(layer.state_dict())
    text = drawn(2, 18, 8)[0]
    mask = kept.repeat_interleave(3, 0).repeat_interleave(3, 1)[None, None]
    assert torch.allclose(layer(text).context, full(text, mask=mask).context, atol=1e-10)
    for refused in ({"mask": mask}, {"need_weights": True}):
        with pytest.raises(ValueError, match="SparseAttention takes neither mask nor bias"):
            layer(text, **refused)
    with pytest.raises(ValueError, match="17 tokens; expected 6 blocks of 3, 18 tokens"):
        layer(text[:, :17])
