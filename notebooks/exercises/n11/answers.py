"""The course's answers to the exercises of notebook 11, and what each known mistake would write."""

import functools
import math

import torch

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 11.1

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


PRECISION = Answers(
    average_precision,
    mutants={
        "precision-at-k": _ap(lambda hit, precision, recall: precision[int(hit.sum()) - 1]),
        "ascending": _ap(lambda hit, precision, recall: _at_hits(precision, hit), key=lambda scores: scores),
        "absolute": _ap(lambda hit, precision, recall: _at_hits(precision, hit), key=lambda scores: -scores.abs()),
        "not-sorted": _ap(lambda hit, precision, recall: _at_hits(precision, hit),
                          key=lambda scores: torch.arange(len(scores))),
        "all-ranks": _ap(lambda hit, precision, recall: precision.mean()),
        "divided-by-words": _ap(lambda hit, precision, recall: (precision * hit).mean()),
        "not-divided": _ap(lambda hit, precision, recall: (precision * hit).sum()),
        "auroc": _auroc,
        "trapezoid": _ap(_trapezoid),
        "interpolated": _ap(lambda hit, precision, recall: _at_hits(precision.flip(0).cummax(0).values.flip(0), hit)),
        "first-hit": _ap(lambda hit, precision, recall: 1 / (hit.argmax() + 1)),
        "rank-too-large": _ap(lambda hit, precision, recall: _at_hits(
            precision * torch.arange(1, len(hit) + 1) / torch.arange(2, len(hit) + 2), hit)),
        "hit-not-counted": _ap(lambda hit, precision, recall: _at_hits(precision - 1 / torch.arange(1, len(hit) + 1), hit)),
        "recall": _ap(lambda hit, precision, recall: recall.mean()),
        "recall-as-weight": _ap(lambda hit, precision, recall: (precision * recall).sum()),
        "recall-at-hits": _ap(lambda hit, precision, recall: (precision * recall * hit).sum()),
        "best-precision": _ap(lambda hit, precision, recall: precision.max()),
    },
)

# ---------------------------------------------------------------- 11.2

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


LEAVE = Answers(
    leave_one_out,
    mutants={
        "sign": _loo(_shorter, lambda whole, rest: rest - whole),
        "absolute": _loo(_shorter, lambda whole, rest: abs(whole - rest)),
        "not-subtracted": _loo(_shorter, lambda whole, rest: rest),
        "relative": _loo(_shorter, lambda whole, rest: (whole - rest) / whole),
        "ratio": _loo(_shorter, lambda whole, rest: rest / whole),
        "first-of-its-kind": _loo(_first_removed),
        "all-of-its-kind": _loo(lambda tokens, i: [token for token in tokens if token != tokens[i]]),
        "replaced": _loo(lambda tokens, i: [*tokens[:i], "<unk>", *tokens[i + 1:]]),
        "cut-after": _loo(lambda tokens, i: tokens[:i]),
        "cut-before": _loo(lambda tokens, i: tokens[i + 1:]),
        "two-removed": _loo(lambda tokens, i: tokens[:i] + tokens[i + 2:]),
        "next-removed": _loo(lambda tokens, i: tokens[: i + 1] + tokens[i + 2:]),
        "none-removed": _loo(lambda tokens, i: tokens[:i] + tokens[i:]),
        "token-alone": _loo(lambda tokens, i: [tokens[i]], lambda whole, alone: alone),
        "all-but-alone": _loo(lambda tokens, i: [tokens[i]]),
        "steps": _steps,
        "shares": _shares_of_sum,
        "sorted": lambda score, tokens: sorted(leave_one_out(score, tokens), reverse=True),
    },
)

# ---------------------------------------------------------------- 11.3

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


COMPREHENSIVENESS = Answers(
    comprehensiveness_of,
    mutants={
        "sufficiency": _comp(_only),
        "not-subtracted": _comp(_without, value=lambda whole, rest: rest),
        "sign": _comp(_without, value=lambda whole, rest: rest - whole),
        "no-token": _comp(_without, count=lambda share, n: int(share * n)),
        "rounded-down": _comp(_without, count=lambda share, n: max(1, int(share * n))),
        "rounded": _comp(_without, count=lambda share, n: max(1, round(share * n))),
        "one-token": _comp(_without, count=lambda share, n: 1),
        "one-too-many": _comp(_without, count=lambda share, n: int(share * n) + 1),
        "least-first": _comp(_without, key=lambda value: value),
        "absolute": _comp(_without, key=lambda value: -abs(value)),
        "first-tokens": lambda score, tokens, importances, shares: comprehensiveness_of(
            score, tokens, range(0, -len(tokens), -1), shares),
        "summed": _comp(_without, mean=lambda losses, shares: sum(losses)),
        "weighted-by-share": _comp(_without, mean=lambda losses, shares: (
            sum(loss * share for loss, share in zip(losses, shares)) / sum(shares))),
        "divided-by-share": _comp(_without, mean=lambda losses, shares: sum(losses) / sum(shares)),
        "last-share": _comp(_without, mean=lambda losses, shares: losses[-1]),
        "largest-share": _comp(_without, mean=lambda losses, shares: max(losses)),
        "absolute-losses": _comp(_without, value=lambda whole, rest: abs(whole - rest)),
        "relative": _comp(_without, value=lambda whole, rest: (whole - rest) / whole),
        "words-not-tokens": _comp(_without_words),
        "replaced": _comp(_replaced),
        "order-lost": _comp(lambda tokens, order, count: [tokens[i] for i in order[count:]]),
        "order-lost-upwards": _comp(lambda tokens, order, count: [tokens[i] for i in order[count:][::-1]]),
        "repeats-lost": _comp(lambda tokens, order, count: list(dict.fromkeys(_without(tokens, order, count)))),
        "never-restored": _never_restored,
        "share-of-importance": _by_mass,
    },
)

