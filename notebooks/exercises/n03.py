"""Exercises and quiz of notebook 03, embeddings."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from course_utils.embeddings import masked_mean
from course_utils.exercises.definitions import Case
from course_utils.exercises.records import M, R, ask
from course_utils.training import Batch

from course_exercises.common import (
    gap,
    items_of,
    listed,
    no_module,
    one_loss,
    one_tensor,
    pair_of,
    reached,
    reaches,
    spread,
    what,
    whole_id,
    worst_row,
)

# ---------------------------------------------------------------- 3.1 the gradient of a lookup

def embedding_gradient(token_ids, upstream, vocab_size):
    one_hot = F.one_hot(token_ids, vocab_size).to(upstream.dtype)          # (seq_len, vocab_size)
    return one_hot.T @ upstream                                            # (vocab_size, d_model)


def _last_wins(token_ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[1])
    for token_id, row in zip(token_ids.tolist(), upstream):
        gradient[token_id] = row
    return gradient


def _counts(token_ids, upstream, vocab_size):
    return torch.bincount(token_ids, minlength=vocab_size).float()[:, None].expand(-1, upstream.shape[1])


def _averaged(token_ids, upstream, vocab_size):
    times = torch.bincount(token_ids, minlength=vocab_size).clamp(min=1)[:, None]
    return embedding_gradient(token_ids, upstream, vocab_size) / times


def _sum_of_all(token_ids, upstream, vocab_size):
    return _counts(token_ids, upstream, vocab_size) * upstream.sum(dim=0)


def _by_place(token_ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[1])
    gradient[: len(upstream)] = upstream
    return gradient


def lookup_probes(generator: torch.Generator) -> list[tuple]:
    """Ids of which one occurs three times, one twice and others never; two sizes; then one word of one number."""
    probes = []
    for vocab_size, d_model, never in ((9, 3, 1), (7, 4, 2)):
        ids = torch.randperm(vocab_size - never, generator=generator)[:4]     # the last ids never occur
        ids = torch.cat([ids, ids[:1], ids[:2]])[torch.randperm(7, generator=generator)]
        probes.append((ids, torch.randn(7, d_model, generator=generator), vocab_size))
    return [*probes, (torch.tensor([2]), 100 + torch.rand(1, 1, generator=generator), 4)]


def observe_gradient(function, token_ids, upstream, vocab_size):
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


GRADIENT = ask(
    "3.1", embedding_gradient, probes=lookup_probes, observe=observe_gradient,
    signature="embedding_gradient(token_ids (seq_len), upstream (seq_len, d_model), vocab_size) -> (vocab_size, d_model)",
    mistakes={
        "last-wins": M(_last_wins, _of_three, "A word that occurs again overwrites what its row had. So does "
                       "gradient[token_ids] += upstream, which writes each row once. The gradients of all positions must "
                       "be added up (section 1: 'moving moving dull')."),
        "counts": M(_counts, lambda case: f"your rows hold whole numbers, up to {case.answer.max():.0f}.",
                    "You count how often a word occurs. That is the gradient for the sum of all looked-up numbers, where "
                    "every upstream number is 1. Here they aren't."),
        "ones": M(lambda ids, up, n: (_counts(ids, up, n) > 0).float(), "your rows hold nothing but ones and zeros.", "You "
                  "mark the rows of the words that occur, and don't use `upstream`. Each row gets the sum of the upstream "
                  "rows of its word's positions."),
        "averaged": M(_averaged, _of_three, "That is the mean over the positions of the word. Gradients of several uses "
                      "add up."),
        "sum-of-all": M(_sum_of_all, _of_once, "Each row gets the upstream of all positions. A row should only get that of "
                        "the positions of its own word."),
        "by-place": M(_by_place, _of_three, "Row i of your matrix is row i of `upstream`: the position in the review "
                      "instead of the id. The ids say which row of the matrix each position belongs to."),
        "a-step": M(lambda ids, up, n: -embedding_gradient(ids, up, n), _of_three, "All signs are reversed. The minus "
                    "belongs to the step that the optimizer makes; the gradient itself has none."),
        "transposed": M(lambda ids, up, n: embedding_gradient(ids, up, n).T, lambda case: "the shape is "
                        f"{tuple(case.answer.shape)}, expected {tuple(case.expected.shape)}.",
                        "The numbers are there, but a row must belong to a word of the vocabulary: swap the two "
                        "dimensions."),
        "too-few-rows": M(lambda ids, up, n: embedding_gradient(ids, up, int(ids.max()) + 1), lambda case:
                          f"your matrix has {case.answer.shape[0]} rows, and the vocabulary has {case.expected.shape[0]} "
                          "words.", "Left to itself, one_hot stops at the largest id of this review. Give it vocab_size. "
                          "The rows that you have are right."),
        "looked-up": M(lambda ids, up, n: F.one_hot(ids, n), lambda case: "you return zeros and ones, "
                       f"{tuple(case.answer.shape)}.", "That is the one-hot matrix itself. It says which word is where; "
                       "now the upstream gradients have to be carried back through it."),
    },
    rules=(
        R(lambda case: (case.answer[_times(case) == 0].abs().max() > 1e-6), lambda case: f"the row of id {_row(case, 0)}, "
          f"which does not occur, is [{_shown(case.answer[_row(case, 0)])}].", "A word that does not occur gets no "
          "gradient (section 1)."),
        R(lambda case: _off(case, 1), _of_once, "A word that occurs once gets the upstream row of its position."),
        R(lambda case: _off(case, 3), _of_three, "A word that occurs three times gets the sum of three upstream rows."),
    ),
    hints=(
        "Which shapes do one_hot and upstream have? Only one way of multiplying them gives (vocab_size, d_model).",
        "If y = A @ x, the gradient with respect to x is the transposed A times the one with respect to y.",
        "one_hot = F.one_hot(token_ids, vocab_size), as float; then one_hot.T @ …",
    ),
)

# ---------------------------------------------------------------- 3.2 mean and maximum

def mean_and_max(x, attention_mask):
    mask = attention_mask.unsqueeze(-1)                                    # (batch, seq_len, 1)
    mean = (x * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)            # (batch, d_model)
    largest = x.masked_fill(~mask, -math.inf).amax(dim=1)                  # (batch, d_model): padding never wins
    largest = largest.masked_fill(~mask.any(dim=1), 0.0)                   # no real token: zeros
    return torch.cat([mean, largest], dim=-1)                              # (batch, 2 * d_model)


def _pools(mean="right", largest="right", empty=True, swapped=False):
    """Mean and maximum with one or more things changed."""
    def pool(x, attention_mask):
        mask = attention_mask.unsqueeze(-1)
        count = mask.sum(dim=1)
        left = {"right": lambda: (x * mask).sum(dim=1) / (count.clamp(min=1) if empty else count),
                "padded length": lambda: (x * mask).mean(dim=1),
                "ignored": lambda: x.mean(dim=1),
                "sum": lambda: (x * mask).sum(dim=1),
                "sum ignored": lambda: x.sum(dim=1) / count.clamp(min=1)}[mean]()
        some = mask.any(dim=1)
        right = {"right": lambda: x.masked_fill(~mask, -math.inf).amax(dim=1).masked_fill(~some, 0.0),
                 "-inf": lambda: x.masked_fill(~mask, -math.inf).amax(dim=1),
                 "lowest": lambda: x.masked_fill(~mask, torch.finfo(x.dtype).min).amax(dim=1),
                 "zero": lambda: (x * mask).amax(dim=1),
                 "ignored": lambda: x.amax(dim=1),
                 "size": lambda: (x * mask).abs().amax(dim=1),
                 "min": lambda: x.masked_fill(~mask, math.inf).amin(dim=1).masked_fill(~some, 0.0)}[largest]()
        return torch.cat([right, left] if swapped else [left, right], dim=-1)
    return pool


def pool_probes(generator: torch.Generator) -> list[tuple]:
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


def observe_pool(function, x, attention_mask):
    """What comes out, and whether a gradient reaches x."""
    output = function(x, attention_mask)
    if output is None:
        return None
    return {"": one_tensor(output, "the pooled reviews"), **reached(function, output, (x, attention_mask), {0: "x"})}


def _furthest(got: torch.Tensor, right: torch.Tensor) -> str:
    """Where two tensors of one shape differ most, as 'x, expected y'."""
    place = (got - right).abs().flatten().argmax()
    return f"{got.flatten()[place]:.3f}, expected {right.flatten()[place]:.3f}"


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


MEAN_AND_MAX = ask(
    "3.2", mean_and_max, probes=pool_probes, observe=observe_pool,
    signature="mean_and_max(x (batch, seq_len, d_model), attention_mask (batch, seq_len), True = real) -> (batch, 2 * "
    "d_model)",
    mistakes={
        "multiplied-only": M(_pools(mean="padded length", largest="zero"), _both_halves, "Padding is set to zero but still "
                             "takes part: it counts in the length of the mean, and 0 is larger than every negative number. "
                             "A zero is harmless in a sum only."),
        "padded-length": M(_pools(mean="padded length"), _seen_half("mean", "padded"), "The sum is right and is divided by "
                           "the width of the tensor. Divide by the number of real tokens (section 2). The second half is "
                           "right."),
        "zero-wins": M(_pools(largest="zero"), _seen_half("max", "padded"), "All words of that column are negative, and "
                       "the zeros in the padding win. What number is smaller than every other? The first half is right."),
        "mask-ignored": M(_pools(mean="ignored", largest="ignored"), _both_halves, "The padding takes part in both halves. "
                          "The mask says which positions are real."),
        "mean-without-mask": M(_pools(mean="ignored"), _seen_half("mean", "padded"), "The numbers in the padding enter the "
                               "mean. The second half is right; the first needs the mask too (section 2)."),
        "padding-in-the-sum": M(_pools(mean="sum ignored"), _seen_half("mean", "padded"), "You divide by the number of "
                                "real tokens, but the sum runs over all positions, and the padding does not hold zeros "
                                "here. Multiply by the mask before summing."),
        "max-without-mask": M(_pools(largest="ignored"), _seen_half("max", "padded"), "That number is in the padding. The "
                              "first half is right; the second needs the mask too."),
        "not-divided": M(_pools(mean="sum"), _seen_half("mean", "full"), "That is the sum. It grows with the length of the "
                         "review; divide by the number of real tokens."),
        "empty-minus-infinity": M(_pools(largest="-inf"), _count_unfit, "The largest of nothing but -inf is -inf. All "
                                  "reviews with words are right; the empty one needs zeros, since one infinite number "
                                  "spoils the loss of a batch."),
        "empty-lowest": M(_pools(largest="lowest"), lambda case: f"the empty review has {case.answer.min():.2g} in its "
                          "second half.", "That is the number with which the padding was filled. All reviews with words "
                          "are right; put zeros where the mask has no True."),
        "empty-both": M(_pools(largest="-inf", empty=False), _count_unfit, "All reviews with words are right. The empty "
                        "one has 0/0 in its mean, and -inf as its largest number. Both halves must be zeros."),
        "empty-mean": M(_pools(empty=False), _count_unfit, "The empty review divides 0 by 0. Section 2 shows a way around "
                        "it. All else is right."),
        "inverted": M(lambda x, mask: mean_and_max(x, ~mask), _seen_half("mean", "full"), "The mask is the wrong way "
                      "round, and you look at the padding alone. Here True means real, so exclude ~mask."),
        "largest-in-size": M(_pools(largest="size"), _seen_half("max", "full"), "You take the largest distance from zero, "
                             "without the sign. -3 is less than 1. The first half is right."),
        "smallest": M(_pools(largest="min"), _seen_half("max", "full"), "That is the smallest number of the column. The "
                      "first half is right."),
        "swapped": M(_pools(swapped=True), _seen_half("mean", "full"), "The two halves are right but the wrong way round: "
                     "the mean comes first."),
    },
    rules=(
        R(_wrong_half("mean", "full"), _seen_half("mean", "full"), "All its positions are real: the mean runs over the "
          "positions, dim=1, and makes the first d_model columns."),
        R(_wrong_half("max", "full"), _seen_half("max", "full"), "All its positions are real: the largest runs over the "
          "positions, dim=1, and makes the last d_model columns."),
        R(_wrong_half("mean", "padded"), _seen_half("mean", "padded"), "Reviews without padding have the right mean. Only "
          "real tokens may enter the sum, and only they are counted (section 2)."),
        R(_wrong_half("max", "padded"), _seen_half("max", "padded"), "Reviews without padding have the right one. No "
          "position of the padding may win, whatever it holds, and no number of yours that takes its place, such as -1e4: "
          "fill with -inf."),
        R(_wrong_half("mean", "empty"), _seen_half("mean", "empty"), "A review without a real token gives zeros."),
        R(_wrong_half("max", "empty"), _seen_half("max", "empty"), "A review without a real token gives zeros."),
        *reaches("x"),
    ),
    hints=(
        "Compute the two halves separately. You already have the first: look at section 2.",
        "For the maximum, fill the padding with a number that every word beats: x.masked_fill(~mask, -math.inf).",
        "The empty review now has -inf. mask.any(dim=1) says which reviews have a word; fill the others with 0.",
        "torch.cat([mean, largest], dim=-1) puts the halves side by side.",
    ),
)

# ---------------------------------------------------------------- 3.3 the order of the lines

def order_of_lines():
    # One right order: H D B G E A C F. G may also stand anywhere before E, and C anywhere between D and F.
    # Each entry: this line must stand before that one, and the name of the mistake if it does not.
    return [
        ("D", "B", "loss-before-forward"),
        ("B", "E", "backward-before-loss"),
        ("E", "A", "step-before-backward"),
        ("G", "E", "cleared-too-late"),
        ("A", "F", "predicted-before-step"),
        ("H", "D", "forward-before-train"),
        ("H", "C", "eval-undone"),
        ("D", "C", "forward-after-eval"),
        ("C", "F", "predicted-in-training-mode"),
    ]


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


ORDER = ask(
    "3.3", order_of_lines, kind="order", lines=LINES,
    signature='a text with the eight letters in order, such as "A B C D E F G H"',
    mistakes={
        "loss-before-forward": M(lambda: "H B D G E A C F", lambda case: f"the loss is {_place(case, 'B')}, the forward "
                                 f"pass {_place(case, 'D')}.", "The loss is computed from logits, and there are none yet."),
        "backward-before-loss": M(lambda: "H D G E B A C F", lambda case: f"backward is {_place(case, 'E')}, the loss "
                                  f"{_place(case, 'B')}.", "backward starts at the loss and goes back from there. There is "
                                  "no loss yet."),
        "step-before-backward": M(lambda: "H D B G A E C F", lambda case: f"the step is {_place(case, 'A')}, backward "
                                  f"{_place(case, 'E')}.", "The optimizer moves the parameters against their gradient, and "
                                  "this batch's gradient does not exist yet."),
        "cleared-too-late": M(lambda: "H D B E G A C F", _cleared, "It belongs before backward, which adds to what is "
                              "there (section 4)."),
        "predicted-before-step": M(lambda: "H D B G E C F A", lambda case: f"the predictions are {_place(case, 'F')}, the "
                                   f"step {_place(case, 'A')}.", "They come from the model as it was before this step."),
        "forward-before-train": M(lambda: "D H B G E A C F", lambda case: f"model.train() is {_place(case, 'H')}, the "
                                  f"forward pass {_place(case, 'D')}.", "The forward pass then still runs in evaluation "
                                  "mode. The bag does not notice; a model with dropout would train without it, and no "
                                  "error says so."),
        "eval-undone": M(lambda: "C H D B G E A F", lambda case: f"model.eval() is {_place(case, 'C')}, model.train() "
                         f"{_place(case, 'H')}.", "The later one counts: the predictions are made in training mode. "
                         "no_grad() does not change that; a model with dropout would still drop."),
        "forward-after-eval": M(lambda: "H C D B G E A F", lambda case: f"model.eval() is {_place(case, 'C')}, the forward "
                                f"pass of the step {_place(case, 'D')}.", "The training step then runs in evaluation mode. "
                                "Switch after it."),
        "predicted-in-training-mode": M(lambda: "H D B G E A F C", lambda case: f"the predictions are {_place(case, 'F')}, "
                                        f"model.eval() {_place(case, 'C')}.", "torch.no_grad() switches off gradients and "
                                        "nothing else. A model with dropout would still drop, and the same review would "
                                        "get two predictions."),
    },
    rules=(),
    hints=(
        "Begin with the two lines that must come first because of what the step before left behind.",
        "The middle is a chain in which each line needs the one before: logits, loss, gradient, new parameters.",
        "The switch to evaluation mode belongs to the predictions.",
    ),
)

# ---------------------------------------------------------------- 3.4 an epoch

def train_epoch(model, optimizer, several):
    model.train()
    loss_sum, count = 0.0, 0
    for batch in several:
        logits = model(batch.token_ids, batch.attention_mask)              # (batch, num_classes)
        loss = F.cross_entropy(logits, batch.labels)                       # mean over this batch
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(batch.labels)                        # a short batch counts for less
        count += len(batch.labels)
    return loss_sum / count


def _epoch(clear="before", backward=True, step="each", mode=True, reduction="mean", softmax=False, report="right",
           only=None, fresh=True):
    """An epoch with one or more things changed."""
    def train(model, optimizer, several):
        if mode:
            model.train()
        if fresh:
            optimizer.zero_grad()                                          # once, before the loop
        losses, sizes = [], []
        for batch in several[:only]:
            logits = model(batch.token_ids, batch.attention_mask)
            loss = F.cross_entropy(logits.softmax(-1) if softmax else logits, batch.labels, reduction=reduction)
            if clear == "before":
                optimizer.zero_grad()
            if backward:
                loss.backward()
            if clear == "between":
                optimizer.zero_grad()
            if step == "each":
                optimizer.step()
            if clear == "after":
                optimizer.zero_grad()
            losses.append(loss.item())
            sizes.append(len(batch.labels))
        if step == "once":
            optimizer.step()
        total = sum(one * size for one, size in zip(losses, sizes)) if reduction == "mean" else sum(losses)
        return {"right": total / sum(sizes), "means": sum(losses) / len(losses), "last": losses[-1], "sum": sum(losses),
                "total": total, "means over reviews": sum(losses) / sum(sizes)}[report]
    return train


class _Bag(nn.Module):
    """A tiny bag of embeddings that computes something else in training mode, as a model with dropout does."""

    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.table = nn.Parameter(torch.randn(8, 3, generator=generator))
        self.weight = nn.Parameter(torch.randn(2, 3, generator=generator))
        self.modes: list[bool] = []                                        # one entry a forward pass: training?
        self.needs_mask = False
        self.masks: list[bool] = []                                        # one entry a forward pass: the batch's mask?
        self.batches: list[Batch] = []                                     # those whose padding holds words

    def _mask_of(self, token_ids):
        """The mask that comes with these ids."""
        return next((batch.attention_mask for batch in self.batches if torch.equal(batch.token_ids, token_ids)),
                    token_ids != 0)

    def forward(self, token_ids, attention_mask=None):
        if attention_mask is None and self.needs_mask:
            raise TypeError("forward() needs the mask as well: model(batch.token_ids, batch.attention_mask)")
        real = (token_ids != 0 if attention_mask is None else attention_mask).unsqueeze(-1)
        self.masks.append(torch.equal(real.squeeze(-1) != 0, self._mask_of(token_ids)))
        mean = (self.table[token_ids] * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        self.modes.append(self.training)
        if self.training:
            mean = mean * torch.tensor([1.5, 0.0, 1.5])
        return mean @ self.weight.T                                        # (batch, num_classes)


def epoch_probes(generator: torch.Generator) -> list[tuple]:
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


def observe_epoch(function, model, several):
    """The loss that is returned, the parameters afterwards, and the mode of the forward passes.

    If no parameter has moved, also what was called, since that tells why. The gradients of an earlier step are there.
    """
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = parameter.detach().flip(0) / 2
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
    return f"the model is trained correctly, but {_losses(case)}"


def _nothing_moved(case: Case) -> str:
    return f"no parameter has moved: {case.moved}."


EPOCH = ask(
    "3.4", train_epoch, tolerance=1e-4, probes=epoch_probes, observe=observe_epoch,
    signature="train_epoch(model, optimizer, several) -> mean loss, a number; `several` is a list of batches with "
    "token_ids, attention_mask and labels",
    mistakes={
        "never-cleared": M(_epoch(clear="never"), _after, "With one batch they are right; with several, each step uses the "
                           "sum of all gradients so far. backward adds to what is there: clear before it, for every batch "
                           "(section 4)."),
        "cleared-at-the-end": M(_epoch(clear="after", fresh=False), _after, "You clear after the step, and gradients of an "
                                "earlier step were there when the epoch began: backward added to them. Clear before "
                                "backward."),
        "nowhere-cleared": M(_epoch(clear="never", fresh=False), _after, "The gradients are never cleared, and those of an "
                             "earlier step were there when the epoch began: backward adds to what is there. Clear before "
                             "it, for every batch (section 4)."),
        "one-step-nothing-cleared": M(_epoch(clear="never", step="once", fresh=False), _after, "The gradients of all "
                                      "batches add up, on top of those of an earlier step, and one step follows the loop. A "
                                      "step for each batch belongs inside it, and zero_grad before each backward."),
        "cleared-between": M(_epoch(clear="between"), lambda case: f"no parameter has moved, though {case.moved}.",
                             "The step had no gradient to go by: it came before backward, or the gradient was cleared "
                             "between the two."),
        "no-backward": M(_epoch(backward=False), _nothing_moved, "Without loss.backward() there is no gradient, and the "
                         "step does nothing. There is no error."),
        "no-step": M(_epoch(step="never"), _nothing_moved, "The gradients are computed and never used: optimizer.step() is "
                     "missing."),
        "one-step": M(_epoch(clear="never", step="once"), _after, "The gradients of all batches add up, and one step "
                      "follows the loop. step belongs inside it, and so does zero_grad: a step for each batch."),
        "last-batch-only-steps": M(_epoch(step="once"), _after, "Only the last batch's gradient is used: step comes after "
                                   "the loop. It belongs inside."),
        "mean-of-means": M(_epoch(report="means"), _only_loss, "That is the mean of the batch losses. The last batch is "
                           "short, and its reviews count too much; weight each loss by the size of its batch (section 5)."),
        "last-loss": M(_epoch(report="last"), _only_loss, "That is the loss of the last batch alone. Sum over the batches "
                       "as you go."),
        "sum-of-means": M(_epoch(report="sum"), _only_loss, "The losses of the batches are summed and not divided. Each is "
                          "a mean over its reviews; what is asked for is the mean over all reviews."),
        "means-over-reviews": M(_epoch(report="means over reviews"), _only_loss, "You add mean losses and divide by the "
                                "number of reviews. Multiply each by the size of its batch first."),
        "total": M(_epoch(report="total"), _only_loss, "That is the sum over all reviews. Divide by how many there were, "
                   "in all batches."),
        "summed": M(_epoch(reduction="sum"), lambda case: f"{_after(case)} The loss that you return is right.",
                    "You took the gradient of the summed loss, so a batch of four moves four times as far. cross_entropy "
                    "gives the mean by itself; use that for backward."),
        "evaluation-mode": M(_epoch(mode=False), lambda case: f"{_after(case)} The forward passes ran in evaluation mode.",
                             "The model came in that mode, and nothing switched it. The bag of this notebook does not "
                             "notice; a model with dropout does."),
        "softmax-first": M(_epoch(softmax=True), _losses, "cross_entropy got probabilities. It takes logits and does the "
                           "softmax itself; done twice, the loss cannot come near zero and the gradients are small. There "
                           "is no error."),
        "returned-in-the-loop": M(_epoch(only=1), _after, "They are where the first batch left them: the return is inside "
                                  "the loop, so the other batches are never seen. Move it to the left."),
    },
    rules=(
        R(lambda case: case.got["right masks"] != 1, lambda case: f"{_after(case)[:-1]}, and the model got a mask that "
          "isn't the batch's.", "Pass batch.attention_mask as it is, True = real: with a mask of ones padding is read as "
          "words, and an inverted one hides the words."),
        R(_still, _nothing_moved, "A step needs three things in this order: a cleared gradient, backward, step."),
        R(lambda case: case.got["training mode"] != 1, lambda case: f"{_after(case)} At least one forward pass ran in "
          "evaluation mode.", "model.train() comes before the loop, and nothing in the loop should switch back."),
        R(lambda case: len(case.inputs[1]) == 1 and _gap(case) > 1e-4, _after, "So something inside one step is not as in "
          "section 4: forward, loss, clear, backward, step, each once."),
        R(lambda case: _gap(case) > 1e-4, _after, "With one batch they are right, so a step by itself is. Which lines "
          "belong inside the loop, and does every batch get its step?"),
        R(lambda case: len(case.inputs[1]) == 1 and abs(case.loss - case.right["loss"]) > 1e-4, _only_loss,
          "For a single batch this is the loss that cross_entropy gave, before the step."),
        R(lambda case: abs(case.loss - case.right["loss"]) > 1e-4, _only_loss, "For a single batch it is right. For "
          "several, each batch counts by its number of reviews."),
    ),
    hints=(
        "Six lines in the loop: forward, loss, clear, backward, step, and one that remembers the loss.",
        "loss.item() * len(batch.labels) is the summed loss of one batch. Add it up, and count the reviews as well.",
        "model.train() before the loop, return loss_sum / count after it.",
    ),
)

# ---------------------------------------------------------------- 3.5 a direction turned up, down, round

def turn(vectors, direction, factor):
    unit = direction / direction.norm()                                    # length one
    along = (vectors @ unit).unsqueeze(-1) * unit                          # (..., d_model): the part along the direction
    return vectors - along + factor * along


def _turned(unit="norm", amount=lambda factor: factor - 1, whole=False, broadcast=False, rows=False):
    def change(vectors, direction, factor):
        length = {"norm": direction.norm(), "none": 1.0, "once": direction.norm() ** 0.5, "sum": direction.sum(),
                  "size": direction.abs().sum(), "square": direction.norm() ** 2}[unit]
        one = direction / length
        given = F.normalize(vectors, dim=-1) if rows else vectors
        along = (given @ one).unsqueeze(-1) * (torch.ones_like(one) if broadcast else one)
        return factor * vectors if whole else vectors + amount(factor) * along
    return change


def turn_probes(generator: torch.Generator) -> list[tuple]:
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


TURN = ask(
    "3.5", turn, probes=turn_probes,
    signature="turn(vectors (..., d_model), direction (d_model), factor) -> (..., d_model)",
    mistakes={
        "not-normalised": M(_turned(unit="none"), _length, "The direction is used as it is. Its length then enters twice, "
                            "once in the coordinate and once in the vector that is added. Make it one first."),
        "divided-once": M(_turned(unit="once"), _length, "You divide by the length once. It enters twice: in the "
                          "coordinate, and in the vector that the coordinate is multiplied by."),
        "divided-by-the-square": M(_turned(unit="square"), _length, "The direction is divided by its squared length, so it "
                                   "does not get length one. Divide the direction by its length, or the product (x · d) d "
                                   "by the square: not both."),
        "divided-by-the-sum": M(_turned(unit="sum"), lambda case: f"{_coordinates(case)} The numbers of the direction sum "
                                f"to {case.inputs[1].sum():.3f}.", "You divide by that sum. Length one means that the "
                                "squares sum to one: divide by the root of the sum of squares, direction.norm()."),
        "divided-by-the-sizes": M(_turned(unit="size"), lambda case: f"{_coordinates(case)} The sizes of the direction's "
                                  f"numbers sum to {case.inputs[1].abs().sum():.3f}.", "You divide by that sum. Length is "
                                  "the root of the sum of squares."),
        "factor-added": M(_turned(amount=lambda factor: factor), _coordinates, "The part is there once already, and you "
                          "add it `factor` times more. How often must it be added so that it is there `factor` times?"),
        "factor-subtracted": M(_turned(amount=lambda factor: -factor), _coordinates, "You subtract the part `factor` "
                               "times, so 0 changes nothing and 1 deletes. It should be the other way round."),
        "one-minus-factor": M(_turned(amount=lambda factor: 1 - factor), _coordinates, "The part is there once. To have it "
                              "`factor` times, factor - 1 times the part must be added; you add 1 - factor times."),
        "always-deleted": M(_turned(amount=lambda factor: -1.0), _coordinates, "The part is deleted whatever the factor "
                            "is. Put it back, `factor` times."),
        "only-the-part": M(lambda v, d, f: turn(v, d, f) - turn(v, d, 0.0), _rest, "Only the part along the direction is "
                           "left. The rest of each vector must stay as it was."),
        "only-the-rest": M(lambda v, d, f: f * turn(v, d, 0.0), _coordinates, "The factor went to the wrong part: the "
                           "direction is deleted, and the rest is multiplied by the factor."),
        "the-rest-scaled": M(lambda v, d, f: v + (f - 1) * turn(v, d, 0.0), _rest, "The factor went to the wrong part: the "
                             "rest of each vector is multiplied, and the part along the direction stays."),
        "every-column": M(_turned(broadcast=True), _rest, "The coordinate is a number, and it is added to every column. It "
                          "has to be multiplied by the direction first: then it is a vector."),
        "whole-vector": M(_turned(whole=True), _rest, "The whole vector is multiplied by the factor. Only its part along "
                          "the direction should be."),
        "cosine": M(_turned(rows=True), _coordinates, "The vectors were made length one before the product, so you have "
                    "cosines. Only the direction must have length one; the vectors keep theirs."),
    },
    rules=(
        R(lambda case: _rest_moved(case) > 1e-3, _rest, "Only the part along the direction may change."),
        R(lambda case: (case.answer - case.expected).abs().max() > 1e-4, _coordinates, "The rest of each vector stays, "
          "which is right. The coordinate along the direction must be multiplied by the factor."),
    ),
    hints=(
        "Split each vector into its part along the direction and the rest. What should become of each?",
        "u = direction / direction.norm(); vectors @ u gives one coordinate for each vector.",
        "(vectors @ u).unsqueeze(-1) * u is the part, as vectors. Subtract it, and add it back `factor` times.",
    ),
)

# ---------------------------------------------------------------- 3.6 the classifier as a module

class Bag(nn.Module):
    def __init__(self, vocab_size, d_model, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=0)
        self.output = nn.Linear(d_model, num_classes)

    def forward(self, token_ids, attention_mask):
        vectors = self.embedding(token_ids)                                # (batch, seq_len, d_model)
        mean = masked_mean(vectors, attention_mask)                        # (batch, d_model)
        return self.output(mean)                                           # (batch, num_classes)


def bag_probes(generator: torch.Generator) -> list[tuple]:
    """Sizes of the model and a batch of ids with its mask: three ragged reviews; two; a single one without padding.

    Then two of which the mask hides a word, whose id isn't 0; and two of which one has no words.
    """
    probes = []
    for sizes, lengths in (((9, 4, 3), (5, 2, 3)), ((7, 3, 2), (1, 4)), ((6, 5, 4), (3,)), ((8, 4, 2), (2, 4)),
                           ((5, 3, 3), (3, 0))):
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        ids = torch.randint(1, sizes[0], mask.shape, generator=generator)
        probes.append((*sizes, ids * mask, mask))
    probes[3][3][0, 2] = 1 + (probes[3][3][0, 0] + 1) % 7          # another word, in the padding
    return probes


NAMES = ("embedding.weight", "output.weight", "output.bias")


def observe_bag(answer, vocab_size, d_model, num_classes, token_ids, attention_mask):
    """The names of the parameters and how many numbers they have; row 0 at the start; logits with weights filled in, of
    the batch and of each review alone; how many numbers a gradient reaches."""
    try:
        model = answer(vocab_size, d_model, num_classes)
    except AttributeError as error:
        if "before Module.__init__() call" not in str(error):
            raise
        raise TypeError("expected `super().__init__()` as the first line of __init__: it prepares the place where the "
                        "module keeps its layers, and you assign one before") from None
    if not isinstance(model, nn.Module):
        return no_module(model)
    named = dict(model.named_parameters())
    found = {"names": ", ".join(sorted(named)), "parameters": sum(parameter.numel() for parameter in named.values()),
             "padding row": named[NAMES[0]][0].detach().abs().max() if NAMES[0] in named else torch.tensor(0.0)}
    filled = torch.Generator().manual_seed(vocab_size)
    with torch.no_grad():
        for name in NAMES:
            if name in named:
                named[name].copy_(torch.randn(named[name].shape, generator=filled))
        if NAMES[0] in named:
            named[NAMES[0]][0] = 3.0                    # so that padding shows where it takes part
    logits = one_tensor(model(token_ids, attention_mask), "the logits")
    alone = [one_tensor(model(ids[real][None], real[real][None]), "the logits") if real.any() else row[None]
             for ids, real, row in zip(token_ids, attention_mask, logits, strict=False)] if logits.dim() == 2 else []
    if logits.requires_grad and logits.shape == (len(token_ids), num_classes):
        F.cross_entropy(logits, torch.arange(len(token_ids)) % num_classes).backward()
    return {**found, "logits": logits.detach(), "alone": torch.cat(alone).detach() if alone else logits.detach(),
            "trained": sum(parameter.numel() for parameter in named.values() if parameter.grad is not None)}


def _bag(layers=None, forward=None):
    """A bag with other layers, `layers(self, vocab_size, d_model, num_classes)`, or another `forward(self, ids, mask)`."""
    class Made(nn.Module):
        def __init__(self, vocab_size, d_model, num_classes):
            super().__init__()
            self.output = nn.Linear(d_model, num_classes)
            self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=0)
            if layers:
                layers(self, vocab_size, d_model, num_classes)

        def forward(self, token_ids, attention_mask):
            if forward:
                return forward(self, token_ids, attention_mask)
            return self.output(masked_mean(self.embedding(token_ids), attention_mask))

    return Made


class _InAList(nn.Module):
    def __init__(self, vocab_size, d_model, num_classes):
        super().__init__()
        self.layers = [nn.Embedding(vocab_size, d_model, padding_idx=0), nn.Linear(d_model, num_classes)]

    def forward(self, token_ids, attention_mask):
        return self.layers[1](masked_mean(self.layers[0](token_ids), attention_mask))


class _MadeInForward(nn.Module):
    def __init__(self, vocab_size, d_model, num_classes):
        super().__init__()
        self.sizes = vocab_size, d_model, num_classes

    def forward(self, token_ids, attention_mask):
        vocab_size, d_model, num_classes = self.sizes
        mean = masked_mean(nn.Embedding(vocab_size, d_model, padding_idx=0)(token_ids), attention_mask)
        return nn.Linear(d_model, num_classes)(mean)


def _review(case: Case) -> str:
    """The review whose logits are furthest off, in the batch and alone."""
    i = worst_row(case, "logits")
    return (f"with weights filled in, review {i} has the logits [{listed(case.logits[i])}] in its batch, expected "
            f"[{listed(case.right['logits'][i])}].")


def _two_ways(case: Case) -> str:
    i = int((case.logits - case.alone).abs().amax(dim=1).argmax())
    return f"review {i} has the logits [{listed(case.logits[i])}] in its batch, and [{listed(case.alone[i])}] alone."


HAS = "model.parameters() finds {parameters:.0f} numbers, expected {expected_parameters:.0f}."

BAG = ask(
    "3.6", Bag, probes=bag_probes, observe=observe_bag,
    signature="Bag(vocab_size, d_model, num_classes) -> a module that maps token_ids and attention_mask, both (batch, "
    "seq_len), to logits (batch, num_classes)",
    numbers=dict(parameters=lambda case: case.parameters, expected_parameters=lambda case: case.right["parameters"],
                 largest=lambda case: case.got["padding row"], rows=lambda case: spread(case.logits.sum(dim=-1)),
                 shape=lambda case: tuple(case.logits.shape), expected_shape=lambda case: tuple(case.right["logits"].shape),
                 names=lambda case: case.names or "nothing", trained=lambda case: case.trained,
                 expected_trained=lambda case: case.right["trained"]),
    mistakes={
        "mask-forgotten": M(_bag(forward=lambda self, ids, mask: self.output(self.embedding(ids).mean(dim=1))), _two_ways,
                            "The mean runs over the padding as well: use masked_mean, with the mask (section 2)."),
        "mask-from-ids": M(_bag(forward=lambda self, ids, mask: self.output(masked_mean(self.embedding(ids), ids != 0))),
                           _two_ways, "You guess the mask from the ids. The mask that comes with them is what counts: here "
                           "it hides a word whose id isn't 0 (02)."),
        "divided-by-none": M(_bag(forward=lambda self, ids, mask: self.output(
            (self.embedding(ids) * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1, keepdim=True))),
            "the logits of a review without words are NaN.", "It divides 0 by 0. masked_mean doesn't (section 2). All else "
            "is right."),
        "output-first": M(_bag(forward=lambda self, ids, mask: masked_mean(self.output(self.embedding(ids)), mask)),
                          _review, "You average logits instead of vectors. That's the same as long as there are words; this "
                          "review has none, and with the mean first its logits are the bias."),
        "mask-inverted": M(_bag(forward=lambda self, ids, mask: self.output(masked_mean(self.embedding(ids), ~mask))),
                           _review, "Your mean is that of the padding. In this course a mask is True where there's a "
                           "token: give it to masked_mean as it comes."),
        "not-divided": M(_bag(forward=lambda self, ids, mask: self.output(
            (self.embedding(ids) * mask.unsqueeze(-1)).sum(dim=1))), _review, "That's what the sum of the word vectors "
            "gives. A mean doesn't grow with the length of the review."),
        "no-padding-row": M(_bag(lambda self, v, d, c: setattr(self, "embedding", nn.Embedding(v, d))), "the row of "
                            "padding begins with numbers up to {largest:.3f}, expected 0.", "Tell nn.Embedding which id is "
                            "padding: padding_idx=0 (section 2)."),
        "in-a-list": M(_InAList, HAS, "PyTorch finds a layer that is itself an attribute, such as self.embedding. In a "
                       "plain list it doesn't look, so no optimizer would train these."),
        "made-in-forward": M(_MadeInForward, HAS, "The layers are made anew each time forward runs, so whatever they learn "
                             "is lost. Make them once, in __init__."),
        "no-bias": M(_bag(lambda self, v, d, c: setattr(self, "output", nn.Linear(d, c, bias=False))), HAS, "The bias is "
                     "missing: one number for each class, which nn.Linear has unless it's told not to."),
        "softmax-inside": M(_bag(forward=lambda self, ids, mask: self.output(
            masked_mean(self.embedding(ids), mask)).softmax(dim=-1)), "your logits sum to {rows} in each row.", "Those are "
            "probabilities. F.cross_entropy takes logits and does the softmax itself: return what self.output gives."),
        "mean-alone": M(_bag(forward=lambda self, ids, mask: masked_mean(self.embedding(ids), mask)), "you return the "
                        "shape {shape}, expected {expected_shape}.", "That's the mean word vector. self.output turns it "
                        "into one number for each class."),
        "class-of-every-word": M(_bag(forward=lambda self, ids, mask: self.output(self.embedding(ids))), "you return the "
                                 "shape {shape}, expected {expected_shape}.", "You have logits for every position. Average "
                                 "the word vectors first: one row for each review."),
        "cut-off": M(_bag(forward=lambda self, ids, mask: self.output(masked_mean(self.embedding(ids).detach(), mask))),
                     "a gradient reaches {trained:.0f} of {expected_trained:.0f} numbers.", "Something between the table "
                     "and the logits cuts it off, such as detach(), .data or no_grad(), so the word vectors aren't "
                     "trained."),
    },
    rules=(
        R(lambda case: case.parameters != case.right["parameters"], HAS, "There are two layers: nn.Embedding(vocab_size, "
          "d_model, padding_idx=0) and nn.Linear(d_model, num_classes)."),
        R(lambda case: case.names != case.right["names"], "the parameters of your module are {names}.", "Call the two "
          "layers self.embedding and self.output: what follows looks for these names, and so does a file of weights."),
        R(lambda case: case.got["padding row"] > 1e-9, "the row of padding begins with numbers up to {largest:.3f}, "
          "expected 0.", "Tell nn.Embedding which id is padding: padding_idx=0 (section 2)."),
        R(lambda case: case.logits.shape == case.alone.shape and (case.logits - case.alone).abs().max() > 1e-4, _two_ways,
          "A review must give the same result alone as in a batch: only real tokens belong in the mean (section 2)."),
        R(lambda case: gap(case, "logits") > 1e-4, _review, "forward looks up, averages, and returns what self.output makes "
          "of the mean; it does nothing else."),
        R(lambda case: case.trained != case.right["trained"], "a gradient reaches {trained:.0f} of {expected_trained:.0f} "
          "numbers.", "Something cuts it off: detach(), .data, no_grad(), item(), NumPy."),
        R(lambda case: gap(case, "alone") > 1e-4, _two_ways, "A review must give the same result alone as in a batch."),
    ),
    hints=(
        "It has the form of 00's WordClassifier: super().__init__(), then the layers; forward uses them.",
        "Two layers, self.embedding = nn.Embedding(…) and self.output = nn.Linear(…). Their sizes are all in the signature.",
        "In forward: vectors = self.embedding(token_ids); mean = masked_mean(vectors, attention_mask); return "
        "self.output(mean).",
    ),
)

# ---------------------------------------------------------------- 3.7 a training step

def training_step(model, optimizer, batch):
    logits = model(batch.token_ids, batch.attention_mask)                  # (batch, num_classes)
    loss = F.cross_entropy(logits, batch.labels)                           # mean over the batch
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def step_probes(generator: torch.Generator) -> list[tuple]:
    """A model and two batches, for a step each: of four and three reviews; then of four and four. In the padding of the
    first review of each stands a word."""
    probes = []
    for (model, several), chosen in ((epoch_probes(generator)[1], (0, 1)), (epoch_probes(generator)[1], (2, 0))):
        model.train()
        model.modes.clear()
        model.needs_mask = True
        batches = [several[i] for i in chosen]
        for batch in batches:
            batch.token_ids[0, -1] = 5                                     # hidden by the mask
        model.batches = batches
        probes.append((model, batches))
    return probes


def observe_step(function, model, batches):
    """The two losses that are returned, the parameters after each step, whether the model got the batches' masks; if no
    parameter has moved, also what was called, since that tells why. The gradients of an earlier step are there."""
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = parameter.detach().flip(0) / 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.4)
    steps, backwards, losses, after = [], [], [], []
    optimizer.register_step_post_hook(lambda *_: steps.append(1))
    model.weight.register_hook(lambda gradient: backwards.append(1))
    for batch in batches:
        try:
            loss = function(model, optimizer, batch)
        except RuntimeError as error:
            if "modified by an inplace operation" not in str(error) or not steps:
                raise
            raise TypeError("expected backward() before step(). Your step changes the weights after the forward pass, and "
                            "the backward pass still needs them as they were") from None
        if loss is None:
            moved = not all(torch.equal(old, new) for old, new in zip(before, model.parameters()))
            if not moved and not backwards:
                return None
            raise TypeError("expected one number, the loss of the batch, got None. End with `return loss.item()`")
        if isinstance(loss, torch.Tensor):
            raise TypeError(f"expected a plain number, the loss of the batch, got a tensor of shape {tuple(loss.shape)}. "
                            "With it you would keep all that was computed for its batch. End with `return loss.item()`")
        losses.append(one_loss(loss, "the loss of the batch").double())
        after.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).clone())
    moved = any(not torch.equal(old, new) for old, new in zip(before, model.parameters()))
    return {"losses": torch.stack(losses), "first": after[0], "second": after[1],
            "right masks": float(all(model.masks)), "moved": "yes" if moved else
            f"backward() {_calls(backwards)}, and step() {_calls(steps)}, in two steps"}


FIRST = "after one step your parameters are off by up to {first:.3f}."
SECOND = "after one step your parameters are right, after two they're off by up to {second:.3f}."
RETURNED = "the model is trained as it should be, and you return a loss of {loss:.4f}, expected {expected_loss:.4f}."
STILL = "no parameter has moved: {moved}."
LOSS_OF = "F.cross_entropy(logits, batch.labels)"

STEP = ask(
    "3.7", training_step, probes=step_probes, observe=observe_step,
    signature="training_step(model, optimizer, batch) -> the loss of the batch before the step, one number; a batch has "
    "token_ids, attention_mask (batch, seq_len) and labels (batch)",
    numbers=dict(first=lambda case: gap(case, "first"), second=lambda case: gap(case, "second"),
                 loss=lambda case: case.losses[0], expected_loss=lambda case: case.right["losses"][0],
                 moved=lambda case: case.moved),
    mistakes={
        "never-cleared": M({"optimizer.zero_grad()": "None"}, FIRST, "The step also used the gradients of an earlier one: "
                           "backward adds to what is there. Clear them before backward, in each step."),
        "cleared-at-the-end": M({"optimizer.zero_grad()": "None", "optimizer.step()": "(optimizer.step(), "
                                 "optimizer.zero_grad())"}, FIRST, "You clear after the step, and gradients of an earlier "
                                "step were there when it began: backward added to them. Clear before backward."),
        "cleared-between": M({"optimizer.zero_grad()": "None", "optimizer.step()": "(optimizer.zero_grad(), "
                              "optimizer.step())"}, STILL, "The step had no gradient to go by: it came "
                             "before backward, or the gradient was cleared between the two."),
        "no-backward": M({"loss.backward()": "None"}, STILL, "Without loss.backward() there is no gradient, and the step "
                         "does nothing. There is no error."),
        "no-step": M({"optimizer.step()": "None"}, STILL, "The gradient is computed and never used: optimizer.step() is "
                     "missing."),
        "twice": M({"optimizer.step()": "(optimizer.step(), optimizer.step())"}, FIRST, "Your parameters move twice as far "
                   "as they should: backward() or step() runs twice for one batch. Each is needed once."),
        "softmax-first": M({LOSS_OF: "F.cross_entropy(logits.softmax(dim=-1), batch.labels)"}, "your loss is {loss:.4f}, "
                           "expected {expected_loss:.4f}.", "cross_entropy got probabilities. It takes logits and does the "
                           "softmax itself; done twice, the gradients are small, and there's no error."),
        "summed": M({LOSS_OF: "F.cross_entropy(logits, batch.labels, reduction='sum')"}, "your loss is {loss:.4f}, expected "
                    "{expected_loss:.4f}.", "That is the sum over the reviews, so a large batch takes a long step. "
                    "cross_entropy gives the mean by itself."),
        "mask-from-ids": M({"batch.attention_mask": "batch.token_ids != 0"}, FIRST, "You guess the mask from the ids, and "
                           "here it hides a word whose id isn't 0 (02): pass batch.attention_mask."),
        "mask-of-ones": M({"batch.attention_mask": "torch.ones_like(batch.attention_mask)"}, FIRST, "The model got a mask "
                          "that isn't the batch's, so padding was read as words: pass batch.attention_mask."),
        "loss-after": M({"loss.item()": "F.cross_entropy(model(batch.token_ids, batch.attention_mask), "
                         "batch.labels).item()"}, RETURNED, "That's the loss after the step. Return the one that the "
                        "gradient was taken of."),
    },
    rules=(
        R(lambda case: case.got["right masks"] != 1, FIRST, "The model got a mask that isn't the batch's: pass "
          "batch.attention_mask as it is, True = real."),
        R(lambda case: case.moved != "yes", STILL, "A step needs three things in this order: a cleared gradient, backward, "
          "step."),
        R(lambda case: gap(case, "first") > 1e-4, FIRST, "Forward, cross_entropy of the logits, zero_grad, backward, step: "
          "each once, in this order."),
        R(lambda case: gap(case, "second") > 1e-4, SECOND, "Something of the first step is left over in the second, such as "
          "its gradient."),
        R(lambda case: gap(case, "losses") > 1e-4, RETURNED, "Return what cross_entropy gave before the step: loss.item()."),
    ),
    hints=(
        "The five lines that you've just seen, with the batch's ids, mask and labels.",
        "logits = model(batch.token_ids, batch.attention_mask), and the loss is F.cross_entropy(logits, batch.labels).",
        "Then optimizer.zero_grad(), loss.backward(), optimizer.step(), and return loss.item().",
    ),
)

# ---------------------------------------------------------------- 3.8 labels from the text

def windows(ids, reach):
    examples = []
    for i, middle in enumerate(ids):
        before = ids[max(0, i - reach) : i]
        after = ids[i + 1 : i + 1 + reach]
        examples.append((before + after, middle))
    return examples


def window_probes(generator: torch.Generator) -> list[tuple]:
    """(ids, reach): the four words; a review in which words come twice, also side by side; a reach beyond both ends; two
    words; an unknown word, id 1, between two others."""
    a, b, c, d, e = (2 + torch.randperm(40, generator=generator)[:5]).tolist()
    return [([2, 3, 4, 5], 1), ([a, b, c, a, d, d, e, b, c], 2), ([b, a, d, a, c], 3), ([d, e, c], 5), ([e, a], 1),
            ([b, 1, d], 1)]


PAIRS = "a list of pairs (around, middle), as in ([2, 4], 3)"


def observe_windows(function, ids, reach):
    """The examples in one line, with the ids around in any order, since a bag has none."""
    output = function(list(ids), reach)
    if output is None:
        return None
    found: list[str] = []
    for example in items_of(output, PAIRS):
        around, middle = pair_of(example, PAIRS)
        if hasattr(middle, "__iter__") and not hasattr(around, "__iter__"):
            raise TypeError(f"expected {PAIRS}, with the ids around first and the middle one second. You have them the "
                            "other way round")
        if hasattr(middle, "__len__") or not hasattr(around, "__iter__"):
            raise TypeError(f"expected {PAIRS}: first a list of ids, then one id; got ({what(around)}, {what(middle)})")
        found.append(f"{sorted(whole_id(i) for i in items_of(around, 'a list of ids'))} → {whole_id(middle)}")
    return {"examples": " | ".join(found) or "none"}


def _changed(change):
    """Every example as change(around, middle) gives the ids around."""
    return lambda ids, reach: [(change(around, middle), middle) for around, middle in windows(ids, reach)]


def _windows_by_index(ids, reach):
    return [windows(ids, reach)[ids.index(middle)] for middle in ids]


def _odd_example(case: Case) -> str:
    """The first example that isn't as it should be."""
    for yours, one in zip(case.examples.split(" | "), case.right["examples"].split(" | ")):
        if yours != one:
            return f"of the ids {case.inputs[0]} with a reach of {case.inputs[1]} you make {yours}, expected {one}."
    return _how_many(case)


