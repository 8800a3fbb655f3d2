"""Exercises, quiz and predictions of notebook 00, tensors."""

import dis
import math
import re
import traceback

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import gap, no_module, one_tensor, spread, two_results, what

# ---------------------------------------------------------------- 0.1 repair: a mean for each review

def mean_opinion(opinions, is_token):
    total = (opinions * is_token).sum(dim=1)                # (review,), padding counts as 0
    count = is_token.sum(dim=1)                             # (review,)
    return total / count


def mean_probes(generator: torch.Generator) -> list[tuple]:
    """Opinions with padding: ragged, numbers in the padding, opinions of 0; square; padding in front; sizes of one."""
    ragged = torch.arange(5) < torch.tensor([[5], [3], [1]])                # (review, position)
    square = torch.arange(4) < torch.tensor([[2], [4], [3], [1]])
    first = torch.arange(6) >= torch.tensor([[2], [5]])

    def drawn(is_token: torch.Tensor, size: float = 1.0) -> tuple:
        opinions = size * torch.randn(is_token.shape, generator=generator)
        opinions[0, is_token[0].nonzero()[0]] = 0.0                         # a token without an opinion is still a token
        return opinions, is_token

    return [drawn(ragged), drawn(square), drawn(first, 100.0), drawn(torch.ones(1, 3, dtype=torch.bool)),
            (torch.randn(4, 1, generator=generator), torch.ones(4, 1, dtype=torch.bool)),
            (torch.tensor([[0.7]]), torch.tensor([[True]]))]


