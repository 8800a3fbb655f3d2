"""A course of two small notebooks in a folder of its own, for tests of what is done with notebooks."""

import nbformat

from course_utils.copies import notebooks


def small_notebook(source="1 + 1"):
    output = nbformat.v4.new_output("execute_result", {"text/plain": "2"}, execution_count=1)
    return nbformat.v4.new_notebook(cells=[
        nbformat.v4.new_markdown_cell("# Sums", id="title"),
        nbformat.v4.new_code_cell(source, id="sum", outputs=[output], execution_count=1, metadata={"tags": ["kept"]}),
    ])


def make_course(tmp_path, monkeypatch):
    """Put two notebooks into a folder of their own and let the tools work there; returns the folder of the notebooks."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))      # where signatures are kept
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "notebooks")
    (tmp_path / "notebooks").mkdir()
    for name in ("00_first", "01_second"):
        nbformat.write(small_notebook(), tmp_path / "notebooks" / f"{name}.ipynb")
    return notebooks.NOTEBOOKS
