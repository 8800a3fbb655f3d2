"""Exercises of notebook 03, embeddings. The answers are in `answers`."""

import torch

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property

from course_exercises.common import reaches
from course_exercises.n03 import probes
from course_exercises.n03.epoch import EPOCH


def _furthest(got: torch.Tensor, right: torch.Tensor) -> str:
    """Where two tensors of one shape differ most, as 'x, expected y'."""
    place = (got - right).abs().flatten().argmax()
    return f"{got.flatten()[place]:.3f}, expected {right.flatten()[place]:.3f}"

# ---------------------------------------------------------------- 3.1 the gradient of a lookup

def _times(case: Case) -> torch.Tensor:
    return torch.bincount(case.inputs[0], minlength=case.inputs[2])


def _row(case: Case, times: int) -> int:
    """The id of a word that occurs that many times: of several, the one whose row is furthest from the right one."""
    rows = (_times(case) == times).nonzero().flatten()
    if case.answer.shape != case.expected.shape:
        return int(rows[0])
    return int(rows[(case.answer[rows] - case.expected[rows]).abs().amax(dim=1).argmax()])


def _off(case: Case, times: int) -> bool:
    rows = _times(case) == times
    return bool((case.answer[rows] - case.expected[rows]).abs().max() > 1e-3)


def _shown(row: torch.Tensor) -> str:
    return ", ".join(f"{value:.3f}" for value in row.tolist())


def _of_three(case: Case) -> str:
    row = _row(case, 3)
    got, right = _shown(case.answer[row]), _shown(case.expected[row])
    return f"id {row} occurs three times; its row is [{got}], expected [{right}]."


def _of_once(case: Case) -> str:
    row = _row(case, 1)
    return f"id {row} occurs once; its row is [{_shown(case.answer[row])}], expected [{_shown(case.expected[row])}]."


GRADIENT = Exercise(
    probes=probes.lookup_probes, observe=probes.observe_gradient,
    signature="embedding_gradient(token_ids (seq_len), upstream (seq_len, d_model), vocab_size) -> (vocab_size, d_model)",
    mistakes=(
        Mistake("last-wins", _of_three, "A word that occurs again overwrites what its row had. So does gradient[token_ids] "
                "+= upstream, which writes each row once. The gradients of all positions must be added up (section 1: "
                "'moving moving dull')."),
        Mistake("counts", lambda case: f"your rows hold whole numbers, up to {case.answer.max():.0f}.",
                "You count how often a word occurs. That is the gradient for the sum of all looked-up numbers, where every "
                "upstream number is 1. Here they aren't."),
        Mistake("averaged", _of_three, "That is the mean over the positions of the word. Gradients of several uses "
                "add up."),
        Mistake("sum-of-all", _of_once, "Each row gets the upstream of all positions. A row should only get that of the "
                "positions of its own word."),
        Mistake("by-place", _of_three, "Row i of your matrix is row i of `upstream`: the position in the review "
                "instead of the id. The ids say which row of the matrix each position belongs to."),
        Mistake("a-step", _of_three, "All signs are reversed. The minus belongs to the step that the optimiser makes; the "
                "gradient itself has none."),
        Mistake("transposed", lambda case: f"the shape is {tuple(case.answer.shape)}, expected "
                f"{tuple(case.expected.shape)}.", "The numbers are there, but a row must belong to a word of the "
                "vocabulary: swap the two dimensions."),
        Mistake("too-few-rows", lambda case: f"your matrix has {case.answer.shape[0]} rows, and the vocabulary has "
                f"{case.expected.shape[0]} words.", "Left to itself, one_hot stops at the largest id of this review. Give "
                "it vocab_size. The rows that you have are right."),
        Mistake("looked-up", lambda case: f"you return zeros and ones, {tuple(case.answer.shape)}.",
                "That is the one-hot matrix itself. It says which word is where; now the upstream gradients have to be "
                "carried back through it."),
    ),
    properties=(
        Property(lambda case: (case.answer[_times(case) == 0].abs().max() > 1e-6), lambda case:
                 f"the row of id {_row(case, 0)}, which does not occur, is [{_shown(case.answer[_row(case, 0)])}].",
                 "A word that does not occur gets no gradient (section 1)."),
        Property(lambda case: _off(case, 1), _of_once, "A word that occurs once gets the upstream row of its position."),
        Property(lambda case: _off(case, 3), _of_three, "A word that occurs three times gets the sum of three upstream "
                 "rows."),
    ),
    hints=(
        "Which shapes do one_hot and upstream have? Only one way of multiplying them gives (vocab_size, d_model).",
        "If y = A @ x, the gradient with respect to x is the transposed A times the one with respect to y.",
        "one_hot = F.one_hot(token_ids, vocab_size), as float; then one_hot.T @ …",
    ),
)

