"""The language model of notebook 13 on code that isn't the standard library's: a result set.

Writes data/results/code_elsewhere.json: bits per byte, and names completed, on this repository's own package at one commit
(`code_data.REPOSITORY`; a fingerprint of the text and the commit are in each row). code_baselines.json has xz, the n-grams
and the words of the file on the same text and the same names. It reads the committed models in data/checkpoints; what's
committed about the repository later changes nothing here.

    python -m course_tools results code_elsewhere --seeds 0 1 2 --jobs 1
"""

import functools

from course_tools.studies.code_data import PACKAGE, REPOSITORY
from course_tools.studies.needs import LIBRARY
from course_tools.studies.runner import ResultSet, parameters_of
from course_tools.studies.sets import code_baselines, code_completion, language_model
from course_utils.completion import CodeCompleter
from course_utils.results import fingerprint


@functools.cache
def settings() -> str:
    """What every run depends on: the text, the names, how the models were trained."""
    return fingerprint(code_baselines.settings(), REPOSITORY, language_model.settings(), code_completion.LISTED)


def run(model: str, seed: int, state) -> dict:
    """Score one committed model; the names are the same for every seed, and for the words of the file."""
    folder = code_completion.folder_of(seed)
    completer = CodeCompleter.load(folder)
    return {"commit": REPOSITORY, "weights": code_completion.weights_of(folder),
            "parameters": parameters_of(completer.model),
            "repository": {**code_baselines.of_split("repository"),
                           **code_completion.bits(completer, "repository", language_model.LENGTH),
                           "names": code_completion.names(completer, "repository")}}


def line(runs: list[dict]) -> str:
    """Bits per byte, seed by seed, and how often the right name comes first on the first of them."""
    bits = "  ".join(f"{one['repository']['overall']:.3f}" for one in runs)
    return f"{bits} bits per byte  {code_completion.names_line(runs[0]['repository']['names'])}"


SET = ResultSet(
    "code_elsewhere", code_completion.SET.rows, settings, run, (LIBRARY, PACKAGE, code_completion.MODEL),
    code_completion.SET.seeds, line=line,
)
