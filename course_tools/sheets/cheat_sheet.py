"""The cheat sheet: shapes and formulas on one page to print, which is written by hand."""

import argparse
import os

from course_utils.files import write_text
from course_utils.files.paths import ROOT, output_folder

PAGE = ROOT / "course_tools" / "sheets" / "cheat_sheet.html"


def main(arguments: list[str] | None = None) -> int:
    """Write the cheat sheet, one page of shapes and formulas to print, to outputs/sheets; return the exit status."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(arguments)     # takes no arguments: any is refused
    path = output_folder() / "sheets" / PAGE.name
    write_text(path, PAGE.read_text(encoding="utf-8"))
    print(f"the cheat sheet, a page to print: {os.path.relpath(path)}")
    return 0
