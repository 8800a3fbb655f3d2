"""A term in a classroom: the course's folder, a hub, and two students. They run by `make test-classroom` alone.

What takes minutes to install stays in outputs/classroom (see `classroom` in targets.mk); the rest is made anew each time.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from classroom_hub import Hub
from classroom_page import blocks, settings

from course_utils.files.paths import ROOT

PROGRAMS = ROOT / "outputs" / "classroom"
TEACHER = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "Teacher"), ("EMAIL", "teacher@example.org"))}


class Classroom:
    """The places that the page names, and its blocks. `course` is the instructor's copy of the project, to be changed."""

    def __init__(self, folder: Path):
        self.course, self.shared, self.homes = folder / "course", PROGRAMS / "shared", folder / "homes"
        self.blocks, self.report = blocks(), PROGRAMS / "measured.txt"
        for path in (self.shared, self.homes):
            path.mkdir(parents=True, exist_ok=True)
        self.hub = Hub(folder / "hub", self.homes, PROGRAMS)
        self.settings = settings({"SHARED": self.shared, "HOMES": self.homes, "HUB": self.hub.address,
                                  "CONFIG": self.hub.config})

    def run(self, name: str) -> str:
        """Run a block of the page in the instructor's folder; return what it prints. Raises RuntimeError if it fails."""
        return self.command(["bash", "-euo", "pipefail", "-c", self.settings + self.blocks[name]], self.course)

    def command(self, words: list[str], folder: Path) -> str:
        """Run a program as the instructor does, and return what it prints. Raises RuntimeError if it fails.

        With TRUST=1 `make grade` needs no bubblewrap.
        """
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COURSE_", "PYTEST"))}
        path = os.pathsep.join([str(PROGRAMS / "hub" / "bin"), os.environ["PATH"]])
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True,
                              env={**inherited, **TEACHER, "PATH": path, "TRUST": "1"})
        if done.returncode:
            raise RuntimeError(f"{words[-1]}\nfailed: {done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done.stdout


def _copy_of_the_project(folder: Path) -> None:
    """The files that Git tracks or would track, and an environment that set-up takes for its own and never changes."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    (folder / ".venv").mkdir()
    for path in (ROOT / ".venv").iterdir():
        if path.name != ".ready":
            (folder / ".venv" / path.name).symlink_to(path.resolve())
    checked = subprocess.run("cat requirements.txt pyproject.toml | cksum", shell=True, cwd=folder, capture_output=True,
                             check=True).stdout
    (folder / ".venv" / ".ready").write_bytes(checked)


@pytest.fixture(scope="session")
def classroom(tmp_path_factory):
    """Everything that the page does before the term, and a running hub."""
    folder = tmp_path_factory.mktemp("classroom")
    room = Classroom(folder)
    _copy_of_the_project(room.course)
    course, kept = room.shared / "course", PROGRAMS / "kept-environment"
    if (course / ".venv").is_dir():
        shutil.rmtree(kept, ignore_errors=True)
        (course / ".venv").rename(kept)
    for path in room.shared.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    room.run("publish")
    room.run("clone")
    if kept.is_dir():
        kept.rename(course / ".venv")
    room.run("install")
    room.run("configure")
    with room.hub.running():
        yield room
