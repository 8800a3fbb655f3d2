"""Exercises of notebook 03, embeddings. The answers stand beside it, in `answers`."""

import torch
from torch import nn

from course_utils.exercises.definitions import Case, Exercise, Mistake, Property
from course_utils.exercises.lessons.common import one_tensor, reached, reaches, what
from course_utils.training import Batch


def _furthest(got: torch.Tensor, right: torch.Tensor) -> str:
    """Where two tensors of one shape differ most, as 'x, expected y'."""
    place = (got - right).abs().flatten().argmax()
    return f"{got.flatten()[place]:.3f}, expected {right.flatten()[place]:.3f}"


# ---------------------------------------------------------------- 3.1 the gradient of a lookup


def _lookup_probes(generator: torch.Generator) -> list[tuple]:
    """Ids of which one occurs three times, one twice and others never; two sizes; then one word of one number."""
    probes = []
    for vocab_size, d_model, never in ((9, 3, 1), (7, 4, 2)):
        ids = torch.randperm(vocab_size - never, generator=generator)[:4]     # the last ids never occur
        ids = torch.cat([ids, ids[:1], ids[:2]])[torch.randperm(7, generator=generator)]
        probes.append((ids, torch.randn(7, d_model, generator=generator), vocab_size))
    return [*probes, (torch.tensor([2]), 100 + torch.rand(1, 1, generator=generator), 4)]


def _observe_gradient(function, token_ids, upstream, vocab_size):
    """The matrix; a sparse one, as nn.Embedding(sparse=True) makes it, is written out."""
    output = function(token_ids, upstream, vocab_size)
    return output.to_dense() if isinstance(output, torch.Tensor) and output.layout != torch.strided else output


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
    probes=_lookup_probes, observe=_observe_gradient,
    signature="embedding_gradient(token_ids (seq_len), upstream (seq_len, d_model), vocab_size) -> (vocab_size, d_model)",
    mistakes=(
        Mistake("last-wins", _of_three, "A word that occurs again overwrites what its row had. So does gradient[token_ids] "
                "+= upstream, which writes each row once. The gradients of all places must be added up (section 1: 'moving "
                "moving dull')."),
        Mistake("counts", lambda case: f"your rows hold whole numbers, up to {case.answer.max():.0f}.",
                "You count how often a word occurs. That is the gradient for the sum of all looked-up numbers, where every "
                "upstream number is 1; here it is not."),
        Mistake("averaged", _of_three, "That is the mean over the places where the word stands. Gradients of several uses "
                "add up."),
        Mistake("sum-of-all", _of_once, "Each row gets the upstream of all places. A row only gets that of the places where "
                "its own word stands."),
        Mistake("by-place", _of_three, "Row i of your matrix is row i of `upstream`: the place in the review instead of the "
                "id. The ids say which row of the matrix each place belongs to."),
        Mistake("a-step", _of_three, "All signs are turned. The minus belongs to the step that the optimiser makes; the "
                "gradient itself has none."),
        Mistake("transposed", lambda case: f"the shape is {tuple(case.answer.shape)}, expected "
                f"{tuple(case.expected.shape)}.", "The numbers are there, but a row must belong to a word of the "
                "vocabulary: swap the two dimensions."),
        Mistake("too-few-rows", lambda case: f"your matrix has {case.answer.shape[0]} rows, and the vocabulary has "
                f"{case.expected.shape[0]} words.", "Left to itself, one_hot stops at the largest id of this review. Give "
                "it vocab_size. The rows that you have are right."),
        Mistake("looked-up", lambda case: f"you return zeros and ones, {tuple(case.answer.shape)}.",
                "That is the one-hot matrix itself. It says which word stands where; now the upstream gradients have to be "
                "carried back through it."),
    ),
    properties=(
        Property(lambda case: (case.answer[_times(case) == 0].abs().max() > 1e-6), lambda case:
                 f"the row of id {_row(case, 0)}, which does not occur, is [{_shown(case.answer[_row(case, 0)])}].",
                 "A word that does not occur gets no gradient (section 1)."),
        Property(lambda case: _off(case, 1), _of_once, "A word that occurs once gets the upstream row of its place."),
        Property(lambda case: _off(case, 3), _of_three, "A word that occurs three times gets the sum of three upstream "
                 "rows."),
    ),
    hints=(
        "Which shapes do one_hot and upstream have? Only one way of multiplying them gives (vocab_size, d_model).",
        "If y = A @ x, the gradient for x is the transposed A times the gradient for y.",
        "one_hot = F.one_hot(token_ids, vocab_size), as float; then one_hot.T @ …",
    ),
)

