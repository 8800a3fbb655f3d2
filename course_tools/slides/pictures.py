"""The figures of the slides: in the style for projectors, drawn once by executing the notebooks, and kept beside them.

    python -m course_tools slide-pictures [04 …]      # notebooks/slides/04_attention: PNGs, and pictures.json about them
    present_pictures("04_attention")["figure-raw"]    # the pictures of a cell, in order

Does: execute a notebook with COURSE_STYLE=present and keep every picture of its cells tagged slide or fragment, with a
palette of colours; say whether a notebook's code has changed since. Does not: make slides, or change a notebook.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import shutil
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbclient.exceptions import CellExecutionError
from PIL import Image

from course_utils.copies.notebooks import execute, find, front, names_on_the_line, talks
from course_utils.files import fingerprint, write_bytes, write_json
from course_utils.files.paths import NOTEBOOKS

FOLDER = NOTEBOOKS / "slides"
SHOWN = {"slide", "fragment"}
COLOURS = 128           # of a picture's palette
SAYING = {"claim", "predict", "print", "display", "quiz", "progress"}
MEASURED = ("width", "height", "smallest_type")
FIRST = "from course_tools.slides.drawing import draw_for_slides\n\ndraw_for_slides()"


class Picture(NamedTuple):
    """A figure for a slide of 1280 x 720: its PNG, its alternative text, the `width` and `height` at which it fits below a
    heading, and its smallest type at that size; all three in CSS pixels. The file has half as many again, each way."""

    path: Path
    alt: str
    width: int
    height: int
    smallest_type: float


def lectures() -> list[Path]:
    """The notebooks that have slides: all but the extras."""
    return [*front(), *find([]), *talks()]


def present_pictures(stem: str) -> dict[str, list[Picture]]:
    """The pictures of a notebook such as '04_attention' by cell id, in order; {} for a notebook that has none."""
    about = _kept(stem)
    return {cell: [Picture(FOLDER / stem / each["file"], each["alt"], *(each[name] for name in MEASURED)) for each in kept]
            for cell, kept in about.get("pictures", {}).items()}


def is_stale(path: Path) -> bool:
    """Whether a notebook's code has changed since its pictures were drawn, or it has none and needs some."""
    notebook = nbformat.read(path, as_version=4)
    return _kept(path.stem).get("code", "") != code_of(notebook)


def code_of(notebook) -> str:
    """A short name for the code that a notebook's pictures depend on: what runs up to the last of them, without exercises,
    comments, and lines that only say or ask something.

    '' where no cell tagged slide or fragment shows a picture.
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    last = max((i for i, cell in enumerate(code) if is_shown(cell) and pngs(cell)), default=-1)
    sources = [what_counts(cell.source) for cell in code[:last + 1] if "exercise" not in cell.metadata.get("tags", [])]
    return fingerprint(sources) if sources else ""


def what_counts(source: str) -> str:
    """A cell's code without comments, empty lines, and statements such as claim(…) that draw nothing; a magic's as it is."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return source
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = lines[token.start[0] - 1][:token.start[1]]
    for one in statements:
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) and getattr(one.value.func, "id", "") in SAYING:
            lines[one.lineno - 1:one.end_lineno] = [""] * (one.end_lineno - one.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip())


def is_shown(cell) -> bool:
    """Whether a cell is on a slide."""
    return bool(SHOWN & set(cell.metadata.get("tags", [])))


def pngs(cell) -> list[dict]:
    """The outputs of a cell that are pictures, in order."""
    return [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]


def _kept(stem: str) -> dict:
    manifest = FOLDER / stem / "pictures.json"
    return json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else {}


def draw(path: Path) -> int:
    """Execute a notebook in the style for projectors, keep its pictures, and return how many there are.

    A notebook without any is not executed. Raises CellExecutionError where a cell fails.
    """
    code = code_of(nbformat.read(path, as_version=4))
    folder = FOLDER / path.stem
    if not code:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    with _projector():
        notebook = execute(path, first=FIRST)
    pictures, files = {}, {}
    for cell in filter(is_shown, notebook.cells):
        for k, output in enumerate(pngs(cell)):
            name = f"{cell.id}.png" if k == 0 else f"{cell.id}-{k + 1}.png"
            about = output.metadata["image/png"]
            files[name] = in_few_colours(base64.b64decode(output.data["image/png"]))
            pictures.setdefault(cell.id, []).append(
                {"file": name, **{key: about[key] for key in MEASURED}, "alt": about["alt"]})
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        write_bytes(folder / name, content)
    write_json(folder / "pictures.json", {"code": code, "pictures": pictures})
    return len(files)


def in_few_colours(png: bytes) -> bytes:
    """The same picture with a palette: a third of the bytes."""
    small = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        reduced = picture.convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        reduced.save(small, format="PNG", optimize=True)
    return small.getvalue()


@contextmanager
def _projector() -> Iterator[None]:
    """The settings under which the notebooks run here; what they save goes to a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as outputs:
        wanted = {"COURSE_STYLE": "present", "COURSE_OUTPUTS": outputs, "COURSE_TESTING": "1", "TQDM_DISABLE": "1",
                  "HF_HUB_OFFLINE": "1"}
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def main(arguments: list[str] | None = None) -> int:
    """Draw the pictures of the notebooks that the line names, or of all; return the exit status."""
    names = names_on_the_line("slide-pictures", arguments, "Draw the figures of the slides: executes the notebooks.",
                              "course_tools")
    failed = 0
    for path in [path for path in lectures() if not names or path in find(names)]:
        try:
            drawn = draw(path)
        except CellExecutionError as error:
            failed += 1
            print(f"{path.stem} failed; its pictures are as they were:\n{error}", file=sys.stderr)
        else:
            print(f"{path.stem}: {drawn} pictures" if drawn else f"{path.stem}: no pictures on slides", flush=True)
    return int(failed > 0)
