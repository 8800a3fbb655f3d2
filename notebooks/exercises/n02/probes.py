"""What the exercises of notebook 02 try an answer on, and what they look at. `ask` has what they say of it."""

import numpy as np
import torch

from course_exercises.common import drawn, what


def _items(output, expected: str) -> list:
    """What any list, tuple, array, tensor or generator holds; TypeError for a text, a dict, and what holds nothing."""
    if isinstance(output, (str, dict)) or not hasattr(output, "__iter__"):
        raise TypeError(f"expected {expected}, got {what(output)}")
    return list(output)


def _pair(output, expected: str) -> list:
    items = _items(output, expected)
    if len(items) != 2:
        raise TypeError(f"expected {expected}, got {what(output)}")
    return items


def _id(number) -> int:
    """An id as an int, whatever its type."""
    try:
        if int(number) == float(number):
            return int(number)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"expected whole numbers as ids, got {what(number)}")

# ---------------------------------------------------------------- 2.2 a vocabulary, and what it does not know

NOUNS = ["actor", "camera", "drama", "ending", "film", "genre", "hero", "joke", "music", "novel", "plot", "scene"]


def vocabulary_probes(generator: torch.Generator) -> list[tuple]:
    """(training texts, texts, min_freq): ties, words at and below min_freq, and words that only the texts have.

    Then words with capitals, an empty text, and a training text of one word.
    """
    a, b, c, d, e, f, g, h = sorted(drawn(generator, NOUNS, 8))
    one = ([f"{f} {d} {b} {f}", f"{b} {f} {d} {c}", f"{g} {g} {g} {g}", f"{e} {h} {e} {h}"],
           [f"{a} {g} {d} {a} {f}", f"{b} {c} {h}", f"{e} {a}"], 2)
    two = ([f"{e} {c} {g} {e}", f"{a} {c} {a} {c} {g}", f"{b} {b} {b} {b} {b} {e} {h}"],
           [f"{e} {h} {b}", f"{d} {g} {a} {c} {d} {b} {d}"], 3)
    tied = ["film camera actor drama"]                 # in no order by which ties could go: turning up, length, backwards
    words = " ".join(two[1]).split()
    mixed = " ".join(words[i] for i in torch.randperm(len(words), generator=generator).tolist())
    capitals = ([f"{b.capitalize()} {b} {a.upper()} {b.capitalize()} {c}", f"{c} {a} {c} {h.capitalize()}"],
                [f"{b} {b.upper()} {a.upper()} {b.capitalize()}", "", f"{c} {h.capitalize()}"], 1)
    return [one, two, (one[0], [mixed, two[1][0]], 1), (tied, ["actor film", "drama camera"], 1), capitals,
            ([a], [a, f"{a} {b}"], 1)]


def observe_ids(function, train, texts, min_freq):
    """How many ids each text got, and the ids as rows filled with -1."""
    output = function(train, texts, min_freq)
    if output is None:
        return None
    asked = f"one list of ids for each of {len(texts)} texts"
    given = _items(output, asked)
    if isinstance(output, torch.Tensor) or len(given) != len(texts):
        raise TypeError(f"expected {asked}, got {what(output)}")
    rows, width = [], max(len(text.split()) for text in texts)
    given = [[_id(i) for i in _items(row, "a list of ids for each text")] for row in given]
    for row in given:
        rows.append((row + [-1] * width)[:width])
    return {"ids": torch.tensor(rows), "lengths": torch.tensor([len(row) for row in given])}

# ---------------------------------------------------------------- 2.3 repair: there and back

def coder_probes(generator: torch.Generator) -> list[tuple]:
    """(texts to learn from, new texts): words in several spellings, whose counts differ; new texts have a new word."""
    a, b, c, d, e = drawn(generator, NOUNS, 5)
    A, B, C, D = (word.capitalize() for word in (a, b, c, d))
    one = ([f"{A} and {b}! {B}, {B} or {C}?", f"{c.upper()}: {a} and {C}, {c} and {C.swapcase()}.", f"The {d} IS the {d}"],
           [f"{C} and the {e}", f"{D} or {b.upper()}, {A}!"])
    two = ([f"{D}... {d}, {D} or {a}?", f"And {b}, AND {b}, and {c.upper()}! {A}"],
           [f"{b} {c} {D} {e.upper()}", f"{A} {B}"])
    return [one, two]


def observe_coder(function, texts, new):
    """Ids of the training texts, of new texts and of these in small letters; the first one decoded; ids 2 to 9 decoded."""
    output = function(texts)
    if output is None:
        return None
    encode, decode = _pair(output, "two functions, encode and decode")
    if not callable(encode) or not callable(decode):
        raise TypeError(f"expected two functions, encode and decode, got {what(output)}")
    small = [text.lower() for text in new]
    rows = [" ".join(str(_id(i)) for i in _items(encode(text), "ids from encode")) for text in [*texts, *new, *small]]
    return {"training": "|".join(rows[: len(texts)]), "new": "|".join(rows[len(texts) : -len(small)]),
            "small": "|".join(rows[-len(small) :]), "back": str(decode(encode(texts[0]))), "first": _first_words(decode)}


def _first_words(decode) -> str:
    """Ids 2 to 9 decoded; '' from a vocabulary that isn't as long."""
    try:
        return str(decode(list(range(2, 10))))
    except (IndexError, KeyError):
        return ""

# ---------------------------------------------------------------- 2.4 padding on the left

def padding_probes(generator: torch.Generator) -> list[tuple]:
    """(rows, pad_id): ragged rows, one of them empty; an id 0 that is real; a real pad_id, inside a row and as its first.

    Then one row of one id, and rows of one length.
    """
    def row(length):
        return torch.randint(2, 60, (length,), generator=generator).tolist()

    return [([row(5), row(2), [], row(3)], 0), ([[0, 63, 5, *row(1)], row(1), [7, 0], row(6)], 63),
            ([[62, *row(2)], row(7)], 62), ([row(1)], 0), ([row(3), row(3)], 100)]


def observe_padding(function, rows, pad_id):
    try:
        output = function(rows, pad_id)
    except (RuntimeError, ValueError, IndexError) as error:
        if "expanded size" not in str(error) or all(rows):
            raise
        raise TypeError("expected the empty row to become nothing but padding, but your function stops there: for a row of "
                        "0 ids, [-0:] means all places, not none, and nothing fits into them. Count from the front: "
                        "[seq_len - len(row):]") from None
    if output is None:
        return None
    ids, mask = _pair(output, "token_ids and attention_mask")
    mask = _rectangle(mask, "attention_mask")
    if not torch.isfinite(mask).all():
        raise TypeError("expected True and False (or 1 and 0) in attention_mask, got numbers that are infinite or NaN")
    ids = _rectangle(ids, "token_ids")
    if ids.is_floating_point():
        raise TypeError("expected whole numbers as token_ids, because an embedding can't look up anything else; got "
                        f"{ids.dtype}. torch.tensor([]) is a float tensor, and a float tensor makes all others float")
    return {"token_ids": ids, "attention_mask": mask}


def _rectangle(part, name: str) -> torch.Tensor:
    """A tensor, an array, or rows of equal length as one tensor."""
    try:
        if isinstance(part, (list, tuple)) and any(isinstance(row, (torch.Tensor, np.ndarray)) for row in part):
            return torch.stack([torch.as_tensor(row) for row in part])
        part = torch.as_tensor(part)
        return part if part.is_nested or part.layout == torch.strided else part.to_dense()
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"expected {name} as one tensor of numbers, all rows of one length, got {what(part)}") from None
