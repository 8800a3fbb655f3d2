"""The kinds of sentences that are about agreement and about adjectives, and what all kinds need.

Does: draw one sentence of a kind as a finished phrase. Does not: the other kinds, which have a module each.
"""

from __future__ import annotations

from random import Random

from french.lexicon import ADJECTIVES, NOUNS, Noun, adjectives_for, clash, nouns
from french.numerals import number
from french.phrases import Nominal, adjective, clause, copula, nominal, plain
from french.scenes import EVENTS, UNPLANNED, adverbial, described, draw_event, of, person, thing
from french.verbs import conjugate
from french.words import Phrase, Unfit, en, fixed, fr, key, sentence

__all__ = ["SINGLE", "SOON", "TOO_MUCH", "WHOLE", "draw_adjective", "draw_agreement", "predicate", "third", "topic"]


# adjectives that have no degrees, and those that can be too much
WHOLE = set(
    "excellent broken empty round red blue green black white yellow grey French Italian English American Spanish "
    "delicious terrible new sunny crowded".split()
)
TOO_MUCH = set(
    "long slow complicated violent predictable serious expensive heavy small big old noisy dark hot cold sweet shy "
    "nervous sad simple romantic quiet modern strange jealous curious".split()
)


def topic(
    rng: Random,
    groups: tuple[str, ...] = ("work", "part", "thing", "food", "place", "person"),
    plural: bool | None = None,
    chance: float = 0.0,
) -> tuple[Nominal, Noun]:
    """Something that an adjective can be said of."""
    noun = rng.choice([n for n in of(*groups) if adjectives_for(n)])
    plural = rng.random() < 0.35 if plural is None else plural
    single = noun.classes & {"parent", "drink"} or noun.lemma in SINGLE
    determiner = rng.choice(["the", "the", "this"])
    if noun.classes & {"family", "known"}:
        determiner = rng.choice(["my", "our", "your", "his", "her"])
    elif noun.classes & {"thing", "clothes"}:
        determiner = rng.choice(["the", "this", "my", "his", "her", "our"])
    return described(rng, noun, determiner, plural and not single, 1, chance), noun


SINGLE = {"soup", "plot", "ending", "beginning", "soundtrack", "kitchen", "doctor", "programme"}


# what something can become
SOON = set(
    "tired happy nervous empty quiet noisy clean dirty long boring cold hot delicious sad funny excellent interesting "
    "famous jealous worried expensive moving curious elegant patient serious surprising sunny crowded".split()
)


def predicate(
    rng: Random, subject: Nominal, noun: Noun, too: float = 0.25, of: set[str] = frozenset(), negated: bool = False
) -> Phrase:
    """An adjective that suits the noun, perhaps with a degree. Raises Unfit if there's none among those of `of`."""
    used = {english for english, _ in subject.phrase.combinations}
    options = [
        a
        for a in adjectives_for(noun)
        if a.english
        not in used
        | {"new", "young", "pretty", "good", "bad", "Italian", "French", "English", "American", "Spanish", "light"}
    ]
    options = [a for a in options if not of or a.english in of]
    options = [
        a
        for a in options
        if not any(clash(ADJECTIVES[word], a) or clash(a, ADJECTIVES[word]) for word in used & set(ADJECTIVES))
    ]
    if not options:
        raise Unfit
    a = rng.choice(options)
    if a.english in WHOLE:
        return adjective(a, subject)
    if a.english in TOO_MUCH and rng.random() < too:
        return adjective(a, subject, "too")
    return adjective(a, subject, rng.choice(["", "very"] if negated else ["", "", "very", "really", "rather"]))


# ------------------------------------------------------------------------------------------ agreement
def draw_agreement(rng: Random) -> Phrase:
    """Subjects with adjectives, verbs with 'être', passives, possessives."""
    return sentence(rng.choice([_state, _state, _moved, _moved, _passive, _possessed, _many])(rng))


def _state(rng: Random) -> Phrase:
    subject, noun = topic(rng, chance=0.2)
    tense = rng.choice(["present", "imperfect", "imperfect", "future"])
    said = predicate(rng, subject, noun, **({"of": SOON} if tense == "future" else {}))
    return copula(subject, tense, said)


