"""What a learner hands over, in a form that can be compared: tensors by name, numbers however they are written.

Does: read and compare. Does not: judge (see `engine`).
"""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import torch


class Unfit(Exception):
    """Something that is no number, tensor or collection of them; the message says what it is: 'an object'."""


def article(noun: str) -> str:
    """A noun with its article: 'an object', 'a function'."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def named_tensors(output) -> dict:
    """Any right way to hand over numbers, as {name: tensor in float64}: tensors, arrays, numbers, lists, tuples, dicts.

    Texts stay as they are. Raises Unfit for anything else.
    """
    try:
        return _named_tensors(output)
    except Unfit:
        raise
    except Exception:  # an array of objects, a number too large for a float, a list that holds itself
        raise Unfit(f"{article(type(output).__name__)} that cannot be read as numbers") from None


def _named_tensors(output) -> dict:
    if isinstance(output, torch.Tensor):
        if output.is_complex():
            raise Unfit("a tensor of complex numbers")
        dense = output.to_dense() if output.layout != torch.strided else output
        return {"": dense.detach().to(torch.float64)}
    if isinstance(output, (bool, int, float, np.number, np.bool_)):
        return {"": torch.tensor(float(output), dtype=torch.float64)}
    if isinstance(output, np.ndarray):
        return _named_tensors(torch.as_tensor(output))
    if isinstance(output, str):
        return {"": output}
    if isinstance(output, (set, frozenset)):
        return _named_tensors(sorted(output, key=repr))
    if isinstance(output, (list, tuple)):
        try:
            bare = [part.detach() if isinstance(part, torch.Tensor) else part for part in output]
            return {"": torch.tensor(bare, dtype=torch.float64)}
        except (TypeError, ValueError, RuntimeError):
            output = dict(enumerate(output))
    if not isinstance(output, dict):
        raise Unfit(article(type(output).__name__))
    found = {}
    for key, value in output.items():
        for name, tensor in _named_tensors(value).items():
            found[f"{key}.{name}" if name else str(key)] = tensor
    return found


def joined(got: dict, right: dict) -> dict:
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
    """What a number may mean as people write it: '0,783', '1,050,624', '80%', '4/5', '0.1, 0.2', Fraction, Decimal, lists.

    A text with two meanings gives both ('1,094' is 1.094 or 1094). What is no text or exact number is handed back as it
    is. Raises Unfit for a text that is no number.
    """
    try:
        return _readings(answer)
    except RecursionError:
        raise Unfit(f"{article(type(answer).__name__)} that holds itself") from None


def _readings(answer) -> list:
    if isinstance(answer, (list, tuple)):
        return [[_readings(part)[0] for part in answer]]
    if isinstance(answer, (Fraction, Decimal)):
        return [float(answer)]
    if not isinstance(answer, str):
        return [answer]
    text = answer.strip().strip("[]()").strip()
    parts = [part.replace(",", ".") for part in re.split(r"[;\s]+|,\s+", text) if part]
    meanings = [[text.replace(",", ".")], [re.sub(r"[\s,](?=\d{3}(\D|$))", "", text)], parts if len(parts) > 1 else []]
    found = []
    for meaning in filter(None, meanings):
        try:
            numbers = [_number_in(part) for part in meaning]
        except (ValueError, ZeroDivisionError):
            continue
        found.append(numbers if meaning is parts else numbers[0])
    if not found:
        raise Unfit(f"the text {answer[:40]!r}, which is no number")
    return found


def _number_in(text: str) -> float:
    text = text.strip().replace("−", "-")
    if text.endswith("%"):
        return _number_in(text[:-1]) / 100
    return float(Fraction(text)) if "/" in text else float(text)
