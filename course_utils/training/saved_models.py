"""A model in a folder: weights, configuration and vocabulary, replaced all at once and checked when read.

A saved model is four files. Three have a piece of their checksum in their names, so a new model never overwrites an old
one. The fourth, `model.json`, names the three with their full checksums; replacing it is the one step that turns the
old model into the new one. Files that it doesn't name are removed afterwards.

    model.json   weights-3fa9c1d2ab01.safetensors   config-77e0….json   vocabulary-b949….json

Folders written by earlier versions (model.safetensors, config.json, vocabulary.json, no checksums) can still be read.

Does: write, read, check. Does not: define a model; `ReviewClassifier` of course_utils/classifier.py calls it. Nothing is
unpickled.
"""

import contextlib
import dataclasses
import json
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch
from torch import nn

from course_utils.files import locked, remove_partials, sha256, write_bytes, write_json
from course_utils.files.paths import CHECKPOINTS
from course_utils.tokenization import Tokenizer
from course_utils.training.eight_bits import packed
from course_utils.training.model_kinds import CODE, SMALL, Kind, also_a_course_model, kind_in, kind_of
from course_utils.training.plain_tokenizers import PlainWordPieces, PlainWords, reading_plain
from course_utils.training.saved_contents import (
    MANIFEST,
    MEND,
    TOKENIZERS,
    check_answers,
    check_keys,
    check_label_names,
    check_numbers,
    check_shapes,
    parse_json,
    read_tensors,
    read_tokenizer,
)

__all__ = ["MANIFEST", "SavedModel", "check_answers", "check_label_names", "find_model", "holds_model", "read_model",
           "read_plain_texts", "saved_weights", "write_model"]

FORMAT = 2                                              # format 1: OLD_NAMES, without a manifest
ENDINGS = {"weights": "safetensors", "config": "json", "vocabulary": "json"}
OLD_NAMES = {"weights": "model.safetensors", "config": "config.json", "vocabulary": "vocabulary.json"}
NAMED_BY_CONTENT = re.compile(r"weights-[0-9a-f]{12}\.safetensors|(?:config|vocabulary)-[0-9a-f]{12}\.json")
PATIENCE = 60.0                                         # seconds that a save waits for another one


class SavedModel(NamedTuple):
    """What `read_model` found: `model` in eval mode, its `tokenizer`, and the `extra` entries of its configuration."""

    model: nn.Module
    tokenizer: Tokenizer
    extra: dict


class _Parts(NamedTuple):
    """The three files as bytes, the path of each for messages, and the tokenizer's kind if the manifest names it."""

    content: dict[str, bytes]
    paths: dict[str, Path]
    tokenizer: str | None


# writing

def write_model(folder, model: nn.Module, tokenizer, extra: dict, model_class: type, eight_bits: bool = False) -> None:
    """Save a `model_class` with a dataclass `config`, its tokenizer and `extra` entries for the configuration in `folder`.

    With `eight_bits` its matrices are rounded (see `training.eight_bits`), and take a quarter of the space.
    A kill or a full disk at any moment leaves the old model whole or the new one whole. Raises ValueError for what
    `read_model` would refuse (weights that aren't finite, a vocabulary of another size), OSError if the folder can't be
    written to, and `files.InUse` if another process has been saving there for a minute; the old model is still there.
    """
    folder = _folder(folder)
    if os.path.exists(folder) and not folder.is_dir():  # os.path takes any name and doesn't raise
        raise ValueError(f"{folder} is a file; a model is saved in a folder: choose another name")
    if type(model) is not model_class or type(tokenizer) not in (*TOKENIZERS.values(), PlainWords, PlainWordPieces):
        other = type(tokenizer) if type(model) is model_class else type(model)
        raise ValueError(f"the model isn't saved: it holds a {other.__name__}, and loading would make something else of "
                         f"it; use a {model_class.__name__} and one of the course's tokenizers")
    weights = {name: t.detach().cpu().clone() for name, t in model.state_dict().items()}
    content = {
        "weights": safetensors.torch.save(packed(weights) if eight_bits else weights),
        "config": _json({**extra, **dataclasses.asdict(model.config)}, indent=2),
        "vocabulary": _json(tokenizer.content(), indent=0),
    }
    sums = {part: sha256(data) for part, data in content.items()}
    names = {part: f"{part}-{sums[part][:12]}.{ENDINGS[part]}" for part in content}
    parts = _Parts(content, {part: folder / name for part, name in names.items()}, tokenizer.kind)
    try:
        _checked(parts, model_class, type(model.config), extra)
    except ValueError as error:
        raise ValueError(f"the model isn't saved, since it couldn't be loaded: {error}") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "a link to nothing" if os.path.islink(folder) else error.strerror
        raise OSError(f"the folder {str(folder)[:200]} can't be made ({why}); choose another name, or a "
                      "folder of yours") from None
    with locked(folder / MANIFEST, "saving a model", wait=PATIENCE):
        for part, data in content.items():
            write_bytes(folder / names[part], data)
        files = {part: {"name": names[part], "sha256": sums[part]} for part in content}
        write_json(folder / MANIFEST, {"format": FORMAT, "tokenizer": tokenizer.kind, "files": files})
        _remove_others(folder, set(names.values()))


