"""The course's answers to the exercises of notebook 10, and what each known mistake would write."""

import math

import torch

from course_utils.exercises.definitions import Answers

# ---------------------------------------------------------------- 10.1

WEIGHTS, QUERY = (0.40, 0.10, 0.25, 0.05, 0.20), 3


def distance_by_hand():
    # 'moving' is word 3; its distances to the five keys are 3, 2, 1, 0 and 1
    return 0.40 * 3 + 0.10 * 2 + 0.25 * 1 + 0.05 * 0 + 0.20 * 1


def _mean_distance(of=abs, query=QUERY, weights=WEIGHTS):
    return sum(weight * of(query - key) for key, weight in enumerate(weights))


DISTANCE = Answers(
    distance_by_hand,
    mutants={
        "signed": lambda: _mean_distance(of=lambda gap: gap),
        "signed-forward": lambda: _mean_distance(of=lambda gap: -gap),
        "mean-position": lambda: _mean_distance(query=0),
        "unweighted": lambda: _mean_distance(weights=(0.2,) * 5),
        "largest-key": lambda: 3.0,
        "largest-term": lambda: 3 * 0.40,
        "query-too-far": lambda: _mean_distance(query=4),
        "query-too-near": lambda: _mean_distance(query=2),
        "squared": lambda: _mean_distance(of=lambda gap: gap**2),
        "root-of-squares": lambda: math.sqrt(_mean_distance(of=lambda gap: gap**2)),
        "divided-by-keys": lambda: _mean_distance() / 5,
        "divided-by-longest": lambda: _mean_distance() / 3,
        "words-between": lambda: _mean_distance(of=lambda gap: max(abs(gap) - 1, 0)),
        "own-left-out": lambda: _mean_distance() / (1 - WEIGHTS[QUERY]),
        "only-before": lambda: _mean_distance(of=lambda gap: max(gap, 0)),
        "counted-from-one": lambda: _mean_distance(of=lambda gap: abs(gap) + 1),
    },
)

# ---------------------------------------------------------------- 10.2

def previous_token_score(weights):
    from_previous = weights.diagonal(offset=-1, dim1=-2, dim2=-1)          # (heads, query - 1)
    return from_previous.mean(dim=-1)


def _at(weights, offset):
    return weights.diagonal(offset=offset, dim1=-2, dim2=-1)


def _wrapped(weights):
    query = torch.arange(weights.shape[-1])
    return weights[:, query, query - 1].mean(dim=-1)


PREVIOUS = Answers(
    previous_token_score,
    mutants={
        "first-counted": lambda weights: _at(weights, -1).sum(-1) / weights.shape[-1],
        "next": lambda weights: _at(weights, 1).mean(-1),
        "itself": lambda weights: _at(weights, 0).mean(-1),
        "two-before": lambda weights: _at(weights, -2).mean(-1),
        "wrapped": _wrapped,
        "heads-averaged": lambda weights: _at(weights, -1).mean(),
        "not-averaged": lambda weights: _at(weights, -1),
        "queries-kept": lambda weights: _at(weights, -1).mean(dim=0),
        "summed": lambda weights: _at(weights, -1).sum(-1),
        "largest-of-row": lambda weights: (
            weights[:, 1:].argmax(-1) == torch.arange(weights.shape[-1] - 1)).double().mean(-1),
        "all-before": lambda weights: weights.tril(-1).sum(-1)[:, 1:].mean(-1),
        "whole-square": lambda weights: weights[:, 1:, :-1].mean(dim=(1, 2)),
        "wrong-dimensions": lambda weights: weights.diagonal(-1).mean(-1),
        "maximum": lambda weights: _at(weights, -1).amax(-1),
    },
)

# ---------------------------------------------------------------- 10.3

def rest_column(weights, head, tail):
    first_of_tail = weights.shape[1] - tail                                # not -tail: -0 is 0
    rest = weights[:, head:first_of_tail].sum(dim=1, keepdim=True)         # (query, 1); zeros if nothing lies between
    return torch.cat([weights[:, :head], rest, weights[:, first_of_tail:]], dim=1)


def _rest(middle, before=lambda w, head, end: w[:, :head], after=lambda w, head, end: w[:, end:]):
    """The first keys, what `middle` makes of a row and of its keys between, and the last keys."""
    def answer(weights, head, tail):
        end = weights.shape[1] - tail
        return torch.cat([before(weights, head, end), middle(weights, head, end), after(weights, head, end)], dim=1)
    return answer


