"""A model with its configuration, vocabulary and labels in one file, replaced at once and checked when it's read.

    write_model("outputs/mine", model, tokenizer, {"label_names": […]}, SelfAttentionClassifier)   # mine.safetensors
    read_model("outputs/mine", SelfAttentionClassifier, ClassifierConfig, ["label_names"])

Does: write, read, check; say what a name means. Does not: define a model; `ReviewClassifier` of course_utils/classifier.py
and the like call it. What is in the file: see `saved_files`.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from course_utils.files import write_bytes
from course_utils.files.paths import CHECKPOINTS, ELSEWHERE
from course_utils.tokenization import Tokenizer
from course_utils.training.earlier_models import about_folder, read_folder
from course_utils.training.model_kinds import CODE, SMALL, also_a_course_model, kind_in, kind_of
from course_utils.training.plain_text import PlainWordPieces, PlainWords, reading_plain
from course_utils.training.saved_contents import (
    TOKENIZERS,
    check_answers,
    check_keys,
    check_label_names,
    check_numbers,
    read_tokenizer,
    written_tokenizer,
)
from course_utils.training.saved_files import MEND, SUFFIX, about_file, file_bytes, model_file, read_file, writes_to

__all__ = ["SCALES", "SavedModel", "check_answers", "check_label_names", "find_model", "holds_model", "in_eight_bits",
           "packed", "read_model", "read_note", "read_plain_texts", "unpacked", "write_model", "write_note"]

SCALES, LARGEST = "/scales", 127                        # follows a matrix's name; no parameter's name has a stroke


def packed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices (rows, columns) as int8, each with its scales (rows,) float32; everything else as float32."""
    result = {}
    for name, weight in weights.items():
        result[name] = weight = weight.detach().cpu().float().clone()
        if weight.dim() == 2:
            largest = weight.abs().amax(dim=1)
            scales = torch.where(largest > 0, largest / LARGEST, torch.ones_like(largest))
            result[name] = (weight / scales[:, None]).round().clamp(-LARGEST, LARGEST).to(torch.int8)
            result[name + SCALES] = scales
    return result


