"""When not to answer: risk against coverage, a threshold with a promise, and a classifier that says "don't know".
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.classifier import ReviewClassifier
from course_utils.options import between, check_options
from course_utils.training.saved_numbers import CAUTION, read_numbers, write_numbers

__all__ = ["RiskCoverage", "risk_coverage", "threshold_for", "CautiousClassifier"]


class RiskCoverage(NamedTuple):
    """With the surest 1, 2, … examples answered: `coverage` and `risk` (examples,); `area`, the mean of the risks.

    Taught in 15_distillation, '7. "Don't know"'.
    """

    coverage: Tensor
    risk: Tensor
    area: float


def _surest_first(confidence: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    if confidence.dim() != 1 or confidence.shape != right.shape or not len(confidence):
        raise ValueError(f"confidence {tuple(confidence.shape)} and right {tuple(right.shape)}; give (examples,) twice, at "
                         "least one")
    order = confidence.argsort(descending=True, stable=True)
    answered = torch.arange(1, len(order) + 1, dtype=torch.float64)
    return order, (~right.bool()[order]).double().cumsum(0) / answered     # risk (examples,)


def risk_coverage(confidence: Tensor, right: Tensor) -> RiskCoverage:
    """Answer the surest first: confidence (examples,), right (examples,) bool -> RiskCoverage (Geifman and El-Yaniv 2017).

    Taught in 15_distillation, '7. "Don't know"'.
    """
    order, risk = _surest_first(confidence, right)
    return RiskCoverage(torch.arange(1, len(order) + 1, dtype=torch.float64) / len(order), risk, risk.mean().item())


def threshold_for(confidence: Tensor, right: Tensor, risk: float) -> float:
    """The lowest confidence at or above which at most `risk` of the (validation) examples are wrong; infinity if none is.

    Taught in 15_distillation, '7. "Don't know"'.
    """
    check_options({"risk": risk}, {"risk": between(0, 1)})
    order, found = _surest_first(confidence, right)
    ordered = confidence[order]
    last = torch.cat([ordered[1:] < ordered[:-1], torch.tensor([True])])   # examples of equal confidence go together
    fitting = ordered[last & (found <= risk)]
    return fitting.min().item() if len(fitting) else float("inf")


class CautiousClassifier(NamedTuple):
    """A `ReviewClassifier` that says "don't know" below `threshold`.

    Its confidence is the classifier's, softened once more by `temperature`: what `fit_temperature` finds for the logarithms
    of the probabilities that the classifier gives. A classifier that was loaded has its own temperature already, so there
    it's 1.

    Taught in 15_distillation, '8. A reader that comes with the course'.
    """

    classifier: ReviewClassifier
    temperature: float
    threshold: float

    def predict(self, texts: Iterable[str]) -> tuple[list[str], Tensor]:
        """A label or "don't know" for each text, and the confidence (texts,) in the label that it would have given."""
        labels, probabilities = self.classifier.predict(texts)
        if self.temperature != 1:
            probabilities = (probabilities.log() / self.temperature).softmax(dim=-1)
        confidence = probabilities.amax(dim=-1)
        sure = (confidence >= self.threshold).tolist()
        return [label if known else "don't know" for label, known in zip(labels, sure)], confidence

    def save(self, name: str | Path) -> None:
        """Save the classifier with its threshold, and both temperatures as one.

        Raises what `ReviewClassifier.save` and `write_numbers` raise."""
        self.classifier.save(name)
        temperature = self.classifier.temperature * self.temperature
        write_numbers(name, CAUTION, {"temperature": temperature, "threshold": self.threshold})

    @classmethod
    def load(cls, name: str | Path) -> "CautiousClassifier":
        """What `save` wrote; by a name alone such as "student", one that comes with the course.

        The temperature in the file is the classifier's then. Raises what `ReviewClassifier.load` raises, and
        FileNotFoundError for a classifier without a threshold.
        """
        numbers = read_numbers(name, CAUTION, ("threshold",))
        return cls(ReviewClassifier.load(name), 1.0, numbers["threshold"])
