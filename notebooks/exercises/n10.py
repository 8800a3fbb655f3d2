"""Exercises, quiz and warm-up of notebook 10, attention maps."""

import math
import re

import torch
from torch import nn

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import listed, one_tensor, reached, reaches, spread, width

# ---------------------------------------------------------------- 10.1 the distance of one row

WEIGHTS, QUERY = (0.40, 0.10, 0.25, 0.05, 0.20), 3


def distance_by_hand():
    # 'moving' is word 3; its distances to the five keys are 3, 2, 1, 0 and 1
    return 0.40 * 3 + 0.10 * 2 + 0.25 * 1 + 0.05 * 0 + 0.20 * 1


def _mean_distance(of=abs, query=QUERY, weights=WEIGHTS):
    return sum(weight * of(query - key) for key, weight in enumerate(weights))


def _one(case: Case) -> str:
    return f"{case.answer.item():.3f}"


DISTANCE = ask(
    "10.1", distance_by_hand,
    kind="number",
    tolerance=1e-3,
    signature="one number: how many words away, on average",
    mistakes={
        "signed": M(lambda: _mean_distance(of=lambda gap: gap),
            lambda case: f"{_one(case)} is the mean with signs.",
            "Words before and words after cancel each "
                "other. A distance has no sign: take |query − key| for each key first."),
        "signed-forward": M(lambda: _mean_distance(of=lambda gap: -gap),
            lambda case: f"{_one(case)} is negative, and a distance never is.",
            "Words before count as negative here, words after as positive. Take |query − key| for each key first."),
        "mean-position": M(lambda: _mean_distance(query=0),
            lambda case: f"{_one(case)} is the mean position of the keys.",
            "It says where the row "
                "looks. You need how far that is from the query's own position, 3."),
        "unweighted": M(lambda: _mean_distance(weights=(0.2,) * 5),
            lambda case: f"{_one(case)} counts all five keys equally.",
            "That is what a row with weight "
                "0.2 everywhere would give. Multiply each distance by its weight."),
        "largest-key": M(lambda: 3.0,
            lambda case: f"{_one(case)} is the distance of one key, the one with the largest weight.",
            "The other keys have 0.60 of the weight between them; the mean counts them too."),
        "largest-term": M(lambda: 3 * 0.40,
            lambda case: f"{_one(case)} is what 'not' contributes, the key with the largest weight.",
            "The mean adds up what all five keys contribute."),
        "query-too-far": M(lambda: _mean_distance(query=4),
            lambda case: f"{_one(case)} puts the query one position too far right.",
            "Count queries and keys from the same number: with 'not' as 0, 'moving' is 3, and its distance to itself is "
                "0."),
        "query-too-near": M(lambda: _mean_distance(query=2),
            lambda case: f"{_one(case)} puts the query one position too far left.",
            "Count queries and keys from the same number: with 'not' as 0, 'moving' is 3, and its distance to itself is "
                "0."),
        "squared": M(lambda: _mean_distance(of=lambda gap: gap**2),
            lambda case: f"{_one(case)} is the mean of the squared distances.",
            "The far keys count too "
                "much: |query − key|, without the square."),
        "root-of-squares": M(lambda: math.sqrt(_mean_distance(of=lambda gap: gap**2)),
            lambda case: f"{_one(case)} is the root of the mean square.",
            "That is a different kind of mean, in which far keys count more. Use the plain mean of |query − key|."),
        "divided-by-keys": M(lambda: _mean_distance() / 5,
            lambda case: f"{_one(case)} was divided by the number of keys.",
            "The weights already sum to one, so the weighted sum is the mean."),
        "divided-by-others": M(lambda: _mean_distance() / 4,
            lambda case: f"{_one(case)} was divided by four, the number of the other keys.",
            "The weights already sum to one, so the weighted sum is the mean."),
        "divided-by-longest": M(lambda: _mean_distance() / 3,
            lambda case: f"{_one(case)} is a fraction of the longest distance.",
            "The answer is a number of words: don't divide."),
        "words-between": M(lambda: _mean_distance(of=lambda gap: max(abs(gap) - 1, 0)),
            lambda case: f"{_one(case)} counts the words between query and key.",
            "There's no word between neighbours, but their distance is 1: the difference of the two positions."),
        "own-left-out": M(lambda: _mean_distance() / (1 - WEIGHTS[QUERY]),
            lambda case: f"{_one(case)} leaves out the weight on the word itself.",
            "The key 'moving' belongs to the row, with distance 0 and weight 0.05; don't rescale the other weights."),
        "only-before": M(lambda: _mean_distance(of=lambda gap: max(gap, 0)),
            lambda case: f"{_one(case)} counts only the keys before the query.",
            "This row also looks at the full stop after it: distance 1, weight 0.20."),
        "counted-from-one": M(lambda: _mean_distance(of=lambda gap: abs(gap) + 1),
            lambda case: f"{_one(case)}: here a word is one position away from itself.",
            "|query − key| is 0 for the word itself and 1 for its neighbours."),
    },
    rules=(
        R(lambda case: case.answer < 0, lambda case: f"{_one(case)} is negative.", "A distance never is."),
        R(lambda case: case.answer > 3, lambda case: f"{_one(case)} is more than 3.", "The furthest key, 'not', is 3 "
          "words away, and a mean lies between the smallest distance and the largest."),
        R(lambda case: case.answer < 1.2, lambda case: f"{_one(case)} is less than 1.2.",
          "The key 'not' alone contributes 0.40 · 3 to the sum, and no key contributes a negative number."),
    ),
    hints=(
        "Write the distance of 'moving' to each key under its weight. To itself it is 0.",
        "The distances are 3, 2, 1, 0, 1. Multiply each by its weight and add up the products.",
    ),
)

# ---------------------------------------------------------------- 10.2 a score for previous-token heads


def previous_token_score(weights):
    from_previous = weights.diagonal(offset=-1, dim1=-2, dim2=-1)          # (heads, query - 1)
    return from_previous.mean(dim=-1)


def _at(weights, offset):
    return weights.diagonal(offset=offset, dim1=-2, dim2=-1)


def _wrapped(weights):
    query = torch.arange(weights.shape[-1])
    return weights[:, query, query - 1].mean(dim=-1)


