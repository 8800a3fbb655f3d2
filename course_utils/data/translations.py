"""English sentences with their French translations: the course's own with gold word alignments, 200 by hand, Multi30k.

What it does: `load_translations` returns a `datasets.DatasetDict`; `split_english`, `split_french` and their inverses
`join_english`, `join_french` define the tokens that alignments count. What it does not do: build a vocabulary, or translate.
Multi30k is found in `multi30k`, which alone touches the network; `french` writes the course's own pairs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
from datasets import Dataset, DatasetDict

from course_utils.data.fetching import HUB_TIMEOUT
from course_utils.data.hub import DataNotAvailable
from course_utils.data.multi30k import load_multi30k
from course_utils.files.paths import DATA

__all__ = [
    "SOURCES",
    "join_english",
    "join_french",
    "load_translations",
    "pack_alignment",
    "split_english",
    "split_french",
    "unpack_alignment",
]

SOURCES = ("translation", "handwritten_translation", "multi30k")
NO_BREAK = "\u00a0"  # French has a space before ? ! : ; and inside « », at which no line breaks
ENGLISH = re.compile(r"o'clock|\w+(?=n't\b)|n't\b|'(?:s|m|d|ll|re|ve)\b|\d+(?:[.,]\d+)+|\w+(?:-\w+)*|[^\w\s]", re.I)
FRENCH = re.compile(r"aujourd'hui|(?:\w+-)*\w+'|\d+(?:[.,]\d+)+|\w+(?:-\w+)*|[^\w\s]", re.I)

# columns that only some rows have, with what the others hold
TEXTS = ("pair", "gender")
NUMBERS = ("antecedent", "pronoun", "antecedent_target", "pronoun_target", "sentences", "distance")


def _straight(text: str) -> str:
    return text.replace("\u2019", "'")


def split_english(text: str) -> list[str]:
    """The tokens: split_english("The actress's film didn't end.") -> The actress 's film did n't end ."""
    return ENGLISH.findall(_straight(text))


def split_french(text: str) -> list[str]:
    """The tokens, an elided word with its apostrophe: split_french("L'actrice n'a pas ri.") -> L' actrice n' a pas ri ."""
    return FRENCH.findall(_straight(text))


def join_english(tokens: list[str]) -> str:
    """The text of which `split_english` makes the tokens."""
    text = ""
    for token in tokens:
        tight = token == "n't" or token.startswith("'") or re.fullmatch(r"[.,?!;:)]", token)
        text += token if tight or not text or text.endswith("(") else f" {token}"
    return text


def join_french(tokens: list[str]) -> str:
    """The text of which `split_french` makes the tokens, with a no-break space before ? ! : ; and inside « »."""
    text = ""
    for token in tokens:
        if not text or token in (".", ",", "…", ")") or text.endswith(("'", "(")):
            text += token
        else:
            text += (NO_BREAK if token in ("?", "!", ":", ";", "»") or text.endswith("«") else " ") + token
    return text


def pack_alignment(links: list[tuple[int, int]]) -> str:
    """The form of an alignment in files: '0-0 1-2 1-3', source index and target index."""
    return " ".join(f"{source}-{target}" for source, target in links)


def unpack_alignment(text: str) -> list[list[int]]:
    """unpack_alignment('0-0 1-2') -> [[0, 0], [1, 2]]."""
    return [[int(index) for index in link.split("-")] for link in text.split()]


def load_translations(source: str = "translation", *, timeout: float = HUB_TIMEOUT) -> DatasetDict:
    """English sentences and their French translations as a DatasetDict, held in memory.

    source: one of
        "translation": the course's pairs; train, validation and test. Columns id, source (English), target (French),
            source_tokens, target_tokens, alignment (a list of [source index, target index], gold, many to many), kind,
            unseen (whether a combination of words in it never occurs in training). Texts of the kind pronoun also have
            antecedent and pronoun (source indices), antecedent_target and pronoun_target (target indices), sentences
            (from the antecedent's to the pronoun's), distance (in source tokens), gender of the antecedent ("m" or "f")
            and pair (the id of the same text with a noun of the other gender); in other rows these are None.
        "handwritten_translation": 200 pairs written one by one, never trained on; test alone; the same columns.
        "multi30k": Multi30k's English and French descriptions of pictures (Elliott et al. 2016, 2017): train, validation and
            test, which is its test set of 2016; columns source, target, source_tokens, target_tokens. From the folder
            that the variable COURSE_DATA names (it, or multi30k/ in it, holds train.en, train.fr, val.en … as text, gzipped
            or not); where it isn't set, from the `datasets` cache or the network.
    timeout: seconds to wait for an answer from the network, and for a transfer that has stalled.

    Raises ValueError for another source or a damaged file, DataNotAvailable where there is no copy to be had.
    """
    if source not in SOURCES:
        raise ValueError(f"got source={source!r:.60}; expected one of {', '.join(map(repr, SOURCES))}")
    if source == "multi30k":
        return DatasetDict({split: _plain(*texts) for split, texts in load_multi30k(timeout).items()})
    if source == "handwritten_translation":
        return DatasetDict({"test": _read(_there(DATA / "handwritten_translation.jsonl"))})
    folder = DATA / "translation"
    return DatasetDict({split: _read(_there(folder / f"{split}.jsonl")) for split in ("train", "validation", "test")})


def _there(path: Path) -> Path:
    if not path.is_file():
        raise DataNotAvailable(
            f"there is no file {path}; expected data/ beside course_utils/, as in a clone of the repository; "
            "install the package from there: pip install -e ."
        )
    return path


def _read(path: Path) -> Dataset:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    columns = {name: [row[name] for row in rows] for name in ("id", "source", "target")}
    columns["source_tokens"] = [split_english(text) for text in columns["source"]]
    columns["target_tokens"] = [split_french(text) for text in columns["target"]]
    columns["alignment"] = [unpack_alignment(row["alignment"]) for row in rows]
    columns["kind"] = [row["kind"] for row in rows]
    columns["unseen"] = [row.get("unseen", False) for row in rows]
    columns |= {name: [row.get(name) for row in rows] for name in (*TEXTS, *NUMBERS)}
    types = dict.fromkeys(("id", "source", "target", "kind", *TEXTS), pa.string()) | dict.fromkeys(NUMBERS, pa.int64())
    types |= dict.fromkeys(("source_tokens", "target_tokens"), pa.list_(pa.string()))
    types |= {"alignment": pa.list_(pa.list_(pa.int64())), "unseen": pa.bool_()}
    return Dataset(pa.table({name: pa.array(values, types[name]) for name, values in columns.items()}))


def _plain(sources: list[str], targets: list[str]) -> Dataset:
    columns = {
        "source": sources,
        "target": targets,
        "source_tokens": [split_english(text) for text in sources],
        "target_tokens": [split_french(text) for text in targets],
    }
    return Dataset.from_dict(columns)
