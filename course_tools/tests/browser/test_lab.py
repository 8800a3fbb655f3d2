"""A piece in a real JupyterLab: it comes alive when its cell runs, keeps its keys to itself, and logs no error."""

import time

import nbformat
import pytest
from browsers import OF_LAB, jupyter_lab
from saved_pieces import made_anew
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from course_utils.copies.notebooks import everything
from course_utils.interactive import piece as pieces
from course_utils.interactive.piece import NOT_LIVE, Piece

STILL = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="10"></svg>'
TYPED = "function build(root) { root.append(h('input', {'aria-label': 'type here'})); }"
METADATA = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
SAVED = [piece for path in everything() for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"
         for output in cell.outputs for piece in made_anew(output.get("data", {}).get("text/html", ""))]
LINES = "return Array.from(document.querySelectorAll('.jp-OutputArea-output p'), one => one.innerText)"
# of each output with a live piece, how many pixels of it JupyterLab would hide behind a scrollbar
SCROLLS = """return Array.from(document.querySelectorAll(".jp-OutputArea-output"), function (box) {
  var host = box.querySelector(".course-piece[data-live]");
  return { piece: host ? host.dataset.piece : "", down: box.scrollHeight - box.clientHeight,
    across: box.scrollWidth - box.clientWidth };
}).filter(one => one.piece)"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab that serves a folder with a notebook whose second cell shows a piece when it runs, and two with saved
    outputs that nobody has signed: a piece of the course, and all of them."""
    folder = tmp_path_factory.mktemp("lab")
    source = pieces._source
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_source", lambda name: TYPED if name == "toy.js" else source(name))
        html = Piece("toy", {}, still=STILL, alt="A box to type in.").html
    sources = ["1 + 1", f"from IPython.display import HTML\nHTML({html!r})", "'last'"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=METADATA), folder / "toy.ipynb")
    for name, shown in (("untrusted", SAVED[:1]), ("all", SAVED)):
        outputs = [nbformat.v4.new_output("display_data", piece._repr_mimebundle_()) for piece in shown]
        cell = nbformat.v4.new_code_cell("'pieces'", execution_count=1, outputs=outputs)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=METADATA), folder / f"{name}.ipynb")
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
    assert own_failures(browser) == []


def test_in_an_untrusted_notebook_the_still_picture_says_what_to_do_and_trust_makes_it_live(browser, lab):
    browser.open(lab.replace("/lab?", "/lab/tree/untrusted.ipynb?"))
    browser.wait(lambda: NOT_LIVE in browser.driver.execute_script(LINES), 60)
    picture = browser.driver.find_element(By.CSS_SELECTOR, ".jp-OutputArea-output img")
    assert picture.is_displayed() and picture.size["height"] > 10 and not browser.pieces()
    trust(browser)
    browser.wait(browser.pieces)
    assert NOT_LIVE not in browser.driver.execute_script(LINES)
    assert own_failures(browser) == []


def test_no_live_piece_has_a_scrollbar_of_its_own(browser, lab):
    """At any width, an output is as high and as wide as the piece in it."""
    browser.open(lab.replace("/lab?", "/lab/tree/all.ipynb?"))
    browser.wait(lambda: NOT_LIVE in browser.driver.execute_script(LINES), 60)
    trust(browser)
    browser.wait(lambda: len(browser.pieces()) == len(SAVED), 60)
    assert {piece.kind for piece in SAVED} >= {"attention_view", "classifier_view", "gates_view", "moving", "rotary_view"}
    wrong = []
    for size in ("projector", "tablet", "phone", "desktop"):
        browser.resize(size)
        if size == "phone":                               # the list of files would leave no room at all
            browser.driver.execute_script("window.jupyterapp.shell.collapseLeft()")
        time.sleep(1)
        found = browser.driver.execute_script(SCROLLS)
        assert len(found) == len(SAVED)
        wrong += [(size, one) for one in found if one["down"] > 0 or one["across"] > 0]
    assert not wrong, "\n".join(map(str, wrong))
    assert own_failures(browser) == []


def trust(browser) -> None:
    """Trust the notebook, as View, Activate Command Palette, Trust Notebook does."""
    browser.wait(lambda: browser.driver.execute_script(
        "return window.jupyterapp && window.jupyterapp.commands.isEnabled('notebook:trust')"))
    browser.driver.execute_script("window.jupyterapp.commands.execute('notebook:trust')")
    browser.wait(lambda: browser.driver.find_elements(By.CSS_SELECTOR, ".jp-Dialog .jp-mod-accept"))[0].click()


def own_failures(browser) -> list[str]:
    return [line for line in browser.failures() if not any(known in line for known in OF_LAB)]
