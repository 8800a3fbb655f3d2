"""Checkpoints in Hugging Face's format: a folder with config.json and model.safetensors, or a name on their hub.

Does: find the folder (a path; a name in the folder that COURSE_MODELS names; else a copy that an earlier download left;
else the hub, asked once, by `find_if_allowed` only where the switch COURSE_DOWNLOAD is on), read both files, fill a model,
and refuse what isn't one model of the expected kind. Does not: know what the weights mean; `load_gpt2` and the like do.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from course_utils.data.fetching import HUB_TIMEOUT, fetch, hub_name
from course_utils.files.paths import CHECKPOINTS
from course_utils.files.switches import is_on
from course_utils.training.model_kinds import COURSE_KINDS, kind_in

__all__ = ["Checkpoint", "ModelNotAvailable", "check_settings", "fill", "find_checkpoint", "find_if_allowed", "first_there",
           "read_checkpoint"]

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
OLDER = "pytorch_model.bin"
TOKENIZERS = ["vocab.json", "merges.txt", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "added_tokens.json",
              "special_tokens_map.json"]
# what a config.json from before `model_type` (2019) must have to be taken for a BERT's; ALBERT's has `embedding_size`, too
EARLY = {"bert": {"vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size",
                  "max_position_embeddings", "type_vocab_size", "hidden_act"}}
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")

# what the child process of `fetch` does
_ASK = """
there = [file.rfilename for file in huggingface_hub.HfApi().model_info(TASK[0], token=False).siblings]
missing = [name for name in TASK[1:3] if name not in there]
if missing:
    other = "in several files" if TASK[3] in there else "in PyTorch's older format" if TASK[4] in there else ""
    refuse("has no " + " and no ".join(missing) + " for that name" + (
        f", only weights {other}, which the course doesn't read" if other else ""))
