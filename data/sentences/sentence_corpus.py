"""The corpus of short sentences, data/sentences: `python data/sentences/build.py` writes it, `--check` compares it.

Does: divide constructions, opinions and their combinations into splits, draw sentences by `sentence_grammar` until each
kind is full, and write train, validation and test and a page of samples. Does not: know any construction.

Three things keep cheap clues out. Most sentences have an opinion of either sign in a construction that keeps or turns
it, so that neither of the two decides. About half of the sentences are halves of a pair. And of a few draws the one is
taken that leaves the words of each kind most evenly divided over the labels.

What the test split has and training doesn't: constructions marked with a star, some of the constructions whose label
hangs on no opinion (a model could learn these by heart, so each is in one split only), a tenth of the opinions, and two
eighths of the combinations of a construction and its opinions. No sentence shares five words in a row with the files
that are for testing only.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from itertools import islice
from random import Random

import numpy as np
from sentence_grammar import KINDS, Bank, Construction, Sentence, draw, is_free, load_bank

from course_utils.files.paths import DATA

__all__ = ["FOLDER", "KEPT_APART", "RUN", "SIZES", "build", "changes", "files", "is_known", "runs", "words"]

FOLDER = DATA / "sentences"
SEED = 15
SIZES = {                                                          # sentences of each kind, in the order of KINDS
    "train": (1200, 2640, 2280, 1680, 840, 1800, 1560),
    "validation": (100, 220, 190, 140, 70, 150, 130),
    "test": (150, 330, 286, 210, 104, 224, 196),
}
KEPT_APART = ("ordinary", "ordinary_second", "handwritten")        # files that are for testing only
DOUBLED = re.compile(r"\b(\w+) \1\b")                                # 'I usually love love stories'
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
RUN = 5                                                            # so many words in a row are shared with none of them
MIN_WORDS, MAX_WORDS = 4, 35
PAIRED = 0.6               # of all sentences: halves of a pair
NEW_CONSTRUCTIONS = 0.4    # of the test split: sentences by constructions that training doesn't have
NEW_OPINIONS = 0.3         # of the other sentences in the test split: draws that look for an opinion kept for it
FIXED = 0.35               # how often a construction without a free opinion is used; 1 for the others
DRAWS = 3                  # so many are compared before one is taken


# ------------------------------------------------------------------------------------------ texts that are kept apart
def words(text: str) -> list[str]:
    """The words of a text in small letters."""
    return re.findall(r"\w+(?:'\w+)*", text.lower())


def runs(text: str, length: int = RUN) -> set[tuple[str, ...]]:
    """Every `length` words in a row."""
    found = words(text)
    return {tuple(found[start:start + length]) for start in range(len(found) - length + 1)}


def changes(first: list[str], second: list[str]) -> int:
    """The least number of words to replace, insert or delete that makes one list the other."""
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(second, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return row[-1]


@cache
def _kept_apart() -> tuple[frozenset, list[list[str]], dict[str, np.ndarray]]:
    """Of the files for testing: their runs, their sentences, and the numbers of the sentences with a word."""
    known, sentences, places = set(), [], {}
    for path in (DATA / f"{name}.jsonl" for name in KEPT_APART):
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            text = json.loads(line)["text"]
            known |= runs(text)
            sentences += [words(one) for one in dict.fromkeys((text, *SENTENCE_END.split(text)))]
    for number, found in enumerate(sentences):
        for word in set(found):
            places.setdefault(word, []).append(number)
    return frozenset(known), sentences, {word: np.array(numbers) for word, numbers in places.items()}


def is_known(text: str) -> bool:
    """Whether a text shares five words in a row with a file for testing, or is one of its sentences but for a third."""
    known, sentences, places = _kept_apart()
    if runs(text) & known:
        return True
    for part in dict.fromkeys((text, *SENTENCE_END.split(text))):
        found = words(part)
        there = [places[word] for word in set(found) if word in places]
        shared = np.bincount(np.concatenate(there), minlength=len(sentences)) if there else np.zeros(0)
        for number in np.flatnonzero(shared >= len(set(found)) - len(found) // 2):
            limit = max(len(found), len(sentences[number])) // 3
            if abs(len(found) - len(sentences[number])) <= limit and changes(found, sentences[number]) <= limit:
                return True
    return False


# ------------------------------------------------------------------------------------------ what belongs to a split
def _eighth(key: str) -> int:
    return sha256(key.encode()).digest()[0] % 8


def owner(ways: list[Construction]) -> str:
    """The split that has a construction to itself: by its star, or since no opinion in it is free; '' if all have it."""
    if any(way.held_out for way in ways):
        return "test"
    if ways[0].kind == "plain" or all(is_free(way) for way in ways):
        return ""
    eighth = _eighth(f"construction {ways[0].name}")
    return "train" if eighth < 5 else "validation" if eighth < 6 else "test"


def owns(split: str, way: Construction, group: list[Sentence]) -> bool:
    """Whether a construction with these opinions belongs to a split: 5/8 to train, 1/8 and 2/8 to the others."""
    opinions = sorted({opinion.text for sentence in group for opinion in sentence.opinions})
    eighth = _eighth(f"{way.name} {opinions}")
    return split == ("train" if eighth < 5 else "validation" if eighth < 6 else "test")


def by_name(bank: Bank) -> dict[str, list[Construction]]:
    """The constructions, each with its variants."""
    found: dict[str, list[Construction]] = {}
    for way in bank.constructions:
        found.setdefault(way.name, []).append(way)
    return found


# ------------------------------------------------------------------------------------------ drawing
class _Balance:
    """How the words of one kind in one split are divided over the labels, the first and the last word apart."""

    def __init__(self):
        self.counts: Counter = Counter()

    @staticmethod
    def change(group: list[Sentence]) -> Counter:
        found: Counter = Counter()
        for sentence in group:
            all_words, step = words(sentence.text), 1 if sentence.label else -1
            for clue in {*all_words, ("first", all_words[0]), ("last", all_words[-1])}:
                found[clue] += step
            found["length"] += step * len(all_words)
        return found

    def cost(self, group: list[Sentence]) -> int:
        return sum(abs(self.counts[clue] + step) - abs(self.counts[clue]) for clue, step in self.change(group).items())

    def add(self, group: list[Sentence]) -> None:
        self.counts.update(self.change(group))


def _turns(names: dict[str, list[Construction]], rng: Random) -> Iterator[str]:
    """Names of constructions without end, in rounds in random order; those without a free opinion come less often."""
    while True:
        order = [name for name, ways in names.items() if ways[0].kind == "plain" or is_free(ways[0]) or rng.random() < FIXED]
        rng.shuffle(order)
        yield from order


def _fits(group: list[Sentence], seen: set[str]) -> bool:
    texts = [sentence.text for sentence in group]
    return (len(set(texts)) == len(texts) and not seen & set(texts)
            and all(MIN_WORDS <= len(text.split()) <= MAX_WORDS and not DOUBLED.search(text) for text in texts))


def _draws(split: str, ways: list[Construction], apart: bool, bank: Bank, rng: Random, seen: set[str]) -> list[tuple]:
    """Up to DRAWS pairs (construction, group) that the split may use."""
    found = []
    look = split == "test" and rng.random() < NEW_OPINIONS
    for _ in range(10 * DRAWS):
        way = rng.choice(ways)
        group = draw(way, bank, rng, allowed=(lambda o: True) if split == "test" else (lambda o: not o.held_out))
        if look and not apart and not any(o.held_out for sentence in group for o in sentence.opinions):
            continue
        if (apart or owns(split, way, group)) and _fits(group, seen):
            found.append((way, group))
        if len(found) == DRAWS:
            break
    return found


def build_kind(split: str, kind: str, size: int, bank: Bank, rng: Random, seen: set[str]) -> list[list[tuple]]:
    """`size` sentences of one kind as groups: pairs, and single sentences, each with its construction."""
    every = {name: ways for name, ways in by_name(bank).items() if ways[0].kind == kind}
    mine = {name: ways for name, ways in every.items() if owner(ways) in ("", split)}
    new = {name: ways for name, ways in mine.items() if owner(ways)} if split == "test" else {}
    parts = [(mine if split != "test" else {name: ways for name, ways in mine.items() if name not in new}, size)]
    if new:
        number = round(size * NEW_CONSTRUCTIONS / 2) * 2
        parts = [(parts[0][0], size - number), (new, number)]
    balance, groups = _Balance(), []
    for names, number in parts:
        labels: Counter = Counter()                               # of the single sentences: label by construction
        made, turns, total = 0, _turns(names, rng), Counter()
        for name in islice(turns, 40 * number):
            if made == number:
                break
            options = _draws(split, names[name], bool(owner(names[name])), bank, rng, seen)
            if not options:
                continue
            paired = rng.random() < PAIRED / (2 - PAIRED) and number - made - 2 >= abs(total[0] - total[1])
            if not paired:
                label = int(total[0] > total[1])
                if labels[name, 0] != labels[name, 1] and number - made > abs(total[0] - total[1]):
                    label = int(labels[name, 0] > labels[name, 1])
                options = [(way, [one for one in group if one.label == label]) for way, group in options]
                options = [(way, group) for way, group in options if group]
            options.sort(key=lambda option: balance.cost(option[1]))
            options = [option for option in options[:2] if not any(is_known(one.text) for one in option[1])]
            if not options:
                continue
            way, group = options[0]
            if len(group) == 1:
                labels[name, group[0].label] += 1
            for sentence in group:
                total[sentence.label] += 1
                seen.add(sentence.text)
            balance.add(group)
            made += len(group)
            groups.append([(way, sentence) for sentence in group])
        if made < number:
            raise RuntimeError(f"{split} got only {made} sentences of the kind {kind}; expected {number}; add constructions")
    return groups


def build_split(split: str, bank: Bank, seen: set[str]) -> list[dict]:
    """The sentences of one split in random order, with ids and the ids of partners."""
    rng = Random(f"{SEED} {split}")
    names = by_name(bank)
    groups = [group for kind, size in zip(KINDS, SIZES[split], strict=True)
              for group in build_kind(split, kind, size, bank, rng, seen)]
    places = [(number, half) for number, group in enumerate(groups) for half in range(len(group))]
    rng.shuffle(places)
    ids = {place: f"{split}-{number:05d}" for number, place in enumerate(places)}
    rows = []
    for number, half in places:
        way, sentence = groups[number][half]
        unseen = []
        if split != "train" and owner(names[way.name]):
            unseen.append("construction")
        if any(opinion.held_out for opinion in sentence.opinions):
            unseen.append("opinion")
        partner = ids[number, 1 - half] if len(groups[number]) == 2 else None
        rows.append({"id": ids[number, half], "text": sentence.text, "label": sentence.label, "kind": way.kind,
                     "evidence": sentence.evidence, "pair": partner, "construction": way.name,
                     "unseen": " and ".join(unseen)})
    return rows


# ------------------------------------------------------------------------------------------ files
def build() -> dict[str, list[dict]]:
    """All three splits."""
    bank, seen = load_bank(), set()
    return {split: build_split(split, bank, seen) for split in ("test", "validation", "train")}


def mark(row: dict) -> str:
    """The sentence with its evidence in bold."""
    text = row["text"]
    for start, end in reversed(row["evidence"]):
        text = f"{text[:start]}**{text[start:end]}**{text[end:]}"
    return text


def samples(splits: dict[str, list[dict]], each: int = 40) -> str:
    """Forty random sentences of each kind, as Markdown."""
    rng = Random(f"{SEED} samples")
    everything = [row for split in SIZES for row in splits[split]]
    head = "Random sentences from `data/sentences`, with their evidence in bold. Written by `build.py`."
    lines = ["# Samples", "", head, ""]
    for kind in KINDS:
        lines += [f"## {kind}", ""]
        for row in rng.sample([row for row in everything if row["kind"] == kind], each):
            label, pair = ("negative", "positive")[row["label"]], f", twin {row['pair']}" if row["pair"] else ""
            lines.append(f"- **{label}** ({row['id']}, {row['construction']}{pair}): {mark(row)}")
        lines.append("")
    return "\n".join(lines)


def files(splits: dict[str, list[dict]]) -> dict[str, str]:
    """File names and contents."""
    lines = {split: [json.dumps(row, ensure_ascii=False) + "\n" for row in splits[split]] for split in SIZES}
    return {f"{split}.jsonl": "".join(lines[split]) for split in SIZES} | {"SAMPLES.md": samples(splits)}
