"""Code completion with the language model of notebook 13: in Python, on the command line, and by Tab in a notebook.

    CodeCompleter.load().complete("import numpy as n")    # the ways in which the last word goes on, with probabilities
    python -m course_utils complete FILE:LINE:COLUMN      # the same for a place in a file
    activate()                                            # in a notebook: Tab shows what the model suggests, too

Does: rank the ways in which a name or a line goes on. Does not: run code, look into objects, or train (see notebook 13).
"""

from course_utils.completion.completer import DEFAULT_FOLDER, CodeCompleter, Completion
from course_utils.completion.tab import activate, deactivate

__all__ = ["DEFAULT_FOLDER", "CodeCompleter", "Completion", "activate", "deactivate"]
