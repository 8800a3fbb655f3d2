"""Sentences with numbers, prices, ages, dates and times of day.

Does: draw one as a finished phrase. Does not: spell the numbers (`numerals`).
"""

from __future__ import annotations

from random import Random

from french.kinds import SINGLE, predicate, third
from french.lexicon import NOUNS, adjectives_for, nouns
from french.numerals import DAYS, MONTHS, date, number, ordinal, time
from french.phrases import clause, copula, nominal
from french.scenes import adverbial, described, draw_event, of, one_of, person, place_at
from french.verbs import conjugate, participle
from french.words import Phrase, en, fixed, fr, key, one, sentence

__all__ = ["draw_numbers"]


def draw_numbers(rng: Random) -> Phrase:
    return sentence(
        rng.choice(
            [
                _lasts,
                _costs,
                _seats,
                _born,
                _begins,
                _hours,
                _old,
                _dated,
                _dated,
                _published,
                _ordinal,
                _people,
                _counted,
                _century,
                _there_are,
                _age_then,
            ]
        )(rng)
    )


# what one doesn't do on a certain day
LASTING = frozenset("like love hate prefer understand wear drink cross describe".split())


def any_number(rng: Random, low: int, high: int) -> int:
    """Numbers around 70 to 99 twice as often as others, where the range has them."""
    if low < 70 and high > 99 and rng.random() < 0.4:
        return rng.randint(70, 99)
    return rng.randint(low, high)


def _unit(english: str, french: str) -> Phrase:
    return one(english, french)


def _lasts(rng: Random) -> Phrase:
    noun = rng.choice(
        [n for n in nouns("seen") if n.lemma not in ("exhibition", "trailer")] + [NOUNS["speech"], NOUNS["scene"]]
    )
    low, high = (2, 30) if noun.lemma in ("speech", "scene") else (45, 240)
    tense = rng.choice(["present", "past", "future"])
    return clause(
        described(rng, noun, rng.choice(["the", "this"]), False, 1, 0.3),
        "last",
        tense,
        rest=number(any_number(rng, low, high)) + _unit("minutes", "minutes"),
    )


def _costs(rng: Random) -> Phrase:
    noun = rng.choice(of("bought", "meal book exhibition ticket newspaper"))
    high = (
        30
        if noun.lemma in ("ticket", "book", "meal", "newspaper", "umbrella")
        else 1900
        if noun.lemma in ("piano", "camera", "ring")
        else 250
    )
    tense = rng.choice(["present", "past"])
    euros = any_number(rng, 9 if high < 1900 else 300, high)
    noun = NOUNS["lamp"] if noun.lemma in ("car", "exhibition", "newspaper") else noun
    return clause(
        described(rng, noun, rng.choice(["the", "this"]), False, 1, 0.35),
        "cost",
        tense,
        rest=number(euros) + _unit("euros", "euros"),
    )


def _seats(rng: Random) -> Phrase:
    noun = NOUNS[rng.choice(["theatre", "cinema", "restaurant", "library"])]
    n = any_number(rng, 40, 400)
    tense = rng.choice(["present", "present", "future"])
    return clause(
        described(rng, noun, rng.choice(["the", "this", "our"]), False, 1, 0.4),
        "have",
        tense,
        rest=number(n, True) + _unit("seats", "places"),
    )


def _born(rng: Random) -> Phrase:
    subject = third(rng, ("person",), False)
    while NOUNS.get(subject.lemma) and "a" == subject.phrase.english[0].text:
        subject = third(rng, ("person",), False)
    shared = key()
    was = Phrase(en("was born", shared), fr("est " + ("née" if subject.gender == "f" else "né"), shared))
    year = rng.randint(1921, 2012)
    when = rng.choice(
        [
            date(rng.randint(1, 28), rng.choice(list(MONTHS)), year),
            fixed(f"in=en {year}={year}"),
            date(rng.randint(1, 28), rng.choice(list(MONTHS))),
        ]
    )
    return subject.phrase + was + when


def _clock(rng: Random) -> Phrase:
    hour = rng.randint(1, 11)
    minute = rng.choice([0, 0, 5, 10, 15, 20, 25, 30, 45])
    return time(min(hour, 10) if minute == 45 else hour, minute)


def _day_part(rng: Random) -> Phrase:
    return rng.choice(
        [
            Phrase(),
            Phrase(),
            one("in the evening", "du soir"),
            one("in the morning", "du matin"),
            one("in the afternoon", "de l' après-midi"),
        ]
    )


