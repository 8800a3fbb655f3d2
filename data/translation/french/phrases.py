"""Noun phrases, adjectives and clauses in both languages at once.

Does: agreement, the side of the adjective, 'des' that becomes 'de', negation in two parts, object pronouns before the verb,
auxiliaries, agreement of the participle with the subject or with an object before it. Does not: choose words.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from french.lexicon import NAMES, Adjective, Noun
from french.verbs import Verb, conjugate, english_be, participle, verb
from french.words import Phrase, Unfit, Word, en, fr, key, one

__all__ = ["Nominal", "PRONOUNS", "adjective", "clause", "copula", "genitive", "name", "nominal", "plain", "pronoun"]

POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "your": ("votre", "votre", "vos"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
# English subject: (French, gender, person, plural); 'they' alone has no gender, so it's written by its antecedent
PRONOUNS = {
    "I": ("je", "m", 1, False),
    "he": ("il", "m", 3, False),
    "she": ("elle", "f", 3, False),
    "we": ("nous", "m", 1, True),
    "you": ("vous", "m", 2, True),
}
NOBODY = ("nobody", "nothing")
NEGATIONS = {"not": "pas", "never": "jamais", "no longer": "plus", "not yet": "pas encore"}


class Nominal(NamedTuple):
    """A noun phrase or a pronoun as a subject or an object."""

    phrase: Phrase
    gender: str
    plural: bool
    lemma: str
    person: int = 3
    head: frozenset[int] = frozenset()  # the key of the noun
    indefinite: bool = False  # its article becomes 'de' after a negation


def plain(text: str, french: str) -> Phrase:
    """Two stretches of which word for word belongs together; '_' joins words to one."""
    phrase = Phrase()
    for left, right in zip(text.split(), french.split(), strict=True):
        phrase += one(left.replace("_", " "), right.replace("_", " "))
    return phrase


def _article(determiner: str, noun: Noun, plural: bool, early: bool) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    shared, feminine = key(), noun.gender == "f"
    place = 2 if plural else int(feminine)
    if determiner == "the":
        return en("the", shared), fr(("le", "la", "les")[place], shared, article=True)
    if determiner == "a":
        return en("a", shared), fr("une" if feminine else "un", shared)
    if determiner == "some" and not plural:  # partitive: 'du thé', 'de la soupe', 'de l'eau'
        return en("some", shared), fr("de", shared) + fr("la" if feminine else "le", shared, article=True)
    if determiner == "some":
        return en("some", shared), fr("de" if early else "des", shared)
    if determiner == "this":
        word = ("ce", "cette", "ces")[place]
        return en("these" if plural else "this", shared), fr(word, shared, before_vowel="cet" if word == "ce" else "")
    if determiner == "every":
        return en("every", shared), fr("chaque", shared)
    if determiner == "many":
        return en("many", shared), fr("beaucoup de", shared)
    if determiner == "several":
        return en("several", shared), fr("plusieurs", shared)
    form = POSSESSIVES[determiner][place]
    vowel = form[0] + "on" if form in ("ma", "sa") else ""  # 'mon amie', 'son histoire'
    return en(determiner, shared), fr(form, shared, before_vowel=vowel)


def _modified(noun: Noun, plural: bool, adjectives: tuple[Adjective, ...]) -> tuple[Phrase, bool, frozenset[int]]:
    """The noun with its adjectives, whether a French adjective comes first, and the noun's key."""
    head = key()
    early = [a for a in adjectives if a.side == "before"]
    late = [a for a in adjectives if a.side == "after"]
    keys = {a.english: key() for a in adjectives}
    english = [word for a in (*early, *late) for word in en(a.english, keys[a.english])]
    french = [
        word
        for a in early
        for word in fr(a.form(noun.gender, plural), keys[a.english], "" if plural or noun.gender == "f" else a.before_vowel)
    ]
    french += fr(noun.french[plural], head)
    for place, a in enumerate(late):
        if place:
            french += fr("et")
        french += fr(a.form(noun.gender, plural), keys[a.english])
    combinations = frozenset((a.english, noun.lemma) for a in adjectives)
    return Phrase((*english, *en(noun.english[plural], head)), tuple(french), combinations), bool(early), head


