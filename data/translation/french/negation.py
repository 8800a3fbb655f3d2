"""Sentences with a negation in two parts: ne and pas, jamais, plus, rien, personne, aucun, ni, que.

Does: draw one as a finished phrase. Does not: conjugate; `phrases` puts the two parts around the verb.
"""

from __future__ import annotations

from random import Random

from french.kinds import SINGLE, SOON, predicate, third, topic
from french.lexicon import NOUNS, adjectives_for
from french.numerals import number
from french.phrases import Nominal, clause, copula, nominal
from french.scenes import (
    EVENTS,
    STATES,
    UNPLANNED,
    adverbial,
    described,
    of,
    one_of,
    person,
    place_at,
    thing,
)
from french.verbs import conjugate
from french.words import Phrase, en, fixed, fr, key, sentence

__all__ = ["draw_negation"]


def draw_negation(rng: Random) -> Phrase:
    return sentence(
        rng.choice(
            [_not, _not, _not, _not, _not_state, _nobody, _no_noun, _nothing, _neither, _only, _there_is_no, _not_to]
        )(rng)
    )


def _not(rng: Random) -> Phrase:
    negation, tense = rng.choice(
        [
            ("not", "past"),
            ("not", "past"),
            ("not", "present"),
            ("not", "future"),
            ("not", "progressive"),
            ("never", "past"),
            ("never", "present"),
            ("never", "perfect"),
            ("never", "future"),
            ("no longer", "present"),
            ("not yet", "perfect"),
        ]
    )
    choices = [
        e
        for e in EVENTS
        if (tense != "present" or e.habit or negation != "never" and e.verb in LIKING)
        and not (tense == "progressive" and e.verb in STATES)
        and not (negation == "no longer" and e.verb not in REGULAR)
        and not (negation == "never" and tense == "present" and e.verb not in REGULAR)
        and not (tense == "future" and e.verb in UNPLANNED - {"understand", "forget", "find", "drink"})
    ]
    one_ = rng.choice(choices)
    subject = person(rng, one_.subjects)
    several = True if negation == "no longer" else None
    what = thing(rng, one_, subject, 0.25, plural=several, habitual=tense == "present" and one_.habit and negation != "not")
    when = (
        adverbial(rng, tense, True) if negation == "not" and tense in ("past", "future") and rng.random() < 0.4 else Phrase()
    )
    return clause(subject, one_.verb, tense, what, negation=negation, short=rng.random() < 0.5, rest=when)


REGULAR = {
    "watch",
    "read",
    "write",
    "buy",
    "wear",
    "visit",
    "prepare",
    "eat",
    "drink",
    "clean",
    "take",
    "help",
    "translate",
    "wash",
    "cross",
    "repair",
}
LIKING = {"like", "understand", "recognise", "prefer"}


def _not_state(rng: Random) -> Phrase:
    subject, noun = topic(rng)
    negation, tense = rng.choice(
        [
            ("not", "present"),
            ("not", "imperfect"),
            ("not", "future"),
            ("no longer", "present"),
            ("never", "present"),
            ("no longer", "imperfect"),
        ]
    )
    limited = {"future": SOON, "never": SOON, "no longer": SOON}.get(tense) or (SOON if negation != "not" else frozenset())
    said = predicate(rng, subject, noun, 0.1, limited, negated=True)
    if negation == "never" and not noun.classes & {"person", "place", "food"}:
        return _not_state(rng)
    return copula(subject, tense, said, negation, rng.random() < 0.5)


def _nobody(rng: Random) -> Phrase:
    """'Nobody liked the ending': the negation is the subject, or the object."""
    shared = key()
    if rng.random() < 0.7:
        subject = Nominal(Phrase(en("nobody", shared), fr("personne ne", shared)), "m", False, "nobody")
        tense = rng.choice(["past", "past", "future"])
        one_ = rng.choice(
            [
                e
                for e in EVENTS
                if e.subjects == ("person",)
                and "his" not in e.determiners
                and not (tense == "future" and e.verb in UNPLANNED - {"understand"})
            ]
        )
        return clause(
            subject,
            one_.verb,
            tense,
            thing(rng, one_, subject, 0.4),
            rest=adverbial(rng, tense) if rng.random() < 0.3 else Phrase(),
        )
    subject = person(rng)
    verb, french = rng.choice(
        [
            ("invited", "invité"),
            ("recognised", "reconnu"),
            ("helped", "aidé"),
            ("called", "appelé"),
            ("met", "rencontré"),
            ("followed", "suivi"),
            ("thanked", "remercié"),
        ]
    )
    main = key()
    auxiliary = conjugate("avoir", "present", subject.person, subject.plural)
    return (
        subject.phrase
        + Phrase(
            (*en(verb, main), *en("nobody", shared)),
            (*fr("ne", shared), *fr(auxiliary, main), *fr(french, main), *fr("personne", shared)),
        )
        + adverbial(rng, "past")
    )


