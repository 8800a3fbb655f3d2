"""What is wrong with a French sentence, found without the grammar that wrote it.

The genders below are a list of their own, and the rules look at the text alone. They find articles, adjectives and
participles that don't agree, missing and needless elisions and contractions, and doubled words. What they can't decide they
let pass.
"""

import re

MASCULINE = """acteur ami appartement armoire-m article billet bureau bus café carton chapeau chapitre chat château chien
cinéma collègue concert cousin court-métrage dessert dessin dialogue discours documentaire détective début enfant espion
fauteuil film
fils frère garçon gâteau homme hôtel jardin journal journaliste-m lait livre magasin magazine manteau marché matin message
miroir moment mois musée médecin novel oncle opéra parapluie parc peintre-m père piano poème pont prince producteur
professeur
restaurant roi roman réalisateur sac samedi sandwich scénario scénariste-m serveur soir tableau taxi thriller thé théâtre
tiroir titre train téléphone vélo village voisin voleur western écrivain été hall grand-père repas siècle an jour siège euro
photographe-m pianiste-m""".split()
FEMININE = """actrice affiche année bague bande-annonce bande-son beach-f bibliothèque boulangerie boîte caméra chaise
chanson chemise clé comédie critique cuisine eau exposition femme fenêtre fille fin gare grand-mère guitare histoire héroïne
infirmière
intrigue jupe lampe lettre limonade maison montre mère mélodie omelette page personne photo pizza place plage porte princesse
pièce reine robe rue salade scène semaine serveuse sorcière soupe station-f sœur table tante tarte valise ville voiture
écharpe
école église émission""".split()
GENDER = {word.removesuffix("-m"): "m" for word in MASCULINE} | {word.removesuffix("-f"): "f" for word in FEMININE}
GENDER |= {"héros": "m"}
INVARIABLE = {"fils", "héros", "repas", "discours", "bus", "mois"}  # the same in the plural

# determiners: gender (or None for both) and number
DETERMINERS = {
    "le": ("m", 1),
    "la": ("f", 1),
    "les": (None, 2),
    "un": ("m", 1),
    "une": ("f", 1),
    "des": (None, 2),
    "ce": ("m", 1),
    "cet": ("m", 1),
    "cette": ("f", 1),
    "ces": (None, 2),
    "mon": (None, 1),
    "ma": ("f", 1),
    "mes": (None, 2),
    "son": (None, 1),
    "sa": ("f", 1),
    "ses": (None, 2),
    "notre": (None, 1),
    "nos": (None, 2),
    "votre": (None, 1),
    "vos": (None, 2),
    "leur": (None, 1),
    "leurs": (None, 2),
    "du": ("m", 1),
    "au": ("m", 1),
    "aux": (None, 2),
    "chaque": (None, 1),
    "plusieurs": (None, 2),
    "aucun": ("m", 1),
    "aucune": ("f", 1),
}
# adjectives: the four forms, some with a fifth before a vowel
ADJECTIVES = [
    line.split()
    for line in """
beau belle beaux belles bel
nouveau nouvelle nouveaux nouvelles nouvel
vieux vieille vieux vieilles vieil
bon bonne bons bonnes
mauvais mauvaise mauvais mauvaises
excellent excellente excellents excellentes
petit petite petits petites
grand grande grands grandes
joli jolie jolis jolies
long longue longs longues
ennuyeux ennuyeuse ennuyeux ennuyeuses
mystérieux mystérieuse mystérieux mystérieuses
heureux heureuse heureux heureuses
nerveux nerveuse nerveux nerveuses
sérieux sérieuse sérieux sérieuses
délicieux délicieuse délicieux délicieuses
curieux curieuse curieux curieuses
courageux courageuse courageux courageuses
jaloux jalouse jaloux jalouses
intéressant intéressante intéressants intéressantes
émouvant émouvante émouvants émouvantes
surprenant surprenante surprenants surprenantes
charmant charmante charmants charmantes
brillant brillante brillants brillantes
violent violente violents violentes
lent lente lents lentes
patient patiente patients patientes
élégant élégante élégants élégantes
original originale originaux originales
compliqué compliquée compliqués compliquées
fatigué fatiguée fatigués fatiguées
cassé cassée cassés cassées
sucré sucrée sucrés sucrées
bondé bondée bondés bondées
français française français françaises
anglais anglaise anglais anglaises
espagnol espagnole espagnols espagnoles
américain américaine américains américaines
italien italienne italiens italiennes
gentil gentille gentils gentilles
discret discrète discrets discrètes
inquiet inquiète inquiets inquiètes
bleu bleue bleus bleues
vert verte verts vertes
noir noire noirs noires
gris grise gris grises
blanc blanche blancs blanches
lourd lourde lourds lourdes
léger légère légers légères
cher chère chers chères
rond ronde ronds rondes
bruyant bruyante bruyants bruyantes
froid froide froids froides
chaud chaude chauds chaudes
ensoleillé ensoleillée ensoleillés ensoleillées
fermé fermée fermés fermées
""".strip().splitlines()
]
ADJECTIVES += [
    [word, word, word + "s", word + "s"]
    for word in """jeune triste drôle étrange ridicule prévisible romantique simple
célèbre moderne terrible timide rouge jaune confortable calme sombre vide propre sale""".split()
]
BEFORE_NOUN = {
    form
    for forms in ADJECTIVES
    for form in forms
    if forms[0] in "beau nouveau vieux bon mauvais excellent petit grand joli long jeune".split()
}
FORMS: dict[str, set] = {}
for _forms in ADJECTIVES:
    for _place, _form in enumerate(_forms):
        FORMS.setdefault(_form, set()).add(("mfmfm"[_place], (1, 1, 2, 2, 1)[_place]))

