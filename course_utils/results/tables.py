"""What every table of results is made of: a row's accuracy with its interval, what it cost, and the table itself.

Does: turn runs of a result file into cells, show rows as a table in a notebook, or in a box that says where they were
recorded; list result files with their fingerprints.
Does not: know any result file but the scoreboard, which the README shows as well.
"""

import html
import json
from collections.abc import Iterable, Mapping

import pandas as pd
from IPython.display import display

from course_utils.files import sha256
from course_utils.results import FOLDER, by_model, percent, read_runs, summarise

__all__ = ["accuracy", "file_rows", "mean_accuracy", "quickest", "recorded", "scoreboard_rows", "show"]

WHOLE = ("display.max_colwidth", None, "display.max_rows", None, "display.max_columns", None, "display.width", 1000)


def show(rows: Iterable[dict]) -> None:
    """Show rows, {column: cell} each, as a table, whole and with the first column in front; a missing cell is empty."""
    frame = pd.DataFrame(list(rows), dtype=object).fillna("")
    frame = frame.replace(" ± ", "\u00a0±\u00a0", regex=True)             # a number and its interval stay on one line
    first = frame.columns[0]
    with pd.option_context(*WHOLE):
        display(frame.set_index(first).rename_axis(index=None, columns=first))


def recorded(run: dict, rows: Mapping[str, str], of: str) -> None:
    """Show what was recorded, {what: text}, in a box that says of which model, on which processor, and in how many minutes.

    `run` is one of a result file whose runs have `machine` and `minutes`. Every character of a text is shown, and a new line
    as an arrow.
    """
    cores = run["machine"]["cores"]
    where = (f"Recorded, not computed here: {of}; one thread of a machine with {cores} cores "
             f"({run['machine']['processor']}), PyTorch {run['torch']}, {run['minutes']} minutes in all.")
    rows = {what: text.replace("\n", "↵ ") for what, text in rows.items()}
    cell = '<td style="text-align:left;vertical-align:top">'
    cells = "".join("<tr>" + "".join(f"{cell}{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows.items())
    page = (f'<div style="border-left:4px solid #00755c;padding:2px 12px"><p><small>{html.escape(where)}</small></p>'
            f"<table><tbody>{cells}</tbody></table></div>")
    lines = [where, *(f"{what}: {text}" for what, text in rows.items())]
    display({"text/html": page, "text/plain": "\n".join(lines)}, raw=True)


def accuracy(runs: list[dict], split: str = "test", *path: str) -> str:
    """Mean accuracy of a row in per cent with half its 95 % interval, '92.3 ± 1.8'; '' if a run wasn't scored on `split`.

    `path` leads to one figure of several: accuracy(runs, "test", "by_kind", "order").
    """
    return percent(summarise(runs, split, *(path or ("accuracy",)))) if all(split in run for run in runs) else ""


def mean_accuracy(runs: list[dict], split: str = "test", *path: str) -> float:
    """The mean of `accuracy` as a number, in per cent."""
    return 100 * summarise(runs, split, *(path or ("accuracy",)))[0]


def quickest(runs: list[dict]) -> float:
    """Seconds of the quickest of these runs: what else a machine does can only add to them."""
    return min(run["seconds"] for run in runs)


def file_rows(read_in: dict[str, str]) -> list[dict]:
    """What stands in result files: {file in data/results: where it's read} -> rows, runs, seeds and devices of each.

    The fingerprint, the first 12 digits of the file's SHA-256, changes with any digit of the file.
    """
    rows = []
    for name, where in read_in.items():
        path = FOLDER / name
        content = json.loads(path.read_text(encoding="utf-8")) if path.suffix == ".json" else None
        runs = content if isinstance(content, list) else []
        rows.append({"file": name, "read in": where, "rows": len(by_model(runs)) or "", "runs": len(runs) or "",
                     "seeds": " ".join(str(seed) for seed in sorted({run["seed"] for run in runs})),
                     "made on": "; ".join(sorted({run["device"] for run in runs})), "fingerprint": sha256(path)[:12]})
    return rows


def read_scoreboard() -> list[dict]:
    """The runs of the table of models. The full model's are the fifteen of `ablations`, in place of its first three.

    The first three seeds were lucky (notebook 12, section 2).
    """
    full = "attention, the full model"
    fifteen = [run | {"model": full} for run in by_model(read_runs("ablations"))["the default"]]
    others = read_runs("scoreboard")
    first = next(i for i, run in enumerate(others) if run["model"] == full)
    kept = [run for run in others if run["model"] != full]
    return [*kept[:first], *fifteen, *kept[first:]]


def scoreboard_rows(runs: list[dict]) -> list[dict]:
    """The table of models on the course's reviews: test accuracy overall, by kind, and on the hand-written reviews."""
    kinds = ["plain", "negation", "order", "distant"]
    return [{"model": model, "seeds": len(same), "all kinds": accuracy(same),
             **{kind: accuracy(same, "test", "by_kind", kind) for kind in kinds},
             "hand-written": accuracy(same, "handwritten"), "parameters": f"{same[0]['parameters']:,}",
             "seconds": f"{quickest(same):.0f}"} for model, same in by_model(runs).items()]