def nominal(
    noun: Noun, determiner: str, *adjectives: Adjective, plural: bool = False, counted: Phrase | None = None
) -> Nominal:
    """A noun with its determiner ('the', 'a', 'some', 'this', 'my' …) or a number before it, and its adjectives."""
    rest, early, head = _modified(noun, plural, adjectives)
    if counted:
        phrase = counted + rest
        if determiner:
            before = _article(determiner, noun, plural, False)
            phrase = Phrase(*before) + phrase
    else:
        phrase = Phrase(*_article(determiner, noun, plural, early)) + rest
    return Nominal(
        phrase, noun.gender, plural, noun.lemma, head=head, indefinite=determiner in ("a", "some") and not counted
    )


def name(rng: Random, gender: str | None = None) -> Nominal:
    """Somebody's first name, the same in both languages."""
    gender = gender or rng.choice("mf")
    chosen = rng.choice(NAMES[gender])
    return Nominal(one(chosen, chosen), gender, False, chosen)


def pronoun(english: str) -> Nominal:
    """A subject pronoun: 'I', 'he', 'she', 'we' or 'you'."""
    french, gender, person, plural = PRONOUNS[english]
    return Nominal(one(english, french), gender, plural, english, person)


def genitive(owner: Nominal, noun: Noun, *adjectives: Adjective, plural: bool = False) -> Nominal:
    """'the actress's new film', 'le nouveau film de l'actrice': 's is linked to 'de' and to the article."""
    rest, _, head = _modified(noun, plural, adjectives)
    shared = key()
    article = "les" if plural else "la" if noun.gender == "f" else "le"
    mark = "'" if owner.plural and owner.phrase.english[-1].text.endswith("s") else "'s"
    phrase = Phrase(
        (*owner.phrase.english, Word(mark, shared), *rest.english),
        (*fr(article, shared, article=True), *rest.french, *fr("de", shared), *owner.phrase.french),
        owner.phrase.combinations | rest.combinations,
    )
    return Nominal(phrase, noun.gender, plural, noun.lemma, head=head)


def adjective(a: Adjective, subject: Nominal, degree: str = "") -> Phrase:
    """An adjective after 'to be', with 'very', 'too', 'rather' or 'really' before it."""
    degrees = {"very": "très", "too": "trop", "rather": "plutôt", "really": "vraiment", "so": "si"}
    phrase = one(degree, degrees[degree]) if degree else Phrase()
    shared = key()
    return phrase + Phrase(
        en(a.english, shared), fr(a.form(subject.gender, subject.plural), shared), frozenset([(a.english, subject.lemma)])
    )


def _negated(negation: str) -> tuple[tuple[Word, ...], tuple[Word, ...], frozenset[int]]:
    """'ne', the second part, and their key."""
    if not negation:
        return (), (), frozenset()
    shared = key()
    return fr("ne", shared), fr(NEGATIONS[negation], shared), shared


def copula(subject: Nominal, tense: str, rest: Phrase, negation: str = "", short: bool = True) -> Phrase:
    """'to be' with an adjective or a place: tense 'present', 'imperfect' or 'future'."""
    ne, pas, no = _negated(negation)
    shared = key()
    if tense == "future":
        forms = en("will", shared)
        english = (*forms, *_english_not(negation, no, short), *en("be", shared))
    else:
        english = (*en(english_be(tense, subject.person, subject.plural), shared), *_english_not(negation, no, short))
    french = (*ne, *fr(conjugate("être", tense, subject.person, subject.plural), shared), *pas)
    return subject.phrase + _shortened(Phrase(english, french)) + rest


def _english_not(negation: str, keys: frozenset[int], short: bool) -> tuple[Word, ...]:
    if not negation:
        return ()
    if negation in ("not", "not yet"):
        return en("n't" if short and negation == "not" else "not", keys)
    return en(negation, keys)


def _shortened(phrase: Phrase) -> Phrase:
    """'will' and 'n't' become 'wo' and 'n't'; 'am n't' becomes 'am not'."""
    words = list(phrase.english)
    for place, word in enumerate(words):
        if word.text == "n't" and place:
            if words[place - 1].text == "am":
                words[place] = word._replace(text="not")
            elif words[place - 1].text == "will":
                words[place - 1] = words[place - 1]._replace(text="wo")
    return phrase._replace(english=tuple(words))


