"""Train any model of the course, and score its classifiers; used from notebook 08 on, written out by hand in notebook 03.

Does: AdamW with warm-up and decay, gradient clipping, the best epoch by validation, early stopping, checkpoints that
resume with the same result, a GPU or Apple's chip where there is one; reviews in length-bucketed batches with dynamic
padding; `python -m course_utils train` (see `--help`). Does not: know any model, or what it learns. `fit` takes

    train       what to train on (see `TrainingData`), or `EncodedReviews`
    validation  validation(model) -> a dict of numbers, one of which chooses the epoch; or `EncodedReviews`
    loss_of     loss_of(model, batch) -> the mean loss of a batch, and how many items it is the mean of
"""

from course_utils.training.devices import device_name, fastest_device, training_device, training_precision
from course_utils.training.loop import (
    FitResult,
    FitSettings,
    MeanLoss,
    TrainingData,
    fit,
    learning_rate_at,
    seed_everything,
    train_epoch,
)
from course_utils.training.review_batches import (
    Batch,
    BatchOptions,
    EncodedReviews,
    Evaluation,
    ReviewBatches,
    ReviewScores,
    accuracy_by,
    batches,
    classification_loss,
    encode_reviews,
    evaluate,
    logits_of,
)
from course_utils.training.state import TrainingState, epochs_in, load_checkpoint, save_checkpoint

__all__ = [
    "Batch", "BatchOptions", "EncodedReviews", "Evaluation", "FitResult", "FitSettings", "MeanLoss", "ReviewBatches",
    "ReviewScores", "TrainingData", "TrainingState", "accuracy_by", "batches", "classification_loss", "device_name",
    "encode_reviews", "epochs_in", "evaluate", "fastest_device", "fit", "learning_rate_at", "load_checkpoint",
    "logits_of", "save_checkpoint", "seed_everything", "train_epoch", "training_device", "training_precision",
]
