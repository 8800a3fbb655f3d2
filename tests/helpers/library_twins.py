"""The course's layers beside the library's: weights copied over, outputs and gradients compared."""

import torch
from hypothesis import settings
from torch import nn

from course_utils.multi_head_attention import MultiHeadAttention
from course_utils.transformer_blocks import EncoderBlock

# the same examples on every machine, and no limit on the time of one
proof = settings(deadline=None, derandomize=True, max_examples=20, database=None)


def same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Outputs agree to 1e-6 in float32 and to 1e-10 in float64."""
    tolerance = 1e-10 if ours.dtype == torch.float64 else 1e-6
    torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


def gradients(output: torch.Tensor, tensors, cotangent: torch.Tensor) -> list[torch.Tensor]:
    """Gradients of sum(output * cotangent); zeros for a tensor that does not matter."""
    found = torch.autograd.grad((output * cotangent).sum(), tensors, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(tensors, found)]


def same_gradients(our_output, our_tensors, their_output, their_tensors) -> None:
    """Gradients in float64 agree to 1e-10 under a random cotangent, and are finite."""
    assert our_output.dtype == torch.float64
    cotangent = torch.randn_like(our_output)
    ours, theirs = (gradients(o, t, cotangent) for o, t in ((our_output, our_tensors), (their_output, their_tensors)))
    assert len(ours) == len(theirs) > 0
    for our, their in zip(ours, theirs):
        assert our.isfinite().all()
        torch.testing.assert_close(our, their, atol=1e-10, rtol=0)


def randomise(module: nn.Module) -> None:
    """Every parameter random, so that no bias is zero and no norm has weight one."""
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn_like(p) * (0.5 if p.dim() == 1 else p.shape[-1] ** -0.5))


def attention_pairs(ours: MultiHeadAttention, theirs: nn.MultiheadAttention):
    """(their parameter, our parameters stacked in the same order)."""
    projections = (ours.query_projection, ours.key_projection, ours.value_projection)
    yield theirs.in_proj_weight, [p.weight for p in projections]
    yield theirs.out_proj.weight, [ours.output_projection.weight]
    if theirs.in_proj_bias is not None:
        yield theirs.in_proj_bias, [p.bias for p in projections]
        yield theirs.out_proj.bias, [ours.output_projection.bias]


def block_pairs(ours: EncoderBlock, theirs: nn.TransformerEncoderLayer):
    """(their parameter, our parameters) of a whole block."""
    yield from attention_pairs(ours.attention, theirs.self_attn)
    for our, their in (
        (ours.feed_forward.expand, theirs.linear1), (ours.feed_forward.contract, theirs.linear2),
        (ours.attention_norm, theirs.norm1), (ours.feed_forward_norm, theirs.norm2),
    ):
        yield their.weight, [our.weight]
        yield their.bias, [our.bias]


def copy_over(pairs) -> tuple[list, list]:
    """Copy our parameters into theirs; return both lists, theirs cut into pieces like ours when compared."""
    ours, theirs = [], []
    with torch.no_grad():
        for their, pieces in pairs:
            their.copy_(torch.cat(pieces))
            ours.extend(pieces)
            theirs.append((their, len(pieces)))
    return ours, theirs


def same_parameter_gradients(our_output, our_tensors, ours, their_output, their_tensors, theirs) -> None:
    """As `same_gradients`, for inputs and for parameters that `copy_over` paired."""
    cotangent = torch.randn_like(our_output)
    our_gradients = gradients(our_output, [*our_tensors, *ours], cotangent)
    raw = gradients(their_output, [*their_tensors, *(t for t, _ in theirs)], cotangent)
    their_gradients = raw[: len(their_tensors)]
    for gradient, (_, pieces) in zip(raw[len(their_tensors) :], theirs):
        their_gradients.extend(gradient.chunk(pieces))
    assert len(our_gradients) == len(their_gradients)
    for our, their in zip(our_gradients, their_gradients):
        assert our.isfinite().all()
        torch.testing.assert_close(our, their, atol=1e-10, rtol=0)


def ragged_mask(batch: int, seq_len: int) -> torch.Tensor:
    """(batch, seq_len), True = real; every row has a token, lengths are random."""
    return torch.arange(seq_len) < torch.randint(1, seq_len + 1, (batch, 1))
