"""Exercises and quiz of notebook 00, tensors."""

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask

from course_exercises.common import gap, spread

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
    not_finite=dict.fromkeys(("NaN", "inf", "-inf"), "You divide by 0 here, and every review has at least one token, so no "
                             "count should be 0."),
    numbers=dict(review=_review, reviews=lambda case: len(case.inputs[0]), positions=lambda case: case.inputs[0].shape[1],
                 get=lambda case: f"{len(case.inputs[0])} review{' gets' if len(case.inputs[0]) == 1 else 's get'}",
                 count=lambda case: case.answer.numel(), shape=lambda case: tuple(case.answer.shape),
                 only=lambda case: case.answer.flatten()[0]),
    mistakes={
        "every-with-every": M({ADDED: KEPT}, "{get} {count} numbers, in the shape {shape}.", "One of the two that you "
                              "divide is a column, the other a row, so every total is divided by every count. Print both "
                              "shapes and make them equal."),
        "averaged-again": M({ADDED: KEPT, "total / count": "(total / count).mean(dim=1)"}, "{review}", "You have one number "
                            "for each review, but it averages this total's quotients with the counts of *all* reviews. "
                            "Don't patch the (review, review) table: prevent it, by making the two shapes equal."),
        "padding-counted": M({COUNTED: "is_token.shape[1]"}, "{review}", "You divide by the number of positions. Padding "
                             "isn't part of the review: divide by the number of its tokens."),
        "padding-added": M({"opinions * is_token": "opinions"}, "{review}", "The numbers in the padding went into the "
                           "total. They mean nothing; multiply by the mask before you sum."),
        "mask-ignored": M({"total / count": "opinions.mean(dim=1)"}, "{review}", "That is the mean over all positions, "
                          "padding included, as if there were no mask: both the total and the count need it."),
        "zeros-left-out": M({COUNTED: "(opinions * is_token != 0).sum(dim=1)"}, "{review}", "A token with opinion 0 wasn't "
                            "counted. It's still a token: count with the mask, don't look for nonzero numbers."),
        "per-position": M({ADDED: "(opinions * is_token).sum(dim=0)", COUNTED: "is_token.sum(dim=0)"}, "you return {count} "
                          "numbers, one for each of the {positions} positions.", "The dimension that you name in sum "
                          "disappears. To keep the reviews, sum over the positions, dim=1."),
        "one-mean-for-all": M({ADDED: "(opinions * is_token).sum()", COUNTED: "is_token.sum()"}, "you return one number, "
                              "{only:.3f}, for {reviews} reviews.", "A sum without a dim adds up everything. Name the "
                              "dimension that should disappear, so that each review keeps a number of its own."),
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
    """Notes the names of all PyTorch functions that are called."""

    def __init__(self):
        super().__init__()
        self.called = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.called.add(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


def observe_softmax(function, scores):
    """The probabilities. Raises TypeError if the function calls one that does the exercise."""
    with _Notes() as notes:
        output = function(scores)
    if notes.called & WRITTEN_OUT:
        name = sorted(notes.called & WRITTEN_OUT)[0].lstrip("_")
        raise TypeError(f"expected the steps written out, and your function calls {name}, which does the exercise for you. "
                        "Write it with max, exp and sum")
    return output


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


PICKED = "log_p[range(len(scores)), true_class]"
MEAN_LOSS = f"-{PICKED}.mean()"
LOSS_IS = "for {tokens} and {classes} classes your loss is {answer:.3f}, expected {expected:.3f}."

LOSS = ask(
    "0.3", cross_entropy, probes=loss_probes,
    forbidden=("torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss"),
    signature="cross_entropy(scores (token, class), true_class (token,), whole numbers) -> one number, the mean loss",
    not_finite={
        "inf": "A probability too small for float32 is rounded to 0, and ln 0 is minus infinity; or e to the power of a "
        "score overflows. Don't take the logarithm of a probability: ln p is the score minus the logarithm of the sum of "
        "the powers of e, each score with the maximum of its row subtracted.",
        "-inf": "ln p is minus infinity where p was rounded to 0, and the loss is minus ln p. Don't take the logarithm of a "
        "probability: ln p is the score minus the logarithm of the sum of the powers of e.",
        "NaN": "e to the power of a score above 88.7 overflows, and infinity divided by infinity is NaN. Subtract the "
        "maximum of each row from the scores first."},
    numbers=dict(tokens=lambda case: _one(len(case.inputs[0]), "token"), classes=lambda case: case.inputs[0].shape[1],
                 gap=_gap_to_true),
    mistakes={
        "log-of-zero": M({PICKED: "scores.softmax(dim=-1)[range(len(scores)), true_class].log()"}, "your loss is "
                         "{answer:.3f} where a wrong class scores {gap:.0f} higher than the true one.", "Its probability "
                         "was rounded to 0 before you took the logarithm. Compute ln p in one go, as section 7 does: the "
                         "score minus the logarithm of the sum of the powers."),
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
    """Five tokens with three features and four classes; a square; W = 0, as in section 8; one token; a large step."""
    def drawn(tokens: int, features: int, classes: int, rate: float, size: float = 1.0) -> tuple:
        return (size * torch.randn(features, classes, generator=generator),
                torch.randn(tokens, features, generator=generator),
                torch.randint(classes, (tokens,), generator=generator), rate)

    return [drawn(5, 3, 4, 0.5), drawn(3, 3, 3, 2.0), drawn(4, 2, 3, 1.5, size=0.0), drawn(1, 4, 2, 0.1),
            drawn(6, 2, 5, 30.0)]


def _loss_of(W: torch.Tensor, case: Case) -> float:
    return F.cross_entropy(case.inputs[1].double() @ W.double(), case.inputs[2]).item()


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

STEP = ask(
    "0.4", gradient_step, probes=step_probes,
    signature="gradient_step(W (feature, class), x (token, feature), true_class (token,), learning_rate) -> new W (feature, "
    "class)",
    numbers=dict(before=lambda case: _loss_of(case.inputs[0], case), after=lambda case: _loss_of(case.answer, case),
                 right_after=lambda case: _loss_of(case.expected, case)),
    mistakes={
        "uphill": M({NEW: "W + learning_rate * G"}, LOSSES, "You add the gradient, or have y − p for p − y. The gradient "
                    "points where the loss grows; go the other way."),
        "gradient-only": M({NEW: "G"}, _first, "That is the gradient itself. Multiply it by the learning rate and subtract "
                           "it from W."),
        "step-only": M({NEW: "-learning_rate * G"}, _first, "That is the step, minus learning rate times gradient. It must "
                       "still be added to W."),
        "no-learning-rate": M({NEW: "W - G"}, LOSSES, "The learning rate has no effect: you subtract the whole gradient."),
        "sum": M({GRADIENT: "x.T @ (p - y)"}, LOSSES, "The gradients of the tokens were summed. The loss is a mean over the "
                 "tokens, and so is its gradient: divide by their number."),
        "mean-over-classes": M({GRADIENT: f"{GRADIENT} / W.shape[1]"}, LOSSES, "The gradient was divided by the number of "
                               "classes as well, as .mean() over the whole table does. The loss is a mean over the tokens "
                               "alone."),
        "divided-by-features": M({"len(x)": "x.shape[1]"}, LOSSES, "You divide by x.shape[1], the number of features. The "
                                 "loss is a mean over the tokens, x.shape[0]."),
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
        "not-cleared": M({NEW: "W - 2 * learning_rate * G"}, LOSSES, "Your step is twice as long as it should be: as if "
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
        "Either write out the formula of section 8, or let autograd do it; both are right.",
        "p = (x @ W).softmax(dim=-1), and y = F.one_hot(true_class, num_classes=W.shape[1]).",
        "G = x.T @ (p - y) / len(x); what you return is W - learning_rate * G.",
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
      remark: (4, 4) and (4,) fit. If the table weren't square, there would be an error.
"""