ASPIRATED = ("héros", "haut", "huit", "onz", "hall", "honte", "hasard", "hamburger", "hibou", "oui")
VOWELS = tuple("aeiouyàâéèêëîïôûùœh")
ÊTRE = {"est": 1, "était": 1, "sera": 1, "sont": 2, "étaient": 2, "seront": 2}
ADVERBS = {"pas", "plus", "jamais", "très", "trop", "plutôt", "vraiment", "moins", "aussi", "si"}
WENT = {"allé", "arrivé", "parti", "resté", "revenu", "tombé", "venu", "né", "rentré", "sorti"}


def vowel(word: str) -> bool:
    """Whether words before this one are elided."""
    return word.lower().startswith(VOWELS) and not word.lower().startswith(ASPIRATED)


def noun_features(word: str) -> tuple[str, int] | None:
    """Gender and number of a noun of the list (number 0 where the word has one form for both)."""
    word = word.lower()
    if word in GENDER:
        return GENDER[word], 0 if word in INVARIABLE else 1
    for ending, instead in (
        ("s", ""),
        ("x", ""),
        ("aux", "al"),
        ("s-annonces", "-annonce"),
        ("s-son", "-son"),
        ("s-pères", "-père"),
        ("s-mères", "-mère"),
    ):
        if word.endswith(ending) and word.removesuffix(ending) + instead in GENDER:
            return GENDER[word.removesuffix(ending) + instead], 2
    return None


def _clash(features: set, gender: str, number: int) -> bool:
    return not any((g is None or g == gender) and (not n or not number or n == number) for g, n in features)


def _phrase_problems(tokens: list[str]) -> list[str]:
    """Determiner, adjectives before, noun, adjectives after."""
    problems, words = [], [token.lower() for token in tokens]
    for i, word in enumerate(words):
        features = noun_features(word)
        if features is None or word in FORMS:
            continue
        gender, number = features
        j = i - 1
        while j >= 0 and words[j] in BEFORE_NOUN:
            if _clash(FORMS[words[j]], gender, number):
                problems.append(f"{words[j]} {word}")
            j -= 1
        if (
            j >= 0 and words[j] in DETERMINERS and words[j - 1] not in ("et", "cent", "mille")
        ):  # not 'vingt et un', 'cent un'
            expected, amount = DETERMINERS[words[j]]
            feminine_mon = words[j] in ("mon", "ton", "son") and gender == "f"
            if _clash({(expected, amount)}, gender, number) or feminine_mon and not vowel(words[j + 1]):
                problems.append(f"{words[j]} {word}")
            number = number or amount
        k = i + 1
        while k < len(words) and (
            words[k] in FORMS
            and words[k] not in BEFORE_NOUN
            or words[k] == "et"
            and k + 1 < len(words)
            and words[k + 1] in FORMS
        ):
            if words[k] != "et" and _clash(FORMS[words[k]], gender, number):
                problems.append(f"{word} {words[k]}")
            k += 1
    return problems


