"""Find the course's notebooks, and run them.

    python -m course_utils paths 04      where the course's notebooks are, for make test
    python -m course_utils run [04 …]    execute notebooks; executed copies in outputs/notebooks
    python -m course_tools save [04 …]   execute notebooks in place (for maintainers)

A notebook is named by its number; one that has none by its name: run START, run hour, run results, run vocabulary_size.
Without a name all are run: START first, the extras last. Does: fresh kernels, outputs without timings or progress bars. Does
not: compare outputs (the tests do), or touch learners' copies (see `copies`).
"""

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path
from uuid import uuid4

import nbformat
from jupyter_client.manager import AsyncKernelManager, KernelManager
from jupyter_core.paths import jupyter_runtime_dir
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tqdm import tqdm

from course_utils.files import write_text
from course_utils.files.paths import EXTRAS, FRONT, NOTEBOOKS, REVIEWS, ROOT
from course_utils.files.text import decoded

LONGEST = 100                                             # bytes in a Unix socket's path; systems allow 103 or 107


class _OverFiles:
    """A kernel manager whose kernel listens on Unix sockets, where the system has them and their path isn't too long.

    jupyter_client looks for five free ports, lets go of them and hands their numbers to the kernel, which opens them most of
    a second later. Where several kernels start side by side, another process sometimes has one of them by then.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        file = os.path.join(jupyter_runtime_dir(), f"kernel-{uuid4().hex[:16]}.json")
        os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
        if os.name == "posix" and len(os.fsencode(file)) + len("-ipc-5") <= LONGEST:
            self.transport, self.connection_file = "ipc", file


class KernelOverFiles(_OverFiles, KernelManager):
    """`jupyter_client.KernelManager` over Unix sockets."""


class AsyncKernelOverFiles(_OverFiles, AsyncKernelManager):
    """`jupyter_client.AsyncKernelManager` over Unix sockets; nbclient's `kernel_manager_class`."""


RENAMED: dict[str, str] = {                               # a notebook's name until then: its name now
    "12_ablations": "12_comparing_models",
    "induction_heads": "13b_induction_heads",             # was an extra
}
CONFLICT = re.compile(r"^(<{7}|={7}|>{7})(?= |\r?$)", re.M)
SHORT = {"start": "START", "hour": "attention_in_an_hour"}  # what else somebody may type


def front() -> list[Path]:
    """START and the hour: the notebooks that come before the numbered ones."""
    return [path for name in FRONT if (path := NOTEBOOKS / f"{name}.ipynb").is_file()]


def extras() -> list[Path]:
    """The notebooks beside the main line, in `notebooks/extras`, by name; there may be none."""
    return sorted((NOTEBOOKS / EXTRAS).glob("[a-z]*.ipynb"))


def talks() -> list[Path]:
    """The notebooks written for an audience, in `notebooks/talks`, by name."""
    return sorted((NOTEBOOKS / "talks").glob("[a-z]*.ipynb"))


def results() -> list[Path]:
    """The notebooks of results, one for each part of the course."""
    return sorted(NOTEBOOKS.glob("results_part_*.ipynb"))


def everything() -> list[Path]:
    """START and the hour, the numbered notebooks in order, the results, then the extras."""
    return [*front(), *find([]), *results(), *extras()]


def number_of(path: Path | str) -> str:
    """The number in a notebook's name, which a letter may follow: '02' or '02b'; 'R1' for a part's review; '' for others."""
    name = Path(path).name.removesuffix(".ipynb")
    found = re.match(r"(\d\d[a-z]?)_", name)
    return found[1] if found else next((number for number, (review, _) in REVIEWS.items() if review == name), "")


def follows(path: Path | str) -> str:
    """The number by which a notebook is put in order and into its part: its own; a review's is that of the one before it."""
    number = number_of(path)
    return REVIEWS[number][1] if number in REVIEWS else number


def find(names: list[str]) -> list[Path]:
    """The numbered notebooks and the reviews in order, or those whose file name begins with one of `names`; 4 means 04.

    START comes first and extras come last. A notebook that has been renamed is also found by its old name, the hour as
    'hour', a number means the notebook that has it (02 isn't 02b), and a whole name means that notebook alone. Ends the
    program with the list of notebooks where a name fits none.
    """
    reviews = [path for name, _ in REVIEWS.values() if (path := NOTEBOOKS / f"{name}.ipynb").is_file()]
    numbered = sorted([*NOTEBOOKS.glob("[0-9]*.ipynb"), *reviews], key=lambda path: (follows(path), number_of(path)))
    if not names:
        return numbered
    every, chosen = [*front(), *numbered, *results(), *extras(), *talks()], set()
    for name in names:
        start = {**RENAMED, **SHORT}.get(name, f"0{name}" if re.fullmatch(r"\d[a-z]?", name) else name)
        fitting = [path for path in every if start and path.name.startswith(start)]
        if not fitting:
            sys.exit(f"there is no notebook {name!r}; there are {', '.join(path.stem for path in every)}")
        chosen.update([path for path in fitting if start in (path.stem, number_of(path))] or fitting)
    return [path for path in every if path in chosen]


