"""The models that come with the course: `python -m course_tools models` trains those that data/checkpoints lacks."""

import argparse
import shutil
from collections.abc import Callable
from pathlib import Path

from course_tools.studies.program_models import make_import_model
from course_tools.studies.sets.induction import make_induction_model
from course_utils.files import making_folder
from course_utils.files.paths import CHECKPOINTS
from course_utils.recipes.small_language_models import model_folders
from course_utils.recipes.trained_models import folder_name, read_whole, settings_of, train_and_keep
from course_utils.training.saved_models import holds_model

LANGUAGE_MODELS = {"induction": make_induction_model, "imports": make_import_model}    # five seeds of each
CLASSIFIERS = [(seed, changes) for changes in ({}, {"pooling": "mean"}) for seed in range(5)]


def bring_along(name: str, seed: int, make: Callable[[int], None]) -> Path:
    """Put a language model among those that come with the course, made if need be; return its folder."""
    committed, made_here = model_folders(name, seed)
    if not holds_model(committed):
        if not holds_model(made_here):
            make(seed)
        with making_folder(committed) as partial:
            for file in made_here.iterdir():
                if not file.name.startswith("."):
                    shutil.copyfile(file, partial / file.name)
    return committed


def main(arguments: list[str] | None = None) -> int:
    """Train what comes with the course and is missing; return the exit status."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(arguments)     # takes no arguments: any is refused
    for seed, changes in CLASSIFIERS:
        folder = CHECKPOINTS / folder_name(seed, "reviews", changes)
        if read_whole(folder) is None:
            train_and_keep(folder, seed, settings_of("reviews", changes), progress=True)
        print(folder.name, flush=True)
    for name, make in LANGUAGE_MODELS.items():
        for seed in range(5):
            print(bring_along(name, seed, make).name, flush=True)
    return 0
