"""Exercises of notebook 16, recurrent attention. The answers are beside it, in `answers`; 16.3 to 16.5 are in `writing`."""

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import (
    EACH_MAXIMUM,
    HIDDEN_AT_THE_END,
    gap,
    hidden_at_the_end,
    listed,
    row_sums,
    spread,
    worst_row,
)
from course_exercises.n16 import probes, writing

# ---------------------------------------------------------------- 16.1 a Bahdanau step


def _numbers(case: Case) -> str:
    return f"your weights are {listed(case.answer, '.2f')}."


HAND = Exercise(
    kind="number", tolerance=1.2e-2, signature="a list of three numbers, the weights of the three words",
    mistakes=(
        Mistake("no-tanh", _numbers, "The tanh is missing. Without it the query adds the same to every score, and the "
                "softmax doesn't see it at all."),
        Mistake("no-softmax", lambda case: f"your numbers are {listed(case.answer, '.2f')}, and sum to "
                f"{case.answer.sum():.2f}.", "These are the scores. The softmax is still to come."),
        Mistake("exponentials", lambda case: f"your numbers sum to {case.answer.sum():.2f}.", "These are the "
                "exponentials of the scores. Divide each by the sum of all three."),
        Mistake("v-forgotten", _numbers, "You added the two numbers of each tanh. The second counts twice: v is (1, 2)."),
        Mistake("query-forgotten", _numbers, "These are the weights for a query of zeros. Add the query to each key before "
                "the tanh."),
        Mistake("dot-product", _numbers, "That's the softmax of the dot products of query and keys. The additive score is "
                "v · tanh(query + key)."),
        Mistake("sign-lost", _numbers, "A minus sign is missing: the third sum is (−1, 2), and tanh(−1) is −0.76."),
        Mistake("query-subtracted", _numbers, "You took the difference of query and key. The additive score takes their "
                "sum."),
        Mistake("tanh-last", _numbers, "You took the tanh of the whole score. It belongs inside: tanh of each number of the "
                "sum, and then the dot product with v."),
        Mistake("v-turned-round", _numbers, "Here the first number of each tanh counts twice. v is (1, 2), so it's the "
                "second."),
        Mistake("no-exponential", _numbers, "You divided the scores by their sum. The softmax takes their exponentials "
                "first."),
    ),
    properties=(
        Property(lambda case: abs(case.answer.sum() - 1) > 0.03, lambda case: f"the three sum to {case.answer.sum():.2f}.",
                 "Weights sum to one: divide by the sum of the three exponentials."),
        Property(lambda case: not case.answer[0] > case.answer[1] > case.answer[2], _numbers, "The first word should "
                 "have the largest weight and the third the smallest. Add query and key first: (1, 1), (0, 1) and (−1, 2)."),
        Property(lambda case: True, lambda case: f"the first weight is {case.answer[0]:.2f}.", "The order is right. Compute "
                 "each score as 1 · tanh(first sum) + 2 · tanh(second sum), and then its exponential."),
    ),
    hints=(
        "Query and key are added, number by number. What are the three sums?",
        "The sums are (1, 1), (0, 1) and (−1, 2). Take tanh of each number, then the dot product with v.",
        "The scores are 2.28, 1.52 and 1.16; their exponentials 9.78, 4.57 and 3.19.",
    ),
)

# ---------------------------------------------------------------- 16.2 additive attention


def _row(case: Case) -> str:
    """The weights of the sentence that is furthest off."""
    i = worst_row(case, "weights")
    return (f"the weights of sentence {i}, counted from 0, are {listed(case.weights[i], '.2f')}, expected "
            f"{listed(case.right['weights'][i], '.2f')}.")


def _on_padding(case: Case) -> str:
    on_padding = case.weights.masked_fill(case.inputs[3], 0).sum(dim=1)
    return f"up to {on_padding.max():.2g} of a sentence's weight is on padding."


def _context(case: Case) -> str:
    return f"your weights are right, and your contexts are up to {gap(case, 'context'):.2f} off."


def _columns(case: Case) -> str:
    return f"your rows sum to {spread(case.weights.sum(dim=1))}, your columns to {spread(case.weights.sum(dim=0))}."


