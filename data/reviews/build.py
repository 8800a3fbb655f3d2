"""Builds the course corpus: `python data/reviews/build.py` writes it, `--check` compares it with the files.

A synthetic corpus is full of shortcuts unless you close each of them. So a review is drawn in this order:

1. its skeleton: kind, frame, targets, asides, neutral sentences, decoys and the position of each, without a label;
2. its labels: every skeleton is written out once for each label (for `distant`, once for each label with and without
   a verdict that reverses it), so if you cut the evidence out of a review, it is identical to a sibling of the
   opposite label;
3. its opinions, drawn from lists that match each other in length.

Nothing drawn in step 1 can give the label away, or be memorised with it. Siblings differ in their opinions; twins
(`pair`) go further: their two opinions are swapped, so they have the same words and opposite labels.

The test split also has what training never sees: the frames marked `held_out`, some neutral frames and slot values,
and a quarter of all combinations, chosen by a hash of (frame, opinions).
"""

import hashlib
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

from grammar import Bank, Phrase, load_bank, opinion_names, realise, wording
from skeletons import Skeleton, draw_skeleton

from course_utils.files.built_files import write_or_check

HERE = Path(__file__).resolve().parent
SEED = 20
KINDS = ("plain", "negation", "order", "distant")
SIZES = {"train": 8000, "validation": 1000, "test": 2000}
UNSEEN_SHARE = 0.25        # of the test split: reviews whose frame never occurs in training
CONTRAST_SHARE = 0.3       # of negation: two opinions, one of them negated
TWO_HOLDERS_SHARE = 0.16   # of distant: two people, two opinions, and a verdict on one of them
DECIDING_SLOTS = ("tag", "past", "past2", "recent", "relation", "paper", "note", "after", "seated")   # never held out
MIN_WORDS, MAX_WORDS = 5, 118


# ------------------------------------------------------------------------------------------ what a split may use
def kept_for_test(name: str) -> bool:
    """Whether a neutral frame or slot value occurs in the test split only: a tenth of them, chosen by a hash."""
    return hashlib.sha256(f"neutral {name}".encode()).digest()[0] < 26


def bank_of(split: str, bank: Bank) -> Bank:
    """The bank as a split may use it: without the neutral frames and slot values kept for the test split."""
    if split == "test":
        return bank
    neutral = [frame for frame in bank.neutral if not kept_for_test(frame["id"])]
    slots = {
        name: values if name in DECIDING_SLOTS else [value for value in values if not kept_for_test(value)]
        for name, values in bank.slots.items()
    }
    return replace(bank, neutral=neutral, slots=slots)


# ------------------------------------------------------------------------------------------ labels and opinions
def owner(frame: str, phrases: list[Phrase], bank: Bank) -> str:
    """The split that owns a combination of frame and opinions, whatever the order of the opinions.

    Five eighths of the combinations are for training, one for validation, two for the test split, and since every
    list has eight phrases or more, each split owns some combination of every frame.
    """
    eighth = sum(bank.rank(frame, phrase) for phrase in phrases) % 8
    return "train" if eighth < 5 else "validation" if eighth < 6 else "test"


def polarity(role: str, label: int, turned: int) -> int:
    """The polarity an opinion must have: 'label' as it is, 'flip' turned, 'holder' turned by the verdict."""
    return {"label": label, "flip": 1 - label, "holder": label ^ turned, "other": 1 - (label ^ turned)}[role]


def choose_phrases(skeleton: Skeleton, label: int, turned: int, split: str, bank: Bank, rng: Random):
    """A phrase for each slot, or None when no combination that this split owns turns up in forty draws.

    Of the first few such combinations the one is taken whose phrases were used least: so all are used evenly.
    """
    owned = []
    for _ in range(40):
        chosen: dict[str, Phrase] = {}
        for slot in skeleton.slots:
            options = bank.candidates(slot, polarity(skeleton.roles[slot.name], label, turned))
            used = skeleton.taken | {phrase.text for phrase in chosen.values()}
            chosen[slot.name] = rng.choice([phrase for phrase in options if phrase.text not in used])
        if skeleton.unseen or owner(skeleton.frame, list(chosen.values()), bank) == split:
            owned.append(chosen)
        if len(owned) == 3:
            break
    if not owned:
        return None
    return min(owned, key=lambda chosen: sum(skeleton.usage[phrase.text] for phrase in chosen.values()))