def unpacked(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The matrices that `packed` ones stand for, float32; others as they are, also whole numbers without scales."""
    scaled = {name for name, tensor in tensors.items()
              if name + SCALES in tensors and tensors[name + SCALES].shape == tensor.shape[:1]}
    return {name: tensor * tensors[name + SCALES][:, None] if name in scaled else tensor
            for name, tensor in tensors.items() if not name.endswith(SCALES)}


def in_eight_bits(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights as they come back from a file in 8 bits: float32, no matrix entry moved by more than half its scale."""
    return unpacked(packed(weights))


class SavedModel(NamedTuple):
    """What `read_model` found: `model` in eval mode, its `tokenizer`, and the `extra` entries of the header."""

    model: nn.Module
    tokenizer: Tokenizer
    extra: dict


def write_model(name, model: nn.Module, tokenizer, extra: dict, model_class: type, eight_bits: bool = False) -> Path:
    """Save a `model_class` with a dataclass `config`, its tokenizer and `extra` entries for the header; return the file.

    That is name.safetensors, or model.safetensors in a folder `name` that is there already. With `eight_bits` its matrices
    are rounded (see `packed`), and take a quarter of the space. A kill or a full disk at any moment leaves the
    old file whole or the new one. Raises ValueError for what `read_model` would refuse (weights that aren't finite, a
    vocabulary of another size), OSError if the file can't be written; the old one is still there.
    """
    path = writes_to(_path(name))
    if type(model) is not model_class or type(tokenizer) not in (*TOKENIZERS.values(), PlainWords, PlainWordPieces):
        other = type(tokenizer) if type(model) is model_class else type(model)
        raise ValueError(f"the model isn't saved: it holds a {other.__name__}, and loading would make something else of "
                         f"it; use a {model_class.__name__} and one of the course's tokenizers")
    tensors = {key: tensor.detach().cpu().clone() for key, tensor in model.state_dict().items()}
    config = {key: getattr(value, "item", lambda value=value: value)() for key, value in  # NumPy's numbers as plain ones
              dataclasses.asdict(model.config).items()}
    about = {"model": model_class.__name__, "config": config, "vocabulary": written_tokenizer(tokenizer),
             **extra}
    try:
        _checked(about, tensors, model_class, type(model.config), extra)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the model isn't saved, since it couldn't be loaded: {error}") from None
    _write(path, packed(tensors) if eight_bits else tensors, about)
    return path


def read_model(name, model_class: type, config_class: type, extra: Iterable[str] = ()) -> SavedModel:
    """Read and check what `write_model` wrote; `extra` are the entries of the header beside model, config and vocabulary.

    `name` is looked up as by `find_model`. Raises FileNotFoundError if there is nothing of that name, and ValueError for a
    model of another kind, and for a file that is damaged, changed or of another version. Each message names the file and
    says what to do.
    """
    path, extra = find_model(name), list(extra)
    wanted, found = kind_of({"model": model_class.__name__, **dict.fromkeys(extra)}), kind_in(path)
    if found is not None and wanted is not None and found != wanted and {found, wanted} != {CODE, SMALL}:
        raise ValueError(f"{str(path)[:200]}: expected {wanted.what}; {found.advice(path)}")
    about, tensors = _read(path)
    about.pop("notes", None)
    try:
        config, tokenizer = _checked(about, tensors := unpacked(tensors), model_class, config_class, extra)
        model = model_class(config).to(next((tensor.dtype for tensor in tensors.values()), torch.float32))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:                       # names and shapes, a line for each
        raise ValueError(f"{path}: {' '.join(str(error).split()):.400}; {MEND}") from None
    return SavedModel(model.eval(), tokenizer, {key: about[key] for key in extra})


def _checked(about: dict, tensors: dict[str, Tensor], model_class: type, config_class: type, extra: Iterable[str]):
    """(configuration, tokenizer) of a model whose parts are sound and fit each other."""
    check_keys(about, ["model", "config", "vocabulary", *extra], "its header")
    if about["model"] != model_class.__name__:
        raise ValueError(f"its header says model={about['model']!r:.60}, and expected is {model_class.__name__!r}; read it "
                         "with the course that saved it")
    check_keys(about["config"], [field.name for field in dataclasses.fields(config_class)], config_class.__name__)
    config = config_class(**about["config"])
    if "label_names" in about:
        check_label_names(about["label_names"], config.num_classes)
    tokenizer = read_tokenizer(about["vocabulary"])
    for key in ("vocab_size", "pad_id", "unk_id"):
        own, said = getattr(tokenizer, key, None), getattr(config, key, None)
        if None not in (own, said) and own != said:
            raise ValueError(f"its configuration says {key}={said}, and that of its vocabulary is {own}; use the vocabulary "
                             "that the model was trained with")
    check_numbers(tensors)
    return config, tokenizer


def read_plain_texts(name) -> None:
    """Let a saved model read texts in their plain form from now on; nothing but that setting changes.

    For a model whose training texts had straight quotes. Raises as `read_model` does for a file that is damaged or missing,
    and ValueError for a model that reads byte pairs of code.
    """
    path = find_model(name)
    about, tensors = _read(path)
    about["vocabulary"] = written_tokenizer(reading_plain(read_tokenizer(about["vocabulary"])))
    _write(writes_to(path), tensors, about)


def write_note(name, title: str, content: dict) -> Path:
    """Write something about a saved model into its file, such as what it was made from; return the file.

    It is for these weights: the next `write_model` leaves it out. Raises as `read_model` does for what isn't a whole model.
    """
    path = find_model(name)
    about, tensors = _read(path)
    about["notes"] = {**about.get("notes", {}), title: content}
    return _write(writes_to(path), tensors, about)


def read_note(name, title: str) -> dict | None:
    """What `write_note` wrote under this title; None if there is no such note. Raises as `write_note` does."""
    return _read(find_model(name))[0].get("notes", {}).get(title)


def _write(path: Path, tensors: dict[str, Tensor], about: dict) -> Path:
    try:
        write_bytes(path, file_bytes(tensors, about))
    except OSError as error:
        raise OSError(error.errno, f"the model isn't saved ({error.strerror}); choose another name, or make room for it",
                      str(path)) from None
    return path


def _read(path: Path) -> tuple[dict, dict[str, Tensor]]:
    if not os.path.lexists(path) or os.path.isdir(path) and not holds_model(path):
        kind = kind_in(path)
        apart = path.parent == CHECKPOINTS and (CHECKPOINTS / ELSEWHERE).exists()
        advice = f"the larger models are in files of their own, see data/checkpoints/{ELSEWHERE}" if apart else _ADVICE
        raise FileNotFoundError(
            f"there is no model in {str(path)[:200]}; {kind.advice(path) if kind else advice}{also_a_course_model(path)}")
    try:
        return read_folder(path) if os.path.isdir(path) else read_file(path)
    except (ValueError, OSError) as error:
        raise type(error)(f"{error}{also_a_course_model(path)}") from None


_ADVICE = ("give the name that save(name) was given, or that of a model that comes with the course, such as 'imdb'; "
           "models of the Hugging Face hub are for load_bert, load_gpt2 and load_llama")


def _path(named) -> Path:
    """A model's name as a path, `~` expanded. Raises TypeError for anything but a string or a path."""
    if not isinstance(named, str | os.PathLike):
        raise TypeError(f"expected the name of a model and got {named!r:.60}; write a string, such as 'outputs/mine'")
    if not str(named).strip() or "\0" in str(named):
        raise ValueError(f"expected the name of a model and got {named!r:.60}; write one, such as 'outputs/mine'")
    return Path(os.path.expanduser(named))


def find_model(name) -> Path:
    """The file that is meant, or the folder of an earlier version; by a name alone, one that comes with the course.

    Where the working folder has a file or folder of that name, that one is meant, with a warning if it's a model of its own;
    the course's is then data/checkpoints/ and the name. Raises TypeError or ValueError for what can't be a name.
    """
    path = _path(name)
    found = model_file(path)
    if path.name and path == Path(path.name) and not os.path.lexists(found):
        own = model_file(CHECKPOINTS / path.name)
        return own if os.path.exists(own) else found
    if holds_model(found):
        beside = Path(f"{path}{SUFFIX}")
        if found.parent == path and beside.is_file():
            warnings.warn(f"read {str(found)!r}; for the other model of that name, give {str(beside)!r}", stacklevel=2)
        if hidden := also_a_course_model(found):
            warnings.warn(hidden.removeprefix("; "), stacklevel=1)         # once, however often the model is loaded
    return found


def holds_model(name) -> bool:
    """Whether there is a model of that name, of this or of an earlier version; not whether it is whole."""
    path = model_file(Path(name))
    return bool(about_folder(path) if os.path.isdir(path) else about_file(path))
