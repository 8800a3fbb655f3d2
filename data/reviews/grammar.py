"""The bank of sentence templates, and how they are filled in.

What this module does: it reads the TOML files in `bank/`, holds the opinions, fills templates and keeps track of
which characters are evidence. What it does not do: decide anything. `build.py` decides which frames, opinions and
labels go together.

A template is a sentence with slots and brackets:

    "[Nobody] could call {target} {adj}."

Words in square brackets are evidence; a name in braces is a slot. `realise` turns a filled template into text and
evidence spans.
"""

import re
import tomllib
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random

BANK = Path(__file__).resolve().parent / "bank"
SLOT = re.compile(r"\{([a-z_0-9]+)\}")
MARK = re.compile(r"\{[a-z_0-9]+\}|\[[^\]]*\]")
OPINION_SLOT = re.compile(r"^(adj|a_adj|np|vp|x)(\d?)$")

NEGATIVE, POSITIVE = 0, 1
POLARITY_NAMES = {NEGATIVE: "negative", POSITIVE: "positive"}
FORM_OF_SLOT = {"adj": "adj", "a_adj": "adj", "np": "np", "vp": "vp"}


@dataclass(frozen=True)
class Phrase:
    """One expression that can decide a label.

    `text` is the expression ('dull', 'a delight', 'moved {me} to tears'), `form` one of adj, np, vp, `aspect` what
    it is said of, `strong` whether it must not be negated.
    """

    text: str
    polarity: int
    form: str
    aspect: str
    strong: bool = False


@dataclass(frozen=True)
class OpinionSlot:
    """A place for an opinion in a sentence: its name in the template, its form, aspect and speaker.

    `speaker` fills {me} and {my} of a verb phrase; `negated` bars strong words.
    """

    name: str
    form: str
    aspect: str
    speaker: tuple[str, str] = ("me", "my")
    negated: bool = False


@dataclass
class Bank:
    """Everything read from the bank folder: phrases, deciding frames, neutral frames and slot values."""

    phrases: tuple[Phrase, ...]
    frames: dict
    neutral: list[dict]
    slots: dict[str, list[str]]
    names: dict[str, list[str]]
    targets: dict[str, list[str]]
    claims: dict[str, list[str]]
    relations: dict[str, list[str]]
    _fitting: dict = field(default_factory=dict, repr=False)
    _ranks: dict = field(default_factory=dict, repr=False)

    def candidates(self, slot: OpinionSlot, polarity: int) -> list[Phrase]:
        """Phrases of one polarity that fit a slot, in the order of the bank."""
        key = (slot.form, slot.aspect, slot.negated, polarity)
        if key not in self._fitting:
            self._fitting[key] = [
                phrase for phrase in self.phrases
                if phrase.polarity == polarity and phrase.form == slot.form
                and (slot.form != "adj" or phrase.aspect == slot.aspect)
                and not (slot.negated and phrase.strong)
            ]
        return self._fitting[key]

    def rank(self, frame: str, phrase: Phrase) -> int:
        """The place of a phrase among those of its form and polarity, shuffled anew for each frame.

        The words for a whole film come first and the strong ones after them, so that any eight neighbours in a
        list of eight or more have eight different remainders; `build.py` divides the combinations by them.
        """
        key = (frame, phrase.form, phrase.polarity)
        if key not in self._ranks:
            like = {}
            for other in self.phrases:
                if (other.form, other.polarity) == key[1:]:
                    like.setdefault(other.text, (other.aspect != "film", other.strong))
            order = sorted(like, key=lambda text: (like[text], sha256(f"{frame} {text}".encode()).digest()))
            self._ranks[key] = {text: place for place, text in enumerate(order)}
        return self._ranks[key][phrase.text]


def load_phrases(opinions: dict) -> list[Phrase]:
    """All opinion expressions of opinions.toml."""
    phrases = []
    for polarity, name in POLARITY_NAMES.items():
        for aspect, lists in opinions["adjectives"].items():
            phrases += [Phrase(text, polarity, "adj", aspect) for text in lists[name]]
            phrases += [Phrase(text, polarity, "adj", aspect, True) for text in lists.get("strong_" + name, [])]
        phrases += [Phrase(text, polarity, "vp", "film") for text in opinions["verbs"][name]]
        phrases += [Phrase(text, polarity, "np", "film") for text in opinions["nouns"][name]]
    return phrases