# ---------------------------------------------------------------- 3.2 mean and maximum


def _pool_probes(generator: torch.Generator) -> list[tuple]:
    """Vectors and masks: three ragged reviews; four with an empty one and one with padding between its words.

    One review has negative numbers only, and padding holds larger numbers than any word. Then numbers far below zero,
    sizes of one, and what `_extreme` adds.
    """
    probes = []
    first = torch.arange(5) < torch.tensor([[5], [3], [1]])
    second = torch.arange(6) < torch.tensor([[2], [6], [0], [5]])
    second[3, 1] = False
    for mask, d_model in ((first, 4), (second, 3)):
        x = torch.randn(*mask.shape, d_model, generator=generator)
        x[1] = -x[1].abs() - 0.2
        x[-1] = -x[-1].abs() - 0.2
        padding = 3 + torch.rand(x.shape, generator=generator)
        probes.append((torch.where(mask[..., None], x, padding), mask))
    low = torch.randn(2, 4, 3, generator=generator) - 120
    probes.append((torch.where(second[2:, :4, None].flip(0), low, 0.0), second[2:, :4].flip(0)))
    return [*probes, (torch.randn(1, 2, 1, generator=generator) - 120, torch.tensor([[True, False]])),
            (torch.randn(2, 1, 2, generator=generator), torch.tensor([[True], [True]])),
            *_extreme(generator)]


def _extreme(generator: torch.Generator) -> list[tuple]:
    """Padding of 1e30; real numbers near -20,000. Both have a review that is padded and one that is not."""
    mask = torch.tensor([[True, True, False], [True, True, True]])
    x = torch.randn(2, 3, 2, generator=generator)
    return [(torch.where(mask[..., None], x, 1e30), mask), (torch.where(mask[..., None], 100 * x - 2e4, 0.0), mask)]


def _observe_pool(function, x, attention_mask):
    """What comes out, and whether a gradient reaches x."""
    output = function(x, attention_mask)
    if output is None:
        return None
    return {"": one_tensor(output, "the pooled reviews"), **reached(function, output, (x, attention_mask), {0: "x"})}


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
        return (f"the {name} half of review {worst}, with {int(real.sum())} of {len(real)} places real, has "
                f"{_furthest(got, right)}.")
    return seen


def _both_halves(case: Case) -> str:
    return f"{_seen_half('mean', 'padded')(case)[:-1]}, and {_seen_half('max', 'padded')(case)}"


def _count_unfit(case: Case) -> str:
    unfit = ~torch.isfinite(case.answer)
    return f"{int(unfit.sum())} of {unfit.numel()} numbers are NaN or infinite."