def _no_noun(rng: Random) -> Phrase:
    """'No scene is boring': 'aucune scène n'est ennuyeuse'."""
    noun = rng.choice(
        [
            n
            for n in of(
                "scene song chapter film novel play ticket letter actor actress child friend neighbour "
                "waitress window door chair lamp photo painting restaurant shop street room"
            )
            if adjectives_for(n)
        ]
    )
    shared, head = key(), key()
    feminine = noun.gender == "f"
    subject = Nominal(
        Phrase(
            (*en("no", shared), *en(noun.english[0], head)),
            (*fr("aucune" if feminine else "aucun", shared), *fr(noun.french[0], head), *fr("ne", shared)),
        ),
        noun.gender,
        False,
        noun.lemma,
    )
    return copula(subject, rng.choice(["present", "imperfect"]), predicate(rng, subject, noun, 0.3, negated=True))


def _nothing(rng: Random) -> Phrase:
    shared, main = key(), key()
    if rng.random() < 0.4:
        verb, french, rest = rng.choice(
            [
                ("surprised", "étonné", "in=dans this=cette scene=scène"),
                ("surprised", "étonné", "in=dans this=ce film=film"),
                ("changed", "changé", "in=dans the=^la town=ville"),
                ("changed", "changé", "in=dans this=cette house=maison"),
                ("changed", "changé", "in=dans the=^le village=village"),
                ("worked", "marché", "yesterday=hier"),
                ("changed", "changé", "yesterday=hier"),
            ]
        )
        whom = rng.choice([("me", "me"), ("us", "nous"), ("you", "vous")]) if verb == "surprised" else None
        obj = key()
        english = (*en("nothing", shared), *en(verb, main), *(en(whom[0], obj) if whom else ()))
        if whom:
            words = (
                *fr("rien ne", shared),
                *fr(whom[1], obj),
                *fr("a", main),
                *fr(french + ("s" if whom[0] in ("us", "you") else ""), main),
            )
        else:
            words = (*fr("rien ne", shared), *fr("a", main), *fr(french, main))
        if whom and whom[0] == "you":
            return _nothing(rng)
        return Phrase(english, words) + fixed(rest)
    subject = person(rng)
    verb, french = rng.choice(
        [
            ("bought", "acheté"),
            ("understood", "compris"),
            ("found", "trouvé"),
            ("forgot", "oublié"),
            ("ate", "mangé"),
            ("heard", "entendu"),
            ("saw", "vu"),
            ("sold", "vendu"),
            ("lost", "perdu"),
            ("broke", "cassé"),
            ("chose", "choisi"),
            ("ordered", "commandé"),
            ("wrote", "écrit"),
        ]
    )
    auxiliary = conjugate("avoir", "present", subject.person, subject.plural)
    return (
        subject.phrase
        + Phrase(
            (*en(verb, main), *en("nothing", shared)),
            (*fr("ne", shared), *fr(auxiliary, main), *fr("rien", shared), *fr(french, main)),
        )
        + (adverbial(rng, "past") if rng.random() < 0.6 else place_at(rng))
    )


def _neither(rng: Random) -> Phrase:
    """'likes neither tea nor coffee': 'n'aime ni le thé ni le café'."""
    subject = person(rng)
    base, third_, french = rng.choice(
        [
            ("like", "likes", "aimer"),
            ("understand", "understands", "comprendre"),
            ("like", "likes", "aimer"),
            ("know", "knows", "connaître"),
        ]
    )
    pools = {
        "aimer": "work part food",
        "comprendre": "plot ending title story dialogue play poem speech",
        "connaître": "actor actress director writer village town novel film play",
    }
    a, b = rng.sample(of(*pools[french].split()), 2)
    no, main, neither, nor = key(), key(), key(), key()
    verb = third_ if subject.person == 3 and not subject.plural else base
    determiner = rng.choice(["the", "this"])
    first, second = nominal(a, determiner), nominal(b, determiner)
    head = Phrase(
        (*en(verb, main), *en("neither", neither | no)),
        (*fr("ne", no), *fr(conjugate(french, "present", subject.person, subject.plural), main), *fr("ni", neither)),
        frozenset([(base, a.lemma), (base, b.lemma)]),
    )
    return subject.phrase + head + first.phrase + Phrase(en("nor", nor), fr("ni", nor)) + second.phrase