def _renormalised(weights, head, tail):
    shown = rest_column(weights, head, tail)
    return shown / shown.sum(dim=1, keepdim=True)


def _minus_zero(weights, head, tail):
    return torch.cat([weights[:, :head], weights[:, head:-tail].sum(1, keepdim=True), weights[:, -tail:]], dim=1)


def _none_between(weights, head, tail):
    shown = rest_column(weights, head, tail)
    return shown if head + tail < weights.shape[1] else weights


def _rows_cut(weights, head, tail):
    end = len(weights) - tail
    return torch.cat([weights[:head], weights[head:end].sum(dim=0, keepdim=True), weights[end:]])


REST = Answers(
    rest_column,
    mutants={
        "mean": _rest(lambda w, head, end: w[:, head:end].mean(dim=1, keepdim=True)),
        "maximum": _rest(lambda w, head, end: w[:, head:end].amax(1, keepdim=True) if end > head else w[:, :1] * 0),
        "rest-last": lambda w, head, tail: rest_column(w, head, tail)[
            :, [*range(head), *range(head + 1, head + 1 + tail), head]],
        "rest-first": lambda w, head, tail: rest_column(w, head, tail)[
            :, [head, *range(head), *range(head + 1, head + 1 + tail)]],
        "renormalised": _renormalised,
        "one-minus": _rest(lambda w, head, end: 1 - w[:, :head].sum(1, keepdim=True) - w[:, end:].sum(1, keepdim=True)),
        "dropped": lambda w, head, tail: torch.cat([w[:, :head], w[:, w.shape[1] - tail:]], dim=1),
        "empty-rest": _rest(lambda w, head, end: w[:, :1] * 0),
        "all-in-rest": _rest(lambda w, head, end: w.sum(1, keepdim=True)),
        "tail-twice": _rest(lambda w, head, end: w[:, head:].sum(1, keepdim=True)),
        "head-twice": _rest(lambda w, head, end: w[:, :end].sum(1, keepdim=True)),
        "one-lost": _rest(lambda w, head, end: w[:, head + 1:end].sum(1, keepdim=True)),
        "one-lost-at-the-end": _rest(lambda w, head, end: w[:, head:max(head, end - 1)].sum(1, keepdim=True)),
        "one-twice": _rest(lambda w, head, end: w[:, head:end + 1].sum(1, keepdim=True)),
        "same-in-all-rows": _rest(lambda w, head, end: w[:, head:end].sum().expand(len(w), 1)),
        "minus-zero": _minus_zero,
        "minus-zero-in-rest": _rest(lambda w, head, end: w[:, head:end if end < w.shape[1] else 0].sum(1, keepdim=True)),
        "no-column": _none_between,
        "rows-cut": _rows_cut,
        "swapped": lambda w, head, tail: rest_column(w, tail, head),
        "tail-reversed": _rest(lambda w, head, end: w[:, head:end].sum(1, keepdim=True),
                               after=lambda w, head, end: w[:, end:].flip(1)),
        "tail-follows": _rest(lambda w, head, end: w[:, head + w.shape[1] - end:].sum(1, keepdim=True),
                              after=lambda w, head, end: w[:, head:head + w.shape[1] - end]),
    },
)

# ---------------------------------------------------------------- 10.4

def gated(context, gates):
    kept = context * gates[:, None, None]                                  # (batch, heads, query, d_head)
    return kept.transpose(1, 2).flatten(-2)                                # (batch, query, heads * d_head)


def _merged_in_order(x):
    return x.transpose(1, 2).flatten(-2)


def _gate(how):
    return lambda context, gates: _merged_in_order(how(context, gates[None, :, None, None]))


