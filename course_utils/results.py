"""Result files: what a run was, and what came out, so that no number is quoted from memory.

Does: append runs to a JSON file under data/results, find a run that has been made, summarise seeds with an
interval. Does not: run anything (the scripts in data/results do) or draw.
"""

import hashlib
import json
import math
import os
import platform
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import torch

from course_utils.training import accuracy_by

FOLDER = Path(__file__).resolve().parent.parent / "data" / "results"


def fingerprint(*parts) -> str:
    """A short name for settings or texts: the same parts give the same name."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(json.dumps(part, sort_keys=True, ensure_ascii=False).encode() + b"\0")
    return digest.hexdigest()[:12]


def environment() -> dict:
    """What the digits of a run may depend on: device, threads, torch's version."""
    device = "cuda" if torch.cuda.is_available() else f"cpu ({platform.machine()})"
    return {"device": device, "threads": torch.get_num_threads(), "torch": torch.__version__.partition("+")[0]}


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
    runs = [old for old in read_runs(name, folder) if (old["model"], old["seed"]) != (run["model"], run["seed"])]
    runs = sorted([*runs, run], key=lambda run: (run["order"], run["seed"]))
    path = Path(folder) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    os.replace(partial, path)


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


def interval(accuracies: Iterable[float], reviews: int) -> tuple[float, float]:
    """Mean accuracy over seeds and half the width of its 95 % interval, for `reviews` scored reviews.

    Two sources of chance add up: which reviews were scored (binomial, the same for every seed) and which
    seed was drawn (variance between seeds, divided by their number).
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


def scoreboard_table(runs: list[dict]) -> str:
    """The scoreboard on the course's reviews as a Markdown table: test accuracy in per cent, overall and by kind."""
    kinds = ["plain", "negation", "order", "distant"]
    lines = [f"| model | seeds | all kinds | {' | '.join(kinds)} | hand-written | parameters | seconds |", "|---" * 10 + "|"]
    for model, same in by_model(runs).items():
        cells = [percent(summarise(same, "test", "accuracy"))]
        cells += [percent(summarise(same, "test", "by_kind", kind)) for kind in kinds]
        cells += [percent(summarise(same, "handwritten", "accuracy"))]
        seconds = sum(run["seconds"] for run in same) / len(same)
        lines.append(f"| {model} | {len(same)} | {' | '.join(cells)} | {same[0]['parameters']:,} | {seconds:.0f} |")
    return "\n".join(lines)


def imdb_table(runs: list[dict]) -> str:
    """The results on real reviews as a Markdown table: test accuracy in per cent."""
    lines = ["| model on IMDb | seeds | test accuracy | parameters | seconds |", "|---" * 5 + "|"]
    for model, same in by_model(runs).items():
        seconds = sum(run["seconds"] for run in same) / len(same)
        accuracy = percent(summarise(same, "test", "accuracy"))
        lines.append(f"| {model} | {len(same)} | {accuracy} | {same[0]['parameters']:,} | {seconds:.0f} |")
    return "\n".join(lines)


def readme_section(folder: Path = FOLDER) -> str:
    """What the README quotes, made from the result files; the test of the README compares it with this."""
    scoreboard, imdb = read_runs("scoreboard", folder), read_runs("imdb", folder)
    threads = sorted({run["threads"] for run in scoreboard + imdb})
    counted = "accuracy in per cent, with a 95 % interval for the reviews drawn and the seeds drawn"
    parts = [
        f"Test accuracy on the course's reviews ({scoreboard[0]['test']['reviews']:,} of them; {counted}):",
        scoreboard_table(scoreboard),
    ]
    if imdb:
        parts += [
            f"And on {imdb[0]['test']['reviews']:,} real test reviews (25,000 labelled ones for training and validation):",
            imdb_table(imdb),
        ]
    parts.append(
        f"Seconds are training time on a shared two-core machine without a GPU ({' or '.join(map(str, threads))} threads): "
        "an order of magnitude, not a benchmark."
    )
    return "\n\n".join(parts)


def update_readme(path: Path = FOLDER.parent.parent / "README.md") -> None:
    """Write `readme_section` between the README's two scoreboard marks."""
    begin, end = "<!-- scoreboard: begin -->", "<!-- scoreboard: end -->"
    text = path.read_text(encoding="utf-8")
    head, tail = text.partition(begin)[0], text.partition(end)[2]
    path.write_text(f"{head}{begin}\n{readme_section()}\n{end}{tail}", encoding="utf-8", newline="\n")
