"""Sentences with relative clauses: qui, que, dont, où; the participle agrees with an object before it.

Does: draw one as a finished phrase, and add relative clauses to noun phrases. Does not: commas; all of them are restrictive.
"""

from __future__ import annotations

from random import Random

from french.kinds import predicate, third
from french.lexicon import NOUNS, adjectives_for
from french.phrases import Nominal, clause, copula, plain
from french.scenes import EVENTS, STATES, UNPLANNED, adverbial, described, of, person, place_at, thing
from french.words import Phrase, en, fixed, fr, key, one, sentence

__all__ = ["UNCOUNTABLE", "draw_relative", "relative_noun", "with_relative"]


def extended(base: Nominal, rest: Phrase) -> Nominal:
    """A noun phrase with more behind it; it isn't indefinite any longer."""
    return base._replace(phrase=base.phrase + rest, indefinite=False)


def with_relative(rng: Random, base: Nominal, kind: str = "", avoid: str = "") -> Nominal | None:
    """The noun phrase with a relative clause that suits its noun, or None: kinds 'who', 'that', 'whose', 'where', 'about'.

    `avoid` is the verb of the main clause, which isn't used again.
    """
    noun = NOUNS[base.lemma]
    kind = kind or rng.choice(_kinds_for(noun) or ["none"])
    if kind not in _kinds_for(noun):
        return None
    draw = {"who": _who, "that": _that, "whose": _whose, "where": _where, "about": _about}[kind]
    for _ in range(20):
        rest = draw(rng, base)
        lemmas = {right for _, right in rest.combinations}
        verbs = {left for left, _ in rest.combinations}
        if (kind == "that" or base.lemma not in lemmas) and avoid not in verbs:
            return extended(base, rest)
    return None


def _kinds_for(noun) -> list[str]:
    if noun.classes & {"person"}:
        return ["who", "who", "who", "whose"] + ["that"] * any(noun in of(*e.objects) for e in EVENTS)
    kinds = ["that", "that"] if any(noun in of(*e.objects) for e in EVENTS) else []
    kinds += ["about"] if noun.classes & {"seen", "read"} else []
    kinds += ["whose"] if noun.classes & {"seen"} and noun.lemma not in ("trailer", "exhibition", "concert") else []
    return kinds + (["where"] if noun.lemma in PLACES else [])


PLACES = (
    "cinema theatre museum house village town school library restaurant hotel garden park office castle flat market".split()
)


def _who(rng: Random, base: Nominal) -> Phrase:
    shared = key()
    link = Phrase(en("who", shared), fr("qui", shared))
    options = [e for e in EVENTS if e.subjects == ("person",) or base.lemma in " ".join(e.subjects).split()]
    tense = rng.choice(["past", "past", "past", "progressive"])
    if rng.random() < 0.2:
        verb_, rest = rng.choice(
            [("arrive", "yesterday=hier"), ("stay", "at=à the=^le hotel=hôtel"), ("work", ""), ("laugh", "")]
        )
        after = fixed(rest) if rest else Phrase()
        if verb_ in ("work", "laugh"):
            return link + clause(base, verb_, "progressive", rest=place_at(rng), without_subject=True)
        return link + clause(base, verb_, "past", rest=after, without_subject=True)
    one_ = rng.choice(
        [e for e in options if not (tense == "progressive" and e.verb in STATES) and "his" not in e.determiners]
    )
    negation = "not" if rng.random() < 0.12 else ""
    return link + clause(base, one_.verb, tense, thing(rng, one_, base, 0.25), negation=negation, without_subject=True)


def _that(rng: Random, base: Nominal) -> Phrase:
    """An object before its verb: the participle agrees with it."""
    noun = NOUNS[base.lemma]
    options = [e for e in EVENTS if noun in of(*e.objects)]
    one_ = rng.choice(options)
    subject = person(rng, one_.subjects)
    while subject.lemma == base.lemma:
        subject = person(rng, one_.subjects)
    tense = "past"
    shared = key()
    link = Phrase(en("that", shared), fr("que", shared))
    return link + clause(
        subject, one_.verb, tense, before=base, rest=adverbial(rng, tense) if rng.random() < 0.25 else Phrase()
    )


def _whose(rng: Random, base: Nominal) -> Phrase:
    """'the actress whose film we saw': 'l'actrice dont nous avons vu le film'."""
    shared, head = key(), key()
    owner = NOUNS[base.lemma]
    if owner.classes & {"person"}:
        noun = NOUNS[
            rng.choice(
                ["film", "novel", "daughter", "photo", "house"]
                if owner.classes & {"artist"}
                else ["brother", "sister", "dog", "car", "house", "bag", "daughter"]
            )
        ]
    else:
        noun = NOUNS[rng.choice(["ending", "title", "soundtrack", "plot", "beginning"])]
    article = "la" if noun.gender == "f" else "le"
    definite = Nominal(
        Phrase(en(noun.english[0], head), (*fr(article, shared, article=True), *fr(noun.french[0], head))),
        noun.gender,
        False,
        noun.lemma,
    )
    options = [e for e in EVENTS if noun in of(*e.objects) and e.subjects == ("person",)]
    if not options or rng.random() < 0.4 and adjectives_for(noun):
        # 'whose ending is sad': 'dont la fin est triste'
        said = predicate(rng, definite, noun, 0.3)
        if said:
            return Phrase(en("whose", shared), fr("dont", shared)) + copula(
                definite, rng.choice(["present", "imperfect"]), said
            )
    if not options:
        return _whose(rng, base)
    one_ = rng.choice(options)
    subject = person(rng, names=True)
    while subject.lemma == base.lemma:
        subject = person(rng)
    whole = clause(subject, one_.verb, "past", definite)
    size = len(definite.phrase.english)
    english = (*en("whose", shared), *definite.phrase.english, *whole.english[:-size])
    return Phrase(english, (*fr("dont", shared), *whole.french), whole.combinations)


