"""Exercise 6.5: which reorderings a model confuses. What is said of its answers."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.n06 import probes


def _called(case: Case) -> str:
    bias, orders = case.inputs
    wrong = int((case.answer.bool() != case.expected.bool()).nonzero()[0])
    said, right = ("confused" if names[wrong] else "told apart" for names in (case.answer, case.expected))
    return (f"with {len(bias)} {'head' if len(bias) == 1 else 'heads'}, you call {int(case.answer.sum())} of "
            f"{len(orders)} orders "
            f"confused, expected {int(case.expected.sum())}. {orders[wrong].tolist()} is {right}, and you say {said}.")


def _unchanged(case: Case) -> torch.Tensor:
    """Which of the orders leave every word where it is."""
    return (case.inputs[1] == torch.arange(case.inputs[1].shape[1])).all(dim=1)


CONFUSED = Exercise(
    probes=probes.confused_probes,
    signature="confused(bias (heads, seq_len, seq_len), orders (count, seq_len)) -> (count,), True or False",
    mistakes=(
        Mistake("rows-only", _called, "You reorder the queries of the bias and leave its keys. When a word moves, it "
                "moves as a "
                "query and as a key: rows and columns change in the same way, as in P B Pᵀ."),
        Mistake("columns-only", _called, "You reorder the keys of the bias and leave its queries. When a word moves, it "
                "moves "
                "as a query and as a key: rows and columns change in the same way, as in P B Pᵀ."),
        Mistake("first-head", _called, "You look at head 0 alone. It's enough that one head notices the difference: the "
                "bias "
                "must stay the same in every head."),
        Mistake("any-head", _called, "You accept an order if one head is confused. If any head sees a difference, "
                "the "
                "model can use that one."),
        Mistake("heads-added", _called, "You add the heads up before you compare, and what differs in two heads can cancel. "
                "Each head has its own softmax, so compare head by head."),
        Mistake("not-a-number", _called, "Look for NaN: -inf minus -inf is NaN, and so is 0 times -inf in a product with a "
                "permutation matrix. Pick the entries by their indices and compare them with ==."),
        Mistake("reversal-assumed", _called, "You return the text and its reversal, whatever the bias. That's the answer "
                "for a "
                "bias that falls with the distance; another bias has other symmetries, or none."),
        Mistake("all-confused", _called, "You call every order confused. That's the answer for a model without any "
                "positions; "
                "here the bias may tell some orders apart."),
        Mistake("unchanged-missing", _called, "The unchanged order is missing from what you found. It leaves the logits "
                "as they are, so it always counts."),
        Mistake("negated", _called, "True and False are swapped: True is for orders that the model confuses, those "
                "where "
                "the reordered bias is the bias itself."),
    ),
    properties=(
        Property(lambda case: (case.answer != 0).logical_and(case.answer != 1).any(), lambda case: "your answer contains "
                 f"{case.answer[(case.answer != 0) & (case.answer != 1)][0]:.3f}.", "Return one True or False for each "
                 "row of orders."),
        Property(lambda case: (case.answer[_unchanged(case)] == 0).any(), _called, "The unchanged order always counts. "
                 "Are you "
                 "comparing the right two things, and is there -inf in the bias?"),
        Property(lambda case: (case.answer > case.expected).any(), _called, "You miss a difference. Write the reordered "
                 "bias "
                 "down for this order, rows and columns, and compare all entries of all heads."),
        Property(lambda case: (case.answer < case.expected).any(), _called, "You see a difference where there is none. The "
                 "reordered bias has at (p, q) what the bias has at (order[p], order[q])."),
    ),
    hints=(
        "In section 1 the scores of the reordered text are P (q kᵀ) Pᵀ. Now the scores are q kᵀ + B. When is everything "
        "reordered in the same way?",
        "For P (q kᵀ + B) Pᵀ the model would have to add P B Pᵀ, and what it adds is B. So the two must be equal, in "
        "every head.",
        "bias[:, order][:, :, order] reorders rows and then columns; torch.equal compares it with bias.",
    ),
)
