"""Who can do what to what: subjects, objects, times and places that go together.

Does: draw subjects, noun phrases and whole events whose words suit each other. Does not: inflect anything itself.
"""

from __future__ import annotations

import tomllib
from functools import cache
from random import Random
from typing import NamedTuple

from course_utils.files.paths import DATA
from french.lexicon import NOUNS, Noun, adjectives_for, clash, nouns
from french.phrases import Nominal, clause, name, nominal, pronoun
from french.words import Phrase, fixed

__all__ = [
    "EVENTS",
    "STATES",
    "UNPLANNED",
    "Event",
    "adverbial",
    "described",
    "draw_event",
    "of",
    "person",
    "place_at",
    "thing",
]

# places with their prepositions; 'at' a place in general, 'in' inside it
AT = {
    "cinema": "at the cinema",
    "theatre": "at the theatre",
    "museum": "at the museum",
    "restaurant": "at the restaurant",
    "market": "at the market",
    "station": "at the station",
    "library": "at the library",
    "school": "at the school",
    "hotel": "at the hotel",
    "beach": "on the beach",
    "street": "in the street",
    "bakery": "at the bakery",
    "office": "at the office",
}
ELSEWHERE = {"street": "dans", "beach": "sur", "bakery": "à", "school": "à", "library": "à", "station": "à"}
INSIDE = (
    "kitchen garden park village town hotel restaurant museum library church castle shop flat house theatre cinema".split()
)


class Event(NamedTuple):
    """What somebody can do: a verb, the classes or lemmas of its objects, and who does it."""

    verb: str
    objects: tuple[str, ...]
    subjects: tuple[str, ...] = ("person",)
    determiners: tuple[str, ...] = ("the", "a", "this")
    habit: bool = True  # whether one does it regularly, so that 'every day' is possible


def _event(line: str) -> Event:
    verb, objects, subjects, determiners, habit = (part.strip() for part in line.split("|"))
    return Event(verb, tuple(objects.split()), tuple(subjects.split()), tuple(determiners.split()), habit == "habit")


_BANK = tomllib.loads((DATA / "translation" / "bank" / "events.toml").read_text(encoding="utf-8"))
EVENTS = [_event(line) for line in _BANK["events"].strip().splitlines()]
TIMES = _BANK["times"]
UNPLANNED, STATES, CONSUMED = (frozenset(_BANK["verbs"][name].split()) for name in ("unplanned", "states", "consumed"))


@cache
def of(*groups: str) -> list[Noun]:
    """The nouns that the groups name, by class or one by one."""
    words = [word for group in groups for word in group.split()]
    classes = [word for word in words if word not in NOUNS]
    return list({one.lemma: one for one in [*(NOUNS[w] for w in words if w in NOUNS), *nouns(*classes)]}.values())


def person(
    rng: Random,
    group: tuple[str, ...] = ("person",),
    plural: bool | None = None,
    pronouns: bool = True,
    names: bool = True,
    new: bool = False,
) -> Nominal:
    """A subject: a noun, a name, or a pronoun; `new` allows 'a doctor', too."""
    drawn = rng.random()
    everyone = group == ("person",)
    if everyone and pronouns and drawn < 0.28 and plural is None:
        return pronoun(rng.choice(["I", "I", "he", "she", "we", "we", "you"]))
    if everyone and names and drawn < 0.4 and not plural:
        return name(rng)
    noun = rng.choice(of(*group))
    plural = rng.random() < 0.2 if plural is None else plural
    if noun.classes & {"family"}:
        single = noun.classes & {"parent"}
        return nominal(noun, rng.choice(["my", "your", "our", "his", "her"]), plural=plural and not single)
    if noun.classes & {"known"}:
        return nominal(noun, rng.choice(["my", "our", "your", "the"]), plural=plural)
    determiner = rng.choice(["the", "the", "a" if new else "the", "this"])
    return nominal(noun, "the" if plural and determiner == "a" else determiner, plural=plural)


def described(rng: Random, noun: Noun, determiner: str, plural: bool = False, most: int = 1, chance: float = 0.3) -> Nominal:
    """A noun with adjectives that suit it, up to `most`, on different sides."""
    chosen = []
    for side in rng.sample(["before", "after"], 2)[:most]:
        options = [a for a in adjectives_for(noun, side) if not any(clash(a, b) or clash(b, a) for b in chosen)]
        if options and rng.random() < chance:
            chosen.append(rng.choice(options))
    return nominal(noun, determiner, *chosen, plural=plural)


UNCOUNTED = {"soup", "plot", "soundtrack", "coffee", "tea", "milk", "water", "lemonade", "ending", "beginning"}


