"""What a function did, as JSON: sent from the worker process, or from the kernel of a notebook that was handed in.

    text = report(exercise, answer, seed)               # there
    verdict = judge(exercise, answers, read_report(text), seed)         # here

Does: write runs (see `running.Run`) as JSON, tensors as their bytes with type and shape; read them back, and refuse what
is no such report. Does not: use pickle, or believe that what arrives is what was computed.
"""

import base64
import json
import math

import torch

from course_utils.exercises.compare import DEEPEST, MOST, TYPES, Unreadable
from course_utils.exercises.running import Failure, Handed, Recorded, Run, Side, described, runs_of

LONGEST = 200_000_000                                   # letters in a report
MOST_RUNS = 1000


def report(exercise, answer, seed: int) -> str:
    """What was handed over, and what it does on the inputs of a seed. A function that never ends isn't stopped here."""
    handed = described(answer)
    runs = list(runs_of(exercise, answer, seed)) if handed.kind in ("function", "instance") and exercise.probes else []
    return report_of(exercise, Recorded(handed, runs), seed)


def report_of(exercise, side: Side, seed: int) -> str:
    """The same for a side, such as one that stops what never ends (see `workers`)."""
    handed = side.describe()
    runs = side.runs(seed) if handed.kind in ("function", "instance") and exercise.probes else []
    return json.dumps({"handed": encode_handed(handed), "runs": [encode_run(run) for run in runs]}, allow_nan=False)


def read_report(text: str) -> Recorded:
    """What `report` wrote, to be judged. Raises ValueError for anything else."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ValueError(f"expected a report of at most {LONGEST:,} letters")
    try:
        found = json.loads(text)
        runs = _list(found["runs"])
        if len(runs) > MOST_RUNS:
            raise ValueError("too many runs")
        return Recorded(decode_handed(found["handed"]), [decode_run(run) for run in runs])
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError, AttributeError) as error:
        raise ValueError(f"no report of a check: {type(error).__name__}: {str(error)[:100]}") from None


def encode_handed(handed: Handed) -> dict:
    """A `Handed` for JSON."""
    return {"kind": handed.kind, "type": handed.type, "value": encode(handed.value)}


def decode_handed(found: dict) -> Handed:
    """The other way. Raises ValueError, TypeError or KeyError for what is none."""
    if found["kind"] not in ("nothing", "stub", "function", "instance", "value"):
        raise ValueError(f"kind {str(found['kind'])[:20]!r}")
    return Handed(found["kind"], _text(found["type"])[:100], decode(found["value"]))


def encode_run(run: Run) -> dict:
    """A run for JSON."""
    return {"output": encode(run.output), "error": run.error and list(run.error), "changed": list(run.changed),
            "printed": run.printed}


def decode_run(found: dict) -> Run:
    """The other way. Raises ValueError, TypeError or KeyError for what is no run."""
    error = found["error"]
    if error is not None:
        kind, message, line, file, number, ours = _list(error)
        error = Failure(_text(kind)[:100], _text(message), _text(line)[:500], _text(file), _whole(number), bool(ours))
    changed = tuple(_whole(i) for i in _list(found["changed"]))
    return Run(decode(found["output"]), error, changed, _text(found["printed"]))


def encode(value):
    """Plain data (see `compare.plain_data`) for JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Unreadable):
        return {"odd": value.what}
    if isinstance(value, torch.Tensor):
        raw = value.contiguous().as_strided((value.numel(),), (1,)).view(torch.uint8).numpy().tobytes()
        return {"tensor": str(value.dtype).removeprefix("torch."), "shape": list(value.shape),
                "bytes": base64.b64encode(raw).decode("ascii")}
    if isinstance(value, tuple):
        return {"tuple": [encode(part) for part in value]}
    if isinstance(value, list):
        return [encode(part) for part in value]
    if isinstance(value, dict):
        return {"dict": [[key, encode(part)] for key, part in value.items()]}
    raise TypeError(f"{type(value).__name__} is not plain data")


def decode(found, depth: int = 0):
    """The other way. Raises ValueError, TypeError or KeyError for what `encode` does not write."""
    if depth > DEEPEST + 1:
        raise ValueError("too deep")
    if found is None or isinstance(found, (bool, str)):
        return found
    if isinstance(found, (int, float)):
        if not math.isfinite(float(found)):
            raise ValueError("a number that is no JSON")
        return found
    if isinstance(found, list):
        return [decode(part, depth + 1) for part in found]
    if "tensor" in found:
        return _tensor(found)
    (kind, inside), = found.items()
    if kind == "float" and inside in ("nan", "inf", "-inf"):
        return float(inside)
    if kind == "odd":
        return Unreadable(_text(inside)[:200])
    if kind == "tuple":
        return tuple(decode(part, depth + 1) for part in _list(inside))
    if kind == "dict":
        return {_text(key): decode(part, depth + 1) for key, part in _list(inside)}
    raise ValueError(f"unknown kind {str(kind)[:20]!r}")


def _tensor(found: dict) -> torch.Tensor:
    """A tensor from its bytes; ValueError if type, shape and number of bytes don't agree."""
    kind, shape = TYPES[found["tensor"]], [_whole(size) for size in _list(found["shape"])]
    raw = base64.b64decode(_text(found["bytes"]), validate=True)
    if len(shape) > 64 or math.prod(shape) > MOST or len(raw) != math.prod(shape) * kind.itemsize:
        raise ValueError(f"{len(raw)} bytes are no {found['tensor']} of shape {shape[:8]}")
    if not raw:
        return torch.empty(shape, dtype=kind)
    flat = torch.frombuffer(bytearray(raw), dtype=torch.uint8)
    return (flat != 0 if kind is torch.bool else flat.view(kind)).reshape(shape)


def _list(value) -> list:
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def _text(value) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _whole(value) -> int:
    if type(value) is not int or not 0 <= value < 2**40:
        raise TypeError("no whole number")
    return value
