"""Experiments as files: run what is missing of a set of runs, several at a time, and write each down when it ends.

A `ResultSet` says what a result file wants and how one run is made; those of the course are in `sets`.

Does: find what is missing, run it in separate processes, keep every finished run at once, resume. Does not: know
any set or model. `command` is its command line.
"""

import dataclasses
import functools
import multiprocessing
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

from course_utils.data import load_reviews, pairs
from course_utils.files import bars, locked, write_json
from course_utils.files.paths import output_folder
from course_utils.results import FOLDER, add_run, environment, locked_runs, read_runs, scores, scores_one_by_one
from course_utils.training import evaluate, fastest_device, fit


@dataclasses.dataclass(frozen=True)
class ResultSet:
    """What data/results/`name`.json holds, and how it is made.

    rows: the rows of its table, in order; {row: what it changes}, a dict or a NamedTuple, or with `change` their names.
    settings() -> str: a fingerprint of all that every run depends on (recipe, reviews).
    run(row, seed, state) -> dict: one run; `state` is a file for an unfinished training, to resume from. A function of a
        module, so that it can travel to another process.
    seeds(row, asked) -> the seeds of a row, where they aren't simply those that are asked for.
    change(row) -> dict: what a row changes, where `rows` doesn't say it.
    finish(): called when all runs are made; by default nothing.
    line(runs) -> str: what the command prints of a row's runs; by default their test accuracy.
    """

    name: str
    rows: Mapping[str, Any] | Iterable[str]
    settings: Callable[[], str]
    run: Callable[[str, int, Path], dict]
    seeds: Callable[[str, list[int]], Iterable[int]] | None = None
    change: Callable[[str], dict] | None = None
    finish: Callable[[], None] | None = None
    line: Callable[[list[dict]], str] | None = None

    def wanted(self, asked: list[int]) -> list[tuple[str, int]]:
        """(row, seed) of every run, row by row."""
        return [(row, seed) for row in self.rows for seed in (self.seeds(row, asked) if self.seeds else asked)]

    def describe(self, row: str) -> dict:
        """What a row changes, as a JSON file gives it back: it's written into its runs; one made otherwise is made again."""
        change = self.change(row) if self.change else self.rows[row]
        change = change._asdict() if hasattr(change, "_asdict") else change
        return {name: list(value) if isinstance(value, tuple) else value for name, value in change.items()}


def once(row: str, asked: list[int]) -> list[int]:
    """The `seeds` of a set whose runs draw nothing: seed 0, whatever is asked for."""
    return [0]


def missing_runs(made: ResultSet, seeds: list[int], folder: Path = FOLDER, only: str = "") -> list[tuple[str, int]]:
    """What `wanted` lists and the set's file does not hold as it would be made now.

    `only` is a part of a model's name: other rows are left alone.
    """
    settings = made.settings()
    done = {
        (run["model"], run["seed"])
        for run in read_runs(made.name, folder)
        if run["settings"] == settings and run.get("change", {}) == made.describe(run["model"])
    }
    return [run for run in made.wanted(seeds) if run not in done and only in run[0]]


def run_missing(
    sets: list[ResultSet], seeds: list[int], *, jobs: int = 2, threads: int = 1, folder: Path = FOLDER, only: str = "",
    progress: bool = True,
) -> int:
    """Make the missing runs of all sets, `jobs` at a time with so many `threads` each; return how many failed.

    One seed of every row comes first. Every finished run is written down at once, and the same call goes on
    after an interruption. A run that fails is told on the error stream, and the others are made all the same.
    """
    todo = [(one, model, seed) for one in sets for model, seed in missing_runs(one, seeds, folder, only)]
    todo.sort(key=lambda run: seeds.index(run[2]) if run[2] in seeds else -1)
    settings = {one.name: one.settings() for one in sets}
    failed = 0
    with bars.bar(total=len(todo), unit="run", shown=progress) as bar:
        for (one, model, seed), outcome in _each(todo, jobs, threads, state_folder(folder)):
            try:
                add_run(one.name, {**outcome(), "settings": settings[one.name]}, folder)
                _state_file(state_folder(folder), one.name, model, seed).unlink(missing_ok=True)
                set_order(one.name, [row for row, _ in one.wanted(seeds)], folder)
            except Exception as error:                  # one row that cannot be made must not lose the others
                failed += 1
                bar.write(f"{one.name}: {model}, seed {seed} failed: {type(error).__name__}: {error}", file=sys.stderr)
            bar.set_postfix_str(f"{model}, seed {seed}")
            bar.update()
    return failed


def forget(name: str, runs: list[tuple[str, int]], folder: Path = FOLDER) -> None:
    """Remove these runs, (model, seed) each, from their result file, and what is kept of their unfinished training."""
    remove_runs(name, runs, folder)
    for model, seed in runs:
        _state_file(state_folder(folder), name, model, seed).unlink(missing_ok=True)


