"""Pieces of HTML to touch (`course_utils.interactive.Piece`) in saved outputs: what they show is compared, not their text.

Does: find the pieces of an output, and compare their kind, the words and numbers of their alternative text, and their data;
take them out of what nbval compares; make a saved piece anew, with today's scripts. Does not: compare scripts and styles,
which a notebook has as they were when it was saved, or any other HTML.
"""

import base64
import copy
import html
import json
import math
import re
from typing import NamedTuple

import numpy as np

from course_utils.interactive.attention_view import SCRIPTS as OF_ATTENTION
from course_utils.interactive.classifier_view import SCRIPTS as OF_CLASSIFIER
from course_utils.interactive.coded import decode
from course_utils.interactive.piece import Piece

NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
PIECE = re.compile(r'<div class="course-piece" data-piece="(?P<kind>\w+)-\w+".*?<img alt="(?P<alt>[^"]*)" '
                   r'src="data:image/svg\+xml;base64,(?P<still>[^"]*)".*?</div>\n'
                   r'<script>.*?\nvar data=(?P<data>[^\n]*);\nstart\(.*?</script>', re.DOTALL)
FARTHEST = 0.01  # between weights that count as the same
SCRIPTS = {"attention_view": OF_ATTENTION, "classifier_view": OF_CLASSIFIER, "gates_view": OF_CLASSIFIER}


class Shown(NamedTuple):
    """What is compared of a piece."""

    kind: str
    alt: str
    data: object


def pieces(outputs: list[dict]) -> list[Shown]:
    """The pieces of a cell's outputs, in order."""
    return [Shown(found["kind"], html.unescape(found["alt"]), json.loads(found["data"]))
            for output in outputs for found in PIECE.finditer(output.get("data", {}).get("text/html", ""))]


def made_anew(saved: str) -> list[Piece]:
    """The pieces in saved HTML as today's code writes them around the same data, picture and words."""
    return [Piece(found["kind"], json.loads(found["data"]), still=base64.b64decode(found["still"]).decode(),
                  alt=html.unescape(found["alt"]), scripts=SCRIPTS.get(found["kind"], ["controls"]))
            for found in PIECE.finditer(saved)]


def without_pieces(outputs: list[dict]) -> list[dict]:
    """The outputs with a few words in place of each piece; of an output with pieces, nothing is left of its plain text."""
    kept = copy.deepcopy(outputs)
    for output in kept:
        data = output.get("data", {})
        text, pieces_in_it = PIECE.subn(lambda found: f"(piece: {found['kind']})", data.get("text/html", ""))
        if pieces_in_it:
            data.update({"text/html": text, "text/plain": "(a piece)"})
    return kept


def pieces_difference(saved: list[dict], now: list[dict]) -> str:
    """How the pieces of a cell differ from the saved ones; '' if they don't.

    Coded weights may differ by 0.01, other numbers by one per cent or 0.001. Words, and how many of anything, may not.
    """
    before, after = pieces(saved), pieces(now)
    if len(before) != len(after):
        return f"{len(after)} pieces instead of {len(before)}"
    for k, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.kind != new.kind:
            return f"piece {k} is of the kind {new.kind!r} instead of {old.kind!r}"
        problem = _texts(old.alt, new.alt, "its description") or _values(old.data, new.data, "data")
        if problem:
            return f"piece {k} ({new.kind}): {problem}"
    return ""


def same_number(one: str, other: str) -> bool:
    """Whether two written numbers differ by at most one per cent, or 0.001."""
    return math.isclose(*(float(number.replace("−", "-")) for number in (one, other)), rel_tol=0.01, abs_tol=0.001)


def _texts(old: str, new: str, where: str) -> str:
    """How the words or the numbers of two texts differ."""
    numbers = list(zip(NUMBER.findall(old), NUMBER.findall(new), strict=False))
    if NUMBER.sub("#", old) != NUMBER.sub("#", new) or not all(same_number(*pair) for pair in numbers):
        return f"{where} is {new!r} instead of {old!r}"
    return ""


def _values(old: object, new: object, where: str) -> str:
    """How two values of JSON differ, whatever they hold."""
    if _number(old) and _number(new):
        close = math.isclose(old, new, rel_tol=0.01, abs_tol=0.001)
        return "" if close else f"{where} is {new} instead of {old}"
    if type(old) is not type(new):
        return f"{where} is {new!r} instead of {old!r}"
    if isinstance(old, str):
        return _texts(old, new, where)
    if isinstance(old, dict) and "coded" in old and old.get("shape") == new.get("shape"):
        farthest = float(np.abs(decode(old) - decode(new)).max(initial=0.0))
        return f"{where}: weights differ by up to {farthest:.3f}" if farthest > FARTHEST + 1e-9 else ""
    if isinstance(old, dict):
        if list(old) != list(new):
            return f"{where} has the keys {list(new)} instead of {list(old)}"
        return next(filter(None, (_values(old[key], new[key], f"{where}.{key}") for key in old)), "")
    if isinstance(old, list):
        if len(old) != len(new):
            return f"{where} holds {len(new)} values instead of {len(old)}"
        return next(filter(None, (_values(*pair, f"{where}[{k}]") for k, pair in enumerate(zip(old, new)))), "")
    return "" if old == new else f"{where} is {new!r} instead of {old!r}"


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
