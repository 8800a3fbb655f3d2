"""Learn from a teacher's logits: softened probabilities, and a loss that mixes them with labels where there are any.
"""

import dataclasses

from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.files import fingerprint
from course_utils.options import between, check_options, positive
from course_utils.training import Batch, logits_of

__all__ = ["NO_LABEL", "soften", "distillation_loss", "DistillationLoss"]


NO_LABEL = -100


def soften(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Softmax of logits / temperature: (..., classes) -> probabilities (..., classes). Raises ValueError unless it's > 0.

    Taught in 15_distillation, '3. A loss with soft targets'.
    """
    check_options({"temperature": temperature}, {"temperature": positive(1e6)})
    return (logits / temperature).softmax(dim=-1)


def distillation_loss(
    student_logits: Tensor, teacher_logits: Tensor, labels: Tensor, temperature: float = 2.0, alpha: float = 0.5
) -> Tensor:
    """alpha · T² · KL(teacher ‖ student), both at T, + (1 - alpha) · cross-entropy with labels at T = 1, in nats.

    Hinton et al. 2015, section 2. Logits (batch, classes); labels (batch,), `NO_LABEL` where there's none. KL is the mean
    over the batch, cross-entropy the mean over labelled rows (0 without any). No gradient reaches the teacher. Raises
    ValueError for shapes that don't fit, and options outside their range.

    Taught in 15_distillation, '3. A loss with soft targets'.
    """
    check_options({"temperature": temperature, "alpha": alpha}, {"temperature": positive(1e6), "alpha": between(0, 1)})
    shapes = [tuple(tensor.shape) for tensor in (student_logits, teacher_logits, labels)]
    if shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[2] != shapes[0][:1]:
        raise ValueError(f"student_logits {shapes[0]}, teacher_logits {shapes[1]}, labels {shapes[2]}; "
                         "give (batch, classes) twice and (batch,)")
    log_student = (student_logits / temperature).log_softmax(dim=-1)                       # (batch, classes)
    soft = F.kl_div(log_student, soften(teacher_logits.detach(), temperature), reduction="batchmean")
    labelled = (labels != NO_LABEL).sum()
    hard = F.cross_entropy(student_logits, labels, reduction="sum", ignore_index=NO_LABEL) / labelled.clamp(min=1)
    return alpha * temperature**2 * soft + (1 - alpha) * hard


@dataclasses.dataclass(frozen=True, eq=False)
class DistillationLoss:
    """A `loss_of` for `course_utils.training.fit`: `teacher_logits` (texts, classes) has a row for each training text.

    Taught in 15_distillation, '3. A loss with soft targets'.
    """

    teacher_logits: Tensor
    temperature: float = 2.0
    alpha: float = 0.5

    def __call__(self, model: nn.Module, batch: Batch) -> tuple[Tensor, int]:
        logits = logits_of(model(batch.token_ids, batch.attention_mask)).float()
        teacher = self.teacher_logits[batch.indices].to(logits.device)
        return distillation_loss(logits, teacher, batch.labels, self.temperature, self.alpha), len(batch.labels)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.teacher_logits.tolist(), self.temperature, self.alpha)
