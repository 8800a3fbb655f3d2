"""Every model of the scoreboard on the course's own reviews: a set of runs for course_tools/studies/command.py.

Writes data/results/scoreboard.json and, from the seeds with the best validation accuracy, the small models under
data/checkpoints that the notebooks look into.

    python -m course_tools results scoreboard [--seeds 0 1 2]
"""

import dataclasses
import functools
import time
from pathlib import Path

import torch

from course_tools.studies.needs import texts_from
from course_tools.studies.runner import ResultSet, Trained, scored_reviews, scored_split, train_and_score, twin_gap
from course_utils import baselines
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.embeddings import BagOfEmbeddings
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.recipes import RECIPES
from course_utils.results import fingerprint, read_runs, split_fingerprints
from course_utils.tokenization import WordTokenizer
from course_utils.training import BatchOptions, encode_reviews, seed_everything
from course_utils.training.saved_models import holds_model, read_plain_texts

RECIPE = RECIPES["reviews"]
TEXT_MODELS = {
    "majority": baselines.majority,
    "naive Bayes": baselines.naive_bayes,
    "1–3-grams, logistic regression": baselines.ngram_regression,
}


def network(model: str, vocab_size: int) -> torch.nn.Module:
    """An untrained network of the scoreboard by its name."""
    config = ClassifierConfig(vocab_size=vocab_size, **RECIPE.model)
    start = {name: RECIPE.model[name] for name in ("embedding_std", "embedding_scale")}
    makers = {
        "bag of embeddings": lambda: BagOfEmbeddings(vocab_size),
        "LSTM, one way, mean": lambda: baselines.RecurrentClassifier(vocab_size, **start),
        "BiLSTM, max": lambda: baselines.RecurrentClassifier(vocab_size, bidirectional=True, pooling="max", **start),
        "attention without positions": lambda: SelfAttentionClassifier(dataclasses.replace(config, positions="none")),
        "attention, the full model": lambda: SelfAttentionClassifier(config),
    }
    return makers[model]()


NETWORKS = [
    "bag of embeddings", "LSTM, one way, mean", "BiLSTM, max", "attention without positions", "attention, the full model",
]
KEPT = {"attention without positions": "reviews-without-positions", "attention, the full model": "reviews"}


@functools.cache
def settings() -> str:
    """What every run depends on: the recipe, and the texts and labels of all splits."""
    return fingerprint(RECIPE, split_fingerprints(scored_reviews()))


def run(model: str, seed: int, state) -> dict | Trained:
    """Fit or train, and score, one model; keep its weights if they are the best so far."""
    if model in TEXT_MODELS:
        return run_text_model(model)
    return run_network(model, seed, state)


def run_text_model(model: str) -> dict:
    """Fit and score a model that takes texts."""
    data = scored_reviews()
    begun = time.perf_counter()
    fitted = TEXT_MODELS[model]().fit(data["train"]["text"], data["train"]["label"])
    seconds = time.perf_counter() - begun
    last = fitted[-1]
    parameters = next((getattr(last, name).size for name in ("coef_", "feature_log_prob_") if hasattr(last, name)), 1)
    scored = {
        split: scored_split(data[split], fitted.predict(data[split]["text"]))
        for split in ("validation", "test", "handwritten")
    }
    return {"parameters": int(parameters), "seconds": round(seconds, 1), **scored}


def run_network(model: str, seed: int, state) -> Trained:
    """Train and score one seed of a network."""
    data = scored_reviews()
    tokenizer = WordTokenizer.train(data["train"]["text"], RECIPE.max_size, RECIPE.min_freq)
    encoded = {split: encode_reviews(data[split], tokenizer) for split in data}
    seed_everything(seed)
    net = network(model, tokenizer.vocab_size)
    options = BatchOptions(**RECIPE.batches)
    changed = {"learning_rate": 1e-2, "weight_decay": 0.01} if model.startswith("bag") else {}
    made = train_and_score(net, data, encoded, options, seed, state, **{**RECIPE.fit, **changed})
    made.own["twin_gap"] = twin_gap(net, data["test"], encoded["test"], options)
    if model in KEPT:
        ReviewClassifier(net.cpu(), tokenizer).save(trained_folder(model, seed))
    return made


def trained_folder(model: str, seed: int) -> Path:
    """Where a trained network is kept until `finish` has chosen."""
    return output_folder() / "scoreboard" / f"{KEPT[model]}-seed-{seed}"


def finish() -> None:
    """Copy the seed with the best validation accuracy, if it was trained here, to data/checkpoints."""
    for model, name in KEPT.items():
        runs = [run for run in read_runs("scoreboard") if run["model"] == model]
        best = max(runs, key=lambda run: run["validation"]["accuracy"])
        if holds_model(trained_folder(model, best["seed"])):
            ReviewClassifier.load(trained_folder(model, best["seed"])).save(CHECKPOINTS / name)
            read_plain_texts(CHECKPOINTS / name)        # the reviews are plain


SET = ResultSet(
    "scoreboard", dict.fromkeys([*TEXT_MODELS, *NETWORKS], {}), settings, run,
    depends_on=texts_from("reviews", "handwritten"), seeds=lambda row, asked: [0] if row in TEXT_MODELS else asked,
    finish=finish,
)
