"""Sentences of several clauses, to measure what length does.

Does: join clauses, with no verb and no noun twice. Does not: count words; `corpus` keeps those that are long.
"""

from __future__ import annotations

from random import Random

from french.kinds import predicate, third
from french.lexicon import NOUNS
from french.phrases import clause, copula
from french.relatives import relative_noun
from french.scenes import EVENTS, draw_event, person
from french.words import Phrase, en, fixed, fr, key, sentence

__all__ = ["draw_long"]


JOINTS = ["and=et", "and=et", "but=mais"]


def _joined(rng: Random, parts: int, times: float, used: set[str] | None = None) -> Phrase:
    """Several clauses in one sentence, no verb and no noun of them twice, nor one of those that are `used`."""
    whole, used = Phrase(), set() if used is None else used
    for place in range(parts):
        while True:
            piece = _piece(rng, times)
            words = {word for pair in piece.combinations for word in pair} - {""}
            if not words & used:
                break
        used |= words
        whole = whole + (fixed(rng.choice(JOINTS)) if place else Phrase()) + piece
    return whole


def _piece(rng: Random, times: float) -> Phrase:
    """A clause in the past, with what makes it longer."""
    drawn = rng.random()
    if drawn < 0.33:
        subject = relative_noun(rng, ("work", "part", "place", "person"))
        no = "not" if rng.random() < 0.15 else ""
        noun = NOUNS[subject.lemma]
        said = predicate(rng, subject, noun, 0.3, negated=bool(no))
        return copula(subject, "imperfect", said, no, False)
    if drawn < 0.55:
        one_ = rng.choice(
            [e for e in EVENTS if "his" not in e.determiners and e.verb not in ("take", "drink", "order", "eat")]
        )
        subject = person(rng, one_.subjects)
        what = relative_noun(rng, one_.objects, avoid=one_.verb)
        return clause(subject, one_.verb, "past", what) if what.lemma != subject.lemma else _piece(rng, times)
    if drawn < 0.63:
        subject = third(rng)
        rest = fixed(rng.choice(["late=en_retard", "early=en_avance", "at=à noon=midi", "at=à midnight=minuit"]))
        whole = clause(subject, "arrive", "past", rest=rest)
        return whole._replace(combinations=whole.combinations | {("arrive", "")})
    return draw_event(rng, "past", chance=0.45, most=2, times=times, negation=rng.choice(["", "", "", "not"]), short=False)[
        0
    ]


def draw_long(rng: Random) -> Phrase:
    """Several clauses; those of 21 words or more are what the corpus keeps."""
    dated = rng.random() < 0.35
    times = 0.0 if dated else 0.2
    form, used = rng.random(), set()
    if form < 0.3:
        whole = (
            _joined(rng, 2, times, used)
            + fixed("while=pendant_que")
            + draw_event(rng, "progressive", times=0.0, chance=0.4)[0]
        )
    elif form < 0.5:
        whole = _joined(rng, 1, times, used) + fixed("because=parce_que") + _joined(rng, 2, times, used)
    elif form < 0.62:
        thinker = person(rng)
        link = Phrase(en("that", (shared := key())), fr("que", shared))
        return sentence(clause(thinker, "think", "present", rest=link + _joined(rng, 2, 0.2)))
    else:
        whole = _joined(rng, rng.choice([2, 3]), times)
    if dated:
        whole = (
            fixed(
                rng.choice(
                    ["yesterday=hier ,=,", "one=un day=jour ,=,", "that=ce evening=soir-là ,=,", "this=ce morning=matin ,=,"]
                )
            )
            + whole
        )
    return sentence(whole)
