"""Exercises of notebook 00, tensors. The answers stand beside it, in `answers`."""

import torch
from torch.nn import functional as F

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import spread
from course_exercises.n00 import probes

# ---------------------------------------------------------------- 0.1 repair: a mean for each review

def _worst_review(case: Case) -> int:
    """The review whose mean is furthest off, or 0 where the shapes differ."""
    if case.answer.shape != case.expected.shape:
        return 0
    return int((case.answer - case.expected).abs().argmax())


def _review(case: Case) -> str:
    i = _worst_review(case)
    opinions, is_token = case.inputs
    tokens, positions = int(is_token[i].sum()), is_token.shape[1]
    return (f"review {i} has {tokens} {'token' if tokens == 1 else 'tokens'} in {positions} "
            f"{'position' if positions == 1 else 'positions'} and gets {case.answer[i]:.3f} from you, expected "
            f"{case.expected[i]:.3f}.")


def _how_many(case: Case) -> str:
    n = len(case.inputs[0])
    return f"{n} {'review gets' if n == 1 else 'reviews get'} {case.answer.numel()} numbers, {_shape(case.answer)}."


def _shape(tensor: torch.Tensor) -> str:
    return f"in the shape {tuple(tensor.shape)}"


MEAN = Exercise(
    given="every-with-every", probes=probes.mean_probes,
    signature="mean_opinion(opinions (review, position), is_token (review, position), True = a token, False = padding) -> "
    "(review,)",
    not_finite=dict.fromkeys(("NaN", "inf", "-inf"), "You divide by 0 here, and every review has at least one token, so no "
                             "count should be 0."),
    mistakes=(
        Mistake("every-with-every", _how_many, "One of the two that you divide is a column, the other a row, so every "
                "total is divided by every count. Print both shapes and make them equal."),
        Mistake("averaged-again", _review, "You have one number for each review, but it averages this total's quotients "
                "with the counts of *all* reviews. Don't patch the (review, review) table: prevent it, by making the two "
                "shapes equal."),
        Mistake("padding-counted", _review, "You divide by the number of positions. Padding isn't part of the review: "
                "divide by the number of its tokens."),
        Mistake("padding-added", _review, "The numbers in the padding went into the total. They mean nothing; multiply by "
                "the mask before you sum."),
        Mistake("mask-ignored", _review, "That is the mean over all positions, padding included, as if there were no mask: "
                "both the total and the count need it."),
        Mistake("zeros-left-out", _review, "A token with opinion 0 wasn't counted. It's still a token: count with the mask, "
                "don't look for nonzero numbers."),
        Mistake("per-position", lambda case: f"you return {case.answer.numel()} numbers, one for each of the "
                f"{case.inputs[0].shape[1]} positions.", "The dimension that you name in sum disappears. To keep the "
                "reviews, sum over the positions, dim=1."),
        Mistake("one-mean-for-all", lambda case: f"you return one number, {case.answer.flatten()[0]:.3f}, for "
                f"{len(case.inputs[0])} reviews.", "A sum without a dim adds up everything. Name the dimension that should "
                "disappear, so that each review keeps a number of its own."),
        Mistake("not-divided", _review, "That is the total. The mean is the total divided by the number of tokens."),
    ),
    properties=(
        Property(lambda case: case.inputs[1][:, 0].all() and (case.answer - case.expected).abs().max() > 1e-4, _review,
                 "Multiply its opinions by the mask, add them up, and divide by the number of its own tokens."),
        Property(lambda case: (case.answer - case.expected).abs().max() > 1e-4, lambda case: f"{_review(case)} Here the "
                 "padding comes first.", "Don't count positions from the left: the mask says where the tokens are."),
    ),
    hints=(
        "Print the shapes of `total` and `count` just before they are divided.",
        "(3, 1) and (3,): write one below the other, aligned at the right. What does broadcasting make of them?",
        "Either both keep the summed dimension or neither does; the result should be (review,). Leave out keepdim=True.",
    ),
)

# ---------------------------------------------------------------- 0.2 a softmax that doesn't overflow

def _not_numbers(case: Case) -> str:
    level = case.inputs[0][case.inputs[0].isfinite()]
    return (f"{int((~case.answer.isfinite()).sum())} of your {case.answer.numel()} numbers are NaN or infinite, for scores "
            f"between {level.min():.0f} and {level.max():.0f}.")


