"""Sheets for the computations by hand: `python -m course_tools sheets` writes them (`make sheets`).

Does: define the contents of each sheet, one function per sheet in the order of the notebooks, and write
outputs/sheets/sheets.html and answers.html. Every number is computed here. Does not: lay out a page (see `sheet_pages`).
"""

import argparse
import math
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path

from course_tools.sheets.distillation_sheet import soft_targets_and_calibration
from course_tools.sheets.formulas import fraction, root
from course_tools.sheets.language_model_sheet import bits_and_top_p
from course_tools.sheets.pretraining_sheet import hidden_words_and_an_adapter
from course_tools.sheets.recurrent_attention_sheet import bahdanau_and_alignment
from course_tools.sheets.sheet_numbers import CALCULATOR, blanks, exact, rounded
from course_tools.sheets.sheet_pages import Blank, Sheet, Table, page
from course_tools.sheets.translation_sheet import bleu_and_chrf
from course_utils.byte_pairs import merge
from course_utils.files import write_text
from course_utils.files.paths import output_folder

WORDS = {"not": (0, 1, 0), "dull": (-1, 0, 0), "but": (0, 0, 1), "moving": (1, 0, 0)}      # (token, feature)
FEATURES = ["opinion", "negates", "contrasts"]


def x_table() -> Table:
    """The four words of the course with their three numbers."""
    return Table("Given: <i>x</i>", ["", *FEATURES], [[word, *map(exact, row)] for word, row in WORDS.items()])


def gradient() -> Sheet:
    classes = ["negative", "neutral", "positive"]
    true = {"not": "neutral", "dull": "negative", "but": "neutral", "moving": "positive"}
    error = {word: [Fraction(1, 3) - (true[word] == name) for name in classes] for word in WORDS}   # p - y
    G = [[sum(x[f] * error[word][k] for word, x in WORDS.items()) / len(WORDS) for k in range(3)] for f in range(3)]
    return Sheet(
        title="One gradient", notebook="00", section="5. One gradient on paper", need="a pencil",
        intro="A linear model with <i>W</i> = 0 gives every class the probability 1/3. Which way should each of its nine "
        "weights move?",
        given=[x_table(), Table("Given: the true class", ["", "class"], [[word, name] for word, name in true.items()])],
        formulas=[f"<i>G<sub>fk</sub></i> = {fraction('1', '<i>n</i>')} Σ<sub><i>i</i></sub> <i>x<sub>if</sub></i> "
                  "(<i>p</i> − <i>y</i>)<sub><i>ik</i></sub>",
                  "<i>n</i> = 4 words <i>i</i>; feature <i>f</i>, class <i>k</i>; <i>y</i> is 1 at the true class, else 0"],
        steps=[Table("Step 1: <i>p</i> − <i>y</i>, prediction minus truth (the first row is done)", ["", *classes],
                     [["not", *map(exact, error["not"])],
                      *([word, *blanks(error[word], exact)] for word in ("dull", "but", "moving"))]),
               Table("Step 2: <i>G</i> (the first entry is done)", ["", *classes],
                     [[FEATURES[0], exact(G[0][0]), *blanks(G[0][1:], exact)],
                      *([FEATURES[f], *blanks(G[f], exact)] for f in (1, 2))])],
        question="Add up each row of <i>G</i>. What do you find, and why must it be so?",
        answer=f"The sums are {', '.join(exact(sum(row)) for row in G)}: in each row of p − y the probabilities add up to 1 "
        "and y has a single 1, so the row adds up to 0, and G adds up such rows.")


