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

__all__ = ["BOTH_WAYS", "KINDS", "SPLITS", "Name", "NamedReview", "Question", "make_named_reviews", "make_questions"]

SPLITS = ("training", "held out")

_FIRST = """Abena Adele Agnes Ahmed Aino Akira Alba Alma Amara Amir Anders Anouk Anton Arlo Asha Astrid Aya Beatriz
Benno Bianca Boris Bruno Camila Carlos Cecil Chiara Clara Cyrus Dalia Dario Devika Diego Dilan Dora Edgar Elif Elio Elsa
Emeka Emil Enzo Esther Fabian Farid Fatima Felipe Fiona Frida Gita Greta Gustav Hamid Hana Hassan Helga Henrik Hiroshi
Hugo Ida Ilse Imran Ingrid Irina Ismael Ivan Jamal Jelena Joana Jonas Jorge Judit Kamal Karin Kenji Kofi Lars Laszlo
Leila Leon Linnea Lorenzo Luis Magda Malik Manuel Marit Mateo Mehmet Mila Mirela Moses Nadia Naoko Nadim Nils Nina Noor
Odette Oksana Oscar Otto Pablo Paula Petra Pilar Priya Rafael Ragna Rania Ravi Renata Rosa Ruben Sakura Salma Samir
Selma Sergei Simone Sofia Soren Stefan Sven Tamar Tariq Tereza Theo Tilda Tomas Ursula Vera Viktor Wanda Xenia Yara
Yusuf Zainab Zoltan""".split()
_BEGIN = "Bek Cald Dor Fen Gar Hal Kal Lor Mar Nor Ost Pell Quil Rad Sel Tar Ulm Ver Wes Zel".split()
_END = "ander berg dale enko gate hart holm ila mere ova row stead ton vale wick".split()
_ADJECTIVES = """Amber Broken Burning Crooked Distant Empty Frozen Gentle Golden Hidden Hollow Last Little Lonely Lost
Midnight Narrow Northern Painted Paper Quiet Red Restless Salt Second Silent Silver Sleeping Stolen Velvet Western
Winter""".split()
_NOUNS = """Bridge Candle Canal Carnival Castle Clock Coast Compass Desert Garden Harbour Hour Island Kingdom Ladder Lantern
Letter Lighthouse Mirror Mountain Orchard Parade Piano Promise Railway River Road Shadow Station Storm Summer Theatre Tower
Train Valley Voyage Window Witness""".split()
# First names that are words, too, and sentences in which they're words. {town} and {day} are drawn as elsewhere.
BOTH_WAYS = {
    "Will": ["Will anybody watch it twice?", "It will run until {day}.", "Nobody will forget the second half.",
             "Will there be a sequel?", "This will not please everyone."],
    "Grace": ["Grace is what the dancing lacked.", "The dancers moved with grace.", "There was grace in every scene.",
              "Grace and speed rarely go together.", "It had more grace than wit."],
    "May": ["May I add that I laughed?", "You may want to bring a coat.", "It opens in May.",
                 "It may be too long for {day}.",
            "May is a strange month to show it."],
    "Rose": ["Rose is the colour of every curtain in it.", "A rose lies on the table.", "The curtain rose at eight.",
             "Rose petals fell from the ceiling.", "The noise rose behind us."],
    "Hope": ["I hope it comes back on {day}.", "Hope was all that kept us in our seats.", "We left without hope.",
             "Hope they clean the seats by {day}.", "There is little hope in this story."],
    "Mark": ["Mark the date and book early.", "It left no mark on me.", "The jokes missed the mark.",
             "Mark my words and stay at home.", "A mark on the wall gives the plot away."],
    "Frank": ["Frank talk fills the second half.", "To be frank, I slept.", "It is a frank story.",
              "Frank and funny, it ended too soon.", "The talk afterwards was frank."],
    "Dawn": ["Dawn breaks over {town} at the end.", "It was filmed at dawn.", "We came home at dawn.",
             "Dawn was near when we left.", "A dawn scene opens it."],
    "Joy": ["Joy is rare in this story.", "The music was a joy.", "We sang for joy.", "Joy and sorrow take turns.",
            "I felt joy and little else."],
    "Bill": ["Bill and tickets came to thirty coins.", "We paid the bill and left.", "A short film was on the bill.",
             "Bill in hand, I asked for water.", "The bill for popcorn was high."],
}

