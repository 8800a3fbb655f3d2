"""The sheet on notebook 16: one step of Bahdanau's attention, and the alignment error of four words."""

import math

from course_tools.sheets.formulas import fraction
from course_tools.sheets.sheet_numbers import CALCULATOR, blanks, exact, rounded
from course_tools.sheets.sheet_pages import Blank, Sheet, Table
from course_utils.recurrent_attention import alignment_error_rate

__all__ = ["bahdanau_and_alignment"]

KEYS = {"the": (0.0, 0.0), "red": (1.0, 0.5), "car": (0.5, 1.0)}             # also the states
QUERY, V = (-1.0, 0.0), (1.0, 3.0)
ENGLISH, FRENCH = ["the", "end", "of", "the ", "film"], ["la", "fin", "du", "film"]      # "the " is the second one
WEIGHTS = [[0.6, 0.1, 0.0, 0.3, 0.0], [0.1, 0.8, 0.1, 0.0, 0.0], [0.0, 0.1, 0.5, 0.3, 0.1], [0.0, 0.0, 0.1, 0.5, 0.4]]
GOLD = {(0, 0), (1, 1), (2, 2), (3, 2), (4, 3)}                              # (source, target)


def bahdanau_and_alignment() -> Sheet:
    bent = {word: [math.tanh(q + k) for q, k in zip(QUERY, key)] for word, key in KEYS.items()}
    score = {word: sum(a * b for a, b in zip(V, row)) for word, row in bent.items()}
    first = {word: [*row, score[word]] for word, row in bent.items()}
    total = sum(map(math.exp, score.values()))
    weight = {word: math.exp(one) / total for word, one in score.items()}
    context = [sum(weight[word] * key[k] for word, key in KEYS.items()) for k in range(2)]
    places = [ENGLISH[0] + " (1st)", *ENGLISH[1:3], ENGLISH[3] + "(2nd)", ENGLISH[4]]
    chosen = [max(range(len(row)), key=row.__getitem__) for row in WEIGHTS]
    links = {(source, target) for target, source in enumerate(chosen)}
    right = ["yes" if (source, target) in GOLD else "no" for target, source in enumerate(chosen)]
    error = alignment_error_rate([links], [GOLD])
    lowest = alignment_error_rate([GOLD - {(3, 2)}], [GOLD])
    return Sheet(
        title="A Bahdanau step, and an alignment error", notebook="16", section="2. Look back", need=CALCULATOR,
        intro="A decoder has written 'la' and is about to write 'voiture'. Its query and the keys are already projected, "
        "and each state is its key. Below that, the weights of another sentence, a row for each French word that's written. "
        "Gold links la–the (1st), fin–end, du–of, du–the (2nd) and film–film.",
        given=[Table("Given: keys, query, <i>v</i>", ["", "1", "2"],
                     [*([word, *map(exact, key)] for word, key in KEYS.items()),
                      ["query", *map(exact, QUERY)], ["<i>v</i>", *map(exact, V)]]),
               Table("Given: weights", ["", *places], [[word, *map(exact, row)] for word, row in zip(FRENCH, WEIGHTS)])],
        formulas=["<i>e<sub>j</sub></i> = <i>v</i> · tanh(query + key<sub><i>j</i></sub>), tanh <i>x</i> = "
                  + fraction("<i>e</i><sup>2<i>x</i></sup> − 1", "<i>e</i><sup>2<i>x</i></sup> + 1"),
                  "weights: softmax of the scores; context: Σ<sub><i>j</i></sub> weight<sub><i>j</i></sub> · "
                  "state<sub><i>j</i></sub>",
                  "AER = 1 − " + fraction("2 · links that are gold", "links + gold links")],
        steps=[Table("Step 1: tanh(query + key), the score, and the weight ('the' has its score)",
                     ["", "tanh: 1", "2", "score", "<i>e</i><sup>score</sup>", "weight"],
                     [[word, *(map(rounded, known) if word == "the" else blanks(known)),
                       *blanks([math.exp(score[word]), weight[word]])] for word, known in first.items()]),
               Table("Step 2: the context", ["", "1", "2"], [["context", *blanks(context)]]),
               Table("Step 3: link each French word to the English word with the largest weight",
                     ["", *FRENCH], [["linked to", places[chosen[0]], *blanks([places[j] for j in chosen[1:]], str)],
                                     ["gold?", right[0], *blanks(right[1:], str)]]),
               Table("Step 4: count", ["", "links", "gold links", "links that are gold", "AER"],
                     [["", *blanks([len(links), len(GOLD), len(links & GOLD)], str), Blank(rounded(error))]])],
        question="How low could the AER get here, with one link for each French word? Why not 0?",
        answer=f"{rounded(lowest)}: 'du' has two gold links, and one link a word finds only one of them.")
