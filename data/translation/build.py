"""Builds the translation corpus: `python data/translation/build.py` writes it, `--check` compares it with the files."""

import argparse
import sys
from pathlib import Path

from course_utils.data.french.corpus import build, files
from course_utils.files import write_text

HERE = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="rebuild the corpus in memory and compare it with the files")
    arguments = parser.parse_args()
    status = 0
    for name, content in files(build()).items():
        path = HERE / name
        if not arguments.check:
            write_text(path, content)
            print(f"wrote {name}")
        elif not path.exists() or path.read_bytes() != content.encode("utf-8"):
            print(f"{name} differs from what the builder writes; run python data/translation/build.py")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
