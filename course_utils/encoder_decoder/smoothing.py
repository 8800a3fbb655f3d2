"""Cross-entropy with softened targets, for training."""

import dataclasses

from torch import Tensor, nn

from course_utils.options import check_options, fraction
from course_utils.training.pair_batches import PAD, PairBatch
from course_utils.training.processes import NothingCounts

__all__ = ["smoothed_cross_entropy", "SmoothedLoss"]


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.1, pad_id: int = PAD) -> Tensor:
    """The mean cross-entropy, in nats, with 1 - smoothing on the right word and smoothing spread over all words.

    logits (..., vocab), targets (...) -> (). Every word of the vocabulary gets smoothing / vocab, the right one too (Szegedy
    et al. 2016, section 7). Targets that are `pad_id` don't count. Raises ValueError for a smoothing that isn't a
    proportion, and if no target counts.

    Taught in 17_encoder_decoder, '3. The whole Transformer, and how it learns'.
    """
    check_options({"smoothing": smoothing}, {"smoothing": fraction()})
    log_p = logits.float().log_softmax(dim=-1)                             # (..., vocab)
    counted = targets != pad_id
    if not counted.any():
        raise NothingCounts(f"every target is pad_id={pad_id}, so there is nothing to learn from; leave empty sentences out")
    right = -log_p.gather(-1, targets[..., None])[..., 0]                  # (...)
    everything = -log_p.mean(dim=-1)                                       # (...): the cross-entropy with 1/vocab each
    return ((1 - smoothing) * right + smoothing * everything)[counted].mean()


@dataclasses.dataclass(frozen=True)
class SmoothedLoss:
    """A `loss_of` for `course_utils.training.fit`: (model, PairBatch) -> mean smoothed loss, and over how many words.

    Taught in 17_encoder_decoder, '3. The whole Transformer, and how it learns'.
    """

    smoothing: float = 0.1

    def __call__(self, model: nn.Module, batch: PairBatch) -> tuple[Tensor, int]:
        read, asked = batch.target_ids[:, :-1], batch.target_ids[:, 1:]    # (batch, target) each
        logits = model(batch.source_ids, batch.source_mask, read).logits   # (batch, target, vocab)
        return smoothed_cross_entropy(logits, asked, self.smoothing), int((asked != PAD).sum())

    @property
    def fingerprint(self) -> str:
        """What a checkpoint knows this loss by."""
        return f"SmoothedLoss({self.smoothing})"