def _maps(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Rows that sum to one, (…, query, key), neither flat nor sharp."""
    return torch.randn(*shape, generator=generator).mul(1.5).softmax(dim=-1)


def _previous_probes(generator: torch.Generator) -> list[tuple]:
    return [(_maps(generator, *shape),) for shape in ((3, 6, 6), (4, 7, 7), (5, 2, 2), (1, 3, 3), (1, 2, 2))]


def _scores(case: Case) -> str:
    return f"you give {listed(case.answer)}, expected {listed(case.expected)}."


def _got_shape(case: Case) -> str:
    return f"your shape is {tuple(case.answer.shape)}, expected {tuple(case.expected.shape)}."


def _previous_weights(case: Case, head: int) -> torch.Tensor:
    return case.inputs[0][head].diagonal(-1)


def _head_outside(case: Case) -> int | None:
    """The first head whose score is no mean of its weights at the key before."""
    for head, score in enumerate(case.answer.tolist()):
        there = _previous_weights(case, head)
        if not there.min() - 1e-4 <= score <= there.max() + 1e-4:
            return head
    return None


def _outside(case: Case) -> str:
    head = _head_outside(case)
    there = _previous_weights(case, head)
    known = f"lie between {there.min():.3f} and {there.max():.3f}" if len(there) > 1 else f"are {there[0]:.3f} alone"
    return f"head {head} gets {case.answer[head]:.3f}, but its weights at the key before {known}."


PREVIOUS = ask(
    "10.2", previous_token_score,
    probes=_previous_probes,
    signature="previous_token_score(weights (heads, query, key)) -> scores (heads,)",
    mistakes={
        "first-counted": M(lambda weights: _at(weights, -1).sum(-1) / weights.shape[-1],
            _scores,
            "The first query was counted as well. It has no key before it, so it can't have "
                "missed it: divide by one less than the number of queries."),
        "next": M(lambda weights: _at(weights, 1).mean(-1),
            _scores,
            "This is the weight on the key after the query: a next-token score. Row = query, column = "
                "key: before means column = row − 1, below the diagonal."),
        "itself": M(lambda weights: _at(weights, 0).mean(-1),
            _scores,
            "This is the main diagonal: what each word gives to itself. The key before lies one "
                "column to the left."),
        "itself-from-the-second": M(lambda weights: _at(weights, 0)[:, 1:].mean(-1),
            _scores,
            "The first query was left out, as it should be, but this is the main diagonal: what each word gives to "
                "itself. The key before lies one column to the left."),
        "itself-summed": M(lambda weights: _at(weights, 0).sum(-1) / (weights.shape[-1] - 1),
            _scores,
            "This is the main diagonal, what each word gives to itself, divided by one less than the number of queries. "
                "The key before lies one column to the left of it."),
        "two-before": M(lambda weights: _at(weights, -2).mean(-1),
            _scores,
            "This is the key two positions before the query. The one directly before lies one "
                "column left of the diagonal."),
        "wrapped": M(_wrapped,
            _scores,
            "For the first query the key before has the number −1, and in Python that is the last "
                "key. Start with the second query."),
        "heads-averaged": M(lambda weights: _at(weights, -1).mean(),
            lambda case: f"you return one number, {case.answer.item():.3f}, for {len(case.expected)} "
                "heads.",
            "The mean ran over the heads too. One positional head among many would vanish in it: keep the "
                "heads apart."),
        "not-averaged": M(lambda weights: _at(weights, -1),
            _got_shape,
            "These are the weights themselves, one for each query. Take their mean, query "
                "by query within a head."),
        "queries-kept": M(lambda weights: _at(weights, -1).mean(dim=0),
            _got_shape,
            "The mean was taken over the heads, and the queries are left. It is the other "
                "way round: one number for each head."),
        "summed": M(lambda weights: _at(weights, -1).sum(-1),
            _scores,
            "The weights were added, not averaged, so a long text would score more than a short one. "
                "Divide by the number of queries that have a key before them."),
        "largest-of-row": M(lambda weights: (
            weights[:, 1:].argmax(-1) == torch.arange(weights.shape[-1] - 1)).double().mean(-1),
            _scores,
            "You counted how often the key before has the largest weight of its row. That's "
                "a fair score, but a different one: here we want how much weight it gets."),
        "all-before": M(lambda weights: weights.tril(-1).sum(-1)[:, 1:].mean(-1),
            _scores,
            "All keys before the query were added. Only the one directly before counts; a head "
                "that looks far back isn't a previous-token head."),
        "whole-square": M(lambda weights: weights[:, 1:, :-1].mean(dim=(1, 2)),
            _scores,
            "The cut is right, but then all its entries were averaged. The key before is "
                "on the diagonal of the cut square."),
        "wrong-dimensions": M(lambda weights: weights.diagonal(-1).mean(-1),
            lambda case: f"you return {len(case.answer)} numbers for {len(case.expected)} heads.",
            "torch.diagonal takes dimensions 0 and 1 unless it is told otherwise, heads and queries here. Queries and "
                "keys are dimensions 1 and 2."),
        "wrong-dimensions-kept": M(lambda weights: weights.diagonal(-1),
            _got_shape,
            "torch.diagonal takes dimensions 0 and 1 unless it is told otherwise, heads and queries here. Name those of "
                "queries and keys, dim1=1 and dim2=2, then take the mean."),
        "wrong-dimensions-across": M(lambda weights: weights.diagonal(-1).mean(dim=0),
            _got_shape,
            "torch.diagonal without dim1 and dim2 pairs heads with queries, and then the mean ran over keys. Queries and "
                "keys are dimensions 1 and 2."),
        "maximum": M(lambda weights: _at(weights, -1).amax(-1),
            _scores,
            "The largest weight was taken. One query that looks back doesn't make a habit: take "
                "the mean."),
    },
    rules=(
        R(lambda case: (case.answer < 0).any() or (case.answer > 1).any(), lambda case:
          f"your scores are {listed(case.answer)}.", "A mean of weights lies between 0 and 1."),
        R(lambda case: _head_outside(case) is not None, _outside, "A mean lies between the smallest and the largest: "
          "print which row and which column you take."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _scores, "Each of your scores lies between "
          "the weights it should be the mean of, but is not their mean. Does every query but the first count, each "
          "as much as the others?"),
    ),
    hints=(
        "On paper: in a map of four words, mark the entries 'query 1, key 0', 'query 2, key 1', 'query 3, key 2'.",
        "They lie on a diagonal, one below the main one. How many are there for n queries?",
        "torch.diagonal has an offset, and dim1 and dim2; a loop over the queries from 1 works as well.",
    ),
)

# ---------------------------------------------------------------- 10.3 head, rest and tail


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


def _rest_probes(generator: torch.Generator) -> list[tuple]:
    """A usual map; rows of other sums with no tail; nothing between; no head, a query without keys; one row, all rest."""
    uneven = _maps(generator, 3, 8) * (0.3 + 0.5 * torch.rand(3, 1, generator=generator))
    empty = _maps(generator, 2, 9)
    empty[1] = 0.0
    return [(_maps(generator, 7, 10), 2, 3), (uneven, 3, 0), (_maps(generator, 5, 6), 4, 2), (empty, 0, 2),
            (_maps(generator, 1, 4), 0, 0)]


def _sums(case: Case) -> str:
    got = case.answer.nan_to_num().sum(dim=-1)
    return f"your rows sum to {spread(got)}, those of the given map to {spread(case.inputs[0].sum(dim=-1))}."


def _rest_of(case: Case) -> str:
    """The first row whose rest is wrong."""
    weights, head, tail = case.inputs
    got, right = case.answer[:, head], case.expected[:, head]
    row = int(((got - right).abs() > 1e-4).nonzero()[0])
    return (f"the rest of row {row} is {got[row]:.3f}; the {weights.shape[1] - head - tail} keys between sum to "
            f"{right[row]:.3f}.")


def _rest_and_sums(case: Case) -> str:
    return f"{_rest_of(case)[:-1]}, and {_sums(case)}"


def _shown(case: Case) -> torch.Tensor:
    """Which columns are keys shown as they are: (head + 1 + tail,), boolean."""
    _, head, tail = case.inputs
    return torch.arange(head + 1 + tail) != head


def _first_shown(case: Case) -> str:
    gap = ((case.answer - case.expected).abs() > 1e-4) & _shown(case)
    row, column = gap.nonzero()[0].tolist()
    _, head, tail = case.inputs
    return (f"with head = {head} and tail = {tail}, out[{row}, {column}] is {case.answer[row, column]:.3f}, expected "
            f"{case.expected[row, column]:.3f}.")


def _with_sizes(case: Case) -> str:
    weights, head, tail = case.inputs
    return (f"with {weights.shape[1]} keys, head = {head} and tail = {tail} your shape is {tuple(case.answer.shape)}, "
            f"expected {tuple(case.expected.shape)}.")


def _between_is_wrong(case: Case) -> bool:
    _, head, _ = case.inputs
    return bool(((case.answer - case.expected)[:, head].abs() > 1e-4).any())


REST = ask(
    "10.3", rest_column,
    probes=_rest_probes,
    tolerance=1e-4,
    signature="rest_column(weights (query, key), head, tail) -> (query, head + 1 + tail)",
    mistakes={
        "mean": M(_rest(lambda w, head, end: w[:, head:end].mean(dim=1, keepdim=True)),
            _rest_of,
            "The rest is a mean. Then a hundred keys look like one, and the row loses its sum: add "
                "them."),
        "maximum": M(_rest(lambda w, head, end: w[:, head:end].amax(1, keepdim=True) if end > head else w[:, :1] * 0),
            _rest_of,
            "The rest is the largest weight between. What the other keys got is lost: add them "
                "all."),
        "rest-last": M(lambda w, head, tail: rest_column(w, head, tail)[
            :, [*range(head), *range(head + 1, head + 1 + tail), head]],
            _first_shown,
            "The rest is at the end. Then the order of the columns is no longer the "
                "order of the text: it belongs between head and tail."),
        "rest-first": M(lambda w, head, tail: rest_column(w, head, tail)[
            :, [head, *range(head), *range(head + 1, head + 1 + tail)]],
            _first_shown,
            "The rest is at the beginning. Then the order of the columns is no longer "
                "the order of the text: it belongs between head and tail."),
        "renormalised": M(_renormalised,
            _sums,
            "The rows were rescaled to sum to one. A reader of the map must see the weights as "
                "they were, even in a row that doesn't sum to one."),
        "one-minus": M(_rest(lambda w, head, end: 1 - w[:, :head].sum(1, keepdim=True) - w[:, end:].sum(1, keepdim=True)),
            _sums,
            "The rest is one minus what is shown. That is right only for rows that sum to one; a "
                "query without keys has a row of zeros, and must keep it. Add up the keys in between."),
        "dropped": M(lambda w, head, tail: torch.cat([w[:, :head], w[:, w.shape[1] - tail:]], dim=1),
            _with_sizes,
            "The keys between were left out, without a column for them. The row would look as "
                "if all its weight were shown."),
        "empty-rest": M(_rest(lambda w, head, end: w[:, :1] * 0),
            _rest_of,
            "The column is there, but nothing was added up in it."),
        "all-in-rest": M(_rest(lambda w, head, end: w.sum(1, keepdim=True)),
            _rest_and_sums,
            "All keys were added up, including the ones that are shown, so those count "
                "twice."),
        "tail-twice": M(_rest(lambda w, head, end: w[:, head:].sum(1, keepdim=True)),
            _rest_and_sums,
            "The keys of the tail are in the rest as well as behind it. End the sum where "
                "the tail begins."),
        "head-twice": M(_rest(lambda w, head, end: w[:, :end].sum(1, keepdim=True)),
            _rest_and_sums,
            "The keys of the head are in the rest as well as before it. Begin the sum "
                "after the head."),
        "one-lost": M(_rest(lambda w, head, end: w[:, head + 1:end].sum(1, keepdim=True)),
            _rest_of,
            "The first key after the head is missing from the sum. Keys count from 0: the head "
                "has 0 to head − 1, so the rest begins with key number head."),
        "one-lost-at-the-end": M(_rest(lambda w, head, end: w[:, head:max(head, end - 1)].sum(1, keepdim=True)),
            _rest_of,
            "The last key before the tail is missing from the sum. A slice "
                "already leaves out its end."),
        "one-twice": M(_rest(lambda w, head, end: w[:, head:end + 1].sum(1, keepdim=True)),
            _rest_of,
            "The first key of the tail is also in the rest. A slice leaves out its end, so it "
                "should end where the tail begins."),
        "same-in-all-rows": M(_rest(lambda w, head, end: w[:, head:end].sum().expand(len(w), 1)),
            _rest_of,
            "The rest is the same in all rows: the sum ran over the queries too. Sum over "
                "the dimension of the keys only."),
        "minus-zero": M(_minus_zero,
            _with_sizes,
            "A slice that begins at −tail works until tail is 0: −0 is 0, and the slice "
                "takes the whole row. Count the tail from the front."),
        "minus-zero-in-rest": M(_rest(lambda w, head, end: w[:, head:end if end < w.shape[1] else 0].sum(1, keepdim=True)),
            lambda case: f"with tail = {case.inputs[2]} {_rest_of(case)}",
            "A slice that ends at −tail works until tail is 0: −0 is 0, and the slice is empty. Count its end from the "
                "front."),
        "no-column": M(_none_between,
            _with_sizes,
            "No keys lie between here, and the map came back as it was. The column is needed "
                "here too, filled with zeros, so that the shape never depends on the text."),
        "rows-cut": M(_rows_cut,
            _got_shape,
            "The queries were shortened, not the keys. Rows are queries, columns keys: "
                "dimension 1."),
        "swapped": M(lambda w, head, tail: rest_column(w, tail, head),
            _first_shown,
            "head and tail have changed places: `head` keys belong at the beginning, `tail` "
                "keys at the end."),
        "tail-reversed": M(_rest(lambda w, head, end: w[:, head:end].sum(1, keepdim=True),
            after=lambda w, head, end: w[:, end:].flip(1)),
            _first_shown,
            "The tail is reversed. It keeps the order of the text: the last key "
                "comes last."),
        "tail-follows": M(_rest(lambda w, head, end: w[:, head + w.shape[1] - end:].sum(1, keepdim=True),
            after=lambda w, head, end: w[:, head:head + w.shape[1] - end]),
            _first_shown,
            "Your tail consists of the keys that follow the head, and the rest adds up "
                "the last ones. The tail is the end of the text."),
    },
    rules=(
        R(lambda case: ((case.answer - case.expected).abs()[:, _shown(case)] > 1e-4).any(), _first_shown,
          "The first and last keys must be there unchanged: which columns of the map did you take?"),
        R(_between_is_wrong, _rest_and_sums, "Head and tail are right. The rest is the sum over the keys that are "
          "neither; if there are none, 0."),
    ),
    hints=(
        "Three pieces side by side: torch.cat along the keys. The middle one is (query, 1).",
        "sum(dim=1, keepdim=True) keeps the dimension that cat needs. The sum over no columns is 0 anyway.",
        "What does weights[:, -tail:] give if tail is 0? Store the index of the tail's first key, and use it twice.",
    ),
)

# ---------------------------------------------------------------- 10.4 a gate on each head


def gated(context, gates):
    kept = context * gates[:, None, None]                                  # (batch, heads, query, d_head)
    return kept.transpose(1, 2).flatten(-2)                                # (batch, query, heads * d_head)


def _merged_in_order(x):
    return x.transpose(1, 2).flatten(-2)


def _gate(how):
    return lambda context, gates: _merged_in_order(how(context, gates[None, :, None, None]))


def _gated_probes(generator: torch.Generator) -> list[tuple]:
    """(batch 2, heads 4, query 5, d_head 3), one gate 0 and one 1; then (3, 2, 4, 6); one head with a gate below zero."""
    def between(count):
        return 0.15 + 0.7 * torch.rand(count, generator=generator)

    low, high = between(2)
    gates = torch.stack([torch.minimum(low, high) * 0.5, torch.tensor(0.0), torch.tensor(1.0), 0.55 + 0.4 * high])
    return [(torch.randn(2, 4, 5, 3, generator=generator), gates),
            (torch.randn(3, 2, 4, 6, generator=generator), between(2).sort().values + torch.tensor([0.0, 0.5])),
            (100 * torch.randn(1, 1, 1, 2, generator=generator), -between(1))]


def _observe_gated(function, context, gates):
    """The heads side by side, and whether gradients reach context and gates."""
    output = function(context, gates)
    if output is None:
        return None
    return {"": one_tensor(output, "the heads side by side"),
            **reached(function, output, (context, gates), {0: "context", 1: "gates"})}


def _own_columns(case: Case, head: int) -> torch.Tensor:
    """The columns of the answer that belong to a head: (batch, query, d_head)."""
    width = case.inputs[0].shape[-1]
    return case.answer[..., head * width:(head + 1) * width]


def _wrong_head(case: Case, gate: float | None = None) -> int | None:
    """The first head, with a certain gate if one is given, whose columns are not right."""
    width = case.inputs[0].shape[-1]
    for head, value in enumerate(case.inputs[1].tolist()):
        gap = _own_columns(case, head) - case.expected[..., head * width:(head + 1) * width]
        if gap.abs().max() > 1e-4 and (gate is None or value == gate):
            return head
    return None


def _columns(case: Case, head: int | None = None) -> str:
    """The first entry of a head's columns that is wrong."""
    head = _wrong_head(case) if head is None else head
    width = case.inputs[0].shape[-1]
    right = case.expected[..., head * width:(head + 1) * width]
    gap = (_own_columns(case, head) - right).abs() > 1e-4
    text, query, column = gap.nonzero()[0].tolist()
    return (f"out[{text}, {query}, {head * width + column}] is "
        f"{_own_columns(case, head)[text, query, column] + 0.0:.3f}, expected "
            f"{right[text, query, column] + 0.0:.3f}: column {column} of head {head}, gate {case.inputs[1][head]:.2f}.")


def _size_of_one(case: Case) -> float | None:
    """How large the columns of a head with gate 1 are, in terms of what it found, if they are these times a number."""
    head = _wrong_head(case, 1.0)
    if head is None:
        return None
    width = case.inputs[0].shape[-1]
    right = case.expected[..., head * width:(head + 1) * width]
    size = (_own_columns(case, head) * right).sum() / right.square().sum()
    fits = torch.allclose(_own_columns(case, head), size * right, rtol=1e-3, atol=1e-3)
    return size.item() if fits else None


GATED = ask(
    "10.4", gated,
    probes=_gated_probes,
    observe=_observe_gated,
    signature="gated(context (batch, heads, query, d_head), gates (heads,)) -> (batch, query, heads * d_head)",
    mistakes={
        "not-transposed": M(lambda context, gates: (context * gates[:, None, None]).reshape(
            context.shape[0], context.shape[2], -1),
            _columns,
            "The gates are right, but the heads were merged without exchanging heads and "
                "queries first: a word's row is filled from several words of one head (notebook 05)."),
        "wrong-columns": M(lambda context, gates: _merged_in_order(context) * gates.repeat(context.shape[-1]),
            _columns,
            "The gates came after the merge, one after another over the columns: gate 0, "
                "gate 1, gate 2, … A head owns neighbouring columns, so its gate must be repeated for all of them first."),
        "interleaved": M(lambda context, gates: (context * gates[:, None, None]).permute(0, 2, 3, 1).flatten(-2),
            _columns,
            "The columns of the heads are shuffled like a pack of cards. Each head keeps its "
                "columns together: (batch, query, heads, d_head), then flatten."),
        "wrong-pair": M(lambda context, gates: (context * gates[:, None, None]).transpose(2, 3).reshape(
            context.shape[0], context.shape[2], -1),
            _columns,
            "Queries and columns were exchanged instead of heads and queries. The heads must "
                "end up next to their columns."),
        "added": M(_gate(lambda context, gates: context + gates),
            _columns,
            "The gate was added. Then a gate of 0 changes nothing and silences no head: multiply."),
        "ignored": M(lambda context, gates: _merged_in_order(context),
            _columns,
            "The gates have no effect. If you multiplied a copy, keep the result."),
        "opposite": M(_gate(lambda context, gates: context * (1 - gates)),
            _columns,
            "You multiplied by 1 − gate. Here 1 lets a head through and 0 shuts it."),
        "on-or-off": M(_gate(lambda context, gates: context * (gates > 0.5)),
            _columns,
            "The gates were rounded to 0 or 1. A gate may have any value in between, and the "
                "importance of a head is a slope in its gate: multiply by the gate itself."),
        "zero-or-not": M(_gate(lambda context, gates: context * (gates != 0)),
            _columns,
            "Every gate but 0 counts as 1 here. A gate may have any value in between: "
                "multiply by it."),
        "softmax": M(_gate(lambda context, gates: context * gates.softmax(dim=1)),
            _columns,
            "The gates went through a softmax. They don't compete: each head has its own gate, "
                "used as it is."),
        "shares": M(_gate(lambda context, gates: context * gates / gates.sum()),
            _columns,
            "The gates were divided by their sum. They don't have to sum to one: with all gates "
                "at 1 the layer must give what it gave before."),
        "sigmoid": M(_gate(lambda context, gates: context * gates.sigmoid()),
            _columns,
            "The gates went through a sigmoid, so that a gate of 0 lets half through. Use them as "
                "they are."),
        "twice": M(_gate(lambda context, gates: context * gates**2),
            _columns,
            "The gate was applied twice. Once is enough, before or after the merge."),
        "summed": M(lambda context, gates: (context * gates[:, None, None]).sum(dim=1),
            width,
            "The heads were added up, with the gates as weights. Put them side by side; mixing them "
                "is left to the output projection."),
        "averaged": M(lambda context, gates: (context * gates[:, None, None]).mean(dim=1),
            width,
            "The heads were averaged. Put them side by side, each with its own columns."),
        "not-merged": M(lambda context, gates: context * gates[:, None, None],
            _got_shape,
            "The gates are applied. What's left: move the heads next to their columns, and "
                "make one dimension of both."),
        "not-flattened": M(lambda context, gates: (context * gates[:, None, None]).transpose(1, 2),
            _got_shape,
            "The dimensions are in the right order. What's left: merge the last "
                "two into one."),
        "cut-out": M(lambda context, gates: _merged_in_order((context * gates[:, None, None])[:, gates != 0]),
            width,
            "Heads with gate 0 were removed. The output projection still expects their columns: "
                "fill them with zeros."),
    },
    rules=(
        R(lambda case: _wrong_head(case, 0.0) is not None, lambda case: _columns(case, _wrong_head(case, 0.0)),
          "A head with gate 0 writes zeros into all of its columns, and into no others."),
        R(lambda case: _size_of_one(case) is not None, lambda case: "the columns of the head with gate 1 are "
          f"{_size_of_one(case):.3f} times what it found.", "A head with gate 1 stays as it is: use the gates "
          "themselves, without applying a function to them."),
        R(lambda case: _wrong_head(case, 1.0) is not None, lambda case: _columns(case, _wrong_head(case, 1.0)),
          "A head with gate 1 stays as it is, in its own columns: is the merge right?"),
        R(lambda case: case.inputs[1].min() >= 0 and _wrong_head(case) is not None, _columns,
          "Take one head: its columns must be gate times what it found, in the order of the words."),
        R(lambda case: _wrong_head(case) is not None, _columns, "Positive gates come out right. This one is "
          "negative: multiply by it like any other, without relu, abs, clamp or an `if`."),
        *reaches("context", "gates"),
    ),
    hints=(
        "gates is (heads,), context is (batch, heads, query, d_head). What shape must gates have so that each number "
        "meets its head?",
        "gates[:, None, None] is (heads, 1, 1), and broadcasting does the rest.",
        "The merge is exercise 5.2: swap heads and queries, then merge the last two dimensions into one.",
    ),
)

# ---------------------------------------------------------------- 10.5 a role, and its interval


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


def _lead_probes(generator: torch.Generator) -> list[tuple]:
    """Five seeds of four heads over 12 reviews, 4 of them without a target; 3 seeds of 2 heads over 9; one head alone;
    the head with the larger mean has the smaller lower end."""
    def probe(seeds, heads, count, without, z, lead):
        spread, level = torch.rand(2, seeds, heads, 1, generator=generator)
        scores = (0.1 + 0.5 * spread) * torch.rand(seeds, heads, count, generator=generator) + lead * level
        control = 0.1 + 0.2 * torch.rand(count, generator=generator)
        for tensor in (scores, control):
            tensor[..., torch.arange(0, 2 * without, 2)] = torch.nan
        return scores, control, z

    control = torch.tensor([0.1, 0.2, 0.1, 0.15, 0.1, 0.2])
    unsteady, steady = torch.tensor([0.9, 0.0, 0.8, -0.1, 0.9, 0.1]), torch.tensor([0.3, 0.32, 0.28, 0.3, 0.31, 0.29])
    leads = torch.stack([torch.stack([unsteady, steady]), torch.stack([steady - 0.1, unsteady])])      # (seed, head, review)
    return [probe(5, 4, 12, 4, 2.5, 0.3), probe(3, 2, 9, 2, 3.6, 0.1), probe(1, 1, 6, 0, 1.0, 0.6),
            (leads + control, control, 2.0)]


def _ends(case: Case) -> str:
    return f"you give {listed(case.answer)}, expected {listed(case.expected)}."


def _sizes(case: Case) -> str:
    seeds = case.inputs[0].shape[0]
    return f"with {seeds} seeds your shape is {tuple(case.answer.shape)}, expected {tuple(case.expected.shape)}."


def _counting(case: Case) -> str:
    scores = case.inputs[0]
    return f"{_ends(case)[:-1]}; {int((~scores[0, 0].isnan()).sum())} of {scores.shape[-1]} reviews have a target."


LOWER_END = ask(
    "10.5", best_lower_end,
    probes=_lead_probes,
    tolerance=1e-4,
    signature="best_lower_end(scores (seed, head, review), control (review,), z) -> (seed,)",
    not_finite={
        "NaN": "Reviews without a target are NaN, and one NaN makes a mean NaN: take the columns that are numbers. The "
        "spread of a single number is NaN, too.",
        "-inf": "You divide by 0 reviews, or take the largest of nothing. Every head has some that count: "
        "~control.isnan()."},
    mistakes={
        "nan-as-zero": M(_nan_as_zero,
            _counting,
            "Reviews without a target were counted as zeros. They say nothing about the "
                "role: leave them out of the mean, the spread and the count."),
        "all-counted": M(_lower(number=len),
            _counting,
            "You took the root of the number of all reviews. Only those with a target "
                "count, so the standard error is larger."),
        "no-control": M(_lower(lead=lambda scores, control: scores),
            _ends,
            "The scores were tested against zero, and any head has weights above zero. Subtract "
                "what a blind head gets on the same review."),
        "control-averaged": M(_lower(lead=lambda scores, control: scores - control.mean()),
            _ends,
            "The control's mean was subtracted, not its score on each review. Where a "
                "review is easy for the blind head, it is easy for all: subtract review by review."),
        "ratio": M(_lower(lead=lambda scores, control: scores / control),
            _ends,
            "The scores were divided by the control. The lead is a difference."),
        "only-mean": M(_lower(factor=lambda z: 0.0),
            _ends,
            "This is the mean lead itself. A few lucky reviews can produce one: subtract z standard "
                "errors before you believe it."),
        "spread": M(_lower(error=lambda lead, n: lead.std(dim=-1)),
            _ends,
            "You subtracted the spread of the reviews, not the standard error of their mean. Divide "
                "the standard deviation by the root of the number of reviews."),
        "by-number": M(_lower(error=lambda lead, n: lead.std(dim=-1) / n),
            _ends,
            "The standard deviation was divided by the number of reviews. The error of a mean "
                "shrinks with the root of that number."),
        "variance": M(_lower(error=lambda lead, n: lead.var(dim=-1) / n**0.5),
            _ends,
            "The variance was used in place of its root, the standard deviation."),
        "upper": M(_lower(factor=lambda z: -z),
            _ends,
            "This is the upper end. That a head could be as good as that doesn't show that it has "
                "the role: subtract z standard errors."),
        "other-factor": M(_lower(factor=lambda z: 1.96),
            _ends,
            "1.96 was used in place of `z`. With many tests that is too small a factor, and "
                "luck passes for a role."),
        "with-n": M(_lower(error=lambda lead, n: lead.std(dim=-1, correction=0) / n**0.5),
            _ends,
            "The standard deviation was computed with n in the denominator. Use n − 1, "
                "as .std() does.", convention=True),
        "worst-head": M(_lower(best=lambda lower: lower.amin(dim=-1)),
            _ends,
            "This is the smallest lower end. A role needs one head that has it: take the "
                "largest."),
        "heads-averaged": M(_lower(lead=lambda scores, control: (scores - control).mean(dim=1), best=lambda lower: lower),
            _ends,
            "The heads were averaged first. One head with the role would vanish among the "
                "others: test each, then take the best."),
        "best-mean-first": M(_best_mean_first,
            _ends,
            "The head with the largest mean lead was chosen first. A head with a smaller but "
                "steadier lead can have the larger lower end: compute every head's, then take the largest."),
        "best-of-each-review": M(_lower(lead=lambda scores, control: (scores - control).amax(dim=1),
                                        best=lambda lower: lower),
            _ends,
            "The best head was chosen separately for each review. Some head is always "
                "lucky; the same head has to lead over all reviews."),
        "size-of-lead": M(_lower(lead=lambda scores, control: (scores - control).abs()),
            _ends,
            "You used the size of the lead without its sign. A head that avoids the targets "
                "would get the role."),
        "heads-kept": M(_lower(best=lambda lower: lower),
            _sizes,
            "There's a number for each head. Take the largest for each seed."),
        "seeds-averaged": M(lambda scores, control, z: best_lower_end(scores.mean(dim=0, keepdim=True), control, z)[0],
            _sizes,
            "The seeds were averaged. A role that holds on three of five would pass or "
                "fail as a whole: keep them apart."),
        "decided": M(_lower(best=lambda lower: (lower.amax(dim=-1) > 0).float()),
            lambda case: f"you return {listed(case.answer)}, expected {listed(case.expected)}.",
            "These are "
                "verdicts, 1 or 0. Return the lower ends themselves, so that you see how close each came."),
    },
    rules=(
        R(lambda case: case.answer.shape != case.expected.shape, _sizes, "Return one number for each seed."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _ends, "Take one seed and one head, and "
          "write down the number of reviews with a target, the mean lead, the standard deviation and the "
          "standard error."),
    ),
    hints=(
        "Which reviews count? ~control.isnan() is a mask over the last dimension, the same for all seeds and heads.",
        "lead = scores[..., counted] − control[counted] is (seed, head, review); its mean and .std() run over dim=-1.",
        "The lower end is mean − z · std / √n with n = counted.sum(); the best head is .amax(dim=-1).",
    ),
)

# ---------------------------------------------------------------- 10.6 a head's push

def head_push(merged, projection, head, num_heads, readout, share):
    d_head = merged.shape[-1] // num_heads
    own = slice(head * d_head, (head + 1) * d_head)
    written = merged[:, own] @ projection.weight[:, own].T                 # (token, d_model)
    direction = readout[1] - readout[0]                                    # (d_model)
    return share @ (written @ direction)


def _push_probes(generator: torch.Generator) -> list[tuple]:
    """Three heads of four, two heads of three, four heads of two; the weights of the words don't sum to one."""
    def drawn(*shape):
        return torch.randn(*shape, generator=generator)

    def probe(tokens, d_model, num_heads, head):
        return (drawn(tokens, d_model), drawn(d_model, d_model), drawn(d_model) + 1, head, num_heads, drawn(2, d_model),
                0.1 + torch.rand(tokens, generator=generator))

    return [probe(5, 12, 3, 1), probe(4, 6, 2, 1), probe(3, 8, 4, 0)]


def _observe_push(function, merged, weight, bias, head, num_heads, readout, share):
    """The learner's push, of a head of a linear layer with this weight and this bias."""
    projection = nn.Linear(*weight.shape)
    projection.weight, projection.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())
    with torch.no_grad():
        output = function(merged.clone(), projection, head, num_heads, readout.clone(), share.clone())
    return None if output is None else {"": one_tensor(output, "the push")}


