"""The settings that the course trains its classifier with, and the one function that does it.

Does: from a dataset to a trained `ReviewClassifier` with its scores, the same for notebooks, result
files and the command line (`python -m course_utils train --help`). Does not: define a model.
"""

import argparse
import contextlib
import difflib
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

from course_utils import files
from course_utils.classifier import POOLINGS, ClassifierConfig, ReviewClassifier, SelfAttentionClassifier
from course_utils.data import DataNotAvailable, load_reviews
from course_utils.options import BATCH_RULES, FIT_RULES, MODEL_RULES, RUN_RULES, check_options, one_of, whole
from course_utils.positional_encoding import POSITIONS
from course_utils.recipes.checks import (
    RESULT,
    STATE,
    check_model,
    check_output,
    check_vocabulary,
    ready_to_train,
    shared_texts,
    warnings_for,
)
from course_utils.results import scores
from course_utils.training import (
    BatchOptions,
    FitResult,
    encode_reviews,
    epochs_in,
    evaluate,
    fastest_device,
    fit,
    processes,
    seed_everything,
)
from course_utils.training.plain_text import PlainWords
from course_utils.training.saved_files import INSIDE

DECIDED = ("vocab_size", "num_classes", "pad_id", "unk_id")                  # by the data and the tokenizer
WORDS = {"positions": one_of(*POSITIONS), "pooling": one_of(*POOLINGS)}
RECIPE_RULES = {                                                             # what a recipe has, by its parts
    "model": {name: (MODEL_RULES | WORDS)[name] for name in ClassifierConfig.__dataclass_fields__ if name not in DECIDED},
    "fit": FIT_RULES,
    "batches": {name: rule for name, rule in BATCH_RULES.items() if name != "max_len"},  # the model's max_len is theirs too
    "vocabulary": {"max_size": whole(3, 10_000_000), "min_freq": whole(1, 1_000_000)},
}
PART_OF = {option: part for part, rules in RECIPE_RULES.items() for option in rules}


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
    """Train on dataset["train"], choose the epoch on dataset["validation"]; no other split is looked at.

    Raises FloatingPointError for a model whose loss, weights or answers are not finite numbers.
    """
    seed_everything(seed)
    tokenizer = PlainWords.train(dataset["train"]["text"], recipe.max_size, recipe.min_freq)
    names = dataset["train"].features["label"].names
    config = ClassifierConfig(vocab_size=tokenizer.vocab_size, num_classes=len(names), **recipe.model)
    device = fastest_device()
    model = SelfAttentionClassifier(config).to(device)
    encoded = {split: encode_reviews(dataset[split], tokenizer) for split in ("train", "validation")}
    options = BatchOptions(**recipe.batches)
    result = fit(
        model, encoded["train"], encoded["validation"], options=options, seed=seed,
        checkpoint=checkpoint, progress=progress, **recipe.fit,
    )
    scored = processes.here().first(evaluate, model, encoded["validation"], options)
    if not all(tensor.isfinite().all() for tensor in (*model.parameters(), scored.probabilities)):
        raise FloatingPointError("the trained model holds numbers that are not finite; try a smaller learning_rate")
    return TrainedClassifier(ReviewClassifier(model.cpu(), tokenizer, names), result, scored.accuracy)


def score(trained: TrainedClassifier, split, recipe: Recipe) -> dict:
    """Accuracy of a trained classifier on one split, overall and by kind where there are kinds (see `results.scores`)."""
    model, tokenizer = trained.classifier.model, trained.classifier.tokenizer
    scored = evaluate(model, encode_reviews(split, tokenizer), BatchOptions(**recipe.batches))
    if not scored.probabilities.isfinite().all():
        raise FloatingPointError("the trained model predicts numbers that are not finite; try a smaller learning_rate")
    groups = {}
    if "kind" in split.column_names:                    # a file of one's own may have gaps there, or numbers
        groups["kind"] = ["none given" if kind is None or kind == "" else str(kind) for kind in split["kind"]]
    return scores(scored.predictions, split["label"], **groups)


def changed(recipe: Recipe, **options) -> Recipe:
    """A recipe with some options changed: changed(recipe, num_layers=1, epochs=3).

    Raises ValueError for an option that no part of a recipe has, or a value it can't have.
    """
    parts = {part: dict(getattr(recipe, part)) for part in ("model", "fit", "batches")} | {"vocabulary": {}}
    for name, value in options.items():
        check_recipe_option(name, value)
        parts[PART_OF[name]][name] = value
    if "max_len" in options:                            # the model and its batches must agree
        parts["batches"]["max_len"] = options["max_len"]
    return recipe._replace(**parts.pop("vocabulary"), **parts)