def _each(todo: list, jobs: int, threads: int, states: Path) -> Iterator[tuple[tuple, Callable]]:
    """Each run as it ends, with a function that gives its record or raises what went wrong."""
    if jobs == 1:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            for run in todo:
                yield run, functools.partial(_make, *_parts(*run), states)
        finally:
            torch.set_num_threads(before)
        return
    spawn = multiprocessing.get_context("spawn")        # jobs that each took all cores would slow each other
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=torch.set_num_threads, initargs=(threads,)) as pool:
        waiting = {pool.submit(_make, *_parts(*run), states): run for run in todo}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result
        except BaseException:                           # interrupted: do not begin what has not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def state_folder(folder: Path) -> Path:
    """Where unfinished trainings of the runs in `folder` are kept."""
    return output_folder() / "unfinished" / (folder.name if folder != FOLDER else "results")


def _state_file(states: Path, name: str, model: str, seed: int) -> Path:
    return states / f"{name}-{re.sub(r'[^A-Za-z0-9]+', '-', model)}-{seed}.safetensors"


def _parts(one: ResultSet, model: str, seed: int) -> tuple[str, Callable, dict, str, int]:
    """What `_make` needs of a set; the rest of it needn't be able to travel."""
    return one.name, one.run, one.describe(model), model, seed


def _make(name: str, run: Callable, change: dict, model: str, seed: int, states: Path) -> dict:
    """One run in a process of its own, with what every run must say of itself."""
    states.mkdir(parents=True, exist_ok=True)
    state = _state_file(states, name, model, seed)
    with locked(state, f"training {model}, seed {seed}"):  # raises where another process is making this run
        return {
            "model": model, "order": 0, "seed": seed, "change": change, **environment(),
            **run(model, seed, state),
        }


@functools.cache
def scored_reviews() -> dict:
    """What runs on the course's reviews are trained and scored on: their splits, and the hand-written ones."""
    return {**load_reviews("reviews"), "handwritten": load_reviews("handwritten")["test"]}


def scored_split(dataset, predictions) -> dict:
    """Accuracy on the course's reviews: overall, by kind and on frames that no training review has.

    `right` says of every review whether it was right, four to a hexadecimal digit (see `right_of`).
    """
    result = scores_one_by_one(predictions, dataset["label"], kind=dataset["kind"])
    if "unseen_frame" in dataset.column_names:
        rows = [i for i, unseen in enumerate(dataset["unseen_frame"]) if unseen]
        if rows:
            result["unseen_frames"] = scores([predictions[i] for i in rows], [dataset["label"][i] for i in rows])
    return result


def train_and_score(net, data: dict, encoded: dict, options, seed: int, state, **settings) -> dict:
    """Train a network, choose its epoch on the validation split, score it once on every other split.

    `data` and `encoded` hold the splits by name, as datasets and as `EncodedReviews`; `settings` are those of `fit`.
    Returns what a run says: parameters, seconds, best_epoch, history and the scores of each split.
    """
    device = fastest_device()
    result = fit(
        net.to(device), encoded["train"], encoded["validation"],
        options=options, seed=seed, checkpoint=state, progress=False, **settings,
    )
    scored = {
        split: scored_split(data[split], evaluate(net, encoded[split], options).predictions)
        for split in data if split != "train"
    }
    return {
        "parameters": sum(p.numel() for p in net.parameters() if p.requires_grad),
        "seconds": round(result.seconds, 1), "best_epoch": result.best_epoch,
        "history": [{key: round(value, 4) for key, value in epoch.items()} for epoch in result.history],
        **scored,
    }


def twin_gap(net, dataset, encoded, options) -> float:
    """The largest difference between the probabilities of two order twins: zero for a model blind to order."""
    probabilities = evaluate(net, encoded, options).probabilities
    twins = [(a, b) for a, b in pairs(dataset) if dataset[a]["kind"] == "order"]
    return max((probabilities[a] - probabilities[b]).abs().max().item() for a, b in twins)


def remove_runs(name: str, models_and_seeds: Iterable[tuple[str, int]], folder: Path = FOLDER) -> None:
    """Take runs out of the file, so that they are made again; written at once or not at all."""
    gone = set(models_and_seeds)
    with locked_runs(name, folder):
        runs = read_runs(name, folder)
        if any((run["model"], run["seed"]) in gone for run in runs):
            write_json(Path(folder) / f"{name}.json", [run for run in runs if (run["model"], run["seed"]) not in gone])


def set_order(name: str, models: Iterable[str], folder: Path = FOLDER) -> None:
    """Number the runs of the file by the order of the rows in `models`; a row that is not among them comes last."""
    place = {model: i for i, model in enumerate(dict.fromkeys(models))}
    with locked_runs(name, folder):
        runs = [{**run, "order": place.get(run["model"], len(place))} for run in read_runs(name, folder)]
        write_json(Path(folder) / f"{name}.json", sorted(runs, key=lambda run: (run["order"], run["seed"])))
