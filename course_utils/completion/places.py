"""Whether a place in a cell is Python code, where a name can be completed: not a comment, not a string, not a shell command.

Does: read the text before the cursor, character by character; the braces of an f-string hold code. Does not: parse it;
unfinished code is what it's for.
"""

import re

PYTHON_MAGICS = ("time", "timeit", "capture", "prun")   # cell magics whose cell is Python
OTHER_LANGUAGE = re.compile(r"\s*[!?]|\s*%(?!time\b|timeit\b|prun\b)")
OPENS = re.compile(r"(?:(?<!\w)([rbuftRBUFT]{1,2}))?('''|\"\"\"|'|\")")


def in_python(cell: str) -> bool:
    """Whether the end of `cell`, the text of a cell up to the cursor, is in Python, and not in a comment or a string.

    False in a cell of another language (%%bash), and on a line for the shell, of help or of a magic other than %time,
    %timeit and %prun.
    """
    if cell.lstrip().startswith("%%"):
        name, _, cell = cell.lstrip()[2:].partition("\n")
        if name.split()[:1] == [] or name.split()[0] not in PYTHON_MAGICS:
            return False
    return not OTHER_LANGUAGE.match(cell[cell.rfind("\n") + 1 :]) and _ends_in_code(cell)


def _ends_in_code(text: str) -> bool:
    strings: list[tuple[str, bool]] = []                 # open ones: their quotes, and whether of the kind f or t
    depths: list[int] = []                              # brackets open in each expression inside them
    i = 0
    while i < len(text):
        letter = text[i]
        if len(strings) == len(depths):                 # code: that of the cell, or of an expression in braces
            if letter == "#":
                end = text.find("\n", i)
                if end < 0:
                    return False
                i = end
            elif opened := OPENS.match(text, i):
                kind = (opened[1] or "").lower()
                strings.append((opened[2], "f" in kind or "t" in kind))
                i = opened.end()
                continue
            elif depths and letter in "([{":
                depths[-1] += 1
            elif depths and letter in ")]}":
                depths[-1] -= 1
                if depths[-1] < 0:
                    depths.pop()
            i += 1
        else:
            quotes, formatted = strings[-1]
            if letter == "\\":
                i += 2
            elif text.startswith(quotes, i):
                strings.pop()
                i += len(quotes)
            elif letter == "\n" and len(quotes) == 1:   # the string was never closed
                strings, depths, i = [], [], i + 1
            elif formatted and text.startswith("{{", i):
                i += 2
            else:
                if formatted and letter == "{":
                    depths.append(0)
                i += 1
    return len(strings) == len(depths)
