"""Classifiers in folders, as earlier versions of the course saved them."""

import dataclasses
import json
from pathlib import Path

import safetensors.torch

from course_utils.classifier import ReviewClassifier
from course_utils.files import sha256


def write(folder: Path, version: int, classifier: ReviewClassifier) -> Path:
    """A classifier as version 1 or 2 saved it; returns the file of its weights."""
    folder.mkdir(exist_ok=True)
    config = {"label_names": classifier.label_names, **dataclasses.asdict(classifier.model.config)}
    contents = {"weights": safetensors.torch.save(classifier.model.state_dict()), "config": json.dumps(config).encode(),
                "vocabulary": json.dumps(classifier.tokenizer.content()).encode()}
    ends = {"weights": "safetensors", "config": "json", "vocabulary": "json"}
    if version == 1:
        names = {"weights": "model.safetensors", "config": "config.json", "vocabulary": "vocabulary.json"}
    else:
        names = {part: f"{part}-{sha256(content)[:12]}.{ends[part]}" for part, content in contents.items()}
        files = {part: {"name": names[part], "sha256": sha256(content)} for part, content in contents.items()}
        (folder / "model.json").write_text(json.dumps({"format": 2, "tokenizer": classifier.tokenizer.kind, "files": files}))
    for part, content in contents.items():
        (folder / names[part]).write_bytes(content)
    return folder / names["weights"]
