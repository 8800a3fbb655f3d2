"""Which kind of model a folder holds, and which function loads it: for loaders that are given one of another kind.

    kind_in("data/checkpoints/code")                    # Kind("a language model of code", "CodeCompleter.load", …)

Does: look at the names of files and of settings; say what else a name may mean. Does not: load or check a model.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from course_utils.files.paths import CHECKPOINTS

__all__ = ["Kind", "also_a_course_model", "kind_in", "kind_of"]


class Kind(NamedTuple):
    """What a model is, in words; the function that loads it; and where that function is."""

    what: str
    loader: str
    module: str

    def advice(self, folder: Path) -> str:
        """What to do with it: 'it is a …; load it with …'."""
        named = folder.name if folder.parent == CHECKPOINTS and "(folder" in self.loader else str(folder)[:200]
        return f"it holds {self.what}: load it with {self.loader.replace('folder', repr(named))} of {self.module}"


CLASSIFIER = Kind("a classifier of texts", "ReviewClassifier.load(folder)", "course_utils.classifier")
WORDS = Kind("a translator with word lists", "Translator.load(folder)", "course_utils.encoder_decoder")
PIECES = Kind("a translator with byte pairs", "SubwordTranslator.load(folder)",
              "course_utils.translation.subwords")
CODE = Kind("a language model with byte pairs", "CodeCompleter.load(folder)", "course_utils.completion")
SMALL = Kind("a language model with whole words", "read_model(folder, LanguageModel, LanguageModelConfig)",
             "course_utils.training.saved_models")
RECURRENT = Kind("the recurrent translators of notebook 16", "kept_translator('additive')",
                 "course_utils.translation.translators")
COURSE_KINDS = (CLASSIFIER, WORDS, PIECES, CODE, SMALL, RECURRENT)
THEIRS = {                                              # by model_type in Hugging Face's format
    "bert": Kind("a BERT in Hugging Face's format", "load_bert(folder)", "course_utils.pretraining"),
    "bert classifier": Kind("a BERT that classifies, in Hugging Face's format", "load_bert_classifier(folder)",
                            "course_utils.hugging_face"),
    "gpt2": Kind("a GPT-2 in Hugging Face's format", "load_gpt2(folder)", "course_utils.language_model"),
    "llama": Kind("a Llama in Hugging Face's format", "load_llama(folder)", "course_utils.llama"),
}


def kind_of(names: Iterable[str], tokenizer: str | None) -> Kind | None:
    """The kind of a model of the course by the names of its settings and the kind of its tokenizer; None for no such."""
    names = set(names)
    if names & {"label_names", "num_classes", "pooling"}:
        return CLASSIFIER
    if "source_vocab_size" in names:
        return WORDS if "source_words" in names or tokenizer == "word list" else PIECES
    if {"vocab_size", "tied", "positions"} <= names:
        return SMALL if tokenizer == "words" else CODE
    return None


def kind_in(folder: str | Path) -> Kind | None:
    """The kind of the model in a folder, the course's or one in Hugging Face's format; None if it can't be told."""
    folder = Path(folder)
    manifest = _json(folder / "model.json")
    if isinstance(manifest.get("files"), dict):
        config = manifest["files"].get("config")
        name = config.get("name") if isinstance(config, dict) else None
        return kind_of(_json(folder / name) if isinstance(name, str) else (), str(manifest.get("tokenizer")))
    if (folder / "additive.safetensors").is_file():
        return RECURRENT
    config = _json(folder / "config.json")
    found = config.get("model_type")
    if isinstance(found, str):
        classes = config.get("architectures")
        if found == "bert" and isinstance(classes, list) and "BertForSequenceClassification" in classes:
            found = "bert classifier"
        other = Kind(f"a model of the type {found!r} in Hugging Face's format", "AutoModel.from_pretrained(folder)",
                     "transformers, which computes kinds that the course has no class for")
        return THEIRS.get(found, other)
    return kind_of(config, None)


def also_a_course_model(named: Path) -> str:
    """What to do where a file or folder of this name hides a model that comes with the course; '' where it doesn't."""
    own = CHECKPOINTS / named.name
    if not named.name or named != Path(named.name) or not own.is_dir() or _same(named, own):
        return ""
    return (f"; {str(named)!r} was taken for what is called so in {Path.cwd()}: for the course's model of that name, give "
            f"{str(own)!r}, or rename yours")


def _same(first: Path, second: Path) -> bool:
    with contextlib.suppress(OSError):
        return first.samefile(second)
    return False


def _json(path: Path) -> dict:
    """The content of a file of JSON; empty for one that isn't there, can't be read or holds something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