MEAN_AND_MAX = Exercise(
    probes=_pool_probes, observe=_observe_pool,
    signature="mean_and_max(x (batch, seq_len, d_model), attention_mask (batch, seq_len), True = real) -> (batch, 2 * "
    "d_model)",
    mistakes=(
        Mistake("multiplied-only", _both_halves, "Padding is set to zero and then takes part: it counts in the length of "
                "the mean, and 0 is larger than every negative number. A zero is harmless in a sum only."),
        Mistake("padded-length", _seen_half("mean", "padded"), "The sum is right and is divided by the width of the tensor. "
                "Divide by the number of real tokens (section 3). The second half is right."),
        Mistake("zero-wins", _seen_half("max", "padded"), "All words of that column are negative, and the zeros in the "
                "padding win. What number loses against every other? The first half is right."),
        Mistake("mask-ignored", _both_halves, "The padding takes part in both halves. The mask says which places are real."),
        Mistake("mean-without-mask", _seen_half("mean", "padded"), "What stands in the padding enters the mean. The second "
                "half is right; the first needs the mask too (section 3)."),
        Mistake("padding-in-the-sum", _seen_half("mean", "padded"), "You divide by the number of real tokens, but the sum "
                "runs over all places, and the padding does not hold zeros here. Multiply by the mask before summing."),
        Mistake("max-without-mask", _seen_half("max", "padded"), "That number stands in the padding. The first half is "
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
        Mistake("empty-mean", _count_unfit, "The empty review divides 0 by 0. Section 3 has a way round it. All else is "
                "right."),
        Mistake("inverted", _seen_half("mean", "full"), "The mask is the wrong way round, and you look at the padding "
                "alone. Here True means real, so it is ~mask that must be kept out."),
        Mistake("largest-in-size", _seen_half("max", "full"), "You take the largest distance from zero, without the sign. "
                "-3 is less than 1. The first half is right."),
        Mistake("smallest", _seen_half("max", "full"), "That is the smallest number of the column. The first half is "
                "right."),
        Mistake("swapped", _seen_half("mean", "full"), "The two halves are right but stand the wrong way round: the mean "
                "comes first."),
    ),
    properties=(
        Property(_wrong_half("mean", "full"), _seen_half("mean", "full"), "All its places are real: the mean runs over the "
                 "places, dim=1, and makes the first d_model columns."),
        Property(_wrong_half("max", "full"), _seen_half("max", "full"), "All its places are real: the largest runs over the "
                 "places, dim=1, and makes the last d_model columns."),
        Property(_wrong_half("mean", "padded"), _seen_half("mean", "padded"), "Reviews without padding have the right mean. "
                 "Only real tokens may enter the sum, and only they are counted (section 3)."),
        Property(_wrong_half("max", "padded"), _seen_half("max", "padded"), "Reviews without padding have the right one. No "
                 "place of the padding may win, whatever it holds, and no number of yours that takes its place, such as "
                 "-1e4: fill with -inf."),
        Property(_wrong_half("mean", "empty"), _seen_half("mean", "empty"), "A review without a real token gives zeros."),
        Property(_wrong_half("max", "empty"), _seen_half("max", "empty"), "A review without a real token gives zeros."),
        *reaches("x"),
    ),
    hints=(
        "Compute the two halves apart. The first one you have already: look at section 3.",
        "For the maximum, fill the padding with a number that no word can lose against: x.masked_fill(~mask, -math.inf).",
        "The empty review now has -inf. mask.any(dim=1) says which reviews have a word; fill the others with 0.",
        "torch.cat([mean, largest], dim=-1) puts the halves side by side.",
    ),
)

# ---------------------------------------------------------------- 3.3 the order of the lines


def _place(case: Case, letter: str) -> str:
    return f"line {letter} in place {case.answer.split().index(letter) + 1}"


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

# ---------------------------------------------------------------- 3.4 an epoch


class _Bag(nn.Module):
    """A tiny bag of embeddings that computes something else in training mode, as a model with dropout does."""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.table = nn.Parameter(torch.randn(8, 3, generator=generator))
        self.weight = nn.Parameter(torch.randn(2, 3, generator=generator))
        self.modes: list[bool] = []                                        # one entry a forward pass: training?
        self.masks: list[bool] = []                                        # one entry a forward pass: the batch's mask?

    def forward(self, token_ids, attention_mask=None):
        real = (token_ids != 0 if attention_mask is None else attention_mask).unsqueeze(-1)
        self.masks.append(torch.equal(real.squeeze(-1) != 0, token_ids != 0))
        mean = (self.table[token_ids] * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        self.modes.append(self.training)
        if self.training:
            mean = mean * torch.tensor([1.5, 0.0, 1.5])
        return mean @ self.weight.T                                        # (batch, num_classes)


def _epoch_probes(generator: torch.Generator) -> list[tuple]:
    """The model with one batch, and with four batches of which the last is short."""
    torch.optim.SGD([torch.zeros(1, requires_grad=True)])                  # the first one takes seconds: not in a timed run
    model = _Bag(generator).eval()
    several = []
    for size, seq_len in ((4, 5), (3, 4), (4, 6), (1, 3)):
        token_ids = torch.randint(1, 8, (size, seq_len), generator=generator)
        lengths = 1 + torch.arange(size) % seq_len
        mask = torch.arange(seq_len) < lengths[:, None]
        labels = (torch.arange(size) + torch.randint(2, (1,), generator=generator)) % 2
        several.append(Batch(token_ids * mask, mask, labels, list(range(size))))
    with torch.no_grad():                                                  # the short last batch gets the larger loss
        several[-1].labels[:] = model.train()(several[-1].token_ids).argmin(dim=-1)
    model.eval().modes.clear()
    model.masks.clear()
    return [(model, several[:1]), (model, several)]


def _observe_epoch(function, model, several):
    """The loss that is returned, the parameters afterwards, and the mode of the forward passes.

    If no parameter has moved, also what was called, since that tells why.
    """
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
    steps, backwards = [], []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    model.weight.register_hook(lambda gradient: backwards.append(1))
    try:
        loss = function(model, optimizer, several)
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error) or not steps:
            raise
        raise TypeError("expected backward() before step(), for each batch. Your step changes the weights after the forward "
                        "pass, and the backward pass of the same batch still needs them as they were") from None
    if loss is None:
        return None
    try:
        value = loss[0] if isinstance(loss, (list, tuple)) and len(loss) == 1 else loss
        loss = float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"expected one number, the mean loss over {sum(len(batch.labels) for batch in several)} "
            f"reviews, got {what(loss)}") from None
    moved = any(not torch.equal(old, new) for old, new in zip(before, model.parameters()))
    return {"loss": loss, "table": model.table, "weight": model.weight,
            "training mode": float(all(model.modes)), "right masks": float(all(model.masks)), "moved": "yes" if moved else
            f"backward() {_calls(backwards)}, and step() {_calls(steps)}"}


