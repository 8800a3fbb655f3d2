"""Train the course's classifier on the real IMDb reviews, beside TF-IDF, and score both: `make imdb`.

Takes the reviews from the hub, or from the folder that COURSE_DATA names. Three seeds; the epoch is chosen on
2,500 of the training reviews; test reviews are looked at once a seed, at the end. Writes data/results/imdb.json and, from
the seed with the best validation accuracy, data/checkpoints/imdb. A second call goes on where the first stopped.

    python data/results/imdb.py [--seeds 0 1 2] [--output FOLDER]
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

from tqdm import tqdm

from course_utils.baselines import tfidf_regression
from course_utils.data import DataNotAvailable, load_reviews, split_reviews
from course_utils.recipes import RECIPES, score, train_classifier
from course_utils.results import FOLDER, add_run, environment, fingerprint, read_runs, update_readme

ROOT = Path(__file__).resolve().parent.parent.parent
RECIPE = RECIPES["imdb"]


def run_tfidf(dataset, common: dict) -> None:
    """Fit TF-IDF with logistic regression on the same training reviews; record its test accuracy."""
    begun = time.perf_counter()
    model = tfidf_regression().fit(dataset["train"]["text"], dataset["train"]["label"])
    seconds = time.perf_counter() - begun
    accuracy = {
        split: float(model.score(dataset[split]["text"], dataset[split]["label"])) for split in ("validation", "test")
    }
    add_run("imdb", {
        "model": "TF-IDF 1-2-grams, logistic regression", "order": 0, "seed": 0, **common,
        "parameters": int(model[-1].coef_.size + 1), "seconds": round(seconds, 1),
        "validation_accuracy": accuracy["validation"],
        "test": {"accuracy": accuracy["test"], "reviews": len(dataset["test"])},
    })


def run_classifier(dataset, common: dict, seed: int, output: Path) -> None:
    """Train one seed, keep it under `output`, record its test accuracy."""
    state = output / f"seed-{seed}" / "training_state.safetensors"
    trained = train_classifier(dataset, RECIPE, seed, checkpoint=state)
    test = score(trained, dataset["test"], RECIPE)
    trained.classifier.save(output / f"seed-{seed}")
    state.unlink(missing_ok=True)
    add_run("imdb", {
        "model": "attention classifier", "order": 1, "seed": seed, **common,
        "parameters": sum(p.numel() for p in trained.classifier.model.parameters()),
        "seconds": round(trained.fit_result.seconds, 1), "best_epoch": trained.fit_result.best_epoch,
        "history": [{key: round(value, 4) for key, value in epoch.items()} for epoch in trained.fit_result.history],
        "validation_accuracy": trained.validation_accuracy,
        "test": {"accuracy": test["accuracy"], "reviews": len(dataset["test"])},
    })


def main() -> int:
    """Run what is missing, print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--output", type=Path, default=ROOT / "outputs" / "imdb")
    chosen = parser.parse_args()
    try:
        dataset = load_reviews("imdb")
    except DataNotAvailable as error:
        print(error, file=sys.stderr)
        return 1
    dataset = split_reviews(dataset, validation=0.1, seed=0)
    data = {split: len(dataset[split]) for split in dataset}
    settings = fingerprint(RECIPE, data, fingerprint(list(dataset["test"]["text"])))
    common = {"data": data, "settings": settings, "recipe": RECIPE._asdict(), **environment()}
    wanted = [("TF-IDF 1-2-grams, logistic regression", 0)] + [("attention classifier", seed) for seed in chosen.seeds]
    done = {(run["model"], run["seed"]) for run in read_runs("imdb") if run["settings"] == settings}
    for model, seed in tqdm([run for run in wanted if run not in done], unit="model"):
        if seed == 0 and model.startswith("TF-IDF"):
            run_tfidf(dataset, common)
        else:
            run_classifier(dataset, common, seed, chosen.output)
    keep_best(chosen.output)
    if read_runs("scoreboard"):
        update_readme()
    for run in read_runs("imdb"):
        print(f"{run['model']:<40} seed {run['seed']}  test {run['test']['accuracy']:.4f}  {run['seconds']:.0f} s")
    return 0


def keep_best(output: Path) -> None:
    """Copy the seed with the best validation accuracy, if it was trained here, to data/checkpoints/imdb."""
    runs = [run for run in read_runs("imdb") if run["model"] == "attention classifier"]
    best = max(runs, key=lambda run: run["validation_accuracy"])
    source, target = output / f"seed-{best['seed']}", FOLDER.parent / "checkpoints" / "imdb"
    if (source / "model.safetensors").is_file():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("training_state*"))
        print(f"data/checkpoints/imdb holds seed {best['seed']}, the best of {len(runs)} on validation")


if __name__ == "__main__":
    sys.exit(main())
