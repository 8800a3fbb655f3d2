"""Other editions of the course, for instructors.

    python -m course_tools solutions    outputs/solutions: each exercise cell with the course's answer
    python -m course_tools handout      outputs/handout, the course without solutions, and zip files: handout.zip without its
                                        larger models, and others with those

Does: write them. Does not: execute them, or touch the notebooks or anybody's copies.
"""

import argparse
import ast
import os
import re
import shutil
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import nbformat
import torch

from course_tools.teaching.sealing import seal, without_answers
from course_utils.copies.notebooks import NOTEBOOKS, ROOT, everything, write_notebook
from course_utils.exercises.catalogue import answers_to, find_exercise, list_exercises, record_of, source_of_solution
from course_utils.exercises.definitions import right_order
from course_utils.files import replacing, write_text
from course_utils.files.paths import ELSEWHERE, output_folder

HANDED_OUT = [".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "conftest.py", "course_utils", "data",
              "notebooks", "outputs/README.md", "pyproject.toml", "requirements.txt",
              "tests/helpers"]                          # what conftest.py compares saved outputs with; no test
FOR_INSTRUCTORS = ["for_instructors.md", "classroom*", "slides", "talks"]
# models that not everybody needs at once, in zip files of their own, since a learning platform takes files of at most 25 MB:
# the notebooks that read them, and their names
LATER = {"models-1": ("09, 16, 17 and what follows them", ("imdb", "recurrent-*", "translation", "multi30k")),
         "models-2": ("02b, 10, 13, 13b, 14", ("code*", "induction-*", "encoder")),
         "models-3": ("15", ("reader", "student"))}
LEFT_BEHIND = ["my_copies", "progress*.json", "__pycache__", ".ipynb_checkpoints", "*.lock", "*.partial", "*.holder",
               "*.state.safetensors"]
CHECK = re.compile(r"exercise\(\s*[\"'](R?\d+[a-z]?\.\d+)[\"']\s*\)\s*\.check\(")


def called_numbers(source: str) -> list[str]:
    """The numbers in the exercise("4.2").check(…) of a piece of code, in order."""
    return CHECK.findall(source)


def exercise_number(source: str) -> str:
    """The number in the cell's exercise("4.2").check(…). Raises ValueError for a cell without one."""
    found = called_numbers(source)
    if not found:
        raise ValueError("an exercise cell must hold exercise(\"…\").check(…)")
    return found[0]


def solved(source: str) -> str:
    """The source of an exercise cell with the course's answer in place of the stub.

    A function or class that the cell defines gives way to the reference; `answer = None` and `.check(None)` get the value.
    """
    exercise = find_exercise(exercise_number(source))
    answers = answers_to(exercise.id)
    if exercise.kind == "function":
        name = re.search(r"\.check\((\w+)\)", source).group(1)
        tree, lines = ast.parse(source), source.splitlines()
        stub = next(node for node in tree.body if getattr(node, "name", None) == name)
        answer = source_of_solution(exercise.id).splitlines()
        if answers.reference.__name__ != name:
            answer += ["", f"{name} = {answers.reference.__name__}"]
        return "\n".join([*lines[: stub.lineno - 1], *answer, *lines[stub.end_lineno:]])
    value = right_order(answers.reference()) if exercise.kind == "order" else answers.reference()
    shown = repr(value.tolist() if isinstance(value, torch.Tensor) else value)
    return re.sub(r"\bNone\b", lambda _: shown, source, count=1)


def write_solutions(folder: Path | None = None) -> list[Path]:
    """Write every notebook with its exercises solved and its outputs cleared; return the files."""
    folder = folder or output_folder() / "solutions"
    written = []
    for path in everything():
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
                if "exercise" in cell.metadata.get("tags", []):
                    cell.source = solved(cell.source)
        written.append(folder / path.relative_to(NOTEBOOKS))
        write_notebook(notebook, written[-1])
    return written


def copy_without_solutions(folder: Path, names: list[str] = HANDED_OUT) -> None:
    """Copy parts of the course to a folder, without what is for instructors and without learners' work and marks."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*FOR_INSTRUCTORS, *LEFT_BEHIND))
        else:
            shutil.copyfile(ROOT / name, folder / name)
    for path in (folder / "notebooks" / "exercises").rglob("*.py"):
        write_text(path, without_answers(path.read_text(encoding="utf-8")))


def write_handout(folder: Path | None = None) -> list[Path]:
    """Write the course without its solutions, and beside the folder zip files of it; return those, the course's first.

    The first has all but the larger models of LATER, which are in the others; each is unpacked over the course. What `check`
    compares with stands in notebooks/exercises, encoded; numbers and orders as fingerprints. Learners' copies, marks and
    outputs stay where they are.
    """
    folder = folder or output_folder() / "handout"
    copy_without_solutions(folder)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    kept = re.sub(r"^<!-- instructors: begin -->\n.*?^<!-- instructors: end -->\n", "", readme, flags=re.S | re.M)
    write_text(folder / "README.md", kept)
    seal(folder / "notebooks" / "exercises", [record_of(exercise.id) for exercise in list_exercises()])
    files: dict[str, list[Path]] = {"": [], **{name: [] for name in LATER}}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        files[_zip_of(path.relative_to(folder))].append(path)
    rows = [f"| `{folder.name}-{name}.zip` | {readers} | {', '.join(models)} |" for name, (readers, models) in LATER.items()]
    note = "\n".join(["If a notebook says that there is no model of one of these names, ask for the file and unpack it over "
                      "the course, so that its `data` meets this one.", "",
                      "| file | notebooks that read them | models |", "|---|---|---|", *rows, ""])
    told = {f"data/checkpoints/{ELSEWHERE}": note}
    return [_pack(folder, name, paths, {} if name else told) for name, paths in files.items()]


def _zip_of(inside: Path) -> str:
    """The key in LATER of a file of the course, '' for what everybody gets."""
    model = inside.parts[2].partition(".")[0] if inside.parts[:2] == ("data", "checkpoints") else ""
    return next((name for name, (_, models) in LATER.items() if any(fnmatch(model, one) for one in models)), "")


def _pack(folder: Path, name: str, paths: list[Path], more: dict[str, str]) -> Path:
    packed = folder.with_name(f"{folder.name}-{name}.zip" if name else f"{folder.name}.zip")
    with replacing(packed) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as together:
        for path in paths:
            together.write(path, path.relative_to(folder.parent).as_posix())
        for place, text in more.items():
            together.writestr(f"{folder.name}/{place}", text)
    return packed


def solutions_command(arguments: list[str] | None = None) -> int:
    """Write every notebook with its exercises solved into outputs/solutions; return the exit status."""
    argparse.ArgumentParser(description=solutions_command.__doc__).parse_args(arguments)
    written = write_solutions()
    print(f"{len(written)} notebooks with their solutions: {os.path.relpath(written[0].parent)}")
    return 0


def handout_command(arguments: list[str] | None = None) -> int:
    """Write the course without its solutions into outputs/handout, and as zip files; return the exit status."""
    argparse.ArgumentParser(description=handout_command.__doc__).parse_args(arguments)
    course, *models = write_handout()
    print(f"the course without its solutions: {os.path.relpath(course)} ({course.stat().st_size / 1e6:.0f} MB)")
    for path, (readers, _) in zip(models, LATER.values(), strict=True):
        print(f"models for {readers}, to unpack over it: {os.path.relpath(path)} ({path.stat().st_size / 1e6:.0f} MB)")
    return 0
