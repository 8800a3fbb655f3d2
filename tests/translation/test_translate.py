"""`python -m course_utils translate`: what it prints where, which model it takes, and what it refuses in words."""

import codecs
import inspect
import io
import os
import shutil
import subprocess
import sys

import pytest
import torch
from called import called

from course_utils.encoder_decoder import Transformer, TransformerConfig, Translator
from course_utils.files import paths
from course_utils.training.pair_batches import WordList
from course_utils.training.pair_subwords import SharedBytePairs
from course_utils.translation import command as translate
from course_utils.translation.subwords import SubwordTranslator

pytestmark = pytest.mark.slow

TEXTS = ["The film was too long.", "The box was empty."]


@pytest.fixture(autouse=True)
def named(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["python -m course_utils translate"])
    monkeypatch.chdir(tmp_path)


def run(arguments, capsys):
    return called(translate.main, arguments, capsys)


def before_cuts(said: str) -> list[str]:
    """The lines of the error stream but those on what was cut off: models that nobody has trained hardly ever end."""
    return [line for line in said.splitlines() if not line.startswith("cut off: ")]


def network(vocab: int, source_vocab: int) -> Transformer:
    torch.manual_seed(1)
    config = TransformerConfig(vocab, source_vocab, d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=20)
    return Transformer(config).eval()


@pytest.fixture
def words(tmp_path) -> Translator:
    english, french = WordList.train([["The", "film", "."]]), WordList.train([["Le", "film", "."]])
    made = Translator(network(french.vocab_size, english.vocab_size), english, french)
    made.save(tmp_path / "words")
    return made


@pytest.fixture
def pieces(tmp_path) -> SubwordTranslator:
    learned = SharedBytePairs.train(["The film was too long."] * 3, 280)
    made = SubwordTranslator(network(learned.vocab_size, learned.vocab_size), learned)
    made.save(tmp_path / "pieces")
    return made


def test_the_courses_own_translator_translates_and_says_what_it_is_and_what_it_does_not_know(capsys):
    status, printed, said = run([TEXTS[0], "The purple elephant saw the box.", "--from", paths.CHECKPOINTS / "translation"],
                                capsys)
    first, second = printed.splitlines()
    assert status == 0 and first == "Le film était trop long." and second.endswith(".")
    lines = said.splitlines()
    assert lines[0].startswith("model: data/checkpoints/translation, trained on the course's own sentences; it knows their ")
    known = len(Translator.load(paths.CHECKPOINTS / "translation").source_words.words) - 4
    assert f"it knows their {known:,} words and no others" in lines[0]
    assert lines[1:] == ["unknown words: purple, elephant"]


def test_a_folder_with_word_lists_and_one_with_byte_pairs_are_both_read(capsys, words, pieces):
    for folder, made, unknown in (("words", words, ["unknown words: was, too, long"]), ("pieces", pieces, [])):
        status, printed, said = run([TEXTS[0], "--from", folder, "--beam", 2], capsys)
        assert status == 0 and printed.splitlines() == [line.replace("\n", " ") for line in made.translate(TEXTS[:1], 2)]
        assert before_cuts(said) == [f"model: {folder}.safetensors", *unknown]


def test_the_translator_of_multi30k_is_taken_where_it_is_there(capsys, pieces, tmp_path, monkeypatch):
    (tmp_path / "data" / "checkpoints").mkdir(parents=True)
    shutil.copy(paths.CHECKPOINTS / "translation.safetensors", tmp_path / "data" / "checkpoints")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "CHECKPOINTS", tmp_path / "data" / "checkpoints")
    assert "model: data/checkpoints/translation," in run(TEXTS[:1], capsys)[2]
    pieces.save(tmp_path / "data" / "checkpoints" / "multi30k")
    status, printed, said = run(TEXTS[:1], capsys)
    assert status == 0 and before_cuts(said) == ["model: data/checkpoints/multi30k, trained on Multi30k's captions of "
                                                 "photographs; other kinds of text come out badly"]
    assert printed.rstrip("\n") == pieces.translate(TEXTS[:1])[0].replace("\n", " ").rstrip("\n")


def test_every_way_to_translate_searches_in_the_same_way_unless_told_otherwise():
    ways = (SubwordTranslator.translate, SubwordTranslator.candidates, Translator.translate)
    told = [{name: way.default for name, way in inspect.signature(one).parameters.items()} for one in ways]
    assert told[0] == told[1] and told[2].items() <= told[0].items()


def test_no_sentence_of_a_text_is_dropped_and_a_pronoun_finds_its_noun(capsys):
    folder = paths.CHECKPOINTS / "translation"
    for texts in (TEXTS, ["Our son came with us.", "The nurses slept.", "The box was empty."]):
        apart = run([*texts, "--from", folder], capsys)[1].splitlines()
        assert run([" ".join(texts), "--from", folder], capsys)[1] == " ".join(apart) + "\n"
        assert run(["\n".join(texts), "--from", folder], capsys)[1].splitlines() == apart
    for noun, pronoun in (("pizza", "Elle"), ("cake", "Il")):
        printed = run([f"You prepared a {noun}. It was delicious.", "--from", folder], capsys)[1]
        assert f". {pronoun} était délicieu" in printed