def third(rng: Random, group: tuple[str, ...] = ("person",), plural: bool | None = None) -> Nominal:
    """A person whose gender the English sentence shows or the noun decides."""
    while True:
        subject = person(rng, group, plural)
        if subject.person == 3:
            return subject


def _moved(rng: Random) -> Phrase:
    verb, rest = rng.choice(
        [
            ("arrive", "late=en_retard"),
            ("arrive", ""),
            ("arrive", "at=à noon=midi"),
            ("arrive", "at=à midnight=minuit"),
            ("arrive", "early=en_avance"),
            ("stay", "at_home=à_la_maison"),
            ("stay", "at=à the=^le hotel=hôtel"),
            ("stay", "in=dans the=^le garden=jardin"),
            ("return", "to=à the=^la beach=plage"),
            ("return", "to=à the=^le village=village"),
            ("return", "to=à the=^le museum=musée"),
            ("fall", "in=dans the=^la street=rue"),
            ("go", "to=à the=^le cinema=cinéma"),
            ("go", "to=à the=^la library=bibliothèque"),
            ("go", "to=à the=^le market=marché"),
            ("go", "to=à the=^le theatre=théâtre"),
            ("go", "to=à the=^la station=gare"),
            ("come", "to=à the=^le concert=concert"),
            ("come", "alone"),
            ("depart", "before=avant the=^la ending=fin"),
            ("depart", "without=sans me=moi"),
            ("go", "to=à the=^la beach=plage"),
            ("go", "to=à the=^la bakery=boulangerie"),
            ("come", "with=avec us=nous"),
            ("return", "from=de the=^le restaurant=restaurant"),
            ("depart", "after=après the=^le meal=repas"),
            ("arrive", "after=après the=^le beginning=début"),
        ]
    )
    subject = third(rng)
    while subject.plural and rest == "alone":
        subject = third(rng)
    if rest == "alone":
        shared = key()
        after = Phrase(en("alone", shared), fr("seule" if subject.gender == "f" else "seul", shared))
    else:
        after = fixed(rest)
    tense = (
        "perfect"
        if rng.random() < 0.3
        and verb in ("arrive", "go")
        and "noon" not in rest
        and "after" not in rest
        and "midnight" not in rest
        else "past"
    )
    when = adverbial(rng, "past") if tense == "past" and rng.random() < 0.5 and "noon" not in rest else Phrase()
    if verb == "depart":
        return _left(subject, tense, after + when)
    return clause(subject, verb, tense, rest=after + when)


def _left(subject: Nominal, tense: str, rest: Phrase) -> Phrase:
    """'left' without an object is 'partir'."""
    whole = clause(subject, "depart", tense, rest=rest)
    return whole._replace(
        english=tuple(word._replace(text="left") if word.text == "departed" else word for word in whole.english)
    )


PASSIVE = [
    ("filmed", "filmé", "scene film documentary dialogue"),
    ("written", "écrit", "written"),
    ("translated", "traduit", "novel poem play article letter"),
    ("sold", "vendu", "bought painting drawing house castle"),
    ("repaired", "réparé", "car bicycle piano lamp watch door window"),
    ("cut", "coupé", "scene dialogue chapter"),
    ("invited", "invité", "actor actress director journalist writer pianist"),
    ("painted", "peint", "door window chair house"),
    ("found", "retrouvé", "key ring bag letter phone suitcase"),
    ("criticised", "critiqué", "film play ending speech exhibition"),
    ("adapted", "adapté", "novel play story"),
]


def _passive(rng: Random) -> Phrase:
    english, french, group = rng.choice(PASSIVE)
    noun = rng.choice(
        of(*group.split())
        if len(group.split()) == 1
        else [NOUNS[w] if w in NOUNS else rng.choice(nouns(w)) for w in group.split()]
    )
    plural = rng.random() < 0.4 and noun.lemma not in SINGLE
    subject = described(rng, noun, rng.choice(["the", "the", "this"]), plural, 1, 0.25)
    be, main = key(), key()
    form = french + ("e" if noun.gender == "f" else "") + ("s" if plural else "")
    auxiliary = conjugate("avoir", "present", 3, plural)
    phrase = Phrase(
        (*en("were" if plural else "was", be), *en(english, main)),
        (*fr(f"{auxiliary} été", be), *fr(form, main)),
        frozenset([(english, noun.lemma)]),
    )
    rest = adverbial(rng, "past") if rng.random() < 0.6 else Phrase()
    return subject.phrase + phrase + rest


