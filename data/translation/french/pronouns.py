"""Texts of two to four sentences in which 'it' or 'they' must become il, elle, ils or elles: a noun further back decides.

Does: draw twins, the same text twice, with a masculine noun and with a feminine one. Does not: choose splits.

Nothing but the noun gives the gender away. The twins share their last sentence, and all other nouns, so whatever doesn't
look at the antecedent is right in one twin of every pair. How many nouns come before the antecedent and how many after it
is drawn, from none to four, so no fixed position is right much more often. The other nouns are people, whom 'it' doesn't
mean; in some texts there's also a place that the last sentence can't be about.
"""

from __future__ import annotations

import tomllib
from random import Random
from typing import NamedTuple

from course_utils.files.paths import DATA
from french.kinds import TOO_MUCH, WHOLE
from french.lexicon import ADJECTIVES, NOUNS, Noun, adjectives_for
from french.numerals import number
from french.phrases import Nominal, adjective, clause, copula, name, nominal, pronoun
from french.scenes import adverbial
from french.verbs import participle
from french.words import Phrase, Unfit, en, fixed, fr, key, one, sentence

__all__ = ["PronounItem", "draw_pronouns"]


class PronounItem(NamedTuple):
    """One of two twins: the text, and the keys of the antecedent and of the pronoun in it."""

    phrase: Phrase
    antecedent: frozenset[int]
    pronoun: frozenset[int]
    gender: str
    plural: bool
    sentences: int  # from the antecedent's to the pronoun's


_BANK = tomllib.loads((DATA / "translation" / "bank" / "pronouns.toml").read_text(encoding="utf-8"))
GROUPS = {name: {field: text.split() for field, text in group.items()} for name, group in _BANK["groups"].items()}
PEOPLE = _BANK["people"].split()
SINGLE = {"beginning", "ending", "plot", "soup", "programme"}
UNDOABLE = frozenset(_BANK["undoable"].split())
PREPOSITIONS = {"with": "avec", "to": "à", "for": "pour"}
ALONE = [
    ("laugh", ""),
    ("sleep", ""),
    ("cry", ""),
    ("arrive", "late=en_retard"),
    ("arrive", "early=en_avance"),
    ("sing", ""),
    ("dance", ""),
    ("wait", ""),
    ("smile", ""),
    ("stay", "at_home=à_la_maison"),
    ("come", "with=avec us=nous"),
]
TOGETHER = ["call", "thank", "help", "recognise", "invite", "follow", "meet"]


def _somebody(rng: Random, used: set[str], plural: bool = False) -> Nominal:
    """A person who isn't in the text yet."""
    lemma = rng.choice([lemma for lemma in PEOPLE if lemma not in used])
    used.add(lemma)
    noun = NOUNS[lemma]
    close = noun.classes & {"family", "known"}
    return nominal(
        noun,
        rng.choice(["my", "our", "your"]) if close else rng.choice(["the", "the", "this"]),
        plural=plural and not noun.classes & {"parent"},
    )


def _nobody(rng: Random) -> Nominal:
    """A subject without a noun."""
    return name(rng) if rng.random() < 0.5 else pronoun(rng.choice(["I", "we", "you"]))


def _both(first: Nominal, second: Nominal) -> Nominal:
    gender = "f" if first.gender == second.gender == "f" else "m"
    return Nominal(first.phrase + fixed("and=et") + second.phrase, gender, True, "both")


def _aside(rng: Random, people: int, used: set[str], plural: bool) -> Phrase:
    """A sentence with none, one or two people in it, and nothing that 'it' could mean."""
    if people == 2:
        first, second = _somebody(rng, used, plural), _somebody(rng, used)
        return sentence(clause(first, rng.choice(TOGETHER), "past", second))
    subject = _somebody(rng, used, plural) if people else _nobody(rng)
    verb, rest = rng.choice(ALONE)
    while subject.person != 3 and verb in ("arrive", "stay", "come"):  # 'I arrived' doesn't say whether je is a man
        verb, rest = rng.choice(ALONE)
    return sentence(clause(subject, verb, "past", rest=fixed(rest) if rest else Phrase()))


