"""Add an exercise or a notebook: write every file that it needs, with a small example to replace.

    python -m course_tools exercise 04                      the next exercise of notebook 04
    python -m course_tools notebook 13_language_model       the next notebook, with three exercises and a quiz

Whatever is left to write is marked TODO, and tests fail until the last TODO is gone. Does: write new cells, files and rows.
Does not: change what is there, or execute a notebook (`make save` does). CONTRIBUTING.md has the rules.
"""

import argparse
import ast
import re
import sys
from pathlib import Path

import nbformat

from course_utils.copies import notebooks as copied
from course_utils.copies.notebooks import find, is_exercise, write_notebook
from course_utils.files import write_text
from course_utils.files.paths import ROOT

RECORD = '''# ---------------------------------------------------------------- {id}

def answer_{tail}(x):
    return x - x.mean()


# TODO {id}: this example takes the mean off a vector; write your own exercise over it
EXERCISE_{tail} = ask(
    "{id}", answer_{tail},
    # what goes in and what comes out, each with a name and a shape; messages use these names
    signature="answer_{tail}(x (n,)) -> centred (n,)",
    # vectors of eight numbers, of five, and of one: small sizes and odd ones break shortcuts
    probes=lambda generator: [(torch.randn(size, generator=generator) + 3,) for size in (8, 5, 1)],
    numbers=dict(mean=lambda case: case.answer.mean()),
    # an edit of the answer or a function; what was seen, with a number of the learner's; then where to look
    mistakes={{
        "nothing-taken-off": M({{"x - x.mean()": "x + 0"}}, "the mean of your numbers is {{mean:.3f}}.", "Take the mean of "
                               "x off each of its numbers; what is left has the mean 0."),
        "sum-taken-off": M({{"x.mean()": "x.sum()"}}, "the mean of your numbers is {{mean:.3f}}.", "That is what is left "
                           "when the sum is taken off. The mean is the sum divided by how many there are."),
    }},
    # for answers that fit no mistake: the first that fails is printed
    rules=(
        R(lambda case: case.answer.mean().abs() > 1e-3, "your mean is {{mean:.3f}}.", "The mean of what you return must be "
          "0."),
    ),
    # two to four; the last has the key line
    hints=("What is x.mean() before, and what should it be afterwards?", "return x - x.mean()"),
)
'''

IMPORTS = ("import torch", "from course_utils.exercises.records import M, R, ask")
HEAD = '''"""Exercises and quiz of notebook {number}."""

import torch

from course_utils.exercises.records import M, R, ask
'''
QUIZ = f"# {'-' * 64} quiz; `name` stays for ever: progress is kept by it"

QUESTION = """- name: todo-{place}
  taught: "{taught}"
  question: "TODO: question {place}, for whoever has understood; remembering must not be enough."
  options:
{options}"""
OPTION = """    - text: "{text}"
{right}      remark: "TODO: say why this is right, or what makes it look right."
"""


def quiz_of(number: str) -> str:
    """Four questions, the last from the notebook before; the right letters have no pattern, and each comes once at least."""
    parts = []
    for place, right in enumerate("baca", start=1):
        texts = {"a": "An option.", "b": "Another option.", "c": "One more option, a longer one."}
        texts[right], texts["b"] = texts["b"], texts[right]  # neither the longest nor the shortest is right
        options = "".join(OPTION.format(text=text, right="      right: true\n" if letter == right else "")
                          for letter, text in texts.items())
        taught = f"{int(number) - 1:02d}" if place == 4 else number
        parts.append(QUESTION.format(place=place, taught=taught, options=options))
    return "".join(parts)


def number_of(name: str) -> str:
    """'13' for '13_language_model'. Ends the program for any name but that of the next notebook."""
    after = f"{1 + max(int(copied.follows(path)[:2]) for path in find([])):02d}"
    if not re.fullmatch(rf"{after}(_[a-z0-9]+)+", name):
        sys.exit(f"a notebook cannot be called {name!r}; the next one is {after}, so for example: "
                 f"make notebook NAME={after}_language_model")
    return after


def add_exercise(path: Path) -> str:
    """Add the next exercise to a notebook and to its records; return its number, such as '4.6'."""
    number = copied.number_of(path)
    notebook = nbformat.read(path, as_version=4)
    there = sum(is_exercise(cell) for cell in notebook.cells)
    new = f"{number[:2].lstrip('0') or '0'}.{there + 1}"
    tail, name = new.replace(".", "_"), f"exercise-{new.replace('.', '-')}"
    words = (f"### Exercise {new} TODO a title (5–10 minutes)\n\nTODO: what is to be written, in one or two sentences. This "
             "example: take the mean off the numbers `x`.")
    stub = (f'def answer_{tail}(x):\n    """x (n,) -> centred (n,)"""\n    ...\n\n'
            f'exercise("{new}").check(answer_{tail})\nanswer_{tail} = exercise("{new}").use(answer_{tail})')
    ends = [i for i, cell in enumerate(notebook.cells) if cell.source.startswith("## Check yourself")]
    at = ends[0] if ends else len(notebook.cells)
    notebook.cells[at:at] = [nbformat.v4.new_markdown_cell(words, id=name),
                             nbformat.v4.new_code_cell(stub, id=f"{name}-code", metadata={"tags": ["exercise"]})]
    write_notebook(notebook, path)

    record = ROOT / "notebooks" / "exercises" / f"n{number}.py"
    before, quiz, after = _with_imports(_read(record, HEAD, number)).partition(f"\n{QUIZ}")
    write_text(record, f"{before.rstrip()}\n\n{RECORD.format(id=new, tail=tail)}{quiz}{after}")
    return new


def _read(path: Path, head: str, number: str) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else head.format(number=number)