# Sentences for reviews with names: {person}, {film} are names to be found; {town}, {day}, {thing} are not.
NAMED = {
    "training": """
        {person} plays the lead with care.|The lead is played by {person}.|I would watch anything by {person}.
        {person} wrote it in a week.|The script by {person} is full of holes.|The songs were written by {person}.
        {film} was filmed in {town}.|I saw {film} on {day}.|We watched {film} with friends.|{film} runs for two hours.
        In {film} we follow a family near {town}.|After {film} we walked to {town}.|{person} directed {film} years ago.
        Next to {person} the others look tired.|{person} and {person} play two sisters.|{film} is better than {film}.
        My sister adores {person} and slept anyway.|The best scene belongs to {person}.|{person} is funny at last.
        For once {person} sings.|I laughed when {person} fell into the water.|Nobody else acts like {person}.
        {film} made {person} famous.|The camera loves {person}.|I prefer {film} to the book.|Have you seen {film}?
        With {film} the cinema in {town} opened again.|Someone behind me compared it to {film}.|{person} has a small part.
        It ends like {film} but we stayed.|On {day} they showed {film} again.|{person} was in the audience.
        """,
    "held out": """
        {person} carries the whole story.|A voice like that of {person} is rare.|My father met {person} in {town}.
        Tickets for {film} were sold out on {day}.|Whoever liked {film} should stay away.|{person} turned {film} into a play.
        I had expected more from {person}.|People still talk about {film}.|Critics in {town} praised {film} and {person}.
        Without {person} nothing would hold together.|{film} put me to sleep.|Thanks to {person} we laughed.
        """,
}
UNNAMED = """The cinema in {town} was half empty.|On {day} it rained.|We took the train to {town}.|It is set in {town}.
    The story begins near {thing}.|They meet beside {thing}.|I remember {thing} best.
    Behind {thing} someone sings.|{day} was the wrong day for it.|{town} is three hours away.
    We sat in the last row.|The seats were hard.|Somebody walks to {thing} at night.|{thing} looks painted.
    The road from {town} was long.|There is a scene with {thing}.|My sister plays the piano better.
    The lead is played without care.|I saw {thing} through a window.|We watched {thing} for minutes."""

# Sentences for questions: {x} is somebody, and {p} is what they did.
JOBS = "directed edited produced filmed designed financed".split()
WHO_FRAMES = {
    "training": ["{x} {p} it.", "It was {p} by {x}."],
    "held out": ["It was {x} who {p} it.", "They say that {x} {p} it.", "The name of the one who {p} it is {x}."],
}
SHOWN_FRAMES = {
    "training": ["We saw it in {town} on {day}.", "On {day} we saw it in {town}.", "It was shown in {town} on {day}."],
    "held out": ["On {day} they showed it in {town}.", "In {town} I watched it on {day}."],
}
HOLDERS = """my brother|my uncle|my teacher|the usher|the critic|the barber|our neighbour|our driver|our guest|the pianist|
    my father|our butcher"""
VERBS = {"like": "liked", "hate": "hated", "praise": "praised", "mock": "mocked", "notice": "noticed", "miss": "missed"}
WHAT_FRAMES = {                                        # {Holder} and {holder2} are people, {a} and {b} verbs
    "training": ["{Holder} {a} {x} and {b} {y}.", "{Holder} {a} {x} but {b} {y}.",
                 "{Holder} {a} {x} and {holder2} {b} {y}."],
    "held out": ["{Holder} {a} {x} before he {b} {y}.", "While {holder} {a} {x}, {holder2} {b} {y}."],
}
QUESTIONS = {"who": "Who {p} it?", "where": "Where was it shown?", "when": "When was it shown?",
             "what": "What did {holder} {a}?"}
_QUALITIES = "long short slow quick loud quiet first last second sad happy strange".split()
_ASPECTS = """ending music dialogue lighting chase dance costumes jokes songs wedding storm fight dream kiss speech duel
    parade feast""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def lines(text: str) -> list[str]:
    """The sentences of a block, which are separated by '|' or a new line."""
    return [line.strip() for line in text.replace("\n", "|").split("|") if line.strip()]


def _split(entries: list[str], what: str, part: float = 0.75) -> dict[str, list[str]]:
    """Shuffled once and for all, and divided: no entry is in both."""
    entries = sorted(entries)
    Random(f"marked reviews, {what}").shuffle(entries)
    cut = round(part * len(entries))
    return {"training": entries[:cut], "held out": entries[cut:]}


FIRST = _split(_FIRST, "first names")
_MADE = _split([begin + end for begin in _BEGIN for end in _END], "last names and towns", 0.5)
LAST = _split(_MADE["training"], "last names")
TOWNS = _MADE["held out"]                              # spelled like last names, and never one
_TITLES = [f"{article}{adjective} {noun}" for article in ("The ", "") for adjective in _ADJECTIVES for noun in _NOUNS]
FILMS = _split(Random("titles").sample(_TITLES, 120) + [f"The {noun}" for noun in _NOUNS], "titles")
THINGS = [f"{article} {adjective.lower()} {noun.lower()}" for article in ("the", "that") for adjective in _ADJECTIVES
          for noun in _NOUNS] + [f"the {noun.lower()}" for noun in _NOUNS]
ASPECTS = _split([f"the {quality} {aspect}" for quality in _QUALITIES for aspect in _ASPECTS] +
                 [f"the {aspect}" for aspect in _ASPECTS], "aspects")


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
