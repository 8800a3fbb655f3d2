"""Sentences with pronouns before the French verb: le, la, les, lui, leur, y, en, alone or two together.

Does: draw one or two sentences as a finished phrase. Does not: subject pronouns (`pronouns`).
"""

from __future__ import annotations

from random import Random

from french.lexicon import NOUNS
from french.numerals import french_number
from french.phrases import Nominal, clause, nominal
from french.relatives import UNCOUNTABLE
from french.scenes import EVENTS, adverbial, described, of, person
from french.verbs import conjugate, verb
from french.words import Phrase, en, fixed, fr, key, one, sentence

__all__ = ["draw_object"]


IT = {("m", False): "le", ("f", False): "la", ("m", True): "les", ("f", True): "les"}


def it(what: Nominal) -> Phrase:
    """'it' or 'them' for a noun, as an object: 'le', 'la', 'les'."""
    shared = key()
    return Phrase(en("them" if what.plural else "it", shared), fr(IT[what.gender, what.plural], shared))


DATIVES = {"me": "me", "us": "nous", "you": "vous", "him": "lui", "her": "lui", "them": "leur"}


def dative(rng: Random, subject: Nominal, choices: tuple[str, ...] = ("me", "us", "him", "her", "them", "you")) -> Phrase:
    """An indirect object that isn't the subject."""
    own = {"I": ("me", "us"), "we": ("us", "me"), "you": ("you",)}.get(subject.lemma, ())
    english = rng.choice([c for c in choices if c not in own])
    shared = key()
    return Phrase(en(english, shared), fr(DATIVES[english], shared))


def draw_object(rng: Random) -> Phrase:
    """Pronouns before the French verb: le, la, les, lui, leur, y, en, alone or two together."""
    return rng.choice(
        [_asked_about, _asked_about, _and_it, _and_it, _gave, _gave, _there, _of_them, _about_it, _to_do, _gave_it]
    )(rng)


def _pool(rng: Random, verbs: tuple[str, ...] = ()) -> tuple:
    one_ = rng.choice(
        [
            e
            for e in EVENTS
            if e.subjects == ("person",)
            and (not verbs or e.verb in verbs)
            and e.verb not in ("take", "drink", "prefer", "call", "thank", "invite", "help", "meet")
        ]
    )
    noun = rng.choice([n for n in of(*one_.objects) if not n.classes & {"person", "drink"}])
    return one_, noun


def _asked_about(rng: Random) -> Phrase:
    """'The key? My sister found it yesterday.'"""
    one_, noun = _pool(rng)
    plural = rng.random() < 0.3 and noun.lemma not in UNCOUNTABLE
    what = described(
        rng,
        noun,
        rng.choice(["the", "the", "this", "my", "our"])
        if noun.classes & {"thing", "clothes", "small"}
        else rng.choice(["the", "this"]),
        plural,
        1,
        0.2,
    )
    subject = person(rng)
    negation = rng.choice(["", "", "not", "never"]) if one_.habit else rng.choice(["", "", "not"])
    when = Phrase() if negation == "never" or negation and rng.random() < 0.6 else adverbial(rng, "past", bool(negation))
    return sentence(what.phrase, "?") + sentence(
        clause(
            subject,
            one_.verb,
            "past",
            pronouns=(it(what),),
            before=what,
            rest=when,
            negation=negation,
            short=rng.random() < 0.5,
        )
    )


THEN = {
    "buy": ("lose", "sell", "break", "hide", "repair", "forget"),
    "find": ("lose", "open", "hide", "sell"),
    "read": ("criticise", "understand", "translate", "love", "hate", "finish", "like"),
    "open": ("close",),
    "see": ("criticise", "love", "hate", "like"),
    "watch": ("criticise", "love", "hate", "like"),
    "choose": ("buy",),
    "wash": ("repair", "hide", "sell"),
    "repair": ("sell", "wash"),
    "order": ("eat", "love"),
    "visit": ("photograph", "love"),
    "hear": ("love", "hate", "like", "recognise"),
    "write": ("hide", "cut"),
    "prepare": ("eat",),
}


