"""How far classifiers trained from scratch get on IMDb: a set of runs for course_tools/studies/command.py.

Writes data/results/imdb_better.json. A row is one of three things, and its name says which: a single model (ATTEMPTS), an
average of several (AVERAGES), or TF-IDF with logistic regression (TFIDF), the measure and, where a name says so, the
teacher. A teacher's probabilities for the 50,000 unlabelled reviews become labels that a student is trained on, beside
the labelled reviews. Everything was chosen on the 2,500 validation reviews; every run looks at the test reviews once.

`seconds` is the training time of a row with all that it needs (counting pairs, the members of an average, the teacher
and its labels), `cpu_seconds` the processor time of the same: on a busy machine the one to compare.

    python -m course_tools results imdb_better --jobs 1 [--seeds 0 1 2] [--only pairs]

Takes the reviews from where `imdb` does. Rows need one another, so run one job at a time. What a row says of each review,
the weights and the tokenized reviews are kept in outputs/imdb_better for the rows that need them.
"""

import functools
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from course_tools.studies.needs import IMDB
from course_tools.studies.runner import ResultSet, parameters_of
from course_tools.studies.word_pairs import WordPairClassifier, frequent_pairs
from course_utils.baselines import tfidf_regression
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.data import load_reviews, split_reviews
from course_utils.files import replacing
from course_utils.files.paths import output_folder
from course_utils.recipes import RECIPES
from course_utils.results import fingerprint, scores, split_fingerprints
from course_utils.tokenization import WordTokenizer, truncate
from course_utils.training import BatchOptions, EncodedReviews, evaluate, fit, seed_everything

RECIPE = RECIPES["imdb-fast"]
OPTIONS = BatchOptions(**RECIPE.batches)
MEMBERS = [0, 1, 2]                                     # seeds of the models that are averaged

SINGLE = "attention, imdb-fast"
PAIRS = "attention with word pairs"
TFIDF = "TF-IDF 1-2-grams, logistic regression"
PAIRS_AVERAGED = "average of 3 attention models with word pairs"
NARROW = {"d_model": 32}


class Attempt(NamedTuple):
    """A single network: what differs from the recipe's model and training, pairs or not, and its teacher's name."""

    model: dict = {}
    fit: dict = {}
    min_reviews: int = 0                                # a pair of words must be in so many; 0: no pairs
    teacher: str = ""


ATTEMPTS = {
    SINGLE: Attempt(),
    PAIRS: Attempt(model=NARROW, min_reviews=5),
    "attention with word pairs, student of that average": Attempt(NARROW, {"epochs": 1}, 10, teacher=PAIRS_AVERAGED),
    "attention with word pairs, student of TF-IDF": Attempt(NARROW, {"epochs": 1}, 10, teacher=TFIDF),
}
AVERAGES = {                                            # lists of rows; networks are averaged over MEMBERS
    "average of 3 attention models, imdb-fast": [SINGLE],
    PAIRS_AVERAGED: [PAIRS],
    "average of TF-IDF and 3 attention models with word pairs": [PAIRS_AVERAGED, TFIDF],
}


@functools.cache
def reviews() -> dict:
    """The splits of IMDb, the unlabelled reviews among them."""
    return split_reviews(load_reviews("imdb", unsupervised=True), validation=0.1, seed=0)


@functools.cache
def settings() -> str:
    """What every run depends on: the recipe, and the texts and labels of all splits."""
    return fingerprint(RECIPE, split_fingerprints(reviews()))


def describe(model: str) -> dict:
    """What the row is made of."""
    if model in ATTEMPTS:
        return {key: value for key, value in ATTEMPTS[model]._asdict().items() if value}
    return {"average_of": AVERAGES[model]} if model in AVERAGES else {}


