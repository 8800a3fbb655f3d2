"""What the exercises of notebook 03 try an answer on, and what they look at. `ask` has what they say of it."""

import torch
from torch import nn

from course_utils.training import Batch

from course_exercises.common import one_tensor, reached, what

# ---------------------------------------------------------------- 3.1 the gradient of a lookup

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

# ---------------------------------------------------------------- 3.2 mean and maximum

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

# ---------------------------------------------------------------- 3.5 a direction turned up, down, round

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
