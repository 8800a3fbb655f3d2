"""A saved model is one safetensors file; its header tells what the tensors are, in JSON under the key `course_model`:

    {"version": 3, "sha256": "…", "model": "SelfAttentionClassifier", "config": {…}, "vocabulary": {…}, "label_names": […],
     "notes": {…}}

The checksum is that of the whole file with 64 zeros in its place. Does: say which file a name means, make the bytes of one
and read them again, whole, so that the file can be replaced while its model is in use. Does not: know models (see
`saved_models`). Nothing is unpickled.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import safetensors.torch
from torch import Tensor

from course_utils.files import sha256

__all__ = ["INSIDE", "MEND", "SUFFIX", "about_file", "file_bytes", "model_file", "read_file", "writes_to"]

KEY, VERSION, NO_SUM = "course_model", 3, "0" * 64      # versions 1 and 2 were folders: see `earlier_models`
SUFFIX, INSIDE = ".safetensors", "model.safetensors"    # INSIDE: in a folder that is there already
MEND = "copy the whole file again, or train and save again"


def writes_to(path: Path) -> Path:
    """Where a model is saved under a name: NAME.safetensors, or model.safetensors in a folder that is there already."""
    if path.suffix == SUFFIX:
        return path
    return path / INSIDE if os.path.isdir(path) else Path(f"{path}{SUFFIX}")


def model_file(path: Path) -> Path:
    """What is read under a name: the file that `writes_to` gives, or the name itself where only that is there."""
    beside = Path(f"{path}{SUFFIX}")
    if path.suffix == SUFFIX and not os.path.isdir(path):
        return path
    if about_file(path / INSIDE):
        return path / INSIDE
    return beside if os.path.isfile(beside) or not os.path.lexists(path) else path


def file_bytes(tensors: dict[str, Tensor], about: dict) -> bytes:
    """The file of some tensors; `about` is what the header says beside version and checksum. The same for the same model."""
    told = {"version": VERSION, "sha256": NO_SUM, **about}
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    if any("\ud800" <= letter <= "\udfff" for letter in text):             # half a character, which only an escape can hold
        text = json.dumps(told)
    content = safetensors.torch.save(tensors, {KEY: text})
    return content.replace(NO_SUM.encode(), sha256(content).encode(), 1)


def read_file(path: Path) -> tuple[dict, dict[str, Tensor]]:
    """What `file_bytes` was given. Raises ValueError for a file that is cut off, changed, of another version or origin."""
    content = path.read_bytes()
    try:
        tensors = safetensors.torch.load(content)
        about = _about(content)
    except Exception as error:                          # safetensors has an error of its own, and lets others through
        raise ValueError(f"{path} isn't a whole safetensors file ({error}); {MEND}") from None
    if not isinstance(about, dict):
        raise ValueError(f"{path} is a safetensors file, but its header doesn't say which model it holds; give one that "
                         "save() of this course wrote")
    version, told = about.pop("version", None), about.pop("sha256", None)
    if version != VERSION:
        raise ValueError(f"{path} is of version {version!r:.60}, and this course reads version {VERSION}; read it with the "
                         "course that saved it, or train and save again")
    found = sha256(content.replace(str(told).encode(), NO_SUM.encode(), 1))
    if found != told:
        raise ValueError(f"{path} has changed since it was saved: its SHA-256 is {found[:12]}…, and its header says "
                         f"{str(told)[:12]}…; {MEND}")
    return about, tensors


def about_file(path: Path) -> dict:
    """What the header says, unchecked; empty for anything but a file of ours."""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
            about = _about(start + file.read(min(int.from_bytes(start, "little"), 10**8)))
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def _about(content: bytes):
    """The JSON in a file's header; None without such a key."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    return json.loads(metadata[KEY]) if isinstance(metadata, dict) and KEY in metadata else None
