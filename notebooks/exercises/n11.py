"""Exercises and quiz of notebook 11, attention as explanation."""

import functools
import math

import torch
from torch import nn

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import drawn, spread, what

# ---------------------------------------------------------------- 11.1 average precision

def average_precision(scores, evidence):
    hit = evidence[scores.argsort(descending=True)].double()               # (token,): 1 where the word at this rank decides
    rank = torch.arange(1, len(hit) + 1)
    precision = hit.cumsum(dim=0) / rank                                   # among the first `rank` words
    return ((precision * hit).sum() / hit.sum()).item()


def _ap(combine, key=lambda scores: -scores):
    """`combine` of the hits by rank, and the precision and the recall down to each rank."""
    def answer(scores, evidence):
        hit = evidence[key(scores).argsort()].double()
        found = hit.cumsum(0)
        return combine(hit, found / torch.arange(1, len(hit) + 1), found / hit.sum())
    return answer


def _at_hits(values, hit):
    return (values * hit).sum() / hit.sum()


def _auroc(scores, evidence):
    return (scores[evidence][:, None] > scores[~evidence]).double().mean()


def _trapezoid(hit, precision, recall):
    before = torch.cat([torch.ones(1, dtype=torch.float64), precision[:-1]])
    return _at_hits((precision + before) / 2, hit)


def _ranked(generator: torch.Generator, length: int, ranks: list[int]) -> tuple:
    """Scores, all different and some below zero, in random order, with evidence at the given ranks (from 1)."""
    scores = (torch.arange(length, 0, -1) + 0.8 * torch.rand(length, generator=generator)) / length - 0.45
    evidence = torch.zeros(length, dtype=torch.bool)
    evidence[torch.tensor(ranks) - 1] = True
    order = torch.randperm(length, generator=generator)
    return scores[order], evidence[order]


def precision_probes(generator: torch.Generator) -> list[tuple]:
    """First evidence at rank 2 or 3, the next behind it; one at rank 1; all of it in front; one token only, the last."""
    first = 2 + int(torch.randint(2, (1,), generator=generator))
    later = (first + 2 + torch.randperm(10 - first, generator=generator)[:2]).tolist()
    other = [4 + int(torch.randint(2, (1,), generator=generator)), 6 + int(torch.randint(3, (1,), generator=generator))]
    return [_ranked(generator, 11, [first, first + 1, *later]), _ranked(generator, 8, [1, *other]),
            _ranked(generator, 6, [1, 2]), _ranked(generator, 1, [1]), _ranked(generator, 5, [5])]


def _ranks(case: Case) -> str:
    scores, evidence = case.inputs
    ranks = (scores[evidence][:, None] <= scores).sum(dim=1).sort().values.tolist()
    found = f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}" if len(ranks) > 1 else f"rank {ranks[0]}"
    return (f"you give {case.answer.item():.4f} for evidence at {found} of {len(scores)}, expected "
            f"{case.expected.item():.4f}.")


PRECISION = ask(
    "11.1", average_precision,
    probes=precision_probes,
    forbidden=("sklearn.metrics.average_precision_score", "sklearn.metrics.precision_recall_curve",
               "course_utils.explain.agreement"),
    signature="average_precision(scores (token,), evidence (token,), True = evidence) -> float",
    mistakes={
        "precision-at-k": M(
            _ap(lambda hit, precision, recall: precision[int(hit.sum()) - 1]),
            _ranks,
            "That is the precision at one rank, the number of evidence tokens. It ignores everything after that rank: "
            "take the precision at each evidence token, then the mean."),
        "ascending": M(
            _ap(lambda hit, precision, recall: _at_hits(precision, hit), key=lambda scores: scores),
            _ranks,
            "The lowest score came first. argsort sorts in ascending order unless you tell it otherwise."),
        "absolute": M(
            _ap(lambda hit, precision, recall: _at_hits(precision, hit), key=lambda scores: -scores.abs()),
            _ranks,
            "The scores were ranked by their absolute value. A negative score speaks against the verdict: it belongs "
            "at the end of the list."),
        "not-sorted": M(
            _ap(lambda hit, precision, recall: _at_hits(precision, hit),
                          key=lambda scores: torch.arange(len(scores))),
            _ranks,
            "The tokens are still in the order of the text, or only one of the two lists was sorted. Put scores and "
            "evidence in the same order."),
        "all-ranks": M(
            _ap(lambda hit, precision, recall: precision.mean()),
            _ranks,
            "The precisions of all ranks were averaged. Only the ranks with an evidence token count."),
        "divided-by-words": M(
            _ap(lambda hit, precision, recall: (precision * hit).mean()),
            _ranks,
            "The right precisions were added and divided by the number of tokens. Divide by the number of evidence "
            "tokens, so that a perfect order gives 1."),
        "not-divided": M(
            _ap(lambda hit, precision, recall: (precision * hit).sum()),
            _ranks,
            "The right precisions were added; divide by the number of evidence tokens, so that a perfect order gives "
            "1."),
        "auroc": M(
            _auroc,
            _ranks,
            "That is the area under the ROC curve: how often an evidence token comes before one that isn't. That's a "
            "fair measure too, but its chance level is one half; the exercise asks for average precision."),
        "trapezoid": M(
            _ap(_trapezoid),
            _ranks,
            "That is the area under straight lines between the points of the curve. They contain precisions that no "
            "rank has; take the precision at each evidence token, in steps."),
        "interpolated": M(
            _ap(lambda hit, precision, recall: _at_hits(precision.flip(0).cummax(0).values.flip(0), hit)),
            _ranks,
            "You took the best precision at this rank or any later one (as old retrieval contests did). The exercise "
            "asks for the precision at the rank itself."),
        "first-hit": M(
            _ap(lambda hit, precision, recall: 1 / (hit.argmax() + 1)),
            _ranks,
            "That is one divided by the rank of the first evidence token. The others count too."),
        "rank-too-large": M(
            _ap(lambda hit, precision, recall: _at_hits(
            precision * torch.arange(1, len(hit) + 1) / torch.arange(2, len(hit) + 2), hit)),
            _ranks,
            "The ranks are one too large. The first token in the list has rank 1: an evidence token there has "
            "precision 1."),
        "hit-not-counted": M(
            _ap(lambda hit, precision, recall: _at_hits(precision - 1 / torch.arange(1, len(hit) + 1), hit)),
            _ranks,
            "The evidence token itself was not counted among those found. Count it before you divide."),
        "recall": M(
            _ap(lambda hit, precision, recall: recall.mean()),
            _ranks,
            "That is the mean of the recall: how many of the evidence tokens are found down to a rank. Divide by the "
            "rank, not by their number, and only at evidence tokens."),
        "recall-as-weight": M(
            _ap(lambda hit, precision, recall: (precision * recall).sum()),
            _ranks,
            "The precisions of all ranks were weighted by the recall. In the formula the weight is how much the "
            "recall grows at a rank, and it grows only at evidence tokens."),
        "recall-at-hits": M(
            _ap(lambda hit, precision, recall: (precision * recall * hit).sum()),
            _ranks,
            "The precisions were weighted by the recall. In the formula the weight is how much the recall grows: the "
            "same at each evidence token."),
        "best-precision": M(
            _ap(lambda hit, precision, recall: precision.max()),
            _ranks,
            "That is the largest precision of any rank. Take the mean over the evidence tokens."),
    },
    rules=(
        R(
            lambda case: not 0 <= case.answer <= 1 + 1e-6,
            _ranks,
            "A mean of proportions lies between 0 and 1."),
        R(
            lambda case: case.expected > 1 - 1e-9 and case.answer < 1 - 1e-4,
            _ranks,
            "All the evidence tokens come first. No order could be better, so the result is 1."),
        R(
            lambda case: abs(case.answer - case.expected) > 1e-4,
            _ranks,
            "For each of these ranks, write down how many have been found by then, divide by the rank, and take the "
            "mean."),
    ),
    hints=(
        "Example: evidence tokens at ranks 1 and 4. Precisions 1/1 and 2/4, average precision 0.75.",
        "scores.argsort(descending=True) gives the order; the evidence in this order is a row of hits.",
        "The cumsum of the hits says how many are found by each rank; divide by 1, 2, 3, …, and keep only the positions of "
        "the hits.",
    ),
)

# ---------------------------------------------------------------- 11.2 leave one out

def leave_one_out(score, tokens):
    whole = score(tokens)
    return [whole - score(tokens[:i] + tokens[i + 1:]) for i in range(len(tokens))]


def _loo(without, value=lambda whole, rest: whole - rest):
    """One number for each token: `value` of the score of all and the score of what `without(tokens, i)` leaves."""
    return lambda score, tokens: [value(score(tokens), score(without(tokens, i))) for i in range(len(tokens))]


def _shorter(tokens, i):
    return tokens[:i] + tokens[i + 1:]


def _first_removed(tokens, i):
    rest = list(tokens)
    rest.remove(tokens[i])
    return rest


def _steps(score, tokens):
    return [score(tokens[: i + 1]) - score(tokens[:i]) for i in range(len(tokens))]


