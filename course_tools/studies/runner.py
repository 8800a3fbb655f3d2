"""Experiments as files: run what is missing of a set of runs, several at a time, and write each down when it ends.

A `ResultSet` says what a result file wants, what that needs and how one run is made; those of the course are in `sets`.

Does: find what is missing, run it in separate processes, write down what every run says of itself, keep every finished
run at once, resume. Does not: know any set or model. `command` is its command line.
"""

import dataclasses
import functools
import multiprocessing
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from course_tools.studies.needs import Need
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
    run(row, seed, state): one run; `state` is a file for an unfinished training, to resume from. Returns what is this
        set's own, a dict; where a network was trained, a `Trained`. `made_run` adds what every run says of itself. A
        function of a module, so that it can travel to another process.
    depends_on: what the runs read and don't make, the course's translations and what is in a module aside.
    seeds(row, asked) -> the seeds of a row, where they aren't simply those that are asked for.
    change(row) -> dict: what a row changes, where `rows` doesn't say it.
    finish(): called when all runs are made; by default nothing.
    line(runs) -> str: what the command prints of a row's runs; by default their test accuracy.
    """

    name: str
    rows: Mapping[str, Any] | Iterable[str]
    settings: Callable[[], str]
    run: Callable[[str, int, Path], "dict | Trained"]
    depends_on: tuple[Need, ...] = ()
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


class Trained(NamedTuple):
    """What a run that trained a network returns: the network, what `fit` returned, what is the set's own.

    chosen: what the set calls the epoch whose weights were kept; "" if it says nothing of it.
    """

    network: nn.Module
    result: Any
    own: dict
    chosen: str = "best_epoch"


def made_run(run: Callable, row: str, seed: int, state: Path | None) -> dict:
    """What a set's `run` returns, with what every run says of itself.

    Of a training: the number of parameters, its seconds, the epoch that was kept, the numbers of each epoch; of all others:
    their seconds. What a run says itself of these stands.
    """
    begun = time.perf_counter()
    made = run(row, seed, state)
    if not isinstance(made, Trained):
        return {"seconds": round(time.perf_counter() - begun, 1), **made}
    chosen = {made.chosen: made.result.best_epoch} if made.chosen else {}
    history = [{key: round(value, 4) for key, value in epoch.items()} for epoch in made.result.history]
    return {"parameters": parameters_of(made.network), "seconds": round(made.result.seconds, 1), **chosen,
            "history": history, **made.own}


def parameters_of(network: nn.Module, trained: bool = False) -> int:
    """How many numbers a network has; `trained`: those alone that training changes."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad or not trained)


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
    one: ResultSet, seeds: list[int], *, jobs: int = 2, threads: int = 1, folder: Path = FOLDER, only: str = "",
    progress: bool = True,
) -> int:
    """Make the missing runs of a set, `jobs` at a time with so many `threads` each; return how many failed.

    Rows that others need come first, and then one seed of every row. Every finished run is written down at once, and the
    same call goes on after an interruption. A run that fails is told on the error stream, and so is what a run needs and
    can't find; the others are made all the same.
    """
    todo, states = missing_runs(one, seeds, folder, only), state_folder(folder)
    todo.sort(key=lambda run: seeds.index(run[1]) if run[1] in seeds else -1)
    first = {row for need in one.depends_on if need.made_by == one.name for row in need.rows}
    settings, failed = one.settings(), 0
    with bars.bar(total=len(todo), unit="run", shown=progress) as bar:
        for stage in ([run for run in todo if run[0] in first], [run for run in todo if run[0] not in first]):
            lacking = {run: why for run in stage if (why := lacks(one, *run))}
            for why in dict.fromkeys(lacking.values()):
                bar.write(f"{one.name}: {sum(why == other for other in lacking.values())} runs can't be made: {why}",
                          file=sys.stderr)
            failed += len(lacking)
            bar.update(len(lacking))
            for (row, seed), outcome in _each(one, [run for run in stage if run not in lacking], jobs, threads, states):
                try:
                    add_run(one.name, {**outcome(), "settings": settings}, folder)
                    _state_file(states, one.name, row, seed).unlink(missing_ok=True)
                    set_order(one.name, [row for row, _ in one.wanted(seeds)], folder)
                except Exception as error:              # one row that cannot be made must not lose the others
                    failed += 1
                    bar.write(f"{one.name}: {row}, seed {seed} failed: {type(error).__name__}: {error}", file=sys.stderr)
                bar.set_postfix_str(f"{row}, seed {seed}")
                bar.update()
    return failed


def lacks(one: ResultSet, row: str, seed: int) -> str:
    """What a run needs and can't find, and how to get it; an empty string if all is there."""
    for need in one.depends_on:
        try:
            need.look(row, seed)
        except (RuntimeError, OSError) as error:        # neither here nor to be fetched
            return f"{need.what}: {error}"
    return ""


def forget(name: str, runs: list[tuple[str, int]], folder: Path = FOLDER) -> None:
    """Remove these runs, (model, seed) each, from their result file, and what is kept of their unfinished training."""
    remove_runs(name, runs, folder)
    for model, seed in runs:
        _state_file(state_folder(folder), name, model, seed).unlink(missing_ok=True)


def _each(
    one: ResultSet, todo: list[tuple[str, int]], jobs: int, threads: int, states: Path
) -> Iterator[tuple[tuple[str, int], Callable]]:
    """Each run as it ends, with a function that gives its record or raises what went wrong."""
    calls = {run: functools.partial(_make, one.name, one.run, one.describe(run[0]), *run, states) for run in todo}
    if jobs == 1:
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            yield from calls.items()
        finally:
            torch.set_num_threads(before)
        return
    spawn = multiprocessing.get_context("spawn")        # jobs that each took all cores would slow each other
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=torch.set_num_threads, initargs=(threads,)) as pool:
        waiting = {pool.submit(call): run for run, call in calls.items()}
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


def _make(name: str, run: Callable, change: dict, row: str, seed: int, states: Path) -> dict:
    """One run, perhaps in a process of its own, as it's written down but for its settings."""
    states.mkdir(parents=True, exist_ok=True)
    state = _state_file(states, name, row, seed)
    with locked(state, f"training {row}, seed {seed}"):  # raises where another process is making this run
        return {"model": row, "order": 0, "seed": seed, "change": change, **environment(), **made_run(run, row, seed, state)}


def accuracies(*names: str) -> Callable[[list[dict]], str]:
    """A `line` of a set: the mean accuracy on each of these parts of a run, in per cent."""
    def line(runs: list[dict]) -> str:
        return "  ".join(f"{name} {100 * sum(run[name]['accuracy'] for run in runs) / len(runs):.1f}" for name in names)

    return line


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


def train_and_score(net, data: dict, encoded: dict, options, seed: int, state, **settings) -> Trained:
    """Train a network, choose its epoch on the validation split, score it once on every other split.

    `data` and `encoded` hold the splits by name, as datasets and as `EncodedReviews`; `settings` are those of `fit`. Numbers
    that aren't trained don't count as parameters here.
    """
    result = fit(
        net.to(fastest_device()), encoded["train"], encoded["validation"],
        options=options, seed=seed, checkpoint=state, progress=False, **settings,
    )
    scored = {
        split: scored_split(data[split], evaluate(net, encoded[split], options).predictions)
        for split in data if split != "train"
    }
    return Trained(net, result, {"parameters": parameters_of(net, trained=True), **scored})


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
