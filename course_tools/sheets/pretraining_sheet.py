"""The sheet on notebook 14: hidden words and their loss, the longest word pieces, and an adapter of rank 1, by hand."""

import math

import torch

from course_tools.sheets.sheet_numbers import CALCULATOR, blanks, exact, rounded
from course_tools.sheets.sheet_pages import Sheet, Table
from course_utils.pretraining import longest_pieces

__all__ = ["hidden_words_and_an_adapter"]

TEXT = ["not", "dull", "but", "moving"]
CHOICE, FATE = [0.62, 0.04, 0.11, 0.09], [0.35, 0.84, 0.95, 0.12]
OTHERS = ["but", "moving", "not", "dull"]
RIGHT = [0.96, 0.2, 0.85, 0.32]                         # what the model gives the right word at each position
PIECES, WORDS = ["un", "mov", "movi", "##mov", "##moved", "##ing", "##ed"], ["moved", "unmoved", "unmoving", "moving"]
W, DOWN, UP, X = [[1, 2], [0, 3]], [[1, -1]], [[2], [-1]], [3, 1]


def reads(word: str, other: str, choice: float, fate: float) -> str:
    """What the model reads at a position, by the two random numbers there."""
    if choice >= 0.15 or fate >= 0.9:
        return word
    return "[MASK]" if fate < 0.8 else other


def vector(numbers) -> str:
    """Numbers in brackets: (2, −2)."""
    return f"({', '.join(map(exact, numbers))})"


def hidden_words_and_an_adapter() -> Sheet:
    chosen = [number < 0.15 for number in CHOICE]
    cost = [-math.log(p) for p in RIGHT]
    loss, of_all = sum(c for c, is_chosen in zip(cost, chosen) if is_chosen) / sum(chosen), sum(cost) / len(cost)
    weight, down, up, x = (torch.tensor(part) for part in (W, DOWN, UP, X))
    merged = weight + up @ down
    beside = [x @ weight.T, (x @ down.T) @ up.T]
    return Sheet(
        title="Hidden words, pieces, an adapter", notebook="14", section="1. Hide a word, and ask only there",
        need=CALCULATOR,
        intro="A word is chosen where its first random number is below 0.15. Its second one decides: below 0.8 it becomes "
        "[MASK], from 0.8 to below 0.9 the other word, and from 0.9 on it stays. Steps 3 and 4 are from sections 2 and 6.",
        given=[Table("Given", ["", *TEXT], [["first number", *map(exact, CHOICE)], ["second number", *map(exact, FATE)],
                                            ["other word", *OTHERS]])],
        formulas=["loss = mean of −ln <i>p</i> over the chosen words", "merged = <i>W</i> + <i>U D</i>",
                  "<i>x W</i><sup>⊤</sup>: each row of <i>W</i> times <i>x</i>"],
        steps=[Table("Step 1: which words are chosen, and what does the model read?", ["", *TEXT],
                     [["chosen?", *blanks(["yes" if one else "no" for one in chosen], str)],
                      ["the model reads", *blanks(map(reads, TEXT, OTHERS, CHOICE, FATE), str)]]),
               Table("Step 2: the loss, and a mistake: the mean over all four words",
                     ["", *TEXT, "loss", "mistake"],
                     [["<i>p</i> of the right word", *map(exact, RIGHT), "", ""],
                      ["−ln <i>p</i>", *blanks([*cost, loss, of_all])]]),
               Table(f"Step 3: the longest pieces from the left, or [UNK]; the vocabulary is {' '.join(PIECES)}",
                     ["", *WORDS],
                     [["pieces", " ".join(longest_pieces(WORDS[0], PIECES)),
                       *blanks([" ".join(longest_pieces(word, PIECES) or ["[UNK]"]) for word in WORDS[1:]], str)]]),
               Table(f"Step 4: an adapter of rank 1. <i>W</i> has the rows {vector(W[0])} and {vector(W[1])}; <i>D</i> = "
                     f"{vector(DOWN[0])}, <i>U</i> = {vector(part[0] for part in UP)}, <i>α</i> = <i>r</i> = 1; <i>x</i> = "
                     f"{vector(X)}", ["", "first", "second"],
                     [["row of <i>U D</i>", *blanks((up @ down).tolist(), vector)],
                      ["row of the merged matrix", *blanks(merged.tolist(), vector)],
                      ["output, by the merged matrix", *blanks((x @ merged.T).tolist(), exact)],
                      ["output, by <i>W</i> plus by <i>D</i> and <i>U</i>",
                       *blanks([f"{exact(one)} + {exact(two)} = {exact(one + two)}".replace("+ −", "− ")
                                for one, two in zip(*(part.tolist() for part in beside))], str)]])],
        question="In step 2 the mistake gives the smaller number. Why isn't that better, and what would the model learn?",
        answer=f"'not' wasn't chosen, so the model reads it and only has to copy it. Counting it lowers {rounded(loss)} to "
        f"{rounded(of_all)}, and training would reward copying.")