def _shares_of_sum(score, tokens):
    losses = leave_one_out(score, tokens)
    return [loss / sum(losses) for loss in losses]


WORDS = ["dull", "but", "moving", "the", "film", "slow", "funny", "a", "brave", "ending", "of", "loud"]


def _a_score(generator: torch.Generator):
    """A made-up model: a list of tokens -> a probability, by which words stand where and after which 'not'."""
    size = 0.5 + 0.7 * torch.rand(len(WORDS), generator=generator)
    sign = torch.tensor([1.0, -1.0]).repeat(len(WORDS) // 2)[torch.randperm(len(WORDS), generator=generator)]
    weights = dict(zip(WORDS, (size * sign).tolist()), **{"not": 0.3})

    def score(tokens) -> float:
        tokens = list(tokens) if not isinstance(tokens, str) else tokens
        if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens):
            raise TypeError(f"score takes a list of tokens; got {what(tokens)}")
        total = 0.2
        for place, token in enumerate(tokens):
            turned = -0.7 if place and tokens[place - 1] == "not" else 1.0
            total += turned * weights.get(token, 0.2) * (0.6 + 0.05 * place)      # a word that it doesn't know counts too
        return 1 / (1 + math.exp(-total / 3))

    return score, weights


def _text(generator: torch.Generator, words: list[str], twice: int) -> list[str]:
    """Words in random order, the first of them twice, and 'not' twice."""
    words = ["not", "not", *words, *words[:twice]]
    return drawn(generator, words, len(words))


def leave_probes(generator: torch.Generator) -> list[tuple]:
    """Texts of 9 and 6 tokens, and one of a single token."""
    probes = [(_a_score(generator)[0], _text(generator, drawn(generator, WORDS, different), twice))
              for different, twice in ((5, 2), (3, 1))]
    return [*probes, (_a_score(generator)[0], drawn(generator, WORDS, 1))]


def observe_leave(function, score, tokens):
    """The list. Raises TypeError for a dictionary."""
    output = function(score, tokens)
    if isinstance(output, dict):
        raise TypeError("expected a list of numbers, one for each token, got a dictionary. A word that occurs twice has "
                        "only one place in a dictionary, so one of its two numbers is lost")
    return output


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


LEAVE = ask(
    "11.2", leave_one_out,
    probes=leave_probes, observe=observe_leave,
    signature="leave_one_out(score, tokens) -> list of floats, one for each token",
    mistakes={
        "sign": M(
            _loo(_shorter, lambda whole, rest: rest - whole),
            _fall,
            "The sign is reversed. A token that supports the verdict must get a positive number: the score of all "
            "tokens minus the score without it."),
        "absolute": M(
            _loo(_shorter, lambda whole, rest: abs(whole - rest)),
            _fall,
            "The sign is gone. A token that speaks against the verdict gets a negative number; when you rank tokens, "
            "it mustn't look like a reason for the verdict."),
        "not-subtracted": M(
            _loo(_shorter, lambda whole, rest: rest),
            _fall,
            "That is the score without the token. It is low where the token matters; the importance is how far the "
            "score fell."),
        "relative": M(
            _loo(_shorter, lambda whole, rest: (whole - rest) / whole),
            _fall,
            "You divided by the score of all tokens. The exercise asks for the plain difference."),
        "ratio": M(
            _loo(_shorter, lambda whole, rest: rest / whole),
            _fall,
            "That is a ratio of scores, near one for every token. The exercise asks for the difference."),
        "first-of-its-kind": M(
            _loo(_first_removed),
            _twice,
            "The word occurs twice, and the first one was removed both times: list.remove and list.index look for the "
            "word. Remove by position: tokens[:i] and what comes after token i."),
        "all-of-its-kind": M(
            _loo(lambda tokens, i: [token for token in tokens if token != tokens[i]]),
            _twice,
            "The word occurs twice, and both were removed at once. Leave out position i, not every token that is "
            "equal."),
        "replaced": M(
            _loo(lambda tokens, i: [*tokens[:i], "<unk>", *tokens[i + 1:]]),
            _fall,
            "The token was replaced with something else, such as <unk>. That is a fair method too, but then the model "
            "reads an extra token; the exercise asks for the list without the token."),
        "cut-after": M(
            _loo(lambda tokens, i: tokens[:i]),
            _fall,
            "Everything from this token onwards was left out. What comes after it is still part of the text: "
            "tokens[:i] is only the first part."),
        "cut-before": M(
            _loo(lambda tokens, i: tokens[i + 1:]),
            _fall,
            "Everything up to the token was left out: only tokens[i + 1:] was scored, or tokens were taken out one "
            "after another and never put back. Each time, only one token is missing from the list."),
        "two-removed": M(
            _loo(lambda tokens, i: tokens[:i] + tokens[i + 2:]),
            _fall,
            "Two tokens were left out, the one asked for and the next. tokens[i + 1:] begins directly after token i."),
        "next-removed": M(
            _loo(lambda tokens, i: tokens[: i + 1] + tokens[i + 2:]),
            _fall,
            "The next token was left out, and this one stayed. tokens[:i] ends directly before token i."),
        "none-removed": M(
            _loo(lambda tokens, i: tokens[:i] + tokens[i:]),
            lambda case: f"all your numbers are {case.answer.abs().max():.3f}.",
            "The list was put back together with nothing missing: the second part should begin at i + 1."),
        "token-alone": M(
            _loo(lambda tokens, i: [tokens[i]], lambda whole, alone: alone),
            _fall,
            "That is the score of the token alone. Alone, it has no context: 'not' by itself has nothing to flip."),
        "all-but-alone": M(
            _loo(lambda tokens, i: [tokens[i]]),
            _fall,
            "You compared the whole text with the token alone, the reverse of what is asked: compare with everything "
            "else."),
        "steps": M(
            _steps,
            _fall,
            "That is how the score changes as the text is read token by token. The exercise asks what is lost when "
            "one token is missing from the whole text."),
        "shares": M(
            _shares_of_sum,
            lambda case: f"your numbers sum to {case.answer.sum():.3f}.",
            "They were divided by their sum. Differences of scores don't have to sum to one, and if their sum is near "
            "zero, dividing makes them explode: leave them as they are."),
        "sorted": M(
            lambda score, tokens: sorted(leave_one_out(score, tokens), reverse=True),
            _fall,
            "These are the right numbers in the wrong order: they are sorted. Number i belongs to token i."),
    },
    rules=(
        R(
            lambda case:
                 case.answer.sort().values.sub(case.expected.sort().values).abs().max()
                 < 1e-4 < (case.answer - case.expected).abs().max(),
            _fall,
            "These are the right numbers in the wrong order: number i belongs to token i."),
        R(
            lambda case: case.answer.numel() > 1 and case.answer.max() - case.answer.min() < 1e-6,
            _range,
            "All tokens get the same number. Look at which list is scored for token i."),
        R(
            lambda case: case.answer.abs().max() > 1,
            _range,
            "`score` returns a probability here, and two probabilities differ by at most one."),
        R(
            lambda case: len(case.inputs[1]) > 1 and _off(case),
            _fall,
            "Print the list that you score for this token: it must contain all the others, in order."),
        R(
            _off,
            lambda case: f"texts of several tokens are right. In a text of one, {_fall(case)}",
            "Without its only token, the list is empty, and `score` accepts that: score(tokens) minus score([])."),
    ),
    hints=(
        "Start with a single token: which list is scored, and what is subtracted from what?",
        "The list without token i has two parts: what comes before it, and what comes after.",
        "tokens[:i] + tokens[i + 1:] is a new list; `tokens` itself doesn't change.",
    ),
)

# ---------------------------------------------------------------- 11.3 comprehensiveness

def comprehensiveness_of(score, tokens, importances, shares):
    order = sorted(range(len(tokens)), key=lambda i: importances[i], reverse=True)
    losses = []
    for share in shares:
        top = set(order[:math.ceil(share * len(tokens))])
        losses.append(score(tokens) - score([token for i, token in enumerate(tokens) if i not in top]))
    return sum(losses) / len(losses)


def _comp(left, key=lambda value: -value, count=lambda share, n: math.ceil(share * n),
          value=lambda whole, rest: whole - rest, mean=lambda losses, shares: sum(losses) / len(losses)):
    """As the reference, with one thing changed: what is left, by which order, how many, which value, which mean."""
    def answer(score, tokens, importances, shares):
        order = sorted(range(len(tokens)), key=lambda i: key(importances[i]))
        losses = [value(score(tokens), score(left(tokens, order, count(share, len(tokens))))) for share in shares]
        return mean(losses, shares)
    return answer


def _without(tokens, order, count):
    return [tokens[i] for i in range(len(tokens)) if i not in order[:count]]


def _only(tokens, order, count):
    return [tokens[i] for i in range(len(tokens)) if i in order[:count]]


def _without_words(tokens, order, count):
    gone = {tokens[i] for i in order[:count]}
    return [token for token in tokens if token not in gone]


def _replaced(tokens, order, count):
    return ["<unk>" if i in order[:count] else token for i, token in enumerate(tokens)]


