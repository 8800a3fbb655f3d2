"""`python -m course_utils complete FILE:LINE[:COLUMN]`: how the word at a place in a file may go on, ranked.

Does: find the place, print completions with their probabilities, and the line that begins with the best of them; where a
name is asked for, only those that look like one. Does not: change the file, or run anything in it.
"""

import argparse
import io
import os
import re
import tokenize
from typing import NamedTuple

from course_utils.files import other_than_a_file

LEAST = 0.01                                            # a less probable completion is printed if the best is hardly more so
LARGEST = 100                                           # megabytes of a file
LONGEST = 120                                           # characters that are printed of a completion or a line
PLACE = re.compile(r"(.+?):([0-9]+)(?::([0-9]+))?", re.S)


class Place(NamedTuple):
    """A file, a line and a column, which count from 1; without a column the end of the line."""

    file: str
    line: int
    column: int | None


def place_of(text: str) -> Place:
    """Read FILE:LINE[:COLUMN] from the right: 'C:\\\\x.py:3' is line 3 of C:\\\\x.py. Raises ValueError otherwise."""
    found = PLACE.fullmatch(text)
    if not found or max(map(len, filter(None, found.groups()[1:]))) > 15:
        raise ValueError(f"{text[:200]!r} is no place in a file; write FILE:LINE or FILE:LINE:COLUMN, such as model.py:12:8")
    file, line, column = found[1], int(found[2]), None if found[3] is None else int(found[3])
    for name, number in (("line", line), ("column", column)):
        if number == 0:
            raise ValueError(f"{name} 0 in {text[:200]!r}: lines and columns count from 1")
    return Place(file, line, column)


def read_code(file: str) -> str:
    """The text of a file, in the encoding that it names in its first lines or in UTF-8, with plain newlines.

    Raises ValueError or OSError that says what is wrong with the file.
    """
    if what := other_than_a_file(file):
        raise ValueError(f"{file} is {what}; give a file of code")
    if (size := os.path.getsize(file)) > LARGEST * 1e6:
        raise ValueError(f"{file} has {size / 1e6:,.0f} MB; give a file of code, of {LARGEST} MB at most")
    with open(file, "rb") as opened:
        content = opened.read()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise ValueError(f"{file} isn't text in UTF-8, or in the encoding that it names ({error}); save it as UTF-8, or "
                         "name its encoding in the first line, such as '# coding: latin-1'") from None
    if "\0" in text:
        raise ValueError(f"{file} isn't text: it holds zero bytes; give a file of code")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def before(place: Place) -> str:
    """The text of a file up to a place. Raises ValueError or OSError that says what is wrong with either."""
    lines = read_code(place.file).split("\n")
    if place.line > len(lines):
        raise ValueError(f"{place.file} has {len(lines)} line{'s' * (len(lines) > 1)}, so there is no line {place.line}")
    line = lines[place.line - 1]
    column = len(line) + 1 if place.column is None else place.column
    if column > len(line) + 1:
        raise ValueError(f"line {place.line} of {place.file} has {len(line)} characters, so its last column is "
                         f"{len(line) + 1}, after the last of them; there is no column {column}")
    return "\n".join([*lines[: place.line - 1], line[: column - 1]])


def shown(text: str) -> str:
    """A completion as it is printed: a word as it is, anything else in quotes, so that a bracket or a blank can be seen.

    Of a very long one, the end, where it differs from the others."""
    text = text if re.fullmatch(r"\w+", text) else repr(text)
    return text if len(text) <= LONGEST else f"…{text[1 - LONGEST :]}"


def shown_line(text: str) -> str:
    """The line as it is, or in quotes where blanks or invisible characters would hide some of it; the end of a long one."""
    text = text if text.isprintable() and text == text.strip() else repr(text)
    return text if len(text) <= LONGEST else f"…{text[1 - LONGEST :]}"


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, complete, print; return the exit status, 2 (by the parser) for what can't be done."""
    parser = argparse.ArgumentParser(
        description="Print the ways in which the word at a place in a file may go on, the most probable first, and last "
                    "a line that begins with the best of them. The model of notebook 13 sees the file up to that place. "
                    "Nothing in it is run.")
    parser.add_argument("place", metavar="FILE:LINE[:COLUMN]",
                        help="lines and columns count from 1; the cursor stands before the character in that column, or at "
                             "the end of the line if there is no column")
    parser.add_argument("--number", type=int, default=5, metavar="N", help="how many completions (default: 5)")
    parser.add_argument("--model", metavar="NAME",
                        help="the name of a model that CodeCompleter.save wrote (default: the course's, code)")
    chosen = parser.parse_args(arguments)
    if not 1 <= chosen.number <= 100:
        parser.error(f"--number is {chosen.number}; use a whole number from 1 to 100")
    try:
        text = before(place_of(chosen.place))           # first of all: what comes next takes seconds
        from course_utils.completion.completer import DEFAULT_FOLDER, CodeCompleter
        completer = CodeCompleter.load(chosen.model or DEFAULT_FOLDER)
    except (OSError, ValueError) as error:
        parser.error(_reason(error))
    found, line = completer.suggest(text, chosen.number)
    found = [one for one in found if one.probability >= min(LEAST, found[0].probability / 10)]
    if not found and not line:
        print("no suggestion: nothing that the model makes of this looks like a name")
    for item, probability in found:
        print(f"{probability:7.1%}  {shown(item)}")
    if line and line not in (one.text for one in found):
        print(f"   line  {shown_line(line)}")
    return 0


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror}; give a file that is there and that you may read"
    return " ".join(str(error).split())
