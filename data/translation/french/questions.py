"""Questions with est-ce que: English 'did' is linked to 'est-ce que', the verb to its auxiliary and participle.

Does: draw one as a finished phrase. Does not: inversion.
"""

from __future__ import annotations

from random import Random

from french.kinds import predicate, third, topic
from french.phrases import Nominal, clause, nominal, pronoun
from french.relatives import UNCOUNTABLE
from french.scenes import EVENTS, UNPLANNED, adverbial, of, one_of, place_at, thing
from french.verbs import conjugate, participle, verb
from french.words import Phrase, en, fixed, fr, key, one, sentence

__all__ = ["draw_question"]


def draw_question(rng: Random) -> Phrase:
    return sentence(rng.choice([_did, _did, _where_when, _who_did, _what_did, _which, _how_many, _is_it, _do_you])(rng), "?")


def _asked_subject(rng: Random, subjects: tuple[str, ...] = ("person",)) -> Nominal:
    return pronoun("you") if subjects == ("person",) and rng.random() < 0.4 else third(rng, subjects)


def _inverted(
    subject: Nominal,
    base: str,
    tense: str,
    thing_: Nominal | None,
    *,
    before: Nominal | None = None,
    start: Phrase | None = None,
    rest: Phrase | None = None,
    combined: str = "",
) -> Phrase:
    """'did … buy' with 'est-ce que'; English 'did' is linked to 'est-ce que' and the auxiliary."""
    v, shared, main = verb(base), key(), key()
    person_, plural = subject.person, subject.plural
    if tense == "past":
        did, form = "did", fr(conjugate(v.auxiliary, "present", person_, plural), main)
        agrees = subject if v.auxiliary == "être" else before
        form += fr(participle(v.french, agrees.gender, agrees.plural) if agrees else participle(v.french), main)
    else:
        did = {"present": "does" if person_ == 3 and not plural else "do", "future": "will"}[tense]
        form = fr(conjugate(v.french, tense, person_, plural), main | shared if tense == "future" else main)
    combinations = frozenset([(base, combined)] if combined else [(base, thing_.lemma)] if thing_ else [])
    asked = Phrase((), fr("est-ce que", shared))
    return (
        (start or Phrase())
        + asked
        + Phrase(en(did, shared))
        + subject.phrase
        + Phrase(en(base, main), form, combinations)
        + (thing_.phrase if thing_ else Phrase())
        + (rest or Phrase())
    )


def _did(rng: Random) -> Phrase:
    tense = rng.choice(["past", "past", "future"])
    one_ = rng.choice([e for e in EVENTS if tense == "past" or e.verb not in UNPLANNED])
    subject = _asked_subject(rng, one_.subjects)
    return _inverted(
        subject,
        one_.verb,
        tense,
        thing(rng, one_, subject, 0.3),
        rest=adverbial(rng, tense) if rng.random() < 0.5 else Phrase(),
    )


def _do_you(rng: Random) -> Phrase:
    subject = _asked_subject(rng)
    base = rng.choice(["like", "know", "like", "understand", "prefer"])
    pool = {"know": "actor actress director writer village restaurant museum neighbour pianist"}.get(base)
    one_ = next((e for e in EVENTS if e.verb == base), None)
    what = (
        nominal(rng.choice([n for n in of(*pool.split()) if n.lemma != subject.lemma]), rng.choice(["the", "this"]))
        if pool
        else thing(rng, one_, subject, 0.3)
    )
    return _inverted(subject, base, "present", what)


def _where_when(rng: Random) -> Phrase:
    word = rng.choice(["where=où", "when=quand", "why=pourquoi"])
    somewhere = "buy find see meet hear lose hide read watch film photograph wash eat repair".split()
    also_why = UNPLANNED if not word.startswith("why") else UNPLANNED - {"forget", "hate"}
    if word.startswith("where"):
        one_ = rng.choice([e for e in EVENTS if e.verb in somewhere])
    else:
        one_ = rng.choice([e for e in EVENTS if e.verb not in also_why])
    subject = _asked_subject(rng, one_.subjects)
    tense = rng.choice(["past", "past", "future"]) if not word.startswith("why") and one_.verb not in UNPLANNED else "past"
    return _inverted(subject, one_.verb, tense, thing(rng, one_, subject, 0.3), start=fixed(word))