"""
_STORE = "huggingface_hub.snapshot_download(TASK[0], allow_patterns=TASK[1:3] + TASK[5:], token=False)"


class ModelNotAvailable(RuntimeError):
    """A model that is neither on this machine nor to be fetched. The message names the ways out."""


class Checkpoint(NamedTuple):
    """The `folder` that was read, its `config` as a dict, and its `weights`, tensors by their names in the file."""

    folder: Path
    config: dict
    weights: dict[str, Tensor]


def find_checkpoint(folder_or_name: str | Path, timeout: float = HUB_TIMEOUT) -> Path:
    """The folder of a checkpoint: 'gpt2', 'openai-community/gpt2', or a folder's path.

    A name is looked up in the folder that the variable COURSE_MODELS names, if it's set, and nowhere else then. Raises
    ModelNotAvailable with three lines for a name that leads to nothing, within 20 seconds; ValueError for what is neither.
    """
    name = os.fspath(folder_or_name)
    path = Path(name).expanduser()
    if name and path.is_dir():
        if (path / CONFIG).is_file() and (other := _in_named_folder(name)) and not other.samefile(path):
            warnings.warn(f"{name!r} is the folder {path.resolve()}; the model of that name in COURSE_MODELS is {other}",
                          stacklevel=4)
        return path
    if kind_in(path) in COURSE_KINDS:
        return path
    if path.is_file():
        raise ValueError(f"{name} is a file; give the folder that has {CONFIG} and {WEIGHTS}{_hidden(name)}")
    if not NAME.fullmatch(name):
        raise ValueError(f"there is no folder {name!r}, and it can't be a name on the hub either; such a name looks like "
                         "'gpt2' or 'openai-community/gpt2'")
    if models := os.environ.get("COURSE_MODELS"):
        if found := _in_named_folder(name):
            return found
        _refuse_course_model(name)
        raise ModelNotAvailable(
            f"{name} could not be loaded: COURSE_MODELS names {models}, which has no folder {name}.\n"
            f"Put the model there, as {name}/{CONFIG} and {name}/{WEIGHTS}, or let COURSE_MODELS name another folder,\n"
            "or empty that variable, and the hub is asked (%env COURSE_MODELS=); the rest of the notebook works without it.")
    found = _in_cache(name)
    if not found:
        _refuse_course_model(name)
    why = None if found else _fetch(name, timeout)
    if found := found or (None if why else _in_cache(name)):
        return found
    tried = f"the hub's cache has no copy, and {why or f'{hub_name()} gave no whole copy'}"
    raise ModelNotAvailable(
        f"{name} could not be loaded: COURSE_MODELS is not set, {tried}.\n"
        f"Set COURSE_MODELS to a folder that has {name}/{CONFIG} and {name}/{WEIGHTS}, or give the path of such a folder,\n"
        "or connect to the internet and try again; the rest of the notebook works without it.")


def _in_named_folder(name: str) -> Path | None:
    """The folder of a model in the one that COURSE_MODELS names."""
    models = os.environ.get("COURSE_MODELS")
    places = [Path(models).expanduser() / part for part in (name, name.rpartition("/")[2])] if models else []
    return next((place for place in places if place.is_dir()), None)


def _refuse_course_model(name: str) -> None:
    """Raise ValueError for the name of a model that comes with the course: the hub would be asked for it in vain."""
    if kind := kind_in(CHECKPOINTS / name):
        raise ValueError(f"{name!r} comes with the course, and isn't in Hugging Face's format; "
                         f"{kind.advice(CHECKPOINTS / name)}")


def _hidden(name: str) -> str:
    """What to do where a file or folder that holds no model is called as one on the hub, or in COURSE_MODELS."""
    if not NAME.fullmatch(name):
        return ""
    other = _in_named_folder(name)
    way = f"give its path, {str(other)!r}" if other else "rename yours, or let Python run in another folder"
    return (f"; {name!r} was taken for what is called so in {Path.cwd()}: for the model of that name "
            f"{'in COURSE_MODELS' if other else 'on the hub'}, {way}")


def first_there(*names: str) -> str:
    """The first of these names that has a folder in the one that COURSE_MODELS names; the last if none has."""
    models = os.environ.get("COURSE_MODELS")
    return next((name for name in names if models and (Path(models).expanduser() / name).is_dir()), names[-1])


def find_if_allowed(*names: str, megabytes: int, tokenizer: bool = False, timeout: float = HUB_TIMEOUT) -> Path | None:
    """The folder of the first of these checkpoints that this machine has; else of the last, downloaded if that's allowed.

    With `tokenizer`, the folder must have the files of one, too: a download by a program that only wanted the weights left
    none. The environment variable COURSE_DOWNLOAD=1 allows a download. Returns None where there's no model to be had, and
    prints why: in three lines what would be downloaded, how large that is and how to allow it, or what `find_checkpoint`
    raises.
    """
    name, missing, cached = names[-1], "isn't on this machine", None
    if not os.environ.get("COURSE_MODELS"):
        if cached := next(filter(None, map(_in_cache, names)), None):
            if not tokenizer or _has_tokenizer(cached):
                return cached
            name = next(filter(_in_cache, names))
            missing, megabytes = "is on this machine without its tokenizer", 1
        if not is_on("COURSE_DOWNLOAD"):
            print(f"{name} {missing}; the rest of the notebook works without it.\n"
                  f"It's {megabytes} MB to download from {hub_name()}. To allow that, run this, and then this cell again: "
                  "%env COURSE_DOWNLOAD=1\n"
                  f"If you have it as FOLDER/{name.rpartition('/')[2]}, run this instead: %env COURSE_MODELS=FOLDER")
            return None
        if cached and (why := _fetch(name, timeout)):
            print(f"{name} {missing}, and {why}; the rest of the notebook works without it.")
            return None
    try:
        folder = find_checkpoint(name if cached else first_there(*names), timeout)
    except ModelNotAvailable as error:
        print(error)
        return None
    if tokenizer and not _has_tokenizer(folder):
        print(f"{folder} has a model and no tokenizer, neither tokenizer.json nor vocab.txt; copy them there. The rest of "
              "the notebook works without it.")
        return None
    return folder


def _has_tokenizer(folder: Path) -> bool:
    return any((folder / file).is_file() for file in ("tokenizer.json", "vocab.txt", "vocab.json"))


def _in_cache(name: str) -> Path | None:
    """What an earlier download left, without a question to the network."""
    from huggingface_hub import try_to_load_from_cache

    found = [try_to_load_from_cache(name, file) for file in (CONFIG, WEIGHTS)]
    return Path(found[0]).parent if all(isinstance(one, str) for one in found) else None


def _fetch(name: str, timeout: float) -> str | None:
    """Downloads a checkpoint and its tokenizer into the hub's cache. Returns None, or why it could not."""
    if is_on("HF_HUB_OFFLINE"):
        return f"{hub_name()} was not asked, since HF_HUB_OFFLINE is on"
    settings = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1"}
    files = [CONFIG, WEIGHTS, INDEX, OLDER, *TOKENIZERS]
    return fetch(name, "the hub's cache", _ASK, _STORE, [name, *files], settings, timeout, stall=timeout)


