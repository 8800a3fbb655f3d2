"""Small classifiers in folders, of this layout and of the earlier one, to be damaged."""

import json
import os
import time
from pathlib import Path

import pytest
import torch

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.files import sha256
from course_utils.tokenization import WordTokenizer
from course_utils.training.saved_models import ENDINGS, MANIFEST, OLD_NAMES

WORDS = ["<pad>", "<unk>", "a", "dull", "moving", "film", "."]
TEXTS = ["A dull film.", "A moving film.", "", "zzyzx"]


def make(seed=0, tokenizer=None, labels=("negative", "positive"), **options) -> ReviewClassifier:
    torch.manual_seed(seed)
    tokenizer = tokenizer or WordTokenizer(WORDS)
    settings = dict(vocab_size=tokenizer.vocab_size, d_model=8, num_heads=2, d_ff=12, num_layers=2, max_len=16) | options
    return ReviewClassifier(SelfAttentionClassifier(ClassifierConfig(**settings)), tokenizer, labels)


def to_old_layout(folder: Path) -> None:
    """Make what `save` wrote look as earlier versions wrote it."""
    for part, name in OLD_NAMES.items():
        os.replace(path_of(folder, part), folder / name)
    (folder / MANIFEST).unlink()


def path_of(folder: Path, part: str) -> Path:
    if not (folder / MANIFEST).exists():
        return folder / OLD_NAMES[part]
    return folder / json.loads((folder / MANIFEST).read_text())["files"][part]["name"]


def rewrite(folder: Path, part: str, content: bytes) -> None:
    """Change one file, and, where there is a manifest, its checksum too: what is wrong is then the content."""
    path = path_of(folder, part)
    if not (folder / MANIFEST).exists():
        path.write_bytes(content)
        return
    path.unlink()
    manifest = json.loads((folder / MANIFEST).read_text())
    name = f"{part}-{sha256(content)[:12]}.{ENDINGS[part]}"
    manifest["files"][part] = {"name": name, "sha256": sha256(content)}
    (folder / name).write_bytes(content)
    (folder / MANIFEST).write_text(json.dumps(manifest))


@pytest.fixture(params=["this layout", "the earlier layout"])
def folder(request, tmp_path) -> Path:
    make().save(tmp_path / "my_model")
    if request.param == "the earlier layout":
        to_old_layout(tmp_path / "my_model")
    return tmp_path / "my_model"


def refused(folder: Path, names: str, *words: str, error=ValueError) -> None:
    """load() raises exactly this kind of error, within a second, names the file and says what to do."""
    begun = time.process_time()
    with pytest.raises(error) as raised:
        ReviewClassifier.load(folder)
    assert time.process_time() - begun < 1
    message = str(raised.value)
    assert type(raised.value) is error and names in message and str(folder) in message, message
    assert all(word in message for word in words), message
    advice = ("copy the whole folder", "; use ", "; try ", "; give ", "train again")
    assert any(words in message for words in advice), message
    assert "\n" not in message and len(message) < 600