def clause(
    subject: Nominal,
    base: str | Verb,
    tense: str,
    thing: Nominal | None = None,
    *,
    negation: str = "",
    short: bool = True,
    pronouns: tuple[Phrase, ...] = (),
    before: Nominal | None = None,
    adverb: Phrase | None = None,
    rest: Phrase | None = None,
    without_subject: bool = False,
) -> Phrase:
    """A clause with a verb.

    tense: 'present', 'past' (compound in French), 'perfect' (has seen), 'used' (used to, imperfect), 'progressive' (was
        -ing, imperfect) or 'future'.
    thing: the object after the verb. pronouns: object pronouns, English ones after the verb, French ones before it.
    before: what the participle of a verb with 'avoir' agrees with, if it stands before the verb.
    adverb: a word before the English and after the French verb. rest: what follows.
    without_subject: leaves the subject out, for relative clauses.
    """
    v = verb(base) if isinstance(base, str) else base
    ne, pas, no = _negated(negation)
    main, helper = key(), key()
    third = subject.person == 3 and not subject.plural
    if tense == "present" and v.base == v.past and not third and negation not in ("not", "not yet"):
        raise Unfit  # 'you read' is 'vous lisez' and 'vous avez lu'
    adverb, rest = adverb or Phrase(), rest or Phrase()
    english = _english_verb(v, tense, third, subject, negation, no, short, main, helper, adverb.english)
    clitics = tuple(word for pronoun in pronouns for word in pronoun.french)
    if tense in ("past", "perfect"):
        auxiliary = conjugate(v.auxiliary, "present", subject.person, subject.plural)
        agrees = subject if v.auxiliary == "être" else before
        form = participle(v.french, agrees.gender, agrees.plural) if agrees else participle(v.french)
        carried = helper if tense == "perfect" or negation in ("not", "not yet") else main
        french = (*ne, *clitics, *fr(auxiliary, carried), *pas, *adverb.french, *fr(form, main))
    else:
        form = conjugate(
            v.french, {"used": "imperfect", "progressive": "imperfect"}.get(tense, tense), subject.person, subject.plural
        )
        french = (*ne, *clitics, *fr(form, main | helper), *pas, *adverb.french)
    said = tuple(word for pronoun in pronouns for word in pronoun.english)
    objects = _object(thing, negation or subject.lemma in NOBODY) if thing else Phrase()
    combinations = objects.combinations | adverb.combinations
    if thing:
        combinations |= {(v.base, thing.lemma)}
    elif before:
        combinations |= {(v.base, before.lemma)}
    whole = _shortened(Phrase((*english, *said), french, combinations)) + objects + rest
    if without_subject:
        return whole
    return subject.phrase + whole


def _object(thing: Nominal, negation: str) -> Phrase:
    """After a negation 'un', 'une', 'des', 'du' become 'de', and 'some' becomes 'any'."""
    words, english = thing.phrase.french, thing.phrase.english
    if negation and thing.indefinite:
        if english[0].text == "some":
            english = (english[0]._replace(text="any"), *english[1:])
        partitive = words[0].text == "de" and len(words) > 1 and words[1].article
        words = (*fr("de", words[0].keys), *words[1 + partitive :])
    return thing.phrase._replace(french=words, english=english)


def _english_verb(
    v: Verb,
    tense: str,
    third: bool,
    subject: Nominal,
    negation: str,
    no,
    short: bool,
    main,
    helper,
    adverb: tuple[Word, ...],
) -> tuple[Word, ...]:
    refused = negation in ("not", "not yet")
    nots = _english_not(negation, no, short)
    if tense == "present":
        if refused:
            return (*en("does" if third else "do", helper), *nots, *adverb, *en(v.base, main))
        return (*nots, *adverb, *en(v.third if third else v.base, main))
    if tense == "past":
        if refused:
            return (*en("did", helper), *nots, *adverb, *en(v.base, main))
        return (*nots, *adverb, *en(v.past, main))
    if tense == "perfect":
        yet = en("yet", no) if negation == "not yet" else ()
        return (*en("has" if third else "have", helper), *nots, *yet, *adverb, *en(v.participle, main))
    if tense == "used":
        return (*en("used to", helper), *adverb, *en(v.base, main))
    if tense == "progressive":
        return (*en(english_be("imperfect", subject.person, subject.plural), helper), *nots, *adverb, *en(v.ing, main))
    return (*en("will", helper), *nots, *adverb, *en(v.base, main))
