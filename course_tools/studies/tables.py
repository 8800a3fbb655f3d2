"""The tables that the README and the page of results quote, made from the result files; tests hold both pages to them.

Does: one Markdown table a result file, the README's section, notebooks/results.md. Does not: run or compute anything
that `course_utils.results` does not (see there for the intervals).
"""

import json
from collections.abc import Callable
from pathlib import Path

from course_tools.studies.code_tables import code_parts, completing_parts
from course_tools.studies.course_translation_table import translators_table, translators_words
from course_tools.studies.fine_tuning_table import fine_tuning_table, fine_tuning_words, labels_table, labels_words
from course_tools.studies.reader_tables import reader_parts
from course_tools.studies.translation_tables import (
    BY_LENGTH,
    WORST,
    lengths_table,
    translations_table,
    translations_words,
    worst_table,
)
from course_utils.data import load_reviews, pairs
from course_utils.files import write_text
from course_utils.files.paths import ROOT
from course_utils.results import FOLDER, by_model, difference, interval, percent, read_runs, summarise


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


def speed_table(rows: list[dict]) -> str:
    """Ratios of speed as a Markdown table; above 1 the first of the two is faster."""
    lines = ["| what | against | ratio | middle half | milliseconds | memory in MB |", "|---" * 6 + "|"]
    for row in rows:
        low, high = row["spread"]
        memory = f"{row['ours_mb']:.0f} against {row['other_mb']:.0f}" if "ours_mb" in row else ""
        lines.append(f"| {row['what']} | {row['against']} | {row['ratio']:.2f} | {low:.2f} to {high:.2f} | "
                     f"{row['ours_ms']:.0f} against {row['other_ms']:.0f} | {memory} |")
    return "\n".join(lines)


def context_table(runs: list[dict], kind: str | None = None, count: str = "accuracy") -> str:
    """Completing the generated programs as a Markdown table: accuracy in per cent by the tokens since the definition.

    `kind`: one kind of programs instead of all. `count`: "accuracy", the answer before all tokens, or "among", before the
    other candidates. The last row is what guessing among the candidates gives.
    """
    distances = list(runs[0]["test"])

    def cells(rows: list[dict], name: str) -> list[str]:
        found = []
        for distance in distances:
            scored = [row["test"][distance] for row in rows]
            programs = scored[0]["reviews_by_kind"][kind] if kind else scored[0]["reviews"]
            values = [one[f"{name}_by_kind"][kind] if kind else one[name] for one in scored]
            found.append(percent(interval(values, programs)))
        return found

    lines = [f"| {kind or 'all kinds'} | seeds | {' | '.join(f'{int(distance):,}' for distance in distances)} |",
             "|---" * (2 + len(distances)) + "|"]
    lines += [f"| {model} | {len(rows)} | {' | '.join(cells(rows, count))} |" for model, rows in by_model(runs).items()]
    chance = [cell.partition(" ")[0] for cell in cells(runs[:1], "chance")]
    return "\n".join([*lines, f"| guessing among the candidates | | {' | '.join(chance)} |"])


COUNTED = ("Accuracy is in per cent, with a 95 % interval that covers the choice of reviews and of random seeds. Where "
           "three seeds differ a lot, it should be about twice as wide: notebook 12's comparisons allow for that.")


def _seconds(*runs: list[dict]) -> str:
    threads = sorted({run["threads"] for same in runs for run in same})
    return ("Seconds are the training time of a row's quickest run, on a shared two-core machine without a GPU (threads: "
            f"{' or '.join(map(str, threads))}): an order of magnitude, not a benchmark.")


def readme_section(folder: Path = FOLDER) -> str:
    """What the README quotes: the scoreboard, and the way to the other tables."""
    scoreboard = read_runs("scoreboard", folder)
    return "\n\n".join([
        f"Test accuracy on the course corpus, {scoreboard[0]['test']['reviews']:,} synthetic reviews. {COUNTED}",
        scoreboard_table(scoreboard),
        f"{_seconds(scoreboard)} Real reviews, one change at a time, and speed: [results](notebooks/results.md).",
    ])


