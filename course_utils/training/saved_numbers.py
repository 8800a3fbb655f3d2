"""Numbers that belong to one saved model, such as the temperature of its confidence: a note in its file.

    write_numbers("outputs/mine", "caution", {"temperature": 2.0})
    read_numbers("outputs/mine", "caution", ["temperature"])               # {"temperature": 2.0}

Does: write them for these weights, and read them; `stored_temperature`, for a classifier that is loaded. Does not: choose
them, or save the model.
"""

import math
from collections.abc import Iterable
from pathlib import Path

from course_utils.training.model_kinds import kind_in
from course_utils.training.saved_models import find_model, read_note, write_note


def write_numbers(name: str | Path, title: str, values: dict[str, float]) -> Path:
    """Write `values` into the file of a saved model, under a title; return the file.

    Raises ValueError for a value that isn't a finite number, and what `write_note` raises.
    """
    numbers = {key: _finite(key, value, "nothing is saved") for key, value in values.items()}
    return write_note(name, title.removesuffix(".json"), numbers)          # so earlier copies of notebook 15 call it


def read_numbers(name: str | Path, title: str, wanted: Iterable[str]) -> dict[str, float]:
    """The numbers called `wanted` that `write_numbers` wrote for a model.

    Raises FileNotFoundError if the model has none under that title, ValueError if one of them is missing or no number.
    """
    found, path = read_note(name, title.removesuffix(".json")), find_model(name)
    if not isinstance(found, dict):
        kind = kind_in(path)
        raise FileNotFoundError(f"the model in {str(path)[:200]} has no numbers called {title!r}; fit them, and save them"
                                f"{f'; {kind.advice(path)}' if kind else ''}")
    return {key: _finite(key, found.get(key), f"so {path} says: fit it again, and save it") for key in wanted}


CAUTION = "caution"  # the title of a classifier's "temperature", and of the "threshold" below which it's silent


def stored_temperature(name: str | Path) -> float:
    """The temperature in a saved classifier's file, which divides its logits; 1 if there's none.

    Raises ValueError, with the file's name, for one that isn't a finite number above 0.
    """
    found = read_note(name, CAUTION)
    if not isinstance(found, dict):
        return 1.0
    path = find_model(name)
    temperature = _finite("temperature", found.get("temperature"), f"so {path} says: fit it again, and save it")
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature!r}, and so {path} says: fit it again, and save it; expected a number "
                         "above 0")
    return temperature


def _finite(key: str, value, then: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{key} is {value!r}, and {then}; expected a finite number")
    return value
