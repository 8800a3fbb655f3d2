"""Two tasks in one small T5, told apart by their prefix: a set of runs for course_tools/studies/command.py.

Writes data/results/t5.json, which the extra of that name shows: five random seeds of its two models. In one row every
sentence comes with both tasks, in the other its noun decides the task. All is the extra's own code, `course_utils.t5`.

    python -m course_tools results t5 --seeds 0 1 2 3 4

A run takes 10 to 25 seconds of one processor core.
"""

from course_tools.studies.runner import ResultSet, parameters_of
from course_utils import t5
from course_utils.files import fingerprint
from course_utils.training.pair_batches import WordList

STEPS, LONGER = 400, 2                                   # twice as many where each sentence comes with both tasks
TASKS = ("sentiment:", "translate:")
BOTH, APART = "every sentence with both tasks", "sentences of its own for each task"


def settings() -> str:
    """What every run depends on."""
    return fingerprint(STEPS, [list(row) for row in t5.opinions()], t5.JUDGED, 1)


def run(row: str, seed: int, state) -> dict:
    """Train one model and score it on new sentences, with the prefix as it was and with the other."""
    training, testing = t5.split(t5.opinions())
    words = WordList.train(text.split() for pair in t5.as_tasks(training) for text in pair)
    pairs, steps = (t5.as_tasks(training), LONGER * STEPS) if row == BOTH else (t5.apart(training), STEPS)
    model = t5.train(words, pairs, seed, steps=steps)
    scored = {"parameters": parameters_of(model), "obeyed": t5.obeyed(model, words, t5.apart(testing, swapped=True)),
              "right": t5.right(model, words, t5.apart(testing)),
              "right_swapped": t5.right(model, words, t5.apart(testing, swapped=True))}
    for task in TASKS:
        tested = t5.as_tasks(testing, [task])
        scored[task[:-1]] = t5.right(model, words, tested)
        scored["hidden_" + task[:-1]] = t5.right(model, words, tested, hidden=1)
    twins = [one for one in t5.opinions() if " but " in one[0]]
    scored["twins"] = t5.right(model, words, t5.as_tasks(twins, TASKS[:1]))
    return {name: round(value, 4) for name, value in scored.items()}


def line(runs: list[dict]) -> str:
    """What the command prints of a row: right as trained, and how often the prefix is obeyed when it's swapped."""
    return "  ".join(f"{name} " + " ".join(f"{run[name]:.2f}" for run in runs) for name in ("right", "obeyed"))


ROWS = {BOTH: {"tasks": "both", "steps": LONGER * STEPS}, APART: {"tasks": "by noun"}}
SET = ResultSet("t5", ROWS, settings, run, line=line)
