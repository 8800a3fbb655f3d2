"""The settings that the course trains its classifier with, and the one function that does it.

Does: from a dataset to a trained `ReviewClassifier` with its scores, the same for notebooks, result
files and the command line (`python -m course_utils.training --help`). Does not: define a model.
"""

import argparse
import dataclasses
import json
import os
import time
from pathlib import Path
from typing import NamedTuple

import torch

from course_utils.classifier import ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import load_reviews, split_reviews
from course_utils.results import scores
from course_utils.tokenization import WordTokenizer
from course_utils.training import BatchOptions, FitResult, encode_reviews, evaluate, fit, seed_everything


class Recipe(NamedTuple):
    """Options of `ClassifierConfig`, of `fit` and of `BatchOptions`, and the size of the vocabulary."""

    model: dict
    fit: dict
    batches: dict
    max_size: int = 15000
    min_freq: int = 2


RECIPES = {
    # the course's own reviews: notebook 08
    "reviews": Recipe(
        model=dict(
            d_model=32, num_heads=2, d_ff=32, num_layers=2, max_len=256, positions="rotary", dropout=0.1,
            word_dropout=0.1, embedding_std=0.02, embedding_scale=10.0,
        ),
        fit=dict(epochs=16, learning_rate=6e-3, weight_decay=0.1, warmup=0.1),
        batches=dict(batch_size=64, max_len=256, multiple_of=8),
    ),
    # real reviews, 25,000 of them: notebook 09
    "imdb": Recipe(
        model=dict(
            d_model=64, num_heads=2, d_ff=128, num_layers=1, max_len=256, dropout=0.1, word_dropout=0.3,
            pooled_dropout=0.4, zero_init=True,
        ),
        fit=dict(epochs=6, learning_rate=3e-3, weight_decay=0.01, warmup=0.2),
        batches=dict(batch_size=64, max_len=256, multiple_of=32),
    ),
    # the same reviews in two epochs instead of six: small word vectors that learn fast, no dropout in the blocks
    "imdb-fast": Recipe(
        model=dict(
            d_model=64, num_heads=2, d_ff=64, num_layers=1, max_len=256, dropout=0.0, word_dropout=0.3,
            pooled_dropout=0.4, zero_init=True, embedding_std=0.02, embedding_scale=10.0,
        ),
        fit=dict(epochs=2, learning_rate=3e-3, weight_decay=0.01, warmup=0.2),
        batches=dict(batch_size=64, max_len=256, multiple_of=32),
    ),
}


class TrainedClassifier(NamedTuple):
    """The classifier, how its training went, and its validation accuracy."""

    classifier: ReviewClassifier
    fit_result: FitResult
    validation_accuracy: float


def train_classifier(dataset, recipe: Recipe, seed: int = 0, checkpoint=None, progress: bool = True) -> TrainedClassifier:
    """Train on dataset["train"], choose the epoch on dataset["validation"]; no other split is looked at."""
    seed_everything(seed)
    tokenizer = WordTokenizer.train(dataset["train"]["text"], recipe.max_size, recipe.min_freq)
    names = dataset["train"].features["label"].names
    config = ClassifierConfig(vocab_size=tokenizer.vocab_size, num_classes=len(names), **recipe.model)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = SelfAttentionClassifier(config).to(device)
    encoded = {split: encode_reviews(dataset[split], tokenizer) for split in ("train", "validation")}
    options = BatchOptions(**recipe.batches)
    result = fit(
        model, encoded["train"], encoded["validation"], options=options, seed=seed,
        checkpoint=checkpoint, progress=progress, **recipe.fit,
    )
    scored = evaluate(model, encoded["validation"], options)
    return TrainedClassifier(ReviewClassifier(model.cpu(), tokenizer, names), result, scored.accuracy)


