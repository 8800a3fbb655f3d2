"""Every kind of saved model given to every loader: it's loaded, or a message says which function loads it."""

import json
from pathlib import Path

import pytest
import torch

from course_utils.classifier import ReviewClassifier
from course_utils.completion import CodeCompleter
from course_utils.distillation import CautiousClassifier
from course_utils.encoder_decoder import Transformer, TransformerConfig, Translator
from course_utils.files.paths import CHECKPOINTS
from course_utils.hugging_face import load_bert_classifier, save_bert
from course_utils.language_model import load_gpt2
from course_utils.library_translators import save_transformer
from course_utils.llama import load_llama
from course_utils.pretraining import BertClassifier, BertConfig, BertEncoder, load_bert
from course_utils.training.model_kinds import COURSE_KINDS, THEIRS
from course_utils.translation.command import load_translator
from course_utils.translation.subwords import SubwordTranslator

OURS = {                                                # those that come with the course: the loaders that take them
    "reviews": [ReviewClassifier.load], "reader": [ReviewClassifier.load, CautiousClassifier.load],
    "imdb": [ReviewClassifier.load], "student": [ReviewClassifier.load, CautiousClassifier.load],
    "translation": [Translator.load, load_translator], "multi30k": [SubwordTranslator.load, load_translator],
    "code": [CodeCompleter.load], "imports-seed-0": [], "induction-seed-0": [], "recurrent-additive": [],
}
LOADER_OF = {
    "reviews": "ReviewClassifier.load", "reader": "ReviewClassifier.load", "imdb": "ReviewClassifier.load",
    "student": "ReviewClassifier.load", "translation": "Translator.load", "multi30k": "SubwordTranslator.load",
    "code": "CodeCompleter.load", "imports-seed-0": "read_model", "induction-seed-0": "read_model",
    "recurrent-additive": "kept_translator",
    "bert": "load_bert", "bert classifier": "load_bert_classifier", "gpt2": "load_gpt2", "llama": "load_llama",
    "t5": "AutoModel.from_pretrained", "marian": "AutoModel.from_pretrained",
}
LOADERS = [ReviewClassifier.load, CautiousClassifier.load, Translator.load, SubwordTranslator.load, CodeCompleter.load,
           load_translator, load_bert, load_bert_classifier, load_gpt2, load_llama]
NAMES = {loader: loader.__qualname__ for loader in LOADERS}


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("COURSE_MODELS", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory) -> dict[str, Path]:
    """Small models in Hugging Face's format; of the kinds that nothing is loaded from, the configuration alone."""
    folder = tmp_path_factory.mktemp("theirs")
    torch.manual_seed(0)
    encoder = BertEncoder(BertConfig(vocab_size=9, d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=6))
    save_bert(encoder, None, folder / "bert")
    save_bert(BertClassifier(encoder, 2, "pooler"), None, folder / "bert classifier", ["no", "yes"])
    save_transformer(Transformer(TransformerConfig(9, 9, d_model=8, num_heads=2, d_ff=8, num_layers=1, max_len=8,
                                                   positions="sinusoidal", norm_first=False, activation="relu")),
                     folder / "marian")
    for name in ("gpt2", "llama", "t5"):
        (folder / name).mkdir()
        (folder / name / "config.json").write_text(json.dumps({"model_type": name}))
    return {name: folder / name for name in ("bert", "bert classifier", "gpt2", "llama", "t5", "marian")}


@pytest.mark.parametrize("loader", LOADERS, ids=NAMES.values())
@pytest.mark.parametrize("name", OURS)
def test_a_model_of_the_course_is_loaded_or_the_loader_of_its_kind_is_named(name, loader):
    for given in (CHECKPOINTS / name, name):
        if loader in OURS[name]:
            if loader is not load_translator:           # the command looks up names before
                assert loader(given) is not None
            continue
        if loader is load_translator and given == name:
            continue
        with pytest.raises((ValueError, FileNotFoundError)) as refused:
            loader(given)
        said = str(refused.value)
        assert f"load it with {LOADER_OF[name]}(" in said and " of course_utils." in said, said


@pytest.mark.parametrize("loader", LOADERS, ids=NAMES.values())
@pytest.mark.parametrize("kind", ["bert", "bert classifier", "gpt2", "llama", "t5", "marian"])
def test_a_model_of_hugging_face_is_loaded_or_the_loader_of_its_kind_is_named(kind, loader, theirs):
    folder = theirs[kind]
    if (loader, kind) in ((load_bert, "bert"), (load_bert, "bert classifier"), (load_bert_classifier, "bert classifier")):
        assert loader(folder) is not None
        return
    with pytest.raises((ValueError, FileNotFoundError)) as refused:
        loader(str(folder) if loader not in (load_translator,) else folder)
    said = str(refused.value)
    if loader in (load_gpt2, load_llama) and NAMES[loader] == LOADER_OF[kind]:
        assert "has no model.safetensors" in said       # its own loader: nothing but the weights is missing
    elif loader is load_bert_classifier and kind == "bert":
        assert "load_bert takes the encoder out of any of them" in said
    else:
        assert f"load it with {LOADER_OF[kind]}(" in said, said


def test_every_kind_that_is_named_is_tried_here():
    assert {kind.loader.partition("(")[0] for kind in (*COURSE_KINDS, *THEIRS.values())} <= set(LOADER_OF.values())


BY_NAME = [(ReviewClassifier.load, "reader"), (CautiousClassifier.load, "student"), (Translator.load, "translation"),
           (SubwordTranslator.load, "multi30k"), (CodeCompleter.load, "code"), (load_translator, "multi30k")]


@pytest.mark.parametrize(("loader", "name"), BY_NAME, ids=[NAMES[loader] for loader, _ in BY_NAME])
@pytest.mark.parametrize("made", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nothing")],
                         ids=["folder", "file", "link"])
def test_what_hides_a_model_of_the_course_is_said_with_a_way_to_it(loader, name, made, tmp_path):
    made(tmp_path / name)
    with pytest.raises((ValueError, FileNotFoundError)) as refused:
        loader(Path(name) if loader is load_translator else name)
    said = str(refused.value)
    assert f"'{name}' was taken for what is called so in {tmp_path}" in said, said
    assert f"for the course's model of that name, give '{CHECKPOINTS / name}', or rename yours" in said
    assert loader(CHECKPOINTS / name) is not None


@pytest.mark.parametrize(("loader", "name"), [(load_gpt2, "gpt2"), (load_bert, "bert-base-uncased"), (load_llama, "llama"),
                                              (load_bert_classifier, "owner/model")])
@pytest.mark.parametrize("made", ["folder", "file"])
def test_what_hides_a_model_of_the_hub_is_said_with_a_way_to_it(loader, name, made, tmp_path, monkeypatch):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).mkdir() if made == "folder" else (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=f"'{name}' was taken for what is called so in {tmp_path}: for the model of that "
                                         "name on the hub, rename yours, or let Python run in another folder"):
        loader(name)
    models = tmp_path / "models"
    (models / name).mkdir(parents=True)
    monkeypatch.setenv("COURSE_MODELS", str(models))
    with pytest.raises(ValueError, match=f"for the model of that name in COURSE_MODELS, give its path, '{models / name}'"):
        loader(name)


def test_two_models_of_one_name_are_said(theirs, tmp_path, monkeypatch):
    (tmp_path / "mine").symlink_to(theirs["bert"])
    (tmp_path / "models" / "mine").mkdir(parents=True)
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    with pytest.warns(UserWarning, match="'mine' is the folder .*; the model of that name in COURSE_MODELS is"):
        load_bert("mine")