def write(skeleton: Skeleton, chosen: dict[str, Phrase], label: int, turned: int) -> dict:
    """The review: its text, with the evidence of all its sentences."""
    values = {slot.name: wording(chosen[slot.name], slot) for slot in skeleton.slots}
    if skeleton.verdict:
        values["verdict"] = skeleton.verdict[turned]
    text, evidence = "", []
    for template in skeleton.sentences:
        sentence, spans = realise(template, values, {})
        start = len(text) + bool(text)
        text += (" " if text else "") + sentence
        evidence += [[start + a, start + b] for a, b in spans]
    return {"text": text, "label": label, "kind": skeleton.kind, "evidence": evidence, "pair": None,
            "frame": skeleton.frame, "unseen_frame": skeleton.unseen}


def exchanged(chosen: dict[str, Phrase], skeleton: Skeleton) -> dict[str, Phrase]:
    """The phrases of the twin: those of the two opinions are swapped."""
    names = [slot.name for slot in skeleton.slots]
    half = len(names) // 2
    partner = dict(zip(names, names[half:] + names[:half], strict=True))
    return {name: chosen[partner[name]] for name in names}


# ------------------------------------------------------------------------------------------ a split
def deck(items: list, count: int, rng: Random) -> list:
    """`count` items, all used equally often, in random order."""
    cards = []
    while len(cards) < count:
        cards += rng.sample(items, len(items))
    return cards[:count]


def available(frames: list[dict], unseen: bool) -> list[dict]:
    """The frames of the training split, or those held out for the test split."""
    return [frame for frame in frames if frame.get("held_out", False) == unseen]


