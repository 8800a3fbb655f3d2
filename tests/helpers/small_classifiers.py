"""Small classifiers of every kind, and texts for them."""

import pytest
import torch

from course_utils.classifier import POOLINGS, POSITIONS, ClassifierConfig, SelfAttentionClassifier


def make_model(positions="sinusoidal", pooling="attention", seed=0, **options) -> SelfAttentionClassifier:
    torch.manual_seed(seed)
    settings = dict(vocab_size=20, d_model=16, num_heads=2, d_ff=24, num_layers=2, max_len=24) | options
    return SelfAttentionClassifier(ClassifierConfig(positions=positions, pooling=pooling, **settings)).eval()


MODELS = [(positions, pooling) for positions in POSITIONS for pooling in POOLINGS]
each_model = pytest.mark.parametrize(("positions", "pooling"), MODELS)
