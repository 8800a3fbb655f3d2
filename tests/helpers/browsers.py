"""A Chromium with its network cut, and a JupyterLab to open in it, for the tests in course_tools/tests/browser.

Does: start both, open a piece of HTML as a page, collect what the console says and what was asked of a network. Does not:
download a browser; Chromium and ChromeDriver are the system's (Debian and Ubuntu: the packages chromium, chromium-driver).
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from course_utils.files.paths import ROOT

SIZES = {"phone": (360, 740), "tablet": (768, 1024), "projector": (1280, 720), "desktop": (1920, 1080)}
# The first line cuts the network, the others keep Chromium from asking for it.
OPTIONS = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
           "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]
# What JupyterLab itself writes to the console, whatever is opened.
OF_LAB = ("ResizeObserver", "jupyter-lsp", "preloaded using link preload", "favicon")
OWN = ("data", "blob", "file", "about", "chrome")
LOCAL = {"", "localhost", "127.0.0.1"}


def programs() -> tuple[str, str]:
    """Where Chromium and its driver are. Raises FileNotFoundError that says what to install."""
    chromium, driver = (next(filter(None, map(shutil.which, names)), None)
                        for names in (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)))
    if not chromium or not driver:
        missing = " and ".join(name for name, there in [("Chromium", chromium), ("ChromeDriver", driver)] if not there)
        raise FileNotFoundError(f"the browser tests need {missing}; "
                                "on Debian or Ubuntu: apt install chromium chromium-driver")
    return chromium, driver


class Browser:
    """A Chromium that remembers what went wrong in it. `driver` is selenium's; `failures()` is what a test asserts empty."""

    def __init__(self, profile: Path):
        chromium, driver = programs()
        options = Options()
        options.binary_location = chromium
        for option in [*OPTIONS, f"--user-data-dir={profile}"]:
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.resize("projector")

    def resize(self, size: str) -> None:
        """Give the page the inner width and height of 'phone', 'tablet', 'projector' or 'desktop'."""
        width, height = SIZES[size]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def prefer(self, *, dark: bool = False, still: bool = False) -> None:
        """Say what the system's settings ask for: a dark page, and no movement."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}]})

    def open(self, address: str | Path) -> None:
        """Open an address or a file; what earlier pages said is forgotten."""
        self.driver.get("about:blank")
        self.failures()
        self.driver.get(address.resolve().as_uri() if isinstance(address, Path) else address)

    def failures(self) -> list[str]:
        """Errors and warnings of the console, and every request that isn't the page's own, since the last call."""
        console = [f"console: {line['message']}" for line in self.driver.get_log("browser")
                   if line["level"] in ("SEVERE", "WARNING")]
        asked = []
        for line in self.driver.get_log("performance"):
            message = json.loads(line["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if urlsplit(url).scheme not in OWN and urlsplit(url).hostname not in LOCAL:
                    asked.append(f"request: {url}")
        return console + asked

    def wait(self, what: Callable[[], object], seconds: float = 20, every: float = 0.1) -> object:
        """Wait until `what()` is true and give its value. Raises selenium's TimeoutException after `seconds`."""
        return WebDriverWait(self.driver, seconds, poll_frequency=every).until(lambda _: what())

    def pieces(self, kind: str = "") -> list[WebElement]:
        """The live pieces of one kind on the page, in order; their insides are in `piece.shadow_root`."""
        named = f'[data-piece^="{kind}"]' if kind else ""                  # a selector for the prefix '' finds nothing
        return self.driver.find_elements(By.CSS_SELECTOR, f".course-piece[data-live]{named}")

    def too_wide(self) -> int:
        """By how many pixels the page is wider than its window: 0 where nothing has to be scrolled sideways."""
        return self.driver.execute_script(
            "return Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth)")

    def picture(self, path: Path) -> None:
        """Save what is seen as a PNG, for a person to look at."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))

    def close(self) -> None:
        self.driver.quit()

    def open_notebook(self, lab: str, path: str, seconds: float = 90) -> None:
        """Open a notebook of a running JupyterLab (see `jupyter_lab`) and wait until its kernel is ready.

        No other is open then: JupyterLab would restore those of earlier tests, and run the cells of one of them.
        """
        self.open(lab.replace("/lab?", f"/lab/tree/{quote(path)}?reset&"))
        self.wait(lambda: self.kernel() == "idle", seconds)

    def kernel(self) -> str:
        """What JupyterLab says of the open notebook's kernel: 'idle', 'busy', …; '' before there is one."""
        return self.driver.execute_script(
            "var app = window.jupyterapp, panels = app ? Array.from(app.shell.widgets('main')) : [];"
            "var panel = panels.find(function (one) { return one.sessionContext && one.isVisible; });"
            "var context = panel && panel.sessionContext;"
            "if (!context || !context.isReady || !context.session || !context.session.kernel) return '';"
            "app.shell.activateById(panel.id);"
            "return context.session.kernel.status;")

    def run_all(self, seconds: float = 300) -> None:
        """Run every cell of the open notebook and wait for the end."""
        self.driver.execute_script(
            "window.ran = ''; window.jupyterapp.commands.execute('notebook:run-all-cells').then("
            "function () { window.ran = 'all'; }, function (error) { window.ran = String(error); });")
        said = self.wait(lambda: self.driver.execute_script("return window.ran"), seconds)
        if said != "all":
            raise RuntimeError(f"running all cells failed: {said}")


def quiet() -> list[str]:
    """The options by which `make lab` turns JupyterLab's news and its questions about updates off."""
    return re.findall(r"--LabApp\.(?:news_url|check_for_updates_class)=\S+", (ROOT / "Makefile").read_text(encoding="utf-8"))


@contextlib.contextmanager
def jupyter_lab(root: Path, settings: Path) -> Iterator[str]:
    """Run a JupyterLab that serves `root` and give its address, token included. `settings` is a folder for its own files."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_CONFIG_DIR": str(settings / "config"),
                   "JUPYTERLAB_SETTINGS_DIR": str(settings / "lab"),
                   "JUPYTERLAB_WORKSPACES_DIR": str(settings / "workspaces")}
    settings.mkdir(parents=True, exist_ok=True)
    log = settings / "lab.log"
    with log.open("w", encoding="utf-8") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--port=0", "--allow-root",
             "--LabApp.expose_app_in_browser=True", *quiet()],
            cwd=root, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + 120
            while not (found := re.search(r"http://(?:localhost|127\.0\.0\.1):\d+/\S*token=\w+", log.read_text("utf-8"))):
                if server.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"JupyterLab didn't start: {log.read_text('utf-8')[-1000:]}")
                time.sleep(0.2)
            yield found[0]
        finally:
            server.terminate()
            server.wait(30)
