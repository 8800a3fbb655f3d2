"""What the files of a saved model can contain, and the error messages for anything else.

Does: read a configuration, a vocabulary and tensors from bytes, and check each by itself and against the others. Does not:
open a file (see `saved_models`). Nothing is unpickled.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set

import safetensors.torch
import torch

from course_utils.tokenization import BPETokenizer, WordTokenizer
from course_utils.training.eight_bits import unpacked
from course_utils.training.pair_batches import SPECIAL, WordList
from course_utils.training.pair_subwords import SharedBytePairs
from course_utils.training.plain_text import PLAIN
from course_utils.training.plain_tokenizers import reading_plain
from course_utils.training.saved_word_pieces import SavedWordPieces

MANIFEST = "model.json"
OLD_TENSORS = ["rotary.frequency"]                      # of earlier versions; today it's computed where it's needed
TOKENIZERS = {kind.kind: kind for kind in (WordTokenizer, BPETokenizer, WordList, SharedBytePairs,
                                           SavedWordPieces)}               # and so in CHECKS
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
MEND = "copy the whole folder again, or train and save again"


def parse_json(content: bytes):
    """JSON from bytes. Raises ValueError also for what Python's parser lets pass: a key twice, NaN, endless nesting."""
    def object_of(pairs):
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is there twice; {MEND}")
        return dict(pairs)

    def no_constant(word):
        raise ValueError(f"{word} isn't JSON; {MEND}")

    def whole(digits):
        if len(digits) > 400:
            raise ValueError(f"it holds a number of {len(digits)} digits; {MEND}")
        return int(digits)

    try:
        text = content.decode("utf-8")
        return json.loads(text, object_pairs_hook=object_of, parse_constant=no_constant, parse_int=whole)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        about = "the file is empty" if not content.strip() else f"it isn't JSON ({error})"
        raise ValueError(f"{about}; {MEND}") from None


def check_keys(content, names: Iterable[str], what: str) -> None:
    """Raise ValueError unless `content` is a dict with just these names; `what` says what it should be."""
    names = list(names)
    if not isinstance(content, dict):
        raise ValueError(f"expected {what} with {', '.join(names)}, and found {type(content).__name__}; {MEND}")
    missing = [name for name in names if name not in content]
    unknown = [name for name in content if name not in names]
    if missing:
        raise ValueError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; {MEND}")
    if unknown:
        raise ValueError(f"{unknown[0]!r} isn't known; {what} has {', '.join(names)}: take it out, or {MEND}")


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


def _words(entries: list, first: tuple[str, str] = ("<pad>", "<unk>")) -> list[str]:
    for i, token in enumerate(entries):
        if not isinstance(token, str) or not token:
            raise ValueError(f"entry {i} is {json.dumps(token):.60}, and should be a word; {MEND}")
    if entries[:2] != list(first):
        raise ValueError(f"it begins with {entries[:2]!r:.60}, and should with {', '.join(map(repr, first))}; {MEND}")
    return entries


def _pieces(entries: list) -> list[str]:
    return _words(entries, ("[PAD]", "[UNK]"))


def _word_list(entries: list) -> list[str]:
    if _words(entries)[:4] != SPECIAL:
        raise ValueError(f"it begins with {entries[:4]!r:.60}, and should with {', '.join(map(repr, SPECIAL))}; {MEND}")
    return entries


def _merges(entries: list) -> list[tuple[int, int]]:
    entries = [tuple(pair) if isinstance(pair, list) else pair for pair in entries]
    for i, pair in enumerate(entries):
        known = isinstance(pair, tuple) and len(pair) == 2 and all(type(part) is int for part in pair)
        if not known or not all(1 <= part < 257 + i for part in pair):
            raise ValueError(f"merge {i} is {pair!r:.60}, and should be two ids from 1 to {256 + i}; {MEND}")
    return entries


# each returns the list of a file, or refuses it
CHECKS = {WordTokenizer.kind: _words, BPETokenizer.kind: _merges, WordList.kind: _word_list, SharedBytePairs.kind: _merges,
          SavedWordPieces.kind: _pieces}