def _calls(calls: list) -> str:
    return {0: "was never called", 1: "was called once"}.get(len(calls), f"was called {len(calls)} times")


def _gap(case: Case) -> float:
    """How far the parameters are from where they should be."""
    return max((case.got[name] - case.right[name]).abs().max().item() for name in ("table", "weight"))


def _after(case: Case) -> str:
    several = "one batch" if len(case.inputs[1]) == 1 else f"{len(case.inputs[1])} batches"
    return f"after an epoch of {several} your parameters are off by up to {_gap(case):.3f}."


def _losses(case: Case) -> str:
    return f"your epoch returns {case.loss.item():.4f}, expected {case.right['loss'].item():.4f}."


def _still(case: Case) -> bool:
    return case.moved != "yes"


def _only_loss(case: Case) -> str:
    return f"the model is trained rightly, but {_losses(case)}"


EPOCH = Exercise(
    tolerance=1e-4, probes=_epoch_probes, observe=_observe_epoch,
    signature="train_epoch(model, optimizer, several) -> mean loss, a number; `several` is a list of batches with "
    "token_ids, attention_mask and labels",
    mistakes=(
        Mistake("never-cleared", _after, "With one batch they are right; with several, each step uses the sum of all "
                "gradients so far. backward adds to what is there: clear before it, for every batch (section 5)."),
        Mistake("cleared-between", lambda case: f"no parameter has moved, though {case.moved}.",
                "The step had no gradient to go by: it came before backward, or the gradient was cleared between the two."),
        Mistake("no-backward", lambda case: f"no parameter has moved: {case.moved}.", "Without loss.backward() there is no "
                "gradient, and the step does nothing. There is no error."),
        Mistake("no-step", lambda case: f"no parameter has moved: {case.moved}.", "The gradients are computed and never "
                "used: optimizer.step() is missing."),
        Mistake("one-step", _after, "The gradients of all batches add up, and one step follows the loop. step belongs "
                "inside it, and so does zero_grad: a step for each batch."),
        Mistake("last-batch-only-steps", _after, "Only the last batch's gradient is used: step stands after the loop. It "
                "belongs inside."),
        Mistake("mean-of-means", _only_loss, "That is the mean of the batch losses. The last batch is short, and its "
                "reviews count too much; weight each loss by the size of its batch (section 6)."),
        Mistake("last-loss", _only_loss, "That is the loss of the last batch alone. Sum over the batches as you go."),
        Mistake("sum-of-means", _only_loss, "The losses of the batches are summed and not divided. Each is a mean over its "
                "reviews; what is asked for is the mean over all reviews."),
        Mistake("total", _only_loss, "That is the sum over all reviews. Divide by how many there were, in all batches."),
        Mistake("summed", lambda case: f"{_after(case)} The loss that you return is right.", "The gradient is that of the "
                "summed loss, so a batch of four moves four times as far. cross_entropy gives the mean by itself; use that "
                "for backward."),
        Mistake("evaluation-mode", lambda case: f"{_after(case)} The forward passes ran in evaluation mode.",
                "The model came in that mode, and nothing switched it. The bag of this notebook does not notice; a model "
                "with dropout does."),
        Mistake("softmax-first", _losses, "cross_entropy got probabilities. It takes logits and does the softmax itself; "
                "done twice, the loss cannot come near zero and the gradients are small. There is no error."),
        Mistake("returned-in-the-loop", _after, "They are where the first batch left them: the return stands inside the "
                "loop, so the other batches are never seen. Move it to the left."),
    ),
    properties=(
        Property(lambda case: case.got["right masks"] != 1, lambda case: f"{_after(case)[:-1]}, and the model got another "
                 "mask than the batch's.", "Hand over batch.attention_mask as it is, True = real: with a mask of ones "
                 "padding is read as words, and an inverted one hides the words."),
        Property(_still, lambda case: f"no parameter has moved: {case.moved}.", "A step needs three things in this order: a "
                 "cleared gradient, backward, step."),
        Property(lambda case: case.got["training mode"] != 1, lambda case: f"{_after(case)} At least one forward pass ran "
                 "in evaluation mode.", "model.train() comes before the loop, and nothing in the loop should switch back."),
        Property(lambda case: len(case.inputs[1]) == 1 and _gap(case) > 1e-4, _after, "So something inside one step is not "
                 "as in section 5: forward, loss, clear, backward, step, each once."),
        Property(lambda case: _gap(case) > 1e-4, _after, "With one batch they are right, so a step by itself is. Which "
                 "lines belong inside the loop, and does every batch get its step?"),
        Property(lambda case: len(case.inputs[1]) == 1 and abs(case.loss - case.right["loss"]) > 1e-4, _only_loss,
                 "For a single batch this is the loss that cross_entropy gave, before the step."),
        Property(lambda case: abs(case.loss - case.right["loss"]) > 1e-4, _only_loss, "For a single batch it is right. For "
                 "several, each batch counts by its number of reviews."),
    ),
    hints=(
        "Six lines in the loop: forward, loss, clear, backward, step, and one that remembers the loss.",
        "loss.item() * len(batch.labels) is the summed loss of one batch. Add it up, and count the reviews as well.",
        "model.train() before the loop, return loss_sum / count after it.",
    ),
)