def _begins(rng: Random) -> Phrase:
    if rng.random() < 0.3:
        noun, verb = NOUNS[rng.choice(["train", "bus", "boat"])], "depart"
        return _leaves(clause(nominal(noun, "the"), verb, rng.choice(["present", "future"]), rest=_clock(rng)))
    noun = rng.choice([n for n in nouns("seen") if n.lemma not in ("exhibition", "trailer", "cartoon")] + [NOUNS["meal"]])
    tense = rng.choice(["present", "past", "future"])
    return clause(described(rng, noun, rng.choice(["the", "this"]), False, 1, 0.25), "begin", tense, rest=_clock(rng))


def _leaves(whole: Phrase) -> Phrase:
    change = {"departs": "leaves", "depart": "leave"}
    return whole._replace(english=tuple(word._replace(text=change.get(word.text, word.text)) for word in whole.english))


def _hours(rng: Random) -> Phrase:
    noun = NOUNS[rng.choice(["museum", "library", "bakery", "restaurant", "cinema", "shop", "market", "office"])]
    subject = nominal(noun, rng.choice(["the", "this"]))
    verb = rng.choice(["open", "close"])
    first = clause(subject, verb, "present", rest=_clock(rng))
    if rng.random() < 0.5:
        return first + fixed(
            rng.choice(["on_Sundays=le_dimanche", "on_Saturdays=le_samedi", "on_Mondays=le_lundi", "in=en July=juillet"])
        )
    other = nominal(NOUNS[rng.choice(["museum", "library", "bakery", "shop", "cinema"])], rng.choice(["the", "our"]))
    return first + fixed("and=et") + clause(other, rng.choice(["open", "close"]), "present", rest=_clock(rng))


def _old(rng: Random) -> Phrase:
    subject = person(rng, plural=None)
    while subject.phrase.english[0].text == "a":
        subject = person(rng)
    family = NOUNS.get(subject.lemma)
    n = (
        rng.randint(71, 99)
        if family and subject.lemma.startswith("grand")
        else rng.randint(5, 15)
        if family and family.classes & {"child"}
        else any_number(rng, 20, 101)
        if not family or not family.classes & {"family"}
        else rng.randint(18, 69)
    )
    have, years = key(), key()
    tense = rng.choice(["present", "future"])
    if tense == "future":
        verb = Phrase(en("will be", have), fr(conjugate("avoir", "future", subject.person, subject.plural), have))
    else:
        be = "am" if subject.lemma == "I" else "are" if subject.plural or subject.lemma == "you" else "is"
        verb = Phrase(en(be, have), fr(conjugate("avoir", "present", subject.person, subject.plural), have))
    when = (
        fixed(
            rng.choice(
                ["on=le Monday=lundi", "in=en May=mai", "tomorrow=demain", "in=en October=octobre", "this=cette year=année"]
            )
        )
        if tense == "future"
        else Phrase()
    )
    when = fixed("on_Monday=lundi") if when.english and when.english[-1].text == "Monday" else when
    return subject.phrase + verb + number(n) + Phrase(en("years old", years), fr("ans", years)) + when


def _age_then(rng: Random) -> Phrase:
    """'at the age of seventy-one'."""
    subject = third(rng, ("artist",), False)
    age, of_ = key(), key()
    what = rng.choice(["novel", "play", "poem", "song", "story"])
    n = any_number(rng, 18, 100)
    return clause(
        subject,
        "write",
        "past",
        nominal(NOUNS[what], rng.choice(["this", "a"])),
        rest=Phrase((*en("at the age", age), *en("of", of_)), (*fr("à l' âge", age), *fr("de", of_)))
        + number(n)
        + Phrase((), fr("ans")),
    )


def _dated(rng: Random) -> Phrase:
    tense = rng.choice(["past", "past", "future"])
    month, day = rng.choice(list(MONTHS)), rng.randint(1, 28)
    when = rng.choice(
        [
            date(day, month),
            date(day, month, rng.randint(1931, 2024) if tense == "past" else None),
            date(day, month, weekday=rng.choice(list(DAYS))),
        ]
    )
    subject = third(rng)
    if rng.random() < 0.4:
        return clause(subject, "arrive", tense, rest=when)
    whole, _ = draw_event(rng, tense, times=0.0, chance=0.2, avoid=LASTING)
    return whole + when