def results_page(folder: Path = FOLDER) -> str:
    """notebooks/results.md: every long table of the course, with what it can and can't say."""
    scoreboard, imdb, better, ablations = (read_runs(name, folder)
                                           for name in ("scoreboard", "imdb", "imdb_better", "ablations"))
    parts = [
        "# Results",
        "These are the long tables, made from the files in `data/results` by `python -m course_tools results`. " + COUNTED,
        "## The course corpus",
        f"{scoreboard[0]['test']['reviews']:,} synthetic test reviews, and 336 hand-written ones. Notebook "
        "[09](09_real_reviews.ipynb) discusses this table.",
        scoreboard_table(scoreboard), _seconds(scoreboard),
    ]
    if ablations:
        parts += [
            "## One change at a time",
            f"The full model of notebook [08](08_classifier.ipynb), retrained with one change, against "
            f"{len(next(iter(by_model(ablations).values())))} runs of the default. Each difference has a 95 % interval for "
            "reviews and seeds. Out of thirty intervals one or two may exclude zero by chance alone, and an interval that "
            "includes zero doesn't show that nothing changed. Notebook [12](12_comparing_models.ipynb) builds the intervals "
            "and says what can be concluded.",
            ablations_table(ablations), _seconds(ablations),
        ]
    if imdb:
        parts += [
            "## Real reviews",
            f"{imdb[0]['test']['reviews']:,} of IMDb's test reviews, after training on 22,500 and choosing on 2,500. "
            "Notebook [09](09_real_reviews.ipynb) explains why counted words win.",
            imdb_table(imdb), _seconds(imdb),
        ]
    if better:
        parts += ["## More out of the same labels", BETTER, better_table(better), AFTER_BETTER]
    tuned = read_runs("pretrained", folder)
    if tuned:
        parts += ["## A pretrained encoder on real reviews", fine_tuning_words(tuned), fine_tuning_table(tuned)]
    by_labels = {name: read_runs(name, folder) for name in ("static_vectors", "small_encoder")}
    if any(by_labels.values()):
        by_labels["pretrained"] = tuned
        parts += ["## How many labels", labels_words(by_labels), labels_table(by_labels)]
    parts += reader_parts(*(read_runs(name, folder) for name in (
        "which_data", "student", "partial_inputs", "reader_speed", "reader", "reader_more")))
    parts += code_parts(folder)
    recurrent = read_runs("recurrent_attention", folder)
    if recurrent:
        others = [read_runs(name, folder) for name in ("luong_variants", "translation")]
        parts += ["## Translation, on the course's own corpus", translators_words(recurrent),
                  translators_table(recurrent, *others)]
    translated = read_runs("multi30k", folder)
    if translated:
        parts += ["## Translation", translations_words(translated), translations_table(translated), BY_LENGTH,
                  lengths_table(translated), WORST, worst_table(translated)]
    if (folder / "speed.json").exists():
        measured = json.loads((folder / "speed.json").read_text(encoding="utf-8"))
        parts += ["## Speed", SPEED.format(**measured["machine"]), speed_table(measured["rows"]), AFTER_SPEED]
    parts += completing_parts(folder)
    return "\n\n".join(parts) + "\n"


BETTER = """\
What we tried in order to get more out of IMDb's labels without pretrained weights, and what it cost in processor seconds
of training.

- **imdb-fast**: two epochs instead of six, no dropout in the blocks, small word vectors that learn fast.
- **Word pairs**: a learned vector for each pair of neighbouring words that at least five training reviews share.
- **Average**: the mean of several models' probabilities.
- **Student**: one model that learns from the probabilities that other models, its teachers, give to 50,000 unlabelled
  reviews. Its cost includes its teachers'. *That average* is the average of three models with word pairs."""

AFTER_BETTER = """\
*imdb-fast* gets within a point of notebook 09's classifier in a third of the epochs. Word pairs are what makes TF-IDF
strong, and here they gain more than a point; we reduced the width to 32 along with them, so strictly speaking the gain comes
from both. Averages are more accurate still, but cost three times as much to train and to use. After all this we match
TF-IDF. We haven't shown that we beat it."""

SPEED = """\
The course's code against the libraries', measured alternately within one run (`make speed`), on {cores} cores with {threads}
thread, {processor}, torch {torch}. A ratio above 1 means that the first of the two is faster; next to it is the middle half
of the repetitions. The numbers differ between machines."""

AFTER_SPEED = """\
- Our block calls the same functions as PyTorch's, and trains about as fast, wherever the dropout is.
- **Fused attention** never stores the matrix of weights ([05](05_multi_head_attention.ipynb)), so its lead grows with
  the length, in memory even more than in time.
- **Inference**: at 512 tokens nearly all of our lead comes from padded batches; at 1,024 much of it is there without
  padding too.
- **The IMDb step "as tutorials build it"** pads every batch to 256 tokens and drops attention weights at random, which rules
  out fused attention on a CPU. Ours groups reviews of similar length and leaves the weights alone. Most of that lead is a
  design decision, and none of it is a faster block: with the same batches and the same dropout there's hardly any lead.
- On this processor **bfloat16** is slower than float32, and the library's **word tokenizer** is faster than ours."""


def update_pages(readme: Path = ROOT / "README.md", page: Path = ROOT / "notebooks" / "results.md") -> None:
    """Write `readme_section` between the README's two scoreboard marks, and the whole page of results."""
    begin, end = "<!-- scoreboard: begin -->", "<!-- scoreboard: end -->"
    text = readme.read_text(encoding="utf-8")
    head, tail = text.partition(begin)[0], text.partition(end)[2]
    write_text(readme, f"{head}{begin}\n{readme_section()}\n{end}{tail}")
    write_text(page, results_page())