def frame_deck(kind: str, paired: bool, count: int, unseen: bool, bank: Bank, rng: Random) -> list:
    """The frames of `count` skeletons, balanced over directions (flip or not, later or earlier)."""
    frames = bank.frames
    if kind == "distant":
        opinions = [frame for frame in available(frames["opinion"], False) if not paired or "person" in frame["holder"]]
        verdicts = available(frames["verdict"], False)
        if unseen:
            opinions, verdicts = available(frames["opinion"], True), available(frames["verdict"], True)
        if paired:
            # two adjectives, or 'bored him', can't be swapped with another person's word for word
            opinions = [frame for frame in opinions if frame["id"] != "op-two" and "{vp}" not in frame["text"]]
        pairs = [(a, b, paired) for a in opinions for b in verdicts
                 if set(a["holder"]) & set(b.get("holder", ["person", "text", "note"]))]
        return deck(pairs, count, rng)
    if kind == "plain":
        several = [frame for frame in frames["plain"] if len(opinion_names(frame["text"])) > 1]
        return deck(available(frames["plain"] + several, unseen), count, rng)
    if kind == "negation" and not paired:
        sides = [[f for f in available(frames["negation"], unseen) if f["flip"] == flip] for flip in (True, False)]
    else:
        source = frames["order" if kind == "order" else "contrast"]
        sides = [[f for f in available(source, unseen) if f["decides"] == side] for side in (1, 2)]
    return deck(sides[0], count // 2, rng) + deck(sides[1], count - count // 2, rng)


def counts(kind: str, size: int) -> tuple[int, int]:
    """How many single reviews and how many pairs a kind has among `size` reviews."""
    share = {"plain": 0.0, "negation": CONTRAST_SHARE, "order": 1.0, "distant": TWO_HOLDERS_SHARE}[kind]
    pairs = round(size * share / 2)
    return size - 2 * pairs, pairs


def cells_of(kind: str, paired: bool) -> list[tuple[int, int]]:
    """The (label, turned) of the siblings of one skeleton; for a pair, those of the first twin."""
    if kind != "distant":
        return [(0, 0)] if paired else [(0, 0), (1, 0)]
    return [(0, 0), (0, 1)] if paired else [(0, 0), (1, 1), (1, 0), (0, 1)]


def build_group(kind: str, paired: bool, count: int, split: str, unseen: bool, bank: Bank, rng: Random,
                seen_texts: set, usage: Counter) -> list[list[dict]]:
    """`count` single reviews, or pairs, of one kind in one split: each skeleton with all its siblings."""
    cells = cells_of(kind, paired)
    frames = frame_deck(kind, paired, -(-count // len(cells)), unseen, bank, rng)
    made = []
    for frame in frames:
        made += build_siblings(kind, frame, cells[:count - len(made)], split, unseen, bank, rng, seen_texts, usage)
    return made


def build_siblings(kind, frame, cells, split, unseen, bank, rng, seen_texts, usage) -> list[list[dict]]:
    """One skeleton written out for each cell, as a review or a pair.

    Draws again when a text is too long, was seen before, or finds no opinions that its split owns.
    """
    while True:
        skeleton = draw_skeleton(kind, frame, unseen, bank, rng, usage)
        chosen = [choose_phrases(skeleton, label, turned, split, bank, rng) for label, turned in cells]
        if None in chosen:
            continue
        made = []
        for phrases, (label, turned) in zip(chosen, cells, strict=True):
            made.append([write(skeleton, phrases, label, turned)])
            if skeleton.paired:
                made[-1].append(write(skeleton, exchanged(phrases, skeleton), 1 - label, turned))
        texts = [review["text"] for reviews in made for review in reviews]
        fits = all(MIN_WORDS <= len(text.split()) <= MAX_WORDS for text in texts)
        if fits and len(set(texts)) == len(texts) and not seen_texts & set(texts):
            seen_texts.update(texts)
            usage.update(phrase.text for phrases in chosen for phrase in phrases.values())
            return made


def build_split(split: str, bank: Bank, rng: Random, seen_texts: set) -> list[dict]:
    """The reviews of one split in random order, with ids and the ids of partners."""
    groups, usage = [], Counter()
    for kind in KINDS:
        size = SIZES[split] // len(KINDS)
        unseen = round(size * UNSEEN_SHARE / 4) * 4 if split == "test" else 0
        for part, is_unseen in ((size - unseen, False), (unseen, True)):
            singles, pairs = counts(kind, part)
            for paired, count in ((False, singles), (True, pairs)):
                if count:
                    groups += build_group(kind, paired, count, split, is_unseen, bank, rng, seen_texts, usage)
    flat = [(group, position) for group in range(len(groups)) for position in range(len(groups[group]))]
    rng.shuffle(flat)
    ids = {place: f"{split}-{number:05d}" for number, place in enumerate(flat)}
    reviews = []
    for group, position in flat:
        review = groups[group][position]
        partner = ids.get((group, 1 - position)) if len(groups[group]) == 2 else None
        reviews.append({"id": ids[group, position]} | review | {"pair": partner})
    return reviews


# ------------------------------------------------------------------------------------------ files
def build() -> dict[str, list[dict]]:
    """All three splits."""
    bank, seen_texts = load_bank(), set()
    return {split: build_split(split, bank_of(split, bank), Random(f"{SEED} {split}"), seen_texts) for split in SIZES}


def mark(review: dict) -> str:
    """The review with its evidence in bold, for SAMPLES.md."""
    text = review["text"]
    for start, end in reversed(review["evidence"]):
        text = text[:start] + "**" + text[start:end] + "**" + text[end:]
    return text


def samples(splits: dict[str, list[dict]], each: int = 40) -> str:
    """Forty random reviews of each kind, as Markdown."""
    rng = Random(f"{SEED} samples")
    everything = [review for split in SIZES for review in splits[split]]
    head = "Random reviews from the course corpus, with their evidence in bold. Written by `build.py`."
    lines = ["# Samples", "", head, ""]
    for kind in KINDS:
        lines += [f"## {kind}", ""]
        for review in rng.sample([review for review in everything if review["kind"] == kind], each):
            label = "positive" if review["label"] else "negative"
            pair = f", twin {review['pair']}" if review["pair"] else ""
            lines += [f"- **{label}** ({review['id']}, {review['frame']}{pair}): {mark(review)}"]
        lines.append("")
    return "\n".join(lines)


def files(splits: dict[str, list[dict]]) -> dict[str, str]:
    """File names and contents."""
    contents = {
        f"{split}.jsonl": "".join(json.dumps(review, ensure_ascii=False) + "\n" for review in reviews)
        for split, reviews in splits.items()
    }
    return contents | {"SAMPLES.md": samples(splits)}


if __name__ == "__main__":
    sys.exit(write_or_check(lambda: files(build()), HERE, __doc__.splitlines()[0]))
