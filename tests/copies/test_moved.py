"""What copies of the notebooks of release 2.2 import still works."""

import subprocess
import sys
from pathlib import Path

from course_utils.moved import MODULES

IMPORTS = (Path(__file__).with_name("imports_of_2_2.txt")).read_text(encoding="utf-8").splitlines()


def run(lines: list[str], *options: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *options, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=300)


def test_every_import_of_the_notebooks_of_2_2_works_and_one_warning_is_shown():
    done = run(IMPORTS)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("FutureWarning") == 1 and "is now course_utils." in done.stderr
    old = {line.split()[1] for line in IMPORTS} | {".".join(line.split()[1::2]) for line in IMPORTS}
    assert {name for name in MODULES if MODULES[name]} <= old    # the table holds nothing that nobody imported


def test_the_names_that_are_there_now_warn_of_nothing():
    assert run(["from course_utils.recipes.trained_models import trained_model", "import course_utils.results"],
               "-W", "error").returncode == 0


def test_a_name_that_never_was_there_is_missing_as_usual():
    done = run(["from course_tools.studies.sets.which_data import NOTHING"])
    assert "cannot import name 'NOTHING'" in done.stderr
    assert "No module named 'course_utils.experiments.nothing'" in run(["import course_utils.experiments.nothing"]).stderr
