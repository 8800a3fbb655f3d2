"""Models that earlier versions of the course saved: folders with a file each for weights, configuration and vocabulary.

Version 2 had model.json, which names the three files with their checksums; version 1 had three fixed names. Does: read both
as `saved_files` reads today's files. Does not: write any. Kept for one release: to drop it, delete this file, its test and
the two lines that import it.
"""

from __future__ import annotations

import json
from pathlib import Path

import safetensors.torch
from torch import Tensor

from course_utils.files import sha256

__all__ = ["about_folder", "read_folder"]

MANIFEST = "model.json"
NAMES = {"weights": "model.safetensors", "config": "config.json", "vocabulary": "vocabulary.json"}
MEND = "copy the whole folder again, or train and save again"


def about_folder(folder: Path) -> dict:
    """What a header would say of the model in a folder, unchecked, without its vocabulary's list; empty for no such."""
    try:
        return _about(*_parts(folder, checked=False))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def read_folder(folder: Path) -> tuple[dict, dict[str, Tensor]]:
    """Header and tensors of the model in a folder. Raises ValueError where a file is missing, damaged or changed."""
    try:
        config, vocabulary, weights = _parts(folder, checked=True)
        about, tensors = _about(config, vocabulary, weights), safetensors.torch.load(weights)
    except Exception as error:                          # safetensors has an error of its own
        raise ValueError(f"the model of an earlier version in {folder} can't be read ({type(error).__name__}: {error}); "
                         f"{MEND}") from None
    tensors.pop("rotary.frequency", None)               # today it's computed where it's needed
    for path in folder.glob("*.json"):                  # numbers that belong to these weights
        told = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(told, dict) and told.pop("weights", None) == sha256(weights):
            about.setdefault("notes", {})[path.stem] = told
    return about, tensors


def _parts(folder: Path, checked: bool) -> tuple[dict, dict, bytes]:
    if not (folder / MANIFEST).is_file():
        contents = {part: (folder / name).read_bytes() for part, name in NAMES.items()}
    else:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        contents = {part: (folder / Path(files[part]["name"]).name).read_bytes() for part in NAMES}
        for part, content in contents.items():
            if checked and sha256(content) != files[part]["sha256"]:
                raise ValueError(f"{files[part]['name']} has changed since it was saved")
    return json.loads(contents["config"]), json.loads(contents["vocabulary"]), contents["weights"]


def _about(config: dict, vocabulary: dict, weights: bytes) -> dict:
    extra = {name: config.pop(name) for name in ("label_names", "source_words") if name in config}
    own = {"pooling": "SelfAttentionClassifier", "source_vocab_size": "Transformer", "tied": "LanguageModel"}
    model = next((name for setting, name in own.items() if setting in config), None)
    if model is None:
        raise ValueError("its configuration is that of another program")
    return {"model": model, "config": config, "vocabulary": vocabulary, **extra}
