"""Skeletons of reviews: everything that is drawn before there is a label.

What this module does: it draws targets, asides, holders, neutral sentences and decoys, and puts the sentences in
order. What it does not do: choose labels or the opinions that decide them; `build.py` does.
"""

import re
from collections import Counter
from dataclasses import dataclass
from random import Random

from grammar import (
    FORM_OF_SLOT,
    OPINION_SLOT,
    Bank,
    OpinionSlot,
    draw,
    fill,
    fill_neutral,
    opinion_names,
    realise,
    slot_names,
    wording,
)

DECOY_SHARE = 0.2
FILM_SHARE = 0.35          # where an opinion may be about the film or a part of it
NEUTRAL_WEIGHTS = {        # how many neutral sentences a review gets: weights for 0, 1, 2, …
    "plain": [10, 30, 36, 18, 5, 1],
    "negation": [10, 30, 36, 18, 5, 1],
    "order": [20, 46, 25, 8, 1],
    "distant": [12, 38, 30, 13, 5, 2],
}
MAX_SENTENCES = 8
PRONOUNS = {"he": ("him", "his"), "she": ("her", "her")}


@dataclass
class Skeleton:
    """A review before its label: sentences in order, each a template whose opinion slots are still open.

    `roles` names each deciding slot's part: 'label' (its polarity is the label), 'flip' (the opposite), or for
    `distant` 'holder' and 'other'. Decoys are filled already. `verdict` holds the two wordings of a verdict.
    `taken` are values that must not come again in this review, `usage` how often each opinion decided so far.
    """

    kind: str
    frame: str
    sentences: list[str]
    slots: list[OpinionSlot]
    roles: dict[str, str]
    paired: bool
    unseen: bool
    verdict: dict[int, str] | None
    taken: set
    usage: Counter


def fill_context(template: str, bank: Bank, rng: Random, taken: set) -> str:
    """Fill tags, asides, dates and relations: whatever is neither an opinion, a target nor a holder."""
    values = {}
    for name in slot_names(template):
        base = name.rstrip("0123456789") if name != "past2" else name
        if base in bank.slots and not OPINION_SLOT.match(name):
            options = bank.slots[base] + ([""] * len(bank.slots[base]) if base == "tag" else [])
            values[name] = draw(options, rng, taken)
    return fill(template, values)


def slot_index(name: str) -> str:
    """The number at a slot's end: 'adj2' gives '2', 'adj' gives ''."""
    return name[len(name.rstrip("0123456789")):]


def fill_targets(template: str, bank: Bank, rng: Random, taken: set, same_aspect: bool) -> tuple[str, dict[str, str]]:
    """Choose what each opinion is about. Returns the template and the aspect of each index ('', '2', '3').

    {target} is the film in a third of the cases, else a part of it; {part2} is always a part; opinions with no
    target of their own are about the film. No aspect comes twice in a sentence.
    """
    parts = [aspect for aspect in bank.targets if aspect != "film"]
    values, aspects = {"film": rng.choice(bank.targets["film"])}, {}
    for name in slot_names(template):
        if name.startswith(("target", "part")):
            index = slot_index(name)
            free = [aspect for aspect in parts if aspect not in aspects.values()]
            may_be_film = name.startswith("target") and "film" not in aspects.values() and "{film}" not in template
            aspects[index] = "film" if may_be_film and rng.random() < FILM_SHARE else rng.choice(free)
            values[name] = draw(bank.targets[aspects[index]], rng, taken)
    if same_aspect:
        aspects["2"] = aspects.get("", "film")
    return fill(template, values), aspects


def add_claims(template: str, form: str, bank: Bank, rng: Random) -> str:
    """Replace {c1} and {c2} by claims drawn apart, '{c1}' -> 'it struck me as {x1}'."""
    claims = rng.sample(bank.claims[form], 2) if "{c1}" in template else ["", ""]
    for index, claim in enumerate(claims, start=1):
        template = template.replace(f"{{c{index}}}", fill(claim, {"o": f"{{x{index}}}"}))
    return template