def read_plain_texts(folder) -> None:
    """Let a saved model read texts in their plain form from now on; only its vocabulary's file changes.

    For a model whose training texts had straight quotes. Raises as `read_model` does for a folder that is damaged or
    missing, and ValueError for a model that reads byte pairs of code.
    """
    folder = _folder(folder)
    parts = _read_parts(folder)
    with _naming(parts.paths["vocabulary"]):
        tokenizer = reading_plain(read_tokenizer(parse_json(parts.content["vocabulary"]), parts.tokenizer))
    content = _json(tokenizer.content(), indent=0)
    if parts.tokenizer is None:                         # the earlier layout
        write_bytes(parts.paths["vocabulary"], content)
        return
    with locked(folder / MANIFEST, "saving a model", wait=PATIENCE):
        manifest = _read_manifest(folder / MANIFEST)
        name = f"vocabulary-{sha256(content)[:12]}.{ENDINGS['vocabulary']}"
        write_bytes(folder / name, content)
        manifest["files"]["vocabulary"] = {"name": name, "sha256": sha256(content)}
        write_json(folder / MANIFEST, manifest)
        _remove_others(folder, {file["name"] for file in manifest["files"].values()})


def _json(content: dict, indent: int) -> bytes:
    text = json.dumps(content, ensure_ascii=False, indent=indent, default=lambda value: value.tolist())  # NumPy's
    try:
        return f"{text}\n".encode()
    except UnicodeEncodeError:                          # half a surrogate pair, which only an escape can hold
        return f"{json.dumps(json.loads(text), indent=indent)}\n".encode()


def _remove_others(folder: Path, named: set[str]) -> None:
    """Remove the files of earlier models, and what killed saves have left; anything else in the folder stays."""
    with contextlib.suppress(OSError):                  # one that can't be removed now is removed by the next save
        remove_partials(folder / MANIFEST)
        for path in folder.iterdir():
            content_name = path.name.split(".partial")[0].rpartition(".")[0] if path.name.endswith(".partial") else path.name
            if NAMED_BY_CONTENT.fullmatch(content_name) and path.name not in named:
                path.unlink()
        if _is_old_layout(folder):
            for part in ("weights", "vocabulary", "config"):  # the configuration last: it tells that the others are ours
                (folder / OLD_NAMES[part]).unlink(missing_ok=True)


def _is_old_layout(folder: Path) -> bool:
    """Whether config.json was written by `save`, not by another program that also calls its file so."""
    try:
        config = json.loads((folder / OLD_NAMES["config"]).read_text(encoding="utf-8"))
        return {"label_names", "vocab_size", "embedding_scale"} <= set(config)
    except (OSError, ValueError, TypeError, RecursionError):
        return False


# reading

def read_model(folder, model_class: type, config_class: type, extra: Iterable[str] = ()) -> SavedModel:
    """Read and check what `write_model` wrote; `extra` are the entries of the configuration beside `config_class`'s.

    `folder` is found as by `find_model`. Raises FileNotFoundError if the folder or one of its files isn't there, and
    ValueError for a model of another kind, and for a file that is damaged, changed or doesn't fit the others. Each message
    names the file and says what to do.
    """
    folder, extra = find_model(folder), list(extra)
    _refuse_other_kinds(folder, kind_of([*extra, *(field.name for field in dataclasses.fields(config_class))], None))
    parts = _read_parts(folder)
    config, tensors, tokenizer, values = _checked(parts, model_class, config_class, extra)
    model = model_class(config)
    model.to(next((t.dtype for t in tensors.values()), torch.float32))
    model.load_state_dict(tensors)
    return SavedModel(model.eval(), tokenizer, values)