def load_bank(folder: Path = BANK) -> Bank:
    """Read the bank folder. Lists keep the order of the files, so that a seed gives the same reviews again."""
    def read(name: str) -> dict:
        with open(folder / name, "rb") as file:
            return tomllib.load(file)

    opinions, neutral_slots = read("opinions.toml"), read("slots.toml")
    return Bank(
        phrases=tuple(load_phrases(opinions)),
        frames=read("frames.toml"),
        neutral=read("neutral.toml")["frame"],
        slots=neutral_slots["slots"] | opinions["slots"],
        names=neutral_slots["names"],
        targets=opinions["targets"],
        claims=opinions["claims"],
        relations=opinions["relations"],
    )


def slot_names(template: str) -> list[str]:
    """Names in braces, in order: '{target} was {adj}.' gives ['target', 'adj']."""
    return SLOT.findall(template)


def opinion_names(template: str) -> list[str]:
    """Those slots of a template that opinions fill, in order."""
    return [name for name in slot_names(template) if OPINION_SLOT.match(name)]


def fill(template: str, values: dict[str, str]) -> str:
    """Replace the slots that `values` names; leave the others for later."""
    return SLOT.sub(lambda match: values.get(match[1], match[0]), template)


def with_article(word: str) -> str:
    """'dull' gives 'a dull', 'engaging' gives 'an engaging'. No opinion in the bank has a silent h or a spoken 'yoo'."""
    return ("an " if word[0] in "aeiou" else "a ") + word


def wording(phrase: Phrase, slot: OpinionSlot) -> str:
    """The words of a phrase as its slot asks for them: with an article, or with the right pronouns."""
    if slot.name.startswith("a_adj"):
        return with_article(phrase.text)
    me, my = slot.speaker
    return fill(phrase.text, {"me": me, "my": my})


def realise(template: str, evidence: dict[str, str], plain: dict[str, str]) -> tuple[str, list[list[int]]]:
    """A sentence and its evidence spans, from a template whose remaining slots are opinions and verdicts.

    Values in `evidence` become evidence, values in `plain` (decoys) do not, words in brackets do.
    The first letter is made a capital; spans are [start, end) in characters of the sentence.
    """
    text, spans, position = "", [], 0
    for match in MARK.finditer(template):
        text += template[position:match.start()]
        mark, position = match[0], match.end()
        inside = fill(mark[1:-1], evidence | plain) if mark[0] == "[" else None
        if mark[0] == "{":
            name = mark[1:-1]
            inside = evidence[name] if name in evidence else plain[name]
            if name in plain:
                text += inside
                continue
        spans.append([len(text), len(text) + len(inside)])
        text += inside
    text += template[position:]
    return text[0].upper() + text[1:], spans


def draw(values: list, rng: Random, taken: set, skewed: bool = False) -> str:
    """A value not in `taken`, which it joins; so no town or name comes twice in a review.

    `skewed` makes the first values of a list common and the last ones rare, as words are in any text (Zipf's law).
    """
    free = [value for value in values if value not in taken] or values
    value = rng.choices(free, [1 / (place + 2) for place in range(len(free))])[0] if skewed else rng.choice(free)
    taken.add(value)
    return value


def fill_neutral(template: str, bank: Bank, rng: Random, taken: set) -> str:
    """Fill the slots of a neutral sentence; a name and its pronouns agree, men and women come equally often."""
    he_or_she = rng.choice(["he", "she"])
    pronouns = {"he": ("he", "him", "his"), "she": ("she", "her", "her")}[he_or_she]
    values = dict(zip(("subj", "obj", "poss"), pronouns, strict=True))
    for name in slot_names(template):
        if name == "name":
            values[name] = draw(bank.names[he_or_she], rng, taken)
        elif name == "surname":
            values[name] = draw(bank.names["surname"], rng, taken, skewed=True)
        elif name not in values:
            values[name] = draw(bank.slots[name], rng, taken, skewed=True)
    text = fill(template, values)
    return text[0].upper() + text[1:]
