"""A model is one file: saved whole or not at all, loaded as it was saved; anything else is refused in words that help."""

import json
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch
from saved_classifiers import TEXTS, WORDS, make, refused, rewrite

from course_utils.byte_pairs import BPETokenizer
from course_utils.classifier import POOLINGS, POSITIONS, ReviewClassifier, SelfAttentionClassifier
from course_utils.encoder_decoder import Translator
from course_utils.files.paths import CHECKPOINTS
from course_utils.language_model import LanguageModel, LanguageModelConfig
from course_utils.pretraining import load_bert
from course_utils.tokenization import WordTokenizer, pad_batch
from course_utils.training.model_kinds import CLASSIFIER, CODE, ENCODER, PIECES, RECURRENT, SMALL, kind_in
from course_utils.training.model_kinds import WORDS as WORD_LISTS
from course_utils.training.saved_models import holds_model, read_model, read_note, write_note
from course_utils.translation.subwords import SubwordTranslator
from course_utils.translation.translators import kept_translator

SOURCE = torch.tensor([[4, 5, 6]])              # word ids, for what comes with the course


# saving

@pytest.mark.slow
def test_kills_and_full_disks_during_a_save_leave_the_old_model_or_the_new_one():
    script = Path(__file__).with_name("kills_during_save.py")
    child = subprocess.run([sys.executable, script, "20"], capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr
    assert "killed at random: 20" in child.stdout and "killed, the old one" in child.stdout
    assert "an error, the old one" in child.stdout and "a mixture" not in child.stdout


def test_a_saved_model_is_one_file_with_everything_in_its_header_and_the_same_file_each_time(tmp_path):
    make().save(tmp_path / "new" / "mine")
    (path,) = (tmp_path / "new").iterdir()
    assert path.name == "mine.safetensors"
    with safetensors.safe_open(path, "pt") as file:
        about, names = json.loads(file.metadata()["course_model"]), set(file.keys())
    assert names == set(make().model.state_dict()) and about["label_names"] == ["negative", "positive"]
    assert about["version"] == 3 and about["vocabulary"]["vocabulary"].split("\n") == WORDS and about["config"]["d_ff"] == 12
    before = path.read_bytes()
    make().save(tmp_path / "new" / "mine.safetensors")
    assert path.read_bytes() == before


def test_in_a_folder_that_is_there_already_it_is_model_safetensors_and_what_else_is_there_stays(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for seed in (0, 1):
        make(seed).save(tmp_path)
        assert ReviewClassifier.load(tmp_path).predict(TEXTS)[1].equal(make(seed).predict(TEXTS)[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.safetensors", "notes.txt"]


def test_a_model_is_saved_over_the_file_that_it_was_loaded_from_and_that_someone_reads(tmp_path):
    make().save(tmp_path / "mine")
    with open(tmp_path / "mine.safetensors", "rb") as reader:
        loaded, whole = ReviewClassifier.load(tmp_path / "mine"), (tmp_path / "mine.safetensors").read_bytes()
        before = loaded.predict(TEXTS)[1]
        make(seed=1).save(tmp_path / "mine")
        assert reader.read() == whole and loaded.predict(TEXTS)[1].equal(before)
    if Path("/proc/self/maps").exists():                # it was read, and not mapped, which Windows wouldn't replace
        assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    loaded.save(tmp_path / "mine")
    assert (tmp_path / "mine.safetensors").read_bytes() == whole


def wrong_weights(classifier):
    classifier.model.encoder.blocks[1].feed_forward.expand.weight.data[3, 2] = float("nan")


UNFIT = {
    r"blocks\.1\.feed_forward\.expand\.weight holds 1 of 96.*train again": wrong_weights,
    "two of them equal": lambda c: setattr(c, "label_names", ["same", "same"]),
    "'film', is there more than once": lambda c: c.tokenizer.vocabulary.__setitem__(3, "film"),
    "entry 3, None, doesn't belong": lambda c: c.tokenizer.vocabulary.__setitem__(3, None),
    r"float16 and float32.*model\.float\(\)": lambda c: c.model.output.half(),
}


@pytest.mark.parametrize("change", UNFIT.values(), ids=UNFIT)
def test_what_load_would_refuse_is_not_saved_and_the_old_model_stays(tmp_path, change):
    make().save(tmp_path / "mine")
    before, wrong = (tmp_path / "mine.safetensors").read_bytes(), make(seed=1, tokenizer=WordTokenizer(list(WORDS)))
    change(wrong)
    (words,) = [words for words, other in UNFIT.items() if other is change]
    with pytest.raises(ValueError, match=f"isn't saved.*{words}"):
        wrong.save(tmp_path / "mine")
    assert (tmp_path / "mine.safetensors").read_bytes() == before and len(list(tmp_path.iterdir())) == 1


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
    assert not list(tmp_path.iterdir())


def test_where_a_file_cannot_be_written_it_is_named_with_the_reason(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "taken.safetensors").mkdir()
    for name in ("file/in", "x" * 300, "taken"):
        with pytest.raises(OSError, match="the model isn't saved .*; choose another name") as raised:
            make().save(tmp_path / name)
        assert raised.value.filename.startswith(str(tmp_path / name))


def save_again_and_again(name, seed, queue) -> None:
    torch.set_num_threads(1)
    classifier = make(seed, labels=[f"no-{seed}", f"yes-{seed}"], d_ff=16 + seed)
    queue.put("ready")
    for _ in range(6):
        classifier.save(name)
    queue.put("done")


def test_two_processes_that_save_at_once_leave_one_of_the_two_and_a_reader_always_finds_one(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    make(1, labels=["no-1", "yes-1"], d_ff=17).save(tmp_path / "mine")
    both = [context.Process(target=save_again_and_again, args=(tmp_path / "mine", seed, queue)) for seed in (1, 2)]
    for process in both:
        process.start()
    said, models = [queue.get(timeout=120) for _ in both], {seed: make(seed, d_ff=16 + seed) for seed in (1, 2)}
    while said.count("done") < 2:
        found = ReviewClassifier.load(tmp_path / "mine")
        seed = int(found.label_names[0][-1])
        assert found.model.output.weight.equal(models[seed].model.output.weight) and found.model.config.d_ff == 16 + seed
        while not queue.empty():
            said.append(queue.get())
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine.safetensors"]


# loading what was saved

@pytest.mark.parametrize(("positions", "pooling", "dtype"), [
    *((positions, pooling, torch.float32) for positions in POSITIONS for pooling in POOLINGS),
    *(("rotary", "attention", dtype) for dtype in (torch.float64, torch.float16, torch.bfloat16))], ids=str)
def test_models_of_every_type_are_saved_loaded_and_predict(tmp_path, positions, pooling, dtype):
    classifier = make(positions=positions, pooling=pooling)
    single = classifier.predict(TEXTS)[1]
    classifier.model.to(dtype)
    labels, probabilities = classifier.predict(TEXTS)
    torch.testing.assert_close(probabilities, single, atol={2: 0.03}.get(dtype.itemsize, 1e-5), rtol=0)
    assert probabilities.dtype == torch.float32 and classifier.explain(TEXTS[0]).label == labels[0]
    classifier.save(tmp_path / "mine")
    loaded = ReviewClassifier.load(tmp_path / "mine")
    assert {tensor.dtype for tensor in loaded.model.state_dict().values()} == {dtype}
    assert loaded.predict(TEXTS)[1].equal(probabilities) and not loaded.model.training


@pytest.mark.parametrize("tokenizer", [
    BPETokenizer.train(["a dull film and a moving film"] * 3, 280), WordTokenizer([*WORDS, "\ud800", "ä", "<br\n/>"])])
def test_the_tokenizer_comes_back_with_every_word_that_it_has(tmp_path, tokenizer):
    classifier = make(tokenizer=tokenizer)
    classifier.save(tmp_path / "mine")
    loaded = ReviewClassifier.load(tmp_path / "mine")
    assert type(loaded.tokenizer) is type(tokenizer) and loaded.tokenizer.content() == tokenizer.content()
    assert loaded.predict(TEXTS)[1].equal(classifier.predict(TEXTS)[1])


def test_a_note_is_kept_until_the_next_model_is_saved(tmp_path):
    make().save(tmp_path / "mine")
    for title in ("one", "two"):
        write_note(tmp_path / "mine", title, {"about": title})
    assert read_note(tmp_path / "mine", "one") == {"about": "one"} and read_note(tmp_path / "mine", "three") is None
    assert ReviewClassifier.load(tmp_path / "mine").predict(TEXTS)[1].equal(make().predict(TEXTS)[1])
    make().save(tmp_path / "mine")
    assert read_note(tmp_path / "mine", "one") is None


COURSE = sorted(path.stem if path.suffix else path.name for path in CHECKPOINTS.iterdir())


@pytest.mark.parametrize("name", COURSE)
def test_the_models_that_come_with_the_course_still_load(name):
    kind = kind_in(CHECKPOINTS / name)
    if kind == RECURRENT:
        assert kept_translator(name.removeprefix("recurrent-"))(SOURCE, SOURCE > 0, SOURCE).logits.isfinite().all()
    elif kind == PIECES:
        assert SubwordTranslator.load(name).translate(["A dog runs."])[0].endswith(".")
    elif kind == WORD_LISTS:
        assert Translator.load(name).model(SOURCE, SOURCE > 0, SOURCE).logits.isfinite().all()
    elif kind == CLASSIFIER:
        assert ReviewClassifier.load(name).predict(["A dull film."])[1].isfinite().all()
    elif kind == ENCODER:
        model, tokenizer = load_bert(name)
        ids, mask = pad_batch([tokenizer.encode("A dull film.")], 0)
        hidden = model(ids, mask)
        assert hidden[0].isfinite().all()
    else:
        assert kind in (CODE, SMALL)
        model = read_model(name, LanguageModel, LanguageModelConfig).model
        assert model(torch.ones(1, 3, dtype=torch.long)).logits.isfinite().all()


# files that are refused

def without(key, *inside):
    def change(about, tensors):
        for name in inside:
            about = about[name]
        del about[key]
    return change


def put(value, key, *inside):
    def change(about, tensors):
        for name in inside:
            about = about[name]
        about[key] = value
    return change


HEADERS = {                                             # one of each kind: a wrong key, a missing one, a wrong value
    "'author' isn't known": put("me", "author"), "vocabulary is missing": without("vocabulary"),
    "'heads' isn't known": put(2, "heads", "config"), "num_heads is missing": without("num_heads", "config"),
    "num_heads": put("two", "num_heads", "config"), "expected ClassifierConfig": put([1], "config"),
    "label_names": put(["one"], "label_names"), "model='Perceptron'": put("Perceptron", "model"),
    "the tokenizer is": put({"type": "letters"}, "vocabulary"), "should be a list": put(None, "vocabulary", "vocabulary"),
    "vocab_size=7, and that of its vocabulary is 6": put("\n".join(WORDS[:-1]), "vocabulary", "vocabulary"),
    "doesn't belong into merges": put({"type": "byte pairs", "merges": [[300, 1]]}, "vocabulary"),
    "size mismatch for encoder.blocks.0.feed_forward": lambda about, tensors: about["config"].update(d_ff=13),
    "float32 and int64": lambda about, tensors: tensors.update({"output.bias": torch.zeros(2, dtype=torch.long)}),
    "infinite": lambda about, tensors: tensors["output.bias"].fill_(float("inf")),
    "Unexpected key(s) in state_dict": lambda about, tensors: tensors.update(extra=torch.zeros(2)),
    "Missing key(s) in state_dict": lambda about, tensors: tensors.pop("output.bias"),
}


@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_a_header_or_tensors_that_say_something_else_are_refused(tmp_path, change):
    make().save(tmp_path / "mine")
    rewrite(tmp_path / "mine.safetensors", change)
    (word,) = [word for word, other in HEADERS.items() if other is change]
    refused(tmp_path / "mine.safetensors", word)


def test_an_unknown_version_is_named_before_anything_else(tmp_path):
    make().save(tmp_path / "mine")
    path = tmp_path / "mine.safetensors"
    path.write_bytes(path.read_bytes().replace(b'version\\":3', b'version\\":4'))
    refused(tmp_path / "mine", "is of version 4, and this course reads version 3")


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    make().save(tmp_path / "mine")
    path = tmp_path / "mine.safetensors"
    whole = path.read_bytes()
    for wrong in (*(whole[:length] for length in (0, 1, 8, 100, len(whole) // 2, len(whole) - 1)), whole + b"\0",
                  b"\x80\x04\x95.", b"[1, 2]"):
        path.write_bytes(wrong)
        refused(tmp_path / "mine", "isn't a whole safetensors file")


def test_a_flipped_bit_anywhere_is_noticed(tmp_path):
    make().save(tmp_path / "mine")
    path = tmp_path / "mine.safetensors"
    whole = path.read_bytes()
    config, start = whole.index(b"0.1"), 8 + int.from_bytes(whole[:8], "little")
    for place in (config, whole.index(b"dull"), start, (start + len(whole)) // 2, len(whole) - 1):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused(tmp_path / "mine", "has changed since it was saved")


def test_what_is_no_model_of_the_course_is_named(tmp_path):
    refused(tmp_path / "absent", "there is no model in", error=FileNotFoundError)
    refused(tmp_path, "there is no model in", error=FileNotFoundError)
    (tmp_path / "notes.txt").write_text("mine")
    refused(tmp_path, "there is no model in", error=FileNotFoundError)
    refused(tmp_path / "notes.txt", "isn't a whole safetensors file")
    safetensors.torch.save_file({"a": torch.ones(2)}, tmp_path / "theirs.safetensors", {"format": "pt"})
    refused(tmp_path / "theirs", "its header doesn't say which model it holds")


# names

def test_what_the_working_folder_has_of_that_name_is_preferred_even_if_it_holds_no_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make().save("reviews")
    assert ReviewClassifier.load("reviews").model.config.vocab_size != 2707
    (tmp_path / "imdb").mkdir()
    with pytest.raises(FileNotFoundError, match="imdb"):
        ReviewClassifier.load("imdb")


def test_of_a_folder_and_a_file_of_one_name_the_folders_model_is_read_with_a_warning(tmp_path):
    make().save(tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    assert ReviewClassifier.load(tmp_path / "mine").predict(TEXTS)[1].equal(make().predict(TEXTS)[1])
    make(seed=1).save(tmp_path / "mine")
    with pytest.warns(UserWarning, match="for the other model of that name, give '.*mine.safetensors'"):
        assert ReviewClassifier.load(tmp_path / "mine").predict(TEXTS)[1].equal(make(seed=1).predict(TEXTS)[1])


def test_a_tilde_is_the_home_folder_for_save_and_load(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    make().save("~/model")
    assert holds_model(tmp_path / "home/model") and not Path("~").exists()
    assert ReviewClassifier.load("~/model").predict(TEXTS)[1].equal(make().predict(TEXTS)[1])


@pytest.mark.parametrize(("name", "error"), [(None, TypeError), (b"x", TypeError), (" ", ValueError), ("a\0b", ValueError)])
def test_what_is_no_name_is_refused(name, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for use in (make().save, ReviewClassifier.load):
        with pytest.raises(error, match="expected the name of a model and got .*; write"):
            use(name)
    assert not list(tmp_path.iterdir())


# labels and answers

@pytest.mark.parametrize(("labels", "words"), [
    (["a", "a "], "two of them equal"), (["spam", "spam\u200b"], "two of them equal"),
    (["caf\u00e9", "cafe\u0301"], "two of them equal"), (["\u200b", "b"], "give each class a name"),
    ((name for name in ("a", "b")), "use a list of names")])
def test_labels_that_look_the_same_or_that_nobody_can_read_are_refused(labels, words):
    with pytest.raises(ValueError, match=words):
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
