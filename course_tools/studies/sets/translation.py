"""The Transformer on the course's translation corpus: what it gets right, what its heads align, which pronouns agree.

Writes data/results/translation.json. Each run trains on the 14,000 pairs, with the batches, the vocabularies and the steps
of the set `recurrent_attention`; the epoch with the lowest cross-entropy on validation is scored once on test, its weights
rounded to 16 bits, as they are kept. Greedy unless it says beam.

    python -m course_tools results translation --seeds 0 1 2 3 4
"""

import functools
from typing import NamedTuple

import torch
from torch import Tensor

from course_tools.studies.runner import ResultSet
from course_utils.attention_maps import HeadGates
from course_utils.encoder_decoder import Transformer, Translator, bleu
from course_utils.results import fingerprint
from course_utils.training.pair_batches import PairBatches, encode_pairs
from course_utils.translation.scores import Pronouns, exact_matches, pronoun_answers, pronoun_texts, twin_answers
from course_utils.translation.transformers import (
    BATCH_SIZE,
    FIT,
    MODEL,
    in_parts,
    keep_translator,
    train_translator,
    training_data,
    translations,
)

KEPT = "Transformer"
ROWS = {"Transformer": {"smoothing": 0.1}, "no smoothing": {"smoothing": 0.0}}


@functools.cache
def settings() -> str:
    """What every run depends on."""
    texts = [fingerprint(list(split["source"]), list(split["target"])) for split in translations().values()]
    return fingerprint(texts, BATCH_SIZE, MODEL, FIT, 1)


def run(model: str, seed: int, state) -> dict:
    """Train one model with `fit`, score it; those of the row KEPT are kept."""
    translator, result = train_translator(seed, **ROWS[model], checkpoint=state)
    if model == KEPT:
        keep_translator(seed, translator)
    return {
        "parameters": sum(p.numel() for p in translator.model.parameters()), "seconds": round(result.seconds, 1),
        "best_epoch": result.best_epoch, "steps": FIT["epochs"] * len(training_data()),
        "history": [{key: round(value, 4) for key, value in epoch.items()} for epoch in result.history],
        "test": scored(translator),
    }


def scored(translator: Translator, dataset=None) -> dict:
    """Everything that a run says of a split, by default test."""
    dataset = translations()["test"] if dataset is None else dataset
    greedy, beam = (in_parts(translator, dataset["source_tokens"], beam) for beam in (1, 5))
    aligned, texts = head_alignments(translator, dataset), pronoun_texts(translator, dataset)
    return {
        **exact_matches(greedy, dataset),
        "beam": exact_matches(beam, dataset),
        "bleu": {"greedy": round(bleu(greedy, dataset["target_tokens"]).score, 2),
                 "beam": round(bleu(beam, dataset["target_tokens"]).score, 2)},
        "alignment_error_rate": {name: rounded(rates) for name, rates in aligned._asdict().items()},
        "pronouns": pronouns(translator, texts, dataset),
    }


def pronouns(translator: Translator, texts, dataset) -> dict:
    """Accuracy on the pronouns, overall and by distance; with parts of the twin; with each head shut; where heads look."""
    model = translator.model
    right = pronoun_answers(model, texts)
    chosen = dataset.select(texts.rows)
    groups = {f"{low}-{high}": [low <= d <= high for d in chosen["distance"]] for low, high in ((2, 5), (6, 10), (11, 18))}
    by_sentences = {str(n): [s == n for s in chosen["sentences"]] for n in (1, 2)}
    return {
        "texts": len(texts.rows), "accuracy": share(right), "both_of_a_pair": share(right & right[texts.twin]),
        "by_distance": by_group(right, groups), "by_sentences": by_group(right, by_sentences),
        "twin": {name: share(answers) for name, answers in twin_answers(model, texts).items()},
        "shut": rounded(shut_answers(model, texts)),
        "looks": {name: rounded(weights) for name, weights in pronoun_looks(model, texts).items()},
    }


