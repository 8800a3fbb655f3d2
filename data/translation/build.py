"""Builds the translation corpus: `python data/translation/build.py` writes it, `--check` compares it with the files."""

import sys
from pathlib import Path

from french.corpus import build, files

from course_utils.files.built_files import write_or_check

if __name__ == "__main__":
    sys.exit(write_or_check(lambda: files(build()), Path(__file__).resolve().parent, __doc__.splitlines()[0]))
