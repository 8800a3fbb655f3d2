"""The code of a notebook's cells, for tests that run what a lesson builds."""

import nbformat

from course_utils.files.paths import NOTEBOOKS


def cells_of(name: str) -> dict[str, str]:
    """The source of each cell by its id, such as cells_of("03_embeddings")["export-mean"]."""
    return {cell.id: cell.source for cell in nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells}