def log_odds() -> Sheet:
    reviews = [("moving", 1), ("slow but moving", 1), ("dull", 0), ("slow not moving", 0)]
    known = ("not", "dull", "slow", "but", "moving")
    count = {label: Counter(word for text, y in reviews if y == label for word in text.split()) for label in (1, 0)}
    share = {label: {word: Fraction(count[label][word] + 1, count[label].total() + len(known)) for word in known}
             for label in (1, 0)}
    factor = {word: share[1][word] / share[0][word] for word in known}
    product = {text: math.prod(factor[word] for word in text.split())
               for text in ("not dull but moving", "not moving but dull")}
    names = {1: "positive", 0: "negative"}

    def unreduced(label: int, word: str) -> str:
        return f"{count[label][word] + 1}/{count[label].total() + len(known)}"

    return Sheet(
        title="A word counter", notebook="01", section="4. A word counter, by hand", need=CALCULATOR,
        intro="How strongly does each word point to 'positive'? Two of the four reviews are positive, so the prior odds "
        "are 2/2 = 1.",
        given=[Table("Given: four reviews", ["", "positive", "negative"],
                     [[str(i), up[0], down[0]] for i, (up, down) in enumerate(zip(reviews[:2], reviews[2:]), 1)])],
        formulas=["<i>P</i>(word | class) = " + fraction("count + 1", "total + 5"),
                  "log odds = ln(prior odds · likelihood ratio of each word)"],
        steps=[Table("Step 1: how often does each word occur in the reviews of each class?", ["", *known, "total"],
                     [[names[label], *blanks((count[label][word] for word in known), exact),
                       Blank(exact(count[label].total()))] for label in (1, 0)]),
               Table("Step 2: add one ('not' is done), then divide the upper row by the lower",
                     ["", *known],
                     [*([f"<i>P</i>(word | {names[label]})", unreduced(label, "not"),
                         *(Blank(unreduced(label, word)) for word in known[1:])] for label in (1, 0)),
                      ["likelihood ratio", exact(factor["not"]), *blanks(list(factor.values())[1:], exact)]]),
               Table("Step 3: multiply the ratios of the words of two texts that are not among the four",
                     ["", "product", "log odds", "says"],
                     [[text, Blank(rounded(value)), Blank(rounded(math.log(value), signed=True)),
                       Blank(names[int(value > 1)])] for text, value in product.items()])],
        question="One of the two texts praises the film, the other pans it. Why can't this counter tell them apart?",
        answer=f"Both have the same words, and a product doesn't depend on the order of its factors, so both have the log "
        f"odds {' and '.join(rounded(math.log(value), signed=True) for value in product.values())}.")


def merges() -> Sheet:
    times = {"dull": 3, "duller": 2, "fuller": 2, "tell": 1}
    pieces = {word: list(word) for word in times}

    def count_pairs() -> Counter:
        counts = Counter()
        for word, parts in pieces.items():
            for pair in zip(parts, parts[1:]):
                counts[pair] += times[word]
        return counts

    first, rows, learned = count_pairs(), [], []
    for number in range(1, 5):
        counts = count_pairs()
        best = min(counts, key=lambda pair: (-counts[pair], pair))        # ties as in the notebook
        learned.append(best)
        pieces = {word: merge(parts, best, "".join(best)) for word, parts in pieces.items()}
        rows.append([str(number), *blanks([" ".join(best), str(counts[best]), *map(" ".join, pieces.values())], str)])
    new = list("fullest")
    for pair in learned:
        new = merge(new, pair, "".join(pair))
    return Sheet(
        title="Four merges", notebook="02b", section="2. Merging pairs, by hand", need="a pencil",
        intro="Byte pair encoding merges the pair of neighbours that occurs most often, then counts again.",
        given=[Table("Given: a corpus of four words", ["word", *times],
                     [["times", *map(str, times.values())], ["pieces", *map(" ".join, map(list, times))]])],
        formulas=["count of a pair = Σ<sub>words</sub> times · positions in the word"],
        steps=[Table("Step 1: count the pairs of letters ('u l' is done: 3 + 2 + 2)", ["pair", *map(" ".join, first)],
                     [["count", *(str(n) if pair == ("u", "l") else Blank(str(n)) for pair, n in first.items())]]),
               Table("Step 2: four times over, merge the most frequent pair in all words and count again",
                     ["", "pair", "count", *times], rows),
               Table("Step 3: split a new word with the four merges, in their order", ["", "pieces"],
                     [["fullest", Blank(" ".join(new))]])],
        question="'full' is a stem, just like 'dull'. Why doesn't it become a piece, and how is 'fuller' split?",
        answer=f"The program only counts pairs, and 'full' occurs {times['fuller']} times here, 'dull' "
        f"{times['dull'] + times['duller']} times: 'fuller' stays {', '.join(pieces['fuller'])}.")


