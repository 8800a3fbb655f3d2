"""The README's three doors, read, try and run: `python -m course_tools front-door` writes them with the course's address.

Does: write the lines between the two marks of the README, with links where the address is known from [project.urls] in
pyproject.toml, and without where it isn't. Does not: look the address up elsewhere, since what's committed must be the same
for everybody (see `address`).
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from course_tools.site.address import as_https
from course_utils.copies.hosted import launch_links
from course_utils.files import write_text
from course_utils.files.paths import ROOT

BEGIN, END = "<!-- doors: begin -->\n", "<!-- doors: end -->"


def main(arguments: list[str] | None = None) -> int:
    """Write the doors into the README; return the exit status."""
    argparse.ArgumentParser(prog="python -m course_tools front-door", description=main.__doc__).parse_args(arguments)
    path = ROOT / "README.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    write_text(path, before + BEGIN + doors(named_address()) + END + rest.partition(END)[2])
    print("README.md: read, try, run", "with links to the course's site" if named_address() else
          "without links: name the repository in pyproject.toml, as [project.urls] Repository")
    return 0


def named_address(root: Path = ROOT) -> str | None:
    """The repository's address as pyproject.toml names it, or None."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    return as_https(project.get("urls", {}).get("Repository", ""))


def site_of(address: str) -> str | None:
    """Where GitHub publishes the site of a repository; None for other hosts, which each do it in their own way."""
    host, _, path = address.removeprefix("https://").partition("/")
    owner, _, name = path.partition("/")
    if host != "github.com":
        return None
    return f"https://{owner.lower()}.github.io/" + ("" if name.lower() == f"{owner.lower()}.github.io" else f"{name}/")


def doors(address: str | None) -> str:
    """The three lines, as Markdown."""
    site = site_of(address) if address else None
    read = (f"[the site]({site}), with figures that move, on a phone too" if site else
            "every notebook opens here with its figures; begin with [START](notebooks/START.ipynb). The edition that reads "
            "best is the site: `make site` writes it")
    links = launch_links("START.ipynb", address)
    places = [f"[the live classifier]({site})"] if site else []     # START is the site's home
    places += [f"[{name}]({link})" for name, link in links.items()]
    tried = ", ".join(places) if places else "in a codespace, from the green *Code* button on GitHub"
    return (f"- **Read it**: {read}.\n"
            f"- **Try it without installing**: {tried}.\n"
            "- **Run it**: `make lab` opens [START](notebooks/START.ipynb) in JupyterLab ([Windows, and without "
            "make](#start)).\n")
