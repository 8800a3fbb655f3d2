"""Reviews for `fit`: encoded, in batches of similar length padded to their longest, and scored.

Does: `EncodedReviews`, their batches, loss and accuracy. Does not: train (course_utils.training). All of it can be
imported from there, too. A model takes (token_ids, attention_mask) and returns logits, or a result with `.logits`.
"""

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from course_utils import files
from course_utils.options import BATCH_RULES, check_options
from course_utils.tokenization import pad_batch


class EncodedReviews(NamedTuple):
    """Token ids of each review, and its label."""

    ids: list[list[int]]
    labels: list[int]


def encode_reviews(dataset, tokenizer) -> EncodedReviews:
    """Encode the `text` of every row of a dataset split; keep its `label`."""
    return EncodedReviews([tokenizer.encode(text) for text in dataset["text"]], list(dataset["label"]))


class Batch(NamedTuple):
    """token_ids and attention_mask (batch, seq_len), labels (batch,), and which reviews they are."""

    token_ids: torch.Tensor
    attention_mask: torch.Tensor
    labels: torch.Tensor
    indices: list[int]

    def to(self, device) -> "Batch":
        """The same batch with its tensors on a device."""
        return Batch(self.token_ids.to(device), self.attention_mask.to(device), self.labels.to(device), self.indices)

    def part(self, rank: int, of: int) -> "Batch":
        """Every `of`-th review from `rank` on, as wide as the batch: the part of one of `of` processes."""
        return Batch(*(one[rank::of] for one in self))


class BatchOptions(NamedTuple):
    """How reviews become batches. `multiple_of` rounds the width up: odd widths let the allocator grow."""

    batch_size: int = 32
    max_len: int | None = 256
    truncation: str = "head_tail"
    multiple_of: int = 8
    pad_id: int = 0
    bucketed: bool = True


def batches(reviews: EncodedReviews, options: BatchOptions = BatchOptions(), seed: int | None = None) -> Iterator[Batch]:
    """Reviews of similar length together; in random order for a `seed`, in order of length without one."""
    check_options(options._asdict(), BATCH_RULES)
    order = list(range(len(reviews.ids)))
    if seed is not None:
        random.Random(seed).shuffle(order)
    if options.bucketed or seed is None:
        pool = 50 * options.batch_size if seed is not None else max(1, len(order))
        pools = [order[i : i + pool] for i in range(0, len(order), pool)]
        order = [i for part in pools for i in sorted(part, key=lambda i: len(reviews.ids[i]))]
    groups = [order[i : i + options.batch_size] for i in range(0, len(order), options.batch_size)]
    if seed is not None:
        random.Random(seed + 1).shuffle(groups)
    for group in groups:
        rows = [reviews.ids[i] for i in group]
        token_ids, mask = pad_batch(rows, options.pad_id, options.max_len, options.truncation, options.multiple_of)
        yield Batch(token_ids, mask, torch.tensor([reviews.labels[i] for i in group]), group)


def logits_of(result) -> torch.Tensor:
    """The logits of a model's answer, whether it is a tensor or a result with parts."""
    return result if isinstance(result, torch.Tensor) else result.logits


@contextlib.contextmanager
def in_evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients inside the `with` block; afterwards the model is in the mode that it was in."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


class Evaluation(NamedTuple):
    """Mean cross-entropy `loss` and `accuracy` over all reviews; `predictions` (reviews,) and
    `probabilities` (reviews, classes) in the order of the reviews."""

    loss: float
    accuracy: float
    predictions: torch.Tensor
    probabilities: torch.Tensor


def evaluate(model: nn.Module, reviews: EncodedReviews, options: BatchOptions = BatchOptions()) -> Evaluation:
    """Score a model in evaluation mode, without gradients; its mode is put back afterwards.

    Sums are divided by the number of reviews, so a short last batch does not count for more.
    """
    if not reviews.ids:
        raise ValueError("there are no reviews to evaluate; an empty split?")
    device, probabilities, loss = next(model.parameters()).device, {}, 0.0
    with in_evaluation_mode(model):
        for batch in batches(reviews, options._replace(batch_size=max(64, options.batch_size))):
            batch = batch.to(device)
            logits = logits_of(model(batch.token_ids, batch.attention_mask)).float()
            loss += F.cross_entropy(logits, batch.labels, reduction="sum").item()
            probabilities.update(zip(batch.indices, logits.softmax(dim=-1).cpu()))
    table = torch.stack([probabilities[i] for i in range(len(reviews.ids))])
    predictions = table.argmax(dim=-1)
    accuracy = (predictions == torch.tensor(reviews.labels)).double().mean().item()
    return Evaluation(loss / len(reviews.ids), accuracy, predictions, table)


def accuracy_by(groups, predictions, labels) -> dict[str, float]:
    """Accuracy in each group, sorted by name: accuracy_by(["a", "b", "a"], [1, 0, 0], [1, 0, 1]) -> {"a": .5, "b": 1.}."""
    right = {}
    for group, predicted, label in zip(groups, predictions, labels):
        right.setdefault(group, []).append(int(predicted) == int(label))
    return {group: sum(hits) / len(hits) for group, hits in sorted(right.items())}


@dataclass(frozen=True)
class ReviewBatches:
    """Reviews as `TrainingData`."""

    reviews: EncodedReviews
    options: BatchOptions = BatchOptions()

    def __post_init__(self):
        check_options(self.options._asdict(), BATCH_RULES)
        if not self.reviews.ids:
            raise ValueError("there are no reviews to train on; an empty split?")

    def __len__(self) -> int:
        return -(-len(self.reviews.ids) // self.options.batch_size)

    def batches(self, seed: int | None) -> Iterator[Batch]:
        return batches(self.reviews, self.options, seed)

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(self.reviews, self.options)


def classification_loss(model: nn.Module, batch: Batch) -> tuple[torch.Tensor, int]:
    """Mean cross-entropy between a model's logits and the labels, and the number of reviews.

    A label is a class, or a list of probabilities, one for each class (a teacher's).
    """
    logits = logits_of(model(batch.token_ids, batch.attention_mask))
    return F.cross_entropy(logits.float(), batch.labels), len(batch.labels)


@dataclass(frozen=True)
class ReviewScores:
    """A validation: loss and accuracy on labelled reviews. The highest accuracy is best."""

    reviews: EncodedReviews
    options: BatchOptions = BatchOptions()
    best = "highest validation_accuracy"

    def __post_init__(self):
        if not self.reviews.ids:
            raise ValueError("there are no reviews to evaluate on; an empty split?")

    def __call__(self, model: nn.Module) -> dict[str, float]:
        scored = evaluate(model, self.reviews, self.options)
        return {"validation_loss": scored.loss, "validation_accuracy": scored.accuracy}

    @property
    def fingerprint(self) -> str:
        return files.fingerprint(self.reviews, self.options)
