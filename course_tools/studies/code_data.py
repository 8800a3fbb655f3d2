"""The standard library as token ids, for everything that trains or measures on code.

Does: one tokenizer, trained on the training split and kept in outputs/code, and each split's modules encoded with it; the
same for this repository's own package, as it was at one commit, so that all results are about the same text. Does not:
choose the modules (see `course_tools.studies.standard_library`).
"""

import functools
import io
import subprocess
import tarfile
from pathlib import Path

from course_tools.studies.needs import Need
from course_tools.studies.standard_library import library_fingerprint, load_standard_library
from course_tools.studies.text_windows import TextWindows, joined
from course_utils.byte_pairs import BPETokenizer
from course_utils.files import locked
from course_utils.files.paths import ROOT, output_folder
from course_utils.results import fingerprint

__all__ = ["PACKAGE", "REPOSITORY", "SEPARATOR", "VOCAB_SIZE", "code_ids", "code_settings", "code_texts", "code_tokenizer",
           "code_windows", "package_at"]

VOCAB_SIZE = 4096
REPOSITORY = "9763ad853d234b83ba1f0793b66f961b080b17d5"  # the commit whose package is the split 'repository'
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
    """The text of each module of a split, by its path; 'repository' is this course's package at the commit `REPOSITORY`."""
    if split == "repository":
        return package_at(REPOSITORY)
    return {module.path: module.text for module in load_standard_library(split)}


def package_at(commit: str, root: Path = ROOT, package: str = "course_utils") -> dict[str, str]:
    """The Python files of a package as a commit has them, path to text, in order; no empty ones.

    Raises RuntimeError where git isn't installed, or this copy of the repository has no such commit.
    """
    command = ["git", "-C", str(root), "archive", "--format=tar", commit, package]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise RuntimeError(f"the sources at commit {commit[:12]} are read by git, which isn't installed here") from None
    if done.returncode:
        complaint = " ".join(done.stderr.decode(errors="replace").split())[:200]
        raise RuntimeError(f"git can't read {package} at commit {commit[:12]} ({complaint}); in a clone of the course that "
                           "has its whole history it can: git fetch --unshallow")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        texts = {member.name: archive.extractfile(member).read().decode("utf-8")
                 for member in archive.getmembers() if member.isfile() and member.name.endswith(".py")}
    return {path: texts[path] for path in sorted(texts) if texts[path]}


def code_windows(split: str, length: int, batch_size: int) -> TextWindows:
    """A split as training data: its modules in one row, each after a separator."""
    return TextWindows(joined(list(code_ids(split).values()), SEPARATOR), length, batch_size)


PACKAGE = Need("this repository's history", lambda row, seed: code_texts("repository"))
