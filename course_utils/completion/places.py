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
    %timeit and %prun. A line that goes on with an open bracket, or after a backslash, is none of these: its % is an
    operator.
    """
    if cell.lstrip().startswith("%%"):
        name, _, cell = cell.lstrip()[2:].partition("\n")
        if name.split()[:1] == [] or name.split()[0] not in PYTHON_MAGICS:
            return False
    return _ends_in_code(cell)


def _ends_in_code(text: str) -> bool:
    strings: list[tuple[str, bool]] = []                 # open ones: their quotes, and whether of the kind f or t
    depths: list[int] = []                              # brackets open in each expression inside them
    i = brackets = 0                                    # brackets: how many are open outside strings
    new = True                                          # a statement can begin here, and so can a command
    while i < len(text):
        letter = text[i]
        if new and OTHER_LANGUAGE.match(text[i:].partition("\n")[0]):
            i = text.find("\n", i) + 1
            if i == 0:
                return False
            continue
        new = letter == "\n" and not strings and not brackets
        if len(strings) == len(depths):                 # code: that of the cell, or of an expression in braces
            if letter == "\\" and text.startswith("\n", i + 1):
                i += 2                                  # the line goes on
                continue
            if letter == "#":
                end = text.find("\n", i)
                if end < 0:
                    return False
                i, new = end, not strings and not brackets
            elif opened := OPENS.match(text, i):
                kind = (opened[1] or "").lower()
                strings.append((opened[2], "f" in kind or "t" in kind))
                i = opened.end()
                continue
            elif letter in "([{":
                if depths:
                    depths[-1] += 1
                else:
                    brackets += 1
            elif letter in ")]}":
                if not depths:
                    brackets = max(0, brackets - 1)
                else:
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
                strings, depths, i, new = [], [], i + 1, not brackets
            elif formatted and text.startswith("{{", i):
                i += 2
            else:
                if formatted and letter == "{":
                    depths.append(0)
                i += 1
    return len(strings) == len(depths)