def _and_it(rng: Random) -> Phrase:
    """'Paul bought a lamp and broke it.'"""
    while True:
        first, noun = _pool(rng, tuple(THEN))
        second = rng.choice(THEN[first.verb])
        other = next(e for e in EVENTS if e.verb == second)
        if noun in of(*other.objects):
            break
    subject = person(rng)
    plural = rng.random() < 0.25 and noun.lemma not in UNCOUNTABLE
    what = described(
        rng,
        noun,
        "some" if plural else rng.choice(["a", "the", "this"]) if noun.lemma not in UNCOUNTABLE else "the",
        plural,
        1,
        0.3 if first.verb not in ("hear", "read", "see", "watch") else 0.0,
    )
    start = clause(subject, first.verb, "past", what, rest=adverbial(rng, "past") if rng.random() < 0.3 else Phrase())
    joint = fixed(rng.choice(["and=et", "and_then=puis"]))
    return sentence(start + joint + clause(subject, second, "past", pronouns=(it(what),), before=what, without_subject=True))


def _gave(rng: Random) -> Phrase:
    """'She gave him the key': 'Elle lui a donné la clé'."""
    subject = person(rng)
    base = rng.choice(["give", "show", "send", "lend", "sell", "bring"])
    groups = {
        "give": ("small", "thing", "clothes"),
        "show": ("thing", "looked", "read"),
        "lend": ("thing", "clothes", "book"),
        "send": ("letter message photo article script drawing poster",),
        "sell": ("bought",),
        "bring": ("food", "small", "read"),
    }
    noun = rng.choice(of(*groups[base]))
    plural = rng.random() < 0.25 and noun.lemma not in UNCOUNTABLE
    determiner = rng.choice(["the", "a", "this"])
    if plural and determiner == "a":
        determiner = "some"
    if noun.lemma in UNCOUNTABLE:
        determiner = "the"
    tense, negation = rng.choice(
        [("past", ""), ("past", ""), ("past", ""), ("future", ""), ("past", "not"), ("past", "never"), ("future", "not")]
    )
    to = dative(rng, subject)
    when = adverbial(rng, tense, bool(negation)) if rng.random() < 0.4 and negation != "never" else Phrase()
    return sentence(
        clause(
            subject,
            base,
            tense,
            described(rng, noun, determiner, plural, 1, 0.3),
            pronouns=(to,),
            rest=when,
            negation=negation,
            short=rng.random() < 0.5,
        )
    )


def _gave_it(rng: Random) -> Phrase:
    """'He showed it to me': 'il me l'a montré(e)', 'il le lui a montré'."""
    noun = rng.choice(
        of("letter photo key book ticket script painting drawing lamp guitar camera bicycle ring scarf umbrella")
    )
    plural = rng.random() < 0.3
    what = nominal(noun, rng.choice(["the", "this"]), plural=plural)
    subject = person(rng)
    shown = it(what)
    to = dative(rng, subject)
    toward = Phrase((*en("to", to.english[0].keys), *to.english), to.french)
    base = rng.choice(
        ["show", "give", "sell", "send"]
        if noun.lemma not in ("letter", "script", "ticket", "key")
        else ["show", "give", "send"]
    )
    first_dative = to.french[0].text in ("me", "nous", "vous")
    order = (to.french, shown.french) if first_dative else (shown.french, to.french)
    both = Phrase((*shown.english, *toward.english), (*order[0], *order[1]))
    return sentence(what.phrase, "?") + sentence(
        clause(subject, base, "past", pronouns=(both,), before=what, rest=adverbial(rng, "past"))
    )


def _there(rng: Random) -> Phrase:
    """'goes there': 'y va'."""
    place = NOUNS[
        rng.choice(["museum", "village", "library", "beach", "theatre", "market", "park", "cinema", "castle", "town"])
    ]
    subject = person(rng)
    first = clause(
        subject, rng.choice(["know", "love", "like"]) if rng.random() < 0.99 else "know", "present", nominal(place, "this")
    )
    again = Nominal(Phrase(), subject.gender, subject.plural, subject.lemma, subject.person)
    there = key()
    base, tense = rng.choice([("go", "present"), ("go", "future"), ("return", "present"), ("return", "future")])
    rest = clause(
        again,
        base,
        tense,
        pronouns=(Phrase(en("there", there), fr("y", there)),),
        rest=adverbial(rng, tense),
        without_subject=True,
    )
    return sentence(first + fixed("and=et") + rest)


