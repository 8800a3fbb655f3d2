"""French and English verbs: present, compound past, imperfect and future.

Does: conjugate both, and say which auxiliary a French verb takes. Does not: place pronouns and negations (`phrases` does).
"""

from __future__ import annotations

from typing import NamedTuple

from french.lexicon import BANK

__all__ = ["AUXILIARIES", "VERBS", "Verb", "conjugate", "english_be", "participle", "verb"]

# present of je, tu, il, nous, vous, ils; participle; stems of the imperfect and of the future
IRREGULAR = {
    "être": ("suis es est sommes êtes sont", "été", "ét", "ser"),
    "avoir": ("ai as a avons avez ont", "eu", "av", "aur"),
    "aller": ("vais vas va allons allez vont", "allé", "all", "ir"),
    "voir": ("vois vois voit voyons voyez voient", "vu", "voy", "verr"),
    "lire": ("lis lis lit lisons lisez lisent", "lu", "lis", "lir"),
    "écrire": ("écris écris écrit écrivons écrivez écrivent", "écrit", "écriv", "écrir"),
    "décrire": ("décris décris décrit décrivons décrivez décrivent", "décrit", "décriv", "décrir"),
    "prendre": ("prends prends prend prenons prenez prennent", "pris", "pren", "prendr"),
    "comprendre": ("comprends comprends comprend comprenons comprenez comprennent", "compris", "compren", "comprendr"),
    "mettre": ("mets mets met mettons mettez mettent", "mis", "mett", "mettr"),
    "boire": ("bois bois boit buvons buvez boivent", "bu", "buv", "boir"),
    "suivre": ("suis suis suit suivons suivez suivent", "suivi", "suiv", "suivr"),
    "connaître": ("connais connais connaît connaissons connaissez connaissent", "connu", "connaiss", "connaîtr"),
    "reconnaître": (
        "reconnais reconnais reconnaît reconnaissons reconnaissez reconnaissent",
        "reconnu",
        "reconnaiss",
        "reconnaîtr",
    ),
    "découvrir": ("découvre découvres découvre découvrons découvrez découvrent", "découvert", "découvr", "découvrir"),
    "ouvrir": ("ouvre ouvres ouvre ouvrons ouvrez ouvrent", "ouvert", "ouvr", "ouvrir"),
    "rire": ("ris ris rit rions riez rient", "ri", "ri", "rir"),
    "dormir": ("dors dors dort dormons dormez dorment", "dormi", "dorm", "dormir"),
    "sortir": ("sors sors sort sortons sortez sortent", "sorti", "sort", "sortir"),
    "partir": ("pars pars part partons partez partent", "parti", "part", "partir"),
    "venir": ("viens viens vient venons venez viennent", "venu", "ven", "viendr"),
    "revenir": ("reviens reviens revient revenons revenez reviennent", "revenu", "reven", "reviendr"),
    "faire": ("fais fais fait faisons faites font", "fait", "fais", "fer"),
    "finir": ("finis finis finit finissons finissez finissent", "fini", "finiss", "finir"),
    "choisir": ("choisis choisis choisit choisissons choisissez choisissent", "choisi", "choisiss", "choisir"),
    "applaudir": (
        "applaudis applaudis applaudit applaudissons applaudissez applaudissent",
        "applaudi",
        "applaudiss",
        "applaudir",
    ),
    "attendre": ("attends attends attend attendons attendez attendent", "attendu", "attend", "attendr"),
    "entendre": ("entends entends entend entendons entendez entendent", "entendu", "entend", "entendr"),
    "vendre": ("vends vends vend vendons vendez vendent", "vendu", "vend", "vendr"),
    "perdre": ("perds perds perd perdons perdez perdent", "perdu", "perd", "perdr"),
    "rendre": ("rends rends rend rendons rendez rendent", "rendu", "rend", "rendr"),
    "descendre": ("descends descends descend descendons descendez descendent", "descendu", "descend", "descendr"),
    "peindre": ("peins peins peint peignons peignez peignent", "peint", "peign", "peindr"),
    "vouloir": ("veux veux veut voulons voulez veulent", "voulu", "voul", "voudr"),
    "pouvoir": ("peux peux peut pouvons pouvez peuvent", "pu", "pouv", "pourr"),
    "devoir": ("dois dois doit devons devez doivent", "dû", "dev", "devr"),
    "savoir": ("sais sais sait savons savez savent", "su", "sav", "saur"),
    "acheter": ("achète achètes achète achetons achetez achètent", "acheté", "achet", "achèter"),
    "promener": ("promène promènes promène promenons promenez promènent", "promené", "promen", "promèner"),
    "préférer": ("préfère préfères préfère préférons préférez préfèrent", "préféré", "préfér", "préférer"),
    "appeler": ("appelle appelles appelle appelons appelez appellent", "appelé", "appel", "appeller"),
    "envoyer": ("envoie envoies envoie envoyons envoyez envoient", "envoyé", "envoy", "enverr"),
    "essayer": ("essaie essaies essaie essayons essayez essaient", "essayé", "essay", "essaier"),
    "nettoyer": ("nettoie nettoies nettoie nettoyons nettoyez nettoient", "nettoyé", "nettoy", "nettoier"),
}
IMPERFECT = "ais ais ait ions iez aient".split()
FUTURE = "ai as a ons ez ont".split()
AUXILIARIES = {
    "aller": "être",
    "sortir": "être",
    "partir": "être",
    "venir": "être",
    "revenir": "être",
    "arriver": "être",
    "rester": "être",
    "rentrer": "être",
    "tomber": "être",
    "entrer": "être",
    "descendre": "être",
}