def _sums(case: Case) -> str:
    return f"your rows sum to {spread(case.answer.sum(dim=-1))}."


def _range(case: Case) -> str:
    return f"your numbers go from {spread(case.answer)}."


def _furthest(case: Case) -> str:
    place = (case.answer - case.expected).abs().flatten().argmax()
    return f"one of your numbers is {case.answer.flatten()[place]:.3f}, expected {case.expected.flatten()[place]:.3f}."


SOFTMAX = Exercise(
    probes=probes.softmax_probes, observe=probes.observe_softmax,
    signature="stable_softmax(scores (..., class)) -> probabilities of the same shape; each row sums to one",
    not_finite={
        "inf": "e to the power of a score above 88.7 overflows. Subtract from each row its own maximum first: then its "
        "largest power is 1.",
        "-inf": "A power of e is never below 0. That's a score, or the logarithm of a power that was rounded to 0.",
        "NaN": "That's infinity divided by infinity, or 0 / 0 in a row whose powers are all rounded to 0. Subtract from "
        "each row its own maximum first: then its largest power is 1, and its sum at least 1."},
    mistakes=(
        Mistake("no-shift", _not_numbers, "e to the power of a large score overflows, and infinity divided by infinity is "
                "NaN; if all scores are very negative, so is 0/0. Subtract the maximum of the row first."),
        Mistake("one-maximum", _not_numbers, "You subtract one maximum, taken over the whole tensor. Rows far below it are "
                "left with powers that are all rounded to 0. Each row needs its own maximum."),
        Mistake("minimum", _not_numbers, "You subtract the minimum of each row, so the powers can still grow without limit. "
                "Subtract the maximum, and no power is above 1."),
        Mistake("mean-subtracted", _not_numbers, "You subtract the mean of each row, so a score far above the others still "
                "overflows. Subtract the maximum, and no power is above 1."),
        Mistake("divided-by-maximum", _furthest, "You divide by the maximum. Only *differences* of scores count, so a shift "
                "changes nothing and a division does: subtract."),
        Mistake("one-sum", _sums, "You divide by the sum of the whole tensor. Each row has to be divided by its own sum."),
        Mistake("over-rows", _sums, "The sum and the maximum run over dim=0, down the columns. The classes of one token are "
                "in the last dimension: dim=-1."),
        Mistake("not-divided", _sums, "These are the powers of e. Divide each by the sum of its row to get "
                "probabilities."),
        Mistake("logarithms", _range, "These are logarithms of probabilities, which are never above 0. Return the "
                "probabilities themselves."),
        Mistake("no-exponential", _range, "You divide the scores by their sum. Scores may be negative, and their sum 0: "
                "take e to the power of each first."),
    ),
    properties=(
        Property(lambda case: (case.answer < -1e-6).any(), _range, "A probability is between 0 and 1; a power of e is "
                 "positive."),
        Property(lambda case: (case.answer.sum(dim=-1) - 1).abs().max() > 1e-3, _sums, "The probabilities of each row, "
                 "along the last dimension, sum to one."),
        Property(lambda case: (case.answer[case.inputs[0] == -torch.inf] > 0).any(), lambda case: "a class with a score of "
                 "minus infinity gets a probability of "
                 f"{case.answer[case.inputs[0] == -torch.inf].max():.3f}.", "e to the power of minus infinity is exactly "
                 "0."),
        Property(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _furthest, "The rows sum to one, but they "
                 "aren't e to the power of the scores, divided by their sum."),
    ),
    hints=(
        "First write it for a table as if overflow didn't exist: exp, then divide by the sums. Print the shape of the sums.",
        "max and sum both take dim=-1 and keepdim=True. With a dim, max returns two things; `.values` is the first.",
        "exps = (scores - scores.max(dim=-1, keepdim=True).values).exp(), and then divide by its sums.",
    ),
)

# ---------------------------------------------------------------- 0.3 cross-entropy

def _loss(case: Case) -> str:
    tokens, classes = case.inputs[0].shape
    count = f"{tokens} {'token' if tokens == 1 else 'tokens'}"
    return f"for {count} and {classes} classes your loss is {case.answer:.3f}, expected {case.expected:.3f}."