def _push_said(case: Case) -> str:
    merged, _, _, head, num_heads = case.inputs[:5]
    if case.answer.shape != case.expected.shape:
        return f"your shape is {tuple(case.answer.shape)}, and the push is one number."
    d_head = merged.shape[-1] // num_heads
    return (f"head {head} of {num_heads}, columns {head * d_head} to {(head + 1) * d_head - 1}: you give "
            f"{case.answer.item():.3f}, expected {case.expected.item():.3f}.")


def _whole_projection(merged, projection, head, num_heads, readout, share):
    return share @ (projection(merged) @ (readout[1] - readout[0]))


PUSH = ask(
    "10.6", head_push,
    probes=_push_probes,
    observe=_observe_push,
    tolerance=1e-3,
    signature="head_push(merged (token, d_model), projection, head, num_heads, readout (class, d_model), share (token)) -> "
              "a number",
    mistakes={
        "rows-of-the-weight": M({"projection.weight[:, own].T": "projection.weight[own]"}, _push_said,
            "You took rows of projection.weight. PyTorch keeps a linear layer's weight as (out, in), so what comes *in* "
            "from this head meets columns: weight[:, own]."),
        "next-block": M({"projection.weight[:, own].T": "projection.weight.roll(-d_head, 1)[:, own].T"}, _push_said,
            "This head's numbers met the next head's block of W_o. Both are cut by the same columns."),
        "first-block": M({"projection.weight[:, own].T": "projection.weight[:, :d_head].T"}, _push_said,
            "This head's numbers met the block of head 0. Both are cut by the same columns, from head * d_head on."),
        "first-head": M({"slice(head * d_head, (head + 1) * d_head)": "slice(0, d_head)"}, _push_said,
            "That's the push of head 0. Head h owns the columns from h * d_head on."),
        "counted-from-one": M({"slice(head * d_head, (head + 1) * d_head)": "slice((head - 1) * d_head, head * d_head)"},
            _push_said, "That's the head before. Heads are counted from 0: head h owns the columns from h * d_head on."),
        "interleaved": M({"slice(head * d_head, (head + 1) * d_head)": "slice(head, None, num_heads)"}, _push_said,
            "You take every so manyth column. A head's columns are neighbours, from h * d_head on."),
        "all-heads": M({"slice(head * d_head, (head + 1) * d_head)": "slice(None)"}, _push_said,
            "That's the push of all heads together."),
        "whole-layer": M(_whole_projection, _push_said,
            "That's everything that the layer writes, all heads and the bias."),
        "bias-counted": M({"merged[:, own] @ projection.weight[:, own].T":
                           "merged[:, own] @ projection.weight[:, own].T + projection.bias"}, _push_said,
            "The bias belongs to the layer, not to a head. Counted in each head, it comes several times in the sum."),
        "no-weights": M({"share @ (written @ direction)": "(written @ direction).sum()"}, _push_said,
            "Every word counts the same here. The verdict is read with a weight for each word, `share`."),
        "averaged": M({"share @ (written @ direction)": "(written @ direction).mean()"}, _push_said,
            "That's the plain mean over the words. The verdict is read with a weight for each word, `share`."),
        "shares-rescaled": M({"share @ (written @ direction)": "share @ (written @ direction) / share.sum()"}, _push_said,
            "The weights were made to sum to one. They hold the layer norm's spread as well; use them as they are."),
        "only-positive": M({"readout[1] - readout[0]": "readout[1]"}, _push_said,
            "That's what moves the logit of 'positive'. The log-odds are a difference: what moves both logits alike "
            "moves nothing."),
        "other-way-round": M({"readout[1] - readout[0]": "readout[0] - readout[1]"}, _push_said,
            "The sign is turned round. The log-odds of class 1 are its logit minus that of class 0."),
        "summed-classes": M({"readout[1] - readout[0]": "readout[1] + readout[0]"}, _push_said,
            "The two rows were added. The log-odds are a difference of logits."),
        "word-by-word": M({"share @ (written @ direction)": "share * (written @ direction)"}, _push_said,
            "That's each word's part of the push. Add them up."),
        "not-read": M({"share @ (written @ direction)": "share @ written"}, _push_said,
            "That's what the head writes, a vector. How far does it go in the direction that the log-odds read?"),
    },
    rules=(
        R(lambda case: case.answer.shape != case.expected.shape, _push_said, "Weight the words, and add up."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-3, _push_said,
          "Three steps: what the head writes at each word, how far that goes in the direction, the weighted sum of them."),
    ),
    hints=(
        "The head's own numbers are merged[:, own], (token, d_head). Which d_head columns?",
        "What it writes is merged[:, own] @ projection.weight[:, own].T, (token, d_model): the weight is (out, in).",
        "The direction is readout[1] − readout[0]. Then it's share @ (written @ direction).",
    ),
)

