"""How accuracy on IMDb grows with the number of labelled reviews: a set of runs for course_tools/studies/command.py.

Writes data/results/learning_curves.json: 1,000 and 5,000 training reviews, different ones for each seed, and the BiLSTM
once on all 22,500. `curves` adds the results on all 22,500 from data/results/imdb.json. The validation split, which
chooses the epoch, is always the same 2,500 reviews: more than somebody with 1,000 labels would have, but the same for
every row. The vocabulary comes from the training reviews that were drawn. IMDb comes from the hub, or from the folder
that COURSE_DATA names.

    python -m course_tools results learning_curves [--only 1,000] [--seeds 0 1 2]
"""

import functools
import time

from torch import nn

from course_tools.studies.needs import IMDB
from course_tools.studies.runner import ResultSet, Trained
from course_utils.baselines import RecurrentClassifier, tfidf_regression
from course_utils.classifier import ClassifierConfig, SelfAttentionClassifier
from course_utils.data import load_reviews, split_reviews
from course_utils.embeddings import BagOfEmbeddings
from course_utils.recipes.learning_curves import AMOUNTS, EVERYTHING, OPTIONS, RECIPE, Amount
from course_utils.results import fingerprint, scores, split_fingerprints
from course_utils.tokenization import WordTokenizer
from course_utils.training import (
    BatchOptions,
    EncodedReviews,
    encode_reviews,
    evaluate,
    fastest_device,
    fit,
    seed_everything,
)

TFIDF = {"TF-IDF of words, logistic regression": 1, "TF-IDF 1-2-grams, logistic regression": 2}
NETWORKS = ["bag of embeddings", "attention classifier", "BiLSTM"]
# of the BiLSTM; on validation "mean" was as good, 76.9 % with 1,000 reviews
POOLING = "max"


@functools.cache
def imdb():
    """IMDb's reviews with the validation split that data/results/imdb.json was made with."""
    return split_reviews(load_reviews("imdb"), validation=0.1, seed=0)


@functools.lru_cache(maxsize=2)
def drawn(reviews: int, seed: int) -> tuple[dict, WordTokenizer, dict[str, EncodedReviews]]:
    """The splits with so many training reviews, other ones for another seed; their vocabulary; all splits encoded."""
    data = dict(imdb())
    data["train"] = data["train"].shuffle(seed=seed).select(range(reviews))
    tokenizer = WordTokenizer.train(data["train"]["text"], RECIPE.max_size, RECIPE.min_freq)
    return data, tokenizer, {split: encode_reviews(data[split], tokenizer) for split in data}


@functools.cache
def settings() -> str:
    """What every run depends on: the recipe, the batches, and the texts and labels of all splits."""
    return fingerprint(RECIPE, list(OPTIONS), split_fingerprints(imdb()))


def row(model: str, amount: str) -> str:
    """The name of a row."""
    return f"{model}, {amount} reviews"


ROWS = {row(model, amount): (model, AMOUNTS[amount]) for amount in AMOUNTS for model in [*TFIDF, *NETWORKS]}
ROWS[row("BiLSTM", "22,500")] = ("BiLSTM", EVERYTHING)


def describe(model: str) -> dict:
    """The network, and how much it reads."""
    network, amount = ROWS[model]
    reading = {} if network in TFIDF else {"times": amount.times, "passes": amount.passes}
    pooling = {"pooling": POOLING} if network == "BiLSTM" else {}
    batch = {} if amount.batch_size == OPTIONS.batch_size else {"batch_size": amount.batch_size}
    return {"network": network, "reviews": amount.reviews, **reading, **pooling, **batch}


def run(model: str, seed: int, state) -> dict | Trained:
    """Draw the training reviews, fit or train, and score, one row."""
    network, amount = ROWS[model]
    data, tokenizer, encoded = drawn(amount.reviews, seed)
    sizes = {split: len(data[split]) for split in data}
    common = {"data": sizes, "recipe": RECIPE._asdict(), "batch_size": amount.batch_size}
    if network in TFIDF:
        return {**common, **run_tfidf(network, data)}
    made = run_network(network, amount, tokenizer.vocab_size, encoded, seed, state)
    made.own.update(common, vocabulary=tokenizer.vocab_size)
    return made


def run_tfidf(network: str, data: dict) -> dict:
    """Fit and score TF-IDF with logistic regression; nothing is chosen on the validation split."""
    begun = time.perf_counter()
    fitted = tfidf_regression(TFIDF[network]).fit(data["train"]["text"], data["train"]["label"])
    seconds = time.perf_counter() - begun
    scored = {split: scores(fitted.predict(data[split]["text"]), data[split]["label"]) for split in ("validation", "test")}
    return {"parameters": int(fitted[-1].coef_.size + 1), "seconds": round(seconds, 1), **scored}


def run_network(network: str, amount: Amount, vocab_size: int, encoded: dict, seed: int, state) -> Trained:
    """Train a network, choose its pass on the validation split, score it once on the test split."""
    once = encoded["train"]
    train = EncodedReviews(once.ids * amount.times, once.labels * amount.times)
    seed_everything(seed)
    net = untrained(network, vocab_size)
    device = fastest_device()
    changed = {"learning_rate": 1e-2} if network.startswith("bag") else {}
    options = BatchOptions(**{**RECIPE.batches, "batch_size": amount.batch_size})
    result = fit(
        net.to(device), train, encoded["validation"], options=options, seed=seed, checkpoint=state,
        progress=False, **{**RECIPE.fit, "epochs": amount.passes, **changed},
    )
    scored = {
        split: scores(evaluate(net, encoded[split], options).predictions, encoded[split].labels)
        for split in ("validation", "test")
    }
    return Trained(net, result, scored)


def untrained(network: str, vocab_size: int) -> nn.Module:
    """An untrained network, of the sizes that data/results/imdb.json has."""
    if network.startswith("bag"):
        return BagOfEmbeddings(vocab_size, 64)
    if network == "BiLSTM":
        return RecurrentClassifier(vocab_size, 64, 64, bidirectional=True, pooling=POOLING)
    return SelfAttentionClassifier(ClassifierConfig(vocab_size, **RECIPE.model))


SET = ResultSet(
    "learning_curves", ROWS, settings, run,
    depends_on=(IMDB,), seeds=lambda row, asked: asked[:1] if ROWS[row][1] is EVERYTHING else asked, change=describe,
)