def draw_pronouns(rng: Random, before: int, after: int, plural: bool) -> tuple[PronounItem, PronounItem]:
    """The masculine and the feminine twin, with so many nouns before the antecedent and after it. Raises Unfit."""
    group = rng.choice(list(GROUPS))
    masculine, feminine = (NOUNS[rng.choice(GROUPS[group][side])] for side in ("masculine", "feminine"))
    lemmas = {masculine.lemma, feminine.lemma}
    action, _, preposition = rng.choice(GROUPS[group]["actions"]).partition("-")
    if plural and lemmas & SINGLE or {f"{action}-{lemma}" for lemma in lemmas} & UNDOABLE:
        raise Unfit
    said = _said(rng, group, masculine, feminine, plural)
    start, subject, used = _opening(rng, before, plural)
    rest, end = _closing(rng, group, action, preposition, after, plural, used)
    determiner = "the" if lemmas & {"beginning", "ending", "plot", "title"} else rng.choice(["the", "this", "a"])
    determiner = "some" if plural and determiner == "a" else determiner
    modifier = _modifier(rng, masculine, feminine, said)
    twins = []
    for noun in (masculine, feminine):
        what = nominal(noun, determiner, *modifier, plural=plural)
        middle = sentence(clause(subject, action, "past", what, rest=rest))
        shared = key()
        french = {"m": "il", "f": "elle"}[noun.gender] + "s" * plural
        stand_in = Nominal(
            Phrase(en("they" if plural else "it", shared), fr(french, shared)), noun.gender, plural, noun.lemma
        )
        whole = start + middle + end + sentence(said(stand_in))
        twins.append(PronounItem(whole, what.head, shared, noun.gender, plural, 1 + bool(end.english)))
    return twins[0], twins[1]


def _opening(rng: Random, people: int, plural: bool) -> tuple[Phrase, Nominal, set[str]]:
    """Sentences before the antecedent's, its subject, and who is in them: together so many people."""
    used: set[str] = set()
    most = 1 if plural else 2  # two people could be 'they'
    beside = rng.randint(0, min(people, most))
    start, left = Phrase(), people - beside
    while left:
        size = rng.randint(1, min(2, left))
        start, left = start + _aside(rng, size, used, not plural), left - size
    if not people and rng.random() < 0.3:
        start = _aside(rng, 0, used, False)
    if beside == 2:
        return start, _both(_somebody(rng, used), _somebody(rng, used)), used
    return start, _somebody(rng, used, not plural and rng.random() < 0.3) if beside else _nobody(rng), used


def _closing(rng: Random, group: str, action: str, preposition: str, nouns: int, plural: bool, used: set[str]) -> tuple:
    """What follows the antecedent in its sentence, and the sentence after it, together with so many nouns."""
    rival = _rival(rng, group) if nouns and rng.random() < 0.45 else Phrase()
    left = nouns - bool(rival.english)
    beside = rng.randint(0, min(left, 1 if plural else 2)) if preposition else 0
    if preposition == "to" and not beside and action in ("give", "lend", "send", "show") or left - beside > 2:
        raise Unfit
    rest = Phrase()
    for place in range(beside):
        link = one(preposition, PREPOSITIONS[preposition]) if not place or preposition == "to" else Phrase()
        rest = rest + (fixed("and=et") if place else Phrase()) + link + _somebody(rng, used).phrase
    if rival.english:
        rest = rest + rival
    elif rng.random() < 0.4:
        rest = rest + adverbial(rng, "past")
    behind = left - beside
    speaks = behind or rng.random() < 0.15
    return rest, _aside(rng, behind, used, not plural and rng.random() < 0.5) if speaks else Phrase()


def _modifier(rng: Random, masculine: Noun, feminine: Noun, said) -> tuple:
    """An adjective beside the antecedent, in some texts, that suits both twins and is not what the last sentence says."""
    neutral = {
        "new",
        "old",
        "beautiful",
        "small",
        "big",
        "pretty",
        "long",
        "French",
        "American",
        "strange",
        "famous",
        "modern",
    }
    options = [a for a in adjectives_for(masculine) if a in adjectives_for(feminine) and a.english in neutral - {said.about}]
    return (rng.choice(options),) if options and rng.random() < 0.2 else ()