def _who_did(rng: Random) -> Phrase:
    shared = key()
    subject = Nominal(Phrase(en("who", shared), fr("qui", shared)), "m", False, "who")
    tense = rng.choice(["past", "past", "future"])
    one_ = rng.choice([e for e in EVENTS if "his" not in e.determiners and not (tense == "future" and e.verb in UNPLANNED)])
    return clause(
        subject,
        one_.verb,
        tense,
        thing(rng, one_, subject, 0.35),
        rest=adverbial(rng, tense) if rng.random() < 0.3 else Phrase(),
    )


def _what_did(rng: Random) -> Phrase:
    """'What did Paul buy?': 'Qu'est-ce que Paul a acheté ?'"""
    base = rng.choice(
        [
            "buy",
            "read",
            "see",
            "find",
            "lose",
            "choose",
            "break",
            "hide",
            "eat",
            "hear",
            "order",
            "drink",
            "sell",
            "prepare",
            "write",
            "repair",
        ]
    )
    subject = _asked_subject(rng)
    tense = rng.choice(["past", "past", "future" if base not in UNPLANNED else "past"])
    what = key()
    return _inverted(
        subject,
        base,
        tense,
        None,
        start=Phrase(en("what", what), fr("que", what)),
        rest=adverbial(rng, tense)
        if rng.random() < 0.5
        else place_at(rng)
        if rng.random() < 0.3 and tense == "past" and base in ("buy", "see", "find", "lose", "hear")
        else Phrase(),
    )


def _which(rng: Random) -> Phrase:
    """'Which scene did the actress prefer?': 'Quelle scène est-ce que l'actrice a préférée ?'"""
    one_ = one_of(rng, (
        "prefer choose watch see read buy cut visit criticise translate sell rehearse open recognise like "
        "hear"))
    noun = rng.choice([n for n in of(*one_.objects) if not n.classes & {"person"} and n.lemma not in UNCOUNTABLE])
    plural = rng.random() < 0.3
    subject = _asked_subject(rng, one_.subjects)
    shared = key()
    quel = "quel" + ("le" if noun.gender == "f" else "") + ("s" if plural else "")
    word = Phrase(en("which", shared), fr(quel, shared)) + one(noun.english[plural], noun.french[plural])
    before = Nominal(Phrase(), noun.gender, plural, noun.lemma)
    tense = rng.choice(["past", "past", "future" if one_.verb not in UNPLANNED else "past"])
    return _inverted(
        subject,
        one_.verb,
        tense,
        None,
        before=before,
        start=word,
        combined=noun.lemma,
        rest=adverbial(rng, tense) if rng.random() < 0.3 else Phrase(),
    )


def _how_many(rng: Random) -> Phrase:
    """'How many songs did you hear?': 'Combien de chansons est-ce que vous avez entendues ?'"""
    one_ = one_of(rng, "watch see read buy sell write translate hear visit photograph lose repair cut rehearse order film")
    noun = rng.choice([n for n in of(*one_.objects) if not n.classes & {"person", "drink"} and n.lemma not in UNCOUNTABLE])
    subject = _asked_subject(rng, one_.subjects)
    shared = key()
    word = Phrase(en("how many", shared), fr("combien de", shared)) + one(noun.english[1], noun.french[1])
    before = Nominal(Phrase(), noun.gender, True, noun.lemma)
    return _inverted(
        subject,
        one_.verb,
        "past",
        None,
        before=before,
        start=word,
        combined=noun.lemma,
        rest=adverbial(rng, "past") if rng.random() < 0.5 else Phrase(),
    )


def _is_it(rng: Random) -> Phrase:
    subject, noun = topic(rng)
    tense = rng.choice(["present", "imperfect"])
    said = predicate(rng, subject, noun, 0.3)
    shared, ask = key(), key()
    be = {"present": ("is", "are"), "imperfect": ("was", "were")}[tense][subject.plural]
    return (
        Phrase(en(be, shared), fr("est-ce que", ask))
        + subject.phrase
        + Phrase((), fr(conjugate("être", tense, 3, subject.plural), shared))
        + said
    )
