"""What the site contains of other people's work: names, versions and licences in one file, licences.txt.

Does: take them from the packages that are installed. Does not: list what only makes the site and leaves nothing in it.
"""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

from course_utils.files import write_text

PARTS = {                                                 # the packages whose files the site carries, and which ones
    "sphinx": "the search and its style sheets",
    "sphinx-book-theme": "the theme",
    "pydata-sphinx-theme": "what the theme is built on, with Bootstrap (MIT licence) and Font Awesome Free (icons: CC BY "
                           "4.0, fonts: SIL Open Font License 1.1, code: MIT licence)",
    "myst-nb": "the style sheet of the notebooks' cells",
}
HEAD = """\
The course itself, text, code and data: MIT licence (the file LICENSE of its repository).

This site also contains other people's work:
"""
BESIDE = """\
- STIX Two Math, the font of the formulas: SIL Open Font License 1.1 (_static/STIXTwoMath-LICENSE.txt)
- reveal.js, where there are slides: MIT licence (VERSIONS.txt beside the slides)
"""


def licence_text(package: str) -> str:
    """The licence that an installed package brings. Raises ValueError that names a package without one."""
    about = [file for file in distribution(package).files or [] if ".dist-info/" in str(file)]
    texts = [file.read_text(encoding="utf-8").strip() for file in about if "licen" in file.name.lower()]
    if not any(texts):
        raise ValueError(f"the package {package} brings no file with its licence; look it up, and let "
                         "licences.py say what it is")
    return "\n\n".join(texts)


def licences(parts: dict[str, str] = PARTS) -> str:
    """The whole page: what is in the site and whose it is, then every licence in full."""
    names = {package: f"{package} {distribution(package).version}" for package in parts}
    lines = "".join(f"- {names[package]}: {what}\n" for package, what in parts.items())
    rule = "\n" + "=" * 80 + "\n"
    return HEAD + lines + BESIDE + "".join(f"{rule}{names[package]}\n\n{licence_text(package)}\n" for package in parts)


def write_licences(folder: Path) -> None:
    """Write licences.txt into the site's folder."""
    write_text(folder / "licences.txt", licences())
