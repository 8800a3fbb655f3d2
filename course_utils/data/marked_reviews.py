"""Reviews in which names are marked, and questions about reviews whose answer is a piece of the text.

Does: `make_named_reviews` draws reviews with the places of the people and films in them; `make_questions` draws reviews and
asks each of them who did what and what somebody liked, with the places of the answer and of the decoys. Both can keep to
names, and to sentences, that no training review has. Does not: cut texts into tokens, or label tokens.

Ten first names are ordinary words, too ('Will', 'Grace', 'May'), and occur both ways equally often; towns are spelled like
last names. A review is asked all of its questions, and each has another answer, so the text alone doesn't give one away.
"""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

from course_utils.data.marked_review_parts import (
    ASPECTS,
    BOTH_WAYS,
    DAYS,
    FILMS,
    FIRST,
    HOLDERS,
    JOBS,
    LAST,
    NAMED,
    QUESTIONS,
    SHOWN_FRAMES,
    SPLITS,
    THINGS,
    TOWNS,
    UNNAMED,
    VERBS,
    WHAT_FRAMES,
    WHO_FRAMES,
    lines,
)

__all__ = ["BOTH_WAYS", "KINDS", "SPLITS", "Name", "NamedReview", "Question", "make_named_reviews", "make_questions"]

KINDS = ("who", "where", "when", "what")


class Name(NamedTuple):
    """A name in a review: characters [start, end) of its text, and what it is, 'person' or 'film'."""

    start: int
    end: int
    kind: str


class NamedReview(NamedTuple):
    """A review and all names in it, in their order; `both_ways`: its word that can also be a name, and where it begins."""

    text: str
    names: list[Name]
    both_ways: tuple[str, int] | None


class Question(NamedTuple):
    """A question about a review; spans are characters [start, end) of `text`."""

    text: str                        # the review
    question: str
    kind: str                        # one of KINDS: the word that it begins with
    answer: tuple[int, int]
    decoys: list[tuple[int, int]]    # the answers to the other questions about this review


def make_named_reviews(number: int, *, names: str = "training", sentences: str = "training",
                       seed: int = 0) -> list[NamedReview]:
    """`number` reviews of two or three sentences, with one name or more in each.

    `names` and `sentences` are 'training' or 'held out': last names, most first names and titles of the one never occur in
    the other, nor do sentences with names in them. The same arguments give the same reviews on every machine. Raises
    ValueError for a number under one, or another word for a split.
    """
    _check(number, names=names, sentences=sentences)
    rng, frames = Random(f"named reviews {names} {sentences} {seed}"), lines(NAMED[sentences])
    return [_named_review(rng, names, frames) for _ in range(number)]


def make_questions(reviews: int, *, names: str = "training", sentences: str = "training", seed: int = 0) -> list[Question]:
    """The six questions to each of `reviews` reviews, one after the other: who (two), where, when, what (two).

    `names` and `sentences` as in `make_named_reviews`; the things that people like count as names. Each question about a
    review has another answer. Raises ValueError for a number under one, or another word for a split.
    """
    _check(reviews, names=names, sentences=sentences)
    rng = Random(f"questions {names} {sentences} {seed}")
    return [question for _ in range(reviews) for question in _questions(rng, names, sentences)]


def _check(number: int, **splits: str) -> None:
    if number < 1:
        raise ValueError(f"got {number} reviews; expected at least one")
    for name, value in splits.items():
        if value not in SPLITS:
            raise ValueError(f"got {name}={value!r:.40}; expected {' or '.join(map(repr, SPLITS))}")


# ------------------------------------------------------------------------------------------ putting a review together
class _Part(NamedTuple):
    text: str
    slot: str                        # the slot that it fills; '' for the words around it


def _filled(frame: str, values: dict[str, str]) -> list[_Part]:
    """A frame's words and, for each slot, its value; the first letter is a capital."""
    parts = [_Part(values[part[1:-1]], part[1:-1]) if part.startswith("{") else _Part(part, "")
             for part in re.split(r"(\{\w+\})", frame) if part]
    return [parts[0]._replace(text=parts[0].text[0].upper() + parts[0].text[1:]), *parts[1:]]


def _joined(sentences: list[list[_Part]]) -> tuple[str, dict[str, list[tuple[int, int]]]]:
    """The text, and the spans of each slot in it."""
    text, spans = "", {}
    for i, sentence in enumerate(sentences):
        text += " " * (i > 0)
        for part in sentence:
            spans.setdefault(part.slot, []).append((len(text), len(text) + len(part.text)))
            text += part.text
    return text, spans


def _scenery(rng: Random) -> dict[str, str]:
    return {"town": rng.choice(TOWNS), "day": rng.choice(DAYS), "thing": rng.choice(THINGS)}