def score(trained: TrainedClassifier, split, recipe: Recipe) -> dict:
    """Accuracy of a trained classifier on one split, overall and by kind where there are kinds (see `results.scores`)."""
    model, tokenizer = trained.classifier.model, trained.classifier.tokenizer
    scored = evaluate(model, encode_reviews(split, tokenizer), BatchOptions(**recipe.batches))
    groups = {"kind": split["kind"]} if "kind" in split.column_names else {}
    return scores(scored.predictions, split["label"], **groups)


def main(arguments=None) -> int:
    """`python -m course_utils.training`: train on a dataset, score it, save the classifier; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.training",
        description="Train the course's classifier, choose its epoch by validation, score it, save it. "
        "A run that was interrupted goes on where it stopped when the same command is given again.",
    )
    parser.add_argument("data", help="reviews, imdb, or your own file with text and label (csv, tsv, jsonl, parquet)")
    parser.add_argument("output", type=Path, help="folder for the classifier, result.json and the checkpoint")
    parser.add_argument("--recipe", choices=sorted(RECIPES), help="settings to start from (default: imdb or reviews)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="processor threads; default: as torch chooses")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="change an option of the model, the training or the batches, such as num_layers=1; can be repeated",
    )
    chosen = parser.parse_args(arguments)
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    try:
        recipe = override(RECIPES[chosen.recipe or ("imdb" if chosen.data == "imdb" else "reviews")], chosen.set)
        dataset = load_reviews(chosen.data)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    if "validation" not in dataset:
        dataset = split_reviews(dataset, validation=0.1, seed=0)
    begun = time.perf_counter()
    trained = train_classifier(dataset, recipe, chosen.seed, checkpoint=chosen.output / "training_state.safetensors")
    result = {
        "data": chosen.data, "seed": chosen.seed, "recipe": recipe._asdict(), "best_epoch": trained.fit_result.best_epoch,
        "validation_accuracy": trained.validation_accuracy, "seconds": round(time.perf_counter() - begun, 1),
    }
    if "test" in dataset:
        result["test"] = score(trained, dataset["test"], recipe)
    trained.classifier.save(chosen.output)
    (chosen.output / "result.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (chosen.output / "training_state.safetensors").unlink(missing_ok=True)
    tested = f", test accuracy {result['test']['accuracy']:.4f}" if "test" in result else ""
    print(f"validation accuracy {trained.validation_accuracy:.4f} (epoch {trained.fit_result.best_epoch}){tested}")
    print(f"saved in {os.path.relpath(chosen.output)}: ReviewClassifier.load({os.path.relpath(chosen.output)!r})")
    return 0


def override(recipe: Recipe, settings: list[str]) -> Recipe:
    """A recipe with some options changed: override(recipe, ["num_layers=1", "epochs=3"]).

    Raises ValueError for an option that no part of a recipe has, or a value of another type.
    """
    places = {                                          # the type of every option
        "model": {field.name: field.type for field in dataclasses.fields(ClassifierConfig)},
        "fit": {
            "epochs": int, "learning_rate": float, "weight_decay": float, "warmup": float, "clip": float, "patience": int,
            "precision": str,
        },
        "batches": {"batch_size": int, "truncation": str, "multiple_of": int, "bucketed": bool},
    }
    for fixed in ("vocab_size", "num_classes", "pad_id", "unk_id"):  # the data and the tokenizer decide
        del places["model"][fixed]
    parts = {place: dict(getattr(recipe, place)) for place in places}
    for setting in settings:
        name, sign, text = setting.partition("=")
        place = next((place for place, names in places.items() if name in names), None)
        if not sign or place is None:
            known = ", ".join(sorted(set().union(*places.values())))
            raise ValueError(f"--set {setting}: expected NAME=VALUE with one of the names {known}")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text
        kind = places[place][name]
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise ValueError(f"--set {setting}: {name} is of type {kind.__name__}, and {text} is none")
        parts[place][name] = value
        if name == "max_len":
            parts["batches"]["max_len"] = value
    ClassifierConfig(vocab_size=2, **parts["model"])    # raises for a word that is none of an option's choices
    return recipe._replace(**parts)