def read_tokenizer(content, expected: str | None):
    """A tokenizer from the content of its file. Raises ValueError for anything that its `save` can't have written."""
    kind = content.get("type") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in TOKENIZERS:
        raise ValueError(f"it isn't the vocabulary of a tokenizer; {MEND}")
    if expected is not None and kind != expected:
        raise ValueError(f"it is for a tokenizer of the kind {kind!r}, and {MANIFEST} says {expected!r}; {MEND}")
    tokenizer_class = TOKENIZERS[kind]
    setting = ("texts",) if "texts" in content else ()  # absent: the model reads texts as they are
    check_keys(content, ("type", *setting, tokenizer_class.part), "a vocabulary")
    if setting and content["texts"] != PLAIN:
        raise ValueError(f"texts is {content['texts']!r:.60}, and can be {PLAIN!r}, or be left out; {MEND}")
    entries = content[tokenizer_class.part]
    if not isinstance(entries, list):
        raise ValueError(f"{tokenizer_class.part} is of the type {type(entries).__name__}, and should be a list; {MEND}")
    entries = CHECKS[kind](entries)
    twice = [entry for entry, count in Counter(entries).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]!r} is there more than once; {MEND}")
    return reading_plain(tokenizer_class(entries)) if setting else tokenizer_class(entries)


def read_tensors(content: bytes) -> dict[str, torch.Tensor]:
    """The tensors of a safetensors file, all of one type of float; matrices in 8 bits are floats by then.

    Raises ValueError for any other file.
    """
    try:
        tensors = safetensors.torch.load(content)
    except Exception as error:                          # safetensors has an error of its own, and lets others through
        raise ValueError(f"it isn't a whole safetensors file ({error}); {MEND}") from None
    for name in OLD_TENSORS:
        tensors.pop(name, None)
    try:
        tensors = unpacked(tensors)
    except ValueError as error:
        raise ValueError(f"{error}; {MEND}") from None
    for name, tensor in tensors.items():
        if tensor.dtype not in TYPES:
            allowed = ", ".join(map(_short, TYPES))
            raise ValueError(f"{name} is of the type {_short(tensor.dtype)}; use one of {allowed}: model.float()")
    types = sorted({_short(tensor.dtype) for tensor in tensors.values()})
    if len(types) > 1:
        raise ValueError(f"its weights are of several types ({', '.join(types)}); use one for the model: model.float()")
    return tensors


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def check_shapes(tensors: dict, model_class: type, config, config_name: str) -> None:
    """Compare names and shapes with those of a model of this configuration, which is built without memory for numbers."""
    if config.num_layers > len(tensors):                # before any of 20,000 layers is built
        raise ValueError(f"{len(tensors)} tensors are too few for num_layers={config.num_layers} of {config_name}; {MEND}")
    try:
        with torch.device("meta"):
            model = model_class(config)
    except RuntimeError as error:                       # sizes whose product no computer can count
        raise ValueError(f"{config_name} describes no model that can be built ({error}); {MEND}") from None
    for name, expected in model.state_dict().items():
        if name in tensors and tensors[name].shape != expected.shape:
            raise ValueError(
                f"{name} has the shape {tuple(tensors[name].shape)}, and the model of {config_name} has "
                f"{tuple(expected.shape)}; {MEND}"
            )
    missing, unknown = model.load_state_dict({name: tensor.to("meta") for name, tensor in tensors.items()}, strict=False)
    if missing:
        raise ValueError(f"{_some(missing)} missing, which the model of {config_name} has; {MEND}")
    if unknown:
        raise ValueError(f"{_some(unknown)} not part of the model that {config_name} describes; {MEND}")


def _some(names: list[str]) -> str:
    """'a is', 'a and b are', 'a, b and 7 more are'."""
    if len(names) == 1:
        return f"{names[0]} is"
    rest = f"{len(names) - 2} more" if len(names) > 3 else names[-1]
    return f"{', '.join(names[: 2 if len(names) > 2 else 1])} and {rest} are"


def check_numbers(tensors: dict) -> None:
    """Raise ValueError for tensors with NaN or infinity in them."""
    for name, tensor in tensors.items():
        wrong = int((~tensor.isfinite()).sum())
        if wrong:
            raise ValueError(
                f"{name} holds {wrong} of {tensor.numel()} numbers that are NaN or infinite; such a model says nothing: "
                "train again, with a smaller learning rate"
            )
