"""Builds data/translation: `python data/translation/build.py` writes it, `--check` compares it with the files.

Does: draw the pairs of every kind, keep some combinations of words for the test split, write the files and SAMPLES.md. Does
not: any grammar.

A combination is two words that say something of each other, such as an adjective and its noun or a verb and its object. A
hash keeps every eighth for the test split. Half of the test pairs have one of those (`unseen`), no training pair has one. No
word occurs in the validation or test split alone, no English sentence twice, and twins stay in one split.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator
from random import Random

from course_utils.data.translations import join_english, join_french, pack_alignment, unpack_alignment
from french.counting import draw_numbers
from french.kinds import draw_adjective, draw_agreement
from french.lengthy import draw_long
from french.negation import draw_negation
from french.objects import draw_object
from french.pronouns import PronounItem, draw_pronouns
from french.questions import draw_question
from french.relatives import draw_relative
from french.words import Phrase, Unfit, finish

__all__ = ["DRAW", "SIZES", "build", "files", "show_alignment"]

SEED = 17
SIZES = {"train": 14000, "validation": 1000, "test": 2000}
DRAW = {
    "agreement": draw_agreement,
    "adjective": draw_adjective,
    "negation": draw_negation,
    "numbers": draw_numbers,
    "relative": draw_relative,
    "object": draw_object,
    "question": draw_question,
    "long": draw_long,
}
SHARES = {
    "agreement": 0.11,
    "adjective": 0.12,
    "negation": 0.12,
    "numbers": 0.11,
    "relative": 0.12,
    "object": 0.08,
    "question": 0.07,
    "long": 0.12,
    "pronoun": 0.15,
}
MIN_WORDS, MAX_WORDS, LONG = 3, 40, 21
COUNTS = (0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4)  # nouns before and after an antecedent
MARKS = set(".,?!'")


def kept_for_test(combination: tuple[str, str]) -> bool:
    """Whether a combination of words occurs in the test split only."""
    return hashlib.sha256(" ".join(combination).encode()).digest()[0] < 32


def _is_unseen(phrase: Phrase) -> bool:
    return any(map(kept_for_test, sorted(phrase.combinations)))


def _fits(kind: str, english: list[str]) -> bool:
    words = sum(token not in MARKS for token in english)
    return (LONG if kind == "long" else MIN_WORDS) <= words <= MAX_WORDS


def _row(phrase: Phrase, kind: str) -> dict:
    english, french, links = finish(phrase)
    return {
        "source": join_english(english),
        "target": join_french(french),
        "alignment": pack_alignment(links),
        "kind": kind,
        "tokens": (english, french),
    } | ({"unseen": True} if _is_unseen(phrase) else {})


def _pronoun_row(item: PronounItem) -> dict:
    row = _row(item.phrase, "pronoun")
    places = {}
    for name, keys in (("antecedent", item.antecedent), ("pronoun", item.pronoun)):
        for suffix, words in (("", item.phrase.english), ("_target", item.phrase.french)):
            places[name + suffix] = next(i for i, word in enumerate(words) if word.keys & keys)
    return (
        row
        | places
        | {"sentences": item.sentences, "distance": places["pronoun"] - places["antecedent"], "gender": item.gender}
    )


def _draws(kind: str, rng: Random) -> Generator[list[dict], bool, None]:
    """Rows that belong together: one, or two twins."""
    while True:
        try:
            yield [_row(DRAW[kind](rng), kind)]
        except Unfit:
            continue


def _twins(rng: Random) -> Generator[list[dict], bool, None]:
    """Twins, half of them in the plural, with the numbers of nouns before and after the antecedent taken in turn.

    The same numbers are drawn until the caller sends True, so that no number is refused more often than another.
    """
    plural = False
    while True:
        for before, after in zip(rng.sample(COUNTS, len(COUNTS)), rng.sample(COUNTS, len(COUNTS))):
            taken, plural = False, not plural
            while not taken:
                try:
                    taken = yield [_pronoun_row(twin) for twin in draw_pronouns(rng, before, after, plural)]
                except Unfit:
                    continue


def _group(
    kind: str, count: int, split: str, unseen: bool, rng: Random, seen: set[str], known: set[str] | None
) -> list[list[dict]]:
    """`count` rows of a kind, in groups. `known`: the words they may have, or None for all."""
    made, size = [], 0
    source = _twins(rng) if kind == "pronoun" else _draws(kind, rng)
    rows = next(source)
    while True:
        taken = (
            all(row["source"] not in seen and _fits(kind, row["tokens"][0]) for row in rows)
            and all(("unseen" in row) == unseen for row in rows)
            and (known is None or all(known.issuperset(_words(row)) for row in rows))
        )
        if taken:
            seen.update(row["source"] for row in rows)
            made.append(rows)
            size += len(rows)
            if size >= count:
                return made
        rows = source.send(taken)


def _words(row: dict) -> Iterator[str]:
    """All tokens of a row, English and French ones apart."""
    for language, tokens in zip(("en", "fr"), row["tokens"], strict=True):
        for token in tokens:
            yield f"{language} {token.lower()}"


def _split(split: str, rng: Random, seen: set[str], known: set[str] | None) -> list[dict]:
    groups = []
    for kind, share in SHARES.items():
        count = round(SIZES[split] * share)
        unseen = count // 2 - count // 2 % 2 if split == "test" else 0
        for part, is_unseen in ((count - unseen, False), (unseen, True)):
            if part:
                groups += _group(kind, part, split, is_unseen, rng, seen, known)
    flat = [(group, place) for group in range(len(groups)) for place in range(len(groups[group]))]
    rng.shuffle(flat)
    ids = {where: f"{split}-{number:05d}" for number, where in enumerate(flat)}
    rows = []
    for group, place in flat:
        partner = {"pair": ids[group, 1 - place]} if len(groups[group]) == 2 else {}
        rows.append({"id": ids[group, place]} | groups[group][place] | partner)
    return rows


def build() -> dict[str, list[dict]]:
    """All three splits; a row's `tokens` are not written."""
    seen: set[str] = set()
    splits = {"train": _split("train", Random(f"{SEED} train"), seen, None)}
    known = {word for row in splits["train"] for word in _words(row)}
    for split in ("validation", "test"):
        splits[split] = _split(split, Random(f"{SEED} {split}"), seen, known)
    return splits