def run(model: str, seed: int, state=None) -> dict:
    """Train or average, and score, one row. It takes minutes, and begins anew if it was interrupted: `state` is not used."""
    data, (said, facts) = reviews(), predictions(model, seed)
    scored = {split: scores((said[split] > 0.5).astype(int), data[split]["label"]) for split in ("validation", "test")}
    sizes = {split: len(data[split]) for split in data}
    return {"data": sizes, **facts, "validation_accuracy": scored["validation"]["accuracy"], **scored}


class Predictions(NamedTuple):
    """Probabilities of 'positive' by split, (reviews,) each, and what is written into the run besides."""

    probabilities: dict
    facts: dict


def kept(model: str, seed: int, what: str) -> Path:
    """Where something made of a row is kept; another name if settings or torch change."""
    made_with = fingerprint(settings(), describe(model), torch.__version__)
    folder = output_folder() / "imdb_better"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', model)}-{seed}-{made_with}{what}"


def made_once(make: Callable[..., Predictions], model: str, seed: int, ending: str) -> Predictions:
    """What make(model, seed) returned, now or the first time."""
    path = kept(model, seed, ending)
    if not path.exists():
        made = make(model, seed)
        save(path, facts=json.dumps(made.facts), **made.probabilities)
    with np.load(path) as saved:
        facts = json.loads(str(saved["facts"]))
        return Predictions({split: saved[split] for split in saved.files if split != "facts"}, facts)


def save(path: Path, **arrays) -> None:
    """Write arrays to a file at once or not at all."""
    with replacing(path) as partial, open(partial, "wb") as file:
        np.savez(file, **arrays)


def predictions(model: str, seed: int) -> Predictions:
    """What a row says of the validation and the test reviews."""
    make = average if model in AVERAGES else tfidf if model == TFIDF else network
    return made_once(make, model, seed, ".npz")


class Cost:
    """Seconds since it was made, on the clock and of the processor, and those of what was needed for it."""

    def __init__(self, *needed: dict):
        self.begun = time.perf_counter(), time.process_time()
        self.needed = needed

    def facts(self) -> dict:
        own = {"seconds": time.perf_counter() - self.begun[0], "cpu_seconds": time.process_time() - self.begun[1]}
        return {kind: round(own[kind] + sum(facts[kind] for facts in self.needed), 1) for kind in own}


def tfidf(model: str, seed: int, splits=("validation", "test")) -> Predictions:
    """TF-IDF with logistic regression on the labelled training reviews."""
    data, cost = reviews(), Cost()
    fitted = tfidf_regression(2).fit(data["train"]["text"], data["train"]["label"])
    facts = {"parameters": int(fitted[-1].coef_.size + 1), **cost.facts()}
    return Predictions({split: fitted.predict_proba(data[split]["text"])[:, 1] for split in splits}, facts)


def members(model: str) -> list[tuple[str, int]]:
    """The rows and seeds that are averaged."""
    return [(row, seed) for row in AVERAGES[model] for seed in (MEMBERS if row in ATTEMPTS else [0])]


def average(model: str, seed: int) -> Predictions:
    """The mean of the probabilities that the members give; its cost is theirs, all together."""
    said = [predictions(*member) for member in members(model)]
    splits = said[0].probabilities
    facts = {kind: round(sum(one.facts[kind] for one in said), 1) for kind in ("parameters", "seconds", "cpu_seconds")}
    return Predictions({split: np.mean([one.probabilities[split] for one in said], axis=0) for split in splits}, facts)


def taught(model: str, seed: int) -> Predictions:
    """What a teacher, TF-IDF or an average, says of the unlabelled reviews; the cost is its training's and the labels'."""
    if model == TFIDF:
        cost = Cost()
        return Predictions(tfidf(model, seed, ["unsupervised"]).probabilities, cost.facts())
    cost, said = Cost(*(predictions(*member).facts for member in members(model))), []
    for row, member_seed in members(model):
        net = untrained(row, encoded()["train"])
        net.load_state_dict(load_file(kept(row, member_seed, ".safetensors")))
        said.append(evaluate(net, encoded()["unsupervised"], OPTIONS).probabilities[:, 1].numpy())
    return Predictions({"unsupervised": np.mean(said, axis=0)}, cost.facts())