def _possessed(rng: Random) -> Phrase:
    """'his' and 'her' agree with what is owned in French, with the owner in English."""
    subject = third(rng, plural=False)
    tense = rng.choice(["past", "past", "future"])
    one_ = rng.choice(
        [
            e
            for e in EVENTS
            if "his" in e.determiners and e.subjects == ("person",) and not (tense == "future" and e.verb in UNPLANNED)
        ]
    )
    noun = rng.choice([n for n in of(*one_.objects) if n.lemma != subject.lemma])
    determiner = ("his" if subject.gender == "m" else "her") if rng.random() < 0.7 else rng.choice(["our", "your", "my"])
    plural = (
        rng.random() < 0.3
        and not noun.classes & {"parent"}
        and noun.lemma not in SINGLE | {"title", "house", "flat", "phone"}
    )
    return clause(
        subject,
        one_.verb,
        tense,
        described(rng, noun, determiner, plural, 1, 0.25),
        rest=adverbial(rng, tense) if rng.random() < 0.4 else Phrase(),
    )


def _many(rng: Random) -> Phrase:
    """A plural subject with an imperfect or a present, or 'several', 'many', 'every'."""
    noun = rng.choice(nouns("known", "child", "artist"))
    determiner = rng.choice(["several", "many", "every", "these"])
    subject = nominal(noun, "this" if determiner == "these" else determiner, plural=determiner != "every")
    return draw_event(rng, rng.choice(["past", "present", "used", "future"]), subject=subject)[0]


# ------------------------------------------------------------------------------------------ adjectives
def two_sided(rng: Random, noun: Noun, determiner: str, plural: bool) -> Nominal:
    early, late = adjectives_for(noun, "before"), adjectives_for(noun, "after")
    chosen = [rng.choice(side) for side in (early, late) if side and (rng.random() < 0.75 or not (early and late))]
    if len(chosen) == 2 and clash(*chosen):
        return two_sided(rng, noun, determiner, plural)
    return nominal(noun, determiner, *(chosen or [rng.choice(late or early)]), plural=plural)


def draw_adjective(rng: Random) -> Phrase:
    """Adjectives on either side of the noun, comparisons, superlatives."""
    return sentence(
        rng.choice([_with_adjectives, _with_adjectives, _with_adjectives, _there_is, _comparison, _superlative, _it_is])(rng)
    )


def _with_adjectives(rng: Random) -> Phrase:
    tense = rng.choice(["past", "past", "future", "present"])
    options = [e for e in EVENTS if (tense != "present" or e.habit) and not (tense == "future" and e.verb in UNPLANNED)]
    one_ = rng.choice(options)
    subject = person(rng, one_.subjects)
    while True:
        plain = thing(rng, one_, subject, chance=0.0, habitual=tense == "present")
        noun = NOUNS[plain.lemma]
        if adjectives_for(noun):
            break
    determiner = plain.phrase.english[0].text
    determiner = {"an": "a", "these": "this"}.get(determiner, determiner)
    return clause(
        subject,
        one_.verb,
        tense,
        two_sided(rng, noun, determiner, plain.plural),
        rest=adverbial(rng, tense) if rng.random() < 0.4 else Phrase(),
    )


