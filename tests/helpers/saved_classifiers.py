"""Small classifiers to save, and to damage."""

import time
from pathlib import Path

import pytest
import torch

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.tokenization import WordTokenizer
from course_utils.training.saved_files import file_bytes, read_file

WORDS = ["<pad>", "<unk>", "a", "dull", "moving", "film", "."]
TEXTS = ["A dull film.", "A moving film.", "", "zzyzx"]


def make(seed=0, tokenizer=None, labels=("negative", "positive"), **options) -> ReviewClassifier:
    torch.manual_seed(seed)
    tokenizer = tokenizer or WordTokenizer(WORDS)
    settings = dict(vocab_size=tokenizer.vocab_size, d_model=8, num_heads=2, d_ff=12, num_layers=2, max_len=16) | options
    return ReviewClassifier(SelfAttentionClassifier(ClassifierConfig(**settings)), tokenizer, labels)


def rewrite(path: Path, change) -> None:
    """Let `change(header, tensors)` change what a file says, and give it the right checksum."""
    about, tensors = read_file(path)
    change(about, tensors)
    path.write_bytes(file_bytes(tensors, about))


def refused(name: Path, *words: str, error=ValueError) -> None:
    """load() raises exactly this kind of error, within a second, names the file and says what to do."""
    begun = time.process_time()
    with pytest.raises(error) as raised:
        ReviewClassifier.load(name)
    assert time.process_time() - begun < 1
    message = str(raised.value)
    assert type(raised.value) is error and str(name) in message and all(word in message for word in words), message
    assert any(way in message for way in ("again", "; use ", "; give ", "load it with", "with the course that")), message
    assert "\n" not in message and len(message) < 600