def _never_restored(score, tokens, importances, shares):
    rest = sorted(range(len(tokens)), key=lambda i: importances[i], reverse=True)
    losses = []
    for share in shares:
        rest = rest[math.ceil(share * len(tokens)):]
        losses.append(score(tokens) - score([tokens[i] for i in sorted(rest)]))
    return sum(losses) / len(losses)


def _by_mass(score, tokens, importances, shares):
    order, losses = sorted(range(len(tokens)), key=lambda i: importances[i], reverse=True), []
    whole = sum(max(value, 0) for value in importances)
    for share in shares:
        count, mass = 0, 0.0
        while count < len(order) and (count == 0 or mass < share * whole):
            mass += max(importances[order[count]], 0)
            count += 1
        losses.append(score(tokens) - score(_without(tokens, order, count)))
    return sum(losses) / len(losses)


def comprehensiveness_probes(generator: torch.Generator) -> list[tuple]:
    """Texts of 20, 8 and 5 tokens. In the first the important words speak for, in the second against. Then none and all go.

    The importances are rough: weight of the word, turned after 'not', times noise.
    """
    probes = []
    for against, speaking, twice, sign, shares in ((5, 6, 7, 1, [0.2, 0.01, 0.5, 0.1]), (2, 2, 2, -1, [0.3, 0.05, 0.5]),
                                                   (1, 2, 0, 1, [0.2, 0.55])):
        score, weights = _a_score(generator)
        words = drawn(generator, [word for word in WORDS if weights[word] < 0], against)
        words += drawn(generator, [word for word in WORDS if weights[word] > 0], speaking)
        if sign > 0:                                    # else those below zero stand there twice
            words = drawn(generator, words, len(words))
        tokens = _text(generator, words, twice)
        noise = 0.4 + 1.2 * torch.rand(len(tokens), generator=generator)
        turned = [-sign if before == "not" else sign for before in ["", *tokens]]
        importances = [turn * weights[token] * factor for turn, token, factor in zip(turned, tokens, noise.tolist())]
        probes.append((score, tokens, importances, shares))
    score, _ = _a_score(generator)
    return [*probes, (score, ["not", "dull"], [0.2, -0.1], [0.0, 1.0]), (score, ["dull"], [-0.3], [0.4])]


def _mean_fall(case: Case) -> str:
    score, tokens, _, shares = case.inputs
    return (f"you give {case.answer.item():.4f}, expected {case.expected.item():.4f} ({len(tokens)} tokens, shares "
            f"{', '.join(map(str, shares))}; all tokens score {score(tokens):.4f}).")


COMPREHENSIVENESS = ask(
    "11.3", comprehensiveness_of,
    probes=comprehensiveness_probes,
    signature="comprehensiveness_of(score, tokens, importances (a list, one for each token), shares (a list, each between 0 "
    "and 1)) -> float",
    mistakes={
        "sufficiency": M(
            _comp(_only),
            _mean_fall,
            "You kept the top tokens and dropped the others: that is sufficiency, where a small loss is good. Here "
            "you remove the top tokens."),
        "not-subtracted": M(
            _comp(_without, value=lambda whole, rest: rest),
            _mean_fall,
            "That is the mean score of what is left. The exercise asks how far it fell from the score of all tokens."),
        "sign": M(
            _comp(_without, value=lambda whole, rest: rest - whole),
            _mean_fall,
            "The sign is reversed: take the score of all tokens minus the score of what is left, so that a good "
            "explanation gets a high number."),
        "no-token": M(
            _comp(_without, count=lambda share, n: int(share * n)),
            _mean_fall,
            "The number was rounded down. A small share of a short text is then no token at all, and the loss is zero "
            "for any explanation. Round up."),
        "rounded-down": M(
            _comp(_without, count=lambda share, n: max(1, int(share * n))),
            _mean_fall,
            "The number was rounded down, to at least one. Here share times number of tokens is rounded up."),
        "rounded": M(
            _comp(_without, count=lambda share, n: max(1, round(share * n))),
            _mean_fall,
            "The number was rounded to the nearest whole number. Here share times number of tokens is rounded up."),
        "rounded-to-none": M(
            _comp(_without, count=lambda share, n: round(share * n)),
            _mean_fall,
            "round(…) goes to the nearest whole number, and a small share of a short text is then no token at all. Round "
            "up: math.ceil(…)."),
        "one-token": M(
            _comp(_without, count=lambda share, n: 1),
            _mean_fall,
            "One token was removed for every share. The number to remove is share times number of tokens, rounded up."),
        "one-too-many": M(
            _comp(_without, count=lambda share, n: int(share * n) + 1),
            _mean_fall,
            "One token too many is removed when share times number of tokens is whole: a whole number rounded up is "
            "itself."),
        "least-first": M(
            _comp(_without, key=lambda value: value),
            _mean_fall,
            "The least important tokens were removed. Sorting is ascending unless you say otherwise."),
        "absolute": M(
            _comp(_without, key=lambda value: -abs(value)),
            _mean_fall,
            "The tokens were ranked by absolute value. A token with a negative number speaks against the verdict; "
            "without it the score rises."),
        "first-tokens": M(
            lambda score, tokens, importances, shares: comprehensiveness_of(
            score, tokens, range(0, -len(tokens), -1), shares),
            _mean_fall,
            "The first tokens of the text were removed, whatever their importances. Sort the positions by importance "
            "first."),
        "summed": M(
            _comp(_without, mean=lambda losses, shares: sum(losses)),
            _mean_fall,
            "The losses were added. Divide by the number of shares, so that more shares don't make an explanation "
            "look better."),
        "weighted-by-share": M(
            _comp(_without, mean=lambda losses, shares: (
            sum(loss * share for loss, share in zip(losses, shares)) / sum(shares))),
            _mean_fall,
            "The losses were weighted by their shares. Here each counts equally: take a plain mean."),
        "divided-by-share": M(
            _comp(_without, mean=lambda losses, shares: sum(losses) / sum(shares)),
            _mean_fall,
            "The sum of the losses was divided by the sum of the shares. Divide by how many shares there are."),
        "last-share": M(
            _comp(_without, mean=lambda losses, shares: losses[-1]),
            _mean_fall,
            "Only the last share counts in your result. Collect the losses in a list, or check where your `return` "
            "is."),
        "largest-share": M(
            _comp(_without, mean=lambda losses, shares: max(losses)),
            _mean_fall,
            "The largest of the losses was returned. The exercise asks for their mean."),
        "absolute-losses": M(
            _comp(_without, value=lambda whole, rest: abs(whole - rest)),
            _mean_fall,
            "The losses have lost their signs. If the score rises without the top tokens, the explanation was bad, "
            "and the number must show it."),
        "relative": M(
            _comp(_without, value=lambda whole, rest: (whole - rest) / whole),
            _mean_fall,
            "The losses were divided by the score of all tokens. The exercise asks for the plain difference."),
        "words-not-tokens": M(
            _comp(_without_words),
            _mean_fall,
            "Removing a token also removed every other token of the same word. Each position has its own importance: "
            "compare positions, not words."),
        "replaced": M(
            _comp(_replaced),
            _mean_fall,
            "The tokens were replaced with something else, such as <unk>. That is a fair method too, but the exercise "
            "asks for the list without them."),
        "order-lost": M(
            _comp(lambda tokens, order, count: [tokens[i] for i in order[count:]]),
            _mean_fall,
            "What is left was scored in order of importance, not in the order of the text. To a model with positions "
            "that is a different text: keep the order."),
        "order-lost-upwards": M(
            _comp(lambda tokens, order, count: [tokens[i] for i in order[count:][::-1]]),
            _mean_fall,
            "What is left was scored from the least important token to the most important, not in the order of the "
            "text. To a model with positions that is a different text: keep the order."),
        "repeats-lost": M(
            _comp(lambda tokens, order, count: list(dict.fromkeys(_without(tokens, order, count)))),
            _mean_fall,
            "A word that is left twice was scored once, as happens with set() or a dict of words. Each position is a "
            "token of its own."),
        "never-restored": M(
            _never_restored,
            _mean_fall,
            "Each share was taken from what the previous one had left. Start from all the tokens each time."),
        "share-of-importance": M(
            _by_mass,
            _mean_fall,
            "Tokens were removed until they added up to that share of the importance. The exercise asks for a share "
            "of the number of tokens."),
    },
    rules=(
        R(
            lambda case: abs(case.answer) > 1,
            _mean_fall,
            "Two probabilities differ by at most one, and a mean of such differences can't be larger either."),
        R(
            lambda case: case.answer * case.expected < 0 and min(abs(case.answer), abs(case.expected)) > 0.05,
            _mean_fall,
            "The sign differs too. Which tokens are removed, and what is subtracted from what?"),
        R(
            lambda case: 0 not in case.inputs[3] and abs(case.answer - case.expected) > 1e-4,
            _mean_fall,
            "Take one share and print the tokens that are left: how many, which, in which order?"),
        R(
            lambda case: abs(case.answer - case.expected) > 1e-4,
            _mean_fall,
            "Only a list with a share of 0 comes out wrong. That share removes no token, so its loss is 0, and it "
            "counts in the mean."),
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

FIRST = torch.tensor([[0.8, 0.2, 0.0], [0.6, 0.3, 0.1], [0.2, 0.4, 0.4]], dtype=torch.float64)


SECOND = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.8, 0.1]], dtype=torch.float64)