def notebook_json(content: bytes) -> dict:
    """The JSON of a notebook file, with or without a byte-order mark. Raises ValueError that says what's wrong with it."""
    if not content.strip():
        raise ValueError("it is empty")
    try:
        text = decoded(content, "it")
    except ValueError as error:
        kind = re.search("UTF-(16|32)", str(error))
        raise ValueError(f"it is text in {kind[0]}, not in UTF-8" if kind else "it is not text in UTF-8") from None
    conflict = CONFLICT.search(text)
    try:
        notebook = json.loads(text)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        if conflict:
            line = text.count("\n", 0, conflict.start()) + 1
            raise ValueError(f"git has left a merge conflict in it (line {line} begins with {conflict[1]})") from None
        raise ValueError(f"it is not JSON (line {error.lineno}); was it cut off while it was saved?") from None
    if not isinstance(notebook, dict):
        raise ValueError("it is JSON, but not a notebook")
    return notebook


def is_exercise(cell) -> bool:
    """Whether the learner writes an answer to an exercise into this cell."""
    return "exercise" in cell.metadata.get("tags", [])


def write_notebook(notebook, path: Path) -> None:
    """Write a notebook to a file, whole or not at all: whatever happens meanwhile, what somebody wrote there isn't lost."""
    write_text(path, nbformat.writes(notebook).rstrip("\n") + "\n")


def tidy(notebook) -> None:
    """Merge neighbouring pieces of one stream and drop what differs between runs and machines, but no metadata of ours."""
    ours = {"course": notebook.metadata["course"]} if "course" in notebook.metadata else {}
    notebook.metadata = nbformat.from_dict({
        **ours,
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    })
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        merged = []
        for output in cell.outputs:
            output.pop("transient", None)
            last = merged[-1] if merged else None
            if last and output.output_type == last.output_type == "stream" and output.name == last.name:
                last.text += output.text
            else:
                merged.append(output)
        cell.outputs = merged


def execute(path: Path, bar=None, first: str = ""):
    """Execute one notebook in a fresh kernel, in its own folder; return it, outputs tidied.

    `first` is code to run before its first cell. Raises CellExecutionError at the first cell that fails.
    """
    notebook = nbformat.read(path, as_version=4)
    if first:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(first))
    client = NotebookClient(
        notebook, timeout=1200, kernel_name="python3", record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
        kernel_manager_class=AsyncKernelOverFiles,
        extra_arguments=["--log-level=ERROR"],            # no kernel warnings between the progress bars
        on_cell_complete=(lambda cell, cell_index: bar.update()) if bar is not None else None,
    )
    known = os.environ.get("PYTHONPATH")
    ours = f"{ROOT}{os.pathsep}{known}" if known else str(ROOT)           # this course's package, whichever is installed
    client.execute(env={**os.environ, "PYTHONPATH": ours})
    if first:
        del notebook.cells[0]
    tidy(notebook)
    return notebook


def without_models() -> None:
    """From here on, kernels find no weights of published models, whatever this machine has: saved outputs show none."""
    for name in ("COURSE_MODELS", "COURSE_DOWNLOAD"):
        os.environ.pop(name, None)
    os.environ["HF_HUB_CACHE"] = str(ROOT / "outputs" / "no-models")       # a folder that isn't there


def run(names: list[str], in_place: bool) -> int:
    """Execute notebooks with one progress bar over all their cells; return the number that failed."""
    paths, failed = find(names) if names else everything(), 0
    cells = {path: len(nbformat.read(path, as_version=4).cells) for path in paths}
    disabled = os.environ.get("TQDM_DISABLE") == "1"
    os.environ["TQDM_DISABLE"] = "1"                      # progress bars inside the notebooks
    os.environ["COURSE_TESTING"] = "1"                    # a claim that fails is an error
    os.environ["HF_HUB_OFFLINE"] = "1"                    # what is shown doesn't depend on what can be downloaded
    if in_place:
        without_models()
    folder = Path(os.environ.get("COURSE_OUTPUTS", ROOT / "outputs")) / "notebooks"
    with tqdm(total=sum(cells.values()), unit="cell", disable=disabled) as bar:
        for path in paths:
            bar.set_description(path.stem)
            start, begun = bar.n, time.perf_counter()
            try:
                notebook = execute(path, bar)
            except CellExecutionError as error:
                failed += 1
                tqdm.write(f"{path.stem} failed:\n{error}")
            else:
                target = path if in_place else folder / path.relative_to(NOTEBOOKS)
                write_notebook(notebook, target)
                if in_place and (NOTEBOOKS / "slides" / path.stem).is_dir():
                    tqdm.write(f"{path.stem} has figures on slides; draw them again: make slide-pictures NB={path.stem}")
                tqdm.write(f"{path.stem}: {time.perf_counter() - begun:.0f} s")
            bar.update(start + cells[path] - bar.n)
    return failed


def names_on_the_line(action: str, arguments: list[str] | None, what: str, program: str = "course_utils") -> list[str]:
    """The notebooks that the command line of an action names; ends the program where it says anything else."""
    parser = argparse.ArgumentParser(prog=f"python -m {program} {action}", description=what)
    parser.add_argument("names", nargs="*", help="the number of a notebook, such as 04, or a name: START, hour, an extra's")
    return parser.parse_args(arguments).names


def paths_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils paths 04`; returns the exit status, as all commands do."""
    names = names_on_the_line("paths", arguments, "Print where the course's notebooks are.")
    print(*(path.relative_to(ROOT).as_posix() for path in (find(names) if names else everything())), sep="\n")
    return 0


def run_command(arguments: list[str] | None = None) -> int:
    """`python -m course_utils run [04 …]`."""
    names = names_on_the_line("run", arguments, "Execute notebooks; the executed copies go to outputs/notebooks.")
    return int(run(names, in_place=False) > 0)
