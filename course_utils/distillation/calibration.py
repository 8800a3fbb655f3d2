"""Whether confidence can be believed: predictions in bins, their calibration error, and a temperature that may lower it.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.options import check_options, whole

__all__ = ["Reliability", "reliability", "expected_calibration_error", "fit_temperature"]


class Reliability(NamedTuple):
    """Predictions in equally wide bins of confidence: `count`, mean `confidence`, `accuracy`, each (bins,); 0 in empty bins.

    Taught in 15_distillation, '5. How sure is it?'.
    """

    count: Tensor
    confidence: Tensor
    accuracy: Tensor


def reliability(confidence: Tensor, right: Tensor, bins: int = 10) -> Reliability:
    """Sort predictions into bins from 0 to 1, upper edges included (Guo et al. 2017, section 2).

    confidence (examples,) from 0 to 1, right (examples,) bool. Raises ValueError for other shapes or numbers, or none.

    Taught in 15_distillation, '5. How sure is it?'.
    """
    check_options({"bins": bins}, {"bins": whole(1, 10_000)})
    if confidence.dim() != 1 or confidence.shape != right.shape or not len(confidence):
        raise ValueError(f"confidence {tuple(confidence.shape)} and right {tuple(right.shape)}; give (examples,) twice, at "
                         "least one")
    if not ((confidence >= 0) & (confidence <= 1)).all():
        raise ValueError("a confidence is below 0, above 1 or NaN; give probabilities, not logits")
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)[1:-1]
    place = torch.bucketize(confidence.double(), edges)                    # (examples,)
    count, sure, hits = (torch.zeros(bins, dtype=torch.float64).index_add_(0, place, values.double())
                         for values in (torch.ones_like(confidence), confidence, right))
    return Reliability(count.long(), sure / count.clamp(min=1), hits / count.clamp(min=1))


def expected_calibration_error(confidence: Tensor, right: Tensor, bins: int = 10) -> float:
    """The mean over predictions of |confidence - accuracy| of their bin (Naeini et al. 2015), from 0 to 1.

    Taught in 15_distillation, '5. How sure is it?'.
    """
    found = reliability(confidence, right, bins)
    return ((found.confidence - found.accuracy).abs() * found.count).sum().item() / len(confidence)


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The temperature with the lowest cross-entropy of logits / T, to convergence; from 0.01 to 100 (Guo et al. 2017).

    logits (examples, classes), labels (examples,): of the validation split. The slope with respect to 1/T says which half to
    keep. 0.01 or 100 means that the best is beyond, as where every answer is right. Raises ValueError for other shapes.

    Taught in 15_distillation, '6. One number, and how far it carries'.
    """
    if logits.dim() != 2 or labels.shape != logits.shape[:1] or not len(labels):
        raise ValueError(f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)}; give (examples, classes) and "
                         "(examples,), at least one")
    z = logits.detach().double() - logits.detach().double().amax(dim=-1, keepdim=True)
    of_label = z.gather(-1, labels[:, None]).mean()
    low, high = 0.01, 100.0                                                # of 1 / T
    for _ in range(200):
        middle = (low * high) ** 0.5
        slope = ((middle * z).softmax(dim=-1) * z).sum(dim=-1).mean() - of_label
        low, high = (low, middle) if slope > 0 else (middle, high)
    return 1 / high
