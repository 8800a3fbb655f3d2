"""Small models, and a batch of texts to be explained."""

import pytest
import torch

from course_utils import explain
from course_utils.classifier import POOLINGS, POSITIONS, ClassifierConfig, SelfAttentionClassifier
from course_utils.tokenization import pad_batch


def make_model(positions="rotary", pooling="attention", seed=0, **options) -> SelfAttentionClassifier:
    torch.manual_seed(seed)
    settings = dict(vocab_size=20, d_model=16, num_heads=2, d_ff=24, num_layers=2, max_len=24) | options
    return SelfAttentionClassifier(ClassifierConfig(positions=positions, pooling=pooling, **settings)).eval()


@pytest.fixture(scope="module")
def batch():
    """Three rows of different lengths, padded: token_ids and attention_mask."""
    return pad_batch([[3, 4, 5, 6, 7, 8, 9], [10, 11, 4], [12, 13, 14, 15, 5]], 0)


def all_methods(model, *batch):
    return {name: method(model, *batch) for name, method in explain.METHODS.items()}


MODELS = [(positions, pooling, layers) for positions in POSITIONS for pooling in POOLINGS for layers in (0, 2)]
