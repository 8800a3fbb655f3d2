"""The notebooks in a real JupyterLab with the network cut: all cells run, every piece comes alive, the console is silent."""

import os
import shutil

import nbformat
import pytest
from browsers import OF_LAB, jupyter_lab
from selenium.webdriver.common.by import By

from course_utils.copies.notebooks import everything
from course_utils.files.paths import ROOT

# Those that show something to touch: the others are run by `make test` and would show nothing new here.
ALL = os.environ.get("COURSE_ALL_NOTEBOOKS") == "1"
TOUCHED = [path for path in everything() if ALL or "course_utils.interactive" in path.read_text(encoding="utf-8")]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab on a copy of the notebooks' folder, outputs cleared."""
    folder = tmp_path_factory.mktemp("course")
    shutil.copytree(ROOT / "notebooks", folder / "notebooks", ignore=shutil.ignore_patterns("my_copies"))
    for path in (folder / "notebooks").rglob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, path)
    with jupyter_lab(folder, tmp_path_factory.mktemp("settings")) as address:
        yield address


def expected(path) -> int:
    """How many pieces the saved notebook shows."""
    return sum("course-piece" in "".join(output.get("data", {}).get("text/html", ""))
               for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code" for output in cell.outputs)


@pytest.mark.parametrize("path", TOUCHED, ids=lambda path: path.stem)
def test_it_runs_and_its_pieces_come_alive(browser, lab, path, pictures):
    browser.open_notebook(lab, path.relative_to(ROOT).as_posix())
    browser.run_all()
    # JupyterLab draws what comes into view: walk down, and count what has been alive.
    seen = set()
    for cell in browser.driver.find_elements(By.CSS_SELECTOR, ".jp-Notebook .jp-Cell"):
        browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", cell)
        for piece in browser.pieces():
            seen.add(piece.get_attribute("data-piece"))
            assert piece.shadow_root.find_elements(By.CSS_SELECTOR, ".piece > *"), "the piece is empty"
    assert len(seen) == expected(path)
    assert not browser.driver.find_elements(By.CSS_SELECTOR, '[data-mime-type="application/vnd.jupyter.error"]')
    browser.picture(pictures / f"{path.stem}.png")
    assert [line for line in browser.failures() if not any(known in line for known in OF_LAB)] == []
