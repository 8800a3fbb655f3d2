"""Many numbers from 0 to 1 as a short string of printable characters, and back again.

Does: write each number in steps of 0.001, in one character below 0.079 and in two from there on; a run of zeros takes two.
A row of weights that sums to one holds at most twelve numbers of two characters, whatever their number. Does not: write
negative numbers. `coded.js` reads the same code in a page.
"""

from __future__ import annotations

import re

import numpy as np

# Printable ASCII without what JSON or HTML would have to escape: 91 characters.
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"\\<')
SINGLE = 79  # the first characters each mean a number of steps
RUN = ALPHABET[SINGLE]  # a run of zeros follows: its length less three
LEADS = ALPHABET[SINGLE + 1:]  # each begins a number of two characters
LONGEST_RUN = len(ALPHABET) + 2
MOST = 1000  # steps
_WORDS = [ALPHABET[n] if n < SINGLE else LEADS[(n - SINGLE) // 91] + ALPHABET[(n - SINGLE) % 91] for n in range(MOST + 1)]
_LONG_OR_RUN = re.compile(f"[{re.escape(LEADS)}].|{re.escape(ALPHABET[0])}{{3,{LONGEST_RUN}}}")


def step_for(largest: float) -> float:
    """The step in which numbers up to `largest` are written: 0.001, or the power of ten times it that they need."""
    step = 0.001
    while largest > MOST * step * (1 + 1e-9):
        step *= 10
    return float(f"{step:.3g}")


def encode(values: object, step: float = 0.001) -> dict[str, object]:
    """An array of numbers from 0 to 1000 steps as {"coded": text, "shape": its shape, "step": step}, rounded to steps.

    Raises ValueError for a number below zero, above 1000 steps, or NaN.
    """
    array = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(array).all() and (array > -step / 2).all() and (array < (MOST + 0.5) * step).all()):
        raise ValueError(f"numbers from {array.min()} to {array.max()}; expected finite ones from 0 to {MOST * step:g}")
    # Rounded before they are counted in steps: a number in the middle goes the same way on every machine.
    steps = np.floor(np.round(array / step, 6) + 0.5).astype(np.int64).clip(0, MOST)
    text = "".join([_WORDS[n] for n in steps.ravel().tolist()])
    text = _LONG_OR_RUN.sub(lambda found: found[0] if found[0][0] in LEADS else RUN + ALPHABET[len(found[0]) - 3], text)
    return {"coded": text, "shape": list(array.shape), "step": step}


def decode(given: dict[str, object]) -> np.ndarray:
    """The array that `encode` wrote, rounded to steps. Raises ValueError for a text that doesn't fill the shape."""
    steps, characters = [], iter(given["coded"])
    try:
        for character in characters:
            if character == RUN:
                steps += [0] * (ALPHABET.index(next(characters)) + 3)
            elif character in LEADS:
                steps.append(SINGLE + 91 * LEADS.index(character) + ALPHABET.index(next(characters)))
            else:
                steps.append(ALPHABET.index(character))
        return np.array(steps, dtype=np.float64).reshape(given["shape"]) * given["step"]
    except (StopIteration, ValueError) as error:
        raise ValueError(f"{len(given['coded'])} characters that don't fill the shape {given['shape']}") from error
