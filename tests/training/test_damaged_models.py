"""A folder that doesn't hold a model of ours is refused in words that name what is wrong."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch
from saved_classifiers import TEXTS, WORDS, folder, make, path_of, refused, rewrite, to_old_layout

from course_utils.classifier import ClassifierConfig, ReviewClassifier
from course_utils.tokenization import WordTokenizer
from course_utils.training import saved_models as models
from course_utils.training.saved_models import ENDINGS, MANIFEST

__all__ = ["folder"]                            # pytest runs it around each test here


KEYS = ["label_names", *(field.name for field in dataclasses.fields(ClassifierConfig))]


# bad folders

@pytest.mark.parametrize("key", KEYS)
def test_a_key_missing_from_the_configuration_is_named(folder, key):
    config = json.loads(path_of(folder, "config").read_bytes())
    del config[key]
    rewrite(folder, "config", json.dumps(config).encode())
    refused(folder, path_of(folder, "config").name, f"{key} is missing")


ABSURD = {
    "num_layers": [20_000, 1000, 999, 3, 1, 0, -1, 2.0, "2", None, True, [2]],
    "d_model": [16, 4, 0, -8, 10**30, 7],
    "num_heads": [3, 0, 16, 2.5, None],
    "d_ff": [13, 0, 10**9],
    "vocab_size": [8, 6, 0, 10**12],
    "max_len": [17, 0, -1, 10**15],
    "num_classes": [3, 1, 0],
    "positions": ["sine", None, 1, "none", "rotary"],
    "pooling": ["max", "mean", None],
    "dropout": [1, -0.1, "0.1", None, True],
    "attention_dropout": [1.5], "word_dropout": [2], "pooled_dropout": [-1],
    "norm_first": [1, "true", None, False],
    "zero_init": [0, "no"],
    "embedding_std": [0, -1, "1"],
    "embedding_scale": [0, -10, None, 1e300, 10**400],
    "pad_id": [1, -1, 99, 0.0], "unk_id": [0, 2, 10**9],
    "label_names": [
        "negative", None, [], ["one"], ["a", "a"], ["a", "b", "c"], [1, 2], ["a", None], ["a", ""], {"a": 0, "b": 1}, 7,
    ],
    "heads": [2],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in ABSURD.items() for value in values])
def test_an_absurd_or_unknown_entry_of_the_configuration_is_refused(tmp_path, key, value):
    make().save(tmp_path / "my_model")
    folder = tmp_path / "my_model"
    config = json.loads(path_of(folder, "config").read_bytes())
    if (key, value) == ("norm_first", False):           # the weights show it only by the last layer norm
        assert "encoder.norm.weight" in make().model.state_dict()
    rewrite(folder, "config", json.dumps({**config, key: value}).encode())
    refused(folder, path_of(folder, "config").name)
    to_old_layout(folder)
    refused(folder, "config.json")


BAD_JSON = {
    "empty": b"", "white space": b" \n", "cut off": b'{"label_names": ["neg', "a list": b"[1, 2]", "null": b"null",
    "a number": b"3",
    "not UTF-8": b'{"a": "\xff\xfe"}', "a byte order mark": b"\xef\xbb\xbf{}", "endless nesting": b"[" * 100_000,
    "a pickle": b"\x80\x04\x95.", "zeros": b"\0" * 200, "two objects": b"{}{}", "single quotes": b"{'a': 1}",
    "a number of 5,000 digits": b'{"vocab_size": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("content", BAD_JSON.values(), ids=BAD_JSON)
@pytest.mark.parametrize("part", ["config", "vocabulary"])
def test_json_that_is_damaged_is_refused(folder, part, content):
    rewrite(folder, part, content)
    refused(folder, path_of(folder, part).name)


@pytest.mark.parametrize("content", BAD_JSON.values(), ids=BAD_JSON)
def test_a_manifest_that_is_damaged_is_refused(tmp_path, content):
    make().save(tmp_path)
    (tmp_path / MANIFEST).write_bytes(content)
    refused(tmp_path, MANIFEST)


@pytest.mark.parametrize("old, new", [
    (b'"num_heads": 2', b'"num_heads": 2, "num_heads": 4'), (b'"dropout": 0.1', b'"dropout": NaN'),
])
def test_what_json_does_not_allow_but_python_reads_is_refused(folder, old, new):
    rewrite(folder, "config", path_of(folder, "config").read_bytes().replace(old, new))
    refused(folder, path_of(folder, "config").name, "num_heads" if b"heads" in new else "NaN")


VOCABULARIES = {
    "a null": [*WORDS[:-1], None], "a number": [*WORDS[:-1], 7], "a word twice": [*WORDS[:-1], "a"],
    "an empty word": [*WORDS[:-1], ""],
    "no <pad>": ["a", *WORDS[1:]], "<unk> first": ["<unk>", "<pad>", *WORDS[2:]], "too short": WORDS[:-1],
    "too long": [*WORDS, "b"],
    "empty": [], "a string": "abcdefg", "a table": {"a": 1}, "null": None, "a nested list": [*WORDS[:-1], ["b"]],
}


@pytest.mark.parametrize("words", VOCABULARIES.values(), ids=VOCABULARIES)
def test_a_vocabulary_that_the_model_cannot_have_had_is_refused(folder, words):
    rewrite(folder, "vocabulary", json.dumps({"type": "words", "vocabulary": words}).encode())
    refused(folder, path_of(folder, "vocabulary").name)


@pytest.mark.parametrize("content", [
    {"vocabulary": WORDS}, {"type": "words"}, {"type": "letters", "vocabulary": WORDS},
    {"type": ["words"], "vocabulary": WORDS},
    {"type": "words", "vocabulary": WORDS, "more": 1}, {"type": "byte pairs", "merges": []},
    {"type": "byte pairs", "merges": [[300, 1]]}, {"type": "byte pairs", "merges": [[1, 2], [1, 2]]},
    {"type": "byte pairs", "merges": [[1]]}, {"type": "byte pairs", "merges": ["ab"]},
    {"type": "byte pairs", "merges": None},
])
def test_a_vocabulary_of_another_kind_is_refused(folder, content):
    rewrite(folder, "vocabulary", json.dumps(content).encode())
    refused(folder, path_of(folder, "vocabulary").name)


def changed_tensors(change) -> bytes:
    tensors = {name: tensor.clone() for name, tensor in make().model.state_dict().items()}
    change(tensors)
    return safetensors.torch.save(tensors)


def put(name, index, value):
    return lambda tensors: tensors[name].__setitem__(index, value)


WEIGHTS = {
    "NaN": put("output.bias", 0, float("nan")), "infinity": put("embedding.weight", (3, 2), float("inf")),
    "minus infinity": put("pooling.query", (0, 1), -float("inf")),
    "NaN in a table": put("positions.table", (0, 0), float("nan")),
    "whole numbers": lambda t: t.update({name: tensor.long() for name, tensor in t.items()}),
    "one of whole numbers": lambda t: t.update({"output.bias": t["output.bias"].int()}),
    "Booleans": lambda t: t.update({"output.bias": t["output.bias"] > 0}),
    "complex": lambda t: t.update({"output.bias": t["output.bias"].to(torch.complex64)}),
    "two types": lambda t: t.update({"output.bias": t["output.bias"].half()}),
    "a tensor less": lambda t: t.pop("output.bias"), "a tensor more": lambda t: t.update({"extra.weight": torch.ones(2)}),
    "another name": lambda t: t.update({"output.offset": t.pop("output.bias")}), "no tensor": lambda t: t.clear(),
    "transposed": lambda t: t.update({"output.weight": t["output.weight"].T.contiguous()}),
    "a dimension more": lambda t: t.update({"output.bias": t["output.bias"][None]}),
    "a scalar": lambda t: t.update({"output.bias": torch.tensor(1.0)}),
    "fewer words": lambda t: t.update({"embedding.weight": t["embedding.weight"][:-1].clone()}),
    "a layer less": lambda t: [t.pop(name) for name in list(t) if "blocks.1." in name],
}


@pytest.mark.parametrize("change", WEIGHTS.values(), ids=WEIGHTS)
def test_weights_that_do_not_fit_are_refused(folder, change):
    rewrite(folder, "weights", changed_tensors(change))
    refused(folder, path_of(folder, "weights").name)


def test_a_file_of_weights_cut_off_anywhere_is_refused(folder):
    whole = path_of(folder, "weights").read_bytes()
    for length in (0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1):
        rewrite(folder, "weights", whole[:length])
        refused(folder, path_of(folder, "weights").name, "whole safetensors file")
    for content in (whole + b"\0", b"\xff" * 8 + whole[8:], b"\x80\x04\x95.", b"PK\x03\x04" + whole):
        rewrite(folder, "weights", content)
        refused(folder, path_of(folder, "weights").name, "whole safetensors file")


@pytest.mark.parametrize("part", ENDINGS)
def test_a_file_changed_by_one_bit_is_refused(tmp_path, part):
    make().save(tmp_path)
    path = path_of(tmp_path, part)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    refused(tmp_path, path.name, "has changed since it was saved")


@pytest.mark.parametrize("part", ENDINGS)
@pytest.mark.parametrize("instead", ["nothing", "a folder"])
def test_a_missing_file_is_named(folder, part, instead):
    path = path_of(folder, part)
    path.unlink()
    if instead == "a folder":
        path.mkdir()
    refused(folder, path.name, "lacks", error=FileNotFoundError)


def test_all_missing_files_are_named(tmp_path):
    make().save(tmp_path)
    to_old_layout(tmp_path)
    (tmp_path / "config.json").unlink()
    (tmp_path / "vocabulary.json").unlink()
    refused(tmp_path, "lacks config.json, vocabulary.json", error=FileNotFoundError)


def test_a_folder_without_a_model_is_named(tmp_path):
    refused(tmp_path / "absent", "there is no folder", error=FileNotFoundError)
    refused(tmp_path, "there is no model in", error=FileNotFoundError)
    (tmp_path / "notes.txt").write_text("mine")
    refused(tmp_path, "there is no model in", error=FileNotFoundError)
    refused(tmp_path / "notes.txt", "is a file", error=ValueError)


def test_a_model_without_its_manifest_is_not_guessed(tmp_path):
    make().save(tmp_path)
    (tmp_path / MANIFEST).unlink()
    refused(tmp_path, MANIFEST, error=FileNotFoundError)


def change_manifest(**changes):
    return lambda manifest: manifest.update(changes)


MANIFESTS = {
    "a later format": change_manifest(format=3), "format true": change_manifest(format=True),
    "format text": change_manifest(format="2"),
    "no format": lambda m: m.pop("format"), "no tokenizer": lambda m: m.pop("tokenizer"),
    "no files": lambda m: m.pop("files"),
    "more": change_manifest(author="me"), "a tokenizer that isn't": change_manifest(tokenizer="letters"),
    "another tokenizer": change_manifest(tokenizer="byte pairs"),
    "a list for a tokenizer": change_manifest(tokenizer=["words"]),
    "files a list": change_manifest(files=[]), "a file less": lambda m: m["files"].pop("config"),
    "a file more": lambda m: m["files"].update(notes={"name": "a", "sha256": "b"}),
    "a file outside the folder": lambda m: m["files"]["config"].update(name="../config-0123456789ab.json"),
    "an absolute path": lambda m: m["files"]["config"].update(name="/etc/passwd"),
    "a name that save never writes": lambda m: m["files"]["config"].update(name="config.json"),
    "the file of another part": lambda m: m["files"].update(config=m["files"]["vocabulary"]),
    "no name": lambda m: m["files"]["config"].update(name=None),
    "name missing": lambda m: m["files"]["config"].pop("name"),
    "no checksum": lambda m: m["files"]["config"].update(sha256=None),
    "a short checksum": lambda m: m["files"]["config"].update(sha256="12"),
    "a file null": lambda m: m["files"].update(config=None),
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_that_says_something_else_is_refused(tmp_path, change):
    make().save(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    change(manifest)
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    refused(tmp_path, MANIFEST if change is not MANIFESTS["another tokenizer"] else "vocabulary-")


def test_a_wrong_checksum_in_the_manifest_is_refused(tmp_path):
    make().save(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    manifest["files"]["weights"]["sha256"] = "0" * 64
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    refused(tmp_path, path_of(tmp_path, "weights").name, "model.json says 000000000000")


def test_files_of_two_models_never_make_one(tmp_path):
    """The vocabulary of one and the weights of another of the same size: what a kill used to leave behind."""
    make().save(tmp_path / "one")
    make(seed=1, tokenizer=WordTokenizer([*WORDS[:2], *reversed(WORDS[2:])])).save(tmp_path / "other")
    shutil.copy(path_of(tmp_path / "other", "vocabulary"), path_of(tmp_path / "one", "vocabulary"))
    refused(tmp_path / "one", "vocabulary-", "has changed")


def meanwhile(monkeypatch, reader, happening):
    """Let something happen once, just before `reader` of model_files reads."""
    read, left = getattr(models, reader), [happening]

    def after_it(*arguments):
        if left:
            left.pop()()
        return read(*arguments)

    monkeypatch.setattr(models, reader, after_it)


def test_a_reader_sees_a_model_that_was_replaced_and_put_back_while_it_read(tmp_path, monkeypatch):
    first, second = make(0), make(1, d_ff=16)
    first.save(tmp_path)

    def twice():                                        # the same manifest as before, of files that were away
        second.save(tmp_path)
        names = [path_of(tmp_path, part) for part in ENDINGS]
        monkeypatch.setattr(Path, "read_bytes", gone_once(names, lambda: first.save(tmp_path)))

    def gone_once(names, then):
        read, left = Path.read_bytes, [then]

        def read_bytes(path):
            if left and path.name.startswith("weights-"):
                left.pop()()
                raise FileNotFoundError(2, "No such file or directory", str(path))
            return read(path)

        return read_bytes

    meanwhile(monkeypatch, "_read_named", twice)
    assert ReviewClassifier.load(tmp_path).predict(TEXTS)[1].equal(first.predict(TEXTS)[1])


def test_a_reader_of_the_old_layout_sees_the_model_that_replaced_it_meanwhile(tmp_path, monkeypatch):
    make(0).save(tmp_path)
    to_old_layout(tmp_path)
    second = make(1, d_ff=16)
    meanwhile(monkeypatch, "_read_old_parts", lambda: second.save(tmp_path))
    assert ReviewClassifier.load(tmp_path).predict(TEXTS)[1].equal(second.predict(TEXTS)[1])