def _where(rng: Random, base: Nominal) -> Phrase:
    shared = key()
    link = Phrase(en("where", shared), fr("où", shared))
    if rng.random() < 0.5:
        options = {
            "cinema": "see",
            "theatre": "see",
            "restaurant": "eat",
            "library": "read",
            "museum": "meet",
            "market": "buy",
            "park": "meet",
            "hotel": "meet",
            "town": "meet",
            "village": "meet",
            "garden": "read",
            "castle": "meet",
            "school": "meet",
            "office": "write",
            "flat": "write",
            "house": "write",
        }
        one_ = next(e for e in EVENTS if e.verb == options[base.lemma])
        subject = person(rng, one_.subjects)
        return link + clause(subject, one_.verb, "past", thing(rng, one_, subject, 0.25))
    subject = third(rng)
    possible = ["work", "wait"]
    if base.lemma in ("house", "flat", "town", "village", "castle", "hotel"):
        possible += ["live", "sleep"]
    base_verb = rng.choice(possible)
    tense = {"live": "used", "work": rng.choice(["present", "used"]), "sleep": "past", "wait": "progressive"}[base_verb]
    return link + clause(subject, base_verb, tense)


def _about(rng: Random, base: Nominal) -> Phrase:
    """'the film that everybody talks about': 'le film dont tout le monde parle'."""
    shared = key()
    if rng.random() < 0.4:
        subject = Nominal(one("everybody", "tout le monde"), "m", False, "everybody")
        tense = "present"
    else:
        subject, tense = person(rng), rng.choice(["past", "past", "used"])
        while subject.lemma == base.lemma:
            subject = person(rng)
    return Phrase(en("that", shared), fr("dont", shared)) + clause(subject, "talk", tense) + Phrase(en("about", shared))


def relative_noun(
    rng: Random,
    groups: tuple[str, ...] = ("work", "part", "thing", "place", "person"),
    kind: str = "",
    determiner: str = "the",
    avoid: str = "",
) -> Nominal:
    """A noun with a relative clause."""
    while True:
        noun = rng.choice(of(*groups))
        if noun.classes & {"family", "known"}:
            continue
        plural = rng.random() < 0.3 and noun.lemma not in UNCOUNTABLE and determiner != "a" and kind != "whose"
        base = described(rng, noun, determiner, plural, 1, 0.2)
        extended_ = with_relative(rng, base, kind, avoid)
        if extended_:
            return extended_


UNCOUNTABLE = {
    "soup",
    "plot",
    "soundtrack",
    "coffee",
    "tea",
    "milk",
    "water",
    "lemonade",
    "ending",
    "beginning",
    "programme",
}


def draw_relative(rng: Random) -> Phrase:
    """A relative clause in the subject or in the object."""
    return sentence(rng.choice([_about_subject, _about_subject, _about_object, _about_object, _presented, _went_where])(rng))


def _about_subject(rng: Random) -> Phrase:
    subject = relative_noun(rng)
    noun = NOUNS[subject.lemma]
    if not adjectives_for(noun):
        return _about_subject(rng)
    said = predicate(rng, subject, noun, 0.35)
    return copula(subject, rng.choice(["imperfect", "imperfect", "present"]), said)


def _about_object(rng: Random) -> Phrase:
    tense = rng.choice(["past", "past", "future"])
    one_ = rng.choice(
        [
            e
            for e in EVENTS
            if "his" not in e.determiners
            and not (tense == "future" and e.verb in UNPLANNED)
            and e.verb not in ("take", "drink", "order", "eat", "prepare")
        ]
    )
    subject = person(rng, one_.subjects, new=tense == "past")
    while True:
        what = relative_noun(rng, one_.objects, avoid=one_.verb)
        if what.lemma != subject.lemma:
            break
    return clause(subject, one_.verb, tense, what)


def _presented(rng: Random) -> Phrase:
    """'This is the film that we saw.'"""
    shown = relative_noun(rng, ("work", "thing", "place", "part"))
    this = ("these are", "ce sont") if shown.plural else ("this is", "c' est")
    return plain(*this) + shown.phrase


def _went_where(rng: Random) -> Phrase:
    place = relative_noun(rng, tuple(PLACES), "where")
    subject = person(rng)
    if rng.random() < 0.5:
        return clause(subject, "know", "present", place)
    return clause(subject, rng.choice(["visit", "recognise", "photograph"]), rng.choice(["past", "future"]), place)
