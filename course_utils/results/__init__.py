"""Result files: what a run was, and what came out, so that no number is quoted from memory.

Does: append runs to a JSON file under data/results, find a run that has been made, summarise seeds with an
interval. Does not: run anything, or write tables (`course_tools.studies` does both).
"""

import contextlib
import json
import math
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from scipy import stats

from course_utils.files import fingerprint, locked, write_json
from course_utils.files.paths import RESULTS as FOLDER
from course_utils.training import accuracy_by, fastest_device


def split_fingerprints(splits) -> list[str]:
    """A `fingerprint` of the texts and labels of each split of a DatasetDict, or of a dict of datasets."""
    return [fingerprint(list(split["text"]), list(split["label"])) for split in splits.values()]


def environment() -> dict:
    """What the digits of a run may depend on: device, threads, versions."""
    used = fastest_device()
    more = {"cpu": platform.machine, "cuda": torch.cuda.get_device_name}.get(used.type)
    device = f"{used.type} ({more()})" if more else used.type
    versions = {"torch": torch.__version__.partition("+")[0], "python": platform.python_version()}
    return {"device": device, "threads": torch.get_num_threads(), **versions}


def read_runs(name: str, folder: Path = FOLDER) -> list[dict]:
    """The runs in data/results/`name`.json; an empty list if there is no such file.

    Raises ValueError that names the file if it is not a list of runs.
    """
    path = Path(folder) / f"{name}.json"
    if not path.exists():
        return []
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))
        return sorted(runs, key=lambda run: (run["order"], run["seed"]))
    except (json.JSONDecodeError, TypeError, KeyError) as error:
        raise ValueError(f"data/results/{path.name} is damaged ({error!r}); get it anew, or delete it") from None


def add_run(name: str, run: dict, folder: Path = FOLDER) -> None:
    """Put a run into the file, in place of one of the same model and seed; written at once or not at all."""
    with locked_runs(name, folder):
        runs = [old for old in read_runs(name, folder) if (old["model"], old["seed"]) != (run["model"], run["seed"])]
        runs = sorted([*runs, run], key=lambda run: (run["order"], run["seed"]))
        write_json(Path(folder) / f"{name}.json", runs)


@contextlib.contextmanager
def locked_runs(name: str, folder: Path) -> Iterator[None]:
    """One process at a time changes a result file, so that two scripts that add to it lose no run; others wait."""
    path = Path(folder) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path, "writing down a run", wait=-1):
        yield


def scores(predictions, labels, **groups) -> dict:
    """Accuracy, on how many reviews, and both by group: scores(predictions, labels, kind=["plain", "order", …]).

    A group gives by_kind, {"plain": accuracy, …}, and reviews_by_kind, the number of reviews behind each.
    """
    right = [int(predicted) == int(label) for predicted, label in zip(predictions, labels, strict=True)]
    result = {"accuracy": sum(right) / len(right), "reviews": len(right)}
    for name, members in groups.items():
        result[f"by_{name}"] = accuracy_by(members, predictions, labels)
        result[f"reviews_by_{name}"] = dict(sorted(Counter(members).items()))
    return result


def scores_one_by_one(predictions, labels, **groups) -> dict:
    """`scores`, and in `right` which reviews were judged right, so that `difference` can compare models review by review."""
    right = (int(predicted) == int(label) for predicted, label in zip(predictions, labels, strict=True))
    return {**scores(predictions, labels, **groups), "right": right_bits(right)}


def interval(accuracies: Iterable[float], reviews: int) -> tuple[float, float]:
    """Mean accuracy over seeds and half the width of its 95 % interval, for `reviews` scored reviews.

    Two sources of chance add up: which reviews were scored (binomial, the same for every seed) and which
    seed was drawn (variance between seeds, divided by their number). Plain on purpose: 1.96 however few the
    seeds. `difference`, which is for comparing models, takes t, and what both sides share falls out of it.
    """
    accuracies = list(accuracies)
    mean = sum(accuracies) / len(accuracies)
    sampling = mean * (1 - mean) / reviews
    between = 0.0
    if len(accuracies) > 1:
        between = sum((a - mean) ** 2 for a in accuracies) / (len(accuracies) - 1) / len(accuracies)
    return mean, 1.96 * math.sqrt(sampling + between)


