"""The address of the course's repository, found in one place, and the links that are made from it.

The address is what `[project.urls]` in pyproject.toml calls Repository, if it calls anything so; else the repository whose
workflow or codespace this runs in; else git's remote `origin`. So a fork publishes links to itself. Does: find it, and
write links to files. Does not: ask a network whether anything is there.
"""

import os
import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from course_utils.copies.hosted import BRANCH
from course_utils.files.paths import ROOT

HOST = r"(?P<host>[\w-]+(?:\.[\w-]+)*\.[a-z]{2,})"
PATH = r"(?P<path>[\w.~-]+(?:/[\w.~-]+)*?/[\w.~-]+?)(?:\.git)?/*"
FORMS = (
    re.compile(rf"(?:https?|ssh|git)://(?:[^/@]*@)?{HOST}(?::\d+)?/+{PATH}", re.I),
    re.compile(rf"(?:[^/@:\s]+@)?{HOST}:{PATH}", re.I),   # git@github.com:owner/course.git
)


def as_https(remote: str) -> str | None:
    """What git calls a repository, by https or ssh, as an address for a browser, without a user, a password or '.git'.

    None for a folder, and for a machine that has no public name.
    """
    found = next((match for form in FORMS if (match := form.fullmatch(remote.strip()))), None)
    return f"https://{found['host'].lower()}/{found['path']}" if found else None


def repository_address(root: Path = ROOT, environment: Mapping[str, str] | None = None) -> str | None:
    """The address of the repository, such as https://github.com/owner/course; None where nobody has said it."""
    environment = os.environ if environment is None else environment
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    if named := project.get("urls", {}).get("Repository"):
        return as_https(named)
    if environment.get("GITHUB_REPOSITORY"):
        server = environment.get("GITHUB_SERVER_URL", "https://github.com")
        return as_https(f"{server}/{environment['GITHUB_REPOSITORY']}")
    top, origin = (_git(root, *words) for words in (("rev-parse", "--show-toplevel"), ("remote", "get-url", "origin")))
    inside = bool(top) and Path(top).resolve() == root.resolve()        # not those of a repository around the course
    return as_https(origin) if inside else None


def _git(root: Path, *words: str) -> str:
    """What git says about the folder; '' where it says nothing, or where there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def current_commit(root: Path = ROOT) -> str:
    """The commit that is checked out, as 40 digits; '' where the course isn't a repository."""
    return _git(root, "rev-parse", "HEAD")


def file_link(path: str, address: str | None = None) -> str | None:
    """Where the repository's pages show a file or a folder of it; its front page where we don't know how that is written.

    Args:
        path: from the repository's root, such as 'course_utils/attention.py'.
        address: of the repository; looked up if it isn't given. The result is None where there is none.
    """
    address = address or repository_address()
    if address is None or not path:
        return address
    host = address.split("/")[2]
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    if "gitlab" in host:
        return f"{address}/-/{kind}/{BRANCH}/{quote(path)}"
    return f"{address}/{kind}/{BRANCH}/{quote(path)}" if "github" in host else address