def row_of_dull() -> Sheet:
    def look_around(query: tuple) -> tuple[list, list, list]:
        scores = [query[0] * key[0] for key in WORDS.values()]             # opinion times opinion
        exps = [math.exp(score) for score in scores]
        return scores, exps, [e / sum(exps) for e in exps]

    def steps(query: tuple) -> list[list]:
        scores, exps, weights = look_around(query)
        return [["score", *blanks(scores, exact), ""],
                ["<i>e</i><sup>score</sup>", *blanks(exps), Blank(rounded(sum(exps)))],
                ["weight", *blanks(weights), Blank(rounded(sum(weights)))]]

    dull, bland = WORDS["dull"], (-2, 0, 0)
    of_dull, of_bland = look_around(dull)[2], look_around(bland)[2]
    context = [sum(weight * value[f] for weight, value in zip(of_dull, WORDS.values())) for f in range(3)]
    return Sheet(
        title="One word looks around", notebook="04", section="2. Six lines",
        need=CALCULATOR, exercise="4.1",
        intro="A word searches with its opinion and is found by it: query and key are the first column of x, and the value "
            "is "
        "the whole row. First 'dull' asks, then another word, 'bland': "
        f"({', '.join(map(exact, bland))}).",
        given=[x_table()],
        formulas=["score = opinion of the query · opinion of the key",
                  "weight = " + fraction("<i>e</i><sup>score</sup>", "sum of all four <i>e</i><sup>score</sup>"),
                  "context = Σ<sub><i>j</i></sub> weight<sub><i>j</i></sub> <i>x<sub>j</sub></i>"],
        steps=[Table("Step 1: 'dull' asks", ["key", *WORDS, "sum"], steps(dull)),
               Table("Step 2: the mean of the four rows of <i>x</i>, weighted by these weights", ["", *FEATURES],
                     [["context of 'dull'", *blanks(context)]]),
               Table("Step 3: 'bland' asks (exercise 4.1)", ["key", *WORDS, "sum"], steps(bland))],
        question="'bland' is like 'dull', but twice as strong. What does that do to its weights, and why?",
        answer=f"They are sharper: every score is twice as large, so the weight of the key 'dull' grows from "
        f"{rounded(of_dull[1])} to {rounded(of_bland[1])} and the other three fall.")


def three_heads() -> Sheet:
    queries = {word: (-4 * row[0], 4, 4) for word, row in WORDS.items()}                   # (token, head)
    keys = list(zip(*WORDS.values()))                                                      # (head, token)
    scores = [[queries["moving"][h] * key for key in keys[h]] for h in range(3)]           # (head, key)
    exps = [[math.exp(score) for score in row] for row in scores]
    weights = [[e / sum(row) for e in row] for row in exps]
    context = [sum(weight * value for weight, value in zip(weights[h], keys[h])) for h in range(3)]
    heads = [f"head {h}, '{name}'" for h, name in enumerate(FEATURES)]
    return Sheet(
        title="Three heads", notebook="05", section="2. Three heads by hand", need=CALCULATOR,
        intro="Each head works on one column of <i>x</i>, so <i>d<sub>head</sub></i> = 1. <i>K</i> and <i>V</i> are "
        "<i>x</i> itself; the queries are chosen.",
        given=[x_table()],
        formulas=["head<sub><i>h</i></sub> = softmax( "
                  + fraction("<i>Q<sub>h</sub> K<sub>h</sub></i><sup>⊤</sup>", root("<i>d<sub>head</sub></i>"))
                  + " ) <i>V<sub>h</sub></i>",
                  "softmax: " + fraction("<i>e</i><sup>score</sup>", "sum of the row's <i>e</i><sup>score</sup>")],
        steps=[Table("Step 1: <i>Q</i>. Head 0 asks with −4 times the opinion, heads 1 and 2 with 4", ["", *WORDS],
                     [[heads[h], *blanks((queries[word][h] for word in WORDS), exact)] for h in range(3)]),
               Table("Step 2: the word 'moving' asks; its scores with the four keys", ["key", *WORDS],
                     [[heads[h], *blanks(scores[h], exact)] for h in range(3)]),
               Table("Step 3: its weights, and what each head returns (the weighted mean of its column)",
                     ["key", *WORDS, "returns"],
                     [[heads[h], *blanks(weights[h]), Blank(rounded(context[h]))] for h in range(3)])],
        question="What does 'moving' receive in the twin, 'not moving but dull'? What can't it know?",
        answer=f"The same, {', '.join(map(rounded, context))}: a head compares words and ignores their positions. So "
        "'moving' can't know whether the 'not' belongs to it.")