EYE = torch.eye(3, dtype=torch.float64)


def rollout_by_hand():
    # row '.' of the second layer, ½(A + I): 0.05, 0.40, 0.55; column 'not' of the first: 0.90, 0.30, 0.10
    return 0.05 * 0.90 + 0.40 * 0.30 + 0.55 * 0.10


def _entry(of, row=2, column=0):
    half_first, half_second = (FIRST + EYE) / 2, (SECOND + EYE) / 2
    return of(half_first, half_second)[row, column].item()


def _one(case: Case) -> str:
    return f"{case.answer.item():.4g}"


ENTRY = ask(
    "11.4", rollout_by_hand,
    kind="number",
    tolerance=1e-3,
    signature="one number, to two or three decimals",
    mistakes={
        "no-residual": M(
            lambda: _entry(lambda first, second: SECOND @ FIRST),
            lambda case: f"{_one(case)} is the entry of A₁ A₀.",
            "The residual is missing: a word also keeps itself in each layer. Mix each map with the identity first, "
            "½(A + I)."),
        "wrong-order": M(
            lambda: _entry(lambda first, second: first @ second),
            lambda case: f"{_one(case)} is the entry of Ã₀ Ã₁.",
            "The order is reversed. The second layer's '.' looks at what the first layer produced: take the row of "
            "the last layer and the column of the first."),
        "no-residual-wrong-order": M(
            lambda: _entry(lambda first, second: FIRST @ SECOND),
            lambda case: f"{_one(case)} is the entry of A₀ A₁.",
            "Two things are wrong: the residual is missing, ½(A + I), and the last layer belongs on the left."),
        "no-half": M(
            lambda: _entry(lambda first, second: 4 * second @ first),
            lambda case: f"{_one(case)} is the entry of (A₁ + I)(A₀ + I).",
            "Its rows sum to four. The half makes each layer's rows sum to one."),
        "half-once": M(
            lambda: _entry(lambda first, second: 2 * second @ first),
            lambda case: f"{_one(case)} has the half in one layer only.",
            "Each of the two layers is ½(A + I), so together they give a quarter."),
        "other-way-round": M(
            lambda: _entry(lambda first, second: second @ first, 0, 2),
            lambda case: f"{_one(case)} is the entry in row 'not', column '.'.",
            "Rows are queries: the exercise asks how much of 'not' is in '.', so row '.', column 'not'."),
        "other-row": M(
            lambda: _entry(lambda first, second: second @ first, 1, 0),
            lambda case: f"{_one(case)} is the entry in row 'dull'.",
            "The exercise asks for the row of '.', the third."),
        "mean-of-layers": M(
            lambda: _entry(lambda first, second: (first + second) / 2),
            lambda case: f"{_one(case)} is the mean of the two layers' entries.",
            "Layers work one after another: what '.' takes from 'dull' contains what 'dull' took from 'not'. That is "
            "a matrix product."),
        "mean-without-residual": M(
            lambda: _entry(lambda first, second: (FIRST + SECOND) / 2),
            lambda case: f"{_one(case)} is the mean of the two maps' entries.",
            "Layers work one after another, so their matrices are multiplied, each mixed with the identity first."),
        "entry-by-entry": M(
            lambda: _entry(lambda first, second: first * second),
            lambda case: f"{_one(case)} is the product of two single entries.",
            "A matrix product doesn't multiply entries at the same position: go along a row of the last layer and "
            "down a column of the first."),
        "maps-entry-by-entry": M(
            lambda: _entry(lambda first, second: FIRST * SECOND),
            lambda case: f"{_one(case)} is the product of two single weights.",
            "A matrix product sums over all the words in between, and each map is mixed with the identity first."),
        "residual-at-the-end": M(
            lambda: _entry(lambda first, second: (SECOND @ FIRST + EYE) / 2),
            lambda case: f"{_one(case)} mixes the identity in once, after the product.",
            "Each layer has a residual of its own: first ½(A + I), then the product."),
        "residual-in-first": M(
            lambda: _entry(lambda first, second: SECOND @ first),
            lambda case: f"{_one(case)} has the residual in the first layer only.",
            "The second layer has one as well: take ½(A + I) of both."),
        "residual-in-second": M(
            lambda: _entry(lambda first, second: second @ FIRST),
            lambda case: f"{_one(case)} has the residual in the second layer only.",
            "The first layer has one as well: take ½(A + I) of both."),
        "one-path": M(
            lambda: 0.40 * 0.30,
            lambda case: f"{_one(case)} is the path through 'dull' alone.",
            "Two more paths lead from 'not' to '.': through 'not' itself, which keeps its vector in the first layer, "
            "and through '.', which takes it in the first layer already. Add all three."),
    },
    rules=(
        R(
            lambda case: not 0 <= case.answer <= 1,
            lambda case: f"{_one(case)} does not lie between 0 and 1.",
            "The rows of ½(A + I) sum to one, and so do the rows of their product."),
        R(
            lambda case: min(abs(case.answer - value) for value in (0.05, 0.1, 0.2)) < 1e-3,
            lambda case:
                 f"{_one(case)} is an entry of a single layer.",
            "The rollout multiplies both."),
        R(
            lambda case: case.answer < 0.12,
            lambda case: f"{_one(case)} is less than one of its parts.",
            "The path through 'dull' alone contributes 0.40 · 0.30, and no path contributes less than zero."),
    ),
    hints=(
        "First ½(A + I): halve every entry, and add ½ on the diagonal.",
        "From the second layer you need the row of '.', from the first the column of 'not'.",
        "They are 0.05, 0.40, 0.55 and 0.90, 0.30, 0.10. Multiply in pairs and add.",
    ),
)

# ---------------------------------------------------------------- 11.5 repair: rollout

def rolled_out(attentions):
    rollout = torch.eye(attentions.shape[-1])                              # (query, key)
    for layer in attentions.mean(dim=1):                                   # the mean over the heads, first layer first
        mixed = (layer + torch.eye(layer.shape[-1])) / 2                   # half attention, half residual
        rollout = mixed @ rollout                                          # later layers on the left
    return rollout


def _roll(mix=lambda layer, eye: (layer + eye) / 2, step=lambda rollout, layer: layer @ rollout,
          heads=lambda attentions: attentions.mean(dim=1), end=lambda rollout, layers: rollout):
    """Rollout with one or more things changed."""
    def answer(attentions):
        attentions = attentions.double()
        eye = torch.eye(attentions.shape[-1], dtype=torch.float64)
        return end(functools.reduce(step, [mix(layer, eye) for layer in heads(attentions)] or [eye]), len(attentions))
    return answer


def rollout_probes(generator: torch.Generator) -> list[tuple]:
    """(layers 3, heads 2, 5 words) and (2, 4, 6); then one head and two words; then a single layer."""
    return [(torch.randn(*shape, generator=generator).mul(1.5).softmax(dim=-1),)
            for shape in ((3, 2, 5, 5), (2, 4, 6, 6), (2, 1, 2, 2), (1, 2, 3, 3))]


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


