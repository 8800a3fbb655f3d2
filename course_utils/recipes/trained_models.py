"""Trained classifiers that several notebooks look into: trained once, then read.

    classifier = my_model()                               # the learner's own, from notebook 08
    classifier = trained_model(seed=1)                    # the classifier of notebook 08 on another seed
    shallow = trained_model(seed=0, num_layers=1)         # one thing changed

A model is looked for under data/checkpoints (those that come with the course), then under outputs/models, and is else
trained and kept there. Its file has a fingerprint of what it was made from (recipe, reviews, seed), so a model made from
other things is never taken for it. Does: find, train, keep, check. Does not: define models or recipes.

`python -m course_tools models` makes those that come with the course.
"""

import os
import sys
from pathlib import Path

from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.files import bars, fingerprint, locked
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.files.switches import is_on
from course_utils.recipes import RECIPES, Recipe, changed, train_classifier
from course_utils.results import split_fingerprints
from course_utils.training.saved_files import writes_to
from course_utils.training.saved_models import holds_model, read_note, write_note

NOTE = "made_from"                                      # its title in the file: a model without it isn't taken


def my_model() -> ReviewClassifier:
    """The learner's model, which notebook 08 saves as outputs/my_model.safetensors; else the course's. Prints which.

    In the tests (COURSE_TESTING) always the course's. Raises ValueError that names the file if the learner's is damaged.
    """
    mine = output_folder() / "my_model"
    if writes_to(mine).exists() and not is_on("COURSE_TESTING"):
        print("your model, from outputs/my_model.safetensors")
        return ReviewClassifier.load(mine)
    print("the course's model; notebook 08, section 6, saves yours")
    return ReviewClassifier.load(CHECKPOINTS / "reviews")


def trained_model(seed: int = 0, *, recipe: str = "reviews", progress: bool = True, **changes) -> ReviewClassifier:
    """The course's classifier, trained on its reviews with `seed`; `changes` are options of the recipe: num_layers=1.

    Reads it where it is kept, else trains it (about a minute for two layers, with a progress bar) and keeps it. Two
    notebooks that ask for the same model at once train it once. A damaged file is put aside, with a message, and made
    again; so is one that another recipe made, or other reviews.
    Raises ValueError for an option or recipe that there is not.
    """
    settings, made_from = settings_of(recipe, changes), fingerprint_of(seed, recipe, changes)
    name, made_here = name_of(seed, recipe, changes), output_folder() / "models"
    earlier = made_here / f"{name}-{made_from}"         # earlier versions had the fingerprint in a folder's name
    if (kept := read_whole(CHECKPOINTS / name, made_from) or read_whole(made_here / name, made_from)) is not None:
        return kept
    if earlier.is_dir() and holds_model(earlier):
        return ReviewClassifier.load(earlier)
    return train_and_keep(made_here / name, made_from, seed, settings, progress)


def settings_of(recipe: str, changes: dict) -> Recipe:
    """A recipe by its name with some options changed. Raises ValueError for an option or recipe that there is not."""
    if recipe not in RECIPES:
        raise ValueError(f"recipe={recipe!r}; there are {', '.join(sorted(RECIPES))}")
    return changed(RECIPES[recipe], **changes)


def name_of(seed: int, recipe: str, changes: dict) -> str:
    """The name of a model, as in 'reviews-num_layers-1-seed-0'."""
    return "-".join([recipe, *(f"{option}-{value}" for option, value in sorted(changes.items())), f"seed-{seed}"])


def fingerprint_of(seed: int, recipe: str, changes: dict) -> str:
    """A fingerprint of everything that the weights depend on, such as '3fa9c1d2'."""
    dataset = load_reviews("reviews")
    reviews = split_fingerprints({split: dataset[split] for split in ("train", "validation")})
    return fingerprint(settings_of(recipe, changes), reviews, seed)[:8]


def read_whole(path: Path, made_from: str) -> ReviewClassifier | None:
    """The classifier of a whole, undamaged file that was made from just that; None if there is none."""
    if not writes_to(path).exists():
        return None
    try:
        about = read_note(path, NOTE)
        if about is not None and about["recipe"] == made_from:
            return ReviewClassifier.load(path)
        why = "was made with another recipe or from other reviews"
    except Exception as error:  # cut off, or not ours: whatever it is, it is not used
        why = f"is damaged ({type(error).__name__})"
    print(f"the model {path.name} {why}; it is made again", file=sys.stderr)
    return None


def train_and_keep(path: Path, made_from: str, seed: int, settings: Recipe, progress: bool) -> ReviewClassifier:
    """Train under a lock, so that one process does it and others wait; the file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent / f"{path.name}.training", "training a model", wait=-1):
        if (classifier := read_whole(path, made_from)) is not None:   # another process made it meanwhile
            return classifier
        bars.say(f"training {path.name} (once; it is kept in outputs/models)", shown=progress)
        state = path.with_name(f"{path.name}.state.safetensors")           # an interrupted training goes on from here
        trained = train_classifier(load_reviews("reviews"), settings, seed, checkpoint=state, progress=progress)
        if (old := writes_to(path)).exists():           # it may be somebody's only copy of something
            os.replace(old, old.with_name(f"{old.name}.aside"))
        trained.classifier.save(path)
        write_note(path, NOTE, {"recipe": made_from, "seed": seed, "validation_accuracy": trained.validation_accuracy,
                                "best_epoch": trained.fit_result.best_epoch})
        state.unlink(missing_ok=True)
    return trained.classifier