class _Said(NamedTuple):
    """What the last sentence says, whatever its subject's gender; `about` is its adjective."""

    write: object
    about: str

    def __call__(self, subject: Nominal) -> Phrase:
        return self.write(subject)


def _said(rng: Random, group: str, masculine: Noun, feminine: Noun, plural: bool) -> _Said:
    drawn = rng.random()
    if drawn < 0.28 and group != "food":
        return _done(rng, group, plural)
    options = [ADJECTIVES[english] for english in GROUPS[group]["several" if plural else "one"]]
    options = [a for a in options if a in adjectives_for(masculine) and a in adjectives_for(feminine)]
    if not options:
        raise Unfit
    a = rng.choice(options)
    no = "not" if rng.random() < 0.15 else ""
    degree = (
        ""
        if a.english in WHOLE
        else rng.choice(["", "very"])
        if no
        else rng.choice(["", "very", "really", "too" if a.english in TOO_MUCH else "rather"])
    )
    if a.english == "expensive" and degree == "too" and no:
        degree = ""
    short = rng.random() < 0.5
    return _Said(lambda subject: copula(subject, "imperfect", adjective(a, subject, degree), no, short), a.english)


def _done(rng: Random, group: str, plural: bool) -> _Said:
    """A sentence in which the pronoun alone shows the gender, or a participle shows it, too."""
    whom = rng.choice([("us", "nous"), ("me", "me")])
    other, n = key(), rng.randint(3, 29) * 5
    if group == "place":
        be, main = key(), key()
        return _Said(
            lambda subject: (
                subject.phrase
                + Phrase(
                    (*en("were" if subject.plural else "was", be), *en("closed", main)),
                    (
                        *fr("étaient" if subject.plural else "était", be),
                        *fr(participle("fermer", subject.gender, subject.plural), main),
                    ),
                    frozenset([("closed", subject.lemma)]),
                )
            ),
            "closed",
        )
    if group == "thing":
        return _Said(lambda subject: clause(subject, "cost", "past", rest=number(n) + one("euros", "euros")), "cost")
    if group == "seen" and rng.random() < 0.4:
        return _Said(
            lambda subject: clause(subject, "last", "past", rest=number(n + 30) + one("minutes", "minutes")), "last"
        )
    if rng.random() < 0.5 and whom[0] == "us":
        return _Said(
            lambda subject: clause(
                subject,
                "surprise",
                "past",
                pronouns=(Phrase(en("us", other), fr("nous", other)),),
                before=Nominal(Phrase(), "m", True, "us"),
            ),
            "surprise",
        )
    make, act = key(), key()
    base, infinitive = rng.choice([("laugh", "rire"), ("cry", "pleurer"), ("dream", "rêver")])
    return _Said(
        lambda subject: (
            subject.phrase
            + Phrase(
                (*en("made", make), *en(whom[0], other), *en(base, act)),
                (*fr(whom[1], other), *fr("ont" if subject.plural else "a", make), *fr("fait", make), *fr(infinitive, act)),
                frozenset([(base, subject.lemma)]),
            )
        ),
        "make",
    )


def _rival(rng: Random, group: str) -> Phrase:
    """A place that the last sentence can't be about."""
    if group in ("place", "food"):
        return Phrase()
    if group == "thing":
        return fixed(rng.choice(["in=dans this=ce village=village", "in=dans this=cette town=ville"]))
    return fixed(
        rng.choice(
            [
                "at=à the=^le theatre=théâtre",
                "at=à the=^la library=bibliothèque",
                "at=à the=^le museum=musée",
                "at=à the=^la school=école",
                "in=dans the=^le garden=jardin",
                "in=dans the=^la kitchen=cuisine",
                "at=à the=^le hotel=hôtel",
                "on=sur the=^la beach=plage",
                "in=dans the=^le park=parc",
                "in=dans the=^la house=maison",
            ]
        )
    )