def _how_many(case: Case) -> str:
    got, right = (text.count("→") for text in (case.examples, case.right["examples"]))
    return f"of the ids {case.inputs[0]} with a reach of {case.inputs[1]} you make {got} examples, expected {right}."


WINDOWS = ask(
    "3.8", windows, probes=window_probes, observe=observe_windows,
    signature="windows(ids, reach) -> a list of pairs (around, middle): a list of ids, and one id",
    mistakes={
        "negative-start": M({"max(0, i - reach)": "i - reach"}, _odd_example, "Near the beginning `i - reach` is negative, "
                            "and a slice then counts from the end. The smallest start is 0: max(0, i - reach)."),
        "middle-kept": M({"ids[i + 1 : i + 1 + reach]": "ids[i : i + 1 + reach]"}, _odd_example, "The word itself stands "
                         "among those around it, so there's nothing to guess: the label is in the input."),
        "one-short": M({"i + 1 + reach": "i + reach"}, _odd_example, "On the right one is missing. A slice leaves its end "
                       "out: ids[i + 1 : i + 1 + reach] has `reach` ids."),
        "only-before": M({"before + after": "before"}, _odd_example, "Only the words before it are there. Those after it "
                         "are around it too."),
        "only-after": M({"before + after": "after"}, _odd_example, "Only the words after it are there. Those before it are "
                        "around it too."),
        "whole-windows": M(lambda ids, reach: windows(ids, reach)[reach:-reach], _how_many, "Words near the ends are left "
                           "out. They have fewer words around them, and still an example each."),
        "by-value": M(_changed(lambda around, middle: [i for i in around if i != middle]), _odd_example,
                      "You leave out every id that's equal to the middle one. If a word comes twice, its other occurrence "
                      "is around it: leave out the position, not the id."),
        "first-place": M(_windows_by_index, _odd_example, "ids.index(x) gives the first occurrence of x, not this one: a "
                         "word that comes twice gets its first window again. Take the position from enumerate(ids)."),
        "once-each": M(_changed(lambda around, middle: sorted(set(around))), _odd_example, "A word that stands "
                       "twice around the middle is there once. It counts twice in the mean."),
        "pairs": M(lambda ids, reach: [([near], middle) for around, middle in windows(ids, reach) for near in around],
                   _how_many, "Each pair of words is an example of yours. Here all the words around one middle are one "
                   "example."),
        "skip-gram": M(lambda ids, reach: [([middle], near) for around, middle in windows(ids, reach) for near in around],
                       _how_many, "That's skip-gram: the middle word is given, and each of those around it is a label. Here "
                       "it's the other way round: those around it are given, together, and the middle one is the label."),
        "unknown-dropped": M(lambda ids, reach: [one for one in windows(ids, reach) if one[1] > 1], _how_many, "A word that "
                             "the vocabulary lacks, id 1, has its example too."),
    },
    rules=(
        R(lambda case: case.examples.count("→") != case.right["examples"].count("→"), _how_many, "One example for each "
          "word, in the order of the review."),
        R(lambda case: case.examples != case.right["examples"], _odd_example, "Around a word are the `reach` ids before its "
          "position and the `reach` after it, as far as there are any."),
    ),
    hints=(
        "Go through the positions: for i, middle in enumerate(ids).",
        "Two slices, one that ends before i and one that starts after it, added together.",
        "around = ids[max(0, i - reach) : i] + ids[i + 1 : i + 1 + reach]; then append (around, middle).",
    ),
)

