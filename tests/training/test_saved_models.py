"""A model is saved whole or not at all, and loaded as it was saved."""

import json
import multiprocessing
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from saved_classifiers import TEXTS, WORDS, folder, make, path_of, refused, rewrite, to_old_layout

from course_utils.classifier import POOLINGS, POSITIONS, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import DATA_FOLDER
from course_utils.encoder_decoder import Translator
from course_utils.files import InUse, locked
from course_utils.language_model import LanguageModel, LanguageModelConfig
from course_utils.tokenization import BPETokenizer, WordTokenizer
from course_utils.training import saved_models as models
from course_utils.training.saved_models import ENDINGS, MANIFEST, holds_model, read_model
from course_utils.translation.subwords import SubwordTranslator
from course_utils.translation.translators import kept_translator

__all__ = ["folder"]                            # pytest runs it around each test here
SOURCE = torch.tensor([[4, 5, 6]])              # word ids, for what comes with the course


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
    if path.name == "recurrent_attention":                                 # two models of a format of their own
        for file in sorted(path.glob("*.safetensors")):
            assert kept_translator(file.stem)(SOURCE, SOURCE > 0, SOURCE).logits.isfinite().all()
        return
    assert holds_model(path)
    if path.name == "multi30k":
        assert SubwordTranslator.load(path).translate(["A dog runs."])[0].endswith(".")
        assert "## Licence" in (path / "README.md").read_text(encoding="utf-8")
        assert sum(file.stat().st_size for file in path.iterdir()) < 12_000_000
        return
    if path.name == "translation":
        assert Translator.load(path).model(SOURCE, SOURCE > 0, SOURCE).logits.isfinite().all()
        return
    (config,) = path.glob("config*.json")
    if "label_names" in json.loads(config.read_text(encoding="utf-8")):
        assert ReviewClassifier.load(path).predict(["A dull film."])[1].isfinite().all()
    else:
        model = read_model(path, LanguageModel, LanguageModelConfig).model
        assert model(torch.ones(1, 3, dtype=torch.long)).logits.isfinite().all()


def test_a_folder_of_the_earlier_layout_gives_the_same_probabilities(tmp_path):
    make().save(tmp_path)
    before = ReviewClassifier.load(tmp_path).predict(TEXTS)[1]
    to_old_layout(tmp_path)
    assert ReviewClassifier.load(tmp_path).predict(TEXTS)[1].equal(before) and holds_model(tmp_path)
    (tmp_path / "config.json").unlink()
    assert not holds_model(tmp_path)


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


# by name

def test_a_model_that_comes_with_the_course_is_loaded_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named, by_path = ReviewClassifier.load("reviews"), ReviewClassifier.load(DATA_FOLDER / "checkpoints" / "reviews")
    assert torch.equal(named.predict(TEXTS)[1], by_path.predict(TEXTS)[1])


def test_a_folder_of_that_name_is_preferred_even_if_it_holds_no_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make().save("reviews")
    assert ReviewClassifier.load("reviews").model.config.vocab_size != 2707
    (tmp_path / "imdb").mkdir()
    with pytest.raises(FileNotFoundError, match="imdb"):
        ReviewClassifier.load("imdb")


@pytest.mark.parametrize("name", ["outputs/reviews", "review", ".", ".."])
def test_only_a_name_alone_stands_for_a_model_of_the_course(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((FileNotFoundError, ValueError)):
        ReviewClassifier.load(name)