# ------------------------------------------------------------------------------------------ reviews with names
def _person(rng: Random, names: str, first: str | None = None) -> str:
    """A full name or a part of it; `first` is used if it's given."""
    form = rng.choice(["full", "full", "first", "first" if first else "last"])
    first, last = first or rng.choice(FIRST[names]), rng.choice(LAST[names])
    return {"full": f"{first} {last}", "first": first, "last": last}[form]


def _named_review(rng: Random, names: str, frames: list[str]) -> NamedReview:
    word, as_name = rng.choice(sorted(BOTH_WAYS)), rng.random() < 0.5
    used = rng.random() < 0.7                                              # whether the review has that word at all
    chosen = [rng.choice([frame for frame in frames if "{person}" in frame])]
    chosen += rng.sample([frame for frame in frames if frame != chosen[0]], rng.randint(0, 1))
    sentences = []
    for k, frame in enumerate(chosen):
        first = word if used and as_name and k == 0 else None
        for number in range(len(re.findall(r"\{(?:person|film)\}", frame))):
            frame = re.sub(r"\{(person|film)\}", rf"{{\g<1>{number}}}", frame, count=1)         # {person0}, {film1} …
        slots = re.findall(r"\{(?:person|film)\d\}", frame)
        people = [slot[1:-1] for slot in slots if slot.startswith("{person")]
        values = {slot[1:-1]: rng.choice(FILMS[names]) for slot in slots}
        values |= {slot: _person(rng, names, first if slot == people[0] else None) for slot in people}
        sentences.append(_filled(frame, values | _scenery(rng)))
    sentences += [_filled(frame, _scenery(rng)) for frame in rng.sample(lines(UNNAMED), 1)]
    if used and not as_name:
        ordinary = rng.choice(BOTH_WAYS[word])
        sentences[-1] = _filled(ordinary, _scenery(rng))
    rng.shuffle(sentences)
    text, spans = _joined(sentences)
    found = sorted(Name(*span, slot[:-1]) for slot, places in spans.items() if slot[:-1] in ("person", "film")
                   for span in places)
    place = re.search(rf"\b{word}\b", text, re.I) if used else None
    return NamedReview(text, found, (word, place.start()) if place else None)


# ------------------------------------------------------------------------------------------ questions
def _who(rng: Random, names: str, sentences: str) -> tuple[list[list[_Part]], dict[str, str]]:
    """Two sentences that say who did what, and a question for each person."""
    people = [f"{first} {last}" for first, last in zip(rng.sample(FIRST[names], 2), rng.sample(LAST[names], 2))]
    parts, asked = [], {}
    for slot, person, job in zip(("person0", "person1"), people, rng.sample(JOBS, 2)):
        frame = rng.choice(WHO_FRAMES[sentences]).replace("{x}", f"{{{slot}}}")
        parts.append(_filled(frame, {slot: person, "p": job}))
        asked[slot] = QUESTIONS["who"].format(p=job)
    return parts, asked


def _what(rng: Random, names: str, sentences: str) -> tuple[list[list[_Part]], dict[str, str]]:
    """A sentence with two things, and what one or two people did with them, and a question for each thing."""
    frame, (holder, other) = rng.choice(WHAT_FRAMES[sentences]), rng.sample(lines(HOLDERS), 2)
    x = rng.choice(ASPECTS[names])
    y = rng.choice([aspect for aspect in ASPECTS[names] if aspect.split()[-1] != x.split()[-1]])
    a, b = rng.sample(list(VERBS), 2)
    values = {"holder": holder, "Holder": holder.capitalize(), "holder2": other, "x": x, "y": y,
              "a": VERBS[a], "b": VERBS[b]}
    asked = {"x": QUESTIONS["what"].format(a=a, holder=holder),
             "y": QUESTIONS["what"].format(a=b, holder=other if "{holder2}" in frame else holder)}
    return [_filled(frame, values)], asked


def _questions(rng: Random, names: str, sentences: str) -> list[Question]:
    people, who = _who(rng, names, sentences)
    things, what = _what(rng, names, sentences)
    shown = _filled(rng.choice(SHOWN_FRAMES[sentences]), _scenery(rng))
    asked = who | {"town": QUESTIONS["where"], "day": QUESTIONS["when"]} | what
    parts = [*people, shown, *things]
    rng.shuffle(parts)
    text, spans = _joined(parts)
    answers = [(question, question.split()[0].lower(), spans[slot][0]) for slot, question in asked.items()]
    return [Question(text, question, kind, span, [other for _, _, other in answers if other != span])
            for question, kind, span in answers]
