"""Matrices in 8 bits for the file of a model: whole numbers from -127 to 127, and a scale for each row.

Does: `packed` makes of a model's weights what is written, `unpacked` what is read, `in_eight_bits` both, which is the
rounded model. Does not: explain it (extras/quantization_and_pruning does), or compute with whole numbers: a model that has
been read computes with ordinary floats, the same ones on every processor.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["SCALES", "in_eight_bits", "packed", "unpacked"]

SCALES, LARGEST = "/scales", 127                        # follows a matrix's name; no parameter's name has a stroke


def packed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices (rows, columns) as int8, each with its scales (rows,) float32; everything else as float32."""
    result = {}
    for name, weight in weights.items():
        result[name] = weight = weight.detach().cpu().float().clone()
        if weight.dim() == 2:
            largest = weight.abs().amax(dim=1)
            scales = torch.where(largest > 0, largest / LARGEST, torch.ones_like(largest))
            result[name] = (weight / scales[:, None]).round().clamp(-LARGEST, LARGEST).to(torch.int8)
            result[name + SCALES] = scales
    return result


def unpacked(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The matrices that `packed` ones stand for, float32; others as they are, also whole numbers without scales."""
    scaled = {name for name, tensor in tensors.items()
              if name + SCALES in tensors and tensors[name + SCALES].shape == tensor.shape[:1]}
    return {name: tensor * tensors[name + SCALES][:, None] if name in scaled else tensor
            for name, tensor in tensors.items() if not name.endswith(SCALES)}


def in_eight_bits(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights as they come back from a file in 8 bits: float32, no matrix entry moved by more than half its scale."""
    return unpacked(packed(weights))