def untrained(model: str, train: EncodedReviews) -> SelfAttentionClassifier:
    """A new network of a row; the pairs it knows are those of its training reviews."""
    attempt = ATTEMPTS[model]
    largest = max(int(ids.max()) for ids in train.ids if len(ids))          # every id of the tokenizer occurs in training
    config = ClassifierConfig(largest + 1, **{**RECIPE.model, **attempt.model})
    pairs = frequent_pairs(train.ids, config.vocab_size, attempt.min_reviews) if attempt.min_reviews else None
    return SelfAttentionClassifier(config) if pairs is None else WordPairClassifier(config, pairs)


def network(model: str, seed: int) -> Predictions:
    """Train one seed of a network, on the unlabelled reviews too if it has a teacher; keep its weights."""
    attempt, data, train, needed = ATTEMPTS[model], encoded(), encoded()["train"], []
    if attempt.teacher:
        labels, facts = made_once(taught, attempt.teacher, 0, "-labels.npz")
        train = with_teacher(train, data["unsupervised"], labels["unsupervised"])
        needed.append(facts)
    cost = Cost(*needed)
    seed_everything(seed)
    net = untrained(model, train)
    fitted = fit(net, train, data["validation"], options=OPTIONS, seed=seed, **{**RECIPE.fit, **attempt.fit})
    facts = {
        "parameters": parameters_of(net), "best_epoch": fitted.best_epoch,
        "history": [{key: round(value, 4) for key, value in epoch.items()} for epoch in fitted.history],
        **cost.facts(),
    }
    with replacing(kept(model, seed, ".safetensors")) as partial:
        save_file(net.state_dict(), partial)
    said = {split: evaluate(net, data[split], OPTIONS).probabilities[:, 1].numpy() for split in ("validation", "test")}
    return Predictions(said, facts)


def with_teacher(labelled: EncodedReviews, unlabelled: EncodedReviews, positive: np.ndarray) -> EncodedReviews:
    """Labelled and unlabelled reviews together; every label a pair of probabilities, the teacher's where there is none."""
    labels = [[1.0 - p, float(p)] for p in [*labelled.labels, *positive.tolist()]]
    return EncodedReviews([*labelled.ids, *unlabelled.ids], labels)


@functools.cache
def encoded() -> dict[str, EncodedReviews]:
    """Every split tokenized, each review cut to what the models read."""
    data, path = reviews(), kept("encoded", 0, ".npz")
    if not path.exists():
        tokenizer = WordTokenizer.train(data["train"]["text"], RECIPE.max_size, RECIPE.min_freq)
        flat = {}
        for split in data:
            rows = [np.array(tokenizer.encode(text), dtype=np.int32) for text in data[split]["text"]]
            flat |= {f"{split}_ids": np.concatenate(rows), f"{split}_ends": np.cumsum([len(row) for row in rows])}
        save(path, **flat)
    with np.load(path) as flat:
        rows = {split: np.split(flat[f"{split}_ids"], flat[f"{split}_ends"][:-1]) for split in data}
    labels = {split: [max(0, label) for label in data[split]["label"]] for split in data}  # -1, none, is no index of a class
    return {split: EncodedReviews([cut(ids) for ids in rows[split]], labels[split]) for split in data}


def cut(ids: np.ndarray) -> np.ndarray:
    """What the models read of a review, still as an array, which takes less memory than a list."""
    return np.asarray(truncate(ids, RECIPE.batches["max_len"], "head_tail"), dtype=ids.dtype)


def seeds_of(row: str, asked: list[int]) -> list[int]:
    """Single networks have every seed; TF-IDF has one, and so have averages if all their members are asked for."""
    if row in ATTEMPTS:
        return asked
    return [0] if row == TFIDF or set(MEMBERS) <= set(asked) else []


SET = ResultSet("imdb_better", [TFIDF, *ATTEMPTS, *AVERAGES], settings, run, (IMDB,), seeds_of, describe)
