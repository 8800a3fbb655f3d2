"""Code completion with the language model of notebook 13: in Python, on the command line, and by Tab in a notebook.

    CodeCompleter.load().complete("import numpy as n")    # the ways in which the last word goes on, with probabilities
    python -m course_utils complete FILE:LINE:COLUMN      # the same for a place in a file
    activate()                                            # in a notebook: Tab shows what the model suggests, too

Does: rank the ways in which a name or a line goes on. Does not: run code, look into objects, or train (see notebook 13).
"""

__all__ = ["DEFAULT_FOLDER", "CodeCompleter", "Completion", "activate", "deactivate"]


def __getattr__(name: str):
    """What the package offers, imported when it's first asked for: so the command refuses a wrong place at once."""
    if name in ("DEFAULT_FOLDER", "CodeCompleter", "Completion"):
        from course_utils.completion import completer as part
    elif name in ("activate", "deactivate"):
        from course_utils.completion import tab as part
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(part, name)


def __dir__() -> list[str]:
    return __all__