# ---------------------------------------------------------------- 3.2 mean and maximum

def _half(case: Case, name: str, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean half or the max half of some reviews: got and right."""
    d_model = case.inputs[0].shape[-1]
    columns = slice(0, d_model) if name == "mean" else slice(d_model, None)
    return case.answer[rows, columns], case.expected[rows, columns]


def _reviews(case: Case, which: str) -> torch.Tensor:
    """Which reviews are 'full', 'padded' or 'empty', as (batch) booleans."""
    real = case.inputs[1]
    return {"full": real.all(dim=1), "empty": ~real.any(dim=1), "padded": real.any(dim=1) & ~real.all(dim=1)}[which]


def _wrong_half(name: str, which: str):
    def fails(case: Case) -> bool:
        got, right = _half(case, name, _reviews(case, which))
        return got.numel() > 0 and bool(((got - right).abs() > 1e-3 + 1e-4 * right.abs()).any())
    return fails


def _seen_half(name: str, which: str):
    def seen(case: Case) -> str:
        rows = _reviews(case, which)
        got, right = _half(case, name, rows)
        worst = int(rows.nonzero().flatten()[(got - right).abs().amax(dim=1).argmax()])
        real = case.inputs[1][worst]
        return (f"the {name} half of review {worst}, with {int(real.sum())} of {len(real)} positions real, has "
                f"{_furthest(got, right)}.")
    return seen


def _both_halves(case: Case) -> str:
    return f"{_seen_half('mean', 'padded')(case)[:-1]}, and {_seen_half('max', 'padded')(case)}"


def _count_unfit(case: Case) -> str:
    unfit = ~torch.isfinite(case.answer)
    return f"{int(unfit.sum())} of {unfit.numel()} numbers are NaN or infinite."


MEAN_AND_MAX = Exercise(
    probes=probes.pool_probes, observe=probes.observe_pool,
    signature="mean_and_max(x (batch, seq_len, d_model), attention_mask (batch, seq_len), True = real) -> (batch, 2 * "
    "d_model)",
    mistakes=(
        Mistake("multiplied-only", _both_halves, "Padding is set to zero but still takes part: it counts in the length of "
                "the mean, and 0 is larger than every negative number. A zero is harmless in a sum only."),
        Mistake("padded-length", _seen_half("mean", "padded"), "The sum is right and is divided by the width of the tensor. "
                "Divide by the number of real tokens (section 3). The second half is right."),
        Mistake("zero-wins", _seen_half("max", "padded"), "All words of that column are negative, and the zeros in the "
                "padding win. What number is smaller than every other? The first half is right."),
        Mistake("mask-ignored", _both_halves, "The padding takes part in both halves. The mask says which positions "
                "are real."),
        Mistake("mean-without-mask", _seen_half("mean", "padded"), "The numbers in the padding enter the mean. The second "
                "half is right; the first needs the mask too (section 3)."),
        Mistake("padding-in-the-sum", _seen_half("mean", "padded"), "You divide by the number of real tokens, but the sum "
                "runs over all positions, and the padding does not hold zeros here. Multiply by the mask before summing."),
        Mistake("max-without-mask", _seen_half("max", "padded"), "That number is in the padding. The first half is "
                "right; the second needs the mask too."),
        Mistake("not-divided", _seen_half("mean", "full"), "That is the sum. It grows with the length of the review; divide "
                "by the number of real tokens."),
        Mistake("empty-minus-infinity", _count_unfit, "The largest of nothing but -inf is -inf. All reviews with words are "
                "right; the empty one needs zeros, since one infinite number spoils the loss of a batch."),
        Mistake("empty-lowest", lambda case: f"the empty review has {case.answer.min():.2g} in its second half.",
                "That is the number with which the padding was filled. All reviews with words are right; put zeros where "
                "the mask has no True."),
        Mistake("empty-both", _count_unfit, "All reviews with words are right. The empty one has 0/0 in its mean, and -inf "
                "as its largest number. Both halves must be zeros."),
        Mistake("empty-mean", _count_unfit, "The empty review divides 0 by 0. Section 3 shows a way around it. All else is "
                "right."),
        Mistake("inverted", _seen_half("mean", "full"), "The mask is the wrong way round, and you look at the padding "
                "alone. Here True means real, so exclude ~mask."),
        Mistake("largest-in-size", _seen_half("max", "full"), "You take the largest distance from zero, without the sign. "
                "-3 is less than 1. The first half is right."),
        Mistake("smallest", _seen_half("max", "full"), "That is the smallest number of the column. The first half is "
                "right."),
        Mistake("swapped", _seen_half("mean", "full"), "The two halves are right but the wrong way round: the mean "
                "comes first."),
    ),
    properties=(
        Property(_wrong_half("mean", "full"), _seen_half("mean", "full"), "All its positions are real: the mean runs "
                 "over the positions, dim=1, and makes the first d_model columns."),
        Property(_wrong_half("max", "full"), _seen_half("max", "full"), "All its positions are real: the largest runs over "
                 "the positions, dim=1, and makes the last d_model columns."),
        Property(_wrong_half("mean", "padded"), _seen_half("mean", "padded"), "Reviews without padding have the right mean. "
                 "Only real tokens may enter the sum, and only they are counted (section 3)."),
        Property(_wrong_half("max", "padded"), _seen_half("max", "padded"), "Reviews without padding have the right one. No "
                 "position of the padding may win, whatever it holds, and no number of yours that takes its place, such as "
                 "-1e4: fill with -inf."),
        Property(_wrong_half("mean", "empty"), _seen_half("mean", "empty"), "A review without a real token gives zeros."),
        Property(_wrong_half("max", "empty"), _seen_half("max", "empty"), "A review without a real token gives zeros."),
        *reaches("x"),
    ),
    hints=(
        "Compute the two halves separately. You already have the first: look at section 3.",
        "For the maximum, fill the padding with a number that every word beats: x.masked_fill(~mask, -math.inf).",
        "The empty review now has -inf. mask.any(dim=1) says which reviews have a word; fill the others with 0.",
        "torch.cat([mean, largest], dim=-1) puts the halves side by side.",
    ),
)

# ---------------------------------------------------------------- 3.3 the order of the lines

def _place(case: Case, letter: str) -> str:
    return f"line {letter} in position {case.answer.split().index(letter) + 1}"


def _cleared(case: Case) -> str:
    order = case.answer.split()
    after = "after the step" if order.index("G") > order.index("A") else "between backward and step"
    what = ("the old gradients were added to the new ones, and the step used both." if after == "after the step" else
            "the new gradient is cleared before the step uses it, so nothing is learned.")
    return f"zero_grad is {_place(case, 'G')}, {after}: {what}"


LINES = (
    "optimizer.step()",
    "loss = F.cross_entropy(logits, labels)",
    "model.eval()",
    "logits = model(token_ids, mask)",
    "loss.backward()",
    "with torch.no_grad(): predictions = model(new_ids, new_mask).argmax(dim=-1)",
    "optimizer.zero_grad()",
    "model.train()",
)

ORDER = Exercise(
    kind="order", lines=LINES, signature='a text with the eight letters in order, such as "A B C D E F G H"',
    mistakes=(
        Mistake("loss-before-forward", lambda case: f"the loss is {_place(case, 'B')}, the forward pass "
                f"{_place(case, 'D')}.", "The loss is computed from logits, and there are none yet."),
        Mistake("backward-before-loss", lambda case: f"backward is {_place(case, 'E')}, the loss {_place(case, 'B')}.",
                "backward starts at the loss and goes back from there. There is no loss yet."),
        Mistake("step-before-backward", lambda case: f"the step is {_place(case, 'A')}, backward {_place(case, 'E')}.",
                "The optimiser moves the parameters against their gradient, and this batch's gradient does not exist yet."),
        Mistake("cleared-too-late", _cleared, "It belongs before backward, which adds to what is there (section 5)."),
        Mistake("predicted-before-step", lambda case: f"the predictions are {_place(case, 'F')}, the step "
                f"{_place(case, 'A')}.", "They come from the model as it was before this step."),
        Mistake("forward-before-train", lambda case: f"model.train() is {_place(case, 'H')}, the forward pass "
                f"{_place(case, 'D')}.", "The forward pass then still runs in evaluation mode. The bag does not notice; a "
                "model with dropout would train without it, and no error says so."),
        Mistake("eval-undone", lambda case: f"model.eval() is {_place(case, 'C')}, model.train() {_place(case, 'H')}.",
                "The later one counts: the predictions are made in training mode. no_grad() does not change that; a model "
                "with dropout would still drop."),
        Mistake("forward-after-eval", lambda case: f"model.eval() is {_place(case, 'C')}, the forward pass of the step "
                f"{_place(case, 'D')}.", "The training step then runs in evaluation mode. Switch after it."),
        Mistake("predicted-in-training-mode", lambda case: f"the predictions are {_place(case, 'F')}, model.eval() "
                f"{_place(case, 'C')}.", "torch.no_grad() switches off gradients and nothing else. A model with dropout "
                "would still drop, and the same review would get two predictions."),
    ),
    properties=(),
    hints=(
        "Begin with the two lines that must come first because of what the step before left behind.",
        "The middle is a chain in which each line needs the one before: logits, loss, gradient, new parameters.",
        "The switch to evaluation mode belongs to the predictions.",
    ),
)

# ---------------------------------------------------------------- 3.5 a direction turned up, down, round

def _unit(case: Case) -> torch.Tensor:
    direction = case.inputs[1].double()
    return direction / direction.norm()


def _coordinates(case: Case) -> str:
    """What became of the coordinate along the direction, for the first vector of which it is not right."""
    unit = _unit(case)
    before, after = ((part.reshape(-1, len(unit)).double() @ unit) for part in (case.inputs[0], case.answer))
    expected = case.inputs[2] * before
    i = int(((after - expected).abs() > 1e-3).int().argmax())
    coordinate = "the first vector's coordinate" if i == 0 else f"the coordinate of vector {i} (counted from 0)"
    return (f"with the factor {case.inputs[2]:g} {coordinate} along the direction goes from {before[i]:.3f} to "
            f"{after[i]:.3f}, expected {expected[i]:.3f}.")


def _rest_moved(case: Case) -> torch.Tensor:
    """How far the part at right angles to the direction moved."""
    change = case.answer - case.inputs[0].double()
    return (change - (change @ _unit(case)).unsqueeze(-1) * _unit(case)).abs().max()


def _rest(case: Case) -> str:
    return (f"with the factor {case.inputs[2]:g}, numbers change by up to {_rest_moved(case):.3f} at right angles to "
            "the direction.")


def _length(case: Case) -> str:
    return f"{_coordinates(case)} The direction has the length {case.inputs[1].norm():.3f}."


TURN = Exercise(
    probes=probes.turn_probes, signature="turn(vectors (..., d_model), direction (d_model), factor) -> (..., d_model)",
    mistakes=(
        Mistake("not-normalised", _length, "The direction is used as it is. Its length then enters twice, once in the "
                "coordinate and once in the vector that is added. Make it one first."),
        Mistake("divided-once", _length, "You divide by the length once. It enters twice: in the coordinate, and in the "
                "vector that the coordinate is multiplied by."),
        Mistake("divided-by-the-square", _length, "The direction is divided by its squared length, so it does not get "
                "length one. Divide the direction by its length, or the product (x · d) d by the square: not both."),
        Mistake("divided-by-the-sum", lambda case: f"{_coordinates(case)} The numbers of the direction sum to "
                f"{case.inputs[1].sum():.3f}.", "You divide by that sum. Length one means that the squares sum to one: "
                "divide by the root of the sum of squares, direction.norm()."),
        Mistake("divided-by-the-sizes", lambda case: f"{_coordinates(case)} The sizes of the direction's numbers sum to "
                f"{case.inputs[1].abs().sum():.3f}.", "You divide by that sum. Length is the root of the sum of squares."),
        Mistake("factor-added", _coordinates, "The part is there once already, and you add it `factor` times more. How "
                "often must it be added so that it is there `factor` times?"),
        Mistake("factor-subtracted", _coordinates, "You subtract the part `factor` times, so 0 changes nothing and 1 "
                "deletes. It should be the other way round."),
        Mistake("one-minus-factor", _coordinates, "The part is there once. To have it `factor` times, factor - 1 times the "
                "part must be added; you add 1 - factor times."),
        Mistake("always-deleted", _coordinates, "The part is deleted whatever the factor is. Put it back, `factor` times."),
        Mistake("only-the-part", _rest, "Only the part along the direction is left. The rest of each vector must stay as it "
                "was."),
        Mistake("only-the-rest", _coordinates, "The factor went to the wrong part: the direction is deleted, and the rest "
                "is multiplied by the factor."),
        Mistake("the-rest-scaled", _rest, "The factor went to the wrong part: the rest of each vector is multiplied, and "
                "the part along the direction stays."),
        Mistake("every-column", _rest, "The coordinate is a number, and it is added to every column. It has to be "
                "multiplied by the direction first: then it is a vector."),
        Mistake("whole-vector", _rest, "The whole vector is multiplied by the factor. Only its part along the direction "
                "should be."),
        Mistake("cosine", _coordinates, "The vectors were made length one before the product, so you have cosines. Only "
                "the direction must have length one; the vectors keep theirs."),
    ),
    properties=(
        Property(lambda case: _rest_moved(case) > 1e-3, _rest, "Only the part along the direction may change."),
        Property(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _coordinates, "The rest of each vector "
                 "stays, which is right. The coordinate along the direction must be multiplied by the factor."),
    ),
    hints=(
        "Split each vector into its part along the direction and the rest. What should become of each?",
        "u = direction / direction.norm(); vectors @ u gives one coordinate for each vector.",
        "(vectors @ u).unsqueeze(-1) * u is the part, as vectors. Subtract it, and add it back `factor` times.",
    ),
)

EXERCISES = (GRADIENT, MEAN_AND_MAX, ORDER, EPOCH, TURN)