# ---------------------------------------------------------------- 11.4

FIRST = torch.tensor([[0.8, 0.2, 0.0], [0.6, 0.3, 0.1], [0.2, 0.4, 0.4]], dtype=torch.float64)
SECOND = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.8, 0.1]], dtype=torch.float64)
EYE = torch.eye(3, dtype=torch.float64)


def rollout_by_hand():
    # row '.' of the second layer, ½(A + I): 0.05, 0.40, 0.55; column 'not' of the first: 0.90, 0.30, 0.10
    return 0.05 * 0.90 + 0.40 * 0.30 + 0.55 * 0.10


def _entry(of, row=2, column=0):
    half_first, half_second = (FIRST + EYE) / 2, (SECOND + EYE) / 2
    return of(half_first, half_second)[row, column].item()


ENTRY = Answers(
    rollout_by_hand,
    mutants={
        "no-residual": lambda: _entry(lambda first, second: SECOND @ FIRST),
        "wrong-order": lambda: _entry(lambda first, second: first @ second),
        "no-residual-wrong-order": lambda: _entry(lambda first, second: FIRST @ SECOND),
        "no-half": lambda: _entry(lambda first, second: 4 * second @ first),
        "half-once": lambda: _entry(lambda first, second: 2 * second @ first),
        "other-way-round": lambda: _entry(lambda first, second: second @ first, 0, 2),
        "other-row": lambda: _entry(lambda first, second: second @ first, 1, 0),
        "mean-of-layers": lambda: _entry(lambda first, second: (first + second) / 2),
        "mean-without-residual": lambda: _entry(lambda first, second: (FIRST + SECOND) / 2),
        "entry-by-entry": lambda: _entry(lambda first, second: first * second),
        "maps-entry-by-entry": lambda: _entry(lambda first, second: FIRST * SECOND),
        "residual-at-the-end": lambda: _entry(lambda first, second: (SECOND @ FIRST + EYE) / 2),
        "residual-in-first": lambda: _entry(lambda first, second: SECOND @ first),
        "residual-in-second": lambda: _entry(lambda first, second: second @ FIRST),
        "one-path": lambda: 0.40 * 0.30,
    },
)

# ---------------------------------------------------------------- 11.5

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


ROLLOUT = Answers(
    rolled_out,
    mutants={
        "two-things": _roll(mix=lambda layer, eye: layer + eye, step=lambda rollout, layer: rollout @ layer),
        "no-half": _roll(mix=lambda layer, eye: layer + eye),
        "wrong-order": _roll(step=lambda rollout, layer: rollout @ layer),
        "half-at-the-end": _roll(mix=lambda layer, eye: layer + eye, end=lambda rollout, layers: rollout / 2),
        "half-at-the-end-wrong-order": _roll(mix=lambda layer, eye: layer + eye, step=lambda rollout, layer: rollout @ layer,
                                             end=lambda rollout, layers: rollout / 2),
        "no-residual": _roll(mix=lambda layer, eye: layer),
        "no-residual-wrong-order": _roll(mix=lambda layer, eye: layer, step=lambda rollout, layer: rollout @ layer),
        "half-attention-only": _roll(mix=lambda layer, eye: layer / 2 + eye),
        "residual-at-the-end": _roll(mix=lambda layer, eye: layer,
                                     end=lambda rollout, layers: (rollout + torch.eye(len(rollout))) / 2),
        "residual-everywhere": _roll(mix=lambda layer, eye: (layer + 1) / 2),
        "heads-summed": _roll(heads=lambda attentions: attentions.sum(dim=1)),
        "largest-head": _roll(heads=lambda attentions: attentions.amax(dim=1)),
        "first-head": _roll(heads=lambda attentions: attentions[:, 0]),
        "averaged": _roll(step=lambda rollout, layer: rollout + layer, end=lambda rollout, layers: rollout / layers),
        "added": _roll(step=lambda rollout, layer: rollout + layer),
        "entry-by-entry": _roll(step=lambda rollout, layer: rollout * layer),
        "transposed": _roll(end=lambda rollout, layers: rollout.T),
        "last-layer": _roll(step=lambda rollout, layer: layer),
        "first-layer-lost": _roll(heads=lambda attentions: attentions[1:].mean(dim=1)),
        "last-layer-lost": _roll(heads=lambda attentions: attentions[:-1].mean(dim=1)),
    },
)

ANSWERS = (PRECISION, LEAVE, COMPREHENSIVENESS, ENTRY, ROLLOUT)