def show_alignment(english: list[str], french: list[str], links: list[list[int]]) -> str:
    """'The→La actress→actrice didn't→…': every English word with the French ones that it is linked to."""
    shown = []
    for i, word in enumerate(english):
        partners = [french[j] for source, j in links if source == i]
        shown.append(f"{word}→{' '.join(partners) or '∅'}")
    return " · ".join(shown)


def samples(splits: dict[str, list[dict]], each: int = 40) -> str:
    """Forty random pairs of each kind, as Markdown."""
    rng = Random(f"{SEED} samples")
    everything = [row for rows in splits.values() for row in rows]
    lines = [
        "# Samples",
        "",
        "Random pairs of the translation corpus. Under each, every English word with the French words that "
        "it is linked to (∅: none). Written by `build.py`.",
        "",
    ]
    for kind in SHARES:
        lines += [f"## {kind}", ""]
        for row in rng.sample([row for row in everything if row["kind"] == kind], each):
            about = f", twin {row['pair']}" if "pair" in row else ""
            about += ", unseen" if row.get("unseen") else ""
            lines += [
                f"- {row['source']} **{row['target']}** ({row['id']}{about})  ",
                f"  {show_alignment(*row['tokens'], unpack_alignment(row['alignment']))}",
            ]
        lines.append("")
    return "\n".join(lines)


def files(splits: dict[str, list[dict]]) -> dict[str, str]:
    """File names and contents."""
    contents = {
        f"{split}.jsonl": "".join(
            json.dumps({k: v for k, v in row.items() if k != "tokens"}, ensure_ascii=False) + "\n" for row in rows
        )
        for split, rows in splits.items()
    }
    return contents | {"SAMPLES.md": samples(splits)}