GATED = Answers(
    gated,
    mutants={
        "not-transposed": lambda context, gates: (context * gates[:, None, None]).reshape(
            context.shape[0], context.shape[2], -1),
        "wrong-columns": lambda context, gates: _merged_in_order(context) * gates.repeat(context.shape[-1]),
        "interleaved": lambda context, gates: (context * gates[:, None, None]).permute(0, 2, 3, 1).flatten(-2),
        "wrong-pair": lambda context, gates: (context * gates[:, None, None]).transpose(2, 3).reshape(
            context.shape[0], context.shape[2], -1),
        "added": _gate(lambda context, gates: context + gates),
        "ignored": lambda context, gates: _merged_in_order(context),
        "opposite": _gate(lambda context, gates: context * (1 - gates)),
        "on-or-off": _gate(lambda context, gates: context * (gates > 0.5)),
        "zero-or-not": _gate(lambda context, gates: context * (gates != 0)),
        "softmax": _gate(lambda context, gates: context * gates.softmax(dim=1)),
        "shares": _gate(lambda context, gates: context * gates / gates.sum()),
        "sigmoid": _gate(lambda context, gates: context * gates.sigmoid()),
        "twice": _gate(lambda context, gates: context * gates**2),
        "summed": lambda context, gates: (context * gates[:, None, None]).sum(dim=1),
        "averaged": lambda context, gates: (context * gates[:, None, None]).mean(dim=1),
        "not-merged": lambda context, gates: context * gates[:, None, None],
        "not-flattened": lambda context, gates: (context * gates[:, None, None]).transpose(1, 2),
        "cut-out": lambda context, gates: _merged_in_order((context * gates[:, None, None])[:, gates != 0]),
    },
)

# ---------------------------------------------------------------- 10.5

def best_lower_end(scores, control, z):
    counted = ~control.isnan()                                             # (review,)
    lead = scores[..., counted] - control[counted]                         # (seed, head, review)
    lower = lead.mean(dim=-1) - z * lead.std(dim=-1) / counted.sum().sqrt()
    return lower.amax(dim=-1)                                              # (seed,)


def _lower(lead=lambda scores, control: scores - control, error=lambda lead, n: lead.std(dim=-1) / n**0.5,
           number=lambda counted: int(counted.sum()), factor=lambda z: z, best=lambda lower: lower.amax(dim=-1)):
    """The answer with one step done otherwise."""
    def answer(scores, control, z):
        counted = ~control.isnan()
        found = lead(scores[..., counted], control[counted])
        return best(found.mean(dim=-1) - factor(z) * error(found, number(counted)))
    return answer


def _nan_as_zero(scores, control, z):
    return best_lower_end(scores.nan_to_num(), control.nan_to_num(), z)


def _best_mean_first(scores, control, z):
    counted = ~control.isnan()
    lead = scores[..., counted] - control[counted]
    best = lead[torch.arange(len(lead)), lead.mean(dim=-1).argmax(dim=-1)]             # (seed, review)
    return best.mean(dim=-1) - z * best.std(dim=-1) / counted.sum().sqrt()


LOWER_END = Answers(
    best_lower_end,
    mutants={
        "nan-as-zero": _nan_as_zero,
        "all-counted": _lower(number=len),
        "no-control": _lower(lead=lambda scores, control: scores),
        "control-averaged": _lower(lead=lambda scores, control: scores - control.mean()),
        "ratio": _lower(lead=lambda scores, control: scores / control),
        "only-mean": _lower(factor=lambda z: 0.0),
        "spread": _lower(error=lambda lead, n: lead.std(dim=-1)),
        "by-number": _lower(error=lambda lead, n: lead.std(dim=-1) / n),
        "variance": _lower(error=lambda lead, n: lead.var(dim=-1) / n**0.5),
        "upper": _lower(factor=lambda z: -z),
        "other-factor": _lower(factor=lambda z: 1.96),
        "with-n": _lower(error=lambda lead, n: lead.std(dim=-1, correction=0) / n**0.5),
        "worst-head": _lower(best=lambda lower: lower.amin(dim=-1)),
        "heads-averaged": _lower(lead=lambda scores, control: (scores - control).mean(dim=1), best=lambda lower: lower),
        "best-mean-first": _best_mean_first,
        "best-of-each-review": _lower(lead=lambda scores, control: (scores - control).amax(dim=1), best=lambda lower: lower),
        "size-of-lead": _lower(lead=lambda scores, control: (scores - control).abs()),
        "heads-kept": _lower(best=lambda lower: lower),
        "seeds-averaged": lambda scores, control, z: best_lower_end(scores.mean(dim=0, keepdim=True), control, z)[0],
        "decided": _lower(best=lambda lower: (lower.amax(dim=-1) > 0).float()),
    },
)

ANSWERS = (DISTANCE, PREVIOUS, REST, GATED, LOWER_END)
