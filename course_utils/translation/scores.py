"""What a translation model is scored by: sentences right, and pronouns that agree with a noun.

Does: `exact_matches` by kind and length; `pronoun_answers`, which of il and elle a model prefers, also when part of the
source comes from the twin text. Does not: train, or look at single heads (the study `translation` does both).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from course_utils.encoder_decoder import Memory, Transformer, Translator
from course_utils.results import scores
from course_utils.training.pair_batches import PairBatches, encode_pairs

LENGTHS = {"1-10": (1, 10), "11-20": (11, 20), "21-30": (21, 30), "31-": (31, 1000)}    # tokens of the source
OTHER = {"Il": "Elle", "Elle": "Il", "Ils": "Elles", "Elles": "Ils"}


def length_group(tokens: Sequence[str]) -> str:
    """The group of a source by its length: '11-20'."""
    return next(name for name, (low, high) in LENGTHS.items() if low <= len(tokens) <= high)


def exact_matches(translations: Iterable[Sequence[str]], dataset) -> dict:
    """Which translations equal their references, token by token: accuracy, by kind, by source length, by `unseen`."""
    right = [list(said) == list(wanted) for said, wanted in zip(translations, dataset["target_tokens"], strict=True)]
    return scores(right, [1] * len(right), kind=dataset["kind"], length=[length_group(s) for s in dataset["source_tokens"]],
                  unseen=["unseen" if unseen else "seen" for unseen in dataset["unseen"]])


# pronouns

class Pronouns(NamedTuple):
    """Texts with a pronoun as one batch: ids and mask of the source, `read` (texts, target) what the decoder reads, `place`
    (texts,) the row that writes the pronoun, `right` and `wrong` (texts,) its two forms, `antecedent` and `pronoun` (texts,)
    source positions, `antecedent_target` (texts,) the target position, `twin` (texts,) the row of the twin, `rows` of the
    split."""

    source_ids: Tensor
    source_mask: Tensor
    read: Tensor
    place: Tensor
    right: Tensor
    wrong: Tensor
    antecedent: Tensor
    pronoun: Tensor
    antecedent_target: Tensor
    twin: Tensor
    rows: list[int]


def pronoun_texts(translator: Translator, dataset) -> Pronouns:
    """The texts of the kind pronoun of a split, each with its twin. Raises ValueError where there are none."""
    row_of = {name: row for row, name in enumerate(dataset["id"])}
    rows = [row for row, pair in enumerate(dataset["pair"]) if pair in row_of]
    if not rows:
        raise ValueError("the split has no texts with pronouns and their twins")
    chosen = dataset.select(rows)
    batch = next(PairBatches(encode_pairs(chosen, *translator[1:]), len(rows)).batches(None))
    back = torch.tensor(batch.indices).argsort()                           # into the order of the split
    ids, place = translator.target_words.ids, torch.tensor(chosen["pronoun_target"])
    said = [tokens[i] for tokens, i in zip(chosen["target_tokens"], chosen["pronoun_target"])]
    number = {row: i for i, row in enumerate(rows)}
    return Pronouns(
        batch.source_ids[back], batch.source_mask[back], batch.target_ids[back][:, :-1], place,
        torch.tensor([ids[word] for word in said]), torch.tensor([ids[OTHER[word]] for word in said]),
        torch.tensor(chosen["antecedent"]), torch.tensor(chosen["pronoun"]), torch.tensor(chosen["antecedent_target"]),
        torch.tensor([number[row_of[pair]] for pair in chosen["pair"]]), rows)


@torch.no_grad()
def pronoun_answers(model: Transformer, texts: Pronouns, memory: Memory | None = None, read: Tensor | None = None,
                    place: Tensor | None = None) -> Tensor:
    """Whether the model scores the right form of the pronoun above the wrong one: (texts,) bool, given the words before it.

    `memory`, or `read` and `place`, take the place of the texts' own.
    """
    memory = model.encode(texts.source_ids, texts.source_mask) if memory is None else memory
    x = model.decode(memory, texts.read if read is None else read).x
    logits = model.logits(x[torch.arange(len(x)), texts.place if place is None else place])
    return (logits.gather(1, texts.right[:, None]) > logits.gather(1, texts.wrong[:, None]))[:, 0]


@torch.no_grad()
def twin_answers(model: Transformer, texts: Pronouns) -> dict[str, Tensor]:
    """`pronoun_answers` when something comes from the twin, whose noun has the other gender: (texts,) bool each.

    'noun' and 'pronoun': the memory's vector at that source position; 'both' of them; 'source': all of the memory; 'French':
    the words that the decoder has written; 'all': source and French. An answer that isn't right has followed the twin.
    """
    memory, rows = model.encode(texts.source_ids, texts.source_mask), torch.arange(len(texts.rows))
    other = memory.x[texts.twin]                                           # twins are equally long

    def patched(*places):
        changed = memory.x.clone()
        for place in places:
            changed[rows, place] = other[rows, place]
        return memory._replace(x=changed)

    french = dict(read=texts.read[texts.twin], place=texts.place[texts.twin])
    return {
        "noun": pronoun_answers(model, texts, patched(texts.antecedent)),
        "pronoun": pronoun_answers(model, texts, patched(texts.pronoun)),
        "both": pronoun_answers(model, texts, patched(texts.antecedent, texts.pronoun)),
        "source": pronoun_answers(model, texts, memory._replace(x=other)),
        "French": pronoun_answers(model, texts, memory, **french),
        "all": pronoun_answers(model, texts, memory._replace(x=other), **french),
    }