# ---------------------------------------------------------------- 3.5 a direction turned up, down, round


def _turn_probes(generator: torch.Generator) -> list[tuple]:
    """Vectors (5, 4) and (2, 3, 6), directions that are not of length one, factors above one, zero and negative.

    Then a single vector, large and without a dimension in front.
    """
    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    direction = torch.tensor([1.4, 0.7, -0.4, 0.9]) + 0.2 * draw(4)
    longer = torch.tensor([1.2, 0.6, -0.5, 0.9, 0.5, 1.1]) + 0.2 * draw(6)
    return [(draw(5, 4), direction, 2.5), (draw(2, 3, 6), longer, -1.0), (draw(5, 4), direction, 0.0),
            (100 * draw(4), direction, 2.0)]


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
    probes=_turn_probes, signature="turn(vectors (..., d_model), direction (d_model), factor) -> (..., d_model)",
    mistakes=(
        Mistake("not-normalised", _length, "The direction is used as it is. Its length then enters twice, once in the "
                "coordinate and once in the vector that is added. Make it one first."),
        Mistake("divided-once", _length, "You divide by the length once. It enters twice: in the coordinate, and in the "
                "vector that the coordinate is multiplied with."),
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
                "deletes. It is asked the other way round."),
        Mistake("one-minus-factor", _coordinates, "The part is there once. To have it `factor` times, factor - 1 times the "
                "part must be added; you add 1 - factor times."),
        Mistake("always-deleted", _coordinates, "The part is deleted whatever the factor is. Put it back, `factor` times."),
        Mistake("only-the-part", _rest, "Only the part along the direction is left. The rest of each vector must stay as it "
                "was."),
        Mistake("only-the-rest", _coordinates, "The factor went to the wrong part: the direction is deleted, and the rest "
                "is multiplied by the factor."),
        Mistake("the-rest-scaled", _rest, "The factor went to the wrong part: the rest of each vector is multiplied, and "
                "the part along the direction stays."),
        Mistake("every-column", _rest, "The coordinate is a number, and it is added to every column alike. It has to be "
                "multiplied with the direction first: then it is a vector."),
        Mistake("whole-vector", _rest, "The whole vector is multiplied by the factor. Only its part along the direction "
                "should be."),
        Mistake("cosine", _coordinates, "The vectors were made length one before the product, so you have cosines. It is "
                "the direction that must have length one; the vectors keep theirs."),
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
