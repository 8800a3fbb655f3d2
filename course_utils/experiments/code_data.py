"""The standard library as token ids, for everything that trains or measures on code.

Does: one tokenizer, trained on the training split and kept in outputs/code, and each split's modules encoded with it; the
same for this repository's own package. Does not: choose the modules (see `course_utils.data.standard_library`).
"""

import functools

from course_utils.data.standard_library import library_fingerprint, load_standard_library
from course_utils.experiments.results import fingerprint
from course_utils.files import locked
from course_utils.files.paths import ROOT, output_folder
from course_utils.tokenization import BPETokenizer
from course_utils.training.text_windows import TextWindows, joined

__all__ = ["SEPARATOR", "VOCAB_SIZE", "code_ids", "code_settings", "code_texts", "code_tokenizer", "code_windows"]

VOCAB_SIZE = 4096
SEPARATOR = 0                                           # before each module; no model is asked for it


def code_settings() -> str:
    """A fingerprint of the modules, their splits and the tokenizer's size; reads no source."""
    return fingerprint(library_fingerprint(), VOCAB_SIZE)


@functools.cache
def code_tokenizer() -> BPETokenizer:
    """4,096 byte pairs, learned on the training split; a minute and a half the first time, then read from outputs/code."""
    kept = output_folder() / "code" / f"tokenizer-{code_settings()}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with locked(kept, "learning byte pairs", wait=-1):
        if not kept.exists():
            BPETokenizer.train([module.text for module in load_standard_library("train")], VOCAB_SIZE).save(kept)
        return BPETokenizer.load(kept)


@functools.cache
def code_ids(split: str) -> dict[str, list[int]]:
    """The token ids of each module of a split, by its path (see `code_texts`)."""
    tokenizer = code_tokenizer()
    return {path: tokenizer.encode(text) for path, text in code_texts(split).items()}


@functools.cache
def code_texts(split: str) -> dict[str, str]:
    """The text of each module of a split, by its path; 'repository' is this course's package as it is, no empty files."""
    if split != "repository":
        return {module.path: module.text for module in load_standard_library(split)}
    package = ROOT / "course_utils"
    files = sorted(path for path in package.rglob("*.py") if not {"__pycache__", ".ipynb_checkpoints"} & {*path.parts})
    return {path.relative_to(ROOT).as_posix(): text for path in files if (text := path.read_text(encoding="utf-8"))}


def code_windows(split: str, length: int, batch_size: int) -> TextWindows:
    """A split as training data: its modules in one row, each after a separator."""
    return TextWindows(joined(list(code_ids(split).values()), SEPARATOR), length, batch_size)
