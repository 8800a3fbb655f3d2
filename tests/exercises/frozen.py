"""The frozen verdicts: many answers, right and wrong ones, each with the verdicts that it gets, in frozen_verdicts.jsonl.

A row holds an `answer`, as code that gives one its name (`right("4.2")` is there for the course's own answer and
`mistake("4.2", "no-scaling")` for a known mistake), and its `verdicts`: by exercise, "state" or "state: names", or a list of
three where the seeds 0, 1 and 2 differ. An answer that may not run in the tests' own process is marked `"alone": true`.

    python tests/exercises/frozen.py                    # lists what differs today
    python tests/exercises/frozen.py --why "the mistake has a name now"         # writes it, with the verdict before
    python tests/exercises/frozen.py --add 4.7 answers.py     # adds every function of a file, with the verdict it gets

A verdict that is meant to change stays in its row: `changed` holds the exercise, what it `was`, and `why`.
"""

import argparse
import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

from course_utils.exercises import wire
from course_utils.exercises.catalogue import answers_to, find_exercise
from course_utils.exercises.definitions import Verdict
from course_utils.exercises.judge import judge
from course_utils.exercises.workers import InWorker

FILE = Path(__file__).with_name("frozen_verdicts.jsonl")
SEEDS = (0, 1, 2)


def right(number: str):
    """The course's answer to an exercise; of a number or an order, a function that gives it."""
    return answers_to(number).reference


def mistake(number: str, name: str):
    """What a known mistake would write."""
    return answers_to(number).mutants[name]


def read_rows(path: Path = FILE) -> list[dict]:
    """All rows of the file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_rows(rows: list[dict], path: Path = FILE) -> None:
    """Write all rows."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def made(code: str):
    """The answer that a row's code makes, anew each time."""
    names = {"__name__": "__main__", "right": right, "mistake": mistake}
    exec(compile(code, "<answer>", "exec"), names)
    return names["answer"]


def judged(number: str, code: str, seed: int = 0, alone: bool = False) -> Verdict:
    """The verdict of today; `alone` runs the answer in the worker process, for at most two seconds."""
    exercise, answer = find_exercise(number), made(code)
    with contextlib.redirect_stdout(io.StringIO()):
        side = InWorker(exercise, answer, 2.0, 2.0) if alone else wire.read_report(wire.report(exercise, answer, seed))
        return judge(exercise, answers_to(number), side, seed)


def short(verdict: Verdict) -> str:
    """A verdict as rows hold it, without its message."""
    return f"{verdict.state}: {', '.join(verdict.names)}" if verdict.names else verdict.state


def well_said(verdict) -> None:
    """A message is one line that says something, and what it expects isn't what it got."""
    text = verdict.text
    assert text[:1] in "✓✗≈○" and len(text.partition(": ")[2]) >= len("right."), text
    assert "\n" not in text, text
    before, _, after = text.partition(", expected ")
    assert not after or not before.endswith(f" {after.partition('. ')[0]}"), text


def expected(verdicts: str | list[str], seed: int) -> str:
    """What a row says of a seed."""
    return verdicts if isinstance(verdicts, str) else verdicts[SEEDS.index(seed)]


def differences(rows: list[dict], seeds=SEEDS, look=lambda verdict: None) -> Iterator[tuple[dict, str, str]]:
    """(row, exercise, what differs) wherever a verdict isn't the one of its row; `look` sees each verdict."""
    for row in rows:
        for number, verdicts in row["verdicts"].items():
            for seed in seeds:
                verdict = judged(number, row["answer"], seed, row.get("alone", False))
                look(verdict)
                today, before = short(verdict), expected(verdicts, seed)
                if today != before:
                    yield row, number, f"{number}, seed {seed}: {today}; it was {before}, for\n{row['answer']}\n"


def as_row(number: str, code: str) -> dict:
    """A new row, with the verdicts of today."""
    now = [short(judged(number, code, seed)) for seed in SEEDS]
    return {"answer": code, "verdicts": {number: now[0] if len(set(now)) == 1 else now}}


def answers_in(source: str) -> Iterator[str]:
    """The code of a row for each function of a file: what else the file holds, then that function as `answer`."""
    tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for function in functions:
        others = [node for node in tree.body if node not in functions]
        yield ast.unparse(ast.Module([*others, function], [])) + f"\nanswer = {function.name}"


def main() -> None:
    """List the differences; with --why, write them down as meant; with --add, add answers."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--why", help="the reason why these verdicts differ from now on")
    parser.add_argument("--add", nargs=2, metavar=("EXERCISE", "FILE"), help="add each function of a file as an answer")
    asked, rows, found = parser.parse_args(), read_rows(), {}
    if asked.add:
        number, path = asked.add
        new = {code: as_row(number, code) for code in answers_in(Path(path).read_text(encoding="utf-8"))}
        for code, row in new.items():
            print(f"{code.rpartition(' ')[2]}: {row['verdicts'][number]}\n  {judged(number, code).text}")
        others = [row for row in rows if row["answer"] not in new or number not in row["verdicts"]]
        return write_rows([*others, *new.values()])
    for row, number, said in differences(rows):
        print(said)
        found[row["answer"], number] = row
    for (code, number), row in found.items() if asked.why else ():
        now = [short(judged(number, code, seed, row.get("alone", False))) for seed in SEEDS]
        row.setdefault("changed", []).append({"exercise": number, "was": row["verdicts"][number], "why": asked.why})
        row["verdicts"][number] = now[0] if len(set(now)) == 1 else now
    if asked.why:
        write_rows(rows)
    print(f"{len(found)} verdicts differ" + (", and are written down" if asked.why else ""))


if __name__ == "__main__":
    main()