ATTENTION = Exercise(
    probes=probes.attention_probes, observe=probes.observe_attention,
    signature="additive_step(query (batch, d), keys (batch, source, d), states (batch, source, d_states), "
    "mask (batch, source), v (d,)) -> context (batch, d_states), weights (batch, source)",
    not_finite={
        "inf": f"exp of a large score overflows: call softmax. {EACH_MAXIMUM}",
        "-inf": "−inf belongs on the scores of padding, before the softmax; a weight is never below 0, and a context is a "
        "mean of states.",
        "NaN": "A softmax over nothing but −inf is NaN. Every sentence here has a real word: is the mask the right way "
        f"round, and the softmax over the words? {EACH_MAXIMUM}"},
    forbidden=("course_utils.recurrent_attention.AdditiveAttention",),
    mistakes=(
        Mistake("no-tanh", _row, "The tanh is missing. Then every word's score has the same addition from the query, "
                "which the softmax removes: whatever is asked, the answer is the same."),
        Mistake("tanh-last", _row, "You took the tanh of the whole score. It belongs inside: tanh(query + key), and "
                "then the dot product with v."),
        Mistake("dot-product", _row, "You multiplied query and keys. The additive score adds them, and v weighs the "
                "tanh of the sum."),
        Mistake("query-forgotten", _row, "The query is missing (or it's added after the tanh, where the softmax "
                "removes it), so every step of the decoder would get the same context."),
        Mistake("v-forgotten", _row, "The numbers of the tanh are added up without v, which says how much each "
                "counts."),
        Mistake("over-the-batch", _columns, "The softmax runs over the batch, so sentences compete for a position. "
                "Words must compete within their sentence: dim=-1."),
        Mistake("padding-attended", _on_padding, "The mask isn't used. The same sentence would be translated differently "
                "in a batch with a longer one."),
        Mistake("mask-inverted", _on_padding, "Your mask hides the words and leaves the padding. True is a real word: hide "
                "~mask."),
        Mistake("zero-for-padding", _on_padding, "Padding gets a score of 0, and e⁰ is 1. Only a very low "
                "score, such as −inf, gets no weight."),
        Mistake("mask-after-softmax", row_sums, "Padding took part in the softmax and was removed afterwards, so its "
                "part is missing. Mask the scores first."),
        Mistake("no-softmax", row_sums, "These are the scores themselves. Turn them into weights by a softmax."),
        Mistake("sum-of-states", _context, "Your context adds up the states of all words, whatever their weights."),
        Mistake("plain-mean", _context, "Your context is the plain mean of the states. The weights are there to be used."),
        Mistake("divided-by-length", _context, "Your context is divided by the number of positions. The weights sum to "
                "one, so their sum is a mean already."),
    ),
    properties=(
        Property(lambda case: hidden_at_the_end(case.weights, case.inputs[3]), _on_padding, HIDDEN_AT_THE_END),
        Property(lambda case: (case.weights.masked_fill(case.inputs[3], 0).abs() > 1e-6).any(), _on_padding, "Padding must "
                 "get no weight: its scores are −inf before the softmax. A modest number such as −10 isn't low enough where "
                 "the words' scores are lower."),
        Property(lambda case: ((case.weights.sum(dim=1) - 1).abs() > 1e-3).any(), row_sums, "The weights of each "
                 "sentence sum to one: a softmax over its words."),
        Property(lambda case: gap(case, "weights") > 1e-3, _row, "Padding gets none and the rows sum to one, so "
                 "look at the scores: v · tanh(query + key), for each word."),
        Property(lambda case: gap(case, "context") > 1e-3, _context, "The context is the sum of each state times its "
                 "weight: states, not keys."),
    ),
    hints=(
        "query has no dimension for words. Where does it need one, so that it's added to every key?",
        "scores = (query[:, None] + keys).tanh() @ v has the shape (batch, source). What must padding get before the "
                "softmax?",
        "weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1), and the context is (weights[:, None] @ "
                "states)[:, 0].",
    ),
)

EXERCISES = (HAND, ATTENTION, writing.LOSS, writing.WRITE, writing.AER)
