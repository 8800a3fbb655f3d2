"""Builds the translation corpus: `python data/translation/build.py` writes it, `--check` compares it with the files."""

import sys
from pathlib import Path

from course_utils.data.built_files import write_or_check
from course_utils.data.french.corpus import build, files

if __name__ == "__main__":
    sys.exit(write_or_check(lambda: files(build()), Path(__file__).resolve().parent, __doc__.splitlines()[0]))