def rotation() -> Sheet:
    sine, cosine = 0.8, 0.6                                                 # of the angle that five places add

    def five_on(hand: tuple[float, float]) -> tuple[float, float]:
        return cosine * hand[0] + sine * hand[1], -sine * hand[0] + cosine * hand[1]

    start, other = (0.28, 0.96), (0.0, 1.0)
    five = five_on(start)
    ten = five_on(five)

    def products(name: str, hand: tuple[float, float]) -> list[list]:
        return [[f"sine, from {name}", *blanks((cosine * hand[0], sine * hand[1], five_on(hand)[0]), exact)],
                [f"cosine, from {name}", *blanks((-sine * hand[0], cosine * hand[1], five_on(hand)[1]), exact)]]

    return Sheet(
        title="A step is a rotation", notebook="06", section="3. A step is a rotation",
        need="a pencil or a calculator", exercise="6.2",
        intro="One hand of the clock gives you the sine and the cosine of its angle <i>a</i>. Five positions add an angle "
        "<i>θ</i>. You don't know the position.",
        given=[Table("Given: the hand", ["", "sin <i>a</i>", "cos <i>a</i>"],
                     [["some position", *map(exact, start)], ["position 0", *map(exact, other)]]),
               Table("Given: the step", ["", "sin <i>θ</i>", "cos <i>θ</i>"], [["", exact(sine), exact(cosine)]])],
        formulas=["sin(<i>a</i> + <i>θ</i>) = cos <i>θ</i> · sin <i>a</i> + sin <i>θ</i> · cos <i>a</i>",
                  "cos(<i>a</i> + <i>θ</i>) = −sin <i>θ</i> · sin <i>a</i> + cos <i>θ</i> · cos <i>a</i>"],
        steps=[Table("Step 1: the matrix for five positions", ["", "times sin <i>a</i>", "times cos <i>a</i>"],
                     [["new sine", *blanks((cosine, sine), exact)], ["new cosine", *blanks((-sine, cosine), exact)]]),
               Table("Step 2: five positions further on (exercise 6.2 is the first two rows)",
                     ["", "first product", "second product", "sum"],
                     [*products("some position", start), *products("position 0", other)]),
               Table("Step 3: the same matrix once more, and a check", ["", "sine", "cosine", "sine² + cosine²"],
                     [["some position + 5", *blanks(five), Blank(rounded(math.hypot(*five) ** 2))],
                      ["some position + 10", *blanks(ten), Blank(rounded(math.hypot(*ten) ** 2))]])],
        question="Why could you do this without knowing the position, and what does a rotation leave unchanged?",
        answer="The matrix depends on the number of steps and not on the starting position. The length stays the same, so "
        f"sine² + cosine² is still {rounded(math.hypot(*five) ** 2)}.")