IRREGULAR["traduire"] = ("traduis traduis traduit traduisons traduisez traduisent", "traduit", "traduis", "traduir")
IRREGULAR["sourire"] = ("souris souris sourit sourions souriez sourient", "souri", "souri", "sourir")
IRREGULAR["répéter"] = ("répète répètes répète répétons répétez répètent", "répété", "répét", "répéter")


class Verb(NamedTuple):
    base: str
    third: str
    past: str
    participle: str
    ing: str
    french: str

    @property
    def auxiliary(self) -> str:
        return AUXILIARIES.get(self.french, "avoir")


VERBS = {}
for _line in BANK["verbs"].strip().splitlines():
    _english, _, _french = _line.partition("|")
    VERBS[_english.split()[0]] = Verb(*_english.split(), _french.strip())


def verb(base: str) -> Verb:
    return VERBS[base]


def conjugate(infinitive: str, tense: str, person: int, plural: bool) -> str:
    """The French form in 'present', 'imperfect' or 'future': conjugate('voir', 'future', 3, False) -> 'verra'."""
    place = person - 1 + 3 * plural
    if infinitive in IRREGULAR:
        present, _, imperfect, future = IRREGULAR[infinitive]
        present = present.split()
    else:
        stem = infinitive[:-2]
        soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)  # mangeons, commençait
        present = [stem + "e", stem + "es", stem + "e", soft + "ons", stem + "ez", stem + "ent"]
        imperfect, future = (stem if place in (3, 4) else soft), infinitive
    if tense == "present":
        return present[place]
    return imperfect + IMPERFECT[place] if tense == "imperfect" else future + FUTURE[place]


def participle(infinitive: str, gender: str = "m", plural: bool = False) -> str:
    """The past participle in agreement: participle('voir', 'f', True) -> 'vues'."""
    form = IRREGULAR[infinitive][1] if infinitive in IRREGULAR else infinitive[:-2] + "é"
    if plural and gender == "m" and form.endswith("s"):
        return form
    return form + ("e" if gender == "f" else "") + ("s" if plural else "")


def english_be(tense: str, person: int, plural: bool) -> str:
    """am, are, is, was or were."""
    if tense == "present":
        return "are" if plural or person == 2 else "am" if person == 1 else "is"
    return "were" if plural or person == 2 else "was"
