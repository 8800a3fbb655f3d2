"""Which kind of model a file or folder holds, and which function loads it: for loaders that are given one of another kind.

    kind_in("data/checkpoints/code")                    # Kind("a language model of code", "CodeCompleter.load", …)

Does: look at a file's header, or at the names of files and settings in a folder; say what else a name may mean. Does not:
load or check a model.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from course_utils.files.paths import CHECKPOINTS
from course_utils.training.earlier_models import about_folder
from course_utils.training.saved_files import INSIDE, SUFFIX, about_file, model_file

__all__ = ["Kind", "also_a_course_model", "kind_in", "kind_of"]


class Kind(NamedTuple):
    """What a model is, in words; the function that loads it; and where that function is."""

    what: str
    loader: str
    module: str

    def advice(self, path: Path) -> str:
        """What to do with it: 'it is a …; load it with …'."""
        named = _name_of(path)
        said = named.name if named.parent == CHECKPOINTS and "(name" in self.loader else str(named)[:200]
        return f"it holds {self.what}: load it with {self.loader.replace('name', repr(said))} of {self.module}"


CLASSIFIER = Kind("a classifier of texts", "ReviewClassifier.load(name)", "course_utils.classifier")
WORDS = Kind("a translator with word lists", "Translator.load(name)", "course_utils.encoder_decoder")
PIECES = Kind("a translator with byte pairs", "SubwordTranslator.load(name)", "course_utils.translation.subwords")
CODE = Kind("a language model with byte pairs", "CodeCompleter.load(name)", "course_utils.completion")
SMALL = Kind("a language model with whole words", "read_model(name, LanguageModel, LanguageModelConfig)",
             "course_utils.training.saved_models")
RECURRENT = Kind("a recurrent translator of notebook 16", "kept_translator('additive')",
                 "course_utils.translation.translators")
ENCODER = Kind("a pretrained encoder", "load_bert(name)", "course_utils.pretraining")
COURSE_KINDS = (CLASSIFIER, WORDS, PIECES, CODE, SMALL, RECURRENT, ENCODER)
THEIRS = {                                              # by model_type in Hugging Face's format
    "bert": Kind("a BERT in Hugging Face's format", "load_bert(name)", "course_utils.pretraining"),
    "bert classifier": Kind("a BERT that classifies, in Hugging Face's format", "load_bert_classifier(name)",
                            "course_utils.hugging_face"),
    "gpt2": Kind("a GPT-2 in Hugging Face's format", "load_gpt2(name)", "course_utils.language_model"),
    "llama": Kind("a Llama in Hugging Face's format", "load_llama(name)", "course_utils.llama"),
}


def kind_of(about: dict) -> Kind | None:
    """The kind of a model of the course by what its header says; None for no such."""
    vocabulary = about.get("vocabulary")
    tokenizer = vocabulary.get("type") if isinstance(vocabulary, dict) else None
    return {
        "SelfAttentionClassifier": CLASSIFIER, "Transformer": WORDS if "source_words" in about else PIECES,
        "LanguageModel": SMALL if tokenizer == "words" else CODE, "Seq2Seq": RECURRENT, "BertEncoder": ENCODER,
    }.get(str(about.get("model")))


def kind_in(path: str | Path) -> Kind | None:
    """The kind of the model in a file or folder, the course's or one in Hugging Face's format; None if it can't be told."""
    path = model_file(Path(path))
    if kind := kind_of(about_folder(path) if os.path.isdir(path) else about_file(path)):
        return kind
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        found, classes = config.get("model_type"), config.get("architectures")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    if not isinstance(found, str):
        return None
    if found == "bert" and isinstance(classes, list) and "BertForSequenceClassification" in classes:
        found = "bert classifier"
    other = Kind(f"a model of the type {found!r} in Hugging Face's format", "AutoModel.from_pretrained(name)",
                 "transformers, which computes kinds that the course has no class for")
    return THEIRS.get(found, other)


def also_a_course_model(path: Path) -> str:
    """What to do where a file or folder of this name hides a model that comes with the course; '' where it doesn't."""
    named = _name_of(path)
    own = CHECKPOINTS / named.name
    if not named.name or named != Path(named.name) or not os.path.exists(model_file(own)) or _same(path, model_file(own)):
        return ""
    return (f"; {str(named)!r} was taken for what is called so in {Path.cwd()}: for the course's model of that name, give "
            f"{str(own)!r}, or rename yours")


def _name_of(path: Path) -> Path:
    """What a learner writes for it: 'mine' for mine.safetensors and for mine/model.safetensors."""
    return path.parent if path.name == INSIDE and path.parent.name else Path(str(path).removesuffix(SUFFIX))


def _same(first: Path, second: Path) -> bool:
    with contextlib.suppress(OSError):
        return first.samefile(second)
    return False
