"""A piece in a real JupyterLab: it comes alive when its cell runs, keeps its keys to itself, and logs no error."""

import nbformat
import pytest
from browsers import OF_LAB, jupyter_lab
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from course_utils.interactive import piece as pieces
from course_utils.interactive.piece import Piece

STILL = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="10"></svg>'
TYPED = "function build(root) { root.append(h('input', {'aria-label': 'type here'})); }"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab that serves a folder with one notebook, whose second cell shows a piece."""
    folder = tmp_path_factory.mktemp("lab")
    source = pieces._source
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_source", lambda name: TYPED if name == "toy.js" else source(name))
        html = Piece("toy", {}, still=STILL, alt="A box to type in.").html
    sources = ["1 + 1", f"from IPython.display import HTML\nHTML({html!r})", "'last'"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {
        "name": "python3", "display_name": "Python 3", "language": "python"}}), folder / "toy.ipynb")
    with jupyter_lab(folder, folder / ".settings") as found:
        yield found


def cells(browser) -> int:
    return len(browser.driver.find_elements(By.CSS_SELECTOR, ".jp-Notebook .jp-Cell"))


def test_a_piece_comes_alive_and_keeps_its_keys(browser, lab):
    browser.open_notebook(lab, "toy.ipynb")
    browser.run_all()
    field = browser.wait(lambda: browser.pieces("toy"))[0].shadow_root.find_element(By.CSS_SELECTOR, "input")
    before = cells(browser)
    field.click()
    field.send_keys("ddabx", Keys.ARROW_LEFT, "c")
    assert field.get_property("value") == "ddabcx"
    assert cells(browser) == before == 3
    assert [line for line in browser.failures() if not any(known in line for known in OF_LAB)] == []
