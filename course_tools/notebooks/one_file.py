"""The whole classifier in one readable file, to change and to run.

    python -m course_tools one-file              writes outputs/model.py

Does: copy notebooks/extras/model.py, which is written by hand; the tests load trained weights into it and compare its
answers with the course's. Does not: overwrite a copy that has been changed.
"""

import argparse
import os
import re
import sys

from course_utils.files import write_text
from course_utils.files.paths import EXTRAS, NOTEBOOKS, output_folder

MODEL = NOTEBOOKS / EXTRAS / "model.py"


def assemble() -> str:
    """The model alone, without what loads it. For older copies of the extra, which print it; goes with the next release."""
    model, _, _ = MODEL.read_text(encoding="utf-8").partition("\n\n\n# A trained model")
    return re.sub(r"\n\n+(?= )", "\n", model).replace("\n\n\n", "\n\n") + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Copy the whole classifier, one readable file, to outputs/model.py; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course_tools one-file", description="write the classifier as one file")
    parser.parse_args(arguments)
    text, path = MODEL.read_text(encoding="utf-8"), output_folder() / "model.py"
    shown = os.path.relpath(path)
    if path.exists() and path.read_text(encoding="utf-8") != text:
        sys.exit(f"{shown} is there, and differs from the course's file; move it away, or give it another name")
    write_text(path, text)
    print(f"{shown}: the whole classifier; python {shown} data/checkpoints/reviews \"It was not dull but moving.\" runs it")
    return 0