def _gap_to_true(case: Case) -> float:
    """How far the true class of some token is below the best one, in scores: the largest such gap."""
    scores, true_class = case.inputs
    return (scores.max(dim=-1).values - scores[range(len(scores)), true_class]).max().item()


LOSS = Exercise(
    probes=probes.loss_probes, forbidden=("torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss"),
    signature="cross_entropy(scores (token, class), true_class (token,), whole numbers) -> one number, the mean loss",
    not_finite={
        "inf": "A probability too small for float32 is rounded to 0, and ln 0 is minus infinity; or e to the power of a "
        "score overflows. Don't take the logarithm of a probability: ln p is the score minus the logarithm of the sum of "
        "the powers of e, each score with the maximum of its row subtracted.",
        "-inf": "ln p is minus infinity where p was rounded to 0, and the loss is minus ln p. Don't take the logarithm of a "
        "probability: ln p is the score minus the logarithm of the sum of the powers of e.",
        "NaN": "e to the power of a score above 88.7 overflows, and infinity divided by infinity is NaN. Subtract the "
        "maximum of each row from the scores first."},
    mistakes=(
        Mistake("log-of-zero", lambda case: f"your loss is {case.answer:.3f} where a wrong class scores "
                f"{_gap_to_true(case):.0f} higher than the true one.", "Its probability was rounded to 0 before you took "
                "the logarithm. Compute ln p in one go, as section 7 does: the score minus the logarithm of the sum of the "
                "powers."),
        Mistake("columns-picked", _loss, "table[:, true_class] picks the columns of *all* true classes for *every* token, "
                "which makes (token, token). You need one number from each row: table[range(n), true_class]."),
        Mistake("sum", _loss, "That is the sum over the tokens. The loss is their mean, so that it doesn't grow with their "
                "number."),
        Mistake("no-logarithm", _loss, "That is minus the mean probability of the true class. Take the logarithm of each "
                "one first."),
        Mistake("sign", _loss, "The logarithm of a probability is never above 0, and this loss is never below 0: the minus "
                "is missing."),
        Mistake("softmax-twice", _loss, "The softmax was applied twice: probabilities went in where scores belong. So the "
                "loss can never get close to 0."),
        Mistake("all-classes", _loss, "You average over all classes. Cross-entropy looks only at the probability of the "
                "true class."),
        Mistake("log-of-the-mean", _loss, "You average the probabilities and then take the logarithm. Take the logarithm "
                "for each token, then the mean; the two differ."),
        Mistake("base-two", _loss, "That is a logarithm with base 2, which gives the loss in bits. Here, and in PyTorch, it "
                "is the natural logarithm, ln.", convention=True),
        Mistake("scores-as-logarithms", _loss, "You took the scores for logarithms of probabilities. The logarithm of the "
                "sum of all powers still has to be subtracted."),
        Mistake("over-tokens", _loss, "The softmax runs over the tokens (dim=0). One token's probabilities sum to one: "
                "dim=-1."),
        Mistake("most-likely", _loss, "You took the probability of the class that the model prefers. The loss depends on "
                "the *true* class."),
        Mistake("per-class-too", _loss, "You divide by the number of entries in the table. Each token gives one number: "
                "divide by the number of tokens."),
    ),
    properties=(
        Property(lambda case: _gap_to_true(case) < 100 and (case.answer - case.expected).abs() > 1e-4, _loss, "For each "
                 "token: the logarithm of the sum of e to the power of its scores, minus the score of its true class. Then "
                 "the mean."),
        Property(lambda case: _gap_to_true(case) > 100 and case.answer < case.expected - 1, lambda case: "where a wrong "
                 f"class scores {_gap_to_true(case):.0f} higher than the true one your loss is {case.answer:.3f}, expected "
                 f"{case.expected:.3f}.", "A small number added to the probability, or a clamp, sets an upper limit that "
                 "the loss doesn't have. Compute ln p without computing p."),
        Property(lambda case: (case.answer - case.expected).abs() > 1e-4, _loss, "Ordinary scores come out right; these are "
                 "far apart. Subtract the maximum of each row before you take powers."),
    ),
    hints=(
        "For one token: loss = −z_c + ln Σ e^z. Try it on the scores (2, 1, 0) of 'dull', true class 0: 0.408.",
        "scores[range(len(scores)), true_class] gives the score of the true class of each token.",
        "Subtract the maximum of each row from the scores first; then the sum of the powers is between 1 and the number of "
        "classes, and its logarithm is safe.",
    ),
)

