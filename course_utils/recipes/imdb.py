"""Train the course's classifier on the real IMDb reviews, score it, and compare it with TF-IDF: `make imdb`.

Takes the reviews from the hub, or from the folder that COURSE_DATA names. There are three random seeds. The epoch is
chosen on 2,500 of the training reviews; the test reviews are used once per seed, at the end. Writes the results to
data/results/imdb.json, each model's predictions for the test reviews to imdb_predictions.csv, and the model with the best
validation accuracy to data/checkpoints/imdb. If you interrupt it, the next call continues. --variants also trains the
models that notebook 09 compares with: the beginning of each review only, no positions, a bag of embeddings.

    python -m course_utils imdb [--seeds 0 1 2] [--variants] [--output FOLDER]
"""

import argparse
import contextlib
import random
import re
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from course_utils.baselines import WORD, tfidf_regression
from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import DataNotAvailable, load_reviews, split_reviews
from course_utils.embeddings import BagOfEmbeddings
from course_utils.files import InUse, locked, write_text
from course_utils.files.bars import bar
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.recipes import RECIPES, tidy
from course_utils.recipes.checks import STATE
from course_utils.results import FOLDER, add_run, environment, fingerprint, read_runs, scores
from course_utils.tokenization import WordTokenizer, truncate
from course_utils.training import (
    BatchOptions,
    EncodedReviews,
    FitResult,
    encode_reviews,
    evaluate,
    fastest_device,
    fit,
    processes,
    seed_everything,
)
from course_utils.training.saved_models import holds_model, read_plain_texts

PREDICTIONS = FOLDER / "imdb_predictions.csv"
RECIPE = RECIPES["imdb"]
MAX_LEN = RECIPE.batches["max_len"]
LENGTHS = [128, 256, 512]                               # limits between the groups of length, in tokens
TFIDF = {"TF-IDF of words, logistic regression": 1, "TF-IDF 1-2-grams, logistic regression": 2}
MAIN = "attention classifier"
VARIANTS = ["bag of embeddings", "attention, no positions", "attention, first 256 tokens only"]
ORDER = [*TFIDF, "bag of embeddings", "attention, first 256 tokens only", "attention, no positions", MAIN]


def length_group(tokens: int) -> str:
    """The group of a review of so many tokens: '129–256'."""
    limits = [0, *LENGTHS]
    for low, high in zip(limits, limits[1:]):
        if tokens <= high:
            return f"{low + 1}–{high}"
    return f"over {limits[-1]}"


class Reviews:
    """All that is scored: the splits of IMDb, the hand-written reviews, and the test reviews with their words shuffled."""

    def __init__(self, imdb):
        self.splits = {"train": imdb["train"], "validation": imdb["validation"], "test": imdb["test"]}
        self.splits["handwritten"] = load_reviews("handwritten")["test"]
        self.tokenizer = WordTokenizer.train(imdb["train"]["text"], RECIPE.max_size, RECIPE.min_freq)
        words = [[token.text for token in self.tokenizer.tokenize(text)] for text in imdb["test"]["text"]]
        self.groups = [length_group(len(review)) for review in words]
        sample = random.Random(0).sample
        found = [re.findall(WORD, text) for text in imdb["test"]["text"]]  # the words that TF-IDF counts
        self.shuffled_texts = [" ".join(sample(review, len(review))) for review in found]
        self.encoded = {name: encode_reviews(split, self.tokenizer) for name, split in self.splits.items()}

    def shuffled(self, truncation: str) -> EncodedReviews:
        """The test reviews, cut to what the model reads, and then in random order."""
        random_order = random.Random(0)
        ids = []
        for review in self.encoded["test"].ids:
            review = truncate(review, MAX_LEN, truncation)
            ids.append(random_order.sample(review, len(review)))
        return EncodedReviews(ids, self.encoded["test"].labels)


def record(model: str, seed: int, common: dict, reviews: Reviews, probabilities: dict, **facts) -> None:
    """Score a model by its probabilities of 'positive' on each split; put the run into the result files."""
    splits = {**reviews.splits, "shuffled": reviews.splits["test"]}
    scored = {}
    for name, values in probabilities.items():
        groups = {"test": {"length": reviews.groups}, "handwritten": {"kind": reviews.splits["handwritten"]["kind"]}}
        scored[name] = scores((np.asarray(values) > 0.5).astype(int), splits[name]["label"], **groups.get(name, {}))
    add_run("imdb", {
        "model": model, "order": ORDER.index(model), "seed": seed, **common, **facts,
        "validation_accuracy": scored["validation"]["accuracy"], **scored,
    })
    test = reviews.splits["test"]
    table = pd.DataFrame({"label": test["label"], "length": reviews.groups})
    if PREDICTIONS.exists():
        earlier = pd.read_csv(PREDICTIONS)
        if len(earlier) == len(table) and (earlier[["label", "length"]] == table).all(axis=None):
            table = earlier
    table[f"{model}, seed {seed}"] = np.asarray(probabilities["test"]).round(3)
    columns = sorted(table.columns[2:], key=lambda name: (ORDER.index(name.rpartition(", seed")[0]), name))
    write_text(PREDICTIONS, table[["label", "length", *columns]].to_csv(index=False, lineterminator="\n"))


def run_tfidf(model: str, reviews: Reviews, common: dict) -> None:
    """Fit TF-IDF with logistic regression on the same training reviews. It has no seed: one run."""
    train = reviews.splits["train"]
    begun = time.perf_counter()
    fitted = tfidf_regression(TFIDF[model]).fit(train["text"], train["label"])
    seconds = time.perf_counter() - begun
    texts = {name: split["text"] for name, split in reviews.splits.items() if name != "train"}
    texts["shuffled"] = reviews.shuffled_texts
    probabilities = {name: fitted.predict_proba(values)[:, 1] for name, values in texts.items()}
    record(model, 0, common, reviews, probabilities, parameters=int(fitted[-1].coef_.size + 1), seconds=round(seconds, 1))


