"""Trained classifiers that several notebooks look into: trained once, then read.

    classifier = trained_model(seed=1)                    # the classifier of notebook 08 on another seed
    shallow = trained_model(seed=0, num_layers=1)         # one thing changed

A model is looked for under data/checkpoints (those that come with the course), then under outputs/models, and is else
trained and kept there. Its folder is named after what it was made from (recipe, reviews, seed), so a model made from other
things is never taken for it. Does: find, train, keep, check. Does not: define models or recipes.

`python -m course_tools models` makes those that come with the course.
"""

import json
import sys
from pathlib import Path

from course_utils.classifier import ReviewClassifier
from course_utils.data import load_reviews
from course_utils.files import bars, fingerprint, locked, making_folder, remove_partials, sha256, write_json
from course_utils.files.paths import CHECKPOINTS, output_folder
from course_utils.recipes import RECIPES, Recipe, changed, train_classifier
from course_utils.results import split_fingerprints

MANIFEST = "made_from.json"                             # written last: a folder without it is half-written


def trained_model(seed: int = 0, *, recipe: str = "reviews", progress: bool = True, **changes) -> ReviewClassifier:
    """The course's classifier, trained on its reviews with `seed`; `changes` are options of the recipe: num_layers=1.

    Reads it where it is kept, else trains it (about a minute for two layers, with a progress bar) and keeps it. Two
    notebooks that ask for the same model at once train it once. A damaged folder is put aside, with a message, and made
    again.
    Raises ValueError for an option or recipe that there is not.
    """
    settings = settings_of(recipe, changes)
    name = folder_name(seed, recipe, changes)
    for kept in (CHECKPOINTS / name, output_folder() / "models" / name):
        classifier = read_whole(kept)
        if classifier is not None:
            return classifier
    return train_and_keep(output_folder() / "models" / name, seed, settings, progress)


def settings_of(recipe: str, changes: dict) -> Recipe:
    """A recipe by its name with some options changed. Raises ValueError for an option or recipe that there is not."""
    if recipe not in RECIPES:
        raise ValueError(f"recipe={recipe!r}; there are {', '.join(sorted(RECIPES))}")
    return changed(RECIPES[recipe], **changes)


def folder_name(seed: int, recipe: str, changes: dict) -> str:
    """A name to read and a fingerprint of everything the weights depend on: 'reviews-num_layers-1-seed-0-3fa9c1d2'."""
    dataset = load_reviews("reviews")
    reviews = split_fingerprints({split: dataset[split] for split in ("train", "validation")})
    words = [f"{option}-{value}" for option, value in sorted(changes.items())]
    return "-".join([recipe, *words, f"seed-{seed}", fingerprint(settings_of(recipe, changes), reviews, seed)[:8]])


def read_whole(folder: Path) -> ReviewClassifier | None:
    """The classifier of a whole, undamaged folder; None if there is none."""
    if not folder.is_dir():
        return None
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if any(sha256(folder / file) != checksum for file, checksum in manifest["files"].items()):
            raise ValueError("a file has changed since it was written")
        return ReviewClassifier.load(folder)
    except Exception as error:  # half-written, cut off, or not ours: whatever it is, it is not used
        print(f"the model {folder.name} is damaged or half-written ({type(error).__name__}); it is made again",
              file=sys.stderr)
        return None


def train_and_keep(folder: Path, seed: int, settings: Recipe, progress: bool) -> ReviewClassifier:
    """Train under a lock, so that one process does it and others wait; the folder appears whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent / f"{folder.name}.training", "training a model", wait=-1):
        if folder.is_dir():                             # another process made it while this one waited, or it is damaged
            classifier = read_whole(folder)
            if classifier is not None:
                return classifier
            put_aside(folder)
        bars.say(f"training {folder.name} (once; it is kept in outputs/models)", shown=progress)
        state = folder.with_name(f"{folder.name}.state.safetensors")  # a training that is interrupted goes on from here
        trained = train_classifier(load_reviews("reviews"), settings, seed, checkpoint=state, progress=progress)
        remove_partials(folder)
        with making_folder(folder) as partial:
            write(trained.classifier, partial, {"seed": seed, "validation_accuracy": trained.validation_accuracy,
                                                "best_epoch": trained.fit_result.best_epoch})
        state.unlink(missing_ok=True)
    return trained.classifier


def put_aside(folder: Path) -> Path:
    """Give a damaged folder another name, since it may be somebody's only copy of something; return the new path."""
    n = 1
    while (aside := folder.with_name(f"{folder.name}.damaged-{n}")).exists():
        n += 1
    folder.rename(aside)
    print(f"the damaged folder is now {aside.name}", file=sys.stderr)
    return aside


def write(classifier: ReviewClassifier, folder: Path, about: dict) -> None:
    """Save a classifier in a new folder, with the checksums of its files and what it was made from."""
    classifier.save(folder)
    note_files(folder, about)


def note_files(folder: Path, about: dict) -> None:
    """Write what a model was made from, with the checksums of its files."""
    files = {path.name: sha256(path) for path in sorted(folder.iterdir())
             if path.name != MANIFEST and not path.name.startswith(".")}
    write_json(folder / MANIFEST, {**about, "files": files})