def thing(
    rng: Random,
    one: Event,
    subject: Nominal | None = None,
    chance: float = 0.3,
    most: int = 1,
    plural: bool | None = None,
    habitual: bool = False,
) -> Nominal:
    """An object of an event; what is done every day is done to 'a' film, not to 'the' film."""
    noun = rng.choice([n for n in of(*one.objects) if not subject or n.lemma != subject.lemma])
    determiner = rng.choice(one.determiners)
    if noun.classes & {"family"}:
        determiner = rng.choice(["my", "your", "our"])
    if determiner == "his":
        determiner = {"he": "his", "she": "her", "I": "my", "we": "our", "you": "your"}.get(
            subject.lemma if subject else "",
            ("their" if subject.plural else "her" if subject.gender == "f" else "his") if subject else "the",
        )
    if habitual and determiner in ("the", "this") and one.verb in CONSUMED:
        determiner = "a"
    plural = (rng.random() < 0.25 if plural is None else plural) and noun.lemma not in UNCOUNTED | {"programme"}
    if one.verb == "wear":
        plural = False
    if noun.classes & {"drink"} and habitual:
        determiner = "some"
    elif noun.classes & {"drink"}:
        determiner = (
            determiner
            if determiner in ("the", "a") and one.verb == "order"
            else "some"
            if determiner in ("a", "some")
            else "the"
        )
    elif noun.lemma == "soup" and determiner in ("a", "some"):
        determiner = "some"
    elif determiner == "some" and not plural:
        determiner = "a"
    elif determiner == "a" and plural:
        determiner = "some"
    if noun.lemma in ("plot", "ending", "beginning", "title", "soundtrack") and determiner == "a":
        determiner = "the"
    if one.verb == "take" or noun.classes & {"ride"} and one.verb in ("repair",):
        plural = False
    if noun.classes & {"parent"} or noun.lemma in ("doctor",):
        plural = False
    if determiner in ("his", "her", "their", "my", "our", "your") and noun.classes & {"place"}:
        plural = False
    return described(rng, noun, determiner, plural, most, chance)


def adverbial(rng: Random, tense: str, negated: bool = False) -> Phrase:
    """A time that suits the tense; what wasn't done wasn't done 'one day' or 'three days ago'."""
    times = [time for time in TIMES[tense] if not negated or "one=" not in time and "ago=" not in time]
    return fixed(rng.choice(times)) if times else Phrase()


def place_at(rng: Random) -> Phrase:
    """'at the cinema', 'au cinéma'; 'in the garden', 'dans le jardin'."""
    if rng.random() < 0.5:
        noun = NOUNS[rng.choice(INSIDE)]
        article = "la" if noun.gender == "f" else "le"
        preposition, french = ("in", "dans")
    else:
        lemma = rng.choice(list(AT))
        noun, preposition = NOUNS[lemma], AT[lemma].split()[0]
        article = "la" if noun.gender == "f" else "le"
        french = {"street": "dans", "beach": "sur"}.get(lemma, "à")
    return fixed(f"{preposition}={french} the=^{article} {noun.english[0]}={noun.french[0]}")


def one_of(rng: Random, verbs: str) -> Event:
    """One of the EVENTS with these verbs, given as one string: "watch see read"."""
    return rng.choice([event for event in EVENTS if event.verb in verbs.split()])


def draw_event(
    rng: Random,
    tense: str | None = None,
    *,
    subject: Nominal | None = None,
    chance: float = 0.3,
    negation: str = "",
    times: float = 0.5,
    avoid: frozenset[str] = frozenset(),
    most: int = 1,
    **options,
) -> tuple[Phrase, Nominal]:
    """A whole clause, and its subject."""
    tense = tense or rng.choice(["present", "past", "past", "past", "future", "used", "progressive"])
    choices = [
        one
        for one in EVENTS
        if (one.habit or tense not in ("present", "used"))
        and not (tense == "progressive" and one.verb in STATES)
        and not (tense == "future" and one.verb in UNPLANNED)
        and one.verb not in avoid
    ]
    one = rng.choice(choices)
    if subject is not None:
        one = rng.choice([each for each in choices if each.subjects == ("person",)])
    subject = subject or person(rng, one.subjects, new=tense == "past")
    rest = adverbial(rng, tense, bool(negation)) if rng.random() < times else Phrase()
    return clause(
        subject,
        one.verb,
        tense,
        thing(rng, one, subject, chance, most, habitual=tense in ("present", "used")),
        negation=negation,
        rest=rest,
        **options,
    ), subject