def by_group(right: torch.Tensor, groups: dict[str, list[bool]]) -> dict[str, float]:
    """`share` of each group that isn't empty."""
    return {name: share(right[torch.tensor(members)]) for name, members in groups.items() if any(members)}


def share(flags: torch.Tensor) -> float:
    """The proportion that is true."""
    return round(flags.double().mean().item(), 4)


def rounded(table: torch.Tensor) -> list[list[float]]:
    """A table of numbers with four decimals."""
    return [[round(value, 4) for value in row] for row in table.tolist()]


class Aligned(NamedTuple):
    """Alignment error rates of each head of cross-attention, (layers, heads): by the row that `writes` the word, and by the
    row that `reads` it, one step later."""

    writes: Tensor
    reads: Tensor


@torch.no_grad()
def head_alignments(translator: Translator, dataset, batch_size: int = 100) -> Aligned:
    """Read the references with teacher forcing; link each target word to the source word with the largest weight."""
    model, source_words, target_words = translator
    data = PairBatches(encode_pairs(dataset, source_words, target_words), batch_size)
    gold = [set(map(tuple, links)) for links in dataset["alignment"]]
    found = {"writes": 0, "reads": 0}
    words = sum(len(tokens) for tokens in dataset["target_tokens"])
    for batch in data.batches(None):
        result = model(batch.source_ids, batch.source_mask, batch.target_ids[:, :-1], need_weights=True)
        best = torch.stack(result.weights.cross).argmax(dim=-1)              # (layers, batch, heads, target)
        links = torch.zeros(len(batch.indices), batch.target_ids.shape[1], batch.source_ids.shape[1], dtype=torch.bool)
        for row, i in enumerate(batch.indices):
            for source, target in gold[i]:
                links[row, target, source] = True
        for name, shift in (("writes", 0), ("reads", 1)):                  # row 0 reads <bos> and writes word 0
            rows = best[..., shift:]                                       # (layers, batch, heads, words or one more)
            wanted = links[:, : rows.shape[-1]]                            # (batch, words, source)
            hits = wanted[None, :, None].expand(*rows.shape, -1).gather(-1, rows[..., None])[..., 0]
            found[name] = found[name] + hits.sum(dim=(1, 3))               # (layers, heads)
    every = words + sum(map(len, gold))
    return Aligned(*(1 - 2 * found[name].double() / every for name in ("writes", "reads")))


def shut_answers(model: Transformer, texts: Pronouns) -> Tensor:
    """Accuracy on the pronouns with one head shut at a time: (layers of `HeadGates`, heads)."""
    shape = HeadGates(model).gates.shape
    accuracy = torch.zeros(shape)
    for layer in range(shape[0]):
        for head in range(shape[1]):
            gates = torch.ones(shape)
            gates[layer, head] = 0
            with HeadGates(model, gates):
                accuracy[layer, head] = pronoun_answers(model, texts).float().mean()
    return accuracy


@torch.no_grad()
def pronoun_looks(model: Transformer, texts: Pronouns) -> dict[str, Tensor]:
    """The weight on the noun, by head, (layers, heads) each: of the English pronoun in the encoder, and of the row that
    writes the French one, on the English noun ('cross') and on the French noun that was written ('decoder')."""
    maps = model(texts.source_ids, texts.source_mask, texts.read, need_weights=True).weights
    rows = torch.arange(len(texts.rows))
    of = {"encoder": (maps.encoder, texts.pronoun, texts.antecedent), "cross": (maps.cross, texts.place, texts.antecedent),
          "decoder": (maps.decoder, texts.place, texts.antecedent_target + 1)}           # <bos> comes first
    return {name: torch.stack(layers)[:, rows, :, query, key].mean(dim=0) for name, (layers, query, key) in of.items()}


SET = ResultSet("translation", ROWS, settings, run, seeds=lambda row, asked: asked if row == KEPT else asked[:3])