# ---------------------------------------------------------------- 10.7 the hook

class _Recorded(nn.Linear):
    """A linear layer that keeps a copy of what it was given and of what it gave."""

    def forward(self, merged):
        self.seen = getattr(self, "seen", []) + [merged.detach().clone()]
        return super().forward(merged)


_Recorded.__name__ = "Linear"                           # in messages


class _Layer(nn.Module):
    """As an attention layer: words are mixed, side by side in heads, and then projected."""

    def __init__(self, weight: torch.Tensor, num_heads: int):
        super().__init__()
        self.num_heads, self.d_head = num_heads, len(weight) // num_heads
        self.output_projection = _Recorded(len(weight), len(weight), bias=False)
        self.output_projection.weight = nn.Parameter(weight.clone())
        for turn, name in enumerate(("query_projection", "key_projection", "value_projection"), start=1):
            projection = nn.Linear(len(weight), len(weight), bias=False)   # of the same width
            projection.weight = nn.Parameter(weight.roll(turn, 0).clone())
            self.add_module(name, projection)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self.value_projection(x) + torch.tanh(self.query_projection(x) * self.key_projection(x))
        return self.output_projection(mixed + mixed.mean(dim=1, keepdim=True))         # (batch, query, d_model)


def _hooks_left(layer: nn.Module) -> int:
    return sum(len(module._forward_pre_hooks) + len(module._forward_hooks) for module in layer.modules())