def layer_norm() -> Sheet:
    gamma, beta, epsilon = (1, 2, 3), (0, 0.5, -1), 1e-5

    def parts(x: tuple) -> tuple:
        mean = sum(x) / len(x)
        deviations = [value - mean for value in x]
        variance = sum(value**2 for value in deviations) / len(x)
        normal = [value / math.sqrt(variance + epsilon) for value in deviations]
        return mean, deviations, variance, normal

    token, tenfold = (1, 2, 6), (10, 20, 60)
    mean, deviations, variance, normal = parts(token)
    features = [f"feature {i}" for i in range(3)]
    return Sheet(
        title="Layer norm of one vector", notebook="07", section="4. Layer norm, by hand",
        need=CALCULATOR,
        intro="One word's vector is brought to mean 0 and variance 1, then scaled and shifted feature by feature. "
        "<i>d</i> = 3; <i>ε</i> = 0.00001 is too small to matter here.",
        given=[Table("Given", ["", *features],
                     [["<i>x</i>", *map(exact, token)], ["<i>γ</i>", *map(exact, gamma)], ["<i>β</i>", *map(exact, beta)]])],
        formulas=["<i>μ</i> = " + fraction("1", "<i>d</i>") + " Σ<sub><i>i</i></sub> <i>x<sub>i</sub></i> &emsp; "
                  "<i>σ</i>² = " + fraction("1", "<i>d</i>") + " Σ<sub><i>i</i></sub> (<i>x<sub>i</sub></i> − <i>μ</i>)²",
                  "LN(<i>x</i>) = " + fraction("<i>x</i> − <i>μ</i>", root("<i>σ</i>² + <i>ε</i>"))
                  + " ⊙ <i>γ</i> + <i>β</i>"],
        steps=[Table("Step 1: deviations and their squares", ["", *features, "mean", "root"],
                     [["<i>x</i>", *map(exact, token), Blank(exact(mean)), ""],
                      ["<i>x</i> − <i>μ</i>", *blanks(deviations, exact), Blank(exact(sum(deviations) / 3)), ""],
                      ["(<i>x</i> − <i>μ</i>)²", *blanks((value**2 for value in deviations), exact),
                       *blanks((variance, math.sqrt(variance)))]]),
               Table("Step 2: divide, then scale and shift", ["", *features],
                     [["divided by the root", *blanks(normal)],
                      ["⊙ <i>γ</i> + <i>β</i>", *blanks(g * n + b for g, n, b in zip(gamma, normal, beta))]]),
               Table(f"Step 3: another vector, ({', '.join(map(exact, tenfold))}). Must you work it out?", ["", *features],
                     [["divided by the root", *blanks(parts(tenfold)[3])]])],
        question="What does layer norm forget about a vector, and why can't <i>γ</i> and <i>β</i> bring it back?",
        answer="Its length (and its mean): ten times the vector gives the same result. All words share the same γ and β, so "
        "they can't restore what a single word had.")


def clipping() -> Sheet:
    limit, first, second = 2.6, (3, -4, 12), (0.3, -0.4, 1.2)

    def clip(gradient: tuple, limit: float) -> tuple[float, list]:
        norm = math.hypot(*gradient)
        return norm, [g * limit / norm if norm > limit else g for g in gradient]

    def steps(gradient: tuple) -> list[list]:
        norm, clipped = clip(gradient, limit)
        squares = [g**2 for g in gradient]
        return [["squares", *blanks([*squares, sum(squares), norm, min(1, limit / norm)], exact)],
                ["what is left", *blanks(clipped, exact), "", "", ""]]

    names, example = ["weight", "weight", "bias"], (3, 4)
    apart = [*clip(first[:2], limit)[1], *clip(first[2:], limit)[1]]
    return Sheet(
        title="Clipping", notebook="08", section="3. Train it",
        need="a pencil or a calculator",
        intro=f"A model has a weight of two numbers and a bias of one; max_norm is {exact(limit)}. Each batch is clipped by "
        f"itself. An example, with max_norm 1: ({', '.join(map(exact, example))}) has the norm "
        f"{exact(math.hypot(*example))} and becomes ({', '.join(map(exact, clip(example, 1)[1]))}).",
        given=[Table("Given: the gradients", ["", *names],
                     [["batch 1", *map(exact, first)], ["batch 2", *map(exact, second)]])],
        formulas=["norm = " + root("Σ<sub><i>i</i></sub> <i>g<sub>i</sub></i>²") + ", over all three numbers",
                  "factor = " + fraction("max_norm", "norm") + " where norm &gt; max_norm, else 1"],
        steps=[Table("Step 1: batch 1", ["", *names, "sum", "norm", "factor"], steps(first)),
               Table("Step 2: batch 2", ["", *names, "sum", "norm", "factor"], steps(second)),
               Table("Step 3: a mistake. In batch 1, the weight and the bias are clipped separately",
                     ["", *names], [["what is left", *blanks(apart, exact)]])],
        question="What does the mistake in step 3 change that clipping should leave alone?",
        answer=f"The direction: in the gradient the bias is {exact(first[2] / first[0])} times the weight's first number, "
        f"after the mistake {rounded(apart[2] / apart[0])} times.")