def deciding_sentences(frame: dict, bank: Bank, rng: Random, taken: set) -> tuple[list[str], list[OpinionSlot]]:
    """The deciding sentences of a frame with everything filled but the opinions, and their slots."""
    has_pair = "decides" in frame
    forms = frame.get("forms", ["adj", "adj", "np"] if "{c1}" in frame["text"] else ["adj"])
    form = rng.choice(forms)
    template = add_claims(frame["text"], form, bank, rng) if has_pair else frame["text"]
    if form != "adj":                                      # only films are 'a delight' or 'a bore'
        template = template.replace("{target}", "{film}")
    template, aspects = fill_targets(template, bank, rng, taken, frame.get("same_aspect", False))
    template = fill_context(template, bank, rng, taken)
    slots = []
    for name in opinion_names(template):
        kind = OPINION_SLOT.match(name)[1]
        aspect = aspects.get("" if has_pair else slot_index(name), "film")
        slot_form = form if kind == "x" else FORM_OF_SLOT[kind]
        slots.append(OpinionSlot(name, slot_form, aspect, negated=frame.get("flip", frame["id"].startswith("pair"))))
    return template.split(" || "), slots


def draw_holder(classes: list[str], bank: Bank, rng: Random, taken: set) -> tuple[str, tuple[str, str]]:
    """Whose opinion it is: a name, a relation, a text or an early note of the writer's own; with 'him', 'his'."""
    holder_class = rng.choice(classes)
    if holder_class != "person":
        name = draw(bank.slots["paper" if holder_class == "text" else "note"], rng, taken)
        return name, ("me", "my")
    gender = rng.choice(["he", "she"])
    if rng.random() < 0.7:
        return draw(bank.names[gender], rng, taken), PRONOUNS[gender]
    return draw(bank.relations[gender], rng, taken), PRONOUNS[gender]


def numbered(template: str, number: int) -> str:
    """Give the opinion slots of a second opinion sentence their own names: {adj} -> {adj5} for number 5."""
    return fill(template, {name: f"{{{name.rstrip('0123456789')}{number}}}" for name in opinion_names(template)})


def distant_sentences(frames: tuple[dict, dict], two_holders: bool, bank: Bank, rng: Random, taken: set):
    """Opinion sentence(s) and verdict sentence of a distant review, in their order in the text.

    Returns sentences, slots, roles and the verdict's two wordings.
    """
    opinion, verdict = frames
    classes = [c for c in opinion["holder"] if c in verdict.get("holder", ["person", "text", "note"])]
    holder, speaker = draw_holder(["person"] if two_holders else classes, bank, rng, taken)
    statements, slots, roles = [], [], {}
    template, aspects = fill_targets(opinion["text"], bank, rng, taken, opinion.get("same_aspect", False))
    people = [(holder, speaker, "holder")]
    if two_holders:
        people.append((*draw_holder(["person"], bank, rng, taken), "other"))
        rng.shuffle(people)
    for number, (name, who, role) in enumerate(people):
        sentence = fill(template, {"holder": name})
        sentence = numbered(sentence, 5) if number else sentence
        statements.append(sentence)
        for slot in opinion_names(sentence):
            kind = OPINION_SLOT.match(slot)[1]
            aspect = aspects.get("", "film") if kind in ("adj",) else "film"
            slots.append(OpinionSlot(slot, FORM_OF_SLOT[kind], aspect, who))
            roles[slot] = role
    remark = fill(verdict["text"], {"holder": holder})
    order = [*statements, remark] if rng.random() < 0.6 else [remark, *statements]
    return order, slots, roles, {0: verdict["confirm"], 1: verdict["turn"]}