def edited(layer, head, change, run):
    def hook(module, inputs):
        merged = inputs[0].clone()                                         # (batch, query, d_model)
        d_head = merged.shape[-1] // layer.num_heads
        columns = slice(head * d_head, (head + 1) * d_head)
        merged[..., columns] = change(merged[..., columns])
        return (merged,)

    handle = layer.output_projection.register_forward_pre_hook(hook)
    try:
        return run()
    finally:
        handle.remove()


def _edit_after(layer, head, change, run):
    def hook(module, inputs, output):
        changed, d_head = output.clone(), output.shape[-1] // layer.num_heads
        columns = slice(head * d_head, (head + 1) * d_head)
        changed[..., columns] = change(output[..., columns])
        return changed

    handle = layer.output_projection.register_forward_hook(hook)
    try:
        return run()
    finally:
        handle.remove()


def _edit_on_layer(layer, head, change, run):
    def hook(module, inputs):
        x, d_head = inputs[0].clone(), inputs[0].shape[-1] // layer.num_heads
        columns = slice(head * d_head, (head + 1) * d_head)
        x[..., columns] = change(x[..., columns])
        return (x, *inputs[1:])

    handle = layer.register_forward_pre_hook(hook)
    try:
        return run()
    finally:
        handle.remove()


def _all_removed(layer, head, change, run):
    result = edited(layer, head, change, run)
    layer.output_projection._forward_pre_hooks.clear()
    return result


def _run_outside(layer, head, change, run):
    result = run()
    edited(layer, head, change, lambda: None)
    return result


def _on_every_linear(layer, head, change, run):
    def hook(module, inputs):
        merged, d_head = inputs[0].clone(), inputs[0].shape[-1] // layer.num_heads
        columns = slice(head * d_head, (head + 1) * d_head)
        merged[..., columns] = change(merged[..., columns])
        return (merged,)

    handles = [module.register_forward_pre_hook(hook) for module in layer.modules() if isinstance(module, nn.Linear)]
    try:
        return run()
    finally:
        for handle in handles:
            handle.remove()


def _first_call(layer, head, change, run):
    calls = []
    return edited(layer, head, lambda z: z if calls else (calls.append(True), change(z))[1], run)


def _cached(layer, head, change, run):
    made = []

    def once(z):
        if not made:
            made.append(change(z))
        return made[0]

    return edited(layer, head, once, run)


def _copied_too_late(layer, head, change, run):
    def hook(module, inputs):
        d_head = inputs[0].shape[-1] // layer.num_heads
        columns = slice(head * d_head, (head + 1) * d_head)
        changed = change(inputs[0][..., columns])
        merged = inputs[0].clone()
        merged[..., columns] = changed
        return (merged,)

    handle = layer.output_projection.register_forward_pre_hook(hook)
    try:
        return run()
    finally:
        handle.remove()


def _no_result(layer, head, change, run):
    edited(layer, head, change, run)


def _ran_twice(layer, head, change, run):
    run()
    return edited(layer, head, change, run)


def _left_behind(layer, head, change, run):
    def hook(module, inputs):
        merged, d_head = inputs[0].clone(), inputs[0].shape[-1] // layer.num_heads
        columns = slice(head * d_head, (head + 1) * d_head)
        merged[..., columns] = change(merged[..., columns])
        return (merged,)

    layer.output_projection.register_forward_pre_hook(hook)
    return run()


def _left_after_an_error(layer, head, change, run):
    def hook(module, inputs):
        merged, d_head = inputs[0].clone(), inputs[0].shape[-1] // layer.num_heads
        columns = slice(head * d_head, (head + 1) * d_head)
        merged[..., columns] = change(merged[..., columns])
        return (merged,)

    handle = layer.output_projection.register_forward_pre_hook(hook)
    result = run()
    handle.remove()
    return result


def _hook_probes(generator: torch.Generator) -> list[tuple]:
    """Three heads of four columns, two texts, two calls; two heads of three; one head alone. The head is never all of it."""
    def drawn(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).float()

    return [(drawn(2, 5, 12), drawn(2, 5, 12), drawn(12, 12), 3, 1), (drawn(3, 4, 6), drawn(3, 4, 6), drawn(6, 6), 2, 1),
            (drawn(2, 3, 8), drawn(2, 3, 8), drawn(8, 8), 4, 0)]


class _Stop(Exception):
    """What a run raises that is made to fail."""


