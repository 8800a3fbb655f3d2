"""The Tab key in a real JupyterLab: pressed once, it shows the model's marked suggestions beside the usual ones.

The model is the course's own, and the network is cut. Only JupyterLab's patience is changed: it waits a second for
a kernel's suggestions, which isn't enough on a busy machine.
"""

import re
from pathlib import Path

import nbformat
import pytest
from browsers import OF_LAB, jupyter_lab
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from course_utils.files import write_text

TYPED = "for line in f"
PATIENCE = '{"providerTimeout": 60000}'
# (suggestion, what it's marked with) for each line of the list that Tab opens; null while it's closed
SHOWN = """
const box = document.querySelector('.jp-Completer');
if (!box || box.classList.contains('lm-mod-hidden') || !box.getClientRects().length) return null;
return Array.from(box.querySelectorAll('.jp-Completer-item')).map(item => [
    item.querySelector('.jp-Completer-match').textContent,
    (item.querySelector('.jp-Completer-typeExtended') || {textContent: ''}).textContent]);
"""
# Runs code in the open notebook's kernel, as a cell would; the argument after it is selenium's, to say that it's done.
RUN = """
const [code, done] = arguments;
const panel = Array.from(window.jupyterapp.shell.widgets('main')).find(one => one.sessionContext && one.isVisible);
const said = [], future = panel.sessionContext.session.kernel.requestExecute({code: code});
future.onIOPub = message => said.push(message.content.text || message.content.evalue || '');
future.done.then(reply => done([reply.content.status, said.join('')]), error => done(['error', String(error)]));
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab that serves a folder with one notebook, of one empty cell."""
    folder = tmp_path_factory.mktemp("tab")
    settings = folder / ".settings"
    write_text(settings / "lab" / "@jupyterlab" / "completer-extension" / "manager.jupyterlab-settings", PATIENCE)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("")], metadata={"kernelspec": {
        "name": "python3", "display_name": "Python 3", "language": "python"}}), folder / "tab.ipynb")
    with jupyter_lab(folder, settings) as found:
        yield found


def run(browser, code: str) -> str:
    """Run code in the notebook's kernel; what it prints."""
    browser.driver.set_script_timeout(120)
    status, said = browser.driver.execute_async_script(RUN, code)
    assert status == "ok", said
    return said


def tab(browser, picture: Path) -> dict[str, str]:
    """Type into the empty cell, press Tab once, take a picture, empty the cell: each suggestion's mark."""
    editor = browser.driver.find_element(By.CSS_SELECTOR, ".jp-Notebook .jp-Cell .cm-content")
    editor.click()
    editor.send_keys(TYPED)
    assert editor.text == TYPED and browser.driver.execute_script(SHOWN) is None
    editor.send_keys(Keys.TAB)
    browser.wait(lambda: browser.driver.execute_script(SHOWN), 90)
    shown = browser.wait(lambda: twice_the_same(browser), 20, every=0.5)
    browser.picture(picture)
    editor.send_keys(Keys.ESCAPE)
    browser.wait(lambda: browser.driver.execute_script(SHOWN) is None)
    editor.send_keys(Keys.ENTER, Keys.CONTROL, "a", Keys.NULL, Keys.DELETE)   # Escape has left the editor, Enter goes back
    browser.wait(lambda: not editor.text.strip())
    return dict(map(tuple, shown))


def twice_the_same(browser) -> list | None:
    """The list, if it's as it was a moment ago: JupyterLab adds its lines in several steps."""
    seen = browser.driver.execute_script(SHOWN)
    last, browser.last_list = getattr(browser, "last_list", None), seen
    return seen if seen and seen == last else None


def of_model(shown: dict[str, str]) -> dict[str, str]:
    return {text: mark for text, mark in shown.items() if mark.startswith("model")}


def test_tab_pressed_once_shows_the_models_marked_suggestions_until_deactivate(browser, lab, pictures):
    browser.open_notebook(lab, "tab.ipynb")
    assert run(browser, "from course_utils import completion") == ""
    usual = tab(browser, pictures / "tab_before.png")
    assert {"filter", "float", "format"} <= set(usual) and of_model(usual) == {}

    assert run(browser, "completion.activate()").startswith("Tab now shows the model's suggestions")
    found = tab(browser, pictures / "tab_with_the_model.png")
    added = of_model(found)
    names = {text: mark for text, mark in added.items() if mark != "model, line"}
    assert names and all(re.fullmatch(r"model \d+ %", mark) and text.startswith("f") for text, mark in names.items())
    assert set(found) - set(added) == set(usual) - set(added)                 # IPython's own marks differ from time to time

    assert run(browser, "completion.deactivate()").startswith("Tab no longer asks the model")
    again = tab(browser, pictures / "tab_after.png")
    assert set(again) == set(usual) and of_model(again) == {}
    assert [line for line in browser.failures() if not any(known in line for known in OF_LAB)] == []
