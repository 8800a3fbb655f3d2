"""Turns a learner's answer into a form that can be compared: tensors by name, numbers in any notation.

Does: turn anything into plain data, read it, compare it. Does not: judge (see `judge`) or send it anywhere (see `wire`).
"""

import itertools
import numbers
import re
from collections import deque
from collections.abc import Iterator, MappingView
from typing import NamedTuple

import numpy as np
import torch

MOST = 4_000_000                                        # numbers and letters in one output
TYPES = {str(kind).removeprefix("torch."): kind for kind in (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64)}
DEEPEST = 20                                            # lists within lists


class NotNumbers(Exception):
    """Something that isn't a number, a tensor or a collection of them; the message says what it is: 'an object'."""


class Unreadable(NamedTuple):
    """Replaces something that can't be read as numbers or text in plain data; `what` says what it was: 'an object'."""

    what: str


def article(noun: str) -> str:
    """A noun with its article: 'an object', 'a function'."""
    return f"{'an' if noun[:1].lower() in 'aeiou' or noun.startswith('nd') else 'a'} {noun}"


class NoList(tuple):
    """What was no list or tuple, as a tuple; `was` says what it was: 'generator'. An exercise may mind the difference."""

    was = ""


def as_tuple(thing):
    """What a dict's values(), a generator, map, zip or a deque holds, as a tuple; anything else as it is."""
    if isinstance(thing, (Iterator, MappingView, deque)):
        held = NoList(itertools.islice(thing, MOST))
        held.was = type(thing).__name__
        return held
    return thing


def plain_data(thing):
    """Anything as plain data: None, bool, int, float, str, tensors (dense, on the CPU), and lists, tuples and dicts of them.

    Arrays, data frames and whatever else turns into an array become tensors; sets become sorted lists; exact numbers
    become floats. What can't be read is replaced by an `Unreadable`, so that this never raises.
    """
    try:
        return _plain(thing, 0, [MOST])
    except Exception:  # an array of objects, a list that holds itself, an attribute that raises
        return Unreadable(f"{article(type(thing).__name__)} that cannot be read as numbers")


def _plain(thing, depth: int, left: list[int]):
    left[0] -= len(thing) if isinstance(thing, str) else 1
    if left[0] < 0 or depth > DEEPEST:
        raise ValueError("too much, or too deep")
    thing = as_tuple(thing)
    if thing is None or type(thing) in (bool, str, Unreadable):
        return thing
    if isinstance(thing, torch.Tensor):
        return _plain_tensor(thing, left)
    if isinstance(thing, (bool, np.bool_)):
        return bool(thing)
    if isinstance(thing, numbers.Integral):
        whole = int(thing)
        float(whole)                                    # OverflowError: too large to be compared
        return whole
    if isinstance(thing, str):
        return str(thing)
    if isinstance(thing, np.ndarray) and thing.dtype.kind in "OSU":
        return _plain(thing.tolist(), depth, left)
    if isinstance(thing, np.ndarray):
        return _plain_tensor(torch.as_tensor(np.array(thing)), left)
    if isinstance(thing, dict):
        return {str(key): _plain(value, depth + 1, left) for key, value in thing.items()}
    if isinstance(thing, (set, frozenset)):
        thing = sorted(thing, key=repr)
    if isinstance(thing, (list, tuple, range)):
        parts = [_plain(part, depth + 1, left) for part in thing]
        return tuple(parts) if isinstance(thing, tuple) else parts
    if isinstance(thing, numbers.Real) or (hasattr(thing, "__float__") and not hasattr(thing, "__array__")):
        return float(thing)                             # Fraction, Decimal, the exact numbers of other libraries
    if hasattr(thing, "__array__") and not isinstance(thing, type):
        return _plain(np.asarray(thing), depth + 1, left)       # a pandas Series, an array of another library
    return Unreadable(article(type(thing).__name__))


def _plain_tensor(tensor: torch.Tensor, left: list[int]):
    """A dense tensor on the CPU without a history, or an Unreadable that says why there is none."""
    if tensor.is_complex():
        return Unreadable("a tensor of complex numbers")
    if tensor.is_nested:
        return Unreadable("a nested tensor, whose rows differ in length")
    if tensor.device.type == "meta":
        return Unreadable("a tensor on the device 'meta', which has a shape and no numbers")
    left[0] -= tensor.numel()
    if left[0] < 0:
        raise ValueError("too much")
    with torch.no_grad():
        tensor = tensor.detach()
        dense = tensor.to_dense() if tensor.layout != torch.strided else tensor
        dense = dense.dequantize() if dense.is_quantized else dense
        dense = dense if dense.dtype in TYPES.values() else dense.to(torch.float32)
        return dense.as_subclass(torch.Tensor).cpu().resolve_neg().contiguous().clone()


def named_tensors(output) -> dict:
    """Any right way to hand over numbers, as {name: tensor in float64}: tensors, arrays, numbers, lists, tuples, dicts.

    Texts stay as they are. Raises NotNumbers for anything else.
    """
    try:
        return _named_tensors(plain_data(output))
    except NotNumbers:
        raise
    except Exception:
        raise NotNumbers(f"{article(type(output).__name__)} that cannot be read as numbers") from None