def run_network(model: str, seed: int, reviews: Reviews, common: dict, output: Path) -> None:
    """Train one seed of a network on IMDb, in all processes; the classifier itself is kept under `output`."""
    options = BatchOptions(**RECIPE.batches)
    if model.endswith("tokens only"):
        options = options._replace(truncation="head")
    seed_everything(seed)
    settings = dict(RECIPE.fit)
    if model.startswith("bag"):
        net = BagOfEmbeddings(reviews.tokenizer.vocab_size, 64)
        settings |= {"learning_rate": 1e-2}
    else:
        changed = {"positions": "none"} if model.endswith("no positions") else {}
        net = SelfAttentionClassifier(ClassifierConfig(reviews.tokenizer.vocab_size, **{**RECIPE.model, **changed}))
    device = fastest_device()
    state = output / f"{model}, seed {seed}" / STATE
    result = fit(
        net.to(device), reviews.encoded["train"], reviews.encoded["validation"],
        options=options, seed=seed, checkpoint=state, **settings,
    )
    processes.here().first(score_network, model, seed, reviews, common, net, result, options, state)


def score_network(
    model: str, seed: int, reviews: Reviews, common: dict, net, result: FitResult, options: BatchOptions, state: Path
) -> None:
    """Score a trained network, keep the classifier beside its checkpoint, which goes, and record the run."""
    scored = {name: reviews.encoded[name] for name in ("validation", "test", "handwritten")}
    scored["shuffled"] = reviews.shuffled(options.truncation)
    probabilities = {name: evaluate(net, part, options).probabilities[:, 1].numpy() for name, part in scored.items()}
    if model == MAIN:
        ReviewClassifier(net.cpu(), reviews.tokenizer).save(state.parent)
    state.unlink(missing_ok=True)
    record(
        model, seed, common, reviews, probabilities,
        parameters=sum(p.numel() for p in net.parameters()), seconds=round(result.seconds, 1),
        best_epoch=result.best_epoch,
        history=[{key: round(value, 4) for key, value in epoch.items()} for epoch in result.history],
    )


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, print the table; return the exit status.

    Under torchrun, its processes train each network together; the first one does all the rest.
    """
    from course_utils.training.distributed import joined

    processes.only_the_first_speaks()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--variants", action="store_true", help="also train the models that notebook 09 compares with")
    parser.add_argument("--output", type=Path, default=output_folder() / "imdb")
    chosen = parser.parse_args(arguments)
    go_on = "finished models and epochs are kept, and the same command continues from there"
    try:
        with joined() as together, contextlib.ExitStack() as until_done:
            dataset = together.all(load_reviews, "imdb")
            together.first(hold, chosen.output, until_done)
            run_missing(chosen, dataset)
    except (DataNotAvailable, InUse, processes.CannotTrainTogether) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"stopped; {go_on}", file=sys.stderr)
        return 130
    except processes.Lost as error:
        tidy(chosen.output, [folder / STATE for folder in chosen.output.glob("*/")])
        print(f"python -m course_utils imdb: error: {error}.\n{go_on.capitalize()}", file=sys.stderr)
        return 1
    return 0


def hold(output: Path, until_done: contextlib.ExitStack) -> None:
    """Make the output folder, and keep other runs out of it until all is done."""
    output.mkdir(parents=True, exist_ok=True)
    until_done.enter_context(locked(output, "training on IMDb"))


def run_missing(chosen: argparse.Namespace, dataset) -> None:
    """Run what the result files lack of what was asked for, and print all of them."""
    together = processes.here()
    dataset = split_reviews(dataset, validation=0.1, seed=0)
    data = {split: len(dataset[split]) for split in dataset}
    settings = fingerprint(RECIPE, data, fingerprint(list(dataset["test"]["text"])))
    common = {"data": data, "settings": settings, "recipe": RECIPE._asdict(), **environment(),
              "processes": together.number}
    networks = [MAIN, *VARIANTS] if chosen.variants else [MAIN]
    wanted = [(model, 0) for model in TFIDF] + [(model, seed) for model in networks for seed in chosen.seeds]
    runs = together.first(read_runs, "imdb")
    done = {(run["model"], run["seed"]) for run in runs if run["settings"] == settings}
    missing = [run for run in wanted if run not in done]
    reviews = Reviews(dataset) if missing else None
    for model, seed in bar(missing, unit="model"):
        if model in TFIDF:
            together.first(run_tfidf, model, reviews, common | {"processes": 1})
        else:
            run_network(model, seed, reviews, common, chosen.output)
    together.first(keep_best, chosen.output)
    for run in together.first(read_runs, "imdb"):
        print(f"{run['model']:<40} seed {run['seed']}  test {run['test']['accuracy']:.4f}  {run['seconds']:.0f} s")


def keep_best(output: Path) -> None:
    """Copy the seed with the best validation accuracy, if it was trained here, to data/checkpoints/imdb."""
    runs = [run for run in read_runs("imdb") if run["model"] == MAIN]
    best = max(runs, key=lambda run: run["validation_accuracy"])
    source, target = output / f"{MAIN}, seed {best['seed']}", CHECKPOINTS / "imdb"
    if holds_model(source):
        ReviewClassifier.load(source).save(target)
        read_plain_texts(target)                        # but for one review in 200, IMDb's are plain
        print(f"data/checkpoints/imdb holds seed {best['seed']}, the best of {len(runs)} on validation")