# ---------------------------------------------------------------- quiz; `name` stays for ever: progress is kept by it

QUIZ = """
- name: alone-and-in-a-batch
  taught: "03"
  question: A model gives a review the probability 0.93 alone, and 0.61 in a batch with a very long review. What do you
    suspect first?
  options:
    - text: A learning rate that is too high for long reviews.
      remark: It only matters in training. Here a trained model gives two answers to one review.
    - text: A mean over all positions, padding included.
      right: true
      remark: The long review makes the batch wide, and the mean divides by the width (section 2).
    - text: An unknown word in the shorter of the two.
      remark: The word is the same in both cases, so it can't make a difference between them.
- name: zero-grad-forgotten
  taught: "03"
  question: You forget `optimizer.zero_grad()`. What happens?
  options:
    - text: Each step uses the sum of all gradients so far.
      right: true
      remark: "`backward` adds to what is there (section 4)."
    - text: The second call of `backward` raises an error.
      remark: It doesn't, because each batch has a graph of its own. That's why this mistake can survive for so long.
    - text: Nothing, because `backward` overwrites the old gradients.
      remark: It adds. That's why a step begins by clearing them (section 4).
- name: bag-on-order
  taught: "03"
  question: A bag gets exactly one half on the kind *order*. What would help?
  options:
    - text: Wider vectors, 64 numbers instead of 16.
      remark: Twins contain the same words, and the mean of the same vectors is the same, however wide they are.
    - text: Ten times as many training reviews.
      remark: More reviews give different vectors, but twins still have the same mean of them.
    - text: A model that sees in which order the words stand.
      right: true
      remark: Twins have the same mean for any width and any training. What tells them apart is the order alone.
- name: rows-with-gradient
  taught: "03"
  question: You train a model on one batch, with `padding_idx=0`. Which rows of its embedding matrix get a gradient that
    isn't zero?
  options:
    - text: All rows, because the whole matrix is a parameter.
      remark: A row that isn't looked up doesn't enter the loss, so its gradient is zero (section 1).
    - text: The rows of the words in the batch.
      right: true
      remark: Each row gets one contribution for every time its word occurs (section 1). With Adam, other rows may move
        all the same, by what is left of earlier gradients (section 5).
    - text: The rows of the words in the batch, and the padding row.
      remark: Padding is looked up as well, but `padding_idx` keeps its gradient at zero (section 2).
- name: direction-deleted
  taught: "03"
  question: Someone deletes the direction 'gender' from a set of word vectors, and their classifier falls to chance on
    gender. They conclude that the vectors no longer hold it. What do you ask for?
  options:
    - text: A larger test split, so that chance and a weak signal can be told apart.
      remark: The old classifier reads along that direction alone, so it fails on any test split.
    - text: Several random directions, deleted one by one as a control.
      remark: "That's good practice, but it answers another question: whether deleting any direction would have done it."
    - text: A new classifier, trained on the directions that are left.
      right: true
      remark: It asks what the vectors hold. The old one only shows where it used to look itself (section 7).
- name: three-demands-met
  taught: "03"
  question: A bag reads 'dull', 'not dull' and 'moving' right. What does it make of 'not moving'?
  options:
    - text: Positive, because 'not' pushes both opinions the same way.
      right: true
      remark: "'Not dull' is right, so 'not' adds something positive. Added to 'moving', it stays positive (section 6)."
    - text: Negative, because it has seen what 'not' does to an opinion.
      remark: In a sum 'not' adds the same to every opinion. It can't turn one up and another down (section 6).
    - text: It depends on the vectors that training has found.
      remark: It doesn't. The first three verdicts already decide the sign of the fourth sum (section 6).
- name: labels-or-contexts
  taught: "03"
  question: In a table of vectors from the course's reviews 'superb' is nearest to 'dreadful', 'awful' and 'wonderful'. What
    was it most likely learned from?
  options:
    - text: From reviews with labels, by a bag of embeddings.
      remark: Labels put the two opinions on opposite sides (section 6), 'dreadful' far from 'superb'.
    - text: From nothing yet, because opposite words are side by side.
      remark: Vectors drawn at random would hardly put three opinions beside a fourth.
    - text: From contexts, by guessing words from those around them.
      right: true
      remark: The three are used like 'superb'. Neighbours from contexts share a use, and not always an opinion (section 7).
- name: given-words-left-out
  taught: "03"
  question: A page says that king − man + woman is nearest to *queen*. What do you ask before you believe in a direction from
    man to woman?
  options:
    - text: How many numbers the vectors have, and how long the direction is.
      remark: A long step doesn't help if the search may not find what it would find otherwise (section 7).
    - text: Which words the search left out, and what king + woman gives.
      right: true
      remark: With nothing left out the nearest is mostly a given word, and with all three left out b + c often finds
        the answer (section 7).
    - text: Whether the vectors were learned by skip-gram or by CBOW.
      remark: The search leaves out the given words in either case.
- name: vocabulary-from-training
  taught: "02"
  question: Why does the vocabulary come from the training split alone?
  options:
    - text: A word that occurs only in the test split must be unknown, just as new words will be in use.
      right: true
      remark: A vocabulary made from all splits hides what unknown words do.
    - text: The test split would make the vocabulary too large to train it well.
      remark: It would add a few words, and that isn't the reason.
    - text: The ids have to stay in the same order whichever split is read.
      remark: They go by frequency, and no part of the model cares.
"""

