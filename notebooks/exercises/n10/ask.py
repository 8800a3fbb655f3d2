"""Exercises of notebook 10, attention maps. The answers stand beside it, in `answers`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import listed, one_tensor, reached, reaches, spread, width
from course_exercises.n10.refute import LOWER_END

# ---------------------------------------------------------------- 10.1 the distance of one row

def _one(case: Case) -> str:
    return f"{case.answer.item():.3f}"


DISTANCE = Exercise(
    kind="number", tolerance=1e-3, signature="one number: how many words away, on average",
    mistakes=(
        Mistake("signed", lambda case: f"{_one(case)} is the mean with signs.", "Words before and words after cancel each "
                "other. A distance has no sign: take |query − key| for each key first."),
        Mistake("signed-forward", lambda case: f"{_one(case)} is negative, and a distance never is.",
                "Words before count as negative here, words after as positive. Take |query − key| for each key first."),
        Mistake("mean-position", lambda case: f"{_one(case)} is the mean position of the keys.", "It says where the row "
                "looks. You need how far that is from the query's own position, 3."),
        Mistake("unweighted", lambda case: f"{_one(case)} counts all five keys equally.", "That is what a row with weight "
                "0.2 everywhere would give. Multiply each distance by its weight."),
        Mistake("largest-key", lambda case: f"{_one(case)} is the distance of one key, the one with the largest weight.",
                "The other keys have 0.60 of the weight between them; the mean counts them too."),
        Mistake("largest-term", lambda case: f"{_one(case)} is what 'not' contributes, the key with the largest weight.",
                "The mean adds up what all five keys contribute."),
        Mistake("query-too-far", lambda case: f"{_one(case)} puts the query one position too far right.",
                "Count queries and keys from the same number: with 'not' as 0, 'moving' is 3, and its distance to itself is "
                "0."),
        Mistake("query-too-near", lambda case: f"{_one(case)} puts the query one position too far left.",
                "Count queries and keys from the same number: with 'not' as 0, 'moving' is 3, and its distance to itself is "
                "0."),
        Mistake("squared", lambda case: f"{_one(case)} is the mean of the squared distances.", "The far keys count too "
                "much: |query − key|, without the square."),
        Mistake("root-of-squares", lambda case: f"{_one(case)} is the root of the mean square.",
                "That is a different kind of mean, in which far keys count more. Use the plain mean of |query − key|."),
        Mistake("divided-by-keys", lambda case: f"{_one(case)} was divided by the number of keys.",
                "The weights already sum to one, so the weighted sum is the mean."),
        Mistake("divided-by-longest", lambda case: f"{_one(case)} is a fraction of the longest distance.",
                "The answer is a number of words: don't divide."),
        Mistake("words-between", lambda case: f"{_one(case)} counts the words between query and key.",
                "There's no word between neighbours, but their distance is 1: the difference of the two positions."),
        Mistake("own-left-out", lambda case: f"{_one(case)} leaves out the weight on the word itself.",
                "The key 'moving' belongs to the row, with distance 0 and weight 0.05; don't rescale the other weights."),
        Mistake("only-before", lambda case: f"{_one(case)} counts only the keys before the query.",
                "This row also looks at the full stop after it: distance 1, weight 0.20."),
        Mistake("counted-from-one", lambda case: f"{_one(case)}: here a word is one position away from itself.",
                "|query − key| is 0 for the word itself and 1 for its neighbours."),
    ),
    properties=(
        Property(lambda case: case.answer < 0, lambda case: f"{_one(case)} is negative.", "A distance never is."),
        Property(lambda case: case.answer > 3, lambda case: f"{_one(case)} is more than 3.", "The furthest key, 'not', is 3 "
                 "words away, and a mean lies between the smallest distance and the largest."),
        Property(lambda case: case.answer < 1.2, lambda case: f"{_one(case)} is less than 1.2.",
                 "The key 'not' alone contributes 0.40 · 3 to the sum, and no key contributes a negative number."),
    ),
    hints=(
        "Write the distance of 'moving' to each key under its weight. To itself it is 0.",
        "The distances are 3, 2, 1, 0, 1. Multiply each by its weight and add up the products.",
    ),
)

# ---------------------------------------------------------------- 10.2 a score for previous-token heads

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


PREVIOUS = Exercise(
    probes=_previous_probes, signature="previous_token_score(weights (heads, query, key)) -> scores (heads,)",
    mistakes=(
        Mistake("first-counted", _scores, "The first query was counted as well. It has no key before it, so it can't have "
                "missed it: divide by one less than the number of queries."),
        Mistake("next", _scores, "This is the weight on the key after the query: a next-token score. Row = query, column = "
                "key: before means column = row − 1, below the diagonal."),
        Mistake("itself", _scores, "This is the main diagonal: what each word gives to itself. The key before lies one "
                "column to the left."),
        Mistake("two-before", _scores, "This is the key two positions before the query. The one directly before lies one "
                "column left of the diagonal."),
        Mistake("wrapped", _scores, "For the first query the key before has the number −1, and in Python that is the last "
                "key. Start with the second query."),
        Mistake("heads-averaged", lambda case: f"you return one number, {case.answer.item():.3f}, for {len(case.expected)} "
                "heads.", "The mean ran over the heads too. One positional head among many would vanish in it: keep the "
                "heads apart."),
        Mistake("not-averaged", _got_shape, "These are the weights themselves, one for each query. Take their mean, query "
                "by query within a head."),
        Mistake("queries-kept", _got_shape, "The mean was taken over the heads, and the queries are left. It is the other "
                "way round: one number for each head."),
        Mistake("summed", _scores, "The weights were added, not averaged, so a long text would score more than a short one. "
                "Divide by the number of queries that have a key before them."),
        Mistake("largest-of-row", _scores, "You counted how often the key before has the largest weight of its row. That's "
                "a fair score, but a different one: here we want how much weight it gets."),
        Mistake("all-before", _scores, "All keys before the query were added. Only the one directly before counts; a head "
                "that looks far back isn't a previous-token head."),
        Mistake("whole-square", _scores, "The cut is right, but then all its entries were averaged. The key before is "
                "on the diagonal of the cut square."),
        Mistake("wrong-dimensions", lambda case: f"you return {len(case.answer)} numbers for {len(case.expected)} heads.",
                "torch.diagonal takes dimensions 0 and 1 unless it is told otherwise, heads and queries here. Queries and "
                "keys are dimensions 1 and 2."),
        Mistake("maximum", _scores, "The largest weight was taken. One query that looks back doesn't make a habit: take "
                "the mean."),
    ),
    properties=(
        Property(lambda case: (case.answer < 0).any() or (case.answer > 1).any(), lambda case:
                 f"your scores are {listed(case.answer)}.", "A mean of weights lies between 0 and 1."),
        Property(lambda case: _head_outside(case) is not None, _outside, "A mean lies between the smallest and the largest: "
                 "print which row and which column you take."),
        Property(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _scores, "Each of your scores lies between "
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


REST = Exercise(
    probes=_rest_probes, tolerance=1e-4,
    signature="rest_column(weights (query, key), head, tail) -> (query, head + 1 + tail)",
    mistakes=(
        Mistake("mean", _rest_of, "The rest is a mean. Then a hundred keys look like one, and the row loses its sum: add "
                "them."),
        Mistake("maximum", _rest_of, "The rest is the largest weight between. What the other keys got is lost: add them "
                "all."),
        Mistake("rest-last", _first_shown, "The rest is at the end. Then the order of the columns is no longer the "
                "order of the text: it belongs between head and tail."),
        Mistake("rest-first", _first_shown, "The rest is at the beginning. Then the order of the columns is no longer "
                "the order of the text: it belongs between head and tail."),
        Mistake("renormalised", _sums, "The rows were rescaled to sum to one. A reader of the map must see the weights as "
                "they were, even in a row that doesn't sum to one."),
        Mistake("one-minus", _sums, "The rest is one minus what is shown. That is right only for rows that sum to one; a "
                "query without keys has a row of zeros, and must keep it. Add up the keys in between."),
        Mistake("dropped", _with_sizes, "The keys between were left out, without a column for them. The row would look as "
                "if all its weight were shown."),
        Mistake("empty-rest", _rest_of, "The column is there, but nothing was added up in it."),
        Mistake("all-in-rest", _rest_and_sums, "All keys were added up, including the ones that are shown, so those count "
                "twice."),
        Mistake("tail-twice", _rest_and_sums, "The keys of the tail are in the rest as well as behind it. End the sum where "
                "the tail begins."),
        Mistake("head-twice", _rest_and_sums, "The keys of the head are in the rest as well as before it. Begin the sum "
                "after the head."),
        Mistake("one-lost", _rest_of, "The first key after the head is missing from the sum. Keys count from 0: the head "
                "has 0 to head − 1, so the rest begins with key number head."),
        Mistake("one-lost-at-the-end", _rest_of, "The last key before the tail is missing from the sum. A slice "
                "already leaves out its end."),
        Mistake("one-twice", _rest_of, "The first key of the tail is also in the rest. A slice leaves out its end, so it "
                "should end where the tail begins."),
        Mistake("same-in-all-rows", _rest_of, "The rest is the same in all rows: the sum ran over the queries too. Sum over "
                "the dimension of the keys only."),
        Mistake("minus-zero", _with_sizes, "A slice that begins at −tail works until tail is 0: −0 is 0, and the slice "
                "takes the whole row. Count the tail from the front."),
        Mistake("minus-zero-in-rest", lambda case: f"with tail = {case.inputs[2]} {_rest_of(case)}",
                "A slice that ends at −tail works until tail is 0: −0 is 0, and the slice is empty. Count its end from the "
                "front."),
        Mistake("no-column", _with_sizes, "No keys lie between here, and the map came back as it was. The column is needed "
                "here too, filled with zeros, so that the shape never depends on the text."),
        Mistake("rows-cut", _got_shape, "The queries were shortened, not the keys. Rows are queries, columns keys: "
                "dimension 1."),
        Mistake("swapped", _first_shown, "head and tail have changed places: `head` keys belong at the beginning, `tail` "
                "keys at the end."),
        Mistake("tail-reversed", _first_shown, "The tail is reversed. It keeps the order of the text: the last key "
                "comes last."),
        Mistake("tail-follows", _first_shown, "Your tail consists of the keys that follow the head, and the rest adds up "
                "the last ones. The tail is the end of the text."),
    ),
    properties=(
        Property(lambda case: ((case.answer - case.expected).abs()[:, _shown(case)] > 1e-4).any(), _first_shown,
                 "The first and last keys must be there unchanged: which columns of the map did you take?"),
        Property(_between_is_wrong, _rest_and_sums, "Head and tail are right. The rest is the sum over the keys that are "
                 "neither; if there are none, 0."),
    ),
    hints=(
        "Three pieces side by side: torch.cat along the keys. The middle one is (query, 1).",
        "sum(dim=1, keepdim=True) keeps the dimension that cat needs. The sum over no columns is 0 anyway.",
        "What does weights[:, -tail:] give if tail is 0? Store the index of the tail's first key, and use it twice.",
    ),
)

# ---------------------------------------------------------------- 10.4 a gate on each head

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


GATED = Exercise(
    probes=_gated_probes, observe=_observe_gated,
    signature="gated(context (batch, heads, query, d_head), gates (heads,)) -> (batch, query, heads * d_head)",
    mistakes=(
        Mistake("not-transposed", _columns, "The gates are right, but the heads were merged without exchanging heads and "
                "queries first: a word's row is filled from several words of one head (notebook 05)."),
        Mistake("wrong-columns", _columns, "The gates came after the merge, one after another over the columns: gate 0, "
                "gate 1, gate 2, … A head owns neighbouring columns, so its gate must be repeated for all of them first."),
        Mistake("interleaved", _columns, "The columns of the heads are shuffled like a pack of cards. Each head keeps its "
                "columns together: (batch, query, heads, d_head), then flatten."),
        Mistake("wrong-pair", _columns, "Queries and columns were exchanged instead of heads and queries. The heads must "
                "end up next to their columns."),
        Mistake("added", _columns, "The gate was added. Then a gate of 0 changes nothing and silences no head: multiply."),
        Mistake("ignored", _columns, "The gates have no effect. If you multiplied a copy, keep the result."),
        Mistake("opposite", _columns, "You multiplied by 1 − gate. Here 1 lets a head through and 0 shuts it."),
        Mistake("on-or-off", _columns, "The gates were rounded to 0 or 1. A gate may have any value in between, and the "
                "importance of a head is a slope in its gate: multiply by the gate itself."),
        Mistake("zero-or-not", _columns, "Every gate but 0 counts as 1 here. A gate may have any value in between: "
                "multiply by it."),
        Mistake("softmax", _columns, "The gates went through a softmax. They don't compete: each head has its own gate, "
                "used as it is."),
        Mistake("shares", _columns, "The gates were divided by their sum. They don't have to sum to one: with all gates "
                "at 1 the layer must give what it gave before."),
        Mistake("sigmoid", _columns, "The gates went through a sigmoid, so that a gate of 0 lets half through. Use them as "
                "they are."),
        Mistake("twice", _columns, "The gate was applied twice. Once is enough, before or after the merge."),
        Mistake("summed", width, "The heads were added up, with the gates as weights. Put them side by side; mixing them "
                "is left to the output projection."),
        Mistake("averaged", width, "The heads were averaged. Put them side by side, each with its own columns."),
        Mistake("not-merged", _got_shape, "The gates are applied. What's left: move the heads next to their columns, and "
                "make one dimension of both."),
        Mistake("not-flattened", _got_shape, "The dimensions are in the right order. What's left: merge the last "
                "two into one."),
        Mistake("cut-out", width, "Heads with gate 0 were removed. The output projection still expects their columns: "
                "fill them with zeros."),
    ),
    properties=(
        Property(lambda case: _wrong_head(case, 0.0) is not None, lambda case: _columns(case, _wrong_head(case, 0.0)),
                 "A head with gate 0 writes zeros into all of its columns, and into no others."),
        Property(lambda case: _size_of_one(case) is not None, lambda case: "the columns of the head with gate 1 are "
                 f"{_size_of_one(case):.3f} times what it found.", "A head with gate 1 stays as it is: use the gates "
                 "themselves, without applying a function to them."),
        Property(lambda case: _wrong_head(case, 1.0) is not None, lambda case: _columns(case, _wrong_head(case, 1.0)),
                 "A head with gate 1 stays as it is, in its own columns: is the merge right?"),
        Property(lambda case: case.inputs[1].min() >= 0 and _wrong_head(case) is not None, _columns,
                 "Take one head: its columns must be gate times what it found, in the order of the words."),
        Property(lambda case: _wrong_head(case) is not None, _columns, "Positive gates come out right. This one is "
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

EXERCISES = (DISTANCE, PREVIOUS, REST, GATED, LOWER_END)