def summarise(runs: list[dict], *path: str) -> tuple[float, float]:
    """`interval` of one figure over the runs of a model: summarise(runs, "test", "by_kind", "order").

    The last part of `path` names an accuracy of what `scores` returned; the number of reviews stands beside it.
    """
    values = []
    for run in runs:
        value = run
        for part in path:
            value = value[part]
        values.append(value)
    scored = runs[0][path[0]]
    grouped = len(path) > 1 and path[1].startswith("by_")
    return interval(values, scored[f"reviews_{path[1]}"][path[-1]] if grouped else scored["reviews"])


def right_bits(right: Iterable[bool]) -> str:
    """Whether each review was judged right, four to a hexadecimal digit: what `right_of` reads."""
    return f"{int('1' + ''.join(str(int(hit)) for hit in right), 2):x}"                 # a leading one keeps leading zeros


def right_of(run: dict, split: str = "test") -> np.ndarray:
    """Whether each review of a split was judged right: (reviews,) bool, read from the run's hexadecimal `right`."""
    return np.array([bit == "1" for bit in f"{int(run[split]['right'], 16):b}"[1:]])


def difference(runs: list[dict], baseline: list[dict], split: str = "test") -> tuple[float, float]:
    """Mean accuracy of `runs` minus that of `baseline`, and half the width of its 95 % interval; notebook 12 builds it.

    All were scored on the same reviews, so what makes a review hard falls out of the difference. To the chance of the
    reviews adds that of the seeds of either side; with three seeds their spread is known badly, so the factor is
    Student's t with Welch's degrees of freedom (Welch 1947), not 1.96. Raises ValueError for a side with one seed: its
    spread is not known.
    """
    return difference_of_means(*([right_of(run, split) for run in side] for side in (runs, baseline)))


def difference_in_bits(
    nats: list[list[float]], baseline: list[list[float]], sizes: list[int]
) -> tuple[float, float]:
    """Bits per byte of one model minus those of another on the same texts, and half the width of the 95 % interval.

    `nats` and `baseline` hold the sum of -ln p of each text, (seeds, texts); `sizes` are the texts' bytes. The chance is
    that of `difference`: which texts there were (as whole texts, weighted by their sizes), and which seeds.
    """
    sizes = np.array(sizes, dtype=float)

    def by_text(nats):                                  # (seeds, texts), whose mean over texts is a seed's bits per byte
        bits = np.array(nats, dtype=float) / math.log(2)
        overall = bits.sum(axis=1).mean() / sizes.sum()
        return overall + len(sizes) * (bits - overall * sizes) / sizes.sum()

    return difference_of_means(by_text(nats), by_text(baseline))


def difference_of_means(ours, theirs) -> tuple[float, float]:
    """What `difference` computes, of any numbers: ours and theirs (seeds, items), each item the same on both sides."""
    sides = [np.array(side, dtype=float) for side in (ours, theirs)]       # (seeds, items)
    if min(map(len, sides)) < 2:
        raise ValueError("a difference needs two seeds or more on either side; one seed says nothing of the spread of seeds")
    per_item = sides[0].mean(axis=0) - sides[1].mean(axis=0)
    parts = [(per_item.var(ddof=1) / len(per_item), len(per_item) - 1),
             *((side.mean(axis=1).var(ddof=1) / len(side), len(side) - 1) for side in sides)]
    total = sum(part for part, _ in parts)
    if total == 0:
        return float(per_item.mean()), 0.0
    freedom = total**2 / sum(part**2 / degrees for part, degrees in parts)
    return float(per_item.mean()), float(stats.t.ppf(0.975, freedom) * math.sqrt(total))


def by_model(runs: list[dict]) -> dict[str, list[dict]]:
    """The runs of each model, in the order of the scoreboard."""
    grouped = {}
    for run in runs:
        grouped.setdefault(run["model"], []).append(run)
    return grouped


def percent(figure: tuple[float, float]) -> str:
    """A mean and half its interval in per cent: percent((0.871, 0.012)) -> '87.1 ± 1.2'."""
    mean, half = figure
    return f"{100 * mean:.1f} ± {100 * half:.1f}"


def decoded(rows: Sequence[str], *shape: int) -> np.ndarray:
    """What `coded` wrote: (rows, *shape)."""
    return np.array([[int(number) for number in row.split()] for row in rows]).reshape(len(rows), *(shape or (-1,))) / 1000