def decoy_sentence(bank: Bank, rng: Random, taken: set) -> str:
    """An opinion about something else, of either polarity, already filled in: it is no evidence."""
    frame = rng.choice(bank.frames["decoy"])
    name = opinion_names(frame["text"])[0]
    slot = OpinionSlot(name, FORM_OF_SLOT[OPINION_SLOT.match(name)[1]], "film")
    phrase = rng.choice(bank.candidates(slot, rng.randrange(2)))
    taken.add(phrase.text)
    return realise(frame["text"], {}, {name: wording(phrase, slot)})[0]


def neutral_sentences(count: int, avoid: list[str], bank: Bank, rng: Random, taken: set) -> list[str]:
    """Neutral sentences of different topics."""
    frames = [frame for frame in bank.neutral if frame["topic"] not in avoid]
    topics = rng.sample(sorted({frame["topic"] for frame in frames}), count)
    return [
        fill_neutral(rng.choice([frame for frame in frames if frame["topic"] == topic])["text"], bank, rng, taken)
        for topic in topics
    ]


def arrange(deciding: list[str], neutral: list[str], decoy: str | None, rng: Random) -> list[str]:
    """Put neutral sentences before, between and after the deciding ones, which keep their order.

    A decoy never comes between deciding sentences, nor before a sentence that says 'it': it must be plain what
    'it' is.
    """
    gaps = len(deciding) - 1
    places = [rng.randrange(-1, gaps + 1) if gaps and rng.random() < 0.5 else rng.choice([-1, gaps]) for _ in neutral]
    if gaps and rng.random() < 0.25:                       # now and then everything comes in between
        places = [rng.randrange(gaps) for _ in neutral]
    before = [sentence for sentence, place in zip(neutral, places, strict=True) if place == -1]
    order = list(before)
    for number, sentence in enumerate(deciding):
        order.append(sentence)
        order += [text for text, place in zip(neutral, places, strict=True) if place == number]
    if decoy:
        last = max(order.index(sentence) for sentence in deciding)
        spots = [*range(len(before) + 1), *range(last + 1, len(order) + 1)]
        clear = [spot for spot in spots if spot == len(order) or not re.search(r"\bit\b", order[spot].lower())]
        order.insert(rng.choice(clear or [len(order)]), decoy)
    return order


def draw_skeleton(kind: str, frames, unseen: bool, bank: Bank, rng: Random, usage: Counter) -> Skeleton:
    """Everything about a review but its label and its opinions. `frames` is a frame or (opinion, verdict, two)."""
    taken: set = set()
    verdict = None
    if kind == "distant":
        opinion, remark, two_holders = frames
        deciding, slots, roles, verdict = distant_sentences((opinion, remark), two_holders, bank, rng, taken)
        name, paired, avoid = f"{opinion['id']}+{remark['id']}", two_holders, ["company", "poster_trailer"]
    else:
        deciding, slots = deciding_sentences(frames, bank, rng, taken)
        paired, avoid, name = "decides" in frames, frames.get("avoid", []), frames["id"]
        turned = f"x{3 - frames['decides']}" if paired else None
        roles = {slot.name: "flip" if slot.name == turned or frames.get("flip") else "label" for slot in slots}
        if kind == "order":
            avoid = [*avoid, "screening_time", "cinema", "source", "poster_trailer", "leisure", "afterwards"]
    count = rng.choices(range(len(NEUTRAL_WEIGHTS[kind])), NEUTRAL_WEIGHTS[kind])[0]
    has_decoy = count > 0 and rng.random() < DECOY_SHARE
    if has_decoy:
        avoid = [*avoid, "before_film"]
    count = min(count, MAX_SENTENCES - len(deciding) - has_decoy)
    neutral = neutral_sentences(count, avoid, bank, rng, taken)
    decoy = decoy_sentence(bank, rng, taken) if has_decoy else None
    sentences = arrange(deciding, neutral, decoy, rng)
    return Skeleton(kind, name, sentences, slots, roles, paired, unseen, verdict, taken, usage)