WARM_UP = """
- name: batch-shape
  taught: "02"
  question: A batch holds reviews of 12, 30 and 7 tokens. What is the shape of its ids, and how many entries of its mask
    are True?
  options:
    - text: (3, 30), and 49 of them.
      right: true
      remark: As wide as the longest review. The mask is True for the real tokens, 12 + 30 + 7.
    - text: (3, 30), and 90 of them.
      remark: 90 is the number of entries. In the padding the mask is False.
    - text: (3, 12), and 31 of them.
      remark: The batch is as wide as its longest review, unless something cuts it.
- name: counter-on-twins
  taught: "01"
  question: A minimal pair has the same words in two orders, and opposite labels. How many of the two can a model get right
    that only counts words?
  options:
    - text: None, because every word occurs with both labels.
      remark: It gives both reviews the same answer, and that answer is the label of one of them.
    - text: Both, if it has counted enough reviews.
      remark: The counts of the two reviews are equal, so whatever it has learned, its answers are equal too.
    - text: Exactly one.
      right: true
      remark: Equal counts, equal answers, opposite labels.
- name: not-a-parameter
  taught: "00"
  question: In the `__init__` of a module you write `self.W = torch.zeros(3, 2)`. What goes wrong?
  options:
    - text: "`forward` can't use W, because it isn't part of the module."
      remark: It can; W is an attribute like any other.
    - text: W isn't among the module's parameters, so no optimizer trains it.
      right: true
      remark: An `nn.Parameter`, or a layer that holds one, is what `parameters()` finds.
    - text: W starts at zero, and a table of zeros can't be trained.
      remark: A table of zeros gets a gradient like any other; 00's classifier began with one.
"""
