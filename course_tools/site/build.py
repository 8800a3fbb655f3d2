"""`python -m course_tools site`: the whole course as a site in outputs/site.

Does: prepare the pages, let Sphinx render them, copy the slides beside them where there are any. Does not: install what
Sphinx needs (`make site` does).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

from course_tools.site.address import repository_address
from course_tools.site.facts import SLIDES
from course_tools.site.licences import write_licences
from course_tools.site.prepare import prepare
from course_utils.files import write_text
from course_utils.files.paths import ROOT, output_folder

NEEDS = ("the site is made by Sphinx, which isn't installed here ({name} is missing); make site installs it, or:\n"
         "python -m pip install -r course_tools/site/requirements.txt")


def build(target: Path, sources: Path, jobs: int = 2) -> int:
    """Write the site to `target` and what it's made from to `sources`; both are emptied first. Returns the exit status.

    Warnings are errors, all of them printed. Raises ModuleNotFoundError where Sphinx or what it needs isn't installed.
    """
    from sphinx.application import Sphinx

    from course_tools.site.extension import settings

    slides = sources.parent / SLIDES
    address = repository_address() or ""
    prepare(sources, address, slides if slides.is_dir() else None)
    number = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    made = sources / ".made" / "site"                      # MyST-NB writes beside this folder, too
    app = Sphinx(sources, None, made, sources / ".doctrees", "html", settings(sources, number, address), status=None,
                 warning=sys.stderr, warningiserror=True, parallel=jobs)
    app.build(force_all=True)
    _leave_out_and_state(made)
    write_licences(made)
    if slides.is_dir():
        shutil.copytree(slides, made / SLIDES)
    shutil.rmtree(target, ignore_errors=True)
    made.rename(target)
    return int(app.statuscode)


def _leave_out_and_state(made: Path) -> None:
    """Leave out what no page loads, and write down whose work the pages bring along."""
    shutil.rmtree(made / "_sources", ignore_errors=True)
    for path in [*(made / "_static").rglob("*.map"), *(made / "_static").rglob("fontawesome.js*")]:
        path.unlink(missing_ok=True)
    packages = {"sphinx": "BSD-2-Clause", "pydata-sphinx-theme": "BSD-3-Clause", "sphinx-book-theme": "BSD-3-Clause",
                "myst-nb": "BSD-3-Clause", "ziamath": "MIT"}
    lines = [f"{name} {version(name)}: {licence}" for name, licence in packages.items()]
    lines += ["Bootstrap, within pydata-sphinx-theme: MIT",
              "Font Awesome Free, within it: fonts SIL Open Font License 1.1, icons CC BY 4.0",
              "STIX Two Math, within ziamath: SIL Open Font License 1.1 (STIXTwoMath-LICENSE.txt)"]
    write_text(made / "_static" / "VERSIONS.txt", "\n".join(lines) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Write the course as a site to outputs/site; return the exit status."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(arguments)     # takes no arguments: any is refused
    folder = output_folder()
    try:
        failed = build(folder / "site", folder / "site-source")
    except ModuleNotFoundError as error:
        if str(error.name).startswith("course_utils"):
            raise
        print(NEEDS.format(name=error.name), file=sys.stderr)
        return 1
    print(f"the course as a site: {os.path.relpath(folder / 'site' / 'index.html')}")
    return failed