def tfidf() -> Sheet:
    reviews = ["not dull but moving", "not moving but dull", "moving", "dull"]
    df = {word: sum(word in review.split() for review in reviews) for word in WORDS}
    idf = {word: math.log((1 + len(reviews)) / (1 + df[word])) + 1 for word in WORDS}

    def steps(review: str) -> list[list]:
        tf = [review.split().count(word) for word in WORDS]
        raw = [n * idf[word] for n, word in zip(tf, WORDS)]
        length = math.hypot(*raw)
        return [["tf", *blanks(tf, exact), ""], ["tf · idf", *blanks(raw), Blank(rounded(length))],
                ["entry", *blanks(value / length for value in raw), ""]]

    labels = ["positive", "negative", "positive", "negative"]
    return Sheet(
        title="An entry of TF-IDF", notebook="09", section="3. The opponent that counts words", need=CALCULATOR,
        exercise="9.2",
        intro="A review becomes a row with one number for each word: how often it occurs (tf) times its idf, divided by the "
        "length of the row.",
        given=[Table("Given: <i>n</i> = 4 reviews", ["", "review", "label"],
                     [[str(i), *row] for i, row in enumerate(zip(reviews, labels))])],
        formulas=["idf = ln " + fraction("1 + <i>n</i>", "1 + df") + " + 1", "df: reviews with the word",
                  "length = " + root("Σ (tf · idf)²")],
        steps=[Table("Step 1: the idf", ["", *WORDS],
                     [["df", *blanks(df.values(), exact)], ["idf", *blanks(idf.values())]]),
               Table("Step 2: the row of review 0, 'not dull but moving'", ["", *WORDS, "length"], steps(reviews[0])),
               Table("Step 3: a fifth review, 'dull dull but moving', with the idf of step 1 (exercise 9.2)",
                     ["", *WORDS, "length"], steps("dull dull but moving"))],
        question="What is the row of review 1, and what does that mean for a model that sees only the rows?",
        answer="The same as that of review 0, since both have the same words: any such model gives both reviews the same "
        "answer, but their labels are different.")


SHEETS = [gradient, log_odds, merges, row_of_dull, three_heads, rotation, layer_norm, clipping, tfidf,
          bits_and_top_p, hidden_words_and_an_adapter, soft_targets_and_calibration, bahdanau_and_alignment, bleu_and_chrf]


def write_sheets(folder: Path | None = None) -> list[Path]:
    """Write sheets.html, with blanks, and answers.html, with the blanks filled in; return the two files."""
    folder = folder or output_folder() / "sheets"
    sheets = [sheet() for sheet in SHEETS]
    written = []
    for name, title, filled in (("sheets", "Sheets to work on paper", False), ("answers", "Answers to the sheets", True)):
        written.append(folder / f"{name}.html")
        write_text(written[-1], page(title, sheets, filled))
    return written


def main(arguments: list[str] | None = None) -> int:
    """Write the sheets and their answers; return the exit status."""
    argparse.ArgumentParser(description=main.__doc__).parse_args(arguments)     # takes no arguments: any is refused
    sheets, answers = (os.path.relpath(path) for path in write_sheets())
    print(f"{len(SHEETS)} sheets to print: {sheets}; their answers: {answers}")
    return 0
