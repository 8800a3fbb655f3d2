"""Reviews of a few words and a model that learns them in a second."""

import random

import torch
from torch import nn

from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.training import BatchOptions, EncodedReviews


def toy_reviews(n=60, seed=0) -> EncodedReviews:
    """Id 2 makes a review negative and id 3 positive; ids 4 to 9 mean nothing."""
    rng = random.Random(seed)
    ids, labels = [], []
    for i in range(n):
        row = [rng.randrange(4, 10) for _ in range(rng.randrange(1, 12))]
        row.insert(rng.randrange(len(row) + 1), 2 + i % 2)
        ids.append(row)
        labels.append(i % 2)
    return EncodedReviews(ids, labels)


def toy_model(seed=0, **options) -> SelfAttentionClassifier:
    torch.manual_seed(seed)
    settings = dict(vocab_size=10, d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=16, dropout=0.2) | options
    return SelfAttentionClassifier(ClassifierConfig(**settings))


QUIET = dict(progress=False, options=BatchOptions(batch_size=8, max_len=16))


class Killed(BaseException):
    """As a signal would end the process: nothing on the way catches it."""


class CountsSteps(nn.Module):
    """A model that ends the run in the forward pass of one training step."""

    def __init__(self, model, stop_at=None):
        super().__init__()
        self.model, self.stop_at, self.steps = model, stop_at, 0
        self.config = model.config

    def forward(self, token_ids, attention_mask):
        self.steps += self.training
        if self.training and self.steps == self.stop_at:
            raise Killed
        return self.model(token_ids, attention_mask)