def _named_tensors(output) -> dict:
    if isinstance(output, Unreadable):
        raise NotNumbers(output.what)
    if isinstance(output, torch.Tensor):
        return {"": output.to(torch.float64)}
    if isinstance(output, (bool, int, float)):
        return {"": torch.tensor(float(output), dtype=torch.float64)}
    if isinstance(output, str):
        return {"": output}
    if isinstance(output, (list, tuple)):
        try:
            return {"": torch.tensor(output, dtype=torch.float64)}
        except (TypeError, ValueError, RuntimeError):
            output = dict(enumerate(output))
    if not isinstance(output, dict):
        raise NotNumbers("None" if output is None else article(type(output).__name__))
    found = {}
    for key, value in output.items():
        for name, tensor in _named_tensors(value).items():
            found[f"{key}.{name}" if name else str(key)] = tensor
    return found


def in_form_of(got: dict, right: dict) -> dict:
    """Rows handed over one by one, or a single number in brackets, in the form of the right answer; else `got` as it is."""
    if list(right) != [""] or isinstance(right[""], str):
        return got
    while "" not in got:                                # the innermost rows first: '0.0', '0.1', '1.0', …
        groups: dict[str, list] = {}
        for name, value in got.items():
            groups.setdefault(name.rpartition(".")[0], []).append(value)
        rows = [value for group in groups.values() for value in group]
        if not rows or any(isinstance(row, str) or row.shape != rows[0].shape for row in rows):
            return got
        if len({len(group) for group in groups.values()}) > 1:
            return got
        got = {name: torch.stack(group) for name, group in groups.items()}
    value = got[""]
    if isinstance(value, torch.Tensor) and right[""].dim() == 0 and value.numel() == 1:
        return {"": value.reshape(())}
    return got


def as_row(got: dict, right: dict) -> dict:
    """A column (n, 1) or a table (1, n) as a row of n numbers, where the right answer is one; else `got` as it is."""
    value, form = got.get(""), right.get("")
    if isinstance(value, torch.Tensor) and isinstance(form, torch.Tensor) and form.dim() == 1:
        if value.numel() == form.numel() == max(value.shape, default=0):
            return {"": value.reshape(form.shape)}
    return got


def distance(got: dict, right: dict) -> tuple[float, float]:
    """How far an output is from the right one, and its gradients: the largest difference, by 1 + the size of the right one.

    Infinite where parts or shapes differ, -1 where there's a text in place of a number. What isn't finite counts as nothing.
    """
    if got.keys() != right.keys():
        return float("inf"), 0.0
    worst = {False: 0.0, True: 0.0}
    for name, value in got.items():
        expected = right[name]
        if isinstance(value, str) and isinstance(expected, str):
            continue
        if isinstance(value, str) or isinstance(expected, str):
            return -1.0, 0.0
        if value.shape != expected.shape:
            return float("inf"), 0.0
        apart = ((value - expected).abs() / (1 + expected.abs())).nan_to_num(0.0, 0.0, 0.0)
        kind = name.startswith("gradient")
        worst[kind] = max(worst[kind], apart.max().item() if apart.numel() else 0.0)
    return worst[False], worst[True]


def close(one: dict, other: dict, tolerance: float) -> bool:
    """Whether two named outputs agree in names, shapes and values."""
    if one.keys() != other.keys():
        return False
    for name, value in one.items():
        expected = other[name]
        if isinstance(value, str) or isinstance(expected, str):
            if value != expected:
                return False
        elif value.shape != expected.shape or not torch.allclose(value, expected, rtol=tolerance, atol=tolerance):
            return False
    return True


def readings(answer) -> list:
    """The possible meanings of a number as people write it: '0,783', '1,050,624', '80 %', '4/5', '0.1, 0.2', lists.

    A text with two meanings gives both ('1,094' is 1.094 or 1094). Anything that isn't a text or an exact number is
    returned unchanged. Raises NotNumbers for a text that isn't a number.
    """
    try:
        return _readings(plain_data(answer))
    except RecursionError:
        raise NotNumbers(f"{article(type(answer).__name__)} that holds itself") from None


def as_digits(value) -> int | None:
    """At least three digits in a list, [2, 1, 5], as the number 215; None for anything else."""
    if isinstance(value, (list, tuple)) and len(value) > 2 and all(
            isinstance(digit, (int, float)) and digit in range(10) for digit in value):
        return int("".join(str(int(digit)) for digit in value))
    return None


def _readings(answer) -> list:
    if isinstance(answer, Unreadable):
        raise NotNumbers(answer.what)
    if isinstance(answer, (list, tuple)):
        return [[_readings(part)[0] for part in answer]]
    if not isinstance(answer, str):
        return [answer]
    text = re.sub(r"\s+(?=%)|\s*(/)\s*", r"\1", answer.strip().strip("[]()").strip())      # '80 %, 1 / 2': '80%, 1/2'
    text = re.sub(r"%\s*,\s*", "% ", text)             # a comma behind a % is no decimal comma
    parts = [part.replace(",", ".") for part in re.split(r"[;\s]+|,\s+", text) if part]
    one = [[text.replace(",", ".")], [re.sub(r"[\s,](?=\d{3}(\D|$))", "", text)]]
    several = [parts, re.split(r"[;,\s]+", text) if "." in text else []]       # '0.7, 0.8' or '0.7,0.8'
    found = []
    for meaning in one + [words for words in several if len(words) > 1]:
        try:
            values = [_number_in(part) for part in meaning]
        except (ValueError, ZeroDivisionError):
            continue
        found.append(values if len(values) > 1 else values[0])
    if not found:
        raise NotNumbers(f"the text {answer[:40]!r}, which isn't a number")
    return found


def _number_in(text: str) -> float:
    text = text.strip().replace("−", "-")
    if text.endswith("%"):
        return _number_in(text[:-1]) / 100
    above, fraction, below = text.partition("/")
    return float(above) / float(below) if fraction else float(text)
