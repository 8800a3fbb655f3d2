"""Make the result files that the course quotes, and the table in the README.

    python -m course_tools results                        whatever is missing from the standard set (see STANDARD)
    python -m course_tools results ablations              every row of one file
    python -m course_tools results ablations --only heads --seeds 0 1 2
    python -m course_tools results ablations --seeds 7 --output outputs/again     another seed, leaving the committed file

A run with the same settings isn't repeated unless you say --again. Sets, and rows, that others need are made before these;
where something that a run needs isn't there, the command says what to get or to make first. If you interrupt it, run it
again and it continues where it stopped. Several runs go on at once (--jobs), each with one thread (--threads). With
--output, the result files go to another folder, and each row is printed next to the committed one. The tables of
notebooks/results_part_*.ipynb read these files when they run: make save NB=results.
"""

import argparse
import os
import sys
from pathlib import Path

from course_tools.studies.runner import forget, missing_runs, run_missing
from course_tools.studies.sets import find_set, in_order
from course_utils.files import write_text
from course_utils.files.paths import ROOT
from course_utils.results import FOLDER, by_model, read_runs, summarise
from course_utils.results.tables import read_scoreboard, scoreboard_rows
from course_utils.training.processes import by_torchrun

# set, and a part of the names of its rows: under half an hour on two cores
STANDARD = {"scoreboard": "", "ablations": "default", "token_range": ""}
BEGIN, END = "<!-- scoreboard: begin -->", "<!-- scoreboard: end -->"      # in the README
QUOTED = """\
Test accuracy on the course corpus, {reviews:,} synthetic reviews. Accuracy is in per cent, with a 95 % interval that \
covers the choice of reviews and of random seeds. Where three seeds differ a lot, it should be about twice as wide: \
notebook 12's comparisons allow for that. The full model has fifteen seeds: the first three had been lucky (notebook 12).

{table}

Seconds are the training time of a row's quickest run, on a shared two-core machine without a GPU (threads: {threads}): an \
order of magnitude, not a benchmark. Real reviews, one change at a time, and speed: [results](notebooks/results.md)."""


def readme_section() -> str:
    """What the README quotes: the scoreboard as Markdown, and the way to the other tables."""
    runs = read_scoreboard()
    rows = scoreboard_rows(runs)
    lines = [f"| {' | '.join(map(str, cells))} |" for cells in (rows[0], *(row.values() for row in rows))]
    table = "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])
    threads = " or ".join(str(number) for number in sorted({run["threads"] for run in runs}))
    return QUOTED.format(reviews=runs[0]["test"]["reviews"], table=table, threads=threads)


def update_readme(readme: Path = ROOT / "README.md") -> None:
    """Write `readme_section` between the README's two marks."""
    text = readme.read_text(encoding="utf-8")
    head, tail = text.partition(BEGIN)[0], text.partition(END)[2]
    write_text(readme, f"{head}{BEGIN}\n{readme_section()}\n{END}{tail}")


def show(name: str, folder: Path) -> None:
    """Print the rows of a result file, next to the committed ones if it is another file."""
    committed = by_model(read_runs(name)) if folder != FOLDER else {}
    said = find_set(name).line or _accuracy
    for model, runs in by_model(read_runs(name, folder)).items():
        line = f"{model:<44} {said(runs)}   seeds {' '.join(str(run['seed']) for run in runs)}"
        if model in committed:
            line += f"   committed {said(committed[model]).strip()}"
        print(f"{line}   {sum(run['seconds'] for run in runs) / len(runs):.0f} s")


def _accuracy(runs: list[dict]) -> str:
    mean, half = summarise(runs, "test", "accuracy")
    return f"{100 * mean:5.1f} ± {100 * half:4.1f}"


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, print the rows and how many were made; return the exit status. Not under torchrun."""
    if by_torchrun():
        if os.environ["RANK"] == "0":
            print("python -m course_tools results: error: torchrun started this, and each of its processes would make every "
                  "run again;\nrun it without torchrun: --jobs says how many runs go on at a time", file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help="which result files (default: the standard set)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="random seeds (default: 0 1 2)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default: 2)")
    parser.add_argument("--threads", type=int, default=1, help="threads of each run (default: 1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only rows whose name contains this")
    parser.add_argument("--again", action="store_true", help="discard the runs of these rows and seeds, and repeat them")
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="FOLDER", help="write the result files there")
    chosen = parser.parse_args(arguments)
    plan = dict.fromkeys(chosen.sets, chosen.only) or STANDARD
    folder, failed, summary = chosen.output.resolve(), 0, []
    try:
        for name in in_order(plan):
            one, only = find_set(name), plan[name]
            if chosen.again:
                forget(name, [run for run in one.wanted(chosen.seeds) if only in run[0]], folder)
            missing = len(missing_runs(one, chosen.seeds, folder, only))
            failed += run_missing(one, chosen.seeds, jobs=chosen.jobs, threads=chosen.threads, folder=folder, only=only)
            left = len(missing_runs(one, chosen.seeds, folder, only))
            summary.append(f"{name}: {missing} runs were missing, {missing - left} made, {left} missing now")
    except (ValueError, RuntimeError, OSError) as error:    # what `settings` reads isn't there
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted; finished runs are kept, and the same command continues from there", file=sys.stderr)
        return 130
    for name in plan:
        show(name, folder)
    print(*summary, sep="\n")
    if folder == FOLDER:
        for name in plan:
            if find_set(name).finish:
                find_set(name).finish()
        if "scoreboard" in plan:
            update_readme()
    return 1 if failed else 0
