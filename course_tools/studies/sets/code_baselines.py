"""What completes code without a neural network: xz, n-grams, the words of a file. A result set.

Writes data/results/code_baselines.json: bits per byte on modules of the standard library that nothing was counted on, and on
this repository's package at one commit (`code_data.REPOSITORY`; each row has a fingerprint of the text); how often the words
of a file have the right name first. It reads the sources of the Python that runs, which must be the version of
data/standard_library.json. Nothing here is random but which names are drawn, so one seed is enough.

    python -m course_tools results code_baselines --seeds 0 --jobs 1
"""

import functools
import math
import time

from course_tools.studies.code_data import REPOSITORY, SEPARATOR, VOCAB_SIZE, code_ids, code_settings, code_texts
from course_tools.studies.code_names import PLACES, SHORTEST, draw_names, ranks_of, summarised
from course_tools.studies.code_scores import bits_by_module, bits_interval, xz_bits
from course_tools.studies.file_words import words_in_file
from course_tools.studies.kneser_ney import KneserNey
from course_tools.studies.runner import ResultSet
from course_tools.studies.standard_library import library_fingerprint
from course_utils.results import fingerprint

SCORED = ("test", "repository")
TYPED = (1, 2)                                          # characters of a name that are given
ROWS: dict[str, dict] = {
    "xz": {"primed": False}, "xz, primed with the training text": {"primed": True},
    "xz, each file by itself": {"primed": False, "joined": False},
    **{f"Kneser–Ney {order}-gram": {"order": order} for order in range(1, 6)},
    "words in this file, nearest first": {"words": "nearest"},
    "words in this file, most frequent first": {"words": "most frequent"},
}


@functools.cache
def settings() -> str:
    """What every run depends on: modules, tokenizer, which names are drawn; reads no source."""
    return fingerprint(code_settings(), REPOSITORY, PLACES, SHORTEST, list(TYPED))


def run(model: str, seed: int, state) -> dict:
    """Make one row."""
    began, row, made = time.perf_counter(), ROWS[model], {"library": library_fingerprint()}
    if "primed" in row:
        primed_with = list(code_texts("train").values()) if row["primed"] else []
        found = {split: {"overall": xz_overall(code_texts(split), primed_with, row.get("joined", True))} for split in SCORED}
    elif "order" in row:
        counted = KneserNey(VOCAB_SIZE, row["order"], SEPARATOR).fit(code_ids("train").values())
        found = {split: ngram_bits(counted, split) for split in SCORED}
        made |= {"parameters": sum(len(level.grams) for level in counted.levels), "discounts": counted.discounts}
    else:
        found = {split: {"names": name_scores(lambda text: words_in_file(text, order=row["words"]), split, seed)}
                 for split in SCORED}
    seconds = round(time.perf_counter() - began, 1)
    return {"parameters": 0, "seconds": seconds, "commit": REPOSITORY, **made,
            **{split: {**of_split(split), **found[split]} for split in SCORED}}


def xz_overall(texts: dict[str, str], primed_with: list[str], joined: bool) -> float:
    """Bits per byte by xz: of all files in one row, or of each by itself, as the language model reads them."""
    if joined:
        return xz_bits(list(texts.values()), primed_with)
    sizes = {path: len(text.encode("utf-8")) for path, text in texts.items()}
    return sum(xz_bits([text]) * sizes[path] for path, text in texts.items()) / sum(sizes.values())


def of_split(split: str) -> dict:
    """How much was scored, and a fingerprint of it."""
    texts = code_texts(split)
    return {"files": len(texts), "bytes": sum(len(text.encode("utf-8")) for text in texts.values()),
            "fingerprint": fingerprint(texts)}


def ngram_bits(counted: KneserNey, split: str) -> dict:
    """Bits per byte of a split's modules, with the interval of the whole."""
    texts = code_texts(split)
    nats = {path: -math.fsum(counted.log_probabilities(ids)) for path, ids in code_ids(split).items()}
    scored = bits_by_module(nats, texts)
    return {**scored, "interval": bits_interval(scored, texts)}


def name_scores(complete, split: str, seed: int) -> dict:
    """How often the right name comes first, or among the first five, after one character typed and after two."""
    texts = code_texts(split)
    places = draw_names(texts, seed=seed)
    return {str(typed): summarised(ranks_of(complete, texts, places, typed), places) for typed in TYPED}


def line(runs: list[dict]) -> str:
    """The figures of the first run, on the held-out modules and on this repository."""
    if "overall" in runs[0]["test"]:
        return "  ".join(f"{split} {runs[0][split]['overall']:.3f} bits per byte" for split in SCORED)
    return "  ".join(f"{split}, {typed} typed: {100 * runs[0][split]['names'][str(typed)]['all']['top 1'][0]:.1f} % first"
                     for split in SCORED for typed in TYPED)


SET = ResultSet("code_baselines", ROWS, settings, run, line=line)