ROLLOUT = ask(
    "11.5", rolled_out,
    given="two-things",
    probes=rollout_probes,
    forbidden=("course_utils.explain.rollout",),
    signature="rolled_out(attentions (layers, heads, query, key), the first layer first) -> (query, key)",
    mistakes={
        "two-things": M(
            _roll(mix=lambda layer, eye: layer + eye, step=lambda rollout, layer: rollout @ layer),
            _row_sums,
            "Two things are wrong: the size of the entries and the order of the layers."),
        "no-half": M(
            _roll(mix=lambda layer, eye: layer + eye),
            _row_sums,
            "The order is right now. Attention and identity were added but not halved, so every layer doubles the row "
            "sums."),
        "wrong-order": M(
            _roll(step=lambda rollout, layer: rollout @ layer),
            _sums_and_entry,
            "The sums are right, but the order isn't. The second layer reads what the first one wrote: the row comes "
            "from the last layer, so the last layer goes on the left."),
        "half-at-the-end": M(
            _roll(mix=lambda layer, eye: layer + eye, end=lambda rollout, layers: rollout / 2),
            _row_sums,
            "The half was taken once, at the end. Every layer adds the identity, so every layer needs its half."),
        "half-at-the-end-wrong-order": M(
            _roll(mix=lambda layer, eye: layer + eye, step=lambda rollout, layer: rollout @ layer,
                                             end=lambda rollout, layers: rollout / 2),
            _row_sums,
            "The half was taken once, at the end; every layer needs its own. And there is a second fault that doesn't "
            "show in the sums: which layer goes on the left?"),
        "no-residual": M(
            _roll(mix=lambda layer, eye: layer),
            _sums_and_entry,
            "The identity is gone, and with it the residual: as if every word forgot itself in every layer."),
        "no-residual-wrong-order": M(
            _roll(mix=lambda layer, eye: layer, step=lambda rollout, layer: rollout @ layer),
            _sums_and_entry,
            "The sums are right, but the identity is gone, and with it the residual. And the second fault is still "
            "there: which layer goes on the left?"),
        "half-attention-only": M(
            _roll(mix=lambda layer, eye: layer / 2 + eye),
            _row_sums,
            "Only the attention was halved. Halve the sum of both: ½(A + I)."),
        "residual-at-the-end": M(
            _roll(mix=lambda layer, eye: layer,
                                     end=lambda rollout, layers: (rollout + torch.eye(len(rollout))) / 2),
            _sums_and_entry,
            "The identity was mixed in once, after the product. Every layer has a residual of its own."),
        "residual-everywhere": M(
            _roll(mix=lambda layer, eye: (layer + 1) / 2),
            _row_sums,
            "One was added to every entry. The identity has ones on the diagonal only: torch.eye."),
        "heads-summed": M(
            _roll(heads=lambda attentions: attentions.sum(dim=1)),
            _row_sums,
            "The heads were added. Their mean keeps the sum of a row at one."),
        "largest-head": M(
            _roll(heads=lambda attentions: attentions.amax(dim=1)),
            _row_sums,
            "You took the largest weight of any head. The rows of such a map don't sum to one: take the mean."),
        "first-head": M(
            _roll(heads=lambda attentions: attentions[:, 0]),
            _sums_and_entry,
            "Only the first head was followed. Rollout takes the mean of all heads of a layer."),
        "averaged": M(
            _roll(step=lambda rollout, layer: rollout + layer, end=lambda rollout, layers: rollout / layers),
            _sums_and_entry,
            "The layers were averaged. They work one after another: multiply."),
        "added": M(
            _roll(step=lambda rollout, layer: rollout + layer),
            _row_sums,
            "The layers were added. They work one after another: multiply."),
        "entry-by-entry": M(
            _roll(step=lambda rollout, layer: rollout * layer),
            _row_sums,
            "The layers were multiplied entry by entry (*). A path through other words needs the matrix product (@)."),
        "transposed": M(
            _roll(end=lambda rollout, layers: rollout.T),
            lambda case: f"{_row_sums(case)[:-1]}, your columns to {spread(case.answer.sum(dim=0))}.",
            "The result is transposed: rows are queries, and each of them sums to one."),
        "last-layer": M(
            _roll(step=lambda rollout, layer: layer),
            _sums_and_entry,
            "This is the last layer alone. Multiply it by the product of the layers before it."),
        "first-layer-lost": M(
            _roll(heads=lambda attentions: attentions[1:].mean(dim=1)),
            _sums_and_entry,
            "The first layer is missing from the product."),
        "last-layer-lost": M(
            _roll(heads=lambda attentions: attentions[:-1].mean(dim=1)),
            _sums_and_entry,
            "The last layer is missing from the product."),
    },
    rules=(
        R(
            lambda case: _several(case) and (case.answer.sum(dim=-1) - 1).abs().max() > 1e-3,
            _row_sums,
            "Each row must sum to one: the rows of the heads' mean sum to one, so do those of half of it plus half of "
            "the identity, and so do those of a product of such layers."),
        R(
            lambda case: (case.answer < -1e-6).any(),
            lambda case: f"your smallest entry is {case.answer.min():.3f}.",
            "Sums and products of weights are never negative."),
        R(
            lambda case: _several(case) and case.answer.diagonal().min() < 0.5 ** len(case.inputs[0]) - 1e-4,
            lambda case: f"a word keeps only {case.answer.diagonal().min():.3f} of itself over {len(case.inputs[0])} "
                 "layers.",
            "Through the residuals alone half of it passes each layer."),
        R(
            lambda case: _several(case) and _off(case),
            _sums_and_entry,
            "The sums are right. Check the mean, the half and the order of the layers one by one, on paper, with two "
            "layers and three words."),
        R(
            _off,
            lambda case: f"several layers come out right. With a single one {_wrong_entry(case)}",
            "It's the mean of its heads, mixed half and half with the identity, like any other layer."),
    ),
    hints=(
        "Print rollout.sum(dim=-1) after each layer. What does it do, and what should it do?",
        "The second fault: with two layers, write R[i, j] as a sum over the words k between. Which layer has row i?",
        "The last layer has row i. So later layers are multiplied on the left.",
    ),
)


# ---------------------------------------------------------------- 11.6 integrated gradients

def log_odds(logits, target):
    own = logits.gather(1, target[:, None])[:, 0]
    return own - (logits.sum(dim=1) - own)


def integrated_gradients(model, x, baseline, target, steps):
    total = torch.zeros_like(x)
    for step in range(steps):
        point = baseline + (step + 0.5) / steps * (x - baseline)           # the middle of the step
        point.requires_grad_()
        value = log_odds(model(point), target).sum()                       # each review's gradient is its own
        total += torch.autograd.grad(value, point)[0]
    return (total / steps * (x - baseline)).sum(dim=-1)                    # (batch, token)


class _Reader(nn.Module):
    """A made-up model: word vectors (batch, token, feature) -> logits (batch, 2), in which neighbours are multiplied.

    In training mode it drops every third feature, always the same ones, so that a mode that was changed shows every time.
    Like the notebook's models, which keep the mask of their batch, it's asked about all reviews of the batch together.
    """

    def __init__(self, generator: torch.Generator, reviews: int, features: int):
        super().__init__()
        self.reviews = reviews
        self.opinion, self.turns, self.plain = (torch.randn(features, generator=generator) for _ in range(3))
        self.training = False

    def forward(self, x):
        if len(x) != self.reviews:
            raise TypeError(f"expected {self.reviews} reviews in the model, as many as x has, got {len(x)}. In the "
                            "notebook the model keeps the attention mask of its batch, so it can take neither all "
                            "steps in one batch nor one review alone: loop over the steps")
        if self.training:
            x = x * (torch.arange(x.shape[-1]) % 3 > 0) * 1.5
        opinion, turns = (x @ self.opinion).tanh(), (x @ self.turns).tanh()
        points = opinion.sum(dim=1) + 1.5 * (opinion[:, 1:] * turns[:, :-1]).sum(dim=1) + 0.3 * (x @ self.plain).sum(dim=1)
        return torch.stack([0.4 * (points**2 + 1).sqrt() - 0.7 * points, 0.9 * points], dim=1)


def ig_probes(generator: torch.Generator) -> list[tuple]:
    """Three reviews of four words, in six steps; one of two words in one step; four of three words in eleven steps.

    Each has a baseline of its own, far from zero; both classes are asked for.
    """
    probes = []
    for reviews, words, features, steps in ((3, 4, 3, 6), (1, 2, 5, 1), (4, 3, 2, 11)):
        x, baseline = (torch.randn(reviews, words, features, generator=generator) for _ in range(2))
        first = int(torch.randint(2, (1,), generator=generator))
        target = (torch.arange(reviews) + first) % 2
        probes.append((_Reader(generator, reviews, features), x, baseline, target if reviews > 1 else 0 * target, steps))
    return probes


def observe_ig(function, model, x, baseline, target, steps):
    """The scores; the model is in eval mode before and afterwards."""
    model.eval()
    try:
        scores = function(model, x.clone(), baseline.clone(), target.clone(), steps)
    finally:
        model.eval()
    if isinstance(scores, torch.Tensor) and scores.requires_grad:
        raise TypeError("expected plain scores, and yours still carry the graph that made them, so that the notebook can't "
                        "turn them into numbers. Return scores.detach(), or don't multiply by something that requires grad")
    return scores


def _walk(at=lambda step, steps: (step + 0.5) / steps, path=lambda x, baseline, part: baseline + part * (x - baseline),
          value=lambda model, point, target: log_odds(model(point), target).sum(),
          end=lambda mean, x, baseline: (mean * (x - baseline)).sum(dim=-1), gradient=lambda found: found):
    """As the reference, with one thing changed: where the points are, what is differentiated, what is made of the mean."""
    def answer(model, x, baseline, target, steps):
        total = torch.zeros_like(x)
        for step in range(steps):
            point = path(x, baseline, at(step, steps)).detach().requires_grad_()
            total = total + gradient(torch.autograd.grad(value(model, point, target), point)[0])
        return end(total / steps, x, baseline)
    return answer


def _one_point(at, end=lambda mean, x, baseline: (mean * (x - baseline)).sum(dim=-1)):
    """One gradient, at one place of the path."""
    walk = _walk(at=lambda step, steps: at, end=end)
    return lambda model, x, baseline, target, steps: walk(model, x, baseline, target, 1)


def _accumulated(model, x, baseline, target, steps):
    """Gradients that were never cleared: each step adds all of those before it."""
    total = running = torch.zeros_like(x)
    for step in range(steps):
        point = (baseline + (step + 0.5) / steps * (x - baseline)).requires_grad_()
        running = running + torch.autograd.grad(log_odds(model(point), target).sum(), point)[0]
        total = total + running
    return (total / steps * (x - baseline)).sum(dim=-1)