def _folder(named) -> Path:
    """The path of a model's folder, `~` expanded. Raises TypeError for anything but a string or a path."""
    if not isinstance(named, str | os.PathLike):
        raise TypeError(f"expected the name of a folder and got {named!r:.60}; write a string, such as 'outputs/mine'")
    if not str(named).strip() or "\0" in str(named):
        raise ValueError(f"expected the name of a folder and got {named!r:.60}; write one, such as 'outputs/mine'")
    return Path(os.path.expanduser(named))


def find_model(folder) -> Path:
    """The folder that is meant: a path; or, by a name alone such as "imdb", a model that comes with the course.

    Where the working folder has a file or folder of that name, that one is meant, with a warning if it's a model of its own;
    the course's is then data/checkpoints/ and the name. Raises TypeError or ValueError for what can't be a folder's name.
    """
    folder = _folder(folder)
    own, alone = CHECKPOINTS / folder.name, folder.name and folder == Path(folder.name)
    if alone and not os.path.lexists(folder) and own.is_dir():
        return own
    if holds_model(folder) and (hidden := also_a_course_model(folder)):
        warnings.warn(hidden.removeprefix("; "), stacklevel=1)              # once, however often the model is loaded
    return folder


def _refuse_other_kinds(folder: Path, wanted: Kind | None) -> None:
    """Raise ValueError where the folder holds another kind of model than `wanted`, with the function that loads it."""
    found = kind_in(folder)
    if found is not None and wanted is not None and found != wanted and {found, wanted} != {CODE, SMALL}:
        raise ValueError(f"{str(folder)[:200]}: expected {wanted.what}; {found.advice(folder)}")


def saved_weights(folder) -> tuple[Path, str]:
    """The folder of a saved model, found as `read_model` finds it, and the SHA-256 of its weights by its manifest.

    Raises FileNotFoundError if there's no model, ValueError if its manifest is damaged, or it has none, being of the earlier
    layout.
    """
    folder = find_model(folder)
    if _state_of(folder) is None:
        kind = kind_in(folder)
        if holds_model(folder):
            raise ValueError(f"the model in {str(folder)[:200]} is of the earlier layout, which has no checksums; load it "
                             f"and save it again{f'; {kind.advice(folder)}' if kind else ''}")
        if kind:
            raise ValueError(f"{str(folder)[:200]}: expected a model that the course saved; {kind.advice(folder)}")
        raise FileNotFoundError(f"there is no model in {str(folder)[:200]}: it lacks {MANIFEST}; give the folder that "
                                "ReviewClassifier.save(folder) wrote, or the name of a model that comes with the course"
                                f"{also_a_course_model(folder)}")
    return folder, _read_manifest(folder / MANIFEST)["files"]["weights"]["sha256"]


def holds_model(folder) -> bool:
    """Whether there is a model in the folder, of this or of the earlier layout; not whether it is whole."""
    folder = Path(folder)
    return (folder / MANIFEST).is_file() or all((folder / name).is_file() for name in OLD_NAMES.values())


def _read_parts(folder: Path) -> _Parts:
    if not os.path.exists(folder):
        raise FileNotFoundError(f"there is no folder {str(folder)[:200]}; give the folder that "
                                "ReviewClassifier.save(folder) wrote, or the name of a model that comes with the course, "
                                "such as 'imdb'; models of the Hugging Face hub are for load_bert, load_gpt2 and load_llama"
                                f"{also_a_course_model(folder)}")
    if not folder.is_dir():
        raise ValueError(f"{folder} is a file; give the folder that ReviewClassifier.save(folder) wrote, not a file in it"
                         f"{also_a_course_model(folder)}")
    missing = None
    for _ in range(10):
        seen = _state_of(folder)
        try:
            if seen is None:
                return _read_old_parts(folder)
            return _read_named(folder, _read_manifest(folder / MANIFEST))
        except FileNotFoundError as error:              # another process may have replaced the model in between
            if _state_of(folder) == seen:
                raise
            missing = error
    raise FileNotFoundError(f"the model in {folder} is being replaced again and again ({missing}); load it when that has "
                            "ended")


def _state_of(folder: Path) -> tuple | None:
    """What is another one after every save, also of a model that was there before; None without a manifest."""
    try:
        state = os.stat(folder / MANIFEST)
    except OSError:
        return None
    return (state.st_ino, state.st_mtime_ns) if stat.S_ISREG(state.st_mode) else None


