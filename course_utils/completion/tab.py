"""The model behind the Tab key: `activate()` adds it to IPython's completer, `deactivate()` takes it away again.

Does: suggest names, and the rest of the line, from the text of the cell up to the cursor and from earlier input. It uses
IPython's matchers (version 2 of their interface, IPython 8.6 or later), beside those that are there. Does not: run code or
look into objects, change what IPython itself suggests, or raise an error into the session.

In strings and comments it suggests nothing: there, Tab is for paths and for keys of dictionaries, and the model would
only guess words. Inside the braces of an f-string is code.
"""

import re
import sys
from pathlib import Path

from course_utils.completion.completer import DEFAULT_FOLDER, CodeCompleter
from course_utils.completion.names import CHARACTERS, last_word, of_a_word
from course_utils.options import check_options, whole

# whether a place in a cell is Python code: read character by character, since unfinished code is what it's for

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


# the matcher

IDENTIFIER = "course_utils.completion"                  # of the matcher; IPCompleter.disable_matchers takes it, too
LATER = -1.0                                            # its priority: after IPython's own matchers, which have 0
LEAST = 0.01                                            # a less probable name isn't suggested
LINE_TOKENS = 16                                        # the rest of a line is this long at most


def earlier_input(shell) -> list[str]:
    """The cells that were run so far, as they were typed; of equal ones only the last."""
    cells = [cell for cell in shell.history_manager.input_hist_raw if cell.strip()]
    return list(reversed(dict.fromkeys(reversed(cells))))


def suggestions(completer: CodeCompleter, before: str, cell: str, number: int) -> list[tuple[str, str]]:
    """(text, mark) of what may replace the word at the end of `cell`, which comes after the text `before`.

    Names come first, the most probable one at the top, then the line that begins with the best of them. A mark is such as
    'model 43 %'. Empty where the cell doesn't end in Python (see `in_python`).
    """
    if not in_python(cell):
        return []
    word, text = last_word(cell), before + cell
    names, line = completer.suggest(text, number, LINE_TOKENS)
    found = {name: f"model {chance:.0%}".replace("%", " %") for name, chance in names
             if chance >= LEAST and all(map(of_a_word, name))}
    if line:
        found.setdefault(line, "model, line")
    found.pop(word, None)
    return list(found.items())


def make_matcher(completer: CodeCompleter, shell, number: int):
    """A matcher for IPython's completer, version 2. It never raises."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher(identifier=IDENTIFIER, priority=LATER)
    def match(context):
        word, found = "", []
        try:
            lines = context.full_text.split("\n")
            cell = "\n".join([*lines[: context.cursor_line], lines[context.cursor_line][: context.cursor_position]])
            earlier = "".join(f"{cell}\n\n" for cell in earlier_input(shell))
            before = earlier[-CHARACTERS * completer.model.config.max_len * 2 :]
            found, word = suggestions(completer, before, cell, number), last_word(cell)
        except (Exception, KeyboardInterrupt):          # Tab without the model's suggestions is better than a traceback
            word, found = "", []
        completions = [SimpleCompletion(text, type=mark) for text, mark in found]
        return {"completions": completions, "matched_fragment": word, "ordered": True}

    return match


def activate(folder: str | Path = DEFAULT_FOLDER, *, shell=None, number: int = 5) -> None:
    """Let Tab show what the model in `folder` suggests, too, marked with its probability: 'model 43 %'.

    `number` is how many names are suggested at most; the rest of the line comes last. `shell` is the session of IPython, by
    default the one that runs. It prints one line, and nothing if the model was there already: calling it again replaces the
    model. Without a model, or outside IPython, the line says so, and nothing changes. Raises ValueError for a number outside
    1 to 100.
    """
    check_options({"number": number}, {"number": whole(1, 100)})
    shell = shell or _running_shell()
    if shell is None:
        print("activate() does nothing here: it adds the model to Tab in a notebook or in IPython, and this is neither.")
        return
    try:
        matcher = make_matcher(CodeCompleter.load(folder), shell, number)
    except ImportError:
        print("Tab stays as it is: the model needs IPython 8.6 or later; run pip install --upgrade ipython.")
    except Exception as error:                          # a folder that can't be read has many ways to say so
        print(f"Tab stays as it is, without the model: {' '.join(str(error).split())}.")
    else:
        was_there = _take_out(shell)
        shell.Completer.custom_matchers.append(matcher)
        if not was_there:
            print("Tab now shows the model's suggestions, too, marked 'model'; deactivate() takes them out again.")


def deactivate(*, shell=None) -> None:
    """Take the model out of Tab again, and print one line; what else was added to IPython's completer stays.

    Where the model isn't there, it does nothing and prints nothing.
    """
    shell = shell or _running_shell()
    if shell is not None and _take_out(shell):
        print("Tab no longer asks the model; activate() adds it again.")


def _take_out(shell) -> bool:
    """Take our matcher out of the shell's completer; whether it was there."""
    matchers = shell.Completer.custom_matchers
    others = [one for one in matchers if getattr(one, "matcher_identifier", None) != IDENTIFIER]
    was_there, matchers[:] = len(others) < len(matchers), others
    return was_there


def _running_shell():
    """The running IPython, or None; IPython isn't imported where it doesn't run."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None