def override(recipe: Recipe, settings: list[str]) -> Recipe:
    """The same for the command line's --set: override(recipe, ["num_layers=1", "epochs=3"]).

    Raises ValueError as `changed`, and for an option that is set twice.
    """
    options = {}
    for setting in settings:
        name, value = parse_setting(setting)
        if name in options:
            raise ValueError(f"--set {setting}: {name} is set twice; set it once")
        options[name] = value
    return changed(recipe, **options)


def check_recipe_option(name: str, value) -> None:
    """Raise ValueError for a name that no part of a recipe has, or a value that the option can't have."""
    if name not in PART_OF:
        raise ValueError(f"{name!r:.60} isn't an option of a recipe; use {_names_like(name)}")
    check_options({name: value}, RECIPE_RULES[PART_OF[name]])


def parse_setting(setting: str):
    """(name, value) of NAME=VALUE, as Python values: parse_setting("num_layers=1") -> ("num_layers", 1).

    Raises ValueError for a name that no part of a recipe has, with the names that look like it, and for a value that the
    option can't have.
    """
    shown = setting if len(setting) <= 60 else setting[:57] + "..."
    name, sign, text = (part.strip() for part in setting.partition("="))
    if not sign or name not in PART_OF:
        raise ValueError(f"--set {shown}: expected NAME=VALUE with {_names_like(name)}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):                # a word without quotation marks, or as Python writes it
        value = {"True": True, "False": False, "None": None}.get(text, text)
    try:
        check_recipe_option(name, value)
    except ValueError as error:
        raise ValueError(f"--set {shown}: {error}") from None
    return name, value


def _names_like(name: str) -> str:
    """The names that there are, and which of them was probably meant."""
    close = difflib.get_close_matches(name.lower(), PART_OF, n=2) or [known for known in PART_OF if name and name in known]
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"one of the names {', '.join(sorted(PART_OF))}{hint}"


def main(arguments=None) -> int:
    """`python -m course_utils train`: train on a dataset, score it, save the classifier; return the exit status.

    0: saved. 1: not saved, since the training failed or the disk is full. 2: refused before training. 130: Ctrl-C.
    Under torchrun, its processes train together; the first one writes and reports.
    """
    from course_utils.training.distributed import joined  # a notebook that wants a recipe never loads it

    processes.only_the_first_speaks()
    parser = _parser()
    chosen = parser.parse_args(arguments)
    state = Path(os.path.expanduser(chosen.output)) / STATE
    try:
        with joined() as together, contextlib.ExitStack() as until_done:   # holds the lock on the output folder
            try:
                recipe, dataset, folder = together.all(_prepare, chosen, until_done)
            except (ValueError, OSError, DataNotAvailable, files.InUse) as error:
                parser.error(str(error))
            _train_and_save(chosen, recipe, dataset, folder)
            return 0
    except processes.Lost as error:
        tidy(state.parent, _written(state.parent))
        return _failed(f"{error}.\n{_how_to_go_on(state).capitalize()}")
    except processes.CannotTrainTogether as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        print(f"stopped; {_how_to_go_on(state)}", file=sys.stderr)
        return 130
    except FloatingPointError as error:
        return _failed(f"{error}. Nothing was saved, because such a model is useless")
    except OSError as error:
        return _failed(f"{state.parent} cannot be written to ({error.strerror or error}); free some space, or repair it. "
                       f"{_how_to_go_on(state).capitalize()}")
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or "memory" in str(error):
            return _failed("there isn't enough memory for this model and these batches; nothing was saved. Use a smaller "
                           "batch_size, max_len or d_model")
        raise


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m course_utils train", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Train the course's classifier on labelled texts, choose its best epoch by validation accuracy,\n"
        "score it on the test texts if there are any, and save it.\n\n"
        "To continue an interrupted run, give the same command again.",
        epilog="options for --set, and their possible values:\n" + "\n".join(
            f"  {name:18} {rule.words}" for rules in RECIPE_RULES.values() for name, rule in rules.items()
        ) + "\n\nexample:\n  python -m course_utils train my_texts.csv outputs/mine --set epochs=5 --set num_layers=1",
    )
    parser.add_argument(
        "data", help="your own file with columns text and label (csv, tsv, jsonl, parquet), a folder with such files called "
        "train, validation and test, or one of the course's datasets: reviews, imdb, sst2. Without validation texts, a "
        "tenth of the training texts is used",
    )
    parser.add_argument("output", help="folder to write to: the classifier, result.json and, until then, the checkpoint")
    parser.add_argument("--recipe", choices=sorted(RECIPES), help="settings to start from (default: imdb for imdb, or "
                        "reviews)")
    parser.add_argument("--seed", type=_whole_number("seed"), default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument("--threads", type=_whole_number("threads"), metavar="N", help="processor threads (default: torch's)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="change an option of the recipe, such as num_layers=1; can be repeated",
    )
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        if message.startswith("unrecognized arguments: -"):
            message += "; an option of the recipe is written --set NAME=VALUE; --help lists them all"
        elif message.startswith(("unrecognized arguments", "the following arguments are required")):
            message += "; expected the data and an output folder, such as my_texts.csv outputs/mine; --help says more"
        self.exit(2, f"{self.prog}: error: {message}\n")  # without the usage lines, which would bury the message


def _whole_number(name: str):
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = text
        try:
            check_options({name: value}, RUN_RULES)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return value

    return read


def _prepare(chosen, until_done: contextlib.ExitStack):
    """Check everything that can be wrong before training; lock the output folder. Returns (recipe, dataset, folder).

    Of several processes the first alone has to do with the folder.
    """
    recipe = override(RECIPES[chosen.recipe or ("imdb" if chosen.data == "imdb" else "reviews")], chosen.set)
    check_model(ClassifierConfig(vocab_size=recipe.max_size, **recipe.model))
    first, folder = processes.here().is_first, Path(os.path.expanduser(chosen.output))
    if first:
        check_output(chosen.output, chosen.data)
    dataset = ready_to_train(load_reviews(chosen.data), chosen.data)
    check_vocabulary(dataset["train"]["text"], recipe.min_freq)
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    try:
        if first:
            folder.mkdir(parents=True, exist_ok=True)
            until_done.enter_context(files.locked(folder, f"training on {chosen.data}"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"{folder} cannot be written to ({why}); expected a folder of yours; use another output") from None
    return recipe, dataset, folder


def _train_and_save(chosen, recipe: Recipe, dataset, folder: Path) -> None:
    """Train, score, save, and print what came out."""
    together = processes.here()
    if together.is_first:
        for path in _written(folder):
            files.remove_partials(path)
    warnings = warnings_for(dataset)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    begun = time.perf_counter()
    trained = train_classifier(dataset, recipe, chosen.seed, checkpoint=folder / STATE, progress=sys.stderr.isatty())
    about = {"seconds": round(time.perf_counter() - begun, 1), "processes": together.number, "warnings": warnings}
    together.first(_score_and_save, chosen, recipe, dataset, folder, trained, about)


def _score_and_save(chosen, recipe: Recipe, dataset, folder: Path, trained: TrainedClassifier, about: dict) -> None:
    result = {
        "data": chosen.data, "seed": chosen.seed, "recipe": recipe._asdict(), "best_epoch": trained.fit_result.best_epoch,
        "validation_accuracy": trained.validation_accuracy, **about, "shared_texts": shared_texts(dataset),
    }
    tested = ""
    if "test" in dataset:
        result["test"] = score(trained, dataset["test"], recipe)
        tested = f", test accuracy {result['test']['accuracy']:.4f}"
    trained.classifier.save(folder)
    files.write_json(folder / RESULT, result, indent=2)
    (folder / STATE).unlink(missing_ok=True)
    print(f"validation accuracy {trained.validation_accuracy:.4f} (epoch {trained.fit_result.best_epoch}){tested}")
    print(f"saved in {folder}: ReviewClassifier.load({str(folder)!r})")


def _written(folder: Path) -> list[Path]:
    return [folder / name for name in (STATE, RESULT, INSIDE)]


def tidy(folder: Path, written: Iterable[Path]) -> None:
    """Remove what a killed process has left of the files that it wrote, and its note in the folder's lock.

    Nothing happens where another process has the lock.
    """
    with contextlib.suppress(files.InUse, OSError):
        if folder.is_dir():
            with files.locked(folder, "tidying up", wait=5):
                for path in written:
                    files.remove_partials(path)


def _how_to_go_on(state: Path) -> str:
    if not state.parent.is_dir():                       # on another machine than the first process
        return "the same command continues from what the first process has saved"
    epochs = epochs_in(state)
    if epochs:
        return f"{epochs} {'epoch is' if epochs == 1 else 'epochs are'} saved, and the same command continues from there"
    return "no epoch has been saved yet, so the same command starts from the beginning"


def _failed(message: str) -> int:
    print(f"python -m course_utils train: error: {message}", file=sys.stderr)
    return 1
