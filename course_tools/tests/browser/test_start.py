"""START in a real JupyterLab, as `make lab` opens it: live before any kernel runs, and a way to everything else."""

import os
import time

import pytest
from browsers import OF_LAB, jupyter_lab
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from course_utils.copies import commands as copies
from course_utils.copies import notebooks
from course_utils.files.paths import ROOT

MAP = "return arguments[0].querySelector('canvas').toDataURL()"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab that serves a course whose copies were just made; also the seconds since it was asked for."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("course_utils", "data", "README.md"):
        os.symlink(ROOT / name, folder / name)
    (folder / "notebooks").mkdir()
    for path in (ROOT / "notebooks").iterdir():
        if path.name != "my_copies":                      # those are somebody's
            os.symlink(path, folder / "notebooks" / path.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / ".jupyter"))         # where signatures are kept
        patch.setattr(notebooks, "ROOT", folder)
        patch.setattr(notebooks, "NOTEBOOKS", folder / "notebooks")
        begun = time.perf_counter()
        copies.copy()
        with jupyter_lab(folder, folder / ".settings") as found:
            yield found, lambda: time.perf_counter() - begun


def open_start(browser, address: str):
    """Open START as `make lab` does, and give the live classifier, without waiting for a kernel."""
    browser.open(address.replace("/lab?", "/lab/tree/notebooks/my_copies/START.ipynb?"))
    return browser.wait(lambda: browser.pieces("classifier_view"), 60)[0]


def own_failures(browser) -> list[str]:
    return [line for line in browser.failures() if not any(known in line for known in OF_LAB)]


def test_a_sentence_is_edited_and_the_map_changes_within_three_clicks_and_half_a_minute(browser, lab, capsys):
    address, seconds = lab
    piece = open_start(browser, address)
    inside, clicks = piece.shadow_root, 1
    before, field = browser.driver.execute_script(MAP, inside), inside.find_element(By.CSS_SELECTOR, "textarea")
    browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", field)
    field.click()
    field.send_keys(Keys.END, Keys.BACKSPACE, " to me.")
    browser.wait(lambda: browser.driver.execute_script(MAP, inside) != before)
    taken = seconds()
    with capsys.disabled():
        print(f"\n  from `make lab` to a changed map: {taken:.1f} s, {clicks} click")
    assert taken < 30 and clicks <= 3
    assert own_failures(browser) == []


def test_links_lead_to_copies_to_pages_and_to_code(browser, lab):
    """Relative links of text and of the map are found by JupyterLab: it opens the file of that path."""
    open_start(browser, lab[0])
    wanted = {"01_raw_text.ipynb": "notebooks/my_copies/01_raw_text.ipynb", "extras/": "notebooks/my_copies/extras/",
              "notation_and_glossary.md": "notebooks/my_copies/notation_and_glossary.md",
              "results.md": "notebooks/my_copies/results.md", "gallery.md": "notebooks/gallery.md",
              "attention.py": "course_utils/attention.py", "SAMPLES.md": "data/reviews/SAMPLES.md"}
    for end, path in wanted.items():                  # JupyterLab draws the cells one after another
        browser.wait(lambda end=end, path=path: any(end in link and f"/files/{path}" in link for link in links(browser)))
    for selector, name in ((".course-map a[href*='01_raw_text']", "01_raw_text.ipynb"),
                           (".jp-MarkdownOutput a[href*='attention.py']", "attention.py")):
        click(browser, selector)
        browser.wait(lambda name=name: name in open_tabs(browser))


def links(browser) -> list[str]:
    return browser.driver.execute_script(
        "return Array.from(document.querySelectorAll('.jp-Notebook a[href]'), function (one) { return one.href; })")


def click(browser, selector: str) -> None:
    browser.driver.execute_script(
        "var app = window.jupyterapp, panel = Array.from(app.shell.widgets('main')).find(function (one) {"
        "return one.context && one.context.path.endsWith('START.ipynb'); }); app.shell.activateById(panel.id);")
    browser.wait(lambda: browser.driver.execute_script(
        "var link = document.querySelector(arguments[0]); if (link) link.scrollIntoView(); return link && link.offsetHeight",
        selector))
    browser.driver.find_element(By.CSS_SELECTOR, selector).click()


def open_tabs(browser) -> list[str]:
    return browser.driver.execute_script(
        "return Array.from(window.jupyterapp.shell.widgets('main'), function (one) { return one.title.label; })")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", ["projector", "tablet", "phone"])
def test_it_fits(browser, lab, pictures, size, dark):
    browser.resize(size)
    piece = open_start(browser, lab[0])
    theme = f"JupyterLab {'Dark' if dark else 'Light'}"
    browser.driver.execute_script(f"window.jupyterapp.commands.execute('apputils:change-theme', {{theme: '{theme}'}})")
    if size != "projector":                               # as anybody would there
        browser.driver.execute_script("window.jupyterapp.shell.collapseLeft()")
    browser.wait(lambda: piece.get_attribute("data-dark") is not None if dark else piece.get_attribute("data-dark") is None)
    browser.picture(pictures / f"start-{size}-{'dark' if dark else 'light'}.png")
    wide = browser.driver.execute_script("return [arguments[0].scrollWidth, arguments[0].clientWidth]", piece)
    assert wide[0] <= wide[1] + 1
    assert own_failures(browser) == []
