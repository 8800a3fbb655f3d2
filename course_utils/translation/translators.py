"""The recurrent translators of notebook 16: what they're trained and scored on, and where the trained ones are kept.

    corpus = translation_corpus()                        # splits, word lists, encoded pairs
    model = kept_translator("additive")                  # comes with the course: data/checkpoints/recurrent-additive

Does: encode the course's translations, score a translator (`translation_scores`, `alignment_scores`), save and read one.
Does not: train (the set `recurrent_attention` does).
"""

import copy
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from datasets import DatasetDict
from torch import nn

from course_utils.data.translations import load_translations
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.recurrent_attention import Seq2Seq, Seq2SeqConfig, alignment_error_rate, greedy, links_of
from course_utils.results import right_bits
from course_utils.training.pair_batches import EncodedPairs, PairBatches, WordList, encode_pairs
from course_utils.training.saved_models import holds_model, read_model, write_model

LENGTHS = {"1-10": (1, 10), "11-20": (11, 20), "21-30": (21, 30), "31-": (31, 1000)}       # tokens of the English sentence


class TranslationCorpus(NamedTuple):
    """The `splits` as they're loaded, a `WordList` of each language from the training split, and the encoded `pairs`."""

    splits: DatasetDict
    english: WordList
    french: WordList
    pairs: dict[str, EncodedPairs]


@functools.cache
def translation_corpus() -> TranslationCorpus:
    """The course's translations, encoded."""
    splits = load_translations("translation")
    english, french = (WordList.train(splits["train"][f"{side}_tokens"]) for side in ("source", "target"))
    return TranslationCorpus(splits, english, french, {name: encode_pairs(split, english, french)
                                                       for name, split in splits.items()})


def gold_links(split) -> list[set[tuple[int, int]]]:
    """The gold alignment of every row, as sets of (source, target)."""
    return [{tuple(link) for link in links} for links in split["alignment"]]


def length_group(words: int) -> str:
    """The group of LENGTHS that a number of words belongs to."""
    return next(name for name, (low, high) in LENGTHS.items() if low <= words <= high)


@torch.no_grad()
def translation_scores(model: nn.Module, pairs: EncodedPairs, groups: dict[str, Sequence[str]]) -> dict:
    """Exact match of greedy translations, overall and for each group, and what happens after a translation's first mistake.

    `right` says of every pair whether its translation is word for word the reference, four to a hexadecimal digit (read by
    `results.right_of`). `after_first_mistake` counts the reference's words after the first word that is wrong, in the
    translations that have as many words as their reference: how many are right where the model reads its own words, and
    where it reads the reference's.
    """
    model.eval()
    right, words, own, forced, sentences = {}, 0, 0, 0, 0
    for batch in PairBatches(pairs, 100).batches(None):
        written = greedy(model, batch.source_ids, batch.source_mask).ids
        choices = model(batch.source_ids, batch.source_mask, batch.target_ids[:, :-1]).logits.argmax(dim=-1)
        for i, said, chosen in zip(batch.indices, written, choices.tolist()):
            asked = pairs.target[i][1:-1]
            right[i] = said == asked
            if right[i] or len(said) != len(asked):
                continue
            first = next(k for k in range(len(asked)) if said[k] != asked[k])
            sentences, words = sentences + 1, words + len(asked) - first - 1
            own += sum(a == b for a, b in zip(said[first + 1 :], asked[first + 1 :]))
            forced += sum(a == b for a, b in zip(chosen[first + 1 : len(asked)], asked[first + 1 :]))
    hits = [right[i] for i in range(len(pairs.source))]
    result = {"accuracy": round(sum(hits) / len(hits), 4), "reviews": len(hits)}
    for name, members in groups.items():
        counts = {group: sum(member == group for member in members) for group in sorted(set(members))}
        result[f"by_{name}"] = {
            group: round(sum(hit for hit, member in zip(hits, members, strict=True) if member == group) / count, 4)
            for group, count in counts.items()}
        result[f"reviews_by_{name}"] = counts
    result["right"] = right_bits(hits)
    result["after_first_mistake"] = {"sentences": sentences, "words": words, "right_own": own, "right_forced": forced}
    return result


@torch.no_grad()
def alignment_scores(model: nn.Module, pairs: EncodedPairs, gold: Sequence[set]) -> dict:
    """Alignment error rate of the strongest weight, while the model reads the reference: overall, and with links shifted.

    `shifted` takes the weights of each word for those of the word after it ("later") or before it ("earlier"): if one of
    them is better, the weights belong to another step.
    """
    model.eval()
    found = [set() for _ in pairs.source]
    for batch in PairBatches(pairs, 100).batches(None):
        weights = model(batch.source_ids, batch.source_mask, batch.target_ids[:, :-1], need_weights=True).weights
        for i, one in zip(batch.indices, weights):
            found[i] = links_of(one[: len(pairs.target[i]) - 2])           # without the row that writes <eos>
    moved = {name: [{(s, t + by) for s, t in links if 0 <= t + by < len(target) - 2}
                    for links, target in zip(found, pairs.target)] for name, by in (("later", 1), ("earlier", -1))}
    return {"aer": round(alignment_error_rate(found, gold), 4),
            "shifted": {name: round(alignment_error_rate(links, gold), 4) for name, links in moved.items()}}


# keeping

def keep_translator(name: str, model: Seq2Seq) -> Path:
    """Save a trained translator in outputs/models, in half precision; in data/checkpoints it would come with the course."""
    corpus, half = translation_corpus(), copy.deepcopy(model).half()
    return write_model(output_folder() / "models" / f"recurrent-{name}", half, corpus.french,
                       {"source_words": corpus.english.words}, Seq2Seq)


def kept_translator(name: str) -> Seq2Seq:
    """The translator of this name in evaluation mode, from data/checkpoints or outputs/models.

    Raises FileNotFoundError if there is none, with the command that makes it, and ValueError for one that was trained with
    other word lists.
    """
    again = "python -m course_tools results recurrent_attention --seeds 0 --again"
    places = [folder / f"recurrent-{name}" for folder in (CHECKPOINTS, output_folder() / "models")]
    place = next((place for place in places if holds_model(place)), None)
    if place is None:
        raise FileNotFoundError(f"there is no translator {name!r} in {places[0].parent}; make it: {again}")
    saved, corpus = read_model(place, Seq2Seq, Seq2SeqConfig, ["source_words"]), translation_corpus()
    if (saved.extra["source_words"], saved.tokenizer.words) != (corpus.english.words, corpus.french.words):
        raise ValueError(f"{place.name} was trained with other words than the corpus has now; train it again: {again}")
    return saved.model.float()