def _published(rng: Random) -> Phrase:
    noun = rng.choice(
        [
            n
            for n in nouns("written")
            if n.lemma not in ("message", "speech", "script", "song", "dialogue", "chapter", "letter")
        ]
    )
    year = rng.randint(1851, 2023)
    plural = rng.random() < 0.25
    shared, be = key(), key()
    form = "publié" + ("e" if noun.gender == "f" else "") + ("s" if plural else "")
    subject = described(rng, noun, rng.choice(["the", "this"]), plural, 1, 0.35)
    rest = Phrase(
        (*en("were" if plural else "was", be), *en("published", shared)),
        (*fr("ont été" if plural else "a été", be), *fr(form, shared)),
    )
    return subject.phrase + rest + fixed(f"in=en {year}={year}")


def _ordinal(rng: Random) -> Phrase:
    n = rng.choice([*range(1, 13), *range(15, 32)])
    noun = NOUNS[
        rng.choice(["chapter", "scene", "song", "letter", "photo", "painting"] if n < 13 else ["chapter", "letter", "photo"])
    ]
    first = ordinal(n, noun.gender == "f")
    subject = nominal(noun, "the", counted=first)
    if rng.random() < 0.5:
        return copula(subject, rng.choice(["present", "imperfect"]), predicate(rng, subject, noun, 0.4))
    reader = person(rng)
    verb = {"chapter": "read", "scene": "see", "song": "hear", "letter": "read"}.get(noun.lemma, "find")
    return clause(reader, verb, "past", subject, rest=adverbial(rng, "past") if rng.random() < 0.6 else Phrase())


def _people(rng: Random) -> Phrase:
    n = any_number(rng, 12, 980)
    shared, main = key(), key()
    verb, french = rng.choice(
        [
            ("waited", "attendre"),
            ("danced", "danser"),
            ("sang", "chanter"),
            ("clapped", "applaudir"),
            ("worked", "travailler"),
            ("slept", "dormir"),
        ]
    )
    people = number(n, True) + Phrase(en("people", shared), fr("personnes", shared))
    return (
        people
        + Phrase(en(verb, main), fr("ont " + participle(french), main))
        + place_at(rng)
        + (adverbial(rng, "past") if rng.random() < 0.4 else Phrase())
    )


def _counted(rng: Random) -> Phrase:
    one_ = one_of(rng, "watch see read buy sell write translate photograph repair visit film order invite")
    subject = person(rng, one_.subjects)
    noun = rng.choice([n for n in of(*one_.objects) if n.lemma not in SINGLE and not n.classes & {"parent", "drink"}])
    n = rng.randint(2, 25) if rng.random() < 0.7 else any_number(rng, 25, 120)
    adjectives = [rng.choice(adjectives_for(noun))] if adjectives_for(noun) and rng.random() < 0.3 else []
    what = nominal(noun, "", *adjectives, plural=True, counted=number(n, noun.gender == "f"))
    tense = rng.choice(["past", "past", "future"])
    return clause(subject, one_.verb, tense, what, rest=adverbial(rng, tense) if rng.random() < 0.4 else Phrase())


def _century(rng: Random) -> Phrase:
    noun = NOUNS[rng.choice(["castle", "church", "house", "theatre", "bridge", "station", "museum", "hotel", "library"])]
    n = rng.randint(15, 20) if noun.lemma in ("castle", "church", "house", "bridge") else rng.choice([19, 20])
    be, shared, in_, century = key(), key(), key(), key()
    form = "construite" if noun.gender == "f" else "construit"
    subject = described(rng, noun, rng.choice(["the", "this"]), False, 1, 0.35)
    return (
        subject.phrase
        + Phrase(
            (*en("was", be), *en("built", shared), *en("in the", in_)), (*fr("a été", be), *fr(form, shared), *fr("au", in_))
        )
        + ordinal(n)
        + Phrase(en("century", century), fr("siècle", century))
    )


def _there_are(rng: Random) -> Phrase:
    what, where, low, high = rng.choice(
        [
            ("chapter", "book", 5, 60),
            ("chapter", "novel", 5, 60),
            ("song", "musical", 6, 25),
            ("scene", "play", 8, 60),
            ("painting", "museum", 40, 900),
            ("photo", "book", 20, 300),
            ("restaurant", "street", 2, 15),
            ("window", "castle", 20, 250),
            ("chair", "garden", 4, 60),
            ("book", "library", 200, 1900),
            ("table", "restaurant", 8, 40),
            ("house", "village", 30, 250),
        ]
    )
    noun, place = NOUNS[what], NOUNS[where]
    there = key()
    counted = nominal(noun, "", plural=True, counted=number(any_number(rng, low, high), noun.gender == "f"))
    return (
        Phrase(en("there are", there), fr("il y a", there))
        + counted.phrase
        + fixed("in=dans")
        + nominal(place, rng.choice(["the", "this"])).phrase
    )
