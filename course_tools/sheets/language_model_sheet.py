"""The sheet on notebook 13: a language model's loss, perplexity and bits per byte on a short text, and two cuts by top-p."""

import math

from course_tools.sheets.formulas import fraction
from course_tools.sheets.sheet_numbers import CALCULATOR, blanks, exact, rounded
from course_tools.sheets.sheet_pages import Blank, Sheet, Table

__all__ = ["bits_and_top_p"]

TEXT = ["total", "==", "1", "+", "1"]
VOCABULARY = ["1", "+", "==", "total"]
AFTER = {"total": (0.05, 0.25, 0.6, 0.1), "==": (0.4, 0.05, 0.03, 0.52), "1": (0.05, 0.5, 0.4, 0.05),
         "+": (0.8, 0.05, 0.05, 0.1)}                   # what the model gives each token of the vocabulary
LONGER = {"==": 0.5, "1+": 0.4, "1": 0.6}               # another model: its tokens of the same text
CUTS = {"==": 0.5, "total": 0.9}                        # after which token, and top-p's limit


def measures(right: list[float], size: int) -> list[float]:
    """Nats in all, loss, perplexity and bits per byte of a text of `size` bytes."""
    nats = -sum(map(math.log, right))
    return [nats, nats / len(right), math.exp(nats / len(right)), nats / math.log(2) / size]


def cut(given: str) -> list[list[str | Blank]]:
    """The rows of top-p after a token, most probable tokens first."""
    ordered = sorted(zip(AFTER[given], VOCABULARY), reverse=True)
    before = [sum(p for p, _ in ordered[:i]) for i in range(len(ordered))]
    keep = [total < CUTS[given] for total in before]
    whole = sum(p for (p, _), kept in zip(ordered, keep) if kept)
    new = [p / whole if kept else 0.0 for (p, _), kept in zip(ordered, keep)]
    return [["token", *blanks([token for _, token in ordered], str)],
            ["sum of those before it", exact(before[0]), *blanks(before[1:], exact)],
            ["new <i>p</i>", *blanks(new)]]


def bits_and_top_p() -> Sheet:
    right = [AFTER[given][VOCABULARY.index(wanted)] for given, wanted in zip(TEXT, TEXT[1:])]
    size = len("".join(TEXT[1:]).encode())
    short, long = measures(right, size), measures(list(LONGER.values()), size)
    steps = [Table("Step 1: which token comes next, and what does it cost? (the first is done)", ["after", *TEXT[:-1]],
                   [["target", TEXT[1], *blanks(TEXT[2:], str)],
                    ["its <i>p</i>", exact(right[0]), *blanks(right[1:], exact)],
                    ["−ln <i>p</i>", rounded(-math.log(right[0])), *blanks(-math.log(p) for p in right[1:])]]),
             Table(f"Step 2: this model, and another one whose {len(LONGER)} tokens are "
                   + ", ".join(f"{token} (<i>p</i> = {exact(p)})" for token, p in LONGER.items()),
                   ["", "nats in all", "loss", "perplexity", "bits per byte"],
                   [["this model", *blanks(short)], ["the other", *blanks(long)]])]
    for number, (given, limit) in enumerate(CUTS.items(), 3):
        steps.append(Table(f"Step {number}: after '{given}', cut by top-p {exact(limit)}; most probable token first",
                           ["", "1st", "2nd", "3rd", "4th"], cut(given)))
    return Sheet(
        title="Bits per byte, and a cut", notebook="13",
        section="3. The model, and how good its guesses are", need=CALCULATOR,
        intro="A model gives each of four tokens a probability of coming next. The text is "
        f"'{' '.join(TEXT)}'; the model has to predict '{''.join(TEXT[1:])}', {size} bytes. (Spaces don't count.)",
        given=[Table("Given: what may come next", ["after", *VOCABULARY],
                     [[given, *map(exact, row)] for given, row in AFTER.items()])],
        formulas=["loss = mean of −ln <i>p</i>, perplexity = <i>e</i><sup>loss</sup>",
                  "bits per byte = " + fraction("Σ −ln <i>p</i>", "ln 2 · bytes"),
                  "top-p keeps a token if those before it",
                  "add up to less than the limit"],
        steps=steps,
        question="Which model predicts the text better, and why doesn't perplexity say so?",
        answer=f"The other one: it needs {rounded(long[3])} bits per byte, this one {rounded(short[3])}. Perplexity is per "
        f"token, and the other has {len(LONGER)} tokens for what takes this one {len(right)}, so each covers "
        "more of the text.")
