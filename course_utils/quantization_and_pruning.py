"""Smaller models without training: weights of 2 to 8 bits, and weights left out.

Does: `quantize` a matrix, `prune` a matrix, `with_weights` does either to all matrices of a model, and `stored_bytes` says
what they take on disk. Does not: compute with integers, skip zeros, or train. The model computes with ordinary floats.

Exported from notebooks/extras/quantization_and_pruning.ipynb: edit it there.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from course_utils.options import check_options, one_of, positive, whole

__all__ = ["Quantized", "quantize", "matrices", "with_weights", "prune", "stored_bytes"]


class Quantized(NamedTuple):
    """A matrix in whole numbers: `integers` int8 (rows, columns), `scales` (rows, 1), or (1, 1) for one scale in all.

    Taught in extras/quantization_and_pruning, '1. Six weights in eight bits'.
    """

    integers: Tensor
    scales: Tensor

    def weights(self) -> Tensor:
        """The matrix that the whole numbers stand for, (rows, columns) float."""
        return self.integers * self.scales


def quantize(weight: Tensor, bits: int = 8, scales: str = "row") -> Quantized:
    """Round a matrix (rows, columns) to whole numbers of `bits` bits, symmetric around 0, with a scale by "row" or "matrix".

    No weight moves by more than half its scale, which is float32. A row of zeros stays one, and so does a row of numbers so
    small (about 1e-43) that their scale would be 0. Raises ValueError for a weight that's no matrix or isn't finite, and for
    bits other than 2 to 8.

    Taught in extras/quantization_and_pruning, '1. Six weights in eight bits'.
    """
    check_options({"bits": bits, "scales": scales}, {"bits": whole(2, 8), "scales": one_of("row", "matrix")})
    _check_matrix(weight)
    weight = weight.detach().float()
    largest = weight.abs().amax(dim=1, keepdim=True) if scales == "row" else weight.abs().amax().view(1, 1)
    top = 2 ** (bits - 1) - 1
    step = largest / top
    step = torch.where(step > 0, step, torch.ones_like(step))
    return Quantized((weight / step).round().clamp(-top, top).to(torch.int8), step)


def _check_matrix(weight: Tensor) -> None:
    if weight.dim() != 2 or weight.numel() == 0:
        raise ValueError(f"expected a matrix (rows, columns) and got a tensor of the shape {tuple(weight.shape)}")
    if not weight.isfinite().all():
        raise ValueError("the matrix holds a number that isn't finite; mend the model before you make it smaller")


def matrices(model: nn.Module) -> dict[str, nn.Parameter]:
    """A model's trained matrices by name, each (rows, columns): linear layers and word vectors, not biases or norms.

    Taught in extras/quantization_and_pruning, '3. Five classifiers in fewer bits'.
    """
    return {name: weight for name, weight in model.named_parameters() if weight.dim() == 2}


def with_weights(model: nn.Module, change: Callable[[Tensor], Tensor]) -> nn.Module:
    """A copy of the model in eval mode, with every matrix w replaced by `change(w)`; the model itself stays as it is.

    Taught in extras/quantization_and_pruning, '3. Five classifiers in fewer bits'.
    """
    changed = copy.deepcopy(model).eval()
    with torch.no_grad():
        for weight in matrices(changed).values():
            weight.copy_(change(weight))
    return changed


def prune(weight: Tensor, keep: float, generator: torch.Generator | None = None) -> Tensor:
    """The matrix (rows, columns) with only its largest weights, 0 in the place of the others; at least one weight stays.

    `keep`, above 0 and at most 1, is the proportion that stays, to the nearest whole number of weights. With a generator
    they are chosen at random instead. Raises ValueError for another `keep`, and for what isn't a finite matrix.

    Taught in extras/quantization_and_pruning, '4. Fewer weights'.
    """
    check_options({"keep": keep}, {"keep": positive(1)})
    _check_matrix(weight)
    number = max(1, round(keep * weight.numel()))
    size = weight.abs() if generator is None else torch.rand(weight.shape, generator=generator)
    kept = size.flatten().topk(number).indices
    result = torch.zeros_like(weight.detach()).flatten()
    result[kept] = weight.detach().flatten()[kept]
    return result.view_as(weight)


def stored_bytes(weight: Tensor, bits: int = 32, keep: float = 1.0) -> float:
    """Bytes for a matrix (rows, columns): `keep` of its weights in `bits` bits, a map of the kept ones, and scales.

    The map takes a bit for each weight, if any is left out; a float32 scale for each row comes with fewer than 32 bits.

    Taught in extras/quantization_and_pruning, '5. At equal bytes'.
    """
    check_options({"bits": bits, "keep": keep}, {"bits": whole(1, 32), "keep": positive(1)})
    rows, total = weight.shape[0], weight.numel()
    kept = max(1, round(keep * total))
    return kept * bits / 8 + (total / 8 if kept < total else 0) + (4 * rows if bits < 32 else 0)
