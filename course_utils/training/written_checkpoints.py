"""A checkpoint in Hugging Face's format, written to a folder of its own: whole, or not at all.

Does: config.json, model.safetensors and the files of a tokenizer, all in a new folder that is read once before it gets its
name; an earlier checkpoint of that name goes. Does not: know what the weights mean; `save_bert` and the like do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from course_utils.files import locked, remove_partials, replacing_folder, write_bytes, write_json
from course_utils.training.hugging_face import CONFIG, INDEX, TOKENIZERS, WEIGHTS

__all__ = ["write_checkpoint"]

OURS = {CONFIG, WEIGHTS, *TOKENIZERS, "special_tokens_map.json", "generation_config.json"}  # what a save may replace
PATIENCE = 60.0                                         # seconds that a save waits for another one


def write_checkpoint(
    folder: str | Path, config: dict, weights: Mapping[str, Tensor], others: Mapping[str, str],
    check: Callable[[Path], object] | None = None,
) -> Path:
    """Write `config`, `weights` under the library's names, in float32, and `others`, texts under their files' names.

    Returns the path. `check(folder)` reads what has been written, and refuses it by a ValueError. Until all of it is on the
    disk, `folder` stays as it was; then the new one takes its name. A kill leaves the old checkpoint whole or the new one
    whole, in the moment between two renames both, under names that end in '.partial'. Raises ValueError for what can't be
    read again, and for a folder that holds anything but a checkpoint; OSError where it can't be written.
    """
    path = _place(folder)
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise ValueError(f"the model isn't saved: {name} holds numbers that are NaN or infinite; train it again, with a "
                             "smaller learning rate")
    tensors = {name: t.detach().to("cpu", torch.float32).contiguous().clone() for name, t in weights.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f"{path.name}.saving"), "saving a model", wait=PATIENCE):
        with replacing_folder(path) as partial:
            write_bytes(partial / WEIGHTS, safetensors.torch.save(tensors, metadata={"format": "pt"}))
            for name, text in others.items():
                write_bytes(partial / name, text.encode("utf-8"))
            write_json(partial / CONFIG, config, indent=2)
            try:
                if check is not None:
                    check(partial)
            except ValueError as error:
                why = str(error).replace(str(partial), str(path))
                raise ValueError(f"the model isn't saved, since it couldn't be loaded: {why}") from None
        remove_partials(path)
    return path


def _place(folder: str | Path) -> Path:
    """The path to write to. Raises ValueError for a file, a name that is none, and a folder with something else in it."""
    if not isinstance(folder, str | os.PathLike) or not str(folder).strip() or "\0" in str(folder):
        raise ValueError(f"expected the name of a folder and got {folder!r:.60}; write one, such as 'outputs/my_bert'")
    path = Path(os.path.realpath(os.path.expanduser(folder)))
    if path.exists() and not path.is_dir():
        raise ValueError(f"{folder} is a file; a model is saved in a folder: choose another name")
    strange = sorted(one.name for one in path.iterdir() if one.name not in OURS or one.is_dir()) if path.is_dir() else []
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        hint = "; the weights there are in several files" if INDEX in strange else ""
        raise ValueError(f"{folder} holds {strange[0]}{more}{hint}, which would be lost: a model needs a folder of its own, "
                         "so choose a new name, or empty this one")
    return path
