"""A model in a folder: nothing is lost while it is replaced, and nothing damaged is loaded."""

import dataclasses
import json
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from course_utils.classifier import POOLINGS, POSITIONS, ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import DATA_FOLDER
from course_utils.files import InUse, locked, sha256
from course_utils.tokenization import BPETokenizer, WordTokenizer
from course_utils.training import saved_models as models
from course_utils.training.saved_models import ENDINGS, MANIFEST, OLD_NAMES, holds_model

WORDS = ["<pad>", "<unk>", "a", "dull", "moving", "film", "."]
TEXTS = ["A dull film.", "A moving film.", "", "zzyzx"]
KEYS = ["label_names", *(field.name for field in dataclasses.fields(ClassifierConfig))]


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


def saved_parts(classifier: ReviewClassifier, folder: Path) -> dict:
    classifier.save(folder)
    return {part: path_of(folder, part).read_bytes() for part in ENDINGS}


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


# saving over a model

@pytest.fixture(scope="module")
def kills() -> dict[str, str]:
    """What kills_during_save.py reports of each kind of accident."""
    script = Path(__file__).with_name("kills_during_save.py")
    child = subprocess.run([sys.executable, script, "all", "20"], capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr
    return dict(line.split(": ", 1) for line in child.stdout.splitlines())


def test_a_kill_before_any_operation_on_a_file_leaves_the_old_or_the_new_model(kills):
    attempts = int(kills["every kill"].split()[0])
    assert attempts > 20 and f"{attempts - 1} killed" in kills["every kill"]
    assert "mixed 0, unreadable 0" in kills["every kill"]


def test_a_disk_that_is_full_at_any_operation_leaves_the_old_or_the_new_model(kills):
    assert "mixed 0, unreadable 0, said saved, but wasn't 0" in kills["every error"]
    assert "old 0" not in kills["every error"] and "new 0" not in kills["every error"]


def test_a_disk_that_is_full_at_any_size_leaves_the_old_or_the_new_model(kills):
    assert "20 killed and 20 failed; left: old 40, new 2, mixed 0, unreadable 0" in kills["limit"]


def test_kills_at_random_moments_leave_the_old_or_the_new_model(kills):
    assert "20 killed" in kills["random 20"] and "mixed 0, unreadable 0" in kills["random 20"]


def test_four_files_are_left_also_of_a_model_of_the_earlier_layout_and_others_stay(folder):
    (folder / "result.json").write_text("{}")
    (folder / "config-notes.json").write_text("{}")
    make(seed=1).save(folder)
    make(seed=2, labels=["bad", "good"]).save(folder)
    files = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    named = {path_of(folder, part).name for part in ENDINGS}
    assert set(files) == {MANIFEST, "result.json", "config-notes.json"} | named
    assert ReviewClassifier.load(folder).label_names == ["bad", "good"]


def test_a_file_called_config_json_that_is_not_ours_stays(tmp_path):
    (tmp_path / "config.json").write_text('{"theme": "dark"}')
    make().save(tmp_path)
    assert (tmp_path / "config.json").read_text() == '{"theme": "dark"}'


def test_leftovers_of_killed_saves_are_removed_by_the_next_one_and_not_before(tmp_path):
    make().save(tmp_path)
    leftovers = ["config-0123456789ab.json", "model.json.7-0123abcd.partial"]
    leftovers.append("weights-0123456789ab.safetensors.77-0123abcd.partial")
    for name in leftovers:
        (tmp_path / name).write_text("half")
    ReviewClassifier.load(tmp_path)
    with pytest.raises(ValueError, match="NaN"):
        broken = make()
        broken.model.output.bias.data[0] = float("nan")
        broken.save(tmp_path)
    assert all((tmp_path / name).exists() for name in leftovers)
    make(seed=1).save(tmp_path)
    assert not any((tmp_path / name).exists() for name in leftovers)


@pytest.mark.parametrize("umask, mode", [(0o022, 0o644), (0o027, 0o640)])
def test_a_saved_model_can_be_read_by_whom_the_umask_lets(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        make().save(tmp_path)
    finally:
        os.umask(before)
    paths = [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [mode] * 4


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_not_saved(tmp_path, value):
    make().save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    broken = make(seed=1)
    broken.model.encoder.blocks[1].feed_forward.expand.weight.data[3, 2] = value
    with pytest.raises(ValueError, match=r"isn't saved.*blocks\.1\.feed_forward\.expand\.weight holds 1 of 96.*train again"):
        broken.save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_load_would_refuse_is_not_saved(tmp_path):
    wrong = make()
    wrong.label_names = ["same", "same"]
    with pytest.raises(ValueError, match="isn't saved.*two of them equal"):
        wrong.save(tmp_path / "new")
    wrong = make()
    wrong.tokenizer.vocabulary[3] = "film"
    with pytest.raises(ValueError, match="isn't saved.*'film' is there more than once"):
        wrong.save(tmp_path / "new")
    wrong = make()
    wrong.model.output.half()
    with pytest.raises(ValueError, match=r"isn't saved.*several types \(float16, float32\).*model\.float\(\)"):
        wrong.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_model_is_not_saved_in_a_file(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"notes\.txt is a file; a model is saved in a folder"):
        make().save(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def save_again_and_again(folder, seed, queue) -> None:
    torch.set_num_threads(1)
    classifier = make(seed, labels=[f"no-{seed}", f"yes-{seed}"], d_ff=16 + seed)
    queue.put("ready")
    for _ in range(6):
        classifier.save(folder)
    queue.put("done")


def test_two_processes_that_save_at_once_leave_one_of_the_two_and_a_reader_always_finds_one(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    make(1, labels=["no-1", "yes-1"], d_ff=17).save(tmp_path)
    both = [context.Process(target=save_again_and_again, args=(tmp_path, seed, queue)) for seed in (1, 2)]
    for process in both:
        process.start()
    said, models = [queue.get(timeout=120) for _ in both], {seed: make(seed, d_ff=16 + seed) for seed in (1, 2)}
    while said.count("done") < 2:
        found = ReviewClassifier.load(tmp_path)
        seed = int(found.label_names[0][-1])
        assert found.model.output.weight.equal(models[seed].model.output.weight) and found.model.config.d_ff == 16 + seed
        while not queue.empty():
            said.append(queue.get())
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert len([path for path in tmp_path.iterdir() if not path.name.startswith(".")]) == 4


def test_a_save_waits_for_another_one_and_then_says_who_is_saving(tmp_path, monkeypatch):
    make().save(tmp_path)
    monkeypatch.setattr(models, "PATIENCE", 0.1)
    with locked(tmp_path / MANIFEST, "saving a model"):
        with pytest.raises(InUse, match=rf"process {os.getpid()}.*saving a model"):
            make(seed=1).save(tmp_path)
    assert ReviewClassifier.load(tmp_path).model.output.weight.equal(make().model.output.weight)


# loading what was saved

@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("positions", "pooling"), [(positions, pooling) for positions in POSITIONS for pooling in POOLINGS])
def test_models_of_every_type_are_saved_loaded_and_predict(tmp_path, positions, pooling, dtype):
    classifier = make(positions=positions, pooling=pooling)
    single = classifier.predict(TEXTS)[1]
    classifier.model.to(dtype)
    labels, probabilities = classifier.predict(TEXTS)
    torch.testing.assert_close(probabilities, single, atol={2: 0.03}.get(dtype.itemsize, 1e-5), rtol=0)
    assert probabilities.dtype == torch.float32 and classifier.explain(TEXTS[0]).label == labels[0]
    classifier.save(tmp_path)
    loaded = ReviewClassifier.load(tmp_path)
    assert {tensor.dtype for tensor in loaded.model.state_dict().values()} == {dtype}
    assert loaded.predict(TEXTS)[1].equal(probabilities) and not loaded.model.training


def test_the_kind_of_tokenizer_comes_back(tmp_path):
    tokenizer = BPETokenizer.train(["a dull film and a moving film"] * 3, 280)
    classifier = make(tokenizer=tokenizer)
    classifier.save(tmp_path)
    loaded = ReviewClassifier.load(tmp_path)
    assert json.loads((tmp_path / MANIFEST).read_text())["tokenizer"] == "byte pairs"
    assert loaded.tokenizer.merges == tokenizer.merges and loaded.predict(TEXTS)[1].equal(classifier.predict(TEXTS)[1])


def test_a_folder_of_an_earlier_version_loads_as_words(tmp_path):
    classifier = make()
    classifier.save(tmp_path)
    to_old_layout(tmp_path)
    assert not (tmp_path / MANIFEST).exists()
    loaded = ReviewClassifier.load(tmp_path)
    assert type(loaded.tokenizer) is WordTokenizer and loaded.predict(TEXTS)[1].equal(classifier.predict(TEXTS)[1])


def test_a_tokenizer_that_this_version_does_not_know_is_named_and_so_are_those_that_it_knows(tmp_path):
    make().save(tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(manifest | {"tokenizer": "letters"}))
    with pytest.raises(ValueError, match="the tokenizer is 'letters', and this version .* knows 'words' and 'byte pairs'"):
        ReviewClassifier.load(tmp_path)


def test_a_word_that_utf8_cannot_hold_comes_back(tmp_path):
    classifier = make(tokenizer=WordTokenizer([*WORDS, "\ud800", "ä"]))
    classifier.save(tmp_path)
    assert ReviewClassifier.load(tmp_path).tokenizer.vocabulary[-2:] == ["\ud800", "ä"]


def test_numbers_of_numpy_in_a_configuration_are_saved_as_plain_ones(tmp_path):
    make(num_layers=np.int64(1), dropout=np.float64(0.25)).save(tmp_path)
    config = ReviewClassifier.load(tmp_path).model.config
    assert type(config.num_layers) is int and config.dropout == 0.25


@pytest.mark.parametrize("path", sorted((DATA_FOLDER / "checkpoints").iterdir()), ids=lambda path: path.name)
def test_the_models_that_come_with_the_course_still_load(path):
    assert holds_model(path) and ReviewClassifier.load(path).predict(["A dull film."])[1].isfinite().all()


def test_a_folder_of_the_earlier_layout_gives_the_same_probabilities(tmp_path):
    make().save(tmp_path)
    before = ReviewClassifier.load(tmp_path).predict(TEXTS)[1]
    to_old_layout(tmp_path)
    assert ReviewClassifier.load(tmp_path).predict(TEXTS)[1].equal(before) and holds_model(tmp_path)
    (tmp_path / "config.json").unlink()
    assert not holds_model(tmp_path)


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


def test_a_tilde_is_the_home_folder_for_save_and_load(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    make().save("~/model")
    assert holds_model(tmp_path / "home/model") and not Path("~").exists()
    assert ReviewClassifier.load("~/model").predict(TEXTS)[1].equal(make().predict(TEXTS)[1])


@pytest.mark.parametrize(("folder", "error"), [(None, TypeError), (3, TypeError), (b"x", TypeError), ("", ValueError),
                                               (" ", ValueError), ("a\0b", ValueError)])
def test_what_names_no_folder_is_refused(folder, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for use in (make().save, ReviewClassifier.load):
        with pytest.raises(error, match="expected the name of a folder and got .*; write"):
            use(folder)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named_with_the_reason(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("gone")
    for name, why in (("file/in", "Not a directory"), ("link", "a link to nothing"), ("x" * 300, "File name too long")):
        with pytest.raises(OSError, match=rf"the folder .* can't be made \({why}\); choose another name"):
            make().save(tmp_path / name)


def test_a_model_or_tokenizer_that_load_would_make_something_else_of_is_not_saved(tmp_path):
    class Upside(SelfAttentionClassifier):
        def forward(self, *arguments, **options):
            result = super().forward(*arguments, **options)
            return result._replace(logits=-result.logits)

    class Shouting(WordTokenizer):
        def tokenize(self, text):
            return super().tokenize(text.replace("!", "moving"))

    plain = make()
    for wrong, name in ((ReviewClassifier(Upside(plain.model.config), plain.tokenizer), "Upside"),
                        (ReviewClassifier(plain.model, Shouting(WORDS)), "Shouting")):
        with pytest.raises(ValueError, match=f"isn't saved: it holds a {name}, and loading would make something else"):
            wrong.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("labels", [["a", "a "], ["spam", "spam\u200b"], ["caf\u00e9", "cafe\u0301"]])
def test_labels_that_look_the_same_are_refused(labels):
    with pytest.raises(ValueError, match="two of them equal"):
        make(labels=labels)


@pytest.mark.parametrize("options", [{}, {"pooling": "mean"}])
def test_a_model_that_answers_with_nan_says_so_instead_of_choosing_the_first_label(options):
    classifier = make(**options)
    with torch.no_grad():
        for parameter in classifier.model.parameters():
            parameter.fill_(3e38)                       # finite, each of them
    for ask in (lambda: classifier.predict(TEXTS), lambda: classifier.explain(TEXTS[0])):
        with pytest.raises(FloatingPointError, match="answers with NaN instead of probabilities.*smaller learning rate"):
            ask()


def test_labels_that_can_be_read_once_only_or_not_at_all_are_refused():
    with pytest.raises(ValueError, match="use a list of names"):
        make(labels=(name for name in ("a", "b")))
    with pytest.raises(ValueError, match="give each class a name"):
        make(labels=["\u200b", "b"])


def test_a_number_of_thousands_of_digits_in_a_file_is_named_with_what_to_do(tmp_path):
    make().save(tmp_path)
    rewrite(tmp_path, "config", path_of(tmp_path, "config").read_bytes().replace(b'"d_ff": 12', b'"d_ff": ' + b"9" * 5000))
    refused(tmp_path, "it holds a number of 5000 digits; copy the whole folder again")