def _only(rng: Random) -> Phrase:
    """'saw only two films': 'n'a vu que deux films'."""
    one_ = one_of(rng, (
        "watch see read buy visit find finish translate sell repair understand open invite photograph write "
        "cut"))
    subject = person(rng, one_.subjects)
    noun = rng.choice([n for n in of(*one_.objects) if n.lemma not in SINGLE and not n.classes & {"parent"}])
    n = rng.randint(1, 12)
    what = nominal(noun, "", plural=n > 1, counted=number(n, noun.gender == "f"))
    no = key()
    whole = clause(subject, one_.verb, "past", what, rest=adverbial(rng, "past") if rng.random() < 0.3 else Phrase())
    size, french_size = len(subject.phrase.english), len(subject.phrase.french)
    verb = whole.french[french_size : french_size + 2]
    english = (*whole.english[: size + 1], *en("only", no), *whole.english[size + 1 :])
    french = (*whole.french[:french_size], *fr("ne", no), *verb, *fr("que", no), *whole.french[french_size + 2 :])
    return Phrase(english, french, whole.combinations)


def _there_is_no(rng: Random) -> Phrase:
    noun = rng.choice(
        of(
            "drink",
            "soup cake chair lamp table piano mirror window garden cinema theatre library bakery "
            "museum station dog cat photo poster",
        )
    )
    where = NOUNS[
        rng.choice(
            ["village", "town", "street", "park"]
            if noun.classes & {"place"}
            else ["kitchen", "house", "flat", "hotel", "office", "restaurant"]
        )
    ]
    present = rng.random() < 0.6
    there, no = key(), key()
    plural = not noun.classes & {"drink"} and noun.lemma != "soup" and rng.random() < 0.5
    be = ("are" if plural else "is") if present else ("were" if plural else "was")
    return (
        Phrase(
            (*en(f"there {be}", there), *en("no", no)),
            (*fr("il", there), *fr("ne", no), *fr("y a" if present else "y avait", there), *fr("pas", no), *fr("de", no)),
        )
        + described(rng, noun, "the", plural, 1, 0.0).phrase._replace(
            english=en(noun.english[plural], (head := key())), french=fr(noun.french[plural], head)
        )
        + fixed("in=dans")
        + nominal(where, rng.choice(["the", "this"])).phrase
    )


def _not_to(rng: Random) -> Phrase:
    """'asked us not to laugh': both parts of the negation before the infinitive."""
    subject = third(rng)
    (whom, french) = rng.choice([("me", "me"), ("us", "nous"), ("him", "lui"), ("them", "leur"), ("you", "vous")])
    main, obj, no, to, act = key(), key(), key(), key(), key()
    base, infinitive, rest = rng.choice(
        [
            ("laugh", "rire", "during=pendant the=^la scene=scène"),
            ("sing", "chanter", "in=dans the=^la street=rue"),
            ("sleep", "dormir", "during=pendant the=^le concert=concert"),
            ("open", "ouvrir", "the=^la door=porte"),
            ("open", "ouvrir", "the=^la box=boîte"),
            ("forget", "oublier", "the=^les keys=clés"),
            ("sell", "vendre", "the=^la house=maison"),
            ("speak", "parler", "in=dans the=^la library=bibliothèque"),
            ("smoke", "fumer", "in=dans the=^la kitchen=cuisine"),
            ("dance", "danser", "on=sur the=^la table=table"),
            ("cry", "pleurer", "during=pendant the=^le film=film"),
            ("close", "fermer", "the=^la window=fenêtre"),
            ("wait", "attendre", "in=dans the=^la street=rue"),
            ("work", "travailler", "on_Sundays=le_dimanche"),
            ("tell", "raconter", "the=^la ending=fin"),
            ("criticise", "critiquer", "the=^le dessert=dessert"),
        ]
    )
    auxiliary = conjugate("avoir", "present", 3, subject.plural)
    never = rng.random() < 0.25
    return (
        subject.phrase
        + Phrase(
            (*en("asked", main), *en(whom, obj), *en("never" if never else "not", no), *en("to", to), *en(base, act)),
            (
                *fr(french, obj),
                *fr(auxiliary, main),
                *fr("demandé", main),
                *fr("de", to),
                *fr("ne", no),
                *fr("jamais" if never else "pas", no),
                *fr(infinitive, act),
            ),
        )
        + fixed(rest)
    )