def _slope_of(which):
    """The gradient with respect to the text or the baseline, which the point was made of, in the gradient's place."""
    def answer(model, x, baseline, target, steps):
        ends = {"x": x.detach().requires_grad_(), "baseline": baseline.detach().requires_grad_()}
        total = torch.zeros_like(x)
        for step in range(steps):
            point = ends["baseline"] + (step + 0.5) / steps * (ends["x"] - ends["baseline"])
            total = total + torch.autograd.grad(log_odds(model(point), target).sum(), ends[which])[0]
        return (total / steps * (x - baseline)).sum(dim=-1)
    return answer


def _made_to_add_up(mend):
    """The scores with what is missing to the rise of the log-odds put in by hand."""
    def answer(model, x, baseline, target, steps):
        scores = integrated_gradients(model, x, baseline, target, steps)
        with torch.no_grad():
            rise = log_odds(model(x), target) - log_odds(model(baseline), target)
        return mend(scores, rise[:, None])
    return answer


def _one_word_walks(model, x, baseline, target, steps):
    """Each word walks alone, while all the others are whole."""
    scores = torch.zeros(x.shape[:2])
    for token in range(x.shape[1]):
        start = x.clone()
        start[:, token] = baseline[:, token]
        scores[:, token] = integrated_gradients(model, x, start, target, steps)[:, token]
    return scores


def _occlusion(model, x, baseline, target, steps):
    scores = torch.zeros(x.shape[:2])
    with torch.no_grad():
        for token in range(x.shape[1]):
            without = x.clone()
            without[:, token] = baseline[:, token]
            scores[:, token] = log_odds(model(x), target) - log_odds(model(without), target)
    return scores


def _straight_lines(model, x, baseline, target, steps):
    """The trapezoidal rule: the gradients at the ends of the steps, the first and the last counting half."""
    left, right = (_walk(at=lambda step, steps, end=end: (step + end) / steps)(model, x, baseline, target, steps)
                   for end in (0, 1))
    return (left + right) / 2


def _in_training(model, x, baseline, target, steps):
    model.train()
    return integrated_gradients(model, x, baseline, target, steps)


def _of_class(probability):
    return lambda model, point, target: probability(model(point)).gather(1, target[:, None]).sum()


def _rise(case: Case) -> torch.Tensor:
    """By how much each review's log-odds are above those of its baseline."""
    model, x, baseline, target, _ = case.inputs
    with torch.no_grad():
        return (log_odds(model(x), target) - log_odds(model(baseline), target)).double()


def _worst_score(case: Case) -> tuple[int, int]:
    gaps = (case.answer - case.expected).abs()
    return divmod(int(gaps.argmax()), gaps.shape[1])


def _score_off(case: Case) -> str:
    """The score that is furthest off, and the sum of its review's scores beside what it should be."""
    review, token = _worst_score(case)
    return (f"token {token} of review {review}, counted from 0, gets {case.answer[review, token]:.3f}, expected "
            f"{case.expected[review, token]:.3f}.")


def _sum_off(case: Case) -> str:
    review, _ = _worst_score(case)
    return (f"your scores of review {review}, counted from 0, sum to {case.answer[review].sum():.3f}, and its log-odds rise "
            f"by {_rise(case)[review]:.3f}.")


def _wrong_shape(case: Case) -> str:
    return f"your scores have the shape {tuple(case.answer.shape)}, expected {tuple(case.expected.shape)}."


_MEAN = "(total / steps * (x - baseline)).sum(dim=-1)"
_END = "total / steps * (x - baseline)"
_VALUE = "log_odds(model(point), target).sum()"

