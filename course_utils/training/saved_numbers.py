"""Numbers that belong to one saved model, such as the temperature of its confidence: a small file beside it.

Does: write them in the model's folder with the checksum of its weights, and read them only for these weights. Does not:
choose them, or save the model.

    write_numbers("outputs/mine", "caution.json", {"temperature": 2.0})
    read_numbers("outputs/mine", "caution.json", ["temperature"])          # {"temperature": 2.0}
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path

from course_utils.files import write_json
from course_utils.training.model_kinds import kind_in
from course_utils.training.saved_models import saved_weights


def write_numbers(folder: str | Path, name: str, values: dict[str, float]) -> Path:
    """Write `values` into the file `name` of a saved model's folder, whole or not at all; returns its path.

    Raises FileNotFoundError if there's no model, ValueError for a value that isn't a finite number.
    """
    for key, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{key} is {value!r}, and nothing is saved; expected a finite number")
    folder, weights = saved_weights(folder)
    write_json(folder / name, {"weights": weights, **values})
    return folder / name


def read_numbers(folder: str | Path, name: str, wanted: Iterable[str]) -> dict[str, float]:
    """The numbers called `wanted` that `write_numbers` wrote for the model that's in the folder now.

    Raises FileNotFoundError if the file or the model isn't there, ValueError if the file is damaged, lacks a number, or was
    written for other weights.
    """
    folder, weights = saved_weights(folder)
    path = folder / name
    if not path.is_file():
        kind = kind_in(folder)
        advice = f"; {kind.advice(folder)}" if kind else ""
        raise FileNotFoundError(f"the model in {str(folder)[:200]} has no {name}; fit its numbers, and save them{advice}")
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} isn't JSON ({error}); fit its numbers again, and save them") from None
    found = {key: told.get(key) if isinstance(told, dict) else None for key in ("weights", *wanted)}
    if found.pop("weights") != weights:
        raise ValueError(f"{path} was written for other weights than those in its folder; fit its numbers to these, and "
                         "save them")
    for key, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{key} in {path} is {value!r}; expected a finite number. Fit it again, and save it")
    return found
