"""What a saved model can consist of, and the error messages for anything else.

Does: make a tokenizer from what a header says; check keys, label names and numbers. Does not: read a file (see
`saved_files`).
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Set

import torch

from course_utils.byte_pairs import BPETokenizer
from course_utils.tokenization import Tokenizer, WordTokenizer
from course_utils.training.pair_batches import WordList
from course_utils.training.pair_subwords import SharedBytePairs
from course_utils.training.plain_text import PLAIN, reading_plain
from course_utils.training.saved_files import MEND
from course_utils.training.saved_word_pieces import SavedWordPieces

TOKENIZERS = {kind.kind: kind for kind in (WordTokenizer, BPETokenizer, WordList, SharedBytePairs, SavedWordPieces)}


def check_keys(content, names: Iterable[str], what: str) -> None:
    """Raise ValueError unless `content` is a dict with just these names; `what` says what it should be."""
    names = list(names)
    if not isinstance(content, dict):
        raise ValueError(f"expected {what} with {', '.join(names)}, and found {type(content).__name__}; {MEND}")
    if missing := [name for name in names if name not in content]:
        raise ValueError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing from {what}; {MEND}")
    if unknown := [name for name in content if name not in names]:
        raise ValueError(f"{unknown[0]!r} isn't known; {what} has {', '.join(names)}: read it with the course that saved it")


def check_answers(probabilities: torch.Tensor) -> None:
    """Raise FloatingPointError for probabilities that aren't finite: NaN would pass for the first class."""
    if not probabilities.isfinite().all():
        raise FloatingPointError("the model answers with NaN instead of probabilities: its weights are too large for their "
                                 "type; use model.float() if they are half precision, or train again, with a smaller "
                                 "learning rate")


def check_label_names(label_names: Iterable[str], num_classes: int) -> None:
    """Raise ValueError unless `label_names` are different strings, one for each class."""
    if isinstance(label_names, str | bytes | Mapping | Set | Iterator) or not isinstance(label_names, Iterable):
        raise ValueError(f"label_names is {label_names!r:.60}; use a list of names, one for each class")
    names = list(label_names)
    wrong = [name for name in names if not isinstance(name, str) or not _seen(name)]
    if wrong:
        raise ValueError(f"label_names holds {wrong[0]!r:.60}; give each class a name, a string that isn't empty")
    if len({_seen(name) for name in names}) != len(names):
        raise ValueError(f"label_names are {names!r:.200}, two of them equal; give each class a name of its own")
    if len(names) != num_classes:
        raise ValueError(f"the model has {num_classes} classes, but label_names are {names!r:.200}; give one for each class")


def _seen(name: str) -> str:
    """The name as a reader sees it: without spaces around it, and without characters that have no width."""
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", visible).split())


def written_tokenizer(tokenizer: Tokenizer) -> dict:
    """What a header says of a tokenizer: its `content()`, a list of words as one text with a word a line."""
    content = tokenizer.content()
    words = content[tokenizer.part]
    if words and all(isinstance(word, str) and "\n" not in word for word in words):
        content[tokenizer.part] = "\n".join(words)
    return content


def read_tokenizer(content) -> Tokenizer:
    """A tokenizer from what `written_tokenizer` or its `content()` gave. Raises ValueError for anything else."""
    kind = TOKENIZERS.get(str(content.get("type"))) if isinstance(content, dict) else None
    if kind is None:
        raise ValueError(f"the tokenizer is {str(content)!r:.60}; this course knows {', '.join(map(repr, TOKENIZERS))}; "
                         "read it with the course that saved it")
    setting = ("texts",) if "texts" in content else ()  # absent: the model reads texts as they are
    check_keys(content, ("type", *setting, kind.part), "a vocabulary")
    if setting and content["texts"] != PLAIN:
        raise ValueError(f"texts is {content['texts']!r:.60}, and can be {PLAIN!r}, or be left out; {MEND}")
    entries = content[kind.part]
    entries = entries.split("\n") if isinstance(entries, str) else entries
    if not isinstance(entries, list):
        raise ValueError(f"{kind.part} is of the type {type(entries).__name__}, and should be a list; {MEND}")
    seen, fits = set(), _is_merge if kind.part == "merges" else _is_word
    for i, entry in enumerate(entries):
        entry = tuple(entry) if isinstance(entry, list) else entry
        if not fits(entry, i) or entry in seen:
            why = "is there more than once" if fits(entry, i) else f"doesn't belong into {kind.part}"
            raise ValueError(f"entry {i}, {entry!r:.60}, {why}; {MEND}")
        seen.add(entry)
    return reading_plain(kind(entries)) if setting else kind(entries)


def _is_word(entry, i: int) -> bool:
    return isinstance(entry, str) and entry != ""


def _is_merge(entry, i: int) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2 and all(type(one) is int and 1 <= one < 257 + i for one in entry)


def check_numbers(tensors: dict[str, torch.Tensor]) -> None:
    """Raise ValueError unless these are finite floats, all of one type."""
    types = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values()})
    if len(types) > 1 or not all(tensor.is_floating_point() for tensor in tensors.values()):
        raise ValueError(f"its weights are of the type {' and '.join(types)}; use one kind of float: model.float()")
    for name, tensor in tensors.items():
        if wrong := int((~tensor.isfinite()).sum()):
            raise ValueError(f"{name} holds {wrong} of {tensor.numel()} numbers that are NaN or infinite; such a model says "
                             "nothing: train again, with a smaller learning rate")
