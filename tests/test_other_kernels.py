"""Attention by features: the table's weights without the table, a recurrence, the softmax on average, mixed keys."""

import pytest
import torch
from torch.nn import functional as F

from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.other_kernels import (
    LinearAttention,
    elu_features,
    linear_attention,
    linear_step,
    low_rank_attention,
    random_feature_attention,
)


def drawn(*shape):
    return torch.randn(3, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()


def by_table(query, key, value, causal):
    scores = elu_features(query) @ elu_features(key).transpose(-2, -1)
    scores = scores.tril() if causal else scores
    return scores / scores.sum(dim=-1, keepdim=True) @ value


@pytest.mark.parametrize("causal", [False, True])
def test_linear_attention_is_its_table_forward_and_backward(causal):
    query, key, value = inputs = drawn(2, 3, 17, 4)
    ours, table = linear_attention(query, key, value[..., :3], causal=causal), by_table(query, key, value[..., :3], causal)
    assert torch.allclose(ours, table, atol=1e-10)
    cotangent = torch.randn(ours.shape, dtype=ours.dtype, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(*(torch.autograd.grad(one, inputs, cotangent)[0] for one in (ours, table)), atol=1e-10)


def test_the_step_repeated_is_the_causal_form():
    query, key, value = drawn(2, 9, 4)
    S, z = value.new_zeros(2, 4, 4), value.new_zeros(2, 4)
    at_once = linear_attention(query, key, value, causal=True)
    for t in range(9):
        S, z, context = linear_step(S, z, elu_features(query[:, t]), elu_features(key[:, t]), value[:, t])
        assert torch.allclose(context, at_once[:, t], atol=1e-10)


def test_random_features_come_near_the_softmax_and_nearer_with_more():
    query, key, value = (0.4 * drawn(40, 8)).detach()
    whole = F.scaled_dot_product_attention(query[None], key[None], value[None])[0]
    generator = torch.Generator().manual_seed(0)
    off = []
    for m in (16, 256, 4096):
        directions = torch.randn(8, m, 8, dtype=torch.float64, generator=generator)
        off.append(sum((random_feature_attention(query, key, value, one) - whole).norm() for one in directions).item() / 8)
    assert off[0] > 2.5 * off[1] > 6 * off[2] and off[2] < 0.1 * whole.norm()
    assert random_feature_attention(1000 * query, key, value, directions[0]).isfinite().all()


def test_mixing_with_the_identity_is_attention():
    query, key, value = drawn(2, 6, 4)
    whole = F.scaled_dot_product_attention(query, key, value)
    assert torch.allclose(low_rank_attention(query, key, value, torch.eye(6, dtype=torch.float64)), whole, atol=1e-10)
    mixed = low_rank_attention(query, key, value, torch.full((1, 6), 1 / 6, dtype=torch.float64))
    assert torch.allclose(mixed, value.mean(dim=-2, keepdim=True).expand_as(value), atol=1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_the_layer_has_the_weights_of_multi_head_attention_and_refuses_what_it_cannot_do(causal):
    layer = LinearAttention(8, 2, causal).double()
    MultiHeadAttention(8, 2).load_state_dict(layer.state_dict())
    text = drawn(2, 7, 8)[0]
    split = layer.project(text, text, text)
    expected = layer.output_projection(layer.merge(by_table(*split, causal)))
    assert torch.allclose(layer(text).context, expected, atol=1e-10)
    with pytest.raises(ValueError, match="LinearAttention takes neither mask nor bias"):
        layer(text, need_weights=True)
