"""What the exercises of notebook 01 try an answer on, and what they look at. `ask` has what they say of it."""

import math
from collections import Counter

import torch

from course_exercises.common import drawn, what

OPINIONS = ["dull", "moving", "clumsy", "witty", "bland", "tender", "shallow", "gripping", "stale", "graceful"]

# ---------------------------------------------------------------- 1.1 from brackets to spans

def marked_probes(generator: torch.Generator) -> list[tuple]:
    """Texts with brackets: a marked word that stands before, between and after without; three marks; no mark at all.

    Then capitals, digits, accents, two spaces, a new line, marks side by side and one that ends the text; no text; and a
    mark that runs over a line break; spaces at the beginning and a new line at the end.
    """
    a, b, c, d = drawn(generator, OPINIONS, 4)
    return [(f"Called {a} and {b}, it is [not] {a} nor {b} but [{b}]; never {b} before.",),
            (f"[{c}] at first, then [{a} and {d}]; so [I] left.",), (f"A {d} film, {b} to the end.",),
            (f"[NEVER]  {a.upper()}?\n7/10 - café, [{b.capitalize()} & 100 % {c}][{d}]: [{a}]",), ("",),
            (f"It is [not {a},\nnor {b}] to the end.",), (f"  Then {c}, [{d}].\n",)]


def observe_marked(function, marked):
    """The text, and the spans as a text such as '4-8 13-19'."""
    output = function(marked)
    if output is None:
        return None
    if not isinstance(output, (tuple, list)) or len(output) != 2:
        raise TypeError(f"expected a text and a list of spans, got {what(output)}")
    swapped = isinstance(output[1], str) and not isinstance(output[0], str)
    text, spans = reversed(output) if swapped else output
    if not isinstance(text, str):
        raise TypeError(f"expected a str as the text, got {what(text)}")
    try:
        spans = list(spans)
        written = " ".join(f"{_whole(start)}-{_whole(end)}" for start, end in spans)
    except (TypeError, ValueError):
        raise TypeError(f"expected a list of pairs of whole numbers as the spans, got {what(spans)}") from None
    return {"text": text, "spans": written, "swapped": swapped}


def _whole(number) -> int:
    """A whole number as an int, whatever its type; ValueError for a fraction."""
    if int(number) != float(number):
        raise ValueError(f"{number} is no whole number")
    return int(number)


def _one_number(output, asked: str) -> float:
    """A number however it comes: tensor, array, text, Decimal, a list of one; else TypeError that says what was asked."""
    value = output
    for _ in range(10):                                 # a list may hold itself
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = value[0]
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"expected {asked}, got {what(output)}") from None

# ---------------------------------------------------------------- 1.3 naive Bayes

TINY = (["moving", "moving not dull", "dull but moving", "dull", "not moving", "dull not moving"], [1, 1, 1, 0, 0, 0])


def bayes_probes(generator: torch.Generator) -> list[tuple]:
    """The six tiny reviews; one with repeats, more positive reviews, words of one class only; the reverse; and commas.

    Cut at spaces, a word with a comma is another word.
    """
    a, b, c, d, e, f, _ = drawn(generator, OPINIONS, 7)
    extra = int(torch.randint(1, 3, (1,), generator=generator))
    texts = [f"{a} {a} {b}", f"{f} {a} {f}", f"{a} {c}", f"{b} {d} {a}", f"{c} {f}", e] + [f"{e} {a}"] * extra
    labels = [1, 0, 1, 1, 0, 1] + [1] * extra
    return [(*TINY, "not dull but moving"), (texts, labels, f"{c} {f} {f} {d}"),
            ([*texts, f"{b} {e} {f}", f"{f} {e}"], [1 - label for label in labels] + [1, 0], f"{a} {f} {b} {a}"),
            ([f"{a}, {b}.", f"{a} {c}, {a},", f"{b} {c}", f"{c}, {a}!"], [1, 0, 1, 0], f"{a}, {b} {c} {a}")]


def one_sided(texts: list[str], labels: list[int]) -> str:
    """The word that tells most: that of the largest odds, either way, among the words of some training reviews."""
    counts = {label: Counter(" ".join(text for text, one in zip(texts, labels) if one == label).split()) for label in (0, 1)}
    return max(sorted(counts[0] + counts[1]), key=lambda word: abs(math.log((counts[1][word] + 1) / (counts[0][word] + 1))))

TOO_SMALL = "So many small factors multiply to 0, or to infinity: add logarithms, one for each word, instead of multiplying"


def observe_bayes(function, texts, labels, text):
    """The log odds of the text; its words turned round; with an unknown word; written twice; of no words; of 1,500 words."""
    asked = {"text": text, "turned round": " ".join(reversed(text.split())), "unknown": f"{text} unheard",
             "twice": f"{text} {text}", "no words": "",
             "1,500 words": " ".join([one_sided(texts, labels)] * 1500)}
    found = {}
    for name, each in asked.items():
        try:
            output = function(texts, labels, each)
        except Exception as error:
            if name == "1,500 words":
                raise TypeError("expected a number for a text of 1,500 words as well; there it stops with "
                    f"{type(error).__name__}: {error}. {TOO_SMALL}") from None
            if each:
                raise
            raise TypeError("expected the prior alone for the text '', which has no words; there it stops with "
                f"{type(error).__name__}: {error}") from None
        if output is None and name == "text":
            return None
        found[name] = _one_number(output, f"one number for the text {each[:60]!r}")
    return found

# ---------------------------------------------------------------- 1.4 repair: twins and copies in both splits

def leak_probes(generator: torch.Generator) -> list[tuple]:
    """Training and test texts: copies, in other capitals and spaces too, twins, and near misses that may stay.

    In the second case two training texts are twins of each other and of no test: both may stay. Then no test, no training,
    and other words of the same letters.
    """
    a, b, c, d, e, f = drawn(generator, OPINIONS, 6)
    test = [f"{a.capitalize()}, not {b}.", f"It was {c} but {d}!", f"{e} {e} film", "No star here", f"A {f} end"]
    train = [f"{e} film film", f"{b.capitalize()}, not {a}.", f"It  was {c}  but {d.upper()}!", f"It was {d} but {c}!",
             f"A {f} end, {a}", f"It was {c}!", "No arts here", f"film {e} {e}", f"It was {c}, but {d}!", f"A {f} end"]
    order = [4, *torch.randperm(4, generator=generator).tolist()]     # the test of the exact copy: once last, once first
    late = [*reversed(train), f"film {e} film"]
    late = [late[i] for i in torch.randperm(len(late), generator=generator).tolist()]   # no answer without looking at them
    return [(train, test), (late, [test[i] for i in order]), (train[:3], []), ([], test),
            (["Is land here", f"{a} film"], ["Island here", f"film, {a}"])]


def observe_leaks(function, train, test):
    """How often each training text stands in the answer, and how many other texts do."""
    output = function(train, test)
    if output is None:
        return None
    if isinstance(output, (str, dict)) or not hasattr(output, "__iter__"):
        raise TypeError(f"expected a list of texts, got {what(output)}")
    output = list(output)
    if not all(isinstance(text, str) for text in output):
        raise TypeError("expected a list of texts, got a list that holds "
            f"{what(next(t for t in output if not isinstance(t, str)))}")
    counts = Counter(output)
    return {"kept": torch.tensor([counts[text] for text in train]),
            "others": sum(counts[text] for text in counts if text not in train)}