INTEGRATED = ask(
    "11.6", integrated_gradients,
    probes=ig_probes,
    observe=observe_ig,
    forbidden=("captum.attr.IntegratedGradients.attribute", "course_utils.explain.integrated_gradients"),
    signature="integrated_gradients(model, x (batch, token, feature), baseline (batch, token, feature), target (batch,), "
    "steps) -> scores (batch, token)",
    mistakes={
        "probability": M(_walk(value=_of_class(lambda logits: logits.softmax(dim=-1))), _sum_off,
            "You differentiate the *probability* of the target. It flattens out where the model is sure, and so do its "
            "slopes: take the log-odds."),
        "log-probability": M(_walk(value=_of_class(lambda logits: logits.log_softmax(dim=-1))), _sum_off,
            "You differentiate the logarithm of the probability, as a loss does. It flattens out where the model is sure; "
            "the log-odds don't."),
        "one-logit": M(_walk(value=_of_class(lambda logits: logits)), _sum_off,
            "You differentiate the target's logit alone. What falls for the other class counts as well: log_odds takes the "
            "difference of the two."),
        "both-logits": M(_walk(value=lambda model, point, target: model(point).sum()), _sum_off,
            "You differentiate the sum of both logits. What speaks for one class speaks against the other, so take their "
            "difference, as log_odds does."),
        "always-positive": M(_walk(value=lambda model, point, target: log_odds(model(point), 0 * target + 1).sum()),
            _score_off, "The reviews whose target is class 0 have the wrong sign: you explain class 1 for all of them. Use "
            "`target`."),
        "first-target": M(_walk(value=lambda model, point, target: log_odds(model(point), 0 * target + target[0]).sum()),
            _score_off, "All reviews are explained for the target of the first one. Each has its own."),
        "target-of-the-point": M(_walk(value=lambda model, point, target: log_odds(model(point),
                                                                                   model(point).argmax(dim=1)).sum()),
            _sum_off, "At each point you explain the class that wins *there*. Half-way it may be the other one, and the "
            "slopes change their sign: keep to `target`."),
        "not-averaged": M({"total / steps": "total"}, _sum_off,
            "The gradients are added up, not averaged: with twice as many steps you'd get twice as much. Divide by the "
            "number of steps."),
        "averaged-twice": M({_END: "total / steps / steps * (x - baseline)"}, _sum_off,
            "The mean was divided by the number of steps once more. (x - baseline) is the whole way, not one step of it."),
        "left-ends": M({"step + 0.5": "step"}, _score_off,
            "Each gradient is taken at the *beginning* of its step, so the baseline counts and the text itself never does. "
            "Take the middle: (step + 0.5) / steps."),
        "right-ends": M({"step + 0.5": "step + 1"}, _score_off,
            "Each gradient is taken at the *end* of its step, so the text itself counts and the baseline never does. Take "
            "the middle: (step + 0.5) / steps."),
        "both-ends": M(_walk(at=lambda step, steps: step / max(1, steps - 1)), _score_off,
            "Your points run from the baseline to the text, both included, as linspace(0, 1, steps) gives them. The two "
            "ends then weigh as much as the rest. Take the middles of the steps."),
        "not-multiplied": M({_END: "total / steps"}, _score_off,
            "That is the mean gradient. A slope becomes points only when it's multiplied by how far the word was moved: "
            "(x - baseline)."),
        "times-x": M({_END: "total / steps * x"}, _sum_off,
            "The mean gradient was multiplied by x. The walk began at the baseline, so the way is (x - baseline)."),
        "times-baseline-minus-x": M({_END: "total / steps * (baseline - x)"}, _score_off,
            "All your signs are reversed: the walk goes from the baseline to x, so multiply by (x - baseline)."),
        "zero-baseline": M(_walk(path=lambda x, baseline, part: part * x,
                                 end=lambda mean, x, baseline: (mean * x).sum(dim=-1)), _sum_off,
            "You walk from zero, whatever the baseline is. The points are baseline + part · (x - baseline)."),
        "path-from-zero": M(_walk(path=lambda x, baseline, part: part * x), _sum_off,
            "Your points lie between zero and x, but the way that you multiply by begins at the baseline. They must be the "
            "same walk: baseline + part · (x - baseline)."),
        "baseline-not-added": M(_walk(path=lambda x, baseline, part: part * (x - baseline)), _sum_off,
            "Your points are part · (x - baseline): the walk starts at zero. Add the baseline."),
        "baseline-of-the-first": M(lambda model, x, baseline, target, steps: integrated_gradients(
            model, x, baseline[:1].expand_as(x), target, steps), _sum_off,
            "Every review starts from the baseline of the first one. Each has its own row."),
        "walked-backwards": M(_walk(path=lambda x, baseline, part: x + part * (x - baseline)), _sum_off,
            "Your walk begins at x and leads away from the baseline. It begins at the baseline: baseline + part · (x - "
            "baseline)."),
        "gradient-times-input": M(_one_point(1.0, lambda mean, x, baseline: (mean * x).sum(dim=-1)), _sum_off,
            "That is gradient × input: one slope, taken at the end. The whole point is to average the slopes along the "
            "way."),
        "end-only": M(_one_point(1.0), _sum_off,
            "Only the gradient at x counts, where the model may be sure and its slopes flat. Average over the points of "
            "all steps."),
        "start-only": M(_one_point(0.0), _sum_off,
            "Only the gradient at the baseline counts. Average over the points of all steps; does your point change with "
            "the step?"),
        "middle-only": M(_one_point(0.5), _sum_off,
            "Only the gradient half-way counts. Average over the points of all steps."),
        "last-step": M({"total += torch.autograd.grad(value, point)[0]": "total = torch.autograd.grad(value, point)[0]"},
            _sum_off, "Each step overwrites the last one, so one gradient is left, divided by the number of steps. Add: "
            "+=."),
        "last-step-whole": M({
            "total += torch.autograd.grad(value, point)[0]": "total = torch.autograd.grad(value, point)[0]",
                              "total / steps": "total"}, _sum_off,
            "One gradient is left, that of the last step. Add those of all steps (+=), and divide by their number."),
        "gradient-of-x": M(_slope_of("x"), _sum_off,
            "You differentiate with respect to x, and the point is only partly made of x: at alpha, every slope "
            "shrinks by the factor alpha. Differentiate with respect to the *point*."),
        "gradient-of-the-baseline": M(_slope_of("baseline"), _sum_off,
            "You differentiate with respect to the baseline, so every slope shrinks by the factor 1 - alpha. "
            "Differentiate with respect to the *point*."),
        "cross-entropy": M(_walk(value=lambda model, point, target: nn.functional.cross_entropy(model(point), target,
                                                                                             reduction="sum")), _sum_off,
            "You differentiate the cross-entropy. It *falls* where the model is surer of the target, so the signs are "
            "reversed, and it flattens out where the model is sure. Differentiate the log-odds."),
        "cross-entropy-mean": M(_walk(value=lambda model, point, target: nn.functional.cross_entropy(model(point), target)),
            _sum_off, "You differentiate the cross-entropy, averaged over the batch. It falls where the model is "
            "surer, so the signs are reversed, and every score is divided by the number of reviews. Differentiate the "
            "sum of the log-odds."),
        "rescaled": M(_made_to_add_up(lambda scores, rise: scores * rise / scores.sum(dim=1, keepdim=True)), _score_off,
            "You stretch the scores until they add up. Then the sum checks nothing any more: leave the gap in, so "
            "that one can see it."),
        "gap-spread": M(_made_to_add_up(lambda scores, rise: scores + (rise - scores.sum(dim=1, keepdim=True))
                                        / scores.shape[1]), _score_off,
            "You spread what is missing over the tokens. Then the sum checks nothing any more: leave the gap in, so "
            "that one can see it."),
        "always-fifty": M(lambda model, x, baseline, target, steps: integrated_gradients(model, x, baseline, target, 50),
            _score_off, "You always take 50 steps. Take as many as `steps` says."),
        "one-word-walks": M(_one_word_walks, _sum_off,
            "You let one word walk at a time, with all the others whole already. That is occlusion in small steps. "
            "All words walk together."),
        "occlusion": M(_occlusion, _sum_off,
            "That is occlusion: what is lost if one word is replaced by its baseline, with all the others whole. Here "
            "all words walk together, and you average the slopes."),
        "trapezoid": M(_straight_lines, _score_off,
            "You take the slopes at the ends of the steps, the first and the last counting half (the trapezoidal "
            "rule). That's as good a mean; the notebook compares with captum's midpoints.", convention=True),
        "absolute-features": M({_MEAN: "(total / steps * (x - baseline)).abs().sum(dim=-1)"}, _score_off,
            "You drop the signs before you sum over the features. Features that pull in two directions then add up "
            "instead of cancelling: sum first, with the signs."),
        "accumulated": M(_accumulated, _sum_off,
            "The gradients of earlier steps are still there when the next ones come: backward() *adds* to .grad, and you "
            "add .grad again. Clear it in each step, or use torch.autograd.grad."),
        "mean-over-batch": M({_VALUE: "log_odds(model(point), target).mean()"}, _sum_off,
            "You differentiate the *mean* over the batch, so every score is divided by the number of reviews. Take the "
            "sum: then each row has its review's own gradient."),
        "reviews-mixed": M(_walk(gradient=lambda found: found.mean(dim=0, keepdim=True).expand_as(found)), _sum_off,
            "All reviews share one gradient, the mean over the batch. Each row of the gradient belongs to its own review: "
            "average over the steps only."),
        "in-training": M(_in_training, _sum_off,
            "You've put the model into training mode, where dropout changes its answers. Gradients need no training mode: "
            "leave the model as it comes."),
        "not-summed": M({_MEAN: "total / steps * (x - baseline)"}, _wrong_shape,
            "These are the scores of single numbers, and they're right. A token's score is the sum over its features."),
        "summed-over-tokens": M({_MEAN: "(total / steps * (x - baseline)).sum(dim=1)"}, _wrong_shape,
            "You add up the tokens and keep the features. It's the features that go: dim=-1."),
        "mean-over-features": M({_MEAN: "(total / steps * (x - baseline)).mean(dim=-1)"}, _sum_off,
            "A token's score is the *sum* over its features, not their mean; else the scores don't add up."),
        "lengths": M({_MEAN: "(total / steps * (x - baseline)).norm(dim=-1)"}, _score_off,
            "You take the length of each token's vector of scores. It's never negative, and it doesn't add up: a token's "
            "score is the sum over its features."),
        "absolute": M(lambda *given: integrated_gradients(*given).abs(), _score_off,
            "The signs are gone. A token that speaks against the target has a negative score, and without signs the scores "
            "don't add up."),
        "normalised": M(_walk(end=lambda mean, x, baseline: (
            lambda found: found / found.sum(dim=1, keepdim=True))((mean * (x - baseline)).sum(dim=-1))), _sum_off,
            "You've divided by the sum, so each review's scores sum to one. Leave them: their sum is the check."),
    },
    rules=(
        R(lambda case: case.answer.shape == case.expected.shape and (case.answer.sum(dim=1) - _rise(case)).abs().max()
          > 2 * (case.expected.sum(dim=1) - _rise(case)).abs().max() + 0.02, _sum_off,
          "With enough steps the two are equal (completeness). Check in this order: where the points are, what is "
          "differentiated, and what the mean gradient is multiplied by."),
        R(lambda case: case.answer.shape != case.expected.shape, _wrong_shape, "One score for each token of each review."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _score_off,
          "The sum is about right and the single scores aren't. Are the points in the middles of the steps, and does every "
          "token keep its own gradient?"),
    ),
    hints=(
        "Begin with one step: the point half-way, its gradient, times (x - baseline), summed over the features.",
        "The middle of step s, of S steps, is baseline + (s + 0.5) / S * (x - baseline).",
        "In the loop: point.requires_grad_(), value = log_odds(model(point), target).sum(), and total += "
        "torch.autograd.grad(value, point)[0].",
        "After the loop: (total / steps * (x - baseline)).sum(dim=-1).",
    ),
)


# ---------------------------------------------------------------- 11.7 how far does the answer move?

def moved(weights, others, own):
    before = (weights @ own).sigmoid()                                     # the review's probability
    after = (others @ own).sigmoid()                                       # (attack,)
    return (after - before).abs()


def moved_probes(generator: torch.Generator) -> list[tuple]:
    """Five tokens and four attacks, three and three, two and one; log-odds of both signs, and a review that isn't sure."""
    probes = []
    for attacks, tokens in ((4, 5), (3, 3), (1, 2)):
        weights, others = (torch.randn(*shape, generator=generator).mul(1.5).softmax(dim=-1)
                           for shape in ((tokens,), (attacks, tokens)))
        own = 2.5 * torch.randn(tokens, generator=generator)
        own[0], own[1] = own[0].abs() + 0.5, -own[1].abs() - 0.5
        probes.append((weights, others, own))
    return probes


def observe_moved(function, weights, others, own):
    moves = function(weights, others, own)
    if isinstance(moves, (list, tuple)):
        raise TypeError(f"expected one tensor (attack,), got a {type(moves).__name__} of {len(moves)}. The notebook "
                            "takes the median of it: return a tensor. `others @ own` does all attacks at once, without "
                            "a loop")
    return moves


def _attack(case: Case) -> str:
    """The attack that is furthest off."""
    i = int((case.answer - case.expected).abs().argmax())
    return f"attack {i}, counted from 0, moves your answer by {case.answer[i]:.4f}, expected {case.expected[i]:.4f}."


def _any(case: Case) -> str:
    if case.answer.shape != case.expected.shape:
        return f"your result has the shape {tuple(case.answer.shape)}, expected {tuple(case.expected.shape)}."
    return _attack(case)


