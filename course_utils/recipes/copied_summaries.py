"""17's Transformer with and without a pointer, on the course's reviews and their copied summaries.

Does: the reviews, the vocabulary, untrained models, greedy summaries and their scores, for the extra `summaries_by_copying`
and the study of the same name. Does not: define the pointer (the extra does), or train.
"""

import functools
from collections.abc import Sequence

import torch
from torch import nn

from course_utils.data import load_reviews
from course_utils.encoder_decoder import Transformer, TransformerConfig, beam_search
from course_utils.summaries_by_copying import (
    PointerTransformer,
    decode_copies,
    encode_copies,
    rouge_1,
    rouge_l,
    summaries,
)
from course_utils.training import seed_everything
from course_utils.training.pair_batches import EncodedPairs, PairBatches, WordList, encode_pairs

MIN_FREQ, BATCH_SIZE, LONGEST = 50, 64, 60
BOTH = ("source_tokens", "target_tokens")
MODEL = {"d_model": 64, "num_heads": 4, "d_ff": 128, "num_layers": 2, "positions": "rotary"}
FIT = {"epochs": 8, "learning_rate": 3e-3, "weight_decay": 0.01, "warmup": 0.1}
WITH, WITHOUT = "with a pointer", "without a pointer"
NEW_NAMES = ("Avery", "Jules", "Kiran", "Marlow", "Noor", "Quinn", "Remy", "Robin", "Rowan", "Sasha", "Sidney", "Tove")


@functools.cache
def corpus() -> dict[str, dict[str, list]]:
    """`summaries` of each split of the course corpus."""
    return {name: summaries(split) for name, split in load_reviews("reviews").items()}


@functools.cache
def words() -> WordList:
    """The vocabulary of both sides: words that occur MIN_FREQ times in the reviews of the training split."""
    return WordList.train(corpus()["train"]["source_tokens"], MIN_FREQ)


def encoded(rows: dict[str, list], pointer: bool) -> EncodedPairs:
    """Rows as ids, in which unknown words have ids of their own, or all have that of <unk>."""
    return encode_copies(rows, words()) if pointer else encode_pairs(rows, words(), words())


@functools.cache
def names() -> set[str]:
    """First names in the summaries of training: words inside a sentence that the corpus never writes in small letters."""
    train = corpus()["train"]
    small = {word for tokens in train["source_tokens"] for word in tokens}
    inside = {word for tokens, kind in zip(train["target_tokens"], train["kind"]) if kind == "distant"
              for before, word in zip(tokens, tokens[1:]) if before not in (".", "!", "?")}
    return {word for word in inside if word[0].isupper() and word != "I" and word.lower() not in small}


@functools.cache
def name_twins() -> tuple[dict[str, list], dict[str, list]]:
    """Test reviews whose summary names one person by a name of the vocabulary; and the same with a name nobody has read."""
    test, kept, changed = corpus()["test"], [], []
    for i, target in enumerate(test["target_tokens"]):
        found = set(target) & names()
        if len(found) == 1 and found <= words().ids.keys():
            new = {found.pop(): NEW_NAMES[len(kept) % len(NEW_NAMES)]}
            kept.append(i)
            changed.append({key: [new.get(word, word) for word in test[key][i]] for key in BOTH})
    return ({key: [column[i] for i in kept] for key, column in test.items()},
            {key: [one[key] for one in changed] for key in BOTH})


def new_model(pointer: bool, seed: int) -> Transformer:
    """An untrained model of a row."""
    seed_everything(seed)
    config = TransformerConfig(words().vocab_size, words().vocab_size, **MODEL)
    return (PointerTransformer if pointer else Transformer)(config)


@torch.no_grad()
def write(model: nn.Module, rows: dict[str, list]) -> list[list[str]]:
    """Greedy summaries of some rows, at most LONGEST words each."""
    model.eval()
    pairs, found = encoded(rows, isinstance(model, PointerTransformer)), {}
    for batch in PairBatches(pairs, 100).batches(None):
        for i, candidates in zip(batch.indices, beam_search(model, *batch[:2], beam=1, alpha=0.0, max_len=LONGEST)):
            found[i] = decode_copies(candidates[0].ids, rows["source_tokens"][i], words())
    return [found[i] for i in range(len(found))]


def mean(values: Sequence[float]) -> float:
    """The mean, with four decimals; 0 for none."""
    return round(sum(values) / len(values), 4) if len(values) else 0.0


def scored(written: list[list[str]], rows: dict[str, list]) -> dict:
    """Exact matches (by kind, if rows have one), ROUGE, and the proportions of written words that are <unk> or made up."""
    targets = rows["target_tokens"]
    right = [said == wanted for said, wanted in zip(written, targets, strict=True)]
    said = [(word, word in set(source)) for tokens, source in zip(written, rows["source_tokens"]) for word in tokens]
    known = [set(target) <= words().ids.keys() for target in targets]
    result = {
        "reviews": len(targets), "accuracy": mean(right),
        "rouge_1": mean([rouge_1(*both) for both in zip(written, targets)]),
        "rouge_l": mean([rouge_l(*both) for both in zip(written, targets)]),
        "unknown": mean([word == "<unk>" for word, _ in said]),
        "made_up": mean([not there and word != "<unk>" for word, there in said]),
        "by_words": {name: mean([hit for hit, all_known in zip(right, known) if all_known == flag])
                     for name, flag in (("known", True), ("unknown", False))},
        "reviews_by_words": {"known": sum(known), "unknown": len(known) - sum(known)},
    }
    if "kind" in rows:
        kinds = sorted(set(rows["kind"]))
        result["by_kind"] = {kind: mean([hit for hit, one in zip(right, rows["kind"]) if one == kind]) for kind in kinds}
        result["reviews_by_kind"] = {kind: rows["kind"].count(kind) for kind in kinds}
    return result