# ---------------------------------------------------------------- 0.4 one step

def _loss_of(W: torch.Tensor, case: Case) -> float:
    return F.cross_entropy(case.inputs[1].double() @ W.double(), case.inputs[2]).item()


def _first(case: Case) -> str:
    """Where the new weights are furthest off: the weight before, the learner's, and the right one."""
    place = (case.answer - case.expected).abs().flatten().argmax()
    return (f"a weight of {case.inputs[0].flatten()[place]:.3f} becomes {case.answer.flatten()[place]:.3f}, expected "
            f"{case.expected.flatten()[place]:.3f}.")


def _losses(case: Case) -> str:
    return (f"with learning rate {case.inputs[3]:g} your step takes the loss from {_loss_of(case.inputs[0], case):.3f} to "
            f"{_loss_of(case.answer, case):.3f}; the right one takes it to {_loss_of(case.expected, case):.3f}.")


STEP = Exercise(
    probes=probes.step_probes,
    signature="gradient_step(W (feature, class), x (token, feature), true_class (token,), learning_rate) -> new W (feature, "
    "class)",
    mistakes=(
        Mistake("uphill", _losses, "You add the gradient, or have y − p for p − y. The gradient points where the loss "
                "grows; go the other way."),
        Mistake("gradient-only", _first, "That is the gradient itself. Multiply it by the learning rate and subtract it "
                "from W."),
        Mistake("step-only", _first, "That is the step, minus learning rate times gradient. It must still be added to W."),
        Mistake("no-learning-rate", _losses, "The learning rate has no effect: you subtract the whole gradient."),
        Mistake("sum", _losses, "The gradients of the tokens were summed. The loss is a mean over the tokens, and so is its "
                "gradient: divide by their number."),
        Mistake("mean-over-classes", _losses, "The gradient was divided by the number of classes as well, as .mean() over "
                "the whole table does. The loss is a mean over the tokens alone."),
        Mistake("divided-by-features", _losses, "You divide by x.shape[1], the number of features. The loss is a mean over "
                "the tokens, x.shape[0]."),
        Mistake("no-truth", _losses, "You use p where p − y belongs, so the true classes have no effect on the step."),
        Mistake("no-softmax", _losses, "You subtract the truth from the scores. The error is probability minus truth: "
                "softmax the scores first."),
        Mistake("over-tokens", _losses, "The softmax runs over the tokens (dim=0). Each token's probabilities sum to one "
                "over the classes: dim=-1."),
        Mistake("at-zero", _losses, "Your gradient is the one at W = 0, as on paper, where all probabilities are equal. "
                "Compute the probabilities from the W you are given."),
        Mistake("from-zero", _first, "You start from W = 0, as on paper. Start from the W you are given, for the "
                "probabilities and for the step."),
        Mistake("softmax-twice", _losses, "The softmax was applied twice: F.cross_entropy takes scores and applies its own. "
                "The gradient that is left is far too small."),
        Mistake("not-cleared", _losses, "Your step is twice as long as it should be: as if backward() had been called "
                "twice without clearing .grad."),
    ),
    properties=(
        Property(lambda case: _loss_of(case.answer, case) > _loss_of(case.inputs[0], case)
                 > _loss_of(case.expected, case), _losses,
                 "A step against the gradient lowers this loss. Print p − y: for the true class it's negative, so that the "
                 "weights for it grow where the feature is positive."),
        Property(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _first, "new W = W − learning rate · xᵀ(p − "
                 "y) / number of tokens, with p the softmax of x @ W."),
    ),
    hints=(
        "Either write out the formula of section 8, or let autograd do it; both are right.",
        "p = (x @ W).softmax(dim=-1), and y = F.one_hot(true_class, num_classes=W.shape[1]).",
        "G = x.T @ (p - y) / len(x); what you return is W - learning_rate * G.",
    ),
)

EXERCISES = (MEAN, SOFTMAX, LOSS, STEP)