MOVED = ask(
    "11.7", moved,
    probes=moved_probes,
    observe=observe_moved,
    signature="moved(weights (token,), others (attack, token), own (token,)) -> moved (attack,)",
    mistakes={
        "log-odds": M(lambda weights, others, own: (others @ own - weights @ own).abs(), _attack,
            "That is how far the log-odds move. The question is about probabilities: put both through the sigmoid first."),
        "sigmoid-of-difference": M(lambda weights, others, own: (others @ own - weights @ own).abs().sigmoid(), _attack,
            "The sigmoid of a difference isn't the difference of two probabilities. Take the sigmoid of each, then "
            "subtract."),
        "sigmoid-of-signed-difference": M(lambda weights, others, own: (others @ own - weights @ own).sigmoid(), _attack,
            "The sigmoid of a difference isn't the difference of two probabilities. Take the sigmoid of each, then "
            "subtract."),
        "of-the-winner": M(lambda weights, others, own: ((others @ own).abs().sigmoid() - (weights @ own).abs().sigmoid()
                                                         ).abs(), _attack,
            "You compare how sure the model is of whichever class wins. If the winner changes, that hides the largest "
            "move of all: compare the probability of 'positive' before and after."),
        "mean-for-sum": M(
            lambda weights, others, own: ((others * own).mean(dim=-1).sigmoid() - (weights * own).mean().sigmoid()
                                                        ).abs(), _attack,
            "You take the mean of weight times log-odds. The weights sum to one already, so it's their *sum* that is the "
            "weighted mean."),
        "signed": M({"(after - before).abs()": "after - before"}, _attack,
            "The sign is still there. How *far* it moves, up or down, is never negative."),
        "mean-of-probabilities": M(lambda weights, others, own: (others @ own.sigmoid() - weights @ own.sigmoid()).abs(),
            _attack, "You average the tokens' probabilities. The model averages their *log-odds*, and takes the "
            "probability of the mean."),
        "weights-compared": M(lambda weights, others, own: (others - weights).abs().sum(dim=-1) / 2, _attack,
            "That is how far the weights have moved. The question is how far the answer does: mix `own` with each set of "
            "weights first."),
        "both-classes": M({"(after - before).abs()": "2 * (after - before).abs()"}, _attack,
            "That is the change of both classes' probabilities together. They move by the same amount; count one."),
        "relative": M({"(after - before).abs()": "(after - before).abs() / before"}, _attack,
            "You divide by the probability before. The question is the plain difference."),
        "squared": M({"(after - before).abs()": "(after - before) ** 2"}, _attack,
            "You square the difference. The question is how far the probability moves."),
        "from-equal-weights": M({"weights @ own": "own.mean()"}, _attack,
            "Before the attack you give all tokens equal weight. Begin with the model's own `weights`."),
        "from-one-half": M({"(weights @ own).sigmoid()": "0.5"}, _attack,
            "You measure how far the answer is from one half. Measure from the answer with the model's own weights."),
        "probability-after": M({"(after - before).abs()": "after"}, _attack,
            "That is the probability after the attack. How far is it from the one before?"),
        "word-by-word": M(lambda weights, others, own: ((others - weights) * own).abs().sum(dim=-1), _attack,
            "You add up how far each token's share moves. What one token loses another may make good: mix first, then "
            "compare."),
        "largest": M({"(after - before).abs()": "(after - before).abs().max()"}, _any,
            "Only the largest move was returned. There is one for each attack."),
        "averaged": M({"(after - before).abs()": "(after - before).abs().mean()"}, _any,
            "The moves were averaged. There is one for each attack."),
    },
    rules=(
        R(lambda case: case.answer.shape != case.expected.shape, _any, "One number for each attack."),
        R(lambda case: (case.answer > 1).any() or (case.answer < 0).any(), _attack,
          "Two probabilities differ by something between 0 and 1."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _attack,
          "By hand, for one attack: the weighted mean of `own` before and after, the sigmoid of each, and the difference."),
    ),
    hints=(
        "weights @ own is the weighted mean: the review's log-odds.",
        "others @ own has one number for each attack.",
        "(others @ own).sigmoid() - (weights @ own).sigmoid(), without its sign.",
    ),
)

# ---------------------------------------------------------------- the questions

QUIZ = """- name: random-order-of-thirty
  taught: "11"
  question: Reviews have 30 tokens, and 3 of them decide. What average precision does a random order reach?
  options:
    - text: One half, like any score that is guessed at random.
      remark: That is chance for the area under the ROC curve. Here it depends on how many tokens decide.
    - text: Exactly 0.1, the proportion of tokens that decide.
      remark: That's close. But in short lists a lucky first rank counts a lot, and the mean comes out higher.
    - text: About 0.19.
      right: true
      remark: Somewhat more than the proportion of deciding tokens, 0.1, since in short lists a lucky first
        rank counts a lot.
- name: right-words-wrong-verdict
  taught: "11"
  question: The upper half of a model is filled with random numbers. Its verdicts are now guesses, and the
    explanation still
    points at the words that people would mark. What follows?
  options:
    - text: The explanation has nothing to do with the model, which no longer depends on these words.
      remark: Measure it, in log-odds. Deleting one of them moves the broken model several times as far as deleting
        another word (section 7).
    - text: Nothing yet. The model may still depend on these words, and draw the wrong conclusion from them.
      right: true
      remark: So it was on all five seeds. Agreement can't tell a right verdict from a wrong one made of the
        same words.
    - text: The verdicts are right after all, since they rest on the right words.
      remark: Swap the rows of the output layer. The same words, and every verdict is wrong.
- name: one-large-one-small
  taught: "11"
  question: For one word occlusion gives 6 and integrated gradients give 0.2, with a gap of 0.00. Which one has a bug?
  options:
    - text: Integrated gradients, since the word clearly matters.
      remark: The gap says that they add up. They average over the road, where the word may pull one way first and the
        other way later.
    - text: Neither. One asks what the text loses without this word, the other who moved the log-odds on the
        way there.
      right: true
      remark: A word that decides only together with others can come out large in one and small in the other.
    - text: Occlusion, since its scores don't add up.
      remark: They aren't meant to. Two words that decide together each get all of it.
- name: seeds-shuffled
  taught: "11"
  question: On one seed, shuffled pooling weights change nothing; on another they change most answers. What
    would you look at?
  options:
    - text: How many tokens say by themselves what the review says.
      right: true
      remark: Where nearly all of them do, it hardly matters which are read. On our five seeds that divides those that stay
        from those that move; on two more it goes part of the way.
    - text: Which of the two models has the higher accuracy.
      remark: They can be equally good. It's about how they work.
    - text: Whether the weights of the first model are closer to uniform.
      remark: They may be, or not. Sharp weights can be shuffled without harm if every token carries the verdict.
- name: said-twice
  taught: "11"
  question: A review says 'dull' twice, far apart. Leaving out one token at a time gives both about zero. What
    follows?
  options:
    - text: Either of the two is enough for the model, so one can cover for the other.
      right: true
      remark: With one gone, the other still says it. Taking out one token at a time can't see this.
    - text: The word 'dull' doesn't matter to the model.
      remark: Take out both, and see. One by one, each is covered by the other.
    - text: There is a bug in the method, since the word is plainly negative.
      remark: "It answers the question that it was asked: what one token changes while all others stay."
- name: half-is-little
  taught: "11"
  question: Weights reach a comprehensiveness of 0.20, random scores 0.17. What can you say?
  options:
    - text: A fifth of the verdict comes from the words that the weights mark.
      remark: Random words contribute nearly as much. Any text loses when many of its words go.
    - text: They're hardly better than random, and another seed may say the opposite.
      right: true
      remark: Without the row of random scores, 0.20 would look like a success.
    - text: They are faithful, because 0.20 is clearly above zero.
      remark: So are random scores. Zero isn't the baseline.
- name: which-part-is-the-half
  taught: "07"
  question: Rollout takes ½(A + I) of each layer. Which part of the block does the identity stand for?
  options:
    - text: The layer norm, which keeps a word's vector in place.
      remark: It changes the size of a vector, and rollout doesn't look at it.
    - text: The feed-forward layer, which works on every word by itself.
      remark: It works on each word alone, but it isn't an identity. Rollout leaves it out.
    - text: The residual connection, which passes a word's vector on.
      right: true
      remark: Without it a word would have to attend to itself to be kept. That both halves count equally is an
        assumption.
"""

WARM_UP = """
- name: what-a-map-leaves-out
  taught: "10"
  question: A head's map shows that 'moving' looks at 'not' with a weight of 0.9. What doesn't it show?
  options:
    - text: Whether the row sums to one.
      remark: It does, in every map. The weights come out of a softmax.
    - text: Which way the head then pushes the label, and whether the model needs it.
      right: true
      remark: That depends on the values and on all that follows. Today's question is how to find out.
    - text: From which layer the head is.
      remark: A map belongs to one head of one layer.
- name: one-point-of-log-odds
  taught: "01"
  question: One word more takes a probability from 0.50 to 0.73, in another text from 0.993 to 0.997. Where did
    the word bring more
    evidence?
  options:
    - text: In the first text.
      remark: Look at the log-odds, as naive Bayes adds them up. ln(0.73 / 0.27) is 1.0, and it was 0.
    - text: About the same in both.
      right: true
      remark: The log-odds rise by about one both times. Close to 0 and 1 a probability can hardly move any more.
    - text: In the second text, since it's harder to get from 0.993 to 0.997.
      remark: It is harder, and the log-odds allow for that. They rise by about one both times.
- name: slope-of-a-product
  taught: "00"
  question: f = a · b, with a = 3 and b = 5. What is the gradient of f with respect to a?
  options:
    - text: "5"
      right: true
      remark: The other factor. So how much a matters depends on what b is at that moment.
    - text: "3"
      remark: That's a itself. If a grows by a little, f grows by b times as much.
    - text: "15"
      remark: That's f. The gradient is how fast f changes.
"""
