"""Learn from a teacher's probabilities, check what a confidence is worth, and say "don't know".

Does: `soften`, `distillation_loss` and `DistillationLoss` for `course_utils.training.fit` (`soft_targets`); `reliability`,
`expected_calibration_error` and `fit_temperature` (`calibration`); `risk_coverage`, `threshold_for` and a classifier that
may decline, `CautiousClassifier` (`abstaining`). Does not: train or choose a teacher.

    loss_of = DistillationLoss(teacher_logits, temperature=2.0, alpha=1.0)     # logits (texts, classes), for `fit`
"""

from course_utils.distillation.abstaining import CautiousClassifier, RiskCoverage, risk_coverage, threshold_for
from course_utils.distillation.calibration import Reliability, expected_calibration_error, fit_temperature, reliability
from course_utils.distillation.soft_targets import NO_LABEL, DistillationLoss, distillation_loss, soften

__all__ = ["NO_LABEL", "soften", "distillation_loss", "DistillationLoss", "Reliability", "reliability",
           "expected_calibration_error", "fit_temperature", "RiskCoverage", "risk_coverage", "threshold_for",
           "CautiousClassifier"]
