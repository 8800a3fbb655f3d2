"""The Transformer on the course's translation corpus: what it gets right, what its heads align, which pronouns agree.

Writes data/results/translation.json. Each run trains on the 14,000 pairs, with the batches, the vocabularies and the steps
of the set `recurrent_attention`; the epoch with the lowest cross-entropy on validation is scored once on test, its weights
rounded to 16 bits, as they are kept. Greedy unless it says beam.

    python -m course_utils results translation --seeds 0 1 2 3 4
"""

import copy
import functools

import torch

from course_utils.data.translations import load_translations
from course_utils.encoder_decoder import SmoothedLoss, Transformer, TransformerConfig, Translator, bleu
from course_utils.experiments.results import fingerprint
from course_utils.experiments.runner import ResultSet
from course_utils.experiments.translation_scores import (
    exact_matches,
    head_alignments,
    pronoun_answers,
    pronoun_looks,
    pronoun_texts,
    shut_answers,
    twin_answers,
)
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.training import MeanLoss, fit, seed_everything
from course_utils.training.pair_batches import PairBatches, WordList, encode_pairs
from course_utils.training.saved_models import holds_model

BATCH_SIZE = 64
MODEL = {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 2, "positions": "rotary"}
FIT = {"epochs": 12, "learning_rate": 3e-3, "weight_decay": 0.01, "warmup": 0.1}
ROWS = {"Transformer": {"smoothing": 0.1}, "no smoothing": {"smoothing": 0.0}}
KEPT = "Transformer"


@functools.cache
def translations():
    """The splits of the course's translation corpus."""
    return load_translations("translation")


@functools.cache
def word_lists() -> tuple[WordList, WordList]:
    """All words of the training split, English and French."""
    train = translations()["train"]
    return WordList.train(train["source_tokens"]), WordList.train(train["target_tokens"])


@functools.cache
def training_data() -> PairBatches:
    """The training split in batches."""
    return PairBatches(encode_pairs(translations()["train"], *word_lists()), BATCH_SIZE)


@functools.cache
def settings() -> str:
    """What every run depends on."""
    texts = [fingerprint(list(split["source"]), list(split["target"])) for split in translations().values()]
    return fingerprint(texts, BATCH_SIZE, MODEL, FIT, 1)


def wanted(seeds: list[int]) -> list[tuple[str, int]]:
    """The kept row on every seed, the other on the first three."""
    return [(row, seed) for row in ROWS for seed in (seeds if row == KEPT else seeds[:3])]


def describe(model: str) -> dict:
    """What the row changes."""
    return ROWS[model]


def new_translator(seed: int, **changes) -> Translator:
    """An untrained translator; `changes` replace numbers of MODEL."""
    seed_everything(seed)
    source_words, target_words = word_lists()
    config = TransformerConfig(target_words.vocab_size, source_words.vocab_size, **MODEL | changes)
    return Translator(Transformer(config).eval(), source_words, target_words)


def run(model: str, seed: int, state) -> dict:
    """Train one model with `fit`, score it; those of the row KEPT are kept."""
    translator = new_translator(seed)
    net = translator.model
    validation = PairBatches(encode_pairs(translations()["validation"], *word_lists()), 200)
    result = fit(net, training_data(), MeanLoss(validation, SmoothedLoss(0.0)), loss_of=SmoothedLoss(**ROWS[model]),
                 seed=seed, checkpoint=state, progress=False, **FIT)
    half = copy.deepcopy(net).half()
    net.load_state_dict(half.state_dict())                                 # rounded, as what is kept
    if model == KEPT:
        translator._replace(model=half).save(folders(seed)[1])
    return {
        "parameters": sum(p.numel() for p in net.parameters()), "seconds": round(result.seconds, 1),
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


def in_parts(translator: Translator, sources: list[list[str]], beam: int, size: int = 100) -> list[list[str]]:
    """`translator.tokens` for many sentences, those of similar length together."""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    found = {}
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        found |= zip(rows, translator.tokens([sources[i] for i in rows], beam))
    return [found[i] for i in range(len(sources))]


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


def folders(seed: int):
    """Where a kept model can be: among those that come with the course (seed 0), and among those made here."""
    name = f"translation-seed-{seed}"
    return CHECKPOINTS / ("translation" if seed == 0 else name), output_folder() / "models" / name


def trained_translator(seed: int = 0) -> Translator:
    """The trained row KEPT; it is trained if there is none (four minutes)."""
    if not any(holds_model(folder) for folder in folders(seed)):
        run(KEPT, seed, None)
    return Translator.load(next(folder for folder in folders(seed) if holds_model(folder)))


SET = ResultSet("translation", settings, wanted, describe, run)