def _one(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _review(case: Case) -> str:
    """The review whose mean is furthest off, or the first where the shapes differ."""
    same = case.answer.shape == case.expected.shape
    i = int((case.answer - case.expected).abs().argmax()) if same else 0
    tokens, positions = int(case.inputs[1][i].sum()), case.inputs[1].shape[1]
    return (f"review {i} has {_one(tokens, 'token')} in {_one(positions, 'position')} and gets {case.answer[i]:.3f} from "
            f"you, expected {case.expected[i]:.3f}.")


ADDED, COUNTED = "(opinions * is_token).sum(dim=1)", "is_token.sum(dim=1)"
KEPT = "(opinions * is_token).sum(dim=1, keepdim=True)"

MEAN = ask(
    "0.1", mean_opinion, given="every-with-every", probes=mean_probes,
    signature="mean_opinion(opinions (review, position), is_token (review, position), True = a token, False = padding) -> "
    "(review,)",
    not_finite=dict.fromkeys(("NaN", "inf", "-inf"), "You divide by 0 here, and every review has at least one token. Count "
                             "with the mask as it is: True is a token."),
    numbers=dict(review=_review, reviews=lambda case: len(case.inputs[0]), positions=lambda case: case.inputs[0].shape[1],
                 get=lambda case: f"{len(case.inputs[0])} review{' gets' if len(case.inputs[0]) == 1 else 's get'}",
                 count=lambda case: case.answer.numel(), shape=lambda case: tuple(case.answer.shape),
                 only=lambda case: case.answer.flatten()[0]),
    mistakes={
        "every-with-every": M({ADDED: KEPT}, "{get} {count} numbers, in the shape {shape}.", "One of the two that you "
                              "divide is a column, the other a row, so every total is divided by every count. Print both "
                              "shapes and make them equal."),
        "both-kept": M({ADDED: KEPT, COUNTED: "is_token.sum(dim=1, keepdim=True)"}, "{get} the right means, in the shape "
                       "{shape}.", "Both keep the summed dimension, so every total meets its own count. The result should "
                       "be (review,): now leave both keepdim=True out."),
        "averaged-again": M({ADDED: KEPT, "total / count": "(total / count).mean(dim=1)"}, "{review}", "You have one number "
                            "for each review, but it averages this total's quotients with the counts of *all* reviews. "
                            "Don't patch the (review, review) table: prevent it, by making the two shapes equal."),
        "first-column": M({ADDED: KEPT, "total / count": "(total / count)[:, 0]"}, "{review}", "In the first column of the "
                          "(review, review) table every total is divided by the first review's count. Don't patch the "
                          "table: prevent it, by making the two shapes equal."),
        "padding-counted": M({COUNTED: "is_token.shape[1]"}, "{review}", "You divide by the number of positions. Padding "
                             "isn't part of the review: divide by the number of its tokens."),
        "padding-added": M({"opinions * is_token": "opinions"}, "{review}", "The numbers in the padding went into the "
                           "total. They mean nothing; multiply by the mask before you sum."),
        "mask-ignored": M({"total / count": "opinions.mean(dim=1)"}, "{review}", "That is the mean over all positions, "
                          "padding included, as if there were no mask: both the total and the count need it."),
        "zeros-left-out": M({COUNTED: "(opinions * is_token != 0).sum(dim=1)"}, "{review}", "A token with opinion 0 wasn't "
                            "counted. It's still a token: count with the mask, don't look for nonzero numbers."),
        "nonzero-counted": M({COUNTED: "(opinions != 0).sum(dim=1)"}, "{review}", "You count the opinions that aren't 0. An "
                             "opinion of 0 is a token too, and the padding can hold numbers: count with the mask."),
        "per-position": M({ADDED: "(opinions * is_token).sum(dim=0)", COUNTED: "is_token.sum(dim=0)"}, "you return {count} "
                          "numbers, one for each of the {positions} positions.", "The dimension that you name in sum "
                          "disappears. To keep the reviews, sum over the positions, dim=1."),
        "one-mean-for-all": M({ADDED: "(opinions * is_token).sum()", COUNTED: "is_token.sum()"}, "you return one number, "
                              "{only:.3f}, for {reviews} reviews.", "A sum or a mean without a dim, or an index with the "
                              "mask, throws all reviews together. Name the dimension that should disappear, so that each "
                              "review keeps a number of its own."),
        "not-divided": M({"total / count": "total"}, "{review}", "That is the total. The mean is the total divided by the "
                         "number of tokens."),
    },
    rules=(
        R(lambda case: case.inputs[1][:, 0].all() and gap(case) > 1e-4, "{review}", "Multiply its opinions by the mask, add "
          "them up, and divide by the number of its own tokens."),
        R(lambda case: gap(case) > 1e-4, "{review} Here the padding comes first.", "Don't count positions from the left: "
          "the mask says where the tokens are."),
    ),
    hints=(
        "Print the shapes of `total` and `count` just before they are divided.",
        "(3, 1) and (3,): write one below the other, aligned at the right. What does broadcasting make of them?",
        "Either both keep the summed dimension or neither does; the result should be (review,). Leave out keepdim=True.",
    ),
)

# ---------------------------------------------------------------- 0.2 a softmax that doesn't overflow

def stable_softmax(scores):
    exps = (scores - scores.max(dim=-1, keepdim=True).values).exp()     # the largest of each row is e to the 0
    return exps / exps.sum(dim=-1, keepdim=True)


def softmax_probes(generator: torch.Generator) -> list[tuple]:
    """Small scores; rows at very different levels, in a table, a square, a stack; one row; excluded classes; one score."""
    levels = torch.tensor([0.0, 300.0, -400.0, 1000.0])
    wide = torch.randn(2, 5, generator=generator)
    wide[:, 0], wide[:, 1] = -150.0, 150.0                                  # within one row
    excluded = torch.randn(2, 4, generator=generator)
    excluded[0, 1] = excluded[1, 0] = -torch.inf
    return [(torch.randn(4, 3, generator=generator),), (levels[:, None] + torch.randn(4, 3, generator=generator),),
            (levels.flip(0)[:, None] + torch.randn(4, 4, generator=generator),),
            (levels[:2, None, None] + torch.randn(2, 3, 4, generator=generator),), (torch.randn(5, generator=generator),),
            (wide,), (excluded,), (torch.tensor([[7.0]]),)]


WRITTEN_OUT = {"softmax", "log_softmax", "softmin", "logsumexp", "_softmax", "_log_softmax"}


class _Notes(TorchFunctionMode):
    """Notes the names of all PyTorch functions that are called, and how many columns one_hot makes."""

    def __init__(self):
        super().__init__()
        self.called, self.columns = set(), set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        self.called.add(name)
        result = function(*args, **(kwargs or {}))
        if name == "one_hot":
            self.columns.add(result.shape[-1])
        return result


def observe_softmax(function, scores):
    """The probabilities. Raises TypeError if the function calls one that does the exercise, or Python's max for a table."""
    try:
        with _Notes() as notes:
            output = function(scores)
    except RuntimeError as error:
        if "Boolean value of Tensor" in str(error) and _calls_python_max(error):
            raise TypeError("expected the maximum of each row, but Python's max compares whole rows. Take "
                            "scores.max(dim=-1, keepdim=True).values") from None
        if "must match the size of tensor" in str(error) and notes.called & {"max", "amax", "sum"}:
            raise TypeError("expected the maximum and the sum of each row to stay aligned with their row. Without "
                            "keepdim=True the dimension disappears, and (4,) under (4, 3) goes by columns") from None
        raise
    if notes.called & WRITTEN_OUT:
        name = sorted(notes.called & WRITTEN_OUT)[0].lstrip("_")
        raise TypeError(f"expected the steps written out, and your function calls {name}, which does the exercise for you. "
                        "Write it with max, exp and sum")
    return output


def _calls_python_max(error: Exception) -> bool:
    """Whether a function on the way to an error uses Python's own max."""
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(one.opname in ("LOAD_GLOBAL", "LOAD_NAME") and one.argval == "max"
               for code in codes for one in dis.get_instructions(code))


def _not_numbers(case: Case) -> str:
    level = case.inputs[0][case.inputs[0].isfinite()]
    return (f"{int((~case.answer.isfinite()).sum())} of your {case.answer.numel()} numbers are NaN or infinite, for scores "
            f"between {level.min():.0f} and {level.max():.0f}.")


def _furthest(case: Case) -> str:
    place = (case.answer - case.expected).abs().flatten().argmax()
    return f"one of your numbers is {case.answer.flatten()[place]:.3f}, expected {case.expected.flatten()[place]:.3f}."


def _excluded(case: Case) -> torch.Tensor:
    return case.answer[case.inputs[0] == -torch.inf]


MAXIMUM, SUM, RETURNED = ("scores.max(dim=-1, keepdim=True).values", "exps.sum(dim=-1, keepdim=True)",
                          "exps / exps.sum(dim=-1, keepdim=True)")
SUMS, RANGE = "your rows sum to {sums}.", "your numbers go from {range}."

SOFTMAX = ask(
    "0.2", stable_softmax, probes=softmax_probes, observe=observe_softmax,
    signature="stable_softmax(scores (..., class)) -> probabilities of the same shape; each row sums to one",
    not_finite={
        "inf": "e to the power of a score above 88.7 overflows. Subtract from each row its own maximum first: then its "
        "largest power is 1.",
        "-inf": "A power of e is never below 0. That's a score, or the logarithm of a power that was rounded to 0.",
        "NaN": "That's infinity divided by infinity, or 0 / 0 in a row whose powers are all rounded to 0. Subtract from "
        "each row its own maximum first: then its largest power is 1, and its sum at least 1."},
    numbers=dict(sums=lambda case: spread(case.answer.sum(dim=-1)), range=lambda case: spread(case.answer),
                 excluded=lambda case: _excluded(case).max()),
    mistakes={
        "no-shift": M({MAXIMUM: "0.0"}, _not_numbers, "e to the power of a large score overflows, and infinity divided by "
                      "infinity is NaN; if all scores are very negative, so is 0/0. Subtract the maximum of the row first."),
        "one-maximum": M({MAXIMUM: "scores.max()"}, _not_numbers, "You subtract one maximum, taken over the whole tensor. "
                         "Rows far below it are left with powers that are all rounded to 0. Each row needs its own "
                         "maximum."),
        "minimum": M({MAXIMUM: "scores.min(dim=-1, keepdim=True).values"}, _not_numbers, "You subtract the minimum of each "
                     "row, so the powers can still grow without limit. Subtract the maximum, and no power is above 1."),
        "mean-subtracted": M({MAXIMUM: "scores.mean(dim=-1, keepdim=True)"}, _not_numbers, "You subtract the mean of each "
                             "row, so a score far above the others still overflows. Subtract the maximum, and no power is "
                             "above 1."),
        "divided-by-maximum": M(lambda scores: stable_softmax(scores / scores.max(dim=-1, keepdim=True).values), _furthest,
                                "You divide by the maximum. Only *differences* of scores count, so a shift changes nothing "
                                "and a division does: subtract."),
        "one-sum": M({SUM: "exps.sum()"}, SUMS, "You divide by the sum of the whole tensor. Each row has to be divided by "
                     "its own sum."),
        "over-rows": M({MAXIMUM: "scores.max(dim=0, keepdim=True).values", SUM: "exps.sum(dim=0, keepdim=True)"}, SUMS,
                       "The sum and the maximum run over dim=0, down the columns. The classes of one token are in the last "
                       "dimension: dim=-1."),
        "not-divided": M({RETURNED: "exps"}, SUMS, "These are the powers of e. Divide each by the sum of its row to get "
                         "probabilities."),
        "logarithms": M({RETURNED: f"({RETURNED}).log()"}, RANGE, "These are logarithms of probabilities, which are never "
                        "above 0. Return the probabilities themselves."),
        "no-exponential": M({RETURNED: "scores / scores.sum(dim=-1, keepdim=True)"}, RANGE, "You divide the scores by their "
                            "sum. Scores may be negative, and their sum 0: take e to the power of each first."),
    },
    rules=(
        R(lambda case: (case.answer < -1e-6).any(), RANGE, "A probability is between 0 and 1; a power of e is positive."),
        R(lambda case: (case.answer.sum(dim=-1) - 1).abs().max() > 1e-3, SUMS, "The probabilities of each row, along the "
          "last dimension, sum to one."),
        R(lambda case: (_excluded(case) > 0).any(), "a class with a score of minus infinity gets a probability of "
          "{excluded:.3f}.", "e to the power of minus infinity is exactly 0."),
        R(lambda case: gap(case) > 1e-4, _furthest, "The rows sum to one, but they aren't e to the power of the scores, "
          "divided by their sum."),
    ),
    hints=(
        "First write it for a table as if overflow didn't exist: exp, then divide by the sums. Print the shape of the sums.",
        "max and sum both take dim=-1 and keepdim=True. With a dim, max returns two things; `.values` is the first.",
        "exps = (scores - scores.max(dim=-1, keepdim=True).values).exp(), and then divide by its sums.",
    ),
)

# ---------------------------------------------------------------- 0.3 cross-entropy

def cross_entropy(scores, true_class):
    shifted = scores - scores.max(dim=-1, keepdim=True).values              # (token, class)
    log_p = shifted - shifted.exp().sum(dim=-1, keepdim=True).log()         # logarithms from the start: no ln 0
    return -log_p[range(len(scores)), true_class].mean()


def loss_probes(generator: torch.Generator) -> list[tuple]:
    """Five tokens; a square table; one token; two classes; confidently wrong by 200 and by 1,000; scores far from zero."""
    def drawn(tokens: int, classes: int, size: float = 2.0, level: float = 0.0) -> tuple:
        true_class = torch.randint(classes, (tokens,), generator=generator)
        true_class[0] = (torch.arange(classes)[-1] + true_class[-1]) % classes          # not the same one for all
        return level + size * torch.randn(tokens, classes, generator=generator), true_class

    hopeless = torch.tensor([[0.0, 0.0, 200.0], [1.0, 2.0, 0.5]]), torch.tensor([0, 1])
    worse = torch.tensor([[-500.0, 500.0], [0.0, 0.3], [0.2, 0.1]]), torch.tensor([0, 1, 0])
    return [drawn(5, 3), drawn(4, 4), drawn(1, 4), drawn(6, 2, level=300.0), hopeless, worse]


def _gap_to_true(case: Case) -> float:
    """How far the true class of some token is below the best one, in scores: the largest such gap."""
    scores, true_class = case.inputs
    return (scores.max(dim=-1).values - scores[range(len(scores)), true_class]).max().item()


def observe_loss(function, scores, true_class):
    """The loss. Raises TypeError that names an index made for the notebook's four tokens."""
    try:
        return function(scores, true_class)
    except IndexError as error:
        if "could not be broadcast" not in str(error):
            raise
        raise TypeError(f"expected one index for each of {_one(len(scores), 'token')}, and the two lists of indices have "
                        "different lengths. range(4) fits the notebook's four words alone: range(len(scores))") from None


PICKED = "log_p[range(len(scores)), true_class]"
MEAN_LOSS = f"-{PICKED}.mean()"
LOSS_IS = "for {tokens} and {classes} classes your loss is {answer:.3f}, expected {expected:.3f}."

LOSS = ask(
    "0.3", cross_entropy, probes=loss_probes, observe=observe_loss,
    forbidden=("torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss"),
    signature="cross_entropy(scores (token, class), true_class (token,), whole numbers) -> one number, the mean loss",
    not_finite={
        "inf": "A probability too small for float32 is rounded to 0, and ln 0 is minus infinity; or e to the power of a "
        "score overflows. Don't take the logarithm of a probability: ln p is the score minus the logarithm of the sum of "
        "the powers of e, each score with the maximum of its row subtracted.",
        "-inf": "That's the logarithm of 0: a probability, or the sum of a row's powers of e, was rounded to 0. Subtract "
        "from each row its own maximum first, and compute ln p as the score minus the logarithm of that sum.",
        "NaN": "That's infinity divided by infinity, or 0 / 0 in a row whose powers are all rounded to 0. Subtract from "
        "each row its own maximum first."},
    numbers=dict(tokens=lambda case: _one(len(case.inputs[0]), "token"), classes=lambda case: case.inputs[0].shape[1],
                 gap=_gap_to_true),
    mistakes={
        "log-of-zero": M({PICKED: "scores.softmax(dim=-1)[range(len(scores)), true_class].log()"}, "your loss is "
                         "{answer:.3f} where a wrong class scores {gap:.0f} higher than the true one.", "Its probability "
                         "was rounded to 0 before you took the logarithm. Compute ln p in one go, as section 4 does: with "
                         "the row's maximum subtracted, the score minus the logarithm of the sum of the powers."),
        "one-maximum": M({"scores.max(dim=-1, keepdim=True).values": "scores.max()"}, "your loss is {answer:.3f} where rows "
                         "are at very different levels.", "You subtract one maximum, taken over the whole table. In a row "
                         "far below it all powers are rounded to 0, and so is their sum. Each row needs its own maximum."),
        "columns-picked": M({PICKED: "log_p[:, true_class]"}, LOSS_IS, "table[:, true_class] picks the columns of *all* "
                            "true classes for *every* token, which makes (token, token). You need one number from each row: "
                            "table[range(n), true_class]."),
        "sum": M({MEAN_LOSS: f"-{PICKED}.sum()"}, LOSS_IS, "That is the sum over the tokens. The loss is their mean, so "
                 "that it doesn't grow with their number."),
        "no-logarithm": M({PICKED: f"{PICKED}.exp()"}, LOSS_IS, "That is minus the mean probability of the true class. Take "
                          "the logarithm of each one first."),
        "sign": M({MEAN_LOSS: f"{PICKED}.mean()"}, LOSS_IS, "The logarithm of a probability is never above 0, and this loss "
                  "is never below 0: the minus is missing."),
        "softmax-twice": M(lambda scores, true_class: cross_entropy(scores.softmax(dim=-1), true_class), LOSS_IS, "The "
                           "softmax was applied twice: probabilities went in where scores belong. So the loss can never get "
                           "close to 0."),
        "all-classes": M({PICKED: "log_p"}, LOSS_IS, "You average over all classes. Cross-entropy looks only at the "
                         "probability of the true class."),
        "log-of-the-mean": M({MEAN_LOSS: f"-{PICKED}.exp().mean().log()"}, LOSS_IS, "You average the probabilities and then "
                             "take the logarithm. Take the logarithm for each token, then the mean; the two differ."),
        "base-two": M({MEAN_LOSS: f"-{PICKED}.mean() / torch.tensor(2.0).log()"}, LOSS_IS, "That is a logarithm with base "
                      "2, which gives the loss in bits. Here, and in PyTorch, it is the natural logarithm, ln.",
                      convention=True),
        "scores-as-logarithms": M({PICKED: "scores[range(len(scores)), true_class]"}, LOSS_IS, "You took the scores for "
                                  "logarithms of probabilities. The logarithm of the sum of all powers still has to be "
                                  "subtracted."),
        "over-tokens": M({PICKED: "scores.log_softmax(dim=0)[range(len(scores)), true_class]"}, LOSS_IS, "The softmax runs "
                         "over the tokens (dim=0). One token's probabilities sum to one: dim=-1."),
        "most-likely": M({PICKED: "log_p.max(dim=-1).values"}, LOSS_IS, "You took the probability of the class that the "
                         "model prefers. The loss depends on the *true* class."),
        "per-class-too": M({MEAN_LOSS: f"-{PICKED}.sum() / scores.numel()"}, LOSS_IS, "You divide by the number of entries "
                           "in the table. Each token gives one number: divide by the number of tokens."),
    },
    rules=(
        R(lambda case: _gap_to_true(case) < 100 and gap(case) > 1e-4, LOSS_IS, "For each token: the logarithm of the sum of "
          "e to the power of its scores, minus the score of its true class. Then the mean."),
        R(lambda case: _gap_to_true(case) > 100 and case.answer < case.expected - 1, "where a wrong class scores {gap:.0f} "
          "higher than the true one your loss is {answer:.3f}, expected {expected:.3f}.", "A small number added to the "
          "probability, or a clamp, sets an upper limit that the loss doesn't have. Compute ln p without computing p."),
        R(lambda case: gap(case) > 1e-4, LOSS_IS, "Ordinary scores come out right; these are far apart. Subtract the "
          "maximum of each row before you take powers."),
    ),
    hints=(
        "For one token: loss = −z_c + ln Σ e^z. Try it on the scores (2, 1, 0) of 'dull', true class 0: 0.408.",
        "scores[range(len(scores)), true_class] gives the score of the true class of each token.",
        "Subtract the maximum of each row from the scores first; then the sum of the powers is between 1 and the number of "
        "classes, and its logarithm is safe.",
    ),
)

# ---------------------------------------------------------------- 0.4 one step

def gradient_step(W, x, true_class, learning_rate):
    p = (x @ W).softmax(dim=-1)                                             # (token, class)
    y = F.one_hot(true_class, num_classes=W.shape[1])                       # (token, class)
    G = x.T @ (p - y) / len(x)                                              # (feature, class)
    return W - learning_rate * G


def step_probes(generator: torch.Generator) -> list[tuple]:
    """Five tokens with three features and four classes; a square; W = 0, as in section 5; one token; a large step."""
    def drawn(tokens: int, features: int, classes: int, rate: float, size: float = 1.0) -> tuple:
        return (size * torch.randn(features, classes, generator=generator),
                torch.randn(tokens, features, generator=generator),
                torch.randint(classes, (tokens,), generator=generator), rate)

    return [drawn(5, 3, 4, 0.5), drawn(3, 3, 3, 2.0), drawn(4, 2, 3, 1.5, size=0.0), drawn(1, 4, 2, 0.1),
            drawn(6, 2, 5, 30.0)]


def _loss_of(W: torch.Tensor, case: Case) -> float:
    return F.cross_entropy(case.inputs[1].double() @ W.double(), case.inputs[2]).item()


def _lowered(case: Case) -> float:
    """The loss after the right step. LookupError if the step is a large one, or doesn't lower the loss: such a case would
    speak against the right answer."""
    before, after = _loss_of(case.inputs[0], case), _loss_of(case.expected, case)
    if case.inputs[3] > 2 or after >= before:
        raise LookupError("the right step is too large here: speak of another case")
    return after


def _first(case: Case) -> str:
    """Where the new weights are furthest off: the weight before, the learner's, and the right one."""
    place = (case.answer - case.expected).abs().flatten().argmax()
    return (f"a weight of {case.inputs[0].flatten()[place]:.3f} becomes {case.answer.flatten()[place]:.3f}, expected "
            f"{case.expected.flatten()[place]:.3f}.")


def _twice(W, x, true_class, learning_rate):
    W = W.clone().requires_grad_()
    loss = F.cross_entropy((x @ W).softmax(dim=-1), true_class)
    return (W - learning_rate * torch.autograd.grad(loss, W)[0]).detach()


NEW, GRADIENT = "W - learning_rate * G", "x.T @ (p - y) / len(x)"
LOSSES = ("with learning rate {inputs[3]:g} your step takes the loss from {before:.3f} to {after:.3f}; the right one takes "
          "it to {right_after:.3f}.")


def observe_step(answer, W, x, true_class, learning_rate):
    """The new W. Raises TypeError if the step leaves its mark on W, or can't be taken again: from W, or from its result."""
    def step(table):
        return answer(table, x, true_class, learning_rate)

    before = W.clone()
    columns = (f"expected a column for each of the {W.shape[1]} classes from one_hot. By itself it makes as many as the "
               "largest class that it meets needs, and num_classes=3 fits the notebook's words alone: "
               "num_classes=W.shape[1]")
    try:
        with _Notes() as notes:
            output = step(W)
    except RuntimeError as error:
        if "one_hot" in notes.called and re.search("num_classes|must match the size of tensor", str(error)):
            raise TypeError(columns) from None
        raise
    if notes.columns - {W.shape[1]}:
        raise TypeError(columns)
    new = _table(output, W)
    if new is None or not torch.equal(W, before):        # a result in another form, a changed input: said as of any exercise
        return output
    if W.requires_grad or W.grad is not None:
        raise TypeError("expected to find W as it was, but afterwards its requires_grad is "
                        f"{W.requires_grad} and its .grad is {'not empty' if W.grad is not None else 'empty'}. W belongs to "
                        f"the code that calls your function, and {COPY}")
    if not _same(step(W), new, W):
        raise TypeError(f"expected the same table from a second call with the same W, got another one. {KEPT_GRADIENT}")
    try:
        second = step(new)
    except Exception as error:
        raise TypeError("expected a table from which the next step can start, and from yours that step ends in "
                        f"{type(error).__name__} ({str(error).partition(chr(10))[0][:80]}). What you return still hangs on "
                        "the record of your computation: return it with .detach(), or compute it under "
                        "torch.no_grad()") from None
    if isinstance(output, torch.Tensor) and output.grad_fn is not None:
        raise TypeError("expected a table from which the next step can start. Yours "
                        "still hangs on the record of your computation: after its own backward() its .grad would be None. "
                        "Return it with .detach(), or compute it under torch.no_grad()")
    if not _same(step(new.detach().clone()), _table(second, W), W):
        raise TypeError(f"expected the next step from your own result to be the one from a copy of it, and it's another. "
                        f"{KEPT_GRADIENT}")
    return output


COPY = "autograd needs a copy: W = W.detach().clone().requires_grad_()"
KEPT_GRADIENT = f"Does .grad still hold an earlier gradient? backward() adds to it; {COPY}"


def _table(output, W: torch.Tensor) -> torch.Tensor | None:
    """A result as a table like W, however it comes; None if it isn't one."""
    try:
        table = output if isinstance(output, torch.Tensor) else one_tensor(output, "the new W").to(W.dtype)
    except (TypeError, ValueError):
        return None
    return table if table.shape == W.shape else None


def _same(output, table: torch.Tensor | None, W: torch.Tensor) -> bool:
    again = _table(output, W)
    return again is not None and table is not None and torch.allclose(again, table, 1e-4, 1e-5, equal_nan=True)


STEP = ask(
    "0.4", gradient_step, probes=step_probes, observe=observe_step,
    signature="gradient_step(W (feature, class), x (token, feature), true_class (token,), learning_rate) -> new W (feature, "
    "class)",
    numbers=dict(before=lambda case: _loss_of(case.inputs[0], case), after=lambda case: _loss_of(case.answer, case),
                 right_after=_lowered),
    mistakes={
        "uphill": M({NEW: "W + learning_rate * G"}, LOSSES, "You add the gradient, or have y − p for p − y. The gradient "
                    "points where the loss grows; go the other way."),
        "gradient-only": M({NEW: "G"}, _first, "That is the gradient itself. Multiply it by the learning rate and subtract "
                           "it from W."),
        "step-only": M({NEW: "-learning_rate * G"}, _first, "That is the step, minus learning rate times gradient. It must "
                       "still be added to W."),
        "no-learning-rate": M({NEW: "W - G"}, _first, "The learning rate has no effect: you subtract the whole gradient."),
        "sum": M({GRADIENT: "x.T @ (p - y)"}, _first, "The gradients of the tokens were summed. The loss is a mean over the "
                 "tokens, and so is its gradient: divide by their number."),
        "mean-over-classes": M({GRADIENT: f"{GRADIENT} / W.shape[1]"}, LOSSES, "The gradient was divided by the number of "
                               "classes as well, as .mean() over the whole table does. The loss is a mean over the tokens "
                               "alone."),
        "divided-by-features": M({"len(x)": "x.shape[1]"}, _first, "You divide by x.shape[1], the number of features. The "
                                 "loss is a mean over the tokens, x.shape[0]."),
        "divided-by-four": M({"len(x)": "4"}, _first, "You divide by 4, which is the number of our four words. Other inputs "
                             "have other numbers of tokens: len(x)."),
        "no-truth": M({"p - y": "p"}, LOSSES, "You use p where p − y belongs, so the true classes have no effect on "
                      "the step."),
        "no-softmax": M({"(x @ W).softmax(dim=-1)": "x @ W"}, LOSSES, "You subtract the truth from the scores. The error is "
                        "probability minus truth: softmax the scores first."),
        "over-tokens": M({"dim=-1": "dim=0"}, LOSSES, "The softmax runs over the tokens (dim=0). Each token's probabilities "
                         "sum to one over the classes: dim=-1."),
        "at-zero": M({"x @ W": "0 * x @ W"}, LOSSES, "Your gradient is the one at W = 0, as on paper, where all "
                     "probabilities are equal. Compute the probabilities from the W you are given."),
        "from-zero": M({"x @ W": "0 * x @ W", NEW: "-learning_rate * G"}, _first, "You start from W = 0, as on paper. Start "
                       "from the W you are given, for the probabilities and for the step."),
        "softmax-twice": M(_twice, LOSSES, "The softmax was applied twice: F.cross_entropy takes scores and applies its "
                           "own. The gradient that is left is far too small."),
        "not-cleared": M({NEW: "W - 2 * learning_rate * G"}, _first, "Your step is twice as long as it should be: as if "
                         "backward() had been called twice without clearing .grad."),
    },
    rules=(
        R(lambda case: _loss_of(case.answer, case) > _loss_of(case.inputs[0], case) > _loss_of(case.expected, case), LOSSES,
          "A step against the gradient lowers this loss. Print p − y: for the true class it's negative, so that the weights "
          "for it grow where the feature is positive."),
        R(lambda case: gap(case) > 1e-4, _first, "new W = W − learning rate · xᵀ(p − y) / number of tokens, with p the "
          "softmax of x @ W."),
    ),
    hints=(
        "Either write out the formula of section 5, or let autograd do it on W.detach().clone() and return the new table "
        "with .detach(); both are right.",
        "p = (x @ W).softmax(dim=-1), and y = F.one_hot(true_class, num_classes=W.shape[1]).",
        "G = x.T @ (p - y) / len(x); what you return is W - learning_rate * G.",
    ),
)

# ---------------------------------------------------------------- 0.5 what shape?

def shapes(b, n, f):
    A = (b, f)                          # a single position disappears
    B = (b, n)                          # so does the dimension that mean names
    C = (b, f, n)                       # two dimensions change places
    D = (b * n, f)                      # b * n * f numbers in rows of f
    E = (b, n, n)                       # (n, f) @ (f, n), for each of the b sentences: f meets f and disappears
    return A, B, C, D, E


CODE = {"A": "t[:, 0]", "B": "t.mean(dim=-1)", "C": "t.transpose(1, 2)", "D": "t.reshape(-1, f)",
        "E": "t @ t.transpose(1, 2)"}
WHY = {
    "A": "A colon keeps a dimension as it is, and a single number removes the dimension in whose place it stands.",
    "B": "The dimension that mean names disappears, and dim=-1 is the last one.",
    "C": "transpose(1, 2) exchanges these two dimensions, counted from 0, and leaves the others where they are.",
    "D": "The rows are f long. How many are there, if every number of t has to be in one of them?",
    "E": "The product works on the last two dimensions: (n, f) @ (f, n). Which two sizes meet, and disappear?",
}


def observe_shapes(function, b, n, f):
    """The shapes as texts, by line: {"A": "(2, 3)", …}. Raises TypeError for anything but five shapes."""
    output = function(b, n, f)
    if output is None:
        return None
    given = list(output.values()) if isinstance(output, dict) else output
    if not isinstance(given, (list, tuple)) or len(given) != len(CODE):
        got = f"{len(given)} of them" if isinstance(given, (list, tuple)) else what(given)
        raise TypeError(f"expected five shapes, A, B, C, D, E, got {got}. End with `return A, B, C, D, E`")
    return {line: _shape(line, one) for line, one in zip(CODE, given)}


def _shape(line: str, given) -> str:
    sizes = given if isinstance(given, (list, tuple)) else [given]
    if not all(isinstance(size, int) for size in sizes):
        raise TypeError(f"expected a shape such as (n, f) for {line}, got {what(given)}")
    return str(tuple(sizes))


def _line(line: str):
    """What a message says of one of the five lines."""
    def seen(case: Case) -> str:
        b, n, f = case.inputs
        return f"{line}, {CODE[line]}, for b = {b}, n = {n} and f = {f}: you say {case.got[line]}."
    return seen


SHAPES = ask(
    "0.5", shapes, probes=lambda generator: [(2, 4, 3), (5, 3, 2), (1, 6, 4)], observe=observe_shapes,
    signature="shapes(b, n, f) -> A, B, C, D, E, five shapes",
    mistakes={
        "index-kept": M({"A = (b, f)": "A = (b, 1, f)"}, _line("A"), "A slice, 0:1, would keep the dimension with size 1. A "
                        "single number removes it."),
        "first-dimension": M({"A = (b, f)": "A = (n, f)"}, _line("A"), "That's t[0], the whole first sentence. Here the "
                             "colon keeps all sentences, and 0 picks the first word of each."),
        "mean-kept": M({"B = (b, n)": "B = (b, n, 1)"}, _line("B"), "The size 1 stays only with "
                       "keepdim=True. Otherwise the dimension that you name is gone."),
        "what-is-named-stays": M({"B = (b, n)": "B = (f,)"}, _line("B"), "It's the other way round: the dimension that you "
                                 "name disappears, and the others stay."),
        "all-turned-round": M({"C = (b, f, n)": "C = (f, n, b)"}, _line("C"), "That turns all three dimensions round. This "
                              "line exchanges 1 and 2, counted from 0; the sentences stay first."),
        "first-two": M({"C = (b, f, n)": "C = (n, b, f)"}, _line("C"), "You exchange the first two. Dimensions are counted "
                       "from 0, so 1 and 2 are the last two."),
        "minus-one-alone": M({"D = (b * n, f)": "D = (n, f)"}, _line("D"), "That's fewer numbers than t has, and reshape "
                             "drops none. -1 stands for whatever size is left over."),
        "minus-one-kept": M({"D = (b * n, f)": "D = (-1, f)"}, _line("D"), "-1 isn't a size: PyTorch replaces it by the one "
                            "that makes the count of numbers come out right. Which is that?"),
        "element-by-element": M({"E = (b, n, n)": "E = (b, n, f)"}, _line("E"), "That would be a product number by number. "
                                "In a matrix product the two sizes that meet disappear."),
        "the-wrong-pair": M({"E = (b, n, n)": "E = (b, f, f)"}, _line("E"), "That would be t.transpose(1, 2) @ t. Here the "
                            "last dimension of the first factor, f, meets the f of the second, and the others stay."),
    },
    rules=tuple(R(lambda case, line=line: case.got[line] != case.right[line], _line(line), WHY[line]) for line in CODE),
    hints=(
        "Write the three dimensions of t below each line and cross out those that disappear.",
        "A and B have two sizes, C and E three. D has two, and their product is b · n · f.",
        "In E the words meet the words: every word of a sentence gets one number for every word of it.",
    ),
)

# ---------------------------------------------------------------- 0.6 a first module

class WordClassifier(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.W = nn.Parameter(torch.zeros(num_features, num_classes))       # (feature, class)

    def forward(self, x):                                                   # (token, feature) -> (token, class)
        return x @ self.W


def classifier_probes(generator: torch.Generator) -> list[tuple]:
    """(num_features, num_classes, x): three features and four classes; two and three; one token."""
    return [(features, classes, torch.randn(tokens, features, generator=generator))
            for tokens, features, classes in ((5, 3, 4), (4, 2, 3), (1, 4, 2))]


def observe_classifier(answer, num_features, num_classes, x):
    """How many numbers are trained and saved, W's shape, the scores at the start and with weights filled in, and how many
    numbers a gradient reaches."""
    try:
        model = answer(num_features=num_features, num_classes=num_classes)
    except TypeError as error:
        if "unexpected keyword argument 'num_" not in str(error):
            raise
        raise TypeError("expected __init__(self, num_features, num_classes), with these names, since the notebook writes "
                        "WordClassifier(num_features=3, num_classes=3)") from None
    except AttributeError as error:
        if "before Module.__init__() call" not in str(error):
            raise
        raise TypeError("expected `super().__init__()` as the first line of __init__: it prepares the place where the "
                        "module keeps its parameters, and you assign one before") from None
    if not isinstance(model, nn.Module):
        return no_module(model)
    W = torch.randn(num_features, num_classes, generator=torch.Generator().manual_seed(1))
    first = _scores(model, x)
    parameters = list(model.parameters())
    if [p.shape for p in parameters] == [W.shape] and getattr(model, "W", None) is not parameters[0]:
        name = next(iter(model.named_parameters()))[0]
        raise TypeError(f"expected your table of weights as self.W, since the notebook reads model.W later, got self.{name}")
    held = [*parameters, *model.buffers(), *(value for value in vars(model).values() if isinstance(value, torch.Tensor))]
    with torch.no_grad():
        for table in held:                              # also what PyTorch doesn't see, to look at forward by itself
            if table.shape in (W.shape, W.mT.shape):
                table.copy_(W if table.shape == W.shape else W.mT)
    scores = _scores(model, x)
    if scores.requires_grad and scores.shape == (len(x), num_classes):
        F.cross_entropy(scores, torch.arange(len(x)) % num_classes).backward()
    return {"parameters": sum(p.numel() for p in parameters), "saved": sum(t.numel() for t in model.state_dict().values()),
            "shape": ", ".join(str(tuple(p.shape)) for p in parameters), "first scores": first.detach(),
            "scores": scores.detach(), "trained": sum(p.numel() for p in parameters if p.grad is not None)}


def _scores(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    try:
        scores = model(x)
    except RuntimeError as error:
        if "must match the size of tensor" not in str(error):
            raise
        raise TypeError("expected a matrix product from forward, x @ self.W (section 2). Your sizes don't fit: the operator "
                        "* multiplies number by number") from None
    if not isinstance(scores, torch.Tensor):
        raise TypeError(f"expected a tensor from forward, got {type(scores).__name__}. Its last line must be `return …`")
    return scores


def _classifier(table, forward=lambda x, W: x @ W):
    """A classifier whose W is table(num_features, num_classes), and whose scores are forward(x, W)."""
    class Classifier(nn.Module):
        def __init__(self, num_features, num_classes):
            super().__init__()
            self.W = table(num_features, num_classes)

        def forward(self, x):
            return forward(x, self.W)

    return Classifier


class _Buffer(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.register_buffer("W", torch.zeros(num_features, num_classes))

    def forward(self, x):
        return x @ self.W


class _MadeInForward(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.sizes = num_features, num_classes

    def forward(self, x):
        return x @ nn.Parameter(torch.zeros(*self.sizes))


class _Linear(nn.Module):
    def __init__(self, num_features, num_classes):
        super().__init__()
        self.linear = nn.Linear(num_features, num_classes)

    def forward(self, x):
        return self.linear(x)


def _zeros(features: int, classes: int) -> nn.Parameter:
    return nn.Parameter(torch.zeros(features, classes))


FOUND = "model.parameters() finds {parameters:.0f} numbers, expected {expected_parameters:.0f}."

MODULE = ask(
    "0.6", WordClassifier, probes=classifier_probes, observe=observe_classifier,
    signature="WordClassifier(num_features, num_classes) -> a module that maps x (token, feature) to scores (token, class)",
    numbers=dict(parameters=lambda case: case.parameters, expected_parameters=lambda case: case.right["parameters"],
                 start=lambda case: spread(case.got["first scores"]), scores=lambda case: spread(case.scores),
                 rows=lambda case: spread(case.scores.sum(dim=-1)), off=lambda case: gap(case, "scores"),
                 expected_trained=lambda case: case.right["trained"]),
    mistakes={
        "plain-tensor": M(_classifier(torch.zeros), FOUND, "PyTorch doesn't count a plain tensor as a weight, even with "
                          "requires_grad=True, so no optimizer would train it. Wrap it in nn.Parameter."),
        "buffer": M(_Buffer, FOUND, "A buffer is saved with the module and never trained. A weight is an nn.Parameter."),
        "made-in-forward": M(_MadeInForward, FOUND, "W is made anew each time forward runs, so whatever it learns is lost. "
                             "Make it once, in __init__, and keep it as self.W."),
        "random-start": M(_classifier(lambda f, k: nn.Parameter(torch.randn(f, k))), "your first scores are {start}, "
                          "expected 0.", "Here W begins as zeros, so that the first loss is the one you know from paper."),
        "linear": M(_Linear, FOUND, "nn.Linear also has a bias, and begins with random numbers. This time make W yourself: "
                    "an nn.Parameter of zeros."),
        "softmax-inside": M(_classifier(_zeros, lambda x, W: (x @ W).softmax(dim=-1)), "your scores sum to {rows} in each "
                            "row.", "Those are probabilities. F.cross_entropy takes scores and applies its own softmax: "
                            "return x @ W."),
        "log-softmax-inside": M(_classifier(_zeros, lambda x, W: (x @ W).log_softmax(dim=-1)), "your scores go from "
                                "{scores}, none above 0.", "Those are logarithms of probabilities. F.cross_entropy "
                                "computes them itself: return x @ W."),
        "cut-off": M(_classifier(_zeros, lambda x, W: x @ W.detach()), "a gradient reaches {trained:.0f} of "
                     "{expected_trained:.0f} weights.", "detach(), .data, no_grad() or requires_grad=False cuts it off, so "
                     "W can't be trained."),
        "as-linear-stores-it": M(_classifier(lambda f, k: _zeros(k, f), lambda x, W: x @ W.T), "your W has the shape "
                                 "{shape}, and your scores are right.", "nn.Linear stores it like that, (class, feature). "
                                 "In this notebook it's (feature, class).", convention=True),
    },
    rules=(
        R(lambda case: case.parameters != case.right["parameters"], FOUND, "There's one table of weights, (feature, class), "
          "and no bias: an nn.Parameter made in __init__."),
        R(lambda case: gap(case, "first scores") > 1e-6, "your first scores are {start}, expected 0.", "Does W begin "
          "as zeros, and does forward return x @ W and nothing else?"),
        R(lambda case: gap(case, "scores") > 1e-4, "with weights filled in your scores are off by up to {off:.3f}.",
          "forward returns x @ W and does nothing else."),
        R(lambda case: case.trained != case.right["trained"], "a gradient reaches {trained:.0f} of {expected_trained:.0f} "
          "weights.", "Something between W and the scores cuts it off: detach(), .data, no_grad(), NumPy."),
        R(lambda case: case.saved != case.right["saved"], "state_dict() has {saved:.0f} numbers, expected "
          "{expected_parameters:.0f}.", "W is all that a saved file has to hold."),
    ),
    hints=(
        "It has the form of FeatureScale: super().__init__(), one nn.Parameter in __init__, one line in forward.",
        "The parameter is a table of zeros, (feature, class): torch.zeros(num_features, num_classes).",
        "self.W = nn.Parameter(torch.zeros(num_features, num_classes)), and forward returns x @ self.W.",
    ),
)

# ---------------------------------------------------------------- 0.7 the first attention weights

def first_attention(x):
    scores = x @ x.T                                    # (token, token): every word compared with every word
    weights = scores.softmax(dim=-1)                    # (token, token): each row sums to one
    mixed = weights @ x                                 # (token, feature): a weighted mean for every word
    return mixed, weights


def attention_probes(generator: torch.Generator) -> list[tuple]:
    """Five words with three features, four with two, three with six, one word; then large scores, where exp overflows."""
    large = torch.tensor([[12.0, 1.0], [11.0, -2.0], [0.1, 0.2], [-12.0, 0.5]])
    return [*((torch.randn(*sizes, generator=generator),) for sizes in ((5, 3), (4, 2), (3, 6), (1, 4))), (large,)]


def observe_attention(function, x):
    """The mixed vectors and the weights."""
    output = function(x)
    if output is None:
        return None
    mixed, weights = two_results(output, "mixed", "weights")
    square = (len(x), len(x))
    if x.shape != square and (mixed.shape, weights.shape) == (square, x.shape):
        raise TypeError("expected mixed first and weights second, got them in the wrong order: return mixed, weights")
    return {"mixed": mixed, "weights": weights}


def _own_left_out(x):
    scores = (x @ x.T).masked_fill(torch.eye(len(x), dtype=torch.bool), -torch.inf)
    weights = scores.softmax(dim=-1).nan_to_num()
    return weights @ x, weights


def _worst(case: Case) -> str:
    """The weight that is furthest off, and the right one."""
    right = case.right["weights"]
    i, j = divmod(int((case.weights - right).abs().argmax()), len(right))
    return (f"word {i} gives {'itself' if i == j else f'word {j}'} a weight of {case.weights[i, j]:.3f}, expected "
            f"{right[i, j]:.3f}.")


ROWS, COLUMNS = "your rows sum to {rows}.", "your rows sum to {rows}, and your columns to {columns}."

FIRST = ask(
    "0.7", first_attention, probes=attention_probes, observe=observe_attention,
    signature="first_attention(x (token, feature)) -> mixed (token, feature), weights (token, token)",
    follows={"mixed": lambda case: case.weights @ case.inputs[0].double()},
    not_finite=dict.fromkeys(("NaN", "inf"), "A score above 88.7 makes e to its power overflow, and one maximum for the "
                             "whole table leaves rows far below it with powers rounded to 0. Subtract each row's own "
                             "maximum, as in exercise 0.2."),
    numbers=dict(rows=lambda case: spread(case.weights.sum(dim=-1)), columns=lambda case: spread(case.weights.sum(dim=0)),
                 range=lambda case: spread(case.weights), off=lambda case: gap(case, "mixed"),
                 largest=lambda case: case.weights.max()),
    mistakes={
        "over-queries": M({"dim=-1": "dim=0"}, COLUMNS, "It's the other way round: each row belongs to one word and has to "
                          "sum to one. Softmax over the last dimension; sums that you divide by need keepdim=True."),
        "no-softmax": M({"scores.softmax(dim=-1)": "scores"}, ROWS, "Those are scores. Softmax makes weights of them, row "
                        "by row."),
        "no-exponential": M({"scores.softmax(dim=-1)": "scores / scores.sum(dim=-1, keepdim=True)"}, "your weights go from "
                            "{range}.", "Scores can be negative, and dividing by their sum leaves them so. Softmax takes e "
                            "to the power of each first."),
        "not-divided": M({"scores.softmax(dim=-1)": "scores.exp()"}, ROWS, "Those are powers of e. Each row still has to be "
                         "divided by its sum."),
        "transposed": M({"weights @ x": "weights.T @ x"}, "the weights are right, and your mixed vectors are off by up to "
                        "{off:.3f}.", "Row i of the weights makes the new vector of word i. In weights.T @ x the columns do "
                        "that, and they don't sum to one."),
        "added": M({"weights @ x": "x + weights @ x"}, "the weights are right, and your mixed vectors are off by up to "
                   "{off:.3f}.", "You add the mixture to x. Here the new vector is the mixture alone."),
        "not-mixed": M({"weights @ x": "x"}, "the weights are right, and your mixed vectors are off by up to {off:.3f}.",
                       "That is x as it came. A new vector is a mean of all rows of x, with a row of weights."),
        "own-left-out": M(_own_left_out, _worst, "A word is compared with itself as well as with the others: leave the "
                          "diagonal as it is."),
        "hard": M({"scores.softmax(dim=-1)": "F.one_hot(scores.argmax(dim=-1), num_classes=len(x)).float()"}, "your largest "
                  "weight is {largest:.3f}.", "You take the best match alone. Softmax gives every word a part, the best the "
                  "largest."),
        "scaled": M({"x @ x.T": "x @ x.T / x.shape[1] ** 0.5"}, _worst, "You divide the scores by the square root of "
                    "the number of features. Notebook 04 does that too, and says why; here the scores stay as they are.",
                    convention=True),
        "normalized": M({"x @ x.T": "F.normalize(x, dim=-1) @ F.normalize(x, dim=-1).T"}, _worst, "You compare "
                        "directions alone, since each row was divided by its length. Here a score is the plain "
                        "sum of products, x @ x.T.", convention=True),
    },
    rules=(
        R(lambda case: (case.weights.sum(dim=-1) - 1).abs().max() > 1e-3, ROWS, "Each row of weights sums to one: softmax "
          "over the last dimension."),
        R(lambda case: gap(case, "weights") > 1e-4, _worst, "A score is the sum of products of two rows of x: row i of "
          "x @ x.T has the scores of word i with all words."),
        R(lambda case: gap(case, "mixed") > 1e-4, "the weights are right, your mixed vectors are off by up to {off:.3f}.",
          "The new vectors are weights @ x, as in section 2."),
    ),
    hints=(
        "Three lines: a matrix product, a softmax, a matrix product.",
        "x @ x.T is (token, feature) @ (feature, token), so it's (token, token): row i has the scores of word i.",
        "weights = (x @ x.T).softmax(dim=-1), and mixed = weights @ x.",
    ),
)

# ---------------------------------------------------------------- 0.8 the way back

def way_back():
    S = math.exp(2) + math.exp(1) + math.exp(0)         # 11.107
    A = math.exp(2) / S                                 # 1 / S arrives, and e to the power of z has the slope e to the z
    B = A - 1                                           # two lines leave z: their numbers add
    C = -1 * B                                          # z = x w, whose slope is x = -1
    return [A, B, C]


SEEN = "A = {answer[0]:.3f}, B = {answer[1]:.3f}, C = {answer[2]:.3f}."

BACK = ask(
    "0.8", way_back, kind="number", tolerance=4e-3, signature="a list of three numbers: A, B, C",
    mistakes={
        "slope-alone": M({"math.exp(2) / S": "math.exp(2)"}, "A is {answer[0]:.3f}, the slope of e to the power of z.",
                         "Multiply it by the number that arrives from the right, 1 / S = 0.090."),
        "slope-left-out": M({"math.exp(2) / S": "1 / S"}, "A is {answer[0]:.3f}, the number that arrives from the right.",
                            "On its way through e to the power of z it's multiplied by that operation's slope, 7.389."),
        "upper-line-left-out": M({"A - 1": "A"}, "B is {answer[1]:.3f}, which is A alone.", "z of the true class acts on "
                                 "the loss in two ways: through its power of e, and directly, with a minus. Add both."),
        "lower-line-left-out": M({"A - 1": "-1"}, "B is {answer[1]:.3f}: that's the line straight to the loss alone.",
                                 "The same z also acts through its power of e, where A arrives. Add both numbers."),
        "subtracted": M({"A - 1": "A + 1"}, "B is {answer[1]:.3f}: the minus of the line to the loss was lost.", "Where two "
                        "lines leave a box their numbers are added, with their signs: A + (−1)."),
        "truth-minus-prediction": M({"A - 1": "1 - A"}, "B is {answer[1]:.3f}, above 0, so a larger score of the true "
                                    "class would raise the loss.", "It lowers it. B is A + (−1), not 1 − A."),
        "feature-left-out": M({"-1 * B": "B"}, "C is {answer[2]:.3f}, the same as B.", "Between w and z stands a product "
                              "with x = −1, whose slope is x: multiply by it."),
        "times-weight": M({"-1 * B": "-2 * B"}, "C is {answer[2]:.3f}, which is B times w.", "C says how fast the loss "
                          "grows when w grows. z = x w then grows x times as fast: multiply by x = −1, not by w."),
        "one-line-for-w": M({"-1 * B": "-1 * A"}, "C is {answer[2]:.3f}, which is A times −1.", "Through z, w acts on the "
                            "loss along both lines, so B arrives, not A alone."),
    },
    rules=(
        R(lambda case: abs(case.answer[0] - case.expected[0]) > 6e-3, SEEN, "Begin with A: 0.090 arrives from the right, "
          "and e to the power of z has the slope e to the power of z, which stands in its box."),
        R(lambda case: abs(case.answer[1] - case.answer[0] + 1) > 6e-3, SEEN, "B is the sum of the numbers on the two lines "
          "that leave z: A and −1."),
        R(lambda case: abs(case.answer[2] + case.answer[1]) > 6e-3, SEEN, "C is B times the slope of x w, which is x = −1."),
    ),
    hints=(
        "Look at the middle row, which is complete: how does 0.245 come from 0.090, and −0.245 from 0.245?",
        "A = 7.389 · 0.090. B is the sum of A and the number on the other line that leaves z.",
        "A = 0.665, B = A − 1, and C = −1 · B.",
    ),
)

# ---------------------------------------------------------------- 0.9 the walk back

def backward(graph):
    gradients = dict.fromkeys(graph, 0.0)
    gradients[list(graph)[-1]] = 1.0                        # the loss grows as fast as itself
    for box in reversed(graph):                             # from right to left
        for earlier, slope in graph[box]:
            gradients[earlier] += slope * gradients[box]    # multiply along a line, add where lines leave the same box
    return gradients


def graph_probes(generator: torch.Generator) -> list[tuple]:
    """A chain; a box that acts on the loss in two ways; a square, x times x; three such in a row; a larger graph with a box
    that the loss doesn't need; a loss alone."""
    def slope() -> float:
        """Between 0.5 and 1.5, of either sign, so that nothing cancels by chance; in quarters, so that sums are exact."""
        return [-1.5, -1.25, -0.75, -0.5, 0.5, 0.75, 1.25, 1.5][int(torch.randint(8, (), generator=generator))]

    def lines(*boxes: str) -> list[tuple[str, float]]:
        return [(box, slope()) for box in boxes]

    square = 2 * slope()
    return [({"w": [], "z": lines("w"), "e": lines("z"), "loss": lines("e")},),
            ({"w": [], "z": lines("w"), "e": lines("z"), "S": lines("e"), "loss": lines("S", "z")},),
            ({"x": [], "x x": [("x", square), ("x", square)], "loss": lines("x x")},),
            ({"a": [], "b": lines("a"), "c": lines("a", "b"), "d": lines("c"), "e": lines("d", "c"),
              "loss": lines("e", "c")},),
            ({"v": [], "w": [], "spare": lines("w"), "p": lines("v", "w"), "q": lines("w"), "r": lines("p", "q", "v"),
              "loss": lines("r", "p")},), ({"loss": []},)]


def observe_backward(function, graph):
    """The gradients in the graph's order. Raises TypeError that names a box that's missing, on the walk or after it."""
    try:
        output = function(graph)
    except KeyError as error:
        raise TypeError(f"expected every box to begin with a gradient of 0, but something asks for that of {error}, which "
                        "isn't there yet. Make a dict with all boxes before you walk") from None
    if output is None:
        return None
    if isinstance(output, dict):
        missing = [box for box in graph if box not in output]
        if missing:
            raise TypeError(f"expected a gradient for every box of the graph, got none for {', '.join(map(repr, missing))}. "
                            "A box from which no way leads to the loss has a gradient of 0")
        output = [output[box] for box in graph]
    found = one_tensor(output, "the gradients")
    if tuple(found.shape) != (len(graph),):
        raise TypeError(f"expected a dict with a gradient for each of {_one(len(graph), 'box')}, got {what(output)}")
    return found


def _leaving(case: Case) -> dict[str, int]:
    """How many lines leave each box."""
    from_boxes = [earlier for lines in case.inputs[0].values() for earlier, _ in lines]
    return {box: from_boxes.count(box) for box in case.inputs[0]}


def _last_wrong(case: Case, lines: int = 0) -> str | None:
    """The box furthest to the right whose gradient is wrong; with `lines`, among those that so many lines leave."""
    off = [box for box, mine, right in zip(case.inputs[0], case.answer.tolist(), case.expected.tolist())
           if abs(mine - right) > 1e-4 and lines in (0, _leaving(case)[box])]
    return off[-1] if off else None


def _box(case: Case) -> str:
    """The first box on the way back whose gradient is wrong: how many lines leave it, its gradient, and the right one."""
    box = _last_wrong(case)
    if box is None:
        raise LookupError("all are right here: speak of another case")
    i, lines = list(case.inputs[0]).index(box), _leaving(case)[box]
    left = "which no line leaves" if lines == 0 else f"which {_one(lines, 'line')} leave{'s' if lines == 1 else ''}"
    return f"the box {box!r}, {left}, gets {case.answer[i]:.3f} from you, expected {case.expected[i]:.3f}."


WALKED, ARRIVES = "gradients[earlier] += slope * gradients[box]", "slope * gradients[box]"


def _walked_again(graph):
    """From each box on to all before it, as often as a line leads there, with all that has come in so far."""
    gradients = dict.fromkeys(graph, 0.0)
    gradients[list(graph)[-1]] = 1.0

    def on(box):
        for earlier, slope in graph[box]:
            gradients[earlier] += slope * gradients[box]
            on(earlier)

    on(list(graph)[-1])
    return gradients


WALK = ask(
    "0.9", backward, probes=graph_probes, observe=observe_backward,
    signature="backward(graph {box: list of (earlier box, slope)}, the loss last) -> {box: gradient of the loss}",
    mistakes={
        "overwritten": M({WALKED: f"gradients[earlier] = {ARRIVES}"}, _box, "Each line that leaves it brings a number back, "
                         "and the later one overwrites the earlier: add them, +=."),
        "from-left": M({"reversed(graph)": "graph"}, _box, "You walk from left to right, so what arrives at a box is still "
                       "0 when it's handed on. Begin at the loss: reversed(graph)."),
        "slope-left-out": M({ARRIVES: "gradients[box]"}, _box, "On its way through an operation the number is multiplied by "
                            "the slope along the line."),
        "arriving-left-out": M({ARRIVES: "slope"}, _box, "You add up slopes alone. Each is multiplied by the gradient of "
                               "the box from which you come."),
        "slope-added": M({ARRIVES: "slope + gradients[box]"}, _box, "You add the slope to the gradient of the box from "
                         "which you come. By the chain rule they're multiplied; only at a box that several lines leave are "
                         "numbers added."),
        "nothing-at-the-loss": M({"1.0": "0.0"}, "all of your gradients are 0.", "Nothing arrives if nothing starts: the "
                                 "gradient of the loss with respect to itself, the last box, is 1."),
        "ones-everywhere": M({"0.0": "1.0"}, _box, "Only the loss begins with 1. All other boxes begin with 0 and collect "
                             "what comes back."),
        "one-line-only": M({"graph[box]": "graph[box][:1]"}, _box, "You go back along the first line into each box alone. "
                           "S, a sum, has three."),
        "walked-again": M(_walked_again, _box, "You go on from a box each time something arrives there, and then hand on "
                          "what came earlier once more. Wait until everything has arrived: take the boxes from right to "
                          "left, each once."),
        "lines-merged": M({"graph[box]": "dict(graph[box]).items()"}, _box, "Several lines may lead from one box to the "
                          "same other box, as in x · x, and a dict keeps only one of them. Take each line of the list."),
        "forward": M({"gradients[list(graph)[-1]] = 1.0": "gradients[list(graph)[0]] = 1.0", "reversed(graph)": "graph",
                      WALKED: "gradients[box] += slope * gradients[earlier]"}, _box, "You begin at the first box and walk "
                     "to the right: that's how fast each box grows when the first one grows. We want how fast the *loss* "
                     "grows when each box grows: begin at the loss, and walk to the left."),
        "loss-alone": M({WALKED: "pass"}, _box, "Only the loss has a gradient. Each box hands its own on, times a slope, to "
                        "the boxes that it was computed from."),
    },
    rules=(
        R(lambda case: abs(case.answer[-1] - 1) > 1e-4, _box, "The loss grows exactly as fast as itself: it begins "
          "with 1, and the walk goes from there to the left."),
        R(lambda case: _last_wrong(case, 1) == _last_wrong(case) is not None, _box, "One line leaves it: multiply the "
          "gradient of the box at the line's right end by the slope."),
        R(lambda case: _last_wrong(case) is not None, _box, "For each line that leaves it multiply slope and gradient of "
          "the box at the line's right end, and add up all of these."),
    ),
    hints=(
        "Begin with {box: 0.0} for every box, and 1.0 for the last one, list(graph)[-1].",
        "for box in reversed(graph): now everything that comes back to this box has arrived. Hand it on along its lines.",
        "for earlier, slope in graph[box]: gradients[earlier] += slope * gradients[box]",
    ),
)

# ---------------------------------------------------------------- 0.10 the gradient on paper

def paper():
    opinion = [1 / 4, 0, -1 / 4]            # the row of 'moving' minus that of 'dull', divided by 4
    negates = [1 / 12, -1 / 6, 1 / 12]      # only 'not' negates: its row, divided by 4
    contrasts = [1 / 12, -1 / 6, 1 / 12]    # only 'but' contrasts
    return [opinion, negates, contrasts]


def _entries(opinion: list, other: list):
    """A table whose first entry is the one that was given; `other` is the row of 'not' alone and of 'but' alone."""
    return lambda: [[1 / 4, *opinion], list(other), list(other)]


def _all(factor: float):
    return lambda: [[factor * one for one in row] for row in paper()]


POSITIVE = "from 'opinion' to 'positive' you have {positive:.3f}."
NEUTRAL = "from 'negates' to 'neutral' you have {neutral:.3f}."
FORGOTTEN = "The loss is a mean over four tokens, and so is its gradient: don't forget the 1/4."
REVERSED = "Look at your signs. p − y is prediction minus truth: below 0 only for the true class."

PAPER = ask(
    "0.10", paper, kind="number", tolerance=2e-3, signature="three rows of three numbers, such as [[1/4, …, …], […], […]]: "
    "opinion, negates, contrasts, each with negative, neutral, positive",
    numbers=dict(positive=lambda case: case.answer[0, 2], neutral=lambda case: case.answer[1, 1],
                 middle=lambda case: case.answer[0, 1], sums=lambda case: spread(case.answer.sum(dim=-1)),
                 opinion=lambda case: ", ".join(f"{one:.3f}" for one in case.answer[0].tolist()),
                 negates=lambda case: ", ".join(f"{one:.3f}" for one in case.answer[1].tolist()),
                 contrasts=lambda case: ", ".join(f"{one:.3f}" for one in case.answer[2].tolist())),
    mistakes={
        "quarter-forgotten": M(_entries([0, -1], [1 / 3, -2 / 3, 1 / 3]), POSITIVE, FORGOTTEN),
        "quarter-forgotten-everywhere": M(_all(4), POSITIVE, f"{FORGOTTEN} All nine entries are four times too large."),
        "mean-over-those-with-it": M(_entries([0, -1 / 2], [1 / 3, -2 / 3, 1 / 3]), NEUTRAL, "You divide by the number of "
                                     "tokens that have the feature. The loss is a mean over all four."),
        "truth-minus-prediction": M(_entries([0, 1 / 4], [-1 / 12, 1 / 6, -1 / 12]), POSITIVE, REVERSED),
        "truth-minus-prediction-everywhere": M(_all(-1), POSITIVE, f"{REVERSED} All nine entries have the wrong sign."),
        "feature-without-sign": M(_entries([1 / 6, -1 / 12], [1 / 12, -1 / 6, 1 / 12]), "from 'opinion' to 'neutral' you "
                                  "have {middle:.3f}.", "'dull' has an opinion of −1: its row counts with a minus."),
        "feature-left-out": M(_entries([-1 / 6, 1 / 12], [1 / 12, -1 / 6, 1 / 12]), "your first row is {opinion}.", "It "
                              "sums the rows of all four tokens. Each is multiplied by the token's feature first: 'not' and "
                              "'but' have no opinion, that of 'dull' is −1."),
        "truth-left-out": M(_entries([0, 0], [1 / 12, 1 / 12, 1 / 12]), NEUTRAL, "You took the probabilities, all 1/3. The "
                            "error is p − y: for 'not' and 'neutral' that's −2/3."),
        "transposed": M(lambda: [list(column) for column in zip(*paper())], "your first row is {opinion}.", "That's a "
                        "column. A row belongs to a feature and a column to a class, as in W."),
    },
    rules=(
        R(lambda case: gap(case) < 5.1e-3, "your table is right but for rounding.", "Say three decimals, or fractions, such "
          "as 1/12."),
        R(lambda case: (case.answer.sum(dim=-1)).abs().max() > 6e-3, "your rows sum to {sums}.", "Each row of p − y sums to "
          "0, and so does what you add up from such rows."),
        R(lambda case: (case.answer[0] - case.expected[0]).abs().max() > 2e-3, "your first row is {opinion}.", "Only 'dull' "
          "and 'moving' have an opinion, −1 and 1. Multiply, add, divide by four."),
        R(lambda case: (case.answer[1] - case.expected[1]).abs().max() > 2e-3, "your second row is {negates}.", "Only 'not' "
          "negates, with a 1: take its row of p − y, and divide by four."),
        R(lambda case: (case.answer[2] - case.expected[2]).abs().max() > 2e-3, "your third row is {contrasts}.", "Only "
          "'but' contrasts, with a 1: take its row of p − y, and divide by four."),
    ),
    hints=(
        "One feature at a time: which tokens have it? Their rows of p − y count, each times its feature.",
        "'negates' is the easiest row: only 'not' has that feature, a 1. Write down its p − y and divide by 4.",
        "'opinion': the row of 'moving' minus the row of 'dull', divided by 4. Its first entry is (1/3 + 2/3) / 4 = 1/4.",
    ),
)

# ---------------------------------------------------------------- 0.11 four lines

def train(model, optimizer, x, true_class, steps):
    losses = []
    for _ in range(steps):
        loss = F.cross_entropy(model(x), true_class)        # forward
        optimizer.zero_grad()                               # W.grad = None
        loss.backward()                                     # fills W.grad
        optimizer.step()                                    # W -= learning rate * W.grad
        losses.append(loss.item())
    return losses


def train_probes(generator: torch.Generator) -> list[tuple]:
    """(W at the start, x, true_class, steps): four classes and six steps; two features and three; a single step."""
    return [(torch.randn(features, classes, generator=generator), torch.randn(tokens, features, generator=generator),
             torch.randint(classes, (tokens,), generator=generator), steps)
            for tokens, features, classes, steps in ((5, 3, 4, 6), (6, 2, 3, 3), (4, 4, 2, 1))]


def observe_train(function, W, x, true_class, steps):
    """The losses that are returned and W afterwards; if it hasn't moved, also what was called, since that tells why."""
    model = _classifier(lambda features, classes: nn.Parameter(W.clone()))(*W.shape)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    stepped, backwards = [], []
    optimizer.register_step_post_hook(lambda *_: stepped.append(1))
    model.W.register_hook(lambda gradient: backwards.append(1))
    try:
        losses = function(model, optimizer, x, true_class, steps)
    except RuntimeError as error:
        if "softmax" in str(error) and "not implemented for 'Long'" in str(error):
            raise TypeError("expected F.cross_entropy(model(x), true_class): scores first, classes second") from None
        if "backward through the graph a second time" not in str(error):
            raise
        raise TypeError("expected a new forward pass in each step, but backward() runs twice on the same one. The line with "
                        "the loss belongs inside the loop") from None
    moved = not torch.equal(model.W.detach(), W)
    if losses is None:
        if not moved and not backwards:
            return None
        raise TypeError("expected a list of the losses, got None. End with `return losses`")
    if not isinstance(losses, (list, tuple)) or len(losses) != steps:
        got = f"{len(losses)} of them" if isinstance(losses, (list, tuple)) else what(losses)
        if got == "1 of them":
            got += (". Your function ends after the first step: `return losses` belongs behind the loop, not in it"
                    if len(stepped) == 1 else "")
        raise TypeError(f"expected a list of {f'{steps} losses' if steps != 1 else '1 loss'}, one for each step, got {got}")
    kept = [one.requires_grad for one in losses if isinstance(one, torch.Tensor)]
    return {"tensors": "with a record" if any(kept) else "bare" if kept else "none",
            "losses": torch.stack([one_tensor(one, "a loss").detach().double().reshape(()) for one in losses]),
            "W": model.W.detach().clone(),
            "moved": "yes" if moved else f"in {_one(steps, 'step')} backward() ran {_one(len(backwards), 'time')}, "
            f"step() {_one(len(stepped), 'time')}"}


TRAINED = "after {steps} your W is off by up to {off:.3f}."
TENSORS = "your losses are tensors, each with its whole record behind it."
NUMBER = "Ask for the number: loss.item()."
NOT_MOVED = "W hasn't moved: {moved}."
LOSS_LINE = "F.cross_entropy(model(x), true_class)"

TRAIN = ask(
    "0.11", train, probes=train_probes, observe=observe_train,
    signature="train(model, optimizer, x (token, feature), true_class (token,), steps) -> list of the losses, one for each "
    "step, taken before it",
    numbers=dict(off=lambda case: gap(case, "W"), steps=lambda case: _one(case.inputs[3], "step"),
                 moved=lambda case: case.moved, first=lambda case: case.losses[0],
                 expected_first=lambda case: case.right["losses"][0]),
    mistakes={
        "never-cleared": M({"optimizer.zero_grad()": "None"}, TRAINED, "The first step is right, and each later one also "
                           "uses the gradients of all before it: backward() adds. Clear before each backward(), "
                           "and call it with its parentheses: optimizer.zero_grad()."),
        "cleared-between": M({"optimizer.zero_grad()": "None", "optimizer.step()": "(optimizer.zero_grad(), "
                              "optimizer.step())"}, NOT_MOVED, "The step had no gradient to go by: it came before "
                             "backward(), or zero_grad() cleared it between the two."),
        "no-backward": M({"loss.backward()": "None"}, NOT_MOVED, "Without loss.backward() there is no gradient, and the "
                         "step does nothing. There is no error."),
        "no-step": M({"optimizer.step()": "None"}, NOT_MOVED, "The gradients are computed and never used: optimizer.step() "
                     "is missing."),
        "one-step": M({"optimizer.step()": "len(losses) == steps - 1 and optimizer.step()"}, TRAINED, "W moves once: "
                      "optimizer.step() comes after the loop. Each step of the loop needs its own."),
        "softmax-twice": M({LOSS_LINE: "F.cross_entropy(model(x).softmax(dim=-1), true_class)"}, "your first loss is "
                           "{first:.4f}, expected {expected_first:.4f}.", "cross_entropy got probabilities. It takes scores "
                           "and applies the softmax itself."),
        "summed": M({LOSS_LINE: "F.cross_entropy(model(x), true_class, reduction='sum')"}, "your first loss is {first:.4f}, "
                    "expected {expected_first:.4f}.", "That is the sum over the tokens. cross_entropy gives their mean by "
                    "itself."),
        "tensors-kept": M({"loss.item()": "loss"}, TENSORS, NUMBER),
        "loss-after": M({"loss.item()": "F.cross_entropy(model(x), true_class).item()"}, "W is right, and your first loss "
                        "is {first:.4f}, expected {expected_first:.4f}.", "That's the loss after the step. Keep the one "
                        "that the gradient was taken of."),
    },
    rules=(
        R(lambda case: case.tensors == "with a record", TENSORS, NUMBER),
        R(lambda case: case.tensors == "bare", "your losses are tensors.", NUMBER),
        R(lambda case: case.moved != "yes", NOT_MOVED, "A step needs three things in this order: a cleared gradient, "
          "backward(), step()."),
        R(lambda case: gap(case, "W") > 1e-4 and case.inputs[3] == 1, TRAINED, "Does the loop run `steps` times, "
          "and in it, each once, the loss, zero_grad(), backward() and the step() of the optimizer that you're given?"),
        R(lambda case: gap(case, "W") > 1e-4, TRAINED, "Inside the loop belong, each once: the loss, zero_grad(), "
          "backward(), step()."),
        R(lambda case: gap(case, "losses") > 1e-4, "W is right, and your first loss is {first:.4f}, expected "
          "{expected_first:.4f}.", "Keep the loss that the gradient was taken of."),
    ),
    hints=(
        "losses = [], a loop over range(steps), and in it four lines and losses.append(loss.item()).",
        "The loss first, F.cross_entropy(model(x), true_class). Then clear, go back, step.",
        "optimizer.zero_grad(), loss.backward(), optimizer.step(), in this order.",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: stretched-shape
  taught: "00"
  question: "`a` has shape (2, 4, 3) and `b` has shape (4, 1). What is the shape of `a * b`?"
  options:
    - text: (2, 4, 4, 3)
      remark: The result has as many dimensions as the longer of the two shapes, here three.
    - text: (2, 4, 3)
      right: true
      remark: Aligned at the right, `b` is (1, 4, 1). It is repeated twice along the first dimension and three times
        along the last.
    - text: "There is none: these shapes raise an error."
      remark: They would if `b` had shape (4,), where the 4 meets the 3. Here the last size of `b` is 1.
- name: first-loss
  taught: "00"
  question: Before any training, a model with two classes has a loss of 4.1. What do you conclude?
  options:
    - text: It's untrained, and that is the usual loss of an untrained model.
      remark: A model with no idea of two classes has a loss of ln 2, about 0.69.
    - text: The learning rate is too high, so the loss has already grown.
      remark: Before the first step, the learning rate has done nothing.
    - text: It's confidently wrong, so something is probably broken.
      right: true
      remark: A loss of 4.1 means a probability of about 0.017 for the true class. With no idea, it would be one half.
- name: push-on-scores
  taught: "00"
  question: For one word the probabilities are (0.7, 0.2, 0.1), and the true class is the second. What is the gradient
    of the loss with respect to the three scores?
  options:
    - text: (0.7, −0.8, 0.1)
      right: true
      remark: This is p − y, prediction minus truth. It sums to zero, because p and y both sum to one.
    - text: (−0.7, 0.8, −0.1)
      remark: That is the direction of a step downhill, which is minus the gradient.
    - text: (0, −0.8, 0)
      remark: "The scores of the wrong classes matter as well: when they go down, the probability of the true class goes
        up."
- name: mask-and-fill
  taught: "00"
  question: "`may_win` is True for the words that may be chosen. You are looking for the one with the highest score.
    Which line rules out all the others?"
  options:
    - text: "`scores.masked_fill(may_win, -math.inf)`"
      remark: It writes where the mask is True, so it rules out exactly the words that may be chosen. The tilde is
        missing.
    - text: "`scores.masked_fill(~may_win, 0.0)`"
      remark: If all words that may be chosen have negative scores, 0 is the highest, and an excluded word wins.
    - text: "`scores.masked_fill(~may_win, -math.inf)`"
      right: true
      remark: It writes minus infinity where `may_win` is False. No score is lower.
- name: shifted-columns
  taught: "00"
  question: You want a softmax of each row of a (4, 4) table of scores, and first subtract `scores.max(dim=1).values`.
    Which rows come out right?
  options:
    - text: All of them, because softmax ignores a shift.
      remark: They would with `scores.max(dim=1, keepdim=True).values`, which has shape (4, 1). Only then is a whole row
        shifted by one number.
    - text: In general, none of them.
      right: true
      remark: The maxima are (4,), aligned at the right, so each column is shifted by a different number, and the
        differences within a row change.
    - text: None, because the shapes don't fit and raise an error.
      remark: (4, 4) and (4,) fit. A (4, 3) table would give an error.
- name: zero-score
  taught: "00"
  question: "'dull' has the scores 0, 1, 0 and −1 with 'not', 'dull', 'but' and 'moving'. Which weight does it give to
    'not'?"
  options:
    - text: More than to 'moving', and less than to itself.
      right: true
      remark: e⁰ = 1 lies between e⁻¹ and e¹. Divided by the sum, 5.086, it's a weight of 0.197.
    - text: "None: a score of 0 leaves it out."
      remark: A weight of 0 takes a score of minus infinity. A score of 0 is an ordinary number, and e⁰ = 1.
    - text: A quarter, because the four words of the sentence share a row equally.
      remark: They would if all four scores were equal. Here they go from −1 to 1.
- name: used-twice
  taught: "00"
  question: "The loss is x · x, so two lines lead from x to it. What is the gradient of the loss with respect to x, at
    x = 3?"
  options:
    - text: "3"
      remark: That comes back along one line, whose slope is the other factor. Two lines leave x.
    - text: "6"
      right: true
      remark: Along each line the slope is the other factor, 3, and where two lines leave a box the numbers are added.
    - text: "9"
      remark: That's the loss itself. What comes back along two lines is added, not multiplied.
- name: cleared-too-late
  taught: "00"
  question: "`optimizer.zero_grad()` has slipped between `loss.backward()` and `optimizer.step()`. What happens?"
  options:
    - text: PyTorch raises an error, since there's no gradient.
      remark: A weight without a gradient is skipped without a word.
    - text: Each step also uses the gradients of the steps before.
      remark: That happens if you never clear.
    - text: The loss is the same in every step.
      right: true
      remark: The gradient is cleared before the step can use it, so W never moves. Clear before backward() or after step().
"""

# ---------------------------------------------------------------- predictions: what idea a wrong guess comes from

GUESSES = """
- name: 00-wrong-loss
  guesses:
    - from: -0.001
      to: 0.01
      remark: It would be 0 if the shapes were equal. (4, 1) minus (4,) is (4, 4), every prediction minus every target.
    - from: 0.02
      to: 0.98
      remark: "Count all 16 differences of the (4, 4) table: six are 0, eight are 1 or −1, two are 2 or −2. The squares sum
        to 16."
    - from: 1.02
      to: 16
      remark: "Count all 16 differences of the (4, 4) table: six are 0, eight are 1 or −1, two are 2 or −2. The squares sum
        to 16, and the loss is their mean."
- name: 00-calculator
  guesses:
    - from: 0.41
      to: 0.43
      remark: That's the probability, 0.422. The loss is minus its logarithm.
    - from: -0.9
      to: -0.8
      remark: That's the logarithm. The loss has a minus in front of it and is never below 0.
    - from: 0.68
      to: 0.7
      remark: That's ln 2, as if there were two classes. The third has the score 0, and e⁰ = 1 isn't nothing.
    - from: 1.09
      to: 1.11
      remark: That's ln 3, for three equal scores. Here the third is smaller than the others.
    - from: 0.37
      to: 0.38
      remark: That's the logarithm with base 10. The loss has the natural one, ln.
    - from: 1.23
      to: 1.25
      remark: That's the logarithm with base 2. The loss has the natural one, ln.
    - from: 1.3
      to: 1.32
      remark: That's the loss of z divided by the sum of z, or of another class. Take e to the power of each score first.
    - from: 1.85
      to: 1.88
      remark: That's the loss of the third class, whose score is 0. The true one is the second.
- name: 00-softmax-twice
  guesses:
    - from: 0
      to: 0.05
      remark: That's the loss with one softmax. The second one sees scores between 0 and 1, and makes at most e / (e + 2) =
        0.576 of them.
    - from: 1.05
      to: 1.15
      remark: That's ln 3, for no idea at all. The second softmax flattens the probabilities and keeps the right class ahead.
    - from: 1.2
      to: .inf
      remark: For more than ln 3 = 1.10 the right class would have to come behind. The second softmax flattens the
        probabilities, but keeps their order.
- name: 00-two-steps
  guesses:
    - from: 0.7574
      to: 0.7576
      remark: That's with clearing. Without it, .grad still holds the first gradient, and the second step is longer.
    - from: 0.7577
      to: .inf
      remark: The old gradient is added to the new one, and here both point downhill. So the second step is longer, and the
        loss falls further.
- name: 00-dull-mixed
  guesses:
    - from: 0.99
      to: 1.01
      remark: Then it would look at itself alone. Its score with itself is 1, and the three others have 0, which isn't a
        weight of 0.
    - from: 0.24
      to: 0.26
      remark: That's a quarter, for equal weights. 'not' has the score 1 with itself, and 0 with each of the others.
    - from: 0.53
      to: 0.54
      remark: That's the weight that 'dull' gives to itself. But no word is the opposite of 'not', so the three others have
        the score 0 with it, and e⁰ = 1 each.
    - from: 0.72
      to: 0.74
      remark: That's e / (e + 1), with one other word. There are three.
    - from: -0.01
      to: 0.01
      remark: That's its opinion, where −1 and +1 cancel. Of the four words only 'not' has a number in negates, and it looks
        mostly at itself.
"""
