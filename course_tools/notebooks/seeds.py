"""Try the notebooks' claims with other random seeds and as if on other processors, and report those that fail.

    python -m course_tools seeds 08                            five seeds, on every kind this processor can emulate
    python -m course_tools seeds 08 --seeds 3 --kinds avx2 plain

A failing claim or a cell that raises an error stops nothing: every run goes to the end of its notebook, two runs at
once (--jobs), and prints a line when it ends. After a notebook's last run, its failing claims are listed with their
seeds and kinds of processor. Every claim of every run, with its numbers, is written to outputs/seeds/NN_name.jsonl as
soon as the run ends. The notebooks and their figures aren't changed.
"""

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from course_tools.notebooks import processors
from course_utils.copies import notebooks
from course_utils.copies.notebooks import AsyncKernelOverFiles
from course_utils.files.paths import output_folder


def try_once(path: Path, seed: int, kind: str, threads: int = 1) -> list[dict]:
    """Execute a notebook with one training seed, as one kind of processor; return its claims and the cells that raised.

    Each has the keys notebook, cell (code cells counted from 0, as in the tests), id, number (of the claim within its
    cell), kind, seed, sentence, holds and shown (its numbers). A cell that raises counts as a claim that failed, with
    the number -1.
    """
    notebook = nbformat.read(path, as_version=4)
    counted = {i: n for n, i in enumerate(i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code")}
    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "claims.jsonl"

        def collect(cell, cell_index, execute_reply):
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            file.unlink(missing_ok=True)
            claims = [{"number": number, **json.loads(line)} for number, line in enumerate(lines)]
            reply = execute_reply["content"]
            if reply["status"] == "error":
                shown = f"{reply['ename']}: {reply['evalue']}"
                claims.append({"number": -1, "sentence": "the cell runs", "holds": False, "shown": shown})
            where = {"notebook": path.stem, "cell": counted[cell_index], "id": cell.id, "kind": kind, "seed": seed}
            found.extend({**where, **one} for one in claims)

        client = NotebookClient(
            notebook, timeout=1200, kernel_name="python3", record_timing=False, allow_errors=True,
            resources={"metadata": {"path": str(path.parent)}}, extra_arguments=["--log-level=ERROR"],
            on_cell_executed=collect, kernel_manager_class=AsyncKernelOverFiles,
        )
        client.execute(env={
            **processors.environment(kind, threads), "COURSE_TRAINING_SEED": str(seed), "COURSE_CLAIMS": str(file),
            "COURSE_TESTING": "0", "COURSE_STRICT": "0", "COURSE_WORKER": "0", "COURSE_OUTPUTS": folder,
            "HF_HUB_OFFLINE": "1"})
    return found


def try_all(path: Path, seeds, kinds, threads: int, pool: ProcessPoolExecutor, file: Path) -> list[dict]:
    """`try_once` with every seed on every kind; as each run ends, its claims are added to the file and a line is printed."""
    runs = {pool.submit(try_once, path, seed, kind, threads): (seed, kind) for kind in kinds for seed in seeds}
    found = []
    with file.open("w", encoding="utf-8") as lines:
        for run in as_completed(runs):
            claims, (seed, kind) = run.result(), runs[run]
            lines.write("".join(f"{json.dumps(one)}\n" for one in claims))
            lines.flush()
            print(f"{path.stem}, seed {seed}, {kind}: {sum(one['holds'] for one in claims)} of {len(claims)} claims held",
                  flush=True)
            found += claims
    return sorted(found, key=lambda one: (kinds.index(one["kind"]), one["seed"]))


def report(found: list[dict], runs: int) -> str:
    """The failing claims of one notebook by cell, each with the seeds and kinds of processor for which it failed."""
    places = {}
    for one in found:
        places.setdefault((one["cell"], one["number"]), []).append(one)
    lines = []
    for (cell, _), tried in sorted(places.items()):
        if failing := [one for one in tried if not one["holds"]]:
            lines.append(f"  cell {cell} ({failing[0]['id']}), in {len(failing)} of {runs} runs: {failing[0]['sentence']}")
            lines += [f"      seed {one['seed']}, {one['kind']}: {one['shown']}".rstrip(": ") for one in failing]
    lines = lines or ["  every claim held"]
    return "\n".join([f"{found[0]['notebook']}: {len(places)} claims, {runs} runs", *lines]) if found else "no claims"


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, run, report; return the exit status, 1 if any claim failed."""
    parser = argparse.ArgumentParser(
        description="Try the notebooks' claims with other random seeds and as if on other processors.")
    parser.add_argument("names", nargs="+", help="numbers of notebooks, such as 08, or names of extras")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="how many: COURSE_TRAINING_SEED=0 to N - 1")
    parser.add_argument("--kinds", nargs="+", default=["all"], metavar="KIND",
                        help=f"all, or some of {', '.join(processors.KINDS)}")
    parser.add_argument("--threads", type=int, default=1, help="how many threads each notebook's kernel may use")
    parser.add_argument("--jobs", type=int, default=2, help="how many runs at once")
    chosen = parser.parse_args(arguments)
    for name in ("seeds", "threads", "jobs"):
        if getattr(chosen, name) < 1:
            sys.exit(f"--{name} {getattr(chosen, name)}: expected 1 or more")
    paths, kinds = notebooks.find(chosen.names), processors.choose(chosen.kinds)
    folder = output_folder() / "seeds"
    folder.mkdir(parents=True, exist_ok=True)
    failed = False
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for path in paths:
            found = try_all(path, range(chosen.seeds), kinds, chosen.threads, pool, folder / f"{path.stem}.jsonl")
            failed = failed or not all(one["holds"] for one in found)
            print(report(found, chosen.seeds * len(kinds)), flush=True)
    return int(failed)