def _of_them(rng: Random) -> Phrase:
    """'The boxes? I opened three of them.': 'J'en ai ouvert trois.'"""
    one_, noun = _pool(rng)
    while noun.lemma in UNCOUNTABLE or noun.classes & {"place"} or one_.verb in ("forget",):
        one_, noun = _pool(rng)
    subject = person(rng)
    n = rng.randint(2, 12)
    of_, many = key(), key()
    base = clause(subject, one_.verb, "past", pronouns=(Phrase((), fr("en", of_)),))
    counted = Phrase((*en(_english(n), many), *en("of them", of_)), fr(french_number(n), many))
    when = adverbial(rng, "past") if rng.random() < 0.5 else Phrase()
    start = nominal(
        noun, rng.choice(["the", "this", "our"]) if noun.classes & {"thing"} else rng.choice(["the", "this"]), plural=True
    )
    return sentence(start.phrase, "?") + sentence(base + counted + when)


def _english(n: int) -> str:
    return "two three four five six seven eight nine ten eleven twelve".split()[n - 2]


def _about_it(rng: Random) -> Phrase:
    """'Everybody talks about it': 'tout le monde en parle'."""
    noun = rng.choice(of("film play novel exhibition ending scene article review speech musical opera"))
    plural = rng.random() < 0.25 and noun.lemma not in UNCOUNTABLE
    what = nominal(noun, rng.choice(["the", "this"]), plural=plural)
    shared = key()
    subject = Nominal(one("everybody", "tout le monde"), "m", False, "everybody") if rng.random() < 0.3 else person(rng)
    tense, negation = rng.choice(
        [("present", ""), ("past", ""), ("past", "not"), ("future", ""), ("past", "never"), ("present", "never")]
    )
    if subject.lemma == "everybody":
        negation = ""
    rest = Phrase(en("about it" if not plural else "about them", shared)) + (
        adverbial(rng, tense) if not negation else Phrase()
    )
    return sentence(what.phrase, "?") + sentence(
        clause(
            subject,
            "talk",
            tense,
            pronouns=(Phrase((), fr("en", shared)),),
            rest=rest,
            negation=negation,
            short=rng.random() < 0.5,
        )
    )


MODALS = {"can": "pouvoir", "must": "devoir", "want to": "vouloir"}


def _to_do(rng: Random) -> Phrase:
    """'I want to see it': the pronoun stands before the infinitive."""
    one_, noun = _pool(
        rng,
        (
            "watch",
            "see",
            "buy",
            "read",
            "sell",
            "find",
            "repair",
            "open",
            "close",
            "wash",
            "choose",
            "visit",
            "finish",
            "translate",
            "photograph",
            "hear",
            "understand",
            "clean",
        ),
    )
    plural = rng.random() < 0.3 and noun.lemma not in UNCOUNTABLE
    what = nominal(noun, rng.choice(["the", "this"]), plural=plural)
    subject = person(rng)
    english, french = rng.choice(list(MODALS.items()))
    if english == "can" and one_.verb not in (
        "see",
        "read",
        "open",
        "close",
        "repair",
        "hear",
        "find",
        "translate",
        "understand",
    ):
        english, french = "must", "devoir"
    if english == "must" and one_.verb in ("hear", "understand"):
        english, french = "want to", "vouloir"
    third_ = subject.person == 3 and not subject.plural
    said = "wants to" if english == "want to" and third_ else english
    main, act = key(), key()
    no = key()
    negative = english == "can" and rng.random() < 0.5
    said = "cannot" if negative else said
    pronoun_ = it(what)
    form = conjugate(french, "present", subject.person, subject.plural)
    whole = Phrase(
        (*en(said, main | no if negative else main), *en(one_.verb, act), *pronoun_.english),
        (
            *(fr("ne", no) if negative else ()),
            *fr(form, main),
            *(fr("pas", no) if negative else ()),
            *pronoun_.french,
            *fr(verb(one_.verb).french, act),
        ),
        frozenset([(one_.verb, noun.lemma)]),
    )
    return sentence(what.phrase, "?") + sentence(subject.phrase + whole)