def _subject(words: list[str], verb: int) -> tuple[str, int] | None:
    """The gender and number of the subject right before the verb: a pronoun, or a noun whose determiner is there."""
    i = verb - 1
    while i >= 0 and words[i] in ("ne", "n'"):
        i -= 1
    pronouns = {"il": ("m", 1), "elle": ("f", 1), "ils": ("m", 2), "elles": ("f", 2)}
    if i >= 0 and words[i] in pronouns:
        return pronouns[words[i]] if words[i - 1 : i] != ["et"] else None  # 'sa cousine et elle sont'
    while i >= 0 and words[i] in FORMS and words[i] not in BEFORE_NOUN:
        i -= 1
    features = noun_features(words[i]) if i >= 0 else None
    start = i - 1
    while start >= 0 and words[start] in BEFORE_NOUN:
        start -= 1
    before = words[start - 1] if start > 0 else "."
    if features and start >= 0 and words[start] in DETERMINERS and before in (".", "est-ce", "que", "qu'", ",", "?"):
        return features[0], features[1] or DETERMINERS[words[start]][1]
    return None


def _predicate_problems(tokens: list[str]) -> list[str]:
    """Adjectives and participles after 'être', and participles after 'que', 'la', 'les', 'l''."""
    problems, words = [], [token.lower() for token in tokens]
    for i, word in enumerate(words):
        if word not in ÊTRE:
            continue
        subject = _subject(words, i)
        if subject is None:
            continue
        if subject[1] != ÊTRE[word]:
            problems.append(f"{words[i - 1]} {word}")
        j = i + 1
        while j < len(words) and words[j] in ADVERBS:
            j += 1
        if j < len(words) and words[j] in FORMS and _clash(FORMS[words[j]], *subject):
            problems.append(f"{words[i - 1]} {word} {words[j]}")
        stem = re.fullmatch(r"(.+?)(e?)(s?)", words[j]) if j < len(words) else None
        for base in WENT:
            if stem and words[j] in (base, base + "e", base + "s", base + "es"):
                right = base + "e" * (subject[0] == "f") + "s" * (subject[1] == 2)
                if words[j] != right:
                    problems.append(f"{words[i - 1]} {word} {words[j]}")
    return problems


def _relative_problems(tokens: list[str]) -> list[str]:
    """'la scène que … a filmée': the participle after 'que' agrees with the noun before it."""
    problems, words = [], [token.lower() for token in tokens]
    for i, word in enumerate(words):
        if word not in ("que", "qu'") or not i:
            continue
        k = i - 1
        while k >= 0 and words[k] in FORMS and words[k] not in BEFORE_NOUN:
            k -= 1
        features = noun_features(words[k])
        start = k - 1
        while start >= 0 and words[start] in BEFORE_NOUN:
            start -= 1
        if features is None or start < 0 or words[start] not in DETERMINERS:
            continue
        gender, number = features[0], features[1] or DETERMINERS[words[start]][1]
        for j in range(i + 1, min(i + 7, len(words) - 1)):
            if (
                words[j] in ("a", "ont", "ai", "avons", "avez")
                and words[j + 1] not in ADVERBS
                and re.search(r"(?:é|u|i|is|it|ert|int)e?s?$", words[j + 1])
            ):
                form = words[j + 1]
                if (
                    gender == "f"
                    and not re.search(r"e?es?$" if number == 2 else r"e$", form)
                    or number == 2
                    and not form.endswith("s")
                    or gender == "m"
                    and re.search(r"(?:ée|ue|ie|ite|ise|erte|inte)s?$", form)
                ):
                    problems.append(f"{words[k]} que … {form}")
                break
    return problems


def _elision_problems(tokens: list[str]) -> list[str]:
    problems, words = [], [token.lower() for token in tokens]
    for word, after in zip(words, words[1:]):
        if word in ("le", "la", "de", "que", "ne", "je", "me", "se", "ma", "sa", "ta", "beau", "nouveau", "vieux") and vowel(
            after
        ):
            if not (word in ("beau", "nouveau", "vieux") and noun_features(after) is None) and word != "vieux":
                problems.append(f"{word} {after}")
        if word == "ce" and vowel(after) or word == "si" and after in ("il", "ils"):
            problems.append(f"{word} {after}")
        if word.endswith("'") and word != "aujourd'" and not vowel(after):
            problems.append(f"{word} {after}")
        if word in ("cet", "bel", "nouvel", "vieil") and not vowel(after):
            problems.append(f"{word} {after}")
        if (word, after) in {("de", "le"), ("de", "les"), ("à", "le"), ("à", "les")}:
            problems.append(f"{word} {after}")
        if word == after and word not in ("nous", "vous"):
            problems.append(f"{word} {after}")
    return problems


def problems(tokens: list[str]) -> list[str]:
    """All that is wrong with the tokens of a text; empty if nothing was found."""
    tokens = [token.replace("’", "'") for token in tokens]
    return _phrase_problems(tokens) + _predicate_problems(tokens) + _relative_problems(tokens) + _elision_problems(tokens)
