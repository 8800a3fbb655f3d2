"""Many numbers from 0 to 1 as a short string of printable characters, and back again.

Does: write each number in steps of 0.001, in one character below 0.085, in two below 0.449 and in three from there on; a run
of zeros takes two. A row of weights that sums to one takes at most eleven characters more than it has numbers. Does not:
write negative numbers. `coded.js` reads the same code in a page.
"""

from __future__ import annotations

import re

import numpy as np

# Printable ASCII without what JSON or HTML would have to escape: 91 characters.
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"\\<')
SINGLE = 85  # the first characters each mean a number of steps
RUN = ALPHABET[SINGLE]  # a run of zeros follows: its length less three
LEADS = ALPHABET[SINGLE + 1:-1]  # each begins a number of two characters
LONG = ALPHABET[-1]  # begins a number of three
DOUBLE = SINGLE + 91 * len(LEADS)  # the first number of three characters
LONGEST_RUN = len(ALPHABET) + 2
MOST = 1000  # steps


def _word(n: int) -> str:
    """One number of steps in characters."""
    if n < SINGLE:
        return ALPHABET[n]
    if n < DOUBLE:
        return LEADS[(n - SINGLE) // 91] + ALPHABET[(n - SINGLE) % 91]
    return LONG + ALPHABET[(n - DOUBLE) // 91] + ALPHABET[(n - DOUBLE) % 91]


_WORDS = [_word(n) for n in range(MOST + 1)]
_LONG_OR_RUN = re.compile(f"{re.escape(LONG)}..|[{re.escape(LEADS)}].|{re.escape(ALPHABET[0])}{{3,{LONGEST_RUN}}}")


def step_for(largest: float) -> float:
    """The step in which numbers up to `largest` are written: 0.001, or the power of ten times it that they need."""
    step = 0.001
    while largest > (MOST + 0.4) * step:  # a weight of one may be more by its last bits
        step *= 10
    return float(f"{step:.3g}")


def in_steps(array: np.ndarray, step: float) -> np.ndarray:
    """Numbers from 0 to 1000 steps as whole steps. Raises ValueError for others."""
    if not (np.isfinite(array).all() and (array > -step / 2).all() and (array < (MOST + 0.5) * step).all()):
        raise ValueError(f"numbers from {array.min()} to {array.max()}; expected finite ones from 0 to {MOST * step:g}")
    # Rounded before they are counted in steps: a number in the middle goes the same way on every machine.
    return np.floor(np.round(array / step, 6) + 0.5).astype(np.int64)


def encode(values: object, step: float = 0.001) -> dict[str, object]:
    """An array of numbers from 0 to 1000 steps as {"coded": text, "shape": its shape, "step": step}, rounded to steps.

    Raises ValueError for a number below zero, above 1000 steps, or NaN.
    """
    array = np.asarray(values, dtype=np.float64)
    steps = in_steps(array, step).clip(0, MOST)
    text = "".join([_WORDS[n] for n in steps.ravel().tolist()])
    text = _LONG_OR_RUN.sub(lambda one: one[0] if one[0][0] != ALPHABET[0] else RUN + ALPHABET[len(one[0]) - 3], text)
    return {"coded": text, "shape": list(array.shape), "step": step}


def decode(given: dict[str, object]) -> np.ndarray:
    """The array that `encode` wrote, rounded to steps. Raises ValueError for a text that doesn't fill the shape."""
    steps, characters = [], iter(given["coded"])
    try:
        for character in characters:
            if character == RUN:
                steps += [0] * (ALPHABET.index(next(characters)) + 3)
            elif character == LONG:
                steps.append(DOUBLE + 91 * ALPHABET.index(next(characters)) + ALPHABET.index(next(characters)))
            elif character in LEADS:
                steps.append(SINGLE + 91 * LEADS.index(character) + ALPHABET.index(next(characters)))
            else:
                steps.append(ALPHABET.index(character))
        return np.array(steps, dtype=np.float64).reshape(given["shape"]) * given["step"]
    except (StopIteration, ValueError) as error:
        raise ValueError(f"{len(given['coded'])} characters that don't fill the shape {given['shape']}") from error
