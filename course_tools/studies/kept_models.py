"""The models that come with the course: `python -m course_tools models` trains those that data/checkpoints lacks."""

import argparse
from collections.abc import Callable
from pathlib import Path

from course_tools.studies.kept_encoder import make_encoder
from course_tools.studies.program_models import make_import_model
from course_tools.studies.sets.induction import make_induction_model, make_model_without_help
from course_utils.files.paths import CHECKPOINTS
from course_utils.language_model import LanguageModel
from course_utils.recipes.small_language_models import kept_model, model_names
from course_utils.recipes.trained_models import fingerprint_of, name_of, read_whole, settings_of, train_and_keep
from course_utils.training.saved_models import holds_model, write_model

LANGUAGE_MODELS = {"induction": make_induction_model, "induction-without-help": make_model_without_help,
                   "imports": make_import_model}        # five seeds of each
CLASSIFIERS = [(seed, changes) for changes in ({}, {"pooling": "mean"}) for seed in range(5)]


def bring_along(name: str, seed: int, make: Callable[[int], None]) -> Path:
    """Put a language model among those that come with the course, made if need be; return its name there."""
    committed, made_here = model_names(name, seed)
    if not holds_model(committed):
        if not holds_model(made_here):
            make(seed)
        write_model(committed, *kept_model(name, seed), {}, LanguageModel)
    return committed


def main(arguments: list[str] | None = None) -> int:
    """Train what comes with the course and is missing; return the exit status."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(arguments)     # takes no arguments: any is refused
    for seed, changes in CLASSIFIERS:
        path, made_from = CHECKPOINTS / name_of(seed, "reviews", changes), fingerprint_of(seed, "reviews", changes)
        if read_whole(path, made_from) is None:
            train_and_keep(path, made_from, seed, settings_of("reviews", changes), progress=True)
        print(path.name, flush=True)
    for name, make in LANGUAGE_MODELS.items():
        for seed in range(5):
            print(bring_along(name, seed, make).name, flush=True)
    if not holds_model(CHECKPOINTS / "encoder"):
        from course_tools.studies.sets import pretrained  # it looks for MiniLM

        make_encoder(*pretrained.base())
    print("encoder", flush=True)
    return 0
