"""The sheet on notebook 17: two scores of a translation by hand, BLEU and chrF (Popović 2015).

chrF is the F-score of character n-grams that counts recall β² = 4 times as much as precision, as sacrebleu computes it:
https://aclanthology.org/W15-3049.
"""

import math

from course_tools.sheets.formulas import root
from course_tools.sheets.sheet_numbers import CALCULATOR, blanks, rounded
from course_tools.sheets.sheet_pages import Blank, Sheet, Table
from course_utils.encoder_decoder import ngrams


def bleu_and_chrf() -> Sheet:
    reference = "la rue est noire"
    translations = {"A": "la rue est noir", "B": "la rue est vide", "C": "la rue noire"}

    def matches(mine: list[str], n: int, wanted: list[str]) -> tuple[int, int, int]:
        own, theirs = ngrams(mine, n), ngrams(wanted, n)
        return sum((own & theirs).values()), own.total(), theirs.total()

    def letters(text: str) -> list[str]:
        return list(text.replace(" ", ""))

    words, characters, scores = [], [], {}
    for name, text in translations.items():
        mine, wanted = text.split(), reference.split()
        shared = [matches(mine, n, wanted) for n in (1, 2)]
        brevity = min(1.0, math.exp(1 - len(wanted) / len(mine)))
        bleu = 100 * brevity * math.sqrt(math.prod(hit / own for hit, own, _ in shared))
        first, second = (f"{hit}/{own}" for hit, own, _ in shared)
        words.append([name, first if name == "A" else Blank(first), Blank(second), *blanks([brevity, bleu])])
        counts = [matches(letters(text), n, letters(reference)) for n in (1, 2)]
        single, pairs = (list(map(str, count)) for count in counts)
        characters.append([name, *(single if name == "A" else blanks(single, str)), *blanks(pairs, str)])
        precision, recall = (sum(hit / (own, theirs)[of] for hit, own, theirs in counts) / 2 for of in (0, 1))
        scores[name] = bleu, precision, recall, 100 * 5 * precision * recall / (4 * precision + recall)
    return Sheet(
        title="BLEU and chrF", notebook="17", section="6. BLEU", need=CALCULATOR,
        intro="BLEU compares words, chrF characters without spaces (Popović 2015). Here both stop at 2-grams (usually at 4 "
        "words, 6 characters). An n-gram is shared at most as often as the reference has it.",
        given=[Table("Given", ["", "text"], [["reference", reference], *map(list, translations.items())])],
        formulas=["BLEU = 100 · brevity · " + root("<i>p</i><sub>1</sub> <i>p</i><sub>2</sub>")
                  + ", where <i>p<sub>n</sub></i> is shared / own",
                  "brevity = <i>e</i><sup>1 − <i>r</i>/<i>c</i></sup> if <i>c</i> own words &lt; <i>r</i>, the reference's; "
                  "else 1",
                  "<i>P</i>: mean of shared / own; <i>R</i>: of shared / reference's",
                  "chrF = 100 · 5 <i>P R</i> / (4 <i>P</i> + <i>R</i>)"],
        steps=[Table("Step 1: words (<i>p</i><sub>1</sub> of A is done: 3 of its 4 words are in the reference)",
                     ["", "<i>p</i><sub>1</sub>", "<i>p</i><sub>2</sub>", "brevity", "BLEU"], words),
               Table("Step 2: characters, then pairs of characters (the characters of A are done)",
                     ["", "shared", "own", "reference's", "pairs: shared", "own", "reference's"], characters),
               Table("Step 3: <i>P</i> and <i>R</i> are means over the characters and the pairs",
                     ["", "<i>P</i>", "<i>R</i>", "chrF"],
                     [[name, *blanks(score[1:])] for name, score in scores.items()])],
        question="A forgets a letter, B has the wrong word. Why does BLEU give both the same score, and what does chrF see?",
        answer=f"For BLEU a word is right or wrong, so both get {rounded(scores['A'][0])}. In characters, A's 'noir' is "
        f"nearly 'noire', so chrF gives A {rounded(scores['A'][3])} and B {rounded(scores['B'][3])}.")
