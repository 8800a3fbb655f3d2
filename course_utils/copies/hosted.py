"""A kernel that somebody else hosts, such as Colab's, made ready for the course by the first cell of a copy for Colab.

Does: install what the machine lacks of requirements.txt, and set the folder where progress and figures are kept. Does not:
fetch the course (the cell has done that; see `hosted_copies`), or replace a package that is there already.
"""

import importlib
import os
import re
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import quote

import course_utils
from course_utils.files.paths import NOTEBOOKS, ROOT

# what requirements.txt has for JupyterLab, the tests and the maintainers' commands; no notebook imports it
NOT_FOR_NOTEBOOKS = {"jupyterlab", "nbval", "pytest", "pytest-xdist", "hypothesis", "mistune", "ruff"}
BRANCH = "main"                                           # what is published
HOSTED = "hosted"                                         # the branch of the copies for Colab (see `hosted`)
HOSTED_AT = "COURSE_HOSTED"                               # set while notebooks run there: the repository's address


def wanted() -> list[str]:
    """The lines of requirements.txt that a notebook may need, such as 'captum~=0.9.0'."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    packages = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return [line for line in packages if _name(line) not in NOT_FOR_NOTEBOOKS]


def _name(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0]


def lacking() -> list[str]:
    """Those of `wanted` that aren't installed in any version."""
    missing = []
    for line in wanted():
        try:
            version(_name(line))
        except PackageNotFoundError:
            missing.append(line)
    return missing


def prepare(address: str = "") -> None:
    """Install what is missing, go to the folder of the copies, and say so in one line.

    `address` is the repository's, for the links that START draws. Raises RuntimeError with pip's last words if pip fails.
    """
    begun, missing = time.monotonic(), lacking()
    if missing:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *missing]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise RuntimeError(f"{', '.join(map(_name, missing))} couldn't be installed: {last}\nRun this cell again; if "
                               "that doesn't help, restart the session and try once more.")
        importlib.invalidate_caches()
    if address:
        os.environ[HOSTED_AT] = address
    folder = ROOT / "notebooks" / "my_copies"             # the originals save no progress
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    got = f"installed {', '.join(map(_name, missing))}" if missing else "nothing to install"
    seconds = time.monotonic() - begun
    print(f"The course is here: version {course_utils.__version__}; {got} ({seconds:.0f} s).{_other_torch()}")


def _other_torch() -> str:
    """A sentence where PyTorch isn't the one that the outputs were made with."""
    line = next(line for line in wanted() if line.startswith("torch=="))
    here, made_with = version("torch").partition("+")[0], line.removeprefix("torch==")
    return "" if here == made_with else f" With PyTorch {here} in place of {made_with}, last digits may differ."


def place_in_notebooks(notebook: str | Path) -> str:
    """'04_attention.ipynb' or 'extras/vocabulary_size.ipynb', however a notebook of the course is named."""
    path = Path(notebook)
    return (path.relative_to(NOTEBOOKS) if path.is_absolute() else path).as_posix().removeprefix("notebooks/")


def launch_links(notebook: str | Path, address: str | None) -> dict[str, str]:
    """Where a notebook can be opened without installing anything: {'Binder': …, 'Colab': …, 'Codespaces': …}.

    Binder opens any public repository; Colab and Codespaces only those on GitHub, and Colab has the copies of the branch
    `hosted`. Empty where the repository's address isn't known.
    """
    if not address:
        return {}
    place = place_in_notebooks(notebook)
    host, _, path = address.removeprefix("https://").partition("/")
    provider = {"github.com": f"gh/{path}", "gitlab.com": f"gl/{quote(path, safe='')}"}.get(
        host, f"git/{quote(address, safe='')}")
    opens = quote(f"lab/tree/notebooks/my_copies/{place}")
    links = {"Binder": f"https://mybinder.org/v2/{provider}/{BRANCH}?urlpath={opens}"}
    if host == "github.com":
        links["Colab"] = f"https://colab.research.google.com/github/{path}/blob/{HOSTED}/{quote(place)}"
        links["Codespaces"] = f"https://codespaces.new/{path}?quickstart=1"
    return links


def hosted_link(notebook: str) -> str:
    """The attributes of a link to another notebook where this one runs in Colab, else ''. It opens in a new tab."""
    address = os.environ.get(HOSTED_AT, "")
    link = launch_links(notebook, address).get("Colab") if address else None
    return f'href="{link}" target="_blank"' if link else ""
