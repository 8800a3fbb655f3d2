"""The tables that the README quotes, made from the result files; a test holds the README to them.

Does: one Markdown table a result file, and the README's section. Does not: run or compute anything that
`course_utils.experiments.results` does not (see there for the intervals).
"""

from collections.abc import Callable
from pathlib import Path

from course_utils.data import load_reviews, pairs
from course_utils.experiments.results import FOLDER, by_model, difference, percent, read_runs, summarise
from course_utils.files import write_text


def scoreboard_table(runs: list[dict]) -> str:
    """The scoreboard on the course's reviews as a Markdown table: test accuracy in per cent, overall and by kind."""
    kinds = ["plain", "negation", "order", "distant"]
    lines = [f"| model | seeds | all kinds | {' | '.join(kinds)} | hand-written | parameters | seconds |", "|---" * 10 + "|"]
    for model, same in by_model(runs).items():
        cells = [percent(summarise(same, "test", "accuracy"))]
        cells += [percent(summarise(same, "test", "by_kind", kind)) for kind in kinds]
        cells += [percent(summarise(same, "handwritten", "accuracy"))]
        lines.append(f"| {model} | {len(same)} | {' | '.join(cells)} | {same[0]['parameters']:,} | {_quickest(same):.0f} |")
    return "\n".join(lines)


def imdb_table(runs: list[dict]) -> str:
    """The results on real reviews as a Markdown table: test accuracy in per cent."""
    return _accuracy_and_cost(runs, "model on IMDb", "seconds", _quickest)


def better_table(runs: list[dict]) -> str:
    """How far models from scratch get on real reviews, as a Markdown table; the cost counts teachers."""
    return _accuracy_and_cost(
        runs, "more out of the same labels", "processor seconds",
        lambda same: sum(run["cpu_seconds"] for run in same) / len(same),
    )


def _quickest(runs: list[dict]) -> float:
    """Seconds of the quickest of these runs: what else a machine does can only add to them."""
    return min(run["seconds"] for run in runs)


def _accuracy_and_cost(runs: list[dict], rows: str, unit: str, cost: Callable[[list[dict]], float]) -> str:
    lines = [f"| {rows} | seeds | test accuracy | parameters | {unit} |", "|---" * 5 + "|"]
    for model, same in by_model(runs).items():
        accuracy = percent(summarise(same, "test", "accuracy"))
        lines.append(f"| {model} | {len(same)} | {accuracy} | {same[0]['parameters']:,} | {cost(same):.0f} |")
    return "\n".join(lines)


def ablations_table(runs: list[dict]) -> str:
    """One change at a time as a Markdown table: test accuracy, and how much more or less than the default, in per cent."""
    models = by_model(runs)
    default, twins = next(iter(models.values())), pairs(load_reviews("reviews")["test"])
    lines = ["| | change | seeds | test accuracy | against the default | parameters | seconds |", "|---" * 7 + "|"]
    group = ""
    for model, same in models.items():
        first, group = same[0]["change"]["group"] != group, same[0]["change"]["group"]
        against = ""
        if same is not default and len(same) > 1:
            mean, half = difference(same, default, twins)
            against = f"{100 * mean:+.1f} ± {100 * half:.1f}".replace("-", "−")
        cells = [group if first else "", model, len(same), percent(summarise(same, "test", "accuracy")), against]
        lines.append("| " + " | ".join(map(str, cells)) + f" | {same[0]['parameters']:,} | {_quickest(same):.0f} |")
    return "\n".join(lines)


def readme_section(folder: Path = FOLDER) -> str:
    """What the README quotes, made from the result files; the test of the README compares it with this."""
    scoreboard, imdb = read_runs("scoreboard", folder), read_runs("imdb", folder)
    threads = sorted({run["threads"] for run in scoreboard + imdb + read_runs("ablations", folder)})
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
    better = read_runs("imdb_better", folder)
    if better:
        parts += [
            "What was tried to get more out of the same labels on real reviews, without weights from elsewhere (a student "
            "learns from its teacher's probabilities for 50,000 unlabelled reviews; its cost counts the teacher's):",
            better_table(better),
        ]
    ablations = read_runs("ablations", folder)
    if ablations:
        parts += [
            "The full model against one change at a time, on the course's reviews. The differences carry a 95 % interval "
            "for reviews and seeds; among some thirty rows one or two seem to differ by chance alone. "
            "[Notebook 12](notebooks/12_ablations.ipynb) says what can be concluded and what not:",
            ablations_table(ablations),
        ]
    parts.append(
        f"Seconds are the training time of a row's quickest run, on a shared two-core machine without a GPU (threads: "
        f"{' or '.join(map(str, threads))}): an order of magnitude, not a benchmark."
    )
    return "\n\n".join(parts)


def update_readme(path: Path = FOLDER.parent.parent / "README.md") -> None:
    """Write `readme_section` between the README's two scoreboard marks."""
    begin, end = "<!-- scoreboard: begin -->", "<!-- scoreboard: end -->"
    text = path.read_text(encoding="utf-8")
    head, tail = text.partition(begin)[0], text.partition(end)[2]
    write_text(path, f"{head}{begin}\n{readme_section()}\n{end}{tail}")