def _with_imports(source: str) -> str:
    """A file of records with the imports that a new one needs, after those that it has and before the records' own."""
    lines = source.splitlines()
    imports = [node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))
               and not getattr(node, "module", "").startswith("course_exercises")]
    last = imports[-1].end_lineno if imports else 1
    missing = [line for line in IMPORTS if line not in lines]
    return "\n".join([*lines[:last], *missing, *lines[last:]]) + "\n"


def new_notebook(name: str) -> list[str]:
    """Write notebook `name`, its quiz and three exercises, and its row of the README; return the exercises."""
    number = number_of(name)
    title = name[3:].replace("_", " ").capitalize()
    text, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [
        text(f"# {number} {title}\n\nTODO: what this notebook builds, and why, in three sentences.\n\n**What you will be "
             "able to do**\n\n1. TODO: something one can do, not know;\n2. TODO: a second;\n3. TODO: a third.\n\n"
             "**Before you start** you need TODO: what, and in which notebooks it is.\n\n**Time** about 45 minutes to read "
             "and run, TODO–TODO more for the exercises.", id="title", metadata={"tags": ["slide"]}),
        code("import torch\n\nfrom course_utils.claims import claim\n"
             "from course_utils.exercises import exercise, predict, progress, quiz", id="imports"),
        text("**Try it first.** TODO: ask for a number before you show it.", id="ask"),
        code(f'guess = predict("{number}-todo", None)', id="predict"),
        text("## 1. TODO four words, by hand\n\nTODO: say it, then compute it on four words with three numbers each.",
             id="by-hand"),
        code('x = torch.arange(12.0).reshape(4, 3)                     # (word, number)\n'
             'claim("TODO: a sentence with a number in it", x.sum() == 66, x.sum())', id="by-hand-code"),
        text("## 2. TODO the function, and the real thing\n\nTODO: a cell that begins with an export mark goes to "
             "course_utils (CONTRIBUTING.md says how).", id="function"),
        code("guess.compare(float(x.mean()))", id="function-code"),
        text(f'## Check yourself\n\nOpen an option to read a remark on it. `quiz("{number}").answer(1, "a")` keeps your '
             "answers.", id="quiz"),
        code(f'quiz("{number}")', id="quiz-cell"),
        code("progress()", id="progress"),
        text("## Common mistakes\n\nTODO: what you see, and what it usually is.", id="mistakes"),
        text("## What you built\n\nTODO: what exists now, and what is still open.\n\n## Further reading\n\n- TODO: authors "
             "(year), *Title*, where, and a link.", id="built"),
    ]
    path = ROOT / "notebooks" / f"{name}.ipynb"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    write_notebook(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    write_text(ROOT / "notebooks" / "exercises" / f"n{number}.py",
               HEAD.format(number=number) + f'\n{QUIZ}\n\nQUIZ = """\n{quiz_of(number)}"""\n')
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    last = re.findall(r"^\| \[\d\d .+\]\(notebooks/\d\d_\w+\.ipynb\).*\n", readme, re.M)[-1]
    row = f"| [{number} {title}](notebooks/{name}.ipynb) | TODO what is built | TODO a moment to remember |\n"
    write_text(ROOT / "README.md", readme.replace(last, last + row))
    return [add_exercise(path) for _ in range(3)]


def todo() -> list[str]:
    """Where something is still to be written: 'README.md: 2', a line a file."""
    kinds = [ROOT.glob("*.md"), ROOT.glob("notebooks/[0-9]*.ipynb"), ROOT.glob("notebooks/exercises/n*.py"),
             ROOT.glob("notebooks/exercises/n*/*")]
    files = sorted(path for kind in kinds for path in kind if path.suffix in (".md", ".ipynb", ".py", ".yaml"))
    counts = {path.relative_to(ROOT).as_posix(): len(re.findall(r"\bTODO\b", path.read_text(encoding="utf-8")))
              for path in files if path.name != "CONTRIBUTING.md"}
    return [f"{name}: {count} to write (search for TODO)" for name, count in counts.items() if count]


def _say(then: str) -> None:
    print("\n".join(["Write whatever is marked TODO:", *(f"  {line}" for line in todo()), f"Then run: {then}"]))


def exercise_command(arguments: list[str] | None = None) -> int:
    """`python -m course_tools exercise 04`; returns the exit status."""
    parser = argparse.ArgumentParser(description="Add an exercise to a notebook, as an example to rewrite.")
    parser.add_argument("number", help="the notebook's number, such as 04")
    path, *others = find([parser.parse_args(arguments).number])
    if others:
        sys.exit(f"which one? For example: make exercise NB={path.name[:2]}")
    new = add_exercise(path)
    number = copied.number_of(path)
    print(f"exercise {new} is in {path.relative_to(ROOT).as_posix()}, before 'Check yourself'. Move its two cells to where "
          "they belong.")
    _say(f"make save NB={number}, python -m course_tools timetable, make lint, python -m pytest tests/exercises tests/tools "
         f"course_tools/tests/notebooks/test_scaffold.py -q -k '{new} or {new.replace('.', '-')} or {number} or scaffold'")
    return 0


def notebook_command(arguments: list[str] | None = None) -> int:
    """`python -m course_tools notebook 13_language_model`; returns the exit status."""
    parser = argparse.ArgumentParser(description="Add the next notebook, with exercises and a quiz.")
    parser.add_argument("name", help="two digits and lower-case words, such as 13_language_model")
    name = parser.parse_args(arguments).name
    new_notebook(name)
    number = copied.number_of(name)
    _say(f"make save NB={number}, python -m course_tools timetable, make test NB={number}, make lint, python -m pytest "
         f"tests/tools tests/exercises course_tools/tests/notebooks/test_scaffold.py -q -k '{number} or scaffold or tools'")
    return 0