def read_checkpoint(folder_or_name: str | Path, model_type: str, timeout: float = HUB_TIMEOUT) -> Checkpoint:
    """Find a checkpoint and read it; `model_type` is what config.json must say, such as 'gpt2'.

    Raises what `find_checkpoint` raises, and ValueError that names the file for one that is missing, damaged, in several
    parts, or of another kind.
    """
    folder = find_checkpoint(folder_or_name, timeout)
    kind = kind_in(folder)
    if kind in COURSE_KINDS:
        raise ValueError(f"{folder}: expected a {model_type} in Hugging Face's format; {kind.advice(folder)}")
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder} has no {CONFIG}; expected a folder that `save_pretrained` wrote"
                         f"{_hidden(os.fspath(folder_or_name))}")
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        found, known = config.get("model_type"), model_type in EARLY and EARLY[model_type] <= config.keys()
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{folder / CONFIG} is not a model's configuration ({type(error).__name__}: {str(error)[:80]}); "
                         "download it again") from None
    if found is None and (not known or "embedding_size" in config):
        raise ValueError(f"{folder / CONFIG} is not a model's configuration with a 'model_type', and its other settings "
                         f'don\'t say what kind it is; if it\'s a {model_type}, add "model_type": "{model_type}" to it')
    classes = config.get("architectures")
    if found is None and isinstance(classes, list) and not all(str(name).lower().startswith(model_type) for name in classes):
        raise ValueError(f"{folder / CONFIG} has no 'model_type', and its architectures are {classes!r:.80}; expected "
                         f"those of a {model_type}, since another kind computes something else from such weights")
    if found not in (None, model_type):
        raise ValueError(f"{folder} holds a model of the type {found!r}; expected {model_type!r}, since the weights of "
                         f"another kind have other names and another meaning{f'; {kind.advice(folder)}' if kind else ''}")
    if not (folder / WEIGHTS).is_file():
        if (folder / INDEX).is_file():
            more = (", only a list of several files; load it with transformers and write it in one with "
                    "save_pretrained(folder, max_shard_size='100GB')")
        elif (folder / OLDER).is_file():
            more = (f", only {OLDER}, PyTorch's older format; load it with transformers and write it anew with "
                    "save_pretrained(folder)")
        else:
            more = "; expected the weights in that format"
        raise ValueError(f"{folder} has no {WEIGHTS}{more}")
    try:
        weights = safetensors.torch.load_file(folder / WEIGHTS)
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{folder / WEIGHTS} can't be read ({str(error)[:80]}); download it again") from None
    return Checkpoint(folder, config, weights)


def check_settings(config: dict, needed: list[str], only: dict[str, object]) -> None:
    """Refuse a configuration that lacks one of `needed`, or sets one of `only` to anything but the value there, or None.

    Raises ValueError that names the setting.
    """
    for name in needed:
        if config.get(name) is None:
            raise ValueError(f"the configuration has no {name!r}; expected one that `save_pretrained` wrote")
    for name, value in only.items():
        if config.get(name) not in (None, value):
            raise ValueError(f"the configuration says {name}={config[name]!r:.60}; the course's class computes what "
                             f"{name}={value!r} asks for, and would give other numbers here")


def fill(model: nn.Module, weights: Mapping[str, Tensor], source: Path) -> None:
    """Copy weights, under the model's own names, into its parameters and buffers; all must be there, and no others.

    Raises ValueError that names the file `source` for a weight that is missing, unknown, of another shape or type, or not
    finite.
    """
    own, where = model.state_dict(), f"{source / WEIGHTS}, renamed"
    for name in sorted(own.keys() | weights.keys()):
        if name not in weights:
            raise ValueError(f"{where}, has no {name}; expected it, of shape {tuple(own[name].shape)}: the file doesn't fit "
                             "its configuration")
        if name not in own:
            raise ValueError(f"{where}, has {name}, and the model has no such weight: the file doesn't fit its "
                             "configuration, or is of a model with another head")
        if own[name].shape != weights[name].shape:
            raise ValueError(f"{where}: {name} has shape {tuple(weights[name].shape)}; expected {tuple(own[name].shape)}, "
                             "by the configuration")
        if weights[name].dtype not in FLOATS:
            raise ValueError(f"{where}: {name} holds {weights[name].dtype}; expected one of "
                             f"{', '.join(map(str, FLOATS))}: take weights that aren't quantized")
        if not weights[name].isfinite().all():
            raise ValueError(f"{where}: {name} holds numbers that aren't finite; download the file again")
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