def _observe_hook(function, first, second, weight, num_heads, head):
    """What change was given, what reached the output projection in two calls, what came back, and what was left behind."""
    layer, given, ran = _Layer(weight, num_heads), [], []
    layer.output_projection.register_forward_pre_hook(lambda module, inputs: None)     # somebody else's, which only reads
    texts = (first.clone(), second.clone())

    def change(z):
        given.append(z.detach().clone())
        return 3 - 2 * z

    def run():
        ran.append(True)
        with torch.no_grad():
            return torch.stack([layer(x) for x in texts])

    plain = run()
    before, layer.output_projection.seen = layer.output_projection.seen, []
    ran.clear()
    output = function(layer, head, change, run)
    if output is None and not ran:
        return None
    seen, layer.output_projection.seen = layer.output_projection.seen[-2:], []
    seen = torch.stack(seen) if len(seen) == 2 else torch.zeros(2, *first.shape)
    left, again = _hooks_left(layer), run()
    back = one_tensor(output, "what run returned").float() if output is not None else torch.zeros_like(plain)
    shapes = {tuple(z.shape) for z in given}
    columns = (*first.shape[:-1], first.shape[-1] // num_heads)

    # what the caller's own tensor is after the hook: the projection alone, with a tensor that somebody keeps
    kept, copy = first.clone(), first.clone()
    with torch.no_grad():
        function(layer, head, change, lambda: layer.output_projection(kept))

    given_to_change = first.clone()
    with torch.no_grad():
        function(layer, head, lambda z: z.zero_(), lambda: layer.output_projection(given_to_change))

    other, passed = _Layer(weight, num_heads), 0.0

    def stop():
        raise _Stop

    try:
        function(other, head, change, stop)
    except _Stop:
        passed = 1.0
    return {"seen": seen, "before": torch.stack(before), "returned": back if back.shape == plain.shape else
            torch.zeros_like(plain), "plain": plain, "calls of run": float(len(ran)) - 1, "hooks left": float(left - 1),
            "as before afterwards": float(torch.equal(again, plain)), "shape given": float(shapes == {columns}),
            "kept": float(torch.equal(kept, copy)), "kept from change": float(torch.equal(given_to_change, copy)),
            "error passed on": passed,
            "left after an error": float(_hooks_left(other))}


def _wrong_columns(case: Case) -> torch.Tensor:
    """Which columns of what reached the projection are wrong: (d_model), boolean."""
    return ((case.got["seen"] - case.right["seen"]).abs() > 1e-4).flatten(0, -2).any(dim=0)


def _moved(case: Case) -> torch.Tensor:
    """Which columns of what reached the projection are other than without a hook: (d_model), boolean."""
    return ((case.got["seen"] - case.got["before"]).abs() > 1e-4).flatten(0, -2).any(dim=0)


def _which(flags: torch.Tensor) -> str:
    columns = flags.nonzero().flatten().tolist()
    if not columns:
        return "none"
    if columns == list(range(columns[0], columns[-1] + 1)) and len(columns) > 1:
        return f"{columns[0]} to {columns[-1]}"
    return ", ".join(map(str, columns))


def _own(case: Case) -> str:
    num_heads, head = case.inputs[3:]
    d_head = case.inputs[0].shape[-1] // num_heads
    return f"{head * d_head} to {(head + 1) * d_head - 1}"


def _hook_seen(case: Case) -> str:
    return (f"of what reaches the output projection, columns {_which(_moved(case))} changed; head {case.inputs[4]} of "
            f"{case.inputs[3]} owns columns {_own(case)}.")


def _hooks_said(case: Case) -> str:
    found = int(case.got["hooks left"])
    if found < 0:
        return f"afterwards {-found} hook that was there before is gone."
    return f"afterwards {found} hook{'s' * (found != 1)} of yours {'is' if found == 1 else 'are'} still on the layer."


HOOK = ask(
    "10.7", edited,
    probes=_hook_probes,
    observe=_observe_hook,
    tolerance=1e-4,
    signature="edited(layer, head, change, run) -> what run() returns",
    mistakes={
        "returns-nothing": M({"return (merged,)": "return None"}, _hook_seen,
            "The hook changes a copy and returns nothing, so PyTorch goes on with the old input. Return the changed one, "
            "as a tuple: (merged,)."),
        "in-place": M({"inputs[0].clone()": "inputs[0]"},
            lambda case: "the tensor that the caller keeps has changed as well.",
            "The hook writes into the caller's own tensor, and whoever still holds it reads your numbers, without an "
            "error. Change a copy: .clone()."),
        "copied-too-late": M(_copied_too_late,
            lambda case: "with a `change` that writes in place, z.zero_(), the caller's own tensor is changed.",
            "`change` was given the caller's own numbers, and the copy was made after it. Copy first: .clone(), then give "
            "`change` the copy's columns."),
        "counted-from-one": M({"slice(head * d_head, (head + 1) * d_head)": "slice((head - 1) * d_head, head * d_head)"},
            _hook_seen, "That's the head before. Heads are counted from 0: head h's columns begin at h · d_head."),
        "every-linear": M(_on_every_linear, _hook_seen,
            "The hook is on every linear layer of that width, so queries, keys and values were changed too, where there "
            "aren't any heads' outputs yet. Put it on layer.output_projection only."),
        "first-call": M(_first_call,
            lambda case: "run used the layer twice, and only the first time the head was changed.",
            "A run may use the layer many times. The hook stays until run is over, and changes every call."),
        "cached": M(_cached,
            lambda case: "run used the layer twice, and the second time got what `change` had made of the first.",
            "Call `change` in the hook, every time, on what the head says this time."),
        "changed-twice": M({"change(merged[..., columns])": "change(change(merged[..., columns]))"}, _hook_seen,
            "`change` was applied twice. Is the hook registered twice, or `change` called in two places?"),
        "interleaved": M({"slice(head * d_head, (head + 1) * d_head)": "slice(head, None, layer.num_heads)"}, _hook_seen,
            "You take every so manyth column. A head's columns are neighbours: head h begins at h · d_head (exercise 5.2)."),
        "first-head": M({"slice(head * d_head, (head + 1) * d_head)": "slice(0, d_head)"}, _hook_seen,
            "You always take the first head's columns. Those of head h begin at h · d_head."),
        "one-too-far": M({"slice(head * d_head, (head + 1) * d_head)":
                          "slice((head + 1) * d_head % merged.shape[-1], (head + 1) * d_head % merged.shape[-1] + d_head)"},
            _hook_seen, "That's the next head's slice. Heads are counted from 0."),
        "counted-from-the-end": M({"slice(head * d_head, (head + 1) * d_head)":
                                   "slice((layer.num_heads - 1 - head) * d_head, (layer.num_heads - head) * d_head)"},
            _hook_seen, "Head 0's columns are the first ones, and yours are the last."),
        "all-heads": M({"slice(head * d_head, (head + 1) * d_head)": "slice(None)"}, _hook_seen,
            "Every head went through `change`. The other heads must stay as they are, or you can't tell which it was."),
        "others-emptied": M({"merged = inputs[0].clone()": "merged = torch.zeros_like(inputs[0])",
                             "change(merged[..., columns])": "change(inputs[0][..., columns])"}, _hook_seen,
            "The head is as it should be, and the others have been emptied. Begin with a copy of the input, not with "
            "zeros."),
        "first-text": M({"merged[..., columns] = change(merged[..., columns])":
                         "merged[0, ..., columns] = change(merged[..., columns])[0]"},
            lambda case: f"of {len(case.inputs[0])} texts only the first was changed.",
            "The head is edited in every text of the batch: merged[..., columns]."),
        "first-word": M({"merged[..., columns] = change(merged[..., columns])":
                         "merged[:, 0, columns] = change(merged[..., columns])[:, 0]"},
            lambda case: f"of {case.inputs[0].shape[1]} words only the first was changed.",
            "A head writes at every word: merged[..., columns]."),
        "after-projection": M(_edit_after,
            lambda case: f"what reaches the output projection is unchanged; columns {_own(case)} of what it gives aren't.",
            "After W_o the heads are mixed: a column there belongs to all of them. Edit the projection's *input*, with a "
            "pre-hook."),
        "on-the-layer": M(_edit_on_layer,
            lambda case: f"the layer's own input was changed, in columns {_own(case)}.",
            "There aren't any heads yet: these are the words' vectors, and all heads read them. Put the hook on "
            "layer.output_projection."),
        "left-behind": M(_left_behind, _hooks_said,
            "Every later call of the model is edited too, and nothing tells you. Keep the handle, and remove it."),
        "left-after-an-error": M(_left_after_an_error,
            lambda case: "if run raises an error, the hook stays on the layer.",
            "Then a typing error in one cell spoils every cell after it. Remove it in `finally`."),
        "all-removed": M(_all_removed, _hooks_said,
            "You removed all hooks of the layer, others' too. The handle removes your own: handle.remove()."),
        "not-inside": M(_run_outside, _hook_seen,
            "run() was called while no hook was on this layer. Register first, run then, remove last; and on the layer "
            "that you were given, not on a copy of it."),
        "no-result": M(_no_result, lambda case: "you return None.",
            "The run is edited as it should be, but its result is lost: return run()."),
        "ran-twice": M(_ran_twice, lambda case: f"run() was called {case.got['calls of run']:.0f} times.",
            "Once is enough. A run may count, draw random numbers or take a minute."),
        "not-changed": M({"change(merged[..., columns])": "0 * merged[..., columns]"}, _hook_seen,
            "The head was set to zero. What takes its place is for `change` to say."),
        "added": M({"change(merged[..., columns])": "merged[..., columns] + change(merged[..., columns])"}, _hook_seen,
            "What `change` returns was added to the head's output. It takes its place."),
    },
    rules=(
        R(lambda case: case.got["shape given"] == 0, lambda case: "`change` wasn't given the head's output, "
          f"{(*case.inputs[0].shape[:-1], case.inputs[0].shape[-1] // case.inputs[3])}, (batch, query, d_head).",
          "It gets the head's columns, for all texts and words: merged[..., columns]."),
        R(lambda case: not torch.allclose(case.got["seen"], case.right["seen"], atol=1e-4), _hook_seen,
          "Compare, column by column: the head's own must be what `change` returned, the others as they were."),
        R(lambda case: case.got["hooks left"] != 0, _hooks_said, "Keep the handle that register_forward_pre_hook gives, "
          "and call its remove() in `finally`."),
        R(lambda case: case.got["left after an error"] > 0, lambda case: "if run raises an error, the hook stays on the "
          "layer.", "Remove it in `finally`, which comes to pass either way."),
        R(lambda case: case.got["error passed on"] == 0, lambda case: "an error in run didn't come out of your function.",
          "Use try and finally without except: whoever calls must see the error."),
        R(lambda case: case.got["kept"] == 0, lambda case: "the tensor that the caller keeps has changed as well.",
          "Change a copy: .clone()."),
        R(lambda case: case.got["kept from change"] == 0, lambda case: "with a `change` that writes in place, z.zero_(), "
          "the caller's own tensor is changed.", "Give `change` the columns of a copy: .clone() first."),
        R(lambda case: case.got["as before afterwards"] == 0, lambda case: "after your function the layer gives other "
          "results than before.", "Something was left behind: a hook, or a changed weight."),
        R(lambda case: case.got["calls of run"] != 1, lambda case: f"run() was called {case.got['calls of run']:.0f} "
          "times.", "Call it once, while the hook is there."),
        R(lambda case: not torch.allclose(case.got["returned"], case.right["returned"], atol=1e-4), lambda case:
          "what you return isn't what run returned.", "return run()"),
    ),
    hints=(
        "Three steps around run(): handle = layer.output_projection.register_forward_pre_hook(hook); run; handle.remove().",
        "Inside: `def hook(module, inputs):` copies inputs[0], (batch, query, d_model), changes d_head neighbouring columns "
        "of the copy, and returns (copy,).",
        "try: return run() / finally: handle.remove() removes the hook even after an error.",
    ),
)

# ---------------------------------------------------------------- 10.8 what a head writes on average

def average_output(outputs, mask):
    return outputs[mask].mean(dim=0)                                       # only real words: (words, d_head) -> (d_head)


def _average(how):
    return lambda outputs, mask: how(outputs.double(), mask.double()[..., None], mask.sum())


def _average_probes(generator: torch.Generator) -> list[tuple]:
    """Texts of different lengths, the padding full of large numbers; padding in front; no padding at all."""
    def drawn(*shape):
        return torch.randn(*shape, generator=generator) + 0.7

    mask = torch.arange(6) < torch.tensor([6, 2, 4])[:, None]
    front = torch.arange(5) >= torch.tensor([1, 3])[:, None]
    some, other = drawn(3, 6, 4), drawn(2, 5, 3)
    return [(torch.where(mask[..., None], some, 40 + some), mask), (torch.where(front[..., None], other, 9 - other), front),
            (drawn(4, 3, 2), torch.ones(4, 3, dtype=torch.bool))]


def _averages(case: Case) -> str:
    return f"you give {listed(case.answer.flatten()[:4])}, expected {listed(case.expected)[:40]}."


def _words_seen(case: Case) -> str:
    real = int(case.inputs[1].sum())
    return f"{_averages(case)[:-1]}; {real} of {case.inputs[1].numel()} positions are words."


def _shape_seen(case: Case) -> str:
    return f"your shape is {tuple(case.answer.shape)}, expected {tuple(case.expected.shape)}, (d_head)."


AVERAGE = ask(
    "10.8", average_output,
    probes=_average_probes,
    tolerance=1e-4,
    signature="average_output(outputs (batch, query, d_head), mask (batch, query), True = word) -> (d_head)",
    mistakes={
        "padding-counted": M(lambda outputs, mask: outputs.mean(dim=(0, 1)), _words_seen,
            "Padding was averaged too. A head writes something there as well, but no word ever reads it."),
        "divided-by-all": M(_average(lambda z, m, n: (z * m).sum(dim=(0, 1)) / (z.shape[0] * z.shape[1])), _words_seen,
            "Padding was left out of the sum, but not of the number that it's divided by."),
        "text-by-text": M(_average(lambda z, m, n: ((z * m).sum(dim=1) / m.sum(dim=1)).mean(dim=0)), _words_seen,
            "Each text was averaged first, so a word of a short text counts for more. Here every word counts the same."),
        "per-text": M(_average(lambda z, m, n: (z * m).sum(dim=1) / m.sum(dim=1)), _shape_seen,
            "That's one average for each text. What takes the head's place must not know which text it's in: average over "
            "the texts too."),
        "per-position": M(_average(lambda z, m, n: (z * m).sum(dim=0) / m.sum(dim=0).clamp(min=1)), _shape_seen,
            "That's one average for each position. Average over the positions as well."),
        "positions-averaged": M(_average(lambda z, m, n: ((z * m).sum(dim=0) / m.sum(dim=0).clamp(min=1))[
            m.any(dim=0)[:, 0]].mean(dim=0)), _words_seen,
            "Each position was averaged first, so a word far out, where few texts reach, counts for more. Here every word "
            "counts the same."),
        "only-first-words": M(lambda outputs, mask: outputs[torch.arange(len(mask)), mask.int().argmax(dim=1)].mean(dim=0),
            _words_seen, "Only the first word of each text was averaged. A head writes at every word."),
        "over-features": M(lambda outputs, mask: outputs.mean(dim=-1), _shape_seen,
            "The mean ran over the head's numbers, and the words are left. It's the other way round."),
        "one-number": M(lambda outputs, mask: outputs[mask].mean(), _shape_seen,
            "Everything was averaged into one number. Each of the head's columns has a mean of its own."),
        "summed": M(lambda outputs, mask: outputs[mask].sum(dim=0), _averages,
            "The words were added, not averaged."),
        "divided-by-texts": M(lambda outputs, mask: outputs[mask].sum(dim=0) / len(outputs), _words_seen,
            "The sum was divided by the number of texts. Divide by the number of words."),
        "only-padding": M(lambda outputs, mask: outputs[~mask].mean(dim=0) if (~mask).any() else outputs.mean((0, 1)) * 0,
            _averages, "That's the average of the padding. In the mask, True is a word."),
        "sizes": M(lambda outputs, mask: outputs[mask].abs().mean(dim=0), _averages,
            "The signs are gone. A head that writes 1 here and −1 there writes 0 on average."),
        "median": M(lambda outputs, mask: outputs[mask].median(dim=0).values, _averages,
            "That's the median. The exercise asks for the mean."),
    },
    rules=(
        R(lambda case: case.answer.shape != case.expected.shape, _shape_seen, "One number for each column of the head."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _words_seen,
          "Take one column, and average it by hand over the words of all texts."),
    ),
    not_finite={"NaN": "0 / 0: you divide by a number of words that is zero somewhere. Is the mask the right way round? "
                       "True is a word, so ~mask is the padding. And average over all words at once, not text by text."},
    hints=(
        "outputs[mask] keeps the real words of all texts, in one list: (words, d_head).",
        "Then it's a mean over dim=0.",
    ),
)

# ---------------------------------------------------------------- 10.9 a transplant

def patched(layer, head, source, target, order):
    kept = []

    def keep(z):
        kept.append(z)
        return z                                                           # reads, and changes nothing

    edited(layer, head, keep, source)
    return edited(layer, head, lambda z: kept[0][:, order], target)


def _patch(put, start="source", end="target"):
    """The transplant with another last step: put(own, other, order) is what the head's output becomes."""
    def answer(layer, head, source, target, order):
        kept, runs = [], {"source": source, "target": target}
        edited(layer, head, lambda z: kept.append(z) or z, runs[start])
        return edited(layer, head, lambda z: put(z, kept[0], order), runs[end])
    return answer


def _inverse(order):
    return torch.as_tensor(order).argsort()


def _patch_other_head(layer, head, source, target, order):
    return patched(layer, (head + 1) % layer.num_heads, source, target, order)


def _patch_all_heads(layer, head, source, target, order):
    kept = []

    def keep(module, inputs):
        kept.append(inputs[0])

    handle = layer.output_projection.register_forward_pre_hook(keep)
    source()
    handle.remove()
    handle = layer.output_projection.register_forward_pre_hook(lambda module, inputs: (kept[0][:, order],))
    try:
        return target()
    finally:
        handle.remove()


def _source_inside(layer, head, source, target, order):
    def from_source(z):
        kept = []
        edited(layer, head, lambda y: kept.append(y) or y, source)         # the outer hook fires in here again
        return kept[0][:, order]

    return edited(layer, head, from_source, target)


def _recorded_after(layer, head, source, target, order):
    kept = []
    handle = layer.output_projection.register_forward_hook(lambda module, inputs, output: kept.append(output))
    source()
    handle.remove()
    d_head = kept[0].shape[-1] // layer.num_heads
    return edited(layer, head, lambda z: kept[0][:, order, head * d_head:(head + 1) * d_head], target)


def _only_moved(own, other, order):
    stays = torch.as_tensor(order) == torch.arange(len(order))
    return torch.where(stays[None, :, None], own, other[:, order])


def _gives_source(layer, head, source, target, order):
    patched(layer, head, source, target, order)
    return source()


def _runs_again(layer, head, source, target, order):
    patched(layer, head, source, target, order)
    return target()


def _patch_probes(generator: torch.Generator) -> list[tuple]:
    """Two texts of the same number of words, and an order that isn't its own inverse; a word of the first stays."""
    def drawn(*shape):
        return torch.randn(*shape, generator=generator)

    def mixed(n):
        order = torch.arange(n)
        while torch.equal(order, order.argsort()) or not (order == torch.arange(n)).any():
            order = torch.randperm(n, generator=generator)
        return order.tolist()

    return [(drawn(1, 6, 12), drawn(1, 6, 12), drawn(12, 12), 3, 1, mixed(6)),
            (drawn(1, 5, 6), drawn(1, 5, 6), drawn(6, 6), 2, 0, mixed(5))]


def _keeps_nothing(layer, head, source, target, order):
    kept = []
    edited(layer, head, lambda z: kept.append(z), source)                  # append returns None
    return edited(layer, head, lambda z: kept[0][:, order], target)


# what PyTorch says where `change` returned None, and where an order of words meets another axis
GAVE_NONE, NOT_THE_WORDS = r"NoneType", r"out of bounds for dimension|shape mismatch|expanded size|must match"


class _Again(Exception):
    """A run that is started within itself, over and over."""


def _observe_patch(function, source, target, weight, num_heads, head, order):
    """What reaches the output projection in the last run, what comes back, what is left behind."""
    layer, ran, within = _Layer(weight, num_heads), [], []

    def run(x, name):
        def of():
            if within.count(name) > 2:
                raise _Again
            ran.append(name)
            within.append(name)
            try:
                with torch.no_grad():
                    return layer(x.clone())
            finally:
                within.pop()
        return of

    runs = run(source, "source"), run(target, "target")
    plain = {name: of() for name, of in zip(("source", "target"), runs)}
    ran.clear()
    layer.output_projection.seen = []
    again, nothing, axis = 0.0, 0.0, 0.0
    try:
        output = function(layer, head, *runs, list(order))
    except _Again:
        output, again = torch.zeros_like(source), 1.0
    except TypeError as error:
        if not re.search(GAVE_NONE, str(error)) or not ran:
            raise
        output, nothing = torch.zeros_like(source), 1.0
    except (IndexError, RuntimeError) as error:
        if not re.search(NOT_THE_WORDS, str(error)) or not ran:
            raise
        output, axis = torch.zeros_like(source), 1.0
    failed = again or nothing or axis
    if failed:
        layer.output_projection.seen = [torch.zeros_like(source)]
    if output is None and not ran:
        return None
    seen = (layer.output_projection.seen or [torch.zeros_like(source)])[-1]
    back = one_tensor(output, "what target returned").float() if output is not None else torch.zeros_like(plain["target"])
    back = back if back.shape == source.shape else torch.zeros_like(source)
    return {"seen": seen, "returned": back, "of the source": float(torch.allclose(back, plain["source"], atol=1e-5)),
            "of the target": float(torch.allclose(back, plain["target"], atol=1e-5)),
            "hooks left": float(_hooks_left(layer)),
            "runs of the target": float(ran.count("target")) if not failed else 1.0, "again": again,
            "change gave nothing": nothing, "another axis": axis}


def _patch_seen(case: Case) -> str:
    source, _, _, num_heads, head, _ = case.inputs
    d_head = source.shape[-1] // num_heads
    columns = slice(head * d_head, (head + 1) * d_head)
    wrong = (case.got["seen"] - case.right["seen"]).abs()[0]
    word, column = divmod(int(wrong.argmax()), source.shape[-1])
    if wrong[word, column] <= 1e-4:
        return "what reaches the output projection is right, and what you return isn't."
    whose = "this head's own columns" if columns.start <= column < columns.stop else "another head's columns"
    return (f"in the last run word {word} has {case.got['seen'][0, word, column]:.3f} in column {column}, one of {whose}; "
            f"expected {case.right['seen'][0, word, column]:.3f}.")


PATCHED = ask(
    "10.9", patched,
    probes=_patch_probes,
    observe=_observe_patch,
    tolerance=1e-4,
    signature="patched(layer, head, source, target, order (list of word numbers)) -> what target() returns",
    mistakes={
        "by-position": M({"kept[0][:, order]": "kept[0]"}, _patch_seen,
            "Word 3 got what word 3 of the other text had, and that's another word. Move the rows: word i gets row "
            "order[i]."),
        "order-turned-round": M(_patch(lambda own, other, order: other[:, _inverse(order)]), _patch_seen,
            "The order was used backwards: row i went to place order[i]. Word i *gets* row order[i]: kept[:, order]."),
        "own-rows": M(_patch(lambda own, other, order: own[:, order]), _patch_seen,
            "The rows are the target's own, in another order: was the target recorded? They should come from the source."),
        "source-inside": M(_source_inside, lambda case: "source() runs inside the target's hook, and starts it again.",
            "While the target's hook is on the layer, every run fires it, the source's too, and so on without an end. Let "
            "source run first, and be over, before you start the target."),
        "keeps-nothing": M(_keeps_nothing, lambda case: "while source runs, your `change` returns None.",
            "`edited` puts what `change` returns in the head's place, in the first run too. Keep z, and then return it as "
            "it is."),
        "another-axis": M(_patch(lambda own, other, order: other[..., order]), lambda case: "order was used on another "
            "axis than the words'.", "The output is (1, query, d_head), and order says which *word*: that's the axis in the "
            "middle, kept[0][:, order]."),
        "recorded-after": M(_recorded_after, _patch_seen,
            "What you kept is what comes out of the output projection, where the heads are mixed. Keep what goes in: "
            "`edited` hands it to `change`."),
        "only-moved-words": M(_patch(_only_moved), _patch_seen,
            "Only the words that stand elsewhere were replaced. A word in the same place has another neighbourhood in "
            "the source, so the head says something else there too: every word gets its row."),
        "texts-swapped": M(_patch(lambda own, other, order: other[:, order], "target", "source"), _patch_seen,
            "Source and target have changed places: what comes from `source` is put into `target`."),
        "nothing-put-in": M(_patch(lambda own, other, order: own), _patch_seen,
            "The target ran as it is. What the first run kept has to take the head's place in the second."),
        "other-head": M(_patch_other_head, _patch_seen, "Another head than the one asked for was transplanted."),
        "all-heads": M(_patch_all_heads, _patch_seen,
            "The output of all heads was put in. With only one you see what that one carries."),
        "added": M(_patch(lambda own, other, order: own + other[:, order]), _patch_seen,
            "The source's output was added to the target's. It takes its place."),
        "half": M(_patch(lambda own, other, order: (own + other[:, order]) / 2), _patch_seen,
            "You put in the mean of the two. The source's output takes the target's place."),
        "gives-source": M(_gives_source, lambda case: "you return what the source's run gives.",
            "The question is what becomes of the target: return what target() gives while the head is replaced."),
        "runs-again": M(_runs_again, lambda case: f"target() ran {case.got['runs of the target']:.0f} times, the last time "
            "with its own head.",
            "When the second `edited` is over, its hook is gone. Return what `edited` gives; don't call target() again."),
    },
    rules=(
        R(lambda case: case.got["change gave nothing"] > 0, lambda case: "a `change` of yours returns None.",
          "`edited` puts what `change` returns in the head's place. Where you only want to read, return z as it is."),
        R(lambda case: case.got["another axis"] > 0, lambda case: "what you put in doesn't have the head's shape.",
          "The output is (1, query, d_head), and order has one number for each word: the axis in the middle, "
          "kept[0][:, order]."),
        R(lambda case: case.got["again"] > 0, lambda case: "a run is started within itself, over and over.",
          "A hook fires in every run. Let source be over before target starts."),
        R(lambda case: case.got["hooks left"] > 0, lambda case: f"afterwards {case.got['hooks left']:.0f} hooks are still "
          "on the layer.", "`edited` removes its own; remove those that you register yourself."),
        R(lambda case: case.got["runs of the target"] == 0, lambda case: "target() was never called.",
          "Two runs: first source, to keep what the head writes there, then target, with that in its place."),
        R(lambda case: not torch.allclose(case.got["seen"], case.right["seen"], atol=1e-4), _patch_seen,
          "In the last run, the head's columns at word i are those of word order[i] in the source; all others are the "
          "target's own."),
        R(lambda case: not torch.allclose(case.got["returned"], case.right["returned"], atol=1e-4), _patch_seen,
          "Return what target() gives while the head is replaced."),
    ),
    hints=(
        "Two calls of `edited`: in the first, `change` keeps what it's given and returns it unchanged.",
        "def keep(z): kept.append(z); return z — then edited(layer, head, keep, source), with kept = [] before it.",
        "In the second, `change` ignores what it's given, and returns kept[0][:, order].",
    ),
)

# ---------------------------------------------------------------- the questions

QUIZ = """- name: left-of-the-diagonal
  taught: "10"
  question: In a map of one text, which weights make up the previous-token score?
  options:
    - text: Those in the first column.
      remark: That column is the key of the first word. Only for the second query is that the word directly before.
    - text: Those on the main diagonal.
      remark: Those are the weights that each word gives to itself.
    - text: Those one column right of the main diagonal.
      remark: Row i, column i + 1 is the key after the query. That would be a next-token score.
    - text: Those one column left of the main diagonal.
      right: true
      remark: Row i, column i − 1; the first row has no such key.
- name: eight-words-away
  taught: "10"
  question: All reviews of a set have 24 tokens. A head's attention distance is 8. Does it look far?
  options:
    - text: It looks as far as a head that gives every token the same weight.
      right: true
      remark: (n² − 1) / 3n is about 8 for n = 24. A distance means something only when compared with this number.
    - text: Yes, because eight tokens are longer than a phrase.
      remark: A head that gives every token the same weight reaches (24² − 1) / 72, about 8, without looking at anything.
    - text: No, because in a text of 24 tokens it could be 23.
      remark: Only from one end of the text to the other. For a query in the middle no key is more than 12 away.
- name: forty-on-commas
  taught: "10"
  question: A trained head puts 0.40 of its weight on punctuation. What do you need to know before you call it a
    delimiter head?
  options:
    - text: The accuracy of the model that the head belongs to.
      remark: A good model may have no such head, and a bad one may.
    - text: A bar that was set beforehand, and what untrained heads score on it.
      right: true
      remark: In a text full of commas 0.40 may be near what a blind head gives. And if you choose the bar afterwards,
        say so.
    - text: A larger map of the review, so that you can see it with your own eyes.
      remark: You can see stripes in any map. And one review isn't a sample.
- name: nothing-by-itself
  taught: "10"
  question: A head of layer 0 moves the log-odds by 0.0 itself. Set it to zero, and the label flips. How can that be?
  options:
    - text: One of the two numbers must be wrong.
      remark: They measure different things, and in section 4 and 5 both are found for the same head.
    - text: The layers above read what it writes, and they move the log-odds.
      right: true
      remark: The direct push counts only what reaches the output unread. A note that a later layer acts on counts
        for the later layer.
    - text: Its weights are spread too evenly to move anything.
      remark: How its weights are spread says nothing about that. In the notebook they're sharp.
- name: shut-and-nothing-happens
  taught: "10"
  question: You set one head to zero, and the accuracy stays the same. What follows?
  options:
    - text: While the others are open, these reviews don't need it.
      right: true
      remark: That is what was measured. On other reviews, with another head shut too, or with its mean in its place,
        it may look different.
    - text: The head does nothing, and can be removed from the model for good.
      remark: Another head may do the same job and take over. Shut both before you say that.
    - text: Its weights are uniform, so it only passes on a mean.
      remark: A head may have sharp weights and write something that no later layer uses.
- name: zero-or-mean
  taught: "10"
  question: With zeros in a head's place the model is as good as before, with the head's mean it's much worse. What
    is the likeliest reading?
  options:
    - text: The hook for the mean must have a bug.
      remark: Check it, of course. But in section 5 it happens with a hook that is right.
    - text: The head does nothing.
      remark: Then its mean would do nothing either.
    - text: The mean says something, and says it to every review, where it isn't true.
      right: true
      remark: The average of two different things may be something that the head says in few reviews. Zero isn't neutral
        either; look at every kind of review before you call it harmless.
- name: looks-pushes-matters
  taught: "10"
  question: A head pushes plain reviews away from their label, and reviews flipped by a negator towards it. Does the
    negator make it change its mind?
  options:
    - text: That isn't shown. A head that always speaks against the opinion word would do the same.
      right: true
      remark: A flipped review's label is turned already. Counted for the opinion, the counter head pushes to the same side
        in both kinds, on five seeds of five.
    - text: Yes, its push has another sign where there's a negator.
      remark: The sign is counted towards the label, and the negator has turned the label. What does the head do?
    - text: No, in a flipped review it must be the layers above that turn the opinion.
      remark: The two numbers say nothing about other layers. And in section 5 a head of layer 0 is what changes most.
- name: what-the-twin-carried
  taught: "10"
  question: You put a head's output from one twin into the other, aligned by word, and the label of the other twin
    flips. What have you shown?
  options:
    - text: In this pair, what this head writes is enough to carry the verdict over.
      right: true
      remark: The words are the same and nothing else was changed. Other pairs have to be tried.
    - text: The head looks at opinion words.
      remark: You never looked at its map.
    - text: No other head is needed.
      remark: The others still ran, on the changed input and with everything else of the target text.
- name: columns-of-head-two
  taught: "05"
  question: A layer is 32 wide and has 4 heads. You shut head 2, counted from 0. Which columns are zero before the
    output projection?
  options:
    - text: 2, 6, 10 and so on, every fourth.
      remark: Then the heads' columns would be interleaved. A head's columns are next to each other.
    - text: 8 to 15.
      remark: Those belong to head 1; we count from 0.
    - text: 16 to 23.
      right: true
      remark: A head owns 32 / 4 = 8 neighbouring columns; head 2's begin at 2 · 8.
    - text: None; all 32 become smaller.
      remark: That is so after the output projection, which mixes the heads. Before it they are side by side.
"""

WARM_UP = """
- name: who-mixes-the-heads
  taught: "05"
  question: In an attention layer, which part lets a number of head 0 and a number of head 1 meet in one sum?
  options:
    - text: The softmax.
      remark: Each head has a softmax of its own, over keys.
    - text: The output projection.
      right: true
      remark: Until then the heads lie side by side. In this notebook you cut in just before it.
    - text: The value projection.
      remark: It makes the values before there are any weights; head 0 reads only its own columns.
- name: what-a-block-adds
  taught: "07"
  question: What does a pre-norm block do to the vector of a word?
  options:
    - text: It replaces it by the block's output.
      remark: Then nothing of the input could bypass the block.
    - text: It adds what attention found, then what the feed-forward layer makes of it.
      right: true
      remark: So the last vector is a sum of everything that was ever added, and sums can be taken apart.
    - text: It multiplies it by the attention weights.
      remark: The weights average the values of other words; the result is added.
- name: five-seeds-of-one
  taught: "09"
  question: You find something in one trained model. What would you need before you say it of 'the classifier'?
  options:
    - text: A larger test split.
      remark: That makes you surer about this model only.
    - text: The same search in models trained with other seeds.
      right: true
      remark: Some of what follows holds on five seeds of five, and some on two.
    - text: A smaller learning rate.
      remark: That's another model, and still one.
"""