def _there_is(rng: Random) -> Phrase:
    rooms = ("kitchen", "garden", "office", "hotel", "library", "flat", "theatre", "house")
    noun = rng.choice([n for n in of("thing", "animal", "clothes") if "ride" not in n.classes])
    plural = rng.random() < 0.35
    tense = rng.choice(["present", "imperfect"])
    there = key()
    be = {"present": ("is", "are"), "imperfect": ("was", "were")}[tense][plural]
    y_a = "il y a" if tense == "present" else "il y avait"
    counted = number(rng.randint(2, 12), noun.gender == "f") if plural and rng.random() < 0.5 else None
    what = two_sided(rng, noun, "a" if not plural else "some", plural)
    if counted:
        adjectives = [ADJECTIVES[english] for english, lemma in sorted(what.phrase.combinations)]
        what = nominal(noun, "", *adjectives, plural=True, counted=counted)
    room = NOUNS[rng.choice(rooms)]
    where = fixed("in=dans") + nominal(room, rng.choice(["the", "this", "our"])).phrase
    return Phrase(en(f"there {be}", there), fr(y_a, there)) + what.phrase + where


def _comparison(rng: Random) -> Phrase:
    group = rng.choice([("work",), ("work",), ("thing",), ("place",), ("person", "artist")])
    first, noun = topic(rng, group, plural=rng.random() < 0.2)
    if group == ("person", "artist"):
        second = nominal(rng.choice(nouns("known")), rng.choice(["my", "your", "our"]))
        noun = rng.choice(nouns("family"))
        first = nominal(noun, rng.choice(["my", "his", "her"]))
    else:
        second = nominal(rng.choice([n for n in of(*group) if n is not noun]), rng.choice(["the", "this"]))
    options = [
        a
        for a in adjectives_for(noun)
        if a.english
        not in WHOLE
        | {
            "good",
            "bad",
            "long",
            "old",
            "young",
            "big",
            "small",
            "pretty",
            "happy",
            "sad",
            "funny",
            "strange",
            "slow",
            "dark",
            "clean",
            "dirty",
            "heavy",
            "light",
            "brave",
            "kind",
            "shy",
            "quiet",
            "noisy",
            "simple",
            "cold",
            "hot",
            "famous",
        }
        and (NOUNS[second.lemma].classes & a.classes)
    ]
    if not options:
        return _comparison(rng)
    a = rng.choice(options)
    joint, shared = key(), key()
    english, french = rng.choice([("more than", "plus que"), ("less than", "moins que"), ("as as", "aussi que")])
    (more, than), (plus, que) = english.split(), french.split()
    linked = key()
    rest = Phrase(
        (*en(more, joint), *en(a.english, shared), *en(than, linked)),
        (*fr(plus, joint), *fr(a.form(first.gender, first.plural), shared), *fr(que, linked)),
        frozenset([(a.english, noun.lemma)]),
    )
    return copula(first, rng.choice(["present", "imperfect"]), rest + second.phrase)


def _superlative(rng: Random) -> Phrase:
    """'This is the most boring scene of the film': 'la scène la plus ennuyeuse du film'."""
    part = rng.choice([n for n in nouns("part") if n.lemma not in SINGLE | {"title", "script", "trailer"}])
    options = [
        a
        for a in adjectives_for(part, "after")
        if a.english not in WHOLE | {"sad", "slow", "simple", "happy", "funny", "strange"}
    ]
    a = rng.choice(options or [ADJECTIVES["original"]])
    whole = rng.choice([n for n in nouns("seen") if n is not part and n.lemma not in ("trailer", "concert", "exhibition")])
    most, head, adj, of_ = key(), key(), key(), key()
    feminine = part.gender == "f"
    la = "la" if feminine else "le"
    english = (*en("the most", most), *en(a.english, adj), *en(part.english[0], head), *en("of", of_))
    french = (
        *fr(la, most, article=True),
        *fr(part.french[0], head),
        *fr(la, most),
        *fr("plus", most),
        *fr(a.form(part.gender, False), adj),
        *fr("de", of_),
    )
    most_of = Phrase(english, french, frozenset([(a.english, part.lemma)]))
    return _this_is(rng) + most_of + nominal(whole, rng.choice(["the", "this"])).phrase


def _this_is(rng: Random) -> Phrase:
    return plain("this is", "c' est") if rng.random() < 0.55 else plain("it was", "c' était")


def _it_is(rng: Random) -> Phrase:
    """'This is a beautiful old house.'"""
    noun = rng.choice(of("work", "part", "thing", "place"))
    return _this_is(rng) + two_sided(rng, noun, "a", False).phrase
