"""Exercises of notebook 11, attention as explanation. The answers stand beside it, in `answers`."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import spread
from course_exercises.n11 import probes

# ---------------------------------------------------------------- 11.1 average precision

def _ap(case: Case) -> str:
    scores, evidence = case.inputs
    ranks = (scores[evidence][:, None] <= scores).sum(dim=1).sort().values.tolist()
    found = f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}" if len(ranks) > 1 else f"rank {ranks[0]}"
    return (f"you give {case.answer.item():.4f} for evidence at {found} of {len(scores)}, expected "
            f"{case.expected.item():.4f}.")


PRECISION = Exercise(
    probes=probes.precision_probes, forbidden=("sklearn.metrics.average_precision_score",
    "sklearn.metrics.precision_recall_curve", "course_utils.explain.agreement"),
    signature="average_precision(scores (token,), evidence (token,), True = evidence) -> float",
    mistakes=(
        Mistake("precision-at-k", _ap, "That is the precision at one rank, the number of evidence tokens. It ignores "
                "everything after that rank: take the precision at each evidence token, then the mean."),
        Mistake("ascending", _ap, "The lowest score came first. argsort sorts in ascending order unless you tell it "
                "otherwise."),
        Mistake("absolute", _ap, "The scores were ranked by their absolute value. A negative score speaks against the "
                "verdict: it belongs at the end of the list."),
        Mistake("not-sorted", _ap, "The tokens are still in the order of the text, or only one of the two lists was "
                "sorted. Put scores and evidence in the same order."),
        Mistake("all-ranks", _ap, "The precisions of all ranks were averaged. Only the ranks with an evidence token "
                "count."),
        Mistake("divided-by-words", _ap, "The right precisions were added and divided by the number of tokens. Divide by "
                "the number of evidence tokens, so that a perfect order gives 1."),
        Mistake("not-divided", _ap, "The right precisions were added; divide by the number of evidence tokens, so that a "
                "perfect order gives 1."),
        Mistake("auroc", _ap, "That is the area under the ROC curve: how often an evidence token comes before one that "
                "isn't. That's a fair measure too, but its chance level is one half; the exercise asks for average "
                "precision."),
        Mistake("trapezoid", _ap, "That is the area under straight lines between the points of the curve. They contain "
                "precisions that no rank has; take the precision at each evidence token, in steps."),
        Mistake("interpolated", _ap, "You took the best precision at this rank or any later one (as old retrieval contests "
                "did). The exercise asks for the precision at the rank itself."),
        Mistake("first-hit", _ap, "That is one divided by the rank of the first evidence token. The others count too."),
        Mistake("rank-too-large", _ap, "The ranks are one too large. The first token in the list has rank 1: an evidence "
                "token there has precision 1."),
        Mistake("hit-not-counted", _ap, "The evidence token itself was not counted among those found. Count it before you "
                "divide."),
        Mistake("recall", _ap, "That is the mean of the recall: how many of the evidence tokens are found down to a rank. "
                "Divide by the rank, not by their number, and only at evidence tokens."),
        Mistake("recall-as-weight", _ap, "The precisions of all ranks were weighted by the recall. In the formula the "
                "weight is how much the recall grows at a rank, and it grows only at evidence tokens."),
        Mistake("recall-at-hits", _ap, "The precisions were weighted by the recall. In the formula the weight is how much "
                "the recall grows: the same at each evidence token."),
        Mistake("best-precision", _ap, "That is the largest precision of any rank. Take the mean over the evidence tokens."),
    ),
    properties=(
        Property(lambda case: not 0 <= case.answer <= 1 + 1e-6, _ap, "A mean of proportions lies between 0 and 1."),
        Property(lambda case: case.expected > 1 - 1e-9 and case.answer < 1 - 1e-4, _ap, "All the evidence tokens come "
                 "first. No order could be better, so the result is 1."),
        Property(lambda case: abs(case.answer - case.expected) > 1e-4, _ap, "For each of these ranks, write down how many "
                 "have been found by then, divide by the rank, and take the mean."),
    ),
    hints=(
        "Example: evidence tokens at ranks 1 and 4. Precisions 1/1 and 2/4, average precision 0.75.",
        "scores.argsort(descending=True) gives the order; the evidence in this order is a row of hits.",
        "The cumsum of the hits says how many are found by each rank; divide by 1, 2, 3, …, and keep only the positions of "
        "the hits.",
    ),
)

# ---------------------------------------------------------------- a judge of texts, for 11.2 and 11.3

# ---------------------------------------------------------------- 11.2 leave one out


def _fall(case: Case) -> str:
    """The token whose number is furthest from right."""
    got, right = case.answer, case.expected
    i = int((got - right).abs().argmax())
    return f"{case.inputs[1][i]!r} (token {i}) gets {got[i]:.4f}, expected {right[i]:.4f}."


def _off(case: Case) -> bool:
    return bool((case.answer - case.expected).abs().max() > 1e-4)


def _twice(case: Case) -> str:
    """The same for a word that stands there twice."""
    got, right, tokens = case.answer, case.expected, case.inputs[1]
    gaps = [(abs(got[i] - right[i]).item(), i) for i, token in enumerate(tokens) if tokens.count(token) > 1]
    i = max(gaps)[1] if gaps else 0
    return f"{tokens[i]!r} (token {i} of {len(tokens)}) gets {got[i]:.4f}, expected {right[i]:.4f}."


def _range(case: Case) -> str:
    return f"your numbers run from {case.answer.min():.3f} to {case.answer.max():.3f}."


LEAVE = Exercise(
    probes=probes.leave_probes, signature="leave_one_out(score, tokens) -> list of floats, one for each token",
    mistakes=(
        Mistake("sign", _fall, "The sign is reversed. A token that supports the verdict must get a positive number: the "
                "score of all tokens minus the score without it."),
        Mistake("absolute", _fall, "The sign is gone. A token that speaks against the verdict gets a negative number; when "
                "you rank tokens, it mustn't look like a reason for the verdict."),
        Mistake("not-subtracted", _fall, "That is the score without the token. It is low where the token matters; the "
                "importance is how far the score fell."),
        Mistake("relative", _fall, "You divided by the score of all tokens. The exercise asks for the plain difference."),
        Mistake("ratio", _fall, "That is a ratio of scores, near one for every token. The exercise asks for the "
                "difference."),
        Mistake("first-of-its-kind", _twice, "The word occurs twice, and the first one was removed both times: list.remove "
                "and list.index look for the word. Remove by position: tokens[:i] and what comes after token i."),
        Mistake("all-of-its-kind", _twice, "The word occurs twice, and both were removed at once. Leave out position i, "
                "not every token that is equal."),
        Mistake("replaced", _fall, "The token was replaced with something else, such as <unk>. That is a fair method too, "
                "but then the model reads an extra token; the exercise asks for the list without the token."),
        Mistake("cut-after", _fall, "Everything from this token onwards was left out. What comes after it is still part of "
                "the text: tokens[:i] is only the first part."),
        Mistake("cut-before", _fall, "Everything up to the token was left out: only tokens[i + 1:] was scored, or tokens "
                "were taken out one after another and never put back. Each time, only one token is missing from the "
                "list."),
        Mistake("two-removed", _fall, "Two tokens were left out, the one asked for and the next. tokens[i + 1:] begins "
                "directly after token i."),
        Mistake("next-removed", _fall, "The next token was left out, and this one stayed. tokens[:i] ends directly before "
                "token i."),
        Mistake("none-removed", lambda case: f"all your numbers are {case.answer.abs().max():.3f}.",
                "The list was put back together with nothing missing: the second part should begin at i + 1."),
        Mistake("token-alone", _fall, "That is the score of the token alone. Alone, it has no context: 'not' by itself has "
                "nothing to flip."),
        Mistake("all-but-alone", _fall, "You compared the whole text with the token alone, the reverse of what is asked: "
                "compare with everything else."),
        Mistake("steps", _fall, "That is how the score changes as the text is read token by token. The exercise asks what "
                "is lost when one token is missing from the whole text."),
        Mistake("shares", lambda case: f"your numbers sum to {case.answer.sum():.3f}.", "They were divided by their sum. "
                "Differences of scores don't have to sum to one, and if their sum is near zero, dividing makes them "
                "explode: leave them as they are."),
        Mistake("sorted", _fall, "These are the right numbers in the wrong order: they are sorted. Number i belongs to "
                "token i."),
    ),
    properties=(
        Property(lambda case:
                 case.answer.sort().values.sub(case.expected.sort().values).abs().max()
                 < 1e-4 < (case.answer - case.expected).abs().max(), _fall, "These are the right numbers in the wrong "
                 "order: number i belongs to token i."),
        Property(lambda case: case.answer.numel() > 1 and case.answer.max() - case.answer.min() < 1e-6, _range,
                 "All tokens get the same number. Look at which list is scored for token i."),
        Property(lambda case: case.answer.abs().max() > 1, _range, "`score` returns a probability here, and two "
                 "probabilities differ by at most one."),
        Property(lambda case: len(case.inputs[1]) > 1 and _off(case), _fall, "Print the list that you score for this "
                 "token: it must contain all the others, in order."),
        Property(_off, lambda case: f"texts of several tokens are right. In a text of one, {_fall(case)}",
                 "Without its only token, the list is empty, and `score` accepts that: score(tokens) minus score([])."),
    ),
    hints=(
        "Start with a single token: which list is scored, and what is subtracted from what?",
        "The list without token i has two parts: what comes before it, and what comes after.",
        "tokens[:i] + tokens[i + 1:] is a new list; `tokens` itself doesn't change.",
    ),
)

# ---------------------------------------------------------------- 11.3 comprehensiveness

def _mean_fall(case: Case) -> str:
    score, tokens, _, shares = case.inputs
    return (f"you give {case.answer.item():.4f}, expected {case.expected.item():.4f} ({len(tokens)} tokens, shares "
            f"{', '.join(map(str, shares))}; all tokens score {score(tokens):.4f}).")


COMPREHENSIVENESS = Exercise(
    probes=probes.comprehensiveness_probes,
    signature="comprehensiveness_of(score, tokens, importances (a list, one for each token), shares (a list, each between 0 "
    "and 1)) -> float",
    mistakes=(
        Mistake("sufficiency", _mean_fall, "You kept the top tokens and dropped the others: that is sufficiency, where a "
                "small loss is good. Here you remove the top tokens."),
        Mistake("not-subtracted", _mean_fall, "That is the mean score of what is left. The exercise asks how far it fell "
                "from the score of all tokens."),
        Mistake("sign", _mean_fall, "The sign is reversed: take the score of all tokens minus the score of what is left, "
                "so that a good explanation gets a high number."),
        Mistake("no-token", _mean_fall, "The number was rounded down. A small share of a short text is then no token at "
                "all, and the loss is zero for any explanation. Round up."),
        Mistake("rounded-down", _mean_fall, "The number was rounded down, to at least one. Here share times number of "
                "tokens is rounded up."),
        Mistake("rounded", _mean_fall, "The number was rounded to the nearest whole number. Here share times number of "
                "tokens is rounded up."),
        Mistake("one-token", _mean_fall, "One token was removed for every share. The number to remove is share times "
                "number of tokens, rounded up."),
        Mistake("one-too-many", _mean_fall, "One token too many is removed when share times number of tokens is whole: a "
                "whole number rounded up is itself."),
        Mistake("least-first", _mean_fall, "The least important tokens were removed. Sorting is ascending unless you say "
                "otherwise."),
        Mistake("absolute", _mean_fall, "The tokens were ranked by absolute value. A token with a negative number speaks "
                "against the verdict; without it the score rises."),
        Mistake("first-tokens", _mean_fall, "The first tokens of the text were removed, whatever their importances. Sort "
                "the positions by importance first."),
        Mistake("summed", _mean_fall, "The losses were added. Divide by the number of shares, so that more shares don't "
                "make an explanation look better."),
        Mistake("weighted-by-share", _mean_fall, "The losses were weighted by their shares. Here each counts equally: take "
                "a plain mean."),
        Mistake("divided-by-share", _mean_fall, "The sum of the losses was divided by the sum of the shares. Divide by how "
                "many shares there are."),
        Mistake("last-share", _mean_fall, "Only the last share counts in your result. Collect the losses in a list, or "
                "check where your `return` is."),
        Mistake("largest-share", _mean_fall, "The largest of the losses was returned. The exercise asks for their mean."),
        Mistake("absolute-losses", _mean_fall, "The losses have lost their signs. If the score rises without the top "
                "tokens, the explanation was bad, and the number must show it."),
        Mistake("relative", _mean_fall, "The losses were divided by the score of all tokens. The exercise asks for the "
                "plain difference."),
        Mistake("words-not-tokens", _mean_fall, "Removing a token also removed every other token of the same word. Each "
                "position has its own importance: compare positions, not words."),
        Mistake("replaced", _mean_fall, "The tokens were replaced with something else, such as <unk>. That is a fair "
                "method too, but the exercise asks for the list without them."),
        Mistake("order-lost", _mean_fall, "What is left was scored in order of importance, not in the order of the text. "
                "To a model with positions that is a different text: keep the order."),
        Mistake("order-lost-upwards", _mean_fall, "What is left was scored from the least important token to the most "
                "important, not in the order of the text. To a model with positions that is a different text: keep the "
                "order."),
        Mistake("repeats-lost", _mean_fall, "A word that is left twice was scored once, as happens with set() or a dict of "
                "words. Each position is a token of its own."),
        Mistake("never-restored", _mean_fall, "Each share was taken from what the previous one had left. Start from all "
                "the tokens each time."),
        Mistake("share-of-importance", _mean_fall, "Tokens were removed until they added up to that share of the "
                "importance. The exercise asks for a share of the number of tokens."),
    ),
    properties=(
        Property(lambda case: abs(case.answer) > 1, _mean_fall, "Two probabilities differ by at most one, and a mean of "
                 "such differences can't be larger either."),
        Property(lambda case: case.answer * case.expected < 0 and min(abs(case.answer), abs(case.expected)) > 0.05,
                 _mean_fall, "The sign differs too. Which tokens are removed, and what is subtracted from what?"),
        Property(lambda case: 0 not in case.inputs[3] and abs(case.answer - case.expected) > 1e-4, _mean_fall,
                 "Take one share and print the tokens that are left: how many, which, in which order?"),
        Property(lambda case: abs(case.answer - case.expected) > 1e-4, _mean_fall, "Only a list with a share of 0 comes "
                 "out wrong. That share removes no token, so its loss is 0, and it counts in the mean."),
    ),
    hints=(
        "Write it for one share first: a function of the tokens, the importances and a number of tokens to take out.",
        "sorted(range(n), key=…, reverse=True) gives the positions by importance. Make a set of the first few: those are "
        "the ones to remove.",
        "What is left is a list comprehension over enumerate(tokens): it keeps the order automatically.",
        "math.ceil rounds up. Share times number is above zero, so at least one token is removed.",
    ),
)

# ---------------------------------------------------------------- 11.4 one entry of a rollout

def _one(case: Case) -> str:
    return f"{case.answer.item():.4g}"


ENTRY = Exercise(
    kind="number", tolerance=1e-3, signature="one number, to two or three decimals",
    mistakes=(
        Mistake("no-residual", lambda case: f"{_one(case)} is the entry of A₁ A₀.", "The residual is missing: a word also "
                "keeps itself in each layer. Mix each map with the identity first, ½(A + I)."),
        Mistake("wrong-order", lambda case: f"{_one(case)} is the entry of Ã₀ Ã₁.", "The order is reversed. The second "
                "layer's '.' looks at what the first layer produced: take the row of the last layer and the column of the "
                "first."),
        Mistake("no-residual-wrong-order", lambda case: f"{_one(case)} is the entry of A₀ A₁.",
                "Two things are wrong: the residual is missing, ½(A + I), and the last layer belongs on the left."),
        Mistake("no-half", lambda case: f"{_one(case)} is the entry of (A₁ + I)(A₀ + I).", "Its rows sum to four. The half "
                "makes each layer's rows sum to one."),
        Mistake("half-once", lambda case: f"{_one(case)} has the half in one layer only.", "Each of the two layers is ½(A "
                "+ I), so together they give a quarter."),
        Mistake("other-way-round", lambda case: f"{_one(case)} is the entry in row 'not', column '.'.",
                "Rows are queries: the exercise asks how much of 'not' is in '.', so row '.', column 'not'."),
        Mistake("other-row", lambda case: f"{_one(case)} is the entry in row 'dull'.",
                "The exercise asks for the row of '.', the third."),
        Mistake("mean-of-layers", lambda case: f"{_one(case)} is the mean of the two layers' entries.",
                "Layers work one after another: what '.' takes from 'dull' contains what 'dull' took from 'not'. That is a "
                "matrix product."),
        Mistake("mean-without-residual", lambda case: f"{_one(case)} is the mean of the two maps' entries.",
                "Layers work one after another, so their matrices are multiplied, each mixed with the identity first."),
        Mistake("entry-by-entry", lambda case: f"{_one(case)} is the product of two single entries.",
                "A matrix product doesn't multiply entries at the same position: go along a row of the last layer and down "
                "a column of the first."),
        Mistake("maps-entry-by-entry", lambda case: f"{_one(case)} is the product of two single weights.",
                "A matrix product sums over all the words in between, and each map is mixed with the identity first."),
        Mistake("residual-at-the-end", lambda case: f"{_one(case)} mixes the identity in once, after the product.",
                "Each layer has a residual of its own: first ½(A + I), then the product."),
        Mistake("residual-in-first", lambda case: f"{_one(case)} has the residual in the first layer only.",
                "The second layer has one as well: take ½(A + I) of both."),
        Mistake("residual-in-second", lambda case: f"{_one(case)} has the residual in the second layer only.",
                "The first layer has one as well: take ½(A + I) of both."),
        Mistake("one-path", lambda case: f"{_one(case)} is the path through 'dull' alone.", "Two more paths lead from "
                "'not' to '.': through 'not' itself, which keeps its vector in the first layer, and through '.', which "
                "takes it in the first layer already. Add all three."),
    ),
    properties=(
        Property(lambda case: not 0 <= case.answer <= 1, lambda case: f"{_one(case)} does not lie between 0 and 1.",
                 "The rows of ½(A + I) sum to one, and so do the rows of their product."),
        Property(lambda case: min(abs(case.answer - value) for value in (0.05, 0.1, 0.2)) < 1e-3, lambda case:
                 f"{_one(case)} is an entry of a single layer.", "The rollout multiplies both."),
        Property(lambda case: case.answer < 0.12, lambda case: f"{_one(case)} is less than one of its parts.",
                 "The path through 'dull' alone contributes 0.40 · 0.30, and no path contributes less than zero."),
    ),
    hints=(
        "First ½(A + I): halve every entry, and add ½ on the diagonal.",
        "From the second layer you need the row of '.', from the first the column of 'not'.",
        "They are 0.05, 0.40, 0.55 and 0.90, 0.30, 0.10. Multiply in pairs and add.",
    ),
)

# ---------------------------------------------------------------- 11.5 repair: rollout

def _row_sums(case: Case) -> str:
    return f"with {len(case.inputs[0])} layers your rows sum to {spread(case.answer.sum(dim=-1))}."


def _several(case: Case) -> bool:
    return len(case.inputs[0]) > 1


def _wrong_entry(case: Case) -> str:
    gap = (case.answer - case.expected).abs()
    row, column = divmod(int(gap.argmax()), gap.shape[1])
    return f"out[{row}, {column}] is {case.answer[row, column]:.3f}, expected {case.expected[row, column]:.3f}."


def _sums_and_entry(case: Case) -> str:
    return f"{_row_sums(case)[:-1]}, and {_wrong_entry(case)}"


ROLLOUT = Exercise(
    given="two-things", probes=probes.rollout_probes, forbidden=("course_utils.explain.rollout",),
    signature="rolled_out(attentions (layers, heads, query, key), the first layer first) -> (query, key)",
    mistakes=(
        Mistake("two-things", _row_sums, "Two things are wrong: the size of the entries and the order of the layers."),
        Mistake("no-half", _row_sums, "The order is right now. Attention and identity were added but not halved, so every "
                "layer doubles the row sums."),
        Mistake("wrong-order", _sums_and_entry, "The sums are right, but the order isn't. The second layer reads what the "
                "first one wrote: the row comes from the last layer, so the last layer goes on the left."),
        Mistake("half-at-the-end", _row_sums, "The half was taken once, at the end. Every layer adds the identity, so every "
                "layer needs its half."),
        Mistake("half-at-the-end-wrong-order", _row_sums, "The half was taken once, at the end; every layer needs its own. "
                "And there is a second fault that doesn't show in the sums: which layer goes on the left?"),
        Mistake("no-residual", _sums_and_entry, "The identity is gone, and with it the residual: as if every word forgot "
                "itself in every layer."),
        Mistake("no-residual-wrong-order", _sums_and_entry, "The sums are right, but the identity is gone, and with it the "
                "residual. And the second fault is still there: which layer goes on the left?"),
        Mistake("half-attention-only", _row_sums, "Only the attention was halved. Halve the sum of both: ½(A + I)."),
        Mistake("residual-at-the-end", _sums_and_entry, "The identity was mixed in once, after the product. Every layer has "
                "a residual of its own."),
        Mistake("residual-everywhere", _row_sums, "One was added to every entry. The identity has ones on the diagonal "
                "only: torch.eye."),
        Mistake("heads-summed", _row_sums, "The heads were added. Their mean keeps the sum of a row at one."),
        Mistake("largest-head", _row_sums, "You took the largest weight of any head. The rows of such a map don't sum to "
                "one: take the mean."),
        Mistake("first-head", _sums_and_entry, "Only the first head was followed. Rollout takes the mean of all heads of a "
                "layer."),
        Mistake("averaged", _sums_and_entry, "The layers were averaged. They work one after another: multiply."),
        Mistake("added", _row_sums, "The layers were added. They work one after another: multiply."),
        Mistake("entry-by-entry", _row_sums, "The layers were multiplied entry by entry (*). A path through other words "
                "needs the matrix product (@)."),
        Mistake("transposed", lambda case: f"{_row_sums(case)[:-1]}, your columns to {spread(case.answer.sum(dim=0))}.",
                "The result is transposed: rows are queries, and each of them sums to one."),
        Mistake("last-layer", _sums_and_entry, "This is the last layer alone. Multiply it by the product of the layers "
                "before it."),
        Mistake("first-layer-lost", _sums_and_entry, "The first layer is missing from the product."),
        Mistake("last-layer-lost", _sums_and_entry, "The last layer is missing from the product."),
    ),
    properties=(
        Property(lambda case: _several(case) and (case.answer.sum(dim=-1) - 1).abs().max() > 1e-3, _row_sums,
                 "Each row must sum to one: the rows of the heads' mean sum to one, so do those of half of it plus half of "
                 "the identity, and so do those of a product of such layers."),
        Property(lambda case: (case.answer < -1e-6).any(), lambda case: f"your smallest entry is {case.answer.min():.3f}.",
                 "Sums and products of weights are never negative."),
        Property(lambda case: _several(case) and case.answer.diagonal().min() < 0.5 ** len(case.inputs[0]) - 1e-4,
                 lambda case: f"a word keeps only {case.answer.diagonal().min():.3f} of itself over {len(case.inputs[0])} "
                 "layers.", "Through the residuals alone half of it passes each layer."),
        Property(lambda case: _several(case) and _off(case), _sums_and_entry, "The sums are right. Check the mean, the "
                 "half and the order of the layers one by one, on paper, with two layers and three words."),
        Property(_off, lambda case: f"several layers come out right. With a single one {_wrong_entry(case)}",
                 "It's the mean of its heads, mixed half and half with the identity, like any other layer."),
    ),
    hints=(
        "Print rollout.sum(dim=-1) after each layer. What does it do, and what should it do?",
        "The second fault: with two layers, write R[i, j] as a sum over the words k between. Which layer has row i?",
        "The last layer has row i. So later layers are multiplied on the left.",
    ),
)

EXERCISES = (PRECISION, LEAVE, COMPREHENSIVENESS, ENTRY, ROLLOUT)