def test_a_sentence_that_is_too_long_is_said_whatever_its_model(capsys, words, pieces):
    for folder, said in (("words", "a sentence has 21 tokens, and the model reads at most 20"),
                         ("pieces", "byte pairs, and the model reads at most 20; cut it into shorter sentences")):
        status, printed, complaint = run(["The film. " + "Film " * 20 + ".", "--from", folder], capsys)
        assert (status, printed) == (2, "") and said in complaint


@pytest.mark.parametrize("folder", ["words", "pieces"])
def test_a_translation_that_was_cut_off_is_named_on_the_error_stream(capsys, words, pieces, monkeypatch, folder):
    monkeypatch.setattr(Transformer, "logits", lambda self, x: torch.arange(self.config.vocab_size) * torch.ones(len(x), 1))
    status, printed, said = run(["The film .", "--from", folder, "--beam", 1], capsys)
    assert status == 0 and len(printed.splitlines()) == 1
    assert said.splitlines()[1:] == ["cut off: 1 of 1 translations hadn't ended at its maximum length: 'The film .'"]


def test_without_a_text_the_lines_of_standard_input_are_translated(capsys, words, monkeypatch):
    expected = run([*TEXTS, "--from", "words"], capsys)[1]
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TEXTS[0]}\n\n  \n{TEXTS[1]}\n"))
    status, printed, _ = run(["--from", "words"], capsys)
    assert status == 0 and printed == expected and len(printed.splitlines()) == 2


def test_a_mark_changes_no_translation_and_other_encodings_are_refused_where_only_ascii_is_shown(root):
    command = [sys.executable, "-m", "course_utils", "translate", "--from", paths.CHECKPOINTS / "translation"]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONIOENCODING", "PYTHONUTF8")}
    environment |= {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}

    def ended(content: bytes):
        return subprocess.run(command, input=content, capture_output=True, timeout=240, env=environment)

    marked = ended(codecs.BOM_UTF8 + TEXTS[0].encode())
    assert marked.returncode == 0 and marked.stdout.startswith(b"Le film \\xe9tait") and b"unknown" not in marked.stderr
    refused = ended("A café.".encode("latin-1"))
    assert refused.returncode == 2 and refused.stdout == b"" and b"expected text in UTF-8" in refused.stderr


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("arguments, given, says", [
    ([], Terminal(""), "there is nothing to translate; write a text in quotes"),
    ([], io.StringIO(" \n"), "standard input is empty; send it lines"),
    (["film " * 21], None, "a sentence has 21 tokens, and the model reads at most 20"),
    (["film."] * 1001, None, "there are 1,001 texts; give 1,000 at a time"),
    (["film", "--beam", "0"], None, "--beam is 0; use a whole number from 1 to 100"),
    (["film", "--from", "cut"], None, "the model in cut.safetensors isn't a translator, or is damaged:"),
    (["film", "--from", "classifier"], None, "the model in classifier.safetensors isn't a translator, or is damaged:"),
])
def test_what_cannot_be_done_is_said_in_a_line_and_ends_with_2(arguments, given, says, capsys, words, tmp_path, monkeypatch):
    (tmp_path / "cut.safetensors").write_bytes((tmp_path / "words.safetensors").read_bytes()[:-1])
    shutil.copy(paths.CHECKPOINTS / "reviews.safetensors", tmp_path / "classifier.safetensors")
    monkeypatch.setattr(sys, "stdin", given)
    status, printed, complaint = run([*arguments, *([] if "--from" in arguments else ["--from", "words"])], capsys)
    assert (status, printed) == (2, "") and "Traceback" not in complaint
    assert f"translate: error: {says}" in complaint.splitlines()[-1]


def test_the_translator_of_captions_comes_with_the_course_and_is_the_one_that_answers(capsys):
    status, printed, said = run(["Two dogs play in the snow."], capsys)
    assert status == 0 and printed.startswith("Deux chiens") and printed.endswith("neige.\n"), printed
    assert "data/checkpoints/multi30k, trained on Multi30k's captions" in said


def test_a_missing_text_is_refused_before_the_slow_libraries_are_imported(root):
    code = ("import sys\nfrom course_utils.__main__ import translate\n"
            "try:\n    translate()(['', '--beam', '3'])\nexcept SystemExit as ended:\n"
            "    print(ended.code, {'torch', 'numpy', 'datasets'} & set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240,
                          env={**os.environ, "PYTHONPATH": str(root)})
    assert done.stdout == "2 set()\n" and "text 1 is empty" in done.stderr