def _read_named(folder: Path, manifest: dict) -> _Parts:
    """The files that the manifest names, if each is there and has its checksum."""
    content, paths = {}, {part: folder / manifest["files"][part]["name"] for part in ENDINGS}
    for part, path in paths.items():
        try:
            content[part] = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            raise FileNotFoundError(f"{folder} lacks {path.name}, which {MANIFEST} names; {MEND}") from None
        found, expected = sha256(content[part]), manifest["files"][part]["sha256"]
        if found != expected:
            raise ValueError(
                f"{path} has changed since it was saved: its SHA-256 is {found[:12]}…, and {MANIFEST} says "
                f"{expected[:12]}…; {MEND}"
            )
    return _Parts(content, paths, manifest["tokenizer"])


def _read_old_parts(folder: Path) -> _Parts:
    paths = {part: folder / name for part, name in OLD_NAMES.items()}
    missing = [path.name for path in paths.values() if not path.is_file()]
    if len(missing) == len(paths):
        raise FileNotFoundError(
            f"there is no model in {folder}: it lacks {MANIFEST}; give the folder that ReviewClassifier.save(folder) wrote"
            f"{also_a_course_model(folder)}"
        )
    if missing:
        raise FileNotFoundError(f"{folder} lacks {', '.join(missing)}; {MEND}")
    return _Parts({part: path.read_bytes() for part, path in paths.items()}, paths, None)


def _read_manifest(path: Path) -> dict:
    with _naming(path):
        manifest = parse_json(path.read_bytes())
        check_keys(manifest, ("format", "tokenizer", "files"), "a manifest")
        if manifest["format"] != FORMAT or isinstance(manifest["format"], bool):
            raise ValueError(f"format is {manifest['format']!r}, and this version of the course reads {FORMAT}; {MEND}")
        if manifest["tokenizer"] not in list(TOKENIZERS):
            raise ValueError(f"the tokenizer is {manifest['tokenizer']!r:.60}, and this version of the course knows "
                             f"{' and '.join(map(repr, TOKENIZERS))}; read it with the version that saved it, or {MEND}")
        files = manifest["files"]
        check_keys(files, ENDINGS, "'files'")
        for part, file in files.items():
            check_keys(file, ("name", "sha256"), f"'{part}'")
            named_so = isinstance(file["name"], str) and NAMED_BY_CONTENT.fullmatch(file["name"])
            if not named_so or not file["name"].startswith(f"{part}-"):
                raise ValueError(f"{part} is in a file called {file['name']!r}, which save() never writes; {MEND}")
            if not isinstance(file["sha256"], str) or not re.fullmatch("[0-9a-f]{64}", file["sha256"]):
                raise ValueError(f"the checksum of {file['name']} is {file['sha256']!r}, which is no SHA-256; {MEND}")
    return manifest


# checking

def _checked(parts: _Parts, model_class: type, config_class: type, extra: Iterable[str]):
    """(configuration, tensors, tokenizer, extra entries) of three files that are sound and fit each other."""
    with _naming(parts.paths["config"]):
        values = parse_json(parts.content["config"])
        names = [field.name for field in dataclasses.fields(config_class)]
        check_keys(values, [*extra, *names], config_class.__name__)
        values, rest = {name: values[name] for name in names}, {name: values[name] for name in extra}
        config = config_class(**values)
        if "label_names" in rest:
            check_label_names(rest["label_names"], config.num_classes)
    with _naming(parts.paths["vocabulary"]):
        tokenizer = read_tokenizer(parse_json(parts.content["vocabulary"]), parts.tokenizer)
        if tokenizer.vocab_size != config.vocab_size:
            raise ValueError(
                f"it has {tokenizer.vocab_size} ids, and {parts.paths['config'].name} says vocab_size={config.vocab_size}; "
                "use the vocabulary that the model was trained with"
            )
        for name in ("pad_id", "unk_id"):
            own, said = getattr(tokenizer, name, None), getattr(config, name, None)
            if None not in (own, said) and own != said:
                raise ValueError(f"its {name} is {own}, and {parts.paths['config'].name} says {name}={said}; {MEND}")
    with _naming(parts.paths["weights"]):
        tensors = read_tensors(parts.content["weights"])
        check_shapes(tensors, model_class, config, parts.paths["config"].name)
        check_numbers(tensors)
    return config, tensors, tokenizer, rest


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the file's name in front of the message of a ValueError."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None
